"""Interface of the history of a simulation (`Simulation.history`).

`botyard.recording.history` implements it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from botyard.api.extensions import extension

S = TypeVar("S")


class Moment(NamedTuple):
    """Moment of a run that the history keeps.

    Attributes
    ----------
    tick : int
        Number of steps done.
    time : float
        Simulated time, s.
    number : int
        Number of the moment among all kept ones. It orders moments even if time was
        set back between them.
    """

    tick: int
    time: float
    number: int


class History(Protocol[S]):
    """Last minutes of a simulation, to show and to continue from.

    The history is off until `keep` is called.
    """

    @property
    def is_on(self) -> bool:
        """Whether the history keeps moments."""
        ...

    @property
    def problem(self) -> str:
        """Reason why the last moment could not be kept; empty if it was kept.

        One reason is a controller whose state cannot be saved.
        """
        ...

    @property
    def size(self) -> int:
        """Size of the kept states without maps, bytes."""
        ...

    @property
    def moments(self) -> Sequence[Moment]:
        """All kept moments, oldest first."""
        ...

    @property
    def span(self) -> tuple[Moment, Moment] | None:
        """The oldest and the latest moment; None if there is none."""
        ...

    def keep(self, minutes: float = ..., megabytes: float = ...) -> None:
        """Keep the last minutes of simulated time from now on.

        The bound that is reached first applies.

        Parameters
        ----------
        minutes : float
            Simulated time to keep, minutes.
        megabytes : float
            Memory for the kept states, megabytes (10⁶ bytes).
        """
        ...

    def stop(self) -> None:
        """Stop keeping moments and drop all of them."""
        ...

    def moment(self, time: float) -> Moment:
        """Return the last moment at or before a simulated time.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        Moment
            The oldest moment if there is none at or before that time.

        Raises
        ------
        StateError
            There is no moment at all.
        """
        ...

    def neighbour_of(self, moment: Moment, by: int) -> Moment:
        """Return the moment that is `by` places after another one.

        Parameters
        ----------
        moment : Moment
            Moment to count from.
        by : int
            Number of places; negative: earlier. The result stays within the oldest and
            the latest moment.

        Raises
        ------
        StateError
            There is no moment.
        """
        ...

    def look(self, time: float, other: S | None = None) -> S:
        """Return a separate simulation that shows the world at an earlier time.

        It shows the last moment at or before that time.

        Parameters
        ----------
        time : float
            Simulated time, s.
        other : Simulation, optional
            Earlier result of this method, which is set to the moment and returned.
            Default: a new simulation, which takes longer.

        Raises
        ------
        StateError
            There is no moment.
        """
        ...

    def forget_after(self, time: float) -> None:
        """Drop the moments after a simulated time, s, from which the run was continued."""
        ...

    def go_on_from(self, time: float) -> Moment:
        """Continue the simulation from the last moment at or before a time.

        Later moments are dropped. See `SavedStates.branch`.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        Moment
            Moment from which the simulation continues.
        """
        ...


@extension("make_history")
def make_history(sim: Any) -> History[Any]:
    """Make the history of a simulation."""
    raise NotImplementedError


__all__ = ["History", "Moment", "make_history"]
