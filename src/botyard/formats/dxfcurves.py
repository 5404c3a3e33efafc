"""Points on the curves of DXF drawings; the size of a curve is checked before it is divided."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from botyard.errors import MapError
from botyard.formats.budget import Meter

_PIECES: Final = 4
"""Smallest number of pieces of a spline between two knots."""
MAX_DEGREE: Final = 25
"""Highest degree of a spline that is read.

The time to evaluate a spline grows with the square of its degree; drawing programs use
at most 11.
"""
MAX_FIT_POINTS: Final = 1000
"""Largest number of fit points of a spline without control points.

The control points are computed with a square matrix of that size.
"""
FIT_CELLS_PER_ENTITY: Final = 20
"""Number of matrix cells (see `MAX_FIT_POINTS`) that take as long as the reading of one entity."""


def spline_points(spline: Any, distance: float) -> Iterator[Any]:
    """Yield points of a spline, whose chords approximate it.

    With knots t₀ to tₘ and degree p, the spline is the part from t_p to t_{m−p} (L. Piegl, W.
    Tiller, "The NURBS Book", 1997, chapter 2). The library uses all knots instead, which gives a
    wrong result for closed splines: their first and last p + 1 knots differ.

    Parameters
    ----------
    spline : Spline
        Entity of ezdxf that `is_usable` has accepted.
    distance : float
        Largest distance of the spline from a chord, in units of the drawing.
    """
    from ezdxf.math import distance_point_line_3d

    tool = spline.construction_tool()
    knots = tool.knots()
    low, high = knots[tool.degree], knots[tool.count]
    at = tool.evaluator.point
    start = at(low)
    yield start
    for t0, t1 in itertools.pairwise(
        sorted({low, high, *(t for t in knots if low < t < high)})
    ):
        # Without these pieces, a symmetric bend could look like a straight line.
        ends = [t0 + (t1 - t0) * k / _PIECES for k in range(1, _PIECES)]
        pending = [(t, at(t)) for t in (t1, *reversed(ends))]
        t = t0
        while pending:
            after, end = pending[-1]
            middle = (t + after) / 2.0
            point = at(middle)
            if (
                t < middle < after
                and not end.isclose(start)
                and distance_point_line_3d(point, start, end) >= distance
            ):
                pending.append((middle, point))
                continue

            pending.pop()
            yield end
            t, start = after, end


def point_cost(entity: Any) -> int:
    """Return the cost of computing one point of a curve, in entities of the budget.

    The cost for a spline is about its degree.
    """
    kind = entity.dxftype()
    return (
        1 + int(entity.dxf.degree)
        if kind in ("SPLINE", "HELIX")
        else 2
        if kind == "ELLIPSE"
        else 1
    )


def is_usable(entity: Any, size: float, meter: Meter) -> bool:
    """Return whether a curve can be approximated by chords, because its numbers are finite.

    Parameters
    ----------
    entity : DXFEntity
        Entity of ezdxf. Entities other than circles, arcs, ellipses and splines are
        usable.
    size : float
        Length of a unit of the drawing, m.
    meter : Meter
        Limits of the extent, and of the work that fit points cause.

    Raises
    ------
    MapError
        The curve is too complex.
    BudgetError
        The curve is too large.
    """
    kind, dxf = entity.dxftype(), entity.dxf
    if kind in ("CIRCLE", "ARC"):
        reach, others = abs(dxf.radius), dxf.center.x + dxf.center.y
    elif kind == "ELLIPSE":
        reach, others = (
            dxf.major_axis.magnitude * max(1.0, abs(dxf.ratio)),
            dxf.center.x + dxf.center.y,
        )
    elif kind in ("SPLINE", "HELIX"):
        if not 1 <= dxf.degree <= MAX_DEGREE:
            raise MapError(
                f"a spline of degree {dxf.degree}: expected a degree from 1 to {MAX_DEGREE}",
                meter.path,
            )

        if not len(entity.control_points) and len(entity.fit_points) > MAX_FIT_POINTS:
            raise MapError(
                f"a spline of {len(entity.fit_points)} fit points: expected at "
                f"most {MAX_FIT_POINTS}",
                meter.path,
            )

        meter.add(
            "entities",
            len(entity.fit_points) * len(entity.fit_points) // FIT_CELLS_PER_ENTITY,
        )
        # The sum is NaN if a value is NaN or infinite.
        others = sum(abs(float(v)) * 0.0 for v in (*entity.knots, *entity.weights))
        reach = 0.0
        for points in (entity.control_points, entity.fit_points):
            for axis in range(2):
                values = [float(p[axis]) for p in points]
                reach = max(reach, max(values, default=0.0) - min(values, default=0.0))
                others += sum(v * 0.0 for v in values)
    else:
        return True

    if not math.isfinite(reach + others):
        return False
    meter.check("extent", reach * size)
    return True


def _is_near(corners: Iterable[Any], size: float, meter: Meter) -> bool:
    """Return whether all points are finite, after a check of their distance.

    Parameters
    ----------
    corners : iterable of points
        Points with `x` and `y` in units of the drawing.
    size : float
        Length of a unit of the drawing, m.
    meter : Meter
        Limit of the extent.

    Raises
    ------
    BudgetError
        The points are too far from each other.
    """
    x0 = y0 = math.inf
    x1 = y1 = -math.inf
    for corner in corners:
        if not math.isfinite(corner.x + corner.y):
            return False
        x0, x1, y0, y1 = (
            min(x0, corner.x),
            max(x1, corner.x),
            min(y0, corner.y),
            max(y1, corner.y),
        )

    meter.check("extent", max(x1 - x0, y1 - y0, 0.0) * size)
    return True


__all__ = ["is_usable", "point_cost", "spline_points"]
