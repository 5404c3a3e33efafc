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

# The offset keeps these streams apart from the streams of robots' devices.
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
        """Return a uniformly distributed number for each world.

        Parameters
        ----------
        low, high : float
            Bounds of the numbers; `high` itself is excluded.

        Returns
        -------
        (k,) float64
            One number for each world, in the order of the seeds.
        """
        # Each call takes the next number of every stream, so the order of calls
        # matters.
        self._drawn += 1
        return low + (high - low) * uniform(self._keys, self._drawn - 1)

    def uniforms(self, count: int, low: float = 0.0, high: float = 1.0) -> F8:
        """Return several uniformly distributed numbers for each world.

        Parameters
        ----------
        count : int
            How many numbers each world gets, at least 1.
        low, high : float
            Bounds of the numbers; `high` itself is excluded.

        Returns
        -------
        (k, count) float64
            One row for each world, in the order of the seeds.
        """
        # Columns are drawn one after the other, as `count` calls of `uniform` would.
        return np.stack([self.uniform(low, high) for _ in range(count)], axis=1)

    def normal(self, mean: float = 0.0, std: float = 1.0) -> F8:
        """Return a normally distributed number for each world.

        Each number uses two uniform draws (Box & Muller 1958).

        Parameters
        ----------
        mean, std : float
            Mean and standard deviation of the numbers.

        Returns
        -------
        (k,) float64
            One number for each world, in the order of the seeds.
        """
        # 1 − u is in (0, 1], so that log never gets 0.
        away = np.sqrt(-2.0 * elementwise.log(1.0 - self.uniform()))
        # The method of Box and Muller; the second normal value of each pair is not
        # used.
        return mean + std * (away * elementwise.cos(2.0 * math.pi * self.uniform()))

    def integers(self, low: int, high: int) -> I8:
        """Return a whole number for each world. All numbers are equally probable.

        Parameters
        ----------
        low, high : int
            Bounds of the numbers; `high` itself is excluded.

        Returns
        -------
        (k,) int64
            One number for each world, in the order of the seeds.

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
    """Definition of a learning task: robots, maps, observations, actions, rewards, ends of
    episodes.

    One object serves one batch of worlds and may keep arrays with a row for each world.
    A new environment takes the task away from the previous one.

    The environment calls `begin` once with the worlds, `on_reset` whenever episodes
    have started, and `reward`, `done` and `observe` after each step.

    Attributes
    ----------
    robots : sequence of models
        Robots of each world, as for `Worlds`. A sequence of models in place of a model:
        each episode has one model of the sequence.
    scenes : Scene, path, sequence of them, or function of a number
        The maps, as for `Worlds`.
    step : float
        Duration of a step, s.
    max_steps : int
        Maximum number of steps of an episode. `done` must truncate episodes after this
        number: no other code does.
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
        """Return the bounds of the observations.

        Parameters
        ----------
        w : Worlds
            Worlds of the task, for example for the number of rays. The arrays of the
            task exist already.

        Returns
        -------
        low, high : arrays of float32
            Bounds of an observation of one world, two arrays of one shape. Observations
            beyond them are not clipped.
        """

    @abstractmethod
    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of the actions.

        Parameters
        ----------
        w : Worlds
            Worlds of the task. The arrays of the task exist already.

        Returns
        -------
        low, high : arrays of float32
            Bounds of an action for one world, two arrays of one shape. Actions beyond
            them are clipped before `act` gets them.
        """

    def begin(self, w: Worlds) -> None:  # noqa: B027 - many tasks keep nothing
        """Make the arrays that the task needs; the environment calls this once.

        Parameters
        ----------
        w : Worlds
            The n worlds of the environment. No episode has started yet.
        """

    def _begin(self, w: Worlds) -> None:
        """Call the task's `begin`, and make the arrays of the base class.

        The method is separate, so that a user's `begin` need not call `super`.
        """
        self.begin(w)

    @abstractmethod
    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Prepare episodes that have just started, for example their goals.

        Parameters
        ----------
        w : Worlds
            All n worlds. Bodies are at their start poses.
        mask : (k,) int64
            Numbers of the worlds where episodes have started, not bools. The task must
            leave the rows of other worlds as they are.
        rng : EpisodeDraws
            Draws with a row for each of these k worlds. They depend on the episodes'
            seeds.
        """

    @abstractmethod
    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commands for the actions into `Worlds.command`.

        Parameters
        ----------
        w : Worlds
            All n worlds before the step.
        actions : (n, …) array
            Actions of all worlds, clipped to the bounds.
        """

    @abstractmethod
    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observation of each world.

        Parameters
        ----------
        w : Worlds
            All n worlds, after a step or the start of episodes.
        out : (n, …) float32
            Output: one row for each world, with the shape of `observation_bounds`.
        """

    @abstractmethod
    def reward(self, w: Worlds, out: F8) -> None:
        """Write the reward of the last step.

        Parameters
        ----------
        w : Worlds
            All n worlds after the step. Worlds at tick 0 have started an episode in
            this step, and the environment sets their reward to 0.
        out : (n,) float64
            Output: reward of each world.
        """

    @abstractmethod
    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """Write which episodes have ended.

        Parameters
        ----------
        w : Worlds
            All n worlds after the step; `reward` has been called.
        terminated : (n,) bool
            Output: whether the episode has ended by the rules of the task.
        truncated : (n,) bool
            Output: whether it was cut off, for example by `max_steps`.
        """

    def marks(self, world: int) -> ArrayLike:
        """Return the goals of a world, which images of the world show.

        Parameters
        ----------
        world : int
            Number of the world.

        Returns
        -------
        (k, 2) or (k, 3) array
            Positions x, y in m, or poses x, y in m and heading in rad; empty: no marks.
        """
        return ()

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return further facts about each world, not meant for the policy.

        The environment calls it after each step and each reset.

        Parameters
        ----------
        w : Worlds
            All n worlds.

        Returns
        -------
        dict of str to array
            Arrays with one row for each world. ``success`` is a bool in all tasks of
            botyard.
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
        """Write each robot's reward for the last step.

        Parameters
        ----------
        w : Worlds
            All n worlds after the step.
        out : (n, m) float64
            Output: reward of each of the m robots, in the order of `Worlds.names`.
            Rewards of worlds at tick 0 are set to 0 afterwards.
        """

    def _begin(self, w: Worlds) -> None:
        # The array is kept, so that a step allocates nothing.
        self.of_robots: F8 = np.zeros((len(w), len(w.names)))
        """Rewards that `rewards` wrote in the last step, (n, m)."""
        super()._begin(w)

    def reward(self, w: Worlds, out: F8) -> None:
        """Write the mean of the robots' rewards; 0 for worlds whose episode has just started."""
        ask(self, self.rewards, w, self.of_robots)
        # A world at tick 0 was reset in this step: its previous distances belong to the
        # last episode.
        self.of_robots[w.tick == 0] = 0.0
        out[:] = mean_of(self.of_robots)


def ask(
    task: Task, method: Callable[..., object], w: Worlds, *arrays: NDArray[Any]
) -> None:
    """Call a method of a task that writes into arrays.

    Parameters
    ----------
    task : Task
        Task of the method, for the message of an error.
    method : callable
        Method that takes the worlds and the arrays.
    w : Worlds
        Worlds of the task.
    *arrays : array
        Output: arrays that the method fills.

    Raises
    ------
    ArgumentError
        The method returns a value. The values would be lost, because callers read the
        arrays.
    """
    found = method(w, *arrays)
    # Users often return an array as in a single environment; the result would be
    # ignored.
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

    Parameters
    ----------
    values : (…, m) float64
        Values, with m of at least 1.

    Returns
    -------
    (…) float64
        Mean of each row.
    """
    # A loop adds in a fixed order: NumPy's sum of an axis may differ between
    # processors.
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
