"""Taps of the bytes between Pioneer clients and robots, for recorders."""

from __future__ import annotations

from collections.abc import Callable

Taker = Callable[[str, int, int, bool, bytes], None]
"""Callback of a recorder of all sessions.

Arguments: name of the robot, number of the session, number of earlier pieces in the
session, whether the bytes come from the client, and the bytes.
"""


class Tap:
    """Tap of one session."""

    def __init__(self, robot: str, number: int, takers: list[Taker]) -> None:
        self._robot, self._number, self._takers = robot, number, takers
        self.order = 0
        """Number of pieces so far."""

    def __call__(self, from_client: bool, data: bytes) -> None:
        """Record bytes, and whether they come from the client."""
        for take in self._takers:
            # Counted without recorders as well, so that the number shows a recording
            # that started late.
            take(self._robot, self._number, self.order, from_client, data)
        self.order += 1


class PacketTaps:
    """Passes the bytes of all sessions to recorders."""

    def __init__(self) -> None:
        self._takers: list[Taker] = []
        self._sessions = 0
        self.before: Callable[[], None] = lambda: None
        """Called before a recorder starts, to count pieces in `Tap.order`."""

    @property
    def is_recording(self) -> bool:
        """Whether there is a recorder."""
        return bool(self._takers)

    def add(self, take: Taker) -> Callable[[], None]:
        """Start to record; return a function that stops it.

        Sessions are numbered over all robots, from 1.
        """
        self.before()
        self._takers.append(take)

        def end() -> None:
            if take in self._takers:
                self._takers.remove(take)

        return end

    def session(self, robot: str) -> Tap:
        """Return the tap of the next session."""
        self._sessions += 1
        return Tap(robot, self._sessions, self._takers)


__all__ = ["PacketTaps", "Taker", "Tap"]
