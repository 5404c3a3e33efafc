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
"""Greatest number of readings of a scan that a client can configure: a spacing of 0.1° over 360°.

The limit bounds the cost of a step.
"""


class LaserState:
    """Settings of one laser for one session.

    Parameters
    ----------
    port : RobotPort
        Robot with the laser.
    index : int
        Index of the laser.

    Attributes
    ----------
    mode : int
        0 off, 1 packets 0x60, 2 packets 0x61.
    start_deg, end_deg : float
        Bearings of the first and last reading, degrees, counter-clockwise from the
        laser's x-axis, as the client set them.
    increment_deg : float
        Spacing of the readings, degrees.
    reverse : bool
        Whether the readings are sent clockwise.
    version : int
        Increases when the layout of the packets changes.
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
        # The first scan after the laser was turned on has the flag "robot was moved".
        self._moved = True
        self._teleports = port.teleports

    def switch(self, mode: int) -> None:
        """Set the mode: 0 off, 1 packets 0x60, 2 packets 0x61; any other counts as 1.

        Parameters
        ----------
        mode : int
            Argument of SIM_LRF_ENABLE. The laser measures only while a session has it
            on.
        """
        mode = mode if mode in (0, 2) else 1
        if mode and not self.mode:
            self._moved = True
        self.mode = mode
        # The layout of the packets changes, so cached packets are invalid.
        self.version += 1
        self.port.subscribe_laser(self.index, mode > 0)

    def set_start(self, degrees: int) -> None:
        """Set the first bearing, degrees.

        Parameters
        ----------
        degrees : int
            Bearing, counter-clockwise. A start above the end makes a clockwise scan.
        """
        self.start_deg = float(degrees)
        self._configure()

    def set_end(self, degrees: int) -> None:
        """Set the last bearing, degrees.

        Parameters
        ----------
        degrees : int
            Bearing, counter-clockwise from the laser's x-axis.
        """
        self.end_deg = float(degrees)
        self._configure()

    def set_increment(self, hundredths: int) -> None:
        """Set the spacing, hundredths of a degree.

        Parameters
        ----------
        hundredths : int
            Spacing; its sign is ignored. 0 gives no readings until the next setting.
        """
        self.increment_deg = abs(hundredths) / 100.0
        self._configure()

    def _configure(self) -> None:
        """Apply the settings, which arrive one by one.

        If the settings give more than `MAX_READINGS` readings, `MAX_READINGS` readings
        are spread over the field of view.
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

        The call resets the flag, so it must be made exactly once for each scan.
        """
        teleports = self.port.teleports
        moved = self._moved or teleports != self._teleports
        self._moved, self._teleports = False, teleports
        return moved

    def report(self, state: RobotState) -> bytes:
        """Return the packets of this period's scan; empty while the laser is off.

        Parameters
        ----------
        state : RobotState
            State after the step. Packets 0x60 contain its odometry.

        Returns
        -------
        bytes
            Concatenated packets. Each call counts as a sent scan (`take_moved`).
        """
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
