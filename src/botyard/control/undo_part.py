"""Interface of the parts of a step of undo (`botyard.control.undo`).

A part describes bodies that were placed, added or removed, or a map that was replaced.
To undo a part returns the parts that redo it. `Placements` counts who placed a body.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from botyard.control.caller import Caller
from botyard.control.site import Site
from botyard.names import shown
from botyard.sim.simulation import Simulation

MAX_NAMED: Final = 3
"""Maximum number of bodies that a line names; otherwise it states their number."""
Key = tuple[str, object]
"""Name and identity (`Site.identity`) of a body."""
TakingBack = Generator[Any, None, "list[Part]"]


class Placements:
    """Counts how often a client itself has placed each body.

    The other placements of a body were made by other clients.
    """

    def __init__(self) -> None:
        self._own: dict[Key, int] = {}

    def count_own(self, key: Key, number: int) -> None:
        """Count further placements of a body by the client."""
        self._own[key] = self._own.get(key, 0) + number

    def by_others(self, sim: Simulation, key: Key) -> int:
        """Return the number of placements of an existing body by other clients."""
        return sim.core.placements(key[0]) - self._own.get(key, 0)

    def succeed(
        self, name: str, old: object, new: object, before: int, now: int
    ) -> None:
        """Transfer the count to a body that was restored as a new object.

        Parameters
        ----------
        name : str
            Name of the body.
        old, new : object
            Identities of the old and the new object (`Site.identity`).
        before, now : int
            Number of placements of the old and the new object. Placements by others
            still count.
        """
        # The new object's own count makes `by_others` return the same number as before.
        self._own[name, new] = now - (before - self._own.pop((name, old), 0))

    def keep(self, keys: Iterable[Key]) -> None:
        """Keep the counts of these bodies, and forget the counts of all others."""
        wanted = set(keys)
        self._own = {key: number for key, number in self._own.items() if key in wanted}


class Log(Protocol):
    """Interface of `botyard.control.undo.Undoing` that parts use."""

    def succeed(
        self, name: str, old: object, new: object, before: int, by: Placements
    ) -> None:
        """Transfer steps to a body that a client has restored as a new object.

        It had been placed `before` times; `by` has the client's own placements.
        """
        ...

    def begin_anew(self, by: Placements) -> None:
        """Forget the steps of other clients after the world returned to another moment.

        They belong to another run. `by` has the placements of the client that did this.
        """
        ...


@dataclass(slots=True)
class Kept:
    """A body of a part, with its identity (`Site.identity`)."""

    body: object


class Part(ABC):
    """Part of a step of undo.

    Attributes
    ----------
    kept : mapping of str to Kept
        Bodies of the part by name.
    """

    kept: Mapping[str, Kept]

    @property
    def bodies(self) -> int:
        """Number of bodies of the part."""
        return len(self.kept)

    @property
    def size(self) -> int:
        """Size of the map that the part keeps, bytes."""
        return 0

    @property
    @abstractmethod
    def what(self) -> str:
        """Description of the change, for messages."""

    def touched(self) -> Iterable[Key]:
        """Return the bodies whose placements matter to the part."""
        return ((name, one.body) for name, one in self.kept.items())

    def absorb(self, other: Part) -> bool:
        """Merge another part of the same step into this one.

        Return whether it is possible.
        """
        joined = self._joined(other) if type(other) is type(self) else None
        if joined is not None:
            self.kept = joined
        return joined is not None

    def _joined(self, other: Any) -> Mapping[str, Any] | None:
        """Return the bodies of this part and a later one of its class.

        None: each part stands for itself.
        """
        return None

    def rename(self, name: str, old: object, new: object) -> None:
        """Replace the identity of a body that was restored as a new object."""
        if name in self.kept and self.kept[name].body == old:
            self.kept[name].body = new

    @abstractmethod
    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Undo this part in portions; return the parts that redo the change.

        `notes` receives messages about bodies that could not be restored.
        """


def described(parts: Sequence[Part]) -> str:
    """Return a description of the parts, for messages."""
    return ", ".join(dict.fromkeys(part.what for part in parts))


def names_text(names: Sequence[str]) -> str:
    """Return the names of bodies, or the number of bodies if there are many."""
    return (
        ", ".join(shown(name, 40) for name in names)
        if len(names) <= MAX_NAMED
        else f"{len(names)} bodies"
    )


def add_note(notes: list[str], names: Sequence[str], one: str, many: str) -> None:
    """Add a note about bodies; `one` and `many` are its singular and plural."""
    if names:
        notes.append(f"{names_text(names)} {one if len(names) == 1 else many}")


__all__ = [
    "Kept",
    "Log",
    "Part",
    "Placements",
    "TakingBack",
    "add_note",
    "described",
    "names_text",
]
