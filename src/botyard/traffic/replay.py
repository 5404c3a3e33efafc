"""Replay page: a self-contained HTML page that animates a run.

The page shows paths, states of sectors, robots as disks, and waiting robots.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from botyard.errors import WorldError
from botyard.processes.safefile import write_text
from botyard.traffic.motion import Path2, motions
from botyard.traffic.outcome import Outcome
from botyard.traffic.task import F8, Task

_DIGITS = 4


def lanes(task: Task) -> list[F8]:
    """Return the path of every robot in the plane.

    Returns
    -------
    list of (k, 2) float64
        Corners of each path, m. Robots without a path get straight parallel paths.
    """
    found = []
    for i, v in enumerate(task.vehicles):
        y = -2.5 * v.radius * i
        found.append(
            np.array([[0.0, y], [float(v.ends[-1]) + 1.0, y]])
            if v.path is None
            else v.path
        )

    return found


def replay_data(outcome: Outcome) -> dict[str, Any]:
    """Return the data of the replay page.

    Returns
    -------
    dict
        ``title``, ``end`` (s) and ``robots``. Each robot has ``path`` (corners, m),
        ``along`` (their distances along the path, m), ``ends`` (of sectors, m along the
        path), ``critical`` (1 for sectors with conflicts), ``radius`` (m), ``finished``
        (s; 1e12 if it does not finish), ``gone`` (whether it leaves its last sector by
        the end), ``motion`` (pieces of constant acceleration), ``held`` and ``inside``
        (start, end, sector) and ``waits`` (start, end, blocking robots).
    """
    # The page divides by the length of the run, so an empty run gets a millisecond.
    task, end = outcome.task, max(outcome.time, 0.001)
    starts, _ = task.conflicts
    critical = np.diff(starts) > 0
    held, inside, waits = _intervals(outcome, end)
    robots = []
    for i, (v, path, motion) in enumerate(
        zip(task.vehicles, lanes(task), motions(outcome), strict=True)
    ):
        first = int(task.first[i])
        robots.append(
            {
                "path": np.round(path, _DIGITS).tolist(),
                "along": np.round(Path2(path).along, _DIGITS).tolist(),
                "ends": np.round(v.ends, _DIGITS).tolist(),
                "critical": critical[first : first + len(v.ends)].astype(int).tolist(),
                "radius": v.radius,
                "finished": float(outcome.robots.finished[i])
                if outcome.robots.done[i]
                else 1e12,
                "gone": any(
                    s == len(v.ends) - 1 and to <= end for _, to, s in inside[i]
                ),
                "motion": motion.pieces(),
                "held": held[i],
                "inside": inside[i],
                "waits": waits[i],
            }
        )

    return {
        "title": f"{Path(task.name).name}: {outcome.describe()}",
        "end": end,
        "robots": robots,
    }


Spans = list[list[list[Any]]]
"""Intervals of each robot: start, s; end, s; sector or robots."""


class _Intervals:
    """Intervals of waits and of held sectors in a run, built up event by event.

    Parameters
    ----------
    outcome : Outcome
        A run whose events were kept.

    Attributes
    ----------
    held : Spans
        Sectors that are granted but not entered yet: start, end, sector.
    waits : Spans
        Waits of a robot: start, end, robots that block it.
    """

    def __init__(self, outcome: Outcome) -> None:
        self._task = task = outcome.task
        self._starts, self._others = task.conflicts
        n = len(task)
        self.held: Spans = [[] for _ in range(n)]
        self.waits: Spans = [[] for _ in range(n)]
        occupied = [v.occupied() for v in task.vehicles]
        self.tail, self._head = (
            [tail for tail, _ in occupied],
            [head for _, head in occupied],
        )
        # Sectors under a robot at the start need no grant.
        self._allowed = self._head.copy()
        self._granted: dict[tuple[int, int], float] = {}
        self._waiting: dict[int, tuple[float, tuple[int, ...]]] = {}
        self._finished: set[int] = set()

    def add(self, t: float, i: int, kind: str, sector: int) -> None:
        """Process an event of a robot. Events must come in the order of time.

        Parameters
        ----------
        t : float
            Time, s.
        i : int
            Number of the robot.
        kind : str
            One of `botyard.traffic.outcome.KINDS`.
        sector : int
            Number of the sector on the robot's path; −1 without one.
        """
        if kind == "grant":
            self._granted[i, sector] = t
            self._allowed[i] = max(self._allowed[i], sector)
        elif kind == "enter":
            self.held[i].append([self._granted.pop((i, sector), t), t, sector])
            self._head[i] = sector
        elif kind == "release":
            self.tail[i] = sector + 1
        elif kind == "stop" and i not in self._finished:
            self._waiting[i] = (t, self._blockers(i))
        elif kind in ("start", "finish"):
            self._end_wait(i, t)
            if kind == "finish":
                self._finished.add(i)

        # A grant or a release may change which robots block which.
        if kind in ("grant", "release"):
            self._update_blockers(t)

    def close(self, done: Sequence[bool], end: float) -> None:
        """Close the intervals that are open at the end of the run.

        Parameters
        ----------
        done : sequence of bool
            Whether each robot has finished; a finished robot does not wait.
        end : float
            End of the run, s.
        """
        for i in list(self._waiting):
            if not done[i]:
                self._end_wait(i, end)

        for (i, sector), t in self._granted.items():
            self.held[i].append([t, end, sector])

    def _blockers(self, i: int) -> tuple[int, ...]:
        """Return the robots that block robot `i`.

        They hold or occupy a sector that conflicts with the robot's next sector.
        """
        g = int(self._task.first[i]) + self._allowed[i] + 1
        if g >= self._task.first[i + 1]:
            return ()
        found = set()
        for c in self._others[self._starts[g] : self._starts[g + 1]].tolist():
            j, sector = self._task.robot_of(c)
            if self.tail[j] <= sector <= max(self._allowed[j], self._head[j]):
                found.add(j)

        return tuple(sorted(found))

    def _update_blockers(self, t: float) -> None:
        for j in list(self._waiting):
            blockers = self._blockers(j)
            if blockers != self._waiting[j][1]:
                self._end_wait(j, t)
                self._waiting[j] = (t, blockers)

    def _end_wait(self, i: int, t: float) -> None:
        if i in self._waiting:
            begin, blockers = self._waiting.pop(i)
            if t > begin:
                self.waits[i].append([begin, t, list(blockers)])


def _intervals(outcome: Outcome, end: float) -> tuple[Spans, Spans, Spans]:
    """Return the intervals of each robot.

    Parameters
    ----------
    outcome : Outcome
        A run whose events were kept.
    end : float
        End of the run, s.

    Returns
    -------
    held, inside, waits : list of lists of [start, end, value]
        For each robot, times, s, in which sectors are granted but not entered, in which
        sectors are occupied, and in which it waits. The values are the sector, or the
        robots that it waits for.
    """
    task = outcome.task
    intervals = _Intervals(outcome)
    for row in outcome.events.rows():
        intervals.add(row["t"], row["robot"], row["kind"], row.get("sector", -1))
    intervals.close(outcome.robots.done.tolist(), end)
    inside: Spans = [[] for _ in range(len(task))]
    begins, ends = outcome.occupancy()
    for g in np.flatnonzero(~np.isnan(begins)).tolist():
        i, sector = task.robot_of(g)
        # A sector that the robot still occupies stays shaded past the end of the
        # animation.
        inside[i].append(
            [
                float(begins[g]),
                float(ends[g]) if sector < intervals.tail[i] else end + 1.0,
                sector,
            ]
        )

    return intervals.held, inside, intervals.waits


def write_replay(outcome: Outcome, path: Path, *, overwrite: bool = False) -> None:
    """Write the replay page.

    Parameters
    ----------
    outcome : Outcome
        A run whose events were kept.
    path : Path
        HTML file to write. It needs no other files.
    overwrite : bool
        Whether to replace a file that botyard did not write.

    Raises
    ------
    KeptFileError
        The path is a file that botyard did not write, and `overwrite` is False.
    WorldError
        The file cannot be written; the events of the run were not kept.
    """
    if outcome.count and not len(outcome.events):
        raise WorldError(
            "expected a run whose events were kept, found one without events"
        )
    page = files("botyard.traffic").joinpath("replay.html").read_text("utf-8")
    # "</script>" inside a name would end the script of the page, so "<" is escaped.
    data = json.dumps(replay_data(outcome), separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    try:
        write_text(path, page.replace("DATA", data, 1), force=overwrite)
    except OSError as error:
        raise WorldError(f"{path}: cannot be written: {error.strerror}") from None


__all__ = ["lanes", "replay_data", "write_replay"]
