"""URDF of every model:

valid, a tree, with the published frames; bodies are boxes that cover the outline.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.formats.models import find_robot, model_names
from botyard.formats.urdf import to_urdf
from botyard.model.links import BODY_BOTTOM_M, BODY_TOP_M, body_shapes
from botyard.model.readings import Action
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import PROFILES, names_of
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import types
from botyard.sim.simulation import Simulation

ATTRIBUTES = {
    "robot": {"name"},
    "material": {"name"},
    "color": {"rgba"},
    "link": {"name"},
    "visual": set(),
    "collision": set(),
    "geometry": set(),
    "box": {"size"},
    "cylinder": {"radius", "length"},
    "origin": {"xyz", "rpy"},
    "joint": {"name", "type"},
    "parent": {"link"},
    "child": {"link"},
    "axis": {"xyz"},
    "limit": {"lower", "upper", "effort", "velocity"},
}
"""Elements and their attributes (http://wiki.ros.org/urdf/XML)."""
COUNTS = {
    "rgba": 4,
    "xyz": 3,
    "rpy": 3,
    "size": 3,
    "radius": 1,
    "length": 1,
    "lower": 1,
    "upper": 1,
    "effort": 1,
    "velocity": 1,
}
"""How many numbers an attribute has."""


def numbers(element: ET.Element, attribute: str) -> list[float]:
    values = [float(x) for x in element.attrib[attribute].split(" ")]
    assert len(values) == COUNTS[attribute], (element.tag, attribute)
    assert all(map(math.isfinite, values))
    return values


def checked(text: str) -> ET.Element:
    """Read strictly: only known elements, finite numbers, one tree of links."""
    root = ET.fromstring(text)
    assert root.tag == "robot" and root.attrib["name"]
    # Elements of Gazebo have names of their own; they refer to links and joints.
    names = {e.attrib["name"] for e in root if e.tag in ("link", "joint")}
    for gazebo in root.findall("gazebo"):
        assert gazebo.get("reference", next(iter(names))) in names
        joints_of = [e.text for e in gazebo.iter() if e.tag.endswith("_joint")]
        assert set(joints_of) <= names
        root.remove(gazebo)
    for element in root.iter():
        assert set(element.attrib) == ATTRIBUTES[element.tag], element.tag
        for attribute in set(element.attrib) & set(COUNTS):
            values = numbers(element, attribute)
            if attribute in ("size", "radius", "length"):
                assert min(values) > 0.0

    links = [e.attrib["name"] for e in root.iterfind("link")]
    joints = list(root.iterfind("joint"))
    assert len(set(links)) == len(links)
    assert len({j.attrib["name"] for j in joints}) == len(joints) == len(links) - 1
    known = {e.attrib["name"] for e in root.iterfind("material")}
    assert {e.attrib["name"] for e in root.iterfind("link/visual/material")} <= known
    parents = {child: parent for parent, child, _ in mounted(root)}
    assert len(parents) == len(joints), "a link has one parent"
    for link in links:
        seen = []
        while link != links[0]:
            assert link not in seen, "no circle"
            seen.append(link)
            link = parents[link]

    for joint in joints:
        assert joint.attrib["type"] in (
            "fixed",
            "continuous",
            "prismatic",
            "revolute",
        )
        if joint.attrib["type"] != "fixed":
            assert math.hypot(*numbers(joint.find("axis"), "xyz")) == 1.0  # type: ignore[arg-type]
        if joint.attrib["type"] in ("prismatic", "revolute"):
            limit = joint.find("limit")
            assert limit is not None and numbers(limit, "lower") < numbers(
                limit, "upper"
            )
            assert numbers(limit, "velocity")[0] > 0.0

    return root


def mounted(root: ET.Element) -> Iterator[tuple[str, str, ET.Element]]:
    """Return parent, child and element of each joint."""
    for joint in root.iterfind("joint"):
        parent, child = joint.find("parent"), joint.find("child")
        assert parent is not None and child is not None
        yield parent.attrib["link"], child.attrib["link"], joint


@pytest.mark.parametrize("profile", ["default", "nav2"])
def test_links_are_the_frames_of_the_transforms(profile: str) -> None:
    """Every model:

    each joint's transform is published by the same names and at the joint's current
    position.
    """
    for name in model_names():
        spec = find_robot(name)
        if not spec.drive:
            continue
        sim = Simulation(step=0.1)
        robot = sim.add_robot(spec, "ann")
        robot.command(v=0.2, w=0.3)
        sim.step(7)
        names = names_of("ann", profile, True)
        topics = RobotTopics(
            robot.port("ros"), names, Messages(types()), types(), StepData()
        )
        text = to_urdf(
            spec,
            "ann",
            profile=profile,
            footprint=names.profile.footprint,
            prefix=names.frame_id(""),
        )
        root = checked(text)
        published = {
            (t.parent, t.child): t.values
            for t in (*topics.transforms(), *topics.static_transforms())
        }
        moved, base = (
            published.pop((names.frame_id("odom"), names.frame_id(names.profile.base))),
            root.find("link"),
        )
        assert base is not None and base.attrib["name"] == names.frame_id(
            names.profile.base
        )
        assert moved[0] != 0.0
        positions = joint_positions(topics)
        pairs = {(parent, child): joint for parent, child, joint in mounted(root)}
        assert set(pairs) == set(published), name
        for pair, joint in pairs.items():
            assert published[pair] == pytest.approx(at(joint, positions), abs=1e-8), (
                name,
                pair,
            )


def joint_positions(topics: RobotTopics) -> dict[str, float]:
    """Return the positions of sensor_msgs/JointState."""
    (topic,) = (t for t in topics.topics() if t.type_name == "sensor_msgs/JointState")
    message = topic.make(Stamp(1, 0))
    assert len(message.name) == len(message.position) == len(message.velocity)
    return dict(zip(message.name, message.position.tolist(), strict=True))


def at(joint: ET.Element, positions: dict[str, float]) -> list[float]:
    """Return translation and quaternion of a joint at its position.

    The origin comes first, then motion about or along its axis; all origins have only
    yaw.
    """
    origin = joint.find("origin")
    assert origin is not None
    (x, y, z), (roll, pitch, yaw) = numbers(origin, "xyz"), numbers(origin, "rpy")
    assert roll == pitch == 0.0
    name = joint.attrib["name"]
    axis = joint.find("axis")
    if axis is None:
        assert name not in positions
        return [x, y, z, 0.0, 0.0, math.sin(yaw / 2.0), math.cos(yaw / 2.0)]

    assert yaw == 0.0
    a, position = numbers(axis, "xyz"), positions.pop(name)
    if joint.attrib["type"] == "prismatic":
        return [
            x + a[0] * position,
            y + a[1] * position,
            z + a[2] * position,
            0.0,
            0.0,
            0.0,
            1.0,
        ]

    s = math.sin(position / 2.0)
    return [x, y, z, a[0] * s, a[1] * s, a[2] * s, math.cos(position / 2.0)]


def test_joints_follow_wheels_and_gripper() -> None:
    sim = Simulation(step=0.1)
    robot = sim.add_robot("p3dx-equipped", "ann")
    topics = RobotTopics(
        robot.port("ros"),
        names_of("ann", "nav2", True),
        Messages(types()),
        types(),
        StepData(),
    )
    before = joint_positions(topics)
    assert robot.gripper is not None
    robot.gripper.act(Action.CLOSE)
    robot.command(v=0.2, w=0.3)
    sim.step(20)
    after = joint_positions(topics)
    wheels = {
        f"{wheel.name}_wheel_joint": wheel.angle
        for wheel in robot.devices["encoders"].read()
    }
    assert {n: p for n, p in after.items() if n in wheels} == pytest.approx(wheels)
    assert after["right_wheel_joint"] > after["left_wheel_joint"] > 0.0, (
        "it turns to the left"
    )
    for side in ("left", "right"):
        half = find_robot("p3dx-equipped").gripper.opening / 2.0  # type: ignore[union-attr]
        assert (
            before[f"{side}_paddle_joint"],
            after[f"{side}_paddle_joint"],
        ) == pytest.approx((half, 0.0))


@pytest.mark.parametrize("name", ["<&\"'>", "a\x00b\n", "机器"])
def test_any_name_is_valid_xml(name: str) -> None:
    assert checked(to_urdf(find_robot("p3dx"), name)).attrib["name"]


CORNERS = st.lists(
    st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=3, max_size=30
)


@given(CORNERS)
def test_boxes_are_within_the_outline_and_reach_its_ends(
    corners: list[tuple[float, float]],
) -> None:
    """Any polygon, also one that crosses itself or has no area."""
    if len(set(corners)) < 2:
        return
    shapes = body_shapes(tuple(corners))
    (x0, x1), (y0, y1) = ((min(v), max(v)) for v in zip(*corners, strict=True))
    slack = 0.002 + 0.03 * max(x1 - x0, y1 - y0)
    low, high = [], []
    for shape in shapes:
        assert shape.at[2] - shape.size[-1] / 2 == pytest.approx(BODY_BOTTOM_M)
        assert shape.at[2] + shape.size[-1] / 2 == pytest.approx(BODY_TOP_M)
        half = (
            (shape.size[0],) * 2
            if shape.is_cylinder
            else (shape.size[0] / 2, shape.size[1] / 2)
        )
        assert (
            x0 - slack <= shape.at[0] - half[0] and shape.at[0] + half[0] <= x1 + slack
        )
        assert (
            y0 - slack <= shape.at[1] - half[1] and shape.at[1] + half[1] <= y1 + slack
        )
        low.append(shape.at[0] - half[0])
        high.append(shape.at[0] + half[0])

    assert (min(low), max(high)) == pytest.approx((x0, x1), abs=slack)
    text = to_urdf(replace(find_robot("p3dx"), outline=tuple(corners)), "ann")
    checked(text)


def test_round_bodies_are_cylinders_and_square_ones_one_box() -> None:
    circle = tuple(
        (0.3 * math.cos(a), 0.3 * math.sin(a))
        for a in (2 * math.pi * k / 16 for k in range(16))
    )
    (shape,) = body_shapes(circle)
    assert shape.is_cylinder and shape.size[0] == pytest.approx(0.3)
    (shape,) = body_shapes(((-0.2, -0.1), (0.3, -0.1), (0.3, 0.1), (-0.2, 0.1)))
    assert shape.size[:2] == pytest.approx((0.5, 0.2)) and shape.at[
        :2
    ] == pytest.approx((0.05, 0.0))


def test_profiles_of_other_programs_have_no_description() -> None:
    offering = {
        name
        for name, profile in PROFILES.items()
        if "robot_description" in profile.robot
    }
    assert offering == {"default", "nav2"}
