"""Reader of worlds of ir-sim (https://github.com/hanruihua/ir-sim), which are YAML files.

Sections: `world`, lists of `robot` and `obstacle`. Lengths are m, angles rad, poses ``[x, y,
theta]``. An obstacle without kinematics becomes a wall, one with kinematics a moving object, and
one with a mass an object that robots push. `irsimkeys` has all keys.

Source: the documentation of ir-sim 2.12, "YAML Configuration Syntax".
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from botyard.formats.base import Options, Source, read_sibling
from botyard.formats.images import read_grey
from botyard.formats.importers.builder import Builder, robot_spec
from botyard.formats.importers.drives import (
    WIDE,
    Driven,
    car,
    infinite_numbers,
    limits,
    turn_rate,
)
from botyard.formats.importers.irsimkeys import KEYS
from botyard.formats.importers.irsimshapes import Shapes, note_random
from botyard.formats.importers.shapes import MAX_SIDE, moved
from botyard.formats.importers.values import Value, blamed_on, read_yaml, top_keys
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.kinematics import Drive
from botyard.model.obstacles import Returns
from botyard.model.sensors import MAX_RATE_HZ, MAX_SAMPLES, LaserSpec
from botyard.model.world import Program, Settings, World, thing
from botyard.names import shown
from botyard.numerics.elementary import cos, sin

Table = Mapping[str, Value]
TRIES: Final = 100
"""Number of random places that are tried for an object.

If all are too close to other objects, the last one is used.
"""
MARGIN: Final = 0.5
"""Distance of random places, and of the circle of places, from the border of the world, m."""
MAX_NUMBER: Final = 20_000
"""Largest number of objects that one entry may describe; the budget limits the whole file."""
SOLID_BELOW: Final = 127.5
"""Grey value below which a pixel is solid."""
DRIVES: Final = ("diff", "omni", "omni_angular", "acker", "static")
CONTROLLERS: Final = {
    "dash": "waypoints",
    "rvo": "orca",
    "orca": "orca",
    "sfm": "socialforce",
}
"""Controllers of botyard by the behaviours of ir-sim that they correspond to."""
LETTERS: Final = {
    "b": "blue",
    "g": "green",
    "r": "red",
    "c": "cyan",
    "m": "magenta",
    "y": "yellow",
    "k": "black",
    "w": "white",
}
"""Colours that a single letter stands for, as in matplotlib."""
CYCLE: Final = ("orange", "sky blue", "sea green", "gold", "navy", "tomato", "orchid")
"""Colours of the objects of an entry whose colour is ``cycle``."""
_KNOWN: Final = frozenset(KEYS.kinds["file"])


def fits(source: Source) -> bool:
    """Return whether a YAML file is a world of ir-sim, by its top-level keys."""
    found = top_keys(source)
    if "irsim" in found:
        return True
    return bool(found & {"world", "robot", "obstacle"}) and found <= _KNOWN


def read(source: Source, options: Options = Options()) -> World:
    """Read a world of ir-sim.

    Raises
    ------
    WorldFileError
        The file is invalid. The error names the line, the expected and the found value.
    """
    builder = Builder(source, options)
    return _Reader(builder).run(read_yaml(source, builder.meter))


class _Reader:
    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._notes = builder.notes
        self._draw = random.Random("0 irsim")
        self._shapes = Shapes(builder, self._draw)
        self._size = (10.0, 10.0)
        self._offset = (0.0, 0.0)
        self._friction: Value | None = None
        self._restitution: Value | None = None
        # The reader numbers nameless objects as ir-sim does.
        self._count = 0

    def run(self, file: Value) -> World:
        table = file.table()
        if "irsim" in table and isinstance(table["irsim"].data, dict):
            # Sections of other simulators are not ir-sim's keys.
            table = table["irsim"].table()
        KEYS.check("file", table, self._notes)
        world = table["world"].table() if "world" in table else {}
        KEYS.check("world", world, self._notes)
        settings = self._world(world)
        for kind in ("robot", "obstacle"):
            if kind in table:
                for entry in table[kind].entries():
                    self._entry(kind, entry)

        name = str(world["name"].data or "") if "name" in world else ""
        return self._builder.world(settings, name[:64] if name.isprintable() else "")

    # -- world

    def _world(self, world: Table) -> Settings:
        width, height = (
            world[key].number(0.0, MAX_SIDE, above=True) if key in world else 10.0
            for key in ("width", "height")
        )
        self._size = (width, height)
        if "offset" in world:
            self._offset = world["offset"].point()
        x, y = self._offset
        self._builder.view = (x, y, x + width, y + height)
        self._friction = world.get("friction")
        self._restitution = world.get("restitution")
        if "obstacle_map" in world and world["obstacle_map"].data is not None:
            self._map(world["obstacle_map"], world.get("mdownsample"))
        step = world["step_time"].number(1e-6, 60.0) if "step_time" in world else 0.1
        return Settings(step=step)

    def _map(self, value: Value, every: Value | None) -> None:
        """Add the walls of the map picture, which covers the whole world."""
        name = value
        if isinstance(value.data, dict):
            table = value.table()
            KEYS.check("obstacle_map", table, self._notes)
            if "name" not in table or table["name"].data != "image":
                self._notes.add(
                    "generator",
                    value,
                    "the obstacle map of a generator is left out: only pictures are "
                    "read",
                )
                return
            if "path" not in table:
                raise value.fail("the path of a picture")
            name = table["path"]

        source = self._builder.source
        path = source.sibling_file(name.text(), "the obstacle map")
        meter, what = self._builder.meter, "the obstacle map"
        grey = read_grey(read_sibling(path, what, meter, name.error), meter, what=what)
        step = 1 if every is None else every.whole(1, 1_000_000)
        # Row 0 is the lowest; ir-sim drops columns and rows from the lower left.
        solid = (grey < SOLID_BELOW)[::-1][::step, ::step]
        self._builder.grid(np.ascontiguousarray(solid), self._size, Pose(*self._offset))

    # -- objects

    def _entry(self, kind: str, entry: Value) -> None:
        """Add the objects that one entry of a list describes."""
        table = entry.table()
        KEYS.check(kind, table, self._notes)
        number = table["number"].whole(0, MAX_NUMBER) if "number" in table else 1
        self._builder.meter.add("entities", number, entry.line)
        poses, goals = self._states(table, number)
        for i in range(number):
            self._object(kind, entry, _of_one(table, i), poses[i], goals[i])
            self._count += 1

    def _states(
        self, table: Table, number: int
    ) -> tuple[list[Pose], list[list[tuple[float, float]]]]:
        """Return the start poses and the goals of the objects of one entry."""
        way = table["distribution"].table() if "distribution" in table else {}
        KEYS.check("distribution", way, self._notes)
        name = (
            way["name"].text("manual", "random", "circle")
            if "name" in way
            else "manual"
        )
        if name == "random":
            note_random(self._builder, way["name"])
            starts, ends = self._random(way, number), self._random(way, number)
            return starts, [[(p.x, p.y)] for p in ends]
        if name == "circle":
            return self._circle(way, number)
        states = [_of_one(table, i).get("state") for i in range(number)]
        goals = [_of_one(table, i).get("goal") for i in range(number)]
        return (
            [Pose(1.0, 1.0) if s is None else s.pose() for s in states],
            [_points(g) for g in goals],
        )

    def _random(self, way: Table, number: int) -> list[Pose]:
        (x, y), (width, height) = self._offset, self._size
        low = (x + MARGIN, y + MARGIN, -math.pi)
        high = (x + width - MARGIN, y + height - MARGIN, math.pi)
        if "range_low" in way:
            low = (*way["range_low"].numbers(2, 3), -math.pi)[:3]  # type: ignore[assignment]
        if "range_high" in way:
            high = (*way["range_high"].numbers(2, 3), math.pi)[:3]  # type: ignore[assignment]
        apart = (
            way["min_distance"].number(0.0, MAX_SIDE) if "min_distance" in way else 1.0
        )
        found = np.empty((number, 2))
        poses = []
        for i in range(number):
            pose = Pose()
            for _ in range(TRIES):
                # Trying costs time, so a file cannot ask for any number of tries.
                self._builder.meter.add("entities", 1 + i // 50)
                pose = Pose(*map(self._draw.uniform, low, high))
                dx, dy = (found[:i] - (pose.x, pose.y)).T
                if not i or float((dx * dx + dy * dy).min()) >= apart * apart:
                    break
            found[i] = pose.x, pose.y
            poses.append(pose)
        return poses

    def _circle(
        self, way: Table, number: int
    ) -> tuple[list[Pose], list[list[tuple[float, float]]]]:
        (x, y), (width, height) = self._offset, self._size
        radius = max(0.0, min(width, height) / 2.0 - MARGIN)
        if "radius" in way:
            radius = way["radius"].number(0.0, MAX_SIDE)
        center = (x + width / 2.0, y + height / 2.0)
        if "center" in way:
            center = way["center"].point()
        poses, goals = [], []
        for i in range(number):
            th = 2.0 * math.pi * i / number
            dx, dy = radius * cos(th), radius * sin(th)
            # Each faces the centre, beyond which its goal lies.
            poses.append(Pose(center[0] + dx, center[1] + dy, th - math.pi))
            goals.append([(center[0] - dx, center[1] - dy)])
        return poses, goals

    def _object(
        self,
        kind: str,
        entry: Value,
        table: Table,
        at: Pose,
        goals: list[tuple[float, float]],
    ) -> None:
        body = self._shapes.read(table.get("shape"))
        seen = Returns()
        if "unobstructed" in table and table["unobstructed"].flag():
            # ir-sim's lidars do not see such an object either.
            seen = Returns(obstacle=False, laser=0, sonar=False)
        motion = table["kinematics"].table() if "kinematics" in table else {}
        KEYS.check("kinematics", motion, self._notes)
        drive = motion["name"].text(*DRIVES) if "name" in motion else "static"
        fixed = "static" in table and table["static"].flag()
        name = f"{kind}_{self._count}"
        if "name" in table and table["name"].data is not None:
            name = table["name"].text()
        color = self._color(table, "red" if kind == "robot" else "black")
        for number, (x, y) in enumerate(goals if "goal" in table else ()):
            label = f"{name} goal" if len(goals) == 1 else f"{name} goal {number + 1}"
            self._builder.place(label, Pose(x, y))

        # A robot that never moves becomes no wall, so that it keeps its sensors.
        stands = fixed or drive == "static"
        if kind == "robot" or not stands:
            driven = (
                Driven(Drive.DIFF, limits(0.0, 0.0, 0.0))
                if stands
                else self._drive(table, motion, drive)
            )
            program = (
                None
                if stands
                else self._program(table, goals, driven.limits.max_speed.x)
            )
            lasers = self._lasers(table)
            with blamed_on(entry):
                if kind == "robot":
                    spec = robot_spec(
                        f"irsim_{drive}",
                        body.solid,
                        driven,
                        color=color,
                        lasers=lasers,
                        seen=seen,
                    )
                else:
                    first, *rest = body.solid
                    moving = thing(first, parts=tuple(rest), color=color, returns=seen)
                    spec = replace(
                        moving,
                        drive=driven.kind,
                        limits=driven.limits,
                        steering=driven.steering,
                        lasers=lasers,
                    )
            self._builder.robot(spec, name, at, entry, program, served=kind == "robot")
        elif not fixed and (mass := self._mass(table, entry)) is not None:
            self._builder.box(
                name,
                at,
                body.solid,
                color=color,
                seen=seen,
                dynamics=mass,
                where=entry,
            )
        elif body.is_line:
            (line,) = body.outlines
            self._builder.line(moved(line, at), seen)
        else:
            self._builder.solid(body.outlines, at, seen)

    def _color(self, table: Table, otherwise: str) -> str:
        value = table.get("color")
        if value is None or not isinstance(value.data, str):
            return otherwise
        if value.data == "cycle":
            return CYCLE[self._count % len(CYCLE)]
        return LETTERS.get(value.data, value.data)

    def _mass(self, table: Table, entry: Value) -> DynamicsSpec | None:
        """Return the mass properties of an obstacle; None if it cannot be moved."""
        mass = table["mass"].number(0.0, math.inf) if "mass" in table else math.inf
        if math.isinf(mass):
            return None

        def value(key: str, world: Value | None, otherwise: float) -> float:
            own = table.get(key) or world
            return otherwise if own is None else own.number(0.0)

        inertia = table.get("inertia")
        with blamed_on(entry):
            return DynamicsSpec(
                mass=mass,
                inertia=None if inertia is None else inertia.number(0.0),
                floor_friction=value("friction", self._friction, 0.5),
                restitution=value("restitution", self._restitution, 0.0),
            )

    def _drive(self, table: Table, motion: Table, name: str) -> Driven:
        """Return the drive of an object."""
        axes = 3 if name == "omni_angular" else 2

        def vector(key: str, otherwise: float) -> list[float]:
            if key not in table or table[key].data is None:
                return [otherwise] * axes
            found = list(infinite_numbers(table[key], 1, 4))
            return (found + [found[-1]] * axes)[:axes]

        top, ramps = vector("vel_max", 1.0), vector("acce", math.inf)
        back = vector("vel_min", 1.0) if "vel_min" in table else top
        if "vel_min" in table and [abs(v) for v in back] != [abs(v) for v in top]:
            self._notes.add(
                "vel_min",
                table["vel_min"],
                '"vel_min" is left out: "vel_max" is the top speed in both directions',
            )

        if name == "omni":
            return Driven(
                Drive.OMNI, limits(top[0], top[1], 0.0, (ramps[0], ramps[1], 0.0))
            )
        if name == "omni_angular":
            return Driven(
                Drive.OMNI,
                limits(top[0], top[1], top[2], (ramps[0], ramps[1], ramps[2])),
            )
        if name == "diff":
            return Driven(
                Drive.DIFF, limits(top[0], 0.0, top[1], (ramps[0], 0.0, ramps[1]))
            )

        mode = motion["mode"].text("steer", "angular") if "mode" in motion else "steer"
        shape = table["shape"].table() if "shape" in table else {}
        base = motion.get("wheelbase") or shape.get("wheelbase")
        axle = 1.0 if base is None else base.number(1e-3, MAX_SIDE)
        # The second component of the speeds is the steering angle, or its rate.
        by_rate = mode == "angular"
        steer = WIDE if by_rate else abs(top[1])
        turn = turn_rate(top[0], steer, axle)
        return car(
            limits(top[0], 0.0, turn, (ramps[0], 0.0, 0.0)),
            axle,
            steer,
            rate=abs(top[1]) if by_rate else abs(ramps[1]),
        )

    def _program(
        self, table: Table, goals: list[tuple[float, float]], top: float
    ) -> Program | None:
        """Return the controller that stands for a behaviour of ir-sim."""
        found = None
        for kind in ("group_behavior", "behavior"):
            # An object's own behaviour has precedence over the behaviour of its group.
            if kind in table and table[kind].data is not None:
                value = table[kind]
                own = {"name": value} if isinstance(value.data, str) else value.table()
                KEYS.check(kind, own, self._notes)
                found = own if "name" in own else found
        if found is None:
            return None

        name = found["name"].text()
        if name not in CONTROLLERS:
            self._notes.add(
                f"behavior {name}",
                found["name"],
                f'behavior "{shown(name)}": there is no such controller; the robot '
                "waits for a client",
            )
            return None

        for key in ("vmax", "maxSpeed"):
            if key in found and found[key].data is not None:
                top = found[key].number(0.0, 1e3, above=True)
        options: dict[str, Any] = {"speed": max(0.01, min(top, 100.0))}
        controller = CONTROLLERS[name]
        if "wander" in found and found["wander"].flag():
            low, high = (0.0, 0.0), (10.0, 10.0)
            if "range_low" in found:
                low = found["range_low"].point()
            if "range_high" in found:
                high = found["range_high"].point()
            if not (low[0] < high[0] and low[1] < high[1]):
                raise found["name"].error(
                    f"expected range_low below range_high, found {low} and {high}"
                )
            options["area"] = [*low, *high]
            controller = "walk" if name == "dash" else controller
        else:
            loops = "loop" in found and found["loop"].flag()
            options["points"] = [list(goal) for goal in goals]
            options["order"] = "loop" if loops and len(goals) > 1 else "once"
            if "goal_threshold" in table:
                near = table["goal_threshold"].number(0.0, 1e3, above=True)
                options["reached"] = max(1e-3, near)
        if "safe_radius" in found:
            options["safety"] = found["safe_radius"].number(0.0, 100.0)
        return Program(name=controller, options=options)

    def _lasers(self, table: Table) -> tuple[LaserSpec, ...]:
        return tuple(
            laser
            for value in (table["sensors"].entries() if "sensors" in table else ())
            if (laser := self._laser(value)) is not None
        )

    def _laser(self, value: Value) -> LaserSpec | None:
        table = value.table()
        KEYS.check("sensor", table, self._notes)
        given = table.get("name") or table.get("type")
        name = "lidar2d" if given is None else given.text()
        if name not in ("lidar2d", "fmcw_lidar2d"):
            self._notes.add(
                f"sensor {name}", value, f'the sensor "{shown(name)}" is left out'
            )
            return None

        def number(key: str, otherwise: float, high: float = 1e6) -> float:
            return table[key].number(0.0, high) if key in table else otherwise

        noisy = "noise" in table and table["noise"].flag()
        time = number("scan_time", 0.0)
        with blamed_on(value):
            return LaserSpec(
                type_name=name,
                pose=table["offset"].pose() if "offset" in table else Pose(),
                fov=min(2.0 * math.pi, number("angle_range", math.pi)),
                samples=table["number"].whole(1, MAX_SAMPLES)
                if "number" in table
                else 100,
                range_min=number("range_min", 0.0),
                range_max=number("range_max", 10.0),
                range_deviation=number("std", 0.2) if noisy else 0.0,
                # A uniform error of the half-width √3·σ has the standard deviation σ.
                angle_noise=math.sqrt(3.0) * number("angle_std", 0.0) if noisy else 0.0,
                update_rate=min(MAX_RATE_HZ, 1.0 / time) if time else 0.0,
            )


def _points(goal: Value | None) -> list[tuple[float, float]]:
    """Return the goals of an object, one or several points, m."""
    if goal is None or goal.data is None:
        return [(1.0, 9.0)]
    if isinstance(goal.data, list) and any(isinstance(g, list) for g in goal.data):
        return [entry.point() for entry in goal.entries()]
    return [goal.point()]


def _of_one(table: Table, index: int) -> Table:
    """Return the values for one of the objects that an entry describes.

    A list of numbers is one vector for all objects; but masses, frictions, inertias and
    restitutions have a number for each object. Other lists have a value for each object,
    and the last value is used for all further objects.
    """
    found = dict(table)
    for key, value in table.items():
        # Each object gets all sensors of a list; a list of lists has a list for each
        # object.
        items = value.data
        if not isinstance(items, list) or not items:
            continue
        if key == "sensors":
            several = all(isinstance(item, list) for item in items)
        elif key in ("mass", "friction", "inertia", "restitution"):
            several = True
        else:
            several = not all(isinstance(v, int | float) for v in items)
        if several:
            found[key] = value.entry(min(index, len(items) - 1))
    return found


__all__ = ["fits", "read"]
