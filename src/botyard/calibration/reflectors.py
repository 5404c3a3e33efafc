"""Calibration of a laser's detection of retro-reflectors.

The rule has a maximum range, a maximum angle of incidence, and the return that the
laser reports.

Each beam with an exact hit on a reflector of the map was reported as a reflector or
not. The probability of a report falls from 1 to 0 about a limit θ: Φ((θ − x)/(k·σ)). x
is the exact range or angle of incidence. σ is the effect of the errors of the scan's
pose and of the bearing. k ≥ 1 is the ratio of the real errors to the assumed ones. A
fraction `LAPSE` of the beams does not follow the rule.

Intervals are likelihood-ratio intervals with the best k for each θ (profile
likelihood). At a sharp limit, the interval reaches from the last beam that was reported
to the first beam that was not. It is widened by errors that many beams share: the
errors of poses, and the error of the ranges' bias.
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
"""Minimum number of beams that hit reflectors, for a fit."""
LAPSE: Final = 0.01
"""Fraction of beams that do not follow the rule, because the map lacks some objects."""
NORMAL: Final = 1.96
"""97.5 % quantile of the normal distribution."""
HALF_CHI2: Final = 1.9207
"""Half of the quantile 0.95 of χ² with one degree of freedom.

The log-likelihood falls by this much from its maximum to the ends of an interval.
"""
MARGIN_M: Final = 0.1
MARGIN_RAD: Final = 0.03
"""Margin to the limit of the incidence angle, rad.

Beams within it are not used to fit the limit of the range.

Beams within `MARGIN_M`, m, of the limit of the range are not used to fit the limit of
the incidence.
"""
SCALES: Final = tuple(float(2.0 ** (0.5 * n)) for n in range(8))
"""Values of k (real error divided by assumed error) that the fit tries."""
NEAR: Final = 3.0
"""Distance from a limit, in units of σ, within which beams determine its position."""
MIN_ERROR: Final = 1e-5
"""Least value of σ, m or rad."""
POINTS: Final = 41
"""Number of candidate limits in each round of the search."""
ZOOMS: Final = 4
MORE_WRONG: Final = 10
"""Search range of limits: at most this many more beams on the wrong side than at the best one."""
FAR: Final = 6.0
"""Distance from a limit, in units of σ, beyond which beams do not affect its position."""
SAME_M: Final = 1e-6
"""Distance behind a wall of the map at which a reflector still counts as visible, m."""
STRENGTHS: Final = 2, 2**15 - 1
"""Bounds of a strength: just above an ordinary return, and the largest 16-bit number."""

_NAMES: Final = ("reflector max_range", "reflector max_incidence", "reflector strength")


@dataclass(frozen=True, slots=True, eq=False)
class ReflectorFit:
    """Fitted rule of a laser for the detection of reflectors.

    Attributes
    ----------
    values : tuple of Value
        ``reflector max_range``, ``reflector max_incidence``, ``reflector strength``.
        For an undetermined limit, one end of the interval may be a known bound. Its
        value is then the old one, or the bound if the old value contradicts it.
    beams, returned : int
        Number of beams on reflectors, and of those beams that were reported as such.
    reasons : mapping of str to str
        Reasons for undetermined values, by name.
    """

    values: tuple[Value, ...]
    beams: int
    returned: int
    reasons: Mapping[str, str]

    def value(self, name: str) -> Value:
        """Return a fitted value by its name."""
        return next(one for one in self.values if one.name == name)

    @property
    def rule(self) -> ReflectorRule:
        """Rule of the laser's model, with the limits that the logs determine."""
        far, wide, strength = (one.value for one in self.values)
        return ReflectorRule(
            max_range=far, max_incidence=wide, strength=round(strength)
        )


class Edges(NamedTuple):
    """Sides of visible objects with their own laser return: special walls and boxes.

    Attributes
    ----------
    ends : (k, 4) array
        End points x1, y1, x2, y2, m.
    returns : (k,) array
        Laser returns; more than 1 for a reflector.
    """

    ends: F8
    returns: NDArray[np.int64]


def edges_of(scene: Scene) -> Edges:
    """Return the sides of all special walls and boxes that lasers see."""
    ends: list[F8] = [np.zeros((0, 4))]
    returns: list[int] = []
    for wall in scene.special_walls:
        if wall.returns.laser > 0:
            ends.append(scene.segments[wall.first : wall.last])
            returns += [wall.returns.laser] * (wall.last - wall.first)

    for box in scene.boxes:
        # Lasers do not see boxes without a laser return.
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
    """First hits of beams among edges.

    Attributes
    ----------
    ranges : (n, b) array
        Exact ranges, m; infinite for no edge.
    edge : (n, b) int array
        Number of the edge; -1 for none.
    incidence : (n, b) array
        Angle from the edge's normal, rad.
    """

    ranges: F8
    edge: NDArray[np.int64]
    incidence: F8


def first_hits(edges: Edges, poses: F8, bearings: F8) -> Hits:
    """Return the first hits of the beams of lasers at poses (n, 3).

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
            # A beam parallel to an edge divides by 0; the comparisons with NaN are
            # false.
            nearer = (along >= 0.0) & (along <= 1.0) & (at >= 0.0) & (at < ranges)

        ranges = np.where(nearer, at, ranges)
        edge[nearer] = k
        cosine = np.where(nearer, np.abs(across) / math.hypot(ex, ey), cosine)

    return Hits(ranges, edge, np.arccos(np.minimum(cosine, 1.0)))


class _Quantity(NamedTuple):
    """Exact value of a quantity (range or incidence) of n beams, with its standard deviation.

    `common` is the part of the deviation that all beams of a scan share. All arrays are
    (n,).
    """

    x: F8
    deviation: F8
    common: F8

    def chosen(self, which: NDArray[np.bool_]) -> _Quantity:
        """Return the quantity of only the selected beams."""
        return _Quantity(*(one[which] for one in self))


class _Beams(NamedTuple):
    """Beams that hit reflectors.

    Attributes
    ----------
    ranges, incidence : _Quantity
        Exact ranges, m, and angles of incidence, rad.
    returns : (n,) array
        Laser returns of the objects hit.
    intensities : (n,) array
        Measured intensities.
    scan : (n,) array
        Numbers of the beams' scans.
    seen : (n,) bool array
        Whether the intensity indicates a reflector.
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
    """Fit the rule by which a laser detects reflectors.

    Parameters
    ----------
    placed : sequence of PlacedScans
        Scans, as from `botyard.calibration.ranges.placed_scans`.
    scene : Scene
        Map with the walls that the laser saw.
    before : ReflectorRule
        Rule of the robot's model.
    errors : RangeFit
        Errors of the laser's ranges.

    Returns
    -------
    ReflectorFit or None, str
        The fit; or None and the reason, if the logs lack the data.
    """
    edges = edges_of(scene)
    if not (edges.returns > 1).any():
        return None, (
            "the map has no reflectors, so the logs do not determine the laser's "
            "rule for them"
        )
    if all(one.scans.intensities is None for one in placed):
        return None, "the scans have no intensities"
    bias = errors.value("range_bias")
    shift = 0.0
    # A bias shifts all ranges, and with them the limit of the range. The uncertainty of
    # the bias widens the interval.
    if bias.is_determined:
        placed, shift = without_bias(placed, bias.value), 0.5 * (bias.high - bias.low)
    beams = _beams_on_reflectors(placed, edges, errors)
    count, returned = len(beams.seen), int(beams.seen.sum())
    if count < MIN_BEAMS:
        return (
            None,
            f"too few beams hit a reflector: expected at least {MIN_BEAMS}, found {count}",
        )

    if not returned:
        return (
            None,
            (
                f"of {count} beams on reflectors, the laser reported none as a "
                "reflector, so the logs do not determine the laser's rule"
            ),
        )

    # The limits are fitted one after the other, with beams that are well within the
    # other limit.
    far, wide = _best_limit_pair(beams)
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
            "reflectors are recognised up to this angle of incidence: lasers[0].reflector.max_incidence (there in °)",
        ),
    )
    limits, reasons = [], {}
    for name, (quantity, safe, old, common, unit, about) in zip(
        _NAMES, rows, strict=False
    ):
        unknown = Value(
            name, unit, about, old, math.nan, math.nan, old, is_determined=False
        )
        value, why = _fit_limit(
            quantity.chosen(safe), beams.seen[safe], beams.scan[safe], common, unknown
        )
        limits.append(value)
        if why:
            reasons[name] = why

    strength, why = _fit_strength(beams, before)
    if why:
        reasons[strength.name] = why
    return ReflectorFit((*limits, strength), count, returned, reasons), ""


def _beams_on_reflectors(
    placed: Sequence[PlacedScans], edges: Edges, errors: RangeFit
) -> _Beams:
    """Return the beams that hit a reflector without doubt.

    A beam counts as seen if it is brighter than 99 % of the beams on ordinary objects.
    """
    found: list[tuple[NDArray[Any], ...]] = []
    ordinary: list[F8] = []
    scans = 0
    # The index −1, no edge, selects the appended value.
    is_reflector = np.append(edges.returns > 1, False)
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
        # If neighbouring beams hit the same edge, no end of the edge is near.
        on = (
            is_reflector[hits.edge]
            & (left.edge == hits.edge)
            & (right.edge == hits.edge)
        )
        on &= hits.ranges <= expected.ranges + SAME_M
        met = usable & on & (np.abs(measured - hits.ranges) < UNEXPLAINED_M)
        scan = np.nonzero(met)[0]
        r, incidence, edge = hits.ranges[met], hits.incidence[met], hits.edge[met]
        # The range changes with the position by 1/cos, and with the heading by r·tan,
        # of the angle of incidence.
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
    # The scale of intensities differs between lasers, so ordinary walls define it.
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
    """Return standard deviations (n,) of fitted positions and headings of scans.

    Positions, m, are in one direction; headings are in rad. The ranges have the
    standard deviation `deviation`, m.
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


def _best_limit_pair(beams: _Beams) -> tuple[float, float]:
    """Return the limits of range and incidence with the fewest contradicting beams.

    A beam contradicts if it is on the wrong side. Of equal pairs, the first one is
    used.
    """
    both = beams.ranges.x, beams.incidence.x
    grids = [
        np.unique(np.quantile(x[beams.seen], np.linspace(0.0, 1.0, 100))) for x in both
    ]
    bins = [np.searchsorted(grid, x) for grid, x in zip(grids, both, strict=True)]
    inside = np.zeros((len(grids[0]) + 1, len(grids[1]) + 1))
    np.add.at(inside, (bins[0], bins[1]), np.where(beams.seen, -1.0, 1.0))
    # Number of beams on the wrong side, for each pair of limits, up to a constant.
    wrong = inside.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    row, column = np.unravel_index(int(wrong.argmin()), wrong.shape)
    return float(grids[0][row]), float(grids[1][column])


def _fit_limit(
    of: _Quantity,
    seen: NDArray[np.bool_],
    scan: NDArray[np.int64],
    common: float,
    unknown: Value,
) -> tuple[Value, str]:
    """Return the fitted limit of a quantity, and the reason if it is undetermined.

    All beams must be within the limit of the other quantity (range or incidence).

    Parameters
    ----------
    of, seen, scan
        Of each beam: the quantity, whether the laser reported a reflector, and the scan's number.
    common : float
        Half of the 95 % interval of an error that all beams share.
    unknown : Value
        The result if the limit is undetermined.
    """
    if not seen.any():
        return unknown, "too few beams on reflectors are well within the other limit"
    begin, end = _limit_bracket(of, seen)
    # The likelihood may be flat or have steps, so a grid is searched instead of a
    # gradient.
    limits = np.linspace(begin, end, POINTS)
    for _ in range(ZOOMS):
        profile, scales = _profile_likelihood(of, seen, limits)
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

    # The interval reaches the end of the bracket: no beam contradicts an arbitrarily
    # small limit.
    if is_below:
        return (
            unknown,
            "beams within and beyond each possible limit gave the same reports",
        )
    if is_above:
        why = (
            "the laser reported all beams on reflectors as reflectors; the limit is "
            f"at least {low:.4g} {unknown.unit}"
        )
        return replace(unknown, value=max(unknown.before, low), low=low), why

    near = np.abs(of.x - best) <= NEAR * scale * of.deviation
    if not near.any():
        near |= True
    # Errors of a pose are common to its scan: only the number of scans reduces them.
    shared = scale * float(np.median(of.common[near]))
    half = math.hypot(common, NORMAL * shared / math.sqrt(len(np.unique(scan[near]))))
    low, high = (
        best - math.hypot(best - low, half),
        best + math.hypot(high - best, half),
    )
    return replace(unknown, value=best, low=low, high=high, is_determined=True), ""


def _limit_bracket(of: _Quantity, seen: NDArray[np.bool_]) -> tuple[float, float]:
    """Return a lower and an upper bound between which the limit must lie.

    All limits with at most `MORE_WRONG` more contradicting beams than the best limit are within the
    bounds. The bounds are widened by the width of the transition zone.
    """
    order = np.argsort(of.x)
    # wrong[i]: number of beams on the wrong side of a limit between the beams i − 1 and
    # i.
    wrong = np.concatenate([[0], np.cumsum(np.where(seen[order], -1, 1))])
    some = np.flatnonzero(wrong <= wrong.min() + MORE_WRONG)
    x = np.concatenate([of.x[order][:1], of.x[order], of.x[order][-1:]])
    aside = NEAR * SCALES[-1] * float(np.median(of.deviation))
    return float(x[some[0]]) - aside, float(x[some[-1] + 1]) + aside


def _profile_likelihood(
    of: _Quantity, seen: NDArray[np.bool_], limits: F8
) -> tuple[F8, F8]:
    """Return the log-likelihood of each limit with the best k, and the best k of each limit."""
    from scipy.special import ndtr

    each = np.zeros((len(SCALES), len(limits)))
    for row, scale in zip(each, SCALES, strict=True):
        deviation = scale * of.deviation
        below, above = (
            of.x < limits[0] - FAR * deviation,
            of.x > limits[-1] + FAR * deviation,
            # Far from all candidate limits, a beam has the expected result or is an
            # error, whatever the limit.
        )
        near = ~(below | above)
        lapses = int((below & ~seen).sum() + (above & seen).sum())
        row += lapses * math.log(0.5 * LAPSE) + (
            len(seen) - int(near.sum()) - lapses
        ) * math.log(1.0 - 0.5 * LAPSE)
        chance = (1.0 - LAPSE) * ndtr(
            (limits[:, None] - of.x[near]) / deviation[near]
        ) + 0.5 * LAPSE
        row += np.log(np.where(seen[near], chance, 1.0 - chance)).sum(axis=1)

    return each.max(axis=0), np.array(SCALES)[each.argmax(axis=0)]


def _fit_strength(beams: _Beams, before: ReflectorRule) -> tuple[Value, str]:
    """Return the strength that the laser reports most often for plain reflectors."""
    name, about = (
        _NAMES[2],
        "laser return of a plain reflector: lasers[0].reflector.strength",
    )
    old = float(before.strength)

    def unknown(why: str) -> tuple[Value, str]:
        return Value(
            name, "", about, old, math.nan, math.nan, old, is_determined=False
        ), why

    plain = np.rint(beams.intensities[beams.seen & (beams.returns == 2)])
    if not len(plain):
        return unknown("no beam on a reflector of return 2 was reported as one")
    levels, counts = np.unique(plain, return_counts=True)
    mode = float(levels[counts.argmax()])
    # A real strength is one constant: without a majority the laser reports something
    # else.
    if 2 * counts.max() < len(plain):
        return unknown("no return is common to most beams on reflectors")
    if not STRENGTHS[0] <= mode <= STRENGTHS[1]:
        return unknown(
            f"expected a return within {STRENGTHS[0]} … {STRENGTHS[1]}, found {mode:g}"
        )

    return Value(name, "", about, mode, mode, mode, old), ""


__all__ = ["Edges", "Hits", "ReflectorFit", "edges_of", "first_hits", "fit_reflectors"]
