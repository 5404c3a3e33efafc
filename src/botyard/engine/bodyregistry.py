"""Bodies, boxes and tables of devices, added and removed between two steps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, ParamSpec, TypeVar, cast

import numpy as np

from botyard.api.arguments import Rows
from botyard.api.revisions import Subject
from botyard.engine.bodyspec import BodySpec, box_body
from botyard.engine.build import (
    build_bins,
    build_bodies,
    coupled,
    drop_bodies,
    insert_in_order,
    join_bodies,
    keep_bodies,
    moving_order,
)
from botyard.engine.commandqueue import CommandQueue
from botyard.engine.commands import set_error_mode
from botyard.engine.dynamics import Dynamics
from botyard.engine.fields import tables_of, with_fields
from botyard.engine.layout import (
    Grid,
    OdometryErrorMode,
)
from botyard.engine.step import PLACE
from botyard.engine.tables import NOBODY, Table, renumber
from botyard.engine.wallgrid import build_grid
from botyard.errors import ModelError, WorldError
from botyard.geometry import Pose, relative
from botyard.model.dynamics import DynamicsSpec, area_moments
from botyard.model.scene import Scene
from botyard.names import MAX_NAME, body_name
from botyard.units import wrap_angle

log = logging.getLogger("botyard.devices")
K = TypeVar("K", bound=Table)
T = TypeVar("T")
P = ParamSpec("P")
# The first bit requests contact sectors, see `Bodies.feels`.
NOTES_CONTACTS: Final = np.int8(2)
"""Bit of `Bodies.feels` that makes each step store the obstacle of a blocked body."""


def _guarded(table: Table, act: Callable[P, T]) -> Callable[P, T | None]:
    """Return `act`, guarded against exceptions if its table is optional.

    An optional table may belong to another package. If an action of such a table raises
    an exception, the exception is logged, the table's actions are not called any more,
    and the step continues.

    Parameters
    ----------
    table : Table
        Table that owns `act`; its `failure` gets the first exception.
    act : callable
        Action of the table in a step.

    Returns
    -------
    callable
        `act` itself for a table of this package. Otherwise a function that returns None
        after a failure.
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
                    'the table "%s" of a device is disabled after this error: %r',
                    table.name,
                    error,
                )

        return None

    return run


def _check_masses(specs: Sequence[BodySpec]) -> None:
    """Check that bodies with mass have an area, before anything is changed.

    Raises
    ------
    ModelError
        A body has no area.
    """
    # An outline without area has no moment of inertia.
    for spec in specs:
        if spec.dynamics is not None:
            area_moments(spec.parts)


class BodyRegistry(CommandQueue):
    """Registry of the bodies of a world, and of the tables of their devices.

    Parameters
    ----------
    scene : Scene
        Static world and boxes. The subclass adds the boxes.
    seed, step_us : int
        Seed of all random draws, and simulated time of a step, µs.
    odometry_error_mode : OdometryErrorMode
        How odometry errors are drawn for robots that are added from now on.
    tables : sequence of Table
        Tables that exist as long as the world.
    """

    def __init__(
        self,
        scene: Scene,
        seed: int,
        step_us: int,
        begin: int,
        odometry_error_mode: OdometryErrorMode,
        tables: Sequence[Table],
    ) -> None:
        super().__init__(scene, seed, step_us, begin)
        self.odometry_error_mode = odometry_error_mode
        self.tables: dict[str, Table] = {
            table.name: table
            for table in (
                *tables,
                self.channels,
                *tables_of(scene.floor, {}, keeps=False),
            )
        }
        self._own_tables = tuple(self.tables)
        self._acts: list[Callable[[Any, float], None]] = []
        self._plans: list[Callable[[Any], None]] = []
        self.on_table: Callable[[Table], None] | None = None
        """Function that is called with each optional table after its creation; None: no call."""
        self._met_at: int | None = None
        """Number of the step whose obstacles `Bins.met` holds; None if it holds none."""
        self._notes_contacts = False
        self._pulls = False
        """Whether a body with trailers was added."""
        self.box_names: tuple[str, ...] = ()
        # The standard tables exist from the start; an optional one is created with the
        # first device of its kind.
        self._find_acts()

    def _rebuilt(self) -> None:
        """Renew derived arrays after bodies were added, removed or reordered."""
        self.bins = build_bins(len(self.specs))
        # `Bodies.ground` has no rows if the floor has no zones that act on robots.
        count = len(self.specs) if len(self.grid.zones) else 0
        if len(self.bodies.ground) != count:
            self.bodies = self.bodies._replace(ground=np.zeros((count, 3)))
        # Row numbers have changed, so the obstacles in `Bins.met` are no longer valid.
        self._met_at = None
        # The search takes time for each body, which worlds without trailers save.
        if self._pulls:
            self.bodies = coupled(self.bodies, self.specs, self.rows)
        if self._notes_contacts:
            self.bodies = self.bodies._replace(feels=self.bodies.feels | NOTES_CONTACTS)
        # Outlines and bins must be valid before a caller asks for free places.
        self._advance(PLACE)
        self._carried = None
        self._touch()

    def _add_boxes(self, scene: Scene) -> None:
        bodies: list[tuple[BodySpec, Pose]] = []
        taken, numbers = set(self.rows), dict[str, int]()
        for box in scene.boxes:
            base = name = body_name(box.name)
            # A name taken by a robot or another box gets a number.
            while name in taken:
                n = numbers[base] = numbers.get(base, 1) + 1
                tail = f"_{n:03d}"
                # Shortened, so that the number fits into the longest allowed name.
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
        # Made before anything changes: an invalid scene must leave the world as it is.
        self.grid = build_grid(scene) if grid is None else grid
        if self.dynamics is not None:
            self.dynamics.forget_walls()
        self.scene = scene
        self._renew_fields(keeps=False)
        # Old boxes are removed first, because new boxes may have the same names.
        self.remove_bodies(self.box_names)
        self._add_boxes(scene)

    def _renew_fields(self, *, keeps: bool) -> None:
        """Make the tables of the pheromone fields of the present scene.

        Parameters
        ----------
        keeps : bool
            Whether fields with an unchanged description keep their levels.
        """
        self._own_tables, self.tables = with_fields(
            self.scene.floor, self._own_tables, self.tables, keeps=keeps
        )
        self._find_acts()

    def remove_box(self, name: str) -> None:
        """Remove a box of the map between two steps.

        The scene also loses the box, so that a saved map does not contain it.

        Parameters
        ----------
        name : str
            Name of the box; it may differ from the name in the map file, see
            `box_names`.

        Raises
        ------
        KeyError
            The map has no box of that name.
        """
        if name not in self.box_names:
            raise KeyError(name)
        # Boxes of the scene and their names have the same order.
        index = self.box_names.index(name)
        self.remove_body(name)
        self.box_names = self.box_names[:index] + self.box_names[index + 1 :]
        self.scene = replace(
            self.scene, boxes=self.scene.boxes[:index] + self.scene.boxes[index + 1 :]
        )

    def add_bodies(self, bodies: Sequence[tuple[BodySpec, Pose]]) -> None:
        """Add several bodies at true poses in one call, between two steps.

        Their rows follow all others, in the given order. They may overlap walls and bodies.

        Parameters
        ----------
        bodies : sequence of (BodySpec, Pose)
            Descriptions and true poses in the frame of the world: m, m, rad.

        Raises
        ------
        WorldError
            A name is taken. In this case, nothing is added.
        ModelError
            A body with mass has an outline without area. In this case, nothing is
            added.
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

        # Check the masses before anything changes, so that a failed call adds nothing.
        _check_masses(specs)
        self.rows = rows
        self.specs += specs
        self._pulls = self._pulls or any(spec.trailers for spec in specs)
        n_old = len(self.state.pose)
        self._store.grow(
            len(bodies), steers=any(spec.kinematics.has_wheel_state for spec in specs)
        )
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

    def trailers_of(self, name: str) -> list[str]:
        """Return the names of the trailers behind a body, from the front.

        Parameters
        ----------
        name : str
            Name of the body.
        """
        row = self.rows[name]
        train = self._train_of(row)
        return [self.specs[one].name for one in train[train.index(row) + 1 :]]

    def remove_body(self, name: str) -> None:
        """Remove a body; see `remove_bodies`."""
        self.remove_bodies([name])

    def remove_bodies(self, names: Sequence[str]) -> None:
        """Remove bodies and their devices between two steps.

        Their queued commands are dropped, and bodies that they carry are released.
        Later rows move up.

        Parameters
        ----------
        names : sequence of str
            Names of the bodies; a repeated name counts once.

        Raises
        ------
        KeyError
            A body does not exist. In this case, no body is removed.
        """
        rows = np.array(sorted({self.rows[name] for name in names}), np.int64)
        gone = rows.tolist()
        stays = np.ones(len(self.specs), np.bool_)
        stays[rows] = False
        # `NOBODY` is −1, which is the index of the appended element.
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

    def _forget_dynamics(self) -> None:
        if self.dynamics is not None and self.dynamics.is_empty:
            self.dynamics = None

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
        s.drive[row] = int(spec.kinematics.motion)
        steering = spec.kinematics.steering
        if steering is not None:
            s.steer[row] = (
                0.0,
                steering.rate,
                steering.rate,
                steering.limit,
                steering.wheelbase,
                steering.offset,
                float(steering.by_angle),
            )

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

        Parameters
        ----------
        kind : type of Table
            Class with its attribute `optional` set.

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
            raise WorldError(
                f'the table "{kind.name}" of a device: expected a name that no other '
                f"table has, found a {type(table).__qualname__} of this name"
            )
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
        """Return the table of a kind of device.

        Parameters
        ----------
        kind : type of Table
            Class of the table. Its `name` is the key.

        Raises
        ------
        KeyError
            The engine has no such table, for example because no robot has such a
            device.
        """
        return cast(K, self.tables[kind.name])

    def set_dynamics(self, name: str, spec: DynamicsSpec | None) -> None:
        """Change the mass properties of a body at once, between two steps.

        If the body is a box of the map, the scene changes with it. A body that gains
        mass, or loses its mass, also stops: its velocity becomes 0.

        Parameters
        ----------
        name : str
            Name of the body.
        spec : DynamicsSpec or None
            Mass, friction and damping; None makes the body kinematic.

        Raises
        ------
        KeyError
            There is no body of that name.
        ModelError
            The outline of the body has no area, or the body is in a train.
        """
        row = self.rows[name]
        old = self.specs[row]
        # Forces would pull hitches apart.
        if spec is not None and (old.trailers or old.is_trailer):
            raise ModelError(
                f"{name}: expected a body that is no trailer and has no trailers, "
                f"because trains cannot have mass; found a "
                f"{'trailer' if old.is_trailer else 'body with trailers'}"
            )
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

        # Ghost mode (mask 0) must survive the change.
        if self.state.mask[row]:
            self.state.mask[row] = new.mask(new.returns.mask)
        if (old.dynamics is None) != (spec is None):
            self.state.control[row] = new.control
            # The velocity belongs to the previous kind of motion.
            self.state.vel[row] = 0.0

        self._touch()
        self._rebuilt()

    def arrange(self, order: Sequence[int]) -> None:
        """Permute the bodies, between two steps.

        Results do not depend on the order of rows. A saved state may have another
        order. In this case, arrange the bodies in that order before you load the state.

        Parameters
        ----------
        order : sequence of int
            Present row of each new row: a permutation of all rows.
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
