"""ROS topics and frames of devices, which each kind of device declares.

See `botyard.model.rosmessages`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from botyard.errors import WorldError
from botyard.model.equipmentport import DeviceReader
from botyard.model.links import frames_of, places
from botyard.model.robotport import Fleet, RobotPort
from botyard.model.rosmessages import EndPoints, Place, RosMessage, ScanArrays
from botyard.names import shown
from botyard.protocols.ros_messages.messages import Messages, Stamp, Transform
from botyard.protocols.ros_messages.naming import Names
from botyard.protocols.ros_messages.quick import QuickCloud, QuickScan
from botyard.protocols.ros_messages.stepdata import Cloud, StepData
from botyard.protocols.ros_messages.types import Types

log = logging.getLogger("botyard.ros")


class Shown(NamedTuple):
    """Topic of a device.

    Attributes
    ----------
    reader : DeviceReader
        Device whose readings are published.
    ros : RosMessage
        Declaration of the topic by the kind of device.
    place : Place
        Number of the device among the devices of its kind, used in names.
    """

    reader: DeviceReader
    ros: RosMessage[Any, Any]
    place: Place


def placed_devices(port: RobotPort) -> Iterator[tuple[DeviceReader, Place]]:
    """Yield the devices of a robot, each with its number among the devices of its kind.

    Parameters
    ----------
    port : RobotPort
        Robot with the devices.

    Yields
    ------
    tuple of (DeviceReader, Place)
        Devices in the order of the robot's description.
    """
    readers = port.devices
    return zip(
        readers.values(),
        places((name, reader.spec) for name, reader in readers.items()),
        strict=True,
    )


def shown_devices(port: RobotPort, names: Names) -> Iterator[Shown]:
    """Yield the device topics of a robot that its name profile includes.

    Parameters
    ----------
    port : RobotPort
        Robot with the devices.
    names : Names
        Names of the robot; their profile selects the topics.
    """
    for reader, place in placed_devices(port):
        for ros in reader.kind.ros_messages:
            if names.profile.name in ros.profiles and _applies(reader, ros):
                yield Shown(reader, ros, place)


def _applies(reader: DeviceReader, ros: RosMessage[Any, Any]) -> bool:
    """Return whether a device has a topic that its kind declares; False if this code raises."""
    try:
        return ros.applies is None or bool(ros.applies(reader.spec))
    # The code may come from any package and raise anything.
    except Exception:
        log.exception('device "%s": its function `applies` failed', reader.name)
        return False


def period_of(one: Shown, scan_rate: float | None) -> float:
    """Return the shortest simulated time between a topic's messages, s; 0 for every step.

    Parameters
    ----------
    one : Shown
        Topic of a device.
    scan_rate : float or None
        Rate that replaces the ``update_rate`` of devices with beams, Hz; 0 for every
        step. None keeps it.
    """
    rate = getattr(one.reader.spec, "update_rate", 0.0)
    if scan_rate is not None and one.reader.kind.beams is not None:
        rate = scan_rate
    return 1.0 / rate if rate > 0.0 else one.ros.period


def frame_of(one: Shown, names: Names) -> str:
    """Return the frame id of the messages; empty without a frame.

    Parameters
    ----------
    one : Shown
        Topic of a device.
    names : Names
        Names of the robot.
    """
    if one.ros.frame is None:
        return ""
    return names.frame_id(
        one.place.named(one.ros.frame) if one.ros.frame else "base_link"
    )


def device_message(
    one: Shown,
    types: Types,
    messages: Messages,
    stamp: Stamp,
    frame: str,
    period: float = 0.0,
) -> Any:
    """Return the message of the present reading with its header; None without a reading.

    Parameters
    ----------
    one : Shown
        Topic of a device.
    types, messages : Types, Messages
        Message types and factory.
    stamp : Stamp
        Time of the measurement.
    frame : str
        Frame id of the header.
    period : float
        Simulated time between two messages, s. A scan's ``scan_time`` is at least this
        long.

    Raises
    ------
    WorldError
        The device returns a field that the type does not have, or a value that does not
        fit.
    """
    values = one.ros.fields(one.reader.spec, one.reader.read())
    # The device has nothing to report yet.
    if values is None:
        return None
    fields = dict(values)
    if types.has_header(one.ros.type_name):
        fields.setdefault("header", messages.header(stamp, frame))
    if "scan_time" in fields:
        # A scan may take less time than the period of its messages, which subscribers
        # expect here.
        fields["scan_time"] = max(fields["scan_time"], period)
    return types.made(one.ros.type_name, fields)


def device_transforms(port: RobotPort, names: Names, base: str) -> list[Transform]:
    """Return the transforms base_link → frames of devices.

    Parameters
    ----------
    port : RobotPort
        Robot with the devices.
    names : Names
        Names of the robot in ROS.
    base : str
        Frame id of base_link, the parent.

    Returns
    -------
    list of Transform
        One transform for each frame. If several devices have the same frame, the first
        of them determines the transform.
    """
    found: dict[str, Transform] = {}
    for reader, place in placed_devices(port):
        for frame in frames_of(reader.kind, place, names.profile.name):
            child = names.frame_id(frame)
            found.setdefault(
                child, Transform(base, child, reader.kind.mounting(reader.spec))
            )

    return [*found.values()]


def learn_types(port: RobotPort, types: Types) -> dict[str, str]:
    """Register the message types of a robot's devices.

    Return the devices that can have no topics, each with the reason.

    Parameters
    ----------
    port : RobotPort
        Robot with the devices.
    types : Types
        Message types. The devices' types are added to them.
    """
    problems = {}
    for reader, place in placed_devices(port):
        try:
            for ros in reader.kind.ros_messages:
                _learn(ros, place, types)
        except WorldError as error:
            problems[reader.name] = str(error)

    return problems


def _learn(ros: RosMessage[Any, Any], place: Place, types: Types) -> None:
    """Register the message type of a device's topic.

    Parameters
    ----------
    ros : RosMessage
        Declaration of a topic.
    place : Place
        Number of the device among its kind.
    types : Types
        Message types. The topic's types are added to them.

    Raises
    ------
    WorldError
        The topic's name is invalid, or its type is unknown or differs from a known one.
    """
    if not all(
        part.isidentifier() and part.isascii()
        for part in place.named(ros.topic).split("/")
    ):
        raise WorldError(
            f'expected a topic of letters, digits and _, found "{shown(ros.topic)}"'
        )

    types.learn(ros.definitions)
    # An unknown type raises an error here, so that the caller reports the device.
    types[ros.type_name]


# -- fast encoders of messages from beams (`RosMessage.beams`)


class Encoders:
    """Factory of the fast encoders of a robot's topics.

    Parameters
    ----------
    fleet : Fleet
        State and readings of all robots.
    types, messages : Types, Messages
        Message types and factory, for the templates.
    data : StepData
        Data of a step that the messages of all robots share.
    """

    def __init__(
        self, fleet: Fleet, types: Types, messages: Messages, data: StepData
    ) -> None:
        self._fleet, self._types, self._messages, self._data = (
            fleet,
            types,
            messages,
            data,
        )
        self._clouds: dict[tuple[str, EndPoints], Cloud] = {}

    def close(self) -> None:
        """Release the encoders of a removed robot."""
        for cloud in self._clouds.values():
            self._data.remove(cloud)
        self._clouds.clear()

    def of(
        self, one: Shown, make: Callable[[Stamp], Any]
    ) -> Callable[[str, Stamp], bytes] | None:
        """Return the encoder of a topic; None if there is no fast encoder.

        Parameters
        ----------
        one : Shown
            Topic of a device.
        make : callable
            Makes the topic's message as an object. The encoder uses it for the
            template, and for readings that are not in the fleet's arrays.

        Returns
        -------
        callable or None
            Function of the wire format (``ros1`` or ``cdr``) and the stamp that returns
            bytes.
        """
        beams = one.ros.beams
        if beams is None or one.reader.kind.beams is None:
            return None
        return (
            self._points(one, beams, make)
            if isinstance(beams, EndPoints)
            else self._scan(one, beams, make)
        )

    def _scan(
        self, one: Shown, beams: ScanArrays, make: Callable[[Stamp], Any]
    ) -> Callable[[str, Stamp], bytes]:
        """Return the encoder of a scan.

        Its template is rebuilt when the configuration of the beams changes.
        """
        fleet, data, key, is_open = (
            self._fleet,
            self._data,
            one.reader.key,
            beams.is_open,
        )
        template: QuickScan | None = None
        of_layout = 0

        def quick(wire: str, stamp: Stamp) -> bytes:
            nonlocal template, of_layout
            layout, spans = data.measured(fleet)
            span = spans.get(key)
            # The sensor has not measured in this step, or its readings are rounded, so
            # the fleet's arrays do not hold the values to send.
            if span is None:
                return self._slow(wire, make(stamp), one.ros.type_name)
            if template is None or layout != of_layout:
                template, of_layout = QuickScan(self._types, make), layout
            # The first echoes come first in the readings; further echoes are left out.
            span = span[0], span[0] + template.count
            ranges, seen = data.scan(fleet, span, is_open, template.range_min)
            return template.bytes(wire, stamp, ranges, seen)

        return quick

    def _points(
        self, one: Shown, beams: EndPoints, make: Callable[[Stamp], Any]
    ) -> Callable[[str, Stamp], bytes]:
        key = one.reader.name, beams
        cloud = self._clouds.get(key)
        if cloud is None:
            cloud = self._clouds[key] = Cloud(
                one.reader.key, beams.rays(one.reader.spec)
            )
            self._data.add(cloud)

        fleet, data = self._fleet, self._data
        template: QuickCloud | None = None

        def quick(wire: str, stamp: Stamp) -> bytes:
            nonlocal template
            points = data.cloud(fleet, cloud)
            # The sensor has not measured in this step, or its readings are rounded, so
            # the fleet's arrays do not hold the values to send.
            if points is None:
                return self._slow(wire, make(stamp), one.ros.type_name)
            if template is None:
                template = QuickCloud(self._types, one.ros.type_name, make)
            return template.bytes(wire, stamp, points)

        return quick

    def _slow(self, wire: str, message: Any, type_name: str) -> bytes:
        # `make` has made the sensor measure, so cached readings are stale.
        self._data.forget_readings()
        encode = self._types.encode_ros1 if wire == "ros1" else self._types.encode_cdr
        return encode(message, type_name)


__all__ = [
    "Encoders",
    "Shown",
    "device_message",
    "device_transforms",
    "frame_of",
    "learn_types",
    "period_of",
    "placed_devices",
    "shown_devices",
]
