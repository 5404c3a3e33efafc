"""Settings of one laser for a client: mode, rays, and order of the readings.

Source: pioneer-protocol §4.2, §7.
"""

from __future__ import annotations

from typing import Final

from botyard import units
from botyard.model.robotport import RobotPort
from botyard.model.robotstate import RobotState
from botyard.protocols.pioneer.commands import P
from botyard.protocols.pioneer.reportbuilder import laser_packets, scan_geometry

MAX_READINGS: Final = 3601
"""Limit of the readings in a scan that a client can configure: 0.1° over 360°.

It bounds the cost of a step.
"""


class LaserState:
    """Settings of one laser for one session.

    Parameters
    ----------
    port : RobotPort
        The robot.
    index : int
        Index of the laser.
    """

    def __init__(self, port: RobotPort, index: int) -> None:
        spec = port.spec.lasers[index]
        self.port = port
        self.index = index
        self.mode = 0
        half = units.deg(spec.fov) / 2.0
        self.start_deg, self.end_deg = (half, -half) if spec.flipped else (-half, half)
        self.increment_deg = units.deg(spec.increment)
        self.reverse = spec.flipped
        self.version = 0
        self.is_coarse = False
        """Whether the client requested more readings than `MAX_READINGS`."""
        # The first scan after turning the laser on has the flag "moved".
        self._moved = True
        self._teleports = port.teleports

    def switch(self, mode: int) -> None:
        """Set the mode: 0 off, 1 packets 0x60, 2 packets 0x61; any other counts as 1."""
        mode = mode if mode in (0, 2) else 1
        if mode and not self.mode:
            self._moved = True
        self.mode = mode
        # Cached packets have another layout now.
        self.version += 1
        self.port.subscribe_laser(self.index, mode > 0)

    def set_start(self, degrees: int) -> None:
        """Set the first bearing, degrees."""
        self.start_deg = float(degrees)
        self._configure()

    def set_end(self, degrees: int) -> None:
        """Set the last bearing, degrees."""
        self.end_deg = float(degrees)
        self._configure()

    def set_increment(self, hundredths: int) -> None:
        """Set the spacing, hundredths of a degree."""
        self.increment_deg = abs(hundredths) / 100.0
        self._configure()

    def _configure(self) -> None:
        """Apply the settings, which arrive one by one.

        Too many readings are spread over the field of view.
        """
        lowest, step, count, self.reverse = scan_geometry(
            self.start_deg, self.end_deg, self.increment_deg
        )
        self.is_coarse = count > MAX_READINGS
        if self.is_coarse:
            step, count = step * (count - 1) / (MAX_READINGS - 1), MAX_READINGS
        self.version += 1
        self.port.configure_laser(self.index, lowest, step, count)

    def take_moved(self) -> bool:
        """Return whether the robot was teleported since the last scan.

        It resets the flag, so it must be called once per scan.
        """
        teleports = self.port.teleports
        moved = self._moved or teleports != self._teleports
        self._moved, self._teleports = False, teleports
        return moved

    def report(self, state: RobotState) -> bytes:
        """Return the packets of this period's scan; empty while the laser is off."""
        if not self.mode:
            return b""
        moved = self.take_moved()
        packet_type = P.LASER1 if self.mode == 1 else P.LASER2
        return laser_packets(
            self.port.laser(self.index),
            state,
            packet_type,
            device=self.index,
            flags=int(moved),
            reverse=self.reverse,
        )
