"""Passive trailers behind a robot, each on a hitch of the body in front of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from botyard.errors import ModelError
from botyard.geometry import Outline, Pose
from botyard.model.parameters import check_types, parameter, range_problems
from botyard.names import MAX_NAME
from botyard.numerics.elementary import cosine_sine
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
    "trailer_name",
    "trailer_poses",
]
