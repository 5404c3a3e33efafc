"""A TurtleBot 4 as Nav2's programs locate and drive it, on rclpy (nav2_rclpy_peer.py),
with our file of parameters.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.ros.ros1 import output
from tests.ros.ros2 import WHEELS, Ros2World, together

pytestmark = pytest.mark.xdist_group("rclpy")
PEER = Path(__file__).parent / "nav2_rclpy_peer.py"
VELOCITIES = {"jazzy": "plain", "kilted": "stamped"}
"""Defaults of enable_stamped_cmd_vel."""
FILES = Path(__file__).parent.parent.parent / "ros/botyard_ros"


def test_amcl_and_actions(networks: dict[str, Ros2World]) -> None:
    """All nodes get active, the robot is located from a wrong pose, scans find their
    transforms, velocities arrive by ramps, and the goals of actions are reached.
    """
    together(networks, check_amcl)


def check_amcl(world: Ros2World, distro: str) -> None:
    """Check localization and actions with a distribution."""
    robot = f"{FILES / 'robots/turtlebot4.toml'}:tb4"
    names = ("--ros2", "--ros-names", "nav2", "--ros-map", "on")
    # Transforms at 20 Hz.
    sim = world.botyard("-m", "office", "-r", robot, *names, "--update-interval", "50")
    python = str(WHEELS / distro / "bin/python")
    parameters = str(FILES / "config/turtlebot4.yaml")
    own = {"PYTHONHOME": "", "PYTHONPATH": "", "ROS_LOG_DIR": str(world.folder)}
    seen = world.ended(
        world.spawn(python, str(PEER), parameters, VELOCITIES[distro], **own)
    )
    assert seen["active"] == [True] * 5
    # On a busy machine few scans have corrected the pose by the end of the first drive.
    first, last = seen["apart"]
    assert first < 0.2 and last < 0.12 and max(seen["reached"]) < 0.25, seen
    assert seen["poses"] >= 3 and seen["updates"] >= 3, seen
    assert seen["dropped"] == [0, 0] and seen["late"] == 0, str(seen)
    assert seen["scans"] > 20 and seen["cells"] > 20 and seen["cycles"] > 40, seen
    passed, stopped = seen["monitor"]
    assert passed > 40 and stopped < 0.2 * passed, seen
    assert seen["steepest"] <= 0.9 + 1e-9 and 0.2 < seen["fastest"] < 0.31, seen
    assert seen["remaining"][0] > 20 and seen["remaining"][1] < 0.2, seen
    assert seen["joints"] >= 2 and 0.0 < seen["battery"] <= 1.0
    assert "refused" not in output(sim) and "internal error" not in output(sim)


DOCKED = """
botyard: 1
walls:
  - [[0, 0], [7, 0], [7, 5], [0, 5], [0, 0]]
places:
  - {kind: Dock, name: charger, pose: [6.0, 3.5, 0]}
robots:
  - {model: charged, name: tb4, pose: [2.0, 1.5, 90]}
models:
  charged: {extends: turtlebot4, battery: {capacity_wh: 26.0, charge: 40.0}}
step: 0.05
"""
"""A room with a charger of the map, and a robot whose battery is simulated."""


def test_docking_and_routes(networks: dict[str, Ros2World]) -> None:
    """A route is tracked while its path is followed; the robot docks, its battery_state
    says that it charges, and it undocks. Then it backs up and spins by the actions of
    recoveries.
    """
    together(networks, check_docking)


def check_docking(world: Ros2World, distro: str) -> None:
    """Check docking, routes and recoveries with a distribution."""
    room = world.folder / "docked.yaml"
    room.write_text(DOCKED)
    names = ("--ros2", "--ros-names", "nav2", "--localization", "truth")
    sim = world.botyard("-W", str(room), *names)
    python = str(WHEELS / distro / "bin/python")
    parameters = str(FILES / "config/turtlebot4.yaml")
    own = {"PYTHONHOME": "", "PYTHONPATH": "", "ROS_LOG_DIR": str(world.folder)}
    peer = str(PEER.with_name("nav2_rclpy_docking.py"))
    seen = world.ended(
        world.spawn(python, peer, parameters, VELOCITIES[distro], "6.0 3.5 0.0", **own)
    )
    assert seen["active"] == [3] * 7, "PRIMARY_STATE_ACTIVE"
    assert seen["said"] == seen["reached"] == [1, 2, 3]
    assert seen["docked"] == [True, 0] and seen["states"][:3] == [1, 2, 3], seen
    assert seen["current"] > 0.5 and seen["apart"] < 0.4, seen
    assert seen["undocked"] and 0.5 < seen["away"] < 1.2 and seen["commands"] > 20
    # A field of Kilted's actions.
    assert seen["may_skip_checks"] is (distro == "kilted")
    (x, y, turned), (_, _, spun) = seen["recovered"]
    # The robot drives on between two turns of a loop, and while it slows down.
    assert -0.35 < x < -0.29 and abs(y) < 0.05 and abs(turned) < 0.1, seen
    assert 1.55 < math.remainder(spun, 2 * math.pi) < 2.1, seen
    assert "internal error" not in output(sim)
