"""Undo of operations on robots: their controllers, batteries and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from botyard.control.caller import Caller
from botyard.control.renaming import RenameRobots
from botyard.control.site import Site
from botyard.control.undo_part import (
    Kept,
    Key,
    Log,
    Part,
    Placements,
    TakingBack,
    add_note,
    names_text,
    performed,
)
from botyard.model.world import Program
from botyard.sim.programs import employ


@dataclass(slots=True)
class Controlled(Kept):
    """Robot with the controller that it had, and the one that it got.

    Attributes
    ----------
    before : Program or None
        Controller before the operation.
    after : Program or None
        Controller after it, by which a later change of another client is found.
    """

    before: Program | None
    after: Program | None = None


@dataclass(slots=True)
class Sent(Part):
    """Robots that were sent to goals, with their controllers before."""

    kept: Mapping[str, Controlled]

    @classmethod
    def of(cls, control: Site, names: Iterable[str]) -> Sent:
        """Return a part with the controllers of robots, before an operation replaces them."""
        sim = control.sim
        programs = sim.core.programs.by_robot
        return cls(
            {
                name: Controlled(control.identity(name), programs.get(name))
                for name in names
                if name in sim.robots
            }
        )

    def changed(self, control: Site) -> Sent:
        """Return the part with the robots whose controller the operation has replaced."""
        programs = control.sim.core.programs.by_robot
        for name, kept in self.kept.items():
            kept.after = programs.get(name)
        return Sent({n: k for n, k in self.kept.items() if k.after is not k.before})

    @property
    def what(self) -> str:
        """Description of the change, for messages."""
        return f"sending {names_text(tuple(self.kept))}"

    def touched(self) -> Iterable[Key]:
        """Return no bodies: placements do not matter to controllers."""
        return ()

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Give the robots the controllers that they had before; see `Part.take_back`."""
        yield None
        sim = control.sim
        gone: list[str] = []
        others: list[str] = []
        redo: dict[str, Controlled] = {}
        for name, kept in self.kept.items():
            robot = sim.robots.get(name)
            if robot is None or control.identity(name) != kept.body:
                gone.append(name)
                continue
            now = sim.core.programs.by_robot.get(name)
            if now is not kept.after:
                others.append(name)
                continue
            if kept.before is None:
                robot.set_controller(None)
            else:
                employ(robot, kept.before)
                robot.take_over()
            redo[name] = Controlled(
                kept.body, now, sim.core.programs.by_robot.get(name)
            )
        add_note(notes, gone, "is gone", "are gone")
        add_note(
            notes, others, "has another controller now", "have other controllers now"
        )
        return [Sent(redo)]


@dataclass(slots=True)
class Charge(Kept):
    """Robot with the charge of its battery, %."""

    charge: float


@dataclass(slots=True)
class Charged(Part):
    """Robots whose batteries were set to another charge."""

    kept: Mapping[str, Charge]

    @classmethod
    def of(cls, control: Site, names: Iterable[str]) -> Charged:
        """Return a part with the charges of robots, before an operation sets them."""
        robots = control.sim.robots
        return cls(
            {
                name: Charge(control.identity(name), robots[name].electrics.charge)
                for name in names
                if name in robots
            }
        )

    @property
    def what(self) -> str:
        """Description of the change, for messages."""
        return f"charging {names_text(tuple(self.kept))}"

    def touched(self) -> Iterable[Key]:
        """Return no bodies: placements do not matter to batteries."""
        return ()

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Give the batteries the charge that they had before; see `Part.take_back`."""
        yield None
        gone: list[str] = []
        redo: dict[str, Charge] = {}
        for name, kept in self.kept.items():
            robot = control.sim.robots.get(name)
            if robot is None or control.identity(name) != kept.body:
                gone.append(name)
                continue
            redo[name] = Charge(kept.body, robot.electrics.charge)
            robot.electrics.battery.write(charge=kept.charge)
        add_note(notes, gone, "is gone", "are gone")
        return [Charged(redo)]


@dataclass(slots=True)
class Former(Kept):
    """Robot with the name that it had."""

    name: str


@dataclass(slots=True)
class Renamed(Part):
    """Robots that got other names."""

    kept: Mapping[str, Former]

    @classmethod
    def of(cls, control: Site, names: Iterable[tuple[str, str]]) -> Renamed:
        """Return the undo record of a renaming.

        `names` has pairs of old and new names. Unchanged names are skipped.
        """
        return cls(
            {
                new: Former(control.identity(new), old)
                for old, new in names
                if old != new
            }
        )

    @property
    def what(self) -> str:
        """Description of the change, for messages."""
        return f"renaming {names_text([one.name for one in self.kept.values()])}"

    def touched(self) -> Iterable[Key]:
        """Return no bodies: placements do not matter to names."""
        return ()

    def take_back(
        self, control: Site, caller: Caller, log: Log, own: Placements, notes: list[str]
    ) -> TakingBack:
        """Give the robots the names that they had before; see `Part.take_back`."""
        yield None
        there = {
            name: kept.name
            for name, kept in self.kept.items()
            if name in control.sim.robots and control.identity(name) == kept.body
        }
        add_note(notes, [n for n in self.kept if n not in there], "is gone", "are gone")
        back = RenameRobots(names=tuple(there.items()))
        if not performed(back, control, caller, notes):
            return []
        return [Renamed.of(control, there.items())]


__all__ = ["Charged", "Renamed", "Sent"]
