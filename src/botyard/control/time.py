"""Operations on time: let it stand still or go on, step it, set its speed, hold it for a client."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from botyard.arguments import found
from botyard.control.caller import Caller
from botyard.control.operation import Operation, argument, count, optional, yes_or_no
from botyard.control.site import Site
from botyard.errors import ArgumentError, NotNowError

MAX_STEPS: Final = 1_000_000
"""Steps that one request lets pass."""
MAX_STEPS_AT_ONCE: Final = 1000
"""Steps that are made at once for one request, which is answered when they are done."""
SLOWEST, FASTEST = 0.01, 1000.0
"""Speeds of time, simulated per wall time."""
NO_CLOCK: Final = "time cannot be governed"


def speed(value: Any, what: str, /) -> float:
    """A speed of time: 0, or `SLOWEST` to `FASTEST`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and (value == 0 or SLOWEST <= value <= FASTEST):
        return float(value)
    raise ArgumentError(f"{what}: expected 0 (as fast as possible) or {SLOWEST:g} … {FASTEST:g}, found {found(value)}")


@dataclass(frozen=True, kw_only=True)
class Pause(Operation[None]):
    """Let time stand still; what is placed meanwhile takes effect."""

    settles = False
    tells = "readers of /clock and of states see that it stands still"

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.part(control.clock, NO_CLOCK).pause()


@dataclass(frozen=True, kw_only=True)
class Resume(Operation[None]):
    """Let time go on."""

    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.part(control.clock, NO_CLOCK).resume()


@dataclass(frozen=True, kw_only=True)
class Step(Operation[None]):
    """Let so many steps pass, as fast as time goes, and then time stand still. Answered at once."""

    steps: int = argument(count(1, MAX_STEPS), 1)
    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.part(control.clock, NO_CLOCK).step_and_pause(self.steps)


@dataclass(frozen=True, kw_only=True)
class StepNow(Operation[Future[None]]):
    """Make so many steps at once while time stands still. Answered when they are done."""

    steps: int = argument(count(1, MAX_STEPS_AT_ONCE), 1)
    settles = False

    def perform(self, control: Site, caller: Caller) -> Future[None]:
        """Do it. NotNowError while time goes on, or in the future, when somebody lets it go on meanwhile."""
        clock = control.part(control.clock, NO_CLOCK)
        if not clock.is_paused:
            raise NotNowError("steps are for when time stands still")
        return clock.step_now(self.steps)


@dataclass(frozen=True, kw_only=True)
class SetSpeed(Operation[None]):
    """Simulated per wall time from now on; 0 is as fast as possible."""

    speed: float = argument(speed)
    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.part(control.clock, NO_CLOCK).set_speed(self.speed)


@dataclass(frozen=True, kw_only=True)
class HoldTime(Operation[None]):
    """Lockstep: hold time for this client, and make so many steps; None: let it run free. It also runs free when the client leaves."""

    steps: int | None = argument(optional(count(0, 65535)))
    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        stepper = control.part(control.stepper, "the world cannot be stepped")
        if self.steps is None:
            stepper.leave(caller.key)
        else:
            stepper.step(caller.key, self.steps)


@dataclass(frozen=True, kw_only=True)
class Throttle(Operation[None]):
    """Lockstep as AMBF has it: while `on`, time is held, and each change of `clock` is a request for `skips` steps."""

    on: bool = argument(yes_or_no)
    clock: bool = argument(yes_or_no)
    skips: int = argument(count(0, 2**32 - 1))
    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        stepper = control.part(control.stepper, "the world cannot be stepped")
        stepper.command(caller.key, self.on, self.clock, self.skips)


__all__ = ["MAX_STEPS", "MAX_STEPS_AT_ONCE", "HoldTime", "Pause", "Resume", "SetSpeed", "Step", "StepNow", "Throttle"]
