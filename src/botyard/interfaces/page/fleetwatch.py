"""Values of all robots for the table of the fleet, and their trips (`FleetWatch`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.interfaces.page.commandlog import CommandLog
from botyard.names import shown
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.session import Viewer
from botyard.sim.simulation import Robot, Simulation
from botyard.sim.trips import TripState

PERIOD: Final = 0.9
"""Wall time between two messages with the values of all robots, s.

It is a little less than two periods of the status, with which they are sent.
"""
MAX_MESSAGE: Final = 300
"""Longest message about why a trip has no path, characters."""
MAX_CORNERS: Final = 200
"""Largest number of corners of a path that is sent; a path usually has fewer than 20."""


class FleetWatch:
    """Observer of all robots for pages.

    It counts how long robots were stalled while pages are connected.

    Parameters
    ----------
    sim : Simulation
        The world, which is only read.
    commands : CommandLog
        Sources of the commands of all robots.
    """

    def __init__(self, sim: Simulation, commands: CommandLog) -> None:
        self._sim = sim
        self._commands = commands
        self._names: tuple[str, ...] = ()
        self._stalled: NDArray[np.float64] = np.zeros(0)
        self._seen: NDArray[np.float64] = np.zeros(0)
        self._time = sim.time
        self._trips = b""
        self._next = -math.inf

    def sample(self) -> None:
        """Add the time since the last call to the observed times."""
        sim = self._sim
        names = tuple(sim.robots)
        if names != self._names:
            self._renumber(names)
        passed, self._time = sim.time - self._time, sim.time
        # Simulated time may have jumped back, for example by a reset.
        if passed > 0.0 and names:
            self._seen += passed
            self._stalled += passed * (sim.fleet.stalled != 0)

    def _renumber(self, names: tuple[str, ...]) -> None:
        """Adapt the observed times to a changed list of robots; robots in both keep them."""
        before = {name: k for k, name in enumerate(self._names)}
        rows = np.array([before.get(name, -1) for name in names], np.int64)
        for attribute in ("_stalled", "_seen"):
            old = np.append(getattr(self, attribute), 0.0)
            setattr(self, attribute, np.where(rows >= 0, old[rows], 0.0))
        self._names = names
        self._commands.keep(frozenset(names))

    # -- messages

    def tell(self, viewers: Sequence[Viewer], now: float) -> None:
        """Send the trips, if they have changed, and the values that are due.

        Parameters
        ----------
        viewers : sequence of Viewer
            All pages.
        now : float
            Wall time, s.
        """
        self.sample()
        trips = self.trips()
        if trips is not None:
            for viewer in viewers:
                viewer.send_encoded(trips)
        wanted = [v for v in viewers if v.view.fleet and not v.is_behind]
        if wanted and now >= self._next:
            self._next = now + PERIOD
            values = self.fleet()
            for viewer in wanted:
                viewer.send_encoded(values, again_soon=True)

    def fleet(self) -> bytes:
        """Return the encoded values of all robots."""
        self.sample()
        sim = self._sim
        robots = list(sim.robots.values())
        programs = sim.core.programs.by_robot
        trips = {robot.name: robot.trip for robot in robots if robot.name in programs}
        share = self._stalled / np.where(self._seen > 0.0, self._seen, 1.0)
        vx, vy = sim.fleet.velocities[:, :2].T
        return pushes.encoder.encode(
            pushes.Fleet(
                time=sim.time,
                names=list(self._names),
                charge=[round(r.electrics.charge, 1) for r in robots],
                speed=np.sqrt(vx * vx + vy * vy).round(3).tolist(),
                stalled=share.round(4).tolist(),
                left=[
                    -1.0 if trip is None else round(trip.distance_left, 2)
                    for trip in map(trips.get, self._names)
                ],
                controller=[
                    programs[name].name if name in programs else ""
                    for name in self._names
                ],
                commander=[shown(self._commands.commander(r), 60) for r in robots],
                pose=sim.fleet.poses.round(3).tolist(),
            )
        )

    def trips(self) -> bytes | None:
        """Return the encoded trips of all robots; None if they have not changed since
        the last call.
        """
        found = self.trips_now()
        if found == self._trips:
            return None
        self._trips = found
        return found

    def trips_now(self) -> bytes:
        """Return the encoded trips of all robots."""
        sim = self._sim
        programs = sim.core.programs.by_robot
        infos = [
            info
            for name in programs
            if name in sim.robots
            for info in [_trip(sim.robots[name])]
            if info is not None
        ]
        return pushes.encoder.encode(pushes.Trips(trips=infos))


def _trip(robot: Robot) -> pushes.TripInfo | None:
    """Return the trip of a robot to its goals; None if it has no trip, or has arrived."""
    trip = robot.trip
    program = robot.simulation.core.programs.by_robot[robot.name]
    if trip is None or trip.state is TripState.ARRIVED:
        return None
    order = str(program.options.get("order", "once"))
    points = [list(point) for point in program.options.get("points", ())]
    if order == "once":
        points = points[trip.goals_reached :]
    goals = [
        (float(p[0]), float(p[1]), float(p[2]) if len(p) > 2 else None) for p in points
    ]
    # List the present goal first. The goals of a patrol (``loop``, ``back``) are in
    # their original order, so move it to the front.
    now = (*trip.goal, trip.heading)
    if order != "once" and now in goals:
        k = goals.index(now)
        goals = (
            goals[k:] + goals[:k]
            if order == "loop"
            else [now, *goals[:k], *goals[k + 1 :]]
        )
    return pushes.TripInfo(
        robot=robot.name,
        state=str(trip.state),
        goals=goals,
        path=[(round(x, 3), round(y, 3)) for x, y in trip.path[1 : MAX_CORNERS + 1]],
        order=order,
        message=shown(trip.message, MAX_MESSAGE),
    )


__all__ = ["FleetWatch"]
