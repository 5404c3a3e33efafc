"""Who wants something done to a running simulator, and what that one may do."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Level(IntEnum):
    """What somebody may do; each level includes those before it (docs/explanation/security.md)."""

    WATCH = 1
    """Look on."""
    DRIVE = 2
    """Drive robots and read their sensors."""
    CHANGE = 3
    """Change the world for everybody."""
    OWN = 4
    """End the program."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who wants something done.

    Attributes
    ----------
    source : str
        In whose name commands are queued and journalled: ``page``, ``ros``, ``pioneer``, ``ambf``, ``api``.
    level : Level
        What it may do.
    about : str
        Who that is, for people and the log.
    key : hashable
        Which one of several clients of the source: whose turn it is, whose hold on time ends when it leaves.
    is_user : bool
        Whoever runs the program: ``--read-only`` is his own word, and does not bind him.
    is_tame : bool
        The limit of bodies on one place does not bind it: a person sees what happens, or owns the machine.
    settles : bool
        What it does while time stands still takes effect at once; else when the run loop looks next, for one that may send much.
    log : LoggerAdapter, optional
        Where lines about what it does go; else to the log of `botyard.control`.
    """

    source: str
    level: Level = Level.CHANGE
    about: str = ""
    key: Hashable = None
    is_user: bool = False
    is_tame: bool = True
    settles: bool = True
    log: logging.LoggerAdapter[logging.Logger] | None = None

    def __str__(self) -> str:
        """For people."""
        return self.about or self.source


USER: Final = Caller("api", Level.OWN, "the user", is_user=True)
"""The program's own user: Python, and the command line."""


__all__ = ["USER", "Caller", "Level"]
