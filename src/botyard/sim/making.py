"""Context in which many robots are made: room in tables, no garbage collections."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator

from botyard.engine.tables import Table

MANY_ROBOTS = 100
"""Number of robots from which the garbage collector waits until all are made."""


@contextlib.contextmanager
def making_robots(count: int, tables: Iterable[Table]) -> Iterator[None]:
    """Reserve rows of device tables for `count` robots, and collect no garbage.

    All new objects stay, so that collections would search them again and again.
    Collections continue if there are fewer than `MANY_ROBOTS` robots.

    Parameters
    ----------
    count : int
        Number of robots that the body of the ``with`` statement makes.
    tables : iterable of Table
        Device tables of the engine. Each grows once to its final size.
    """
    with contextlib.ExitStack() as stack:
        for table in tables:
            stack.enter_context(table.adding(count))
        if count >= MANY_ROBOTS and gc.isenabled():
            stack.callback(gc.enable)
            gc.disable()
        yield


__all__ = ["making_robots"]
