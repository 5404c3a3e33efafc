"""`Handover`: calls from other threads in the event loop, one wake-up per burst."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any


class Handover:
    """Queue of calls to make in an event loop, in order.

    Each ``call_soon_threadsafe`` writes a byte into the pipe that wakes the loop, as
    does each signal. On Linux the pipe holds about 280 bytes, and a signal that arrives
    while it is full is lost. Here a burst of calls, such as the log lines of five
    hundred clients that disconnect, writes only one byte, so that the loop does not
    lose a SIGTERM.

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

        Parameters
        ----------
        act : callable
            Function. The event loop calls it, unless the loop has ended.
        *args : object
            Its arguments.
        """
        with self._lock:
            self._calls.append((act, args))
            # With more than one call, a wake-up is already pending.
            if len(self._calls) > 1:
                return

        try:
            self._loop.call_soon_threadsafe(self._make)
        # The event loop has ended, so the call cannot be made.
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
                # One failed call must not drop the other calls.
                self._loop.call_exception_handler(
                    {
                        "message": f"a call from another thread failed: {act}",
                        "exception": error,
                    }
                )
