"""Rate limits of what clients send: a client that floods is throttled, and does not
delay the others.

Each client has a rate at which its bytes are worked off as they come, and all have
another one together for those who need more, as one that steps the world does. Both
count twice: bytes, which bound what commands do later, and the time that working them
off really took. Beyond that a client's bytes wait, nothing more is read from it (so
that TCP holds it up), and all clients that wait take turns, in a part of the time that
the steps and the other clients do not miss. A client that hangs up while it waits is
gone at once, with what it had sent.

What may be worked off as it comes may come from hundreds of clients at the same moment,
who have all just begun. So there is a bound for a turn of the event loop, too: the
others have theirs in the next one, and steps and reports that are due come in between.
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
"""Token bucket of each client's bytes: sustained rate, bytes/s; a robot's serial line
carries 960 to 11520.
"""
BURST: Final = 4096.0
"""Token bucket of each client's bytes: burst, bytes."""
TIME_SHARE: Final = 0.01
"""Token bucket of each client's processing time: sustained share of time."""
TIME_BURST_S: Final = 0.001
"""The same: burst, s; a hundred clients that all begin at the same moment then take at
most the time of a step.
"""
SHARED_RATE: Final = 262_144.0
"""Token bucket that all clients share beyond their own: sustained rate, bytes/s."""
SHARED_BURST: Final = 65_536.0
"""The same: burst, bytes."""
SHARED_TIME_SHARE: Final = 0.2
"""Token bucket of the processing time of these: sustained share of time."""
SHARED_TIME_BURST_S: Final = 0.02
"""The same: burst, s."""
BYTES_PER_TURN: Final = 1024
"""Round robin of throttled clients: bytes in a turn."""
TURN_TIME_S: Final = 0.002
"""The same: longest turn, s."""
ITERATION_BUDGET_S: Final = 0.01
"""Longest processing for all clients together in one iteration of the event loop, s."""
CHUNK: Final = 128
"""Bytes that are processed between two measurements of their cost."""
QUEUED_SHARE: Final = 0.2
"""Share of time of all throttled clients together."""
MAX_QUEUED: Final = 4 * 1024 * 1024
"""Most queued bytes of a client."""
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
        """Take bytes from the budget; False if it is used up."""
        return not self._cost.wait(now) and self._bytes.take(now, amount)

    def has_time(self, now: float) -> bool:
        """Whether there is time for more of what was admitted."""
        return not self._cost.wait(now)

    def spend(self, now: float, seconds: float) -> None:
        """Account for the time that the work took."""
        self._cost.spend(now, seconds)


class Inlet:
    """Rate-limited input of one client.

    Parameters
    ----------
    intake : Intake
        Where clients take turns.
    work : callable
        Works bytes off.
    pause, resume : callable
        Read no more from the client, and go on.
    is_gone : callable
        Whether the client has hung up; asked while nothing is read from it, so that
        nothing else tells.
    cut : callable
        Ends the connection to a client that is gone, or whose bytes cannot be worked
        off.
    rate, cost : float
        Bytes a second that are worked off as they come, and the part of the time that
        they may take.
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
        self._fence = ErrorBarrier(log, "what a client has sent", self._end)

    def take(self, data: bytes) -> None:
        """Bytes have come."""
        self._fence.run(self._take, data)

    def turn(self) -> bool:
        """Work some bytes off; whether more wait."""
        return self._fence.call(self._turn, otherwise=False)

    def take_deferred(self) -> None:
        """The next turn of the loop has come: take what was put off."""
        self._fence.run(self._go_on)

    def look(self) -> None:
        """If the client has hung up, end what it has here."""
        if self._fence.call(self._is_gone, otherwise=True):
            log.info(
                "a client that sent too much has hung up; %d bytes of it were not looked at",
                len(self._waiting),
            )
            self._end()

    @property
    def waits(self) -> bool:
        """Whether bytes wait, and nothing is read from the client meanwhile."""
        return bool(self._waiting)

    def hold(self, data: bytes) -> bool:
        """Bytes were read all the same, to find out whether the client is there still;
        False: there are too many, they are lost.
        """
        if len(self._waiting) + len(data) > MAX_QUEUED:
            return False
        self._take(data)
        return True

    def close(self) -> None:
        """The client is gone; what waits, or comes now, is not looked at."""
        self._is_closed, self._waiting = True, b""
        self._intake.leave(self)

    def _end(self) -> None:
        self.close()
        self._cut()

    def _take(self, data: bytes) -> None:
        if self._is_closed:
            return
        if self._waiting:
            self._waiting += data
            return

        if self._intake.is_round_over:
            self._waiting = data
            self._pause()
            self._intake.defer(self.take_deferred)
            return

        now = asyncio.get_running_loop().time()
        budget = self._own
        if not budget.admits(now, len(data)):
            budget = self._intake.shared(now)
            if not budget.admits(now, len(data)):
                self._wait(data)
                return

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
        What work costs, s: the time for which it keeps the loop, whatever else the
        machine does meanwhile; steps of the world, for which a client may ask at any
        pace, do not count.
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
        """Work bytes off; what it cost, s."""
        return self._timed(lambda: work(data))

    def soon(self, act: Callable[[], None]) -> None:
        """Do what hundreds of clients may cause in the same moment, such as an end:
        now, or when the loop has turned to others.
        """
        if self.is_round_over:
            self.defer(lambda: self.soon(act))
        else:
            self._timed(act)

    def _timed(self, act: Callable[[], None]) -> float:
        if not self._is_round:
            self._is_round = True
            asyncio.get_running_loop().call_soon(self._next_round)

        begin = self._clock()
        try:
            act()
        finally:
            cost = self._clock() - begin
            self._round += cost

        return cost

    @property
    def is_round_over(self) -> bool:
        """Whether enough has been worked off in this turn of the loop."""
        return self._round > ITERATION_BUDGET_S

    def defer(self, act: Callable[[], None]) -> None:
        """Do it in the next one; `act` lets no exception out."""
        self._deferred.append(act)

    def _next_round(self) -> None:
        self._round, self._is_round = 0.0, False
        for _ in range(len(self._deferred)):
            if not self._deferred or self.is_round_over:  # which lets a next one come
                break
            self._deferred.popleft()()

    def shared(self, now: float) -> _TokenBuckets:
        """What all have together."""
        if self._shared is None:
            self._shared = _TokenBuckets(
                SHARED_RATE, SHARED_BURST, SHARED_TIME_SHARE, SHARED_TIME_BURST_S, now
            )

        return self._shared

    def wait(self, inlet: Inlet) -> None:
        """A client begins to wait."""
        self._inlets.append(inlet)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def leave(self, inlet: Inlet) -> None:
        """It waits no more."""
        if inlet in self._inlets:
            self._inlets.remove(inlet)
        if inlet.take_deferred in self._deferred:
            self._deferred.remove(inlet.take_deferred)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        try:
            while self._inlets:
                begin = loop.time()
                if begin - looked > HANGUP_POLL_S:
                    looked = begin
                    for inlet in tuple(self._inlets):
                        inlet.look()
                    if not self._inlets:
                        break

                inlet, start = self._inlets.popleft(), passed()
                if inlet.turn():
                    self._inlets.append(inlet)
                spent = passed() - start
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
