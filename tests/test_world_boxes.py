"""Boxes in `Worlds`, with and without mass:

each world equals a simulation of its seed, bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import botyard
from botyard.engine.layout import State
from botyard.engine.masslayout import MassState
from botyard.engine.velocities import SetVelocities
from botyard.errors import ArgumentError
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject, disc
from botyard.model.scene import Scene
from botyard.worlds import workspaces
from botyard.worlds.worlds import Worlds

Box = tuple[float, float, float]
WOOD = DynamicsSpec(mass=5.0, floor_friction=0.3, restitution=0.2)
POSES: list[Box] = [(2.5, 3.0, 0.2), (4.0, 3.0, 0.0), (5.5, 1.2, 0.4)]
ROBOTS = [
    "p3dx",
    replace(botyard.load_robot("seekur"), dynamics=DynamicsSpec(mass=30.0)),
    "amigo",
]
"""One that nothing pushes, one with mass, and one with sonar alone."""
STARTS: list[Box] = [(1.3, 3.0, 0.1), (4.0, 1.2, 1.5), (5.5, 4.5, -1.6)]


def boxes(poses: Any = POSES) -> tuple[BoxObject, ...]:
    """A crate and a drum that can be pushed, and a block that cannot."""
    crate, drum, block = (Pose(*pose) for pose in np.asarray(poses).tolist())
    return (
        BoxObject(name="crate", pose=crate, length=0.6, width=0.5, dynamics=WOOD),
        BoxObject(
            name="drum",
            pose=drum,
            length=0.6,
            width=0.6,
            parts=(disc(0.3),),
            dynamics=WOOD,
        ),
        BoxObject(name="block", pose=block, length=0.5, width=0.5),
    )


def room(width: float, poses: Any = POSES) -> Scene:
    walls = [
        (0, 0, width, 0),
        (width, 0, width, 6),
        (width, 6, 0, 6),
        (0, 6, 0, 0),
        (3, 4.5, 4, 5),
    ]
    return Scene(segments=np.array(walls, np.float64), boxes=boxes(poses))


ROOMS = [room(7.0), room(8.0, [(3.0, 3.0, 1.0), (5.0, 2.5, 0.0), (1.5, 5.0, 0.0)])]


def pose_of(sim: botyard.Simulation, name: str) -> list[float]:
    pose: list[float] = sim.snapshot.state.pose[sim.snapshot.rows[name]].tolist()
    return pose


class Twin:
    """The simulation that a world is compared with."""

    def __init__(self, scene: Scene, seed: int, poses: Any = None) -> None:
        self.sim = botyard.Simulation(scene, seed=seed, warn=lambda text: None)
        for k, model in enumerate(ROBOTS):
            self.sim.add_robot(model, pose=None if poses is None else tuple(poses[k]))

    def step(self, command: Any, count: int) -> None:
        for _ in range(count):
            v, vy, w = (np.ascontiguousarray(c) for c in command.T)
            self.sim.core.accept_velocities(
                SetVelocities(self.sim.fleet.robot_rows, v, w, vy)
            )
            self.sim.step()

    def check(self, worlds: Worlds, i: int) -> None:
        columns, dynamics = self.sim.snapshot.state, self.sim.core.engine.dynamics
        assert dynamics is not None
        state, table = worlds._batch.masses(worlds._batch.state, i)
        for name in State._fields:
            ours, theirs = worlds._batch.state.of(i, name), getattr(columns, name)
            assert ours.tobytes() == theirs.tobytes(), (
                f"world {i}: {name}: {ours} {theirs}"
            )

        for name in MassState._fields:
            assert np.array_equal(
                getattr(state, name), getattr(dynamics.state, name), equal_nan=True
            ), name

        size = int(table.size[0])
        assert (
            size == dynamics.table.size[0] and table.span[0] == dynamics.table.span[0]
        )
        assert np.array_equal(table.key[:size], dynamics.table.key[:size])
        assert np.array_equal(table.impulse[:size], dynamics.table.impulse[:size])
        expected = np.concatenate(
            [self.sim.fleet.ranges("laser"), self.sim.fleet.ranges("sonar")], axis=1
        )
        assert np.array_equal(
            worlds.ranges[i], expected.astype(np.float32), equal_nan=True
        )
        assert (
            np.array_equal(worlds.pose[i], self.sim.poses)
            and int(worlds.tick[i]) == self.sim.tick
        )
        for j, name in enumerate(worlds.box_names):
            assert worlds.box_pose[i, j].tolist() == pose_of(self.sim, name)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["step", "step", "some", "reset", "seed", "place"]),
        st.integers(0, 2**32),
    ),
    min_size=3,
    max_size=7,
)


@settings(max_examples=12, deadline=None)
@given(
    n=st.integers(1, 3),
    threads=st.integers(1, 2),
    rooms=st.integers(1, 2),
    seed=st.integers(0, 2**63),
    actions=ACTIONS,
)
def test_each_world_is_a_simulation(
    n: int, threads: int, rooms: int, seed: int, actions: list[tuple[str, int]]
) -> None:
    worlds = Worlds(
        ROOMS[:rooms],
        ROBOTS,
        n,
        seeds=seed,
        threads=threads,
        sensors=["laser", "sonar"],
    )
    twins = [Twin(ROOMS[worlds.map_id[i]], int(worlds.seeds[i])) for i in range(n)]
    for what, number in actions:
        random = np.random.default_rng(number)
        mask = random.random(n) < 0.6
        if what in ("step", "some"):
            mask = np.ones(n, bool) if what == "step" else mask
            speeds = random.uniform(
                [-0.2, -0.3, -0.6], [1.0, 0.3, 0.6], (n, len(ROBOTS), 3)
            )
            worlds.command[mask] = speeds[mask]
            count = int(random.integers(1, 12))
            worlds.step(count, mask=None if what == "step" else mask)
            for i in np.flatnonzero(mask):
                twins[i].step(worlds.command[i], count)
        else:
            chosen, poses, places, new = np.flatnonzero(mask), None, None, None
            if what == "seed":
                new = random.integers(0, 2**63, len(chosen))
            if what == "place":
                poses = np.array(STARTS) + random.uniform(
                    -0.2, 0.2, (len(chosen), 3, 3)
                )
                places = np.array(POSES) + random.uniform(
                    -0.3, 0.3, (len(chosen), 3, 3)
                )

            worlds.reset(mask, seeds=new, poses=poses, box_poses=places)
            for k, i in enumerate(chosen):
                width = 7.0 + worlds.map_id[i]
                scene = (
                    ROOMS[worlds.map_id[i]]
                    if places is None
                    else room(width, places[k])
                )
                twins[i] = Twin(
                    scene, int(worlds.seeds[i]), None if poses is None else poses[k]
                )

        for i, twin in enumerate(twins):
            twin.check(worlds, i)

    worlds.close()


def test_a_simulation_begins_the_same_episodes() -> None:
    worlds, twin = (
        Worlds(ROOMS[0], ROBOTS, 2, seeds=4, sensors=["laser", "sonar"]),
        Twin(ROOMS[0], 5, STARTS),
    )
    worlds.reset([1], seeds=[5], poses=STARTS)
    for _ in range(3):
        worlds.command[:] = (0.8, 0.0, 0.1)
        worlds.step(25)
        twin.step(worlds.command[1], 25)
        twin.check(worlds, 1)
        assert np.abs(worlds.box_pose[1, :2] - np.array(POSES[:2])).max() > 0.2, (
            "something was pushed"
        )
        worlds.reset(poses=STARTS)
        twin.sim.reset()
        twin.check(worlds, 1)


def test_states_branch_and_go_on_as_simulations() -> None:
    worlds = Worlds(ROOMS[0], ROBOTS, 3, seeds=5)
    worlds.reset(poses=STARTS)
    worlds.command[:] = (0.8, 0.0, 0.1)
    worlds.step(25)
    sim, kept = worlds.world(1), worlds.state.copy()
    assert (
        sim.core.engine.dynamics is not None
        and sim.core.engine.dynamics.table.size[0] > 0
    ), "it goes on while things touch"
    worlds.state[2] = worlds.state[1]
    worlds.step(15)
    sim.step(15)
    assert worlds.state[2].tobytes() == worlds.state[1].tobytes() != kept[1].tobytes()
    assert (
        np.array_equal(sim.poses, worlds.pose[1])
        and pose_of(sim, "crate") == worlds.box_pose[1, 0].tolist()
    )
    # Contacts in a written state must be checked before a kernel uses them as indices.
    size = worlds._batch.state.of(0, "mass.size")
    for wrong in (-1, 10**6):
        size[0] = wrong
        with pytest.raises(ArgumentError, match="world 0: its state"):
            worlds.step()


def test_an_episode_is_done_again_alone() -> None:
    worlds = Worlds(ROOMS, ROBOTS, 4, seeds=2)
    worlds.keep_episodes()
    worlds.reset(poses=STARTS, box_poses=POSES)
    for k in range(8):
        worlds.command[:] = (0.7, 0.0, 0.05 * k)
        if k == 4:
            worlds.param("top_speed")[:, 0, 0] = worlds.param("max_speed")[:, 0, 0] = (
                0.4
            )

        worlds.step(4)

    for i in range(4):
        sim = worlds.repeat(i).run()
        assert np.array_equal(sim.poses, worlds.pose[i])
        assert [pose_of(sim, name) for name in worlds.box_names] == worlds.box_pose[
            i
        ].tolist()


def test_what_stops_a_robot_may_be_a_box() -> None:
    """Robot 0 presses the crate against a wall, robot 2 stands at the block; robot 1
    pushes the drum, which does not stop it.
    """
    worlds = Worlds(
        Scene(segments=np.array([[6.0, -5.0, 6.0, 9.0]])),
        ["p3dx", "p3dx", "p3dx"],
        1,
        boxes=boxes(),
    )
    starts: list[Box] = [(4.0, 0.0, 0.0), (0.0, 3.0, 0.0), (0.0, 6.0, 0.0)]
    worlds.reset(
        poses=starts, box_poses=[(5.2, 0.0, 0.0), (1.0, 3.0, 0.0), (1.0, 6.0, 0.0)]
    )
    worlds.command[:, :, 0] = 0.3
    worlds.step(60)
    assert worlds.contact.tolist() == [[2, 0, 2]] and worlds.other.tolist() == [
        [3, -1, 5]
    ]
    sim = worlds.world(0)
    assert [robot.contacts for robot in sim.robots.values()] == [
        ("crate",),
        ("drum",),
        ("block",),
    ]
    assert worlds.box_vel[0, 1, 0] > 0.2 and not worlds.box_vel[0, 2].any()


def said_by(worlds: Worlds) -> str:
    """Return the error of three steps."""
    try:
        worlds.step(3)
    except ArgumentError as error:
        return str(error)

    return ""


def test_a_world_without_room_for_its_contacts_says_so_and_stays_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workspaces, "CONTACTS", 0)
    monkeypatch.setattr(workspaces, "CONTACTS_PER_MASS", 1)
    worlds = Worlds(room(7.0), "p3dx", 2, seeds=1)
    # In world 1 the crate gets between the robot and the wall.
    worlds.reset(
        poses=[[(4.0, 1.5, 0.0)], [(5.6, 5.0, 0.0)]],
        box_poses=[POSES, [(6.4, 5.0, 0.0), *POSES[1:]]],
    )
    worlds.command[:, 0, 0] = 0.5
    refused = 0
    for _ in range(40):
        before = worlds.state.copy()
        told = said_by(worlds)
        if told:
            assert "world 1: its bodies with mass have more contacts" in told
            assert (
                worlds.state[1].tobytes() == before[1].tobytes()
                and worlds.state[0].tobytes() != before[0].tobytes()
            )
            refused += 1

    assert refused > 20 and worlds.tick.tolist() == [120, 120 - 3 * refused]
    worlds.reset([1])
    worlds.step(3)


def test_boxes_of_all_maps_are_the_same() -> None:
    more = Scene(segments=ROOMS[0].segments, boxes=boxes()[:2])
    with pytest.raises(ArgumentError, match="the boxes of the map"):
        Worlds([ROOMS[0], more], "p3dx", 8)
    for wrong in ("crate", [3], 7):
        with pytest.raises(ArgumentError, match="boxes: expected"):
            Worlds(ROOMS[0], "p3dx", 1, boxes=wrong)  # type: ignore[arg-type]

    worlds = Worlds(more, "p3dx", 1, boxes=boxes()[:1])
    sim = botyard.Simulation(more)
    sim.add_box(boxes()[0])
    assert worlds.box_names == sim.core.box_names == ("crate", "drum", "crate_002")
    with pytest.raises(ArgumentError, match="box_poses: expected"):
        worlds.reset(box_poses=[(0.0, 0.0, 0.0)] * 4)
    with pytest.raises(ArgumentError, match="box_poses: expected finite"):
        worlds.reset(box_poses=[(math.nan, 0.0, 0.0)] * 3)
    with pytest.raises(AttributeError, match="reset"):
        worlds.box_pose = np.zeros((1, 3, 3))


def test_free_places_are_beside_boxes() -> None:
    worlds = Worlds(ROOMS[0], ["p3dx", "p3dx"], 200, seeds=3)
    worlds.reset(
        poses="free",
        box_poses=lambda seeds: (
            np.array(POSES) + (seeds % 5)[:, None, None] * [0.1, 0.0, 0.0]
        ),
    )
    assert len(set(worlds.box_pose[:, 0, 0].tolist())) == 5
    radii = worlds._robot_sets[0].bodies.radius
    for places in (worlds.pose, worlds.sample_free(clearance=0.2)):
        apart = np.linalg.norm(
            places[:, :, None, :2] - worlds.box_pose[:, None, :, :2], axis=-1
        )
        assert (apart >= radii[3:, None] + radii[:3]).all()


def test_casts_see_boxes_as_a_laser_does() -> None:
    model = botyard.load_robot("p3dx")
    laser = replace(model.lasers[0], pose=Pose(), range_max=5.0, range_min=0.0)
    worlds = Worlds(
        ROOMS[0],
        replace(model, lasers=(laser,)),
        3,
        seeds=2,
        sensor_noise=False,
        dtype=np.float64,
    )
    worlds.reset(poses=[(4.0, 4.0, -1.2)])
    angles = -laser.fov / 2 + laser.increment * np.arange(laser.samples)
    xy, bearing = (
        np.repeat(worlds.pose[:, :, :2], len(angles), axis=1),
        worlds.pose[:, 0, 2:] + angles,
    )
    seen, walls = (
        worlds.cast(xy, bearing, range_max=5.0, boxes=flag) for flag in (True, False)
    )
    np.testing.assert_allclose(seen, worlds.ranges[:, 0], atol=1e-9)
    assert (walls > seen + 0.3).sum() > 20 and (walls >= seen).all()
    sim = worlds.world(1)
    assert np.array_equal(sim.cast(xy[1], bearing[1], range_max=5.0), seen[1])
    assert np.array_equal(
        sim.cast(xy[1], bearing[1], range_max=5.0, boxes=False), walls[1]
    )
    at_wall = sim.cast(
        [[0.0, 3.0], [2.0, 0.0]], [math.pi, -math.pi / 2], range_max=5.0, boxes=False
    )
    assert at_wall.tolist() == [0.0, 0.0] and not np.signbit(at_wall).any()
