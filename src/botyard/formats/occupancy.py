"""Reader of ``nav_msgs/OccupancyGrid`` messages in files.

The files are outputs of ``rostopic echo -n1 /map`` or ``ros2 topic echo --once
--full-length /map``, the same messages as JSON, and bags of ROS 1 and 2 (``.bag``,
``.mcap``, ``.db3``).

Fields follow the definition of nav_msgs/OccupancyGrid: ``info.resolution`` (m per
cell), ``info.width``, ``info.height``, ``info.origin`` (pose of the lower left corner),
and ``data``, row by row from there: −1 unknown, 0 to 100 percent of occupancy.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import MapError
from botyard.formats.bags import last_map
from botyard.formats.base import Options, Source
from botyard.formats.budget import Budget, Meter
from botyard.formats.jsonfile import brief, loads
from botyard.formats.suffixes import BAGS
from botyard.formats.yamlfile import YamlFile
from botyard.geometry import Pose, yaw_of_quaternion
from botyard.model.scene import Scene
from botyard.model.tracing import trace
from botyard.model.world import World

OCCUPIED: Final = 65
"""Occupancy, %, at and above which a cell is a wall.

The value is the default of map servers (occupied_thresh 0.65).
"""
CHUNK_CHARS: Final = 1_000_000
"""Number of characters of a printed message that are parsed at a time."""
_DATA = re.compile(r"^[ \t]*[\"']?data[\"']?[ \t]*:", re.MULTILINE)
_CELL = re.compile(r"[+-]?[0-9]{1,4}")
_JSON_DATA = re.compile(r"\"data\"\s*:\s*(?=\[)")


def fits(source: Source) -> bool:
    """Return whether a YAML or JSON text is a printed OccupancyGrid message."""
    head = source.data[:4096]
    return b"info" in head and b"resolution" in head and b"data" in source.data


def grid_to_scene(
    cells: NDArray[np.int8],
    resolution: float,
    origin: Pose,
    *,
    name: str,
    source: str,
    budget: Budget = Budget(),
) -> Scene:
    """Return a scene whose walls are the outlines of a grid's occupied cells.

    Parameters
    ----------
    cells : (height, width) int8 array
        Occupancy, percent; row 0 is at the origin.
    resolution : float
        Edge of a cell, m.
    origin : Pose
        Pose of the corner of cell (0, 0).
    name, source : str
        Name of the scene, and file that it comes from.
    budget : Budget
        Limits.
    """
    meter = Meter(budget, source)
    meter.check("extent", max(cells.shape) * resolution)
    segments, traced = trace(
        cells >= OCCUPIED, resolution, origin, lambda n: meter.add("vertices", 2 * n)
    )
    return Scene(
        name=name,
        source=source,
        segments=segments,
        traced=traced,
        resolution=resolution,
    )


def _number(value: Any, what: str, path: str, low: float, high: float) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not low <= value <= high
    ):
        raise MapError(
            f"{what}: expected a number from {low:g} to {high:g}, found {brief(value)}",
            path,
        )

    return float(value)


def _split(
    text: str, start: re.Match[str] | None, meter: Meter
) -> tuple[str, NDArray[np.int8]]:
    """Separate the list of cells from the rest of a printed message.

    A generic parser would take minutes and gigabytes for the cells.

    Parameters
    ----------
    text : str
        Message as YAML or JSON.
    start : match or None
        Position of the key ``data`` in the text; None: it is absent.
    meter : Meter
        Limit of the cells, and path for messages.

    Returns
    -------
    text : str
        The message with an empty list of cells.
    cells : (n,) int8
        The cells, row by row: −1 unknown, 0 to 100 percent.

    Raises
    ------
    MapError
        There are no cells, they were cut short, or one is not a whole number.
    """
    path = meter.path
    if start is None:
        raise MapError("expected the cells (data: …), found none", path)
    at = start.end()
    while at < len(text) and text[at].isspace():
        at += 1
    # A list in brackets is JSON or YAML's flow style. Otherwise the list has YAML's
    # block style, with a dash before each value.
    if text.startswith("[", at):
        begin, close = at + 1, text.find("]", at)
        if close < 0:
            raise MapError(
                'expected "]" after the cells, found the end of the file', path
            )

        end, after, separators = close, close + 1, text.count(",", begin, close) + 1
    else:
        begin = start.end()
        match = re.compile(r"(?:\s*-\s+-?[0-9]+[ \t]*(?=\n|\Z))*").match(text, begin)
        assert match is not None
        end = after = match.end()
        separators = text.count("\n", begin, end) + 1

    # The tools of ROS shorten long arrays, unless they are asked not to.
    if "..." in text[begin : after + 20]:
        raise MapError(
            'the cells were cut short ("..."): print the message with --full-length',
            path,
        )

    meter.check("cells", separators)
    pieces = [np.zeros(0, np.int8)]
    while begin < end:
        cut = min(end, begin + CHUNK_CHARS)
        # A chunk ends between two numbers.
        while cut < end and not (text[cut].isspace() or text[cut] == ","):
            cut += 1
        piece = text[begin:cut].replace(",", " ")
        if end == after:
            piece = re.sub(r"(?m)^\s*-\s+", " ", piece)
        pieces.append(_cells(piece.split(), path))
        begin = cut

    return f"{text[: start.end()]} []{text[after:]}", np.concatenate(pieces)


def _cells(values: Any, path: str) -> NDArray[np.int8]:
    """Return printed cells as an array.

    Parameters
    ----------
    values : sequence
        Whole numbers or their texts.
    path : str
        File for messages.

    Returns
    -------
    (n,) int8
        Cells, −1 to 100.

    Raises
    ------
    MapError
        A value is not a whole number from −1 to 100.
    """
    try:
        # 16 bits detect values that do not fit into the 8 bits of a cell.
        cells = np.array(values, np.int16).reshape(-1)
    except (ValueError, OverflowError, TypeError):
        found = next((v for v in values if not _CELL.fullmatch(str(v)[:10])), None)
        raise MapError(
            f"data: expected whole numbers from −1 to 100, found {brief(found)}", path
        ) from None

    if len(cells) and not (cells.min() >= -1 and cells.max() <= 100):
        raise MapError(
            f"data: expected −1 to 100, found {int(cells.min())} to {int(cells.max())}",
            path,
        )

    return cells.astype(np.int8)


def parse(
    text: str, path: str = "map", budget: Budget = Budget()
) -> tuple[NDArray[np.int8], float, Pose]:
    """Return the grid of a printed message.

    Parameters
    ----------
    text : str
        Message as YAML or JSON; of several messages the first one counts.
    path : str
        File for messages.
    budget : Budget
        Limits.

    Returns
    -------
    cells : (height, width) int8
        Occupancy, percent, −1 unknown; row 0 is at the origin.
    resolution : float
        Edge of a cell, m.
    origin : Pose
        Pose of the corner of cell (0, 0): m, m, rad.

    Raises
    ------
    MapError
        The message is invalid. The error names the expected and the found value.
    """
    meter = Meter(budget, path)
    message: Any
    if text[:1000].lstrip().startswith("{"):
        rest, cells = _split(text, _JSON_DATA.search(text), meter)
        message = loads(rest, meter)
    else:
        # Several messages are separated by "---"; the first one is enough.
        first = text[: text.find("\n---")] if "\n---" in text else text
        rest, cells = _split(first, _DATA.search(first), meter)
        message = YamlFile(rest, meter, MapError, unique=False).data

    info = message.get("info") if isinstance(message, dict) else None
    if not isinstance(info, dict):
        raise MapError(
            "expected info: with resolution, width, height and origin, found none", path
        )

    resolution = _number(info.get("resolution"), "resolution", path, 1e-6, 1e4)
    width, height = (
        int(_number(info.get(k), k, path, 0, 1e6)) for k in ("width", "height")
    )
    if len(cells) != width * height:
        raise MapError(
            f"expected {width} × {height} = {width * height} cells, found {len(cells)}",
            path,
        )

    return cells.reshape(height, width), resolution, _origin(info.get("origin"), path)


def _origin(origin: Any, path: str) -> Pose:
    """Return x, y (m) and yaw (rad) of a geometry_msgs/Pose."""
    if not isinstance(origin, dict):
        return Pose()

    def part(name: str, keys: str, fallback: dict[str, float]) -> list[float]:
        values = origin.get(name, fallback)
        if not isinstance(values, dict):
            raise MapError(
                f"origin: expected {name} with {', '.join(keys)}, "
                f"found {brief(values)}",
                path,
            )

        return [
            _number(
                values.get(k, fallback.get(k, 0.0)),
                f"origin.{name}.{k}",
                path,
                -1e9,
                1e9,
            )
            for k in keys
        ]

    x, y = part("position", "xy", {})
    qx, qy, qz, qw = part("orientation", "xyzw", {"w": 1.0})
    return Pose(x, y, yaw_of_quaternion(qx, qy, qz, qw))


def read(source: Source, options: Options) -> World:
    """Read an OccupancyGrid message in a file as a world of walls.

    Raises
    ------
    MapError
        The message is invalid, or a bag has no such message.
    """
    if source.suffix in BAGS:
        meter = Meter(options.budget, source.name)
        cells, resolution, origin = _parts(
            last_map(source, meter, options.topic), source.name
        )
    else:
        cells, resolution, origin = parse(source.text, source.name, options.budget)

    return World(
        scene=grid_to_scene(
            cells,
            resolution,
            origin,
            name=source.stem,
            source=source.name,
            budget=options.budget,
        )
    )


def _parts(message: Any, name: str) -> tuple[NDArray[np.int8], float, Pose]:
    """Return the grid of an OccupancyGrid message, an object of rosbags' class.

    Parameters
    ----------
    message : object
        nav_msgs/OccupancyGrid.
    name : str
        Source of the message, for errors.

    Returns
    -------
    cells : (height, width) int8
        Occupancy, percent, −1 unknown; row 0 is at the origin.
    resolution : float
        Edge of a cell, m.
    origin : Pose
        Pose of the corner of cell (0, 0): m, m, rad.

    Raises
    ------
    MapError
        The number of cells is wrong, or a number is out of range.
    """
    info, q = message.info, message.info.origin.orientation
    yaw = yaw_of_quaternion(q.x, q.y, q.z, q.w)
    cells = np.asarray(message.data, np.int8)
    # Python integers, because the product of 32-bit numbers could overflow.
    width, height = int(info.width), int(info.height)
    if len(cells) != width * height:
        raise MapError(f"expected {width} × {height} cells, found {len(cells)}", name)
    origin = Pose(float(info.origin.position.x), float(info.origin.position.y), yaw)
    resolution = float(info.resolution)
    if not (1e-6 <= resolution <= 1e4 and all(abs(v) <= 1e9 for v in origin)):
        raise MapError(
            "expected a resolution from 1e-06 to 10000 m and an origin within "
            f"±1e+09 m, found a resolution of {resolution:g} m and the origin "
            f"{tuple(origin)}",
            name,
        )

    return cells.reshape(height, width), resolution, origin


def message_to_scene(message: Any, name: str, budget: Budget = Budget()) -> Scene:
    """Return the scene of walls for a map that was received by ROS.

    Parameters
    ----------
    message : object
        nav_msgs/OccupancyGrid, of rosbags' class.
    name : str
        Source of the message, for example its topic, for errors and as name of the scene.
    budget : Budget
        Limits.

    Raises
    ------
    MapError
        The numbers are inconsistent, or exceed a limit.
    """
    cells, resolution, origin = _parts(message, name)
    # A message from a ROS peer is as untrusted as a file.
    Meter(budget, name).check("cells", cells.size)
    return grid_to_scene(
        cells, resolution, origin, name=name, source=name, budget=budget
    )


__all__ = [
    "OCCUPIED",
    "fits",
    "grid_to_scene",
    "message_to_scene",
    "parse",
    "read",
]
