"""Operations on the run of robots on sector paths: start, end, and its permissions."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from botyard.api.arguments import found, place
from botyard.control.caller import Caller, Level
from botyard.control.operation import (
    Operation,
    argument,
    boolean,
    count,
    each,
    name,
    optional,
    real,
    text,
)
from botyard.control.site import Site
from botyard.control.trafficpart import Permit, TrafficPart
from botyard.errors import ArgumentError
from botyard.model.world import MAX_PATH_POINTS, MAX_PATHS

MAX_PATH_SPEED: Final = 10.0
"""Highest speed on paths, m/s; the limits of the robots' models apply as well."""
MAX_SECTOR: Final = 1_000_000
NO_TRAFFIC: Final = "traffic is not available"

Path = tuple[str, tuple[tuple[float, float], ...]]


def _point(value: Any, what: str, /) -> tuple[float, float]:
    x, y, _ = place(value, what)
    return x, y


def _path(value: Any, what: str, /) -> Path:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ArgumentError(
            f"{what}: expected the name of a robot and points, found {found(value)}"
        )
    return name(value[0], what), each(_point, MAX_PATH_POINTS)(value[1], what)


_sector = optional(count(0, MAX_SECTOR))


class _OnTraffic(Operation[Any]):
    """Base class of the operations on traffic."""

    level = Level.DRIVE
    audit = logging.INFO
    tells: ClassVar[str] = "pages that show the traffic see the change"

    def part(self, control: Site) -> TrafficPart:
        """Return the part that runs traffic."""
        return control.part(control.traffic, NO_TRAFFIC)


@dataclass(frozen=True, kw_only=True)
class RunTraffic(_OnTraffic, Operation[None]):
    """Let robots drive along paths under a supervisor, in place of the present run.

    Paths are divided into sectors, and the supervisor permits the robots to enter them.
    A path starts where its robot stands. Controllers of the robots are removed.

    Parameters
    ----------
    paths : tuple of (str, tuple of (x, y))
        Names of robots, each with the points of its path, m.
    supervisor : str
        Name of a built-in or installed supervisor.
    speed : float
        Highest speed, m/s.
    """

    paths: tuple[Path, ...] = argument(each(_path, MAX_PATHS))
    supervisor: str = argument(text(200), "bankers")
    speed: float = argument(real(0.01, MAX_PATH_SPEED, "m/s"), 0.65)

    def perform(self, control: Site, caller: Caller) -> None:
        """Start the run.

        Raises
        ------
        ArgumentError
            There are no paths, or two for one robot.
        WorldError
            A robot cannot drive its path, or the supervisor rejects the paths.
        """
        paths = dict(self.paths)
        if not paths or len(paths) < len(self.paths):
            raise ArgumentError(
                f"paths: expected one path for each robot, found {len(self.paths)} "
                f"for {len(paths)} robots"
            )
        self.part(control).run(paths, self.supervisor, self.speed)


@dataclass(frozen=True, kw_only=True)
class EndTraffic(_OnTraffic, Operation[None]):
    """End the run on sector paths; its robots stop."""

    def perform(self, control: Site, caller: Caller) -> None:
        """End the run."""
        self.part(control).end()


@dataclass(frozen=True, kw_only=True)
class HoldTraffic(_OnTraffic, Operation[None]):
    """Hold the supervisor's decisions, or let them take effect again.

    Robots still drive through the sectors that they may enter already.

    Parameters
    ----------
    on : bool
        Whether decisions wait.
    """

    on: bool = argument(boolean)

    def perform(self, control: Site, caller: Caller) -> None:
        """Hold the decisions, or let them take effect.

        Raises
        ------
        NotNowError
            No run is going on.
        """
        self.part(control).hold(self.on)


@dataclass(frozen=True, kw_only=True)
class StepTraffic(_OnTraffic, Operation[Permit]):
    """Let the next decision of the supervisor take effect, and hold the others."""

    def perform(self, control: Site, caller: Caller) -> Permit:
        """Let the decision take effect; return the changed permission.

        Raises
        ------
        NotNowError
            No run is going on, or no decision waits.
        """
        return self.part(control).step()


@dataclass(frozen=True, kw_only=True)
class GrantSector(_OnTraffic, Operation[Permit]):
    """Permit a robot to enter a sector of its path, and all sectors before it.

    Parameters
    ----------
    robot : str
        Name of the robot.
    sector : int, optional
        Number of the sector; by default the next one.
    """

    robot: str = argument(name)
    sector: int | None = argument(_sector, None)

    def perform(self, control: Site, caller: Caller) -> Permit:
        """Grant the sector; return the changed permission.

        Raises
        ------
        NotNowError
            No run is going on.
        WorldError
            Another robot holds a sector in conflict with it, or the robot has no such
            sector.
        """
        return self.part(control).grant(self.robot, self.sector)


@dataclass(frozen=True, kw_only=True)
class RevokeSector(_OnTraffic, Operation[Permit]):
    """Take back the permission of a robot for a sector, and for all sectors after it.

    The supervisor must be a part of the simulator, not a program that is connected over ROS.
    Its further grants for this robot wait until a user grants the robot a sector.

    Parameters
    ----------
    robot : str
        Name of the robot.
    sector : int, optional
        Number of the sector; by default the first one before which it can still stop.
    """

    robot: str = argument(name)
    sector: int | None = argument(_sector, None)

    def perform(self, control: Site, caller: Caller) -> Permit:
        """Take back the permission; return the changed permission.

        Raises
        ------
        NotNowError
            No run is going on.
        WorldError
            The robot has no such permission, or can no longer stop before the sector.
        """
        return self.part(control).revoke(self.robot, self.sector)


__all__ = [
    "EndTraffic",
    "GrantSector",
    "HoldTraffic",
    "RevokeSector",
    "RunTraffic",
    "StepTraffic",
]
