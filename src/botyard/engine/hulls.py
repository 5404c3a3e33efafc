"""Convex pieces of outlines, for the contacts of bodies with mass.

Polygons are cut into triangles, which are joined as long as they stay convex.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from botyard.engine.build import convexity
from botyard.geometry import Outline
from botyard.numerics.elementary import total

# Rounding of coordinates in metres gives cross products of about this size.
FLAT: Final = 1e-12
"""Cross product of two edges below which their corner counts as straight, m²."""
_Point = tuple[float, float]


def _cross(o: _Point, a: _Point, b: _Point) -> float:
    """Return the cross product of (a − o) and (b − o), m²; positive for a left turn."""
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def convex_hull(points: Outline) -> Outline:
    """Return the corners of the convex hull, counter-clockwise, without points on its edges.

    The algorithm is Andrew's monotone chain (1979). Points on a line give two corners.

    Parameters
    ----------
    points : Outline
        Points (x, y) in any order, m. Repeated ones count once.

    Returns
    -------
    Outline
        Corners; the first one has the least x. Two for points on a line, fewer for
        fewer points.
    """
    # The algorithm needs sorted points; repeated ones would give edges without length.
    unique = sorted({(float(x), float(y)) for x, y in points})
    if len(unique) < 3:
        return tuple(unique)
    halves: list[list[_Point]] = []

    for ordered in (unique, unique[::-1]):
        half: list[_Point] = []
        for point in ordered:
            while len(half) > 1 and _cross(half[-2], half[-1], point) <= FLAT:
                half.pop()
            half.append(point)

        # The last point starts the other half.
        halves.append(half[:-1])

    return tuple(halves[0] + halves[1])


def _triangles(corners: list[_Point]) -> list[list[int]]:
    """Return triangles of a simple polygon, counter-clockwise, as indices of corners.

    The method is ear clipping (Meisters, 1975).

    Parameters
    ----------
    corners : list of (x, y)
        Corners of the polygon, counter-clockwise, m.

    Returns
    -------
    list of list of int
        Indices of corners, three each. The last one may have more if the polygon
        crosses itself.
    """
    left, found = list(range(len(corners))), []
    while len(left) > 3:
        for k in range(len(left)):
            a, b, c = left[k - 1], left[k], left[(k + 1) % len(left)]
            if _cross(corners[a], corners[b], corners[c]) <= FLAT:
                continue
            # A corner within the triangle would be cut off.
            inside = (
                p
                for p in left
                if p not in (a, b, c)
                and _cross(corners[a], corners[b], corners[p]) >= 0.0
                and _cross(corners[b], corners[c], corners[p]) >= 0.0
                and _cross(corners[c], corners[a], corners[p]) >= 0.0
            )

            if next(inside, None) is None:
                found.append([a, b, c])
                del left[k]
                break
        else:
            # The rest crosses itself or has no area: its hull is taken as a whole.
            break

    return [*found, left]


def _joined(a: list[int], b: list[int], corners: list[_Point]) -> list[int] | None:
    """Return two polygons as one if they share an edge and the union is convex.

    Parameters
    ----------
    a, b : list of int
        Convex polygons, counter-clockwise, as indices of corners.
    corners : list of (x, y)
        All corners, m.

    Returns
    -------
    list of int or None
        Polygon, counter-clockwise; None if they share no edge or the union is not
        convex.
    """
    for k, first in enumerate(a):
        second = a[(k + 1) % len(a)]
        for m, other in enumerate(b):
            if other == second and b[(m + 1) % len(b)] == first:
                # From the second corner of the shared edge round to the first
                whole = a[k + 1 :] + a[: k + 1]
                whole += [b[(m + 2 + n) % len(b)] for n in range(len(b) - 2)]
                size = len(whole)
                turns = (
                    _cross(*(corners[whole[(n + i) % size]] for i in range(3)))
                    for n in range(size)
                )
                return whole if all(turn >= -FLAT for turn in turns) else None

    return None


@lru_cache(maxsize=1024)
def convex_pieces(part: Outline) -> tuple[Outline, ...]:
    """Return convex pieces of a polygon, each counter-clockwise.

    The algorithm is by Hertel and Mehlhorn (1983). A polygon without area gives its two
    ends, or nothing.

    Parameters
    ----------
    part : Outline
        Corners (x, y) of a simple polygon in any direction, m.
    """
    # Most outlines are convex, and need no triangles.
    if convexity(part) != 0.0:
        return (convex_hull(part),)
    # `dict.fromkeys` drops repeated corners and keeps the order.
    corners = [(float(x), float(y)) for x, y in dict.fromkeys(part)]
    area = total(
        x0 * y1 - x1 * y0
        for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True)
    )
    if area < 0.0:
        # Ear cutting and joining assume counter-clockwise corners.
        corners.reverse()

    pieces = _triangles(corners)
    k = 0
    while k < len(pieces):
        for m in range(k + 1, len(pieces)):
            whole = _joined(pieces[k], pieces[m], corners)
            if whole is not None:
                pieces[k] = whole
                del pieces[m]
                break
        else:
            k += 1

    hulls = (convex_hull(tuple(corners[c] for c in piece)) for piece in pieces)
    # A piece that is a single point touches nothing.
    return tuple(hull for hull in hulls if len(hull) > 1)


__all__ = ["convex_hull", "convex_pieces"]
