"""Python part of rigid-body dynamics with contacts and friction, for bodies with mass.

Worlds without mass never use this module. Bodies without mass move first, as if bodies
with mass did not exist. Then bodies with mass move in substeps, in which other bodies,
walls and demands act on them. One kernel does all of it, see
`botyard.engine.kernels.masses`. This module maintains the kernel's arrays while bodies
are added, removed and changed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from botyard.engine.bodyspec import BodySpec
from botyard.engine.build import rows_of, starts_of
from botyard.engine.hulls import convex_pieces
from botyard.engine.kernels.contacts import WALL_BIT
from botyard.engine.kernels.masses import move_masses
from botyard.engine.layout import F8, I8, Bins, Bodies, Grid, State
from botyard.engine.masslayout import (
    INERTIA,
    KIND,
    LOST,
    LOST_SOME,
    MASS,
    MORE_CORNERS,
    MORE_PAIRS,
    MORE_SLOTS,
    MORE_TOUCHES,
    MORE_WALLS,
    OK,
    ROW,
    VALUES,
    Impulses,
    MassShapes,
    MassState,
    Moving,
    Walls,
    Workspace,
    impulses,
    join_states,
    mass_state,
    moving,
    walls,
    workspace,
)
from botyard.geometry import Outline
from botyard.model.dynamics import area_moments
from botyard.native.kinds import LastPack
from botyard.numerics import elementwise

log = logging.getLogger("botyard.engine")
INITIAL_CAPACITY: Final = {
    MORE_SLOTS: 16,
    MORE_CORNERS: 256,
    MORE_PAIRS: 64,
    MORE_WALLS: 64,
    MORE_TOUCHES: 64,
}
"""Initial size of the workspace, in slots, corners, pairs, walls and contacts.

A size that is too small for a step is doubled.
"""
NO_WRENCH: Final = (0.0, 0.0, 0.0)
"""Value of `Dynamics.wrench` for a body without mass: N, N, N·m."""


class _Packs:
    """Packed arguments of the kernel.

    An argument is packed again only if a new object has replaced it since the last
    step.
    """

    def __init__(self) -> None:
        self.moving: LastPack[Moving] = LastPack()
        self.walls: LastPack[Walls] = LastPack()
        self.shapes: LastPack[MassShapes] = LastPack()
        self.state: LastPack[MassState] = LastPack()
        self.table: LastPack[Impulses] = LastPack()
        self.work: LastPack[Workspace] = LastPack()


class Dynamics:
    """Motion of all bodies with mass of an engine.

    An engine with the same bodies continues identically, bit for bit, from copies of
    `state`, `table` and `Engine.state`; see `load`.

    Parameters
    ----------
    specs : sequence of BodySpec
        Descriptions of all bodies, with or without mass, by row.

    Attributes
    ----------
    state : MassState
        Values passed from step to step, by row.
    table : Impulses
        Contacts of the last substep.
    """

    def __init__(self, specs: Sequence[BodySpec]) -> None:
        self.shapes = build_shapes(specs)
        self.state = mass_state(len(specs))
        self._room = dict(INITIAL_CAPACITY)
        self._parts: tuple[State, Bodies, Bins, Grid] | None = None
        self._packs = _Packs()
        self._make_room()
        self.table = impulses(len(self._work.touch))

    def _make_room(self) -> None:
        self._work = workspace(len(self.shapes.values), *self._room.values())

    # -- Readings

    @property
    def is_empty(self) -> bool:
        """Whether no body has mass."""
        return not (self.shapes.values[:, MASS] > 0.0).any()

    def wrench(self, row: int) -> tuple[float, float, float]:
        """Return net force and torque on a body in the last step, N, N, N·m.

        They are in world axes; zero for a body without mass.

        Parameters
        ----------
        row : int
            Row of the body.
        """
        x, y, torque = self.state.wrench[row].tolist()
        return x, y, torque

    def inertia(self, row: int) -> float:
        """Return the moment of inertia of a body about its centre of mass, kg·m².

        It is zero for a body without mass.

        Parameters
        ----------
        row : int
            Row of the body.
        """
        return float(self.shapes.values[row, INERTIA])

    def mass_and_wrench(
        self, row: int
    ) -> tuple[float, float, tuple[float, float, float]]:
        """Return mass, kg, moment of inertia, kg·m², and `wrench` of a body.

        They are zero for a body without mass.

        Parameters
        ----------
        row : int
            Row of the body.
        """
        mass, inertia = self.shapes.values[row, :2].tolist()
        return mass, inertia, self.wrench(row) if mass else NO_WRENCH

    def pressing(
        self, walls: str, names: Mapping[int, str]
    ) -> Iterator[tuple[str, str]]:
        """Yield pairs of bodies that pressed on each other at the end of the last step.

        A pair has one entry for each of its contacts.

        Parameters
        ----------
        walls : str
            Name to yield for walls.
        names : mapping of int to str
            Names of all bodies by uid.

        Yields
        ------
        tuple of (str, str)
            Names. At least one of each pair has mass; the second one may be `walls`.
        """
        count = int(self.table.size[0])
        for (first, second, feature), (normal, _) in zip(
            self.table.key[:count].tolist(),
            self.table.impulse[:count].tolist(),
            strict=True,
        ):
            # Contacts without an impulse are near, but do not press.
            if normal > 0.0:
                yield names[first], walls if feature & int(WALL_BIT) else names[second]

    # -- Changes of bodies

    def add(self, specs: Sequence[BodySpec]) -> None:
        """Add rows for new bodies after all others.

        Parameters
        ----------
        specs : sequence of BodySpec
            Descriptions of the new bodies, with or without mass.
        """
        self.shapes = join_shapes(self.shapes, build_shapes(specs))
        self.state = join_states(self.state, mass_state(len(specs)))
        self._make_room()

    def keep(self, rows: I8) -> None:
        """Keep only the bodies in these rows, in this order.

        Parameters
        ----------
        rows : (k,) int64
            Present rows of the bodies to keep, in their new order.
        """
        self.shapes = keep_shapes(self.shapes, rows)
        s = self.state
        self.state = MassState(
            s.seen[rows], s.depth[rows], s.resting[rows], s.floor[rows], s.wrench[rows]
        )
        self._make_room()

    def change(self, rows: Sequence[int], specs: Sequence[BodySpec]) -> None:
        """Replace outlines or masses of bodies, and wake them.

        Parameters
        ----------
        rows : sequence of int
            Rows of the bodies, ascending.
        specs : sequence of BodySpec
            New descriptions of these bodies.
        """
        old, new, at = self.shapes, build_shapes(specs), 0
        had_mass, has_mass = old.values[rows, MASS] > 0.0, new.values[:, MASS] > 0.0
        pieces = list[MassShapes]()
        for k, row in enumerate(rows):
            pieces += [
                keep_shapes(old, np.arange(at, row)),
                keep_shapes(new, np.array([k])),
            ]
            at = row + 1

        # Bodies between the changed ones keep their shapes.
        self.shapes = join_shapes(
            *pieces, keep_shapes(old, np.arange(at, len(old.values)))
        )
        # NaN differs from all poses, so that the step finds new contacts.
        self.state.seen[rows] = math.nan
        self.state.resting[rows] = 0
        self.state.floor[rows] = 0.0
        # A reported force belongs to a body that still has mass.
        self.state.wrench[np.array(rows)[had_mass != has_mass]] = 0.0

    def forget_walls(self) -> None:
        """Wake all bodies and drop the last contacts, after a change of map."""
        # A body may have rested on a wall that is gone.
        self.state.resting[:] = 0
        self.table.size[0] = 0

    def begin_episode(self) -> None:
        """Reset the state after all bodies were put at their starts, at rest.

        `botyard.engine.batchstarts.begin_masses` does the same.
        """
        for name, new in mass_state(len(self.shapes.values))._asdict().items():
            getattr(self.state, name)[:] = new
        self.table.size[0], self.table.span[0] = 0, 0.0

    def load(self, state: MassState, table: Impulses) -> None:
        """Continue from copies of the state and contacts of an equal `Dynamics`.

        Parameters
        ----------
        state, table : MassState, Impulses
            Attributes of a `Dynamics` with the same bodies in the same rows. They are
            copied; the room for contacts grows if needed.
        """
        for name in MassState._fields:
            getattr(self.state, name)[:] = getattr(state, name)
        count = int(table.size[0])
        # The workspace grows as well, since it holds the same contacts.
        if count > len(self.table.key):
            self.table = impulses(count)
            self._room[MORE_TOUCHES] = max(self._room[MORE_TOUCHES], count)
            self._make_room()

        self.table.size[0], self.table.span[0] = count, table.span[0]
        self.table.key[:count], self.table.impulse[:count] = (
            table.key[:count],
            table.impulse[:count],
        )

    # -- Step

    def begin(self, state: State, bodies: Bodies, bins: Bins, grid: Grid) -> None:
        """Store the poses and velocities of all bodies before those without mass move.

        Parameters
        ----------
        state, bodies, bins, grid : State, Bodies, Bins, Grid
            Arrays of the world. The kernel of `step` reads and writes these arrays.
        """
        parts = state, bodies, bins, grid
        if self._parts is None or any(
            a is not b for a, b in zip(parts, self._parts, strict=True)
        ):
            self._moving, self._walls, self._parts = (
                moving(
                    state,
                    bodies,
                    bins,
                    state.pose.copy(),
                    state.vel.copy(),
                    # The order of identities does not depend on the order of creation.
                    np.argsort(state.uid, kind="stable"),
                ),
                walls(grid),
                parts,
            )
        else:
            np.copyto(self._moving.before, state.pose)
            np.copyto(self._moving.before_vel, state.vel)

    def step(self, dt: float, specs: Sequence[BodySpec]) -> None:
        """Move bodies with mass, and set back movers that could not push a body.

        Movers are bodies without mass. Call `begin` before the bodies without mass move.

        Parameters
        ----------
        dt : float
            Duration of the step, s.
        specs : sequence of BodySpec
            Descriptions of all bodies by row; their names are for the log.
        """
        while True:
            # The packs encode an argument again only if an array was replaced.
            p = self._packs
            answer = move_masses(
                p.moving(self._moving),
                p.walls(self._walls),
                p.shapes(self.shapes),
                p.state(self.state),
                p.table(self.table),
                p.work(self._work),
                dt,
            )
            if answer <= OK:
                break

            # The kernel has changed nothing: double the array, and call it again.
            self._room[answer] *= 2
            self._make_room()
            if answer == MORE_TOUCHES:
                old, self.table = self.table, impulses(self._room[answer])
                self.table.size[0], self.table.span[0] = old.size[0], old.span[0]
                self.table.key[: len(old.key)], self.table.impulse[: len(old.key)] = (
                    old.key,
                    old.impulse,
                )

        if answer == LOST_SOME:
            for row in self._work.flags[
                self._work.flags[:, KIND] == LOST, ROW
            ].tolist():
                log.warning(
                    "body %s moved beyond ±1e7 m or turned by more than 1e4 rad in a "
                    "substep: it is back at its pose before the step, at rest",
                    specs[row].name,
                )


# -- Shapes


def build_shapes(specs: Sequence[BodySpec]) -> MassShapes:
    """Return masses and convex pieces of the outlines of bodies, in the given order.

    Parameters
    ----------
    specs : sequence of BodySpec
        Descriptions; their order is the order of rows. Bodies without mass get zeros
        for their values, and pieces, since they push others.

    Raises
    ------
    ModelError
        The outline of a body with mass has no area.
    """
    outlines = [_corners(spec.parts) for spec in specs]
    sizes = np.array([size for _, sizes in outlines for size in sizes], np.int64)
    values = np.zeros((len(specs), VALUES))
    for row, spec in enumerate(specs):
        if spec.dynamics is not None:
            values[row] = _values(spec)

    corners = np.concatenate([np.zeros((0, 4)), *(corners for corners, _ in outlines)])
    pieces: I8 = np.array([len(sizes) for _, sizes in outlines], np.int64)
    return MassShapes(values, starts_of(pieces), starts_of(sizes), corners)


def join_shapes(*shapes: MassShapes) -> MassShapes:
    """Return the shapes of groups of bodies, one after the other."""
    return MassShapes(
        np.concatenate([s.values for s in shapes]),
        starts_of(np.concatenate([np.diff(s.piece_start) for s in shapes])),
        starts_of(np.concatenate([np.diff(s.corner_start) for s in shapes])),
        np.concatenate([s.corners for s in shapes]),
    )


def keep_shapes(a: MassShapes, keep: I8) -> MassShapes:
    """Return the shapes of the bodies in rows `keep`, in that order.

    Parameters
    ----------
    a : MassShapes
        Shapes of all bodies.
    keep : (k,) int64
        Present rows of the bodies to keep, in their new order.
    """
    pieces = rows_of(a.piece_start, keep)
    return MassShapes(
        a.values[keep],
        starts_of(np.diff(a.piece_start)[keep]),
        starts_of(np.diff(a.corner_start)[pieces]),
        a.corners[rows_of(a.corner_start, pieces)],
    )


@lru_cache(maxsize=1024)
def _corners(parts: tuple[Outline, ...]) -> tuple[F8, tuple[int, ...]]:
    """Return `MassShapes.corners` of a body, and the number of corners of each piece."""
    pieces = [piece for part in parts for piece in convex_pieces(part)]
    rows = []
    for piece in pieces:
        at = np.array(piece)
        along = np.roll(at, -1, axis=0) - at
        along /= elementwise.hypot(along[:, 0], along[:, 1])[:, None]
        rows.append(np.column_stack([at, along[:, 1], -along[:, 0]]))

    return np.concatenate([np.zeros((0, 4)), *rows]), tuple(map(len, pieces))


def _values(spec: BodySpec) -> list[float]:
    """Return `MassShapes.values` of a body with mass."""
    own, moments = spec.dynamics, area_moments(spec.parts)
    assert own is not None
    center = own.center
    if center is None:
        # The origin of a robot is the centre of its wheels, about which it turns.
        center = (0.0, 0.0) if spec.kinematics.drives else moments.center

    linear, angular = own.controller.linear, own.controller.angular
    # The values are in the order of the columns `MASS` … `BY_FORCE`.
    return [
        own.mass,
        own.inertia or own.mass * moments.second,
        *center,
        moments.reach,
        own.friction,
        own.restitution,
        own.floor_friction,
        own.traction,
        own.linear_damping,
        own.angular_damping,
        linear.p,
        linear.d,
        angular.p,
        angular.d,
        float(own.controller.force),
    ]


__all__ = ["Dynamics", "build_shapes", "join_shapes", "keep_shapes"]
