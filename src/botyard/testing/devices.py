"""Conformance check of device kinds for robots, files, interfaces and recordings."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from botyard.codec.messages import DamagedMessage, NotDataError, decode, encode
from botyard.errors import BotyardError
from botyard.formats.models import find_robot
from botyard.model.devices import (
    CARRIED,
    STANDARD,
    Device,
    DeviceSpec,
    find_device,
    parameters_of,
)
from botyard.model.devicetables import spec_of, table_of
from botyard.model.library import robot_of
from botyard.model.robotfile import RobotFile, to_table
from botyard.model.scene import Scene
from botyard.names import is_name
from botyard.sim.simulation import Robot
from botyard.testing.device_interfaces import interface_problems
from botyard.testing.device_world import STEPS, _room, device_of, device_world

_NOT_SI: Final = frozenset(
    {
        "deg",
        "degree",
        "degrees",
        "°",
        "mm",
        "cm",
        "km",
        "in",
        "inch",
        "ft",
        "ms",
        "us",
        "min",
        "h",
    }
)
"""Common units that are not SI units."""


def check_device(
    device: Device[Any, Any],
    spec: DeviceSpec | None = None,
    scene: Scene | None = None,
    *,
    steps: int = STEPS,
) -> list[str]:
    """Check a kind of device; return a list of problems.

    - The kind is found by its name.
    - Its parameters pass unchanged through a robot file, a message and pickle.
    - Readings have the declared columns, in SI units. They are equal for equal states,
      and reading changes nothing.
    - A world with the device can be saved and restored, and continues identically.
    - The device does no work while it has no reader.
    - Interfaces can show its output.

    Parameters
    ----------
    device : Device
        Kind of device to check.
    spec : DeviceSpec, optional
        A device of this kind; by default, one with default parameters.
    scene : Scene, optional
        World in which the device has something to detect; by default, a room with
        marked and coloured objects, one of them behind a wall.
    steps : int
        Number of steps in each run.

    Returns
    -------
    list of str
        Problems found.
    """
    problems = _declaration(device)
    if problems:
        return problems
    try:
        spec = device.spec() if spec is None else spec
    except (BotyardError, TypeError) as error:
        return [f"without parameters: {error}"]

    scene = _room() if scene is None else scene
    problems += _parameters(device, spec)
    # Each check has a world of its own, so that one failure does not hide others.
    for check in (_readings, _determinism, _restoring, _idleness, interface_problems):
        try:
            problems += check(device, spec, scene, steps)
        except Exception as error:
            # The package is under development, so any exception is a finding.
            problems.append(
                f"{check.__name__.strip('_')}: {type(error).__name__}: {error}"
            )

    return problems


# -- declaration


def _declaration(device: Device[Any, Any]) -> list[str]:
    """Check name, parameters and columns of the declaration."""
    problems = []
    name = device.name
    try:
        if find_device(name) is not device:
            problems.append(f'another device is registered as "{name}"')
    except BotyardError as error:
        problems.append(
            f"not registered (botyard.model.devices.register, or entry point): {error}"
        )

    # The name becomes a key of robot files and an attribute of robots.
    if not is_name(name) or not name.isidentifier():
        problems.append(f'name: expected one of letters, digits and _, found "{name}"')
    if name not in (*STANDARD, *CARRIED) and (
        name in RobotFile.__struct_fields__ or hasattr(Robot, name)
    ):
        problems.append(
            f'name: expected an unused name, found a key or attribute of robots "{name}"'
        )

    kind: Any = device.spec
    if not (_is_subclass(kind, DeviceSpec) and hasattr(kind, "__dataclass_fields__")):
        return [*problems, "spec: expected a dataclass that derives from DeviceSpec"]
    fields = {f.name: f for f in dataclasses.fields(kind)}
    # Worlds share specifications between robots and clones.
    if not kind.__dataclass_params__.frozen:
        problems.append("spec: expected a frozen dataclass")
    if "type" not in fields or fields["type"].init or fields["type"].default != name:
        problems.append(
            f'spec: expected the field type: str = field(default="{name}", init=False)'
        )

    problems += [
        f"parameter {n}: expected an SI unit, found {one.unit}"
        for n, (_, one) in parameters_of(kind).items()
        if one.unit.lower() in _NOT_SI
    ]
    problems += [
        f"column {f.name}: expected an SI unit, found {f.unit}"
        for f in device.fields
        if f.unit in _NOT_SI
    ]

    names = [f.name for f in device.fields]
    if len(set(names)) < len(names) or not names:
        problems.append(f"fields: expected columns of different names, found {names}")
    problems += [
        f"column {f.name}: no type {f.kind}"
        for f in device.fields
        if f.kind not in (float, int, bool, str)
    ]
    return problems


def _is_subclass(kind: Any, of: Any) -> bool:
    """Return whether a value is a subclass of a class."""
    return isinstance(kind, type) and issubclass(kind, of)


def _parameters(device: Device[Any, Any], spec: DeviceSpec) -> list[str]:
    """Check that parameters pass through robot files, pickle and messages."""
    problems = []
    try:
        table = json.loads(json.dumps(to_table(find_robot("p3dx").fitted(spec))))
        again = robot_of(table, "p3dx")
        if json.loads(json.dumps(to_table(again))) != table:
            problems.append(
                f"robot file: {spec} is read back as {again.device(spec.type)}"
            )

        # For devices with their own keys in robot files, the reader has its own checks.
        if device.name not in CARRIED:
            try:
                spec_of(device.name, {**table_of(spec), "no such parameter": 1})
                problems.append("robot file: expected an error for an unknown key")
            except BotyardError:
                pass
    except (BotyardError, TypeError, ValueError) as error:
        problems.append(f"robot file: cannot store the device: {error}")

    try:
        if pickle.loads(pickle.dumps(spec)) != spec:
            problems.append("pickle: the device changes")
    except (AttributeError, pickle.PickleError) as error:
        return [*problems, f"pickle: cannot store the device: {error}"]

    try:
        message = encode("device", spec, DeviceSpec)
        if decode(message, "device", DeviceSpec) != spec:
            problems.append("message: the device changes")
    except (NotDataError, DamagedMessage) as error:
        problems.append(f"message: cannot send the device: {error}")

    # Caches of models look specifications up by hash.
    if hash(spec) != hash(pickle.loads(pickle.dumps(spec))):
        problems.append("hash: equal devices have different hashes")
    return problems


# -- behaviour


def _same(a: Any, b: Any) -> bool:
    """Return whether two readings are equal, including arrays."""
    # Bytes first, because `==` is False for NaN and ambiguous for nested arrays.
    return pickle.dumps(a) == pickle.dumps(b) or bool(np.all(a == b))


def _readings(
    device: Device[Any, Any], spec: DeviceSpec, scene: Scene, steps: int
) -> list[str]:
    """Check that readings repeat, change nothing, and have the declared columns."""
    sim, robot = device_world(spec, scene)
    reader = device_of(robot, spec)
    problems: list[str] = []
    for _ in range(steps):
        # The digest covers the whole state of the world, so any side effect of reading
        # shows.
        before = sim.digest()
        reading = reader.read()
        if not _same(reading, reader.read()):
            return [
                *problems,
                "two readings of one state differ: draw with View.uniform or View.normal",
            ]

        if sim.digest() != before:
            return [*problems, "reading the device changes the world"]
        for row in device.rows(reading):
            problems += _row(device, row)
        if problems:
            return problems
        sim.step()

    return problems


def _row(device: Device[Any, Any], row: Any) -> list[str]:
    """Check one row of a reading against the declared columns."""
    if len(row) != len(device.fields):
        return [f"rows: expected {len(device.fields)} values, found {len(row)}"]
    problems = []
    for column, value in zip(device.fields, row, strict=True):
        fits = isinstance(value, column.kind) and (
            column.kind is not int or not isinstance(value, bool)
        )
        if not fits and not (
            column.kind is float
            and isinstance(value, int)
            and not isinstance(value, bool)
        ):
            problems.append(
                f"column {column.name}: expected {column.kind.__name__}, found "
                f"{type(value).__name__}"
            )
        # A value beyond a full turn is probably in degrees.
        elif column.unit == "rad" and abs(value) > 2 * math.pi + 1e-6:
            problems.append(
                f"column {column.name}: expected rad, found {value:g}: is it in degrees?"
            )
        elif isinstance(value, float) and math.isnan(value):
            problems.append(f"column {column.name}: expected a number, found NaN")

    return problems


def _course(
    spec: DeviceSpec,
    scene: Scene,
    steps: int,
    read: Callable[[int], bool],
    **options: Any,
) -> tuple[Any, int]:
    """Run a world; return the last reading and the digest of the world.

    `read` decides after which steps the device is also read.

    Parameters
    ----------
    spec : DeviceSpec
        Device that the robot carries and that is read.
    scene : Scene
        Map of the world.
    steps : int
        Number of steps.
    read : callable
        Called with the number of the step before it is made.
    **options : object
        Further options of `Simulation`.

    Returns
    -------
    tuple of (object, int)
        Reading after the last step, and the digest of the whole state.
    """
    sim, robot = device_world(spec, scene, **options)
    reader = device_of(robot, spec)
    for n in range(steps):
        if read(n):
            reader.read()
        sim.step()

    return reader.read(), sim.digest()


def _determinism(
    device: Device[Any, Any], spec: DeviceSpec, scene: Scene, steps: int
) -> list[str]:
    """Check that readings depend only on the state, not on earlier reads or threads."""
    often = _course(spec, scene, steps, lambda _: True)
    seldom = _course(spec, scene, steps, lambda _: False)
    # More threads change the order of the work, and must not change the results.
    threads = _course(spec, scene, steps, lambda _: False, threads=2)
    problems = []
    if not _same(often[0], seldom[0]):
        problems.append("a reading depends on how often it was read before")
    if often[1] != seldom[1]:
        problems.append("the state of the world depends on reads of the device")
    if not _same(seldom[0], threads[0]):
        problems.append("a reading depends on the number of threads")
    return problems


def _restoring(
    device: Device[Any, Any], spec: DeviceSpec, scene: Scene, steps: int
) -> list[str]:
    """Check that a cloned, restored or pickled world continues identically."""
    sim, robot = device_world(spec, scene)
    sim.step(steps)

    state = sim.save_state()
    copy = sim.clone()
    sim.step(steps)

    # Both worlds step from the same state, so any difference comes from memory outside
    # of the state.
    copy.step(steps)
    expected, digest = device_of(robot, spec).read(), sim.digest()
    problems = []
    if (
        not _same(device_of(copy.robots["a"], spec).read(), expected)
        or copy.digest() != digest
    ):
        problems.append(
            "a clone continues differently: keep all memory of the device in its table"
        )

    sim.restore(state)
    sim.step(steps)
    if (
        not _same(device_of(sim.robots["a"], spec).read(), expected)
        or sim.digest() != digest
    ):
        problems.append(
            "a restored world continues differently: keep all memory of the device in its table"
        )

    pickled = pickle.loads(pickle.dumps(sim))
    if pickled.digest() != sim.digest():
        problems.append("a pickled world has another digest")
    return problems


def _idleness(
    device: Device[Any, Any], spec: DeviceSpec, scene: Scene, steps: int
) -> list[str]:
    """Check that a device without a reader takes no measurements and casts no beams."""
    sim, robot = device_world(spec, scene)
    reader = device_of(robot, spec)
    asked: list[int] = []

    def counted(one: Any, view: Any) -> Any:
        asked.append(1)
        return device.read(one, view)

    reader.kind = dataclasses.replace(device, read=counted)
    sim.step(steps)
    problems = []
    if asked:
        problems.append(
            f"the device has no reader, but is read {len(asked)} times in {steps} steps"
        )

    if device.beams is not None and (reader.is_read or sim.fleet.taken.any()):
        problems.append("the device has no reader, but its beams are cast")
    reader.read()
    if not asked:
        problems.append("the reading does not come from the function read")
    return problems


# -- presentation


__all__ = ["check_device"]
