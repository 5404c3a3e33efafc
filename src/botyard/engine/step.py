"""The step as a table of contents: the order of events in a step.

1. Commands (drained by `Engine.step` before it calls `advance`).
2. Velocities: effects of the floor, targets, limits, ramps; steering.
3. Outlines of bodies that commands have moved.
4. Bodies into bins.
5. Moves and collisions, stall; then moves of bodies with mass (by `Dynamics`, if there
   are any).
6. Odometry with its errors.
7. Actors: grippers, batteries, joints, by the time step.
8. Sensors with a reader, also when a paused world settles.

`Engine.step` does 7, 8 and the clock. All robots have moved before any sensor measures
(ENG-003).
"""

from __future__ import annotations

import numpy as np

from botyard.engine.kernels.bins import measure_extent, sort_into_bins
from botyard.engine.kernels.jit import entry_kernel, merged_kernel
from botyard.engine.kernels.moves import move_rows, plan_rows
from botyard.engine.kernels.odometry import integrate_odometry
from botyard.engine.kernels.outlines import forget_leeways, place_outlines
from botyard.engine.kernels.trains import place_trains, plan_trains
from botyard.engine.layout import World

PLACE, MOVE, FOLLOW = 0, 1, 2
"""Parts of `advance` as bits: bins and outlines only; moves and collisions; odometry.
"""


@entry_kernel
def advance(
    world: World, dt: float, seed: np.uint64, tick: int, parts: int, count: int
) -> None:
    """Advance all bodies by steps.

    Writes `state`, `bins` and `bodies.world`; allocates nothing; one thread. One kernel
    does all parts, because compiling another one would take half a second.

    Parameters
    ----------
    world : World
        Arrays of the world. In-place.
    dt : float
        Duration of a step, s.
    seed : uint64
        Seed of the world, for errors of odometry.
    tick : int
        Number of the first step.
    parts : int
        `MOVE` | `FOLLOW`, or one after the other, if bodies with mass move in between.
        With `PLACE`, only bins and outlines are computed from the poses, after bodies
        were added, removed or moved.
    count : int
        Number of steps.
    """
    for k in range(count):
        advance_bodies(world, dt, seed, tick + k, parts)


@merged_kernel
def advance_bodies(
    world: World, dt: float, seed: np.uint64, tick: int, parts: int
) -> None:
    """Advance bodies by one step, for kernels; see `advance`.

    Parameters
    ----------
    world, dt, seed, tick, parts
        See `advance`.
    """
    state, bodies, n = world.state, world.bodies, world.state.pose.shape[0]
    # Without rows there are no trailers.
    has_trains = bodies.train.shape[0] > 0
    if has_trains:
        place_trains(state, bodies)
    if parts & 1:
        plan_rows(world, dt, 0, n)
        if has_trains:
            plan_trains(state, bodies, dt)
    # Distances to near things are invalid after a body was placed, and after the changes
    # of bodies that a call with `PLACE` follows.
    if place_outlines(state, bodies, 0, n) or parts == 0:
        forget_leeways(bodies)
    # `FOLLOW` alone is the second part of a step: −1 keeps the reach (`Bins.reach`) that
    # the first part has computed.
    span = dt if parts & 1 else -1.0 if parts & 2 else 0.0
    sort_into_bins(
        state, bodies, world.bins, span, measure_extent(state, bodies, span, 0, n)
    )
    if parts & 1:
        move_rows(world, bodies.order, 0, n, dt)
    if parts & 2:
        integrate_odometry(
            state,
            bodies.wheels,
            bodies.drift,
            bodies.slips,
            bodies.ground,
            world.grid.zones.shape[0] > 0,
            seed,
            tick,
            0,
            n,
        )
