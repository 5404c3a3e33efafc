"""Kinds of devices (sensors, error models …), each declared in one file, and the
registry that finds them by name.

A device of a robot has a description (`DeviceSpec`, a part of the robot's model) and
belongs to a kind (`Device`), which declares in one place the keys of its parameters in
robot files, how a reading is taken, and how each interface shows it. Kinds come from
the package (`BUILT_IN`), from plug-ins (entry-point group ``botyard.devices``, whose
entries are `Device` objects), and from calls of `register`.

Modules of devices are imported when a robot has one, also by the worker process that
reads files. So they import the model at most, and access the engine only through the
`botyard.devices.view.View` that they are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast, get_args

import msgspec

from botyard.api.arguments import unknown
from botyard.api.plugins import Group
from botyard.errors import ModelError, did_you_mean
from botyard.geometry import IDENTITY, Pose
from botyard.model.beams import Bundle
from botyard.model.devicefields import (
    AriaKey,
    Channel,
    Command,
    Errors,
    Field,
    Mark,
    PioneerFields,
    View,
)
from botyard.model.obstacles import Visible
from botyard.model.parameters import (
    Parameter,
    check_types,
    parameter,
    parameters_of,
    range_problems,
)
from botyard.model.rosmessages import RosFrame, RosMessage
from botyard.names import is_name, shown

if TYPE_CHECKING:
    from botyard.engine.tables import Table

GROUP: Final = "botyard.devices"
"""Entry-point group of plug-ins with devices."""
BUILT_IN: Final = (
    EntryPoint("battery", "botyard.devices.battery:BATTERY", GROUP),
    EntryPoint("blob_finder", "botyard.devices.blobs:BLOB_FINDER", GROUP),
    EntryPoint("bumpers", "botyard.devices.bumpers:BUMPERS", GROUP),
    EntryPoint("compass", "botyard.devices.compass:COMPASS", GROUP),
    EntryPoint("electrics", "botyard.devices.electrics:ELECTRICS", GROUP),
    EntryPoint("encoders", "botyard.devices.encoders:ENCODERS", GROUP),
    EntryPoint("fiducial_finder", "botyard.devices.fiducials:FIDUCIAL_FINDER", GROUP),
    EntryPoint("gps", "botyard.devices.gps:GPS", GROUP),
    EntryPoint("gripper", "botyard.devices.gripper:GRIPPER", GROUP),
    EntryPoint("laser", "botyard.devices.laser:LASER", GROUP),
    EntryPoint("normal_errors", "botyard.devices.errors:NORMAL_ERRORS", GROUP),
    EntryPoint("prismatic_joint", "botyard.devices.robotjoints:PRISMATIC_JOINT", GROUP),
    EntryPoint("revolute_joint", "botyard.devices.robotjoints:REVOLUTE_JOINT", GROUP),
    EntryPoint("sonar", "botyard.devices.sonar:SONAR", GROUP),
    EntryPoint("table_ir", "botyard.devices.tables:TABLE_IR", GROUP),
    EntryPoint(
        "wandering_odometry", "botyard.devices.errors:WANDERING_ODOMETRY", GROUP
    ),
)
"""The devices of the package, declared like those of plug-ins."""
STANDARD: Final = ("electrics", "encoders", "gps")
"""Kinds of which every robot has one by default. Models list it only where it differs
from the default.
"""
CARRIED: Final[Mapping[str, str]] = MappingProxyType(
    {"battery": "battery", "gripper": "gripper", "sonar": "sonar", "laser": "lasers"}
)
"""Kinds that have a field of their own in `RobotSpec`, and that field."""
Layer = Literal["laser", "sonar"]
"""Layers of the page that draw what beams meet: ``laser`` is a field around one origin,
``sonar`` a line for each bundle.
"""

S = TypeVar("S", bound="DeviceSpec")
R = TypeVar("R")


class DeviceSpec:
    """Description of a device of a robot; kinds of devices derive frozen dataclasses
    with slots from it.

    Their first field is ``type: str = field(default="NAME", init=False)``, the name of
    their kind; the others are their parameters (`parameter`), numbers, truth values,
    texts, a `Pose`, or tuples of these. A field ``pose`` is the mounting in the robot's
    frame.
    """

    __slots__ = ()
    type: str

    def __post_init__(self) -> None:
        """Check the parameters' types and ranges. Subclasses with more checks call this
        first, as ``DeviceSpec.__post_init__(self)``.
        """
        check_types(self)
        for name in parameters_of(type(self)):
            value = getattr(self, name)
            if isinstance(value, Pose) and not all(map(math.isfinite, value)):
                raise ModelError(
                    f"{self.type}: {name}: expected finite numbers, found {tuple(value)}"
                )

        for problem in range_problems(self):
            raise ModelError(f"{self.type}: {problem}")

    @property
    def is_empty(self) -> bool:
        """The device is absent: robot files use this to remove a device of the model
        that they extend.
        """
        return False

    @property
    def feels(self) -> bool:
        """Whether it needs contact sectors of the body (`State.contact`)."""
        return False

    @classmethod
    def of_message(cls, message: Any) -> DeviceSpec:
        """Decode a description sent by another process, by its type. ValueError if it
        is invalid.
        """
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise ValueError("expected a device")
        kind = find_device(message["type"]).spec
        return cast(
            DeviceSpec,
            msgspec.convert({k: v for k, v in message.items() if k != "type"}, kind),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Device(Generic[S, R]):
    """A kind of device: everything that botyard needs to know of it.

    Attributes
    ----------
    name : str
        Name in robot files, programs and interfaces.
    about : str
        One line of description.
    spec : type
        Class of its descriptions.
    read : callable
        The reading in the present state, from a description and a
        `botyard.devices.view.View`. Called on demand; it changes nothing, and the same
        state gives the same reading.
    fields : tuple of Field
        Columns of a reading, which all interfaces show.
    rows : callable
        The rows of a reading in these columns.
    beams : callable or None
        The beams of a range sensor, from a description and whether sensors err; they
        are cast in every step while somebody subscribes, else when it is read, and
        `View.ranges` has what they met.
    senses : Visible
        `Visible` classes that the beams detect.
    part : str
        For kinds of the package that a robot puts into the engine itself: its attribute
        (``electrics.battery``) that is the object of the device, or has those of all
        devices of the kind: `View.part_of_robot`. Empty: `table` and `beams` are put
        there for it.
    table : type of Table, or None
        Columns of what it remembers: each device has a row, `View.memory`, which is
        saved with the world. With a method ``act(engine, dt)`` it acts in every step.
    start : callable or None
        What its columns begin with, by their names, from a description: so its
        parameters reach ``act``. Others have `Column.start`.
    commands : tuple of Command
        By which it is commanded from outside, if it is an actuator.
    errors : Errors or None
        The functions of an error model; None: it is none.
    ros : RosMessage, tuple of RosMessage, or None
        Its ROS topic, or several.
    frames : tuple of RosFrame
        Frames that ROS programs expect of it beside those of its topics.
    pioneer : PioneerFields or None
        What Pioneer clients see of it.
    marks : callable or None
        Markers of a reading on the page.
    layer : Layer or None
        For kinds with beams: the layer of the page that draws what they meet; None:
        none does.
    on_page : bool
        Whether the page shows readings of the selected robot.
    aria : tuple of AriaKey
        Lines of ARIA's parameter files that set its parameters.
    stage : mapping of str to str
        Properties of robots in Stage's world files that set its parameters: plain
        numbers, in m where the parameter is.
    """

    name: str
    about: str
    spec: type[S]
    read: Callable[[S, View], R]
    fields: tuple[Field, ...]
    rows: Callable[[R], Iterable[Sequence[Any]]]
    beams: Callable[[S, bool], Sequence[Bundle]] | None = None
    senses: Visible = Visible.LASER
    part: str = ""
    table: type[Table] | None = None
    start: Callable[[S], Mapping[str, Any]] | None = None
    commands: tuple[Command[S], ...] = ()
    errors: Errors[S] | None = None
    ros: RosMessage[S, R] | tuple[RosMessage[S, R], ...] | None = None
    frames: tuple[RosFrame, ...] = ()
    pioneer: PioneerFields[S, R] | None = None
    marks: Callable[[S, R], Sequence[Mark]] | None = None
    layer: Layer | None = None
    on_page: bool = True
    aria: tuple[AriaKey, ...] = ()
    stage: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Validate name, columns and layer. ModelError: one is invalid."""
        if not is_name(self.name) or not self.name.isidentifier():
            raise ModelError(
                f'device: expected a name of letters, digits and _, found "{shown(self.name)}"'
            )

        columns = [column.name for column in self.fields]
        if (
            not columns
            or len(set(columns)) < len(columns)
            or not all(map(is_name, columns))
        ):
            raise ModelError(
                f'device "{self.name}": expected columns of different names, found {shown(str(columns))}'
            )

        if self.layer is not None and (
            self.beams is None or self.layer not in get_args(Layer)
        ):
            raise ModelError(
                f'device "{self.name}": expected beams and a layer of {get_args(Layer)}, found {self.layer!r}'
            )

    def command(self, name: str) -> Command[S]:
        """One of its commands. UnknownNameError (a KeyError): it has none of that name."""
        for command in self.commands:
            if command.name == name:
                return command

        raise unknown(
            name, [c.name for c in self.commands], f"command of a {self.name}"
        )

    def mounting(self, spec: S) -> Pose:
        """Where a device of this kind is in the robot's frame, m and rad."""
        pose = getattr(spec, "pose", IDENTITY)
        return pose if isinstance(pose, Pose) else IDENTITY

    @property
    def ros_messages(self) -> tuple[RosMessage[S, R], ...]:
        """Its topics."""
        return (
            ()
            if self.ros is None
            else self.ros
            if isinstance(self.ros, tuple)
            else (self.ros,)
        )

    @property
    def channel(self) -> Channel:
        """The channel of recordings that holds its readings; `record` gives the
        messages.
        """
        return Channel(self.name, _schema(self.fields))

    def record(self, reading: R) -> list[dict[str, Any]]:
        """A reading as plain data: for each row the values by the names of the columns.
        Infinite numbers are None, as JSON has none.
        """
        return self.named(self.rows(reading))

    def named(self, rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
        """Rows as plain data, see `record`."""
        names = [f.name for f in self.fields]
        return [dict(zip(names, map(_plain, row), strict=True)) for row in rows]


_JSON: Final = MappingProxyType(
    {float: ["number", "null"], int: "integer", bool: "boolean", str: "string"}
)


def _schema(columns: tuple[Field, ...]) -> Mapping[str, Any]:
    properties = {
        f.name: {
            "type": _JSON[f.kind],
            **({"description": f"in {f.unit}"} if f.unit else {}),
        }
        for f in columns
    }
    return {
        "type": "array",
        "items": {
            "type": "object",
            "properties": properties,
            "required": [*properties],
        },
    }


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# -- the registry

_KNOWN: dict[str, Device[Any, Any]] = {}


def register(device: Device[Any, Any]) -> None:
    """Register a kind of device that is in no installed package; a registered one of
    the same name is replaced.

    Raises
    ------
    ModelError
        It is no device, or has the name of one of the package.
    """
    if not isinstance(device, Device):
        raise ModelError(f"expected a Device, found {type(device).__name__}")
    if not is_name(device.name) or device.name in {entry.name for entry in BUILT_IN}:
        raise ModelError(
            f'device: expected a name of its own, found "{shown(device.name)}"'
        )

    _KNOWN[device.name] = device


def device_names() -> tuple[str, ...]:
    """Names of all kinds of devices, sorted."""
    return tuple(sorted({*_KNOWN, *_BUILT_IN_NAMES, *PACKAGED.names()}))


def is_device(name: str) -> bool:
    """Whether there is a kind of device of a name; it is not loaded."""
    return name in _KNOWN or name in _BUILT_IN_NAMES or name in PACKAGED


_BUILT_IN_NAMES: Final = frozenset(entry.name for entry in BUILT_IN)


PACKAGED: Final[Group[Device[Any, Any]]] = Group(
    name=GROUP,
    noun="device",
    expected="a Device of that name",
    fits=lambda name, found: isinstance(found, Device) and found.name == name,
    error=ModelError,
    own=lambda: _BUILT_IN_NAMES,
)
"""Kinds of devices of installed packages."""


def find_device(name: str) -> Device[Any, Any]:
    """A kind of device by its name.

    Raises
    ------
    ModelError
        There is none of that name, or the package that should have it fails.
    """
    known = _KNOWN.get(name)
    if known is not None:
        return known
    built_in = next((e for e in BUILT_IN if e.name == name), None)
    device = PACKAGED.find(name) if built_in is None else PACKAGED.load(built_in)
    if device is None:
        raise ModelError(
            f'no device "{shown(name)}"{did_you_mean(name, device_names())}'
        )

    _KNOWN[name] = device
    return device


def built_in_devices() -> list[Device[Any, Any]]:
    """The devices of the package."""
    return [find_device(entry.name) for entry in BUILT_IN]


@cache
def standard_device(name: str) -> DeviceSpec:
    """The default device of one of the kinds in `STANDARD`."""
    return make_spec(name)


def loaded_devices() -> list[Device[Any, Any]]:
    """The kinds of devices that are in use or were registered."""
    return list(_KNOWN.values())


def names_of(devices: Sequence[DeviceSpec]) -> list[str]:
    """Names of a robot's devices: that of their kind, with ``_2`` … appended from the
    second of a kind on.
    """
    count: dict[str, int] = {}
    taken = {
        spec.type for spec in devices
    }  # a kind may be named as the second of another would be
    names = []
    for spec in devices:
        n = count.get(spec.type, 0) + 1
        while n > 1 and f"{spec.type}_{n}" in taken:
            n += 1
        count[spec.type] = n
        names.append(spec.type if n == 1 else f"{spec.type}_{n}")
        taken.add(names[-1])

    return names


def make_spec(name: str, **values: Any) -> DeviceSpec:
    """A device of a kind with these parameters, in the units that they have inside.

    Raises
    ------
    ModelError
        There is no such kind, or its parameters make no sense.
    """
    return cast(DeviceSpec, find_device(name).spec(**values))


def is_default(spec: DeviceSpec) -> bool:
    """Whether a device is one that every robot has by default."""
    return spec.type in STANDARD and spec == standard_device(spec.type)


__all__ = [
    "BUILT_IN",
    "CARRIED",
    "GROUP",
    "STANDARD",
    "AriaKey",
    "Channel",
    "Command",
    "Device",
    "DeviceSpec",
    "Errors",
    "Field",
    "Layer",
    "Mark",
    "Parameter",
    "PioneerFields",
    "RosFrame",
    "RosMessage",
    "built_in_devices",
    "device_names",
    "find_device",
    "is_default",
    "is_device",
    "loaded_devices",
    "make_spec",
    "names_of",
    "parameter",
    "parameters_of",
    "register",
    "standard_device",
]
