"""Goals that clients of rosbridge send to actions of the graph: by the three services
and the feedback topic of a ROS 2 action.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from botyard.errors import BotyardError, PeerError
from botyard.names import shown
from botyard.protocols.ros_messages.actions import UUID_BYTES, Status
from botyard.protocols.ros_messages.limits import MAX_TEXT
from botyard.protocols.ros_messages.types import action_name
from botyard.protocols.rosbridge.encodings import Outgoing
from botyard.protocols.rosbridge.operations import Id, SendActionGoal, kept
from botyard.protocols.rosbridge.session import Answer, RosbridgeSession
from botyard.protocols.rosbridge.values import Values
from botyard.protocols.shares import cost

MAX_CLIENT_GOALS: Final = 100
"""Most goals of a client that have not ended."""
SEND, RESULT, CANCEL, FEEDBACK = (
    f"/_action/{end}" for end in ("send_goal", "get_result", "cancel_goal", "feedback")
)
_TYPE_ENDS: Final = "_SendGoal"


class Serving(Protocol):
    """A service of the graph."""

    type_name: str
    node: str

    def call(self, values: Any, answer: Answer) -> None:
        """Serve a call."""
        ...


class Bridge(Protocol):
    """Services and topics of the graph."""

    values: Values

    @property
    def services(self) -> Mapping[str, Serving]:
        """Services by their names."""
        ...

    def read(self, topic: str, reader: Any) -> None:
        """Deliver a topic of the graph to a reader, if there is one."""
        ...

    def unread(self, topic: str, reader: Any) -> None:
        """Stop delivering it."""
        ...


class _Goal:
    """A goal that has not ended."""

    def __init__(
        self, client: RosbridgeSession, wish: SendActionGoal, action: str
    ) -> None:
        self.client, self.wish, self.action = client, wish, action
        self.room = cost(
            action, wish.action, wish.id, wish.action_type, wish.compression
        )
        self.uuid = os.urandom(UUID_BYTES)

    @property
    def goal_id(self) -> dict[str, Any]:
        """unique_identifier_msgs/UUID."""
        return {"uuid": list(self.uuid)}


class Goals:
    """All goals of clients.

    Parameters
    ----------
    bridge : Bridge
        Services and topics.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._goals: dict[bytes, _Goal] = {}

    def send(self, client: RosbridgeSession, wish: SendActionGoal, action: str) -> None:
        """Send a goal to an action of this absolute name.

        Raises
        ------
        PeerError
            There is no such action, it has another type, or the goal does not fit.
        """
        service = self._bridge.services.get(action + SEND)
        if service is None:
            raise PeerError(
                f'rosbridge: there is no action "{shown(wish.action, MAX_TEXT)}"'
            )

        kind = service.type_name.removesuffix(_TYPE_ENDS)
        if wish.action_type and action_name(wish.action_type) != kind:
            raise PeerError(
                f"rosbridge: {action}: expected {kind}, found {shown(wish.action_type, MAX_TEXT)}"
            )

        if self._of(client, action, wish.id) is not None:
            raise PeerError("rosbridge: a goal of this id has not ended yet")
        if (
            sum(goal.client is client for goal in self._goals.values())
            >= MAX_CLIENT_GOALS
        ):
            raise PeerError(
                f"rosbridge: expected at most {MAX_CLIENT_GOALS} goals that have not ended"
            )

        args: Any = {} if wish.args is None else wish.args
        if isinstance(args, list):
            args = dict(
                zip(
                    (field for field, _ in self._bridge.values.fields(f"{kind}_Goal")),
                    args,
                    strict=False,
                )
            )

        goal = _Goal(client, kept(wish), action)
        client.keep(goal.room)
        self._goals[goal.uuid] = goal
        if wish.feedback:
            self._bridge.read(action + FEEDBACK, self)
        self._ask(goal, SEND, {"goal_id": goal.goal_id, "goal": args}, self._accepted)

    def _of(self, client: RosbridgeSession, action: str, ident: Id) -> _Goal | None:
        return next(
            (
                g
                for g in self._goals.values()
                if g.client is client and (g.action, g.wish.id) == (action, ident)
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
                return  # the client has gone
            if is_good:
                answered(goal, response)
            else:
                self._end(goal, Status.UNKNOWN, response, is_good=False)

        try:
            service = self._bridge.services.get(goal.action + end)
            if service is None:
                raise PeerError(f"the action {goal.action} has gone")
            service.call(values, answer)
        except BotyardError as error:
            answer(False, shown(error, MAX_TEXT))

    def _accepted(self, goal: _Goal, response: dict[str, Any]) -> None:
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
        goal.client.goal_ended(goal.wish, int(status), values, is_good=is_good)

    def _forget(self, goal: _Goal) -> None:
        del self._goals[goal.uuid]
        goal.client.forget(goal.room)
        if not any(
            g.action == goal.action and g.wish.feedback for g in self._goals.values()
        ):
            self._bridge.unread(goal.action + FEEDBACK, self)

    def deliver(
        self, topic: str, message: Outgoing, *, latched: bool, queue: int
    ) -> None:
        """Feedback of an action, also of goals of others."""
        goal = self._goals.get(message.values["goal_id"]["uuid"].tobytes())
        if goal is not None and goal.wish.feedback:
            goal.client.goal_feedback(goal.wish, message.values["feedback"])

    def cancel(self, client: RosbridgeSession, action: str, ident: Id) -> None:
        """Cancel a goal of an action of this absolute name.

        Raises
        ------
        PeerError
            There is no such goal.
        """
        goal = self._of(client, action, ident)
        if goal is None:
            raise PeerError(
                f"rosbridge: {shown(action, MAX_TEXT)}: no goal of this id is under way"
            )

        self._cancel(goal)

    def _cancel(self, goal: _Goal) -> None:
        service = self._bridge.services.get(goal.action + CANCEL)
        if service is not None:
            service.call(
                {"goal_info": {"goal_id": goal.goal_id, "stamp": {}}},
                lambda _is_good, _response: None,
            )

    def leave(self, client: RosbridgeSession) -> None:
        """A client has gone: its goals are cancelled."""
        for goal in [g for g in self._goals.values() if g.client is client]:
            self._cancel(goal)
            if goal.uuid in self._goals:
                self._forget(goal)


__all__ = ["MAX_CLIENT_GOALS", "SEND", "Goals"]
