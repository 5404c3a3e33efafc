"""Outcome of a run: events, ending, waiting robots and metrics."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import WorldError
from botyard.processes.safefile import replacing
from botyard.traffic.kernels import runarrays
from botyard.traffic.task import F8, I8, Task

if TYPE_CHECKING:
    from botyard.traffic.supervisors.base import Supervisor

# botyard wrote files that start with these bytes, so it may replace them.
EVENTS_BEGIN: Final = b'{"t":'
"""First bytes of a file of events."""
KINDS: Final = (
    "release",
    "critical",
    "enter",
    "finish",
    "grant",
    "stop",
    "start",
    "collision",
)
"""Names of the kinds of events, by number."""


class Ending(StrEnum):
    """Ending of a run; the value is its name in results."""

    COMPLETED = "completed"
    COLLISION = "collision"
    DEADLOCK = "deadlock"
    TIMEOUT = "timeout"

    @property
    def exit_status(self) -> int:
        """Exit status of the program: 0 for completed, then 10, 11, 12."""
        # The command line documents these statuses; 10 and above mean that the run
        # itself worked.
        return {"completed": 0, "collision": 10, "deadlock": 11, "timeout": 12}[
            self.value
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events in order of time.

    Attributes
    ----------
    t : (n,) float64
        Time, s.
    robot, kind, sector : (n,) int
        Robot; index in `KINDS`; sector that was asked for, entered, left or granted, or
        that the robot was in; for a collision the other robot.
    """

    t: F8
    robot: NDArray[np.int32]
    kind: NDArray[np.int8]
    sector: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.t)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one dictionary for each event.

        Yields
        ------
        dict
            ``t``, s, ``robot``, ``kind``, and ``sector``; for collisions ``other``
            instead of the sector.
        """
        for t, robot, kind, sector in zip(
            self.t.tolist(),
            self.robot.tolist(),
            self.kind.tolist(),
            self.sector.tolist(),
            strict=True,
        ):
            name = KINDS[kind]
            # Nine digits keep nanoseconds, and hide the rounding of sums of times.
            row = {"t": round(t, 9), "robot": robot, "kind": name}
            # A collision names a second robot in the column of sectors.
            row["other" if name == "collision" else "sector"] = sector
            yield row

    def write_lines(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the events as JSON lines.

        Parameters
        ----------
        path : str or Path
            File to write, one line for each event in the form of `rows`.
        overwrite : bool
            Whether to replace a file that botyard did not write.

        Raises
        ------
        KeptFileError
            The path is a file that botyard did not write, and `overwrite` is False.
        WorldError
            The file cannot be written.
        """
        # The file is complete or absent: a reader never sees half of it.
        try:
            with replacing(path, force=overwrite, begins=EVENTS_BEGIN) as out:
                out.writelines(
                    f"{json.dumps(row, separators=(',', ':'))}\n".encode()
                    for row in self.rows()
                )
        except OSError as error:
            raise WorldError(f"{path}: cannot be written: {error.strerror}") from None


@dataclass(frozen=True, slots=True, eq=False)
class Robots:
    """Final state of all robots, as arrays by number of the robot.

    Attributes
    ----------
    finished : (n,) float64
        Time at which it reached the end of its path, s; 0 if it did not.
    waited : (n,) float64
        Total time that it stood still before it moved again, s.
    stops : (n,) int64
        Number of times it came to rest and moved again.
    done : (n,) bool
        Whether it has finished.
    """

    finished: F8
    waited: F8
    stops: I8
    done: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Decisions:
    """Wall time that a supervisor in Python took for its decisions.

    Decisions of compiled supervisors are not counted.

    Attributes
    ----------
    count : int
        Number of messages it received.
    total, longest : float
        Total time and longest decision, s.
    """

    count: int = 0
    total: float = 0.0
    longest: float = 0.0

    @property
    def mean(self) -> float:
        """Mean time of a decision, s."""
        return self.total / self.count if self.count else 0.0


@dataclass(frozen=True)
class Outcome:
    """Result of a run.

    Attributes
    ----------
    task : Task
        Task with robots, paths and conflicts.
    ending : Ending
        Ending of the run.
    time : float
        Simulated time of the end, s.
    events : Events
        Events; empty if they were not kept.
    count : int
        Number of events.
    robots : Robots
        Final state of the robots.
    cycle : tuple of int
        Deadlock cycle: each robot waits for the next, and the last for the first; empty
        if there is no cycle.
    waiting : dict
        Robots that wait at the end, each with the sector that it waits for and the
        robots that block it.
    collisions : int
        Number of collisions.
    decisions : Decisions
        Decision times of the supervisor.
    """

    task: Task
    ending: Ending
    time: float
    events: Events
    count: int
    robots: Robots
    cycle: tuple[int, ...]
    waiting: dict[int, tuple[int, tuple[int, ...]]]
    collisions: int
    decisions: Decisions = Decisions()

    @property
    def makespan(self) -> float | None:
        """Time at which the last robot finished, s; None if some did not finish."""
        return (
            float(self.robots.finished.max(initial=0.0))
            if self.ending is Ending.COMPLETED
            else None
        )

    @cached_property
    def metrics(self) -> dict[str, float | int]:
        """Metrics to compare runs; times in s."""
        r = self.robots
        # An empty array would make bincount guess the type of its result.
        kinds = (
            np.bincount(self.events.kind, minlength=len(KINDS))
            if len(self.events)
            else np.zeros(len(KINDS), int)
        )
        done = r.finished[r.done]
        # A robot counts until it finishes, or until the run ends.
        present = np.where(r.done, r.finished, self.time)
        return {
            "robots": len(self.task),
            "finished": int(r.done.sum()),
            "sum_of_completion_times_s": float(done.sum()),
            "mean_completion_time_s": float(done.mean()) if len(done) else 0.0,
            "waiting_time_s": float(r.waited.sum()),
            "longest_wait_of_a_robot_s": float(r.waited.max(initial=0.0)),
            "stops": int(r.stops.sum()),
            # A run that ends at time 0 has no mean number of robots.
            "robots_on_the_move": float((present - r.waited).sum() / self.time)
            if self.time
            else 0.0,
            "busiest_sector_share": self.busiest_share,
            "grants": int(kinds[runarrays.GRANT]),
            "collisions": self.collisions,
            "events": self.count,
        }

    def robot_rows(self) -> list[dict[str, Any]]:
        """Return one row for each robot, for tables.

        Returns
        -------
        list of dict
            ``robot``, ``done``, ``completion_s`` (0 if it has not finished),
            ``waited_s`` and ``stops``.
        """
        r = self.robots
        columns = zip(
            r.done.tolist(),
            r.finished.tolist(),
            r.waited.tolist(),
            r.stops.tolist(),
            strict=True,
        )
        return [
            {
                "robot": i,
                "done": done,
                "completion_s": round(t, 6),
                "waited_s": round(w, 6),
                "stops": stops,
            }
            for i, (done, t, w, stops) in enumerate(columns)
        ]

    def occupancy(self) -> tuple[F8, F8]:
        """Return the times from and until which each sector was occupied.

        Returns
        -------
        from, until : (n_sectors,) float64
            Times by global number, s; NaN in the first if the sector was never occupied.
            A sector that is still occupied counts until the end of the run.
        """
        task, e = self.task, self.events
        # NaN marks sectors that no robot has entered; sectors never released are
        # occupied to the end.
        begin, end = np.full(task.n_sectors, np.nan), np.full(task.n_sectors, self.time)
        for i, v in enumerate(task.vehicles):
            tail, head = v.occupied()
            # Sectors under a robot at its start have no event of entry.
            begin[task.first[i] + tail : task.first[i] + head + 1] = 0.0

        for kind, times in ((runarrays.ENTER, begin), (runarrays.RELEASE, end)):
            rows = e.kind == kind
            times[task.first[e.robot[rows]] + e.sector[rows]] = e.t[rows]

        return begin, end

    def sector_rows(self) -> list[dict[str, Any]]:
        """Return one row for each sector with conflicts, the longest occupied first.

        Returns
        -------
        list of dict
            ``robot``, ``sector``, ``visits``, ``occupied_s``, and ``share`` of the
            run's time. Sectors that were never occupied are left out.
        """
        begin, end = self.occupancy()
        starts, _ = self.task.conflicts
        busy = end - begin
        # Without conflicts no robot can wait for a sector, so its share says nothing.
        seen = np.flatnonzero((np.diff(starts) > 0) & ~np.isnan(begin))
        found = []
        # A stable sort keeps equally busy sectors in their order, whatever the
        # platform.
        for g in seen[np.argsort(-busy[seen], kind="stable")].tolist():
            robot, sector = self.task.robot_of(g)
            row = {
                "robot": robot,
                "sector": sector,
                "visits": 1,
                "occupied_s": round(float(busy[g]), 6),
            }
            found.append(row | {"share": round(float(busy[g]) / (self.time or 1.0), 6)})

        return found

    @property
    def busiest_share(self) -> float:
        """Greatest share of the run for which a sector with conflicts was occupied."""
        begin, end = self.occupancy()
        starts, _ = self.task.conflicts
        busy = (end - begin)[(np.diff(starts) > 0) & ~np.isnan(begin)]
        return round(float(busy.max(initial=0.0)) / (self.time or 1.0), 6)

    def to_json(self, events: bool = True) -> dict[str, Any]:
        """Return the result in the form of a result file.

        Parameters
        ----------
        events : bool
            Whether to include the events, which make most of the file.
        """
        out: dict[str, Any] = {
            "outcome": self.ending.value,
            "makespan_s": self.makespan,
            "time_s": self.time,
            "deadlock_cycle": list(self.cycle),
            "waiting": [
                {"robot": i, "sector": sector, "for": list(others)}
                for i, (sector, others) in self.waiting.items()
            ],
            "metrics": self.metrics,
            "decisions": {
                "count": self.decisions.count,
                "mean_s": self.decisions.mean,
                "longest_s": self.decisions.longest,
            },
        }
        if events:
            out["events"] = list(self.events.rows())
        return out

    def describe(self) -> str:
        """Return a description in one line for people."""
        if self.ending is Ending.COMPLETED:
            return f"completed in {self.makespan:.3f} s"
        if self.ending is Ending.COLLISION:
            rows = np.flatnonzero(self.events.kind == runarrays.COLLISION)
            if len(rows):
                i, j = int(self.events.robot[rows[0]]), int(self.events.sector[rows[0]])
                return f"collision of robots {i} and {j} at {float(self.events.t[rows[0]]):.3f} s"

            return f"collision at {self.time:.3f} s"

        if self.ending is Ending.DEADLOCK:
            who = (
                " → ".join(map(str, (*self.cycle, self.cycle[0]))) if self.cycle else ""
            )
            why = (
                f": robots {who} wait for each other"
                if who
                else ": the supervisor grants no sector that robots wait for"
            )
            return f"deadlock at {self.time:.3f} s{why}"

        return f"ended as unfinished at {self.time:.3f} s"


def waiting_robots(
    task: Task, state: I8, done: NDArray[np.bool_]
) -> dict[int, tuple[int, tuple[int, ...]]]:
    """Find the waiting robots, the sector each waits for, and their blockers.

    Parameters
    ----------
    task : Task
        Task with robots, paths and conflicts.
    state : (n, 4) int64
        Of each robot: highest sector permitted, highest asked for, oldest and newest
        occupied.
    done : (n,) bool
        Whether each robot has finished.

    Returns
    -------
    dict of int to (int, tuple of int)
        By number of the waiting robot, its sector and the robots that block it.
    """
    found = {}
    for i, (allowed, asked, _, _) in enumerate(state.tolist()):
        # A robot waits if it has requested more sectors than it may enter.
        if not done[i] and asked > allowed:
            found[i] = (allowed + 1, blockers_of(task, state, i))

    return found


def blockers_of(task: Task, state: I8, robot: int) -> tuple[int, ...]:
    """Return the robots that block the next sector that a robot needs.

    The blocking robots occupy, or may enter, a sector that conflicts with the needed
    one.

    Parameters
    ----------
    task : Task
        Task with robots, paths and conflicts.
    state : (n, 4) int64
        As for `waiting_robots`.
    robot : int
        Number of the robot, which may not yet enter all sectors of its path.
    """
    starts, others = task.conflicts
    # The next sector after the last permitted one, in the numbering of all robots'
    # sectors.
    g = int(task.first[robot] + state[robot, 0]) + 1
    blockers = set()
    for c in others[starts[g] : starts[g + 1]].tolist():
        j, sector = task.robot_of(c)
        # A robot holds the sectors from its rear to the last permitted one, entered or
        # not.
        if state[j, 2] <= sector <= max(state[j, 0], state[j, 3]):
            blockers.add(j)

    return tuple(sorted(blockers))


def who_waits(
    task: Task,
    state: I8,
    done: NDArray[np.bool_],
    ending: Ending,
    supervisor: Supervisor,
) -> tuple[dict[int, tuple[int, tuple[int, ...]]], tuple[int, ...]]:
    """Return the waiting robots at the end, and the cycle of a deadlock.

    Parameters
    ----------
    task : Task
        Task with robots, paths and conflicts.
    state : (n, 4) int64
        As for `waiting_robots`.
    done : (n,) bool
        Whether each robot has finished.
    ending : Ending
        Ending of the run; only a deadlock has a cycle.
    supervisor : Supervisor
        A supervisor that never grants has no cycle.

    Returns
    -------
    waiting : dict
        As `Outcome.waiting`.
    cycle : tuple of int
        As `Outcome.cycle`.
    """
    waiting = waiting_robots(task, state, done)
    # Without a deciding supervisor robots wait for its messages, not for each other.
    return waiting, find_cycle(
        waiting
    ) if ending is Ending.DEADLOCK and supervisor.decides else ()


def events_of(rows: list[tuple[float, int, int, int]]) -> Events:
    """Make events from rows.

    Parameters
    ----------
    rows : list of (float, int, int, int)
        Time, s, robot, index in `KINDS`, and sector, in the order of time.
    """
    # The shape keeps four columns when there are no rows.
    table = np.array(rows, np.float64).reshape(-1, 4)
    return Events(
        table[:, 0].copy(),
        table[:, 1].astype(np.int32),
        table[:, 2].astype(np.int8),
        table[:, 3].astype(np.int32),
    )


def find_cycle(waiting: dict[int, tuple[int, tuple[int, ...]]]) -> tuple[int, ...]:
    """Find a shortest cycle of the wait-for graph.

    Parameters
    ----------
    waiting : dict of int to (int, tuple of int)
        Waiting robots, as `waiting_robots` returns them.

    Returns
    -------
    tuple of int
        Robots of the cycle, from the lowest one on; empty if the graph has no cycle.
    """
    # Breadth-first search from each robot finds the shortest cycle through it.
    best: tuple[int, ...] = ()
    for start in sorted(waiting):
        before = {start: start}
        queue = deque([(start, 1)])
        found = False
        while queue and not found:
            i, length = queue.popleft()
            # No shorter cycle passes through this robot.
            if best and length >= len(best):
                break
            for j in waiting[i][1]:
                if j == start:
                    path = [i]
                    while path[-1] != start:
                        path.append(before[path[-1]])
                    cycle = tuple(reversed(path))
                    if not best or len(cycle) < len(best):
                        best = cycle
                    found = True
                    break

                if j in waiting and j not in before:
                    before[j] = i
                    queue.append((j, length + 1))

        # No robot waits for itself, so two is the shortest possible cycle.
        if len(best) == 2:
            break

    if not best:
        return ()
    # The cycle starts at its lowest number, so that equal deadlocks have equal texts.
    least = best.index(min(best))
    return best[least:] + best[:least]


def join_events(chunks: Iterable[tuple[Any, ...]]) -> Events:
    """Concatenate chunks of events.

    Parameters
    ----------
    chunks : iterable of tuples of arrays
        Times, robots, kinds and sectors of each chunk, in the order of time.
    """
    parts = list(chunks)
    # `np.concatenate` of no arrays would raise.
    if not parts:
        return Events(
            np.zeros(0),
            np.zeros(0, np.int32),
            np.zeros(0, np.int8),
            np.zeros(0, np.int32),
        )

    return Events(*(np.concatenate(column) for column in zip(*parts, strict=True)))


__all__ = [
    "KINDS",
    "Ending",
    "Events",
    "Outcome",
    "Robots",
    "events_of",
    "find_cycle",
    "join_events",
    "waiting_robots",
    "who_waits",
]
