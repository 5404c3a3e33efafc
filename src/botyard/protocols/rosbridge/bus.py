"""Topics, services and actions, as sessions of rosbridge clients use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from botyard.protocols.rosbridge import operations as op

C_contra = TypeVar("C_contra", contravariant=True)
Answer = Callable[[bool, Any], None]
"""Callback for the end of a service call: (True, values of the response) or (False, error text)."""


class Bus(Protocol[C_contra]):
    """Topics, services and actions, as sessions use them.

    Every method may raise a `BotyardError`, which is reported to the client.
    """

    def subscribe(self, client: C_contra, topic: str, type_name: str) -> None:
        """Deliver a topic's messages under this name to `RosbridgeSession.deliver`.

        The last message of a latched topic is delivered at once.

        Parameters
        ----------
        client : C
            Session that gets the messages.
        topic : str
            Name as the client writes it. ``odom`` and ``/odom`` name the same topic,
            but each client expects its own spelling in messages.
        type_name : str
            Type that the client expects; empty for any.
        """
        ...

    def unsubscribe(self, client: C_contra, topic: str) -> None:
        """Stop the delivery of a topic.

        Parameters
        ----------
        client : C
            Session that gets the messages.
        topic : str
            Name as for `subscribe`.
        """
        ...

    def register_publisher(self, client: C_contra, topic: str, type_name: str) -> None:
        """Register the client as publisher of messages of a type.

        Parameters
        ----------
        client : C
            Session of the publisher.
        topic : str
            Name of the topic. A new topic is created.
        type_name : str
            Type of its messages.
        """
        ...

    def unregister_publisher(self, client: C_contra, topic: str) -> None:
        """Unregister the client as publisher."""
        ...

    def publish(
        self, client: C_contra, topic: str, values: dict[str, Any], size: int
    ) -> None:
        """Publish a message, whose operation had `size` bytes.

        Parameters
        ----------
        client : C
            Session of the publisher.
        topic : str
            Name of the topic.
        values : dict
            Fields of the message as plain values; see `values.Values`.
        size : int
            Length of the operation, bytes. It is checked before the message is made.
        """
        ...

    def call(
        self,
        client: C_contra,
        service: str,
        values: Any,
        size: int,
        answer: Answer,
    ) -> Callable[[], None]:
        """Call a service by an operation of `size` bytes.

        `answer` is called once, now or later, unless this call raises an error. Return
        a function that abandons the service call, for the case that the client no
        longer waits for it.

        Parameters
        ----------
        client : C
            Session of the caller.
        service : str
            Name of the service.
        values : dict, list or None
            Fields of the request, or their values in order.
        size : int
            Length of the operation, bytes.
        answer : callable
            Gets True and the response as plain values, or False and an error text.
        """
        ...

    def register_service(self, client: C_contra, service: str, type_name: str) -> None:
        """Register the client as server of a service (`RosbridgeSession.request`).

        Parameters
        ----------
        client : C
            Session that serves.
        service : str
            Name of the service.
        type_name : str
            Type of the service or action.
        """
        ...

    def unregister_service(self, client: C_contra, service: str) -> None:
        """Unregister the client as server of a service."""
        ...

    def responded(
        self, client: C_contra, ident: str, is_good: bool, values: Any
    ) -> None:
        """Process the client's response to the request with an id.

        Parameters
        ----------
        client : C
            Session that serves.
        ident : str
            Id that `RosbridgeSession.request` got.
        is_good : bool
            Whether the call has succeeded.
        values : object
            Fields of the response, or an error text.
        """
        ...

    def send_goal(self, client: C_contra, request: op.SendActionGoal) -> None:
        """Send a goal to an action.

        Unless this call raises an error, `RosbridgeSession.goal_feedback` is called any
        number of times, and then `goal_ended` once.

        Parameters
        ----------
        client : C
            Session of the client.
        request : SendActionGoal
            Action, goal and id. The callbacks get the same object.
        """
        ...

    def cancel_goal(self, client: C_contra, action: str, ident: op.Id) -> None:
        """Cancel the client's goal with an id.

        Parameters
        ----------
        client : C
            Session of the client.
        action : str
            Name of the action.
        ident : str, int, float or None
            Id of the operation that sent the goal.
        """
        ...

    def register_action(self, client: C_contra, action: str, type_name: str) -> None:
        """Register the client as server of an action.

        Parameters
        ----------
        client : C
            Session that serves the action.
        action : str
            Name of the action.
        type_name : str
            Type of the service or action.
        """
        ...

    def unregister_action(self, client: C_contra, action: str) -> None:
        """Unregister the client as server of an action."""
        ...

    def publish_feedback(self, client: C_contra, ident: str, values: Any) -> None:
        """Process the client's feedback of the goal with an id.

        Parameters
        ----------
        client : C
            Session that serves the action.
        ident : str
            Id that `RosbridgeSession.goal` got.
        values : object
            Fields of the feedback.
        """
        ...

    def end_goal(
        self,
        client: C_contra,
        ident: str,
        status: int,
        values: Any,
        is_good: bool,
    ) -> None:
        """Process the client's result of the goal with an id.

        Parameters
        ----------
        client : C
            Session that serves the action.
        ident : str
            Id that `RosbridgeSession.goal` got.
        status : int
            State of the goal (action_msgs/GoalStatus).
        values : object
            Fields of the result, or an error text.
        is_good : bool
            Whether `values` are a result.
        """
        ...

    def release_client(self, client: C_contra) -> None:
        """Release the resources of a client that has disconnected."""
        ...


__all__ = ["Answer", "Bus"]
