"""Rate limits for input of clients: flooding clients must not delay others.

Each client has a rate limit up to which its bytes are processed on arrival. A client
that needs more, such as one that steps the world, draws on a budget that all clients
share. Each limit counts bytes, which bound the cost of commands later, and processing
time.

Beyond these limits the bytes of a client wait in a queue, and the server stops reading
from it, so that TCP flow control slows it down. Throttled clients take turns
(round-robin) in a share of time that steps and other clients do not need. A throttled
client that hangs up is removed at once, together with its queued bytes.

Hundreds of clients within their limits may send at the same moment. A budget for one
iteration of the event loop bounds their work as well. The rest runs in the next
iteration, after the steps and reports that are due.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from botyard.control.error_barrier import ErrorBarrier
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.workclock import passed

RATE: Final = 4096.0
"""Token bucket of each client's bytes: sustained rate, bytes/s.

A robot's serial line carries 960 to 11520 bytes/s.
"""
BURST: Final = 4096.0
"""Token bucket of each client's bytes: burst, bytes."""
TIME_SHARE: Final = 0.01
"""Token bucket of each client's processing time: sustained share of time."""
TIME_BURST_S: Final = 0.001
"""Token bucket of each client's processing time: burst, s.

A hundred clients that start at the same moment then take at most the time of one step.
"""
SHARED_RATE: Final = 262_144.0
"""Token bucket that all clients share beyond their own: sustained rate, bytes/s."""
SHARED_BURST: Final = 65_536.0
"""Token bucket that all clients share beyond their own: burst, bytes."""
SHARED_TIME_SHARE: Final = 0.2
"""Token bucket of the shared processing time: sustained share of time."""
SHARED_TIME_BURST_S: Final = 0.02
"""Token bucket of the shared processing time: burst, s."""
BYTES_PER_TURN: Final = 1024
"""Round-robin of throttled clients: bytes in one turn."""
TURN_TIME_S: Final = 0.002
"""Round-robin of throttled clients: longest turn, s."""
ITERATION_BUDGET_S: Final = 0.01
"""Longest processing for all clients together in one iteration of the event loop, s."""
CHUNK: Final = 128
"""Bytes that are processed between two measurements of their cost."""
QUEUED_SHARE: Final = 0.2
"""Share of time of all throttled clients together."""
MAX_QUEUED: Final = 4 * 1024 * 1024
"""Maximum number of queued bytes of a client."""
HANGUP_POLL_S: Final = 0.05
"""Interval of checking whether throttled clients have hung up, s."""

log = logging.getLogger("botyard.pioneer")


class _TokenBuckets:
    """Two token buckets: of bytes, and of the time to process them."""

    def __init__(
        self, rate: float, burst: float, cost: float, cost_burst: float, now: float
    ) -> None:
        self._bytes = TokenBucket(rate, burst, now)
        self._cost = TokenBucket(cost, cost_burst, now)

    def admits(self, now: float, amount: int) -> bool:
        """Take bytes from the budget; return False if it is used up."""
        return not self._cost.wait(now) and self._bytes.take(now, amount)

    def has_time(self, now: float) -> bool:
        """Return whether the budget has time left for more of the admitted bytes."""
        return not self._cost.wait(now)

    def spend(self, now: float, seconds: float) -> None:
        """Charge the time that the work took, s."""
        self._cost.spend(now, seconds)


class Inlet:
    """Rate-limited input of one client.

    Parameters
    ----------
    intake : Intake
        Scheduler of throttled clients.
    work : callable
        Processes bytes.
    pause, resume : callable
        Stop and restart reading from the client.
    is_gone : callable
        Returns whether the client has hung up. While reading is paused, this poll is
        the only way to detect it.
    cut : callable
        Ends the connection of a client that is gone, or whose bytes raised an
        exception.
    rate : float
        Sustained rate at which bytes are processed on arrival, bytes/s.
    cost : float
        Share of time for this processing.
    """

    def __init__(
        self,
        intake: Intake,
        work: Callable[[bytes], None],
        pause: Callable[[], None],
        resume: Callable[[], None],
        is_gone: Callable[[], bool] = lambda: False,
        cut: Callable[[], None] = lambda: None,
        *,
        rate: float = RATE,
        cost: float = TIME_SHARE,
    ) -> None:
        self._intake = intake
        self._work = work
        self._pause, self._resume = pause, resume
        self._is_gone, self._cut = is_gone, cut
        self._waiting = b""
        self._is_closed = False
        burst = BURST * rate / RATE
        self._own = _TokenBuckets(
            rate, burst, cost, TIME_BURST_S, asyncio.get_running_loop().time()
        )
        self._fence = ErrorBarrier(log, "the input of a client", self._end)

    def take(self, data: bytes) -> None:
        """Process bytes that arrived, within the rate limits."""
        self._fence.run(self._take, data)

    def turn(self) -> bool:
        """Process one turn of queued bytes; return whether more are queued."""
        return self._fence.call(self._turn, otherwise=False)

    def take_deferred(self) -> None:
        """Process the bytes that were deferred to this iteration of the event loop."""
        self._fence.run(self._go_on)

    def look(self) -> None:
        """End the connection if the client has hung up."""
        if self._fence.call(self._is_gone, otherwise=True):
            log.info(
                "a throttled client has hung up; %d bytes from it were discarded",
                len(self._waiting),
            )
            self._end()

    @property
    def waits(self) -> bool:
        """Whether bytes are queued; reading from the client is paused meanwhile."""
        return bool(self._waiting)

    def hold(self, data: bytes) -> bool:
        """Queue bytes that the liveness check read ahead.

        Return False if the queue is full; then the bytes are lost.
        """
        if len(self._waiting) + len(data) > MAX_QUEUED:
            return False
        self._take(data)
        return True

    def close(self) -> None:
        """Discard queued and future bytes of a client that is gone."""
        self._is_closed, self._waiting = True, b""
        self._intake.leave(self)

    def _end(self) -> None:
        self.close()
        self._cut()

    def _take(self, data: bytes) -> None:
        if self._is_closed:
            return
        # Bytes that are already queued come first.
        if self._waiting:
            self._waiting += data
            return

        if self._intake.is_round_over:
            self._waiting = data
            self._pause()
            self._intake.defer(self.take_deferred)
            return

        now = asyncio.get_running_loop().time()
        # The client's own budget comes first, then the shared one.
        budget = self._own
        if not budget.admits(now, len(data)):
            budget = self._intake.shared(now)
            if not budget.admits(now, len(data)):
                self._wait(data)
                return

        # The cost of bytes is unknown in advance: one command may load a map. Measure
        # it after each chunk.
        at = 0
        while at < len(data) and not self._is_closed:
            now = asyncio.get_running_loop().time()
            if at and not budget.has_time(now):
                budget = self._intake.shared(now)
                if not budget.has_time(now):
                    self._wait(data[at:])
                    return

            budget.spend(now, self._intake.cost(self._work, data[at : at + CHUNK]))
            at += CHUNK

    def _go_on(self) -> None:
        data, self._waiting = self._waiting, b""
        self._resume()
        self._take(data)

    def _wait(self, data: bytes) -> None:
        self._waiting = data
        self._pause()
        self._intake.wait(self)

    def _turn(self) -> bool:
        cost = 0.0
        for _ in range(BYTES_PER_TURN // CHUNK):
            data, self._waiting = self._waiting[:CHUNK], self._waiting[CHUNK:]
            if data:
                cost += self._intake.cost(self._work, data)
            if self._is_closed:
                return False
            if not self._waiting:
                self._resume()
                return False

            if cost > TURN_TIME_S:
                break

        return True


class Intake:
    """Round-robin scheduler of clients that exceed their rate limits.

    Parameters
    ----------
    clock : callable
        Clock that measures the cost of work, s: the time for which work blocks the
        event loop. Steps of the world do not count, because a client may request them
        at any rate.
    """

    def __init__(self, clock: Callable[[], float] = passed) -> None:
        self._inlets: deque[Inlet] = deque()
        self._shared: _TokenBuckets | None = None
        self._task: asyncio.Task[None] | None = None
        self._clock = clock
        self._deferred: deque[Callable[[], None]] = deque()
        self._round = 0.0
        self._is_round = False

    def cost(self, work: Callable[[bytes], None], data: bytes) -> float:
        """Process bytes and return the cost, s."""
        return self._timed(lambda: work(data))

    def soon(self, act: Callable[[], None]) -> None:
        """Run a callback now, or in a later iteration if this one's budget is used up.

        For events that hundreds of clients may cause at the same moment, such as the
        end of a session.
        """
        if self.is_round_over:
            self.defer(lambda: self.soon(act))
        else:
            self._timed(act)

    def _timed(self, act: Callable[[], None]) -> float:
        if not self._is_round:
            self._is_round = True
            # asyncio runs `call_soon` callbacks in the next iteration, which starts a
            # new budget.
            asyncio.get_running_loop().call_soon(self._next_round)

        started = self._clock()
        try:
            act()
        finally:
            cost = self._clock() - started
            self._round += cost

        return cost

    @property
    def is_round_over(self) -> bool:
        """Whether the budget of this iteration of the event loop is used up."""
        return self._round > ITERATION_BUDGET_S

    def defer(self, act: Callable[[], None]) -> None:
        """Run a callback in the next iteration. The callback must not raise."""
        self._deferred.append(act)

    def _next_round(self) -> None:
        self._round, self._is_round = 0.0, False
        # Callbacks that are deferred in this loop wait for the iteration after it.
        for _ in range(len(self._deferred)):
            # A callback that uses up the budget schedules the next iteration itself.
            if not self._deferred or self.is_round_over:
                break
            self._deferred.popleft()()

    def shared(self, now: float) -> _TokenBuckets:
        """Return the budget that all clients share."""
        if self._shared is None:
            self._shared = _TokenBuckets(
                SHARED_RATE, SHARED_BURST, SHARED_TIME_SHARE, SHARED_TIME_BURST_S, now
            )

        return self._shared

    def wait(self, inlet: Inlet) -> None:
        """Add a client to the round-robin queue."""
        self._inlets.append(inlet)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def leave(self, inlet: Inlet) -> None:
        """Remove a client from the queues."""
        if inlet in self._inlets:
            self._inlets.remove(inlet)
        if inlet.take_deferred in self._deferred:
            self._deferred.remove(inlet.take_deferred)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        try:
            while self._inlets:
                started = loop.time()
                if started - looked > HANGUP_POLL_S:
                    looked = started
                    for inlet in tuple(self._inlets):
                        inlet.look()
                    if not self._inlets:
                        break

                inlet, start = self._inlets.popleft(), passed()
                if inlet.turn():
                    self._inlets.append(inlet)
                spent = passed() - start
                # Pause in proportion to the time spent, so that throttled clients get
                # `QUEUED_SHARE` of the time.
                await asyncio.sleep(spent * (1.0 - QUEUED_SHARE) / QUEUED_SHARE)
        finally:
            self._task = None


__all__ = [
    "BURST",
    "BYTES_PER_TURN",
    "CHUNK",
    "HANGUP_POLL_S",
    "ITERATION_BUDGET_S",
    "MAX_QUEUED",
    "QUEUED_SHARE",
    "RATE",
    "SHARED_BURST",
    "SHARED_RATE",
    "TIME_SHARE",
    "TURN_TIME_S",
    "Inlet",
    "Intake",
]
