"""Values of all robots for the table of the fleet, and their trips (`FleetWatch`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.names import shown
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.session import Viewer
from botyard.sim.journal import Entry, Submit, SubmitEach
from botyard.sim.simulation import Robot, Simulation
from botyard.sim.trips import TripState

PERIOD: Final = 0.9
"""Wall time between two messages with the values of all robots, s.

It is a little less than two periods of the status, with which they are sent.
"""
MAX_MESSAGE: Final = 300
"""Longest reason of a trip without a path, characters."""
MAX_CORNERS: Final = 200
"""Largest number of corners of a path that is sent; a path usually has fewer than 20."""


class FleetWatch:
    """Observer of all robots for pages.

    It counts how long robots were stalled while pages are connected, and notes the
    sources of commands while a page shows the table.

    Parameters
    ----------
    sim : Simulation
        The world, which is only read.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._names: tuple[str, ...] = ()
        self._stalled: NDArray[np.float64] = np.zeros(0)
        self._seen: NDArray[np.float64] = np.zeros(0)
        self._time = sim.time
        self._commander: dict[str, str] = {}
        self._stop: Callable[[], None] | None = None
        self._trips = b""
        self._next = -math.inf

    # -- what is observed

    def watch(self, is_shown: bool) -> None:
        """Note the sources of commands from now on, or no longer."""
        if is_shown and self._stop is None:
            self._stop = self._sim.core.journal.listen(self._heard, self._heard_one)
        elif not is_shown and self._stop is not None:
            self._stop()
            self._stop = None
            self._commander.clear()

    def _heard(self, entry: Entry) -> None:
        if isinstance(entry.change, Submit):
            self._commander[entry.change.name] = entry.source
        elif isinstance(entry.change, SubmitEach):
            self._commander |= dict.fromkeys(entry.change.names, entry.source)

    def _heard_one(
        self, tick: int, order: int, source: str, name: str, command: object
    ) -> None:
        self._commander[name] = source

    def sample(self) -> None:
        """Add the time since the last call to the observed times."""
        sim = self._sim
        names = tuple(sim.robots)
        if names != self._names:
            self._renumber(names)
        passed, self._time = sim.time - self._time, sim.time
        # Time may have been set back.
        if passed > 0.0 and names:
            self._seen += passed
            self._stalled += passed * (sim.fleet.stalled != 0)

    def _renumber(self, names: tuple[str, ...]) -> None:
        """Keep the times of robots that are still there."""
        before = {name: k for k, name in enumerate(self._names)}
        rows = np.array([before.get(name, -1) for name in names], np.int64)
        for attribute in ("_stalled", "_seen"):
            old = np.append(getattr(self, attribute), 0.0)
            setattr(self, attribute, np.where(rows >= 0, old[rows], 0.0))
        self._names = names
        # Robots that are gone must not fill the memory.
        self._commander = {n: s for n, s in self._commander.items() if n in before}

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
                commander=[self._commander_of(robot) for robot in robots],
                pose=sim.fleet.poses.round(3).tolist(),
            )
        )

    def _commander_of(self, robot: Robot) -> str:
        source = self._commander.get(robot.name, "")
        # A controller commands with the source of programs; its name says more.
        program = self._sim.core.programs.by_robot.get(robot.name)
        if source in ("", "api") and program is not None and not robot.clients:
            return program.name
        return shown(source, 60)

    def trips(self) -> bytes | None:
        """Return the encoded trips of all robots; None if they are the ones of the last call."""
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
    """Return the trip of a robot; None if it makes none, or has arrived."""
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
    # The present goal comes first, also of a patrol.
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
