"""Protocols of the parts of a running simulator that operations use: clock, grounds,
maps, … A null modem implements only some of them.
"""

from __future__ import annotations

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
    """Pauses, resumes and steps simulated time."""

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
        """Run `count` steps at the present speed, and then pause."""
        ...

    def step_now(
        self, count: int, progress: Callable[[int], bool] | None = None
    ) -> Future[None]:
        """Make `count` steps at once while paused. The future fails with NotNowError if
        the simulation is resumed meanwhile, or the steps are cancelled.

        `progress` is called after each step with the number of steps that are left;
        when it returns False, no more are made.
        """
        ...

    def cancel_steps(self) -> None:
        """Make no more of the steps that `step_now` was asked for: its futures fail
        with NotNowError.
        """
        ...

    def set_speed(self, factor: float) -> None:
        """Set the speed, simulated per wall time; 0 is as fast as possible."""
        ...

    def settle(self) -> None:
        """If the simulation is paused: let placements and sensor settings that are
        queued take effect now.
        """
        ...

    def stop(self, status: int = 0, crash: bool = False) -> None:
        """End the run soon."""
        ...


class Listener(Protocol):
    """Anything that is notified of every step."""

    def on_snapshot(self, now: float) -> None:
        """Called after every step; `now` is wall time, s."""
        ...


Portions = Generator[Future[Any] | float | None, None, T]
"""Cooperative work in slices, as a generator. It yields None to let others run, a
future to wait for it, or a pause in seconds.
"""


class Background(Protocol):
    """Runs background work between the steps; errors of work that nobody awaits are
    logged (`botyard.servers.jobs.background`).
    """

    def start(
        self, work: Coroutine[Any, Any, Any] | Portions[Any], what: str
    ) -> object:
        """Start work that nobody awaits; `what` names it in the log."""
        ...

    def future(self, work: Coroutine[Any, Any, T], what: str) -> Future[T]:
        """Start a coroutine, and return a future of its result."""
        ...

    def portions(self, work: Portions[T], what: str) -> Future[T]:
        """Start cooperative work, and return a future of its result."""
        ...


class RunLoop(Clock, Protocol):
    """The run loop that steps the world (`botyard.servers.hub`)."""

    @property
    def sim(self) -> Simulation:
        """The world."""
        ...

    @property
    def speed(self) -> float:
        """Requested speed, simulated per wall time; 0 is as fast as possible."""
        ...

    @property
    def ratio(self) -> float:
        """Measured speed, simulated per wall time."""
        ...

    @property
    def step_time(self) -> float:
        """Wall time that a step takes, s."""
        ...

    @property
    def overruns(self) -> int:
        """Number of steps that missed their deadline."""
        ...

    @property
    def background(self) -> Background:
        """The runner of background work."""
        ...

    def follow(self, act: Callable[[], None], *subjects: Subject) -> Callable[[], None]:
        """Call `act` when one of the subjects has changed, once for all changes since
        the last call. Returns its unregister function.
        """
        ...

    def attach(self, listener: Listener) -> None:
        """Register a listener of steps."""
        ...

    def detach(self, listener: Listener) -> None:
        """Unregister a listener of steps."""
        ...


class Host(Protocol):
    """Runs blocking jobs in the background, and ends the simulation. An event loop has
    one; a null modem is one.
    """

    def run_aside(
        self, job: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run `job` in the background, then call `done` with its result or its error,
        between two steps.
        """
        ...

    def end_soon(self, status: int, crash: bool) -> None:
        """End the simulation with an exit status, or as if it had crashed, after the
        client has had time to close its connection.
        """
        ...


class Stepper(Protocol):
    """Lockstep: lets a client hold simulated time and step it
    (`botyard.servers.lockstep`).
    """

    @property
    def step_listeners(self) -> list[Callable[[], None]]:
        """Functions that are called when requested steps are done."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether requested steps are still being made."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether a client holds time."""
        ...

    def step(self, client: Hashable, count: int) -> None:
        """Make `count` steps for a client, which holds time from now on."""
        ...

    def command(
        self, client: Hashable, throttle: bool, clock: bool, skips: int
    ) -> None:
        """The same in the form of AMBF's World command: `throttle` holds time, each
        change of `clock` requests `skips` steps.
        """
        ...

    def leave(self, client: Hashable) -> None:
        """Release the client's hold on time."""
        ...


class Grounds(Protocol):
    """Adds robots to the world and opens their ports
    (`botyard.servers.pioneer.robot_servers`).
    """

    def equip(self, spec: RobotSpec) -> RobotSpec:
        """Return the model with what robots get in this run, for example a draining
        battery.
        """
        ...

    def add_robots(
        self, spec: RobotSpec, poses: Sequence[Pose], names: Sequence[str]
    ) -> list[Robot]:
        """Add robots; `serve` opens their ports."""
        ...

    @property
    def arrived(self) -> Sequence[Robot]:
        """Robots that came with the present map."""
        ...

    def port_of(self, robot: str) -> int:
        """TCP port of a robot; 0 while it has none."""
        ...

    def serve(
        self, robots: Sequence[Robot], ports: Mapping[str, int] = ...
    ) -> Future[None]:
        """Open the ports of robots: those of these names on these ports, if they can be
        had.
        """
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
    """A map that was replaced, and what there was with it.

    Attributes
    ----------
    scene : Scene
        The map, with the boxes that were left of it.
    path, modified : Path or None, int
        Its file, and when that was changed last (see `botyard.formats.reading`).
    poses : mapping of str to Pose
        True poses of all bodies, m, m, rad.
    robots : mapping of str to Robot
        All robots.
    placements : mapping of str to int
        How often each robot had been placed.
    """

    scene: Scene
    path: Path | None
    modified: int
    poses: Mapping[str, Pose]
    robots: Mapping[str, Robot]
    placements: Mapping[str, int]


class Maps(Protocol):
    """Loads maps in the background (`botyard.servers.jobs.maploading`). Futures are
    done when the map is in place.
    """

    @property
    def replaced(self) -> Replaced | None:
        """What the present map has replaced; None: it is the first one."""
        ...

    def put_back(self, replaced: Replaced) -> Future[bool]:
        """Put a map in place again that another one has replaced, without the robots
        that came with it.
        """
        ...

    def load(
        self, name: str, asker: Hashable, before: Callable[[World], None] | None = None
    ) -> Future[bool]:
        """Load a map or world by name from the allowed folders. The result is True if
        it was loaded, False if it was there already.

        With `before`, it is also loaded if it is there; `before` is called with it when
        it has been read, just before it is put in place.
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
        """Read the present map's file again."""
        ...

    def clear(self) -> None:
        """Remove the map."""
        ...

    def names(self) -> list[tuple[str, bool]]:
        """List the maps that may be loaded, each with whether it came with the package.
        Reads folders: do not call it in the run loop.
        """
        ...

    def beside(self, job: Callable[[], T]) -> Future[T]:
        """Run a blocking job in a low-priority thread, and return a future of its
        result.
        """
        ...


class Painter(Protocol):
    """Draws pictures in the background (`botyard.servers.jobs.pictures`)."""

    def write(self, name: str) -> Future[Path]:
        """Write a picture next to the log file, and return a future of its path."""
        ...


class Filming(NamedTuple):
    """A movie that is being made: its name, and the part of the work that is done, 0 to
    1.
    """

    name: str
    part: float


class Filmer(Protocol):
    """Makes movies of the run (`botyard.servers.jobs.movies`), one at a time."""

    @property
    def present(self) -> Filming | None:
        """The movie that is being made; None: there is none."""
        ...

    def start(self, wish: Any) -> Future[Path]:
        """Begin a movie, as `botyard.control.movie.WriteMovie` tells of it. Returns a
        future of its path.

        Raises
        ------
        WorldError
            One is being made, there were too many, or there is nothing to show; the
            future, if it fails.
        """
        ...

    def cancel(self) -> None:
        """Give up the movie that is being made. WorldError: there is none."""
        ...


class Recorded(NamedTuple):
    """A recording in progress: its first file, and the simulated time that it keeps in
    memory until it is saved, s (0: all is written).
    """

    path: Path
    last: float


class Recordings(Protocol):
    """Records the run (`botyard.servers.jobs.recordings`), one recording at a time."""

    @property
    def present(self) -> Recorded | None:
        """What is being recorded; None: nothing."""
        ...

    def start(self, wish: Any) -> Path:
        """Begin to record, next to the log file, as a `StartRecording` says; the path
        of the file is returned.

        WorldError: something is being recorded, or the file cannot be written.
        """
        ...

    def stop(self) -> Future[Path]:
        """End the recording; the future is done when all is written. WorldError:
        nothing is being recorded.
        """
        ...

    def save(self, name: str) -> Future[Path]:
        """Write what is kept in memory; see `start`. WorldError: nothing is kept."""
        ...


class LogKeeper(Protocol):
    """Rotates the log."""

    def rotate(self) -> None:
        """Begin a new log file."""
        ...


class UndoLog(Protocol):
    """Notes how what clients do can be taken back (`botyard.control.undo`)."""

    def check(self, caller: Caller, again: bool) -> None:
        """Check that there is a step to be taken back, or to be done again. NotNowError
        if there is none.
        """
        ...

    def take_back(self, control: Any, caller: Caller, again: bool) -> Portions[str]:
        """Take the last step of a client back, or do the last one that was taken back
        again; a line for people.
        """
        ...

    def forget(self, key: Hashable) -> None:
        """A client has gone."""
        ...

    def clear(self) -> None:
        """The world has gone back to another moment: what was noted is of a run that
        did not happen.
        """
        ...


__all__ = [
    "Background",
    "Clock",
    "Grounds",
    "Host",
    "Listener",
    "LogKeeper",
    "Maps",
    "Painter",
    "Portions",
    "Recorded",
    "Recordings",
    "Replaced",
    "RunLoop",
    "Stepper",
    "UndoLog",
]
