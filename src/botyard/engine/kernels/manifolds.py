"""Where two convex polygons touch: one or two points, a normal, and how deep they
overlap.

The axis along which they overlap least is found among the normals of their edges
(separating axes; Gottschalk, Lin & Manocha, 1996); then the edge of the one that faces
it is cut to the length of the other's (Sutherland & Hodgman, 1974). A wall is a polygon
of two corners, whose two edges look both ways. Allocates nothing; any thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import kernel, merged_kernel
from botyard.engine.layout import F8

PREFER = 5e-5
"""The second polygon gives the axis only if it overlaps less by more than this, m: else
the axis would change to and fro.
"""
JOINT = 1e-5
"""Walls whose ends are so near to each other, or an end to a wall, m, meet there."""
FLAT = 0.005
"""What lies flat against a wall never lies quite flat: the sine of the angle between
the two.
"""
ASIDE = 0.1
"""At an outer corner a normal may lie so far beside those of the walls, as a sine, and
walls that meet may turn so much as if none did.
"""
DEEPEST = 0.05
"""What lies deeper in a wall than this, m, does not slide along it."""
RIGHT, LEFT, KEEP, SKIP = 0, 1, 2, 3
"""What a contact at an end of a wall is; the first two are the edges of a wall, too."""


@kernel
def best_edge(corners: F8, a0: int, a1: int, b0: int, b1: int) -> tuple[float, int]:
    """How far corners[b0:b1] lies beyond the best edge of corners[a0:a1], m, and which
    edge that is; ends early when they are apart.
    """
    best, edge = -math.inf, a0
    for i in range(a0, a1):
        x, y, nx, ny = corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3]
        nearest = math.inf
        for j in range(b0, b1):
            nearest = min(nearest, nx * (corners[j, 0] - x) + ny * (corners[j, 1] - y))
            if nearest <= best:  # another edge is better already
                break

        if nearest > best:
            best, edge = nearest, i
            # it separates them: nobody asks how far
            if best > 0.0:
                break

    return best, edge


@merged_kernel
def feature_key(
    first: int, second: int, turned: int, edge: int, other: int, end: int
) -> np.uint64:
    """A number for a point of contact: pieces of the two bodies, whose edge gave the
    normal, that edge, the other's edge, and its end.
    """
    pieces = (np.uint64(first & 0x7FFF) << np.uint64(48)) | (
        np.uint64(second & 0xFFFF) << np.uint64(32)
    )
    edges = (np.uint64(edge & 0x7FFF) << np.uint64(16)) | (
        np.uint64(other & 0x7FFF) << np.uint64(1)
    )
    return pieces | (np.uint64(turned) << np.uint64(31)) | edges | np.uint64(end)


@merged_kernel
def clip_edge(
    corners: F8, edge: int, after: int, other: int, other_after: int, point: F8
) -> int:
    """Cut the edge other → other_after to the length of the edge edge → after, and keep
    the ends that are not beyond that one.

    Writes x, y (in the middle between the two surfaces), depth, and which end it was,
    to the first rows of `point`. Returns how many.
    """
    x, y, nx, ny = (
        corners[edge, 0],
        corners[edge, 1],
        corners[edge, 2],
        corners[edge, 3],
    )
    # along the edge, counter-clockwise
    ex, ey = -ny, nx
    length = ex * (corners[after, 0] - x) + ey * (corners[after, 1] - y)
    px, py = corners[other, 0] - x, corners[other, 1] - y
    qx, qy = corners[other_after, 0] - x, corners[other_after, 1] - y
    u0, u1 = (
        ex * px + ey * py,
        ex * qx + ey * qy,
    )  # where its ends lie along the edge: it runs the other way
    d0, d1 = nx * px + ny * py, nx * qx + ny * qy
    count = 0
    for end in range(2):
        u, d = (u1, d1) if end else (u0, d0)
        limited = min(max(u, 0.0), length)
        if limited != u:
            if (u0 - limited) * (
                u1 - limited
            ) > 0.0 or u0 == u1:  # all of it is beside the edge
                continue

            d = d0 + (d1 - d0) * (limited - u0) / (u1 - u0)

        # the other end may be beyond the edge
        if d <= 0.0:
            point[count, 0] = x + ex * limited + 0.5 * nx * d
            point[count, 1] = y + ey * limited + 0.5 * ny * d
            point[count, 2] = -d
            point[count, 3] = end
            count += 1

    return count


@kernel
def manifold(
    corners: F8, a0: int, a1: int, b0: int, b1: int, point: F8
) -> tuple[int, int, int, int]:
    """Where the convex polygons corners[a0:a1] and corners[b0:b1] touch.

    Writes the points to the first two rows of `point`, see `clip_edge`, and to its
    third row the normal, from the first polygon to the second.
    Returns how many points there are, 1 if the second gave the normal, and the two
    edges, counted within their polygons.
    """
    apart, edge = best_edge(corners, a0, a1, b0, b1)
    # an edge of the first separates them
    if apart > 0.0:
        return 0, 0, 0, 0
    other_apart, other = best_edge(corners, b0, b1, a0, a1)
    if other_apart > 0.0:  # or one of the second
        return 0, 0, 0, 0
    turned = 1 if other_apart > apart + PREFER else 0
    r0, r1, o0, o1 = (b0, b1, a0, a1) if turned else (a0, a1, b0, b1)
    edge = other if turned else edge
    count, facing = manifold_on_edge(corners, edge, r0, r1, o0, o1, point)
    # the normal points from the second to the first
    if turned:
        point[2, 0], point[2, 1] = -point[2, 0], -point[2, 1]
    return count, turned, edge - r0, facing - o0


@kernel
def manifold_on_edge(
    corners: F8, edge: int, r0: int, r1: int, o0: int, o1: int, point: F8
) -> tuple[int, int]:
    """Where the polygon corners[o0:o1] touches this edge of corners[r0:r1], beyond
    which none of it is: `point` as `manifold` has it.

    The normal is that of the edge. Returns how many points there are, and the other's
    edge that faces this one.
    """
    nx, ny = corners[edge, 2], corners[edge, 3]
    facing, least = (
        o0,
        math.inf,
    )  # the edge of the other one that looks against the normal most
    for j in range(o0, o1):
        along = nx * corners[j, 2] + ny * corners[j, 3]
        if along < least:
            facing, least = j, along

    after = edge + 1 if edge + 1 < r1 else r0
    facing_after = facing + 1 if facing + 1 < o1 else o0
    count = clip_edge(corners, edge, after, facing, facing_after, point)
    if (
        count == 0
    ):  # they overlap at corners, beside the ends of the edges: the deepest corner is taken
        deepest, least = o0, math.inf
        for j in range(o0, o1):
            d = nx * (corners[j, 0] - corners[edge, 0]) + ny * (
                corners[j, 1] - corners[edge, 1]
            )
            if d < least:
                deepest, least = j, d

        point[0, 0] = corners[deepest, 0] - 0.5 * nx * least
        point[0, 1] = corners[deepest, 1] - 0.5 * ny * least
        point[0, 2], point[0, 3] = -least, 0.0
        count = 1

    point[2, 0], point[2, 1] = nx, ny
    return count, facing


@merged_kernel
def pseudo_angle(x: float, y: float) -> float:
    """A number that grows with the direction of a vector, anticlockwise from + x: 0 …
    4, a whole one for each quarter turn.
    """
    part = y / (abs(x) + abs(y))
    if x < 0.0:
        return 2.0 - part
    return part if y >= 0.0 else 4.0 + part


@kernel
def side_at_joint(
    corners: F8,
    a0: int,
    a1: int,
    wall: F8,
    first: int,
    last: int,
    w: int,
    nx: float,
    ny: float,
) -> int:
    """Whether a contact of the polygon corners[a0:a1] with the end of a wall is none,
    because other walls go on there.

    A point that moves along a chain of walls would hit the end of each when it lies a
    little too deep (ghost contacts at internal edges). The normal (`nx`, `ny`), which
    is that of an edge of the polygon, must lie between those of the walls that meet
    there: in the Voronoi region of their common end.

    Parameters
    ----------
    wall : (n, 4) float64
        Walls; those from `first` to `last` may be near.
    w : int
        The wall.

    Returns
    -------
    int
        `KEEP`: it is one. `SKIP`: it is a contact of another wall. `RIGHT`, `LEFT`: the
        polygon touches this side of the wall.
    """
    tx, ty = wall[w, 2] - wall[w, 0], wall[w, 3] - wall[w, 1]
    size = math.sqrt(tx * tx + ty * ty)
    tx, ty = tx / size, ty / size
    # of the direction out of the wall
    along = -(nx * tx + ny * ty)
    # it lies flat: both normals are the same
    if abs(along) <= FLAT:
        return KEEP
    x, y = (wall[w, 2], wall[w, 3]) if along > 0.0 else (wall[w, 0], wall[w, 1])
    if along > 0.0:
        tx, ty = -tx, -ty  # from the end along the wall
    cx = cy = 0.0
    for k in range(a0, a1):
        cx, cy = cx + corners[k, 0] - x, cy + corners[k, 1] - y
    # its middle is the end: it is on no side of it
    if cx == 0.0 and cy == 0.0:
        return KEEP
    # directions as seen from the wall: where the polygon is, and the next walls on both
    # sides of it
    place = pseudo_angle(cx * tx + cy * ty, cy * tx - cx * ty)
    low, high, steep = walls_at_joint(wall, first, last, w, (x, y), (tx, ty), (nx, ny))
    # no wall goes on there, or those that do lie flat
    if steep <= FLAT:
        return KEEP
    # an edge of the wall looks to the right of its direction, the other one to the
    # left; here it may run the other way
    if (
        place <= low and low <= 2.0 + ASIDE
    ):  # nothing stands between it and the right side, and the walls form no outer corner
        return RIGHT if along > 0.0 else LEFT

    if place >= high and high >= 2.0 - ASIDE:  # nor the left one
        return LEFT if along > 0.0 else RIGHT
    return (
        SKIP if steep > ASIDE else KEEP
    )  # an outer corner, or other walls stand between


@kernel
def walls_at_joint(
    wall: F8,
    first: int,
    last: int,
    w: int,
    end: tuple[float, float],
    along: tuple[float, float],
    normal: tuple[float, float],
) -> tuple[float, float, float]:
    """Which walls go on from the `end` of wall `w`.

    Returns the least and the greatest of their directions, as `pseudo_angle` from
    `along`, the direction of the wall from that end (4 and 0 when there are none), and
    how much one of them goes against `normal`, as the cosine of the angle (−1).
    """
    x, y = end
    tx, ty = along
    nx, ny = normal
    low, high, steep = 4.0, 0.0, -1.0
    for u in range(first, last):
        ux, uy = wall[u, 2] - wall[u, 0], wall[u, 3] - wall[u, 1]
        size = math.sqrt(ux * ux + uy * uy)
        if u == w or size == 0.0:  # itself; one without direction
            continue
        ux, uy = ux / size, uy / size
        at = (x - wall[u, 0]) * ux + (y - wall[u, 1]) * uy
        # the end is beside this wall, or before or behind it
        if (
            abs((x - wall[u, 0]) * uy - (y - wall[u, 1]) * ux) > JOINT
            or at < -JOINT
            or at > size + JOINT
        ):
            continue

        # it goes on from there to both sides, or to one
        for way in range(2):
            if (size - at if way == 0 else at) <= JOINT:
                continue
            sx, sy = (ux, uy) if way == 0 else (-ux, -uy)
            steep = max(steep, -(nx * sx + ny * sy))
            q = pseudo_angle(sx * tx + sy * ty, sy * tx - sx * ty)
            low, high = min(low, q), max(high, q)

    return low, high, steep


@merged_kernel
def manifold_with_side(
    corners: F8, side: int, a0: int, a1: int, point: F8
) -> tuple[int, int]:
    """Where the polygon corners[a0:a1] touches a side of the wall in the first two
    rows: see `manifold_on_edge`; the normal points to the wall.

    −1 points: it lies too deep for that side.
    """
    nx, ny, deepest = corners[side, 2], corners[side, 3], math.inf
    for k in range(a0, a1):
        deepest = min(
            deepest,
            nx * (corners[k, 0] - corners[side, 0])
            + ny * (corners[k, 1] - corners[side, 1]),
        )

    if deepest > 0.0:  # all of it is beyond
        return 0, 0
    if deepest < -DEEPEST:
        return -1, 0
    count, facing = manifold_on_edge(corners, side, 0, 2, a0, a1, point)
    point[2, 0], point[2, 1] = -nx, -ny
    return count, facing - a0
