"""Frames of a recording's movie equal the pictures of the running simulation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageSequence

import botyard
from botyard.errors import ArgumentError, KeptFileError, RecordingError
from botyard.formats.budget import Budget
from botyard.geometry import Pose
from botyard.model.scene import Scene
from botyard.pictures.filming import (
    Camera,
    FilmOptions,
    film_options,
    fps_of,
    render_recording,
)
from botyard.pictures.options import PictureOptions, picture_options
from botyard.pictures.painter import Painter
from botyard.pictures.still import take
from botyard.recording import output
from botyard.recording.reader import Reader
from botyard.sim.simulation import Simulation
from tests.cli.test_cli import call

SMALL: dict[str, Any] = {"size": (160, 120), "area": (-4.0, -3.0, 4.0, 3.0)}


def drive(sim: Simulation) -> None:
    """Return a run of 8 s with changes of many kinds."""
    bob = sim.add_robot("p3dx", "bob", pose=(-2.0, 0.0, 0.3), lasers=["lms200"])
    bob.laser.subscribe("test")
    bob.command(v=0.4, w=0.3)
    sim.step(20)
    sim.add_robot("amigo", "eve", pose=(1.0, 1.0, 0.0)).command(v=0.2)
    sim.step(20)
    bob.command.set_pose(0.0, -1.0, 0.0)
    sim.step(15)
    sim.remove_robot("eve")
    sim.step(25)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.mcap"
    sim = Simulation(seed=5)
    with sim.record(path):
        drive(sim)
    return path


def frames(path: Path) -> list[tuple[bytes, int]]:
    with Image.open(path) as movie:
        return [
            (f.convert("RGB").tobytes(), f.info["duration"])
            for f in ImageSequence.Iterator(movie)
        ]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"follow": "bob", "area": (6.0, 4.5)},
        {"trails": 3.0, "theme": "dark"},
        {"scans": ["bob"]},
    ],
)
def test_the_movie_is_the_run(run: Path, tmp_path: Path, more: dict[str, Any]) -> None:
    options = picture_options(**{**SMALL, **more})
    expected: list[bytes] = []
    painter = Painter(options)
    sim = Simulation(seed=5)

    def look(_snapshot: object = None) -> None:
        there = options if set(options.named) <= set(sim.robots) else None
        image = painter.draw(take(sim, there.scans if there else False)).tobytes()
        if not expected or image != expected[-1]:
            expected.append(image)

    look()
    sim.after_step(look)
    drive(sim)
    render_recording(run, tmp_path / "a.webp", options, FilmOptions())
    found = frames(tmp_path / "a.webp")
    assert [image for image, _ in found] == expected
    assert sum(d for _, d in found) == 8100, (
        "a frame for each of 80 steps, and for the beginning"
    )


def test_a_picture_shows_the_last_moment(run: Path, tmp_path: Path) -> None:
    sim = Simulation(seed=5)
    seen: dict[int, Image.Image] = {}
    options = picture_options(**SMALL)
    sim.after_step(
        lambda _: seen.__setitem__(sim.tick, Painter(options).draw(take(sim)))
    )
    drive(sim)
    for end, tick in ((None, 80), (3.0, 30), (4.2, 42), (99.0, 80)):
        render_recording(run, tmp_path / "a.png", options, film_options(end=end))
        assert Image.open(tmp_path / "a.png").tobytes() == seen[tick].tobytes(), end


@given(
    begin=st.none() | st.floats(0.0, 3.0),
    length=st.floats(0.1, 3.0),
    speed=st.floats(0.1, 20.0),
    fps=st.none() | st.floats(0.5, 60.0),
    step=st.sampled_from([0.02, 0.1, 0.25]),
)
@settings(max_examples=40)
def test_frames_come_at_their_times(
    begin: float | None, length: float, speed: float, fps: float | None, step: float
) -> None:
    first = begin or 0.0
    film = FilmOptions(begin=begin, end=first + length, speed=speed, fps=fps)
    film = FilmOptions(begin=begin, end=film.end, speed=speed, fps=fps_of(film, step))
    assert film.fps is not None
    assert fps is not None or film.fps == min(25.0, speed / step)
    sim, taken = Simulation(step=step), []
    camera = Camera(
        PictureOptions(size=16, scans=False), film, lambda image: taken.append(sim.time)
    )
    while camera.look(sim, sim.time):
        sim.step()
    period = speed / film.fps
    for k, time in enumerate(taken):
        due = first + k * period
        assert due - 1e-6 <= time < due + step + 1e-6, (
            "the first step that is not before its time"
        )

    last = math.floor(film.end / step + 1e-6) * step
    assert (
        len(taken) == pytest.approx((last - first) / period + 0.5, abs=0.501 + 1e-3)
        or last < first
    )


def test_parts_of_a_run(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.webp"
    for film, seconds in (
        ({"begin": 2.0, "end": 4.0}, 2.1),
        ({"begin": 2.0, "end": 4.0, "speed": 4.0}, 0.52),
        ({"end": 1.0, "fps": 50.0}, 1.02),
    ):
        render_recording(run, target, picture_options(**SMALL), film_options(**film))
        assert sum(d for _, d in frames(target)) == pytest.approx(
            1000 * seconds, abs=21
        ), film


def test_where_something_is_lost_the_next_state_is_put_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content of a damaged chunk is unknown.

    From the next complete state on, the frames are as in the run.
    """
    monkeypatch.setattr(output, "CHUNK_BYTES", 1 << 13)
    path, damaged = tmp_path / "run.mcap", tmp_path / "damaged.mcap"
    sim = Simulation(seed=5)
    with sim.record(path):
        drive(sim)
    with Reader(path) as file:
        chunks = file.chunks
    pictures = list[bytes]()
    assert len(chunks) > 5
    for k, chunk in enumerate(chunks[1:], 1):
        data = bytearray(path.read_bytes())
        data[chunk.packed_at + chunk.packed // 2] ^= 0xFF
        damaged.write_bytes(data)
        notes = render_recording(
            damaged, tmp_path / "a.png", picture_options(**SMALL), FilmOptions()
        )
        assert any(
            f"chunk at byte {chunk.at}" in note and "damaged" in note for note in notes
        ), (k, notes)
        # Remember the pictures of damage in the first 5 s: removing a robot at 5.5 s makes the next
        # state a complete one.
        if chunk.end < 5_000_000_000:
            pictures.append(Image.open(tmp_path / "a.png").tobytes())

    render_recording(
        path, tmp_path / "whole.png", picture_options(**SMALL), FilmOptions()
    )
    assert pictures and set(pictures) == {Image.open(tmp_path / "whole.png").tobytes()}


@given(data=st.data())
@settings(max_examples=30)
def test_recordings_of_strangers(
    run: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    found = bytearray(run.read_bytes())
    if data.draw(st.booleans()):
        found = found[: data.draw(st.integers(0, len(found)))]
    for _ in range(data.draw(st.integers(0, 5))):
        if found:
            found[data.draw(st.integers(0, len(found) - 1))] = data.draw(
                st.integers(0, 255)
            )

    folder = tmp_path_factory.mktemp("strange")
    (folder / "a.mcap").write_bytes(found)
    try:
        render_recording(
            folder / "a.mcap", folder / "a.png", picture_options(**SMALL), FilmOptions()
        )
    except RecordingError:
        assert not (folder / "a.png").exists()


def test_what_is_refused(run: Path, tmp_path: Path) -> None:
    options, target = picture_options(**SMALL), tmp_path / "a.gif"
    for more, film, error, said in (
        (
            {"follow": "zoe"},
            {},
            RecordingError,
            'expected a robot "zoe" in the recording at these times',
        ),
        (
            {"scans": ["eve"]},
            {"end": 1.0},
            RecordingError,
            'expected a robot "eve" in the recording at these times',
        ),
        (
            {},
            {"begin": 9.0},
            RecordingError,
            "begin: expected at most 8 s, the end of the recording, found 9 s",
        ),
        ({}, {"fps": 60.0}, ArgumentError, "at most 50 with .gif, found 60"),
        (
            {"size": 20_000, "area": (0.0, 0.0, 1.0, 1.0)},
            {},
            botyard.WorldError,
            "pixels in a movie frame, found",
        ),
    ):
        with pytest.raises(error, match=said):
            render_recording(
                run,
                target,
                picture_options(**{**SMALL, "area": None, **more}),
                film_options(**film),
            )

    sim = Simulation()
    sim.run(3.0)
    with sim.record(tmp_path / "late.mcap"):
        sim.run(1.0)
    with pytest.raises(
        RecordingError,
        match="end: expected at least 3 s, the start of the recording, found 2 s",
    ):
        render_recording(tmp_path / "late.mcap", target, options, film_options(end=2.0))

    (tmp_path / "late.mcap").unlink()
    for wrong, said in (
        ({"begin": 5.0, "end": 4.0}, "end: expected more than begin"),
        ({"speed": 0.0}, "speed: "),
        ({"fps": math.nan}, "fps: "),
        ({"begin": -1.0}, "begin: "),
        ({"fps": 1e9}, "fps: "),
    ):
        with pytest.raises(ArgumentError, match=said):
            film_options(**wrong)  # type: ignore[arg-type]

    with pytest.raises(ArgumentError, match=r"suffix of movies .* or of pictures"):
        render_recording(run, tmp_path / "a.txt", options, FilmOptions())
    with pytest.raises(RecordingError, match=r"budget\.unpacked"):
        render_recording(
            run, target, options, FilmOptions(), budget=Budget(unpacked=1000)
        )

    assert not list(tmp_path.iterdir())
    target.write_text("mine")
    with pytest.raises(KeptFileError):
        render_recording(run, target, options, FilmOptions())


def test_the_command_line_renders(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "a.webp"
    line = [
        "render",
        str(run),
        str(target),
        "--size",
        "160x120",
        "--area=-4,-3,4,3",
        "--from",
        "1s",
        "--to",
        "50ms",
        "--speed",
        "2",
    ]
    code, _, err = call(*line, capsys=capsys)
    assert code == 255 and "--to: expected more than" in err
    line[line.index("50ms")] = "0.05min"
    code, out, err = call(*line, capsys=capsys)
    assert (code, err) == (0, "") and out.endswith("a.webp written\n")
    render_recording(
        run,
        tmp_path / "b.webp",
        picture_options(**SMALL),
        film_options(begin=1.0, end=3.0, speed=2.0),
    )
    assert frames(target) == frames(tmp_path / "b.webp")
    for more, said in (
        (["--scans", "off", "--scans", "bob"], "--scans: expected on, off, or names"),
        (["--size", "5"], "--size: expected"),
        (["--size", "axb"], "expected a width or WIDTHxHEIGHT"),
        (["--area", "1,2,x"], "expected comma-separated numbers"),
        (["--area", "1,2,3"], "--area: expected 4 numbers"),
        (["--trails", "5 parsec"], "expected a time such as"),
        (["--fps", "0"], "--fps: "),
    ):
        code, _, err = call(*line, *more, capsys=capsys)
        assert code == 255 and said in err, err

    assert (
        call("render", str(tmp_path / "none.mcap"), str(target), capsys=capsys)[0] == 2
    )


def test_the_command_line_takes_snapshots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "a.png"
    line = [
        "snapshot",
        "-m",
        "office",
        "-r",
        "p3dx:bob",
        "-r",
        "amigo",
        "--controller",
        "wander",
        "--at",
        "5s",
        "--size",
        "300",
        str(target),
    ]
    code, out, err = call(*line, "--trails", "3s", "--follow", "bob", capsys=capsys)
    assert (code, err) == (0, "") and "a.png written: 5 s, 2 robots" in out
    first = target.read_bytes()
    call(*line, "--trails", "3s", "--follow", "bob", capsys=capsys)
    assert target.read_bytes() == first, "the same options give the same picture"
    call(*line, "--trails", "3s", "--follow", "bob", "--seed", "2", capsys=capsys)
    assert target.read_bytes() != first
    call(
        "snapshot",
        "--nomap",
        "-r",
        "p3at:x",
        "--start",
        "1000,500,90",
        "--size",
        "300",
        "--scans",
        "x",
        str(target),
        capsys=capsys,
    )
    sim = Simulation(Scene())
    sim.add_robot("p3at", "x", pose=Pose(1.0, 0.5, math.pi / 2))
    assert Image.open(target).tobytes() == sim.render(size=300, scans="x").tobytes()
    for more, said in (
        ([], "expected a map (-m FILE)"),
        (["-m", "office", "--follow", "zoe"], 'no robot is named "zoe"'),
        (["--nomap", "--at", "1000h"], "--at: expected at most 1e+06 s"),
        (["--nomap", "--at", "x"], "expected a time such as"),
    ):
        code, _, err = call("snapshot", *more, str(tmp_path / "b.png"), capsys=capsys)
        assert code and said in err, err

    code, _, err = call("snapshot", "--nomap", str(tmp_path / "b.doc"), capsys=capsys)
    assert code == 255 and 'found ".doc"' in err
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
