"""Parts of the steps of undo (`botyard.control.undo`).

A part describes bodies that were placed, added or removed, or a map that was replaced.
To undo a part returns the parts that redo it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, Protocol

from botyard.control.bodies import (
    NO_ROBOT_HOST,
    ROBOTS_PER_BATCH,
    Remove,
    check_robot_count,
)
from botyard.control.caller import Caller
from botyard.control.history import went_elsewhere
from botyard.control.parts import Replaced
from botyard.control.site import Site
from botyard.control.world import NO_MAPS
from botyard.engine import commands as cmd
from botyard.errors import BotyardError, StateError
from botyard.geometry import Pose, compose
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.world import Program
from botyard.names import shown
from botyard.sim.programs import employ
from botyard.sim.simulation import Robot, Simulation

MAX_NAMED: Final = 3
"""Maximum number of bodies that a line names; otherwise it states their number."""
Key = tuple[str, object]
"""Name and identity (`Site.identity`) of a body."""
TakingBack = Generator[Any, None, "list[Part]"]


class Placements:
    """Counts how often a client itself has placed each body.

    The other placements of a body were made by other clients.
    """

    def __init__(self) -> None:
        self._own: dict[Key, int] = {}

    def count_own(self, key: Key, number: int) -> None:
        """Count further placements of a body by the client."""
        self._own[key] = self._own.get(key, 0) + number

    def by_others(self, sim: Simulation, key: Key) -> int:
        """Return the number of placements of an existing body by other clients."""
        return sim.core.placements(key[0]) - self._own.get(key, 0)

    def succeed(
        self, name: str, old: object, new: object, before: int, now: int
    ) -> None:
        """Transfer the count to a body that was restored as a new object.

        Parameters
        ----------
        name : str
            Name of the body.
        old, new : object
            Identities of the old and the new object (`Site.identity`).
        before, now : int
            Number of placements of the old and the new object. Placements by others
            still count.
        """
        # The new object's own count makes `by_others` return the same number as before.
        self._own[name, new] = now - (before - self._own.pop((name, old), 0))

    def keep(self, keys: Iterable[Key]) -> None:
        """Keep the counts of these bodies, and forget the counts of all others."""
        wanted = set(keys)
        self._own = {key: number for key, number in self._own.items() if key in wanted}


class Log(Protocol):
    """Interface of `botyard.control.undo.Undoing` that parts use."""

    def succeed(
        self, name: str, old: object, new: object, before: int, by: Placements
    ) -> None:
        """Transfer steps to a body that a client has restored as a new object.

        It had been placed `before` times; `by` has the client's own placements.
        """
        ...

    def begin_anew(self, by: Placements) -> None:
        """Forget the steps of other clients after the world returned to another moment.

        They belong to another run. `by` has the placements of the client that did this.
        """
        ...


@dataclass(slots=True)
class _Kept:
    """A body of a part, with its identity (`Site.identity`)."""

    body: object


class Part(ABC):
    """Part of a step of undo.

    Attributes
    ----------
    kept : mapping of str to _Kept
        Bodies of the part by name.
    """

    kept: Mapping[str, _Kept]

    @property
    def bodies(self) -> int:
        """Number of bodies of the part."""
        return len(self.kept)

    @property
    def size(self) -> int:
        """Size of the map that the part keeps, bytes."""
        return 0

    @property
    @abstractmethod
    def what(self) -> str:
        """Description of the change, for messages."""

    def touched(self) -> Iterable[Key]:
        """Return the bodies whose placements matter to the part."""
        return ((name, one.body) for name, one in self.kept.items())

    def absorb(self, other: Part) -> bool:
        """Merge another part of the same step into this one.

        Return whether it is possible.
        """
        joined = self._joined(other) if type(other) is type(self) else None
        if joined is not None:
            self.kept = joined
        return joined is not None

    def _joined(self, other: Any) -> Mapping[str, Any] | None:
        """Return the bodies of this part and a later one of its class.

        None: each part stands for itself.
        """
        return None

    def rename(self, name: str, old: object, new: object) -> None:
        """Replace the identity of a body that was restored as a new object."""
        if name in self.kept and self.kept[name].body == old:
            self.kept[name].body = new

    @abstractmethod
    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Undo the part in portions; return the parts that redo it.

        `notes` receives messages about bodies that could not be restored.
        """


def described(parts: Sequence[Part]) -> str:
    """Return a description of the parts, for messages."""
    return ", ".join(dict.fromkeys(part.what for part in parts))


def _names(names: Sequence[str]) -> str:
    return (
        ", ".join(shown(name, 40) for name in names)
        if len(names) <= MAX_NAMED
        else f"{len(names)} bodies"
    )


def _note(notes: list[str], names: Sequence[str], one: str, many: str) -> None:
    if names:
        notes.append(f"{_names(names)} {one if len(names) == 1 else many}")


@dataclass(slots=True)
class _Spot(_Kept):
    """Former state of a body: true pose, odometry and placements by others.

    The odometry is set for a robot that was sent home: its pose, and its frame.
    """

    pose: Pose
    odometry: tuple[Pose, Pose] | None
    others: int


def _odometry(sim: Simulation, row: int) -> tuple[Pose, Pose]:
    """Return the odometry of a body, and the frame of the odometry."""
    state = sim.snapshot.state
    return Pose(*state.odom[row].tolist()), Pose(*state.odom_frame[row].tolist())


def _put(
    sim: Simulation,
    name: str,
    pose: Pose,
    odometry: tuple[Pose, Pose] | None,
    source: str,
) -> None:
    """Put a body at a true pose, and restore its odometry including the error."""
    if odometry is not None:
        odom, frame = odometry
        # Odometry is set at the true pose where it has no error, because that
        # determines its frame.
        sim.put(name, compose(frame, odom), source)
        sim.core.accept_command(name, cmd.SetOdometry(odom), source)

    sim.put(name, pose, source)


@dataclass
class Placed(Part):
    """Bodies that were placed, with their former poses."""

    kept: Mapping[str, _Spot]
    is_home: bool = False
    """Whether they were sent to their start poses, which also reset their odometry."""

    @classmethod
    def of(
        cls,
        control: Site,
        names: Iterable[str],
        own: Placements,
        odometry: bool = False,
    ) -> Placed:
        """Return the current poses of bodies."""
        sim, spots = control.sim, {}
        for name in names:
            row = sim.snapshot.rows.get(name)
            # The body was removed, or has been added but has no state yet.
            if row is None or name not in sim.core.engine.rows:
                continue
            body = control.identity(name)
            pose = Pose(*sim.snapshot.state.pose[row].tolist())
            # Boxes have no odometry.
            robot = odometry and name in sim.robots
            spots[name] = _Spot(
                body,
                pose,
                _odometry(sim, row) if robot else None,
                own.by_others(sim, (name, body)),
            )

        return cls(spots, odometry)

    def changed(self, control: Site, own: Placements) -> Placed:
        """Return the bodies that the client has placed since."""
        moved = {}
        for name, spot in self.kept.items():
            if (
                name in control.sim.core.engine.rows
                and control.identity(name) == spot.body
            ):
                # Called directly after the operation, so the additional placements are
                # the client's.
                number = own.by_others(control.sim, (name, spot.body)) - spot.others
                if number:
                    own.count_own((name, spot.body), number)
                    moved[name] = spot

        return Placed(moved, self.is_home)

    @property
    def what(self) -> str:
        """Description of the change, for messages."""
        return (
            f"{'sending home' if self.is_home else 'moving'} {_names(list(self.kept))}"
        )

    def _joined(self, other: Placed) -> Mapping[str, _Spot] | None:
        # Sending home also sets the odometry, so the two kinds of placement stay apart.
        # A body in both parts keeps the older pose of this one.
        same = other.is_home == self.is_home
        return {**other.kept, **self.kept} if same else None

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Move the bodies to their former poses, except for bodies placed by others."""
        yield None
        sim = control.sim
        # Taken before the bodies move, because it becomes the step that redoes this.
        now = Placed.of(control, self.kept, own, self.is_home)
        gone, moved, back = [], [], []
        for name, spot in self.kept.items():
            # A body of the same name may be a later one.
            if name not in now.kept or now.kept[name].body != spot.body:
                gone.append(name)
            elif now.kept[name].others != spot.others:
                moved.append(name)
            else:
                _put(sim, name, spot.pose, spot.odometry, caller.source)
                back.append(name)

        _note(notes, gone, "no longer exists", "no longer exist")
        _note(
            notes,
            moved,
            "was moved by another client and stays",
            "were moved by other clients and stay",
        )
        return [
            Placed({name: now.kept[name] for name in back}, self.is_home).changed(
                control, own
            )
        ]


@dataclass
class Added(Part):
    """Bodies that were added."""

    kept: Mapping[str, _Kept]

    @classmethod
    def of(cls, control: Site, names: Iterable[str]) -> Added:
        """Return a part for the named bodies that exist."""
        return cls(
            {
                name: _Kept(control.identity(name))
                for name in names
                if name in control.sim.core.engine.rows
            }
        )

    @property
    def what(self) -> str:
        """Description of the change, for messages."""
        return f"adding {_names(list(self.kept))}"

    def _joined(self, other: Added) -> Mapping[str, _Kept]:
        return {**self.kept, **other.kept}

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Remove the added bodies."""
        yield None
        rows = control.sim.core.engine.rows
        there = [
            name
            for name, kept in self.kept.items()
            if name in rows and control.identity(name) == kept.body
        ]
        _note(
            notes,
            [n for n in self.kept if n not in there],
            "was already removed",
            "were already removed",
        )
        # Taken before the removal, because it becomes the step that redoes this.
        removed = Removed.of(control, there)
        if there:
            Remove(names=tuple(there)).perform(control, caller)
        return [removed]


@dataclass(slots=True)
class _Former(_Kept):
    """Properties of a removed body from which a similar one is created."""

    model: RobotSpec | BoxObject
    start: Pose
    pose: Pose
    odometry: tuple[Pose, Pose] | None
    program: Program | None
    is_served: bool
    is_ghost: bool
    is_stopped: bool
    is_kept_off: bool
    spawned: str | None
    port: int
    placements: int


@dataclass
class Removed(Part):
    """Bodies that were removed."""

    kept: Mapping[str, _Former]

    @classmethod
    def of(cls, control: Site, names: Iterable[str]) -> Removed:
        """Return a part for the named bodies that exist."""
        sim, kept = control.sim, {}
        boxes = dict(zip(sim.core.box_names, sim.scene.boxes, strict=True))
        for name in names:
            robot, row = sim.robots.get(name), sim.snapshot.rows.get(name)
            if robot is None and name not in boxes:
                continue
            model = boxes[name] if robot is None else robot.spec
            start = (
                model.pose
                if isinstance(model, BoxObject)
                else robot.start
                if robot is not None
                else Pose()
            )
            pose = (
                start if row is None else Pose(*sim.snapshot.state.pose[row].tolist())
            )
            drives = robot is not None and bool(robot.spec.drive) and row is not None
            kept[name] = _Former(
                body=control.identity(name),
                model=model,
                start=start,
                pose=pose,
                odometry=_odometry(sim, row) if drives and row is not None else None,
                program=sim.core.programs.by_robot.get(name),
                is_served=sim.core.is_served(name),
                is_ghost=robot is not None and robot.is_ghost,
                is_stopped=robot is not None and robot.electrics.estop_pressed,
                is_kept_off=robot is not None and robot.is_kept_off,
                spawned=control.spawned.get(name),
                port=0
                if control.robot_host is None
                else control.robot_host.port_of(name),
                placements=sim.core.placements(name),
            )

        return cls(kept)

    def gone(self, control: Site) -> Removed:
        """Return the bodies that no longer exist."""
        return Removed(
            {
                name: kept
                for name, kept in self.kept.items()
                if name not in control.sim.core.engine.rows
            }
        )

    @property
    def what(self) -> str:
        """Description of the change, for messages."""
        return f"removing {_names(list(self.kept))}"

    def _joined(self, other: Removed) -> Mapping[str, _Former] | None:
        # A name that occurs in both was removed, added again and removed again.
        both = self.kept.keys() & other.kept.keys()
        return None if both else {**self.kept, **other.kept}

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Add similar bodies under the same names at the former poses."""
        sim, robot_host = control.sim, control.part(control.robot_host, NO_ROBOT_HOST)
        back: list[str] = []
        robots: list[Robot] = []
        taken = [name for name in self.kept if name in sim.core.engine.rows]
        _note(
            notes,
            taken,
            "is now the name of another body",
            "are now the names of other bodies",
        )
        # Robots of one model are added together, which is faster.
        for _, some in groupby(
            (n for n in self.kept if n not in taken),
            key=lambda n: id(self.kept[n].model),
        ):
            names = list(some)
            for first in range(0, len(names), ROBOTS_PER_BATCH):
                batch = names[first : first + ROBOTS_PER_BATCH]
                try:
                    robots += self._add(control, batch)
                except BotyardError as error:
                    notes.append(f"{_names(batch)}: {error}")
                    continue

                for name in batch:
                    self._finish(control, caller, name, log, own)
                back += batch
                # Let the world run between batches.
                yield None

        try:
            yield robot_host.serve(
                robots,
                {name: self.kept[name].port for name in back if self.kept[name].port},
            )
        # The bodies exist even if a port cannot be opened.
        except BotyardError as error:
            notes.append(str(error))

        return [Added.of(control, back)]

    def _add(self, control: Site, names: Sequence[str]) -> list[Robot]:
        """Add bodies of one model at their start poses."""
        sim, model = control.sim, self.kept[names[0]].model
        if isinstance(model, BoxObject):
            for name in names:
                sim.add_box(model, name)
            return []

        # Other clients may have added robots since the removal.
        check_robot_count(control, len(names))
        robot_host = control.part(control.robot_host, NO_ROBOT_HOST)
        return robot_host.add_robots(
            model, [self.kept[name].start for name in names], names
        )

    def _finish(
        self, control: Site, caller: Caller, name: str, log: Log, own: Placements
    ) -> None:
        """Move a restored body to its former pose; restore its program and flags."""
        sim, kept = control.sim, self.kept[name]
        robot = sim.robots.get(name)
        if robot is not None:
            # `add_robots` marks all robots as served.
            if not kept.is_served:
                sim.core.unserve([name])
            # Controllers keep their options, but restart from their initial state.
            if kept.program is not None:
                employ(robot, kept.program)
            if kept.is_ghost:
                robot.ghost(True, caller.source)
            # A robot that was stopped must not drive off when its removal is undone.
            if kept.is_stopped:
                robot.press_estop(True, caller.source)
            if kept.is_kept_off:
                robot.port(caller.source).enable_motors(False)
            if kept.spawned is not None:
                control.spawned[name] = kept.spawned

        before = sim.core.placements(name)
        _put(sim, name, kept.pose, kept.odometry, caller.source)
        body = control.identity(name)
        # Boxes keep their identity, so their placements continue to count.
        if body == kept.body:
            own.count_own((name, body), sim.core.placements(name) - before)
        else:
            log.succeed(name, kept.body, body, kept.placements, own)


@dataclass
class MapReplaced(Part):
    """A map that was replaced by another one."""

    replaced: Replaced
    by: str
    kept: Mapping[str, _Kept] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, control: Site, replaced: Replaced, own: Placements) -> list[Part]:
        """Return parts for the replaced map, and for robots that the new map moved."""
        sim, spots = control.sim, {}
        for name, robot in replaced.robots.items():
            # Only robots that survived the change of the map.
            if sim.robots.get(name) is robot:
                number = sim.core.placements(name) - replaced.placements[name]
                if number:
                    own.count_own((name, robot), number)
                    others = own.by_others(sim, (name, robot))
                    # Loading a map keeps odometry, so it is not restored.
                    spots[name] = _Spot(robot, replaced.poses[name], None, others)

        return [cls(replaced, sim.scene.name), Placed(spots)]

    @property
    def size(self) -> int:
        """Size of the map that the part keeps, bytes."""
        scene = self.replaced.scene
        # At least 1, because parts of size 0 without bodies are dropped.
        return 1 + int(scene.segments.nbytes + scene.points.nbytes)

    @property
    def what(self) -> str:
        """Description of the change, for messages."""
        return f"loading {shown(self.by, 60)}" if self.by else "removing the map"

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Restore the former map and its boxes; remove the new map's robots."""
        sim = control.sim
        maps, robot_host = (
            control.part(control.maps, NO_MAPS),
            control.part(control.robot_host, NO_ROBOT_HOST),
        )
        came = [
            robot.name
            for robot in robot_host.arrived
            if sim.robots.get(robot.name) is robot
        ]
        try:
            yield maps.put_back(self.replaced)
        except BotyardError as error:
            notes.append(str(error))
            return []

        # Clients may have removed robots while the map was loaded.
        came = [name for name in came if name in sim.robots]
        removed = Removed.of(control, came)
        if came:
            Remove(names=tuple(came)).perform(control, caller)
        for name in sim.core.box_names:
            if name in self.replaced.poses:
                sim.put(name, self.replaced.poses[name], caller.source)
                # The client's own placement does not count as foreign.
                own.count_own((name, control.identity(name)), 1)

        # The restored map has replaced another one, which redo needs.
        present = maps.replaced
        return (
            [] if present is None else [removed, *MapReplaced.of(control, present, own)]
        )


@dataclass
class WentBack(Part):
    """The world before it continued from another moment: state, map and models.

    Attributes
    ----------
    time : float
        Simulated time from which it has continued, s.
    """

    state: bytes
    scene: Scene
    models: tuple[object, ...]
    time: float
    kept: Mapping[str, _Kept] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, sim: Simulation) -> WentBack | None:
        """Return the current world; None if it cannot be saved."""
        try:
            return cls(sim.save_state(), sim.scene, sim.core.states.models(), sim.time)
        except StateError:
            return None

    @property
    def size(self) -> int:
        """Size of the state and the map that the part keeps, bytes."""
        return len(self.state) + int(
            self.scene.segments.nbytes + self.scene.points.nbytes
        )

    @property
    def what(self) -> str:
        """Description of the change, for messages."""
        return f"continuing from {self.time:.1f} s"

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Return the whole world to its former state.

        The steps of all clients are forgotten.
        """
        # The world may change only between two steps.
        yield None
        sim = control.sim
        # Saved before the world changes; without it there would be no redo.
        inverse = WentBack.of(sim)
        if inverse is None:
            notes.append("the current world cannot be saved")
            return []

        # The state names models that the current world may not have.
        sim.core.states.know(self.models)
        try:
            sim.core.states.branch(self.state, self.scene)
        except StateError as error:
            notes.append(str(error))
            return []

        inverse.time = self.time
        # Later moments belong to the run that is left.
        sim.history.forget_after(self.time)
        went_elsewhere(control)
        log.begin_anew(own)
        control.settle()
        return [inverse]


__all__ = [
    "Added",
    "MapReplaced",
    "Part",
    "Placed",
    "Placements",
    "Removed",
    "WentBack",
    "described",
]
