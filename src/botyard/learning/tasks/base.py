"""Base classes of learning tasks, as functions of arrays of many worlds.

A task reads `botyard.Worlds` and writes into arrays that it gets. No function is called
once for each world. Each random draw depends only on the seed of the world, the number
of its episode and the number of the draw, so any episode can be repeated alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.engine.rng import stream_keys, uniform
from botyard.errors import ArgumentError
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Scene
from botyard.numerics import elementwise
from botyard.worlds.maps import Scenes
from botyard.worlds.robot_sets import Model
from botyard.worlds.worlds import Worlds

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
B1 = NDArray[np.bool_]

TASK_STREAM: Final = (1 << 32) + 16
"""Device number of the tasks' draws in the random streams of episodes."""
START_STREAM: Final = TASK_STREAM + 1
"""Device number of the draws of start poses."""

MAX_INTEGER: Final = 2**62
MAX_SPAN: Final = 2**32
"""Maximum span of drawn whole numbers.

Draws have 53 bits: up to this span, all numbers have practically the same probability.
"""


class EpisodeDraws:
    """Random draws for some worlds, each from the stream of its episode.

    Each call draws new numbers. Unlike NumPy's generators, a call returns one row for
    each world. A row is the same on every machine, and does not depend on the other
    worlds of the call.

    Parameters
    ----------
    seeds : (k,) uint64 array
        Seeds of the episodes: rows of `Worlds.seeds`.
    stream : int
        Number of the stream.
    """

    def __init__(self, seeds: NDArray[np.uint64], stream: int = TASK_STREAM) -> None:
        self._keys = stream_keys(seeds, stream)
        self._drawn = 0

    def uniform(self, low: float = 0.0, high: float = 1.0) -> F8:
        """Return a uniform number in [low, high) for each world, (k,)."""
        self._drawn += 1
        return low + (high - low) * uniform(self._keys, self._drawn - 1)

    def uniforms(self, count: int, low: float = 0.0, high: float = 1.0) -> F8:
        """Return `count` uniform numbers in [low, high) for each world, (k, count)."""
        return np.stack([self.uniform(low, high) for _ in range(count)], axis=1)

    def normal(self, mean: float = 0.0, std: float = 1.0) -> F8:
        """Return a normally distributed number for each world, (k,).

        It takes two uniform draws (Box & Muller 1958).
        """
        # 1 − u is in (0, 1], so that log never gets 0.
        away = np.sqrt(-2.0 * elementwise.log(1.0 - self.uniform()))
        return mean + std * (away * elementwise.cos(2.0 * math.pi * self.uniform()))

    def integers(self, low: int, high: int) -> I8:
        """Return a whole number from `low` to `high` − 1 for each world, (k,).

        All numbers are equally probable.

        Raises
        ------
        ArgumentError
            A bound is not a whole number, `high` is not above `low`, or they are more
            than 2³² apart.
        """
        low = arguments.whole(low, "low", low=-MAX_INTEGER, high=MAX_INTEGER)
        high = arguments.whole(high, "high", low=low + 1, high=low + MAX_SPAN)
        # Exact, because the span has at most 32 bits of the draw's 53.
        return low + np.floor(self.uniform() * (high - low)).astype(np.int64)


class Task(ABC):
    """A learning task: robots, maps, observations, actions, rewards, ends of episodes.

    One object serves one batch of worlds and may keep arrays with a row for each world.
    A new environment takes the task away from the previous one.

    The environment calls `begin` once with the worlds, `on_reset` whenever episodes
    have started, and `reward`, `done` and `observe` after each step.

    Attributes
    ----------
    robots : sequence of models
        Robots of each world, as for `Worlds`. A sequence of models in the place of one
        lets each episode have one of them.
    scenes : Scene, path, sequence of them, or function of a number
        The maps, as for `Worlds`.
    step : float
        Duration of a step, s.
    max_steps : int
        Maximum number of steps of an episode. `done` must truncate episodes by it: no
        other code does.
    poses : "free", None, array or function
        Start poses of robots, as for `Worlds.reset`.
    boxes : sequence of BoxObject
        Boxes in all maps, as for `Worlds`.
    box_poses : None, array or function
        Start poses of boxes, as for `Worlds.reset`.
    sensors : sequence of str or None
        Sensors that measure, as for `Worlds`.
    """

    robots: Sequence[Model | Sequence[Model]] = ("p3dx",)
    scenes: Scenes = Scene()
    step: float = 0.1
    max_steps: int = 300
    poses: Any = "free"
    boxes: Sequence[BoxObject] = ()
    box_poses: Any = None
    sensors: Sequence[str] | None = None
    _owner: object = None
    """Object of the batch that owns this task."""

    @abstractmethod
    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of observations, low and high, two arrays of one shape."""

    @abstractmethod
    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of actions, low and high, two arrays of one shape."""

    def begin(self, w: Worlds) -> None:  # noqa: B027 - many tasks keep nothing
        """Make the task's own arrays; called once. Many tasks need none."""

    def _begin(self, w: Worlds) -> None:
        """Call `begin`, and make the arrays of the base class.

        They are apart, so that a user's `begin` need not call `super`.
        """
        self.begin(w)

    @abstractmethod
    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Prepare episodes that have just started, for example their goals.

        `mask` contains the numbers of their worlds, (k,), not bools. Draws of `rng`
        have k
        rows.
        """

    @abstractmethod
    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commands for the actions, (n, …), into `Worlds.command`.

        The actions are within the bounds.
        """

    @abstractmethod
    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observation of each world into `out`, (n, …) float32."""

    @abstractmethod
    def reward(self, w: Worlds, out: F8) -> None:
        """Write the reward of the last step into `out`, (n,) float64.

        Worlds at tick 0 have started an episode in this step and get no reward.
        """

    @abstractmethod
    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """Write the ends of episodes, both (n,) bool.

        `terminated`: the episode has ended by the rules of the task. `truncated`: it
        was cut off.
        """

    def marks(self, world: int) -> ArrayLike:
        """Return the goals that images of a world mark.

        They are positions x, y (m), (k, 2), or poses x, y (m), th (rad), (k, 3).
        """
        return ()

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return further facts about each world, not meant for the policy, (n, …).

        It is called after each step.
        """
        return {}


class TeamTask(Task):
    """A task of several robots, each with its own observation, action and reward.

    Observations have the shape (m, k) for m robots, actions (m, a). Gymnasium gets the
    mean of the robots' rewards. PettingZoo's environments (`ParallelEnvironment`) give
    each robot its own reward. An episode ends for all robots at once.
    """

    @abstractmethod
    def rewards(self, w: Worlds, out: F8) -> None:
        """Write each robot's reward for the last step into `out`, (n, m) float64."""

    def _begin(self, w: Worlds) -> None:
        self.of_robots: F8 = np.zeros((len(w), len(w.names)))
        """Rewards that `rewards` wrote last, (n, m)."""
        super()._begin(w)

    def reward(self, w: Worlds, out: F8) -> None:
        """Write the mean of the robots' rewards, 0 in worlds that have just started."""
        ask(self, self.rewards, w, self.of_robots)
        # A world at tick 0 was reset in this step: the distances of before belong to
        # the last episode.
        self.of_robots[w.tick == 0] = 0.0
        out[:] = mean_of(self.of_robots)


def ask(
    task: Task, method: Callable[..., object], w: Worlds, *arrays: NDArray[Any]
) -> None:
    """Let a method of a task write into arrays.

    Raises
    ------
    ArgumentError
        The method returns a value. The values would be lost, because callers read the
        arrays.
    """
    found = method(w, *arrays)
    if found is not None:
        raise ArgumentError(
            f"{type(task).__name__}.{method.__name__}: expected a method that "
            "writes into its array arguments and returns None, "
            f"found {arguments.found(found)}"
        )


def mean_of(values: F8) -> F8:
    """Return the means over the last axis.

    NumPy adds pairwise, in an order that depends on the shape. Adding one column after
    the other gives the same bits for any number of rows.
    """
    total = values[..., 0].copy()
    for k in range(1, values.shape[-1]):
        total += values[..., k]
    mean: F8 = total / values.shape[-1]
    return mean


__all__ = [
    "B1",
    "F4",
    "F8",
    "I8",
    "START_STREAM",
    "EpisodeDraws",
    "Task",
    "TeamTask",
    "ask",
    "mean_of",
]
