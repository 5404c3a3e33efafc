"""A robot's model with fitted values, and its file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from botyard.calibration.fitting import Value
from botyard.calibration.motion import MotionFit
from botyard.calibration.odometry import OdometryFit
from botyard.calibration.odometryvalues import ALPHAS
from botyard.calibration.ranges import RangeFit
from botyard.calibration.reflectors import ReflectorFit
from botyard.errors import ModelError
from botyard.model.devices import make_spec
from botyard.model.kinematics import Axes
from botyard.model.library import load_robot, parse_robot
from botyard.model.robot import NO_DRIFT, OdometryDrift, RobotSpec
from botyard.model.robotfile import to_table
from botyard.processes.safefile import MARK

DIGITS: Final = 6
"""Number of digits of numbers in the file."""


def calibrated(
    spec: RobotSpec,
    odometry: OdometryFit | None,
    motion: MotionFit | None,
    ranges: RangeFit | None,
    reflectors: ReflectorFit | None = None,
) -> RobotSpec:
    """Return the robot with all determined values.

    Other values stay, except for a limit that a known bound contradicts.
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
            # The model demands a jitter of at most the latency.
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
    """Return the value if its interval excludes `usual`, otherwise `usual`."""
    return (
        value.value
        if value.is_determined and not value.low <= usual <= value.high
        else usual
    )


def _with_odometry(spec: RobotSpec, odometry: OdometryFit) -> RobotSpec:
    high = spec.odometry_error
    low = spec.odometry_error_low or Axes(-high.x, -high.y, -high.a)
    found = dict[str, tuple[float, float]]()
    names = {value.name for value in odometry.values}
    drift = spec.odometry_drift
    if by_distance := names.issuperset(ALPHAS):
        drift = OdometryDrift(
            *(
                _determined_or(odometry.value(name), old)
                for name, old in zip(ALPHAS, drift.as_tuple(), strict=True)
            )
        )

    for axis, name, alphas in (
        ("x", "forward", ALPHAS[2:]),
        ("a", "turning", ALPHAS[:2]),
    ):
        most, least = getattr(high, axis), getattr(low, axis)
        middle = _determined_or(odometry.value(f"{name} error"), 0.5 * (most + least))
        if not by_distance:
            spread = _determined_or(
                odometry.value(f"{name} spread"), 0.5 * (most - least)
            )
        # The variances contain all random errors.
        elif any(odometry.value(alpha).is_determined for alpha in alphas):
            spread = 0.0
        else:
            spread = 0.5 * (most - least)

        found[axis] = middle - spread, middle + spread

    return replace(
        spec,
        odometry_drift=drift if by_distance else NO_DRIFT,
        odometry_error=Axes(found["x"][1], high.y, found["a"][1]),
        odometry_error_low=Axes(found["x"][0], low.y, found["a"][0]),
        perfect_odometry=False,
        wheel_ratio=_significant(odometry.value("E_d"), 1.0)
        if odometry.value("E_d").is_determined
        else spec.wheel_ratio,
    )


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
        before = to_table(base)
        table: dict[str, Any] = {
            "extends": base.name,
            "description": spec.description,
        } | _differences(whole, before)
    else:
        table = whole

    lines = [f"# {MARK}", *(f"# {line}" for line in remarks)]
    # TOML: values of the root must precede the first table.
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines += [
        f"{key} = {_toml(value)}" for key, value in table.items() if key not in tables
    ]
    for key, value in tables.items():
        lines += [
            "",
            f"[{key}]",
            *(f"{inner} = {_toml(one)}" for inner, one in value.items()),
        ]

    text = "\n".join(lines) + "\n"
    if not _tables_equal(to_table(parse_robot(text, name)), whole):
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
    """Return the values that differ; of tables, the keys that differ."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        old = before.get(name)
        if value == old:
            continue
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            value = {key: one for key, one in value.items() if one != old.get(key)}
        found[name] = value

    return found


def _tables_equal(a: Any, b: Any) -> bool:
    """Return whether two tables are equal.

    Numbers may differ beyond the written digits, and missing values equal None.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return all(_tables_equal(a.get(key), b.get(key)) for key in {*a, *b})
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_tables_equal, a, b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=10.0 ** (1 - DIGITS), abs_tol=1e-9)
    return bool(a == b)


def _toml(value: Any) -> str:
    """Return a value in TOML's notation, with inline tables inside of lists."""
    if isinstance(value, Mapping):
        return (
            "{ "
            + ", ".join(
                f"{name} = {_toml(one)}"
                for name, one in value.items()
                if one is not None
            )
            + " }"
        )

    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return (
            repr(float(f"{value:.{DIGITS}g}"))
            if math.isfinite(value)
            else ("-inf" if value < 0 else "inf")
        )

    return json.dumps(value)


__all__ = ["calibrated", "robot_text"]
