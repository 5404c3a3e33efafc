"""Every task:

Gymnasium's checkers; an obvious policy reaches its goal, and a policy that does nothing
fails.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from botyard.errors import ArgumentError
from botyard.learning import (
    Coverage,
    Environment,
    EpisodeDraws,
    Exchange,
    Follow,
    Formation,
    Navigate,
    VectorEnvironment,
)
from botyard.learning.catalog import TASKS
from botyard.learning.tasks.robots import Driving
from botyard.model.library import load_robot

F8 = NDArray[Any]
SMALL: dict[str, dict[str, Any]] = {
    "Coverage": {"size": 4.0},
    "Dock": {"rays": 16, "maps": 3},
    "Exchange": {},
    "Follow": {"rays": 16},
    "Formation": {},
    "Navigate": {"rays": 33, "maps": 3},
    "PushBox": {"robots": 1},
    "SocialNavigate": {"rays": 33, "maps": 3, "walkers": 4, "neighbours": 3},
}
"""Options of tasks that make few rays and maps."""


def small(name: str) -> dict[str, Any]:
    assert name in SMALL, (
        f'add a row "{name}" to SMALL in tests/learning/test_tasks.py: options that make few rays and maps'
    )
    return SMALL[name]


EASY: dict[str, dict[str, Any]] = {
    "Coverage": {"share": 0.15},
    "Exchange": {"goal_m": 4.0},
    "Formation": {"within_m": 0.6, "hold_steps": 3},
    "PushBox": {"goal_m": 0.9, "robots": 2},
}
"""Options with which episodes end soon, each at another time."""


def wrapped(angle: F8) -> F8:
    found: F8 = (angle + math.pi) % (2 * math.pi) - math.pi
    return found


def towards(ahead: F8, left: F8, speed: F8 | float = 1.0) -> F8:
    """Return actions that drive to a place:

    turn to it, and drive as far as it lies ahead.
    """
    bearing = np.arctan2(left, ahead)
    forward = (
        np.minimum(speed, np.hypot(ahead, left) / 0.2)
        * np.maximum(np.cos(bearing), 0.0) ** 4
    )
    return np.stack([forward, np.clip(1.5 * bearing, -1, 1)], axis=-1)


def coverage(o: F8) -> F8:
    """Drive to the nearest uncovered cell, first in the present row or ahead."""
    g = math.isqrt(o.shape[1] - 6)
    middles = (np.arange(g) + 0.5) * 0.5 - g / 4
    where = o[:, :2] * g / 4
    dx, dy = (
        middles[None, None, :] - where[:, 0, None, None],
        middles[None, :, None] - where[:, 1, None, None],
    )
    far = np.hypot(dx, 1.5 * dy) + np.where(o[:, 6:].reshape(-1, g, g) > 0.5, 1e3, 0.0)
    at = far.reshape(len(o), -1).argmin(axis=1)
    x, y = middles[at % g] - where[:, 0], middles[at // g] - where[:, 1]
    return towards(o[:, 2] * x + o[:, 3] * y, o[:, 2] * y - o[:, 3] * x)


def dock(o: F8) -> F8:
    """Drive to a place in front of the dock, then along its axis, then turn to its
    heading.
    """
    ahead, left, c, s = 5.0 * o[:, -6], 5.0 * o[:, -5], o[:, -4], o[:, -3]
    # These are the robot's coordinates in the frame of the dock.
    along, beside = (
        -(ahead * c + left * s),
        ahead * s - left * c,
    )
    is_on_axis = (along > -1.0) & (np.abs(beside) < 0.07) | (along < -1.0) & (
        np.abs(beside) < 0.03
    )
    x = np.where(is_on_axis, np.minimum(along + 0.5, 0.0), -1.1) - along
    drive = towards(c * x + s * beside, s * x - c * beside, 0.6)
    at = np.hypot(ahead, left) < 0.04
    drive[at] = np.stack([0.0 * s[at], np.clip(np.arctan2(s, c)[at], -1, 1)], axis=-1)
    return drive


def exchange(o: F8) -> F8:
    """Drive around the circle, all in one direction.

    The angle between the chord to the goal and the path along the circle is half the
    arc.
    """
    bearing = np.arctan2(o[..., 3], o[..., 4]) - np.arcsin(np.minimum(o[..., 2], 1.0))
    bearing = wrapped(bearing)
    return np.stack(
        [
            0.6 * np.maximum(np.cos(bearing), 0.0) ** 2 * np.minimum(1, o[..., 2] * 20),
            np.clip(1.5 * bearing, -1, 1),
        ],
        axis=-1,
    )


def follow(o: F8) -> F8:
    """Drive forward when the leader is too far, backward when it is too near."""
    ahead, left = 5.0 * o[:, -8], 5.0 * o[:, -7]
    error = np.hypot(ahead, left) - 1.2
    bearing = np.arctan2(left, ahead)
    return np.stack(
        [
            np.clip(1.5 * error, -1, 1) * np.maximum(np.cos(bearing), 0),
            np.clip(1.5 * bearing, -1, 1),
        ],
        axis=-1,
    )


def formation(o: F8) -> F8:
    """Drive to the own place, and move with it."""
    return towards(1.5 * o[..., 0] + 0.6 * o[..., 2], 1.5 * o[..., 1] + 0.6 * o[..., 3])


def navigate(o: F8) -> F8:
    """Drive to the goal along a direction in which a strip of the robot's width is
    free.
    """
    rays = o.shape[1] - 5
    bearings = np.linspace(-math.pi / 2, math.pi / 2, rays)
    # Angle between each candidate direction and each ray.
    apart = bearings - bearings[:, None]
    r = 8.0 * o[:, None, :rays]
    along, beside = r * np.cos(apart), np.abs(r * np.sin(apart))
    free = np.where((beside < 0.3) & (np.cos(apart) > 0.0), along - 0.3, 8.0).min(
        axis=2
    )
    goal, far = np.arctan2(o[:, rays + 2], o[:, rays + 1]), 10.0 * o[:, rays]
    cost = np.abs(wrapped(bearings - goal[:, None])) + 3.0 * np.maximum(
        np.minimum(far, 1.2)[:, None] - free, 0.0
    )
    best = bearings[cost.argmin(axis=1)]
    speed = np.clip(0.8 * free[:, rays // 2], 0.0, 0.8) * (np.abs(best) < 0.6)
    return np.stack([speed, np.clip(1.5 * best, -1, 1)], axis=-1)


def push_box(o: F8) -> F8:
    """Drive around the box to the place opposite the goal, then push through its
    centre.

    A small offset corrects the box's direction.
    """
    box, goal = 3.0 * o[..., 0:2], 3.0 * o[..., 2:4]
    away = box - goal
    away /= np.maximum(np.linalg.norm(away, axis=-1, keepdims=True), 1e-9)
    side = np.stack([-away[..., 1], away[..., 0]], axis=-1)
    # These are the robot's coordinates from the box, along and across its path to the goal.
    along, beside = (
        -(box * away).sum(axis=-1),
        -(box * side).sum(axis=-1),
    )
    behind = (along > 0.3) & (np.abs(beside) < 0.12 + 0.0 * along)
    turn = np.where(beside >= 0.0, 1.0, -1.0)[..., None] * side
    around = np.where((along > 0.3)[..., None], 0.75 * away, 0.3 * away + 0.85 * turn)
    aim = np.where(
        behind[..., None],
        box + 0.0 * away - 0.6 * beside[..., None] * side,
        box + around,
    )
    return towards(aim[..., 0], aim[..., 1], np.where(behind, 0.5, 0.8))


def social(o: F8) -> F8:
    """Drive as among walls, because pedestrians avoid the robot."""
    return navigate(o[:, : 33 + 5])


POLICIES: dict[str, Callable[[F8], F8]] = {
    "Coverage": coverage,
    "Dock": dock,
    "Exchange": exchange,
    "Follow": follow,
    "Formation": formation,
    "Navigate": navigate,
    "PushBox": push_box,
    "SocialNavigate": social,
}


def policy_of(name: str) -> Callable[[F8], F8]:
    assert name in POLICIES, (
        f'add a row "{name}" to POLICIES in tests/learning/test_tasks.py: a short policy that succeeds, of observations alone'
    )
    return POLICIES[name]


def successes(name: str, policy: Callable[[F8], F8], n: int) -> tuple[float, float]:
    """Return the share of first episodes in n worlds that succeed, and their mean
    return.
    """
    envs = VectorEnvironment(
        name, n, autoreset_mode=AutoresetMode.DISABLED, **small(name)
    )
    observed, _ = envs.reset(seed=5)
    success, ended, total = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n)
    while not ended.all():
        assert envs.observation_space.contains(observed)
        actions = np.broadcast_to(policy(observed), envs.action_space.shape)
        observed, rewards, terminated, truncated, infos = envs.step(actions)
        total += np.where(ended, 0.0, rewards)
        success |= infos["success"] & ~ended
        ended |= terminated | truncated

    envs.close()
    return float(success.mean()), float(total.mean())


@pytest.mark.parametrize("name", TASKS)
def test_obvious_policies_succeed_and_doing_nothing_does_not(name: str) -> None:
    reached, total = successes(name, policy_of(name), 40)
    still, nothing = successes(name, lambda o: np.zeros(1), 40)
    assert reached >= 0.9 and still <= 0.1 and total > nothing, (
        reached,
        still,
        total,
        nothing,
    )


@pytest.mark.parametrize("name", ["Exchange", "Formation"])
def test_robots_get_nothing_where_an_episode_begins(name: str) -> None:
    """The next episode starts in its own step:

    no robot has driven from the last places to the first ones.
    """
    envs = VectorEnvironment(name, 2, **small(name) | {"max_steps": 30} | EASY[name])
    envs.reset(seed=2)
    rewards, begun = np.zeros(2), 0
    for _ in range(70):
        _, rewards, *_ = envs.step(np.full(envs.action_space.shape, 0.5))
        assert envs.task.of_robots.mean(axis=1) == pytest.approx(rewards)  # type: ignore[attr-defined]
        begun += int((envs.worlds.tick == 0).sum())

    assert begun >= 2


def test_putting_off_the_end_of_a_formation_does_not_pay() -> None:
    """A robot that leaves its place for a step before the end gets less than one that
    ends.
    """
    options: dict[str, Any] = {"hold_steps": 20, "max_steps": 200}
    returns = {}
    for postpones in (False, True):
        one = Environment("Formation", **options)
        observed, _ = one.reset(seed=4)
        total, held, is_over = 0.0, 0, False
        while not is_over:
            actions = formation(observed)
            if postpones and held >= 10:
                actions[0] = 1.0, 1.0
            observed, reward, terminated, truncated, info = one.step(actions)
            held = held + 1 if info["error"] < 0.25 else 0
            total, is_over = total + reward, terminated or truncated

        returns[postpones] = total, terminated

    assert returns[False][1] and not returns[True][1], (
        "the one ends, the other one does not"
    )
    assert returns[False][0] > returns[True][0] + 1.0


def test_standing_in_the_leaders_way_is_no_following() -> None:
    """With a small distance to keep, a follower in front of a waiting leader would be
    at the right distance.
    """
    one = Environment("Follow", rays=8, distance_m=0.6, max_steps=100)
    one.reset(seed=1)
    one.worlds.reset(poses=[[0.6, 0.0, math.pi], [0.0, 0.0, 0.0]])
    one.task._way[:] = (4.0, 0.0)  # type: ignore[attr-defined]
    one.task._far = np.array([0.6])  # type: ignore[attr-defined]
    is_over = False
    while not is_over:
        _, _, terminated, truncated, info = one.step(np.zeros(2))
        is_over = terminated or truncated

    assert not info["success"]


@pytest.mark.parametrize("name", TASKS)
def test_gymnasiums_checker(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(
            gymnasium.make(
                f"botyard/{name}-v0", render_mode="rgb_array", **small(name)
            ).unwrapped
        )


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("name", TASKS)
def test_many_worlds_are_gymnasiums_own_vector_of_single_ones(
    name: str, mode: AutoresetMode
) -> None:
    """Same observations, rewards and ends over episodes:

    worlds and episodes are independent.
    """
    n, options = 3, small(name) | {"max_steps": 120} | EASY.get(name, {})
    many = VectorEnvironment(name, n, autoreset_mode=mode, threads=2, **options)
    plain = gymnasium.vector.SyncVectorEnv(
        [lambda: Environment(name, **options)] * n, autoreset_mode=mode
    )
    assert (
        many.single_observation_space == plain.single_observation_space
        and many.action_space == plain.action_space
    )
    seen, wanted = many.reset(seed=7)[0], plain.reset(seed=7)[0]
    dice = np.random.default_rng(3)
    policy = (
        policy_of(name)
        if name in EASY or "Navigate" in name
        else lambda o: np.array([0.7, 0.0])
    )
    alone = 0
    for _ in range(250):
        assert (seen == wanted).all()
        actions = policy(seen) + dice.uniform(-0.3, 0.3, many.action_space.shape)
        actions = np.clip(actions, -1.0, 1.0).astype(np.float32)
        seen, rewards, terminated, truncated, infos = many.step(actions)
        wanted, *others, told = plain.step(actions)
        assert all(
            (a == b).all()
            for a, b in zip((rewards, terminated, truncated), others, strict=True)
        )
        assert (
            infos["success"] == told["success"]
        ).all() or mode is AutoresetMode.SAME_STEP
        ended = terminated | truncated
        alone += ended.any() and not ended.all()
        if "final_obs" in told:
            for i in np.flatnonzero(told["_final_obs"]):
                assert (infos["final_obs"][i] == told["final_obs"][i]).all()

    assert alone >= 2, "worlds begin again while others go on"
    many.close()
    plain.close()


def test_what_navigate_observes_and_rewards_is_what_its_description_says() -> None:
    """A plain NumPy twin of its kernels:

    distant goals, reached goals, goals at the robot, rules that change during the run.
    """
    task = Navigate(rays=33, maps=3, max_steps=9)
    envs = VectorEnvironment(task, 6, autoreset_mode="Disabled")
    envs.reset(seed=4)
    task.goals[3] = envs.worlds.pose[3, 0, :2] + (0.3, 0.1)
    task.goals[4] = envs.worlds.pose[4, 0, :2]
    dice = np.random.default_rng(2)
    far = None
    ends = set()
    for k in range(12):
        task.goal_m = 0.5 if k < 8 else 0.6
        seen, rewards, terminated, truncated, infos = envs.step(
            dice.uniform(-1, 1, (6, 2)).astype(np.float32)
        )
        w = envs.worlds
        x, y = (task.goals - w.pose[:, 0, :2]).T
        before, far = far, np.sqrt(x * x + y * y)
        hit, there = w.contact[:, 0] != 0, far < task.goal_m
        if before is not None:
            wanted = before - far + 5.0 * there - 5.0 * (hit & ~there) - 0.01
            assert rewards.tobytes() == wanted.tobytes()

        assert np.array_equal(terminated, hit | there)
        assert np.array_equal(truncated, ~(hit | there) & (w.tick >= 9))
        assert np.array_equal(infos["distance"], far) and np.array_equal(
            infos["success"], there
        )
        assert np.array_equal(
            seen[:, :33], np.minimum(w.ranges[:, 0] / np.float32(task._range), 1)
        )
        assert np.array_equal(
            seen[:, 33], np.minimum(far / 10.0, 1.0).astype(np.float32)
        )
        c, s = np.cos(w.pose[:, 0, 2]), np.sin(w.pose[:, 0, 2])
        away = np.maximum(far, 1e-9)
        bearing = np.stack([(c * x + s * y) / away, (c * y - s * x) / away], axis=1)
        assert np.abs(seen[:, 34:36] - bearing).max() < 1e-6
        assert np.array_equal(
            seen[:, 36:], (w.vel[:, 0, ::2] / task._drive.speed).astype(np.float32)
        )
        ends |= set(zip(terminated.tolist(), truncated.tolist(), strict=True))
        if k == 4:
            w.param("max_speed")[:] *= 3.0

    assert ends == {(False, False), (True, False), (False, True)}


@pytest.mark.parametrize(
    ("name", "option", "least", "others"),
    [
        ("Follow", "distance_m", 0.6, {}),
        *(
            ("Exchange", "diameter", 0.55 / math.sin(math.pi / m), {"robots": m})
            for m in (2, 3, 6, 40)
        ),
        *(
            ("Formation", "radius", m * 0.7 / (2 * math.pi), {"robots": m})
            for m in (3, 6)
        ),
    ],
)
def test_nobody_touches_another_at_the_beginning(
    name: str, option: str, least: float, others: dict[str, Any]
) -> None:
    with pytest.raises(
        ArgumentError, match=f"{option}: expected a number from {least:g}"
    ):
        VectorEnvironment(name, 1, **others, **{option: 0.99 * least})

    envs = VectorEnvironment(name, 64, **others, **{option: 1.0001 * least})
    envs.reset(seed=5)
    w = envs.worlds
    w.command[:] = 0.0
    w.step()
    apart = np.hypot(
        *np.moveaxis(w.pose[:, :, None, :2] - w.pose[:, None, :, :2], -1, 0)
    )
    apart[:, np.arange(apart.shape[1]), np.arange(apart.shape[1])] = np.inf
    assert apart.min() > 0.4 and not w.contact.any()


def test_a_room_of_coverage_is_as_large_as_it_is_asked_for() -> None:
    assert Coverage(size=2.5).size == 2.5 and Coverage(size=2.5).cells == 5
    with pytest.raises(
        ArgumentError, match=r"size: expected a multiple of 0\.5 m, found 1\.3"
    ):
        Coverage(size=1.3)


def test_the_leader_is_lost_where_its_distance_allows() -> None:
    """Without an explicit distance; an explicit one is checked against the other
    parameter.
    """
    assert [Follow(distance_m=d, rays=4).lost_m for d in (1.2, 2.5, 3.0)] == [
        5.0,
        5.0,
        6.0,
    ]
    with pytest.raises(
        ArgumentError, match="lost_m: expected a number of at least 6 m, found 5"
    ):
        Follow(distance_m=3.0, lost_m=5.0)


@pytest.mark.parametrize(
    "team",
    [Exchange(robots=3, diameter=3.0), Formation(robots=3, speed=0.0, radius=1.0)],
)
def test_both_pay_for_a_contact(team: Exchange | Formation) -> None:
    """The robot that is stopped and the standing robot that it hit pay; the third one
    does not.
    """
    env = Environment(team)
    env.reset(seed=1)
    w = env.worlds
    w.reset(poses=[[0.0, 0.0, 0.0], [-0.5, 0.0, 0.0], [5.0, 5.0, 0.0]])
    team.on_reset(w, np.array([0]), EpisodeDraws(w.seeds))
    while not (w.contact[0] != 0).any():
        env.step(np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.0]]))
    assert w.contact[0].tolist() == [0, 2, 0] and w.other[0].tolist() == [-1, 0, -1]
    assert (team.of_robots[0] < -0.9).tolist() == [True, True, False]


def test_draws_are_of_their_distributions_and_of_their_worlds() -> None:
    """Each row is a function of its episode's seed; the next call gives other numbers."""
    seeds = np.arange(20_000, dtype=np.uint64)
    rng = EpisodeDraws(seeds)
    normal, whole = rng.normal(2.0, 3.0), rng.integers(-2, 3)
    assert (
        np.isfinite(normal).all()
        and normal.shape == whole.shape == (20_000,)
        and whole.dtype == np.int64
    )
    assert normal.mean() == pytest.approx(
        2.0, abs=0.1
    ) and normal.std() == pytest.approx(3.0, abs=0.1)
    share = [float((np.abs(normal - 2.0) < 3.0 * k).mean()) for k in (1, 2, 3)]
    assert share == pytest.approx([0.6827, 0.9545, 0.9973], abs=0.01)
    assert np.bincount(whole + 2) / 20_000 == pytest.approx(0.2, abs=0.015)
    assert abs(np.corrcoef(normal, rng.normal())[0, 1]) < 0.03
    few = EpisodeDraws(seeds[7:9])
    assert (few.normal(2.0, 3.0) == normal[7:9]).all() and (
        few.integers(-2, 3) == whole[7:9]
    ).all()
    assert few.integers(5, 6).tolist() == [5, 5]
    for low, high in ((3, 3), (0, 2.5), (0, 2**33)):
        with pytest.raises(ArgumentError, match="high: expected a whole number"):
            rng.integers(low, high)  # type: ignore[arg-type]

    known = EpisodeDraws(np.array([1, 2], np.uint64)).normal()
    assert [x.hex() for x in known.tolist()] == KNOWN


KNOWN = ["-0x1.0270501dd50d9p-3", "0x1.2f3eea6c01a6ap-3"]
"""Draws of the seeds 1 and 2, to the last bit."""


def test_the_second_action_of_a_car_is_its_steering_angle() -> None:
    car = load_robot("car")
    with pytest.raises(ArgumentError, match="expected a robot that steers by angles"):
        Driving(car)
    task = Navigate(robot=car, maps=2)
    env = VectorEnvironment(task, 2)
    env.reset(seed=3)
    actions = np.array([[0.2, 1.0], [0.2, -0.5]], np.float32)
    for _ in range(5):
        seen, *_ = env.step(actions)
    limit = car.steering.limit if car.steering is not None else 0.0
    assert env.worlds.command[:, 0, 2] == pytest.approx([limit, -0.5 * limit])
    assert (np.abs(seen[:, -1]) <= 1.0).all()
