"""Benchmark of policies that drive a robot to a goal in seeded worlds.

There are three classes of worlds.
All worlds have the same robot, a disc with a lidar, and the observations and actions of
`botyard.learning.Navigate`. A world depends only on its class, its number and the seed.
Results repeat to the last digit with any number of threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.errors import ArgumentError
from botyard.learning.tasks.base import F4, F8, EpisodeDraws
from botyard.learning.tasks.navigate import Navigate
from botyard.learning.tasks.robots import clutter, plaza
from botyard.learning.tasks.social import SocialNavigate
from botyard.model.mapgenerators import office
from botyard.model.scene import Scene
from botyard.navigation.walls import distances_to
from botyard.worlds.worlds import Worlds

RAYS: Final = 181
"""Number of lidar rays, over half a turn."""
MAX_STEPS: Final = 600
"""Number of steps of an episode, 0.1 s each."""
LEAST_M: Final = 4.0
"""Minimum distance between start and goal, m."""
PEDESTRIANS: Final = 10
"""Number of pedestrians in a world of the class ``crowds``."""
FREE_M: Final = 5.0
"""Greatest clearance that is measured, m."""
WORLD_SEEDS: Final = 1_000_000
"""Distance between the first seeds of two classes, so that no two worlds share a seed."""
MAX_WORLDS: Final = 100_000
"""Maximum number of worlds of a class."""


def _room(number: int) -> Scene:
    """Return a map with four rooms on both sides of a corridor, 10 m × 10.4 m."""
    return office(2, width=5.0, depth=4.0, corridor=2.4, furniture=1, seed=number + 1)


CLASSES: Final = ("rooms", "clutter", "crowds")
"""Names of the classes of worlds.

``rooms`` has rooms with doors at a corridor, ``clutter`` blocks and pillars, ``crowds`` pedestrians
on a square.
"""


class Truth:
    """Read-only view of the true state of the worlds, which no real robot knows.

    All arrays are copies. The view prevents a policy from changing worlds by mistake.
    The view is not a security boundary: code can still find the worlds in memory.

    Parameters
    ----------
    w : Worlds
        n worlds with m bodies each. Body 0 is the robot.
    """

    __slots__ = ("__w",)

    def __init__(self, w: Worlds) -> None:
        self.__w = w

    def __len__(self) -> int:
        return len(self.__w)

    @property
    def pose(self) -> F8:
        """True poses of the m bodies in n worlds, (n, m, 3): m, m, rad."""
        return self.__w.pose.copy()

    @property
    def vel(self) -> F8:
        """Body velocities vx, vy and yaw rate, (n, m, 3): m/s, m/s, rad/s."""
        return self.__w.vel.copy()

    @property
    def contact(self) -> NDArray[np.int8]:
        """Contact of each body in the last step, (n, m).

        0: none; 1: a wall; 2: another body.
        """
        return self.__w.contact.copy()

    @property
    def tick(self) -> NDArray[np.int64]:
        """Number of steps of the episode so far, (n,)."""
        return self.__w.tick.copy()

    def near_walls(
        self, xy: ArrayLike | None = None, *, reach: float, count: int = 8
    ) -> F8:
        """Return the walls near points, or near all bodies.

        See `botyard.Worlds.near_walls`.

        Parameters
        ----------
        xy : (n, k, 2) or (k, 2) array, optional
            k points of each world, or the same points in all of them, m. Default: the
            positions of the robot and of the pedestrians.
        reach : float
            Greatest distance of a wall, m.
        count : int
            Number of walls for each point, 1 … 64.

        Returns
        -------
        (n, k, count, 4) float64
            Ends of walls, x and y, m, nearest first; NaN fills missing walls.

        Raises
        ------
        ArgumentError
            An argument is out of its range.
        """
        return self.__w.near_walls(xy, reach=reach, count=count)


class Setup(NamedTuple):
    """Description of the worlds that a policy gets before the first step.

    Attributes
    ----------
    worlds : int
        Number of worlds, and of rows of observations and actions.
    angles : (r,) float64
        Bearings of the lidar's rays, rad. The lidar is at the centre of the robot.
    range_max : float
        Maximum range of the lidar, m: observed ranges are divided by it.
    far : float
        The observed distance of the goal is divided by this distance, m.
    max_v, max_w : float
        Velocities that the action 1 commands, m/s and rad/s.
    radius : float
        Radius of the robot, m.
    dt : float
        Duration of a step, s.
    truth : Truth
        True state of the worlds. Results of policies that read it are comparable only
        with each other.
    goals : (n, 2) float64
        Goals in the frame of the world, m (a copy). They count as a part of `truth`.
    """

    worlds: int
    angles: F8
    range_max: float
    far: float
    max_v: float
    max_w: float
    radius: float
    dt: float
    truth: Truth
    goals: F8


class Policy(Protocol):
    """Interface of a policy: a class whose objects are made with a `Setup`.

    The benchmark makes one object for each class of worlds.
    """

    def act(self, observations: F4) -> NDArray[Any]:
        """Return the actions of a step.

        Parameters
        ----------
        observations : (n, r + 5) float32
            One row for each world, see `botyard.learning.Navigate`. The array is a
            copy, and the policy may change it.

        Returns
        -------
        (n, 2) array
            Linear and angular velocity as fractions of `Setup.max_v` and `Setup.max_w`,
            clipped to −1 … 1. Rows of finished worlds are ignored.
        """
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one episode of the benchmark.

    Attributes
    ----------
    kind : str
        Class of the world.
    world : int
        Number of the world in its class.
    outcome : str
        ``goal``, ``collision`` or ``timeout``.
    time_s : float
        Duration of the episode, s.
    way_m : float
        Length of the path that the robot drove, m.
    clearance_m : float
        Minimum distance from walls and pedestrians, edge to edge, m; at most 5.
    turning : float
        Mean absolute angular acceleration, rad/s²: small for a smooth drive.
    """

    kind: str
    world: int
    outcome: str
    time_s: float
    way_m: float
    clearance_m: float
    turning: float


def task_of(kind: str, numbers: Iterable[int]) -> Navigate:
    """Return the task of a class, with the maps of some of its worlds.

    Parameters
    ----------
    kind : str
        One of `CLASSES`.
    numbers : iterable of int
        Numbers of the worlds. Each has its own map, which depends on class and number
        alone.

    Raises
    ------
    ArgumentError
        The class is unknown.
    """
    arguments.one_of(kind, "kind", CLASSES)
    common: dict[str, Any] = {"rays": RAYS, "max_steps": MAX_STEPS, "least_m": LEAST_M}
    if kind == "crowds":
        maps = [plaza(k) for k in numbers]
        return SocialNavigate(walkers=PEDESTRIANS, neighbours=0, scenes=maps, **common)

    return Navigate(
        scenes=[_room(k) if kind == "rooms" else clutter(k) for k in numbers], **common
    )


def run(
    policy: Callable[[Setup], Policy],
    kind: str,
    count: int,
    *,
    seed: int = 1,
    first: int = 0,
    threads: int = 1,
) -> list[Result]:
    """Let a policy drive in the worlds of a class and return the results.

    Parameters
    ----------
    policy : callable
        Returns a policy for a `Setup`; usually a class.
    kind : str
        One of `CLASSES`.
    count : int
        Number of worlds.
    seed : int
        Seed of the benchmark.
    first : int
        Number of the first world.
    threads : int
        Threads of the simulation.

    Raises
    ------
    ArgumentError
        An argument is out of its range, or the policy has no method ``act``, or it does
        not return (n, 2) finite numbers.
    """
    count = arguments.whole(count, "count", low=1, high=MAX_WORLDS)
    seed = arguments.whole(seed, "seed", low=0, high=2**31)
    first = arguments.whole(first, "first", low=0, high=MAX_WORLDS)
    # Each world has a map of its own, which depends on its number only.
    task = task_of(kind, range(first, first + count))
    w = Worlds(
        task.scenes,
        list(task.robots),
        count,
        step=task.step,
        threads=threads,
        sensors=task.sensors,
    )
    try:
        return _Trial(task, w, kind, seed, first).results(policy)
    finally:
        w.close()


class _Trial:
    """Episodes of one class of worlds in progress, and their measurements."""

    def __init__(
        self, task: Navigate, w: Worlds, kind: str, seed: int, first: int
    ) -> None:
        self._task, self._w, self._kind, self._first = task, w, kind, first
        n = len(w)
        task.begin(w)
        everyone = np.arange(n)
        # The seed of a world depends on its number, not on its row: a world can run
        # alone, or as part of another selection, with the same result.
        begin = (seed * len(CLASSES) + CLASSES.index(kind)) * WORLD_SEEDS + first
        w.reset(
            everyone,
            seeds=np.uint64(begin) + everyone.astype(np.uint64),
            poses=task.poses,
            map_id=everyone,
        )
        task.on_reset(w, everyone, EpisodeDraws(w.seeds))
        self._way, self._turning = np.zeros(n), np.zeros(n)
        self._clearance: F8 = np.full(n, FREE_M)
        self._radius = task.robots[0].radius

    def results(self, policy: Callable[[Setup], Policy]) -> list[Result]:
        """Let the policy drive until all episodes have ended, and return the results."""
        w, task = self._w, self._task
        n = len(w)
        # Make a policy for each class: a policy may adapt to the number of worlds.
        driver = policy(self._setup())
        if not callable(getattr(driver, "act", None)):
            raise ArgumentError(
                "policy: expected a class with a method act(), found "
                f"{_name_of(policy)} without one"
            )

        observed = np.zeros((n, *task.observation_bounds(w)[0].shape), np.float32)
        rewards, ended, cut = np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        active = np.ones(n, np.bool_)
        # An episode that is truncated has timed out.
        outcomes, times = np.full(n, "timeout", dtype="U9"), np.zeros(n)
        while active.any():
            task.observe(w, observed)
            # The policy gets a copy, so that it cannot change the observation of the
            # next step.
            task.act(
                w,
                np.clip(self._checked(driver.act(observed.copy()), active), -1.0, 1.0),
            )
            place, turn = w.pose[:, 0, :2].copy(), w.vel[:, 0, 2].copy()
            # Finished worlds stand still, so that their measurements stay final.
            w.step(mask=active)
            task.reward(w, rewards)
            task.done(w, ended, cut)
            self._measure(active, place, turn)
            over = active & (ended | cut)
            outcomes[over & ended] = np.where(
                task.info(w)["success"], "goal", "collision"
            )[over & ended]
            times[over] = w.tick[over] * w.dt
            active &= ~over

        return [
            Result(
                self._kind,
                self._first + k,
                str(outcomes[k]),
                float(times[k]),
                float(self._way[k]),
                float(self._clearance[k]),
                turning,
            )
            for k, turning in enumerate((self._turning / w.tick).tolist())
        ]

    def _setup(self) -> Setup:
        spec = self._task.robots[0]
        laser, speed = spec.lasers[0], spec.kinematics.limits.max_speed
        # In the order of the lidar's rays: from the right to the left end of the field
        # of view.
        angles = np.array(
            [-0.5 * laser.fov + laser.increment * k for k in range(laser.samples)]
        )
        return Setup(
            len(self._w),
            angles,
            laser.range_max,
            Navigate.FAR_M,
            speed.x,
            speed.a,
            self._radius,
            self._w.dt,
            Truth(self._w),
            self._task.goals.copy(),
        )

    def _checked(self, actions: Any, active: NDArray[np.bool_]) -> F8:
        """Return the policy's actions after a check; 0 in worlds whose episode has ended.

        Parameters
        ----------
        actions : array
            Result of the policy, which may be anything.
        active : (n,) bool
            Worlds whose episode has not ended.

        Returns
        -------
        (n, 2) float64
            Finite actions, not clipped yet.

        Raises
        ------
        ArgumentError
            The result has another shape, or is not finite in an active world.
        """
        wanted = (len(self._w), 2)
        try:
            found = np.asarray(actions)
        # Rows of different lengths make no array.
        except ValueError:
            found = None

        if found is None or found.shape != wanted or found.dtype.kind not in "fiu":
            raise ArgumentError(
                f"act: expected an array of numbers, {wanted}, found {arguments.found(actions)}"
            )

        if not np.isfinite(found[active]).all():
            raise ArgumentError("act: expected finite numbers, found NaN or infinity")
        return np.where(active[:, None], found, 0.0).astype(np.float64)

    def _measure(self, active: NDArray[np.bool_], place: F8, turn: F8) -> None:
        """Add the driven distance, the turning and the clearance of a step to the measurements.

        Parameters
        ----------
        active : (n,) bool
            Worlds that made the step.
        place : (n, 2) float64
            Positions of the robots before the step, m.
        turn : (n,) float64
            Yaw rates of the robots before the step, rad/s.
        """
        w = self._w
        d = w.pose[:, 0, :2] - place
        self._way += np.where(
            active, np.sqrt(d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1]), 0.0
        )
        self._turning += np.where(active, np.abs(w.vel[:, 0, 2] - turn) / w.dt, 0.0)
        here = w.pose[:, :1, :2]
        # One wall is enough: `near_walls` sorts them by distance.
        gap = (
            distances_to(
                w.near_walls(here, reach=FREE_M + self._radius, count=1), here
            )[:, 0]
            - self._radius
        )
        # Pedestrians are not walls: the task gives their distance.
        if isinstance(self._task, SocialNavigate):
            gap = np.minimum(gap, self._task.gap(w))
        self._clearance = np.where(
            active, np.minimum(self._clearance, np.maximum(gap, 0.0)), self._clearance
        )


def _name_of(policy: object) -> str:
    return str(getattr(policy, "__qualname__", repr(policy)))


TITLES: Final = (
    "class",
    "world",
    "outcome",
    "time_s",
    "way_m",
    "clearance_m",
    "turning_rad_s2",
)
"""Column titles of `lines_of`."""


def lines_of(results: Iterable[Result]) -> list[str]:
    """Return results as lines of CSV, without titles.

    Numbers keep all their digits, so that equal lines mean equal results.
    """
    return [
        f"{r.kind},{r.world},{r.outcome},{r.time_s!r},{r.way_m!r},{r.clearance_m!r},{r.turning!r}"
        for r in results
    ]


def digest_of(results: Iterable[Result]) -> str:
    """Return a hash of results. Equal hashes mean results equal to the last digit."""
    return hashlib.blake2b(
        "\n".join(lines_of(results)).encode(), digest_size=8
    ).hexdigest()


__all__ = [
    "CLASSES",
    "TITLES",
    "Policy",
    "Result",
    "Setup",
    "Truth",
    "digest_of",
    "lines_of",
    "run",
    "task_of",
]
