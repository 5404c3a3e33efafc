from __future__ import annotations

import numpy as np
import pytest

from botyard.engine import commands as cmd
from botyard.engine.clock import Clock
from botyard.engine.velocities import SetVelocities
from botyard.errors import WorldError
from botyard.geometry import Pose
from tests.engine.worlds import engine, robot

NOTHING = np.zeros((0, 4))


def test_time_is_an_integer_and_never_drifts() -> None:
    clock = Clock(step_us=100_000)
    clock.tick = 10_000_000
    assert clock.time == 1_000_000.0
    assert [
        Clock(step_us=least_or_most).step_us for least_or_most in (1, 60_000_000)
    ] == [1, 60_000_000]
    for wrong in (0, -5, 60_000_001):
        with pytest.raises(WorldError, match="60 s"):
            Clock(step_us=wrong)


def test_commands_take_effect_in_a_defined_order() -> None:
    """By source, then by order of arrival, for any order of service."""
    results = []
    for sources in (["b", "a"], ["a", "b"]):
        e = engine(NOTHING, [(0, 0, 0)])
        for s in sources:
            e.queue_command("r0", cmd.SetVelocity(v=1.0 if s == "a" else 0.2), s)
        e.step(30)
        results.append(e.state.vel[0, 0])

    assert results == pytest.approx([0.2, 0.2])


def test_commands_of_either_kind_wait_for_the_next_step() -> None:
    e = engine(NOTHING, [(0, 0, 0), (3, 0, 1)])
    assert not e.is_pending
    for submit in (
        lambda: e.queue_command("r0", cmd.Stop()),
        lambda: e.queue_velocities(
            SetVelocities(np.array([0, 1]), v=np.array([0.1, 0.2]))
        ),
    ):
        submit()
        assert e.is_pending
        e.step()
        assert not e.is_pending


def test_adding_and_removing_keeps_the_others() -> None:
    e = engine(NOTHING, [(0, 0, 0), (3, 0, 1), (6, 0, 2)])
    e.queue_command("r2", cmd.SetVelocity(v=0.5))
    e.queue_command("r1", cmd.SetVelocity(v=0.5))
    e.step(3)
    before = {n: e.state.pose[i].copy() for n, i in e.rows.items()}
    e.queue_command("r1", cmd.Stop())
    e.remove_body("r1")
    assert list(e.rows) == ["r0", "r2"]
    assert np.array_equal(e.state.pose[e.rows["r2"]], before["r2"])
    e.add_bodies([(robot("new"), Pose(9, 9, 0))])
    e.step(3)
    assert e.state.vel[e.rows["r2"], 0] == pytest.approx(0.3)
    with pytest.raises(WorldError, match="names must be unique"):
        e.add_bodies([(robot("new"), Pose())])
    before_rows = e.snapshot.rows
    with pytest.raises(WorldError, match="names must be unique"):
        e.add_bodies([(robot("fine"), Pose()), (robot("new"), Pose())])
    assert list(e.rows) == ["r0", "r2", "new"], "all or nothing"
    e.add_bodies([(robot("fine"), Pose(20, 0, 0))])
    assert "fine" not in before_rows, "a snapshot does not change"


def test_velocities_of_many_that_wait_are_still_those_of_the_same_bodies() -> None:
    e = engine(NOTHING, [(3.0 * i, 0, 0) for i in range(5)])
    wanted = np.array([0.1, 0.2, 0.3, 0.4])
    e.queue_velocities(SetVelocities(np.array([4, 0, 3, 1]), v=wanted, w=-wanted))
    e.remove_bodies(["r0", "r2", "r3"])
    e.step(40)
    assert {name: e.state.vel[row].tolist() for name, row in e.rows.items()} == {
        "r1": pytest.approx([0.4, 0.0, -0.4]),
        "r4": pytest.approx([0.1, 0.0, -0.1]),
    }


def test_settling_does_not_move_anything() -> None:
    e = engine(NOTHING, [(0, 0, 0)])
    e.queue_command("r0", cmd.SetVelocity(v=0.5))
    e.step(5)
    before = e.state.pose.copy()
    e.settle()
    assert np.array_equal(before, e.state.pose)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 5000.0])
def test_every_body_is_in_its_bin(scale: float) -> None:
    rng = np.random.default_rng(1)
    e = engine(NOTHING, [(*rng.uniform(-scale, scale, 2), 0) for _ in range(57)])
    b = e.bins
    nx, ny = b.shape
    assert sorted(b.rows.tolist()) == list(range(57))
    assert b.start[nx * ny] == 57
    for c in range(nx * ny):
        for row in b.rows[b.start[c] : b.start[c + 1]]:
            x, y = (e.state.pose[row, :2] - b.frame[:2]) * b.frame[2]
            assert (int(x), int(y)) == (c % nx, c // nx)

    assert len(b.start) > nx * ny
