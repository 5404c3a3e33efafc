"""Models of Flatland: bodies with footprints, joints, drives, lasers and motion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from botyard.formats.base import Source
from botyard.formats.importers.builder import Builder, robot_spec
from botyard.formats.importers.drives import WIDE, Driven, car, limits, turn_rate
from botyard.formats.importers.flatlandkeys import KEYS
from botyard.formats.importers.shapes import MAX_SIDE, circle, moved, polygon
from botyard.formats.importers.values import Value, blamed_on, read_yaml
from botyard.geometry import Outline, Pose, compose, inverse, transform_point
from botyard.model.dynamics import DynamicsSpec
from botyard.model.kinematics import Drive, MotionLimits
from botyard.model.sensors import MAX_RATE_HZ, MAX_SAMPLES, LaserSpec
from botyard.model.world import Program, thing
from botyard.names import shown
from botyard.numerics.elementary import atan2, cosine_sine, hypot

Table = Mapping[str, Value]
USUAL: Final = MotionLimits()
"""Top speeds of drives without a limit: those of botyard's models."""
FLOOR_FRICTION: Final = 0.5
"""Friction of objects on the floor; Flatland has none."""


@dataclass(slots=True)
class Body:
    """Body of a model.

    Attributes
    ----------
    name : str
        Name.
    pose : Pose
        Pose in the model.
    kind : str
        ``dynamic``, ``static`` or ``kinematic``.
    outlines : tuple of outlines
        Solid footprints in the body's frame, m.
    mass, friction, restitution : float
        Mass, kg, and coefficients of friction and restitution of the first footprint.
    color : str
        Colour.
    layers : set of str
        Names of the layers of its footprints.
    """

    name: str
    pose: Pose = Pose()
    kind: str = "dynamic"
    outlines: tuple[Outline, ...] = ()
    mass: float = 0.0
    friction: float = 0.0
    restitution: float = 0.0
    color: str = "light slate gray"
    layers: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Joint:
    """Joint of two bodies: their names, the anchor on each body, m, and the angle, rad."""

    first: str
    first_anchor: tuple[float, float]
    second: str
    second_anchor: tuple[float, float]
    angle: float


@dataclass(slots=True)
class Model:
    """Model of Flatland: the contents of a model file.

    Attributes
    ----------
    bodies : dict of str to Body
        Bodies by name.
    joints : dict of str to Joint
        Joints by name.
    drive : (Driven, str, Pose) or None
        Drive, its body, and the robot's origin on that body; None: nothing drives the
        model.
    lasers : list of (str, LaserSpec)
        Body and laser.
    tweens : dict of str to (tuple, float, str)
        Body → displacement x, y, m, duration of one pass, s, and mode.
    laser_layers, body_layers : set of str
        Layers that its lasers see, and that its bodies touch.
    """

    bodies: dict[str, Body] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    drive: tuple[Driven, str, Pose] | None = None
    lasers: list[tuple[str, LaserSpec]] = field(default_factory=list)
    tweens: dict[str, tuple[tuple[float, float], float, str]] = field(
        default_factory=dict
    )
    laser_layers: set[str] = field(default_factory=set)

    @property
    def body_layers(self) -> set[str]:
        """Layers that its bodies touch."""
        return {name for body in self.bodies.values() for name in body.layers}

    def place(self, builder: Builder, name: str, at: Pose, where: Value) -> None:
        """Add the model to a world."""
        builder.meter.add("references", len(self.bodies) + 1, where.line)
        if self.drive is not None:
            self._place_robot(builder, name, at, where)
            return
        several = len(self.bodies) > 1
        for body in self.bodies.values():
            title = f"{name} {body.name}" if several else name
            pose = compose(at, body.pose)
            if not body.outlines:
                continue
            if body.name in self.tweens:
                self._place_mover(builder, title, pose, body, where)
            elif body.kind == "static" or not body.mass:
                builder.solid(body.outlines, pose)
            else:
                with blamed_on(where):
                    mass = DynamicsSpec(
                        mass=body.mass,
                        friction=min(body.friction, 1e3),
                        restitution=min(body.restitution, 1.0),
                        floor_friction=FLOOR_FRICTION,
                    )
                builder.box(
                    title,
                    pose,
                    body.outlines,
                    color=body.color,
                    dynamics=mass,
                    where=where,
                )

    def _place_robot(self, builder: Builder, name: str, at: Pose, where: Value) -> None:
        assert self.drive is not None
        driven, base, origin = self.drive
        back = inverse(origin)
        parts = self._on(base, builder, where)
        outlines = tuple(
            moved(outline, compose(back, mount))
            for part, mount in parts.items()
            for outline in self.bodies[part].outlines
        )
        if not outlines:
            raise where.error(
                f'expected a solid footprint of the body "{shown(base)}", found none'
            )
        lasers = tuple(
            replace(laser, pose=compose(compose(back, parts[body]), laser.pose))
            for body, laser in self.lasers
            if body in parts
        )
        with blamed_on(where):
            spec = robot_spec(
                "flatland_robot",
                outlines,
                driven,
                color=self.bodies[base].color,
                lasers=lasers,
            )
        pose = compose(compose(at, self.bodies[base].pose), origin)
        builder.robot(spec, name, pose, where)

    def _on(self, base: str, builder: Builder, where: Value) -> dict[str, Pose]:
        """Return the bodies that joints fix to a body, with their poses on it."""
        found = {base: Pose()}
        pending = [base]
        while pending:
            known = pending.pop()
            for joint in self.joints.values():
                ends = (
                    (
                        joint.first,
                        joint.first_anchor,
                        joint.second,
                        joint.second_anchor,
                    ),
                    (
                        joint.second,
                        joint.second_anchor,
                        joint.first,
                        joint.first_anchor,
                    ),
                )
                for near, anchor, far, other in ends:
                    if near != known or far in found or far not in self.bodies:
                        continue
                    turn = joint.angle if near == joint.first else -joint.angle
                    c, s = cosine_sine(turn)
                    x, y = other
                    # The anchors of both bodies meet.
                    step = Pose(
                        anchor[0] - (c * x - s * y), anchor[1] - (s * x + c * y), turn
                    )
                    found[far] = compose(found[known], step)
                    pending.append(far)
        for name in self.bodies:
            if name not in found:
                builder.notes.add(
                    f"loose {name}",
                    where,
                    f'the body "{shown(name)}" is left out: no joint fixes it to '
                    f'"{shown(base)}"',
                )
        return found

    def _place_mover(
        self, builder: Builder, name: str, at: Pose, body: Body, where: Value
    ) -> None:
        (dx, dy), duration, mode = self.tweens[body.name]
        speed = max(0.01, min(100.0, hypot(dx, dy) / duration))
        # `delta` is relative to the body's start pose and frame.
        x, y = transform_point(at, dx, dy)
        points = [[at.x, at.y], [x, y]]
        options = {
            "points": points if mode != "once" else points[1:],
            "order": "once" if mode == "once" else "back",
            "speed": speed,
        }
        first, *rest = body.outlines
        with blamed_on(where):
            spec = thing(first, parts=tuple(rest), color=body.color, max_speed=speed)
        builder.robot(
            spec,
            name,
            at,
            where,
            Program(name="waypoints", options=options),
            served=False,
        )


def read_model(source: Source, builder: Builder) -> Model:
    """Return the model of a file.

    Raises
    ------
    WorldFileError
        The file is invalid. The error names the file, the line, the expected and the
        found value.
    """
    return _ModelReader(builder).run(read_yaml(source, builder.meter))


class _ModelReader:
    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._notes = builder.notes
        self._model = Model()

    def run(self, file: Value) -> Model:
        table = file.table()
        KEYS.check("model", table, self._notes)
        for value in self._enabled(table, "bodies", "body"):
            self._body(value)
        if not self._model.bodies:
            raise file.fail("a model with bodies")
        for value in self._enabled(table, "joints", "joint"):
            self._joint(value)
        for value in table["plugins"].entries() if "plugins" in table else ():
            plugin = value.table()
            kind = plugin["type"].text() if "type" in plugin else ""
            if "enabled" in plugin and not plugin["enabled"].flag():
                continue
            self._plugin(kind, plugin, value)
        return self._model

    def _enabled(self, table: Table, key: str, kind: str) -> list[Value]:
        found = []
        for value in table[key].entries() if key in table else ():
            entry = value.table()
            KEYS.check(kind, entry, self._notes)
            if "enabled" not in entry or entry["enabled"].flag():
                found.append(value)
        return found

    def _body(self, value: Value) -> None:
        table = value.table()
        name = table["name"].text() if "name" in table else ""
        body = Body(name)
        for key in ("origin", "pose"):
            if key in table:
                body.pose = table[key].pose()
        if "type" in table:
            body.kind = table["type"].text("dynamic", "static", "kinematic")
        if "color" in table:
            r, g, b, *_ = table["color"].numbers(3, 4)
            shades = (max(0, min(255, round(255 * v))) for v in (r, g, b))
            body.color = "#" + "".join(f"{shade:02x}" for shade in shades)
        outlines: list[Outline] = []
        for entry in table["footprints"].entries() if "footprints" in table else ():
            outline = self._footprint(entry, body, first=not outlines)
            if outline is not None:
                outlines.append(outline)
        body.outlines = tuple(outlines)
        self._model.bodies[name] = body

    def _footprint(self, value: Value, body: Body, *, first: bool) -> Outline | None:
        """Return a solid footprint; None: it is no part of the body."""
        table = value.table()
        KEYS.check("footprint", table, self._notes)
        kind = table["type"].text("circle", "polygon") if "type" in table else "polygon"
        if kind == "circle":
            if "radius" not in table:
                raise value.fail("a circle with a radius")
            x, y = table["center"].point() if "center" in table else (0.0, 0.0)
            radius = table["radius"].number(0.0, MAX_SIDE, above=True)
            outline = moved(circle(radius), Pose(x, y))
        else:
            if "points" not in table:
                raise value.fail("a polygon with points")
            outline = polygon(table["points"])
        for key, is_part in (
            ("sensor", False),
            ("is_sensor", False),
            ("collision", True),
        ):
            if key in table and table[key].flag() is not is_part:
                return None
        if "layers" in table:
            body.layers |= {entry.text() for entry in table["layers"].entries()}
        else:
            body.layers.add("all")
        density = table["density"].number(0.0) if "density" in table else 0.0
        body.mass += density * _area(outline)
        if first:
            for key in ("friction", "restitution"):
                if key in table:
                    setattr(body, key, table[key].number(0.0))
        return outline

    def _joint(self, value: Value) -> None:
        table = value.table()
        if "type" in table:
            table["type"].text("weld", "revolute")
        ends = table["bodies"].entries() if "bodies" in table else []
        if len(ends) != 2:
            raise value.fail("a joint of two bodies")
        names, anchors = [], []
        for end in ends:
            entry = end.table()
            if "name" not in entry:
                raise end.fail("the name of a body")
            names.append(entry["name"].text())
            anchors.append(entry["anchor"].point() if "anchor" in entry else (0.0, 0.0))
        angle = table["angle"].number() if "angle" in table else 0.0
        title = str(table["name"].data) if "name" in table else str(id(value))
        self._model.joints[title] = Joint(
            names[0], anchors[0], names[1], anchors[1], angle
        )

    # -- plugins

    def _plugin(self, kind: str, table: Table, value: Value) -> None:
        if kind in ("DiffDrive", "TricycleDrive", "Laser", "Tween"):
            KEYS.check(kind, table, self._notes)
            body = table["body"].text() if "body" in table else ""
            if body not in self._model.bodies:
                raise value.error(
                    f'body: expected the name of a body of this model, found "{shown(body)}"'
                )
        if kind == "DiffDrive":
            linear = self._dynamics(table, "linear_dynamics", USUAL.max_speed.x)
            angular = self._dynamics(table, "angular_dynamics", USUAL.max_speed.a)
            driven = Driven(Drive.DIFF, _limits(linear, angular))
            self._model.drive = (driven, body, Pose())
        elif kind == "TricycleDrive":
            self._tricycle(table, value, body)
        elif kind == "Laser":
            self._laser(table, value, body)
        elif kind == "Tween":
            self._tween(table, value, body)
        else:
            self._notes.add(
                f"plugin {kind}",
                value,
                f'the plugin "{shown(kind)}" is left out: code of Flatland does not run',
            )

    def _dynamics(
        self, table: Table, key: str, usual: float
    ) -> tuple[float, float, float]:
        """Return top speed, acceleration and deceleration of an axis."""
        own = table[key].table() if key in table else {}
        KEYS.check("dynamics", own, self._notes)

        def number(name: str, otherwise: float) -> float:
            return own[name].number(0.0, math.inf) if name in own else otherwise

        speed = number("velocity_limit", 0.0)
        ramp = number("acceleration_limit", 0.0)
        return speed or usual, ramp, number("deceleration_limit", ramp)

    def _tricycle(self, table: Table, value: Value, body: str) -> None:
        linear = self._dynamics(table, "linear_dynamics", USUAL.max_speed.x)
        rate, *_ = self._dynamics(table, "angular_dynamics", 0.0)
        for key in ("max_steer_velocity", "max_angular_velocity"):
            if key in table:
                rate = table[key].number(0.0, math.inf)
        # In Flatland 0 means no limit; botyard uses `WIDE` instead.
        steer = (
            table["max_steer_angle"].number(0.0) if "max_steer_angle" in table else 0.0
        ) or WIDE
        origin, base, track = self._axles(table, body)
        turn = turn_rate(min(linear[0], 1e3), steer, base)
        driven = car(
            _limits(linear, (turn, 0.0, 0.0)),
            base,
            steer,
            rate=rate,
            track=track,
            has_pair=False,
            # The turn rate of a Twist is the angle of the front wheel (documentation).
            by_angle=True,
        )
        self._model.drive = (driven, body, origin)

    def _axles(self, table: Table, body: str) -> tuple[Pose, float, float | None]:
        """Return the middle of the rear axle, the wheelbase, m, and the track, m.

        The front wheel of Flatland is in the origin of the body.
        """
        anchors = []
        for key in (
            "front_wheel_joint",
            "rear_left_wheel_joint",
            "rear_right_wheel_joint",
        ):
            joint = self._model.joints.get(table[key].text()) if key in table else None
            if joint is None:
                return Pose(-1.0), 1.0, None
            anchors.append(
                joint.first_anchor if joint.first == body else joint.second_anchor
            )
        (fx, fy), (ax, ay), (bx, by) = anchors
        x, y = (ax + bx) / 2.0, (ay + by) / 2.0
        base = hypot(x - fx, y - fy)
        # The robot's heading is the direction from the rear axle to the front wheel.
        heading = atan2(fy - y, fx - x) if base else 0.0
        return Pose(x, y, heading), max(1e-3, base), hypot(ax - bx, ay - by) or None

    def _laser(self, table: Table, value: Value, body: str) -> None:
        if "range" not in table or "angle" not in table:
            raise value.fail("a laser with a range and an angle")
        angle = table["angle"].table()
        try:
            low, high, step = (
                angle[key].number(-100.0, 100.0) for key in ("min", "max", "increment")
            )
        except KeyError:
            raise table["angle"].fail("min, max and increment") from None
        # A negative increment scans clockwise, from the larger angle to the smaller.
        clockwise = step < 0.0
        if clockwise:
            low, high, step = high, low, -step
        if not (step > 0.0 and low <= high):
            first, last = (high, low) if clockwise else (low, high)
            raise table["angle"].error(
                "expected an increment other than 0, with the sign of max - min; found "
                f"min {first:g}, max {last:g}, increment {-step if clockwise else step:g}"
            )
        samples = math.floor((high - low) / step + 1e-9) + 1
        if samples > MAX_SAMPLES:
            raise table["angle"].error(
                f"expected at most {MAX_SAMPLES} rays, found {samples}"
            )
        fov = (samples - 1) * step
        mount = table["origin"].pose() if "origin" in table else Pose()
        rate = (
            table["update_rate"].number(0.0, math.inf)
            if "update_rate" in table
            else 0.0
        )
        flipped = "upside_down" in table and table["upside_down"].flag()
        with blamed_on(value):
            laser = LaserSpec(
                type_name="laser",
                pose=compose(mount, Pose(0.0, 0.0, low + fov / 2.0)),
                fov=fov,
                samples=samples,
                range_max=table["range"].number(0.0, above=True),
                range_deviation=table["noise_std_dev"].number(0.0)
                if "noise_std_dev" in table
                else 0.0,
                update_rate=rate if rate <= MAX_RATE_HZ else 0.0,
                flipped=flipped is not clockwise,
            )
        self._model.lasers.append((body, laser))
        if "layers" in table:
            self._model.laser_layers |= {e.text() for e in table["layers"].entries()}
        else:
            self._model.laser_layers.add("all")

    def _tween(self, table: Table, value: Value, body: str) -> None:
        x, y, turn = (
            (*table["delta"].numbers(2, 3), 0.0)[:3]
            if "delta" in table
            else (0.0, 0.0, 0.0)
        )
        if turn:
            self._notes.add(
                "tween turn",
                value,
                "the rotation of a tween is left out: botyard only moves its body",
            )
        duration = (
            table["duration"].number(0.0, above=True) if "duration" in table else 1.0
        )
        mode = table["mode"].text() if "mode" in table else "yoyo"
        if mode not in ("yoyo", "once"):
            self._notes.add(
                f"tween {mode}",
                value,
                f'the mode "{shown(mode)}" of a tween moves the body back and forth',
            )
        if x or y:
            self._model.tweens[body] = ((x, y), duration, mode)


def _limits(
    linear: tuple[float, float, float], angular: tuple[float, float, float]
) -> MotionLimits:
    ramps = limits(linear[0], 0.0, angular[0], (linear[1], 0.0, angular[1]))
    decel = limits(0.0, 0.0, 0.0, (linear[2], 0.0, angular[2])).accel
    return replace(ramps, decel=decel)


def _area(outline: Outline) -> float:
    """Return the area of a polygon, m²."""
    total = 0.0
    for (x0, y0), (x1, y1) in zip(outline, (*outline[1:], outline[0]), strict=True):
        total += x0 * y1 - x1 * y0
    return abs(total) / 2.0


__all__ = ["Model", "read_model"]
