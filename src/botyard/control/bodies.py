"""Operations on the bodies in the world: remove, place, hold, reset."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from botyard.api.arguments import found
from botyard.control.adding import describe_robots
from botyard.control.caller import Caller
from botyard.control.holds import HOLD_TIMEOUT_S, check_hand, hold, release
from botyard.control.operation import (
    NAMES,
    Operation,
    a_pose,
    argument,
    boolean,
    count,
    each,
    name,
    optional,
    real,
)
from botyard.control.site import Site, for_each
from botyard.errors import (
    ArgumentError,
)
from botyard.geometry import Pose
from botyard.sim.simulation import Simulation


@dataclass(frozen=True, kw_only=True)
class Remove(Operation[None]):
    """Remove robots, obstacles and boxes of the map, and disconnect their clients.

    If some of the names are unknown, the bodies with known names are still removed
    before the error is raised.
    """

    names: tuple[str, ...] = argument(NAMES)
    audit = logging.INFO
    tells = (
        "the clients of the robots are disconnected; their topics and entries on "
        "the page disappear"
    )

    def perform(self, control: Site, caller: Caller) -> None:
        """Remove the named bodies.

        Raises
        ------
        UnknownNameError
            A name is unknown; the error names the first one.
        NotNowError
            Another client holds a body; nothing is removed.
        """
        sim, robot_host = (
            control.sim,
            control.part(control.robot_host, "nothing can be removed"),
        )
        for body in self.names:
            check_hand(control, body, caller)
        # Copy the names before the removal, which changes them.
        boxes = frozenset(sim.core.box_names)

        # A name that occurs twice is removed once.
        names = list(dict.fromkeys(self.names))
        there = [n for n in names if n in sim.robots or n in boxes]
        if there:
            robot_host.remove(there)
            for gone in there:
                # A later robot of this name must not inherit its driver, or the source that
                # added it.
                control.driven.pop(gone, None)
                control.spawned.pop(gone, None)
                control.of_world.discard(gone)

        # The error comes after the removal, so that one wrong name does not block the
        # other removals.
        missing = next(
            (
                n
                for n in names
                if n not in sim.robots and n not in boxes and n not in there
            ),
            None,
        )
        if missing is not None:
            # The removal has happened, so clients must see it although an error
            # follows.
            control.settle()
            if there:
                control.audit(caller, Remove(names=tuple(there)), None)
            raise control.unknown(missing)

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return describe_robots(self.names, "removed")


@dataclass(frozen=True, kw_only=True)
class Place(Operation[None]):
    """Put robots and boxes at true poses (m, m, rad), even if another body is there.

    Parameters
    ----------
    to : tuple of (str, Pose)
        Name and true pose of each body. If some names are unknown, the other bodies are
        placed before the error.
    """

    to: tuple[tuple[str, Pose], ...] = argument(
        each(lambda value, what, /: _placement(value, what))
    )

    def perform(self, control: Site, caller: Caller) -> None:
        """Put the bodies at the given poses.

        Raises
        ------
        UnknownNameError
            No body has this name.
        CommandError
            A pose is out of range, or too many bodies are at one place.
        NotNowError
            Another client holds a body.
        """
        sim = control.sim

        def put(which: str, pose: Pose) -> None:
            # A robot that was added in this step is not in the snapshot yet.
            if which not in sim.snapshot.rows and which not in sim.fleet.rows:
                raise control.unknown(which)
            check_hand(control, which, caller)
            if not caller.ignores_crowd_limit:
                # Many bodies at one place make each step slow, so clients may not pile
                # them up.
                sim.core.overlap_limit.enter(which, pose.x, pose.y)
            sim.put(which, pose, caller.source)

        # A body that occurs twice gets its last pose.
        for_each(dict(self.to), put)


def _placement(value: Any, what: str, /) -> tuple[str, Pose]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise ArgumentError(f"{what}: expected a name and a pose, found {found(value)}")
    return name(value[0], what), a_pose(value[1], what)


@dataclass(frozen=True, kw_only=True)
class PlaceAxis(Operation[None]):
    """Set one coordinate of a robot's true pose.

    Axis 0 is x (m), 1 is y (m), 2 is the heading (rad).

    Parameters
    ----------
    robot : str
        Name of the robot.
    axis : int
        0, 1 or 2.
    value : float
        New coordinate, m or rad.
    """

    robot: str = argument(name)
    axis: int = argument(count(0, 2))
    value: float = argument(real())

    def perform(self, control: Site, caller: Caller) -> None:
        """Set the coordinate of the robot's pose.

        Raises
        ------
        CommandError
            The pose is out of range, or too many bodies are at one place.
        NotNowError
            Another client holds the robot.
        """
        check_hand(control, self.robot, caller)
        control.robot(self.robot).port(caller.source).set_pose_axis(
            self.axis, self.value
        )


@dataclass(frozen=True, kw_only=True)
class Hold(Operation[None]):
    """Hold bodies, or release them.

    A held body does not move by itself, and only the client that holds it may place or
    remove it. The hold ends with the release, when the client disconnects, or when the
    client has not placed or held the body for `timeout`.

    Parameters
    ----------
    names : tuple of str
        Names of robots and boxes.
    on : bool
        True holds them, False releases the hold of this client only.
    timeout : float
        Time limit of the hold, s of wall time.
    """

    names: tuple[str, ...] = argument(NAMES)
    on: bool = argument(boolean)
    timeout: float = argument(real(0.0, 3600.0, "s"), HOLD_TIMEOUT_S)

    def perform(self, control: Site, caller: Caller) -> None:
        """Hold the bodies, or release them.

        Raises
        ------
        UnknownNameError
            The only body is unknown.
        NotNowError
            Another client holds the only body.
        WorldError
            Some of several bodies are unknown, or another client holds them; the other
            bodies are held.
        """

        def act(body: str, _: None) -> None:
            if self.on:
                hold(control, body, caller, self.timeout)
            else:
                release(control, body, caller)

        for_each(dict.fromkeys(self.names), act)


@dataclass(frozen=True, kw_only=True)
class Reset(Operation[None]):
    """Return some or all robots and boxes to their start poses, at rest.

    Their odometry is then as at the start. With `spawned`, the robots that this source added are
    removed first; without `starts`, nothing else is done.

    Parameters
    ----------
    names : tuple of str, optional
        Names of bodies; None: all.
    spawned : bool
        Whether to remove the robots that this source added.
    starts : bool
        Whether bodies return to their start poses.
    """

    names: tuple[str, ...] | None = argument(optional(NAMES), None)
    spawned: bool = argument(boolean, False)
    starts: bool = argument(boolean, True)

    def perform(self, control: Site, caller: Caller) -> None:
        """Return the bodies to their start poses.

        Raises
        ------
        UnknownNameError
            The only body is unknown.
        WorldError
            Some of several bodies are unknown; the other bodies are at their start
            poses.
        """
        sim = control.sim
        if self.spawned:
            gone = [
                n
                for n, source in control.spawned.items()
                if source == caller.source and n in sim.robots
            ]

            # Removed robots are dropped as well, so that the table cannot grow.
            control.spawned = {
                n: source
                for n, source in control.spawned.items()
                if source != caller.source
            }
            if gone:
                control.part(control.robot_host, "nothing can be removed").remove(gone)

        if not self.starts:
            return
        if self.names is None:
            sim.put_back(None, caller.source)
        else:
            there = {*sim.robots, *sim.core.box_names}
            sim.put_back([n for n in self.names if n in there], caller.source)

            # The known bodies are reset before the error about unknown bodies is
            # raised.
            missing = [n for n in self.names if n not in there]
            for_each(
                dict.fromkeys(self.names),
                lambda n, _: sim.put_back([n]) if n in missing else None,
            )


@dataclass(frozen=True, kw_only=True)
class SetGhost(Operation[None]):
    """Make a robot a ghost, or a normal robot again.

    No sensor detects a ghost, and no body collides with it.
    """

    robot: str = argument(name)
    on: bool = argument(boolean)

    def perform(self, control: Site, caller: Caller) -> None:
        """Make the robot a ghost, or a normal robot again.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        WorldError
            The body is an obstacle.
        """
        control.robot(self.robot).port(caller.source).set_ghost(self.on)


@dataclass(frozen=True, kw_only=True)
class SetOdometryErrors(Operation[None]):
    """Switch the simulated errors of a robot's odometry on or off."""

    robot: str = argument(name)
    on: bool = argument(boolean)

    def perform(self, control: Site, caller: Caller) -> None:
        """Switch the odometry errors of the robot on or off.

        Raises
        ------
        UnknownNameError
            No robot has this name.
        WorldError
            The body is an obstacle.
        """
        control.robot(self.robot).port(caller.source).set_odometry_errors(self.on)


@dataclass(frozen=True, kw_only=True)
class TakeBodies(Operation[Simulation]):
    """Get write access to the bodies, to command forces, velocities and joints.

    Programs use it, also to set masses. The permission is checked once, here. The
    engine's queue then checks and journals each command of the stream.
    """

    settles = False

    def perform(self, control: Site, caller: Caller) -> Simulation:
        """Return the simulation, with its methods for commands to bodies."""
        return control.sim


__all__ = [
    "Hold",
    "Place",
    "PlaceAxis",
    "Remove",
    "Reset",
    "SetGhost",
    "SetOdometryErrors",
    "TakeBodies",
]
