"""Experiment files of ARGoS 3: arena, boxes, cylinders, robots, seed.

Lengths are m, angles degrees; vectors are texts such as ``1,2,0``. An orientation lists
the turns about z, y and x. `argoskeys` has all elements.

Source: the manual of ARGoS 3 and its published experiment files.
"""

from __future__ import annotations

import random
from typing import Final

import numpy as np

from botyard.errors import ArgumentError, BudgetError, FormatError
from botyard.formats.base import Options, Source, read_source
from botyard.formats.floorkeys import read_pixels
from botyard.formats.importers.argoskeys import KEYS
from botyard.formats.importers.builder import Builder
from botyard.formats.importers.shapes import MAX_SIDE, circle, rectangle
from botyard.formats.importers.values import blamed_on
from botyard.formats.importers.xmlfile import Element, read_xml, root_tag
from botyard.geometry import Outline, Pose
from botyard.model import library
from botyard.model.dynamics import DynamicsSpec
from botyard.model.floor import MAX_PIXELS, Floor, FloorPicture
from botyard.model.robot import RobotSpec
from botyard.model.world import Settings, World
from botyard.names import shown
from botyard.numerics.elementary import hypot
from botyard.units import from_deg, wrap_angle

MAX_QUANTITY: Final = 20_000
MAX_TRIALS: Final = 1000
"""Largest number of places that are tried for an entity."""
FLOOR_FRICTION: Final = 0.5
ROBOTS: Final = {"foot-bot": "foot-bot", "e-puck": "e-puck", "kheperaiv": "khepera4"}
"""Shipped models of robots by their element."""
RINGS: Final = {"foot-bot": (12, 0.085), "e-puck": (8, 0.035), "kheperaiv": (3, 0.03)}
"""Number of LEDs of robots, and radius of their ring, m (users' guides of the robots)."""


def fits(source: Source) -> bool:
    """Return whether a file is an experiment of ARGoS, by its first element."""
    return root_tag(source).startswith(b"<argos-configuration")


def read(source: Source, options: Options = Options()) -> World:
    """Read an experiment.

    Raises
    ------
    WorldFileError
        The file is invalid. The error names the line, the expected and the found value.
    """
    builder = Builder(source, options)
    return _Reader(builder).run(read_xml(source, builder.meter))


class _Reader:
    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._notes = builder.notes
        self._draw = random.Random("0 argos")
        # x, y and radius of each entity so far, m: randomly drawn places avoid them.
        self._discs: list[tuple[float, float, float]] = []
        # Actuators and sensors by the name of their controller.
        self._devices: dict[str, set[str]] = {}
        self._models: dict[str, RobotSpec] = {}

    def run(self, root: Element) -> World:
        if root.tag != "argos-configuration":
            raise root.fail("the element argos-configuration", root.tag)
        KEYS.check("argos-configuration", root.keys(), self._notes)
        settings = self._settings(root)
        arena = root.child("arena")
        if arena is None:
            raise root.fail("an arena")
        KEYS.check("arena", arena.keys(), self._notes)
        size, center = arena.attribute("size"), arena.attribute("center")
        if size is not None:
            length, width = size.numbers(3, bound=MAX_SIDE)[:2]
            x, y = (0.0, 0.0) if center is None else center.point()
            if length > 0.0 and width > 0.0:
                self._builder.view = (
                    x - length / 2.0,
                    y - width / 2.0,
                    x + length / 2.0,
                    y + width / 2.0,
                )
        floor = arena.child("floor")
        if floor is not None:
            self._floor(floor)
        controllers = root.child("controllers")
        if controllers is not None:
            self._controllers(controllers)
        # Entities with given places come first, so that randomly placed ones avoid
        # them.
        for child in arena.children:
            if child.tag in ("box", "cylinder", *ROBOTS):
                self._entity(child, self._pose(child), _name(child))
        for child in arena.named("distribute"):
            self._distribute(child)
        return self._builder.world(settings)

    def _controllers(self, element: Element) -> None:
        """Read which devices controllers use."""
        for one in element.children:
            KEYS.check("controller", one.keys(), self._notes)
            found = self._devices.setdefault(one.attributes.get("id", ""), set())
            for kind in ("actuators", "sensors"):
                for part in one.named(kind):
                    KEYS.check(kind, part.keys(), self._notes)
                    found.update(child.tag for child in part.children)

    def _spec(self, element: Element) -> RobotSpec:
        """Return the model of a robot with the devices that its controller uses."""
        model = ROBOTS[element.tag]
        controller, reach = element.child("controller"), element.attribute("rab_range")
        config = None if controller is None else controller.attributes.get("config")
        used = set[str]() if config is None else self._devices.get(config)
        if used is None:
            self._notes.add(
                f"config {config}",
                element,
                f'the controller "{shown(str(config), 60)}" is left out: no controller of the '
                "file has this id",
            )
            used = set()
        tables = []
        if "leds" in used:
            count, radius = RINGS[element.tag]
            tables.append(f"[leds]\ncount = {count}\nradius = {radius}")
        if "colored_blob_omnidirectional_camera" in used:
            tables.append("[omni_camera]")
        if reach is not None:
            far = reach.number(1e-3, 1e6)
            tables.append(f"[range_and_bearing]\nrange = {far!r}")
        if not tables:
            return library.load_robot(model)
        text = "\n".join([f'extends = "{model}"', *tables])
        if text not in self._models:
            self._models[text] = library.parse_robot(text, element.tag)
        return self._models[text]

    def _floor(self, element: Element) -> None:
        """Read the picture of the floor, which covers the arena."""
        KEYS.check("floor", element.keys(), self._notes)
        kind, path = element.attribute("source"), element.attribute("path")
        view = self._builder.view
        if kind is None or kind.data != "image" or path is None or view is None:
            reason = (
                "loop functions, which colour it, do not run"
                if kind is not None and kind.data == "loop_functions"
                else 'expected the source "image", a path and an arena with a size'
            )
            self._notes.add("floor", element, f"the floor is left out: {reason}")
            return
        source, meter = self._builder.source, self._builder.meter
        meter.add("files", 1)
        try:
            name = source.sibling_file(path.text(), "the floor's picture")
            picture = read_source(name, self._builder.options.budget)
            pixels = read_pixels(picture, meter)
            x0, y0, x1, y1 = view
            # ARGoS stretches the picture over the arena; pixels are squares here.
            edge = (x1 - x0) / pixels.shape[1]
            rows = max(1, round((y1 - y0) / edge))
            if rows * pixels.shape[1] > MAX_PIXELS:
                raise element.fail(
                    f"a picture of at most {MAX_PIXELS} square pixels on the arena",
                    f"{rows} × {pixels.shape[1]}",
                )
            taken = (np.arange(rows) + 0.5) * (pixels.shape[0] / rows)
            self._builder.floor = Floor(
                picture=FloorPicture(
                    pixels=pixels[taken.astype(np.intp)],
                    resolution=edge,
                    origin=Pose(x0, y0),
                )
            )
        except BudgetError:
            raise
        except (FormatError, ArgumentError) as error:
            raise element.fail("a picture of the floor", str(error)) from None

    def _settings(self, root: Element) -> Settings:
        framework = root.child("framework")
        found = None if framework is None else framework.child("experiment")
        if found is None:
            return Settings()
        KEYS.check("experiment", found.keys(), self._notes)
        ticks, length, seed = (
            found.attribute(key)
            for key in ("ticks_per_second", "length", "random_seed")
        )
        number = 0 if seed is None else seed.whole(0, 2**32 - 1)
        self._draw = random.Random(f"{number} argos")
        end = 0.0 if length is None else length.number(0.0)
        return Settings(
            step=None if ticks is None else 1.0 / ticks.number(1.0 / 60.0, 1e6),
            duration=end or None,
            seed=number % 2**31 if number else None,
        )

    def _pose(self, element: Element) -> Pose:
        body = element.child("body")
        if body is None:
            raise element.fail("a body")
        KEYS.check("body", body.keys(), self._notes)
        position, turn = body.attribute("position"), body.attribute("orientation")
        x, y = (0.0, 0.0) if position is None else position.point()
        z = 0.0 if turn is None else turn.numbers(1, 3)[0]
        return Pose(x, y, wrap_angle(from_deg(z)))

    def _outline(self, element: Element) -> Outline:
        if element.tag in ROBOTS:
            return library.load_robot(ROBOTS[element.tag]).outline
        name = "size" if element.tag == "box" else "radius"
        value = element.attribute(name)
        if value is None:
            raise element.fail(name)
        if element.tag == "cylinder":
            return circle(value.number(0.0, MAX_SIDE, above=True))
        length, width = value.numbers(3, bound=MAX_SIDE)[:2]
        if not min(length, width) > 0.0:
            raise value.fail("a length and a width, sides greater than 0")
        return rectangle(length, width)

    def _entity(self, element: Element, at: Pose, name: str) -> None:
        outline = self._outline(element)
        reach = max(hypot(x, y) for x, y in outline)
        self._discs.append((at.x, at.y, reach))
        if element.tag in ROBOTS:
            KEYS.check("robot", element.keys(), self._notes)
            self._builder.robot(self._spec(element), name, at, element)
            return
        KEYS.check(element.tag, element.keys(), self._notes)
        movable, mass = element.attribute("movable"), element.attribute("mass")
        if movable is None or not movable.flag():
            self._builder.solid([outline], at)
            return
        with blamed_on(element.value()):
            heavy = DynamicsSpec(
                mass=1.0 if mass is None else mass.number(),
                floor_friction=FLOOR_FRICTION,
            )
        self._builder.box(name, at, (outline,), dynamics=heavy, where=element)

    # -- randomly drawn places

    def _distribute(self, element: Element) -> None:
        KEYS.check("distribute", element.keys(), self._notes)
        entity = element.child("entity")
        if entity is None:
            raise element.fail("an entity")
        KEYS.check("entity", entity.keys(), self._notes)
        self._notes.add(
            "distribute",
            element,
            "randomly drawn places differ from ARGoS's, and are the same in each run",
        )
        known = [c for c in entity.children if c.tag in ("box", "cylinder", *ROBOTS)]
        if not known:
            return
        quantity, trials, base = (
            entity.attribute(key) for key in ("quantity", "max_trials", "base_num")
        )
        count = 1 if quantity is None else quantity.whole(0, MAX_QUANTITY)
        tries = 1 if trials is None else trials.whole(0, 10**9)
        first = 0 if base is None else base.whole(0, 10**9)
        reach = max(hypot(x, y) for x, y in self._outline(known[0]))
        drawn = 0
        for i in range(count):
            for _ in range(max(1, min(tries, MAX_TRIALS))):
                # Trying costs time, so a file cannot ask for any number of tries.
                self._builder.meter.add(
                    "entities", 1 + len(self._discs) // 20, element.line
                )
                x, y, _z = self._drawn(element, "position", drawn)
                turn = self._drawn(element, "orientation", drawn)[0]
                drawn += 1
                if all(
                    hypot(x - a, y - b) >= reach + radius
                    for a, b, radius in self._discs
                ):
                    break
            else:
                # ARGoS refuses the file here.
                self._notes.add(
                    f"no place {element.line}",
                    element,
                    f"{count - i} of {count} entities {known[0].tag} are left out: no "
                    f"free place for them in {min(tries, MAX_TRIALS)} tries",
                )
                return
            at = Pose(x, y, wrap_angle(from_deg(turn)))
            self._entity(known[0], at, f"{_name(known[0])}{first + i}")

    def _drawn(self, element: Element, name: str, i: int) -> tuple[float, float, float]:
        rule = element.child(name)
        if rule is None:
            return 0.0, 0.0, 0.0
        KEYS.check("method", rule.keys(), self._notes)

        def vector(key: str) -> tuple[float, float, float]:
            value = rule.attribute(key)
            if value is None:
                raise rule.fail(key)
            x, y, z = value.numbers(3)
            return x, y, z

        method = rule.attribute("method")
        kind = (
            ""
            if method is None
            else method.text("uniform", "gaussian", "constant", "grid")
        )
        if kind == "uniform":
            low, high = vector("min"), vector("max")
            a, b, c = (self._draw.uniform(p, q) for p, q in zip(low, high, strict=True))
            return a, b, c
        if kind == "gaussian":
            mean, spread = vector("mean"), vector("std_dev")
            a, b, c = (
                m + s * self._normal() for m, s in zip(mean, spread, strict=True)
            )
            return a, b, c
        if kind == "constant":
            return vector("values")
        if kind == "grid":
            center, apart, layout = (
                vector("center"),
                vector("distances"),
                vector("layout"),
            )
            across, up = max(1, int(layout[0])), max(1, int(layout[1]))
            column, row = i % across, i // across % up
            return (
                center[0] + (column - (across - 1) / 2.0) * apart[0],
                center[1] + (row - (up - 1) / 2.0) * apart[1],
                center[2],
            )
        raise rule.fail(
            "the method uniform, gaussian, constant or grid",
            f'"{shown(rule.attributes.get("method", ""), 60)}"',
        )

    def _normal(self) -> float:
        # The sum of twelve uniform numbers has the variance 1, and the same bits on
        # every platform.
        total = -6.0
        for _ in range(12):
            total += self._draw.random()
        return total


def _name(element: Element) -> str:
    return shown(element.attributes.get("id", element.tag), 60)


__all__ = ["fits", "read"]
