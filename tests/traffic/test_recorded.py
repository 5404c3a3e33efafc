"""Traffic runs as recordings:

read by the package's reader, played, and re-simulated.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import botyard
from botyard.cli.main import program
from botyard.errors import ArgumentError, KeptFileError
from botyard.recording.player import Player
from botyard.recording.track import read_track
from botyard.traffic.engine import Traffic
from botyard.traffic.generate import generate
from botyard.traffic.motion import Path2, motions
from botyard.traffic.outcome import Outcome
from botyard.traffic.recorded import STEP_S, write_recording
from botyard.traffic.replay import lanes
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.registry import find_supervisor


def run(family: str = "crossings", robots: int = 4, name: str = "bankers") -> Outcome:
    return Traffic(generate(family, robots), find_supervisor(name), Rules()).run()


@pytest.mark.parametrize(
    ("family", "name"), [("crossings", "bankers"), ("deadlock", "fcfs")]
)
def test_robots_are_where_the_run_had_them(
    family: str, name: str, tmp_path: Path
) -> None:
    """At every tenth of a second; every event has its time."""
    out, path = run(family, 4, name), tmp_path / "run.mcap"
    write_recording(out, path)
    player = Player(read_track(path))
    ways = [
        (Path2(lane), motion)
        for lane, motion in zip(lanes(out.task), motions(out), strict=True)
    ]
    for time in (1.0, 3.0, out.time / 2, out.time):
        tick = round(min(time, out.time) / STEP_S)
        player.seek(tick * STEP_S)
        at = np.array([min(tick * STEP_S, out.time)])
        wanted = [way.at(motion.place(at))[0] for way, motion in ways]
        assert player.sim.poses[:, :2] == pytest.approx(np.array(wanted), abs=1e-6)

    loaded = botyard.recording.load(path)
    rows = [row for row in out.events.rows()]
    said = [e for e in loaded.events if "robot" in e.values]
    assert len(said) == len(rows)
    for event, row in zip(said, rows, strict=True):
        assert event.kind == row["kind"] and event.values["robot"] == row["robot"]
        assert (
            event.values["t"] == row["t"]
            and row["t"] - 1e-9 <= event.time <= row["t"] + 2 * STEP_S
        )

    assert (
        loaded.events[-2].kind == "end of the run"
        and loaded.events[-2].values["text"] == out.describe()
    )
    assert any("may enter sector" in mark.text for mark in player.track.marks)


def test_pages_and_programs_list_the_robots_as_robots(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    write_recording(run(robots=3), path)
    player = Player(read_track(path))
    # The model `thing` would be a moving obstacle, which recordings have no topics of.
    models = {robot.name: robot.spec.name for robot in player.sim.robots.values()}
    assert models == dict.fromkeys(["traffic0", "traffic1", "traffic2"], "vehicle")
    assert botyard.recording.load(path).robots == ("traffic0", "traffic1", "traffic2")


def test_the_command_line(tmp_path: Path) -> None:
    """Between sectors and on robots; the re-simulation has the same digests."""
    task = tmp_path / "task.json"
    runner = CliRunner()
    assert (
        runner.invoke(
            program, ["traffic", "generate", "crossings", "-n", "3", "-o", str(task)]
        ).exit_code
        == 0
    )
    for more in ([], ["--on-robots", "p3dx"]):
        path = tmp_path / f"run{len(more)}.mcap"
        result = runner.invoke(
            program, ["traffic", "run", str(task), "--record", str(path), *more]
        )
        assert result.exit_code == 0, result.output
        again = runner.invoke(program, ["replay", str(path), "--resimulate"])
        assert again.exit_code == 0, again.output
        kinds = {event.kind for event in botyard.recording.load(path).events}
        assert {
            "critical",
            "grant",
            "enter",
            "release",
            "finish",
            "end of the run",
        } <= kinds

    other = tmp_path / "mine.mcap"
    other.write_text("mine")
    result = runner.invoke(
        program, ["traffic", "run", str(task), "--record", str(other)]
    )
    assert result.exit_code != 0 and other.read_text() == "mine"


def test_files_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    path.write_text("mine")
    with pytest.raises(KeptFileError):
        write_recording(run(), path)
    write_recording(run(), path, overwrite=True)


def test_events_of_a_program(tmp_path: Path) -> None:
    sim = botyard.Simulation()
    sim.add_robot(pose=(0, 0, 0))
    with sim.record(tmp_path / "run.mcap") as recording:
        sim.step(10)
        recording.event("lap", "the first lap", number=1, times=[1.5, 2])
        for kind in ("", "end", 3, "a\nb"):
            with pytest.raises(ArgumentError, match="kind"):
                recording.event(kind)  # type: ignore[arg-type]

        with pytest.raises(ArgumentError, match="values"):
            recording.event("x", y=object())
        sim.step(5)

    (event,) = [
        e
        for e in botyard.recording.load(tmp_path / "run.mcap").events
        if e.kind == "lap"
    ]
    assert event.time == pytest.approx(1.0) and event.tick == 10
    assert event.values == {"text": "the first lap", "number": 1, "times": [1.5, 2]}
    assert ("lap", "the first lap") not in Player(
        read_track(tmp_path / "run.mcap")
    ).track.marks
    assert [
        m.text
        for m in Player(read_track(tmp_path / "run.mcap")).track.marks
        if m.kind == "event"
    ] == ["the first lap"]
