#!/usr/bin/env python3
"""Drive a robot by keys over ROS 2: i and , ahead and back, j and l turn, k stops, q ends.

    botyard run -m office -r p3dx:ann --ros2
    source /opt/ros/jazzy/setup.bash && python3 examples/ros2/teleop.py [ROBOT]

Keys from a pipe last a tenth of a second each: echo iiiiijjj | python3 teleop.py
"""

import os
import select
import sys
import termios
import tty

import rclpy
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

# Key → forward velocity, m/s, and turn rate, rad/s.
KEYS = {"i": (0.4, 0.0), ",": (-0.4, 0.0), "j": (0.0, 0.8), "l": (0.0, -0.8)}


def key() -> str:
    """Return the pressed key, "" for none, "q" at the end of the input."""
    if not select.select([0], [], [], 0)[0]:
        return ""
    return os.read(0, 1).decode("ascii", "replace") or "q"


class Teleop(Node):
    """Sends the velocity of the last key, ten times a second: the robot stops 0.6 s
    after the last command.
    """

    def __init__(self, robot: str) -> None:
        super().__init__("teleop")
        self.command = Twist()
        self.velocity = self.create_publisher(Twist, f"/{robot}/cmd_vel", 1)
        self.create_subscription(Odometry, f"/{robot}/odom", self.show, 10)
        self.create_timer(0.1, self.drive)

    def show(self, odom: Odometry) -> None:
        """Show where the robot is."""
        x, y = odom.pose.pose.position.x, odom.pose.pose.position.y
        print(f"\rx {x:6.2f} m, y {y:6.2f} m ", end="", flush=True)

    def drive(self) -> None:
        """Read a key, and send a velocity."""
        # Before the simulator is found, keys would have no effect.
        if self.velocity.get_subscription_count() == 0:
            return
        pressed = key()
        if pressed:
            self.command.linear.x, self.command.angular.z = KEYS.get(
                pressed, (0.0, 0.0)
            )
        self.velocity.publish(self.command)
        if pressed == "q":
            raise SystemExit


is_terminal = sys.stdin.isatty()
if is_terminal:
    before = termios.tcgetattr(0)
    tty.setcbreak(0)
rclpy.init()
try:
    rclpy.spin(Teleop(sys.argv[1] if len(sys.argv) > 1 else "ann"))
except (KeyboardInterrupt, ExternalShutdownException, SystemExit):
    pass
finally:
    print()
    if is_terminal:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
