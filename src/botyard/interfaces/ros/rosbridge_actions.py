"""Actions that clients of rosbridge serve (``advertise_action``) for other clients."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final

from botyard.errors import PeerError
from botyard.names import shown
from botyard.protocols.ros_messages.actions import Status
from botyard.protocols.ros_messages.limits import MAX_TEXT
from botyard.protocols.ros_messages.typenames import action_name
from botyard.protocols.rosbridge.operations import Id, SendActionGoal, kept
from botyard.protocols.rosbridge.session import RosbridgeSession
from botyard.protocols.shares import cost

MAX_ACTIONS: Final = 100
"""Largest number of actions that a client serves."""
MAX_SERVED_GOALS: Final = 1000
"""Largest number of unfinished goals at the actions that one client serves."""
MAX_SENT_GOALS: Final = 100
"""Largest number of a client's unfinished goals at actions of other clients."""


class _Action:
    """Action that a client serves. `said` is the name that the client uses."""

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
    """Unfinished goal: its client, the operation that sent it, and its action."""

    def __init__(
        self, client: RosbridgeSession, request: SendActionGoal, action: _Action
    ) -> None:
        self.client, self.request, self.action = client, request, action
        self.room = cost(
            request.action, request.id, request.action_type, request.compression
        )
        self.is_cancelled = False


class ClientActions:
    """Actions that clients serve, with their unfinished goals.

    Values pass through unchanged: the client that serves an action checks its goals.
    """

    def __init__(self) -> None:
        self._actions: dict[str, _Action] = {}
        self._goals: dict[str, _Goal] = {}
        """Unfinished goals, by the ids under which they were passed to the serving clients."""
        self._numbers = itertools.count(1)

    @property
    def names(self) -> Iterable[str]:
        """Absolute names of the actions that clients serve."""
        return self._actions.keys()

    def register(
        self, client: RosbridgeSession, name: str, said: str, type_name: str
    ) -> None:
        """Register an action of a client under an absolute name.

        Parameters
        ----------
        client : RosbridgeSession
            Client that serves the action.
        name, said : str
            Absolute name, and the name that the client uses.
        type_name : str
            Type of the action, which is passed on unchanged.

        Raises
        ------
        PeerError
            Another client serves the action, or this client serves too many actions.
        """
        other = self._actions.get(name)
        if other is not None and other.server is not client:
            raise PeerError(
                f'rosbridge: another client serves the action "{shown(said, MAX_TEXT)}"'
            )

        if (
            other is None
            and sum(one.server is client for one in self._actions.values())
            >= MAX_ACTIONS
        ):
            raise PeerError(
                f"rosbridge: a client may serve at most {MAX_ACTIONS} actions"
            )

        action = _Action(client, name, said, action_name(type_name))
        # Account for the memory of the new action before the replaced one is released:
        # if memory is short, an error leaves the old action in place.
        client.keep(action.room)
        if other is not None:
            client.forget(other.room)
        self._actions[name] = action

    def unregister(self, client: RosbridgeSession, name: str) -> None:
        """Unregister an action of a client; its goals end.

        Parameters
        ----------
        client : RosbridgeSession
            Client that serves the action. For another client the call does nothing.
        name : str
            Absolute name of the action.
        """
        found = self._actions.get(name)
        if found is not None and found.server is client:
            del self._actions[name]
            client.forget(found.room)
            self._fail(lambda goal: goal.action.name == name)

    def send(
        self, client: RosbridgeSession, request: SendActionGoal, name: str
    ) -> None:
        """Pass a goal to the client that serves its action.

        Parameters
        ----------
        client : RosbridgeSession
            Client that sends the goal, and gets its feedback and result.
        request : SendActionGoal
            The goal.
        name : str
            Absolute name of the action.

        Raises
        ------
        PeerError
            The action has another type, a goal with this id is unfinished, or there are
            too many goals.
        """
        action = self._actions[name]
        if request.action_type and action_name(request.action_type) != action.type_name:
            raise PeerError(
                f"rosbridge: {name}: expected {action.type_name}, found "
                f"{shown(request.action_type, MAX_TEXT)}"
            )

        if self._of(client, name, request.id) is not None:
            raise PeerError(
                f"rosbridge: {name}: expected an id without an unfinished goal, found "
                f'"{shown(request.id, MAX_TEXT)}"'
            )
        if (
            sum(goal.client is client for goal in self._goals.values())
            >= MAX_SENT_GOALS
        ):
            raise PeerError(
                f"rosbridge: a client may have at most {MAX_SENT_GOALS} unfinished goals"
            )

        # Many clients together must not fill the memory of the one client that serves
        # the action.
        if (
            sum(goal.action.server is action.server for goal in self._goals.values())
            >= MAX_SERVED_GOALS
        ):
            raise PeerError(
                f"rosbridge: {name}: expected at most {MAX_SERVED_GOALS} unfinished goals at the "
                f"actions of its client, found {MAX_SERVED_GOALS}"
            )

        # Clients choose the ids of their goals, so two clients may use the same id. The
        # server gets unique ids.
        ident = f"{name}:{next(self._numbers)}"
        goal = _Goal(client, kept(request), action)
        client.keep(goal.room)
        self._goals[ident] = goal
        try:
            args = {} if request.args is None else request.args
            action.server.goal(ident, action.said, action.type_name, args, client)
        except PeerError:
            self._forget(ident)
            raise

    def _forget(self, ident: str) -> _Goal:
        goal = self._goals.pop(ident)
        goal.client.forget(goal.room)
        return goal

    def _of(self, client: RosbridgeSession, name: str, ident: Id) -> str | None:
        """Return the id under which a client's goal was passed on; None without such a goal."""
        sought = (client, name, ident)
        return next(
            (
                k
                for k, g in self._goals.items()
                if (g.client, g.action.name, g.request.id) == sought
            ),
            None,
        )

    def cancel(self, client: RosbridgeSession, name: str, ident: Id) -> bool:
        """Ask the server of an action to cancel a goal.

        Parameters
        ----------
        client : RosbridgeSession
            Client that sent the goal.
        name : str
            Absolute name of the action.
        ident : Id
            Id with which the client sent the goal.

        Returns
        -------
        bool
            Whether the client has such a goal.
        """
        found = self._of(client, name, ident)
        if found is None:
            return False
        self._cancel(found)
        return True

    def _cancel(self, ident: str) -> None:
        """Send the cancellation of a goal to the serving client, once.

        Raises
        ------
        PeerError
            Too many messages wait for the serving client, which does not read them.
        """
        goal = self._goals[ident]
        # A client may repeat its cancellation.
        if not goal.is_cancelled:
            goal.action.server.goal_cancelled(ident, goal.action.said, goal.client)
            goal.is_cancelled = True

    def _served(self, server: RosbridgeSession, ident: str) -> _Goal:
        """Return an unfinished goal by the id under which it was passed to its server."""
        goal = self._goals.get(ident)
        if goal is None or goal.action.server is not server:
            raise PeerError(
                f'rosbridge: no unfinished goal has the id "{shown(ident, MAX_TEXT)}"'
            )

        return goal

    def feedback(self, server: RosbridgeSession, ident: str, values: Any) -> None:
        """Pass feedback from the server of a goal to its client.

        Parameters
        ----------
        server : RosbridgeSession
            Client that serves the action.
        ident : str
            Id of the goal, as the server got it.
        values : object
            Feedback as plain values, which are passed on unchanged.

        Raises
        ------
        PeerError
            The server has no such goal.
        """
        goal = self._served(server, ident)
        # Clients get feedback only if they have asked for it.
        if goal.request.feedback:
            goal.client.goal_feedback(goal.request, values)

    def ended(
        self,
        server: RosbridgeSession,
        ident: str,
        status: int,
        values: Any,
        is_good: bool,
    ) -> None:
        """Pass the result of a goal from its server to its client.

        Parameters
        ----------
        server : RosbridgeSession
            Client that serves the action.
        ident : str
            Id of the goal, as the server got it.
        status : int
            Status of action_msgs/GoalStatus.
        values : object
            Result as plain values, which are passed on unchanged.
        is_good : bool
            Whether the goal has succeeded.

        Raises
        ------
        PeerError
            The server has no such goal.
        """
        goal = self._served(server, ident)
        self._forget(ident)
        goal.client.goal_ended(goal.request, status, values, is_good=is_good)

    def _fail(self, concerns: Callable[[_Goal], bool]) -> None:
        """End the goals whose server has disconnected or withdrawn the action."""
        for ident in [ident for ident, goal in self._goals.items() if concerns(goal)]:
            goal = self._forget(ident)
            text = f"the action {shown(goal.action.said, MAX_TEXT)} no longer exists"
            goal.client.goal_ended(
                goal.request, int(Status.UNKNOWN), text, is_good=False
            )

    def release_client(self, client: RosbridgeSession) -> None:
        """Cancel the goals of a disconnected client, and end the goals at its actions.

        Parameters
        ----------
        client : RosbridgeSession
            Session that has ended.
        """
        for name in [
            name for name, action in self._actions.items() if action.server is client
        ]:
            self.unregister(client, name)

        for ident in [
            ident for ident, goal in self._goals.items() if goal.client is client
        ]:
            # If the server reads too slowly, the cancellation is lost. The later result
            # of the goal is then refused.
            with contextlib.suppress(PeerError):
                self._cancel(ident)

            self._forget(ident)


__all__ = ["ClientActions"]
