"""Writer of URDF, ROS's robot description format (http://wiki.ros.org/urdf/XML).

The description comes from a model's links and joints. It has no meshes, because clients
have no files to load them from: bodies are boxes and cylinders. URDF files are not
read.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final

from botyard.model.colors import rgb
from botyard.model.links import Joint, RobotModel, Shape, robot_model
from botyard.model.robot import RobotSpec
from botyard.processes.safefile import MARK

MATERIAL: Final = "body"
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
) -> str:
    """Return a robot as URDF.

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
    ET.indent(root)
    return f'<?xml version="1.0"?>\n<!-- {MARK} -->\n{ET.tostring(root, "unicode")}\n'


def _text(name: str) -> str:
    """Return a name without the characters that XML 1.0 forbids."""
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
    if joint.kind == "prismatic":
        low, high = joint.limits
        ET.SubElement(
            element,
            "limit",
            lower=_number(low),
            upper=_number(high),
            effort=_number(_EFFORT_N),
            velocity=_number(joint.speed),
        )


__all__ = ["to_urdf"]
