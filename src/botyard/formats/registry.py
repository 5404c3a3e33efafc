"""Registry of map and world formats.

The registry finds the reader for a file name. Other packages add formats by the
entry-point group ``botyard.map_formats``: each entry is a `Format`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from botyard.api import arguments
from botyard.api.plugins import Group
from botyard.errors import (
    MapError,
    UnknownFormatError,
)
from botyard.formats.archive import BUNDLE, read_bundle
from botyard.formats.base import Format, Options, Source, Warn, read_source
from botyard.formats.budget import Budget, Meter
from botyard.formats.mapsearch import builtin_maps, find_map
from botyard.formats.suffixes import BAGS, PICTURES, YAML
from botyard.formats.worldlimits import check_world, kind_of_error
from botyard.model.scene import Scene
from botyard.model.world import World

PACKAGED: Final[Group[Format]] = Group(
    name="botyard.map_formats",
    noun="map format",
    expected="a Format",
    fits=lambda _name, found: isinstance(found, Format),
    error=UnknownFormatError,
)
"""Map formats of installed packages. The name of the entry point is for messages only.
"""


def _reader_of(module: str) -> Callable[[Source, Options], World]:
    """Return a function that reads files by a module, which is imported at the first file.

    Importing all readers would take a seventh of the time that the program needs to
    start.
    """

    def read(source: Source, options: Options) -> World:
        found: World = _module(module).read(source, options)
        return found

    return read


def _sniffer_of(module: str) -> Callable[[Source], bool]:
    """Return a function that detects a format by a module, which is imported at the first call."""
    return lambda source: bool(_module(module).fits(source))


def _module(name: str) -> Any:
    return import_module(f"botyard.formats.{name}")


def _is_grid(source: Source) -> bool:
    return source.suffix in BAGS or _sniffer_of("occupancy")(source)


def _saphira(source: Source, options: Options) -> World:
    from botyard.formats import armapscene, saphira

    return World(
        scene=armapscene.to_scene(saphira.read(source, options), source=source.name)
    )


def _scenario(source: Source, options: Options) -> World:
    from botyard.formats import scenario

    return scenario.read(source, options, _open_map)


def _open_map(source: Source, name: str, options: Options) -> Scene:
    """Return the map that a scenario refers to.

    Parameters
    ----------
    source : Source
        Scenario.
    name : str
        Name of a shipped map, or a path relative to the scenario. A plain name is also
        searched for in the user's folders.
    options : Options
        Options for reading the map.

    Raises
    ------
    MapError
        There is no such map, it lies outside of the archive, or it is a scenario
        itself.
    FormatError
        The map is invalid.
    """
    path = None
    # A plain name means a shipped map first, so that a scenario works in every folder.
    if Path(name).parent == Path():
        path = builtin_maps().get(name)
    # Shipped maps lie outside of an archive, so the archive's folder must not confine
    # them.
    root = None if path is not None else source.root
    if path is None:
        path = source.sibling_file(name, "the map")
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
        read=_reader_of("movingai"),
        fits=_sniffer_of("movingai"),
    ),
    Format(
        name="armap",
        about="maps of ARIA, MobileMapper, AMRISim",
        suffixes=(".map",),
        read=_reader_of("armapscene"),
    ),
    Format(
        name="sdf",
        about="SDF worlds of Gazebo, cut by a horizontal plane",
        suffixes=(".sdf", ".world"),
        read=_reader_of("importers.sdf"),
        fits=_sniffer_of("importers.sdf"),
    ),
    Format(
        name="mvsim",
        about="worlds of MVSim",
        suffixes=(".xml",),
        read=_reader_of("importers.mvsim"),
        fits=_sniffer_of("importers.mvsim"),
    ),
    Format(
        name="argos",
        about="experiment files of ARGoS",
        suffixes=(".argos",),
        read=_reader_of("importers.argos"),
        fits=_sniffer_of("importers.argos"),
    ),
    Format(
        name="stage",
        about="world files of Stage and of AMRISim",
        suffixes=(".world",),
        read=_reader_of("stagescene"),
    ),
    Format(
        name="irsim",
        about="worlds of ir-sim",
        suffixes=YAML,
        read=_reader_of("importers.irsim"),
        fits=_sniffer_of("importers.irsim"),
    ),
    Format(
        name="rmf",
        about="buildings of Open-RMF's traffic editor: one level",
        suffixes=YAML,
        read=_reader_of("importers.rmf"),
        fits=_sniffer_of("importers.rmf"),
    ),
    Format(
        name="flatland",
        about="worlds of Flatland",
        suffixes=YAML,
        read=_reader_of("importers.flatland"),
        fits=_sniffer_of("importers.flatland"),
    ),
    Format(
        name="navground",
        about="worlds, scenarios and experiments of navground",
        suffixes=YAML,
        read=_reader_of("importers.navground"),
        fits=_sniffer_of("importers.navground"),
    ),
    Format(
        name="rosmap",
        about="maps of ROS's map servers: YAML and image",
        suffixes=YAML,
        read=_reader_of("rosmap"),
        fits=_sniffer_of("rosmap"),
    ),
    Format(
        name="occupancygrid",
        about="nav_msgs/OccupancyGrid as printed text, JSON or bag",
        suffixes=(*YAML, ".json", *BAGS),
        read=_reader_of("occupancy"),
        fits=_is_grid,
    ),
    Format(
        name="geojson",
        about="GeoJSON (RFC 7946)",
        suffixes=(".geojson", ".json"),
        read=_reader_of("geojson"),
        fits=_sniffer_of("geojson"),
    ),
    Format(
        name="scenario",
        about="botyard's own scenarios: map, robots, obstacles, settings",
        suffixes=YAML,
        read=_scenario,
    ),
    Format(
        name="saphira",
        about="worlds of Saphira and SRIsim",
        suffixes=(".wld",),
        read=_saphira,
    ),
    Format(
        name="bitmap",
        about="pictures: dark pixels are solid",
        suffixes=PICTURES,
        read=_reader_of("bitmap"),
    ),
    Format(
        name="svg", about="SVG drawings", suffixes=(".svg",), read=_reader_of("svg")
    ),
    Format(
        name="dxf",
        about='DXF drawings (extra "drawings")',
        suffixes=(".dxf",),
        read=_reader_of("dxf"),
        extras={".dxf": "drawings"},
    ),
)
"""Formats of this package, in the order in which they are tried."""


def formats() -> tuple[Format, ...]:
    """Return all formats: botyard's, then formats of installed packages.

    A broken package is left out with a warning.
    """
    return (*FORMATS, *PACKAGED.load_all().values())


def formats_with(suffix: str) -> list[Format]:
    """Return the formats of files with a suffix.

    The suffix is in lower case with its dot. Installed packages are searched only for a suffix that
    botyard's own formats lack.
    """
    if not suffix:
        return []
    own = [one for one in FORMATS if suffix in one.suffixes]
    return own or [one for one in formats() if suffix in one.suffixes]


def _in_order() -> Iterator[Format]:
    """Yield the formats of botyard first, and then the formats of installed packages."""
    yield from FORMATS
    yield from PACKAGED.load_all().values()


def format_of(source: Source) -> Format:
    """Return the format of a file, by suffix and content.

    Parameters
    ----------
    source : Source
        File. A file of unknown suffix is an ArMap if its first line identifies it.

    Raises
    ------
    UnknownFormatError
        No format has this suffix, or the contents fit no format.
    """
    # The order decides between formats that share a suffix; sniffers reject foreign
    # files.
    for one in _in_order():
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

    Parameters
    ----------
    source : Source
        File to read. A ``.zip`` also has the files that the main file needs.
    options : Options
        Values that the file lacks, limits, and receiver of warnings.

    Raises
    ------
    FormatError
        A file is invalid. The error names the file, the line if there is one, the
        expected and the found value.
    BudgetError
        The world exceeds a limit.
    """
    if source.suffix == BUNDLE:
        return read_bundle(source, options, read_world, formats())
    # Formats of other packages may ignore the budget, so the result is checked as well.
    world = format_of(source).read(source, options)
    check_world(world, Meter(options.budget, source.name, kind_of_error(world)))
    return world


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
