"""Reader of bags of ROS 1 and 2 (``.bag``, ``.mcap``, ``.db3``).

The reader finds messages of chosen types, and maps (the last ``nav_msgs/OccupancyGrid``
of the map's topic). The library rosbags reads the containers. The content of bags is
untrusted: messages are decoded by the definition of the ROS package, not by the
definition in the bag; compressed chunks are decompressed within the budget; and a
database may have only tables and indices.
"""

from __future__ import annotations

import bz2
import contextlib
import os
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

MAP_TYPE: Final = "nav_msgs/msg/OccupancyGrid"
_RECORD: Final = struct.Struct("<BQ")
"""Layout of the header of a record: its kind, and the length of its contents."""
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_LOCK: Final = threading.Lock()
"""Lock that is held while bounded decompressors replace the library's decompressors."""


class BagMessage(NamedTuple):
    """Message of a bag, decoded.

    Attributes
    ----------
    topic, type : str
        Topic, and type, for example ``nav_msgs/msg/Odometry``.
    time_ns : int
        Time of recording, ns.
    message : object
        Message of rosbags' class.
    """

    topic: str
    type: str
    time_ns: int
    message: Any


def last_map(source: Source, meter: Meter, topic: str | None = None) -> Any:
    """Return the message of the last map in a bag, an object of rosbags' class.

    Costmaps have the same type as maps and are published repeatedly, so the topic
    decides.

    Parameters
    ----------
    source : Source
        Bag.
    meter : Meter
        Counts messages as ``entities``, and ``unpacked`` bytes.
    topic : str, optional
        Topic of the map; None: see `map_topic`.

    Raises
    ------
    MapError
        The bag cannot be read, has no map, or has several topics that may be the map's.
    """
    path = source.sibling_file(Path(source.name).name, "the bag")
    last = None

    def choose(topics: list[str]) -> list[str]:
        return [map_topic(topics, topic, source.name)] if topics else []

    with _readable(source.name, MapError):
        # Maps are repeated; the last one is the newest.
        for last in _raw_messages(path, meter, (MAP_TYPE,), MapError, choose):  # noqa: B007
            pass
        if last is None:
            raise MapError(
                "expected a nav_msgs/OccupancyGrid in this bag, found none", source.name
            )
        return _decoder(path)(last[3], MAP_TYPE)


def map_topic(topics: list[str], wanted: str | None, name: str) -> str:
    """Return the topic that has the map, among the topics of occupancy grids.

    Parameters
    ----------
    topics : list of str
        Topics of all occupancy grids, at least one.
    wanted : str or None
        Topic that the user chose. None: ``/map``; otherwise the only topic whose last
        part is ``map``; otherwise the only topic.
    name : str
        Name of the bag in error messages.

    Raises
    ------
    MapError
        The topic does not exist, or is ambiguous.
    """
    if wanted is not None:
        if wanted not in topics:
            raise MapError(
                f'no grid of the topic "{shown(wanted)}" in this bag: there are '
                f"{_listed(topics)}",
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
    """Yield the messages of some types, in the order in which they were recorded.

    Parameters
    ----------
    path : Path
        A ``.bag``, ``.mcap`` or ``.db3`` file, or the folder of a ROS 2 bag.
    meter : Meter
        Counts messages as ``entities``, ``records``, and ``unpacked`` bytes.
    types : collection of str
        Types of ROS's own packages, for example ``nav_msgs/msg/Odometry``.
    error : type of FormatError
        Class of the error if the bag cannot be read.
    """
    with _readable(str(path), error):
        decode = _decoder(path)
        for topic, kind, time_ns, raw in _raw_messages(path, meter, types, error):
            yield BagMessage(topic, kind, time_ns, decode(raw, kind))


@contextlib.contextmanager
def _readable(name: str, kind: type[FormatError]) -> Iterator[None]:
    """Convert the library's exceptions in the block to errors of the class `kind`."""
    try:
        yield
    except FormatError:
        raise
    except Exception as error:
        # The library raises exceptions of all kinds for damaged bags.
        raise kind(f"the bag cannot be read: {reason_of(error)}", name) from None


def _is_first(path: Path) -> bool:
    """Return whether a path is a ROS 1 bag."""
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
    """Yield the serialised messages of some types.

    The library's exceptions are not handled here.

    Parameters
    ----------
    path : Path
        A ``.bag``, ``.mcap`` or ``.db3`` file, or the folder of a ROS 2 bag.
    meter : Meter
        Counts messages, records and unpacked bytes.
    types : collection of str
        Types of messages to yield.
    error : type of FormatError
        Class of the error for a bag that is refused.
    choose : callable
        Returns the topics to read, from all topics of these types.

    Yields
    ------
    str, str, int, bytes
        Topic, type, time of recording, ns, and serialised message.
    """
    from rosbags import rosbag1, rosbag2

    for one in path.glob("*.db3") if os.path.isdir(path) else [path]:
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
            # rosbags decompresses single messages without a limit, so bags with such
            # messages are refused.
            if bytes(raw[:4]) == _ZSTD:
                raise error(
                    "the messages of this bag are compressed one by one, which botyard cannot "
                    "read: decompress the bag first (ros2 bag convert)",
                    path,
                )

            yield connection.topic, connection.msgtype, time_ns, raw


def _check_database(path: Path, error: type[FormatError]) -> None:
    """Raise an error for a database with views, triggers or computed columns.

    A bag has only tables and indices. The other objects could run code on reading.
    """
    # Import SQLite here, because few maps need it.
    import sqlite3

    with contextlib.closing(
        # Immutable: SQLite then creates no files next to the bag.
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
                "the bag cannot be read: expected only ordinary tables and indices in the "
                f'database, found the {shown(kind)} "{shown(sql, 80)}"',
                path,
            )


@contextlib.contextmanager
def _bounded(meter: Meter) -> Iterator[None]:
    """Replace the library's decompressors, within the block, by ones that count bytes.

    The new decompressors count bytes before they store them.
    """
    from rosbags.rosbag1 import reader as first
    from rosbags.rosbag2 import storage_mcap as second

    tables: list[dict[str, Callable[..., bytes]]] = [
        cast("dict[str, Callable[..., bytes]]", first.decompressors),
        cast("dict[str, Callable[..., bytes]]", second.DECOMPRESSORS),
    ]
    # The module of the decompressor depends on the version of Python.
    machine = second.zstd.ZstdDecompressor  # type: ignore[attr-defined]

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

    # The tables are global variables of the library, so only one thread may change
    # them.
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
    """Count the records of an MCAP chunk, and return the chunk unchanged.

    Records are counted before the library visits them: the shortest record has only 9
    bytes.
    """
    at = count = 0
    while at + _RECORD.size <= len(data):
        at += _RECORD.size + _RECORD.unpack_from(data, at)[1]
        count += 1
        # Counting in groups saves time and still stops a hostile chunk early.
        if count == 10_000:
            meter.add("records", count)
            count = 0

    meter.add("records", count)
    return data


def _unpack(machine: Any, data: bytes, meter: Meter) -> bytes:
    """Return decompressed data, whose bytes are counted step by step during decompression.

    Parameters
    ----------
    machine : object
        Decompressor with the interface of `bz2.BZ2Decompressor`.
    data : bytes
        Compressed data.
    meter : Meter
        Limit of the unpacked bytes.
    """
    pieces = []
    while not machine.eof:
        # Pieces of 1 MiB bound the memory that is used before the budget is checked.
        piece = machine.decompress(data, max_length=1 << 20)
        data = b""
        if not piece and machine.needs_input:
            break
        meter.add("unpacked", len(piece))
        pieces.append(piece)

    return b"".join(pieces)


__all__ = ["BagMessage", "bag_messages", "last_map", "map_topic"]
