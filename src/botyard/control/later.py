"""Futures without an event loop, which are resolved between two steps.

They are futures of `concurrent.futures`, so any host can wait for them: an event loop
by `asyncio.wrap_future`, a null modem by a callback.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


def promise() -> Future[Any]:
    """Return a pending future.

    A caller may stop waiting for it, but cannot cancel it.
    """
    future: Future[Any] = Future()
    # A running future cannot be cancelled.
    future.set_running_or_notify_cancel()
    return future


def resolve(
    future: Future[T], result: T | None = None, error: BaseException | None = None
) -> None:
    """Resolve a future with a result or an error; the first call counts."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)  # type: ignore[arg-type]


def resolved(result: T) -> Future[T]:
    """Return a future that is already done."""
    future = promise()
    future.set_result(result)
    return future


def then(future: Future[T], make: Callable[[Future[T]], U]) -> Future[U]:
    """Return a future of the result of `make`, called with the finished `future`.

    If `make` raises, the returned future fails.
    """
    result: Future[U] = promise()

    def go_on(done: Future[T]) -> None:
        try:
            resolve(result, make(done))
        except Exception as error:
            resolve(result, error=error)

    future.add_done_callback(go_on)
    return result


__all__ = ["promise", "resolve", "resolved", "then"]
