"""Undo and redo of the changes that a client makes to bodies, trips and the map.

Changes of other clients stay. `Undoing.watch` stores for each operation the information
to undo it: the former pose of a placed body, the properties of a removed body to create
a similar one, the former map. Undoing a step yields the step that redoes it, so a redo is
the undo of an undo.

A body that another client has placed since stays where it is, and the result reports
this. A body that has only driven is put back. A restored robot has its name, start,
pose, odometry, program and, if it is free, its port. Its clients have to reconnect, and
its battery and limits are new.

When the world continues from an earlier moment (`botyard.control.history`), all earlier
steps are forgotten. Undo of the continuation restores the whole world as it was before,
including the changes of other clients until then.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Hashable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from botyard.control.adding import AddedRobots, AddRobot, AddRobots, CloneRobots
from botyard.control.bodies import Place, Remove, Reset
from botyard.control.caller import Caller
from botyard.control.driving import SetCharge
from botyard.control.floor import RemoveZone, SetZone
from botyard.control.history import Branch
from botyard.control.mapediting import EditMap
from botyard.control.operation import Operation
from botyard.control.renaming import RenameRobots
from botyard.control.site import Site
from botyard.control.traffic import (
    GrantSector,
    HoldTraffic,
    RevokeSector,
    RunTraffic,
    StepTraffic,
)
from botyard.control.trips import DockRobots, GoTo, SendRobots
from botyard.control.undo_bodies import Added, Placed, Removed
from botyard.control.undo_map import MapEdited
from botyard.control.undo_part import Key, Part, Placements, described
from botyard.control.undo_robots import Charged, Renamed, Sent
from botyard.control.undo_traffic import TrafficChanged
from botyard.control.undo_world import MapReplaced, WentBack
from botyard.control.world import ClearMap, LoadMap, ReloadMap, SendMap
from botyard.errors import NotNowError, WorldError
from botyard.model.scene import Scene
from botyard.sim.simulation import Robot

MAX_STEPS: Final = 100
"""Maximum number of steps that a client can undo; the oldest are forgotten."""
MAX_BODIES: Final = 20_000
"""Maximum number of bodies in all steps of a client, each of some hundred bytes."""
MAX_MAP_BYTES: Final = 64 * 2**20
"""Maximum size of the maps in all steps of a client, bytes."""
# The limit bounds the memory for clients whose disconnection is never noticed.
MAX_CLIENTS: Final = 100
"""Maximum number of clients with steps; the least recently active one is forgotten."""

NO_UNDO: Final = "undo is not available"
MAP_OPERATIONS: Final = (LoadMap, SendMap, ReloadMap, ClearMap)
ADDING: Final = (AddRobot, AddRobots, CloneRobots)
ON_TRAFFIC: Final = (HoldTraffic, StepTraffic, GrantSector, RevokeSector)


@dataclass(slots=True)
class Step:
    """Changes that one undo reverts.

    Attributes
    ----------
    what : str
        Description for messages, such as ``removing ann``.
    group : int
        Operations of one client with the same number other than 0 are one step.
    parts : list of Part
        Parts in the order of the changes.
    """

    what: str
    group: int
    parts: list[Part]


class Book:
    """Undo and redo steps of one client.

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
        """Add a step; undone steps can no longer be redone.

        A step of the same group as the last one extends it, so that dragging a body is
        one step.

        Parameters
        ----------
        step : Step
            The step.
        """
        # Undone steps may no longer fit the world after a new change.
        self.redo.clear()
        last = self.undo[-1] if self.undo else None
        if last is not None and step.group and last.group == step.group:
            for part in step.parts:
                # `any` stops at the first part that absorbs it, so no change is counted
                # twice.
                if not any(one.absorb(part) for one in last.parts):
                    last.parts.append(part)

            last.what = described(last.parts)
        else:
            self.undo.append(step)

        self._shrink()

    def _shrink(self) -> None:
        """Forget the oldest steps that exceed a limit."""
        bodies, size = 0, 0
        # Loop from the newest to the oldest step, so that the oldest steps are
        # forgotten.
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

        # Counts of bodies that no step mentions have no effect on any undo.
        self.placements.keep(
            body
            for step in (*self.undo, *self.redo)
            for part in step.parts
            for body in part.touched()
        )


class Undoing:
    """Undo and redo steps of all clients (`botyard.control.parts.UndoLog`)."""

    def __init__(self) -> None:
        self._books: dict[Hashable, Book] = {}

    @contextmanager
    def watch(
        self, control: Site, caller: Caller, operation: Operation[Any]
    ) -> Iterator[None]:
        """Record how to undo an operation that runs in this context.

        Changes of an operation that fails half-way are also recorded.

        Parameters
        ----------
        control : Site
            Context of the operation.
        caller : Caller
            Client whose step it is; without an `undo_group` nothing is recorded.
        operation : Operation
            Operation that the block performs.
        """
        # Undo and redo manage their steps themselves.
        if caller.undo_group is None or isinstance(operation, (Undo, Redo)):
            yield
            return

        if isinstance(operation, Branch):
            # The whole world is saved, because a branch changes all bodies, whoever
            # moved them.
            whole = WentBack.of(control.sim)
            yield
            # The operation clears all steps, so this step is added afterwards.
            if whole is not None:
                whole.time = control.sim.time
                self._note(caller, [whole])

            return

        # Poses and properties have to be read before the operation changes them.
        before = _before(control, caller, operation, self._book(caller).placements)
        try:
            yield
        finally:
            # Record in `finally`, so that the changes of a failed operation can be
            # undone.
            if before is not None:
                self._note(caller, before.done(control))

    def done(
        self, control: Site, caller: Caller, operation: Operation[Any], result: object
    ) -> None:
        """Record how to undo an operation that has finished, from its result.

        Parameters
        ----------
        control : Site
            Context of the operation.
        caller : Caller
            Client that requested the operation; it may have disconnected since.
        operation : Operation
            The operation.
        result : object
            Its result; for a slow operation, the result of its future.
        """
        # The client may have disconnected before a slow operation finished.
        if caller.undo_group is None or caller.key not in self._books:
            return
        part: Part | None = None
        parts: list[Part] = []
        if isinstance(result, AddedRobots) and isinstance(operation, ADDING):
            part = Added.of(control, result.robots)
        elif isinstance(operation, RenameRobots):
            part = Renamed.of(control, operation.names)
        elif isinstance(operation, ON_TRAFFIC):
            part = TrafficChanged.of(control, operation, result)
        elif (
            isinstance(operation, MAP_OPERATIONS)
            # False: the map was already the current one.
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
        """Return the undo and redo steps of a client, which becomes the most recently active
        one.
        """
        # Re-inserting moves the client to the end of the dictionary.
        book = self._books.pop(caller.key, None)
        self._books[caller.key] = book = Book() if book is None else book
        while len(self._books) > MAX_CLIENTS:
            # The dictionary is sorted by activity, so its first client was active the
            # longest time ago.
            del self._books[next(iter(self._books))]
        return book

    def check(self, caller: Caller, again: bool) -> None:
        """Raise an error if there is no step to undo or redo.

        Raises
        ------
        NotNowError
            There is no such step, or the previous undo is in progress.
        """
        book = self._books.get(caller.key)
        if book is not None and book.is_busy:
            raise NotNowError("the previous undo is still in progress")
        if book is None or not (book.redo if again else book.undo):
            raise NotNowError("nothing to redo" if again else "nothing to undo")

    def take_back(
        self, control: Site, caller: Caller, again: bool
    ) -> Generator[Any, None, str]:
        """Undo the last step of a client, or redo the step that was undone last.

        Return a message.

        Parameters
        ----------
        control : Site
            Context of operations.
        caller : Caller
            Client whose step it is.
        again : bool
            Whether to redo.

        Raises
        ------
        NotNowError
            There is no such step, or the previous undo is in progress.
        WorldError
            No part of the step could be undone; the step is forgotten.
        """
        self.check(caller, again)
        book = self._book(caller)
        steps, others = (book.redo, book.undo) if again else (book.undo, book.redo)
        # Remove the step before the work: a step that fails would otherwise block all
        # earlier steps.
        step = steps.pop()
        inverse: list[Part] = []
        notes: list[str] = []

        # Portions may take seconds, in which the client could request another undo.
        book.is_busy = True
        try:
            # Undo the parts in reverse order, because later changes may depend on
            # earlier changes.
            for part in reversed(step.parts):
                inverse += yield from part.take_back(
                    control, caller, self, book.placements, notes
                )
        finally:
            book.is_busy = False

            # Keep the inverse also after an error: the parts that were reverted can be
            # redone.
            inverse = [part for part in inverse if part.bodies or part.size]
            if inverse:
                # Group 0, so that later changes are never merged into a redone step.
                others.append(Step(step.what, 0, inverse))

        if not inverse:
            raise WorldError(
                f"{step.what} cannot be {'redone' if again else 'undone'}: "
                f"{'; '.join(notes) or 'none of its bodies is left'}"
            )

        return "; ".join([f"{'redone' if again else 'undone'}: {step.what}", *notes])

    def succeed(
        self, name: str, old: object, new: object, before: int, by: Placements
    ) -> None:
        """Transfer undo steps to a body that a client has restored as a new object.

        Steps for the old object then apply to the new one. For each other client, the restoring
        placement counts as a placement by another client.

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
        now = 0 if not isinstance(new, Robot) else new.simulation.core.placements(name)
        for book in self._books.values():
            own = book.placements
            # The placement that restored the body counts as foreign for all other
            # clients.
            own.succeed(name, old, new, before, now if own is by else now - 1)
            for step in (*book.undo, *book.redo):
                for part in step.parts:
                    part.succeed(name, old, new)

    def renamed(self, bodies: Mapping[Key, Key]) -> None:
        """Keep the steps for robots that got other names.

        Parameters
        ----------
        bodies : mapping of (str, object) to (str, object)
            New name and identity by old name and identity (`Site.identity`).
        """
        for book in self._books.values():
            book.placements.rename(bodies)
            for step in (*book.undo, *book.redo):
                for part in step.parts:
                    part.rename(bodies)

    def begin_anew(self, by: Placements) -> None:
        """Forget the undo steps of all clients after the world returned to an earlier moment.

        The steps belong to the abandoned run. Only the placements by the client that requested the
        return are kept.

        Parameters
        ----------
        by : Placements
            Placements of the client that restored that moment.
        """
        self._books = {
            key: book for key, book in self._books.items() if book.placements is by
        }
        for book in self._books.values():
            book.undo.clear()
            book.redo.clear()

    def forget(self, key: Hashable) -> None:
        """Forget the undo steps of a client that has disconnected."""
        self._books.pop(key, None)

    def clear(self) -> None:
        """Forget all undo steps and placements, because they belong to an abandoned run."""
        self._books.clear()


@dataclass(slots=True)
class _Before:
    """Bodies that an operation may place or remove, as they are before the operation."""

    placed: Placed | None = None
    removed: Removed | None = None
    placements: Placements | None = None
    sent: Sent | None = None
    charged: Charged | None = None
    scene: Scene | None = None
    started: RunTraffic | None = None
    version: int = 0

    def done(self, control: Site) -> list[Part]:
        """Return undo parts for the changes that the operation has made.

        Call it after the operation; bodies that it has not changed are left out.
        """
        parts: list[Part] = []
        if self.placed is not None and self.placements is not None:
            parts.append(self.placed.changed(control, self.placements))
        if self.removed is not None:
            parts.append(self.removed.gone(control))
        if self.sent is not None:
            parts.append(self.sent.changed(control))
        if self.charged is not None:
            parts.append(self.charged)
        if self.scene is not None:
            parts.append(MapEdited(self.scene, control.sim.scene))
        traffic = control.traffic
        if self.started is not None and traffic and traffic.version != self.version:
            part = TrafficChanged.of(control, self.started, None)
            parts += [] if part is None else [part]
        return parts


def _before(
    control: Site, caller: Caller, operation: Operation[Any], own: Placements
) -> _Before | None:
    if isinstance(operation, Place):
        return _Before(
            placed=Placed.of(control, [name for name, _ in operation.to], own),
            placements=own,
        )

    # A reset without starts only removes robots.
    if isinstance(operation, Reset) and operation.starts:
        names = operation.names
        # A reset without names concerns all bodies.
        if names is None:
            names = (*control.sim.robots, *control.sim.core.box_names)
        return _Before(
            placed=Placed.of(control, names, own, odometry=True), placements=own
        )

    if isinstance(operation, Remove):
        return _Before(removed=Removed.of(control, operation.names))
    if isinstance(operation, (EditMap, SetZone, RemoveZone)):
        return _Before(scene=control.sim.scene)
    if isinstance(operation, GoTo):
        return _Before(sent=Sent.of(control, [operation.robot]))
    if isinstance(operation, SetCharge):
        return _Before(charged=Charged.of(control, operation.robots))
    if isinstance(operation, RunTraffic):
        return _Before(
            sent=Sent.of(control, [robot for robot, _ in operation.paths]),
            started=operation,
            version=0 if control.traffic is None else control.traffic.version,
        )
    if isinstance(operation, (SendRobots, DockRobots)):
        return _Before(sent=Sent.of(control, operation.robots))
    return None


def _in_portions(control: Site, caller: Caller, again: bool) -> Future[str]:
    """Start to undo or redo a step in portions, between which the world runs."""
    log = control.part(control.undoing, NO_UNDO)
    # Check here also, so that the client gets the error from the call and not from the
    # future.
    log.check(caller, again)
    return control.part(control.robot_host, NO_UNDO).work(
        log.take_back(control, caller, again)
    )


@dataclass(frozen=True, kw_only=True)
class Undo(Operation[Future[str]]):
    """Undo the last change that this client made to bodies, trips or the map.

    The operation undoes placing, adding, removing, sending home, sending to goals,
    loading, and continuing from a moment. Changes of other clients stay: a body that another client
    has placed since stays where it is. The result states the undone change.
    """

    audit = logging.INFO
    tells = "as for the operation that is undone or redone"

    def perform(self, control: Site, caller: Caller) -> Future[str]:
        """Undo the client's last step.

        Raises
        ------
        NotNowError
            There is nothing to undo.
        WorldError
            No part of the step can be undone.
        """
        return _in_portions(control, caller, again=False)

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return str(result)


@dataclass(frozen=True, kw_only=True)
class Redo(Operation[Future[str]]):
    """Redo the last change that this client undid, if it changed nothing since."""

    audit = logging.INFO
    tells = Undo.tells

    def perform(self, control: Site, caller: Caller) -> Future[str]:
        """Redo the step that the client undid last; errors are the same as for `Undo`."""
        return _in_portions(control, caller, again=True)

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
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
