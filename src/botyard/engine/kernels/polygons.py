"""Narrow phase: polygons against segments and each other, by separating axes.

Method: Gottschalk, Lin & Manocha, 1996. Allocates nothing; any thread.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import inline_kernel, kernel
from botyard.engine.layout import F8

CONTACT = 1e-5
"""Distance from its obstacle up to which a body moves, m.

It is also the precision of the place along its arc at which the body stops.
"""


@inline_kernel
def length(x: float, y: float) -> float:
    """Return the length of a vector.

    `math.hypot` would be a call that guards against overflows, which no place in a
    world causes.
    """
    return math.sqrt(x * x + y * y)


@inline_kernel
def side(ax: float, ay: float, bx: float, by: float, px: float, py: float) -> float:
    """Return twice the signed area of a, b, p: positive if p is left of a → b.

    Parameters
    ----------
    ax, ay, bx, by : float
        Ends of the directed segment a → b, m.
    px, py : float
        Point p, m.
    """
    return (bx - ax) * (py - ay) - (by - ay) * (px - ax)


@kernel
def segments_cross(
    ax: float,
    ay: float,
    bx: float,
    by: float,
    px: float,
    py: float,
    qx: float,
    qy: float,
) -> bool:
    """Return whether the segments a–b and p–q share a point, touching included.

    A collinear overlap does not count.

    Parameters
    ----------
    ax, ay, bx, by : float
        Ends of the first segment, m.
    px, py, qx, qy : float
        Ends of the second segment, m.
    """
    d1, d2 = side(px, py, qx, qy, ax, ay), side(px, py, qx, qy, bx, by)
    d3, d4 = side(ax, ay, bx, by, px, py), side(ax, ay, bx, by, qx, qy)
    # Collinear segments do not cross: otherwise a robot could not slide along a wall.
    if d1 == 0.0 and d2 == 0.0:
        return False
    return d1 * d2 <= 0.0 and d3 * d4 <= 0.0


@kernel
def point_in_polygon(verts: F8, v0: int, v1: int, x: float, y: float) -> bool:
    """Return whether a point is in the polygon verts[v0:v1].

    Uses the even-odd rule (Shimrat, 1962).

    Parameters
    ----------
    verts : (n, 2) float64
        Corners of polygons, m, in any direction.
    v0, v1 : int
        The polygon is verts[v0:v1].
    x, y : float
        Point, m. On the border, either answer is possible.
    """
    inside = False
    ax, ay = verts[v1 - 1, 0], verts[v1 - 1, 1]
    for v in range(v0, v1):
        bx, by = verts[v, 0], verts[v, 1]
        # A half-open test: a ray through a corner crosses exactly one of its edges.
        if (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay):
            inside = not inside
        ax, ay = bx, by

    return inside


@kernel
def segment_distance(
    px: float, py: float, ax: float, ay: float, bx: float, by: float
) -> float:
    """Return the distance from the point p to the segment a–b.

    Parameters
    ----------
    px, py : float
        Point p.
    ax, ay, bx, by : float
        Ends of the segment, which may be the same. All arguments and the result have
        the same unit.
    """
    ex, ey = bx - ax, by - ay
    length2 = ex * ex + ey * ey
    u = (
        0.0
        if length2 == 0.0
        else min(1.0, max(0.0, ((px - ax) * ex + (py - ay) * ey) / length2))
    )
    return length(px - ax - u * ex, py - ay - u * ey)


@kernel
def polygon_hits_segment(
    verts: F8, v0: int, v1: int, ax: float, ay: float, bx: float, by: float
) -> bool:
    """Return whether the segment a–b touches verts[v0:v1] or lies inside it.

    Parameters
    ----------
    verts : (n, 2) float64
        Corners of polygons, m.
    v0, v1 : int
        The polygon is verts[v0:v1], convex or not.
    ax, ay, bx, by : float
        Ends of the segment, m.
    """
    px, py = verts[v1 - 1, 0], verts[v1 - 1, 1]
    for v in range(v0, v1):
        qx, qy = verts[v, 0], verts[v, 1]
        if segments_cross(ax, ay, bx, by, px, py, qx, qy):
            return True
        px, py = qx, qy

    # Without a crossing the segment is inside or outside as a whole.
    return point_in_polygon(verts, v0, v1, 0.5 * (ax + bx), 0.5 * (ay + by))


@kernel
def segment_gap(
    verts: F8,
    edge: F8,
    v0: int,
    v1: int,
    e0: int,
    turn: float,
    ax: float,
    ay: float,
    bx: float,
    by: float,
) -> float:
    """Return the gap between a polygon and a segment along the best of their axes, m.

    It is positive if they do not touch, see `polygon_gap`.

    Parameters
    ----------
    verts, edge : (n, 2) float64, (m,) float64
        Corners, m, and `Bodies.edge`.
    v0, v1 : int
        The polygon is verts[v0:v1].
    e0 : int
        Start of the polygon in `edge`.
    turn : float
        `Bodies.turn` of the polygon.
    ax, ay, bx, by : float
        Ends of the segment, m.
    """
    ex, ey = bx - ax, by - ay
    size = length(ex, ey)
    least, most = math.inf, -math.inf
    for v in range(v0, v1):
        d = ex * (verts[v, 1] - ay) - ey * (verts[v, 0] - ax)
        least, most = min(least, d), max(most, d)

    # A segment without length has no normal.
    gap = max(least, -most) / size if size > 0.0 else -math.inf
    if gap > 0.0:
        return gap
    # Separating axes need convex polygons.
    if turn == 0.0:
        return (
            -CONTACT if polygon_hits_segment(verts, v0, v1, ax, ay, bx, by) else CONTACT
        )

    px, py = verts[v1 - 1, 0], verts[v1 - 1, 1]
    for v in range(v0, v1):
        qx, qy = verts[v, 0], verts[v, 1]
        nearest = min(
            -turn * side(px, py, qx, qy, ax, ay), -turn * side(px, py, qx, qy, bx, by)
        )
        gap = max(gap, nearest * edge[e0 + v - v0])
        px, py = qx, qy

    return gap


@kernel
def edges_gap(
    verts: F8,
    edge: F8,
    v0: int,
    v1: int,
    e0: int,
    turn: float,
    others: F8,
    w0: int,
    w1: int,
) -> float:
    """Return how far a polygon lies beyond the best edge of a convex one, m.

    Parameters
    ----------
    verts, edge : (n, 2) float64, (m,) float64
        Corners, m, and `Bodies.edge`.
    v0, v1 : int
        The convex polygon is verts[v0:v1].
    e0 : int
        Start of the convex polygon in `edge`.
    turn : float
        `Bodies.turn` of the convex polygon, 1 or −1.
    others : (k, 2) float64
        Corners of the other polygon, m.
    w0, w1 : int
        The other polygon is others[w0:w1], convex or not.
    """
    gap = -math.inf
    px, py = verts[v1 - 1, 0], verts[v1 - 1, 1]
    for v in range(v0, v1):
        qx, qy = verts[v, 0], verts[v, 1]
        scale = -turn * edge[e0 + v - v0]
        nearest = math.inf
        for w in range(w0, w1):
            nearest = min(
                nearest, scale * side(px, py, qx, qy, others[w, 0], others[w, 1])
            )
            # This edge cannot separate the polygons better than an earlier one.
            if nearest <= gap:
                break

        gap = max(gap, nearest)
        px, py = qx, qy

    return gap


@kernel
def polygon_gap(
    verts: F8,
    edge: F8,
    v0: int,
    v1: int,
    e0: int,
    turn: float,
    others: F8,
    w0: int,
    w1: int,
    other_turn: float,
) -> float:
    """Return the gap between two polygons along the best of their axes, m.

    It is positive if they do not touch. For convex polygons, the axes are the normals
    of their edges (separating axes; Gottschalk, Lin & Manocha, 1996), and a gap that is
    not positive is the depth of their overlap. For others it is ±CONTACT, by edges and
    corners.

    Parameters
    ----------
    edge : (m,) float64
        `Bodies.edge` of both polygons, 1/m.
    verts, v0, v1, e0, turn
        One polygon: its corners verts[v0:v1], the start of its `Bodies.edge`,
        `Bodies.turn`.
    others, w0, w1, other_turn
        The other polygon: its corners others[w0:w1]; its `Bodies.edge` also starts at w0.
    """
    gap = -math.inf
    if turn != 0.0:
        gap = edges_gap(verts, edge, v0, v1, e0, turn, others, w0, w1)
    if other_turn != 0.0:
        gap = max(gap, edges_gap(others, edge, w0, w1, w0, other_turn, verts, v0, v1))
    if gap > 0.0 or (turn != 0.0 and other_turn != 0.0):
        return gap
    # One polygon may contain the other without any crossing of edges.
    if point_in_polygon(others, w0, w1, verts[v0, 0], verts[v0, 1]):
        return -CONTACT
    ax, ay = others[w1 - 1, 0], others[w1 - 1, 1]

    for w in range(w0, w1):
        bx, by = others[w, 0], others[w, 1]
        if polygon_hits_segment(verts, v0, v1, ax, ay, bx, by):
            return -CONTACT
        ax, ay = bx, by

    return CONTACT
