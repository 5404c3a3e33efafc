"""Clocks of the processing time for clients and peers: time of the event loop's thread,
without steps of the world.

Who may step the world may do so at any pace. So steps, and telling everybody of them,
are not counted in the budgets of those who ask for them, whatever the protocol: the
clocks here stand still meanwhile, and all budgets are measured by them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator


class _Free(threading.local):
    """What was not counted so far, s, of each thread: its loop has a simulator of its
    own.
    """

    worked = 0.0
    passed = 0.0
    is_open = False


_free = _Free()


def worked() -> float:
    """Time that this thread has computed, s, whatever else the machine does; steps of
    the world are left out.
    """
    return time.thread_time() - _free.worked


def passed() -> float:
    """Time that has passed, s; steps of the world are left out."""
    return time.perf_counter() - _free.passed


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """What happens meanwhile is nobody's work: both clocks stand still."""
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
