"""Contact manifolds of convex polygons: one or two points, normal and overlap.

The axis of least overlap is found among the normals of the edges (separating axes;
Gottschalk, Lin & Manocha, 1996). Then the facing edge of one polygon is clipped to the
length of the other's (Sutherland & Hodgman, 1974). A wall is a polygon of two corners,
whose two edges face both sides. Allocates nothing; any thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import kernel, merged_kernel
from botyard.engine.layout import F8

PREFER = 5e-5
"""Difference in overlap from which the second polygon provides the axis, m.

Without it the axis would oscillate.
"""
JOINT = 1e-5
"""Distance of the ends of two walls, or of an end from a wall, at which they join, m.
"""
FLAT = 0.005
"""Sine of the angle up to which a body lies flat against a wall.

Rounding keeps it from lying exactly flat.
"""
ASIDE = 0.1
"""Tolerance at an outer corner, as a sine.

A normal may deviate that much from the walls' normals, and walls may turn that much as
if they did not join.
"""
DEEPEST = 0.05
"""Depth in a wall from which a body does not slide along it, m."""
RIGHT, LEFT, KEEP, SKIP = 0, 1, 2, 3
"""Kinds of contact at the end of a wall; the first two are also the edges of a wall."""


@kernel
def best_edge(corners: F8, a0: int, a1: int, b0: int, b1: int) -> tuple[float, int]:
    """Return the best edge of corners[a0:a1], and the gap to corners[b0:b1], m.

    The gap comes first in the result.

    Stops early if they are apart.
    """
    best, edge = -math.inf, a0
    for i in range(a0, a1):
        x, y, nx, ny = corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3]
        nearest = math.inf
        for j in range(b0, b1):
            nearest = min(nearest, nx * (corners[j, 0] - x) + ny * (corners[j, 1] - y))
            # Another edge is already better.
            if nearest <= best:
                break

        if nearest > best:
            best, edge = nearest, i
            # The edge separates them, so that the exact gap does not matter.
            if best > 0.0:
                break

    return best, edge


@merged_kernel
def feature_key(
    first: int, second: int, turned: int, edge: int, other: int, end: int
) -> np.uint64:
    """Return a number for a point of contact.

    It combines the pieces of the two bodies, the body whose edge provided the normal,
    that edge, the other's edge, and its end.
    """
    # The highest bit stays free for `contacts.WALL_BIT`.
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
    """Clip the edge other → other_after to the edge edge → after.

    Only ends that are not beyond the latter edge are kept.

    Writes x, y (halfway between the two surfaces), depth, and the index of the end to
    the first rows of `point`. Returns the number of points.
    """
    x, y, nx, ny = (
        corners[edge, 0],
        corners[edge, 1],
        corners[edge, 2],
        corners[edge, 3],
    )
    # Along the edge, counter-clockwise
    ex, ey = -ny, nx
    length = ex * (corners[after, 0] - x) + ey * (corners[after, 1] - y)
    px, py = corners[other, 0] - x, corners[other, 1] - y
    qx, qy = corners[other_after, 0] - x, corners[other_after, 1] - y
    # Positions of the other edge's ends along this edge: it runs in reverse.
    u0, u1 = ex * px + ey * py, ex * qx + ey * qy
    d0, d1 = nx * px + ny * py, nx * qx + ny * qy
    count = 0
    for end in range(2):
        u, d = (u1, d1) if end else (u0, d0)
        limited = min(max(u, 0.0), length)
        if limited != u:
            # The whole other edge is outside of the edge's length.
            if (u0 - limited) * (u1 - limited) > 0.0 or u0 == u1:
                continue

            # Depth of the clipped end, by interpolation along the other edge
            d = d0 + (d1 - d0) * (limited - u0) / (u1 - u0)

        # Only ends below the edge touch.
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
    """Find the contact points of the convex polygons corners[a0:a1] and corners[b0:b1].

    Writes the points to the first two rows of `point`, see `clip_edge`, and the normal,
    from the first polygon to the second, to its third row. Returns the number of
    points, 1 if the second polygon provided the normal, and the two edges, counted
    within their polygons.
    """
    apart, edge = best_edge(corners, a0, a1, b0, b1)
    # An edge of the first polygon separates them.
    if apart > 0.0:
        return 0, 0, 0, 0
    other_apart, other = best_edge(corners, b0, b1, a0, a1)
    # An edge of the second polygon separates them.
    if other_apart > 0.0:
        return 0, 0, 0, 0
    turned = 1 if other_apart > apart + PREFER else 0
    r0, r1, o0, o1 = (b0, b1, a0, a1) if turned else (a0, a1, b0, b1)
    edge = other if turned else edge
    count, facing = manifold_on_edge(corners, edge, r0, r1, o0, o1, point)
    # The normal points from the second polygon to the first.
    if turned:
        point[2, 0], point[2, 1] = -point[2, 0], -point[2, 1]
    return count, turned, edge - r0, facing - o0


@kernel
def manifold_on_edge(
    corners: F8, edge: int, r0: int, r1: int, o0: int, o1: int, point: F8
) -> tuple[int, int]:
    """Find the contact points of the polygon corners[o0:o1] at this edge.

    The edge belongs to corners[r0:r1]; it must not separate the polygons. `point` is
    written as by `manifold`, with the normal of the edge. Returns the number of points,
    and the other's edge that faces this one.
    """
    nx, ny = corners[edge, 2], corners[edge, 3]
    # The edge of the other polygon that is most opposed to the normal
    facing, least = o0, math.inf
    for j in range(o0, o1):
        along = nx * corners[j, 2] + ny * corners[j, 3]
        if along < least:
            facing, least = j, along

    after = edge + 1 if edge + 1 < r1 else r0
    facing_after = facing + 1 if facing + 1 < o1 else o0
    count = clip_edge(corners, edge, after, facing, facing_after, point)
    # They overlap at corners, outside of the edges' lengths: take the deepest corner.
    if count == 0:
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
    """Return a number that grows with the direction of a vector.

    It runs counter-clockwise from +x, 0 … 4, one unit for each quarter turn.
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
    """Decide whether a contact of a polygon with the end of a wall is valid.

    It is not if other walls continue there. A point that moves along a chain of walls
    would hit the end of each if it lies a little too deep (ghost contacts at internal
    edges). The normal (`nx`, `ny`) of an edge of the polygon corners[a0:a1] must lie
    between the normals of the joining walls, in the Voronoi region of their common end.

    Parameters
    ----------
    wall : (n, 4) float64
        Walls; those from `first` to `last` may be near.
    w : int
        Number of the wall.

    Returns
    -------
    int
        `KEEP`: it is valid. `SKIP`: it is a contact of another wall. `RIGHT`, `LEFT`: the
        polygon touches this side of the wall.
    """
    tx, ty = wall[w, 2] - wall[w, 0], wall[w, 3] - wall[w, 1]
    size = math.sqrt(tx * tx + ty * ty)
    tx, ty = tx / size, ty / size
    # Component of the normal in the direction out of the wall
    along = -(nx * tx + ny * ty)
    # It lies flat: both normals are the same.
    if abs(along) <= FLAT:
        return KEEP
    x, y = (wall[w, 2], wall[w, 3]) if along > 0.0 else (wall[w, 0], wall[w, 1])
    # Direction from the end along the wall
    if along > 0.0:
        tx, ty = -tx, -ty
    cx = cy = 0.0
    for k in range(a0, a1):
        cx, cy = cx + corners[k, 0] - x, cy + corners[k, 1] - y
    # The centre of the polygon is the end: it is on neither side.
    if cx == 0.0 and cy == 0.0:
        return KEEP
    # Directions as seen from the wall: of the polygon, and of the next walls on both
    # sides of it.
    place = pseudo_angle(cx * tx + cy * ty, cy * tx - cx * ty)
    low, high, steep = walls_at_joint(wall, first, last, w, (x, y), (tx, ty), (nx, ny))
    # No wall continues there, or the ones that do lie flat.
    if steep <= FLAT:
        return KEEP
    # One edge of the wall faces the right of its direction, the other one the left.
    # Here the direction may be reversed.
    # Nothing is between the polygon and the right side, and the walls form no outer
    # corner.
    if place <= low and low <= 2.0 + ASIDE:
        return RIGHT if along > 0.0 else LEFT

    # Nothing is between the polygon and the left side.
    if place >= high and high >= 2.0 - ASIDE:
        return LEFT if along > 0.0 else RIGHT
    # An outer corner, or other walls are in between.
    return SKIP if steep > ASIDE else KEEP


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
    """Find the walls that continue from the `end` of wall `w`.

    Returns the least and the greatest of their directions, as `pseudo_angle` from
    `along`, the direction of the wall from that end (4 and 0 without any). The third
    number is the greatest cosine of the angle between a wall and the direction against
    `normal` (−1).
    """
    x, y = end
    tx, ty = along
    nx, ny = normal
    low, high, steep = 4.0, 0.0, -1.0
    for u in range(first, last):
        ux, uy = wall[u, 2] - wall[u, 0], wall[u, 3] - wall[u, 1]
        size = math.sqrt(ux * ux + uy * uy)
        # The wall itself, or a wall without direction
        if u == w or size == 0.0:
            continue
        ux, uy = ux / size, uy / size
        at = (x - wall[u, 0]) * ux + (y - wall[u, 1]) * uy
        # The end is off the line of this wall, or before or behind the wall.
        if (
            abs((x - wall[u, 0]) * uy - (y - wall[u, 1]) * ux) > JOINT
            or at < -JOINT
            or at > size + JOINT
        ):
            continue

        # The wall continues to both sides, or to one.
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
    """Find the contact points of the polygon corners[a0:a1] at a side of a wall.

    The wall is in the first two rows: see `manifold_on_edge`. The normal points to the
    wall. Returns −1 points if the polygon lies too deep for that side.
    """
    nx, ny, deepest = corners[side, 2], corners[side, 3], math.inf
    for k in range(a0, a1):
        deepest = min(
            deepest,
            nx * (corners[k, 0] - corners[side, 0])
            + ny * (corners[k, 1] - corners[side, 1]),
        )

    # The whole polygon is beyond the side.
    if deepest > 0.0:
        return 0, 0
    if deepest < -DEEPEST:
        return -1, 0
    count, facing = manifold_on_edge(corners, side, 0, 2, a0, a1, point)
    point[2, 0], point[2, 1] = -nx, -ny
    return count, facing - a0
