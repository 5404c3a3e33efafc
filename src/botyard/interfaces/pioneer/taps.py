"""Taps of the bytes between Pioneer clients and robots, for recorders."""

from __future__ import annotations

from collections.abc import Callable

Tap = Callable[[bool, bytes], None]
"""Callback of one session: whether the bytes come from the client, and the bytes."""
Taker = Callable[[str, int, int, bool, bytes], None]
"""Callback of a recorder of all sessions.

Arguments: name of the robot, number of the session, number of earlier pieces in the
session, whether the bytes come from the client, and the bytes.
"""


class PacketTaps:
    """Passes the bytes of all sessions to recorders."""

    def __init__(self) -> None:
        self._takers: list[Taker] = []
        self._sessions = 0

    def add(self, take: Taker) -> Callable[[], None]:
        """Start to record; return a function that stops it.

        Sessions are numbered over all robots, from 1.
        """
        self._takers.append(take)

        def end() -> None:
            if take in self._takers:
                self._takers.remove(take)

        return end

    def session(self, robot: str) -> Tap:
        """Return the tap of the next session."""
        self._sessions += 1
        number, takers, order = self._sessions, self._takers, 0

        def tap(from_client: bool, data: bytes) -> None:
            nonlocal order
            for take in takers:
                # Counted without recorders as well, so that the number shows a
                # recording that started late.
                take(robot, number, order, from_client, data)
            order += 1

        return tap


__all__ = ["PacketTaps", "Taker", "Tap"]
