"""`Worlds` with late or infrequent commands and readings, missing readings and unequal
wheels: each world equals a simulation.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import botyard
from botyard.engine.layout import State
from botyard.engine.velocities import SetVelocities
from botyard.errors import ArgumentError
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Scene
from botyard.sim.journal import Entry, SetParameters
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Simulation
from botyard.worlds.worlds import Worlds

ROOM = Scene(
    segments=np.array(
        [(0, 0, 9, 0), (9, 0, 9, 6), (9, 6, 0, 6), (0, 6, 0, 0), (4, 1, 5, 2)],
        np.float64,
    )
)
CRATE = BoxObject(
    name="crate",
    pose=botyard.Pose(3.0, 1.5, 0.2),
    length=0.5,
    width=0.5,
    dynamics=DynamicsSpec(mass=4.0, floor_friction=0.2),
)
P3DX, AMIGO = botyard.load_robot("p3dx"), botyard.load_robot("amigo")


def specs(
    commands: botyard.CommandSpec, ratio: float, **sensor: float
) -> list[botyard.RobotSpec]:
    """A robot with a late laser, one with a late sonar ring, and a plain one."""
    sensors: Any = sensor
    laser = replace(P3DX.lasers[0], samples=13, range_noise=0.02, **sensors)
    assert AMIGO.sonar is not None
    return [
        replace(P3DX, lasers=(laser,), commands=commands, wheel_ratio=ratio),
        replace(AMIGO, sonar=replace(AMIGO.sonar, noise=0.02, **sensors)),
        P3DX,
    ]


def simulation(
    scene: Scene, models: list[botyard.RobotSpec], seed: int, step: float
) -> Simulation:
    sim = Simulation(scene, seed=seed, step=step, warn=lambda text: None)
    for model in models:
        sim.add_robot(model)
    return sim


def same(worlds: Worlds, i: int, sim: Simulation) -> None:
    for name in State._fields:
        ours, theirs = (
            worlds._batch.state.of(i, name),
            getattr(sim.core.engine.state, name),
        )
        assert ours.tobytes() == theirs.tobytes(), f"world {i}: {name}: {ours} {theirs}"

    expected = np.concatenate(
        [sim.fleet.ranges("laser"), sim.fleet.ranges("sonar")], axis=1
    )
    assert np.array_equal(
        worlds.ranges[i], expected.astype(worlds.ranges.dtype), equal_nan=True
    )


def drive(sim: Simulation, command: np.ndarray, count: int) -> None:
    for _ in range(count):
        v, vy, w = (np.ascontiguousarray(c) for c in command.T)
        sim.core.accept_velocities(SetVelocities(sim.fleet.robot_rows, v, w, vy))
        sim.step()


@settings(max_examples=25, deadline=None)
@given(
    latency=st.sampled_from([0.0, 0.04, 0.2, 0.5]),
    jitter=st.sampled_from([0.0, 0.5, 1.0]),
    late=st.sampled_from([0.0, 0.04, 0.1, 0.35]),
    late_jitter=st.sampled_from([0.0, 1.0]),
    rate=st.sampled_from([0.0, 0.0, 15.0, 7.0, 2.0]),
    range_rate=st.sampled_from([0.0, 0.0, 10.0, 6.0, 2.5]),
    missing=st.sampled_from([0.0, 0.2]),
    has_box=st.booleans(),
    step=st.sampled_from([0.1, 0.05]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**64 - 10),
    actions=st.lists(
        st.tuples(
            st.sampled_from(["step", "step", "same", "reset", "branch"]),
            st.integers(0, 2**32),
        ),
        max_size=14,
    ),
)
def test_each_world_is_a_simulation(
    latency: float,
    jitter: float,
    late: float,
    late_jitter: float,
    rate: float,
    range_rate: float,
    missing: float,
    has_box: bool,
    step: float,
    dtype: Any,
    seed: int,
    actions: list[tuple[str, int]],
) -> None:
    commands = botyard.CommandSpec(
        latency=latency,
        jitter=jitter * latency,
        rate=rate,
        scale=botyard.Axes(0.9, 1.0, 1.1),
    )
    models = specs(
        commands,
        1.02,
        latency=late,
        jitter=late_jitter * late,
        missing=missing,
        measurement_rate=range_rate,
    )
    n, scene = 2, replace(ROOM, boxes=(CRATE,)) if has_box else ROOM
    worlds = Worlds(
        scene, models, n, seeds=seed, step=step, dtype=dtype, sensors=["laser", "sonar"]
    )
    twins = [simulation(scene, models, int(worlds.seeds[i]), step) for i in range(n)]
    for what, number in actions:
        random = np.random.default_rng(number)
        if what in ("step", "same"):
            if what == "step":
                worlds.command[:] = random.uniform(-0.4, 0.8, (n, 3, 3)) * (
                    random.random((n, 3, 1)) < 0.7
                )
                worlds.command[:, :, 1] = 0.0

            count = int(random.integers(1, 6))
            worlds.step(count)
            for i, twin in enumerate(twins):
                drive(twin, worlds.command[i], count)
        elif what == "reset":
            worlds.reset([number % n])
            twins[number % n] = simulation(
                scene, models, int(worlds.seeds[number % n]), step
            )
            twins[number % n].settle()
        # The exported world includes values that are still delayed.
        else:
            twins[number % n] = worlds.world(number % n)

        for i, twin in enumerate(twins):
            same(worlds, i, twin)

    worlds.close()


def randomised(
    worlds: Worlds, random: np.random.Generator, some: Any = slice(None)
) -> None:
    """Draw all error parameters of robots anew in some worlds."""
    for name, low, high in (
        ("command_latency", 0.0, 0.4),
        ("command_scale", 0.8, 1.2),
        ("range_latency", 0.0, 0.3),
        ("range_missing", 0.0, 0.3),
        ("range_noise", 0.0, 0.1),
        ("wheel_ratio", 0.97, 1.03),
        ("max_speed", 0.3, 1.0),
    ):
        array = worlds.param(name)
        array[some] = random.uniform(low, high, array[some].shape)

    for name in ("command_rate", "range_rate"):
        array = worlds.param(name)
        array[some] = random.choice([0.0, 2.0, 7.0, 50.0], array[some].shape)

    worlds.param("command_jitter")[some] = 0.5 * worlds.param("command_latency")[some]
    worlds.param("range_jitter")[some] = 0.5 * worlds.param("range_latency")[some]


def test_an_episode_whose_errors_were_written_in_between_is_repeated_to_the_last_bit(
    tmp_path: Path,
) -> None:
    """At the start, at resets, at intervals; off, on and off again."""
    n, random = 4, np.random.default_rng(3)
    worlds = Worlds(
        ROOM,
        specs(botyard.CommandSpec(), 1.0),
        n,
        dtype=np.float64,
        sensors=["laser", "sonar"],
        max_latency=0.6,
    )
    worlds.keep_episodes()
    randomised(worlds, random)
    for k in range(24):
        worlds.command[..., 0] = random.uniform(0.0, 0.6, (n, 3))
        worlds.command[..., 2] = random.uniform(-0.6, 0.6, (n, 3)) if k % 3 else 0.0
        if k in (7, 18):
            randomised(worlds, random)
        if k == 10:
            worlds.param("range_latency")[:2] = worlds.param("range_jitter")[:2] = 0.0
            worlds.param("command_latency")[1:] = worlds.param("command_jitter")[1:] = (
                0.0
            )

        if k == 12:
            worlds.reset([2])
            randomised(worlds, random, slice(2, 3))

        worlds.step(1 + k % 3)

    for i in range(n):
        episode, entries = worlds.repeat(i), list[Entry]()
        begin = episode.simulation.clone()
        episode.simulation.core.journal.listen(entries.append)
        digests = [episode.simulation.digest() for _ in episode]
        same(worlds, i, episode.simulation)
        assert any(isinstance(entry.change, SetParameters) for entry in entries)
        assert list(resimulate(begin, entries, len(digests))) == digests, (
            "the journal has it all"
        )

    worlds.repeat(1).record(tmp_path / "run.mcap", overwrite=True)
    worlds.close()


def test_no_latency_beyond_the_room_and_no_nonsense() -> None:
    worlds = Worlds(ROOM, specs(botyard.CommandSpec(), 1.0), 3, max_latency=0.3)
    plain = Worlds(ROOM, "p3dx", 2)
    for name, wrong in (
        ("command_latency", 0.5),
        ("command_latency", np.nan),
        ("command_jitter", 0.1),
        ("command_scale", 1e3),
        ("range_latency", -0.1),
        ("range_latency", 0.4),
        ("range_jitter", 0.1),
    ):
        before = worlds.param(name).copy()
        worlds.param(name)[1] = wrong
        with pytest.raises(
            ArgumentError, match="world 1: a latency is negative, not finite"
        ):
            worlds.step()
        worlds.param(name)[:] = before

    for name in ("command_rate", "range_rate"):
        for wrong in (-1.0, np.nan, np.inf, 2e6):
            worlds.param(name)[1] = wrong
            with pytest.raises(ArgumentError, match="world 1: a rate is negative"):
                worlds.step()

        worlds.param(name)[:] = 0.0

    # The rate equals the rate of steps.
    plain.param("command_rate")[:] = 10.0
    plain.step()
    for name in ("command_rate", "range_rate"):
        plain.param(name)[1] = 9.0
        with pytest.raises(ArgumentError, match=r"world 1: a rate .* max_latency"):
            plain.step()
        plain.param(name)[:] = 0.0

    held = Worlds(ROOM, "p3dx", 2, max_latency=0.0)
    held.param("command_rate")[1] = held.param("range_rate")[1] = 2.0
    held.command[..., 0] = 0.4
    seen = []
    for _ in range(10):
        held.step()
        seen.append((float(held.vel[1, 0, 0]), float(held.ranges[1].sum())))

    assert len({v for v, _ in seen}) > 1, (
        "the robot has begun at once: tick 0 is a cycle"
    )
    assert [len({r for _, r in part}) for part in (seen[:4], seen[4:9], seen[9:])] == [
        1,
        1,
        1,
    ]
    assert len({r for _, r in seen}) == 3
    worlds.param("range_missing")[2] = 1.5
    with pytest.raises(ArgumentError, match="world 2: ranges or errors of a sensor"):
        worlds.step()
    worlds.param("range_missing")[2] = 0.0
    worlds.param("wheel_ratio")[0] = 3.0
    with pytest.raises(ArgumentError, match="world 0: a limit of speeds"):
        worlds.step()
    worlds.param("wheel_ratio")[0] = 1.0
    worlds.step()
    plain.param("command_latency")[:] = 0.1
    with pytest.raises(ArgumentError, match="max_latency"):
        plain.step()
    plain.param("command_latency")[:] = 0.0
    plain.param("command_scale")[1] = 0.5
    plain.command[..., 0] = 0.4
    plain.step()
    assert plain._batch.state.all("target")[:, 0, 0].tolist() == [0.4, 0.2]
    late = specs(botyard.CommandSpec(latency=0.4), 1.0)
    with pytest.raises(
        ArgumentError,
        match=r"max_latency: expected at least 0\.4 s",
    ):
        Worlds(ROOM, late, 1, max_latency=0.1)

    for crooked in (
        worlds._batch.state.all("sent_times")[1, 0, 0],
        worlds._batch.state.all("late_times")[1, 0, 0],
    ):
        for at in range(2):
            crooked[at] = 10**6
            with pytest.raises(
                ArgumentError,
                match="world 1: its state does not belong to these worlds",
            ):
                worlds.step()

            crooked[at] = 0


def test_states_branch_with_what_is_under_way() -> None:
    models = specs(
        botyard.CommandSpec(latency=0.4, jitter=0.2, rate=4.0),
        1.0,
        latency=0.3,
        jitter=0.1,
        measurement_rate=3.0,
    )
    worlds = Worlds(ROOM, models, 2, seeds=[5, 6], sensors=["laser", "sonar"])
    worlds.command[0, :, 0] = 0.5
    worlds.step(3)
    worlds.state[1] = worlds.state[0]
    worlds.command[:, :, 2] = 0.4
    for _ in range(8):
        worlds.step()
        assert np.array_equal(worlds.pose[0], worlds.pose[1])
        assert np.array_equal(worlds.ranges[0], worlds.ranges[1], equal_nan=True)

    assert worlds.vel[0, 0, 0] > 0.0


@pytest.mark.parametrize("rate", [0.0, 4.0])
def test_a_world_goes_on_with_what_it_is_commanded(rate: float) -> None:
    """Includes commands written since its last step, after those in flight and those
    that wait for a robot's cycle.
    """
    random, models = (
        np.random.default_rng(8),
        specs(botyard.CommandSpec(latency=0.3, jitter=0.3, rate=rate), 1.0),
    )
    worlds = Worlds(ROOM, models, 4, sensors=["laser", "sonar"])
    for k in range(12):
        worlds.command[:] = random.uniform([0.0, 0.0, -0.6], [0.6, 0.0, 0.6], (4, 3, 3))
        if k % 4 == 3:
            worlds.param("command_scale")[:] = random.uniform(0.8, 1.2, (4, 3, 3))
            worlds.param("command_latency")[:] = worlds.param("command_jitter")[:] = (
                random.uniform(0.0, 0.3, (4, 3))
            )

        going_on = [worlds.world(i) for i in range(4)]
        kept = worlds.state.copy()
        worlds.step(5)
        for i, sim in enumerate(going_on):
            sim.step(5)
            same(worlds, i, sim)

        worlds.state[:] = kept
        worlds.step(1 + k % 2)
