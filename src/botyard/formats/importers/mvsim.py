"""Worlds of MVSim (https://github.com/MRPT/mvsim), which are XML files.

`mvsimxml` replaces variables, loops and included files; `mvsimkeys` has all elements.
Lengths are m and angles degrees.

Source: the documentation of MVSim, "World XML".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from botyard.errors import MapError
from botyard.formats import rosmap
from botyard.formats.base import Options, Source, read_sibling
from botyard.formats.images import read_grey
from botyard.formats.importers.builder import Builder, robot_spec
from botyard.formats.importers.drives import (
    Driven,
    car,
    limits,
    turn_rate,
    with_four_wheels,
)
from botyard.formats.importers.mvsimkeys import KEYS
from botyard.formats.importers.mvsimxml import Expander
from botyard.formats.importers.sdfrobots import TOP
from botyard.formats.importers.shapes import MAX_SIDE, circle, moved
from botyard.formats.importers.values import Value, blamed_on
from botyard.formats.importers.xmlfile import Element, read_xml, root_tag
from botyard.geometry import Outline, Pose, compose, inverse
from botyard.model.dynamics import DynamicsSpec
from botyard.model.kinematics import Drive
from botyard.model.obstacles import Returns, rectangle
from botyard.model.scene import GeoReference
from botyard.model.sensors import MAX_RATE_HZ, MAX_SAMPLES, LaserSpec
from botyard.model.world import Program, Settings, World, thing
from botyard.names import shown
from botyard.units import from_deg, wrap_angle

CUT: Final = 0.2
"""Height of the plane in which lasers measure, m."""
FLAT: Final = ("ground_grid", "horizontal_plane", "skybox")
"""Classes of elements that have no walls."""
SOLID_BELOW: Final = 127.5
"""Grey value below which a pixel is solid."""
BODY: Final[Outline] = ((-0.4, -0.5), (0.4, -0.5), (0.4, 0.5), (-0.4, 0.5))
"""Body of a differential drive whose file has none (documentation)."""
CAR_BODY: Final[Outline] = (
    (-0.8, -1.0),
    (1.5, -0.9),
    (1.8, -0.8),
    (1.8, 0.8),
    (1.5, 0.9),
    (-0.8, 1.0),
)
"""Body of a car whose file has none (documentation)."""
PAIR: Final = (("l_wheel", 0.0, 0.5), ("r_wheel", 0.0, -0.5))
FOUR: Final = (
    ("lf_wheel", 0.2, 0.3),
    ("rf_wheel", 0.2, -0.3),
    ("lr_wheel", -0.2, 0.3),
    ("rr_wheel", -0.2, -0.3),
)
"""Wheels of differential drives (`PAIR`, `FOUR`): element, and default x and y, m."""
MARGIN: Final = 0.05
"""Margin of a body around its wheels, if only a mesh describes it, m."""


def fits(source: Source) -> bool:
    """Return whether a file is a world of MVSim, by its first element."""
    return root_tag(source).startswith(b"<mvsim_world")


def read(source: Source, options: Options = Options()) -> World:
    """Read a world.

    Raises
    ------
    WorldFileError
        The file is invalid. The error names the line, the expected and the found value.
    """
    builder = Builder(source, options)
    root = read_xml(source, builder.meter)
    if root.tag != "mvsim_world":
        raise root.fail("the element mvsim_world", root.tag)
    return _Reader(builder).run(Expander(builder).expand(root))


class _Reader:
    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._notes = builder.notes
        self._classes: dict[tuple[str, str], Element] = {}

    def run(self, root: Element) -> World:
        KEYS.check("world", root.keys(), self._notes)
        for child in root.children:
            if child.tag == "class":
                self._classes[child.prefix, child.attributes.get("name", "")] = child
            elif child.tag == "element":
                self._element(child)
            elif child.tag == "vehicle":
                self._vehicle(child)
            elif child.tag == "block":
                self._block(child)
            elif child.tag == "actor":
                self._actor(child)
            elif child.tag == "georeference":
                self._earth(child)
        step = root.given("simul_timestep")
        seconds = 0.0 if step is None else step.number(0.0, 60.0)
        return self._builder.world(
            Settings(step=max(1e-6, seconds) if seconds else None)
        )

    def _earth(self, element: Element) -> None:
        KEYS.check("georeference", element.keys(), self._notes)

        def number(name: str, most: float) -> float:
            value = element.given(name)
            return 0.0 if value is None else value.number(-most, most)

        self._builder.georeference = GeoReference(
            number("latitude", 90.0), number("longitude", 360.0), number("height", 1e5)
        )

    def _whole(self, kind: str, element: Element) -> Element:
        """Return an element with the values that it inherits from its class."""
        name = element.attributes.get("class")
        KEYS.check(kind, element.keys(), self._notes)
        if name is None:
            return element
        known = self._classes.get((kind, name))
        if known is None:
            raise element.fail(f"a class of {kind}", f'"{shown(name)}"')
        KEYS.check(kind, known.keys(), self._notes)
        own = {child.tag for child in element.children}
        # An element has the sensors of its class and its own ones; its other children
        # replace equal children of the class.
        inherited = [c for c in known.children if c.tag == "sensor" or c.tag not in own]
        return replace(
            element,
            attributes={**known.attributes, **element.attributes},
            children=[*inherited, *element.children],
        )

    # -- walls and maps

    def _element(self, element: Element) -> None:
        KEYS.check("element", element.keys(), self._notes)
        kind = element.attributes.get("class", "")
        if kind == "occupancy_grid":
            self._grid(element)
        elif kind == "vertical_plane":

            def number(name: str, otherwise: float) -> float:
                value = element.given(name)
                return otherwise if value is None else value.number()

            low = number("z", 0.0)
            if low <= CUT <= low + number("height", 3.0):
                ends = [
                    (number(f"x{k}", d), number(f"y{k}", d))
                    for k, d in ((0, -10.0), (1, -10.0))
                ]
                self._builder.line(ends)
        elif kind not in FLAT:
            self._notes.add(
                f"element {kind}",
                element,
                f'an element "{shown(kind)}" is left out: the world is flat',
            )

    def _grid(self, element: Element) -> None:
        name = element.given("file")
        if name is None:
            raise element.fail("a file")
        builder, meter = self._builder, self._builder.meter
        file = name.text()
        if file.endswith(".gridmap"):
            self._notes.add("gridmap", name, "maps of MRPT (.gridmap) are not read")
            return
        source = builder.source

        def sibling(of: Source, title: str, what: str) -> Source:
            try:
                path = of.sibling_file(title, what)
            except MapError as error:
                raise name.error(error.reason) from None
            return read_sibling(path, what, meter, name.error)

        found = sibling(source, file, "the map")
        if file.endswith((".yaml", ".yml")):
            m = rosmap.parse(found.text, found.name, meter)
            picture = sibling(
                replace(found, root=source.root), m.image, "the map's image"
            )
            solid = rosmap.occupied(read_grey(picture, meter), m)[::-1]
            size, at = m.resolution, Pose(*m.origin)
        else:
            grey = read_grey(found, meter, what="the map")
            solid = (grey < SOLID_BELOW)[::-1]
            given = element.given("resolution")
            size = 0.1 if given is None else given.number(0.0, MAX_SIDE, above=True)
            center = []
            for key, count in zip("xy", solid.shape[::-1], strict=True):
                pixel = element.given(f"centerpixel_{key}")
                center.append(count / 2.0 if pixel is None else pixel.number())
            at = Pose(-center[0] * size, -center[1] * size)
        rows, columns = solid.shape
        builder.grid(solid, (columns * size, rows * size), at)

    # -- blocks and actors

    def _block(self, element: Element) -> None:
        block = self._whole("block", element)
        if _flag(block, "intangible"):
            return
        outline, high = self._outline(block)
        if outline is None:
            self._notes.add(
                f"mesh {block.attributes.get('class', block.attributes.get('name', ''))}",
                element,
                "a block without corners or geometry is left out: meshes are not read",
            )
            return
        at, z = _pose(block)
        low = z + _number(block, "zmin", 0.0)
        top = z + _number(block, "zmax", 1.0 if high is None else high)
        # A robot cannot pass a low block, but its laser looks over it.
        seen = Returns(laser=1 if low <= CUT <= top else 0)
        if _flag(block, "static"):
            self._builder.solid([outline], at, seen)
            return
        with blamed_on(element.value()):
            mass = DynamicsSpec(
                mass=_number(block, "mass", 30.0),
                floor_friction=_number(block, "ground_friction", 0.5),
                friction=_number(block, "lateral_friction", 0.5),
                restitution=min(1.0, _number(block, "restitution", 0.01)),
            )
        self._builder.box(
            element.attributes.get("name") or block.attributes.get("class", "block"),
            at,
            (outline,),
            color=_color(block, "light slate gray"),
            seen=seen,
            dynamics=mass,
            where=element,
        )

    def _outline(self, block: Element) -> tuple[Outline | None, float | None]:
        """Return the outline of a block, m, and its height, if a geometry states it."""
        shape = block.child("shape")
        if shape is not None:
            return _corners(shape, self._builder), None
        geometry = block.child("geometry")
        if geometry is None:
            return None, None
        KEYS.check("geometry", geometry.keys(), self._notes)

        def size(name: str) -> float:
            value = geometry.given(name)
            if value is None:
                raise geometry.fail(name)
            return value.number(0.0, MAX_SIDE, above=True)

        kind = geometry.attributes.get("type", "")
        if kind == "cylinder":
            return circle(size("radius")), size("length")
        if kind == "sphere":
            return circle(size("radius")), 2.0 * size("radius")
        return rectangle(size("lx"), size("ly")), size("lz")

    def _actor(self, element: Element) -> None:
        actor = self._whole("actor", element)
        at, _ = _pose(actor)
        speed = max(0.01, min(100.0, _number(actor, "walking_speed", 1.4)))
        radius = _number(actor, "collision_radius", 0.3)
        path = actor.child("path")
        points = []
        loops = True
        if path is not None:
            KEYS.check("path", path.keys(), self._notes)
            points = [list(p.value().point()) for p in path.named("waypoint")]
            loops = path.given("loop") is None or _flag(path, "loop")
        program = None
        if points:
            options = {
                "points": points,
                "order": "loop" if loops and len(points) > 1 else "once",
                "speed": speed,
            }
            program = Program(name="waypoints", options=options)
        with blamed_on(element.value()):
            spec = thing(circle(max(radius, 1e-3)), max_speed=speed)
        name = element.attributes.get("name") or "actor"
        self._builder.robot(spec, name, at, element, program, served=False)

    # -- vehicles

    def _vehicle(self, element: Element) -> None:
        vehicle = self._whole("vehicle", element)
        dynamics = vehicle.child("dynamics")
        if dynamics is None:
            raise element.fail("dynamics")
        KEYS.check("dynamics", dynamics.keys(), self._notes)
        at, _ = _pose(vehicle)
        kind = dynamics.attributes.get("class", "")
        is_car = kind.startswith("ackermann")
        driven, axle, wheels = (
            self._car(dynamics) if is_car else self._differential(dynamics)
        )
        body = self._chassis(dynamics, CAR_BODY if is_car else BODY, wheels)
        self._notes.add(
            "top speed",
            element,
            f"MVSim's vehicles have no top speed: {TOP[0]:g} m/s and {TOP[1]:g} rad/s are "
            "assumed",
        )
        back = inverse(axle)
        lasers = tuple(
            replace(laser, pose=compose(back, laser.pose))
            for sensor in vehicle.named("sensor")
            if (laser := self._laser(sensor)) is not None
        )
        chassis = dynamics.child("chassis")
        with blamed_on(element.value()):
            spec = robot_spec(
                f"mvsim_{kind or 'robot'}",
                (moved(body, back),),
                driven,
                color=_color(chassis, "red") if chassis is not None else "red",
                lasers=lasers,
            )
        name = element.attributes.get("name") or "robot"
        self._builder.robot(spec, name, compose(at, axle), element)

    def _wheel(
        self, dynamics: Element, name: str, x: float, y: float
    ) -> tuple[float, float, float]:
        """Return place and radius of a wheel, m; without an element the given place."""
        wheel = dynamics.child(name)
        if wheel is None:
            return x, y, 0.2
        KEYS.check("wheel", wheel.keys(), self._notes)
        pos, size = wheel.given("pos"), wheel.given("diameter")
        if pos is not None:
            x, y = pos.point()
        radius = 0.2 if size is None else size.number(0.0, MAX_SIDE, above=True) / 2.0
        return x, y, radius

    def _differential(
        self, dynamics: Element
    ) -> tuple[Driven, Pose, list[tuple[float, float]]]:
        four = dynamics.attributes.get("class", "") == "differential_4_wheels"
        names = FOUR if four else PAIR
        wheels = [self._wheel(dynamics, *one) for one in names]
        xs, ys, radii = zip(*wheels, strict=True)
        track, base = max(ys) - min(ys), max(xs) - min(xs)
        driven = Driven(
            Drive.DIFF,
            limits(TOP[0], 0.0, TOP[1]),
            track or None,
            None,
            radii[0],
            four=Drive.SKID if four else None,
        )
        middle = Pose(sum(xs) / len(xs), sum(ys) / len(ys))
        return (
            with_four_wheels(driven, base or None, None),
            middle,
            _around(wheels),
        )

    def _car(self, dynamics: Element) -> tuple[Driven, Pose, list[tuple[float, float]]]:
        x, y, radius = self._wheel(dynamics, "rl_wheel", 0.0, 0.9)
        right = self._wheel(dynamics, "rr_wheel", x, -y)
        front = _number(dynamics, "f_wheels_x", 1.3)
        given = dynamics.given("f_wheels_d")
        track = 2.0 if given is None else given.number(0.0, MAX_SIDE, above=True)
        steer = from_deg(_number(dynamics, "max_steer_ang_deg", 30.0))
        base = front - x
        if not base:
            raise dynamics.fail("axles at different places", "one place")
        top = limits(TOP[0], 0.0, turn_rate(TOP[0], steer, base))
        driven = car(top, base, steer, track=track, wheel_radius=radius)
        half = track / 2.0
        wheels = [(x, y, radius), right, (front, half, radius), (front, -half, radius)]
        return driven, Pose(x, (y + right[1]) / 2.0), _around(wheels)

    def _chassis(
        self, dynamics: Element, usual: Outline, wheels: list[tuple[float, float]]
    ) -> Outline:
        """Return the body of a vehicle, m."""
        chassis = dynamics.child("chassis")
        if chassis is None:
            return usual
        KEYS.check("chassis", chassis.keys(), self._notes)
        shape = chassis.child("shape")
        if shape is not None:
            return _corners(shape, self._builder)
        if chassis.child("shape_from_visual") is None:
            return usual
        # The body is a mesh, which is not read; it contains at least the wheels.
        xs, ys = zip(*wheels, strict=True)
        x0, x1 = min(xs) - MARGIN, max(xs) + MARGIN
        y0, y1 = min(ys) - MARGIN, max(ys) + MARGIN
        return (x0, y0), (x1, y0), (x1, y1), (x0, y1)

    def _laser(self, sensor: Element) -> LaserSpec | None:
        kind = sensor.attributes.get("class", "")
        if kind != "laser":
            self._notes.add(
                f"sensor {kind}", sensor, f'a sensor "{shown(kind)}" is left out'
            )
            return None
        KEYS.check("sensor", sensor.keys(), self._notes)
        mount = Pose()
        flat, space = sensor.given("pose"), sensor.given("pose_3d")
        if space is not None:
            x, y, _, th, *_ = (*space.numbers(3, 6), 0.0, 0.0, 0.0)
            mount = Pose(x, y, wrap_angle(from_deg(th)))
        elif flat is not None:
            x, y, th, *_ = (*flat.numbers(2, 6), 0.0)
            mount = Pose(x, y, wrap_angle(from_deg(th)))
        rays = sensor.given("nrays")
        period = _number(sensor, "sensor_period", 0.1)
        with blamed_on(sensor.value()):
            return LaserSpec(
                type_name="laser",
                pose=mount,
                fov=from_deg(min(360.0, _number(sensor, "fov_degrees", 180.0))),
                samples=181 if rays is None else rays.whole(1, MAX_SAMPLES),
                range_max=_number(sensor, "max_range", 80.0),
                range_deviation=_number(sensor, "range_std_noise", 0.01),
                # A uniform error of the half-width √3·σ has the standard deviation σ.
                angle_noise=math.sqrt(3.0)
                * from_deg(_number(sensor, "angle_std_noise_deg", 0.01)),
                update_rate=min(MAX_RATE_HZ, 1.0 / period) if period else 0.0,
            )


def _around(
    wheels: Iterable[tuple[float, float, float]],
) -> list[tuple[float, float]]:
    """Return the foremost and the rearmost point of each wheel, m."""
    return [(x + s * r, y) for x, y, r in wheels for s in (-1.0, 1.0)]


def _number(element: Element, name: str, otherwise: float) -> float:
    value = element.given(name)
    return otherwise if value is None or value.data == "" else value.number()


def _flag(element: Element, name: str) -> bool:
    value = element.given(name)
    return value is not None and value.flag()


def _color(element: Element, otherwise: str) -> str:
    value = element.given("color")
    # The last two digits of a colour are its opacity.
    text = otherwise if value is None else str(value.data).strip()
    return text[:7] if text.startswith("#") else otherwise


def _pose(element: Element) -> tuple[Pose, float]:
    """Return the start pose of an object and its height, m."""
    space, flat = element.given("init_pose3d"), element.given("init_pose")
    if space is not None:
        x, y, z, th, *_ = (*space.numbers(3, 6), 0.0)
        return Pose(x, y, wrap_angle(from_deg(th))), z
    if flat is None:
        return Pose(), 0.0
    x, y, th, *_ = (*flat.numbers(2, 6), 0.0)
    return Pose(x, y, wrap_angle(from_deg(th))), 0.0


def _corners(shape: Element, builder: Builder) -> Outline:
    """Return the corners of a body, m."""
    points: list[Value] = [p.value() for p in shape.named("pt")]
    builder.meter.add("vertices", len(points), shape.line)
    corners = tuple(p.point() for p in points)
    if len(set(corners)) < 3:
        raise shape.fail("at least 3 different points", str(len(set(corners))))
    return corners


__all__ = ["fits", "read"]
