"""Topics, services and actions, as sessions of rosbridge clients use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from botyard.protocols.rosbridge import operations as op

C_contra = TypeVar("C_contra", contravariant=True)
Answer = Callable[[bool, Any], None]
"""Callback with whether a service call has succeeded, and its values or an error text.
"""


class Bus(Protocol[C_contra]):
    """Topics, services and actions, as sessions use them.

    Every method may raise a `BotyardError`, which is reported to the client.
    """

    def subscribe(self, client: C_contra, topic: str, type_name: str) -> None:
        """Deliver a topic's messages under this name to `RosbridgeSession.deliver`.

        The last message of a latched topic is delivered at once.
        """
        ...

    def unsubscribe(self, client: C_contra, topic: str) -> None:
        """Stop the delivery of a topic."""
        ...

    def register_publisher(self, client: C_contra, topic: str, type_name: str) -> None:
        """Register the client as publisher of messages of a type."""
        ...

    def unregister_publisher(self, client: C_contra, topic: str) -> None:
        """Unregister the client as publisher."""
        ...

    def publish(
        self, client: C_contra, topic: str, values: dict[str, Any], size: int
    ) -> None:
        """Publish a message, whose operation had `size` bytes."""
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

        `answer` is called once, now or later, unless this raises. Returns a function
        that abandons the call, when no caller waits for the answer any more.
        """
        ...

    def register_service(self, client: C_contra, service: str, type_name: str) -> None:
        """Register the client as server of a service (`RosbridgeSession.request`)."""
        ...

    def unregister_service(self, client: C_contra, service: str) -> None:
        """Unregister the client as server of a service."""
        ...

    def responded(
        self, client: C_contra, ident: str, is_good: bool, values: Any
    ) -> None:
        """Take the client's response to the request with an id."""
        ...

    def send_goal(self, client: C_contra, request: op.SendActionGoal) -> None:
        """Send a goal to an action.

        Unless this raises, `RosbridgeSession.goal_feedback` is called any number of
        times, and then `goal_ended` once.
        """
        ...

    def cancel_goal(self, client: C_contra, action: str, ident: op.Id) -> None:
        """Cancel the client's goal with an id."""
        ...

    def register_action(self, client: C_contra, action: str, type_name: str) -> None:
        """Register the client as server of an action."""
        ...

    def unregister_action(self, client: C_contra, action: str) -> None:
        """Unregister the client as server of an action."""
        ...

    def publish_feedback(self, client: C_contra, ident: str, values: Any) -> None:
        """Take the client's feedback of the goal with an id."""
        ...

    def end_goal(
        self,
        client: C_contra,
        ident: str,
        status: int,
        values: Any,
        is_good: bool,
    ) -> None:
        """Take the client's result of the goal with an id."""
        ...

    def release_client(self, client: C_contra) -> None:
        """Release a client that has left."""
        ...


__all__ = ["Answer", "Bus"]
