"""Parts of a step of one world of a batch, between which several threads work."""

from __future__ import annotations

from botyard.engine.batch import is_stopped, note_contacts, publish
from botyard.engine.batchchecks import fault_of
from botyard.engine.batchlayout import TICK, Own
from botyard.engine.batchstarts import begin_steps
from botyard.engine.kernels.beams import Fans
from botyard.engine.kernels.jit import entry_kernel
from botyard.engine.kernels.latency import Lateness, take_commands
from botyard.engine.layout import World

COMMANDS, CONTACTS, READINGS = range(3)
"""Parts of a step, see `take_part`."""


@entry_kernel
def take_part(
    world: World, fans: Fans, own: Own, late: Lateness, part: int, is_first: bool
) -> bool:
    """Carry out a part of a step as `botyard.engine.batch.advance_world` does.

    Parameters
    ----------
    world : World
        Arrays of one world without masses and late readings. In-place.
    fans : Fans
        Range sensors of the world.
    own : Own
        Data of the world. In-place.
    late : Lateness
        Delays of commands and sensors of the world.
    part : int
        `COMMANDS`, before bodies move; `CONTACTS`, after their moves; `READINGS`, after all
        steps and measurements.
    is_first : bool
        Whether the step is the first one of a call.

    Returns
    -------
    bool
        False if the world has a `Fault`: its step must not continue.
    """
    dt = own.step[0]
    if part == COMMANDS:
        if is_first:
            fault = fault_of(world.state, world.bodies.wheels, fans, late, dt, False)
            if is_stopped(own, fault):
                return False
            begin_steps(world.bodies, own, False)
        take_commands(world.state, late, is_first, own.seeds[1], own.counts[TICK], dt)
    elif part == CONTACTS:
        own.counts[TICK] += 1
        note_contacts(world.state, world.bins, own)
    else:
        publish(own)

    return True
