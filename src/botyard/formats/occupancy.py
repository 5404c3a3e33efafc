"""``nav_msgs/OccupancyGrid`` messages from files: what ``rostopic echo -n1 /map`` or ``ros2 topic echo --once --full-length /map`` print,
the same as JSON, and bags of ROS 1 and 2 (``.bag``, ``.mcap``, ``.db3``; extra "ros").

Fields by the definition of nav_msgs/OccupancyGrid: ``info.resolution`` (m a cell), ``info.width``, ``info.height``, ``info.origin`` (pose
of the lower left cell's corner), ``data`` row by row from there: −1 unknown, 0 … 100 per cent of occupancy.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from numpy.typing import NDArray

from botyard.errors import MapError
from botyard.extras import lacking
from botyard.formats.base import Options, Source
from botyard.geometry import Pose, yaw_of_quaternion
from botyard.model.scene import Scene
from botyard.model.tracing import mask_to_segments, place_segments
from botyard.model.world import World

BAGS: Final = (".bag", ".mcap", ".db3")
OCCUPIED: Final = 65
"""From this many per cent on a cell is solid, as map servers have it."""
PIECE: Final = 1_000_000
"""Characters of a printed message that are read at a time."""
_DATA = re.compile(r"^\s*[\"']?data[\"']?\s*:", re.MULTILINE)


def fits(source: Source) -> bool:
    """Whether a YAML or JSON text is such a message."""
    head = source.data[:4096]
    return b"info" in head and b"resolution" in head and b"data" in source.data


def grid_to_scene(cells: NDArray[np.int8], resolution: float, origin: Pose, *, name: str, source: str) -> Scene:
    """The outlines of a grid's occupied cells as walls.

    Parameters
    ----------
    cells : (height, width) int8 array
        Per cent of occupancy; row 0 is that of the origin.
    resolution : float
        m a cell.
    origin : Pose
        Of the corner of cell (0, 0).
    """
    segments = place_segments(mask_to_segments(cells >= OCCUPIED) * resolution, origin)
    return Scene(name=name, source=source, segments=segments, resolution=resolution)


def _number(value: Any, what: str, path: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise MapError(f"{what}: expected a number from {low:g} to {high:g}, found {str(value)[:40]!r}", path)
    return float(value)


def _split(text: str, path: str) -> tuple[str, NDArray[np.int8]]:
    """The text without its ``data``, and those: a YAML reader would take minutes for ten million numbers."""
    found = _DATA.search(text)
    if found is None:
        raise MapError("expected the cells (data: …), found none", path)
    end = len(text)
    rest = text[found.end() :]
    body = rest.lstrip()
    if body.startswith("["):
        close = rest.find("]")
        if close < 0:
            raise MapError('expected "]" after the cells, found the end of the file', path)
        body, end = rest[rest.find("[") + 1 : close], found.end() + close + 1
    else:
        match = re.match(r"(?:\s*-\s+-?\d+[ \t]*(?=\n|$))*", rest)
        assert match is not None
        body, end = re.sub(r"(?m)^\s*-\s+", " ", match[0]), found.end() + match.end()
    if "..." in body or "..." in text[end : end + 20]:
        raise MapError('the cells were cut short ("..."): print the message with --full-length', path)
    # in pieces: as words of Python all at once, ten million numbers would take a gigabyte
    pieces, at = [np.zeros(0, np.int8)], 0
    while at < len(body):
        cut = min(len(body), at + PIECE)
        while cut < len(body) and not (body[cut].isspace() or body[cut] == ","):
            cut += 1
        pieces.append(_cells(body[at:cut].replace(",", " ").split(), path))
        at = cut
    return text[: found.start()] + text[end:], np.concatenate(pieces)


def _cells(values: Any, path: str) -> NDArray[np.int8]:
    try:
        cells = np.array(values, np.int16).reshape(-1)
    except (ValueError, OverflowError, TypeError) as error:
        raise MapError(f"data: expected whole numbers from −1 to 100: {error}", path) from None
    if len(cells) and not (cells.min() >= -1 and cells.max() <= 100):
        raise MapError(f"data: expected −1 … 100, found {int(cells.min())} … {int(cells.max())}", path)
    return cells.astype(np.int8)


def parse(text: str, path: str = "map") -> tuple[NDArray[np.int8], float, Pose]:
    """Cells (height, width), m a cell, and the pose of the corner of cell (0, 0).

    Raises
    ------
    MapError
        With what was expected and what was found.
    """
    try:
        if text.lstrip().startswith("{"):
            message = json.loads(text)
            cells = _cells(message.get("data"), path)
        else:
            head, cells = _split(text.split("\n---")[0], path)
            message = yaml.safe_load(head)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise MapError(f"not the text of a message: {' '.join(str(error).split())[:200]}", path) from None
    info = message.get("info") if isinstance(message, dict) else None
    if not isinstance(info, dict):
        raise MapError("expected info: with resolution, width, height and origin, found none", path)
    resolution = _number(info.get("resolution"), "resolution", path, 1e-6, 1e4)
    width, height = (int(_number(info.get(k), k, path, 0, 1e6)) for k in ("width", "height"))
    if len(cells) != width * height:
        raise MapError(f"expected {width} × {height} = {width * height} cells, found {len(cells)}", path)
    return cells.reshape(height, width), resolution, _origin(info.get("origin"), path)


def _origin(origin: Any, path: str) -> Pose:
    """A geometry_msgs/Pose as x, y, yaw."""
    if not isinstance(origin, dict):
        return Pose()

    def part(name: str, keys: str, fallback: dict[str, float]) -> list[float]:
        values = origin.get(name, fallback)
        if not isinstance(values, dict):
            raise MapError(f"origin: expected {name} with {', '.join(keys)}, found {str(values)[:40]!r}", path)
        return [_number(values.get(k, fallback.get(k, 0.0)), f"origin.{name}.{k}", path, -1e9, 1e9) for k in keys]

    x, y = part("position", "xy", {})
    qx, qy, qz, qw = part("orientation", "xyzw", {"w": 1.0})
    return Pose(x, y, yaw_of_quaternion(qx, qy, qz, qw))


def read(source: Source, options: Options) -> World:
    """A message in a file as a world of walls.

    Raises
    ------
    MapError
        With what was expected and what was found; for bags also: the extra is not installed, no such message in it.
    """
    cells, resolution, origin = _from_bag(source) if source.suffix in BAGS else parse(source.text, source.name)
    return World(scene=grid_to_scene(cells, resolution, origin, name=source.stem, source=source.name))


def _from_bag(source: Source) -> tuple[NDArray[np.int8], float, Pose]:
    """The last map in a bag."""
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MapError(lacking("a bag", "ros"), source.name) from None
    path = source.beside(Path(source.name).name, "the bag")
    if source.suffix == ".db3":
        path = path.parent  # a bag of ROS 2 is a folder
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
            connections = [c for c in reader.connections if c.msgtype == "nav_msgs/msg/OccupancyGrid"]
            if not connections:
                raise MapError("no nav_msgs/OccupancyGrid in this bag", source.name)
            message: Any = None
            for connection, _, raw in reader.messages(connections):
                message = reader.deserialize(raw, connection.msgtype)
    except MapError:
        raise
    except (AnyReaderError, OSError, ValueError, KeyError, IndexError, AssertionError) as error:
        raise MapError(f"the bag cannot be read: {error}", source.name) from None
    if message is None:
        raise MapError("no nav_msgs/OccupancyGrid in this bag", source.name)
    return _parts(message, source.name)


def _parts(message: Any, name: str) -> tuple[NDArray[np.int8], float, Pose]:
    """Cells, m a cell and the origin of a message object, of rosbags' class."""
    info, q = message.info, message.info.origin.orientation
    yaw = yaw_of_quaternion(q.x, q.y, q.z, q.w)
    cells = np.asarray(message.data, np.int8)
    if len(cells) != info.width * info.height:
        raise MapError(f"expected {info.width} × {info.height} cells, found {len(cells)}", name)
    origin = Pose(float(info.origin.position.x), float(info.origin.position.y), yaw)
    resolution = float(info.resolution)
    if not (1e-6 <= resolution <= 1e4 and all(abs(v) <= 1e9 for v in origin)):
        raise MapError(f"expected a resolution and an origin in m, found {resolution:g} at {tuple(origin)}", name)
    return cells.reshape(info.height, info.width), resolution, origin


def message_to_scene(message: Any, name: str) -> Scene:
    """A map that came by ROS as walls.

    Parameters
    ----------
    message : object
        nav_msgs/OccupancyGrid, as rosbags has it.
    name : str
        Where it came from.

    Raises
    ------
    MapError
        Its numbers do not fit together.
    """
    cells, resolution, origin = _parts(message, name)
    return grid_to_scene(cells, resolution, origin, name=name, source=name)


__all__ = ["BAGS", "OCCUPIED", "fits", "grid_to_scene", "message_to_scene", "parse", "read"]
