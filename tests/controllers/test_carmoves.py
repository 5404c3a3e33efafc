"""dwa and vfh of cars: feasible arcs, backing away, states; orca refuses them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import botyard
from botyard.errors import WorldError
from botyard.geometry import Pose
from botyard.model.library import parse_robot
from botyard.navigation import local
from botyard.sim.simulation import Robot, Simulation


def rectangle(x0: float, y0: float, x1: float, y1: float) -> list[list[float]]:
    return [[x0, y0, x1, y0], [x1, y0, x1, y1], [x1, y1, x0, y1], [x0, y1, x0, y0]]


def room(start: Pose, *walls: list[list[float]]) -> tuple[Simulation, Robot]:
    laser = (
        '{ type = "ust10lx", pose = [0.27, 0, 0], samples = 91, range = [0.06, 10] }'
    )
    spec = parse_robot(
        f'extends = "car"\nlasers = [{laser}]\n[odometry]\nerror = [0, 0, 0]', "car"
    )
    segments = [*rectangle(0, 0, 8, 8), *(w for one in walls for w in one)]
    sim = Simulation(
        botyard.Scene(segments=np.array(segments, float)),
        odometry_error="none",
        sensor_noise=False,
        step=0.05,
    )
    return sim, sim.add_robot(spec, name="c", pose=start)


def drive(sim: Simulation, robot: Robot, goal: tuple[float, float]) -> list[float]:
    """Run until the robot is at its goal, and return the forward velocities."""
    speeds = []
    for _ in range(int(60.0 / sim.dt)):
        sim.step()
        speeds.append(robot.velocity.vx)
        # A commanded turn rate is an arc that the wheels can drive.
        v, w = sim.core.engine.state.target[0, [0, 2]].tolist()
        assert abs(w) * robot.spec.kinematics.turning_radius <= abs(v) + 1e-9
        if math.hypot(robot.truth.x - goal[0], robot.truth.y - goal[1]) < 0.3:
            break
    return speeds


@pytest.mark.parametrize("method", ["dwa", "vfh"])
def test_a_car_drives_around_an_obstacle(method: str) -> None:
    sim, robot = room(Pose(1.0, 4.2, 0.0), rectangle(3.8, 3.8, 4.2, 4.2))
    robot.set_controller(method, points=[(7.0, 4.0)], order="once", speed=0.8)
    drive(sim, robot, (7.0, 4.0))
    assert robot.truth.x > 6.6


@pytest.mark.parametrize("method", ["dwa", "vfh"])
def test_a_car_backs_away_from_a_goal_within_its_turning_circle(method: str) -> None:
    sim, robot = room(Pose(4.0, 4.0, 0.0))
    robot.set_controller(method, points=[(4.1, 4.6)], order="once", speed=0.8)
    speeds = drive(sim, robot, (4.1, 4.6))
    assert min(speeds) < -0.1
    assert math.hypot(robot.truth.x - 4.1, robot.truth.y - 4.6) < 0.3


def test_a_car_before_a_wall_backs_away() -> None:
    sim, robot = room(Pose(7.3, 4.0, 0.0))
    robot.set_controller("dwa", points=[(4.0, 6.0)], order="once", speed=0.8)
    speeds = drive(sim, robot, (4.0, 6.0))
    assert min(speeds) < -0.1
    assert robot.truth.y > 5.6


def test_saved_states_continue() -> None:
    sim, robot = room(Pose(7.3, 4.0, 0.0))
    robot.set_controller("dwa", points=[(4.0, 6.0)], order="once", speed=0.8)
    sim.run(1.0)
    twin = sim.clone()
    sim.run(2.0)
    twin.run(2.0)
    assert twin.digest() == sim.digest()


@pytest.mark.parametrize("method", ["orca", "socialforce"])
def test_methods_of_the_spot_refuse_cars(method: str) -> None:
    _, robot = room(Pose(4.0, 4.0, 0.0))
    with pytest.raises(WorldError, match=f"go_to.* drive cars, and {method} does not"):
        robot.set_controller(method, points=[(1.0, 1.0)])


def test_a_window_of_arcs() -> None:
    nothing = np.full((1, 1, 2), np.nan)
    for left in (0.5, -0.5):
        v, w = local.dynamic_window(
            nothing,
            np.array([[0.1, left]]),
            np.array([[0.4, 0.0]]),
            dt=0.25,
            radius=0.3,
            max_v=1.0,
            max_w=3.0,
            turning_radius=0.8,
        )[0].tolist()
        assert v > 0.0
        assert w * left > 0.0
        assert abs(w) <= v / 0.8 + 1e-9
    # At a stand before a wall a car waits; another robot turns away.
    wall = np.array([[[0.3005, y] for y in np.linspace(-0.5, 0.5, 21)]])
    for radius, turns in ((0.8, False), (0.0, True)):
        v, w = local.dynamic_window(
            wall,
            np.array([[2.0, 0.0]]),
            np.zeros((1, 2)),
            dt=0.25,
            radius=0.3,
            max_v=1.0,
            max_w=3.0,
            turning_radius=radius,
        )[0].tolist()
        assert v == 0.0
        assert (w != 0.0) == turns
