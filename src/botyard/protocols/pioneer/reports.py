"""Packets that a robot sends: layouts in both directions, in the units of the protocol.

Each layout is a dataclass with ``encode`` for the robot's side and ``decode`` for a
client's side. A field's name states its unit, such as ``_mm``, unless the robot model
defines the unit.
`reportbuilder` fills them from a robot in SI units. Source: pioneer-protocol §5 to §8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from botyard.protocols.pioneer.commands import P
from botyard.protocols.pioneer.packet import Packet, frame

READINGS_PER_PACKET: Final = 32
"""Laser readings in one packet, and limit of sonar readings in one SIP (§5, §7)."""

# All numbers of the protocol are little-endian without padding; only the checksum is
# big-endian.
# The sonar readings vary in number, so the SIP is packed in three parts.
_SIP_HEAD = struct.Struct("<hhhhhBHhHBB")
_SIP_TAIL = struct.Struct("<BBBBBHBhHhbb")
_SONAR = struct.Struct("<BH")


@dataclass(slots=True, kw_only=True)
class Sip:
    """Standard information packet (§5).

    All values are integers as in the packet.

    Attributes
    ----------
    x, y : int
        Position by odometry, truncated to whole units, which wraps at 16 bits. The unit
        is the model's DistConvFactor, mm.
    th : int
        Heading in units of AngleConvFactor, 0.001534 rad.
    left_vel, right_vel : int
        Wheel speeds in units of the model's VelConvFactor, mm/s.
    battery : int
        Battery voltage, dV, 8 bits.
    stall_bumpers : int
        Bit 0 left wheel stalled, 1 to 7 rear bumpers, 8 right wheel stalled, 9 to 15
        front bumpers.
    control : int
        Heading set-point in the unit of `th`.
    flags : int
        Bit 0 motors on, 1 to 4 sonar arrays on, 5 E-stop.
    compass : int
        Heading in 2° units.
    sonar : sequence of (int, int)
        Index of the transducer, and range. The unit is the model's RangeConvFactor, mm.
    timer_low, gripper, analog : int
        Bytes after the sonar readings: timer, gripper state, and selected analogue
        input.
    digin, digout : int
        Digital inputs and outputs, one bit for each line.
    battery10 : int
        Battery voltage, dV, 16 bits.
    charge_state : int
        0 while the battery is not being charged.
    rot_vel10 : int
        Turn rate, 0.1 deg/s.
    faults : int
        Fault flags; bit 1 temperature warning.
    lat_vel : int
        Lateral velocity, mm/s.
    temperature : int
        Temperature, °C; −128 for none.
    soc : int
        State of charge, %; 0 if not available.
    moving : bool
        Whether the packet type is 0x33 instead of 0x32.
    """

    x: int = 0
    y: int = 0
    th: int = 0
    left_vel: int = 0
    right_vel: int = 0
    battery: int = 0
    stall_bumpers: int = 0
    control: int = 0
    flags: int = 0
    compass: int = 0
    sonar: Sequence[tuple[int, int]] = ()
    timer_low: int = 0
    gripper: int = 0
    analog: int = 0
    # Clients expect sensors on these lines, for which 1 means "not triggered".
    digin: int = 0xFF
    digout: int = 0xFF
    battery10: int = 0
    charge_state: int = 0
    rot_vel10: int = 0
    faults: int = 0
    lat_vel: int = 0
    temperature: int = -128
    # 0 means "not available", so a battery that is really empty cannot be reported.
    soc: int = 0
    moving: bool = False

    def encode(self) -> bytes:
        """Return a SIP with these values: 41 + 3·N bytes for N sonar readings.

        Raises
        ------
        ValueError
            There are more than 53 sonar readings, which do not fit into a packet.
        struct.error
            A value does not fit into its field. `reportbuilder` saturates values
            before.
        """
        head = _SIP_HEAD.pack(
            self.x,
            self.y,
            self.th,
            self.left_vel,
            self.right_vel,
            self.battery,
            self.stall_bumpers,
            self.control,
            self.flags,
            self.compass,
            len(self.sonar),
        )
        sonar = b"".join(_SONAR.pack(i, r) for i, r in self.sonar)
        tail = _SIP_TAIL.pack(
            self.timer_low,
            self.gripper,
            self.analog,
            self.digin,
            self.digout,
            self.battery10,
            self.charge_state,
            self.rot_vel10,
            self.faults,
            self.lat_vel,
            self.temperature,
            self.soc,
        )
        # Only the packet type reports whether the robot moves.
        return frame(P.SIP_MOVING if self.moving else P.SIP, head + sonar + tail)

    @classmethod
    def decode(cls, packet: Packet) -> Sip:
        """Return the SIP in a packet; fields that an older robot leaves out are 0.

        Parameters
        ----------
        packet : Packet
            Packet of type 0x32 or 0x33.
        """
        r = packet.reader()
        sip = cls(
            x=r.i16(),
            y=r.i16(),
            th=r.i16(),
            left_vel=r.i16(),
            right_vel=r.i16(),
            battery=r.u8(),
            stall_bumpers=r.u16(),
            control=r.i16(),
            flags=r.u16(),
            compass=r.u8(),
            moving=packet.id == P.SIP_MOVING,
        )
        n = r.u8()
        # The count comes from the packet, so it is checked against the remaining bytes.
        sip.sonar = [(r.u8(), r.u16()) for _ in range(min(n, r.remaining // 3))]
        # A truncated reading is skipped, so that it is not read as the next fields.
        if len(sip.sonar) < n:
            r.take(r.remaining)

        sip.timer_low, sip.gripper, sip.analog, sip.digin, sip.digout = (
            r.u8(),
            r.u8(),
            r.u8(),
            r.u8(),
            r.u8(),
        )
        sip.battery10, sip.charge_state, sip.rot_vel10, sip.faults = (
            r.u16(),
            r.u8(),
            r.i16(),
            r.u16(),
        )
        # The reader returns 0 at the end of the data, as older robots send shorter
        # packets.
        sip.lat_vel, sip.temperature, sip.soc = r.i16(), r.i8(), r.i8()
        return sip


# Name and `struct` code of each field, in the order of the packet (pioneer-protocol
# §6); "s" is a NUL-terminated string. Encoder and decoder use the same table, so they
# cannot differ.
_CONFIG_LAYOUT: Final = (
    ("class_name", "s"),
    ("subclass", "s"),
    ("serial", "s"),
    ("reserved", "B"),
    ("rot_vel_top", "H"),
    ("trans_vel_top", "H"),
    ("rot_acc_top", "H"),
    ("trans_acc_top", "H"),
    ("pwm_max", "H"),
    ("name", "s"),
    ("sip_cycle_ms", "B"),
    ("host_baud", "B"),
    ("aux1_baud", "B"),
    ("has_gripper", "H"),
    ("front_sonar", "H"),
    ("rear_sonar", "B"),
    ("low_battery", "H"),
    ("rev_count", "H"),
    ("watchdog_ms", "H"),
    ("p2mpacs", "B"),
    ("stall_value", "H"),
    ("stall_count", "H"),
    ("joy_vel", "H"),
    ("joy_rot_vel", "H"),
    ("rot_vel_max", "H"),
    ("trans_vel_max", "H"),
    ("rot_acc", "H"),
    ("rot_decel", "H"),
    ("rot_kp", "H"),
    ("rot_kv", "H"),
    ("rot_ki", "H"),
    ("trans_acc", "H"),
    ("trans_decel", "H"),
    ("trans_kp", "H"),
    ("trans_kv", "H"),
    ("trans_ki", "H"),
    ("front_bumpers", "B"),
    ("rear_bumpers", "B"),
    ("charger", "B"),
    ("sonar_cycle", "B"),
    ("auto_baud", "B"),
    ("has_gyro", "B"),
    ("drift_factor", "h"),
    ("aux2_baud", "B"),
    ("aux3_baud", "B"),
    ("ticks_mm", "H"),
    ("shutdown_volts", "H"),
    ("firmware", "s"),
    ("gyro_cw", "H"),
    ("gyro_ccw", "H"),
    ("kinematics_delay", "B"),
    ("lat_vel_top", "H"),
    ("lat_acc_top", "H"),
    ("lat_vel_max", "H"),
    ("lat_acc", "H"),
    ("lat_decel", "H"),
    ("charge_threshold", "H"),
)
CONFIG_MAXIMA: Final = {
    name: {"B": 0xFF, "H": 0xFFFF}[code]
    for name, code in _CONFIG_LAYOUT
    if code in "BH"
}
"""Greatest values that fit into the unsigned fields of a CONFIGpac."""


@dataclass(slots=True, kw_only=True)
class Config:
    """Configuration packet, CONFIGpac (§6): 57 fields in the order of the layout.

    Units are mm, deg and s. "top" fields are absolute maxima; "max" and acceleration
    fields are current settings.

    Attributes
    ----------
    class_name, subclass : str
        Class, such as ``Pioneer``, and model, such as ``p3dx-sh``: clients choose their
        parameter file by the latter.
    serial, name, firmware : str
        Serial number (``SIM`` in a simulator), robot's name, and firmware version.
    rot_vel_top, trans_vel_top, lat_vel_top : int
        Absolute maxima of turn rate, deg/s, and speeds, mm/s.
    rot_acc_top, trans_acc_top, lat_acc_top : int
        Absolute maxima of accelerations, deg/s² and mm/s².
    rot_vel_max, trans_vel_max, lat_vel_max : int
        Limits in force, deg/s and mm/s.
    rot_acc, rot_decel, trans_acc, trans_decel, lat_acc, lat_decel : int
        Ramps in force, deg/s² and mm/s².
    sip_cycle_ms, watchdog_ms : int
        Period of SIPs, and timeout of the watchdog, ms.
    has_gripper, front_sonar, rear_sonar, front_bumpers, rear_bumpers, has_gyro : int
        Accessories: 0 for none.
    ticks_mm : int
        Ticks of a wheel encoder for each mm.
    """

    class_name: str = "Pioneer"
    subclass: str = ""
    serial: str = "SIM"
    reserved: int = 0
    rot_vel_top: int = 0
    trans_vel_top: int = 0
    rot_acc_top: int = 0
    trans_acc_top: int = 0
    pwm_max: int = 400
    name: str = ""
    # Robots send ten SIPs per second by default.
    sip_cycle_ms: int = 100
    host_baud: int = 0
    aux1_baud: int = 0
    has_gripper: int = 0
    front_sonar: int = 0
    rear_sonar: int = 0
    low_battery: int = 0
    rev_count: int = 0
    watchdog_ms: int = 0
    p2mpacs: int = 0
    stall_value: int = 0
    stall_count: int = 0
    joy_vel: int = 0
    joy_rot_vel: int = 0
    rot_vel_max: int = 0
    trans_vel_max: int = 0
    rot_acc: int = 0
    rot_decel: int = 0
    rot_kp: int = 0
    rot_kv: int = 0
    rot_ki: int = 0
    trans_acc: int = 0
    trans_decel: int = 0
    trans_kp: int = 0
    trans_kv: int = 0
    trans_ki: int = 0
    front_bumpers: int = 0
    rear_bumpers: int = 0
    charger: int = 0
    sonar_cycle: int = 0
    auto_baud: int = 2
    has_gyro: int = 0
    drift_factor: int = 0
    aux2_baud: int = 0
    aux3_baud: int = 0
    ticks_mm: int = 0
    shutdown_volts: int = 0
    firmware: str = ""
    gyro_cw: int = 0
    gyro_ccw: int = 0
    kinematics_delay: int = 0
    lat_vel_top: int = 0
    lat_acc_top: int = 0
    lat_vel_max: int = 0
    lat_acc: int = 0
    lat_decel: int = 0
    charge_threshold: int = 0

    def encode(self) -> bytes:
        """Return a CONFIGpac with these values.

        Raises
        ------
        ValueError
            The five texts together are too long for a packet.
        struct.error
            A value does not fit into its field; see `CONFIG_MAXIMA`.
        """
        parts = []
        for name, code in _CONFIG_LAYOUT:
            value = getattr(self, name)
            parts.append(
                c_string(value) if code == "s" else struct.pack("<" + code, value)
            )

        return frame(P.CONFIG, b"".join(parts))

    @classmethod
    def decode(cls, packet: Packet) -> Config:
        """Return the CONFIGpac in a packet; missing fields are 0 or empty.

        Parameters
        ----------
        packet : Packet
            Packet of type 0x20. Real robots of older firmware send fewer fields.
        """
        r = packet.reader()
        take: dict[str, Callable[[], Any]] = {
            "s": r.text,
            "B": r.u8,
            "H": r.u16,
            "h": r.i16,
        }
        return cls(**{name: take[code]() for name, code in _CONFIG_LAYOUT})


# `Config` and the layout both list the fields, so their order must agree.
assert [f.name for f in fields(Config)] == [name for name, _ in _CONFIG_LAYOUT]


def c_string(text: str, limit: int = 60) -> bytes:
    """Return `text` as at most `limit` Latin-1 characters and a NUL.

    Parameters
    ----------
    text : str
        Text. NULs are removed, and characters outside of Latin-1 become ``?``.
    limit : int
        Maximum number of characters without the final NUL.
    """
    # A NUL inside would end the text early and shift all later fields.
    return text.replace("\0", "").encode("latin-1", "replace")[:limit] + b"\0"


def sync2(name: str, class_name: str, subclass: str) -> bytes:
    """Return the answer to SYNC2: three strings of at most 19 characters.

    See pioneer-protocol §3.

    Parameters
    ----------
    name : str
        Robot's name; some clients recognise a simulator by ``MobileSim`` (§3).
    class_name, subclass : str
        Class and model of the robot. Clients load the parameter file of the model.

    Returns
    -------
    bytes
        Complete packet of type 2.
    """
    return frame(
        P.SYNC2, b"".join(c_string(s, 19) for s in (name, class_name, subclass))
    )


@dataclass(slots=True, kw_only=True)
class LaserPart:
    """Packet of a laser scan, type 0x60 or 0x61 (§7).

    Attributes
    ----------
    total, first : int
        Number of readings in the whole scan, and index of the first reading in this
        packet.
    ranges_mm : sequence of int
        Up to 32 ranges, mm.
    reflectance : sequence of int
        For each range 0 (ordinary) or the strength of a reflector; type 0x61 only.
    x_mm, y_mm, th_deg : int
        Odometry, mm and degrees; type 0x60 only.
    device, flags : int
        Laser index; bit 0: the robot was teleported since the last scan; type 0x61
        only.
    """

    total: int
    first: int
    ranges_mm: Sequence[int]
    reflectance: Sequence[int] = ()
    x_mm: int = 0
    y_mm: int = 0
    th_deg: int = 0
    device: int = 0
    flags: int = 0

    def encode(self, packet_type: int) -> bytes:
        """Return a laser packet with this part of a scan.

        Parameters
        ----------
        packet_type : int
            0x60, or any other for 0x61.

        Returns
        -------
        bytes
            Complete packet.

        Raises
        ------
        ValueError
            Reflectance does not have as many values as the ranges (0x61), or the
            readings do not fit into a packet.
        struct.error
            A value does not fit into its field.
        """
        n = len(self.ranges_mm)
        # Both packet types have these fields, but at different positions.
        head = struct.pack("<HHB", self.total, self.first, n)
        if packet_type == P.LASER1:
            pose = struct.pack("<hhh", self.x_mm, self.y_mm, self.th_deg)
            return frame(P.LASER1, pose + head + struct.pack(f"<{n}H", *self.ranges_mm))

        body = b"".join(
            struct.pack("<HBBB", r, s, 0, 0)
            # `strict`, because a missing value would silently shorten the scan.
            for r, s in zip(self.ranges_mm, self.reflectance, strict=True)
        )
        return frame(P.LASER2, head + body + bytes((self.device, self.flags)))

    @classmethod
    def decode(cls, packet: Packet) -> LaserPart:
        """Return the part of a scan in a packet of either type.

        Parameters
        ----------
        packet : Packet
            Packet of type 0x60 or 0x61. Truncated readings are left out.
        """
        r = packet.reader()
        x = y = th = 0
        # Type 0x60 starts with the pose; type 0x61 has none, and ends with device and
        # flags.
        if packet.id == P.LASER1:
            x, y, th = r.i16(), r.i16(), r.i16()
        total, first, count = r.u16(), r.u16(), r.u8()
        ranges, strengths = [], []
        # Type 0x61 has the range, the reflectance and two reserved bytes for each
        # reading.
        size = 2 if packet.id == P.LASER1 else 5
        for _ in range(min(count, r.remaining // size)):
            ranges.append(r.u16())
            if packet.id == P.LASER2:
                strengths.append(r.u8())
                r.take(2)

        part = cls(
            total=total,
            first=first,
            ranges_mm=ranges,
            reflectance=strengths,
            x_mm=x,
            y_mm=y,
            th_deg=th,
        )
        if packet.id == P.LASER2:
            part.device, part.flags = r.u8(), r.u8()
        return part
