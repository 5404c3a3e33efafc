"""Interface of undo parts, of which a step of undo consists (`botyard.control.undo`).

A part describes bodies that were placed, added or removed, or a map that was replaced.
Undoing a part yields the parts that redo it. `Placements` counts how often each client
placed a body.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from botyard.control.caller import Caller
from botyard.control.operation import Operation
from botyard.control.site import Site
from botyard.errors import BotyardError
from botyard.names import shown
from botyard.sim.simulation import Simulation

MAX_NAMED: Final = 3
"""Maximum number of bodies that a line names; otherwise it states their number."""
Key = tuple[str, object]
"""Name and identity (`Site.identity`) of a body, which distinguish it from later bodies."""
TakingBack = Generator[Any, None, "list[Part]"]


class Placements:
    """Number of placements of each body by one client.

    The other placements of a body were made by other clients.
    """

    def __init__(self) -> None:
        self._own: dict[Key, int] = {}

    def count_own(self, key: Key, number: int) -> None:
        """Add to the number of placements of a body by the client.

        Parameters
        ----------
        key : (str, object)
            Name and `Site.identity` of the body.
        number : int
            Number of further placements.
        """
        self._own[key] = self._own.get(key, 0) + number

    def by_others(self, sim: Simulation, key: Key) -> int:
        """Return the number of placements of an existing body by other clients.

        Parameters
        ----------
        sim : Simulation
            The world, which counts all placements.
        key : (str, object)
            Name and `Site.identity` of the body.
        """
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
            Number of placements of the old and the new object. Placements by other
            clients still count.
        """
        # The new object's own count makes `by_others` return the same number as before.
        self._own[name, new] = now - (before - self._own.pop((name, old), 0))

    def rename(self, bodies: Mapping[Key, Key]) -> None:
        """Transfer the counts to the new names and identities of robots.

        Parameters
        ----------
        bodies : mapping of (str, object) to (str, object)
            New name and identity by old name and identity.
        """
        self._own = {bodies.get(key, key): n for key, n in self._own.items()}

    def keep(self, keys: Iterable[Key]) -> None:
        """Keep the counts of these bodies, and forget the counts of all others.

        Parameters
        ----------
        keys : iterable of (str, object)
            Bodies that steps still refer to.
        """
        wanted = set(keys)
        self._own = {key: number for key, number in self._own.items() if key in wanted}


class Log(Protocol):
    """Interface of `botyard.control.undo.Undoing` that parts use."""

    def succeed(
        self, name: str, old: object, new: object, before: int, by: Placements
    ) -> None:
        """Transfer undo steps to a body that a client has restored as a new object.

        Parameters
        ----------
        name : str
            Name of the body.
        old, new : object
            Identity of the body before and after (`Site.identity`).
        before : int
            How often the old body had been placed.
        by : Placements
            Placements of the client that restored it.
        """
        ...

    def begin_anew(self, by: Placements) -> None:
        """Forget the undo steps of all clients after the world returned to an earlier moment.

        The steps belong to the abandoned run. Only the placements by the client that requested the
        return are kept.

        Parameters
        ----------
        by : Placements
            Placements of the client that restored that moment.
        """
        ...


@dataclass(slots=True)
class Kept:
    """Body that an undo part concerns, with its identity (`Site.identity`)."""

    body: object


class Part(ABC):
    """Part of an undo step, for one kind of change.

    Attributes
    ----------
    kept : mapping of str to Kept
        Bodies of the part by name.
    """

    kept: Mapping[str, Kept]

    @property
    def bodies(self) -> int:
        """Number of bodies that the part concerns."""
        return len(self.kept)

    @property
    def size(self) -> int:
        """Size of the map that the part keeps, bytes."""
        return 0

    @property
    @abstractmethod
    def what(self) -> str:
        """Description of the change that the part can undo, for messages."""

    def touched(self) -> Iterable[Key]:
        """Return the bodies whose placements by clients matter to the part."""
        return ((name, one.body) for name, one in self.kept.items())

    def absorb(self, other: Part) -> bool:
        """Merge another part of the same step into this one, if possible.

        Parameters
        ----------
        other : Part
            Later part. Only parts of the same kind can be merged.

        Returns
        -------
        bool
            Whether it was merged; otherwise both parts stay as they are.
        """
        joined = self._joined(other) if type(other) is type(self) else None
        if joined is not None:
            self.kept = joined
        return joined is not None

    def _joined(self, other: Any) -> Mapping[str, Any] | None:
        """Return the bodies of this part and of a later part of the same class together.

        None means that the two parts cannot be merged.
        """
        return None

    def rename(self, bodies: Mapping[Key, Key]) -> None:
        """Replace the names and identities of robots that got other names.

        Parameters
        ----------
        bodies : mapping of (str, object) to (str, object)
            New name and identity by old name and identity; other bodies stay.
        """
        kept = dict[str, Any]()
        for name, one in self.kept.items():
            name, one.body = bodies.get((name, one.body), (name, one.body))
            kept[name] = one
        self.kept = kept

    def succeed(self, name: str, old: object, new: object) -> None:
        """Replace the identity of a body that was restored as a new object.

        Parameters
        ----------
        name : str
            Name of the body.
        old, new : object
            `Site.identity` before and after; a body with another identity stays.
        """
        if name in self.kept and self.kept[name].body == old:
            self.kept[name].body = new

    @abstractmethod
    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Undo this part in portions.

        Parameters
        ----------
        control : Site
            Context of operations.
        caller : Caller
            Client whose step it is.
        log : Log
            Steps of all clients.
        own : Placements
            Placements of the client. In-place: placements by the undo are added.
        notes : list of str
            Output list: receives messages about bodies that could not be restored.

        Returns
        -------
        portions of list of Part
            Work that returns the parts that redo the change. The work yields before it
            changes the world, which may happen only between two steps.
        """


def described(parts: Sequence[Part]) -> str:
    """Return one description of several undo parts, for messages."""
    return ", ".join(dict.fromkeys(part.what for part in parts))


def names_text(names: Sequence[str]) -> str:
    """Return the names of bodies, or the number of bodies if there are many.

    Parameters
    ----------
    names : sequence of str
        Names; more than `MAX_NAMED` are counted instead.
    """
    return (
        ", ".join(shown(name, 40) for name in names)
        if len(names) <= MAX_NAMED
        else f"{len(names)} bodies"
    )


def performed(
    operation: Operation[Any], control: Site, caller: Caller, notes: list[str]
) -> bool:
    """Perform an inverse operation, and return whether it took effect.

    Parameters
    ----------
    operation : Operation
        Operation that undoes or redoes a change.
    control : Site
        Context of the operation.
    caller : Caller
        Client.
    notes : list of str
        Output list: receives the reason if the operation is refused.
    """
    try:
        operation.perform(control, caller)
    except BotyardError as error:
        notes.append(str(error))
        return False
    return True


def add_note(notes: list[str], names: Sequence[str], one: str, many: str) -> None:
    """Add a note about bodies to a list.

    Parameters
    ----------
    notes : list of str
        Output list: receives the note. Without names nothing is added.
    names : sequence of str
        Names of the bodies.
    one, many : str
        Predicate in the singular and the plural.
    """
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
    "performed",
]
