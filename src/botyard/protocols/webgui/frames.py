"""Binary frames and maps of the page: columns that a browser maps to typed arrays.

No copy is needed (layout after reference webgui.md §4). A frame is a header of 48 bytes
and blocks. Everything is little-endian, and every block starts on a multiple of 4
bytes.

| header at | type | contents |
|---|---|---|
| 0 | 4 bytes | `MAGIC` |
| 4, 6 | u16, u16 | `VERSION`, number of blocks |
| 8 | u32 | number of the schema message that names the rows |
| 12 | u32 | bits `PAUSED`, `FASTEST`, `PAST` |
| 16 | f64 | simulated time, s |
| 24 | u32 | number of steps |
| 28 | u32 | number of the frame, which the page acknowledges |
| 32 | f32 | ratio of simulated to wall time |
| 36 | f32 | wall time of a step, ms |
| 40 | f32 | requested ratio of simulated to wall time |
| 44 | u32 | 0 |

`PAST` marks an earlier moment. A block has: u16 kind (`Block`), u16 group, u32 number
of rows, u32 length of its payload in bytes, u32 0, and the payload, padded to 4 bytes.
Poses are relative to the origin in the schema, so that float32 is enough for maps far
from (0, 0).

A map has: `MAP_MAGIC`, u32 length of a JSON text in bytes, the text (padded to 4
bytes), the walls as f32 x1, y1, x2, y2, and the points as f32 x, y. Walls and points
are relative to the origin in the JSON text. The bytes of the floor's picture, a PNG,
are last. Coordinates of the floor in the JSON text are in the world's frame.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.model.colors import hex_of
from botyard.model.floor import GROUND_COLOR, Floor
from botyard.model.scene import Scene
from botyard.names import shown

MAGIC: Final = b"BYFR"
MAP_MAGIC: Final = b"BYMP"
VERSION: Final = 1
HEADER: Final = struct.Struct("<4sHHIIdIIfffI")
BLOCK: Final = struct.Struct("<HHIII")

PAUSED: Final = 1
FASTEST: Final = 2
PAST: Final = 4


class Block(IntEnum):
    """Kinds of blocks in a frame."""

    # One block: f32 x, y, th of each body.
    POSE = 1
    # One block: u8 flags of each body, see `Bit`.
    STATE = 2
    # One block: f32 x, y, th of each robot, its pose in the world by odometry.
    ODOMETRY = 3
    # One block: f32 forward, left and turn velocity of each robot.
    VELOCITY = 4
    # One block for each group of sensors: u32 row of each sensor's robot, then u16
    # ranges of each sensor, in units of the group.
    READINGS = 5
    # One block for each group: u32 indices of bright reflections, in the ranges of the
    # block before.
    BRIGHT = 6
    # One block for each pheromone field, in some of the frames: u8 opacity of each block of
    # cells, row after row from the lowest one. The group is the number of the field.
    FIELD = 7
    # One block: u32 row of each robot with a steered axle, then f32 angle of each axle, rad.
    STEERING = 8


class Bit(IntEnum):
    """Bits of a body's byte in `Block.STATE`."""

    STALLED = 1
    MOTORS = 2
    ESTOP = 4
    HELD = 8
    GHOST = 16
    CLIENT = 32


class Header(NamedTuple):
    """Header of a frame; see the module for units.

    Attributes
    ----------
    schema : int
        Number of the `Schema` that describes the rows.
    flags : int
        Bits `PAUSED`, `FASTEST`, `PAST`.
    time : float
        Simulated time, s.
    tick : int
        Number of steps; its low 32 bits are sent.
    number : int
        Number of the frame; its low 32 bits are sent.
    ratio : float
        Ratio of simulated to wall time.
    step_ms : float
        Wall time of a step, ms.
    speed : float
        Requested ratio of simulated to wall time.
    """

    schema: int
    flags: int
    time: float
    tick: int
    number: int
    ratio: float
    step_ms: float
    speed: float


Column = tuple[Block, int, int, Sequence[NDArray[Any]]]
"""Kind, group, rows and arrays of a block; the arrays are concatenated."""


def encode(header: Header, columns: Sequence[Column]) -> bytes:
    """Return an encoded frame.

    Parameters
    ----------
    header : Header
        Header of the frame.
    columns : sequence of Column
        Blocks. Arrays must have little-endian elements of the type that `Block` states.
    """
    h = header
    parts: list[bytes | memoryview] = [
        HEADER.pack(
            MAGIC,
            VERSION,
            len(columns),
            h.schema,
            h.flags,
            h.time,
            h.tick & 0xFFFFFFFF,
            h.number & 0xFFFFFFFF,
            h.ratio,
            h.step_ms,
            h.speed,
            0,
        )
    ]

    for kind, group, rows, arrays in columns:
        size = sum(a.nbytes for a in arrays)
        parts.append(BLOCK.pack(kind, group, rows, size, 0))
        parts += [np.ascontiguousarray(a).data for a in arrays]
        # Typed arrays in browsers must start at a multiple of their element size.
        parts.append(bytes(-size % 4))

    return b"".join(parts)


def decode(frame: bytes) -> tuple[Header, list[tuple[Block, int, int, bytes]]]:
    """Return the header of a frame, and kind, group, rows and payload of each block.

    Parameters
    ----------
    frame : bytes
        Whole frame.

    Raises
    ------
    ValueError
        The data is not a frame of this version, or is cut short.
    """
    if len(frame) < HEADER.size or frame[:4] != MAGIC:
        raise ValueError(
            f"not a frame: expected {MAGIC!r} at the start, found {frame[:4]!r}"
        )

    _, version, count, *rest = HEADER.unpack_from(frame)
    if version != VERSION:
        raise ValueError(
            f"expected a frame of version {VERSION}, found version {version}"
        )
    return Header(*rest[:8]), list(_blocks(frame, count))


def _blocks(frame: bytes, count: int) -> Iterator[tuple[Block, int, int, bytes]]:
    at = HEADER.size
    for _ in range(count):
        if at + BLOCK.size > len(frame):
            raise ValueError(
                "expected a complete frame, found one that is cut short at byte "
                f"{at} of {len(frame)}"
            )
        kind, group, rows, size, _ = BLOCK.unpack_from(frame, at)
        at += BLOCK.size
        # The size comes from the frame, so it is checked before slicing.
        if at + size > len(frame):
            raise ValueError(
                f"block at byte {at}: expected at most {len(frame) - at} bytes, the "
                f"rest of the frame, found a block of {size}"
            )

        yield Block(kind), group, rows, frame[at : at + size]
        at += size + -size % 4


def encode_map(scene: Scene) -> bytes:
    """Return the static part of a scene for the page; see the module.

    Parameters
    ----------
    scene : Scene
        Walls (n, 4) and points (n, 2), m, in the frame of the world.
    """
    center = scene.center
    about: dict[str, Any] = {
        "name": shown(scene.name),
        "origin": [center.x, center.y],
        "bounds": scene.bounds,
        "resolution": scene.resolution,
        "walls": len(scene.segments),
        "points": len(scene.points),
        "places": [
            {
                "kind": shown(p.kind),
                "name": shown(p.name),
                "pose": list(p.pose),
                "heading": p.has_heading,
            }
            for p in scene.places
        ],
        "areas": [
            {"kind": shown(a.kind), "name": shown(a.name), "corners": a.corners}
            for a in scene.areas
        ],
    }

    picture = b""
    if scene.floor is not None:
        about["floor"], picture = _floor(scene.floor)
    text = json.dumps(about).encode()
    # Typed arrays in browsers must start at a multiple of their element size.
    text += b" " * (-len(text) % 4)

    # float32 has 24 bits: near the origin it resolves well below a millimetre.
    walls = scene.segments - (center.x, center.y, center.x, center.y)
    points = scene.points - (center.x, center.y)

    return b"".join(
        [
            MAP_MAGIC,
            struct.pack("<I", len(text)),
            text,
            walls.astype("<f4").tobytes(),
            points.astype("<f4").tobytes(),
            picture,
        ]
    )


def _floor(floor: Floor) -> tuple[dict[str, Any], bytes]:
    """Return the part of a map's JSON text about the floor, and the bytes of its picture."""
    picture, data = floor.picture, b""
    about: dict[str, Any] = {
        "color": hex_of(floor.color) if floor.color != GROUND_COLOR else "",
        "picture": None,
        "zones": [
            {
                "name": shown(zone.name),
                "corners": zone.corners,
                "color": hex_of(zone.color) if zone.color else "",
                "slip": zone.slip,
                "speed_limit": zone.speed_limit,
                "odometry_scale": zone.odometry_scale,
                "hole": zone.hole,
            }
            for zone in floor.zones
        ],
        "fields": [
            {
                "name": shown(one.name),
                "color": hex_of(one.color),
                # Blocks of cells in frames may extend beyond the area.
                "area": one.area,
                "cell": one.cell,
                "rows": one.shape[0],
                "columns": one.shape[1],
            }
            for one in floor.fields
        ],
    }
    if picture is not None:
        # Pillow takes long to import, and few worlds have a picture.
        from PIL import Image

        made = io.BytesIO()
        Image.fromarray(picture.pixels).save(made, "PNG", compress_level=3)
        data = made.getvalue()
        width, height = picture.size
        about["picture"] = {
            "pose": list(picture.origin),
            "width": width,
            "height": height,
            "bytes": len(data),
        }
    return about, data
