"""Writer of URDF, ROS's robot description format (http://wiki.ros.org/urdf/XML).

The description comes from a model's links and joints. It has no meshes, because clients
have no files to load them from: bodies are boxes and cylinders. Elements of Gazebo
describe the drive and the lasers. The element ``robot_file`` has the whole model, with
values that URDF has no place for; `botyard.formats.importers.urdf` reads the files back.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final

from botyard.model.colors import rgb
from botyard.model.devices import find_device, names_of
from botyard.model.kinematics import Drive
from botyard.model.links import (
    BASE,
    BODY_TOP_M,
    CASE_HEIGHT_M,
    Joint,
    RobotModel,
    Shape,
    frames_of,
    places,
    robot_model,
    steering_joints,
    wheel_joints,
)
from botyard.model.robot import RobotSpec
from botyard.model.robotfile import to_table
from botyard.model.robottext import toml_text
from botyard.model.sensors import LaserSpec
from botyard.processes.safefile import MARK

MATERIAL: Final = "body"
ROBOT_FILE: Final = "botyard:robot_file"
"""Element with the robot file of the model, in TOML."""
PLUGINS: Final = {
    "diff": ("gz-sim-diff-drive-system", "gz::sim::systems::DiffDrive"),
    "velocity": ("gz-sim-velocity-control-system", "gz::sim::systems::VelocityControl"),
    "mecanum": ("gz-sim-mecanum-drive-system", "gz::sim::systems::MecanumDrive"),
    "ackermann": (
        "gz-sim-ackermann-steering-system",
        "gz::sim::systems::AckermannSteering",
    ),
    "tricycle": ("libgazebo_ros_tricycle_drive.so", "tricycle_drive"),
}
"""File and name of Gazebo's plugin for a kind of drive."""
_DECIMALS: Final = 9
_EFFORT_N: Final = 100.0
"""Maximum effort of joints, N. URDF requires a value; botyard's joints have no limit.
"""


def to_urdf(
    spec: RobotSpec,
    name: str,
    *,
    profile: str = "default",
    footprint: str = "",
    prefix: str = "",
    whole: bool = True,
) -> str:
    """Return the URDF text that describes a robot.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robot.
    name : str
        Name of the robot.
    profile, footprint : str
        See `botyard.model.links.robot_model`.
    prefix : str
        Prefix of link names, as in the frames that ROS programs receive. Joints have no
        prefix, because sensor_msgs/JointState names them on the robot's own topic.
    whole : bool
        Whether to add the element ``robot_file`` with the whole model.
    """
    model = robot_model(spec, profile, footprint)
    # ElementTree escapes markup in names, but not forbidden characters.
    root = ET.Element("robot", name=_text(name))
    color = " ".join(_number(c / 255.0) for c in rgb(spec.color))
    ET.SubElement(
        ET.SubElement(root, "material", name=MATERIAL), "color", rgba=f"{color} 1"
    )
    _write_links(root, model, prefix)
    for joint in model.joints:
        _write_joint(root, joint, prefix)
    if spec.kinematics.drives:
        _write_drive(root, spec)
    _write_lasers(root, spec, profile, prefix)
    if whole:
        element = ET.SubElement(ET.SubElement(root, "gazebo"), ROBOT_FILE)
        element.set("xmlns:botyard", "urn:botyard")
        element.text = "\n" + toml_text(to_table(spec))
    ET.indent(root)
    return f'<?xml version="1.0"?>\n<!-- {MARK} -->\n{ET.tostring(root, "unicode")}\n'


def _text(name: str) -> str:
    """Return a name without characters that XML 1.0 forbids."""
    return "".join(c if c.isprintable() else "_" for c in name)


def _number(value: float) -> str:
    # Rounding hides the noise of unit conversions. A negative zero becomes 0.
    value = round(float(value), _DECIMALS)
    return repr(value) if value else "0"


def _numbers(values: Sequence[float]) -> str:
    return " ".join(map(_number, values))


def _write_links(root: ET.Element, model: RobotModel, prefix: str) -> None:
    for link in model.links:
        element = ET.SubElement(root, "link", name=prefix + link.name)
        for shape in link.shapes:
            visual = ET.SubElement(element, "visual")
            _write_shape(visual, shape)
            ET.SubElement(visual, "material", name=MATERIAL)
            if shape.is_solid:
                _write_shape(ET.SubElement(element, "collision"), shape)


def _write_shape(parent: ET.Element, shape: Shape) -> None:
    ET.SubElement(
        parent, "origin", xyz=_numbers(shape.at), rpy=_numbers((shape.roll, 0.0, 0.0))
    )
    geometry = ET.SubElement(parent, "geometry")
    if shape.is_cylinder:
        radius, length = shape.size
        ET.SubElement(
            geometry, "cylinder", radius=_number(radius), length=_number(length)
        )
    else:
        ET.SubElement(geometry, "box", size=_numbers(shape.size))


def _write_joint(root: ET.Element, joint: Joint, prefix: str) -> None:
    element = ET.SubElement(root, "joint", name=joint.name, type=joint.kind)
    pose = joint.pose
    ET.SubElement(
        element,
        "origin",
        xyz=_numbers((pose.x, pose.y, joint.z)),
        rpy=_numbers((0.0, 0.0, pose.th)),
    )
    ET.SubElement(element, "parent", link=prefix + joint.parent)
    ET.SubElement(element, "child", link=prefix + joint.child)
    if joint.kind != "fixed":
        ET.SubElement(element, "axis", xyz=_numbers(joint.axis))
    if joint.kind in ("prismatic", "revolute"):
        low, high = joint.limits
        ET.SubElement(
            element,
            "limit",
            lower=_number(low),
            upper=_number(high),
            effort=_number(_EFFORT_N),
            velocity=_number(joint.speed),
        )


# -- elements of Gazebo


def _write_drive(root: ET.Element, spec: RobotSpec) -> None:
    """Write the plugin of the drive, with its joints and limits."""
    kinematics, steering = spec.kinematics, spec.steering
    kind = next(
        name
        for name, has in (
            ("tricycle", kinematics.kind is Drive.TRICYCLE),
            ("ackermann", kinematics.steers),
            ("mecanum", kinematics.kind is Drive.MECANUM),
            ("velocity", kinematics.moves_sideways),
            ("diff", True),
        )
        if has
    )
    filename, name = PLUGINS[kind]
    plugin = ET.SubElement(
        ET.SubElement(root, "gazebo"), "plugin", filename=filename, name=name
    )

    def write(tag: str, value: str) -> None:
        ET.SubElement(plugin, tag).text = value

    if kind != "velocity":
        for joint in wheel_joints(spec):
            side = "left" if joint.pose.y > 0.0 else "right"
            if kind == "mecanum":
                side = f"{'front' if joint.pose.x > 0.0 else 'back'}_{side}"
            write(
                f"encoder_wheel_{side}_joint"
                if kind == "tricycle"
                else f"{side}_joint",
                joint.name,
            )
    for joint in steering_joints(spec):
        side = "left_" if joint.pose.y > 0.0 else "right_" if joint.pose.y else ""
        write(f"{side}steering_joint", joint.name)
    # Wheels that scrub turn the robot as if they were farther apart.
    skids = kinematics.kind is Drive.SKID
    write(
        "wheel_separation",
        _number(2.0 * kinematics.lever if skids else kinematics.track),
    )
    if kinematics.wheels is not None:
        write("wheelbase", _number(kinematics.wheels.wheelbase))
    write("wheel_radius", _number(spec.wheel_radius))
    if steering is not None:
        write("wheel_base", _number(abs(steering.wheelbase)))
        write("steering_limit", _number(steering.limit))
    top, ramp = spec.limits.max_speed, spec.limits.accel
    values = (
        ("max_linear_velocity", top.x),
        ("max_angular_velocity", top.a),
        ("max_linear_acceleration", ramp.x),
        ("max_angular_acceleration", ramp.a),
    )
    for tag, value in values:
        # 0 means unlimited, which Gazebo takes from the absence of the element.
        if value or tag.endswith("velocity"):
            write(tag, _number(value))


def _write_lasers(root: ET.Element, spec: RobotSpec, profile: str, prefix: str) -> None:
    """Write the sensor of each laser, in the frame of its link."""
    devices = [*zip(names_of(spec.equipment), spec.equipment, strict=True)]
    for (title, device), place in zip(devices, places(devices), strict=True):
        if not isinstance(device, LaserSpec):
            continue
        frame = next(iter(frames_of(find_device(device.type), place, profile)), BASE)
        gazebo = ET.SubElement(root, "gazebo", reference=prefix + frame)
        sensor = ET.SubElement(gazebo, "sensor", name=title, type="gpu_lidar")
        roll = math.pi if device.flipped else 0.0
        ET.SubElement(sensor, "pose").text = _numbers(
            (0.0, 0.0, BODY_TOP_M + CASE_HEIGHT_M / 2.0, roll, 0.0, 0.0)
        )
        # Gazebo has one rate; botyard's scans are taken or published at it.
        rate = device.update_rate or device.measurement_rate
        if rate:
            ET.SubElement(sensor, "update_rate").text = _number(rate)
        lidar = ET.SubElement(sensor, "lidar")
        across = ET.SubElement(ET.SubElement(lidar, "scan"), "horizontal")
        span = ET.SubElement(lidar, "range")
        half = device.fov / 2.0
        for parent, tag, text in (
            (across, "samples", str(device.samples)),
            (across, "min_angle", _number(-half)),
            (across, "max_angle", _number(half)),
            (span, "min", _number(device.range_min)),
            (span, "max", _number(device.range_max)),
        ):
            ET.SubElement(parent, tag).text = text
        if device.range_deviation:
            noise = ET.SubElement(lidar, "noise")
            ET.SubElement(noise, "type").text = "gaussian"
            ET.SubElement(noise, "stddev").text = _number(device.range_deviation)


__all__ = ["to_urdf"]
