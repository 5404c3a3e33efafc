from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from botyard.engine.layout import allocate_state
from botyard.geometry import Pose
from botyard.sim.simulation import Simulation

STEPS = 12
MODELS = ["p3dx", "amigo", "seekur", "p3at", "pioneer-lx"]


def digest(sim: Simulation, names: list[str], steps: int, read: bool = True) -> str:
    """Return a hash of poses, odometry and all readings of `names` over a run with
    changing commands.
    """
    h = hashlib.sha256()
    for k in range(steps):
        for i, name in enumerate(names):
            sim.robots[name].command(v=0.3 + 0.05 * i, w=0.4 * ((k // 3 + i) % 3 - 1))
        sim.step()
        rows = [sim.snapshot.rows[n] for n in names]
        for field in ("pose", "vel", "odom", "stall", "err"):
            h.update(
                np.ascontiguousarray(getattr(sim.snapshot.state, field)[rows]).tobytes()
            )

        if read:
            for name in names:
                robot = sim.robots[name]
                if robot.sonar is not None:
                    h.update(robot.sonar.read().ranges.tobytes())
                for laser in robot.lasers:
                    h.update(laser.read().ranges.tobytes())

    return h.hexdigest()


def build(
    order: list[int], seed: int = 1, threads: int = 1
) -> tuple[Simulation, list[str]]:
    sim = Simulation.load("office", seed=seed, threads=threads)
    for i in order:
        model = MODELS[i]
        robot = sim.add_robot(model, model, pose=Pose(4.5 + 1.8 * i, 14.2, 0.5 * i))
        for laser in robot.lasers:
            laser.subscribe("test")
        if robot.sonar:
            robot.sonar.subscribe("test")

    return sim, MODELS


FORWARD, BACKWARD = [0, 1, 2, 3, 4], [4, 3, 2, 1, 0]


def test_same_seed_same_bytes() -> None:
    assert digest(*build(FORWARD), STEPS) == digest(*build(FORWARD), STEPS)
    assert digest(*build(FORWARD), STEPS) != digest(*build(FORWARD, seed=2), STEPS)


def test_the_order_of_creation_does_not_matter() -> None:
    assert digest(*build(FORWARD), STEPS) == digest(*build(BACKWARD), STEPS)


def test_who_looks_does_not_matter() -> None:
    watched, unwatched = build(FORWARD), build(FORWARD)
    a, b = digest(*watched, STEPS, read=True), digest(*unwatched, STEPS, read=True)
    blind = Simulation.load("office")
    for i in FORWARD:
        blind.add_robot(MODELS[i], MODELS[i], pose=Pose(4.5 + 1.8 * i, 14.2, 0.5 * i))
    assert a == b
    assert digest(blind, MODELS, STEPS, read=False) == digest(
        build(FORWARD)[0], MODELS, STEPS, read=False
    )


@pytest.mark.slow_without_jit
def test_one_and_two_threads_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from botyard.devices import ranging

    monkeypatch.setattr(ranging, "MIN_PARALLEL_BEAMS", 1)
    results = []
    for threads in (1, 2):
        sim, names = build(FORWARD, threads=threads)
        results.append(digest(sim, names, 20))
        assert sim.core.devices._parallel == (threads > 1), "several threads were used"

    assert results[0] == results[1]


def test_snapshots_are_read_only_and_outlive_one_step() -> None:
    sim, _ = build(FORWARD)
    sim.robots["p3dx"].command(v=0.5)
    first = sim.step()
    pose = first.state.pose[0].copy()
    sim.step()
    assert np.array_equal(first.state.pose[0], pose), "the last but one is still there"
    with pytest.raises(ValueError, match="read-only"):
        first.state.pose[0] = 0
    scan = sim.robots["p3dx"].laser.view()
    with pytest.raises(ValueError, match="read-only"):
        scan.ranges[0] = 1.0


def test_state_arrays_do_not_share_bytes() -> None:
    state, block = allocate_state(3)
    for k, array in enumerate(state):
        array[...] = k
    for k, array in enumerate(state):
        assert (array == k).all()
    assert block.nbytes >= sum(a.nbytes for a in state)


SCRIPT = """
import sys, numpy as np
from tests.engine.test_determinism import build, MODELS
sim, names = build([0, 1, 2, 3, 4], seed=3)
rows = []
for k in range(10):
    for i, n in enumerate(names):
        sim.robots[n].command(v=0.4, vy=0.1 if n == 'seekur' else None, w=0.5 - 0.2 * i)
    sim.step()
    s = sim.snapshot.state
    rows += [s.pose.ravel(), s.vel.ravel(), s.odom.ravel(), s.err.ravel()]
    rows += [laser.read().ranges for r in sim.robots.values() for laser in r.lasers]
    rows += [r.sonar.read().ranges for r in sim.robots.values() if r.sonar]
np.save(sys.argv[1], np.concatenate(rows))
"""


@pytest.mark.slow_without_jit
def test_without_the_compiler_the_results_are_the_same(tmp_path: Path) -> None:
    """The same run compiled and in plain Python is equal to 1e-9 (decisions,
    "Repeatability").
    """
    results = []
    for off in ("0", "1"):
        path = tmp_path / f"{off}.npy"
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, str(path)],
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            cwd=Path(__file__).parents[2],
            check=True,
            timeout=300,
        )
        results.append(np.load(path))

    assert results[0].shape == results[1].shape
    assert np.abs(results[0] - results[1]).max() < 1e-9
