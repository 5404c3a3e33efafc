"""Joints of four wheels and of steered wheels in AMBF."""

from __future__ import annotations

import asyncio

import pytest

import botyard
from botyard.app.compose import compose
from botyard.devices.joints import JointCommand
from botyard.interfaces.ambf.ambf import Ambf
from botyard.model.library import parse_robot
from botyard.protocols.ambf.messages import definitions
from botyard.protocols.ros_messages.types import Types

MECANUM = (
    'extends = "p3dx-nolaser"\ndrive = "mecanum"\ntrack = 0.4\nwheel_radius = 0.1\n'
    "[limits]\nmax_speed = [1, 1, 230]\naccel = [0, 0, 0]\ndecel = [0, 0, 0]\n"
    "[wheels]\nwheelbase = 0.3\n"
)


def test_joints_drive_and_steer() -> None:
    types = Types(more=definitions("2.0"))

    async def run() -> None:
        sim = botyard.Simulation(odometry_error="none")
        mover = sim.add_robot(parse_robot(MECANUM, "m"), name="m", pose=(0, 0, 0))
        car = sim.add_robot("car", name="c", pose=(5, 0, 0))
        parts = compose(sim)
        ambf = Ambf(parts.hub, parts.control, parts.lockstep, types, "2.0")
        ambf._sync()
        wheels = {j.name: j for j in ambf._objects["body", "m"].joints}  # type: ignore[attr-defined]
        assert list(wheels) == [
            "front_left_wheel",
            "front_right_wheel",
            "rear_left_wheel",
            "rear_right_wheel",
        ]
        # Rates of a motion to the left.
        for joint, rate in zip(wheels.values(), (-2.0, 2.0, 2.0, -2.0), strict=True):
            joint.command(JointCommand.VELOCITY, rate)
        steered = {j.name: j for j in ambf._objects["body", "c"].joints}  # type: ignore[attr-defined]
        steered["front_left_steering"].command(JointCommand.POSITION, 0.2)
        for name in ("left_wheel", "right_wheel"):
            steered[name].command(JointCommand.VELOCITY, 6.0)
        for _ in range(20):
            ambf._before_step()
            sim.step()
        assert mover.velocity.vy == pytest.approx(0.2)
        assert mover.velocity.vx == pytest.approx(0.0)
        assert wheels["rear_left_wheel"].read()[1] == pytest.approx(2.0)
        # The angle of the left wheel is the commanded one; the right one is smaller.
        assert steered["front_left_steering"].read()[0] == pytest.approx(0.2)
        assert 0.0 < steered["front_right_steering"].read()[0] < 0.2
        assert car.velocity.vx == pytest.approx(0.3)
        assert car.velocity.w > 0.0

    asyncio.run(run())
