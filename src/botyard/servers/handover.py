"""`Handover`: makes calls from other threads in the event loop, with one wake-up for a
burst of calls.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any


class Handover:
    """Makes calls in an event loop, in their order, and wakes it once for all that
    wait.

    Each ``call_soon_threadsafe`` writes a byte into the pipe that wakes the loop, as
    each signal does. On Linux it holds about 280; a signal that comes when it is full
    is lost. A burst, such as the log of five hundred clients that leave, must not cost
    a SIGTERM.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        Where the calls are made.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._calls: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def soon(self, act: Callable[..., None], *args: Any) -> None:
        """Call something in the loop; from any thread. Nothing is called when the loop
        has ended.
        """
        with self._lock:
            self._calls.append((act, args))
            if len(self._calls) > 1:
                return  # it is woken already

        try:
            self._loop.call_soon_threadsafe(self._make)
        except RuntimeError:  # the loop has ended
            with self._lock:
                self._calls.clear()

    def _make(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, []
        for act, args in calls:
            try:
                act(*args)
            except Exception as error:
                # the others are made all the same
                self._loop.call_exception_handler(
                    {
                        "message": f"a call handed over to the loop: {act}",
                        "exception": error,
                    }
                )
