"""Log of the episodes of many worlds, from which each can be repeated alone.

The log holds states at their starts, commands, and written parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import F8, I8, U1, U8
from botyard.engine.snapshot import Snapshot
from botyard.engine.velocities import SetVelocities
from botyard.errors import NotNowError
from botyard.sim.simulation import Simulation

KEPT: Final = 2
"""Number of kept episodes of each world: the present one, and the one before it."""
# Room for short episodes; the arrays double when a longer one needs more.
FIRST_CALLS: Final = 64
"""Initial capacity of the log, calls of `Worlds.step`."""


@dataclass(frozen=True, slots=True)
class Written:
    """Parameter of a world that was written in an episode.

    Attributes
    ----------
    call : int
        Number of the call of `Worlds.step` in the episode that follows the write.
    name : str
        See `Worlds.param`.
    values : array
        Values of the parameter in this world.
    """

    call: int
    name: str
    values: NDArray[Any]


@dataclass(slots=True)
class Kept:
    """Kept episode.

    Attributes
    ----------
    number : int
        Number of the episode.
    state : (S,) uint8
        State of the world at the start of the episode.
    commands : (c, m, 3) float64
        Commands of the robots in each call of `Worlds.step`.
    steps : (c,) int64
        Number of steps of each call.
    written : list of Written
        Parameters that were written.
    """

    number: int
    state: U1
    commands: F8
    steps: I8
    written: list[Written]


class EpisodeLog:
    """Log of the episodes of a batch of worlds.

    Parameters
    ----------
    state : (n, S) uint8
        States of the worlds, live.
    pose, command : (n, m, 3) float64
        Poses and commands, live.
    seeds : (n,) uint64
        Seeds of the present episodes, live.
    episode, tick : (n,) int64
        Numbers of episodes, and steps in them, live.
    params : mapping
        Live arrays of parameters, (n, …), by name.
    """

    def __init__(
        self,
        state: U1,
        pose: F8,
        command: F8,
        seeds: U8,
        episode: I8,
        tick: I8,
        params: Mapping[str, NDArray[Any]],
    ) -> None:
        n, m = pose.shape[:2]
        self._state, self._pose, self._command, self._seeds = (
            state,
            pose,
            command,
            seeds,
        )
        self._episode, self._tick = episode, tick
        self._params = params
        self._slot: I8 = np.zeros(n, np.int64)
        self._calls: I8 = np.zeros((KEPT, n), np.int64)
        # −1 is never the number of an episode.
        self._numbers: I8 = np.full((KEPT, n), -1)
        self._whole = np.zeros((KEPT, n), np.bool_)
        self._first: U1 = np.zeros((KEPT, *state.shape), np.uint8)
        self._commands: F8 = np.zeros((KEPT, FIRST_CALLS, n, m, 3))
        self._steps: I8 = np.zeros((KEPT, FIRST_CALLS, n), np.int64)
        self._written: list[list[list[Written]]] = [
            [[] for _ in range(n)] for _ in range(KEPT)
        ]
        self._last_pose, self._last_tick, self._last_seeds = (
            pose.copy(),
            tick.copy(),
            seeds.copy(),
        )
        # Pairs of the known and the live array, so that one loop copies all.
        self._watched = (
            (self._last_pose, pose),
            (self._last_tick, tick),
            (self._last_seeds, seeds),
        )
        self._last = {name: array.copy() for name, array in params.items()}
        # The log lacks the first calls of an episode in progress: such a world is kept from
        # its next episode on.
        self._open(np.flatnonzero(tick == 0))

    def begin(self, chosen: I8) -> None:
        """Record the start of episodes in these worlds.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds. Their states must be the states after the start.
        """
        # Reuse the slot of the oldest kept episode.
        self._slot[chosen] = (self._slot[chosen] + 1) % KEPT
        self._open(chosen)

    def _open(self, chosen: I8) -> None:
        slot = self._slot[chosen]
        self._calls[slot, chosen] = 0
        self._numbers[slot, chosen] = self._episode[chosen]
        self._whole[slot, chosen] = True
        # The state of an episode is stored after its start, with the first readings.
        self._first[slot, chosen] = self._state[chosen]
        for at, world in zip(slot.tolist(), chosen.tolist(), strict=True):
            if self._written[at][world]:
                self._written[at][world] = []

        self.after(chosen)
        for name, array in self._params.items():
            self._last[name][chosen] = array[chosen]

    def before(self, chosen: I8 | None, steps: int) -> None:
        """Record a call of `step` before it is made.

        Parameters
        ----------
        chosen : (k,) int64 or None
            Numbers of the worlds; None: all worlds.
        steps : int
            Number of steps of the call.
        """
        rows = np.arange(len(self._pose)) if chosen is None else chosen
        if not len(rows):
            return
        # Mark them before the call, because `after` makes the present state the known
        # one.
        self._mark_written(rows)
        slot = self._slot[rows]
        calls = self._calls[slot, rows]

        if calls.max(initial=0) >= self._steps.shape[1]:
            # Doubling the capacity keeps the cost of a call constant on average.
            self._commands = np.concatenate(
                [self._commands, np.zeros_like(self._commands)], axis=1
            )
            self._steps = np.concatenate(
                [self._steps, np.zeros_like(self._steps)], axis=1
            )

        self._commands[slot, calls, rows] = self._command[rows]
        self._steps[slot, calls, rows] = steps
        for name, array in self._params.items():
            last = self._last[name]
            # Parameters are live arrays: a comparison is the only way to notice writes.
            changed = rows[
                (array[rows] != last[rows]).reshape(len(rows), -1).any(axis=1)
            ]
            for world in changed.tolist():
                at = int(self._slot[world])
                self._written[at][world].append(
                    Written(int(self._calls[at, world]), name, array[world].copy())
                )

            last[changed] = array[changed]

        self._calls[slot, rows] += 1

    def take_back(self, rows: I8) -> None:
        """Remove the last call from the episodes of the worlds that it did not advance.

        Parameters
        ----------
        rows : (k,) int64
            Numbers of the worlds.
        """
        # The stored call stays in the array, and the next one overwrites it.
        self._calls[self._slot[rows], rows] -= 1

    def lose(self, rows: I8) -> None:
        """Mark the present episodes of these worlds as not repeatable.

        Parameters
        ----------
        rows : (k,) int64
            Numbers of the worlds.
        """
        self._whole[self._slot[rows], rows] = False

    def _mark_written(self, rows: I8) -> None:
        """Mark an episode as not repeatable if the caller has written the state of its world."""
        written = (self._pose[rows] != self._last_pose[rows]).any(axis=(1, 2))
        written |= (self._tick[rows] != self._last_tick[rows]) | (
            self._seeds[rows] != self._last_seeds[rows]
        )
        self.lose(rows[written])

    def after(self, chosen: I8 | None) -> None:
        """Record the state of worlds after a call, to notice later writes to it.

        Parameters
        ----------
        chosen : (k,) int64 or None
            Numbers of the worlds; None: all worlds.
        """
        for last, now in self._watched:
            if chosen is None:
                last[:] = now
            else:
                last[chosen] = now[chosen]

    def get(self, world: int, number: int | None) -> Kept:
        """Return a kept episode of a world.

        Parameters
        ----------
        world : int
            Number of the world.
        number : int or None
            Number of the episode; None: the present one.

        Returns
        -------
        Kept
            Copy of the record.

        Raises
        ------
        NotNowError
            The episode is not kept.
        """
        self._mark_written(np.array([world]))
        wanted = int(self._episode[world]) if number is None else number
        present = int(self._slot[world])
        # After new seeds, two kept episodes may have the same number: the present one
        # counts. Without a number only the present one counts.
        for slot in [
            (present - age) % KEPT for age in range(1 if number is None else KEPT)
        ]:
            if self._numbers[slot, world] == wanted and self._whole[slot, world]:
                calls = int(self._calls[slot, world])
                return Kept(
                    wanted,
                    self._first[slot, world].copy(),
                    # Copy the arrays, because the log continues to write to its slots.
                    self._commands[slot, :calls, world].copy(),
                    self._steps[slot, :calls, world].copy(),
                    list(self._written[slot][world]),
                )

        raise NotNowError(
            f"world {world}: expected one of its last {KEPT} episodes, logged from the "
            "start, without a fault at the start, an interrupt, or writes to poses, tick "
            f"or seeds; found episode {wanted}"
        )


@dataclass(slots=True)
class Episode:
    """Episode of one of many worlds, to be repeated alone.

    `run` repeats it once; `record` repeats it for ``botyard replay``.

    Attributes
    ----------
    simulation : Simulation
        World at the start of the episode; later at the point that `run` has reached.
    number : int
        Number of the episode.
    commands : (c, m, 3) float64
        Commands of each call of `Worlds.step`: m/s, m/s, rad/s.
    steps : (c,) int64
        Number of steps of each call.
    """

    simulation: Simulation
    number: int
    commands: F8
    steps: I8
    _written: Sequence[Written]
    _write: Callable[[Simulation, Mapping[str, NDArray[Any]]], None] = field(repr=False)
    _done: int = 0

    def __iter__(self) -> Iterator[Snapshot]:
        """Repeat the rest of the episode, and yield the state after each step."""
        sim = self.simulation
        while self._done < len(self.steps):
            call, self._done = self._done, self._done + 1
            written = {
                one.name: one.values for one in self._written if one.call == call
            }
            if written:
                # Parameters change before the call of `step`, as in the batch.
                self._write(sim, written)
            # A call without steps only measures again, and ignores commands.
            if not self.steps[call]:
                sim.settle()
                continue

            v, vy, w = self.commands[call].T
            # Commands are stored as x, y, rotation, like the axes of the state.
            sim.core.accept_velocities(SetVelocities(sim.fleet.robot_rows, v, w, vy))
            # A command holds for all steps of its call, like the array of a batch.
            for _ in range(int(self.steps[call])):
                yield sim.step()

    def run(self) -> Simulation:
        """Repeat the rest of the episode.

        Returns
        -------
        Simulation
            `simulation`, in the state in which the world ended.
        """
        for _ in self:
            pass
        return self.simulation

    def record(self, path: str | Path, **choices: Any) -> Path:
        """Repeat the rest of the episode, and record it.

        ``botyard replay FILE`` shows it on the page.

        Parameters
        ----------
        path : str or Path
            File to write, as for `Simulation.record`.
        **choices
            Other arguments of `Simulation.record`.

        Returns
        -------
        Path
            The written file.
        """
        with self.simulation.record(path, **choices):
            self.run()
        return Path(path)


__all__ = ["Episode", "EpisodeLog", "Kept"]
