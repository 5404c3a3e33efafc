"""Undo parts for bodies that were placed, added or removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from botyard.control.adding import NO_ROBOT_HOST, ROBOTS_PER_BATCH, check_robot_count
from botyard.control.bodies import Remove
from botyard.control.caller import Caller
from botyard.control.site import Site
from botyard.control.undo_part import (
    Kept,
    Log,
    Part,
    Placements,
    TakingBack,
    add_note,
    names_text,
)
from botyard.engine import commands as cmd
from botyard.errors import BotyardError
from botyard.geometry import Pose, compose
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.world import Program
from botyard.sim.programs import employ
from botyard.sim.simulation import Robot, Simulation


@dataclass(slots=True)
class Spot(Kept):
    """Former state of a body that a client has placed.

    Attributes
    ----------
    pose : Pose
        True pose.
    odometry : (Pose, Pose) or None
        For a robot that was sent home: its pose by odometry, and the frame of the odometry.
    others : int
        Number of placements of the body by other clients so far.
    """

    pose: Pose
    odometry: tuple[Pose, Pose] | None
    others: int


def _odometry(sim: Simulation, row: int) -> tuple[Pose, Pose]:
    """Return the odometry pose of a body, and the frame of the odometry."""
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
    """Undo part for bodies that were placed: their former poses."""

    kept: Mapping[str, Spot]
    is_home: bool = False
    """Whether the bodies were sent to their start poses, which also reset their odometry."""

    @classmethod
    def of(
        cls,
        control: Site,
        names: Iterable[str],
        own: Placements,
        odometry: bool = False,
    ) -> Placed:
        """Return an undo part with the current poses of bodies.

        Parameters
        ----------
        control : Site
            Context of the operation.
        names : iterable of str
            Names; bodies without a state are left out.
        own : Placements
            Placements of the client.
        odometry : bool
            Whether to store the odometry of robots as well.
        """
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
            spots[name] = Spot(
                body,
                pose,
                _odometry(sim, row) if robot else None,
                own.by_others(sim, (name, body)),
            )

        return cls(spots, odometry)

    def changed(self, control: Site, own: Placements) -> Placed:
        """Return an undo part for only the bodies that the client has placed since `of`.

        Call it directly after the operation: the client has then made all further
        placements.

        Parameters
        ----------
        control : Site
            Context of the operation.
        own : Placements
            Placements of the client. In-place: the new placements are added.
        """
        moved = {}
        for name, spot in self.kept.items():
            if (
                name in control.sim.core.engine.rows
                and control.identity(name) == spot.body
            ):
                # Called directly after the operation, so the client has made the
                # additional placements.
                number = own.by_others(control.sim, (name, spot.body)) - spot.others
                # A body that already stood at its pose was not placed, and undo must
                # not touch it.
                if number:
                    own.count_own((name, spot.body), number)
                    moved[name] = spot

        return Placed(moved, self.is_home)

    @property
    def what(self) -> str:
        """Description of the placement, for messages."""
        return f"{'sending home' if self.is_home else 'moving'} {names_text(list(self.kept))}"

    def _joined(self, other: Placed) -> Mapping[str, Spot] | None:
        # Sending home also sets the odometry, so the two kinds of placement stay apart.
        # A body in both parts keeps the older pose, from this part.
        same = other.is_home == self.is_home
        return {**other.kept, **self.kept} if same else None

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Move bodies to their former poses, except bodies that other clients placed."""
        yield None
        sim = control.sim
        # The present poses become the entry for redo, so take them before bodies move.
        now = Placed.of(control, self.kept, own, self.is_home)
        gone, moved, back = [], [], []

        for name, spot in self.kept.items():
            # The name may now belong to a later body.
            if name not in now.kept or now.kept[name].body != spot.body:
                gone.append(name)
            elif now.kept[name].others != spot.others:
                moved.append(name)
            else:
                _put(sim, name, spot.pose, spot.odometry, caller.source)
                back.append(name)

        add_note(notes, gone, "no longer exists", "no longer exist")
        add_note(
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
    """Undo part for bodies that were added."""

    kept: Mapping[str, Kept]

    @classmethod
    def of(cls, control: Site, names: Iterable[str]) -> Added:
        """Return an undo part for the named bodies that exist; other names are ignored."""
        return cls(
            {
                name: Kept(control.identity(name))
                for name in names
                if name in control.sim.core.engine.rows
            }
        )

    @property
    def what(self) -> str:
        """Description of the addition, for messages."""
        return f"adding {names_text(list(self.kept))}"

    def _joined(self, other: Added) -> Mapping[str, Kept]:
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
        add_note(
            notes,
            [n for n in self.kept if n not in there],
            "was already removed",
            "were already removed",
        )

        # Copy the bodies before the removal: the copy becomes the step that redoes
        # this.
        removed = Removed.of(control, there)
        if there:
            Remove(names=tuple(there)).perform(control, caller)
        return [removed]


@dataclass(slots=True)
class _Former(Kept):
    """Properties of a removed body, from which undo creates a similar body."""

    # The specification is immutable, so it is kept without a copy.
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
    """Undo part for bodies that were removed."""

    kept: Mapping[str, _Former]

    @classmethod
    def of(cls, control: Site, names: Iterable[str]) -> Removed:
        """Return an undo part for the named bodies that exist; other names are ignored."""
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
            # A robot that was added in this step has no state yet, so it stands at its
            # start.
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
        """Return an undo part for only the bodies that no longer exist."""
        return Removed(
            {
                name: kept
                for name, kept in self.kept.items()
                if name not in control.sim.core.engine.rows
            }
        )

    @property
    def what(self) -> str:
        """Description of the removal, for messages."""
        return f"removing {names_text(list(self.kept))}"

    def _joined(self, other: Removed) -> Mapping[str, _Former] | None:
        # A name in both parts was removed, added again and removed again.
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
        add_note(
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
                    notes.append(f"{names_text(batch)}: {error}")
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

        # The inverse of a removal is an addition, so redo removes the bodies again.
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
        # Add robots at their start poses first, because `Reset` returns robots to the
        # pose at which they were added.
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

        # Count the placements here, because adding the body may count as a placement.
        before = sim.core.placements(name)
        _put(sim, name, kept.pose, kept.odometry, caller.source)
        body = control.identity(name)
        # Boxes keep their identity, so their placements continue to count.
        if body == kept.body:
            own.count_own((name, body), sim.core.placements(name) - before)
        else:
            log.succeed(name, kept.body, body, kept.placements, own)


__all__ = ["Added", "Placed", "Removed", "Spot"]
