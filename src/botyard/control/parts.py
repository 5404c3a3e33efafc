"""Protocols of the parts of a running simulator that operations use.

They are the clock, the host of robots, the maps and so on. A null modem has only some of them.
"""

from __future__ import annotations

import time as wall
from collections.abc import Callable, Coroutine, Generator, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from botyard.api.revisions import Subject
from botyard.control.caller import Caller
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.world import World
from botyard.sim.simulation import Robot, Simulation

T = TypeVar("T")


class Clock(Protocol):
    """Control of simulated time: pause, resume, step."""

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
        """Make `count` steps at once while paused.

        The future fails with `NotNowError` if the simulation is resumed meanwhile, or
        if the steps are cancelled. `progress` is called after each step with the number
        of remaining steps; when it returns False, no more are made.
        """
        ...

    def cancel_steps(self) -> None:
        """Cancel the steps that `step_now` has still to make.

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
        """End the run soon."""
        ...


class Listener(Protocol):
    """Listener that is notified of each step."""

    def on_snapshot(self, now: float) -> None:
        """Handle a step; `now` is the wall time, s."""
        ...


Portions = Generator[Future[Any] | float | None, None, T]
"""Cooperative work in slices, as a generator.

It yields None to let other work run, a future to wait for, or a pause in seconds.
"""


class Background(Protocol):
    """Runner of background work between the steps (`botyard.servers.jobs.background`).

    Errors of work that is not awaited are logged.
    """

    def start(
        self, work: Coroutine[Any, Any, Any] | Portions[Any], what: str
    ) -> object:
        """Start work that is not awaited; `what` names it in the log."""
        ...

    def future(self, work: Coroutine[Any, Any, T], what: str) -> Future[T]:
        """Start a coroutine, and return a future of its result."""
        ...

    def portions(self, work: Portions[T], what: str) -> Future[T]:
        """Start cooperative work, and return a future of its result."""
        ...


class RunLoop(Clock, Protocol):
    """Run loop that steps the world (`botyard.servers.hub`)."""

    @property
    def sim(self) -> Simulation:
        """The world."""
        ...

    @property
    def speed(self) -> float:
        """Requested speed (simulated per wall time); 0: as fast as possible."""
        ...

    @property
    def ratio(self) -> float:
        """Measured speed (simulated per wall time)."""
        ...

    @property
    def step_time(self) -> float:
        """Wall time of a step, s."""
        ...

    @property
    def overruns(self) -> int:
        """Number of steps that missed their deadline."""
        ...

    @property
    def background(self) -> Background:
        """Runner of background work."""
        ...

    def follow(self, act: Callable[[], None], *subjects: Subject) -> Callable[[], None]:
        """Call `act` when one of the subjects has changed.

        Return a function to unregister.

        Several changes since the last call cause one call.
        """
        ...

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each step, and when the state changes while paused."""
        ...

    def unwatch(self, changed: Callable[[], None]) -> None:
        """Unregister a callback of `watch`."""
        ...

    def attach(self, listener: Listener) -> None:
        """Register a listener of steps."""
        ...

    def detach(self, listener: Listener) -> None:
        """Unregister a listener of steps."""
        ...


class Host(Protocol):
    """Runs blocking jobs in the background, and ends the simulation.

    An event loop has a host; a null modem is one.
    """

    def run_in_background(
        self, job: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run `job` in the background.

        Then call `done` with its result or its error, between two steps.
        """
        ...

    def end_soon(self, status: int, crash: bool) -> None:
        """End the simulation soon, with an exit status or as if it had crashed.

        Before the end, the client has time to close its connection.
        """
        ...


class Stepper(Protocol):
    """Lockstep: a client holds simulated time and steps it.

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
        """Whether a client holds time."""
        ...

    def step(self, client: Hashable, count: int) -> None:
        """Hold time for a client, and make `count` steps."""
        ...

    def command(
        self, client: Hashable, throttle: bool, clock: bool, skips: int
    ) -> None:
        """Apply AMBF's World command.

        While `throttle` is set, time is held, and each change of `clock` requests
        `skips` steps.
        """
        ...

    def release_hold(self, client: Hashable) -> None:
        """Release the client's hold on time."""
        ...


class RobotHost(Protocol):
    """Adds robots to the world and opens their ports.

    See `botyard.servers.pioneer.robot_servers`.
    """

    def equip(self, spec: RobotSpec) -> RobotSpec:
        """Return the model with the equipment of this run, such as a battery."""
        ...

    def add_robots(
        self, spec: RobotSpec, poses: Sequence[Pose], names: Sequence[str]
    ) -> list[Robot]:
        """Add robots; `serve` opens their ports."""
        ...

    @property
    def arrived(self) -> Sequence[Robot]:
        """Robots that the current map has added."""
        ...

    def port_of(self, robot: str) -> int:
        """Return the TCP port of a robot; 0 if it has none."""
        ...

    def serve(
        self, robots: Sequence[Robot], ports: Mapping[str, int] = ...
    ) -> Future[None]:
        """Open the ports of robots, preferably the ones that `ports` maps names to."""
        ...

    def work(self, portions: Portions[T]) -> Future[T]:
        """Run cooperative work in slices."""
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
    """Loads maps in the background (`botyard.servers.jobs.maploading`).

    Futures are done when the map is in place.
    """

    @property
    def replaced(self) -> Replaced | None:
        """The map that the current one has replaced; None if it is the first one."""
        ...

    def put_back(self, replaced: Replaced) -> Future[bool]:
        """Restore a map that was replaced, without the robots that it added."""
        ...

    def load(
        self, name: str, asker: Hashable, before: Callable[[World], None] | None = None
    ) -> Future[bool]:
        """Load a map or world by name from the allowed folders.

        The result is True if it was loaded, False if it is the current one. With
        `before`, the current one is also loaded again; `before` is called with the new
        world immediately before the map is replaced.
        """
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
        """Remove the map."""
        ...

    def names(self) -> list[tuple[str, bool]]:
        """Return the maps that clients may load, and whether each is a shipped one.

        This scans folders, so do not call it in the run loop.
        """
        ...

    def run_in_thread(self, job: Callable[[], T]) -> Future[T]:
        """Run a blocking job in a low-priority thread.

        Return a future of its result.
        """
        ...


class Painter(Protocol):
    """Draws pictures in the background (`botyard.servers.jobs.pictures`)."""

    def write(self, name: str) -> Future[Path]:
        """Write a picture next to the log file, and return a future of its path."""
        ...


class Filming(NamedTuple):
    """Movie in progress: its name, and its progress from 0 to 1."""

    name: str
    part: float


class Filmer(Protocol):
    """Makes movies of the run (`botyard.servers.jobs.movies`), one at a time."""

    @property
    def present(self) -> Filming | None:
        """The movie in progress; None if there is none."""
        ...

    def start(self, wish: Any) -> Future[Path]:
        """Start a movie for a `botyard.control.movie.WriteMovie`.

        Return a future of its path.

        Raises
        ------
        WorldError
            A movie is in progress, there were too many, or there is nothing to show.
            The future fails with it if the movie cannot be made.
        """
        ...

    def cancel(self) -> None:
        """Cancel the movie in progress; `WorldError` if there is none."""
        ...


class Recorded(NamedTuple):
    """Recording in progress.

    Attributes
    ----------
    path : Path
        Its first file.
    last : float
        Simulated time that it keeps in memory until it is saved, s; 0: all is written.
    """

    path: Path
    last: float


class Recordings(Protocol):
    """Records the run (`botyard.servers.jobs.recordings`), one recording at a time."""

    @property
    def present(self) -> Recorded | None:
        """The recording in progress; None if there is none."""
        ...

    def start(self, wish: Any) -> Path:
        """Start a recording next to the log file for a `StartRecording`.

        Return its path.

        Raises
        ------
        WorldError
            A recording is in progress, or the file cannot be written.
        """
        ...

    def stop(self) -> Future[Path]:
        """Stop the recording; the future is done when all data is written.

        Raises
        ------
        WorldError
            No recording is in progress.
        """
        ...

    def save(self, name: str) -> Future[Path]:
        """Write the part in memory to a file; see `start`.

        Raises
        ------
        WorldError
            No recording is kept in memory.
        """
        ...


class LogKeeper(Protocol):
    """Rotates the log."""

    def rotate(self) -> None:
        """Start a new log file."""
        ...


class UndoLog(Protocol):
    """Log of steps for undo by clients (`botyard.control.undo`)."""

    def check(self, caller: Caller, again: bool) -> None:
        """Check that there is a step to undo or redo.

        `NotNowError` if there is none.
        """
        ...

    def take_back(self, control: Any, caller: Caller, again: bool) -> Portions[str]:
        """Undo the last step of a client, or redo the last undone one.

        Return a message.
        """
        ...

    def forget(self, key: Hashable) -> None:
        """Forget the steps of a client that has disconnected."""
        ...

    def clear(self) -> None:
        """Forget all steps: the world has returned to another moment."""
        ...


def charged(work: Portions[T], spend: Callable[[float], None]) -> Portions[T]:
    """Run `work` and charge its CPU time.

    Calls `spend` with the CPU time of each slice, s; waiting costs nothing.
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
        # The future that it waits for has failed or was cancelled; `work` must see it.
        except BaseException as thrown:
            error = thrown


__all__ = [
    "Background",
    "Clock",
    "Host",
    "Listener",
    "LogKeeper",
    "Maps",
    "Painter",
    "Portions",
    "Recorded",
    "Recordings",
    "Replaced",
    "RobotHost",
    "RunLoop",
    "Stepper",
    "UndoLog",
    "charged",
]
