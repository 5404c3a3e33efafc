"""Sans-I/O session of one client of rosbridge v2.

Errors are logged. A client gets them only if it has requested status messages
(``set_level``), because clients such as roslibpy do not expect status messages. No
input ends the connection; only too many unread answers do. Source:
ROSBRIDGE_PROTOCOL.md of rosbridge_suite, ROS 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final

from botyard.errors import BotyardError, PeerError
from botyard.names import shown
from botyard.protocols.rosbridge import operations as op
from botyard.protocols.rosbridge.assembler import Assembler
from botyard.protocols.rosbridge.bus import Answer, Bus
from botyard.protocols.rosbridge.encodings import (
    COMPRESSIONS,
    MIN_FRAGMENT,
    Outgoing,
    Wire,
    packed,
)
from botyard.protocols.rosbridge.limits import (
    MAX_ALL_KEPT,
    MAX_CALL_TIMEOUT_S,
    MAX_CALLS,
    MAX_KEPT,
    MAX_MESSAGE,
    MAX_SAME_TOPIC,
    MAX_SUBSCRIPTIONS,
    MAX_TEXT,
)
from botyard.protocols.rosbridge.outbox import Outbox, Subscription
from botyard.protocols.shares import Account, Shares, cost

LEVELS: Final = ("none", "error", "warning", "info")
"""Levels of status messages. A client gets messages of its level and of the levels before it."""
_FULL: Final = (
    "the memory limit is reached: a client has at most "
    f"{MAX_KEPT} bytes, an address four times as much"
)
_UNREAD: Final = "there is no room for the answer: too many answers are unread"
FAILED: Final = 0
"""Status of a result without a goal: UNKNOWN of action_msgs/GoalStatus."""


class _Call:
    """Service call of the client that has no answer yet, with its deadline, s."""

    def __init__(self, deadline: float, answer: Answer) -> None:
        self.deadline, self.answer = deadline, answer
        self.abandon: Callable[[], None] = lambda: None


class RosbridgeSession:
    """Session of one rosbridge client.

    Parameters
    ----------
    bus : Bus
        Topics, services and actions.
    clock : callable
        Returns the wall time, s, as in the arguments `now`.
    wake : callable
        Called when there is output.
    warn : callable
        Logs a line.
    account : Account, optional
        Memory account of the client.
    source : str
        Address of the client.
    """

    def __init__(
        self,
        bus: Bus[RosbridgeSession],
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
        self._partial = Assembler(self.keep, self.forget)
        self._calls: dict[int, _Call] = {}
        self._numbers = itertools.count(1)
        self._level = 0
        self.is_closed = False

    # -- methods of `botyard.interfaces.interface.Session`

    def receive_data(self, data: bytes, now: float) -> None:
        """Process one WebSocket message of the client.

        Parameters
        ----------
        data : bytes
            JSON of an operation, or of a fragment of one.
        now : float
            Wall time, s.
        """
        if self.is_closed:
            return
        ident: op.Id = None
        try:
            # The length is checked before the JSON is parsed, which would cost much
            # more.
            if len(data) > MAX_MESSAGE:
                raise PeerError(
                    f"rosbridge: expected at most {MAX_MESSAGE} bytes, found {len(data)}"
                )

            operation = op.read_operation(data)
            ident, size = operation.id, len(data)
            if isinstance(operation, op.Fragment):
                whole = self._partial.add(operation, now)
                if whole is None:
                    return
                operation = op.read_operation(whole)
                ident, size = operation.id, len(whole)

            self._act(operation, size)
        except BotyardError as error:
            self._say("error", shown(error, MAX_TEXT), ident)

    def data_to_send(self) -> Wire:
        """Take the next message, a text or bytes; empty if there is none."""
        return self._out.take()

    def next_timer(self) -> float | None:
        """Return the time at which `handle_timer` must be called, s; None for never."""
        times = self._partial.deadlines()
        times += [call.deadline for call in self._calls.values()]
        times += [] if self._out.due is None else [self._out.due]
        return min((t for t in times if t < math.inf), default=None)

    def handle_timer(self, now: float) -> None:
        """Send delayed messages, and handle timeouts.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        self._out.release(now)
        for ident in self._partial.drop_late(now):
            self._say(
                "warning",
                f"rosbridge: fragments of operation {shown(str(ident), MAX_TEXT)} "
                "are missing: the operation is dropped",
                ident,
            )

        for call in [call for call in self._calls.values() if now >= call.deadline]:
            call.abandon()
            call.answer(False, "timed out")

    def on_snapshot(self, now: float) -> None:
        """Do nothing: the graph publishes topics."""

    def close(self) -> None:
        """Release the session after its connection has ended."""
        self.is_closed = True
        for call in self._calls.values():
            call.abandon()
        self._bus.release_client(self)
        self._account.close()
        self._subscriptions.clear()
        self._partial.clear()
        self._calls.clear()
        self._out = Outbox(self._account)

    # -- calls of the bus

    def deliver(
        self, topic: str, message: Outgoing, *, latched: bool, queue: int
    ) -> None:
        """Queue a message of a subscribed topic, of which at most `queue` messages may wait.

        A message is encoded only if throttling does not drop it.

        Parameters
        ----------
        topic : str
            Name under which the client has subscribed.
        message : Outgoing
            The message, which all clients share.
        latched : bool
            Whether the topic is latched. Throttling then may delay a message, but drops
            it only in favour of a newer one.
        queue : int
            Queue length of the topic.
        """
        to = self._subscriptions.get(topic)
        now = self._clock()
        if to is not None and self._out.is_wanted(to, now, latched):
            self._out.add(to, message.form(topic, to.compression), now, queue)
            self._wake()

    def keep(self, size: int) -> None:
        """Reserve memory for the client.

        Parameters
        ----------
        size : int
            Bytes; see `shares.cost`.

        Raises
        ------
        PeerError
            The memory limit is reached.
        """
        if not self._account.take(size):
            raise PeerError(f"rosbridge: {_FULL}")

    def forget(self, size: int) -> None:
        """Release memory of the client.

        Parameters
        ----------
        size : int
            Bytes that `keep` has reserved.
        """
        self._account.give_back(size)

    def request(
        self, ident: str, service: str, values: dict[str, Any], caller: RosbridgeSession
    ) -> None:
        """Send this client a service call that another client has made.

        Parameters
        ----------
        ident : str
            Id that the client's response repeats.
        service : str
            Name of the service.
        values : dict
            Fields of the request as plain values.
        caller : RosbridgeSession
            Session of the client that calls. The queued request counts towards the
            limit of its address.

        Raises
        ------
        PeerError
            Too many calls and goals wait for this client to read.
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
        """Send this client a goal of another client; see `request` for errors.

        Parameters
        ----------
        ident : str
            Id that feedback and result repeat.
        action, type_name : str
            Name and type of the action.
        args : dict, list or None
            Fields of the goal as plain values.
        caller : RosbridgeSession
            Session of the client that sends the goal.
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
        """Pass on the cancellation of a goal; see `request` for errors.

        Parameters
        ----------
        ident : str
            Id of the goal.
        action : str
            Name of the action.
        caller : RosbridgeSession
            Session of the client that cancels.
        """
        self._ask({"op": "cancel_action_goal", "id": ident, "action": action}, caller)

    def _ask(self, said: dict[str, Any], caller: RosbridgeSession) -> None:
        wire = packed(said, "none")
        if not self._out.request(wire, caller.source):
            raise PeerError(
                "rosbridge: no room for another call or goal: the client that "
                "serves them has too many unread calls and goals"
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

    def _subscribe(self, request: op.Subscribe) -> None:
        if request.compression not in (None, *COMPRESSIONS):
            self._say(
                "warning",
                f'no compression "{shown(request.compression)}" (known: {", ".join(COMPRESSIONS)})',
                request.id,
            )

        found = self._subscriptions.get(request.topic)
        if found is None:
            if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
                raise PeerError(
                    f"rosbridge: expected at most {MAX_SUBSCRIPTIONS} subscribed topics"
                )

            found = Subscription(request.topic)
            found.add(request, MAX_SAME_TOPIC)
            self.keep(found.size)
            self._subscriptions[request.topic] = found
            try:
                self._bus.subscribe(self, request.topic, request.type or "")
            except BotyardError:
                # Undo the subscription. It was stored first, because the bus may
                # deliver a latched message at once.
                del self._subscriptions[request.topic]
                self.forget(found.size)
                raise
        else:
            before = found.size
            self.keep(
                cost(request.topic, request.id, request.type, request.compression)
            )
            is_added = found.add(request, MAX_SAME_TOPIC)
            self.forget(
                before
                + cost(request.topic, request.id, request.type, request.compression)
                - found.size
            )
            if not is_added:
                raise PeerError(
                    f"rosbridge: expected at most {MAX_SAME_TOPIC} subscriptions "
                    f"of {shown(request.topic, MAX_TEXT)}"
                )

    def _unsubscribe(self, topic: str, ident: op.Id) -> None:
        found = self._subscriptions.get(topic)
        if found is None:
            raise PeerError(
                f"rosbridge: unsubscribe: {shown(topic, MAX_TEXT)} is not subscribed"
            )

        before = found.size
        found.remove(ident)
        self.forget(before - found.size)
        if found.is_over:
            del self._subscriptions[topic]
            self._out.forget(found)
            self._bus.unsubscribe(self, topic)

    def _call(self, request: op.CallService, size: int) -> None:
        number = next(self._numbers)
        call_of, args, room = (
            op.kept(request),
            request.args,
            cost(request.service, request.id, request.compression),
        )
        # Keep the call for the answer without its arguments, which may be large.
        del request

        def answer(is_good: bool, values: Any) -> None:
            # If the id is unknown, the call has timed out or the client has
            # disconnected.
            if self._calls.pop(number, None) is not None:
                self.forget(room)
                self._respond(call_of, is_good, values)

        if len(self._calls) >= MAX_CALLS:
            self._respond(
                call_of,
                False,
                f"expected at most {MAX_CALLS} unanswered calls",
            )
            return

        if not self._account.take(room):
            self._respond(call_of, False, _FULL)
            return

        # A timeout of 0, or none, means no limit, as in rosbridge_suite.
        limit = min(call_of.timeout or 0.0, MAX_CALL_TIMEOUT_S)
        call = self._calls[number] = _Call(
            self._clock() + limit if limit > 0.0 else math.inf, answer
        )
        try:
            call.abandon = self._bus.call(self, call_of.service, args, size, answer)
        except BotyardError as error:
            answer(False, shown(error, MAX_TEXT))

    def _respond(self, request: op.CallService, is_good: bool, values: Any) -> None:
        said = {
            "op": "service_response",
            "service": request.service,
            "values": values,
            "result": is_good,
        }
        self._answer(
            said,
            request.id,
            request.compression,
            request.fragment_size,
            {"values": _UNREAD, "result": False},
        )

    def _send_goal(self, request: op.SendActionGoal) -> None:
        try:
            self._bus.send_goal(self, request)
        except BotyardError as error:
            self.goal_ended(request, FAILED, shown(error, MAX_TEXT), is_good=False)

    def goal_feedback(self, request: op.SendActionGoal, values: Any) -> None:
        """Send feedback of a goal, unless many answers wait for the client to read.

        Parameters
        ----------
        request : SendActionGoal
            Operation that sent the goal.
        values : dict
            Fields of the feedback as plain values.
        """
        if self._out.has_room:
            said = {"op": "action_feedback", "action": request.action, "values": values}
            self._answer(said, request.id, request.compression, request.fragment_size)

    def goal_ended(
        self, request: op.SendActionGoal, status: int, values: Any, *, is_good: bool
    ) -> None:
        """Send the result of a goal.

        If the goal was refused, `is_good` is false, and `values` is an error text.

        Parameters
        ----------
        request : SendActionGoal
            Operation that sent the goal.
        status : int
            State of the goal (action_msgs/GoalStatus).
        values : dict or str
            Fields of the result as plain values, or an error text.
        is_good : bool
            Whether `values` are a result.
        """
        said = {
            "op": "action_result",
            "action": request.action,
            "values": values,
            "status": status,
            "result": is_good,
        }
        self._answer(
            said,
            request.id,
            request.compression,
            request.fragment_size,
            {"values": _UNREAD, "result": False},
        )

    # -- output

    def _answer(
        self,
        said: dict[str, Any],
        ident: op.Id = None,
        compression: str | None = None,
        fragment: int | None = None,
        instead: dict[str, Any] | None = None,
    ) -> None:
        """Queue an answer to the client.

        If the client leaves too many answers unread, the fields `instead` replace the
        answer's fields, so that a large result becomes a short error.

        Parameters
        ----------
        said : dict
            Fields of the answer. The id is added to it in place.
        ident : str, int, float or None
            Id of the client's operation.
        compression : str or None
            Form that the client requested. Only ``png`` and ``cbor`` apply to answers.
        fragment : int or None
            Longest piece, characters, at least `MIN_FRAGMENT`; None or 0 for a whole
            answer.
        instead : dict, optional
            Fields that make a long answer a short one, by replacing fields of the same
            names.
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
            self._warn(
                "a client is disconnected, because it has too many unread answers"
            )
            self.is_closed = True

        self._wake()

    def _say(self, level: str, text: str, ident: op.Id) -> None:
        """Log a line, and send it to a client whose level includes the line's level."""
        self._warn(text)
        if LEVELS.index(level) <= self._level:
            self._answer({"op": "status", "level": level, "msg": text}, ident)


__all__ = ["RosbridgeSession"]
