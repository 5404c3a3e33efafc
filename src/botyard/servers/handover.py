"""`Handover`: calls from other threads in the event loop, one wake-up per burst."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any


class Handover:
    """Queue of calls to make in an event loop, in order, with one wake-up per burst.

    Each ``call_soon_threadsafe`` writes a byte into the pipe that wakes the loop, as
    does each signal. On Linux the pipe holds about 280 bytes, and a signal that arrives
    while it is full is lost. A burst, such as the log of five hundred clients that
    leave, must not cost a SIGTERM.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        Event loop that makes the calls.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._calls: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def soon(self, act: Callable[..., None], *args: Any) -> None:
        """Queue a call for the event loop, from any thread.

        Nothing is called if the loop has ended.
        """
        with self._lock:
            self._calls.append((act, args))
            # A wake-up is already pending.
            if len(self._calls) > 1:
                return

        try:
            self._loop.call_soon_threadsafe(self._make)
        # The event loop has ended.
        except RuntimeError:
            with self._lock:
                self._calls.clear()

    def _make(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, []
        for act, args in calls:
            try:
                act(*args)
            except Exception as error:
                # One failed call must not drop the others.
                self._loop.call_exception_handler(
                    {
                        "message": f"a call from another thread: {act}",
                        "exception": error,
                    }
                )
