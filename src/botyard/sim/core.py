"""The core of a simulation that robots, sensors and the fleet depend on: engine,
devices, queue of commands, journal.

`Simulation` is a `Core` with robots, files, states and pictures. The core is a module
of its own so that its parts need not import `Simulation`.
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
"""Source of all holds in the engine's queue, so that they take effect in order of
arrival, not by source.
"""


class Member(ReadOnly):
    """The part of a robot that its commands and sensors depend on; see
    `botyard.sim.robot.BaseRobot`.

    Parameters
    ----------
    core : Core
        The simulation that it is in.
    name, spec, start
        See `botyard.sim.simulation.Robot`.
    """

    name: str
    """Its unique name."""
    spec: RobotSpec
    """Its model."""
    start: Pose
    """True pose at which it was added."""

    def __init__(self, core: Core, name: str, spec: RobotSpec, start: Pose) -> None:
        vars(self).update(name=name, spec=spec, start=start)
        self._sim = core
        self._teleports = 0
        self._is_left_off = False
        """Whether the motors are off because of the end of a client's session, see
        `BaseRobot.is_kept_off`.
        """

    def _put_back(self, pose: Pose, source: str) -> None:
        """Queue: go to a pose, with the odometry that begins there, at rest."""
        origin = self.spec.odometry_origin
        odometry = Pose() if origin is None else relative(origin, pose)
        for command in (cmd.SetPose(pose), cmd.Halt(), cmd.SetOdometry(odometry)):
            self._sim.submit(self.name, command, source)

    @property
    def _is_removed(self) -> bool:
        return isinstance(self._sim, _Removed)

    def _remove(self) -> None:
        """It was removed: whoever uses this handle from now on is told, also when
        another robot gets its name.
        """
        vars(self)["_sim"] = _Removed(self.name)


class _Removed:
    """Replaces the simulation of a removed robot: every access raises
    `UnknownNameError`.
    """

    def __init__(self, robot: str) -> None:
        self._robot = robot

    def __getattr__(self, name: str) -> NoReturn:
        raise UnknownNameError(
            f'robot "{self._robot}" was removed from its simulation; add_robot makes another one'
        )


class Core(ReadOnly):
    """The engine with its devices. Every command and change passes through this class,
    so that the journal records it.

    Parameters
    ----------
    scene : Scene
        The static world.
    engine, devices
        The engine, and its range sensors.
    sensor_noise, range_step
        See `Simulation`.
    """

    scene: Scene
    """The static world."""
    sensor_noise: bool
    """False: sensors are exact."""
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
        step = engine.clock.dt
        self.timing = Timing(sim=step, real=step, last=step)
        self._engine = engine
        self._devices = devices
        self.crowd: Crowd = Crowd(engine)
        """Limits the number of bodies that clients can place at one spot."""
        self._box_placements: dict[str, int] = {}
        """Number of times that each box of the map was placed, by its name."""
        self._holds: dict[str, list[str]] = {}
        """Sources that hold a body, by its name."""
        self._configured: dict[tuple[str, int], Bundle] = {}
        """Beams of lasers that clients have configured, by robot and index."""
        self._parameters: dict[str, dict[str, list[float]]] = {}
        """What robots have instead of their models' parameters, by their names."""
        self._programs = Programs()
        self._is_ours: Callable[[], bool] | None = None
        """Whether the calling thread may change the world, see `belong_to`."""
        self._journal = Journal()
        for table in engine.tables.values():
            self._watch(table)
        engine.on_table = self._watch

    @property
    def engine(self) -> Engine:
        """The engine, for inspection; only the simulation may change it."""
        return self._engine

    @property
    def feed(self) -> Revisions:
        """Revision counters of what changes seldom, see `botyard.api.revisions`."""
        return self._engine.feed

    @property
    def box_names(self) -> tuple[str, ...]:
        """Names of the bodies of the map's boxes, in the order of `Scene.boxes`.

        They are those of the map as `botyard.names.shown` shows them; a box gets
        another name where that one is taken.
        """
        return self._engine.box_names

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self._engine.clock.time

    @property
    def tick(self) -> int:
        """Steps done."""
        return self._engine.clock.tick

    def _time_of(self, tick: int) -> float:
        """Simulated time after so many steps, s."""
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
        """Maximum number of threads for ray casting."""
        return self._devices.threads

    @property
    def colors(self) -> dict[str, str]:
        """Colour of each robot and box by its name."""
        robots = {name: robot.spec.color for name, robot in self._robots.items()}
        return robots | {
            n: box.color
            for n, box in zip(self.box_names, self.scene.boxes, strict=True)
        }

    def belong_to(self, is_ours: Callable[[], bool] | None) -> None:
        """Let one thread alone step, change and save the world from now on.

        Arrays are laid out anew when bodies come and go, and a kernel that another
        thread has called would go on in the old ones.

        Parameters
        ----------
        is_ours : callable or None
            Whether the calling thread is that one; None: whoever steps the world, one
            at a time.
        """
        self._is_ours = is_ours

    def _check_thread(self) -> None:
        """Raise NotNowError if the world belongs to another thread."""
        if self._is_ours is not None and not self._is_ours():
            raise NotNowError(
                "this simulation is served, and another thread runs it: change "
                "and save it by `call` or `do` of what "
                "botyard.serve has given"
            )

    def submit(self, name: str, command: cmd.Command, source: str = "api") -> None:
        """Queue a command to a robot or a box for the next step; see
        `botyard.engine.commands`.

        Raises
        ------
        UnknownNameError
            A KeyError: nothing has that name.
        NotNowError
            The world belongs to another thread, see `belong_to`; all methods that
            change it raise that.
        """
        # asked here, too: it is called very often
        if self._is_ours is not None:
            self._check_thread()
        engine = self._engine
        if name not in engine.rows:
            self._check_there(name)
        if type(command) in _COUNTED:
            if isinstance(command, cmd.Hold):
                self.hold(name, command.on, source)
                return

            if isinstance(command, cmd.EnableMotors):
                if name in self._robots:
                    self._robots[name]._is_left_off = False
            elif name in self._robots:
                self._robots[name]._teleports += 1
            else:
                self._box_placements[name] = self._box_placements.get(name, 0) + 1

        engine.submit(name, command, source)
        if (
            self._journal.is_read
        ):  # checked here, too, for speed: mostly there is no listener
            if type(command) is cmd.SetVelocity:
                self._journal.note_velocity(self.tick, source, name, command)
            else:
                self._note(source, Submit, name, command)

    def submit_velocities(
        self, command: cmd.SetVelocities, source: str = "api"
    ) -> None:
        """Queue velocities of many bodies for the next step; its rows are those of the
        engine. Its arrays are copied.

        Raises
        ------
        CommandError
            Rows are not whole numbers, are not there or are there twice, or other
            arrays have not as many numbers.
        """
        self._queue_velocities(command.checked(len(self._engine.specs)), source)

    def _queue_velocities(self, command: cmd.SetVelocities, source: str) -> None:
        """`submit_velocities` for arrays that nobody else can change, and rows that are
        known to be right.
        """
        self._check_thread()
        self._note(source, SubmitVelocities, command)
        self._engine.submit_velocities(command, source)

    def hold(self, name: str, on: bool = True, source: str = "api") -> None:
        """Hold a robot or a box in place, for example to drag it with `put`; when
        released, it goes on with its commands.

        A body is held as long as any source holds it; a source can release only its own
        hold (`holders`).

        Raises
        ------
        UnknownNameError
            A KeyError: nothing has that name.
        ArgumentError
            `on` is neither True nor False.
        """
        self._check_thread()
        self._check_there(name)
        command = cmd.Hold(arguments.flag(on, "on"))
        holders = [one for one in self._holds.pop(name, ()) if one != source]
        if on:
            holders.append(source)
        if holders:
            self._holds[name] = holders
        self._engine.submit(name, cmd.Hold(bool(holders)), _HOLDING)
        self._note(source, Submit, name, command)

    def placements(self, name: str) -> int:
        """Number of times that a robot or a box was placed, by whomever.
        UnknownNameError (a KeyError) when nothing has that name.
        """
        self._check_there(name)
        robot = self._robots.get(name)
        return self._box_placements.get(name, 0) if robot is None else robot._teleports

    def holders(self, name: str) -> tuple[str, ...]:
        """Sources that hold a robot or a box, see `hold`. UnknownNameError (a KeyError)
        when nothing has that name.
        """
        self._check_there(name)
        return tuple(self._holds.get(name, ()))

    def journal(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Register a listener that is called for every change of the world from
        outside, when it is made.

        Parameters
        ----------
        listener : callable
            Called with a `botyard.sim.journal.Entry`: tick, number, source and change.

        Returns
        -------
        callable
            Unregisters the listener.
        """
        return self._journal.listen(arguments.function(listener, "listener"))

    def _journal_of_driving(
        self, listener: Callable[[Entry], None], drive: Drive
    ) -> Callable[[], None]:
        """`journal` for who takes velocities without entries, see
        `botyard.sim.journal.Journal.listen`.
        """
        return self._journal.listen(listener, drive)

    def _note(
        self, source: str | None, kind: Callable[..., Change], *values: object
    ) -> None:
        """Record a change in the journal, if it has listeners. `source`: None is the
        present actor, see `botyard.sim.journal.acting`.
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
