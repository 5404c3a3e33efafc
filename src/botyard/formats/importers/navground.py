"""Worlds, scenarios and experiments of navground: a YAML file.

A world lists agents; a scenario has groups, whose values may be samplers; an experiment
has a scenario and times. Obstacles are discs, walls are lines. `navgroundkeys` has all
keys.

Source: the JSON schema that navground 0.7 prints, and the worlds that it makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from botyard.formats.base import Options, Source
from botyard.formats.importers.builder import Builder, robot_spec
from botyard.formats.importers.drives import Driven, car, limits, turn_rate
from botyard.formats.importers.navgroundkeys import KEYS
from botyard.formats.importers.samplers import Samplers
from botyard.formats.importers.shapes import MAX_SIDE, circle
from botyard.formats.importers.values import Value, blamed_on, read_yaml, top_keys
from botyard.geometry import Pose
from botyard.model.kinematics import Drive
from botyard.model.obstacles import Returns
from botyard.model.sensors import MAX_SAMPLES, LaserSpec
from botyard.model.world import Program, Settings, World
from botyard.names import shown
from botyard.numerics.elementary import cos, sin
from botyard.units import wrap_angle

Table = Mapping[str, Value]
MAX_NUMBER: Final = 20_000
TRIES: Final = 100
"""Number of random places that are tried for a robot of a scenario."""
KINDS: Final = ("Antipodal", "Corridor", "Cross", "CrossTorus", "Simple", "")
DIFFERENTIAL: Final = ("2WDiff", "2WDiffDyn", "Ahead")
CONTROLLERS: Final = {
    "ORCA": "orca",
    "HRVO": "orca",
    "HL": "orca",
    "SocialForce": "socialforce",
}
USUAL_SPEED: Final = 1.0
"""Top speed of a robot whose kinematics has no limit, m/s."""
USUAL_TURN: Final = 3.0
"""Top turn rate of a robot whose kinematics has no limit, rad/s."""
LIDARS: Final = ("Lidar", "pyLidar")


class _Place(NamedTuple):
    """Start pose and goals, m, that a scenario gives to a robot.

    Attributes
    ----------
    pose : Pose
        Start pose.
    goals : tuple of (float, float)
        Goals, in order.
    loops : bool
        Whether the robot drives to the goals again and again.
    reached : float
        Distance at which a goal counts as reached, m.
    """

    pose: Pose
    goals: tuple[tuple[float, float], ...]
    loops: bool
    reached: float = 0.1


def fits(source: Source) -> bool:
    """Return whether a YAML file is of navground, by its top-level keys."""
    found = top_keys(source)
    if "scenario" in found:
        return found <= set(KEYS.kinds["experiment"])
    return bool(found & {"groups", "agents"}) and found <= set(KEYS.kinds["world"])


def read(source: Source, options: Options = Options()) -> World:
    """Read a world, a scenario or an experiment.

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
        self._samplers = Samplers(0)
        self._placed: list[tuple[float, float]] = []
        self._count = 0

    def run(self, file: Value) -> World:
        table = file.table()
        settings = Settings()
        if "scenario" in table:
            KEYS.check("experiment", table, self._notes)
            settings = self._settings(table)
            table = table["scenario"].table()
        KEYS.check("world", table, self._notes)
        kind = table["type"].text(*KINDS) if "type" in table else ""
        self._scene(table, kind)
        for value in table["agents"].entries() if "agents" in table else ():
            agent = value.table()
            KEYS.check("agent", agent, self._notes)
            self._agent(agent, value, 0, None, "agent")
        for value in table["groups"].entries() if "groups" in table else ():
            self._group(value, table, kind)
        return self._builder.world(settings)

    def _settings(self, table: Table) -> Settings:
        step = table["time_step"].number(1e-6, 60.0) if "time_step" in table else 0.1
        steps = table["steps"].whole(0, 10**9) if "steps" in table else 1000
        seed = table["run_index"].whole(0, 2**31 - 1) if "run_index" in table else 0
        self._samplers = Samplers(seed)
        return Settings(
            seed=seed, step=step, duration=min(1e9, steps * step) if steps else None
        )

    def _number(self, table: Table, key: str, otherwise: float) -> float:
        if key not in table:
            return otherwise
        return self._samplers.numbers(table[key], 0)[0]

    def _size(self, table: Table, key: str, otherwise: float) -> float:
        size = self._number(table, key, otherwise)
        if not 0.0 < size <= MAX_SIDE:
            raise table[key].fail(f"a length greater than 0, at most {MAX_SIDE:g}")
        return size

    def _scene(self, table: Table, kind: str) -> None:
        for value in table["obstacles"].entries() if "obstacles" in table else ():
            disc = value.table()
            KEYS.check("obstacle", disc, self._notes)
            if "position" not in disc or "radius" not in disc:
                raise value.fail("a position and a radius")
            x, y = disc["position"].point()
            radius = disc["radius"].number(0.0, MAX_SIDE, above=True)
            self._builder.solid([circle(radius)], Pose(x, y))
        for value in table["walls"].entries() if "walls" in table else ():
            wall = value.table()
            KEYS.check("wall", wall, self._notes)
            ends = wall["line"].entries() if "line" in wall else []
            if len(ends) != 2:
                raise value.fail("a line of two points")
            self._builder.line([end.point() for end in ends])
        if kind == "Corridor":
            length, width = (
                self._size(table, "length", 10.0),
                self._size(table, "width", 1.0),
            )
            # navground's corridor repeats without end; here its walls are three times as
            # long.
            for y in (0.0, width):
                self._builder.line([(-length, y), (2.0 * length, y)])
            self._builder.view = (0.0, 0.0, length, width)
        if kind in ("Corridor", "CrossTorus"):
            self._notes.add(
                "lattice",
                table["type"],
                "the plane does not repeat beyond its borders; in navground it does",
            )
        if "bounding_box" in table:
            box = table["bounding_box"].table()
            low_x, low_y, high_x, high_y = (
                box[key].number() if key in box else 0.0
                for key in ("min_x", "min_y", "max_x", "max_y")
            )
            if low_x < high_x and low_y < high_y:
                self._builder.view = (low_x, low_y, high_x, high_y)

    # -- robots

    def _group(self, value: Value, scenario: Table, kind: str) -> None:
        group = value.table()
        KEYS.check("group", group, self._notes)
        number = self._number(group, "number", 1.0)
        if not 0 <= number <= MAX_NUMBER:
            raise group["number"].fail(f"a number from 0 to {MAX_NUMBER}")
        self._builder.meter.add("entities", int(number), value.line)
        for i in range(int(number)):
            place = self._place(scenario, kind, i, int(number))
            self._agent(group, value, i, place, "agent")

    def _place(self, scenario: Table, kind: str, i: int, number: int) -> _Place | None:
        """Return the place of a robot by the kind of its scenario."""
        if kind == "Antipodal":
            radius = self._size(scenario, "radius", 1.0)
            th = 2.0 * math.pi * i / number
            x, y = radius * cos(th), radius * sin(th)
            near = self._size(scenario, "tolerance", 0.1)
            at = Pose(x, y, wrap_angle(th + math.pi))
            return _Place(at, ((-x, -y),), False, near)
        if kind == "Corridor":
            length = self._size(scenario, "length", 10.0)
            width = self._size(scenario, "width", 1.0)
            x, y = self._free(scenario, (0.0, 0.0), (length, width))
            # Every second robot drives to the right end, the others to the left end.
            ahead = i % 2 == 0
            goal = (2.0 * length if ahead else -length, y)
            return _Place(Pose(x, y, 0.0 if ahead else math.pi), (goal,), False)
        if kind in ("Cross", "CrossTorus"):
            half = self._size(scenario, "side", 2.0) / 2.0
            if kind == "CrossTorus":
                x, y = self._free(scenario, (0.0, 0.0), (2.0 * half, 2.0 * half))
                th = wrap_angle((i % 4) * math.pi / 2.0)
                goal = (x + 2.0 * half * cos(th), y + 2.0 * half * sin(th))
                return _Place(Pose(x, y, th), (goal,), False)
            x, y = self._free(scenario, (-half, -half), (half, half))
            gx, gy = ((half, 0.0), (-half, 0.0), (0.0, half), (0.0, -half))[i % 4]
            near = self._size(scenario, "tolerance", 0.25)
            return _Place(Pose(x, y), ((gx, gy), (-gx, -gy)), True, near)
        return None

    def _free(
        self, scenario: Table, low: tuple[float, float], high: tuple[float, float]
    ) -> tuple[float, float]:
        margin = max(0.0, self._number(scenario, "agent_margin", 0.1))
        x, y = low
        for _ in range(TRIES):
            self._builder.meter.add("entities", 1 + len(self._placed) // 20)
            x = self._samplers.uniform(low[0], high[0])
            y = self._samplers.uniform(low[1], high[1])
            if all(
                (x - a) * (x - a) + (y - b) * (y - b) >= 4.0 * margin * margin
                for a, b in self._placed
            ):
                break
        self._placed.append((x, y))
        return x, y

    def _agent(
        self, agent: Table, value: Value, i: int, place: _Place | None, usual: str
    ) -> None:
        def numbers(key: str, count: int) -> tuple[float, ...] | None:
            return (
                None
                if key not in agent
                else self._samplers.numbers(agent[key], i, count)
            )

        def text(key: str, otherwise: str) -> str:
            found = self._samplers.value(agent[key], i) if key in agent else None
            if isinstance(found, Value) and isinstance(found.data, list):
                found = found.entry(0) if found.data else None
            data = found.data if isinstance(found, Value) else None
            return data if isinstance(data, str) and data else otherwise

        pose = Pose() if place is None else place.pose
        if (position := numbers("position", 2)) is not None:
            pose = pose._replace(x=position[0], y=position[1])
        if (heading := numbers("orientation", 1)) is not None:
            pose = pose._replace(th=wrap_angle(heading[0]))
        radius = (numbers("radius", 1) or (0.1,))[0]
        if not 0.0 < radius <= MAX_SIDE:
            raise agent["radius"].fail(f"a radius greater than 0, at most {MAX_SIDE:g}")
        driven = self._kinematics(agent.get("kinematics"), i)
        goals = () if place is None else place.goals
        options: dict[str, Any] = {}
        if place is not None:
            options["order"] = "loop" if place.loops else "once"
            options["reached"] = max(1e-3, min(place.reached, 1e3))
        if "task" in agent:
            goals = self._task(agent["task"], i, goals, options)
        free = numbers("ignore_collisions", 1) if _is_sampler(agent) else None
        passes = (
            bool(free[0])
            if free is not None
            else "ignore_collisions" in agent and agent["ignore_collisions"].flag()
        )
        base = text("name", text("type", usual))
        name = f"{base}_{self._count}"
        self._count += 1
        for number, (x, y) in enumerate(goals if "task" in agent else ()):
            self._builder.place(f"{name} goal {number + 1}", Pose(x, y))
        program = None
        if goals and "behavior" in agent:
            options["points"] = [list(goal) for goal in goals]
            program = self._program(
                agent["behavior"], i, driven.limits.max_speed.x, options
            )
        with blamed_on(value):
            spec = robot_spec(
                "navground_robot",
                (circle(radius),),
                driven,
                color=text("color", "royal blue"),
                lasers=self._lasers(agent, i),
                seen=Returns(obstacle=not passes),
            )
        self._builder.robot(spec, name, pose, value, program)

    def _kinematics(self, value: Value | None, i: int) -> Driven:
        table = {} if value is None else value.table()
        KEYS.check("kinematics", table, self._notes)

        def number(key: str, otherwise: float) -> float:
            if key not in table:
                return otherwise
            found = self._samplers.value(table[key], i)
            if isinstance(found, Value):
                return found.number(0.0, math.inf)
            return found[0]

        kind = table["type"].text() if "type" in table else "Omni"
        v, w = number("max_speed", math.inf), number("max_angular_speed", math.inf)
        v = v if math.isfinite(v) else USUAL_SPEED
        ramp = number("max_acceleration", 0.0)
        track = number("wheel_axis", 0.0) or None
        if kind in DIFFERENTIAL:
            # Wheels that run against each other give the top turn rate.
            turn = w if math.isfinite(w) else 2.0 * v / track if track else USUAL_TURN
            return Driven(Drive.DIFF, limits(v, 0.0, turn, (ramp, 0.0, 0.0)), track)
        turn = w if math.isfinite(w) else USUAL_TURN
        if kind == "Bicycle":
            axis = max(1e-3, number("axis", 1.0))
            steer = number("max_steering_angle", 1.0)
            turn = min(turn, turn_rate(v, steer, axis))
            return car(limits(v, 0.0, turn, (ramp, 0.0, 0.0)), axis, steer)
        if kind not in ("Omni", "4WOmni"):
            self._notes.add(
                f"kinematics {kind}",
                table["type"],
                f'the kinematics "{shown(kind)}" is not known: the robot gets an '
                "omnidirectional drive",
            )
        return Driven(Drive.OMNI, limits(v, v, turn, (ramp, ramp, 0.0)))

    def _task(
        self,
        value: Value,
        i: int,
        goals: tuple[tuple[float, float], ...],
        options: dict[str, Any],
    ) -> tuple[tuple[float, float], ...]:
        """Return the goals of a task, and set the controller's options for them in `options`."""
        task = value.table()
        KEYS.check("task", task, self._notes)
        kind = task["type"].text() if "type" in task else ""
        key = {"Waypoints": "waypoints", "Path": "points", "GoToPose": "point"}.get(
            kind
        )
        if key is None:
            self._notes.add(
                f"task {kind}",
                value,
                f'the task "{shown(kind)}" is left out: only Waypoints, Path and GoToPose '
                "are read",
            )
            return goals
        if key in task:
            found = self._samplers.value(task[key], i)
            if isinstance(found, Value):
                several = isinstance(found.data, list) and any(
                    isinstance(item, list) for item in found.data
                )
                points = found.entries() if several else [found]
                goals = tuple(point.point() for point in points if point.data)
            elif len(found) == 2:
                goals = ((found[0], found[1]),)
        loops = kind == "Waypoints" and ("loop" not in task or task["loop"].flag())
        options["order"] = "loop" if loops and len(goals) > 1 else "once"
        if "tolerance" in task:
            near = self._samplers.numbers(task["tolerance"], i)[0]
            options["reached"] = max(1e-3, min(near, 1e3))
        if "wait_time" in task:
            wait = self._samplers.numbers(task["wait_time"], i)[0]
            options["pause"] = max(0.0, min(wait, 1e6))
        return goals

    def _program(
        self, value: Value, i: int, top: float, options: dict[str, Any]
    ) -> Program | None:
        table = value.table()
        KEYS.check("behavior", table, self._notes)
        kind = table["type"].text() if "type" in table else ""
        if kind not in CONTROLLERS:
            self._notes.add(
                f"behavior {kind}",
                value,
                f'behavior "{shown(kind)}": there is no such controller; the robot waits '
                "for a client",
            )
            return None
        if "optimal_speed" in table:
            top = min(top, self._samplers.numbers(table["optimal_speed"], i)[0])
        if "safety_margin" in table:
            safety = self._samplers.numbers(table["safety_margin"], i)[0]
            options["safety"] = max(0.0, min(safety, 100.0))
        return Program(
            name=CONTROLLERS[kind],
            options=options | {"speed": max(0.01, min(top, 100.0))},
        )

    def _lasers(self, agent: Table, i: int) -> tuple[LaserSpec, ...]:
        found = []
        for key in ("state_estimation", "state_estimations"):
            for value in agent[key].entries() if key in agent else ():
                table = value.table()
                kind = table["type"].text() if "type" in table else ""
                if kind not in LIDARS:
                    self._notes.add(
                        f"sensor {kind}",
                        value,
                        f'the state estimation "{shown(kind)}" is left out: controllers '
                        "know the true positions",
                    )
                    continue
                KEYS.check("sensor", table, self._notes)
                found.append(self._laser(table, value, i))
        return tuple(found)

    def _laser(self, table: Table, value: Value, i: int) -> LaserSpec:
        def number(key: str, otherwise: float) -> float:
            return (
                self._samplers.numbers(table[key], i)[0] if key in table else otherwise
            )

        fov = min(2.0 * math.pi, number("field_of_view", 2.0 * math.pi))
        start = number("start_angle", -math.pi)
        count = number("resolution", 100.0)
        x, y = table["position"].point() if "position" in table else (0.0, 0.0)
        with blamed_on(value):
            return LaserSpec(
                type_name="lidar",
                pose=Pose(x, y, wrap_angle(start + fov / 2.0)),
                fov=fov,
                samples=max(0, int(min(count, MAX_SAMPLES + 1))),
                range_max=number("range", 1.0),
                range_deviation=number("error_std_dev", 0.0),
            )


def _is_sampler(agent: Table) -> bool:
    value = agent.get("ignore_collisions")
    return value is not None and isinstance(value.data, dict)


__all__ = ["fits", "read"]
