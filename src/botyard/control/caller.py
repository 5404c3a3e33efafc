"""The caller of an operation, and its permission level."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Level(IntEnum):
    """Permission levels; each one includes those before it
    (docs/explanation/security.md).
    """

    WATCH = 1
    """Read the state of the world."""
    DRIVE = 2
    """Drive robots and read their sensors."""
    CHANGE = 3
    """Change the world for everybody."""
    OWN = 4
    """End the program."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for an operation.

    Attributes
    ----------
    source : str
        Source under which commands are queued and journalled: ``page``, ``ros``,
        ``pioneer``, ``ambf``, ``api``.
    level : Level
        Its permission level.
    about : str
        Description for people and for the log.
    key : hashable
        Identifies one of several clients of a source: for fair queueing, and to release
        what the client holds when it disconnects.
    is_user : bool
        The person who runs the program, to whom ``--read-only`` does not apply.
    ignores_crowd_limit : bool
        The limit of bodies on one place does not apply: a person sees what happens, or
        owns the machine.
    settles : bool
        While the simulation is paused, changes take effect at once. False for callers
        that may send many commands: their changes then take effect when the run loop
        looks next.
    undo_group : int, optional
        What it does can be taken back by `Undo`: operations with the same number other
        than 0 as one step, with 0 each by itself. None: nothing is noted.
    log : LoggerAdapter, optional
        Log for this caller's operations; otherwise that of `botyard.control`.
    """

    source: str
    level: Level = Level.CHANGE
    about: str = ""
    key: Hashable = None
    is_user: bool = False
    ignores_crowd_limit: bool = True
    settles: bool = True
    undo_group: int | None = None
    log: logging.LoggerAdapter[logging.Logger] | None = None

    def __str__(self) -> str:
        """Return the description."""
        return self.about or self.source


USER: Final = Caller("api", Level.OWN, "the user", is_user=True)
"""The program's own user: Python, and the command line."""


__all__ = ["USER", "Caller", "Level"]
