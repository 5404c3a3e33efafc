"""ROS 2 over DDS: the graph's topics, inputs and services as readers and writers of one participant that carries all our nodes.

Services answer clients of rmw_cyclonedds_cpp; those of other RMWs cannot be answered through this library (see
`botyard.protocols.dds.requests`), which is why what they do can be had by topics, too.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from botyard.control.fence import Fence
from botyard.errors import BotyardError, PeerError
from botyard.interfaces.ros.graph import EncodedMessage
from botyard.names import shown
from botyard.protocols.dds import naming
from botyard.protocols.dds.environment import Environment
from botyard.protocols.dds.graph import Graph
from botyard.protocols.dds.requests import Request, join_response, split_request
from botyard.protocols.ros_messages.limits import MAX_REQUEST, MAX_REQUESTS, MAX_TEXT
from botyard.protocols.ros_messages.robot import Input, Service, Topic
from botyard.protocols.ros_messages.types import Types, full, service_name
from botyard.servers.cyclone import Participant, Reader, Writer

log = logging.getLogger("botyard.ros")


class _Publication:
    """A topic, see `botyard.interfaces.ros.graph.Publication`."""

    replays_latched = False

    def __init__(self, ros: Ros2, node: str, topic: Topic, changed: Callable[[], None]) -> None:
        self._ros = ros
        self._node = node
        self._latched = topic.latched
        kind = full(topic.type_name)
        self._writer = ros.pipe.writer(
            naming.topic_name(topic.name),
            kind,
            naming.type_hash_data(ros.types.hash(kind)),
            transient=topic.latched,
            depth=1 if topic.latched else topic.queue,
            changed=changed,
        )
        ros.know(node, writer=self._writer)

    @property
    def is_wanted(self) -> bool:
        """Whether there is a reader, or there may be one that wants the last message."""
        return self._latched or self._writer.readers > 0

    def send(self, message: EncodedMessage) -> None:
        """Send a message."""
        self._writer.send(message.cdr)

    def close(self) -> None:
        """Close the publisher."""
        self._ros.forget(self._node, writer=self._writer)


class _Listening:
    """An input."""

    def __init__(self, ros: Ros2, node: str, entry: Input) -> None:
        self._ros = ros
        self._node = node
        self._entry = entry
        self._fence = Fence(log, f"ROS 2: a message of {entry.name}")
        kind = full(entry.type_name)
        # best effort also matches reliable publishers; a velocity that was lost is not worth asking for again
        self._reader = ros.pipe.reader(
            naming.topic_name(entry.name),
            kind,
            self._take,
            naming.type_hash_data(ros.types.hash(kind)),
            limit=entry.limit,
        )
        ros.know(node, reader=self._reader)

    def _take(self, data: bytes) -> None:
        self._fence.run(self._decode, data)

    def _decode(self, data: bytes) -> None:
        entry = self._entry
        try:
            entry.take(self._ros.types.decode_cdr(data, entry.type_name))
        except BotyardError as error:
            self._ros.pipe.throttled_log.log(logging.WARNING, "ROS 2: %s: %s", entry.name, shown(error, MAX_TEXT))

    def close(self) -> None:
        """Close the subscription."""
        self._ros.forget(self._node, reader=self._reader)


class _Serving:
    """A service."""

    def __init__(self, ros: Ros2, node: str, service: Service) -> None:
        self._ros = ros
        self._node = node
        self._service = service
        self._fence = Fence(log, f"ROS 2: the service {service.name}")
        kind = service_name(service.type_name)
        self._request, self._response = f"{kind}_Request", f"{kind}_Response"
        data = naming.service_data(os.urandom(16))
        self._writer = ros.pipe.writer(
            naming.response_topic(service.name), self._response, data, depth=MAX_REQUESTS, request_header=True
        )
        self._reader = ros.pipe.reader(
            naming.request_topic(service.name),
            self._request,
            self._take,
            data,
            reliable=True,
            depth=MAX_REQUESTS,
            request_header=True,
            limit=MAX_REQUEST,
        )
        self._warned = False
        self._is_open = True
        ros.know(node, reader=self._reader, writer=self._writer)

    def _take(self, data: bytes) -> None:
        self._fence.run(self._answer, data)

    def _answer(self, data: bytes) -> None:
        types, name = self._ros.types, self._service.name
        try:
            request = split_request(data)
            response = self._service.serve(types.decode_cdr(request.body, self._request))
            if isinstance(response, Future):
                response.add_done_callback(lambda done: self._fence.run(self._say, request, done))
            else:
                self._writer.send(join_response(request, types.encode_cdr(response, self._response)))
        except PeerError as error:
            if not self._warned:
                log.warning("ROS 2: %s: %s", name, shown(error, MAX_TEXT))
            self._warned = True
        except BotyardError as error:
            self._ros.pipe.throttled_log.log(logging.WARNING, "ROS 2: %s: %s", name, shown(error, MAX_TEXT))

    def _say(self, request: Request, done: Future[Any]) -> None:
        """A response that took longer is there."""
        if self._is_open and not done.cancelled():
            self._writer.send(join_response(request, self._ros.types.encode_cdr(done.result(), self._response)))

    def close(self) -> None:
        """Close the service."""
        self._is_open = False
        self._ros.forget(self._node, reader=self._reader, writer=self._writer)


def _gid(end: Reader | Writer | None) -> bytes | None:
    return None if end is None else end.gid


class Ros2:
    """The transport.

    Parameters
    ----------
    types : Types
        Message types, of the distribution whose peers are served.
    environment : Environment
        Domain and range of discovery.

    Raises
    ------
    WorldError
        The extra is not installed.
    PeerError
        The network cannot be used so.
    """

    wire = "cdr"
    mixes_types = True

    def __init__(self, types: Types, environment: Environment) -> None:
        self.types = types
        self.pipe = Participant(types, environment)
        self._graph = Graph(types, self.pipe.gid)
        self._graph_writer = self.pipe.writer(
            naming.GRAPH_TOPIC,
            naming.GRAPH_TYPE,
            naming.type_hash_data(types.hash(naming.GRAPH_TYPE)),
            transient=True,
            depth=1,
        )
        self._pending: asyncio.Handle | None = None

    def advertise(
        self, node: str, topic: Topic, fresh: Callable[[], EncodedMessage | None], changed: Callable[[], None]
    ) -> _Publication:
        """Publish a topic."""
        return _Publication(self, node, topic, changed)

    def listen(self, node: str, entry: Input) -> _Listening:
        """Listen to a topic."""
        return _Listening(self, node, entry)

    def serve(self, node: str, service: Service) -> _Serving:
        """Serve."""
        return _Serving(self, node, service)

    # -- who we are

    def know(self, node: str, *, reader: Reader | None = None, writer: Writer | None = None) -> None:
        """Ends of a node are there."""
        self._graph.add(node, reader=_gid(reader), writer=_gid(writer))
        self._changed()

    def forget(self, node: str, *, reader: Reader | None = None, writer: Writer | None = None) -> None:
        """Close ends of a node."""
        for end in (reader, writer):
            if end is not None:
                end.close()
        self._graph.remove(node, reader=_gid(reader), writer=_gid(writer))
        self._changed()

    def _changed(self) -> None:
        """Say it once for all that changes in one go."""
        if self._pending is None:
            self._pending = asyncio.get_running_loop().call_soon(self._announce)

    def _announce(self) -> None:
        self._pending = None
        self._graph_writer.send(self._graph.encode())

    async def close(self) -> None:
        """Leave."""
        if self._pending is not None:
            self._pending.cancel()
        self.pipe.close()
