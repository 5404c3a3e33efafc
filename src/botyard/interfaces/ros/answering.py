"""Calls of the graph's services by clients that are told why a call has failed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import BotyardError
from botyard.names import shown
from botyard.protocols.ros_messages.limits import MAX_TEXT
from botyard.protocols.ros_messages.robot import Service


def answer_call(
    service: Service,
    request: Any,
    form: Callable[[Any], Any],
    answer: Callable[[bool, Any], None],
    fence: ErrorBarrier,
) -> None:
    """Serve a call, now or, if it takes longer, when the response is there.

    Parameters
    ----------
    form : callable
        The response as `answer` takes it.
    answer : callable
        Takes whether the call has succeeded, and the response, or a text that says why
        not.
    fence : Fence
        For what goes wrong later.

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
        except BaseException:
            answer(False, "internal error")
            raise
        else:
            answer(True, found)

    response = service.serve(request)
    if isinstance(response, Future):
        response.add_done_callback(lambda done: fence.run(later, done))
    else:
        answer(True, form(response))


__all__ = ["answer_call"]
