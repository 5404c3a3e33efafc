"""Kinematics of a body: the kind of its drive, its wheels, and its motion limits.

Descriptions are frozen and in SI units.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ModelError
from botyard.model.fourwheels import AHEAD, LEFT, WHEELS, FourWheels
from botyard.model.parameters import check_types, parameter
from botyard.model.steeredaxle import (
    MAX_STEERING,
    MAX_STEERING_OFFSET,
    MAX_WHEELBASE,
    MIN_WHEELBASE,
    Steering,
)
from botyard.numerics.elementary import atan, cos, tan
from botyard.units import from_deg

N = TypeVar("N", float, NDArray[np.float64])
MAX_SPEED = 1000.0
"""Largest top speed of a model, m/s and rad/s; a larger value probably has another unit."""
MAX_RAMP = 1e6
"""Largest acceleration of a model, m/s² and rad/s²."""
SLIDE_TOLERANCE = 1e-9
"""Tolerance for rounding errors of the velocity with which a skid-steered body slides, m/s."""
DEFAULT_TRACK = 2.0
"""Default distance between the driven wheels, m."""
_SPEEDS = "m/s m/s rad/s"
_RAMPS = "m/s² m/s² rad/s²"


class Drive(IntEnum):
    """Kind of a drive; states and kernels use its numbers."""

    # The body is a box, which only other bodies move.
    NONE = 0
    DIFF = 1
    OMNI = 2
    # Two steered wheels on one axle, with the angles of Ackermann.
    ACKERMANN = 3
    # One steered wheel in the middle.
    TRICYCLE = 4
    # Four wheels with rollers at 45°.
    MECANUM = 5
    # Four wheels that turn the body by different speeds of both sides, and scrub. The
    # engine moves them as `DIFF`.
    SKID = 6


@dataclass(frozen=True, slots=True)
class Axes:
    """Values for the three axes of motion.

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
        """Return the values of the three axes as a tuple (x, y, a)."""
        return self.x, self.y, self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionLimits:
    """Limits of a robot's speed and acceleration (defaults: pioneer-protocol §11.5).

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
    """Kinematics of a body: the motions that its drive permits.

    Other code does not compare kinds of drives, but uses the methods of this class.

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
    steering : Steering or None
        Steered axle of a car-like drive; None for all others.
    wheels : FourWheels or None
        Wheels of the drives skid and mecanum; None for all others.
    """

    kind: Drive
    limits: MotionLimits = MotionLimits()
    track: float = DEFAULT_TRACK
    wheel_radius: float = 0.1
    steering: Steering | None = None
    wheels: FourWheels | None = None

    @property
    def motion(self) -> Drive:
        """Kind of the drive as which the engine moves the body (`State.drive`)."""
        return Drive.DIFF if self.kind is Drive.SKID else self.kind

    @property
    def drives(self) -> bool:
        """Whether the body has a drive."""
        return self.kind is not Drive.NONE

    @property
    def moves_sideways(self) -> bool:
        """Whether the body can move to the left and to the right without turning."""
        return self.kind in (Drive.OMNI, Drive.MECANUM)

    @property
    def must_turn(self) -> bool:
        """Whether the body drives along its heading only."""
        return self.drives and not self.moves_sideways

    @property
    def has_two_wheels(self) -> bool:
        """Whether the body has two driven wheels on one axle, with separate speeds."""
        return self.kind is Drive.DIFF

    @property
    def has_known_wheels(self) -> bool:
        """Whether the speeds of the driven wheels define the velocity of the body."""
        return self.drives and self.kind is not Drive.OMNI

    @property
    def steers(self) -> bool:
        """Whether the body turns by a steered axle, and only while it drives."""
        return self.kind in (Drive.ACKERMANN, Drive.TRICYCLE)

    @property
    def counts_sideways(self) -> bool:
        """Whether the driven wheels turn when the body moves to the left."""
        return self.kind is Drive.MECANUM

    @property
    def has_wheel_state(self) -> bool:
        """Whether the state has a row for the wheels of the body (`State.steer`)."""
        return self.steers or self.counts_sideways

    @property
    def measures_by_pair(self) -> bool:
        """Whether odometry measures two wheels on one axle, or two sides."""
        return self.kind in (Drive.DIFF, Drive.SKID, Drive.ACKERMANN)

    @property
    def half_track(self) -> float:
        """Distance of a driven wheel from the centre of the axle, m."""
        return 0.5 * self.track

    @property
    def lever(self) -> float:
        """Lever l of a turn, m: a driven wheel moves over the floor at l times the turn rate.

        The lever is half the track, or half the effective track if the wheels scrub. On a
        Mecanum drive, half the wheelbase is added.
        """
        wheels = self.wheels
        if wheels is None:
            return self.half_track
        along = 0.5 * wheels.wheelbase if self.moves_sideways else 0.0
        return wheels.track_factor * (self.half_track + along)

    @property
    def wheel_places(self) -> tuple[tuple[str, float, float], ...]:
        """Name and place (x, y), m, of each driven wheel, in the order of `all_wheel_speeds`."""
        if self.wheels is None:
            return (("left", 0.0, self.half_track), ("right", 0.0, -self.half_track))
        half = 0.5 * self.wheels.wheelbase
        return tuple(
            (name, ahead * half, left * self.half_track)
            for name, ahead, left in zip(WHEELS, AHEAD, LEFT, strict=True)
        )

    @property
    def odometry_matrix(self) -> tuple[float, ...] | None:
        """Matrix of odometry, see `FourWheels.measured`; None: odometry is exact."""
        wheels = self.wheels
        return (
            None
            if wheels is None or not (wheels.slip or any(wheels.errors) or wheels.slide)
            else wheels.measured(self.lever, self.moves_sideways)
        )

    def feasible(self, v: float, vy: float, w: float) -> bool:
        """Return whether the drive can produce this velocity.

        Parameters
        ----------
        v : float
            Forward velocity, m/s.
        vy : float
            Velocity to the left, m/s.
        w : float
            Turn rate, rad/s, positive counter-clockwise.
        """
        if self.steers and not abs(w) * self.turning_radius <= abs(v):
            return False
        # Limits of a body without a drive are defaults, and do not count.
        top = self.limits.max_speed if self.drives else _STANDING
        sideways = top.y if self.moves_sideways else 0.0
        # A skid-steered body that turns must slide.
        slide = self.wheels.slide if self.wheels is not None else 0.0
        if slide:
            return (
                abs(v) <= top.x
                and abs(vy + slide * w) <= SLIDE_TOLERANCE
                and abs(w) <= top.a
            )
        return abs(v) <= top.x and abs(vy) <= sideways and abs(w) <= top.a

    @property
    def turning_radius(self) -> float:
        """Least radius of an arc of the body's origin, m; 0: it turns on the spot."""
        steering = self.steering
        if steering is None:
            return 0.0
        return (
            abs(steering.wheelbase) / tan(steering.limit)
            if steering.limit
            else math.inf
        )

    def turn_rate(self, v: float, steer: float) -> float:
        """Return the turn rate of a car-like drive, rad/s: ω = v·tan(δ)/L.

        Parameters
        ----------
        v : float
            Forward velocity of the origin, m/s; negative in reverse.
        steer : float
            Steering angle δ, rad, positive to the left.

        Raises
        ------
        ModelError
            The drive has no steered axle.
        """
        return v * tan(steer) / self._axle.wheelbase

    def steering_angle(self, v: float, w: float) -> float:
        """Return the steering angle of a velocity, rad: δ = atan(L·ω/v).

        It is the inverse of `turn_rate`, within the limit of the axle.

        Parameters
        ----------
        v : float
            Forward velocity of the origin, m/s; negative in reverse.
        w : float
            Turn rate, rad/s, positive counter-clockwise.

        Returns
        -------
        float
            Angle, positive to the left; 0 at a stand, where no angle follows.

        Raises
        ------
        ModelError
            The drive has no steered axle.
        """
        axle = self._axle
        if v == 0.0:
            return 0.0
        angle = atan(axle.wheelbase * w / v)
        return min(max(angle, -axle.limit), axle.limit)

    def wheel_angles(self, steer: float) -> tuple[float, ...]:
        """Return the angle of each steered wheel, rad, positive to the left.

        All axes meet in the centre of the turn: tan(δᵢ) = L·tan(δ)/(L − yᵢ·tan(δ)) for
        a wheel at yᵢ to the left.

        Parameters
        ----------
        steer : float
            Steering angle δ of the axle, rad.

        Returns
        -------
        tuple of float
            Left and right wheel, or the one wheel of a tricycle.

        Raises
        ------
        ModelError
            The drive has no steered axle.
        """
        base, slope = self._axle.wheelbase, tan(steer)
        return tuple(atan(base * slope / (base - y * slope)) for y in self._steered)

    def steered_speeds(self, v: float, steer: float) -> tuple[float, ...]:
        """Return the speed of each steered wheel on the floor, m/s.

        The wheel at (L, yᵢ) moves with (v − ω·yᵢ, ω·L), along its own direction.

        Parameters
        ----------
        v : float
            Forward velocity of the origin, m/s.
        steer : float
            Steering angle of the axle, rad.

        Returns
        -------
        tuple of float
            Left and right wheel, or the one wheel of a tricycle; positive: forward.

        Raises
        ------
        ModelError
            The drive has no steered axle.
        """
        w = self.turn_rate(v, steer)
        return tuple(
            (v - w * y) / cos(angle)
            for y, angle in zip(self._steered, self.wheel_angles(steer), strict=True)
        )

    @property
    def _axle(self) -> Steering:
        if self.steering is None:
            raise ModelError(
                "kinematics: expected a drive with a steered axle, "
                f"found {self.kind.name.lower()}"
            )
        return self.steering

    @property
    def _steered(self) -> tuple[float, ...]:
        """Places of the steered wheels to the left of the middle, m."""
        return (
            (0.0,)
            if self.kind is Drive.TRICYCLE
            else (self.half_track, -self.half_track)
        )

    def all_wheel_speeds(self, v: float, vy: float, w: float) -> tuple[float, ...]:
        """Return the speed of each driven wheel on the floor, or its distance.

        Parameters
        ----------
        v, vy : float
            Velocity forward and to the left, m/s.
        w : float
            Turn rate, rad/s, positive counter-clockwise.

        Returns
        -------
        tuple of float
            Speeds, m/s, in the order of `wheel_places`; positive: forward.
        """
        if self.wheels is None:
            return self.wheel_speeds(v, w)
        return self.wheels.speeds(v, vy, w, self.lever, self.moves_sideways)

    def velocity_of(self, speeds: tuple[float, ...]) -> tuple[float, float, float]:
        """Return the velocity of the body for given speeds of its driven wheels.

        The function is the inverse of `all_wheel_speeds`. Speeds of four wheels that do
        not fit together give the velocity of least squares.

        Parameters
        ----------
        speeds : tuple of float
            Speeds on the floor, m/s, in the order of `wheel_places`; positive: forward.

        Returns
        -------
        v, vy, w : float
            Velocity forward and to the left, m/s, and turn rate, rad/s.
        """
        if self.wheels is not None:
            return self.wheels.velocity(speeds, self.lever, self.moves_sideways)
        left, right = speeds
        return (left + right) / 2.0, 0.0, (right - left) / self.track

    def force_of(self, forces: tuple[float, ...]) -> tuple[float, float, float]:
        """Return the force on the body for given forces of its driven wheels.

        By virtual work it follows from the same matrix as `all_wheel_speeds`.

        Parameters
        ----------
        forces : tuple of float
            Forces on the floor, N, in the order of `wheel_places`; positive: forward.

        Returns
        -------
        fx, fy, torque : float
            Forward and to the left, N, and about the origin, N·m.
        """
        if self.wheels is None:
            left, right = forces
            return left + right, 0.0, (right - left) * self.half_track
        count, lever = len(forces), self.lever
        v, vy, w = self.velocity_of(forces)
        return count * v, count * vy, count * lever * lever * w

    def axle_angle(self, wheel: int, angle: float) -> float:
        """Return the steering angle of the axle for the angle of one of its wheels, rad.

        The function is the inverse of `wheel_angles`, within the limit of the axle.

        Parameters
        ----------
        wheel : int
            Index of the steered wheel, left before right.
        angle : float
            Its angle, rad, positive to the left.

        Raises
        ------
        ModelError
            The drive has no steered axle.
        """
        base, limit = self._axle.wheelbase, self._axle.limit
        low, high = (self.wheel_angles(side)[wheel] for side in (-limit, limit))
        slope = tan(min(max(angle, low), high))
        return atan(base * slope / (base + self._steered[wheel] * slope))

    def wheel_speeds(self, v: float, w: float) -> tuple[float, float]:
        """Return the speeds of the left and right wheel on the floor.

        On drives with four wheels they are the means of both sides. The function also
        converts distances: m and rad to m.

        Parameters
        ----------
        v : float
            Forward velocity, m/s.
        w : float
            Turn rate, rad/s, positive counter-clockwise: the right wheel is faster
            then.

        Returns
        -------
        left, right : float
            Speeds, m/s; positive: forward.
        """
        return wheel_speeds(v, w, self.lever)

    def wheel_rates(self, v: float, w: float) -> tuple[float, float]:
        """Return the turn rates of both wheels about their axle, or of both sides.

        Parameters
        ----------
        v : float
            Forward velocity, m/s.
        w : float
            Turn rate of the body, rad/s, positive counter-clockwise.

        Returns
        -------
        left, right : float
            Turn rates, rad/s; positive: the wheel rolls forward.
        """
        left, right = self.wheel_speeds(v, w)
        return left / self.wheel_radius, right / self.wheel_radius

    def body_velocity(self, left: float, right: float) -> tuple[float, float]:
        """Return the velocity of the body for given turn rates of the wheels.

        The function is the inverse of `wheel_rates`.

        Parameters
        ----------
        left, right : float
            Turn rates of the wheels, rad/s; positive: the wheel rolls forward.

        Returns
        -------
        v, w : float
            Forward velocity, m/s, and turn rate, rad/s.
        """
        return self.wheel_radius * (left + right) / 2.0, self.wheel_radius * (
            right - left
        ) / (2.0 * self.lever)


def wheel_speeds(v: N, w: N, half_track: N) -> tuple[N, N]:
    """Return the speeds of both wheels of a robot or of many robots; see `Kinematics.wheel_speeds`.

    Parameters
    ----------
    v, w : float or (n,) float64
        Forward velocities, m/s, and turn rates, rad/s.
    half_track : float or (n,) float64
        Distance of a wheel from the centre of the axle, m.
    """
    return v - w * half_track, v + w * half_track


def _by_kind(has: Callable[[Kinematics], bool]) -> NDArray[np.bool_]:
    # Array code looks up a property by the number of the drive.
    return np.array([has(Kinematics(kind=kind)) for kind in Drive])


MUST_TURN: Final = _by_kind(lambda kinematics: kinematics.must_turn)
"""Values of `Kinematics.must_turn` by the kind of the drive.

An array of kinds, such as `State.drive`, can be used as the index.
"""
MEASURES_BY_PAIR: Final = _by_kind(lambda kinematics: kinematics.measures_by_pair)
"""`Kinematics.measures_by_pair` in the same form."""
STEERS: Final = _by_kind(lambda kinematics: kinematics.steers)
"""`Kinematics.steers` in the same form."""
HAS_WHEEL_STATE: Final = _by_kind(lambda kinematics: kinematics.has_wheel_state)
"""`Kinematics.has_wheel_state` in the same form."""

__all__ = [
    "DEFAULT_TRACK",
    "HAS_WHEEL_STATE",
    "MAX_RAMP",
    "MAX_SPEED",
    "MAX_STEERING",
    "MAX_STEERING_OFFSET",
    "MAX_WHEELBASE",
    "MEASURES_BY_PAIR",
    "MIN_WHEELBASE",
    "MUST_TURN",
    "STEERS",
    "Axes",
    "Drive",
    "FourWheels",
    "Kinematics",
    "MotionLimits",
    "Steering",
    "wheel_speeds",
]
