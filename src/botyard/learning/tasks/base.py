"""What a task is: what is to be learned in many worlds at once, as functions of arrays.

A task sees `botyard.Worlds` and writes into arrays that it is given; nothing is called
for each world. All that it draws at random is a function of the seed of a world, of the
number of its episode, and of the draw, so that any episode can be repeated alone.
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
"""Device number of what tasks draw, in the random streams of episodes."""
START_STREAM: Final = TASK_STREAM + 1
"""Device number of the places of robots that tasks draw."""

MAX_INTEGER: Final = 2**62
MAX_SPAN: Final = 2**32
"""Of whole numbers that are drawn: draws have 53 bits, and all numbers of this span are
still as probable as others.
"""


class EpisodeDraws:
    """Draws for some worlds, each from a stream of its episode; the next call gives
    other numbers.

    It is no generator of NumPy: a call gives a row for each world, the same on every
    machine, whatever worlds are drawn for beside it.

    Parameters
    ----------
    seeds : (k,) uint64 array
        Seeds of the episodes, `Worlds.seeds` of those worlds.
    stream : int
        Number of the stream.
    """

    def __init__(self, seeds: NDArray[np.uint64], stream: int = TASK_STREAM) -> None:
        self._keys = stream_keys(seeds, stream)
        self._drawn = 0

    def uniform(self, low: float = 0.0, high: float = 1.0) -> F8:
        """A number for each world, uniform in [low, high), (k,)."""
        self._drawn += 1
        return low + (high - low) * uniform(self._keys, self._drawn - 1)

    def uniforms(self, count: int, low: float = 0.0, high: float = 1.0) -> F8:
        """`count` such numbers for each world, (k, count)."""
        return np.stack([self.uniform(low, high) for _ in range(count)], axis=1)

    def normal(self, mean: float = 0.0, std: float = 1.0) -> F8:
        """A number for each world, normally distributed, (k,). Box & Muller 1958, of
        two draws.
        """
        away = np.sqrt(
            -2.0 * elementwise.log(1.0 - self.uniform())
        )  # of (0, 1]: log(0) is −∞
        return mean + std * (away * elementwise.cos(2.0 * math.pi * self.uniform()))

    def integers(self, low: int, high: int) -> I8:
        """A whole number for each world, `low`, …, `high` − 1 with the same
        probability, (k,).

        Raises
        ------
        ArgumentError
            They are no whole numbers, `high` is not above `low`, or they are more than
            2³² apart.
        """
        low = arguments.whole(low, "low", low=-MAX_INTEGER, high=MAX_INTEGER)
        high = arguments.whole(high, "high", low=low + 1, high=low + MAX_SPAN)
        return low + np.floor(self.uniform() * (high - low)).astype(np.int64)


class Task(ABC):
    """What is to be learned.

    One object serves one batch of worlds: it may keep arrays with a row for each world.
    An environment that is made with it takes it from the one that had it before.
    `begin` is called once with the worlds, `on_reset` whenever episodes have begun
    (goals, for example), and after each step `reward`, `done` and `observe`.

    Attributes
    ----------
    robots : sequence of models
        Robots of each world, as for `Worlds`: also several models in the place of one,
        of which each episode has one.
    scenes : Scene, path, sequence of them, or function of a number
        The maps, as for `Worlds`.
    step : float
        Time of a step, s.
    max_steps : int
        Steps of an episode, for `done`, which truncates episodes by it: nobody else
        does.
    poses : "free", None, array or function
        Where robots begin, as for `Worlds.reset`.
    boxes : sequence of BoxObject
        Boxes that stand in all maps, as for `Worlds`.
    box_poses : None, array or function
        Where boxes begin, as for `Worlds.reset`.
    sensors : sequence of str or None
        Which sensors measure, as for `Worlds`.
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
    """Of the batch that has this task."""

    @abstractmethod
    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Least and greatest values of an observation, two arrays of one shape."""

    @abstractmethod
    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Least and greatest values of an action, two arrays of one shape."""

    def begin(self, w: Worlds) -> None:  # noqa: B027 - many tasks keep nothing
        """Make the arrays that the task keeps; called once."""

    def _begin(self, w: Worlds) -> None:
        """`begin`, and what the base class itself keeps: a task of a user's own need
        not know of that.
        """
        self.begin(w)

    @abstractmethod
    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Episodes have begun in the worlds `mask`, (k,): their numbers, no bools.
        Choose their goals; `rng` gives k rows.
        """

    @abstractmethod
    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commands of an action for each world, (n, …), within the bounds,
        into `Worlds.command`.
        """

    @abstractmethod
    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observation of each world into `out`, (n, …) float32."""

    @abstractmethod
    def reward(self, w: Worlds, out: F8) -> None:
        """Write the reward of the step that was done into `out`, (n,) float64. In
        worlds at tick 0 an episode has begun instead.
        """

    @abstractmethod
    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """Write whether each episode has ended by itself, and whether it is cut off;
        both (n,) bool.
        """

    def marks(self, world: int) -> ArrayLike:
        """Where pictures of a world mark goals: (k, 2) places x, y (m), or (k, 3) poses
        x, y (m), th (rad).
        """
        return ()

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """What else is known of each world, arrays of (n, …): not for the policy.
        Called after each step.
        """
        return {}


class TeamTask(Task):
    """A task of several robots, each of which observes, acts and is rewarded for
    itself.

    Observations have the shape (m, k) for m robots, actions (m, a). What Gymnasium
    calls the reward is the mean of those of the robots; PettingZoo's environments
    (`ParallelEnvironment`) give each robot its own. An episode ends for all robots at
    once.
    """

    @abstractmethod
    def rewards(self, w: Worlds, out: F8) -> None:
        """Write the reward of each robot for the step that was done into `out`, (n, m)
        float64.
        """

    def _begin(self, w: Worlds) -> None:
        self.of_robots: F8 = np.zeros((len(w), len(w.names)))
        """What `rewards` wrote last, (n, m)."""
        super()._begin(w)

    def reward(self, w: Worlds, out: F8) -> None:
        """The mean of the robots' rewards. Where an episode has begun instead of a
        step, there are none.
        """
        ask(self, self.rewards, w, self.of_robots)
        self.of_robots[w.tick == 0] = 0.0
        out[:] = mean_of(self.of_robots)


def ask(
    task: Task, method: Callable[..., object], w: Worlds, *arrays: NDArray[Any]
) -> None:
    """Let a method of a task write into arrays. ArgumentError: it returns something
    instead, which would be lost.
    """
    found = method(w, *arrays)
    if found is not None:
        raise ArgumentError(
            f"{type(task).__name__}.{method.__name__}: expected that it writes "
            "into the arrays that it is given and returns None, "
            f"found {arguments.found(found)}"
        )


def mean_of(values: F8) -> F8:
    """Means over the last axis, added one after the other: the same bits for any number
    of rows.
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
