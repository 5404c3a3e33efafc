"""ROS 2 itself: transforms at the times of scans."""

from __future__ import annotations

import pytest

from tests.ros.ros1 import says
from tests.ros.ros2 import Ros2World

pytestmark = pytest.mark.xdist_group("rclpy")
SCAN = "sensor_msgs/msg/LaserScan"
PROFILES = {
    "default": ("/ann/base_scan", SCAN),
    "nav2": ("/scan", SCAN),
    "loopback": ("/scan", SCAN),
    "amrisim": ("/AMRISim_ann/sonar_pointcloud2", "sensor_msgs/msg/PointCloud2"),
    "stage": ("/base_scan", SCAN),
    "rosaria": ("/RosAria/sicklms200_1_laserscan", SCAN),
}


def test_transforms_are_there_when_a_scan_is(wheels: Ros2World) -> None:
    """Names of all profiles: map → odom → base_link → laser at the stamps of 300 scans.
    Six simulators, each in a domain of its own.
    """
    worlds, sims = [], []
    for domain, (profile, (topic, kind)) in enumerate(PROFILES.items(), start=1):
        names = ("--ros-names", profile, "--localization", "truth")
        args = ("-m", "office", "-r", "p3dx:ann", "--ros2", "-p", str(8101 + domain))
        sims.append(wheels.botyard_later(*args, *names, ROS_DOMAIN_ID=str(domain)))
        worlds.append((domain, topic, kind))
    for sim in sims:
        says(sim, "botyard ready")

    for profile, (chain, missing) in zip(
        PROFILES, wheels.rclpy("jazzy", "transforms", 300, worlds), strict=True
    ):
        parts = [frame.rpartition("/")[2] for frame in chain]
        found = [part for part in parts if part in ("base_link", "odom", "map")]
        assert found == ["base_link", "odom", "map"], (profile, chain)
        assert missing == 0, (profile, missing)
