"""`Worlds`:

each world equals a simulation of its seed, bit for bit, independent of the others.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import botyard
from botyard.devices.errors import NormalErrorsSpec, WanderingOdometrySpec
from botyard.engine import rng
from botyard.engine.layout import State
from botyard.engine.velocities import SetVelocities
from botyard.errors import ArgumentError, NotNowError
from botyard.model.devices import DeviceSpec
from botyard.model.scene import Scene
from botyard.worlds.worlds import Worlds

WORD = 2**64 - 1


def room(width: float, *walls: tuple[float, float, float, float]) -> Scene:
    square = [(0, 0, width, 0), (width, 0, width, 6), (width, 6, 0, 6), (0, 6, 0, 0)]
    return Scene(segments=np.array([*square, *walls], np.float64))


def carrying(device: DeviceSpec) -> botyard.RobotSpec:
    return replace(botyard.load_robot("p3dx"), devices=(device,))


ROOMS = [
    room(7.0),
    room(8.0, (3, 1, 5, 2), (2, 5, 2, 3.5)),
    room(9.0, (4, 4, 4.5, 4), (6, 1, 6, 5)),
]
ROBOTS = ["p3dx", "seekur", "amigo"]
"""A laser; omnidirectional; sonar alone."""


def episode_seed(seed: int, episode: int) -> int:
    """Plain twin of `rng.episode_seeds` with Python's integers."""
    if episode == 0:
        return seed & WORD
    key = rng._mix((seed + rng._GOLDEN) & WORD)
    return rng._mix(key ^ (episode + rng._GOLDEN & WORD))


class Twin:
    """The simulation that a world is compared with."""

    def __init__(
        self, scene: Scene, seed: int, poses: np.ndarray | None, **options
    ) -> None:
        self.sim = botyard.Simulation(
            scene, seed=seed, warn=lambda text: None, **options
        )
        for k, model in enumerate(ROBOTS):
            self.sim.add_robot(model, pose=None if poses is None else tuple(poses[k]))

    def step(self, command: np.ndarray, count: int) -> None:
        for _ in range(count):
            v, vy, w = (np.ascontiguousarray(c) for c in command.T)
            self.sim.core.accept_velocities(
                SetVelocities(np.arange(len(ROBOTS)), v, w, vy)
            )
            self.sim.step()

    def check(self, worlds: Worlds, i: int) -> None:
        columns = self.sim.snapshot.state
        for name in State._fields:
            ours, theirs = worlds._batch.state.of(i, name), getattr(columns, name)
            assert ours.tobytes() == theirs.tobytes(), (
                f"world {i}: {name}: {ours} {theirs}"
            )

        expected = np.concatenate(
            [self.sim.fleet.ranges("laser"), self.sim.fleet.ranges("sonar")], axis=1
        )
        assert np.array_equal(
            worlds.ranges[i], expected.astype(worlds.ranges.dtype), equal_nan=True
        )
        assert int(worlds.tick[i]) == self.sim.tick


def commands(rng_: np.random.Generator, n: int) -> np.ndarray:
    """Return fast commands, so that robots meet walls and each other."""
    found = rng_.uniform(-1.0, 1.0, (n, len(ROBOTS), 3))
    found[..., 0] = rng_.uniform(-0.4, 1.2, (n, len(ROBOTS)))
    return found


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["step", "step", "step", "some", "reset", "seed", "place"]),
        st.integers(0, 2**32),
    ),
    min_size=3,
    max_size=10,
)


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 4),
    threads=st.integers(1, 3),
    rooms=st.integers(1, 3),
    seed=st.integers(0, 2**64 - 10),
    dtype=st.sampled_from([np.float32, np.float64]),
    errors=st.sampled_from(["random_each_update", "random_init", "constant", "none"]),
    noise=st.booleans(),
    actions=ACTIONS,
)
def test_each_world_is_a_simulation(
    n, threads, rooms, seed, dtype, errors, noise, actions
) -> None:
    options = {"odometry_error": errors, "sensor_noise": noise}
    worlds = Worlds(
        ROOMS[:rooms],
        ROBOTS,
        n,
        seeds=seed,
        threads=threads,
        dtype=dtype,
        sensors=["laser", "sonar"],
        **options,
    )
    seeds, episodes = [seed + i for i in range(n)], [0] * n
    twins = [Twin(ROOMS[worlds.map_id[i]], seeds[i], None, **options) for i in range(n)]
    for what, number in actions:
        random = np.random.default_rng(number)
        mask = random.random(n) < 0.6
        if what in ("step", "some"):
            mask = np.ones(n, bool) if what == "step" else mask
            worlds.command[mask] = commands(random, n)[mask]
            count = int(random.integers(1, 12))
            worlds.step(count, mask=None if what == "step" else mask)
            for i in np.flatnonzero(mask):
                twins[i].step(worlds.command[i], count)
        else:
            chosen = np.flatnonzero(mask)
            poses, new = None, None
            if what == "seed":
                new = random.integers(0, 2**63, len(chosen))
            if what == "place":
                poses = random.uniform(
                    [1, 1, -3], [6, 5, 3], (len(chosen), len(ROBOTS), 3)
                )

            worlds.reset(mask, seeds=new, poses=poses)
            for k, i in enumerate(chosen):
                episodes[i] = 0 if new is not None else episodes[i] + 1
                seeds[i] = seeds[i] if new is None else int(new[k])
                scene = ROOMS[worlds.map_id[i]]
                twins[i] = Twin(
                    scene,
                    episode_seed(seeds[i], episodes[i]),
                    None if poses is None else poses[k],
                    **options,
                )

        for i, twin in enumerate(twins):
            twin.check(worlds, i)
            assert int(worlds.episode[i]) == episodes[i]

    worlds.close()


def test_contacts_say_what_has_stopped_a_robot() -> None:
    worlds = Worlds(room(12.0), ["p3dx", "p3dx", "p3dx"], 2, sensor_noise=False)
    # The first robot drives to the second, which stands still. The third drives to a
    # wall, in world 1 only.
    poses = [(3.0, 3.0, 0.0), (4.5, 3.0, 0.0), (10.5, 1.0, 0.0)]
    worlds.reset(poses=poses)
    worlds.command[:, 0, 0] = 0.5
    worlds.command[1, 2, 0] = 0.5
    worlds.step(60)
    assert worlds.contact.tolist() == [[2, 0, 0], [2, 0, 1]]
    assert worlds.other.tolist() == [[1, -1, -1], [1, -1, -1]]
    worlds.command[:, 0, 0] = -0.2
    worlds.step(20)
    assert worlds.contact.tolist() == [[0, 0, 0], [0, 0, 1]]
    worlds.command[:] = 0.0
    worlds.step(20)
    assert not worlds.contact.any() and (worlds.other == -1).all()


def test_a_robot_that_overlaps_a_wall_meets_what_it_drives_to() -> None:
    """It may move away from the wall; then the robot ahead stops it."""
    worlds = Worlds(room(12.0), ["p3dx", "p3dx"], 1)
    worlds.reset(poses=[(0.05, 3.0, 0.0), (0.75, 3.0, 0.0)])
    worlds.command[0, 0, 0] = 0.5
    worlds.step(30)
    assert worlds.contact.tolist() == [[2, 0]] and worlds.other.tolist() == [[1, -1]]
    worlds.command[0, 0, 0] = -0.5
    worlds.step(30)
    assert worlds.contact.tolist() == [[1, 0]] and worlds.other.tolist() == [[-1, -1]]


def test_a_state_branches_and_goes_on_as_a_simulation() -> None:
    worlds = Worlds(ROOMS, ROBOTS, 3, seeds=5, sensors=["laser", "sonar"])
    worlds.command[:] = commands(np.random.default_rng(1), 3)
    worlds.step(25)
    worlds.reset([1])
    worlds.step(10)
    kept = worlds.state.copy()
    worlds.state[2] = worlds.state[1]
    sim = worlds.world(1)
    worlds.step(15)
    sim.step(15)
    assert worlds.state[2].tobytes() == worlds.state[1].tobytes() != kept[1].tobytes()
    assert np.array_equal(sim.snapshot.state.pose, worlds.pose[1])
    assert np.array_equal(
        sim.fleet.ranges("laser")[0].astype(np.float32), worlds.ranges[1, 0, :181]
    )
    after = worlds.state.copy()
    worlds.state[:] = kept
    assert worlds.tick.tolist() == [35, 10, 35]
    worlds.step(15)
    assert worlds.state[:2].tobytes() == after[:2].tobytes()


def test_parameters_are_those_of_models() -> None:
    """Parameters written into one world act like a model with these numbers, only in
    that world, also after a reset.
    """
    model = botyard.load_robot("p3dx")
    slow = replace(
        model,
        limits=replace(
            model.limits,
            max_speed=replace(model.limits.max_speed, x=0.3),
            accel=replace(model.limits.accel, x=0.1),
        ),
        lasers=(
            replace(model.lasers[0], range_max=2.5, range_noise=0.2, angle_noise=0.01),
        ),
        odometry_error=replace(model.odometry_error, x=0.3),
    )
    worlds = Worlds(ROOMS[1], model, 2)
    worlds.param("top_speed")[1, 0, 0] = worlds.param("max_speed")[1, 0, 0] = 0.3
    worlds.param("accel")[1, 0, 0] = 0.1
    (
        worlds.param("odometry_error_low")[1, 0, 0],
        worlds.param("odometry_error_high")[1, 0, 0],
    ) = -0.3, 0.3
    (
        worlds.param("range_max")[1],
        worlds.param("range_noise")[1],
        worlds.param("bearing_noise")[1],
    ) = 2.5, 0.2, 0.01
    worlds.reset()
    worlds.command[:, 0, 0] = 1.0
    worlds.step(20)
    for i, spec in enumerate((model, slow)):
        sim = botyard.Simulation(
            ROOMS[1], seed=int(worlds.seeds[i]), warn=lambda text: None
        )
        robot = sim.add_robot(spec)
        robot.command(v=1.0, w=0.0)
        sim.step(20)
        assert np.array_equal(sim.poses, worlds.pose[i]) and np.array_equal(
            sim.fleet.odometry, worlds.odom[i]
        )
        assert np.array_equal(
            robot.laser.ranges.astype(np.float32), worlds.ranges[i, 0]
        )
        assert np.array_equal(
            worlds.world(i).fleet.ranges("laser"), sim.fleet.ranges("laser")
        )


def test_bad_numbers_stop_their_world_alone_and_are_named() -> None:
    worlds = Worlds(ROOMS[0], "p3dx", 3)
    worlds.command[:, 0, 0] = 0.5
    worlds.command[1, 0, 2] = math.nan
    with pytest.raises(ArgumentError, match="world 1: a command"):
        worlds.step(3)
    assert worlds.tick.tolist() == [3, 0, 3]
    worlds.reset([1])
    worlds.step()
    for name in ("max_speed", "accel", "range_max", "range_noise"):
        array = worlds.param(name)
        before = array[2].copy()
        for value in (math.nan, -1.0, math.inf):
            array[2] = value
            with pytest.raises(ArgumentError, match="world 2: "):
                worlds.step()

        array[2] = before
        worlds.step()

    worlds.state[0] = np.random.default_rng(1).integers(
        0, 256, worlds.state.shape[1], np.uint8
    )
    with pytest.raises(ArgumentError):
        worlds.step()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 0}, "n: expected"),
        ({"threads": 0}, "threads: expected"),
        ({"dtype": np.int32}, "dtype: expected"),
        ({"robots": []}, "robots: expected"),
        ({"scenes": []}, "scenes: expected"),
        ({"seeds": [1, 2]}, "seeds: expected"),
        ({"sensors": ["lidar"]}, "sensors: expected one of laser, sonar"),
        (
            {"robots": carrying(NormalErrorsSpec(range_deviation=0.1))},
            "error models of range sensors are not supported",
        ),
        (
            {"robots": carrying(WanderingOdometrySpec())},
            r"devices with a state .* are not supported",
        ),
        ({"robots": "p3dx-equipped"}, "grippers are not supported"),
        ({"scenes": lambda number: None}, r"scenes\(\d+\): expected a Scene"),
    ],
)
def test_what_is_not_supported_is_said(change: dict, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Worlds(**({"scenes": ROOMS[0], "robots": "p3dx", "n": 3} | change))


def test_masks_and_poses_are_checked() -> None:
    worlds = Worlds(ROOMS[0], "p3dx", 3)
    for mask in ([True], [3], [-1], [0, 0], [0.5, 1.0, 2.0], "all"):
        with pytest.raises(ArgumentError, match="mask: expected"):
            worlds.step(mask=mask)

    for name, value in (
        ("poses", [[1.0, 2.0]]),
        ("poses", [[1.0, 2.0, math.inf]]),
        ("map_id", 1),
        ("seeds", np.array([1.5, 2.5, 3.5])),
    ):
        with pytest.raises(ArgumentError, match=f"{name}: expected"):
            worlds.reset(**{name: value})

    with pytest.raises(ArgumentError, match="name: expected one of"):
        worlds.param("mass")
    with pytest.raises(AttributeError, match="write into it"):
        worlds.command = np.zeros((3, 1, 3))
    worlds.step(mask=[])
    worlds.reset([])
    assert worlds.tick.tolist() == [0, 0, 0]


def test_maps_follow_seed_and_episode_alone() -> None:
    """For any n, threads and neighbours, the maps of a world depend on its seed, and a
    function supplies new ones in time.
    """
    made: list[int] = []

    def scenes(number: int) -> Scene:
        made.append(number)
        return room(7.0 + 0.1 * number)

    many = Worlds(scenes, "p3dx", 6, seeds=3, map_pool=2, threads=2)
    one = Worlds(scenes, "p3dx", 1, seeds=5, map_pool=2)
    met = []
    for episode in range(5):
        assert many.map_id[2] == one.map_id[0]
        assert set(many.map_id.tolist()) <= {episode // 2 * 2, episode // 2 * 2 + 1}
        assert (
            np.array_equal(many.ranges[2], one.ranges[0])
            and many.pose[2].tolist() == one.pose[0].tolist()
        )
        for i in range(6):
            assert (
                many.world(i).scene.bounds
                == room(7.0 + 0.1 * int(many.map_id[i])).bounds
            )

        met.append(int(one.map_id[0]))
        for worlds in (many, one):
            worlds.command[:] = 0.4
            worlds.step(5)
            worlds.reset()

    assert len(set(met)) > 2 and len(set(made)) >= 6
    many.reset([0], map_id=100)
    assert (
        many.map_id.tolist()[0] == 100
        and many.world(0).scene.bounds == room(17.0).bounds
    )
    many.step()


def test_a_state_of_a_map_that_is_not_kept_any_more_gets_it_again() -> None:
    worlds = Worlds(
        lambda number: room(7.0 + number), "p3dx", 1, map_pool=1, sensor_noise=False
    )
    worlds.reset(poses=[(2.0, 3.0, 0.0)])
    kept, ranges = worlds.state.copy(), worlds.ranges.copy()
    for _ in range(4):
        worlds.reset(poses=[(2.0, 3.0, 0.0)])
    assert not np.array_equal(worlds.ranges, ranges)
    worlds.state[:] = kept
    worlds.command[:] = 0.0
    worlds.step()
    assert np.array_equal(worlds.ranges, ranges)


def test_places_are_free_apart_and_reachable() -> None:
    # The map has two halves without a door. Robots start in the left half, where a wall in the
    # middle leaves a gap.
    scene = replace(
        room(12.0, (6, 0, 6, 6), (3, 2, 3, 4)), start=botyard.Pose(1.5, 3.0, 0.0)
    )
    worlds = Worlds(scene, ["p3dx", "amigo", "p3dx"], 300, seeds=1)
    places = worlds.sample_free(clearance=0.15)
    assert (
        (places[..., 0] < 6).all()
        and np.ptp(places[..., 0]) > 3
        and np.ptp(places[..., 2]) > 6
    )
    everywhere = worlds.sample_free([0, 7, 9], clearance=0.15, reachable=False)
    assert everywhere.shape == (3, 3, 3)
    assert (worlds.sample_free(reachable=False)[..., 0] > 6).mean() == pytest.approx(
        0.5, abs=0.1
    )
    worlds.reset(poses=places)
    for i in range(0, 300, 30):
        engine = worlds.world(i).core.engine
        assert not engine.touching(np.arange(3)).any()

    # distances to the nearest wall, by plain geometry
    walls, radius = scene.segments, worlds._robot_sets[0].bodies.radius
    for pose, r in zip(places[:50].reshape(-1, 3), np.tile(radius, 50), strict=True):
        along = walls[:, 2:] - walls[:, :2]
        t = np.clip(
            ((pose[:2] - walls[:, :2]) * along).sum(1) / (along**2).sum(1), 0, 1
        )
        assert (
            np.linalg.norm(walls[:, :2] + t[:, None] * along - pose[:2], axis=1).min()
            >= r + 0.15
        )

    with pytest.raises(ArgumentError, match="no place in the map"):
        worlds.sample_free(clearance=5.0)


def test_places_are_drawn_by_seed_and_episode_alone() -> None:
    many, one = Worlds(ROOMS, "p3dx", 5, seeds=10), Worlds(ROOMS, "p3dx", 1, seeds=12)
    # Resets of other worlds must not affect the draws of world 2.
    many.reset([0, 3], poses="free")
    for _ in range(3):
        for worlds in (many, one):
            worlds.reset(
                np.arange(len(worlds)) == (2 if worlds is many else 0), poses="free"
            )

        assert many.pose[2].tolist() == one.pose[0].tolist()
        goals = many.sample_free(), one.sample_free()
        assert goals[0][2].tolist() == goals[1][0].tolist() != one.pose[0].tolist()
        assert (
            many.sample_free([2]).tolist()
            == one.sample_free().tolist()
            != goals[1].tolist()
        )
        # Further draws of this episode must not affect the next episode.
        many.sample_free([2])


def test_rays_are_those_of_an_exact_laser() -> None:
    model = botyard.load_robot("p3dx")
    laser = replace(model.lasers[0], pose=botyard.Pose(), range_max=5.0, range_min=0.0)
    worlds = Worlds(
        ROOMS,
        replace(model, lasers=(laser,)),
        7,
        seeds=2,
        sensor_noise=False,
        dtype=np.float64,
        threads=2,
    )
    worlds.reset(poses="free")
    angles = -laser.fov / 2 + laser.increment * np.arange(laser.samples)
    xy = np.repeat(worlds.pose[:, :, :2], laser.samples, axis=1)
    out = np.zeros((7, laser.samples))
    assert (
        worlds.cast(xy, worlds.pose[:, 0, 2:] + angles, range_max=5.0, out=out) is out
    )
    np.testing.assert_allclose(out, worlds.ranges[:, 0], atol=1e-9)
    assert (out == 5.0).any() and (out < 5.0).any()
    for wrong in (
        {"xy": xy[:3]},
        {"bearing": [[math.nan]]},
        {"out": np.zeros((7, 3))},
        {"range_max": -1.0},
    ):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            worlds.cast(
                **(
                    {
                        "xy": xy,
                        "bearing": np.zeros((7, laser.samples)),
                        "range_max": 5.0,
                    }
                    | wrong
                )
            )


def test_worlds_need_little_memory_and_share_grids() -> None:
    worlds = Worlds(ROOMS[0], "p3dx", 1024)
    per_world = (
        worlds.state.shape[1]
        + worlds._batch._derived.bytes.shape[1]
        + 8 * worlds._batch._table.words.shape[1]
    )
    assert per_world < 10_000
    assert len(worlds._batch._grids) == 1


def test_starts_by_a_function_of_the_seeds_of_episodes() -> None:
    """It gets the seeds of the new episodes, and only of the chosen worlds."""
    worlds = botyard.Worlds(botyard.Scene(), "p3dx", 3, seeds=[5, 6, 7])
    asked: list[Any] = []

    def starts(seeds: Any) -> Any:
        asked.append(seeds)
        return np.stack(
            [
                np.full((len(seeds), 1), 2.0),
                seeds[:, None] % 7 * 1.0,
                np.zeros((len(seeds), 1)),
            ],
            axis=-1,
        )

    worlds.reset(poses=starts)
    worlds.reset([0, 2], poses=starts)
    assert (
        asked[1].tolist() == worlds.seeds[[0, 2]].tolist()
        and asked[0][1] == worlds.seeds[1]
    )
    assert (
        worlds.pose[:, 0, 0].tolist() == [2.0] * 3
        and worlds.pose[:, 0, 1].tolist() == (worlds.seeds % 7).tolist()
    )
    with pytest.raises(ArgumentError, match="poses"):
        worlds.reset(poses=lambda seeds: "anywhere")
    assert worlds.episode.tolist() == [2, 1, 2], "a refused reset begins nothing"


def test_rows_of_what_is_given_follow_the_order_of_numbers() -> None:
    for threads in (1, 2):
        worlds = Worlds(ROOMS, "p3dx", 4, seeds=1, threads=threads)
        poses = [[(2.0, 2.0, 0.0)], [(1.0, 1.0, 0.0)], [(3.0, 1.0, 0.0)]]
        worlds.reset([3, 0, 2], poses=poses, seeds=[30, 0, 20], map_id=[0, 1, 2])
        assert worlds.pose[[3, 0, 2]].tolist() == [
            [list(pose) for pose in of_world] for of_world in poses
        ]
        assert worlds.seeds.tolist() == [0, 2, 20, 30] and worlds.map_id[
            [3, 0, 2]
        ].tolist() == [0, 1, 2]
        kept = worlds.state.copy()
        places = worlds.sample_free([3, 0, 2])
        worlds.state[:] = kept
        assert np.array_equal(worlds.sample_free([0, 2, 3]), places[[1, 2, 0]])
        worlds.step(2, mask=[3, 1])
        assert worlds.tick.tolist() == [0, 2, 0, 2]


def test_a_reset_that_fails_has_begun_nothing() -> None:
    def scenes(number: int) -> Scene:
        if number > 5:
            raise LookupError("no more maps")
        return ROOMS[number % 3]

    small = Worlds(room(1.5), "p3dx", 2, seeds=3)
    made = Worlds(scenes, "p3dx", 2, seeds=3, map_pool=2)
    for _ in range(5):
        made.reset()
    for worlds, wrong, error in (
        (Worlds(ROOMS[0], ["p3dx"] * 60, 2), {"poses": "free"}, ArgumentError),
        (small, {"poses": [[1e9, 0.0, 0.0]]}, ArgumentError),
        (small, {"seeds": 7, "poses": "fre"}, ArgumentError),
        (made, {}, LookupError),
        (made, {"map_id": 9, "seeds": 5}, LookupError),
    ):
        before = worlds.state.copy()
        with pytest.raises(error):
            worlds.reset(**wrong)
        assert worlds.state.tobytes() == before.tobytes()
        worlds.step()
        assert worlds.tick.tolist() == [1, 1]
        worlds.state[:] = before


@pytest.mark.parametrize("threads", [1, 2])
def test_resets_at_given_poses_do_what_other_resets_do(threads: int) -> None:
    """Arrays use a faster path; a list instead of an array uses the usual one."""
    starts = np.random.default_rng(1).uniform(
        (1.0, 1.0, -4.0), (6.0, 5.0, 4.0), (3, 2, 3)
    )

    def worlds() -> Worlds:
        made = Worlds(ROOMS[0], ["p3dx", "seekur"], 5, seeds=3, threads=threads)
        made.command[:] = 0.3
        made.step(3)
        made.sample_free()
        return made

    short, usual = worlds(), worlds()
    for chosen in ([3, 0, 4], [False, True, True, False, True]):
        short.reset(chosen, poses=starts)
        usual.reset(chosen, poses=starts.tolist())
        assert short.state.tobytes() == usual.state.tobytes()
        assert np.array_equal(short.sample_free(), usual.sample_free())
        short.step()
        usual.step()

    before = short.state.copy()
    for wrong in (math.nan, math.inf, -2e7):
        for axis in range(3 if abs(wrong) != 2e7 else 2):
            poses = starts[:1].copy()
            poses[0, 1, axis] = wrong
            with pytest.raises(ArgumentError, match="poses: expected finite numbers"):
                short.reset([2], poses=poses)

    assert short.state.tobytes() == before.tobytes()
    short.param("max_speed")[2] = math.nan
    with pytest.raises(ArgumentError, match="world 2: a limit"):
        short.reset([2], poses=starts[:1])
    short.close()
    with pytest.raises(NotNowError):
        short.reset([2], poses=starts[:1])


def test_a_state_with_another_map_than_the_only_one_stops_its_world() -> None:
    worlds = Worlds(ROOMS[0], "p3dx", 3)
    worlds._batch.state.all("counts")[1, 2] = 7
    with pytest.raises(ArgumentError, match="world 1: its state names another map"):
        worlds.step()
    assert worlds.tick.tolist() == [1, 0, 1]
    worlds.reset([1])
    worlds.step()
    assert worlds.map_id.tolist() == [0, 0, 0]


def test_free_space_is_kept_for_few_clearances() -> None:
    worlds = Worlds(ROOMS[0], "p3dx", 2)
    sim = botyard.Simulation(ROOMS[0])
    for k in range(30):
        worlds.sample_free(clearance=0.1 + 0.001 * k)
        sim.random_free_poses(1, 0.1 + 0.001 * k)

    assert len(worlds._batch.drawings) == len(sim._probe._spaces.values()) == 8


def test_worlds_that_are_closed_say_so() -> None:
    for threads in (1, 2):
        with Worlds(ROOMS[0], "p3dx", 2, threads=threads) as worlds:
            worlds.step()
        for call in (worlds.step, worlds.reset, worlds.sample_free):
            with pytest.raises(NotNowError, match="closed"):
                call()

        assert worlds.tick.tolist() == [1, 1]
        worlds.world(0).step()
        worlds.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    """The parent's threads do not exist there, so work given to them would never be
    done.
    """
    worlds = Worlds(
        lambda number: room(7.0 + number), "p3dx", 4, seeds=1, threads=2, map_pool=2
    )
    worlds.step()
    context = multiprocessing.get_context("fork")
    told = context.SimpleQueue()

    def child() -> None:
        for _ in range(3):
            worlds.reset(poses="free")
        worlds.step(3)
        told.put(worlds.state.tobytes())
        worlds.close()

    process = context.Process(target=child)
    process.start()
    process.join(60)
    is_done = process.exitcode == 0
    process.kill()
    assert is_done
    for _ in range(3):
        worlds.reset(poses="free")
    worlds.step(3)
    assert told.get() == worlds.state.tobytes()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Worlds(ROOMS[0], None, 2), "robots: expected"),
        (lambda: Worlds(None, "p3dx", 2), "scenes: expected"),
        (lambda: Worlds(ROOMS[0], "p3dx", 2, dtype="foo"), "dtype: expected"),
        (lambda: Worlds(ROOMS[0], "p3dx", 2, sensors=5), "sensors: expected"),
        (
            lambda: Worlds(ROOMS[0], "p3dx", 2, seeds=[[1], [2, 3]]),
            r"seeds\[0\]: expected",
        ),
        (
            lambda: Worlds(ROOMS[0], "p3dx", 2).step(mask=[[1], [2, 3]]),
            "mask: expected",
        ),
        (
            lambda: Worlds(ROOMS[0], "p3dx", 1).cast([[1], [2, 3]], 0.0, range_max=1.0),
            "xy: expected",
        ),
        (
            lambda: Worlds(ROOMS[0], "p3dx", 1).cast(
                [[[1, 2]]], "north", range_max=1.0
            ),
            "bearing: expected",
        ),
        (
            lambda: Worlds(ROOMS[0], "p3dx", 1).cast(
                [[[1, 2]]], 0.0, range_max=1.0, out=[[0.0]]
            ),
            "out: expected",
        ),
        (
            lambda: botyard.Simulation(ROOMS[0]).cast(
                [[1], [2, 3]], 0.0, range_max=1.0
            ),
            "xy: expected",
        ),
        (
            lambda: Worlds(ROOMS[0], "p3dx", 2).reset(poses=lambda seeds: None),
            r"poses: expected numbers of shape \(2, 1, 3\), found None",
        ),
    ],
)
def test_what_is_no_array_is_named(wrong, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        wrong()


def test_calls_of_several_threads_take_turns() -> None:
    """One call drops maps that another one's steps read:

    between steps, not during them.
    """
    worlds = Worlds(lambda k: ROOMS[k % 3], "p3dx", 4, map_pool=1, threads=2)
    wrong: list[BaseException] = []

    def often(call: Callable[[int], object]) -> None:
        try:
            for k in range(150):
                call(k)
        except BaseException as error:
            wrong.append(error)

    calls: list[Callable[[int], object]] = [
        lambda k: worlds.step(2),
        lambda k: worlds.reset([k % 4], map_id=k),
        lambda k: worlds.reset(map_id=k + 1000),
        lambda k: worlds.world(k % 4),
        lambda k: worlds.sample_free(),
    ]
    threads = [threading.Thread(target=often, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    worlds.close()


@pytest.mark.parametrize(
    ("name", "at", "value", "told"),
    [
        ("accel", (1, 2), math.nan, "accel of p3dx_002: expected 0 … 1e+06, found nan"),
        (
            "odometry_error_low",
            (0, 1),
            -2e3,
            "odometry_error_low of p3dx: expected -1000 … 1000, found -2000",
        ),
        (
            "wheel_ratio",
            (1,),
            3.0,
            "wheel_ratio of p3dx_002: expected 0.5 … 2, found 3",
        ),
        (
            "range_max",
            (2,),
            -1.0,
            "range_max of laser of p3dx_002: expected 0 … 1e+06, found -1",
        ),
        (
            "range_min",
            (0,),
            60.0,
            "range_min of laser of p3dx: expected 0 … 32.767, found 60",
        ),
        (
            "range_missing",
            (3,),
            1.5,
            "range_missing of laser_2 of p3dx_002: expected 0 … 1, found 1.5",
        ),
        (
            "command_latency",
            (1,),
            0.5,
            "command_latency of p3dx_002: expected 0 … 0.2, found 0.5",
        ),
        (
            "range_latency",
            (3,),
            61.0,
            "range_latency of laser_2 of p3dx_002: expected 0 … 60, found 61",
        ),
        (
            "range_jitter",
            (1,),
            0.1,
            "range_jitter of laser_2 of p3dx: expected 0 … 0, found 0.1",
        ),
        (
            "command_scale",
            (0, 0),
            101.0,
            "command_scale of p3dx: expected -100 … 100, found 101",
        ),
        (
            "command_rate",
            (1,),
            -1.0,
            "command_rate of p3dx_002: expected 0 … 1e+06, found -1",
        ),
        (
            "command",
            (1, 0),
            math.inf,
            "command of p3dx_002: expected -1e+15 … 1e+15, found inf",
        ),
    ],
)
def test_what_is_written_wrongly_is_named(
    name: str, at: tuple[int, ...], value: float, told: str
) -> None:
    robot = botyard.Simulation().add_robot("p3dx", lasers=["lms200", "lms200"]).spec
    worlds = Worlds(ROOMS[0], [robot] * 2, 3, max_latency=0.2)
    array = worlds.command if name == "command" else worlds.param(name)
    array[1, *at] = value
    with pytest.raises(
        ArgumentError,
        match=rf"^world 1: .*\({re.escape(told)}\); the world has not moved$",
    ):
        worlds.step()


def test_a_rate_that_needs_room_is_named() -> None:
    worlds = Worlds(ROOMS[0], "p3dx", 2)
    worlds.param("command_rate")[1] = 4.0
    with pytest.raises(
        ArgumentError,
        match=r"set max_latency to 0 or more .*\(command_rate of p3dx: expected 10 … 1e\+06, found 4\)",
    ):
        worlds.step()
