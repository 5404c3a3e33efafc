"""Profiles of ROS names are tables: what each offers, and that nothing else decides by a profile's name."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

import botyard
from botyard.formats.worldoptions import WorldOptions
from botyard.protocols.ros_messages.naming import PROFILES, names_of


@pytest.mark.parametrize(
    ("profile", "alone", "several"),
    [
        ("default", ("/botyard", "/ann/odom", "ann/base_link"), ("/botyard", "/ann/odom", "ann/base_link")),
        (
            "amrisim",
            ("/AMRISim_ann", "/AMRISim_ann/odom", "base_link"),
            ("/AMRISim_ann", "/AMRISim_ann/odom", "ann/base_link"),
        ),
        ("stage", ("/stageros", "/odom", "base_link"), ("/stageros", "/ann/odom", "ann/base_link")),
        ("rosaria", ("/RosAria", "/RosAria/odom", "base_link"), ("/ann/RosAria", "/ann/RosAria/odom", "ann/base_link")),
    ],
)
def test_names_of_a_robot(profile: str, alone: tuple[str, ...], several: tuple[str, ...]) -> None:
    for is_alone, expected in ((True, alone), (False, several)):
        names = names_of("ann", profile, is_alone)
        assert (names.node, names.topic("odom"), names.frame_id("base_link")) == expected


@pytest.mark.parametrize(
    ("profile", "only", "several"),
    [
        ("default", "base_scan", ["base_scan", "base_scan_1"]),
        ("stage", "base_scan", ["base_scan_0", "base_scan_1"]),
        ("rosaria", "lms2xx_1_laserscan", ["lms2xx_1_laserscan", "lms2xx_2_laserscan"]),
    ],
)
def test_topics_of_lasers(profile: str, only: str, several: list[str]) -> None:
    names = names_of("ann", profile, True)
    assert names.scan_topic(0, 1, "lms-2xx").rpartition("/")[2] == only
    assert [names.scan_topic(i, 2, "lms-2xx").rpartition("/")[2] for i in range(2)] == several


def test_a_world_may_name_every_profile() -> None:
    (kind,) = (f.type for f in msgspec.structs.fields(WorldOptions) if f.name == "ros_names")
    assert all(f"'{name}'" in str(kind) for name in PROFILES)


def test_nothing_decides_by_the_name_of_a_profile() -> None:
    """Comparisons with one of these names, but in tables: all that a profile means stands in `Profile`."""
    source = Path(botyard.__file__).parent
    found = []
    for folder in ("protocols/ros_messages", "interfaces/ros", "servers", "app"):
        for path in (source / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Compare):
                    texts = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}
                    if texts & {"stage", "rosaria"} or (texts & set(PROFILES) and "profile" in ast.unparse(node)):
                        found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert not found
