"""Thread pool for parts of a task, and a lock for turns between threads."""

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
    """

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._pool: ThreadPoolExecutor | None = None
        # The process that owns the pool: after a fork, the child has the object without
        # its threads.
        self._process = 0

    def run(
        self, function: Callable[..., object], parts: Sequence[tuple[Any, ...]]
    ) -> None:
        """Call a function with the arguments of each part.

        Return when all parts are done.

        An exception of a call, or a KeyboardInterrupt, is raised only after all other
        parts have stopped: no thread then writes into data that the caller continues to
        use.
        """
        work: list[Future[object]] = []
        pool = self._ready()
        try:
            work.extend(pool.submit(function, *part) for part in parts)
            for one in work:
                one.result()
        except BaseException:
            # Calls cannot be interrupted, and still write into arrays of the caller.
            wait(work)
            raise

    def close(self) -> None:
        """Stop the threads; the next `run` starts new ones."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown()
        self._pool = None

    def _ready(self) -> ThreadPoolExecutor:
        """Return the thread pool of this process."""
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = (
                ThreadPoolExecutor(self._count, self._name),
                os.getpid(),
            )

        return self._pool


def lock() -> AbstractContextManager[bool]:
    """Return a reentrant lock for ``with``."""
    return RLock()


__all__ = ["Workers", "lock"]
