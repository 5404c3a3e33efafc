"""A recorded run re-simulates bit for bit.

Each changed byte is detected, and each change outside the journal is named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.controllers.assignment import employ
from botyard.devices.grippertable import Grippers
from botyard.engine import commands as cmd
from botyard.errors import RecordingError
from botyard.formats.budget import Budget
from botyard.geometry import Pose
from botyard.model.library import load_robot
from botyard.model.robot import OdometryDrift
from botyard.model.world import Program
from botyard.recording import checks, frames, own_channels
from botyard.recording.codec import encode_entry
from botyard.recording.mcap import Attachment
from botyard.recording.output import Output, Start
from botyard.recording.verify import resimulate
from botyard.sim.journal import AddRobots, Claim, Entry, RemoveBox, Submit, WriteDevice
from botyard.sim.simulation import Simulation
from tests.cli.test_cli import call
from tests.recording.proving import prove
from tests.test_state import deeds, do, world


def recorded(
    path: Path, act: Callable[[Simulation], object], sim: Simulation | None = None
) -> Simulation:
    sim = sim or world()
    with sim.record(path, overwrite=True):
        act(sim)
    return sim


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@given(done=st.lists(deeds(), max_size=30))
@settings(max_examples=20)
def test_whatever_was_done_comes_out_again(
    folder: Path, done: list[tuple[str, Any]]
) -> None:
    def act(sim: Simulation) -> None:
        made = [0]
        for deed in done:
            do(sim, deed, made)
        sim.step(12)

    for file in folder.glob("*.mcap"):
        file.unlink()
    recorded(folder / "any.mcap", act)
    files = sorted(folder.glob("*.mcap"))
    assert files
    # Restoring a state starts another file, so there may be several.
    for file in files:
        proof = resimulate(file)
        assert proof.divergence is None, str(proof.divergence)
        assert proof.states >= 2


def test_programs_are_not_run_and_their_commands_are(tmp_path: Path) -> None:
    def act(sim: Simulation) -> None:
        employ(sim.robots["a"], Program(name="wander"))
        sim.step(40)

    recorded(tmp_path / "run.mcap", act)
    proof = resimulate(tmp_path / "run.mcap")
    assert (proof.divergence, proof.steps) == (None, 40)
    assert proof.changes >= 1 and proof.digests >= 4


def test_exact_ramps_and_errors_by_distance_come_out_again(tmp_path: Path) -> None:
    """Models outside the library, and draws of the seed."""
    base = load_robot("p3dx")
    laser = replace(base.lasers[0], range_deviation=0.01, range_share=0.002)
    spec = replace(
        base,
        ramps="exact",
        odometry_drift=OdometryDrift(2e-3, 1e-3, 1e-3, 5e-4),
        lasers=(laser,),
    )
    sim = Simulation.load("office", seed=7, step=0.05)
    first, second = sim.add_robot(spec, "first"), sim.add_robot("p3dx", "second")

    def act(sim: Simulation) -> None:
        first.command(v=0.4, w=0.3)
        second.command(v=0.3)
        sim.step(60)
        first.command(v=-0.2, w=-0.5)
        first.laser.read()
        sim.step(60)
        first.command(v=0.0)
        sim.step(40)

    recorded(tmp_path / "run.mcap", act, sim)
    prove(tmp_path / "run.mcap", 160)
    drifted = [
        abs(o - t)
        for o, t in zip(first.odom_in_world[:2], first.truth[:2], strict=True)
    ]
    assert max(drifted) > 1e-3, "or there was nothing to repeat"


# -- changes outside the journal


def _batteries(sim: Simulation) -> Any:
    return sim.robots["b"].electrics.battery.table


POKES: dict[str, tuple[Callable[[Simulation], object], str, str]] = {
    "limits": (
        lambda sim: sim.core.engine.state.max_vel.__setitem__((0, 0), 0.125),
        "a",
        "max_vel.x: recorded 0.125",
    ),
    "mask": (
        lambda sim: sim.core.engine.state.mask.__setitem__(3, 0),
        "c",
        "mask: recorded 0, now ",
    ),
    "pose": (
        lambda sim: sim.core.engine.state.pose.__setitem__((3, 1), -3.5),
        "d",
        "pose.y",
    ),
    "speed": (
        lambda sim: sim.core.engine.state.vel.__setitem__((0, 0), 0.25),
        "a",
        "a: pose.x: recorded ",
    ),
    "minus zero": (
        lambda sim: sim.core.engine.state.demand.__setitem__((0, 0), -0.0),
        "a",
        "demand.x: recorded -0.0, now 0.0",
    ),
    "battery": (
        lambda sim: _batteries(sim).charge.__setitem__(1, 50.0),
        "b",
        "battery.charge: recorded ",
    ),
    "gripper": (
        lambda sim: sim.core.engine.table(Grippers).left_goal.__setitem__(0, 0.01),
        "b",
        "gripper.",
    ),
    "claims": (
        lambda sim: sim.robots["a"]._claims.append("nobody"),
        "a",
        "claims: recorded ['nobody'], now []",
    ),
    "removed": (
        lambda sim: sim.core.engine.remove_bodies(["c"]),
        "c",
        "is there: recorded False, now True",
    ),
    "queue": (
        lambda sim: sim.core.engine.queue_command("a", cmd.SetLimits(v=0.0625)),
        "a",
        "max_vel.x: recorded 0.0625",
    ),
    "seed": (
        lambda sim: setattr(sim.core.engine, "seed", np.uint64(99)),
        "",
        "seed: recorded 99, now 5",
    ),
}


@pytest.mark.pokes
@pytest.mark.parametrize("what", POKES)
def test_what_passes_the_journal_by_is_named(what: str, tmp_path: Path) -> None:
    poke, whose, said = POKES[what]

    def act(sim: Simulation) -> None:
        rows = sim.core.engine.rows
        assert [name for name in rows if name in "abcd"] == list("abcd"), rows
        sim.step(13)
        poke(sim)
        if what != "removed":
            sim.step(17)

    if what == "mask":
        poke = lambda sim: sim.core.engine.state.mask.__setitem__(  # noqa: E731
            sim.core.engine.rows["c"], 0
        )
    elif what == "pose":
        poke = lambda sim: sim.core.engine.state.pose.__setitem__(  # noqa: E731
            (sim.core.engine.rows["d"], 1), -3.5
        )
    elif what in ("limits", "speed", "minus zero"):
        column, value = {
            "limits": ("max_vel", 0.125),
            "speed": ("vel", 0.25),
            "minus zero": ("demand", -0.0),
        }[what]
        poke = lambda sim: getattr(sim.core.engine.state, column).__setitem__(  # noqa: E731
            (sim.core.engine.rows["a"], 0), value
        )

    recorded(tmp_path / "run.mcap", act)
    found = resimulate(tmp_path / "run.mcap").divergence
    assert found is not None
    # Facts without a column, such as the owner of a robot, are in the states that are
    # recorded once a second.
    assert (found.after, found.tick) == {
        "removed": (10, 13),
        "claims": (10, 20),
        "seed": (10, 20),
    }.get(what, (13, 14))
    assert found.at == (13 if what == "removed" else 20)
    assert found.found[0].body == whose, str(found)
    if found.tick == 14:
        assert {one.body for one in found.first} == {whose}, found.first
        assert found.is_all or len(found.first) < found.count, (
            "of several, not all can be told"
        )

    assert said in str(found)


@pytest.mark.parametrize("several", [False, True])
def test_the_first_step_and_its_poses_are_named(several: bool, tmp_path: Path) -> None:
    poses = dict[int, Any]()

    def act(sim: Simulation) -> None:
        for name in "ab":
            sim.robots[name].command(v=0.2, w=0.3)
        sim.after_step(
            lambda snapshot: poses.__setitem__(
                snapshot.tick, snapshot.state.pose.copy()
            )
        )
        sim.step(23)
        rows = [sim.core.engine.rows[name] for name in ("ab" if several else "a")]
        sim.core.engine.state.pose[rows, 2] += 1e-12
        sim.step(12)

    sim = recorded(tmp_path / "run.mcap", act)
    found = resimulate(tmp_path / "run.mcap").divergence
    assert found is not None and (found.after, found.tick, found.at) == (23, 24, 30)
    assert found.first and {one.body for one in found.first} <= set(
        "ab" if several else "a"
    )
    for body in {one.body for one in found.first}:
        pose = dict(
            zip(
                ("pose.x", "pose.y", "pose.a"),
                poses[24][sim.core.engine.rows[body]].tolist(),
                strict=True,
            )
        )
        first = {
            one.column: one.recorded
            for one in found.first
            if one.body == body and "pose" in one.column
        }
        assert first.items() <= pose.items()

    assert all(one.again != one.recorded for one in found.first)
    assert str(found).startswith(f"between tick 23 and tick 24: {found.first[0]}")


def test_what_changes_in_the_moment_in_which_a_step_has_ended_is_no_difference(
    tmp_path: Path,
) -> None:
    """A listener before the recorder removes a robot:

    the recorder sees other poses than the step left.
    """
    sim = world()
    sim.after_step(
        lambda snapshot: sim.remove_robot("c") if snapshot.tick == 7 else None
    )
    recorded(tmp_path / "run.mcap", lambda sim: sim.step(20), sim)
    proof = resimulate(tmp_path / "run.mcap")
    assert proof.divergence is None and proof.checks == 19, str(proof.divergence)


def test_the_command_line_says_it_by_its_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, other, bad = (tmp_path / f"{name}.mcap" for name in ("good", "other", "bad"))
    recorded(good, lambda sim: sim.step(20))

    def poked(sim: Simulation) -> None:
        sim.step(5)
        sim.core.engine.state.heading_speed[sim.core.engine.rows["d"]] = 0.25
        sim.step(15)

    recorded(other, poked)
    bad.write_bytes(good.read_bytes()[:200] + b"x" + good.read_bytes()[201:])
    code, out, err = call("replay", str(good), "--resimulate", capsys=capsys)
    assert (code, err) == (0, "") and out.startswith(
        "equal: 20 steps, 0 changes; 5 digests, 5 states and all columns of 20 "
        "steps compared (tick 0 to 20"
    ), out
    code, out, err = call("replay", str(other), "--resimulate", capsys=capsys)
    assert code == 1
    assert out.startswith(
        "between tick 5 and tick 6: d: heading_speed: recorded 0.25, now "
    ), out
    code, out, err = call("replay", str(bad), "--resimulate", capsys=capsys)
    assert (code, out) == (2, "") and "bad.mcap" in err
    code, out, err = call(
        "replay", str(tmp_path / "none.mcap"), "--resimulate", capsys=capsys
    )
    assert code == 2 and "none.mcap: No such file" in err
    code, out, err = call("replay", str(good), "--info", capsys=capsys)
    assert (
        code == 0
        and "/botyard/states" in out
        and "simulated time: 0.000 s to 2.000 s" in out
    )


# -- damage


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("damage") / "run.mcap"

    def act(sim: Simulation) -> None:
        sim.robots["a"].command(v=0.2)
        sim.step(20)

    recorded(path, act)
    return path.read_bytes()


@given(data=st.data())
@settings(max_examples=300)
def test_each_changed_byte_is_noticed(
    run: bytes, folder: Path, data: st.DataObject
) -> None:
    at = data.draw(
        st.integers(0, len(run) - 1)
        | st.integers(len(run) - 400, len(run) - 1)
        | st.integers(0, 400)
    )
    changed = bytearray(run)
    changed[at] ^= data.draw(st.integers(1, 255))
    path = folder / "changed"
    path.write_bytes(changed)
    try:
        proof = resimulate(path)
    except RecordingError:
        return

    assert proof.divergence is not None or proof.notes, f"byte {at}"


@given(data=st.data())
@settings(max_examples=50)
def test_a_file_that_was_cut_short_is_proved_as_far_as_it_goes(
    run: bytes, folder: Path, data: st.DataObject
) -> None:
    end = data.draw(st.integers(0, len(run) - 1))
    path = folder / "cut"
    path.write_bytes(run[:end])
    try:
        proof = resimulate(path)
    except RecordingError:
        return

    assert proof.divergence is None
    assert proof.notes and "cut short" in proof.notes[-1]


# -- crafted recordings


def crafted(
    path: Path,
    records: list[tuple[str, bytes]],
    attachments: dict[str, bytes] | None = None,
    state: bytes | None = b"",
) -> Path:
    """A recording of a world with a robot, with given records after the first state."""
    sim = Simulation()
    sim.add_robot("p3dx", "r", pose=(0.0, 0.0, 0.0))
    from botyard.recording import codec

    given = {
        "setup": codec.encode_setup(codec.setup_of(sim)),
        "scene": codec.encode_scene(sim.scene),
        **{
            f"model {k}": codec.encode_model(one)
            for k, one in enumerate(codec.models_of(sim))
        },
    } | (attachments or {})
    output = Output(path, None, force=True)
    kinds = {
        topic: output.channel(topic, "x", "x", lambda: ("", b""))
        for topic in (
            own_channels.STATES,
            own_channels.JOURNAL,
            own_channels.CHECKS,
            own_channels.DIGESTS,
            own_channels.EVENTS,
        )
    }
    output.begin(
        Start(
            0,
            sim.save_state() if state == b"" else state,
            {"version": "9.9"},
            [Attachment(n, "", d) for n, d in given.items()],
        ),
        kinds[own_channels.STATES],
    )
    for topic, data in records:
        output.message(kinds[topic], 0, data)
    output.close()
    return path


def entry(change: Any, tick: int = 0) -> tuple[str, bytes]:
    return own_channels.JOURNAL, own_channels.pack_bytes(
        encode_entry(Entry(tick, 1, "stranger", change))
    )


def digest(tick: int, value: str = "0" * 16) -> tuple[str, bytes]:
    return own_channels.DIGESTS, own_channels.pack_json({"tick": tick, "digest": value})


LONG = replace(Simulation().add_robot("p3dx").spec, name="long")
MADE_UP: dict[str, tuple[list[tuple[str, bytes]], str]] = {
    "a run without end": (
        [digest(10**15)],
        "expected the next record within 36000 steps",
    ),
    "a change of the past": (
        [digest(5), entry(RemoveBox("b"), tick=1)],
        ", found 1",
    ),
    "a box that is not there": (
        [entry(RemoveBox("b"))],
        "RemoveBox of stranger cannot be repeated",
    ),
    "a table that is not there": (
        [entry(WriteDevice("nothing", 0, {}))],
        "WriteDevice of stranger cannot be repeated",
    ),
    "a row that is not there": (
        [entry(WriteDevice("battery", 77, {"charge": 1.0}))],
        "WriteDevice of stranger cannot be repeated",
    ),
    "a column that is not there": (
        [entry(WriteDevice("battery", 0, {"volume": 1.0}))],
        "WriteDevice of stranger cannot be repeated",
    ),
    "a robot that is not there": (
        [entry(Claim("ghost", True))],
        "Claim of stranger cannot be repeated",
    ),
    "a command for nobody": (
        [entry(Submit("ghost", cmd.Stop()))],
        "Submit of stranger cannot be repeated",
    ),
    "too many robots": (
        [
            entry(
                AddRobots(
                    LONG, tuple(f"r{i}" for i in range(20_001)), (Pose(),) * 20_001
                )
            )
        ],
        "20002 robots",
    ),
    "more beams than can be": (
        [
            entry(
                AddRobots(
                    replace(
                        LONG, lasers=(replace(LONG.lasers[0], samples=100_000),) * 600
                    ),
                    ("x",),
                    (Pose(),),
                )
            )
        ],
        "beams",
    ),
    "no entry": (
        [(own_channels.JOURNAL, own_channels.pack_bytes(b"\x91" * 1000))],
        "a change cannot be read",
    ),
    "no digest": ([(own_channels.DIGESTS, b"[" * 100_000)], "a digest"),
    "no message of ROS": (
        [(own_channels.STATES, b"K")],
        "expected a std_msgs/UInt8MultiArray",
    ),
    "no checks": (
        [(own_channels.CHECKS, own_channels.pack_bytes(b"\1" * 30))],
        "which does not match its header",
    ),
    "checks of a far step": (
        [
            (
                own_channels.CHECKS,
                own_channels.pack_bytes(next(checks.encode([10**12], [bytes(24)]))),
            )
        ],
        "expected the next record within 36000 steps",
    ),
    "no event": ([(own_channels.EVENTS, own_channels.pack_json({}))], "a event"),
    "no state": (
        [(own_channels.STATES, own_channels.pack_bytes(b"Kbotyard"))],
        "a state: ",
    ),
    "a delta to nothing": (
        [(own_channels.STATES, own_channels.pack_bytes(b"D" + b"\0" * 40))],
        "a state: ",
    ),
}


@pytest.mark.parametrize("what", MADE_UP)
def test_what_was_made_up_is_refused(what: str, tmp_path: Path) -> None:
    records, said = MADE_UP[what]
    with pytest.raises(RecordingError) as caught:
        resimulate(crafted(tmp_path / "made_up.mcap", records))
    assert said in str(caught.value)


def test_another_digest_without_a_state_is_told_as_such(tmp_path: Path) -> None:
    found = resimulate(crafted(tmp_path / "r.mcap", [digest(3), digest(4)])).divergence
    assert (
        str(found) == "between tick 0 and tick 3: the digest differs from the recorded "
        "one; the recording does not show which value differs"
    )


def test_all_that_cannot_be_read_is_said_with_the_version_that_wrote_it(
    tmp_path: Path,
) -> None:
    path = crafted(
        tmp_path / "r.mcap", [], {"scene": b"\x05\0\0\0\x94\x63\0\0\0", "model 1": b"x"}
    )
    with pytest.raises(
        RecordingError, match=r"botyard 9.9 wrote it, this program is .*; model 1: "
    ) as caught:
        resimulate(path)

    assert "scene: scene: expected version 1, found 99" in str(caught.value)
    with pytest.raises(RecordingError, match="expected a first state, found none"):
        resimulate(crafted(tmp_path / "r.mcap", [], state=None))
    with pytest.raises(RecordingError, match=r"9\.9 wrote it"):
        resimulate(crafted(tmp_path / "r.mcap", [], state=world().save_state()))


def test_the_budget_counts(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    recorded(path, lambda sim: sim.step(2))
    with pytest.raises(RecordingError, match=r"budget\.unpacked raises this|max-read"):
        resimulate(path, Budget(unpacked=100))
    with pytest.raises(RecordingError, match="max-read robots"):
        resimulate(path, Budget(robots=3))


def test_what_the_recorder_left_out_is_told(tmp_path: Path) -> None:
    lost = (
        own_channels.EVENTS,
        own_channels.pack_json({"event": "lost", "tick": 0, "lost": {"changes": 2}}),
    )
    sim = Simulation()
    sim.add_robot("p3dx", "r", pose=(1.0, 0.0, 0.0))
    state = (
        own_channels.STATES,
        own_channels.pack_bytes(frames.encode(sim.save_state(), None)),
    )
    found = resimulate(crafted(tmp_path / "r.mcap", [lost, state])).divergence
    assert str(found).endswith("the recorder had to leave out 2 changes")
    assert "r: start: recorded (1.0, 0.0, 0.0), now (0.0, 0.0, 0.0)" in str(found)
