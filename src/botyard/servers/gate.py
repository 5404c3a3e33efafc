"""Who has come to an HTTP server, and how much of it they may take: sockets, time and work. No sockets here, and time is an argument.

Whoever has not shown the token yet is a stranger. Anybody can be one, so strangers share little: few sockets, a few seconds for each thing
that they have begun, and a small part of the time. When there are too many, the oldest that does nothing goes, not the one that
comes: a browser with the token shows it within milliseconds, while those who only hold sockets wait and are the oldest soon.
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
"""Sockets of those who have not shown a token …"""
MAX_STRANGERS_EACH: Final = 32
"""… and of one source address (of IPv6: of one network of 64 bits)."""
MAX_HELD_UP: Final = 12
"""No more are taken while the messages of so many strangers wait: they wait outside, in the order in which they came."""
HELD_UP: Final = 0.02
"""It is looked at again after so long, s."""
MAX_GUESTS: Final = 256
"""Sockets of those who have; viewers have a limit of their own."""
REQUEST_TIME: Final = 5.0
"""A stranger has so long, s, for a request, from the first byte to the last; after the WebSocket's handshake for its first message."""
RESPONSE_TIME: Final = 30.0
"""… and to take the answer."""
GUEST_TIME: Final = 300.0
"""Those who showed the token have so long, s, for a request and its answer together."""
GOODBYE: Final = 3.0
"""A socket that is being closed is cut off after so long, s."""
ACCEPT_COST: Final = 3e-4
"""Taking a connection counts as so much work, s (measured: 0.2 to 0.3 ms with its end) …"""
ACCEPTING: Final = (0.1, 0.03)
"""… of so many s a second, and at once. It is no part of the strangers' other work, so that nobody waits outside for what others ask."""

WORK: Final = {None: ((0.05, 0.03), (0.1, 0.03)), False: ((0.1, 0.03), (0.2, 0.03)), True: ((0.3, 0.1), (0.4, 0.1))}
"""Work for a stranger (None), one who may look on (False) and one who may steer (True): s a second and s at once, of each connection
and of all of that kind together. What is done at once holds up a step, so that is little."""


class Caller:
    """One connection: whether it is a stranger's, until when it must have done something, and what its work may cost.

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
    """

    __slots__ = ("_gate", "address", "budget", "deadline", "drop", "is_held_up", "is_known", "source")

    def __init__(self, gate: Gate, address: str, drop: Callable[[], None], now: float) -> None:
        self._gate = gate
        self.address = address
        self.source = source_of(address)
        self.drop = drop
        self.is_known = False
        self.is_held_up = False
        """Whether it has sent something that was not looked at yet."""
        self.budget = gate.budget(None, now)
        self.deadline: float | None = now + REQUEST_TIME

    def begins(self, now: float) -> None:
        """The head of a request has come."""
        self.deadline = now + (GUEST_TIME if self.is_known else RESPONSE_TIME)

    def ends(self, now: float) -> None:
        """An answer is complete; the next request may come."""
        self.deadline = now + REQUEST_TIME

    def stays(self) -> None:
        """It may stay as long as it likes: a viewer."""
        self.deadline = None

    def closes(self, now: float) -> None:
        """It is being closed."""
        self.deadline = now + GOODBYE

    def shows(self, steers: bool, now: float) -> None:
        """It has shown the token: no stranger any more."""
        self.budget = self._gate.budget(steers, now)
        if not self.is_known:
            self._gate.knows(self)
            self.deadline = None if self.deadline is None else now + GUEST_TIME


class Member(Protocol):
    """A connection: where it comes from, and until when it must have done something, s of wall time."""

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


M = TypeVar("M", bound=Member)


class Pool(Generic[M]):
    """Connections in the order in which they came, by their sources.

    Parameters
    ----------
    most, most_each : int
        So many may be there, and of one source.
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
        return self._count < self._most and len(self._callers.get(source, ())) < self._most_each

    def add(self, caller: M) -> M | None:
        """One comes; the one that has to go for it, if there are too many."""
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
        """Those whose time is over."""
        return [c for c in self if c.deadline is not None and now > c.deadline]


def _first_idle(callers: dict[M, None], newest: M) -> M:
    """The oldest that has had its chance; if all are held up by us, the oldest."""
    return next((c for c in callers if not c.is_held_up and c is not newest), next(iter(callers)))


class Gate:
    """All connections of a server.

    Parameters
    ----------
    now : float
        Wall time, s.
    """

    def __init__(self, now: float) -> None:
        self._strangers = Pool[Caller](MAX_STRANGERS, MAX_STRANGERS_EACH)
        self._guests = Pool[Caller](MAX_GUESTS, MAX_GUESTS)
        self._shared = {who: TokenBucket(*together, now) for who, (_, together) in WORK.items()}
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
        """Until the next connection may be taken, s; 0: at once. Taking it costs work, whoever it is."""
        wait = self._accepting.wait(now)
        return wait or (HELD_UP if self._strangers.held_up() >= MAX_HELD_UP else 0.0)

    def comes(self, address: str, drop: Callable[[], None], now: float) -> Caller:
        """A connection is there."""
        self._accepting.spend(now, ACCEPT_COST)
        caller = Caller(self, address, drop, now)
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
    work: Coroutine[Any, Any, T], spend: Callable[[float], None], clock: Callable[[], float] = time.thread_time
) -> Generator[Any, Any, T]:
    """Await `work` and book the processor time of each of its turns of the event loop, s; that for which it waits costs nothing."""
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
        except BaseException as error:  # thrown in from outside, as when a task is cancelled
            value, advance = error, work.throw


def source_of(address: str) -> str:
    """What counts as one source: an IPv4 address, or a network of 64 bits, which one machine may have to itself (RFC 6177)."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((ip, 64), strict=False))


__all__ = ["Caller", "Gate", "Pool", "booked", "source_of"]
