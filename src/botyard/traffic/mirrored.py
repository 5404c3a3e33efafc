"""A run of the exact engine in a world: discs that move along their paths.

The supervisor is another program, whose permissions arrive as messages. The run
advances with the time of the world, so that the page can pause it and set its speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import WorldError
from botyard.model.world import thing
from botyard.numerics.elementary import atan2, cos, sin
from botyard.sim.simulation import Robot, Simulation
from botyard.traffic.engine import Traffic
from botyard.traffic.kernels import events as k
from botyard.traffic.kernels import runarrays
from botyard.traffic.motion import Path2
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.recorded import COLORS, robot_names
from botyard.traffic.replay import lanes
from botyard.traffic.task import I8, Vehicle

CORNERS: Final = 24
"""Number of corners of a disc."""
MOVED_M: Final = 1e-6
"""Least distance in a step from which a disc turns to its motion, m."""


@dataclass(slots=True, eq=False)
class Disc:
    """Robot of a run of the exact engine with its disc in the world.

    Attributes
    ----------
    vehicle, path : Vehicle, Path2
        Radius, motion and sectors, and the path in the plane.
    robot : Robot
        The disc.
    allowed, head : int
        Last sector that it may enter, and newest sector that it occupies.
    done : bool
        Whether it has finished.
    th : float
        Heading, rad.
    nodes : tuple of str
        Names of the corners of the path, if it has any.
    """

    vehicle: Vehicle
    robot: Robot
    path: Path2
    allowed: int = 0
    head: int = 0
    done: bool = False
    th: float = 0.0
    nodes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, sim: Simulation, vehicle: Vehicle, path: Path2, name: str, i: int
    ) -> Disc:
        """Add a disc at the start of a path; `i` chooses its colour."""
        outline = tuple(
            (
                vehicle.radius * cos(2.0 * math.pi * c / CORNERS),
                vehicle.radius * sin(2.0 * math.pi * c / CORNERS),
            )
            for c in range(CORNERS)
        )
        a, b = path.at(np.array([vehicle.start, vehicle.start + 0.05])).tolist()
        th = atan2(b[1] - a[1], b[0] - a[0])
        robot = sim.add_robot(
            thing(outline, color=COLORS[i % len(COLORS)]), name, pose=(*a, th)
        )
        # Discs show where the exact engine has robots, which may touch.
        robot.ghost(True)
        head = vehicle.first_sector()
        return cls(vehicle, robot, path, head, head, th=th)

    def move(self, sim: Simulation, place: float) -> None:
        """Put the disc at a place along its path, m, with the heading of its motion."""
        x, y = self.path.at(np.array([place])).tolist()[0]
        at = self.robot.truth
        if abs(x - at.x) + abs(y - at.y) > MOVED_M:
            self.th = atan2(y - at.y, x - at.x)
            sim.put(self.robot.name, (x, y, self.th))


class DiscRun:
    """Run of the exact engine whose robots a world shows as discs.

    Parameters
    ----------
    sim : Simulation
        World.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.pass_on: Callable[[list[tuple[int, int]]], list[tuple[int, int]]] = (
            lambda grants: grants
        )
        """See `botyard.traffic.on_robots.RobotTraffic.pass_on`."""
        self.on_event: Callable[[float, int, int, int], None] = (
            lambda _t, _robot, _kind, _sector: None
        )
        """Called with kinds STOP and START of robots, at simulated times of the world, s."""
        self._waiting: set[int] = set()

    @property
    def traffic(self) -> Traffic:
        """The run of the exact engine."""
        raise NotImplementedError

    @property
    def state(self) -> I8:
        """State of the permissions, (n, 4); see `botyard.traffic.outcome.waiting_robots`."""
        columns = (runarrays.ALLOWED, runarrays.ASKED, runarrays.TAIL, runarrays.HEAD)
        found: I8 = self.traffic.world.i[:, columns].astype(np.int64)
        return found

    @property
    def done(self) -> NDArray[np.bool_]:
        """Whether each robot has finished, (n,)."""
        found: NDArray[np.bool_] = self.traffic.world.i[:, runarrays.DONE] != 0
        return found

    def _set_waiting(self, i: int, waits: bool, sector: int) -> None:
        """Report that a robot waits in a sector, or no longer, if that is new."""
        if waits != (i in self._waiting):
            kind = runarrays.STOP if waits else runarrays.START
            self.on_event(self._sim.time, i, kind, sector)
            (self._waiting.add if waits else self._waiting.discard)(i)


class MirroredTraffic(DiscRun):
    """A run of the exact engine that a world shows; see `botyard.traffic.live.LiveTraffic`.

    Parameters
    ----------
    traffic : Traffic
        Run whose permissions come from outside; this object starts it.
    sim : Simulation
        World, to which a disc is added for each robot.
    """

    def __init__(self, traffic: Traffic, sim: Simulation) -> None:
        super().__init__(sim)
        self._traffic = traffic
        self.task, self.supervisor = traffic.task, traffic.supervisor
        self.on_step: Callable[[float], Ending | None] = self.advance
        """Called after each step with the time of the world, s; advances the run."""
        self._arrived: list[int] = []
        self.drivers = [
            Disc.of(sim, vehicle, Path2(lane), name, i)
            for i, (vehicle, lane, name) in enumerate(
                zip(
                    self.task.vehicles,
                    lanes(self.task),
                    robot_names(self.task),
                    strict=True,
                )
            )
        ]
        self.refusal = ""
        """See `botyard.traffic.liverun.LiveRun.refusal`."""

    # -- the run, for the node of the supervisor

    @property
    def is_idle(self) -> bool:
        """Whether all robots stand still and no permission is queued."""
        return self._traffic.is_idle and not self._arrived

    def start(self) -> None:
        """Start the run."""
        self._traffic.start()

    def advance(self, until: float) -> Ending | None:
        """Advance the run to a simulated time, s; see `Traffic.advance`."""
        return self._traffic.advance(until)

    def permit(self, robot: int) -> None:
        """Give a robot a permission for its next sector, before the next step.

        Raises
        ------
        WorldError
            There is no such robot.
        """
        if not 0 <= robot < len(self.task):
            raise WorldError(
                f"permission: expected a robot from 0 to {len(self.task) - 1}, found {robot}"
            )
        self._arrived.append(robot)

    def asked(self) -> list[tuple[int, int]]:
        """Return the waiting robots, each with its number of missing permissions."""
        return self._traffic.asked()

    def finish(self, why: Ending) -> Outcome:
        """Return the outcome of the run; call it once, at the end."""
        return self._traffic.finish(why)

    # -- the run, for its host

    @property
    def traffic(self) -> Traffic:
        """The run of the exact engine."""
        return self._traffic

    def act(self) -> None:
        """Let the permissions that have arrived take effect."""
        counts: dict[int, int] = {}
        for robot in self._arrived:
            counts[robot] = counts.get(robot, 0) + 1
        self._arrived.clear()
        allowed = self.state[:, 0].tolist()
        # A supervisor may permit more sectors than a path has.
        grants = [
            (robot, min(allowed[robot] + n, len(self.task.vehicles[robot].ends) - 1))
            for robot, n in counts.items()
        ]
        for robot, sector in self.pass_on(grants):
            self.allow(robot, sector)

    def observe(self) -> Ending | None:
        """Advance the run to the time of the world, and move the discs."""
        ending = self.on_step(self._sim.time)
        n = len(self.drivers)
        places, speeds = np.zeros(n), np.zeros(n)
        k.places(self._traffic.world, self._traffic.now, places, speeds)
        state, done = self.state.tolist(), self.done.tolist()
        for i, d in enumerate(self.drivers):
            allowed, asked, _, d.head = state[i]
            d.allowed, d.done = allowed, done[i]
            d.move(self._sim, float(places[i]))
            waits = asked > allowed and not d.done
            self._set_waiting(i, waits, d.head)
        return ending

    def allow(self, i: int, sector: int) -> None:
        """Let a robot enter a sector, and all sectors before it."""
        d = self.drivers[i]
        for _ in range(int(self.state[i, 0]), sector):
            self._traffic.permit(i)
        d.allowed = max(d.allowed, sector)

    @property
    def places(self) -> list[float]:
        """Where the robots are along their paths, m."""
        n = len(self.drivers)
        places, speeds = np.zeros(n), np.zeros(n)
        k.places(self._traffic.world, self._traffic.now, places, speeds)
        found: list[float] = places.tolist()
        return found

    def why(self, i: int, sector: int) -> str:
        """Return an empty text: the supervisor's reasons are unknown."""
        return ""

    def least_allowed(self, i: int) -> int:
        """Refuse, because the program that permits counts its permissions.

        Raises
        ------
        WorldError
            Always.
        """
        raise WorldError("permissions of another program cannot be taken back")

    def withdraw(self, i: int, last: int) -> None:
        """Refuse; see `least_allowed`."""
        self.least_allowed(i)


__all__ = ["Disc", "DiscRun", "MirroredTraffic"]
