"""Callables of programs are called when the participant's own state is consistent: they
may write, add and remove endpoints, and raise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any


class Callbacks:
    """Calls that wait, in order."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._is_running = False

    def add(self, call: Callable[..., None], *args: object) -> None:
        """Call it at the next `run`."""
        self._waiting.append((call, args))

    def run(self) -> None:
        """Make all calls, also those that come meanwhile. One that raises does not keep
        the others from being made.

        Raises
        ------
        Exception
            What a call has raised; of several an `ExceptionGroup`.
        """
        if (
            self._is_running or not self._waiting
        ):  # of calls within calls, the outermost makes all
            return

        errors: list[Exception] = []
        self._is_running = True
        try:
            while self._waiting:
                call, args = self._waiting.popleft()
                try:
                    call(*args)
                except Exception as error:
                    errors.append(error)
        finally:
            self._is_running = False

        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup("callables of readers and writers", errors)
