"""Results that come later: futures without an event loop, set between two steps.

They are those of `concurrent.futures`, which any host can wait for: an event loop by `asyncio.wrap_future`, a null modem by a callback.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


def promise() -> Future[Any]:
    """A result that is not there yet. Whoever waits for it may give up waiting, but cannot take it back."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def settled(future: Future[T], result: T | None = None, error: BaseException | None = None) -> None:
    """The result is there, or the error that came instead; the first one counts."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)  # type: ignore[arg-type]


def now(result: T) -> Future[T]:
    """A result that is there already."""
    future = promise()
    future.set_result(result)
    return future


def then(future: Future[T], make: Callable[[Future[T]], U]) -> Future[U]:
    """What `make` makes of a result, or error, that comes later; an exception out of it is the error of what is returned."""
    result: Future[U] = promise()

    def go_on(done: Future[T]) -> None:
        try:
            settled(result, make(done))
        except Exception as error:
            settled(result, error=error)

    future.add_done_callback(go_on)
    return result


__all__ = ["now", "promise", "settled", "then"]
