"""Choice of robot and topics in logs of several robots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from botyard.errors import CalibrationError
from botyard.names import shown

ROLES: Final = ("odometry", "commands", "scans", "truth")
"""Roles for which topics of a bag can be chosen."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Choice of the data to read from a log of several robots.

    Attributes
    ----------
    robot : str or None
        Name of the robot; None: the only robot in the log.
    topics : mapping of str to str
        Topics of a bag by role (`ROLES`). Without a choice, the only topic of a
        matching type.
    """

    robot: str | None = None
    topics: Mapping[str, str] = field(default_factory=dict)


WHOLE: Final = Choice()
"""The choice for a log of one robot: all of its data."""


def one_of(
    names: Iterable[str], wanted: str | None, what: str, path: Path, option: str
) -> str:
    """Return the chosen name, or the only one.

    Parameters
    ----------
    names : iterable of str
        Names in the log.
    wanted : str or None
        Name that the user chose; None: there must be exactly one.
    what : str
        Plural of the named things, for the message.
    path : Path
        File, for the message.
    option : str
        Command-line option that chooses, for the message.

    Raises
    ------
    CalibrationError
        The chosen name is missing, or the choice is ambiguous; the message lists the
        names.
    """
    names = list(names)
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    listed = ", ".join(shown(name) for name in names[:20]) or "none"
    expected = "one" if wanted is None else shown(wanted)
    hint = f"; choose with {option}" if wanted is None and names else ""
    raise CalibrationError(f"{path}: {what}: expected {expected}, found {listed}{hint}")


__all__ = ["ROLES", "WHOLE", "Choice", "one_of"]
