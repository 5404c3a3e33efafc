"""`Worlds` with arrays that callers have written, headings beyond ±π, and calls of many
steps.
"""

from __future__ import annotations

import math
import signal
import threading
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import botyard
from botyard.errors import ArgumentError
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.numerics import elementwise
from botyard.units import wrap_angle
from botyard.worlds import batch as batches
from botyard.worlds.worlds import Worlds

ROOM = botyard.MapBuilder("room").rectangle(0, 0, 9, 6).scene()
OTHER = botyard.MapBuilder("other").rectangle(0, 0, 8, 7).scene()
CRATE = BoxObject(
    name="crate",
    pose=botyard.Pose(5, 3),
    length=0.6,
    width=0.4,
    dynamics=DynamicsSpec(mass=8.0, floor_friction=0.3),
)


def make(kind: str, n: int = 4, **options: Any) -> Worlds:
    """Return worlds of a kind:

    with several maps, several models, bodies with mass, or late commands and readings.
    """
    robots: Any = [["p3dx", "amigo"], "p3dx"] if kind == "models" else ["p3dx", "p3dx"]
    more: dict[str, Any] = {
        "late": {"max_latency": 0.4},
        "masses": {"boxes": [CRATE]},
    }.get(kind, {})
    worlds = Worlds(
        [ROOM, OTHER] if kind == "maps" else ROOM,
        robots,
        n,
        sensors=["laser"],
        **more,
        **options,
    )
    if kind == "late":
        worlds.param("command_latency")[:] = 0.3
        worlds.param("range_latency")[:] = 0.2
        worlds.param("range_jitter")[:] = 0.1

    return worlds


KINDS = ["plain", "maps", "models", "masses", "late"]


def drive(worlds: Worlds) -> None:
    rng = np.random.default_rng(3)
    worlds.command[..., 0] = rng.uniform(-0.4, 0.4, worlds.command.shape[:2])
    worlds.command[..., 2] = rng.uniform(-0.4, 0.4, worlds.command.shape[:2])


# -- headings


@given(
    st.lists(
        st.floats(-1e300, 1e300) | st.integers(-40, 40).map(lambda k: k * math.pi / 2),
        min_size=1,
    )
)
def test_wrapped_arrays_are_wrapped_numbers(angles: list[float]) -> None:
    want = np.array([wrap_angle(angle) for angle in angles])
    assert (
        elementwise.wrap_angles(np.array(angles, np.float64)).tobytes()
        == want.tobytes()
    )


HEADINGS = [
    math.pi,
    -math.pi,
    np.nextafter(math.pi, 4),
    -3 * math.pi,
    55.5,
    -77.7,
    1e3,
    -1e6,
    1e17,
    1e300,
    -0.0,
    2 * math.pi,
]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(HEADINGS) | st.floats(-1e4, 1e4), min_size=2, max_size=30)
)
def test_a_robot_has_the_same_heading_wherever_it_is_said(
    headings: list[float],
) -> None:
    n = len(headings)
    poses = np.stack([np.arange(n) * 1.0, np.zeros(n), headings], axis=1)
    added = botyard.Simulation(seed=1)
    added.add_robots("amigo", poses)
    begun = botyard.Simulation(seed=1)
    begun.add_robots("amigo", [(k, 0, 0) for k in range(n)])
    begun.reset(seed=1, poses=poses)
    worlds = Worlds(botyard.Scene(), "amigo", n, sensors=[])
    worlds.reset(poses=poses[:, None])
    want = added.fleet.poses
    added.reset(seed=1)
    alone = Worlds(botyard.Scene(), "amigo", 1, sensors=[])
    alone.reset(poses=poses[:1][None])
    for got in (begun.fleet.poses, worlds.pose[:, 0], added.fleet.poses):
        assert got.tobytes() == want.tobytes()
    assert alone.pose[0].tobytes() == want[:1].tobytes()


# -- written states


@pytest.mark.parametrize("kind", ["maps", "models"])
def test_a_number_that_is_none_stops_its_world_alone(kind: str) -> None:
    worlds = make(kind)
    twin = make(kind)
    for each in (worlds, twin):
        drive(each)
    at = {"maps": worlds._map_ids, "models": worlds._robot_set_ids}[kind]
    kept = worlds.state[1].copy()
    for number in (-1, 99):
        at[1] = number
        with pytest.raises(
            ArgumentError,
            match=rf"world 1: expected .* from 0 to 1 in its state, found {number}; the world has not moved",
        ):
            worlds.step(3)

        twin.step(3, mask=[0, 2, 3])
        assert worlds.tick.tolist() == twin.tick.tolist()
        for call in (
            lambda: worlds.world(1),
            lambda: worlds.sample_free([1]),
            lambda: worlds.cast([[1, 1]], 0.0, range_max=1.0),
            lambda: worlds.near_walls(reach=1.0),
            lambda: worlds.step(mask=[1]),
        ):
            with pytest.raises(ArgumentError, match="world 1: expected "):
                call()

        worlds.sample_free([0])
        worlds.step(mask=[0, 2])
        twin.sample_free([0])
        twin.step(mask=[0, 2])
        worlds.state[1] = kept

    worlds.step()
    twin.step()
    assert worlds.state.tobytes() == twin.state.tobytes()


@cache
def once(kind: str) -> tuple[Worlds, Any]:
    """Return worlds that were driven, created once, and their state."""
    worlds = make(kind, 2)
    drive(worlds)
    worlds.step(3)
    return worlds, worlds.state.copy()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_simulation_of_a_state_that_was_written_is_made_or_refused(
    kind: str, data: st.DataObject
) -> None:
    worlds, kept = once(kind)
    worlds.state[:] = kept
    size = worlds.state.shape[1]
    how = data.draw(st.sampled_from(["bytes", "word", "all"]))
    if how == "all":
        worlds.state[1] = np.random.default_rng(
            data.draw(st.integers(0, 2**32))
        ).integers(0, 256, size)
    elif how == "word":
        at = 8 * data.draw(st.integers(0, size // 8 - 1))
        word = data.draw(st.sampled_from([0, -1, 2**62, 1, 7, -(2**63), 0x7FF8 << 48]))
        worlds.state[1, at : at + 8] = np.frombuffer(
            (word % 2**64).to_bytes(8, "little"), np.uint8
        )
    else:
        for at in data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=8)):
            worlds.state[1, at] = data.draw(st.integers(0, 255))

    try:
        sim = worlds.world(1)
    except ArgumentError:
        return

    sim.step(2)
    assert np.isfinite(sim.fleet.poses).all()


def test_a_simulation_of_a_pose_that_is_none_is_refused() -> None:
    worlds = make("masses")
    worlds._batch.state.of(2, "pose")[1, 0] = math.nan
    with pytest.raises(
        ArgumentError,
        match="world 2: expected a state of these worlds, found another one: state: pose: expected",
    ):
        worlds.world(2)

    worlds.world(1).step()


def test_a_world_counts_its_episodes_also_as_a_simulation() -> None:
    worlds = make("plain", 2, seeds=5)
    for _ in range(3):
        worlds.reset()
    sim = worlds.world(1)
    assert (sim.episode, sim.seed) == (3, worlds.seeds[1])
    sim.reset()
    worlds.reset()
    assert (
        (sim.episode, sim.seed)
        == (worlds.episode[1], worlds.seeds[1])
        == (4, worlds.seeds[1])
    )


# -- calls of many steps


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_call_in_parts_is_one_call(
    kind: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts = make(kind, threads=threads), make(kind, threads=threads)
    for worlds in (whole, parts):
        drive(worlds)
        worlds.keep_episodes()
        worlds.reset()
        drive(worlds)

    for mask in (None, [2, 0]):
        whole.step(61, mask=mask)
        with monkeypatch.context() as patch:
            patch.setattr(batches, "STEPS_AT_ONCE", 30)
            patch.setattr(batches, "LEAST_PART", 1)
            parts.step(61, mask=mask)

        assert whole.state.tobytes() == parts.state.tobytes()
        assert (whole.contact == parts.contact).all() and (
            whole.other == parts.other
        ).all()

    for i in range(4):
        assert parts.repeat(i).run().fleet.poses.tobytes() == parts.pose[i].tobytes()


def test_what_is_met_in_an_earlier_part_of_a_call_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, parts = make("plain", 2), make("plain", 2)
    for worlds in (whole, parts):
        # The first robot stands close to a wall and turns away from it.
        worlds.reset(poses=[(8.68, 3.0, 0.0), (2.0, 3.0, 0.0)])
        worlds.command[:, 0] = 0.5, 0.0, 1.0

    monkeypatch.setattr(batches, "STEPS_AT_ONCE", 10**6)
    whole.step(60)
    monkeypatch.setattr(batches, "STEPS_AT_ONCE", 10)
    monkeypatch.setattr(batches, "LEAST_PART", 1)
    parts.step(60)
    assert whole.contact.tolist() == parts.contact.tolist() == [[1, 0], [1, 0]]
    parts.step(5)
    assert parts.contact.tolist() == [[0, 0], [0, 0]]


def test_a_world_that_fails_in_a_later_part_is_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worlds = make("plain", 3)
    worlds.reset(poses=[(1e7 - 0.2, 3.0, 0.0), (2.0, 3.0, 0.0)])
    worlds.reset([0, 2], poses=[(3.0, 3.0, 0.0), (2.0, 5.0, 0.0)])
    worlds.command[:, 0, 0] = 0.5
    before = worlds.state[1].copy()
    monkeypatch.setattr(batches, "STEPS_AT_ONCE", 30)
    monkeypatch.setattr(batches, "LEAST_PART", 1)
    with pytest.raises(
        ArgumentError, match="world 1: a pose is not finite, or out of bounds"
    ):
        worlds.step(100)

    assert worlds.tick.tolist() == [100, 0, 100]
    assert worlds.state[1].tobytes() == before.tobytes()


def test_a_long_call_can_be_interrupted() -> None:
    worlds = make("plain", 2)
    worlds.keep_episodes()
    worlds.reset()
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        worlds.step(10**9)
    assert 0 < worlds.tick[0] < 10**9
    worlds.step()


# -- arguments


def test_what_is_said_of_places_seeds_masks_and_maps() -> None:
    worlds = make("maps", 2)
    assert worlds.cast([[1.0, 1.0]], [[0.0], [1.0]], range_max=3.0).shape == (2, 1)
    same = np.broadcast_to([[1.0, 1.0], [2.0, 2.0]], (2, 2, 2))
    assert (
        worlds.near_walls(same[0], reach=2.0) == worlds.near_walls(same, reach=2.0)
    )[..., 0, :].all()
    for wrong in (
        "a",
        [1.0, 2.0],
        [[1.0]],
        np.ones((3, 1, 2)),
        [[1j, 2]],
        [[1.0, 2.0], [1.0]],
    ):
        for call in (
            lambda: worlds.cast(wrong, 0.0, range_max=1.0),  # noqa: B023
            lambda: worlds.near_walls(wrong, reach=1.0),  # noqa: B023
        ):
            with pytest.raises(ArgumentError, match="xy: expected an array"):
                call()

    for wrong in ("a", [[1j, 2]], [[1.0, 2.0], [1.0]]):
        with pytest.raises(ArgumentError, match="xy: expected an array"):
            botyard.Simulation(ROOM).near_walls(wrong, reach=1.0)

    worlds.reset(seeds=[2**63 + 5, 7])
    assert worlds.seeds.tolist() == [2**63 + 5, 7]
    assert (
        Worlds(ROOM, "p3dx", 2, seeds=worlds.seeds.tolist()).seeds.tolist()
        == worlds.seeds.tolist()
    )
    with pytest.raises(ArgumentError, match=r"seeds\[1\]: expected a whole number"):
        worlds.reset(seeds=[1, 1.5])
    with pytest.raises(ArgumentError, match="mask: expected 2 flags"):
        worlds.reset(np.array([1, 0], np.uint8))
    with pytest.raises(
        ArgumentError, match="map_id: expected 0 … 1, the numbers of maps, found 2"
    ):
        worlds.reset(map_id=[0, 2])

    with pytest.raises(
        ArgumentError, match=r"map_id: expected whole numbers of shape \(2,\)"
    ):
        worlds.reset(map_id=0.0)

    for name in ("model_id", "seeds", "dt", "names", "box_names", "pose", "episode"):
        with pytest.raises(AttributeError, match=f"Worlds.{name} cannot be assigned: "):
            setattr(worlds, name, 1)

    with pytest.raises(AttributeError, match="cannot be deleted"):
        del worlds.command


def test_what_wheels_and_rooms_do_not_allow_is_named() -> None:
    worlds = Worlds(ROOM, "seekur", 2)
    worlds.param("wheel_ratio")[1] = 1.1
    with pytest.raises(
        ArgumentError,
        match=r"world 1: .*wheel_ratio of seekur: expected 1 … 1, found 1.1",
    ):
        worlds.step()

    small = botyard.MapBuilder("small").rectangle(0, 0, 1.4, 1.4).home(0.7, 0.7).scene()
    crowd = Worlds([ROOM, small], ["p3dx"] * 4, 6)
    crowd.reset(map_id=[0, 0, 1, 0, 0, 1])
    with pytest.raises(
        ArgumentError,
        match=r"world 2: map 1 has no room for 4 robots with 0\.1 m around each",
    ):
        crowd.sample_free([0, 2, 5])


@pytest.mark.parametrize(
    "poses", [[["1", "2", "3"]], [[True, False, True]], [[1j, 2, 3]], [[1, 2], [3]]]
)
def test_poses_of_an_episode_are_numbers(poses: Any) -> None:
    sim = botyard.Simulation(ROOM)
    sim.add_robot("p3dx")
    with pytest.raises(
        ArgumentError, match=r"poses: expected an array of shape \(1, 3\)"
    ):
        sim.reset(poses=poses)


def test_a_robot_that_gets_no_other_controller_stops() -> None:
    sim = botyard.Simulation()
    robot = sim.add_robot(
        "p3dx", pose=(0, 0, 0), controller=lambda robot: robot.command(v=0.3)
    )
    sim.run(3)
    assert robot.velocity.vx == pytest.approx(0.3)
    robot.set_controller(None)
    sim.run(3)
    assert robot.velocity.vx == 0.0
    robot.command(v=0.2)
    robot.set_controller(None)
    sim.run(3)
    assert robot.velocity.vx == pytest.approx(0.2), (
        "nothing has driven it but these words"
    )
