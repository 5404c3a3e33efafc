"""Linear programs in the plane with half-planes and a disc, solved incrementally.

A half-plane is (nx, ny, c): all v with n·v ≥ c, with n of length 1. The method is in de
Berg, Cheong, van Kreveld and Overmars, "Computational Geometry", chapter 4, to which
van den Berg et al. 2011 refer. Half-planes are added in the given order, without a
shuffle, so that results repeat.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import inline_kernel, kernel

F8 = NDArray[np.float64]

PARALLEL = 1e-9
"""Sine of the angle below which two lines count as parallel."""
SLACK = 1e-9
"""Violation of a half-plane that counts as rounding, m/s."""


@kernel
def best_on_line(
    planes: F8, i: int, radius: float, x: float, y: float, is_direction: bool
) -> tuple[bool, float, float]:
    """Return the best point on the edge of half-plane i.

    The point is within half-planes 0 … i − 1 and within a disc around 0.

    Parameters
    ----------
    planes : (h, 3) float64
        Half-planes (nx, ny, c), of which the first i + 1 are used.
    i : int
        Index of the half-plane.
    radius : float
        Radius of the disc, m/s.
    x, y : float
        The best point is nearest to this point, m/s, or farthest in this direction.
    is_direction : bool
        Whether (`x`, `y`) is a direction.

    Returns
    -------
    found : bool
        Whether there is such a point.
    px, py : float
        Coordinates of the best point, m/s; 0 if there is none.
    """
    nx, ny, c = planes[i, 0], planes[i, 1], planes[i, 2]
    # Half of the chord that the disc cuts from the edge, squared.
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
        # A parallel edge restricts no part of the line: it contains all of it or
        # nothing.
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
    """Return the best point within the first half-planes and a disc around 0.

    Parameters
    ----------
    planes : (h, 3) float64
        Half-planes (nx, ny, c).
    count : int
        Number of half-planes to use.
    radius : float
        Radius of the disc, m/s.
    x, y : float
        The best point is nearest to this point, m/s, or farthest in this direction.
    is_direction : bool
        Whether (`x`, `y`) is a direction, which has the length 1.

    Returns
    -------
    ended : int
        Index of the first half-plane that leaves no point, or `count`.
    px, py : float
        The best point within the half-planes before it, m/s.
    """
    if is_direction:
        vx, vy = x * radius, y * radius
    else:
        speed2 = x * x + y * y
        scale = radius / math.sqrt(speed2) if speed2 > radius * radius else 1.0
        vx, vy = x * scale, y * scale

    for i in range(count):
        # If the best point so far violates the new half-plane, the new best point is on
        # its edge.
        if planes[i, 0] * vx + planes[i, 1] * vy < planes[i, 2] - SLACK:
            found, px, py = best_on_line(planes, i, radius, x, y, is_direction)
            if not found:
                return i, vx, vy
            vx, vy = px, py

    return count, vx, vy


@inline_kernel
def equally_violated(planes: F8, i: int, j: int, out: F8) -> bool:
    """Compute the half-plane of points that violate j at most as much as i.

    Parameters
    ----------
    planes : (h, 3) float64
        Half-planes (nx, ny, c).
    i, j : int
        Indices of the two half-planes.
    out : (3,) float64
        Output: the half-plane (nx, ny, c).

    Returns
    -------
    bool
        False if the points are the whole plane, or none; then `out` is unchanged.
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
    """Return the point of a disc that violates half-planes `hard` … `count` − 1 least.

    The greatest violation counts. The point satisfies half-planes 0 … `hard` − 1. This
    is a linear program in three dimensions, the third of which is the violation.

    Parameters
    ----------
    planes : (h, 3) float64
        Half-planes (nx, ny, c).
    hard : int
        Number of half-planes that must hold; they come first.
    count : int
        Number of all half-planes to use.
    begin : int
        First half-plane that leaves no point, from `best_within`.
    radius : float
        Radius of the disc, m/s.
    x, y : float
        Point that satisfies the half-planes before that one, m/s.
    work : (h, 3) float64
        Workspace.

    Returns
    -------
    px, py : float
        The point, m/s.
    """
    vx, vy = x, y
    worst = 0.0
    for i in range(begin, count):
        violation = planes[i, 2] - (planes[i, 0] * vx + planes[i, 1] * vy)
        if violation <= worst + SLACK:
            continue
        used = hard
        # Hard half-planes hold without any violation.
        for j in range(hard):
            for c in range(3):
                work[j, c] = planes[j, c]

        for j in range(hard, i):
            if equally_violated(planes, i, j, work[used]):
                used += 1

        ended, px, py = best_within(
            work, used, radius, planes[i, 0], planes[i, 1], True
        )
        # If no point was found, the reason is rounding: keep the previous point, which
        # is as good.
        if ended == used:
            vx, vy = px, py
        # The worst violation never falls: later half-planes only constrain more.
        worst = max(worst, planes[i, 2] - (planes[i, 0] * vx + planes[i, 1] * vy))

    return vx, vy
