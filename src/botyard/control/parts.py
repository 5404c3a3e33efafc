"""Protocols of the parts of a running simulator that operations use.

The parts are the clock, the host of robots, the maps and so on. A null modem has only
some of them.
"""

from __future__ import annotations

import time as wall
from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Generator,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from botyard.api.revisions import Subject
from botyard.control.caller import Caller
from botyard.control.census import Census
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.world import World
from botyard.sim.simulation import Robot, Simulation

T = TypeVar("T")


class Clock(Protocol):
    """Interface for the control of simulated time: pause, resume, step."""

    @property
    def is_paused(self) -> bool:
        """Whether the simulation is paused."""
        ...

    def pause(self) -> None:
        """Pause the simulation."""
        ...

    def resume(self) -> None:
        """Resume the simulation."""
        ...

    def step_and_pause(self, count: int = 1) -> None:
        """Run `count` steps at the current speed, then pause."""
        ...

    def step_now(
        self, count: int, progress: Callable[[int], bool] | None = None
    ) -> Future[None]:
        """Make steps immediately, while the simulation is paused.

        Parameters
        ----------
        count : int
            Number of steps.
        progress : callable, optional
            Called after each step with the number of remaining steps; when it returns
            False, no more are made.

        Returns
        -------
        Future
            Done when the steps are made. It fails with `NotNowError` if the simulation
            is resumed meanwhile, or if the steps are cancelled.
        """
        ...

    def cancel_steps(self) -> None:
        """Cancel the requested steps that have not been made yet.

        The futures of these requests fail with `NotNowError`.
        """
        ...

    def set_speed(self, factor: float) -> None:
        """Set the speed (simulated per wall time); 0: as fast as possible."""
        ...

    def settle(self) -> None:
        """While paused, apply queued placements and sensor settings now."""
        ...

    def stop(self, status: int = 0, crash: bool = False) -> None:
        """End the run soon, without waiting for the end."""
        ...


class Listener(Protocol):
    """Listener that is notified of each step."""

    def on_snapshot(self, now: float) -> None:
        """Process the world after a step; `now` is the wall time, s."""
        ...


Portions = Generator[Future[Any] | float | None, None, T]
"""Type of cooperative work: a generator that runs in slices between steps.

It yields None to let other work run, a future to wait for, or a pause in seconds.
"""


class Background(Protocol):
    """Runner of background work between the steps (`botyard.servers.jobs.background`).

    Errors of work that is not awaited are logged.
    """

    def start(
        self, work: Coroutine[Any, Any, Any] | Portions[Any], what: str
    ) -> object:
        """Start work whose result the caller does not need; `what` names it in the log."""
        ...

    def future(self, work: Coroutine[Any, Any, T], what: str) -> Future[T]:
        """Start a coroutine, and return a future of its result."""
        ...

    def portions(self, work: Portions[T], what: str) -> Future[T]:
        """Start cooperative work (see `Portions`), and return a future of its result."""
        ...


class RunLoop(Clock, Protocol):
    """Interface of the run loop, which steps the world (`botyard.servers.hub`)."""

    @property
    def sim(self) -> Simulation:
        """The world."""
        ...

    @property
    def speed(self) -> float:
        """Requested speed of the simulation (simulated per wall time); 0: as fast as possible."""
        ...

    @property
    def ratio(self) -> float:
        """Measured speed of the simulation (simulated per wall time)."""
        ...

    @property
    def step_time(self) -> float:
        """Wall time that the computation of a step takes, s."""
        ...

    @property
    def overruns(self) -> int:
        """Number of steps that missed their deadline."""
        ...

    @property
    def background(self) -> Background:
        """Runner of background work."""
        ...

    @property
    def census(self) -> Census:
        """Register of clients and topics."""
        ...

    def follow(self, act: Callable[[], None], *subjects: Subject) -> Callable[[], None]:
        """Call a function when at least one of the subjects has changed.

        The result is a function that ends the calls.

        Several changes since the last call cause one call.
        """
        ...

    def watch(self, changed: Callable[[], None]) -> None:
        """Call a function after each step, and when the state changes while paused."""
        ...

    def unwatch(self, changed: Callable[[], None]) -> None:
        """Unregister a callback of `watch`."""
        ...

    def attach(self, listener: Listener) -> None:
        """Register a listener that is notified of each step."""
        ...

    def detach(self, listener: Listener) -> None:
        """Unregister a listener that is notified of each step."""
        ...


class Host(Protocol):
    """Interface of the program that runs a simulation: background jobs, and the end of the run.

    The server with an event loop has such an object; a null modem is one itself.
    """

    def run_in_background(
        self, job: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run a blocking job in the background.

        Parameters
        ----------
        job : callable
            The job. It may run in another thread, so it must not touch the world.
        done : callable
            Called between two steps with the result and None, or with None and the
            error.
        """
        ...

    def end_soon(self, status: int, crash: bool) -> None:
        """End the simulation soon, with an exit status or as if it had crashed.

        Before the end, the client has time to close its connection.
        """
        ...


class Stepper(Protocol):
    """Interface of lockstep, in which a client holds simulated time and steps the world.

    See `botyard.servers.lockstep`.
    """

    @property
    def step_listeners(self) -> list[Callable[[], None]]:
        """Functions that are called after the steps that clients requested."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether requested steps are being made."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether a client holds simulated time."""
        ...

    def step(self, client: Hashable, count: int) -> None:
        """Hold simulated time for a client, and make `count` steps."""
        ...

    def command(
        self, client: Hashable, throttle: bool, clock: bool, skips: int
    ) -> None:
        """Apply AMBF's World command.

        Parameters
        ----------
        client : hashable
            `Caller.key` of the client.
        throttle : bool
            Whether simulated time is held for the client.
        clock : bool
            Each change of this value requests steps while time is held.
        skips : int
            Number of steps that a change requests.
        """
        ...

    def release_hold(self, client: Hashable) -> None:
        """Release a client's hold on simulated time."""
        ...


class RobotHost(Protocol):
    """Interface of the part that adds robots to the world and opens their network ports.

    See `botyard.servers.pioneer.robot_servers`.
    """

    def equip(self, spec: RobotSpec) -> RobotSpec:
        """Return the model with the equipment of this run, such as a battery."""
        ...

    def add_robots(
        self, spec: RobotSpec, poses: Sequence[Pose], names: Sequence[str]
    ) -> list[Robot]:
        """Add robots of one model; `serve` opens their ports.

        Parameters
        ----------
        spec : RobotSpec
            Model of all of these robots.
        poses : sequence of Pose
            True poses, m, m, rad.
        names : sequence of str
            Unique name of each robot.

        Raises
        ------
        BotyardError
            A name is taken or a pose is out of range; then no robot is added.
        """
        ...

    @property
    def arrived(self) -> Sequence[Robot]:
        """Robots that the current map has added."""
        ...

    @property
    def traffic_version(self) -> int:
        """Version of the run of traffic that the current map started; 0: it started none."""
        ...

    def port_of(self, robot: str) -> int:
        """Return the TCP port of a robot; 0 if it has none."""
        ...

    def keep_ports(self, names: Mapping[Robot, str]) -> None:
        """Give robots that got other names the ports that they had.

        `names` has new names by former handles.
        """
        ...

    def uses_of(self, robots: Collection[str]) -> Iterable[tuple[str, str]]:
        """Yield robots to which something is connected by their name, and what that is.

        These are clients, and readers of their topics.
        """
        ...

    def serve(
        self, robots: Sequence[Robot], ports: Mapping[str, int] = ...
    ) -> Future[None]:
        """Open the ports of robots, preferably the ports that `ports` lists by name.

        Returns
        -------
        Future
            Done when all ports are open; fails with `PortError` if no port is free.
        """
        ...

    def work(self, portions: Portions[T]) -> Future[T]:
        """Run cooperative work (see `Portions`), and return a future of its result."""
        ...

    def remove(self, names: Sequence[str]) -> None:
        """Remove existing robots from the world, and disconnect their clients."""
        ...

    def switch_interface(self, interface: str, on: bool) -> Future[None]:
        """Start or stop an interface."""
        ...


@dataclass(frozen=True, slots=True)
class Replaced:
    """A map that was replaced, and the bodies that existed with it.

    Attributes
    ----------
    scene : Scene
        The map, with its remaining boxes.
    path, modified : Path or None, int
        Its file, and the file's modification time (see `botyard.formats.reading`).
    poses : mapping of str to Pose
        True poses of all bodies, m, m, rad.
    robots : mapping of str to Robot
        All robots.
    placements : mapping of str to int
        Number of placements of each robot so far.
    """

    scene: Scene
    path: Path | None
    modified: int
    poses: Mapping[str, Pose]
    robots: Mapping[str, Robot]
    placements: Mapping[str, int]


class Maps(Protocol):
    """Interface of the part that loads maps in the background.

    Futures are done when the map is in place.
    """

    @property
    def replaced(self) -> Replaced | None:
        """The map that the current map has replaced; None for the first map."""
        ...

    def put_back(self, replaced: Replaced) -> Future[bool]:
        """Restore a replaced map, without the robots that it had added."""
        ...

    def load(
        self, name: str, asker: Hashable, before: Callable[[World], None] | None = None
    ) -> Future[bool]:
        """Load a map or world by name from the allowed folders.

        The result is True if the map was loaded, False if it is already the current
        map. With `before`, the current map is also loaded again; `before` is called
        with the new world immediately before the map is replaced.
        """
        ...

    def look(self, name: str, asker: Hashable) -> Future[World]:
        """Read a map or world by name from the allowed folders; the current map stays."""
        ...

    def load_bytes(
        self,
        name: str,
        data: bytes,
        asker: Hashable,
        before: Callable[[World], None] | None = None,
    ) -> Future[bool]:
        """Load a map or world from the bytes of its file."""
        ...

    def reload(self) -> Future[bool]:
        """Read the current map's file again."""
        ...

    def clear(self) -> None:
        """Remove the current map."""
        ...

    def names(self) -> list[tuple[str, bool]]:
        """Return the maps that clients may load, and whether each is a shipped one.

        The call scans folders, so do not make it in the run loop.
        """
        ...

    def run_in_thread(self, job: Callable[[], T]) -> Future[T]:
        """Run a blocking job in a low-priority thread.

        Return a future of its result.
        """
        ...


class LogKeeper(Protocol):
    """Interface of the part that rotates the log."""

    def rotate(self) -> None:
        """Start a new log file; old files get a number."""
        ...


class UndoLog(Protocol):
    """Interface of the log of changes that clients can undo (`botyard.control.undo`)."""

    def check(self, caller: Caller, again: bool) -> None:
        """Check that there is a step to undo or redo.

        Raises
        ------
        NotNowError
            There is none.
        """
        ...

    def take_back(self, control: Any, caller: Caller, again: bool) -> Portions[str]:
        """Undo the last step of a client, or redo the last undone one.

        Return a message.
        """
        ...

    def renamed(self, bodies: Mapping[tuple[str, object], tuple[str, object]]) -> None:
        """Keep the steps for robots that got other names.

        Parameters
        ----------
        bodies : mapping of (str, object) to (str, object)
            New name and identity by old name and identity (`Site.identity`).
        """
        ...

    def forget(self, key: Hashable) -> None:
        """Forget the steps of a client that has disconnected."""
        ...

    def clear(self) -> None:
        """Forget all steps: the world has returned to another moment."""
        ...


def charged(work: Portions[T], spend: Callable[[float], None]) -> Portions[T]:
    """Run cooperative work, and report the CPU time that each slice has used.

    `spend` receives the CPU time of each slice, s; time that the work waits is not counted.
    """
    error: BaseException | None = None
    while True:
        began = wall.thread_time()
        try:
            wait = work.send(None) if error is None else work.throw(error)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            spend(wall.thread_time() - began)

        error = None
        try:
            yield wait
        # The future that `work` waits for has failed or was cancelled; `work` must get
        # the exception.
        except BaseException as thrown:
            error = thrown


__all__ = [
    "Background",
    "Clock",
    "Host",
    "Listener",
    "LogKeeper",
    "Maps",
    "Portions",
    "Replaced",
    "RobotHost",
    "RunLoop",
    "Stepper",
    "UndoLog",
    "charged",
]
