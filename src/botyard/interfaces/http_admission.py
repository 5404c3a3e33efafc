"""Admission control of an HTTP server: limits of connections, deadlines and processing
time. Sans-I/O: time is an argument.

A connection that has not shown the token is a stranger. Anybody can be one, so
strangers share few sockets, short deadlines, and a small share of processing time. When
there are too many, the oldest idle one is dropped, not the newest: a browser with the
token shows it within milliseconds, while connections that only hold sockets soon are
the oldest.
"""

from __future__ import annotations

import ipaddress
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any, Final, Generic, Protocol, TypeVar

from botyard.protocols.tokenbucket import Budget, TokenBucket

T = TypeVar("T")

MAX_STRANGERS: Final = 64
"""Most connections that have not shown a token."""
MAX_STRANGERS_EACH: Final = 32
"""The same from one source address (IPv6: one /64 network)."""
MAX_HELD_UP: Final = 12
"""No connection is accepted while this many strangers wait for processing; new ones
queue in the listen backlog.
"""
BACKLOG_RETRY_S: Final = 0.02
"""Delay before accepting is tried again, s."""
MAX_GUESTS: Final = 256
"""Most connections that have shown the token; viewers have a limit of their own."""
REQUEST_TIME: Final = 5.0
"""Deadline of a stranger's request from the first byte to the last, and of the first
message after the WebSocket handshake, s.
"""
RESPONSE_TIME: Final = 30.0
"""Deadline for a stranger to read the answer, s."""
GUEST_TIME: Final = 300.0
"""Deadline of a request and its answer together for those who have shown the token, s.
"""
UNREAD_GRACE_S: Final = 30.0
"""So much later, s, is the deadline of a connection that has said something which we
have not looked at.
"""
CLOSE_TIMEOUT_S: Final = 3.0
"""Time-out of closing a connection, s; then it is aborted."""
ACCEPT_COST: Final = 3e-4
"""Processing time that accepting a connection counts as, s (measured: 0.2 to 0.3 ms
including its end).
"""
ACCEPTING: Final = (0.1, 0.03)
"""Token bucket of accepting: sustained share of time, and burst, s. It is separate, so
that requests of others do not delay accepting.
"""

WORK: Final = {
    None: ((0.05, 0.03), (0.1, 0.03)),
    False: ((0.1, 0.03), (0.2, 0.03)),
    True: ((0.3, 0.1), (0.4, 0.1)),
}
"""Token buckets of processing time for strangers (None), read-only viewers (False) and
viewers with control (True): (sustained share, burst in s) of each connection, and of
all of that kind together. Bursts delay a step, so they are short.
"""


class Caller:
    """One connection: whether it has shown the token, its deadline, and its budget of
    processing time.

    Parameters
    ----------
    gate : Gate
        Where it came.
    address : str
        Its source.
    drop : callable
        Cuts it off at once; what was not sent yet is lost.
    now : float
        Wall time, s.
    is_unread : callable
        Whether bytes of it have come and were not read.
    """

    __slots__ = (
        "_gate",
        "_is_unread",
        "address",
        "budget",
        "deadline",
        "drop",
        "is_held_up",
        "is_known",
        "source",
    )

    def __init__(
        self,
        gate: HttpAdmission,
        address: str,
        drop: Callable[[], None],
        now: float,
        is_unread: Callable[[], bool],
    ) -> None:
        self._gate = gate
        self._is_unread = is_unread
        self.address = address
        self.source = source_of(address)
        self.drop = drop
        self.is_known = False
        self.is_held_up = False
        """Whether it has sent data that is not processed yet."""
        self.budget = gate.budget(None, now)
        self.deadline: float | None = now + REQUEST_TIME

    @property
    def has_unread(self) -> bool:
        """Whether something that it has said has not been looked at."""
        return self.is_held_up or self._is_unread()

    def begins(self, now: float) -> None:
        """The head of a request was received."""
        self.deadline = now + (GUEST_TIME if self.is_known else RESPONSE_TIME)

    def ends(self, now: float) -> None:
        """An answer is complete; the next request may come."""
        self.deadline = now + REQUEST_TIME

    def stays(self) -> None:
        """Remove the deadline: it is a viewer."""
        self.deadline = None

    def closes(self, now: float) -> None:
        """It is being closed."""
        self.deadline = now + CLOSE_TIMEOUT_S

    def shows(self, steers: bool, now: float) -> None:
        """It has shown the token; `steers`: one with control."""
        self.budget = self._gate.budget(steers, now)
        if not self.is_known:
            self._gate.knows(self)
            self.deadline = None if self.deadline is None else now + GUEST_TIME


class Member(Protocol):
    """What pools use of a connection."""

    @property
    def source(self) -> str:
        """Its address."""
        ...

    @property
    def deadline(self) -> float | None:
        """Its time; None: it has as long as it likes."""
        ...

    @property
    def is_held_up(self) -> bool:
        """Whether it has said something and waits for us to look at it."""
        ...

    @property
    def has_unread(self) -> bool:
        """The same, also if we have not even read it: then it is not silent."""
        ...


M = TypeVar("M", bound=Member)


class Pool(Generic[M]):
    """A bounded pool of connections, by source, the oldest first.

    Parameters
    ----------
    most, most_each : int
        Most connections, and most of one source.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._callers: dict[str, dict[M, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[M]:
        return iter([c for its in self._callers.values() for c in its])

    def has_room(self, source: str) -> bool:
        """Whether one more of a source may come without another having to go."""
        return (
            self._count < self._most
            and len(self._callers.get(source, ())) < self._most_each
        )

    def add(self, caller: M) -> M | None:
        """Add a connection. Returns the one that must be dropped for it if the pool is
        full.
        """
        its = self._callers.setdefault(caller.source, {})
        its[caller] = None
        self._count += 1
        if len(its) > self._most_each:
            return _first_idle(its, caller)
        if self._count > self._most:
            crowded = max(self._callers, key=lambda source: len(self._callers[source]))
            return _first_idle(self._callers[crowded], caller)

        return None

    def remove(self, caller: M) -> bool:
        """One goes; whether it was here."""
        its = self._callers.get(caller.source)
        if its is None or caller not in its:
            return False
        del its[caller]
        self._count -= 1
        if not its:
            del self._callers[caller.source]
        return True

    def held_up(self) -> int:
        """How many wait for us."""
        return sum(c.is_held_up for c in self)

    def overdue(self, now: float) -> list[M]:
        """Those whose time is over; those that wait for us have longer."""
        late = [c for c in self if c.deadline is not None and now > c.deadline]
        return [
            c
            for c in late
            if not c.has_unread or now > (c.deadline or 0.0) + UNREAD_GRACE_S
        ]


def _first_idle(callers: dict[M, None], newest: M) -> M:
    """The oldest that has had its chance; if all are held up by us, the oldest."""
    return next(
        (c for c in callers if not c.is_held_up and c is not newest),
        next(iter(callers)),
    )


class HttpAdmission:
    """Admission control of all connections of a server.

    Parameters
    ----------
    now : float
        Wall time, s.
    """

    def __init__(self, now: float) -> None:
        self._strangers = Pool[Caller](MAX_STRANGERS, MAX_STRANGERS_EACH)
        self._guests = Pool[Caller](MAX_GUESTS, MAX_GUESTS)
        self._shared = {
            who: TokenBucket(*together, now) for who, (_, together) in WORK.items()
        }
        self._accepting = TokenBucket(*ACCEPTING, now)
        self.dropped = 0

    @property
    def strangers(self) -> int:
        """How many are here."""
        return len(self._strangers)

    def budget(self, who: bool | None, now: float) -> Budget:
        """What a new connection's work may cost: see `WORK`."""
        return Budget(TokenBucket(*WORK[who][0], now), self._shared[who])

    def wait(self, now: float) -> float:
        """Until the next connection may be taken, s; 0: at once. Taking it costs work,
        whoever it is.
        """
        wait = self._accepting.wait(now)
        return wait or (
            BACKLOG_RETRY_S if self._strangers.held_up() >= MAX_HELD_UP else 0.0
        )

    def comes(
        self,
        address: str,
        drop: Callable[[], None],
        now: float,
        is_unread: Callable[[], bool] = lambda: False,
    ) -> Caller:
        """A connection is there."""
        self._accepting.spend(now, ACCEPT_COST)
        caller = Caller(self, address, drop, now, is_unread)
        self._drop(self._strangers.add(caller))
        return caller

    def knows(self, caller: Caller) -> None:
        """A stranger has shown the token."""
        caller.is_known = True
        if self._strangers.remove(caller):
            self._drop(self._guests.add(caller))

    def goes(self, caller: Caller) -> None:
        """A connection has ended."""
        if not self._strangers.remove(caller):
            self._guests.remove(caller)

    def sweep(self, now: float) -> None:
        """Cut off those whose time is over."""
        for pool in (self._strangers, self._guests):
            for caller in pool.overdue(now):
                self._drop(caller)

    def _drop(self, caller: Caller | None) -> None:
        if caller is not None:
            self.dropped += 1
            self.goes(caller)
            caller.drop()


@types.coroutine
def booked(
    work: Coroutine[Any, Any, T],
    spend: Callable[[float], None],
    clock: Callable[[], float] = time.thread_time,
) -> Generator[Any, Any, T]:
    """Await `work`, and call `spend` with the processor time of each of its event-loop
    iterations, s; waiting costs nothing.
    """
    advance, value = work.send, None
    while True:
        began = clock()
        try:
            waits_for = advance(value)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            spend(clock() - began)

        try:
            value, advance = (yield waits_for), work.send
        except (
            BaseException
        ) as error:  # thrown in from outside, as when a task is cancelled
            value, advance = error, work.throw


def source_of(address: str) -> str:
    """Source of an address for rate limits: an IPv4 address, or an IPv6 /64 network,
    which one machine may own (RFC 6177).
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address

    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((ip, 64), strict=False))


__all__ = ["Caller", "HttpAdmission", "Pool", "booked", "source_of"]
