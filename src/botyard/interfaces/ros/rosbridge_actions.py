"""Actions that clients of rosbridge serve (``advertise_action``), for goals of other
clients.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final

from botyard.errors import PeerError
from botyard.names import shown
from botyard.protocols.ros_messages.actions import Status
from botyard.protocols.ros_messages.limits import MAX_TEXT
from botyard.protocols.ros_messages.types import action_name
from botyard.protocols.rosbridge.operations import Id, SendActionGoal, kept
from botyard.protocols.rosbridge.session import RosbridgeSession
from botyard.protocols.shares import cost

MAX_ACTIONS: Final = 100
"""Most actions that a client serves."""
MAX_SERVED_GOALS: Final = 1000
"""Most goals that a client which serves actions has not ended."""
MAX_SENT_GOALS: Final = 100
"""Most goals of a client at actions of others that have not ended."""


class _Action:
    """An action of a client: the absolute name, and the name by which the client knows
    it.
    """

    def __init__(
        self, server: RosbridgeSession, name: str, said: str, type_name: str
    ) -> None:
        self.server, self.name, self.said, self.type_name = (
            server,
            name,
            said,
            type_name,
        )
        self.room = cost(name, said, type_name)


class _Goal:
    """A goal that has not ended: who sent it, by which operation, and to which action."""

    def __init__(
        self, client: RosbridgeSession, wish: SendActionGoal, action: _Action
    ) -> None:
        self.client, self.wish, self.action = client, wish, action
        self.room = cost(wish.action, wish.id, wish.action_type, wish.compression)
        self.is_cancelled = False


class ClientActions:
    """All actions of clients, and the goals that are under way there.

    Values pass through as they are: the client that serves an action says what is wrong
    with a goal.
    """

    def __init__(self) -> None:
        self._actions: dict[str, _Action] = {}
        self._goals: dict[str, _Goal] = {}
        """By the ids under which their servers know them."""
        self._numbers = itertools.count(1)

    @property
    def names(self) -> Iterable[str]:
        """Absolute names of the actions."""
        return self._actions.keys()

    def register(
        self, client: RosbridgeSession, name: str, said: str, type_name: str
    ) -> None:
        """The client serves an action of this absolute name.

        Raises
        ------
        PeerError
            Another client does, or it serves too many.
        """
        other = self._actions.get(name)
        if other is not None and other.server is not client:
            raise PeerError(
                f'rosbridge: somebody else serves the action "{shown(said, MAX_TEXT)}"'
            )

        if (
            other is None
            and sum(one.server is client for one in self._actions.values())
            >= MAX_ACTIONS
        ):
            raise PeerError(
                f"rosbridge: expected at most {MAX_ACTIONS} actions of a client"
            )

        action = _Action(client, name, said, action_name(type_name))
        client.keep(action.room)
        if other is not None:
            client.forget(other.room)
        self._actions[name] = action

    def unregister(self, client: RosbridgeSession, name: str) -> None:
        """It does not any more: its goals end."""
        found = self._actions.get(name)
        if found is not None and found.server is client:
            del self._actions[name]
            client.forget(found.room)
            self._fail(lambda goal: goal.action.name == name)

    def send(self, client: RosbridgeSession, wish: SendActionGoal, name: str) -> None:
        """Hand a goal to the client that serves the action of this absolute name, which
        is in `names`.

        Raises
        ------
        PeerError
            The action has another type; a goal of this id is under way, or too many
            are.
        """
        action = self._actions[name]
        if wish.action_type and action_name(wish.action_type) != action.type_name:
            raise PeerError(
                f"rosbridge: {name}: expected {action.type_name}, found "
                f"{shown(wish.action_type, MAX_TEXT)}"
            )

        if self._of(client, name, wish.id) is not None:
            raise PeerError("rosbridge: a goal of this id has not ended yet")
        if (
            sum(goal.client is client for goal in self._goals.values())
            >= MAX_SENT_GOALS
        ):
            raise PeerError(
                f"rosbridge: expected at most {MAX_SENT_GOALS} goals that have not ended"
            )

        if (
            sum(goal.action.server is action.server for goal in self._goals.values())
            >= MAX_SERVED_GOALS
        ):
            raise PeerError(
                f"rosbridge: {name}: {MAX_SERVED_GOALS} goals have not ended"
            )

        ident = f"{name}:{next(self._numbers)}"
        goal = _Goal(client, kept(wish), action)
        client.keep(goal.room)
        self._goals[ident] = goal
        try:
            args = {} if wish.args is None else wish.args
            action.server.goal(ident, action.said, action.type_name, args, client)
        except PeerError:
            self._forget(ident)
            raise

    def _forget(self, ident: str) -> _Goal:
        goal = self._goals.pop(ident)
        goal.client.forget(goal.room)
        return goal

    def _of(self, client: RosbridgeSession, name: str, ident: Id) -> str | None:
        """The id under which its server knows the goal of a client."""
        sought = (client, name, ident)
        return next(
            (
                k
                for k, g in self._goals.items()
                if (g.client, g.action.name, g.wish.id) == sought
            ),
            None,
        )

    def cancel(self, client: RosbridgeSession, name: str, ident: Id) -> bool:
        """Ask the server to cancel a goal. Returns whether there is such a goal at an
        action of this absolute name.
        """
        found = self._of(client, name, ident)
        if found is None:
            return False
        self._cancel(found)
        return True

    def _cancel(self, ident: str) -> None:
        """Tell the server once. PeerError: it does not read."""
        goal = self._goals[ident]
        if not goal.is_cancelled:
            goal.action.server.goal_cancelled(ident, goal.action.said, goal.client)
            goal.is_cancelled = True

    def _served(self, server: RosbridgeSession, ident: str) -> _Goal:
        """A goal at an action of a client, by the id under which it knows it."""
        goal = self._goals.get(ident)
        if goal is None or goal.action.server is not server:
            raise PeerError(
                f'rosbridge: no goal of the id "{shown(ident, MAX_TEXT)}" is under way'
            )

        return goal

    def feedback(self, server: RosbridgeSession, ident: str, values: Any) -> None:
        """A server tells how far it is with a goal. PeerError: it has no such goal."""
        goal = self._served(server, ident)
        if goal.wish.feedback:
            goal.client.goal_feedback(goal.wish, values)

    def ended(
        self,
        server: RosbridgeSession,
        ident: str,
        status: int,
        values: Any,
        is_good: bool,
    ) -> None:
        """A server has ended a goal. PeerError: it has no such goal."""
        goal = self._served(server, ident)
        self._forget(ident)
        goal.client.goal_ended(goal.wish, status, values, is_good=is_good)

    def _fail(self, concerns: Callable[[_Goal], bool]) -> None:
        """Nobody works on these goals any more."""
        for ident in [ident for ident, goal in self._goals.items() if concerns(goal)]:
            goal = self._forget(ident)
            text = f"the action {shown(goal.action.said, MAX_TEXT)} has gone"
            goal.client.goal_ended(goal.wish, int(Status.UNKNOWN), text, is_good=False)

    def leave(self, client: RosbridgeSession) -> None:
        """A client has gone: its goals are cancelled, and those at its actions end."""
        for name in [
            name for name, action in self._actions.items() if action.server is client
        ]:
            self.unregister(client, name)

        for ident in [
            ident for ident, goal in self._goals.items() if goal.client is client
        ]:
            with contextlib.suppress(
                PeerError
            ):  # its server does not read, and learns from the goal's result that nobody waits
                self._cancel(ident)

            self._forget(ident)


__all__ = ["ClientActions"]
