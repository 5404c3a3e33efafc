"""Worlds with a task: what all kinds of environments stand on."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable
from itertools import cycle
from typing import Any, Final

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.errors import ArgumentError, NotNowError, WorldFaultError, did_you_mean
from botyard.learning.tasks.base import B1, F4, I8, EpisodeDraws, Task, ask
from botyard.names import shown
from botyard.worlds.worlds import Worlds

PICTURE_PIXELS: Final = 480
"""Width of rendered pictures."""
MAX_SEED: Final = 2**63
log = logging.getLogger("botyard.learning")


class TaskBatch:
    """Worlds with a task, and the arrays of a step.

    Arrays that are handed out are copies, or, without `copy`, of two sets that take
    turns: what a step returned stays as it is until the step after the next. Resets
    have sets of their own: worlds may be reset between two steps. Infos are always
    copies: a task may give arrays that it goes on writing into.
    """

    def __init__(self, task: Task, n: int, threads: int, copy: bool, seed: int) -> None:
        self.task = task
        self.worlds: Worlds = Worlds(
            task.scenes,
            task.robots,
            n,
            seeds=row_of_seeds(seed, n),
            step=task.step,
            threads=threads,
            sensors=task.sensors,
            boxes=task.boxes,
        )
        self._owner = task._owner = object()
        task._begin(self.worlds)
        low, high = task.observation_bounds(self.worlds)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        low, high = task.action_bounds(self.worlds)
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self._bounds = self.action_space.low, self.action_space.high
        self._own_shape = self.action_space.shape
        self._shape = len(self.worlds), *self._own_shape
        self._copy = arguments.flag(copy, "copy")
        sets = 1 if copy else 2
        self._sets = cycle([self._arrays(n) for _ in range(sets)])
        self._first = cycle(
            [
                np.zeros((n, *self.observation_space.shape), np.float32)
                for _ in range(sets)
            ]
        )
        self.everyone: I8 = np.arange(n)
        self.has_begun = False
        self._faults: dict[int, str] = {}

    def has_its_spaces(self) -> bool:
        """Whether the task still has the spaces that the arrays were made for."""
        spaces = (
            (self.task.observation_bounds, self.observation_space),
            (self.task.action_bounds, self.action_space),
        )
        return all(
            gymnasium.spaces.Box(*bounds(self.worlds), dtype=np.float32) == space
            for bounds, space in spaces
        )

    def _arrays(self, n: int) -> tuple[F4, NDArray[np.float64], B1, B1]:
        shape = self.observation_space.shape
        return (
            np.zeros((n, *shape), np.float32),
            np.zeros(n),
            np.zeros(n, np.bool_),
            np.zeros(n, np.bool_),
        )

    def ask(self, method: Callable[..., object], *arrays: NDArray[Any]) -> None:
        """Let the task write into arrays. ArgumentError: it returns something instead."""
        ask(self.task, method, self.worlds, *arrays)

    def infos(self) -> dict[str, NDArray[Any]]:
        """What the task tells of each world, in its own arrays; ``fault`` is added.
        ArgumentError: it has not a row for each.
        """
        infos, n = self.task.info(self.worlds), len(self.worlds)
        if not isinstance(infos, dict):
            raise ArgumentError(
                f"{type(self.task).__name__}.info: expected a dict, found {arguments.found(infos)}"
            )

        for name, values in infos.items():
            if (
                not isinstance(values, np.ndarray)
                or values.ndim == 0
                or len(values) != n
            ):
                raise ArgumentError(
                    f'{type(self.task).__name__}.info: "{name}": expected an array with a row for each of {n} worlds, '
                    f"found {arguments.found(values)}"
                )

        if self._faults:
            reasons = np.full(n, None, object)
            reasons[list(self._faults)] = list(self._faults.values())
            infos = {**infos, "fault": reasons}

        return infos

    def info(self) -> dict[str, Any]:
        """What the task tells of the first world, and why it was stopped."""
        return {
            name: values[0] if values.ndim == 1 else values[0].copy()
            for name, values in self.infos().items()
        }

    def step(self, mask: B1 | None = None) -> None:
        """Advance all worlds, or those of a mask, by a step.

        A world with a wrong command, parameter or state stops alone: `ends` truncates
        it, and infos say why. It begins its next episode at once, so that the task
        looks at a world that is right.
        """
        self._faults = {}
        try:
            self.worlds.step(mask=mask)
        except WorldFaultError as error:
            log.warning("%s; its episode ends", error)
            self._faults = error.faults
            self._restart(np.array(sorted(error.faults)))

    def _restart(self, chosen: I8, seeds: NDArray[np.uint64] | None = None) -> None:
        """Begin episodes in worlds. Those in which a parameter is wrong have begun,
        too, and stop again at the next step.
        """
        # a fault is told by the step that meets it
        with contextlib.suppress(WorldFaultError):
            self.worlds.reset(
                chosen,
                seeds=seeds,
                poses=self.task.poses,
                box_poses=self.task.box_poses,
            )

    def ends(self, rewards: NDArray[np.float64], terminated: B1, truncated: B1) -> None:
        """Ask the task for rewards and ends of a step. A world that was stopped is
        truncated, with reward 0.
        """
        self.ask(self.task.reward, rewards)
        self.ask(self.task.done, terminated, truncated)
        if self._faults:
            stopped = list(self._faults)
            rewards[stopped], terminated[stopped], truncated[stopped] = 0.0, False, True

    def next_set(self) -> tuple[F4, NDArray[np.float64], B1, B1]:
        """Arrays of a step, for observations, rewards, terminations and truncations."""
        return next(self._sets)

    def next_first(self) -> F4:
        """The array of a reset, for observations; what stopped worlds before is
        forgotten.
        """
        self._faults = {}
        return next(self._first)

    def given(self, *arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Arrays as they are handed out."""
        return tuple(array.copy() for array in arrays) if self._copy else arrays

    def begin(self, chosen: I8, seeds: NDArray[np.uint64] | None = None) -> None:
        """Begin episodes in some worlds. NotNowError: the task was given to another
        environment.
        """
        self._check_owner()
        self._restart(chosen, seeds)
        self.task.on_reset(self.worlds, chosen, EpisodeDraws(self.worlds.seeds[chosen]))
        self.has_begun = True

    def act(self, actions: ArrayLike, *, of_one: bool = False) -> None:
        """Take the actions of a step, or `of_one` world alone.

        ResetNeeded: no episode has begun yet. NotNowError: the task was given to
        another environment.
        """
        if not self.has_begun:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        self._check_owner()
        given = (
            as_actions(actions, self._own_shape, "action")[None]
            if of_one
            else as_actions(actions, self._shape)
        )
        if (
            not math.isfinite(given.sum()) and not np.isfinite(given).all()
        ):  # a sum may be too large for its type
            raise ArgumentError("actions: expected finite numbers")

        low, high = self._bounds
        found = self.task.act(self.worlds, np.minimum(np.maximum(given, low), high))
        if found is not None:
            raise ArgumentError(
                f"{type(self.task).__name__}.act: expected that it writes into "
                f"w.command and returns None, found {arguments.found(found)}"
            )

    def _check_owner(self) -> None:
        """Two environments with one task would write into the same goals."""
        if self.task._owner is not self._owner:
            raise NotNowError(
                "this task was given to another environment since: give each "
                "environment a task of its own (copy.deepcopy(task))"
            )

    def picture(self, world: int) -> NDArray[np.uint8]:
        """A world from above with the marks of its task, (height, width, 3): always of
        one size, as movies need it.
        """
        marks = self.task.marks(world)
        image = self.worlds.world(world).render(
            size=(PICTURE_PIXELS, PICTURE_PIXELS), scans=False, goals=marks
        )
        return np.asarray(image.convert("RGB"))


class OfBatch:
    """What both kinds of environments show of their batch."""

    _batch: TaskBatch

    @property
    def worlds(self) -> Worlds:
        """The worlds; of a single environment `Worlds` of one."""
        return self._batch.worlds

    @property
    def task(self) -> Task:
        """The task."""
        return self._batch.task

    @property
    def _fps(self) -> int:
        """At so many pictures in a second, one for each step, movies run in real time."""
        return max(1, round(1.0 / self.worlds.dt))


def checked_mode(render_mode: str | None) -> str | None:
    """A render mode. ArgumentError: there is none of that name."""
    if render_mode not in (None, "rgb_array"):
        raise ArgumentError(
            f'render_mode: expected rgb_array or None, found "{render_mode}"'
        )

    return render_mode


def check_options(options: dict[str, Any] | None, *known: str) -> None:
    """Check the options of a reset. ArgumentError: one is not among those that are
    known.
    """
    for name in options or ():
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise ArgumentError(
                f'options: expected {" or ".join(known) or "none"}, found "{shown(name, 60)}"{hint}'
            )


def as_actions(given: ArrayLike, shape: tuple[int, ...], what: str = "actions") -> F4:
    """Actions as an array of a shape. ArgumentError: they are no numbers, or of another
    shape.
    """
    try:
        found = np.asarray(given, np.float32)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{what}: expected numbers, found {arguments.found(given)}"
        ) from None

    if found.shape != shape:
        raise ArgumentError(
            f"{what}: expected an array of shape {shape}, found one of shape {found.shape}"
        )

    return found


def row_of_seeds(seed: int, n: int) -> NDArray[np.uint64]:
    """Seeds of n worlds: `seed`, `seed` + 1, …"""
    first = arguments.whole(seed, "seed", low=0, high=MAX_SEED)
    return np.uint64(first) + np.arange(n, dtype=np.uint64)


__all__ = [
    "MAX_SEED",
    "OfBatch",
    "TaskBatch",
    "as_actions",
    "check_options",
    "checked_mode",
    "row_of_seeds",
]
