"""Operations on who is in the world and where: add, clone, remove, place, hold, reset."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from botyard.control.caller import Caller
from botyard.control.later import now
from botyard.control.operation import (
    NAMES,
    Operation,
    a_pose,
    argument,
    count,
    each,
    name,
    optional,
    real,
    text,
    yes_or_no,
)
from botyard.control.site import Site, for_each
from botyard.errors import ArgumentError, BotyardError, ModelError, NameRuleError, NameTakenError, WorldError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.names import check_name, is_name, shown
from botyard.sim.placement import FreePlaces
from botyard.sim.simulation import Robot, Simulation
from botyard.sim.warmup import has_mass_kernels

T = TypeVar("T")

MAX_ROBOTS: Final = 10_000
"""Up to so many robots can be added by clients: by the page, and by those of ROS."""
MAX_AT_ONCE: Final = 1000
"""Robots that one request adds."""
PORTION: Final = 50
"""So many are added at once; then the world goes on."""
NO_GROUNDS: Final = "no robots can be added"


@dataclass(frozen=True, slots=True)
class Arrived:
    """Robots that were added.

    Attributes
    ----------
    robots : tuple of str
        Their names.
    served : Future
        Done when their ports are open; PortError when one is not.
    """

    robots: tuple[str, ...]
    served: Future[None]


def library_model(name: str) -> RobotSpec:
    """The model that a client names, as it is in the library: clients name no files.

    Raises
    ------
    ModelError, ModelFileError
        There is none, or its file is wrong.
    """
    if "/" in name or "\\" in name or not is_name(name) or name.lower().endswith((".p", ".toml")):
        raise ModelError(f'no robot model "{shown(name)}": clients ask for models by their names')
    return find_robot(name)


def check_room(control: Site, number: int) -> None:
    """Whether clients may add so many robots more.

    Raises
    ------
    WorldError
        There would be more than `MAX_ROBOTS`.
    """
    there = len(control.sim.robots)
    if there + number > MAX_ROBOTS:
        raise WorldError(f"clients add robots up to {MAX_ROBOTS}; {there} are there")


@dataclass(frozen=True, kw_only=True)
class AddRobot(Operation[Future[Arrived]]):
    """Add a robot of a model of the library: at once, but for the first one with mass, which waits for the kernels that move it.

    Without a name it gets one; with `rename`, another one when it is taken. Without a pose it stands on the next free place at the map's
    home; with `near`, on the free place next to the pose.
    """

    model: str = argument(text(1000))
    robot: str = argument(text(1000), "")
    pose: Pose | None = argument(optional(a_pose), None)
    near: bool = argument(yes_or_no, False)
    rename: bool = argument(yes_or_no, False)
    audit = logging.INFO
    tells = "every interface offers it: a port, ROS topics, a place on the page"

    def perform(self, control: Site, caller: Caller) -> Future[Arrived]:
        """Do it. NameRuleError, NameTakenError, ModelError, CommandError (an absurd pose), WorldError (too many)."""
        grounds = control.part(control.grounds, NO_GROUNDS)
        spec = grounds.equip(library_model(self.model))
        if _is_movable(spec):
            return now(self._add(control, caller, spec))
        self._free_name(control.sim)

        def work() -> Generator[Future[None] | None, None, Arrived]:
            yield control.mass_kernels()
            return self._add(control, caller, spec)

        return grounds.work(work())

    def _free_name(self, sim: Simulation) -> str:
        wanted = self.robot
        if wanted:
            check_name(wanted, error=NameRuleError)
            if wanted in sim.snapshot.rows or wanted in sim.robots or wanted in sim.box_names:
                if not self.rename:
                    raise NameTakenError(f'a body named "{shown(wanted)}" is there already')
                wanted = sim.unique_name(wanted)
        return wanted

    def _add(self, control: Site, caller: Caller, spec: RobotSpec) -> Arrived:
        sim, grounds = control.sim, control.part(control.grounds, NO_GROUNDS)
        wanted = self._free_name(sim)
        check_room(control, 1)
        if self.pose is None:
            pose = sim.next_places(spec, 1)[0]
        else:
            pose = sim.free_place(spec, self.pose) if self.near else self.pose
        called = wanted or sim.unique_name(spec.name)
        if not caller.is_tame:
            sim.crowd.check(called, pose.x, pose.y)
        robots = grounds.add_robots(spec, [pose], [called])
        return arrived(control, caller, robots)

    def summary(self, result: Any) -> str:
        """What was done."""
        return told(result.robots, "added")


@dataclass(frozen=True, kw_only=True)
class AddRobots(Operation[Future[Arrived]]):
    """Add many robots of a model of the library on the free places around a pose, in portions between which the world goes on."""

    model: str = argument(text(1000))
    number: int = argument(count(1, MAX_AT_ONCE))
    pose: Pose | None = argument(optional(a_pose), None)
    audit = logging.INFO
    tells = AddRobot.tells

    def perform(self, control: Site, caller: Caller) -> Future[Arrived]:
        """Do it."""
        sim, grounds = control.sim, control.part(control.grounds, NO_GROUNDS)
        check_room(control, self.number)
        spec = grounds.equip(library_model(self.model))
        places = FreePlaces(sim.engine, spec, self.pose or sim.home)

        def add(some: int) -> list[Robot]:
            check_room(control, some)  # others may add some meanwhile
            poses = places.take(some)
            return grounds.add_robots(spec, poses, sim.unique_names(spec.name, len(poses)))

        return _in_portions(
            control, caller, [spec], [min(PORTION, self.number - n) for n in range(0, self.number, PORTION)], add
        )

    def summary(self, result: Any) -> str:
        """What was done."""
        return told(result.robots, "added")


@dataclass(frozen=True, kw_only=True)
class CloneRobots(Operation[Future[Arrived]]):
    """Add another of the same model beside each of these."""

    robots: tuple[str, ...] = argument(NAMES)
    audit = logging.INFO
    tells = AddRobot.tells

    def perform(self, control: Site, caller: Caller) -> Future[Arrived]:
        """Do it. Those that have gone meanwhile are passed over; UnknownNameError when none is there."""
        sim, grounds = control.sim, control.part(control.grounds, NO_GROUNDS)
        there = [n for n in self.robots if n in sim.robots]
        if not there and self.robots:
            raise control.unknown(self.robots[0])
        check_room(control, len(there))

        def clone(original: str) -> list[Robot]:
            robot = sim.robots.get(original)
            if robot is None:  # it went meanwhile
                return []
            check_room(control, 1)
            pose = sim.free_place(robot.spec, robot.truth)
            return grounds.add_robots(robot.spec, [pose], [sim.unique_name(robot.spec.name)])

        return _in_portions(control, caller, [sim.robots[n].spec for n in there], there, clone)

    def summary(self, result: Any) -> str:
        """What was done."""
        return told(result.robots, "added")


def arrived(control: Site, caller: Caller, robots: Sequence[Robot]) -> Arrived:
    """Robots that were added by a client, and get their ports."""
    names = tuple(robot.name for robot in robots)
    control.spawned.update(dict.fromkeys(names, caller.source))
    return Arrived(names, control.part(control.grounds, NO_GROUNDS).serve(robots))


def told(names: Sequence[str], what: str) -> str:
    """What happened to robots, in a line of the log."""
    if not names:
        return f"no robot {what}"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{shown(names[0])}{more} {what}"


@dataclass(frozen=True, kw_only=True)
class Remove(Operation[None]):
    """Take robots, obstacles and boxes of the map out of the world; their clients are told to go.

    Those that are there go even if others are not, which is said then.
    """

    names: tuple[str, ...] = argument(NAMES)
    audit = logging.INFO
    tells = "their clients are told to go, topics and places on the page go"

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it. UnknownNameError: the first that was not there."""
        sim, grounds = control.sim, control.part(control.grounds, "nothing can be removed")
        boxes = frozenset(sim.box_names)
        names = list(dict.fromkeys(self.names))
        there = [n for n in names if n in sim.robots or n in boxes]
        if there:
            grounds.remove(there)
            for gone in there:
                control.driven.pop(gone, None)
                control.spawned.pop(gone, None)
        missing = next((n for n in names if n not in sim.robots and n not in boxes and n not in there), None)
        if missing is not None:
            control.settle()
            if there:
                control.tell(caller, Remove(names=tuple(there)), None)
            raise control.unknown(missing)

    def summary(self, result: Any) -> str:
        """What was done."""
        return told(self.names, "removed")


@dataclass(frozen=True, kw_only=True)
class Place(Operation[None]):
    """Put robots and boxes at true poses (m, m, rad), whatever stands there."""

    to: tuple[tuple[str, Pose], ...] = argument(each(lambda value, what, /: _placement(value, what)))

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it. UnknownNameError, CommandError (an absurd pose, or too many on one place)."""
        sim = control.sim

        def put(which: str, pose: Pose) -> None:
            if which not in sim.snapshot.rows and which not in sim.fleet.rows:
                raise control.unknown(which)
            if not caller.is_tame:
                sim.crowd.enter(which, pose.x, pose.y)
            sim.put(which, pose, caller.source)

        for_each(dict(self.to), put)


def _placement(value: Any, what: str, /) -> tuple[str, Pose]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise ArgumentError(f"{what}: expected a name and a pose")
    return name(value[0], what), a_pose(value[1], what)


@dataclass(frozen=True, kw_only=True)
class PlaceAxis(Operation[None]):
    """One coordinate of a robot's true pose: 0 x (m), 1 y (m), 2 heading (rad)."""

    robot: str = argument(name)
    axis: int = argument(count(0, 2))
    value: float = argument(real())

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it. CommandError: an absurd place, or too many on it."""
        control.robot(self.robot).port(caller.source).set_pose_axis(self.axis, self.value)


@dataclass(frozen=True, kw_only=True)
class Hold(Operation[None]):
    """Take hold of bodies, or let go: held ones do not move by themselves, until each client that holds one has let go of it."""

    names: tuple[str, ...] = argument(NAMES)
    on: bool = argument(yes_or_no)

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        for_each(dict.fromkeys(self.names), lambda n, _: hold(control, n, self.on, caller))


def hold(control: Site, body: str, on: bool, caller: Caller) -> None:
    """Take hold of a body for a client, or let go; its source lets go when none of its clients holds the body any more.

    Raises
    ------
    UnknownNameError
        There is no such body.
    """
    is_held = caller.source in control.sim.holders(body)
    # clients of a body that is gone, or of another moment that the world has gone back from, hold nothing
    clients = control.held.pop((body, caller.source), set()) if is_held else set()
    (clients.add if on else clients.discard)(caller.key)
    if clients:
        control.held[body, caller.source] = clients
    if on or not clients:
        control.sim.hold(body, on, caller.source)


@dataclass(frozen=True, kw_only=True)
class Reset(Operation[None]):
    """Put robots and boxes, or all of them, back where they started, odometry zero, at rest.

    With `spawned`, robots that this source has added go first; without `starts`, nothing else is done.
    """

    names: tuple[str, ...] | None = argument(optional(NAMES), None)
    spawned: bool = argument(yes_or_no, False)
    starts: bool = argument(yes_or_no, True)

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        sim = control.sim
        if self.spawned:
            gone = [n for n, source in control.spawned.items() if source == caller.source and n in sim.robots]
            control.spawned = {n: source for n, source in control.spawned.items() if source != caller.source}
            if gone:
                control.part(control.grounds, "nothing can be removed").remove(gone)
        if not self.starts:
            return
        if self.names is None:
            sim.reset(None, caller.source)
        else:
            for_each(dict.fromkeys(self.names), lambda n, _: sim.reset([n], caller.source))


@dataclass(frozen=True, kw_only=True)
class SetGhost(Operation[None]):
    """Nobody sees or feels a robot any more, or everybody again."""

    robot: str = argument(name)
    on: bool = argument(yes_or_no)

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.robot(self.robot).port(caller.source).set_ghost(self.on)


@dataclass(frozen=True, kw_only=True)
class SetOdometryErrors(Operation[None]):
    """Errors of a robot's odometry on or off."""

    robot: str = argument(name)
    on: bool = argument(yes_or_no)

    def perform(self, control: Site, caller: Caller) -> None:
        """Do it."""
        control.robot(self.robot).port(caller.source).set_odometry_errors(self.on)


@dataclass(frozen=True, kw_only=True)
class TakeBodies(Operation[Simulation]):
    """Bodies as programs of forces command them: pushes, pulls, velocities, masses, joints pass through what is answered.

    This is how a stream of commands passes: who may is asked once for each, the engine's queue checks and journals each command.
    """

    settles = False

    def perform(self, control: Site, caller: Caller) -> Simulation:
        """Do it."""
        return control.sim


def _is_movable(spec: RobotSpec) -> bool:
    """Whether a robot of this model can be moved now: one with mass needs kernels that are compiled when the first one comes."""
    return spec.dynamics is None or has_mass_kernels()


def _in_portions(
    control: Site,
    caller: Caller,
    specs: Sequence[RobotSpec],
    portions: Sequence[T],
    add: Callable[[T], list[Robot]],
) -> Future[Arrived]:
    """Add robots of these models portion by portion, with other work in between; done when their ports are open.

    When a portion cannot be added, those before it stay, and get their ports, before that is told.
    """
    grounds = control.part(control.grounds, NO_GROUNDS)

    def work() -> Generator[Future[None] | None, None, Arrived]:
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
            control.spawned.update((r.name, caller.source) for r in some)
            robots += some
            yield None
        result = arrived(control, caller, [r for r in robots if control.sim.robots.get(r.name) is r])
        yield result.served
        if failed is not None:
            raise WorldError(f"{told(result.robots, 'added')}, and then no more: {failed}") if robots else failed
        return result

    return grounds.work(work())


__all__ = [
    "MAX_ROBOTS", "PORTION", "AddRobot", "AddRobots", "Arrived", "CloneRobots", "Hold", "Place", "PlaceAxis", "Remove", "Reset", "SetGhost",
    "SetOdometryErrors", "TakeBodies", "arrived", "check_room", "library_model",
]  # fmt: skip
