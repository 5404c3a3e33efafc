"""Recordings as arrays with the engine's own numbers; damaged or expensive content is
skipped or refused.
"""

from __future__ import annotations

import contextlib
import csv
import io
import struct
import subprocess
import sys
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import botyard
from botyard.calibration.readers import read_log
from botyard.cli.main import program
from botyard.errors import (
    ArgumentError,
    BudgetError,
    KeptFileError,
    MapError,
    RecordingError,
)
from botyard.formats.bags import bag_messages
from botyard.formats.budget import Budget, Meter
from botyard.formats.models import find_robot
from botyard.model.trailers import TrailerSpec
from botyard.model.world import thing
from botyard.pictures.filming import film_options, render_recording
from botyard.pictures.options import PictureOptions
from botyard.recording import mcap, recordindex
from botyard.recording.arrays import Recording, load
from botyard.recording.mcap import ChunkBuilder, Op
from botyard.recording.reader import Reader
from botyard.recording.table import columns_of, export
from botyard.recording.track import read_track
from botyard.recording.verify import resimulate
from botyard.sim.simulation import Simulation
from tests.cli.test_cli import call


class Run:
    """A recorded run with the engine's values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        sim = self.sim = Simulation.load("office", seed=4)
        self.truth: dict[tuple[str, float], list[tuple[float, float, float]]] = {}
        self.scans: dict[tuple[str, float], Any] = {}
        with sim.record(path, overwrite=True, rate=0.0):
            a = sim.add_robot("p3dx", "first robot", pose=(10.0, 10.0, 0.3))
            sim.add_robot("p3dx", "b", pose=(14.0, 10.0, -3.0))
            a.command(v=0.25, w=0.5)
            self._steps(12)
            sim.remove_robot("b")
            sim.fleet.command(v=0.1)
            self._steps(12)
            sim.add_robot("p3at", "c", pose=(14.0, 12.0, 1.0))
            sim.robots["c"].command(w=-0.3)
            self._steps(12)
            sim.remove_robot("c")
            sim.add_robot("p3dx", "b", pose=(15.0, 10.0, 0.0))
            self._steps(6)

    def _steps(self, count: int) -> None:
        for _ in range(count):
            self.sim.step()
            for name, robot in self.sim.robots.items():
                v = robot.velocity
                self.truth[name, round(self.sim.time, 6)] = [
                    tuple(robot.truth),
                    (v.vx, v.vy, v.w),
                    tuple(robot.odom),
                ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("reading") / "run.mcap")


@pytest.fixture(scope="module")
def read(run: Run) -> Recording:
    return load(run.path)


def test_arrays_have_the_engines_numbers(run: Run, read: Recording) -> None:
    assert read.robots == ("first robot", "b", "c")
    assert read.time.tolist() == pytest.approx([0.1 * k for k in range(1, 43)])
    assert read.problems == ()
    seen = 0
    for row, time in enumerate(read.time.tolist()):
        for n, name in enumerate(read.robots):
            said = run.truth.get((name, round(time, 6)))
            found = [
                array[row, n] for array in (read.poses, read.velocities, read.odometry)
            ]
            assert read.present[row, n] == (said is not None)
            if said is None:
                assert all(np.isnan(values).all() for values in found)
                continue

            seen += 1
            for values, expected in zip(found, said, strict=True):
                np.testing.assert_allclose(values, expected, rtol=0, atol=1e-14)

    assert seen == len(run.truth) == 42 + 12 + 12 + 6


def test_commands_are_those_in_force(read: Recording) -> None:
    first, b, c = (read.commands[:, n] for n in range(3))
    assert first[0].tolist() == [0.25, 0.0, 0.5]
    assert first[-1].tolist() == [0.1, 0.0, 0.5]
    assert np.isnan(b).all()
    assert c[30].tolist() == [0.0, 0.0, -0.3]
    assert np.isnan(c[[0, 23, 41]]).all()


def test_renamed_robots_have_all_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "renamed.mcap"
    sim = Simulation(seed=4)
    with sim.record(path, rate=0.0):
        for y, name in enumerate(("ann", "bob")):
            sim.add_robot("p3dx", name, pose=(0.0, 3.0 * y, 0.0))
        sim.add_robot(thing(), "crate", pose=(9.0, 9.0, 0.0))
        sim.step(3)
        sim.core.states.rename_robots({"ann": "eve", "crate": "box"})
        sim.step(2)
        sim.core.states.rename_robots({"eve": "bob", "bob": "eve"})
        # The first row, with the first velocity, is the present bob.
        sim.fleet.command(v=[0.1, 0.2, 0.0])
        sim.step(2)
    run = load(path)
    assert run.robots == ("ann", "bob", "eve")
    assert run.present.T.tolist() == [
        [True] * 3 + [False] * 4,
        [True] * 7,
        [False] * 3 + [True] * 4,
    ]
    ys = run.poses[:, :, 1].round(6)
    assert ys[:, 1].tolist() == [3.0] * 5 + [0.0] * 2
    assert ys[3:, 2].tolist() == [0.0] * 2 + [3.0] * 2
    assert run.commands[-1, 1:, 0].tolist() == [0.1, 0.2]
    assert [m.text for m in read_track(path).marks if "renamed" in m.text] == [
        "ann, crate renamed eve, box",
        "eve, bob renamed bob, eve",
    ]


def test_trailers_of_a_renamed_robot_have_its_new_name(tmp_path: Path) -> None:
    path = tmp_path / "trailers.mcap"
    sim = Simulation(seed=4)
    outline = ((-0.3, -0.25), (0.3, -0.25), (0.3, 0.25), (-0.3, 0.25))
    trailer = TrailerSpec(outline=outline, hitch=0.5, length=1.0)
    sim.add_robot(replace(find_robot("p3dx"), trailers=(trailer,)), "tug")
    with sim.record(path, rate=0.0):
        sim.step(3)
        sim.core.states.rename_robots({"tug": "pull"})
        sim.step(2)
    run = load(path)
    assert run.robots == ("tug", "tug_trailer_1", "pull", "pull_trailer_1")
    assert run.present[-2:, 2].all()


def test_scans_are_an_array_and_are_read_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "scans.mcap"
    sim = Simulation.load("office", seed=4)
    sim.add_robot("p3dx", "a", pose=(10.0, 10.0, 0.3))
    sim.add_robot("p3dx", "b", pose=(14.0, 10.0, 0.3), lasers=["tim3xx"])
    said = []
    with sim.record(path, topics=["*/base_scan", "*/odom"], rate=0.0):
        for _ in range(5):
            sim.step()
            said.append([robot.laser.ranges.copy() for robot in sim.robots.values()])

    run = load(path)
    scans = run.scans()
    assert scans.ranges.shape == (len(run.time), 2, max(len(one) for one in said[0]))
    assert scans.ranges.dtype == np.float32
    for k, both in enumerate(said):
        row = int(np.argmin(abs(run.time - 0.1 * (k + 1))))
        for n, ranges in enumerate(both):
            own = scans.ranges[row, n, : len(ranges)]
            met = np.isfinite(own)
            np.testing.assert_allclose(
                own[met], ranges[met].astype(np.float32), rtol=1e-6
            )
            assert np.isnan(scans.ranges[row, n, len(ranges) :]).all()

    assert scans.increment[0] == pytest.approx(np.pi / 180)
    with pytest.raises(ArgumentError, match='found "sonar"'):
        run.scans("sonar")
    assert scans.intensities is None
    bright = run.scans(intensities=True).intensities
    assert bright is not None
    assert np.array_equal(np.isnan(bright), np.isnan(scans.ranges))
    assert {*np.unique(bright[np.isfinite(scans.ranges)])} == {1.0}


def test_events_and_changes_are_records(read: Recording) -> None:
    assert [event.kind for event in read.events][-1:] == ["end"]
    assert read.events[-1].tick == 42
    kinds = [type(entry.change).__name__ for entry in read.changes()]
    assert kinds.count("AddRobots") == 4 and "SubmitVelocities" in kinds
    assert read.metadata["seed"] == "4"


def test_a_recording_without_topics_of_robots_has_its_states(tmp_path: Path) -> None:
    sim = Simulation.load("office", seed=4)
    robot = sim.add_robot("p3dx", "a", pose=(10.0, 10.0, 0.3))
    robot.command(v=0.2)
    with sim.record(tmp_path / "r.mcap", topics=["/tf"]):
        sim.step(30)
    run = load(tmp_path / "r.mcap")
    assert run.time[-1] == pytest.approx(3.0) and 4 <= len(run.time) <= 6
    assert run.poses[-1, 0].tolist() == list(robot.truth)
    assert run.velocities[-1, 0, 0] == robot.velocity.vx


def test_it_needs_no_ros(run: Run) -> None:
    """Readers import neither ROS nor a compiler."""
    code = (
        "import sys, botyard\n"
        f"run = botyard.recording.load({str(run.path)!r})\n"
        "assert run.poses.shape == (42, 3, 3)\n"
        "print([m for m in ('rosbags', 'rospy', 'rclpy', 'numba') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"


# -- tables


def test_a_table_has_a_row_for_each_time_and_robot(
    run: Run, read: Recording, tmp_path: Path
) -> None:
    path = tmp_path / "run.csv"
    assert export(read, path) == len(run.truth)
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
    assert len(rows) == len(run.truth)
    for row in rows:
        said = run.truth[row["robot"], round(float(row["time [s]"]), 6)]
        found = [
            float(row[name])
            for name in (
                "x [m]",
                "y [m]",
                "heading [rad]",
                "vx [m/s]",
                "vy [m/s]",
                "yaw rate [rad/s]",
            )
        ]
        np.testing.assert_allclose(found, [*said[0], *said[1]], rtol=0, atol=1e-14)

    assert [row["command vx [m/s]"] for row in rows if row["robot"] == "b"] == [""] * 18
    with pytest.raises(KeptFileError):
        export(read, path)
    export(read, path, overwrite=True)
    with pytest.raises(ArgumentError, match=r"expected one of the suffixes \.csv"):
        export(read, tmp_path / "run.xls")


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
def test_tables_of_arrow_have_the_same_numbers(
    read: Recording, suffix: str, tmp_path: Path
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / f"run.{suffix}"
    export(read, path)
    if suffix == "parquet":
        from pyarrow import parquet

        table = parquet.read_table(path)
    else:
        table = pyarrow.ipc.open_file(path).read_all()

    expected = columns_of(read)
    assert table.column_names == list(expected)
    for name, values in expected.items():
        found = table[name].to_pylist()
        assert found == [
            None if value != value else value for value in values.tolist()
        ], name

    assert table.schema.metadata[b"botyard seed"] == b"4"


def test_the_command_line_writes_tables(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "run.csv"
    code, out, err = call("export", str(run.path), str(target), capsys=capsys)
    assert (code, err) == (0, "") and out.endswith(f"{len(run.truth)} rows\n")
    assert len(target.read_text("utf-8").splitlines()) == len(run.truth) + 1
    assert call("export", str(run.path), str(target), capsys=capsys)[0] == 255
    assert call("export", str(run.path), str(target), "--force", capsys=capsys)[0] == 0
    assert (
        call("export", str(run.path), str(tmp_path / "run.txt"), capsys=capsys)[0]
        == 255
    )
    assert (
        call(
            "export", str(tmp_path / "none.mcap"), str(target), "--force", capsys=capsys
        )[0]
        == 2
    )
    code, _, err = call(
        "export",
        str(run.path),
        str(target),
        "--force",
        "--max-read",
        "cells=100",
        capsys=capsys,
    )
    assert code == 2 and "--max-read cells" in err


# -- damage: a naive twin of the scan, which knows the chunks' places from the whole file


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of 30 chunks with one message each."""
    import zstandard

    builder, packer = ChunkBuilder(), zstandard.ZstdCompressor()
    summary = mcap.Summary()
    parts = [
        mcap.file_start("", "x"),
        summary.channel(mcap.Channel(1, "/t", "x", mcap.Schema(1, "s", "", b""))),
    ]
    for k in range(30):
        builder.add(1, k, k, bytes([k]) * (50 + k))
        chunk = builder.build(packer)
        summary.chunk(chunk, sum(map(len, parts)))
        parts.append(chunk.data)

    data = b"".join(parts)
    return data + summary.end(len(data), zlib.crc32(data))


def _values(path: Path) -> set[int]:
    with Reader(path) as file:
        found = [(m.time, bytes(m.data)) for m in file.messages()]
    for time, data in found:
        assert data == bytes([time]) * (50 + time)
    return {time for time, _ in found}


def _chunks(data: bytes, path: Path) -> list[tuple[int, int]]:
    path.write_bytes(data)
    with Reader(path) as file:
        assert file.problems == [] and len(file.chunks) == 30
        return [(chunk.at, chunk.at + chunk.size) for chunk in file.chunks]


PLACES: list[tuple[int, int]] = []
"""Of the chunks of `many`."""


@given(data=st.data())
@settings(max_examples=150)
def test_each_complete_chunk_of_a_damaged_file_is_recovered(
    many: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.mcap"
    places = PLACES or _chunks(many, path)
    PLACES[:] = places
    damaged = bytearray(many)
    touched = set()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(100, len(many) - 1))
        size = data.draw(st.integers(1, 40))
        damaged[at : at + size] = data.draw(st.binary(min_size=size, max_size=size))[
            : len(many) - at
        ]
        touched.update(range(at, at + size))

    path.write_bytes(damaged)
    whole = {
        k
        for k, (begin, end) in enumerate(places)
        if not touched.intersection(range(begin, end))
    }
    assert whole <= _values(path)


@given(data=st.data())
@settings(max_examples=100)
def test_each_complete_chunk_of_a_file_that_was_cut_short_is_recovered(
    many: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.mcap"
    places = _chunks(many, path)
    end = data.draw(st.integers(len(mcap.MAGIC), len(many)))
    path.write_bytes(many[:end])
    assert _values(path) == {k for k, (_, last) in enumerate(places) if last <= end}


@given(st.binary(max_size=300))
def test_foreign_bytes_are_no_recording(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    # Hypothesis knows the constants of the code, this one too.
    assume(not data.startswith(mcap.MAGIC))
    path = tmp_path_factory.getbasetemp() / "foreign"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match="expected a recording"):
        load(path)
    path.write_bytes(mcap.MAGIC + data)
    with contextlib.suppress(RecordingError):
        assert load(path).problems


@given(data=st.data())
@settings(max_examples=100)
def test_a_damaged_recording_gives_what_is_whole(
    run: Run, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged_run.mcap"
    damaged = bytearray(run.path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(8, len(damaged) - 1))
        damaged[at : at + 4] = data.draw(st.binary(max_size=8))

    path.write_bytes(damaged[: data.draw(st.integers(100, len(damaged)))])
    try:
        found = load(path)
    except RecordingError:
        return

    assert len(found.time) <= 42


# -- bombs


def _file(*records: bytes) -> bytes:
    return mcap.file_start("", "x") + b"".join(records)


def _chunk(packed: bytes, raw: int, compression: str = "zstd") -> bytes:
    return mcap.record(
        Op.CHUNK,
        struct.pack("<QQQI", 0, 1, raw, 0),
        mcap.text(compression),
        struct.pack("<Q", len(packed)),
        packed,
    )


def _channel(number: int) -> bytes:
    return mcap.Channel(
        number & 0xFFFF, f"/t{number}", "x", mcap.Schema(0, "", "", b"")
    ).record


def _zeros(count: int, *, said: bool) -> bytes:
    import zstandard

    packer = zstandard.ZstdCompressor(level=19, write_content_size=said).compressobj(
        size=count if said else -1
    )
    return (
        b"".join(packer.compress(bytes(2**20)) for _ in range(count >> 20))
        + packer.flush()
    )


BOMBS = {
    "a frame that says more than the chunk": _file(
        _chunk(_zeros(2**27, said=True), 1000)
    ),
    "a frame that unpacks to more than the chunk": _file(
        _chunk(_zeros(2**27, said=False), 1000)
    ),
    "a chunk that is too large": _file(_chunk(b"", 2**62)),
    "a chunk longer than the file": _file(mcap.RECORD.pack(Op.CHUNK, 2**63)),
    "a schema longer than the file": _file(mcap.RECORD.pack(Op.SCHEMA, 2**40)),
    "texts longer than the record": _file(
        mcap.record(Op.CHANNEL, struct.pack("<HHI", 1, 0, 2**32 - 1))
    ),
    "a compression that nobody knows": _file(_chunk(b"x", 1, "lzma")),
    "thousands of channels": _file(*map(_channel, range(5_000))),
    "the same channel again and again, in a chunk": _file(
        _chunk((raw := _channel(1) * 10_000), len(raw), "")
    ),
    "an attachment that contradicts itself": _file(
        mcap.record(
            Op.ATTACHMENT,
            bytes(16),
            mcap.text("scene"),
            mcap.text(""),
            struct.pack("<Q", 2**60),
        )
    ),
}


@pytest.mark.parametrize("what", BOMBS)
def test_bombs_end_early(what: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.mcap"
    path.write_bytes(BOMBS[what])
    tracemalloc.start()
    try:
        found = load(path)
        assert found.problems or "again and again" in what
        for read in (read_track, resimulate):
            with pytest.raises(RecordingError):
                read(path)

        assert tracemalloc.get_traced_memory()[1] < 80 * 2**20
    finally:
        tracemalloc.stop()


def test_descriptions_are_limited_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "bomb.mcap"
    schema = mcap.Schema(1, "s", "", bytes(2**24)).record
    path.write_bytes(_file(*[schema] * 5))
    with pytest.raises(RecordingError, match="at most 67108864 bytes of schemas"):
        load(path)


def test_descriptions_are_limited_in_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordindex, "MAX_DESCRIBED", 1000)
    path = tmp_path / "bomb.mcap"
    path.write_bytes(_file(*map(_channel, range(2000))))
    with pytest.raises(RecordingError, match="at most 1000 schemas, channels"):
        load(path)


def test_arrays_are_limited(run: Run) -> None:
    with pytest.raises(
        RecordingError, match="--max-read cells=NUMBER raises this limit"
    ):
        load(run.path, budget=Budget(cells=500))
    with pytest.raises(RecordingError, match="robots"):
        load(run.path, budget=Budget(robots=2))
    small = load(run.path, budget=Budget(unpacked=50))
    assert small.problems and len(small.time) == 0


def test_the_package_says_its_names() -> None:
    assert botyard.recording.load is load
    with pytest.raises(AttributeError):
        botyard.recording.nothing  # noqa: B018


def _of_nothing(count: int) -> bytes:
    """Return a recording with a number of records of nine zeros each, in two chunks."""
    import zstandard

    packed = zstandard.ZstdCompressor().compress(bytes(9 * count // 2))
    end = (
        mcap.record(Op.DATA_END, bytes(4))
        + mcap.record(Op.FOOTER, bytes(20))
        + mcap.MAGIC
    )
    return mcap.file_start("ros2", "x") + _chunk(packed, 9 * count // 2) * 2 + end


def test_records_are_counted(tmp_path: Path) -> None:
    """A file of 2 MB can unpack to billions of empty records."""
    path = tmp_path / "bomb.mcap"
    path.write_bytes(_of_nothing(300_000))
    assert path.stat().st_size < 2000
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(path.read_bytes()[:-50])
    small = Budget(records=200_000)
    reads = {
        "arrays": lambda: load(path, budget=small),
        "track": lambda: read_track(path, small),
        "resimulate": lambda: resimulate(cut, small),
        "movies": lambda: render_recording(
            path,
            tmp_path / "a.gif",
            PictureOptions(size=50),
            film_options(),
            budget=small,
        ),
        "calibrate": lambda: read_log(path, find_robot("p3dx"), budget=small),
    }
    for what, read in reads.items():
        with pytest.raises(
            BudgetError,
            match=r"records, expected at most 200000 \(--max-read records=NUMBER",
        ):
            pytest.fail(f"{what}: {read()}")

    for options, status in ((["--max-read", "records=2e5"], 2), ([], 0)):
        done = CliRunner().invoke(program, ["replay", "--info", str(path), *options])
        assert (isinstance(done.exception, BudgetError), bool(status)) in (
            (True, True),
            (False, False),
        ), done.output


def test_records_outside_of_chunks_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "bomb.mcap"
    index = mcap.record(Op.MESSAGE_INDEX, struct.pack("<HI", 1, 0))
    path.write_bytes(_file(*[index] * 5000))
    with pytest.raises(BudgetError, match="5001 records"):
        load(path, budget=Budget(records=5000))


def test_unpacked_bytes_of_all_chunks_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "bomb.mcap"
    path.write_bytes(_of_nothing(100_000))
    with pytest.raises(BudgetError, match=r"900000 bytes of messages.*recorded=NUMBER"):
        load(path, budget=Budget(recorded=800_000))
    load(path, budget=Budget(recorded=900_000))


def test_records_of_bags_are_counted(tmp_path: Path) -> None:
    """They are counted before the library iterates over them."""
    path = tmp_path / "bag.mcap"
    path.write_bytes(_of_nothing(300_000))
    with pytest.raises(BudgetError, match="records=NUMBER"):
        list(
            bag_messages(
                path,
                Meter(Budget(records=200_000), str(path)),
                ["nav_msgs/msg/OccupancyGrid"],
                MapError,
            )
        )


def test_a_budget_is_of_each_reading(run: Run) -> None:
    """A file within the archive can be read repeatedly."""
    with Reader(run.path) as file:
        count = sum(1 for _ in file.messages())
    with Reader(run.path, Budget(records=count + 500)) as file:
        assert [sum(1 for _ in file.messages()) for _ in range(5)] == [count] * 5
