"""What an operation works on: the world, and the parts of the simulator around it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from botyard import arguments
from botyard.control.caller import Caller
from botyard.control.later import now
from botyard.control.parts import Clock, Grounds, LogKeeper, Maps, Painter, Stepper
from botyard.errors import BotyardError, UnknownNameError, WorldError
from botyard.names import shown
from botyard.sim.simulation import Robot, Simulation

T = TypeVar("T")
P = TypeVar("P")


class Site:
    """The world and what is around it, as operations know it; `botyard.control.control.Control` is one.

    The parts of the simulator are attributes, set by whoever puts it together; without one, operations that need it are refused.

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

    def settle(self) -> None:
        """While time stands still, let what was placed take effect."""
        if self.clock is not None:
            self.clock.settle()

    def tell(self, caller: Caller, operation: Any, result: Any) -> None:
        """Tell everybody of an operation that was done in part, before its error is raised."""
        raise NotImplementedError

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


__all__ = ["Site", "for_each"]
