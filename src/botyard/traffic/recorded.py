"""Runs of traffic as recordings (MCAP), with robot motion and events.

The event-driven engine has no 2-D world. The module therefore makes a `Simulation` in which each
robot is a disc that is moved along its path. Every tool for recordings then works with the result:
``botyard replay``, ``botyard render``, ``botyard export``, `botyard.recording.load`, Foxglove.

The kinds of events are `botyard.traffic.outcome.KINDS`. An event has the numbers of the
robot and of the sector; a collision has the number of the other robot instead. A
``stop`` also lists the robots that it waits for (``waits_for``). The channel is
``/botyard/events`` (`botyard.recording.recorder`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from botyard.errors import WorldError
from botyard.model.scene import Scene
from botyard.model.world import thing
from botyard.numerics.elementary import atan2, cos, sin
from botyard.sim.recordings import Recording
from botyard.sim.simulation import Simulation
from botyard.traffic.motion import Path2, motions
from botyard.traffic.outcome import KINDS, Outcome, blockers_of
from botyard.traffic.replay import lanes
from botyard.traffic.task import Task

BEGIN: Final = "start of the run"
"""First event: ``robots``, their names, and ``occupied``.

``occupied`` holds the first and the last sector under each robot at the start.
"""
END: Final = "end of the run"
"""Last event: the ending of the run, and its time ``t``, s."""
STEP_S: Final = 0.1
"""Time step of the recorded world, s."""
MODEL: Final = "vehicle"
"""Model name of the robots."""
COLORS: Final = (
    "#1f77b4",
    "#ff7f0e",
    "#2ca02c",
    "#d62728",
    "#9467bd",
    "#8c564b",
    "#e377c2",
    "#7f7f7f",
    "#bcbd22",
    "#17becf",
)
"""Colours of robots; they repeat for more robots."""
_CORNERS: Final = 24
_MOVED_M: Final = 1e-9
_WORDS: Final = {
    "grant": "robot {robot} may enter sector {sector}",
    "critical": "robot {robot} asks for sector {sector}",
    "enter": "robot {robot} enters sector {sector}",
    "release": "robot {robot} has left sector {sector}",
    "stop": "robot {robot} waits",
    "start": "robot {robot} continues",
    "finish": "robot {robot} has finished",
    "collision": "robots {robot} and {other} collide",
}


def write_recording(outcome: Outcome, path: Path, *, overwrite: bool = False) -> None:
    """Write a run of the event-driven engine as a recording.

    Parameters
    ----------
    outcome : Outcome
        A run whose events were kept.
    path : Path
        Path of the recording.
    overwrite : bool
        Replace a file that botyard did not write.

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
    task = outcome.task
    sim = Simulation(
        Scene(name=task.name or "traffic"),
        step=STEP_S,
        odometry_error="none",
        warn=lambda _: None,
    )
    paths, along = [Path2(lane) for lane in lanes(task)], motions(outcome)
    count = max(1, math.ceil(outcome.time / STEP_S))
    times = np.minimum(np.arange(count + 1) * STEP_S, outcome.time)
    places = (
        np.stack(
            [
                way.at(motion.place(times))
                for way, motion in zip(paths, along, strict=True)
            ]
        )
        if len(task)
        else None
    )
    names = robot_names(task)
    for i, vehicle in enumerate(task.vehicles):
        # A polygon of 24 corners looks like the disk of the engine.
        disc = tuple(
            (
                vehicle.radius * cos(2.0 * math.pi * k / _CORNERS),
                vehicle.radius * sin(2.0 * math.pi * k / _CORNERS),
            )
            for k in range(_CORNERS)
        )
        assert places is not None
        sim.add_robot(
            # Another model name, because a model that `thing` has named counts as an obstacle.
            replace(thing(disc, color=COLORS[i % len(COLORS)]), name=MODEL),
            names[i],
            pose=(*places[i, 0].tolist(), 0.0),
        )

    try:
        recording = sim.record(path, overwrite=overwrite)
    except OSError as error:
        raise WorldError(f"{path}: cannot be written: {error.strerror}") from None

    with recording:
        notes = Notes(recording, task)
        said, events = 0, outcome.events
        columns = (events.t, events.robot, events.kind, events.sector)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        for k in range(1, count + 1):
            if places is not None:
                # A robot that stands keeps its heading; atan2 of no motion would turn
                # it to 0.
                step = places[:, k] - places[:, k - 1]
                for i in np.flatnonzero(np.abs(step).max(axis=1) > _MOVED_M).tolist():
                    sim.put(
                        names[i],
                        (*places[i, k].tolist(), atan2(step[i, 1], step[i, 0])),
                    )

            sim.step()
            # The last step writes all remaining events, because rounding can put one
            # just after it.
            while said < len(rows) and (rows[said][0] <= times[k] or k == count):
                notes.event(*rows[said])
                said += 1

        notes.end(outcome)

    if recording.error:
        raise WorldError(f"{path}: {recording.error}")


def robot_names(task: Task) -> list[str]:
    """Return the names of a task's robots, in recordings and in the 2-D engine."""
    return [f"traffic{i}" for i in range(len(task))]


class Notes:
    """Writer of a run's events into a recording; it starts with the event `BEGIN`.

    Parameters
    ----------
    recording : Recording
        The recording.
    task : Task
        The task of the run.
    """

    def __init__(self, recording: Recording, task: Task) -> None:
        self._recording, self._task = recording, task
        names, occupied = (
            robot_names(task),
            [list(vehicle.occupied()) for vehicle in task.vehicles],
        )
        # Columns: highest sector permitted, highest asked for, oldest and newest
        # occupied; see `waiting_robots`.
        self._state = np.array(
            [[last, last, first, last] for first, last in occupied], np.int64
        ).reshape(-1, 4)
        recording.event(
            BEGIN,
            f"{len(names)} robots on sector paths",
            robots=names,
            occupied=occupied,
        )

    def event(self, t: float, robot: int, kind: int, sector: int) -> None:
        """Write an event of the run. Events must come in the order of time.

        Parameters
        ----------
        t : float
            Time, s.
        robot : int
            Number of the robot.
        kind : int
            Index in `KINDS`.
        sector : int
            Number of the sector on the robot's path; for a collision the other robot.
        """
        name, more = KINDS[kind], dict[str, Any]()
        if name == "collision":
            more["other"] = sector
        else:
            more["sector"] = sector

        words = _WORDS[name].format(robot=robot, **more)
        if name == "stop":
            others = self._blockers(robot)
            if others:
                more["waits_for"] = others
                words += f" for {', '.join(f'robot {other}' for other in others)}"

        # Blockers are found first: they are the robots in the way before this event.
        self._follow(name, robot, sector)
        self._recording.event(name, words, t=round(t, 9), robot=robot, **more)

    def end(self, outcome: Outcome) -> None:
        """Write the ending of the run (`END`)."""
        self._recording.event(END, outcome.describe(), t=outcome.time)

    def _blockers(self, robot: int) -> list[int]:
        """Return the robots that block a robot when it stops."""
        allowed, asked = self._state[robot, :2].tolist()
        return (
            list(blockers_of(self._task, self._state, robot)) if asked > allowed else []
        )

    def _follow(self, kind: str, robot: int, sector: int) -> None:
        state = self._state[robot]
        if kind == "grant":
            state[0] = max(state[0], sector)
        elif kind == "critical":
            state[1] = max(state[1], sector)
        elif kind == "enter":
            state[0], state[3] = max(state[0], sector), sector
        elif kind == "release":
            state[2] = sector + 1
        # A finished robot occupies no sector.
        elif kind == "finish":
            state[:] = -1, -1, 0, -1


__all__ = ["BEGIN", "END", "STEP_S", "Notes", "robot_names", "write_recording"]
