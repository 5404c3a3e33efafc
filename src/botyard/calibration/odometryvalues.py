"""Values of fitted odometry, as a robot file and the report give them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Final, TypeAlias

from botyard.calibration.fitting import Fit, Value, untold
from botyard.model.fourwheels import AHEAD, LEFT, ROLLERS, WHEELS
from botyard.model.kinematics import Axes, Kinematics
from botyard.model.robot import RobotSpec

ALPHAS: Final = ("alpha1", "alpha2", "alpha3", "alpha4")
"""Names of the variances α1 … α4, in the order of `OdometryDrift`."""
Parameters: TypeAlias = Mapping[str, float] | Fit
"""Values of the parameters of a fit by name."""


def _error_bounds(spec: RobotSpec) -> tuple[Axes, Axes]:
    """Return the upper and lower bounds of the odometry errors, as fractions of the motion."""
    high = spec.odometry_error
    return high, spec.odometry_error_low or Axes(-high.x, -high.y, -high.a)


def wheels_of(*modes: float) -> tuple[float, ...]:
    """Return the relative diameters of Mecanum wheels.

    Parameters
    ----------
    *modes : float
        Half the relative differences of right and left wheels, front and rear wheels, and of
        both diagonals: ``skew``, ``axles`` and ``diagonals``. Drives without wheels have
        none.

    Returns
    -------
    tuple of float
        Diameter of each wheel divided by the mean of all, in the order of
        `botyard.model.fourwheels.WHEELS`.
    """
    if not modes:
        return ()
    return tuple(
        1.0 + sum(mode * sign for mode, sign in zip(modes, signs, strict=True))
        for signs in zip((-one for one in LEFT), AHEAD, ROLLERS, strict=True)
    )


def _turn_scale(spec: RobotSpec) -> tuple[str, Callable[[Parameters], float]]:
    """Return the parameter by which turns are scaled, and the true turn per rad of odometry."""
    if spec.kinematics.moves_sideways:
        return "turn", lambda p: p["turn"]
    name = "wheelbase" if spec.kinematics.steers else "separation"
    return name, lambda p: p["scale"] / p[name]


def systematic_values(
    fit: Fit, spec: RobotSpec, *, has_origin: bool = False
) -> tuple[Value, ...]:
    """Return the values of the systematic errors of odometry.

    The result has the values per wheel, as in UMBmark, of the steered axle, or for each
    axis, and the robot's parameters.

    Parameters
    ----------
    fit : Fit
        Fit of the odometry.
    spec : RobotSpec
        Model before the fit.
    has_origin : bool
        Whether all true poses are poses of the robot's origin.
    """
    error, low = _error_bounds(spec)
    measured = measured_shares(spec)
    rows = [
        (0, "forward", "scale", lambda p: 1.0 / p["scale"] - 1.0),
        (2, "turning", _turn_scale(spec)[0], _turning_error(spec)),
    ]
    if spec.kinematics.moves_sideways:
        rows.insert(1, (1, "lateral", "lateral", lambda p: 1.0 / p["lateral"] - 1.0))
    return (
        *_of_drive(fit, spec),
        *_slide(fit, spec, has_origin),
        *(
            fit.derived(
                f"{name} error",
                "",
                f"mean proportional error of odometry {name}: the middle of "
                f"odometry.error_low[{k}] and odometry.error[{k}]",
                of,
                (parameter,),
                (1.0 + 0.5 * (error.as_tuple()[k] + low.as_tuple()[k])) * measured[k]
                - 1.0,
            )
            for k, name, parameter, of in rows
        ),
    )


def measured_shares(spec: RobotSpec) -> tuple[float, float, float]:
    """Return the displacement that odometry measures per true one, for each axis.

    Slip and diameters of four wheels change it, besides the proportional errors.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robot.
    """
    matrix = spec.kinematics.odometry_matrix
    if matrix is None:
        return 1.0, 1.0, 1.0
    # The wheels of a skid-steered robot measure nothing to the left.
    return matrix[0], matrix[4] or 1.0, matrix[8]


def _turning_error(spec: RobotSpec) -> Callable[[Parameters], float]:
    """Return the proportional error of turns by the fitted parameters.

    The turn of a car follows from the distance that its odometry measures, with the error
    of that distance (`botyard.engine.kernels.odometry.by_axles`).
    """
    if spec.kinematics.steers:
        return lambda p: p["wheelbase"] - 1.0
    scale = _turn_scale(spec)[1]
    return lambda p: 1.0 / scale(p) - 1.0


def _of_drive(fit: Fit, spec: RobotSpec) -> list[Value]:
    """Return the values of the steered axle, of the wheels, or of the axes."""
    kinematics = spec.kinematics
    steering = kinematics.steering
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

    if kinematics.moves_sideways:
        return _of_axes(fit, kinematics)

    # Scrubbing wheels turn the body as if they were farther apart.
    wheels, nominal = ("scale", "skew"), 2.0 * kinematics.lever
    track = (
        []
        if kinematics.wheels is None
        else [
            fit.derived(
                "track factor",
                "",
                "effective wheel separation divided by track: wheel_separation_multiplier "
                "of an odometry without turning error",
                lambda p: p["separation"] * nominal / kinematics.track,
                ("separation",),
                kinematics.wheels.track_factor,
            )
        ]
    )
    return [
        *track,
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
            "distance between the driven wheels, of scrubbing wheels the effective one",
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


def _slide(fit: Fit, spec: RobotSpec, has_origin: bool) -> list[Value]:
    """Return the place of the centre of rotation of scrubbing wheels, if the log determines it.

    The origin moves as a point that stands behind this centre. The fit takes the centre of
    the model and puts the markers where the origin really is; markers at an unknown place
    would be there for any centre.
    """
    wheels = spec.wheels
    if wheels is None or spec.kinematics.moves_sideways or not has_origin:
        return []
    return [
        fit.derived(
            "slide",
            "m",
            "place of the centre of rotation in front of the origin: wheels.slide",
            lambda p: wheels.slide - p["markers x"],
            ("markers x",),
            wheels.slide,
        )
    ]


def _of_axes(fit: Fit, kinematics: Kinematics) -> list[Value]:
    """Return the values of a drive that moves to all sides."""
    found = [
        fit.derived(
            f"{name} scale",
            "",
            f"true {about} of odometry",
            itemgetter(parameter),
            (parameter,),
            1.0,
        )
        for name, parameter, about in (
            ("forward", "scale", "distance forward per metre"),
            ("lateral", "lateral", "distance to the left per metre"),
            ("turn", "turn", "turn per radian"),
        )
    ]
    if kinematics.wheels is None:
        return found

    modes, errors = ("skew", "axles", "diagonals"), kinematics.wheels.errors
    mean = sum(errors) / len(errors)
    for k, name in enumerate(WHEELS):
        found.append(
            fit.derived(
                f"{name.replace('_', ' ')} wheel",
                "",
                f"diameter divided by the mean of all wheels: 1 + wheels.errors[{k}]",
                lambda p, k=k: wheels_of(*(p[mode] for mode in modes))[k],  # type: ignore[misc]
                modes,
                (1.0 + errors[k]) / (1.0 + mean),
            )
        )

    return found


def step_values(
    fit: Fit, determined: Mapping[int, tuple[float, float]], spec: RobotSpec
) -> list[Value]:
    """Return the random errors of odometry in the original model, which draws them in each step.

    The values are half-widths of uniform errors: √3 times the standard deviation.

    Parameters
    ----------
    fit : Fit
        Fit of the odometry.
    determined : mapping of int to (float, float)
        Variance of ε, and standard deviation of the logarithm of its square root, by
        axis: 0 forward, 1 turning, 2 to the left. Axes that the logs do not determine are missing.
    spec : RobotSpec
        Model before the fit.
    """
    error, low = _error_bounds(spec)
    # The model's errors multiply odometry's own displacements, before the correction.
    factors = [
        ("forward", 0, 1.0 / fit["scale"]),
        ("turning", 2, 1.0 + _turning_error(spec)(fit)),
    ]
    if spec.kinematics.moves_sideways:
        factors.append(("lateral", 1, 1.0 / fit["lateral"]))
    found = []
    for k, (axis, i, factor) in enumerate(factors):
        name = f"{axis} spread"
        about = (
            f"random part of the {axis} error: half of (odometry.error[{i}] − "
            f"odometry.error_low[{i}])"
        )
        before = 0.5 * (error.as_tuple()[i] - low.as_tuple()[i])
        if k not in determined:
            found.append(untold(name, "", about, before))
            continue

        variance, spread = determined[k]
        found.append(
            _random_value(
                name, "", about, math.sqrt(3.0 * variance) * factor, spread, before
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
        Fit of the odometry.
    determined : mapping of int to (float, float)
        Variance, and standard deviation of the logarithm of its square root, by index
        in `ALPHAS`. Variances that the logs do not determine are missing.
    spec : RobotSpec
        Model before the fit.
    """
    scale, turn = fit["scale"], _turn_scale(spec)[1](fit)
    rows = (
        ("rad²/rad", "variance of the heading per radian", 1.0 / turn),
        ("rad²/m", "variance of the heading per metre", scale / (turn * turn)),
        ("m²/m", "variance of the distance per metre", 1.0 / scale),
        ("m²/rad", "variance of the distance per radian", turn / (scale * scale)),
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


__all__ = [
    "ALPHAS",
    "distance_values",
    "measured_shares",
    "step_values",
    "systematic_values",
    "wheels_of",
]
