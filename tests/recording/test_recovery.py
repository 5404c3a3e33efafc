"""Recovery of a file that a killed program left or that is damaged, by our reader and
by others.
"""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcap.exceptions import McapError
from mcap.reader import NonSeekingReader

from botyard.errors import RecordingError
from botyard.model.library import load_robot
from botyard.recording import output
from botyard.recording.own_channels import STATES
from botyard.recording.reader import Reader
from botyard.recording.recordindex import ChunkPlace
from botyard.recording.track import Track, read_track
from botyard.sim.simulation import Simulation


class Run(NamedTuple):
    """A recording of many chunks:

    its bytes, the places of its chunks, the chunks with states, and all states.
    """

    path: Path
    data: bytes
    chunks: list[ChunkPlace]
    states: dict[int, int]
    track: Track


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("recovery") / "run.mcap"
    sim = Simulation.load("office", seed=3, step=0.5)
    for k in range(3):
        sim.add_robot("p3dx", pose=sim.core.places.random(load_robot("p3dx"), k))
    with pytest.MonkeyPatch.context() as patch, sim.record(path):
        patch.setattr(output, "CHUNK_BYTES", 12_000)
        for tick in range(120):
            sim.fleet.command(v=0.3, w=0.1 * (tick % 7 - 3))
            sim.step()

    states = dict[int, int]()
    with Reader(path) as file:
        chunks = list(file.chunks)
        for chunk, messages in file.by_chunk((STATES,)):
            states[chunk.at] = sum(1 for _ in messages)

    assert len(chunks) > 20 and sum(states.values()) > 60
    return Run(path, path.read_bytes(), chunks, states, read_track(path))


def unpacked(packed: bytes) -> bytes | None:
    """Return the contents of a frame of zstd; None if it is damaged."""
    try:
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=10**6)
    except (zstandard.ZstdError, MemoryError):
        return None


@given(which=st.integers(0), where=st.integers(0), bits=st.integers(1, 255))
# A bit of the head of a frame that decoders ignore.
@example(which=0, where=4, bits=0x10)
@settings(max_examples=40)
def test_a_damage_costs_no_more_states_than_until_the_next_whole_one(
    run: Run, which: int, where: int, bits: int
) -> None:
    with_states = [one for one in run.chunks[2:] if run.states[one.at]]
    chunk = with_states[which % len(with_states)]
    damaged = bytearray(run.data)
    damaged[chunk.packed_at + where % chunk.packed] ^= bits
    path = run.path.with_name("damaged.mcap")
    path.write_bytes(damaged)
    with Reader(path) as file, pytest.raises(RecordingError, match="checksum"):
        file.verify()
    track, whole = (
        read_track(path),
        {moment.tick: moment.digest for moment in run.track.moments},
    )
    there = {moment.tick: moment.digest for moment in track.moments}
    assert there.items() <= whole.items()
    # The last step has two states: its own, and the one at the end of the recording.
    lost = len(run.track.moments) - len(track.moments)
    place = slice(chunk.packed_at, chunk.packed_at + chunk.packed)
    # Some bits of a frame have no meaning, such as the padding of its streams.
    if unpacked(bytes(damaged[place])) == unpacked(run.data[place]):
        assert lost == 0 and not track.problems
        return
    assert (
        run.states[chunk.at] <= lost < run.states[chunk.at] + output.STATES_PER_KEYFRAME
    )
    assert track.problems


@given(where=st.integers(0))
@settings(max_examples=40)
def test_others_read_all_whole_chunks_of_a_file_that_ends_early(
    run: Run, where: int
) -> None:
    """Python's `mcap` without an index, as its ``NonSeekingReader`` and ``mcap
    recover`` read; with an index it reads only complete files.
    """
    first = run.chunks[0].at
    path, end = run.path.with_name("cut.mcap"), first + where % (len(run.data) - first)
    path.write_bytes(run.data[:end])
    with Reader(path) as file:
        ours = Counter(message.channel.topic for message in file.messages())
    theirs = Counter[str]()
    with path.open("rb") as stream:
        records = NonSeekingReader(stream).iter_messages(log_time_order=False)
        with pytest.raises((McapError, struct.error)):
            theirs.update(channel.topic for _, channel, _ in records)

    assert theirs == ours
    assert sum(ours.values()) >= sum(
        run.states[one.at] for one in run.chunks if one.packed_at + one.packed <= end
    )
