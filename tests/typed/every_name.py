"""Use every public name of `botyard` and `botyard.learning` under strict type checking;
see `tests/test_types.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import botyard
from botyard import learning


def models_and_maps() -> None:
    """Use descriptions and their readers."""
    pose = botyard.Pose(1.0, 2.0, 0.5)
    assert_type(pose.x, float)
    sim = botyard.Simulation()
    for place in (pose, (1.0, 2.0, 0.5), [1.0, 2.0, 0.5], np.zeros(3)):
        sim.add_robot("p3dx", pose=place)
    sim.add_robots("p3dx", [[1.0, 2.0, 0.5]])
    crate = botyard.BoxObject(
        name="crate",
        pose=pose,
        length=0.6,
        width=0.4,
        dynamics=botyard.DynamicsSpec(mass=8.0),
    )
    sim.add_box(crate)
    scene = botyard.MapBuilder("room").rectangle(-4.0, -3.0, 8.0, 6.0).scene()
    assert_type(scene, botyard.Scene)
    assert_type(scene.to_array(0.1), botyard.Raster)
    assert_type(
        botyard.load_scene("office", budget=botyard.Budget(vertices=1000)),
        botyard.Scene,
    )
    robot = botyard.load_robot("p3dx")
    assert_type(robot, botyard.RobotSpec)
    assert_type(botyard.load_laser("lms200"), botyard.LaserSpec)
    limits = botyard.MotionLimits(max_speed=botyard.Axes(1.0, 0.0, 2.0))
    assert_type(limits.max_speed, botyard.Axes)
    assert_type(robot.commands, botyard.CommandSpec)
    assert_type(
        botyard.OdometryDrift(turn_by_turn=1e-4).as_tuple(),
        tuple[float, float, float, float],
    )
    sonar: botyard.SonarSpec | None = robot.sonar
    commands: type[object] = botyard.CommandSpec
    print(commands)
    print(
        sonar,
        botyard.Returns(laser=2).laser,
        botyard.robot_names(),
        botyard.__version__,
    )


def simulations() -> None:
    """Use one world, and many."""
    sim = botyard.Simulation()
    robot = sim.add_robot("p3dx")
    assert_type(robot, botyard.Robot)
    assert_type(robot.velocity, botyard.Twist)
    assert_type(robot.laser.read(), botyard.LaserScan)
    if robot.sonar is not None:
        assert_type(robot.sonar.read(), botyard.SonarReadings)
    robot.set_parameters(
        command_latency=0.1, command_rate=10.0, command_scale=[0.9, 1.0, 1.0]
    )
    worlds = botyard.Worlds(
        botyard.Scene(), "p3dx", 2, max_latency=0.5, sensor_noise=False
    )
    assert_type(worlds.box_pose, NDArray[np.float64])
    recording = botyard.recording.load(Path("run.mcap"))
    print(recording, botyard.serve)


def errors() -> list[type[Exception]]:
    """Check that deliberate errors are `BotyardError`."""
    kinds: list[type[botyard.BotyardError]] = [
        botyard.ArgumentError,
        botyard.BudgetError,
        botyard.CommandError,
        botyard.FormatError,
        botyard.MapError,
        botyard.ModelError,
        botyard.StateError,
        botyard.UnknownNameError,
        botyard.WorldError,
        botyard.WorldFaultError,
    ]
    return [*kinds, botyard.PlacementWarning]


class Straight(learning.Task):
    """A task of a user."""

    def observation_bounds(
        self, w: botyard.Worlds
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return unbounded observations."""
        return np.full(2, -100.0, np.float32), np.full(2, 100.0, np.float32)

    def action_bounds(
        self, w: botyard.Worlds
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return bounds of the yaw rate."""
        return -np.ones(1, np.float32), np.ones(1, np.float32)

    def on_reset(
        self, w: botyard.Worlds, mask: NDArray[np.int64], rng: learning.EpisodeDraws
    ) -> None:
        """Draw goals."""
        assert_type(rng.uniform(), NDArray[np.float64])

    def act(self, w: botyard.Worlds, actions: NDArray[Any]) -> None:
        """Set the yaw rate."""
        w.command[:, 0, 2] = actions[:, 0]

    def observe(self, w: botyard.Worlds, out: NDArray[np.float32]) -> None:
        """Write the observation."""
        out[:] = w.pose[:, 0, :2]

    def reward(self, w: botyard.Worlds, out: NDArray[np.float64]) -> None:
        """Write the progress as reward."""
        out[:] = w.vel[:, 0, 0]

    def done(
        self,
        w: botyard.Worlds,
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
    ) -> None:
        """End no episode."""
        truncated[:] = w.tick >= self.max_steps


def tasks() -> None:
    """Use the tasks of the package and their environments."""
    several: list[type[learning.Task]] = [
        learning.Coverage,
        learning.Dock,
        learning.Follow,
        learning.Navigate,
        learning.SocialNavigate,
        Straight,
    ]
    teams: list[type[learning.TeamTask]] = [
        learning.Exchange,
        learning.Formation,
        learning.PushBox,
    ]
    one = learning.Environment(several[0])
    many = learning.VectorEnvironment(learning.PushBox(robots=1), 4)
    assert_type(many.worlds, botyard.Worlds)
    print(
        one.task,
        learning.ParallelEnvironment(teams[0]).agents,
        learning.stable_baselines("Navigate", 8),
    )
