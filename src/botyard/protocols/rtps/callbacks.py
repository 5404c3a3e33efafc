"""Queue of callbacks, which are called when the participant's own state is consistent.

The callbacks of programs may write samples, add and remove endpoints, and raise
exceptions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any


class Callbacks:
    """Queue of callbacks of programs, in order."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._is_running = False

    def add(self, call: Callable[..., None], *args: object) -> None:
        """Queue a call for the next `run`.

        Parameters
        ----------
        call : callable
            Callback of a program.
        *args : object
            Arguments of the call.
        """
        self._waiting.append((call, args))

    def run(self) -> None:
        """Make all queued calls, including calls that are queued meanwhile.

        An error in one call does not stop the others.

        Raises
        ------
        Exception
            Error of a call; for several an `ExceptionGroup`.
        """
        # In nested runs, the outermost one makes all calls.
        if self._is_running or not self._waiting:
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
            raise ExceptionGroup("callbacks of readers and writers", errors)
