"""Response of a robot to velocity commands: latency, acceleration and deceleration.

These values are fitted to the velocities that the robot measured. The model is the
model of botyard's robots (`botyard.engine.kernels.motion.ramp`) in continuous time. A
command takes effect `latency` after it was sent. Until the next command, the velocity
approaches the commanded one, with constant acceleration if the speed grows and constant
deceleration if it falls. A change of sign passes through zero, and the rest of that
step is lost, as in a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from botyard.calibration.fitting import Fit, Parameter, Value, least_squares
from botyard.calibration.log import Log, Series
from botyard.calibration.planar import F8, between, twist_of
from botyard.model.kinematics import MotionLimits

MAX_LATENCY_S: Final = 2.0
FIRST_LATENCIES_S: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6)
FIRST_FACTORS: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Factors for the usual accelerations at the start of the search."""
MIN_RAMP, MAX_RAMP = 1e-2, 50.0
"""Bounds of accelerations, m/s² and rad/s²."""
USUAL_RAMP: Final = (0.5, 1.5)
"""Start values for models without accelerations, m/s² and rad/s²."""
MIN_ROWS: Final = 20
"""Minimum number of measured velocities."""
SAME_COMMAND: Final = 1e-9
DIFFERENCE: Final = 0.02
"""Step of numerical derivatives, as a fraction of the parameters' prior deviations.

It is large, because velocities jump a little with the ramps if a change of sign
coincides with a command.
"""
MAX_REFINEMENTS: Final = 300
"""Maximum number of evaluations of the exact model."""


@dataclass(frozen=True, slots=True, eq=False)
class MotionFit:
    """Fitted response to commands.

    Attributes
    ----------
    fit : Fit
        Fit of ``latency``, ``accel x``, ``decel x``, ``accel a``, ``decel a``.
    values : tuple of Value
        Values for reports.
    deviation : (2,) array
        Standard deviations of the residuals: m/s, rad/s.
    """

    fit: Fit
    values: tuple[Value, ...]
    deviation: F8

    def value(self, name: str) -> Value:
        """Return a fitted value by its name."""
        return next(one for one in self.values if one.name == name)


def measured_velocities(log: Log) -> Series:
    """Return the velocities that the robot measured.

    Without them, they are derived from odometry, halfway between two poses.

    Returns
    -------
    Series
        Velocities in the robot's frame: m/s, m/s, rad/s.
    """
    if len(log.velocities):
        return log.velocities
    time, poses = log.odometry.time, log.odometry.values
    twists = twist_of(between(poses[:-1], poses[1:])) / np.diff(time)[:, None]
    return Series(0.5 * (time[1:] + time[:-1]), twists)


def ramped(
    times: F8,
    targets: F8,
    accel: float,
    decel: float,
    step: float,
    at: F8,
    *,
    is_smooth: bool,
) -> F8:
    """Return velocities of a robot that follows targets, at the times `at`.

    Each target is valid from its time until the next one. The robot starts with the
    velocity of the first target.

    Parameters
    ----------
    times, targets : (k,) arrays
        Ascending times, s; targets, m/s or rad/s.
    accel, decel : float
        Ramps, m/s² or rad/s².
    step : float
        Step of the simulation, s. After a change of sign, the velocity stays 0 until
        the end of the step.
    at : (n,) array
        Times of the result, s.
    is_smooth : bool
        Lose half a step at each change of sign, which is the mean. The result then
        changes smoothly with the ramps.
    """
    knots, values = [float(times[0])], [float(targets[0])]
    velocity, ends = float(targets[0]), np.append(times[1:], np.inf).tolist()
    for begin, end, target in zip(times.tolist(), ends, targets.tolist(), strict=True):
        now = begin
        while now < end and velocity != target:
            turns = velocity * target < 0.0
            goal = 0.0 if turns else target
            slows = turns or abs(target) < abs(velocity)
            needed = abs(goal - velocity) / (decel if slows else accel)
            # The next command arrives before the target is reached.
            if now + needed > end:
                velocity += (goal - velocity) * (end - now) / needed
                now = end
            else:
                now, velocity = now + needed, goal

            knots.append(now)
            values.append(velocity)
            # The simulation sets the velocity once per step: after reaching 0 it waits
            # for the next.
            if turns and velocity == 0.0 and now < end:
                over = (
                    now + 0.5 * step
                    if is_smooth
                    else begin + math.ceil((now - begin) / step - 1e-9) * step
                )
                now = min(end, over)
                knots.append(now)
                values.append(0.0)

        # The velocity is constant until the next command.
        if end < np.inf and knots[-1] < end:
            knots.append(end)
            values.append(velocity)

    return np.interp(at, knots, values)


def _target_changes(times: F8, targets: F8, limit: float) -> tuple[F8, F8]:
    """Return only commands that change the target, limited to the robot's top speed.

    Parameters
    ----------
    times, targets : (k,) float64
        Times, s, and targets of one axis, m/s or rad/s.
    limit : float
        Top speed of the axis; infinite without one.
    """
    targets = np.clip(targets, -limit, limit)
    # Clients repeat commands: repetitions change nothing, and would slow the fit.
    new = np.append(True, np.abs(np.diff(targets)) > SAME_COMMAND)
    return times[new], targets[new]


class _Problem:
    """Differences between predicted and measured velocities, of all logs together."""

    def __init__(self, logs: Sequence[Log], limits: MotionLimits, step: float) -> None:
        self._step = step
        self._rows = []
        for log in logs:
            measured = measured_velocities(log)
            begin = log.commands.time[0]
            # Velocities before the first command are not caused by it.
            measured = measured.between(begin, np.inf)
            if len(measured) < 2:
                continue
            parts = []
            for axis, limit in ((0, limits.max_speed.x), (2, limits.max_speed.a)):
                changes = _target_changes(
                    log.commands.time, log.commands.values[:, axis], limit or np.inf
                )
                first = np.concatenate([[changes[0][0] - 10.0], changes[0]])
                # Before the first command, the robot keeps the first measured velocity.
                parts.append(
                    (
                        first,
                        np.concatenate([measured.values[:1, axis], changes[1]]),
                        measured.values[:, axis],
                    )
                )

            self._rows.append((measured.time, parts))

        self.count = sum(len(time) for time, _ in self._rows)

    def residuals(self, values: F8, *, is_smooth: bool = True) -> tuple[F8, F8]:
        """Return the differences of velocities for given latency and accelerations.

        Parameters
        ----------
        values : (5,) float64
            Latency, s, and ramps: acceleration and deceleration forward, m/s², then
            turning, rad/s².
        is_smooth : bool
            As for `ramped`.

        Returns
        -------
        (n,) float64, (n,) float64
            Predicted minus measured velocities, m/s and rad/s.
        """
        latency, *ramps = values.tolist()
        found: tuple[list[F8], list[F8]] = ([], [])
        for time, parts in self._rows:
            for axis, (times, targets, measured) in enumerate(parts):
                predicted = ramped(
                    times,
                    targets,
                    ramps[2 * axis],
                    ramps[2 * axis + 1],
                    self._step,
                    time - latency,
                    is_smooth=is_smooth,
                )
                found[axis].append(predicted - measured)

        return np.concatenate(found[0]), np.concatenate(found[1])


def fit_motion(
    logs: Sequence[Log], limits: MotionLimits, step: float, latency: float = 0.0
) -> MotionFit | None:
    """Fit latency and ramps to all logs together.

    Parameters
    ----------
    logs : sequence of Log
        Logs with commands, and with odometry or velocities.
    limits : MotionLimits
        Top speeds, and the start values of the ramps.
    step : float
        Step of the simulation that will use the values, s.
    latency : float
        Latency of the model before the fit, s.

    Returns
    -------
    MotionFit or None
        None if the logs contain fewer than `MIN_ROWS` velocities after commands.
    """
    logs = [log for log in logs if len(log.commands)]
    problem = _Problem(logs, limits, step)
    if problem.count < MIN_ROWS:
        return None
    before = [latency, limits.accel.x, limits.decel.x, limits.accel.a, limits.decel.a]
    # A ramp of 0 in the model means immediate changes, from which no search can start.
    starts = [0.0] + [value or USUAL_RAMP[k // 2] for k, value in enumerate(before[1:])]
    names = (
        (
            "latency",
            "s",
            "time from a command to the motion that it causes: commands.latency",
        ),
        ("accel x", "m/s²", "forward acceleration: limits.accel[0]"),
        ("decel x", "m/s²", "forward deceleration: limits.decel[0]"),
        (
            "accel a",
            "rad/s²",
            "rotational acceleration: limits.accel[2] (there in °/s²)",
        ),
        (
            "decel a",
            "rad/s²",
            "rotational deceleration: limits.decel[2] (there in °/s²)",
        ),
    )
    parameters = [
        Parameter(*names[0], min(latency, MAX_LATENCY_S), 0.2, 0.0, MAX_LATENCY_S)
    ]
    parameters += [
        Parameter(*name, start, 0.5 * start, MIN_RAMP, MAX_RAMP)
        for name, start in zip(names[1:], starts[1:], strict=True)
    ]
    # The cost has many local minima in the latency, so the fit starts from a grid
    # search.
    values = _search_start(problem, np.array(starts))
    # The noise of both axes is estimated from the residuals of the previous round.
    for _ in range(2):
        sizes = [
            max(1.4826 * float(np.median(np.abs(part))), 1e-4)
            for part in problem.residuals(values)
        ]

        def scaled(v: F8, sizes: list[float] = sizes) -> F8:
            return np.concatenate(
                [
                    part / size
                    for part, size in zip(problem.residuals(v), sizes, strict=True)
                ]
            )

        fit = least_squares(
            parameters,
            scaled,
            is_scaled=False,
            loss="soft_l1",
            start=values,
            difference=DIFFERENCE,
        )
        values = fit.values.copy()

    fit = _refine(problem, fit)
    deviation = np.array(
        [
            float(np.sqrt(np.mean(part * part)))
            for part in problem.residuals(fit.values, is_smooth=False)
        ]
    )
    return MotionFit(fit, tuple(fit.value(one.name) for one in parameters), deviation)


def motion_error(
    logs: Sequence[Log], limits: MotionLimits, step: float, values: F8
) -> tuple[float, float] | None:
    """Return the RMS error of predicted velocities, m/s and rad/s.

    Return None if the logs have no velocities.

    Parameters
    ----------
    logs, limits, step
        As for `fit_motion`.
    values : (5,) array
        Latency, s, and the ramps; a ramp of 0 means immediate changes.
    """
    problem = _Problem([log for log in logs if len(log.commands)], limits, step)
    if not problem.count:
        return None
    values = np.where(values > 0.0, values, [0.0, *[MAX_RAMP] * 4])
    x, a = (
        float(np.sqrt(np.mean(part * part)))
        for part in problem.residuals(values, is_smooth=False)
    )
    return x, a


def _refine(problem: _Problem, fit: Fit) -> Fit:
    """Refine a fit with the exact model; keep the smooth model's confidence intervals.

    The results of the exact model change in small jumps when an acceleration changes,
    so its derivatives are of no use.
    """
    from scipy import optimize

    determined = np.array(fit.determined)
    if not determined.any():
        return fit
    deviations = np.sqrt(np.diag(fit.covariance))[determined]
    sizes = [
        max(1.4826 * float(np.median(np.abs(part))), 1e-4)
        for part in problem.residuals(fit.values)
    ]
    low, high = (
        np.array([getattr(one, end) for one in fit.parameters])
        for end in ("low", "high")
    )

    def whole(part: F8) -> F8:
        values = fit.values.copy()
        values[determined] += part * deviations
        return np.clip(values, low, high)

    def cost(values: F8) -> float:
        parts = problem.residuals(values, is_smooth=False)
        return sum(
            float(np.sum(2.0 * (np.sqrt(1.0 + (part / size) ** 2) - 1.0)))
            for part, size in zip(parts, sizes, strict=True)
        )

    n = int(determined.sum())
    best = np.zeros(n)
    # Search twice, from simplexes of different size: the cost has many small minima.
    for size in (4.0, 2.0):
        simplex = (
            best + np.concatenate([np.zeros((1, n)), size * np.eye(n)]) - 0.25 * size
        )
        best = optimize.minimize(
            lambda part: cost(whole(part)),
            best,
            method="Nelder-Mead",
            options={
                "maxfev": MAX_REFINEMENTS,
                "initial_simplex": simplex,
                "xatol": 0.05,
                "fatol": 0.05,
            },
        ).x

    return replace(fit, values=whole(best))


def _search_start(problem: _Problem, starts: F8) -> F8:
    """Return the pair of latency and accelerations with the smallest error, to start the search."""
    # Scale both axes by their spread, so that they count equally whatever their units.
    usual = [max(float(np.std(part)), 1e-3) for part in problem.residuals(starts)]
    best, least = starts, np.inf
    for latency in FIRST_LATENCIES_S:
        for x in FIRST_FACTORS:
            trial = starts * np.array([0.0, x, x, x, x]) + np.array(
                [latency, 0.0, 0.0, 0.0, 0.0]
            )
            cost = sum(
                float(np.mean(np.abs(part))) / size
                for part, size in zip(problem.residuals(trial), usual, strict=True)
            )
            if cost < least:
                best, least = trial, cost

    return np.clip(best, [0.0, *[MIN_RAMP] * 4], [MAX_LATENCY_S, *[MAX_RAMP] * 4])


__all__ = ["MotionFit", "fit_motion", "measured_velocities", "motion_error", "ramped"]
