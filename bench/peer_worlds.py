"""Peers of `bench.worlds_batch`: the same task in navground, ir-sim and VMAS."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from bench.goal_task import EPISODE_STEPS, GOAL_M, Env, Single, measure
from bench.peers import (
    DT,
    FOV,
    R_MAX,
    RADIUS,
    SIZE,
    World,
    irsim_world,
)

Place = Callable[[float, float, float], None]


def navground(world: World) -> tuple[Env, Place]:
    """Return navground's step and placement: commands are put directly into the robot, and a
    wall pushes it back.
    """
    import numpy as np
    from navground import core, sim

    w = sim.World()
    for ax, ay, bx, by in world.walls:
        w.add_wall(core.LineSegment((ax, ay), (bx, by)))
    drive = core.kinematics.TwoWheelsDifferentialDriveKinematics(
        max_speed=1.0,
        wheel_axis=0.3,
        max_angular_speed=2.0,
        max_forward_speed=1.0,
        max_backward_speed=1.0,
    )
    agent = sim.Agent(radius=RADIUS, kinematics=drive, control_period=0.0)
    agent.behavior = core.behaviors.DummyBehavior(drive, RADIUS)
    agent.behavior.environment_state_type = "Sensing"
    lidar = sim.state_estimations.LidarStateEstimation(
        range=R_MAX, start_angle=-FOV / 2, field_of_view=FOV, resolution=world.rays
    )
    agent.state_estimations = [lidar]
    w.add_agent(agent)
    w._prepare()

    def step(v: float, turn: float) -> tuple[Any, tuple[float, float, float], bool]:
        agent.last_cmd = core.Twist2((v, 0.0), turn, frame=core.Frame.relative)
        w.actuate(DT)
        w.update_dry(DT, False)
        x, y = agent.position
        ranges = np.asarray(
            lidar.read_ranges(agent.behavior.environment_state), np.float32
        )
        return (
            ranges,
            (x, y, agent.orientation),
            bool(agent.has_been_in_collision_since(w.time - DT / 2)),
        )

    def place(x: float, y: float, th: float) -> None:
        agent.pose = core.Pose2((x, y), th)

    return step, place


def irsim(world: World) -> tuple[Env, Place]:
    """Return ir-sim's step and placement, with a world described in YAML."""
    import numpy as np

    env = irsim_world(world.walls, [(20, 20, 0)], world.rays, "stop")
    robot = env.robot_list[0]

    def step(v: float, turn: float) -> tuple[Any, tuple[float, float, float], bool]:
        env.step([[v, turn]], action_id=[0])
        x, y, th = (float(a) for a in robot.state[:3, 0])
        return (
            np.asarray(env.get_lidar_scan(0)["ranges"], np.float32),
            (x, y, th),
            bool(robot.collision),
        )

    def place(x: float, y: float, th: float) -> None:
        robot.set_state([x, y, th], init=True)

    return step, place


def theirs(peer: str, rays: int) -> dict[str, float]:
    """Return environment steps per CPU second of navground or ir-sim, with one world: neither
    has batches with walls.
    """
    import numpy as np

    world = Single(rays)
    env, place = {"navground": navground, "ir-sim": irsim}[peer](world)
    observed = np.zeros(rays + 5, np.float32)
    draw = random.Random(2)
    goal, ticks, far = world.free(), 0, 0.0
    place(*world.free())

    def step(_: int) -> None:
        nonlocal goal, ticks, far
        v, turn = draw.uniform(0.0, 1.0), draw.uniform(-1.0, 1.0)
        ranges, (x, y, th), hit = env(v, turn)
        ticks += 1
        before, far = far, math.hypot(goal[0] - x, goal[1] - y)
        reward = before - far - hit
        bearing = math.atan2(goal[1] - y, goal[0] - x) - th
        observed[:rays], observed[rays:] = (
            ranges,
            (far, math.cos(bearing), math.sin(bearing), v, turn),
        )
        if hit or far < GOAL_M or ticks >= EPISODE_STEPS:
            place(*world.free())
            goal, ticks = world.free(), 0

        assert math.isfinite(reward)

    return measure(step, 1)


def vmas(n: int, rays: int) -> dict[str, float]:
    """Return environment steps per CPU second of VMAS: a batch of worlds in tensors, whose
    robot is driven by forces in any direction.
    """
    import torch
    from vmas.simulator.core import Agent, Landmark, Line, Sphere
    from vmas.simulator.core import World as Tensors
    from vmas.simulator.environment import Environment
    from vmas.simulator.scenario import BaseScenario
    from vmas.simulator.sensors import Lidar

    torch.set_num_threads(1)

    class Navigate(BaseScenario):  # type: ignore[misc]
        def make_world(self, batch_dim: int, device: Any, **_: Any) -> Any:
            world = Tensors(batch_dim, device, dt=DT, substeps=1)
            sensors = (
                [
                    Lidar(
                        world,
                        angle_start=0.0,
                        angle_end=FOV,
                        n_rays=rays,
                        max_range=R_MAX,
                    )
                ]
                if rays
                else []
            )
            world.add_agent(
                Agent("robot", shape=Sphere(RADIUS), sensors=sensors, collide=True)
            )
            self.goal = torch.zeros(batch_dim, 2)
            self.walls = World(0).walls if rays else []
            for k, (ax, ay, bx, by) in enumerate(self.walls):
                length = math.hypot(bx - ax, by - ay)
                world.add_landmark(
                    Landmark(
                        f"wall {k}",
                        collide=True,
                        movable=False,
                        shape=Line(length=length),
                    )
                )

            return world

        def reset_world_at(self, env_index: int | None = None) -> None:
            world = self.world
            for mark, (ax, ay, bx, by) in zip(world.landmarks, self.walls, strict=True):
                middle = torch.tensor(
                    [(ax + bx) / 2, (ay + by) / 2], dtype=torch.float32
                )
                mark.set_pos(middle, batch_index=env_index)
                mark.set_rot(
                    torch.tensor([math.atan2(by - ay, bx - ax)]), batch_index=env_index
                )

            shape = (world.batch_dim, 2) if env_index is None else (2,)
            world.agents[0].set_pos(torch.rand(shape) * SIZE, batch_index=env_index)
            if env_index is None:
                self.goal = torch.rand(shape) * SIZE
            else:
                self.goal[env_index] = torch.rand(2) * SIZE

        def observation(self, agent: Any) -> Any:
            seen = [sensor.measure() for sensor in agent.sensors]
            return torch.cat(
                [agent.state.pos, agent.state.vel, self.goal - agent.state.pos, *seen],
                dim=-1,
            )

        def reward(self, agent: Any) -> Any:
            return -(self.goal - agent.state.pos).norm(dim=-1)

        def done(self) -> Any:
            return (self.goal - self.world.agents[0].state.pos).norm(dim=-1) < GOAL_M

    env = Environment(
        Navigate(),
        num_envs=n,
        device="cpu",
        max_steps=EPISODE_STEPS,
        continuous_actions=True,
    )
    env.reset()

    def step(_: int) -> None:
        done = env.step([torch.rand(n, 2) * 2 - 1])[2]
        for index in torch.nonzero(done).flatten().tolist():
            env.reset_at(index)

    return measure(step, n)


__all__ = ["theirs", "vmas"]
