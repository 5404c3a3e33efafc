"""Clients and ROS topics of a running simulator, for operators (`Census`).

Servers register functions that describe their clients. These functions are called only
while an operator views the list of clients, so otherwise the description costs no time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

MAX_CLIENTS: Final = 2000
"""Largest number of clients that are described."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFacts:
    """Description of a connected client.

    Counts are from the start of the connection; None: not known.

    Attributes
    ----------
    key : int
        Number of the client, which no other connected client has.
    protocol, address : str
        Its protocol, and its address.
    caller : int
        ``id`` of the `Caller.key` of its operations; 0: it performs none.
    about : str
        Further description, such as the name of a ROS node.
    robot : str
        Robot that it commands; empty if it can command several.
    received, sent : int or None
        Bytes from the client, and bytes that it has acknowledged.
    latency : float or None
        Round-trip time of the network, s.
    dropped : int or None
        Number of messages that it missed because it reads slowly.
    """

    key: int
    protocol: str
    address: str
    caller: int = 0
    about: str = ""
    robot: str = ""
    received: int | None = None
    sent: int | None = None
    latency: float | None = None
    dropped: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """Description of a ROS topic.

    Attributes
    ----------
    name, type_name, about : str
        Absolute name, type, and one line of description.
    is_input : bool
        Whether the simulator subscribes to it; otherwise it publishes it.
    count : int
        Number of messages so far.
    readers : int
        Number of readers outside the simulator; 0 for an input.
    robot : str
        Robot to which it belongs; empty: the world.
    """

    name: str
    type_name: str
    about: str
    is_input: bool
    count: int
    readers: int = 0
    robot: str = ""


class Topics(Protocol):
    """ROS topics of a running simulator."""

    def topics(self) -> Iterable[TopicFacts]:
        """Yield all topics."""
        ...

    def look(self, name: str) -> str | None:
        """Return the last message of a topic as text; None while there is none.

        The first call subscribes to the topic.

        Parameters
        ----------
        name : str
            Absolute name of the topic.

        Raises
        ------
        UnknownNameError
            The simulator publishes no topic of this name.
        """
        ...

    def end_looks(self, *, every: bool = False) -> None:
        """Unsubscribe from the topics that were not looked at for a few seconds.

        Parameters
        ----------
        every : bool
            Unsubscribe from all topics.
        """
        ...


Source = Callable[[], Iterable[ClientFacts]]


class Census:
    """Register of the functions that describe clients, and of the ROS topics.

    Attributes
    ----------
    topics : Topics or None
        ROS topics; None while there are none.
    """

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self.topics: Topics | None = None

    def add(self, source: Source) -> Callable[[], None]:
        """Register a function that describes clients.

        Parameters
        ----------
        source : callable
            Returns descriptions of the clients that are connected now.

        Returns
        -------
        callable
            Unregisters it.
        """
        self._sources.append(source)
        return lambda: self._remove(source)

    def _remove(self, source: Source) -> None:
        if source in self._sources:
            self._sources.remove(source)

    def clients(self) -> list[ClientFacts]:
        """Return descriptions of all clients, at most `MAX_CLIENTS`."""
        every = itertools.chain.from_iterable(source() for source in self._sources)
        return list(itertools.islice(every, MAX_CLIENTS))


__all__ = ["MAX_CLIENTS", "Census", "ClientFacts", "Source", "TopicFacts", "Topics"]
