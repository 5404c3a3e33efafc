"""Immutable snapshot of the engine for the rest of the program, made once per step.

Its arrays are read-only views of one of two buffers. The buffer is overwritten two
steps later: copy values to keep them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from botyard.engine.layout import State


class Snapshot(NamedTuple):
    """State of all bodies after a step.

    Attributes
    ----------
    tick : int
        Number of steps done since the start.
    time_us : int
        Simulated time since the start, µs.
    rows : mapping of str to int
        Row of each body by name.
    state : State
        Read-only arrays, see `State`.
    """

    tick: int
    time_us: int
    rows: Mapping[str, int]
    state: State

    def __repr__(self) -> str:
        return (
            f"<Snapshot at {self.time:g} s, tick {self.tick}: {len(self.rows)} bodies>"
        )

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self.time_us / 1e6
