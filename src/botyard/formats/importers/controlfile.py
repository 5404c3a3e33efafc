"""Drives of ros2_control: the YAML file with the parameters of the controllers.

Source: the documentation of ros2_controllers (https://control.ros.org): parameters of
diff_drive_controller, the steering controllers, tricycle_controller and
mecanum_drive_controller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from botyard.formats.base import Source
from botyard.formats.budget import Meter
from botyard.formats.importers.axles import WheelJoints
from botyard.formats.importers.drives import WIDE, Driven, car, limits, turn_rate
from botyard.formats.importers.sdfrobots import TOP
from botyard.formats.importers.values import Value, read_yaml
from botyard.formats.notes import Notes
from botyard.model.kinematics import Drive

KINDS: Final = {
    "diff_drive_controller/DiffDriveController": "diff",
    "ackermann_steering_controller/AckermannSteeringController": "car",
    "bicycle_steering_controller/BicycleSteeringController": "tricycle",
    "tricycle_steering_controller/TricycleSteeringController": "tricycle",
    "tricycle_controller/TricycleController": "tricycle",
    "mecanum_drive_controller/MecanumDriveController": "mecanum",
    "omni_wheel_drive_controller/OmniWheelDriveController": "omni",
}
"""Type of a controller → drive."""
ROLLING: Final = (
    "left_wheel_names",
    "right_wheel_names",
    "wheel_names",
    "traction_joints_names",
    "rear_wheels_names",
    "traction_joint_name",
    "front_left_wheel_command_joint_name",
    "front_right_wheel_command_joint_name",
    "rear_left_wheel_command_joint_name",
    "rear_right_wheel_command_joint_name",
)
STEERING: Final = ("steering_joints_names", "front_wheels_names", "steering_joint_name")
RADIUS: Final = (
    "wheel_radius",
    "traction_wheels_radius",
    "traction_wheel_radius",
    "rear_wheels_radius",
    "rear_wheel_radius",
    "kinematics.wheels_radius",
)
TRACK: Final = (
    "wheel_separation",
    "traction_track_width",
    "rear_wheel_track",
    "wheel_track",
)


class ControlDrive(NamedTuple):
    """Drive of a controller.

    Attributes
    ----------
    driven : Driven
        Drive.
    joints : WheelJoints
        Joints that the controller names.
        has_limit : bool
            Whether the controller's parameters limit the steering angle.
        where : Value
            Value of the controller's ``type`` in the file, for messages.
    """

    driven: Driven
    joints: WheelJoints
    has_limit: bool
    where: Value


def read_controllers(source: Source, meter: Meter, notes: Notes) -> ControlDrive | None:
    """Return the drive in a file of ros2_control's parameters; None: there is none."""
    nodes = dict(_nodes(read_yaml(source, meter)))
    found = None
    for manager in nodes.values():
        for name, value in manager.items():
            if not isinstance(value.data, dict) or "type" not in value.data:
                continue
            kind = value.table()["type"]
            drive = KINDS.get(kind.data) if isinstance(kind.data, str) else None
            if drive is None:
                notes.add(
                    f"controller {name}",
                    kind,
                    f'the controller "{name}" is left out: its type is not a drive',
                )
            elif found is None:
                found = _driven(drive, nodes.get(name, {}), kind)
    return found


def _nodes(file: Value) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield the parameters of each node of a ROS 2 parameter file."""
    for name, value in file.table().items():
        if not isinstance(value.data, dict):
            continue
        table = value.table()
        # Files may have a namespace around nodes.
        if "ros__parameters" in table:
            yield name.strip("/").rpartition("/")[2], _flat(table["ros__parameters"])
        else:
            yield from _nodes(value)


def _flat(parameters: Value) -> dict[str, Value]:
    """Return parameters by their dotted names, and tables also by their own names."""
    found: dict[str, Value] = {}
    pending = [("", parameters)]
    while pending:
        prefix, value = pending.pop()
        for key, inner in value.table().items():
            name = f"{prefix}{key}"
            found[name] = inner
            if isinstance(inner.data, dict):
                pending.append((f"{name}.", inner))
    return found


def _driven(kind: str, table: dict[str, Value], where: Value) -> ControlDrive:
    def number(names: tuple[str, ...], otherwise: float) -> float:
        for name in names:
            value = table.get(name)
            # NaN and "none" stand for no limit.
            if value is None or value.data is None or str(value.data).lower() == "nan":
                continue
            if isinstance(value.data, float) and math.isnan(value.data):
                continue
            return abs(value.number())
        return otherwise

    def names(keys: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            entry.text()
            for key in keys
            if key in table
            for entry in table[key].entries()
            if entry.data
        )

    v = number(("linear.x.max_velocity", "traction.max_velocity"), TOP[0])
    w = number(("angular.z.max_velocity",), TOP[1])
    ramp = number(("linear.x.max_acceleration", "traction.max_acceleration"), 0.0)
    turn = number(("angular.z.max_acceleration",), 0.0)
    track = number(TRACK, 0.0) or None
    radius = number(RADIUS, 0.0) or None
    joints = WheelJoints(names(ROLLING), names(STEERING))
    if kind == "diff":
        scale = number(("wheel_separation_multiplier",), 1.0)
        driven = Driven(
            Drive.DIFF,
            limits(v, 0.0, w, (ramp, 0.0, turn)),
            None if track is None else track * scale,
            None,
            radius,
            four=Drive.SKID,
        )
        return ControlDrive(driven, joints, False, where)
    if kind in ("omni", "mecanum"):
        side = number(("linear.y.max_velocity",), v)
        top = limits(v, side, w, (ramp, ramp, turn))
        four = Drive.MECANUM if kind == "mecanum" else None
        return ControlDrive(
            Driven(Drive.OMNI, top, track, None, radius, four=four),
            joints,
            False,
            where,
        )
    base = number(("wheelbase",), 0.0) or 1.0
    given = number(("steering.max_position", "steering_angle_limit"), 0.0)
    limit = given or WIDE
    driven = car(
        limits(v, 0.0, turn_rate(min(v, 1e3), limit, base), (ramp, 0.0, turn)),
        base,
        limit,
        rate=number(("steering.max_velocity",), 0.0),
        track=track,
        has_pair=kind == "car",
        wheel_radius=radius,
    )
    return ControlDrive(driven, joints, bool(given), where)


__all__ = ["ControlDrive", "read_controllers"]
