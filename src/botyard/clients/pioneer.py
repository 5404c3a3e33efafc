"""Client of the Pioneer serial protocol over TCP.

The client works with robots of botyard and of AMRISim, and with real robots behind a
serial server.

    with PioneerClient("127.0.0.1", 8101) as robot:
        robot.enable()
        robot.vel(300)
        while robot.update():
            print(robot.x_mm, robot.y_mm, robot.sonar_mm)

The client uses blocking sockets and no threads: `update` waits for the next report.
Units follow the protocol: mm, degrees, mm/s, deg/s. The client knows only the codecs of
the protocol (pioneer-protocol §1–8).
"""

from __future__ import annotations

import math
import socket
import time
from types import TracebackType
from typing import Any

from botyard.errors import PeerError
from botyard.protocols.pioneer.accessoryreports import (
    Encoders,
    GripperReport,
    Gyro,
    Io,
    JoystickReport,
)
from botyard.protocols.pioneer.commands import C, P
from botyard.protocols.pioneer.packet import Packet, Parser, command, frame
from botyard.protocols.pioneer.reports import Config, LaserPart, Sip
from botyard.protocols.pioneer.simreports import MapChanged, SimInfo, SimStat

# Robots stop after a watchdog time of 2 s by default, so up to three PULSEs may be
# late.
PULSE_INTERVAL_S = 0.5
"""Keep-alive interval, s.

After this time without another command a PULSE is sent, so that the robot's watchdog
does not trip.
"""


class PioneerClient:
    """Connection of a client to one robot.

    Parameters
    ----------
    host, port : str, int
        Address of the robot.
    timeout : float
        Timeout of answers, s.
    dist_conv, angle_conv, vel_conv, range_conv : float
        Sizes of the units in the robot's SIP (pioneer-protocol §16): of positions, mm;
        of headings, rad; of wheel speeds, mm/s; of sonar ranges, mm. By default
        `dist_conv` is the value of the robot's model.

    Attributes
    ----------
    name, class_name, subclass : str
        Names of the robot from the handshake.
    sip : Sip
        Last standard information packet, as on the wire.
    x_mm, y_mm, th_deg : float
        Pose by odometry, mm and degrees, unwrapped from the packets' 16-bit counters.
    sonar_mm : dict of int to float
        Latest range of each transducer, mm.
    scan_mm : list of int
        Ranges of the last complete laser scan, in the order of the robot.
    reflectance : list of int
        Strength of reflectors in that scan (packets 0x61 only).
    scans : int
        Number of complete scans.
    config : Config or None
        Answer to the last CONFIG.
    simstat : SimStat or None
        Last SIMSTAT.
    siminfo : SimInfo or None
        Answer to SIM_CTRL 6.
    map_changes : list of MapChanged
        All MAPCHANGED packets.
    encoders, gyro, io, gripper, joystick
        Last packet of each kind; None before the first. The commands 19, 58, 40, 37 and
        17 request these packets.

    Raises
    ------
    PeerError
        The connection or the handshake failed.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8101,
        *,
        timeout: float = 5.0,
        dist_conv: float | None = None,
        angle_conv: float = 0.00153,
        vel_conv: float = 1.0,
        range_conv: float = 1.0,
    ) -> None:
        self.timeout = timeout
        self.angle_conv, self.vel_conv, self.range_conv = (
            angle_conv,
            vel_conv,
            range_conv,
        )

        self.name = self.class_name = self.subclass = ""

        self.sip = Sip()
        self.x_mm = self.y_mm = self.th_deg = 0.0
        self.sonar_mm: dict[int, float] = {}
        self.scan_mm: list[int] = []
        self.reflectance: list[int] = []
        self.scans = 0

        self.config: Config | None = None
        self.simstat: SimStat | None = None
        self.siminfo: SimInfo | None = None
        self.map_changes: list[MapChanged] = []
        self.encoders: Encoders | None = None
        self.gyro: Gyro | None = None
        self.io: Io | None = None
        self.gripper: GripperReport | None = None
        self.joystick: JoystickReport | None = None

        self._parser = Parser()
        self._packets: list[Packet] = []
        self._part: LaserPart | None = None
        self._last_xy: tuple[int, int] | None = None
        try:
            self._socket = socket.create_connection((host, port), timeout)
        # UnicodeError: no valid host name; OverflowError: no valid port.
        except (OSError, UnicodeError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PeerError(f"no robot at {host}:{port}: {reason}") from None

        # Commands are short, and Nagle's algorithm would delay them.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sent = time.monotonic()
        try:
            self._handshake()
        # Close the socket also after KeyboardInterrupt: the robot serves one client, so
        # a leaked socket would block it.
        except BaseException:
            self._socket.close()
            raise

        self.dist_conv = (
            _DIST_CONV.get(self.subclass, 1.0) if dist_conv is None else dist_conv
        )

    # -- connection

    def _handshake(self) -> None:
        # SYNC0, SYNC1 and SYNC2: the robot echoes the first two, and answers the third
        # with its names.
        for number in range(3):
            self._socket.sendall(frame(number))
            answer = self._wait_for(number)

        r = answer.reader()
        self.name, self.class_name, self.subclass = r.text(), r.text(), r.text()
        # The robot sends reports only after OPEN.
        self.send(C.OPEN, 1)

    def _wait_for(self, packet_id: int) -> Packet:
        """Return the next packet of a type; drop earlier packets of other types.

        Parameters
        ----------
        packet_id : int
            Type of the packet.

        Raises
        ------
        PeerError
            No such packet arrives within the client's timeout, or the connection is
            lost.
        """
        deadline = time.monotonic() + self.timeout
        while time.monotonic() < deadline:
            packet = self._next_packet(deadline)
            if packet is not None and packet.id == packet_id:
                return packet

        raise PeerError(
            f"expected an answer to packet {packet_id} within {self.timeout:g} s, found none"
        )

    def _next_packet(self, deadline: float) -> Packet | None:
        """Return the next packet, or None at the deadline.

        Parameters
        ----------
        deadline : float
            Time of `time.monotonic`, s.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        while not self._packets:
            wait = deadline - time.monotonic()
            # A timeout of 0 would make the socket non-blocking.
            if wait <= 0.0:
                return None
            self._socket.settimeout(wait)
            try:
                data = self._socket.recv(65536)
            # `TimeoutError` is an `OSError`, so it must be caught first.
            except TimeoutError:
                return None
            except OSError as error:
                raise PeerError(
                    f"the connection broke: {error.strerror or error}"
                ) from None

            if not data:
                raise PeerError(
                    "the robot closed the connection (it may have another client)"
                )

            self._packets = self._parser.feed_bytes(data)

        return self._packets.pop(0)

    def close(self) -> None:
        """Send CLOSE, and close the connection."""
        try:
            # The robot may already have closed the connection, and `close` must not
            # fail.
            self._socket.sendall(command(C.CLOSE))
            self._socket.close()
        except OSError:
            pass

    def __enter__(self) -> PioneerClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    # -- reading

    def update(self, timeout: float | None = None) -> bool:
        """Process packets until the next SIP.

        Return False if no SIP arrived within the timeout.

        Parameters
        ----------
        timeout : float, optional
            Longest wait, s. By default it is the client's timeout.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        # Send PULSE here, because the client has no thread: a program that drives calls
        # `update` regularly.
        if time.monotonic() - self._sent > PULSE_INTERVAL_S:
            self.send(C.PULSE)
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while (packet := self._next_packet(deadline)) is not None:
            self._take(packet)
            if packet.id in (P.SIP, P.SIP_MOVING):
                return True

        return False

    def _take(self, packet: Packet) -> None:
        if packet.id in (P.SIP, P.SIP_MOVING):
            self._take_sip(Sip.decode(packet))
        elif packet.id in (P.LASER1, P.LASER2):
            self._take_laser(LaserPart.decode(packet))
        elif packet.id == P.CONFIG:
            self.config = Config.decode(packet)
        elif packet.id == P.MAP_CHANGED:
            self.map_changes.append(MapChanged.decode(packet))
        elif packet.id in _LATEST:
            name, kind = _LATEST[packet.id]
            setattr(self, name, kind.decode(packet))

    def _take_sip(self, sip: Sip) -> None:
        self.sip = sip
        if self._last_xy is None:
            self.x_mm, self.y_mm = sip.x * self.dist_conv, sip.y * self.dist_conv
        # A wrapped difference would be wrong, because a reset is a jump of any size.
        elif sip.x == sip.y == 0:
            # The robot has reset its odometry.
            self.x_mm = self.y_mm = 0.0
        else:
            # Positions have 16 bits and wrap after some tens of metres; add the
            # difference.
            self.x_mm += _wrapped(sip.x - self._last_xy[0]) * self.dist_conv
            self.y_mm += _wrapped(sip.y - self._last_xy[1]) * self.dist_conv

        self._last_xy = sip.x, sip.y
        self.th_deg = math.degrees(sip.th * self.angle_conv)
        # A packet may carry only a part of the ring, so earlier readings of other
        # transducers stay.
        for index, reading in sip.sonar:
            self.sonar_mm[index] = reading * self.range_conv

    def _take_laser(self, part: LaserPart) -> None:
        whole = self._part
        if (
            part.first == 0
            or whole is None
            or part.first != len(whole.ranges_mm)
            # The resolution was changed in the middle of a scan, so its parts do not
            # fit together.
            or part.total != whole.total
        ):
            if part.first:
                # The client joined in the middle of a scan, so it waits for the next
                # one.
                self._part = None
                return

            whole = self._part = LaserPart(
                total=part.total, first=0, ranges_mm=[], reflectance=[]
            )

        whole.ranges_mm = [*whole.ranges_mm, *part.ranges_mm]
        whole.reflectance = [*whole.reflectance, *part.reflectance]
        if len(whole.ranges_mm) >= whole.total:
            self.scan_mm, self.reflectance = (
                list(whole.ranges_mm),
                list(whole.reflectance),
            )
            self.scans += 1
            self._part = None

    @property
    def vel_mm_s(self) -> float:
        """Forward speed, mm/s."""
        # The protocol has wheel speeds only; their mean is the speed of the robot's
        # centre.
        return (self.sip.left_vel + self.sip.right_vel) / 2.0 * self.vel_conv

    @property
    def rot_vel_deg_s(self) -> float:
        """Turn rate, deg/s."""
        return self.sip.rot_vel10 / 10.0

    @property
    def stalled(self) -> bool:
        """Whether a wheel is stalled."""
        # The lowest bit of each byte is the stall flag of one wheel.
        return bool(self.sip.stall_bumpers & 0x0101)

    @property
    def motors_on(self) -> bool:
        """Whether the motors are enabled."""
        return bool(self.sip.flags & 1)

    @property
    def volts(self) -> float:
        """Battery voltage, V."""
        return self.sip.battery10 / 10.0

    # -- commands

    def send(self, number: int, argument: int | bytes | None = None) -> None:
        """Send any command, with an integer, a string, or no argument.

        Parameters
        ----------
        number : int
            Command number, one of `commands.C`.
        argument : int or bytes, optional
            Argument in the unit of the command; integers are saturated at ±65535.

        Raises
        ------
        PeerError
            The connection is lost.
        """
        self.send_raw(command(number, argument))

    def send_raw(self, data: bytes) -> None:
        """Send bytes unchanged.

        Parameters
        ----------
        data : bytes
            Bytes, usually complete packets (`packet.frame`).

        Raises
        ------
        PeerError
            The connection is lost.
        """
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise PeerError(
                f"the connection broke: {error.strerror or error}"
            ) from None

        self._sent = time.monotonic()

    def enable(self, on: bool = True) -> None:
        """Switch the motors on or off.

        Parameters
        ----------
        on : bool
            Whether the motors shall be on. Motion commands have no effect while they
            are off.
        """
        self.send(C.ENABLE, int(on))

    def vel(self, mm_s: float) -> None:
        """Drive straight ahead or back at a speed, mm/s.

        Parameters
        ----------
        mm_s : float
            Forward speed, mm/s; negative backwards. The speed is rounded to whole mm/s.
        """
        self.send(C.VEL, round(mm_s))

    def rvel(self, deg_s: float) -> None:
        """Turn at a rate, deg/s, counter-clockwise.

        Parameters
        ----------
        deg_s : float
            Turn rate, deg/s, rounded to whole degrees. It replaces a heading set by
            `head` or `dhead`.
        """
        self.send(C.RVEL, round(deg_s))

    def latvel(self, mm_s: float) -> None:
        """Drive to the left with a speed, mm/s (omnidirectional robots).

        Parameters
        ----------
        mm_s : float
            Speed to the left, mm/s; negative to the right.
        """
        self.send(C.LATVEL, round(mm_s))

    def move(self, mm: float) -> None:
        """Drive straight by a distance, mm.

        Parameters
        ----------
        mm : float
            Distance from the present position, mm; negative backwards.
        """
        self.send(C.MOVE, round(mm))

    def head(self, degrees: float) -> None:
        """Turn to a heading, degrees, by odometry.

        Parameters
        ----------
        degrees : float
            Heading in the frame of odometry, counter-clockwise from its x-axis; rounded
            to whole degrees.
        """
        self.send(C.HEAD, round(degrees))

    def dhead(self, degrees: float) -> None:
        """Turn by an angle, degrees.

        Parameters
        ----------
        degrees : float
            Angle from the present heading, counter-clockwise; rounded to whole degrees.
        """
        self.send(C.DHEAD, round(degrees))

    def stop(self) -> None:
        """Stop the robot."""
        self.send(C.STOP)

    def start_laser(
        self,
        start_deg: int = -90,
        end_deg: int = 90,
        increment_deg: float = 1.0,
        mode: int = 2,
    ) -> None:
        """Request laser scans from `start_deg` to `end_deg`.

        The scans arrive in packets 0x60 (mode 1) or 0x61 (mode 2).

        Parameters
        ----------
        start_deg, end_deg : int
            Bearings of the first and last reading, counter-clockwise. If the start is greater than
            the end, the scan is clockwise.
        increment_deg : float
            Spacing, degrees, rounded to hundredths.
        mode : int
            0 off, 1 packets 0x60 with the pose, 2 packets 0x61 with the reflectance.
        """
        self.send(C.SIM_LRF_SET_FOV_START, start_deg)
        self.send(C.SIM_LRF_SET_FOV_END, end_deg)
        # The protocol sends the resolution in hundredths of a degree.
        self.send(C.SIM_LRF_SET_RES, round(increment_deg * 100))
        self.send(C.SIM_LRF_ENABLE, mode)

    def request_config(self) -> Config:
        """Request the CONFIG packet, and wait for it.

        Raises
        ------
        PeerError
            No answer arrived in time.
        """
        self.send(C.CONFIG, 1)
        deadline = time.monotonic() + self.timeout
        while (packet := self._next_packet(deadline)) is not None:
            self._take(packet)
            if packet.id == P.CONFIG and self.config is not None:
                return self.config

        raise PeerError(
            f"expected a CONFIG packet within {self.timeout:g} s, found none"
        )


# Packets whose latest value is kept: attribute and layout.
_LATEST: dict[int, tuple[str, Any]] = {
    P.SIMSTAT: ("simstat", SimStat),
    P.SIMINFO: ("siminfo", SimInfo),
    P.ENCODER: ("encoders", Encoders),
    P.GYRO: ("gyro", Gyro),
    P.IO: ("io", Io),
    P.GRIPPER: ("gripper", GripperReport),
    P.JOYSTICK: ("joystick", JoystickReport),
}


def _wrapped(difference: int) -> int:
    """Return the difference of two 16-bit counters, wrapped to −32768 … 32767."""
    return (difference + 0x8000) % 0x10000 - 0x8000


# Size of a position unit, mm, for models whose parameter files state another value than
# 1 (pioneer-protocol §16). Models that are not listed, such as the ``-sh`` models,
# count in mm.
_DIST_CONV = {
    "p3dx": 0.485,
    "p3at": 0.465,
    "p3atiw": 0.465,
    "amigo": 0.5083,
    "amigo-nosonar": 0.5083,
    "powerbot": 0.5813,
    "p2at": 1.32,
    "p2ce": 0.826,
    "p2d8": 0.485,
    "p2de": 0.969,
    "pion1x": 0.05066,
    "pionat": 0.07,
}
