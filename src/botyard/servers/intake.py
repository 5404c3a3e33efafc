"""What clients send, and how fast it is worked off: one that floods commands waits for itself, and nobody waits for it.

Up to a rate that no client needs, bytes are worked off as they come. Beyond it the client's bytes wait, nothing more is read from it (so
that TCP holds it up), and all clients that wait take turns, in a part of the time that the steps and the other clients do not miss.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

RATE: Final = 4096.0
"""Bytes a second that are worked off as they come; a robot's serial line carries 960 to 11520."""
BURST: Final = 16384.0
"""Bytes that may come at once."""
SLICE: Final = 1024
"""Bytes that a client has worked off in its turn."""
SHARE: Final = 0.2
"""Part of the time that those who wait get together."""


class Inlet:
    """Bytes of one client.

    Parameters
    ----------
    intake : Intake
        Where clients take turns.
    work : callable
        Works bytes off.
    pause, resume : callable
        Read no more from the client, and go on.
    """

    def __init__(
        self, intake: Intake, work: Callable[[bytes], None], pause: Callable[[], None], resume: Callable[[], None]
    ) -> None:
        self._intake = intake
        self._work = work
        self._pause, self._resume = pause, resume
        self._waiting = b""
        self._tokens = BURST
        self._since = asyncio.get_running_loop().time()

    def take(self, data: bytes) -> None:
        """Bytes have come."""
        now = asyncio.get_running_loop().time()
        self._tokens = min(BURST, self._tokens + RATE * (now - self._since))
        self._since = now
        if self._waiting or len(data) > self._tokens:
            if not self._waiting:
                self._pause()
                self._intake.wait(self)
            self._waiting += data
            return
        self._tokens -= len(data)
        self._work(data)

    def turn(self) -> bool:
        """Work some bytes off; whether more wait."""
        data, self._waiting = self._waiting[:SLICE], self._waiting[SLICE:]
        if data:
            self._work(data)
        if self._waiting:
            return True
        self._resume()
        return False

    def close(self) -> None:
        """The client is gone."""
        self._waiting = b""
        self._intake.leave(self)


class Intake:
    """Where clients that send too much take turns."""

    def __init__(self) -> None:
        self._inlets: deque[Inlet] = deque()
        self._task: asyncio.Task[None] | None = None

    def wait(self, inlet: Inlet) -> None:
        """A client begins to wait."""
        self._inlets.append(inlet)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def leave(self, inlet: Inlet) -> None:
        """It waits no more."""
        if inlet in self._inlets:
            self._inlets.remove(inlet)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._inlets:
            inlet = self._inlets.popleft()
            begin = loop.time()
            if inlet.turn():
                self._inlets.append(inlet)
            await asyncio.sleep((loop.time() - begin) * (1.0 - SHARE) / SHARE)
        self._task = None


__all__ = ["BURST", "RATE", "SHARE", "SLICE", "Inlet", "Intake"]
