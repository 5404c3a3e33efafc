"""The state of a simulation as a value: saved as bytes, restored, cloned, pickled. Going on from it gives the same run, bit for bit.

The bytes hold all that changes, and digests of what does not: the map, and the models of robots and boxes. They are restored only into a
simulation with the same map, where the same models are known: seen before in that simulation, or installed under the same names.
`botyard.engine.state` has the layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar, cast, runtime_checkable

import msgspec
import numpy as np

from botyard.devices.battery import Batteries
from botyard.devices.electrics import Boards
from botyard.devices.gripper import Grippers
from botyard.devices.joints import Joints, joint_key
from botyard.devices.view import memory_key
from botyard.engine import commands
from botyard.engine.build import box_body
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.state import (
    BODIES,
    CONTACTS,
    columns_of,
    digest_of,
    join,
    object_digest,
    read_columns,
    row_keys,
    schema,
    split,
    write_columns,
    write_masses,
)
from botyard.engine.tables import Table
from botyard.errors import BotyardError, StateError
from botyard.feed import Subject
from botyard.formats.base import Warn
from botyard.formats.budget import Budget
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.devices import find_device, loaded_devices, names_of
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject, Visible
from botyard.model.robot import Axes, RobotSpec
from botyard.model.world import Program
from botyard.names import is_name, shown
from botyard.sim.core import Core
from botyard.sim.readings import MAX_RAYS
from botyard.sim.robot import BaseRobot
from botyard.version import __version__

VERSION: Final = 1
MIN_SUBSTEP: Final = 1e-9
"""Length of a substep of bodies with mass, s: no state has a shorter one."""
NO_MASS: Final = -1
"""Number of contacts of a world without bodies with mass."""


@runtime_checkable
class Saveable(Protocol):
    """A program whose state can be saved, as a value of numbers, texts, lists and mappings; None: it cannot at present."""

    def get_state(self) -> Any:
        """The state."""
        ...

    def set_state(self, state: Any) -> None:
        """Go on from a state. Raises TypeError, ValueError, KeyError or IndexError when it is not valid."""
        ...


class Restorable(Core):
    """What saving and restoring use of a simulation; `Simulation` implements it."""

    described: Described
    """Joints and sensors of description files."""
    _known: Known
    _unserved: set[str]
    _programs: dict[str, tuple[Program, Callable[[], None]]]
    _before: list[Callable[[], None]]

    @property
    def robots(self) -> Mapping[str, BaseRobot]:
        """All robots by name, in the order of creation."""
        raise NotImplementedError

    @property
    def programs(self) -> Mapping[str, Program]:
        """Programs that drive robots, by the robots' names."""
        raise NotImplementedError

    def restore(self, state: bytes, *, budget: Budget = Budget()) -> None:
        """Go on from a state."""
        raise NotImplementedError

    def warn_by(self, warn: Warn | None) -> None:
        """Set the function that receives warnings."""
        raise NotImplementedError

    def _put_in(self, spec: RobotSpec, names: Sequence[str], starts: Sequence[Pose]) -> object:
        """Add robots."""
        raise NotImplementedError

    def _take_out(self, names: Sequence[str]) -> None:
        """Remove bodies."""
        raise NotImplementedError

    def _dismiss(self, name: str) -> None:
        """End the program that drives a robot."""
        raise NotImplementedError

    def _set_boxes(self, names: Sequence[str], boxes: Sequence[BoxObject]) -> None:
        """Set the boxes of the map."""
        raise NotImplementedError

    def _sort_robots(self, names: Sequence[str]) -> None:
        """Put the robots into this order."""
        raise NotImplementedError

    def _order_programs(self, names: Sequence[str]) -> None:
        """Put the programs into this order."""
        raise NotImplementedError

    def _describe_again(self, wanted: Sequence[Hashable]) -> None:
        """Create joints and ray sensors of description files that are missing."""
        raise NotImplementedError


S = TypeVar("S", bound=Restorable)


class _Body(msgspec.Struct, array_like=True):
    """A body: its name, that of its model, the digest of that, and of a robot where it was added."""

    name: str
    model: str
    digest: bytes
    start: tuple[float, float, float] | None


class _Roster(msgspec.Struct, array_like=True):
    """The part of the head that says what is in the world. It seldom changes: its bytes are cached."""

    schema: bytes
    scene: bytes
    scene_name: str
    described: bytes
    bodies: list[_Body]
    keys: dict[str, list[Any]]
    unserved: list[str]


class _Controller(msgspec.Struct, array_like=True):
    """A program that drives a robot."""

    robot: str
    name: str
    options: dict[str, Any]
    state: Any


class _Queued(msgspec.Struct, array_like=True):
    """A command that waits for the next step."""

    body: str
    source: str
    sequence: int
    kind: str
    values: dict[str, Any]


class _Rays(msgspec.Struct, array_like=True):
    """Rays of a laser that a client has set instead of its model's."""

    robot: str
    laser: int
    angle_min: float
    increment: float
    count: int


class _Head(msgspec.Struct, array_like=True):
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
    rays: list[_Rays]
    queue: list[_Queued]
    controllers: list[_Controller]
    holds: dict[str, list[str]]


MAX_REMEMBERED: Final = 1000
"""Descriptions of what is not in the world any more that are kept: a state that is restored may refer to them."""


_IN_ROSTER: Final = (Subject.BODIES, Subject.MASS, Subject.MAP, Subject.DESCRIBED, Subject.SERVED)
"""A change of one of these changes the `_Roster`."""


class Known:
    """Cache of descriptions that a simulation has seen, by their digests (least recently used are dropped), and of its roster's bytes.

    Attributes
    ----------
    objects : mapping of bytes to object
        Those of what is in the world, and the last `MAX_REMEMBERED` others; the most recently used is the last.
    """

    def __init__(self) -> None:
        self._digests: dict[int, tuple[object, bytes]] = {}
        self.objects: dict[bytes, object] = {}
        self._walls: tuple[object, bytes] = None, b""
        self._roster = -1, b""

    def digest(self, value: object) -> bytes:
        """Digest of a description, which is kept in `objects`."""
        found = self._digests.get(id(value))
        if found is None or found[0] is not value:
            found = self._digests[id(value)] = value, object_digest(value)
        self.objects.pop(found[1], None)
        self.objects[found[1]] = value
        return found[1]

    def forget(self, there: int) -> None:
        """Drop the least recently used: all but descriptions of the `there` bodies in the world, and `MAX_REMEMBERED` others."""
        excess = len(self.objects) - there - MAX_REMEMBERED
        if excess > 0:
            for digest in list(self.objects)[:excess]:
                del self.objects[digest]
        if len(self._digests) > len(self.objects) + MAX_REMEMBERED:
            self._digests = {id(value): (value, digest) for digest, value in self.objects.items()}

    def roster(self, sim: Restorable) -> bytes:
        """The encoded roster."""
        revision = sim.feed.last(*_IN_ROSTER)
        if self._roster[0] != revision:
            self._roster = revision, msgspec.msgpack.encode(self._make_roster(sim))
        return self._roster[1]

    def _make_roster(self, sim: Restorable) -> _Roster:
        boxes = dict(zip(sim.box_names, sim.scene.boxes, strict=True))
        bodies = []
        for name in sim.engine.rows:
            robot = sim.robots.get(name)
            if robot is None:
                bodies.append(_Body(name, boxes[name].name, self.digest(boxes[name]), None))
            else:
                x, y, th = robot.start
                bodies.append(_Body(name, robot.spec.name, self.digest(robot.spec), (x, y, th)))
        self.forget(len(bodies))
        return _Roster(
            schema=schema(sim.engine),
            scene=self.digest_of_walls(sim),
            scene_name=sim.scene.name,
            described=self.digest(sim.described),
            bodies=bodies,
            keys={table.name: row_keys(table) for table in sim.engine.tables.values() if table.saved},
            unserved=sorted(sim._unserved),
        )

    def digest_of_walls(self, sim: Restorable) -> bytes:
        """Digest of the map without its boxes, which are bodies."""
        scene = sim.scene
        if self._walls[0] is not scene:
            self._walls = scene, object_digest(replace(scene, boxes=()))
        return self._walls[1]


# -- saving


def save(sim: Restorable) -> bytes:
    """See `Simulation.save_state`."""
    return join(msgspec.msgpack.encode(_head(sim, _controllers(sim))), list(columns_of(sim.engine)))


def digest(sim: Restorable) -> int:
    """See `Simulation.digest`."""
    return digest_of(msgspec.msgpack.encode(_head(sim, [])), columns_of(sim.engine))


def _head(sim: Restorable, controllers: list[_Controller]) -> _Head:
    sim._check_thread()  # a step of another thread would make the state inconsistent
    engine, dynamics = sim.engine, sim.engine.dynamics
    return _Head(
        version=VERSION,
        program=__version__,
        roster=msgspec.Raw(sim._known.roster(sim)),
        seed=int(engine.seed),
        step_us=engine.clock.step_us,
        tick=engine.clock.tick,
        error_mode=int(engine.odometry_error_mode),
        sequence=engine.sequence,
        contacts=NO_MASS if dynamics is None else int(dynamics.table.size[0]),
        span=0.0 if dynamics is None else float(dynamics.table.span[0]),
        teleports=[robot._teleports for robot in sim.robots.values()],
        claims={name: robot._claims for name, robot in sim.robots.items() if robot._claims},
        rays=_rays(sim),
        queue=[_Queued(name, source, n, *_values(command)) for name, source, n, command in engine.queued()],
        controllers=controllers,
        holds=sim._holds,
    )


def _rays(sim: Restorable) -> list[_Rays]:
    configured = sorted(sim._configured.items(), key=lambda item: item[0])
    return [_Rays(name, index, b.angle0, b.step, b.count) for (name, index), b in configured]


def _values(command: commands.Command | commands.SetVelocities) -> tuple[str, dict[str, Any]]:
    """Class and values of a command, converted to the types that it declares: a program may have given, say, an int for a float."""
    kind = type(command)
    if _COMMANDS.get(kind.__name__) is not kind:
        raise StateError(f"a command of the class {kind.__qualname__} waits for the next step, and cannot be saved")
    return kind.__name__, {name: _plain(getattr(command, name), declared) for name, declared in _fields_of(kind)}


@cache
def _fields_of(kind: type[Any]) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in fields(kind)]


def _plain(value: Any, declared: str) -> Any:
    """Value of a command's field, of the declared type, as it is saved."""
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Axes):
        return {field.name: float(getattr(value, field.name)) for field in fields(Axes)}
    if isinstance(value, tuple):
        return [float(number) for number in value]
    if declared.startswith("float"):
        return float(value)
    return bool(value) if declared == "bool" else int(value)


def _controllers(sim: Restorable) -> list[_Controller]:
    found = []
    for name, (program, act) in sim._programs.items():
        owner = getattr(act, "__self__", None)
        state = owner.get_state() if isinstance(owner, Saveable) else None
        if state is None:
            raise StateError(
                f"robot {name}: its controller {program.name} cannot be saved: it has no get_state and set_state"
            )
        found.append(_Controller(name, program.name, dict(program.options), state))
    return found


# -- restoring


Employ = Callable[[Any, Program], None]
"""Starts a program that drives a robot, see `botyard.controllers.crew`."""


def restore(sim: Restorable, state: bytes, budget: Budget, employ: Employ, used: list[object]) -> None:
    """See `Simulation.restore`. Appends the descriptions that the state refers to to `used`."""
    head, data = split(state, _Head, budget.bytes)
    if head.version != VERSION:
        raise StateError(f"state: expected version {VERSION}, found {head.version} (of botyard {head.program})")
    try:
        roster = msgspec.msgpack.decode(head.roster, type=_Roster)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateError(f"state: {error}") from None
    tables = _tables(sim, roster)
    if roster.schema != schema(sim.engine, tables):
        raise StateError(f"state: it is of another version of botyard, {head.program}; this one is {__version__}")
    if roster.scene != sim._known.digest_of_walls(sim):
        raise StateError(f'state: it is of another map, "{roster.scene_name}"; here is "{sim.scene.name}"')
    is_same = bytes(head.roster) == sim._known.roster(sim)  # then bodies and rows need not be compared
    models = _find_models(sim, roster)
    used += [*models.values(), *_described(sim, roster)]
    rows = {name: len(keys) for name, keys in roster.keys.items()}
    # after the tables: keys of a crafted state cannot stand for these
    rows |= {BODIES: len(roster.bodies), CONTACTS: head.contacts}
    masses = any(model.dynamics is not None for model in models.values())
    if masses != (head.contacts != NO_MASS) or not (head.span == 0.0 or MIN_SUBSTEP <= head.span <= 60.0):
        raise StateError("state: what it says of bodies with mass does not fit its models")
    found = read_columns(sim.engine, data, rows, masses=masses, tables=tables)
    queue = [_command(q, len(roster.bodies)) for q in head.queue]
    if not is_same:
        _check_roster(roster, models, sim, budget)
    _check_head(head, roster, models)
    if not is_same:
        _arrange_bodies(sim, roster, models)
        _arrange_rows(sim, roster)
    write_columns(sim.engine, found)
    engine = sim.engine
    engine.resume(tick=head.tick, step_us=head.step_us, seed=head.seed, sequence=head.sequence, queue=queue)
    engine.odometry_error_mode = OdometryErrorMode(head.error_mode)
    engine.table(Grippers).redraw(engine)
    engine.redraw_carriers()
    write_masses(sim.engine, found, head.span)  # last: a change of outline would wake bodies
    starts = {body.name: Pose(*body.start) for body in roster.bodies if body.start is not None}
    for robot, teleports in zip(sim.robots.values(), head.teleports, strict=True):
        robot._restored(starts[robot.name], teleports, head.claims.get(robot.name, []))
    engine.table(Boards).version[:] += 1
    for rays in head.rays:
        sim.robots[rays.robot].lasers[rays.laser].configure(rays.angle_min, rays.increment, rays.count)
    sim._unserved = set(roster.unserved)
    sim._holds = {name: list(sources) for name, sources in head.holds.items() if sources}
    _employ(sim, head.controllers, employ)
    engine.resumed()
    sim.crowd.forget()


def _tables(sim: Restorable, roster: _Roster) -> list[Table]:
    """The tables of a state, in order: those of every engine, then optional ones, which may have to be created."""
    here = sim.engine.tables
    found = [table for table in here.values() if not table.optional]
    kinds = {device.table.name: device.table for device in loaded_devices() if device.table is not None}
    for name in sorted(set(roster.keys) - {table.name for table in found}):
        kind = type(here[name]) if name in here else kinds.get(name)
        if kind is None:
            raise StateError(f'state: it has a table "{shown(name)}" of a device that is not here')
        found.append(here[name] if name in here else kind())
    return found


def _check_roster(
    roster: _Roster, models: Mapping[bytes, RobotSpec | BoxObject], sim: Restorable, budget: Budget
) -> None:
    """Check names, number and starts of bodies, and that the rows of tables are those of their devices."""
    names = {body.name for body in roster.bodies}
    if len(names) != len(roster.bodies) or not all(map(is_name, names)):
        raise StateError("state: it tells twice of a body, or of one without a name")
    robots = {body.name: models[body.digest] for body in roster.bodies if body.start is not None}
    new = len(robots.keys() - sim.robots.keys())
    if new > budget.robots:
        raise StateError(
            f"state: expected at most {budget.robots} robots that are not here, found {new} (budget.robots raises that)"
        )
    for body in roster.bodies:
        if body.start is not None and not (
            all(map(math.isfinite, body.start)) and max(map(abs, body.start[:2])) <= commands.MAX_COORDINATE
        ):
            raise StateError(f"state: {body.name} was added nowhere")
    _check_rows(roster, robots, sim)


def _check_rows(roster: _Roster, robots: Mapping[str, RobotSpec | BoxObject], sim: Restorable) -> None:
    """Check that tables have a row for each device of these robots, by name, and no others; joints may be fewer."""
    described = cast(Described, sim._known.objects[roster.described])
    wanted = {Batteries.name: set(robots), Boards.name: set(robots), Joints.name: set(map(joint_key, described.joints)),
              Grippers.name: {n for n, m in robots.items() if isinstance(m, RobotSpec) and m.gripper is not None}}  # fmt: skip
    for name, model in robots.items():
        if isinstance(model, RobotSpec) and model.devices:
            for device, spec in zip(names_of(model.equipment), model.equipment, strict=True):
                kind = find_device(spec.type)
                columns = None if kind.part else kind.table
                if columns is not None:
                    wanted.setdefault(columns.name, set()).add(memory_key(name, device))
    known = {table.name for table in sim.engine.tables.values() if not table.optional}
    if not wanted.keys() - known == roster.keys.keys() - known:
        raise StateError("state: it has tables of other devices than its robots")
    for table, rows in wanted.items():
        keys = roster.keys.get(table, [])
        there = {key for key in keys if isinstance(key, str)}
        if len(there) != len(keys) or not (there <= rows if table == Joints.name else there == rows):
            raise StateError(f"state: rows of the table {table} are not those of its bodies")


def _check_head(head: _Head, roster: _Roster, models: Mapping[bytes, RobotSpec | BoxObject]) -> None:
    robots = {body.name: models[body.digest] for body in roster.bodies if body.start is not None}
    told = [*head.claims, *(r.robot for r in head.rays), *(c.robot for c in head.controllers)]
    if len(head.teleports) != len(robots) or not robots.keys() >= set(told):
        raise StateError("state: it tells of robots that it does not have")
    bodies = {body.name for body in roster.bodies}
    if not bodies.issuperset([*head.holds, *(q.body for q in head.queue if q.kind != "SetVelocities")]):
        raise StateError("state: it tells of bodies that it does not have")
    for rays in head.rays:
        model = robots[rays.robot]
        if not (
            isinstance(model, RobotSpec)
            and 0 <= rays.laser < len(model.lasers)
            and 0 <= rays.count <= MAX_RAYS
            and math.isfinite(rays.angle_min)
            and math.isfinite(rays.increment)
        ):
            raise StateError(
                f"state: rays of a laser of {rays.robot}: expected at most {MAX_RAYS}, of a laser that it has"
            )
    if not (
        0 <= head.tick <= 10**15
        and 1 <= head.step_us <= 60_000_000
        and 0 <= head.error_mode < OdometryErrorMode.PERFECT
    ):
        raise StateError("state: time, step or error mode are none")


def _find_models(sim: Restorable, roster: _Roster) -> dict[bytes, RobotSpec | BoxObject]:
    """Models of all bodies by their digests."""
    known = sim._known
    for robot in sim.robots.values():
        known.digest(robot.spec)
    for box in sim.scene.boxes:
        known.digest(box)
    found: dict[bytes, RobotSpec | BoxObject] = {}
    for body in roster.bodies:
        if body.digest in found:
            continue
        kind = BoxObject if body.start is None else RobotSpec
        one = known.objects.get(body.digest)
        if one is None and kind is RobotSpec:
            try:
                spec = find_robot(body.model)
                one = spec if known.digest(spec) == body.digest else None
            except BotyardError:
                one = None
        if not isinstance(one, kind):
            what = "box" if kind is BoxObject else "robot model"
            raise StateError(f'state: the {what} "{body.model}" of {body.name} is not here, or is another one')
        found[body.digest] = one
    known.digest(sim.described)
    if roster.described not in known.objects:
        raise StateError("state: it is of a world with other description files (describe)")
    return found


def _described(sim: Restorable, roster: _Roster) -> list[object]:
    """Joints and sensors of description files that a state refers to."""
    return [sim._known.objects[roster.described]]


def _arrange_bodies(sim: Restorable, roster: _Roster, models: Mapping[bytes, RobotSpec | BoxObject]) -> None:
    """Add, remove and reorder bodies to be those of the state; handles of robots that are in both stay valid."""
    known, engine = sim._known, sim.engine
    boxes = dict(zip(sim.box_names, sim.scene.boxes, strict=True))

    def is_there(body: _Body) -> bool:
        if body.start is None:
            return body.name in boxes and known.digest(boxes[body.name]) == body.digest
        robot = sim.robots.get(body.name)
        return robot is not None and known.digest(robot.spec) == body.digest

    there = [is_there(body) for body in roster.bodies]
    if not all(there) or [body.name for body in roster.bodies] != list(engine.rows):
        stays = {body.name for body, is_known in zip(roster.bodies, there, strict=True) if is_known}
        sim._take_out([name for name in engine.rows if name not in stays])
        for body, is_known in zip(roster.bodies, there, strict=True):
            if is_known:
                continue
            model = models[body.digest]
            if isinstance(model, RobotSpec):
                sim._put_in(model, [body.name], [Pose(*body.start or ())])
            else:
                engine.add_bodies([(replace(box_body(model), name=body.name), model.pose)])
        engine.arrange([engine.rows[body.name] for body in roster.bodies])
        order = [body for body in roster.bodies if body.start is None]
        sim._set_boxes(
            [body.name for body in order], [m for b in order if isinstance(m := models[b.digest], BoxObject)]
        )
        sim._sort_robots([body.name for body in roster.bodies if body.start is not None])
    if roster.described != known.digest(sim.described):
        sim.described = cast(Described, known.objects[roster.described])
    sim._describe_again(roster.keys.get(Joints.name, []))


def _arrange_rows(sim: Restorable, roster: _Roster) -> None:
    for table in sim.engine.tables.values():
        if table.saved:
            at = {_hashable(key): i for i, key in enumerate(row_keys(table))}
            order = [at[_hashable(key)] for key in roster.keys.get(table.name, [])]
            if order != list(range(len(at))):
                table.arrange(order)


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


_COMMANDS: Final[Mapping[str, Any]] = MappingProxyType(
    {name: kind for name, kind in vars(commands).items() if is_dataclass(kind) and hasattr(kind, "apply")}
)


def _command(queued: _Queued, bodies: int) -> tuple[str, str, int, Any]:
    kind, values = _COMMANDS.get(queued.kind), queued.values
    command: Any
    try:
        if kind is None:
            raise ValueError(f'no command "{queued.kind}"')
        if kind is commands.SetVisible:
            command = kind(Visible(values["mask"]))
        elif kind is commands.SetVelocities:
            arrays = [None if values[a] is None else np.array(values[a], np.float64) for a in ("v", "w", "vy")]
            command = kind(np.array(values["rows"], None if values["rows"] else np.int64), *arrays).checked(bodies)
        else:
            command = msgspec.convert(values, kind)
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise StateError(f"state: a command that waits: {error}") from None
    return queued.body, queued.source, queued.sequence, command


def _employ(sim: Restorable, controllers: Sequence[_Controller], employ: Employ) -> None:
    """Start programs that are missing, end those that are not in the state, and set the states of all."""
    wanted = {c.robot for c in controllers}
    for name in [name for name in sim._programs if name not in wanted]:
        sim._dismiss(name)
    for c in controllers:
        program = Program(name=c.name, options=c.options)
        try:
            if sim.programs.get(c.robot) != program:
                employ(sim.robots[c.robot], program)
            owner = getattr(sim._programs[c.robot][1], "__self__", None)
            assert isinstance(owner, Saveable)
            owner.set_state(c.state)
        except (
            BotyardError,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
            AssertionError,
            ArithmeticError,
        ) as error:
            raise StateError(f"state: robot {c.robot}: the controller {c.name} cannot use its state: {error}") from None
    sim._order_programs([c.robot for c in controllers])


# -- cloning


def _silent(text: str) -> None:
    """Receives warnings while a world is cloned: they were given when it was made."""


def clone(sim: S, seed: int | None) -> S:
    """See `Simulation.clone`."""
    copy: S = rebuild(*parts(sim, seed))
    return copy


def parts(sim: Restorable, seed: int | None = None) -> tuple[Any, ...]:
    """Arguments of `rebuild`; scene and models are shared."""
    loose = [act for act in sim._before if not any(act == mine for _, mine in sim._programs.values())]
    if loose:
        what = getattr(loose[0], "__qualname__", None) or type(loose[0]).__name__
        raise StateError(
            f"the function {what}, called before every step, is not a part of the world: take it off (not_before_step) to clone or pickle, "
            "or make it a controller with get_state and set_state"
        )
    state = save(sim)
    options = {
        "step": sim.dt, "odometry_error": sim.engine.odometry_error_mode.name.lower(), "sensor_noise": sim.sensor_noise,
        "threads": sim.threads, "range_step": sim.range_step,
    }  # fmt: skip
    models = list({id(robot.spec): robot.spec for robot in sim.robots.values()}.values())
    return (
        type(sim),
        sim.scene,
        models,
        sim.described,
        options,
        state,
        sim.seed if seed is None else seed,
    )


def rebuild(
    kind: Callable[..., S],
    scene: Any,
    models: Sequence[RobotSpec],
    described: Any,
    options: Mapping[str, Any],
    state: bytes,
    seed: int,
) -> S:
    """Make a simulation of `parts`."""
    sim = kind(scene, seed=seed, warn=_silent, **options)
    for model in (*models, *scene.boxes, described):
        sim._known.digest(model)
    sim.restore(state)
    sim.engine.reseed(seed)
    sim.warn_by(None)
    return sim


__all__ = ["Known", "Restorable", "clone", "parts", "rebuild", "restore", "save"]
