"""Background tasks of the event loop.

The loop itself keeps only weak references to tasks, so `Background` holds them. It logs
their errors and cancels them at shutdown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from botyard.control.later import promise, resolve
from botyard.control.parts import Portions
from botyard.errors import NotNowError

T = TypeVar("T")

GIVEN_UP: Final = "the simulator ended before this call was done"

log = logging.getLogger("botyard")


class Background:
    """Background tasks that are not awaited."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(
        self, work: Coroutine[Any, Any, T] | Portions[T], what: str
    ) -> asyncio.Task[T]:
        """Start a coroutine or cooperative work.

        An exception is logged as an internal error of `what`.

        Parameters
        ----------
        work : coroutine or portions
            The work; a generator runs between the steps, from one yield to the next.
        what : str
            Name of the work, for the log.

        Returns
        -------
        asyncio.Task
            Task, which `aclose` cancels.
        """
        task = asyncio.get_running_loop().create_task(
            _in_portions(work) if isinstance(work, Generator) else work
        )
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._over(done, what))
        return task

    def _over(self, task: asyncio.Task[Any], what: str) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s: internal error", what, exc_info=error)

    def future(self, work: Coroutine[Any, Any, T], what: str) -> Future[T]:
        """Start a coroutine, and return a future of its result.

        Parameters
        ----------
        work : coroutine
            The work. Its error is in the future and is not logged.
        what : str
            Name of the work, for the log.

        Returns
        -------
        Future
            Future for any thread. It fails with `NotNowError` if the simulator ends
            first.
        """
        result: Future[T] = promise()

        async def run() -> None:
            try:
                resolve(result, await work)
            except asyncio.CancelledError:
                # Do not cancel the callers, which may be other tasks and threads;
                # `over` resolves their future instead.
                raise
            except Exception as error:
                # The caller gets the error from the future.
                resolve(result, error=error)
            except BaseException as error:
                resolve(result, error=error)
                raise

        def over(_task: asyncio.Task[None]) -> None:
            # A task that is cancelled before its first step never runs the coroutine;
            # close it.
            work.close()
            resolve(result, error=NotNowError(GIVEN_UP))

        self.start(run(), what).add_done_callback(over)
        return result

    def portions(self, work: Portions[T], what: str) -> Future[T]:
        """Start cooperative work in slices, and return a future of its result.

        Parameters
        ----------
        work : portions
            Generator that yields None, a pause in s, or a future to wait for. Its return value is
            the result.
        what : str
            Name of the work, for the log.
        """
        return self.future(_in_portions(work), what)

    def close(self) -> None:
        """Cancel all tasks."""
        for task in tuple(self._tasks):
            task.cancel()

    async def aclose(self) -> None:
        """Cancel all tasks, and wait until they have ended."""
        tasks = tuple(self._tasks)
        self.close()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _in_portions(work: Portions[T]) -> T:
    """Run cooperative work in slices; between slices, the event loop runs.

    Each slice yields a pause in seconds, or a future to wait for.
    """
    error: BaseException | None = None
    while True:
        try:
            wait = work.send(None) if error is None else work.throw(error)
        except StopIteration as over:
            result: T = over.value
            return result

        error = None
        if not isinstance(wait, Future):
            await asyncio.sleep(wait or 0.0)
            continue

        try:
            await asyncio.wrap_future(wait)
        except Exception as failed:
            error = failed


__all__ = ["GIVEN_UP", "Background"]
