"""Episodes of one world:

`Simulation.reset` starts the same episode as `Worlds`, and a journal and a recording
repeat it.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.devices.rangebearing import payload
from botyard.engine.commands import EnableMotors
from botyard.engine.demand import Demand
from botyard.engine.layout import Control
from botyard.errors import ArgumentError, NotNowError
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.mapbuilder import MapBuilder
from botyard.model.obstacles import BoxObject
from botyard.recording.verify import resimulate as prove
from botyard.sim import episodes
from botyard.sim.journal import Entry
from botyard.sim.resimulation import resimulate

ROOM = MapBuilder("room").rectangle(-4.0, -3.0, 8.0, 6.0).disc(1.0, 1.0, 0.4).scene()


def robots(sim: botyard.Simulation) -> list[Any]:
    return [
        sim.add_robot("p3dx", lasers=["lms200"], pose=(-2.0, y, 0.3))
        for y in (-1.0, 1.0)
    ]


def shown(sim: botyard.Simulation) -> list[Any]:
    """Return the visible state of a world."""
    state = sim.snapshot.state
    return [
        sim.tick,
        sim.time,
        state.pose.tolist(),
        state.odom.tolist(),
        state.odom_frame.tolist(),
        state.vel.tolist(),
        state.stall.tolist(),
        state.motors.tolist(),
        [robot.laser.ranges.tolist() for robot in sim.robots.values()],
    ]


@pytest.mark.parametrize(
    "errors", ["random_each_update", "random_init", "constant", "none"]
)
def test_episodes_are_those_of_worlds(errors: str) -> None:
    """Bit for bit, over episodes, with and without poses, and after another seed."""
    sim = botyard.Simulation(ROOM, seed=9, odometry_error=errors)
    both = robots(sim)
    spec = both[0].spec
    worlds = botyard.Worlds(
        ROOM,
        [spec, spec],
        3,
        seeds=8,
        odometry_error=errors,
        dtype=np.float64,
        sensors=["laser"],
    )
    begin = np.array([[-2.0, -1.0, 0.3], [-2.0, 1.0, 0.3]])
    worlds.reset(seeds=[8, 9, 10], poses=begin)
    dice = np.random.default_rng(1)
    for k in range(5):
        for _ in range(12):
            assert (
                sim.tick == worlds.tick[1]
                and sim.episode == worlds.episode[1]
                and sim.seed == worlds.seeds[1]
            )
            for i, robot in enumerate(both):
                assert (robot.laser.ranges == worlds.ranges[1, i]).all()
            assert (sim.snapshot.state.pose == worlds.pose[1]).all() and (
                sim.snapshot.state.vel == worlds.vel[1]
            ).all()
            assert (sim.snapshot.state.odom == worlds.odom[1]).all()
            velocities = dice.uniform([0.0, -1.0], [1.0, 1.0], (2, 2))
            sim.fleet.command(v=velocities[:, 0], w=velocities[:, 1])
            worlds.command[1, :, 0], worlds.command[1, :, 2] = velocities.T
            sim.step()
            worlds.step()

        poses = begin if k % 2 else np.array([[2.0, -2.0, 4.0], [0.0, -1.0, -1.0 * k]])
        seed = 77 if k == 3 else None
        sim.reset(seed, None if k % 2 else poses)
        worlds.reset([1], poses=poses, seeds=None if seed is None else [seed])


def test_the_first_episode_of_a_seed_is_a_new_simulation() -> None:
    """Earlier velocities, stopped motors, waiting commands, odometry and moved boxes
    have no effect.
    """
    scene = replace(
        ROOM,
        boxes=(BoxObject(name="box", pose=Pose(2.0, 0.0, 0.5), length=0.4, width=0.4),),
    )
    new, old = botyard.Simulation(scene, seed=5), botyard.Simulation(scene, seed=1)
    for sim in (new, old):
        robots(sim)
    old.fleet.command(v=0.7, w=[0.4, 0.0])
    old.step(30)
    old.core.accept_command("p3dx_002", EnableMotors(False))
    old.robots["p3dx"].command.reset_odometry()
    old.put("box", (3.0, 2.0, 0.0))
    old.step(3)
    old.fleet.command(v=1.0)
    old.reset(seed=5)
    assert old.episode == 0 and not old.core.is_pending
    for _ in range(6):
        new_state, old_state = shown(new), shown(old)
        assert new_state == old_state
        for sim in (new, old):
            sim.fleet.command(v=0.4, w=0.1)
            sim.step()


def test_bodies_with_mass_begin_anew() -> None:
    """Earlier velocities, contacts, rest states and forces have no effect."""
    wood = DynamicsSpec(mass=4.0, floor_friction=0.2)
    box = BoxObject(
        name="box", pose=Pose(-1.0, -1.0, 0.5), length=0.4, width=0.4, dynamics=wood
    )
    scene = replace(
        ROOM, boxes=(box, replace(box, name="other", pose=Pose(2.0, 2.0, 0.0)))
    )
    new, old = botyard.Simulation(scene, seed=5), botyard.Simulation(scene, seed=1)

    def place(sim: botyard.Simulation, name: str) -> list[float]:
        pose: list[float] = sim.snapshot.state.pose[sim.snapshot.rows[name]].tolist()
        return pose

    for sim in (new, old):
        robots(sim)
        sim.masses.set_dynamics("p3dx_002", replace(wood, mass=20.0))

    for _ in range(30):
        old.fleet.command(v=0.7, w=0.1)
        old.core.accept_command("other", Demand(Control.FORCE, (30.0, 0.0, 1.0)))
        old.step()

    assert place(old, "other")[0] > 2.2
    old.reset(seed=5)
    for _ in range(40):
        assert shown(new) == shown(old)
        for sim in (new, old):
            sim.fleet.command(v=0.6, w=0.05)
            sim.step()

    assert place(new, "box")[0] > -0.9 and place(new, "other") == [2.0, 2.0, 0.0]


def test_a_journal_and_a_recording_repeat_it(tmp_path: Path) -> None:
    """Later entries count time from the reset; the recording's data of both episodes
    hold in a re-simulation.
    """
    entries: list[Entry] = []
    sim = botyard.Simulation(ROOM, seed=3)
    robots(sim)
    twin = sim.clone()
    sim.core.journal.listen(entries.append)
    recording = sim.record(tmp_path / "run.mcap")
    for k in range(3):
        for _ in range(8):
            sim.fleet.command(v=0.5, w=0.1 * k)
            sim.step()

        if k < 2:
            sim.reset(poses=[[1.0, -2.0, 0.1 * k], [-3.0, 2.0, 0.0]])

    recording.close()
    *_, last = resimulate(twin, entries, sim.tick)
    assert last == sim.digest() and (twin.seed, twin.episode) == (sim.seed, 2)
    assert len(recording.files) == 3, "a file for each episode: its time begins at 0"
    for path in recording.files:
        proof = prove(path)
        assert proof.divergence is None and proof.steps == 8


def test_copies_count_on_and_states_begin_with_their_seed() -> None:
    sim = botyard.Simulation(ROOM, seed=4)
    robots(sim)
    sim.reset()
    state = sim.save_state()
    twin = copy.copy(sim)
    sim.reset()
    twin.reset()
    assert (twin.seed, twin.episode) == (sim.seed, 2) and shown(twin) == shown(sim)
    sim.restore(state)
    assert sim.episode == 0
    other = sim.clone(seed=8)
    other.reset()
    fresh = botyard.Simulation(ROOM, seed=8)
    robots(fresh)
    fresh.reset()
    assert shown(fresh) == shown(other)


def test_controllers_begin_anew() -> None:
    sim = botyard.Simulation(ROOM, seed=6)
    first, _ = robots(sim)
    first.set_controller("wander")
    runs = []
    for _ in range(2):
        sim.reset(seed=2)
        sim.step(60)
        runs.append(shown(sim))

    assert runs[0] == runs[1] and first.truth != first.start


def test_what_is_refused() -> None:
    sim = botyard.Simulation(ROOM)
    robots(sim)
    sim.step(3)
    for poses in (
        [[0.0, 0.0, 0.0]],
        [[0.0, 0.0, np.nan]] * 2,
        [[1e8, 0.0, 0.0]] * 2,
        "anywhere",
    ):
        with pytest.raises(ArgumentError, match="poses"):
            sim.reset(poses=poses)  # type: ignore[arg-type]

    with pytest.raises(ArgumentError, match="seed"):
        sim.reset(seed="x")  # type: ignore[arg-type]
    assert sim.tick == 3 and sim.episode == 0
    sim.attach("p3dx", "p3dx_002")
    with pytest.raises(NotNowError, match="carried"):
        sim.reset()
    sim.detach("p3dx_002")
    assert sim.reset().tick == 0
    empty = botyard.Simulation(ROOM)
    assert empty.reset().tick == 0


@pytest.mark.parametrize("count", [2, 9])
def test_headings_are_wrapped_and_poses_checked_for_few_and_for_many(
    count: int,
) -> None:
    sim = botyard.Simulation()
    sim.add_robots("amigo", [(2.0 * k, 0.0, 0.0) for k in range(count)])
    poses = np.array([[2.0 * k, 1.0, 4.0 - k] for k in range(count)])
    sim.reset(poses=poses)
    assert (
        sim.poses[:, :2].tolist() == poses[:, :2].tolist()
        and (np.abs(sim.poses[:, 2]) <= np.pi).all()
    )
    assert np.cos(sim.poses[:, 2]) == pytest.approx(np.cos(poses[:, 2]))
    for wrong in (np.nan, 1e8):
        poses[1, 0] = wrong
        with pytest.raises(ArgumentError, match="poses"):
            sim.reset(poses=poses)


def test_who_holds_a_robot_goes_on_holding_it_and_stop_buttons_are_released() -> None:
    """Also when the hold, or its end, waits for the next step."""
    sim = botyard.Simulation(ROOM)
    robot = sim.add_robot("p3dx", pose=(-2.0, 0.0, 0.0))

    def moves() -> bool:
        robot.command(v=0.5)
        before = robot.truth.x
        sim.step(10)
        return robot.truth.x > before

    sim.hold("p3dx")
    sim.reset()
    assert sim.core.holders("p3dx") == ("api",) and not moves()
    sim.hold("p3dx", False)
    sim.reset()
    assert sim.core.holders("p3dx") == () and moves()
    robot.press_estop()
    sim.step()
    assert not moves()
    sim.reset()
    assert not robot.electrics.estop_pressed and robot.motors_on and moves()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 17])
def test_columns_that_become_zero_are_all_of_them_and_no_others(n: int) -> None:
    sim = botyard.Simulation(seed=2)
    sim.add_robots("p3dx", [(2.0 * k, 0.0, 0.0) for k in range(n)])
    state = sim.core.engine.state
    zero = [getattr(state, name) for name in episodes._ZERO] + [np.ones(n, np.int8)]
    for column in (*state, *zero):
        column.fill(1)
    for part in episodes._merge_adjacent(zero):
        part.fill(0)
    for name in state._fields:
        assert (getattr(state, name) == int(name not in episodes._ZERO)).all(), name
    assert not any(column.any() for column in zero)
    assert n == 0 or len(episodes._merge_adjacent(zero)) < 6


def test_an_episode_forgets_what_devices_have_measured() -> None:
    """Inertial units, messages and LEDs start as in a new simulation."""

    def world() -> botyard.Simulation:
        sim = botyard.Simulation(step=0.1, seed=7)
        sim.add_robot("turtlebot3-burger", "a", pose=(0.0, 0.0, 0.0))
        sim.add_robot("e-puck", "b", pose=(0.5, 0.0, 0.0))
        sim.add_robot("e-puck", "c", pose=(0.5, 0.3, 0.0))
        return sim

    def drive(sim: botyard.Simulation) -> list[object]:
        sim.robots["a"].command(v=0.2, w=0.5)
        found: list[object] = []
        for _ in range(4):
            sim.step()
            found.append(sim.robots["a"].devices["imu"].read())
            found.append(sim.robots["c"].devices["range_and_bearing"].read())
        return found

    sim, new = world(), world()
    first = drive(sim)
    sim.robots["b"].devices["range_and_bearing"].write(**payload(b"old"))
    sim.step(3)
    assert sim.robots["c"].devices["range_and_bearing"].read()
    sim.reset(seed=7)
    assert drive(sim) == drive(new) == first
