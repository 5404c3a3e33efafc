"""Going on from an earlier moment of the same simulation while clients are connected to
it.

The world goes back whole: bodies, odometry, batteries, random numbers. What belongs to
connections stays as it is today: who commands a robot, who holds a body, the rays that
a client has set, and of robots that clients command their motors, limits and ramps,
which clients set when they connect. Commands that waited at that moment are dropped;
robots that clients command, or commanded then, stop and wait for the next command.
Clients are told as if their robots had been placed: `teleports` is one more than today.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

import msgspec
import numpy as np

from botyard.engine import commands as cmd
from botyard.engine.state import join, split
from botyard.errors import StateError
from botyard.formats.budget import Budget
from botyard.model.scene import Scene
from botyard.sim.population import Population
from botyard.sim.statehead import Head, Known, Rays, Roster

SOURCE: Final = "branch"
"""Source of the commands that a branch submits."""


def branch(
    sim: Population[Any],
    known: Known,
    restore: Callable[[bytes], None],
    state: bytes,
    scene: Scene | None,
) -> None:
    """See `Simulation.branch`. `restore` is that method of the simulation."""
    head, data = split(state, Head, Budget().bytes)
    try:
        roster = msgspec.msgpack.decode(head.roster, type=Roster)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateError(f"state: {error}") from None

    robots = {
        body.name: body.digest for body in roster.bodies if body.start is not None
    }
    if len(head.teleports) != len(robots):
        raise StateError("state: it tells of robots that it does not have")
    stay = {
        name
        for name, robot in sim.robots.items()
        if robots.get(name) == known.digest(robot.spec)
    }
    driven = {name for name in stay if sim.robots[name].clients}
    commands = {name: _set_up(sim, name) for name in robots if name in driven}
    stopped = [name for name in robots if name in driven or head.claims.get(name)]
    there = {
        body.name
        for body in roster.bodies
        if body.name in (stay if body.start is not None else sim.box_names)
    }
    numbers = zip(robots, head.teleports, strict=True)
    head.teleports = [
        sim.robots[name]._teleports + 1 if name in stay else number
        for name, number in numbers
    ]
    head.claims = {
        name: list(sim.robots[name].clients) for name in robots if name in driven
    }
    head.holds = {
        name: list(sources) for name, sources in sim._holds.items() if name in there
    }
    configured = sorted(sim._configured.items(), key=lambda item: item[0])
    head.rays = [rays for rays in head.rays if rays.robot not in driven] + [
        Rays(name, index, b.angle0, b.step, b.count)
        for (name, index), b in configured
        if name in driven
    ]
    head.queue, head.under_way = [], []
    head.late = [
        one for one in head.late if one.robot not in driven
    ]  # their rays may be others now
    if scene is not None and not is_same_map(scene, sim.scene):
        sim.replace_scene(scene)
    restore(join(msgspec.msgpack.encode(head), [np.frombuffer(data, np.uint8)]))
    for name in stopped:
        for command in (cmd.Stop(), *commands.get(name, ())):
            sim.submit(name, command, SOURCE)

    for name, row in sim.engine.rows.items():
        if bool(sim.engine.state.held[row]) != bool(
            sim.holders(name)
        ):  # a hand that held it then is gone, or has come since
            sim.hold(name, False, SOURCE)


def is_same_map(one: Scene, two: Scene) -> bool:
    """Whether two scenes are the same map but for boxes, which may have come and gone."""
    return all(
        _is_same(getattr(one, f.name), getattr(two, f.name))
        for f in fields(Scene)
        if f.name != "boxes"
    )


def _is_same(one: object, two: object) -> bool:
    """Whether they are one object. An empty array is made anew with each scene."""
    return one is two or (
        isinstance(one, np.ndarray)
        and isinstance(two, np.ndarray)
        and not one.size
        and not two.size
    )


def _set_up(sim: Population[Any], name: str) -> list[cmd.Command]:
    """What brings back how a robot is set up for its clients: motors, limits and ramps."""
    state, row = sim.snapshot.state, sim.snapshot.rows[name]
    v, vy, w = state.max_vel[row].tolist()
    ramps = enumerate(
        zip(state.accel[row].tolist(), state.decel[row].tolist(), strict=True)
    )
    return [
        cmd.EnableMotors(bool(state.motors[row])),
        cmd.SetLimits(v=v, vy=vy, w=w),
        *(
            cmd.SetRamp(axis, accel=accel, decel=decel)
            for axis, (accel, decel) in ramps
        ),
    ]


__all__ = ["SOURCE", "branch", "is_same_map"]
