"""Interfaces of a running simulator, which can be switched off and on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Switch:
    """Something that serves clients and can be switched off and on.

    Attributes
    ----------
    about : str
        What it is, for people.
    on : bool
        Whether it serves at present.
    start, stop : callable
        Switch it; `start` may raise a `PortError`.
    problem : callable
        Why it is on but serves nobody, for people; empty: it does.
    """

    about: str
    on: bool
    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]
    problem: Callable[[], str] = str


__all__ = ["Switch"]
