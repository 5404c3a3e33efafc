"""Steps of several threads give the bits of one thread."""

from __future__ import annotations

import math
import os
import signal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import botyard
from botyard.engine import sharedstep
from botyard.engine.kernels.shares import MAX_EARLY, advance_share
from botyard.errors import WorldFaultError
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation

MODELS = ("p3dx", "seekur", "amigo", "car")
"""Differential, omnidirectional, small, and steered."""
THREADS = (1, 2, 3, 4)
SIDE = 26


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharedstep, "MIN_SHARED_BODIES", 1)
    monkeypatch.setattr(sharedstep, "MIN_SHARE", 1)
    monkeypatch.setattr("botyard.devices.ranging.MIN_PARALLEL_BEAMS", 1)


def scene_of(rng: np.random.Generator, size: float) -> Scene:
    start = rng.uniform(0.0, size, (40, 2))
    walls = np.concatenate([start, start + rng.uniform(-3.0, 3.0, (40, 2))], axis=1)
    return Scene(segments=walls)


def world(scene: Scene, seed: int, spacing: float, threads: int, **options: Any) -> Any:
    """Return a crowd of robots, some of which overlap walls or each other."""
    rng = np.random.default_rng(seed)
    columns = SIDE if seed % 3 else 4 * SIDE
    number = np.arange(SIDE * SIDE)
    places = np.stack([number % columns, number // columns], axis=1) * spacing
    places += rng.uniform(-0.4, 0.4, places.shape)
    poses = np.column_stack([places, rng.uniform(-math.pi, math.pi, len(places))])
    sim = Simulation(scene, seed=seed, threads=threads, warn=lambda _: None, **options)
    model = rng.integers(0, len(MODELS), len(places))
    for kind, name in enumerate(MODELS):
        sim.add_robots(name, poses[model == kind])
    for robot in list(sim.robots.values())[::40]:
        if robot.sonar is not None:
            robot.sonar.subscribe("test")
    return sim


def drive(sim: Any, rng: np.random.Generator) -> None:
    n = len(sim.robots)
    v = rng.uniform(-0.5, 1.5, n) * (rng.random(n) < 0.9)
    sim.fleet.command(v=v, w=rng.uniform(-1.0, 1.0, n))


def same(ours: Any, theirs: Any) -> None:
    """Check that two worlds have the same bits, also of values derived from their state."""
    for sim in (ours, theirs):
        assert np.isfinite(sim.snapshot.state.pose).all()
    for name in ours.snapshot.state._fields:
        a, b = (getattr(s.snapshot.state, name) for s in (ours, theirs))
        assert a.tobytes() == b.tobytes(), name
    a, b = ours.core.engine, theirs.core.engine
    assert a.bodies.leeway.tobytes() == b.bodies.leeway.tobytes()
    assert a.bodies.world.tobytes() == b.bodies.world.tobytes()
    assert a.bins.at.tobytes() == b.bins.at.tobytes()
    assert np.array_equal(
        ours.core.devices.latest()[0], theirs.core.devices.latest()[0]
    )


def early(sim: Any) -> int:
    """Return the number of robots that moved before all shares in the last step."""
    return int((sim.core.engine._shared._shares.value.owner < 0).sum())


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1000),
    spacing=st.floats(0.7, 3.0),
    step=st.sampled_from([0.1, 0.5]),
)
@example(seed=1, spacing=2.0, step=0.1)
@example(seed=3, spacing=1.0, step=0.1)
@pytest.mark.slow_without_jit
def test_any_number_of_threads_gives_the_same_bits(
    seed: int, spacing: float, step: float
) -> None:
    scene = scene_of(np.random.default_rng(seed), SIDE * spacing)
    sims = [world(scene, seed, spacing, threads, step=step) for threads in THREADS]
    for k in range(6):
        for sim in sims:
            drive(sim, np.random.default_rng(seed + k))
            # Placed robots invalidate the known distances.
            if k == 3:
                name = next(iter(sim.robots))
                sim.put(name, (1.0, 1.0, 0.0))
            sim.step(1 + 2 * (k == 5))
        for sim in sims[1:]:
            same(sims[0], sim)


@pytest.mark.slow_without_jit
def test_most_robots_move_in_shares() -> None:
    """Otherwise the comparisons would only compare one thread with itself."""
    scene = scene_of(np.random.default_rng(1), 2.0 * SIDE)
    sim = world(scene, 1, 2.0, 2)
    stalled = 0
    for k in range(5):
        drive(sim, np.random.default_rng(k))
        sim.step()
        stalled += int(sim.fleet.stalled.sum())
        assert 0 < early(sim) < SIDE * SIDE / MAX_EARLY
        shares = sim.core.engine._shared._shares.value
        counts = np.diff(shares.first)
        assert len(counts) == 2 * sharedstep.SHARES_PER_THREAD + 1
        assert counts[:-1].min() > SIDE * SIDE / 8
        assert sorted(shares.rows.tolist()) == list(range(SIDE * SIDE))
    assert stalled > 10


@pytest.mark.slow_without_jit
def test_in_a_crowd_one_thread_moves_all() -> None:
    scene = scene_of(np.random.default_rng(1), 0.7 * SIDE)
    sim = world(scene, 1, 0.7, 4)
    drive(sim, np.random.default_rng(1))
    sim.step()
    assert early(sim) == SIDE * SIDE


@pytest.mark.slow_without_jit
def test_an_interrupt_leaves_whole_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = scene_of(np.random.default_rng(1), 2.0 * SIDE)
    one, two = (world(scene, 1, 2.0, threads) for threads in (1, 2))
    for sim in (one, two):
        drive(sim, np.random.default_rng(1))
        sim.step()

    # The main thread waits for the thread that carries out the phases.
    interrupts = iter([signal.SIGINT])

    def interrupted(*args: Any) -> None:
        advance_share(*args)
        for number in interrupts:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(sharedstep, "advance_share", interrupted)
    for sim in (one, two):
        drive(sim, np.random.default_rng(2))
    one.step()
    with pytest.raises(KeyboardInterrupt):
        two.step()
    for name in ("pose", "vel", "odom", "disp", "path"):
        a, b = (getattr(s.core.engine.state, name) for s in (one, two))
        assert a.tobytes() == b.tobytes(), name


# -- one large world of a batch


def large_worlds(threads: int, count: int, seed: int) -> botyard.Worlds:
    rng = np.random.default_rng(seed)
    size = 2.0 * SIDE
    # Robots of one model get their first places by one search.
    models = ["p3dx"] * (SIDE * SIDE)
    number = np.arange(len(models))
    poses = np.stack([number % SIDE, number // SIDE, number % 3], axis=1) * 2.0
    poses[:, :2] += rng.uniform(-0.4, 0.4, (len(models), 2))
    worlds = botyard.Worlds(
        [scene_of(rng, size), scene_of(rng, size)],
        models,
        count,
        seeds=seed,
        threads=threads,
    )
    worlds.reset(poses=poses, map_id=0)
    return worlds


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("count", [1, 2])
def test_threads_share_a_large_world_of_a_batch(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botyard.worlds.sharedworld.MIN_PARALLEL_BEAMS", 1)
    made = [large_worlds(threads, count, 5) for threads in THREADS]
    poses = made[0].pose[0] + 0.3
    rng = np.random.default_rng(1)
    for k in range(6):
        command = rng.uniform(-1.0, 1.0, made[0].command.shape)
        for worlds in made:
            worlds.command[...] = command
            worlds.step(1 + 2 * (k == 2))
            # Another map has another grid.
            if k == 3:
                worlds.reset(poses=poses, map_id=1)
        for worlds in made[1:]:
            assert np.array_equal(worlds.ranges, made[0].ranges, equal_nan=True)
            assert np.array_equal(worlds.state, made[0].state)
            assert np.array_equal(worlds.contact, made[0].contact)
            is_shared = len(worlds._batch._shared) > 0
            assert is_shared == (len(worlds._batch.parts) < THREADS[made.index(worlds)])
    assert (made[0].contact != 0).any()
    for worlds in made:
        worlds.close()


@pytest.mark.slow_without_jit
def test_a_large_world_with_a_fault_does_not_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("botyard.worlds.sharedworld.MIN_PARALLEL_BEAMS", 1)
    worlds = large_worlds(2, 1, 5)
    worlds.step()
    worlds._batch.state.all("pose")[0, 3] = np.nan
    before = worlds.state.copy()
    with pytest.raises(WorldFaultError, match="pose"):
        worlds.step(2)
    assert np.array_equal(worlds.state, before)
    worlds.close()
