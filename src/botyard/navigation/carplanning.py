"""Paths of car-like robots on a raster map: hybrid A*."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Outline, Pose
from botyard.model.trailers import TrailerSpec
from botyard.navigation.kernels import carplanning as kernels
from botyard.navigation.kernels.carplanning import EXHAUSTED, CarRules, Train, Tree
from botyard.navigation.kernels.planning import Search
from botyard.navigation.planning import BLOCKED, Costmap, NoPathError, Obstruction
from botyard.numerics.elementary import hypot

F8 = NDArray[np.float64]
MAX_STATES: Final = 200_000
"""Greatest number of states of a search, which bounds its time and memory."""
MAX_DISTANCE_M: Final = 10_000.0
"""Greatest distance of a goal, m, which bounds the points of a path and the size of cells."""
MAX_NODES: Final = 16_000_000
"""Greatest number of cells of the lattice: a larger map gets larger cells."""
HEADINGS: Final = 72
"""Number of headings of the lattice, 5° each."""
BACK, SWITCH, BEND = 2.0, 1.0, 0.05
"""Costs of a path. `BACK`: cost of a metre in reverse; a metre forward costs 1.

`SWITCH`: cost of a change between forward and reverse, in radii of the turning circle.
`BEND`: share by which the tightest arc costs more than a line.
"""
MAX_DISCS: Final = 8
"""Greatest number of discs that cover a body."""
SPACING_M: Final = 0.05
"""Distance of the points of a path, m."""


@dataclass(frozen=True, slots=True)
class Discs:
    """Equal discs on the x axes of a robot and its trailers that cover them.

    Attributes
    ----------
    radius : float
        Radius of each disc, m.
    offsets : tuple of tuple of float
        Places of the centres in front of the origin of each body, m: the robot, then its
        trailers. All have the same number.
    """

    radius: float
    offsets: tuple[tuple[float, ...], ...]


def discs_of(*bodies: Sequence[Outline]) -> Discs:
    """Return discs that cover a robot and its trailers.

    Parameters
    ----------
    *bodies : sequence of outlines
        Polygons of each body in its frame, m.
    """
    spans = []
    for parts in bodies:
        xs = [x for part in parts for x, _ in part]
        half = max(abs(y) for part in parts for _, y in part)
        spans.append((min(xs), max(xs) - min(xs), half))
    # Discs a little wider than the bodies: more of them would gain little.
    counts = [
        min(MAX_DISCS, max(1, math.ceil(size / max(1.2 * half, 1e-3))))
        for _, size, half in spans
    ]
    count = max(counts)
    return Discs(
        max(
            hypot(half, 0.5 * size / count)
            for (_, size, half), count in zip(spans, counts, strict=True)
        ),
        tuple(
            tuple(low + (k + 0.5) * size / count for k in range(count))
            for low, size, _ in spans
        ),
    )


def check_distance(start: Sequence[float], goal: tuple[float, float]) -> None:
    """Check that a goal is near enough for a path of arcs.

    Parameters
    ----------
    start, goal : sequence of float
        x and y, m.

    Raises
    ------
    NoPathError
        The goal is farther than `MAX_DISTANCE_M`.
    """
    if hypot(goal[0] - start[0], goal[1] - start[1]) > MAX_DISTANCE_M:
        raise NoPathError(Obstruction.GOAL_FAR, goal)


def find_car_path(
    costs: Costmap,
    offsets: Sequence[Sequence[float]],
    start: Pose,
    goal: tuple[float, float],
    heading: float | None,
    radius: float,
    *,
    trailers: Sequence[TrailerSpec] = (),
    headings: Sequence[float] = (),
    reverses: bool = True,
    max_states: int = MAX_STATES,
) -> F8:
    """Return a path of arcs and lines that a car-like robot can drive.

    Parameters
    ----------
    costs : Costmap
        Raster on which each disc of a body is a point.
    offsets : sequence of sequences of float
        Places of the discs on the x axis of the robot and of each trailer, m, see
        `discs_of`.
    start : Pose
        Pose of the robot, m, m, rad.
    goal : (float, float)
        Goal of the robot's origin, m.
    heading : float or None
        Heading at the goal, rad; None: any.
    radius : float
        Radius of the tightest arc, m, above 0.
    trailers : sequence of TrailerSpec
        Trailers, which are free and within the limits of their hitches on the whole path.
    headings : sequence of float
        Headings of the trailers at the start, rad.
    reverses : bool
        Whether the robot may also drive in reverse.
    max_states : int
        Greatest number of states of the search.

    Returns
    -------
    (n, 4) float64
        Points at most `SPACING_M` apart: x and y, m, heading, rad, and direction in which
        the robot drives to the point, 1 forward, −1 in reverse. The first point is `start`
        with the direction of the second one; n ≥ 2.

    Raises
    ------
    NoPathError
        There is no path, none was found within `max_states`, or the goal is farther than
        `MAX_DISTANCE_M`.
    """
    check_distance(start, goal)
    # If even a single disc has no path, this call raises the error with its reason.
    costs.path((start.x, start.y), goal, "a_star")
    edge = max(costs.resolution, 0.25 * radius)
    rows, columns = costs.costs.shape
    width, height = columns * costs.resolution, rows * costs.resolution
    edge = max(edge, math.sqrt(width * height * HEADINGS / MAX_NODES))
    rules = CarRules(
        x=costs.x,
        y=costs.y,
        resolution=costs.resolution,
        edge=edge,
        columns=math.ceil(width / edge),
        rows=math.ceil(height / edge),
        headings=HEADINGS,
        curvature=1.0 / radius,
        # Each move is long enough to leave its cell of the lattice.
        stride=1.5 * edge,
        # Trailers follow in steps that are short compared with their drawbars.
        step=min([costs.resolution, *(0.5 * one.length for one in trailers)]),
        back=BACK,
        switch=SWITCH * radius,
        bend=BEND,
        reverses=int(reverses),
        has_heading=int(heading is not None),
    )
    bordered = np.pad(costs.costs, 1, constant_values=BLOCKED)
    cell = costs.cell(goal)
    assert cell is not None
    field = _search(bordered.size)
    kernels.fill_field(bordered, (cell[1] + 1) * (columns + 2) + cell[0] + 1, field)
    search, tree = (
        _search(max_states),
        Tree(
            pose=np.empty((max_states, 3 + len(trailers))),
            move=np.zeros((max_states, 2)),
            node=np.zeros(max_states, np.int32),
            state=np.zeros(rules.columns * rules.rows * HEADINGS, np.int32),
            shot=np.zeros((3, 3)),
            arc=np.zeros((2, 3)),
            work=np.zeros((3, 3 + len(trailers))),
            parts=np.zeros((3, 2)),
            ends=np.zeros((2, 3)),
        ),
    )
    found = kernels.plan_car(
        costs.costs,
        Train(
            np.array(offsets, np.float64),
            np.array(
                [(one.hitch, one.length, one.limit) for one in trailers], np.float64
            ).reshape(-1, 3),
        ),
        field.length,
        np.array([*start, *headings], np.float64),
        np.array([*goal, 0.0 if heading is None else heading]),
        rules,
        search,
        tree,
    )
    if found < 0:
        raise NoPathError(
            Obstruction.NO_TIME if found == EXHAUSTED else Obstruction.NO_ARC,
            goal,
            note=f"the circle has a radius of {radius:.3f} m",
        )

    chain = [found]
    while search.before[chain[-1]] >= 0:
        chain.append(int(search.before[chain[-1]]))
    arcs = [(*tree.move[k].tolist(), rules.stride) for k in chain[-2::-1]]
    arcs += [tuple(one) for one in tree.shot.tolist() if one[2] > 0.0]
    return sampled(start, arcs)


def sampled(start: Pose, arcs: Sequence[tuple[float, float, float]]) -> F8:
    """Return the points of a path of arcs, (n, 4), see `find_car_path`.

    Parameters
    ----------
    start : Pose
        Pose at the start, m, m, rad.
    arcs : sequence of (float, float, float)
        Direction, 1 or −1, turn per metre, rad/m, and length of each arc, m.
    """
    x, y, th = start
    points = [(x, y, th, arcs[0][0] if arcs else 1.0)]
    for direction, turn, length in arcs:
        count = max(1, math.ceil(length / SPACING_M))
        points += [
            (
                *kernels.advanced(x, y, th, direction, turn, length * k / count),
                direction,
            )
            for k in range(1, count + 1)
        ]
        x, y, th = points[-1][:3]
    # A robot at its goal has a path of two points.
    return np.array(points if len(points) > 1 else points * 2)


def _search(count: int) -> Search:
    return Search(
        length=np.full(count, math.inf),
        before=np.empty(count, np.int32),
        heap=np.empty(count, np.int32),
        key=np.empty(count),
        position=np.zeros(count, np.int32),
    )


__all__ = [
    "MAX_DISTANCE_M",
    "MAX_STATES",
    "Discs",
    "check_distance",
    "discs_of",
    "find_car_path",
    "sampled",
]
