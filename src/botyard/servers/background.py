"""Work beside the loop: kept so that it is not lost half way, its errors seen, and given up at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

from botyard.control.later import promise, settled

T = TypeVar("T")

log = logging.getLogger("botyard")


class Background:
    """Tasks of the event loop that nobody awaits."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, T], what: str) -> asyncio.Task[T]:
        """Begin work; an exception that comes out of it is logged as a fault of `what`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._over(done, what))
        return task

    def _over(self, task: asyncio.Task[Any], what: str) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s: internal error", what, exc_info=error)

    def future(self, work: Coroutine[Any, Any, T], what: str) -> Future[T]:
        """Begin work whose result, or error, somebody waits for."""
        result: Future[T] = promise()

        async def run() -> None:
            try:
                settled(result, await work)
            except Exception as error:  # whoever waits for it is told
                settled(result, error=error)
            except BaseException as error:
                settled(result, error=error)
                raise

        self.start(run(), what)
        return result

    def portions(self, work: Generator[Future[None] | None, None, T], what: str) -> Future[T]:
        """Do work in portions, others are served in between; a portion that yields a future waits for it."""

        async def run() -> T:
            error: BaseException | None = None
            while True:
                try:
                    wait = work.send(None) if error is None else work.throw(error)
                except StopIteration as over:
                    result: T = over.value
                    return result
                error = None
                if wait is None:
                    await asyncio.sleep(0)
                    continue
                try:
                    await asyncio.wrap_future(wait)
                except Exception as failed:
                    error = failed

        return self.future(run(), what)

    def close(self) -> None:
        """Give up what is not done."""
        for task in tuple(self._tasks):
            task.cancel()


__all__ = ["Background"]
