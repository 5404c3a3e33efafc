"""Recordings that end early or are damaged: what is whole is read, what is not is said, and nothing raises or takes more than it may."""

from __future__ import annotations

import io
import json
import shutil
import struct
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader

from botyard.errors import RecordingError
from botyard.recording import mcap, reader
from botyard.recording.mcap import MAGIC, Attachment, Channel, ChunkBuilder, Op, Schema, Summary
from botyard.recording.reader import Message, Metadata, Reader
from botyard.sim.simulation import Simulation
from tests.test_state import SCENE

CHANNELS = [Channel(k, f"/topic{k}", "cdr", Schema(k, f"a/msg/B{k}", "ros2msg", b"int32 x")) for k in (1, 2, 3)]


class File(NamedTuple):
    data: bytes
    chunks: list[tuple[int, int, list[bytes]]]
    """Where each chunk is, and its messages."""


@cache
def recorded() -> File:
    """A small file, whose second chunk has a channel that the first lacks."""
    summary, data, chunks = Summary(), bytearray(mcap.beginning("ros2", "test")), []
    at, about = len(data), mcap.metadata("botyard", {"seed": "3"})
    data += about
    summary.metadata("botyard", at, len(about))
    scene = Attachment("scene", "application/x-test", b"walls" * 20)
    at = len(data)
    data += scene.record
    summary.attachment(scene, at, len(scene.record))
    for c in range(4):
        builder = ChunkBuilder()
        for k in range(12):
            channel = CHANNELS[k % (2 if c == 0 else 3)]
            builder.add(channel.id, 1000 * c + k, k, f"message {c} {k} ".encode() * 3)
        chunk = builder.build(zstandard.ZstdCompressor(level=1))
        for channel in CHANNELS:
            if channel.id in chunk.counts and not summary.has(channel.id):
                data += summary.channel(channel)
        at = len(data)
        data += chunk.data
        summary.chunk(chunk, at)
        chunks.append((at, at + chunk.size, [f"message {c} {k} ".encode() * 3 for k in range(12)]))
    return File(bytes(data) + summary.end(len(data)), chunks)


def read(data: bytes) -> tuple[list[Any], Reader]:
    found = Reader(io.BytesIO(data))
    return list(found), found


def messages(found: list[Any]) -> list[bytes]:
    return [one.data for one in found if isinstance(one, Message)]


def test_a_whole_file_is_read_as_others_read_it() -> None:
    data, chunks = recorded()
    found, ours = read(data)
    assert messages(found) == [m for *_, some in chunks for m in some] and ours.is_complete and not ours.problems
    assert [(a.name, a.data) for a in found if isinstance(a, Attachment)] == [("scene", b"walls" * 20)]
    assert [one for one in found if isinstance(one, Metadata)] == [Metadata("botyard", {"seed": "3"})]
    theirs = make_reader(io.BytesIO(data), validate_crcs=True)
    expected = [(s.name, c.topic, m.log_time, m.sequence, m.data) for s, c, m in theirs.iter_messages()]
    assert expected == sorted(
        ((m.channel.schema.name, m.channel.topic, m.time, m.sequence, m.data) for m in found if isinstance(m, Message)),
        key=lambda row: row[2],
    )
    assert {a.name for a in theirs.iter_attachments()} == {"scene"}
    assert [m.metadata for m in theirs.iter_metadata()] == [{"seed": "3"}]


@given(st.integers(len(MAGIC), 10_000))
def test_a_file_that_ends_early_has_all_its_chunks(end: int) -> None:
    data, chunks = recorded()
    end = min(end, len(data) - 1)
    found, ours = read(data[:end])
    assert messages(found) == [m for _, stop, some in chunks if stop <= end for m in some]
    assert not ours.is_complete and len(ours.problems) == 1


@given(st.data())
@settings(max_examples=300)
def test_a_damage_costs_what_it_touches_alone(data: st.DataObject) -> None:
    whole, chunks = recorded()
    begin = data.draw(st.integers(len(MAGIC), len(whole) - 1), "begin")
    size = data.draw(st.integers(1, 300), "size")
    noise = data.draw(
        st.binary(min_size=min(size, len(whole) - begin), max_size=min(size, len(whole) - begin)), "noise"
    )
    found, ours = read(whole[:begin] + noise + whole[begin + len(noise) :])
    got = messages(found)
    for start, stop, some in chunks:
        # a length that is wrong lets a reader skip what is behind, where nothing says that it is wrong
        if stop <= begin or (start >= begin + len(noise) and ours.damages):
            assert not Counter(some) - Counter(got), "a chunk that is whole"


@given(st.data())
@settings(max_examples=300)
def test_anything_behind_the_magic_is_borne(data: st.DataObject) -> None:
    whole, _ = recorded()
    parts = [MAGIC]
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(whole)))
        parts.append(whole[at : at + data.draw(st.integers(0, 500))])
        parts.append(data.draw(st.binary(max_size=20)))
    found, ours = read(b"".join(parts))
    assert ours.is_complete or ours.problems
    assert all(isinstance(one, (Message, Attachment, Metadata)) for one in found)


def test_what_is_no_recording_is_said() -> None:
    for data in (b"", b"\x89MCAP", b"PK\x03\x04" * 20):
        with pytest.raises(RecordingError, match="expected an MCAP file"):
            Reader(io.BytesIO(data))


def chunk(raw: bytes, packed: bytes, size: int, compression: str = "zstd") -> bytes:
    head = struct.pack("<QQQI", 0, 0, size, 0)
    return mcap.record(Op.CHUNK, head, mcap.text(compression), struct.pack("<Q", len(packed)), packed)


def test_bombs_and_false_lengths_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(reader, "MAX_RECORD_BYTES", 1 << 20)
    monkeypatch.setattr(reader, "MAX_CHANNELS", 10)
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(1 << 26))
    unsized = zstandard.ZstdCompressor(level=19, write_content_size=False).compress(bytes(1 << 26))
    many = b"".join(Channel(k, f"/t{k}", "cdr", Schema(0, "", "", b"")).record for k in range(1, 30))
    for body, text in (
        (chunk(b"", bomb, 1 << 26), "a chunk of 67108864 bytes"),
        (chunk(b"", bomb, 100), "another size than it says"),
        (chunk(b"", unsized, 100), "a chunk is damaged"),
        (chunk(b"", b"xyz", 100), "a chunk is damaged"),
        (chunk(b"", b"xyz", 3, "brotli"), "brotli; zstd alone is read"),
        (struct.pack("<BQ", Op.ATTACHMENT, 1 << 40), "the length of one is wrong"),
        (struct.pack("<BQ", Op.ATTACHMENT, 1 << 21) + bytes(1 << 22), "a record of 2097152 bytes"),
        (many, "more channels and schemas than are read"),
        (mcap.record(Op.MESSAGE, struct.pack("<HIQQ", 7, 0, 0, 0)), "a channel that was not told of, 7"),
        (mcap.record(Op.METADATA, b"\xff\xff\xff\xff"), "a record ends in a field"),
    ):
        found, ours = read(MAGIC + body)
        assert not messages(found) and text in ours.problems[0], ours.problems


def test_looking_for_what_is_whole_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of beginnings of chunks, each of which would have to be read to the end."""
    monkeypatch.setattr(reader, "MAX_CHUNK_BYTES", 1 << 20)
    head = struct.pack("<BQQQQI", Op.CHUNK, 500_000, 0, 0, 100, 1) + mcap.text("zstd")
    data = MAGIC + head * 20_000
    read_bytes = 0

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            nonlocal read_bytes
            found = super().read(size)
            read_bytes += len(found)
            return found

    ours = Reader(Counted(data))
    assert not list(ours) and ours.damages < 20_000
    assert read_bytes < 12 * len(data) + (4 << 20)


# -- a reader from the npm registry

NPM = Path(__file__).parent.parent / "ros" / "npm"


@pytest.mark.peer
def test_foxgloves_reader_finds_the_same(tmp_path: Path) -> None:
    if shutil.which("node") is None or not (NPM / "node_modules" / "@mcap" / "core").exists():
        pytest.skip("needs Node and @mcap/core (make peers)")
    path = tmp_path / "run.mcap"
    sim = Simulation(SCENE, seed=3)
    sim.add_robot("p3dx", "ann").laser.subscribe("test")
    with sim.record(path, rate=0.0):
        for k in range(40):
            sim.robots["ann"].command(v=0.01 * k)
            sim.step()
    done = subprocess.run(
        ["node", str(NPM / "mcap_read.mjs"), str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert not done.returncode, done.stderr
    theirs = json.loads(done.stdout)
    found, _ = read(path.read_bytes())
    counts, last = Counter[str](), dict[str, list[Any]]()
    for one in found:
        if isinstance(one, Message):
            counts[one.channel.topic] += 1
            last[one.channel.topic] = [str(one.time), len(one.data)]
    assert counts["/ann/odom"] == counts["/tf"] == 41 and counts["/ann/base_scan"] == counts["/ann/cmd_vel"] == 40
    assert theirs["indexed"] == theirs["streamed"] == counts and theirs["last"] == last and theirs["done"]
    assert set(theirs["attachments"]) == {one.name for one in found if isinstance(one, Attachment)}
    assert [m["seed"] for m in theirs["metadata"]] == ["3"]
