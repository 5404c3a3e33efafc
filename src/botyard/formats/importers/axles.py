"""Origin and wheelbase of imported robots, computed from the positions of their wheels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from botyard.formats.importers.drives import Driven, car, turn_rate
from botyard.geometry import Pose

Point = tuple[float, float]
SAME: Final = 1e-3
"""Largest distance along x of two wheels of one axle, m."""


class WheelJoints(NamedTuple):
    """Names of a drive's joints.

    Attributes
    ----------
    rolling : tuple of str
        Joints of driven or measured wheels.
    steering : tuple of str
        Joints that steer.
    """

    rolling: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()


def spread(
    joints: WheelJoints, places: Mapping[str, Point]
) -> tuple[float | None, float | None]:
    """Return the wheelbase and the track that the positions of the rolling wheels show.

    Returns
    -------
    (float or None, float or None)
        Distance between the foremost and the rearmost wheels, and between the left and
        the right wheels, m. None: it is at most `SAME`, so there is one axle or side.
    """
    rolling = [places[name] for name in joints.rolling if name in places]
    sizes = [max(v) - min(v) for v in zip(*rolling, strict=True)] or [0.0, 0.0]
    along, across = (size if size > SAME else None for size in sizes)
    return along, across


def middle(points: Sequence[Point]) -> Point:
    """Return the mean of points, m."""
    n = len(points)
    return sum(x for x, _ in points) / n, sum(y for _, y in points) / n


def axle(
    driven: Driven, joints: WheelJoints, places: Mapping[str, Point]
) -> tuple[Pose, float | None]:
    """Return the origin of a robot, and the wheelbase of a car-like one.

    The origin is the middle of the driven wheels, or the middle of the fixed axle of a
    car-like robot.

    Parameters
    ----------
    driven : Driven
        Drive.
    joints : WheelJoints
        Names of its joints.
    places : mapping of str to (float, float)
        Places of joints in the frame of the model, m. Joints without a place have no
        effect.

    Returns
    -------
    origin : Pose
        Origin in the frame of the model, without a rotation.
    wheelbase : float or None
        Distance of the steered axle in front of the fixed one, m; None: unknown.
    """
    rolling = [places[name] for name in joints.rolling if name in places]
    steered = [places[name] for name in joints.steering if name in places]
    if driven.steering is None:
        return Pose(*middle(rolling)) if rolling else Pose(), None
    if not steered:
        return Pose(), None
    front = middle(steered)
    # The list of driven wheels may contain the steered ones.
    fixed = [p for p in rolling if abs(p[0] - front[0]) > SAME]
    if fixed:
        x, y = middle(fixed)
        return Pose(x, y), front[0] - x
    return Pose(front[0] - driven.steering.wheelbase, front[1]), None


def with_wheelbase(driven: Driven, wheelbase: float) -> Driven:
    """Return the drive of a car-like robot with another wheelbase, m."""
    old = driven.steering
    assert old is not None
    top = driven.limits.max_speed
    most = turn_rate(top.x, old.limit, wheelbase)
    made = car(
        driven.limits,
        wheelbase,
        old.limit,
        rate=old.rate,
        track=driven.track,
        has_pair=driven.has_pair,
        by_angle=old.by_angle,
        wheel_radius=driven.wheel_radius,
    )
    from_old = turn_rate(top.x, old.limit, old.wheelbase)
    # A top turn rate that the file states itself does not follow from the wheelbase.
    if top.a != from_old:
        return made
    limits = driven.limits
    return made._replace(
        limits=type(limits)(
            max_speed=type(top)(top.x, top.y, most),
            accel=limits.accel,
            decel=limits.decel,
            top_accel=limits.top_accel,
            heading_speed=most,
        )
    )


__all__ = ["WheelJoints", "axle", "middle", "spread", "with_wheelbase"]
