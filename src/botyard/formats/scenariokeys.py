"""Keys of scenario files, and their JSON schema."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from botyard.formats.base import Source
from botyard.formats.floorkeys import FloorKeys
from botyard.formats.worldoptions import WorldOptions
from botyard.model.beams import ReflectorRule
from botyard.model.dynamics import DynamicsSpec, PoseController
from botyard.model.filetables import FileTable, Pair, Triple, file_table
from botyard.model.obstacles import Returns
from botyard.model.robotfile import (
    LASER_MOUNT,
    DynamicsTable,
    LaserMount,
    ReturnsTable,
)
from botyard.model.tablecheck import Strict
from botyard.model.world import Settings

VERSION: Final = 1
FLOOR_FRICTION: Final = 0.4
"""Default floor friction of obstacles with mass, about as for wood on stone."""


class RobotKeys(Strict, kw_only=True):
    """Keys of a robot, or of several robots of one model."""

    model: str | dict[str, Any] = "p3dx"
    name: str = ""
    count: int = 1
    pose: Triple | None = None
    area: tuple[float, float, float, float] | None = None
    color: str = ""
    lasers: list[str | LaserMount] | None = None
    fiducial: int | None = None
    controller: str | dict[str, Any] | None = None
    served: bool = True
    dynamics: DynamicsTable | None = None


class ObstacleKeys(Strict, kw_only=True):
    """Keys of an obstacle: movable, moved by a controller, or a part of the walls (fixed)."""

    name: str = ""
    box: Pair | None = None
    disc: float | None = None
    polygon: list[Pair] | None = None
    parts: list[list[Pair]] | None = None
    pose: Triple = (0.0, 0.0, 0.0)
    color: str = "light green"
    returns: ReturnsTable | UnsetType = UNSET
    fixed: bool = False
    controller: str | dict[str, Any] | None = None
    max_speed: float = 2.0
    dynamics: DynamicsTable | None = None


class WallKeys(Strict, kw_only=True):
    """Keys of a wall along a line of points, or of several walls x1, y1, x2, y2."""

    line: list[Pair] = msgspec.field(default_factory=list)
    closed: bool = False
    segments: list[tuple[float, float, float, float]] = msgspec.field(
        default_factory=list
    )
    returns: ReturnsTable | UnsetType = UNSET


class PlaceKeys(Strict, kw_only=True):
    """Keys of a goal, dock or home."""

    kind: str = "Goal"
    name: str = ""
    pose: list[float]
    heading: bool | None = None


class AreaKeys(Strict, kw_only=True):
    """Keys of an area or a line on the floor."""

    kind: str
    name: str = ""
    corners: list[Pair]


class TrafficKeys(Strict, kw_only=True):
    """Keys of a run of robots on sector paths: points by the name of the robot."""

    paths: dict[str, list[Pair]]
    supervisor: str = "bankers"
    speed: float = 0.65


class ScenarioKeys(Strict, kw_only=True):
    """Keys of a scenario file in addition to its settings."""

    botyard: int
    name: str | None = None
    map: str | None = None
    map_objects: bool = True
    resolution: float | None = None
    home: Triple | UnsetType | None = UNSET
    georeference: Triple | UnsetType | None = UNSET
    view: tuple[float, float, float, float] | UnsetType | None = UNSET
    models: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    robots: list[RobotKeys] = msgspec.field(default_factory=list)
    obstacles: list[ObstacleKeys] = msgspec.field(default_factory=list)
    walls: list[list[Pair] | WallKeys] = msgspec.field(default_factory=list)
    places: list[PlaceKeys] = msgspec.field(default_factory=list)
    areas: list[AreaKeys] = msgspec.field(default_factory=list)
    floor: FloorKeys | None = None
    traffic: TrafficKeys | None = None
    options: WorldOptions = msgspec.field(default_factory=WorldOptions)


_SCENARIO: Final = FileTable(Settings, name="ScenarioFile", base=ScenarioKeys)
ScenarioFile = _SCENARIO.type


def fits(source: Source) -> bool:
    """Return whether a YAML file is a scenario: it has the key ``botyard``."""
    return source.data.startswith(b"botyard:") or b"\nbotyard:" in source.data


def schema() -> dict[str, Any]:
    """Return the JSON schema of scenario files (JSON Schema 2020-12)."""
    made = msgspec.json.schema(ScenarioFile)
    tables: tuple[FileTable[Any], ...] = (
        _SCENARIO,
        LASER_MOUNT,
        *map(file_table, (ReflectorRule, Returns, DynamicsSpec, PoseController)),
    )
    for table in tables:
        table.describe(made)
    return made


__all__ = [
    "FLOOR_FRICTION",
    "VERSION",
    "ObstacleKeys",
    "PlaceKeys",
    "RobotKeys",
    "ScenarioFile",
    "ScenarioKeys",
    "WallKeys",
    "fits",
    "schema",
]
