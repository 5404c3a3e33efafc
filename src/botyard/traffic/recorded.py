"""Runs of traffic as recordings (MCAP): the robots move as they did, and what the supervisor and they did are events.

A run between sectors has no world: a `Simulation` is made of it, in which each robot is a disc that is put along its path. So everything
that takes recordings takes these: ``botyard replay``, ``botyard render``, ``botyard export``, `botyard.recording.load`, Foxglove.

Events are those of `botyard.traffic.outcome.KINDS`, with the numbers of the robot and of the sector, or of the other robot of a collision,
and, of one that stops, of the robots for which it waits (``waits_for``);
the channel is ``/botyard/events`` (`botyard.recording.recorder`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from botyard.elementary import atan2, cos, sin
from botyard.errors import WorldError
from botyard.model.scene import Scene
from botyard.model.world import thing
from botyard.sim.recordings import Recording
from botyard.sim.simulation import Simulation
from botyard.traffic.motion import Path2, motions
from botyard.traffic.outcome import KINDS, Outcome, blockers_of
from botyard.traffic.replay import lanes
from botyard.traffic.task import Task

BEGIN: Final = "start of the run"
"""Event before all others: ``robots``, their names, and ``occupied``, the first and last sector in which each begins."""
END: Final = "end of the run"
"""Event after all others: how it ended, and ``t``, when, s."""
STEP_S: Final = 0.1
"""Time of a step of the recorded world, s."""
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
"""Colours of robots, in turns."""
_CORNERS: Final = 24
_MOVED_M: Final = 1e-9
_WORDS: Final = {
    "grant": "robot {robot} may enter sector {sector}",
    "critical": "robot {robot} asks for sector {sector}",
    "enter": "robot {robot} enters sector {sector}",
    "release": "robot {robot} has left sector {sector}",
    "stop": "robot {robot} waits",
    "start": "robot {robot} goes on",
    "finish": "robot {robot} has finished",
    "collision": "robots {robot} and {other} collide",
}


def write_recording(outcome: Outcome, path: Path, *, overwrite: bool = False) -> None:
    """Write a run between sectors as a recording.

    Parameters
    ----------
    outcome : Outcome
        A run whose events were kept.
    path : Path
        The file.
    overwrite : bool
        Replace a file that botyard did not write.

    Raises
    ------
    KeptFileError
        There is a file that botyard did not write, and `overwrite` is False.
    WorldError
        The file cannot be written; the events of the run were not kept.
    """
    if outcome.count and not len(outcome.events):
        raise WorldError("a recording needs the events of the run")
    task = outcome.task
    sim = Simulation(Scene(name=task.name or "traffic"), step=STEP_S, odometry_error="none", warn=lambda _: None)
    paths, along = [Path2(lane) for lane in lanes(task)], motions(outcome)
    count = max(1, math.ceil(outcome.time / STEP_S))
    times = np.minimum(np.arange(count + 1) * STEP_S, outcome.time)
    places = (
        np.stack([way.at(motion.place(times)) for way, motion in zip(paths, along, strict=True)]) if len(task) else None
    )
    names = robot_names(task)
    for i, vehicle in enumerate(task.vehicles):
        disc = tuple(
            (vehicle.radius * cos(2.0 * math.pi * k / _CORNERS), vehicle.radius * sin(2.0 * math.pi * k / _CORNERS))
            for k in range(_CORNERS)
        )
        assert places is not None
        sim.add_robot(thing(disc, color=COLORS[i % len(COLORS)]), names[i], pose=(*places[i, 0].tolist(), 0.0))
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
                step = places[:, k] - places[:, k - 1]
                for i in np.flatnonzero(np.abs(step).max(axis=1) > _MOVED_M).tolist():
                    sim.put(names[i], (*places[i, k].tolist(), atan2(step[i, 1], step[i, 0])))
            sim.step()
            while said < len(rows) and (rows[said][0] <= times[k] or k == count):
                notes.event(*rows[said])
                said += 1
        notes.end(outcome)
    if recording.error:
        raise WorldError(f"{path}: {recording.error}")


def robot_names(task: Task) -> list[str]:
    """Names of the robots of a task, in recordings and in the 2-D engine."""
    return [f"traffic{i}" for i in range(len(task))]


class Notes:
    """Writes what happens in a run of traffic into a recording, as events; begins with `BEGIN`.

    Parameters
    ----------
    recording : Recording
        The recording.
    task : Task
        The task of the run.
    """

    def __init__(self, recording: Recording, task: Task) -> None:
        self._recording, self._task = recording, task
        names, occupied = robot_names(task), [list(vehicle.occupied()) for vehicle in task.vehicles]
        # highest sector permitted, highest asked for, oldest and newest occupied: see `waiting_robots`
        self._state = np.array([[last, last, first, last] for first, last in occupied], np.int64).reshape(-1, 4)
        recording.event(BEGIN, f"{len(names)} robots on sector paths", robots=names, occupied=occupied)

    def event(self, t: float, robot: int, kind: int, sector: int) -> None:
        """Write an event as engines have it: numbers of robot and kind; sector, or the other robot of a collision."""
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
        self._follow(name, robot, sector)
        self._recording.event(name, words, t=round(t, 9), robot=robot, **more)

    def end(self, outcome: Outcome) -> None:
        """Write how the run has ended (`END`)."""
        self._recording.event(END, outcome.describe(), t=outcome.time)

    def _blockers(self, robot: int) -> list[int]:
        """The robots for which a robot waits that stops now."""
        allowed, asked = self._state[robot, :2].tolist()
        return list(blockers_of(self._task, self._state, robot)) if asked > allowed else []

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
        elif kind == "finish":  # it is in no sector
            state[:] = -1, -1, 0, -1


__all__ = ["BEGIN", "END", "STEP_S", "Notes", "robot_names", "write_recording"]
