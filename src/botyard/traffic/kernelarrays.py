"""Arrays of the traffic kernels at the start of a run."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from botyard.traffic.kernels import runarrays
from botyard.traffic.points import Points, points_from_start
from botyard.traffic.rules import Rules
from botyard.traffic.task import Task, Vehicle

EVENT_BUFFER: Final = 1 << 16
"""Capacity of the event buffer; a full buffer is moved to the log."""


def _cache_aligned(shape: tuple[int, int], kind: Any) -> Any:
    """Return zeros aligned to a cache line (64 bytes).

    A robot's row then touches as few cache lines as possible.

    Parameters
    ----------
    shape : (int, int)
        Number of rows and columns.
    kind : dtype
        Type of the numbers.
    """
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    room = np.zeros(size + 64, np.uint8)
    # NumPy aligns to 16 bytes only, so the array starts at the next multiple of 64.
    begin = -room.ctypes.data % 64
    return room[begin : begin + size].view(kind).reshape(shape)


def build_world(task: Task, rules: Rules, *, asks: bool, log: bool) -> runarrays.World:
    """Return the arrays of the kernel at the start of a run; see `Traffic`.

    Parameters
    ----------
    task : Task
        Task with n robots.
    rules : Rules
        Options of the run.
    asks : bool
        Whether robots ask for sectors. False: permissions come from outside, and robots
        have no critical points.
    log : bool
        Whether events are kept, for which the buffers get room.
    """
    n, vehicles, total = len(task), task.vehicles, task.n_sectors
    f, i = (
        _cache_aligned((n, runarrays.N_F), np.float64),
        _cache_aligned((n, runarrays.N_I), np.int32),
    )
    c = np.zeros(runarrays.N_C, np.int64)
    c[[runarrays.AT_END, runarrays.LEAVES, runarrays.GOES_ON, runarrays.LOGS]] = (
        rules.stop_at_end,
        rules.leaves,
        rules.goes_on,
        log,
    )
    columns = {
        runarrays.VMAX: "velocity",
        runarrays.ACC: "acceleration",
        runarrays.DEC: "deceleration",
        runarrays.RADIUS: "radius",
        runarrays.X: "start",
    }
    for column, name in columns.items():
        f[:, column] = [getattr(v, name) for v in vehicles]
    f[:, runarrays.REST] = np.inf
    f[:, runarrays.LIMIT] = [
        v.ends[-1] if rules.stop_at_end else np.inf for v in vehicles
    ]
    i[:, runarrays.MODE] = runarrays.GOING
    parts = [_points(v, rules, asks=asks) for v in vehicles] or [
        (np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
    ]
    loc, what, sec = (np.concatenate(column) for column in zip(*parts, strict=True))
    points = _cache_aligned((len(loc), 2), np.float64)
    points[:, 0], points[:, 1] = loc, 4 * sec + what
    counts = [len(p[0]) for p in parts][:n]
    i[:, runarrays.LAST] = np.cumsum(counts)
    i[:, runarrays.POINT] = i[:, runarrays.LAST] - counts
    starts, others = (a.astype(np.int32) for a in task.conflicts)
    first = task.first.astype(np.int32)
    sectors = _cache_aligned((total, runarrays.N_SECTOR), np.int32)
    sectors[:, runarrays.FIRST_CONFLICT], sectors[:, runarrays.END_CONFLICT] = (
        starts[:-1],
        starts[1:],
    )
    owner = np.repeat(np.arange(n, dtype=np.int32), np.diff(first))
    sectors[:, runarrays.OWNER] = owner
    sectors[:, runarrays.CHAIN] = np.arange(total, dtype=np.int32) - first[owner]
    for robot, v in enumerate(vehicles):
        tail, head = v.occupied()
        # The sectors under the robot at the start count as permitted and asked for.
        i[
            robot, [runarrays.TAIL, runarrays.HEAD, runarrays.ALLOWED, runarrays.ASKED]
        ] = tail, head, head, head
        if not asks:
            i[robot, runarrays.ASKED] = len(v.ends) - 1
            f[robot, runarrays.LIMIT] = position_limit(
                v, f[robot, runarrays.LIMIT], head
            )

        under = slice(task.first[robot] + tail, task.first[robot] + head + 1)
        sectors[under, runarrays.INSIDE] = sectors[under, runarrays.HELD] = 1

    # One event can add several rows; the kernel stops while this margin is still
    # free.
    room = EVENT_BUFFER + 4 * n + 8192 if log else 0
    return runarrays.World(
        f=f,
        lines=f.reshape(2 * n, 8),
        i=i,
        c=c,
        d=np.zeros(1),
        heap=np.zeros(n, np.int64),
        key=np.zeros(n),
        slot=np.zeros(n, np.int64),
        points=points,
        first=first,
        ends=np.concatenate([v.ends for v in vehicles]) if n else np.zeros(0),
        sectors=sectors,
        others=others,
        after_starts=np.zeros(total + 1, np.int32),
        after=np.zeros(0, np.int32),
        sim=np.zeros(total, np.uint8),
        done=np.zeros(n, np.uint8),
        why=np.zeros(n, np.int64),
        queue=np.zeros(n, np.int64),
        et=np.zeros(room),
        er=np.zeros(room, np.int32),
        ek=np.zeros(room, np.int8),
        es=np.zeros(room, np.int32),
    )


def _points(v: Vehicle, rules: Rules, *, asks: bool) -> Points:
    """Return the special points of a vehicle in the order of passing (mmrs.md §3).

    Parameters
    ----------
    v : Vehicle
        Vehicle at its start.
    rules : Rules
        Options of the run: critical points by acceleration or deceleration.
    asks : bool
        Whether the robot asks for sectors.

    Returns
    -------
    loc, what, sec : (k,) float64, (k,) int64, (k,) int64
        Positions along the path, m, kinds and sectors.
    """
    ahead = (
        v.velocity
        * v.velocity
        / (2.0 * (v.acceleration if rules.original_braking else v.deceleration))
    )
    loc, what, sec = points_from_start(v, ahead, finish=True, stops=rules.stop_at_end)
    # A robot that does not ask has no critical points.
    kept = (what != runarrays.CRITICAL) | asks
    return loc[kept], what[kept], sec[kept]


def position_limit(v: Vehicle, end: float, allowed: int) -> float:
    """Return the position, m, up to which a robot may go that requests no permissions.

    Parameters
    ----------
    v : Vehicle
        Vehicle with its path.
    end : float
        Limit at the end of the path, m; infinite without one.
    allowed : int
        Last sector that the robot may enter.

    Returns
    -------
    float
        Position of the centre along the path, m, at which its disc touches the next
        sector.
    """
    return (
        end
        if allowed == len(v.ends) - 1
        else min(end, float(v.ends[allowed]) - v.radius)
    )
