"""Event loop that can do late work at each wake-up, before it handles anything.

If no listener follows the world, the run loop uses it to make several late steps
together. Every handler then finds the world as if each step had been made on time.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
from collections.abc import Callable


class _WakingSelector(selectors.DefaultSelector):
    """Selector of the event loop that calls a function after each wait."""

    def __init__(self) -> None:
        super().__init__()
        self.on_wake: Callable[[], None] | None = None

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events; see `selectors.BaseSelector.select`.

        Parameters
        ----------
        timeout : float, optional
            Longest wait, s; None waits without limit, 0 or less does not wait.
        """
        events = super().select(timeout)
        if self.on_wake is not None:
            self.on_wake()
        return events


class WakingLoop(asyncio.SelectorEventLoop):
    """Event loop with a function that runs at each wake-up, before all handlers.

    Connections, data, signals, timers and calls from other threads are handled after
    it. The function must not raise.
    """

    def __init__(self) -> None:
        self._waking = _WakingSelector()
        super().__init__(self._waking)

    @property
    def on_wake(self) -> Callable[[], None] | None:
        """Function to run at each wake-up, or None."""
        return self._waking.on_wake

    @on_wake.setter
    def on_wake(self, act: Callable[[], None] | None) -> None:
        self._waking.on_wake = act


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop for a run of the program.

    Returns
    -------
    asyncio.AbstractEventLoop
        `WakingLoop`, except on Windows: the loop there has no function at each wake-up.
    """
    # Windows needs its own kind of loop for pipes and child processes.
    return asyncio.new_event_loop() if sys.platform == "win32" else WakingLoop()


__all__ = ["WakingLoop", "new_loop"]
