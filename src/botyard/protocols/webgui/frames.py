"""Binary frames and maps of the page: columns that a browser maps to typed arrays.

No copy is needed (layout after reference webgui.md §4). A frame is a header of 48 bytes
and blocks. Everything is little-endian, and every block starts on a multiple of 4
bytes.

| header at | type | contents |
|---|---|---|
| 0 | 4 bytes | `MAGIC` |
| 4, 6 | u16, u16 | `VERSION`, number of blocks |
| 8, 12 | u32, u32 | number of the schema message that names the rows; bits `PAUSED`,
`FASTEST`, `PAST` |
| 16 | f64 | simulated time, s |
| 24, 28 | u32, u32 | number of steps; number of the frame, which the page acknowledges
|
| 32, 36, 40 | f32 | simulated per wall time; time of a step, ms; requested speed |
| 44 | u32 | 0 |

`PAST` marks an earlier moment. A block is u16 kind (`Block`), u16 group, u32 rows, u32
bytes of its payload, u32 0, and the payload, padded to 4 bytes. Poses are relative to
the origin in the schema, so that float32 is enough for maps far from (0, 0).

A map is `MAP_MAGIC`, u32 bytes of a JSON text, the text (padded to 4 bytes), the walls
as f32 x1, y1, x2, y2, and the points as f32 x, y. All are relative to the origin in the
JSON text.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

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

NO_READING: Final = 0xFFFE
"""Code of a range that is NaN."""


class Block(IntEnum):
    """Kinds of blocks."""

    # f32 x, y, th of each body.
    POSE = 1
    # u8 of each body, `Bit`s.
    STATE = 2
    # f32 x, y, th of each robot: its pose in the world by odometry.
    ODOMETRY = 3
    # f32 forward, left, turn of each robot.
    VELOCITY = 4
    # One group of sensors: u32 row of each sensor's robot, then u16 ranges of each
    # sensor, in units of the group.
    READINGS = 5
    # The same group: u32 indices, in the ranges of the block before, of bright
    # reflections.
    BRIGHT = 6


class Bit(IntEnum):
    """Bits of a body's byte in `Block.STATE`."""

    STALLED = 1
    MOTORS = 2
    ESTOP = 4
    HELD = 8
    GHOST = 16
    CLIENT = 32


class Header(NamedTuple):
    """Header of a frame; see the module for units."""

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
    """Return an encoded frame."""
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
        raise ValueError(f"frame of version {version}, expected {VERSION}")
    return Header(*rest[:8]), list(_blocks(frame, count))


def _blocks(frame: bytes, count: int) -> Iterator[tuple[Block, int, int, bytes]]:
    at = HEADER.size
    for _ in range(count):
        if at + BLOCK.size > len(frame):
            raise ValueError(f"frame cut short at byte {at} of {len(frame)}")
        kind, group, rows, size, _ = BLOCK.unpack_from(frame, at)
        at += BLOCK.size
        # The size comes from the frame, so it is checked before slicing.
        if at + size > len(frame):
            raise ValueError(
                f"frame cut short: a block of {size} bytes at byte {at} of {len(frame)}"
            )

        yield Block(kind), group, rows, frame[at : at + size]
        at += size + -size % 4


def to_units(ranges: NDArray[np.float64], unit: float) -> NDArray[np.uint16]:
    """Return ranges (m) as whole multiples of `unit` (m), at most `NO_READING` − 1.

    NaN becomes `NO_READING`. The ranges may have any shape; the result is contiguous.
    """
    # 24 bits of a float32 are enough for 16 bits.
    scaled = np.multiply(ranges, 1.0 / unit, dtype=np.float32, casting="same_kind")
    scaled += np.float32(0.5)
    low, high = (scaled.min(), scaled.max()) if scaled.size else (0.0, 0.0)
    # Slow path, which readings of sensors never take.
    if not (low >= 0.0 and high < NO_READING):
        np.clip(scaled, 0.0, NO_READING - 0.5, out=scaled)
        scaled[np.isnan(scaled)] = NO_READING

    return scaled.astype(np.uint16)


def encode_map(scene: Scene) -> bytes:
    """Return the static part of a scene for the page; see the module."""
    center = scene.center
    about = {
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
        ]
    )
