"""Tasks from paths in the plane: division into sectors, and their conflicts.

Two sectors conflict if the disks that are swept along them overlap. The disks overlap
if the pieces of the two paths are closer than the sum of the radii. Shapely finds the
pairs (STRtree).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from botyard.errors import BudgetError, MapError, WorldError
from botyard.extras import lacking
from botyard.formats import svg
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.numerics import elementwise
from botyard.numerics.elementary import acos
from botyard.traffic.motion import Path2
from botyard.traffic.task import F8, I8, Task, TaskError, Vehicle

CHORD_TOLERANCE: Final = 0.01
"""Chord tolerance: greatest distance between a curve and its polyline, m."""
SEGMENTS_PER_CURVE: Final = 32
"""Smallest number of line segments that approximate one curve of a drawing."""
_MAX_HALVINGS: Final = 20
_SEARCH_CHUNK: Final = 64
"""Number of pieces to search for in one call.

The result of a call has at most this many rows per piece of the other path.
"""


def arc(
    centre: tuple[float, float],
    radius: float,
    start: float,
    sweep: float,
    tolerance: float = CHORD_TOLERANCE,
) -> F8:
    """Approximate a circular arc by a polyline.

    Parameters
    ----------
    centre : (float, float)
        Centre x, y, m.
    radius : float
        Radius, m.
    start, sweep : float
        Angle of the start, and angle covered, counter-clockwise; rad.
    tolerance : float
        Largest distance between arc and polyline, m: r (1 − cos(step / 2)).

    Returns
    -------
    (k, 2) float64
        Points from the start to the end of the arc, m.
    """
    step = 2.0 * acos(max(-1.0, 1.0 - min(tolerance, radius) / radius))
    angles = start + sweep * np.linspace(
        0.0, 1.0, max(2, math.ceil(abs(sweep) / step) + 1)
    )
    c, s = elementwise.cosine_sine(angles)
    return np.stack([centre[0] + radius * c, centre[1] + radius * s], axis=1)


def spline(points: F8, samples: int = 24) -> F8:
    """Return a centripetal Catmull–Rom spline through points as a polyline.

    E. Catmull, R. Rom, "A class of local interpolating splines", 1974. Knots by the
    square root of the distances avoid loops (C. Yuksel, S. Schaefer, J. Keyser,
    "Parameterization and applications of Catmull–Rom curves", 2011).

    Parameters
    ----------
    points : (n, 2) array
        Points, m; two points give a straight line.
    samples : int
        Number of segments between two points.

    Returns
    -------
    (k, 2) float64
        Points of the polyline, m, with all of `points`.
    """
    points = np.asarray(points, np.float64)
    if len(points) < 3:
        return points
    # The spline passes only through inner points, so both ends get a mirrored
    # neighbour.
    padded = np.concatenate(
        [[2 * points[0] - points[1]], points, [2 * points[-1] - points[-2]]]
    )
    out = [points[:1]]
    for p0, p1, p2, p3 in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        t0 = 0.0
        t1, t2, t3 = np.cumsum(
            [
                math.sqrt(max(float(elementwise.hypot(*(b - a))), 1e-12))
                for a, b in ((p0, p1), (p1, p2), (p2, p3))
            ]
        )
        t = np.linspace(t1, t2, samples + 1)[1:, None]
        a1 = (t1 - t) / (t1 - t0) * p0 + (t - t0) / (t1 - t0) * p1
        a2 = (t2 - t) / (t2 - t1) * p1 + (t - t1) / (t2 - t1) * p2
        a3 = (t3 - t) / (t3 - t2) * p2 + (t - t2) / (t3 - t2) * p3
        b1 = (t2 - t) / (t2 - t0) * a1 + (t - t0) / (t2 - t0) * a2
        b2 = (t3 - t) / (t3 - t1) * a2 + (t - t1) / (t3 - t1) * a3
        out.append((t2 - t) / (t2 - t1) * b1 + (t - t1) / (t2 - t1) * b2)

    return np.concatenate(out)


def _shapely() -> Any:
    try:
        import shapely
    except ImportError:
        raise WorldError(lacking("traffic on paths in the plane", "traffic")) from None

    return shapely


def _overlap(a: Any, b: Any, reach: F8 | float) -> Any:
    """Return whether disks that are swept along two lines overlap.

    Parameters
    ----------
    a, b : linestring, or arrays of them
        Lines of Shapely, m, compared pair by pair.
    reach : float or (n,) float64
        Sum of the radii of each pair, m. Disks that only touch do not overlap.
    """
    return _shapely().distance(a, b) < reach - 1e-9


class SearchLimit:
    """Limit of a search for conflicts.

    Parameters
    ----------
    pairs : int
        Largest number of pairs of pieces to compare; about 0.4 µs each.
    """

    def __init__(self, pairs: int) -> None:
        self.pairs = self._left = pairs

    def take(self, pairs: int) -> None:
        """Count pairs that are about to be compared.

        Raises
        ------
        TaskError
            The limit is exceeded.
        """
        self._left -= pairs
        if self._left < 0:
            raise TaskError(
                f"expected at most {self.pairs} pairs of pieces of paths that "
                "are near each other, found more"
            )


class SweptPath:
    """Index of the pieces of one path, to find pieces of other paths that come too close.

    Parameters
    ----------
    path : Path2
        Path of the robot in the plane.
    breaks : array
        Borders of its pieces, m along it, from 0 to its length.
    radius : float
        Radius of the disk that is swept along it, m.
    """

    def __init__(self, path: Path2, breaks: F8, radius: float) -> None:
        self._lines = _Pieces([path], [breaks]).lines
        self._radius = radius
        self._tree = _shapely().STRtree(self._lines)
        self._low, self._high = path.corners.min(axis=0), path.corners.max(axis=0)

    def conflicts(self, other: SweptPath, limit: SearchLimit, first: int = 0) -> I8:
        """Find the pieces that come too close to pieces of another path.

        Parameters
        ----------
        other : SweptPath
            The other path.
        limit : SearchLimit
            Counts the compared pairs.
        first : int
            Number of the first piece of this path to search for.

        Returns
        -------
        (m, 2) int64 array
            Piece of this path, piece of the other path; sorted.

        Raises
        ------
        TaskError
            The limit is exceeded.
        """
        shapely, reach = _shapely(), self._radius + other._radius
        found = [np.zeros((0, 2), np.int64)]
        # Most paths of a large task are far apart; their bounding boxes show this at
        # once.
        if (self._low - other._high > reach).any() or (
            other._low - self._high > reach
        ).any():
            return found[0]

        for begin in range(first, len(self._lines), _SEARCH_CHUNK):
            lines = self._lines[begin : begin + _SEARCH_CHUNK]
            low_x, low_y, high_x, high_y = shapely.bounds(lines).T
            a, b = other._tree.query(
                shapely.box(
                    low_x - reach, low_y - reach, high_x + reach, high_y + reach
                )
            )
            # Count before the distances are computed: they cost most of the time.
            limit.take(len(a))
            near = _overlap(lines[a], other._lines[b], reach)
            found.append(np.stack([a[near] + begin, b[near]], axis=1).astype(np.int64))

        pairs = np.concatenate(found)
        return pairs[np.lexsort(pairs.T[::-1])]


class _Pieces:
    """Pieces of paths as Shapely linestrings.

    Parameters
    ----------
    paths : sequence of Path2
        Paths to divide into pieces.
    breaks : list of arrays
        Borders of the pieces of each path, m along it, from 0 to its length.
    """

    def __init__(self, paths: Sequence[Path2], breaks: list[F8]) -> None:
        shapely = _shapely()
        coords, index, owner, count = [], [], [], 0
        for i, (path, cuts) in enumerate(zip(paths, breaks, strict=True)):
            places = np.unique(np.concatenate([path.along, cuts]))
            points = path.at(places)
            begin, end = (
                np.searchsorted(places, cuts[:-1]),
                np.searchsorted(places, cuts[1:]),
            )
            sizes = end - begin + 1
            rows = (
                np.repeat(begin, sizes)
                + np.arange(sizes.sum())
                - np.repeat(np.cumsum(sizes) - sizes, sizes)
            )
            coords.append(points[rows])
            index.append(np.repeat(np.arange(count, count + len(sizes)), sizes))
            owner.append(np.full(len(sizes), i))
            count += len(sizes)

        self.lines = shapely.linestrings(
            np.concatenate(coords), indices=np.concatenate(index)
        )
        self.owner = np.concatenate(owner)

    def close(self, radii: F8, limit: SearchLimit | None = None) -> tuple[I8, I8]:
        """Return pairs of pieces of different paths whose swept disks overlap.

        Parameters
        ----------
        radii : (p,) float64
            Radius of the disk of each path, m.
        limit : SearchLimit, optional
            Counts the compared pairs.

        Returns
        -------
        a, b : (m,) int64
            Indices of the pieces. Each pair occurs once, the lower index first.

        Raises
        ------
        TaskError
            The limit is exceeded.
        """
        shapely = _shapely()
        tree = shapely.STRtree(self.lines)
        own = radii[self.owner]
        # The tree takes one distance per piece, so it searches with the largest other
        # radius.
        distance = own + float(radii.max(initial=0.0))
        # Without a limit all pieces are searched for in one call.
        size = len(own) if limit is None else _SEARCH_CHUNK
        found = [np.zeros((2, 0), np.int64)]
        for i in range(0, len(own), size):
            pairs = tree.query(
                self.lines[i : i + size],
                predicate="dwithin",
                distance=distance[i : i + size],
            )
            if limit is not None:
                limit.take(pairs.shape[1])
            found.append(pairs + np.array([[i], [0]]))

        a, b = np.concatenate(found, axis=1)
        some = (a < b) & (self.owner[a] != self.owner[b])
        a, b = a[some], b[some]
        near = _overlap(self.lines[a], self.lines[b], own[a] + own[b])
        return a[near].astype(np.int64), b[near].astype(np.int64)


def task_of_paths(
    paths: Sequence[F8],
    vehicles: Sequence[Vehicle] | Vehicle | None = None,
    *,
    longest: float = 8.0,
    shortest: float | None = None,
    name: str = "paths",
    limit: SearchLimit | None = None,
) -> Task:
    """Divide paths into sectors, and find the conflicts.

    Paths start as pieces of at most `longest`. A piece that comes too close to another
    path is halved until its halves would be shorter than `shortest`. Adjacent pieces
    without conflicts are merged again.

    Parameters
    ----------
    paths : sequence of (k, 2) arrays
        Corners of each path, m; see `arc` and `spline` for curves.
    vehicles : Vehicle or sequence of Vehicle, optional
        Radius and motion of all robots, or of each robot.
    longest, shortest : float
        Greatest length of the initial pieces, and smallest length of a halved piece, m. By default
        the smallest length is the robot's diameter or braking distance, whichever is greater.
    limit : SearchLimit, optional
        Counts the pairs of pieces that are compared.

    Returns
    -------
    Task
        The task, with the paths as its geometry.

    Raises
    ------
    TaskError
        A path has no length; the limit is exceeded.
    WorldError
        The optional package is not installed.
    """
    usual = vehicles if isinstance(vehicles, Vehicle) else Vehicle(ends=np.ones(1))
    each = list(vehicles) if isinstance(vehicles, Sequence) else [usual] * len(paths)
    if len(each) != len(paths):
        raise TaskError(
            f"vehicles: expected one for each of {len(paths)} paths, found {len(each)}",
            name,
        )

    curves = [Path2(np.asarray(p, np.float64)) for p in paths]
    for i, curve in enumerate(curves):
        if not (
            np.isfinite(curve.corners).all()
            and len(curve.corners) > 1
            and curve.length > 0.0
        ):
            raise TaskError(f"path {i}: expected at least two different points", name)

    if not curves:
        return Task((), name=name)
    radii = np.array([v.radius for v in each])
    least = np.array(
        [shortest or max(2.0 * v.radius, v.braking_distance) for v in each]
    )
    breaks = [
        np.linspace(0.0, c.length, max(1, math.ceil(c.length / longest)) + 1)
        for c in curves
    ]
    # Twenty halvings divide any path finer than `shortest`, so this bound is never
    # reached.
    for _ in range(_MAX_HALVINGS):
        pieces = _Pieces(curves, breaks)
        a, b = pieces.close(radii, limit)
        critical = np.zeros(len(pieces.owner), np.bool_)
        critical[a] = critical[b] = True
        breaks, changed = _halved(breaks, critical, least)
        if not changed:
            break

    # Without room to stop in its first sector, a robot would enter the next one
    # without permission.
    breaks = _joined(breaks, critical, [v.radius + v.braking_distance for v in each])
    listed = _conflicts(curves, breaks, radii)
    made = tuple(
        replace(v, ends=cuts[1:], path=c.corners, start=0.0)
        for v, cuts, c in zip(each, breaks, curves, strict=True)
    )
    return Task(made, listed, (), name)


def _conflicts(curves: Sequence[Path2], breaks: list[F8], radii: F8) -> I8:
    """Return the conflicts of given sectors, in the form of `Task.listed`.

    Parameters
    ----------
    curves : sequence of Path2
        The n paths.
    breaks : list of (k,) float64
        Borders of the sectors of each path, m, with both ends.
    radii : (n,) float64
        Radius of each robot, m.

    Returns
    -------
    (m, 4) int64
        Robot, sector, other robot, other sector; each conflict from both sides, sorted.
    """
    pieces = _Pieces(curves, breaks)
    a, b = pieces.close(radii)
    first = np.concatenate([[0], np.cumsum([len(c) - 1 for c in breaks])])
    ia, ib = pieces.owner[a], pieces.owner[b]
    rows = np.stack([ia, a - first[ia], ib, b - first[ib]], axis=1)
    listed: I8 = np.concatenate([rows, rows[:, [2, 3, 0, 1]]]).astype(np.int64)
    return listed[np.lexsort(listed.T[::-1])]


def _halved(breaks: list[F8], critical: Any, least: F8) -> tuple[list[F8], bool]:
    """Halve critical pieces that are long enough.

    Parameters
    ----------
    breaks : list of (k,) float64
        Borders of the pieces of each path, m, with both ends.
    critical : (p,) bool
        Whether each piece of all paths, one path after the other, has a conflict.
    least : (n,) float64
        Least length of a half on each path, m.

    Returns
    -------
    (list of arrays, bool)
        Borders of the pieces, and whether any piece was halved.
    """
    out, at, changed = [], 0, False
    for cuts, shortest in zip(breaks, least.tolist(), strict=True):
        lengths = np.diff(cuts)
        split = critical[at : at + len(lengths)] & (lengths >= 2.0 * shortest)
        at += len(lengths)
        middles = (cuts[:-1] + 0.5 * lengths)[split]
        changed |= bool(split.any())
        out.append(np.sort(np.concatenate([cuts, middles])))

    return out, changed


def _joined(breaks: list[F8], critical: Any, first: Sequence[float]) -> list[F8]:
    """Remove borders between two free pieces, and borders close to the start.

    A border close to the start makes the first sector too short to stop in.

    Parameters
    ----------
    breaks : list of (k,) float64
        Borders of the pieces of each path, m, with both ends.
    critical : (p,) bool
        Whether each piece of all paths, one path after the other, has a conflict.
    first : sequence of float
        Least length of the first sector of each path, m.
    """
    out, at = [], 0
    for cuts, room in zip(breaks, first, strict=True):
        n = len(cuts) - 1
        free = ~critical[at : at + n]
        at += n
        keep = np.ones(n + 1, np.bool_)
        keep[1:-1] = ~(free[:-1] & free[1:])
        keep[1:-1] &= cuts[1:-1] >= room
        out.append(cuts[keep])

    return out


def paths_of_svg(
    path: str | Path, scale: float = 0.01, budget: Budget = Budget()
) -> list[F8]:
    """Read the lines of an SVG drawing as paths.

    Each path, line and polyline of the drawing gives one path.

    Parameters
    ----------
    path : str or Path
        File to read.
    scale : float
        Size of a unit of the drawing, m.
    budget : Budget
        Reading budget of the drawing.

    Returns
    -------
    list of (k, 2) float64
        Points of each path, m, y up.

    Raises
    ------
    TaskError
        The file cannot be read, has no lines, or exceeds the budget.
    """
    meter = Meter(budget, str(path), TaskError)
    data = read_bytes(path, meter, TaskError)
    try:
        layers = svg.lines_of(
            data, meter, CHORD_TOLERANCE / scale, least=SEGMENTS_PER_CURVE
        ).layers
    except BudgetError:
        raise
    except MapError as error:
        raise TaskError(error.reason, path, error.line) from None

    found = []
    for corners in (line for lines in layers.values() for line in lines):
        line = np.array(corners) * np.array([scale, -scale])
        # Repeated points have no direction, so they are dropped.
        line = line[
            np.concatenate([[True], elementwise.hypot(*np.diff(line, axis=0).T) > 1e-9])
        ]
        if len(line) > 1 and np.isfinite(line).all():
            found.append(line)

    if not found:
        raise TaskError("expected lines to drive along, found none", path)
    return found


__all__ = ["SearchLimit", "SweptPath", "arc", "paths_of_svg", "spline", "task_of_paths"]
