"""Writing worlds as scenario files, which `botyard.formats.scenario` reads back as the
same world.

An unchanged map is referred to by its file, not written again. Only files that this
program wrote are replaced.
"""

from __future__ import annotations

import io
import math
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from botyard.errors import BotyardError, FormatError, ModelError, WorldFileError
from botyard.formats import armap
from botyard.formats.armapscene import from_scene
from botyard.formats.base import DEFAULT_POINT_SIZE, Options, read_bytes, read_source
from botyard.formats.budget import Budget, Meter
from botyard.formats.models import find_robot
from botyard.formats.scenario import VERSION, home_of
from botyard.formats.worldoptions import WORLD_OPTIONS
from botyard.model.dynamics import DynamicsSpec
from botyard.model.filetables import file_table, triple_of
from botyard.model.library import robot_of
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.robot import RobotSpec
from botyard.model.robotfile import to_table
from botyard.model.scene import Area, Place, Scene
from botyard.model.world import THING, PlacedRobot, Settings, World, thing
from botyard.names import shown
from botyard.processes.codeload import can_be_found
from botyard.processes.safefile import (
    MARK,
    StrPath,
    check_replaceable,
    is_ours,
    write_text,
)

MAX_NAMES: Final = 10_000
"""File names that are tried for a map beside a scenario."""


# -- YAML values


class _Dumper(yaml.SafeDumper):
    """Quotes texts with unprintable characters, so that these are escaped: in plain
    scalars some would be read as blanks.
    """


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"'
    )


_Dumper.add_representer(str, _text)


class _CannotBeWrittenError(Exception):
    """A value that YAML cannot represent."""


def _plain(value: Any) -> Any:
    """Convert a value to plain types that YAML can represent."""
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


def _corners(outline: Sequence[tuple[float, float]]) -> list[list[float]]:
    return [[float(x), float(y)] for x, y in outline]


class _Table:
    """Builds the contents of a scenario file.

    Attributes
    ----------
    notes : list of str
        What the file cannot hold, in words.
    """

    def __init__(self, world: World) -> None:
        self.notes: list[str] = []
        self._world = world
        self._models: dict[str, RobotSpec] = {}
        self._names: set[str] = set()

    def build(
        self, base: Scene, map_name: str | None, resolution: float | None
    ) -> dict[str, Any]:
        """The top-level mapping of the file.

        Parameters
        ----------
        base : Scene
            What the map file contributes; the rest is written.
        map_name : str or None
            Name of the map in the file.
        resolution : float or None
            Resolution with which the map is to be read, m.
        """
        scene, settings = self._world.scene, self._world.settings
        table: dict[str, Any] = {"botyard": VERSION, "name": scene.name}
        if map_name is not None:
            table |= {"map": map_name, "map_objects": False}
        if resolution is not None:
            table["resolution"] = float(resolution)
        places = scene.places[len(base.places) :]
        if scene.start != (expected := home_of(places, base.start)):
            table["home"] = None if scene.start is None else triple_of(scene.start)
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
        things = [r for r in self._world.robots if _is_thing(r)]
        robots = [self._robot(r) for r in self._world.robots if not _is_thing(r)]
        obstacles = [
            *(self._thing(r) for r in things),
            *map(self._obstacle, scene.boxes),
        ]
        if self._models:
            table["models"] = {
                name: _plain(to_table(spec)) for name, spec in self._models.items()
            }

        lists |= {"robots": robots, "obstacles": obstacles}
        table |= {key: rows for key, rows in lists.items() if rows}
        options = self._options()
        if options:
            table["options"] = options
        self.notes += self._world.beside
        return table

    # -- walls, areas, boxes

    def _walls(self, scene: Scene, first: int) -> Iterator[dict[str, Any]]:
        """The rows of walls from `first` on, in their order."""
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
                    f"the area {shown(area.name or area.kind)} of fewer than 2 corners is left out"
                )
                continue

            yield {
                "kind": area.kind,
                "name": area.name,
                "corners": _corners(area.corners),
            }

    def _name(self, name: str, base: str) -> str:
        """A name that is unique in the file."""
        wanted = name or base
        free, n = wanted, 2
        while free in self._names:
            free, n = f"{wanted}_{n:03d}", n + 1
        if name and free != name:
            self.notes.append(
                f'the second "{shown(name)}" is called "{shown(free)}": names are unique'
            )

        self._names.add(free)
        return free

    def _obstacle(self, box: BoxObject) -> dict[str, Any]:
        table: dict[str, Any] = {"name": self._name(box.name, "obstacle")}
        if box.parts:
            table["parts"] = [_corners(part) for part in box.parts]
        elif 0.0 < box.length <= 1e4 and 0.0 < box.width <= 1e4:
            table["box"] = [float(box.length), float(box.width)]
        else:
            table["parts"] = [_corners(part) for part in box.outlines]

        table |= {"pose": triple_of(box.pose), "color": box.color}
        table |= _seen_and_moved(box.returns, box.dynamics)
        return table

    # -- robots and moving obstacles

    def _thing(self, robot: PlacedRobot) -> dict[str, Any]:
        """A moving obstacle."""
        spec = robot.spec
        table: dict[str, Any] = {"name": self._name(robot.name, "obstacle")}
        table |= {
            "parts": [_corners(part) for part in (spec.outline, *spec.parts)],
            "color": spec.color,
        }
        table["max_speed"] = float(spec.limits.max_speed.x)
        table |= _seen_and_moved(spec.returns, spec.dynamics)
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
        if not can_be_found(program.name):
            said = f"{shown(table['name'])}: its controller {shown(program.name)} cannot be written"
            self.notes.append(f"{said}: another program cannot import it by that name")
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
        """The name of a model, of the library or of this file; a model that neither has
        is added to the file.
        """
        try:
            if find_robot(spec.name) == spec:
                return spec.name
            taken = True
        except (ModelError, FormatError):
            taken = False

        name, n = spec.name, 1
        while (taken and name == spec.name) or self._models.get(name, spec) != spec:
            n += 1
            name = f"{spec.name}_{n}"

        if name not in self._models:
            self._models[name] = spec
            self._check_model(name, spec)

        return name

    def _check_model(self, name: str, spec: RobotSpec) -> None:
        """Note it if a model is not read back unchanged."""
        try:
            again = robot_of(_plain(to_table(spec)), name)
        except BotyardError as error:
            self.notes.append(
                f"the model {shown(spec.name)} cannot be written so that it can "
                f"be read again: {error}"
            )
            return

        if (
            replace(again, name=spec.name).parts != spec.parts
            or again.outline != spec.outline
        ):
            self.notes.append(
                f"the model {shown(spec.name)} is written with another outline"
            )

    def _options(self) -> dict[str, Any]:
        options = {}
        for name, value in self._world.options.items():
            if name not in WORLD_OPTIONS:
                self.notes.append(
                    f"the option {shown(name)} is left out: a world cannot set it"
                )
                continue

            options[name] = _plain(value)

        return options


def _seen_and_moved(returns: Returns, dynamics: DynamicsSpec | None) -> dict[str, Any]:
    """The keys for visibility and mass, where they differ from the defaults."""
    seen = file_table(Returns).write(returns)
    table = {"returns": seen} if seen else {}
    if dynamics is not None:
        table["dynamics"] = _plain(file_table(DynamicsSpec).write(dynamics))
    return table


def _is_thing(robot: PlacedRobot) -> bool:
    """Whether a robot can be written as a moving obstacle without loss."""
    spec = robot.spec
    if (
        spec.name != THING
        or robot.served
        or robot.program is None
        or robot.pose is None
    ):
        return False

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


# -- the map


def _begins_with(scene: Scene, base: Scene) -> bool:
    """Whether a scene begins with all that a map has; it may have more walls, places
    and areas behind that.
    """
    n, special = len(base.segments), len(base.special_walls)
    return (
        np.array_equal(scene.segments[:n], base.segments)
        and np.array_equal(scene.points, base.points)
        and scene.resolution == base.resolution
        and scene.special_walls[:special] == base.special_walls
        and all(w.first >= n for w in scene.special_walls[special:])
        and scene.places[: len(base.places)] == base.places
        and scene.areas[: len(base.areas)] == base.areas
    )


def _unchanged_map(scene: Scene) -> tuple[Path, Scene, float | None] | None:
    """The file of a scene's map, its contents, and the resolution to read it with; None
    if the scene no longer has all of it.
    """
    # imported late: it imports the reader of scenarios
    from botyard.formats.registry import (
        BUNDLE,
        format_of,
    )

    path = Path(scene.map_file or scene.source)
    try:
        if path.suffix.lower() == BUNDLE or not path.is_file():
            return None
        source = read_source(path)
        one = format_of(source)
        for resolution in (None, scene.resolution):
            base = one.read(source, Options(resolution=resolution)).scene
            if one.name != "scenario" and _begins_with(scene, base):
                return path, base, resolution
    except (BotyardError, OSError, ValueError):
        return None

    return None


def _shipped_name(path: Path) -> str | None:
    """The name of a map that comes with the package."""
    from botyard.formats.registry import builtin_maps

    return next(
        (
            name
            for name, shipped in builtin_maps().items()
            if shipped.resolve() == path.resolve()
        ),
        None,
    )


def _map_reference(path: Path, folder: Path) -> str:
    """How a scenario in a folder refers to a map: a shipped one by its name, others by
    a relative path.
    """
    name = _shipped_name(path)
    if name is not None:
        return name
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return str(path.resolve())


def _free_map(path: Path) -> Path:
    """Path for the map of a scenario: beside it, replacing no file but the earlier map
    of the same scenario.
    """
    before = _earlier_map(path)
    for n in range(1, MAX_NAMES):
        found = path.with_name(f"{path.stem}{'' if n == 1 else f'-{n}'}.map")
        if not os.path.lexists(found):
            return found
        if found.name == before and found.is_file() and is_ours(found):
            return found

    raise WorldFileError("there is no name left for its map", path)


def _earlier_map(path: Path) -> str:
    """Name of the map that an existing scenario of this program at a path refers to."""
    try:
        if is_ours(path):
            data = yaml.safe_load(
                read_bytes(path, Meter(Budget(), str(path))).decode("utf-8")
            )
            return str(data.get("map", "")) if isinstance(data, dict) else ""
    except (FormatError, OSError, ValueError, yaml.YAMLError, RecursionError):
        pass

    return ""


def save(
    world: World, path: StrPath, *, overwrite: bool = False, refer: bool = True
) -> list[str]:
    """Write a world as a scenario.

    A map that is as it was read is referred to; otherwise walls and points go into an
    ArMap beside the scenario.

    Parameters
    ----------
    path : path-like
        The scenario.
    overwrite : bool
        Replace the scenario even if this program did not write it. A map is never
        replaced but that of the same scenario.
    refer : bool
        Refer to the unchanged map's file; False: to shipped maps only.

    Returns
    -------
    list of str
        What the file cannot hold, in words.

    Raises
    ------
    KeptFileError
        There is a file that this program did not write, and `overwrite` is False.
    WorldFileError
        It cannot be written.
    """
    path = Path(path)
    scene = world.scene
    try:
        check_replaceable(path, force=overwrite)
        found = _unchanged_map(scene)
        if found is not None and not refer and _shipped_name(found[0]) is None:
            found = None
        table = _Table(world)
        name: str | None
        if found is not None:
            name, base, resolution = (
                _map_reference(found[0], path.parent),
                found[1],
                found[2],
            )
        else:
            scene, name, base = _with_own_map(scene, path)
            resolution = (
                None
                if len(scene.points) or scene.resolution == DEFAULT_POINT_SIZE
                else scene.resolution
            )
            table = _Table(replace(world, scene=scene))

        contents = table.build(base, name, resolution)
        text = yaml.dump(
            contents,
            Dumper=_Dumper,
            sort_keys=False,
            default_flow_style=None,
            allow_unicode=True,
            width=120,
        )
        write_text(path, f"# {MARK}\n{text}", force=overwrite)
    except OSError as error:
        raise WorldFileError(f"cannot be written: {error.strerror}", path) from None

    return table.notes


def _with_own_map(scene: Scene, path: Path) -> tuple[Scene, str | None, Scene]:
    """Write the ordinary walls and the points of a scene as a map beside a scenario.

    Returns the scene with those walls first, the map's name, and what the map has.
    """
    ordinary = np.ones(len(scene.segments), np.bool_)
    for wall in scene.special_walls:
        ordinary[wall.first : wall.last] = False
    if not ordinary.any() and not len(scene.points):
        return scene, None, Scene(segments=scene.segments[:0])
    order = np.concatenate([np.flatnonzero(ordinary), np.flatnonzero(~ordinary)])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    special = [
        replace(w, first=int(place[w.first]), last=int(place[w.last - 1]) + 1)
        for w in scene.special_walls
        if w.last > w.first
    ]
    sorted_scene = replace(
        scene, segments=scene.segments[order], special_walls=tuple(special), traced=()
    )
    base = Scene(
        segments=scene.segments[ordinary],
        points=scene.points,
        resolution=scene.resolution,
    )
    target = _free_map(path)
    armap.write(from_scene(base)[0], target)
    return sorted_scene, target.name, base


def packed(world: World) -> bytes:
    """A world as the bytes of a ``.zip`` with its scenario and its map, which
    `read_world` reads; see `save`.
    """
    out = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="botyard-") as folder:
        save(world, Path(folder) / "world.yaml", refer=False)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(folder).iterdir()):
                archive.write(path, path.name)

    return out.getvalue()


__all__ = ["packed", "save"]
