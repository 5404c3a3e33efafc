"""What the history of a simulation offers (`Simulation.history`), declared:
`botyard.recording.history` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from botyard.api.extensions import extension

S = TypeVar("S")


class Moment(NamedTuple):
    """A moment of a run: steps done, simulated time, s, and its number among all that
    were kept: time may have gone back in between.
    """

    tick: int
    time: float
    number: int


class History(Protocol[S]):
    """The last minutes of a simulation, to look back at and to go on from; off until
    `keep` is called.
    """

    @property
    def is_on(self) -> bool:
        """Whether moments are kept."""
        ...

    @property
    def problem(self) -> str:
        """Why the last moment could not be kept, for example a controller that cannot
        be saved; empty if it was.
        """
        ...

    @property
    def size(self) -> int:
        """Bytes of the states that are kept, without maps."""
        ...

    @property
    def moments(self) -> Sequence[Moment]:
        """All moments that are kept, oldest first."""
        ...

    @property
    def span(self) -> tuple[Moment, Moment] | None:
        """The oldest and the latest moment; None: there is none."""
        ...

    def keep(self, minutes: float = ..., megabytes: float = ...) -> None:
        """Keep the last `minutes` of simulated time from now on, in at most `megabytes`
        of memory (10⁶ bytes): what comes first counts.
        """
        ...

    def stop(self) -> None:
        """Keep nothing any more, and forget all moments."""
        ...

    def moment(self, time: float) -> Moment:
        """The last moment at a simulated time, s, or before it; the oldest one if there
        is none before. StateError: nothing is kept.
        """
        ...

    def beside(self, moment: Moment, by: int) -> Moment:
        """The moment so many after another one, or before it; the oldest or latest one
        beyond the ends. StateError: there is none.
        """
        ...

    def look(self, time: float, other: S | None = None) -> S:
        """The world as it was at the last moment at a time, s, or before it: a
        simulation beside this one, to look around in.

        `other` is what this method has returned before, and is made to be that moment.
        StateError: nothing is kept.
        """
        ...

    def forget_after(self, time: float) -> None:
        """Forget the moments after a simulated time, s: the run has not gone on so."""
        ...

    def go_on_from(self, time: float) -> Moment:
        """Let the simulation go on from the last moment at a time, s, or before it;
        later ones are forgotten. See `Simulation.branch`.
        """
        ...


@extension("make_history")
def make_history(sim: Any) -> History[Any]:
    """Make the history of a simulation."""
    raise NotImplementedError


__all__ = ["History", "Moment", "make_history"]
