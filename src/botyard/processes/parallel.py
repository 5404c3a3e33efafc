"""Thread pool for parts of a task, and a reentrant lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any


class Workers:
    """Thread pool with a maximum number of threads.

    Threads start on first use, and again in a forked process, which inherits none of
    them.

    Parameters
    ----------
    count : int
        Number of threads.
    name : str
        Prefix of the threads' names.

    Attributes
    ----------
    count : int
        Number of threads.
    """

    def __init__(self, count: int, name: str) -> None:
        self.count, self._name = count, name
        self._pool: ThreadPoolExecutor | None = None
        # The process that owns the pool: after a fork, the child has the object without
        # its threads.
        self._process = 0

    def run(
        self, function: Callable[..., object], parts: Sequence[tuple[Any, ...]]
    ) -> None:
        """Call a function with the arguments of each part; return when all are done.

        Parameters
        ----------
        function : callable
            Function; its results are ignored, so it writes into arrays of the caller.
        parts : sequence of tuple
            Arguments of each call.

        Raises
        ------
        BaseException
            Exception of a call, or KeyboardInterrupt. It is raised only after all other
            parts have stopped: no thread then writes into data that the caller
            continues to use.
        """
        work: list[Future[object]] = []
        pool = self._ready()
        try:
            work.extend(pool.submit(function, *part) for part in parts)
            for one in work:
                one.result()
        except BaseException:
            # Running calls cannot be interrupted, and they still write into arrays of
            # the caller.
            wait(work)
            raise

    def share(
        self, function: Callable[..., object], parts: Sequence[tuple[Any, ...]]
    ) -> None:
        """Call a function with the arguments of each part, from a function that `run` calls.

        The calling thread takes parts like all others, so that a job of many short phases
        waits for no thread to wake up.

        Parameters
        ----------
        function, parts
            See `run`.

        Raises
        ------
        BaseException
            Exception of a call. It is raised only after all other parts have stopped.
        """
        left = iter(parts)

        def take() -> None:
            # Threads share one iterator: the GIL makes `next` atomic.
            for part in left:
                function(*part)

        helpers = [
            self._ready().submit(take) for _ in range(min(self.count, len(parts)) - 1)
        ]
        try:
            take()
        finally:
            # A helper that has not started has taken no part, so it can be cancelled.
            started = [helper for helper in helpers if not helper.cancel()]
            wait(started)

        for helper in started:
            helper.result()

    def close(self) -> None:
        """Stop the threads; the next `run` starts new threads."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown()
        self._pool = None

    def _ready(self) -> ThreadPoolExecutor:
        """Return the thread pool of this process."""
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = (
                ThreadPoolExecutor(self.count, self._name),
                os.getpid(),
            )

        return self._pool


def lock() -> AbstractContextManager[bool]:
    """Return a reentrant lock for a ``with`` statement."""
    return RLock()


__all__ = ["Workers", "lock"]
