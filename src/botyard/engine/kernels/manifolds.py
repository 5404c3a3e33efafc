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

Without this difference, the axis would change back and forth between the polygons.
"""
JOINT = 1e-5
"""Distance up to which two wall ends, or an end and a wall, count as joined, m."""
FLAT = 0.005
"""Sine of the angle up to which a body lies flat against a wall.

Rounding keeps it from lying exactly flat.
"""
ASIDE = 0.1
"""Tolerance at an outer corner, as a sine.

A normal may deviate by this angle from the normals of the walls. Walls that turn by
less count as one straight wall.
"""
DEEPEST = 0.05
"""Depth in a wall from which a body does not slide along it, m."""
RIGHT, LEFT, KEEP, SKIP = 0, 1, 2, 3
"""Kinds of contact at the end of a wall; the first two are also the edges of a wall."""


@kernel
def best_edge(corners: F8, a0: int, a1: int, b0: int, b1: int) -> tuple[float, int]:
    """Return the gap between two polygons along the best edge of the first one.

    Stops early if they are apart.

    Parameters
    ----------
    corners : (c, 4) float64
        `Workspace.corners`: corners, m, and normals of the edges that start at them.
    a0, a1 : int
        Polygon with the edges: corners[a0:a1].
    b0, b1 : int
        The other polygon: corners[b0:b1].

    Returns
    -------
    tuple of (float, int)
        Gap, m, not positive if no edge separates them, and row of the edge's first
        corner.
    """
    best, edge = -math.inf, a0
    for i in range(a0, a1):
        x, y, nx, ny = corners[i, 0], corners[i, 1], corners[i, 2], corners[i, 3]
        nearest = math.inf
        # The smallest projection belongs to the corner that is deepest behind the edge.
        for j in range(b0, b1):
            nearest = min(nearest, nx * (corners[j, 0] - x) + ny * (corners[j, 1] - y))
            # Another edge is already better than this one can become.
            if nearest <= best:
                break

        if nearest > best:
            best, edge = nearest, i
            # The edge separates the polygons, so that the exact gap does not matter.
            if best > 0.0:
                break

    return best, edge


@merged_kernel
def feature_key(
    first: int, second: int, turned: int, edge: int, other: int, end: int
) -> np.uint64:
    """Return a number for a point of contact.

    It is the same in the next substep if the same features touch, so that the contact
    finds its impulses.

    Parameters
    ----------
    first, second : int
        Numbers of the pieces of the two bodies.
    turned : int
        1 if an edge of the second body provided the normal, otherwise 0.
    edge, other : int
        Number of that edge in its piece, and number of the facing edge in the other piece.
    end : int
        End of the other edge, 0 or 1.
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
    """Clip an edge to the length of the edge that faces it.

    Keep only points on the facing edge, or behind it, within its polygon.

    Parameters
    ----------
    corners : (c, 4) float64
        `Workspace.corners`.
    edge, after : int
        Corners of the edge that gives the length and the normal.
    other, other_after : int
        Corners of the edge to clip.
    point : (4, 4) float64
        Output, the first rows: x, y halfway between the two surfaces, m, depth, m, and
        index of the end.

    Returns
    -------
    int
        Number of points, 0 … 2.
    """
    x, y, nx, ny = (
        corners[edge, 0],
        corners[edge, 1],
        corners[edge, 2],
        corners[edge, 3],
    )

    # Unit vector along the edge, counter-clockwise.
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

            # Interpolate the depth of the clipped end along the other edge.
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
    """Find the contact points of two convex polygons.

    Parameters
    ----------
    corners : (c, 4) float64
        `Workspace.corners`.
    a0, a1 : int
        First polygon: corners[a0:a1].
    b0, b1 : int
        Second polygon: corners[b0:b1].
    point : (4, 4) float64
        Output: points in rows 0 and 1, see `clip_edge`; normal from the first polygon
        to the second in row 2.

    Returns
    -------
    tuple of int
        Number of points, 0 if they are apart; 1 if the second polygon provided the
        normal, otherwise 0; and the two edges, counted within their polygons.
    """
    apart, edge = best_edge(corners, a0, a1, b0, b1)
    # An edge of the first polygon separates them.
    if apart > 0.0:
        return 0, 0, 0, 0
    other_apart, other = best_edge(corners, b0, b1, a0, a1)

    # An edge of the second polygon separates them.
    if other_apart > 0.0:
        return 0, 0, 0, 0
    # Without a clear difference the first polygon stays the reference in each substep.
    turned = 1 if other_apart > apart + PREFER else 0
    r0, r1, o0, o1 = (b0, b1, a0, a1) if turned else (a0, a1, b0, b1)
    edge = other if turned else edge
    # The reference polygon provides the axis; the other polygon is clipped to it.
    count, facing = manifold_on_edge(corners, edge, r0, r1, o0, o1, point)

    # The normal points from the second polygon to the first.
    if turned:
        point[2, 0], point[2, 1] = -point[2, 0], -point[2, 1]
    return count, turned, edge - r0, facing - o0


@kernel
def manifold_on_edge(
    corners: F8, edge: int, r0: int, r1: int, o0: int, o1: int, point: F8
) -> tuple[int, int]:
    """Find the contact points of a polygon at an edge of another one.

    Parameters
    ----------
    corners : (c, 4) float64
        `Workspace.corners`.
    edge : int
        First corner of the edge; it must not separate the polygons.
    r0, r1 : int
        Polygon of the edge: corners[r0:r1].
    o0, o1 : int
        The other polygon: corners[o0:o1].
    point : (4, 4) float64
        Output as for `manifold`, with the normal of the edge.

    Returns
    -------
    tuple of int
        Number of points, and the edge of the other polygon that faces the edge.
    """
    nx, ny = corners[edge, 2], corners[edge, 3]
    # Find the edge of the other polygon whose normal is most opposed to the normal.
    facing, least = o0, math.inf
    for j in range(o0, o1):
        along = nx * corners[j, 2] + ny * corners[j, 3]
        if along < least:
            facing, least = j, along

    # Corners of a polygon are cyclic.
    after = edge + 1 if edge + 1 < r1 else r0
    facing_after = facing + 1 if facing + 1 < o1 else o0
    count = clip_edge(corners, edge, after, facing, facing_after, point)
    # The polygons overlap at corners, outside of the edges' lengths: take the deepest
    # corner.
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

    Parameters
    ----------
    x, y : float
        Vector of any length except 0.
    """
    # A quotient orders directions as well as an arctangent, and takes less time.
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

    It is not valid if other walls continue there. A point that moves along a chain of
    walls would hit the end of each if it lies a little too deep (ghost contacts at
    internal edges). The normal (`nx`, `ny`) of an edge of the polygon corners[a0:a1]
    must lie between the normals of the joining walls, in the Voronoi region of their
    common end.

    Parameters
    ----------
    corners : (c, 4) float64
        `Workspace.corners`.
    a0, a1 : int
        Polygon: corners[a0:a1].
    first, last : int
        Walls that may be near: first … last − 1.
    nx, ny : float
        Normal of the contact, from the polygon to the wall.
    wall : (n, 4) float64
        Walls; those from `first` to `last` may be near.
    w : int
        Number of the wall.

    Returns
    -------
    int
        `KEEP`: the contact is valid. `SKIP`: it is a contact of another wall. `RIGHT`, `LEFT`:
        the polygon touches this side of the wall.
    """
    tx, ty = wall[w, 2] - wall[w, 0], wall[w, 3] - wall[w, 1]
    size = math.sqrt(tx * tx + ty * ty)
    tx, ty = tx / size, ty / size
    # Component of the normal in the direction out of the wall.
    along = -(nx * tx + ny * ty)

    # The body lies flat against the wall: both have the same normal.
    if abs(along) <= FLAT:
        return KEEP
    x, y = (wall[w, 2], wall[w, 3]) if along > 0.0 else (wall[w, 0], wall[w, 1])
    # Turn the direction, so that it leads from the end along the wall.
    if along > 0.0:
        tx, ty = -tx, -ty

    # The sum of corners serves as centre: only its direction counts.
    cx = cy = 0.0
    for k in range(a0, a1):
        cx, cy = cx + corners[k, 0] - x, cy + corners[k, 1] - y
    # The centre of the polygon is at the end, so that it is on neither side.
    if cx == 0.0 and cy == 0.0:
        return KEEP

    # Directions of the polygon, and of the next walls on both sides, as seen from this
    # wall.
    place = pseudo_angle(cx * tx + cy * ty, cy * tx - cx * ty)
    low, high, steep = walls_at_joint(wall, first, last, w, (x, y), (tx, ty), (nx, ny))
    # No wall continues at this end, or all walls that continue lie flat.
    if steep <= FLAT:
        return KEEP

    # One edge of the wall faces the right of its direction, the other one the left.
    # Here the direction may be reversed.
    # Nothing is between the polygon and the right side, and the walls form no outer
    # corner.
    if place <= low and low <= 2.0 + ASIDE:
        return RIGHT if along > 0.0 else LEFT

    # No wall is between the polygon and the left side of the wall.
    if place >= high and high >= 2.0 - ASIDE:
        return LEFT if along > 0.0 else RIGHT
    # The end is an outer corner, or other walls are between the polygon and both sides.
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
    """Find the walls that continue from an end of a wall.

    Parameters
    ----------
    wall : (n, 4) float64
        `Workspace.wall`: end points of walls, m.
    first, last : int
        Walls that may be near: first … last − 1.
    w : int
        Number of the wall.
    end : tuple of float
        The end of the wall, m.
    along : tuple of float
        Direction of the wall from that end, a unit vector.
    normal : tuple of float
        Normal of the contact, a unit vector.

    Returns
    -------
    tuple of float
        Least and greatest of their directions, as `pseudo_angle` from `along`; 4 and 0
        without any. The greatest cosine of the angle between a wall and the direction
        against `normal`; −1 without any.
    """
    x, y = end
    tx, ty = along
    nx, ny = normal
    # Neutral starts of minimum and maximum; −1 means that no wall continues.
    low, high, steep = 4.0, 0.0, -1.0
    for u in range(first, last):
        ux, uy = wall[u, 2] - wall[u, 0], wall[u, 3] - wall[u, 1]
        size = math.sqrt(ux * ux + uy * uy)
        # Skip the wall itself, and walls without direction.
        if u == w or size == 0.0:
            continue

        ux, uy = ux / size, uy / size
        at = (x - wall[u, 0]) * ux + (y - wall[u, 1]) * uy
        # Skip walls that do not contain the end: it is off their line, or beyond one of
        # their ends.
        if (
            abs((x - wall[u, 0]) * uy - (y - wall[u, 1]) * ux) > JOINT
            or at < -JOINT
            or at > size + JOINT
        ):
            continue

        # The wall continues from the end in one direction or in both.
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
    """Find the contact points of a polygon at a side of a wall.

    Parameters
    ----------
    corners : (c, 4) float64
        `Workspace.corners`, with the wall in rows 0 and 1.
    side : int
        `RIGHT` or `LEFT`: the row whose normal faces that side.
    a0, a1 : int
        Polygon: corners[a0:a1].
    point : (4, 4) float64
        Output as for `manifold`; the normal points to the wall.

    Returns
    -------
    tuple of int
        Number of points, −1 if the polygon lies too deep for that side, and the
        polygon's edge that faces it.
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
    # The polygon is so deep that the nearest way out may be through another side.
    if deepest < -DEEPEST:
        return -1, 0
    # A side of a wall is an edge of the polygon with the corners 0 and 1.
    count, facing = manifold_on_edge(corners, side, 0, 2, a0, a1, point)
    point[2, 0], point[2, 1] = -nx, -ny
    return count, facing - a0
