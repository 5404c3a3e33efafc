"""Operations that add robots to the world: of a model, in groups, or as copies."""

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
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.names import check_name, is_name, shown
from botyard.sim.placement import FreePlaces
from botyard.sim.simulation import Robot, Simulation
from botyard.worlds.warmup import has_mass_kernels

T = TypeVar("T")

MAX_ROBOTS: Final = 10_000
"""Maximum number of robots up to which clients (page, ROS) may add more."""
MAX_ROBOTS_PER_REQUEST: Final = 1000
"""Maximum number of robots that one request adds."""
ROBOTS_PER_BATCH: Final = 50
"""Batch size: robots that are added between two steps of the run loop."""
NO_ROBOT_HOST: Final = "no robots can be added"


@dataclass(frozen=True, slots=True)
class AddedRobots:
    """Robots that were added.

    Attributes
    ----------
    robots : tuple of str
        Their names.
    served : Future
        Done when their ports are open; fails with `PortError` if one cannot be opened.
    """

    robots: tuple[str, ...]
    served: Future[None]


def library_model(name: str) -> RobotSpec:
    """Return a robot model of the library by name; clients may not name files.

    Raises
    ------
    ModelError, ModelFileError
        No model has this name, or its file is invalid.
    """
    if (
        # Separators and suffixes of model files: `find_robot` would open such a path.
        "/" in name
        or "\\" in name
        or not is_name(name)
        or name.lower().endswith((".p", ".toml"))
    ):
        raise ModelError(
            f'no robot model "{shown(name)}": expected the name of a model, not a file'
        )

    return find_robot(name)


def check_robot_count(control: Site, number: int) -> None:
    """Raise an error if clients may not add `number` more robots.

    Raises
    ------
    WorldError
        There would be more than `MAX_ROBOTS`.
    """
    # Counts all robots, because steps become slower whoever added them.
    there = len(control.sim.robots)
    if there + number > MAX_ROBOTS:
        raise WorldError(
            f"clients may add robots up to {MAX_ROBOTS}, there are already {there}"
        )


@dataclass(frozen=True, kw_only=True)
class AddRobot(Operation[Future[AddedRobots]]):
    """Add a robot of a library model at once.

    The first robot with mass is added after the kernels for mass are compiled. Without
    a name the robot gets a unique one; with `rename` it also gets another name if its
    own is taken. Without a pose it stands on the next free place at the map's home;
    with `near`, on the free place nearest to the pose.
    """

    model: str = argument(text(1000))
    robot: str = argument(text(1000), "")
    pose: Pose | None = argument(optional(a_pose), None)
    near: bool = argument(boolean, False)
    rename: bool = argument(boolean, False)
    audit = logging.INFO
    tells = "every interface offers the robot: a port, ROS topics, an entry on the page"

    def perform(self, control: Site, caller: Caller) -> Future[AddedRobots]:
        """Perform the operation.

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
        # Raise errors of the name now; they would otherwise come after the
        # compilation.
        self._free_name(control.sim)

        def work() -> Generator[Future[None] | None, None, AddedRobots]:
            yield control.mass_kernels()
            return self._add(control, caller, spec)

        return robot_host.work(work())

    def _free_name(self, sim: Simulation) -> str:
        wanted = self.robot
        if wanted:
            check_name(wanted, error=NameRuleError)
            if (
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
    """

    model: str = argument(text(1000))
    number: int = argument(count(1, MAX_ROBOTS_PER_REQUEST))
    pose: Pose | None = argument(optional(a_pose), None)
    audit = logging.INFO
    tells = AddRobot.tells

    def perform(self, control: Site, caller: Caller) -> Future[AddedRobots]:
        """Perform the operation."""
        sim, robot_host = control.sim, control.part(control.robot_host, NO_ROBOT_HOST)
        check_robot_count(control, self.number)
        spec = robot_host.equip(library_model(self.model))
        # One search for all batches, which does not start at the center again for each.
        places = FreePlaces(
            sim.core.engine, spec, self.pose or sim.core.places.home, self.number
        )

        def add(some: int) -> list[Robot]:
            # Other clients may have added robots between two batches.
            check_robot_count(control, some)
            poses = places.take(some)
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
    """

    robots: tuple[AddRobot, ...] = argument(each(_an_addition, MAX_ROBOTS_PER_REQUEST))
    audit = logging.INFO
    tells = AddRobot.tells

    def perform(
        self, control: Site, caller: Caller
    ) -> Future[tuple[AddedRobots | BotyardError, ...]]:
        """Perform the operation."""

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
    """Add another robot of the same model next to each of these."""

    robots: tuple[str, ...] = argument(NAMES)
    audit = logging.INFO
    tells = AddRobot.tells

    def perform(self, control: Site, caller: Caller) -> Future[AddedRobots]:
        """Perform the operation; robots that no longer exist are ignored.

        Raises
        ------
        UnknownNameError
            None of the robots exists.
        """
        sim, robot_host = control.sim, control.part(control.robot_host, NO_ROBOT_HOST)
        there = [n for n in self.robots if n in sim.robots]
        # Some missing robots are no error: clients select robots that others may
        # remove.
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
    """Store the source that added robots, and open their ports."""
    names = tuple(robot.name for robot in robots)
    control.spawned.update(dict.fromkeys(names, caller.source))
    return AddedRobots(
        names, control.part(control.robot_host, NO_ROBOT_HOST).serve(robots)
    )


def describe_robots(names: Sequence[str], what: str) -> str:
    """Return a log line such as ``ann and 2 more added``."""
    if not names:
        return f"no robot {what}"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{shown(names[0])}{more} {what}"


def _is_movable(spec: RobotSpec) -> bool:
    """Return whether the kernels that move a robot of this model are ready.

    Kernels for mass are compiled for the first body with mass.
    """
    return spec.dynamics is None or has_mass_kernels()


def _in_portions(
    control: Site,
    caller: Caller,
    specs: Sequence[RobotSpec],
    portions: Sequence[T],
    add: Callable[[T], list[Robot]],
) -> Future[AddedRobots]:
    """Add robots of these models in batches, with steps in between.

    The future is done when the robots' ports are open. If a batch fails, the robots of
    the batches before it stay and get their ports; then the error is raised.
    """
    robot_host = control.part(control.robot_host, NO_ROBOT_HOST)

    def work() -> Generator[Future[None] | None, None, AddedRobots]:
        if not all(map(_is_movable, specs)):
            yield control.mass_kernels()
        robots: list[Robot] = []
        failed: BotyardError | None = None
        for portion in portions:
            try:
                some = add(portion)
            except BotyardError as error:
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
                    f"{describe_robots(result.robots, 'added')}, then stopped: {failed}"
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
