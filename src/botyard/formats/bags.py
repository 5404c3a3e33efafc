"""Bags of ROS 1 and 2 (``.bag``, ``.mcap``, ``.db3``): messages of chosen types, and
maps (the last ``nav_msgs/OccupancyGrid`` of the map's topic).

The library rosbags reads the containers. Their content is untrusted: messages are
decoded by the definition of the ROS package, not by the bag's own; compressed chunks
are decompressed within the budget; a database may hold tables only.
"""

from __future__ import annotations

import bz2
import contextlib
import struct
import threading
import urllib.parse
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from botyard.errors import FormatError, MapError
from botyard.formats.base import MAX_LISTED, Source, reason_of
from botyard.formats.budget import Meter
from botyard.names import shown

SUFFIXES: Final = (".bag", ".mcap", ".db3")
MAP_TYPE: Final = "nav_msgs/msg/OccupancyGrid"
_RECORD: Final = struct.Struct("<BQ")
"""What a record begins with: its kind, and the length of its contents."""
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_LOCK: Final = threading.Lock()
"""Held while the library's decompressors are replaced by bounded ones."""


class BagMessage(NamedTuple):
    """A message of a bag.

    Attributes
    ----------
    topic, type : str
        Its topic; its type, as ``nav_msgs/msg/Odometry``.
    time_ns : int
        When it was recorded.
    message : object
        Of rosbags' class.
    """

    topic: str
    type: str
    time_ns: int
    message: Any


def last_map(source: Source, meter: Meter, topic: str | None = None) -> Any:
    """The message object of the last map in a bag, of rosbags' class.

    Costmaps are of the same type as maps, and they are repeated: the topic tells them
    apart.

    Parameters
    ----------
    source : Source
        The bag.
    meter : Meter
        Counts messages as ``entities``, and ``unpacked`` bytes.
    topic : str, optional
        Topic of the map; None: see `map_topic`.

    Raises
    ------
    MapError
        The bag cannot be read, no map is in it, or several topics may be the map's.
    """
    path = source.beside(Path(source.name).name, "the bag")
    last = None

    def choose(topics: list[str]) -> list[str]:
        return [map_topic(topics, topic, source.name)] if topics else []

    with _readable(source.name, MapError):
        for last in _raw_messages(path, meter, (MAP_TYPE,), MapError, choose):  # noqa: B007
            pass
        if last is None:
            raise MapError("no nav_msgs/OccupancyGrid in this bag", source.name)
        return _decoder(path)(last[3], MAP_TYPE)


def map_topic(topics: list[str], wanted: str | None, name: str) -> str:
    """The topic of the map among topics of occupancy grids: `wanted`, ``/map``, the
    only one whose last part is ``map``, or the only one.

    Raises
    ------
    MapError
        It is not there, or not clear.
    """
    if wanted is not None:
        if wanted not in topics:
            raise MapError(
                f'no grid of the topic "{shown(wanted)}" in this bag: there are {_listed(topics)}',
                name,
            )

        return wanted

    named = [t for t in topics if t.rpartition("/")[2] == "map"]
    found = [t for t in topics if t in ("/map", "map")] or named or topics
    if len(found) > 1:
        raise MapError(
            f"expected one map, found grids of {_listed(found)}: `botyard "
            "convert --topic` chooses one",
            name,
        )

    return found[0]


def _listed(topics: list[str]) -> str:
    return ", ".join(shown(t) for t in topics[:MAX_LISTED]) + (
        ", …" if len(topics) > MAX_LISTED else ""
    )


def bag_messages(
    path: Path, meter: Meter, types: Collection[str], error: type[FormatError]
) -> Iterator[BagMessage]:
    """The messages of some types, in the order in which they were recorded.

    Parameters
    ----------
    path : Path
        A ``.bag``, ``.mcap`` or ``.db3``, or the folder of a bag of ROS 2.
    meter : Meter
        Counts messages as ``entities``, ``records``, and ``unpacked`` bytes.
    types : collection of str
        Types, as ``nav_msgs/msg/Odometry``, of ROS's own packages.
    error : class
        Of the errors that are raised: the bag cannot be read.
    """
    with _readable(str(path), error):
        decode = _decoder(path)
        for topic, kind, time_ns, raw in _raw_messages(path, meter, types, error):
            yield BagMessage(topic, kind, time_ns, decode(raw, kind))


@contextlib.contextmanager
def _readable(name: str, kind: type[FormatError]) -> Iterator[None]:
    """Context that turns the library's exceptions into an error of a class."""
    try:
        yield
    except FormatError:
        raise
    except (
        Exception
    ) as error:  # the library raises all kinds of exceptions for damaged bags
        raise kind(f"the bag cannot be read: {reason_of(error)}", name) from None


def _is_first(path: Path) -> bool:
    """Whether it is a bag of ROS 1."""
    return path.suffix.lower() == ".bag"


def _decoder(path: Path) -> Callable[[Any, str], Any]:
    from rosbags.typesys import Stores, get_typestore

    if _is_first(path):
        return get_typestore(Stores.ROS1_NOETIC).deserialize_ros1
    return get_typestore(Stores.LATEST).deserialize_cdr


def _raw_messages(
    path: Path,
    meter: Meter,
    types: Collection[str],
    error: type[FormatError],
    choose: Callable[[list[str]], list[str]] = lambda topics: topics,
) -> Iterator[tuple[str, str, int, Any]]:
    """Topic, type, time and bytes of messages of the topics that `choose` picks. The
    library's exceptions go through.
    """
    from rosbags import rosbag1, rosbag2

    for one in path.glob("*.db3") if path.is_dir() else [path]:
        if one.suffix.lower() == ".db3":
            _check_database(one, error)

    with (
        _bounded(meter),
        rosbag1.Reader(path) if _is_first(path) else rosbag2.Reader(path) as reader,
    ):
        connections = [c for c in reader.connections if c.msgtype in types]
        chosen = choose(sorted({c.topic for c in connections if c.msgcount}))
        connections = [c for c in connections if c.topic in chosen]
        for connection, time_ns, raw in (
            reader.messages(connections) if connections else ()
        ):
            meter.add("entities", 1)
            if bytes(raw[:4]) == _ZSTD:
                raise error(
                    "its messages are packed one by one: unpack the bag first (ros2 bag convert)",
                    path,
                )

            yield connection.topic, connection.msgtype, time_ns, raw


def _check_database(path: Path, error: type[FormatError]) -> None:
    """Refuse databases with views, triggers or computed columns: a bag has tables and
    indices only.
    """
    import sqlite3  # here, since few maps need it

    with contextlib.closing(
        sqlite3.connect(f"file:{urllib.parse.quote(str(path))}?immutable=1", uri=True)
    ) as database:
        rows = database.execute(
            "SELECT type, coalesce(sql, '') FROM sqlite_master LIMIT 1000"
        ).fetchall()

    for kind, sql in rows:
        words = str(sql).upper().split()
        if (
            kind not in ("table", "index")
            or "VIRTUAL" in words
            or "GENERATED" in words
            or "AS" in words
        ):
            raise error(
                f"the bag cannot be read: expected tables in the database, found a {shown(kind)}",
                path,
            )


@contextlib.contextmanager
def _bounded(meter: Meter) -> Iterator[None]:
    """Context in which the library decompresses through bounded decompressors, which
    count bytes before keeping them.
    """
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
        "": plain,
        "none": plain,
        "lz4": lz4,
        "zstd": zstd,
        "bz2": lambda data: _unpack(bz2.BZ2Decompressor(), data, meter),
    }

    def counted(name: str) -> Callable[..., bytes]:
        return lambda data, size=0: _counted(bounded[name](data, size), meter)

    with _LOCK:
        originals = [(table, dict(table)) for table in tables]
        try:
            for table, original in originals:
                is_mcap = table is second.DECOMPRESSORS
                table.update(
                    {
                        name: counted(name) if is_mcap else bounded[name]
                        for name in original
                        if name in bounded
                    }
                )

            yield
        finally:
            for table, original in originals:
                table.update(original)


def _counted(data: bytes, meter: Meter) -> bytes:
    """The records of a chunk (MCAP), which are counted before the library goes through
    them: the shortest one has 9 bytes.
    """
    at = count = 0
    while at + _RECORD.size <= len(data):
        at += _RECORD.size + _RECORD.unpack_from(data, at)[1]
        count += 1
        if count == 10_000:
            meter.add("records", count)
            count = 0

    meter.add("records", count)
    return data


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


__all__ = ["SUFFIXES", "BagMessage", "bag_messages", "last_map", "map_topic"]
