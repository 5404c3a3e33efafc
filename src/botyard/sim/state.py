"""The state of a simulation as a value: saved as bytes, restored, cloned, pickled. Going on from it gives the same run, bit for bit.

The bytes hold all that changes, and digests of what does not: the map, and the models of robots and boxes. Who restores them must have the
same map, and robots' models that are the same: those that the simulation has seen, or those of the same names that are installed.
`botyard.engine.state` has the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import IntEnum, IntFlag
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, runtime_checkable

import msgspec
import numpy as np

import botyard
from botyard.devices.gripper import Grippers
from botyard.devices.joints import Joints
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
from botyard.errors import BotyardError, StateError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.objects import Described
from botyard.model.obstacles import BoxObject, Visible
from botyard.model.robot import RobotSpec
from botyard.model.world import Program

if TYPE_CHECKING:
    from botyard.formats.budget import Budget
    from botyard.sim.robot import Robot
    from botyard.sim.simulation import Simulation

VERSION: Final = 1
NO_MASS: Final = -1
"""For the number of contacts: nothing has mass."""


@runtime_checkable
class Saveable(Protocol):
    """A program whose state can be saved: a value of numbers, texts, lists and mappings; None: it cannot, after all."""

    def get_state(self) -> Any:
        """The state."""
        ...

    def set_state(self, state: Any) -> None:
        """Go on from a state. Raises TypeError, ValueError, KeyError or IndexError when it is none."""
        ...


class _Body(msgspec.Struct, array_like=True):
    """A body: its name, that of its model, the digest of that, and of a robot where it was added."""

    name: str
    model: str
    digest: bytes
    start: tuple[float, float, float] | None


class _Roster(msgspec.Struct, array_like=True):
    """What is there. It seldom changes: its bytes are kept."""

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
    """Rays of a laser that are not its model's."""

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


class Known:
    """Descriptions that a simulation has seen, by their digests, and the bytes of its roster while that is the same."""

    def __init__(self) -> None:
        self._digests: dict[int, tuple[object, bytes]] = {}
        self.objects: dict[bytes, object] = {}
        self._walls: tuple[object, bytes] = None, b""
        self._roster: tuple[tuple[object, ...], bytes] = ((), b"")

    def digest(self, value: object) -> bytes:
        """Digest of a description, which is remembered."""
        found = self._digests.get(id(value))
        if found is None or found[0] is not value:
            if len(self._digests) > 10_000:
                self._digests.clear()
            found = self._digests[id(value)] = value, object_digest(value)
            self.objects[found[1]] = value
        return found[1]

    def forget_roster(self) -> None:
        """A robot has got another model or start."""
        self._roster = (), b""

    def roster(self, sim: Simulation) -> bytes:
        """What is there, as bytes."""
        engine = sim.engine
        state = (
            engine.rows,
            sim.scene,
            sim.described,
            frozenset(sim._unserved),
            *(t.layout for t in engine.tables.values()),
        )
        if len(self._roster[0]) != len(state) or any(
            a is not b and a != b for a, b in zip(self._roster[0], state, strict=True)
        ):
            self._roster = state, msgspec.msgpack.encode(self._make_roster(sim))
        return self._roster[1]

    def _make_roster(self, sim: Simulation) -> _Roster:
        boxes = dict(zip(sim.box_names, sim.scene.boxes, strict=True))
        bodies = []
        for name in sim.engine.rows:
            robot = sim.robots.get(name)
            if robot is None:
                bodies.append(_Body(name, boxes[name].name, self.digest(boxes[name]), None))
            else:
                x, y, th = robot.start
                bodies.append(_Body(name, robot.spec.name, self.digest(robot.spec), (x, y, th)))
        return _Roster(
            schema=schema(sim.engine),
            scene=self.digest_of_walls(sim),
            scene_name=sim.scene.name,
            described=self.digest(sim.described),
            bodies=bodies,
            keys={table.name: row_keys(table) for table in sim.engine.tables.values() if table.saved},
            unserved=sorted(sim._unserved),
        )

    def digest_of_walls(self, sim: Simulation) -> bytes:
        """Digest of the map without its boxes, which are bodies."""
        scene = sim.scene
        if self._walls[0] is not scene:
            self._walls = scene, object_digest(replace(scene, boxes=()))
        return self._walls[1]


# -- saving


def save(sim: Simulation) -> bytes:
    """See `Simulation.save_state`."""
    return join(msgspec.msgpack.encode(_head(sim, _controllers(sim))), list(columns_of(sim.engine)))


def digest(sim: Simulation) -> int:
    """See `Simulation.digest`."""
    return digest_of(msgspec.msgpack.encode(_head(sim, [])), columns_of(sim.engine))


def _head(sim: Simulation, controllers: list[_Controller]) -> _Head:
    engine, dynamics = sim.engine, sim.engine.dynamics
    return _Head(
        version=VERSION,
        program=botyard.__version__,
        roster=msgspec.Raw(sim._known.roster(sim)),
        seed=int(engine.seed_word),
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
    )


def _rays(sim: Simulation) -> list[_Rays]:
    lasers = (
        (name, index, laser._bundle) for (name, index), laser in sorted(sim._configured.items(), key=lambda i: i[0])
    )
    return [_Rays(name, index, b.angle0, b.step, b.count) for name, index, b in lasers]


def _values(command: commands.Command | commands.SetVelocities) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {}
    for field in fields(command):  # type: ignore[arg-type]
        value = getattr(command, field.name)
        plain = int(value) if isinstance(value, (IntEnum, IntFlag, np.integer)) else value
        values[field.name] = value.tolist() if isinstance(value, np.ndarray) else plain
    return type(command).__name__, values


def _controllers(sim: Simulation) -> list[_Controller]:
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


Employ = Callable[["Robot", Program], None]
"""Lets a program drive a robot, see `botyard.controllers.crew`."""


def restore(sim: Simulation, state: bytes, budget: Budget, employ: Employ) -> None:
    """See `Simulation.restore`."""
    head, data = split(state, _Head, budget.bytes)
    if head.version != VERSION:
        raise StateError(f"state: expected version {VERSION}, found {head.version} (of botyard {head.program})")
    try:
        roster = msgspec.msgpack.decode(head.roster, type=_Roster)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateError(f"state: {error}") from None
    if roster.schema != schema(sim.engine):
        raise StateError(
            f"state: it is of another version of botyard, {head.program}; this one is {botyard.__version__}"
        )
    if roster.scene != sim._known.digest_of_walls(sim):
        raise StateError(f'state: it is of another map, "{roster.scene_name}"; here is "{sim.scene.name}"')
    models = _find_models(sim, roster)
    rows = {name: len(keys) for name, keys in roster.keys.items()}
    rows |= {
        BODIES: len(roster.bodies),
        CONTACTS: head.contacts,
    }  # these last: no table of a crafted state counts for them
    masses = any(model.dynamics is not None for model in models.values())
    if masses != (head.contacts != NO_MASS) or not 0.0 <= head.span <= 60.0:
        raise StateError("state: what it says of bodies with mass does not fit its models")
    found = read_columns(sim.engine, data, rows, masses=masses)
    queue = [_command(q) for q in head.queue]
    _check_head(head, roster)
    _arrange_bodies(sim, roster, models)
    _arrange_rows(sim, roster)
    write_columns(sim.engine, found)
    engine = sim.engine
    engine.resume(tick=head.tick, step_us=head.step_us, seed=head.seed, sequence=head.sequence, queue=queue)
    engine.odometry_error_mode = OdometryErrorMode(head.error_mode)
    engine.table(Grippers).redraw(engine)
    engine.redraw_carriers()
    write_masses(sim.engine, found, head.span)  # at last: whose outline changes is woken
    starts = {body.name: Pose(*body.start) for body in roster.bodies if body.start is not None}
    for robot, teleports in zip(sim.robots.values(), head.teleports, strict=True):
        robot._restored(starts[robot.name], teleports, head.claims.get(robot.name, []))
    for rays in head.rays:
        sim.robots[rays.robot].lasers[rays.laser].configure(rays.angle_min, rays.increment, rays.count)
    sim._unserved = set(roster.unserved)
    _employ(sim, head.controllers, employ)
    engine.resumed()


def _check_head(head: _Head, roster: _Roster) -> None:
    robots = {body.name for body in roster.bodies if body.start is not None}
    told = [*head.claims, *(r.robot for r in head.rays), *(c.robot for c in head.controllers)]
    if len(head.teleports) != len(robots) or not robots.issuperset(told):
        raise StateError("state: it tells of robots that it does not have")
    names = {body.name for body in roster.bodies}
    if not names.issuperset(q.body for q in head.queue if q.kind != "SetVelocities") or len(names) != len(
        roster.bodies
    ):
        raise StateError("state: it tells of bodies that it does not have, or twice of one")
    if not (
        0 <= head.tick <= 10**15
        and 1 <= head.step_us <= 60_000_000
        and 0 <= head.error_mode < OdometryErrorMode.PERFECT
    ):
        raise StateError("state: time, step or error mode are none")


def _find_models(sim: Simulation, roster: _Roster) -> dict[bytes, RobotSpec | BoxObject]:
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
    if roster.described != known.digest(sim.described) and roster.described not in known.objects:
        raise StateError("state: it is of a world with other description files (describe)")
    return found


def _arrange_bodies(sim: Simulation, roster: _Roster, models: Mapping[bytes, RobotSpec | BoxObject]) -> None:
    """Let the simulation have these bodies in this order; robots that are there already keep their handles."""
    known, engine = sim._known, sim.engine
    boxes = dict(zip(sim.box_names, sim.scene.boxes, strict=True))

    def is_there(body: _Body) -> bool:
        if body.start is None:
            return body.name in boxes and known.digest(boxes[body.name]) == body.digest
        robot = sim.robots.get(body.name)
        return robot is not None and known.digest(robot.spec) == body.digest

    there = [is_there(body) for body in roster.bodies]
    if all(there) and [body.name for body in roster.bodies] == list(engine.rows):
        return
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
    sim._set_boxes([body.name for body in order], [m for b in order if isinstance(m := models[b.digest], BoxObject)])
    sim._sort_robots([body.name for body in roster.bodies if body.start is not None])
    if roster.described != known.digest(sim.described):
        sim.described = cast(Described, known.objects[roster.described])
    sim._describe_again(roster.keys.get(Joints.name, []))


def _arrange_rows(sim: Simulation, roster: _Roster) -> None:
    for table in sim.engine.tables.values():
        if table.saved:
            at = {_hashable(key): i for i, key in enumerate(row_keys(table))}
            order = [at.get(_hashable(key)) for key in roster.keys.get(table.name, [])]
            if None in order or len(order) != len(at) or len(set(order)) != len(order):
                raise StateError(f"state: rows of the table {table.name} are missing")
            if order != list(range(len(order))):
                table.arrange([i for i in order if i is not None])


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


_COMMANDS: Final[Mapping[str, Any]] = MappingProxyType(
    {name: kind for name, kind in vars(commands).items() if is_dataclass(kind) and hasattr(kind, "apply")}
)


def _command(queued: _Queued) -> tuple[str, str, int, Any]:
    kind, values = _COMMANDS.get(queued.kind), queued.values
    command: Any
    try:
        if kind is None:
            raise ValueError(f'no command "{queued.kind}"')
        if kind is commands.SetVisible:
            command = kind(Visible(values["mask"]))
        elif kind is commands.SetVelocities:
            arrays = [None if values[a] is None else np.array(values[a], np.float64) for a in ("v", "w", "vy")]
            command = kind(np.array(values["rows"], np.int64), *arrays)
        else:
            command = msgspec.convert(values, kind)
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise StateError(f"state: a command that waits: {error}") from None
    return queued.body, queued.source, queued.sequence, command


def _employ(sim: Simulation, controllers: Sequence[_Controller], employ: Employ) -> None:
    """Let these programs drive their robots, as they were."""
    wanted = {c.robot for c in controllers}
    for name in [name for name in sim._programs if name not in wanted]:
        sim._dismiss(name)
    for c in controllers:
        program = Program(name=c.name, options=c.options)
        if sim.programs.get(c.robot) != program:
            employ(sim.robots[c.robot], program)
        owner = getattr(sim._programs[c.robot][1], "__self__", None)
        try:
            assert isinstance(owner, Saveable)
            owner.set_state(c.state)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, AssertionError) as error:
            raise StateError(f"state: robot {c.robot}: the controller {c.name} cannot use its state: {error}") from None
    sim._order_programs([c.robot for c in controllers])


# -- cloning


def _silent(text: str) -> None:
    """A world that is cloned was doubted before."""


def clone(sim: Simulation, seed: int | None) -> Simulation:
    """See `Simulation.clone`."""
    return rebuild(*parts(sim, seed))


def parts(sim: Simulation, seed: int | None = None) -> tuple[Any, ...]:
    """What `rebuild` makes a simulation of; scene and models once."""
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
    kind: type[Simulation],
    scene: Any,
    models: Sequence[RobotSpec],
    described: Any,
    options: Mapping[str, Any],
    state: bytes,
    seed: int,
) -> Simulation:
    """A simulation of `parts`."""
    sim = kind(scene, seed=seed, warn=_silent, **options)
    for model in (*models, *scene.boxes, described):
        sim._known.digest(model)
    sim.restore(state)
    sim.engine.reseed(seed)
    sim.warn_by(None)
    return sim


__all__ = ["Known", "clone", "parts", "rebuild", "restore", "save"]
