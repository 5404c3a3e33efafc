"""Node of ROS 1 with its topics, services and XML-RPC calls."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Final, Protocol

from botyard.control import Caller, Control, Level
from botyard.control.later import then
from botyard.errors import PeerError
from botyard.interfaces.ros.transport import EncodedMessage
from botyard.protocols.ros_messages.graphoffers import Service, Topic
from botyard.protocols.ros_messages.servicetypes import ServiceType
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.tcpros import api, wire
from botyard.servers.clientfacts import Ros1Connection
from botyard.servers.ros.ros1input import Subscriber
from botyard.servers.ros.tcpros import Connection, TcprosServer
from botyard.servers.ros.xmlrpc import RpcServer
from botyard.servers.streampeer import Peer
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TimeShare

log = logging.getLogger("botyard.ros")

MIN_QUERY_INTERVAL_S: Final = 0.02
"""Minimum interval between two queries of a topic's publishers, s."""


def shutdown_refusal(control: Control, is_near: bool) -> str:
    """Return why a peer may not shut the node down; empty if it may.

    Parameters
    ----------
    control : Control
        Control surface with the rights of callers.
    is_near : bool
        Whether the peer is on this machine or on the master's.
    """
    return control.denial(
        Caller("ros", Level.OWN if is_near else Level.CHANGE, "a ROS 1 peer"), Level.OWN
    )


class NodeOwner(Protocol):
    """Part of `botyard.servers.ros.ros1.Ros1` that nodes use."""

    @property
    def bound(self) -> str:
        """Address on which the node listens."""
        ...

    @property
    def rpc_turns(self) -> TimeShare:
        """Scheduler of the time that all XML-RPC calls share."""
        ...

    @property
    def service_turns(self) -> TimeShare:
        """Scheduler of the time that all calls of services share."""
        ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a task."""
        ...

    @property
    def host(self) -> str:
        """Host name in the addresses of the node."""
        ...

    @property
    def master_uri(self) -> str:
        """Address of the master."""
        ...

    @property
    def on_shutdown(self) -> Callable[[], None]:
        """Function that is called when a peer ends the interface."""
        ...

    @property
    def throttled_log(self) -> ThrottledLog:
        """Log of messages that peers cause."""
        ...

    def call_master(self, node: Node, method: str, args: tuple[Any, ...]) -> None:
        """Queue a call to the master."""
        ...

    def ask_for_publishers(self, node: Node, topic: str) -> None:
        """Ask the master for the publishers of a topic."""
        ...

    def denial(self, peer: Peer) -> str:
        """Return the reason why a peer may not end the interface; empty if it may."""
        ...

    def doubt(self, node: Node) -> None:
        """Check whether the master still knows the node."""
        ...


class NodePublication:
    """Topic that a node publishes: a `Publication` of the graph, and a `TopicOffer` for TCPROS."""

    def __init__(
        self,
        node: Node,
        topic: Topic,
        types: Types,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> None:
        self._node = node
        self._fresh = fresh
        self._changed = changed
        self.name, self.type_name = topic.name, topic.type_name
        self.definition, self.md5 = types.definition(topic.type_name)
        self.latched, self.queue = topic.latched, topic.queue
        self._is_numbered = types.begins_with_header(topic.type_name)
        self._sent = 0
        self.readers: set[Connection] = set()
        self._last: tuple[EncodedMessage | None, bytes] = (None, b"")
        """Last message that was sent, and its frame, for new subscribers."""

    replays_latched = True

    @property
    def is_wanted(self) -> bool:
        """Whether the topic has a subscriber."""
        return bool(self.readers)

    @property
    def reader_count(self) -> int:
        """Number of readers."""
        return len(self.readers)

    def welcome(self, reader: Connection) -> None:
        """Add a subscriber, and send it the last message of a latched topic.

        Parameters
        ----------
        reader : Connection
            Connection whose header names this topic.
        """
        self.readers.add(reader)
        self._changed()
        if self.latched:
            # The message may be newer than the last message sent, so ask for it instead
            # of storing it.
            last = self._fresh()
            if last is not None:
                if last is not self._last[0]:
                    self._last = last, self._framed(last)
                reader.send(self._last[1], self.queue)

    def lost(self, reader: Connection) -> None:
        """Remove a subscriber."""
        self.readers.discard(reader)
        self._changed()

    def send(self, message: EncodedMessage) -> None:
        """Send a message to all subscribers.

        Parameters
        ----------
        message : EncodedMessage
            Message, which is framed once for all subscribers.
        """
        frame = self._framed(message)
        for reader in self.readers:
            reader.send(frame, self.queue)

    def _framed(self, message: EncodedMessage) -> bytes:
        """Return the frame of a message.

        Its ``header.seq`` counts the messages of this topic, as publishers of roscpp
        and rospy do.
        """
        if not self._is_numbered:
            return wire.frame(message.ros1)
        # ``header.seq`` is a uint32 and wraps around.
        self._sent = (self._sent + 1) & 0xFFFFFFFF
        return wire.numbered_frame(message.ros1, self._sent)

    def close(self) -> None:
        """Close the publisher and unregister it."""
        for reader in tuple(self.readers):
            reader.finish()
        self._node.topics.pop(self.name, None)
        self._node.call_master("unregisterPublisher", self.name, self._node.uri)

    def register(self) -> tuple[Any, ...]:
        """Return the call to the master that registers the publisher."""
        return "registerPublisher", self.name, self.type_name, self._node.uri


class NodeService:
    """Service of a node."""

    def __init__(self, node: Node, service: Service, types: Types) -> None:
        self._node = node
        self._serve = service.serve
        self._types = types
        self._kind: ServiceType = types.service(service.type_name)
        self.name, self.type_name, self.md5 = (
            service.name,
            service.type_name,
            self._kind.md5,
        )

    def run(self, body: bytes) -> bytes | Future[bytes]:
        """Answer a request, now or with a future.

        Parameters
        ----------
        body : bytes
            Request in ROS 1's format, without its length.

        Returns
        -------
        bytes or Future
            Response in ROS 1's format, without its length.

        Raises
        ------
        BotyardError
            The request is damaged, or the service refuses it.
        """
        response = self._serve(self._types.decode_ros1(body, self._kind.request))
        if isinstance(response, Future):
            return then(
                response,
                lambda done: self._types.encode_ros1(
                    done.result(), self._kind.response
                ),
            )

        return self._types.encode_ros1(response, self._kind.response)

    def close(self) -> None:
        """Close the service and unregister it."""
        self._node.services.pop(self.name, None)
        self._node.call_master("unregisterService", self.name, self._node.service_uri)

    def register(self) -> tuple[Any, ...]:
        """Return the call to the master that registers the service."""
        return "registerService", self.name, self._node.service_uri, self._node.uri


class Node:
    """ROS 1 node.

    Parameters
    ----------
    ros : NodeOwner
        Transport that the node belongs to.
    name : str
        Absolute name of the node.
    """

    def __init__(self, ros: NodeOwner, name: str) -> None:
        self._ros = ros
        self.name = name
        self.topics: dict[str, NodePublication] = {}
        self.services: dict[str, NodeService] = {}
        self.inputs: dict[str, Subscriber] = {}
        self._rpc = RpcServer(ros.bound, 0, self._call, ros.rpc_turns)
        self._server = TcprosServer(
            ros.bound, name, self.topics, self.services, ros.service_turns
        )
        self.uri = f"http://{ros.host}:{self._rpc.port}/"
        self.service_uri = f"rosrpc://{ros.host}:{self._server.port}"
        ros.spawn(self._start())

    async def _start(self) -> None:
        await self._rpc.start()
        await self._server.start()

    def call_master(self, method: str, *args: Any) -> None:
        """Queue a call to the master in this node's name."""
        self._ros.call_master(self, method, args)

    @property
    def entries(self) -> list[NodePublication | NodeService | Subscriber]:
        """All entries of the node that the master has to know."""
        return [*self.topics.values(), *self.inputs.values(), *self.services.values()]

    @property
    def connections(self) -> Iterator[Ros1Connection]:
        """Connections with other nodes."""
        yield from self._server
        for entry in self.inputs.values():
            yield from entry.lines.values()

    def close(self) -> None:
        """Close all connections."""
        for entry in self.inputs.values():
            entry.update([])
        self._rpc.close()
        self._server.close()

    # -- the slave API (http://wiki.ros.org/ROS/Slave_API)

    def _call(self, method: str, args: tuple[Any, ...], peer: Peer) -> Any:
        try:
            arguments = api.checked(api.SLAVE, method, args)
            if method == "shutdown":
                return self._shutdown(peer, *arguments)
            # `checked` has accepted only methods of the API, so `getattr` is safe.
            handler: Callable[..., Any] = getattr(self, f"_x_{method}")
            return handler(*arguments)
        except PeerError as error:
            return [-1, str(error), 0]

    # Handlers of the API have its method names behind ``_x_``.
    def _x_getBusStats(self, caller: str) -> Any:
        published = [
            [
                p.name,
                sum(c.sent for c in p.readers),
                [[c.number, c.sent, 0, True] for c in p.readers],
            ]
            for p in self.topics.values()
            # The Slave API also expects lists for subscribers and services; they stay empty.
        ]
        return [1, "bus stats", [published, [], []]]

    def _x_getBusInfo(self, caller: str) -> Any:
        out = [
            [c.number, c.session.caller, "o", "TCPROS", p.name, True]
            for p in self.topics.values()
            for c in p.readers
        ]
        into = [
            [0, uri, "i", "TCPROS", i.name, True]
            for i in self.inputs.values()
            for uri in i.publishers
        ]
        return [1, "bus info", out + into]

    def _x_getMasterUri(self, caller: str) -> Any:
        return [1, "master", self._ros.master_uri]

    def _x_getPid(self, caller: str) -> Any:
        # ``rosnode info`` shows the process ID.
        return [1, "pid", os.getpid()]

    def _x_getSubscriptions(self, caller: str) -> Any:
        return [
            1,
            "subscriptions",
            [[i.name, i.type_name] for i in self.inputs.values()],
        ]

    def _x_getPublications(self, caller: str) -> Any:
        return [
            1,
            "publications",
            [[p.name, p.type_name] for p in self.topics.values()],
        ]

    # This simulator subscribes to no parameters, but the API requires the method.
    def _x_paramUpdate(self, caller: str, key: str, value: Any) -> Any:
        return [1, "", 0]

    def _x_publisherUpdate(self, caller: str, topic: str, _uris: Any) -> Any:
        if topic in self.inputs:
            self._ros.ask_for_publishers(self, topic)
        return [1, "", 0]

    def _x_requestTopic(self, caller: str, topic: str, protocols: list[str]) -> Any:
        if topic not in self.topics:
            return [0, f"{self.name} does not publish [{topic}]", []]
        if "TCPROS" in protocols:
            return [1, "ready", ["TCPROS", self._ros.host, self._server.port]]
        return [0, "no protocol in common: only TCPROS", []]

    def _shutdown(self, peer: Peer, caller: str, reason: str = "") -> Any:
        text = self._ros.denial(peer)
        if text:
            self._ros.throttled_log.log(
                logging.WARNING,
                "ROS 1: %s (%s) requested shutdown of node %s, refused: %s",
                caller,
                peer.address,
                self.name,
                text,
            )

            # The master may have dropped the node: a second node of the same name
            # causes this call.
            self._ros.doubt(self)
            return [0, f"refused: {text}", 0]

        log.warning(
            "ROS 1: %s (%s) requested shutdown of node %s: %s",
            caller,
            peer.address,
            self.name,
            reason,
        )
        self._ros.on_shutdown()
        return [1, "shutdown", 0]


__all__ = [
    "MIN_QUERY_INTERVAL_S",
    "Node",
    "NodePublication",
    "NodeService",
    "shutdown_refusal",
]
