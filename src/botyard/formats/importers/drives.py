"""Drives and speeds of imported robots."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from botyard.formats.importers.values import Value
from botyard.model.fourwheels import MAX_TRACK_FACTOR, MIN_LENGTH, FourWheels
from botyard.model.kinematics import (
    MAX_RAMP,
    MAX_SPEED,
    MAX_STEERING,
    MAX_WHEELBASE,
    MIN_WHEELBASE,
    Axes,
    Drive,
    MotionLimits,
    Steering,
)
from botyard.numerics.elementary import atan, tan
from botyard.units import from_deg

WIDE: Final = from_deg(60.0)
"""Steering limit of a car-like robot whose file has none, rad."""
STOPPING: Final = {"orca": "waypoints", "socialforce": "waypoints"}
"""Controllers that turn on the spot, and the one that drives cars in their place."""


class Driven(NamedTuple):
    """Drive of an imported robot.

    Attributes
    ----------
    kind : Drive
        Kind of the drive.
    limits : MotionLimits
        Top speeds and accelerations.
    track : float or None
        Distance between the left and the right driven wheels, m; None: unknown.
        steering : Steering or None
        Steered axle of a car-like robot.
    wheel_radius : float or None
        Radius of the driven wheels, m; None: unknown.
    has_pair : bool
        Whether two wheels steer, even if the drive is a tricycle because their angles
        would reach 90°.
    four : Drive or None
        Drive of a robot with four wheels, skid or mecanum, which replaces `kind` once
        the wheelbase is known.
    wheelbase : float or None
        Distance between the axles of a robot with four wheels, m; None: unknown.
    wheels : FourWheels or None
        Wheels of the drives skid and mecanum.
    """

    kind: Drive
    limits: MotionLimits
    track: float | None = None
    steering: Steering | None = None
    wheel_radius: float | None = None
    has_pair: bool = False
    four: Drive | None = None
    wheelbase: float | None = None
    wheels: FourWheels | None = None


def car(
    top: MotionLimits,
    wheelbase: float,
    limit: float,
    *,
    rate: float = 0.0,
    track: float | None = None,
    has_pair: bool = True,
    by_angle: bool = False,
    wheel_radius: float | None = None,
) -> Driven:
    """Return the drive of a car-like robot.

    Parameters
    ----------
    top : MotionLimits
        Top speeds and accelerations.
    wheelbase : float
        Distance of the steered axle in front of the fixed one, m; negative: behind it.
    limit : float
        Greatest steering angle of a virtual wheel in the middle of the axle, rad.
    rate : float
        Greatest rate of the steering angle, rad/s; 0 and infinite rates: unlimited.
    track : float, optional
        Distance between the wheels of an axle, m. Without it, or if it is so large that the
        inner wheel would turn by 90°, the drive is a tricycle.
    has_pair : bool
        Whether two wheels steer; otherwise the drive is a tricycle.
    by_angle : bool
        Whether the turn rate in a velocity command is the steering angle, rad.
    wheel_radius : float, optional
        Radius of the wheels, m.
    """
    size = min(max(abs(wheelbase), MIN_WHEELBASE), MAX_WHEELBASE)
    most = min(limit, MAX_STEERING)
    fits = has_pair and track is not None and 0.5 * track * tan(most) < size
    return Driven(
        Drive.ACKERMANN if fits else Drive.TRICYCLE,
        top,
        track,
        Steering(
            wheelbase=math.copysign(size, wheelbase),
            limit=most,
            rate=rate if rate <= MAX_SPEED else 0.0,
            by_angle=by_angle,
        ),
        wheel_radius,
        has_pair,
    )


def with_four_wheels(
    driven: Driven, wheelbase: float | None, track: float | None
) -> Driven:
    """Return a drive as one of four wheels (`Driven.four`) if its wheelbase and track are known.

    Otherwise return it unchanged.

    Parameters
    ----------
    driven : Driven
        Drive; its `track` is the effective one, with which the robot turns.
    wheelbase, track : float or None
        Distances between the axles and between the wheels of an axle, computed from the
        positions of the wheels, m; None: unknown.
    """
    base = driven.wheelbase or wheelbase
    effective = driven.track or track
    if driven.four is None or base is None or base < MIN_LENGTH or effective is None:
        return driven
    real = track or effective
    factor = 1.0
    if driven.four is Drive.SKID:
        # Wheels that scrub turn the robot as if they were farther apart.
        factor = min(max(effective / real, 1.0), MAX_TRACK_FACTOR)
    return driven._replace(
        kind=driven.four,
        track=real if factor > 1.0 else effective,
        wheels=FourWheels(wheelbase=base, track_factor=factor),
    )


def middle_angle(inner: float, wheelbase: float, track: float) -> float:
    """Return the angle of a virtual middle wheel when the inner wheel has an angle, rad.

    It is the inverse of `Kinematics.wheel_angles`: tan(δ) = L·tan(α)/(L + T/2·tan(α)).

    Parameters
    ----------
    inner : float
        Angle α of the inner wheel, rad, from 0 to less than π/2.
    wheelbase, track : float
        Distance L between the axles, m, greater than 0; distance T between the wheels of
        an axle, m, at least 0.
    """
    slope = tan(inner)
    return atan(wheelbase * slope / (wheelbase + 0.5 * track * slope))


def turn_rate(speed: float, steer: float, wheelbase: float) -> float:
    """Return the largest turn rate of a car-like robot, rad/s: v·tan(δ)/L of the bicycle model.

    Parameters
    ----------
    speed : float
        Top speed v, m/s.
    steer : float
        Largest steering angle δ, rad; less than π/2.
    wheelbase : float
        Distance L between the axles, m; not 0.
    """
    return min(MAX_SPEED, speed * tan(min(steer, MAX_STEERING)) / abs(wheelbase))


def limits(
    x: float,
    y: float,
    a: float,
    ramps: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> MotionLimits:
    """Return the motion limits of an imported robot.

    Larger and infinite speeds become the largest speed of a model; larger and infinite
    accelerations become 0, which means no limit.

    Parameters
    ----------
    x, y, a : float
        Top speeds forward, to the left, m/s, and of rotation, rad/s.
    ramps : tuple of float
        Accelerations of the same axes, m/s², m/s² and rad/s²; 0: no limit.
    """
    top = Axes(*(min(abs(v), MAX_SPEED) for v in (x, y, a)))
    accel = Axes(*(abs(v) if abs(v) <= MAX_RAMP else 0.0 for v in ramps))
    return MotionLimits(
        max_speed=top, accel=accel, decel=accel, top_accel=accel, heading_speed=top.a
    )


def infinite_numbers(value: Value, least: int, most: int) -> tuple[float, ...]:
    """Return a list of numbers from a file; the numbers may be infinite."""
    return value.numbers(least, most, bound=math.inf)


__all__ = [
    "STOPPING",
    "WIDE",
    "Driven",
    "car",
    "infinite_numbers",
    "limits",
    "middle_angle",
    "turn_rate",
    "with_four_wheels",
]
