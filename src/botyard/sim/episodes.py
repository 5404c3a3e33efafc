"""Episodes of one world: bodies return to their starts, at rest, at tick 0.

Each episode has its own random draws. `botyard.worlds.worlds.Worlds` has the same
notion of an episode: the kernel `botyard.engine.batchstarts.begin_episode` writes the same
columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.api.revisions import Subject
from botyard.devices.battery import Batteries
from botyard.devices.electrics import Boards
from botyard.engine.commands import MAX_COORDINATE, EnableMotors, set_error_mode
from botyard.engine.fields import FieldTable
from botyard.engine.layout import ANGLE, F8, I1, I8, OdometryErrorMode, State
from botyard.engine.rng import _GOLDEN, _WORD, _mix, seed_word
from botyard.engine.simulation import Engine
from botyard.engine.tables import NOBODY
from botyard.errors import ArgumentError, NotNowError
from botyard.geometry import Pose, relative
from botyard.numerics.elementwise import wrap_angles

_ZERO: Final = (
    "vel",
    "odom",
    "target",
    "err",
    "disp",
    "path",
    "spin",
    "contact",
    "mode_x",
    "mode_a",
    "stall",
    "estop",
    "held",
    "odom_frame",
)
"""Columns of `State` that are zero at the start of an episode."""
_SHAPING: Final = (
    Subject.BODIES,
    Subject.OUTLINES,
    Subject.MASS,
    Subject.MAP,
    Subject.DESCRIBED,
)
"""Changes of the world after which `_Plan` has to be made again."""

ALIGNMENT: Final = 8
"""Alignment of columns of the state, bytes."""
FEW_NUMBERS: Final = 24
"""Count of numbers up to which plain Python comparisons are faster than NumPy."""
POSE_LIMITS: Final = np.array([MAX_COORDINATE, MAX_COORDINATE, math.pi])
"""Bounds of poses that stay unchanged: m, m, rad; −π itself is excluded."""


class _Plan(NamedTuple):
    """Data for the start of an episode, valid as long as the bodies are the same.

    Attributes
    ----------
    revision : int
        Latest revision of `_SHAPING`.
    modes, carriers : bytes
        Contents of the columns `err_mode` and `carrier` for which the plan was made.
    zero : list of arrays
        Columns that become zero, among them pressed stop buttons. Adjacent columns form one
        array of bytes.
    starts : (n, 3) float64
        Start poses of all bodies, m, m, rad.
    robots : slice or (m,) int64
        Rows of the robots.
    perfect : (k,) int64
        Rows of bodies whose odometry is the true pose.
    origins : list of (int, Pose)
        Rows whose odometry does not start at zero, with their odometry origins.
    drawn : list of (int, OdometryErrorMode)
        Rows whose odometry errors are drawn at the start of an episode.
    controls : (n,) int8
        Kind of control of each body with mass.
    first : str
        Name of the first body; empty without bodies.
    fields : list of FieldTable
        Pheromone fields of the floor, which are empty at the start.
    """

    revision: int
    modes: bytes
    carriers: bytes
    zero: list[NDArray[Any]]
    starts: F8
    robots: slice | I8
    perfect: I8
    origins: list[tuple[int, Pose]]
    drawn: list[tuple[int, OdometryErrorMode]]
    controls: I1
    first: str
    fields: list[FieldTable]


class Episodes:
    """Episodes of a simulation: their numbers and seeds, and their starts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counted: tuple[int, int, int] = engine.seed, engine.seed, 0
        """Seed of the engine in this episode, seed of the world, number of the episode.
        """
        self._plan: _Plan | None = None
        self.begun = 0
        """Number of episodes started by this object, with any seed."""

    @property
    def number(self) -> int:
        """Number of the present episode."""
        return self.seed_and_number[1]

    @property
    def seed_and_number(self) -> tuple[int, int]:
        """Seed of the world, and number of the episode.

        After a state with another seed was restored, they are that seed and 0.
        """
        present, world, number = self._counted
        return (
            (world, number) if self._engine.seed == present else (self._engine.seed, 0)
        )

    def count(self, world: int, number: int) -> None:
        """Set the number of the present episode, for a copy of a world.

        The call does nothing if that episode has another seed than the engine.

        Parameters
        ----------
        world, number : int
            Seed of the world, and number of the episode.
        """
        if episode_seed(world, number) == self._engine.seed:
            self._counted = self._engine.seed, world, number

    def next(self, seed: int | None) -> tuple[int, int]:
        """Return the seed of the world and the number of the episode that starts next.

        Parameters
        ----------
        seed : int or None
            Seed of a world whose first episode, 0, starts next. None: the next episode
            of the present world.
        """
        if seed is not None:
            return seed, 0
        world, number = self.seed_and_number
        return world, number + 1

    def begin(
        self,
        world: int,
        number: int,
        starts: Callable[[], Mapping[str, Pose]],
        robots: Iterable[str],
        poses: F8 | None,
        held: Iterable[str],
    ) -> None:
        """Start an episode.

        Parameters
        ----------
        world, number : int
            Seed of the world, and number of the episode.
        starts : callable
            Returns the start poses of all bodies by name; called only if bodies have changed.
        robots : iterable of str
            Names of all robots.
        poses : (m, 3) float64 or None
            Checked start poses of the robots; None: the poses of `starts`.
        held : iterable of str
            Names of bodies that a source holds.

        Raises
        ------
        NotNowError
            The world has devices with a memory beyond poses; nothing has changed.
        """
        engine = self._engine
        plan = self._plan
        state: State = engine.state
        if (
            plan is None
            or plan.revision != engine.feed.last(*_SHAPING)
            or plan.modes != state.err_mode.tobytes()
            or plan.carriers != state.carrier.tobytes()
        ):
            _check_supported(engine)
            self._plan = plan = _plan_of(engine, starts(), robots)

        seed = episode_seed(world, number)
        self._counted = seed, world, number
        self.begun += 1
        if len(state.steer):
            state.steer[:, ANGLE] = 0.0
        for column in plan.zero:
            column.fill(0)
        # An episode starts with motors on, like a new robot.
        state.motors.fill(1)
        for name in held:
            state.held[engine.rows[name]] = 1
        state.pose[...] = plan.starts
        if poses is not None:
            state.pose[plan.robots] = poses
        # All odometry is perfect: one copy instead of two and an index.
        if len(plan.perfect) == len(state.pose):
            state.odom[...] = state.pose
        else:
            state.odom_frame[...] = state.pose
            if len(plan.perfect):
                state.odom[plan.perfect], state.odom_frame[plan.perfect] = (
                    state.pose[plan.perfect],
                    0.0,
                )

            for row, origin in plan.origins:
                state.odom[row] = relative(origin, Pose(*state.pose[row].tolist()))
                state.odom_frame[row] = origin

        if engine.dynamics is not None:
            state.control[...] = plan.controls
            state.demand.fill(0)
            engine.dynamics.begin_episode()

        for field in plan.fields:
            field.clear()
        for row, mode in plan.drawn:
            # Constant and initial errors are drawn once per episode.
            set_error_mode(state, row, mode, int(seed_word(seed)))
        # Displacements of the last step belong to the previous episode.
        engine.bins.reach.fill(0.0)
        # A waiting command makes the engine publish all columns, not only the columns
        # that a step writes.
        waiting = [(plan.first, "", 0, EnableMotors(True))] if plan.first else []
        engine.resume(
            tick=0, step_us=engine.clock.step_us, seed=seed, sequence=0, queue=waiting
        )
        engine.settle()


def episode_seed(world: int, number: int) -> int:
    """Return the seed of an episode of a world.

    It is `botyard.engine.rng.episode_seeds` for one episode in plain numbers, because
    NumPy takes 40 µs for arrays of one element.

    Parameters
    ----------
    world : int
        Seed of the world.
    number : int
        Number of the episode; episode 0 has the seed of the world itself.

    Returns
    -------
    int
        Seed of all random draws of the episode; 64 bits from episode 1 on.
    """
    # A new simulation is its own episode 0.
    if number == 0:
        return world
    return _mix(_mix(world + _GOLDEN & _WORD) ^ (number + _GOLDEN & _WORD))


def checked_poses(poses: ArrayLike, count: int) -> F8:
    """Return checked start poses of robots.

    Parameters
    ----------
    poses : (count, 3) array
        Poses in the frame of the world: x, y in m, heading in rad.
    count : int
        Number of robots.

    Returns
    -------
    (count, 3) float64
        The poses with headings in (−π, π]. It may be `poses` itself, so that the caller
        must not write into it.

    Raises
    ------
    ArgumentError
        The poses are not finite, out of bounds or of another shape.
    """
    given: F8
    # The usual case of learning: no conversion and no copy.
    if type(poses) is np.ndarray and poses.dtype.char == "d":
        given = poses
    else:
        try:
            found = np.asarray(poses)
            given = (
                found.astype(np.float64) if found.dtype.kind in "iuf" else np.zeros(0)
            )
        # NumPy refuses rows of different lengths.
        except (TypeError, ValueError):
            given = np.zeros(0)

    if given.shape != (count, 3):
        raise ArgumentError(
            f"poses: expected an array of shape {(count, 3)}, "
            f"found {arguments.found(poses)}"
        )

    return wrapped_poses(given, "poses")


def wrapped_poses(poses: F8, what: str) -> F8:
    """Return poses with headings wrapped to (−π, π].

    Parameters
    ----------
    poses : (…, 3) float64
        Poses: m, m, rad.
    what : str
        Name of the parameter in error messages.

    Returns
    -------
    (…, 3) float64
        Poses that are valid already are not copied.

    Raises
    ------
    ArgumentError
        A value is not finite, or a coordinate is out of bounds.
    """
    if are_poses(poses):
        return poses
    if not (
        np.isfinite(poses).all() and (np.abs(poses[..., :2]) <= MAX_COORDINATE).all()
    ):
        raise ArgumentError(
            f"{what}: expected finite numbers, and coordinates within "
            f"±{MAX_COORDINATE:g} m, found magnitudes up to "
            f"{np.abs(poses).reshape(-1, 3).max(axis=0)}"
        )

    wrapped = poses.copy()
    wrapped[..., 2] = wrap_angles(poses[..., 2])
    return wrapped


def are_poses(poses: F8) -> bool:
    """Return whether all poses are within bounds.

    Parameters
    ----------
    poses : (…, 3) float64
        Poses: m, m, rad. Coordinates must be within ±`MAX_COORDINATE`, and headings in
        (−π, π]; NaN is refused.
    """
    # For few numbers this loop takes less time than one call of NumPy.
    if poses.size <= FEW_NUMBERS:
        for x, y, th in poses.reshape(-1, 3).tolist():
            if not (
                abs(x) <= MAX_COORDINATE
                and abs(y) <= MAX_COORDINATE
                and -math.pi < th <= math.pi
            ):
                return False

        return True

    # Comparisons with NaN are false, so that NaN is also refused.
    return bool(
        (np.abs(poses) <= POSE_LIMITS).all() and (poses[..., 2] > -math.pi).all()
    )


def _plan_of(
    engine: Engine, starts: Mapping[str, Pose], robots: Iterable[str]
) -> _Plan:
    """Return the data for the start of an episode with the present bodies.

    Parameters
    ----------
    engine : Engine
        World of the bodies.
    starts : mapping of str to Pose
        Start pose of each body by name: m, m, rad.
    robots : iterable of str
        Names of all robots.
    """
    state = engine.state
    rows = [engine.rows[name] for name in robots]
    first = rows[0] if rows else 0
    modes = [OdometryErrorMode(mode) for mode in state.err_mode.tolist()]
    return _Plan(
        revision=engine.feed.last(*_SHAPING),
        modes=state.err_mode.tobytes(),
        carriers=state.carrier.tobytes(),
        zero=_merge_adjacent(
            [
                *(getattr(state, name) for name in _ZERO),
                engine.table(Boards).estop_pressed,
                *(
                    getattr(table, name)
                    for table in engine.tables.values()
                    if table.measures
                    for name, column in table.columns.items()
                    if column.saved
                ),
            ]
        ),
        starts=checked_poses(
            [starts[spec.name] for spec in engine.specs] or np.zeros((0, 3)),
            len(engine.specs),
        ),
        # A slice copies faster than an index array.
        robots=slice(first, first + len(rows))
        if rows == list(range(first, first + len(rows)))
        else np.array(rows),
        perfect=np.flatnonzero(state.err_mode == int(OdometryErrorMode.PERFECT)),
        origins=[
            (row, spec.odometry_origin)
            for row, spec in enumerate(engine.specs)
            if spec.odometry_origin is not None
            and modes[row] is not OdometryErrorMode.PERFECT
        ],
        drawn=[
            (row, mode)
            for row, mode in enumerate(modes)
            if mode in (OdometryErrorMode.CONSTANT, OdometryErrorMode.RANDOM_INIT)
        ],
        controls=np.array([spec.control for spec in engine.specs], np.int8),
        first=engine.specs[0].name if engine.specs else "",
        fields=[t for t in engine.tables.values() if isinstance(t, FieldTable)],
    )


def _merge_adjacent(columns: Iterable[NDArray[Any]]) -> list[NDArray[Any]]:
    """Merge adjacent columns of a block into one array of bytes each.

    Fewer arrays take less time: each NumPy call costs 0.2 µs.

    Parameters
    ----------
    columns : iterable of arrays
        Columns to set to zero. Some are views of one block of uint8.

    Returns
    -------
    list of arrays
        Views that together cover all columns. Setting them to zero also sets the
        padding between columns, which holds no data.
    """
    found: list[NDArray[Any]] = []
    begin = end = 0
    block: NDArray[Any] | None = None
    # By address, so that adjacent columns follow each other.
    for column in sorted(columns, key=lambda one: one.ctypes.data):
        base = column.base
        if not (
            isinstance(base, np.ndarray)
            and base.dtype == np.uint8
            and base.ndim == 1
            and base.flags.c_contiguous
        ):
            found.append(column)
            continue

        at = column.ctypes.data - base.ctypes.data
        # The gap between adjacent columns holds only padding for alignment.
        if base is block and at - end < ALIGNMENT:
            found.pop()
        else:
            block, begin = base, at

        end = at + column.nbytes
        found.append(base[begin:end])

    return found


def _check_supported(engine: Engine) -> None:
    """Refuse worlds whose devices remember more than poses of bodies.

    Raises
    ------
    NotNowError
        Lists all things that `reset` does not restore.
    """
    found = []
    if (engine.state.carrier != NOBODY).any():
        # A start has poses only: it could not attach bodies again.
        found.append("bodies that are carried")
    if (engine.table(Batteries).capacity > 0.0).any():
        found.append("batteries that drain")
    for table in engine.tables.values():
        if len(table) and (
            (table.optional and not table.measures)
            or (
                hasattr(table, "act")
                and not table.measures
                and not isinstance(table, (Batteries, FieldTable))
            )
        ):
            found.append(f'devices with a state of their own ("{table.name}")')

    if found:
        raise NotNowError(
            f"reset: this world has {', '.join(found)}, which reset does not "
            "restore; keep save_state() of the start, and restore it"
        )


__all__ = [
    "FEW_NUMBERS",
    "Episodes",
    "are_poses",
    "checked_poses",
    "episode_seed",
    "wrapped_poses",
]
