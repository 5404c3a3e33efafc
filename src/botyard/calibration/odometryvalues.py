"""Values of fitted odometry, as a robot file and the report give them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from botyard.calibration.fitting import Fit, Value, untold
from botyard.model.kinematics import Axes
from botyard.model.robot import RobotSpec

ALPHAS: Final = ("alpha1", "alpha2", "alpha3", "alpha4")
"""Names of the variances α1 … α4, in the order of `OdometryDrift`."""


def _error_bounds(spec: RobotSpec) -> tuple[Axes, Axes]:
    """Return the upper and lower bounds of the odometry errors, as fractions of the motion."""
    high = spec.odometry_error
    return high, spec.odometry_error_low or Axes(-high.x, -high.y, -high.a)


def turning_name(spec: RobotSpec) -> str:
    """Return the parameter of a fit by which turns are scaled."""
    return "wheelbase" if spec.kinematics.steers else "separation"


def systematic_values(fit: Fit, spec: RobotSpec) -> tuple[Value, ...]:
    """Return the values of the systematic errors of odometry.

    The result has the values per wheel, as in UMBmark, or of the steered axle, and the
    robot's parameters.

    Parameters
    ----------
    fit : Fit
        Fit with ``scale``, and with ``skew`` and ``separation`` or ``offset`` and
        ``wheelbase``.
    spec : RobotSpec
        Model before the fit.
    """
    error, low = _error_bounds(spec)
    turning, middle = turning_name(spec), "mean proportional error of odometry"
    return (
        *_of_axle(fit, spec),
        fit.derived(
            "forward error",
            "",
            f"{middle} forward: the middle of odometry.error_low[0] and odometry.error[0]",
            lambda p: 1.0 / p["scale"] - 1.0,
            ("scale",),
            0.5 * (error.x + low.x),
        ),
        fit.derived(
            "turning error",
            "",
            f"{middle} turning: the middle of odometry.error_low[2] and odometry.error[2]",
            _turning_error(spec),
            (turning,),
            0.5 * (error.a + low.a),
        ),
    )


def _turning_error(spec: RobotSpec) -> Callable[[Mapping[str, float] | Fit], float]:
    """Return the proportional error of turns by the fitted parameters.

    The turn of a car follows from the distance that its odometry measures, with the error
    of that distance (`botyard.engine.kernels.odometry.by_axles`).
    """
    if spec.kinematics.steers:
        return lambda p: p["wheelbase"] - 1.0
    return lambda p: p["separation"] / p["scale"] - 1.0


def _of_axle(fit: Fit, spec: RobotSpec) -> list[Value]:
    """Return the values of the steered axle, or of the two wheels."""
    steering = spec.kinematics.steering
    if steering is not None:
        return [
            fit.derived(
                "steering offset",
                "rad",
                "true steering angle minus the measured one: steering.offset_deg",
                lambda p: p["offset"],
                ("offset",),
                steering.offset,
            ),
            fit.derived(
                "wheelbase",
                "m",
                "distance from the fixed axle to the steered one",
                lambda p: p["wheelbase"] * steering.wheelbase,
                ("wheelbase",),
                steering.wheelbase,
            ),
        ]

    wheels, nominal = ("scale", "skew"), spec.kinematics.track
    return [
        fit.derived(
            "left scale",
            "",
            "true travel of the left wheel per metre of odometry",
            lambda p: p["scale"] - p["skew"],
            wheels,
            1.0,
        ),
        fit.derived(
            "right scale",
            "",
            "true travel of the right wheel per metre of odometry",
            lambda p: p["scale"] + p["skew"],
            wheels,
            1.0,
        ),
        fit.derived(
            "wheel separation",
            "m",
            "distance between the driven wheels",
            lambda p: p["separation"] * nominal,
            ("separation",),
            nominal,
        ),
        fit.derived(
            "E_d",
            "",
            "UMBmark: right wheel's diameter divided by the left one's: odometry.wheel_ratio",
            lambda p: (p["scale"] + p["skew"]) / (p["scale"] - p["skew"]),
            wheels,
            spec.wheel_ratio,
        ),
        fit.derived(
            "E_b",
            "",
            "UMBmark: actual separation divided by the nominal one",
            lambda p: p["separation"],
            ("separation",),
            1.0,
        ),
        fit.derived(
            "drift",
            "rad/m",
            "true rotation per metre that odometry reports as straight",
            lambda p: 2.0 * p["skew"] / (p["separation"] * nominal),
            ("skew",),
            0.0,
        ),
    ]


def step_values(
    fit: Fit, determined: Mapping[int, tuple[float, float]], spec: RobotSpec
) -> list[Value]:
    """Return the random errors of odometry in the original model, which draws them in each step.

    The values are half-widths of uniform errors: √3 times the standard deviation.

    Parameters
    ----------
    fit : Fit
        Fit with ``scale``, and ``separation`` or ``wheelbase``.
    determined : mapping of int to (float, float)
        Variance of ε, and standard deviation of the logarithm of its square root, by
        axis: 0 forward, 1 turning. Axes that the logs do not determine are missing.
    spec : RobotSpec
        Model before the fit.
    """
    error, low = _error_bounds(spec)
    rows = (
        (
            "forward spread",
            "random part of the forward error: half of (odometry.error[0] − odometry.error_low[0])",
            0.5 * (error.x - low.x),
        ),
        (
            "turning spread",
            "random part of the turning error: half of (odometry.error[2] − odometry.error_low[2])",
            0.5 * (error.a - low.a),
        ),
    )
    # The model's errors multiply odometry's own displacements, before the correction.
    factors = (
        1.0 / fit["scale"],
        1.0 + _turning_error(spec)(fit),
    )
    found = []
    for k, (name, about, before) in enumerate(rows):
        if k not in determined:
            found.append(untold(name, "", about, before))
            continue

        variance, spread = determined[k]
        found.append(
            _random_value(
                name, "", about, math.sqrt(3.0 * variance) * factors[k], spread, before
            )
        )

    return found


def distance_values(
    fit: Fit, determined: Mapping[int, tuple[float, float]], spec: RobotSpec
) -> list[Value]:
    """Return the random errors of odometry as variances per metre and radian.

    The variances refer to odometry's own metres and radians, not to corrected ones.

    Parameters
    ----------
    fit : Fit
        Fit with ``scale``, and ``separation`` or ``wheelbase``.
    determined : mapping of int to (float, float)
        Variance, and standard deviation of the logarithm of its square root, by index
        in `ALPHAS`. Variances that the logs do not determine are missing.
    spec : RobotSpec
        Model before the fit.
    """
    scale, separation = fit["scale"], fit[turning_name(spec)]
    rows = (
        ("rad²/rad", "variance of the heading per radian", separation / scale),
        (
            "rad²/m",
            "variance of the heading per metre",
            separation * separation / scale,
        ),
        ("m²/m", "variance of the distance per metre", 1.0 / scale),
        ("m²/rad", "variance of the distance per radian", 1.0 / (scale * separation)),
    )
    found = []
    for k, (name, (unit, about, factor)) in enumerate(zip(ALPHAS, rows, strict=True)):
        before, about = (
            spec.odometry_drift.as_tuple()[k],
            f"{about}: odometry.drift[{k}]",
        )
        if k not in determined:
            found.append(untold(name, unit, about, before))
            continue

        variance, spread = determined[k]
        found.append(
            _random_value(name, unit, about, variance * factor, 2.0 * spread, before)
        )

    return found


def _random_value(
    name: str, unit: str, about: str, value: float, spread: float, before: float
) -> Value:
    """Return the size of a random error with its 95 % interval.

    Parameters
    ----------
    name, unit, about : str
        Texts for reports.
    value : float
        Estimate, greater than 0.
    spread : float
        Standard deviation of the logarithm of `value`.
    before : float
        Value of the model before the fit.
    """
    # The logarithm is approximately normal, so the interval is symmetric in it.
    factor = math.exp(1.96 * spread)
    return Value(name, unit, about, value, value / factor, value * factor, before)


__all__ = ["ALPHAS", "distance_values", "step_values", "systematic_values"]
