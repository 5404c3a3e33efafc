"""Operations on simulated time: pause, resume, step, set the speed, lockstep."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from botyard.api.arguments import found, function
from botyard.control.caller import Caller
from botyard.control.operation import Operation, argument, boolean, count, optional
from botyard.control.site import Site
from botyard.errors import ArgumentError, NotNowError

MAX_STEPS: Final = 1_000_000
"""Maximum number of steps of one request."""
LOWEST_SPEED, HIGHEST_SPEED = 0.01, 1000.0
"""Range of speeds (simulated per wall time)."""
NO_CLOCK: Final = "time cannot be controlled"


def speed(value: Any, what: str, /) -> float:
    """Return a valid speed of the simulation (simulated per wall time).

    A valid speed is 0 (as fast as possible), or from `LOWEST_SPEED` to `HIGHEST_SPEED`.

    Parameters
    ----------
    value : int or float
        The speed.
    what : str
        Name of the argument, for the error.

    Raises
    ------
    ArgumentError
        The value is not such a speed.
    """
    if (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and (value == 0 or LOWEST_SPEED <= value <= HIGHEST_SPEED)
    ):
        return float(value)

    raise ArgumentError(
        f"{what}: expected 0 (as fast as possible) or {LOWEST_SPEED:g} … "
        f"{HIGHEST_SPEED:g}, found {found(value)}"
    )


@dataclass(frozen=True, kw_only=True)
class Pause(Operation[None]):
    """Pause the simulation; placements still take effect."""

    settles = False
    tells = "readers of /clock and of states see that time is paused"
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Pause the simulation."""
        control.stopped_at = None
        control.part(control.clock, NO_CLOCK).pause()


@dataclass(frozen=True, kw_only=True)
class Resume(Operation[None]):
    """Resume the simulation."""

    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Resume the simulation."""
        control.stopped_at = None
        control.part(control.clock, NO_CLOCK).resume()


@dataclass(frozen=True, kw_only=True)
class Step(Operation[None]):
    """Run a number of steps at the current speed, then pause; the answer comes before the steps.

    Parameters
    ----------
    steps : int
        Number of steps, from 1 to `MAX_STEPS`.
    """

    steps: int = argument(count(1, MAX_STEPS), 1)
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Start the steps; the simulation pauses after the last one."""
        control.part(control.clock, NO_CLOCK).step_and_pause(self.steps)


@dataclass(frozen=True, kw_only=True)
class StepNow(Operation[Future[None]]):
    """Make steps without delay while paused; the result is ready after the last step.

    `progress` is called after each step with the number of remaining steps; when it
    returns False, no more are made.

    Parameters
    ----------
    steps : int
        Number of steps, from 1 to `MAX_STEPS`.
    progress : callable, optional
        Receives an int and returns a bool, in the thread of the run loop.
    """

    steps: int = argument(count(1, MAX_STEPS), 1)
    progress: Callable[[int], bool] | None = argument(optional(function), None)
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> Future[None]:
        """Start the steps.

        Raises
        ------
        NotNowError
            The simulation is not paused. The future fails with it if the simulation is
            resumed or stopped meanwhile.
        """
        clock = control.part(control.clock, NO_CLOCK)
        # Steps at once would collide with the paced steps of a running simulation.
        if not clock.is_paused:
            raise NotNowError("expected a paused simulation, found it running")
        return clock.step_now(self.steps, self.progress)


@dataclass(frozen=True, kw_only=True)
class SetSpeed(Operation[None]):
    """Set the speed (simulated per wall time); 0: as fast as possible.

    Parameters
    ----------
    speed : float
        0, or from `LOWEST_SPEED` to `HIGHEST_SPEED`.
    """

    speed: float = argument(speed)
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Set the speed of the simulation."""
        control.part(control.clock, NO_CLOCK).set_speed(self.speed)


@dataclass(frozen=True, kw_only=True)
class HoldTime(Operation[None]):
    """Lockstep: hold time for this client, and make a number of steps.

    None releases time, and so does a disconnect of the client.

    Parameters
    ----------
    steps : int or None
        Number of steps, at most 65535; 0 only holds time.
    """

    steps: int | None = argument(optional(count(0, 65535)))
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Hold or release simulated time, and request the steps.

        Raises
        ------
        WorldError
            This simulator has no lockstep.
        """
        stepper = control.part(control.stepper, "the world cannot be stepped")
        if self.steps is None:
            stepper.release_hold(caller.key)
        else:
            stepper.step(caller.key, self.steps)


@dataclass(frozen=True, kw_only=True)
class Throttle(Operation[None]):
    """Lockstep as in AMBF: while `on`, time is held.

    Each change of `clock` requests `skips` steps.

    Parameters
    ----------
    on : bool
        Whether time is held for this client.
    clock : bool
        Value that AMBF's client toggles.
    skips : int
        Number of steps for each change, a uint32.
    """

    on: bool = argument(boolean)
    clock: bool = argument(boolean)
    # AMBF's n_skip_steps is a uint32.
    skips: int = argument(count(0, 2**32 - 1))
    settles = False
    in_recordings = True

    def perform(self, control: Site, caller: Caller) -> None:
        """Hold or release simulated time, and request steps if `clock` has changed.

        Raises
        ------
        WorldError
            This simulator has no lockstep.
        """
        stepper = control.part(control.stepper, "the world cannot be stepped")
        stepper.command(caller.key, self.on, self.clock, self.skips)


__all__ = [
    "MAX_STEPS",
    "HoldTime",
    "Pause",
    "Resume",
    "SetSpeed",
    "Step",
    "StepNow",
    "Throttle",
]
