"""Recordings:

independent readers find the engine's values, a run can be repeated, and errors end only
the recording.
"""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader

from botyard.errors import ArgumentError, BusyFileError, KeptFileError, NotNowError
from botyard.model.scene import Scene
from botyard.recording import codec, frames, output, own_channels, recorder, writer
from botyard.recording import resimulate as prove_run
from botyard.recording.mcap import Attachment
from botyard.recording.own_channels import (
    DIGESTS,
    EVENTS,
    JOURNAL,
    STATES,
    unpack_bytes,
    unpack_json,
)
from botyard.recording.reader import Message, Reader
from botyard.recording.recorder import Recorder
from botyard.recording.start import choose
from botyard.sim.journal import Entry, Restore, SubmitEach
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Simulation
from tests.test_state import SCENE
from tests.waiting import PATIENCE, wait

ALL_STEPS = {"rate": 0.0}


def world(robots: int = 2, read: bool = True) -> Simulation:
    sim = Simulation(SCENE, seed=3)
    for k in range(robots):
        robot = sim.add_robot("p3dx", f"r{k}", pose=(-3.0 + 2.0 * k, -1.0, 0.3 * k))
        if read:
            robot.laser.subscribe("test")

    return sim


def drive(sim: Simulation, steps: int) -> None:
    for k in range(steps):
        if k % 10 == 0:
            for i, robot in enumerate(sim.robots.values()):
                robot.command(v=0.1 + 0.02 * i, w=0.3 * math.sin(k))

        sim.step()


def read(
    path: Path,
) -> tuple[list[Message], dict[str, Attachment], dict[str, str], Reader]:
    """Return all entries that our own reader finds."""
    with Reader(path) as reader:
        messages = list(reader.messages())
        attachments = {
            place.name: reader.attachment(place) for place in reader.attachments
        }

    return messages, attachments, dict(reader.metadata["botyard"]), reader


def said(messages: list[Message], topic: str = EVENTS) -> list[dict[str, Any]]:
    return [unpack_json(m.data) for m in messages if m.channel.topic == topic]


def last_of(entry: Entry) -> int:
    """Return the number of the last change of an entry, which may be several commands."""
    return entry.order + (
        len(entry.change.names) - 1 if isinstance(entry.change, SubmitEach) else 0
    )


def again(path: Path) -> tuple[int, int]:
    """Run a recording again; return the number of compared digests, and the last one."""
    messages, attachments, _, reader = read(path)
    assert reader.is_complete, reader.problems
    setup = codec.decode_setup(attachments["setup"].data)
    sim = Simulation(
        codec.decode_scene(attachments["scene"].data),
        seed=setup.seed,
        step=setup.step,
        odometry_error=setup.odometry_error,
        sensor_noise=setup.sensor_noise,
    )
    sim.core.states.know(
        [
            codec.decode_model(a.data)
            for name, a in attachments.items()
            if name.startswith("model")
        ]
    )
    first = next(unpack_bytes(m.data) for m in messages if m.channel.topic == STATES)
    assert frames.is_keyframe(first)
    sim.restore(frames.decode(first, None))
    digests = {
        (d["tick"], d["order"]): int(d["digest"], 16) for d in said(messages, DIGESTS)
    }
    entries = [
        codec.decode_entry(unpack_bytes(m.data))
        for m in messages
        if m.channel.topic == JOURNAL
    ]
    entries = [one for one in entries if not isinstance(one.change, Restore)]
    last_tick, last_order = list(digests)[-1]
    compared, begin = 0, sim.tick
    for k, digest in enumerate(
        resimulate(sim, [e for e in entries if e.order <= last_order], last_tick)
    ):
        order = max((last_of(e) for e in entries if e.tick <= begin + k), default=0)
        known = digests.get((begin + k + 1, order))
        if known is not None:
            assert digest == known, f"tick {begin + k + 1}"
            compared += 1

    assert sim.digest() == digests[last_tick, last_order]
    return compared, sim.digest()


def test_independent_readers_find_what_the_engine_did(tmp_path: Path) -> None:
    sim, path = world(), tmp_path / "run.mcap"
    truth: dict[int, Any] = {}
    with sim.record(path, **ALL_STEPS) as recording:
        for k in range(60):
            if k == 20:
                sim.add_robot("amigo", "late", pose=(0.0, 2.0, 1.0))
            sim.robots["r0"].command(v=0.01 * k, w=0.2)
            sim.step()
            ns = sim.snapshot.time_us * 1000
            truth[ns] = {
                name: (
                    robot.odom,
                    robot.truth,
                    robot.velocity,
                    robot.laser.ranges.copy() if name != "late" else None,
                )
                for name, robot in sim.robots.items()
            }

    assert (
        not recording.error and not recording.lost and list(recording.files) == [path]
    )
    counts: Counter[str] = Counter()
    with path.open("rb") as file:
        reader = make_reader(
            file, validate_crcs=True, decoder_factories=[DecoderFactory()]
        )
        summary = reader.get_summary()
        topics = [
            c.topic for c in summary.channels.values() if c.message_encoding == "cdr"
        ]
        for _, channel, message, value in reader.iter_decoded_messages(topics=topics):
            counts[channel.topic] += 1
            if message.log_time not in truth or not channel.topic.endswith(
                ("/odom", "/base_scan", "_truth")
            ):
                continue

            assert (
                value.header.stamp.sec * 10**9 + value.header.stamp.nanosec
                == message.log_time
            )
            odom, true, velocity, ranges = truth[message.log_time][
                channel.topic.split("/")[1]
            ]
            if channel.topic.endswith("/base_scan"):
                np.testing.assert_array_equal(
                    np.array(value.ranges, np.float32), ranges.astype(np.float32)
                )
                continue

            pose = true if channel.topic.endswith("_truth") else odom
            place, turn = value.pose.pose.position, value.pose.pose.orientation
            assert (place.x, place.y) == (pose.x, pose.y)
            assert 2.0 * math.atan2(turn.z, turn.w) == pytest.approx(pose.th, abs=1e-12)
            assert (value.twist.twist.linear.x, value.twist.twist.angular.z) == (
                velocity.vx,
                velocity.w,
            )

        assert counts["/r0/odom"] == 61 and counts["/r1/base_pose_ground_truth"] == 61
        assert (
            counts["/r0/base_scan"] == counts["/r1/base_scan"] == 60
            and counts["/late/odom"] == 40
        )
        assert (
            counts["/r0/cmd_vel"] == 60 and counts["/tf"] == 61 and counts["/map"] == 1
        )
        assert "/late/base_scan" not in counts, "nobody reads it"
        assert summary.statistics.message_count == sum(counts.values()) + sum(
            n
            for c, n in summary.statistics.channel_message_counts.items()
            if summary.channels[c].topic not in topics
        )

    with AnyReader([path]) as bag:
        found: Counter[str] = Counter()
        for connection, stamp, data in bag.messages(
            [c for c in bag.connections if c.msgtype.startswith("nav_msgs/")]
        ):
            value = bag.deserialize(data, connection.msgtype)
            found[connection.topic] += 1
            if connection.topic == "/r1/odom" and stamp in truth:
                assert value.pose.pose.position.x == truth[stamp]["r1"][0].x

        assert found["/r1/odom"] == 61


def test_transforms_lead_from_the_map_to_the_true_pose(tmp_path: Path) -> None:
    sim, path = world(1, read=False), tmp_path / "run.mcap"
    with sim.record(path, rate=0.0):
        drive(sim, 20)
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        last = [value for *_, value in reader.iter_decoded_messages(topics=["/tf"])][-1]

    placed = {
        t.child_frame_id: (t.header.frame_id, t.transform) for t in last.transforms
    }
    assert placed["r0/base_link"][0] == "r0/odom" and placed["r0/odom"][0] == "map"
    outer, inner = placed["r0/odom"][1], placed["r0/base_link"][1]
    turn = 2.0 * math.atan2(outer.rotation.z, outer.rotation.w)
    x, y = inner.translation.x, inner.translation.y
    truth = sim.robots["r0"].truth
    assert outer.translation.x + math.cos(turn) * x - math.sin(
        turn
    ) * y == pytest.approx(truth.x, abs=1e-9)
    assert outer.translation.y + math.sin(turn) * x + math.cos(
        turn
    ) * y == pytest.approx(truth.y, abs=1e-9)


def test_a_run_is_repeated_from_its_recording(tmp_path: Path) -> None:
    sim = world()
    drive(sim, 15)
    with sim.record(tmp_path / "run.mcap"):
        drive(sim, 30)
        sim.add_robot("seekur", "big", pose=(0.0, 2.0, 0.0))
        drive(sim, 12)
        sim.fleet.command(v=0.1)
        sim.put("r1", (2.0, 2.5, 1.0))
        sim.remove_robot("r0")
        drive(sim, 5)

    compared, digest = again(tmp_path / "run.mcap")
    assert compared >= 3 and digest == sim.digest()


def test_recording_changes_nothing(tmp_path: Path) -> None:
    digests = []
    for is_recorded in (False, True):
        sim = world()
        with (
            sim.record(tmp_path / "run.mcap", topics=["*"], **ALL_STEPS)
            if is_recorded
            else open(os.devnull)
        ):
            drive(sim, 30)
            digests.append(sim.digest())

    assert digests[0] == digests[1]


def test_sensors_that_nobody_reads_rest_unless_their_topic_is_named(
    tmp_path: Path,
) -> None:
    sim = world(read=False)
    with sim.record(tmp_path / "usual.mcap"):
        sim.step(3)
        assert sim.fleet.subscriptions == 0

    assert not any(
        m.channel.topic.endswith("scan") for m in read(tmp_path / "usual.mcap")[0]
    )
    with sim.record(tmp_path / "named.mcap", topics=["/r1/base_scan", "/tf"]):
        sim.step(3)
        assert sim.fleet.subscriptions == 1
        new = sim.add_robot("p3dx", "r1b")
        sim.step(2)
        assert sim.fleet.subscriptions == 1 and new.laser.spec

    assert sim.fleet.subscriptions == 0
    topics = {
        m.channel.topic for m in read(tmp_path / "named.mcap")[0]
    } - own_channels.TYPES.keys()
    assert topics == {"/r1/base_scan", "/tf"}


def test_robots_and_rates_are_chosen(tmp_path: Path) -> None:
    sim = world(3)
    with sim.record(
        tmp_path / "run.mcap",
        robots=["r[02]"],
        rate={"*/odom": 1.0, "/tf": 0.0, "*": 5.0},
    ):
        drive(sim, 50)

    counts = Counter(m.channel.topic for m in read(tmp_path / "run.mcap")[0])
    assert (
        counts["/r0/odom"] == 6
        and counts["/tf"] == 51
        and counts["/r2/base_scan"] == 26
    )
    assert not any(topic.startswith("/r1/") for topic in counts)


def test_a_scan_is_as_its_laser_is_set(tmp_path: Path) -> None:
    sim = world(1)
    with sim.record(tmp_path / "run.mcap", **ALL_STEPS):
        sim.step(2)
        sim.robots["r0"].lasers[0].configure(-0.5, 0.01, 101)
        sim.step(2)

    with (tmp_path / "run.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        scans = [v for *_, v in reader.iter_decoded_messages(topics=["/r0/base_scan"])]

    assert [len(s.ranges) for s in scans] == [181, 181, 101, 101]
    assert scans[-1].angle_min == pytest.approx(-0.5) and scans[
        -1
    ].angle_increment == pytest.approx(0.01)


def test_files_are_split_and_each_stands_for_itself(tmp_path: Path) -> None:
    sim = world()
    (tmp_path / "run_3.mcap").write_bytes(b"somebody's own")
    with sim.record(tmp_path / "run.mcap", split=2.0) as recording:
        drive(sim, 65)
    assert [p.name for p in recording.files] == [
        "run.mcap",
        "run_2.mcap",
        "run_4.mcap",
        "run_5.mcap",
    ]
    for path in recording.files:
        messages = read(path)[0]
        assert (
            frames.is_keyframe(unpack_bytes(messages[0].data))
            and messages[0].channel.topic == STATES
        )
        assert {"/tf_static", "/map"} <= {m.channel.topic for m in messages}

    assert sum(again(path)[0] for path in recording.files) >= 3
    assert (tmp_path / "run_3.mcap").read_bytes() == b"somebody's own"
    with sim.record(tmp_path / "small.mcap", split_mb=0.2) as recording:
        for _ in range(12):
            drive(sim, 20)
            recording._writer.call(lambda out: out.flush() or Path()).result(20)  # type: ignore[attr-defined]

    assert len(recording.files) > 2
    assert all(path.stat().st_size < 2e6 for path in recording.files)


def test_a_ring_keeps_the_last_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "botyard")
    sim = world()
    path = tmp_path / "last.mcap"
    with sim.record(path, last=5.0) as ring:
        drive(sim, 200)
        assert not path.exists()
        assert ring.save().result(20) == path
        drive(sim, 20)
        assert ring.save().result(20) == tmp_path / "last_2.mcap"
        assert ring.save(tmp_path / "other.mcap").result(20).exists()
        (tmp_path / "own.mcap").write_bytes(b"x")
        assert isinstance(ring.save(tmp_path / "own.mcap").exception(20), KeptFileError)

    assert list(ring.files) == [path, tmp_path / "last_2.mcap", tmp_path / "other.mcap"]
    messages = read(path)[0]
    assert frames.is_keyframe(unpack_bytes(messages[0].data))
    assert (
        14.0 <= messages[0].time / 1e9 <= 15.0 and messages[-1].time == 20_000_000_000
    )
    assert again(path)[0] >= 4
    with sim.record(tmp_path / "unused.mcap", last=5.0):
        sim.step()
    assert (
        "recorded: no file" in caplog.text and not (tmp_path / "unused.mcap").exists()
    )
    with (
        sim.record(tmp_path / "plain.mcap") as plain,
        pytest.raises(NotNowError, match="written to its file"),
    ):
        plain.save()

    with pytest.raises(NotNowError, match="has ended"):
        ring.save()


def test_a_ring_is_saved_when_a_robot_stalls(tmp_path: Path) -> None:
    sim = world(1, read=False)
    with sim.record(tmp_path / "stall.mcap", last=10.0, on_stall=True) as ring:
        sim.robots["r0"].command(v=0.5)
        for _ in range(400):
            sim.step()
            if sim.robots["r0"].stalled:
                break

        sim.step(21)
        wait(lambda: bool(ring.files))

    messages = read(ring.files[0])[0]
    (stall,) = [event for event in said(messages) if event["event"] == "stall"]
    assert stall["robots"] == ["r0"]
    assert messages[-1].time / 1e8 >= stall["tick"] + 20


def test_a_save_of_its_own_does_not_replace_what_was_saved(tmp_path: Path) -> None:
    sim, path = world(1, read=False), tmp_path / "ring.mcap"
    with sim.record(path, last=10.0) as ring:
        assert ring.save(path).result(PATIENCE) == path
        assert ring.save().result(PATIENCE) == tmp_path / "ring_2.mcap"
        assert ring.save().result(PATIENCE) == tmp_path / "ring_3.mcap"


def test_a_restored_state_begins_a_new_file(tmp_path: Path) -> None:
    sim = world()
    drive(sim, 10)
    state = sim.save_state()
    with sim.record(tmp_path / "run.mcap", **ALL_STEPS) as recording:
        drive(sim, 30)
        sim.restore(state)
        drive(sim, 12)

    assert len(recording.files) == 2
    first, second = (read(path)[0] for path in recording.files)
    assert (
        first[-1].time == second[0].time + 3_000_000_000
        and second[-1].time == 2_200_000_000
    )
    assert said(second)[0]["event"] == "branch"
    assert sum(m.channel.topic == "/r0/odom" for m in second) == 12
    assert [again(path)[1] for path in recording.files][1] == sim.digest()


def test_going_on_from_an_earlier_moment_begins_a_new_file(tmp_path: Path) -> None:
    """With a client, another map since, and commands that the branch drops:

    the new file is a separate run that re-simulates.
    """
    sim = world()
    sim.history.keep()
    sim.robots["r0"].claim("pioneer")
    with sim.record(tmp_path / "run.mcap", **ALL_STEPS) as recording:
        drive(sim, 20)
        sim.replace_scene(Scene(name="plane"))
        drive(sim, 10)
        sim.robots["r0"].command(v=0.3)
        sim.history.go_on_from(1.0)
        sim.step(3)
        drive(sim, 9)

    first, second = (read(path)[0] for path in recording.files[-2:])
    assert [e["event"] for e in said(first)].count("branch") == 0 and said(second)[0][
        "event"
    ] == "branch"
    assert said(second)[0]["tick"] == 10 and second[-1].time == 2_200_000_000
    assert again(recording.files[-1])[1] == sim.digest()


def test_log_lines_are_recorded(tmp_path: Path) -> None:
    sim = world(1, read=False)
    with sim.record(tmp_path / "run.mcap"):
        sim.step()
        logging.getLogger("botyard.test").warning("what a %s", "day")

    with (tmp_path / "run.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        lines = [
            (v.level, v.msg)
            for *_, v in reader.iter_decoded_messages(topics=["/rosout"])
        ]

    assert (30, "what a day") in lines


def test_of_which_run_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "botyard",
            "--gui-token",
            "hush",
            "--rosbridge-token=hush",
            "-m",
            "office",
            "--password",
        ],
    )
    sim = world(1, read=False)
    with sim.record(tmp_path / "run.mcap"):
        sim.step()
    about = read(tmp_path / "run.mcap")[2]
    assert json.loads(about["command"]) == [
        "botyard",
        "--gui-token",
        "…",
        "--rosbridge-token=…",
        "-m",
        "office",
        "--password",
    ]
    assert (
        about["seed"] == "3"
        and about["step_us"] == "100000"
        and about["version"]
        and about["machine"]
    )


def test_files_of_others_are_kept(tmp_path: Path) -> None:
    sim, path = world(1, read=False), tmp_path / "run.mcap"
    path.write_bytes(b"\x89MCAP0\r\nsomebody's own")
    for more in ({}, {"last": 5.0}):
        with pytest.raises(KeptFileError):
            sim.record(path, **more)

    with pytest.raises(OSError, match="No such file"):
        sim.record(tmp_path / "nowhere" / "run.mcap")
    # The second round replaces a recording of botyard, which needs no permission.
    for overwrite in (True, False):
        with sim.record(path, overwrite=overwrite):
            sim.step()

    assert read(path)[3].is_complete
    assert threading.active_count() == 1 or not any(
        t.name == "recording" for t in threading.enumerate()
    )


def test_wrong_arguments_are_said() -> None:
    for wrong, text in (
        ({"topics": "/tf"}, "expected a list"),
        ({"topics": [3]}, "topics"),
        (
            {"topics": ["/tf", "ann/odom"]},
            r"topics: .* start with / or a wildcard, such as \*/odom, found 'ann/odom'",
        ),
        ({"topics": [""]}, "topics: .* at least one character"),
        ({"robots": [""]}, "robots: .* at least one character"),
        ({"rate": -1.0}, "rate"),
        ({"rate": {"*": math.nan}}, "rate"),
        ({"rate": {"odom": 1.0}}, "rate: .*start with / or a wildcard.*found 'odom'"),
        (
            {"rate": {f"/{n}": 1.0 for n in range(1001)}},
            "rate: expected at most 1000 patterns, found 1001",
        ),
        ({"split": 0.0}, "split"),
        ({"last": 1.0, "split": 1.0}, "cannot be split"),
        ({"on_stall": True}, "expected `last`"),
    ):
        with pytest.raises(ArgumentError, match=text):
            choose(**wrong)


# -- errors


def test_what_a_slow_disk_leaves_no_room_for_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    free = threading.Event()
    write = output.McapFile.write

    def slow(self: Any, *args: Any) -> None:
        free.wait(60)
        write(self, *args)

    monkeypatch.setattr(output.McapFile, "write", slow)
    monkeypatch.setattr(writer, "MAX_QUEUED_BYTES", 200_000)
    monkeypatch.setattr(recorder, "LOSS_WARNING_S", 0.0)
    sim = world()
    recording = Recorder(sim, tmp_path / "run.mcap", choose(patient=False, rate=0.0))
    made = 1
    while not recording.lost.get("samples", 0) > 50:
        drive(sim, 1)
        made += 1

    lost = recording.lost["samples"]
    free.set()
    wait(lambda: recording._writer._queued == 0)
    drive(sim, 30)
    made += 30
    recording.close()
    messages = read(tmp_path / "run.mcap")[0]
    counts = Counter(m.channel.topic for m in messages)
    assert counts["/tf"] == made - lost and dict(recording.lost) == {"samples": lost}
    assert (
        sum(e["lost"]["samples"] for e in said(messages) if e["event"] == "lost")
        == lost
    )
    assert said(messages)[-1] == {
        "event": "end",
        "tick": sim.tick,
        "lost": {"samples": lost},
    }
    assert (
        "is too slow; records left out: " in caplog.text
        and f"without {lost} samples" in caplog.text
    )
    assert again(tmp_path / "run.mcap")[1] == sim.digest(), (
        "what a run is repeated from was not left out"
    )


def test_a_program_waits_for_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_QUEUED_BYTES", 100_000)
    sim = world()
    with sim.record(tmp_path / "run.mcap", **ALL_STEPS) as recording:
        drive(sim, 300)
    assert not recording.lost
    assert sum(m.channel.topic == "/tf" for m in read(tmp_path / "run.mcap")[0]) == 301


FULL = """
import logging, resource, sys
logging.basicConfig(format="%(message)s")
from botyard.sim.simulation import Simulation
sim = Simulation(seed=3)
for k in range(20):
    sim.add_robot("p3dx", f"r{k}").laser.subscribe("test")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
with sim.record(sys.argv[1], rate=0.0) as recording:
    for k in range(200):
        sim.fleet.command(v=0.1, w=0.01 * k)
        sim.step()
    recording._writer.call(lambda out: out.flush())
    while not recording.error:
        pass
    sim.step(10)
print(sim.tick, recording.error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes")
def test_a_full_disk_costs_the_recording_only(tmp_path: Path) -> None:
    path, limit = tmp_path / "run.mcap", 900_000
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(limit)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.split(maxsplit=1) == ["210", "File too large\n"]
    assert "ends here, but the simulation continues: File too large" in done.stderr
    messages, _, _, reader = read(path)
    assert path.stat().st_size <= limit
    assert reader.is_complete or (reader.is_cut and len(reader.problems) == 1), (
        reader.problems
    )
    ticks = [m.time // 10**8 for m in messages if m.channel.topic == "/r0/odom"]
    assert len(ticks) > 10 and ticks == list(range(len(ticks)))


KILLED = """
import sys, time
from botyard.sim.simulation import Simulation
sim = Simulation(seed=3, step=0.02)
for k in range(5):
    sim.add_robot("p3dx", f"r{k}").laser.subscribe("test")
sim.fleet.command(v=0.1, w=0.1)
recording = sim.record(sys.argv[1], rate=0.0)
due = time.monotonic()
while True:
    sim.step()
    print(sim.tick, flush=True)
    due += sim.dt
    time.sleep(max(due - time.monotonic(), 0.0))
"""
MAX_LOSS_S = 5.0
"""Far more than what a killed program loses (`python -m bench record`), because others
use the processors, too.
"""


def test_a_killed_program_leaves_all_but_the_last_moment(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        last = 0
        while last < 400:
            last = int(child.stdout.readline())
        child.kill()
        last = max(
            [
                last,
                *(int(line) for line in child.stdout.read().split("\n")[:-1] if line),
            ]
        )

    messages, _, _, reader = read(path)
    assert not reader.is_complete and len(reader.problems) == 1
    ticks = [m.time // (2 * 10**7) for m in messages if m.channel.topic == "/r4/odom"]
    assert ticks == list(range(len(ticks))), "without a gap"
    assert ticks[-1] >= last - MAX_LOSS_S / 0.02
    counts = Counter(m.channel.topic for m in messages)
    assert {counts[f"/r{k}/odom"] for k in range(5)} == {len(ticks)}


# -- two recordings of one name


@pytest.mark.parametrize("options", [{}, {"split": 0.3}, {"last": 5.0}])
def test_a_second_recording_of_a_name_is_refused(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """Also when the first file is complete and another one is being written, or nothing
    is written yet; the first one stays complete.
    """
    path, sim = tmp_path / "run.mcap", Simulation()
    sim.add_robot("amigo", "a")
    with sim.record(path, **options) as recording:
        sim.step(7)
        with pytest.raises(BusyFileError, match=r"run\.mcap: is already being written"):
            Simulation().record(path)
        sim.step(5)
        if "last" in options:
            recording.save().result(10)
            with pytest.raises(BusyFileError):
                Simulation().record(path)

    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".mcap"] * len(
        recording.files
    )
    for file in recording.files:
        assert prove_run(file).divergence is None
    with Simulation().record(path):
        pass


def test_a_recording_that_could_not_be_started_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.mcap"
    path.write_text("precious")
    with pytest.raises(KeptFileError, match="was not written by botyard"):
        Simulation().record(path)
    with Simulation().record(path, overwrite=True):
        pass
