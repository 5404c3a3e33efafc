"""A robot's model with fitted values, and its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from botyard.calibration.fitting import Value
from botyard.calibration.motion import MotionFit
from botyard.calibration.odometry import OdometryFit
from botyard.calibration.odometryvalues import ALPHAS, measured_shares
from botyard.calibration.ranges import RangeFit
from botyard.calibration.reflectors import ReflectorFit
from botyard.errors import ModelError
from botyard.model.devices import make_spec
from botyard.model.fourwheels import WHEELS
from botyard.model.kinematics import Axes
from botyard.model.library import load_robot, parse_robot
from botyard.model.robot import NO_DRIFT, OdometryDrift, RobotSpec
from botyard.model.robotfile import to_table
from botyard.model.robottext import tables_equal, toml_text
from botyard.processes.safefile import MARK

DIGITS: Final = 6
"""Number of significant digits of the numbers in the file."""


def calibrated(
    spec: RobotSpec,
    odometry: OdometryFit | None,
    motion: MotionFit | None,
    ranges: RangeFit | None,
    reflectors: ReflectorFit | None = None,
) -> RobotSpec:
    """Return the robot's model with all values that the logs determine.

    Other values do not change, except for a limit that a known bound contradicts.

    Parameters
    ----------
    spec : RobotSpec
        Model before the fits.
    odometry, motion, ranges, reflectors : fit or None
        Fits of the four groups; None: the group stays as it is. Ranges count only if
        the map matches the scans.
    """
    if odometry is not None:
        spec = _with_odometry(spec, odometry)
    if motion is not None:
        accel, decel = (
            replace(
                old,
                **{
                    axis: _determined_or(
                        motion.value(f"{name} {axis}"), getattr(old, axis)
                    )
                    for axis in "xa"
                },
            )
            for name, old in (
                ("accel", spec.limits.accel),
                ("decel", spec.limits.decel),
            )
        )
        spec = replace(spec, limits=replace(spec.limits, accel=accel, decel=decel))
        latency = motion.value("latency")
        if latency.is_determined:
            # The model requires a jitter that does not exceed the latency.
            jitter = min(spec.commands.jitter, latency.value)
            spec = replace(
                spec,
                commands=replace(spec.commands, latency=latency.value, jitter=jitter),
            )

    if ranges is not None and ranges.fits_map and spec.lasers:
        first = spec.lasers[0]
        first = replace(
            first,
            range_noise=_determined_or(ranges.value("range_noise"), first.range_noise),
            angle_noise=_determined_or(ranges.value("angle_noise"), first.angle_noise),
            range_share=_significant(ranges.value("range_share")),
            # The fitted noise contains all errors: a second one would count twice.
            range_deviation=0.0,
        )
        spec = replace(spec, lasers=(first, *spec.lasers[1:]))
        # A bias needs a device of its own, which is added only if the data demand it.
        bias = _significant(ranges.value("range_bias"))
        others = tuple(d for d in spec.devices if d.type != "normal_errors")
        if bias:
            others = (*others, make_spec("normal_errors", range_bias=bias))
        spec = replace(spec, devices=others)

    if reflectors is not None and spec.lasers:
        spec = replace(
            spec,
            lasers=(
                replace(spec.lasers[0], reflector=reflectors.rule),
                *spec.lasers[1:],
            ),
        )

    return spec


def _determined_or(value: Value, old: float) -> float:
    return value.value if value.is_determined else old


def _significant(value: Value, usual: float = 0.0) -> float:
    """Return the fitted value if its interval excludes `usual`, otherwise `usual`."""
    return (
        value.value
        if value.is_determined and not value.low <= usual <= value.high
        else usual
    )


def _with_odometry(spec: RobotSpec, odometry: OdometryFit) -> RobotSpec:
    high = spec.odometry_error
    low = spec.odometry_error_low or Axes(-high.x, -high.y, -high.a)
    wheels = spec.wheels
    names = {value.name for value in odometry.values}
    drift = spec.odometry_drift
    if by_distance := names.issuperset(ALPHAS):
        drift = OdometryDrift(
            *(
                _determined_or(odometry.value(name), old)
                for name, old in zip(ALPHAS, drift.as_tuple(), strict=True)
            )
        )

    if spec.steering is not None:
        offset = _determined_or(odometry.value("steering offset"), spec.steering.offset)
        spec = replace(spec, steering=replace(spec.steering, offset=offset))
    else:
        spec = _with_wheels(spec, odometry)

    measured = measured_shares(spec)
    axes = [("forward", 0, ALPHAS[2:]), ("turning", 2, ALPHAS[:2])]
    if spec.kinematics.moves_sideways:
        axes.append(("lateral", 1, ALPHAS[2:]))
    most, least = list(high.as_tuple()), list(low.as_tuple())
    for name, k, alphas in axes:
        middle, spread = 0.5 * (most[k] + least[k]), 0.5 * (most[k] - least[k])
        fitted = odometry.value(f"{name} error")
        # The wheels of the model already measure a part of the fitted error.
        if fitted.is_determined or wheels != spec.wheels:
            middle = (1.0 + fitted.value) / measured[k] - 1.0
        if not by_distance:
            spread = _determined_or(odometry.value(f"{name} spread"), spread)
        # The variances contain all random errors.
        elif any(odometry.value(alpha).is_determined for alpha in alphas):
            spread = 0.0
        most[k], least[k] = middle + spread, middle - spread

    return replace(
        spec,
        odometry_drift=drift if by_distance else NO_DRIFT,
        odometry_error=Axes(*most),
        odometry_error_low=Axes(*least),
        perfect_odometry=False,
    )


def _with_wheels(spec: RobotSpec, odometry: OdometryFit) -> RobotSpec:
    """Return the model with the fitted diameters of its wheels."""
    if spec.wheels is None:
        if spec.kinematics.moves_sideways or not odometry.value("E_d").is_determined:
            return spec
        return replace(spec, wheel_ratio=_significant(odometry.value("E_d"), 1.0))

    # The fitted proportional errors contain all slip.
    wheels = replace(spec.wheels, slip=0.0)
    slides = [value for value in odometry.values if value.name == "slide"]
    if slides and slides[0].is_determined:
        wheels = replace(wheels, slide=_significant(slides[0]))
    equal = (0.0,) * len(WHEELS)
    if not spec.kinematics.moves_sideways:
        if not odometry.value("E_d").is_determined:
            return replace(spec, wheels=wheels)
        ratio = _significant(odometry.value("E_d"), 1.0)
        return replace(spec, wheels=replace(wheels, errors=equal), wheel_ratio=ratio)

    found = [odometry.value(f"{name.replace('_', ' ')} wheel") for name in WHEELS]
    if all(one.is_determined for one in found):
        differ = any(_significant(one, 1.0) != 1.0 for one in found)
        errors = tuple(one.value - 1.0 for one in found) if differ else equal
        wheels = replace(wheels, errors=errors)
    return replace(spec, wheels=wheels)


def robot_text(
    spec: RobotSpec, base: RobotSpec, name: str, remarks: Sequence[str]
) -> str:
    """Return the contents of a robot file in TOML.

    If `base` is a model of the library, the file extends it and has only the
    differences.

    Parameters
    ----------
    spec, base : RobotSpec
        The robot, and the model that it was derived from.
    name : str
        Name of the robot: the file name without suffix.
    remarks : sequence of str
        Comments at the start of the file.

    Raises
    ------
    ModelError
        Writing and re-reading the file changes the robot.
    """
    whole = to_table(spec)
    # A file of the same name would extend itself.
    if _is_of_library(base) and name.lower() != base.name.lower():
        # A value that is the default again must replace the one of the base.
        before = to_table(base, defaults=True)
        table: dict[str, Any] = {
            "extends": base.name,
            "description": spec.description,
        } | _differences(to_table(spec, defaults=True), before)
    else:
        table = whole

    text = toml_text(table, (MARK, *remarks), DIGITS)
    if not tables_equal(to_table(parse_robot(text, name)), whole, 10.0 ** (1 - DIGITS)):
        raise ModelError(
            f"robot {spec.name}: writing and re-reading its file changes the robot"
        )
    return text


def _is_of_library(spec: RobotSpec) -> bool:
    try:
        return load_robot(spec.name) == spec
    except ModelError:
        return False


def _differences(table: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a table that differ from another table, down to single keys."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        old = before.get(name)
        if value == old:
            continue
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            value = {key: one for key, one in value.items() if one != old.get(key)}
        found[name] = value

    return found


__all__ = ["calibrated", "robot_text"]
