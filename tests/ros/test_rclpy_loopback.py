"""The names of nav2_loopback_sim (``--ros-names loopback``) for Nav2's bring-up on rclpy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ros.ros1 import output, says
from tests.ros.ros2 import Ros2World, together

pytestmark = pytest.mark.xdist_group("rclpy")
ROBOT = Path(__file__).parent.parent.parent / "ros/botyard_ros/robots/turtlebot4.toml"


def test_the_map_comes_from_the_server_and_initialpose_places_the_robot(
    networks: dict[str, Ros2World],
) -> None:
    """Node, parameters, topics, frames and the service of the map have Nav2's names."""
    together(networks, check)


def check(world: Ros2World, distro: str) -> None:
    """Check the names with a distribution; Kilted's Nav2 sends stamped velocities."""
    peer = world.rclpy_later(distro, "loopback.bringup", distro == "kilted")
    says(peer, "SERVING")
    robot = f"{ROBOT}:tb4"
    names = ("--ros2", "--ros-names", "loopback", "--update-interval", "20")
    sim = world.botyard("-m", "ros:/map_server/map", "-r", robot, *names)
    seen = world.ended(peer)
    found = seen["parameters"]
    assert found["base_frame_id"] == "base_footprint"
    assert (found["map_frame_id"], found["odom_frame_id"]) == ("map", "odom")
    assert found["scan_frame_id"] == "base_scan" and found["publish_map_odom_tf"]
    assert found["update_duration"] == pytest.approx(0.02)
    assert found["scan_publish_dur"] == pytest.approx(0.1)
    assert found["scan_range_max"] == 12.0 and found["use_sim_time"]
    assert seen["gone"] > 0.8
    assert "internal error" not in output(sim)
