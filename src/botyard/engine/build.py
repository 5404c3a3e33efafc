"""Conversion of descriptions of bodies to arrays.

Only this module and `botyard.engine.wallgrid` know both the model and the engine's
layout.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.engine.bodyspec import BodySpec
from botyard.engine.layout import (
    F8,
    FOLLOWER,
    I8,
    LEADER,
    SLIP_COLUMNS,
    WALL,
    Bins,
    Bodies,
)
from botyard.geometry import Outline, distance
from botyard.model.robot import (
    EXACT_RAMPS,
)
from botyard.model.trailers import trailer_name
from botyard.numerics.elementary import atan2, hypot

T = TypeVar("T", bound=np.generic)
MAX_ONE_BY_ONE = 8
"""Highest number of bodies that are inserted or removed one by one.

For more bodies, `Bodies.order` or all of `Bodies` is built again.
"""


class _Polygon(NamedTuple):
    """Columns of `Bodies` for a polygon.

    The columns are `turn`, `edge`, the distance of the farthest corner from the origin, and
    half the least width, m.
    """

    turn: float
    edge: tuple[float, ...]
    far: float
    inner: float


def convexity(part: Outline) -> float:
    """Return `Bodies.turn` of a polygon.

    A polygon is convex if it turns the same way at every corner, and makes one full
    turn in total.

    Parameters
    ----------
    part : Outline
        Corners (x, y) of a polygon, m; the last one is joined to the first one.

    Returns
    -------
    float
        1 if the polygon is convex with counter-clockwise corners, −1 if convex with clockwise
        ones, 0 otherwise.
    """
    edges = [
        (b[0] - a[0], b[1] - a[1])
        for a, b in zip(part, (*part[1:], part[0]), strict=True)
    ]
    around, left, right = 0.0, True, True
    # Plain numbers, because most polygons have few corners.
    for (ax, ay), (bx, by) in zip(edges, (*edges[1:], edges[0]), strict=True):
        # The sign of the cross product is the side to which the corner turns.
        cross = ax * by - ay * bx
        around += atan2(cross, ax * bx + ay * by)
        left, right = left and cross >= 0.0, right and cross <= 0.0

    # A star turns the same way at every corner, but more than once around.
    if abs(abs(around) - 2 * math.pi) > 1e-6:
        return 0.0
    return 1.0 if left else -1.0 if right else 0.0


@lru_cache(maxsize=1024)
def _polygon(part: Outline) -> _Polygon:
    """Return the columns of a polygon. They are cached, because many robots share an outline."""
    lengths = [distance(part[v - 1], part[v]) for v in range(len(part))]
    xs, ys = zip(*part, strict=True)
    return _Polygon(
        turn=convexity(part),
        # Reciprocals save divisions in the kernel; a repeated corner has no direction.
        edge=tuple(1.0 / size if size > 0.0 else 0.0 for size in lengths),
        far=max(hypot(x, y) for x, y in part),
        # The lower bound limits the number of trials along an arc for very thin bodies.
        inner=max(0.5 * min(max(xs) - min(xs), max(ys) - min(ys)), 0.01),
    )


def build_bodies(specs: Sequence[BodySpec]) -> Bodies:
    """Return arrays of the shapes of bodies, in the given order.

    Parameters
    ----------
    specs : sequence of BodySpec
        Descriptions; their order is the order of rows.
    """
    parts = [part for spec in specs for part in spec.parts]
    drawn = list(map(_polygon, parts))
    of_bodies, at = list[list[_Polygon]](), 0
    for spec in specs:
        of_bodies.append(drawn[at : at + len(spec.parts)])
        at += len(spec.parts)

    verts: F8 = np.array([c for part in parts for c in part], np.float64).reshape(-1, 2)
    return Bodies(
        part_start=np.cumsum([0, *(len(s.parts) for s in specs)], dtype=np.int64),
        vert_start=np.cumsum([0, *map(len, parts)], dtype=np.int64),
        verts=verts,
        radius=np.array([max(p.far for p in body) for body in of_bodies], np.float64),
        inner=np.array([body[0].inner for body in of_bodies], np.float64),
        order=moving_order([spec.name for spec in specs]),
        world=np.zeros_like(verts),
        turn=np.array([p.turn for p in drawn], np.float64),
        edge=np.array([e for p in drawn for e in p.edge], np.float64),
        wheels=np.array(
            [(spec.wheel_ratio, spec.kinematics.lever) for spec in specs],
            np.float64,
        ).reshape(-1, 2),
        drift=np.array(
            [spec.odometry_drift.as_tuple() for spec in specs], np.float64
        ).reshape(-1, 4),
        slips=_slips(specs),
        # Rows of a train refer to each other: see `coupled`.
        train=np.zeros((0, 2), np.int64),
        hitch=np.zeros((0, 3)),
        trail=np.zeros((0, 6)),
        exact=np.array([spec.ramps == EXACT_RAMPS for spec in specs], np.int8),
        lead=np.zeros((len(specs), 3)),
        feels=np.array([spec.feels for spec in specs], np.int8),
        placed=np.full((len(specs), 6), np.nan),
        leeway=np.zeros(len(specs)),
        # One workspace serves all bodies, so it needs room for the one with the most
        # corners.
        scratch=np.zeros(
            (max((sum(len(p.edge) for p in body) for body in of_bodies), default=1), 2)
        ),
        near=np.zeros(len(specs), np.int64),
        ground=np.zeros((0, 3)),
    )


def _slips(specs: Sequence[BodySpec]) -> F8:
    """Return `Bodies.slips` of bodies."""
    found = _no_slips(len(specs))
    has = False
    for row, spec in enumerate(specs):
        matrix, wheels = spec.kinematics.odometry_matrix, spec.kinematics.wheels
        if matrix is not None and wheels is not None:
            found[row], has = (*matrix, wheels.slide), True

    return found if has else found[:0]


def _no_slips(n: int) -> F8:
    """Return rows of `Bodies.slips` for bodies whose odometry is exact."""
    found: F8 = np.zeros((n, SLIP_COLUMNS))
    # Columns 0, 4 and 8 are the diagonal of the matrix.
    found[:, [0, 4, 8]] = 1.0
    return found


def _joined_slips(a: Bodies, b: Bodies) -> F8:
    """Return `Bodies.slips` of two groups of bodies; one group may have no rows."""
    if not len(a.slips) and not len(b.slips):
        return a.slips
    return np.concatenate(
        [x.slips if len(x.slips) else _no_slips(len(x.radius)) for x in (a, b)]
    )


def _kept_slips(rows: F8) -> F8:
    """Return rows of `Bodies.slips`; none if all of them are exact."""
    return rows if (rows != _no_slips(len(rows))).any() else rows[:0]


def coupled(a: Bodies, specs: Sequence[BodySpec], rows: Mapping[str, int]) -> Bodies:
    """Return the shapes of bodies with the trains that they form.

    A trailer stands alone if its robot, or a trailer between them, does not exist.

    Parameters
    ----------
    a : Bodies
        Shapes of all bodies.
    specs : sequence of BodySpec
        Descriptions, by row.
    rows : mapping of str to int
        Rows by name.
    """
    n = len(specs)
    train, hitch, has = np.full((n, 2), -1, np.int64), np.zeros((n, 3)), False
    for head, spec in enumerate(specs):
        leader = head
        for k, one in enumerate(spec.trailers, start=1):
            row = rows.get(trailer_name(spec.name, k))
            if row is None or not specs[row].is_trailer:
                break
            train[leader, FOLLOWER], train[row, LEADER] = row, leader
            hitch[row] = one.hitch, one.length, one.limit
            leader, has = row, True

    if not has:
        return a
    return a._replace(train=train, hitch=hitch, trail=np.zeros((n, 6)))


def moving_order(names: Sequence[str]) -> I8:
    """Return the rows in the order in which they move.

    They move by name, so that the order of creation does not matter. Robots with
    successive names are also neighbours in memory, and often in the world. This order
    is three times as fast as a random one for 100,000 robots.

    Parameters
    ----------
    names : sequence of str
        Names of all bodies, by row.
    """
    return np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)


def insert_in_order(order: I8, names: Sequence[str], n_old: int) -> I8:
    """Return `moving_order` of `names`, given the `order` of the first `n_old` names.

    It saves a sort when few bodies are new.

    Parameters
    ----------
    order : (n_old,) int64
        Moving order of the first `n_old` bodies.
    names : sequence of str
        Names of all bodies, by row.
    n_old : int
        Number of bodies in `order`.
    """
    new = sorted(range(n_old, len(names)), key=names.__getitem__)
    # Each insertion moves the rest of the list; for many of them, sorting is faster.
    if len(new) > MAX_ONE_BY_ONE:
        return moving_order(names)
    rows = order.tolist()
    for row in new:
        insort(rows, row, key=names.__getitem__)
    return np.array(rows, np.int64)


def join_bodies(a: Bodies, b: Bodies, order: I8) -> Bodies:
    """Return the shapes of two groups of bodies, one after the other.

    With this function, adding bodies one by one costs only array copies, not a pass
    over all descriptions.

    Parameters
    ----------
    a, b : Bodies
        Shapes of the first rows, and of the rows after them.
    order : (n,) int64
        Moving order of all bodies, see `moving_order`.
    """
    return Bodies(
        # The offset 0 of the second group repeats the end of the first.
        part_start=np.concatenate([a.part_start, b.part_start[1:] + a.part_start[-1]]),
        vert_start=np.concatenate([a.vert_start, b.vert_start[1:] + a.vert_start[-1]]),
        verts=np.concatenate([a.verts, b.verts]),
        radius=np.concatenate([a.radius, b.radius]),
        inner=np.concatenate([a.inner, b.inner]),
        order=order,
        world=np.concatenate([a.world, b.world]),
        turn=np.concatenate([a.turn, b.turn]),
        edge=np.concatenate([a.edge, b.edge]),
        wheels=np.concatenate([a.wheels, b.wheels]),
        drift=np.concatenate([a.drift, b.drift]),
        slips=_joined_slips(a, b),
        train=a.train[:0],
        hitch=a.hitch[:0],
        trail=a.trail[:0],
        exact=np.concatenate([a.exact, b.exact]),
        # Lead, leeway and near are results of a step, and are computed again.
        lead=np.zeros((len(a.lead) + len(b.lead), 3)),
        feels=np.concatenate([a.feels, b.feels]),
        placed=np.concatenate([a.placed, b.placed]),
        leeway=np.zeros(len(a.leeway) + len(b.leeway)),
        scratch=np.zeros((max(len(a.scratch), len(b.scratch)), 2)),
        near=np.zeros(len(a.near) + len(b.near), np.int64),
        # The registry gives it rows if the floor needs them.
        ground=np.zeros((0, 3)),
    )


def keep_bodies(a: Bodies, keep: I8) -> Bodies:
    """Return the shapes of the bodies in rows `keep`, in that order.

    The function only copies arrays. `order` of the result is valid only for ascending
    `keep`.

    Parameters
    ----------
    a : Bodies
        Shapes of all bodies.
    keep : (k,) int64
        Present rows of the bodies to keep, in their new order, each at most once.
    """
    parts = rows_of(a.part_start, keep)
    verts = rows_of(a.vert_start, parts)
    stays = np.zeros(len(a.radius), np.bool_)
    stays[keep] = True
    # The count of kept rows up to a row is its new number plus 1.
    renumbered = np.cumsum(stays) - 1
    return Bodies(
        part_start=starts_of(np.diff(a.part_start)[keep]),
        vert_start=starts_of(np.diff(a.vert_start)[parts]),
        verts=a.verts[verts],
        radius=a.radius[keep],
        inner=a.inner[keep],
        order=renumbered[a.order[stays[a.order]]],
        world=a.world[verts],
        turn=a.turn[parts],
        edge=a.edge[verts],
        wheels=a.wheels[keep],
        drift=a.drift[keep],
        slips=_kept_slips(a.slips[keep]) if len(a.slips) else a.slips,
        train=a.train[:0],
        hitch=a.hitch[:0],
        trail=a.trail[:0],
        exact=a.exact[keep],
        lead=np.zeros((len(keep), 3)),
        feels=a.feels[keep],
        placed=a.placed[keep],
        leeway=np.zeros(len(keep)),
        scratch=np.zeros_like(a.scratch),
        near=np.zeros(len(keep), np.int64),
        ground=np.zeros((0, 3)),
    )


def drop_bodies(a: Bodies, rows: I8) -> Bodies:
    """Return the shapes of all bodies except `rows` (ascending).

    This function is faster than `keep_bodies` if few rows are dropped.

    Parameters
    ----------
    a : Bodies
        Shapes of all bodies.
    rows : (k,) int64
        Rows of the bodies to drop, ascending.
    """
    n = len(a.radius)
    # Many short slices cost more than one gather over all rows.
    if len(rows) > MAX_ONE_BY_ONE:
        return keep_bodies(a, np.delete(np.arange(n), rows))
    parts = np.stack([a.part_start[rows], a.part_start[rows + 1]], axis=1)
    verts = a.vert_start[parts].tolist()
    bodies, parts = [(row, row + 1) for row in rows.tolist()], parts.tolist()
    stays = np.ones(n, np.bool_)
    stays[rows] = False
    return Bodies(
        part_start=starts_of(_without(np.diff(a.part_start), bodies)),
        vert_start=starts_of(_without(np.diff(a.vert_start), parts)),
        verts=_without(a.verts, verts),
        radius=_without(a.radius, bodies),
        inner=_without(a.inner, bodies),
        order=(np.cumsum(stays) - 1)[a.order[stays[a.order]]],
        world=_without(a.world, verts),
        turn=_without(a.turn, parts),
        edge=_without(a.edge, verts),
        wheels=_without(a.wheels, bodies),
        drift=_without(a.drift, bodies),
        slips=_kept_slips(_without(a.slips, bodies)) if len(a.slips) else a.slips,
        train=a.train[:0],
        hitch=a.hitch[:0],
        trail=a.trail[:0],
        exact=_without(a.exact, bodies),
        lead=np.zeros((n - len(rows), 3)),
        feels=_without(a.feels, bodies),
        placed=_without(a.placed, bodies),
        leeway=np.zeros(n - len(rows)),
        scratch=np.zeros(a.scratch.shape),
        near=np.zeros(n - len(rows), np.int64),
        ground=np.zeros((0, 3)),
    )


def _without(array: NDArray[T], spans: Sequence[Sequence[int]]) -> NDArray[T]:
    """Return a copy of an array without the rows of spans (first, end), ascending.

    Parameters
    ----------
    array : (n, …) array
        Array that stays unchanged.
    spans : sequence of (first, end)
        Rows to leave out: first … end − 1 of each span. Spans are ascending and do not
        overlap.
    """
    ends = [0, *(end for _, end in spans)]
    return np.concatenate(
        [
            array[i:j]
            for i, j in zip(
                ends, [*(first for first, _ in spans), len(array)], strict=True
            )
        ]
    )


def reshape_bodies(a: Bodies, specs: Mapping[int, BodySpec]) -> Bodies:
    """Return the shapes of bodies after a change of some outlines.

    Outlines are written in place if these bodies keep their numbers of corners,
    otherwise copied.

    Parameters
    ----------
    a : Bodies
        Shapes of all bodies. In-place: radii, and outlines if they fit.
    specs : mapping of int to BodySpec
        Descriptions with the new outlines, by row.

    Returns
    -------
    Bodies
        `a` itself if it was written in place. Otherwise the result is a new object.
        Callers must use the result in any case.
    """
    rows = np.array(sorted(specs), np.int64)
    new = build_bodies([specs[row] for row in rows.tolist()])
    a.radius[rows], a.inner[rows], a.feels[rows] = new.radius, new.inner, new.feels
    # NaN demands new values of `Bodies.world` and `leeway`.
    a.placed[rows] = np.nan
    parts, old_parts = np.diff(new.part_start), np.diff(a.part_start)
    chosen = rows_of(a.part_start, rows)
    sizes, old_sizes = np.diff(new.vert_start), np.diff(a.vert_start)

    if np.array_equal(old_parts[rows], parts) and np.array_equal(
        old_sizes[chosen], sizes
    ):
        verts = rows_of(a.vert_start, chosen)
        a.verts[verts], a.edge[verts], a.turn[chosen] = new.verts, new.edge, new.turn
        return a

    # Sizes differ, so that all offsets after these bodies move.
    first, last = a.part_start[rows], a.part_start[rows + 1]
    begin, end = a.vert_start[first], a.vert_start[last]

    def spliced(
        old: NDArray[T], inserted: NDArray[T], from_: I8, to: I8, where: I8
    ) -> NDArray[T]:
        """Return `old` with its spans `from_` … `to` replaced by parts of `inserted`.

        Part k has the elements where[k] … where[k + 1] − 1 of `inserted`.
        """
        pieces, at = list[NDArray[T]](), 0
        for k, (i, j) in enumerate(zip(from_.tolist(), to.tolist(), strict=True)):
            pieces += [old[at:i], inserted[where[k] : where[k + 1]]]
            at = j

        return np.concatenate([*pieces, old[at:]])

    n_parts = old_parts.copy()
    n_parts[rows] = parts
    of_verts = new.vert_start[new.part_start]
    return a._replace(
        part_start=starts_of(n_parts),
        vert_start=starts_of(spliced(old_sizes, sizes, first, last, new.part_start)),
        verts=spliced(a.verts, new.verts, begin, end, of_verts),
        world=spliced(a.world, new.world, begin, end, of_verts),
        edge=spliced(a.edge, new.edge, begin, end, of_verts),
        turn=spliced(a.turn, new.turn, first, last, new.part_start),
        scratch=a.scratch if len(a.scratch) >= len(new.scratch) else new.scratch,
    )


def outline_of(a: Bodies, row: int) -> tuple[Outline, ...]:
    """Return the present polygons of a body in its frame, m.

    Parameters
    ----------
    a : Bodies
        Shapes of all bodies.
    row : int
        Row of the body.
    """
    parts = range(int(a.part_start[row]), int(a.part_start[row + 1]))
    return tuple(
        tuple(map(tuple, a.verts[a.vert_start[p] : a.vert_start[p + 1]].tolist()))
        for p in parts
    )


def starts_of(sizes: I8) -> I8:
    """Return the offsets of consecutive parts of these sizes, (n + 1,).

    Parameters
    ----------
    sizes : (n,) int64
        Number of rows of each part.

    Returns
    -------
    (n + 1,) int64
        Part k owns the rows starts[k] … starts[k + 1] − 1.
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def rows_of(starts: I8, chosen: I8) -> I8:
    """Return the rows of some parts, part after part.

    Parameters
    ----------
    starts : (n + 1,) int64
        Offsets of all parts, as from `starts_of`.
    chosen : (k,) int64
        Numbers of the parts, in any order.

    Returns
    -------
    (m,) int64
        All rows of these parts, in the order of `chosen`.
    """
    sizes = np.diff(starts)[chosen]
    # Index of each row within its part, without a loop in Python.
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows: I8 = np.repeat(starts[:-1][chosen], sizes) + within
    return rows


def build_bins(n: int) -> Bins:
    """Return empty bins with room for `n` bodies.

    Parameters
    ----------
    n : int
        Number of bodies. There is room for four times as many cells, and some more.
    """
    return Bins(
        frame=np.zeros(3),
        shape=np.zeros(2, np.int64),
        # With few bodies per cell, searches are short; small worlds get at least 64 cells.
        start=np.zeros(4 * (n + 16), np.int64),
        rows=np.zeros(n, np.int64),
        at=np.zeros((n, 3)),
        slot=np.zeros(n, np.int64),
        classes=np.zeros(n, np.uint16),
        seen=np.zeros(1, np.uint16),
        cell=np.zeros(n, np.int64),
        reach=np.zeros(3),
        met=np.full(n, WALL, np.int64),
    )
