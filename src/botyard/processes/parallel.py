"""Threads that do the parts of a work at the same time, and a lock that lets threads
take turns. A leaf.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any


class Workers:
    """So many threads at most. They are made when they are first needed; in a process
    that was forked, which has none of them, anew.

    Parameters
    ----------
    count : int
        Number of threads.
    name : str
        What they are called.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def run(
        self, function: Callable[..., object], parts: Sequence[tuple[Any, ...]]
    ) -> None:
        """Call a function with the arguments of each part; return when all parts are
        done.

        What a call raises is raised when no part is worked on any more. So is a
        KeyboardInterrupt: nobody writes then into what the caller goes on with.
        """
        work: list[Future[object]] = []
        pool = self._ready()
        try:
            work.extend(pool.submit(function, *part) for part in parts)
            for one in work:
                one.result()
        except BaseException:
            wait(work)
            raise

    def close(self) -> None:
        """End the threads; the next work makes new ones."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown()
        self._pool = None

    def _ready(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = (
                ThreadPoolExecutor(self._count, self._name),
                os.getpid(),
            )

        return self._pool


def lock() -> AbstractContextManager[bool]:
    """A lock for ``with``: one thread at a time is in it. Calls that the same thread
    makes within go on.
    """
    return RLock()


__all__ = ["Workers", "lock"]
