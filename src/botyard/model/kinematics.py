"""Kinematics of a body: the kind of its drive, its wheels, and its motion limits.

Descriptions are frozen and in SI units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ModelError
from botyard.model.parameters import check_types, parameter
from botyard.units import from_deg

N = TypeVar("N", float, NDArray[np.float64])
MAX_SPEED = 1000.0
"""Largest top speed of a model, m/s and rad/s; larger values have mistaken units."""
MAX_RAMP = 1e6
"""Largest acceleration of a model, m/s² and rad/s²."""
DEFAULT_TRACK = 2.0
"""Default distance of the driven wheels, m."""
_SPEEDS = "m/s m/s rad/s"
_RAMPS = "m/s² m/s² rad/s²"


class Drive(IntEnum):
    """Kind of a drive; states and kernels use its numbers."""

    # A box, which only other bodies move.
    NONE = 0
    DIFF = 1
    OMNI = 2


@dataclass(frozen=True, slots=True)
class Axes:
    """One value for each axis of motion.

    Attributes
    ----------
    x, y : float
        Forward and to the left; m/s, m/s² or a proportion.
    a : float
        Rotation; rad/s, rad/s² or a proportion.
    """

    x: float = 0.0
    y: float = 0.0
    a: float = 0.0

    def __post_init__(self) -> None:
        check_types(self)

    def as_tuple(self) -> tuple[float, float, float]:
        """Return the three values (x, y, a)."""
        return self.x, self.y, self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionLimits:
    """Speeds and accelerations of a robot (defaults: pioneer-protocol §11.5).

    Attributes
    ----------
    max_speed : Axes
        Top speeds; no command can exceed them.
    accel, decel : Axes
        Accelerations and decelerations until a client changes them; 0: unlimited.
    top_accel : Axes
        Largest acceleration that a client may request (reported, not enforced).
    heading_speed : float
        Yaw rate limit of heading commands until a client sets one, rad/s.

    Raises
    ------
    ModelError
        A value is out of its range.
    """

    max_speed: Axes = parameter(Axes(3.0, 3.0, 7.85), unit=_SPEEDS, is_required=True)
    accel: Axes = parameter(Axes(0.5, 0.5, 0.8), unit=_RAMPS, is_required=True)
    decel: Axes = parameter(Axes(0.5, 0.5, 1.74), unit=_RAMPS, is_required=True)
    top_accel: Axes = parameter(
        Axes(2.0, 2.0, 6.28), unit=_RAMPS, left_out=Axes(2.0, 2.0, from_deg(360.0))
    )
    heading_speed: float = parameter(1.75, unit="rad/s", left_out=from_deg(100.0))

    def __post_init__(self) -> None:
        check_types(self)
        for name, limit in (
            ("max_speed", MAX_SPEED),
            ("accel", MAX_RAMP),
            ("decel", MAX_RAMP),
            ("top_accel", MAX_RAMP),
        ):
            for value in getattr(self, name).as_tuple():
                # The chained comparison also refuses NaN.
                if not 0.0 <= value <= limit:
                    raise ModelError(
                        f"limits: {name} must be from 0 to {limit:g}, found {value:g}"
                    )

        if not 0.0 <= self.heading_speed <= MAX_SPEED:
            raise ModelError(
                f"limits: heading_speed must be from 0 to {MAX_SPEED:g}, found "
                f"{self.heading_speed:g}"
            )


_STANDING = Axes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinematics:
    """Motion of a body as its drive permits it.

    Only this class knows the consequences of the kind of a drive.

    Attributes
    ----------
    kind : Drive
        Kind of the drive.
    limits : MotionLimits
        Speeds and accelerations.
    track : float
        Distance between the left and the right driven wheel, m.
    wheel_radius : float
        Radius of the driven wheels, m.
    """

    kind: Drive
    limits: MotionLimits = MotionLimits()
    track: float = DEFAULT_TRACK
    wheel_radius: float = 0.1

    @property
    def drives(self) -> bool:
        """Whether the body has a drive."""
        return self.kind is not Drive.NONE

    @property
    def moves_sideways(self) -> bool:
        """Whether the body can move to the left and to the right without turning."""
        return self.kind is Drive.OMNI

    @property
    def must_turn(self) -> bool:
        """Whether the body drives along its heading only."""
        return self.drives and not self.moves_sideways

    @property
    def has_two_wheels(self) -> bool:
        """Whether the body has two driven wheels on one axle, with separate speeds."""
        return self.kind is Drive.DIFF

    @property
    def half_track(self) -> float:
        """Distance of a driven wheel from the centre of the axle, m."""
        return 0.5 * self.track

    def feasible(self, v: float, vy: float, w: float) -> bool:
        """Return whether the drive can produce this velocity.

        The arguments are m/s forward, m/s to the left, and rad/s.
        """
        # Limits of a body without a drive are defaults, and do not count.
        top = self.limits.max_speed if self.drives else _STANDING
        sideways = top.y if self.moves_sideways else 0.0
        return abs(v) <= top.x and abs(vy) <= sideways and abs(w) <= top.a

    def wheel_speeds(self, v: float, w: float) -> tuple[float, float]:
        """Return the speeds of the left and right wheel, m/s, at `v` m/s and `w` rad/s.

        The function also converts distances: m and rad to m.
        """
        return wheel_speeds(v, w, self.half_track)

    def wheel_rates(self, v: float, w: float) -> tuple[float, float]:
        """Return the turn rates of both wheels, rad/s, at `v` m/s and `w` rad/s.

        The function also converts distances: m and rad to rad.
        """
        left, right = self.wheel_speeds(v, w)
        return left / self.wheel_radius, right / self.wheel_radius

    def body_velocity(self, left: float, right: float) -> tuple[float, float]:
        """Return the velocity, m/s and rad/s, at these wheel rates, rad/s."""
        return self.wheel_radius * (left + right) / 2.0, self.wheel_radius * (
            right - left
        ) / self.track


def wheel_speeds(v: N, w: N, half_track: N) -> tuple[N, N]:
    """Return `Kinematics.wheel_speeds` for a robot, or for arrays of robots."""
    return v - w * half_track, v + w * half_track


def _by_kind(has: Callable[[Kinematics], bool]) -> NDArray[np.bool_]:
    # Array code looks up a property by the number of the drive.
    return np.array([has(Kinematics(kind=kind)) for kind in Drive])


MUST_TURN: Final = _by_kind(lambda kinematics: kinematics.must_turn)
"""`Kinematics.must_turn` by the kind of the drive.

Index it with an array of kinds, such as `State.drive`.
"""
HAS_TWO_WHEELS: Final = _by_kind(lambda kinematics: kinematics.has_two_wheels)
"""`Kinematics.has_two_wheels` in the same form."""

__all__ = [
    "DEFAULT_TRACK",
    "HAS_TWO_WHEELS",
    "MAX_RAMP",
    "MAX_SPEED",
    "MUST_TURN",
    "Axes",
    "Drive",
    "Kinematics",
    "MotionLimits",
    "wheel_speeds",
]
