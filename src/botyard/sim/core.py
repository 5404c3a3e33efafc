"""Core of a simulation: engine, devices, robots, queue of commands, journal.

Robots, sensors and the fleet depend on the core alone, so that they need not import
`Simulation`. `botyard.sim.simulationcore` adds places and states to it; that object is
`Simulation.core`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.api.revisions import Subject
from botyard.devices.ranging import RangeDevices
from botyard.engine import commands as cmd
from botyard.engine.bodyspec import robot_body
from botyard.engine.layout import F8, Grid
from botyard.engine.overlap_limit import OverlapLimit
from botyard.engine.simulation import Engine
from botyard.engine.snapshot import Snapshot
from botyard.engine.tables import Row, Table
from botyard.engine.velocities import SetVelocities
from botyard.errors import NotNowError
from botyard.formats.base import Warn
from botyard.geometry import Pose, relative
from botyard.model.beams import Bundle
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.robotstate import Timing
from botyard.model.scene import Scene
from botyard.model.world import Program
from botyard.names import MAX_NAME
from botyard.sim.descriptions import Descriptions
from botyard.sim.handles import Removed, Robots
from botyard.sim.journal import (
    Change,
    Describe,
    Journal,
    RemoveRobots,
    ReplaceScene,
    Submit,
    SubmitVelocities,
    Unserve,
    WriteDevice,
)
from botyard.sim.making import making_robots
from botyard.sim.placement import places_back
from botyard.sim.placement_warnings import doubtful_map, to_warnings
from botyard.sim.programs import Programs

_TELEPORTS = (cmd.SetPose, cmd.SetPoseAxis)
_COUNTED = (*_TELEPORTS, cmd.Hold, cmd.EnableMotors)
"""Commands that the simulation records besides queuing them: placements, holds and motors."""
_HOLDING = "hold"
"""Source name of all holds in the engine's queue.

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
    """Unique name of the robot in the world."""
    spec: RobotSpec
    """Model of the robot."""
    start: Pose
    """True pose at which the robot was added: m, m, rad."""

    def __init__(self, core: Core, name: str, spec: RobotSpec, start: Pose) -> None:
        vars(self).update(name=name, spec=spec, start=start)
        self._core = core
        self._teleports = 0
        self._is_left_off = False
        """Whether the motors are off because a client's session ended.

        See `BaseRobot.is_kept_off`.
        """

    def _put_back(self, pose: Pose, source: str) -> None:
        """Queue a placement at a pose, at rest, with the odometry that a new robot has there.

        This odometry is zero, unless the model has an `odometry_origin`.
        """
        origin = self.spec.odometry_origin
        odometry = Pose() if origin is None else relative(origin, pose)
        for command in (cmd.SetPose(pose), cmd.Halt(), cmd.SetOdometry(odometry)):
            self._core.accept_command(self.name, command, source)

    @property
    def _is_removed(self) -> bool:
        return isinstance(self._core, Removed)

    def _remove(self, now: str = "") -> None:
        """Mark this handle as removed, or as the handle of a robot that is called `now`.

        Later uses of the handle raise an error, also if another robot gets the same
        name.
        """
        # Sensors and commands of the robot share this reference.
        vars(self)["_core"] = Removed(self.name, now)


class Core:
    """Engine with its devices and the robots in it.

    Every command and change passes through this class, so that the journal records it.

    Parameters
    ----------
    scene : Scene
        Static world.
    engine, devices
        Engine, and its range sensors.
    make_robot : callable
        Returns the handle of a robot whose body exists, from name, model and start pose.
    sensor_noise, range_step, warn
        See `Simulation`.
    """

    def __init__(
        self,
        scene: Scene,
        engine: Engine,
        devices: RangeDevices,
        make_robot: Callable[[str, RobotSpec, Pose], Any],
        *,
        sensor_noise: bool,
        range_step: float,
        warn: Warn | None,
    ) -> None:
        self.scene = scene
        self.engine = engine
        self.devices = devices
        self._make_robot = make_robot
        self.sensor_noise = sensor_noise
        """Whether sensors have noise; False: they are exact."""
        self.range_step = range_step
        """Step to which ranges are rounded, m; 0: no rounding."""
        # Until a run loop sets them, real and simulated time are equal.
        step = engine.clock.dt
        self.timing = Timing(sim=step, real=step, last=step)
        self.feed = engine.feed
        """Revision counters of rare changes, see `botyard.api.revisions`."""
        self.overlap_limit: OverlapLimit = OverlapLimit(engine)
        """Limit on the number of bodies that clients can place at one spot."""
        self.robots: Robots[Any] = Robots()
        """Robots by name, in order of creation."""
        self.unserved: set[str] = set()
        """Names of the robots that are hidden from clients, see `unserve`."""
        self.holds: dict[str, list[str]] = {}
        """Names of the sources that hold each body, by name of the body."""
        self.configured: dict[tuple[str, int], Bundle] = {}
        """Beams of lasers that clients have configured, by robot and index of the laser."""
        self.parameters: dict[str, dict[str, list[float]]] = {}
        """Parameters that override a robot's model, by name of the robot."""
        self.programs = Programs()
        self.descriptions = Descriptions(engine, devices)
        self.journal = Journal()
        self._box_placements: dict[str, int] = {}
        """Number of placements of each box of the map, by name."""
        self.placed_count = 0
        """Number of times that any robot was placed."""
        self.is_ours: Callable[[], bool] | None = None
        """Function that reports whether the calling thread may change the world.

        See `belong_to`.
        """
        for table in engine.tables.values():
            self._watch(table)
        # Tables of optional devices are created later.
        engine.on_table = self._watch
        self.warn_by(warn)
        self.warn_about_map()

    @property
    def box_names(self) -> tuple[str, ...]:
        """Names of the bodies of the map's boxes, in the order of `Scene.boxes`.

        They are the names in the map as `botyard.names.shown` shows them. A box gets
        another name if this name is taken.
        """
        return self.engine.box_names

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self.engine.clock.time

    @property
    def tick(self) -> int:
        """Number of steps done."""
        return self.engine.clock.tick

    def time_of(self, tick: int) -> float:
        """Return the simulated time after `tick` steps, s; it is rounded only once."""
        # Compute the time from the integer count, so that times do not drift.
        return tick * self.engine.clock.step_us / 1e6

    @property
    def dt(self) -> float:
        """Simulated time of one step, s."""
        return self.engine.clock.dt

    @property
    def seed(self) -> int:
        """Seed of all random draws."""
        return self.engine.seed

    @property
    def snapshot(self) -> Snapshot:
        """State after the last step; valid until the step after the next."""
        return self.engine.snapshot

    @property
    def is_pending(self) -> bool:
        """Whether commands are queued for the next step, or for `settle`."""
        return self.engine.is_pending

    @property
    def threads(self) -> int:
        """Highest number of threads of a step."""
        return self.devices.threads

    @property
    def colors(self) -> dict[str, str]:
        """Colour of each robot and box by name."""
        robots = {name: robot.spec.color for name, robot in self.robots.items()}
        return robots | {
            n: box.color
            for n, box in zip(self.box_names, self.scene.boxes, strict=True)
        }

    def belong_to(self, is_ours: Callable[[], bool] | None) -> None:
        """Let one thread alone step, change and save the world from now on.

        When bodies are added or removed, arrays are allocated again. A kernel that another
        thread has called would continue in the old arrays.

        Parameters
        ----------
        is_ours : callable or None
            Returns whether the calling thread owns the world; None: any thread may step it, one
            at a time.
        """
        self.is_ours = is_ours

    def check_thread(self) -> None:
        """Raise NotNowError if the world belongs to another thread."""
        if self.is_ours is not None and not self.is_ours():
            raise NotNowError(
                "this simulation is being served, so its own thread runs it: change "
                "and save it with `call` or `do` of the object that botyard.serve "
                "returned"
            )

    def accept_command(
        self, name: str, command: cmd.Command, source: str = "api"
    ) -> None:
        """Check and record a command to a robot or a box, and queue it.

        All commands of users, programs and clients pass here. They take effect in the
        next step; see `botyard.engine.commands`.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        NotNowError
            The world belongs to another thread, see `belong_to`. All methods that change the
            world raise it.
        """
        # The condition of `check_thread` is repeated here to save a call on a hot
        # path.
        if self.is_ours is not None:
            self.check_thread()
        engine = self.engine
        if name not in engine.rows:
            self.check_there(name)
        # Most commands are velocities, and this test lets them pass at once.
        if type(command) in _COUNTED:
            if isinstance(command, cmd.Hold):
                self.hold(name, command.on, source)
                return

            if isinstance(command, cmd.EnableMotors):
                if name in self.robots:
                    self.robots[name]._is_left_off = False
            # Clients compare the count to notice placements.
            elif name in self.robots:
                self.robots[name]._teleports += 1
                self.placed_count += 1
            else:
                self._box_placements[name] = self._box_placements.get(name, 0) + 1

        engine.queue_command(name, command, source)
        # Test this here as well, to save a call: usually there is no listener.
        if self.journal.is_read:
            if type(command) is cmd.SetVelocity:
                self.journal.note_velocity(self.tick, source, name, command)
            else:
                self.note(source, Submit, name, command)

    def accept_velocities(self, command: SetVelocities, source: str = "api") -> None:
        """Check and record velocities of many bodies, and queue them.

        Rows of the command are rows of the engine. The arrays of the command are
        copied.

        Raises
        ------
        CommandError
            Rows are not whole numbers, do not exist or occur twice, or another array has
            another length.
        """
        self.accept_checked_velocities(command.checked(len(self.engine.specs)), source)

    def accept_checked_velocities(self, command: SetVelocities, source: str) -> None:
        """Record and queue velocities with checked rows.

        No other code may change the arrays of the command.
        """
        self.check_thread()
        self.note(source, SubmitVelocities, command)
        self.engine.queue_velocities(command, source)

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
        self.check_thread()
        self.check_there(name)
        command = cmd.Hold(arguments.flag(on, "on"))
        # A source holds a body at most once.
        holders = [one for one in self.holds.pop(name, ()) if one != source]
        if on:
            holders.append(source)
        if holders:
            self.holds[name] = holders
        # The body is released only when the last source releases it.
        self.engine.queue_command(name, cmd.Hold(bool(holders)), _HOLDING)
        self.note(source, Submit, name, command)

    def placements(self, name: str) -> int:
        """Return how often clients and programs have set the pose of a robot or a box.

        Raise UnknownNameError (a KeyError) if no body has that name.
        """
        self.check_there(name)
        robot = self.robots.get(name)
        return self._box_placements.get(name, 0) if robot is None else robot._teleports

    def holders(self, name: str) -> tuple[str, ...]:
        """Return the sources that hold a robot or a box; see `hold`.

        Raise UnknownNameError (a KeyError) if no body has that name.
        """
        self.check_there(name)
        return tuple(self.holds.get(name, ()))

    def note(
        self, source: str | None, kind: Callable[..., Change], *values: object
    ) -> None:
        """Record a change in the journal if it has listeners.

        With None, `source` is the present actor; see `botyard.sim.journal.acting`.
        """
        if self.journal.is_read:
            self.journal.note(self.tick, source, kind(*values))

    def _watch(self, table: Table) -> None:
        """Record all further writes to a table in the journal."""
        table.on_write = self._note_device

    def _note_device(self, row: Row[Any], values: Mapping[str, Any]) -> None:
        if values and self.journal.is_read:
            self.journal.note(
                self.tick, None, WriteDevice(row.table.name, row.number, dict(values))
            )

    def rounded(self, ranges: F8) -> F8:
        """Return ranges rounded to `range_step`, m."""
        if self.range_step <= 0.0:
            return ranges
        rounded: F8 = np.rint(ranges / self.range_step) * self.range_step
        return rounded

    def check_there(self, *names: str) -> None:
        """Raise UnknownNameError (a KeyError) unless all are names of robots or boxes."""
        for name in names:
            if not isinstance(name, str) or name not in self.engine.rows:
                raise arguments.unknown(name, self.engine.rows)

    def put_back(self, names: Sequence[str] | None, source: str) -> None:
        """Return bodies to their starts at the next step; see `Simulation.put_back`."""
        if names is not None:
            names = [names] if isinstance(names, str) else names
            self.check_there(*names)

        boxes = self.box_poses()
        starts = {name: robot.start for name, robot in self.robots.items()}
        if names is not None:
            boxes = {name: boxes[name] for name in names if name in boxes}
            starts = {name: starts[name] for name in names if name in starts}

        for name, pose in places_back(self.engine, starts, boxes).items():
            if name in boxes:
                self.accept_command(name, cmd.SetPose(pose), source)
            else:
                self.robots[name]._put_back(pose, source)

    def box_poses(self) -> dict[str, Pose]:
        """Return the poses that the boxes have in the map, by name of the body."""
        return {
            name: box.pose
            for name, box in zip(self.box_names, self.scene.boxes, strict=True)
        }

    # -- Bodies that are added and removed

    def unique_name(self, base: str) -> str:
        """Return `base`, with a number appended if another body has that name (CLI-008).

        The first two names for ``p3dx`` are ``p3dx`` and ``p3dx_002``.
        """
        return self.unique_names(base, 1)[0]

    def unique_names(self, base: str, count: int) -> list[str]:
        """Return `count` free names made of `base` and numbers."""
        names: list[str] = []
        rows = self.engine.rows
        n = rows.lowest_free.get(base, 1)
        while len(names) < count:
            end = "" if n == 1 else f"_{n:03d}"
            # The number must fit into the limit of names.
            name = base[: MAX_NAME - len(end)] + end
            # Names are unique among all bodies, not only among robots.
            if name not in rows:
                if not names:
                    rows.lowest_free[base] = n
                names.append(name)
            n += 1

        return names

    def insert_robots(
        self, spec: RobotSpec, names: Sequence[str], starts: Sequence[Pose]
    ) -> list[Any]:
        """Add robots of one model whose names are free, and return their handles."""
        body = robot_body(spec, "")
        placed = list(zip(names, starts, strict=True))
        with making_robots(len(names), self.engine.tables.values()):
            self.engine.add_bodies(
                [(replace(body, name=name), start) for name, start in placed]
            )
            try:
                robots = [self._make_robot(name, spec, start) for name, start in placed]
            except BaseException:
                # A device of a robot cannot be made: remove the added bodies.
                self.engine.remove_bodies(names)
                raise

        self.robots.update((robot.name, robot) for robot in robots)
        # Record the change again: when the engine recorded it, the bodies were not robots
        # yet.
        self.feed.record_change(Subject.BODIES)
        return robots

    def remove_robots(self, names: Sequence[str]) -> None:
        """Remove existing robots between two steps."""
        self.note(None, RemoveRobots, tuple(names))
        self.remove_bodies(names)

    def remove_bodies(self, names: Sequence[str]) -> None:
        """Remove robots and boxes without an entry in the journal."""
        self.engine.remove_bodies(names)
        for name in names:
            self.holds.pop(name, None)
            robot = self.robots.pop(name, None)
            self.unserved.discard(name)
            if robot is not None:
                # Remove the entry after the engine's call, which must still find the
                # robot's devices.
                robot._leave()
            # Drop the program without `end`, which would unsubscribe from sensors that
            # no longer exist.
            self.programs.drop(name)

        self.feed.record_change(Subject.BODIES, Subject.CLAIMS)

    def sort_robots(self, names: Sequence[str]) -> None:
        """Sort the robots into the order of these names."""
        robots = {name: self.robots[name] for name in names}
        self.robots.clear()
        self.robots.update(robots)

    def set_boxes(self, names: Sequence[str], boxes: Sequence[BoxObject]) -> None:
        """Set the boxes of the map; their bodies must exist already."""
        self.engine.box_names = tuple(names)
        self.engine.scene = replace(self.scene, boxes=tuple(boxes))
        self.scene = self.engine.scene

    def unserve(self, names: Sequence[str]) -> None:
        """Hide robots from clients, so that only programs move them.

        Names of other bodies are ignored.
        """
        self.check_thread()
        names = [
            name for name in names if name in self.robots and name not in self.unserved
        ]
        if names:
            self.note(None, Unserve, tuple(names))
            self.unserved.update(names)
            self.feed.record_change(Subject.SERVED)

    def is_served(self, name: str) -> bool:
        """Return whether a robot is offered to clients; see `unserve`."""
        return name not in self.unserved

    def assign_program(
        self, name: str, act: Callable[[], None], program: Program
    ) -> None:
        """Let a program drive a robot: call `act` before every step.

        It replaces the robot's present program. Raise UnknownNameError (a KeyError) if
        no robot has that name.
        """
        if name not in self.robots:
            raise arguments.unknown(name, self.robots, "robot")
        self.programs.assign(name, program, arguments.function(act, "act"))

    # -- Map

    def replace_scene(self, scene: Scene, grid: Grid | None = None) -> None:
        """Replace the map between two steps; see `Simulation.replace_scene`."""
        for name in self.box_names:
            self.holds.pop(name, None)
        self.engine.replace_scene(scene, grid)
        self.scene = scene
        self.feed.record_change(Subject.MAP, Subject.BODIES)
        self.note(None, ReplaceScene, scene)
        self.warn_about_map()

    def describe(self, described: Described) -> None:
        """Add the joints and ray sensors of a description file.

        The bodies of the file are boxes of the scene. Raise KeyError if one is missing.
        """
        self.check_thread()
        # Check all arguments before anything is added.
        for sensor in described.sensors:
            self.check_there(sensor.parent)
        self.note(None, Describe, described)
        self.descriptions.add(described)
        self.feed.record_change(Subject.DESCRIBED)

    def warn_by(self, warn: Warn | None) -> None:
        """Set the function that receives warnings; None: Python's `warnings`."""
        self.warn: Warn = warn if warn is not None else to_warnings

    def warn_about_map(self) -> None:
        """Warn about a probable mistake in the map."""
        doubt = doubtful_map(self.scene, self.engine.grid)
        if doubt is not None:
            self.warn(doubt)


__all__ = ["Core", "Member"]
