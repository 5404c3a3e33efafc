"""`Site`: context of operations, with the world and the parts of the simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from botyard.api import arguments
from botyard.control.caller import Caller
from botyard.control.later import resolved
from botyard.control.mediaparts import Filmer, Painter, Recordings
from botyard.control.parts import Clock, LogKeeper, Maps, RobotHost, Stepper, UndoLog
from botyard.control.trafficpart import TrafficPart
from botyard.errors import BotyardError, UnknownNameError, WorldError
from botyard.geometry import Pose
from botyard.model.scene import Scene
from botyard.names import shown
from botyard.sim.simulation import Robot, Simulation

T = TypeVar("T")
P = TypeVar("P")


class BodyInfo(NamedTuple):
    """Information that a client has stored about a body; the simulation ignores it.

    Attributes
    ----------
    category : int
        Category of simulation_interfaces.
    description : str
        Description.
    tags : tuple of str
        Tags.
    """

    category: int
    description: str
    tags: tuple[str, ...]


class Site:
    """Context of operations: the world, and the parts of the simulator (`Control` is one).

    The parts of the simulator are attributes that the composition sets. An operation
    that needs a missing part is refused.

    Parameters
    ----------
    sim : Simulation
        The world.
    """

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        # Parts of the simulator; None if this composition does not have the part.
        self.clock: Clock | None = None
        self.stepper: Stepper | None = None
        self.robot_host: RobotHost | None = None
        self.maps: Maps | None = None
        self.painter: Painter | None = None
        self.recordings: Recordings | None = None
        self.filmer: Filmer | None = None
        self.traffic: TrafficPart | None = None
        self.files: tuple[Path, ...] = ()
        """Files that clients have written in this run, the newest last.

        The tuple is replaced when a file is added.
        """
        self.mass_kernels: Callable[[], Future[None]] = lambda: resolved(None)
        """Function that compiles the kernels for bodies with mass in the background.

        It is called before the first such body is added.
        """
        self.logs: LogKeeper | None = None
        self.end: Callable[[int, bool], None] | None = None
        """Function that ends the program soon, with an exit status.

        If the second argument is True, it ends as if it had crashed.
        """
        self.undoing: UndoLog | None = None
        """Log of the changes that clients can undo."""
        self.map_master = False
        """Whether a client has reserved the right to load maps."""
        self.wall: Callable[[], float] = time.monotonic
        """Function that returns monotonic wall time, s, for the dead-man switch."""
        self.estimators: list[Callable[[str, Pose], bool]] = []
        """Functions that pass an estimated pose to a robot's programs, one for each interface.

        They return whether the interface has the robot.
        """
        self.driven: dict[str, tuple[Caller, float]] = {}
        """Manually driven robots by name: client that drives, and deadline of the dead-man switch.

        The deadline is a time of `wall`, s (`botyard.control.driving`).
        """
        self.held: dict[str, tuple[Caller, float, float]] = {}
        """Held bodies by name: client that holds, time limit, and deadline of the hold.

        The deadline is a time of `wall`, s (`botyard.control.bodies.Hold`).
        """
        self.spawned: dict[str, str] = {}
        """Robots that clients have added, with the source that added each."""
        self.of_world: set[str] = set()
        """Names of the robots that belong to the world loaded by `LoadWorld`."""
        self.infos: dict[str, tuple[object, BodyInfo]] = {}
        """Client-defined information on bodies by name, with the body's `identity`."""
        self.stopped_at: int | None = None
        """Number of the step at which `Stop` stopped the simulation; None after a pause or
        resume.
        """
        self.unloaded: Scene | None = None
        """Empty scene that replaced the map in `UnloadWorld`; None without `UnloadWorld`."""
        self.loading = 0
        """Number of worlds that `LoadWorld` is loading at the moment."""

    @property
    def is_stopped(self) -> bool:
        """Whether no step was made since `Stop`."""
        return (
            self.clock is not None
            and self.clock.is_paused
            and self.stopped_at == self.sim.tick
        )

    @property
    def is_unloaded(self) -> bool:
        """Whether `UnloadWorld` has removed the map, and no map was loaded since."""
        return self.unloaded is not None and self.sim.scene is self.unloaded

    def identity(self, body: str) -> object:
        """Return an object that distinguishes a body from a later one of the same name.

        Parameters
        ----------
        body : str
            Name of a body.

        Returns
        -------
        object
            The robot; for boxes the source and name of the map that they belong to.
            Objects are compared by equality.
        """
        robot = self.sim.robots.get(body)
        return (self.sim.scene.source, self.sim.scene.name) if robot is None else robot

    def info(self, body: str) -> BodyInfo | None:
        """Return the client-defined information on a body; None if there is none."""
        meant, said = self.infos.get(body, (None, None))
        # A new body under the same name does not inherit the information.
        return said if said is not None and meant == self.identity(body) else None

    def is_movable(self, body: str) -> bool:
        """Return whether a body can have a velocity: it has a drive or a mass.

        Parameters
        ----------
        body : str
            Name of a robot or a box.
        """
        robot = self.sim.robots.get(body)
        return (
            robot is not None and bool(robot.spec.drive)
        ) or self.sim.masses.dynamics(body) is not None

    def settle(self) -> None:
        """Apply queued placements immediately if the simulation is paused."""
        if self.clock is not None:
            self.clock.settle()

    def audit(self, caller: Caller, operation: Any, result: Any) -> None:
        """Write the line for an operation in the audit log, and notify the listeners."""
        raise NotImplementedError

    def part(self, part: P | None, what: str) -> P:
        """Return a part of the simulator that an operation needs.

        Parameters
        ----------
        part : object or None
            Attribute of this object.
        what : str
            Text of the error, to which `` here`` is added.

        Raises
        ------
        WorldError
            This simulator has no such part.
        """
        if part is None:
            raise WorldError(f"{what} here")
        return part

    def robot(self, name: str) -> Robot:
        """Return a robot that can drive.

        Parameters
        ----------
        name : str
            Name of the robot.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        WorldError
            The robot is an obstacle.
        """
        robot = self.sim.robots.get(name)
        if robot is None:
            raise arguments.unknown(name, self.sim.robots, "robot")
        if not robot.spec.drive:
            raise WorldError(f"{shown(name)} is an obstacle and cannot drive")
        return robot

    def unknown(self, name: str) -> UnknownNameError:
        """Return the error for an unknown name.

        Parameters
        ----------
        name : str
            Name that a caller has used.

        Returns
        -------
        UnknownNameError
            Error that suggests similar names; the caller raises it.
        """
        return arguments.unknown(name, [*self.sim.robots, *self.sim.core.box_names])

    def release_stepper(self, key: Hashable) -> None:
        """Release the simulated time that a disconnected client held in lockstep."""
        if self.stepper is not None:
            self.stepper.release_hold(key)


def for_each(
    items: Mapping[str, T], act: Callable[[str, T], object], what: str = "bodies"
) -> None:
    """Call `act` for each item; failures are raised after the last item.

    Parameters
    ----------
    items : mapping of str to object
        Items by name.
    act : callable
        Receives the name and the item. Errors of botyard count as failures; other
        exceptions end the call.
    what : str
        Plural noun for the error.

    Raises
    ------
    WorldError
        `act` failed for some items; with a single item, the item's own error is raised.
    """
    failed: list[Exception] = []
    for name, item in items.items():
        try:
            act(name, item)
        except BotyardError as error:
            failed.append(error)

    if failed:
        if len(items) == 1:
            # The error of a single item needs no summary.
            raise failed[0]
        raise WorldError(f"{len(failed)} of {len(items)} {what} failed: {failed[0]}")


__all__ = ["Site", "for_each"]
