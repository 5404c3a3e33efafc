"""Calibration: fits a robot model to logs and true poses, with confidence intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from botyard.calibration.clock import clock_offset
from botyard.calibration.fitting import Value
from botyard.calibration.log import Log, Series
from botyard.calibration.matching import MAX_UNEXPLAINED, Matcher, matched_truth
from botyard.calibration.motion import MotionFit, fit_motion, motion_error
from botyard.calibration.odometry import SPARSE_S, OdometryFit, fit_odometry
from botyard.calibration.odometryvalues import ALPHAS
from botyard.calibration.planar import F8
from botyard.calibration.ranges import PlacedScans, RangeFit, fit_ranges, placed_scans
from botyard.calibration.reflectors import ReflectorFit, fit_reflectors
from botyard.calibration.robotfile import calibrated
from botyard.calibration.segments import NO_CORRECTION, end_errors, paths
from botyard.errors import ArgumentError, CalibrationError
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.names import shown

HELD_OUT: Final = 0.3
"""Fraction of a single log that is held out; of several logs, the last log is held out."""
DEFAULT_STEP_S: Final = 0.1
OdometryLaw = Literal["distance", "step"]
ODOMETRY_LAWS: Final[tuple[OdometryLaw, ...]] = ("distance", "step")
"""Models of the random errors of odometry that can be fitted, the default first."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Prediction errors on data that the fit did not use.

    Attributes
    ----------
    name, unit : str
        The predicted quantity and its unit.
    before, after : float
        Root mean square errors of the robot's model before the fit, and of the model
        fitted to the other data.
    """

    name: str
    unit: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Result of a calibration.

    Attributes
    ----------
    base, robot : RobotSpec
        The robot's model before the fit, and the model with the fitted values.
    logs : tuple of Log
        The logs.
    odometry, motion, ranges, reflectors : OdometryFit, MotionFit, RangeFit,
    ReflectorFit or None
        The fits; None if the logs lack the data.
    held_out : tuple of HeldOut
        Prediction errors on the data held out.
    notes : tuple of str
        Values that are missing or undetermined, with reasons.
    paths : tuple of three (k, 2) arrays, or None
        Paths of the first log, m: true positions, and positions by odometry before and
        after.
    """

    base: RobotSpec
    robot: RobotSpec
    logs: tuple[Log, ...]
    odometry: OdometryFit | None
    motion: MotionFit | None
    ranges: RangeFit | None
    reflectors: ReflectorFit | None
    held_out: tuple[HeldOut, ...]
    notes: tuple[str, ...]
    paths: tuple[F8, F8, F8] | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """All fitted values, of all groups."""
        return tuple(value for _, fit in self.groups for value in fit.values)

    @property
    def groups(
        self,
    ) -> tuple[tuple[str, OdometryFit | MotionFit | RangeFit | ReflectorFit], ...]:
        """All fits that were made, with the name of each group."""
        named = (
            ("odometry", self.odometry),
            ("motion", self.motion),
            ("laser", self.ranges),
            ("reflectors", self.reflectors),
        )
        return tuple((name, fit) for name, fit in named if fit is not None)

    def value(self, name: str) -> Value:
        """Return a fitted value by its name.

        Raises
        ------
        KeyError
            The name is unknown.
        """
        for one in self.values:
            if one.name == name:
                return one

        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as values for JSON."""
        return {
            "robot": self.robot.name,
            "logs": [log.source for log in self.logs],
            "values": {value.name: value.as_dict() for value in self.values},
            "unexplained_ranges": None
            if self.ranges is None
            else self.ranges.unexplained,
            "held_out": {
                one.name: {"unit": one.unit, "before": one.before, "after": one.after}
                for one in self.held_out
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """Log with its true poses and the offset between their clocks.

    `offset` converts times of the truth into times of the log, s.
    """

    log: Log
    truth: Series
    offset: float


def calibrate(
    logs: Sequence[Log],
    spec: RobotSpec,
    *,
    truths: Sequence[Series | None] | None = None,
    from_scans: bool = False,
    scene: Scene | None = None,
    start: Pose | None = None,
    step: float = DEFAULT_STEP_S,
    hold_out: bool = True,
    odometry_law: OdometryLaw = "distance",
) -> Calibration:
    """Fit a robot model to logs.

    Parameters
    ----------
    logs : sequence of Log
        Logs, as from `botyard.calibration.readers.read_log`.
    spec : RobotSpec
        The initial model.
    truths : sequence of Series or None, optional
        True poses of each log from another file; None for the log's own true poses.
    from_scans : bool
        Find true poses by matching the scans against the map.
    scene : Scene, optional
        The map, in the frame of the true poses. Ranges are fitted only with a map.
    start : Pose, optional
        With `from_scans`: approximate pose of the robot at the start of each log. The
        default is the start pose of the map.
    step : float
        Step of the simulations that will use the values, s.
    hold_out : bool
        Also hold a part of the logs out and predict it from the rest, which doubles the
        run time.
    odometry_law : str
        Random errors of odometry. ``distance`` fits variances per metre and radian,
        which are valid for any step. ``step`` fits the original model, a factor drawn
        in each step, for simulations with this `step`.

    Raises
    ------
    CalibrationError
        The logs lack necessary data, or a log is given twice; or the map does not match
        the scans that define the truth.
    ArgumentError
        `odometry_law` is unknown.
    """
    if odometry_law not in ODOMETRY_LAWS:
        raise ArgumentError(
            f'odometry_law: expected {" or ".join(ODOMETRY_LAWS)}, found "{shown(str(odometry_law), 60)}"'
        )

    # The fits use the step only for the original model: variances per metre do not
    # depend on it.
    drawn_in = step if odometry_law == "step" else None
    logs = [log.checked() for log in logs]
    _check_different(logs)
    notes = [f"{log.source}: {problem}" for log in logs for problem in log.problems]
    matchers = [_make_matcher(log, spec, scene) for log in logs]
    prepared = [
        _prepare(
            log,
            truth,
            matcher if from_scans else None,
            start or (scene.start if scene else None),
            from_scans,
            notes,
        )
        for log, truth, matcher in zip(
            logs, truths or [None] * len(logs), matchers, strict=True
        )
    ]
    logs = [one.log for one in prepared]
    # The order matters: scans are placed with the clock offsets and the markers' pose
    # that the fit of odometry finds, and reflectors use the laser's errors.
    odometry = _fit_odometry_of(prepared, spec, drawn_in, notes)
    motion = fit_motion(logs, spec.limits, step, spec.commands.latency)
    if motion is None:
        notes.append(
            "latency and accelerations: the logs contain no commands followed by velocities"
        )

    placed = _place_scans(prepared, odometry, matchers, scene, notes)
    ranges = _fit_laser(placed, notes)
    reflectors = _fit_reflector_rule(placed, ranges, scene, spec, notes)
    held_out = (
        _predict_held_out(prepared, odometry, spec, step, drawn_in) if hold_out else ()
    )
    # Each matcher holds a simulation, which must be closed.
    for matcher in matchers:
        if matcher is not None:
            matcher.close()

    # The report draws the paths of the first log that has true poses.
    lines = None
    if odometry is not None:
        first = next(one for one in prepared if len(one.truth) > 1)
        lines = paths(
            first.log,
            first.truth,
            _clock_offset(first, odometry, 1),
            odometry.corrected,
            odometry.fit.values[3:6],
        )

    found = Calibration(
        spec,
        calibrated(spec, odometry, motion, ranges, reflectors),
        tuple(logs),
        odometry,
        motion,
        ranges,
        reflectors,
        held_out,
        tuple(notes),
        lines,
    )
    return replace(found, notes=(*notes, *_undetermined_notes(found)))


def _check_different(logs: Sequence[Log]) -> None:
    """Raise an error if a log is given twice.

    The same data would count twice, and intervals would be too narrow.
    """
    for one, other in itertools.combinations(logs, 2):
        a, b = one.odometry, other.odometry
        if np.array_equal(a.time, b.time) and np.array_equal(a.values, b.values):
            raise CalibrationError(
                f"{one.source} and {other.source} are the same log: give it once"
            )


def _make_matcher(log: Log, spec: RobotSpec, scene: Scene | None) -> Matcher | None:
    if scene is None or log.scans is None:
        return None
    if not spec.lasers:
        raise CalibrationError(
            f"{log.source} contains scans: expected a robot with a laser, found {spec.name}"
        )

    return Matcher(scene, spec.lasers[0], log.scans.bearings)


def _prepare(
    log: Log,
    truth: Series | None,
    matcher: Matcher | None,
    start: Pose | None,
    from_scans: bool,
    notes: list[str],
) -> _Prepared:
    if from_scans:
        if matcher is None:
            raise CalibrationError(
                f"{log.source}: expected scans and a map to find true poses, found "
                f"{'no map' if log.scans else 'no scans'}"
            )

        # Matching is local: it needs an approximate pose to start from.
        if start is None:
            raise CalibrationError(
                f"{log.source}: expected the pose at the start of the log, found "
                "none, and none in the map"
            )

        found, unexplained = matched_truth(log, matcher, np.array(start, np.float64))
        if unexplained > MAX_UNEXPLAINED:
            raise CalibrationError(
                f"{log.source}: the map does not match the scans: it does not "
                f"explain {100 * unexplained:.0f} % of the ranges "
                "(another map, another start, or another laser)"
            )

        # Scans and odometry come from one recording, so their clocks agree. The pose of
        # the laser on the robot is known.
        log = replace(log, has_exact_clock=True, has_true_origin=True)
        return _Prepared(log, found, 0.0)

    if truth is None:
        return _Prepared(log, log.truth, 0.0)
    log = replace(log, has_exact_clock=False, has_true_origin=False)
    # Sparse poses, for example measured by hand, show no motion to correlate.
    if float(truth.time[-1] - truth.time[0]) / len(truth) >= SPARSE_S:
        return _Prepared(log, truth, 0.0)
    try:
        return _Prepared(log, truth, clock_offset(log.odometry, truth))
    except CalibrationError as error:
        # If the motions cannot be aligned, log and truth may still use the same clock.
        # If their time spans hardly overlap, they do not.
        common = min(log.span[1], float(truth.time[-1])) - max(
            log.span[0], float(truth.time[0])
        )
        if common < 0.5 * min(
            log.span[1] - log.span[0], float(truth.time[-1] - truth.time[0])
        ):
            raise CalibrationError(f"{log.source}: {error}") from None

        notes.append(
            f"{log.source}: {error}; the clock of the log is used for the true poses as well"
        )
        return _Prepared(log, truth, 0.0)


def _fit_odometry_of(
    prepared: Sequence[_Prepared],
    spec: RobotSpec,
    drawn_in: float | None,
    notes: list[str],
) -> OdometryFit | None:
    some = [one for one in prepared if len(one.truth) > 1]
    if not some:
        notes.append("odometry: there are no true poses")
        return None

    found = fit_odometry(
        [o.log for o in some],
        [o.truth for o in some],
        [o.offset for o in some],
        spec,
        drawn_in,
    )
    if found.outliers:
        notes.append(f"odometry: {found.outliers} true poses were excluded as outliers")
    return found


def _clock_offset(one: _Prepared, odometry: OdometryFit | None, number: int) -> float:
    """Return the clock offset of a log, s, including the correction that the odometry fit found."""
    name = f"clock {number}"
    if odometry is None or all(p.name != name for p in odometry.fit.parameters):
        return one.offset
    return one.offset + odometry.fit[name]


def _place_scans(
    prepared: Sequence[_Prepared],
    odometry: OdometryFit | None,
    matchers: Sequence[Matcher | None],
    scene: Scene | None,
    notes: list[str],
) -> list[PlacedScans] | None:
    """Return the scans of the logs with their true poses; None without scans or without a map."""
    if all(one.log.scans is None for one in prepared):
        notes.append("laser: the logs contain no scans")
        return None

    if scene is None:
        notes.append("laser: there is no map to compare scans with (--map)")
        return None

    some = [i for i, one in enumerate(prepared) if len(one.truth) > 1]
    # Values 3 to 5 of the fit are the pose of the markers in the robot's frame.
    markers: F8 = np.zeros(3) if odometry is None else odometry.fit.values[3:6]
    offsets = [_clock_offset(prepared[i], odometry, n + 1) for n, i in enumerate(some)]
    return placed_scans(
        [prepared[i].log for i in some],
        [prepared[i].truth for i in some],
        offsets,
        markers,
        [matchers[i] for i in some],
    )


def _fit_laser(placed: list[PlacedScans] | None, notes: list[str]) -> RangeFit | None:
    if placed is None:
        return None
    found = fit_ranges(placed)
    if found is None:
        notes.append("laser: there are too few scans at true poses")
    elif not found.fits_map:
        notes.append(
            "laser: the map does not match the scans: it does not explain "
            f"{100 * found.unexplained:.0f} % of the ranges "
            "(another map, or true poses in another frame); the laser's values are not used"
        )

    return found


def _fit_reflector_rule(
    placed: list[PlacedScans] | None,
    ranges: RangeFit | None,
    scene: Scene | None,
    spec: RobotSpec,
    notes: list[str],
) -> ReflectorFit | None:
    # The fit of ranges has already added a note in these cases.
    if placed is None or scene is None or ranges is None or not ranges.fits_map:
        return None

    found, why = fit_reflectors(placed, scene, spec.lasers[0].reflector, ranges)
    if why:
        notes.append(f"reflectors: {why}")
    return found


def _undetermined_notes(found: Calibration) -> list[str]:
    """Return a note for each value that the logs do not determine, with the usual reasons."""
    reasons = {
        "wheel separation": "without turns the wheel separation is not observable",
        "turn scale": "without turns the scale of turns is not observable",
        "lateral scale": "without driving sideways this scale is not observable",
        "left scale": "without driving forward the scales are not observable",
        "turning spread": "without turns the random error of turning is not observable",
        "forward spread": "the errors of the true poses hide the random error of driving forward",
    } | dict.fromkeys(
        ALPHAS,
        "the logs do not separate it from the other variances, or from the errors "
        "of the true poses",
    )
    if found.reflectors is not None:
        reasons |= found.reflectors.reasons
    names = [value.name for value in found.values if not value.is_determined]
    return [
        f"the logs do not determine {name}"
        + (f": {reasons[name]}" if name in reasons else "")
        for name in names
    ]


# -- data held out


def _split_data(
    prepared: Sequence[_Prepared],
) -> tuple[list[_Prepared], list[_Prepared]]:
    """Return two lists of logs: those to fit, and those to hold out for the prediction."""
    # A whole log is independent of the other logs; parts of one log share conditions.
    if len(prepared) > 1:
        return list(prepared[:-1]), list(prepared[-1:])
    one = prepared[0]
    begin, end = one.log.span
    middle = end - HELD_OUT * (end - begin)
    return [replace(one, log=one.log.part(begin, middle))], [
        replace(one, log=one.log.part(middle, end))
    ]


def _predict_held_out(
    prepared: Sequence[_Prepared],
    odometry: OdometryFit | None,
    spec: RobotSpec,
    step: float,
    drawn_in: float | None,
) -> tuple[HeldOut, ...]:
    rest, held = _split_data(prepared)
    found: list[HeldOut] = []
    if all(len(one.truth) > 1 for one in prepared):
        try:
            fit = fit_odometry(
                [o.log for o in rest],
                [o.truth for o in rest],
                [o.offset for o in rest],
                spec,
                drawn_in,
            )
            markers, last = fit.fit.values[3:6], held[-1]
            # The clock offset is not part of the robot's model, so the fit of all data
            # provides it.
            offset = _clock_offset(last, odometry, len(prepared))
            before = end_errors(last.log, last.truth, offset, NO_CORRECTION, markers)
            after = end_errors(last.log, last.truth, offset, fit.corrected, markers)
        # The rest of the data alone determines too few values.
        except CalibrationError:
            pass
        else:
            found.append(
                HeldOut("place by odometry after 10 segments", "m", before[0], after[0])
            )
            found.append(
                HeldOut(
                    "heading by odometry after 10 segments", "rad", before[1], after[1]
                )
            )

    motion = fit_motion([one.log for one in rest], spec.limits, step)
    if motion is not None:
        limits = spec.limits
        old = np.array(
            [
                spec.commands.latency,
                limits.accel.x,
                limits.decel.x,
                limits.accel.a,
                limits.decel.a,
            ]
        )
        errors = [
            motion_error([one.log for one in held], spec.limits, step, v)
            for v in (old, motion.fit.values)
        ]
        if errors[0] is not None and errors[1] is not None:
            found.append(
                HeldOut("speed by the commands", "m/s", errors[0][0], errors[1][0])
            )
            found.append(
                HeldOut("yaw rate by the commands", "rad/s", errors[0][1], errors[1][1])
            )

    return tuple(
        one for one in found if math.isfinite(one.before) and math.isfinite(one.after)
    )


__all__ = [
    "DEFAULT_STEP_S",
    "ODOMETRY_LAWS",
    "Calibration",
    "HeldOut",
    "OdometryLaw",
    "calibrate",
]
