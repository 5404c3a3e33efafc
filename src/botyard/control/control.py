"""`Control`: the single entry point for changes of a running simulator.

It checks permissions for all callers and protocols.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from botyard.api.listeners import Listeners
from botyard.control.caller import Caller, Level
from botyard.control.files import MAX_FILES
from botyard.control.operation import Operation
from botyard.control.site import Site
from botyard.control.undo import Undoing
from botyard.errors import DeniedError
from botyard.sim.journal import acting
from botyard.sim.simulation import Simulation

T = TypeVar("T")

log = logging.getLogger("botyard.control")

READ_ONLY: Final = "the world is read-only"
RECORDED: Final = "a recording is shown and cannot be changed"
EXIT_DENIED: Final = "not allowed from another machine (--allow-client-exit)"


@dataclass(frozen=True, slots=True)
class Done:
    """Record of an operation that was performed.

    Attributes
    ----------
    caller : Caller
        Caller of the operation.
    operation : Operation
        The operation with its arguments.
    result : object
        Its result; for a slow operation, the result of its future.
    """

    caller: Caller
    operation: Operation[Any]
    result: Any


Listener = Callable[[Done], None]


class Control(Site):
    """Performer of operations: it checks and carries out the operations that callers request.

    For each operation it checks the permission, performs the operation, applies queued changes if
    the simulation is paused, writes a line in the audit log, and notifies the listeners. The parts
    of the simulator (clock, maps, robot_host and so on) are attributes that the composition sets.
    An operation that needs a missing part is refused.

    Parameters
    ----------
    sim : Simulation
        The world.
    read_only : bool
        Only the user may change the world (``--read-only``).
    allow_exit : bool
        Clients of other machines may end the program (``--allow-client-exit``).
    """

    def __init__(
        self, sim: Simulation, *, read_only: bool = False, allow_exit: bool = False
    ) -> None:
        super().__init__(sim)
        self.read_only = read_only
        self.allow_exit = allow_exit
        self.shows_recording = False
        """Whether the world is a recording, which not even the user may change."""
        self.undoing = self._undoing = Undoing()
        self._listeners = Listeners[Done](log, "operations")

    # -- permissions

    def denial(self, caller: Caller, operation: type[Operation[Any]] | Level) -> str:
        """Return the reason why a caller may not perform an operation; empty if it may.

        If a level is given instead of an operation, the result is valid for all operations of that
        level.

        Parameters
        ----------
        caller : Caller
            The caller.
        operation : type or Level
            Class of the operation, or a level for all of its operations.

        Returns
        -------
        str
            Reason for the caller: a recording is shown, ``--read-only`` is set, or its
            level is too low. Empty if the caller may perform it.
        """
        level = operation if isinstance(operation, Level) else operation.level
        if (
            self.shows_recording
            # A level alone does not show whether the operation is allowed in
            # recordings.
            and not isinstance(operation, Level)
            and not operation.in_recordings
        ):
            return RECORDED

        # Driving is allowed in a read-only world.
        if self.read_only and not caller.is_user and level > Level.DRIVE:
            return (
                READ_ONLY if caller.level > Level.WATCH else f"{caller} may only watch"
            )

        # --allow-client-exit raises the rights of callers that may change the world,
        # not of viewers.
        if caller.level >= level or (
            level is Level.OWN and self.allow_exit and caller.level >= Level.CHANGE
        ):
            return ""

        return (
            EXIT_DENIED
            if level is Level.OWN and caller.level >= Level.DRIVE
            else f"{caller} may only watch"
        )

    def allows(self, caller: Caller, operation: type[Operation[Any]] | Level) -> bool:
        """Return whether a caller may perform an operation, or all operations of a level.

        Parameters
        ----------
        caller : Caller
            The caller.
        operation : type or Level
            Class of the operation, or a level for all of its operations.
        """
        return not self.denial(caller, operation)

    def check(self, caller: Caller, operation: type[Operation[Any]] | Level) -> None:
        """Raise an error if a caller may not perform an operation.

        Parameters
        ----------
        caller : Caller
            The caller.
        operation : type or Level
            Class of the operation, or a level for all of its operations.

        Raises
        ------
        DeniedError
            The caller has no permission.
        """
        denied = self.denial(caller, operation)
        if denied:
            raise DeniedError(denied)

    # -- operations

    def do(self, caller: Caller, operation: Operation[T]) -> T:
        """Perform an operation for a caller.

        Parameters
        ----------
        caller : Caller
            Caller; its level must include the operation's.
        operation : Operation
            The operation with its arguments, which are valid.

        Returns
        -------
        object
            Result of the operation; slow operations return a future, which is done
            between two steps.

        Raises
        ------
        DeniedError
            The caller has no permission.
        BotyardError
            The operation failed; it changed nothing except for changes that the error
            names.
        """
        # The only check of permissions for changes of the world.
        self.check(caller, type(operation))
        # The journal names the caller for all commands that the operation issues.
        with acting(caller.source), self._undoing.watch(self, caller, operation):
            result = operation.perform(self, caller)
        # Apply queued changes after the undo context, which needs the state before the
        # change takes effect.
        if operation.settles and caller.settles:
            self.settle()

        # The audit line of a slow operation follows when its result is known.
        if isinstance(result, Future):
            result.add_done_callback(
                lambda future: self._done_later(caller, operation, future)
            )
        else:
            self.audit(caller, operation, result)

        return result

    def _done_later(
        self, caller: Caller, operation: Operation[Any], future: Future[Any]
    ) -> None:
        # A failed operation changed nothing, so it has no audit line.
        if not future.cancelled() and future.exception() is None:
            if operation.settles:
                self.settle()
            self.audit(caller, operation, future.result())

    def audit(self, caller: Caller, operation: Operation[Any], result: Any) -> None:
        """Write the line for an operation in the audit log, and notify the listeners.

        Parameters
        ----------
        caller : Caller
            Caller of the operation.
        operation : Operation
            The operation with its arguments.
        result : object
            Its result; for a slow operation, the result of its future.
        """
        self._undoing.done(self, caller, operation, result)
        if operation.writes:
            # A file that is written again moves to the end of the list.
            self.files = (*(path for path in self.files if path != result), result)[
                -MAX_FILES:
            ]

        # A caller's own log already names the caller.
        if caller.log is not None:
            caller.log.log(operation.audit, "%s", operation.summary(result))
        elif log.isEnabledFor(operation.audit):
            log.log(operation.audit, "%s (by %s)", operation.summary(result), caller)

        # Skip creating the object: operations such as `Drive` occur many times a
        # second.
        if self._listeners:
            self._listeners.notify(Done(caller, operation, result))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Register a listener for performed operations.

        Parameters
        ----------
        listener : callable
            Receives a `Done` after each operation, in the thread that performed it.

        Returns
        -------
        callable
            Unregisters the listener.
        """
        return self._listeners.add(listener)


__all__ = ["Control", "Done", "Listener"]
