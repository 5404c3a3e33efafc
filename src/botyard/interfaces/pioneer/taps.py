"""Taps, which copy the bytes between Pioneer clients and robots to recorders."""

from __future__ import annotations

from collections.abc import Callable

Taker = Callable[[str, int, int, bool, bytes], None]
"""Type of a function that receives the bytes of all sessions for a recorder.

Its arguments are the name of the robot, number of the session, number of earlier pieces in the
session, whether the bytes come from the client, and the bytes.
"""


class Tap:
    """Tap of one session: it passes the session's bytes to recorders.

    Parameters
    ----------
    robot : str
        Name of the robot.
    number : int
        Number of the session, counted over all robots from 1.
    takers : list of callable
        Recorders, shared by all taps: recorders may be added and removed during the
        session.
    """

    def __init__(self, robot: str, number: int, takers: list[Taker]) -> None:
        self._robot, self._number, self._takers = robot, number, takers
        self.order = 0
        """Number of pieces of data in the session so far: calls of this tap, and
        reports that were sent directly.
        """

    def __call__(self, from_client: bool, data: bytes) -> None:
        """Pass bytes to the recorders; `True` marks bytes from the client."""
        for take in self._takers:
            # Count also without recorders, so that a recording shows whether it started
            # late.
            take(self._robot, self._number, self.order, from_client, data)
        self.order += 1


class PacketTaps:
    """Taps of all sessions, and the recorders that receive the bytes."""

    def __init__(self) -> None:
        self._takers: list[Taker] = []
        self._sessions = 0
        self.before: Callable[[], None] = lambda: None
        """Function that is called before a recorder starts, to bring `Tap.order` up to date."""

    @property
    def is_recording(self) -> bool:
        """Whether at least one recorder receives the bytes."""
        return bool(self._takers)

    def add(self, take: Taker) -> Callable[[], None]:
        """Add a recorder; return a function that removes it.

        Parameters
        ----------
        take : callable
            Function of the type `Taker`. Sessions are numbered over all robots, from 1.

        Returns
        -------
        callable
            Stops the recording; further calls do nothing.
        """
        self.before()
        self._takers.append(take)

        def end() -> None:
            if take in self._takers:
                self._takers.remove(take)

        return end

    def session(self, robot: str) -> Tap:
        """Return the tap for a new session.

        Parameters
        ----------
        robot : str
            Name of the robot.
        """
        self._sessions += 1
        return Tap(robot, self._sessions, self._takers)


__all__ = ["PacketTaps", "Taker", "Tap"]
