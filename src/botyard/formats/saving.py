"""Writer of worlds as scenario files.

`botyard.formats.scenario` reads such a file back as the same world. An unchanged map is
referred to by its file, and not written again. Only files that this program wrote are
replaced.
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import yaml

from botyard.errors import BotyardError, FormatError, WorldFileError
from botyard.formats import armapwriter
from botyard.formats.armapscene import from_scene
from botyard.formats.base import DEFAULT_POINT_SIZE, Options, read_bytes, read_source
from botyard.formats.budget import Budget, Meter
from botyard.formats.floorkeys import save_picture
from botyard.formats.scenariotable import ScenarioDumper, ScenarioTable
from botyard.model.scene import Scene
from botyard.model.world import World
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


# -- the map


def _starts_with(scene: Scene, base: Scene) -> bool:
    """Return whether a scene contains the whole map as its first walls, places and areas.

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
    """Return the file of a scene's map, if the scene still contains the whole map.

    Returns
    -------
    (Path, Scene, float or None) or None
        File, its contents, and the resolution to read it with, m; None: the default of
        the format.
    """
    # Import the registry here, because it imports the reader of scenarios.
    from botyard.formats.archive import BUNDLE
    from botyard.formats.registry import format_of

    path = Path(scene.map_file or scene.source)
    try:
        # The files of an archive are removed after reading.
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
    """Return the name of the package's map that a file is; None for another file."""
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
    """Return the text by which a scenario in a folder refers to a map file.

    Parameters
    ----------
    path : Path
        File of the map.
    folder : Path
        Folder of the scenario.

    Returns
    -------
    str
        Name of a shipped map; for others a relative path with slashes.
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
    """Return a path for the map of a scenario, in the folder of the scenario.

    The path is free, or has the earlier map of the same scenario.

    Parameters
    ----------
    path : Path
        File of the scenario.

    Raises
    ------
    WorldFileError
        All of `MAX_NAMES` names are taken.
    """
    before = _earlier_map(path)
    for n in range(1, MAX_NAMES):
        found = path.with_name(f"{path.stem}{'' if n == 1 else f'-{n}'}.map")
        # A dangling link also occupies the name.
        if not os.path.lexists(found):
            return found
        if found.name == before and found.is_file() and is_ours(found):
            return found

    raise WorldFileError("all file names for the map of this scenario are taken", path)


def _earlier_map(path: Path) -> str:
    """Return the name of the map that belongs to an existing scenario file.

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

    The scenario refers to the file of an unchanged map. Otherwise walls and points are
    written as an ArMap next to the scenario.

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
        # Check the path first, so that no map is written for a scenario that cannot be
        # written.
        check_replaceable(path, force=overwrite)
        found = _unchanged_map(scene)
        if found is not None and not refer and _shipped_name(found[0]) is None:
            found = None
        table = ScenarioTable(world)
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
            table = ScenarioTable(replace(world, scene=scene))

        picture = save_picture(scene.floor, path)
        contents = table.build(base, name, resolution, picture)
        text = yaml.dump(
            contents,
            Dumper=ScenarioDumper,
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
        The scene with the ordinary walls first; the name of the new map, None if none was
        written; and the scene of the new map.
    """
    ordinary = np.ones(len(scene.segments), np.bool_)
    for wall in scene.special_walls:
        ordinary[wall.first : wall.last] = False
    if not ordinary.any() and not len(scene.points):
        return scene, None, Scene(segments=scene.segments[:0])
    # Ordinary walls are first, because the map file holds them; the scenario has the
    # other walls.
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
    armapwriter.write(from_scene(base)[0], target)
    return sorted_scene, target.name, base


def packed(world: World) -> bytes:
    """Return a world as the bytes of a ``.zip`` archive with its scenario and its map.

    `read_world` reads it; see `save`. Shipped maps are referred to by name.

    Raises
    ------
    WorldFileError
        The temporary files cannot be written.
    """
    out = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="botyard-") as folder:
        save(world, Path(folder) / "world.yaml", refer=False)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(folder).iterdir()):
                archive.write(path, path.name)

    return out.getvalue()


__all__ = ["packed", "save"]
