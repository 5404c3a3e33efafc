"""Truncated or damaged recordings:

complete parts are read, gaps are reported, and no exception or excessive memory
results.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import struct
import subprocess
import zlib
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
from botyard.formats.budget import Budget
from botyard.recording import mcap, recordindex
from botyard.recording.mcap import (
    MAGIC,
    Attachment,
    Channel,
    ChunkBuilder,
    Op,
    Schema,
    Summary,
)
from botyard.recording.reader import Reader
from botyard.sim.simulation import Simulation
from tests.test_state import SCENE

CHANNELS = [
    Channel(k, f"/topic{k}", "cdr", Schema(k, f"a/msg/B{k}", "ros2msg", b"int32 x"))
    for k in (1, 2, 3)
]


class File(NamedTuple):
    data: bytes
    chunks: list[tuple[int, int, list[bytes]]]
    """Where each chunk is, and its messages."""


@cache
def recorded() -> File:
    """A small file whose second chunk has a channel that the first one lacks."""
    summary, data, chunks = Summary(), bytearray(mcap.file_start("ros2", "test")), []
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
        chunks.append(
            (at, at + chunk.size, [f"message {c} {k} ".encode() * 3 for k in range(12)])
        )

    return File(bytes(data) + summary.end(len(data), zlib.crc32(data)), chunks)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reader") / "run.mcap"


def read(
    path: Path, data: bytes, budget: Budget = Budget()
) -> tuple[list[bytes], Reader]:
    """Return all messages, and the reader."""
    path.write_bytes(data)
    with Reader(path, budget) as found:
        return [one.data for one in found.messages()], found


def test_a_whole_file_is_read_as_others_read_it(path: Path) -> None:
    data, chunks = recorded()
    path.write_bytes(data)
    with Reader(path) as ours:
        found = list(ours.messages())
        assert [m.data for m in found] == [m for *_, some in chunks for m in some]
        assert ours.is_complete and not ours.problems
        assert [(a.name, ours.attachment(a).data) for a in ours.attachments] == [
            ("scene", b"walls" * 20)
        ]
        assert ours.metadata == {"botyard": {"seed": "3"}}

    theirs = make_reader(io.BytesIO(data), validate_crcs=True)
    expected = [
        (s.name, c.topic, m.log_time, m.sequence, m.data)
        for s, c, m in theirs.iter_messages()
    ]
    assert expected == sorted(
        (
            (m.channel.schema.name, m.channel.topic, m.time, m.sequence, m.data)
            for m in found
        ),
        key=lambda row: row[2],
    )
    assert {a.name for a in theirs.iter_attachments()} == {"scene"}
    assert [m.metadata for m in theirs.iter_metadata()] == [{"seed": "3"}]


@given(st.integers(len(MAGIC), 10_000))
def test_a_file_that_ends_early_has_all_its_chunks(path: Path, end: int) -> None:
    data, chunks = recorded()
    end = min(end, len(data) - 1)
    found, ours = read(path, data[:end])
    assert found == [m for _, stop, some in chunks if stop <= end for m in some]
    assert not ours.is_complete and ours.is_cut and len(ours.problems) == 1


@given(st.data())
@settings(max_examples=300)
def test_a_damage_costs_what_it_touches_alone(path: Path, data: st.DataObject) -> None:
    whole, chunks = recorded()
    begin = data.draw(st.integers(len(MAGIC), len(whole) - 1), "begin")
    size = min(data.draw(st.integers(1, 300), "size"), len(whole) - begin)
    noise = data.draw(st.binary(min_size=size, max_size=size), "noise")
    got, _ = read(path, whole[:begin] + noise + whole[begin + len(noise) :])
    for start, stop, some in chunks:
        if stop <= begin or start >= begin + len(noise):
            assert not Counter(some) - Counter(got), "a chunk that is whole"


@given(st.data())
@settings(max_examples=300)
def test_anything_behind_the_magic_is_borne(path: Path, data: st.DataObject) -> None:
    whole, _ = recorded()
    parts = [MAGIC]
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(whole)))
        parts.append(whole[at : at + data.draw(st.integers(0, 500))])
        parts.append(data.draw(st.binary(max_size=20)))

    _, ours = read(path, b"".join(parts))
    assert ours.is_complete or ours.problems
    path.write_bytes(b"".join(parts))
    with Reader(path) as ours:
        for place in ours.attachments:
            with contextlib.suppress(RecordingError):
                ours.attachment(place)

        with contextlib.suppress(RecordingError):
            ours.verify()


def test_what_is_no_recording_is_said(path: Path) -> None:
    for data in (b"", b"\x89MCAP", b"PK\x03\x04" * 20):
        with pytest.raises(RecordingError, match=r"expected a recording \(MCAP\)"):
            read(path, data)


def chunk(packed: bytes, size: int, compression: str = "zstd") -> bytes:
    head = struct.pack("<QQQI", 0, 0, size, 0)
    return mcap.record(
        Op.CHUNK, head, mcap.text(compression), struct.pack("<Q", len(packed)), packed
    )


def test_bombs_and_false_lengths_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compress = zstandard.ZstdCompressor
    bomb = compress(level=19).compress(bytes(1 << 26))
    unsized = compress(level=19, write_content_size=False).compress(bytes(1 << 26))
    wide = compress(
        compression_params=zstandard.ZstdCompressionParameters(window_log=28)
    ).compressobj()
    wide_frame = wide.compress(b"x") + wide.flush()
    for body, text in (
        (chunk(bomb, 1 << 26), "expected at most 1048576 bytes, found 67108864"),
        (chunk(bomb, 100), "bytes in its frame, found another number"),
        (chunk(unsized, 100), "it is damaged"),
        (chunk(b"xyz", 100), "it is damaged"),
        (chunk(wide_frame, 1), "too much memory"),
        (
            chunk(b"xyz", 3, "brotli"),
            'expected the compression zstd or none, found "brotli"',
        ),
        (struct.pack("<BQ", Op.ATTACHMENT, 1 << 40), "cut short"),
        (
            mcap.record(Op.MESSAGE, struct.pack("<HIQQ", 7, 0, 0, 0)),
            "is outside of a chunk",
        ),
        (
            mcap.record(Op.METADATA, b"\xff\xff\xff\xff"),
            "the record is shorter than its contents",
        ),
    ):
        found, ours = read(path, MAGIC + body, Budget(unpacked=1 << 20))
        assert not found and any(text in one for one in ours.problems), ours.problems

    monkeypatch.setattr(recordindex, "MAX_DESCRIPTIONS", 500)
    many = b"".join(
        Channel(k, f"/t{k}", "cdr", Schema(0, "", "", b"")).record for k in range(1, 30)
    )
    with pytest.raises(
        RecordingError,
        match="expected at most 500 bytes of schemas, channels and metadata",
    ):
        read(path, MAGIC + many)


def test_looking_for_what_is_whole_ends(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has thousands of false chunk starts."""
    monkeypatch.setattr(recordindex, "MAX_FALSE", 1000)
    head = struct.pack("<BQQQQI", Op.CHUNK, 500_000, 0, 0, 100, 1) + mcap.text("zstd")
    with pytest.raises(RecordingError, match="at most 1000 false starts"):
        read(path, MAGIC + head * 20_000)


# -- a reader from the npm registry

NPM = Path(__file__).parent.parent / "ros" / "npm"


def foxglove(path: Path, *how: str) -> Any:
    done = subprocess.run(
        ["node", str(NPM / "mcap_read.mjs"), str(path), *how],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.peer
def test_foxgloves_reader_finds_the_same(tmp_path: Path) -> None:
    if (
        shutil.which("node") is None
        or not (NPM / "node_modules" / "@mcap" / "core").exists()
    ):
        pytest.skip("needs Node and @mcap/core (make peers)")

    path = tmp_path / "run.mcap"
    sim = Simulation(SCENE, seed=3)
    sim.add_robot("p3dx", "ann").laser.subscribe("test")
    with sim.record(path, rate=0.0):
        for k in range(40):
            sim.robots["ann"].command(v=0.01 * k)
            sim.step()

    theirs = foxglove(path)
    counts, last = Counter[str](), dict[str, list[Any]]()
    with Reader(path) as ours:
        for one in ours.messages():
            counts[one.channel.topic] += 1
            last[one.channel.topic] = [str(one.time), len(one.data)]

    assert (
        counts["/ann/odom"] == counts["/tf"] == 41
        and counts["/ann/base_scan"] == counts["/ann/cmd_vel"] == 40
    )
    assert (
        theirs["indexed"] == theirs["streamed"] == counts
        and theirs["last"] == last
        and theirs["done"]
    )
    assert set(theirs["attachments"]) == {one.name for one in ours.attachments}
    assert [m["seed"] for m in theirs["metadata"]] == ["3"]
    path.write_bytes(path.read_bytes()[: ours.chunks[-1].at + 1000])  # as after kill -9
    with Reader(path) as ours:
        counts = Counter(one.channel.topic for one in ours.messages())
    theirs = foxglove(path, "stream")
    assert theirs["streamed"] == counts and not theirs["done"]
