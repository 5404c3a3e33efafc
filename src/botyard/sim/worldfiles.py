"""Robots and settings of world files: added to a simulation, and taken from one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.world import THING, PlacedRobot, Settings, World
from botyard.names import body_name
from botyard.sim.population import Population
from botyard.sim.programs import employ
from botyard.sim.robot import R


def populate(sim: Population[R], world: World) -> list[R]:
    """Add the robots of a world with the programs that drive them.

    The scene of the world is ignored.

    Raises
    ------
    WorldError, CommandError
        A name is taken, a pose is out of bounds, or a program does not know an option.
    """
    robots: list[R] = []
    for _, several in groupby(
        # Robots of one model with the same kinds of data are added together.
        world.robots,
        key=lambda p: (id(p.spec), p.pose is None, not p.name),
    ):
        group = list(several)
        poses = [p.pose for p in group if p.pose is not None]
        # Adding many robots at once is much faster than one by one.
        if poses and group[0].name:
            robots += sim.add_robots(group[0].spec, poses, [p.name for p in group])
        elif not poses and len(group) > 1:
            robots += add_at_home(
                sim,
                [p.spec for p in group],
                [p.name for p in group if p.name],
            )
        else:
            robots += [
                sim.add_robot(p.spec, p.name or None, pose=p.pose) for p in group
            ]

    sim.core.unserve(
        [
            r.name
            for r, placed in zip(robots, world.robots, strict=True)
            if not placed.served
        ]
    )
    # All robots must exist first, because options of one may name another.
    for robot, placed in zip(robots, world.robots, strict=True):
        if placed.program is not None:
            employ(robot, placed.program)

    return robots


def add_at_home(
    sim: Population[R], specs: Sequence[RobotSpec], names: Sequence[str] = ()
) -> list[R]:
    """Add robots at free places around the home of the map, in order.

    The places are the same as with `add_robot` one by one. Robots of one model that
    follow each other share one search, so that many robots cost little more than one.

    Parameters
    ----------
    sim : Population
        Simulation that gets the robots.
    specs : sequence of RobotSpec
        Model of each robot.
    names : sequence of str
        Name of each robot. Empty: names are made of the models' names.

    Raises
    ------
    WorldError
        A name is taken, or breaks the rule for names.
    """
    robots: list[R] = []
    for _, group in groupby(range(len(specs)), lambda k: id(specs[k])):
        rows = list(group)
        spec = specs[rows[0]]
        robots += sim.add_robots(
            spec,
            sim.core.places.next(spec, len(rows)),
            [names[k] for k in rows] if names else None,
        )

    return robots


def world_of(sim: Population[R]) -> World:
    """Return the present world as the content of a scenario file.

    The content has bodies with their poses, seed and step, but neither velocities nor
    commands.

    Returns
    -------
    World
        Map with its boxes where they stand now, robots, settings, and lines about
        things that a scenario cannot hold.
    """
    core = sim.core
    state, rows = core.snapshot.state, core.snapshot.rows

    def pose(name: str) -> Pose:
        return Pose(*state.pose[rows[name]].tolist())

    boxes = tuple(
        replace(
            box,
            # The original name survives, although the body's name may be a
            # shortened form.
            name=box.name if name == body_name(box.name) else name,
            pose=pose(name),
        )
        for name, box in zip(core.box_names, core.scene.boxes, strict=True)
    )
    programs = core.programs.by_robot
    # Robots bring their trailers, in a straight line.
    trailers = {one for name in core.robots for one in core.engine.trailers_of(name)}
    robots = tuple(
        PlacedRobot(
            spec=robot.spec,
            name=name,
            pose=pose(name),
            program=programs.get(name),
            # Clients cannot connect to moving objects (things).
            served=robot.spec.name != THING and name not in core.unserved,
        )
        for name, robot in core.robots.items()
        if name not in trailers
    )
    settings = Settings(
        seed=core.seed,
        step=core.dt,
        odometry_error=core.engine.odometry_error_mode.name.lower(),
        sensor_noise=core.sensor_noise,
        threads=core.devices.threads,
    )
    beside = []
    described = core.descriptions.described
    if described.joints or described.sensors:
        beside = [
            (
                f"{len(described.joints)} joints and {len(described.sensors)} sensors of "
                "AMBF description files are left out; their bodies are written as "
                "obstacles"
            )
        ]

    scene = replace(core.scene, boxes=boxes)
    return World(scene=scene, robots=robots, settings=settings, beside=tuple(beside))


__all__ = ["populate", "world_of"]
