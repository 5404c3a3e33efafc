"""Neighbours of robots: the nearest ones, all within a radius, and those in sight.

Each query sorts the robots again, so that it holds for their present positions.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Literal, NamedTuple

import numpy as np

from botyard.api import arguments
from botyard.engine.kernels.nearest import (
    count_within,
    find_nearest,
    list_within,
    relate,
)
from botyard.engine.kernels.sightlines import LIGHT, LinkArrays, find_links
from botyard.engine.kernels.strips import Strips, build_strips
from botyard.engine.layout import F8, I8, World
from botyard.errors import ArgumentError
from botyard.native.kinds import Pack

MAX_NEIGHBOURS: Final = 10_000
"""Highest number of neighbours per robot that a caller can request.

Results have this number of places even if there are fewer robots.
"""
MAX_RADIUS_M: Final = 1e6
"""Greatest radius in which neighbours are searched, m."""
MAX_PAIRS: Final = 50_000_000
"""Highest number of neighbours of all robots in a result, 800 MB."""
OCCLUSIONS: Final = {"none": 0, "walls": 1, "all": 3}
"""Things that hide robots from one another, as bits of `sightlines.find_links`."""
Occlusion = Literal["all", "walls", "none"]


class Neighbours(NamedTuple):
    """Robots within a radius of each robot.

    The neighbours of robot i are ``indices[offsets[i] : offsets[i + 1]]``, the nearest
    first, and robots at equal distances in the order of robots.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Offsets of the robots' neighbours.
    indices : (p,) int64
        Indices in the order of `Simulation.robots`.
    distances : (p,) float64
        Distances between centres, m.
    """

    offsets: I8
    indices: I8
    distances: F8


class Links(NamedTuple):
    """Range and bearing from each robot to the robots that it sees.

    Robot i receives from ``senders[offsets[i] : offsets[i + 1]]``, the nearest first.
    ``messages[links.senders]`` are all received messages, for an array with one message
    of each robot.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Offsets of the links of each receiver.
    senders : (p,) int64
        Index of each link's sender in the order of `Simulation.robots`.
    ranges : (p,) float64
        Distances between centres, m.
    bearings : (p,) float64
        Directions of the senders in the receiver's frame (REP-103: 0 ahead, positive to the
        left), rad in (−π, π].
    """

    offsets: I8
    senders: I8
    ranges: F8
    bearings: F8

    @property
    def receivers(self) -> I8:
        """Index of each link's receiver, (p,) int64."""
        counts = np.diff(self.offsets)
        return np.repeat(np.arange(len(counts)), counts)


class Nearby(NamedTuple):
    """The k nearest other robots of each of n robots in each of w worlds.

    Places without a robot have the index −1, an infinite distance, and zeros.

    Attributes
    ----------
    indices : (w, n, k) int64
        Numbers of the robots, nearest first.
    distances : (w, n, k) float64
        Distances between centres, m.
    poses : (w, n, k, 3) float64
        Poses of these robots in the frame of the robot: ahead, m; to the left, m; heading,
        rad in (−π, π].
    velocities : (w, n, k, 3) float64
        Velocities of these robots relative to the world, along the axes of the robot: m/s,
        m/s, rad/s.
    """

    indices: I8
    distances: F8
    poses: F8
    velocities: F8


def nearest(poses: F8, k: int) -> tuple[I8, F8]:
    """Return the `k` nearest other robots of each robot in each world, nearest first.

    Parameters
    ----------
    poses : (w, n, 3) float64
        Poses of n robots in w worlds: m, m, rad.
    k : int
        Number of robots to find.

    Returns
    -------
    (w, n, k) int64, (w, n, k) float64
        Numbers of robots, and distances, m; −1 and inf where there are fewer.
    """
    worlds, n, _ = poses.shape
    count = min(k, n - 1)
    if count < 1 or not worlds:
        return np.full((worlds, n, k), -1), np.full((worlds, n, k), np.inf)
    near, far = np.empty((worlds, n, k), np.int64), np.empty((worlds, n, k))
    near[..., count:], far[..., count:] = -1, np.inf
    strips = _strips(n)
    find_nearest(np.ascontiguousarray(poses), count, strips, near, far)
    _SPARE.append(strips)
    return near, far


def nearby(poses: F8, velocities: F8, k: int) -> Nearby:
    """Return the `k` nearest robots of each robot with their poses and velocities.

    Parameters
    ----------
    poses : (w, n, 3) float64
        Poses of n robots in w worlds, in the frame of the world: m, m, rad.
    velocities : (w, n, 3) float64
        Velocities of the robots, each in its own frame: m/s, m/s, rad/s.
    k : int
        Number of robots to find, at least 1.

    Returns
    -------
    Nearby
        Arrays with k places for each robot.
    """
    near, far = nearest(poses, k)
    result = Nearby(near, far, np.empty((*near.shape, 3)), np.empty((*near.shape, 3)))
    relate(
        np.ascontiguousarray(poses),
        np.ascontiguousarray(velocities),
        near,
        np.empty((near.shape[1], 2)),
        result.poses,
        result.velocities,
    )
    return result


def within(poses: F8, radius: float) -> Neighbours:
    """Return the robots within `radius` of each of n robots, see `Fleet.within`.

    Parameters
    ----------
    poses : (n, 3) float64
        Poses in one world: m, m, rad. Headings do not matter.
    radius : float
        Greatest distance between centres, m.

    Raises
    ------
    ArgumentError
        There are more than `MAX_PAIRS` neighbours.
    """
    n = len(poses)
    offsets = np.zeros(n + 1, np.int64)
    if not n:
        return Neighbours(offsets, np.zeros(0, np.int64), np.zeros(0))
    strips = _strips(n)
    total = _counted(poses, radius, strips, offsets)
    near, far = np.empty(total, np.int64), np.empty(total)
    list_within(radius, strips, offsets, near, far)
    _SPARE.append(strips)
    return Neighbours(offsets, near, far)


def links(world: Pack[World], rows: I8, radius: float, occlusion: Occlusion) -> Links:
    """Return range and bearing between robots, see `Fleet.range_and_bearing`.

    Parameters
    ----------
    world : Pack of World
        Arrays of all bodies and walls, as kernels take them.
    rows : (n,) int64
        Row of each robot in these arrays. Robots are counted in this order in the
        result.
    radius : float
        Greatest range between centres, m.
    occlusion : str
        Key of `OCCLUSIONS`: things that hide robots from one another.

    Raises
    ------
    ArgumentError
        There are more than `MAX_PAIRS` pairs of robots within the radius.
    """
    n, (state, bodies) = len(rows), (world.value.state, world.value.bodies)
    behind = OCCLUSIONS[occlusion]
    offsets = np.zeros(n + 1, np.int64)
    if not n:
        return Links(offsets, np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    m = len(state.pose)
    strips = _strips(n)
    total = _counted(state.pose[rows], radius, strips, offsets)
    # Boxes are bodies that may also hide robots.
    if m != n:
        strips = Pack(build_strips(m))
    robot_of = np.full(m, -1)
    robot_of[rows] = np.arange(n)
    opaque = state.mask & LIGHT != 0 if behind & 2 else np.zeros(m, np.bool_)
    reach = radius + float(bodies.radius[opaque].max(initial=0.0))
    found = LinkArrays(
        offsets,
        np.empty(n, np.int64),
        np.empty(total, np.int64),
        np.empty(total),
        np.empty(total),
    )
    total = find_links(
        world,
        robot_of,
        radius,
        reach,
        behind,
        strips,
        np.empty(m, np.int64),
        np.empty(m),
        found,
    )
    _SPARE.append(strips)
    return Links(
        offsets, found.senders[:total], found.ranges[:total], found.bearings[:total]
    )


def checked_count(k: int) -> int:
    """Return a checked number of neighbours.

    Raises
    ------
    ArgumentError
        The value is not a whole number from 1 to `MAX_NEIGHBOURS`.
    """
    return arguments.whole(k, "k", low=1, high=MAX_NEIGHBOURS)


def checked_radius(radius: float) -> float:
    """Return a checked radius, m.

    Raises
    ------
    ArgumentError
        The value is not a number from 0 to `MAX_RADIUS_M`.
    """
    return arguments.number(radius, "radius", low=0.0, high=MAX_RADIUS_M, unit="m")


def _counted(poses: F8, radius: float, strips: Pack[Strips], offsets: I8) -> int:
    """Count the neighbours of all robots.

    Parameters
    ----------
    poses : (n, 3) float64
        Poses: m, m, rad.
    radius : float
        Greatest distance between centres, m.
    strips : Pack of Strips
        Workspace for n robots; it holds the sorted robots afterwards.
    offsets : (n + 1,) int64
        Output: index of the first neighbour of each robot, and their number.

    Returns
    -------
    int
        Number of all neighbours.

    Raises
    ------
    ArgumentError
        There are more than `MAX_PAIRS` neighbours.
    """
    total = count_within(
        np.ascontiguousarray(poses), radius, MAX_PAIRS, strips, offsets
    )
    # In a crowd, the number of neighbours grows with the square of the robots.
    if total < 0:
        raise ArgumentError(
            "radius: expected a radius within which all robots together have at most "
            f"{MAX_PAIRS:,} neighbours, found more within {radius:g} m"
        )

    return total


def _strips(n: int) -> Pack[Strips]:
    """Return a workspace for `n` robots, to be returned to `_SPARE` after its use."""
    # Kernels run without the interpreter's lock, so that each call needs its own
    # workspace.
    try:
        last = _SPARE.pop()
    except IndexError:
        return Pack(build_strips(n))
    return last if len(last.value.x) == n else Pack(build_strips(n))


_SPARE: Final[deque[Pack[Strips]]] = deque(maxlen=2)
"""Workspaces of the last queries, which the next ones use again."""


__all__ = [
    "MAX_NEIGHBOURS",
    "MAX_PAIRS",
    "MAX_RADIUS_M",
    "OCCLUSIONS",
    "Links",
    "Nearby",
    "Neighbours",
    "Occlusion",
    "checked_count",
    "checked_radius",
    "links",
    "nearby",
    "nearest",
    "within",
]
