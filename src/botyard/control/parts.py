"""What the control surface needs of a running simulator: its clock, its grounds, its maps. Servers have them; a null modem has fewer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Hashable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, TypeVar

from botyard.feed import Subject
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.sim.simulation import Robot, Simulation

T = TypeVar("T")


class Clock(Protocol):
    """Lets time go on or stand still."""

    @property
    def is_paused(self) -> bool:
        """Whether time stands still."""
        ...

    def pause(self) -> None:
        """Let time stand still."""
        ...

    def resume(self) -> None:
        """Let time go on."""
        ...

    def step_and_pause(self, count: int = 1) -> None:
        """Let so many steps pass, as fast as time goes, and then time stand still."""
        ...

    def step_now(self, count: int) -> Future[None]:
        """Make so many steps at once; done when they are, or NotNowError when somebody let time go on meanwhile."""
        ...

    def set_speed(self, factor: float) -> None:
        """Simulated per wall time from now on; 0 is as fast as possible."""
        ...

    def settle(self) -> None:
        """If time stands still: let what was placed, or asked of sensors, take effect now."""
        ...

    def stop(self, status: int = 0, crash: bool = False) -> None:
        """End the run soon."""
        ...


class Listener(Protocol):
    """Anything that wants to know of every step."""

    def on_snapshot(self, now: float) -> None:
        """A step is done; `now` is wall time, s."""
        ...


Portions = Generator[Future[Any] | float | None, None, T]
"""Work in portions. Between two of them others are served; it yields a future to wait for it (look at its result then), or a pause, s."""


class Background(Protocol):
    """Work beside the steps that nobody awaits; its errors are logged (`botyard.servers.background`)."""

    def start(self, work: Coroutine[Any, Any, Any] | Portions[Any], what: str) -> object:
        """Begin work; `what` it is, for the log."""
        ...

    def future(self, work: Coroutine[Any, Any, T], what: str) -> Future[T]:
        """Begin work whose result, or error, somebody waits for."""
        ...

    def portions(self, work: Portions[T], what: str) -> Future[T]:
        """Begin work in portions whose result, or error, somebody waits for."""
        ...


class RunLoop(Clock, Protocol):
    """What steps the world (`botyard.servers.hub`)."""

    @property
    def sim(self) -> Simulation:
        """The world."""
        ...

    @property
    def speed(self) -> float:
        """Simulated per wall time, as it was asked for; 0: as fast as possible."""
        ...

    @property
    def ratio(self) -> float:
        """Simulated per wall time, as it is."""
        ...

    @property
    def step_time(self) -> float:
        """Wall time that a step takes, s."""
        ...

    @property
    def overruns(self) -> int:
        """Steps that came late."""
        ...

    @property
    def background(self) -> Background:
        """Work beside the steps."""
        ...

    def follow(self, act: Callable[[], None], *subjects: Subject) -> Callable[[], None]:
        """Call `act` when one of these has changed, once for all changes since it was called last; what is returned unregisters it."""
        ...

    def attach(self, listener: Listener) -> None:
        """Tell `listener` of every step from now on."""
        ...

    def detach(self, listener: Listener) -> None:
        """No longer tell it."""
        ...


class Host(Protocol):
    """Does slow work beside the steps, and ends the simulation: an event loop has one, a null modem is one."""

    def run_aside(self, job: Callable[[], T], done: Callable[[T | None, Exception | None], None]) -> None:
        """Run `job` without holding up the steps, then call `done` with its result or its error, between two steps."""
        ...

    def end_soon(self, status: int, crash: bool) -> None:
        """End the simulation with an exit status, or as if it had died, after its sender has had time to say goodbye."""
        ...


class Stepper(Protocol):
    """Lets a client hold time and step it (`botyard.servers.lockstep`)."""

    @property
    def told(self) -> list[Callable[[], None]]:
        """Called when steps that were asked for are done."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether steps are being made."""
        ...

    def step(self, client: Hashable, count: int) -> None:
        """The client makes so many steps."""
        ...

    def command(self, client: Hashable, throttle: bool, clock: bool, skips: int) -> None:
        """The same as AMBF's World command says it: hold time or not; a change of `clock` steps."""
        ...

    def leave(self, client: Hashable) -> None:
        """The client holds time no longer."""
        ...


class Grounds(Protocol):
    """Where robots stand and how the outside reaches them (`botyard.servers.yard`)."""

    def equip(self, spec: RobotSpec) -> RobotSpec:
        """What robots of a model get here, for example a battery that drains."""
        ...

    def add_robots(self, spec: RobotSpec, poses: Sequence[Pose], names: Sequence[str]) -> list[Robot]:
        """Add robots; `serve` gives them ports."""
        ...

    def serve(self, robots: Sequence[Robot]) -> Future[None]:
        """Give robots their ports."""
        ...

    def work(self, portions: Portions[T]) -> Future[T]:
        """Do work in portions, others are served in between."""
        ...

    def remove(self, names: Sequence[str]) -> None:
        """Take robots out of the world that are there; their clients are told to go."""
        ...

    def switch_interface(self, interface: str, on: bool) -> Future[None]:
        """Start or stop an interface."""
        ...


class Maps(Protocol):
    """Loads maps beside the steps (`botyard.servers.maploading`). Futures are done when the map is in place."""

    def load(self, name: str, asker: Hashable) -> Future[bool]:
        """A map or world by its name, out of the folders that were opened for that. True: it was loaded; False: it was there already."""
        ...

    def load_bytes(self, name: str, data: bytes, asker: Hashable) -> Future[bool]:
        """One whose file was sent."""
        ...

    def reload(self) -> Future[bool]:
        """The present one again."""
        ...

    def clear(self) -> None:
        """None."""
        ...

    def names(self) -> list[tuple[str, bool]]:
        """The maps that may be loaded by name, and whether they came with the package. Looks into folders: beside the loop, please."""
        ...

    def beside(self, job: Callable[[], T]) -> Future[T]:
        """What `job` returns, or raises; done in a thread that gives way to the steps."""
        ...


class Painter(Protocol):
    """Draws pictures beside the steps (`botyard.servers.pictures`)."""

    def write(self, name: str) -> Future[Path]:
        """Write a picture beside the log; where."""
        ...


class LogKeeper(Protocol):
    """Begins new log files."""

    def rotate(self) -> None:
        """Begin one."""
        ...


__all__ = [
    "Background", "Clock", "Grounds", "Host", "Listener", "LogKeeper", "Maps", "Painter", "Portions", "RunLoop", "Stepper",
]  # fmt: skip
