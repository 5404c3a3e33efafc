"""What is taken of logs that hold more than one robot's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from botyard.errors import CalibrationError
from botyard.names import shown

ROLES: Final = ("odometry", "commands", "scans", "truth")
"""What topics of a bag can be chosen for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is taken of a log that holds more than one robot's.

    Attributes
    ----------
    robot : str or None
        Name of the robot; None: the only one.
    topics : mapping of str to str
        Topics of a bag, by `ROLES`; without one, the only topic of a fitting type.
    """

    robot: str | None = None
    topics: Mapping[str, str] = field(default_factory=dict)


WHOLE: Final = Choice()
"""Of a log of one robot, everything."""


def one_of(
    names: Iterable[str], wanted: str | None, what: str, path: Path, option: str
) -> str:
    """The name that is wanted, or the only one."""
    names = list(names)
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    listed = ", ".join(shown(name) for name in names[:20]) or "none"
    expected = "one" if wanted is None else shown(wanted)
    hint = f"; {option} says which" if wanted is None and names else ""
    raise CalibrationError(f"{path}: {what}: expected {expected}, found {listed}{hint}")


__all__ = ["ROLES", "WHOLE", "Choice", "one_of"]
