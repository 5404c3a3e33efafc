"""Answers to service calls of clients whose protocol reports failures as text."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import BotyardError
from botyard.names import shown
from botyard.protocols.ros_messages.graphoffers import Service
from botyard.protocols.ros_messages.limits import MAX_TEXT


def answer_call(
    service: Service,
    request: Any,
    form: Callable[[Any], Any],
    answer: Callable[[bool, Any], None],
    barrier: ErrorBarrier,
) -> None:
    """Call a service for a client, and pass on the answer, at once or when it arrives.

    Parameters
    ----------
    service : Service
        The called service.
    request : object
        Request message of the service.
    form : callable
        Converts the response to the form for `answer`.
    answer : callable
        Called with True and the converted response, or with False and the text of the
        error.
    barrier : ErrorBarrier
        Logs exceptions of `form` and `answer` when the response arrives later.

    Raises
    ------
    BotyardError
        The service refuses the request at once.
    """

    def later(done: Future[Any]) -> None:
        try:
            found = form(done.result())
        except BotyardError as error:
            answer(False, shown(error, MAX_TEXT))
        # The client must get an answer even for an internal error, which the error
        # barrier then logs.
        except BaseException:
            answer(False, "internal error")
            raise
        else:
            answer(True, found)

    response = service.serve(request)
    if isinstance(response, Future):
        response.add_done_callback(lambda done: barrier.run(later, done))
    else:
        answer(True, form(response))


__all__ = ["answer_call"]
