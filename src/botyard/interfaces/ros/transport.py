"""Interfaces between the ROS graph and its transports.

The module defines messages that are encoded once, and the methods of a transport.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.types import Types


class EncodedMessage:
    """Message of a topic, encoded lazily and once for each wire format.

    Parameters
    ----------
    types : Types
        Message types.
    topic : Topic
        The topic.
    stamp : Stamp
        Time of the present state; also an attribute.
    """

    __slots__ = ("_cdr", "_message", "_quick", "_ros1", "_topic", "_types", "stamp")

    def __init__(self, types: Types, topic: Topic, stamp: Stamp) -> None:
        self._types = types
        self._topic = topic
        self.stamp = stamp
        # A fast encoder writes bytes straight from arrays, without a message object.
        self._quick = topic.quick
        self._message = topic.make(stamp) if topic.quick is None else None
        self._ros1: bytes | None = None
        self._cdr: bytes | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether there is no message to publish."""
        return self._message is None and self._quick is None

    @property
    def message(self) -> Any:
        """Message as an object of its ROS 1 class.

        The forms `message`, `ros1` and `cdr` are made on demand from the present state,
        so read them before the next step.
        """
        # With a fast encoder the message is made only for transports that need it.
        if self._message is None:
            self._message = self._topic.make(self.stamp)
        return self._message

    @property
    def ros1(self) -> bytes:
        """Message in ROS 1's format, as bytes."""
        if self._ros1 is None:
            quick = self._quick
            self._ros1 = (
                quick("ros1", self.stamp)
                if quick
                else self._types.encode_ros1(self._message, self._topic.type_name)
            )

        return self._ros1

    @property
    def cdr(self) -> bytes:
        """Message as CDR bytes (ROS 2)."""
        if self._cdr is None:
            quick = self._quick
            self._cdr = (
                quick("cdr", self.stamp)
                if quick
                else self._types.encode_cdr(self._message, self._topic.type_name)
            )

        return self._cdr


class Publication(Protocol):
    """Interface of the publisher of a topic on one transport."""

    @property
    def is_wanted(self) -> bool:
        """Whether a message of the topic is needed.

        A message is needed if the topic has a subscriber, or if the transport keeps the
        last message for later subscribers.
        """
        ...

    @property
    def reader_count(self) -> int:
        """Number of readers; a transport that does not know it returns its best estimate."""
        ...

    @property
    def replays_latched(self) -> bool:
        """Whether a new subscriber of a latched topic gets the present message at once.

        If it is False, the transport itself keeps the last message for later
        subscribers.
        """
        ...

    def send(self, message: EncodedMessage) -> None:
        """Send a message, without waiting.

        Parameters
        ----------
        message : EncodedMessage
            Message; the transport takes the wire format that it needs.
        """
        ...

    def close(self) -> None:
        """Unadvertise the topic."""
        ...


class Handle(Protocol):
    """Interface of a subscription or service server on one transport."""

    def close(self) -> None:
        """End the subscription, or withdraw the service."""
        ...


class Carrier(Protocol):
    """Interface of a transport that carries topics."""

    @property
    def wire(self) -> str:
        """Wire format of the transport: ``ros1`` or ``cdr``."""
        ...

    def advertise(
        self,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> Publication:
        """Advertise a topic.

        Parameters
        ----------
        node : str
            Name of the publishing node.
        topic : Topic
            The topic.
        fresh : callable
            Returns the present message of a latched topic, for a new subscriber.
        changed : callable
            Called in the simulator's thread when `Publication.is_wanted` has changed.
        """
        ...

    def listen(self, node: str, entry: Input) -> Handle:
        """Subscribe to a topic.

        Parameters
        ----------
        node : str
            Absolute name of the node that subscribes.
        entry : Input
            Name and type of the topic, and the function that takes its messages.

        Returns
        -------
        Handle
            Subscription; `close` ends it.
        """
        ...


class Transport(Carrier, Protocol):
    """Interface of a transport that carries topics and services."""

    @property
    def mixes_types(self) -> bool:
        """Whether inputs of the same topic name may have different types, as in ROS 2.

        Otherwise only the first input of a name is subscribed to.
        """
        ...

    def serve(self, node: str, service: Service) -> Handle:
        """Offer a service.

        Parameters
        ----------
        node : str
            Absolute name of the node that serves.
        service : Service
            Name and type of the service, and the function that answers.

        Returns
        -------
        Handle
            Server; `close` withdraws the service.
        """
        ...


__all__ = ["Carrier", "EncodedMessage", "Handle", "Publication", "Transport"]
