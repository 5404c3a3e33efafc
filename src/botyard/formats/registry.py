"""Registry of map and world formats, and search for files.

The registry finds the reader for a file name. Other packages add formats by the
entry-point group ``botyard.map_formats``: each entry is a `Format`.
"""

from __future__ import annotations

import io
import math
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np

from botyard.api import arguments
from botyard.api.plugins import Group
from botyard.errors import (
    BotyardError,
    FormatError,
    MapError,
    NoSuchMapError,
    UnknownFormatError,
    WorldFileError,
    did_you_mean,
)
from botyard.formats import (
    armapscene,
    bitmap,
    dxf,
    geojson,
    movingai,
    occupancy,
    rosmap,
    saphira,
    scenario,
    stagescene,
    svg,
)
from botyard.formats.base import Format, Options, Source, Warn, read_source
from botyard.formats.budget import Budget, Meter
from botyard.formats.models import resource_folders, user_folders, user_world_file
from botyard.geometry import Outline, Pose
from botyard.model.raster import corners_of
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.world import Settings, World
from botyard.names import shown

PACKAGED: Final[Group[Format]] = Group(
    name="botyard.map_formats",
    noun="map format",
    expected="a Format",
    fits=lambda _name, found: isinstance(found, Format),
    error=UnknownFormatError,
)
"""Map formats of installed packages. The name of the entry point is for messages only.
"""
_YAML: Final = (".yaml", ".yml")
BUNDLE: Final = ".zip"
_CHUNK_BYTES: Final = 1 << 20
"""Number of bytes that are decompressed at a time."""


def _saphira(source: Source, options: Options) -> World:
    return World(
        scene=armapscene.to_scene(saphira.read(source, options), source=source.name)
    )


def _scenario(source: Source, options: Options) -> World:
    return scenario.read(source, options, _open_map)


def _open_map(source: Source, name: str, options: Options) -> Scene:
    """Return the map that a scenario names.

    The map may be next to the scenario, in the user's folders, or in the package.
    """
    path = None
    # A plain name means a shipped map first, so that a scenario works in every folder.
    if Path(name).parent == Path():
        path = builtin_maps().get(name)
    # Shipped maps lie outside of an archive, so the archive's folder must not confine
    # them.
    root = None if path is not None else source.root
    if path is None:
        path = source.beside(name, "the map")
        if root is None and not os.path.isfile(path):
            path = find_map(path if Path(name).parent != Path() else name)

    inner = replace(read_source(path, options.budget), root=root)
    one = format_of(inner)
    if one.read is _scenario:
        raise MapError("expected a map or a world file, found a scenario", name)
    return one.read(inner, options).scene


FORMATS: Final = (
    Format(
        name="movingai",
        about="grid maps of the MovingAI benchmarks",
        suffixes=(".map",),
        read=movingai.read,
        fits=movingai.fits,
    ),
    Format(
        name="armap",
        about="maps of ARIA, MobileMapper, AMRISim",
        suffixes=(".map",),
        read=armapscene.read,
    ),
    Format(
        name="stage",
        about="world files of Stage and of AMRISim",
        suffixes=stagescene.SUFFIXES,
        read=stagescene.read,
    ),
    Format(
        name="rosmap",
        about="maps of ROS's map servers: YAML and image",
        suffixes=_YAML,
        read=rosmap.read,
        fits=rosmap.fits,
    ),
    Format(
        name="occupancygrid",
        about="nav_msgs/OccupancyGrid as printed text, JSON or bag",
        suffixes=(*_YAML, ".json", *occupancy.BAGS),
        read=occupancy.read,
        fits=lambda source: source.suffix in occupancy.BAGS or occupancy.fits(source),
    ),
    Format(
        name="geojson",
        about="GeoJSON (RFC 7946)",
        suffixes=(".geojson", ".json"),
        read=geojson.read,
        fits=geojson.fits,
    ),
    Format(
        name="scenario",
        about="botyard's own scenarios: map, robots, obstacles, settings",
        suffixes=_YAML,
        read=_scenario,
    ),
    Format(
        name="saphira",
        about="worlds of Saphira and SRIsim",
        suffixes=saphira.SUFFIXES,
        read=_saphira,
    ),
    Format(
        name="bitmap",
        about="pictures: dark pixels are solid",
        suffixes=bitmap.SUFFIXES,
        read=bitmap.read,
    ),
    Format(name="svg", about="SVG drawings", suffixes=(".svg",), read=svg.read),
    Format(
        name="dxf",
        about='DXF drawings (extra "drawings")',
        suffixes=(".dxf",),
        read=dxf.read,
        extras={".dxf": "drawings"},
    ),
)
"""Formats of the package, in the order in which they are tried."""
LISTED_SUFFIXES: Final = frozenset(
    {".map", ".world", ".wld", ".geojson", ".dxf", *_YAML}
)
"""Suffixes of files that are listed as maps.

Files with other suffixes are often no maps.
"""


def formats() -> tuple[Format, ...]:
    """Return all formats: botyard's, then formats of installed packages.

    A broken package is left out with a warning.
    """
    return (*FORMATS, *PACKAGED.load_all().values())


def format_of(source: Source) -> Format:
    """Return the format of a file, by suffix and content.

    A file of unknown suffix is an ArMap if its first line says so.

    Raises
    ------
    UnknownFormatError
        No format has this suffix, or the contents fit no format.
    """
    # The order decides between formats that share a suffix; sniffers reject foreign
    # files.
    for one in formats():
        if source.suffix in one.suffixes and one.fits(source):
            return one

    known = sorted({s for one in formats() for s in one.suffixes})
    # Older programs write maps with any suffix.
    if source.data[:6].lower() == b"2d-map":
        return next(one for one in FORMATS if one.name == "armap")
    if source.suffix in known:
        raise UnknownFormatError(
            "not recognised: its contents are not a map, world or scenario",
            source.name,
        )

    raise UnknownFormatError(
        f'no map format has the suffix "{source.suffix}"; there are: {" ".join(known)}',
        source.name,
    )


def read_world(source: Source, options: Options = Options()) -> World:
    """Read a map, a world file, a scenario, or a ``.zip`` that contains one.

    The ``.zip`` also has the files that the main file needs.

    Raises
    ------
    FormatError
        A file is invalid. The error names the file, the line if there is one, the
        expected and the found value.
    """
    if source.suffix == BUNDLE:
        return _read_bundle(source, options)
    # Formats of other packages may ignore the budget, so the result is checked as well.
    world = format_of(source).read(source, options)
    check_world(world, Meter(options.budget, source.name, _kind_of_error(world)))
    return world


def _kind_of_error(world: World) -> type[FormatError]:
    return WorldFileError if world.robots else MapError


def check_world(world: World, meter: Meter) -> None:
    """Check a whole world against the limits, before it is built.

    Readers check only while they read.

    Raises
    ------
    BudgetError
        The world has too many walls, points, corners, robots or beams, or is too large.
    """
    scene = world.scene
    meter.add("vertices", 2 * len(scene.segments) + len(scene.points))
    meter.add("robots", len(world.robots))
    for lines in (scene.segments.reshape(-1, 2), scene.points, corners_of(scene)):
        if len(lines):
            low, high = lines.min(axis=0), lines.max(axis=0)
            for far in (high - low, np.abs(low), np.abs(high)):
                meter.check("extent", float(far.max()))

    specs: dict[int, tuple[int, int, float]] = {}
    bodies: list[tuple[Pose | None, float]] = []
    for box in scene.boxes:
        meter.add("vertices", sum(map(len, box.outlines)))
        bodies.append((box.pose, _farthest_coordinate(box.outlines)))

    # Thousands of robots may share a model, which is measured once.
    for robot in world.robots:
        known = specs.get(id(robot.spec))
        if known is None:
            outlines = (robot.spec.outline, *robot.spec.parts)
            reach = max(
                _farthest_coordinate(outlines),
                _farthest_coordinate((_mounts(robot.spec),)),
            )
            known = specs[id(robot.spec)] = (
                sum(map(len, outlines)),
                _beams(robot.spec),
                reach,
            )

        meter.add("vertices", known[0])
        meter.add("beams", known[1])
        bodies.append((robot.pose, known[2]))

    for area in scene.areas:
        meter.add("vertices", len(area.corners))
        bodies.append((None, _farthest_coordinate((area.corners,))))

    bodies += [(place.pose, 0.0) for place in scene.places]
    bodies.append((scene.start, 0.0))
    for pose, reach in bodies:
        x, y, th = pose or (0.0, 0.0, 0.0)
        # A heading that is not finite makes the sum NaN, which the check refuses.
        meter.check("extent", max(abs(x), abs(y), 0.0 * abs(th)) + reach)


def _farthest_coordinate(outlines: Iterable[Outline]) -> float:
    """Return the largest absolute coordinate of outlines, m; NaN if any is NaN."""
    values = [abs(v) for outline in outlines for corner in outline for v in corner]
    return math.nan if any(map(math.isnan, values)) else max(values, default=0.0)


def _mounts(spec: RobotSpec) -> Outline:
    """Return the mounting positions of a robot's range sensors, m."""
    poses = [laser.pose for laser in spec.lasers]
    if spec.sonar is not None:
        poses += [transducer.pose for transducer in spec.sonar.transducers]
    return tuple((p.x, p.y) for p in poses)


def _beams(spec: RobotSpec) -> int:
    """Return the number of beams of all range sensors of a robot."""
    sonar = (
        0
        if spec.sonar is None
        else sum(map(spec.sonar.rays_of, spec.sonar.transducers))
    )
    return sonar + sum(laser.samples for laser in spec.lasers)


def _read_bundle(source: Source, options: Options) -> World:
    """Read the world in an archive, which is unpacked into a temporary folder.

    References to files outside of that folder are refused.
    """
    meter = Meter(options.budget, source.name)
    try:
        # Counts entries of the central directory before zipfile spends memory on it.
        meter.check("members", source.data.count(_MEMBER) // 2)
        with (
            zipfile.ZipFile(io.BytesIO(source.data)) as archive,
            tempfile.TemporaryDirectory(prefix="botyard-") as name,
        ):
            # The temporary folder may be behind a link, which later checks would
            # refuse.
            folder = Path(name).resolve()
            for member in archive.infolist():
                meter.add("members", 1)
                if not member.is_dir():
                    _unpack(archive, member, folder, meter)

            return _read_unpacked(source, folder, options)
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        zlib.error,
        ValueError,
        RuntimeError,
        OSError,
        EOFError,
    ) as error:
        # An OSError also has the name of a temporary file, which helps no user.
        reason = error.strerror if isinstance(error, OSError) else error
        raise MapError(
            f"not a .zip that can be unpacked: {shown(reason, 200)}", source.name
        ) from None


def _read_unpacked(source: Source, folder: Path, options: Options) -> World:
    """Read the world among unpacked files.

    In messages, the archive's name replaces the temporary folder.
    """

    def rename(text: str) -> str:
        return text.replace(f"{folder}/", f"{source.name}/").replace(
            str(folder), source.name
        )

    renamed = replace(options, warn=lambda text: options.warn(rename(text)))
    try:
        main = _main_file(
            sorted(p for p in folder.rglob("*") if p.is_file()),
            source.name,
            options.budget,
        )
        inner = read_source(main, options.budget)
        inside = Source(
            f"{source.name}/{shown(main.relative_to(folder), 200)}",
            inner.data,
            main,
            folder,
        )
        return read_world(inside, renamed)
    except FormatError as error:
        error.rewrite(rename)
        raise
    except BotyardError as error:
        error.args = tuple(rename(a) if isinstance(a, str) else a for a in error.args)
        raise


_MEMBER: Final = b"PK\x01\x02"


def _unpack(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, meter: Meter
) -> None:
    """Unpack one file.

    Bytes are counted as they are decompressed, because the size that the archive states
    may be wrong.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Other methods may allocate memory without a bound.
        raise MapError(
            f'"{shown(member.filename)}": expected compression by deflate, found '
            "another method",
            meter.path,
        )

    # Dots are removed, so that no file lands outside of the folder.
    parts = [
        p
        for p in member.filename.replace("\\", "/").split("/")
        if p not in ("", ".", "..")
    ]
    if not parts:
        return
    meter.check("nesting", len(parts))
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as packed, path.open("wb") as out:
        while piece := packed.read(_CHUNK_BYTES):
            meter.add("unpacked", len(piece))
            out.write(piece)


def _main_file(files: Sequence[Path], name: str, budget: Budget) -> Path:
    """Return the main file: the only world, scenario or map, in this order."""
    # Ordered by reference: worlds and scenarios refer to maps, and maps to pictures.
    for suffixes in (
        (".world",),
        _YAML,
        (".map", ".wld", ".geojson", ".json", ".dxf", ".svg"),
        bitmap.SUFFIXES,
    ):
        found = [
            p
            for p in files
            if p.suffix.lower() in suffixes and not p.name.startswith(".")
        ]
        if suffixes == _YAML:
            # The YAML file of a map that a scenario uses is not the main file.
            mains = [p for p in found if not rosmap.fits(read_source(p, budget))]
            found = mains or found

        if len(found) == 1:
            return found[0]
        if found:
            raise MapError(
                "expected one map or world in the archive, found "
                f"{', '.join(shown(p.name) for p in found[:5])}",
                name,
            )

    raise MapError("expected a map or a world in the archive, found none", name)


# -- finding files


def _shipped() -> Iterator[Path]:
    root = resources.files("botyard") / "maps"
    yield from (
        Path(str(f)) for f in root.iterdir() if f.name.endswith((".map", ".yaml"))
    )


def builtin_maps() -> dict[str, Path]:
    """Return maps and scenarios of the package: name without suffix → file."""
    return {p.stem: p for p in sorted(_shipped(), key=lambda p: p.stem)}


def _shipped_map(name: str) -> Path | None:
    stem = name.lower().removesuffix(".map").removesuffix(".yaml")
    return builtin_maps().get(stem)


def _in_folder(folder: Path, name: str) -> Path | None:
    """Return a file of `folder` by its name in any case (MAP-017)."""
    if not os.path.isdir(folder):
        return None
    lower = name.lower()
    try:
        return next(
            (
                p
                for p in sorted(folder.iterdir())
                if p.name.lower() == lower and p.is_file()
            ),
            None,
        )
    except OSError:
        # The folder may not be readable.
        return None


def find_map(name: str | Path) -> Path:
    """Find a map file.

    It is found as a path (its last part in any case), in the user's folders, or among
    the maps of the package. Names of the package's maps need no suffix.

    Raises
    ------
    MapError
        There is no such file.
    """
    path = Path(name)
    # `Path.is_file` raises for a name that is too long, and for a folder that may not
    # be read; `os.path.isfile` does not.
    if os.path.isfile(path):
        return path
    found = _in_folder(path.parent, path.name)
    if found is not None:
        return found
    if path.parent == Path():
        for folder in (*resource_folders(), *user_folders()):  # MAP-022
            found = _in_folder(folder, path.name) or _in_folder(
                folder / "maps", path.name
            )
            if found is not None:
                return found

        shipped = _shipped_map(path.name)
        if shipped is not None:
            return shipped
        names = builtin_maps()
        hint = did_you_mean(path.name.lower(), names)
        raise MapError(
            "no such map file, here or among the shipped maps "
            f"({', '.join(names)}){hint}",
            name,
        )

    raise MapError(f"no such map file{_obstacle(path)}", name)


def _obstacle(path: Path) -> str:
    """Return why a path cannot be looked up, such as ``: Permission denied``.

    The text is empty if there is only no such file.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ""
    except OSError as error:
        return f": {error.strerror}"

    return ""


def find_client_map(name: str, folders: Sequence[Path]) -> Path:
    """Find a map that a client requested.

    The search is confined to `folders` (``..`` and links are resolved first) and to the
    shipped maps.

    Parameters
    ----------
    name : str
        Name as the client gave it. A relative name is searched for in each folder; its
        last part may be in any case.
    folders : sequence of Path
        Resolved folders.

    Raises
    ------
    NoSuchMapError
        There is no such map.
    """
    # The operating system would raise ValueError for a null character.
    if not name or "\0" in name:
        raise NoSuchMapError("expected the name of a map file, found none")
    for folder in folders:
        path = folder / name
        found = path if os.path.isfile(path) else _in_folder(path.parent, path.name)
        # Resolving follows links, which could lead out of the folder.
        if found is not None and found.resolve().is_relative_to(folder):
            return found.resolve()

    shipped = _shipped_map(name)
    if shipped is not None:
        return shipped.resolve()
    raise NoSuchMapError(
        "no such map in the folders that clients may load from, nor among the "
        "shipped maps",
        name,
    )


def client_maps(folders: Sequence[Path]) -> list[tuple[str, bool]]:
    """Return the names that `find_client_map` finds, and whether they are shipped."""
    names: dict[str, bool] = {}
    for folder in folders:
        try:
            files = sorted(
                p for p in folder.iterdir() if p.is_file() and _looks_like_a_map(p)
            )
        except OSError:
            continue

        # A link to a file elsewhere is not offered, because it would be refused.
        names |= {p.name: False for p in files if p.resolve().is_relative_to(folder)}

    shipped = {
        stem: True for stem, path in builtin_maps().items() if path.name not in names
    }
    return [*shipped.items(), *names.items()]


def _looks_like_a_map(path: Path) -> bool:
    """Return whether to list a file as a map.

    The content of YAML files is checked, because many are not maps.
    """
    suffix = path.suffix.lower()
    if suffix in _YAML:
        try:
            with path.open("rb") as file:
                # The sniffers only need the start of a file.
                head = Source(path.name, file.read(65536), path)
        except OSError:
            return False

        return rosmap.fits(head) or scenario.fits(head) or occupancy.fits(head)

    return suffix in LISTED_SUFFIXES


def load_world(name: str | Path, options: Options = Options()) -> World:
    """Find and read a map, a world file or a scenario.

    Parameters
    ----------
    name : str or Path
        Path, or name of a map of the package (``office``).
    options : Options
        Values that the file lacks, and limits.

    Raises
    ------
    FormatError
        The file was not found, cannot be read, or has an unknown format. The error
        names the file and the line.
    """
    return read_world(read_source(find_map(name), options.budget), options)


def load_scene(
    name: str | Path,
    *,
    resolution: float | None = None,
    warn: Warn | None = None,
    budget: Budget = Budget(),
) -> Scene:
    """Find and read a map, or the scene of a world file or a scenario without robots.

    Parameters
    ----------
    name : str or Path
        Path, or name of a map of the package (``office``).
    resolution : float, optional
        Size of a map point, a pixel, a cell or a unit of a drawing, m, if the file does
        not give it.
    warn : callable, optional
        Receives a line for each part that was skipped, and for each assumption.
    budget : Budget
        Limits.

    Raises
    ------
    FormatError
        The file was not found, cannot be read, is too large, or has an unknown format.
        The error names the file and the line.
    """
    arguments.path(name, "name")
    if resolution is not None:
        resolution = arguments.number(
            resolution, "resolution", low=0.0, above=True, unit="m"
        )

    options = Options(resolution=resolution, budget=budget)
    return load_world(
        name, options if warn is None else replace(options, warn=warn)
    ).scene


def with_user_things(world: World, options: Options = Options()) -> World:
    """Return a world with the models that the user's include files add (WLD-006).

    Settings of those files are defaults of the world's own settings. A file that cannot
    be read is reported, and left out.
    """
    found = user_world_file()
    if not found.entities and not found.properties:
        return world
    try:
        more = stagescene.to_world(found, "the user's include files", options)
    except FormatError as error:
        options.warn(f"{error}; the user's include files are ignored")
        return world

    # The world's own robots keep their names.
    names = {r.name for r in world.robots}
    robots = tuple(
        replace(r, name="" if r.name in names else r.name) for r in more.robots
    )
    scene, extra = world.scene, more.scene
    offset = len(scene.segments)
    special = tuple(
        # Row numbers of the added walls shift by the walls before them.
        replace(w, first=w.first + offset, last=w.last + offset)
        for w in extra.special_walls
    )
    traced = tuple(
        replace(c, first=c.first + offset, last=c.last + offset) for c in extra.traced
    )
    together = replace(
        scene,
        segments=np.concatenate([scene.segments, extra.segments]),
        special_walls=(*scene.special_walls, *special),
        traced=(*scene.traced, *traced),
        boxes=(*scene.boxes, *extra.boxes),
        areas=(*scene.areas, *extra.areas),
        view=scene.view or extra.view,
    )
    own, theirs = world.settings, more.settings
    settings = Settings(
        **{
            f.name: getattr(own, f.name)
            if getattr(own, f.name) is not None
            else getattr(theirs, f.name)
            for f in fields(Settings)
        }
    )
    return replace(
        world, scene=together, robots=(*world.robots, *robots), settings=settings
    )
