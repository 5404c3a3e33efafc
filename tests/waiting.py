"""Wait for conditions, long enough for a busy machine:

the time is used only by failing tests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
PATIENCE: Final = 120.0
"""Seconds; a cold start compiles, and a shared machine may stand still for many
seconds.
"""


def wait(
    holds: Callable[[], T],
    seconds: float = PATIENCE,
    pause: float = 0.02,
    what: object = "",
) -> T:
    """Wait until a condition holds; return its value.

    `what` is called or shown if it never holds.
    """
    end = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < end, (
            f"it did not come to hold within {seconds} s: {what() if callable(what) else what}"
        )
        time.sleep(pause)

    return value


class Stalls:
    """Measures how long the machine stands still, by the lateness of a sleeping thread."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._late = 0.0
        self._thread = threading.Thread(target=self._sleep, daemon=True)
        self._thread.start()

    def _sleep(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(0.01):
            now = time.monotonic()
            self._late += max(0.0, now - last - 0.03)
            last = now

    def end(self) -> float:
        """Return the total stall time, s; only times above 20 ms count."""
        self._ended.set()
        self._thread.join()
        return self._late
