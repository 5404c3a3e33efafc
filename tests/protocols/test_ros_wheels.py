"""Joints and transforms of four wheels, steered wheels and trailers in ROS and AMBF."""

from __future__ import annotations

import math

import numpy as np
import pytest

from botyard.formats.urdf import to_urdf
from botyard.model.library import parse_robot
from botyard.model.robot import RobotSpec
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import PROFILES, names_of
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import types
from botyard.sim.simulation import Robot, Simulation

TYPES = types()
FAST = "[limits]\nmax_speed = [1, 1, 230]\naccel = [0, 0, 0]\ndecel = [0, 0, 0]\n"
MECANUM = (
    'extends = "p3dx-nolaser"\ndrive = "mecanum"\ntrack = 0.4\nwheel_radius = 0.1\n'
    f"{FAST}[wheels]\nwheelbase = 0.3\n"
)
TRAILER = (
    "[[trailers]]\nhitch = 0.3\nlength = 0.5\nlimit_deg = 60\n"
    "outline = [[-0.2, -0.2], [0.2, -0.2], [0.2, 0.2], [-0.2, 0.2]]\n"
)


def topics_of(robot: Robot) -> RobotTopics:
    names = names_of(robot.name, PROFILES["default"].with_frames("prefixed"), False)
    return RobotTopics(
        robot.port("ros"), names, Messages(TYPES), TYPES, StepData(False)
    )


def robot_of(text: str) -> tuple[Simulation, Robot]:
    sim = Simulation(odometry_error="none")
    return sim, sim.add_robot(parse_robot(text, "r"), name="r", pose=(0, 0, 0))


def test_joints_and_transforms_of_mecanum_wheels() -> None:
    sim, robot = robot_of(MECANUM)
    topics = topics_of(robot)
    robot.command(vy=0.5)
    sim.run(2.0)
    message = topics._joint_states(Stamp(1, 0))
    assert list(message.name) == [
        f"{wheel}_wheel_joint"
        for wheel in ("front_left", "front_right", "rear_left", "rear_right")
    ]
    # A metre to the left with a radius of 0.1 m.
    assert list(message.position) == pytest.approx([-10.0, 10.0, 10.0, -10.0])
    assert list(message.velocity) == pytest.approx([-5.0, 5.0, 5.0, -5.0])
    topics.data.frames.forget()
    placed = {one.child: one.values for one in topics.data.frames.placed(topics.frames)}
    x, y, z, *turn = placed["r/front_right_wheel"]
    assert (x, y, z) == pytest.approx((0.15, -0.2, 0.1))
    assert turn == pytest.approx([0.0, math.sin(5.0), 0.0, math.cos(5.0)])


def test_joints_and_transforms_of_trailers() -> None:
    sim, robot = robot_of(f'extends = "p3dx-nolaser"\n{FAST}{TRAILER}{TRAILER}')
    topics = topics_of(robot)
    robot.command(v=0.5, w=0.5)
    sim.run(1.5)
    th = [sim.robots[n].truth.th for n in ("r", "r_trailer_1", "r_trailer_2")]
    message = topics._joint_states(Stamp(1, 0))
    assert list(message.name)[2:] == ["trailer_1_joint", "trailer_2_joint"]
    assert list(message.position)[2:] == pytest.approx([th[1] - th[0], th[2] - th[1]])
    # The chain of transforms leads to the axle of the last trailer.
    topics.data.frames.forget()
    placed = {one.child: one.values for one in topics.data.frames.placed(topics.frames)}
    x, y, heading = robot.truth
    for link in ("r/trailer_1", "r/trailer_2"):
        dx, _, _, _, _, sine, cosine = placed[link]
        x, y = x + dx * math.cos(heading), y + dx * math.sin(heading)
        heading += 2.0 * math.atan2(sine, cosine)
    x, y = x - 0.5 * math.cos(heading), y - 0.5 * math.sin(heading)
    end = sim.robots["r_trailer_2"].truth
    assert (x, y, heading) == pytest.approx((end.x, end.y, end.th))


@pytest.mark.parametrize(
    ("text", "joints"),
    [
        (MECANUM, ["rear_left_wheel_joint"]),
        (f'extends = "p3dx-nolaser"\n{TRAILER}', ["trailer_1_joint"]),
        ('extends = "car"', ["front_left_steering_joint"]),
    ],
)
def test_descriptions_have_the_joints(text: str, joints: list[str]) -> None:
    spec: RobotSpec = parse_robot(text, "r")
    written = to_urdf(spec, "r")
    for joint in joints:
        assert f'<joint name="{joint}"' in written
    assert np.isfinite(spec.radius)
