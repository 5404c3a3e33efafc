"""Topics as rosbridge's clients see them: readers, publishers and messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from botyard.interfaces.ros.transport import EncodedMessage
from botyard.protocols.ros_messages.graphoffers import Input, Topic
from botyard.protocols.ros_messages.typenames import full
from botyard.protocols.rosbridge.encodings import Outgoing
from botyard.protocols.rosbridge.session import RosbridgeSession
from botyard.protocols.rosbridge.values import Values

CLIENTS: Final = "/rosbridge_websocket"
"""Name of the node to which the clients' topics and services belong, as in rosbridge_server."""
RELAY_QUEUE: Final = 10
"""Number of messages of other clients that may wait for a slow subscriber of a topic."""
JSON_GROWTH: Final = 4
"""Approximate limit of the size of a message as JSON, as a multiple of its size as CDR.

JSON text that is longer than this multiple of the limit for CDR is refused without
parsing.
"""


def resolved(name: str) -> str:
    """Return the absolute name of a topic or service.

    Parameters
    ----------
    name : str
        Name as a client wrote it, perhaps without the leading slash.
    """
    return name if name.startswith("/") else f"/{name}"


class Bridge(Protocol):
    """Interface of `botyard.interfaces.ros.rosbridge.Rosbridge` that topics use."""

    @property
    def values(self) -> Values:
        """Conversion of messages for clients."""
        ...

    def channel(self, name: str) -> Channel:
        """Return a topic, which is created on first use.

        Parameters
        ----------
        name : str
            Absolute name, as `resolved` returns it.
        """
        ...

    def remove_unused(self, channel: Channel) -> None:
        """Remove a topic without publishers and subscribers.

        Parameters
        ----------
        channel : Channel
            The topic. If it has a publisher or a subscriber, nothing happens.
        """
        ...


class Reader(Protocol):
    """Interface of a reader of a topic: a client's session, or `Goals` for feedback of actions."""

    def deliver(
        self, topic: str, message: Outgoing, *, latched: bool, queue: int
    ) -> None:
        """Accept a message of the topic.

        Parameters
        ----------
        topic : str
            Name used in the subscription, which may lack the leading slash.
        message : Outgoing
            Message, encoded once for each form.
        latched : bool
            Whether the topic is latched. Throttling then does not drop the message,
            because it may be the last one.
        queue : int
            Number of messages of the topic that may wait for the reader.
        """
        ...


class Channel:
    """Topic with at least one publisher or subscriber.

    Attributes
    ----------
    type_name : str
        ROS 2 name of its type; empty while it is unknown. The simulator may subscribe
        to messages of further types.
    readers : dict
        Sessions that subscribe to it, with the names that they use.
    writers : dict
        Sessions that advertise it, with the types that they name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.type_name = ""
        self.readers: dict[tuple[Reader, str], None] = {}
        self.writers: dict[RosbridgeSession, str] = {}
        self.publications: list[BridgePublication] = []
        self.inputs: list[BridgeListening] = []

    @property
    def is_known(self) -> bool:
        """Whether the topic has a publisher, or the simulator subscribes to it."""
        return bool(self.publications or self.inputs or self.writers)

    @property
    def publishers(self) -> list[str]:
        """Nodes that publish the topic."""
        return [one.node for one in self.publications] + (
            [CLIENTS] if self.writers else []
        )

    @property
    def subscribers(self) -> list[str]:
        """Nodes that subscribe to the topic."""
        return [one.node for one in self.inputs] + ([CLIENTS] if self.readers else [])

    def changed(self) -> None:
        """Notify the publishers of the topic that a reader was added or removed."""
        for publication in self.publications:
            publication.changed()

    def deliver(
        self, message: Outgoing, *, latched: bool = False, queue: int = RELAY_QUEUE
    ) -> None:
        """Send a message to all readers of the topic.

        Parameters
        ----------
        message : Outgoing
            Message, encoded once for each form.
        latched : bool
            Whether the topic is latched.
        queue : int
            Number of messages of the topic that may wait for each reader; the default
            is for messages from client to client.
        """
        # Loop over a copy: a client that reads too slowly may be removed during the
        # loop.
        for reader, name in tuple(self.readers):
            reader.deliver(name, message, latched=latched, queue=queue)


class BridgePublication:
    """Publication of a topic to rosbridge clients; see `transport.Publication`."""

    replays_latched = True

    def __init__(
        self,
        bridge: Bridge,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> None:
        self._bridge = bridge
        self.node = node
        self.topic = topic
        self.changed = changed
        self._fresh = fresh
        self._type = full(topic.type_name)
        self._last: tuple[EncodedMessage, Outgoing] | None = None
        """Last message of a latched topic, which all new subscribers get."""
        self.channel = bridge.channel(topic.name)
        self.channel.type_name = self._type
        self.channel.publications.append(self)

    @property
    def is_wanted(self) -> bool:
        """Whether the topic has a subscriber."""
        return bool(self.channel.readers)

    @property
    def reader_count(self) -> int:
        """Number of readers."""
        return len(self.channel.readers)

    def send(self, message: EncodedMessage) -> None:
        """Send a message to all subscribers."""
        self.channel.deliver(
            self._outgoing(message), latched=self.topic.latched, queue=self.topic.queue
        )

    def welcome(self, client: Reader, name: str) -> None:
        """Send the last message of a latched topic to a new subscriber.

        Parameters
        ----------
        client : Reader
            New subscriber.
        name : str
            Name used in the subscription, which may lack the leading slash.
        """
        last = self._fresh() if self.topic.latched else None
        if last is not None:
            client.deliver(
                name, self._outgoing(last), latched=True, queue=self.topic.queue
            )

    def _outgoing(self, message: EncodedMessage) -> Outgoing:
        if self._last is not None and self._last[0] is message:
            return self._last[1]
        values = self._bridge.values
        # Functions make the forms on demand, because subscribers may need the values,
        # the CDR, or both.
        made = Outgoing(
            lambda: values.plain(message.message, self._type),
            lambda: message.cdr,
            message.stamp,
        )
        if self.topic.latched:
            self._last = message, made
        return made

    def close(self) -> None:
        """Unadvertise the topic; its subscribers stay."""
        self.channel.publications.remove(self)
        self._bridge.remove_unused(self.channel)


class BridgeListening:
    """Subscription of the simulator to a topic that clients publish."""

    def __init__(self, bridge: Bridge, node: str, entry: Input) -> None:
        self._bridge = bridge
        self.node = node
        self.entry = entry
        self.type_name = full(entry.type_name)
        self.channel = bridge.channel(entry.name)
        self.channel.type_name = self.channel.type_name or self.type_name
        self.channel.inputs.append(self)

    def close(self) -> None:
        """End the subscription."""
        self.channel.inputs.remove(self)
        self._bridge.remove_unused(self.channel)


__all__ = [
    "CLIENTS",
    "JSON_GROWTH",
    "BridgeListening",
    "BridgePublication",
    "Channel",
    "Reader",
    "resolved",
]
