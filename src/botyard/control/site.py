"""`Site`: the context in which operations run: the world, and the parts of the simulator around it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from botyard import arguments
from botyard.control.caller import Caller
from botyard.control.later import resolved
from botyard.control.parts import Clock, Grounds, LogKeeper, Maps, Painter, Stepper
from botyard.errors import BotyardError, UnknownNameError, WorldError
from botyard.names import shown
from botyard.sim.simulation import Robot, Simulation

T = TypeVar("T")
P = TypeVar("P")


class Site:
    """Context of operations; `botyard.control.control.Control` is one.

    The parts of the simulator are attributes that the composition sets; an operation that needs a missing part is refused.

    Parameters
    ----------
    sim : Simulation
        The world.
    """

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.clock: Clock | None = None
        self.stepper: Stepper | None = None
        self.grounds: Grounds | None = None
        self.maps: Maps | None = None
        self.painter: Painter | None = None
        self.mass_kernels: Callable[[], Future[None]] = lambda: resolved(None)
        """Compiles the kernels for bodies with mass in the background, before the first such body is added."""
        self.logs: LogKeeper | None = None
        self.end: Callable[[int, bool], None] | None = None
        """Ends the program soon, with an exit status; with True as if it had crashed."""
        self.map_master = False
        """Whether a client has reserved the right to load maps."""
        self.wall: Callable[[], float] = time.monotonic
        """Monotonic wall clock, s, of the dead-man switch."""
        self.driven: dict[str, tuple[Caller, float]] = {}
        """Manually driven robots: the driver, and when the dead-man switch times out, s (`botyard.control.driving`)."""
        self.held: dict[tuple[str, str], set[Hashable]] = {}
        """Clients (`Caller.key`) that hold a body, by body and source."""
        self.spawned: dict[str, str] = {}
        """Robots that clients have added, with the source that added each."""

    def settle(self) -> None:
        """While the simulation is paused, let queued placements take effect."""
        if self.clock is not None:
            self.clock.settle()

    def tell(self, caller: Caller, operation: Any, result: Any) -> None:
        """Notify the listeners of an operation that was done in part, before its error is raised."""
        raise NotImplementedError

    def part(self, part: P | None, what: str) -> P:
        """Return a part of the simulator that an operation needs.

        Raises
        ------
        WorldError
            This simulator has no such part.
        """
        if part is None:
            raise WorldError(f"{what} here")
        return part

    def robot(self, name: str) -> Robot:
        """Look up a robot that can drive.

        Raises
        ------
        UnknownNameError
            No robot has this name.
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
        """Return the error for an unknown name."""
        return arguments.unknown(name, [*self.sim.robots, *self.sim.box_names])

    def release_stepper(self, key: Hashable) -> None:
        """End the lockstep of a client that has disconnected."""
        if self.stepper is not None:
            self.stepper.leave(key)


def for_each(items: Mapping[str, T], act: Callable[[str, T], object], what: str = "bodies") -> None:
    """Call `act` for each item. A failure does not stop the others; it is raised at the end.

    Raises
    ------
    WorldError
        It failed for some items; with a single item, the item's own error is raised.
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


__all__ = ["Site", "for_each"]
