"""AMBF topics for clients without ROS: a topic transport over TCP.

`botyard.protocols.ambf.link` defines the format. Each client is a session on the
generic TCP pump (`botyard.servers.pump`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from botyard.errors import PeerError
from botyard.interfaces.interface import Door
from botyard.interfaces.ros.transport import EncodedMessage
from botyard.protocols.ambf.link import (
    Frame,
    FrameReader,
    Kind,
    LinkTopic,
    frame,
    topics_frame,
)
from botyard.protocols.ros_messages.graphoffers import Input, Topic
from botyard.protocols.ros_messages.types import Types

MAX_WAITING: Final = 1 << 20
"""Largest number of bytes of states that wait for one client (back-pressure).

States beyond the limit are dropped.
"""


class _Publication:
    def __init__(
        self, link: Link, number: int, topic: Topic, changed: Callable[[], None]
    ) -> None:
        self._link, self.number, self.topic, self.changed = link, number, topic, changed
        self.readers: list[LinkSession] = []

    @property
    def is_wanted(self) -> bool:
        return bool(self.readers)

    @property
    def reader_count(self) -> int:
        """Number of readers."""
        return len(self.readers)

    @property
    def replays_latched(self) -> bool:
        return True

    def send(self, message: EncodedMessage) -> None:
        data = frame(Kind.MESSAGE, self.number, message.ros1)
        for client in self.readers:
            client.send(data)

    def close(self) -> None:
        self._link.forget(self.number)


class _Subscription:
    def __init__(self, link: Link, number: int, entry: Input) -> None:
        self._link, self.number, self.input = link, number, entry
        self.last: tuple[bytes, Any] = (b"", None)
        """Bytes and decoded form of the last message: clients repeat messages, which
        then need no decoding.
        """

    def close(self) -> None:
        self._link.forget(self.number)


class LinkSession:
    """Session of one AMBF client without ROS.

    Parameters
    ----------
    link : Link
        Topics of the interface, shared by all sessions.
    door : Door
        Access to the simulator.
    """

    def __init__(self, link: Link, door: Door) -> None:
        self._link = link
        self._door = door
        self._reader = FrameReader()
        self._out: list[bytes] = []
        self._waiting = 0
        self._knows_topics = False
        self.is_closed = False
        link.clients.append(self)

    def receive_data(self, data: bytes, now: float) -> None:
        """Process received bytes, which may be cut anywhere; an invalid frame ends the session."""
        if self.is_closed:
            return
        try:
            for found in self._reader.feed_bytes(data):
                self._link.received(self, found)
                # Handling the frame may have closed the session.
                if self not in self._link.clients:
                    return
        except PeerError as error:
            self.complain(f"{error}; the connection is closed")
            self.close()

    def data_to_send(self) -> bytes:
        """Return and clear the output: the list of topics, if the client lacks it, and states."""
        if not self._knows_topics and not self.is_closed:
            self._knows_topics = True
            # Send the list first: a client needs it to know the numbers in the states.
            self._out.insert(0, self._link.topics())

        out, self._out, self._waiting = self._out, [], 0
        return out[0] if len(out) == 1 else b"".join(out)

    def next_timer(self) -> float | None:
        """Return None, because the session has no timers."""
        return None

    def handle_timer(self, now: float) -> None:
        """Do nothing, because the session has no timers."""

    def on_snapshot(self, now: float) -> None:
        """Do nothing: states are published at their own rates."""

    def close(self) -> None:
        """Release the session after its connection has ended."""
        if not self.is_closed:
            self.is_closed, self._out = True, []
            self._link.left(self)

    # -- called by the link

    def send(self, data: bytes) -> None:
        """Queue a state for the client, unless the client is slow to read.

        If more than `MAX_WAITING` bytes wait, the state is dropped; a later one
        replaces it.

        Parameters
        ----------
        data : bytes
            Complete frame.
        """
        # A client that does not read must not fill the memory.
        if self._waiting < MAX_WAITING:
            # The first state since the last output wakes the connection; later states
            # are sent with it.
            if not self._out:
                self._door.wake()
            self._out.append(data)
            self._waiting += len(data)

    def topics_changed(self) -> None:
        """Send the changed list of topics again."""
        # Several changes before the next output lead to one list.
        if self._knows_topics:
            self._knows_topics = False
            self._door.wake()

    def complain(self, text: str) -> None:
        """Log a problem with the client's messages.

        Parameters
        ----------
        text : str
            Text of the warning; the client's description precedes it.
        """
        self._door.warn(f"{self._door.caller}: {text}")


class Link:
    """Topics for AMBF clients without ROS, and the sessions of these clients.

    Parameters
    ----------
    types : Types
        Message types.
    generation : str
        Generation of the messages.
    """

    wire = "ros1"

    def __init__(self, types: Types, generation: str) -> None:
        self._types = types
        self._generation = generation
        self._numbers = itertools.count(1)
        self._publications: dict[int, _Publication] = {}
        self._subscriptions: dict[int, _Subscription] = {}
        self._topics = b""
        self.clients: list[LinkSession] = []

    def session(self, door: Door) -> LinkSession:
        """Create the session of a new client.

        Parameters
        ----------
        door : Door
            Access of the client to the simulator.
        """
        return LinkSession(self, door)

    # -- as a transport

    def advertise(
        self,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> _Publication:
        """Advertise a topic.

        Parameters
        ----------
        node : str
            Name of the node, which clients without ROS do not see.
        topic : Topic
            Name and type of the topic.
        fresh : callable
            Returns the last message for new subscribers; not used here, as states are
            published often.
        changed : callable
            Called after a client has subscribed or unsubscribed.

        Returns
        -------
        Publication
            Sender of the messages; `close` withdraws the topic.
        """
        publication = _Publication(self, next(self._numbers), topic, changed)
        self._publications[publication.number] = publication
        self._announce()
        return publication

    def listen(self, node: str, entry: Input) -> _Subscription:
        """Subscribe to a topic.

        Parameters
        ----------
        node : str
            Name of the node, which clients without ROS do not see.
        entry : Input
            Name and type of the topic, and the function that takes its messages.

        Returns
        -------
        Handle
            Subscription; `close` ends it.
        """
        subscription = _Subscription(self, next(self._numbers), entry)
        self._subscriptions[subscription.number] = subscription
        self._announce()
        return subscription

    def forget(self, number: int) -> None:
        """Remove a topic.

        Parameters
        ----------
        number : int
            Number of a publication or a subscription; the two share one sequence of
            numbers.
        """
        self._publications.pop(number, None)
        self._subscriptions.pop(number, None)
        self._announce()

    # -- clients

    def topics(self) -> bytes:
        """Return the frame with the list of topics, encoded once for all clients."""
        if self._topics:
            return self._topics
        found = [
            LinkTopic(n, p.topic.name, p.topic.type_name, True)
            for n, p in self._publications.items()
        ]
        found += [
            LinkTopic(n, s.input.name, s.input.type_name, False)
            for n, s in self._subscriptions.items()
        ]
        self._topics = topics_frame(self._generation, found)
        return self._topics

    def _announce(self) -> None:
        """Send the changed list of topics to all clients."""
        self._topics = b""
        for client in tuple(self.clients):
            client.topics_changed()

    def received(self, client: LinkSession, found: Frame) -> None:
        """Process a frame that a client has sent.

        Raises
        ------
        PeerError
            The frame is invalid.
        """
        if found.kind is Kind.MESSAGE:
            subscription = self._subscriptions.get(found.number)
            if subscription is None:
                # The topic was removed while the frame was in transit.
                return

            # Clients repeat the same command at high rates, so decode only a command
            # that differs from the last one.
            if found.data != subscription.last[0] or not found.data:
                try:
                    subscription.last = (
                        found.data,
                        self._types.decode_ros1(
                            found.data, subscription.input.type_name
                        ),
                    )
                except PeerError as error:
                    client.complain(
                        f"command for {subscription.input.name} ignored: {error}"
                    )
                    return

            subscription.input.take(subscription.last[1])
        elif found.kind in (Kind.READ, Kind.LEAVE):
            publication = self._publications.get(found.number)
            if publication is None:
                return
            if found.kind is Kind.READ and client not in publication.readers:
                publication.readers.append(client)
            elif found.kind is Kind.LEAVE and client in publication.readers:
                publication.readers.remove(client)

            publication.changed()
        else:
            raise PeerError(
                "link: expected MESSAGE, READ or LEAVE, found TOPICS, which only "
                "the simulator sends"
            )

    def left(self, client: LinkSession) -> None:
        """Release a client that has disconnected.

        Parameters
        ----------
        client : LinkSession
            Session that has ended. A second call for the same session does nothing.
        """
        if client in self.clients:
            self.clients.remove(client)
        for publication in tuple(self._publications.values()):
            if client in publication.readers:
                publication.readers.remove(client)
                publication.changed()


__all__ = ["Link", "LinkSession"]
