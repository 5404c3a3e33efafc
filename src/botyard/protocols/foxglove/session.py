"""Sans-I/O session of one client of Foxglove's WebSocket protocol.

Errors are sent to the client as a status, which Foxglove shows in its list of problems.
No input ends the connection. For a client that does not read, at most `MAX_WAITING`
bytes of messages wait: the newest messages of each topic are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from botyard.errors import BotyardError, PeerError
from botyard.names import shown
from botyard.protocols.foxglove import operations as op
from botyard.protocols.foxglove.bus import Bus
from botyard.protocols.foxglove.connectiongraph import graph_changes
from botyard.protocols.foxglove.limits import (
    MAX_ADDRESS_WAITING,
    MAX_ALL_KEPT,
    MAX_ANSWER_SIZE,
    MAX_ANSWERS,
    MAX_CALLS,
    MAX_KEPT,
    MAX_LISTED,
    MAX_MESSAGE,
    MAX_TEXT,
    MAX_WAITING,
)
from botyard.protocols.foxglove.operations import Level
from botyard.protocols.foxglove.subscriptions import Subscription
from botyard.protocols.shares import ENTRY_BYTES, Account, Shares, cost

ENCODINGS: Final = ("cdr", "json")
"""Encodings of messages and service calls of clients."""
CAPABILITIES: Final = (
    "clientPublish",
    "connectionGraph",
    "parameters",
    "parametersSubscribe",
    "services",
    "time",
)
Wire = str | bytes


def _room_of(channel: op.ClientChannel) -> int:
    return cost(channel.topic, channel.encoding, channel.schema_name)


class FoxgloveSession:
    """Session of one Foxglove client.

    Parameters
    ----------
    bus : Bus
        Topics, services and parameters.
    name : str
        Name of the server, which Foxglove shows.
    wake : callable
        Called when there is output.
    warn : callable
        Logs a line.
    account : Account, optional
        Memory account of the client.
    """

    def __init__(
        self,
        bus: Bus[FoxgloveSession],
        name: str,
        wake: Callable[[], None] = lambda: None,
        warn: Callable[[str], None] = lambda _text: None,
        account: Account | None = None,
    ) -> None:
        self._bus, self._wake, self._warn = bus, wake, warn
        self._account = account or Account(Shares(MAX_ALL_KEPT), "", MAX_KEPT)
        self._answers: deque[Wire] = deque()
        self._answer_size = 0
        self._new_channels = {channel.id: channel for channel in bus.channels()}
        self._new_services = {service.id: service for service in bus.services()}
        self._gone_channels: list[int] = []
        self._gone_services: list[int] = []
        self._subscriptions: dict[int, Subscription] = {}
        self._by_channel: dict[int, Subscription] = {}
        self._order: deque[Subscription] = deque()
        self._size = 0
        self._advertised: dict[int, op.ClientChannel] = {}
        self._calls: set[tuple[int, int]] = set()
        self._followed: set[str] | None = set()
        """Names of parameters to whose changes the client has subscribed; None for all."""
        self._known: dict[str, Any] = {}
        self._parameters_stale = False
        self._graph: Mapping[str, list[dict[str, Any]]] | None = None
        self._graph_stale = False
        self._time, self._time_sent = bus.time_ns, -1
        self.is_closed = False
        self._say(
            "serverInfo",
            name=name,
            capabilities=CAPABILITIES,
            supportedEncodings=ENCODINGS,
            metadata={},
            sessionId=bus.session_id,
        )

    # -- methods of `botyard.interfaces.interface.Session`

    def receive_data(self, data: bytes, now: float) -> None:
        """Process one WebSocket message.

        JSON starts with a brace. Binary messages start with an opcode, which is a
        smaller byte.
        """
        if self.is_closed:
            return
        try:
            if len(data) > MAX_MESSAGE:
                raise PeerError(
                    f"foxglove: expected at most {MAX_MESSAGE} bytes, found {len(data)}"
                )

            if data[:1].isspace() or data[:1] == b"{":
                self._act(op.read_text(data))
                return

            found = op.read_binary(data)
            if isinstance(found, op.ServiceCall):
                self._call(found)
            else:
                self._publish(found)
        except BotyardError as error:
            self.status(Level.ERROR, shown(error, MAX_TEXT))

    def data_to_send(self) -> Wire:
        """Take the next message, a text or bytes; empty if there is none.

        Answers are sent first, then changes of topics, services, parameters and the
        graph, then the time, and messages last.
        """
        if self._answers:
            answer = self._answers.popleft()
            self._answer_size -= len(answer)
            return answer

        # A closed session still sends its answers, but nothing else.
        if self.is_closed:
            return b""
        news = self._news()
        if news:
            return news
        # Send the time before messages, because Foxglove shows messages relative to it.
        if self._time != self._time_sent:
            self._time_sent = self._time
            return op.time_message(self._time)

        if self._order:
            data = self._order.popleft().queue.popleft()
            self._size -= len(data)
            return data

        return b""

    def _news(self) -> Wire:
        """Return the next change of topics, services, parameters or the graph.

        Changes are collected until the client reads.
        """
        if self._gone_channels:
            gone, self._gone_channels = self._gone_channels, []
            return op.text_of("unadvertise", channelIds=gone)

        if self._gone_services:
            gone, self._gone_services = self._gone_services, []
            return op.text_of("unadvertiseServices", serviceIds=gone)

        if self._new_channels:
            channels, self._new_channels = [*self._new_channels.values()], {}
            return op.text_of("advertise", channels=channels)

        if self._new_services:
            services, self._new_services = [*self._new_services.values()], {}
            return op.text_of("advertiseServices", services=services)

        if self._parameters_stale:
            self._parameters_stale = False
            changed = self._changed_parameters()
            if changed:
                return op.text_of("parameterValues", parameters=changed)

        if self._graph_stale and self._graph is not None:
            self._graph_stale = False
            before, self._graph = self._graph, self._bus.connections()
            fields = graph_changes(before, self._graph)
            if any(fields.values()):
                return op.text_of("connectionGraphUpdate", **fields)

        return b""

    def next_timer(self) -> float | None:
        """Return None, because this session has no timers."""
        return None

    def handle_timer(self, now: float) -> None:
        """Do nothing, because this session has no timers."""

    def on_snapshot(self, now: float) -> None:
        """Update the time after a step; messages of topics arrive by `deliver`."""
        self._time = self._bus.time_ns

    def close(self) -> None:
        """Release the session after its connection has ended."""
        self.is_closed = True
        self._bus.release_client(self)
        self._account.close()
        self._followed = set()
        for waiting in (
            self._answers,
            self._order,
            self._subscriptions,
            self._by_channel,
            self._advertised,
            self._calls,
            self._new_channels,
            self._new_services,
            self._gone_channels,
            self._gone_services,
            self._known,
        ):
            waiting.clear()

        self._size = self._answer_size = 0
        self._graph = None

    # -- calls of the bus

    def deliver(self, channel: int, data: bytes, time_ns: int, queue: int) -> None:
        """Queue a message of a subscribed channel, of which at most `queue` messages may wait.

        Parameters
        ----------
        channel : int
            Id of the channel. Without a subscription to it, nothing happens.
        data : bytes
            Message in the channel's encoding.
        time_ns : int
            Time of the message, ns.
        queue : int
            Queue length of the topic; at least one message is kept.
        """
        to = self._by_channel.get(channel)
        if to is None:
            return
        data = op.message_head(to.id, time_ns) + data
        # Drop the oldest message of the topic if its queue is full.
        if len(to.queue) >= max(1, queue):
            # The topic keeps its place in the order of sending.
            self._size -= len(to.queue.popleft())
        else:
            self._order.append(to)

        to.queue.append(data)
        self._size += len(data)
        most = self._account.part(MAX_WAITING, MAX_ADDRESS_WAITING)
        while self._size > most and len(self._order) > 1:
            self._size -= len(self._order.popleft().queue.popleft())
        self._wake()

    def advertise(self, channel: op.Channel) -> None:
        """Announce a new topic to the client."""
        self._new_channels[channel.id] = channel
        self._wake()

    def unadvertise(self, channel: int) -> None:
        """Withdraw a topic, and end the client's subscription to it."""
        to = self._by_channel.get(channel)
        if to is not None:
            self._forget(to)
        # If the client does not know the topic yet, its removal is not reported either.
        if self._new_channels.pop(channel, None) is None:
            self._gone_channels.append(channel)
            self._wake()

    def advertise_service(self, service: op.Service) -> None:
        """Announce a new service to the client."""
        self._new_services[service.id] = service
        self._wake()

    def unadvertise_service(self, service: int) -> None:
        """Withdraw a service from the client."""
        if self._new_services.pop(service, None) is None:
            self._gone_services.append(service)
            self._wake()

    def parameters_changed(self) -> None:
        """Schedule a check for changed parameters.

        The client gets the changed parameters to which it has subscribed.
        """
        if self._followed is None or self._followed:
            self._parameters_stale = True
            self._wake()

    def _changed_parameters(self) -> list[op.Parameter]:
        now, known = self._bus.parameters(self), self._known
        self._known = {name: p.value for name, p in now.items()}
        return [
            p
            for name, p in now.items()
            if self._follows(name) and (name not in known or known[name] != p.value)
        ]

    def connections_changed(self) -> None:
        """Schedule an update of publishers, subscribers and services.

        A client that has subscribed to the graph gets the difference.
        """
        if self._graph is not None:
            self._graph_stale = True
            self._wake()

    def status(self, level: Level, text: str) -> None:
        """Send a status to the client.

        Parameters
        ----------
        level : Level
            Severity that the client shows.
        text : str
            The line, which Foxglove lists under its problems.
        """
        self._say("status", level=int(level), message=text)

    # -- operations

    def _act(self, operation: op.AnyOperation) -> None:
        match operation:
            case op.Subscribe(subscriptions=wishes):
                self._each(self._subscribe, wishes)
            case op.Unsubscribe(subscription_ids=ids):
                self._each(self._unsubscribe, ids)
            case op.Advertise(channels=channels):
                self._each(self._advertise, channels)
            case op.Unadvertise(channel_ids=ids):
                self._each(self._unadvertise, ids)
            case op.GetParameters(parameter_names=names, id=ident):
                self._tell_parameters(names, ident)
            case op.SetParameters(parameters=parameters, id=ident):
                self._set_parameters(parameters, ident)
            case op.SubscribeParameters(parameter_names=names):
                self._follow(names)
            case op.UnsubscribeParameters(parameter_names=names):
                self._unfollow(names)
            case op.SubscribeGraph():
                self._graph, self._graph_stale = {}, True
                self._wake()
            case op.UnsubscribeGraph():
                self._graph = None
            case op.FetchAsset():
                raise PeerError("foxglove: this server has no assets")

    def _each(self, act: Callable[[Any], None], items: Sequence[Any]) -> None:
        """Apply a function to each of several items; report the error of each item.

        A message may list half a million items. A client that does not read the answers
        is disconnected after `MAX_ANSWERS` errors.
        """
        for item in items:
            if self.is_closed:
                return
            try:
                act(item)
            except BotyardError as error:
                self.status(Level.WARNING, shown(error, MAX_TEXT))

    def _subscribe(self, wish: op.SubscriptionRequest) -> None:
        if not op.is_id(wish.id):
            raise PeerError(
                f"foxglove: subscribe: expected an id of 32 bits, found {wish.id}"
            )

        if wish.id in self._subscriptions:
            raise PeerError(
                f"foxglove: subscribe: subscription {wish.id} already exists"
            )

        # Refuse a second subscription: Foxglove needs only one for each channel, and
        # delivery is simpler.
        if wish.channel_id in self._by_channel:
            raise PeerError(
                f"foxglove: subscribe: channel {wish.channel_id} already has a subscription"
            )

        if len(self._subscriptions) >= MAX_LISTED:
            raise PeerError(f"foxglove: expected at most {MAX_LISTED} subscriptions")
        self._keep(ENTRY_BYTES)
        made = Subscription(wish.id, wish.channel_id)
        self._subscriptions[made.id] = self._by_channel[made.channel] = made
        try:
            self._bus.subscribe(self, made.channel)
        except BotyardError:
            self._forget(made)
            raise

    def _unsubscribe(self, ident: int) -> None:
        found = self._subscriptions.get(ident)
        if found is None:
            raise PeerError(f"foxglove: unsubscribe: unknown subscription {ident}")
        self._forget(found)
        self._bus.unsubscribe(self, found.channel)

    def _forget(self, one: Subscription) -> None:
        if self._subscriptions.pop(one.id, None) is not None:
            self._account.give_back(ENTRY_BYTES)
        self._by_channel.pop(one.channel, None)
        self._size -= sum(map(len, one.queue))
        if one.queue:
            one.queue.clear()
            self._order = deque(s for s in self._order if s is not one)

    def _keep(self, size: int) -> None:
        """Reserve memory for an entry of the client.

        Raises
        ------
        PeerError
            The client or its address has no memory left.
        """
        if not self._account.take(size):
            raise PeerError(
                "foxglove: the memory limit is reached: a client has "
                f"at most {MAX_KEPT} bytes"
            )

    def _advertise(self, channel: op.ClientChannel) -> None:
        if len(self._advertised) >= MAX_LISTED:
            raise PeerError(
                f"foxglove: expected at most {MAX_LISTED} advertised channels"
            )

        if channel.encoding not in ENCODINGS:
            raise PeerError(
                f"foxglove: advertise: expected one of {', '.join(ENCODINGS)}, "
                f"found {shown(channel.encoding)}"
            )

        if channel.id in self._advertised:
            raise PeerError(f"foxglove: advertise: channel {channel.id} already exists")

        self._keep(_room_of(channel))
        # Only warn, because a subscriber may appear later.
        if not self._bus.listens(channel.topic):
            self.status(
                Level.WARNING,
                f"the topic {shown(channel.topic, MAX_TEXT)} has no subscriber",
            )

        self._advertised[channel.id] = channel

    def _unadvertise(self, ident: int) -> None:
        found = self._advertised.pop(ident, None)
        if found is None:
            raise PeerError(f"foxglove: unadvertise: channel {ident} is not advertised")
        self._account.give_back(_room_of(found))

    def _publish(self, message: op.ClientMessage) -> None:
        channel = self._advertised.get(message.channel)
        if channel is None:
            raise PeerError(f"foxglove: channel {message.channel} is not advertised")
        self._bus.publish(self, channel, message.payload)

    def _call(self, call: op.ServiceCall) -> None:
        key = call.service, call.call
        # Keep the call for the answer without its payload, which may be large.
        asked = msgspec.structs.replace(call, payload=b"")

        def answer(is_good: bool, found: Any) -> None:
            # The client has disconnected, or the call was answered already.
            if key not in self._calls:
                return
            self._calls.discard(key)
            self._account.give_back(ENTRY_BYTES)
            if is_good:
                self._answer(op.service_response(asked, asked.encoding, found))
            else:
                self._failed(asked, str(found))

        if call.encoding not in ENCODINGS:
            self._failed(
                call,
                f"expected one of {', '.join(ENCODINGS)}, found {shown(call.encoding)}",
            )
        elif key in self._calls:
            self._failed(call, f"the call with the id {call.call} is not answered yet")
        elif len(self._calls) >= MAX_CALLS:
            self._failed(call, f"expected at most {MAX_CALLS} unanswered calls")
        elif not self._account.take(ENTRY_BYTES):
            self._failed(call, "the memory limit is reached")
        else:
            self._calls.add(key)
            try:
                self._bus.call(self, call, answer)
            except BotyardError as error:
                answer(False, shown(error, MAX_TEXT))

    def _failed(self, call: op.ServiceCall, text: str) -> None:
        self._say(
            "serviceCallFailure", serviceId=call.service, callId=call.call, message=text
        )

    # -- parameters

    def _tell_parameters(self, names: Sequence[str], ident: str | None) -> None:
        known = self._bus.parameters(self)
        # Parameters without a value are left out, as the specification demands.
        chosen = (
            [known[n] for n in dict.fromkeys(names[:MAX_LISTED]) if n in known]
            if names
            else [*known.values()]
        )
        self._say(
            "parameterValues",
            parameters=chosen,
            **({} if ident is None else {"id": ident}),
        )

    def _set_parameters(
        self, parameters: Sequence[op.Parameter], ident: str | None
    ) -> None:
        self._each(lambda p: self._bus.set_parameter(self, p), parameters[:MAX_LISTED])
        # A request without an id needs no answer.
        if ident is not None:
            self._tell_parameters([p.name for p in parameters], ident)

    def _follow(self, names: Sequence[str]) -> None:
        # Remember the present values, so that the client gets only later changes.
        self._known = {name: p.value for name, p in self._bus.parameters(self).items()}
        if not names:
            self._forget_names()
            self._followed = None
        elif self._followed is not None:
            added = {*names} - self._followed
            if len(self._followed) + len(added) > MAX_LISTED:
                raise PeerError(
                    f"foxglove: expected at most {MAX_LISTED} names of parameters"
                )

            self._keep(sum(map(cost, added)))
            self._followed |= added

    def _unfollow(self, names: Sequence[str]) -> None:
        rest = (
            {*self._bus.parameters(self)}
            if self._followed is None
            else set(self._followed)
        )
        self._forget_names()
        self._followed = rest - {*names} if names else set()
        if not self._account.take(sum(map(cost, self._followed))):
            self._followed = set()

    def _forget_names(self) -> None:
        self._account.give_back(sum(map(cost, self._followed or ())))

    def _follows(self, name: str) -> bool:
        return self._followed is None or name in self._followed

    # -- answers

    def _say(self, operation: str, **fields: Any) -> None:
        self._answer(op.text_of(operation, **fields))

    def _answer(self, data: Wire) -> None:
        if self.is_closed:
            return
        if len(self._answers) >= MAX_ANSWERS or self._answer_size >= self._account.part(
            MAX_ANSWER_SIZE, MAX_ADDRESS_WAITING
        ):
            self._warn(
                f"foxglove: {len(self._answers)} answers wait for a client that "
                "does not read them: it is disconnected"
            )
            self.close()
            return

        self._answers.append(data)
        self._answer_size += len(data)
        self._wake()


__all__ = [
    "CAPABILITIES",
    "ENCODINGS",
    "FoxgloveSession",
]
