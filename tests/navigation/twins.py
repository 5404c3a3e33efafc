"""Naive twins of the methods of navigation:

by definition, enumeration or brute force.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

F8 = np.ndarray


def meets_within(r: F8, v: F8, apart: float, horizon: float) -> bool:
    """Return whether a relative velocity is in the velocity obstacle:

    t v is within `apart` of r for a t of 0 … horizon.
    """
    t = np.clip(np.dot(r, v) / max(np.dot(v, v), 1e-300), 0.0, horizon)
    return bool(np.linalg.norm(t * v - r) < apart)


def change_by_search(r: F8, v: F8, apart: float, horizon: float) -> F8:
    """Return the nearest boundary point of a velocity obstacle less v, by a search over
    fine circles around v.
    """
    inside = meets_within(r, v, apart, horizon)
    angles = np.linspace(0, 2 * math.pi, 3601)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    low, high = 0.0, 50.0
    best = directions[0]
    # Bisect the smallest radius of a circle around v that reaches the other side.
    for _ in range(60):
        size = 0.5 * (low + high)
        w = v + size * directions
        vv = np.maximum((w * w).sum(axis=1), 1e-300)
        t = np.clip((w @ r) / vv, 0.0, horizon)
        within = np.linalg.norm(t[:, None] * w - r, axis=1) < apart
        other = within != inside
        if other.any():
            high, best = (
                size,
                size
                * directions[np.flatnonzero(other)].mean(axis=0)
                / np.linalg.norm(directions[np.flatnonzero(other)].mean(axis=0)),
            )
        else:
            low = size

    return best


def corners(planes: F8, radius: float) -> list[F8]:
    """Return all points where edges of half-planes cross one another and the circle."""
    found = []
    for a, b in itertools.combinations(planes, 2):
        m = np.array([a[:2], b[:2]])
        if abs(np.linalg.det(m)) > 1e-9:
            found.append(np.linalg.solve(m, [a[2], b[2]]))

    for nx, ny, c in planes:
        if abs(c) <= radius:
            t = math.sqrt(radius * radius - c * c)
            found += [
                np.array([nx * c - ny * t, ny * c + nx * t]),
                np.array([nx * c + ny * t, ny * c - nx * t]),
            ]

    return found


def nearest_within(planes: F8, radius: float, preferred: F8) -> F8 | None:
    """Return the point nearest to `preferred` in half-planes and a disc, by
    enumeration.

    None if there is none.
    """
    size = np.linalg.norm(preferred)
    candidates = [preferred if size <= radius else preferred * (radius / size)]
    candidates += [preferred - (preferred @ p[:2] - p[2]) * p[:2] for p in planes]
    candidates += corners(planes, radius)
    inside = [
        v
        for v in candidates
        if np.linalg.norm(v) <= radius + 1e-7
        and all(v @ p[:2] >= p[2] - 1e-7 for p in planes)
    ]
    return min(inside, key=lambda v: np.linalg.norm(v - preferred), default=None)


def least_violation(planes: F8, hard: int, radius: float) -> float:
    """Return the least possible maximum violation of the soft half-planes within the
    disc and the hard ones, by bisection.
    """
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        eased = planes.copy()
        eased[hard:, 2] -= middle
        if nearest_within(eased, radius, np.zeros(2)) is None:
            low = middle
        else:
            high = middle

    return high


def nearest_of_segment(wall: F8, at: F8) -> F8:
    a, e = wall[:2], wall[2:] - wall[:2]
    t = np.clip(np.dot(at - a, e) / max(np.dot(e, e), 1e-300), 0.0, 1.0)
    return a + t * e


def social_acceleration(
    i: int, x: F8, v: F8, radius: F8, wanted: F8, walls: F8, rules: dict[str, float]
) -> F8:
    """Return equation (1) of Helbing, Farkas, Vicsek 2000 for pedestrian i, with arrays
    (m, 2).
    """

    def one(n: F8, gap: float, dv: F8) -> F8:
        g = max(-gap, 0.0)
        t = np.array([-n[1], n[0]])
        size = (
            rules["strength"] * math.exp(-gap / rules["range"]) + rules["stiffness"] * g
        )
        return size * n + rules["friction"] * g * np.dot(dv, t) * t

    total = (wanted - v[i]) / rules["relaxation"]
    for j in range(len(x)):
        if j == i:
            continue
        d = np.linalg.norm(x[i] - x[j])
        n = (x[i] - x[j]) / d
        f = one(n, d - radius[i] - radius[j], v[j] - v[i])
        speed = np.linalg.norm(wanted)
        if (
            d > radius[i] + radius[j]
            and speed > 1e-12
            and np.dot(wanted / speed, -n) < math.cos(rules["sight"])
        ):
            f = f * rules["unseen"]

        total = total + f

    seen: list[F8] = []
    for wall in walls:
        p = nearest_of_segment(wall, x[i])
        if not any(np.abs(p - q).sum() <= 1e-6 for q in seen):
            seen.append(p)
            d = np.linalg.norm(x[i] - p)
            total = total + one((x[i] - p) / d, d - radius[i], -v[i])

    return total


def way_by_steps(
    points: F8, v: float, w: float, radius: float, limit: float, step: float = 1e-3
) -> float:
    """Return the distance that a disc moves on an arc before it touches a point, by
    small steps.
    """
    s = 0.0
    while s < limit:
        turn = w / v * s
        at = (
            np.array([s, 0.0])
            if abs(w / v) < 1e-9
            else np.array([math.sin(turn), 1 - math.cos(turn)]) * (v / w)
        )
        if (np.linalg.norm(points - at, axis=1) < radius).any():
            return s
        if abs(turn) >= 2 * math.pi:
            break
        s += step

    return min(s, limit)


def histogram_by_sectors(
    points: F8, heading: float, radius: float, window: float, sectors: int
) -> F8:
    """Return the primary polar histogram of VFH+, sector by sector.

    A point narrower than a sector belongs to the nearest one.
    """
    out = np.zeros(sectors)
    for x, y in points:
        d = math.hypot(x, y)
        if not d <= window:
            continue
        half = math.pi / 2 if d <= radius else math.asin(radius / d)
        bearing = math.atan2(y, x) + heading
        off = [
            abs(math.remainder(2 * math.pi * s / sectors - bearing, 2 * math.pi))
            for s in range(sectors)
        ]
        covered = [s for s in range(sectors) if off[s] <= half] or [int(np.argmin(off))]
        out[covered] += 1 + window**2 - d**2

    return out


def pursued(path: F8, at: F8, reach: float) -> F8:
    """Return the pursued point by a walk along the path in small steps.

    It is the first point after the nearest one at distance `reach`.
    """
    dense = np.concatenate(
        [
            a + np.linspace(0, 1, 2000, endpoint=False)[:, None] * (b - a)
            for a, b in itertools.pairwise(path)
        ]
        + [path[-1:]]
    )
    away = np.linalg.norm(dense - at, axis=1)
    begin = int(away.argmin())
    if away[begin] >= reach:
        return dense[begin]
    beyond = np.flatnonzero(away[begin:] >= reach)
    return dense[begin + beyond[0]] if len(beyond) else dense[-1]


# -- planning


def is_move(open_: F8, a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Return whether a path may go between two neighbours (row, column): all cells of the
    rectangle that they span are open.
    """
    (y0, y1), (x0, x1) = sorted((a[0], b[0])), sorted((a[1], b[1]))
    return bool(open_[y0 : y1 + 1, x0 : x1 + 1].all())


def dijkstra(costs: F8, start: tuple[int, int], goal: tuple[int, int]) -> float:
    """Return the length of the shortest path over neighbouring cells, infinite without one.

    Cells are (row, column); a cell of cost c is 1 + c / 16 times as long, 255 is blocked.
    """
    open_ = costs != 255
    rows, columns = costs.shape
    length = {start: 0.0}
    done: set[tuple[int, int]] = set()
    while left := [cell for cell in length if cell not in done]:
        cell = min(left, key=lambda one: length[one])
        if cell == goal:
            return length[cell]
        done.add(cell)
        for dy, dx in itertools.product((-1, 0, 1), repeat=2):
            other = cell[0] + dy, cell[1] + dx
            if not (0 <= other[0] < rows and 0 <= other[1] < columns):
                continue
            if is_move(open_, cell, other):
                step = math.hypot(dy, dx) * (1.0 + costs[other] / 16.0)
                length[other] = min(length.get(other, math.inf), length[cell] + step)
    return math.inf


def touched(a: F8, b: F8, count: int = 4000) -> set[tuple[int, int]]:
    """Return the cells (row, column) in which points of a line lie, well inside of them."""
    points = a + np.linspace(0.0, 1.0, count)[:, None] * (b - a)
    share = points - np.floor(points)
    inside = ((share > 1e-6) & (share < 1.0 - 1e-6)).all(axis=1)
    return {(int(y), int(x)) for x, y in np.floor(points[inside])}
