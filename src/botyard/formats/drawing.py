"""Common parts of the readers of drawings, SVG and DXF.

Every line, polyline, arc, curve and block is a wall. Words in the name of a layer (SVG:
label or id of a group) set the visibility of its walls: ``glass`` or ``nolaser``
(invisible to lasers), ``nosonar``, ``reflector`` (bright for lasers), ``noobstacle``
(robots drive through), ``ignore`` (not read at all). For example, ``windows_glass`` is
solid, and only sonar sees it. Layers that are off or frozen are not read either.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import MapError
from botyard.extras import lacking
from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene, SpecialWalls
from botyard.model.world import World
from botyard.numerics.elementary import acos

DEFAULT_UNIT: Final = 0.01
"""Default size of a drawing's unit, m: centimetres."""
MAX_SAGITTA: Final = 0.005
"""Largest distance of a curve from the chords that approximate it, m."""
MAX_CHORDS: Final = 400
SITE_GRID: Final = 1000.0
"""Step by which a drawing far from its origin is moved, m.

With whole steps, the last digits of coordinates stay the same.
"""
GRID_REACH: Final = 1e8
"""Largest coordinate of a national grid, m.

With the number of a zone in front, coordinates are up to 6·10⁷.
"""
FloatPair = tuple[float, float]
Line = list[FloatPair]
Area = Sequence[Line]
F8 = NDArray[np.float64]
_WORD = re.compile(r"[a-z]+")


def layer_returns(name: str) -> Returns | None:
    """Return the visibility of walls on a layer, by the layer's name; None: the layer is
    ignored.
    """
    words = set(_WORD.findall(name.lower()))
    if words & {"ignore", "defpoints"}:
        return None
    laser = 0 if words & {"glass", "nolaser"} else 2 if "reflector" in words else 1
    return Returns(
        obstacle="noobstacle" not in words, laser=laser, sonar="nosonar" not in words
    )


def chords(length: float, turn: float) -> int:
    """Return the number of chords that approximate a curve.

    Parameters
    ----------
    length : float
        Length of the curve, m.
    turn : float
        Angle by which its direction turns, rad, not negative.

    Returns
    -------
    int
        1 to `MAX_CHORDS`, so that a chord is at most `MAX_SAGITTA` from an arc of that
        length and angle.
    """
    # An arc of radius r with chords of angle a has the sagitta r·(1 − cos(a/2)).
    radius = length / max(turn, 1e-9)
    step = 2.0 * acos(max(0.0, 1.0 - MAX_SAGITTA / max(radius, MAX_SAGITTA)))
    return max(1, min(MAX_CHORDS, math.ceil(turn / max(step, 1e-3))))


def clipped(
    lines: Iterable[Line],
    areas: Sequence[Area],
    meter: Meter,
    *,
    outside: bool = False,
    even: Sequence[bool] = (),
) -> list[Line]:
    """Return the pieces of lines inside (or outside) of areas.

    A piece along a border counts as inside.

    Parameters
    ----------
    lines : iterable of lines
        Corners of each line.
    areas : sequence of areas
        Areas of one or more closed outlines; the nonzero rule defines their inside.
    meter : Meter
        Counts the work.
    outside : bool
        Whether to keep the pieces outside of all areas instead.
    even : sequence of bool
        For each area, whether the evenodd rule defines its inside instead.
    """
    borders = [
        (_edges(outlines), k < len(even) and even[k])
        for k, outlines in enumerate(areas)
    ]
    pieces: list[Line] = []
    for line in lines:
        meter.add(
            "entities",
            1
            + len(line) * sum(len(edges) for edges, _ in borders) // _EDGES_PER_ENTITY,
        )
        piece: Line = []
        for start, end in itertools.pairwise(line):
            for a, b in _kept_pieces(np.array(start), np.array(end), borders, outside):
                if not piece or piece[-1] != a:
                    if len(piece) > 1:
                        pieces.append(piece)
                    piece = [a]

                piece.append(b)

        if len(piece) > 1:
            pieces.append(piece)

    return pieces


_EDGES_PER_ENTITY: Final = 100
"""Number of comparisons with border edges that take as long as the reading of one entity."""
_ON_BORDER: Final = 1e-9
"""Tolerance within which a point counts as on a border, as a fraction of the border's size.

The tolerance covers rounding errors.
"""


def _edges(outlines: Sequence[Line]) -> F8:
    """Return the edges of closed outlines.

    Parameters
    ----------
    outlines : sequence of lines
        Corners of each outline; the last one is joined to the first one.

    Returns
    -------
    (n, 4) float64
        Edges x1, y1, x2, y2.
    """
    rings = [np.asarray(o, np.float64).reshape(-1, 2) for o in outlines if len(o) > 1]
    return np.concatenate(
        [np.concatenate([r, np.roll(r, -1, axis=0)], axis=1) for r in rings]
        or [np.zeros((0, 4))]
    )


def _kept_pieces(
    start: F8, end: F8, borders: Sequence[tuple[F8, bool]], outside: bool
) -> list[tuple[FloatPair, FloatPair]]:
    """Return the pieces of a line segment that are kept.

    Parameters
    ----------
    start, end : (2,) float64
        Ends of the segment.
    borders : sequence of (edges, bool)
        Edges of each area, (n, 4), and whether the evenodd rule defines its inside.
    outside : bool
        Whether the pieces outside of all areas are kept, instead of the pieces in any
        area.

    Returns
    -------
    list of (point, point)
        Ends of the pieces, from `start` to `end`.
    """
    cuts = np.unique(
        np.concatenate([[0.0, 1.0], *(_crossings(start, end, e) for e, _ in borders)])
    )
    # At a corner, the line crosses two edges in one point.
    cuts = cuts[np.concatenate([[True], np.diff(cuts) > _ON_BORDER])]
    kept: list[tuple[float, float]] = []
    for a, b in itertools.pairwise(cuts.tolist()):
        middle = start + (a + b) / 2.0 * (end - start)
        if any(_is_inside(middle, edges, odd) for edges, odd in borders) != outside:
            # Adjacent kept pieces are joined again.
            if kept and kept[-1][1] == a:
                a = kept.pop()[0]
            kept.append((a, b))

    def at(share: float) -> FloatPair:
        x, y = (
            start
            if share == 0.0
            else end
            if share == 1.0
            else start + share * (end - start)
        )
        return float(x), float(y)

    return [(at(a), at(b)) for a, b in kept]


def _crossings(start: F8, end: F8, edges: F8) -> F8:
    """Return the positions at which a line segment crosses edges.

    For parallel edges, their start and end count.

    Parameters
    ----------
    start, end : (2,) float64
        Ends of the segment.
    edges : (n, 4) float64
        Edges x1, y1, x2, y2.

    Returns
    -------
    (k,) float64
        Fractions of the distance from `start` to `end`, between 0 and 1, in no order.
    """
    d, e, to = end - start, edges[:, 2:] - edges[:, :2], edges[:, :2] - start
    turn = d[0] * e[:, 1] - d[1] * e[:, 0]
    length = float(d[0] * d[0] + d[1] * d[1])
    # Parallel edges divide by zero; their results are not used.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (to[:, 0] * e[:, 1] - to[:, 1] * e[:, 0]) / turn
        along = (to[:, 0] * d[1] - to[:, 1] * d[0]) / turn
        far = edges[:, 2:] - start
        ends = (
            np.concatenate(
                [to[:, 0] * d[0] + to[:, 1] * d[1], far[:, 0] * d[0] + far[:, 1] * d[1]]
            )
            / length
        )

    crossed = share[(along >= -_ON_BORDER) & (along <= 1.0 + _ON_BORDER)]
    # Edges along the line have no single crossing, so their ends divide it.
    parallel = np.tile(
        np.abs(turn) <= _ON_BORDER * np.sqrt(length * (e * e).sum(axis=1)), 2
    )
    found = np.concatenate([crossed, ends[parallel]])
    return found[(found > _ON_BORDER) & (found < 1.0 - _ON_BORDER)]


def _is_inside(point: F8, edges: F8, odd: bool) -> bool:
    """Return whether a point is inside of closed outlines, or on one of their edges.

    Parameters
    ----------
    point : (2,) float64
        Point.
    edges : (n, 4) float64
        Edges of closed outlines, x1, y1, x2, y2.
    odd : bool
        Whether the evenodd rule defines the inside; otherwise the nonzero rule does.
    """
    if not len(edges):
        return False
    (x0, y0, x1, y1), (x, y) = edges.T, point
    side = (x1 - x0) * (y - y0) - (x - x0) * (y1 - y0)
    # Winding number: crossings of a ray to the right, upwards and downwards.
    up = int(((y0 <= y) & (y1 > y) & (side > 0.0)).sum())
    down = int(((y0 > y) & (y1 <= y) & (side < 0.0)).sum())
    if (up + down) % 2 if odd else up != down:
        return True

    d = edges[:, 2:] - edges[:, :2]
    square = (d * d).sum(axis=1)
    share = np.clip(
        ((point - edges[:, :2]) * d).sum(axis=1) / np.maximum(square, 1e-300), 0.0, 1.0
    )
    away = point - edges[:, :2] - share[:, None] * d
    near = _ON_BORDER * (
        float(np.ptp(edges.reshape(-1, 2), axis=0).max()) + float(np.abs(point).max())
    )
    return bool(((away * away).sum(axis=1) <= near * near).any())


def site_of(
    low: FloatPair, high: FloatPair, source: Source, options: Options
) -> FloatPair:
    """Return the offset that moves coordinates of a national grid to the origin, m.

    The offset is whole kilometres, or 0 if no move is needed. Coordinates of surveyors
    (UTM, Gauss–Krüger) are millions of metres from their origin, which is farther than
    a world extends.

    Parameters
    ----------
    low, high : (float, float)
        Minimum and maximum x and y, m.
    source : Source
        Drawing, for the warning.
    options : Options
        Limits, and receiver of the warning.
    """
    most = options.budget.extent
    across, far = max(high[0] - low[0], high[1] - low[1]), max(map(abs, (*low, *high)))
    # A drawing that is too wide, near enough to the origin, or farther away than any
    # grid is not moved. The reader refuses a drawing that is too large.
    if not across <= most or far <= most or far > GRID_REACH:
        return 0.0, 0.0
    x, y = (math.floor(v / SITE_GRID) * SITE_GRID for v in low)
    options.warn(
        f"{source.name}: the drawing is {far:.0f} m from its origin, so it was moved "
        f"by ({-x:.0f}, {-y:.0f}) m"
    )
    return x, y


def to_world(
    layers: dict[str, list[Line]],
    source: Source,
    unit: float,
    options: Options,
    meter: Meter,
) -> World:
    """Convert the lines of each layer to walls, grouped by layer.

    Parameters
    ----------
    layers : dict of str to list of lines
        Corners of the lines of each layer, in units of the drawing, y upwards.
    source : Source
        Drawing, for names and messages.
    unit : float
        Length of a unit of the drawing, m.
    options : Options
        Limits, and receiver of warnings.
    meter : Meter
        Limit of the extent.

    Raises
    ------
    MapError
        There are no lines.
    BudgetError
        The walls are too far apart, or too far from the origin.
    """
    kept: list[tuple[Returns, list[np.ndarray[Any, np.dtype[np.float64]]]]] = []
    lost = 0
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for name, lines in layers.items():
        seen = layer_returns(name)
        if seen is None:
            continue
        found = []
        for line in lines:
            # Very large numbers become infinite when they are scaled, so they are
            # checked after the scaling.
            points = np.asarray(line, np.float64).reshape(-1, 2) * unit
            if not np.isfinite(points).all():
                lost += 1
            elif len(points) > 1:
                low, high = (
                    np.minimum(low, points.min(axis=0)),
                    np.maximum(high, points.max(axis=0)),
                )
                found.append(points)

        kept.append((seen, found))

    segments: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    special: list[SpecialWalls] = []
    count = 0
    # The offset and the extent depend on all lines, so walls are made in a second pass.
    site: FloatPair = (0.0, 0.0)
    if np.isfinite(low).all():
        site = site_of(
            (float(low[0]), float(low[1])),
            (float(high[0]), float(high[1])),
            source,
            options,
        )
        meter.check(
            "extent",
            float(
                max(
                    (high - low).max(),
                    np.abs(low - site).max(),
                    np.abs(high - site).max(),
                )
            ),
        )

    for seen, found in kept:
        first = count
        for points in found:
            points = points - site
            segments.append(np.concatenate([points[:-1], points[1:]], axis=1))
            count += len(points) - 1

        if seen != Returns() and count > first:
            special.append(SpecialWalls(first=first, last=count, returns=seen))

    if lost:
        options.warn(
            f"{source.name}: {lost} lines are ignored: their corners are not "
            "finite numbers"
        )

    if not segments:
        raise MapError(
            "expected lines, polylines, arcs or curves, found none", source.name
        )

    walls = np.concatenate(segments)
    scene = Scene(
        name=source.stem,
        source=source.name,
        segments=walls,
        special_walls=tuple(special),
    )
    options.warn(
        f"{source.name}: {count} walls from {len(layers)} layer{'s' if len(layers) > 1 else ''}"
    )
    return World(scene=scene)


def missing(source: Source) -> MapError:
    """Return the error that the extra "drawings" is not installed; the caller raises it."""
    return MapError(lacking("a drawing", "drawings"), source.name)


__all__ = [
    "DEFAULT_UNIT",
    "MAX_SAGITTA",
    "Area",
    "Line",
    "chords",
    "clipped",
    "layer_returns",
    "missing",
    "site_of",
    "to_world",
]
