"""Methods of navigation against naive twins and the formulas of their papers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.errors import ArgumentError
from botyard.model.mapbuilder import MapBuilder
from botyard.model.scene import Scene
from botyard.navigation import crowds, local
from botyard.navigation.kernels import dwa, halfplanes, orca, vfh
from botyard.sim.simulation import Simulation
from botyard.worlds.worlds import Worlds
from tests.navigation import twins

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=60, deadline=None)


# -- ORCA


@few
@given(seeds)
def test_the_change_of_a_velocity_is_the_smallest_that_leaves_the_obstacle(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    r, v, apart = rng.uniform(-4, 4, 2), rng.uniform(-2, 2, 2), rng.uniform(0.2, 1.0)
    if np.linalg.norm(r) < 1.05 * apart:
        r *= 1.1 * apart / np.linalg.norm(r)
    ux, uy, nx, ny = orca.change_of(*r, *v, apart, 2.0, 0.1)
    u, n = np.array([ux, uy]), np.array([nx, ny])
    assert np.linalg.norm(n) == pytest.approx(1.0)
    assert np.linalg.norm(u) == pytest.approx(
        np.linalg.norm(twins.change_by_search(r, v, apart, 2.0)), abs=1e-4
    )
    assert twins.meets_within(r, v + u - 1e-6 * n, apart, 2.0), (
        "its end is the edge of the velocity obstacle"
    )
    assert not twins.meets_within(r, v + u + 1e-6 * n, apart, 2.0)


def test_those_that_overlap_are_apart_after_a_step() -> None:
    ux, uy, nx, ny = orca.change_of(0.3, 0.1, 0.2, 0.0, 0.5, 2.0, 0.1)
    after = np.array([0.3, 0.1]) - 0.1 * np.array([0.2 + ux, uy])
    assert np.linalg.norm(after) == pytest.approx(0.5) and (nx, ny) != (0.0, 0.0)
    assert orca.change_of(0.0, 0.0, 0.0, 0.0, 0.5, 2.0, 0.1)[2:] == (1.0, 0.0), (
        "one within the other"
    )


def some_planes(rng: np.random.Generator, count: int, spread: float) -> np.ndarray:
    angles = rng.uniform(-math.pi, math.pi, count)
    return np.stack(
        [np.cos(angles), np.sin(angles), rng.uniform(-spread, spread, count)], axis=1
    )


@few
@given(seeds, st.integers(0, 7))
def test_the_linear_program_finds_the_nearest_velocity(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    planes, wanted = some_planes(rng, count, 1.2), rng.uniform(-2, 2, 2)
    ended, x, y = halfplanes.best_within(planes, count, 1.0, *wanted, False)
    best = twins.nearest_within(planes, 1.0, wanted)
    if best is None:
        assert ended < count
        assert twins.nearest_within(planes[:ended], 1.0, wanted) is not None, (
            "those before it leave something"
        )
        assert twins.nearest_within(planes[: ended + 1], 1.0, wanted) is None
    else:
        assert ended == count and np.allclose([x, y], best, atol=1e-6)


@few
@given(seeds, st.integers(2, 6), st.integers(0, 2))
def test_without_a_solution_the_greatest_violation_is_the_least(
    seed: int, count: int, hard: int
) -> None:
    rng = np.random.default_rng(seed)
    planes = some_planes(rng, count + hard, 1.0)
    # A robot that stands still satisfies the half-planes of walls.
    planes[:hard, 2] = -abs(planes[:hard, 2])
    planes[hard:, 2] = rng.uniform(0.0, 1.5, count)
    ended, x, y = halfplanes.best_within(planes, len(planes), 1.0, 0.5, 0.2, False)
    if ended == len(planes):
        return
    v = np.array(
        halfplanes.least_violating(
            planes, hard, len(planes), ended, 1.0, x, y, np.empty_like(planes)
        )
    )
    violation = (planes[hard:, 2] - planes[hard:, :2] @ v).max()
    assert (
        np.linalg.norm(v) <= 1.0 + 1e-7
        and (planes[:hard, :2] @ v >= planes[:hard, 2] - 1e-7).all()
    )
    assert violation == pytest.approx(
        twins.least_violation(planes, hard, 1.0), abs=2e-6
    )


def test_walls_are_left_in_time() -> None:
    one = np.zeros((1, 1))
    wall = np.array([[[1.0, -5.0, 1.0, 5.0]]])
    for distance, most in (
        (0.9, (0.9 - 0.3) / 0.5),
        (0.4, (0.4 - 0.3) / 0.5),
        (0.3, 0.0),
    ):
        at = np.array([[[1.0 - distance, 0.0]]])
        v = crowds.orca(
            at,
            np.zeros((1, 1, 2)),
            one + 0.3,
            np.array([[2.0, 0.5]]),
            np.array([3.0]),
            dt=0.1,
            walls=wall,
        )
        assert v[0] == pytest.approx([most, 0.5]), "along the wall it is free"


# -- social force


def test_social_forces_are_those_of_the_equation() -> None:
    rng = np.random.default_rng(4)
    rules = {
        "relaxation": 0.5,
        "strength": 25.0,
        "range": 0.08,
        "stiffness": 1500.0,
        "friction": 3000.0,
        "unseen": 0.5,
        "sight": math.radians(100.0),
    }
    for _ in range(30):
        x, v = rng.uniform(0, 1.5, (4, 2)), rng.uniform(-1, 1, (4, 2))
        radius, wanted = rng.uniform(0.2, 0.3, 4), rng.uniform(-1, 1, (4, 2))
        walls = rng.uniform(0, 2, (2, 4))
        walls = np.concatenate(
            [walls, [[*walls[1, 2:], 3.0, 3.0]]]
            # The last two walls meet in a corner.
        )
        # This is one step of integration, s.
        dt = 0.01
        got = np.empty((4, 2))
        crowds.social_force(
            x[None],
            v[None],
            radius[None],
            wanted,
            np.full(4, 1e9),
            dt=dt,
            walls=np.repeat(walls[None], 4, axis=0),
            forces=crowds.Forces(**rules),
            ends=got,
        )
        # The drive force is integrated exactly, the other forces by Euler's method.
        grow = 0.5 * (1.0 - math.exp(-dt / 0.5))
        for i in range(4):
            acceleration = twins.social_acceleration(
                i, x, v, radius, wanted[i], walls, rules
            )
            assert got[i] == pytest.approx(
                v[i] + grow * acceleration, rel=1e-9, abs=1e-9
            )


@pytest.mark.parametrize("dt", [0.5, 0.1, 0.02])
def test_a_pedestrian_alone_goes_as_the_equation_says(dt: float) -> None:
    """v = 1 − exp(−t / τ), x = t − τ (1 − exp(−t / τ)), with displacement by dt.

    With velocities at the ends of steps, x was 0.05 m ahead.
    """
    x, ends, time = np.zeros((1, 1, 2)), np.zeros((1, 2)), 0.0
    for _ in range(round(3.0 / dt)):
        x[0, 0] += (
            dt
            * crowds.social_force(
                x,
                ends[None],
                np.full((1, 1), 0.3),
                np.array([[1.0, 0.0]]),
                np.array([2.0]),
                dt=dt,
                ends=ends,
            )[0]
        )
        time += dt
        assert ends[0, 0] == pytest.approx(1.0 - math.exp(-time / 0.5), abs=1e-12)
        assert x[0, 0, 0] == pytest.approx(
            time - 0.5 * (1.0 - math.exp(-time / 0.5)), abs=1e-4
        )

    assert x[0, 0, 1] == 0.0


# -- the dynamic window


@few
@given(seeds)
def test_free_ways_on_arcs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-3, 3, (6, 2))
    points = points[np.linalg.norm(points, axis=1) > 0.35]
    v, w = rng.uniform(0.1, 1.0), rng.choice([0.0, rng.uniform(-2, 2)])
    found = dwa.free_way(points, w / v, 0.3, 4.0)
    assert found == pytest.approx(twins.way_by_steps(points, v, w, 0.3, 4.0), abs=5e-3)


def test_the_window_takes_what_it_can_reach_and_stops_before_walls() -> None:
    none = np.full((1, 1, 2), np.nan)
    limits = {
        "dt": 0.1,
        "radius": 0.3,
        "max_v": 1.0,
        "max_w": 2.0,
        "accel": (0.5, 1.0),
        "brake": (0.5, 1.0),
    }
    v, w = local.dynamic_window(
        none, np.array([[9.0, 0.0]]), np.array([[0.4, 0.0]]), **limits
    )[0]
    assert (v, w) == (pytest.approx(0.45), 0.0), (
        "as fast as it can within a step, straight to the goal"
    )
    v, w = local.dynamic_window(
        none, np.array([[0.0, 9.0]]), np.array([[0.4, 0.0]]), **limits
    )[0]
    assert w == pytest.approx(0.1), "as much to the side"
    # A wall reaches from side to side, with no path around it.
    for v0, x in (
        (0.6, 0.75),
        (0.3, 0.42),
        (0.0, 0.31),
    ):
        wall = np.stack([np.full(200, x), np.linspace(-4, 4, 200)], axis=1)[None]
        v, w = local.dynamic_window(
            wall, np.array([[9.0, 0.0]]), np.array([[v0, 0.0]]), **limits
        )[0]
        assert v * 0.1 + v * v / (2 * 0.5) <= dwa.free_way(
            wall[0], w / v if v else 0.0, 0.3, 9.0
        ) + 1e-9 or v == pytest.approx(v0 - 0.05)


def test_a_robot_that_cannot_go_on_turns_away_and_one_that_can_does_not_stand() -> None:
    limits = {
        "dt": 0.25,
        "radius": 0.3,
        "max_v": 1.0,
        "max_w": 2.0,
        "accel": (0.5, 1.0),
        "brake": (0.5, 1.0),
    }
    goal, still = np.array([[9.0, 0.0]]), np.zeros((1, 2))
    for side in (1.0, -1.0):
        # The wall ahead comes nearer on one side.
        wall = np.stack(
            [np.linspace(0.25, 0.31, 200), side * np.linspace(0.15, -4, 200)], axis=1
        )[None]
        v, w = local.dynamic_window(wall, goal, still, **limits)[0]
        assert v == 0.0 and w == pytest.approx(-0.25 * side)

    x = np.linspace(-4, 4, 400)
    corridor = np.concatenate(
        [np.stack([x, np.full(400, y)], axis=1) for y in (-0.5, 0.5)]
    )[None]
    v, w = local.dynamic_window(corridor, goal, still, **limits)[0]
    assert v == pytest.approx(0.125) and w == 0.0


# -- VFH+


@few
@given(seeds)
def test_polar_histogram(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, heading = rng.uniform(-3, 3, (8, 2)), rng.uniform(-math.pi, math.pi)
    rules = vfh.HistogramRules(0.3, 2.5, 1.5, 3.0, 16, 5.0, 2.0, 2.0)
    out = np.empty(72)
    vfh.fill_histogram(points, heading, rules, out)
    assert out == pytest.approx(
        twins.histogram_by_sectors(points, heading, 0.3, 2.5, 72)
    )


def arc_of_points(low: float, high: float, away: float = 1.0) -> np.ndarray:
    bearings = np.radians(np.arange(low, high, 2.0))
    return away * np.stack([np.cos(bearings), np.sin(bearings)], axis=1)


def direction(
    points: np.ndarray,
    goal: float,
    memory: local.Histograms | None = None,
    **options: object,
) -> float:
    """Return the direction in degrees for a robot that heads along x."""
    memory = local.Histograms(1) if memory is None else memory
    found = local.vector_field_histogram(
        points[None], np.radians([goal]), np.zeros(1), memory, radius=0.3, **options
    )
    return math.degrees(found[0, 0])


def test_a_narrow_valley_is_taken_in_its_middle_and_a_wide_one_at_its_near_side() -> (
    None
):
    """Obstacles are enlarged by asin(0.3 / 1) = 17.5°."""
    narrow = np.concatenate([arc_of_points(-180, -30), arc_of_points(70, 180)])
    assert direction(narrow, -10.0) == pytest.approx(20.0, abs=2.6), (
        "an opening from −12.5° to 52.5°, less than 80° wide"
    )
    wide = np.concatenate([arc_of_points(-180, -20), arc_of_points(160, 180)])
    assert direction(wide, 70.0) == pytest.approx(70.0), "the goal is in between"
    assert direction(wide, -10.0) == pytest.approx(40.0, abs=2.6), (
        "half of 80° away from the side that is near the goal"
    )
    assert math.isnan(direction(arc_of_points(-180, 180), 0.0))
    assert direction(np.full((1, 2), np.nan), 33.0) == pytest.approx(33.0)


def test_between_thresholds_directions_stay_as_they_were() -> None:
    # The magnitude is 1 + 2.5² − 2.1² = 2.84, between the thresholds 1.5 and 3.
    far = arc_of_points(-1, 1, away=2.1)
    memory = local.Histograms(1)
    assert direction(far, 0.0, memory) == pytest.approx(0.0)
    memory.blocked[:] = 1
    assert abs(direction(far, 0.0, memory)) > 40.0, (
        "it was blocked, and is not free yet"
    )
    memory.reset(np.array([0]))
    assert direction(far, 0.0, memory) == pytest.approx(0.0)


def test_directions_that_cannot_be_turned_to_are_masked() -> None:
    # The point is to the left of the robot.
    beside = np.array([[0.3, 0.75]])
    on_the_spot = direction(beside, 120.0)
    in_an_arc = direction(beside, 120.0, turn_radius=np.array([1.0]))
    assert on_the_spot > 90.0 and in_an_arc < 50.0
    mirrored = direction(beside * [1, -1], -120.0, turn_radius=np.array([1.0]))
    assert mirrored == pytest.approx(-in_an_arc, abs=1e-6)


# -- pure pursuit


@few
@given(seeds)
def test_pursued_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # The path goes up and to the right.
    path = np.cumsum(rng.uniform(0.2, 1.0, (5, 2)), axis=0)
    pose = np.array(
        [*path[rng.integers(1, 4)] + rng.uniform(-0.3, 0.3, 2), rng.uniform(-3, 3)]
    )
    got = local.pure_pursuit(
        path[None], pose[None], np.array([0.6]), np.zeros(1), None
    )[0]
    # Search the whole path when the window of two lookahead distances ends behind the robot.
    goal = twins.pursued(path, pose[:2], 0.6)
    c, s = math.cos(pose[2]), math.sin(pose[2])
    dx, dy = goal - pose[:2]
    progress = np.zeros(1)
    for _ in range(8):
        got = local.pure_pursuit(path[None], pose[None], np.array([0.6]), progress)[0]
    assert got[1:3] == pytest.approx([c * dx + s * dy, c * dy - s * dx], abs=2e-3)
    assert got[0] == pytest.approx(2 * got[2] / (got[1] ** 2 + got[2] ** 2))
    assert got[3] == pytest.approx(np.linalg.norm(path[-1] - pose[:2]))


def test_on_a_circle_the_curvature_is_the_circles() -> None:
    angles = np.linspace(0, 2 * math.pi, 721)
    circle = 2.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for th in (0.3, 1.0, 4.0):
        pose = np.array([[2 * math.cos(th), 2 * math.sin(th), th + math.pi / 2]])
        at = np.array([th / (2 * math.pi) * 720 - 5.0])
        got = local.pure_pursuit(circle[None], pose, np.array([0.8]), at)
        assert got[0, 0] == pytest.approx(0.5, rel=2e-3)

    straight = np.array([[[0.0, 0.0], [9.0, 0.0]]])
    assert (
        local.pure_pursuit(
            straight, np.array([[1.0, 0.0, 0.0]]), np.array([0.8]), np.zeros(1)
        )[0, 0]
        == 0.0
    )
    # At the distance y from the line, the curvature is γ = −2 y / l².
    got = local.pure_pursuit(
        straight, np.array([[1.0, 0.2, 0.0]]), np.array([0.8]), np.zeros(1)
    )
    assert got[0, 0] == pytest.approx(-2 * 0.2 / 0.8**2)


# -- walls near a place


@few
@given(seeds, st.integers(1, 5))
def test_near_walls_are_the_nearest_ones(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    segments = rng.uniform(-8, 8, (30, 4))
    # Some segments share an end point, so that distances can be equal.
    segments[:5, 2:] = segments[5:10, :2]
    sim = Simulation(Scene(segments=segments))
    xy = rng.uniform(-9, 9, (6, 2))
    found = sim.near_walls(xy, reach=3.0, count=count)
    assert found.shape == (6, count, 4)
    for at, walls in zip(xy, found, strict=True):
        away = np.array(
            [np.linalg.norm(at - twins.nearest_of_segment(w, at)) for w in segments]
        )
        order = np.argsort(away)
        expected = [away[k] for k in order if away[k] <= 3.0][:count]
        rows = walls[~np.isnan(walls[:, 0])]
        mine = [np.linalg.norm(at - twins.nearest_of_segment(w, at)) for w in rows]
        assert mine == pytest.approx(expected), "each wall once, the nearest first"


def test_worlds_and_simulations_have_the_same_walls() -> None:
    scenes = [
        MapBuilder("a").rectangle(-3, -3, 6, 6).scene(),
        MapBuilder("b").rectangle(-2, -4, 5, 9).scene(),
    ]
    worlds = Worlds(scenes, ["amigo", "amigo"], 5, seeds=3, threads=2)
    walls = worlds.near_walls(reach=4.0, count=3)
    assert walls.shape == (5, 2, 3, 4) and len(set(worlds.map_id.tolist())) == 2
    for i in range(5):
        assert np.array_equal(
            walls[i],
            worlds.world(i).near_walls(worlds.pose[i, :, :2], reach=4.0, count=3),
            equal_nan=True,
        )

    with pytest.raises(ArgumentError, match="count: expected"):
        worlds.near_walls(reach=4.0, count=0)
    with pytest.raises(ArgumentError, match="xy: expected"):
        worlds.world(0).near_walls([[1.0, 2.0, 3.0]], reach=1.0)


# -- batches


def test_each_row_is_what_it_is_alone() -> None:
    rng = np.random.default_rng(2)
    n, m = 7, 5
    x, v, radius = (
        rng.uniform(-2, 2, (n, m, 2)),
        rng.uniform(-1, 1, (n, m, 2)),
        rng.uniform(0.2, 0.3, (n, m)),
    )
    wanted, top = rng.uniform(-1, 1, (n * m, 2)), np.full(n * m, 1.2)
    walls = rng.uniform(-3, 3, (n * m, 2, 4))
    for method in (crowds.orca, crowds.social_force):
        whole = method(x, v, radius, wanted, top, dt=0.1, walls=walls).reshape(n, m, 2)
        for i, j in ((0, 0), (3, 4), (6, 2)):
            k = i * m + j
            one = method(
                x[i : i + 1],
                v[i : i + 1],
                radius[i : i + 1],
                wanted[k : k + 1],
                top[:1],
                dt=0.1,
                walls=walls[k : k + 1],
                chosen=np.array([[0, j]]),
            )
            assert np.array_equal(one[0], whole[i, j])

        # A neighbour with a radius of NaN does not exist.
        radius[0, 1] = np.nan
        chosen = np.array([[0, 0]])
        without = method(
            x[:1], v[:1], radius[:1], wanted[:1], top[:1], dt=0.1, chosen=chosen
        )
        moved = x[:1].copy()
        moved[0, 1] = x[0, 0] + 0.1
        assert np.array_equal(
            method(
                moved, v[:1], radius[:1], wanted[:1], top[:1], dt=0.1, chosen=chosen
            ),
            without,
        )
        radius[0, 1] = 0.25


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"radius": np.ones(3)}, r"radius: expected an array \(n, m\)"),
        (
            {"position": np.zeros((1, 2, 2))},
            r"position: expected an array of shape \(1, 3, 2\)",
        ),
        ({"walls": np.zeros((3, 4))}, "walls: expected"),
        (
            {"chosen": np.array([[0, 3]])},
            "chosen: expected worlds 0 … 0 and bodies 0 … 2",
        ),
        ({"radius": np.full((1, 3), np.nan)}, "NaN does not exist"),
        ({"preferred": np.full((3, 2), np.nan)}, "preferred: expected finite numbers"),
        (
            {"max_speed": np.full(3, -1.0)},
            "max_speed: expected finite numbers of at least 0",
        ),
        ({"dt": 0.0}, "dt: expected a positive number, found 0.0"),
        ({"reach": math.nan}, "reach: expected a positive number"),
    ],
)
def test_wrong_arrays_of_crowds(wrong: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "position": np.zeros((1, 3, 2)),
        "velocity": np.zeros((1, 3, 2)),
        "radius": np.ones((1, 3)),
        "preferred": np.zeros((3, 2)),
        "max_speed": np.ones(3),
        "dt": 0.1,
    }
    for method in (crowds.orca, crowds.social_force):
        with pytest.raises(ArgumentError, match=message):
            method(**(good | wrong))


def test_wrong_arrays_of_local_planners() -> None:
    points, goals = np.zeros((2, 3, 2)), np.zeros((2, 2))
    with pytest.raises(ArgumentError, match=r"points: expected an array \(2, p, 2\)"):
        local.dynamic_window(
            points[:1], goals, goals, dt=0.1, radius=0.3, max_v=1.0, max_w=1.0
        )

    with pytest.raises(ArgumentError, match="samples: expected at least 2"):
        local.dynamic_window(
            points,
            goals,
            goals,
            dt=0.1,
            radius=0.3,
            max_v=1.0,
            max_w=1.0,
            samples=(1, 5),
        )

    with pytest.raises(ArgumentError, match="expected 0 ≤ radius < window"):
        local.vector_field_histogram(
            points, np.zeros(2), np.zeros(2), local.Histograms(2), radius=3.0
        )

    path = np.zeros((1, 3, 2))
    with pytest.raises(ArgumentError, match="counts: expected 1 numbers from 2 to 3"):
        local.pure_pursuit(
            path, np.zeros((1, 3)), np.ones(1), np.zeros(1), counts=np.array([4])
        )

    with pytest.raises(
        ArgumentError, match="progress: expected positions on the paths"
    ):
        local.pure_pursuit(path, np.zeros((1, 3)), np.ones(1), np.full(1, np.nan))


def test_compiled_code_and_python_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(11)
    x, v, radius = (
        rng.uniform(-1.5, 1.5, (2, 6, 2)),
        rng.uniform(-1, 1, (2, 6, 2)),
        rng.uniform(0.2, 0.3, (2, 6)),
    )
    wanted, top, walls = (
        rng.uniform(-1, 1, (12, 2)),
        np.full(12, 1.2),
        rng.uniform(-3, 3, (12, 3, 4)),
    )
    points, goals = rng.uniform(-3, 3, (3, 20, 2)), rng.uniform(-3, 3, (3, 2))
    poses, paths = (
        rng.uniform(-2, 2, (3, 3)),
        np.cumsum(rng.uniform(0.1, 1, (3, 6, 2)), axis=1),
    )

    def all_results() -> list[np.ndarray]:
        memory, progress = local.Histograms(3), np.zeros(3)
        return [
            crowds.orca(x, v, radius, wanted, top, dt=0.1, walls=walls),
            crowds.social_force(x, v, radius, wanted, top, dt=0.1, walls=walls),
            crowds.commands(wanted, top, 0.1 * top, top, 0.1),
            *crowds.discs(rng_poses, rng_poses, radius),
            local.dynamic_window(
                points, goals, 0.1 * goals, dt=0.1, radius=0.3, max_v=1.0, max_w=2.0
            ),
            local.vector_field_histogram(
                points,
                goals[:, 0],
                poses[:, 2],
                memory,
                radius=0.3,
                turn_radius=np.full(3, 0.3),
            ),
            memory.blocked,
            local.pure_pursuit(paths, poses, np.full(3, 0.6), progress),
            progress,
        ]

    rng_poses = rng.uniform(-3, 3, (2, 6, 3))
    compiled = all_results()
    entries = (
        {"orca_kernel", "social_force_kernel"},
        {"window_kernel", "histogram_kernel", "pursuit_kernel"},
    )
    for module, names in zip((crowds, local), entries, strict=True):
        for name in names:
            assert getattr(module, name).is_ready, "it was called"
            monkeypatch.setattr(module, name, getattr(module, name).function)

    monkeypatch.setattr(crowds.kernels, "discs", crowds.kernels.discs.function)
    monkeypatch.setattr(crowds.kernels, "commands", crowds.kernels.commands.function)
    for a, b in zip(compiled, all_results(), strict=True):
        assert np.array_equal(a.view(np.uint8), b.view(np.uint8))
