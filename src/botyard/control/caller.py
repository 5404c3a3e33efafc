"""Caller of an operation, and its permission level."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Level(IntEnum):
    """Permission levels; each one includes the lower ones.

    See docs/explanation/security.md.
    """

    WATCH = 1
    """Permission to read the state of the world."""
    DRIVE = 2
    """Permission to drive robots and to read their sensors."""
    CHANGE = 3
    """Permission to change the world for all clients."""
    OWN = 4
    """Permission to end the program."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Source of an operation: a client or the user, with its permission level.

    Attributes
    ----------
    source : str
        Source under which commands are queued and journalled: ``page``, ``ros``,
        ``pioneer``, ``ambf``, ``api``.
    level : Level
        Permission level of the caller.
    about : str
        Description of the caller for messages and the log.
    key : hashable
        Identifies one of several clients of a source. The key is used for fair
        queueing, and to release everything that the client holds when it disconnects.
    is_user : bool
        Whether this is the user of the program, to whom ``--read-only`` does not apply.
    ignores_crowd_limit : bool
        Whether the limit of bodies at one place does not apply, because a person
        watches the result or owns the machine.
    settles : bool
        Whether changes take effect at once while the simulation is paused. False for
        callers that may send many commands: their changes take effect at the run loop's
        next poll.
    undo_group : int, optional
        Makes changes of the caller available for `Undo`. Operations with the same
        number other than 0 are one step; with 0, each operation is a step. None: no
        undo.
    person : str
        Name of the caller in messages to others; by default its description.
    log : LoggerAdapter, optional
        Log for this caller's operations; by default the log of `botyard.control`.
    """

    source: str
    level: Level = Level.CHANGE
    about: str = ""
    key: Hashable = None
    is_user: bool = False
    ignores_crowd_limit: bool = True
    settles: bool = True
    undo_group: int | None = None
    person: str = ""
    log: logging.LoggerAdapter[logging.Logger] | None = None

    def __str__(self) -> str:
        """Return the description of the caller, for messages."""
        return self.about or self.source

    def is_same(self, other: Caller) -> bool:
        """Return whether another caller is the same client."""
        return self.source == other.source and self.key == other.key


USER: Final = Caller("api", Level.OWN, "the user", is_user=True)
"""The user of the program: Python, and the command line."""


__all__ = ["USER", "Caller", "Level"]
