"""`SharedWorld`: steps of one large world of a batch in several threads."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from botyard.devices.fans import workspace
from botyard.devices.ranging import MIN_PARALLEL_BEAMS, PARTS_PER_THREAD
from botyard.engine.batchlayout import TICK, Own
from botyard.engine.batchparts import COMMANDS, CONTACTS, READINGS, take_part
from botyard.engine.kernels.beams import Fans
from botyard.engine.kernels.packed import Chosen, Output, Sensors, cast
from botyard.engine.layout import World
from botyard.engine.sharedstep import SharedStep
from botyard.engine.step import FOLLOW, MOVE, advance
from botyard.native.kinds import Pack
from botyard.processes.parallel import Workers

_WHOLE: Final = MOVE | FOLLOW


class SharedWorld:
    """One world without masses and delays, whose steps several threads share.

    Results equal the results of `botyard.engine.batch.advance_world`.

    Parameters
    ----------
    workers : Workers
        Threads.
    arguments : tuple
        Arguments of `advance_world` for the world.
    """

    def __init__(self, workers: Workers, arguments: tuple[Any, ...]) -> None:
        state, bodies, bins, grid, fans, _, own, late = arguments
        self._workers, self._own = workers, own
        # The fields are `Pack` objects (arrays packed for kernels) in place of the tuples
        # that the type declares.
        self._world: Pack[World] = Pack(
            World(Pack(state), Pack(bodies), Pack(bins), grid)  # type: ignore[arg-type]
        )
        self._fans: Pack[Fans] = Pack(fans)
        self._packs = self._world, self._fans, Pack(own), Pack(late)
        self._moves = SharedStep(workers)
        devices = own.devices
        count = 1
        if has_many_beams := beam_count(fans, own) >= MIN_PARALLEL_BEAMS:
            count = min(PARTS_PER_THREAD * workers.count, len(devices))
        self._chosen = [Pack(Chosen(part)) for part in np.array_split(devices, count)]
        self._sensors: list[Pack[Sensors]] = [
            Pack(Sensors(self._fans, workspace(fans)))  # type: ignore[arg-type]
            for _ in range(count)
        ]
        self._output = Pack(Output(own.raw, own.bright))
        self._shares_moves = self._moves.suits(bodies)
        self.is_large = has_many_beams or self._shares_moves
        """Whether several threads step the world faster."""

    def step(self, count: int) -> None:
        """Advance the world by steps, and take the readings of the last one.

        An interrupt is raised after all of them.

        Parameters
        ----------
        count : int
            Number of steps, at least 1.
        """
        # Interrupts reach the main thread alone, so another thread runs all parts.
        self._workers.run(self._step, [(count,)])

    def _step(self, count: int) -> None:
        own = self._own
        dt, seed = own.step.item(), own.seeds[1]
        for k in range(count):
            if not take_part(*self._packs, COMMANDS, k == 0):
                return
            now = self._world, dt, seed, own.counts.item(TICK)
            if self._shares_moves:
                self._moves.advance_within(*now)
            else:
                advance(*now, _WHOLE, 1)
            take_part(*self._packs, CONTACTS, False)

        tick = own.counts.item(TICK)
        self._workers.share(
            cast,
            [
                (self._world, sensors, chosen, seed, tick, self._output)
                for sensors, chosen in zip(self._sensors, self._chosen, strict=True)
            ],
        )
        take_part(*self._packs, READINGS, False)


def beam_count(fans: Fans, own: Own) -> int:
    """Return the number of beams of a world.

    Parameters
    ----------
    fans : Fans
        Range sensors of the world.
    own : Own
        Data of the world.
    """
    kinds = fans.kind[own.devices]
    first, last = (
        fans.beam_first[fans.first[kinds]],
        fans.beam_first[fans.first[kinds + 1]],
    )
    return int((last - first).sum())


__all__ = ["SharedWorld", "beam_count"]
