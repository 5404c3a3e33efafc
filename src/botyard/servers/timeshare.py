"""`TimeShare`: fair scheduling of work for untrusted peers.

All workers together have a limited share of time, which addresses use round-robin. A
worker does a small piece of work in its turn, and its cost is charged. When the share
is used up, all workers wait, and other work continues. So whatever a peer requests, and
however often, it delays only itself and peers at its own address.
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
    """A unit of work for a peer."""

    @property
    def source(self) -> str:
        """Address of the peer; workers of one address share its turns."""
        ...

    @property
    def fence(self) -> ErrorBarrier:
        """Error barrier for calls to the worker."""
        ...

    def turn(self) -> bool:
        """Do at most some milliseconds of work; return whether more is left."""
        ...


class TimeShare:
    """Round-robin scheduler that shares time among workers.

    Parameters
    ----------
    share : float
        Share of time of all workers together.
    clock : callable
        Clock that measures the cost of work, s. By default it is the CPU time of this
        thread, so neither other programs nor steps of the world count.
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
        """Queue a worker; it is called now or when its turn comes."""
        if id(worker) in self._waiting:
            return
        self._waiting.add(id(worker))
        self._queues.setdefault(worker.source, deque()).append(worker)
        # A worker may queue another one during its turn; the loop in `_work` handles
        # it.
        if self._timer is None and not self._is_working:
            self._work()

    def forget(self, worker: Worker) -> None:
        """Remove a worker from its queue."""
        if id(worker) in self._waiting:
            self._waiting.discard(id(worker))
            queue = self._queues[worker.source]
            queue.remove(worker)
            if not queue:
                del self._queues[worker.source]

    def spend(self, seconds: float) -> None:
        """Charge the cost of work that was done outside a turn, s."""
        self._room().spend(asyncio.get_running_loop().time(), seconds)

    def clock(self) -> float:
        """Return the time of the clock for `spend`, s."""
        return self._clock()

    async def admit(self, source: str) -> None:
        """Wait for a turn, for work in a coroutine.

        The caller charges it with `spend`.
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
        bucket, started = self._room(), time.thread_time()
        self._is_working = True
        try:
            while self._queues:
                now = loop.time()
                wait, busy = bucket.wait(now), time.thread_time() - started
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
        """Return the first worker of the address whose turn it is.

        The address then moves to the end.
        """
        source, queue = next(iter(self._queues.items()))
        worker = queue.popleft()
        del self._queues[source]
        if queue:
            self._queues[source] = queue
        self._waiting.discard(id(worker))
        return worker


class _Visitor:
    """Worker that only waits for a turn, for `admit`."""

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
