"""Topics, services and parameters, as sessions of Foxglove clients use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from botyard.protocols.foxglove import operations as op

C_contra = TypeVar("C_contra", contravariant=True)
Answer = Callable[[bool, Any], None]
"""Callback for the end of a service call: (True, bytes of the response) or (False, error text)."""


class Bus(Protocol[C_contra]):
    """Topics, services and parameters, as sessions use them.

    Every method may raise a `BotyardError`, which is reported to the client.
    """

    @property
    def session_id(self) -> str:
        """Id that differs from run to run; clients drop the data of another run."""
        ...

    @property
    def time_ns(self) -> int:
        """Present time, ns."""
        ...

    def channels(self) -> list[op.Channel]:
        """Return all topics that the server offers."""
        ...

    def services(self) -> list[op.Service]:
        """Return all services that the server offers."""
        ...

    def subscribe(self, client: C_contra, channel: int) -> None:
        """Deliver the messages of a channel to `FoxgloveSession.deliver`.

        The last message of a latched topic is delivered at once.

        Parameters
        ----------
        client : C
            Session that gets the messages.
        channel : int
            Id of one of `channels`.
        """
        ...

    def unsubscribe(self, client: C_contra, channel: int) -> None:
        """Stop the delivery of a channel.

        Parameters
        ----------
        client : C
            Session that gets the messages.
        channel : int
            Id of one of `channels`.
        """
        ...

    def publish(
        self, client: C_contra, channel: op.ClientChannel, payload: bytes
    ) -> None:
        """Publish a message of a topic that the client advertises.

        Parameters
        ----------
        client : C
            Session of the publisher.
        channel : ClientChannel
            Topic, schema and encoding, as the client advertised them.
        payload : bytes
            Message in the channel's encoding, CDR or JSON.
        """
        ...

    def listens(self, topic: str) -> bool:
        """Return whether a topic has a subscriber."""
        ...

    def call(self, client: C_contra, call: op.ServiceCall, answer: Answer) -> None:
        """Call a service; `answer` is called once, now or later, unless this call raises an error.

        Parameters
        ----------
        client : C
            Session of the caller.
        call : ServiceCall
            Service, encoding and request.
        answer : callable
            Gets True and the response's bytes in the encoding of the request, or False
            and an error text.
        """
        ...

    def parameters(self, client: C_contra) -> Mapping[str, op.Parameter]:
        """Return all parameters, with their present values."""
        ...

    def set_parameter(self, client: C_contra, parameter: op.Parameter) -> None:
        """Set a parameter.

        Parameters
        ----------
        client : C
            Session of the client.
        parameter : Parameter
            Name and new value.
        """
        ...

    def connections(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return the fields of a message ``connectionGraphUpdate`` for the present graph."""
        ...

    def release_client(self, client: C_contra) -> None:
        """Release the resources of a client that has disconnected."""
        ...


__all__ = ["Bus"]
