"""Real ROS peers. Without them tests are skipped; in CI they must be there (``make peers`` installs them)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ros.ros1 import Ros1World

DEBIAN_PYTHON = "/usr/bin/python3"


def _has_ros1() -> bool:
    if not (Path("/usr/bin/rosmaster").exists() and Path("/usr/bin/rostopic").exists()):
        return False
    code = "import rospy, tf2_ros, nav_msgs.msg, sensor_msgs.msg, dynamic_reconfigure.client"
    return subprocess.run([DEBIAN_PYTHON, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session")
def debian_ros() -> None:
    """Debian's ROS 1 programs."""
    if not _has_ros1():
        if os.environ.get("CI"):
            pytest.fail("Debian's ROS 1 packages are missing, and in CI they must be there (make peers)")
        pytest.skip("needs Debian's ROS 1 packages (make peers)")


@pytest.fixture
def world(debian_ros: None, tmp_path: Path) -> Iterator[Ros1World]:
    """A place for ROS 1 programs, with a free port for a master; everything is stopped at the end."""
    one = Ros1World(tmp_path)
    try:
        yield one
    finally:
        one.close()
