"""Sans-I/O session of one client of the rosbridge protocol v2 (ROSBRIDGE_PROTOCOL.md of
rosbridge_suite, ROS 2).

What goes wrong is logged, and told to the client if it has asked for status messages
(``set_level``): clients such as roslibpy do not expect any. Nothing that a client sends
ends the connection, except that it lets too many answers lie unread.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final, Protocol

from botyard.errors import BotyardError, PeerError
from botyard.names import shown
from botyard.protocols.rosbridge import operations as op
from botyard.protocols.rosbridge.encodings import (
    COMPRESSIONS,
    MIN_FRAGMENT,
    Outgoing,
    Wire,
    packed,
)
from botyard.protocols.rosbridge.outbox import Outbox, Subscription
from botyard.protocols.shares import Account, Shares, cost

MAX_MESSAGE: Final = 1 << 20
"""Longest operation of a client, bytes, also of one in fragments. Longer ones are not
read, and the client is told so.
"""
MAX_FRAME: Final = 4 << 20
"""Longest message of a WebSocket, bytes: one that is longer ends the connection (RFC
6455, status 1009).
"""
MAX_FRAGMENTS: Final = 10_000
"""Most fragments of an operation."""
MAX_PARTIAL: Final = 16
"""Most operations of which a client has sent some fragments; the oldest is dropped."""
FRAGMENT_TIMEOUT_S: Final = 60.0
"""Time-out of an operation of which fragments are missing, s."""
MAX_SUBSCRIPTIONS: Final = 1000
"""Most topics that a client subscribes to."""
MAX_SAME_TOPIC: Final = 100
"""Most subscriptions of one topic."""
MAX_KEPT: Final = 4 << 20
"""Most bytes that a client makes us keep: its subscriptions, calls and fragments, and
what it advertises, offers and serves.
"""
MAX_ALL_KEPT: Final = 64 << 20
"""Most bytes that all clients make us keep; those of one address a quarter."""
MAX_CALLS: Final = 100
"""Most service calls of a client that are not answered yet."""
MAX_CALL_TIMEOUT_S: Final = 86400.0
"""Longest time-out of a service call, s."""
MAX_TEXT: Final = 300
"""Longest text of an error, characters."""
LEVELS: Final = ("none", "error", "warning", "info")
"""Levels of status messages: a client gets those of its level and of the levels before
it.
"""
_FULL: Final = (
    "there is no room: a client makes the simulator keep at most "
    f"{MAX_KEPT} bytes, an address four times as much"
)
_UNREAD: Final = "there is no room for the answer: too many lie unread"
FAILED: Final = 0
"""Status of an action's result that there was no goal for: action_msgs/GoalStatus,
unknown.
"""

Answer = Callable[[bool, Any], None]
"""Takes whether a service call has succeeded, and its values, or a text that says why
not.
"""


class Bus(Protocol):
    """Topics and services, as sessions see them. Every method may raise a
    `BotyardError`, which the client is told.
    """

    def subscribe(self, client: RosbridgeSession, topic: str, type_name: str) -> None:
        """Deliver a topic's messages under this name (`RosbridgeSession.deliver`), the
        last one of a latched topic at once.
        """
        ...

    def unsubscribe(self, client: RosbridgeSession, topic: str) -> None:
        """Stop delivering them."""
        ...

    def register_publisher(
        self, client: RosbridgeSession, topic: str, type_name: str
    ) -> None:
        """The client is going to publish messages of this type."""
        ...

    def unregister_publisher(self, client: RosbridgeSession, topic: str) -> None:
        """It will not any more."""
        ...

    def publish(
        self, client: RosbridgeSession, topic: str, values: dict[str, Any], size: int
    ) -> None:
        """Publish a message, whose operation had `size` bytes."""
        ...

    def call(
        self,
        client: RosbridgeSession,
        service: str,
        values: Any,
        size: int,
        answer: Answer,
    ) -> Callable[[], None]:
        """Call a service by an operation of `size` bytes; `answer` is called once, now
        or later, unless this raises.

        Returns a function that abandons the call: nobody waits for the answer any more.
        """
        ...

    def register_service(
        self, client: RosbridgeSession, service: str, type_name: str
    ) -> None:
        """The client answers calls of a service (`RosbridgeSession.request`)."""
        ...

    def unregister_service(self, client: RosbridgeSession, service: str) -> None:
        """It does not any more."""
        ...

    def responded(
        self, client: RosbridgeSession, ident: str, is_good: bool, values: Any
    ) -> None:
        """It has answered the request of this id."""
        ...

    def send_goal(self, client: RosbridgeSession, wish: op.SendActionGoal) -> None:
        """Send a goal to an action: `RosbridgeSession.goal_feedback` any number of
        times, then `goal_ended` once, unless this raises.
        """
        ...

    def cancel_goal(self, client: RosbridgeSession, action: str, ident: op.Id) -> None:
        """Cancel its goal of this id."""
        ...

    def register_action(
        self, client: RosbridgeSession, action: str, type_name: str
    ) -> None:
        """The client serves an action (`RosbridgeSession.goal`, `goal_cancelled`)."""
        ...

    def unregister_action(self, client: RosbridgeSession, action: str) -> None:
        """It does not any more."""
        ...

    def publish_feedback(
        self, client: RosbridgeSession, ident: str, values: Any
    ) -> None:
        """It tells how far it is with the goal of this id."""
        ...

    def end_goal(
        self,
        client: RosbridgeSession,
        ident: str,
        status: int,
        values: Any,
        is_good: bool,
    ) -> None:
        """It has ended the goal of this id."""
        ...

    def leave(self, client: RosbridgeSession) -> None:
        """The client has gone, with all that it had."""
        ...


class _Call:
    """A service call that is not answered yet, with its deadline, s."""

    def __init__(self, deadline: float, answer: Answer) -> None:
        self.deadline, self.answer = deadline, answer
        self.abandon: Callable[[], None] = lambda: None


class _Partial:
    """An operation of which fragments are missing."""

    def __init__(self, total: int, now: float) -> None:
        self.total, self.since = total, now
        self.size = self.room = 0
        self.pieces: dict[int, str] = {}


class RosbridgeSession:
    """Session of one client.

    Parameters
    ----------
    bus : Bus
        Topics and services.
    clock : callable
        Wall time, s: that of the arguments `now`.
    wake : callable
        There is something to send.
    warn : callable
        Takes a line for the log.
    account : Account, optional
        Of what it makes us keep.
    source : str
        The client's address.
    """

    def __init__(
        self,
        bus: Bus,
        clock: Callable[[], float],
        wake: Callable[[], None] = lambda: None,
        warn: Callable[[str], None] = lambda _text: None,
        account: Account | None = None,
        source: str = "",
    ) -> None:
        self._bus, self._clock, self._wake, self._warn = bus, clock, wake, warn
        self._account = account or Account(Shares(MAX_ALL_KEPT), source, MAX_KEPT)
        self.source = source
        self._out = Outbox(self._account)
        self._subscriptions: dict[str, Subscription] = {}
        self._partial: dict[str | int, _Partial] = {}
        self._calls: dict[int, _Call] = {}
        self._numbers = itertools.count(1)
        self._level = 0
        self.is_closed = False

    # -- see `botyard.interfaces.interface.Session`

    def receive_data(self, data: bytes, now: float) -> None:
        """Process one message of the WebSocket."""
        if self.is_closed:
            return
        ident: op.Id = None
        try:
            if len(data) > MAX_MESSAGE:
                raise PeerError(
                    f"rosbridge: expected at most {MAX_MESSAGE} bytes, found {len(data)}"
                )

            operation = op.read_operation(data)
            ident, size = operation.id, len(data)
            if isinstance(operation, op.Fragment):
                whole = self._assembled(operation, now)
                if whole is None:
                    return
                operation = op.read_operation(whole)
                ident, size = operation.id, len(whole)

            self._act(operation, size)
        except BotyardError as error:
            self._say("error", shown(error, MAX_TEXT), ident)

    def data_to_send(self) -> Wire:
        """The next message, a text or bytes; empty if there is none."""
        return self._out.take()

    def next_timer(self) -> float | None:
        """When `handle_timer` must be called, s."""
        times = [p.since + FRAGMENT_TIMEOUT_S for p in self._partial.values()]
        times += [call.deadline for call in self._calls.values()]
        times += [] if self._out.due is None else [self._out.due]
        return min((t for t in times if t < math.inf), default=None)

    def handle_timer(self, now: float) -> None:
        """Time has passed."""
        self._out.release(now)
        for ident in [
            i for i, p in self._partial.items() if now >= p.since + FRAGMENT_TIMEOUT_S
        ]:
            self._drop_partial(ident)
            self._say(
                "warning",
                f"fragments of {shown(str(ident), MAX_TEXT)} are missing: dropped",
                ident,
            )

        for call in [call for call in self._calls.values() if now >= call.deadline]:
            call.abandon()
            call.answer(False, "timed out")

    def on_snapshot(self, now: float) -> None:
        """Nothing: topics are published by the graph."""

    def close(self) -> None:
        """The connection has ended."""
        self.is_closed = True
        for call in self._calls.values():
            call.abandon()
        self._bus.leave(self)
        self._account.close()
        self._subscriptions.clear()
        self._partial.clear()
        self._calls.clear()
        self._out = Outbox(self._account)

    # -- what the bus calls

    def deliver(
        self, topic: str, message: Outgoing, *, latched: bool, queue: int
    ) -> None:
        """A message of a subscribed topic; `queue` of them may wait. It is encoded only
        if throttling lets it pass.
        """
        to = self._subscriptions.get(topic)
        now = self._clock()
        if to is not None and self._out.is_wanted(to, now, latched):
            self._out.add(to, message.form(topic, to.compression), now, queue)
            self._wake()

    def keep(self, size: int) -> None:
        """Take room for something that the client makes us keep.

        Raises
        ------
        PeerError
            It makes us keep too much.
        """
        if not self._account.take(size):
            raise PeerError(f"rosbridge: {_FULL}")

    def forget(self, size: int) -> None:
        """Give that room back."""
        self._account.give_back(size)

    def request(
        self, ident: str, service: str, values: dict[str, Any], caller: RosbridgeSession
    ) -> None:
        """Another client calls a service that this one offers.

        Raises
        ------
        PeerError
            Too many calls wait for it to read; the same for goals.
        """
        self._ask(
            {"op": "call_service", "id": ident, "service": service, "args": values},
            caller,
        )

    def goal(
        self,
        ident: str,
        action: str,
        type_name: str,
        args: Any,
        caller: RosbridgeSession,
    ) -> None:
        """Another client sends a goal to an action that this one serves. PeerError: see
        `request`.
        """
        said = {
            "op": "send_action_goal",
            "id": ident,
            "action": action,
            "action_type": type_name,
            "args": args,
        }
        self._ask({**said, "feedback": True}, caller)

    def goal_cancelled(self, ident: str, action: str, caller: RosbridgeSession) -> None:
        """The goal of this id shall be cancelled. PeerError: see `request`."""
        self._ask({"op": "cancel_action_goal", "id": ident, "action": action}, caller)

    def _ask(self, said: dict[str, Any], caller: RosbridgeSession) -> None:
        wire = packed(said, "none")
        if not self._out.request(wire, caller.source):
            raise PeerError(
                "rosbridge: too many calls and goals wait for the client that serves them to read"
            )

        self._wake()

    # -- operations

    def _act(self, operation: op.AnyOperation, size: int) -> None:
        match operation:
            case op.Publish(topic=topic, msg=values):
                self._bus.publish(self, topic, values, size)
            case op.Subscribe():
                self._subscribe(operation)
            case op.Unsubscribe(topic=topic, id=ident):
                self._unsubscribe(topic, ident)
            case op.CallService():
                self._call(operation, size)
            case op.Advertise(topic=topic, type=type_name):
                self._bus.register_publisher(self, topic, type_name)
            case op.Unadvertise(topic=topic):
                self._bus.unregister_publisher(self, topic)
            case op.AdvertiseService(service=service, type=type_name):
                self._bus.register_service(self, service, type_name)
            case op.UnadvertiseService(service=service):
                self._bus.unregister_service(self, service)
            case op.ServiceResponse(id=ident, result=is_good, values=values):
                self._bus.responded(self, str(ident), is_good, values)
            case op.SendActionGoal():
                self._send_goal(operation)
            case op.CancelActionGoal(action=action, id=ident):
                self._bus.cancel_goal(self, action, ident)
            case op.AdvertiseAction(action=action, type=type_name):
                self._bus.register_action(self, action, type_name)
            case op.UnadvertiseAction(action=action):
                self._bus.unregister_action(self, action)
            case op.ActionFeedback(id=ident, values=values):
                self._bus.publish_feedback(self, str(ident), values)
            case op.ActionResult(
                id=ident, status=status, values=values, result=is_good
            ):
                self._bus.end_goal(self, str(ident), status, values, is_good)
            case op.SetLevel(level=level):
                if level not in LEVELS:
                    raise PeerError(
                        "rosbridge: set_level: expected one of "
                        f"{', '.join(LEVELS)}, found {shown(repr(level))}"
                    )

                self._level = LEVELS.index(level)
            case op.Fragment():
                raise PeerError(
                    "rosbridge: expected an operation in the fragments, found another fragment"
                )
            case op.Auth() | op.Status():
                pass

    def _subscribe(self, wish: op.Subscribe) -> None:
        if wish.compression not in (None, *COMPRESSIONS):
            self._say(
                "warning",
                f'no compression "{shown(wish.compression)}" (known: {", ".join(COMPRESSIONS)})',
                wish.id,
            )

        found = self._subscriptions.get(wish.topic)
        if found is None:
            if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
                raise PeerError(
                    f"rosbridge: expected at most {MAX_SUBSCRIPTIONS} subscribed topics"
                )

            found = Subscription(wish.topic)
            found.add(wish, MAX_SAME_TOPIC)
            self.keep(found.size)
            self._subscriptions[wish.topic] = found
            try:
                self._bus.subscribe(self, wish.topic, wish.type or "")
            except BotyardError:
                del self._subscriptions[wish.topic]
                self.forget(found.size)
                raise
        else:
            before = found.size
            self.keep(cost(wish.topic, wish.id, wish.type, wish.compression))
            is_added = found.add(wish, MAX_SAME_TOPIC)
            self.forget(
                before
                + cost(wish.topic, wish.id, wish.type, wish.compression)
                - found.size
            )
            if not is_added:
                raise PeerError(
                    f"rosbridge: expected at most {MAX_SAME_TOPIC} subscriptions "
                    f"of {shown(wish.topic, MAX_TEXT)}"
                )

    def _unsubscribe(self, topic: str, ident: op.Id) -> None:
        found = self._subscriptions.get(topic)
        if found is None:
            raise PeerError(
                f"rosbridge: unsubscribe: {shown(topic, MAX_TEXT)} is not subscribed to"
            )

        before = found.size
        found.remove(ident)
        self.forget(before - found.size)
        if found.is_over:
            del self._subscriptions[topic]
            self._out.forget(found)
            self._bus.unsubscribe(self, topic)

    def _call(self, wish: op.CallService, size: int) -> None:
        number = next(self._numbers)
        call_of, args, room = (
            op.kept(wish),
            wish.args,
            cost(wish.service, wish.id, wish.compression),
        )
        # what waits for the answer keeps no arguments
        del wish

        def answer(is_good: bool, values: Any) -> None:
            if (
                self._calls.pop(number, None) is not None
            ):  # else it has timed out, or the client has gone
                self.forget(room)
                self._respond(call_of, is_good, values)

        if len(self._calls) >= MAX_CALLS:
            self._respond(
                call_of,
                False,
                f"expected at most {MAX_CALLS} calls that are not answered yet",
            )
            return

        if not self._account.take(room):
            self._respond(call_of, False, _FULL)
            return

        limit = min(call_of.timeout or 0.0, MAX_CALL_TIMEOUT_S)
        call = self._calls[number] = _Call(
            self._clock() + limit if limit > 0.0 else math.inf, answer
        )
        try:
            call.abandon = self._bus.call(self, call_of.service, args, size, answer)
        except BotyardError as error:
            answer(False, shown(error, MAX_TEXT))

    def _respond(self, wish: op.CallService, is_good: bool, values: Any) -> None:
        said = {
            "op": "service_response",
            "service": wish.service,
            "values": values,
            "result": is_good,
        }
        self._answer(
            said,
            wish.id,
            wish.compression,
            wish.fragment_size,
            {"values": _UNREAD, "result": False},
        )

    def _send_goal(self, wish: op.SendActionGoal) -> None:
        try:
            self._bus.send_goal(self, wish)
        except BotyardError as error:
            self.goal_ended(wish, FAILED, shown(error, MAX_TEXT), is_good=False)

    def goal_feedback(self, wish: op.SendActionGoal, values: Any) -> None:
        """Feedback of a goal; left out while many answers wait for the client to read."""
        if self._out.has_room:
            said = {"op": "action_feedback", "action": wish.action, "values": values}
            self._answer(said, wish.id, wish.compression, wish.fragment_size)

    def goal_ended(
        self, wish: op.SendActionGoal, status: int, values: Any, *, is_good: bool
    ) -> None:
        """A goal has ended, with its result; or there was none, and `values` are a text
        that says why (`is_good` false).
        """
        said = {
            "op": "action_result",
            "action": wish.action,
            "values": values,
            "status": status,
            "result": is_good,
        }
        self._answer(
            said,
            wish.id,
            wish.compression,
            wish.fragment_size,
            {"values": _UNREAD, "result": False},
        )

    # -- fragments

    def _assembled(self, piece: op.Fragment, now: float) -> bytes | None:
        """The whole operation, if this was its last piece."""
        total = int(piece.total) if 1 <= piece.total <= MAX_FRAGMENTS else 0
        if not 0 <= piece.num < total:
            raise PeerError(
                "rosbridge: fragment: expected num of 0 … total-1 and total of "
                f"1 … {MAX_FRAGMENTS}, "
                f"found {piece.num} of {piece.total:g}"
            )

        partial = self._partial.get(piece.id)
        if partial is None or partial.total != total:
            while len(self._partial) >= MAX_PARTIAL:
                self._drop_partial(next(iter(self._partial)))
            self._drop_partial(piece.id)
            partial = self._partial[piece.id] = _Partial(total, now)

        if piece.num not in partial.pieces:
            room = cost(piece.data)
            self.keep(room)
            partial.size += len(piece.data)
            partial.room += room
            partial.pieces[piece.num] = piece.data

        while sum(p.size for p in self._partial.values()) > MAX_MESSAGE:
            oldest = next(iter(self._partial))
            self._drop_partial(oldest)
            if oldest == piece.id:
                raise PeerError(
                    f"rosbridge: fragments: expected at most {MAX_MESSAGE} characters"
                )

        if len(partial.pieces) < total:
            return None
        self._drop_partial(piece.id)
        return "".join(partial.pieces[k] for k in range(total)).encode(
            "utf-8", "replace"
        )

    def _drop_partial(self, ident: str | int) -> None:
        found = self._partial.pop(ident, None)
        if found is not None:
            self.forget(found.room)

    # -- output

    def _answer(
        self,
        said: dict[str, Any],
        ident: op.Id = None,
        compression: str | None = None,
        fragment: int | None = None,
        instead: dict[str, Any] | None = None,
    ) -> None:
        """Add an answer; what another client has answered is replaced by `instead` when
        too much waits to be read.
        """
        if ident is not None:
            said["id"] = ident
        form = compression if compression in ("png", "cbor") else "none"
        wire = packed(said, form)
        if instead is not None and not self._out.fits(len(wire)):
            wire = packed({**said, **instead}, form)
        self._out.answer(
            wire, max(MIN_FRAGMENT, fragment) if fragment and fragment > 0 else 0
        )
        if self._out.is_overfull:
            self._warn("a client lets too many answers lie unread: it is disconnected")
            self.is_closed = True

        self._wake()

    def _say(self, level: str, text: str, ident: op.Id) -> None:
        """Log a line, and send it as a status message to a client that wants those of
        this level.
        """
        self._warn(text)
        if LEVELS.index(level) <= self._level:
            self._answer({"op": "status", "level": level, "msg": text}, ident)


__all__ = ["MAX_FRAME", "MAX_MESSAGE", "Answer", "Bus", "RosbridgeSession"]
