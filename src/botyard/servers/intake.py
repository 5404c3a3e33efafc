"""What clients send, and how fast it is worked off: one that floods commands waits for itself, and nobody waits for it.

Each client has a rate at which its bytes are worked off as they come, and all have another one together for those who need more, as one
that steps the world does. Both count twice: bytes, which bound what commands do later, and the time that working them off really took.
Beyond that a client's bytes wait, nothing more is read from it (so that TCP holds it up), and all clients that wait take turns, in a part
of the time that the steps and the other clients do not miss. A client that hangs up while it waits is gone at once, with what it had sent.

What may be worked off as it comes may come from hundreds of clients at the same moment, who have all just begun. So there is a bound for
a turn of the event loop, too: the others have theirs in the next one, and steps and reports that are due come in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from botyard.control.fence import Fence
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.workclock import passed

RATE: Final = 4096.0
"""Bytes a second of each client that are worked off as they come; a robot's serial line carries 960 to 11520."""
BURST: Final = 4096.0
"""Bytes that may come at once."""
COST: Final = 0.01
"""Part of the time that each client's bytes may take as they come …"""
COST_BURST: Final = 0.001
"""… and at once, s: a hundred clients that all begin at the same moment then take a step's time at most."""
SHARED_RATE: Final = 262_144.0
"""Bytes a second of all clients together, beside that …"""
SHARED_BURST: Final = 65_536.0
"""… and at once."""
SHARED_COST: Final = 0.2
"""Part of the time that these may take …"""
SHARED_COST_BURST: Final = 0.02
"""… and at once, s."""
SLICE: Final = 1024
"""Bytes that a client has worked off in its turn …"""
TURN: Final = 0.002
"""… as long as they take no more than this, s."""
ROUND: Final = 0.01
"""Bytes of all clients are worked off as they come for so long in one turn of the event loop, s."""
PIECE: Final = 128
"""So many bytes are worked off before one looks at what they cost."""
SHARE: Final = 0.2
"""Part of the time that those who wait get together."""
MAX_HELD: Final = 4 * 1024 * 1024
"""Bytes of a client that wait at most."""
LOOK: Final = 0.05
"""How often those who wait are asked whether they are still there, s."""

log = logging.getLogger("botyard.pioneer")


class _Allowance:
    """What is worked off as it comes: bytes, and the time that it takes."""

    def __init__(self, rate: float, burst: float, cost: float, cost_burst: float, now: float) -> None:
        self._bytes = TokenBucket(rate, burst, now)
        self._cost = TokenBucket(cost, cost_burst, now)

    def admits(self, now: float, amount: int) -> bool:
        """Whether so many bytes are worked off now; then they are counted."""
        return not self._cost.wait(now) and self._bytes.take(now, amount)

    def goes_on(self, now: float) -> bool:
        """Whether there is time for more of what was admitted."""
        return not self._cost.wait(now)

    def spend(self, now: float, seconds: float) -> None:
        """It took so long."""
        self._cost.spend(now, seconds)


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
    is_gone : callable
        Whether the client has hung up; asked while nothing is read from it, so that nothing else tells.
    cut : callable
        Ends the connection to a client that is gone, or whose bytes cannot be worked off.
    rate, cost : float
        Bytes a second that are worked off as they come, and the part of the time that they may take.
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
        cost: float = COST,
    ) -> None:
        self._intake = intake
        self._work = work
        self._pause, self._resume = pause, resume
        self._is_gone, self._cut = is_gone, cut
        self._waiting = b""
        self._is_closed = False
        burst = BURST * rate / RATE
        self._own = _Allowance(rate, burst, cost, COST_BURST, asyncio.get_running_loop().time())
        self._fence = Fence(log, "what a client has sent", self._end)

    def take(self, data: bytes) -> None:
        """Bytes have come."""
        self._fence.run(self._take, data)

    def turn(self) -> bool:
        """Work some bytes off; whether more wait."""
        return self._fence.call(self._turn, otherwise=False)

    def go_on(self) -> None:
        """The next turn of the loop has come: take what was put off."""
        self._fence.run(self._go_on)

    def look(self) -> None:
        """If the client has hung up, end what it has here."""
        if self._fence.call(self._is_gone, otherwise=True):
            log.info("a client that sent too much has hung up; %d bytes of it were not looked at", len(self._waiting))
            self._end()

    @property
    def waits(self) -> bool:
        """Whether bytes wait, and nothing is read from the client meanwhile."""
        return bool(self._waiting)

    def hold(self, data: bytes) -> bool:
        """Bytes were read all the same, to find out whether the client is there still; False: there are too many, they are lost."""
        if len(self._waiting) + len(data) > MAX_HELD:
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
            self._intake.put_off(self.go_on)
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
            if at and not budget.goes_on(now):
                budget = self._intake.shared(now)
                if not budget.goes_on(now):
                    self._wait(data[at:])
                    return
            budget.spend(now, self._intake.cost(self._work, data[at : at + PIECE]))
            at += PIECE

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
        for _ in range(SLICE // PIECE):
            data, self._waiting = self._waiting[:PIECE], self._waiting[PIECE:]
            if data:
                cost += self._intake.cost(self._work, data)
            if self._is_closed:
                return False
            if not self._waiting:
                self._resume()
                return False
            if cost > TURN:
                break
        return True


class Intake:
    """Where clients that send too much take turns.

    Parameters
    ----------
    clock : callable
        What work costs, s: the time for which it keeps the loop, whatever else the machine does meanwhile; steps of the world, for which
        a client may ask at any pace, do not count.
    """

    def __init__(self, clock: Callable[[], float] = passed) -> None:
        self._inlets: deque[Inlet] = deque()
        self._shared: _Allowance | None = None
        self._task: asyncio.Task[None] | None = None
        self._clock = clock
        self._put_off: deque[Callable[[], None]] = deque()
        self._round = 0.0
        self._is_round = False

    def cost(self, work: Callable[[bytes], None], data: bytes) -> float:
        """Work bytes off; what it cost, s."""
        return self._timed(lambda: work(data))

    def soon(self, act: Callable[[], None]) -> None:
        """Do what hundreds of clients may cause in the same moment, such as an end: now, or when the loop has turned to others."""
        if self.is_round_over:
            self.put_off(lambda: self.soon(act))
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
        return self._round > ROUND

    def put_off(self, act: Callable[[], None]) -> None:
        """Do it in the next one; `act` lets no exception out."""
        self._put_off.append(act)

    def _next_round(self) -> None:
        self._round, self._is_round = 0.0, False
        for _ in range(len(self._put_off)):
            if not self._put_off or self.is_round_over:  # which lets a next one come
                break
            self._put_off.popleft()()

    def shared(self, now: float) -> _Allowance:
        """What all have together."""
        if self._shared is None:
            self._shared = _Allowance(SHARED_RATE, SHARED_BURST, SHARED_COST, SHARED_COST_BURST, now)
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
        if inlet.go_on in self._put_off:
            self._put_off.remove(inlet.go_on)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        try:
            while self._inlets:
                begin = loop.time()
                if begin - looked > LOOK:
                    looked = begin
                    for inlet in tuple(self._inlets):
                        inlet.look()
                    if not self._inlets:
                        break
                inlet, start = self._inlets.popleft(), passed()
                if inlet.turn():
                    self._inlets.append(inlet)
                spent = passed() - start
                await asyncio.sleep(spent * (1.0 - SHARE) / SHARE)
        finally:
            self._task = None


__all__ = [
    "BURST",
    "COST",
    "LOOK",
    "MAX_HELD",
    "PIECE",
    "RATE",
    "ROUND",
    "SHARE",
    "SHARED_BURST",
    "SHARED_RATE",
    "SLICE",
    "TURN",
    "Inlet",
    "Intake",
]
