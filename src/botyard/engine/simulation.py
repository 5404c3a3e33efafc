"""Host object of the engine: it owns the arrays and runs the step.

It drains commands, calls the step, and publishes snapshots. There is one writer (design
§2): only `Engine` writes the state. It knows neither files nor protocols nor kinds of
sensors. Devices are tables, which may act, and `SensePhase` objects, which are notified
when rows change and called once per step.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, ParamSpec, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from botyard.api.arguments import Rows
from botyard.api.revisions import Revisions, Subject
from botyard.engine.build import (
    BodySpec,
    box_body,
    build_bins,
    build_bodies,
    drop_bodies,
    insert_in_order,
    join_bodies,
    keep_bodies,
    moving_order,
    outline_of,
    reshape_bodies,
)
from botyard.engine.channels import LATE, Channels, Sent
from botyard.engine.clock import Clock
from botyard.engine.commands import Command, SetVelocities, set_error_mode
from botyard.engine.dynamics import Dynamics
from botyard.engine.kernels.collide import find_blocked
from botyard.engine.kernels.packed import WorldPack, with_bodies
from botyard.engine.layout import (
    I1,
    I8,
    NO_BODY,
    Control,
    Grid,
    Mode,
    OdometryErrorMode,
    World,
    allocate_state,
)
from botyard.engine.rng import DEFAULT_SEED, seed_word
from botyard.engine.snapshot import Snapshot
from botyard.engine.step import FOLLOW, MOVE, PLACE, advance
from botyard.engine.store import StateStore
from botyard.engine.tables import NOBODY, Table, renumber
from botyard.engine.wallgrid import build_grid
from botyard.errors import WorldError
from botyard.geometry import Outline, Pose, relative
from botyard.model.dynamics import DynamicsSpec, area_moments
from botyard.model.obstacles import Visible
from botyard.model.robot import CommandSpec
from botyard.model.scene import Scene
from botyard.names import MAX_NAME, body_name
from botyard.native.kinds import Pack
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine
from botyard.units import TWO_PI, wrap_angle

K = TypeVar("K", bound=Table)
T = TypeVar("T")
P = ParamSpec("P")

log = logging.getLogger("botyard.devices")
NOTES_CONTACTS: Final = np.int8(2)
"""Bit of `Bodies.feels` that requests notes of obstacles."""
MAX_ROWS_AT_ONCE: Final = 200_000
"""Highest number of bodies times steps in one call of compiled code.

The call then takes less than a tenth of a second.
"""


class SensePhase(Protocol):
    """Sensors of one kind as the engine sees them.

    They change nothing in the world. They also measure while time stands still.
    """

    @property
    def table(self) -> Table:
        """Table with one row for each sensor."""
        ...

    @property
    def remembers(self) -> bool:
        """Whether the sensors must measure in every step, with or without readers.

        They must if a measurement affects later ones.
        """
        ...

    def rebuild(self, engine: Engine) -> None:
        """Adapt to bodies that were added, removed or reordered."""
        ...

    def forget(self) -> None:
        """Drop earlier measurements after time was set.

        They are not the past of the present state.
        """
        ...

    def begin(self, engine: Engine) -> None:
        """Measure in the state before a step, if this is needed."""
        ...

    def sense(self, engine: Engine) -> None:
        """Take the readings of this step."""
        ...


def _guarded(table: Table, act: Callable[P, T]) -> Callable[P, T | None]:
    """Return `act`, guarded against exceptions if its table is optional.

    An optional table may belong to another package. Its exception is logged and ends
    its actions, and the step continues.
    """
    if not table.optional:
        return act

    def run(*args: P.args, **options: P.kwargs) -> T | None:
        if table.failure is None:
            try:
                return act(*args, **options)
            except Exception as error:
                # Foreign code may raise anything.
                table.failure = error
                log.exception(
                    'the table "%s" of a device is disabled: %r',
                    table.name,
                    error,
                )

        return None

    return run


class Engine:
    """World of bodies that can be stepped.

    Parameters
    ----------
    scene : Scene
        Static world and boxes.
    seed : int
        Seed of all random draws.
    step_us : int
        Simulated time of one step, µs.
    begin : int
        Initial number of steps done.
    odometry_error_mode : OdometryErrorMode
        Mode of robots added from now on.
    tables : sequence of Table
        State of devices. A method ``act(engine, dt)`` is called in this order in every
        step, after all bodies have moved and before any sensor measures, and never while
        time stands still. A method ``plan(engine)`` is called before any body moves, for
        errors of odometry.
    senses : sequence of SensePhase
        Sensors, called in this order in every step, and when the world settles.
    """

    def __init__(
        self,
        scene: Scene,
        *,
        seed: int = DEFAULT_SEED,
        step_us: int = 100_000,
        begin: int = 0,
        odometry_error_mode: OdometryErrorMode = OdometryErrorMode.RANDOM_EACH_UPDATE,
        tables: Sequence[Table] = (),
        senses: Sequence[SensePhase] = (),
    ) -> None:
        self.feed = Revisions()
        """Revision counters of rare changes."""
        self.scene = scene
        self.seed = seed
        self.seed_word = seed_word(seed)
        self.clock = Clock(step_us, begin)
        self.odometry_error_mode = odometry_error_mode
        self.grid = build_grid(scene)
        self.specs: list[BodySpec] = []
        self.rows = Rows()
        self._store = StateStore()
        self._pack = WorldPack()
        self.state = self._store.state
        self.bodies = build_bodies(())
        self.bins = build_bins(0)
        self.channels = Channels()
        """Channels of robots whose commands are delayed or changed."""
        self.tables = {
            table.name: table
            for table in (*tables, *(sense.table for sense in senses), self.channels)
        }
        self._own_tables = tuple(self.tables)
        self._acts: list[Callable[[Engine, float], None]] = []
        self._plans: list[Callable[[Engine], None]] = []
        self._interlocks: list[tuple[Table, Callable[[], I8 | None]]] = []
        self.on_table: Callable[[Table], None] | None = None
        """Callback for each optional table that is created."""
        self._find_acts()
        self._senses = tuple(senses)
        self._queue: list[tuple[int, str, int, str, Command]] = []
        self._bulk: list[tuple[str, int, SetVelocities]] = []
        self._sequence = 0
        self._carried: I8 | None = None
        self._met_at: int | None = None
        """Tick for which `Bins.met` is valid."""
        self._notes_contacts = False
        self.dynamics: Dynamics | None = None
        """Dynamics of bodies with mass; None while there are none."""
        self.box_names: tuple[str, ...] = ()
        self._add_boxes(scene)

    # -- Map

    def _add_boxes(self, scene: Scene) -> None:
        bodies: list[tuple[BodySpec, Pose]] = []
        taken, numbers = set(self.rows), dict[str, int]()
        for box in scene.boxes:
            base = name = body_name(box.name)
            # A name taken by a robot or another box gets a number.
            while name in taken:
                n = numbers[base] = numbers.get(base, 1) + 1
                tail = f"_{n:03d}"
                name = base[: MAX_NAME - len(tail)] + tail

            taken.add(name)
            bodies.append((replace(box_body(box), name=name), box.pose))

        self.box_names = tuple(spec.name for spec, _ in bodies)
        self.add_bodies(bodies)

    def replace_scene(self, scene: Scene, grid: Grid | None = None) -> None:
        """Replace the static world and its boxes between two steps.

        All other bodies stay in place.

        Parameters
        ----------
        scene : Scene
            New world.
        grid : Grid, optional
            Result of `build_grid` for the scene, if another thread has made it. Building is the
            slow part, and does not need the engine.
        """
        self.grid = build_grid(scene) if grid is None else grid
        if self.dynamics is not None:
            self.dynamics.forget_walls()
        self.scene = scene
        # Boxes belong to the map: the old ones go before the new ones take their names.
        self.remove_bodies(self.box_names)
        self._add_boxes(scene)

    def remove_box(self, name: str) -> None:
        """Remove a box of the map between two steps.

        Raise KeyError if the map has no box of that name.
        """
        if name not in self.box_names:
            raise KeyError(name)
        index = self.box_names.index(name)
        self.remove_body(name)
        self.box_names = self.box_names[:index] + self.box_names[index + 1 :]
        self.scene = replace(
            self.scene, boxes=self.scene.boxes[:index] + self.scene.boxes[index + 1 :]
        )

    # -- Bodies

    def add_bodies(self, bodies: Sequence[tuple[BodySpec, Pose]]) -> None:
        """Add bodies at true poses at once, between two steps.

        Raises
        ------
        WorldError
            A name is taken.
        """
        specs = [spec for spec, _ in bodies]
        # A new mapping, because snapshots keep the old one.
        rows = Rows(self.rows)
        for spec in specs:
            if spec.name in rows:
                raise WorldError(
                    f'a body named "{spec.name}" already exists; names must be unique'
                )

            rows[spec.name] = len(rows)

        # Checked before anything changes, so that a failed call adds nothing.
        _check_masses(specs)
        self.rows = rows
        self.specs += specs
        n_old = len(self.state.pose)
        self._store.grow(len(bodies))
        self.state = self._store.state
        self.state.uid[n_old:] = [spec.uid for spec in specs]
        order = insert_in_order(
            self.bodies.order, [spec.name for spec in self.specs], n_old
        )
        self.bodies = join_bodies(self.bodies, build_bodies(specs), order)
        for row, (spec, pose) in enumerate(bodies, start=n_old):
            self._initialise(row, spec, pose)
            self.channels.set(spec.name, row, spec.commands)

        if self.dynamics is not None:
            self.dynamics.add(specs)
        elif any(spec.dynamics is not None for spec in specs):
            self.dynamics = Dynamics(self._specs_as_drawn())

        self._rebuilt()
        self.feed.record_change(Subject.BODIES)

    def remove_body(self, name: str) -> None:
        """Remove a body; see `remove_bodies`."""
        self.remove_bodies([name])

    def remove_bodies(self, names: Sequence[str]) -> None:
        """Remove bodies and their devices between two steps.

        Their queued commands are dropped, and bodies that they carry are released.

        Raises
        ------
        KeyError
            A body does not exist. None is removed then.
        """
        rows = np.array(sorted({self.rows[name] for name in names}), np.int64)
        gone = rows.tolist()
        stays = np.ones(len(self.specs), np.bool_)
        stays[rows] = False
        self._let_go(np.flatnonzero(~np.append(stays, True)[self.state.carrier]))
        self._let_go(rows[self.state.carrier[rows] != NOBODY])
        new_rows = np.where(stays, np.cumsum(stays) - 1, NOBODY)
        uids = set(self.state.uid[rows].tolist())
        for row in reversed(gone):
            del self.specs[row]
        self._store.remove(rows)
        self.state = self._store.state
        renumber(self.state.carrier, new_rows)
        for table in self.tables.values():
            table.renumber(new_rows)
        self._drop_tables()
        self.bodies = drop_bodies(self.bodies, rows)
        if self.dynamics is not None:
            self.dynamics.keep(np.flatnonzero(stays))
            self._forget_dynamics()

        names = list(self.rows)
        for row in reversed(gone):
            del names[row]
        self.rows = Rows(zip(names, range(len(names)), strict=True))
        self._queue = [c for c in self._queue if c[0] not in uids]
        # In descending order, so that earlier rows keep their numbers.
        for row in reversed(gone):
            self._bulk = [
                (source, n, command.renumbered(row))
                for source, n, command in self._bulk
            ]

        self._rebuilt()
        self.feed.record_change(Subject.BODIES)

    def _specs_as_drawn(self) -> list[BodySpec]:
        """Return descriptions of all bodies with their present outlines.

        Grippers change outlines, and carried bodies are a part of them.
        """
        return [self._as_drawn(row) for row in range(len(self.specs))]

    def _as_drawn(self, row: int) -> BodySpec:
        return replace(self.specs[row], parts=self.outline(row))

    def _forget_dynamics(self) -> None:
        if self.dynamics is not None and self.dynamics.is_empty:
            self.dynamics = None

    def _rebuilt(self) -> None:
        self.bins = build_bins(len(self.specs))
        self._met_at = None
        if self._notes_contacts:
            self.bodies = self.bodies._replace(feels=self.bodies.feels | NOTES_CONTACTS)
        self._advance(PLACE)
        for sense in self._senses:
            sense.rebuild(self)
        self._carried = None
        self._touch()
        self._publish()

    def _initialise(self, row: int, spec: BodySpec, pose: Pose) -> None:
        s, limits, error = (
            self.state,
            spec.kinematics.limits,
            spec.odometry_error.as_tuple(),
        )
        # Kernels rely on wrapped headings.
        start = pose.x, pose.y, wrap_angle(pose.th)
        s.pose[row] = start
        s.max_vel[row] = s.top_vel[row] = limits.max_speed.as_tuple()
        s.accel[row] = limits.accel.as_tuple()
        s.decel[row] = limits.decel.as_tuple()
        s.heading_speed[row] = limits.heading_speed
        s.drive[row] = int(spec.kinematics.kind)
        s.motors[row] = 1
        s.mask[row] = spec.mask(spec.returns.mask)
        s.control[row] = spec.control
        s.carrier[row] = NOBODY
        s.bright[row] = spec.returns.laser
        low = spec.odometry_error_low
        s.err_lo[row] = [-e for e in error] if low is None else low.as_tuple()
        s.err_hi[row] = error
        mode = (
            OdometryErrorMode.PERFECT
            if spec.perfect_odometry
            else self.odometry_error_mode
        )
        set_error_mode(s, row, mode, int(self.seed_word))
        if spec.perfect_odometry:
            s.odom[row] = s.pose[row]
        elif spec.odometry_origin is not None:
            s.odom_frame[row] = spec.odometry_origin
            s.odom[row] = relative(spec.odometry_origin, Pose(*start))
        else:
            s.odom_frame[row] = start

    def optional_table(self, kind: type[K]) -> K:
        """Return the table of a kind of device that few worlds have.

        The first call creates it, and it is dropped with its last row. Optional tables
        follow the others in the order of their names, so that their order does not
        depend on history.

        Raises
        ------
        WorldError
            Another kind of table has that name.
        """
        table = self.tables.get(kind.name)
        if table is None:
            assert kind.optional, f"{kind.__name__}.optional"
            table = kind()
            both: dict[str, Table] = {**self.tables, kind.name: table}
            more = {n: t for n, t in both.items() if n not in self._own_tables}
            self.tables = {n: self.tables[n] for n in self._own_tables} | {
                n: more[n] for n in sorted(more)
            }
            self._find_acts()
            if self.on_table is not None:
                self.on_table(table)

        if type(table) is not kind:
            raise WorldError(f'there is another table named "{kind.name}"')
        return table

    def _drop_tables(self) -> None:
        """Drop optional tables without rows."""
        if any(t.optional and not len(t) for t in self.tables.values()):
            self.tables = {
                n: t for n, t in self.tables.items() if len(t) or not t.optional
            }
            self._find_acts()

    def _find_acts(self) -> None:
        self._acts = [
            _guarded(t, t.act) for t in self.tables.values() if hasattr(t, "act")
        ]
        self._plans = [
            _guarded(t, t.plan) for t in self.tables.values() if hasattr(t, "plan")
        ]
        self._interlocks = [
            (t, _guarded(t, t.inhibited)) for t in self.tables.values() if t.inhibits
        ]

    def table(self, kind: type[K]) -> K:
        """Return the table of a kind of device; raise KeyError if the engine has none."""
        return cast(K, self.tables[kind.name])

    def outline(self, row: int) -> tuple[Outline, ...]:
        """Return the present polygons of a body in its frame, m.

        The polygons of carried bodies are included.
        """
        return outline_of(self.bodies, row)

    def own_outline(self, row: int) -> tuple[Outline, ...]:
        """Return `outline` without the polygons of carried bodies, which come last."""
        return self.outline(row)[: len(self.specs[row].parts)]

    def reshape(self, name: str, parts: tuple[Outline, ...]) -> None:
        """Replace a body's own outline at once, between two steps or in the act phase."""
        self.reshape_many({self.rows[name]: parts})

    def reshape_many(self, outlines: Mapping[int, tuple[Outline, ...]]) -> None:
        """Replace the outlines of many bodies, by row; see `reshape`."""
        for row, parts in outlines.items():
            self.specs[row] = replace(self.specs[row], parts=parts)
        carriers = self._draw(outlines)
        self._redrawn(
            np.unique(np.concatenate([np.array(list(outlines), np.int64), carriers]))
        )

    def redrawn(self, rows: I8) -> None:
        """Update bodies after a device has written corners and `Bodies.radius`.

        Devices do so in the act phase.

        `rows` is (n,) int64.
        """
        # NaN demands new values of `Bodies.world` and `leeway`.
        self.bodies.placed[rows] = np.nan
        carriers = self._draw_carriers(rows)
        self._redrawn(
            np.unique(np.concatenate([rows, carriers])) if len(carriers) else rows
        )

    def redraw_carriers(self) -> None:
        """Update the outlines of all carriers after `State.carrier` was written.

        Bodies that were carriers before are included.
        """
        own = np.array([len(spec.parts) for spec in self.specs], np.int64)
        carriers = np.unique(self.state.carrier[self.state.carrier != NOBODY])
        self._carry_others(
            np.union1d(carriers, np.flatnonzero(np.diff(self.bodies.part_start) != own))
        )

    def _carry_others(self, carriers: I8) -> None:
        """Update the outlines of these bodies after a change of their carried bodies."""
        self._carried = None
        self._touch()
        if len(carriers):
            self._draw({row: self.own_outline(row) for row in carriers.tolist()})
            self._redrawn(carriers)

    def _draw(self, own: Mapping[int, tuple[Outline, ...]]) -> I8:
        """Set outlines of bodies with carried bodies, then of their carriers.

        A body's own polygons precede the polygons of carried bodies.

        Returns the rows of the carriers.
        """
        drawn: dict[int, BodySpec] = {}
        carried = np.flatnonzero(self.state.carrier != NOBODY)
        loads: dict[int, list[int]] = {}
        for thing, carrier in zip(
            carried.tolist(), self.state.carrier[carried].tolist(), strict=True
        ):
            loads.setdefault(carrier, []).append(thing)

        for row, parts in own.items():
            for thing in loads.get(row, ()):
                parts += self.carried_outlines(thing)
            drawn[row] = replace(self.specs[row], parts=parts)

        self.bodies = reshape_bodies(self.bodies, drawn)
        return self._draw_carriers(np.array(list(own), np.int64))

    def _draw_carriers(self, rows: I8) -> I8:
        """Update the outlines of these bodies' carriers, and return the carriers' rows."""
        carriers = self.state.carrier[rows]
        carriers = np.unique(carriers[carriers != NOBODY])
        if len(carriers):
            self._draw({row: self.own_outline(row) for row in carriers.tolist()})
        return carriers

    def _redrawn(self, rows: I8) -> None:
        self.feed.record_change(Subject.OUTLINES)
        if self.dynamics is not None:
            self.dynamics.change(
                rows.tolist(), [self._as_drawn(row) for row in rows.tolist()]
            )

        self._advance(PLACE)

    def _switch_off(self, table: Table, rows: I8) -> None:
        """Disable the motors of bodies, and clear their targets, so that they stop.

        They stop with the highest deceleration if the table `brakes`.
        """
        s = self.state
        s.motors[rows] = 0
        s.mode_x[rows] = s.mode_a[rows] = Mode.VELOCITY
        s.target[rows] = 0.0
        s.control[rows[s.control[rows] != Control.NONE]] = Control.MOTORS
        if table.brakes:
            s.estop[rows] |= (s.vel[rows] != 0.0).any(axis=1)
        self._touch()

    def set_dynamics(self, name: str, spec: DynamicsSpec | None) -> None:
        """Give a body another mass at once, between two steps; None makes it kinematic.

        Raises
        ------
        KeyError
            There is no body of that name.
        ModelError
            The outline of the body has no area.
        """
        row = self.rows[name]
        old = self.specs[row]
        new = replace(old, dynamics=spec, parts=self.own_outline(row))
        _check_masses([new])
        self.specs[row] = new
        if self.dynamics is not None:
            self.dynamics.change([row], [self._as_drawn(row)])
            self._forget_dynamics()
        elif spec is not None:
            self.dynamics = Dynamics(self._specs_as_drawn())

        if name in self.box_names:
            index, boxes = self.box_names.index(name), self.scene.boxes
            box = replace(boxes[index], dynamics=spec)
            self.scene = replace(
                self.scene, boxes=(*boxes[:index], box, *boxes[index + 1 :])
            )

        # A ghost stays a ghost.
        if self.state.mask[row]:
            self.state.mask[row] = new.mask(new.returns.mask)
        if (old.dynamics is None) != (spec is None):
            self.state.control[row] = new.control
            # The velocity belongs to the previous kind of motion.
            self.state.vel[row] = 0.0

        self._touch()
        self._rebuilt()

    def attach(self, carrier: str, name: str) -> None:
        """Attach one body to another at its present place.

        The attached body moves with its carrier, and becomes a part of its outline. It
        must carry nothing, and its carrier must not be carried.
        """
        self.attach_many([(self.rows[carrier], self.rows[name])])

    def attach_many(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Attach many bodies: rows of carriers and of attached bodies; see `attach`."""
        s = self.state
        for carrier, row in pairs:
            s.hold[row] = relative(
                Pose(*s.pose[carrier].tolist()), Pose(*s.pose[row].tolist())
            )
            s.carrier[row] = carrier
            s.mask[row] = 0

        self._carry_others(
            np.unique(np.array([carrier for carrier, _ in pairs], np.int64))
        )

    def detach(self, name: str) -> None:
        """Release a carried body at its present place.

        Does nothing if the body is not carried.
        """
        row = self.rows[name]
        if self.state.carrier[row] != NOBODY:
            self._let_go(np.array([row]))

    def _let_go(self, rows: I8) -> None:
        """Release these carried bodies, (n,) int64."""
        if not len(rows):
            return
        carriers = np.unique(self.state.carrier[rows])
        for row in rows.tolist():
            self.state.carrier[row] = NOBODY
            self.state.mask[row] = self.specs[row].mask(self.specs[row].returns.mask)

        self._carry_others(carriers)

    def carrier_of(self, name: str) -> str | None:
        """Return the name of a body's carrier; None if it is not carried or not there."""
        row = self.rows.get(name)
        carrier = NOBODY if row is None else int(self.state.carrier[row])
        return None if carrier == NOBODY else self.specs[carrier].name

    def carried_by(self, row: int) -> list[int]:
        """Return the rows of the bodies that a body carries."""
        carried: list[int] = np.flatnonzero(self.state.carrier == row).tolist()
        return carried

    def carried_outlines(self, row: int) -> tuple[Outline, ...]:
        """Return the outlines of a carried body in the frame of its carrier, m."""
        x0, y0, th = self.state.hold[row].tolist()
        c, s = cosine_sine(th)
        return tuple(
            tuple((x0 + c * x - s * y, y0 + s * x + c * y) for x, y in part)
            for part in self.outline(row)
        )

    def _carry(self) -> None:
        """Move carried bodies with their carriers."""
        s = self.state
        if self._carried is None:
            self._carried = np.flatnonzero(s.carrier != NOBODY)
        rows = self._carried
        if not len(rows):
            return
        base, hold = s.pose[s.carrier[rows]], s.hold[rows]
        c, sn = elementwise.cosine_sine(base[:, 2])
        s.pose[rows, 0] = base[:, 0] + c * hold[:, 0] - sn * hold[:, 1]
        s.pose[rows, 1] = base[:, 1] + sn * hold[:, 0] + c * hold[:, 1]
        # In (−π, π]
        s.pose[rows, 2] = math.pi - np.remainder(
            math.pi - base[:, 2] - hold[:, 2], TWO_PI
        )
        self._advance(PLACE)

    def is_free(self, spec: BodySpec, pose: Pose) -> bool:
        """Return whether a body could be at a pose without touching anything solid."""
        return self.trial(spec)(pose)

    def trial(
        self, spec: BodySpec, without: Collection[str] = ()
    ) -> Callable[[Pose], bool]:
        """Return `is_free` for many poses of one body, without the bodies in `without`.

        It is valid until something moves, comes or goes.
        """
        n = len(self.specs)
        bodies = join_bodies(
            self.bodies, build_bodies([spec]), np.append(self.bodies.order, n)
        )
        poses = np.concatenate([self.state.pose, np.zeros((1, 3))])
        bins = self.bins
        if without or self.dynamics is not None:
            bins = bins._replace(classes=bins.classes.copy())
            # Bodies with mass also take up room.
            pushed = bins.classes & int(Visible.PUSHED) != 0
            bins.classes[pushed] |= int(Visible.OBSTACLE)

        if without:
            bins.classes[bins.slot[[self.rows[name] for name in without]]] = 0

        world = with_bodies(self.packed, bodies, bins)
        row, blocked = np.array([n]), np.zeros(1, np.int8)

        def free(pose: Pose) -> bool:
            poses[n] = pose
            # The bins hold the bodies of the world; the body on trial need not be among
            # them.
            find_blocked(world, poses, row, blocked)
            return not blocked[0]

        return free

    def touching(self, rows: I8) -> NDArray[np.bool_]:
        """Return whether each body in `rows`, (n,) int64, touches something solid."""
        found: I1 = np.zeros(len(rows), np.int8)
        find_blocked(self.packed, self.state.pose, rows, found)
        # A ghost touches nothing.
        touching: NDArray[np.bool_] = (found != 0) & (self.state.mask[rows] != 0)
        return touching

    # -- Commands

    def queue_command(self, name: str, command: Command, source: str = "api") -> None:
        """Queue a command for the next step; raise KeyError for an unknown name.

        Commands of one step take effect in the order of bodies, then sources, then
        arrival. The order in which clients are served does not matter.
        """
        row = self.rows[name]
        self._sequence += 1
        if name in self.channels:
            now = self.channels.send(
                name, command, source, self._sequence, body=row, **self._sending()
            )
            if now is None:
                return
            command = now

        self._queue.append((self.specs[row].uid, source, self._sequence, name, command))

    def set_channel(self, name: str, spec: CommandSpec) -> None:
        """Set the channel of a body from now on.

        Commands that wait for the next step still precede commands sent after this
        call.
        """
        was_late = self.channels.is_late(name, self.clock.dt)
        row = self.rows[name]
        self.channels.set(name, row, spec)
        if was_late or not self.channels.is_late(name, self.clock.dt):
            return
        late = [
            one for one in self._queue if one[3] == name and isinstance(one[4], LATE)
        ]
        waiting: list[tuple[str, int, Command]] = [
            (source, number, command) for _, source, number, _, command in late
        ]
        self._queue = [one for one in self._queue if one not in late]
        bulk, self._bulk = self._bulk, []
        for source, number, many in bulk:
            at = np.flatnonzero(many.rows == row)
            waiting += [(source, number, many.for_body(int(index))) for index in at]
            self._bulk.append((source, number, many.without(row) if len(at) else many))

        self.channels.put(name, self.clock.tick, waiting)

    def queue_velocities(self, command: SetVelocities, source: str = "api") -> None:
        """Queue velocities of many bodies for the next step.

        The result is the same as with a `SetVelocity` for each of them.
        """
        self._sequence += 1
        if self.channels:
            names = [spec.name for spec in self.specs]
            left = self.channels.send_many(
                command, names, source, self._sequence, **self._sending()
            )
            if left is None:
                return
            command = left

        self._bulk.append((source, self._sequence, command))

    def _sending(self) -> dict[str, Any]:
        """Return the arguments that channels need to send a command."""
        return {
            "state": self.state,
            "seed": self.seed_word,
            "tick": self.clock.tick,
            "dt": self.clock.dt,
        }

    @property
    def is_pending(self) -> bool:
        """Whether commands, or motors to be switched off, wait for the next step."""
        if (
            self._queue
            or self._bulk
            or self.channels.is_due(self.clock.tick, self.clock.dt)
        ):
            return True

        found = ((table, inhibited()) for table, inhibited in self._interlocks)
        return any(
            rows is not None and len(self._runs(rows, table.brakes))
            for table, rows in found
        )

    def _drain(self) -> None:
        """Apply the commands that are due.

        Motors that a device inhibits stay off against any command.
        """
        self._apply_commands()
        self.inhibit()

    def inhibit(self) -> None:
        """Switch off the motors that a device inhibits (`Table.inhibited`).

        One such device is a pressed emergency stop button.
        """
        for table, inhibited in self._interlocks:
            rows = inhibited()
            if (
                rows is not None
                and len(rows)
                and len(rows := self._runs(rows, table.brakes))
            ):
                self._switch_off(table, rows)

    def _runs(self, rows: I8, brakes: bool) -> I8:
        """Return the bodies in `rows` that `inhibit` has to switch off or to brake."""
        s = self.state
        runs = s.motors[rows] != 0
        if brakes:
            runs |= (s.vel[rows] != 0.0).any(axis=1) & (s.estop[rows] == 0)
        found: I8 = rows[runs]
        return found

    def _apply_commands(self) -> None:
        if self.channels and self.channels.arrive(
            self.state, self.clock.tick, self.clock.dt
        ):
            self._touch()

        if self._bulk:
            self._drain_bulk()
        if not self._queue:
            return
        queue, self._queue = self._queue, []
        # Bodies, then sources, then arrival: independent of the order of service.
        queue.sort(key=lambda item: item[:3])
        self._touch()
        for _, _, _, name, command in queue:
            command.apply(self.state, self.rows[name])

    def _drain_bulk(self) -> None:
        """Apply commands to many bodies.

        If a body also has other commands, its part is queued in order among them.
        """
        bulk, self._bulk = sorted(self._bulk, key=lambda item: item[:2]), []
        alone = {self.rows[name]: (uid, name) for uid, _, _, name, _ in self._queue}
        rows = np.array(list(alone), np.int64)
        for source, sequence, command in bulk:
            command.apply(self.state, rows)
            for index in np.flatnonzero(np.isin(command.rows, rows)) if alone else ():
                uid, name = alone[int(command.rows[index])]
                self._queue.append(
                    (uid, source, sequence, name, command.for_body(int(index)))
                )

    # -- Restoration of a state

    @property
    def sequence(self) -> int:
        """Number of commands queued so far."""
        return self._sequence

    def queued(self) -> Iterator[tuple[str, str, int, Command | SetVelocities]]:
        """Yield waiting commands as tuples (body, source, number, command).

        An empty body stands for many.
        """
        for _, source, number, name, command in self._queue:
            yield name, source, number, command
        for source, number, many in self._bulk:
            yield "", source, number, many

    def arrange(self, order: Sequence[int]) -> None:
        """Permute the bodies: `order` holds the present row of each new one.

        Results do not depend on the order.
        """
        index = np.array(order, np.int64)
        new_rows = np.empty(len(index), np.int64)
        new_rows[index] = np.arange(len(index))
        self._store.arrange(index)
        self.specs = [self.specs[i] for i in order]
        renumber(self.state.carrier, new_rows)
        for table in self.tables.values():
            table.renumber(new_rows)
        self.bodies = keep_bodies(self.bodies, index)._replace(
            order=moving_order([spec.name for spec in self.specs])
        )
        if self.dynamics is not None:
            self.dynamics.keep(index)
        self.rows = Rows((spec.name, i) for i, spec in enumerate(self.specs))
        self._rebuilt()
        self.feed.record_change(Subject.BODIES)

    def resume(
        self,
        *,
        tick: int,
        step_us: int,
        seed: int,
        sequence: int,
        queue: Sequence[tuple[str, str, int, Command | SetVelocities]],
        under_way: Mapping[str, Sequence[Sent]] = MappingProxyType({}),
    ) -> None:
        """Set time, seed, waiting commands (see `queued`) and commands under way.

        Columns of the state are written before.
        """
        self._queue, self._bulk = [], []
        self.clock.tick, self.clock.step_us = tick, step_us
        self.channels.empty_all()
        for name, sent in under_way.items():
            self.channels.resume(name, self.rows[name], sent)
        for sense in self._senses:
            sense.forget()
        for name, source, number, command in queue:
            if isinstance(command, SetVelocities):
                self._bulk.append((source, number, command))
            else:
                self._queue.append(
                    (self.specs[self.rows[name]].uid, source, number, name, command)
                )

        self._sequence = sequence
        self.seed_word = seed_word(seed)
        self.seed = seed

    def resumed(self) -> None:
        """Compute all derived values after columns were written."""
        self.bodies.placed[:] = np.nan
        self._rebuilt()

    def reseed(self, seed: int) -> None:
        """Use another seed for all random draws from now on."""
        self.seed, self.seed_word = seed, seed_word(seed)

    # -- Time

    def step(self, n: int = 1) -> Snapshot:
        """Advance the world by `n` steps.

        `botyard.engine.step` defines the order of events.

        Steps between the first and the last one run in compiled code if only bodies
        without mass take part in them. Sensors can be skipped there, because their
        readings would have no reader.
        """
        while n > 0:
            self._step()
            n -= 1
            # The last step runs in full, so that sensors measure the final state.
            if n > 1 and self._is_plain():
                self._advance_alone(n - 1)
                n = 1

        return self.snapshot

    def _step(self) -> None:
        dt = self.clock.dt
        for sense in self._senses:
            sense.begin(self)
        self._drain()
        for plan in self._plans:
            plan(self)
        if self.dynamics is None:
            self._advance(MOVE | FOLLOW)
        else:
            self.dynamics.begin(self.state, self.bodies, self.bins, self.grid)
            self._advance(MOVE)
            self.dynamics.step(self.clock.dt, self.specs)
            self._advance(FOLLOW)

        self.clock.tick += 1
        self._met_at = self.clock.tick if self._notes_contacts else None
        # Carried bodies follow before sensors measure, but after all carriers have
        # moved.
        self._carry()
        for act in self._acts:
            act(self, dt)
        for sense in self._senses:
            sense.sense(self)
        self._publish()

    def _is_plain(self) -> bool:
        """Return whether only bodies without mass take part in the next steps.

        New commands are not considered.
        """
        return (
            self.dynamics is None
            and not (self._carried is None or len(self._carried))
            and not (self._queue or self._bulk)
            and all(table.is_idle for table in self.tables.values())
            and not any(sense.remembers for sense in self._senses)
        )

    def _advance_alone(self, count: int) -> None:
        """Advance by `count` plain steps, without sensors and snapshots.

        The steps run in parts, so that a program can be interrupted.
        """
        most = max(MAX_ROWS_AT_ONCE // max(len(self.specs), 1), 1)
        try:
            while count > 0:
                part = min(count, most)
                self._advance(MOVE | FOLLOW, part)
                self.clock.tick += part
                count -= part

            self._met_at = None
        except BaseException:
            self._publish()
            raise

    def note_contacts(self) -> None:
        """Note the obstacles of bodies in each step from now on, see `met`.

        It costs time only for stopped bodies.
        """
        if not self._notes_contacts:
            self._notes_contacts = True
            self.bodies = self.bodies._replace(feels=self.bodies.feels | NOTES_CONTACTS)

    def met(self, row: int) -> int | None:
        """Return the row of a body's obstacle in the last step, or `WALL`.

        Return None if it was not noted, or if bodies with mass did.
        """
        if self._met_at != self.clock.tick:
            return None
        found = int(self.bins.met[row])
        return None if found == NO_BODY else found

    def _advance(self, parts: int, count: int = 1) -> None:
        clock = self.clock
        advance(self.packed, clock.dt, self.seed_word, clock.tick, parts, count)

    @property
    def packed(self) -> Pack[World]:
        """State, bodies, bins and grid packed for kernels.

        They are valid until one of them is replaced.
        """
        return self._pack(self.state, self.bodies, self.bins, self.grid)

    def settle(self) -> Snapshot:
        """Apply queued commands and take all readings without a step.

        For placing bodies before the first step, and while paused. No device acts:
        grippers, batteries and joints stay as they are.
        """
        self._drain()
        self._advance(PLACE)
        for sense in self._senses:
            sense.sense(self)
        self._publish()
        return self.snapshot

    def _touch(self) -> None:
        """Note a write to columns that steps do not write; see `StateStore.touch`."""
        self._store.touch()

    def _publish(self) -> None:
        view = self._store.publish()
        self.snapshot = Snapshot(
            self.clock.tick, self.clock.time_us, MappingProxyType(self.rows), view
        )


def _check_masses(specs: Sequence[BodySpec]) -> None:
    """Check that bodies with mass have an area, before anything is changed.

    Raises
    ------
    ModelError
        A body has no area.
    """
    for spec in specs:
        if spec.dynamics is not None:
            area_moments(spec.parts)


def empty_world() -> Pack[World]:
    """Return an empty world, as an argument with which kernels are compiled."""
    state, _ = allocate_state(0)
    return WorldPack()(state, build_bodies(()), build_bins(0), build_grid(Scene()))
