"""Goals that clients of rosbridge send to actions of the simulator.

A goal uses the three services and the feedback topic of a ROS 2 action.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from botyard.errors import BotyardError, PeerError
from botyard.names import shown
from botyard.protocols.ros_messages.actions import UUID_BYTES, Status
from botyard.protocols.ros_messages.limits import MAX_TEXT
from botyard.protocols.ros_messages.typenames import action_name
from botyard.protocols.rosbridge.bus import Answer
from botyard.protocols.rosbridge.encodings import Outgoing
from botyard.protocols.rosbridge.operations import Id, SendActionGoal, kept
from botyard.protocols.rosbridge.session import RosbridgeSession
from botyard.protocols.rosbridge.values import Values
from botyard.protocols.shares import cost

MAX_CLIENT_GOALS: Final = 100
"""Largest number of unfinished goals of a client."""
SEND, RESULT, CANCEL, FEEDBACK = (
    f"/_action/{end}" for end in ("send_goal", "get_result", "cancel_goal", "feedback")
)
_TYPE_ENDS: Final = "_SendGoal"


class Serving(Protocol):
    """Interface of a service of the simulator that clients can call."""

    type_name: str
    node: str

    def call(self, values: Any, answer: Answer) -> None:
        """Call the service for a client.

        Parameters
        ----------
        values : object
            Fields of the request as plain values.
        answer : callable
            Called with a bool (whether the call has succeeded), and with the response
            or the error text.
        """
        ...


class Bridge(Protocol):
    """Interface to the services and topics of the graph."""

    values: Values

    @property
    def services(self) -> Mapping[str, Serving]:
        """Services of the simulator, by absolute name."""
        ...

    def read(self, topic: str, reader: Any) -> None:
        """Deliver a topic of the graph to a reader, if the topic exists.

        Parameters
        ----------
        topic : str
            Absolute name.
        reader : Reader
            Receives the messages.
        """
        ...

    def unread(self, topic: str, reader: Any) -> None:
        """Stop the delivery of a topic.

        Parameters
        ----------
        topic : str
            Name that was used to subscribe.
        reader : Reader
            Reader that subscribed.
        """
        ...


class _Goal:
    """Unfinished goal of a client."""

    def __init__(
        self, client: RosbridgeSession, request: SendActionGoal, action: str
    ) -> None:
        self.client, self.request, self.action = client, request, action
        self.room = cost(
            action, request.action, request.id, request.action_type, request.compression
        )
        self.uuid = os.urandom(UUID_BYTES)

    @property
    def goal_id(self) -> dict[str, Any]:
        """Id of the goal as unique_identifier_msgs/UUID."""
        return {"uuid": list(self.uuid)}


class Goals:
    """Unfinished goals of clients at actions of the simulator.

    Parameters
    ----------
    bridge : Bridge
        Services and topics.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._goals: dict[bytes, _Goal] = {}

    def send(
        self, client: RosbridgeSession, request: SendActionGoal, action: str
    ) -> None:
        """Send a client's goal to an action.

        Parameters
        ----------
        client : RosbridgeSession
            Client that sends the goal, and gets its feedback and result.
        request : SendActionGoal
            The goal.
        action : str
            Absolute name of the action.

        Raises
        ------
        PeerError
            The action does not exist or has another type, or the goal does not fit the
            action's type.
        """
        service = self._bridge.services.get(action + SEND)
        if service is None:
            raise PeerError(f'rosbridge: no action "{shown(request.action, MAX_TEXT)}"')

        kind = service.type_name.removesuffix(_TYPE_ENDS)
        if request.action_type and action_name(request.action_type) != kind:
            raise PeerError(
                f"rosbridge: {action}: expected {kind}, found {shown(request.action_type, MAX_TEXT)}"
            )

        # Feedback, result and cancellation name the goal by this id only, so it must be
        # unique.
        if self._of(client, action, request.id) is not None:
            raise PeerError(
                f"rosbridge: {action}: expected an id without an unfinished goal, found "
                f'"{shown(request.id, MAX_TEXT)}"'
            )
        if (
            sum(goal.client is client for goal in self._goals.values())
            >= MAX_CLIENT_GOALS
        ):
            raise PeerError(
                f"rosbridge: a client may have at most {MAX_CLIENT_GOALS} unfinished goals"
            )

        # rosbridge accepts values as an object, or as a list in the order of the
        # fields.
        args: Any = {} if request.args is None else request.args
        if isinstance(args, list):
            args = dict(
                zip(
                    (field for field, _ in self._bridge.values.fields(f"{kind}_Goal")),
                    args,
                    strict=False,
                )
            )

        goal = _Goal(client, kept(request), action)
        # Account for the memory first: a client over its limit gets an error, and
        # nothing is stored.
        client.keep(goal.room)
        # Store the goal before the request, which may be answered at once.
        self._goals[goal.uuid] = goal
        # Subscribe before the goal is sent, so that no feedback is missed. All goals of
        # an action share one topic of feedback.
        if request.feedback:
            self._bridge.read(action + FEEDBACK, self)
        self._ask(goal, SEND, {"goal_id": goal.goal_id, "goal": args}, self._accepted)

    def _of(self, client: RosbridgeSession, action: str, ident: Id) -> _Goal | None:
        return next(
            (
                g
                for g in self._goals.values()
                if g.client is client and (g.action, g.request.id) == (action, ident)
            ),
            None,
        )

    def _ask(
        self,
        goal: _Goal,
        end: str,
        values: Any,
        answered: Callable[[_Goal, dict[str, Any]], None],
    ) -> None:
        """Call a service of the goal's action; a failure ends the goal."""

        def answer(is_good: bool, response: Any) -> None:
            if goal.uuid not in self._goals:
                # The client has disconnected.
                return
            if is_good:
                answered(goal, response)
            else:
                self._end(goal, Status.UNKNOWN, response, is_good=False)

        try:
            service = self._bridge.services.get(goal.action + end)
            if service is None:
                raise PeerError(f"the action {goal.action} no longer exists")
            service.call(values, answer)
        except BotyardError as error:
            answer(False, shown(error, MAX_TEXT))

    def _accepted(self, goal: _Goal, response: dict[str, Any]) -> None:
        # ROS 2's action client asks for the result at once; the response comes at the
        # end of the goal.
        if response["accepted"]:
            self._ask(goal, RESULT, {"goal_id": goal.goal_id}, self._ended)
        else:
            self._end(goal, Status.UNKNOWN, "the goal was rejected", is_good=False)

    def _ended(self, goal: _Goal, response: dict[str, Any]) -> None:
        self._end(goal, response["status"], response["result"])

    def _end(
        self, goal: _Goal, status: int, values: Any, *, is_good: bool = True
    ) -> None:
        self._forget(goal)
        goal.client.goal_ended(goal.request, int(status), values, is_good=is_good)

    def _forget(self, goal: _Goal) -> None:
        del self._goals[goal.uuid]
        goal.client.forget(goal.room)
        # Unsubscribe from the feedback topic when no other goal of this action needs
        # it.
        if not any(
            g.action == goal.action and g.request.feedback for g in self._goals.values()
        ):
            self._bridge.unread(goal.action + FEEDBACK, self)

    def deliver(
        self, topic: str, message: Outgoing, *, latched: bool, queue: int
    ) -> None:
        """Pass feedback of an action to the goal's client.

        Feedback of all goals arrives on one topic; the id in the message finds the
        client.

        Parameters
        ----------
        topic : str
            Topic of the action's feedback.
        message : Outgoing
            Feedback with the goal's id of 16 bytes.
        latched, queue
            Not used: each feedback is passed on at once.
        """
        goal = self._goals.get(message.values["goal_id"]["uuid"].tobytes())
        if goal is not None and goal.request.feedback:
            goal.client.goal_feedback(goal.request, message.values["feedback"])

    def cancel(self, client: RosbridgeSession, action: str, ident: Id) -> None:
        """Cancel a client's goal at an action.

        Parameters
        ----------
        client : RosbridgeSession
            Client that sent the goal.
        action : str
            Absolute name of the action.
        ident : Id
            Id with which the client sent the goal.

        Raises
        ------
        PeerError
            The client has no such goal.
        """
        goal = self._of(client, action, ident)
        if goal is None:
            raise PeerError(
                f"rosbridge: {shown(action, MAX_TEXT)}: no unfinished goal has this id"
            )

        self._cancel(goal)

    def _cancel(self, goal: _Goal) -> None:
        service = self._bridge.services.get(goal.action + CANCEL)
        if service is not None:
            # Ignore the response to the cancellation: the goal's result shows whether
            # it was cancelled.
            service.call(
                {"goal_info": {"goal_id": goal.goal_id, "stamp": {}}},
                lambda _is_good, _response: None,
            )

    def release_client(self, client: RosbridgeSession) -> None:
        """Cancel the goals of a client that has disconnected."""
        for goal in [g for g in self._goals.values() if g.client is client]:
            self._cancel(goal)
            # Cancelling may have ended the goal at once.
            if goal.uuid in self._goals:
                self._forget(goal)


__all__ = ["MAX_CLIENT_GOALS", "SEND", "Goals"]
