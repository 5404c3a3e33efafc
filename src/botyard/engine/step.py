"""The step as a table of contents: the order of events in a step.

1. Commands (drained by `Engine.step` before it calls `advance`).
2. Velocities: targets, limits, ramps.
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

from botyard.engine.kernels.bins import fill_bins
from botyard.engine.kernels.collide import move_all
from botyard.engine.kernels.jit import entry_kernel, merged_kernel
from botyard.engine.kernels.motion import plan_velocities
from botyard.engine.kernels.odometry import integrate_odometry
from botyard.engine.kernels.outlines import place_outlines
from botyard.engine.layout import World

PLACE, MOVE, FOLLOW = 0, 1, 2
"""Parts of `advance` as bits: bins and outlines only; moves and collisions; odometry.
"""


@entry_kernel
def advance(
    world: World, dt: float, seed: np.uint64, tick: int, parts: int, count: int
) -> None:
    """Advance all bodies by `count` steps of `dt` s.

    Writes `state`, `bins` and `bodies.world`; allocates nothing; one thread.

    `parts` is `MOVE` | `FOLLOW`, or one after the other, if bodies with mass move in
    between. With `PLACE`, only bins and outlines are computed from the poses, after
    bodies were added, removed or moved. One kernel does all of it, because compiling
    another one would take half a second.
    """
    for k in range(count):
        advance_bodies(world, dt, seed, tick + k, parts)


@merged_kernel
def advance_bodies(
    world: World, dt: float, seed: np.uint64, tick: int, parts: int
) -> None:
    """Advance bodies by one step, for kernels; see `advance`."""
    state, bodies, bins = world.state, world.bodies, world.bins
    if parts & 1:
        plan_velocities(state, bodies, dt)
    place_outlines(state, bodies, parts == 0)
    fill_bins(state, bodies, bins, dt if parts & 1 else -1.0 if parts & 2 else 0.0)
    if parts & 1:
        move_all(world, dt)
    if parts & 2:
        integrate_odometry(state, bodies.wheels, bodies.drift, seed, tick)
