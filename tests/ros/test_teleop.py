"""The teleop examples with real peers: rospy, rclpy and roslibpy; keys come from a pipe.

They drive ann ahead and then turn it to the left; they show its odometry and end with
the input. The avoid example of rclpy drives by itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import botyard
from tests.ros.ros1 import Ros1World, output
from tests.ros.ros2 import WHEELS, Ros2World
from tests.waiting import PATIENCE, wait

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KEYS = 20 * "i" + 10 * "j"
"""2 s at 0.4 m/s, 1 s at 0.8 rad/s."""
ANN = ("-m", "office", "-r", "p3dx:ann", "--start", "10000,14000,0")


def check(said: str) -> None:
    """Check that odometry shows the way of the keys: it starts at 0, and ends ahead."""
    shown = re.findall(r"x +(-?\d+\.\d+) m, y +(-?\d+\.\d+) m", said)
    assert shown, said
    x, y = map(float, shown[-1])
    # Messages arrive at their own times, so a key may last a little longer or shorter.
    assert 0.3 < x < 1.5 and abs(y) < 0.5, said
    assert "Traceback" not in said


@pytest.mark.peer
def test_rospy(world: Ros1World) -> None:
    world.botyard(*ANN, "--ros-master", f"embedded:{world.port}")
    program = EXAMPLES / "ros1/teleop.py"
    check(world.tool("bash", "-c", f"printf {KEYS} | /usr/bin/python3 {program}"))


def rclpy(world: Ros2World, program: str, keys: str) -> subprocess.Popen[str]:
    """Start an example by the Python of a distribution."""
    python, path = WHEELS / "jazzy/bin/python", EXAMPLES / "ros2" / program
    (world.folder / "keys").write_text(keys)
    return world.spawn(
        # With exec, the end of the test ends the program.
        *("bash", "-c", f"exec {python} {path} < keys"),
        PYTHONHOME="",
        PYTHONPATH="",
        ROS_LOG_DIR=str(world.folder),
    )


@pytest.mark.xdist_group("rclpy")
def test_rclpy(wheels: Ros2World) -> None:
    wheels.botyard(*ANN, "--ros2")
    process = rclpy(wheels, "teleop.py", KEYS)
    wait(lambda: process.poll() is not None, what=lambda: output(process))
    check(output(process))


@pytest.mark.xdist_group("rclpy")
def test_rclpy_avoids(wheels: Ros2World) -> None:
    """After the example has driven, the keys' odometry starts elsewhere."""
    wheels.botyard(*ANN, "--ros2")
    rclpy(wheels, "avoid.py", "")
    reader = rclpy(wheels, "teleop.py", 300 * "k")

    def is_away() -> bool:
        shown = re.findall(r"x +(-?\d+\.\d+) m", output(reader))
        return bool(shown) and abs(float(shown[-1])) > 0.3

    wait(is_away, what=lambda: output(reader))


@pytest.mark.peer
def test_roslibpy() -> None:
    sim = botyard.Simulation.load("office", seed=1)
    ann = sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0))
    with botyard.serve(sim, port=0, page=False, discovery=False, rosbridge=0) as served:
        url = f"ws://127.0.0.1:{served.interfaces['rosbridge'].port}"
        done = subprocess.run(
            [sys.executable, EXAMPLES / "rosbridge/teleop.py", "ann", url],
            input=KEYS,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        x, y, turned = served.call(lambda: ann.truth)
    assert done.returncode == 0, done.stderr
    check(done.stdout + done.stderr)
    assert 10.3 < x < 11.5 and abs(y - 14.0) < 0.5 and turned > 0.3
