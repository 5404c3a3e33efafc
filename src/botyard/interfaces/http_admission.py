"""Admission control of an HTTP server: limits of connections, deadlines and CPU time.

Sans-I/O: time is an argument.

A connection that has not shown the token is a *stranger*; one that has shown it is a
*guest*. Anyone can open a connection without a token, so strangers share few sockets,
short deadlines, and a small share of CPU time. When there are too many, the oldest idle
stranger is dropped, not the newest. A browser with the token shows it within
milliseconds, whereas connections that only occupy sockets soon are the oldest.
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
"""Limit of connections that have not shown a token."""
MAX_STRANGERS_EACH: Final = 32
"""Limit of strangers from one source address (IPv6: one /64 network)."""
MAX_HELD_UP: Final = 12
"""Number of strangers with unprocessed data at which accepting pauses.

New connections then queue in the listen backlog of the socket.
"""
BACKLOG_RETRY_S: Final = 0.02
"""Delay before the server tries to accept again, s."""
MAX_GUESTS: Final = 256
"""Limit of connections that have shown the token; viewers have a separate limit."""
REQUEST_TIME: Final = 5.0
"""Deadline of a stranger's request, from first byte to last, s.

It also holds for the first message after a WebSocket handshake.
"""
RESPONSE_TIME: Final = 30.0
"""Deadline for a stranger to read the answer, s."""
GUEST_TIME: Final = 300.0
"""Deadline of a guest's request and its answer together, s."""
UNREAD_GRACE_S: Final = 30.0
"""Extension of the deadline while received data waits for processing, s.

The delay is then the server's, not the client's.
"""
CLOSE_TIMEOUT_S: Final = 3.0
"""Timeout of closing a connection, s; the connection is then aborted."""
ACCEPT_COST: Final = 3e-4
"""CPU time that accepting a connection counts as, s.

Measured: 0.2 to 0.3 ms, including the end of the connection.
"""
ACCEPTING: Final = (0.1, 0.03)
"""Token bucket of accepting: sustained share of time, and burst in s.

It is separate, so that requests of other connections do not delay accepting.
"""

WORK: Final = {
    None: ((0.05, 0.03), (0.1, 0.03)),
    False: ((0.1, 0.03), (0.2, 0.03)),
    True: ((0.3, 0.1), (0.4, 0.1)),
}
"""Token buckets of CPU time, each a pair of sustained share and burst in s.

The keys are strangers (None), read-only viewers (False) and viewers with control
(True). Each value holds the bucket of one connection, and the bucket of all connections
of that kind together. Bursts are short because they delay a step.
"""


class Caller:
    """One connection: whether it has shown the token, its deadline and its CPU budget.

    Parameters
    ----------
    gate : HttpAdmission
        Admission control of the server.
    address : str
        Source address.
    drop : callable
        Aborts the connection at once; unsent data is lost.
    now : float
        Wall time, s.
    is_unread : callable
        Returns whether received bytes wait in the transport.
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
        """Whether data of the client waits for processing, here or in the transport."""
        return self.is_held_up or self._is_unread()

    def begins(self, now: float) -> None:
        """Set the deadline of a request whose head was received."""
        self.deadline = now + (GUEST_TIME if self.is_known else RESPONSE_TIME)

    def ends(self, now: float) -> None:
        """Set the deadline of the next request after a complete answer."""
        self.deadline = now + REQUEST_TIME

    def keep_connected(self) -> None:
        """Remove the deadline: the connection is a viewer."""
        self.deadline = None

    def closes(self, now: float) -> None:
        """Set the deadline of a connection that is being closed."""
        self.deadline = now + CLOSE_TIMEOUT_S

    def shows(self, steers: bool, now: float) -> None:
        """Record that the connection has sent a valid token; `steers`: with control."""
        self.budget = self._gate.budget(steers, now)
        # The first token makes the connection a guest; later tokens only change its
        # budget.
        if not self.is_known:
            self._gate.knows(self)
            # A viewer without a deadline must not get one.
            self.deadline = None if self.deadline is None else now + GUEST_TIME


class Member(Protocol):
    """Properties of a connection that `Pool` uses."""

    @property
    def source(self) -> str:
        """Source address, or network, for the limits."""
        ...

    @property
    def deadline(self) -> float | None:
        """Deadline, s of wall time; None for no deadline."""
        ...

    @property
    def is_held_up(self) -> bool:
        """Whether it has sent data that is not processed yet."""
        ...

    @property
    def has_unread(self) -> bool:
        """Whether data of the client waits for processing, here or in the transport."""
        ...


M = TypeVar("M", bound=Member)


class Pool(Generic[M]):
    """Bounded pool of connections, grouped by source, the oldest first.

    Parameters
    ----------
    most, most_each : int
        Limit of connections in total, and from one source.
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
        """Return whether a connection of this source fits without dropping another."""
        return (
            self._count < self._most
            and len(self._callers.get(source, ())) < self._most_each
        )

    def add(self, caller: M) -> M | None:
        """Add a connection; return the one that must be dropped if the pool is full."""
        its = self._callers.setdefault(caller.source, {})
        its[caller] = None
        self._count += 1
        if len(its) > self._most_each:
            return _first_idle(its, caller)
        if self._count > self._most:
            # The source with the most connections pays, so that one address cannot push
            # out the others.
            crowded = max(self._callers, key=lambda source: len(self._callers[source]))
            return _first_idle(self._callers[crowded], caller)

        return None

    def remove(self, caller: M) -> bool:
        """Remove a connection; return whether it was in the pool."""
        its = self._callers.get(caller.source)
        if its is None or caller not in its:
            return False
        del its[caller]
        self._count -= 1
        if not its:
            del self._callers[caller.source]
        return True

    def held_up(self) -> int:
        """Return the number of connections with unprocessed data."""
        return sum(c.is_held_up for c in self)

    def overdue(self, now: float) -> list[M]:
        """Return the connections whose deadline has passed.

        Connections with unprocessed data get `UNREAD_GRACE_S` more time.
        """
        late = [c for c in self if c.deadline is not None and now > c.deadline]
        return [
            c
            for c in late
            if not c.has_unread or now > (c.deadline or 0.0) + UNREAD_GRACE_S
        ]


def _first_idle(callers: dict[M, None], newest: M) -> M:
    """Return the oldest connection without unprocessed data, else the oldest one.

    A connection with unprocessed data has not had a chance to show its token.
    """
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

    def __len__(self) -> int:
        return len(self._strangers) + len(self._guests)

    @property
    def strangers(self) -> int:
        """Number of connections that have not shown a token."""
        return len(self._strangers)

    def budget(self, who: bool | None, now: float) -> Budget:
        """Return the CPU budget of a new connection; see `WORK`."""
        return Budget(TokenBucket(*WORK[who][0], now), self._shared[who])

    def wait(self, now: float) -> float:
        """Return the delay until the next connection may be accepted, s; 0 for none.

        Accepting costs CPU time for every connection, with or without a token.
        """
        wait = self._accepting.wait(now)
        return wait or (
            BACKLOG_RETRY_S if self._strangers.held_up() >= MAX_HELD_UP else 0.0
        )

    def add_connection(
        self,
        address: str,
        drop: Callable[[], None],
        now: float,
        is_unread: Callable[[], bool] = lambda: False,
    ) -> Caller:
        """Admit a new connection; the oldest idle one is dropped if there are too many."""
        # Charged even if the connection is dropped at once, since accepting has cost
        # the time.
        self._accepting.spend(now, ACCEPT_COST)
        caller = Caller(self, address, drop, now, is_unread)
        self._drop(self._strangers.add(caller))
        return caller

    def knows(self, caller: Caller) -> None:
        """Move a connection that has shown the token from the strangers to the guests."""
        caller.is_known = True
        if self._strangers.remove(caller):
            self._drop(self._guests.add(caller))

    def remove_connection(self, caller: Caller) -> None:
        """Remove a connection that has ended."""
        if not self._strangers.remove(caller):
            self._guests.remove(caller)

    def sweep(self, now: float) -> None:
        """Drop the connections whose deadline has passed."""
        for pool in (self._strangers, self._guests):
            for caller in pool.overdue(now):
                self._drop(caller)

    def _drop(self, caller: Caller | None) -> None:
        if caller is not None:
            self.dropped += 1
            # Removed first, because `drop` may call back into `remove_connection`.
            self.remove_connection(caller)
            caller.drop()


@types.coroutine
def booked(
    work: Coroutine[Any, Any, T],
    spend: Callable[[float], None],
    clock: Callable[[], float] = time.thread_time,
) -> Generator[Any, Any, T]:
    """Await `work` and charge its CPU time.

    Calls `spend` with the CPU time of each event-loop iteration of `work`, s; waiting
    costs nothing.
    """
    # A hand-written `await`: each `send` runs the coroutine for one iteration of the
    # event loop, so that only CPU time is measured.
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
            # Thrown in from outside, for example when a task is cancelled; `work` must
            # see it.
        ) as error:
            value, advance = error, work.throw


def source_of(address: str) -> str:
    """Return the source of an address for rate limits.

    The source is an IPv4 address or an IPv6 /64 network, because one machine may own a
    whole /64 network (RFC 6177).
    """
    try:
        # The part after % is the zone of a link-local address.
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address

    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    # A dual-stack socket reports IPv4 clients as ::ffff:a.b.c.d.
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((ip, 64), strict=False))


__all__ = ["Caller", "HttpAdmission", "Pool", "booked", "source_of"]
