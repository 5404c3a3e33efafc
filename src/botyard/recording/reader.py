"""Reader of MCAP files that can be cut short, damaged, or crafted to be expensive.

`botyard.recording.recordindex` finds the records. Damaged chunks are skipped, and
`Reader.problems` names them. Each complete chunk has a checksum.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

from botyard.errors import BudgetError, RecordingError
from botyard.formats.budget import Meter
from botyard.names import shown
from botyard.recording.mcap import (
    MAGIC,
    MESSAGE,
    RECORD,
    ZSTD,
    Attachment,
    Channel,
    Op,
)
from botyard.recording.recordindex import (
    BLOCK,
    U32,
    U64,
    AttachmentPlace,
    ChunkPlace,
    Damage,
    RecordFields,
    RecordIndex,
)

RECORDS_TOGETHER: Final = 10_000
"""Number of records in a chunk that are counted in one call."""
MAX_WINDOW: Final = 2**27
"""Largest window of zstd, bytes: it allocates this memory for each chunk."""


class Message(NamedTuple):
    """Message: its channel, time (ns), sequence number and bytes."""

    channel: Channel
    time: int
    sequence: int
    data: bytes


class Reader(RecordIndex):
    """File that is being read; a context manager that closes it.

    Parameters and attributes are explained at `RecordIndex`.
    """

    _decompressor: Any = None

    def attachment(self, place: AttachmentPlace) -> Attachment:
        """Read an attachment.

        Parameters
        ----------
        place : AttachmentPlace
            Place of the attachment, from `attachments`.

        Raises
        ------
        RecordingError
            The attachment is too large, or its checksum is wrong.
        """
        if place.size > self._budget.unpacked:
            raise self.error(
                f'attachment "{shown(place.name)}": expected at most {self._budget.unpacked} bytes, found {place.size} '
                "(budget.unpacked raises this limit)"
            )

        data = memoryview(self._read(place.at + RECORD.size, place.size - RECORD.size))
        if (
            len(data) < U32.size
            or zlib.crc32(data[: -U32.size]) != U32.unpack(data[-U32.size :])[0]
        ):
            raise self.error(
                f'attachment "{shown(place.name)}": it is damaged: its checksum is wrong'
            )

        fields = RecordFields(data[: -U32.size])
        time = fields.number(U64)
        fields.take(8)
        return Attachment(
            fields.text(), fields.text(), bytes(fields.take(fields.number(U64))), time
        )

    def _unpack(self, chunk: ChunkPlace, meter: Meter) -> bytes:
        """Return the records of a chunk.

        Raises
        ------
        RecordingError
            The chunk is too large, damaged, or has an unknown compression.
        """
        where = f"chunk at byte {chunk.at}"
        if chunk.raw > self._budget.unpacked:
            raise self.error(
                f"{where}: expected at most {self._budget.unpacked} bytes, found "
                f"{chunk.raw} (budget.unpacked raises this limit)"
            )

        # Count the announced size before unpacking: a small chunk can announce much.
        meter.add("recorded", chunk.raw)
        packed = self._read(chunk.packed_at, chunk.packed)
        if chunk.compression == ZSTD:
            data = self._decompress(packed, chunk.raw, where)
        elif chunk.compression:
            raise self.error(
                f'{where}: expected the compression zstd or none, found "{shown(chunk.compression)}"'
            )
        else:
            data = packed

        if len(data) != chunk.raw or (
            chunk.checksum and zlib.crc32(data) != chunk.checksum
        ):
            raise self.error(f"{where}: it is damaged: its checksum is wrong")

        return data

    def _decompress(self, packed: bytes, raw: int, where: str) -> bytes:
        """Return the decompressed records of a chunk.

        Parameters
        ----------
        packed : bytes
            One frame of zstd.
        raw : int
            Number of bytes that the head of the chunk announces.
        where : str
            Place of the chunk, for errors.

        Raises
        ------
        RecordingError
            The frame is damaged, or holds another number of bytes.
        """
        import zstandard

        if self._decompressor is None:
            self._decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        try:
            # A frame can announce more bytes than the chunk, and the library would
            # allocate them at once.
            if zstandard.frame_content_size(packed) not in (-1, raw):
                raise self.error(
                    f"{where}: expected {raw} bytes in its frame, found another number"
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
        """Yield messages in the order of the file.

        Damaged chunks are skipped, and noted in `problems`.

        Parameters
        ----------
        topics : collection of str, optional
            Topics to read; by default all.
        begin, end : int
            Range of times to read, ns, inclusive.
        first : int
            Index of the first chunk to read.

        Raises
        ------
        BudgetError
            The file has more records, or more bytes of them, than the budget allows.
        """
        meter = self._meter()
        for chunk in self.chunks[first:]:
            # The head of a chunk has its time range, so chunks outside stay compressed.
            if chunk.end >= begin and chunk.begin <= end:
                yield from self._sound(chunk, topics, begin, end, meter)

    def by_chunk(
        self, topics: Collection[str]
    ) -> Iterator[tuple[ChunkPlace, Iterator[Message]]]:
        """Yield the messages of topics by chunk, in the order of the file.

        Damaged chunks are skipped as in `messages`.
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
        """Yield the messages of a chunk; damage is noted and skipped."""
        try:
            yield from self._messages(chunk, topics, begin, end, meter)
        except BudgetError:
            raise
        except (RecordingError, Damage) as error:
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
            # Count in groups, because the meter is slow compared with this loop.
            if count == RECORDS_TOGETHER:
                meter.add("records", count)
                count = 0

            if at + RECORD.size > len(data):
                raise Damage("a record in it is cut short")
            op, size = RECORD.unpack_from(data, at)
            at += RECORD.size
            if size > len(data) - at:
                raise Damage("a record in it is cut short")
            if op == Op.MESSAGE:
                if size < MESSAGE.size:
                    raise Damage("a message in it is cut short")
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
                self._describe(op, RecordFields(memoryview(data)[at : at + size]))

            at += size

        meter.add("records", count)

    def _channel(self, number: int, topics: Collection[str] | None) -> Channel | None:
        channel = self.channels.get(number)
        if channel is None:
            self.note(
                f"messages of the channel {number}, which the file does not describe, are skipped"
            )
            return None

        return channel if topics is None or channel.topic in topics else None

    # -- the whole file

    def verify(self) -> None:
        """Compare all checksums: a file that passes is unchanged to the last byte.

        Raises
        ------
        RecordingError
            A checksum is wrong, a part was skipped, or the file has no valid end.
        """
        if self.problems:
            raise self.error(self.problems[0])
        try:
            self._verify()
        except Damage:
            raise self.error("its end is damaged") from None

    def _verify(self) -> None:
        end = self._size - len(MAGIC) - 20 - RECORD.size
        op, size = self._head(end) if end > 0 else (0, 0)
        start, _, checksum = struct.unpack("<QQI", self._read(end + RECORD.size, 20))
        data_end = start - RECORD.size - U32.size
        if (
            op != Op.FOOTER
            or size != 20
            or not 0 < data_end < end
            or self._head(data_end) != (Op.DATA_END, U32.size)
        ):
            raise self.error("its end is damaged")

        wanted = U32.unpack(self._read(data_end + RECORD.size, U32.size))[0]
        if self._checksum(0, data_end) != wanted:
            raise self.error(
                f"the data before byte {data_end} changed after writing: their checksum is wrong"
            )

        if self._checksum(start, end + RECORD.size + 16) != checksum:
            raise self.error(
                f"the data after byte {start} changed after writing: their checksum is wrong"
            )

    def _checksum(self, at: int, end: int) -> int:
        checksum = 0
        while at < end:
            block = self._read(at, min(BLOCK, end - at))
            if not block:
                raise self.error("the file became shorter during reading")
            checksum, at = zlib.crc32(block, checksum), at + len(block)

        return checksum


__all__ = ["Message", "Reader"]
