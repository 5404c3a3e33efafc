"""The one door into a running simulator: who may do what is asked here, once, whoever asks and by whatever protocol."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from botyard import arguments
from botyard.control.later import now
from botyard.control.operation import Caller, Level, Operation
from botyard.control.parts import Clock, Grounds, LogKeeper, Maps, Painter, Stepper
from botyard.errors import BotyardError, DeniedError, UnknownNameError, WorldError
from botyard.listeners import Listeners
from botyard.names import shown
from botyard.sim.journal import acting
from botyard.sim.robot import Robot
from botyard.sim.simulation import Simulation

T = TypeVar("T")
P = TypeVar("P")

log = logging.getLogger("botyard.control")

READ_ONLY: Final = "the world is read-only"
ENDS: Final = "not obeyed from another machine (--allow-client-exit)"


@dataclass(frozen=True, slots=True)
class Done:
    """Something was done to the simulator.

    Attributes
    ----------
    caller : Caller
        By whom.
    operation : Operation
        What.
    result : object
        What it has answered; of slow operations what came of them.
    """

    caller: Caller
    operation: Operation[Any]
    result: Any


Listener = Callable[[Done], None]


class Control:
    """Carries out operations: asks whether the caller may, does it, lets it take effect while time stands still, writes it into the log,
    and tells everybody.

    The parts of the simulator are attributes, set by whoever puts it together; without one, operations that need it are refused.

    Parameters
    ----------
    sim : Simulation
        The world.
    read_only : bool
        Nobody but the user changes the world (``--read-only``).
    allow_exit : bool
        Clients of other machines may end the program (``--allow-client-exit``).
    """

    def __init__(self, sim: Simulation, *, read_only: bool = False, allow_exit: bool = False) -> None:
        self.sim = sim
        self.read_only = read_only
        self.allow_exit = allow_exit
        self.clock: Clock | None = None
        self.stepper: Stepper | None = None
        self.grounds: Grounds | None = None
        self.maps: Maps | None = None
        self.painter: Painter | None = None
        self.mass_kernels: Callable[[], Future[None]] = lambda: now(None)
        """Has the kernels for bodies with mass compiled beside the steps, before the first such body comes."""
        self.logs: LogKeeper | None = None
        self.end: Callable[[int, bool], None] | None = None
        """Ends the program soon, with an exit status, or as if it had died."""
        self.map_master = False
        """A client has reserved the right to load maps."""
        self.wall: Callable[[], float] = time.monotonic
        """Wall time, s: by which hands have let go."""
        self.driven: dict[str, tuple[Caller, float]] = {}
        """Robots that somebody drives by hand, and until when, see `botyard.control.driving`."""
        self.held: dict[tuple[str, str], set[Hashable]] = {}
        """Bodies that somebody holds, with the source: the clients of that source that do (`Caller.key`)."""
        self.spawned: dict[str, str] = {}
        """Robots that clients have added, and which source has."""
        self._listeners = Listeners[Done](log, "operations")

    # -- who may

    def denial(self, caller: Caller, operation: type[Operation[Any]] | Level) -> str:
        """Why a caller may not do an operation, or anything of a level; empty: it may."""
        level = operation if isinstance(operation, Level) else operation.level
        if self.read_only and not caller.is_user and level > Level.DRIVE:
            return READ_ONLY if caller.level > Level.WATCH else f"{caller} may only look on"
        if caller.level >= level or (level is Level.OWN and self.allow_exit and caller.level >= Level.CHANGE):
            return ""
        return ENDS if level is Level.OWN and caller.level >= Level.DRIVE else f"{caller} may only look on"

    def allows(self, caller: Caller, operation: type[Operation[Any]] | Level) -> bool:
        """Whether a caller may do an operation, or anything of a level."""
        return not self.denial(caller, operation)

    def check(self, caller: Caller, operation: type[Operation[Any]] | Level) -> None:
        """Look whether a caller may do an operation.

        Raises
        ------
        DeniedError
            It may not.
        """
        denied = self.denial(caller, operation)
        if denied:
            raise DeniedError(denied)

    # -- what is done

    def do(self, caller: Caller, operation: Operation[T]) -> T:
        """Do something for somebody.

        Returns
        -------
        object
            What the operation answers; slow ones answer with a future, which is done between two steps.

        Raises
        ------
        DeniedError
            The caller may not.
        BotyardError
            It cannot be done, and nothing was changed but what the operation's error says.
        """
        self.check(caller, type(operation))
        with acting(caller.source):
            result = operation.perform(self, caller)
        if operation.settles and caller.settles:
            self.settle()
        if isinstance(result, Future):
            result.add_done_callback(lambda future: self._done_later(caller, operation, future))
        else:
            self.tell(caller, operation, result)
        return result

    def settle(self) -> None:
        """While time stands still, let what was placed take effect."""
        if self.clock is not None:
            self.clock.settle()

    def _done_later(self, caller: Caller, operation: Operation[Any], future: Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            if operation.settles:
                self.settle()
            self.tell(caller, operation, future.result())

    def tell(self, caller: Caller, operation: Operation[Any], result: Any) -> None:
        """Write into the log what was done, and tell everybody."""
        if caller.log is not None:
            caller.log.log(operation.audit, "%s", operation.summary(result))
        elif log.isEnabledFor(operation.audit):
            log.log(operation.audit, "%s (by %s)", operation.summary(result), caller)
        if self._listeners:
            self._listeners.tell(Done(caller, operation, result))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of everything that was done, from now on; what is returned unregisters it."""
        return self._listeners.add(listener)

    # -- for operations

    def part(self, part: P | None, what: str) -> P:
        """A part of the simulator that an operation needs.

        Raises
        ------
        WorldError
            This simulator has none.
        """
        if part is None:
            raise WorldError(f"{what} here")
        return part

    def robot(self, name: str) -> Robot:
        """A robot that can drive.

        Raises
        ------
        UnknownNameError
            There is none of that name.
        WorldError
            It is an obstacle.
        """
        robot = self.sim.robots.get(name)
        if robot is None:
            raise arguments.unknown(name, self.sim.robots, "robot")
        if not robot.spec.drive:
            raise WorldError(f"{shown(name)} is an obstacle and cannot drive")
        return robot

    def unknown(self, name: str) -> UnknownNameError:
        """The error for a name that nothing has."""
        return arguments.unknown(name, [*self.sim.robots, *self.sim.box_names])

    def gone(self, key: Hashable) -> None:
        """A client has gone: it holds neither time nor robots any longer."""
        if self.stepper is not None:
            self.stepper.leave(key)


def for_each(items: Mapping[str, T], act: Callable[[str, T], object], what: str = "bodies") -> None:
    """Do something with each of several. One that it cannot be done with keeps nothing from the others; it is told at the end.

    Raises
    ------
    WorldError
        It could not be done with all: of one, its own error.
    """
    failed: list[Exception] = []
    for name, item in items.items():
        try:
            act(name, item)
        except BotyardError as error:
            failed.append(error)
    if failed:
        if len(items) == 1:
            raise failed[0]
        raise WorldError(f"{len(failed)} of {len(items)} {what}: {failed[0]}")


__all__ = ["Control", "Done", "Listener", "for_each"]
