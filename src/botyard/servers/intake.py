"""What clients send, and how fast it is worked off: one that floods commands waits for itself, and nobody waits for it.

Each client has a rate at which its bytes are worked off as they come, and all have another one together for those who need more, as one
that steps the world does. Beyond that a client's bytes wait, nothing more is read from it (so that TCP holds it up), and all clients that
wait take turns, in a part of the time that the steps and the other clients do not miss.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from botyard.protocols.tokenbucket import TokenBucket

RATE: Final = 4096.0
"""Bytes a second of each client that are worked off as they come; a robot's serial line carries 960 to 11520."""
BURST: Final = 4096.0
"""Bytes that may come at once."""
SHARED_RATE: Final = 262_144.0
"""The same of all clients together, beside that …"""
SHARED_BURST: Final = 65_536.0
"""… and at once."""
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
        self._own = TokenBucket(RATE, BURST, asyncio.get_running_loop().time())

    def take(self, data: bytes) -> None:
        """Bytes have come."""
        if self._waiting:
            self._waiting += data
        elif self._own.take(asyncio.get_running_loop().time(), len(data)) or self._intake.has_room(len(data)):
            self._work(data)
        else:
            self._pause()
            self._intake.wait(self)
            self._waiting = data

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
        self._shared: TokenBucket | None = None
        self._task: asyncio.Task[None] | None = None

    def has_room(self, amount: int) -> bool:
        """Whether what all have together is enough for so many bytes more; then they are taken from it."""
        now = asyncio.get_running_loop().time()
        if self._shared is None:
            self._shared = TokenBucket(SHARED_RATE, SHARED_BURST, now)
        return self._shared.take(now, amount)

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


__all__ = ["BURST", "RATE", "SHARE", "SHARED_BURST", "SHARED_RATE", "SLICE", "Inlet", "Intake"]
