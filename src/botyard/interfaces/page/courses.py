"""Motion of all robots in the last minutes, for the charts of the page (`Courses`)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.protocols.webgui.pushes import CourseResult
from botyard.sim.simulation import Simulation
from botyard.sim.trips import TripState

SPACING_S: Final = 0.5
"""Simulated time between two samples, s."""
MAX_SAMPLES: Final = 600
"""Largest number of samples of a robot: five minutes."""
MAX_BYTES: Final = 32 * 2**20
"""Largest memory of all samples, bytes; with more robots, fewer samples are kept."""
VALUES: Final = 6
"""Number of values of a robot in a sample.

They are speed, m/s; yaw rate, rad/s; error of odometry, m; position x, y, m; and 0, or
1 if the robot is stalled, or 2 if it waits (see `waiting`).
"""
LEAST_SAMPLES: Final = 20
"""Smallest number of samples of a robot, even if `MAX_BYTES` is exceeded."""
STILL: Final = 0.01
"""Speed, m/s, and yaw rate, rad/s, below which a robot counts as standing."""


class Courses:
    """Ring buffer of samples of all robots: the oldest samples are overwritten.

    Parameters
    ----------
    sim : Simulation
        The world, which is only read. Samples are taken after its steps.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._names: tuple[str, ...] = ()
        # Ring buffer of m samples: times (m,) and values (m, robots, VALUES). `_head`
        # is the index of the next sample, `_count` the number of valid samples.
        self._times: NDArray[np.float64] = np.zeros(0)
        self._values: NDArray[np.float32] = np.zeros((0, 0, VALUES), np.float32)
        self._head = self._count = 0
        self._next = -np.inf
        sim.after_step(self.sample)

    def sample(self, _: object = None) -> None:
        """Take a sample if one is due; call it between two steps."""
        sim = self._sim
        time = sim.time
        if time < self._next and time >= self._next - SPACING_S - 1e-9:
            return
        if time < self._next - SPACING_S - 1e-9:
            self._forget_after(time)
        self._next = time + SPACING_S
        names = tuple(sim.robots)
        if names != self._names:
            self._renumber(names)
        if not len(self._times):
            return
        velocity = sim.fleet.velocities
        off = sim.fleet.odometry_in_world[:, :2] - sim.fleet.poses[:, :2]
        values = self._values[self._head]
        speed = _lengths(velocity)
        values[:, 0] = np.where(velocity[:, 0] < 0.0, -speed, speed)
        values[:, 1] = velocity[:, 2]
        values[:, 2] = _lengths(off)
        values[:, 3:5] = sim.fleet.poses[:, :2]
        values[:, 5] = np.where(sim.fleet.stalled != 0, 1.0, 2.0 * waiting(sim))
        self._times[self._head] = time
        self._head = (self._head + 1) % len(self._times)
        self._count = min(self._count + 1, len(self._times))

    def _order(self) -> NDArray[np.int64]:
        """Return the indices of the samples in the ring buffer, oldest first."""
        size = max(len(self._times), 1)
        return (self._head - self._count + np.arange(self._count)) % size

    def _forget_after(self, time: float) -> None:
        """Drop the samples at or after `time`, to which simulated time has jumped back, s."""
        size = max(len(self._times), 1)
        while self._count and self._times[(self._head - 1) % size] >= time:
            self._head = (self._head - 1) % size
            self._count -= 1

    def _renumber(self, names: tuple[str, ...]) -> None:
        """Resize the buffer for a changed list of robots; robots in both keep their samples."""
        size = MAX_BYTES // (4 * VALUES * max(len(names), 1))
        size = max(LEAST_SAMPLES, min(MAX_SAMPLES, size)) if names else 0
        order = self._order()[-size:] if size else np.zeros(0, np.int64)
        times = np.zeros(size)
        values = np.full((size, len(names), VALUES), np.nan, np.float32)
        before = {name: k for k, name in enumerate(self._names)}
        kept = [(k, before[name]) for k, name in enumerate(names) if name in before]
        times[: len(order)] = self._times[order]
        if kept and len(order):
            new, old = (list(column) for column in zip(*kept, strict=True))
            values[: len(order), new] = self._values[np.ix_(order, old)]
        self._names, self._times, self._values = names, times, values
        self._count = len(order)
        self._head = self._count % max(size, 1)

    def of(self, name: str, until: float | None) -> CourseResult:
        """Return speed, yaw rate and odometry error of a robot over time.

        Parameters
        ----------
        name : str
            Name of the robot; a removed robot has no samples.
        until : float, optional
            Time of the last sample, s; by default the present.

        Returns
        -------
        CourseResult
            Samples, oldest first; without any, its lists are empty.
        """
        if name not in self._names:
            return CourseResult(name=name, time=[], v=[], w=[], error=[])
        order = self._order()
        values = self._values[order, self._names.index(name)]
        times = self._times[order]
        use = np.isfinite(values[:, 0])
        if until is not None:
            use &= times <= until + 1e-9
        v, w, error = values[use, :3].T.round(4).tolist() if use.any() else ([], [], [])
        return CourseResult(
            name=name, time=times[use].round(3).tolist(), v=v, w=w, error=error
        )

    def before(self, until: float) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        """Return the positions of all robots up to a moment.

        Parameters
        ----------
        until : float
            Time of the last sample, s.

        Returns
        -------
        names : tuple of str
            Names of the robots.
        samples : (m, n, 3) float32
            Position x, y, m, and 0, or 1 if the robot is stalled, or 2 if it waits; NaN
            before the robot existed.
        """
        order = self._order()
        order = order[self._times[order] <= until + 1e-9]
        return self._names, self._values[order, :, 3:]


def waiting(sim: Simulation) -> NDArray[np.bool_]:
    """Return which robots wait, (n,): they have a goal and stand, but are not stalled."""
    velocity = sim.fleet.velocities
    programs = sim.core.programs.by_robot
    waits = np.zeros(len(velocity), np.bool_)
    if not programs:
        return waits
    still = np.all(np.abs(velocity) < STILL, axis=1) & (sim.fleet.stalled == 0)
    robots = list(sim.robots.values())
    for row in np.flatnonzero(still).tolist():
        robot = robots[row]
        trip = robot.trip if robot.name in programs else None
        waits[row] = trip is not None and trip.state is not TripState.ARRIVED
    return waits


def _lengths(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lengths of vectors, whose first two columns are x and y."""
    x, y = vectors[:, 0], vectors[:, 1]
    found: NDArray[np.float64] = np.sqrt(x * x + y * y)
    return found


__all__ = ["SPACING_S", "Courses", "waiting"]
