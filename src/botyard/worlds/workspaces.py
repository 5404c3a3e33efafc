"""Memory that worlds with the same bodies share, and workspaces of threads.

A `Plan` has the properties of all worlds of a batch. A `Kind` holds the shared arrays
of a robot set, and a `Workspace` the arrays that a thread writes in a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from botyard.devices.fans import fans_of, workspace
from botyard.engine.batchlayout import MassRoom
from botyard.engine.dynamics import build_shapes
from botyard.engine.kernels.beams import Beams
from botyard.engine.kernels.latency import Lateness
from botyard.engine.layout import I4, Grid
from botyard.engine.masslayout import MASS, MassShapes, impulses, mass_state
from botyard.engine.masslayout import workspace as mass_workspace
from botyard.native.kinds import Pack
from botyard.worlds.robot_sets import RobotSet

SENSOR: Final = ("r_min", "r_max", "r_noise", "a_noise", "missing")
"""Columns of `Fans` of which each world has its own copy."""
ERRING_BODIES: Final = ("wheels",)
"""Arrays of `Bodies` that are a part of each world's state."""
DERIVED_BODIES: Final = ("world", "placed", "leeway")
"""Arrays of `Bodies` of which each world has its own copy."""
THREAD_BODIES: Final = ("scratch", "near", "lead", "trail", "ground")
"""Arrays of `Bodies` of which each thread has its own copy."""
# Most bodies touch few others at two points each; the rest is reserve for piles.
CONTACTS, CONTACTS_PER_MASS = 64, 16
"""Room of a world for contacts of bodies with mass: a basic number, and one per body."""
PAIRS_PER_BODY: Final = 64
"""Pairs of near bodies that a thread has room for, per body."""
WALLS_PER_MASS: Final = 2048
"""Walls near bodies with mass that a thread has room for, per body with mass."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Properties that all worlds of a batch share.

    Attributes
    ----------
    robot_sets : sequence of RobotSet
        Bodies that worlds may have.
    boxes : int
        Number of boxes, which are the first bodies; all others are robots.
    readings : int
        Number of readings of each robot; NaN fills missing ones.
    dtype : dtype
        Type of the readings.
    late_steps : int or None
        Highest latency with jitter of commands and readings, steps; None: there is no
        latency, and no rate below the rate of steps.
    has_one_map : bool
        Whether map 0 is the only map.
    """

    robot_sets: Sequence[RobotSet]
    boxes: int
    readings: int
    dtype: DTypeLike
    late_steps: int | None
    has_one_map: bool

    @property
    def bodies(self) -> int:
        """Number of bodies."""
        return len(self.robot_sets[0].state.pose)

    def lateness(self, robot_set: RobotSet) -> Lateness:
        """Return the arrays of commands and readings under way for a world of a robot set.

        Parameters
        ----------
        robot_set : RobotSet
            Robots of a world.

        Returns
        -------
        Lateness
            Empty rings with room for `late_steps`, and the delays of the models.
        """
        m, d, r = (
            self.bodies,
            len(robot_set.fans),
            (self.bodies - self.boxes) * self.readings,
        )
        commands = [spec.commands for spec in robot_set.specs]

        # One slot for each step, and one for a value that waits for a cycle of its
        # robot or is available.
        room = 0 if self.late_steps is None else self.late_steps + 2
        return Lateness(
            command=np.zeros((m, 3)),
            channel=np.array(
                [
                    (one.latency, one.jitter, one.rate, *one.scale.as_tuple())
                    for one in commands
                ]
            ),
            sent_times=np.zeros((m, 1 + room, 2), np.int64),
            sent=np.zeros((m, room, 3)),
            delay=np.array(
                [(one.latency, one.jitter, one.rate) for one in robot_set.delays],
                np.float64,
            ).reshape(d, 3),
            late_times=np.zeros((d, 1 + room, 2), np.int64),
            late=np.zeros(room * r),
            late_bright=np.zeros(room * r, np.int16),
        )


class Kind:
    """Data that all worlds with one robot set share.

    Parameters
    ----------
    plan : Plan
        Properties of the batch.
    robot_set : RobotSet
        Bodies of these worlds.
    has_masses : bool
        Whether any body of the batch has mass.

    Attributes
    ----------
    bodies, fans : Bodies, Fans
        Shapes and range sensors.
    devices : (d,) int64
        Numbers of all range sensors.
    shapes : Pack of MassShapes
        Masses and convex pieces; empty without masses.
    state : dict of str to array
        Contents of a world's state when robots are added, by name.
    """

    def __init__(self, plan: Plan, robot_set: RobotSet, *, has_masses: bool) -> None:
        # Worlds may have maps with and without zones on the floor, so there is room.
        self.bodies = robot_set.bodies._replace(
            ground=np.zeros((len(robot_set.bodies.radius), 3))
        )
        self.fans = fans_of(robot_set.fans)
        self.devices = np.arange(len(robot_set.fans))
        self.shapes = Pack(build_shapes(robot_set.specs if has_masses else ()))
        self.state: dict[str, NDArray[Any]] = {
            **robot_set.state._asdict(),
            # Limits and errors are parameters of each world, see `Worlds.param`.
            **{name: getattr(self.fans, name) for name in SENSOR},
            **{name: getattr(robot_set.bodies, name) for name in ERRING_BODIES},
            **plan.lateness(robot_set)._asdict(),
        }


class Workspace:
    """Scratch arrays of one thread.

    Parameters
    ----------
    plan : Plan
        Properties of the batch.
    kinds : sequence of Kind
        Robot sets; arrays have room for the largest one.
    size : int
        Size of a world's state, bytes.
    """

    def __init__(self, plan: Plan, kinds: Sequence[Kind], size: int) -> None:
        self.bodies: dict[str, NDArray[Any]] = {
            name: np.zeros(
                shape_of(kinds, name), np.int64 if name == "near" else np.float64
            )
            for name in THREAD_BODIES
        }
        self.beams: Pack[Beams] = Pack(workspace(*(kind.fans for kind in kinds)))
        count = (plan.bodies - plan.boxes) * plan.readings

        # Each robot set has its own array: places without a sensor stay NaN.
        self.raw = [np.full(count, np.nan) for _ in kinds]
        # Only late readings keep laser returns.
        self.bright = np.zeros(0 if plan.late_steps is None else count, np.int16)
        shapes = [kind.shapes.value for kind in kinds]
        n, masses, uid = (
            len(shapes[0].values),
            _number_of_masses(shapes[0]),
            plan.robot_sets[0].state.uid,
        )
        self.room = Pack(
            MassRoom(
                work=mass_workspace(
                    n,
                    slots=n,
                    corners=max(len(one.corners) for one in shapes),
                    # There are never more pairs than all pairs of bodies.
                    pairs=min(PAIRS_PER_BODY * n, n * (n - 1) // 2),
                    walls=WALLS_PER_MASS * masses,
                    touches=_room_for_contacts(masses),
                ),
                before=np.zeros((n, 3)),
                before_vel=np.zeros((n, 3)),
                # Bodies are solved in the order of their identities, so that rows do
                # not matter for results.
                order=np.argsort(uid[:n], kind="stable"),
                # Only worlds with mass may have to return to their previous state.
                row=np.zeros(size if masses else 0, np.uint8),
            )
        )
        self._near: I4 = np.zeros(0, np.int32)

    def pack(self, grid: Grid) -> Pack[Grid]:
        """Return a grid with the workspace that all grids of this thread share.

        Parameters
        ----------
        grid : Grid
            Grid of a map. Its other arrays are shared by all threads, which only read
            them.
        """
        # The array only grows, and grids that still use the smaller array keep it
        # alive.
        if len(self._near) < len(grid.seg):
            self._near = np.zeros(len(grid.seg), np.int32)
        return Pack(grid._replace(near=self._near))


def shape_of(kinds: Sequence[Kind], name: str) -> tuple[int, ...]:
    """Return the shape that holds an array of `Bodies` of every robot set.

    Parameters
    ----------
    kinds : sequence of Kind
        Robot sets.
    name : str
        Name of the array in `Bodies`.
    """
    return _greatest(getattr(kind.bodies, name) for kind in kinds)


def _greatest(arrays: Iterable[NDArray[Any]]) -> tuple[int, ...]:
    """Return the shape of an array that has room for each of some arrays."""
    # Rows are equally long for all robot sets, so that one block holds them.
    return tuple(
        max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)
    )


def _number_of_masses(shapes: MassShapes) -> int:
    """Return the number of bodies with mass."""
    return int((shapes.values[:, MASS] > 0.0).sum())


def _room_for_contacts(masses: int) -> int:
    """Return the number of contacts that a world with that many bodies with mass holds."""
    return CONTACTS + CONTACTS_PER_MASS * masses if masses else 0


def state_fields(
    plan: Plan, kinds: Sequence[Kind], *, has_masses: bool
) -> list[tuple[str, DTypeLike, tuple[int, ...]]]:
    """Return names, types and shapes of the arrays of a world's state; see `Memory`.

    Parameters
    ----------
    plan : Plan
        Properties of the batch.
    kinds : sequence of Kind
        Robot sets; an array has room for the largest one.
    has_masses : bool
        Whether there are bodies with mass.

    Returns
    -------
    list of (name, dtype, shape)
        Fields of `Blocks`, in the order in memory.
    """
    m, r = plan.bodies, plan.readings
    shapes = kinds[0].shapes.value
    mass, table = (
        mass_state(len(shapes.values)),
        impulses(_room_for_contacts(_number_of_masses(shapes))),
    )
    return [
        ("counts", np.int64, (5,)),
        ("seeds", np.uint64, (2,)),
        ("start", np.float64, (m, 3)),
        ("contact_kind", np.int8, (m,)),
        ("other", np.int64, (m,)),
        *(
            (f"mass.{name}", a.dtype, a.shape)
            for of in (mass, table)
            if has_masses
            for name, a in of._asdict().items()
        ),
        *(
            (name, a.dtype, _greatest(kind.state[name] for kind in kinds))
            for name, a in kinds[0].state.items()
        ),
        ("ranges", plan.dtype, (m - plan.boxes, r)),
    ]


__all__ = [
    "DERIVED_BODIES",
    "ERRING_BODIES",
    "SENSOR",
    "THREAD_BODIES",
    "Kind",
    "Plan",
    "Workspace",
    "shape_of",
    "state_fields",
]
