"""Continuation from an earlier moment of a simulation while clients stay connected.

The whole world returns to that moment: bodies, odometry, batteries, random numbers.
Properties of connections keep their present values: the sources that command a robot or
hold a body, and the rays that a client has set. Robots under command of clients also
keep motors, limits and ramps, because clients set these when they connect.

Commands that waited at that moment are dropped. Robots that clients command, or
commanded at that moment, stop and wait for the next command. For clients, this looks as
if their robots were placed elsewhere: `teleports` is one more than before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Final

import msgspec
import numpy as np

from botyard.engine import commands as cmd
from botyard.engine.state import join, split
from botyard.errors import StateError
from botyard.formats.budget import Budget
from botyard.model.scene import Scene
from botyard.sim.core import Core
from botyard.sim.statehead import Head, Known, Rays, Roster

SOURCE: Final = "branch"
"""Source of the commands that a branch issues."""


def branch(
    core: Core,
    known: Known,
    restore: Callable[[bytes], None],
    state: bytes,
    scene: Scene | None,
) -> None:
    """Continue from a state; see `SavedStates.branch`.

    Parameters
    ----------
    core : Core
        World to restore.
    known : Known
        Descriptions that states of this world refer to.
    restore : callable
        Restores a state given as bytes.
    state : bytes
        Result of `Simulation.save_state`.
    scene : Scene or None
        Map of that time, if it may differ from the present one.

    Raises
    ------
    StateError
        The state is damaged or does not fit; in this case, at most the map has changed.
    """
    head, data = split(state, Head, Budget().bytes)
    try:
        roster = msgspec.msgpack.decode(head.roster, type=Roster)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateError(f"state: {error}") from None

    robots = {
        body.name: body.digest for body in roster.bodies if body.start is not None
    }
    # Checked here, because the counts are paired with robots before `restore` checks
    # them.
    if len(head.teleports) != len(robots):
        raise StateError(
            f"state: expected {len(robots)} counts of teleports, one for each robot, "
            f"found {len(head.teleports)}"
        )
    # A robot of the same name but another model is another robot to its clients.
    stay = {
        name
        for name, robot in core.robots.items()
        if robots.get(name) == known.digest(robot.spec)
    }
    driven = {name for name in stay if core.robots[name].clients}
    # Read these values before the restoration overwrites them.
    commands = {name: _set_up(core, name) for name in robots if name in driven}
    stopped = [name for name in robots if name in driven or head.claims.get(name)]
    there = {
        body.name
        for body in roster.bodies
        if body.name in (stay if body.start is not None else core.box_names)
    }
    numbers = zip(robots, head.teleports, strict=True)
    head.teleports = [
        core.robots[name]._teleports + 1 if name in stay else number
        for name, number in numbers
    ]
    # The present sources stay connected, and keep their robots.
    head.claims = {
        name: list(core.robots[name].clients) for name in robots if name in driven
    }
    head.holds = {
        name: list(sources) for name, sources in core.holds.items() if name in there
    }
    # Clients have set the rays of these sensors, and expect scans of the same form.
    configured = sorted(core.configured.items(), key=lambda item: item[0])
    head.rays = [rays for rays in head.rays if rays.robot not in driven] + [
        Rays(name, index, b.angle0, b.step, b.count)
        for (name, index), b in configured
        if name in driven
    ]
    # Commands of the earlier moment would surprise clients that have sent others since.
    head.queue, head.under_way = [], []
    # Delayed readings of the earlier moment used its rays, which clients may have
    # changed since.
    head.late = [one for one in head.late if one.robot not in driven]
    if scene is not None and not is_same_map(scene, core.scene):
        # `restore` requires the map of the state.
        core.replace_scene(scene)
    # The join computes a new checksum for the changed head.
    restore(join(msgspec.msgpack.encode(head), [np.frombuffer(data, np.uint8)]))
    for name in stopped:
        # Issue the commands after the restoration, which would overwrite queued
        # commands.
        for command in (cmd.Stop(), *commands.get(name, ())):
            core.accept_command(name, command, SOURCE)

    for name, row in core.engine.rows.items():
        # Holds belong to connections: a source that held the body then may have
        # disconnected, and another one may have connected since.
        if bool(core.engine.state.held[row]) != bool(core.holders(name)):
            core.hold(name, False, SOURCE)


def is_same_map(one: Scene, two: Scene) -> bool:
    """Return whether two scenes are the same map, apart from their boxes.

    Returns
    -------
    bool
        True only if all other fields are the same objects: an equal copy of a map counts
        as another map, because a comparison of all walls would take long.
    """
    return all(
        _is_same(getattr(one, f.name), getattr(two, f.name))
        for f in fields(Scene)
        if f.name != "boxes"
    )


def _is_same(one: object, two: object) -> bool:
    """Return whether two values are one object, or two empty arrays.

    Each scene has its own empty arrays, so only their sizes are compared.
    """
    return one is two or (
        isinstance(one, np.ndarray)
        and isinstance(two, np.ndarray)
        and not one.size
        and not two.size
    )


def _set_up(core: Core, name: str) -> list[cmd.Command]:
    """Return commands that restore the motors, limits and ramps of a robot as clients
    have set them.

    Parameters
    ----------
    core : Core
        World before the restoration.
    name : str
        Name of a robot.
    """
    state, row = core.snapshot.state, core.snapshot.rows[name]
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
