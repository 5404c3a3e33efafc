"""What a task is: what is to be learned in many worlds at once, as functions of arrays.

A task sees `botyard.Worlds` and writes into arrays that it is given; nothing is called for each world. All that it draws at random is a
function of the seed of a world, of the number of its episode, and of the draw, so that any episode can be repeated alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.rng import stream_keys, uniform
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.sim.worldmaps import Scenes
from botyard.sim.worlds import Worlds

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
B1 = NDArray[np.bool_]

TASK_STREAM: Final = (1 << 32) + 16
"""Device number of what tasks draw, in the random streams of episodes."""


class EpisodeDraws:
    """Draws for some worlds, each from the stream of its present episode; the next call gives other numbers.

    Parameters
    ----------
    worlds : Worlds
        All worlds.
    chosen : (k,) int array
        Numbers of those that it draws for.
    """

    def __init__(self, worlds: Worlds, chosen: I8) -> None:
        self._keys = stream_keys(worlds.seeds[chosen], TASK_STREAM)
        self._drawn = 0

    def uniform(self, low: float = 0.0, high: float = 1.0) -> F8:
        """A number for each world, uniform in [low, high), (k,)."""
        self._drawn += 1
        return low + (high - low) * uniform(self._keys, self._drawn - 1)


class Task(ABC):
    """What is to be learned.

    One object serves one batch of worlds: it may keep arrays with a row for each world. `begin` is called once with the worlds, `on_reset`
    whenever episodes have begun (goals, for example), and after each step `reward`, `done` and `observe`.

    Attributes
    ----------
    robots : sequence of models
        Robots of each world.
    scenes : Scene, path, sequence of them, or function of a number
        The maps, as for `Worlds`.
    step : float
        Time of a step, s.
    max_steps : int
        Episodes are truncated after so many steps.
    poses : "free" or None
        Where robots begin, as for `Worlds.reset`.
    sensors : sequence of str or None
        Which sensors measure, as for `Worlds`.
    """

    robots: Sequence[str | Path | RobotSpec] = ("p3dx",)
    scenes: Scenes = Scene()
    step: float = 0.1
    max_steps: int = 300
    poses: Any = "free"
    sensors: Sequence[str] | None = None

    @abstractmethod
    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Least and greatest values of an observation, two arrays of one shape."""

    @abstractmethod
    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Least and greatest values of an action, two arrays of one shape."""

    def begin(self, w: Worlds) -> None:  # noqa: B027 - many tasks keep nothing
        """Make the arrays that the task keeps; called once."""

    @abstractmethod
    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Episodes have begun in the worlds `mask` (numbers, (k,)): choose their goals."""

    @abstractmethod
    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commands of an action for each world, (n, …), into `Worlds.command`."""

    @abstractmethod
    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observation of each world into `out`, (n, …) float32."""

    @abstractmethod
    def reward(self, w: Worlds, out: F8) -> None:
        """Write the reward of the step that was done into `out`, (n,) float64."""

    @abstractmethod
    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """Write whether each episode has ended by itself, and whether it is cut off; both (n,) bool."""

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """What else is known of each world, arrays of (n, …): not for the policy. Called after each step."""
        return {}


__all__ = ["B1", "F4", "F8", "I8", "EpisodeDraws", "Task"]
