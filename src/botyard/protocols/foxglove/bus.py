"""Topics, services and parameters, as sessions of Foxglove clients use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from botyard.protocols.foxglove import operations as op

C_contra = TypeVar("C_contra", contravariant=True)
Answer = Callable[[bool, Any], None]
"""Callback with success, and the response's bytes or an error text."""


class Bus(Protocol[C_contra]):
    """Topics, services and parameters, as sessions use them.

    Every method may raise a `BotyardError`, which is reported to the client.
    """

    @property
    def session_id(self) -> str:
        """Id that differs from run to run; clients drop their data of another one."""
        ...

    @property
    def time_ns(self) -> int:
        """Present time, ns."""
        ...

    def channels(self) -> list[op.Channel]:
        """Return all topics."""
        ...

    def services(self) -> list[op.Service]:
        """Return all services."""
        ...

    def subscribe(self, client: C_contra, channel: int) -> None:
        """Deliver the messages of a channel to `FoxgloveSession.deliver`.

        The last message of a latched topic is delivered at once.
        """
        ...

    def unsubscribe(self, client: C_contra, channel: int) -> None:
        """Stop the delivery of a channel."""
        ...

    def publish(
        self, client: C_contra, channel: op.ClientChannel, payload: bytes
    ) -> None:
        """Publish a message of a topic that the client advertises."""
        ...

    def listens(self, topic: str) -> bool:
        """Return whether a topic has a subscriber."""
        ...

    def call(self, client: C_contra, call: op.ServiceCall, answer: Answer) -> None:
        """Call a service; `answer` is called once, now or later, unless this raises."""
        ...

    def parameters(self, client: C_contra) -> Mapping[str, op.Parameter]:
        """Return all parameters."""
        ...

    def set_parameter(self, client: C_contra, parameter: op.Parameter) -> None:
        """Set a parameter."""
        ...

    def connections(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return the fields of ``connectionGraphUpdate``."""
        ...

    def release_client(self, client: C_contra) -> None:
        """Release a client that has left."""
        ...


__all__ = ["Bus"]
