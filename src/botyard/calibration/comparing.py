"""Comparison of a real log with a simulated one.

Compared are the drift of odometry, scans against the map, rates, jitter and latency,
with 95 % intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from botyard.calibration.log import Log, Series
from botyard.calibration.matching import Matcher, matched_truth, spread_scans
from botyard.calibration.motion import fit_motion
from botyard.calibration.planar import F8, between, wrap
from botyard.calibration.segments import cut, ways_of
from botyard.errors import CalibrationError, CommandLineError
from botyard.extras import is_there, lacking
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.pictures.reportpage import document, escaped, image, plain_table
from botyard.processes.safefile import write_text
from botyard.studies.statistics import Interval, mean_interval

# Duration of the segments for which drift is measured, s.
WAY_S: Final = 1.0
STRAIGHT_RAD_M: Final = 0.1
"""Segments that turn by less than this per metre count as straight, rad/m."""
MIN_FORWARD_M: Final = 0.05
MIN_TURN_RAD: Final = 0.1
"""Segments that turn by less are ignored for the drift per turn, rad.

Segments shorter than `MIN_FORWARD_M`, m, are ignored for the drift per metre.
"""
# Maximum number of scans to compare: more scans hardly narrow the intervals.
MAX_SCANS: Final = 200
PERCENTILE: Final = 95.0
ROUNDING_S: Final = 1e-9
"""Smaller differences of periods are rounding errors, s."""
LEAST_BIN: Final = 1e-3
"""Margin of a histogram below the least and above the greatest value, m or s."""
GROUPS: Final = ("drift", "scans", "timing")
HEADS: Final = ("quantity", "unit", "real", "simulated", "alike")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity measured in both logs.

    Attributes
    ----------
    group : str
        One of `GROUPS`.
    name, unit : str
        Name and unit of the quantity.
    real, simulated : Interval or None
        Estimates from both logs; None if a log does not determine it.
    """

    group: str
    name: str
    unit: str
    real: Interval | None
    simulated: Interval | None

    @property
    def is_alike(self) -> bool | None:
        """Whether the 95 % intervals of the two logs overlap; None if one is missing."""
        a, b = self.real, self.simulated
        if (
            a is None
            or b is None
            or any(map(math.isnan, (a.low, a.high, b.low, b.high)))
        ):
            return None

        return a.low <= b.high and b.low <= a.high

    def as_dict(self) -> dict[str, Any]:
        """Return the quantity as values for JSON."""

        def plain(one: Interval | None) -> Any:
            if one is None:
                return None
            numbers = {"value": one.value, "low": one.low, "high": one.high}
            return {
                name: number if math.isfinite(number) else None
                for name, number in numbers.items()
            } | {"number": one.number}

        return {
            "group": self.group,
            "name": self.name,
            "unit": self.unit,
            "real": plain(self.real),
            "simulated": plain(self.simulated),
            "alike": self.is_alike,
        }

    def row(self) -> tuple[str, ...]:
        """Return the cells of the quantity's table row, in the order of the columns `HEADS`."""
        alike = {None: "", True: "yes", False: "no"}[self.is_alike]
        return (
            self.name,
            self.unit,
            _format_interval(self.real),
            _format_interval(self.simulated),
            alike,
        )


def _format_interval(one: Interval | None) -> str:
    if one is None:
        return "–"
    if math.isnan(one.low):
        return f"{one.value:.4g}"
    return f"{one.value:.4g} ({one.low:.4g} … {one.high:.4g})"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Quantities measured in one log.

    Attributes
    ----------
    quantities : dict
        Estimates by group, name and unit.
    residuals : array
        Differences between ranges and the map, m.
    periods : array
        Time between poses of odometry, s.
    notes : tuple of str
        Quantities that the log does not determine, with reasons.
    """

    quantities: dict[tuple[str, str, str], Interval]
    residuals: F8
    periods: F8
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Comparison of a real log with a simulated one.

    Attributes
    ----------
    names : (str, str)
        The files.
    quantities : tuple of Quantity
        The quantities, in the order of `GROUPS`.
    measured : (Measured, Measured)
        Measurements of each log.
    """

    names: tuple[str, str]
    quantities: tuple[Quantity, ...]
    measured: tuple[Measured, Measured]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on quantities that one of the logs does not determine."""
        return tuple(
            f"{name}: {note}"
            for name, one in zip(self.names, self.measured, strict=True)
            for note in one.notes
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as values for JSON."""
        return {
            "real": self.names[0],
            "simulated": self.names[1],
            "quantities": [one.as_dict() for one in self.quantities],
            "notes": list(self.notes),
        }


def compare(
    real: Log,
    simulated: Log,
    spec: RobotSpec,
    *,
    scene: Scene | None = None,
    start: Pose | None = None,
    step: float = 0.1,
) -> Comparison:
    """Compare a log of a real robot with a log of its simulation.

    Parameters
    ----------
    real, simulated : Log
        Logs, as from `botyard.calibration.readers.read_log`. With `scene`, scans
        provide missing true poses.
    spec : RobotSpec
        The robot.
    scene : Scene, optional
        The map. Scans are compared only with a map.
    start : Pose, optional
        Pose of the robot at the start of a log without true poses.
    step : float
        Step of the simulation, s.

    Raises
    ------
    CalibrationError
        A log has no odometry or numbers that are too large, or the map has no walls.
    """
    both = tuple(
        measure(one.checked(), spec, scene, start, step) for one in (real, simulated)
    )
    # A quantity that only one log determines is listed as well.
    keys = list(dict.fromkeys([*both[0].quantities, *both[1].quantities]))
    keys.sort(key=lambda key: GROUPS.index(key[0]))
    quantities = tuple(
        Quantity(*key, both[0].quantities.get(key), both[1].quantities.get(key))
        for key in keys
    )
    return Comparison((real.source, simulated.source), quantities, (both[0], both[1]))


def measure(
    log: Log, spec: RobotSpec, scene: Scene | None, start: Pose | None, step: float
) -> Measured:
    """Measure the quantities of one log.

    Parameters
    ----------
    log : Log
        Log with odometry.
    spec, scene, start, step
        As for `compare`.

    Returns
    -------
    Measured
        Quantities, with notes on quantities that the log does not determine.
    """
    found: dict[tuple[str, str, str], Interval] = {}
    notes = list(log.problems)
    residuals: F8 = np.zeros(0)
    truth = log.truth
    if scene is not None and log.scans is not None and len(log.scans) and spec.lasers:
        matcher = Matcher(scene, spec.lasers[0], log.scans.bearings)
        begin = start or scene.start
        if len(truth) < 2 and begin is not None:
            truth, _ = matched_truth(log, matcher, np.array(begin, np.float64))
        if len(truth) > 1:
            residuals, unexplained = _scan_residuals(log, truth, matcher)
            found |= _scan_quantities(residuals, unexplained)
        else:
            notes.append(
                "scans: there are no true poses, and no start pose to find them from (--start)"
            )

        matcher.close()
    else:
        notes.append(
            "scans: "
            + ("there is no map (--map)" if scene is None else "the log contains none")
        )

    if len(truth) > 1:
        try:
            found |= _drift_quantities(log, truth)
        except CalibrationError as error:
            notes.append(f"drift: {error}")
    else:
        notes.append("drift: there are no true poses")

    # Timing needs neither map nor true poses.
    found |= _timing_quantities(log)
    motion = fit_motion([log], spec.limits, step)
    if motion is None:
        notes.append("latency: the log contains no commands followed by velocities")
    else:
        for one in motion.values:
            if one.is_determined:
                found["timing", one.name, one.unit] = Interval(
                    one.value, one.low, one.high, 1
                )

    return Measured(found, residuals, np.diff(log.odometry.time), tuple(notes))


def _drift_quantities(log: Log, truth: Series) -> dict[tuple[str, str, str], Interval]:
    """Return the errors of odometry per metre and per turn: means and scatter."""
    ways = ways_of(log, truth, 0.0)
    # The offset is 0: the truth of a log, or from its scans, has the log's own clock.
    pieces = cut(ways, 0.0)
    real = between(ways.truth[:-1], ways.truth[1:])
    odometry = between(
        log.odometry.at(ways.knots[:-1]), log.odometry.at(ways.knots[1:])
    )
    way = np.add.reduceat(np.abs(pieces.twists[:, 0]), pieces.first)
    # Only segments that are nearly straight show the drift of the heading without
    # turns.
    turned = np.add.reduceat(pieces.twists[:, 2], pieces.first)
    straight = (way > MIN_FORWARD_M) & (np.abs(turned) < STRAIGHT_RAD_M * way)
    forward = (way > MIN_FORWARD_M) & (np.abs(odometry[:, 0]) > 0.5 * way)
    turning = np.abs(turned) > MIN_TURN_RAD
    along = (
        (odometry[forward, 0] - real[forward, 0])
        * np.sign(real[forward, 0])
        / way[forward]
    )
    # Errors are divided by the whole turn of a segment (`turned`), which may exceed half a turn.
    heading = wrap(odometry[:, 2] - real[:, 2])
    aside = heading[straight] / way[straight]
    turns = (
        heading[turning]
        * np.sign(turned[turning])
        / np.abs(turned[turning])
        * 2.0
        * math.pi
    )
    found = {}
    for name, unit, values in (
        ("drift along on each m", "m/m", along),
        ("drift of heading on each straight m", "rad/m", aside),
        ("drift of heading for each turn of 360°", "rad", turns),
    ):
        if len(values) > 2:
            found["drift", name, unit] = mean_interval(values.tolist())
            found["drift", f"{name}: scatter over {WAY_S:g} s", unit] = (
                _deviation_interval(values)
            )

    return found


def _deviation_interval(values: F8) -> Interval:
    """Return a standard deviation with its 95 % interval.

    The interval follows from the fourth moment.

    Parameters
    ----------
    values : (n,) float64
        Sample of at least two numbers.
    """
    n = len(values)
    # The sample variance's own variance follows from the spread of the squares.
    squares = (values - values.mean()) ** 2
    variance = float(squares.sum()) / (n - 1)
    spread = math.sqrt(
        max(0.0, float(((squares - squares.mean()) ** 2).mean()))
    ) / math.sqrt(n)
    low, high = (
        math.sqrt(max(0.0, variance + sign * 1.96 * spread)) for sign in (-1.0, 1.0)
    )
    return Interval(math.sqrt(variance), low, high, n)


def _scan_residuals(log: Log, truth: Series, matcher: Matcher) -> tuple[F8, F8]:
    """Return the residuals of ranges, and the unexplained fraction of each scan.

    The poses are fitted near the true ones, so that errors of the true poses do not
    count as errors of ranges.

    Parameters
    ----------
    log : Log
        Log with scans.
    truth : Series
        True poses by the log's clock.
    matcher : Matcher
        Matcher of the map.

    Returns
    -------
    residuals : (n,) float64
        Measured minus expected ranges, m.
    unexplained : (k,) float64
        Fraction of each scan's ranges, 0 to 1. Both arrays are empty if the log has no scans
        between the first and the last true pose.
    """
    assert log.scans is not None
    inside = log.scans.chosen(
        (log.scans.time >= truth.time[0]) & (log.scans.time <= truth.time[-1])
    )
    if not len(inside):
        return np.zeros(0), np.zeros(0)
    scans = spread_scans(inside, float(inside.time[-1] - inside.time[0]) / MAX_SCANS)
    poses = matcher.match(
        matcher.laser_poses(truth.at(scans.time)), scans.ranges, has_prior=False
    )
    expected = matcher.expect(poses)
    where = matcher.usable(scans.ranges) & expected.good
    share = np.array(
        [
            matcher.unexplained(poses[i : i + 1], scans.ranges[i : i + 1])
            for i in range(len(scans))
        ]
    )
    return (scans.ranges - expected.ranges)[where], share


def _scan_quantities(
    residuals: F8, unexplained: F8
) -> dict[tuple[str, str, str], Interval]:
    if len(residuals) < 3:
        return {}
    # Larger residuals are objects that the map does not have.
    near = residuals[np.abs(residuals) < 0.15]
    found = {
        ("scans", "ranges that the map does not explain", "%"): mean_interval(
            (100.0 * unexplained).tolist()
        )
    }
    if len(near) > 2:
        found["scans", "mean residual of ranges", "m"] = mean_interval(near.tolist())
        found["scans", "standard deviation of ranges", "m"] = _deviation_interval(near)

    return found


def _timing_quantities(log: Log) -> dict[tuple[str, str, str], Interval]:
    """Return the rates, Hz, and the jitter, s, of the messages in the log."""
    found = {}
    scans = np.zeros(0) if log.scans is None else log.scans.time
    for name, times in (
        ("odometry", log.odometry.time),
        ("scans", scans),
        ("commands", log.commands.time),
    ):
        if len(times) < 3:
            continue
        periods = np.diff(times)
        # Medians and percentiles: single gaps of a recording must not count as jitter.
        middle = float(np.median(periods))
        rate = (len(times) - 1) / float(times[-1] - times[0])
        jitter = float(np.percentile(np.abs(periods - middle), PERCENTILE))
        jitter = jitter if jitter > ROUNDING_S else 0.0
        found["timing", f"rate of {name}", "Hz"] = Interval(
            rate, math.nan, math.nan, len(times)
        )
        found["timing", f"jitter of {name} (95 % of periods)", "s"] = Interval(
            jitter, math.nan, math.nan, len(times)
        )

    return found


# -- the report


def write_comparison(found: Comparison, path: Path, *, force: bool = False) -> None:
    """Write the comparison as a self-contained HTML page.

    Parameters
    ----------
    found : Comparison
        Comparison to show.
    path : Path
        File to write.
    force : bool
        Whether to replace a file that botyard did not write.

    Raises
    ------
    CommandLineError, KeptFileError, OSError
        See `botyard.calibration.report.write_report`.
    """
    # Check for matplotlib first, so that no half-written report remains.
    if not is_there("matplotlib"):
        raise CommandLineError(lacking("a report", "calibrate"))
    parts = [
        f"<p>Real: {escaped(found.names[0], 300)}<br>Simulated: {escaped(found.names[1], 300)}</p>"
    ]
    for group in GROUPS:
        rows = [one.row() for one in found.quantities if one.group == group]
        if rows:
            parts += [
                f"<h2>{group.capitalize()}</h2>",
                plain_table(HEADS, rows, texts=2),
            ]

    if found.notes:
        parts += [
            "<h2>Not determined by the logs</h2><ul>",
            *(f"<li>{escaped(one, 1000)}</li>" for one in found.notes),
            "</ul>",
        ]

    parts += [image(figure, name) for name, figure in _figures(found)]
    write_text(path, document("Reality and simulation", parts), force=force)


def _figures(found: Comparison) -> Sequence[tuple[str, Any]]:
    from matplotlib.figure import Figure

    shown = []
    for label, arrays in (
        (
            "residual of ranges [m]",
            [np.clip(one.residuals, -0.2, 0.2) for one in found.measured],
        ),
        ("period of odometry [s]", [one.periods for one in found.measured]),
    ):
        if not all(map(len, arrays)):
            continue
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.subplots()
        # The margins keep rounding errors from filling the plot if all values are
        # equal.
        every = np.concatenate(arrays)
        bins = np.histogram_bin_edges(
            every, 60, (float(every.min()) - LEAST_BIN, float(every.max()) + LEAST_BIN)
        )
        for name, values in zip(("real", "simulated"), arrays, strict=True):
            axes.hist(values, bins.tolist(), histtype="step", density=True, label=name)
        axes.set_xlabel(label)
        axes.legend(fontsize=8)
        shown.append((label, figure))

    return shown


__all__ = [
    "GROUPS",
    "HEADS",
    "Comparison",
    "Measured",
    "Quantity",
    "compare",
    "measure",
    "write_comparison",
]
