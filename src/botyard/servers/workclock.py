"""Clocks that measure the processing time for clients, without steps of the world.

A client that may step the world may do so at any rate. So steps, and notifications
about them, are not charged to the budgets of the clients that request them, in any
protocol. The clocks of this module stop during steps, and all budgets use them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator


class _Free(threading.local):
    """Time of each thread that no budget counts, so far, s; each simulator has its own thread."""

    worked = 0.0
    passed = 0.0
    is_open = False


_free = _Free()


def worked() -> float:
    """Return the CPU time of this thread without steps of the world, s.

    Other load of the machine does not count.
    """
    return time.thread_time() - _free.worked


def passed() -> float:
    """Return the wall time without steps of the world, s."""
    return time.perf_counter() - _free.passed


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Stop both clocks inside the context."""
    # An outer context already stops the clocks.
    if _free.is_open:
        yield
        return

    thread, wall, _free.is_open = time.thread_time(), time.perf_counter(), True
    try:
        yield
    finally:
        _free.worked += time.thread_time() - thread
        _free.passed += time.perf_counter() - wall
        _free.is_open = False


__all__ = ["passed", "uncounted", "worked"]
