"""The journal: every change of a world from outside, with tick, source and order.

First world, seed and journal give the same run again, bit for bit (`resimulate`). What happens by itself, such as a battery that drains
or a gripper that closes, is not in it: it follows. Nor is what controllers think: their commands are.

Who did it: commands and claims say so themselves; of all else it is who acts at the moment (`acting`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from botyard.engine.commands import Command, SetVelocities
from botyard.errors import StateError
from botyard.geometry import Pose
from botyard.listeners import Listeners
from botyard.model.dynamics import DynamicsSpec
from botyard.model.objects import Described
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene

if TYPE_CHECKING:
    from botyard.sim.simulation import Simulation


log = logging.getLogger("botyard")
API: Final = "api"
"""Who acts when nobody says so: the program that made the simulation."""
_actor: ContextVar[str] = ContextVar("actor", default=API)


class acting:
    """While this context lasts, and in tasks that begin in it, what is done to worlds is done by `source`."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> None:
        self._tokens.append(_actor.set(self._source))

    def __exit__(self, *_: object) -> None:
        _actor.reset(self._tokens.pop())


class Change(Protocol):
    """What was done to a world."""

    def apply(self, sim: Simulation, source: str) -> None:
        """Do it again."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a journal.

    Attributes
    ----------
    tick : int
        Steps that had been done.
    order : int
        Number of the entry.
    source : str
        Who did it: ``api``, ``pioneer``, ``page`` …
    change : Change
        What was done.
    """

    tick: int
    order: int
    source: str
    change: Change


Listener = Callable[[Entry], None]


@dataclass(frozen=True, slots=True)
class Submit:
    """A command to a body was queued."""

    name: str
    command: Command

    def apply(self, sim: Simulation, source: str) -> None:
        """Queue it."""
        sim.submit(self.name, self.command, source)


@dataclass(frozen=True, slots=True)
class SubmitVelocities:
    """Velocities of many bodies were queued."""

    command: SetVelocities

    def apply(self, sim: Simulation, source: str) -> None:
        """Queue them."""
        sim.submit_velocities(self.command, source)


@dataclass(frozen=True, slots=True)
class AddRobots:
    """Robots came."""

    spec: RobotSpec
    names: tuple[str, ...]
    poses: tuple[Pose, ...]

    def apply(self, sim: Simulation, source: str) -> None:
        """Add them."""
        sim.add_robots(self.spec, self.poses, self.names)


@dataclass(frozen=True, slots=True)
class Unserve:
    """Clients cannot reach these robots."""

    names: tuple[str, ...]

    def apply(self, sim: Simulation, source: str) -> None:
        """They cannot."""
        sim.unserve(self.names)


@dataclass(frozen=True, slots=True)
class RemoveRobots:
    """Robots went."""

    names: tuple[str, ...]

    def apply(self, sim: Simulation, source: str) -> None:
        """Remove them."""
        sim.remove_robots(self.names)


@dataclass(frozen=True, slots=True)
class RemoveBox:
    """A box of the map was taken out."""

    name: str

    def apply(self, sim: Simulation, source: str) -> None:
        """Take it out."""
        sim.remove_box(self.name)


@dataclass(frozen=True, slots=True)
class ReplaceScene:
    """Another map was put under the robots."""

    scene: Scene

    def apply(self, sim: Simulation, source: str) -> None:
        """Put it there."""
        sim.replace_scene(self.scene)


@dataclass(frozen=True, slots=True)
class SetDynamics:
    """A body got another mass, or none."""

    name: str
    spec: DynamicsSpec | None

    def apply(self, sim: Simulation, source: str) -> None:
        """Give it that."""
        sim.set_dynamics(self.name, self.spec)


@dataclass(frozen=True, slots=True)
class Attach:
    """A body was let carry another one."""

    carrier: str
    name: str

    def apply(self, sim: Simulation, source: str) -> None:
        """Let it."""
        sim.attach(self.carrier, self.name)


@dataclass(frozen=True, slots=True)
class Detach:
    """A carried body was let go."""

    name: str

    def apply(self, sim: Simulation, source: str) -> None:
        """Let it go."""
        sim.detach(self.name)


@dataclass(frozen=True, slots=True)
class Describe:
    """Joints and sensors of a description file were added."""

    described: Described

    def apply(self, sim: Simulation, source: str) -> None:
        """Add them."""
        sim.describe(self.described)


@dataclass(frozen=True, slots=True)
class WriteDevice:
    """A device was set: a gripper's goals, a joystick, a joint's command, lines of a controller board.

    Attributes
    ----------
    table, row : str, int
        Which device, see `botyard.engine.tables`.
    values : mapping
        Columns, and what was written to them.
    """

    table: str
    row: int
    values: Mapping[str, Any]

    def apply(self, sim: Simulation, source: str) -> None:
        """Set it."""
        sim.engine.tables[self.table].rows[self.row].write(**self.values)


@dataclass(frozen=True, slots=True)
class SetRays:
    """The rays of a laser were set (bearing of the first and spacing, rad, and number), or those of its model restored (None)."""

    robot: str
    laser: int
    rays: tuple[float, float, int] | None

    def apply(self, sim: Simulation, source: str) -> None:
        """Set them."""
        laser = sim.robots[self.robot].lasers[self.laser]
        if self.rays is None:
            laser.restore()
        else:
            laser.configure(*self.rays)


@dataclass(frozen=True, slots=True)
class Claim:
    """A source of commands came to a robot, or left it."""

    robot: str
    on: bool

    def apply(self, sim: Simulation, source: str) -> None:
        """It comes, or leaves."""
        robot = sim.robots[self.robot]
        if self.on:
            robot.claim(source)
        else:
            robot.release(source)


@dataclass(frozen=True, slots=True)
class Settle:
    """Commands took effect without time."""

    def apply(self, sim: Simulation, source: str) -> None:
        """Let them."""
        sim.settle()


@dataclass(frozen=True, slots=True)
class Restore:
    """The world went on from a saved state.

    Attributes
    ----------
    state : bytes
        See `Simulation.save_state`.
    described : sequence of objects
        The models, boxes and description files of which the state has digests.
    """

    state: bytes
    described: Sequence[object]

    def apply(self, sim: Simulation, source: str) -> None:
        """Go on from it."""
        sim.know(self.described)
        sim.restore(self.state)


class Journal:
    """Tells listeners of changes."""

    def __init__(self) -> None:
        # a journal with a gap would be of no use, so a listener that fails is told no more
        self._listeners = Listeners[Entry](log, "the journal", ends_failed=True)
        self._order = 0
        self._depth = 0

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every change from now on; what is returned unregisters it."""
        return self._listeners.add(listener)

    @property
    def is_read(self) -> bool:
        """Whether anybody listens, to changes that are not part of another one."""
        return bool(self._listeners) and not self._depth

    def note(self, tick: int, source: str | None, change: Change) -> None:
        """Tell of a change. A listener that raises is told no more: what it has would lack one, and the world goes on for all others."""
        if self.is_read:
            self._order += 1
            self._listeners.tell(Entry(tick, self._order, _actor.get() if source is None else source, change))

    def __enter__(self) -> None:
        """What is done now is a part of a change that was told."""
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1


def resimulate(sim: Simulation, entries: Iterable[Entry], ticks: int) -> Iterator[int]:
    """Do all changes of a journal again, and step until `ticks` steps have been done. Programs that drive robots do not think meanwhile.

    Parameters
    ----------
    sim : Simulation
        The first world, as it was when the journal began.
    entries : iterable of Entry
        The journal, in its order.
    ticks : int
        Steps that the world had done at its end.

    Yields
    ------
    int
        `Simulation.digest` after each step, before what was done to the world then. At the end all changes are done.

    Raises
    ------
    StateError
        The world is not the first one: a change is of a tick that is over.
    """
    for entry in entries:
        yield from _up_to(sim, entry.tick)
        with acting(entry.source):
            entry.change.apply(sim, entry.source)
    yield from _up_to(sim, ticks)


def _up_to(sim: Simulation, tick: int) -> Iterator[int]:
    if sim.tick > tick:
        raise StateError(
            f"journal: the next change is of tick {tick}, but {sim.tick} steps have been done: it is of another world"
        )
    while sim.tick < tick:
        sim.engine.step()  # not what is called before a step: what programs did is in the journal
        yield sim.digest()


__all__ = [
    "API",
    "AddRobots",
    "Attach",
    "Change",
    "Claim",
    "Describe",
    "Detach",
    "Entry",
    "Journal",
    "Listener",
    "RemoveBox",
    "RemoveRobots",
    "ReplaceScene",
    "Restore",
    "SetDynamics",
    "SetRays",
    "Settle",
    "Submit",
    "SubmitVelocities",
    "Unserve",
    "WriteDevice",
    "acting",
    "resimulate",
]
