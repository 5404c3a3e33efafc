"""The ROS examples use only names that the simulator offers; parsable files parse."""

from __future__ import annotations

import asyncio
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from tools.ros_reference import offered

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
FILES = sorted(
    p
    for folder in ("ros1", "ros2", "rosbridge")
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
            # A test in tests/page runs this page.
            assert text.startswith("<!doctype html>")
        case other:
            pytest.fail(f"what is a {other}?")
