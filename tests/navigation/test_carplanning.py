"""Hybrid A*: feasible arcs, free paths, paths of Dubins, bounds, errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.geometry import Pose
from botyard.model.raster import Raster
from botyard.model.trailers import TrailerSpec
from botyard.navigation.carplanning import discs_of, find_car_path
from botyard.navigation.kernels.dubins import word_of
from botyard.navigation.planning import BLOCKED, Costmap, NoPathError, Obstruction

RADIUS = 0.8
OFFSETS = (-0.1, 0.1, 0.3)


def floor(width: int = 60, height: int = 60, *solid: tuple[slice, slice]) -> Costmap:
    """Return a floor with cells of 0.1 m; `solid` has slices of rows and columns."""
    costs = np.zeros((height, width), np.uint8)
    for rows, columns in solid:
        costs[rows, columns] = BLOCKED
    return Costmap(costs, 0.0, 0.0, 0.1)


def check(path: np.ndarray, costs: Costmap, start: Pose) -> None:
    """Check that a path starts at the robot, keeps to its circle, and is free."""
    assert tuple(path[0, :3]) == pytest.approx(tuple(start))
    steps = np.hypot(*np.diff(path[:, :2], axis=0).T)
    assert steps.max() <= 0.0501
    turns = np.abs(np.remainder(np.diff(path[:, 2]) + math.pi, 2 * math.pi) - math.pi)
    # A chord is a little shorter than its arc.
    assert (turns <= steps / RADIUS * 1.001 + 1e-9).all()
    # The robot moves along its heading.
    for (x, y, th, _), (x1, y1, th1, way) in pairwise(path):
        middle = th + 0.5 * math.remainder(th1 - th, 2 * math.pi)
        size = math.hypot(x1 - x, y1 - y)
        assert (x1 - x) == pytest.approx(way * size * math.cos(middle), abs=1e-6)
        assert (y1 - y) == pytest.approx(way * size * math.sin(middle), abs=1e-6)
    for x, y, th, _ in path[1:]:
        for one in OFFSETS:
            assert costs.is_free((x + one * math.cos(th), y + one * math.sin(th)))


@settings(max_examples=60)
@given(st.floats(0.0, 8.0), st.floats(-3.1, 3.1), st.floats(-3.1, 3.1))
def test_words_of_dubins_end_at_their_goal(d: float, a: float, b: float) -> None:
    found = 0
    for number in range(6):
        parts = np.zeros((3, 2))
        if not word_of(number, d, a, b, parts):
            continue
        found += 1
        x, y, th = 0.0, 0.0, a
        for turn, length in parts:
            if turn:
                x += turn * (math.sin(th + turn * length) - math.sin(th))
                y -= turn * (math.cos(th + turn * length) - math.cos(th))
                th += turn * length
            else:
                x, y = x + length * math.cos(th), y + length * math.sin(th)
        assert (x, y) == pytest.approx((d, 0.0), abs=1e-6)
        assert math.remainder(th - b, 2 * math.pi) == pytest.approx(0.0, abs=1e-6)
    assert found >= 2


def test_a_goal_ahead_is_an_arc_and_a_line() -> None:
    costs, start = floor(), Pose(1.0, 1.0, 0.0)
    path = find_car_path(costs, [OFFSETS], start, (4.0, 3.0), None, RADIUS)
    check(path, costs, start)
    assert path[-1, :2] == pytest.approx((4.0, 3.0))
    assert (path[:, 3] == 1.0).all()


@pytest.mark.parametrize("heading", [0.0, 1.5, 3.1, -2.0])
def test_a_heading_at_the_goal(heading: float) -> None:
    costs, start = floor(), Pose(2.0, 3.0, 0.5)
    path = find_car_path(costs, [OFFSETS], start, (4.0, 3.2), heading, RADIUS)
    check(path, costs, start)
    assert path[-1, :2] == pytest.approx((4.0, 3.2))
    assert math.remainder(path[-1, 2] - heading, 2 * math.pi) == pytest.approx(
        0.0, abs=1e-6
    )


def test_a_goal_behind_the_robot_needs_reverse() -> None:
    # A corridor of 1.4 m, in which the robot cannot turn round.
    costs = floor(60, 14)
    start = Pose(3.0, 0.7, 0.0)
    path = find_car_path(costs, [OFFSETS], start, (1.0, 0.7), None, RADIUS)
    check(path, costs, start)
    assert (path[:, 3] == -1.0).any()
    with pytest.raises(NoPathError) as error:
        find_car_path(costs, [OFFSETS], start, (1.0, 0.7), None, RADIUS, reverses=False)
    assert error.value.reason is Obstruction.NO_ARC


def test_a_path_leads_round_a_wall() -> None:
    costs = floor(60, 60, (slice(0, 40), slice(28, 32)))
    start = Pose(1.5, 1.0, 0.0)
    path = find_car_path(costs, [OFFSETS], start, (4.5, 1.0), None, RADIUS)
    check(path, costs, start)
    assert path[:, 1].max() > 4.0


def test_a_bay_is_left_in_reverse() -> None:
    # Walls ahead and on both sides.
    costs = floor(
        60,
        60,
        (slice(24, 36), slice(30, 32)),
        (slice(22, 24), slice(10, 32)),
        (slice(36, 38), slice(10, 32)),
    )
    start = Pose(2.4, 3.0, 0.0)
    path = find_car_path(costs, [OFFSETS], start, (4.5, 3.0), None, RADIUS)
    check(path, costs, start)
    assert path[1, 3] == -1.0


def test_the_search_is_bounded() -> None:
    costs = floor(60, 60, (slice(0, 50), slice(28, 32)))
    with pytest.raises(NoPathError) as error:
        find_car_path(
            costs,
            [OFFSETS],
            Pose(1.5, 1.0, 0.0),
            (4.5, 1.0),
            0.0,
            RADIUS,
            max_states=50,
        )
    assert error.value.reason is Obstruction.NO_TIME


def test_blocked_ends_have_their_reasons() -> None:
    costs = floor(60, 60, (slice(0, 60), slice(28, 32)))
    for goal, reason in (
        ((3.0, 1.0), Obstruction.GOAL_BLOCKED),
        ((9.0, 1.0), Obstruction.GOAL_OUTSIDE),
        ((4.5, 1.0), Obstruction.NO_PASSAGE),
    ):
        with pytest.raises(NoPathError) as error:
            find_car_path(costs, [OFFSETS], Pose(1.5, 1.0, 0.0), goal, None, RADIUS)
        assert error.value.reason is reason


# -- trailers

BODY = ((-0.3, -0.2), (0.3, -0.2), (0.3, 0.2), (-0.3, 0.2))
TRAILER = TrailerSpec(outline=BODY, hitch=0.4, length=0.6, limit=1.0)


def corner(cells: int) -> Costmap:
    """Return a corridor along x and then along y, without a clearance."""
    inner = (slice(10 + cells, 90), slice(0, 80 - cells))
    return floor(
        90, 90, inner, (slice(0, 10), slice(0, 90)), (slice(0, 90), slice(80, 90))
    )


def follow(
    path: np.ndarray, headings: list[float], trailers: tuple[TrailerSpec, ...]
) -> Iterator[tuple[float, list[Pose]]]:
    """Yield the greatest excess of an angle, rad, and the poses of trailers along a path.

    Each trailer turns by (v sin φ − a ω cos φ) / d and moves by v cos φ + a ω sin φ
    (Altafini 2001), in short straight steps.
    """
    th = list(headings)
    for before, after in pairwise(path):
        length = math.dist(before[:2], after[:2])
        turn = math.remainder(after[2] - before[2], 2 * math.pi)
        parts = 20
        for _ in range(parts):
            v, w, front = length / parts, turn / parts, before[2]
            for k, one in enumerate(trailers):
                phi, own = front - th[k], th[k]
                v, w = (
                    v * math.cos(phi) + one.hitch * w * math.sin(phi),
                    (v * math.sin(phi) - one.hitch * w * math.cos(phi)) / one.length,
                )
                th[k], front = own + w, own
            before = [before[0], before[1], before[2] + turn / parts]
        poses, leader, excess = [], Pose(*after[:3]), -math.inf
        for k, one in enumerate(trailers):
            excess = max(excess, abs(leader.th - th[k]) - one.limit)
            leader = one.behind(leader, leader.th - th[k])
            poses.append(leader)
        yield excess, poses


@pytest.mark.parametrize(("count", "cells"), [(1, 9), (2, 9), (3, 10)])
def test_trailers_are_free_and_within_their_limits_on_the_path(
    count: int, cells: int
) -> None:
    trailers = (TRAILER,) * count
    discs = discs_of((BODY,), *((one.outline,) for one in trailers))
    solid = corner(cells).costs == BLOCKED
    costs = Costmap.of(Raster(solid, 0.0, 0.0, 0.1), discs.radius)
    # Between two checks, a disc may touch the corner of a cell.
    least = Costmap.of(Raster(solid, 0.0, 0.0, 0.1), discs.radius - 0.05)
    start, goal = Pose(4.0, 1.0 + 0.05 * cells, 0.0), (8.0 - 0.05 * cells, 8.0)

    def driven(given: tuple[TrailerSpec, ...]) -> tuple[float, bool]:
        path = find_car_path(
            costs,
            discs.offsets[: 1 + len(given)],
            start,
            goal,
            None,
            1.4,
            trailers=given,
            headings=[0.0] * len(given),
            reverses=False,
        )
        states = list(follow(path, [0.0] * count, trailers))
        free = all(
            least.is_free((x + o * math.cos(th), y + o * math.sin(th)))
            for _, poses in states
            for (x, y, th), offsets in zip(poses, discs.offsets[1:], strict=True)
            for o in offsets
        )
        return max(excess for excess, _ in states), free

    excess, is_free = driven(trailers)
    assert excess <= 1e-3
    assert is_free
    # The robot alone takes the inner side of the corner.
    assert driven(())[1] is False


def test_a_bent_hitch_may_only_straighten() -> None:
    costs, start = floor(), Pose(2.0, 3.0, 0.0)
    trailers = (replace(TRAILER, limit=0.3),)
    path = find_car_path(
        costs,
        [OFFSETS, OFFSETS],
        start,
        (5.0, 3.0),
        None,
        2.0,
        trailers=trailers,
        headings=[-0.8],
        reverses=False,
    )
    states = list(follow(path, [-0.8], trailers))
    assert states[0][0] < 0.5 and states[-1][0] < 0.0
    assert all(b[0] <= a[0] for a, b in pairwise(states[:10]))


def test_discs_of_a_train_are_equal() -> None:
    wide = tuple((2.0 * x, 1.5 * y) for x, y in BODY)
    discs = discs_of((BODY,), (wide,))
    assert len({len(one) for one in discs.offsets}) == 1
    for body, offsets in zip((BODY, wide), discs.offsets, strict=True):
        (x0, y0), (x1, _) = body[0], body[1]
        for x in np.linspace(x0, x1, 40):
            assert min(math.hypot(x - o, y0) for o in offsets) <= discs.radius + 1e-12


def test_discs_cover_a_body() -> None:
    body = ((-0.12, -0.155), (0.46, -0.155), (0.46, 0.155), (-0.12, 0.155))
    discs = discs_of([body])
    for x in np.linspace(-0.12, 0.46, 50):
        for y in (-0.155, 0.0, 0.155):
            assert min(math.hypot(x - o, y) for o in discs.offsets[0]) <= (
                discs.radius + 1e-12
            )
    assert len(discs.offsets[0]) <= 8
    assert discs.radius < 0.25
