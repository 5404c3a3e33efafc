"""Index of the records of an MCAP file that can be cut short, damaged, or crafted.

`botyard.recording.mcap` has the layout. A file is read from its start, record by
record, so that a file without its end can be read also. After a damaged record, reading
continues at the next valid chunk; `RecordIndex.problems` names the skipped parts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from os import PathLike
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Self

from botyard.errors import RecordingError
from botyard.formats.budget import Budget, Meter
from botyard.recording.mcap import (
    MAGIC,
    RECORD,
    ZSTD,
    Channel,
    Op,
    Schema,
)

MAX_CHUNKS: Final = 2_000_000
"""Largest number of chunks of a file, as many as a recording of four weeks has."""
MAX_ATTACHMENTS: Final = 100_000
MAX_DESCRIPTIONS: Final = 64 * 2**20
"""Largest size of all schemas, channels and metadata in memory together, bytes."""
MAX_DESCRIBED: Final = 262_144
"""Largest number of records of headers, schemas, channels and metadata.

Each of 65,535 schemas and 65,535 channels may occur twice.
"""
MAX_INDEX: Final = 64 * 2**20
"""Longest record other than chunks, attachments, schemas, channels, metadata, bytes."""
MAX_FALSE: Final = 100_000
"""Largest number of places that look like the start of a chunk but hold none.

It limits the time of the search for valid chunks after damage.
"""
MAX_PROBLEMS: Final = 100
"""Largest number of problems to keep; further ones are only counted."""
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
"""Records whose contents do not confirm their length, and private records.

If such a record contains a chunk, its length is wrong.
"""
BLOCK: Final = 2**20
_CHUNK_HEAD: Final = struct.Struct("<QQQI")
_CHUNK_BEGIN: Final = RECORD.size + _CHUNK_HEAD.size
_CHUNK_MARK: Final = re.compile(re.escape(struct.pack("<I", len(ZSTD)) + ZSTD.encode()))
U16, U32, U64 = (struct.Struct(f"<{c}") for c in "HIQ")


class ChunkPlace(NamedTuple):
    """Position of a chunk.

    Attributes
    ----------
    at, size : int
        Offset and bytes of its record.
    begin, end : int
        Earliest and latest time of a message, ns.
    raw : int
        Bytes of its messages, uncompressed.
    checksum : int
        CRC-32 of these bytes; 0 if there is none.
    packed_at, packed : int
        Offset and number of the compressed bytes.
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
    """Position of an attachment: offset and length of its record, bytes, and its name."""

    at: int
    size: int
    name: str


class Damage(Exception):
    """Record that is not valid; reading can continue elsewhere."""


class CutShort(Damage):
    """Record that extends beyond the end of the file."""


class RecordFields:
    """Reads consecutive values of a record; raises Damage beyond its end."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def number(self, kind: struct.Struct) -> int:
        """Read a number.

        Parameters
        ----------
        kind : Struct
            Layout of one number.

        Raises
        ------
        Damage
            The record ends before the end of the number.
        """
        return int(kind.unpack(self.take(kind.size))[0])

    def take(self, size: int) -> memoryview:
        """Read a number of bytes.

        Parameters
        ----------
        size : int
            Number of bytes.

        Returns
        -------
        memoryview
            View of the record, which is not copied.

        Raises
        ------
        Damage
            The record has fewer bytes left.
        """
        end = self._at + size
        if end > len(self._data):
            raise Damage("the record is shorter than its contents")
        found, self._at = self._data[self._at : end], end
        return found

    def text(self) -> str:
        """Read a string."""
        return bytes(self.take(self.number(U32))).decode("utf-8", "replace")

    def map(self) -> dict[str, str]:
        """Read a map of strings."""
        inner, found = RecordFields(self.take(self.number(U32))), dict[str, str]()
        while inner.left:
            key = inner.text()
            found[key] = inner.text()

        return found

    @property
    def left(self) -> int:
        """Number of remaining bytes."""
        return len(self._data) - self._at

    def end(self) -> None:
        """Check that no bytes remain."""
        if self.left:
            raise Damage(f"{self.left} bytes follow the contents of the record")


class RecordIndex:
    """Records of a file that is being read; a context manager that closes it.

    Parameters
    ----------
    path : path-like
        Path of the file.
    budget : Budget
        Limits: ``unpacked`` for one chunk or attachment, bytes; ``records`` and
        ``recorded`` for the whole file.

    Raises
    ------
    RecordingError
        The file cannot be opened, is not an MCAP file, or has too many chunks or
        descriptions.

    Attributes
    ----------
    library, profile : str
        Program that wrote the file, and MCAP profile of the file.
    metadata : mapping of str to mappings
        Metadata records by name.
    channels : mapping of int to Channel
        Channels by number.
    chunks : list of ChunkPlace
        All chunks, in the order of the file.
    attachments : list of AttachmentPlace
        All attachments.
    is_complete, is_cut : bool
        Whether it has a valid end; whether it was cut short, and is valid up to there.
    problems : list of str
        Parts that were skipped.
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
        try:
            self._file: BinaryIO = open(path, "rb")  # noqa: SIM115 - kept open
        except OSError as error:
            raise RecordingError(error.strerror or str(error), path) from None

        try:
            # The recorder can still be writing; bytes after this point are not read.
            self._size = self._file.seek(0, 2)
            if self._read(0, len(MAGIC)) != MAGIC:
                raise RecordingError(
                    "expected a recording (MCAP), found another file", path
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
        """Return an error about this file."""
        return RecordingError(reason, self.path)

    def note(self, problem: str) -> None:
        """Keep a problem; after `MAX_PROBLEMS` of them the others are only counted.

        Parameters
        ----------
        problem : str
            Line for the user, without the name of the file.
        """
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
            except Damage as damage:
                assert at is not None
                # No chunk follows the cut, so the file simply ends here.
                found = self._next_chunk(at + 1)
                if found is None and isinstance(damage, CutShort):
                    break
                where = f"bytes {at} to {found or self._size} are skipped"
                self.note(f"a record at byte {at} is not valid: {damage}; {where}")
                at = found

        if not self.is_complete:
            # A file that ends with the magic bytes is damaged inside, not cut short.
            has_end = (
                self._size > len(MAGIC)
                and self._read(self._size - len(MAGIC), len(MAGIC)) == MAGIC
            )
            self.is_cut = not has_end and not self.problems
            self.note(
                "the file was cut short, or is being written: its last whole record "
                f"ends at byte {at or self._size}"
            )
            self._from_summary()

    def _head(self, at: int) -> tuple[int, int]:
        """Return the type of a record, and the length of its contents."""
        head = self._read(at, RECORD.size)
        if len(head) < RECORD.size:
            raise CutShort("the record is cut short")
        op, size = RECORD.unpack(head)
        if size > self._size - at - RECORD.size:
            raise CutShort("the record is cut short, or its length is wrong")
        return op, size

    def _record(self, at: int) -> int | None:
        """Process a record.

        Parameters
        ----------
        at : int
            Offset of the record, bytes.

        Returns
        -------
        int or None
            Offset of the next record; None at the end of the file.

        Raises
        ------
        Damage
            The record is not valid, or cut short.
        RecordingError
            The file has too many chunks, descriptions or attachments.
        """
        op, size = self._head(at)
        behind = at + RECORD.size + size
        if op == Op.CHUNK:
            if len(self.chunks) >= MAX_CHUNKS:
                raise self.error(f"expected at most {MAX_CHUNKS} chunks, found more")
            self.chunks.append(self._chunk(at, size))
        elif op == Op.ATTACHMENT:
            self._attachment(at, size)
        elif op in (Op.HEADER, Op.SCHEMA, Op.CHANNEL, Op.METADATA):
            self._descriptions += size
            self._described += 1
            if self._descriptions > MAX_DESCRIPTIONS:
                raise self.error(
                    f"expected at most {MAX_DESCRIPTIONS} bytes of schemas, channels and metadata, found more"
                )

            if self._described > MAX_DESCRIBED:
                raise self.error(
                    f"expected at most {MAX_DESCRIBED} schemas, channels and records of metadata, found more"
                )

            self._describe(
                op, RecordFields(memoryview(self._read(at + RECORD.size, size)))
            )
        elif op == Op.FOOTER:
            # Read one byte more than the magic, to notice data after the end.
            rest = self._read(behind, len(MAGIC) + 1)
            self.is_complete = rest == MAGIC
            if len(rest) < len(MAGIC):
                raise CutShort("the end of the file is cut short")
            if not self.is_complete:
                raise Damage("expected the end of the file, found more data")
            return None
        # A second length inside an index confirms the length of the record.
        elif op == Op.MESSAGE_INDEX:
            data = RecordFields(
                memoryview(self._read(at + RECORD.size, min(size, U16.size + U32.size)))
            )
            data.number(U16)
            if data.number(U32) + U16.size + U32.size != size:
                raise Damage("the lengths in an index are inconsistent")
        elif (
            op not in _UNCHECKED
            or size > MAX_INDEX
            or self._next_chunk(at + RECORD.size, behind) is not None
        ):
            raise Damage(f"expected another record, found {op:#04x} with {size} bytes")
        elif op == Op.MESSAGE:
            self.note(f"a message at byte {at} is outside of a chunk")

        return behind

    def _describe(self, op: int, data: RecordFields) -> None:
        if op == Op.HEADER:
            self.profile, self.library = data.text(), data.text()
            data.end()
        elif op == Op.SCHEMA:
            number = data.number(U16)
            schema = Schema(
                number, data.text(), data.text(), bytes(data.take(data.number(U32)))
            )
            data.end()
            self._schemas[number] = schema
        elif op == Op.CHANNEL:
            number, kind = data.number(U16), data.number(U16)
            topic, encoding, metadata = data.text(), data.text(), data.map()
            data.end()
            schema_of = self._schemas.get(kind)
            if schema_of is None:
                raise Damage(
                    f"a channel has the schema {kind}, which the file does not define"
                )

            self.channels[number] = Channel(
                number, topic, encoding, schema_of, metadata
            )
        else:
            name = data.text()
            self.metadata[name] = data.map()
            data.end()

    def _is_news(self, op: int, data: bytes, at: int, size: int) -> bool:
        """Return whether a schema or channel is new. Many files repeat such records."""
        if (
            size < U16.size
            or size > MAX_DESCRIPTIONS - self._descriptions
            or self._described >= MAX_DESCRIBED
        ):
            return False

        return U16.unpack_from(data, at)[0] not in (
            self._schemas if op == Op.SCHEMA else self.channels
        )

    def _chunk(self, at: int, size: int) -> ChunkPlace:
        """Read the record of a chunk, and check that its fields fit together."""
        data = RecordFields(
            memoryview(self._read(at + RECORD.size, min(size, _CHUNK_HEAD.size + 64)))
        )
        begin, end, raw, checksum = _CHUNK_HEAD.unpack(data.take(_CHUNK_HEAD.size))
        length = data.number(U32)
        # Names of compressions are short; a long one means that this is not a chunk.
        if length > 32:
            raise Damage(
                "expected a name of a compression of at most 32 bytes, found a "
                "longer one"
            )
        compression = bytes(data.take(length)).decode("ascii", "replace")
        packed = data.number(U64)
        head = _CHUNK_HEAD.size + U32.size + length + U64.size
        if head + packed != size:
            raise Damage("the lengths in a chunk are inconsistent")
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
        data = RecordFields(head)
        # Skip the log time and the creation time, 8 bytes each.
        data.take(16)
        name, _ = data.text(), data.text()
        length = data.number(U64)
        if len(head) - data.left + length + U32.size != size:
            raise Damage("the lengths in an attachment are inconsistent")
        if len(self.attachments) >= MAX_ATTACHMENTS:
            raise self.error(
                f"expected at most {MAX_ATTACHMENTS} attachments, found more"
            )
        self.attachments.append(AttachmentPlace(at, RECORD.size + size, name))

    def _next_chunk(self, at: int, end: int | None = None) -> int | None:
        """Return the offset of the next consistent chunk in a range.

        Parameters
        ----------
        at : int
            Offset from which to search, bytes.
        end : int, optional
            Offset at which the search ends. Default: the end of the file.

        Returns
        -------
        int or None
            None if there is no such chunk.
        """
        # Blocks overlap, because the head of a chunk can lie across their border.
        overlap = _CHUNK_BEGIN + 8
        end = self._size if end is None else end
        while at < end:
            block = self._read(at, min(BLOCK, end - at) + overlap)
            # Search for the name of the compression: no other part of the head of a
            # chunk is constant and long enough to be rare in data.
            for mark in _CHUNK_MARK.finditer(block):
                begin = at + mark.start() - _CHUNK_BEGIN
                if (
                    mark.start() >= _CHUNK_BEGIN
                    and block[mark.start() - _CHUNK_BEGIN] == Op.CHUNK
                ):
                    try:
                        self._chunk(begin, self._head(begin)[1])
                    except Damage:
                        self._false += 1
                        if self._false > MAX_FALSE:
                            raise self.error(
                                f"expected at most {MAX_FALSE} false starts of "
                                "chunks in damaged parts"
                            ) from None

                        continue

                    return begin

            at += BLOCK

        return None

    def _from_summary(self) -> None:
        """Read channels from the summary, for chunks whose channels are lost."""
        end = self._size - len(MAGIC) - 20
        if end < 0 or self._read(self._size - len(MAGIC), len(MAGIC)) != MAGIC:
            return
        start = U64.unpack(self._read(end, 8))[0]
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
                        op, RecordFields(memoryview(self._read(at + RECORD.size, size)))
                    )

                at += RECORD.size + size
        except Damage:
            return

    def _meter(self) -> Meter:
        """Return a meter that counts one pass through the file against the budget."""
        return Meter(self._budget, self.path, RecordingError)


__all__ = ["AttachmentPlace", "ChunkPlace", "RecordIndex"]
