"""Head of a saved state: everything outside of the columns.

It also holds digests of the map and of models. `botyard.engine.state` defines the
layout of the bytes, and the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from botyard.api.revisions import Subject
from botyard.codec.forms import written
from botyard.devices.delays import Late
from botyard.engine import commands, demand, steering, velocities
from botyard.engine.objectdigest import object_digest
from botyard.engine.state import DIGESTED, VERSION, row_keys, schema
from botyard.engine.velocities import SetVelocities
from botyard.errors import StateError
from botyard.model.scene import Scene
from botyard.sim import twist
from botyard.sim.core import Core
from botyard.version import __version__

NO_MASS: Final = -1
"""Contact count of a world without bodies with mass."""
COMMANDS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        name: kind
        for module in (commands, velocities, demand, steering, twist)
        for name, kind in vars(module).items()
        if is_dataclass(kind) and hasattr(kind, "apply")
    }
)
"""Commands that can wait for the next step, by name of their class."""


@runtime_checkable
class Saveable(Protocol):
    """Program with a state that can be saved.

    The state is a value of numbers, texts, lists and mappings. None means that it
    cannot be saved at present.
    """

    def get_state(self) -> Any:
        """Return the present state of the program."""
        ...

    def set_state(self, state: Any) -> None:
        """Continue from a state.

        Raise TypeError, ValueError, KeyError or IndexError if it is not valid.
        """
        ...


class Body(msgspec.Struct, array_like=True):
    """Body in a saved state: its name, its model's name and digest, and a robot's start pose."""

    name: str
    model: str
    digest: bytes
    start: tuple[float, float, float] | None


class Roster(msgspec.Struct, array_like=True):
    """Part of the head that lists the content of the world.

    It seldom changes, so that its bytes are cached.

    Attributes
    ----------
    schema : bytes
        Digest of the columns, see `botyard.engine.state.schema`.
    scene, scene_name : bytes, str
        Digest of the map without boxes, and name of the map.
    described : bytes
        Digest of the description files.
    bodies : list of Body
        Robots and boxes, by row.
    keys : dict of str to list
        Keys of the rows of each table of devices, by name of the table.
    unserved : list of str
        Names of robots that are hidden from clients.
    """

    schema: bytes
    scene: bytes
    scene_name: str
    described: bytes
    bodies: list[Body]
    keys: dict[str, list[Any]]
    unserved: list[str]


class Controller(msgspec.Struct, array_like=True):
    """Program of a robot in a saved state; the program may have crashed."""

    robot: str
    name: str
    options: dict[str, Any]
    state: Any
    crashed: bool = False


class Queued(msgspec.Struct, array_like=True):
    """Command that waits for the next step, in a saved state."""

    body: str
    source: str
    sequence: int
    kind: str
    values: msgspec.Raw


class UnderWay(msgspec.Struct, array_like=True):
    """Command under way to a robot; see `botyard.engine.channels.Sent`."""

    due: int
    sent: int
    command: Queued


class LateReading(msgspec.Struct, array_like=True):
    """Delayed reading, available or not; see `botyard.devices.delays.Late`.

    Attributes
    ----------
    robot, kind, index : str, str, int
        Device of the reading.
    due, tick : int
        Step at which it becomes available, and step it was measured in.
    ranges, returns : bytes
        Little-endian float64, m, and int16.
    """

    robot: str
    kind: str
    index: int
    due: int
    tick: int
    ranges: bytes
    returns: bytes


class Rays(msgspec.Struct, array_like=True):
    """Rays of a laser that a client has set in place of the model's rays."""

    robot: str
    laser: int
    angle_min: float
    increment: float
    count: int


class Head(msgspec.Struct, array_like=True):
    """Head of a saved state: everything except the columns."""

    version: int
    program: str
    roster: msgspec.Raw
    seed: int
    step_us: int
    tick: int
    error_mode: int
    sequence: int
    contacts: int
    span: float
    teleports: list[int]
    claims: dict[str, list[str]]
    rays: list[Rays]
    queue: list[Queued]
    controllers: list[Controller]
    holds: dict[str, list[str]]
    under_way: list[UnderWay] = []
    late: list[LateReading] = []
    parameters: dict[str, dict[str, list[float]]] = {}


MAX_REMEMBERED: Final = 1000
"""Highest number of cached descriptions of things that are not in the world any more.

A restored state may refer to them.
"""


IN_ROSTER: Final = (
    Subject.BODIES,
    Subject.MASS,
    Subject.MAP,
    Subject.DESCRIBED,
    Subject.SERVED,
)
"""Changes of the world after which the bytes of the `Roster` are made again."""


class Known:
    """Cache of the descriptions that a simulation has seen, and of its roster's bytes.

    Descriptions are kept by digest; the least recently used ones are dropped.

    Attributes
    ----------
    objects : mapping of bytes to object
        Descriptions of things in the world and of the last `MAX_REMEMBERED` others, least
        recently used first.
    """

    def __init__(self) -> None:
        self._digests: dict[int, tuple[object, bytes]] = {}
        self.objects: dict[bytes, object] = {}
        self._walls: tuple[object, bytes] = None, b""
        self._has_source = False
        self._roster = -1, b""

    def digest(self, value: object) -> bytes:
        """Return the digest of a description, and keep the description in `objects`.

        Parameters
        ----------
        value : object
            Robot model, box, map or description file. It must not change later: its
            digest is cached by identity.
        """
        # The identity is checked again, because Python reuses the `id` of a deleted
        # object.
        found = self._digests.get(id(value))
        if found is None or found[0] is not value:
            found = self._digests[id(value)] = value, object_digest(value)
        # Insert again, so that the entry counts as used last.
        self.objects.pop(found[1], None)
        self.objects[found[1]] = value
        return found[1]

    def forget(self, there: int) -> None:
        """Drop the least recently used descriptions.

        Parameters
        ----------
        there : int
            Number of bodies in the world. This number of descriptions stays, and
            `MAX_REMEMBERED` more.
        """
        excess = len(self.objects) - there - MAX_REMEMBERED
        # The dictionary is in order of use: the first ones are the oldest.
        if excess > 0:
            for digest in list(self.objects)[:excess]:
                del self.objects[digest]

        # The cache by identity also holds descriptions that were dropped above.
        if len(self._digests) > len(self.objects) + MAX_REMEMBERED:
            self._digests = {
                id(value): (value, digest) for digest, value in self.objects.items()
            }

    def roster(self, core: Core) -> bytes:
        """Return the `Roster` of the world as bytes."""
        revision = core.feed.last(*IN_ROSTER)
        # Encoding thousands of bodies takes longer than all their columns.
        if self._roster[0] != revision:
            self._roster = revision, msgspec.msgpack.encode(self._make_roster(core))
        return self._roster[1]

    def _make_roster(self, core: Core) -> Roster:
        boxes = dict(zip(core.box_names, core.scene.boxes, strict=True))
        bodies = []
        for name in core.engine.rows:
            robot = core.robots.get(name)
            if robot is None:
                bodies.append(
                    Body(name, boxes[name].name, self.digest(boxes[name]), None)
                )
            else:
                x, y, th = robot.start
                bodies.append(
                    Body(name, robot.spec.name, self.digest(robot.spec), (x, y, th))
                )

        self.forget(len(bodies))
        return Roster(
            schema=schema(core.engine, steers=len(core.engine.state.steer) > 0),
            scene=self.digest_of_walls(core),
            scene_name=core.scene.name,
            described=self.digest(core.descriptions.described),
            bodies=bodies,
            keys={
                table.name: row_keys(table)
                for table in core.engine.tables.values()
                if table.saved
            },
            unserved=sorted(core.unserved),
        )

    def digest_of_walls(self, core: Core) -> bytes:
        """Return the digest of the map without its boxes, which are bodies."""
        scene = core.scene
        if self._walls[0] is not scene:
            self._walls = scene, _digest_of(scene, has_source=self._has_source)
        return self._walls[1]

    def is_of_map(self, digest: bytes, core: Core) -> bool:
        """Return whether a state with this digest of a map is of the present map.

        States before 0.2 cover the places of the map's files, `Scene.source` and
        `Scene.map_file`. After such a state the world's digests cover them as well, so
        that recordings of these versions simulate again with equal digests.

        Parameters
        ----------
        digest : bytes
            `Roster.scene` of the state.
        core : Core
            The world.
        """
        if digest == self.digest_of_walls(core):
            return True
        other = not self._has_source
        if digest != _digest_of(core.scene, has_source=other):
            return False
        self._has_source = other
        self._walls, self._roster = (core.scene, digest), (-1, b"")
        return True


def _digest_of(scene: Scene, *, has_source: bool) -> bytes:
    """Return the digest of a map without its boxes.

    It does not cover the places of its files, which differ between computers.
    """
    bare = replace(scene, boxes=())
    return object_digest(bare if has_source else replace(bare, source="", map_file=""))


def digested_head(head: Head) -> bytes:
    """Return the bytes of a head that the digest of its world covers.

    They exclude controllers and the program that wrote the head.

    Parameters
    ----------
    head : Head
        Head of the state. The function changes it: do not use it afterwards.
    """
    head.version, head.program = DIGESTED
    # Resimulation runs without controllers, and must reach the same digests.
    head.controllers = []
    return msgspec.msgpack.encode(head)


def head_of(core: Core, known: Known, controllers: list[Controller]) -> Head:
    """Return the head of the state that a simulation has now.

    Parameters
    ----------
    core : Core
        Simulated world.
    known : Known
        Descriptions that states of this world refer to.
    controllers : list of Controller
        Programs with their states; empty: the state has none.

    Raises
    ------
    NotNowError
        The world belongs to another thread.
    StateError
        A command of an unknown class waits for the next step.
    """
    # A step of another thread would make the state inconsistent.
    core.check_thread()
    engine, dynamics = core.engine, core.engine.dynamics
    return Head(
        version=VERSION,
        program=__version__,
        roster=msgspec.Raw(known.roster(core)),
        seed=int(engine.seed),
        step_us=engine.clock.step_us,
        tick=engine.clock.tick,
        error_mode=int(engine.odometry_error_mode),
        sequence=engine.sequence,
        contacts=NO_MASS if dynamics is None else int(dynamics.table.size[0]),
        span=0.0 if dynamics is None else float(dynamics.table.span[0]),
        teleports=[robot._teleports for robot in core.robots.values()],
        claims={
            name: robot._claims for name, robot in core.robots.items() if robot._claims
        },
        rays=_rays(core),
        queue=[
            Queued(name, source, n, *_values(command))
            for name, source, n, command in engine.queued()
        ],
        controllers=controllers,
        holds=core.holds,
        under_way=[
            UnderWay(
                one.due,
                one.sent,
                Queued(name, one.source, one.sequence, *_values(one.command)),
            )
            for name, sent in sorted(engine.channels.under_way().items())
            for one in sent
        ],
        late=_late(core),
        parameters={name: core.parameters[name] for name in sorted(core.parameters)},
    )


def _late(core: Core) -> list[LateReading]:
    # Keys of lasers and sonar rings are (robot, kind, index).
    devices: Mapping[Any, Late] = core.devices.late()
    return [
        LateReading(
            *(robot, kind, index, due, tick),
            ranges.astype("<f8").tobytes(),
            returns.astype("<i2").tobytes(),
        )
        for robot, kind, index in sorted(devices)
        for (due, tick), ranges, returns in zip(
            devices[robot, kind, index].times.tolist(),
            *devices[robot, kind, index][1:],
            strict=True,
        )
    ]


def _rays(core: Core) -> list[Rays]:
    configured = sorted(core.configured.items(), key=lambda item: item[0])
    return [
        Rays(name, index, b.angle0, b.step, b.count) for (name, index), b in configured
    ]


def _values(
    command: commands.Command | SetVelocities,
) -> tuple[str, msgspec.Raw]:
    """Return class name and encoded fields of a command.

    Numbers of the command get the declared types: a program may have passed, for
    example, an int for a float.
    """
    kind = type(command)
    # A command of another package could not be found when the state is read.
    if COMMANDS.get(kind.__name__) is not kind:
        raise StateError(
            f"a command of the class {kind.__qualname__} waits for the next step: a "
            "state can store only botyard's own commands"
        )

    fields = written(command, kind, inline=True)
    return kind.__name__, msgspec.Raw(msgspec.msgpack.encode(fields))


def _is_value(options: Mapping[str, Any]) -> bool:
    """Return whether the options of a program can be saved in a state."""
    try:
        msgspec.msgpack.encode(dict(options))
    # Options may hold any object of the user's program.
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return False

    return True


def state_of(act: object) -> Any:
    """Return the state of the program whose method `act` is; None if it has none."""
    owner = getattr(act, "__self__", None)
    return owner.get_state() if isinstance(owner, Saveable) else None


def controllers_of(core: Core) -> list[Controller]:
    """Return the programs that drive robots, with their states.

    Raises
    ------
    StateError
        The state of a program cannot be saved.
    """
    found = []
    crashed = core.programs.crashed
    for name, (program, act) in core.programs.all.items():
        if name in crashed:
            # A crashed program is saved without its state, which is lost in any case.
            # Otherwise no copy of the world could be made.
            if _is_value(program.options):
                found.append(
                    Controller(name, program.name, dict(program.options), None, True)
                )

            continue

        state = state_of(act)
        if state is None:
            raise StateError(
                f"robot {name}: its controller {program.name} cannot be saved: "
                "it has no get_state and set_state, or get_state returned None"
            )

        found.append(Controller(name, program.name, dict(program.options), state))

    return found


__all__ = [
    "COMMANDS",
    "NO_MASS",
    "VERSION",
    "Body",
    "Controller",
    "Head",
    "Known",
    "LateReading",
    "Queued",
    "Rays",
    "Roster",
    "Saveable",
    "UnderWay",
    "controllers_of",
    "head_of",
    "state_of",
]
