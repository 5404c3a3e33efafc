#!/usr/bin/env python3
"""Drive a robot by keys over rosbridge: i and , ahead and back, j and l turn, k stops, q
ends. It needs no ROS (pip install roslibpy).

botyard run -m office -r p3dx:ann --rosbridge
python examples/rosbridge/teleop.py [ROBOT [ws://localhost:9090]]

Keys from a pipe last a tenth of a second each: echo iiiiijjj | python teleop.py
"""

import os
import select
import sys
import termios
import time
import tty

import roslibpy

# Key → forward velocity, m/s, and turn rate, rad/s.
KEYS = {"i": (0.4, 0.0), ",": (-0.4, 0.0), "j": (0.0, 0.8), "l": (0.0, -0.8)}


def key() -> str:
    """Return the pressed key, "" for none, "q" at the end of the input."""
    if not select.select([0], [], [], 0)[0]:
        return ""
    return os.read(0, 1).decode("ascii", "replace") or "q"


def show(odom: dict) -> None:
    """Show where the robot is."""
    at = odom["pose"]["pose"]["position"]
    print(f"\rx {at['x']:6.2f} m, y {at['y']:6.2f} m ", end="", flush=True)


def drive(ros: roslibpy.Ros, robot: str) -> None:
    """Send the velocity of the last key, ten times a second: the robot stops 0.6 s after
    the last command.
    """
    velocity = roslibpy.Topic(ros, f"/{robot}/cmd_vel", "geometry_msgs/Twist")
    roslibpy.Topic(ros, f"/{robot}/odom", "nav_msgs/Odometry").subscribe(show)
    v, w, pressed = 0.0, 0.0, ""
    while pressed != "q":
        pressed = key()
        if pressed:
            v, w = KEYS.get(pressed, (0.0, 0.0))
        command = {"linear": {"x": v}, "angular": {"z": w}}
        velocity.publish(roslibpy.Message(command))
        time.sleep(0.1)


robot, url = (*sys.argv[1:], *("ann", "ws://localhost:9090")[len(sys.argv) - 1 :])[:2]
ros = roslibpy.Ros(url)
ros.run(10)
is_terminal = sys.stdin.isatty()
if is_terminal:
    before = termios.tcgetattr(0)
    tty.setcbreak(0)
try:
    drive(ros, robot)
except KeyboardInterrupt:
    pass
finally:
    print()
    if is_terminal:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
    ros.terminate()
