"""Recordings of other versions are shown from their ROS messages:

poses are right, and missing parts are reported.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import botyard
from botyard.cli.main import program
from botyard.engine import state as layout
from botyard.errors import BudgetError, RecordingError
from botyard.formats.budget import Budget
from botyard.pictures.filming import film_options, render_recording
from botyard.pictures.options import PictureOptions
from botyard.recording import fallback, resimulate
from botyard.recording.fallback import open_player
from botyard.sim import statehead

STEPS = 60


def other_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write states as a version with other columns."""
    monkeypatch.setattr(statehead, "schema", lambda *_, **__: b"of other")


def other_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write states as a version with another layout."""
    monkeypatch.setattr(statehead, "VERSION", statehead.VERSION + 1)
    monkeypatch.setattr(layout, "READS", (statehead.VERSION,))


def record(
    path: Path, steps: int = STEPS, **options: Any
) -> list[list[tuple[float, ...]]]:
    """Record a run of two robots in the office; return their poses after each step."""
    sim = botyard.Simulation.load("office", seed=2)
    for k, name in enumerate(("ann", "bob")):
        sim.add_robot("p3dx", name, pose=(10.0 + 2.0 * k, 14.0, 0.5 * k))
    poses = []
    with sim.record(path, **options) as recording:
        for robot in sim.robots.values():
            robot.command(v=0.3, w=0.2)
        for _ in range(steps):
            sim.step()
            poses.append([tuple(robot.truth) for robot in sim.robots.values()])
            if sim.tick == 20:
                recording.event("lap", "the first lap")

    return poses


@pytest.mark.parametrize("other", [other_columns, other_version])
def test_robots_are_where_they_were(
    other: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.mcap"
    with monkeypatch.context() as version:
        other(version)
        poses = record(path)

    with pytest.raises(RecordingError):
        resimulate(path)
    player = open_player(path)
    sim, track = player.sim, player.track
    assert (
        "it is shown from its ros messages" in track.problems[0].lower()
        and "--resimulate" in track.problems[0]
    )
    assert list(sim.robots) == ["ann", "bob"]
    assert len(sim.scene.segments) == len(
        botyard.Simulation.load("office").scene.segments
    )
    assert any(
        mark.text == "the first lap" and 1.9 < mark.time < 2.2 for mark in track.marks
    )
    for tick in (55, 20, 37):
        player.seek(tick * 0.1)
        for robot, (x, y, th) in zip(sim.robots.values(), poses[tick - 1], strict=True):
            # Transforms are recorded three times a second; in between, the robot is drawn on chords
            # instead of arcs.
            assert math.dist((robot.truth.x, robot.truth.y), (x, y)) < 0.02
            assert abs(math.remainder(robot.truth.th - th, 2.0 * math.pi)) < 0.05

    assert not player.corrections


def test_the_map_of_ros_when_the_scene_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.mcap"
    with monkeypatch.context() as version:
        other_columns(version)
        record(path, 10)

    def unknown(data: bytes, budget: Budget) -> Any:
        raise RecordingError("written by another version")

    monkeypatch.setattr(fallback, "decode_scene", unknown)
    scene = open_player(path).sim.scene
    office = botyard.Simulation.load("office").scene
    for axis in (0, 1):
        ours, theirs = (
            scene.segments.reshape(-1, 2)[:, axis],
            office.segments.reshape(-1, 2)[:, axis],
        )
        assert ours.min() == pytest.approx(
            theirs.min(), abs=0.11
        ) and ours.max() == pytest.approx(theirs.max(), abs=0.11)


def test_movies_and_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.mcap"
    with monkeypatch.context() as version:
        other_version(version)
        record(path, 20)

    notes = render_recording(
        path, tmp_path / "run.gif", PictureOptions(size=200), film_options()
    )
    assert (
        "shown from its ROS messages" in notes[0]
        and (tmp_path / "run.gif").stat().st_size > 1000
    )
    result = CliRunner().invoke(program, ["replay", str(path), "--resimulate"])
    assert isinstance(result.exception, RecordingError) and "expected version" in str(
        result.exception
    )


def test_without_poses_there_is_nothing_to_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.mcap"
    with monkeypatch.context() as version:
        other_columns(version)
        record(path, 5, topics=["/map"])

    with pytest.raises(RecordingError, match="state"):
        open_player(path)


def test_what_it_may_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.mcap"
    with monkeypatch.context() as version:
        other_columns(version)
        record(path, 30)

    with pytest.raises(BudgetError):
        open_player(path, Budget(entities=10))
    monkeypatch.setattr(fallback, "MAX_STEPS", 20)
    with pytest.raises(RecordingError, match="at most 2 s"):
        open_player(path)


numbers = st.floats(-1e9, 1e9) | st.sampled_from([math.nan, math.inf])


@given(
    st.lists(st.tuples(st.floats(0.0, 100.0), numbers, numbers, numbers), max_size=20),
    st.floats(-10.0, 110.0),
)
def test_a_way_is_between_its_poses(
    found: list[tuple[float, float, float, float]], time: float
) -> None:
    way = fallback._Trajectory()
    for t, *pose in found:
        way.add(t, botyard.Pose(*pose))
    assert way.times == sorted(set(way.times))
    if way.times:
        pose = way.at(time)
        assert (
            min(p.x for p in way.poses) - 1e-6
            <= pose.x
            <= max(p.x for p in way.poses) + 1e-6
        )
        assert all(map(math.isfinite, pose))
