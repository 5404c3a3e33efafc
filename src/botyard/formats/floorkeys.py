"""Floor of a scenario: its keys, its reader and its writer."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from PIL import Image, PngImagePlugin

from botyard.errors import (
    ArgumentError,
    BotyardError,
    FormatError,
    MapError,
    ModelError,
)
from botyard.formats.base import Options, Source, read_source
from botyard.formats.budget import Meter
from botyard.formats.images import open_picture
from botyard.geometry import Outline
from botyard.model.filetables import Pair, pose_of, triple_of
from botyard.model.floor import (
    FIELD_COLOR,
    GROUND_COLOR,
    MAX_PIXELS,
    Floor,
    FloorPicture,
    FloorZone,
    PheromoneField,
)
from botyard.model.tablecheck import Strict
from botyard.processes.safefile import MARK, is_ours, replacing

Box = tuple[float, float, float, float]
Fail = Callable[[str, str | BotyardError], FormatError]
"""Function that returns an error for a place in the file, and a reason or another error."""
RESOLUTION_M: Final = 0.01
"""Default edge of a pixel of a floor picture, m."""


class PictureKeys(Strict, kw_only=True):
    """Keys of the picture on the floor."""

    file: str
    resolution: float = RESOLUTION_M
    origin: list[float] = msgspec.field(default_factory=lambda: [0.0, 0.0])


class ZoneKeys(Strict, kw_only=True):
    """Keys of a zone of the floor: a box or a polygon."""

    name: str = ""
    area: Box | None = None
    polygon: list[Pair] | None = None
    color: str = ""
    slip: float | None = None
    speed_limit: float | None = None
    odometry_scale: float | None = None
    hole: bool = False


class FieldKeys(Strict, kw_only=True):
    """Keys of a pheromone field."""

    name: str
    area: Box
    cell: float = 0.05
    half_life: float = 30.0
    color: str = FIELD_COLOR
    full: float = 1.0


class FloorKeys(Strict, kw_only=True):
    """Keys of the floor: picture, zones, pheromone fields."""

    color: str = GROUND_COLOR
    picture: str | PictureKeys | None = None
    zones: list[ZoneKeys] = msgspec.field(default_factory=list)
    pheromones: list[FieldKeys] = msgspec.field(default_factory=list)


def box_corners(area: Box) -> Outline:
    """Return the corners of a box x0, y0, x1, y1, m, counter-clockwise."""
    x0, y0, x1, y1 = area
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)


def read_floor(
    keys: FloorKeys, source: Source, options: Options, meter: Meter, fail: Fail
) -> Floor:
    """Return the floor of a scenario, with its picture.

    Parameters
    ----------
    keys : FloorKeys
        Checked contents of the key ``floor``.
    source : Source
        Scenario file; the picture is relative to it.
    options : Options
        Limits.
    meter : Meter
        Counter of files and pixels.
    fail : callable
        Returns the error for a place and a reason.

    Raises
    ------
    FormatError
        A value is out of range, or the picture cannot be read.
    """
    picture = None
    if keys.picture is not None:
        picture = _read_picture(keys.picture, source, options, meter, fail)

    zones = [
        _zone(zone, f"floor.zones[{i}]", fail) for i, zone in enumerate(keys.zones)
    ]
    fields = []
    for i, one in enumerate(keys.pheromones):
        try:
            fields.append(PheromoneField(**msgspec.structs.asdict(one)))
        except (ModelError, ArgumentError) as error:
            raise fail(f"floor.pheromones[{i}]", error) from None

    try:
        return Floor(
            color=keys.color, picture=picture, zones=tuple(zones), fields=tuple(fields)
        )
    except (ModelError, ArgumentError) as error:
        raise fail("floor", error) from None


def _zone(zone: ZoneKeys, where: str, fail: Fail) -> FloorZone:
    if (zone.area is None) == (zone.polygon is None):
        found = "neither" if zone.area is None else "both"
        raise fail(where, f"expected area or polygon, found {found}")
    if zone.area is not None:
        x0, y0, x1, y1 = zone.area
        if not (x0 < x1 and y0 < y1):
            raise fail(
                where,
                "expected area: [x0, y0, x1, y1] with x0 < x1 and y0 < y1, found "
                f"[{x0:g}, {y0:g}, {x1:g}, {y1:g}]",
            )

    try:
        return FloorZone(
            name=zone.name,
            corners=box_corners(zone.area)
            if zone.area is not None
            else tuple(zone.polygon or ()),
            color=zone.color,
            slip=zone.slip,
            speed_limit=zone.speed_limit,
            odometry_scale=zone.odometry_scale,
            hole=zone.hole,
        )
    except (ModelError, ArgumentError) as error:
        raise fail(where, error) from None


def _read_picture(
    keys: str | PictureKeys, source: Source, options: Options, meter: Meter, fail: Fail
) -> FloorPicture:
    keys = PictureKeys(file=keys) if isinstance(keys, str) else keys
    if len(keys.origin) not in (2, 3) or not all(map(math.isfinite, keys.origin)):
        raise fail(
            "floor.picture.origin",
            f"expected [x, y] or [x, y, degrees], found {keys.origin}",
        )

    x, y, *heading = keys.origin
    meter.add("files", 1)
    try:
        path = source.sibling_file(keys.file, "the floor's picture")
        pixels = read_pixels(read_source(path, options.budget), meter)
        return FloorPicture(
            pixels=pixels,
            resolution=keys.resolution,
            origin=pose_of((x, y, heading[0] if heading else 0.0)),
        )
    except BotyardError as error:
        raise fail("floor.picture", error) from None


def read_pixels(source: Source, meter: Meter) -> Any:
    """Return the pixels of a picture file for a floor.

    Parameters
    ----------
    source : Source
        PNG, or another image format.
    meter : Meter
        Counts the pixels before they are decoded.

    Returns
    -------
    (rows, columns, 3) or (rows, columns, 4) uint8
        Red, green, blue, and alpha if the picture has transparent pixels.

    Raises
    ------
    MapError
        The file is not an image, is truncated, or is too large.
    """
    with open_picture(source, meter, "the floor's picture") as image:
        if image.width * image.height > MAX_PIXELS:
            raise MapError(
                f"the floor's picture: expected at most {MAX_PIXELS} pixels, found "
                f"{image.width} × {image.height}",
                source.name,
            )

        clear = "A" in image.getbands() or "transparency" in image.info
        return np.array(image.convert("RGBA" if clear else "RGB"))


# -- writing


def write_floor(floor: Floor | None, picture: str | None) -> dict[str, Any]:
    """Return the contents of the key ``floor`` of a scenario; empty without a floor.

    Parameters
    ----------
    floor : Floor or None
        Floor of the world.
    picture : str or None
        Name of the picture's file, see `save_picture`.
    """
    if floor is None:
        return {}
    table: dict[str, Any] = {}
    if floor.color != GROUND_COLOR:
        table["color"] = floor.color
    if floor.picture is not None and picture is not None:
        x, y, degrees = triple_of(floor.picture.origin)
        table["picture"] = {
            "file": picture,
            "resolution": float(floor.picture.resolution),
            "origin": [x, y, degrees] if degrees else [x, y],
        }

    zones = [_zone_table(zone) for zone in floor.zones]
    fields = [_field_table(one) for one in floor.fields]
    return (
        table
        | ({"zones": zones} if zones else {})
        | ({"pheromones": fields} if fields else {})
    )


def _brief(keys: Strict, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the defaults of their keys."""
    defaults = {one.name: one.default for one in msgspec.structs.fields(type(keys))}
    return {
        key: float(value) if type(value) is int else value
        for key, value in values.items()
        if value != defaults[key]
    }


def _zone_table(zone: FloorZone) -> dict[str, Any]:
    corners = [[float(x), float(y)] for x, y in zone.corners]
    x0, y0 = (min(axis) for axis in zip(*zone.corners, strict=True))
    x1, y1 = (max(axis) for axis in zip(*zone.corners, strict=True))
    area = float(x0), float(y0), float(x1), float(y1)
    is_box = zone.corners == box_corners(area)
    keys = ZoneKeys(
        name=zone.name,
        color=zone.color,
        slip=zone.slip,
        speed_limit=zone.speed_limit,
        odometry_scale=zone.odometry_scale,
        hole=zone.hole,
    )
    table = _brief(keys, msgspec.structs.asdict(keys))
    return table | ({"area": list(area)} if is_box else {"polygon": corners})


def _field_table(one: PheromoneField) -> dict[str, Any]:
    keys = FieldKeys(
        name=one.name,
        area=one.area,
        cell=one.cell,
        half_life=one.half_life,
        color=one.color,
        full=one.full,
    )
    table = _brief(keys, msgspec.structs.asdict(keys))
    return table | {"area": [float(v) for v in one.area]}


def save_picture(floor: Floor | None, scenario: Path) -> str | None:
    """Write the picture of a floor as a PNG next to a scenario, and return its name.

    Parameters
    ----------
    floor : Floor or None
        Floor of the world.
    scenario : Path
        File of the scenario. Its picture replaces only a picture that this program
        wrote.

    Returns
    -------
    str or None
        Name of the file; None: the floor has no picture.
    """
    if floor is None or floor.picture is None:
        return None
    path = _free_picture(scenario)
    info = PngImagePlugin.PngInfo()
    # The mark allows a later scenario of this name to replace the picture.
    info.add_text("Software", MARK)
    data = io.BytesIO()
    Image.fromarray(floor.picture.pixels).save(data, "PNG", pnginfo=info)
    with replacing(path) as file:
        file.write(data.getvalue())
    return path.name


def _free_picture(scenario: Path) -> Path:
    path = scenario.with_name(f"{scenario.stem}-floor.png")
    n = 2
    while path.exists() and not is_ours(path):
        path = scenario.with_name(f"{scenario.stem}-floor-{n}.png")
        n += 1
    return path


__all__ = [
    "FieldKeys",
    "FloorKeys",
    "PictureKeys",
    "ZoneKeys",
    "box_corners",
    "read_floor",
    "read_pixels",
    "save_picture",
    "write_floor",
]
