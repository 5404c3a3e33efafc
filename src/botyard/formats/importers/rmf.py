"""Buildings of Open-RMF's traffic editor: one level of a ``.building.yaml`` file.

Vertices are pixels of a floor plan (x to the right, y down), or metres. Measurements
give the scale: the mean of the distances, m, each divided by its length in pixels.
Walls, lanes and doors are pairs of indices of vertices with parameters
``name: [type, value]``. `rmfkeys` has all keys.

Sources: files of rmf_demos, and the documentation of rmf_traffic_editor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from botyard.formats.base import Options, Source
from botyard.formats.importers.builder import Builder, robot_spec
from botyard.formats.importers.drives import Driven, limits
from botyard.formats.importers.rmfkeys import KEYS
from botyard.formats.importers.shapes import circle
from botyard.formats.importers.values import Value, read_yaml, top_keys
from botyard.geometry import Outline, Pose
from botyard.model.kinematics import Drive
from botyard.model.world import Settings, World
from botyard.names import is_name, shown
from botyard.numerics.elementary import atan2, hypot

RADIUS: Final = 0.3
"""Radius of robots, m: the file has only the name of their model."""
SPEEDS: Final = (0.5, 0.6)
"""Top speeds of robots, m/s and rad/s, as in rmf_demos."""


class _Vertex(NamedTuple):
    x: float
    y: float
    name: str
    parameters: dict[str, Value]
    value: Value


class _Edge(NamedTuple):
    start: int
    end: int
    parameters: dict[str, Value]
    value: Value


def fits(source: Source) -> bool:
    """Return whether a YAML file is a building, by its top-level keys."""
    found = top_keys(source)
    return "levels" in found and bool(found & {"lifts", "name", "building_name"})


def read(source: Source, options: Options = Options()) -> World:
    """Read one level of a building.

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
        self._vertices: list[_Vertex] = []

    def run(self, file: Value) -> World:
        building = file.table()
        KEYS.check("building", building, self._notes)
        if "levels" not in building:
            raise file.fail("levels")
        name, level = self._level_of(building)
        system = building.get("coordinate_system")
        metric = system is not None and (
            system.text("reference_image", "cartesian_meters") == "cartesian_meters"
        )
        KEYS.check("level", level, self._notes)
        # Coordinates in pixels grow downward, so y changes its sign.
        self._vertices = [
            self._vertex(v, 1.0 if metric else -1.0) for v in _list(level, "vertices")
        ]
        if not metric:
            scale = self._scale(level)
            self._vertices = [
                v._replace(x=v.x * scale, y=v.y * scale) for v in self._vertices
            ]

        for edge in self._edges(level, "walls", "wall"):
            self._builder.line([self._at(edge.start), self._at(edge.end)])
        for floor in _list(level, "holes"):
            self._builder.solid([self._corners(floor)])
        for floor in _list(level, "floors"):
            self._builder.area("Floor", "", self._corners(floor))
        lanes = list(self._edges(level, "lanes", "lane"))
        for edge in lanes:
            self._area("Lane", edge, edge.parameters.get("graph_idx"))
        for edge in self._edges(level, "doors", "door"):
            self._area("Door", edge, edge.parameters.get("name"))
        self._places(lanes)
        given = building.get("name") or building.get("building_name")
        title = name if given is None else f"{given.text()} {name}"
        return self._builder.world(Settings(), title if is_name(title) else "")

    def _level_of(self, building: dict[str, Value]) -> tuple[str, dict[str, Value]]:
        """Return the reference level, or the first one."""
        levels = building["levels"].table()
        if not levels:
            raise building["levels"].fail("a level")
        name = next(iter(levels))
        if "reference_level_name" in building:
            name = building["reference_level_name"].text(*levels)
        others = ", ".join(shown(other, 40) for other in levels if other != name)
        if others:
            self._notes.add(
                "levels",
                building["levels"],
                f'the level "{shown(name, 40)}" is read; left out: {others[:200]}',
            )
        return name, levels[name].table()

    def _vertex(self, value: Value, up: float) -> _Vertex:
        entries = value.entries()
        if not 2 <= len(entries) <= 5:
            raise value.fail("a vertex: x, y, z, name and parameters")
        name = ""
        if len(entries) > 3 and entries[3].data is not None:
            name = str(entries[3].data)
        parameters = _parameters(entries[4]) if len(entries) > 4 else {}
        KEYS.check("vertex", parameters, self._notes)
        return _Vertex(
            entries[0].number(), up * entries[1].number(), name, parameters, value
        )

    def _scale(self, level: dict[str, Value]) -> float:
        """Return the size of a pixel, m."""
        total, count = 0.0, 0
        for edge in self._edges(level, "measurements", "measurement"):
            (x0, y0), (x1, y1) = self._at(edge.start), self._at(edge.end)
            pixels = hypot(x1 - x0, y1 - y0)
            if "distance" not in edge.parameters or not pixels > 0.0:
                raise edge.value.fail("two places and their distance")
            total += edge.parameters["distance"].number(0.0, above=True) / pixels
            count += 1
        if count:
            return total / count
        return self._builder.options.scale(
            1.0, self._builder.source.name, "a pixel, because nothing was measured"
        )

    def _edges(self, level: dict[str, Value], key: str, kind: str) -> Iterator[_Edge]:
        for value in _list(level, key):
            entries = value.entries()
            if not 2 <= len(entries) <= 3:
                raise value.fail("two indices of vertices, and parameters")
            start, end = (self._index(entry) for entry in entries[:2])
            parameters = _parameters(entries[2]) if len(entries) > 2 else {}
            KEYS.check(kind, parameters, self._notes)
            yield _Edge(start, end, parameters, value)

    def _index(self, value: Value) -> int:
        if not self._vertices:
            raise value.error("expected vertices, found none")
        return value.whole(0, len(self._vertices) - 1)

    def _at(self, index: int) -> tuple[float, float]:
        vertex = self._vertices[index]
        return vertex.x, vertex.y

    def _corners(self, value: Value) -> Outline:
        table = value.table()
        KEYS.check("floor", table, self._notes)
        corners = [self._at(self._index(entry)) for entry in _list(table, "vertices")]
        if len(set(corners)) < 3:
            raise value.error(f"expected 3 vertices or more, found {len(set(corners))}")
        return tuple(corners)

    def _area(self, kind: str, edge: _Edge, name: Value | None) -> None:
        text = "" if name is None or name.data is None else str(name.data)
        ends = (self._at(edge.start), self._at(edge.end))
        self._builder.area(kind, text if is_name(text) else "", ends)

    def _places(self, lanes: list[_Edge]) -> None:
        """Add places with a name, and robots."""
        first: dict[int, float] = {}
        for lane in lanes:
            (x0, y0), (x1, y1) = self._at(lane.start), self._at(lane.end)
            heading = atan2(y1 - y0, x1 - x0) if (x0, y0) != (x1, y1) else 0.0
            # A robot looks along the first lane of its vertex, as in Open-RMF.
            first.setdefault(lane.start, heading)
            first.setdefault(lane.end, heading)
        for index, vertex in enumerate(self._vertices):
            charger = vertex.parameters.get("is_charger")
            if is_name(vertex.name):
                is_dock = charger is not None and charger.flag()
                self._builder.place(
                    vertex.name,
                    Pose(vertex.x, vertex.y),
                    kind="Dock" if is_dock else "Goal",
                )
            if "spawn_robot_type" in vertex.parameters:
                at = Pose(vertex.x, vertex.y, first.get(index, 0.0))
                self._robot(vertex, at)

    def _robot(self, vertex: _Vertex, at: Pose) -> None:
        kind = str(vertex.parameters["spawn_robot_type"].data)
        given = vertex.parameters.get("spawn_robot_name")
        name = kind if given is None else str(given.data)
        self._notes.add(
            "robot",
            vertex.value,
            f'the robot "{shown(name)}" is a disc of {2 * RADIUS:g} m with a '
            "differential drive: the file has only the name of its model",
        )
        v, w = SPEEDS
        spec = robot_spec(
            "rmf_robot", (circle(RADIUS),), Driven(Drive.DIFF, limits(v, 0.0, w))
        )
        self._builder.robot(spec, name, at, vertex.value)


def _list(table: dict[str, Value], key: str) -> list[Value]:
    value = table.get(key)
    if value is None or value.data is None:
        return []
    if not isinstance(value.data, list):
        raise value.fail("a list")
    return value.entries()


def _parameters(value: Value) -> dict[str, Value]:
    """Return the values of parameters; each is a pair of type and value."""
    found = {}
    for name, pair in value.table().items():
        entries = pair.entries()
        if len(entries) != 2:
            raise pair.fail("a type and a value")
        found[name] = entries[1]
    return found


__all__ = ["fits", "read"]
