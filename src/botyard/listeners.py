"""Functions that are called with each piece of news."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Functions that are called with each piece of news of a kind, in the order in which they were added; true if there are any.

    An exception of one keeps the news from none of the others: it is logged with its trace.

    Parameters
    ----------
    log : Logger
        Told of exceptions.
    what : str
        What they listen to, for the log.
    ends_failed : bool
        A listener that raises is unregistered: for records that must have no gap. Otherwise it is called again with the next news.
    """

    def __init__(self, log: logging.Logger, what: str, *, ends_failed: bool = False) -> None:
        self._log, self._what, self._ends_failed = log, what, ends_failed
        self._all: list[Callable[[T], object]] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, listener: Callable[[T], object]) -> Callable[[], None]:
        """Call `listener` with all news from now on; what is returned unregisters it."""
        self._all.append(listener)

        def unregister() -> None:
            if listener in self._all:
                self._all.remove(listener)

        return unregister

    def tell(self, news: T) -> None:
        """Call all listeners that are registered now; one that is added meanwhile is told of the next news."""
        for listener in tuple(self._all):
            try:
                listener(news)
            except Exception:
                end = " and is told no more" if self._ends_failed else ""
                self._log.exception("internal error: a listener of %s failed%s: %r", self._what, end, listener)
                if self._ends_failed and listener in self._all:
                    self._all.remove(listener)


__all__ = ["Listeners"]
