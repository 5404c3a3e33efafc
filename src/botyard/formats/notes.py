"""Notes about parts of a world file that cannot be simulated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class Position(Protocol):
    """Interface of a part of a file that knows its position."""

    @property
    def path(self) -> str:
        """File that contains the part."""

    @property
    def line(self) -> int:
        """Line of the part, from 1."""


@dataclass(slots=True)
class Notes:
    """Notes about parts of a world file that cannot be simulated, one for each key.

    Attributes
    ----------
    texts : list of str
        File, line and description of each part.
    """

    texts: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def add(self, key: str, where: Position, text: str) -> None:
        """Add a note about a part of a file, unless there is already a note with the same key."""
        if key not in self._seen:
            self._seen.add(key)
            self.texts.append(f"{where.path}:{where.line}: {text}")


__all__ = ["Notes", "Position"]
