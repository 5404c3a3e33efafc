"""Bytes that pass between Pioneer clients and robots, for those who record them."""

from __future__ import annotations

from collections.abc import Callable

Tap = Callable[[bool, bytes], None]
"""Takes bytes that pass in a session: whether they are from the client, and what."""
Taker = Callable[[str, int, int, bool, bytes], None]
"""Records bytes: name of the robot, number of the session, how many pieces of it have
passed before, whether they are from the client, and what.
"""


class PacketTaps:
    """Hands on what passes in all sessions."""

    def __init__(self) -> None:
        self._takers: list[Taker] = []
        self._sessions = 0

    def add(self, take: Taker) -> Callable[[], None]:
        """Record from now on; the returned function ends that. Sessions are numbered
        over all robots, from 1.
        """
        self._takers.append(take)

        def end() -> None:
            if take in self._takers:
                self._takers.remove(take)

        return end

    def session(self, robot: str) -> Tap:
        """A tap for the next session."""
        self._sessions += 1
        number, takers, order = self._sessions, self._takers, 0

        def tap(from_client: bool, data: bytes) -> None:
            nonlocal order
            for take in takers:
                take(robot, number, order, from_client, data)
            order += 1

        return tap


__all__ = ["PacketTaps", "Taker", "Tap"]
