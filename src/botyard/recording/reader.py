"""Reads MCAP files of strangers: cut short, damaged, or made to cost much.

`botyard.recording.mcap` has the layout. A file is read from its beginning, record by
record, so that one whose end is missing can be read, too. Where a record makes no
sense, reading goes on at the next chunk that does; `Reader.problems` says what was
passed over. Each complete chunk has a checksum.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, BinaryIO, Final, NamedTuple, Self

from botyard.errors import BudgetError, RecordingError
from botyard.formats.budget import Budget, Meter
from botyard.names import shown
from botyard.recording.mcap import (
    MAGIC,
    MESSAGE,
    RECORD,
    ZSTD,
    Attachment,
    Channel,
    Op,
    Schema,
)

MAX_CHUNKS: Final = 2_000_000
"""Most chunks of a file: four weeks of a recording have as many."""
MAX_ATTACHMENTS: Final = 100_000
MAX_DESCRIPTIONS: Final = 64 * 2**20
"""Most bytes of all schemas, channels and metadata together: they are kept in memory.
"""
MAX_DESCRIBED: Final = 262_144
"""Most of them: each of 65,535 channels and schemas may be described twice."""
MAX_INDEX: Final = 64 * 2**20
"""Longest record that is neither chunk, attachment nor description, bytes."""
RECORDS_TOGETHER: Final = 10_000
"""Records in a chunk are counted so many at a time."""
MAX_WINDOW: Final = 2**27
"""Most bytes that zstd looks back: it allocates so many for each chunk."""
MAX_FALSE: Final = 100_000
"""Places that look like the beginning of a chunk and are none: bounds the time of
looking for what is whole behind a damage.
"""
MAX_PROBLEMS: Final = 100
"""Problems that are kept; of others only the number is."""
_UNCHECKED: Final = frozenset(
    {
        Op.MESSAGE,
        Op.CHUNK_INDEX,
        Op.ATTACHMENT_INDEX,
        Op.STATISTICS,
        Op.METADATA_INDEX,
        Op.SUMMARY_OFFSET,
        Op.DATA_END,
        *range(0x80, 0x100),
    }
)
"""Records whose length nothing in them confirms, and private ones: if there is a chunk
in one, its length is wrong.
"""
_BLOCK: Final = 2**20
_CHUNK_HEAD: Final = struct.Struct("<QQQI")
_CHUNK_BEGIN: Final = RECORD.size + _CHUNK_HEAD.size
_CHUNK_MARK: Final = re.compile(re.escape(struct.pack("<I", len(ZSTD)) + ZSTD.encode()))
_U16, _U32, _U64 = (struct.Struct(f"<{c}") for c in "HIQ")


class ChunkPlace(NamedTuple):
    """Where a chunk is.

    Attributes
    ----------
    at, size : int
        First byte of its record, and bytes of that.
    begin, end : int
        Earliest and latest time of a message, ns.
    raw : int
        Bytes of its messages, unpacked.
    checksum : int
        CRC-32 of these; 0: there is none.
    packed_at, packed : int
        Where the packed bytes are, and how many.
    compression : str
        ``zstd``, or empty.
    """

    at: int
    size: int
    begin: int
    end: int
    raw: int
    checksum: int
    packed_at: int
    packed: int
    compression: str


class AttachmentPlace(NamedTuple):
    """Where an attachment is: first byte of its record, bytes of that, and its name."""

    at: int
    size: int
    name: str


class Message(NamedTuple):
    """A message: its channel, its time (ns), its number in the channel, its bytes."""

    channel: Channel
    time: int
    sequence: int
    data: bytes


class _Damage(Exception):
    """A record makes no sense; reading may go on elsewhere."""


class _CutShort(_Damage):
    """A record goes beyond the end of the file."""


class _Fields:
    """Reads values one after the other of a record's contents. Raises _Damage beyond
    the end.
    """

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def number(self, kind: struct.Struct) -> int:
        """A number."""
        return int(kind.unpack(self.take(kind.size))[0])

    def take(self, size: int) -> memoryview:
        """So many bytes."""
        end = self._at + size
        if end > len(self._data):
            raise _Damage("it is too short for what is in it")
        found, self._at = self._data[self._at : end], end
        return found

    def text(self) -> str:
        """A text."""
        return bytes(self.take(self.number(_U32))).decode("utf-8", "replace")

    def map(self) -> dict[str, str]:
        """A map of texts."""
        inner, found = _Fields(self.take(self.number(_U32))), dict[str, str]()
        while inner.left:
            key = inner.text()
            found[key] = inner.text()

        return found

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return len(self._data) - self._at

    def end(self) -> None:
        """Nothing may be left."""
        if self.left:
            raise _Damage(f"{self.left} bytes more than what is in it")


class Reader:
    """A file that is read; a context manager that closes it.

    Parameters
    ----------
    path : path-like
        The file.
    budget : Budget
        Limits: ``unpacked`` of one chunk or attachment, bytes; ``records`` and
        ``recorded`` of the whole file.

    Raises
    ------
    RecordingError
        It cannot be opened, is no MCAP file, or has more chunks or descriptions than
        are read.

    Attributes
    ----------
    library, profile : str
        What wrote it, and for whom.
    metadata : mapping of str to mappings
        Records of metadata by their names.
    channels : mapping of int to Channel
        By their numbers.
    chunks : list of ChunkPlace
        All chunks, in the order of the file.
    attachments : list of AttachmentPlace
        All attachments.
    is_complete, is_cut : bool
        It ends as it should; or it was cut short, and is as it should be until there.
    problems : list of str
        What was passed over.
    """

    def __init__(self, path: str | PathLike[str], budget: Budget = Budget()) -> None:
        self.path, self._budget = str(path), budget
        self.library = self.profile = ""
        self.metadata: dict[str, Mapping[str, str]] = {}
        self.channels: dict[int, Channel] = {}
        self.chunks: list[ChunkPlace] = []
        self.attachments: list[AttachmentPlace] = []
        self.is_complete = self.is_cut = False
        self.problems: list[str] = []
        self._more_problems = 0
        self._schemas: dict[int, Schema] = {0: Schema(0, "", "", b"")}
        self._descriptions = self._described = 0
        self._false = 0
        self._data_checksum = 0
        self._decompressor: Any = None
        try:
            self._file: BinaryIO = open(path, "rb")  # noqa: SIM115 - kept open
        except OSError as error:
            raise RecordingError(error.strerror or str(error), path) from None

        try:
            self._size = self._file.seek(0, 2)
            if self._read(0, len(MAGIC)) != MAGIC:
                raise RecordingError(
                    "expected a recording (MCAP), found something else", path
                )

            self._scan()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def error(self, reason: str) -> RecordingError:
        """An error about this file."""
        return RecordingError(reason, self.path)

    def note(self, problem: str) -> None:
        """Remember a problem."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)
        else:
            self._more_problems += 1
            self.problems[MAX_PROBLEMS - 1] = f"{self._more_problems + 1} more problems"

    def _read(self, at: int, size: int) -> bytes:
        try:
            self._file.seek(at)
            return self._file.read(size)
        except OSError as error:
            raise self.error(f"cannot be read: {error.strerror or error}") from None

    # -- the records

    def _scan(self) -> None:
        at: int | None = len(MAGIC)
        meter = self._meter()
        while at is not None and at < self._size:
            meter.add("records", 1)
            try:
                at = self._record(at)
            except _Damage as damage:
                assert at is not None
                found = self._next_chunk(at + 1)
                if found is None and isinstance(damage, _CutShort):
                    break
                where = f"bytes {at} to {found or self._size} are passed over"
                self.note(f"a record at byte {at} makes no sense: {damage}; {where}")
                at = found

        if not self.is_complete:
            has_end = (
                self._size > len(MAGIC)
                and self._read(self._size - len(MAGIC), len(MAGIC)) == MAGIC
            )
            self.is_cut = not has_end and not self.problems
            self.note(
                "it was cut short, or is being written: it ends at byte "
                f"{at or self._size} with its last whole record"
            )
            self._from_summary()

    def _head(self, at: int) -> tuple[int, int]:
        """What a record is, and the length of its contents."""
        head = self._read(at, RECORD.size)
        if len(head) < RECORD.size:
            raise _CutShort("it is cut short")
        op, size = RECORD.unpack(head)
        if size > self._size - at - RECORD.size:
            raise _CutShort("it is cut short, or its length is wrong")
        return op, size

    def _record(self, at: int) -> int | None:
        """Take in a record; returns where the next one is. None: nothing follows."""
        op, size = self._head(at)
        behind = at + RECORD.size + size
        if op == Op.CHUNK:
            if len(self.chunks) >= MAX_CHUNKS:
                raise self.error(f"expected at most {MAX_CHUNKS} chunks")
            self.chunks.append(self._chunk(at, size))
        elif op == Op.ATTACHMENT:
            self._attachment(at, size)
        elif op in (Op.HEADER, Op.SCHEMA, Op.CHANNEL, Op.METADATA):
            self._descriptions += size
            self._described += 1
            if self._descriptions > MAX_DESCRIPTIONS:
                raise self.error(
                    f"expected at most {MAX_DESCRIPTIONS} bytes of schemas, channels and metadata"
                )

            if self._described > MAX_DESCRIBED:
                raise self.error(
                    f"expected at most {MAX_DESCRIBED} schemas, channels and records of metadata"
                )

            self._describe(op, _Fields(memoryview(self._read(at + RECORD.size, size))))
        elif op == Op.FOOTER:
            rest = self._read(behind, len(MAGIC) + 1)
            self.is_complete = rest == MAGIC
            if len(rest) < len(MAGIC):
                raise _CutShort("it is cut short")
            if not self.is_complete:
                raise _Damage("behind the end there is something else")
            return None
        elif op == Op.MESSAGE_INDEX:
            data = _Fields(
                memoryview(
                    self._read(at + RECORD.size, min(size, _U16.size + _U32.size))
                )
            )
            data.number(_U16)
            if data.number(_U32) + _U16.size + _U32.size != size:
                raise _Damage("the lengths in an index contradict each other")
        elif (
            op not in _UNCHECKED
            or size > MAX_INDEX
            or self._next_chunk(at + RECORD.size, behind) is not None
        ):
            raise _Damage(f"no record {op:#04x} of {size} bytes is expected there")
        elif op == Op.MESSAGE:
            self.note(f"a message at byte {at} is in no chunk")

        return behind

    def _describe(self, op: int, data: _Fields) -> None:
        if op == Op.HEADER:
            self.profile, self.library = data.text(), data.text()
            data.end()
        elif op == Op.SCHEMA:
            number = data.number(_U16)
            schema = Schema(
                number, data.text(), data.text(), bytes(data.take(data.number(_U32)))
            )
            data.end()
            self._schemas[number] = schema
        elif op == Op.CHANNEL:
            number, kind = data.number(_U16), data.number(_U16)
            topic, encoding, metadata = data.text(), data.text(), data.map()
            data.end()
            schema_of = self._schemas.get(kind)
            if schema_of is None:
                raise _Damage(f"a channel of the schema {kind}, which is not there")
            self.channels[number] = Channel(
                number, topic, encoding, schema_of, metadata
            )
        else:
            name = data.text()
            self.metadata[name] = data.map()
            data.end()

    def _chunk(self, at: int, size: int) -> ChunkPlace:
        """A chunk, if what is in its head fits together."""
        data = _Fields(
            memoryview(self._read(at + RECORD.size, min(size, _CHUNK_HEAD.size + 64)))
        )
        begin, end, raw, checksum = _CHUNK_HEAD.unpack(data.take(_CHUNK_HEAD.size))
        length = data.number(_U32)
        if length > 32:
            raise _Damage("the name of its compression is too long")
        compression = bytes(data.take(length)).decode("ascii", "replace")
        packed = data.number(_U64)
        head = _CHUNK_HEAD.size + _U32.size + length + _U64.size
        if head + packed != size:
            raise _Damage("the lengths in a chunk contradict each other")
        place = at + RECORD.size + head
        return ChunkPlace(
            at,
            RECORD.size + size,
            begin,
            end,
            raw,
            checksum,
            place,
            packed,
            compression,
        )

    def _attachment(self, at: int, size: int) -> None:
        head = memoryview(self._read(at + RECORD.size, min(size, 2**16)))
        data = _Fields(head)
        data.take(16)
        name, _ = data.text(), data.text()
        length = data.number(_U64)
        if len(head) - data.left + length + _U32.size != size:
            raise _Damage("the lengths in an attachment contradict each other")
        if len(self.attachments) >= MAX_ATTACHMENTS:
            raise self.error(f"expected at most {MAX_ATTACHMENTS} attachments")
        self.attachments.append(AttachmentPlace(at, RECORD.size + size, name))

    def _next_chunk(self, at: int, end: int | None = None) -> int | None:
        """Where the next chunk is whose lengths fit together, from a byte on, and
        before another; None: there is none.
        """
        overlap = _CHUNK_BEGIN + 8
        end = self._size if end is None else end
        while at < end:
            block = self._read(at, min(_BLOCK, end - at) + overlap)
            for mark in _CHUNK_MARK.finditer(block):
                begin = at + mark.start() - _CHUNK_BEGIN
                if (
                    mark.start() >= _CHUNK_BEGIN
                    and block[mark.start() - _CHUNK_BEGIN] == Op.CHUNK
                ):
                    try:
                        self._chunk(begin, self._head(begin)[1])
                    except _Damage:
                        self._false += 1
                        if self._false > MAX_FALSE:
                            raise self.error(
                                f"expected at most {MAX_FALSE} false beginnings "
                                "of chunks in damaged places"
                            ) from None

                        continue

                    return begin

            at += _BLOCK

        return None

    def _from_summary(self) -> None:
        """Channels that are said again at the end, if that is there, for chunks whose
        channels are lost.
        """
        end = self._size - len(MAGIC) - 20
        if end < 0 or self._read(self._size - len(MAGIC), len(MAGIC)) != MAGIC:
            return
        start = _U64.unpack(self._read(end, 8))[0]
        if not 0 < start < end:
            return
        at: int | None = start
        try:
            while at is not None and at < end:
                op, size = self._head(at)
                if (
                    op in (Op.SCHEMA, Op.CHANNEL)
                    and size <= MAX_DESCRIPTIONS - self._descriptions
                ):
                    self._descriptions += size
                    self._describe(
                        op, _Fields(memoryview(self._read(at + RECORD.size, size)))
                    )

                at += RECORD.size + size
        except _Damage:
            return

    # -- what is in them

    def attachment(self, place: AttachmentPlace) -> Attachment:
        """An attachment. RecordingError: it is too large, or its checksum is wrong."""
        if place.size > self._budget.unpacked:
            raise self.error(
                f'attachment "{shown(place.name)}": expected at most {self._budget.unpacked} bytes, found {place.size} '
                "(budget.unpacked raises that)"
            )

        data = memoryview(self._read(place.at + RECORD.size, place.size - RECORD.size))
        if (
            len(data) < _U32.size
            or zlib.crc32(data[: -_U32.size]) != _U32.unpack(data[-_U32.size :])[0]
        ):
            raise self.error(
                f'attachment "{shown(place.name)}": it is damaged: its checksum is another one'
            )

        fields = _Fields(data[: -_U32.size])
        time = fields.number(_U64)
        fields.take(8)
        return Attachment(
            fields.text(), fields.text(), bytes(fields.take(fields.number(_U64))), time
        )

    def _meter(self) -> Meter:
        """Counts what is read of the file in one go."""
        return Meter(self._budget, self.path, RecordingError)

    def _unpack(self, chunk: ChunkPlace, meter: Meter) -> bytes:
        """The records in a chunk. RecordingError: it is damaged, too large, or packed
        in an unknown way.
        """
        where = f"chunk at byte {chunk.at}"
        if chunk.raw > self._budget.unpacked:
            raise self.error(
                f"{where}: expected at most {self._budget.unpacked} bytes, found "
                f"{chunk.raw} (budget.unpacked raises that)"
            )

        meter.add("recorded", chunk.raw)
        packed = self._read(chunk.packed_at, chunk.packed)
        if chunk.compression == ZSTD:
            data = self._decompress(packed, chunk.raw, where)
        elif chunk.compression:
            raise self.error(
                f'{where}: no compression "{shown(chunk.compression)}" is known here'
            )
        else:
            data = packed

        if len(data) != chunk.raw or (
            chunk.checksum and zlib.crc32(data) != chunk.checksum
        ):
            raise self.error(f"{where}: it is damaged: its checksum is another one")

        return data

    def _decompress(self, packed: bytes, raw: int, where: str) -> bytes:
        import zstandard

        if self._decompressor is None:
            self._decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        try:
            # a frame may announce more than the chunk: the library would allocate that
            # at once
            if zstandard.frame_content_size(packed) not in (-1, raw):
                raise self.error(
                    f"{where}: it is packed from another number of bytes than it says"
                )

            found: bytes = self._decompressor.decompress(packed, max_output_size=raw)
        except (zstandard.ZstdError, MemoryError) as error:
            raise self.error(f"{where}: it is damaged: {error}") from None

        return found

    def messages(
        self,
        topics: Collection[str] | None = None,
        begin: int = 0,
        end: int = 2**64 - 1,
        first: int = 0,
    ) -> Iterator[Message]:
        """Messages in the order of the file. Chunks that are damaged are passed over,
        and noted in `problems`.

        Parameters
        ----------
        topics : collection of str, optional
            Only of these.
        begin, end : int
            Only of these times, ns, inclusive.
        first : int
            Begin with this chunk.

        Raises
        ------
        BudgetError
            There are more records, or more bytes of them, than the budget allows.
        """
        meter = self._meter()
        for chunk in self.chunks[first:]:
            if chunk.end >= begin and chunk.begin <= end:
                yield from self._sound(chunk, topics, begin, end, meter)

    def by_chunk(
        self, topics: Collection[str]
    ) -> Iterator[tuple[ChunkPlace, Iterator[Message]]]:
        """The messages of these topics by chunks, in the order of the file; damaged
        chunks as in `messages`.
        """
        meter = self._meter()
        for chunk in self.chunks:
            yield chunk, self._sound(chunk, topics, 0, 2**64 - 1, meter)

    def _sound(
        self,
        chunk: ChunkPlace,
        topics: Collection[str] | None,
        begin: int,
        end: int,
        meter: Meter,
    ) -> Iterator[Message]:
        """The messages of a chunk; what is damaged is passed over and noted."""
        try:
            yield from self._messages(chunk, topics, begin, end, meter)
        except BudgetError:
            raise
        except (RecordingError, _Damage) as error:
            reason = (
                error.reason
                if isinstance(error, RecordingError)
                else f"chunk at byte {chunk.at}: {error}"
            )
            self.note(reason)

    def _messages(
        self,
        chunk: ChunkPlace,
        topics: Collection[str] | None,
        begin: int,
        end: int,
        meter: Meter,
    ) -> Iterator[Message]:
        data = self._unpack(chunk, meter)
        at, count, wanted = 0, 0, dict[int, Channel | None]()
        while at < len(data):
            count += 1
            if count == RECORDS_TOGETHER:
                meter.add("records", count)
                count = 0

            if at + RECORD.size > len(data):
                raise _Damage("a record in it is cut short")
            op, size = RECORD.unpack_from(data, at)
            at += RECORD.size
            if size > len(data) - at:
                raise _Damage("a record in it is cut short")
            if op == Op.MESSAGE:
                if size < MESSAGE.size:
                    raise _Damage("a message in it is cut short")
                number, sequence, time, _ = MESSAGE.unpack_from(data, at)
                if number not in wanted:
                    wanted[number] = self._channel(number, topics)
                channel = wanted[number]
                if channel is not None and begin <= time <= end:
                    yield Message(
                        channel, time, sequence, data[at + MESSAGE.size : at + size]
                    )
            elif op in (Op.SCHEMA, Op.CHANNEL) and self._is_news(op, data, at, size):
                self._descriptions += size
                self._described += 1
                self._describe(op, _Fields(memoryview(data)[at : at + size]))

            at += size

        meter.add("records", count)

    def _is_news(self, op: int, data: bytes, at: int, size: int) -> bool:
        """Whether a description in a chunk is to be read: many files have the same ones
        in each chunk.
        """
        if (
            size < _U16.size
            or size > MAX_DESCRIPTIONS - self._descriptions
            or self._described >= MAX_DESCRIBED
        ):
            return False

        return _U16.unpack_from(data, at)[0] not in (
            self._schemas if op == Op.SCHEMA else self.channels
        )

    def _channel(self, number: int, topics: Collection[str] | None) -> Channel | None:
        channel = self.channels.get(number)
        if channel is None:
            self.note(
                f"messages of the channel {number}, which is not described, are passed over"
            )
            return None

        return channel if topics is None or channel.topic in topics else None

    # -- the whole file

    def verify(self) -> None:
        """Compare all checksums: a file that passes is as it was written, to the last
        byte.

        Raises
        ------
        RecordingError
            A checksum is another one, something was passed over, or the file does not
            end as it should.
        """
        if self.problems:
            raise self.error(self.problems[0])
        try:
            self._verify()
        except _Damage:
            raise self.error("its end is damaged") from None

    def _verify(self) -> None:
        end = self._size - len(MAGIC) - 20 - RECORD.size
        op, size = self._head(end) if end > 0 else (0, 0)
        start, _, checksum = struct.unpack("<QQI", self._read(end + RECORD.size, 20))
        data_end = start - RECORD.size - _U32.size
        if (
            op != Op.FOOTER
            or size != 20
            or not 0 < data_end < end
            or self._head(data_end) != (Op.DATA_END, _U32.size)
        ):
            raise self.error("its end is damaged")

        wanted = _U32.unpack(self._read(data_end + RECORD.size, _U32.size))[0]
        if self._checksum(0, data_end) != wanted:
            raise self.error(
                f"a byte before byte {data_end} is another one than was written: "
                "the checksum is wrong"
            )

        if self._checksum(start, end + RECORD.size + 16) != checksum:
            raise self.error(
                f"a byte behind byte {start} is another one than was written: the checksum is wrong"
            )

    def _checksum(self, at: int, end: int) -> int:
        checksum = 0
        while at < end:
            block = self._read(at, min(_BLOCK, end - at))
            if not block:
                raise self.error("it became shorter while it was read")
            checksum, at = zlib.crc32(block, checksum), at + len(block)

        return checksum


__all__ = ["AttachmentPlace", "ChunkPlace", "Message", "Reader"]
