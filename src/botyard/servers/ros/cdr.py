"""Publications, subscriptions and services in CDR, common to both ROS 2 transports."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ClassVar

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import BotyardError, PeerError
from botyard.interfaces.ros.transport import EncodedMessage, Handle, Publication
from botyard.names import shown
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.limits import MAX_REQUESTS, MAX_TEXT
from botyard.protocols.ros_messages.typenames import service_name
from botyard.protocols.ros_messages.types import Types
from botyard.servers.throttledlog import ThrottledLog

log = logging.getLogger("botyard.ros")


class CdrTransport:
    """Base class of the ROS 2 transports (DDS, Zenoh), whose messages are encoded in CDR.

    Parameters
    ----------
    types : Types
        Message types of the ROS distribution to serve.
    """

    wire = "cdr"
    mixes_types = True
    label: ClassVar[str]
    """Name of the transport, for log lines."""
    kinds: ClassVar[tuple[Any, Any, Any]]
    """Classes of the transport's publications, subscriptions and services."""

    def __init__(self, types: Types) -> None:
        self.types = types
        self._throttled_log = ThrottledLog(log)

    def advertise(
        self,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> Publication:
        """Publish a topic.

        Parameters
        ----------
        node : str
            Absolute name of the node that publishes.
        topic : Topic
            Name, type and queue length of the topic.
        fresh : callable
            Returns the last message of a latched topic; not used, as the middleware
            keeps it.
        changed : callable
            Called when subscribers connect or disconnect.
        """
        made: Publication = self.kinds[0](self, node, topic, changed)
        return made

    def listen(self, node: str, entry: Input) -> Handle:
        """Subscribe to a topic.

        Parameters
        ----------
        node : str
            Absolute name of the node that subscribes.
        entry : Input
            Name and type of the topic, and the function that receives its messages.
        """
        made: Handle = self.kinds[1](self, node, entry)
        return made

    def serve(self, node: str, service: Service) -> Handle:
        """Offer a service.

        Parameters
        ----------
        node : str
            Absolute name of the node that serves.
        service : Service
            Name and type of the service, and the function that answers.
        """
        made: Handle = self.kinds[2](self, node, service)
        return made

    def complain(self, name: str, reason: object) -> None:
        """Log an error in a received message.

        Parameters
        ----------
        name : str
            Name of the topic or service.
        reason : object
            Error or text, which is shortened.
        """
        # A peer can repeat the error at any rate.
        self._throttled_log.log(
            logging.WARNING, "%s: %s: %s", self.label, name, shown(reason, MAX_TEXT)
        )


class CdrInput:
    """Subscription of the simulator to a topic that ROS nodes publish."""

    def __init__(self, ros: CdrTransport, entry: Input) -> None:
        self._entry, self._types, self._complain = entry, ros.types, ros.complain
        self._barrier = ErrorBarrier(log, f"{ros.label}: a message of {entry.name}")

    def _decode(self, data: bytes) -> None:
        entry = self._entry
        try:
            entry.take(self._types.decode_cdr(data, entry.type_name))
        except BotyardError as error:
            self._complain(entry.name, error)


class CdrService(ABC):
    """Service that the simulator offers; calls are request objects of the transport."""

    is_open: bool = True

    def __init__(self, ros: CdrTransport, service: Service) -> None:
        self._service, self._types, self._complain = service, ros.types, ros.complain
        self._barrier = ErrorBarrier(log, f"{ros.label}: the service {service.name}")
        kind = service_name(service.type_name)
        self._request, self._response = f"{kind}_Request", f"{kind}_Response"
        self._answering = 0
        """Number of calls whose responses are not ready yet."""

    def _serve(self, call: Any, data: bytes) -> None:
        """Answer a call, now or when the response is ready."""
        try:
            # Responses in progress hold their calls, so limit them as well.
            if self._answering >= MAX_REQUESTS:
                raise PeerError(
                    f"expected at most {MAX_REQUESTS} unanswered requests, found one more"
                )
            response = self._service.serve(self._types.decode_cdr(data, self._request))
        except BotyardError as error:
            self._drop(call)
            self._complain(self._service.name, error)
            return

        if isinstance(response, Future):
            self._answering += 1
            response.add_done_callback(
                lambda done: self._barrier.run(self._answer_later, call, done)
            )
        else:
            self._answer(call, response)

    def _answer_later(self, call: Any, done: Future[Any]) -> None:
        self._answering -= 1
        # The service may have closed while the response was prepared.
        if self.is_open and not done.cancelled():
            self._answer(call, done.result())
        else:
            self._drop(call)

    @abstractmethod
    def _answer(self, call: Any, response: Any) -> None:
        """Send the response to a call."""

    def _drop(self, call: Any) -> None:  # noqa: B027 - most transports need nothing
        """Forget a call that gets no answer."""


__all__ = ["CdrInput", "CdrService", "CdrTransport"]
