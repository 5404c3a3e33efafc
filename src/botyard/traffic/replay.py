"""A run to look at: a page, complete in itself, with paths, sectors by their state, robots as disks, and who waits for whom."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from botyard.errors import WorldError
from botyard.safefile import write_text
from botyard.traffic.motion import Path2, motions
from botyard.traffic.outcome import Outcome
from botyard.traffic.task import F8, Task

_DIGITS = 4


def lanes(task: Task) -> list[F8]:
    """A path for every robot; those that have none get a straight one, side by side."""
    found = []
    for i, v in enumerate(task.vehicles):
        y = -2.5 * v.radius * i
        found.append(np.array([[0.0, y], [float(v.ends[-1]) + 1.0, y]]) if v.path is None else v.path)
    return found


def replay_data(outcome: Outcome) -> dict[str, Any]:
    """What the page shows.

    Returns
    -------
    dict
        ``title``, ``end`` (s) and ``robots``, each with ``path``, ``along``, ``ends``, ``critical``, ``radius``, ``finished``, ``gone``,
        ``motion`` (pieces of constant acceleration), ``held`` and ``inside`` (begin, end, sector), ``waits`` (begin, end, robots).
    """
    task, end = outcome.task, max(outcome.time, 0.001)
    starts, _ = task.conflicts
    critical = np.diff(starts) > 0
    held, inside, waits = _intervals(outcome, end)
    robots = []
    for i, (v, path, motion) in enumerate(zip(task.vehicles, lanes(task), motions(outcome), strict=True)):
        first = int(task.first[i])
        robots.append(
            {
                "path": np.round(path, _DIGITS).tolist(),
                "along": np.round(Path2(path).along, _DIGITS).tolist(),
                "ends": np.round(v.ends, _DIGITS).tolist(),
                "critical": critical[first : first + len(v.ends)].astype(int).tolist(),
                "radius": v.radius,
                "finished": float(outcome.robots.finished[i]) if outcome.robots.done[i] else 1e12,
                "gone": any(s == len(v.ends) - 1 and to <= end for _, to, s in inside[i]),
                "motion": motion.pieces(),
                "held": held[i],
                "inside": inside[i],
                "waits": waits[i],
            }
        )
    return {"title": f"{Path(task.name).name}: {outcome.describe()}", "end": end, "robots": robots}


Spans = list[list[list[Any]]]


def _intervals(outcome: Outcome, end: float) -> tuple[Spans, Spans, Spans]:
    """From when to when sectors are granted but not entered, and occupied, and who waits for whom."""
    task = outcome.task
    starts, others = task.conflicts
    n = len(task)
    held: Spans = [[] for _ in range(n)]
    inside: Spans = [[] for _ in range(n)]
    waits: Spans = [[] for _ in range(n)]
    granted: dict[tuple[int, int], float] = {}
    tail, allowed = [0] * n, [0] * n
    for i, v in enumerate(task.vehicles):
        tail[i], allowed[i] = v.occupied()
    head = allowed.copy()
    waiting: dict[int, tuple[float, tuple[int, ...]]] = {}
    finished: set[int] = set()

    def blockers(i: int) -> tuple[int, ...]:
        g = int(task.first[i]) + allowed[i] + 1
        if g >= task.first[i + 1]:
            return ()
        found = set()
        for c in others[starts[g] : starts[g + 1]].tolist():
            j, s = task.robot_of(c)
            if tail[j] <= s <= max(allowed[j], head[j]):
                found.add(j)
        return tuple(sorted(found))

    def close(i: int, t: float) -> None:
        if i in waiting:
            begin, who = waiting.pop(i)
            if t > begin:
                waits[i].append([begin, t, list(who)])

    for row in outcome.events.rows():
        t, i, kind, s = row["t"], row["robot"], row["kind"], row.get("sector", -1)
        if kind == "grant":
            granted[i, s] = t
            allowed[i] = max(allowed[i], s)
        elif kind == "enter":
            held[i].append([granted.pop((i, s), t), t, s])
            head[i] = s
        elif kind == "release":
            tail[i] = s + 1
        elif kind == "stop" and i not in finished:
            waiting[i] = (t, blockers(i))
        elif kind in ("start", "finish"):
            close(i, t)
            finished |= {i} if kind == "finish" else set()
        if kind in ("grant", "release"):
            for j in list(waiting):
                who = blockers(j)
                if who != waiting[j][1]:
                    close(j, t)
                    waiting[j] = (t, who)
    for i in list(waiting):
        if not outcome.robots.done[i]:
            close(i, end)
    for (i, s), t in granted.items():
        held[i].append([t, end, s])
    begins, ends = outcome.stays()
    for g in np.flatnonzero(~np.isnan(begins)).tolist():
        i, s = task.robot_of(g)
        inside[i].append([float(begins[g]), float(ends[g]) if s < tail[i] else end + 1.0, s])
    return held, inside, waits


def write_replay(outcome: Outcome, path: Path, *, overwrite: bool = False) -> None:
    """Write the page.

    Raises
    ------
    KeptFileError
        There is a file that botyard did not write, and `overwrite` is False.
    WorldError
        It cannot be written; the run's events were not kept.
    """
    if outcome.count and not len(outcome.events):
        raise WorldError("a replay needs the events of the run")
    page = files("botyard.traffic").joinpath("replay.html").read_text("utf-8")
    data = json.dumps(replay_data(outcome), separators=(",", ":")).replace("<", "\\u003c")
    try:
        write_text(path, page.replace("DATA", data, 1), force=overwrite)
    except OSError as error:
        raise WorldError(f"{path}: cannot be written: {error.strerror}") from None


__all__ = ["lanes", "replay_data", "write_replay"]
