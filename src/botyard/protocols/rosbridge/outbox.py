"""Queues of one client of rosbridge.

They hold answers, and the messages of the client's subscriptions with their throttling.
All queues are bounded: for a client that does not read, at most `MAX_WAITING` of
messages wait, and the oldest messages are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from botyard.protocols.rosbridge.encodings import (
    COMPRESSIONS,
    MIN_FRAGMENT,
    Wire,
    fragments,
)
from botyard.protocols.rosbridge.operations import (
    MAX_QUEUE,
    MAX_THROTTLE_MS,
    Id,
    Subscribe,
)
from botyard.protocols.shares import ENTRY_BYTES, Account, Shares, cost

MAX_WAITING: Final = 16 << 20
"""Limit of the queued messages of a client, characters and bytes.

The newest message is kept whatever its size.
"""
MAX_ADDRESS_WAITING: Final = 128 << 20
"""Limit of the queued messages of one address, and of its answers, characters and bytes.

The clients of an address have equal parts of it.
"""
MAX_ANSWERS: Final = 1000
"""Limit of a client's queued answers; beyond it, the client is disconnected."""
MAX_FEEDBACK: Final = 100
"""Number of queued answers from which on a client gets no more feedback of its goals."""
MAX_ANSWER_SIZE: Final = 16 << 20
"""Limit of a client's queued answers, characters and bytes."""
MAX_REQUEST_SIZE: Final = 8 << 20
"""Limit of the queued calls and goals for a client that serves them.

The callers of one address have a quarter of it; one request always fits. Beyond the
limit, calls and goals fail, but the serving client stays connected.
"""
SLACK: Final = 0.1
"""Fraction of the throttle interval by which a message may be early.

It allows for steps of the world at slightly irregular times.
"""


class Subscription:
    """A client's subscriptions to one topic.

    All of them share one queue, with the smallest of their throttle intervals and
    fragment sizes, and the greatest of their queue lengths.

    Parameters
    ----------
    name : str
        Name of the topic as the client writes it.

    Attributes
    ----------
    name : str
        Name of the topic as the client writes it.
    compression : str
        One of `COMPRESSIONS`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.compression = "none"
        self.fragment = 0
        self.throttle = 0.0
        self.length = 0
        self.due = 0.0
        """Time at which the next message may be sent, s."""
        self.held: deque[Wire] = deque()
        """Messages that are delayed by throttling."""
        self.queue: deque[Wire] = deque()
        """Messages that wait for the client to read."""
        self._chosen: dict[Id, Subscribe] = {}

    @property
    def is_over(self) -> bool:
        """Whether no subscription is left."""
        return not self._chosen

    @property
    def size(self) -> int:
        """Memory of the client's subscriptions to the topic, bytes."""
        return sum(
            cost(w.topic, w.id, w.type, w.compression) for w in self._chosen.values()
        )

    def add(self, request: Subscribe, most: int) -> bool:
        """Add or replace a subscription; return False if the limit `most` is reached.

        Parameters
        ----------
        request : Subscribe
            Settings that the client requests. A request of the same id replaces the
            earlier one.
        most : int
            Limit of the subscriptions to one topic.
        """
        if request.id not in self._chosen and len(self._chosen) >= most:
            return False
        self._chosen[request.id] = request
        self._choose()
        return True

    def remove(self, ident: Id) -> None:
        """Remove the subscription with an id, or with None all subscriptions.

        Parameters
        ----------
        ident : str, int, float or None
            Id of the subscription. An unknown id is ignored.
        """
        if ident is None:
            self._chosen.clear()
        else:
            self._chosen.pop(ident, None)

        if self._chosen:
            self._choose()

    def _choose(self) -> None:
        """Combine the settings of all subscriptions of the topic."""
        wishes = self._chosen.values()
        least = min(
            max(0.0, min(w.throttle_rate or 0.0, MAX_THROTTLE_MS)) for w in wishes
        )
        self.throttle = least / 1000.0

        # Values of clients are clamped, not refused, as in rosbridge_suite.
        self.length = min(MAX_QUEUE, max(max(0, w.queue_length or 0) for w in wishes))

        pieces = [
            max(MIN_FRAGMENT, w.fragment_size)
            for w in wishes
            if w.fragment_size and w.fragment_size > 0
        ]
        self.fragment = min(pieces, default=0)

        asked = {w.compression for w in wishes}
        # A client gets a topic in one compression: the first in this order that one of
        # its subscriptions requests.
        self.compression = next((c for c in COMPRESSIONS[1:] if c in asked), "none")


class Outbox:
    """All queues of a client.

    Parameters
    ----------
    account : Account
        Memory account of the client, which knows how many clients share its address.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._newest = 0
        self._answers: deque[tuple[Wire, int, str | None]] = deque()
        """Answers with their fragment sizes, and requests of other clients with their addresses."""
        self._requests = Shares(MAX_REQUEST_SIZE)
        self._request_count = 0
        self._answer_size = 0
        self._order: deque[Subscription] = deque()
        self._size = 0
        self._held: dict[Subscription, None] = {}
        self._pieces: Iterator[str] = iter(())
        self._cuts = 0

    @property
    def is_overfull(self) -> bool:
        """Whether so many answers wait that the client must be disconnected."""
        return (
            len(self._answers) - self._request_count > MAX_ANSWERS
            or self._answer_size - self._newest > self._most(MAX_ANSWER_SIZE)
        )

    def _most(self, size: int) -> int:
        return self._account.part(size, MAX_ADDRESS_WAITING)

    @property
    def has_room(self) -> bool:
        """Whether the client has so few unread answers that it still gets feedback of its goals."""
        own = len(self._answers) - self._request_count
        return (
            own < MAX_FEEDBACK and self._answer_size < self._most(MAX_ANSWER_SIZE) // 2
        )

    def fits(self, size: int) -> bool:
        """Return whether an answer of this size may be added.

        Parameters
        ----------
        size : int
            Characters or bytes. A single answer of any size fits into an empty queue.
        """
        return not self._answer_size or self._answer_size + size <= self._most(
            MAX_ANSWER_SIZE
        )

    def answer(self, wire: Wire, fragment: int = 0) -> None:
        """Add an answer, to be sent in fragments of this size, or whole for 0.

        Parameters
        ----------
        wire : str or bytes
            Encoded WebSocket message, text or binary.
        fragment : int
            Longest piece, characters; bytes are sent whole.
        """
        self._answers.append((wire, fragment, None))
        # `is_overfull` does not count the newest answer, because a single answer may be
        # long.
        self._newest = len(wire)
        self._answer_size += len(wire)

    def request(self, wire: Wire, whose: str) -> bool:
        """Add a request of another client; return False if there is no room.

        The size of the request counts towards the limit of the other client's address.

        Parameters
        ----------
        wire : str or bytes
            Encoded WebSocket message, text or binary.
        whose : str
            Address of the client that sends the request.
        """
        if not self._requests.take(whose, len(wire) + ENTRY_BYTES, is_first_free=True):
            return False
        self._answers.append((wire, 0, whose))
        self._request_count += 1
        return True

    def is_wanted(self, to: Subscription, now: float, latched: bool) -> bool:
        """Return whether throttling does not drop a message: it is sent now or later.

        A message of a latched topic always passes, because it may be the last one.

        Parameters
        ----------
        to : Subscription
            Subscription of the client.
        now : float
            Wall time, s.
        latched : bool
            Whether the topic is latched.
        """
        return not to.throttle or latched or bool(to.length) or self._is_due(to, now)

    def _is_due(self, to: Subscription, now: float) -> bool:
        return not to.held and now >= to.due - SLACK * to.throttle

    def add(self, to: Subscription, wire: Wire, now: float, most: int) -> None:
        """Add a message of a topic, of which `most` messages may wait for the client to read.

        Parameters
        ----------
        to : Subscription
            Subscription of the client.
        wire : str or bytes
            Encoded WebSocket message, text or binary.
        now : float
            Wall time, s.
        most : int
            Queue length of the topic. A longer queue of the client replaces it.
        """
        if to.throttle and not self._is_due(to, now):
            # Without a queue, the newest message replaces the waiting one.
            if len(to.held) >= max(1, to.length):
                self._size -= len(to.held.popleft())
            to.held.append(wire)
            self._size += len(wire)
            self._held[to] = None
        else:
            self._send(to, wire, now, most)

        self._make_room()

    def _send(self, to: Subscription, wire: Wire, now: float, most: int) -> None:
        # Add the interval to the last due time, not to `now`, so that the average rate
        # is kept.
        if to.throttle:
            to.due = max(to.due, now - SLACK * to.throttle) + to.throttle
        if len(to.queue) >= max(1, most, to.length):
            # The queue is full: the new message replaces the oldest one in the order of
            # sending.
            self._size -= len(to.queue.popleft())
        else:
            # One entry for each queued message keeps the order over all topics.
            self._order.append(to)

        to.queue.append(wire)
        self._size += len(wire)

    def _make_room(self) -> None:
        """Drop the oldest messages while there are too many, but never the newest."""
        most = self._most(MAX_WAITING)
        while (
            self._size > most
            and len(self._order) + sum(len(s.held) for s in self._held) > 1
        ):
            if self._order:
                self._size -= len(self._order.popleft().queue.popleft())
            else:
                to = next(iter(self._held))
                self._size -= len(to.held.popleft())
                self._let_go(to)

    def _let_go(self, to: Subscription) -> None:
        if not to.held:
            self._held.pop(to, None)

    def forget(self, to: Subscription) -> None:
        """Drop the messages of a subscription that has ended.

        Parameters
        ----------
        to : Subscription
            The ended subscription.
        """
        self._size -= sum(map(len, to.queue)) + sum(map(len, to.held))
        to.held.clear()
        self._held.pop(to, None)
        if to.queue:
            to.queue.clear()
            # Subscriptions rarely end, so this search is cheaper than an index for each
            # message.
            self._order = deque(s for s in self._order if s is not to)

    @property
    def due(self) -> float | None:
        """Time at which a delayed message may be sent, s; None if there is none."""
        return min((s.due for s in self._held), default=None)

    def release(self, now: float) -> None:
        """Move delayed messages that are now due to the queue of messages to send.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        for to in [s for s in self._held if now >= s.due]:
            wire = to.held.popleft()
            self._size -= len(wire)
            self._send(to, wire, now, MAX_QUEUE)
            self._let_go(to)

    def take(self) -> Wire:
        """Take the next WebSocket message; empty if there is none.

        Returns
        -------
        str or bytes
            The next fragment of a started message, the oldest answer or request, or the
            oldest message of all topics.
        """
        piece = next(self._pieces, None)
        if piece is not None:
            return piece
        # Answers are sent first, so that a flood of messages does not delay them.
        if self._answers:
            wire, fragment, whose = self._answers.popleft()
            if whose is None:
                self._answer_size -= len(wire)
            else:
                self._requests.give_back(whose, len(wire) + ENTRY_BYTES)
                self._request_count -= 1
        elif self._order:
            to = self._order.popleft()
            wire, fragment = to.queue.popleft(), to.fragment
            self._size -= len(wire)
        else:
            return b""

        # Only JSON texts can be sent in fragments.
        if not fragment or not isinstance(wire, str) or len(wire) <= fragment:
            return wire
        # A client assembles fragments by this id, so it must be unique.
        self._cuts += 1
        self._pieces = fragments(wire, fragment, f"{self._cuts}")
        return next(self._pieces)


__all__ = [
    "MAX_ANSWERS",
    "MAX_ANSWER_SIZE",
    "MAX_REQUEST_SIZE",
    "MAX_WAITING",
    "Outbox",
    "Subscription",
]
