"""Trajectories of robots, reconstructed from the events of a run.

A check finds disks that overlap at any time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from botyard.numerics import elementwise
from botyard.traffic.kernels import runarrays
from botyard.traffic.outcome import Outcome
from botyard.traffic.task import F8, Task, TaskError, Vehicle

CONTACT_STEP: Final = 1e-3
"""Shortest time step of the overlap check, s, for disks that are close together."""


class Motion:
    """A robot's trajectory along its path: pieces of constant acceleration.

    Parameters
    ----------
    vehicle : Vehicle
        Start and motion limits.
    turns : list of (float, bool)
        Times, s, from which it accelerates (True) or brakes; in order.
    """

    def __init__(self, vehicle: Vehicle, turns: list[tuple[float, bool]]) -> None:
        self.vehicle = vehicle
        begin, x, v, a = [0.0], [vehicle.start], [0.0], [vehicle.acceleration]

        def at(t: float) -> tuple[float, float]:
            dt = t - begin[-1]
            return x[-1] + dt * (v[-1] + 0.5 * a[-1] * dt), v[-1] + a[-1] * dt

        def piece(t: float, place: float, speed: float, rate: float) -> None:
            if t == begin[-1]:
                x[-1], v[-1], a[-1] = place, speed, rate
            else:
                begin.append(t)
                x.append(place)
                v.append(speed)
                a.append(rate)

        def until(t: float) -> None:
            """Add a piece of constant speed if top speed or rest is reached by time t."""
            if (
                a[-1] > 0.0
                and (end := begin[-1] + (vehicle.velocity - v[-1]) / a[-1]) <= t
            ):
                piece(end, at(end)[0], vehicle.velocity, 0.0)
            elif a[-1] < 0.0 and (end := begin[-1] - v[-1] / a[-1]) <= t:
                piece(end, at(end)[0], 0.0, 0.0)

        for t, goes in turns:
            until(t)
            place, speed = at(t)
            # Rounding of event times can leave the speed slightly outside its limits.
            speed = min(max(speed, 0.0), vehicle.velocity)
            if goes:
                piece(
                    t,
                    place,
                    speed,
                    vehicle.acceleration if speed < vehicle.velocity else 0.0,
                )
            else:
                piece(t, place, speed, -vehicle.deceleration if speed > 0.0 else 0.0)

        until(math.inf)
        self._t, self._x, self._v, self._a = (
            np.array(column) for column in (begin, x, v, a)
        )

    def pieces(self) -> dict[str, list[float]]:
        """Return the pieces of constant acceleration, by column.

        Returns
        -------
        dict of str to list of float
            ``t``: start times, s; ``x``: positions along the path, m; ``v``: speeds,
            m/s; ``a``: accelerations, m/s². All are rounded to six decimals.
        """
        columns = {"t": self._t, "x": self._x, "v": self._v, "a": self._a}
        return {name: np.round(column, 6).tolist() for name, column in columns.items()}

    def place(self, t: F8) -> F8:
        """Return positions along the path at times.

        Parameters
        ----------
        t : (n,) float64
            Times, s, not negative.

        Returns
        -------
        (n,) float64
            Positions of the centre, m.
        """
        piece = np.searchsorted(self._t, t, side="right") - 1
        dt = t - self._t[piece]
        found: F8 = self._x[piece] + dt * (self._v[piece] + 0.5 * self._a[piece] * dt)
        return found


def motions(outcome: Outcome) -> list[Motion]:
    """Return the trajectories of all robots of a run whose events were kept."""
    turns: list[list[tuple[float, bool]]] = [[] for _ in outcome.task.vehicles]
    e = outcome.events
    rows = np.flatnonzero((e.kind == runarrays.STOP) | (e.kind == runarrays.START))
    for t, robot, kind in zip(
        e.t[rows].tolist(), e.robot[rows].tolist(), e.kind[rows].tolist(), strict=True
    ):
        turns[robot].append((t, kind == runarrays.START))

    return [
        Motion(v, _without_cancelled(own))
        for v, own in zip(outcome.task.vehicles, turns, strict=True)
    ]


def _without_cancelled(turns: list[tuple[float, bool]]) -> list[tuple[float, bool]]:
    """Remove changes that were cancelled at the same instant.

    A permission that arrives at the critical point cancels the braking.

    Parameters
    ----------
    turns : list of (float, bool)
        Times, s, from which a robot accelerates (True) or brakes; in order.
    """
    out: list[tuple[float, bool]] = []
    for t, goes in turns:
        if out and out[-1][0] == t and out[-1][1] != goes:
            out.pop()
        else:
            out.append((t, goes))

    return out


class Path2:
    """A polyline in the plane, parametrised by length.

    Parameters
    ----------
    corners : (k, 2) array
        Corners, m.
    """

    def __init__(self, corners: F8) -> None:
        self.corners = corners
        lengths = elementwise.hypot(*np.diff(corners, axis=0).T)
        self.along = np.concatenate([[0.0], np.cumsum(lengths)])

    @property
    def length(self) -> float:
        """Length of the polyline, m."""
        return float(self.along[-1])

    def at(self, s: F8) -> F8:
        """Return points at distances along the polyline.

        Beyond its end the last segment is extended.

        Parameters
        ----------
        s : (n,) float64
            Distances from the first corner, m.

        Returns
        -------
        (n, 2) float64
            Points x, y, m.
        """
        s = np.asarray(s, np.float64)
        inside = np.stack(
            [
                elementwise.interpolate(s, self.along, self.corners[:, i])
                for i in (0, 1)
            ],
            axis=-1,
        )
        # A robot that brakes at the end of its path rolls beyond it.
        beyond = np.maximum(s - self.along[-1], 0.0)
        last = self.corners[-1] - self.corners[-2]
        found: F8 = inside + beyond[..., None] * last / max(
            float(elementwise.hypot(*last)), 1e-12
        )
        return found


@dataclass(frozen=True, slots=True)
class Touch:
    """An overlap of two disks.

    Attributes
    ----------
    t : float
        Time of the first overlap, s, to a thousandth.
    robot, other : int
        The two robots.
    depth : float
        Depth of the overlap, m.
    """

    t: float
    robot: int
    other: int
    depth: float


def touches(outcome: Outcome, end: float | None = None) -> list[Touch]:
    """Find the first overlap of the disks of every two robots.

    Conservative advancement: a pair is checked again at the earliest time at which it
    could touch at full speed, but at the earliest after `CONTACT_STEP`.

    Parameters
    ----------
    outcome : Outcome
        A run whose events were kept.
    end : float, optional
        End of the check, s; by default the end of the run.

    Returns
    -------
    list of Touch
        At most one for each pair of robots; empty if none overlap.

    Raises
    ------
    TaskError
        A robot has no path in the plane.
    """
    task: Task = outcome.task
    paths = [Path2(v.path) for v in task.vehicles if v.path is not None]
    if len(paths) < len(task):
        raise TaskError(
            "Geometry: expected a path for every robot to check disks, found robots without one",
            task.name,
        )

    moving, last = motions(outcome), outcome.time if end is None else end
    found = []
    for i, a in enumerate(task.vehicles):
        for j in range(i + 1, len(task)):
            b = task.vehicles[j]
            if _boxes_apart(paths[i], paths[j], a.radius + b.radius):
                continue
            t, closing = 0.0, a.velocity + b.velocity
            while t <= last:
                now = np.array([t])
                p, q = (
                    paths[i].at(moving[i].place(now))[0],
                    paths[j].at(moving[j].place(now))[0],
                )
                gap = float(elementwise.hypot(*(p - q))) - a.radius - b.radius
                # Disks that only touch overlap by rounding errors; a micrometre is far
                # above them.
                if gap < -1e-6:
                    found.append(Touch(t, i, j, -gap))
                    break

                t += max(gap / closing, CONTACT_STEP)

    return found


def _boxes_apart(a: Path2, b: Path2, distance: float) -> bool:
    """Return whether two paths cannot come nearer than a distance.

    Parameters
    ----------
    a, b : Path2
        Paths, whose bounding boxes are compared.
    distance : float
        Distance, m.
    """
    low = np.maximum(a.corners.min(axis=0), b.corners.min(axis=0))
    high = np.minimum(a.corners.max(axis=0), b.corners.max(axis=0))
    return bool(np.any(low - high > distance))


__all__ = ["Motion", "Path2", "Touch", "motions", "touches"]
