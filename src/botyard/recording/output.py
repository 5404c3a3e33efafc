"""Targets of a recording: consecutive MCAP files, or a ring in memory.

Only the writer thread uses this module; the simulation thread calls nothing here.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from botyard.errors import KeptFileError
from botyard.processes.safefile import MARK, Hold, check_replaceable, open_own
from botyard.recording import frames, mcap
from botyard.recording.mcap import (
    Attachment,
    Channel,
    Chunk,
    ChunkBuilder,
    Schema,
    Summary,
)
from botyard.recording.own_channels import pack_bytes
from botyard.version import __version__

CHUNK_BYTES: Final = 1 << 20
"""Size at which a chunk is complete, bytes."""
CHUNK_S: Final = 0.6
"""Longest wall time from the first message of a chunk to its end, s.

A killed process loses at most this time.
"""
MAX_INDEX_BYTES: Final = 64 << 20
"""Size of the indexes in memory at which the next file starts, bytes."""
ZSTD_LEVEL: Final = 1
PROFILE: Final = "ros2"
LIBRARY: Final = f"botyard {__version__}. {MARK}."
"""Library name with the mark that the file may be replaced, see
`botyard.processes.safefile`.
"""
MAX_PARTS: Final = 100_000
STATES_PER_KEYFRAME: Final = 10
"""Number of states per keyframe.

Damage makes at most the states up to the next keyframe unreadable.
"""


@dataclass(frozen=True, slots=True)
class Start:
    """Initial data of a file, or of a segment of a ring.

    Attributes
    ----------
    time : int
        Simulated time, ns.
    state : bytes or None
        State of the world (`Simulation.save_state`); None if it cannot be saved.
    metadata : mapping of str to str
        Metadata of the run.
    attachments : sequence of Attachment
        The scene, models and so on.
    """

    time: int
    state: bytes | None
    metadata: Mapping[str, str]
    attachments: Sequence[Attachment]


class McapFile:
    """MCAP file that is being written. After an error it ends with its last whole record.

    Parameters
    ----------
    path : Path
        Path of the file.
    start : Start
        Its initial data.
    force : bool
        Replace a file that this program did not write.

    Raises
    ------
    KeptFileError
        The path is such a file.
    OSError
        The file cannot be written.

    Attributes
    ----------
    size : int
        Bytes so far.
    """

    def __init__(self, path: Path, start: Start, *, force: bool = False) -> None:
        check_replaceable(path, force=force)
        self.path = path
        self.size = 0
        self.start: int = start.time
        self._file: Any = open_own(path)
        self._summary = Summary()
        self._checksum = 0
        try:
            self._write(mcap.file_start(PROFILE, LIBRARY))
            at = self.size
            size = self._write(mcap.metadata("botyard", start.metadata))
            self._summary.metadata("botyard", at, size)
            for one in start.attachments:
                at = self.size
                self._summary.attachment(one, at, self._write(one.record))
        except BaseException:
            self._file.close()
            raise

    def _write(self, data: bytes) -> int:
        """Write all of the data, or nothing."""
        view = memoryview(data)
        try:
            while view:
                # A raw file can write a part only, for example on a full disk.
                view = view[self._file.raw.write(view) :]
        # A reader must never find half a record, for example after the disk was full.
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), self.size)
                os.lseek(self._file.fileno(), self.size, os.SEEK_SET)

            raise

        self.size += len(data)
        # The end of the data holds the checksum of all bytes before it.
        self._checksum = zlib.crc32(data, self._checksum)
        return len(data)

    @property
    def is_full(self) -> bool:
        """Whether the file's indexes are so large that the next file should start."""
        return self._summary.size > MAX_INDEX_BYTES

    def write(self, chunk: Chunk, channels: Mapping[int, Channel]) -> None:
        """Write a chunk, preceded by the channels that are new to the file.

        Parameters
        ----------
        chunk : Chunk
            Complete chunk.
        channels : mapping of int to Channel
            All channels of the recording by number.

        Raises
        ------
        OSError
            The chunk cannot be written; the file then ends with its last whole record.
        """
        new = [
            channels[number] for number in chunk.counts if not self._summary.has(number)
        ]
        if new:
            self._write(b"".join(map(self._summary.channel, new)))
        at = self.size
        self._write(chunk.data)
        self._summary.chunk(chunk, at)

    def close(self) -> None:
        """Write the summary, and close the file.

        Raises
        ------
        OSError
            The summary cannot be written; the file is closed all the same.
        """
        try:
            self._write(self._summary.end(self.size, self._checksum))
        finally:
            self._file.close()


@dataclass(slots=True)
class _Segment:
    """Segment of a ring: a state, and the data after it."""

    start: Start
    chunks: list[Chunk] = field(default_factory=list)
    size: int = 0


class Ring:
    """Recent minutes in memory, compressed.

    The ring consists of segments that each start with a state; old segments are
    dropped.

    Parameters
    ----------
    span : float
        Simulated time to keep, s. The ring also keeps the whole segment in which this time starts.
    max_bytes : int
        Largest memory; above it, segments are dropped earlier.
    """

    def __init__(self, span: float, max_bytes: int) -> None:
        self._span = round(span * 1e9)
        self._max_bytes = max_bytes
        self._segments: deque[_Segment] = deque()
        self.size = 0

    def begin(self, start: Start) -> None:
        """Start a segment with its initial data."""
        # Attachments such as maps can be larger than the messages, so they count.
        segment = _Segment(start, size=sum(len(a.data) for a in start.attachments))
        self._segments.append(segment)
        self.size += segment.size
        self._drop()

    def write(self, chunk: Chunk) -> None:
        """Add a chunk to the current segment, and drop old segments."""
        segment = self._segments[-1]
        segment.chunks.append(chunk)
        segment.size += len(chunk.data)
        self.size += len(chunk.data)
        self._drop()

    def _drop(self) -> None:
        segments = self._segments
        while len(segments) > 1:
            now = max(
                (chunk.end for chunk in segments[-1].chunks),
                default=segments[-1].start.time,
            )
            # After the restore of an earlier state, a segment starts at an earlier time. The data
            # before it are then kept until the ring exceeds its memory.
            if (
                self.size <= self._max_bytes
                and not 0 <= segments[1].start.time <= now - self._span
            ):
                return

            self.size -= segments.popleft().size

    def save(self, path: Path, channels: Mapping[int, Channel], *, force: bool) -> None:
        """Write all kept data to a file.

        Parameters
        ----------
        path : Path
            File to write.
        channels : mapping of int to Channel
            All channels of the recording by number.
        force : bool
            Whether to replace a file that this program did not write.

        Raises
        ------
        KeptFileError
            The path is such a file, and `force` is False.
        OSError
            The file cannot be written.
        """
        file = McapFile(path, self._segments[0].start, force=force)
        try:
            for segment in self._segments:
                for chunk in segment.chunks:
                    file.write(chunk, channels)
        finally:
            file.close()


class Output:
    """Channels, the current chunk, and its target file or ring.

    Parameters
    ----------
    path : Path or None
        The first file; None for a ring.
    ring : Ring or None
        Target in memory; None: the target is a file.
    force : bool
        Replace files that this program did not write.
    began : callable, optional
        Called with the path of each new file.

    Attributes
    ----------
    messages : int
        Number of messages so far.
    """

    def __init__(
        self,
        path: Path | None,
        ring: Ring | None,
        *,
        force: bool = False,
        began: Callable[[Path], None] = lambda _: None,
    ) -> None:
        # Most simulations record nothing, so load the library only here.
        import zstandard

        self._path, self._ring, self._force, self._began = path, ring, force, began
        # The lock (`Hold`) on the first file stays while further files or the ring are written: it
        # reserves the whole recording.
        self._held = [] if path is None else [Hold(path)]
        self._compressor: mcap.Compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
        self._builder = ChunkBuilder()
        self._since = 0.0
        self._file: McapFile | None = None
        self._parts = 0
        self._channels: dict[int, Channel] = {}
        self._ids: dict[str, int] = {}
        self._schemas: dict[str, Schema] = {}
        self._sequences: list[int] = [0]
        self._latched: dict[int, bytes] = {}
        self._state: bytes | None = None
        self._states = 0
        self.messages = 0

    # -- channels and messages

    def channel(
        self,
        topic: str,
        encoding: str,
        schema: str,
        define: Callable[[], tuple[str, bytes]],
        metadata: Mapping[str, str] = {},
    ) -> int:
        """Return the number of a channel; a new topic gets a new channel.

        Parameters
        ----------
        topic : str
            Name of the topic.
        encoding : str
            Encoding of its messages, for example ``cdr``.
        schema : str
            Name of its schema.
        define : callable
            Returns encoding and data of the schema; called for a new schema.
        metadata : mapping of str to str
            Metadata of a new channel.
        """
        found = self._ids.get(topic)
        if found is None:
            known = self._schemas.get(schema)
            if known is None:
                known = self._schemas[schema] = Schema(
                    len(self._schemas) + 1, schema, *define()
                )

            found = self._ids[topic] = len(self._ids) + 1
            self._channels[found] = Channel(found, topic, encoding, known, metadata)
            self._sequences.append(0)

        return found

    def message(self, channel: int, time_ns: int, data: bytes) -> None:
        """Write a message. A chunk that has become full is written to the file.

        Parameters
        ----------
        channel : int
            Number of its channel, from `channel`.
        time_ns : int
            Simulated time, ns.
        data : bytes
            Encoded message.

        Raises
        ------
        OSError
            A complete chunk cannot be written.
        """
        builder = self._builder
        if not builder.size:
            # The age of a chunk counts from its first message.
            self._since = time.monotonic()
        self._sequences[channel] = sequence = self._sequences[channel] + 1
        # Sequence numbers have 32 bits in the file, and wrap.
        builder.add(channel, time_ns, sequence & 0xFFFF_FFFF, data)
        self.messages += 1
        if builder.size >= CHUNK_BYTES:
            self.flush()

    def latch(self, channel: int, time_ns: int, data: bytes) -> None:
        """Write a latched message.

        The message is repeated at the start of each further file and segment, until
        another message of the channel replaces it.

        Parameters
        ----------
        channel : int
            Number of its channel, from `channel`.
        time_ns : int
            Simulated time, ns.
        data : bytes
            Encoded message.
        """
        self._latched[channel] = data
        self.message(channel, time_ns, data)

    def state(self, channel: int, time_ns: int, state: bytes) -> None:
        """Write a state of the world, as a delta or as a keyframe.

        The frame is a delta to the last state if the delta is shorter and no keyframe
        is due.

        Parameters
        ----------
        channel : int
            Number of the channel of states.
        time_ns : int
            Simulated time, ns.
        state : bytes
            Result of `Simulation.save_state`.
        """
        before = self._state if self._states % STATES_PER_KEYFRAME else None
        frame = frames.encode(state, before)
        self._states = 1 if frames.is_keyframe(frame) else self._states + 1
        self._state = state
        self.message(channel, time_ns, pack_bytes(frame))

    # -- files and segments

    def begin(self, start: Start, states: int) -> None:
        """Start a file or a segment.

        `states` is the number of the channel of states.

        Raises
        ------
        OSError
            A file cannot be written.
        """
        self.flush()
        if self._ring is not None:
            self._ring.begin(start)
        else:
            self._next_file(start)

        # Each file is readable alone, so it starts with a keyframe and the latched
        # messages.
        self._state = None
        if start.state is not None:
            self.state(states, start.time, start.state)
        for channel, data in self._latched.items():
            self.message(channel, start.time, data)

    def _next_file(self, start: Start) -> None:
        assert self._path is not None
        self._end_file()
        path = self._path
        while self._parts < MAX_PARTS:
            self._parts += 1
            if self._parts > 1:
                path = self._path.with_stem(f"{self._path.stem}_{self._parts}")
            try:
                if self._parts > 1:
                    self._held.append(Hold(path))
                self._file = McapFile(path, start, force=self._force)
            except KeptFileError:
                if self._parts == 1:
                    raise
                self._release(1)
                # Another program's file has this number, so try the next one.
                continue

            self._began(path)
            return

    @property
    def due(self) -> float | None:
        """Time by which the current chunk must be written, s; None without a chunk."""
        return self._since + CHUNK_S if self._builder else None

    @property
    def size(self) -> int:
        """Bytes of the current file, or of the ring."""
        store = self._file if self._ring is None else self._ring
        return 0 if store is None else store.size

    @property
    def is_full(self) -> bool:
        """Whether the next file should start, because the indexes take much memory."""
        return self._file is not None and self._file.is_full

    def flush(self) -> None:
        """Write the current chunk.

        Raises
        ------
        OSError
            The chunk cannot be written, and is lost.
        """
        if not self._builder:
            return
        # `build` empties the builder, so an error below loses only this chunk.
        chunk = self._builder.build(self._compressor)
        if self._ring is not None:
            self._ring.write(chunk)
        elif self._file is not None:
            self._file.write(chunk, self._channels)

    def save(self, path: Path, *, force: bool) -> None:
        """Write the contents of the ring to a file.

        Parameters
        ----------
        path : Path
            File to write.
        force : bool
            Whether to replace a file that this program did not write.

        Raises
        ------
        KeptFileError
            The path is such a file, and `force` is False.
        OSError
            The file cannot be written.
        """
        assert self._ring is not None
        self.flush()
        # A second lock on the same file would wait for the first one.
        is_held = self._path is not None and os.path.realpath(path) == os.path.realpath(
            self._path
        )
        with contextlib.nullcontext() if is_held else Hold(path):
            self._ring.save(path, self._channels, force=force)

    def close(self) -> None:
        """Write the remaining data, and finish the file.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        try:
            self.flush()
        finally:
            try:
                self._end_file()
            finally:
                self._release(0)

    def _end_file(self) -> None:
        """Finish the current file, if any; keep the lock on the first file."""
        try:
            if self._file is not None:
                file, self._file = self._file, None
                file.close()
        finally:
            self._release(1)

    def _release(self, keep: int) -> None:
        """Release the locks on all files except the first `keep` of them."""
        while len(self._held) > keep:
            self._held.pop().release()


__all__ = ["CHUNK_BYTES", "CHUNK_S", "McapFile", "Output", "Ring", "Start"]
