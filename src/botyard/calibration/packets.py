"""Reader of Pioneer packets as a log: odometry, velocities, commands, laser scans.

The packets come from ``--record-packets`` or from a recording.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from botyard.calibration.log import Log, ScanSeries, Series
from botyard.clients.trace import Passed, stage_before
from botyard.errors import CalibrationError
from botyard.interfaces.pioneer.tracefile import Lost, read_trace
from botyard.model.robot import RobotSpec
from botyard.model.sensors import LaserSpec
from botyard.names import shown
from botyard.protocols.pioneer.commands import C, P
from botyard.protocols.pioneer.handshake import Stage, in_handshake, stage_after
from botyard.protocols.pioneer.packet import Packet, Parser
from botyard.protocols.pioneer.reports import LaserPart, Sip
from botyard.units import from_deg, from_mm


def read_packets(path: Path, spec: RobotSpec, robot: str | None) -> Log:
    """Read the packets between a robot and its clients as a log.

    Parameters
    ----------
    path : Path
        The file.
    spec : RobotSpec
        The robot: scales of its packets, and its laser.
    robot : str or None
        Name of the robot; None: the only robot in the file.

    Raises
    ------
    FormatError
        The file cannot be read, or a line is not valid.
    CalibrationError
        The file has packets of several robots, or of none.
    """
    passed = [one for one in read_trace(str(path)) if not isinstance(one, Lost)]
    names = list(dict.fromkeys(one.robot for one in passed))
    if (robot is None and len(names) != 1) or (
        robot is not None and robot not in names
    ):
        found = ", ".join(shown(name) for name in names[:20]) or "none"
        raise CalibrationError(
            f"{path}: robots: expected {robot or 'one'}, found {found}; choose with --of"
        )

    # Bytes of other robots have counters and sessions of their own.
    session = _Sessions(spec)
    for one in passed:
        if one.robot == (robot or names[0]):
            session.take(one)

    return session.log(str(path), robot or names[0])


class _Sessions:
    """Decoder of all packet sessions between one robot and its clients."""

    def __init__(self, spec: RobotSpec) -> None:
        self._scales = spec.pioneer
        self._laser: LaserSpec | None = spec.lasers[0] if spec.lasers else None
        self._parsers: dict[tuple[int, bool], Parser] = {}
        self._stages: dict[int, Stage] = {}
        self._last: tuple[int, int] | None = None
        self._x = self._y = 0.0
        self._target = [0.0, 0.0, 0.0]
        self._odometry: list[tuple[float, float, float, float]] = []
        self._velocities: list[tuple[float, float, float, float]] = []
        self._commands: list[tuple[float, float, float, float]] = []
        self._scans: list[tuple[float, list[tuple[int, float]]]] = []
        self._part: list[tuple[int, float]] = []

    def take(self, one: Passed) -> None:
        """Decode the bytes of one transfer."""
        parser = self._parsers.setdefault((one.session, one.from_client), Parser())
        for packet in parser.feed_bytes(one.data):
            stage = self._stages.setdefault(one.session, stage_before(one))
            if one.from_client:
                # During the handshake the numbers of packets have another meaning.
                if not in_handshake(stage, packet.id):
                    self._command(packet, one.sim)
                self._stages[one.session] = stage_after(stage, packet.id)
            elif packet.id in (P.SIP, P.SIP_MOVING):
                self._report(Sip.decode(packet), one.sim)
            elif packet.id in (P.LASER1, P.LASER2):
                self._scan(LaserPart.decode(packet), one.sim)

    def _command(self, packet: Packet, at: float) -> None:
        value = packet.integer()
        if packet.id == C.VEL:
            self._target[0] = from_mm(value)
        elif packet.id in (C.RVEL, C.ROTATE):
            self._target[2] = from_deg(value)
        elif packet.id == C.LATVEL:
            self._target[1] = from_mm(value)
        # VEL2 carries both wheels as signed bytes, the left one in the high byte.
        elif packet.id == C.VEL2:
            right, left = (
                (byte - 256 if byte > 127 else byte) * self._scales.vel2_div
                for byte in packet.byte_pair()
            )
            self._target[0] = from_mm((left + right) / 2.0)
            self._target[2] = (right - left) / 2.0 * self._scales.diff_conv
        elif packet.id in (C.STOP, C.ESTOP):
            self._target = [0.0, 0.0, 0.0]
        else:
            return

        self._commands.append((at, self._target[0], self._target[1], self._target[2]))

    def _report(self, sip: Sip, at: float) -> None:
        # A position of 0, 0 may be a reset of odometry: it is no motion.
        if self._last is not None and (sip.x or sip.y):
            self._x += _wrapped(sip.x - self._last[0]) * self._scales.dist_conv
            self._y += _wrapped(sip.y - self._last[1]) * self._scales.dist_conv

        self._last = sip.x, sip.y
        self._odometry.append(
            (at, from_mm(self._x), from_mm(self._y), sip.th * self._scales.angle_conv)
        )
        left, right = (
            sip.left_vel * self._scales.vel_conv,
            sip.right_vel * self._scales.vel_conv,
        )
        # 0 may mean that the report lacks the rotational velocity: the wheels'
        # difference replaces it.
        turn = (
            from_deg(sip.rot_vel10 / 10.0)
            if sip.rot_vel10
            else (right - left) / 2.0 * self._scales.diff_conv
        )
        self._velocities.append(
            (at, from_mm((left + right) / 2.0), from_mm(sip.lat_vel), turn)
        )

    def _scan(self, part: LaserPart, at: float) -> None:
        # Read only the first laser, and only parts in sequence: a lost packet spoils
        # the whole scan.
        if part.device or part.first != (0 if part.first == 0 else len(self._part)):
            return
        # Packets 0x61 report 0 for an ordinary return, otherwise the return minus 1.
        # Packets 0x60 report none.
        returns = [one + 1.0 for one in part.reflectance] or [math.nan] * len(
            part.ranges_mm
        )
        beams = list(zip(part.ranges_mm, returns, strict=True))
        self._part = beams if part.first == 0 else [*self._part, *beams]
        if (
            self._laser is not None
            and len(self._part) == part.total == self._laser.samples
        ):
            self._scans.append((at, self._part))

    def log(self, source: str, robot: str) -> Log:
        """Return the log of all packets decoded so far."""

        def series(rows: list[tuple[float, float, float, float]]) -> Series:
            table = np.array(rows, np.float64).reshape(-1, 4)
            return Series.of(table[:, 0], table[:, 1:])

        scans = None
        if self._scans and self._laser is not None:
            beams = np.array([row for _, row in self._scans], np.float64)
            # Pioneer lasers that are mounted upside down report clockwise.
            if self._laser.flipped:
                beams = beams[:, ::-1]
            times, returns = np.array([at for at, _ in self._scans]), beams[..., 1]
            scans = ScanSeries(
                times,
                beams[..., 0] / 1000.0,
                -self._laser.fov / 2.0,
                self._laser.increment,
                None if np.isnan(returns).all() else returns,
            )

        return Log(
            source,
            robot,
            series(self._odometry),
            series(self._velocities),
            series(self._commands),
            scans,
        )


def _wrapped(difference: int) -> int:
    """Return the difference of two 16-bit counters, wrapped to −32768 … 32767."""
    return (difference + 0x8000) % 0x10000 - 0x8000


__all__ = ["read_packets"]
