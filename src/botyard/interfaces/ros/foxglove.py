"""ROS topics, services and parameters for Foxglove and Lichtblick (`Foxglove`).

`Foxglove` is one transport of the ROS graph for all clients, over Foxglove's WebSocket
protocol.
Each client is a `FoxgloveSession` on the WebSocket pump of `botyard.servers`. Messages
are CDR with ROS 2's definitions as schemas, encoded once for all clients.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from botyard.api.revisions import Subject
from botyard.control import Pause, Resume, SetSpeed
from botyard.control.error_barrier import ErrorBarrier
from botyard.control.parts import RunLoop
from botyard.errors import PeerError
from botyard.interfaces.interface import Door
from botyard.interfaces.ros.answering import answer_call
from botyard.interfaces.ros.graph import RosGraph
from botyard.interfaces.ros.transport import EncodedMessage
from botyard.names import shown
from botyard.protocols.foxglove import operations as op
from botyard.protocols.foxglove.bus import Answer
from botyard.protocols.foxglove.limits import MAX_ALL_KEPT, MAX_KEPT, MAX_TEXT
from botyard.protocols.foxglove.session import FoxgloveSession
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.limits import MAX_REQUEST
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.typenames import full, service_name
from botyard.protocols.rosbridge.values import Values, json_of
from botyard.protocols.shares import Account, Shares

JSON_GROWTH: Final = 4
"""Approximate limit of the size of a message as JSON, as a multiple of its size as CDR.

JSON text that is longer than this multiple of the limit for CDR is refused without
parsing.
"""
PERIOD_NS: Final = 1_000_000_000
"""Interval of checks whether other ROS clients have changed parameters, ns."""

log = logging.getLogger("botyard.ros")


def is_hidden(name: str) -> bool:
    """Return whether ROS 2 hides a topic or service.

    A name is hidden if a part of it starts with an underscore.
    """
    return "/_" in name


def ns_of(stamp: Stamp) -> int:
    """Convert a time stamp to nanoseconds.

    Parameters
    ----------
    stamp : Stamp
        Seconds and nanoseconds.
    """
    return stamp[0] * 1_000_000_000 + stamp[1]


class _Channel:
    """Published topic, with the sessions that read it.

    Attributes
    ----------
    readers : dict
        Sessions that subscribe to the topic, as keys; the values are None.
    """

    def __init__(self, described: op.Channel, type_name: str) -> None:
        self.described = described
        self.type_name = type_name
        self.publications: list[_Publication] = []
        self.readers: dict[FoxgloveSession, None] = {}

    def changed(self) -> None:
        """Notify the publishers of the topic that a session has subscribed or unsubscribed."""
        for publication in self.publications:
            publication.changed()


class _Publication:
    """Publication of a topic to Foxglove clients; see
    `botyard.interfaces.ros.transport.Publication`.
    """

    replays_latched = True

    def __init__(
        self,
        server: Foxglove,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> None:
        self._server = server
        self.node, self.topic, self.changed, self._fresh = node, topic, changed, fresh
        self.channel = server.opened(topic)
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
        # Loop over a copy: a client that reads too slowly may be removed during the
        # loop.
        for client in tuple(self.channel.readers):
            self._deliver(client, message)

    def welcome(self, client: FoxgloveSession) -> None:
        """Send the last message of a latched topic to a new subscriber."""
        last = self._fresh() if self.topic.latched else None
        if last is not None:
            self._deliver(client, last)

    def _deliver(self, client: FoxgloveSession, message: EncodedMessage) -> None:
        client.deliver(
            self.channel.described.id,
            message.cdr,
            ns_of(message.stamp),
            self.topic.queue,
        )

    def close(self) -> None:
        """Unadvertise the topic."""
        self.channel.publications.remove(self)
        self._server.tidy(self.channel)


class _Listening:
    """Subscription of the simulator to a topic that clients publish."""

    def __init__(self, server: Foxglove, node: str, entry: Input) -> None:
        self._server = server
        self.node, self.entry, self.type_name = node, entry, full(entry.type_name)

    def close(self) -> None:
        """End the subscription."""
        self._server.inputs.remove(self)
        self._server.connections_changed()


class _Serving:
    """Service of the simulator that clients can call."""

    def __init__(
        self, server: Foxglove, ident: int, node: str, service: Service
    ) -> None:
        self._server = server
        self.node, self.service = node, service
        self.type_name = service_name(service.type_name)
        self.barrier = ErrorBarrier(log, f"foxglove: the service {service.name}")
        request, response = self._schema("Request"), self._schema("Response")
        self.described = op.Service(
            ident,
            service.name,
            self.type_name,
            request,
            response,
            request.schema,
            response.schema,
        )

    def _schema(self, part: str) -> op.Schema:
        name = f"{self.type_name}_{part}"
        return op.Schema("cdr", name, "ros2msg", self._server.schema(name))

    def close(self) -> None:
        """Withdraw the service."""
        self._server.closed(self)


class Foxglove:
    """Transport of the graph, and the `Bus` of all Foxglove sessions.

    Parameters
    ----------
    graph : RosGraph
        ROS graph, whose topics, services and parameters are offered.
    hub : RunLoop
        The run loop, for time.
    """

    wire = "cdr"
    mixes_types = True

    def __init__(self, graph: RosGraph, hub: RunLoop) -> None:
        self._graph, self._hub = graph, hub
        # One limit of memory for all clients, divided by source address.
        self._shares = Shares(MAX_ALL_KEPT)
        self._types = graph.types
        self._values = Values(graph.types, graph.stamp)
        self._channels: dict[tuple[str, str], _Channel] = {}
        self._by_id: dict[int, _Channel] = {}
        self.inputs: list[_Listening] = []
        self._services: dict[int, _Serving] = {}
        self._clients: dict[FoxgloveSession, Door] = {}
        self._numbers = itertools.count(1)
        self._looked_ns = 0
        self.session_id = str(uuid.uuid4())
        self._unfollow = hub.follow(self._pace_changed, Subject.PACE)

    def session(self, door: Door) -> FoxgloveSession:
        """Create the session of a client."""
        account = Account(self._shares, door.source, MAX_KEPT)
        name = f"botyard: {self._hub.sim.scene.name or 'empty'}"
        made = FoxgloveSession(self, name, door.wake, door.warn, account)
        self._clients[made] = door
        return made

    def close(self) -> None:
        """End the notifications about changes of the simulator."""
        self._unfollow()

    # -- offers of the graph

    def advertise(
        self,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> _Publication:
        """Publish a topic of the graph to clients."""
        made = _Publication(self, node, topic, fresh, changed)
        self.connections_changed()
        return made

    def listen(self, node: str, entry: Input) -> _Listening:
        """Subscribe the simulator to a topic that clients publish."""
        made = _Listening(self, node, entry)
        self.inputs.append(made)
        self.connections_changed()
        return made

    def serve(self, node: str, service: Service) -> _Serving:
        """Offer a service of the graph to clients."""
        made = _Serving(self, next(self._numbers), node, service)
        self._services[made.described.id] = made
        # Do not advertise hidden services, which belong to actions: users would not
        # call them.
        if not is_hidden(service.name):
            for client in self._clients:
                client.advertise_service(made.described)

        self.connections_changed()
        return made

    def closed(self, one: _Serving) -> None:
        """Remove a service that was closed."""
        if self._services.pop(one.described.id, None) is not None and not is_hidden(
            one.service.name
        ):
            for client in self._clients:
                client.unadvertise_service(one.described.id)

        self.connections_changed()

    def schema(self, type_name: str) -> str:
        """Return the definition of a type and of all types in it, as ``ros2msg``."""
        return self._types.definition2(type_name)

    def opened(self, topic: Topic) -> _Channel:
        """Return the channel of a topic, which is created if needed."""
        kind = full(topic.type_name)
        found = self._channels.get((topic.name, kind))
        if found is None:
            described = op.Channel(
                next(self._numbers),
                topic.name,
                "cdr",
                kind,
                self.schema(kind),
                "ros2msg",
            )
            found = self._channels[topic.name, kind] = self._by_id[described.id] = (
                _Channel(described, kind)
            )
            if not is_hidden(topic.name):
                for client in self._clients:
                    client.advertise(described)

        return found

    def tidy(self, channel: _Channel) -> None:
        """Remove a channel that has no publishers."""
        if not channel.publications:
            described = channel.described
            del (
                self._channels[described.topic, channel.type_name],
                self._by_id[described.id],
            )
            if not is_hidden(described.topic):
                for client in self._clients:
                    client.unadvertise(described.id)

        self.connections_changed()

    def connections_changed(self) -> None:
        """Notify the clients of new or lost publishers, subscribers or services."""
        for client in self._clients:
            client.connections_changed()

    # -- see `botyard.protocols.foxglove.bus.Bus`

    @property
    def time_ns(self) -> int:
        """Time of the present state, ns.

        Reading it also sends changed parameters to the clients, at most once a second.
        """
        now = ns_of(self._graph.stamp())
        # Use the absolute difference, because simulated time may jump back.
        if abs(now - self._looked_ns) >= PERIOD_NS:
            self._looked_ns = now
            self._parameters_changed()

        return now

    def channels(self) -> list[op.Channel]:
        """Return all topics that are not hidden."""
        return [
            one.described
            for one in self._by_id.values()
            if not is_hidden(one.described.topic)
        ]

    def services(self) -> list[op.Service]:
        """Return all services that are not hidden."""
        return [
            one.described
            for one in self._services.values()
            if not is_hidden(one.service.name)
        ]

    def subscribe(self, client: FoxgloveSession, channel: int) -> None:
        """Subscribe a client to a channel; a latched topic sends its last message immediately.

        Raises
        ------
        PeerError
            No channel has this number.
        """
        found = self._by_id.get(channel)
        if found is None:
            raise PeerError(
                f"foxglove: subscribe: expected the id of a channel, found {channel}"
            )
        found.readers[client] = None
        found.changed()
        for publication in found.publications:
            publication.welcome(client)
        self.connections_changed()

    def unsubscribe(self, client: FoxgloveSession, channel: int) -> None:
        """Unsubscribe a client from a channel."""
        found = self._by_id.get(channel)
        if found is not None and client in found.readers:
            del found.readers[client]
            found.changed()
            self.connections_changed()

    def listens(self, topic: str) -> bool:
        """Return whether the simulator subscribes to a topic."""
        return any(one.entry.name == topic for one in self.inputs)

    def publish(
        self, client: FoxgloveSession, channel: op.ClientChannel, payload: bytes
    ) -> None:
        """Pass a message of a client to the simulator.

        Raises
        ------
        PeerError
            The simulator does not subscribe to the topic or has another type for it, or
            the message is damaged or too long.
        """
        kind = full(channel.schema_name)
        found = [one for one in self.inputs if one.entry.name == channel.topic]
        if not found:
            raise PeerError(
                f'foxglove: "{shown(channel.topic, MAX_TEXT)}" has no subscriber'
            )

        fitting = [one for one in found if one.type_name == kind]
        if not fitting:
            known = ", ".join(sorted({one.type_name for one in found}))
            raise PeerError(
                f"foxglove: {channel.topic}: expected {known}, found "
                f"{shown(channel.schema_name, MAX_TEXT)}"
            )

        # One decoded message serves all inputs, so the smallest limit of the inputs
        # applies.
        limit = min(one.entry.limit for one in fitting)
        message = self._read(payload, kind, channel.encoding, limit, channel.topic)
        for one in fitting:
            one.entry.take(message)

    def _read(
        self, payload: bytes, kind: str, encoding: str, limit: int, where: str
    ) -> Any:
        """Return the decoded message of a client.

        Raises
        ------
        PeerError
            The message is too long, or not of this type.
        """
        is_json = encoding == "json"
        most = limit * (JSON_GROWTH if is_json else 1)
        if len(payload) > most:
            raise PeerError(
                f"foxglove: {where}: expected at most {most} bytes, found {len(payload)}"
            )

        # A message that is not JSON is CDR; no other encodings are accepted.
        if not is_json:
            return self._types.decode_cdr(payload, kind)
        try:
            # Foxglove sends an empty payload for a request without fields.
            values = msgspec.json.decode(payload) if payload else {}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PeerError(f"foxglove: {where}: {shown(error, MAX_TEXT)}") from None

        return self._values.message(values, kind)

    def call(
        self, client: FoxgloveSession, call: op.ServiceCall, answer: Answer
    ) -> None:
        """Call a service for a client."""
        found = self._services.get(call.service)
        if found is None or is_hidden(found.service.name):
            raise PeerError(
                f"foxglove: expected the id of a service, found {call.service}"
            )
        name = found.type_name
        request = self._read(
            call.payload,
            f"{name}_Request",
            call.encoding,
            MAX_REQUEST,
            found.service.name,
        )

        def form(response: Any) -> bytes:
            kind = f"{name}_Response"
            if call.encoding == "json":
                return json_of(self._values.plain(response, kind))
            return self._types.encode_cdr(response, kind)

        answer_call(found.service, request, form, answer, found.barrier)

    # -- parameters

    def parameters(self, client: FoxgloveSession) -> Mapping[str, op.Parameter]:
        """Return the values of the parameters: pause, speed, and parameters of the world's node."""
        node = self._graph.node
        found: dict[str, bool | float | str] = {
            "pause": self._hub.is_paused,
            "speed": float(self._hub.speed),
        }
        found |= {name: value.get() for name, value in self._graph.parameters().items()}
        named = {f"{node}.{name}": value for name, value in found.items()}
        return {
            name: op.Parameter(
                # Name the type of numbers: JSON may print 1.0 as 1, which Foxglove
                # would take for an integer.
                name,
                value,
                None if isinstance(value, bool | str) else "float64",
            )
            for name, value in named.items()
        }

    def set_parameter(self, client: FoxgloveSession, parameter: op.Parameter) -> None:
        """Set a parameter.

        Raises
        ------
        PeerError
            The parameter is unknown or read-only, or the value has another type or is
            out of its range.
        """
        prefix = f"{self._graph.node}."
        name = parameter.name.removeprefix(prefix)
        value = parameter.value
        known = self._graph.parameters()
        where = f"foxglove: {shown(parameter.name, MAX_TEXT)}"
        if not parameter.name.startswith(prefix) or not (
            name in ("pause", "speed") or name in known
        ):
            raise PeerError(f"{where}: no such parameter")

        # The two parameters of time are operations, with their own permissions.
        if name == "pause":
            if not isinstance(value, bool):
                raise PeerError(
                    f"{where}: expected true or false, found {shown(value, MAX_TEXT)}"
                )

            self._clients[client].do(Pause() if value else Resume())
            return

        # A bool is an int in Python.
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PeerError(
                f"{where}: expected a number, found {shown(value, MAX_TEXT)}"
            )

        if name == "speed":
            self._clients[client].do(SetSpeed(speed=float(value)))
            return

        entry = known[name]
        if entry.put is None:
            raise PeerError(f"{where}: the parameter is read-only")
        if not 0.0 <= value <= entry.limit:
            raise PeerError(f"{where}: expected 0 … {entry.limit:g}, found {value:g}")
        # The limits of motion are floats, but JSON may write them as integers.
        entry.put(float(value))
        self._parameters_changed()

    def _pace_changed(self) -> None:
        self._parameters_changed()

    def _parameters_changed(self) -> None:
        for client in self._clients:
            client.parameters_changed()

    # -- connections

    def connections(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return publishers, subscribers and providers of services, by name of the topic or
        service.
        """
        publishers: dict[str, set[str]] = {}
        subscribers: dict[str, set[str]] = {}
        for channel in self._by_id.values():
            name = channel.described.topic
            publishers.setdefault(name, set()).update(
                one.node for one in channel.publications
            )
            if channel.readers:
                subscribers.setdefault(name, set()).add("foxglove")

        for one in self.inputs:
            subscribers.setdefault(one.entry.name, set()).add(one.node)
        services = {one.service.name: one.node for one in self._services.values()}
        return {
            "publishedTopics": _named(publishers, "publisherIds"),
            "subscribedTopics": _named(subscribers, "subscriberIds"),
            "advertisedServices": _named(
                {name: {node} for name, node in services.items()}, "providerIds"
            ),
        }

    def release_client(self, client: FoxgloveSession) -> None:
        """Release a client that has disconnected, and its subscriptions."""
        self._clients.pop(client, None)
        for channel in tuple(self._by_id.values()):
            if client in channel.readers:
                del channel.readers[client]
                channel.changed()

        self.connections_changed()


def _named(found: Mapping[str, set[str]], key: str) -> list[dict[str, Any]]:
    return [
        {"name": name, key: sorted(ids)}
        for name, ids in found.items()
        if not is_hidden(name)
    ]


__all__ = ["Foxglove", "is_hidden", "ns_of"]
