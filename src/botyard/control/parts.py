"""What the control surface needs of a running simulator: its clock, its grounds, its maps. Servers have them; a null modem has fewer."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol, TypeVar

from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.sim.robot import Robot

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


class Stepper(Protocol):
    """Lets a client hold time and step it (`botyard.servers.lockstep`)."""

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

    def work(self, portions: Generator[Future[None] | None, None, T]) -> Future[T]:
        """Do work in portions, others are served in between; a portion that yields a future waits for it."""
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


__all__ = ["Clock", "Grounds", "LogKeeper", "Maps", "Painter", "Stepper"]
