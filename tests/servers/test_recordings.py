"""Recordings of a served simulator:

by options, operations and ROS, and their end with it.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

import botyard
from botyard.control import SaveRecording, StartRecording, StopRecording
from botyard.errors import ArgumentError, WorldError
from botyard.recording import resimulate
from botyard.recording.own_channels import DIGESTS, STATES, TYPES
from botyard.servers.jobs import recordings
from tests.ports import free_port
from tests.recording.test_recorder import again, read, said
from tests.running import BOTYARD, running
from tests.waiting import PATIENCE, wait


def world() -> botyard.Simulation:
    sim = botyard.Simulation(seed=1, step=0.01)
    sim.add_robot("p3dx", "ann", pose=(0.0, 0.0, 0.0))
    sim.add_robot("amigo", "bob", pose=(3.0, 0.0, 0.0))
    return sim


def serve(**options: Any) -> Any:
    return botyard.serve(world(), port=0, page=False, **options)


def topics(path: Path) -> set[str]:
    return {
        m.channel.topic
        for m in read(path)[0]
        if not m.channel.topic.startswith("/botyard/")
    }


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_recording_goes_on_as_long_as_the_simulator(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    with serve(
        record=str(path),
        record_topics=["/tf", "*/odom"],
        record_robots=["b*"],
        record_rate=0.0,
    ) as running:
        running.step(30)
        running.call(lambda: running.sim.robots["bob"].command(v=0.1))
        running.step(70)
        last = running.sim.snapshot.time_us

    messages, *_, reader = read(path)
    assert reader.is_complete and topics(path) == {"/tf", "/bob/odom"}
    assert [m.time for m in messages if m.channel.topic == "/bob/odom"][
        -1
    ] == last * 1000
    assert again(path)[0] >= 1


def test_options_of_recordings(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    with serve(record=str(path), record_split_time=0.5) as running:
        running.step(120)
    assert sorted(p.name for p in tmp_path.glob("*.mcap")) == [
        "run.mcap",
        "run_2.mcap",
        "run_3.mcap",
    ]
    path.write_bytes(b"somebody's own")
    with (
        pytest.raises(ArgumentError, match="was not written by botyard"),
        serve(record=str(path)),
    ):
        pass

    with serve(record=str(path), force=True) as running:
        running.step(3)
    assert read(path)[3].is_complete
    for wrong, text in (
        ({"record_split": 3.0}, "expected record as well"),
        ({"record_on_stall": True}, "as well"),
        (
            {"record": "x.mcap", "record_last": 3.0, "record_split_time": 3.0},
            "cannot be split",
        ),
        ({"record": "nowhere/x.mcap"}, "nowhere"),
    ):
        with pytest.raises(ArgumentError, match=text), serve(**wrong):
            pass


def test_a_recording_after_a_crash_leaves_the_one_before_it(tmp_path: Path) -> None:
    """Users want to see the events before the crash."""
    path = tmp_path / "run.mcap"
    # An empty file counts as a started recording of botyard, which would be replaced.
    path.touch()
    line = [
        *BOTYARD,
        "run",
        "--nomap",
        "-r",
        "p3dx",
        "--no-gui",
        "--noninteractive",
        "--no-crash-restart",
        "--fast",
        "--duration",
        "1",
        "--record",
        str(path),
        "-p",
        str(free_port(1)),
        "--restarting-after-crash",
    ]
    subprocess.run(line, check=True, timeout=PATIENCE, capture_output=True)
    assert not path.stat().st_size and read(tmp_path / "run_again.mcap")[3].is_complete


def test_operations_begin_save_and_end_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "MAX_RECORDINGS", 4)
    with serve() as running:
        with pytest.raises(WorldError, match="nothing is being recorded"):
            running.do(StopRecording())
        path = running.do(StartRecording(recording="../over/there"))
        assert path == tmp_path / "there.mcap", "a name chooses no folder"
        with pytest.raises(WorldError, match="already being recorded"):
            running.do(StartRecording())
        with pytest.raises(WorldError, match="written continuously"):
            running.do(SaveRecording())
        assert running.do(StopRecording()) == path and read(path)[3].is_complete
        kept = running.do(StartRecording(recording="there", last=5.0))
        running.step(50)
        saved = running.do(SaveRecording())
        assert not kept.exists() or saved == kept
        assert any(m.channel.topic == STATES for m in read(saved)[0])
        running.do(SaveRecording())
        with pytest.raises(WorldError, match="at most 4"):
            running.do(SaveRecording())
        running.do(StopRecording())


@contextmanager
def served_to_ros() -> Iterator[tuple[Any, Callable[..., dict[str, Any]]]]:
    """Return a served world, and a function that calls one of its services by
    rosbridge.
    """
    with (
        serve(rosbridge=0) as running,
        connect("ws://{}:{}".format(*running.interfaces["rosbridge"])) as line,
    ):
        # A paused world makes no steps itself.
        running.pause()

        def call(name: str, /, **values: Any) -> dict[str, Any]:
            line.send(
                json.dumps(
                    {
                        "op": "call_service",
                        "id": name,
                        "service": f"/botyard/{name}",
                        "args": values,
                    }
                )
            )
            answer = json.loads(line.recv(PATIENCE))
            assert answer["id"] == name and answer["result"], answer
            return dict(answer["values"])

        yield running, call


def test_ros_begins_and_ends_recordings(tmp_path: Path) -> None:
    with served_to_ros() as (running, call):
        assert call("stop_recording") == {
            "success": False,
            "message": "nothing is being recorded",
            "file": "",
        }
        begun = call("start_recording", name="ros", last=0.0)
        assert begun == {
            "success": True,
            "message": "",
            "file": str(tmp_path / "ros.mcap"),
        }
        assert "written continuously" in call("save_recording", name="")["message"]
        assert call("stop_recording") == begun
        assert read(tmp_path / "ros.mcap")[3].is_complete
        some = call(
            "start_recording",
            name="some",
            last=0.0,
            topics=["*/odom", "/tf"],
            robots=["b*"],
        )
        running.step(20)
        assert call("stop_recording") == some
        topics = {m.channel.topic for m in read(Path(some["file"]))[0]} - TYPES.keys()
        assert topics == {"/bob/odom", "/tf"}, topics
        assert not call("start_recording", name="long", last=0.0, topics=["x" * 201])[
            "success"
        ]
        assert not call("start_recording", name="many", last=0.0, robots=["x"] * 101)[
            "success"
        ]


def test_ros_chooses_rates_by_topics(tmp_path: Path) -> None:
    with served_to_ros() as (running, call):
        begun = call(
            "start_recording",
            topics=["*/odom", "/tf"],
            rate_topics=["/bob/*", "/tf"],
            rates=[0.0, 20.0],
        )
        running.step(50)
        assert call("stop_recording") == begun and begun["success"]
        counts = Counter(m.channel.topic for m in read(Path(begun["file"]))[0])
        assert (counts["/bob/odom"], counts["/tf"], counts["/ann/odom"]) == (
            51,
            11,
            1,
        ), "the last as usual"
        for wrong, text in (
            (
                {"rate_topics": ["/tf"], "rates": []},
                "one rate for each of 1 rate_topics, found 0",
            ),
            (
                {"rate_topics": ["/tf", "/tf"], "rates": [1.0, 2.0]},
                "different patterns",
            ),
            ({"rate_topics": ["/tf"], "rates": [-1.0]}, "rate: "),
            ({"rate_topics": ["/tf"], "rates": [2e6]}, "rate: "),
            ({"rate_topics": ["x" * 201], "rates": [1.0]}, "200"),
            (
                {"rate_topics": [f"/{n}" for n in range(101)], "rates": [1.0] * 101},
                "at most 100 patterns, found 101",
            ),
            (
                {"rate_topics": ["odom"], "rates": [1.0]},
                "rate: .*start with / or a wildcard.*found 'odom'",
            ),
            ({"on_stall": True}, "on_stall: expected `last`"),
        ):
            answer = call("start_recording", **wrong)
            assert not answer["success"] and re.search(text, answer["message"]), (
                wrong,
                answer,
            )

        assert list(tmp_path.iterdir()) == [Path(begun["file"])]


def test_what_ros_keeps_is_saved_when_a_robot_stalls_and_replaces_nothing(
    tmp_path: Path,
) -> None:
    with served_to_ros() as (running, call):
        call("start_recording", name="kept_2")
        call("stop_recording")
        assert call("start_recording", name="kept", last=60.0, on_stall=True)["success"]
        asked = Path(call("save_recording")["file"])
        assert asked == tmp_path / "kept.mcap"
        before = {path: path.read_bytes() for path in tmp_path.glob("*.mcap")}
        assert before.keys() == {asked, tmp_path / "kept_2.mcap"}
        ann = running.sim.robots["ann"]
        # Let ann drive against bob.
        running.call(lambda: ann.command(v=1.0))
        for _ in range(100):
            running.step(10)
            if running.call(lambda: ann.stalled):
                break

        running.step(180)
        assert {
            path: path.read_bytes() for path in tmp_path.glob("*.mcap")
        } == before, "two seconds later"
        running.step(21)
        assert call("stop_recording")["success"]
        assert {path: path.read_bytes() for path in before} == before
        (path,) = set(tmp_path.iterdir()) - before.keys()
        assert path == tmp_path / "kept_3.mcap"
        messages, *_, reader = read(path)
        (stall,) = [event for event in said(messages) if event["event"] == "stall"]
        assert reader.is_complete and "ann" in stall["robots"]
        assert messages[-1].time >= (stall["tick"] + 200) * 10_000_000


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_the_file_as_it_should(number: str, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    args = [
        "--nomap",
        "-r",
        "p3dx:ann",
        "--no-gui",
        "-p",
        str(free_port(1)),
        "--record",
        str(path),
    ]
    with running(*args) as (process, _):
        wait(lambda: path.stat().st_size > 0)
        process.send_signal(getattr(signal, number))
        process.wait(PATIENCE)

    messages, *_, reader = read(path)
    assert reader.is_complete and said(messages)[-1]["event"] == "end"
    assert again(path)[1]


def test_the_run_of_a_killed_simulator_comes_out_again(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    args = [
        "--nomap",
        "-r",
        "p3dx:ann",
        "--no-gui",
        "-p",
        str(free_port(1)),
        "--record",
        str(path),
    ]

    def digests() -> int:
        return len(said(read(path)[0], DIGESTS))

    with running(*args) as (process, _):
        wait(lambda: path.stat().st_size > 0 and digests() > 2, pause=0.1)
        before = digests()
        process.kill()
        process.wait(PATIENCE)

    proof = resimulate(path)
    assert not read(path)[3].is_complete and digests() >= before > 2
    assert proof.divergence is None, str(proof.divergence)
