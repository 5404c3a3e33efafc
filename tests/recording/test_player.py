"""Playing a recording:

each moment equals the engine's, for any order of moments and other changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.engine.commands import Stop
from botyard.errors import RecordingError
from botyard.formats.budget import Budget
from botyard.geometry import Pose
from botyard.model.scene import Scene
from botyard.recording import track as tracks
from botyard.recording.own_channels import DIGESTS, EVENTS, pack_json
from botyard.recording.player import Player
from botyard.recording.track import Mark, read_track
from botyard.sim.journal import AddRobots, Submit
from botyard.sim.simulation import Simulation
from tests.recording.test_resimulate import crafted, deeds, do, entry, recorded, world

ENDS = 70


class Run:
    """A recorded run with many events, and its digest after each step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.digests: dict[int, int] = {}
        sim = Simulation.load("office", seed=4)
        sim.after_step(lambda _: self.digests.__setitem__(sim.tick, sim.digest()))
        first = sim.add_robot("p3dx", "a", pose=(10.0, 10.0, 0.3))
        first.laser.subscribe("test")
        sim.step(3)
        self.digests[3] = sim.digest()
        with sim.record(path):
            first.command(v=0.4)
            sim.step(17)
            sim.add_robot("seekur", "b", pose=(14.0, 10.0, 0.0))
            sim.fleet.command(v=0.3, w=0.2)
            sim.step(14)
            logging.getLogger("botyard").warning("something is odd")
            sim.replace_scene(Scene(name="void"))
            sim.step(11)
            sim.remove_robot("a")
            sim.robots["b"].claim("joe")
            sim.step(ENDS - 45)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("play") / "run.mcap")


@pytest.fixture(scope="module")
def player(run: Run) -> Player:
    return Player(read_track(run.path))


@given(ticks=st.lists(st.integers(0, ENDS + 10), max_size=6), steps=st.integers(0, 12))
@settings(max_examples=60)
def test_each_moment_is_the_engines(
    run: Run, player: Player, ticks: list[int], steps: int
) -> None:
    sim = player.sim
    for tick in ticks:
        player.seek(tick * sim.dt)
        assert sim.tick == min(max(tick, 3), ENDS)
        assert sim.digest() == run.digests[sim.tick]

    for _ in range(min(steps, ENDS - sim.tick)):
        sim.step()
        assert sim.digest() == run.digests[sim.tick]

    assert not player.corrections


@given(deed=deeds(), tick=st.integers(3, ENDS - 1), back=st.booleans())
@settings(max_examples=40)
def test_what_others_do_meanwhile_is_taken_back(
    run: Run, player: Player, deed: tuple[str, Any], tick: int, back: bool
) -> None:
    player.seek(tick * player.sim.dt)
    for robot in player.sim.robots.values():
        robot.command(v=1.0)
    player.sim.settle()
    if back:
        player.seek(tick * player.sim.dt)
        assert player.sim.digest() == run.digests[tick]

    player.sim.step()
    assert player.sim.digest() == run.digests[tick + 1]
    assert not player.corrections


def test_at_the_end_it_stops_or_begins_again(run: Run) -> None:
    player = Player(read_track(run.path))
    ended: list[int] = []
    player.ended = lambda: ended.append(player.sim.tick)
    player.seek(player.end - 0.2)
    player.sim.step(2)
    assert ended == [ENDS]
    player.sim.step()
    assert player.sim.tick == 4 and player.sim.digest() == run.digests[4]
    player.loop = True
    player.seek(player.end)
    player.sim.step(2)
    assert player.sim.tick == 5 and ended == [ENDS]
    assert (player.begin, player.end) == (pytest.approx(0.3), pytest.approx(7.0))


def test_events_are_told(run: Run) -> None:
    kinds = [
        (mark.kind, round(mark.time, 3), mark.text)
        for mark in read_track(run.path).marks
    ]
    assert kinds == [
        ("command", 0.3, "a: commands of api"),
        ("robot", 2.0, "b added"),
        ("warning", 3.4, "something is odd"),
        ("map", 3.4, "map void"),
        ("robot", 4.5, "a removed"),
        ("client", 4.5, "b is commanded by joe"),
    ]


def test_commands_of_others_are_said_to_have_no_effect(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    player = Player(read_track(run.path))
    for _ in range(3):
        player.sim.robots["a"].command(v=0.1)
    assert caplog.messages == ["a recording is played: commands of api have no effect"]


def test_a_state_that_does_not_come_out_again_is_shown_as_it_was_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    digests: dict[int, int] = {}

    def act(sim: Simulation) -> None:
        sim.after_step(lambda _: digests.__setitem__(sim.tick, sim.digest()))
        sim.step(13)
        sim.core.engine.state.pose[sim.core.engine.rows["a"], 0] += 0.5
        sim.step(17)

    recorded(tmp_path / "run.mcap", act)
    player = Player(read_track(tmp_path / "run.mcap"))
    for tick in range(1, 31):
        player.sim.step()
        assert (player.sim.digest() == digests[tick]) == (tick < 14 or tick >= 20), tick

    assert player.corrections == 1
    assert "tick 20: the simulation does not reproduce a recorded state" in caplog.text


def test_a_ring_with_a_state_that_was_restored_has_no_way_back(tmp_path: Path) -> None:
    path, digests = tmp_path / "ring.mcap", dict[int, int]()
    sim = world()
    with sim.record(path, last=100.0) as recording:
        sim.step(25)
        state = sim.save_state()
        sim.robots["a"].command(v=0.3)
        sim.step(20)
        sim.restore(state)
        sim.after_step(lambda _: digests.__setitem__(sim.tick, sim.digest()))
        sim.step(20)
        recording.save().result(timeout=20)

    track = read_track(path)
    assert [m.tick for m in track.moments] == sorted(m.tick for m in track.moments)
    assert [mark.kind for mark in track.marks if mark.kind == "branch"] == ["branch"]
    player = Player(track)
    assert player.end == pytest.approx(4.5)
    for tick in (45, 30, 44, 26):
        player.seek(tick * sim.dt)
        assert player.sim.digest() == digests[tick], tick

    player.seek(0.0)
    for _ in range(45):
        player.sim.step()
        if player.sim.tick > 25:
            assert player.sim.digest() == digests[player.sim.tick], player.sim.tick

    assert not player.corrections


# -- foreign files


@cache
def _whole(path: Path) -> bytes:
    return path.read_bytes()


@given(data=st.data())
@settings(max_examples=80)
def test_damaged_recordings_are_played_as_far_as_they_are_whole(
    run: Run, tmp_path_factory: Any, data: Any
) -> None:
    whole = bytearray(_whole(run.path))
    if data.draw(st.booleans(), "cut"):
        whole = whole[: data.draw(st.integers(0, len(whole)))]
    for _ in range(data.draw(st.integers(0, 3))):
        if whole:
            whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(
                st.integers(1, 255)
            )

    path = tmp_path_factory.getbasetemp() / "played.mcap"
    path.write_bytes(whole)
    try:
        player = Player(read_track(path))
    except RecordingError:
        return

    for tick in (player.track.end, player.track.begin):
        player.go(tick)
        assert player.sim.tick == tick
        assert player.corrections or player.sim.digest() == run.digests[tick]


CRAFTED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a long way to the next state": (
        lambda path: crafted(
            path, [(DIGESTS, pack_json({"tick": 10**9, "digest": ""}))]
        ),
        "",
    ),
    "events of anything": (
        lambda path: crafted(
            path, [(EVENTS, pack_json({"event": "stall", "robots": [{}] * 5000}))]
        ),
        "",
    ),
    "no event": (
        lambda path: crafted(path, [(EVENTS, b"[" * 1000)]),
        "std_msgs/String",
    ),
}


@pytest.mark.parametrize("what", CRAFTED)
def test_what_was_made_up_is_borne(what: str, tmp_path: Path) -> None:
    make, problem = CRAFTED[what]
    track = read_track(make(tmp_path / "made.mcap"))
    assert [problem in one for one in track.problems] == ([True] if problem else [])
    player = Player(track)
    player.sim.step(3)
    player.seek(5.0)


def test_the_budget_counts(tmp_path: Path) -> None:
    many = crafted(tmp_path / "many.mcap", [entry(Submit("r", Stop()))] * 500)
    with pytest.raises(RecordingError, match="max-read bytes"):
        read_track(many, Budget(bytes=20_000))
    assert len(read_track(many, Budget(bytes=200_000)).entries) == 500
    spec = Simulation().add_robot("p3dx").spec
    crowd = [
        entry(AddRobots(spec, tuple(f"{k}.{i}" for i in range(50)), (Pose(),) * 50))
        for k in range(3)
    ]
    with pytest.raises(RecordingError, match=r"150 robots.*max-read robots"):
        read_track(crafted(tmp_path / "crowd.mcap", crowd), Budget(robots=149))
    with pytest.raises(RecordingError, match="expected a first state, found none"):
        read_track(crafted(tmp_path / "none.mcap", [], state=None))


def test_of_many_events_the_most_frequent_kind_is_thinned_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracks, "MAX_MARKS", 10)
    many = [
        (EVENTS, pack_json({"event": "stall", "robots": [f"r{k}"]})) for k in range(200)
    ]
    many.insert(100, (EVENTS, pack_json({"event": "lost"})))
    marks = read_track(crafted(tmp_path / "many.mcap", many)).marks
    assert (
        len(marks) <= 10
        and any(mark.kind == "warning" for mark in marks)
        and marks[-1] in [Mark(0.0, "stall", f"r{k} stalls") for k in range(190, 200)]
    )


def test_whatever_was_done_is_played(tmp_path: Path) -> None:
    @given(done=st.lists(deeds(), max_size=12))
    @settings(max_examples=8)
    def play(done: list[tuple[str, Any]]) -> None:
        for file in tmp_path.glob("*.mcap"):
            file.unlink()
        sim, digests = world(), list[tuple[int, int]]()
        sim.after_step(lambda _: digests.append((sim.tick, sim.digest())))

        def act(sim: Simulation) -> None:
            made = [0]
            for deed in done:
                do(sim, deed, made)
            sim.step(12)

        recorded(tmp_path / "any.mcap", act, sim)
        player = Player(read_track(sorted(tmp_path.glob("*.mcap"))[0]))
        first = player.sim.tick
        while player.sim.tick < player.track.end:
            player.sim.step()
            assert (player.sim.tick, player.sim.digest()) in digests

        player.seek(first * sim.dt)
        assert not player.corrections

    play()
