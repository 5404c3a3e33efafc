"""The rule by which a laser recognises retro-reflectors: up to what range and angle of
incidence, and the return that it reports.

Each beam whose exact hit is on a reflector of the map was returned as one or not. The
probability of that falls from 1 to 0 about a limit θ: Φ((θ − x)/(k·σ)), with x the
exact range or the angle of incidence, σ what the errors of the scan's pose and of the
bearing make of it, and k ≥ 1 how much larger these errors are than they are held to be;
a share `LAPSE` of the beams is as something else has made it. An interval is that of
the likelihood ratio, with the best k for each θ (profile likelihood): where limits are
sharp, it reaches from the last beam that was returned to the first that was not. It is
widened by what many beams have in common: the errors of poses, and that of the bias of
ranges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.calibration.fitting import Value
from botyard.calibration.matching import PROBE_RAD, UNEXPLAINED_M
from botyard.calibration.planar import F8
from botyard.calibration.ranges import PlacedScans, RangeFit, without_bias
from botyard.model.beams import ReflectorRule
from botyard.model.scene import Scene

MIN_BEAMS: Final = 20
"""Fewest beams on reflectors with which a rule is fitted."""
LAPSE: Final = 0.01
"""Share of beams that are not as the rule has them: something that the map does not
have.
"""
NORMAL: Final = 1.96
"""Quantile 0.975 of the normal distribution."""
HALF_CHI2: Final = 1.9207
"""Half of the quantile 0.95 of χ² with one degree of freedom: the fall of the
log-likelihood to the ends of an interval.
"""
MARGIN_M: Final = 0.1
MARGIN_RAD: Final = 0.03
"""Beams that are nearer to the limit of one quantity tell nothing of the other one."""
SCALES: Final = tuple(float(2.0 ** (0.5 * n)) for n in range(8))
"""Values of k that are tried."""
NEAR: Final = 3.0
"""Beams within so many σ of a limit tell where it is."""
MIN_ERROR: Final = 1e-5
"""Least σ, m or rad."""
POINTS: Final = 41
"""Number of limits that are tried, each time that the search is narrowed."""
ZOOMS: Final = 4
MORE_WRONG: Final = 10
"""A limit with so many more beams on its wrong side than another one has is not looked
at.
"""
FAR: Final = 6.0
"""Beams that are so many σ away from a limit do not tell it from its neighbours."""
SAME_M: Final = 1e-6
"""A reflector that is not farther than this behind what the map's walls let see, is
seen.
"""
STRENGTHS: Final = 2, 2**15 - 1
"""Least and greatest strength: brighter than what is ordinary, a number of 16 bits."""

_NAMES: Final = ("reflector max_range", "reflector max_incidence", "reflector strength")


@dataclass(frozen=True, slots=True, eq=False)
class ReflectorFit:
    """What was found out of a laser's rule.

    Attributes
    ----------
    values : tuple of Value
        ``reflector max_range``, ``reflector max_incidence``, ``reflector strength``. Of
        a limit that cannot be told one end of the interval may be known, a bound; its
        value is then the old one, or the bound if that contradicts it.
    beams, returned : int
        Number of beams on reflectors, and of those that were returned as such.
    reasons : mapping of str to str
        Why a value cannot be told, by its name.
    """

    values: tuple[Value, ...]
    beams: int
    returned: int
    reasons: Mapping[str, str]

    def value(self, name: str) -> Value:
        """A value by its name."""
        return next(one for one in self.values if one.name == name)

    @property
    def rule(self) -> ReflectorRule:
        """The rule with what is told."""
        far, wide, strength = (one.value for one in self.values)
        return ReflectorRule(
            max_range=far, max_incidence=wide, strength=round(strength)
        )


class Edges(NamedTuple):
    """Sides of what lasers see and what has its own laser return: special walls and
    boxes.

    Attributes
    ----------
    ends : (k, 4) array
        x1, y1, x2, y2, m.
    returns : (k,) array
        Laser return; more than 1: a reflector.
    """

    ends: F8
    returns: NDArray[np.int64]


def edges_of(scene: Scene) -> Edges:
    """The sides of all special walls and boxes that lasers see."""
    ends: list[F8] = [np.zeros((0, 4))]
    returns: list[int] = []
    for wall in scene.special_walls:
        if wall.returns.laser > 0:
            ends.append(scene.segments[wall.first : wall.last])
            returns += [wall.returns.laser] * (wall.last - wall.first)

    for box in scene.boxes:
        if box.returns.laser <= 0:
            continue
        c, s = math.cos(box.pose.th), math.sin(box.pose.th)
        for outline in box.outlines:
            own = np.array(outline, np.float64)
            corners = own @ np.array([[c, s], [-s, c]]) + np.array(
                [box.pose.x, box.pose.y]
            )
            ends.append(np.concatenate([corners, np.roll(corners, -1, axis=0)], axis=1))
            returns += [box.returns.laser] * len(own)

    return Edges(np.concatenate(ends), np.array(returns, np.int64))


class Hits(NamedTuple):
    """What beams meet first among edges.

    Attributes
    ----------
    ranges : (n, b) array
        Exact, m; infinite: no edge.
    edge : (n, b) int array
        Which; -1: none.
    incidence : (n, b) array
        Angle from the edge's normal, rad.
    """

    ranges: F8
    edge: NDArray[np.int64]
    incidence: F8


def first_hits(edges: Edges, poses: F8, bearings: F8) -> Hits:
    """What the beams of lasers at poses (n, 3) meet first.

    A beam from o along u meets the edge from a to a + e at the range (a − o) × e / (u ×
    e), if (a − o) × u / (u × e) is within 0 … 1.
    """
    directions = poses[:, 2, None] + bearings
    ux, uy = np.cos(directions), np.sin(directions)
    ranges, cosine = np.full(ux.shape, np.inf), np.ones(ux.shape)
    edge = np.full(ux.shape, -1, np.int64)
    for k, (x1, y1, x2, y2) in enumerate(edges.ends.tolist()):
        ex, ey = x2 - x1, y2 - y1
        ax, ay = x1 - poses[:, 0, None], y1 - poses[:, 1, None]
        across = ux * ey - uy * ex
        with np.errstate(divide="ignore", invalid="ignore"):
            at, along = (ax * ey - ay * ex) / across, (ax * uy - ay * ux) / across
            nearer = (along >= 0.0) & (along <= 1.0) & (at >= 0.0) & (at < ranges)

        ranges = np.where(nearer, at, ranges)
        edge[nearer] = k
        cosine = np.where(nearer, np.abs(across) / math.hypot(ex, ey), cosine)

    return Hits(ranges, edge, np.arccos(np.minimum(cosine, 1.0)))


class _Quantity(NamedTuple):
    """Something exact about beams, its standard deviation, and the part of that which
    all beams of a scan have in common; (n,) arrays.
    """

    x: F8
    deviation: F8
    common: F8

    def chosen(self, which: NDArray[np.bool_]) -> _Quantity:
        """That of some of the beams."""
        return _Quantity(*(one[which] for one in self))


class _Beams(NamedTuple):
    """Beams on reflectors.

    Attributes
    ----------
    ranges, incidence : _Quantity
        Exact, m and rad.
    returns : (n,) array
        Laser returns of what is there.
    intensities : (n,) array
        As they were measured.
    scan : (n,) array
        Numbers of the scans that they belong to.
    seen : (n,) bool array
        Whether the intensity is that of a reflector.
    """

    ranges: _Quantity
    incidence: _Quantity
    returns: NDArray[np.int64]
    intensities: F8
    scan: NDArray[np.int64]
    seen: NDArray[np.bool_]


def fit_reflectors(
    placed: Sequence[PlacedScans], scene: Scene, before: ReflectorRule, errors: RangeFit
) -> tuple[ReflectorFit | None, str]:
    """Fit the rule.

    Parameters
    ----------
    placed : sequence of PlacedScans
        As of `botyard.calibration.ranges.placed_scans`.
    scene : Scene
        The map.
    before : ReflectorRule
        That of the robot's model.
    errors : RangeFit
        Those of the laser's ranges.

    Returns
    -------
    ReflectorFit or None, str
        None: the logs do not hold what it needs, and why.
    """
    edges = edges_of(scene)
    if not (edges.returns > 1).any():
        return None, "the map has none, so the logs do not tell the laser's rule"
    if all(one.scans.intensities is None for one in placed):
        return None, "the scans have no intensities"
    bias = errors.value("range_bias")
    shift = 0.0
    if bias.is_told:
        placed, shift = without_bias(placed, bias.value), 0.5 * (bias.high - bias.low)
    beams = _beams_on_reflectors(placed, edges, errors)
    count, returned = len(beams.seen), int(beams.seen.sum())
    if count < MIN_BEAMS:
        return (
            None,
            f"too few beams met one: expected at least {MIN_BEAMS}, found {count}",
        )

    if not returned:
        return (
            None,
            f"of {count} beams on reflectors none was returned as one, so the "
            "logs do not tell the laser's rule",
        )

    far, wide = _corner(beams)
    rows = (
        (
            beams.ranges,
            beams.incidence.x <= wide - MARGIN_RAD,
            before.max_range,
            shift,
            "m",
            "reflectors are recognised up to this range: lasers[0].reflector.max_range",
        ),
        (
            beams.incidence,
            beams.ranges.x <= far - MARGIN_M,
            before.max_incidence,
            0.0,
            "rad",
            "and up to this angle of incidence: lasers[0].reflector.max_incidence (there in °)",
        ),
    )
    limits, reasons = [], {}
    for name, (quantity, safe, old, common, unit, about) in zip(
        _NAMES, rows, strict=False
    ):
        unknown = Value(name, unit, about, old, math.nan, math.nan, old, is_told=False)
        value, why = _limit(
            quantity.chosen(safe), beams.seen[safe], beams.scan[safe], common, unknown
        )
        limits.append(value)
        if why:
            reasons[name] = why

    strength, why = _strength(beams, before)
    if why:
        reasons[strength.name] = why
    return ReflectorFit((*limits, strength), count, returned, reasons), ""


def _beams_on_reflectors(
    placed: Sequence[PlacedScans], edges: Edges, errors: RangeFit
) -> _Beams:
    """Beams that certainly met a reflector, and whether they were returned brighter
    than 99 % of those on what is ordinary.
    """
    found: list[tuple[NDArray[Any], ...]] = []
    ordinary: list[F8] = []
    scans = 0
    is_reflector = np.append(
        edges.returns > 1, False
    )  # the last one is that of no edge
    bearing = errors.value("angle_noise").value / math.sqrt(3.0)
    for one in placed:
        if one.scans.intensities is None:
            continue
        measured, intensities = one.scans.ranges, one.scans.intensities
        bearings = one.matcher.bearings
        hits, left, right = (
            first_hits(edges, one.poses, bearings + aside)
            for aside in (0.0, -PROBE_RAD, PROBE_RAD)
        )
        expected = one.matcher.expect(one.poses)
        usable = one.matcher.usable(measured) & np.isfinite(intensities)
        explained = (
            usable
            & expected.good
            & (np.abs(measured - expected.ranges) < UNEXPLAINED_M)
        )
        place, heading = _pose_errors(expected.gradients, explained, errors.deviation)
        # neighbours on the same side: no end of it is near
        on = (
            is_reflector[hits.edge]
            & (left.edge == hits.edge)
            & (right.edge == hits.edge)
        )
        on &= hits.ranges <= expected.ranges + SAME_M
        met = usable & on & (np.abs(measured - hits.ranges) < UNEXPLAINED_M)
        scan = np.nonzero(met)[0]
        r, incidence, edge = hits.ranges[met], hits.incidence[met], hits.edge[met]
        # the range changes with the place by 1/cos, with the heading by r·tan of the
        # angle of incidence
        by_place, by_turn = place[scan] / np.cos(incidence), r * np.tan(incidence)
        turned = np.hypot(heading[scan], bearing)
        found.append(
            (
                r,
                np.hypot(by_place, by_turn * turned),
                np.hypot(by_place, by_turn * heading[scan]),
                incidence,
                turned,
                heading[scan],
                edges.returns[edge],
                intensities[met],
                scan + scans,
            )
        )
        scans += len(one.poses)
        nowhere = ~(
            is_reflector[hits.edge] | is_reflector[left.edge] | is_reflector[right.edge]
        )
        ordinary.append(intensities[explained & nowhere])

    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    for column in columns[1], columns[4]:
        np.maximum(column, MIN_ERROR, out=column)
    walls = np.concatenate(ordinary)
    level = float(np.quantile(walls, 1.0 - LAPSE)) if len(walls) else 1.0
    returns, bright, scan = (
        columns[6].astype(np.int64),
        columns[7],
        columns[8].astype(np.int64),
    )
    return _Beams(
        _Quantity(*columns[:3]),
        _Quantity(*columns[3:6]),
        returns,
        bright,
        scan,
        bright > level,
    )


def _pose_errors(
    gradients: F8, used: NDArray[np.bool_], deviation: float
) -> tuple[F8, F8]:
    """Standard deviations (n,) of fitted places, m (in one direction), and headings,
    rad, of scans whose ranges err by `deviation`, m.
    """
    g = np.where(used[..., None], gradients, 0.0)
    covariance = (
        deviation
        * deviation
        * np.linalg.inv(np.einsum("nbi,nbj->nij", g, g) + 1e-6 * np.eye(3))
    )
    return np.sqrt(0.5 * (covariance[:, 0, 0] + covariance[:, 1, 1])), np.sqrt(
        covariance[:, 2, 2]
    )


def _corner(beams: _Beams) -> tuple[float, float]:
    """The limits of range and incidence with the fewest beams on their wrong side; of
    several pairs the least.
    """
    both = beams.ranges.x, beams.incidence.x
    grids = [
        np.unique(np.quantile(x[beams.seen], np.linspace(0.0, 1.0, 100))) for x in both
    ]
    bins = [np.searchsorted(grid, x) for grid, x in zip(grids, both, strict=True)]
    inside = np.zeros((len(grids[0]) + 1, len(grids[1]) + 1))
    np.add.at(inside, (bins[0], bins[1]), np.where(beams.seen, -1.0, 1.0))
    wrong = inside.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]  # but for a constant
    row, column = np.unravel_index(int(wrong.argmin()), wrong.shape)
    return float(grids[0][row]), float(grids[1][column])


def _limit(
    of: _Quantity,
    seen: NDArray[np.bool_],
    scan: NDArray[np.int64],
    common: float,
    unknown: Value,
) -> tuple[Value, str]:
    """The limit of a quantity, by the beams that are within that of the other one; why
    it cannot be told.

    Parameters
    ----------
    of, seen, scan
        The quantity of each beam, whether it was returned as a reflector's, and which
        scan it belongs to.
    common : float
        Half of a 95 % interval of an error that all beams have in common.
    unknown : Value
        The value if it cannot be told.
    """
    if not seen.any():
        return unknown, "too few beams on reflectors are well within the other limit"
    begin, end = _bracket(of, seen)
    limits = np.linspace(begin, end, POINTS)
    for _ in range(ZOOMS):
        profile, scales = _profile(of, seen, limits)
        inside = np.flatnonzero(profile >= profile.max() - HALF_CHI2)
        first, last = int(inside[0]), int(inside[-1])
        low, high = float(limits[first]), float(limits[last])
        best, scale = (
            float(np.median(limits[profile >= profile.max() - 1e-6])),
            float(scales[profile.argmax()]),
        )
        is_below, is_above = first == 0, last == POINTS - 1
        limits = np.linspace(
            limits[max(first - 1, 0)], limits[min(last + 1, POINTS - 1)], POINTS
        )

    if is_below:
        return unknown, "beams near to it and far from it were returned alike"
    if is_above:
        why = (
            "all beams on reflectors were returned as such, as far as there "
            f"are any; it is at least {low:.4g} {unknown.unit}"
        )
        return replace(unknown, value=max(unknown.before, low), low=low), why

    near = np.abs(of.x - best) <= NEAR * scale * of.deviation
    if not near.any():
        near |= True
    shared = scale * float(np.median(of.common[near]))
    half = math.hypot(common, NORMAL * shared / math.sqrt(len(np.unique(scan[near]))))
    low, high = (
        best - math.hypot(best - low, half),
        best + math.hypot(high - best, half),
    )
    return replace(unknown, value=best, low=low, high=high, is_told=True), ""


def _bracket(of: _Quantity, seen: NDArray[np.bool_]) -> tuple[float, float]:
    """What the limit certainly lies within: where few more beams than need be are on
    the wrong side, with the fuzzy part beside it.
    """
    order = np.argsort(of.x)
    # wrong[i]: beams on the wrong side of a limit between the beams i − 1 and i
    wrong = np.concatenate([[0], np.cumsum(np.where(seen[order], -1, 1))])
    some = np.flatnonzero(wrong <= wrong.min() + MORE_WRONG)
    x = np.concatenate([of.x[order][:1], of.x[order], of.x[order][-1:]])
    aside = NEAR * SCALES[-1] * float(np.median(of.deviation))
    return float(x[some[0]]) - aside, float(x[some[-1] + 1]) + aside


def _profile(of: _Quantity, seen: NDArray[np.bool_], limits: F8) -> tuple[F8, F8]:
    """Logarithm of the likelihood of limits, with the best k of each, and these."""
    from scipy.special import ndtr

    each = np.zeros((len(SCALES), len(limits)))
    for row, scale in zip(each, SCALES, strict=True):
        deviation = scale * of.deviation
        below, above = (
            of.x < limits[0] - FAR * deviation,
            of.x > limits[-1] + FAR * deviation,
        )
        near = ~(
            below | above
        )  # of what is farther away the chance is that of a lapse or of none, whatever the limit
        lapses = int((below & ~seen).sum() + (above & seen).sum())
        row += lapses * math.log(0.5 * LAPSE) + (
            len(seen) - int(near.sum()) - lapses
        ) * math.log(1.0 - 0.5 * LAPSE)
        chance = (1.0 - LAPSE) * ndtr(
            (limits[:, None] - of.x[near]) / deviation[near]
        ) + 0.5 * LAPSE
        row += np.log(np.where(seen[near], chance, 1.0 - chance)).sum(axis=1)

    return each.max(axis=0), np.array(SCALES)[each.argmax(axis=0)]


def _strength(beams: _Beams, before: ReflectorRule) -> tuple[Value, str]:
    """What is reported of plain reflectors: the mode."""
    name, about = (
        _NAMES[2],
        "laser return of a plain reflector: lasers[0].reflector.strength",
    )
    old = float(before.strength)

    def unknown(why: str) -> tuple[Value, str]:
        return Value(name, "", about, old, math.nan, math.nan, old, is_told=False), why

    plain = np.rint(beams.intensities[beams.seen & (beams.returns == 2)])
    if not len(plain):
        return unknown("no beam on a reflector of return 2 was returned as one")
    levels, counts = np.unique(plain, return_counts=True)
    mode = float(levels[counts.argmax()])
    if 2 * counts.max() < len(plain):
        return unknown("no return is that of most beams on reflectors")
    if not STRENGTHS[0] <= mode <= STRENGTHS[1]:
        return unknown(
            f"expected a return within {STRENGTHS[0]} … {STRENGTHS[1]}, found {mode:g}"
        )

    return Value(name, "", about, mode, mode, mode, old), ""


__all__ = ["Edges", "Hits", "ReflectorFit", "edges_of", "first_hits", "fit_reflectors"]
