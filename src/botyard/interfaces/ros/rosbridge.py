"""ROS topics and services for clients of the rosbridge protocol (`Rosbridge`).

`Rosbridge` is one transport of the ROS graph for all clients. It also passes on topics,
services and actions from client to
client. Each client is a `RosbridgeSession` on the WebSocket
pump of `botyard.servers`.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import PeerError
from botyard.interfaces.interface import Door
from botyard.interfaces.ros.answering import answer_call
from botyard.interfaces.ros.rosapi import PREFIX, Rosapi
from botyard.interfaces.ros.rosbridge_actions import ClientActions
from botyard.interfaces.ros.rosbridge_goals import SEND, Goals
from botyard.interfaces.ros.rosbridgetopics import (
    CLIENTS,
    JSON_GROWTH,
    BridgeListening,
    BridgePublication,
    Channel,
    Reader,
    resolved,
)
from botyard.interfaces.ros.transport import EncodedMessage
from botyard.names import shown
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.limits import MAX_REQUEST, MAX_TEXT
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.typenames import full, service_name
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.rosbridge.bus import Answer
from botyard.protocols.rosbridge.encodings import Outgoing
from botyard.protocols.rosbridge.limits import MAX_ALL_KEPT, MAX_KEPT
from botyard.protocols.rosbridge.operations import Id, SendActionGoal
from botyard.protocols.rosbridge.session import RosbridgeSession
from botyard.protocols.rosbridge.values import Values
from botyard.protocols.shares import Account, Shares, cost

MAX_ADVERTISED: Final = 1000
"""Largest number of topics that a client advertises."""
MAX_OFFERED: Final = 100
"""Largest number of services that a client offers."""
MAX_REQUESTS: Final = 1000
"""Largest number of unanswered calls of the services that one client offers."""


log = logging.getLogger("botyard.ros")


class _Serving:
    """Service of the simulator that clients can call."""

    def __init__(self, bridge: Rosbridge, node: str, service: Service) -> None:
        self._bridge = bridge
        self.node = node
        self.service = service
        self.type_name = service_name(service.type_name)
        self._barrier = ErrorBarrier(log, f"rosbridge: the service {service.name}")

    def call(self, values: Any, answer: Answer) -> None:
        """Call the service for a client.

        Parameters
        ----------
        values : object
            Fields of the request, or a list of them in order.
        answer : callable
            Called with a bool (whether the call has succeeded), and with the response
            as plain values or the error text.

        Raises
        ------
        BotyardError
            The values do not fit the type, or the service fails at once.
        """
        bridge, name = self._bridge.values, self.type_name
        request = bridge.message(values, f"{name}_Request")
        answer_call(
            self.service,
            request,
            lambda response: bridge.plain(response, f"{name}_Response"),
            answer,
            self._barrier,
        )

    def close(self) -> None:
        """Withdraw the service."""
        # A robot that was added in the meantime may now have the service's name.
        if self._bridge.services.get(self.service.name) is self:
            del self._bridge.services[self.service.name]


class _Offered:
    """Service that a client of rosbridge offers."""

    def __init__(self, client: RosbridgeSession, name: str, type_name: str) -> None:
        self.client, self.name, self.type_name = client, name, type_name
        self.room = cost(name, type_name)


class Rosbridge:
    """Transport of the graph, and the `Bus` of all rosbridge sessions.

    Parameters
    ----------
    types : Types
        Message types.
    stamp : callable
        Returns the present ROS time.
    clock : callable
        Returns the wall time of the sessions' event loop, s.
    """

    wire = "cdr"
    mixes_types = True

    def __init__(
        self,
        types: Types,
        stamp: Callable[[], Stamp],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.types = types
        self.stamp = stamp
        self.values = Values(types, stamp)
        self.channels: dict[str, Channel] = {}
        self.services: dict[str, _Serving] = {}
        self.offered: dict[str, _Offered] = {}
        self._clock = clock
        self._shares = Shares(MAX_ALL_KEPT)
        self._requests: dict[str, tuple[_Offered, Answer]] = {}
        self._numbers = itertools.count(1)
        self._api = Rosapi(self)
        self._goals = Goals(self)
        self._actions = ClientActions()
        types.fields(
            "std_msgs/Header"
            # Read the types of ROS 2 now, which takes 0.5 s, instead of when the first
            # client connects.
        )

    def session(self, door: Door) -> RosbridgeSession:
        """Create the session of a client."""
        account = Account(self._shares, door.source, MAX_KEPT)
        return RosbridgeSession(
            self, self._clock, door.wake, door.warn, account, door.source
        )

    def close(self) -> None:
        """Do nothing: the sessions release everything themselves."""

    # -- offers of the graph

    def advertise(
        self,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> BridgePublication:
        """Publish a topic of the graph to clients."""
        return BridgePublication(self, node, topic, fresh, changed)

    def listen(self, node: str, entry: Input) -> BridgeListening:
        """Subscribe the simulator to a topic that clients publish."""
        return BridgeListening(self, node, entry)

    def serve(self, node: str, service: Service) -> _Serving:
        """Offer a service of the graph to clients."""
        made = self.services[service.name] = _Serving(self, node, service)
        return made

    # -- topics of sessions

    def channel(self, name: str) -> Channel:
        """Return the channel of a topic, which is created if needed.

        Parameters
        ----------
        name : str
            Absolute name, as `resolved` returns it.
        """
        found = self.channels.get(name)
        if found is None:
            found = self.channels[name] = Channel(name)
        return found

    def remove_unused(self, channel: Channel) -> None:
        """Remove a channel if it has neither publishers nor subscribers."""
        if not channel.is_known and not channel.readers:
            self.channels.pop(channel.name, None)

    def _typed(
        self, name: str, type_name: str, *, publishes: bool = False
    ) -> tuple[Channel, str]:
        """Return a channel for a client, and the type of its messages there.

        Raises
        ------
        PeerError
            The type does not exist or differs from the channel's type, or neither the
            client nor the channel names a type.
        """
        found = self.channels.get(resolved(name))
        kind = full(type_name) if type_name else ""
        # Look up the type, which raises an error if the type does not exist.
        if kind:
            self.values.fields(kind)
        if found is not None and found.type_name:
            listened = [one.type_name for one in found.inputs] if publishes else []
            if kind not in ("", found.type_name, *listened):
                raise PeerError(
                    f"rosbridge: {shown(name, MAX_TEXT)}: expected "
                    f"{found.type_name}, found {shown(type_name, MAX_TEXT)}"
                )

            return found, kind or found.type_name

        if not kind:
            raise PeerError(
                f'rosbridge: "{shown(name, MAX_TEXT)}" has no publisher with a type: '
                "expected the field type, found none"
            )

        found = self.channel(resolved(name))
        found.type_name = kind
        return found, kind

    def subscribe(self, client: RosbridgeSession, topic: str, type_name: str) -> None:
        """Subscribe a client to a topic; see `botyard.protocols.rosbridge.bus.Bus`."""
        channel, _ = self._typed(topic, type_name)
        channel.readers[client, topic] = None
        channel.changed()
        for publication in channel.publications:
            publication.welcome(client, topic)

    def unsubscribe(self, client: RosbridgeSession, topic: str) -> None:
        """End a subscription; see `botyard.protocols.rosbridge.bus.Bus`."""
        self.unread(topic, client)

    def register_publisher(
        self, client: RosbridgeSession, topic: str, type_name: str
    ) -> None:
        """Advertise a topic; see `botyard.protocols.rosbridge.bus.Bus`.

        Raises
        ------
        PeerError
            The client advertises `MAX_ADVERTISED` topics already, has no memory left,
            or names an unknown type.
        """
        # A topic that the client already advertises does not count: it may be
        # advertised again, for example with another type.
        advertised = {c.name for c in self.channels.values() if client in c.writers}
        if len(advertised - {resolved(topic)}) >= MAX_ADVERTISED:
            raise PeerError(
                f"rosbridge: a client may advertise at most {MAX_ADVERTISED} topics"
            )

        channel, kind = self._typed(topic, type_name, publishes=True)
        try:
            client.keep(cost(channel.name, kind))
        # The client has no memory left, so remove the channel if it was created for
        # this client.
        except PeerError:
            self.remove_unused(channel)
            raise

        self._forget_writer(channel, client)
        channel.writers[client] = kind

    def unregister_publisher(self, client: RosbridgeSession, topic: str) -> None:
        """Unadvertise a topic; see `botyard.protocols.rosbridge.bus.Bus`."""
        channel = self.channels.get(resolved(topic))
        if channel is not None:
            self._forget_writer(channel, client)
            self.remove_unused(channel)

    def _forget_writer(self, channel: Channel, client: RosbridgeSession) -> None:
        kind = channel.writers.pop(client, None)
        if kind is not None:
            client.forget(cost(channel.name, kind))

    def publish(
        self, client: RosbridgeSession, topic: str, values: dict[str, Any], size: int
    ) -> None:
        """Publish a message; see `botyard.protocols.rosbridge.bus.Bus`.

        Raises
        ------
        PeerError
            No publisher or subscriber knows the topic, the message is too long, or its
            values do not fit the type.
        """
        channel = self.channels.get(resolved(topic))
        if channel is None or not channel.is_known:
            raise PeerError(
                f'rosbridge: "{shown(topic, MAX_TEXT)}" is not advertised and has no subscriber'
            )

        # Check the size first, because making the message takes much longer than
        # receiving it.
        limits = [JSON_GROWTH * one.entry.limit for one in channel.inputs]
        if limits and size > min(limits):
            raise PeerError(
                f"rosbridge: {channel.name}: expected a message of at most {min(limits)} "
                f"bytes, found {size}"
            )

        kind = channel.writers.get(client, channel.type_name)
        message = self.values.message(values, kind)
        for one in channel.inputs:
            if one.type_name == kind:
                one.entry.take(message)

        # Readers get only messages of the topic's type. The simulator may also accept
        # other types.
        if channel.readers and kind == channel.type_name:
            plain = self.values.plain
            channel.deliver(
                Outgoing(
                    lambda: plain(message, kind),
                    lambda: self.types.encode_cdr(message, kind),
                    self.stamp(),
                )
            )

    # -- services

    def call(
        self,
        client: RosbridgeSession,
        service: str,
        values: Any,
        size: int,
        answer: Answer,
    ) -> Callable[[], None]:
        """Call a service; see `botyard.protocols.rosbridge.bus.Bus`.

        Raises
        ------
        PeerError
            No such service exists, or the request is too long.
        """
        name = resolved(service)
        # Try rosapi first, so that no client can take over its names.
        if name.startswith(PREFIX):
            self._api.call(name, values, answer)
        elif (found := self.services.get(name)) is not None:
            if size > JSON_GROWTH * MAX_REQUEST:
                raise PeerError(
                    f"rosbridge: {name}: expected a request of at most "
                    f"{JSON_GROWTH * MAX_REQUEST} bytes, found {size}"
                )

            found.call(values, answer)
        elif (offered := self.offered.get(name)) is not None:
            return self._ask(client, offered, values, answer)
        else:
            raise PeerError(f'rosbridge: no service "{shown(service, MAX_TEXT)}"')

        return lambda: None

    def _ask(
        self, caller: RosbridgeSession, offered: _Offered, values: Any, answer: Answer
    ) -> Callable[[], None]:
        """Pass a call to the client that offers the service; return a function that abandons it.

        Raises
        ------
        PeerError
            Too many calls wait for the service's client.
        """
        # Many callers together must not fill the memory of the one client that answers.
        if (
            sum(one.client is offered.client for one, _ in self._requests.values())
            >= MAX_REQUESTS
        ):
            raise PeerError(
                f"rosbridge: {offered.name}: expected at most {MAX_REQUESTS} unanswered calls of "
                f"its client's services, found {MAX_REQUESTS}"
            )

        ident = f"{offered.name}:{next(self._numbers)}"
        # Send before storing the request, so that an error leaves no stored request.
        offered.client.request(
            ident, offered.name, {} if values is None else values, caller
        )
        self._requests[ident] = offered, answer

        def abandon() -> None:
            self._requests.pop(ident, None)

        return abandon

    def register_service(
        self, client: RosbridgeSession, service: str, type_name: str
    ) -> None:
        """Offer a service of a client; see `botyard.protocols.rosbridge.bus.Bus`.

        Raises
        ------
        PeerError
            Another node offers the service, or the client already offers `MAX_OFFERED`
            services.
        """
        name = resolved(service)
        other = self.offered.get(name)
        if (
            name in self.services
            or name.startswith(PREFIX)
            or (other is not None and other.client is not client)
        ):
            raise PeerError(
                f'rosbridge: another node offers the service "{shown(service, MAX_TEXT)}"'
            )

        if (
            other is None
            and sum(one.client is client for one in self.offered.values())
            >= MAX_OFFERED
        ):
            raise PeerError(
                f"rosbridge: a client may offer at most {MAX_OFFERED} services"
            )

        made = _Offered(client, service, service_name(type_name))
        # Account for the memory of the new service before the replaced one is released:
        # if memory is short, an error leaves the old service in place.
        client.keep(made.room)
        if other is not None:
            client.forget(other.room)
        self.offered[name] = made

    def unregister_service(self, client: RosbridgeSession, service: str) -> None:
        """Withdraw a client's service; see `botyard.protocols.rosbridge.bus.Bus`."""
        found = self.offered.get(resolved(service))
        if found is not None and found.client is client:
            del self.offered[resolved(service)]
            client.forget(found.room)
            self._fail(lambda offered: offered is found)

    def _fail(self, concerns: Callable[[_Offered], bool]) -> None:
        """End the calls whose server has disconnected or withdrawn the service."""
        for ident in [
            i for i, (offered, _) in self._requests.items() if concerns(offered)
        ]:
            offered, answer = self._requests.pop(ident)
            answer(
                False, f"the service {shown(offered.name, MAX_TEXT)} no longer exists"
            )

    def responded(
        self, client: RosbridgeSession, ident: str, is_good: bool, values: Any
    ) -> None:
        """Answer a call of a client; see `botyard.protocols.rosbridge.bus.Bus`.

        Raises
        ------
        PeerError
            No call with this id waits for the client.
        """
        found = self._requests.get(ident)
        if found is None or found[0].client is not client:
            raise PeerError(
                f'rosbridge: service_response: no waiting call has the id "{shown(ident, MAX_TEXT)}"'
            )

        del self._requests[ident]
        found[1](is_good, values)

    # -- actions

    def send_goal(self, client: RosbridgeSession, request: SendActionGoal) -> None:
        """Send a goal; see `botyard.protocols.rosbridge.bus.Bus`."""
        name = resolved(request.action)
        if name in self._actions.names:
            self._actions.send(client, request, name)
        else:
            self._goals.send(client, request, name)

    def cancel_goal(self, client: RosbridgeSession, action: str, ident: Id) -> None:
        """Cancel a goal; see `botyard.protocols.rosbridge.bus.Bus`."""
        if not self._actions.cancel(client, resolved(action), ident):
            self._goals.cancel(client, resolved(action), ident)

    def register_action(
        self, client: RosbridgeSession, action: str, type_name: str
    ) -> None:
        """Serve an action of a client; see `botyard.protocols.rosbridge.bus.Bus`.

        Raises
        ------
        PeerError
            Another node serves the action.
        """
        name = resolved(action)
        if name + SEND in self.services:
            raise PeerError(
                f'rosbridge: another node serves the action "{shown(action, MAX_TEXT)}"'
            )

        self._actions.register(client, name, action, type_name)

    def unregister_action(self, client: RosbridgeSession, action: str) -> None:
        """Withdraw a client's action; see `botyard.protocols.rosbridge.bus.Bus`."""
        self._actions.unregister(client, resolved(action))

    def publish_feedback(
        self, client: RosbridgeSession, ident: str, values: Any
    ) -> None:
        """Pass feedback of a goal; see `botyard.protocols.rosbridge.bus.Bus`."""
        self._actions.feedback(client, ident, values)

    def end_goal(
        self,
        client: RosbridgeSession,
        ident: str,
        status: int,
        values: Any,
        is_good: bool,
    ) -> None:
        """End a goal; see `botyard.protocols.rosbridge.bus.Bus`."""
        self._actions.ended(client, ident, status, values, is_good)

    def read(self, topic: str, reader: Reader) -> None:
        """Deliver a topic of the graph to a reader if the topic exists.

        Parameters
        ----------
        topic : str
            Absolute name.
        reader : Reader
            Receives the messages under this name.
        """
        channel = self.channels.get(topic)
        if channel is not None:
            channel.readers[reader, topic] = None
            channel.changed()

    def unread(self, topic: str, reader: Reader) -> None:
        """Stop the delivery of a topic.

        Parameters
        ----------
        topic : str
            Name that was used to subscribe.
        reader : Reader
            Reader that subscribed. Without a subscription nothing happens.
        """
        channel = self.channels.get(resolved(topic))
        if channel is not None:
            channel.readers.pop((reader, topic), None)
            channel.changed()
            self.remove_unused(channel)

    # -- disconnection

    def release_client(self, client: RosbridgeSession) -> None:
        """Release a client; see `botyard.protocols.rosbridge.bus.Bus`."""
        self._goals.release_client(client)
        self._actions.release_client(client)
        # Loop over a copy, because unused channels are removed in the loop.
        for channel in tuple(self.channels.values()):
            mine = [key for key in channel.readers if key[0] is client]
            for key in mine:
                del channel.readers[key]
            channel.writers.pop(client, None)
            # The publisher may stop its work for the topic.
            if mine:
                channel.changed()
            self.remove_unused(channel)

        for name in [n for n, one in self.offered.items() if one.client is client]:
            del self.offered[name]
        self._fail(lambda offered: offered.client is client)

    # -- for rosapi

    @property
    def client_actions(self) -> Iterable[str]:
        """Names of the actions that clients serve."""
        return self._actions.names

    def all_topics(self) -> Iterator[Channel]:
        """Yield every topic with a known type."""
        return (channel for channel in self.channels.values() if channel.type_name)

    def all_services(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, type and node of every service."""
        for name, one in self.services.items():
            yield name, one.type_name, one.node
        for name, other in self.offered.items():
            yield name, other.type_name, CLIENTS


__all__ = ["Rosbridge"]
