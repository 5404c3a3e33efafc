"""Nav2's actions (``--nav2-actions``) for clients on rclpy: two robots at once."""

from __future__ import annotations

import pytest

from tests.ros.ros1 import output
from tests.ros.ros2 import Ros2World

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


@pytest.mark.parametrize("distro", ["jazzy", "kilted"])
def test_two_robots_have_nav2s_actions(wheels: Ros2World, distro: str) -> None:
    """Goals are accepted, report, end, are canceled and preempted; paths are computed
    and followed; failures have Nav2's codes.
    """
    world = wheels.folder / "world.yaml"
    world.write_text(ROOMS)
    sim = wheels.botyard("-W", str(world), "--ros2", "--nav2-actions")
    seen = wheels.rclpy(distro, "nav2.fleet", ["ann", "bob"])
    through = ["navigate_through_poses"] if distro == "jazzy" else []
    three = ["navigate_to_pose", "compute_path_to_pose", "follow_path"]
    assert seen["actions"] == three + through

    places = [5.0, 2.0], [60.0, 3.0], [9.0, 1.0]
    codes = wheels.rclpy(distro, "nav2.unreachable", "ann", *places)
    assert codes == {
        # GOAL_OCCUPIED, GOAL_OUTSIDE_MAP, NO_VALID_PATH; NO_VALID_CONTROL, INVALID_PATH
        "wall": [206, 206, 106],
        "outside": [204, 204, 103],
        "closet": [208, 208, 106],
        # TF_ERROR of each action; INVALID_PATH
        "frame": [9002, 202, 102],
        "empty": [103],
    }
    done = wheels.rclpy(distro, "nav2.path", "bob", [6.5, 3.5], 0.01)
    assert done["lengths"][0] == pytest.approx(done["lengths"][1], rel=0.02)
    assert done["poses"] > 500 and done["apart"] < 0.15, done
    assert done["passed"] == (2 if through else 0)
    assert "internal error" not in output(sim)
