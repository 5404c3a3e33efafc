"""Division of a step among threads, with the results of a single thread.

Bodies move one after the other, because each one stops at the present places of those
around it. Most pairs of bodies are too far apart for that. The space is cut into strips
of bins, a *share* each, whose bodies move in the order of `Bodies.order`, while other
threads move the bodies of other shares. Two near bodies of different shares must still
move in their order, so the earlier one of them moves before all shares, and so does
each earlier body near one of those (*early* bodies). Any body then finds around it the
same places as in a step of one thread. Allocates nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from botyard.engine.kernels.bins import (
    Extent,
    bin_span,
    measure_extent,
    sort_into_bins,
)
from botyard.engine.kernels.broadphase import LEEWAY
from botyard.engine.kernels.collide import leads
from botyard.engine.kernels.jit import entry_kernel, kernel, merged_kernel
from botyard.engine.kernels.moves import move_rows, plan_rows
from botyard.engine.kernels.odometry import integrate_odometry
from botyard.engine.kernels.outlines import forget_leeways, place_outlines
from botyard.engine.kernels.polygons import CONTACT
from botyard.engine.layout import F8, I1, I8, NO_CONTROL, Bins, Bodies, State, World

PLANS, DIVIDES, MOVES, INTEGRATES = range(4)
"""Phases of a step of several threads, see `advance_share`."""
MAX_EARLY = 8
"""Divisor of the number of bodies: if more of them are early, one thread moves all bodies.

To find early bodies would otherwise take longer than threads save.
"""
MARGIN = 1e-6
"""Tolerance for rounding of distances between bodies, m."""


class Shares(NamedTuple):
    """Bodies of a step in k shares; n bodies.

    Attributes
    ----------
    rank : (n,) int64
        Index of each row in `Bodies.order`.
    owner : (n,) int64
        Share of each row; −1 − share for an early body.
    rows : (n,) int64
        Rows in the order of their moves: the shares one after the other, then early bodies.
    first : (k + 2,) int64
        Share s owns the entries first[s] … first[s + 1] − 1 of `rows`. Early bodies count as
        share k.
    line : (n + 32,) int64
        Share of each line of bins, which are rows or columns.
    waiting : (n + 32,) int64
        Workspace: early bodies whose neighbours are not yet known, and counts of lines.
    extent : (k, 6) float64
        Extent of the rows of each thread, see `measure_extent`.
    is_invalid : (k,) int8
        Whether an outline of each thread's rows has changed, see `place_outlines`.
    """

    rank: I8
    owner: I8
    rows: I8
    first: I8
    line: I8
    waiting: I8
    extent: F8
    is_invalid: I1


@merged_kernel
def whole_extent(shares: Shares) -> Extent:
    """Return the extent of the bodies of all threads; see `measure_extent`."""
    extent = shares.extent
    r_max, v_max, x_lo, x_hi, y_lo, y_hi = (
        extent[0, 0],
        extent[0, 1],
        extent[0, 2],
        extent[0, 3],
        extent[0, 4],
        extent[0, 5],
    )
    for s in range(1, extent.shape[0]):
        r_max, v_max = max(r_max, extent[s, 0]), max(v_max, extent[s, 1])
        x_lo, x_hi = min(x_lo, extent[s, 2]), max(x_hi, extent[s, 3])
        y_lo, y_hi = min(y_lo, extent[s, 4]), max(y_hi, extent[s, 5])

    return r_max, v_max, x_lo, x_hi, y_lo, y_hi


@kernel
def cut_lines(bins: Bins, shares: Shares, in_rows: bool) -> int:
    """Cut the bins into strips with about equal numbers of bodies.

    Parameters
    ----------
    bins : Bins
        Bodies by position.
    shares : Shares
        Output: `line`.
    in_rows : bool
        Whether lines are rows of bins, otherwise columns.

    Returns
    -------
    int
        Number of lines.
    """
    nx, ny, start = bins.shape[0], bins.shape[1], bins.start
    line, counts = shares.line, shares.waiting
    lines = ny if in_rows else nx
    for i in range(lines):
        counts[i] = 0
    for j in range(ny):
        if in_rows:
            counts[j] = start[(j + 1) * nx] - start[j * nx]
        else:
            for i in range(nx):
                counts[i] += start[j * nx + i + 1] - start[j * nx + i]

    k, n, passed = shares.extent.shape[0], shares.rank.shape[0], 0
    for i in range(lines):
        line[i] = min(passed * k // n, k - 1)
        passed += counts[i]

    return lines


@kernel
def assign_owners(bins: Bins, shares: Shares, in_rows: bool) -> None:
    """Give each body to the share of its line.

    Parameters
    ----------
    bins : Bins
        Bodies by position.
    shares : Shares
        Lines of the shares. Output: `owner`.
    in_rows : bool
        Whether lines are rows of bins, otherwise columns.
    """
    nx, ny, start, rows = bins.shape[0], bins.shape[1], bins.start, bins.rows
    owner, line = shares.owner, shares.line
    # A row of bins is a single range of entries.
    wide = nx if in_rows else 1
    for j in range(ny):
        for i in range(0, nx, wide):
            c = j * nx + i
            for k in range(start[c], start[c + wide]):
                owner[rows[k]] = line[j if in_rows else i]


@merged_kernel
def moves(state: State, bodies: Bodies, row: int) -> bool:
    """Return whether a body changes its place or heading in this step.

    Parameters
    ----------
    state, bodies : State, Bodies
        Bodies after `plan_velocities`.
    row : int
        Row of the body.
    """
    vel = state.vel
    return bool(
        state.control[row] == NO_CONTROL
        and (
            vel[row, 0] != 0.0
            or vel[row, 1] != 0.0
            or vel[row, 2] != 0.0
            or leads(bodies, row)
        )
    )


@kernel
def mark_early(
    world: World, shares: Shares, row: int, reach: float, of_early: bool, waiting: int
) -> int:
    """Mark the early bodies near a body.

    Parameters
    ----------
    world : World
        Arrays of the world before the moves.
    shares : Shares
        Owners. In-place: `owner`, and `waiting` with the marked bodies.
    row : int
        Row of a body that moves.
    reach : float
        Distance between the bounding circles of two bodies beyond which neither affects
        the other in this step, m.
    of_early : bool
        True for an early body, near which all earlier bodies are early. False for any
        other: it, or a later body of another share, makes the earlier one early.
    waiting : int
        Number of bodies in `Shares.waiting`.

    Returns
    -------
    int
        Number of bodies in `Shares.waiting` after the call.
    """
    bins, at, start, rows = world.bins, world.bins.at, world.bins.start, world.bins.rows
    frame, shape, rank, owner = bins.frame, bins.shape, shares.rank, shares.owner
    slot = bins.slot[row]
    x, y, radius = at[slot, 0], at[slot, 1], at[slot, 2]
    share = owner[row] if owner[row] >= 0 else -1 - owner[row]
    wide = reach + radius + bins.reach[0]
    i0, i1 = bin_span(x - wide, x + wide, frame[0], frame[2], shape[0])
    j0, j1 = bin_span(y - wide, y + wide, frame[1], frame[2], shape[1])

    for j in range(j0, j1 + 1):
        for k in range(
            start[j * shape[0] + i0], start[j * shape[0] + i1 + 1] if i1 >= i0 else 0
        ):
            dx, dy, apart = at[k, 0] - x, at[k, 1] - y, reach + radius + at[k, 2]
            other = rows[k]
            if dx * dx + dy * dy > apart * apart or other == row:
                continue
            if not of_early:
                theirs = owner[other] if owner[other] >= 0 else -1 - owner[other]
                # This search runs for both bodies of a pair: the body that moves later marks
                # the other one.
                if theirs == share:
                    continue
            if (
                rank[other] < rank[row]
                and owner[other] >= 0
                and moves(world.state, world.bodies, other)
            ):
                owner[other] = -1 - owner[other]
                shares.waiting[waiting] = other
                waiting += 1

    return waiting


@kernel
def find_early(world: World, shares: Shares, lines: int, in_rows: bool) -> int:
    """Mark all bodies that must move before the shares.

    Parameters
    ----------
    world : World
        Arrays of the world before the moves.
    shares : Shares
        Owners and lines. In-place: `owner`; `waiting` is workspace.
    lines : int
        Number of lines.
    in_rows : bool
        Whether lines are rows of bins, otherwise columns.

    Returns
    -------
    int
        Number of early bodies; if it exceeds n / `MAX_EARLY`, the marks are incomplete.
    """
    bins, line = world.bins, shares.line
    state, bodies, rows, start = world.state, world.bodies, bins.rows, bins.start
    nx, ny, most = bins.shape[0], bins.shape[1], shares.rank.shape[0] // MAX_EARLY
    # A body looks for others within `LEEWAY` of its goal, or for obstacles on its path.
    # Both bodies may have moved by then.
    way = bins.reach[1]
    reach = max(LEEWAY, way + CONTACT) + 2.0 * way + MARGIN
    span = int(math.ceil((reach + 2.0 * bins.reach[0]) * bins.frame[2]))
    found = done = 0

    for here in range(lines):
        # Lines far from the border of a share have no neighbours in another one.
        if line[max(here - span, 0)] == line[min(here + span, lines - 1)]:
            continue
        for cell in range(nx if in_rows else ny):
            c = here * nx + cell if in_rows else cell * nx + here
            for k in range(start[c], start[c + 1]):
                if moves(state, bodies, rows[k]):
                    found = mark_early(world, shares, rows[k], reach, False, found)
        if found > most:
            return found

    while done < found and found <= most:
        found = mark_early(world, shares, shares.waiting[done], reach, True, found)
        done += 1

    return found


@kernel
def list_rows(bodies: Bodies, shares: Shares) -> None:
    """List the bodies of each share, and early bodies, in the order of their moves.

    Parameters
    ----------
    bodies : Bodies
        Order of all bodies.
    shares : Shares
        Owners. Output: `rows`, `first`.
    """
    order, owner, rows, first = bodies.order, shares.owner, shares.rows, shares.first
    n, k = order.shape[0], shares.extent.shape[0]
    for s in range(k + 2):
        first[s] = 0
    for i in range(n):
        first[owner[i] + 1 if owner[i] >= 0 else k + 1] += 1
    for s in range(k + 1):
        first[s + 1] += first[s]

    for i in range(n):
        row = order[i]
        s = owner[row] if owner[row] >= 0 else k
        rows[first[s]] = row
        first[s] += 1
    # Each first[s] is now the end of its share: move them up by one.
    for s in range(k + 1, 0, -1):
        first[s] = first[s - 1]
    first[0] = 0


@kernel
def divide(world: World, shares: Shares) -> None:
    """Divide the moves of a step among shares.

    Parameters
    ----------
    world : World
        Arrays of the world after `plan_velocities` and `sort_into_bins`.
    shares : Shares
        Output: all arrays but `rank`, `extent` and `is_invalid`.
    """
    bins, n = world.bins, shares.rank.shape[0]
    # Strips across the longer side have shorter borders.
    in_rows = bool(bins.shape[1] >= bins.shape[0])
    lines = cut_lines(bins, shares, in_rows)
    assign_owners(bins, shares, in_rows)
    if find_early(world, shares, lines, in_rows) > n // MAX_EARLY:
        for i in range(n):
            shares.owner[i] = -1

    list_rows(world.bodies, shares)


@entry_kernel
def advance_share(
    world: World,
    shares: Shares,
    dt: float,
    seed: np.uint64,
    tick: int,
    phase: int,
    share: int,
) -> None:
    """Carry out a phase of a step for one share; together they are a step.

    The phases follow each other. Within a phase, each share has a thread, except in
    `DIVIDES`, which a single thread carries out for all shares.

    Parameters
    ----------
    world : World
        Arrays of a world without trailers, with workspaces of the share. In-place.
    shares : Shares
        Shares of all bodies. In-place.
    dt, seed, tick
        See `botyard.engine.step.advance`.
    phase : int
        `PLANS`: velocities and outlines of a range of rows. `DIVIDES`: bins, owners, and moves
        of early bodies. `MOVES`: moves and collisions of the bodies of the share.
        `INTEGRATES`: odometry of a range of rows.
    share : int
        Number of the share.
    """
    state, bodies, n = world.state, world.bodies, world.state.pose.shape[0]
    count, extent = shares.extent.shape[0], shares.extent
    first, end = n * share // count, n * (share + 1) // count
    if phase == PLANS:
        plan_rows(world, dt, first, end)
        shares.is_invalid[share] = place_outlines(state, bodies, first, end)
        (
            extent[share, 0],
            extent[share, 1],
            extent[share, 2],
            extent[share, 3],
            extent[share, 4],
            extent[share, 5],
        ) = measure_extent(state, bodies, dt, first, end)
    elif phase == DIVIDES:
        for s in range(count):
            # Once is enough, and the flags of later shares do not matter then.
            if shares.is_invalid[s] == 1:
                forget_leeways(bodies)
                break
        sort_into_bins(state, bodies, world.bins, dt, whole_extent(shares))
        divide(world, shares)
    elif phase == INTEGRATES:
        integrate_odometry(
            state,
            bodies.wheels,
            bodies.drift,
            bodies.slips,
            bodies.ground,
            world.grid.zones.shape[0] > 0,
            seed,
            tick,
            first,
            end,
        )

    # One call for early bodies and for shares, so that it is compiled once.
    if DIVIDES <= phase <= MOVES:
        s = count if phase == DIVIDES else share
        move_rows(world, shares.rows, shares.first[s], shares.first[s + 1], dt)


__all__ = ["DIVIDES", "INTEGRATES", "MOVES", "PLANS", "Shares", "advance_share"]
