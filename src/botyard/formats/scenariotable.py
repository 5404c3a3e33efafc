"""Conversion of a world to the contents of a scenario file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import yaml

from botyard.errors import BotyardError, FormatError, ModelError
from botyard.formats.floorkeys import write_floor
from botyard.formats.models import find_robot
from botyard.formats.scenario import home_of
from botyard.formats.scenariokeys import VERSION
from botyard.formats.worldoptions import WORLD_OPTIONS
from botyard.model.dynamics import DynamicsSpec
from botyard.model.filetables import file_table, triple_of
from botyard.model.library import robot_of
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.robot import RobotSpec
from botyard.model.robotfile import to_table
from botyard.model.scene import Area, Place, Scene
from botyard.model.world import THING, PlacedRobot, SectorPaths, Settings, World, thing
from botyard.names import shown
from botyard.processes.codeload import can_be_found


class ScenarioDumper(yaml.SafeDumper):
    """Dumper that quotes texts with unprintable characters, so that they are escaped.

    In plain scalars, a reader would read some of these characters as blanks.
    """


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"'
    )


ScenarioDumper.add_representer(str, _text)


class _CannotBeWrittenError(Exception):
    """A value cannot be represented in YAML."""


def _plain(value: Any) -> Any:
    """Convert a value to plain types, which YAML can represent."""
    # Options of controllers may contain NumPy's numbers.
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise _CannotBeWrittenError

    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    raise _CannotBeWrittenError


def _traffic(run: SectorPaths) -> dict[str, Any]:
    """Return the keys and values that describe a run on sector paths."""
    return {
        "paths": {name: _corners(points) for name, points in run.paths},
        "supervisor": run.supervisor,
        "speed": float(run.speed),
    }


def _corners(outline: Sequence[tuple[float, float]]) -> list[list[float]]:
    return [[float(x), float(y)] for x, y in outline]


class ScenarioTable:
    """Builder of the contents of a scenario file.

    Attributes
    ----------
    notes : list of str
        Notes about data that the file cannot hold.
    """

    def __init__(self, world: World) -> None:
        self.notes: list[str] = []
        self._world = world
        self._models: dict[str, RobotSpec] = {}
        self._names: set[str] = set()

    def build(
        self,
        base: Scene,
        map_name: str | None,
        resolution: float | None,
        picture: str | None = None,
    ) -> dict[str, Any]:
        """Return the contents of the file: its top-level mapping.

        Parameters
        ----------
        base : Scene
            Contents of the map file, which are not written again.
        map_name : str or None
            Text by which the file refers to the map.
        resolution : float or None
            Resolution for reading the map, m.
        picture : str or None
            Name of the file of the floor's picture.
        """
        scene, settings = self._world.scene, self._world.settings
        table: dict[str, Any] = {"botyard": VERSION, "name": scene.name}
        if map_name is not None:
            # Boxes of the map may have moved, so all boxes are written, and the map's
            # are not read.
            table |= {"map": map_name, "map_objects": False}
        if resolution is not None:
            table["resolution"] = float(resolution)
        # The map contributes the first places, walls and areas; only the others are
        # written.
        places = scene.places[len(base.places) :]
        if scene.start != (expected := home_of(places, base.start)):
            table["home"] = None if scene.start is None else triple_of(scene.start)
            # A difference that vanishes when angles are written needs no key.
            if (
                scene.start is not None
                and expected is not None
                and table["home"] == triple_of(expected)
            ):
                del table["home"]

        if scene.georeference != base.georeference:
            g = scene.georeference
            table["georeference"] = (
                None
                if g is None
                else [float(g.latitude), float(g.longitude), float(g.altitude)]
            )

        if scene.view != base.view:
            table["view"] = (
                None if scene.view is None else [float(v) for v in scene.view]
            )

        table |= _plain(file_table(Settings).write(settings))
        lists = {
            "walls": list(self._walls(scene, len(base.segments))),
            "places": [_place(p) for p in places],
            "areas": list(self._areas(scene.areas[len(base.areas) :])),
        }
        things = [r for r in self._world.robots if _is_moving_obstacle(r)]
        robots = [
            self._robot(r) for r in self._world.robots if not _is_moving_obstacle(r)
        ]
        obstacles = [
            *(self._moving_obstacle(r) for r in things),
            *map(self._obstacle, scene.boxes),
        ]
        if self._models:
            table["models"] = {
                name: _plain(to_table(spec)) for name, spec in self._models.items()
            }

        lists |= {"robots": robots, "obstacles": obstacles}
        table |= {key: rows for key, rows in lists.items() if rows}
        floor = write_floor(scene.floor, picture)
        if floor:
            table["floor"] = floor
        if self._world.traffic is not None:
            table["traffic"] = _traffic(self._world.traffic)
        options = self._options()
        if options:
            table["options"] = options
        self.notes += self._world.beside
        return table

    # -- walls, areas, boxes

    def _walls(self, scene: Scene, first: int) -> Iterator[dict[str, Any]]:
        """Yield the walls from row `first` on, in order."""
        at = first
        ranges = [
            (w.first, w.last, w.returns)
            for w in sorted(scene.special_walls, key=lambda w: w.first)
            if w.last > first
        ]
        for begin, end, returns in [
            *ranges,
            (len(scene.segments), len(scene.segments), Returns()),
        ]:
            if begin > at:
                yield {"segments": scene.segments[at:begin].tolist()}
            if end > begin:
                yield {
                    "segments": scene.segments[begin:end].tolist(),
                    "returns": file_table(Returns).write(returns),
                }

            at = max(at, end)

    def _areas(self, areas: Sequence[Area]) -> Iterator[dict[str, Any]]:
        for area in areas:
            if len(area.corners) < 2:
                self.notes.append(
                    f"the area {shown(area.name or area.kind)} is not written: "
                    "it has fewer than 2 corners"
                )
                continue

            yield {
                "kind": area.kind,
                "name": area.name,
                "corners": _corners(area.corners),
            }

    def _name(self, name: str, base: str) -> str:
        """Return a name for a robot or obstacle that is unique in the file."""
        wanted = name or base
        free, n = wanted, 2
        while free in self._names:
            free, n = f"{wanted}_{n:03d}", n + 1
        if name and free != name:
            self.notes.append(
                f'the second "{shown(name)}" is renamed "{shown(free)}": names are unique'
            )

        self._names.add(free)
        return free

    def _obstacle(self, box: BoxObject) -> dict[str, Any]:
        table: dict[str, Any] = {"name": self._name(box.name, "obstacle")}
        if box.parts:
            table["parts"] = [_corners(part) for part in box.parts]
        # The reader accepts only these sizes for the key "box".
        elif 0.0 < box.length <= 1e4 and 0.0 < box.width <= 1e4:
            table["box"] = [float(box.length), float(box.width)]
        else:
            table["parts"] = [_corners(part) for part in box.outlines]

        table |= {"pose": triple_of(box.pose), "color": box.color}
        table |= _returns_and_dynamics(box.returns, box.dynamics)
        return table

    # -- robots and moving obstacles

    def _moving_obstacle(self, robot: PlacedRobot) -> dict[str, Any]:
        """Return the keys and values that describe a moving obstacle."""
        spec = robot.spec
        table: dict[str, Any] = {"name": self._name(robot.name, "obstacle")}
        table |= {
            "parts": [_corners(part) for part in (spec.outline, *spec.parts)],
            "color": spec.color,
        }
        table["max_speed"] = float(spec.limits.max_speed.x)
        table |= _returns_and_dynamics(spec.returns, spec.dynamics)
        if robot.pose is not None:
            table["pose"] = triple_of(robot.pose)
        self._add_program(table, robot)
        return table

    def _robot(self, robot: PlacedRobot) -> dict[str, Any]:
        table: dict[str, Any] = {"model": self._model(robot.spec)}
        table["name"] = self._name(robot.name, robot.spec.name)
        if not robot.served:
            table["served"] = False
        if robot.pose is not None:
            table["pose"] = triple_of(robot.pose)
        self._add_program(table, robot)
        return table

    def _add_program(self, table: dict[str, Any], robot: PlacedRobot) -> None:
        program = robot.program
        if program is None:
            return
        # A controller defined in a script or a notebook has no importable name.
        if not can_be_found(program.name):
            self.notes.append(
                f"{shown(table['name'])}: its controller {shown(program.name)} cannot "
                "be written: another program cannot import it by that name"
            )
            return

        options = {}
        for name, value in program.options.items():
            try:
                options[name] = _plain(value)
            except _CannotBeWrittenError:
                self.notes.append(
                    f"{shown(table['name'])}: the option {shown(name)} of its "
                    "controller cannot be written"
                )

        table["controller"] = (
            {"name": program.name, **options} if options else program.name
        )

    def _model(self, spec: RobotSpec) -> str:
        """Return the name by which the file refers to a robot model.

        A model that is not in the library is added to the file.
        """
        try:
            if find_robot(spec.name) == spec:
                return spec.name
            taken = True
        except (ModelError, FormatError):
            taken = False

        name, n = spec.name, 1
        # The name must not hide a different model of the library or of this file.
        while (taken and name == spec.name) or self._models.get(name, spec) != spec:
            n += 1
            name = f"{spec.name}_{n}"

        if name not in self._models:
            self._models[name] = spec
            self._check_model(name, spec)

        return name

    def _check_model(self, name: str, spec: RobotSpec) -> None:
        """Add a note if writing and re-reading a model changes it."""
        try:
            again = robot_of(_plain(to_table(spec)), name)
        except BotyardError as error:
            self.notes.append(
                f"the model {shown(spec.name)} is written, but cannot be read again: "
                f"{error}"
            )
            return

        if (
            replace(again, name=spec.name).parts != spec.parts
            or again.outline != spec.outline
        ):
            self.notes.append(
                f"the outline of the model {shown(spec.name)} changes when the file "
                "is read again"
            )

    def _options(self) -> dict[str, Any]:
        options = {}
        for name, value in self._world.options.items():
            if name not in WORLD_OPTIONS:
                self.notes.append(
                    f"the option {shown(name)} is not written: a world cannot set it"
                )
                continue

            options[name] = _plain(value)

        return options


def _returns_and_dynamics(
    returns: Returns, dynamics: DynamicsSpec | None
) -> dict[str, Any]:
    """Return the keys for visibility and mass whose values differ from the defaults."""
    seen = file_table(Returns).write(returns)
    table = {"returns": seen} if seen else {}
    if dynamics is not None:
        table["dynamics"] = _plain(file_table(DynamicsSpec).write(dynamics))
    return table


def _is_moving_obstacle(robot: PlacedRobot) -> bool:
    """Return whether a robot can be written as a moving obstacle without loss."""
    spec = robot.spec
    if (
        spec.name != THING
        or robot.served
        or robot.program is None
        or robot.pose is None
    ):
        return False

    # Only the top speed is a key of an obstacle, so all other values must be defaults.
    top = spec.limits.max_speed.x
    made = thing(
        spec.outline,
        parts=spec.parts,
        color=spec.color,
        returns=spec.returns,
        max_speed=top,
    )
    return replace(made, dynamics=spec.dynamics) == spec


def _place(place: Place) -> dict[str, Any]:
    x, y, th = triple_of(place.pose)
    table: dict[str, Any] = {"kind": place.kind, "name": place.name}
    table["pose"] = [x, y, th] if place.has_heading or th else [x, y]
    if th and not place.has_heading:
        table["heading"] = False
    return table


__all__ = ["ScenarioDumper", "ScenarioTable"]
