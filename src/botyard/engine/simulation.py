"""The engine's host object: owns the arrays, drains commands, calls the step, publishes snapshots.

One writer (design §2): only `Engine` writes the state. It knows neither files nor protocols nor the names of sensors: those come as
`ActPhase` and `SensePhase` objects that are told when rows change and called once per step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.arguments import Rows
from botyard.engine.build import (
    BodySpec,
    box_body,
    build_bins,
    build_bodies,
    build_grid,
    join_bodies,
    keep_bodies,
    moving_order,
)
from botyard.engine.clock import Clock
from botyard.engine.commands import Command, SetVelocities, set_error_mode
from botyard.engine.dynamics import Dynamics
from botyard.engine.kernels.collide import find_blocked
from botyard.engine.layout import I1, I8, Grid, OdometryErrorMode, State, allocate_state, changing_bytes
from botyard.engine.rng import DEFAULT_SEED, seed_word
from botyard.engine.snapshot import Snapshot
from botyard.engine.step import FOLLOW, MOVE, PLACE, advance
from botyard.errors import WorldError
from botyard.geometry import Pose, compose, relative, transform_point
from botyard.model.dynamics import DynamicsSpec, area_moments
from botyard.model.obstacles import Outline, Visible
from botyard.model.scene import Scene
from botyard.names import MAX_NAME, body_name
from botyard.units import wrap_angle


class ActPhase(Protocol):
    """Devices that do something by themselves while time passes, as the engine sees them: grippers, batteries, joints."""

    def rebuild(self, engine: Engine) -> None:
        """Rows have changed."""
        ...

    def act(self, engine: Engine, dt: float) -> None:
        """Let `dt` s pass: after all bodies have moved, before any sensor looks. Never called while time stands still."""
        ...


class SensePhase(Protocol):
    """Sensors of one kind, as the engine sees them. They change nothing: time may stand still when they look."""

    def rebuild(self, engine: Engine) -> None:
        """Rows have changed."""
        ...

    def sense(self, engine: Engine) -> None:
        """Take the readings of this step."""
        ...


@dataclass(frozen=True, slots=True)
class Held:
    """A body that another one carries.

    Attributes
    ----------
    carrier : str
        Name of the body that carries it.
    pose : Pose
        Where, in the frame of the carrier.
    """

    carrier: str
    pose: Pose


class Engine:
    """A world of bodies that can be stepped.

    Parameters
    ----------
    scene : Scene
        Static world and boxes.
    seed : int
        Of all random draws.
    step_us : int
        Simulated time of one step, µs.
    begin : int
        Steps that count as done.
    odometry_error_mode : OdometryErrorMode
        For robots added from now on.
    actors : sequence of ActPhase
        Called in this order in every step, before the sensors.
    senses : sequence of SensePhase
        Called in this order in every step, and when the world settles.
    """

    def __init__(
        self,
        scene: Scene,
        *,
        seed: int = DEFAULT_SEED,
        step_us: int = 100_000,
        begin: int = 0,
        odometry_error_mode: OdometryErrorMode = OdometryErrorMode.RANDOM_EACH_UPDATE,
        actors: Sequence[ActPhase] = (),
        senses: Sequence[SensePhase] = (),
    ) -> None:
        self.scene = scene
        self.seed = seed
        self.seed_word = seed_word(seed)
        self.clock = Clock(step_us, begin)
        self.odometry_error_mode = odometry_error_mode
        self.grid = build_grid(scene)
        self.specs: list[BodySpec] = []
        self.rows: dict[str, int] = Rows()
        self.state, self._block = allocate_state(0)
        self.bodies = build_bodies(())
        self.bins = build_bins(0)
        self._actors = tuple(actors)
        self._senses = tuple(senses)
        self._queue: list[tuple[int, str, int, str, Command]] = []
        self._bulk: list[tuple[str, int, SetVelocities]] = []
        self._sequence = 0
        self._buffers: list[tuple[State, np.ndarray[tuple[int], np.dtype[np.uint8]]]] = []
        self._stale = 0
        self.shapes = 0
        """Counts how often a body has got another outline."""
        self._held: dict[str, Held] = {}
        self.dynamics: Dynamics | None = None
        """What moves bodies with mass; None while there are none."""
        self.box_names: tuple[str, ...] = ()
        self._add_boxes(scene)

    # -- the map

    def _add_boxes(self, scene: Scene) -> None:
        bodies: list[tuple[BodySpec, Pose]] = []
        taken, numbers = set(self.rows), dict[str, int]()
        for box in scene.boxes:
            base = name = body_name(box.name)
            while name in taken:  # by a robot, or another box
                n = numbers[base] = numbers.get(base, 1) + 1
                tail = f"_{n:03d}"
                name = base[: MAX_NAME - len(tail)] + tail
            taken.add(name)
            bodies.append((replace(box_body(box), name=name), box.pose))
        self.box_names = tuple(spec.name for spec, _ in bodies)
        self.add_bodies(bodies)

    def replace_scene(self, scene: Scene, grid: Grid | None = None) -> None:
        """Another static world and its boxes, between two steps; all other bodies stay where they are.

        Parameters
        ----------
        scene : Scene
            The new world.
        grid : Grid, optional
            Its `build_grid`, if that was made before: building is the slow part, and needs nothing of the engine.
        """
        self.grid = build_grid(scene) if grid is None else grid
        if self.dynamics is not None:
            self.dynamics.forget_walls()
        self.scene = scene
        self.remove_bodies(self.box_names)
        self._add_boxes(scene)

    def remove_box(self, name: str) -> None:
        """Take a box of the map out of the world, between two steps. KeyError when the map has none of that name."""
        if name not in self.box_names:
            raise KeyError(name)
        index = self.box_names.index(name)
        self.remove_body(name)
        self.box_names = self.box_names[:index] + self.box_names[index + 1 :]
        self.scene = replace(self.scene, boxes=self.scene.boxes[:index] + self.scene.boxes[index + 1 :])

    # -- bodies

    def add_bodies(self, bodies: Sequence[tuple[BodySpec, Pose]]) -> None:
        """Add bodies at true poses; takes effect at once, between two steps.

        Raises
        ------
        WorldError
            A name is taken.
        """
        rows = Rows(self.rows)  # a new one: snapshots keep the old
        for spec, _ in bodies:
            if spec.name in rows:
                raise WorldError(f'a body named "{spec.name}" is there already; names must be unique')
            rows[spec.name] = len(rows)
        _check_masses([spec for spec, _ in bodies])
        self.rows = rows
        self.specs += [spec for spec, _ in bodies]
        old = self.state
        n_old = len(old.pose)
        self._reallocate()
        for new_array, old_array in _fields(self.state, old):
            new_array[:n_old] = old_array
        self.state.uid[n_old:] = [spec.uid for spec, _ in bodies]
        self.bodies = join_bodies(
            self.bodies, build_bodies([spec for spec, _ in bodies]), moving_order(list(self.rows))
        )
        for row, (spec, pose) in enumerate(bodies, start=n_old):
            self._initialise(row, spec, pose)
        if self.dynamics is not None:
            self.dynamics.add([spec for spec, _ in bodies])
        elif any(spec.dynamics is not None for spec, _ in bodies):
            self.dynamics = Dynamics(self.specs)
        self._rebuilt()

    def remove_body(self, name: str) -> None:
        """Take a body out of the world; see `remove_bodies`."""
        self.remove_bodies([name])

    def remove_bodies(self, names: Sequence[str]) -> None:
        """Take bodies out of the world, between two steps; their queued commands are dropped, what they carry is let go.

        Raises
        ------
        KeyError
            Nothing has one of these names; then nothing is removed.
        """
        rows = sorted({self.rows[name] for name in names})
        gone = {self.specs[row].name for row in rows}
        for held in [h for h, how in self._held.items() if h in gone or how.carrier in gone]:
            self.detach(held)
        keep = np.delete(np.arange(len(self.specs)), rows)
        uids = {self.specs[row].uid for row in rows}
        self.specs = [self.specs[i] for i in keep]
        old = self.state
        self._reallocate()
        for new_array, old_array in _fields(self.state, old):
            new_array[:] = old_array[keep]
        self.bodies = keep_bodies(self.bodies, keep)
        if self.dynamics is not None:
            self.dynamics.keep(keep)
            self._forget_dynamics()
        self.rows = Rows((spec.name, i) for i, spec in enumerate(self.specs))
        self._queue = [c for c in self._queue if c[0] not in uids]
        for row in reversed(rows):  # from the last one on, so that those before it keep their numbers
            self._bulk = [(source, n, command.renumbered(row)) for source, n, command in self._bulk]
        self._rebuilt()

    def _reallocate(self) -> None:
        n = len(self.specs)
        self.state, self._block = allocate_state(n)
        self._buffers = [allocate_state(n) for _ in range(2)]
        self._changing = changing_bytes(n)
        for view, _ in self._buffers:
            for array, _ in _fields(view, view):
                array.flags.writeable = False
        self.bins = build_bins(n)

    def _forget_dynamics(self) -> None:
        if self.dynamics is not None and self.dynamics.is_empty:
            self.dynamics = None

    def _rebuilt(self) -> None:
        self._advance(PLACE)
        for sense in self._senses:
            sense.rebuild(self)
        for actor in self._actors:
            actor.rebuild(self)
        self._touch()
        self._publish()

    def _initialise(self, row: int, spec: BodySpec, pose: Pose) -> None:
        s, limits, error = self.state, spec.limits, spec.odometry_error.as_tuple()
        start = (
            pose.x,
            pose.y,
            wrap_angle(pose.th),
        )  # the step takes headings for wrapped: huge ones would send it anywhere
        s.pose[row] = start
        s.max_vel[row] = s.top_vel[row] = limits.max_speed.as_tuple()
        s.accel[row] = limits.accel.as_tuple()
        s.decel[row] = limits.decel.as_tuple()
        s.heading_speed[row] = limits.heading_speed
        s.drive[row] = int(spec.drive)
        s.motors[row] = 1
        s.mask[row] = spec.mask(spec.returns.mask)
        s.control[row] = spec.control
        s.bright[row] = spec.returns.laser
        low = spec.odometry_error_low
        s.err_lo[row] = [-e for e in error] if low is None else low.as_tuple()
        s.err_hi[row] = error
        mode = OdometryErrorMode.PERFECT if spec.perfect_odometry else self.odometry_error_mode
        set_error_mode(s, row, mode, self.seed_word)
        if spec.perfect_odometry:
            s.odom[row] = s.pose[row]
        else:
            s.odom_frame[row] = start

    def reshape(self, name: str, parts: tuple[Outline, ...]) -> None:
        """Give a body another outline; takes effect at once, between two steps or in the act phase."""
        row = self.rows[name]
        self.specs[row] = replace(self.specs[row], parts=parts)
        self.shapes += 1
        self.bodies = build_bodies(self.specs)
        if self.dynamics is not None:
            self.dynamics.change(row, self.specs[row])
        self._advance(PLACE)

    def set_dynamics(self, name: str, spec: DynamicsSpec | None) -> None:
        """Give a body another mass, or none: then it moves as it is told again. Takes effect at once, between two steps.

        Raises
        ------
        KeyError
            Nothing has that name.
        ModelError
            Its outline has no area.
        """
        row = self.rows[name]
        old = self.specs[row]
        new = replace(old, dynamics=spec)
        _check_masses([new])
        self.specs[row] = new
        if self.dynamics is not None:
            self.dynamics.change(row, new)
            self._forget_dynamics()
        elif spec is not None:
            self.dynamics = Dynamics(self.specs)
        if name in self.box_names:
            index, boxes = self.box_names.index(name), self.scene.boxes
            box = replace(boxes[index], dynamics=spec)
            self.scene = replace(self.scene, boxes=(*boxes[:index], box, *boxes[index + 1 :]))
        if self.state.mask[row]:  # a ghost stays one
            self.state.mask[row] = new.mask(new.returns.mask)
        if (old.dynamics is None) != (spec is None):
            self.state.control[row] = new.control
            self.state.vel[row] = 0.0
        self._touch()
        self._rebuilt()

    def attach(self, carrier: str, name: str) -> None:
        """Let one body carry another from now on, where it is.

        The carried body moves with its carrier and is by itself neither seen nor felt; `reshape` makes it part of the carrier.
        """
        base = Pose(*self.state.pose[self.rows[carrier]].tolist())
        hold = relative(base, Pose(*self.state.pose[self.rows[name]].tolist()))
        self._held[name] = Held(carrier, hold)
        self.state.mask[self.rows[name]] = 0
        self._touch()

    def detach(self, name: str) -> None:
        """Let a carried body go, where it is. Nothing happens if nobody carries it."""
        if self._held.pop(name, None) is not None:
            row = self.rows[name]
            self.state.mask[row] = self.specs[row].mask(self.specs[row].returns.mask)
            self._touch()

    @property
    def held(self) -> MappingProxyType[str, Held]:
        """The carried bodies by name."""
        return MappingProxyType(self._held)

    def held_outlines(self, name: str) -> tuple[Outline, ...]:
        """Outlines of a carried body in the frame of its carrier, m."""
        pose = self._held[name].pose
        parts = self.specs[self.rows[name]].parts
        return tuple(tuple(transform_point(pose, x, y) for x, y in part) for part in parts)

    def _carry(self) -> None:
        """Carried bodies follow."""
        for name, held in self._held.items():
            base = Pose(*self.state.pose[self.rows[held.carrier]].tolist())
            self.state.pose[self.rows[name]] = compose(base, held.pose)
        self._advance(PLACE)

    def is_free(self, spec: BodySpec, pose: Pose) -> bool:
        """Whether a body could stand at a pose without touching a solid thing."""
        return self.trial(spec)(pose)

    def trial(self, spec: BodySpec, without: str | None = None) -> Callable[[Pose], bool]:
        """`is_free` for many poses of one body: valid until something moves, comes or goes. `without`: a body that is not in its way."""
        n = len(self.specs)
        bodies = join_bodies(self.bodies, build_bodies([spec]), np.append(self.bodies.order, n))
        poses = np.concatenate([self.state.pose, np.zeros((1, 3))])
        bins = self.bins
        if without is not None or self.dynamics is not None:
            bins = bins._replace(classes=bins.classes.copy())
            pushed = bins.classes & int(Visible.PUSHED) != 0  # they take up room, too
            bins.classes[pushed] |= int(Visible.OBSTACLE)
        if without is not None:
            bins.classes[bins.slot[self.rows[without]]] = 0

        row, blocked = np.array([n]), np.zeros(1, np.int8)

        def free(pose: Pose) -> bool:
            poses[n] = pose
            # the bins hold the bodies that are there, and need not know the one on trial
            find_blocked(self.grid, poses, bodies, bins, row, blocked)
            return not blocked[0]

        return free

    def touching(self, rows: I8) -> NDArray[np.bool_]:
        """Which of the bodies in `rows`, (n,) int64, touch something solid where they are, (n,) bool."""
        found: I1 = np.zeros(len(rows), np.int8)
        find_blocked(self.grid, self.state.pose, self.bodies, self.bins, rows, found)
        touching: NDArray[np.bool_] = (found != 0) & (self.state.mask[rows] != 0)  # nobody feels a ghost
        return touching

    # -- commands

    def submit(self, name: str, command: Command, source: str = "api") -> None:
        """Queue a command for the next step.

        Commands of one step take effect ordered by body, then source, then order of arrival; so the order in which clients
        happen to be served does not matter. Unknown names raise KeyError.
        """
        self._sequence += 1
        self._queue.append((self.specs[self.rows[name]].uid, source, self._sequence, name, command))

    def submit_velocities(self, command: SetVelocities, source: str = "api") -> None:
        """Queue velocities of many bodies for the next step: the same as a `SetVelocity` for each of them."""
        self._sequence += 1
        self._bulk.append((source, self._sequence, command))

    @property
    def is_pending(self) -> bool:
        """Whether commands wait for the next step."""
        return bool(self._queue or self._bulk)

    def _drain(self) -> None:
        if self._bulk:
            self._drain_bulk()
        if not self._queue:
            return
        queue, self._queue = self._queue, []
        queue.sort(key=lambda item: item[:3])
        self._touch()
        for _, _, _, name, command in queue:
            command.apply(self.state, self.rows[name])

    def _drain_bulk(self) -> None:
        """Apply what came for many bodies at once; for bodies that have other commands too, put it in its place among those."""
        bulk, self._bulk = sorted(self._bulk, key=lambda item: item[:2]), []
        alone = {self.rows[name]: (uid, name) for uid, _, _, name, _ in self._queue}
        rows = np.array(list(alone), np.int64)
        for source, sequence, command in bulk:
            command.apply(self.state, rows)
            for index in np.flatnonzero(np.isin(command.rows, rows)) if alone else ():
                uid, name = alone[int(command.rows[index])]
                self._queue.append((uid, source, sequence, name, command.for_body(int(index))))

    # -- time

    def step(self, n: int = 1) -> Snapshot:
        """Advance the world by `n` steps; see `botyard.engine.step` for what happens in one."""
        for _ in range(n):
            self._drain()
            if self.dynamics is None:
                self._advance(MOVE | FOLLOW)
            else:
                self.dynamics.begin(self)
                self._advance(MOVE)
                self.dynamics.step(self)
                self._advance(FOLLOW)
            self.clock.tick += 1
            if self._held:
                self._carry()
            for actor in self._actors:
                actor.act(self, self.clock.dt)
            for sense in self._senses:
                sense.sense(self)
            self._publish()
        return self.snapshot

    def _advance(self, parts: int) -> None:
        clock = self.clock
        advance(self.state, self.bodies, self.bins, self.grid, clock.dt, self.seed_word, clock.tick, parts)

    def settle(self) -> Snapshot:
        """Apply queued commands and look again, without letting time pass: for placing things before the first step, and while paused.

        No actor acts: grippers, batteries and joints stay as they are.
        """
        self._drain()
        self._advance(PLACE)
        for sense in self._senses:
            sense.sense(self)
        self._publish()
        return self.snapshot

    def _touch(self) -> None:
        """Something was changed that a step does not change: both buffers of the snapshots need a whole copy."""
        self._stale = len(self._buffers)

    def _publish(self) -> None:
        view, block = self._buffers[0]
        if self._stale:
            block[:] = self._block
            self._stale -= 1
        else:
            block[: self._changing] = self._block[: self._changing]
        self._buffers.reverse()
        self.snapshot = Snapshot(self.clock.tick, self.clock.time_us, MappingProxyType(self.rows), view)


def _check_masses(specs: Sequence[BodySpec]) -> None:
    """Whether bodies with mass can be moved; asked before anything is changed.

    Raises
    ------
    ModelError
        One has no area.
    """
    for spec in specs:
        if spec.dynamics is not None:
            area_moments(spec.parts)


def _fields(a: State, b: State) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The arrays of two states, field by field."""
    for name in State._fields:
        yield getattr(a, name), getattr(b, name)
