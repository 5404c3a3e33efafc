"""Reads MCAP files, also those that end early or are damaged: what can be read is read, and what cannot is said. Files come from anybody.

A file is read from its beginning to its end, chunk by chunk; its index is not needed. Where a record is not as it should be, reading goes
on at the next chunk that is whole.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final, NamedTuple

from botyard.errors import RecordingError
from botyard.names import shown
from botyard.recording.mcap import MAGIC, MESSAGE, RECORD, ZSTD, Attachment, Channel, Op, Schema

MAX_CHUNK_BYTES: Final = 256 << 20
"""Bytes of a chunk, compressed or not."""
MAX_RECORD_BYTES: Final = 256 << 20
"""Bytes of another record."""
MAX_CHANNELS: Final = 65_535
MAX_NAMED_BYTES: Final = 64 << 20
"""Bytes of all schemas and channels together."""
MAX_WASTED: Final = 4
"""So many times the size of a file, and `MAX_CHUNK_BYTES`, may be read in vain in looking for what is whole behind a damage."""
MAX_PROBLEMS: Final = 100
"""Problems that are told; of others only the number is known."""
_CHUNK: Final = struct.Struct("<QQQI")
_SEARCHED: Final = 1 << 20
"""Bytes that are searched at a time."""
_MARK: Final = struct.pack("<I", len(ZSTD)) + ZSTD.encode()
_MARK_AT: Final = RECORD.size + _CHUNK.size
"""Where `_MARK` is in a chunk."""
_FOOTER: Final = RECORD.size + 20 + len(MAGIC)


class Message(NamedTuple):
    """A message; times in ns."""

    channel: Channel
    sequence: int
    time: int
    published: int
    data: bytes


class Metadata(NamedTuple):
    """What is said of a recording, under a name."""

    name: str
    values: Mapping[str, str]


class _Damage(Exception):
    """A record is not as it should be."""


class _Fields:
    """Reads the fields of a record, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        """The next bytes."""
        end = self._at + count
        if end > len(self._data):
            raise _Damage("a record ends in a field")
        found = self._data[self._at : end]
        self._at = end
        return found

    def number(self, form: str) -> int:
        """The next number."""
        one = struct.Struct(f"<{form}")
        value: int = one.unpack(self.take(one.size))[0]
        return value

    def block(self, form: str = "I") -> bytes:
        """The next bytes that have their length in front."""
        return self.take(self.number(form))

    def text(self) -> str:
        """The next text."""
        return self.block().decode("utf-8", "replace")

    def map(self) -> dict[str, str]:
        """The next mapping."""
        inner, found = _Fields(self.block()), {}
        while inner.rest:
            key = inner.text()
            found[key] = inner.text()
        return found

    @property
    def rest(self) -> bytes:
        """What is left."""
        return self._data[self._at :]


class Reader:
    """Reads a file.

    Parameters
    ----------
    file : BinaryIO
        The file, which can seek.

    Raises
    ------
    RecordingError
        It does not begin as an MCAP file.
    OSError
        It cannot be read.

    Attributes
    ----------
    library : str
        What wrote it.
    channels : dict of int to Channel
        Those that were found so far.
    problems : list of str
        What could not be read so far; empty: all.
    is_complete : bool
        Whether it was ended as it should be; known after the last record.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, 2)
        file.seek(0)
        if file.read(len(MAGIC)) != MAGIC:
            raise RecordingError(
                f"{shown(str(getattr(file, 'name', 'file')))}: expected an MCAP file, found something else"
            )
        self.library = ""
        self.channels: dict[int, Channel] = {}
        self._schemas: dict[int, Schema] = {}
        self._named = 0
        self.problems: list[str] = []
        self.damages = 0
        """Number of problems."""
        self.is_complete = False
        self._wasted = 0

    def __iter__(self) -> Iterator[Message | Attachment | Metadata]:
        """All messages, attachments and metadata, in the order of the file."""
        self._read_summary()
        at: int | None = len(MAGIC)
        while at is not None and at < self._size:
            try:
                op, body = self._record(at)
                if op == Op.DATA_END:
                    self.is_complete = self._ends_well()
                    if not self.is_complete:
                        self._problem(at, "its end is missing or damaged")
                    return
                yield from self._contents(op, body)
                at += RECORD.size + len(body)
            except _Damage as damage:
                self._problem(at, str(damage))
                self._wasted += self._file.tell() - at
                if self._wasted > MAX_WASTED * self._size + MAX_CHUNK_BYTES:
                    return
                at = self._next_chunk(at + 1)
        if not self.damages:
            self._problem(self._size, "it ends early")

    def _problem(self, at: int, text: str) -> None:
        self.damages += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(f"byte {at}: {text}")

    def _record(self, at: int) -> tuple[int, bytes]:
        """What a record is, and its contents."""
        self._file.seek(at)
        head = self._file.read(RECORD.size)
        if len(head) < RECORD.size:
            raise _Damage("it ends in a record")
        op, size = RECORD.unpack(head)
        if size > self._size - at - RECORD.size:
            raise _Damage("it ends in a record, or the length of one is wrong")
        if size > (MAX_CHUNK_BYTES if op == Op.CHUNK else MAX_RECORD_BYTES):
            raise _Damage(f"a record of {size} bytes")
        if not Op.HEADER <= op <= 0x7F:
            raise _Damage(f"no record begins with {op}")
        body = self._file.read(size)
        if len(body) < size:
            raise _Damage("it ends in a record")
        return op, body

    def _contents(self, op: int, body: bytes) -> Iterator[Message | Attachment | Metadata]:
        fields = _Fields(body)
        if op == Op.HEADER:
            fields.text()
            self.library = fields.text()
        elif op == Op.CHUNK:
            yield from self._chunk(fields)
        elif op == Op.ATTACHMENT:
            yield _attachment(fields, body)
        elif op == Op.METADATA:
            yield Metadata(fields.text(), fields.map())
        elif op == Op.MESSAGE:
            yield self._message(body)
        elif op in (Op.SCHEMA, Op.CHANNEL):
            self._learn(op, fields)

    def _learn(self, op: int, fields: _Fields) -> None:
        """A schema or a channel."""
        self._named += len(fields.rest)
        if len(self.channels) >= MAX_CHANNELS or self._named > MAX_NAMED_BYTES:
            raise _Damage("more channels and schemas than are read")
        number = fields.number("H")
        if op == Op.SCHEMA:
            self._schemas[number] = Schema(number, fields.text(), fields.text(), fields.block())
            return
        schema = self._schemas.get(fields.number("H"), _NO_SCHEMA)
        self.channels[number] = Channel(number, fields.text(), fields.text(), schema, fields.map())

    def _message(self, body: bytes) -> Message:
        if len(body) < MESSAGE.size:
            raise _Damage("a message that is too short")
        number, sequence, time, published = MESSAGE.unpack_from(body)
        channel = self.channels.get(number)
        if channel is None:
            raise _Damage(f"a message of a channel that was not told of, {number}")
        return Message(channel, sequence, time, published, body[MESSAGE.size :])

    def _chunk(self, fields: _Fields) -> Iterator[Message]:
        """The messages of a chunk, if it is whole."""
        _, _, size, checksum = _CHUNK.unpack(fields.take(_CHUNK.size))
        data = _unpacked(fields.text(), fields.block("Q"), size)
        if checksum and zlib.crc32(data) != checksum:
            raise _Damage("a chunk is damaged")
        found, at = list[Message](), 0
        while at < len(data):
            if at + RECORD.size > len(data):
                raise _Damage("a chunk ends in a record")
            op, count = RECORD.unpack_from(data, at)
            at += RECORD.size
            if count > len(data) - at:
                raise _Damage("a chunk ends in a record")
            body = data[at : at + count]
            at += count
            if op == Op.MESSAGE:
                try:
                    found.append(self._message(body))
                except _Damage as damage:  # others of the chunk are well
                    self._problem(self._file.tell(), str(damage))
            elif op in (Op.SCHEMA, Op.CHANNEL):
                self._learn(op, _Fields(body))
        yield from found

    # -- damages

    def _read_summary(self) -> None:
        """Channels of the summary, if there is one: those in front of the messages may be damaged."""
        try:
            start, end = self._summary()
            at = start
            while at < end:
                op, body = self._record(at)
                at += RECORD.size + len(body)
                if op in (Op.SCHEMA, Op.CHANNEL):
                    self._learn(op, _Fields(body))
        except _Damage:
            return
        finally:
            self._named = 0

    def _summary(self) -> tuple[int, int]:
        """Where the summary begins and ends."""
        at = self._size - _FOOTER
        if at < len(MAGIC):
            raise _Damage("it has no footer")
        op, body = self._record(at)
        if op != Op.FOOTER or len(body) != 20 or self._file.read(len(MAGIC)) != MAGIC:
            raise _Damage("it has no footer")
        start: int = struct.unpack_from("<Q", body)[0]
        return (start, at) if len(MAGIC) <= start <= at else (at, at)

    def _ends_well(self) -> bool:
        try:
            self._summary()
        except _Damage:
            return False
        return True

    def _next_chunk(self, begin: int) -> int | None:
        """Where the next chunk begins that may be whole; None: there is none."""
        at = begin
        while at < self._size:
            self._file.seek(at)
            data = self._file.read(_SEARCHED + _MARK_AT + len(_MARK))
            place = data.find(_MARK, _MARK_AT)
            while place >= 0:
                op, size = RECORD.unpack_from(data, place - _MARK_AT)
                found = at + place - _MARK_AT
                if op == Op.CHUNK and size <= min(self._size - found - RECORD.size, MAX_CHUNK_BYTES):
                    return found
                place = data.find(_MARK, place + 1)
            at += _SEARCHED
        return None


_NO_SCHEMA: Final = Schema(0, "", "", b"")


def _attachment(fields: _Fields, body: bytes) -> Attachment:
    time = fields.number("Q")
    fields.number("Q")
    name, media_type, data = fields.text(), fields.text(), fields.block("Q")
    checksum = fields.number("I")
    if checksum and zlib.crc32(body[:-4]) != checksum:
        raise _Damage("an attachment is damaged")
    return Attachment(name, media_type, data, time)


def _unpacked(compression: str, data: bytes, size: int) -> bytes:
    """The contents of a chunk; not more than it says, whatever the compressed data would give."""
    if size > MAX_CHUNK_BYTES:
        raise _Damage(f"a chunk of {size} bytes")
    if not compression:
        return data
    if compression != ZSTD:
        raise _Damage(f"a chunk with the compression {shown(compression)}; zstd alone is read")
    import zstandard

    try:
        if zstandard.frame_content_size(data) not in (-1, size):
            raise _Damage("a chunk has another size than it says")
        found = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise _Damage(f"a chunk is damaged: {error}") from None
    if len(found) != size:
        raise _Damage("a chunk has another size than it says")
    return found


__all__ = ["Message", "Metadata", "Reader"]
