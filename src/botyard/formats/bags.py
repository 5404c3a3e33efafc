"""Maps in bags of ROS 1 and 2: the last ``nav_msgs/OccupancyGrid`` of a ``.bag``, ``.mcap`` or ``.db3``.

The library rosbags reads the containers. Their content is untrusted: messages are decoded by the definition of the ROS package, not by the
bag's own; compressed chunks are decompressed within the budget; a database may hold tables only.
"""

from __future__ import annotations

import bz2
import contextlib
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

from botyard.errors import FormatError, MapError
from botyard.formats.base import Source
from botyard.formats.budget import Meter
from botyard.names import shown

SUFFIXES: Final = (".bag", ".mcap", ".db3")
MAP_TYPE: Final = "nav_msgs/msg/OccupancyGrid"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_LOCK: Final = threading.Lock()
"""Held while the library's decompressors are replaced by bounded ones."""


def last_map(source: Source, meter: Meter) -> Any:
    """The message object of the last map in a bag, of rosbags' class.

    Raises
    ------
    MapError
        The bag cannot be read, or no map is in it.
    """
    from rosbags import rosbag1, rosbag2
    from rosbags.typesys import Stores, get_typestore

    path = source.beside(Path(source.name).name, "the bag")
    first = source.suffix == ".bag"
    try:
        if source.suffix == ".db3":
            _check_database(path)
        raw = None
        with _bounded(meter), rosbag1.Reader(path) if first else rosbag2.Reader(path) as reader:
            connections = [c for c in reader.connections if c.msgtype == MAP_TYPE]
            if connections:
                for _, _, raw in reader.messages(connections):  # noqa: B007
                    meter.add("entities", 1)
        if raw is None:
            raise MapError("no nav_msgs/OccupancyGrid in this bag", source.name)
        if bytes(raw[:4]) == _ZSTD:
            raise MapError("its messages are packed one by one: unpack the bag first (ros2 bag convert)", source.name)
        if first:
            return get_typestore(Stores.ROS1_NOETIC).deserialize_ros1(raw, MAP_TYPE)
        return get_typestore(Stores.LATEST).deserialize_cdr(raw, MAP_TYPE)
    except FormatError:
        raise
    except Exception as error:  # the library raises all kinds of exceptions for damaged bags
        reason = shown(error, 200) if str(error) else type(error).__name__
        raise MapError(f"the bag cannot be read: {reason}", source.name) from None


def _check_database(path: Path) -> None:
    """Refuse databases with views, triggers or computed columns: a bag has tables and indices only."""
    import sqlite3  # here, since few maps need it

    with contextlib.closing(sqlite3.connect(f"file:{urllib.parse.quote(str(path))}?immutable=1", uri=True)) as database:
        rows = database.execute("SELECT type, coalesce(sql, '') FROM sqlite_master LIMIT 1000").fetchall()
    for kind, sql in rows:
        words = str(sql).upper().split()
        if kind not in ("table", "index") or "VIRTUAL" in words or "GENERATED" in words or "AS" in words:
            raise MapError(f"the bag cannot be read: expected tables in the database, found a {shown(kind)}", path)


@contextlib.contextmanager
def _bounded(meter: Meter) -> Iterator[None]:
    """Context in which the library decompresses through bounded decompressors, which count bytes before keeping them."""
    from rosbags.rosbag1 import reader as first
    from rosbags.rosbag2 import storage_mcap as second

    tables: list[dict[str, Callable[..., bytes]]] = [
        cast("dict[str, Callable[..., bytes]]", first.decompressors),
        cast("dict[str, Callable[..., bytes]]", second.DECOMPRESSORS),
    ]
    machine = second.zstd.ZstdDecompressor  # type: ignore[attr-defined]  # which module it is depends on the version of Python

    def lz4(data: bytes, _size: int = 0) -> bytes:
        from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]

        return _unpack(LZ4FrameDecompressor(), data, meter)

    def zstd(data: bytes, _size: int = 0) -> bytes:
        return _unpack(machine(), data, meter)

    def plain(data: bytes, _size: int = 0) -> bytes:
        meter.add("unpacked", len(data))
        return data

    bounded: dict[str, Callable[..., bytes]] = {
        "": plain, "none": plain, "lz4": lz4, "zstd": zstd, "bz2": lambda data: _unpack(bz2.BZ2Decompressor(), data, meter),
    }  # fmt: skip
    with _LOCK:
        originals = [(table, dict(table)) for table in tables]
        try:
            for table, original in originals:
                table.update({name: bounded[name] for name in original if name in bounded})
            yield
        finally:
            for table, original in originals:
                table.update(original)


def _unpack(machine: Any, data: bytes, meter: Meter) -> bytes:
    pieces = []
    while not machine.eof:
        piece = machine.decompress(data, max_length=1 << 20)
        data = b""
        if not piece and machine.needs_input:
            break
        meter.add("unpacked", len(piece))
        pieces.append(piece)
    return b"".join(pieces)


__all__ = ["SUFFIXES", "last_map"]
