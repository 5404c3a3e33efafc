"""Scenes of `tools.digests`, and the digest of a simulation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

import botyard
from botyard.devices.blobs import BlobFinderSpec
from botyard.devices.errors import NormalErrorsSpec, WanderingOdometrySpec
from botyard.devices.fiducials import FiducialFinderSpec
from botyard.devices.floorsensors import (
    CliffSensorSpec,
    LineSensorSpec,
    PheromoneSensorSpec,
)
from botyard.devices.gps import GpsSpec
from botyard.devices.pheromonepen import PheromonePenSpec
from botyard.engine import commands
from botyard.engine.state import columns_of, digest_of
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.floor import Floor, FloorZone, PheromoneField
from botyard.model.kinematics import Axes, Drive, FourWheels, Steering
from botyard.model.mapgenerators import maze, warehouse
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.readings import Action
from botyard.model.robot import CommandSpec
from botyard.model.scene import GeoReference, Scene
from botyard.model.trailers import TrailerSpec
from botyard.sim.simulation import Robot, Simulation
from botyard.sim.statehead import Known, head_of
from botyard.traffic.engine import Traffic
from botyard.traffic.generate import generate
from botyard.traffic.on_robots import RobotTraffic
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.registry import find_supervisor

Run = Callable[[int], int]
"""Runs a scene on to a step, and returns the digest there."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A scene.

    Attributes
    ----------
    make : callable
        Makes the scene, for a number of threads.
    steps : tuple of int
        Steps after which digests are compared; without the compiler the first only.
    """

    make: Callable[[int], Run]
    steps: tuple[int, ...]


def _digest(sim: Simulation) -> int:
    shapes = sim.core.engine.bodies._asdict()
    # The state shows the effect of these columns, so their layout may change without a new digest.
    for name in (
        "wheels",
        "drift",
        "slips",
        "train",
        "hitch",
        "trail",
        "exact",
        "lead",
        "ground",
    ):
        del shapes[name]
    arrays: list[Any] = [
        *columns_of(sim.core.engine),
        # Skip the lists of walls: they hold the walls of the cells in another order. Zones of
        # the floor show in the state.
        *(
            value
            for name, value in sim.core.engine.grid._asdict().items()
            if not name.startswith(("wall", "zone"))
        ),
        *shapes.values(),
    ]
    texts = []
    for robot in sim.robots.values():
        arrays += [laser.read().ranges for laser in robot.lasers]
        arrays += [robot.sonar.read().ranges] if robot.sonar is not None else []
        texts += [
            repr(robot.devices[name].read())
            for name in ("fiducial_finder", "blob_finder")
            if name in robot.devices
        ]
        texts.append(
            f"{robot.gps!r} {robot.gripper_state!r} {robot.velocity!r} {robot.odom_in_world!r}"
        )

    numbers = [np.asarray(a) for a in arrays]
    return digest_of("\n".join(texts).encode(), numbers)


def _stepped(sim: Simulation, act: Callable[[int], object] = lambda _tick: None) -> Run:
    def go(to: int) -> int:
        while sim.tick < to:
            act(sim.tick)
            sim.step()

        return _digest(sim)

    return go


def _driven(sim: Simulation, robots: list[Robot], seed: str) -> Run:
    """Drive robots with random velocities, which change every eight steps."""
    draw = random.Random(seed)

    def act(tick: int) -> None:
        if tick % 8 == 0:
            for robot in robots:
                robot.command(v=draw.uniform(-0.2, 0.8), w=draw.uniform(-1.2, 1.2))

    return _stepped(sim, act)


def visitors(threads: int) -> Run:
    """Run the shipped world with all controllers."""
    return _stepped(
        Simulation.load(
            Path(botyard.__file__).parent / "maps" / "visitors.yaml", threads=threads
        )
    )


def sonars(threads: int) -> Run:
    sim = Simulation.load("office", seed=5, threads=threads)
    models = ("p3dx", "p3at", "amigo", "peoplebot-sh", "p3dx-big-rot-error")
    return _driven(
        sim,
        [
            sim.add_robot(m, m, pose=(4.5 + 1.8 * k, 14.2, 0.7 * k), lasers=[])
            for k, m in enumerate(models)
        ],
        "sonar",
    )


def lasers(threads: int) -> Run:
    """Run lasers with noise, error models, and odometry that drifts."""
    sim = Simulation.load(
        "warehouse", seed=6, threads=threads, odometry_error="random_init"
    )
    robots = [
        sim.add_robot(m, m)
        for m in ("p3at-sh-lms1xx", "p3dx-with-rear-laser", "seekur-with-error")
    ]
    erring = (
        NormalErrorsSpec(range_bias=0.01, range_deviation=0.02),
        WanderingOdometrySpec(),
    )
    robots.append(
        sim.add_robot(replace(find_robot("p3dx-sh-lms200"), devices=erring), "erring")
    )
    return _driven(sim, robots, "laser")


def gripper(threads: int) -> Run:
    """Let a gripper take a box and carry it about while the battery drains."""
    box = BoxObject(name="box", pose=Pose(0.48, 0.0, 0.0), length=0.1, width=0.1)
    walls = np.array(
        [
            [-3.0, -2.0, 4.0, -2.0],
            [4.0, -2.0, 3.5, 3.0],
            [3.5, 3.0, -3.0, 3.0],
            [-3.0, 3.0, -3.0, -2.0],
        ]
    )
    sim = Simulation(Scene(segments=walls, boxes=(box,)), seed=7, threads=threads)
    robot = sim.add_robot("p3dx-equipped", "r", pose=(0.0, 0.0, 0.0))

    def act(tick: int) -> None:
        if tick == 0:
            robot.gripper.act(Action.CLOSE)
        elif tick == 20:
            robot.command(v=0.4, w=0.7)
        elif tick == 70:
            robot.gripper.act(Action.OPEN)
        elif tick == 90:
            robot.command(v=-0.3, w=-0.2)

    return _stepped(sim, act)


def _room(boxes: int, **options: Any) -> Simulation:
    walls = np.array(
        [
            [-2.0, -1.0, 4.0, -1.0],
            [4.0, -1.0, 4.5, 4.0],
            [4.5, 4.0, -2.0, 4.0],
            [-2.0, 4.0, -2.0, -1.0],
        ]
    )
    spec = DynamicsSpec(
        mass=2.0,
        floor_friction=0.3,
        restitution=0.2,
        linear_damping=0.1,
        angular_damping=0.2,
    )
    things = tuple(
        BoxObject(
            name=f"b{k}",
            pose=Pose(0.5 * (k // 4), 0.5 * (k % 4), 0.1 * k),
            length=0.4,
            width=0.3,
            dynamics=spec,
        )
        for k in range(boxes)
    )
    return Simulation(Scene(segments=walls, boxes=things), step=0.05, seed=8, **options)


def pushed(threads: int) -> Run:
    """Let robots with and without mass push boxes."""
    sim = _room(12, threads=threads)
    for k in range(3):
        robot = sim.add_robot(
            "p3dx", f"r{k}", pose=(-1.2, 0.1 + 0.8 * k, 0.1 * k), lasers=[]
        )
        robot.command(v=0.4, w=0.1 * (k - 1))

    sim.masses.set_dynamics("r1", DynamicsSpec(mass=9.0))
    return _stepped(sim)


def thrown(threads: int) -> Run:
    """Run boxes that fly, are pushed, and are pulled to places."""
    sim = _room(10, threads=threads)
    for k in range(6):
        sim.masses.throw(f"b{k}", 1.5 * (k % 3 - 1), 0.7 * k - 1.0, 2.0 - k)
    sim.masses.push("b7", 3.0, 1.0, 0.4)
    sim.masses.pull_to("b8", (3.0, 3.0, 2.5))
    return _stepped(sim)


def crowd(threads: int) -> Run:
    """Run a hundred robots at random places of a generated map."""
    sim = Simulation(warehouse(seed=3), seed=9, threads=threads)
    spec = replace(find_robot("amigo"), lasers=())
    robots = [
        sim.add_robot(spec, f"a{k}", pose=sim.core.places.random(spec, k))
        for k in range(100)
    ]
    return _driven(sim, robots, "crowd")


def labyrinth(threads: int) -> Run:
    """Run a generated maze with a walking obstacle, and moves by distance and by heading."""
    scene = maze(6, 5, seed=4)
    sim = Simulation(scene, seed=10, threads=threads)
    robots = [
        sim.add_robot(m, m, pose=sim.core.places.random(find_robot(m), k))
        for k, m in enumerate(("p3dx", "amigo-sh"))
    ]
    return _driven(sim, robots, "labyrinth")


def finders(threads: int) -> Run:
    """Run a fiducial finder, a blob finder and a GPS with error models."""
    draw = random.Random("finders")
    boxes = tuple(
        BoxObject(
            name=f"m{k}",
            pose=Pose(
                draw.uniform(1.0, 6.0), draw.uniform(-4.0, 4.0), draw.uniform(-3.0, 3.0)
            ),
            length=0.4,
            width=0.2,
            color="red" if k % 2 else "blue",
            returns=Returns(fiducial=k + 1),
        )
        for k in range(12)
    )
    devices = (
        FiducialFinderSpec(range_max=8.0, fov=math.pi),
        BlobFinderSpec(colors=("red", "blue"), image=(80, 60)),
        NormalErrorsSpec(
            sensor="fiducial_finder", bearing_deviation=0.02, range_deviation=0.1
        ),
    )
    scene = Scene(boxes=boxes, georeference=GeoReference(48.1, 11.6, 520.0))
    sim = Simulation(scene, seed=11, threads=threads)
    spec = find_robot("p3dx-nolaser")
    robot = sim.add_robot(
        replace(spec, devices=(*devices, GpsSpec())), "eye", pose=(0.0, 0.0, 0.3)
    )
    return _driven(sim, [robot], "finders")


def floor(threads: int) -> Run:
    """Run robots on a floor with zones and pheromone fields that they write and read."""
    zones = tuple(
        FloorZone(
            name=f"x = {x}",
            corners=((x, -9.0), (x + 1.5, -8.0), (x + 1.0, 9.0), (x - 0.5, 8.0)),
            color=color,
            slip=slip,
            speed_limit=limit,
            odometry_scale=scale,
            hole=hole,
        )
        for x, color, slip, limit, scale, hole in (
            (-6.0, "light blue", 0.4, None, None, False),
            (-4.0, "", None, 0.2, None, False),
            (-1.0, "brown", None, None, 1.15, False),
            (1.0, "", 0.1, 0.35, 0.9, False),
            (4.0, "", None, None, None, True),
        )
    )
    fields = tuple(
        PheromoneField(name=name, area=(-8.0, -8.0, 8.0, 8.0), half_life=half_life)
        for name, half_life in (("trail", 4.0), ("home", 0.0))
    )
    scene = Scene(floor=Floor(color="gray80", zones=zones, fields=fields))
    sim = Simulation(scene, seed=13, threads=threads)
    robots = []
    for i in range(12):
        spec = find_robot(("p3dx", "seekur", "car")[i % 3]).fitted(
            PheromonePenSpec(
                pheromone=fields[i % 2].name, rate=0.3 + 0.1 * i, position=(0.1, 0.05)
            )
        )
        spec = spec.fitted(LineSensorSpec(noise=0.02)).fitted(CliffSensorSpec())
        spec = spec.fitted(PheromoneSensorSpec())
        pose = Pose(-7.0 + 0.4 * (i % 4), 2.0 * (i // 4) - 3.0, 0.1 * i)
        robots.append(sim.add_robot(spec, f"r{i}", pose=pose))

    def act(tick: int) -> None:
        for i, robot in enumerate(robots):
            bright = float(robot.devices["line_sensor"].read().brightness.sum())
            scent = sum(robot.devices["pheromone_sensor"].read())
            cliff = any(robot.devices["cliff_sensor"].read())
            robot.command(v=0.1 if cliff else 0.5, w=0.2 * (bright - 2.0) - 0.1 * scent)
            if tick % 20 == i:
                sim.floor.mark("home", [robot.truth[:2]], 0.5)
        if tick == 60:
            sim.floor.remove_zone("x = -4.0")

    return _stepped(sim, act)


def late(threads: int) -> Run:
    """Run delayed commands of all kinds, and delayed and rare readings; values on their way
    count as well.
    """
    sim = Simulation.load("office", seed=13, threads=threads)
    spec = find_robot("p3dx-sh-lms1xx")
    robots = []
    for k, (latency, jitter, rate) in enumerate(
        ((0.5, 0.3, 0.0), (0.0, 0.0, 4.0), (0.25, 0.25, 3.0), (0.0, 0.0, 0.0))
    ):
        delay: Any = {"latency": latency, "jitter": jitter, "measurement_rate": rate}
        assert spec.sonar is not None
        late = replace(
            spec,
            commands=CommandSpec(
                latency=latency, jitter=jitter, rate=rate, scale=Axes(0.9, 1.0, 1.1)
            ),
            lasers=tuple(replace(one, samples=61, **delay) for one in spec.lasers),
            sonar=replace(spec.sonar, **delay) if k % 2 else spec.sonar,
        )
        robots.append(sim.add_robot(late, f"l{k}", pose=(4.5 + 1.8 * k, 14.2, 0.7 * k)))

    draw = random.Random("late")

    def act(tick: int) -> None:
        for robot in robots:
            if draw.random() < 0.4:
                command: commands.Command = draw.choice(
                    [
                        commands.SetVelocity(v=draw.uniform(-0.2, 0.8)),
                        commands.SetVelocity(v=0.3, w=draw.uniform(-1.2, 1.2)),
                        commands.MoveBy(draw.uniform(-0.5, 0.5)),
                        commands.TurnTo(draw.uniform(-3.0, 3.0)),
                        commands.TurnBy(draw.uniform(-1.0, 1.0)),
                        commands.Stop(),
                        commands.EmergencyStop(),
                    ]
                )
                sim.core.accept_command(
                    robot.name, command, draw.choice(["one", "two"])
                )
        if tick % 50 == 25:
            robots[0].set_parameters(command_latency=draw.uniform(0.3, 0.6))

    run = _stepped(sim, act)

    def go(to: int) -> int:
        digest = run(to)
        head = head_of(sim.core, Known(), [])
        waiting = msgspec.msgpack.encode((head.under_way, head.late))
        return digest_of(waiting, [np.array([digest], np.uint64)])

    return go


def tasks(_threads: int) -> Run:
    """Run traffic tasks: times of all events, also with latency and loss of messages."""

    def go(count: int) -> int:
        arrays = []
        for k, family in enumerate(
            ("crossings", "ring", "star", "corridor", "warehouse")
        ):
            for rules in (
                Rules(time_limit=400.0),
                Rules(time_limit=400.0, latency=0.05, jitter=0.3, loss=0.02, seed=k),
            ):
                events = (
                    Traffic(
                        generate(family, 6, k + 1),
                        find_supervisor("fcfs" if k % 2 else "bankers"),
                        rules,
                    )
                    .run()
                    .events
                )
                arrays += [
                    events.t[:count],
                    events.robot[:count],
                    events.kind[:count],
                    events.sector[:count],
                ]

        return digest_of(b"", arrays)

    return go


def drivers(threads: int) -> Run:
    """Let robots of the engine drive a traffic task."""
    sim = Simulation(seed=12, threads=threads)
    run = RobotTraffic(
        generate("crossings", 6, 2), find_supervisor("fcfs"), sim, knows="odometry"
    )

    def go(to: int) -> int:
        while sim.tick < to and run.step() is None:
            pass
        return _digest(sim)

    return go


def cars(threads: int) -> Run:
    """Drive cars, skid-steered and Mecanum robots and a train between walls and boxes."""
    x, y = 4.5, 3.5
    walls = np.array([[-x, -y, x, -y], [x, -y, x, y], [x, y, -x, y], [-x, y, -x, -y]])
    box = BoxObject(name="box", pose=Pose(1.0, 2.0, 0.3), length=0.8, width=0.4)
    sim = Simulation(Scene(segments=walls, boxes=(box,)), seed=13, threads=threads)
    base = find_robot("p3dx-nolaser")
    outline = ((-0.2, -0.2), (0.2, -0.2), (0.2, 0.2), (-0.2, 0.2))
    trailer = TrailerSpec(outline=outline, hitch=0.35, length=0.45, limit=1.0)
    wheels = FourWheels(
        wheelbase=0.3,
        track_factor=1.5,
        slide=0.05,
        slip=0.02,
        errors=(0.01, 0.0, -0.01, 0.0),
    )
    tricycle = Steering(wheelbase=-0.4, limit=1.0, rate=1.0, offset=0.02)
    models = (
        find_robot("car"),
        replace(base, name="tricycle", drive=Drive.TRICYCLE, steering=tricycle),
        replace(base, name="skid", drive=Drive.SKID, wheels=wheels),
        replace(
            base,
            name="mecanum",
            drive=Drive.MECANUM,
            wheels=replace(wheels, slide=0.0),
        ),
        replace(base, name="train", trailers=(trailer, trailer)),
    )
    robots = [
        sim.add_robot(model, model.name, pose=(1.6 * (k - 2), 1.2 * (k % 2) - 1.0, 0.4))
        for k, model in enumerate(models)
    ]
    return _driven(sim, robots, "cars")


TRIALS: Final = {
    "visitors": Trial(visitors, (2, 40, 300)),
    "sonars": Trial(sonars, (3, 40, 300)),
    "lasers": Trial(lasers, (2, 40, 200)),
    "gripper": Trial(gripper, (4, 40, 150)),
    "pushed": Trial(pushed, (2, 40, 200)),
    "thrown": Trial(thrown, (2, 40, 200)),
    "crowd": Trial(crowd, (1, 40, 150)),
    "labyrinth": Trial(labyrinth, (2, 40, 300)),
    "finders": Trial(finders, (3, 40, 150)),
    "floor": Trial(floor, (3, 40, 150)),
    "late": Trial(late, (3, 40, 200)),
    "tasks": Trial(tasks, (200, 2000)),
    "drivers": Trial(drivers, (3, 100, 600)),
    "cars": Trial(cars, (2, 40, 200)),
}
