"""Core of a simulation: engine, devices, queue of commands, journal.

`Simulation` is a `Core` with robots, files, states and pictures. Robots, sensors and
the fleet depend on the core alone, so that they need not import `Simulation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.api.revisions import Revisions
from botyard.devices.ranging import RangeDevices
from botyard.engine import commands as cmd
from botyard.engine.crowd import Crowd
from botyard.engine.layout import F8
from botyard.engine.simulation import Engine
from botyard.engine.snapshot import Snapshot
from botyard.engine.tables import Row, Table
from botyard.errors import NotNowError, UnknownNameError
from botyard.geometry import Pose, relative
from botyard.model.beams import Bundle
from botyard.model.robot import RobotSpec
from botyard.model.robotport import Timing
from botyard.model.scene import Scene
from botyard.sim.journal import (
    Change,
    Drive,
    Entry,
    Journal,
    Submit,
    SubmitVelocities,
    WriteDevice,
)
from botyard.sim.programs import Programs

_TELEPORTS = (cmd.SetPose, cmd.SetPoseAxis)
_COUNTED = (*_TELEPORTS, cmd.Hold, cmd.EnableMotors)
"""Commands that the simulation itself tracks."""
_HOLDING = "hold"
"""Source of all holds in the engine's queue.

One common source makes them take effect in order of arrival, not by source.
"""


class Member(ReadOnly):
    """Part of a robot that its commands and sensors depend on.

    See `botyard.sim.robot.BaseRobot`.

    Parameters
    ----------
    core : Core
        Simulation that contains the robot.
    name, spec, start
        See `botyard.sim.simulation.Robot`.
    """

    name: str
    """Unique name."""
    spec: RobotSpec
    """Robot model."""
    start: Pose
    """True pose at which the robot was added."""

    def __init__(self, core: Core, name: str, spec: RobotSpec, start: Pose) -> None:
        vars(self).update(name=name, spec=spec, start=start)
        self._sim = core
        self._teleports = 0
        self._is_left_off = False
        """Whether the motors are off because a client's session ended.

        See `BaseRobot.is_kept_off`.
        """

    def _put_back(self, pose: Pose, source: str) -> None:
        """Queue a placement at rest, with the odometry that starts there."""
        origin = self.spec.odometry_origin
        odometry = Pose() if origin is None else relative(origin, pose)
        for command in (cmd.SetPose(pose), cmd.Halt(), cmd.SetOdometry(odometry)):
            self._sim.submit(self.name, command, source)

    @property
    def _is_removed(self) -> bool:
        return isinstance(self._sim, _Removed)

    def _remove(self) -> None:
        """Mark this handle as removed.

        Later uses of the handle raise an error, also if another robot gets the same
        name.
        """
        # Sensors and commands of the robot share this reference.
        vars(self)["_sim"] = _Removed(self.name)


class _Removed:
    """Stand-in for the simulation of a removed robot.

    Every access raises `UnknownNameError`.
    """

    def __init__(self, robot: str) -> None:
        self._robot = robot

    def __getattr__(self, name: str) -> NoReturn:
        raise UnknownNameError(
            f'robot "{self._robot}" was removed from its simulation; '
            "add_robot makes another one"
        )


class Core(ReadOnly):
    """Engine with its devices.

    Every command and change passes through this class, so that the journal records it.

    Parameters
    ----------
    scene : Scene
        Static world.
    engine, devices
        Engine, and its range sensors.
    sensor_noise, range_step
        See `Simulation`.
    """

    scene: Scene
    """Static world."""
    sensor_noise: bool
    """Whether sensors have noise; False: they are exact."""
    _robots: Mapping[str, Member]

    def __init__(
        self,
        scene: Scene,
        engine: Engine,
        devices: RangeDevices,
        *,
        sensor_noise: bool,
        range_step: float,
    ) -> None:
        self._set_scene(scene)
        vars(self)["sensor_noise"] = sensor_noise
        self.range_step = range_step
        # Until a run loop sets them, real and simulated time are equal.
        step = engine.clock.dt
        self.timing = Timing(sim=step, real=step, last=step)
        self._engine = engine
        self._devices = devices
        self.crowd: Crowd = Crowd(engine)
        """Limit on the number of bodies that clients can place at one spot."""
        self._box_placements: dict[str, int] = {}
        """Number of placements of each box of the map, by name."""
        self._holds: dict[str, list[str]] = {}
        """Sources that hold a body, by name of the body."""
        self._configured: dict[tuple[str, int], Bundle] = {}
        """Laser beams that clients have configured, by robot and index."""
        self._parameters: dict[str, dict[str, list[float]]] = {}
        """Parameters that override a robot's model, by name of the robot."""
        self._programs = Programs()
        self._is_ours: Callable[[], bool] | None = None
        """Function that reports whether the calling thread may change the world.

        See `belong_to`.
        """
        self._journal = Journal()
        for table in engine.tables.values():
            self._watch(table)
        # Tables of optional devices appear later.
        engine.on_table = self._watch

    @property
    def engine(self) -> Engine:
        """Engine, for inspection; only the simulation may change it."""
        return self._engine

    @property
    def feed(self) -> Revisions:
        """Revision counters of rare changes, see `botyard.api.revisions`."""
        return self._engine.feed

    @property
    def box_names(self) -> tuple[str, ...]:
        """Names of the bodies of the map's boxes, in the order of `Scene.boxes`.

        They are the names in the map as `botyard.names.shown` shows them. A box gets
        another name if its own is taken.
        """
        return self._engine.box_names

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self._engine.clock.time

    @property
    def tick(self) -> int:
        """Number of steps done."""
        return self._engine.clock.tick

    def _time_of(self, tick: int) -> float:
        """Return the simulated time after `tick` steps, s."""
        # From the integer count, so that times do not drift.
        return tick * self._engine.clock.step_us / 1e6

    @property
    def dt(self) -> float:
        """Simulated time of one step, s."""
        return self._engine.clock.dt

    @property
    def seed(self) -> int:
        """Seed of all random draws."""
        return self._engine.seed

    @property
    def snapshot(self) -> Snapshot:
        """State after the last step; valid until the step after the next."""
        return self._engine.snapshot

    @property
    def is_pending(self) -> bool:
        """Whether commands are queued for the next step, or for `settle`."""
        return self._engine.is_pending

    @property
    def threads(self) -> int:
        """Highest number of threads for ray casting."""
        return self._devices.threads

    @property
    def colors(self) -> dict[str, str]:
        """Colour of each robot and box by name."""
        robots = {name: robot.spec.color for name, robot in self._robots.items()}
        return robots | {
            n: box.color
            for n, box in zip(self.box_names, self.scene.boxes, strict=True)
        }

    def belong_to(self, is_ours: Callable[[], bool] | None) -> None:
        """Let one thread alone step, change and save the world from now on.

        When bodies come and go, arrays are laid out anew. A kernel that another thread
        has called would continue in the old arrays.

        Parameters
        ----------
        is_ours : callable or None
            Returns whether the calling thread owns the world; None: any thread may step it, one
            at a time.
        """
        self._is_ours = is_ours

    def _check_thread(self) -> None:
        """Raise NotNowError if the world belongs to another thread."""
        if self._is_ours is not None and not self._is_ours():
            raise NotNowError(
                "this simulation is served, and another thread runs it: change "
                "and save it by `call` or `do` of the object that "
                "botyard.serve returned"
            )

    def submit(self, name: str, command: cmd.Command, source: str = "api") -> None:
        """Queue a command to a robot or a box for the next step.

        See `botyard.engine.commands`.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        NotNowError
            The world belongs to another thread, see `belong_to`. All methods that change the
            world raise it.
        """
        # The condition of `_check_thread` is repeated here to save a call on a hot
        # path.
        if self._is_ours is not None:
            self._check_thread()
        engine = self._engine
        if name not in engine.rows:
            self._check_there(name)
        # Most commands are velocities: one test lets them pass.
        if type(command) in _COUNTED:
            if isinstance(command, cmd.Hold):
                self.hold(name, command.on, source)
                return

            if isinstance(command, cmd.EnableMotors):
                if name in self._robots:
                    self._robots[name]._is_left_off = False
            # Clients compare the count to notice placements.
            elif name in self._robots:
                self._robots[name]._teleports += 1
            else:
                self._box_placements[name] = self._box_placements.get(name, 0) + 1

        engine.submit(name, command, source)
        # Checked here also for speed: usually there is no listener.
        if self._journal.is_read:
            if type(command) is cmd.SetVelocity:
                self._journal.note_velocity(self.tick, source, name, command)
            else:
                self._note(source, Submit, name, command)

    def submit_velocities(
        self, command: cmd.SetVelocities, source: str = "api"
    ) -> None:
        """Queue velocities of many bodies for the next step.

        Rows of the command are rows of the engine. Its arrays are copied.

        Raises
        ------
        CommandError
            Rows are not whole numbers, do not exist or occur twice, or another array has not
            the same length.
        """
        self._queue_velocities(command.checked(len(self._engine.specs)), source)

    def _queue_velocities(self, command: cmd.SetVelocities, source: str) -> None:
        """Queue velocities with checked rows and arrays that no other code changes."""
        self._check_thread()
        self._note(source, SubmitVelocities, command)
        self._engine.submit_velocities(command, source)

    def hold(self, name: str, on: bool = True, source: str = "api") -> None:
        """Hold a robot or a box in place, for example to drag it with `put`.

        After the release it continues with its commands. A body is held as long as any
        source holds it; a source can release only its own hold (`holders`).

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            `on` is neither True nor False.
        """
        self._check_thread()
        self._check_there(name)
        command = cmd.Hold(arguments.flag(on, "on"))
        # A source holds a body at most once.
        holders = [one for one in self._holds.pop(name, ()) if one != source]
        if on:
            holders.append(source)
        if holders:
            self._holds[name] = holders
        # The body is released only when the last source lets go.
        self._engine.submit(name, cmd.Hold(bool(holders)), _HOLDING)
        self._note(source, Submit, name, command)

    def placements(self, name: str) -> int:
        """Return the number of placements of a robot or a box, from all sources.

        Raise UnknownNameError (a KeyError) if no body has that name.
        """
        self._check_there(name)
        robot = self._robots.get(name)
        return self._box_placements.get(name, 0) if robot is None else robot._teleports

    def holders(self, name: str) -> tuple[str, ...]:
        """Return the sources that hold a robot or a box; see `hold`.

        Raise UnknownNameError (a KeyError) if no body has that name.
        """
        self._check_there(name)
        return tuple(self._holds.get(name, ()))

    def journal(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Register a listener that is called at once for every change from outside.

        Parameters
        ----------
        listener : callable
            Receives a `botyard.sim.journal.Entry`: tick, number, source and change.

        Returns
        -------
        callable
            Unregisters the listener.
        """
        return self._journal.listen(arguments.function(listener, "listener"))

    def _journal_of_driving(
        self, listener: Callable[[Entry], None], drive: Drive
    ) -> Callable[[], None]:
        """Register a journal listener that receives velocities without entries.

        See `botyard.sim.journal.Journal.listen`.
        """
        return self._journal.listen(listener, drive)

    def _note(
        self, source: str | None, kind: Callable[..., Change], *values: object
    ) -> None:
        """Record a change in the journal if it has listeners.

        With None, `source` is the present actor; see `botyard.sim.journal.acting`.
        """
        if self._journal.is_read:
            self._journal.note(self.tick, source, kind(*values))

    def _watch(self, table: Table) -> None:
        """Record writes to a table in the journal."""
        table.on_write = self._note_device

    def _note_device(self, row: Row[Any], values: Mapping[str, Any]) -> None:
        if values and self._journal.is_read:
            self._journal.note(
                self.tick, None, WriteDevice(row.table.name, row.number, dict(values))
            )

    def _rounded(self, ranges: F8) -> F8:
        if self.range_step <= 0.0:
            return ranges
        rounded: F8 = np.rint(ranges / self.range_step) * self.range_step
        return rounded

    def _check_there(self, *names: str) -> None:
        """Raise UnknownNameError (a KeyError) unless all are names of robots or boxes."""
        for name in names:
            if not isinstance(name, str) or name not in self._engine.rows:
                raise arguments.unknown(name, self._engine.rows)

    def _set_scene(self, scene: Scene) -> None:
        object.__setattr__(self, "scene", scene)


__all__ = ["Core", "Member"]
