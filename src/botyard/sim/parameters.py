"""Parameters of robots that may change during a run, for domain randomisation.

They are limits, and errors of odometry and of sensors. Parameters that are columns of
the state are written into it. The simulation keeps the others, and saves and restores
them. Names are the names of `Worlds.param`. A parameter of one sensor has the sensor's
name after a blank: ``range_noise laser_2``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from botyard.api import arguments
from botyard.devices.delays import Delay
from botyard.devices.laser import laser_bundle
from botyard.devices.sonar import sonar_bundles
from botyard.errors import ArgumentError, ModelError
from botyard.model.beams import Bundle
from botyard.model.drivechecks import MAX_WHEEL_RATIO
from botyard.model.kinematics import MAX_RAMP, MAX_SPEED, Axes
from botyard.model.robot import CommandSpec, RobotSpec
from botyard.model.sensors import LaserSpec, SonarSpec, check_latency, check_rate
from botyard.sim.core import Core
from botyard.sim.readings import Laser, Sonar

Values = Mapping[str, Sequence[float]]
"""Numbers by name of the parameter."""
MAX_RANGE: Final = 1e6
"""Upper bound of ranges and of range errors, m."""
COLUMNS: Final[Mapping[str, tuple[str, float, float]]] = {
    "max_speed": ("max_vel", 0.0, MAX_SPEED),
    "top_speed": ("top_vel", 0.0, MAX_SPEED),
    "accel": ("accel", 0.0, MAX_RAMP),
    "decel": ("decel", 0.0, MAX_RAMP),
    "odometry_error_low": ("err_lo", -MAX_SPEED, MAX_SPEED),
    "odometry_error_high": ("err_hi", -MAX_SPEED, MAX_SPEED),
}
"""Columns of the state with their bounds; three numbers (x, y, yaw axis) each."""
BEAMS: Final[Mapping[str, tuple[str, float]]] = {
    "range_min": ("r_min", MAX_RANGE),
    "range_max": ("r_max", MAX_RANGE),
    "range_noise": ("r_noise", MAX_RANGE),
    "bearing_noise": ("a_noise", np.pi),
    "range_missing": ("missing", 1.0),
}
"""Fields of beams with their upper bounds; one number for each bundle of a sensor."""
DELAYS: Final = ("range_latency", "range_jitter", "range_rate")
COMMANDS: Final = ("command_latency", "command_jitter", "command_rate", "command_scale")


class Equipped(Protocol):
    """Part of a robot that parameters need; see `botyard.sim.robot.BaseRobot`."""

    name: str
    spec: RobotSpec
    lasers: tuple[Laser, ...]
    sonar: Sonar | None


def sensors_of(spec: RobotSpec) -> dict[str, LaserSpec | SonarSpec]:
    """Return the range sensors of a model by the names that `Worlds` gives them.

    They are ``laser``, ``laser_2`` … and ``sonar``.
    """
    found: dict[str, LaserSpec | SonarSpec] = {
        "laser" if k == 0 else f"laser_{k + 1}": one
        for k, one in enumerate(spec.lasers)
    }
    return found if spec.sonar is None else found | {"sonar": spec.sonar}


def _bundles(sensor: LaserSpec | SonarSpec) -> tuple[Bundle, ...]:
    return (
        (laser_bundle(sensor),)
        if isinstance(sensor, LaserSpec)
        else sonar_bundles(sensor)
    )


def spread(spec: RobotSpec, given: Mapping[str, Any]) -> dict[str, list[float]]:
    """Expand the values that a program gives to `Values`.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robot, which defines the sensors.
    given : mapping
        Number or sequence of numbers by name of the parameter, in SI units. A parameter
        without a sensor's name applies to every sensor that has it. A single number
        fills all elements of a parameter.

    Returns
    -------
    dict of str to list of float
        All elements of each parameter; of sensor parameters once for each sensor.

    Raises
    ------
    ArgumentError
        There is no such parameter, its value is not numeric, or it has the wrong number
        of elements.
    """
    found: dict[str, list[float]] = {}
    sensors = sensors_of(spec)
    for name, value in given.items():
        # A blank cannot occur in the name of a parameter.
        base, _, sensor = name.partition(" ")
        arguments.one_of(
            base, "parameter", (*COLUMNS, *COMMANDS, "wheel_ratio", *BEAMS, *DELAYS)
        )
        # Parameters of the robot itself have no sensor.
        if base not in BEAMS and base not in DELAYS:
            found[name] = _numbers(
                name, value, 3 if base in COLUMNS or base == "command_scale" else 1
            )
            continue

        if sensor:
            arguments.one_of(sensor, f"sensor of {base}", sensors)
        for key, one in sensors.items():
            # Without a name the value applies to all sensors.
            if sensor in ("", key):
                found[f"{base} {key}"] = _numbers(
                    name, value, len(_bundles(one)) if base in BEAMS else 1
                )

    return found


def _numbers(name: str, value: Any, count: int) -> list[float]:
    numbers = arguments.numbers(value, name)
    if numbers.shape not in ((), (1,), (count,)) or not np.isfinite(numbers).all():
        raise ArgumentError(
            f"{name}: expected a finite number"
            f"{f', or {count} of them' if count > 1 else ''}, "
            f"found {arguments.found(value)}"
        )

    return [float(number) for number in np.broadcast_to(numbers.reshape(-1), (count,))]


def check(spec: RobotSpec, values: Values) -> None:
    """Refuse values of `spread` that are out of range for a robot model.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robot.
    values : mapping of str to sequence of float
        Values that the robot already has, and new ones. They are checked together,
        because limits depend on each other.

    Raises
    ------
    ArgumentError
        A value is out of range.
    """
    for name, numbers in values.items():
        base = name.partition(" ")[0]
        if base in COLUMNS:
            _, low, high = COLUMNS[base]
        elif base == "wheel_ratio":
            low, high = (
                (1.0 / MAX_WHEEL_RATIO, MAX_WHEEL_RATIO)
                if spec.kinematics.measures_by_pair
                else (1.0, 1.0)
            )
        elif base in BEAMS:
            low, high = 0.0, BEAMS[base][1]
        # Commands and delays have rules that span several values: their specs check
        # them below.
        else:
            continue

        for number in numbers:
            if not low <= number <= high:
                raise ArgumentError(
                    f"{name}: expected {low:g} … {high:g}, found {number:g}"
                )

    try:
        command_spec(spec, values)
        for key, sensor in sensors_of(spec).items():
            delay = delay_of(sensor, key, values)
            check_latency(key, delay.latency, delay.jitter)
            check_rate(key, delay.rate, "range_rate")
    except ModelError as error:
        # The checks of specs raise ModelError, but here a program's argument is wrong.
        raise ArgumentError(str(error)) from None

    for key, sensor in sensors_of(spec).items():
        bundles = _bundles(sensor)
        # A new lower limit may conflict with the model's upper one.
        least = values.get(f"range_min {key}", [b.r_min for b in bundles])
        most = values.get(f"range_max {key}", [b.r_max for b in bundles])
        if any(a > b for a, b in zip(least, most, strict=True)):
            raise ArgumentError(
                f"range_min {key}: expected at most range_max, {list(most)} m, found "
                f"{list(least)} m"
            )


def command_spec(spec: RobotSpec, values: Values) -> CommandSpec:
    """Return the command channel of a robot model with these parameters."""
    own = spec.commands
    return CommandSpec(
        latency=values.get("command_latency", [own.latency])[0],
        jitter=values.get("command_jitter", [own.jitter])[0],
        rate=values.get("command_rate", [own.rate])[0],
        scale=Axes(*values.get("command_scale", own.scale.as_tuple())),
    )


def delay_of(sensor: LaserSpec | SonarSpec, key: str, values: Values) -> Delay:
    """Return rate, latency and jitter of a sensor with these parameters.

    Parameters
    ----------
    sensor : LaserSpec or SonarSpec
        Model of the sensor, whose values hold where `values` has none.
    key : str
        Name of the sensor, see `sensors_of`.
    values : mapping of str to sequence of float
        Checked parameters of the robot.
    """
    own = Delay.of(sensor)
    return Delay(
        values.get(f"range_latency {key}", [own.latency])[0],
        values.get(f"range_jitter {key}", [own.jitter])[0],
        values.get(f"range_rate {key}", [own.rate])[0],
    )


def apply(core: Core, robot: Equipped, values: Values) -> None:
    """Apply checked values, together with the parameters that the robot has already.

    Parameters
    ----------
    core : Core
        World of the robot; columns of its state are changed in place.
    robot : Equipped
        Robot with its sensors.
    values : mapping of str to sequence of float
        Result of `spread`.
    """
    engine, row = core.engine, core.engine.rows[robot.name]
    for name, (column, _, _) in COLUMNS.items():
        if name in values:
            getattr(engine.state, column)[row] = values[name]
            # Steps do not write this column: without the call, snapshots miss the change.
            engine._touch()

    new = {
        name: list(numbers) for name, numbers in values.items() if name not in COLUMNS
    }
    if not new:
        return
    own = core.parameters.setdefault(robot.name, {})
    own.update(new)
    # Only changed parts are set again, because configuring a sensor rebuilds arrays.
    if any(name in COMMANDS for name in new):
        engine.set_channel(robot.name, command_spec(robot.spec, own))
    if "wheel_ratio" in new:
        engine.bodies.wheels[row, 0] = new["wheel_ratio"][0]
    for (key, sensor), handle in zip(
        sensors_of(robot.spec).items(), _handles(robot), strict=True
    ):
        if any(f"{base} {key}" in new for base in DELAYS):
            core.devices.delay(handle._key, delay_of(sensor, key, own))
        if any(f"{base} {key}" in new for base in BEAMS):
            handle._tune(
                {
                    BEAMS[base][0]: own[f"{base} {key}"]
                    for base in BEAMS
                    if f"{base} {key}" in own
                }
            )


def _handles(robot: Equipped) -> list[Laser | Sonar]:
    return [*robot.lasers, *([robot.sonar] if robot.sonar is not None else [])]


def restore(
    core: Core, robots: Mapping[str, Equipped], saved: Mapping[str, Values]
) -> None:
    """Restore parameters of a saved state, and reset all other robots to their models.

    Parameters
    ----------
    core : Core
        World whose columns already have the values of the state.
    robots : mapping of str to Equipped
        All robots by name.
    saved : mapping of str to Values
        Checked parameters by name of the robot.
    """
    for name, robot in robots.items():
        # Robots without own parameters still have their models' values.
        if core.parameters.pop(name, None):
            core.engine.set_channel(name, robot.spec.commands)
            core.engine.bodies.wheels[core.engine.rows[name], 0] = (
                robot.spec.wheel_ratio
            )
            for (key, sensor), handle in zip(
                sensors_of(robot.spec).items(), _handles(robot), strict=True
            ):
                core.devices.delay(handle._key, delay_of(sensor, key, {}))
                handle._tune({})

        if name in saved:
            apply(core, robot, saved[name])


__all__ = [
    "BEAMS",
    "COLUMNS",
    "COMMANDS",
    "DELAYS",
    "Values",
    "apply",
    "check",
    "restore",
    "sensors_of",
    "spread",
]
