"""The step, as a table of contents: this is the order in which things happen, and
nothing else is.

1. commands (drained by `Engine.step` before it calls `advance`)  2. velocities: targets, limits, ramps  3. outlines of bodies that
commands put elsewhere  4. bodies into bins  5. moves and collisions, stall; then those of bodies with mass (by `Dynamics`, if there are
any)  6. odometry with its errors  7. actors: grippers, batteries, joints, by the time step  8. sensors that somebody reads, also when a
paused world settles. 7, 8 and the clock are done by `Engine.step`. All robots have
moved before any sensor looks (ENG-003).
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
"""Parts of `advance`, as bits: bins and outlines only; moves and collisions; odometry.
"""


@entry_kernel
def advance(
    world: World, dt: float, seed: np.uint64, tick: int, parts: int, count: int
) -> None:
    """Advance all bodies by `count` steps of `dt` s. Writes `state`, `bins` and
    `bodies.world`; allocates nothing; one thread.

    `parts` is `MOVE` | `FOLLOW`, or one after the other: between them bodies with mass
    move. With `PLACE`, only bins and outlines are computed from the poses: after bodies
    were added, removed or put elsewhere. One kernel does all of it, because compiling
    another one would take half a second.
    """
    for k in range(count):
        advance_bodies(world, dt, seed, tick + k, parts)


@merged_kernel
def advance_bodies(
    world: World, dt: float, seed: np.uint64, tick: int, parts: int
) -> None:
    """One step of `advance`, for kernels."""
    state, bodies, bins = world.state, world.bodies, world.bins
    if parts & 1:
        plan_velocities(state, bodies, dt)
    place_outlines(state, bodies, parts == 0)
    fill_bins(state, bodies, bins, dt if parts & 1 else -1.0 if parts & 2 else 0.0)
    if parts & 1:
        move_all(world, dt)
    if parts & 2:
        integrate_odometry(state, bodies.wheels, bodies.drift, seed, tick)
