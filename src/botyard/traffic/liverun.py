"""Interface of a run of traffic that a world shows, and facts about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.sim.simulation import Robot
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.task import Task, Vehicle

if TYPE_CHECKING:
    from botyard.traffic.motion import Path2
    from botyard.traffic.supervisors.base import Supervisor
    from botyard.traffic.task import I8


class Driver(Protocol):
    """Robot of a run, with what it drives."""

    robot: Robot
    vehicle: Vehicle
    path: Path2
    allowed: int
    head: int
    done: bool
    nodes: tuple[str, ...]


class LiveRun(Protocol):
    """Run of traffic that `LiveTraffic` drives and shows.

    `botyard.traffic.on_robots.RobotTraffic` describes the attributes.
    """

    pass_on: Callable[[list[tuple[int, int]]], list[tuple[int, int]]]
    on_event: Callable[[float, int, int, int], None]
    refusal: str
    """Reason why users cannot decide by hand; empty: they can."""

    @property
    def task(self) -> Task:
        """Paths, sectors and conflicts."""
        ...

    @property
    def supervisor(self) -> Supervisor:
        """Supervisor, which is asked for reasons."""
        ...

    @property
    def drivers(self) -> Sequence[Driver]:
        """The robots, in the order of the task."""
        ...

    @property
    def state(self) -> I8:
        """State of the permissions, (n, 4); see `botyard.traffic.outcome.waiting_robots`."""
        ...

    @property
    def done(self) -> NDArray[np.bool_]:
        """Whether each robot has finished, (n,)."""
        ...

    def act(self) -> None:
        """Act before a step of the world."""
        ...

    @property
    def places(self) -> Sequence[float]:
        """Where the robots are along their paths, m."""
        ...

    def observe(self) -> Ending | None:
        """Act after a step of the world; return the ending of the run, if it has ended."""
        ...

    def allow(self, i: int, sector: int) -> None:
        """Let a robot enter a sector, and all sectors before it."""
        ...

    def least_allowed(self, i: int) -> int:
        """Return the last sector that a robot can no longer stop before."""
        ...

    def withdraw(self, i: int, last: int) -> None:
        """Take back the permissions of a robot after a sector."""
        ...

    def why(self, i: int, sector: int) -> str:
        """Return why a robot waits for a sector that no robot holds; empty: unknown."""
        ...

    def finish(self, why: Ending) -> Outcome:
        """Return the outcome of the run; call it once, at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of the last minute.

    Attributes
    ----------
    time : float
        Simulated time, s.
    robot, sector : int
        Number of the robot, and of the sector on its path.
    what : str
        ``grants`` or ``takes back``.
    by : str
        Name of the supervisor, or `botyard.traffic.live.BY_HAND`.
    """

    time: float
    robot: int
    sector: int
    what: str
    by: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A robot that waits for a sector.

    Attributes
    ----------
    robot, sector : int
        Number of the robot, and of the sector on its path.
    by : tuple of int
        Robots that hold sectors in conflict with it.
    since : float
        Start of the wait, simulated s.
    reason : str
        Reason, if no robot holds the sector.
    """

    robot: int
    sector: int
    by: tuple[int, ...]
    since: float
    reason: str


__all__ = ["Decision", "Driver", "LiveRun", "Wait"]
