"""Movies of a part of the run on request of clients: content, limits, end."""

from __future__ import annotations

import io
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence

import botyard
from botyard.control import Caller, CancelMovie, Level, WriteMovie
from botyard.errors import ArgumentError, DeniedError, WorldError
from botyard.pictures.draw import render_still
from botyard.pictures.options import PictureOptions
from botyard.pictures.still import take
from botyard.recording.track import read_track
from botyard.servers.jobs import movies
from botyard.servers.jobs.movies import RecordedMoments
from tests.waiting import PATIENCE, wait

CALLER = Caller("page", Level.OWN, "this page", key=1)
STEPS = 60


def world() -> botyard.Simulation:
    sim = botyard.Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "ann", lasers=["lms200"])
    return sim


class Running:
    """A simulator that has run for six seconds."""

    def __init__(self, running: Any) -> None:
        self.running, self.sim = running, running.sim

    def ask(self, **wish: Any) -> Future[Path]:
        """Request a movie."""
        operation = WriteMovie(**{"begin": 0.0, "end": 6.0, "width": 300} | wish)
        future: Future[Path] = self.running.call(
            lambda: self.running.control.do(CALLER, operation)
        )
        return future

    def present(self) -> Any:
        return self.running.call(lambda: self.running.control.filmer.present)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.chdir(tmp_path)
    sim = world()
    sim.history.keep()
    with botyard.serve(sim, port=0, page=False) as running:
        running.call(lambda: sim.robots["ann"].command(v=0.3))
        running.step(STEPS)
        yield Running(running)


def frames(path: Path) -> list[np.ndarray[Any, Any]]:
    with Image.open(path) as movie:
        return [
            np.asarray(frame.convert("RGB"), np.int16)
            for frame in ImageSequence.Iterator(movie)
        ]


def test_a_movie_shows_what_was(run: Running) -> None:
    """Each frame equals the picture of its moment, to the last pixel."""
    path = run.ask(
        format="webp", begin=1.0, end=5.0, scans=("ann",), movie="drive"
    ).result(PATIENCE)
    assert path == Path.cwd() / "drive.webp"
    found = frames(path)
    options = PictureOptions(size=300, scans=("ann",))
    beside = None
    # Four seconds have one frame every 0.2 s, with both ends.
    assert len(found) == 21
    for k in (0, 10, 20):
        beside = run.sim.history.look(1.0 + 0.2 * k, beside)
        wanted = np.asarray(
            render_still(take(beside, ("ann",)), options).convert("RGB"), np.int16
        )
        assert np.abs(found[k] - wanted).mean() < 2.0

    assert (
        np.abs(found[0] - found[20]).mean() > 2.0 * np.abs(found[20] - wanted).mean()
    ), "it has moved"
    picture = run.ask(
        format="png", end=5.0, scans=("ann",), movie="../../drive"
    ).result(PATIENCE)
    assert picture.parent == Path.cwd()
    assert (np.asarray(Image.open(picture).convert("RGB")) == wanted).all()
    assert run.ask(format="png", end=5.0, movie="drive").result(PATIENCE) != picture, (
        "no file is written over"
    )


def test_a_movie_of_a_recording(run: Running, tmp_path: Path) -> None:
    """It is played separately from the shown one: the world does not change."""
    sim = world()
    with sim.record(tmp_path / "run.mcap"):
        sim.robots["ann"].command(v=0.3)
        sim.step(50)

    run.running.control.filmer.moments = lambda: RecordedMoments(
        read_track(tmp_path / "run.mcap")
    )
    before = run.running.call(lambda: (run.sim.tick, run.sim.digest()))
    found = frames(run.ask(format="gif", end=100.0, fps=10.0).result(PATIENCE))
    assert run.running.call(lambda: (run.sim.tick, run.sim.digest())) == before
    wanted = render_still(
        take(sim, False), PictureOptions(size=300, scans=False)
    ).convert("RGB")
    assert np.abs(found[-1] - np.asarray(wanted, np.int16)).mean() < 3.0


def test_it_is_given_up(run: Running) -> None:
    """No file is left, and the next movie can be made; one at a time."""
    with pytest.raises(WorldError, match="no movie is being made"):
        run.running.call(lambda: run.running.control.do(CALLER, CancelMovie()))
    asked = run.ask(fps=45.0, speed=0.1, width=1920)
    with pytest.raises(WorldError, match="is already being made"):
        run.ask()
    wait(lambda: run.present().part > movies._LOOKED_UP, PATIENCE)
    run.running.call(lambda: run.running.control.do(CALLER, CancelMovie()))
    with pytest.raises(WorldError, match="cancelled"):
        asked.result(PATIENCE)
    assert list(Path.cwd().iterdir()) == [] and run.present() is None
    assert run.ask(format="png").result(PATIENCE).is_file()


def test_what_it_may_cost(run: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    for wish, why in (
        ({"speed": 0.01, "fps": 50.0}, "at most 3000 frames"),
        ({"begin": 7.0, "end": 8.0}, "the history holds only 0.0 s to 6.0 s"),
    ):
        with pytest.raises(WorldError, match=why):
            run.ask(**wish)

    with pytest.raises(ArgumentError, match="end: expected at least begin"):
        run.ask(begin=3.0, end=2.0)
    with pytest.raises(ArgumentError, match=r"fps: expected at least 0\.001"):
        run.ask(fps=1e-9, format="gif")
    with pytest.raises(WorldError, match="nobody"):
        run.ask(follow="nobody", format="gif").result(PATIENCE)
    monkeypatch.setattr(movies, "MAX_BYTES", 10_000)
    with pytest.raises(WorldError, match="MiB"):
        run.ask(format="gif").result(PATIENCE)
    monkeypatch.setattr(movies, "MAX_NUMBERS", 1000)
    with pytest.raises(WorldError, match="its frames take more"):
        run.ask(scans=("ann",)).result(PATIENCE)
    assert list(Path.cwd().iterdir()) == []
    monkeypatch.setattr(movies, "MAX_MOVIES", 1)
    with pytest.raises(WorldError, match="at most 1 movies"):
        run.ask()
    audience = Caller("page", Level.WATCH, "this page", key=2)
    with pytest.raises(DeniedError):
        run.running.call(
            lambda: run.running.control.do(audience, WriteMovie(begin=0.0, end=1.0))
        )


def test_without_history_there_is_none(tmp_path: Path) -> None:
    with (
        botyard.serve(world(), port=0, page=False) as running,
        pytest.raises(WorldError, match="--history"),
    ):
        Running(running).ask()


def test_a_gif_is_complete(run: Running) -> None:
    """Its bytes come in parts."""
    data = (
        run.ask(format="gif", width=900, fps=5.0, speed=1.0)
        .result(PATIENCE)
        .read_bytes()
    )
    assert data[:6] == b"GIF89a" and data[-1:] == b";"
    assert len(list(ImageSequence.Iterator(Image.open(io.BytesIO(data))))) > 10
