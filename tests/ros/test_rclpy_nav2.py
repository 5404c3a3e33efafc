"""Nav2's actions (``--nav2-actions``) for clients on rclpy: two robots at once."""

from __future__ import annotations

import pytest

from tests.ros.ros1 import output
from tests.ros.ros2 import Ros2World, together

pytestmark = pytest.mark.xdist_group("rclpy")


ROOMS = """
botyard: 1
walls:
  - [[0, 0], [10, 0], [10, 6], [0, 6], [0, 0]]
  - [[5, 0], [5, 4]]
  - [[8, 0], [8, 2], [10, 2]]
robots:
  - {model: p3dx, name: ann, pose: [1.5, 1.5, 90]}
  - {model: p3dx, name: bob, pose: [3.5, 1.5, 90]}
odometry_error: none
speed: 5
"""
"""Two rooms with a door at (5, 5), and a closet without a door."""


def test_two_robots_have_nav2s_actions(networks: dict[str, Ros2World]) -> None:
    """Goals are accepted, report, end, are canceled and preempted; paths are computed
    and followed; failures have Nav2's codes. Goals end with their world and robot, and
    not by refused goals.
    """
    together(networks, check)


def check(world: Ros2World, distro: str) -> None:
    """Check the actions with a distribution."""
    rooms = world.folder / "world.yaml"
    rooms.write_text(ROOMS)
    sim = world.botyard("-W", str(rooms), "--ros2", "--nav2-actions")
    places = [5.0, 2.0], [60.0, 3.0], [9.0, 1.0]
    names, starts = ["ann", "bob"], [[1.5, 1.5], [3.5, 1.5]]
    there = [6.5, 3.5]
    seen = world.rclpy(distro, "nav2.all_actions", names, starts, places, there)
    through = ["navigate_through_poses"] if distro == "jazzy" else []
    three = ["navigate_to_pose", "compute_path_to_pose", "follow_path"]
    assert seen["fleet"]["actions"] == three + through
    assert seen["codes"] == {
        # GOAL_OCCUPIED, GOAL_OUTSIDE_MAP, NO_VALID_PATH; NO_VALID_CONTROL, INVALID_PATH
        "wall": [206, 206, 106],
        "outside": [204, 204, 103],
        "closet": [208, 208, 106],
        # TF_ERROR of each action; INVALID_PATH
        "frame": [9002, 202, 102],
        "empty": [103],
    }
    done = seen["path"]
    assert done["lengths"][0] == pytest.approx(done["lengths"][1], rel=0.02)
    assert done["poses"] > 500 and done["apart"] < 0.15, done
    assert done["passed"] == (2 if through else 0)
    assert seen["ends"] == [
        *(["the world was reset"] * 2),
        *(["the world was replaced"] * 2),
        "the robot is gone",
    ]
    assert "internal error" not in output(sim)
