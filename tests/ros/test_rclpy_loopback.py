"""The names of nav2_loopback_sim (``--ros-names loopback``) for Nav2's bring-up on rclpy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ros.ros1 import output, says
from tests.ros.ros2 import Ros2World

pytestmark = pytest.mark.xdist_group("rclpy")
ROBOT = Path(__file__).parent.parent.parent / "ros/botyard_ros/robots/turtlebot4.toml"


@pytest.mark.parametrize(("distro", "stamped"), [("jazzy", False), ("kilted", True)])
def test_the_map_comes_from_the_server_and_initialpose_places_the_robot(
    wheels: Ros2World, distro: str, stamped: bool
) -> None:
    """Node, parameters, topics, frames and the service of the map have Nav2's names."""
    peer = wheels.rclpy_later(distro, "loopback.bringup", stamped)
    says(peer, "SERVING")
    names = ("--ros2", "--ros-names", "loopback")
    sim = wheels.botyard(
        "-m",
        "ros:/map_server/map",
        "-r",
        f"{ROBOT}:tb4",
        *names,
        "--update-interval",
        "20",
    )
    seen = wheels.ended(peer)
    found = seen["parameters"]
    assert found["base_frame_id"] == "base_footprint"
    assert (found["map_frame_id"], found["odom_frame_id"]) == ("map", "odom")
    assert found["scan_frame_id"] == "base_scan" and found["publish_map_odom_tf"]
    assert found["update_duration"] == pytest.approx(0.02)
    assert found["scan_publish_dur"] == pytest.approx(0.1)
    assert found["scan_range_max"] == 12.0 and found["use_sim_time"]
    assert seen["gone"] > 0.8
    assert "internal error" not in output(sim)
