"""The examples for ROS name only what the simulator offers; what can be parsed here is
parsed.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from tools.ros_reference import offered

from botyard.formats.models import find_robot

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
FILES = sorted(
    p
    for folder in ("ros1", "ros2", "rosbridge", "nav2")
    for p in (EXAMPLES / folder).iterdir()
    if p.is_file()
)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_names_are_offered(path: Path) -> None:
    """Topics and services of ann and of the world; frames of tf."""
    names = {name for _, name, _, _ in asyncio.run(offered("default"))} | {
        "/map",
        "/botyard",
    }
    text = path.read_text("utf-8")
    for name in re.findall(r"(?<![\w~.])/(?:ann|botyard)(?:/\w+)*", text):
        assert name in names, f"{path.name}: {name} is not offered"
    frames = {"ann/odom", "ann/base_link", "ann/base_laser"}
    for frame in re.findall(r"(?<![\w/])ann/\w+", text):
        assert frame in frames, f"{path.name}: there is no frame {frame}"


def test_parameters_of_nav2_name_topics_and_frames_that_there_are() -> None:
    """Relative topics of the robot, plain frames; the footprint holds the robot."""
    offers = asyncio.run(offered("nav2"))
    names = {
        name.removeprefix("/")
        for kind, name, _, _ in offers
        if kind in ("topic", "input")
    }
    between = {"cmd_vel_smoothed", "local_costmap/published_footprint"}  # Nav2's own
    frames = {"map", "odom", "base_footprint", "base_link", "base_scan"}
    count = 0

    def look(value: object, key: str = "") -> None:
        nonlocal count
        if isinstance(value, dict):
            for name, inner in value.items():
                look(inner, str(name))
        elif key == "topic" or key.endswith("_topic"):
            count += 1
            assert value in names | between, (key, value)
        elif key.endswith(("_frame", "_frame_id")):
            count += 1
            assert value in frames, (key, value)
        elif key == "footprint":
            count += 1
            corners = yaml.safe_load(str(value))
            xs, ys = zip(*find_robot("p3dx").outline, strict=True)
            assert min(x for x, _ in corners) <= min(xs) and max(
                x for x, _ in corners
            ) >= max(xs)
            assert min(y for _, y in corners) <= min(ys) and max(
                y for _, y in corners
            ) >= max(ys)

    look(yaml.safe_load((EXAMPLES / "nav2/nav2_params.yaml").read_text("utf-8")))
    assert count > 20


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_files_can_be_parsed(path: Path) -> None:
    """YAML, XML, Python and shell."""
    text = path.read_text("utf-8")
    match path.suffix:
        case ".yaml" | ".rviz":
            assert yaml.safe_load(text)
        case ".launch":
            assert ET.fromstring(text).tag == "launch"
        case ".py":
            compile(text, path.name, "exec")
        case ".sh":
            subprocess.run(["bash", "-n", str(path)], check=True)
        case ".html":
            assert text.startswith("<!doctype html>")  # tests/page runs it
        case other:
            pytest.fail(f"what is a {other}?")
