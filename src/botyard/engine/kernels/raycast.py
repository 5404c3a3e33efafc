"""Exact ray casting against the static world's grid and against moving bodies.

Moving bodies are never in the grid. Each body near a sensor is turned into an interval
or a set of beams, and tested against these only.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.beamreadings import finish_bundles
from botyard.engine.kernels.beams import (
    Beams,
    Device,
    Fans,
    aim_beams,
    longest,
    note_reach,
    place_beams,
)
from botyard.engine.kernels.bins import bin_span
from botyard.engine.kernels.bodymeets import bodies_in, has_many_beams, meet_bodies
from botyard.engine.kernels.grid import wall_distance
from botyard.engine.kernels.gridwalk import walk_beams
from botyard.engine.kernels.jit import inline_kernel, kernel, merged_kernel
from botyard.engine.kernels.noise import stream_key
from botyard.engine.kernels.strides import LEAST_BEAMS, walk_together
from botyard.engine.kernels.wallspans import meet_walls_at_once
from botyard.engine.layout import F8, I2, I8, Bins, Bodies, Grid, State
from botyard.numerics.elementary import cosine_sine

FIRST_SHELL = 2.0
"""Distance of bodies that are tested before the walls, m.

Beams that they stop need not be walked any farther.
"""
SHELL_GROWTH = 2.5
"""Growth factor of the squares around a device in which bodies are searched."""


@inline_kernel
def far_now(beams: Beams, count: int, seen: int, far: float) -> float:
    """Return the present range of the longest beam, m.

    Only bodies shorten beams here: while none is seen, the range is `far`.

    Parameters
    ----------
    beams : Beams
        Beams of the device.
    count : int
        Number of the device's beams.
    seen : int
        Not 0 if some body has a class that the device senses.
    far : float
        Greatest range of the device, m.
    """
    return longest(beams.raw, count) if seen else far


@merged_kernel
def meet_walls(
    grid: Grid, fans: Fans, beams: Beams, device: Device, many: bool, reach: float
) -> None:
    """Shorten the beams of a device to the static world.

    Each bundle chooses the faster one of two methods, which give the same ranges: spans
    (`meet_walls_at_once`) and walks through the grid (`walk_beams`).

    Parameters
    ----------
    grid : Grid
        Static world.
    fans, beams : Fans, Beams
        Devices, and the beams of this one. In-place: beams that hit a wall become
        shorter.
    device : Device
        Device that senses.
    many : bool
        Result of `has_many_beams`. Otherwise one walk takes all beams of all bundles.
    reach : float
        Present range of the longest beam, m.
    """
    for b in range(device.first, device.end if many else device.first + 1):
        first, end = (
            fans.beam_first[b] - fans.beam_first[device.first],
            fans.beam_first[b + 1] - fans.beam_first[device.first]
            if many
            else device.n_beams,
        )
        if not many or not meet_walls_at_once(grid, fans, beams, device, b, reach):
            place_beams(fans, beams, device, first, end)
            if grid.plain and end - first >= LEAST_BEAMS:
                walk_together(grid, beams, first, end)
            else:
                walk_beams(grid, beams, first, end, device.mask)


@merged_kernel
def cast_beams(
    grid: Grid,
    bodies: Bodies,
    bins: Bins,
    brights: I2,
    fans: Fans,
    beams: Beams,
    device: Device,
    offset: float,
    far: float,
) -> None:
    """Shorten the beams of a device to the map and to other bodies.

    Bodies are searched in growing squares of bins around the device, each without the
    previous one. Near bodies shorten beams, which then need no test against farther
    ones.

    Parameters
    ----------
    grid : Grid
        Static world.
    bodies, bins : Bodies, Bins
        Outlines of all bodies, and bodies by position.
    brights : (n,) int16
        Laser return of each body.
    fans, beams : Fans, Beams
        Devices, and the beams of this one, as `aim_beams` leaves them. In-place: exact
        ranges, laser returns and incidences.
    device : Device
        Device that senses.
    offset : float
        Greatest distance from the body's origin to the origin of a beam, m.
    far : float
        Greatest range of the device, m.
    """
    x, y, count, many = device.x, device.y, device.n_beams, has_many_beams(device)
    frame, nx, ny = bins.frame, bins.shape[0], bins.shape[1]
    # `met` is the number of bodies in the last square; the device's own body is always
    # in it.
    met, hole = 1, (0, -1, 0, -1)
    open_space = (
        wall_distance(grid.clear, grid.x0, grid.y0, grid.h, grid.nx, grid.ny, x, y)
        - offset
    )
    # A body alone in the world sees no other body.
    seen = (int(bins.seen[0]) & device.mask) * int(bins.rows.shape[0] > 1)
    # With few beams, or without visible bodies, one search covers the whole reach.
    shell = FIRST_SHELL if many and seen else math.inf
    walked = False
    place_beams(fans, beams, device, 0, count * int(seen > 0))
    while True:
        # Test walls after the bodies of the first square: see `FIRST_SHELL`.
        if not walked and shell > FIRST_SHELL:
            walked = True
            far = far_now(beams, count, seen, far)
            # If all beams are shorter than the distance to the nearest wall, no wall
            # can be hit.
            if far > open_space:
                meet_walls(grid, fans, beams, device, many, far)

        # No body has a class that the device senses.
        if not seen:
            return
        reach = offset + longest(beams.raw, count)
        # Bodies extend beyond their bins, and may have moved since they were sorted.
        wide = min(reach, shell) + bins.reach[0] + bins.reach[1]
        i0, i1 = bin_span(x - wide, x + wide, frame[0], frame[2], nx)
        j0, j1 = bin_span(y - wide, y + wide, frame[1], frame[2], ny)
        found = bodies_in(bins, (i0, i1, j0, j1))
        # Test only bodies that were not in the previous square.
        if found > met:
            if many:
                note_reach(fans, beams, device.first, device.end)
            meet_bodies(
                bodies,
                bins,
                brights,
                fans,
                beams,
                device,
                (i0, i1, j0, j1),
                hole,
                reach,
            )
            # The bodies of this square have been tested: the next square leaves them
            # out.
            met, hole = found, (i0, i1, j0, j1)

        # No beam reaches beyond this square.
        if walked and shell >= reach:
            return
        shell *= SHELL_GROWTH


@kernel
def cast_groups(
    grid: Grid,
    bodies: Bodies,
    bins: Bins,
    state: State,
    fans: Fans,
    beams: Beams,
    active: I8,
    seed: np.uint64,
    tick: int,
    ranges: F8,
    bright: I2,
) -> None:
    """Take all readings of the devices listed in `active`, one after the other.

    Several threads may do so at once with different devices and their own workspaces:
    each device has its own places in the output.

    Parameters
    ----------
    grid : Grid
        Static world.
    bodies, bins, state : Bodies, Bins, State
        Outlines of all bodies, bodies by position, and their poses.
    fans : Fans
        All devices of this kind of sensor.
    beams : Beams
        Workspace of this thread.
    active : (k,) int64
        Numbers of the devices in `fans`.
    seed : uint64
        Seed of the world.
    tick : int
        Step of the world; with the seed it determines the errors.
    ranges : (n,) float64
        Output: readings, m, from `Fans.out` of each device on.
    bright : (n,) int16 or (0,)
        Output: laser returns at the same places; without elements none are written.
    """
    for n in range(active.shape[0]):
        g = active[n]
        row, kind, mask = fans.row[g], fans.kind[g], int(fans.mask[g])
        b0, b1 = fans.first[kind], fans.first[kind + 1]
        key = stream_key(seed, state.uid[row], fans.key[g], np.uint64(tick))
        x, y, heading = state.pose[row, 0], state.pose[row, 1], state.pose[row, 2]
        c, s = cosine_sine(heading)
        device = Device(
            row,
            mask,
            x,
            y,
            heading,
            c,
            s,
            b0,
            b1,
            fans.beam_first[b1] - fans.beam_first[b0],
        )
        far = aim_beams(fans, beams, device, key)
        cast_beams(
            grid,
            bodies,
            bins,
            state.bright,
            fans,
            beams,
            device,
            fans.offset[kind],
            far,
        )
        finish_bundles(fans, beams, b0, b1, fans.out[g], key, ranges, bright)


__all__ = ["cast_groups"]
