"""The journal: every change of a world from outside, with tick, source and order.

First world, seed and journal give the same run again, bit for bit (`resimulate`). What happens by itself, such as a battery that drains
or a gripper that closes, is not in it: it follows. Nor is what controllers think: their commands are.

Who did it: commands and claims say so themselves; of all else it is who acts at the moment (`acting`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Final

from botyard.engine.commands import Command, SetVelocities
from botyard.geometry import Pose
from botyard.listeners import Listeners
from botyard.model.dynamics import DynamicsSpec
from botyard.model.objects import Described
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene

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


class Change:
    """What was done to a world, as data; `botyard.sim.resimulation.apply` does it again. Subclasses are frozen dataclasses."""

    __slots__ = ()


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
class Submit(Change):
    """A command to a body was queued."""

    name: str
    command: Command


@dataclass(frozen=True, slots=True)
class SubmitVelocities(Change):
    """Velocities of many bodies were queued."""

    command: SetVelocities


@dataclass(frozen=True, slots=True)
class AddRobots(Change):
    """Robots came."""

    spec: RobotSpec
    names: tuple[str, ...]
    poses: tuple[Pose, ...]


@dataclass(frozen=True, slots=True)
class Unserve(Change):
    """Clients cannot reach these robots."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveRobots(Change):
    """Robots went."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveBox(Change):
    """A box of the map was taken out."""

    name: str


@dataclass(frozen=True, slots=True)
class ReplaceScene(Change):
    """Another map was put under the robots."""

    scene: Scene


@dataclass(frozen=True, slots=True)
class SetDynamics(Change):
    """A body got another mass, or none."""

    name: str
    spec: DynamicsSpec | None


@dataclass(frozen=True, slots=True)
class Attach(Change):
    """A body was let carry another one."""

    carrier: str
    name: str


@dataclass(frozen=True, slots=True)
class Detach(Change):
    """A carried body was let go."""

    name: str


@dataclass(frozen=True, slots=True)
class Describe(Change):
    """Joints and sensors of a description file were added."""

    described: Described


@dataclass(frozen=True, slots=True)
class WriteDevice(Change):
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


@dataclass(frozen=True, slots=True)
class SetRays(Change):
    """The rays of a laser were set (bearing of the first and spacing, rad, and number), or those of its model restored (None)."""

    robot: str
    laser: int
    rays: tuple[float, float, int] | None


@dataclass(frozen=True, slots=True)
class Claim(Change):
    """A source of commands came to a robot, or left it."""

    robot: str
    on: bool


@dataclass(frozen=True, slots=True)
class Settle(Change):
    """Commands took effect without time."""


@dataclass(frozen=True, slots=True)
class Restore(Change):
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
]
