"""Journal of a world: every change from outside, with tick, source and order.

Initial world, seed and journal reproduce a run bit for bit (`resimulate`). Internal
dynamics, such as a draining battery or a closing gripper, are not recorded, because
they follow from the recorded changes. Only the commands of controllers are recorded.

Commands and claims carry their source. The source of other changes is the present actor
(`acting`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from botyard.api import arguments
from botyard.engine.commands import Command, SetVelocity
from botyard.engine.velocities import SetVelocities
from botyard.errors import CommandError
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.floor import Floor, FloorZone
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene

log = logging.getLogger("botyard")
API: Final = "api"
"""Default source: the program that made the simulation."""
_actor: ContextVar[str] = ContextVar("actor", default=API)


class acting:
    """Context manager that sets the source of changes in its block.

    Tasks started in the block inherit the source.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> None:
        self._tokens.append(_actor.set(self._source))

    def __exit__(self, *_: object) -> None:
        _actor.reset(self._tokens.pop())


class Change:
    """Change of a world as data; `botyard.sim.resimulation.apply` repeats it.

    Subclasses are frozen dataclasses.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a journal.

    Attributes
    ----------
    tick : int
        Number of steps done at the time of the change.
    order : int
        Number of the entry.
    source : str
        Source of the change: ``api``, ``pioneer``, ``page`` …
    change : Change
        Recorded change.
    """

    tick: int
    order: int
    source: str
    change: Change


Listener = Callable[[Entry], None]
VelocityListener = Callable[[int, int, str, str, SetVelocity], None]
"""Callback that receives tick, number, source, name of the body, and command."""


class _Reader(NamedTuple):
    listener: Listener
    on_velocity: VelocityListener | None


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
class SubmitEach(Change):
    """Velocities of bodies were queued one after the other.

    It replaces several `Submit` with consecutive numbers.

    Attributes
    ----------
    names : tuple of str
        Names of the bodies, possibly with repetitions.
    v, w, vy : tuple of float or None
        Velocities of each command, as in `SetVelocity`.
    """

    names: tuple[str, ...]
    v: tuple[float | None, ...]
    w: tuple[float | None, ...]
    vy: tuple[float | None, ...]

    def each(self) -> Iterator[tuple[str, SetVelocity]]:
        """Yield the bodies and their commands in order.

        Raises
        ------
        CommandError
            An axis has fewer or more numbers than names, or one is not finite.
        """
        # Entries are also read from files, which may be damaged.
        if not len(self.names) == len(self.v) == len(self.w) == len(self.vy):
            raise CommandError(
                f"velocities: expected {len(self.names)} numbers for each axis, one "
                f"for each name, found {len(self.v)}, {len(self.w)} and "
                f"{len(self.vy)}"
            )

        for name, v, w, vy in zip(self.names, self.v, self.w, self.vy, strict=True):
            yield name, SetVelocity(v=v, w=w, vy=vy)


@dataclass(frozen=True, slots=True)
class AddRobots(Change):
    """Robots were added."""

    spec: RobotSpec
    names: tuple[str, ...]
    poses: tuple[Pose, ...]


@dataclass(frozen=True, slots=True)
class Unserve(Change):
    """Robots were hidden from clients."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveRobots(Change):
    """Robots were removed."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RenameRobots(Change):
    """Robots got other names.

    Attributes
    ----------
    names, to : tuple of str
        Old name and new name of each robot.
    """

    names: tuple[str, ...]
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveBox(Change):
    """A box of the map was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class AddBox(Change):
    """A box was added to the map."""

    name: str
    box: BoxObject


@dataclass(frozen=True, slots=True)
class ReplaceScene(Change):
    """The map was replaced."""

    scene: Scene


@dataclass(frozen=True, slots=True)
class ReplaceFloor(Change):
    """The floor was replaced."""

    floor: Floor | None


@dataclass(frozen=True, slots=True)
class SetZone(Change):
    """A zone of the floor was added or replaced."""

    zone: FloorZone


@dataclass(frozen=True, slots=True)
class RemoveZone(Change):
    """The zones of a name were removed from the floor."""

    name: str


@dataclass(frozen=True, slots=True)
class MarkFloor(Change):
    """Levels of a pheromone field were raised.

    Attributes
    ----------
    field : str
        Name of the field.
    points : tuple of (float, float)
        Points in the world, m.
    amounts : tuple of float
        Amount for each point.
    """

    field: str
    points: tuple[tuple[float, float], ...]
    amounts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ClearField(Change):
    """All levels of a pheromone field were set to 0."""

    field: str


@dataclass(frozen=True, slots=True)
class SetDynamics(Change):
    """The mass properties of a body were changed or removed."""

    name: str
    spec: DynamicsSpec | None


@dataclass(frozen=True, slots=True)
class Attach(Change):
    """A body was attached to a carrier."""

    carrier: str
    name: str


@dataclass(frozen=True, slots=True)
class Detach(Change):
    """A carried body was detached."""

    name: str


@dataclass(frozen=True, slots=True)
class Describe(Change):
    """Joints and sensors of a description file were added."""

    described: Described


@dataclass(frozen=True, slots=True)
class WriteDevice(Change):
    """Columns of a device were written, such as the goals of a gripper, or a joystick.

    Attributes
    ----------
    table, row : str, int
        Table and row of the device, see `botyard.engine.tables`.
    values : mapping
        Values by column.
    """

    table: str
    row: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SetRays(Change):
    """The rays of a laser were set, or the rays of its model were restored (None).

    `rays` holds the bearing of the first ray and the spacing, rad, and the number of rays.
    """

    robot: str
    laser: int
    rays: tuple[float, float, int] | None


@dataclass(frozen=True, slots=True)
class SetParameters(Change):
    """Parameters of a robot were set (`Robot.set_parameters`).

    Attributes
    ----------
    robot : str
        Name of the robot.
    values : mapping
        Numbers by name of the parameter. A parameter of a sensor has the sensor's name
        after a blank.
    """

    robot: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claim(Change):
    """A source of commands claimed or released a robot."""

    robot: str
    on: bool


@dataclass(frozen=True, slots=True)
class Settle(Change):
    """Queued commands were applied without a step (`settle`)."""


@dataclass(frozen=True, slots=True)
class Restore(Change):
    """A saved state was restored.

    Attributes
    ----------
    state : bytes
        See `Simulation.save_state`.
    described : sequence of objects
        Models, boxes and description files whose digests are in the state.
    """

    state: bytes
    described: Sequence[object]


@dataclass(frozen=True, slots=True)
class Reset(Change):
    """An episode started (`Simulation.reset`): time is 0 again.

    Attributes
    ----------
    seed, episode : int
        Seed of the world, and number of the episode.
    poses : tuple of poses or None
        Start poses of the robots; None: the poses at which they were added.
    """

    seed: int
    episode: int
    poses: tuple[Pose, ...] | None


JUMPS: Final = (Restore, Reset)
"""Kinds of changes that may set back time and replace the whole state of the world."""


class Journal:
    """Recorder of changes for listeners."""

    def __init__(self) -> None:
        self._readers: list[_Reader] = []
        self._order = 0
        self._depth = 0

    def listen(
        self, listener: Listener, on_velocity: VelocityListener | None = None
    ) -> Callable[[], None]:
        """Register a listener for changes; the returned function unregisters it.

        Parameters
        ----------
        listener : callable
            Called with each entry.
        on_velocity : callable, optional
            Called instead of `listener`, without an entry, for velocities of one body. There may be
            thousands of them in a second.
        """
        reader = _Reader(arguments.function(listener, "listener"), on_velocity)
        self._readers.append(reader)
        return lambda: self._remove(reader)

    @property
    def is_read(self) -> bool:
        """Whether changes are recorded: there are listeners, and no enclosing change is
        in progress.
        """
        return bool(self._readers) and not self._depth

    def note(self, tick: int, source: str | None, change: Change) -> None:
        """Record a change.

        A listener that raises is unregistered, because its record would have a gap. The
        simulation continues.

        Parameters
        ----------
        tick : int
            Number of steps done.
        source : str or None
            Source of the change; None: the present actor, see `acting`.
        change : Change
            Change that has just been made.
        """
        if self.is_read:
            self._order += 1
            entry = Entry(
                tick, self._order, _actor.get() if source is None else source, change
            )
            for reader in tuple(self._readers):
                try:
                    reader.listener(entry)
                except Exception:
                    self._failed(reader)

    def note_velocity(
        self, tick: int, source: str, name: str, command: SetVelocity
    ) -> None:
        """Record a `Submit` of velocities; call it only if `is_read`.

        Parameters
        ----------
        tick : int
            Number of steps done.
        source : str
            Source of the command.
        name : str
            Name of the body.
        command : SetVelocity
            Velocities in SI units.
        """
        self._order += 1
        for reader in tuple(self._readers):
            try:
                if reader.on_velocity is not None:
                    reader.on_velocity(tick, self._order, source, name, command)
                else:
                    reader.listener(
                        Entry(tick, self._order, source, Submit(name, command))
                    )
            except Exception:
                self._failed(reader)

    def _failed(self, reader: _Reader) -> None:
        """Unregister a listener that has raised, because a record with a gap is useless."""
        log.exception(
            "internal error: a listener of the journal failed and is unregistered: %r",
            reader.listener,
        )
        self._remove(reader)

    def _remove(self, reader: _Reader) -> None:
        if reader in self._readers:
            self._readers.remove(reader)

    def __enter__(self) -> None:
        """Record nothing inside the block: its changes are parts of a change that is recorded."""
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1


__all__ = [
    "API",
    "JUMPS",
    "AddBox",
    "AddRobots",
    "Attach",
    "Change",
    "Claim",
    "ClearField",
    "Describe",
    "Detach",
    "Entry",
    "Journal",
    "Listener",
    "MarkFloor",
    "RemoveBox",
    "RemoveRobots",
    "RemoveZone",
    "RenameRobots",
    "ReplaceFloor",
    "ReplaceScene",
    "Reset",
    "Restore",
    "SetDynamics",
    "SetParameters",
    "SetRays",
    "SetZone",
    "Settle",
    "Submit",
    "SubmitEach",
    "SubmitVelocities",
    "Unserve",
    "WriteDevice",
    "acting",
]
