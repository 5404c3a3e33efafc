"""URDF, ROS's description of robots (http://wiki.ros.org/urdf/XML): written from a
model's links and joints, not read.

It has no meshes, as nobody could fetch them: bodies are boxes and cylinders.
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
"""URDF demands a greatest effort of joints with limits; botyard's have none."""


def to_urdf(
    spec: RobotSpec,
    name: str,
    *,
    profile: str = "default",
    footprint: str = "",
    prefix: str = "",
) -> str:
    """A robot as URDF.

    Parameters
    ----------
    spec : RobotSpec
        Its model.
    name : str
        Its name.
    profile, footprint : str
        See `botyard.model.links.robot_model`.
    prefix : str
        What the names of links begin with, as those of the frames that ROS programs
        get. Joints have none: they are named in sensor_msgs/JointState, on a topic of
        the robot's own.
    """
    model = robot_model(spec, profile, footprint)
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
    """A name without characters that XML 1.0 forbids."""
    return "".join(c if c.isprintable() else "_" for c in name)


def _number(value: float) -> str:
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
