"""Profiles of ROS names are tables:

their content, and no other decision by a profile's name.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import botyard
from botyard.formats.models import find_robot
from botyard.formats.worldoptions import WorldOptions
from botyard.geometry import Pose
from botyard.model.sensors import LaserSpec
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import PROFILES, names_of
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import types
from botyard.sim.simulation import Simulation


@pytest.mark.parametrize(
    ("profile", "alone", "several"),
    [
        (
            "default",
            ("/botyard", "/ann/odom", "ann/base_link"),
            ("/botyard", "/ann/odom", "ann/base_link"),
        ),
        (
            "amrisim",
            ("/AMRISim_ann", "/AMRISim_ann/odom", "base_link"),
            ("/AMRISim_ann", "/AMRISim_ann/odom", "ann/base_link"),
        ),
        (
            "nav2",
            ("/botyard", "/odom", "base_link"),
            ("/botyard", "/ann/odom", "base_link"),
        ),
        (
            "loopback",
            ("/loopback_simulator", "/odom", "base_link"),
            ("/ann/loopback_simulator", "/ann/odom", "base_link"),
        ),
        (
            "stage",
            ("/stageros", "/odom", "base_link"),
            ("/stageros", "/ann/odom", "ann/base_link"),
        ),
        (
            "rosaria",
            ("/RosAria", "/RosAria/odom", "base_link"),
            ("/ann/RosAria", "/ann/RosAria/odom", "ann/base_link"),
        ),
    ],
)
def test_names_of_a_robot(
    profile: str, alone: tuple[str, ...], several: tuple[str, ...]
) -> None:
    for is_alone, expected in ((True, alone), (False, several)):
        names = names_of("ann", profile, is_alone)
        assert (
            names.node,
            names.topic("odom"),
            names.frame_id("base_link"),
        ) == expected


@pytest.mark.parametrize(
    ("profile", "only", "several", "several_frames"),
    [
        (
            "default",
            "base_scan",
            ["base_scan", "base_scan_1"],
            ["base_laser", "base_laser_1"],
        ),
        ("nav2", "scan", ["scan", "scan_1"], ["base_scan", "base_scan_1"]),
        ("loopback", "scan", ["scan", "scan_1"], ["base_scan", "base_scan_1"]),
        ("amrisim", "", [], ["base_laser", "base_laser_1"]),
        (
            "stage",
            "base_scan",
            ["base_scan_0", "base_scan_1"],
            ["base_laser_link_0", "base_laser_link_1"],
        ),
        (
            "rosaria",
            "lms2xx_1_laserscan",
            ["lms2xx_1_laserscan", "lms2xx_2_laserscan"],
            ["base_laser", "base_laser_1"],
        ),
    ],
)
def test_topics_and_frames_of_lasers(
    profile: str, only: str, several: list[str], several_frames: list[str]
) -> None:
    """Programs of AMRISim, stage_ros and ROSARIA expect these names (ros.md)."""
    for count, expected in ((1, [only] if only else []), (2, several)):
        sim = Simulation()
        mounted = tuple(
            LaserSpec(type_name="lms-2xx", pose=Pose(0.1 * i)) for i in range(count)
        )
        frames = (
            [several_frames[0].removesuffix("_0")] if count == 1 else several_frames
        )
        robot = sim.add_robot(replace(find_robot("p3dx"), lasers=mounted), "ann")
        names = names_of("ann", profile, True)
        topics = RobotTopics(
            robot.port("ros"), names, Messages(types()), types(), StepData()
        )
        scans = [t for t in topics.topics() if t.type_name == "sensor_msgs/LaserScan"]
        assert [t.name.rpartition("/")[2] for t in scans] == expected
        assert [t.make(Stamp(1, 2)).header.frame_id for t in scans] == [
            names.frame_id(f) for f in frames[: len(expected)]
        ]
        at = {t.child: t.pose for t in topics.static_transforms()}
        assert [at[names.frame_id(f)] for f in frames[:count]] == [
            laser.pose for laser in mounted
        ]
        assert at[names.frame_id("sonar")] == Pose()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("frames", "prefix", "tf"),
    [
        ("plain", "", {True: "own", False: "own"}),
        ("prefixed", "ann/", {True: "/tf", False: "/tf"}),
    ],
)
def test_frames_are_plain_or_prefixed_with_every_names(
    profile: str, frames: str, prefix: str, tf: dict[bool, str]
) -> None:
    """Nav2 expects plain frames and transforms in the robot's namespace; others expect
    one tree of all robots.
    """
    for alone in (True, False):
        names = names_of("ann", PROFILES[profile].with_frames(frames), alone)
        assert names.frame_id("odom") == f"{prefix}odom"
        assert names.tf == (names.topic("tf") if tf[alone] == "own" else tf[alone])

    nav2 = names_of("ann", "nav2", True), names_of("ann", "nav2", False)
    assert [n.tf for n in nav2] == ["/tf", "/ann/tf"]


def test_a_sensor_is_read_as_long_as_one_of_its_topics_is() -> None:
    robot = Simulation().add_robot("p3dx", "ann")
    topics = RobotTopics(
        robot.port("ros"),
        names_of("ann", "default", True),
        Messages(types()),
        types(),
        StepData(),
    ).topics()
    first, second = [t for t in topics if "PointCloud" in t.type_name]
    assert robot.sonar is not None
    for topic, on, is_read in (
        (first, True, True),
        (second, True, True),
        (first, False, True),
        (second, False, False),
    ):
        topic.wanted(on)
        assert robot.sonar.is_read == is_read


def test_a_world_may_name_every_profile() -> None:
    (kind,) = (
        f.type for f in msgspec.structs.fields(WorldOptions) if f.name == "ros_names"
    )
    assert all(f"'{name}'" in str(kind) for name in PROFILES)


def test_nothing_decides_by_the_name_of_a_profile() -> None:
    """No code compares with one of these names except tables:

    `Profile` holds all properties.
    """
    source = Path(botyard.__file__).parent
    found = []
    for folder in ("protocols/ros_messages", "interfaces/ros", "servers", "app"):
        for path in (source / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Compare):
                    texts = {
                        n.value for n in ast.walk(node) if isinstance(n, ast.Constant)
                    }
                    if texts & {"stage", "rosaria"} or (
                        texts & set(PROFILES) and "profile" in ast.unparse(node)
                    ):
                        found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")

    assert not found
