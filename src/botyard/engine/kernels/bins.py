"""Bins: bodies sorted into coarse cells once per step (counting sort).

Nothing is allocated in a step.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import kernel, merged_kernel
from botyard.engine.layout import Bins, Bodies, State

MIN_CELL = 2.0
"""Least edge of a cell, m."""
Extent = tuple[float, float, float, float, float, float]
"""Type of the extent of bodies, see `measure_extent`."""


@merged_kernel
def measure_extent(
    state: State, bodies: Bodies, dt: float, first: int, end: int
) -> Extent:
    """Return the extent of bodies: greatest radius and speed, and bounds of their centres.

    Parameters
    ----------
    state, bodies : State, Bodies
        Poses and velocities; radii and displacements.
    dt : float
        Duration of the step, s; see `sort_into_bins`.
    first, end : int
        Rows: the first one, and the row after the last one.

    Returns
    -------
    tuple of float
        Greatest radius, m; greatest speed, m/s; least and greatest x, least and
        greatest y, m.
    """
    pose, vel, radius = state.pose, state.vel, bodies.radius
    r_max = 0.0
    v_max = 0.0
    x_lo = y_lo = math.inf
    x_hi = y_hi = -math.inf

    for i in range(first, end):
        r_max = max(r_max, radius[i])
        # The sum of both components bounds the speed without a square root.
        v_max = max(v_max, abs(vel[i, 0]) + abs(vel[i, 1]))
        # A braking body with exact ramps moves farther than its final velocity implies.
        if bodies.exact[i] == 1 and dt > 0.0:
            v_max = max(
                v_max,
                abs(vel[i, 0])
                + abs(vel[i, 1])
                + (abs(bodies.lead[i, 0]) + abs(bodies.lead[i, 1])) / dt,
            )

        x_lo = min(x_lo, pose[i, 0])
        x_hi = max(x_hi, pose[i, 0])
        y_lo = min(y_lo, pose[i, 1])
        y_hi = max(y_hi, pose[i, 1])

    return r_max, v_max, x_lo, x_hi, y_lo, y_hi


@merged_kernel
def sort_into_bins(
    state: State, bodies: Bodies, bins: Bins, dt: float, extent: Extent
) -> None:
    """Sort all bodies by position into bins.

    Parameters
    ----------
    state, bodies : State, Bodies
        Poses and classes; radii.
    bins : Bins
        Output: all arrays but `met`.
    dt : float
        Duration of the step, s, for the distances in `Bins.reach`. In a second call
        within a step it is negative, and `Bins.reach` stays unchanged.
    extent : tuple of float
        Extent of all bodies, see `measure_extent`.
    """
    pose, mask, radius = state.pose, state.mask, bodies.radius
    n = pose.shape[0]
    frame, shape, start, rows, at, cell = (
        bins.frame,
        bins.shape,
        bins.start,
        bins.rows,
        bins.at,
        bins.cell,
    )
    slot, classes, seen = bins.slot, bins.classes, np.uint16(0)
    r_max, v_max, x_lo, x_hi, y_lo, y_hi = extent

    # A negative `dt` marks the second call in a step, in which these values are known.
    if dt >= 0.0:
        bins.reach[0], bins.reach[1], bins.reach[2] = (
            r_max,
            v_max * dt,
            max(bins.reach[1], v_max * dt),
        )

    # Without bodies there is no extent to divide into cells.
    if n == 0:
        shape[0] = shape[1] = 0
        bins.seen[0] = seen
        return

    # The number of cells is about the number of bodies, whatever the extent: `start`
    # has room for 4·(n + 16).
    edge = max(
        MIN_CELL, math.sqrt((x_hi - x_lo + 1.0) * (y_hi - y_lo + 1.0) / (n + 16.0))
    )
    # A long thin world has one row of cells; this bounds their number.
    edge = max(edge, (x_hi - x_lo + y_hi - y_lo) / (n + 16.0))
    inv = 1.0 / edge
    nx = int(math.floor((x_hi - x_lo) * inv)) + 1
    ny = int(math.floor((y_hi - y_lo) * inv)) + 1
    frame[0], frame[1], frame[2] = x_lo, y_lo, inv
    shape[0], shape[1] = nx, ny

    for c in range(nx * ny + 1):
        start[c] = 0
    for i in range(n):
        c = int((pose[i, 1] - y_lo) * inv) * nx + int((pose[i, 0] - x_lo) * inv)
        cell[i] = c
        start[c + 1] += 1

    for c in range(nx * ny):
        start[c + 1] += start[c]
    # Descending rows keep the order of rows within a cell.
    for i in range(n - 1, -1, -1):
        c = cell[i]
        start[c + 1] -= 1
        k = start[c + 1]
        rows[k], slot[i] = i, k
        at[k, 0], at[k, 1], at[k, 2] = pose[i, 0], pose[i, 1], radius[i]
        classes[k] = mask[i]
        seen |= mask[i]

    bins.seen[0] = seen
    # Each start[c + 1] now holds the first entry of cell c: shift back by one.
    for c in range(nx * ny):
        start[c] = start[c + 1]
    start[nx * ny] = n


@kernel
def bin_span(
    lo: float, hi: float, origin: float, inv: float, count: int
) -> tuple[int, int]:
    """Return the first and last bin along one axis that an interval touches.

    Parameters
    ----------
    lo, hi : float
        Ends of the interval, m.
    origin : float
        Coordinate at which bin 0 starts, m.
    inv : float
        Bins per metre.
    count : int
        Number of bins: they are 0 … count − 1. All lengths may also have another common
        unit.

    Returns
    -------
    tuple of int
        First and last bin. If the interval touches none, the last one is less than the
        first one.
    """
    a = (lo - origin) * inv
    b = (hi - origin) * inv
    # Clipping would return a bin that the interval does not touch.
    if b < 0.0 or a >= count:
        return 0, -1
    return int(max(a, 0.0)), int(min(b, count - 1.0))
