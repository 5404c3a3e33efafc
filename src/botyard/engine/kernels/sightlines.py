"""Range-and-bearing links between robots that see each other.

A robot sees another one if nothing that lasers see crosses the line of their centres.
Both see each other or neither does: the line runs from the lower row to the higher one.
Allocates nothing; one thread.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.beams import away_from_zero
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.gridwalk import segment_range
from botyard.engine.kernels.identify import wall_ahead
from botyard.engine.kernels.jit import (
    entry_kernel,
    inline_kernel,
    kernel,
    merged_kernel,
)
from botyard.engine.kernels.nearest import sort_for_radius
from botyard.engine.kernels.strips import (
    LEAST_SQUARE,
    MARGIN,
    Strips,
    collect,
    rewind,
    write_nearest,
)
from botyard.engine.layout import F8, I8, World
from botyard.numerics.elementary import atan2, cosine_sine

# The number of `Visible.LASER`, because kernels take no enumerations. Devices for links
# use infrared light.
LIGHT = 2
LEEWAY = 1.0 + 1e-9
"""Factor of radii in the test before the exact one, for rounding."""


class LinkArrays(NamedTuple):
    """Links of n robots that see one another, the nearest first.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Offsets of the links of each robot. Before the search: offsets of the room that each
        robot has for its links.
    ends : (n,) int64
        Workspace: ends of these links.
    senders : (p,) int64
        Number of each seen robot.
    ranges, bearings : (p,) float64
        Distance, m, and direction in the frame of the robot that sees it, rad in (−π, π].
    """

    offsets: I8
    ends: I8
    senders: I8
    ranges: F8
    bearings: F8


@kernel
def crosses_outline(
    corners: F8,
    vert_start: I8,
    first: int,
    end: int,
    x: float,
    y: float,
    dx: float,
    dy: float,
    length: float,
) -> bool:
    """Return whether a line crosses the outline of a body.

    Parameters
    ----------
    corners, vert_start : (n_verts, 2) float64, (n_parts + 1,) int64
        `Bodies.world`, m, and `Bodies.vert_start`.
    first, end : int
        Polygons of the body: first … end − 1.
    x, y : float
        Start of the line, m.
    dx, dy : float
        Direction of the line, a unit vector.
    length : float
        Length of the line, m.
    """
    for p in range(first, end):
        v0, v1 = vert_start[p], vert_start[p + 1]
        ax, ay = corners[v1 - 1, 0] - x, corners[v1 - 1, 1] - y
        for v in range(v0, v1):
            bx, by = corners[v, 0] - x, corners[v, 1] - y
            if segment_range(ax, ay, bx - ax, by - ay, dx, dy, length) < length:
                return True
            ax, ay = bx, by

    return False


@merged_kernel
def is_behind_body(
    world: World, near: I8, count: int, row: int, other: int, length: float
) -> bool:
    """Return whether a body hides a robot from another one.

    Parameters
    ----------
    world : World
        Arrays of the world.
    near : (m,) int64
        Rows of the bodies that may hide the robot; those that lasers do not see hide
        nothing.
    count : int
        Number of rows in `near`.
    row, other : int
        Rows of the robot that looks, and of the one that it looks for.
    length : float
        Distance between the two, m, greater than 0.
    """
    bodies, pose, classes = world.bodies, world.state.pose, world.state.mask
    corners, part_start, vert_start, radius = (
        bodies.world,
        bodies.part_start,
        bodies.vert_start,
        bodies.radius,
    )
    x, y = pose[row, 0], pose[row, 1]
    dx, dy = (pose[other, 0] - x) / length, (pose[other, 1] - y) / length
    # Compute the line in the same direction for both robots: rounding must not let only
    # one of them see the other.
    a, b = min(row, other), max(row, other)
    for k in range(count):
        body = near[k]
        wide = radius[body] * LEEWAY
        rx, ry = pose[body, 0] - x, pose[body, 1] - y
        along = rx * dx + ry * dy
        # Test the circle of the body first, because most bodies are far from the line.
        if (
            abs(rx * dy - ry * dx) > wide
            or along < -wide
            or along > length + wide
            or body == other
            or not int(classes[body]) & LIGHT
        ):
            continue
        if crosses_outline(
            corners,
            vert_start,
            part_start[body],
            part_start[body + 1],
            pose[a, 0],
            pose[a, 1],
            away_from_zero((pose[b, 0] - pose[a, 0]) / length),
            away_from_zero((pose[b, 1] - pose[a, 1]) / length),
            length,
        ):
            return True

    return False


@merged_kernel
def is_behind_wall(world: World, row: int, other: int, length: float) -> bool:
    """Return whether a wall stands between two bodies `length` m apart.

    Parameters
    ----------
    world : World
        Arrays of the world.
    row, other : int
        Rows of the bodies. The order does not matter: the line runs from the lower row.
    length : float
        Distance between the two, m, greater than 0.
    """
    grid, pose = world.grid, world.state.pose
    a, b = min(row, other), max(row, other)
    # The walk through the grid divides by both components.
    dx = away_from_zero((pose[b, 0] - pose[a, 0]) / length)
    dy = away_from_zero((pose[b, 1] - pose[a, 1]) / length)
    gx, gy = (pose[a, 0] - grid.x0) / grid.h, (pose[a, 1] - grid.y0) / grid.h
    cells = length / grid.h
    return wall_ahead(grid, gx, gy, dx, dy, cells, LIGHT) < cells


@merged_kernel
def list_opaque(
    world: World, robot_of: I8, radius: float, behind: int, strips: Strips, found: int
) -> int:
    """Keep the robots that a search has found, and the bodies that may hide them.

    Parameters
    ----------
    world : World
        Arrays of the world.
    robot_of : (m,) int64
        Number of each body among the robots; −1: none.
    radius : float
        Greatest range of the links, m.
    behind : int
        Bit 1 (value 2): bodies hide robots.
    strips : Strips
        Found points in `away` and `who`. In-place: the kept ones move to the start.
    found : int
        Number of found points.

    Returns
    -------
    int
        Number of kept points.
    """
    radii, classes = world.bodies.radius, world.state.mask
    away, who = strips.away, strips.who
    count = np.int64(0)
    for p in range(found):
        other, apart = who[p], math.sqrt(away[p])
        hides = behind & 2 and int(classes[other]) & LIGHT
        if (robot_of[other] >= 0 and apart <= radius) or (
            hides and apart <= radius + radii[other]
        ):
            away[count], who[count] = away[p], other
            count += 1

    return int(count)


@inline_kernel
def bearing_of(pose: F8, row: int, other: int) -> float:
    """Return the bearing of a body in the frame of another one, rad in (−π, π].

    Parameters
    ----------
    pose : (n, 3) float64
        Poses in the frame of the world: m, m, rad.
    row, other : int
        Rows of the body that looks, and of the one that it looks at.
    """
    dx, dy = pose[other, 0] - pose[row, 0], pose[other, 1] - pose[row, 1]
    c, s = cosine_sine(pose[row, 2])
    bearing = atan2(c * dy - s * dx, c * dx + s * dy)
    # REP-103 has one heading for straight behind.
    return math.pi if bearing <= -math.pi else bearing


@merged_kernel
def join_links(links: LinkArrays) -> int:
    """Close the gaps between the links of robots, and return the number of links.

    Parameters
    ----------
    links : LinkArrays
        Links with gaps: robot i owns the places offsets[i] … ends[i] − 1. In-place: the
        links follow each other, and `offsets` has their borders.
    """
    offsets, ends, senders, ranges, bearings = links
    total = np.int64(0)
    for i in range(ends.shape[0]):
        first = offsets[i]
        # Reads never follow writes, so that the links can move within one array.
        offsets[i] = total
        for p in range(first, ends[i]):
            senders[total], ranges[total] = senders[p], ranges[p]
            bearings[total] = bearings[p]
            total += 1

    offsets[ends.shape[0]] = total
    return int(total)


@entry_kernel
def find_links(
    world: World,
    robot_of: I8,
    radius: float,
    reach: float,
    behind: int,
    strips: Strips,
    near: I8,
    far: F8,
    links: LinkArrays,
) -> int:
    """Find the robots that each robot sees, the nearest first.

    Parameters
    ----------
    world : World
        Arrays of a world with m > 0 bodies.
    robot_of : (m,) int64
        Number of each body among the robots; −1: none.
    radius : float
        Greatest range, m.
    reach : float
        Greatest distance of a body that may hide a robot, m.
    behind : int
        Which things hide robots, as bits. 1: walls; 2: bodies.
    strips : Strips
        Workspace for m points.
    near, far : (m,) int64, (m,) float64
        Workspace.
    links : LinkArrays
        Output. Its offsets are as `nearest.count_within` writes them before.

    Returns
    -------
    int
        Number of links.
    """
    pose, grid, offsets = world.state.pose, world.grid, links.offsets
    item, start = strips.item, strips.start
    m = pose.shape[0]
    sort_for_radius(pose, reach, strips)
    for s in range(strips.shape[0]):
        rewind(strips)
        for q in range(start[s], start[s + 1]):
            row = item[q]
            robot = robot_of[row]
            # A negative number marks a box, which has no links.
            if robot < 0:
                continue
            # The margin makes up for rounding: the exact test follows.
            limit = reach * reach * MARGIN + LEAST_SQUARE
            # With room for all bodies the search never has to drop any.
            found = collect(strips, s, q, limit, m, m + 1)
            count = list_opaque(world, robot_of, radius, behind, strips, found)
            write_nearest(strips.away, strips.who, count, near, far, count)
            # Within this distance there are no walls: most links of open worlds need no walk
            # through the grid.
            free = wall_distance(
                grid.clear,
                grid.x0,
                grid.y0,
                grid.h,
                grid.nx,
                grid.ny,
                pose[row, 0],
                pose[row, 1],
            )
            # Each robot has room for its links; `join_links` removes the gaps.
            at = offsets[robot]
            for p in range(count):
                other, apart = near[p], far[p]
                if robot_of[other] < 0 or apart > radius:
                    continue
                # Robots at one place have no line between them that could be crossed.
                if apart > 0.0:
                    if behind & 1 and apart >= free:
                        if is_behind_wall(world, row, other, apart):
                            continue
                    if behind & 2:
                        if is_behind_body(world, near, count, row, other, apart):
                            continue
                links.senders[at], links.ranges[at] = robot_of[other], apart
                links.bearings[at] = bearing_of(pose, row, other)
                at += 1

            links.ends[robot] = at

    return join_links(links)


__all__ = ["LIGHT", "LinkArrays", "find_links"]
