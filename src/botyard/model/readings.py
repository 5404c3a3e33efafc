"""Readings of sensors and accessories as plain data, and the actions of a gripper."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LaserScan:
    """One laser scan, with the field names and meanings of ``sensor_msgs/LaserScan``.

    Angles increase counter-clockwise (REP-103).

    Attributes
    ----------
    stamp : float
        Simulated time of the first ray, s.
    frame_pose : Pose
        Pose of the laser in the robot's frame, m and rad.
    angle_min, angle_max, angle_increment : float
        Bearings of the first and the last reading, and their spacing, rad, in the
        laser's frame.
    scan_time : float
        Time between two scans, s: the period of the measurement rate, at least one step.
    range_min, range_max : float
        Range limits, m.
    ranges : (n,) float64 array
        Ranges, m, counter-clockwise; `range_max` if the beam hit nothing.
    intensities : (n,) int16 array
        Laser return of each reading: 0 nothing, 1 ordinary, more: a reflector. Lidars whose
        model has an `intensity` report that instead.
    time_increment : float
        Time from one ray to the next, s; negative if the last ray was measured first.
    echoes : (e, n) float64 array
        Ranges of each echo, m, nearest first, if the lidar has several; row 0 is `ranges`.
    echo_intensities : (e, n) int16 array
        Intensities of these echoes.
    white_intensity : float
        Intensity of a white surface head-on; 0: `intensities` are laser returns.
    """

    stamp: float
    frame_pose: Pose
    angle_min: float
    angle_max: float
    angle_increment: float
    scan_time: float
    range_min: float
    range_max: float
    ranges: NDArray[np.float64]
    intensities: NDArray[np.int16]
    time_increment: float = 0.0
    echoes: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    echo_intensities: NDArray[np.int16] = field(
        default_factory=lambda: np.zeros((0, 0), np.int16)
    )
    white_intensity: float = 0.0

    def __repr__(self) -> str:
        n = len(self.ranges)
        # The format option "z" prints 0.0 instead of −0.0.
        low, high = math.degrees(self.angle_min), math.degrees(self.angle_max)
        nearest = ""
        if n:
            k = int(self.ranges.argmin())
            at = math.degrees(self.angle_min + k * self.angle_increment)
            nearest = f", nearest {self.ranges[k]:.3f} m at {at:z.1f}°"

        return (
            f"<LaserScan at {self.stamp:g} s: {n} ranges from {low:z.1f}° to "
            f"{high:z.1f}°{nearest}>"
        )

    @property
    def returns(self) -> NDArray[np.int16]:
        """Laser return of each reading, (n,): 0 nothing, 1 ordinary, more: a reflector.

        A lidar with intensities reports at least twice the intensity of a white surface for a
        reflector.
        """
        if not self.white_intensity:
            return self.intensities
        share = np.floor(self.intensities / self.white_intensity)
        returns = np.where(self.intensities > 0, np.maximum(share, 1.0), 0.0)
        return returns.astype(np.int16)

    @property
    def angles(self) -> NDArray[np.float64]:
        """Bearing of each reading in the laser's frame, rad."""
        return self.angle_min + self.angle_increment * np.arange(
            len(self.ranges), dtype=np.float64
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SonarReadings:
    """One reading of a sonar ring.

    Attributes
    ----------
    stamp : float
        Simulated time, s.
    range_min, range_max : float
        Range limits, m.
    ranges : (n,) float64 array
        Range of each transducer, m, in the order of its index; `range_max` if it hit
        nothing. Read-only.
    """

    stamp: float
    range_min: float
    range_max: float
    ranges: NDArray[np.float64]

    def __repr__(self) -> str:
        nearest = f", nearest {self.ranges.min():.3f} m" if len(self.ranges) else ""
        return (
            f"<SonarReadings at {self.stamp:g} s: {len(self.ranges)} ranges{nearest}>"
        )


class ChargeState(IntEnum):
    """State of the charger, with the values of the SIP (pioneer-protocol §5)."""

    NOT_CHARGING = 0
    BULK = 1
    OVERCHARGE = 2
    FLOAT = 3


class Action(IntEnum):
    """Actions of a gripper, with the values of the command GRIPPER.

    Source: pioneer-protocol §4.6.
    """

    OPEN = 1
    CLOSE = 2
    STOP = 3
    LIFT_UP = 4
    LIFT_DOWN = 5
    LIFT_STOP = 6
    STORE = 7
    DEPLOY = 8
    HALT = 15
    PRESSURE = 16
    LIFT_CARRY = 17


class GripperState(NamedTuple):
    """State of the gripper's switches and break beams.

    Attributes
    ----------
    open, closed : bool
        Both paddles are at the outer end; both paddles touch an object or each other.
    left_touches, right_touches : bool
        The paddle presses on an object.
    paddles_move, lift_moves : bool
        The paddles or the lift are in motion.
    lift_up, lift_down : bool
        The lift is at its upper or lower end.
    inner_beam, outer_beam : bool
        An object interrupts the break beam.
    """

    open: bool
    closed: bool
    left_touches: bool
    right_touches: bool
    paddles_move: bool
    lift_moves: bool
    lift_up: bool
    lift_down: bool
    inner_beam: bool
    outer_beam: bool


__all__ = ["Action", "ChargeState", "GripperState", "LaserScan", "SonarReadings"]
