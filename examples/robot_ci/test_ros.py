"""Tests of programs for ROS 1 and ROS 2 as a CI runs them: each has a master, or a
domain on this machine, of its own.

Nothing of ROS is needed for the simulator; the nodes under test bring what they need.
"""

import sys
from pathlib import Path

import pytest

from botyard.testing import RobotWorld, near, stands

HERE = Path(__file__).parent
# Debian's Python has rospy; the Python of an environment has not.
PYTHON_OF_ROS1 = "/usr/bin/python3"


def reads_its_laser(world: RobotWorld) -> bool:
    """Return whether the program has subscribed to the scans of bob: from then on it answers."""
    return world.sim.robots["bob"].laser.is_read


@pytest.mark.botyard("lab.yaml", ros1=True, speed=4)
def test_a_node_of_ros1_reaches_the_dock(world: RobotWorld) -> None:
    """ROS_MASTER_URI and ROS_IP are in the environment of what is started."""
    world.start(
        [PYTHON_OF_ROS1, HERE / "ros1_driver.py", "_robot:=bob"],
        ready=lambda: reads_its_laser(world),
    )
    world.run_until(near("bob", "Dock", 0.4), no_contact=True, deadline=60)
    world.run_until(stands("bob", 1.0), no_contact=True, deadline=20)


@pytest.mark.botyard("lab.yaml", ros2=True, speed=4)
def test_a_peer_of_ros2_reaches_the_dock(world: RobotWorld) -> None:
    """ROS_DOMAIN_ID and ROS_AUTOMATIC_DISCOVERY_RANGE are in the environment: a node of
    ROS 2 needs no more.

    This peer has Cyclone DDS without ROS 2, which has its own variable.
    """
    interface = '<General><Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces></General>'
    uri = f'<Domain Id="{world.env["ROS_DOMAIN_ID"]}">{interface}</Domain>'
    program = [sys.executable, HERE / "ros2_driver.py", "bob"]
    world.start(
        program, ready=lambda: reads_its_laser(world), env={"CYCLONEDDS_URI": uri}
    )
    world.run_until(near("bob", "Dock", 0.4), no_contact=True, deadline=60)
    world.run_until(stands("bob", 1.0), no_contact=True, deadline=20)
