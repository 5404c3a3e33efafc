"""Walls as spans of beams against walks through the grid and against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from botyard.devices.ranging import RangeDevices
from botyard.engine.kernels import wallspans
from botyard.engine.kernels.beamreadings import (
    Noise,
    finish_reading,
    finish_uniform,
    whole,
)
from botyard.engine.kernels.beams import longest
from botyard.engine.kernels.wallspans import (
    few_for_spans,
    has_few_walls,
    list_of,
    wide_cells,
)
from botyard.engine.simulation import Engine
from botyard.engine.wallgrid import build_grid
from botyard.geometry import Pose
from botyard.model.beams import Bundle
from botyard.model.obstacles import Returns, Visible
from botyard.model.scene import Scene, SpecialWalls
from tests.engine.worlds import random_segments, robot


def readings(
    segments: np.ndarray, pose: Pose, r_max: float, *several: list[Bundle]
) -> list[np.ndarray]:
    """Return ranges of a sensor at a pose, for each of several sets of bundles."""
    devices = RangeDevices()
    e = Engine(Scene(segments=segments), senses=(devices,))
    e.add_bodies([(robot("r0"), pose)])
    found = []
    for bundles in several:
        devices.configure("x", "r0", 1, Visible.LASER, bundles)
        found.append(devices.read(e, "x").ranges.copy())

    return found


def fans(
    count: int, fov: float, r_max: float, mount: Pose = Pose(), noise: float = 0.0
) -> tuple[list[Bundle], list[Bundle]]:
    """Return the same beams as one bundle (spans) and as a bundle for each beam
    (walks).
    """
    step = fov / (count - 1)
    one = Bundle(
        mount=mount,
        angle0=-fov / 2,
        step=step,
        count=count,
        r_max=r_max,
        r_noise=noise,
    )
    each = [
        Bundle(mount=mount, angle0=-fov / 2 + step * k, r_max=r_max, r_noise=noise)
        for k in range(count)
    ]
    return [one], each


def brute(
    segments: np.ndarray, pose: Pose, angles: np.ndarray, r_max: float
) -> np.ndarray:
    """Test all beams against all segments at once."""
    dx, dy = np.cos(angles + pose.th)[:, None], np.sin(angles + pose.th)[:, None]
    ax, ay = segments[:, 0] - pose.x, segments[:, 1] - pose.y
    ex, ey = segments[:, 2] - segments[:, 0], segments[:, 3] - segments[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (ax * ey - ay * ex) / (dx * ey - dy * ex)
        u = (ax * dy - ay * dx) / (dx * ey - dy * ex)
    hit = (t >= 0.0) & (u >= -1e-12) & (u <= 1.0 + 1e-12)
    return np.where(hit, t, r_max).min(axis=1, initial=r_max)


def test_spans_and_walks_give_the_same_bits_on_a_thousand_maps() -> None:
    rng = np.random.default_rng(38)
    met = 0
    for _ in range(1000):
        walls = int(rng.integers(1, 60))
        segments = random_segments(rng, walls)
        # Round to walls along the axes, walls on lattice points and long walls, in both directions.
        if rng.integers(2):
            segments = np.round(segments)
        segments = segments[np.any(segments[:, :2] != segments[:, 2:], axis=1)]
        segments = np.concatenate([segments, [(0.0, 0.0, 10.0, 0.0)]])
        fov = float(rng.choice([0.4, math.pi, 1.5 * math.pi, 2.0 * math.pi]))
        pose = Pose(*rng.uniform((-2.0, -2.0, -4.0), (12.0, 12.0, 4.0)))
        mount = Pose(*rng.uniform(-0.2, 0.2, 2), 0.0)
        r_max = float(rng.choice([1.0, 8.0, 100.0]))
        noise = float(rng.choice([0.0, 0.01]))
        spans, walks = readings(
            segments,
            pose,
            r_max,
            *fans(int(rng.integers(7, 60)), fov, r_max, mount, noise),
        )
        assert np.array_equal(spans, walks)
        met += int((spans < r_max).any())

    # Without so many hits the comparison would be empty.
    assert met > 500


@pytest.mark.parametrize("fov", [math.pi, 2.0 * math.pi])
def test_ranges_equal_brute_force(fov: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        segments = random_segments(rng, 50)
        pose = Pose(*rng.uniform((0.0, 0.0, -4.0), (10.0, 10.0, 4.0)))
        (found,) = readings(segments, pose, 8.0, fans(181, fov, 8.0)[0])
        angles = np.linspace(-fov / 2, fov / 2, 181)
        assert np.abs(found - brute(segments, pose, angles, 8.0)).max() < 1e-9


@pytest.mark.parametrize("turn", [0.0, 0.5 * math.pi, 0.3, -2.0])
def test_a_beam_along_a_wall_meets_it_or_what_is_behind(turn: float) -> None:
    """A wall end-on has no width: rounding decides, but not for other beams."""
    c, s = math.cos(turn), math.sin(turn)
    lines = [(2.0, 0.0, 4.0, 0.0), (6.0, -1.0, 6.0, 1.0), (-3.0, 0.0, -2.0, 0.0)]
    segments = np.array(
        [
            (c * ax - s * ay, s * ax + c * ay, c * bx - s * by, s * bx + c * by)
            for ax, ay, bx, by in lines
        ]
    )
    pose = Pose(0.0, 0.0, turn)
    spans, walks = readings(segments, pose, 8.0, *fans(61, math.pi, 8.0))
    assert np.array_equal(spans, walks)
    assert 2.0 - 1e-9 < spans[30] < 4.0 + 1e-9 or abs(spans[30] - 6.0) < 1e-9
    beside = brute(segments, pose, np.linspace(-math.pi / 2, math.pi / 2, 61), 8.0)
    beside[30] = spans[30]
    assert np.abs(spans - beside).max() < 1e-9


def test_beams_walk_where_walls_are_dense() -> None:
    rng = np.random.default_rng(3)
    middle = rng.uniform(0.0, 10.0, (6000, 2))
    segments = np.hstack([middle, middle + rng.uniform(-0.05, 0.05, (6000, 2))])
    grid = build_grid(Scene(segments=segments))
    everywhere = wide_cells(grid, (0.0, float(grid.nx), 0.0, float(grid.ny)))
    assert not has_few_walls(grid, everywhere, 61)
    assert has_few_walls(grid, everywhere, 601)
    pose = Pose(5.0, 5.0, 0.3)
    # Few beams walk through the cells and many beams use spans; both must give the same bits.
    few, _ = fans(61, math.pi, 8.0)
    many, _ = fans(601, math.pi, 8.0)
    walks, spans = readings(segments, pose, 8.0, few, many)
    angles = np.linspace(-math.pi / 2, math.pi / 2, 61)
    expected = brute(segments, pose, angles, 8.0)
    assert np.abs(walks - expected).max() < 1e-9
    assert np.abs(spans[::10] - expected).max() < 1e-9


def test_short_beams_walk_where_long_ones_meet_spans() -> None:
    assert few_for_spans(400, 100, 0.0)
    assert not few_for_spans(700, 100, 5.0)
    assert few_for_spans(700, 100, 15.0)


def test_beams_that_were_walked_to_choose_the_method_keep_their_ranges() -> None:
    """Between 4 and 10 walls a beam: far walls, without and with near ones before."""
    rng = np.random.default_rng(4)
    angle, away = rng.uniform(0.0, 6.28, 1500), rng.uniform(6.0, 7.8, 1500)
    middle = np.column_stack([np.cos(angle), np.sin(angle)]) * away[:, None]
    far = np.hstack([middle, middle + rng.uniform(-0.1, 0.1, (1500, 2))])
    near = [(0.5, -0.5, 0.5, 0.5), (0.5, 0.5, -0.5, 0.5), (0.5, -0.5, -0.5, -0.5)]
    pose = Pose(0.1, 0.2, 0.3)
    for walls in (far, np.vstack([far, near])):
        spans, walks = readings(walls, pose, 8.0, *fans(181, math.pi, 8.0))
        assert np.array_equal(spans, walks)
        assert (spans < 8.0).sum() > 100


def test_every_wall_within_reach_is_listed_once() -> None:
    rng = np.random.default_rng(11)
    for count in (1, 7, 40, 400):
        segments = np.concatenate(
            [random_segments(rng, count), [(0.0, 0.0, 300.0, 1.0)]]
        )
        grid = build_grid(Scene(segments=segments))
        total = len(segments)
        assert grid.wall_start[-1] == total
        cells = (segments - [grid.x0, grid.y0] * 2) / grid.h
        cells[:, 2:] -= cells[:, :2]
        assert np.allclose(
            np.sort(grid.walls[:, :total].T, axis=0), np.sort(cells, axis=0)
        )
        for _ in range(30):
            x, y = rng.uniform(0.0, 10.0, 2) / grid.h
            reach = rng.uniform(0.1, 5.0) / grid.h
            wide = wide_cells(grid, (x - reach, x + reach, y - reach, y + reach))
            listed = np.concatenate(
                [
                    np.arange(
                        *list_of(grid.wall_start, grid.wall_nx, grid.wall_ny, wide, j)
                    )
                    for j in range(wide[2], wide[3] + 2)
                ]
            ).astype(np.int64)
            assert len(set(listed.tolist())) == len(listed)
            ax, ay, ex, ey = grid.walls[:, :total]
            u = np.clip(
                -((ax - x) * ex + (ay - y) * ey) / (ex * ex + ey * ey), 0.0, 1.0
            )
            away = np.hypot(ax - x + u * ex, ay - y + u * ey)
            assert set(np.flatnonzero(away <= reach)) <= set(listed.tolist())


def test_a_map_with_reflectors_lists_no_walls() -> None:
    """Of two walls at the same range, the order of the tests decides."""
    segments = np.array([(0.0, 0.0, 1.0, 0.0), (0.0, 1.0, 1.0, 1.0)])
    special = (SpecialWalls(first=0, last=1, returns=Returns(laser=2)),)
    assert build_grid(Scene(segments=segments)).walls.shape[1] > 0
    grid = build_grid(Scene(segments=segments, special_walls=special))
    assert grid.walls.shape[1] == 0


def test_whole_numbers_become_floats_without_rounding() -> None:
    rng = np.random.default_rng(2)
    numbers = [0, 1, 2**32 - 1, 2**32, 2**52, 2**53 - 1]
    numbers += rng.integers(0, 2**53, 200, dtype=np.int64).tolist()
    assert [whole(np.uint64(m)) for m in numbers] == [float(m) for m in numbers]


def test_errors_of_many_beams_are_those_of_each_beam() -> None:
    rng = np.random.default_rng(4)
    raw, key = rng.uniform(0.0, 9.0, 50), np.uint64(0x9E3779B97F4A7C15)
    found = np.zeros(60)
    noise = Noise(0.3, 0.0, 0.0)
    with np.errstate(over="ignore"):
        finish_uniform(raw, 7, 40, (0.5, 8.0, noise.half), key, found, 3)
        each = [finish_reading(raw[j], 0.5, 8.0, noise, key, j) for j in range(7, 47)]
    assert found[3:43].tolist() == each
    assert not found[:3].any()
    assert not found[43:].any()


@pytest.mark.parametrize("count", range(9))
def test_the_longest_of_any_number_of_beams(count: int) -> None:
    raw = np.random.default_rng(count).uniform(0.0, 8.0, 9)
    assert longest(raw, count) == raw[:count].max(initial=0.0)


def test_groups_of_walls_fill_the_workspace() -> None:
    assert wallspans.WALLS_AT_ONCE % wallspans.WALL_LANES == 0
