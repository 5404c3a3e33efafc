"""`SharedStep`: steps of a world of many bodies in several threads."""

from __future__ import annotations

from typing import Final

import numpy as np

from botyard.engine.kernels.shares import (
    DIVIDES,
    INTEGRATES,
    MOVES,
    PLANS,
    Shares,
    advance_share,
)
from botyard.engine.layout import Bodies, Grid, World
from botyard.native.kinds import Pack
from botyard.processes.parallel import Workers

MIN_SHARED_BODIES: Final = 20_000
"""Number of bodies from which a step of several threads is faster."""
SHARES_PER_THREAD: Final = 2
"""Number of shares per thread: more shares than threads balance their load."""
MIN_SHARE: Final = 2000
"""Least number of bodies of a share: each share needs workspaces for all bodies."""


class SharedStep:
    """Steps of one world, whose bodies several threads move.

    Results equal the results of `botyard.engine.step.advance`, for any number of threads.

    Parameters
    ----------
    workers : Workers
        Threads.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._world: Pack[World] | None = None
        self._worlds: list[Pack[World]] = []
        """One pack of the world for each share, with the workspaces of the share."""
        self._shares: Pack[Shares] | None = None

    def suits(self, bodies: Bodies) -> bool:
        """Return whether several threads are faster, and may move these bodies.

        Trailers move together with their robot, wherever they are in the order.
        """
        return len(bodies.order) >= MIN_SHARED_BODIES and not len(bodies.train)

    def advance(
        self, world: Pack[World], dt: float, seed: np.uint64, tick: int, count: int
    ) -> None:
        """Advance all bodies by steps, as `MOVE` | `FOLLOW` of `botyard.engine.step`.

        An interrupt is raised between two steps, never within one.

        Parameters
        ----------
        world : Pack of World
            Arrays of the world. In-place.
        dt : float
            Duration of a step, s.
        seed : uint64
            Seed of the world.
        tick : int
            Number of the first step.
        count : int
            Number of steps.
        """

        def advance() -> None:
            for now in range(tick, tick + count):
                self.advance_within(world, dt, seed, now)

        # Interrupts reach the main thread alone, so another thread runs all phases.
        self._workers.run(advance, [()])

    def advance_within(
        self, world: Pack[World], dt: float, seed: np.uint64, tick: int
    ) -> None:
        """Advance all bodies by a step, from a function that `Workers.run` calls.

        Parameters
        ----------
        world, dt, seed, tick
            See `advance`.
        """
        if world is not self._world:
            self._divide(world)
        for phase in (PLANS, DIVIDES, MOVES, INTEGRATES):
            calls = [
                (one, self._shares, dt, seed, tick, phase, number)
                for number, one in enumerate(self._worlds)
            ]
            self._workers.share(advance_share, calls[:1] if phase == DIVIDES else calls)

    def _divide(self, world: Pack[World]) -> None:
        """Make shares of a world, and their workspaces."""
        bodies, grid = world.value.bodies, world.value.grid
        n = len(bodies.order)
        count = max(1, min(SHARES_PER_THREAD * self._workers.count, n // MIN_SHARE))
        rank = np.empty(n, np.int64)
        rank[bodies.order] = np.arange(n)
        self._shares = Pack(
            Shares(
                rank=rank,
                owner=np.zeros(n, np.int64),
                rows=np.zeros(n, np.int64),
                first=np.zeros(count + 2, np.int64),
                # Bins have at most n + 18 lines.
                line=np.zeros(n + 32, np.int64),
                waiting=np.zeros(n + 32, np.int64),
                extent=np.zeros((count, 6)),
                is_invalid=np.zeros(count, np.int8),
            )
        )
        self._worlds = [
            _with_workspaces(
                world,
                bodies._replace(
                    near=np.zeros_like(bodies.near),
                    scratch=np.zeros_like(bodies.scratch),
                ),
                grid._replace(near=np.zeros_like(grid.near)),
            )
            for _ in range(count)
        ]
        self._world = world


def _with_workspaces(world: Pack[World], bodies: Bodies, grid: Grid) -> Pack[World]:
    """Return the pack of a world with other workspaces in its outlines and walls."""
    # The fields are `Pack` objects (arrays packed for kernels) in place of the tuples
    # that the type declares.
    return Pack(world.source._replace(bodies=Pack(bodies), grid=Pack(grid)))  # type: ignore[arg-type]


__all__ = ["MIN_SHARED_BODIES", "SharedStep"]
