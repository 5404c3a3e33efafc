"""Writer of worlds as scenario files.

`botyard.formats.scenario` reads such a file back as the same world. An unchanged map is
referred to by its file, and not written again. Only files that this program wrote are
replaced.
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
"""Largest number of file names that are tried for the map of a scenario."""


# -- YAML values


class _Dumper(yaml.SafeDumper):
    """Dumper that quotes texts with unprintable characters, so that they are escaped.

    A reader would take some of these characters for blanks in plain scalars.
    """


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"'
    )


_Dumper.add_representer(str, _text)


class _CannotBeWrittenError(Exception):
    """YAML cannot represent a value."""


def _plain(value: Any) -> Any:
    """Convert a value to plain types that YAML can represent."""
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


def _corners(outline: Sequence[tuple[float, float]]) -> list[list[float]]:
    return [[float(x), float(y)] for x, y in outline]


class _Table:
    """Builds the contents of a scenario file.

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
        self, base: Scene, map_name: str | None, resolution: float | None
    ) -> dict[str, Any]:
        """Return the top-level mapping of the file.

        Parameters
        ----------
        base : Scene
            Contents of the map file; the rest is written.
        map_name : str or None
            Name of the map in the file.
        resolution : float or None
            Resolution for reading the map, m.
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
        """Return a name that is unique in the file."""
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
        """Return the table of a moving obstacle."""
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
        """Return the name of a model in the library or in this file.

        A model that neither has is added to the file.
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
        """Note if writing and re-reading a model changes it."""
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
                f"the model {shown(spec.name)} is written with another outline"
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
    """Return the keys for visibility and mass that differ from the defaults."""
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


# -- the map


def _starts_with(scene: Scene, base: Scene) -> bool:
    """Return whether a scene starts with the whole content of a map.

    The scene may have more walls, places and areas after it.
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
    """Return a scene's map file, its contents, and the resolution to read it with.

    The result is None if the scene no longer has the whole map.
    """
    # Imported here, because the registry imports the reader of scenarios.
    from botyard.formats.archive import BUNDLE
    from botyard.formats.registry import format_of

    path = Path(scene.map_file or scene.source)
    try:
        # The files of an archive are gone after reading.
        if path.suffix.lower() == BUNDLE or not path.is_file():
            return None
        source = read_source(path)
        one = format_of(source)
        # The scene may have been read with the default resolution or with a requested
        # one.
        for resolution in (None, scene.resolution):
            base = one.read(source, Options(resolution=resolution)).scene
            if one.name != "scenario" and _starts_with(scene, base):
                return path, base, resolution
    except (BotyardError, OSError, ValueError):
        return None

    return None


def _shipped_name(path: Path) -> str | None:
    """Return the name of a map that comes with the package, or None."""
    from botyard.formats.mapsearch import builtin_maps

    return next(
        (
            name
            for name, shipped in builtin_maps().items()
            if shipped.resolve() == path.resolve()
        ),
        None,
    )


def _map_reference(path: Path, folder: Path) -> str:
    """Return how a scenario in a folder refers to a map.

    A shipped map is referred to by its name, others by a relative path.
    """
    name = _shipped_name(path)
    if name is not None:
        return name
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:
        # On Windows no relative path leads to another drive.
        return str(path.resolve())


def _free_map(path: Path) -> Path:
    """Return the path for the map of a scenario, in the same folder.

    It replaces no file except the earlier map of the same scenario.
    """
    before = _earlier_map(path)
    for n in range(1, MAX_NAMES):
        found = path.with_name(f"{path.stem}{'' if n == 1 else f'-{n}'}.map")
        # A dangling link also occupies the name.
        if not os.path.lexists(found):
            return found
        if found.name == before and found.is_file() and is_ours(found):
            return found

    raise WorldFileError("all names for its map are taken", path)


def _earlier_map(path: Path) -> str:
    """Return the name of the map in an existing scenario at a path.

    The result is empty if this program did not write the scenario.
    """
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

    An unchanged map is referred to. Otherwise walls and points are written as an ArMap
    next to the scenario.

    Parameters
    ----------
    world : World
        World to write.
    path : path-like
        Scenario file.
    overwrite : bool
        Whether to replace a scenario that this program did not write. A map is replaced
        only if it belongs to the same scenario.
    refer : bool
        Whether to refer to the file of an unchanged map; False: only to shipped maps.

    Returns
    -------
    list of str
        Notes about data that the file cannot hold.

    Raises
    ------
    KeptFileError
        There is a file that this program did not write, and `overwrite` is False.
    WorldFileError
        The file cannot be written.
    """
    path = Path(path)
    scene = world.scene
    try:
        # Checked first, so that no map is written for a scenario that cannot be.
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
    """Write the ordinary walls and the points of a scene as a map next to a scenario.

    Returns
    -------
    (Scene, str or None, Scene)
        The scene with those walls first, the name of the map, and the contents of the
        map.
    """
    ordinary = np.ones(len(scene.segments), np.bool_)
    for wall in scene.special_walls:
        ordinary[wall.first : wall.last] = False
    if not ordinary.any() and not len(scene.points):
        return scene, None, Scene(segments=scene.segments[:0])
    # Ordinary walls come first, because the map file holds them; the scenario has the
    # rest.
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
    """Return a world as the bytes of a ``.zip`` with its scenario and its map.

    `read_world` reads it; see `save`.
    """
    out = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="botyard-") as folder:
        save(world, Path(folder) / "world.yaml", refer=False)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(folder).iterdir()):
                archive.write(path, path.name)

    return out.getvalue()


__all__ = ["packed", "save"]
