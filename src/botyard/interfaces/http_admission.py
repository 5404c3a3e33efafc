"""Admission control of an HTTP server: limits of connections, deadlines and CPU time.

The module performs no input or output: time is an argument.

The token is the secret in the page's URL. A connection that has not shown it is a
*stranger*; a connection that has shown it is a *guest*. Anyone can open a connection
without a token, so strangers share few sockets, short deadlines, and a small share of
CPU time. When there are too many, the oldest idle
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

# A browser opens about six connections before it shows the token, so this serves
# several browsers at once.
MAX_STRANGERS: Final = 64
"""Largest number of connections that have not shown a token."""
MAX_STRANGERS_EACH: Final = 32
"""Largest number of strangers from one source address (IPv6: one /64 network)."""
MAX_HELD_UP: Final = 12
"""Number of strangers with unprocessed data from which on no connection is accepted.

New connections then queue in the listen backlog of the socket.
"""
BACKLOG_RETRY_S: Final = 0.02
"""Delay before the server tries to accept again, s."""
# A client with the token is trusted, but a faulty script of it may still leak
# connections.
MAX_GUESTS: Final = 256
"""Largest number of guests; viewers (pages with a WebSocket) have a separate limit."""
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

The server then causes the delay, not the client.
"""
# Without this limit, a peer that never closes its side would hold the socket.
CLOSE_TIMEOUT_S: Final = 3.0
"""Timeout of closing a connection, s; the connection is then aborted."""
ACCEPT_COST: Final = 3e-4
"""CPU time that is charged for accepting a connection, s.

Measured: 0.2 to 0.3 ms, including the end of the connection.
"""
ACCEPTING: Final = (0.1, 0.03)
"""Token bucket of the CPU time for accepting connections: sustained share, and burst, s.

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
    """Connection of a client: whether it has shown the token, its deadline and its CPU budget.

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
        # Each connection starts as a stranger, without any privilege: a known address
        # proves nothing.
        self.is_known = False
        self.is_held_up = False
        """Whether the connection has sent data that is not processed yet."""
        self.budget = gate.budget(None, now)
        self.deadline: float | None = now + REQUEST_TIME

    @property
    def has_unread(self) -> bool:
        """Whether data of the client waits for processing, here or in the transport."""
        return self.is_held_up or self._is_unread()

    def begins(self, now: float) -> None:
        """Set the deadline of a request whose head has been received.

        Parameters
        ----------
        now : float
            Wall time, s. A guest has `GUEST_TIME` from now, a stranger `RESPONSE_TIME`.
        """
        self.deadline = now + (GUEST_TIME if self.is_known else RESPONSE_TIME)

    def ends(self, now: float) -> None:
        """Set the deadline of the next request after a complete answer.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        self.deadline = now + REQUEST_TIME

    def keep_connected(self) -> None:
        """Remove the deadline, because the connection has become a viewer's WebSocket."""
        self.deadline = None

    def closes(self, now: float) -> None:
        """Set the deadline of a connection that the server closes.

        Parameters
        ----------
        now : float
            Wall time, s. The connection is aborted `CLOSE_TIMEOUT_S` later.
        """
        self.deadline = now + CLOSE_TIMEOUT_S

    def shows(self, steers: bool, now: float) -> None:
        """Record that the connection has sent a valid token.

        Parameters
        ----------
        steers : bool
            Whether the token permits control, not only viewing.
        now : float
            Wall time, s.
        """
        self.budget = self._gate.budget(steers, now)
        # The first token makes the connection a guest; later tokens only change its
        # budget.
        if not self.is_known:
            self._gate.knows(self)
            # A viewer (a page with a WebSocket) has no deadline, and must not get one
            # here.
            self.deadline = None if self.deadline is None else now + GUEST_TIME


class Member(Protocol):
    """Interface of a connection, as `Pool` uses it."""

    @property
    def source(self) -> str:
        """Source address or network of the connection, for the limits."""
        ...

    @property
    def deadline(self) -> float | None:
        """Deadline of the connection, s of wall time; None for no deadline."""
        ...

    @property
    def is_held_up(self) -> bool:
        """Whether the connection has sent data that is not processed yet."""
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
        Limits of the number of connections: in total, and from one source.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._callers: dict[str, dict[M, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[M]:
        # Return a list, so that callers may remove connections while they iterate.
        return iter([c for its in self._callers.values() for c in its])

    def has_room(self, source: str) -> bool:
        """Return whether a new connection of this source fits without dropping another one.

        Parameters
        ----------
        source : str
            Source as `source_of` returns it.
        """
        return (
            self._count < self._most
            and len(self._callers.get(source, ())) < self._most_each
        )

    def add(self, caller: M) -> M | None:
        """Add a connection, and find the one to drop if the pool is full.

        Parameters
        ----------
        caller : Member
            New connection, which is never the one to drop.

        Returns
        -------
        Member or None
            Connection that must be dropped and removed (`remove`); None if there is
            room. It is the oldest one without unprocessed data, or the oldest of all.
            It has the same source if that source has too many connections, otherwise
            the source with the most connections.
        """
        its = self._callers.setdefault(caller.source, {})
        its[caller] = None
        self._count += 1
        # Check the limit of one source first, so that a single machine never uses up
        # the total.
        if len(its) > self._most_each:
            return _first_idle(its, caller)
        if self._count > self._most:
            # The source with the most connections loses one, so that one address cannot
            # push out the others.
            crowded = max(self._callers, key=lambda source: len(self._callers[source]))
            return _first_idle(self._callers[crowded], caller)

        return None

    def remove(self, caller: M) -> bool:
        """Remove a connection; return whether it was in the pool.

        Parameters
        ----------
        caller : Member
            A connection.

        Returns
        -------
        bool
            False if it was not in the pool.
        """
        its = self._callers.get(caller.source)
        if its is None or caller not in its:
            return False
        del its[caller]
        self._count -= 1
        # An empty source is removed; otherwise addresses that connected only once would
        # fill the memory.
        if not its:
            del self._callers[caller.source]
        return True

    def held_up(self) -> int:
        """Return the number of connections with unprocessed data."""
        return sum(c.is_held_up for c in self)

    def overdue(self, now: float) -> list[M]:
        """Return the connections whose deadline has passed.

        Connections with unprocessed data get `UNREAD_GRACE_S` more time.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        # Filter twice: `has_unread` is slow because it asks the transport, so use it
        # for late connections only.
        late = [c for c in self if c.deadline is not None and now > c.deadline]
        return [
            c
            for c in late
            if not c.has_unread or now > (c.deadline or 0.0) + UNREAD_GRACE_S
        ]


def _first_idle(callers: dict[M, None], newest: M) -> M:
    """Return the oldest connection without unprocessed data, or else the oldest of all.

    A connection with unprocessed data may have sent its token already.
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
        # Guests have no limit per source: many viewers may share one proxy.
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
        """Return the CPU budget of a new connection; see `WORK`.

        Parameters
        ----------
        who : bool or None
            None for a stranger, False for a read-only viewer, True for a viewer with
            control.
        now : float
            Wall time, s.

        Returns
        -------
        Budget
            Budget with a bucket of its own and the bucket of all connections of that
            kind.
        """
        return Budget(TokenBucket(*WORK[who][0], now), self._shared[who])

    def wait(self, now: float) -> float:
        """Return the delay until the next connection may be accepted, s; 0 for none.

        Accepting costs CPU time for every connection, with or without a token.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        # Check the bucket first: it knows the exact delay. The number of strangers with
        # unprocessed data can only be checked again later.
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
        """Admit a new connection; the oldest idle one is dropped if there are too many.

        Parameters
        ----------
        address : str
            Address of the peer; `source_of` finds its source.
        drop : callable
            Aborts the connection at once; unsent data is lost.
        now : float
            Wall time, s.
        is_unread : callable
            Returns whether received bytes wait in the transport.

        Returns
        -------
        Caller
            The connection. It is a stranger, and its first request has a deadline.
        """
        # Charge the cost even if the connection is dropped at once, since accepting has
        # already used the time.
        self._accepting.spend(now, ACCEPT_COST)
        caller = Caller(self, address, drop, now, is_unread)
        self._drop(self._strangers.add(caller))
        return caller

    def knows(self, caller: Caller) -> None:
        """Move a connection that has shown the token from the strangers to the guests.

        Parameters
        ----------
        caller : Caller
            The connection; if there are too many guests, the oldest idle one is
            dropped.
        """
        caller.is_known = True
        if self._strangers.remove(caller):
            self._drop(self._guests.add(caller))

    def remove_connection(self, caller: Caller) -> None:
        """Remove a connection that has ended from all limits."""
        # A connection is in exactly one of the two pools.
        if not self._strangers.remove(caller):
            self._guests.remove(caller)

    def sweep(self, now: float) -> None:
        """Drop the connections whose deadline has passed.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        for pool in (self._strangers, self._guests):
            for caller in pool.overdue(now):
                self._drop(caller)

    def _drop(self, caller: Caller | None) -> None:
        if caller is not None:
            self.dropped += 1
            # Remove the connection first, because `drop` may call back into
            # `remove_connection`.
            self.remove_connection(caller)
            caller.drop()


@types.coroutine
def booked(
    work: Coroutine[Any, Any, T],
    spend: Callable[[float], None],
    clock: Callable[[], float] = time.thread_time,
) -> Generator[Any, Any, T]:
    """Await `work`, and report its CPU time.

    The time that `work` waits is not counted.

    Parameters
    ----------
    work : coroutine
        Coroutine to run; if the caller is cancelled, `work` gets the CancelledError.
    spend : callable
        Called with the CPU time of each iteration, s, also if it raised an exception.
    clock : callable
        Clock of the CPU time, s; by default of the present thread.

    Returns
    -------
    object
        Result of `work`.
    """
    # A hand-written `await`: each `send` runs the coroutine for one iteration of the
    # event loop, so that only CPU time is measured.
    advance, value = work.send, None
    while True:
        began = clock()
        try:
            # `send` is right for the first call as well, because `value` is None then.
            waits_for = advance(value)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            # The time is charged in `finally`, so that work that fails is not free.
            spend(clock() - began)

        try:
            value, advance = (yield waits_for), work.send
        except (
            BaseException
            # Pass on exceptions from the event loop, for example CancelledError: `work`
            # must see them.
        ) as error:
            value, advance = error, work.throw


def source_of(address: str) -> str:
    """Return the source of an address for rate limits.

    The source is an IPv4 address or an IPv6 /64 network, because one machine may own a
    whole /64 network (RFC 6177).

    Parameters
    ----------
    address : str
        Address of a peer, with or without a zone (``fe80::1%eth0``).

    Returns
    -------
    str
        Source; the address itself if it is no IP address. IPv4 addresses in IPv6 form
        (``::ffff:a.b.c.d``) count as IPv4.
    """
    try:
        # The part after % is the zone of a link-local address.
        ip = ipaddress.ip_address(address.partition("%")[0])
    # The address of a Unix socket or of a test transport is no IP address.
    except ValueError:
        return address

    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    # A dual-stack socket reports IPv4 clients as ::ffff:a.b.c.d.
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((ip, 64), strict=False))


__all__ = ["Caller", "HttpAdmission", "Pool", "booked", "source_of"]
