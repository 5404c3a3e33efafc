"""``botyard convert``: convert maps of any format, also through AMRISim's old tools.

Targets are ArMap, ROS map and scenario.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from botyard.app.checks import check_can_be_written
from botyard.app.needs import require
from botyard.cli.listing import FORCE
from botyard.cli.options import max_read_option
from botyard.errors import CommandLineError, FormatError, KeptFileError, MapError
from botyard.names import escaped
from botyard.processes.slow_notice import telling

if TYPE_CHECKING:
    from botyard.formats.base import Source
    from botyard.formats.budget import Budget
    from botyard.model.scene import Scene

TARGETS = (".map", ".yaml", ".yml")
"""Suffixes of the files that convert can write."""
TOOL_OK, TOOL_USAGE, TOOL_INPUT, TOOL_OUTPUT = 0, 1, 2, 3
"""Exit statuses of AMRISim's map converter."""
USUAL_M = 1.0
"""Largest usual size of a pixel, m. A larger value was probably meant in mm."""


def _formats_help() -> str:
    """Return the list of readable formats, for the help text."""
    from botyard.formats.registry import FORMATS

    rows = [f"  {f.name:<14}{' '.join(f.suffixes)}: {f.about}" for f in FORMATS]
    return "\b\nReadable formats:\n" + "\n".join(rows)


class _Command(click.Command):
    """Command whose help lists the map formats.

    The formats are looked up only when the help is shown.
    """

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of map formats at the end of the help text."""
        formatter.write("\n" + _formats_help().removeprefix("\b\n") + "\n")


@click.command("convert", cls=_Command)
@click.argument("source", metavar="INPUT")
@click.argument("target", metavar="OUTPUT")
@click.option(
    "-r",
    "--resolution",
    type=click.FloatRange(1e-6, 1e4),
    metavar="M",
    help="Size of a pixel, cell or unit, m.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0.0, 1.0),
    default=0.5,
    show_default=True,
    help="Pixels darker than this are obstacles: 0 is black, 1 white.",
)
@click.option("--invert", is_flag=True, help="Light pixels are obstacles.")
@click.option(
    "--trace",
    is_flag=True,
    help="Convert pictures to outlines instead of points.",
)
@click.option(
    "--planar/--degrees",
    default=None,
    help="Unit of GeoJSON coordinates: metres, or longitude and latitude.",
)
@click.option(
    "--topic",
    metavar="NAME",
    help="Topic of the map in a bag. [default: map, or the only one]",
)
@click.option(
    "--to",
    "kind",
    type=click.Choice(["armap", "rosmap", "scenario"]),
    help="Format of OUTPUT. [default: from its suffix]",
)
@click.option(
    "--cell",
    type=click.FloatRange(0.001, 100.0),
    metavar="M",
    help="Size of a cell of a ROS map, m. [default: 0.05]",
)
@max_read_option
@FORCE
def command(
    source: str,
    target: str,
    resolution: float | None,
    threshold: float,
    invert: bool,
    trace: bool,
    planar: bool | None,
    topic: str | None,
    kind: str | None,
    cell: float | None,
    max_read: tuple[str, ...],
    force: bool,
) -> int:
    """Convert a map, picture, drawing or world file.

    OUTPUT is an ArMap (.map), a ROS map (.yaml, with an image next to it), or a
    scenario (.yaml with --to scenario).
    """
    from botyard.controllers.registry import is_controller
    from botyard.formats import armap, armapwriter, bitmap
    from botyard.formats.base import Options, read_source
    from botyard.formats.budget import Budget
    from botyard.formats.mapsearch import find_map
    from botyard.formats.registry import format_of, read_world
    from botyard.formats.saving import save

    def warn(text: str) -> None:
        click.echo(f"warning: {escaped(text)}", err=True)

    require(what=source, also=[source])
    if resolution is not None and resolution > USUAL_M:
        warn(
            f"--resolution {resolution:g}: {resolution:g} m for each pixel, cell or "
            "unit; this option is in m, and --resolution of botyard run in mm"
        )
    options = Options(
        resolution=resolution,
        threshold=threshold,
        invert=invert,
        planar=planar,
        topic=topic,
        budget=Budget().raised(max_read),
        warn=warn,
        is_program=is_controller,
    )
    path = Path(target)
    kind = kind or kind_of(path)
    check_can_be_written("OUTPUT", path, force=force)

    with telling(f"converting {source}; large files take a while"):
        read = read_source(find_map(source), options.budget)
        name = "" if read.suffix == ".zip" else format_of(read).name
        if kind == "armap" and name == "armap":
            _written(
                path,
                lambda: armapwriter.write(
                    armap.read(read.name, options.budget), path, force=force
                ),
                # Convert ArMap to ArMap without the common scene, so that nothing is
                # lost.
            )
            return _done(path)

        if kind == "armap" and name == "bitmap" and not trace:
            # An ArMap holds points, so pixels need no outlines unless --trace asks for
            # them.
            scene = bitmap.read_points(read, options)
            world = None
        else:
            world = read_world(read, options)
            scene = world.scene

        if kind == "scenario":
            assert world is not None
            notes = save(world, path, overwrite=force)
        else:
            notes = write_scene(scene, path, kind=kind, cell=cell, force=force)
            if world is not None and world.robots:
                notes.append(
                    f"{len(world.robots)} robots are not written: a map cannot hold "
                    "robots (--to scenario keeps them)"
                )

    for note in notes:
        warn(note)
    return _done(path)


def kind_of(path: Path) -> str:
    """Return the format that belongs to the suffix of an output file.

    Parameters
    ----------
    path : Path
        Output file, which need not exist.

    Raises
    ------
    CommandLineError
        The suffix is unknown.
    """
    kind = {".map": "armap", ".yaml": "rosmap", ".yml": "rosmap"}.get(
        path.suffix.lower()
    )
    if kind is None:
        raise CommandLineError(
            f'OUTPUT: expected one of the suffixes {" ".join(TARGETS)}, found "{path.suffix}"'
        )

    return kind


def write_scene(
    scene: Scene,
    path: Path,
    *,
    kind: str = "",
    cell: float | None = None,
    force: bool = False,
) -> list[str]:
    """Write a map as ArMap or ROS map.

    Parameters
    ----------
    scene : Scene
        Map to write.
    path : Path
        File to write.
    kind : str
        ``armap`` or ``rosmap``; empty: by the suffix of `path`.
    cell : float, optional
        Size of a cell of a ROS map, m.
    force : bool
        Replace a file that botyard did not write.

    Returns
    -------
    list of str
        Descriptions of everything that the format cannot hold.

    Raises
    ------
    CommandLineError, FormatError, WorldError
        The format is unknown, the file cannot be written, or the raster is too large.
    """
    from botyard.formats import armapwriter, rosmap
    from botyard.formats.armapscene import from_scene
    from botyard.model.raster import rasterise

    if (kind or kind_of(path)) == "armap":
        made, notes = from_scene(scene)
        _written(path, lambda: armapwriter.write(made, path, force=force))
        return notes

    # Maps in mm have resolutions far below a useful cell; 0.05 m is the usual cell in
    # ROS.
    usual = scene.resolution if scene.resolution >= 0.03 else 0.05
    raster = rasterise(scene, cell or usual)
    _written(
        path,
        lambda: rosmap.write(
            path,
            raster.solid,
            raster.resolution,
            (raster.x, raster.y, 0.0),
            force=force,
        ),
    )
    lost = (
        ("boxes", scene.boxes),
        ("places", scene.places),
        ("areas", scene.areas),
        ("the home", scene.start),
        ("the position on Earth", scene.georeference),
        ("walls that only some sensors see", scene.special_walls),
    )
    left = [what for what, some in lost if some]
    return (
        [f"{', '.join(left)} are left out: a ROS map cannot hold them"] if left else []
    )


def _written(path: Path, write: Callable[[], None]) -> None:
    """Write a file with the function `write`; report system errors as FormatError."""
    try:
        write()
    except OSError as error:
        raise FormatError(f"cannot be written: {error.strerror}", path) from None


def _done(path: Path) -> int:
    """Print the message that a file was written; return the exit status 0."""
    click.echo(f"{path} written")
    return 0


# -- companion tools of AMRISim, with their options and exit statuses (formats §5, §6;
# TOL-001 … TOL-003)

_SINGLE_DASH = {"-resolution": "--resolution", "-color": "--color", "-help": "--help"}


@click.command(
    "convertBitmapToArMap",
    context_settings={"help_option_names": ["-h", "--help", "-help"]},
)
@click.option(
    "-i", "input_name", metavar="FILE", help="Input. [default: standard input]"
)
@click.option(
    "-o",
    "output_name",
    metavar="FILE",
    help="Output. [default: the input's name with .map; out.map]",
)
@click.option(
    "-r",
    "--resolution",
    "-resolution",
    type=float,
    default=1.0,
    show_default=True,
    metavar="MM",
    help="Size of a pixel, mm.",
)
@click.option(
    "-c",
    "--color",
    "-color",
    type=int,
    metavar="N",
    help="Only pixels whose colour planes add up to N. [default: dark pixels]",
)
@click.option("--invert", is_flag=True, help="Light pixels become points.")
@FORCE
@click.argument("bare", required=False, metavar="[FILE]")
def bitmap_tool(
    input_name: str | None,
    output_name: str | None,
    resolution: float,
    color: int | None,
    invert: bool,
    force: bool,
    bare: str | None,
) -> int:
    """Convert a picture (PNM, PNG …) to points of an ArMap.

    Dark pixels are obstacles.

    The x axis points right, y up.
    """
    import numpy as np

    from botyard.formats import armapwriter, bitmap
    from botyard.formats.armapscene import from_scene
    from botyard.formats.base import Options, read_source
    from botyard.formats.budget import Budget, Meter
    from botyard.formats.images import open_picture
    from botyard.model.scene import Scene

    name = input_name or bare
    if not resolution > 0.0:
        click.echo(
            f"convertBitmapToArMap: -r: expected mm per pixel, above 0, found {resolution:g}",
            err=True,
        )
        return TOOL_USAGE

    size = resolution / 1000.0
    try:
        source = (
            read_source(name) if name and name != "-" else _standard_input(Budget())
        )
        if color is None:
            scene = bitmap.read_points(source, Options(resolution=size, invert=invert))
        else:
            with open_picture(
                source, Meter(Budget(), source.name), "the picture"
            ) as image:
                planes = np.asarray(
                    image if image.mode in ("L", "RGB") else image.convert("RGB")
                )

            # The sum of three 8-bit planes needs more than 8 bits.
            total = planes if planes.ndim == 2 else planes.sum(axis=2, dtype=np.int16)
            # Rows of a picture run downwards, the y axis of a map upwards.
            rows, columns = np.nonzero((total == color)[::-1])
            points = np.stack([columns, rows], axis=1).astype(np.float64) * size
            scene = Scene(name=source.stem, points=points, resolution=size)
    except (MapError, OSError) as error:
        click.echo(f"convertBitmapToArMap: {escaped(str(error))}", err=True)
        return TOOL_INPUT

    path = Path(
        output_name
        or (str(Path(name).with_suffix(".map")) if name and name != "-" else "out.map")
    )
    try:
        armapwriter.write(from_scene(scene)[0], path, force=force)
    except KeptFileError as error:
        click.echo(f"convertBitmapToArMap: {error}", err=True)
        return TOOL_OUTPUT
    except OSError as error:
        click.echo(
            f"convertBitmapToArMap: {path}: cannot be written: {error.strerror}",
            err=True,
        )
        return TOOL_OUTPUT

    click.echo(f"{len(scene.points)} points written to {path}")
    return TOOL_OK


def _standard_input(budget: Budget) -> Source:
    """Return the data that another program writes to standard input.

    Raises
    ------
    MapError
        There is more data than the limit allows.
    """
    from botyard.formats.base import Source
    from botyard.formats.budget import Meter

    # One byte more than allowed shows that the limit is exceeded.
    data = sys.stdin.buffer.read(budget.bytes + 1)
    Meter(budget, "standard input").check("bytes", len(data))
    return Source("standard input", data)


@click.command("convertSfWorldToMap")
@click.argument("world_name", metavar="IN.wld")
@click.argument("map_name", metavar="OUT.map")
@FORCE
def saphira_tool(world_name: str, map_name: str, force: bool) -> int:
    """Convert a Saphira world to a map: its lines, and its position as RobotHome."""
    from botyard.formats import armapwriter, saphira
    from botyard.formats.base import Options, read_source

    made = saphira.read(read_source(world_name), Options())
    _written(Path(map_name), lambda: armapwriter.write(made, map_name, force=force))
    return _done(Path(map_name))


@click.command("addSfWorldLinesToMap")
@click.argument("world_name", metavar="IN.wld")
@click.argument("map_name", metavar="IN.map")
@click.argument("out_name", required=False, metavar="[OUT.map]")
@FORCE
def saphira_lines_tool(
    world_name: str, map_name: str, out_name: str | None, force: bool
) -> int:
    """Replace the lines of a map with the lines of a Saphira world.

    Without OUT.map, the map itself is changed.
    """
    from dataclasses import replace

    from botyard.formats import armap, armapwriter, saphira
    from botyard.formats.base import Options, read_source

    lines = saphira.read(read_source(world_name), Options()).lines
    old = armap.read(map_name)
    first, *others = old.sources

    # A map may hold several sensors' lines; the new lines replace all of them.
    made = replace(
        old,
        sources=(
            replace(first, lines=lines),
            *(replace(s, lines=s.lines[:0]) for s in others),
        ),
    )
    path = Path(out_name or map_name)
    _written(
        path, lambda: armapwriter.write(made, path, force=force or out_name is None)
    )
    return _done(path)


__all__ = ["bitmap_tool", "command", "saphira_lines_tool", "saphira_tool"]
