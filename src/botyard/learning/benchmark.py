"""A benchmark of policies that drive a robot to a goal: seeded worlds in three classes,
and what became of the robot in each.

All worlds have the same robot, a disc with a lidar, and the observations and actions of
`botyard.learning.Navigate`. A world is a function of its class, its number and the
seed, so results repeat to the last digit, with any number of threads.
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
from botyard.model.mapbuilder import office
from botyard.model.scene import Scene
from botyard.navigation.walls import distances_to
from botyard.worlds.worlds import Worlds

RAYS: Final = 181
"""Rays of the lidar, over half a turn."""
MAX_STEPS: Final = 600
"""Steps of an episode, of 0.1 s."""
LEAST_M: Final = 4.0
"""Least distance of start and goal, m."""
PEDESTRIANS: Final = 10
"""In a world of crowds."""
FREE_M: Final = 5.0
"""Clearances are at most this, m."""
WORLD_SEEDS: Final = 1_000_000
"""Seeds of a class are apart from those of the next one by this number."""
MAX_WORLDS: Final = 100_000
"""Worlds of a class."""


def _room(number: int) -> Scene:
    """Four rooms on both sides of a corridor, 10 m × 10.4 m."""
    return office(2, width=5.0, depth=4.0, corridor=2.4, furniture=1, seed=number + 1)


CLASSES: Final = ("rooms", "clutter", "crowds")
"""Classes of worlds: rooms at a corridor, behind doors; blocks and pillars; pedestrians
on a square.
"""


class Truth:
    """What is true of the worlds, and no robot would know: to look at. All arrays are
    copies; nothing here moves anybody.

    It is there so that no policy changes worlds by mistake. It keeps out nobody who
    looks for the worlds in the memory of the program.

    Parameters
    ----------
    w : Worlds
        The worlds: of n, with m bodies each, of which the first is the robot.
    """

    __slots__ = ("__w",)

    def __init__(self, w: Worlds) -> None:
        self.__w = w

    def __len__(self) -> int:
        return len(self.__w)

    @property
    def pose(self) -> F8:
        """True poses, (n, m, 3): m, m, rad."""
        return self.__w.pose.copy()

    @property
    def vel(self) -> F8:
        """Velocities forward, leftward and of rotation in the bodies' own frames, (n,
        m, 3): m/s, m/s, rad/s.
        """
        return self.__w.vel.copy()

    @property
    def contact(self) -> NDArray[np.int8]:
        """What stopped each body in the last step, (n, m): 0 nothing, 1 a wall, 2
        another body.
        """
        return self.__w.contact.copy()

    @property
    def tick(self) -> NDArray[np.int64]:
        """Steps done, (n,)."""
        return self.__w.tick.copy()

    def near_walls(
        self, xy: ArrayLike | None = None, *, reach: float, count: int = 8
    ) -> F8:
        """The walls near places, or near all bodies: see `botyard.Worlds.near_walls`.
        ArgumentError: an argument is wrong.
        """
        return self.__w.near_walls(xy, reach=reach, count=count)


class Setup(NamedTuple):
    """What a policy is told before the first step.

    Attributes
    ----------
    worlds : int
        Number of worlds: rows of observations and actions.
    angles : (r,) float64
        Bearings of the lidar's rays, rad; the lidar is in the middle of the robot.
    range_max, far : float
        Ranges are divided by the first one, the distance of the goal by the second one,
        m.
    max_v, max_w : float
        Velocities of the action 1, m/s and rad/s.
    radius, dt : float
        Of the robot, m; time of a step, s.
    truth : Truth
        What a robot would not know. Policies that look at it are compared with others
        of that kind only.
    goals : (n, 2) float64
        Goals in the frame of the world, m: truth, too. A copy.
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
    """What is compared: a class whose objects are made with a `Setup`, one for each
    class of worlds.
    """

    def act(self, observations: F4) -> NDArray[Any]:
        """Actions, (n, 2), for observations, (n, r + 5), see
        `botyard.learning.Navigate`. Rows of worlds that have ended do not matter.
        """
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """What became of the robot in a world.

    Attributes
    ----------
    kind, world : str, int
        Class of the world, and its number.
    outcome : str
        ``goal``, ``collision`` or ``timeout``.
    time_s, way_m : float
        When the episode ended, s; how far the robot had gone, m.
    clearance_m : float
        Least distance from walls and pedestrians, from edge to edge, m; at most 5.
    turning : float
        Mean size of angular acceleration, rad/s²: the less, the smoother.
    """

    kind: str
    world: int
    outcome: str
    time_s: float
    way_m: float
    clearance_m: float
    turning: float


def task_of(kind: str, numbers: Iterable[int]) -> Navigate:
    """The task of a class, with the maps of the worlds of these numbers. ArgumentError:
    there is no such class.
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
    """Let a policy drive in all worlds of a class.

    Parameters
    ----------
    policy : callable
        Makes the policy of a `Setup`, for example a class.
    kind : str
        One of `CLASSES`.
    count : int
        Number of worlds.
    seed : int
        Of the benchmark.
    first : int
        Number of the first one.
    threads : int
        Threads of the simulation.

    Raises
    ------
    ArgumentError
        An argument is wrong, or the policy has no method ``act``, or returns something
        else than (n, 2) finite numbers.
    """
    count = arguments.whole(count, "count", low=1, high=MAX_WORLDS)
    seed = arguments.whole(seed, "seed", low=0, high=2**31)
    first = arguments.whole(first, "first", low=0, high=MAX_WORLDS)
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
    """The episodes of a class of worlds."""

    def __init__(
        self, task: Navigate, w: Worlds, kind: str, seed: int, first: int
    ) -> None:
        self._task, self._w, self._kind, self._first = task, w, kind, first
        n = len(w)
        task.begin(w)
        everyone = np.arange(n)
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
        """Let the policy drive until all have ended."""
        w, task = self._w, self._task
        n = len(w)
        driver = policy(self._setup())
        if not callable(getattr(driver, "act", None)):
            raise ArgumentError(
                "policy: expected a class with a method act(), found "
                f"{_name_of(policy)} without one"
            )

        observed = np.zeros((n, *task.observation_bounds(w)[0].shape), np.float32)
        rewards, ended, cut = np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        active = np.ones(n, np.bool_)
        outcomes, times = np.full(n, "timeout", dtype="U9"), np.zeros(n)
        while active.any():
            task.observe(w, observed)
            task.act(
                w,
                np.clip(self._checked(driver.act(observed.copy()), active), -1.0, 1.0),
            )
            place, turn = w.pose[:, 0, :2].copy(), w.vel[:, 0, 2].copy()
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
        laser, speed = spec.lasers[0], spec.limits.max_speed
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
        """Actions; 0 where the episode has ended."""
        wanted = (len(self._w), 2)
        try:
            found = np.asarray(actions)
        except ValueError:  # rows of several lengths
            found = None

        if found is None or found.shape != wanted or found.dtype.kind not in "fiu":
            raise ArgumentError(
                f"act: expected an array of numbers, {wanted}, found {arguments.found(actions)}"
            )

        if not np.isfinite(found[active]).all():
            raise ArgumentError("act: expected finite numbers")
        return np.where(active[:, None], found, 0.0).astype(np.float64)

    def _measure(self, active: NDArray[np.bool_], place: F8, turn: F8) -> None:
        """Add what has happened in a step."""
        w = self._w
        d = w.pose[:, 0, :2] - place
        self._way += np.where(
            active, np.sqrt(d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1]), 0.0
        )
        self._turning += np.where(active, np.abs(w.vel[:, 0, 2] - turn) / w.dt, 0.0)
        here = w.pose[:, :1, :2]
        gap = (
            distances_to(
                w.near_walls(here, reach=FREE_M + self._radius, count=1), here
            )[:, 0]
            - self._radius
        )
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
"""Columns of `lines_of`."""


def lines_of(results: Iterable[Result]) -> list[str]:
    """Results as lines of CSV, without titles; numbers with all their digits."""
    return [
        f"{r.kind},{r.world},{r.outcome},{r.time_s!r},{r.way_m!r},{r.clearance_m!r},{r.turning!r}"
        for r in results
    ]


def digest_of(results: Iterable[Result]) -> str:
    """A hash of results: equal ones are equal to the last digit."""
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
