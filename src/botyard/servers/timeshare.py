"""`TimeShare`: fair scheduling of work for unknown peers: a limited share of time for
all together, round robin over their addresses.

A worker does a little in its turn. What that took is booked; when all of them have had
their share, they wait, and everybody else is served. So it does not matter what a peer
asks for, or how often: it can only make itself wait, and those at its own address.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from botyard.control.error_barrier import ErrorBarrier
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.workclock import worked

TURN_TIME_S: Final = 0.002
"""Longest processing in one iteration of the event loop, s."""
BURST_S: Final = 0.05
"""Token bucket of processing time: burst, s."""


class Worker(Protocol):
    """Somebody's work."""

    @property
    def source(self) -> str:
        """Its address: workers of one address share a part."""
        ...

    @property
    def fence(self) -> ErrorBarrier:
        """Through which it is called."""
        ...

    def turn(self) -> bool:
        """Do a little, some milliseconds at most; whether there is more to do now."""
        ...


class TimeShare:
    """Shares time among workers.

    Parameters
    ----------
    share : float
        Part of the time that all of them get together.
    clock : callable
        What work costs is measured by, s: the time that this thread has computed, so
        that others on the machine do not count, nor do steps of the world.
    """

    def __init__(self, share: float, clock: Callable[[], float] = worked) -> None:
        self._share = share
        self._clock = clock
        self._bucket: TokenBucket | None = None
        self._queues: dict[str, deque[Worker]] = {}
        self._timer: asyncio.Handle | None = None
        self._waiting: set[int] = set()
        self._is_working = False

    def wants(self, worker: Worker) -> None:
        """A worker has something to do; it is called now, or when its turn comes."""
        if id(worker) in self._waiting:
            return
        self._waiting.add(id(worker))
        self._queues.setdefault(worker.source, deque()).append(worker)
        if self._timer is None and not self._is_working:
            self._work()

    def forget(self, worker: Worker) -> None:
        """It has nothing to do any more."""
        if id(worker) in self._waiting:
            self._waiting.discard(id(worker))
            queue = self._queues[worker.source]
            queue.remove(worker)
            if not queue:
                del self._queues[worker.source]

    def spend(self, seconds: float) -> None:
        """Work that was done elsewhere for one of them took so long, s."""
        self._room().spend(asyncio.get_running_loop().time(), seconds)

    def clock(self) -> float:
        """What `spend` is measured by."""
        return self._clock()

    async def admit(self, source: str) -> None:
        """Wait for a turn: for work that is a coroutine, which books what it took by
        `spend`.
        """
        visitor = _Visitor(source)
        try:
            self.wants(visitor)
            await visitor.came
        finally:
            self.forget(visitor)

    def _room(self) -> TokenBucket:
        if self._bucket is None:
            self._bucket = TokenBucket(
                self._share, BURST_S, asyncio.get_running_loop().time()
            )

        return self._bucket

    def _work(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        bucket, begin = self._room(), time.thread_time()
        self._is_working = True
        try:
            while self._queues:
                now = loop.time()
                wait, busy = bucket.wait(now), time.thread_time() - begin
                if wait > 0.0 or busy > TURN_TIME_S:
                    self._timer = (
                        loop.call_later(wait, self._work)
                        if wait > 0.0
                        else loop.call_soon(self._work)
                    )
                    return

                worker = self._next()
                start = self._clock()
                more = worker.fence.call(worker.turn, otherwise=False)
                bucket.spend(now, self._clock() - start)
                if more:
                    self.wants(worker)
        finally:
            self._is_working = False

    def _next(self) -> Worker:
        """The first worker of the address whose turn it is; that address is the last
        one then.
        """
        source, queue = next(iter(self._queues.items()))
        worker = queue.popleft()
        del self._queues[source]
        if queue:
            self._queues[source] = queue
        self._waiting.discard(id(worker))
        return worker


class _Visitor:
    """Waits for a turn."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.fence = _FENCE

    def turn(self) -> bool:
        if not self.came.done():
            self.came.set_result(None)
        return False


_FENCE: Final = ErrorBarrier(logging.getLogger("botyard"), "a turn")

__all__ = ["BURST_S", "TURN_TIME_S", "TimeShare", "Worker"]
