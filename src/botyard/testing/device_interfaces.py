"""Checks of device kinds at the interfaces: recording, page, Pioneer and ROS."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from botyard.errors import BotyardError, WorldError
from botyard.model.devices import (
    Device,
    DeviceSpec,
    Mark,
    PioneerFields,
    RosMessage,
)
from botyard.model.rosmessages import Place
from botyard.model.scene import Scene
from botyard.protocols.pioneer.reportbuilder import DEVICE_BITS, DEVICE_SIMSTAT
from botyard.protocols.pioneer.reports import CONFIG_MAXIMA
from botyard.testing.device_world import device_of, device_world

if TYPE_CHECKING:
    from botyard.protocols.ros_messages.types import Types


def interface_problems(
    device: Device[Any, Any], spec: DeviceSpec, scene: Scene, steps: int
) -> list[str]:
    """Check a device at all interfaces: recording, page, Pioneer and ROS.

    Parameters
    ----------
    device : Device
        Kind of device to check.
    spec : DeviceSpec
        A device of this kind.
    scene : Scene
        World in which the device has something to detect.
    steps : int
        Number of steps before its reading.

    Returns
    -------
    list of str
        Problems found.
    """
    sim, robot = device_world(spec, scene)
    sim.step(steps)
    reading = device_of(robot, spec).read()
    problems = _recorded(device, reading)
    if device.marks is not None:
        for mark in device.marks(spec, reading):
            if not isinstance(mark, Mark) or not (
                math.isfinite(mark.x) and math.isfinite(mark.y)
            ):
                problems.append(f"marks: expected Mark(x, y, text) in m, found {mark}")

    bundles = [] if device.beams is None else device.beams(spec, False)
    if device.layer == "laser" and (len(bundles) != 1 or bundles[0].shortest):
        problems.append(
            'layer: expected "sonar", or one bundle (beams from one origin) with one reading '
            "per beam"
        )

    if device.pioneer is not None:
        problems += _pioneer(device.pioneer, spec, reading)
    return problems + _ros(device, spec, reading, scene, steps)


def _pioneer(
    pioneer: PioneerFields[Any, Any], spec: DeviceSpec, reading: Any
) -> list[str]:
    """Check the fields that a device has in Pioneer packets.

    Parameters
    ----------
    pioneer : PioneerFields
        Description of the device's fields.
    spec, reading : DeviceSpec, object
        The device and its reading.
    """
    problems = []
    for name, bits in (
        {} if pioneer.report is None else pioneer.report(spec, reading)
    ).items():
        if name not in DEVICE_BITS or bits & ~DEVICE_BITS.get(name, 0):
            problems.append(
                f"pioneer: expected bits of {DEVICE_BITS}, found {name} {bits:#x}"
            )

    for name, value in ({} if pioneer.config is None else pioneer.config(spec)).items():
        if name not in CONFIG_MAXIMA or not 0 <= value <= CONFIG_MAXIMA[name]:
            problems.append(
                "pioneer: CONFIG: expected a field of CONFIG_MAXIMA and a number from 0 to its "
                f"maximum, found {name} {value}"
            )

    for name, number in (
        {} if pioneer.simstat is None else pioneer.simstat(spec, reading)
    ).items():
        if name not in DEVICE_SIMSTAT or not math.isfinite(number):
            problems.append(
                f"pioneer: SIMSTAT: expected one of {sorted(DEVICE_SIMSTAT)} and a finite number, "
                f"found {name} {number}"
            )

    return problems


def _recorded(device: Device[Any, Any], reading: Any) -> list[str]:
    """Check the recorded rows against the schema of the channel."""
    types: dict[str, Any] = {
        "number": (int, float),
        "integer": int,
        "boolean": bool,
        "string": str,
        "null": type(None),
    }
    schema = device.channel.schema["items"]["properties"]
    problems = []
    # JSON has no NaN, which Python's encoder would write nevertheless.
    for row in json.loads(json.dumps(device.record(reading), allow_nan=False)):
        for name, value in row.items():
            wanted = schema[name]["type"]
            kinds = tuple(
                types[t] for t in (wanted if isinstance(wanted, list) else [wanted])
            )
            if not isinstance(
                value,
                tuple(
                    k
                    for kind in kinds
                    for k in (kind if isinstance(kind, tuple) else (kind,))
                ),
            ):
                problems.append(
                    f"recording: {name}: expected {wanted}, found {value!r}"
                )

    return problems


def _ros(
    device: Device[Any, Any], spec: DeviceSpec, reading: Any, scene: Scene, steps: int
) -> list[str]:
    """Check the ROS messages and topics of the device."""
    if not device.ros_messages:
        return []
    # The check needs the optional packages of ROS, so the import stands here.
    from botyard.protocols.ros_messages.messages import (
        Messages,
        Stamp,
    )
    from botyard.protocols.ros_messages.types import Types
    from botyard.protocols.ros_messages.types import types as known_types

    try:
        types = known_types()
        if not all(
            types.knows(name) for ros in device.ros_messages for name in ros.definitions
        ):
            # Unknown definitions: use separate types, so that mistakes in them affect
            # no other check.
            types = Types()

        header = Messages(types).header(Stamp(1, 2), "frame")
    except WorldError:
        return []

    problems = []
    for ros in device.ros_messages:
        try:
            problems += _ros_message(ros, spec, reading, types, header)
        except (BotyardError, KeyError) as error:
            problems.append(f"ros: {error}")

        if not all(
            part.isidentifier()
            for part in Place(type_name="a").named(ros.topic).split("/")
        ):
            problems.append(
                f'ros: expected a topic of letters, digits and _, found "{ros.topic}"'
            )

    topics = [
        (profile, ros.topic) for ros in device.ros_messages for profile in ros.profiles
    ]
    if len(set(topics)) < len(topics):
        problems.append(f"ros: expected different topics, found {topics}")
    return problems + [
        p
        for profile in {p for p, _ in topics}
        for p in _ros_from_beams(spec, scene, steps, types, profile)
    ]


def _ros_from_beams(
    spec: DeviceSpec, scene: Scene, steps: int, types: Types, profile: str
) -> list[str]:
    """Check that messages built from all beams of a step equal messages built from
    readings.

    This must also hold while the sensor does not measure.

    Parameters
    ----------
    spec : DeviceSpec
        Device to check, with its parameters.
    scene : Scene
        World in which the device has something to detect.
    steps : int
        Number of steps between two comparisons.
    types : Types
        Message types that encode the topics.
    profile : str
        Name profile whose topics are compared.
    """
    from botyard.protocols.ros_messages.messages import Messages, Stamp
    from botyard.protocols.ros_messages.naming import PROFILES, names_of
    from botyard.protocols.ros_messages.robot import RobotTopics
    from botyard.protocols.ros_messages.stepdata import StepData

    if profile not in PROFILES:
        return [f'ros: there is no name profile "{profile}" ({", ".join(PROFILES)})']

    sim, robot = device_world(spec, scene)
    topics = RobotTopics(
        robot.port("ros"),
        names_of("a", profile, False),
        Messages(types),
        types,
        StepData(),
    )

    own = [t for t in topics.topics() if t.device == spec.type and t.quick is not None]

    problems = []
    for is_read in (False, True):
        for topic in own:
            topic.wanted(is_read)
        sim.step(steps)
        # The cached data of a step would hide that messages depend on the reader.
        topics.data.forget()
        for topic in own:
            assert topic.quick is not None
            quick = types.decode_cdr(topic.quick("cdr", Stamp(1, 2)), topic.type_name)
            plain = types.encode_cdr(topic.make(Stamp(1, 2)), topic.type_name)
            if types.encode_cdr(quick, topic.type_name) != plain:
                problems.append(
                    f"ros: {topic.name}: beams and fields build different messages"
                )

    return problems


def _ros_message(
    ros: RosMessage[Any, Any], spec: DeviceSpec, reading: Any, types: Types, header: Any
) -> list[str]:
    """Check that a message passes through both encodings of ROS."""
    problems = []

    types.learn(ros.definitions)
    fields = dict(ros.fields(spec, reading) or {})
    if types.has_header(ros.type_name):
        fields["header"] = header
    message = types.made(ros.type_name, fields)

    for wire in ("ros1", "cdr"):
        encode, decode = (
            getattr(types, f"encode_{wire}"),
            getattr(types, f"decode_{wire}"),
        )
        data = encode(message, ros.type_name)
        if encode(decode(data, ros.type_name), ros.type_name) != data:
            problems.append(f"ros: {ros.type_name} does not pass through {wire}")

    return problems


__all__ = ["interface_problems"]
