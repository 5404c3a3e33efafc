"""MCAP files as bytes (https://mcap.dev/spec): records, chunks and summary; no I/O.

A file has `MAGIC`, a header, data records, a data end, the summary, a footer, `MAGIC`.
A record has one byte with its type (`Op`), the uint64 length of its contents, and the
contents. Numbers are little-endian. A string, a map or an array starts with its length
in bytes, a uint32.

Messages are in chunks that are compressed as a whole. Each chunk is followed by an
index of its messages for each channel.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

MAGIC: Final = b"\x89MCAP0\r\n"
ZSTD: Final = "zstd"


class Op(IntEnum):
    """Type of a record."""

    HEADER = 0x01
    FOOTER = 0x02
    SCHEMA = 0x03
    CHANNEL = 0x04
    MESSAGE = 0x05
    CHUNK = 0x06
    MESSAGE_INDEX = 0x07
    CHUNK_INDEX = 0x08
    ATTACHMENT = 0x09
    ATTACHMENT_INDEX = 0x0A
    STATISTICS = 0x0B
    METADATA = 0x0C
    METADATA_INDEX = 0x0D
    SUMMARY_OFFSET = 0x0E
    DATA_END = 0x0F


RECORD: Final = struct.Struct("<BQ")
"""Start of a record: `Op` and length of the contents."""
MESSAGE: Final = struct.Struct("<HIQQ")
"""Start of a message: channel, sequence number, log time and publish time (ns)."""
_WHOLE_MESSAGE: Final = struct.Struct("<BQHIQQ")
_INDEX: Final = struct.Struct("<BQHI")
"""Start of a message index: record head, channel, and size of the pairs that follow.

The size is in bytes; a pair is a time and an offset.
"""
_PAIR: Final = struct.Struct("<QQ")
_FOOTER: Final = struct.Struct("<QQI")
_U16, _U32, _U64 = (struct.Struct(f"<{c}") for c in "HIQ")


class Compressor(Protocol):
    """Zstandard compressor."""

    def compress(self, data: bytes, /) -> bytes:
        """Return the compressed data as one frame."""
        ...


def text(value: str) -> bytes:
    """Return the length of a string in UTF-8, followed by its bytes."""
    # Lone surrogates cannot be encoded; a replacement keeps the file valid.
    data = value.encode("utf-8", "replace")
    return _U32.pack(len(data)) + data


def record(op: Op, *parts: bytes) -> bytes:
    """Return the bytes of a record.

    Parameters
    ----------
    op : Op
        Type of the record.
    *parts : bytes
        Its contents, which are joined.
    """
    return b"".join((RECORD.pack(op, sum(map(len, parts))), *parts))


def _map(values: Mapping[str, str]) -> bytes:
    data = b"".join(text(part) for pair in values.items() for part in pair)
    return _U32.pack(len(data)) + data


@dataclass(frozen=True, slots=True)
class Schema:
    """Type of messages.

    The encoding is ``ros2msg`` with a definition, ``jsonschema``, or empty; see the
    well-known encodings of the specification.
    """

    id: int
    name: str
    encoding: str
    data: bytes

    @property
    def record(self) -> bytes:
        """Bytes of the schema's record in a file."""
        return record(
            Op.SCHEMA,
            _U16.pack(self.id),
            text(self.name),
            text(self.encoding),
            _U32.pack(len(self.data)),
            self.data,
        )


@dataclass(frozen=True, slots=True)
class Channel:
    """Stream of messages with one type and topic."""

    id: int
    topic: str
    encoding: str
    schema: Schema
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def record(self) -> bytes:
        """Bytes of the channel's record in a file."""
        return record(
            Op.CHANNEL,
            _U16.pack(self.id),
            _U16.pack(self.schema.id),
            text(self.topic),
            text(self.encoding),
            _map(self.metadata),
        )


@dataclass(frozen=True, slots=True)
class Attachment:
    """Named data besides the messages; `time` in ns."""

    name: str
    media_type: str
    data: bytes
    time: int = 0

    @property
    def record(self) -> bytes:
        """Bytes of the attachment's record in a file."""
        head = (
            _PAIR.pack(self.time, self.time) + text(self.name) + text(self.media_type)
        )
        body = head + _U64.pack(len(self.data)) + self.data
        # The checksum covers all fields, not only the data.
        return record(Op.ATTACHMENT, body, _U32.pack(zlib.crc32(body)))


class Chunk(NamedTuple):
    """Complete chunk.

    Attributes
    ----------
    data : bytes
        Record of the chunk, followed by the records of its message indexes.
    size : int
        Bytes of its record alone.
    begin, end : int
        Earliest and latest time of a message, ns.
    raw, compressed : int
        Bytes of its messages before and after compression.
    counts : mapping of int to int
        Number of messages of each channel.
    offsets : mapping of int to int
        Offset in `data` of each channel's index.
    """

    data: bytes
    size: int
    begin: int
    end: int
    raw: int
    compressed: int
    counts: Mapping[int, int]
    offsets: Mapping[int, int]


@lru_cache(maxsize=64)
def _numbers(count: int) -> struct.Struct:
    """Return the layout of `count` consecutive uint64 numbers."""
    return struct.Struct(f"<{count}Q")


class ChunkBuilder:
    """Collects messages for a chunk.

    Attributes
    ----------
    size : int
        Bytes so far.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []
        self._index: dict[int, list[int]] = {}
        self._begin, self._end = 2**64 - 1, 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, channel: int, time: int, sequence: int, data: bytes) -> None:
        """Add a message to the chunk.

        Parameters
        ----------
        channel : int
            Number of its channel.
        time : int
            Log time and publish time, ns.
        sequence : int
            Sequence number, 32 bits.
        data : bytes
            Encoded message.
        """
        count = MESSAGE.size + len(data)
        self._parts += (
            _WHOLE_MESSAGE.pack(Op.MESSAGE, count, channel, sequence, time, time),
            data,
        )
        index = self._index.get(channel)
        # The index holds times and offsets in turn, as in the file.
        if index is None:
            index = self._index[channel] = []
        index += (time, self.size)
        self.size += RECORD.size + count
        # Comparisons are cheaper than min and max in this function, which runs for each
        # message.
        if time < self._begin:
            self._begin = time
        if time > self._end:
            self._end = time

    def build(self, compressor: Compressor) -> Chunk:
        """Return the chunk of all added messages, and empty the builder."""
        raw = b"".join(self._parts)
        packed = compressor.compress(raw)
        head = struct.pack("<QQQI", self._begin, self._end, len(raw), zlib.crc32(raw))
        made = record(Op.CHUNK, head, text(ZSTD), _U64.pack(len(packed)), packed)
        parts, offsets, at = [made], dict[int, int](), len(made)
        beside = _INDEX.size - RECORD.size
        for channel, index in self._index.items():
            size = _U64.size * len(index)
            parts += (
                _INDEX.pack(Op.MESSAGE_INDEX, beside + size, channel, size),
                _numbers(len(index)).pack(*index),
            )
            offsets[channel] = at
            at += _INDEX.size + size

        counts = {channel: len(index) // 2 for channel, index in self._index.items()}
        chunk = Chunk(
            b"".join(parts),
            len(made),
            self._begin,
            self._end,
            len(raw),
            len(packed),
            counts,
            offsets,
        )
        self._clear()
        return chunk


class Summary:
    """Summary at the end of a file, collected while the records are written.

    Attributes
    ----------
    size : int
        Bytes of the indexes so far.
    """

    def __init__(self) -> None:
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._indexes: dict[Op, list[bytes]] = {
            Op.CHUNK_INDEX: [],
            Op.ATTACHMENT_INDEX: [],
            Op.METADATA_INDEX: [],
        }
        self._counts: dict[int, int] = {}
        self._begin, self._end = 2**64 - 1, 0
        self.size = 0

    def has(self, channel: int) -> bool:
        """Return whether a channel was added to the summary."""
        return channel in self._channels

    def channel(self, channel: Channel) -> bytes:
        """Add a channel.

        Parameters
        ----------
        channel : Channel
            Channel whose messages follow.

        Returns
        -------
        bytes
            Record of the channel, after the record of its schema if the schema is new.
        """
        self._channels[channel.id] = channel
        # The specification reserves the schema number 0 for channels without a schema.
        if channel.schema.id in self._schemas or not channel.schema.id:
            return channel.record
        self._schemas[channel.schema.id] = channel.schema
        return channel.schema.record + channel.record

    def _index(self, op: Op, *parts: bytes) -> None:
        made = record(op, *parts)
        self._indexes[op].append(made)
        self.size += len(made)

    def chunk(self, chunk: Chunk, at: int) -> None:
        """Add a chunk to the summary.

        Parameters
        ----------
        chunk : Chunk
            Chunk that was written.
        at : int
            Offset of its record in the file, bytes.
        """
        offsets = b"".join(
            struct.pack("<HQ", channel, at + offset)
            for channel, offset in chunk.offsets.items()
        )
        self._index(
            Op.CHUNK_INDEX,
            struct.pack("<QQQQ", chunk.begin, chunk.end, at, chunk.size),
            _U32.pack(len(offsets)) + offsets,
            _U64.pack(len(chunk.data) - chunk.size),
            text(ZSTD),
            _PAIR.pack(chunk.compressed, chunk.raw),
        )
        for channel, count in chunk.counts.items():
            self._counts[channel] = self._counts.get(channel, 0) + count
        self._begin, self._end = (
            min(self._begin, chunk.begin),
            max(self._end, chunk.end),
        )

    def attachment(self, one: Attachment, at: int, size: int) -> None:
        """Add an attachment to the summary.

        Parameters
        ----------
        one : Attachment
            Attachment that was written.
        at, size : int
            Offset in the file and length of its record, bytes.
        """
        name = text(one.name) + text(one.media_type)
        self._index(
            Op.ATTACHMENT_INDEX,
            _PAIR.pack(at, size),
            _PAIR.pack(one.time, one.time),
            _U64.pack(len(one.data)),
            name,
        )

    def metadata(self, name: str, at: int, size: int) -> None:
        """Add a record of metadata to the summary.

        Parameters
        ----------
        name : str
            Name of the record.
        at, size : int
            Offset in the file and length of the record, bytes.
        """
        self._index(Op.METADATA_INDEX, _PAIR.pack(at, size), text(name))

    def _statistics(self) -> bytes:
        counts = b"".join(
            struct.pack("<HQ", channel, count)
            for channel, count in self._counts.items()
        )
        numbers = struct.pack(
            "<QHIIIIQQ",
            sum(self._counts.values()),
            len(self._schemas),
            len(self._channels),
            len(self._indexes[Op.ATTACHMENT_INDEX]),
            len(self._indexes[Op.METADATA_INDEX]),
            len(self._indexes[Op.CHUNK_INDEX]),
            # The specification requires 0 for a file without messages.
            self._begin if self._counts else 0,
            self._end,
        )
        return record(Op.STATISTICS, numbers, _U32.pack(len(counts)) + counts)

    def end(self, at: int, checksum: int) -> bytes:
        """Return all bytes after the data: data end, summary, footer and magic bytes.

        Parameters
        ----------
        at : int
            Offset at which the data end, bytes.
        checksum : int
            CRC-32 of all bytes before it.
        """
        data_end = record(Op.DATA_END, _U32.pack(checksum))
        groups = {
            Op.SCHEMA: [schema.record for schema in self._schemas.values()],
            Op.CHANNEL: [channel.record for channel in self._channels.values()],
            Op.STATISTICS: [self._statistics()],
            **self._indexes,
        }
        start = place = at + len(data_end)
        parts, offsets = [], []
        # Records of one type must be adjacent: an offset record describes a whole
        # group.
        for op, records in groups.items():
            size = sum(map(len, records))
            if size:
                offsets.append(
                    record(Op.SUMMARY_OFFSET, bytes([op]), _PAIR.pack(place, size))
                )

            parts += records
            place += size

        summary = b"".join((*parts, *offsets))
        head = RECORD.pack(Op.FOOTER, _FOOTER.size) + _PAIR.pack(start, place)
        # The checksum covers the summary and the footer up to the checksum itself.
        return b"".join(
            (
                data_end,
                summary,
                head,
                _U32.pack(zlib.crc32(head, zlib.crc32(summary))),
                MAGIC,
            )
        )


def file_start(profile: str, library: str) -> bytes:
    """Return the start of a file: magic bytes and header.

    Parameters
    ----------
    profile : str
        Profile of the specification, for example ``ros2``.
    library : str
        Name of the program that writes the file.
    """
    return MAGIC + record(Op.HEADER, text(profile), text(library))


def metadata(name: str, values: Mapping[str, str]) -> bytes:
    """Return the bytes of a record of metadata."""
    return record(Op.METADATA, text(name), _map(values))


__all__ = [
    "MAGIC",
    "MESSAGE",
    "RECORD",
    "ZSTD",
    "Attachment",
    "Channel",
    "Chunk",
    "ChunkBuilder",
    "Compressor",
    "Op",
    "Schema",
    "Summary",
    "file_start",
    "metadata",
    "record",
    "text",
]
