"""`TimeShare`: fair scheduling of work for untrusted peers.

All workers together have a limited share of CPU time, which addresses use round-robin.
A worker does a small piece of work in its turn, and its cost is charged. When the share
is used up, all workers wait, and other work continues. So the requests of a peer, of
any kind and at any rate, delay only this peer and peers at its address.

A worker may have a budget of its own. While it lasts, the worker does not wait for
others. So a client that sends little is served at once, even if others flood.

Hundreds of peers within their budgets may send at the same time. A budget for one
iteration of the event loop bounds their work as well. The rest runs in the next
iteration, after the steps and reports that are due.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from botyard.control.error_barrier import ErrorBarrier
from botyard.control.fairqueue import FairQueue
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.workclock import worked

TURN_TIME_S: Final = 0.002
"""Longest processing in one iteration of the event loop, s."""
BURST_S: Final = 0.05
"""Token bucket of processing time: burst, s."""
MIN_PAUSE_S: Final = 0.005
"""Shortest pause when the share is used up, s.

With a shorter one, the event loop would wake up for each piece of work.
"""


class Worker(Protocol):
    """A unit of work for a peer."""

    @property
    def source(self) -> str:
        """Address of the peer; workers of one address share its turns."""
        ...

    @property
    def barrier(self) -> ErrorBarrier:
        """Error barrier for calls to the worker."""
        ...

    @property
    def own_time(self) -> TokenBucket | None:
        """Budget of the worker alone for its present work, s.

        If the budget is None or used up, the work counts towards the common share.
        """
        ...

    def turn(self) -> bool:
        """Do at most some milliseconds of work; return whether more work remains."""
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
    longest : float
        Longest processing in one iteration of the event loop, s. The share has at most
        `TURN_TIME_S` of it.
    """

    def __init__(
        self,
        share: float,
        clock: Callable[[], float] = worked,
        longest: float = TURN_TIME_S,
    ) -> None:
        self._clock = clock
        self._longest = longest
        self._bucket = TokenBucket(share, BURST_S)
        self._prompt: deque[Worker] = deque()
        self._throttled: FairQueue[Worker] = FairQueue()
        self._waiting: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._spent = self._shared = 0.0
        """CPU time of all work, and of work within the share, in this loop iteration, s."""
        self._is_working = self._is_iteration = False

    def wants(self, worker: Worker) -> None:
        """Queue a worker; it is called now or when its turn comes.

        Parameters
        ----------
        worker : Worker
            Worker with work to do. A worker that is queued already keeps its place.
        """
        if id(worker) in self._waiting:
            return
        self._waiting.add(id(worker))
        own = worker.own_time
        if own is None or own.wait(asyncio.get_running_loop().time()):
            self._throttled.add(worker.source, worker)
        else:
            self._prompt.append(worker)

        # A worker may queue another worker during its turn; the loop in `_work` handles
        # it.
        if not self._is_working:
            self._work()

    def soon(self, act: Callable[[], object]) -> None:
        """Call a function now, or in a later iteration if this one's budget is used up.

        Use it for events that hundreds of peers may cause at the same time, such as the
        end of a session.

        Parameters
        ----------
        act : callable
            Function without arguments; its cost is not charged to any peer.
        """
        self.wants(_Errand("", act, _FREE))

    def forget(self, worker: Worker) -> None:
        """Remove a worker from its queue.

        Parameters
        ----------
        worker : Worker
            Worker; one that is not queued is ignored.
        """
        if id(worker) in self._waiting:
            self._waiting.discard(id(worker))
            if worker in self._prompt:
                # Linear time, but the queue is short: prompt workers are served within
                # an iteration.
                self._prompt.remove(worker)
            else:
                self._throttled.remove(worker.source, worker)

    def spend(self, seconds: float) -> None:
        """Charge the cost of work that was done outside a turn, s.

        Parameters
        ----------
        seconds : float
            Cost, s. It may exceed the share: workers then wait until the debt is paid
            off.
        """
        self._bucket.spend(asyncio.get_running_loop().time(), seconds)

    def clock(self) -> float:
        """Return the time of the clock for `spend`, s."""
        return self._clock()

    @property
    def is_idle(self) -> bool:
        """Whether no worker waits for a turn."""
        return not self._waiting

    async def admit(self, source: str) -> None:
        """Wait for a turn, for work in a coroutine.

        The caller then charges the cost of the work with `spend`.

        Parameters
        ----------
        source : str
            Source of the peer; sources take turns.
        """
        came: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def come() -> None:
            # The coroutine may have been cancelled before its turn.
            if not came.done():
                came.set_result(None)

        visitor = _Errand(source, come, None)
        try:
            self.wants(visitor)
            await came
        finally:
            # Leave the queue also after a cancellation, so that no turn is spent on a
            # coroutine that has ended.
            self.forget(visitor)

    def _work(self) -> None:
        now = asyncio.get_running_loop().time
        self._is_working = True
        try:
            # Serve the two queues alternately, so that neither blocks the other.
            while self._spent <= self._longest:
                if self._prompt:
                    worker = self._prompt.popleft()
                    self._serve(worker, worker.own_time or self._bucket)

                # Test the queue first: usually no worker waits for the share.
                is_served = bool(self._throttled) and self._serve_throttled(now())
                if not is_served and not self._prompt:
                    break
        finally:
            self._is_working = False

        # During an iteration, `_next_iteration` continues the work.
        if self._throttled and self._timer is None and not self._is_iteration:
            self._pause()

    def _serve_throttled(self, now: float) -> bool:
        """Give one turn within the share; return False if there is none."""
        # The share also has a limit for each iteration, so that a full bucket is not
        # spent at once.
        if self._shared > TURN_TIME_S or self._bucket.wait(now):
            return False
        following = self._throttled.next()
        if following is None:
            return False
        source, worker = following
        # The source is ready for its next turn at once, because this turn runs to its
        # end here.
        self._throttled.finished(source)
        self._shared += self._serve(worker, self._bucket)
        return True

    def _serve(self, worker: Worker, budget: TokenBucket) -> float:
        """Give a worker a turn; return its cost, s."""
        loop = asyncio.get_running_loop()
        self._waiting.discard(id(worker))
        if not self._is_iteration:
            self._is_iteration = True
            # asyncio runs `call_soon` callbacks in the next iteration, which starts a
            # new budget.
            loop.call_soon(self._next_iteration)

        start = self._clock()
        more = worker.barrier.call(worker.turn, otherwise=False)
        # The cost is charged also after an exception, which the barrier has caught:
        # failing must not be free.
        cost = self._clock() - start
        self._spent += cost
        budget.spend(loop.time(), cost)
        if more:
            self.wants(worker)
        return cost

    def _next_iteration(self) -> None:
        self._spent = self._shared = 0.0
        self._is_iteration = False
        if self._waiting:
            self._work()

    def _pause(self) -> None:
        loop = asyncio.get_running_loop()
        wait = self._bucket.wait(loop.time())
        # One timer serves all workers, because all wait for the same bucket.
        self._timer = loop.call_later(max(wait, MIN_PAUSE_S), self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        self._work()


class _Errand:
    """Worker that makes a single call."""

    def __init__(
        self, source: str, act: Callable[[], object], own_time: TokenBucket | None
    ) -> None:
        self.source = source
        self.barrier = _BARRIER
        self.own_time = own_time
        self._act = act

    def turn(self) -> bool:
        self._act()
        return False


_BARRIER: Final = ErrorBarrier(logging.getLogger("botyard"), "a turn")
_FREE: Final = TokenBucket(1e9, 1e9)
"""Budget that is never used up."""

__all__ = ["BURST_S", "MIN_PAUSE_S", "TURN_TIME_S", "TimeShare", "Worker"]
