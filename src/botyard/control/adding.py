"""Operations that add robots to the world: one robot, a group of robots, or copies of robots."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from botyard.api.arguments import found
from botyard.control.caller import Caller
from botyard.control.later import resolved
from botyard.control.operation import (
    NAMES,
    Operation,
    a_pose,
    argument,
    boolean,
    count,
    each,
    optional,
    text,
)
from botyard.control.site import Site
from botyard.errors import (
    ArgumentError,
    BotyardError,
    ModelError,
    NameRuleError,
    NameTakenError,
    WorldError,
)
from botyard.formats.models import find_robot, is_robot_file
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.names import check_name, is_name, shown
from botyard.sim.placement import FreePlaces, on_trial
from botyard.sim.simulation import Robot, Simulation

T = TypeVar("T")

# Clients of an open port must not be able to slow a simulation down without limit.
MAX_ROBOTS: Final = 10_000
"""Maximum number of robots in the world after clients (page, ROS) add robots."""
MAX_ROBOTS_PER_REQUEST: Final = 1000
"""Maximum number of robots that one request adds."""
# A small batch delays the next step so little that clients notice no pause.
ROBOTS_PER_BATCH: Final = 50
"""Batch size: robots that are added between two steps of the run loop."""
NO_ROBOT_HOST: Final = "this simulator cannot add robots"


@dataclass(frozen=True, slots=True)
class AddedRobots:
    """Robots that an operation has added.

    Attributes
    ----------
    robots : tuple of str
        Names of the robots.
    served : Future
        Done when their ports are open; fails with `PortError` if one cannot be opened.
    """

    robots: tuple[str, ...]
    served: Future[None]


def library_model(name: str) -> RobotSpec:
    """Return a robot model of the library by name; clients may not name files.

    Parameters
    ----------
    name : str
        Name as a client sent it.

    Raises
    ------
    ModelError, ModelFileError
        No model has this name, or its file is invalid.
    """
    if (
        # Separators and suffixes of model files: `find_robot` would open such a path.
        "/" in name or "\\" in name or not is_name(name) or is_robot_file(name)
    ):
        raise ModelError(
            f'no robot model "{shown(name)}": expected the name of a model, not a file'
        )

    # By now the name cannot be a path, so the search stays within the library.
    return find_robot(name)


def check_robot_count(control: Site, number: int) -> None:
    """Raise an error if clients may not add `number` more robots.

    Parameters
    ----------
    control : Site
        Context of the operation.
    number : int
        Number of further robots.

    Raises
    ------
    WorldError
        There would be more than `MAX_ROBOTS`.
    """
    # Count all robots, because each robot makes the steps slower, regardless of its source.
    there = len(control.sim.robots)
    if there + number > MAX_ROBOTS:
        raise WorldError(
            f"clients may add robots up to {MAX_ROBOTS}, there are already {there} "
            f"and {number} more are requested"
        )


@dataclass(frozen=True, kw_only=True)
class AddRobot(Operation[Future[AddedRobots]]):
    """Add a robot of a library model at once.

    The first robot with mass is added after the kernels for mass are compiled. Without
    a name the robot gets a unique one; with `rename` it also gets another name if its
    own is taken. Without a pose it stands on the next free place at the map's home;
    with `near`, on the free place nearest to the pose.

    Parameters
    ----------
    model : str
        Name of the model.
    robot : str
        Name of the robot; empty: a unique one.
    pose : Pose, optional
        True pose, m, m, rad; by default the next free place at the map's home.
    near : bool
        Use the free place nearest to the pose, instead of the pose itself.
    rename : bool
        Use another name if the given one is taken, instead of an error.
    """

    model: str = argument(text(1000))
    robot: str = argument(text(1000), "")
    pose: Pose | None = argument(optional(a_pose), None)
    near: bool = argument(boolean, False)
    rename: bool = argument(boolean, False)
    audit = logging.INFO
    tells = (
        "every interface offers the robot: it gets a port, ROS topics and an entry "
        "on the page"
    )

    def perform(self, control: Site, caller: Caller) -> Future[AddedRobots]:
        """Add the robot.

        Raises
        ------
        NameRuleError, NameTakenError
            The name is invalid or taken.
        ModelError
            The model does not exist.
        CommandError
            The pose is out of range.
        WorldError
            There are too many robots.
        """
        robot_host = control.part(control.robot_host, NO_ROBOT_HOST)
        spec = robot_host.equip(library_model(self.model))
        if _is_movable(spec):
            # Nothing has to be compiled, so the robot is added before this call returns.
            return resolved(self._add(control, caller, spec))
        # Raise errors of the name now, because the client would otherwise get them only
        # after the compilation.
        self._free_name(control.sim)

        def work() -> Generator[Future[None] | None, None, AddedRobots]:
            yield control.mass_kernels()
            return self._add(control, caller, spec)

        return robot_host.work(work())

    def _free_name(self, sim: Simulation) -> str:
        wanted = self.robot
        # An empty name is chosen later, in `_add`, because other robots may be added
        # before.
        if wanted:
            check_name(wanted, error=NameRuleError)
            if (
                # The snapshot, the robots and the boxes may differ between two steps,
                # so all three are checked.
                wanted in sim.snapshot.rows
                or wanted in sim.robots
                or wanted in sim.core.box_names
            ):
                if not self.rename:
                    raise NameTakenError(
                        f'a body named "{shown(wanted)}" already exists'
                    )

                wanted = sim.core.unique_name(wanted)

        return wanted

    def _add(self, control: Site, caller: Caller, spec: RobotSpec) -> AddedRobots:
        sim, robot_host = control.sim, control.part(control.robot_host, NO_ROBOT_HOST)
        # Check the name again: another client may have taken it during the compilation.
        wanted = self._free_name(sim)
        check_robot_count(control, 1)
        if self.pose is None:
            pose = sim.core.places.next(spec, 1)[0]
        else:
            pose = sim.core.places.one_near(spec, self.pose) if self.near else self.pose

        # The name is chosen before the crowd check, whose error names the robot.
        called = wanted or sim.core.unique_name(spec.name)
        if not caller.ignores_crowd_limit:
            sim.core.overlap_limit.check(called, pose.x, pose.y)
        robots = robot_host.add_robots(spec, [pose], [called])
        return register_added(control, caller, robots)

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return describe_robots(result.robots, "added")


@dataclass(frozen=True, kw_only=True)
class AddRobots(Operation[Future[AddedRobots]]):
    """Add many robots of a library model on the free places around a pose.

    They are added in batches between which the world runs.

    Parameters
    ----------
    model : str
        Name of the model.
    number : int
        Number of robots, from 1 to `MAX_ROBOTS_PER_REQUEST`.
    pose : Pose, optional
        Centre of the search for places, m, m, rad; by default the map's home.
    places : tuple of Pose
        Places of the first robots, as from `FindPlaces`. If one is not free any more,
        its robot gets the nearest free place.
    """

    model: str = argument(text(1000))
    number: int = argument(count(1, MAX_ROBOTS_PER_REQUEST))
    pose: Pose | None = argument(optional(a_pose), None)
    places: tuple[Pose, ...] = argument(each(a_pose, MAX_ROBOTS_PER_REQUEST), ())
    audit = logging.INFO
    tells = AddRobot.tells

    def perform(self, control: Site, caller: Caller) -> Future[AddedRobots]:
        """Start to add the robots in batches.

        Raises
        ------
        WorldError
            There would be more than `MAX_ROBOTS` robots, or this simulator adds none.
        ModelError
            No model has this name.
        """
        sim, robot_host = control.sim, control.part(control.robot_host, NO_ROBOT_HOST)
        check_robot_count(control, self.number)
        spec = robot_host.equip(library_model(self.model))
        # One search serves all batches, so that it does not restart at the centre for
        # each.
        places = FreePlaces(
            sim.core.engine, spec, self.pose or sim.core.places.home, self.number
        )
        wanted = list(self.places[: self.number])

        def add(some: int) -> list[Robot]:
            # Other clients may have added robots between two batches.
            check_robot_count(control, some)
            poses = _free_ones(sim, spec, wanted[:some])
            del wanted[:some]
            poses += places.take(some - len(poses))
            return robot_host.add_robots(
                spec, poses, sim.core.unique_names(spec.name, len(poses))
            )

        return _in_portions(
            control,
            caller,
            [spec],
            [
                min(ROBOTS_PER_BATCH, self.number - n)
                for n in range(0, self.number, ROBOTS_PER_BATCH)
            ],
            add,
        )

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return describe_robots(result.robots, "added")


def _free_ones(sim: Simulation, spec: RobotSpec, wanted: Sequence[Pose]) -> list[Pose]:
    """Return places; an occupied one is replaced by the free place nearest to it."""
    if not wanted:
        return []
    is_free = sim.core.engine.trial(on_trial(spec))
    poses: list[Pose] = []
    for pose in wanted:
        poses.append(
            pose
            if is_free(pose)
            else sim.core.places.near(spec, pose, 1, given=poses)[0]
        )
    return poses


def _an_addition(value: Any, what: str, /) -> AddRobot:
    if not isinstance(value, AddRobot):
        raise ArgumentError(
            f"{what}: expected AddRobot operations, found {found(value)}"
        )

    return value


@dataclass(frozen=True, kw_only=True)
class AddEach(Operation[Future[tuple[AddedRobots | BotyardError, ...]]]):
    """Add robots of different models at different places.

    They are added in batches between which the world runs. For each robot, the result
    has the result of `AddRobot` or its error.

    Parameters
    ----------
    robots : tuple of AddRobot
        Robots, at most `MAX_ROBOTS_PER_REQUEST`; the results are in the same order.
    """

    robots: tuple[AddRobot, ...] = argument(each(_an_addition, MAX_ROBOTS_PER_REQUEST))
    audit = logging.INFO
    tells = AddRobot.tells

    def perform(
        self, control: Site, caller: Caller
    ) -> Future[tuple[AddedRobots | BotyardError, ...]]:
        """Start to add the robots in batches.

        If a robot cannot be added, its place in the result holds the error; the other
        robots are still added.

        Raises
        ------
        WorldError
            This simulator adds no robots.
        """

        def work() -> Generator[
            Future[AddedRobots] | None, None, tuple[AddedRobots | BotyardError, ...]
        ]:
            results: list[AddedRobots | BotyardError] = []
            for number, one in enumerate(self.robots, 1):
                try:
                    added = one.perform(control, caller)
                    # The kernels for mass are being compiled.
                    if not added.done():
                        yield added
                    results.append(added.result())
                except BotyardError as error:
                    # One wrong robot must not remove the other robots, which the caller
                    # may already use.
                    results.append(error)

                # Let the world run after each batch.
                if number % ROBOTS_PER_BATCH == 0:
                    yield None

            return tuple(results)

        return control.part(control.robot_host, NO_ROBOT_HOST).work(work())

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return describe_robots(
            [n for one in result if isinstance(one, AddedRobots) for n in one.robots],
            "added",
        )


@dataclass(frozen=True, kw_only=True)
class CloneRobots(Operation[Future[AddedRobots]]):
    """Copy robots: add a robot of the same model next to each of these robots.

    Parameters
    ----------
    robots : tuple of str
        Names of the robots to copy.
    """

    robots: tuple[str, ...] = argument(NAMES)
    audit = logging.INFO
    tells = AddRobot.tells

    def perform(self, control: Site, caller: Caller) -> Future[AddedRobots]:
        """Add a copy of each robot; robots that no longer exist are ignored.

        Raises
        ------
        UnknownNameError
            None of the robots exists.
        """
        sim, robot_host = control.sim, control.part(control.robot_host, NO_ROBOT_HOST)
        there = [n for n in self.robots if n in sim.robots]
        # Some missing robots are no error: other clients may remove selected robots.
        if not there and self.robots:
            raise control.unknown(self.robots[0])
        check_robot_count(control, len(there))

        def clone(original: str) -> list[Robot]:
            robot = sim.robots.get(original)
            # The robot was removed between two batches.
            if robot is None:
                return []
            check_robot_count(control, 1)
            # The pose at the time of the copy, because the original may drive.
            pose = sim.core.places.one_near(robot.spec, robot.truth)
            return robot_host.add_robots(
                robot.spec, [pose], [sim.core.unique_name(robot.spec.name)]
            )

        return _in_portions(
            control, caller, [sim.robots[n].spec for n in there], there, clone
        )

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        return describe_robots(result.robots, "added")


def register_added(
    control: Site, caller: Caller, robots: Sequence[Robot]
) -> AddedRobots:
    """Store the source that added robots, and open their ports.

    Parameters
    ----------
    control : Site
        Context of the operation.
    caller : Caller
        Caller; its source can remove these robots by `Reset`.
    robots : sequence of Robot
        Robots that are in the world.
    """
    names = tuple(robot.name for robot in robots)
    # Record the source before the ports are opened, so that a `Reset` finds robots
    # whose ports failed.
    control.spawned.update(dict.fromkeys(names, caller.source))
    return AddedRobots(
        names, control.part(control.robot_host, NO_ROBOT_HOST).serve(robots)
    )


def describe_robots(names: Sequence[str], what: str) -> str:
    """Return a log line such as ``ann and 2 more added``.

    Parameters
    ----------
    names : sequence of str
        Names; the line contains the first name, and the number of the others.
    what : str
        Participle: ``added`` or ``removed``.
    """
    if not names:
        return f"no robot {what}"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{shown(names[0])}{more} {what}"


def _is_movable(spec: RobotSpec) -> bool:
    """Return whether the kernels that move a robot of this model are ready.

    Kernels for mass are compiled for the first body with mass.
    """
    # Most robots have no mass, and do not need the import below.
    if spec.dynamics is None:
        return True
    from botyard.worlds.warmup import has_mass_kernels

    return has_mass_kernels()


def _in_portions(
    control: Site,
    caller: Caller,
    specs: Sequence[RobotSpec],
    portions: Sequence[T],
    add: Callable[[T], list[Robot]],
) -> Future[AddedRobots]:
    """Add robots in batches, and let the world run between the batches.

    The future is done when the robots' ports are open. If a batch fails, the robots of
    the batches before it stay and get their ports; then the error is raised.
    """
    robot_host = control.part(control.robot_host, NO_ROBOT_HOST)

    def work() -> Generator[Future[None] | None, None, AddedRobots]:
        # Compile the kernels once before the first batch, because this takes seconds.
        if not all(map(_is_movable, specs)):
            yield control.mass_kernels()
        robots: list[Robot] = []
        failed: BotyardError | None = None
        for portion in portions:
            try:
                some = add(portion)
            except BotyardError as error:
                # Robots of earlier batches are in the world, so they need ports before
                # the error is raised.
                failed = error
                break

            # Register each batch at once: a `Reset` between batches must find its
            # robots.
            control.spawned.update((r.name, caller.source) for r in some)
            robots += some
            yield None

        result = register_added(
            # Robots that were removed meanwhile get no ports.
            control,
            caller,
            [r for r in robots if control.sim.robots.get(r.name) is r],
        )

        # Report success only when clients can connect.
        yield result.served
        if failed is not None:
            raise (
                WorldError(
                    f"{describe_robots(result.robots, 'added')}; then adding "
                    f"stopped: {failed}"
                )
                if robots
                else failed
            )

        return result

    return robot_host.work(work())


__all__ = [
    "MAX_ROBOTS",
    "ROBOTS_PER_BATCH",
    "AddEach",
    "AddRobot",
    "AddRobots",
    "AddedRobots",
    "CloneRobots",
    "check_robot_count",
    "describe_robots",
    "library_model",
    "register_added",
]
