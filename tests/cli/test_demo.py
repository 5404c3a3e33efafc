"""Shows of ``botyard demo``: each does what its sentence says, and is filmed."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from botyard.cli.demo import ShowParam, command
from botyard.demos import crowd, deadlock, learn, push
from botyard.demos.catalog import SHOWS
from botyard.errors import CommandLineError
from botyard.traffic.outcome import Ending
from tests.ports import free_port


@pytest.mark.parametrize("name", SHOWS)
def test_a_show_is_filmed(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    line = [name, "--headless", "-o", str(folder), "--seconds", "2s"]
    result = CliRunner().invoke(command, line, catch_exceptions=False)
    assert SHOWS[name].sentence in result.output
    with Image.open(folder / f"{name}.gif") as film:
        frames = getattr(film, "n_frames", 1)
        assert frames > 2
        first = film.convert("RGB").tobytes()
        film.seek(frames - 1)
        assert film.convert("RGB").tobytes() != first
    with Image.open(folder / f"{name}.png") as still:
        assert still.width == film.width
        assert len(still.convert("RGB").getcolors(1 << 20) or ()) > 5


def test_the_list_has_a_sentence_for_each_show() -> None:
    output = CliRunner().invoke(command, [], catch_exceptions=False).output
    for name, show in SHOWS.items():
        assert re.search(rf"^{name} +{re.escape(show.sentence)}", output, re.MULTILINE)


def test_wrong_command_lines_are_explained(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["ofice"])
    assert 'did you mean "office"?' in result.output
    for line, message in (
        (["--headless"], "expected NAME"),
        (["push", "--headless", "--seconds", "0s"], "--seconds: expected more than 0"),
    ):
        with pytest.raises(CommandLineError, match=message):
            CliRunner().invoke(command, line, catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_the_shell_completes_names() -> None:
    found = ShowParam().shell_complete(None, None, "d")  # type: ignore[arg-type]
    assert [(c.value, c.help) for c in found] == [
        ("deadlock", SHOWS["deadlock"].sentence)
    ]


def test_one_side_deadlocks_and_the_other_one_completes() -> None:
    sim, sides = deadlock.make(1)
    while None in sides.endings:
        sim.step()
        assert sim.time < 100.0
    assert sides.endings == [Ending.DEADLOCK, Ending.COMPLETED]
    assert [run.supervisor.guarantee for run in sides.runs] == [
        "no collision; can deadlock",
        "no collision; no deadlock",
    ]
    sim.run(deadlock.PAUSE_S + 1.0)
    assert sides.endings == [None, None], "the show repeats"


def test_three_robots_push_the_crate_and_two_do_not() -> None:
    sim = push.make(1)
    sim.run(22.0)
    rows, pose = sim.snapshot.rows, sim.snapshot.state.pose
    assert pose[rows["crate"], 1] == pytest.approx(push.GOALS[0][1], abs=0.4)
    weak = push.make(1)
    weak.robots["red_p3dx"].command.enable(False)
    weak.hold("red_p3dx")
    weak.run(22.0)
    rows, pose = weak.snapshot.rows, weak.snapshot.state.pose
    assert pose[rows["crate"], 1] == pytest.approx(push.GOALS[-1][1], abs=0.1)


def test_policies_improve() -> None:
    sim, evolution = learn.make(1)
    sim.run(60.0)
    assert len(evolution.mean) >= 5
    assert evolution.mean[-1] > 2.0 * evolution.mean[0]
    assert evolution.best[-1] >= evolution.best[0]


def test_the_crowd_changes_sides_without_contacts() -> None:
    sim, driver = crowd.make(1)
    stalls = 0
    while not driver.crossings:
        sim.step()
        stalls += int(sim.fleet.stalled.sum())
        assert sim.time < 60.0
    assert stalls < 10


def test_a_show_is_served_on_the_page() -> None:
    line = [sys.executable, "-m", "botyard", "demo", "push", "--no-browser"]
    with subprocess.Popen(
        [*line, "-p", str(free_port(3))], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = [process.stdout.readline() for _ in range(3)]
            page = said[2].removeprefix("page: ").strip()
            assert said[0] == f"botyard demo push: {SHOWS['push'].sentence}.\n"
            with urllib.request.urlopen(page.partition("#")[0]) as answer:
                assert b"<html" in answer.read()
        finally:
            process.terminate()
            process.communicate()
        assert process.returncode in (0, 143)
