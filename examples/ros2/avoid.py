#!/usr/bin/env python3
"""An rclpy program: drives ann forward and turns where the laser sees something near.

    botyard run -m office -r p3dx:ann --ros2
    source /opt/ros/jazzy/setup.bash && python3 examples/ros2/avoid.py

`examples/ros2/try.sh` runs it where /opt/ros exists.
"""

import contextlib

import rclpy
from geometry_msgs.msg import Twist
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import LaserScan

# Distance at which the robot turns, m.
NEAR = 0.8


class Avoid(Node):
    """Answers each scan by a velocity."""

    def __init__(self) -> None:
        super().__init__("avoid")
        self.velocity = self.create_publisher(Twist, "/ann/cmd_vel", 1)
        self.create_subscription(
            LaserScan, "/ann/base_scan", self.drive, qos_profile_sensor_data
        )

    def drive(self, scan: LaserScan) -> None:
        """Answer a scan."""
        n = len(scan.ranges)
        right, left = (
            min(scan.ranges[n // 6 : n // 2]),
            min(scan.ranges[n // 2 : -n // 6]),
        )
        command = Twist()
        if min(left, right) < NEAR:
            command.angular.z = 0.6 if left > right else -0.6
        else:
            command.linear.x = 0.4

        self.velocity.publish(command)


rclpy.init()
# Both Ctrl-C and a signal to terminate end the program; rclpy answers the signal by a shutdown.
with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(Avoid())
