"""ROS topics of devices, as declared by their kinds (`botyard.model.devices.RosMessage`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from botyard.errors import WorldError
from botyard.model.devices import RosMessage
from botyard.model.robotport import DeviceReader, RobotPort
from botyard.names import shown
from botyard.protocols.ros_messages.messages import Messages, Stamp, Transform
from botyard.protocols.ros_messages.naming import Names
from botyard.protocols.ros_messages.types import Types


class Shown(NamedTuple):
    """A topic of a device."""

    reader: DeviceReader
    ros: RosMessage[Any, Any]
    tail: str
    """Suffix of topic and frame from the second device of a kind on, such as ``_2``."""


def shown_devices(port: RobotPort, names: Names) -> Iterator[Shown]:
    """The device topics of a robot that a name profile has."""
    for name, reader in port.devices.items():
        for ros in reader.kind.ros_messages:
            if names.profile.name in ros.profiles:
                yield Shown(reader, ros, name.removeprefix(reader.kind.name))


def frame_of(one: Shown, names: Names) -> str:
    """Frame id of its messages; empty: none."""
    if one.ros.frame is None:
        return ""
    return names.frame_id(f"{one.ros.frame}{one.tail}" if one.ros.frame else "base_link")


def device_message(one: Shown, types: Types, messages: Messages, stamp: Stamp, frame: str) -> Any:
    """The message of the present reading, or None; a header is filled in."""
    values = one.ros.fields(one.reader.spec, one.reader.read())
    if values is None:
        return None
    fields = dict(values)
    if types.has_header(one.ros.type_name):
        fields.setdefault("header", messages.header(stamp, frame))
    return types.made(one.ros.type_name, fields)


def device_transforms(port: RobotPort, names: Names, base: str) -> list[Transform]:
    """Transforms base_link → frames of devices."""
    return [
        Transform(base, frame_of(one, names), one.reader.kind.mounting(one.reader.spec))
        for one in shown_devices(port, names)
        if one.ros.frame
    ]


def learn_types(port: RobotPort, types: Types) -> dict[str, str]:
    """Register the message types of a robot's devices; returns the devices that cannot be shown, with the reason."""
    problems = {}
    for name, reader in port.devices.items():
        try:
            for ros in reader.kind.ros_messages:
                _learn(ros, types)
        except WorldError as error:
            problems[name] = str(error)
    return problems


def _learn(ros: RosMessage[Any, Any], types: Types) -> None:
    if not all(part.isidentifier() and part.isascii() for part in ros.topic.split("/")):
        raise WorldError(f'expected a topic of letters, digits and _, found "{shown(ros.topic)}"')
    types.learn(ros.definitions)
    types[ros.type_name]


__all__ = ["Shown", "device_message", "device_transforms", "frame_of", "learn_types", "shown_devices"]
