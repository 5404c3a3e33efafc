"""Execution of one run: a user's function, a world, an outside program, or traffic."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from botyard.engine.snapshot import Snapshot
from botyard.errors import BotyardError
from botyard.formats.base import Options
from botyard.formats.mapsearch import find_map
from botyard.formats.registry import load_world
from botyard.geometry import Pose
from botyard.model.library import robot_of
from botyard.model.world import World
from botyard.processes.codeload import load_named
from botyard.sim.programs import is_controller
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import populate
from botyard.studies.run_spec import GoalPart, RobotPart, Setup, with_ports
from botyard.testing.conditions import Condition, Scenery, near
from botyard.testing.observer import TruthLog

CLEARANCE_RANGE_M: Final = 5.0
"""Maximum distance up to which clearance is measured, m."""
MAX_WORLDS: Final = 16
"""Maximum number of maps that a worker keeps in memory."""
END_SLACK_S: Final = 1e-9
"""Tolerance in comparisons of simulated time with limits, s.

Simulated time is a sum of steps, so it carries rounding errors.
"""


class SimulatedTimeError(BaseException):
    """The world of a user's function has exceeded its limit of simulated time.

    The class is not an `Exception`, because the simulator suppresses exceptions of step
    listeners.
    """


class BadResultError(BotyardError):
    """A user's function has returned an invalid result."""


@dataclass(slots=True)
class Conditions:
    """Everything that the runs of one worker share.

    Attributes
    ----------
    folder : Path
        Folder of the plan.
    simulated : float or None
        Limit of simulated time, s.
    worlds : dict
        Cache of maps, by name.
    started : callable
        Called with the process id of each program that a run starts.
    """

    folder: Path
    simulated: float | None = None
    worlds: dict[str, World] = field(default_factory=dict)
    started: Callable[[int], object] = lambda _pid: None

    def world(self, name: str) -> World:
        """Return a map by name; read it only once.

        Parameters
        ----------
        name : str
            File relative to the plan's folder, or the name of a shipped map.

        Raises
        ------
        MapError
            There is no such map, or it cannot be read.
        """
        if name not in self.worlds:
            path = self.folder / name
            if not os.path.isfile(path):
                path = find_map(name)
            # A dictionary keeps the order of insertion: this removes the map that was
            # read first.
            while len(self.worlds) >= MAX_WORLDS:
                del self.worlds[next(iter(self.worlds))]
            self.worlds[name] = load_world(
                path, Options(is_program=lambda one: is_controller(one, False))
            )

        return self.worlds[name]

    def code(self, name: str) -> str:
        """Return the name of code, with a file name resolved against the plan's folder."""
        where, separator, attribute = name.rpartition(":")
        return (
            f"{self.folder / where}{separator}{attribute}"
            if where.endswith(".py")
            else name
        )


def carry_out(
    setup: Setup,
    values: dict[str, Any],
    seed: int,
    conditions: Conditions,
    recording: Path | None = None,
) -> dict[str, Any]:
    """Carry out one run.

    Parameters
    ----------
    setup : Setup
        Description of the run.
    values : dict
        Parameter values, for a user's function.
    seed : int
        Seed of the run.
    conditions : Conditions
        Everything that the worker's runs share.
    recording : Path or None
        File to record the world to; None: no recording.

    Returns
    -------
    dict
        Measured values, as plain data.

    Raises
    ------
    SimulatedTimeError
        The world of a user's function exceeded its limit of simulated time.
    Exception
        Any error of the run, including errors of user code.
    """
    if setup.traffic is not None:
        return _traffic(setup, seed, conditions)
    if setup.run:
        return _function(setup, values, seed, conditions, recording)
    if setup.program is not None:
        return _program(setup, seed, conditions, recording)
    return _world(setup, seed, conditions, recording)


# -- worlds


def make_world(setup: Setup, seed: int, conditions: Conditions) -> Simulation:
    """Return the simulation of a run, before its first step.

    Parameters
    ----------
    setup : Setup
        Description of the run: map and robots. Controllers are not attached yet.
    seed : int
        Seed of the simulation.
    conditions : Conditions
        Cache of maps, and the plan's folder.

    Returns
    -------
    Simulation
        The world, with the settings of its map. Warnings are dropped.

    Raises
    ------
    BotyardError
        The map or a model cannot be read, or a robot does not fit.
    """
    if setup.map:
        world = conditions.world(setup.map)
        names = ("step", "odometry_error", "sensor_noise", "threads")
        # A setting that the map leaves open (None) keeps the simulator's default.
        settings = {
            name: value
            for name in names
            if (value := getattr(world.settings, name)) is not None
        }
        sim = Simulation(world.scene, seed=seed, warn=_ignore, **settings)
        populate(sim, world)
    else:
        sim = Simulation(seed=seed, warn=_ignore)

    for name, what in setup.robots.items():
        part = RobotPart(model=what) if isinstance(what, str) else what
        pose = (
            None
            if part.pose is None
            else Pose(part.pose[0], part.pose[1], math.radians(part.pose[2]))
        )
        model = (
            robot_of(part.model, name) if isinstance(part.model, dict) else part.model
        )
        sim.add_robot(model, name, pose=pose)

    return sim


def _ignore(_text: str) -> None:
    """Drop a warning, because it would repeat in every run."""


def _employ(sim: Simulation, setup: Setup, conditions: Conditions) -> None:
    """Attach the controllers of the setup to the robots."""
    for name, controller in setup.controllers.items():
        options = {} if isinstance(controller, str) else dict(controller)
        kind = controller if isinstance(controller, str) else options.pop("name", "")
        if name not in sim.robots:
            raise BadResultError(
                f'controllers: expected one of the robots {", ".join(sim.robots) or "(none)"}, found "{name}"'
            )

        sim.robots[name].set_controller(conditions.code(kind), **options)


@contextlib.contextmanager
def _recorded(sim: Simulation, path: Path | None) -> Iterator[None]:
    """Record a simulation to a file inside this block; None: do nothing."""
    if path is None:
        yield
        return

    with sim.record(path, overwrite=True):
        yield


def _function(
    setup: Setup,
    values: dict[str, Any],
    seed: int,
    conditions: Conditions,
    recording: Path | None,
) -> dict[str, Any]:
    """Run a user's function, with a world if the setup describes one."""
    function: Callable[[Simulation | None, dict[str, Any], int], object] = load_named(
        conditions.code(setup.run)
    )
    if not setup.has_world:
        return _checked(function(None, dict(values), seed))
    sim = make_world(setup, seed, conditions)
    _employ(sim, setup, conditions)
    if conditions.simulated is not None:
        # Half a step of slack: the last allowed step must not exceed the limit by
        # rounding.
        end = sim.time + conditions.simulated + sim.dt / 2

        def look(snapshot: Snapshot) -> None:
            if snapshot.time > end:
                raise SimulatedTimeError

        sim.after_step(look)

    with _recorded(sim, recording):
        return _checked(function(sim, dict(values), seed))


def _checked(result: object) -> dict[str, Any]:
    """Return a function's result as plain data.

    Parameters
    ----------
    result : object
        Result of the function. NumPy scalars become plain numbers, and NaN and
        infinity become None.

    Raises
    ------
    BadResultError
        The result is not a dict of names and scalars.
    """
    if not isinstance(result, Mapping):
        raise BadResultError(
            f"expected a dict of results, found {type(result).__name__}"
        )

    found = {}
    for name, value in result.items():
        if not isinstance(name, str) or not name or not _is_unicode(name):
            raise BadResultError(
                f"results: expected a name (non-empty text), found {name!r}"
            )
        # NumPy scalars and arrays of dimension 0 count as plain numbers.
        plain = (
            value.item()
            if hasattr(value, "item") and getattr(value, "ndim", 1) == 0
            else value
        )
        if isinstance(plain, float) and not math.isfinite(plain):
            # JSON has no NaN or infinity; the table shows a missing value instead.
            plain = None

        if (plain is not None and not isinstance(plain, bool | int | float | str)) or (
            isinstance(plain, str) and not _is_unicode(plain)
        ):
            raise BadResultError(
                f"{name}: expected a number, a text, True, False or None, found "
                f"{type(value).__name__}"
            )

        found[name] = plain

    return found


def _is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8.

    Names of files may contain lone surrogates, which cannot be encoded.
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _world(
    setup: Setup, seed: int, conditions: Conditions, recording: Path | None
) -> dict[str, Any]:
    """Run a world with its controllers until the goal is reached or time is up.

    The parameters are as for `carry_out`. The plan has a limit of simulated time.

    Returns
    -------
    dict
        The measures of the setup.
    """
    assert conditions.simulated is not None
    sim = make_world(setup, seed, conditions)
    _employ(sim, setup, conditions)
    truth = TruthLog(sim)
    _watch(setup, truth)
    goal = _condition(setup.goal)
    scenery, begin, reached = Scenery(sim, truth), sim.time, False
    with _recorded(sim, recording):
        while not reached and sim.time - begin < conditions.simulated - END_SLACK_S:
            sim.step()
            reached = goal is not None and goal(scenery)

    return _measured(setup, truth, reached, sim.time - begin)


def _condition(goal: GoalPart | None) -> Condition | None:
    """Return the goal of the run as a condition on the world; None without a goal."""
    if goal is None:
        return None
    heading = None if goal.heading is None else math.radians(goal.heading)
    return near(goal.robot, goal.target, goal.within, heading)


def _watch(setup: Setup, truth: TruthLog) -> None:
    """Switch on those measurements that cost time, if the run's description asks for them."""
    if "clearance" in setup.measures:
        for name in _measured_robots(setup, truth):
            truth.watch_clearance(name, CLEARANCE_RANGE_M)


def _measured_robots(setup: Setup, truth: TruthLog) -> list[str]:
    """Return the robots to measure: the robot of the goal, or all robots."""
    return [setup.goal.robot] if setup.goal is not None else list(truth.robots)


def _measured(
    setup: Setup, truth: TruthLog, reached: bool, time: float
) -> dict[str, Any]:
    """Return the measures of the setup by column name.

    Parameters
    ----------
    setup : Setup
        Description of the run: its measures and its goal.
    truth : TruthLog
        True motion of the robots.
    reached : bool
        Whether the goal was reached.
    time : float
        Simulated time of the run, s.

    Returns
    -------
    dict
        Values in the units of `MEASURES`. With several robots, measures of one robot
        have its name in front: ``bob.distance``. Unknown values are None.
    """
    found: dict[str, Any] = {}
    names = _measured_robots(setup, truth)
    for measure in setup.measures:
        if measure == "reached":
            found["reached"] = reached
        elif measure == "time":
            # A goal that was not reached has no time; the limit would distort the mean.
            found["time"] = time if reached or setup.goal is None else None
        else:
            for name in names:
                # With several robots, each robot has its own column: ``robot.measure``.
                column = measure if len(names) == 1 else f"{name}.{measure}"
                found[column] = _value(truth, name, measure)

    return found


def _value(truth: TruthLog, name: str, measure: str) -> float | int | None:
    """Return one measure of one robot; None if no obstacle came into the measured range."""
    one = truth[name]
    if measure == "contacts":
        return len(one.contacts)
    if measure == "clearance":
        return one.clearance if math.isfinite(one.clearance) else None
    return one.distance if measure == "distance" else one.stall_time


# -- programs outside


def _program(
    setup: Setup, seed: int, conditions: Conditions, recording: Path | None
) -> dict[str, Any]:
    """Run an outside program that controls the robots over the simulator's interfaces.

    The parameters are as for `carry_out`. Output of the program is printed at the end,
    also after an error.

    Returns
    -------
    dict
        The measures of the setup. A goal that was not reached in time is a result.

    Raises
    ------
    Failure
        The program failed: for example, it ended early or was not ready in time.
    """
    from botyard.testing.robotworld import RobotWorld
    from botyard.testing.runcondition import Failure
    from botyard.testing.worldsettings import Settings

    part = setup.program
    assert part is not None
    assert conditions.simulated is not None
    sim = make_world(setup, seed, conditions)
    settings = Settings(
        map=sim,
        seed=seed,
        speed=part.speed or math.inf,
        lockstep=part.lockstep,
        ros1=part.ros1,
        ros2=part.ros2,
        record="never" if recording is None else "always",
        options={},
    )
    with tempfile.TemporaryDirectory(prefix="botyard-study-") as folder:
        world = RobotWorld(settings, Path(folder))
        try:
            with world:
                world.call(_employ, world.sim, setup, conditions)
                world.call(_watch, setup, world.truth)
                since, reached = world.sim.time, False
                command = with_ports(part.command, world.ports)
                world.start(
                    command,
                    ready=part.ready,
                    cwd=conditions.folder,
                    started=conditions.started,
                )
                try:
                    world.run_until(
                        _condition(setup.goal), deadline=conditions.simulated
                    )
                    reached = setup.goal is not None
                except Failure:
                    # An unreached goal is a result. Any other failure, such as a
                    # program that exits early, is an error.
                    if world.sim.time - since < conditions.simulated - END_SLACK_S:
                        raise

                return world.call(
                    _measured, setup, world.truth, reached, world.sim.time - since
                )
        finally:
            for path in sorted(Path(folder).glob("program-*.log")):
                print(
                    path.read_text("utf-8", "replace"),
                    end="",
                    # Printed into the run's log, which is kept only if the run fails.
                )

            if recording is not None and world.recording is not None:
                # The recording is moved even after a failure, for example a missed
                # goal.
                shutil.move(world.recording, recording)


# -- traffic


def _traffic(setup: Setup, seed: int, conditions: Conditions) -> dict[str, Any]:
    """Run a traffic task with a supervisor and return its figures.

    Parameters
    ----------
    setup : Setup
        Description of the run, with its traffic part.
    seed : int
        Seed of generated tasks and of lost messages.
    conditions : Conditions
        The plan's folder.

    Returns
    -------
    dict
        Outcome and figures of the run, see `botyard.traffic.compare.Row`. Makespan and
        completion time are None if the task was not completed. The robots of a deadlock
        are one text.
    """
    from botyard.traffic.compare import Case, run_case
    from botyard.traffic.rules import Rules

    part = setup.traffic
    assert part is not None
    task = conditions.folder / part.task
    # With a number of robots, the task is a generated family; otherwise a file or a
    # shipped task.
    family = (
        part.task if part.robots else str(task if os.path.isfile(task) else part.task)
    )
    rules = Rules(
        time_limit=part.time_limit,
        stop_at_end=part.stop_at_end,
        leaves=part.leaves,
        goes_on=part.goes_on,
        original_braking=part.original_braking,
        latency=part.latency,
        jitter=part.jitter,
        loss=part.loss,
        seed=seed,
    )
    row = run_case(
        Case(family, part.robots, seed, conditions.code(part.supervisor)), rules
    )
    done = row.outcome == "completed"
    return {
        "outcome": row.outcome,
        "completed": done,
        "makespan": row.makespan if done else None,
        "completion": row.completion if done else None,
        "waiting": row.waiting,
        "stops": row.stops,
        "grants": row.grants,
        "events": row.events,
        "cycle": " ".join(map(str, row.cycle)),
    }


__all__ = [
    "CLEARANCE_RANGE_M",
    "BadResultError",
    "Conditions",
    "SimulatedTimeError",
    "carry_out",
    "make_world",
]
