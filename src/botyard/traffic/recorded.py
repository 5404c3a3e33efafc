"""Runs of traffic as recordings (MCAP): the robots move as they did, and what the supervisor and they did are events.

A run between sectors has no world: a `Simulation` is made of it, in which each robot is a disc that is put along its path. So everything
that takes recordings takes these: ``botyard replay``, ``botyard render``, ``botyard export``, `botyard.recording.load`, Foxglove.

Events are those of `botyard.traffic.outcome.KINDS`, with the numbers of the robot and of the sector, or of the other robot of a collision;
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
from botyard.traffic.outcome import KINDS, Outcome
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
        note_begin(recording, task)
        said = 0
        rows = list(outcome.events.rows())
        for k in range(1, count + 1):
            if places is not None:
                step = places[:, k] - places[:, k - 1]
                for i in np.flatnonzero(np.abs(step).max(axis=1) > _MOVED_M).tolist():
                    sim.put(names[i], (*places[i, k].tolist(), atan2(step[i, 1], step[i, 0])))
            sim.step()
            while said < len(rows) and (rows[said]["t"] <= times[k] or k == count):
                note(recording, **rows[said])
                said += 1
        note_end(recording, outcome)
    if recording.error:
        raise WorldError(f"{path}: {recording.error}")


def robot_names(task: Task) -> list[str]:
    """Names of the robots of a task, in recordings and in the 2-D engine."""
    return [f"traffic{i}" for i in range(len(task))]


def note_begin(recording: Recording, task: Task) -> None:
    """Write into a recording which robots there are and where they begin (`BEGIN`)."""
    names = robot_names(task)
    occupied = [list(vehicle.occupied()) for vehicle in task.vehicles]
    recording.event(BEGIN, f"{len(names)} robots on sector paths", robots=names, occupied=occupied)


def note_end(recording: Recording, outcome: Outcome) -> None:
    """Write into a recording how its run has ended (`END`)."""
    recording.event(END, outcome.describe(), t=outcome.time)


def note(recording: Recording, *, kind: str, robot: int, **values: Any) -> None:
    """Write an event of a run into a recording; `kind` is one of `KINDS`."""
    recording.event(kind, _WORDS[kind].format(robot=robot, **values), robot=robot, **values)


def note_of(recording: Recording, t: float, robot: int, kind: int, sector: int) -> None:
    """`note` for an event as engines have it: numbers of robot and kind; sector, or the other robot of a collision."""
    name = KINDS[kind]
    note(recording, kind=name, robot=robot, t=round(t, 9), **{"other" if name == "collision" else "sector": sector})


__all__ = ["BEGIN", "END", "STEP_S", "note", "note_begin", "note_end", "note_of", "robot_names", "write_recording"]
