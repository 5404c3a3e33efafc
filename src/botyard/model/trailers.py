"""Passive trailers behind a robot, each on a hitch of the body in front of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from botyard.errors import ModelError
from botyard.geometry import Outline, Pose
from botyard.model.parameters import check_types, parameter, range_problems
from botyard.names import MAX_NAME
from botyard.numerics.elementary import atan, cosine_sine, hypot
from botyard.units import from_deg, wrap_angle

MAX_TRAILERS: Final = 3
"""Greatest number of trailers behind a robot."""
MIN_DRAWBAR: Final = 0.01
"""Least distance of the axle of a trailer from its hitch, m."""
MAX_DRAWBAR: Final = 100.0
"""Greatest distance of a hitch from the axles on both sides of it, m."""
MAX_BEND: Final = from_deg(170.0)
"""Greatest angle between a trailer and the body in front of it, rad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailerSpec:
    """Passive trailer with one axle.

    The origin of a trailer is the centre of its axle.

    Attributes
    ----------
    outline : tuple of (float, float)
        Body polygon, m, around the centre of the axle.
    hitch : float
        Distance of the hitch behind the origin of the body in front, m; 0: on its axle;
        negative: in front of it.
    length : float
        Distance of the axle of the trailer from the hitch, m.
    limit : float
        Greatest angle between the trailer and the body in front of it, rad. At the limit
        the train stops, as a jackknifed one does.

    Raises
    ------
    ModelError
        A value is out of its range.
    """

    outline: Outline = parameter(unit="m")
    hitch: float = parameter(unit="m", low=-MAX_DRAWBAR, high=MAX_DRAWBAR)
    length: float = parameter(unit="m", low=MIN_DRAWBAR, high=MAX_DRAWBAR)
    limit: float = parameter(from_deg(80.0), unit="rad", low=0.0, high=MAX_BEND)

    def __post_init__(self) -> None:
        check_types(self)
        for problem in range_problems(self):
            raise ModelError(f"trailers: {problem}")
        if len(self.outline) < 3:
            raise ModelError(
                f"trailers: outline needs at least 3 corners, found {len(self.outline)}"
            )
        if any(not math.isfinite(v) for corner in self.outline for v in corner):
            raise ModelError(
                f"trailers: outline must hold finite numbers, found {self.outline}"
            )
        if len(set(self.outline)) < 2:
            raise ModelError(
                f"trailers: outline needs different corners, found {self.outline[:1]}"
            )

    def behind(self, leader: Pose, bend: float = 0.0) -> Pose:
        """Return the pose of the trailer behind a body.

        Parameters
        ----------
        leader : Pose
            Pose of the body in front, m, m, rad.
        bend : float
            Angle of the body in front minus the angle of the trailer, rad.
        """
        th = wrap_angle(leader.th - bend)
        (c, s), (c1, s1) = cosine_sine(leader.th), cosine_sine(th)
        return Pose(
            leader.x - self.hitch * c - self.length * c1,
            leader.y - self.hitch * s - self.length * s1,
            th,
        )


def steady_radii(
    trailers: Sequence[TrailerSpec], radius: float
) -> tuple[float, ...] | None:
    """Return the radii on which the bodies of a train drive a circle without end, m.

    The origin of a body drives on the radius R, and its hitch is at the distance a behind
    the origin. The axle of the trailer is at the distance d behind the hitch, and drives on
    the radius R₁:

        R₁² = R² + a² − d²

    R − R₁ is the off-tracking of the trailer (Sayers, "Vehicle offtracking models",
    Transportation Research Record 1052, 1986). The hitch is bent by atan(a/R) + atan(d/R₁).

    Parameters
    ----------
    trailers : sequence of TrailerSpec
        Trailers behind the robot.
    radius : float
        Radius of the origin of the robot, above 0, m.

    Returns
    -------
    tuple of float or None
        Radius of the origins of the robot and of each trailer, m. None: a hitch would bend
        beyond its limit.
    """
    radii = [radius]
    for one in trailers:
        square = radius * radius + one.hitch * one.hitch - one.length * one.length
        if square <= 0.0:
            return None
        behind = math.sqrt(square)
        if abs(atan(one.hitch / radius) + atan(one.length / behind)) > one.limit:
            return None
        radius = behind
        radii.append(radius)
    return tuple(radii)


def swept_width(outlines: Sequence[Outline], radii: Sequence[float]) -> float:
    """Return the width of the ring that bodies sweep on a circle to the left, m.

    Parameters
    ----------
    outlines : sequence of outlines
        Polygon of each body in its frame, m.
    radii : sequence of float
        Radius of the origin of each body, m, see `steady_radii`.
    """
    inner, outer = math.inf, 0.0
    for outline, radius in zip(outlines, radii, strict=True):
        corners = [(x, y - radius) for x, y in outline]
        outer = max(outer, *(hypot(x, y) for x, y in corners))
        for (x, y), (x1, y1) in pairwise((*corners, corners[0])):
            # The point of the edge that is nearest to the centre of the circle.
            dx, dy = x1 - x, y1 - y
            square = dx * dx + dy * dy
            share = -(x * dx + y * dy) / square if square > 0.0 else 0.0
            share = min(max(share, 0.0), 1.0)
            inner = min(inner, hypot(x + share * dx, y + share * dy))
    return outer - inner


def trailer_name(robot: str, k: int) -> str:
    """Return the name of a trailer in the world.

    Parameters
    ----------
    robot : str
        Name of the robot that pulls it.
    k : int
        Number of the trailer, from 1.
    """
    tail = f"_trailer_{k}"
    # The number must fit into the longest allowed name.
    return f"{robot[: MAX_NAME - len(tail)]}{tail}"


def trailer_poses(trailers: tuple[TrailerSpec, ...], robot: Pose) -> list[Pose]:
    """Return the poses of trailers in a straight line behind a robot.

    Parameters
    ----------
    trailers : tuple of TrailerSpec
        Trailers, from the front.
    robot : Pose
        Pose of the robot, m, m, rad.
    """
    poses, leader = list[Pose](), robot
    for one in trailers:
        leader = one.behind(leader)
        poses.append(leader)
    return poses


__all__ = [
    "MAX_BEND",
    "MAX_TRAILERS",
    "TrailerSpec",
    "steady_radii",
    "swept_width",
    "trailer_name",
    "trailer_poses",
]
