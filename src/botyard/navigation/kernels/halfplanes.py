"""Linear programs in the plane with half-planes and a disc, by adding one half-plane
after the other.

A half-plane is (nx, ny, c): all v with n·v ≥ c, where n has the length 1. The method is
that of de Berg, Cheong, van Kreveld and Overmars, "Computational Geometry", chapter 4,
to which van den Berg et al. 2011 refer; half-planes are added in the order that is
given, without a shuffle, so that results repeat.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import inline_kernel, kernel

F8 = NDArray[np.float64]

PARALLEL = 1e-9
"""Sine of the angle below which two lines are parallel."""
SLACK = 1e-9
"""By so much a half-plane may be violated, m/s."""


@kernel
def best_on_line(
    planes: F8, i: int, radius: float, x: float, y: float, is_direction: bool
) -> tuple[bool, float, float]:
    """The best point on the edge of half-plane i, within half-planes 0 … i − 1 and the
    disc of a radius around 0.

    The best one is the nearest to (`x`, `y`), or, if that is a direction, the one
    farthest that way. Returns whether there is one, and it.
    """
    nx, ny, c = planes[i, 0], planes[i, 1], planes[i, 2]
    half2 = radius * radius - c * c
    if half2 < 0.0:
        return False, 0.0, 0.0
    high = math.sqrt(half2)
    low = -high
    bx, by = nx * c, ny * c
    dx, dy = -ny, nx
    for j in range(i):
        along = planes[j, 0] * dx + planes[j, 1] * dy
        needed = planes[j, 2] - (planes[j, 0] * bx + planes[j, 1] * by)
        if abs(along) <= PARALLEL:
            if needed > SLACK:
                return False, 0.0, 0.0
        elif along > 0.0:
            low = max(low, needed / along)
        else:
            high = min(high, needed / along)

        if low > high:
            return False, 0.0, 0.0

    if is_direction:
        t = high if x * dx + y * dy > 0.0 else low
    else:
        t = min(high, max(low, (x - bx) * dx + (y - by) * dy))

    return True, bx + t * dx, by + t * dy


@kernel
def best_within(
    planes: F8, count: int, radius: float, x: float, y: float, is_direction: bool
) -> tuple[int, float, float]:
    """The best point within half-planes 0 … `count` − 1 and a disc, see `best_on_line`;
    a direction has the length 1.

    Returns the number of the first half-plane that leaves no point, or `count`; and the
    best point within those before it.
    """
    if is_direction:
        vx, vy = x * radius, y * radius
    else:
        speed2 = x * x + y * y
        scale = radius / math.sqrt(speed2) if speed2 > radius * radius else 1.0
        vx, vy = x * scale, y * scale

    for i in range(count):
        if planes[i, 0] * vx + planes[i, 1] * vy < planes[i, 2] - SLACK:
            found, px, py = best_on_line(planes, i, radius, x, y, is_direction)
            if not found:
                return i, vx, vy
            vx, vy = px, py

    return count, vx, vy


@inline_kernel
def equally_violated(planes: F8, i: int, j: int, out: F8) -> bool:
    """Write into `out` the half-plane of points that violate j at most as much as i;
    False: that is all of the plane, or nothing.
    """
    nx, ny = planes[j, 0] - planes[i, 0], planes[j, 1] - planes[i, 1]
    length = math.sqrt(nx * nx + ny * ny)
    if length <= PARALLEL:
        return False
    out[0], out[1], out[2] = (
        nx / length,
        ny / length,
        (planes[j, 2] - planes[i, 2]) / length,
    )
    return True


@kernel
def least_violating(
    planes: F8,
    hard: int,
    count: int,
    begin: int,
    radius: float,
    x: float,
    y: float,
    work: F8,
) -> tuple[float, float]:
    """The point of a disc that violates half-planes `hard` … `count` − 1 least (the
    greatest violation counts), within 0 … `hard` − 1.

    It is a linear program in three dimensions: the third one is the violation.
    Half-planes before `begin` are satisfied by (`x`, `y`). `work`: as large as
    `planes`.
    """
    vx, vy = x, y
    worst = 0.0
    for i in range(begin, count):
        violation = planes[i, 2] - (planes[i, 0] * vx + planes[i, 1] * vy)
        if violation <= worst + SLACK:
            continue
        used = hard
        for j in range(hard):
            for c in range(3):
                work[j, c] = planes[j, c]

        for j in range(hard, i):
            if equally_violated(planes, i, j, work[used]):
                used += 1

        ended, px, py = best_within(
            work, used, radius, planes[i, 0], planes[i, 1], True
        )
        # else by rounding alone: what was found before is as good
        if ended == used:
            vx, vy = px, py
        worst = max(worst, planes[i, 2] - (planes[i, 0] * vx + planes[i, 1] * vy))

    return vx, vy
