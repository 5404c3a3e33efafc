#!/usr/bin/python3
"""A rospy program: drives ann forward and turns where the laser sees something near.

botyard run -m office -r p3dx:ann --ros-master embedded
ROS_MASTER_URI=http://localhost:11311 python3 examples/ros1/avoid.py [SECONDS]
"""

import contextlib
import sys

import rospy
from geometry_msgs.msg import Twist
from sensor_msgs.msg import LaserScan

# Distance at which the robot turns, m.
NEAR = 0.8


def drive(scan: LaserScan) -> None:
    """Answer a scan by a velocity."""
    n = len(scan.ranges)
    right, left = min(scan.ranges[n // 6 : n // 2]), min(scan.ranges[n // 2 : -n // 6])
    command = Twist()
    if min(left, right) < NEAR:
        command.angular.z = 0.6 if left > right else -0.6
    else:
        command.linear.x = 0.4

    # The topic is closed already if the node ends now.
    with contextlib.suppress(rospy.ROSException):
        velocity.publish(command)


rospy.init_node("avoid")
velocity = rospy.Publisher("/ann/cmd_vel", Twist, queue_size=1)
rospy.Subscriber("/ann/base_scan", LaserScan, drive, queue_size=1)
if len(sys.argv) > 1:
    rospy.sleep(float(sys.argv[1]))
else:
    rospy.spin()
