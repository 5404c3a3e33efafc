"""What really happened to robots, step by step: the way they went, what they touched, how near they came to it, what they have covered.

A `TruthLog` listens to the steps of a simulation; it reads true poses and changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.elementary import cosine_sine, hypot
from botyard.engine.snapshot import Snapshot
from botyard.errors import UnknownNameError
from botyard.geometry import Pose, distance
from botyard.sim.simulation import Simulation

F8 = NDArray[np.float64]

WALL: Final = "a wall"
"""What walls are called where robots and boxes are called by their names."""
TOUCH_M: Final = 0.02
"""What stopped a robot is the nearest thing, if it is at most so far from its outline, m: robots are stopped just before they touch."""
MAX_WAY: Final = 1_000_000
"""Most poses of a way that are kept; after that every second one is dropped."""


class Contact(NamedTuple):
    """A robot was stopped by something.

    Attributes
    ----------
    time : float
        Simulated time, s.
    robot, other : str
        The robot that was driving; a robot, a box, or `WALL`.
    pose : Pose
        Where the robot was.
    """

    time: float
    robot: str
    other: str
    pose: Pose

    def __str__(self) -> str:
        return f"{self.time:.2f} s: {self.robot} touched {self.other} at ({self.pose.x:.2f}, {self.pose.y:.2f}) m"


@dataclass
class Truth:
    """What happened to one robot.

    Attributes
    ----------
    distance : float
        Length of its way, m.
    stall_time : float
        Time for which something stopped it, s.
    contacts : list of Contact
        What it touched while it was driving, and what touched it.
    clearance : float
        Least distance of its outline to walls and other bodies, m, since `TruthLog.watch_clearance`; inf: it was not watched.
    way : list of (x, y, th)
        Its true poses, one for each step; of very long ways every 2nd, 4th, … one. m, m, rad.
    """

    distance: float = 0.0
    stall_time: float = 0.0
    contacts: list[Contact] = field(default_factory=list)
    clearance: float = math.inf
    way: list[tuple[float, float, float]] = field(default_factory=list)
    _stride: int = 1
    _steps: int = 0

    def _add(self, pose: tuple[float, float, float]) -> None:
        if self._steps % self._stride == 0:
            self.way.append(pose)
            if len(self.way) > MAX_WAY:
                del self.way[1::2]
                self._stride *= 2
        self._steps += 1

    def positions(self) -> F8:
        """Positions of the way, (n, 2), m."""
        return np.array(self.way, np.float64).reshape(-1, 3)[:, :2]


def placed(parts: Sequence[Sequence[tuple[float, float]]], pose: F8) -> F8:
    """Edges of outlines at a pose, (n, 4): x1, y1, x2, y2, m."""
    c, s = cosine_sine(float(pose[2]))
    edges = []
    for part in parts:
        points = np.asarray(part, np.float64)
        x, y = pose[0] + c * points[:, 0] - s * points[:, 1], pose[1] + s * points[:, 0] + c * points[:, 1]
        edges.append(np.column_stack((x, y, np.roll(x, -1), np.roll(y, -1))))
    return np.concatenate(edges)


def edge_distance(a: F8, b: F8) -> float:
    """Least distance between edges `a` (n, 4) and `b` (m, 4), m; 0 where two cross; inf if there are none."""
    if not len(a) or not len(b):
        return math.inf
    if _cross(a, b):
        return 0.0
    ends = [_point_distance(p[:, k : k + 2], q) for p, q in ((a, b), (b, a)) for k in (0, 2)]
    return float(min(ends))


def _point_distance(points: F8, edges: F8) -> float:
    """Least distance of points (n, 2) from edges (m, 4)."""
    begin, along = edges[:, :2], edges[:, 2:] - edges[:, :2]
    length = np.maximum((along * along).sum(axis=1), 1e-300)
    away = points[:, None, :] - begin[None, :, :]
    t = np.clip((away * along).sum(axis=2) / length, 0.0, 1.0)
    rest = away - t[:, :, None] * along
    return float(np.sqrt((rest * rest).sum(axis=2).min()))


def _cross(a: F8, b: F8) -> bool:
    """Whether an edge of `a` properly crosses one of `b`."""
    p, r = a[:, None, :2], a[:, None, 2:] - a[:, None, :2]
    q, s = b[None, :, :2], b[None, :, 2:] - b[None, :, :2]
    w = q - p
    turn = r[..., 0] * s[..., 1] - r[..., 1] * s[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (w[..., 0] * s[..., 1] - w[..., 1] * s[..., 0]) / turn
        u = (w[..., 0] * r[..., 1] - w[..., 1] * r[..., 0]) / turn
        return bool(((turn != 0.0) & (t >= 0.0) & (t <= 1.0) & (u >= 0.0) & (u <= 1.0)).any())


class TruthLog:
    """Watches all robots of a simulation from now on; made and closed in the thread that steps the world.

    Parameters
    ----------
    sim : Simulation
        The world.

    Attributes
    ----------
    contacts : list of Contact
        All contacts, in order of time.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._robots: dict[str, Truth] = {}
        self._touched: dict[str, str] = {}
        self._watched: dict[str, float] = {}
        self._last: dict[str, tuple[float, float]] = {}
        self.contacts: list[Contact] = []
        self._end = sim.after_step(self._step)
        self._look(sim.snapshot, 0.0)

    def __getitem__(self, name: str) -> Truth:
        """Raises UnknownNameError (a KeyError) when there never was such a robot."""
        if name not in self._robots:
            raise UnknownNameError(f'there was no robot "{name}" (there were: {", ".join(self._robots) or "none"})')
        return self._robots[name]

    def __contains__(self, name: object) -> bool:
        return name in self._robots

    @property
    def robots(self) -> Mapping[str, Truth]:
        """All robots that there were, by their names."""
        return self._robots

    def watch_clearance(self, name: str, within: float) -> None:
        """Measure the distance of a robot to what is around it in each step, as far as it is at most `within`, m."""
        self[name]
        self._watched[name] = max(within, self._watched.get(name, 0.0))

    def close(self) -> None:
        """Watch no longer."""
        self._end()

    def _step(self, snapshot: Snapshot) -> None:
        self._look(snapshot, self._sim.dt)

    def _look(self, snapshot: Snapshot, dt: float) -> None:
        state, rows = snapshot.state, snapshot.rows
        for name in self._sim.robots:
            row = rows[name]
            x, y, th = state.pose[row].tolist()
            truth = self._robots.setdefault(name, Truth())
            if dt:
                before = self._last.get(name, (x, y))
                truth.distance += distance(before, (x, y))
            self._last[name] = x, y
            truth._add((x, y, th))
            if state.stall[row]:
                truth.stall_time += dt
                self._touch(name, row, snapshot)
            else:
                self._touched.pop(name, None)
            within = self._watched.get(name)
            if within is not None:
                found, _ = self._nearest(row, snapshot, within)
                truth.clearance = min(truth.clearance, found)

    def _touch(self, name: str, row: int, snapshot: Snapshot) -> None:
        """A robot is stopped: by what, unless that is known already."""
        _, other = self._nearest(row, snapshot, TOUCH_M)
        if self._touched.get(name) == other:
            return
        self._touched[name] = other
        contact = Contact(snapshot.time, name, other, Pose(*snapshot.state.pose[row].tolist()))
        self.contacts.append(contact)
        self._robots[name].contacts.append(contact)
        if other in self._robots:
            self._robots[other].contacts.append(contact)

    def _nearest(self, row: int, snapshot: Snapshot, within: float) -> tuple[float, str]:
        """Distance of the nearest thing, m, and what it is; (inf, WALL): nothing is so near."""
        specs, pose = self._sim.engine.specs, snapshot.state.pose
        mine = placed(specs[row].parts, pose[row])
        low, high = mine.reshape(-1, 2).min(axis=0) - within, mine.reshape(-1, 2).max(axis=0) + within
        best, name = math.inf, WALL
        walls = self._walls(low, high)
        if (found := edge_distance(mine, walls)) <= within:
            best = found
        reach = hypot(*(high - low).tolist()) + 2.0
        for other, k in snapshot.rows.items():
            if k == row or np.abs(pose[k, :2] - pose[row, :2]).max() > reach + _radius(specs[k].parts):
                continue
            found = edge_distance(mine, placed(specs[k].parts, pose[k]))
            if found <= within and found < best:
                best, name = found, other
        return best, name

    def _walls(self, low: F8, high: F8) -> F8:
        """Walls and edges of points near a box, (n, 4)."""
        scene = self._sim.scene
        s, p, edge = scene.segments, scene.points, scene.resolution
        near: F8 = s[
            (np.minimum(s[:, 0], s[:, 2]) <= high[0]) & (np.maximum(s[:, 0], s[:, 2]) >= low[0])
            & (np.minimum(s[:, 1], s[:, 3]) <= high[1]) & (np.maximum(s[:, 1], s[:, 3]) >= low[1])
        ]  # fmt: skip
        inside = (p[:, 0] <= high[0]) & (p[:, 0] + edge >= low[0]) & (p[:, 1] <= high[1]) & (p[:, 1] + edge >= low[1])
        q = p[inside]
        if not len(q):
            return near
        x, y = q[:, 0], q[:, 1]
        sides = [
            (x, y, x + edge, y),
            (x, y + edge, x + edge, y + edge),
            (x, y, x, y + edge),
            (x + edge, y, x + edge, y + edge),
        ]
        return np.concatenate([near, *(np.column_stack(side) for side in sides)])


def _radius(parts: Sequence[Sequence[tuple[float, float]]]) -> float:
    return max(hypot(x, y) for part in parts for x, y in part)


__all__ = ["WALL", "Contact", "Truth", "TruthLog", "edge_distance", "placed"]
