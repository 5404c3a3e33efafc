"""TCPROS connections of publishers, subscribers and service clients, sans-I/O.

Source: wiki.ros.org/ROS/TCPROS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from botyard.errors import PeerError
from botyard.names import shown
from botyard.protocols.ros_messages.limits import MAX_REQUEST
from botyard.protocols.tcpros import api, wire

ANY: Final = "*"
MAX_PROBLEM: Final = 500
"""Longest reason of a refusal, characters."""

KEPT_FIELDS: Final = frozenset(["callerid", "persistent", "tcp_nodelay"])
"""Fields of a peer's header that are kept; others are dropped, because a header may have 64 KiB."""


class Offer(Protocol):
    """Topic or service that a node offers to peers."""

    @property
    def name(self) -> str:
        """Absolute name of the topic or service."""
        ...

    @property
    def type_name(self) -> str:
        """Type of the topic or service, for example ``nav_msgs/Odometry``."""
        ...

    @property
    def md5(self) -> str:
        """MD5 sum of the type's definition."""
        ...


class TopicOffer(Offer, Protocol):
    """Topic that a node publishes."""

    @property
    def definition(self) -> str:
        """Full text of the message's definition."""
        ...

    @property
    def latched(self) -> bool:
        """Whether new subscribers get the last message."""
        ...

    @property
    def queue(self) -> int:
        """Queue length for a slow subscriber; the oldest messages are dropped."""
        ...


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Event: a subscriber has connected.

    Attributes
    ----------
    offer : TopicOffer
        Topic to which it has subscribed.
    caller : str
        Name of the subscriber; escaped.
    """

    offer: TopicOffer
    caller: str


@dataclass(frozen=True, slots=True)
class Requested:
    """Event: a client calls a service with these bytes.

    Attributes
    ----------
    offer : Offer
        Service that is called.
    body : bytes
        Request in ROS 1's format.
    """

    offer: Offer
    body: bytes


Event = Subscribed | Requested


class Incoming:
    """Incoming connection of a node.

    Parameters
    ----------
    node : str
        Name of the node.
    topics, services : mapping
        The node's topics and services by absolute name; looked up when the peer's
        header has arrived.

    Attributes
    ----------
    header : dict or None
        Kept fields of the peer's header; None until it has arrived.
    topic, service : TopicOffer or Offer or None
        Accepted offer; both None until then, or for a refused peer.
    """

    def __init__(
        self, node: str, topics: Mapping[str, TopicOffer], services: Mapping[str, Offer]
    ) -> None:
        self._node = node
        self._topics = topics
        self._services = services
        self._frames = wire.Frames(MAX_REQUEST)
        self._out = bytearray()
        self._subscribed: Subscribed | None = None
        self.header: dict[str, str] | None = None
        self.topic: TopicOffer | None = None
        self.service: Offer | None = None
        self.problem = ""
        """Reason why the connection was refused or ended; escaped."""
        self.is_closing = False
        """Whether to close the connection after all output is written."""

    @property
    def caller(self) -> str:
        """Caller id of the peer; escaped."""
        return shown((self.header or {}).get("callerid", "?"), api.MAX_NAME)

    @property
    def waiting(self) -> int:
        """Number of received bytes that are not yet part of an event."""
        return self._frames.waiting

    @property
    def is_waited_for(self) -> bool:
        """Whether the peer's header or a request is incomplete (subject to a timeout)."""
        return self.header is None or (
            self.service is not None and not self._frames.is_empty
        )

    def receive_data(self, data: bytes) -> None:
        """Feed bytes from the peer.

        Parameters
        ----------
        data : bytes
            Next bytes of the stream, cut anywhere. Invalid bytes end the connection
            without an exception.
        """
        # A subscriber sends nothing after its header; anything else is dropped.
        if self.is_closing or self.topic is not None:
            return

        self._frames.add(data)
        if self.header is not None:
            return
        try:
            body = self._frames.next()
            if body is not None:
                self._handle_header(wire.decode_header(body))
        except PeerError as error:
            self._refuse(str(error))

    def _handle_header(self, header: dict[str, str]) -> None:
        self.header = {
            name: value[: api.MAX_NAME]
            for name, value in header.items()
            if name in KEPT_FIELDS
        }
        if "service" in header:
            self._begin_service(header)
        else:
            self._begin_topic(header)

    def _begin_service(self, header: dict[str, str]) -> None:
        offer = self._services.get(header["service"])
        # The peer's list of nodes may be out of date.
        if offer is None:
            self._refuse(f"service [{header['service']}] is not served by {self._node}")
            return

        # "*" accepts any type (rostopic).
        if header.get("md5sum", ANY) not in (ANY, offer.md5):
            self._refuse(
                f"request from [{self.caller}]: md5sums do not match: "
                f"[{header['md5sum']}] vs. [{offer.md5}]"
            )
            return

        self._out += wire.encode_header(
            {
                "callerid": self._node,
                "service": offer.name,
                "type": offer.type_name,
                "md5sum": offer.md5,
                "request_type": f"{offer.type_name}Request",
                "response_type": f"{offer.type_name}Response",
            }
        )
        # rospy's `wait_for_service` sends only a header as a probe, and expects that
        # the connection ends.
        if header.get("probe") == "1":
            self.is_closing = True
        else:
            self.service = offer

    def _begin_topic(self, header: dict[str, str]) -> None:
        name = header.get("topic", "")
        offer = self._topics.get(name)
        if offer is None:
            self._refuse(f"topic [{name}] is not published by {self._node}")
            return

        if header.get("type", ANY) not in (ANY, offer.type_name) or header.get(
            "md5sum", ANY
        ) not in (ANY, offer.md5):
            self._refuse(
                f"topic [{name}]: the publisher has {offer.type_name} [{offer.md5}], "
                f"the subscriber wants {header.get('type')} [{header.get('md5sum')}]"
            )
            return

        self._out += wire.encode_header(
            {
                "callerid": self._node,
                "topic": offer.name,
                "type": offer.type_name,
                "md5sum": offer.md5,
                "message_definition": offer.definition,
                "latching": "1" if offer.latched else "0",
            }
        )
        self.topic = offer
        self._subscribed = Subscribed(offer, self.caller)

    def _refuse(self, reason: str) -> None:
        self.problem = shown(reason, MAX_PROBLEM)
        self._out += (
            wire.encode_header({"error": self.problem})
            if self.service is None
            else wire.failure(self.problem)
        )
        self.is_closing = True

    # -- output

    def answer(self, body: bytes) -> None:
        """Answer the oldest request.

        Parameters
        ----------
        body : bytes
            Response in ROS 1's format.
        """
        self._out += wire.success(body)
        self._after_answer()

    def fail(self, reason: str) -> None:
        """Answer the oldest request with an error.

        Parameters
        ----------
        reason : str
            Error text for the client.
        """
        self._out += wire.failure(reason)
        self._after_answer()

    def _after_answer(self) -> None:
        # Without "persistent" a service connection carries one call.
        if (self.header or {}).get("persistent") != "1":
            self.is_closing = True

    def data_to_send(self) -> bytes:
        """Take the bytes to send."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def next_event(self) -> Event | None:
        """Return the next event, or None.

        Requests are parsed one at a time on demand, so that further requests wait in
        the buffer (back-pressure).
        """
        if self._subscribed is not None:
            event, self._subscribed = self._subscribed, None
            return event

        if self.service is None or self.is_closing:
            return None
        try:
            body = self._frames.next()
        except PeerError as error:
            self._refuse(str(error))
            return None

        return None if body is None else Requested(self.service, body)


def subscriber_header(
    node: str, topic: str, type_name: str, md5: str, definition: str
) -> bytes:
    """Return the connection header of a subscriber.

    Parameters
    ----------
    node, topic : str
        Absolute names of node and topic.
    type_name, md5, definition : str
        Type of the message, with its MD5 sum and the full text of its definition.

    Returns
    -------
    bytes
        Header with its length.
    """
    return wire.encode_header(
        {
            "callerid": node,
            "topic": topic,
            "type": type_name,
            "md5sum": md5,
            "message_definition": definition,
            "tcp_nodelay": "1",
        }
    )


class Subscription:
    """Outgoing connection of a node to a publisher.

    Parameters
    ----------
    node, topic : str
        Names of node and topic.
    type_name, md5, definition : str
        Type of the message.
    limit : int
        Longest message, bytes.

    Attributes
    ----------
    hello : bytes
        Header to be sent first.
    is_accepted : bool
        Whether the publisher has answered.
    caller : str
        Name of the publisher; escaped.
    """

    def __init__(
        self,
        node: str,
        topic: str,
        type_name: str,
        md5: str,
        definition: str,
        limit: int = wire.MAX_FRAME,
    ) -> None:
        self._md5 = md5
        self._topic = topic
        self._frames = wire.Frames(limit)
        self.is_accepted = False
        self.caller = "?"
        self.hello = subscriber_header(node, topic, type_name, md5, definition)

    def receive_data(self, data: bytes) -> list[bytes]:
        """Feed bytes from the publisher, and return the completed messages.

        Parameters
        ----------
        data : bytes
            Next bytes of the stream, cut anywhere.

        Returns
        -------
        list of bytes
            Messages in ROS 1's format, oldest first.

        Raises
        ------
        PeerError
            The publisher refuses, or its bytes are invalid.
        """
        messages = self._frames.feed_bytes(data)
        # The first frame is the publisher's header.
        if messages and not self.is_accepted:
            header = wire.decode_header(messages.pop(0))
            self.is_accepted = True
            if "error" in header:
                raise PeerError(
                    f"topic {self._topic}: the publisher refuses: "
                    f"{shown(header['error'], MAX_PROBLEM)}"
                )

            if header.get("md5sum", ANY) not in (ANY, self._md5):
                raise PeerError(
                    f"topic {self._topic}: md5sums do not match: "
                    f"[{shown(header.get('md5sum'))}] vs. [{self._md5}]"
                )

            self.caller = shown(header.get("callerid", "?"), api.MAX_NAME)

        return messages
