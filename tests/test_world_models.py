"""Robots of `Worlds` with another model in each episode:

every world equals a simulation of its models, bit for bit.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import botyard
from botyard.engine.layout import State
from botyard.engine.velocities import SetVelocities
from botyard.errors import ArgumentError
from botyard.model.dynamics import DynamicsSpec
from botyard.model.mapbuilder import MapBuilder
from botyard.model.obstacles import BoxObject
from botyard.recording.verify import resimulate
from botyard.worlds.worlds import Worlds

ROOMS = [
    MapBuilder(f"room {k}")
    .rectangle(-4.0, -3.0, 8.0, 6.0)
    .disc(1.0, 1.0 - k, 0.4)
    .scene()
    for k in range(2)
]
LATE = replace(
    botyard.load_robot("p3dx"),
    name="late",
    commands=replace(
        botyard.load_robot("p3dx").commands, latency=0.3, jitter=0.1, rate=5.0
    ),
    lasers=(
        replace(
            botyard.load_robot("p3dx").lasers[0], latency=0.2, samples=31, range_max=3.0
        ),
    ),
)
FIRST, SECOND = ["p3dx", "amigo", "seekur", LATE], ["amigo", "p3at"]
"""A laser and a ring; a ring alone; omnidirectional; late, with fewer beams."""


class Twin:
    """The simulation that a world is compared with."""

    def __init__(self, worlds: Worlds, i: int, poses: np.ndarray | None = None) -> None:
        self.sim = botyard.Simulation(
            ROOMS[worlds.map_id[i]], seed=int(worlds.seeds[i]), warn=lambda text: None
        )
        for j, (models, number) in enumerate(
            zip((FIRST, SECOND), worlds.model_id[i].tolist(), strict=True)
        ):
            self.sim.add_robot(
                models[number],
                worlds.names[j],
                pose=None if poses is None else tuple(poses[j]),
            )

    def step(self, command: np.ndarray, count: int) -> None:
        for _ in range(count):
            v, vy, w = (np.ascontiguousarray(c) for c in command.T)
            self.sim.core.accept_velocities(SetVelocities(np.arange(2), v, w, vy))
            self.sim.step()

    def check(self, worlds: Worlds, i: int) -> None:
        for name in State._fields:
            ours, theirs = (
                worlds._batch.state.of(i, name),
                getattr(self.sim.snapshot.state, name),
            )
            assert ours.tobytes() == theirs.tobytes(), (
                f"world {i}: {name}: {ours} {theirs}"
            )

        for j, robot in enumerate(self.sim.robots.values()):
            laser, ring = worlds.ranges[i, j, :181], worlds.ranges[i, j, 181:]
            for sensor, ours in (
                (robot.laser if robot.lasers else None, laser),
                (robot.sonar, ring),
            ):
                theirs = np.zeros(0) if sensor is None else sensor.ranges
                assert np.array_equal(ours[: len(theirs)], theirs.astype(np.float32))
                assert np.isnan(ours[len(theirs) :]).all(), (
                    "nothing of other models is left"
                )


def made(n: int, **options: Any) -> Worlds:
    return Worlds(ROOMS, [FIRST, SECOND], n, sensors=["laser", "sonar"], **options)


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 4),
    threads=st.integers(1, 3),
    seed=st.integers(0, 2**64 - 10),
    actions=st.lists(
        st.tuples(
            st.sampled_from(["step", "some", "reset", "model", "branch"]),
            st.integers(0, 2**32),
        ),
        max_size=8,
    ),
)
@example(
    2,
    2,
    1,
    [
        ("step", 1),
        ("model", 2),
        ("step", 3),
        ("branch", 4),
        ("step", 5),
        ("reset", 6),
        ("some", 7),
    ],
)
def test_each_world_is_a_simulation_of_its_models(
    n: int, threads: int, seed: int, actions: list[Any]
) -> None:
    with made(n, threads=threads, seeds=seed) as worlds:
        twins = [Twin(worlds, i) for i in range(n)]
        for what, number in actions:
            dice = np.random.default_rng(number)
            chosen = np.flatnonzero(dice.random(n) < 0.6)
            if what in ("step", "some"):
                rows = np.arange(n) if what == "step" else chosen
                worlds.command[rows] = dice.uniform(
                    [-0.4, -0.5, -1.0], [1.2, 0.5, 1.0], (len(rows), 2, 3)
                )
                count = int(dice.integers(1, 8))
                worlds.step(count, mask=rows)
                for i in rows.tolist():
                    twins[i].step(worlds.command[i], count)
            elif what == "branch":
                a, b = dice.integers(0, n, 2).tolist()
                worlds.state[a] = worlds.state[b]
                twins[a] = Twin(worlds, a)
                twins[a].sim = worlds.world(b)
            else:
                ids = (
                    dice.integers(0, [4, 2], (len(chosen), 2))
                    if what == "model"
                    else None
                )
                poses = dice.uniform([-3, -2, -3], [0, 2, 3], (len(chosen), 2, 3))
                worlds.reset(chosen, poses=poses, model_id=ids)
                assert ids is None or np.array_equal(worlds.model_id[chosen], ids)
                for k, i in enumerate(chosen.tolist()):
                    twins[i] = Twin(worlds, i, poses[k])

            for i, twin in enumerate(twins):
                twin.check(worlds, i)


def test_models_follow_seed_and_episode_alone() -> None:
    many, one = made(5, seeds=3, threads=2), made(1, seeds=5)
    met = set()
    for _ in range(40):
        assert many.model_id[2].tolist() == one.model_id[0].tolist()
        met.add(tuple(one.model_id[0].tolist()))
        many.reset()
        one.reset()

    assert met == {(a, b) for a in range(4) for b in range(2)}, (
        "each pair of models in forty episodes"
    )


def test_a_world_that_is_taken_out_goes_on_as_it_does() -> None:
    worlds = made(4, seeds=2)
    worlds.command[:] = [0.4, 0.0, 0.3]
    worlds.step(7)
    sims = [worlds.world(i) for i in range(4)]
    worlds.step(6)
    for i, sim in enumerate(sims):
        sim.step(6)
        twin = Twin(worlds, i)
        twin.sim = sim
        twin.check(worlds, i)


def test_another_model_has_its_own_parameters_and_the_same_keeps_those_that_were_written() -> (
    None
):
    worlds = made(2, seeds=1)
    worlds.reset(model_id=[0, 0])
    usual = worlds.param("max_speed").copy()
    worlds.param("max_speed")[:, 0, 0] = 0.2
    worlds.param("range_noise")[:] = 0.1
    worlds.reset(model_id=[[0, 0], [2, 0]])
    assert (
        worlds.param("max_speed")[0, 0, 0] == 0.2
        and (worlds.param("range_noise")[0] == 0.1).all()
    )
    assert (
        worlds.param("max_speed")[1, 0, 0]
        == botyard.load_robot("seekur").limits.max_speed.x
        != 0.2
    )
    assert not (worlds.param("range_noise")[1] == 0.1).any()
    worlds.reset(model_id=[0, 0])
    assert worlds.param("max_speed")[:, 0, 0].tolist() == [0.2, usual[1, 0, 0]]


def test_free_places_have_room_for_the_models() -> None:
    """A hall of 0.6 m has room for an amigo and not for a seekur."""
    scene = (
        MapBuilder("gap")
        .rectangle(0.0, 0.0, 6.0, 4.0)
        .line((3.0, 0.0), (3.0, 4.0))
        .scene()
    )
    solid = np.ones((10, 64), np.bool_)
    solid[2:8, 2:62] = False
    # Cells around the array are unknown, so robots cannot start there.
    narrow = botyard.Scene.from_array(
        solid,
        0.1,
        name="hall",
    )
    worlds = Worlds([scene, narrow], [["amigo", "seekur"]], 40, seeds=3)
    worlds.reset(map_id=0, model_id=[[k % 2] for k in range(40)], poses="free")
    radius = [worlds._robot_sets[k].bodies.radius[0] for k in range(2)]
    for x, y, _ in worlds.pose[::2, 0].tolist():
        assert min(abs(x), abs(x - 3), abs(6 - x), y, 4 - y) >= radius[0] + 0.1
    for x, y, _ in worlds.pose[1::2, 0].tolist():
        assert min(abs(x), abs(x - 3), abs(6 - x), y, 4 - y) >= radius[1] + 0.1
    before = worlds.state.copy()
    with pytest.raises(ArgumentError, match='no place in the map "hall" is'):
        worlds.reset([0], map_id=1, model_id=[1], poses="free")
    assert worlds.state.tobytes() == before.tobytes()
    worlds.step()
    worlds.reset([0], map_id=1, model_id=[0], poses=[(1.0, 0.3, 0.0)])
    worlds.step()
    assert worlds.map_id[:2].tolist() == [1, 0] and worlds.model_id[:2].tolist() == [
        [0],
        [1],
    ]


def test_episodes_of_any_models_are_repeated(tmp_path: Path) -> None:
    worlds = made(3, seeds=4, dtype=np.float64)
    worlds.keep_episodes()
    dice = np.random.default_rng(3)
    for k in range(30):
        worlds.command[...] = dice.uniform([0.0, 0.0, -1.0], [1.0, 0.0, 1.0], (3, 2, 3))
        if k % 7 == 3:
            worlds.param("range_noise")[k % 3] = dice.uniform(0.0, 0.1)
            worlds.param("command_latency")[k % 3] = 0.1

        worlds.step()
        worlds.reset(dice.random(3) < 0.1, poses="free")

    assert len({tuple(row) for row in worlds.model_id.tolist()}) > 1
    for i in range(3):
        Twin(worlds, i)
        sim = worlds.repeat(i).run()
        assert (
            np.array_equal(sim.snapshot.state.pose, worlds.pose[i])
            and sim.tick == worlds.tick[i]
        )
        file = worlds.repeat(i).record(tmp_path / f"{i}.mcap")
        assert resimulate(tmp_path / f"{i}.mcap").divergence is None, file


def test_bodies_with_mass_are_pushed_by_whichever_model_comes() -> None:
    crate = BoxObject(
        name="crate",
        pose=botyard.Pose(1.5, 0.0),
        length=0.6,
        width=0.4,
        dynamics=DynamicsSpec(mass=8.0, floor_friction=0.3),
    )
    worlds = Worlds(botyard.Scene(), [["p3dx", "seekur"]], 6, seeds=1, boxes=[crate])
    worlds.reset(poses=[(0.0, 0.0, 0.0)], model_id=[[k % 2] for k in range(6)])
    worlds.command[:, 0, 0] = 0.4
    worlds.step(40)
    assert len({pose.tobytes() for pose in worlds.box_pose[::2]}) == 1
    assert len({pose.tobytes() for pose in worlds.box_pose[1::2]}) == 1
    assert (worlds.box_pose[1, 0] != worlds.box_pose[0, 0]).any() and (
        worlds.box_pose[:, 0, 0] > 1.5
    ).all()
    for i in range(2):
        sim = botyard.Simulation(
            botyard.Scene(boxes=(crate,)),
            seed=int(worlds.seeds[i]),
            warn=lambda text: None,
        )
        sim.add_robot(
            ["p3dx", "seekur"][i], worlds.names[0], pose=(0.0, 0.0, 0.0)
        ).command(v=0.4)
        sim.step(40)
        assert np.array_equal(sim.snapshot.state.pose[:1], worlds.box_pose[i])


@pytest.mark.parametrize(
    ("robots", "words"),
    [
        ([[]], "robots: expected at least one model, found none"),
        ([["p3dx", "p3dx-equipped"]], "grippers are not supported"),
        ([["p3dx", 7]], "robots: expected"),
        ([["p3dx", "amigo"]] * 11, "at most 1024 combinations .* found 2048"),
        (
            [
                [
                    "p3dx",
                    replace(
                        botyard.load_robot("p3dx"), dynamics=DynamicsSpec(mass=9.0)
                    ),
                ]
            ],
            "or that all have none, found both",
        ),
    ],
)
def test_what_cannot_be_chosen_from_is_said(robots: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Worlds(ROOMS[0], robots, 2)


def test_numbers_of_models_are_checked() -> None:
    worlds = made(2)
    before = worlds.state.copy()
    for wrong in ([4, 0], [0, 2], [-1, 0]):
        with pytest.raises(
            ArgumentError,
            match=r"model_id: \w+: expected 0 … \d, the numbers of its models, found -?\d",
        ):
            worlds.reset(model_id=wrong)

    with pytest.raises(
        ArgumentError, match=r"model_id: expected whole numbers of shape \(2, 2\)"
    ):
        worlds.reset(model_id=1.5)

    assert worlds.state.tobytes() == before.tobytes()
    worlds._robot_set_ids[1] = 99
    with pytest.raises(
        ArgumentError,
        match=r"world 1: expected models with a number from 0 to .* in its state, found 99",
    ):
        worlds.step()

    worlds.state[:] = before
    worlds.param("range_max")[0, 0] = np.nan
    with pytest.raises(ArgumentError, match=r"range_max of (laser|sonar) of p3dx"):
        worlds.step()
    assert Worlds(ROOMS[0], "p3dx", 3).model_id.tolist() == [[0], [0], [0]]
