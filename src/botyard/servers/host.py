"""Where what serves clients lives: an event loop, or a null modem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Host(Protocol):
    """Does slow work beside the steps, and ends the simulation."""

    def run_aside(self, job: Callable[[], T], done: Callable[[T | None, Exception | None], None]) -> None:
        """Run `job` without holding up the steps, then call `done` with its result or its error, between two steps."""

    def end_soon(self, status: int, crash: bool) -> None:
        """End the simulation with an exit status, or as if it had died, after its sender has had time to say goodbye."""


__all__ = ["Host"]
