"""Registry of functions that are called when an event happens (observer pattern)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Callbacks for one kind of event, called in the order of registration.

    The object is true if it has at least one listener. An exception of one listener is
    logged with its traceback; the other listeners are still called.

    Parameters
    ----------
    log : Logger
        Logger for exceptions.
    what : str
        Name of the event source, for the log.
    ends_failed : bool
        Whether a listener that raises an exception is unregistered. Use it for listeners
        that record events, because a record must have no gap. Otherwise a failed
        listener is called again for the next event.
    """

    def __init__(
        self, log: logging.Logger, what: str, *, ends_failed: bool = False
    ) -> None:
        self._log, self._what, self._ends_failed = log, what, ends_failed
        self._all: list[Callable[[T], object]] = []

    def __len__(self) -> int:
        return len(self._all)

    def add(self, listener: Callable[[T], object]) -> Callable[[], None]:
        """Register a listener.

        Parameters
        ----------
        listener : callable
            Receives each event; its result is ignored. Registered twice, it is called
            twice.

        Returns
        -------
        callable
            Unregisters it; further calls do nothing.
        """
        self._all.append(listener)

        def unregister() -> None:
            # The listener may have been removed already: it can unregister itself, or
            # have failed.
            if listener in self._all:
                self._all.remove(listener)

        return unregister

    def notify(self, event: T) -> None:
        """Call all listeners that are registered at the time of the call.

        Parameters
        ----------
        event : object
            The event, the same object for all listeners.
        """
        # Loop over a copy, because a listener may register or unregister others.
        for listener in tuple(self._all):
            try:
                listener(event)
            # Listeners are the user's code: their errors must not end the simulation.
            except Exception:
                end = " and is unregistered" if self._ends_failed else ""
                self._log.exception(
                    "internal error: a listener of %s failed%s: %r",
                    self._what,
                    end,
                    listener,
                )
                if self._ends_failed and listener in self._all:
                    self._all.remove(listener)


__all__ = ["Listeners"]
