#!/usr/bin/python3
"""Drive a robot by keys over ROS 1: i and , ahead and back, j and l turn, k stops, q ends.

botyard run -m office -r p3dx:ann --ros-master embedded
ROS_MASTER_URI=http://localhost:11311 python3 examples/ros1/teleop.py [ROBOT]

Keys from a pipe last a tenth of a second each: echo iiiiijjj | python3 teleop.py
"""

import os
import select
import sys
import termios
import tty

import rospy
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry

# Key → forward velocity, m/s, and turn rate, rad/s.
KEYS = {"i": (0.4, 0.0), ",": (-0.4, 0.0), "j": (0.0, 0.8), "l": (0.0, -0.8)}


def key() -> str:
    """Return the pressed key, "" for none, "q" at the end of the input."""
    if not select.select([0], [], [], 0)[0]:
        return ""
    return os.read(0, 1).decode("ascii", "replace") or "q"


def show(odom: Odometry) -> None:
    """Show where the robot is."""
    x, y = odom.pose.pose.position.x, odom.pose.pose.position.y
    print(f"\rx {x:6.2f} m, y {y:6.2f} m ", end="", flush=True)


def drive(robot: str) -> None:
    """Send the velocity of the last key, ten times a second: the robot stops 0.6 s after
    the last command.
    """
    rospy.init_node("teleop")
    velocity = rospy.Publisher(f"/{robot}/cmd_vel", Twist, queue_size=1)
    rospy.Subscriber(f"/{robot}/odom", Odometry, show)
    while velocity.get_num_connections() == 0 and not rospy.is_shutdown():
        rospy.sleep(0.1)
    command, pressed = Twist(), ""
    while pressed != "q" and not rospy.is_shutdown():
        pressed = key()
        if pressed:
            command.linear.x, command.angular.z = KEYS.get(pressed, (0.0, 0.0))
        velocity.publish(command)
        rospy.sleep(0.1)


is_terminal = sys.stdin.isatty()
if is_terminal:
    before = termios.tcgetattr(0)
    tty.setcbreak(0)
try:
    drive(sys.argv[1] if len(sys.argv) > 1 else "ann")
except rospy.ROSInterruptException:
    pass
finally:
    print()
    if is_terminal:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
