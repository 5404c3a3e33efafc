"""ROS 2 over DDS: topics, inputs and services of the graph in one RTPS participant.

All of them are readers and writers of the participant, which represents all nodes of
the simulator.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any, Final

from botyard.interfaces.ros.transport import EncodedMessage
from botyard.protocols.dds import naming
from botyard.protocols.dds.environment import Environment
from botyard.protocols.dds.graph import Graph
from botyard.protocols.dds.services import Call, ServiceServer
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.limits import MAX_REQUEST
from botyard.protocols.ros_messages.typenames import full
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.rtps.qos import Durability, Qos
from botyard.protocols.rtps.reader import Reader
from botyard.protocols.rtps.samples import Sample
from botyard.protocols.rtps.topicwriters import TopicWriter
from botyard.servers.ros.cdr import CdrInput, CdrService, CdrTransport
from botyard.servers.ros.rtps import RtpsNode

LAST_ANSWERS_S: Final = 1.0
"""Time for which a closed service waits for its clients to take their answers, s."""
LOOK_EVERY_S: Final = 0.02
"""Interval at which it looks whether they have, s."""

log = logging.getLogger("botyard.ros")


class _Publication:
    """Topic that a node of this simulator publishes over DDS."""

    __slots__ = ("_node", "_pipe", "_ros", "_writer")

    replays_latched = False

    def __init__(
        self, ros: Ros2, node: str, topic: Topic, changed: Callable[[], None]
    ) -> None:
        self._ros = ros
        self._pipe = ros.pipe
        self._node = node
        kind = full(topic.type_name)
        is_kept = topic.latched or topic.is_kept
        # A reliable writer matches both reliable and best-effort readers.
        qos = Qos(
            durability=Durability.TRANSIENT_LOCAL if is_kept else Durability.VOLATILE,
            depth=1 if topic.latched else topic.queue,
        )
        self._writer = ros.writer(naming.topic_name(topic.name), kind, qos, changed)
        ros.know(node, writer=self._writer.guid)

    @property
    def is_wanted(self) -> bool:
        """Whether a reader is matched, or a late reader may request the last message."""
        return self._writer.is_wanted

    @property
    def reader_count(self) -> int:
        """Number of readers."""
        return self._writer.reader_count

    def send(self, message: EncodedMessage) -> None:
        """Send a message to all readers."""
        self._writer.write(message.cdr, self._pipe.writing())

    def close(self) -> None:
        """Close the publisher."""
        self._ros.forget(self._node, writer=self._writer.guid)
        self._ros.remove(self._writer)


class _Listening(CdrInput):
    """Subscription of a node of this simulator to a topic over DDS."""

    def __init__(self, ros: Ros2, node: str, entry: Input) -> None:
        super().__init__(ros, entry)
        self._ros = ros
        self._node = node
        kind = full(entry.type_name)
        self._reader = ros.reader(
            naming.topic_name(entry.name), kind, self._take, entry.limit
        )
        ros.know(node, reader=self._reader.guid)

    def _take(self, sample: Sample) -> None:
        self._barrier.run(self._decode, sample.payload)

    def close(self) -> None:
        """Close the subscription."""
        self._ros.forget(self._node, reader=self._reader.guid)
        self._ros.remove(self._reader)


class _Serving(CdrService):
    """Service that a node of this simulator offers over DDS, see `botyard.servers.ros.cdr`."""

    def __init__(self, ros: Ros2, node: str, service: Service) -> None:
        super().__init__(ros, service)
        self._ros = ros
        self._node = node

        # A service has two topics in DDS, one for requests and one for responses.
        pipe = ros.pipe
        hashes = ros.types.hash(self._request), ros.types.hash(self._response)
        self._server = ServiceServer(
            pipe.participant,
            service.name,
            self._request,
            self._response,
            self._take,
            self._refuse,
            pipe.now(),
            # rmw_cyclonedds pairs the reader and writer of a service by this identity.
            identity=os.urandom(16),
            hashes=hashes,
            limit=MAX_REQUEST,
        )
        self._warned = False
        self._loop = asyncio.get_running_loop()
        pipe.wake()
        ros.know(node, reader=self._server.reader.guid, writer=self._server.writer.guid)

    def _take(self, call: Call) -> None:
        if self.is_open:
            self._barrier.run(self._serve, call, call.body)

    def _answer(self, call: Call, response: Any) -> None:
        pipe = self._ros.pipe
        self._server.answer(
            call, self._types.encode_cdr(response, self._response), pipe.now()
        )
        pipe.wake()

    def _refuse(self, problem: str) -> None:
        # A client can repeat this error at any rate, so log it once.
        if not self._warned:
            log.warning("ROS 2: %s: %s", self._service.name, problem)
        self._warned = True

    def close(self) -> None:
        """Close the service."""
        self.is_open = False
        self._ros.forget(
            self._node, reader=self._server.reader.guid, writer=self._server.writer.guid
        )
        self._leave(self._ros.pipe.now() + LAST_ANSWERS_S)

    def _leave(self, latest: float) -> None:
        """Remove the endpoints when all clients have their answers, or at a time."""
        pipe = self._ros.pipe
        # Middleware drops an answer if it hears first that the writer is gone.
        if self._server.has_unread_answers and pipe.is_open and pipe.now() < latest:
            self._loop.call_later(LOOK_EVERY_S, self._leave, latest)
            return
        self._server.close(pipe.now())
        pipe.wake()


class Ros2(CdrTransport):
    """ROS 2 transport over DDS.

    Parameters
    ----------
    types : Types
        Message types of the ROS distribution to serve.
    environment : Environment
        Domain and range of discovery.

    Raises
    ------
    PeerError
        The network does not support DDS.
    """

    label = "ROS 2"
    kinds = _Publication, _Listening, _Serving

    def __init__(self, types: Types, environment: Environment) -> None:
        # Settings of other middlewares would otherwise be ignored silently.
        for remark in Environment.unserved():
            log.warning("ROS 2: %s", remark)
        super().__init__(types)
        self.pipe = RtpsNode(environment)
        self._graph = Graph(types, self.pipe.participant.guid)
        # rmw_dds_common uses these settings for ros_discovery_info: late joiners get
        # the last state.
        qos = Qos(depth=1, durability=Durability.TRANSIENT_LOCAL)
        # Tools such as ``ros2 node list`` read this topic to assign endpoints to nodes.
        self._graph_writer = self.writer(naming.GRAPH_TOPIC, naming.GRAPH_TYPE, qos)
        self._pending: asyncio.Handle | None = None

    # -- endpoints

    def writer(
        self, name: str, kind: str, qos: Qos, changed: Callable[[], None] = lambda: None
    ) -> TopicWriter:
        """Return a new writer.

        Parameters
        ----------
        name : str
            Name of the DDS topic.
        kind : str
            ROS 2 name of its type.
        qos : Qos
            Quality of service.
        changed : callable
            Called when the readers change.
        """
        pipe, data = self.pipe, naming.type_hash_data(self.types.hash(kind))
        pipe.wake()
        return pipe.participant.writer(
            name,
            naming.type_name(kind),
            qos,
            pipe.now(),
            user_data=data,
            changed=changed,
        )

    def reader(
        self, name: str, kind: str, take: Callable[[Sample], None], limit: int
    ) -> Reader:
        """Return a new best-effort reader, which matches reliable and best-effort writers.

        A lost velocity command is not worth a retransmission: the next one replaces it.

        Parameters
        ----------
        name : str
            Name of the DDS topic, with ROS 2's prefix (``rt/cmd_vel``).
        kind : str
            ROS type of the messages.
        take : callable
            Receives each sample, in the event loop.
        limit : int
            Maximum size of a sample, bytes.
        """
        pipe, data = self.pipe, naming.type_hash_data(self.types.hash(kind))
        pipe.wake()
        qos = Qos(reliable=False)
        return pipe.participant.reader(
            name,
            naming.type_name(kind),
            take,
            qos,
            pipe.now(),
            user_data=data,
            limit=limit,
        )

    def remove(self, endpoint: TopicWriter | Reader) -> None:
        """Close an endpoint."""
        self.pipe.participant.remove(endpoint, self.pipe.now())
        self.pipe.wake()

    # -- graph of nodes and endpoints

    def know(
        self, node: str, *, reader: bytes | None = None, writer: bytes | None = None
    ) -> None:
        """Add endpoints of a node, given by their GUIDs.

        Other nodes see them in ``ros_discovery_info``.

        Parameters
        ----------
        node : str
            Absolute name of the node.
        reader, writer : bytes, optional
            GUID of 16 bytes of an endpoint.
        """
        self._graph.add(node, reader=reader, writer=writer)
        self._changed()

    def forget(
        self, node: str, *, reader: bytes | None = None, writer: bytes | None = None
    ) -> None:
        """Remove endpoints of a node.

        Parameters
        ----------
        node : str
            Absolute name of the node.
        reader, writer : bytes, optional
            GUID of 16 bytes of an endpoint.
        """
        self._graph.remove(node, reader=reader, writer=writer)
        self._changed()

    def _changed(self) -> None:
        """Announce several changes in one message, at the end of this iteration."""
        if self._pending is None:
            self._pending = asyncio.get_running_loop().call_soon(self._announce)

    def _announce(self) -> None:
        self._pending = None
        self._graph_writer.write(self._graph.encode(), self.pipe.now())
        self.pipe.wake()

    async def close(self) -> None:
        """Leave the domain and close the sockets."""
        if self._pending is not None:
            self._pending.cancel()
        self.pipe.close()
