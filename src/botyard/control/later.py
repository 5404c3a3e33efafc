"""Futures without an event loop, which are resolved between two steps.

The futures have the class of `concurrent.futures`, so any host can wait for them: an
event loop by `asyncio.wrap_future`, a null modem by a callback.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


def promise() -> Future[Any]:
    """Return a future without a result, which `resolve` resolves later.

    A caller may stop waiting for it, but cannot cancel it.
    """
    future: Future[Any] = Future()
    # Marked as running, the future can no longer be cancelled.
    future.set_running_or_notify_cancel()
    return future


def resolve(
    future: Future[T], result: T | None = None, error: BaseException | None = None
) -> None:
    """Resolve a future with a result or an error; the first call counts.

    Parameters
    ----------
    future : Future
        Future of `promise`. If it is done already, nothing happens.
    result : object, optional
        Its result.
    error : BaseException, optional
        Its error, which has priority over the result.
    """
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)  # type: ignore[arg-type]


def resolved(result: T) -> Future[T]:
    """Return a future that already has a result."""
    future = promise()
    future.set_result(result)
    return future


def then(future: Future[T], make: Callable[[Future[T]], U]) -> Future[U]:
    """Return a future that is resolved with the result of `make` after `future` is done.

    Parameters
    ----------
    future : Future
        Future to wait for.
    make : callable
        Called with the finished `future`; its ``result`` raises the error if there is
        one.

    Returns
    -------
    Future
        It fails if `make` raises.
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
