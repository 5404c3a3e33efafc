"""Bodies in the world's arrays: their outlines, and the bodies that they carry."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from botyard.api.arguments import Rows
from botyard.api.revisions import Revisions, Subject
from botyard.engine.bodyspec import BodySpec
from botyard.engine.build import (
    build_bins,
    build_bodies,
    join_bodies,
    outline_of,
    reshape_bodies,
)
from botyard.engine.clock import Clock
from botyard.engine.dynamics import Dynamics
from botyard.engine.kernels.collide import find_blocked
from botyard.engine.kernels.packed import WorldPack, with_bodies
from botyard.engine.layout import FOLLOWER, I1, I8, LEADER, World
from botyard.engine.rng import seed_word
from botyard.engine.sharedstep import SharedStep
from botyard.engine.step import FOLLOW, MOVE, PLACE, advance
from botyard.engine.store import StateStore
from botyard.engine.tables import NOBODY
from botyard.engine.wallgrid import build_grid
from botyard.geometry import Outline, Pose, relative
from botyard.model.obstacles import Visible
from botyard.model.scene import Scene
from botyard.native.kinds import Pack
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine
from botyard.units import TWO_PI


class CarryingBodies:
    """Arrays of the world, outlines of its bodies, and which body carries which.

    Parameters
    ----------
    scene : Scene
        Static world.
    seed, step_us : int
        Seed of all random draws, and simulated time of a step, µs.
    """

    def __init__(self, scene: Scene, seed: int, step_us: int, begin: int) -> None:
        self.feed = Revisions()
        """Counters of rare changes of the world, by subject."""
        self.scene = scene
        self.seed = seed
        self.seed_word = seed_word(seed)
        self.clock = Clock(step_us, begin)
        self.grid = build_grid(scene)
        self.specs: list[BodySpec] = []
        self.rows = Rows()
        self._store = StateStore()
        self._pack = WorldPack()
        self.state = self._store.state
        self.bodies = build_bodies(())
        self.bins = build_bins(0)
        self._carried: I8 | None = None
        self.dynamics: Dynamics | None = None
        """Dynamics of bodies with mass; None while there are none."""
        self._shared: SharedStep | None = None

    def _specs_as_drawn(self) -> list[BodySpec]:
        """Return descriptions of all bodies with their present outlines.

        Grippers change outlines, and carried bodies are a part of them.
        """
        return [self._as_drawn(row) for row in range(len(self.specs))]

    def _as_drawn(self, row: int) -> BodySpec:
        return replace(self.specs[row], parts=self.outline(row))

    def outline(self, row: int) -> tuple[Outline, ...]:
        """Return the present polygons of a body in its frame, m.

        The polygons of carried bodies are included.

        Parameters
        ----------
        row : int
            Row of the body.

        Returns
        -------
        tuple of outlines
            Each is a polygon of corners (x, y), m.
        """
        return outline_of(self.bodies, row)

    def own_outline(self, row: int) -> tuple[Outline, ...]:
        """Return `outline` without the polygons of carried bodies, which come last.

        Parameters
        ----------
        row : int
            Row of the body.
        """
        return self.outline(row)[: len(self.specs[row].parts)]

    def reshape(self, name: str, parts: tuple[Outline, ...]) -> None:
        """Replace the outline of a body at once, between two steps or in the act phase.

        Parameters
        ----------
        name : str
            Name of the body.
        parts : tuple of outlines
            New polygons in the frame of the body, m. Polygons of carried bodies are
            added.

        Raises
        ------
        KeyError
            There is no body of that name.
        """
        self.reshape_many({self.rows[name]: parts})

    def reshape_many(self, outlines: Mapping[int, tuple[Outline, ...]]) -> None:
        """Replace the outlines of many bodies, by row; see `reshape`.

        Parameters
        ----------
        outlines : mapping of int to tuple of outlines
            New polygons by row of the body, in its frame, m.
        """
        for row, parts in outlines.items():
            self.specs[row] = replace(self.specs[row], parts=parts)
        carriers = self._draw(outlines)
        self._redrawn(
            np.unique(np.concatenate([np.array(list(outlines), np.int64), carriers]))
        )

    def redrawn(self, rows: I8) -> None:
        """Update bodies after a device has written corners and `Bodies.radius`.

        Devices do so in the act phase: a gripper moves its paddles, for example.

        Parameters
        ----------
        rows : (n,) int64
            Rows of the changed bodies. Their carriers are updated with them.
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
        # A body with more parts than its own shape has was drawn together with a
        # carried body.
        own = np.array([len(spec.parts) for spec in self.specs], np.int64)
        carriers = np.unique(self.state.carrier[self.state.carrier != NOBODY])
        self._carry_others(
            np.union1d(carriers, np.flatnonzero(np.diff(self.bodies.part_start) != own))
        )

    def _carry_others(self, carriers: I8) -> None:
        """Update the outlines of carriers whose carried bodies have changed."""
        self._carried = None
        self._touch()
        if len(carriers):
            self._draw({row: self.own_outline(row) for row in carriers.tolist()})
            self._redrawn(carriers)

    def _draw(self, own: Mapping[int, tuple[Outline, ...]]) -> I8:
        """Set the outlines of these bodies and of their carriers, with all carried bodies.

        A body's own polygons precede the polygons of carried bodies.

        Parameters
        ----------
        own : mapping of int to tuple of outlines
            A body's own polygons by row, m.

        Returns
        -------
        (k,) int64
            Rows of the carriers.
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
        """Update the outlines of the carriers of these bodies, and return the carriers' rows."""
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

    def attach(self, carrier: str, name: str) -> None:
        """Attach one body to another at its present place.

        The attached body moves with its carrier, and becomes a part of its outline.
        Until its release, the attached body does not collide separately, and sensors
        see it only as a part of its carrier.

        Parameters
        ----------
        carrier : str
            Name of the body that carries. It must not be carried itself.
        name : str
            Name of the body to attach. It must carry nothing.

        Raises
        ------
        KeyError
            One of the bodies does not exist.
        """
        self.attach_many([(self.rows[carrier], self.rows[name])])

    def attach_many(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Attach several bodies in one call; see `attach`.

        Parameters
        ----------
        pairs : sequence of (int, int)
            Row of the carrier, and row of the attached body.
        """
        s = self.state
        for carrier, row in pairs:
            s.hold[row] = relative(
                Pose(*s.pose[carrier].tolist()), Pose(*s.pose[row].tolist())
            )
            s.carrier[row] = carrier
            # The body is a part of its carrier's outline: it must not collide twice.
            s.mask[row] = 0

        self._carry_others(
            np.unique(np.array([carrier for carrier, _ in pairs], np.int64))
        )

    def detach(self, name: str) -> None:
        """Release a carried body at its present place.

        The call does nothing if the body is not carried.

        Parameters
        ----------
        name : str
            Name of the carried body. It gets the visibility of its description again.

        Raises
        ------
        KeyError
            There is no body of that name.
        """
        row = self.rows[name]
        if self.state.carrier[row] != NOBODY:
            self._let_go(np.array([row]))

    def _let_go(self, rows: I8) -> None:
        """Release the carried bodies in `rows`, (n,) int64."""
        if not len(rows):
            return
        carriers = np.unique(self.state.carrier[rows])
        for row in rows.tolist():
            self.state.carrier[row] = NOBODY
            # Restores the visibility of the description, which `attach` has removed.
            self.state.mask[row] = self.specs[row].mask(self.specs[row].returns.mask)

        self._carry_others(carriers)

    def carrier_of(self, name: str) -> str | None:
        """Return the name of a body's carrier; None if the body is not carried or does
        not exist.

        Parameters
        ----------
        name : str
            Name of the body.
        """
        row = self.rows.get(name)
        carrier = NOBODY if row is None else int(self.state.carrier[row])
        return None if carrier == NOBODY else self.specs[carrier].name

    def carried_by(self, row: int) -> list[int]:
        """Return the rows of the bodies that a body carries.

        Parameters
        ----------
        row : int
            Row of the carrier.
        """
        carried: list[int] = np.flatnonzero(self.state.carrier == row).tolist()
        return carried

    def carried_outlines(self, row: int) -> tuple[Outline, ...]:
        """Return the outlines of a carried body in the frame of its carrier, m.

        Parameters
        ----------
        row : int
            Row of the carried body.
        """
        x0, y0, th = self.state.hold[row].tolist()
        c, s = cosine_sine(th)
        return tuple(
            tuple((x0 + c * x - s * y, y0 + s * x + c * y) for x, y in part)
            for part in self.outline(row)
        )

    def _carry(self) -> None:
        """Move carried bodies with their carriers."""
        s = self.state
        # Search only after a change, because each step needs these rows.
        if self._carried is None:
            self._carried = np.flatnonzero(s.carrier != NOBODY)
        rows = self._carried
        if not len(rows):
            return
        base, hold = s.pose[s.carrier[rows]], s.hold[rows]
        c, sn = elementwise.cosine_sine(base[:, 2])
        s.pose[rows, 0] = base[:, 0] + c * hold[:, 0] - sn * hold[:, 1]
        s.pose[rows, 1] = base[:, 1] + sn * hold[:, 0] + c * hold[:, 1]

        # Wrap the heading into (−π, π].
        s.pose[rows, 2] = math.pi - np.remainder(
            math.pi - base[:, 2] - hold[:, 2], TWO_PI
        )
        self._advance(PLACE)

    def is_free(self, spec: BodySpec, pose: Pose) -> bool:
        """Return whether a body could be at a pose without touching anything solid.

        Parameters
        ----------
        spec : BodySpec
            Body to test; it need not be in the world.
        pose : Pose
            True pose to test: m, m, rad.
        """
        return self.trial(spec)(pose)

    def trial(
        self, spec: BodySpec, without: Collection[str] = ()
    ) -> Callable[[Pose], bool]:
        """Return a function that tests whether one body could be at a pose.

        The test is valid until a body moves, is added or is removed.

        Parameters
        ----------
        spec : BodySpec
            Body to test; it need not be in the world.
        without : collection of str
            Names of bodies that the test ignores, for example the body itself.

        Returns
        -------
        callable
            Takes a true pose. Returns whether the body touches nothing solid there,
            bodies with mass included.

        Raises
        ------
        KeyError
            A body in `without` does not exist.
        """
        n = len(self.specs)
        bodies = join_bodies(
            # The tested body gets the row after all others.
            self.bodies,
            build_bodies([spec]),
            np.append(self.bodies.order, n),
        )
        poses = np.concatenate([self.state.pose, np.zeros((1, 3))])
        bins = self.bins
        if without or self.dynamics is not None:
            # Copy the classes: a trial must not change the world itself.
            bins = bins._replace(classes=bins.classes.copy())
            # Bodies with mass also take up room.
            pushed = bins.classes & int(Visible.PUSHED) != 0
            bins.classes[pushed] |= int(Visible.OBSTACLE)

        if without:
            # Class 0 makes a body invisible to the test.
            bins.classes[bins.slot[[self.rows[name] for name in without]]] = 0

        world = with_bodies(self.packed, bodies, bins)
        row, blocked = np.array([n]), np.zeros(1, np.int8)

        def free(pose: Pose) -> bool:
            poses[n] = pose
            # The bins hold the bodies of the world; the tested body need not be among
            # them.
            find_blocked(world, poses, row, blocked)
            return not blocked[0]

        return free

    def touching(self, rows: I8) -> NDArray[np.bool_]:
        """Return whether each body touches something solid.

        The bodies of a train do not touch each other: a trailer may lie on its robot.

        Parameters
        ----------
        rows : (n,) int64
            Rows of the bodies.

        Returns
        -------
        (n,) bool
            False for a ghost, whatever is at its place.
        """
        found: I1 = np.zeros(len(rows), np.int8)
        find_blocked(self.packed, self.state.pose, rows, found)
        for i in np.flatnonzero(found).tolist() if len(self.bodies.train) else ():
            classes = self.bins.classes.copy()
            classes[self.bins.slot[self._train_of(int(rows[i]))]] = 0
            world = with_bodies(
                self.packed, self.bodies, self.bins._replace(classes=classes)
            )
            find_blocked(world, self.state.pose, rows[i : i + 1], found[i : i + 1])
        # A ghost (a body that collides with nothing) touches nothing.
        touching: NDArray[np.bool_] = (found != 0) & (self.state.mask[rows] != 0)
        return touching

    def _train_of(self, row: int) -> list[int]:
        """Return the rows of the train that a body belongs to, from the front."""
        train = self.bodies.train
        if not len(train):
            return [row]
        while train[row, LEADER] != NOBODY:
            row = int(train[row, LEADER])
        found = [row]
        while train[found[-1], FOLLOWER] != NOBODY:
            found.append(int(train[found[-1], FOLLOWER]))
        return found

    def _advance(self, parts: int, count: int = 1) -> None:
        clock, shared = self.clock, self._shared
        # A world with masses calls `MOVE` and `FOLLOW` separately. The motion of masses
        # between them takes most of the time, so threads would save little.
        if shared is None or parts != MOVE | FOLLOW or not shared.suits(self.bodies):
            advance(self.packed, clock.dt, self.seed_word, clock.tick, parts, count)
        else:
            shared.advance(self.packed, clock.dt, self.seed_word, clock.tick, count)

    @property
    def packed(self) -> Pack[World]:
        """State, bodies, bins and grid packed for kernels.

        The pack is valid until one of these tuples is replaced.
        """
        return self._pack(self.state, self.bodies, self.bins, self.grid)

    def _touch(self) -> None:
        """Report a write to columns that steps do not write; see `StateStore.touch`."""
        self._store.touch()
