"""Kinds of devices (sensors, error models …), and the registry that finds them by name.

A device of a robot has a description (`DeviceSpec`, a part of the robot's model) and
belongs to a kind (`Device`). Each kind is declared in one file. The declaration has the
keys of its parameters in robot files, the function that takes a reading, and the
presentation in each interface. Kinds come from the package (`BUILT_IN`), from plug-ins
(entry-point group ``botyard.devices``, whose entries are `Device` objects), and from
calls of `register`.

The module of a device is imported when a robot has the device. The worker process that
reads files imports it as well. So these modules import at most the model, and access
the engine only through the `botyard.devices.view.View` that they receive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast, get_args

from botyard.api.arguments import unknown
from botyard.api.plugins import Group
from botyard.codec.forms import declare_selected
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
# Entry points name the objects without importing their modules, which keeps the start
# of the program fast.
BUILT_IN: Final = (
    EntryPoint("april_tags", "botyard.devices.apriltags:APRIL_TAGS", GROUP),
    EntryPoint("battery", "botyard.devices.battery:BATTERY", GROUP),
    EntryPoint("blob_finder", "botyard.devices.blobs:BLOB_FINDER", GROUP),
    EntryPoint("bumpers", "botyard.devices.bumpers:BUMPERS", GROUP),
    EntryPoint("cliff_sensor", "botyard.devices.floorsensors:CLIFF_SENSOR", GROUP),
    EntryPoint("compass", "botyard.devices.compass:COMPASS", GROUP),
    EntryPoint("electrics", "botyard.devices.electrics:ELECTRICS", GROUP),
    EntryPoint("encoders", "botyard.devices.encoders:ENCODERS", GROUP),
    EntryPoint("fiducial_finder", "botyard.devices.fiducials:FIDUCIAL_FINDER", GROUP),
    EntryPoint("gnss", "botyard.devices.gnss:GNSS", GROUP),
    EntryPoint("gps", "botyard.devices.gps:GPS", GROUP),
    EntryPoint("gripper", "botyard.devices.gripper:GRIPPER", GROUP),
    EntryPoint("imu", "botyard.devices.imu:IMU", GROUP),
    EntryPoint("infrared", "botyard.devices.rangefinders:INFRARED", GROUP),
    EntryPoint("laser", "botyard.devices.laser:LASER", GROUP),
    EntryPoint("leds", "botyard.devices.leds:LEDS", GROUP),
    EntryPoint("line_sensor", "botyard.devices.floorsensors:LINE_SENSOR", GROUP),
    EntryPoint("normal_errors", "botyard.devices.errors:NORMAL_ERRORS", GROUP),
    EntryPoint("omni_camera", "botyard.devices.leds:OMNI_CAMERA", GROUP),
    EntryPoint("pheromone_pen", "botyard.devices.pheromonepen:PHEROMONE_PEN", GROUP),
    EntryPoint(
        "pheromone_sensor", "botyard.devices.floorsensors:PHEROMONE_SENSOR", GROUP
    ),
    EntryPoint("prismatic_joint", "botyard.devices.robotjoints:PRISMATIC_JOINT", GROUP),
    EntryPoint(
        "range_and_bearing", "botyard.devices.rangebearing:RANGE_AND_BEARING", GROUP
    ),
    EntryPoint("revolute_joint", "botyard.devices.robotjoints:REVOLUTE_JOINT", GROUP),
    EntryPoint("sonar", "botyard.devices.sonar:SONAR", GROUP),
    EntryPoint("table_ir", "botyard.devices.tables:TABLE_IR", GROUP),
    EntryPoint("ultrasonic", "botyard.devices.rangefinders:ULTRASONIC", GROUP),
    EntryPoint("uwb", "botyard.devices.uwb:UWB", GROUP),
    EntryPoint(
        "wandering_odometry", "botyard.devices.errors:WANDERING_ODOMETRY", GROUP
    ),
)
"""Entry points of the devices of this package, which are declared like plug-ins."""
STANDARD: Final = ("electrics", "encoders", "gps")
"""Kinds of which every robot has one device by default.

Models list such a device only if it differs from the default.
"""
CARRIED: Final[Mapping[str, str]] = MappingProxyType(
    {"battery": "battery", "gripper": "gripper", "sonar": "sonar", "laser": "lasers"}
)
"""Field of `RobotSpec` that holds the devices of a kind, for kinds with a field of their own."""
Layer = Literal["laser", "sonar"]
"""Layers of the page that draw the hit points of beams.

``laser`` is a filled area around one origin; ``sonar`` is a line for each bundle (beams
from one origin).
"""

S = TypeVar("S", bound="DeviceSpec")
R = TypeVar("R")


class DeviceSpec:
    """Description of a device of a robot (base class of frozen dataclasses with slots).

    The first field of a subclass is ``type: str = field(default="NAME", init=False)``,
    the name of its kind. The other fields are its parameters (`parameter`): numbers,
    truth values, texts, a `Pose`, or tuples of these. A field ``pose`` is the mounting
    in the robot's frame.
    """

    # A base class without slots would give each device a dictionary.
    __slots__ = ()
    type: str

    def __post_init__(self) -> None:
        """Check the types and ranges of the parameters.

        Subclasses with further checks call this first, as
        ``DeviceSpec.__post_init__(self)``.

        Raises
        ------
        ArgumentError
            A value is not of its declared type.
        ModelError
            A value is out of its range.
        """
        check_types(self)
        # A pose has no declared range, so its numbers are checked here.
        for name in parameters_of(type(self)):
            value = getattr(self, name)
            if isinstance(value, Pose) and not all(map(math.isfinite, value)):
                raise ModelError(
                    f"{self.type}: {name}: expected finite numbers, "
                    f"found {tuple(value)}"
                )

        for problem in range_problems(self):
            raise ModelError(f"{self.type}: {problem}")

    @property
    def is_empty(self) -> bool:
        """Whether the description stands for the absence of the device.

        An empty description in a robot file removes the device of the model that the
        file extends.
        """
        return False

    @property
    def feels(self) -> bool:
        """Whether the device needs contact sectors of the body (`State.contact`)."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Device(Generic[S, R]):
    """Declaration of a kind of device.

    Attributes
    ----------
    name : str
        Name in robot files, programs and interfaces.
    about : str
        One line of description.
    spec : type
        Class of its descriptions.
    read : callable
        Takes a reading in the current state, from a description and a
        `botyard.devices.view.View`. It is called on demand and changes nothing; the
        same state gives the same reading.
    fields : tuple of Field
        Columns of a reading, which all interfaces show.
    rows : callable
        Rows of a reading in these columns.
    beams : callable or None
        Beams of a range sensor, from a description and whether sensors have errors. The beams are
        cast in every step while there is a subscriber; otherwise they are cast when a reading is
        requested. `View.ranges` has the ranges.
    senses : Visible
        `Visible` classes that the beams detect.
    part : str
        For kinds of the package whose objects the robot creates in the engine: the
        attribute (``electrics.battery``) with the object, or the objects, of the kind,
        see `View.part_of_robot`. Empty: the robot adds the rows of `table` and the `beams`
        to the engine.
    table : type of Table, or None
        Columns of the state of the devices: each device has a row, `View.memory`, which
        is saved with the world. A table with a method ``act(engine, dt)`` acts in every
        step.
    start : callable or None
        Initial values of the columns, by name, from a description. The method ``act`` gets the
        parameters in this form. Other columns start with `Column.start`.
    commands : tuple of Command
        Commands from outside, if the device is an actuator.
    errors : Errors or None
        Functions of an error model; None: the device is not an error model.
    ros : RosMessage, tuple of RosMessage, or None
        ROS topic, or several.
    frames : tuple of RosFrame
        Frames that ROS programs expect in addition to the frames of its topics.
    pioneer : PioneerFields or None
        Data in packets for Pioneer clients.
    marks : callable or None
        Markers of a reading on the page.
    layer : Layer or None
        For kinds with beams: the layer of the page that draws the hit points; None: no
        layer.
    on_page : bool
        Whether the page shows readings of the selected robot.
    aria : tuple of AriaKey
        Lines of ARIA's parameter files that set its parameters.
    stage : mapping of str to str
        Properties of robots in Stage's world files that set its parameters: plain
        numbers, in m if the parameter is in m.

    Raises
    ------
    ModelError
        The name, the columns or the layer are invalid.
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
        """Check that the name, the columns and the layer are valid."""
        # The name is also an attribute, as in ``spec.gps``.
        if not is_name(self.name) or not self.name.isidentifier():
            raise ModelError(
                "device: expected a name of letters, digits and _, "
                f'found "{shown(self.name)}"'
            )

        # Columns become keys of JSON objects, so their names must differ.
        columns = [column.name for column in self.fields]
        if (
            not columns
            or len(set(columns)) < len(columns)
            or not all(map(is_name, columns))
        ):
            raise ModelError(
                f'device "{self.name}": expected columns of different names, '
                f"found {shown(str(columns))}"
            )

        # A layer draws the hit points of beams, so a kind without beams cannot have
        # one.
        if self.layer is not None and (
            self.beams is None or self.layer not in get_args(Layer)
        ):
            beams = "no beams" if self.beams is None else "beams"
            raise ModelError(
                f'device "{self.name}": expected beams and a layer of {get_args(Layer)}, '
                f"found {beams} and the layer {self.layer!r}"
            )

    def command(self, name: str) -> Command[S]:
        """Return the command of this kind that has a name.

        Parameters
        ----------
        name : str
            Name of one of `commands`, for example ``position``.

        Raises
        ------
        UnknownNameError
            There is no such command. The error is also a KeyError.
        """
        for command in self.commands:
            if command.name == name:
                return command

        raise unknown(
            name, [c.name for c in self.commands], f"command of a {self.name}"
        )

    def mounting(self, spec: S) -> Pose:
        """Return the pose at which a device of this kind is mounted in the robot's frame, m and
        rad.
        """
        pose = getattr(spec, "pose", IDENTITY)
        # Plug-ins may use the name for a parameter of another type.
        return pose if isinstance(pose, Pose) else IDENTITY

    @property
    def ros_messages(self) -> tuple[RosMessage[S, R], ...]:
        """Declarations of the ROS topics of the kind."""
        return (
            ()
            if self.ros is None
            else self.ros
            if isinstance(self.ros, tuple)
            else (self.ros,)
        )

    @property
    def channel(self) -> Channel:
        """Recording channel for readings of the kind; `record` gives its messages."""
        return Channel(self.name, _schema(self.fields))

    def record(self, reading: R) -> list[dict[str, Any]]:
        """Return a reading as plain data: for each row, the values by column name.

        Infinite numbers become None, because JSON has no infinity.
        """
        return self.named(self.rows(reading))

    def named(self, rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
        """Return rows of a reading as plain data, see `record`.

        Parameters
        ----------
        rows : iterable of sequences
            Values in the order of `fields`, as the function `rows` of the kind returns
            them.
        """
        names = [f.name for f in self.fields]
        return [dict(zip(names, map(_plain, row), strict=True)) for row in rows]


# JSON has no infinity, so a float may be null.
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
    """Register a kind of device that belongs to no installed package.

    Parameters
    ----------
    device : Device
        Declaration of the kind. It replaces a registered kind of the same name, for
        robots that are made later.

    Raises
    ------
    ModelError
        The argument is not a `Device`, or its name belongs to a device of the package.
    """
    if not isinstance(device, Device):
        raise ModelError(f"expected a Device, found {type(device).__name__}")
    # Other parts of botyard rely on its own devices, so no plug-in may replace them.
    if not is_name(device.name) or device.name in {entry.name for entry in BUILT_IN}:
        raise ModelError(
            "device: expected a name that no device of botyard has, "
            f'found "{shown(device.name)}"'
        )

    _KNOWN[device.name] = device


def device_names() -> tuple[str, ...]:
    """Return the sorted names of all kinds of devices."""
    return tuple(sorted({*_KNOWN, *_BUILT_IN_NAMES, *PACKAGED.names()}))


def is_device(name: str) -> bool:
    """Return whether a kind of device with this name exists, without loading it."""
    return name in _KNOWN or name in _BUILT_IN_NAMES or name in PACKAGED


_BUILT_IN_NAMES: Final = frozenset(entry.name for entry in BUILT_IN)


PACKAGED: Final[Group[Device[Any, Any]]] = Group(
    name=GROUP,
    noun="device",
    expected="a Device of that name",
    # Robot files refer to a device by its name, so the entry point must have the same
    # name.
    fits=lambda name, found: isinstance(found, Device) and found.name == name,
    error=ModelError,
    own=lambda: _BUILT_IN_NAMES,
)
"""Kinds of devices of installed packages."""


def find_device(name: str) -> Device[Any, Any]:
    """Return a kind of device by its name.

    Parameters
    ----------
    name : str
        Name of a kind of the package, of a registered one, or of an installed package,
        whose module is imported.

    Raises
    ------
    ModelError
        There is no such kind, or its package fails to load.
    """
    known = _KNOWN.get(name)
    if known is not None:
        return known
    # Built-in kinds come first, so that no package can shadow them.
    built_in = next((e for e in BUILT_IN if e.name == name), None)
    device = PACKAGED.find(name) if built_in is None else PACKAGED.load(built_in)
    if device is None:
        raise ModelError(
            f'no device "{shown(name)}"{did_you_mean(name, device_names())}'
        )

    # Each import of a kind's module happens once, because it may take long.
    _KNOWN[name] = device
    return device


declare_selected(DeviceSpec, "type", lambda name: find_device(name).spec)


def built_in_devices() -> list[Device[Any, Any]]:
    """Return the kinds of devices of this package."""
    return [find_device(entry.name) for entry in BUILT_IN]


@cache
def standard_device(name: str) -> DeviceSpec:
    """Return the default device of one of the kinds in `STANDARD`."""
    # The spec is cached, because each robot asks for it.
    return make_spec(name)


def loaded_devices() -> list[Device[Any, Any]]:
    """Return the kinds of devices that are loaded or registered so far."""
    return list(_KNOWN.values())


def names_of(devices: Sequence[DeviceSpec]) -> list[str]:
    """Return the names of a robot's devices.

    The first device of a kind has the name of the kind; ``_2``, ``_3`` and so on are appended for
    further ones.
    """
    count: dict[str, int] = {}
    # A kind may have the name that the second device of another kind would get.
    taken = {spec.type for spec in devices}
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
    """Return the description of a device of a kind, with given parameters.

    Parameters
    ----------
    name : str
        Name of the kind, see `device_names`.
    **values
        Fields of its description in units of the program: m, rad, s.

    Raises
    ------
    ModelError
        There is no such kind, or a parameter is invalid.
    """
    return cast(DeviceSpec, find_device(name).spec(**values))


def is_default(spec: DeviceSpec) -> bool:
    """Return whether a device description equals the default device that every robot has."""
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
