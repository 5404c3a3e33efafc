"""Real ROS peers.

Without them tests are skipped; in CI they must be present (``make peers`` installs
them).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.networks import missing_namespaces
from tests.ros.ros1 import Ros1World
from tests.ros.ros2 import DISTRIBUTIONS, WHEELS, ZENOH_PYTHON, Ros2World

DEBIAN_PYTHON = "/usr/bin/python3"


def _has_ros1() -> bool:
    if not (Path("/usr/bin/rosmaster").exists() and Path("/usr/bin/rostopic").exists()):
        return False
    code = "import rospy, tf2_ros, nav_msgs.msg, sensor_msgs.msg, dynamic_reconfigure.client"
    return (
        subprocess.run(
            [DEBIAN_PYTHON, "-c", code], capture_output=True, check=False
        ).returncode
        == 0
    )


@pytest.fixture(scope="session")
def debian_ros() -> None:
    """Require Debian's ROS 1 programs."""
    if not _has_ros1():
        if os.environ.get("CI"):
            pytest.fail(
                "Debian's ROS 1 packages are missing, and in CI they must be there (make peers)"
            )

        pytest.skip("needs Debian's ROS 1 packages (make peers)")


@pytest.fixture
def world(debian_ros: None, tmp_path: Path) -> Iterator[Ros1World]:
    """A folder for ROS 1 programs with a free port for a master; everything is stopped
    at the end.
    """
    one = Ros1World(tmp_path)
    try:
        yield one
    finally:
        one.close()


def _missing_for_ros2() -> str | None:
    if shutil.which("g++") is None or not Path("/usr/include/fastdds").is_dir():
        return "g++ and Debian's libfastrtps-dev"
    if not (Path(__file__).parent / "npm/node_modules/@foxglove/ros2").is_dir():
        return "@foxglove/ros2"
    if not ZENOH_PYTHON.exists():
        return "zenoh-ros2-sdk"
    return missing_namespaces()


def _missing_for_rclpy() -> str | None:
    # These files are written when the installation is complete.
    made = all((WHEELS / d / ".interfaces").exists() for d in DISTRIBUTIONS)
    return missing_namespaces() if made else "ROS 2's wheels"


@pytest.fixture(scope="session")
def loss_shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library that loses packets (lossy.c), compiled."""
    if shutil.which("gcc") is None:
        _need("gcc")
    made = tmp_path_factory.mktemp("loss") / "lossy.so"
    source = str(Path(__file__).parent / "lossy.c")
    command = ["gcc", "-O1", "-shared", "-fPIC", "-o", str(made), source, "-ldl"]
    subprocess.run(command, check=True, timeout=100)
    return made


def _need(missing: str | None) -> None:
    if missing is not None:
        if os.environ.get("CI"):
            pytest.fail(
                f"tests of ROS 2 need {missing}, and in CI they must run (make peers)"
            )

        pytest.skip(f"needs {missing} (make peers)")


def need_zenoh() -> None:
    """Require the packages of Zenoh's peers."""
    _need(None if ZENOH_PYTHON.exists() else "zenoh-ros2-sdk")


@pytest.fixture(scope="session")
def fastdds_peer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled Fast DDS peer."""
    _need(_missing_for_ros2())
    return _compiled("fastdds_peer.cpp", tmp_path_factory)


@pytest.fixture(scope="session")
def fastdds_client(
    fastdds_peer: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A client and server of a service on Fast DDS, compiled."""
    return _compiled("fastdds_client.cpp", tmp_path_factory)


def _compiled(source: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("fastdds") / "program"
    path = str(Path(__file__).parent / source)
    subprocess.run(
        [
            "g++",
            "-O1",
            "-std=c++17",
            path,
            "-lfastrtps",
            "-lfastcdr",
            "-o",
            str(program),
        ],
        check=True,
        timeout=300,
    )
    return program


@pytest.fixture
def world2(fastdds_peer: Path, tmp_path: Path) -> Iterator[Ros2World]:
    """A network for ROS 2 programs; everything in it is stopped at the end."""
    one = Ros2World(tmp_path, fastdds_peer)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture
def wheels(tmp_path: Path) -> Iterator[Ros2World]:
    """A network for programs with rclpy; everything in it is stopped at the end."""
    _need(_missing_for_rclpy())
    one = Ros2World(tmp_path, Path())
    try:
        yield one
    finally:
        one.close()


@pytest.fixture
def networks(tmp_path: Path) -> Iterator[dict[str, Ros2World]]:
    """A network for each distribution of rclpy; everything in them is stopped at the
    end.
    """
    _need(_missing_for_rclpy())
    with contextlib.ExitStack() as stack:
        made = {}
        for distro in DISTRIBUTIONS:
            folder = tmp_path / distro
            folder.mkdir()
            made[distro] = Ros2World(folder, Path())
            stack.callback(made[distro].close)
        yield made


@pytest.fixture
def other_host(wheels: Ros2World, tmp_path: Path) -> Iterator[Ros2World]:
    """A second host, on the same network."""
    folder = tmp_path / "other"
    folder.mkdir()
    host = Ros2World(folder, Path())
    try:
        wheels.join(host, "10.77.0.1", "10.77.0.2")
        yield host
    finally:
        host.close()
