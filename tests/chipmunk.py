"""Bodies with mass, moved by Chipmunk 2D (pymunk): the reference for our own contacts
in tests and in `bench.masses`.

botyard used it before it had kernels for contacts. Every body is an object here, and
the state inside Chipmunk cannot be saved.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.commands import MAX_COORDINATE
from botyard.engine.kernels.contactsectors import SECTORS
from botyard.engine.layout import Control, Grid
from botyard.geometry import Pose, relative
from botyard.geometry import log as logarithm
from botyard.model.dynamics import SUBSTEP, DynamicsSpec, area_moments
from botyard.model.obstacles import Visible
from botyard.units import wrap_angle
from tests.chipmunk_contacts import ContactSolver, Touch, Wall

if TYPE_CHECKING:
    from botyard.engine.simulation import Engine

log = logging.getLogger("botyard.engine")
MOST_SUBSTEPS: Final = 1000
SQUEEZE: Final = 0.003
"""A mover that overlaps something with mass deeper than this, m, and than it comes in
one small step, has jammed it.
"""
MARGIN: Final = 1.0
"""Walls are looked up this far around a body with mass, m."""
STALLED: Final = 0.1
"""A driven body is stalled when it goes slower than this part of what its motors want.
"""
DRAGGED: Final = 1.0
"""What a hand moves farther than this in a step, m, it puts there; else it drags it."""
CREEP: Final = 1e-7
"""A body that moves less in a step, m and rad, is at rest."""
_SOLID: Final = int(Visible.OBSTACLE | Visible.PUSHED)
# Keep plain numbers, because reading members of enumerations is slow.
_NONE, _MOTORS, _FORCE, _POSE, _TWIST = map(
    int,
    Control,
)
_NOWHERE: Final = (math.inf, math.inf, -math.inf, -math.inf)


@dataclass(slots=True, eq=False)
class _Mass:
    """A body with mass. The fields below the empty line hold for the current step."""

    name: str
    row: int
    spec: DynamicsSpec
    inertia: float
    radius: float
    inner: float
    pose: tuple[float, ...] = ()
    vel: tuple[float, ...] = ()
    resting: bool = False
    wrench: tuple[float, float, float] = (0.0, 0.0, 0.0)
    covered: tuple[float, float, float, float] = _NOWHERE

    control: int = 0
    demand: tuple[float, ...] = (0.0, 0.0, 0.0)
    planned: tuple[float, ...] = (0.0, 0.0, 0.0)
    awake: bool = False
    way: float = 0.0


@dataclass(slots=True, eq=False)
class _Mover:
    """A body without mass that is near a body with mass in this step."""

    row: int
    name: str
    begin: Pose
    limit: float = 0.0
    depth: float = 0.0
    fresh: bool = False
    jammed: int | None = None
    touches: tuple[Touch, ...] = ()


class ChipmunkDynamics:
    """Moves all bodies with mass of an engine."""

    def __init__(self) -> None:
        self._solver = ContactSolver()
        self._masses: dict[str, _Mass] = {}
        self._movers: dict[str, tuple[tuple[float, ...], float]] = {}
        """Pose and depth of those that the solver knows."""
        self._before = np.zeros((0, 3))
        self._last = np.zeros((0, 3))
        """Poses after the others have moved, in the last step."""
        self._rows = np.zeros(0, np.int64)
        self._active: list[_Mass] = []
        """Those that move in this step: not in a hand or a gripper, and no ghosts."""

    @classmethod
    def take_over(cls, engine: Engine) -> None:
        """Let Chipmunk move the bodies with mass of an engine from now on.

        Afterwards no body may be added or removed.
        """
        dynamics = cls()
        dynamics._engine = engine
        dynamics.rebuild(engine)
        engine.dynamics = dynamics  # type: ignore[assignment]

    def wrench(self, name: str) -> tuple[float, float, float]:
        """Return the net force and torque on a body in the last step, in world axes, N,
        N, N·m.

        It is zero for a body without mass.
        """
        mass = self._masses.get(name)
        return (0.0, 0.0, 0.0) if mass is None else mass.wrench

    def inertia(self, name: str) -> float:
        """Return the moment of inertia of a body about its centre of mass, kg·m².

        It is zero for a body without mass.
        """
        mass = self._masses.get(name)
        return 0.0 if mass is None else mass.inertia

    def mass_and_wrench(
        self, name: str
    ) -> tuple[float, float, tuple[float, float, float]]:
        """Return mass, kg, moment of inertia, kg·m², and wrench of a body.

        They are zero for a body without mass.
        """
        mass = self._masses.get(name)
        return (
            (0.0, 0.0, (0.0, 0.0, 0.0))
            if mass is None
            else (mass.spec.mass, mass.inertia, mass.wrench)
        )

    # -- population

    def rebuild(self, engine: Engine) -> None:
        """Take over bodies that were added, removed or changed."""
        wanted = {
            spec.name: row
            for row, spec in enumerate(engine.specs)
            if spec.dynamics is not None
        }
        for name in [*self._movers, *self._masses]:
            self._take_out(name)
        old, self._masses = self._masses, {}
        for name, row in wanted.items():
            body = engine.specs[row]
            spec = body.dynamics
            assert spec is not None
            moments = area_moments(body.parts)
            size = float(engine.bodies.radius[row]), float(engine.bodies.inner[row])
            mass = _Mass(
                name, row, spec, spec.inertia or spec.mass * moments.second, *size
            )
            self._masses[name] = mass
            if name in old:
                mass.wrench = old[name].wrench

        self._rows = np.array([m.row for m in self._masses.values()], np.int64)
        self._last = np.zeros((0, 3))

    def reshaped(self, name: str) -> None:
        """Take over the new outline of a body."""
        self._take_out(name)

    def forget_walls(self) -> None:
        """Drop the walls after a change of the map."""
        for mass in self._masses.values():
            mass.covered = _NOWHERE
            mass.resting = False

    def _take_out(self, name: str) -> None:
        self._movers.pop(name, None)
        if name in self._solver:
            self._solver.remove(name)

    def _put_in(self, engine: Engine, mass: _Mass) -> None:
        body, spec = engine.specs[mass.row], mass.spec
        moments = area_moments(body.parts)
        center = spec.center
        if center is None:
            center = (0.0, 0.0) if body.kinematics.drives else moments.center
        pose = Pose(*engine.state.pose[mass.row].tolist())
        self._solver.add_mass(
            mass.name, body.parts, spec, mass.inertia, center, moments.reach, pose
        )
        mass.resting = False

    # -- step

    def begin(self, *_: object) -> None:
        """Take over changes by commands, before the other bodies move."""
        engine = self._engine
        state, rows = engine.state, self._rows
        self._before = state.pose.copy()
        self._active = []
        solid = ((state.mask[rows] & _SOLID) != 0) & (state.held[rows] == 0)
        told = zip(
            self._masses.values(),
            solid.tolist(),
            state.pose[rows].tolist(),
            state.vel[rows].tolist(),
            state.control[rows].tolist(),
            state.demand[rows].tolist(),
            strict=True,
        )
        for mass, is_free, at, speed, control, demand in told:
            # The body is carried by a hand or a gripper, or it is a ghost.
            if not is_free:
                if mass.name not in self._movers:
                    self._take_out(mass.name)
                if state.held[mass.row]:
                    state.vel[mass.row] = 0.0
                continue

            self._active.append(mass)
            if mass.name in self._movers or mass.name not in self._solver:
                self._take_out(mass.name)
                self._put_in(engine, mass)
                mass.pose = ()

            pose, vel = tuple(at), tuple(speed)
            if pose != mass.pose:
                # The pose has changed outside the solver: a command has placed the body.
                if mass.pose:
                    state.vel[mass.row] = vel = (0.0, 0.0, 0.0)
                self._solver.place(mass.name, Pose(*pose))
                mass.resting = False

            if vel != mass.vel or not mass.pose:
                self._solver.move(mass.name, *_turned(vel, pose[2]))
                mass.resting = False

            mass.pose, mass.vel, mass.control, mass.demand = (
                pose,
                vel,
                control,
                tuple(demand),
            )

    def step(self, *_: object) -> None:
        """Move the bodies with mass after the others have moved.

        Movers that could not push them are set back.
        """
        engine = self._engine
        state, dt, active = engine.state, engine.clock.dt, self._active
        if not active:
            return
        for mass, planned in zip(
            self._masses.values(), state.vel[self._rows].tolist(), strict=True
        ):
            mass.planned = tuple(planned)

        for mass in active:
            mass.awake = not self._may_rest(mass)
            mass.way = self._way(mass, dt) if mass.awake else 0.0

        awake = [m for m in active if m.awake]
        movers = self._near(engine, awake)
        if not awake and not any(m.limit or m.fresh for m in movers):
            for mass in active:
                mass.wrench = mass.vel = (0.0, 0.0, 0.0)
                if any(mass.planned):
                    state.vel[mass.row] = 0.0

            return

        count = self._substeps(dt, active, movers)
        self._walls(engine, awake)
        h = dt / count
        momenta = [self._solver.momentum(m.name) for m in active]
        each = [m for m in awake if self._prepare(m)]
        pushing = [m for m in movers if m.limit]
        for mover in pushing:
            mover.limit = SQUEEZE + 1.5 * mover.limit * h
        for k in range(count):
            for mass in each:
                self._drive(mass, h)
            before = [self._solver.pose(m.name) for m in pushing]
            self._solver.step(h)
            for mover, was in zip(pushing, before, strict=True):
                self._feel(mover, was, k)
            pushing = [m for m in pushing if m.jammed is None]

        for mover in movers:
            self._settle(engine, mover, count)
        for mass, momentum in zip(active, momenta, strict=True):
            self._write(engine, mass, momentum)

    @staticmethod
    def _may_rest(mass: _Mass) -> bool:
        """Return whether a body is at rest and no mover pushes it."""
        if not mass.resting or mass.control == _POSE:
            return False
        return not any(mass.planned if mass.control == _MOTORS else mass.demand)

    def _near(self, engine: Engine, awake: list[_Mass]) -> list[_Mover]:
        """Return the movers near bodies with mass, and give their motion to the solver."""
        state = engine.state
        away = state.pose - self._before
        same = self._last.shape == state.pose.shape
        moved: NDArray[np.bool_] = (
            (state.pose != self._last).any(axis=1)
            if same
            else np.ones(len(away), np.bool_)
        )
        self._last = state.pose.copy()
        if not awake and not moved.any():
            return []
        others: NDArray[np.bool_] = ((state.mask & _SOLID) != 0) & (
            (state.control == _NONE) | (state.held != 0)
        )
        if not awake:
            others &= moved
        rows = np.flatnonzero(others)
        masses = self._active if len(rows) and moved[rows].any() else awake
        at = np.array([m.pose[:2] for m in masses])
        reach = np.array([m.radius + m.way for m in masses])[:, None]
        way = np.hypot(away[rows, 0], away[rows, 1])
        reach = reach + (engine.bodies.radius[rows] + way + 0.1)[None, :]
        near = (
            ((state.pose[rows, :2][None] - at[:, None]) ** 2).sum(axis=2) < reach**2
        ).any(axis=0)
        names = {engine.specs[row].name: row for row in rows[near].tolist()}
        for name in [n for n in self._movers if n not in names]:
            self._take_out(name)
        return [self._mover(engine, name, row) for name, row in names.items()]

    def _mover(self, engine: Engine, name: str, row: int) -> _Mover:
        begin, end = Pose(*self._before[row].tolist()), engine.state.pose[row].tolist()
        dt, fresh = engine.clock.dt, True
        known, depth = self._movers.get(name, (begin, 0.0))
        if name not in self._movers:
            # The body has mass, but is carried by hand: the solver must not move it.
            if name in self._solver:
                self._solver.remove(name)
            self._solver.add_mover(name, engine.specs[row].parts, begin)
        elif engine.state.held[row] and math.dist(known[:2], end[:2]) < DRAGGED:
            # A body dragged by hand jumps in each step, so its motion starts at the last known
            # pose.
            begin = Pose(*known)
        elif known != begin:
            self._solver.place(name, begin)
        else:
            fresh = False

        self._movers[name] = tuple(end), depth
        vx, vy, w = (
            (end[0] - begin.x) / dt,
            (end[1] - begin.y) / dt,
            wrap_angle(end[2] - begin.th) / dt,
        )
        self._solver.move(name, vx, vy, w)
        speed = math.hypot(vx, vy) + abs(w) * float(engine.bodies.radius[row])
        return _Mover(row, name, begin, limit=speed, depth=depth, fresh=fresh)

    def _substeps(self, dt: float, active: list[_Mass], movers: list[_Mover]) -> int:
        """Return the number of substeps: in none may a body jump over another one."""
        count = math.ceil(dt / SUBSTEP - 1e-9)
        way = max((m.limit * dt for m in movers), default=0.0)
        way = max(way, *(m.way for m in active), 0.0)
        thin = min(m.inner for m in active)
        return max(1, min(max(count, math.ceil(way / thin)), MOST_SUBSTEPS))

    @staticmethod
    def _way(mass: _Mass, dt: float) -> float:
        """Return the largest distance that a body may move in this step unless pushed,
        m.
        """
        way = math.hypot(mass.vel[0], mass.vel[1]) * dt
        a, b, _ = mass.demand
        if mass.control == _MOTORS:
            way += math.hypot(mass.planned[0], mass.planned[1]) * dt
        elif mass.control == _FORCE:
            way += math.hypot(a, b) / mass.spec.mass * dt * dt
        elif mass.control == _TWIST:
            way += math.hypot(a, b) * dt
        elif mass.control == _POSE:
            way += 2.0 * math.dist((a, b), mass.pose[:2])

        return way

    def _walls(self, engine: Engine, awake: list[_Mass]) -> None:
        """Give the walls around bodies with mass to the solver."""
        stale = False
        for mass in awake:
            x, y, _ = mass.pose
            reach = mass.radius + mass.way + 0.1
            c = mass.covered
            if (
                x - reach < c[0]
                or y - reach < c[1]
                or x + reach > c[2]
                or y + reach > c[3]
            ):
                reach += MARGIN
                mass.covered = (x - reach, y - reach, x + reach, y + reach)
                stale = True

        if stale:
            walls: dict[Wall, None] = {}
            for mass in self._masses.values():
                walls.update(dict.fromkeys(walls_within(engine.grid, mass.covered)))
            self._solver.set_walls(walls)

    def _prepare(self, mass: _Mass) -> bool:
        """Set the quantities that are constant during the step.

        Returns whether substeps have work to do.
        """
        spec = mass.spec
        if mass.control != _MOTORS:
            self._solver.roll(mass.name, 0.0, 0.0, 0.0, spec.floor_friction)
        busy = mass.control != _FORCE or any(mass.demand)
        return busy or spec.linear_damping > 0.0 or spec.angular_damping > 0.0

    def _drive(self, mass: _Mass, h: float) -> None:
        """Apply forces to a body for one substep."""
        spec, solver, control, demand = (
            mass.spec,
            self._solver,
            mass.control,
            mass.demand,
        )
        if control == _MOTORS:
            solver.roll(
                mass.name,
                *_turned(mass.planned, solver.pose(mass.name).th),
                spec.traction,
            )
        elif control == _FORCE:
            solver.push(mass.name, *demand)
        elif control == _TWIST:
            solver.move(mass.name, *demand)
        elif control == _POSE:
            pose, (vx, vy, w) = solver.pose(mass.name), solver.velocity(mass.name)
            c = spec.controller
            x, y, th = (
                demand[0] - pose.x,
                demand[1] - pose.y,
                wrap_angle(demand[2] - pose.th),
            )
            if c.force:
                fx, fy = (
                    c.linear.force(x, vx, spec.mass, h),
                    c.linear.force(y, vy, spec.mass, h),
                )
                solver.push(mass.name, fx, fy, c.angular.force(th, w, mass.inertia, h))
            else:
                solver.move(
                    mass.name,
                    c.linear.speed(x, h),
                    c.linear.speed(y, h),
                    c.angular.speed(th, h),
                )

        if spec.linear_damping > 0.0 or spec.angular_damping > 0.0:
            solver.damp(
                mass.name,
                (1.0 - spec.linear_damping) ** h,
                (1.0 - spec.angular_damping) ** h,
            )

    def _feel(self, mover: _Mover, was: Pose, k: int) -> None:
        """Stop a mover where the bodies that it pushes are stuck."""
        mover.touches = tuple(self._solver.touches(mover.name))
        depth = max((t.depth for t in mover.touches if t.speed > 0.0), default=0.0)
        if depth > mover.limit and depth > mover.depth:
            mover.jammed = k
            self._solver.place(mover.name, was)
            self._solver.move(mover.name, 0.0, 0.0, 0.0)
        else:
            mover.depth = depth

    def _settle(self, engine: Engine, mover: _Mover, count: int) -> None:
        """Write the new state of a mover."""
        state, row = engine.state, mover.row
        if mover.jammed is not None:
            pose = self._solver.pose(mover.name)
            state.pose[row] = pose.x, pose.y, wrap_angle(pose.th)
            share = mover.jammed / count
            state.disp[row] *= share
            state.spin[row] *= share
            state.vel[row, :2] = 0.0
            state.stall[row] = 1

        self._movers[mover.name] = tuple(state.pose[row].tolist()), mover.depth
        if mover.touches and engine.bodies.feels[row]:
            state.contact[row] |= _sectors(
                mover.touches, Pose(*state.pose[row].tolist())
            )

    def _write(
        self, engine: Engine, mass: _Mass, before: tuple[float, float, float]
    ) -> None:
        """Write the new state of a body with mass."""
        state, row, dt, solver = engine.state, mass.row, engine.clock.dt, self._solver
        found, old = solver.pose(mass.name), Pose(*mass.pose)
        # The negated comparison is also true for NaN.
        if not max(abs(found.x), abs(found.y)) <= MAX_COORDINATE:
            log.warning(
                "%s was thrown out of the world; it is put back at rest",
                mass.name,
            )
            solver.place(mass.name, old)
            solver.move(mass.name, 0.0, 0.0, 0.0)
            found = old

        moved = math.dist(found[:2], old[:2]) + abs(wrap_angle(found.th - old.th))
        mass.resting = solver.still(mass.name) and moved < CREEP
        pose = Pose(found.x, found.y, wrap_angle(found.th))
        vx, vy, w = solver.velocity(mass.name)
        now = solver.momentum(mass.name)
        mass.wrench = (
            (now[0] - before[0]) / dt,
            (now[1] - before[1]) / dt,
            (now[2] - before[2]) / dt,
        )
        vel = _turned((vx, vy, w), -pose.th)
        state.pose[row], state.vel[row] = pose, vel
        mass.pose, mass.vel = tuple(pose), vel
        state.stall[row] = 0
        state.contact[row] = 0
        if state.drive[row]:
            state.disp[row] = logarithm(relative(old, pose))
            if mass.control == _MOTORS:
                wanted = math.hypot(mass.planned[0], mass.planned[1])
                state.stall[row] = int(
                    wanted > 1e-3 and math.hypot(vx, vy) < STALLED * wanted
                )

            if engine.bodies.feels[row]:
                state.contact[row] = _sectors(tuple(solver.touches(mass.name)), pose)


def _turned(vector: tuple[float, ...], angle: float) -> tuple[float, float, float]:
    c, s = math.cos(angle), math.sin(angle)
    return c * vector[0] - s * vector[1], s * vector[0] + c * vector[1], vector[2]


def _sectors(touches: tuple[Touch, ...], pose: Pose) -> np.uint64:
    """Return the bearings of touches in the form of `State.contact`."""
    bits = 0
    for touch in touches:
        bearing = wrap_angle(math.atan2(touch.y - pose.y, touch.x - pose.x) - pose.th)
        bits |= 1 << (math.floor(bearing / (2.0 * math.pi) * SECTORS) % SECTORS)

    return np.uint64(bits)


def walls_within(grid: Grid, box: tuple[float, float, float, float]) -> list[Wall]:
    """Return the solid segments of all cells that a rectangle touches, each once.

    Segments are (x1, y1, x2, y2), m; the rectangle is (least x, y, greatest x, y).
    """
    if grid.nx == 0 or not box[0] < box[2]:
        return []
    i0, j0 = (
        max(0, math.floor((v - o) / grid.h))
        for v, o in zip(box[:2], (grid.x0, grid.y0), strict=True)
    )
    i1, j1 = (
        min(n - 1, math.floor((v - o) / grid.h))
        for v, o, n in zip(box[2:], (grid.x0, grid.y0), (grid.nx, grid.ny), strict=True)
    )
    if i1 < i0:
        return []
    runs = [
        np.arange(grid.start[j * grid.nx + i0], grid.start[j * grid.nx + i1 + 1])
        for j in range(j0, j1 + 1)
    ]
    entries = np.concatenate(runs) if runs else np.zeros(0, np.int64)
    entries = entries[(grid.mask[entries] & int(Visible.OBSTACLE)) != 0]
    if not len(entries):
        return []
    seg = np.unique(grid.seg[entries], axis=0) * grid.h
    seg[:, :2] += (grid.x0, grid.y0)
    seg[:, 2:] += seg[:, :2]
    return [(a, b, c, d) for a, b, c, d in seg.tolist()]


__all__ = ["ChipmunkDynamics"]
