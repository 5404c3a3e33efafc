"""Undo and redo: what a client has done with bodies and the map is taken back, and done
again, while changes of others stay.

When an operation is done, what takes it back is noted (`Undoing.watch`): of a body that
was placed the pose before, of one that was removed all that makes another one like it,
of a map the one before. Taking a step back gives what does it again, so redo is undo of
an undo.

A body that somebody else has placed since stays where it is, and the answer says so;
one that only drove by itself is put back. A robot that is brought back has its name,
start, pose, odometry, program and, if it is free, its port; its clients have to connect
again, and its battery and limits are those of a new robot.

When the world has gone on from an earlier moment (`botyard.control.history`), what was
noted before is forgotten. Taking that back brings the whole world back to where it was,
with all that others had done until then.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from botyard.control.bodies import (
    AddedRobots,
    AddRobot,
    AddRobots,
    CloneRobots,
    Place,
    Remove,
    Reset,
)
from botyard.control.caller import Caller
from botyard.control.history import Branch
from botyard.control.operation import Operation
from botyard.control.site import Site
from botyard.control.undosteps import (
    Added,
    MapReplaced,
    Part,
    Placed,
    Placements,
    Removed,
    WentBack,
    described,
)
from botyard.control.world import ClearMap, LoadMap, ReloadMap, SendMap
from botyard.errors import NotNowError, WorldError
from botyard.sim.simulation import Robot

MAX_STEPS: Final = 100
"""Steps that a client can take back; the oldest are forgotten."""
MAX_BODIES: Final = 20_000
"""Bodies in all steps of a client, each of some hundred bytes."""
MAX_MAP_BYTES: Final = 64 * 2**20
"""Bytes of the maps in all steps of a client."""
MAX_CLIENTS: Final = 100
"""Clients whose steps are kept; those of the one that has done nothing for longest are
forgotten.
"""

NO_UNDO: Final = "nothing can be undone"
MAP_OPERATIONS: Final = (LoadMap, SendMap, ReloadMap, ClearMap)
ADDING: Final = (AddRobot, AddRobots, CloneRobots)


@dataclass(slots=True)
class Step:
    """What one undo takes back.

    Attributes
    ----------
    what : str
        What was done, for people: ``removing ann``.
    group : int
        Operations of one client with the same number other than 0 are one step.
    parts : list of Part
        In the order in which they were done.
    """

    what: str
    group: int
    parts: list[Part]


class Book:
    """The steps of one client.

    Attributes
    ----------
    placements : Placements
        How often this client itself has placed each body.
    """

    def __init__(self) -> None:
        self.undo: list[Step] = []
        self.redo: list[Step] = []
        self.placements = Placements()
        self.is_busy = False

    def add(self, step: Step) -> None:
        """Something was done: nothing that was undone before can be done again."""
        self.redo.clear()
        last = self.undo[-1] if self.undo else None
        if last is not None and step.group and last.group == step.group:
            for part in step.parts:
                if not any(one.absorb(part) for one in last.parts):
                    last.parts.append(part)

            last.what = described(last.parts)
        else:
            self.undo.append(step)

        self._shrink()

    def _shrink(self) -> None:
        """Forget the oldest steps that are beyond a limit."""
        bodies, size = 0, 0
        for index in range(len(self.undo) - 1, -1, -1):
            bodies += sum(part.bodies for part in self.undo[index].parts)
            size += sum(part.size for part in self.undo[index].parts)
            if (
                len(self.undo) - index > MAX_STEPS
                or bodies > MAX_BODIES
                or size > MAX_MAP_BYTES
            ):
                del self.undo[: index + 1]
                break

        self.placements.keep(
            body
            for step in (*self.undo, *self.redo)
            for part in step.parts
            for body in part.touched()
        )


class Undoing:
    """The steps of all clients (`botyard.control.parts.UndoLog`)."""

    def __init__(self) -> None:
        self._books: dict[Hashable, Book] = {}

    @contextmanager
    def watch(
        self, control: Site, caller: Caller, operation: Operation[Any]
    ) -> Iterator[None]:
        """Context manager: note how to take back what the operation does in the block,
        also when it fails half-way.
        """
        if caller.undo_group is None or isinstance(operation, (Undo, Redo)):
            yield
            return

        if isinstance(operation, Branch):
            whole = WentBack.of(control.sim)
            yield
            # all that was noted is forgotten, but for this
            if whole is not None:
                whole.time = control.sim.time
                self._note(caller, [whole])

            return

        before = _before(control, caller, operation, self._book(caller).placements)
        try:
            yield
        finally:
            if before is not None:
                self._note(caller, before.done(control))

    def done(
        self, control: Site, caller: Caller, operation: Operation[Any], result: object
    ) -> None:
        """Note how to take back an operation that has just ended, with what it has
        given.
        """
        if caller.undo_group is None or caller.key not in self._books:
            return
        part: Part | None = None
        parts: list[Part] = []
        if isinstance(result, AddedRobots) and isinstance(operation, ADDING):
            part = Added.of(control, result.robots)
        elif (
            isinstance(operation, MAP_OPERATIONS)
            and result is not False
            and control.maps is not None
        ):
            replaced = control.maps.replaced
            if replaced is not None:
                parts = MapReplaced.of(control, replaced, self._book(caller).placements)

        if part is not None:
            parts = [part]
        self._note(caller, parts)

    def _note(self, caller: Caller, parts: list[Part]) -> None:
        parts = [part for part in parts if part.bodies or part.size]
        if parts:
            self._book(caller).add(
                Step(described(parts), caller.undo_group or 0, parts)
            )

    def _book(self, caller: Caller) -> Book:
        """The steps of a client, who is the last to have done something."""
        book = self._books.pop(caller.key, None)
        self._books[caller.key] = book = Book() if book is None else book
        while len(self._books) > MAX_CLIENTS:
            del self._books[next(iter(self._books))]
        return book

    def check(self, caller: Caller, again: bool) -> None:
        """Check that there is a step to be taken back, or to be done again.

        Raises
        ------
        NotNowError
            There is none, or the one before is still under way.
        """
        book = self._books.get(caller.key)
        if book is not None and book.is_busy:
            raise NotNowError("the last undo is still under way")
        if book is None or not (book.redo if again else book.undo):
            raise NotNowError("nothing to do again" if again else "nothing to undo")

    def take_back(
        self, control: Site, caller: Caller, again: bool
    ) -> Generator[Any, None, str]:
        """Take the last step of a client back, or do the last one that was taken back
        again; a line for people.

        Raises
        ------
        NotNowError
            There is none, or the one before is still under way.
        WorldError
            Nothing of it could be taken back; the step is forgotten.
        """
        self.check(caller, again)
        book = self._book(caller)
        steps, others = (book.redo, book.undo) if again else (book.undo, book.redo)
        step = steps.pop()
        inverse: list[Part] = []
        notes: list[str] = []
        book.is_busy = True
        try:
            for part in reversed(step.parts):
                inverse += yield from part.take_back(
                    control, caller, self, book.placements, notes
                )
        finally:
            book.is_busy = False
            inverse = [part for part in inverse if part.bodies or part.size]
            if inverse:
                others.append(Step(step.what, 0, inverse))

        if not inverse:
            raise WorldError(
                f"{step.what} cannot be {'done again' if again else 'undone'}: "
                f"{'; '.join(notes) or 'nothing is left of it'}"
            )

        return "; ".join(
            [f"{'done again' if again else 'undone'}: {step.what}", *notes]
        )

    def succeed(
        self, name: str, old: object, new: object, before: int, by: Placements
    ) -> None:
        """A body was brought back as another one by the client with these placements;
        it had been placed `before` times.

        What was noted of the old one holds for the new one. For other clients it was
        placed by somebody else.
        """
        now = 0 if not isinstance(new, Robot) else new.simulation.placements(name)
        for book in self._books.values():
            own = book.placements
            own.succeed(name, old, new, before, now if own is by else now - 1)
            for step in (*book.undo, *book.redo):
                for part in step.parts:
                    part.rename(name, old, new)

    def begin_anew(self, by: Placements) -> None:
        """The client with these placements has brought the world back to another
        moment: what was noted before is of another run.
        """
        self._books = {
            key: book for key, book in self._books.items() if book.placements is by
        }
        for book in self._books.values():
            book.undo.clear()
            book.redo.clear()

    def forget(self, key: Hashable) -> None:
        """A client has gone."""
        self._books.pop(key, None)

    def clear(self) -> None:
        """The world has gone back to another moment: what was noted is of a run that
        did not happen.
        """
        self._books.clear()


@dataclass(slots=True)
class _Before:
    """What an operation is about to change: bodies that may be placed, and bodies that
    may go.
    """

    placed: Placed | None = None
    removed: Removed | None = None
    placements: Placements | None = None

    def done(self, control: Site) -> list[Part]:
        """What really has changed."""
        parts: list[Part] = []
        if self.placed is not None and self.placements is not None:
            parts.append(self.placed.changed(control, self.placements))
        if self.removed is not None:
            parts.append(self.removed.gone(control))
        return parts


def _before(
    control: Site, caller: Caller, operation: Operation[Any], own: Placements
) -> _Before | None:
    if isinstance(operation, Place):
        return _Before(
            placed=Placed.of(control, [name for name, _ in operation.to], own),
            placements=own,
        )

    if isinstance(operation, Reset) and operation.starts:
        names = operation.names
        if names is None:
            names = (*control.sim.robots, *control.sim.box_names)
        return _Before(
            placed=Placed.of(control, names, own, odometry=True), placements=own
        )

    if isinstance(operation, Remove):
        return _Before(removed=Removed.of(control, operation.names))
    return None


def _in_portions(control: Site, caller: Caller, again: bool) -> Future[str]:
    """Take a step back, or do one again, with steps of the world in between."""
    log = control.part(control.undoing, NO_UNDO)
    log.check(caller, again)
    return control.part(control.grounds, NO_UNDO).work(
        log.take_back(control, caller, again)
    )


@dataclass(frozen=True, kw_only=True)
class Undo(Operation[Future[str]]):
    """Take back what this client did last with bodies or the map: placing, adding,
    removing, sending home, loading, going on from a moment.

    Changes of others stay: a body that somebody else has placed since is left where it
    is. The result says what was undone.
    """

    audit = logging.INFO
    tells = "as for what is undone"

    def perform(self, control: Site, caller: Caller) -> Future[str]:
        """Carry it out. NotNowError: there is nothing; WorldError: nothing of it can be
        taken back.
        """
        return _in_portions(control, caller, again=False)

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return str(result)


@dataclass(frozen=True, kw_only=True)
class Redo(Operation[Future[str]]):
    """Do again what this client has undone last, if it has changed nothing since."""

    audit = logging.INFO
    tells = Undo.tells

    def perform(self, control: Site, caller: Caller) -> Future[str]:
        """Carry it out. Raises what `Undo` raises."""
        return _in_portions(control, caller, again=True)

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        return str(result)


__all__ = [
    "MAX_BODIES",
    "MAX_MAP_BYTES",
    "MAX_STEPS",
    "Redo",
    "Step",
    "Undo",
    "Undoing",
]
