"""Many worlds with one task, as all kinds of environments use them."""

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
"""Width and height of rendered images, pixels."""
MAX_SEED: Final = 2**63
log = logging.getLogger("botyard.learning")


class TaskBatch:
    """Many worlds with one task, and the arrays that a step fills.

    With `copy`, callers get copies of the arrays. Without it, two sets of arrays take
    turns: the result of a step stays valid until the step after the next. Resets use
    sets of their own, because worlds may be reset between two steps. Infos are always
    copies, because a task may keep writing into its arrays.
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
        # The last environment that gets a task owns it: `_check_owner` compares this
        # object.
        self._owner = task._owner = object()
        task._begin(self.worlds)
        # Called after `begin`: bounds may depend on arrays of the task.
        low, high = task.observation_bounds(self.worlds)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        low, high = task.action_bounds(self.worlds)
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self._bounds = self.action_space.low, self.action_space.high
        self._own_shape = self.action_space.shape
        self._shape = len(self.worlds), *self._own_shape
        self._copy = arguments.flag(copy, "copy")
        # Without `copy` there are two sets, so that a learner can still read the
        # previous step.
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
        """Return whether the task's spaces are still the ones for which the arrays were made."""
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
        """Call a method of the task that writes into arrays.

        Parameters
        ----------
        method : callable
            Method of the task that takes the worlds and the arrays.
        *arrays : array
            Output: arrays with a row for each world.

        Raises
        ------
        ArgumentError
            The method returns a value instead of writing into the arrays.
        """
        ask(self.task, method, self.worlds, *arrays)

    def infos(self) -> dict[str, NDArray[Any]]:
        """Return the task's info of all worlds, as the task's own arrays.

        Returns
        -------
        dict of str to array
            Arrays with one row for each world. ``fault`` is added if a world stopped in
            this step: the reason, or None.

        Raises
        ------
        ArgumentError
            The task's info is not a dict of arrays with one row for each world.
        """
        infos, n = self.task.info(self.worlds), len(self.worlds)
        # Check the info here, where the message can name the task.
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
            # Infos need a row for each world, also for the worlds without a fault.
            reasons = np.full(n, None, object)
            reasons[list(self._faults)] = list(self._faults.values())
            infos = {**infos, "fault": reasons}

        return infos

    def info(self) -> dict[str, Any]:
        """Return the info of the first world, and the reason if that world stopped."""
        return {
            name: values[0] if values.ndim == 1 else values[0].copy()
            for name, values in self.infos().items()
        }

    def step(self, mask: B1 | None = None) -> None:
        """Advance all worlds by a step, or only some of them.

        A wrong command, parameter or state stops only its own world. `ends` truncates
        that world's episode, and the infos state the reason. The world starts its next
        episode at once, so that the task always reads a valid world.

        Parameters
        ----------
        mask : (n,) bool, optional
            Worlds to advance. Default: all.
        """
        self._faults = {}
        try:
            self.worlds.step(mask=mask)
        except WorldFaultError as error:
            log.warning("%s; the episode of this world ends", error)
            # The other worlds have finished their step: only the worlds with a fault
            # restart.
            self._faults = error.faults
            self._restart(np.array(sorted(error.faults)))

    def _restart(self, chosen: I8, seeds: NDArray[np.uint64] | None = None) -> None:
        """Start episodes in some worlds.

        A world with a wrong parameter starts as well, and stops again at its next step.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        seeds : (k,) uint64, optional
            Seeds whose first episode starts. Default: the next episode of each world.
        """
        # The step that meets the fault reports it, so a reset stays silent.
        with contextlib.suppress(WorldFaultError):
            self.worlds.reset(
                chosen,
                seeds=seeds,
                poses=self.task.poses,
                box_poses=self.task.box_poses,
            )

    def ends(self, rewards: NDArray[np.float64], terminated: B1, truncated: B1) -> None:
        """Compute rewards and ends of episodes after a step, by the task's methods.

        The episode of a world that stopped is truncated, with reward 0.

        Parameters
        ----------
        rewards : (n,) float64
            Output array: rewards of the step.
        terminated, truncated : (n,) bool
            Output: whether the episode ended by the rules of the task, or was cut off.

        Raises
        ------
        ArgumentError
            A method of the task returns a value instead of writing into the arrays.
        """
        self.ask(self.task.reward, rewards)
        self.ask(self.task.done, terminated, truncated)
        # The task has seen the new episode of a stopped world, so its results do not
        # apply.
        if self._faults:
            stopped = list(self._faults)
            rewards[stopped], terminated[stopped], truncated[stopped] = 0.0, False, True

    def next_set(self) -> tuple[F4, NDArray[np.float64], B1, B1]:
        """Return the arrays for the results of a step; calls use the sets of arrays in turn.

        Returns
        -------
        observations : (n, …) float32
            Array for observations. Like the other arrays, it still has the values of an earlier
            step.
        rewards : (n,) float64
            Array for rewards.
        terminated, truncated : (n,) bool
            Arrays for the ends of episodes.
        """
        return next(self._sets)

    def next_first(self) -> F4:
        """Return the array for the observations of a reset.

        The call discards the faults of the previous step.
        """
        self._faults = {}
        return next(self._first)

    def given(self, *arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return arrays to the caller: copies, or the arrays themselves if `copy` is off.

        Parameters
        ----------
        *arrays : array
            Arrays that a step has filled.

        Returns
        -------
        tuple of array
            Copies of the arrays, or the arrays themselves if `copy` is off.
        """
        return tuple(array.copy() for array in arrays) if self._copy else arrays

    def begin(self, chosen: I8, seeds: NDArray[np.uint64] | None = None) -> None:
        """Start episodes in some of the worlds.

        Parameters
        ----------
        chosen : (k,) int64
            Numbers of the worlds.
        seeds : (k,) uint64, optional
            Seeds whose first episode starts. Default: the next episode of each world.

        Raises
        ------
        NotNowError
            Another environment has taken the task.
        """
        self._check_owner()
        self._restart(chosen, seeds)
        # The draws of a task depend on the episode's seed, so equal seeds give equal
        # draws.
        self.task.on_reset(self.worlds, chosen, EpisodeDraws(self.worlds.seeds[chosen]))
        self.has_begun = True

    def act(self, actions: ArrayLike, *, of_one: bool = False) -> None:
        """Let the task apply the actions of a step.

        Parameters
        ----------
        actions : array
            Actions, (n, …) with the shape of `action_space` after the first axis. They
            are clipped to its bounds.
        of_one : bool
            Whether `actions` is the action of the only world, without the first axis.

        Raises
        ------
        ResetNeeded
            No episode has started yet.
        NotNowError
            Another environment has taken the task.
        ArgumentError
            The actions are not numbers, have another shape or are not finite.
        """
        if not self.has_begun:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        self._check_owner()
        given = (
            as_actions(actions, self._own_shape, "action")[None]
            if of_one
            else as_actions(actions, self._shape)
        )
        # The sum is a quick test. It can overflow for finite actions, so each number is
        # checked before the error.
        if not math.isfinite(given.sum()) and not np.isfinite(given).all():
            raise ArgumentError(
                "actions: expected finite numbers, found NaN or infinity"
            )
        low, high = self._bounds
        # Gymnasium's environments clip actions: a learner explores beyond the bounds.
        found = self.task.act(self.worlds, np.minimum(np.maximum(given, low), high))
        if found is not None:
            raise ArgumentError(
                f"{type(self.task).__name__}.act: expected a method that writes "
                "into w.command and returns None, "
                f"found {arguments.found(found)}"
            )

    def _check_owner(self) -> None:
        """Raise NotNowError if another environment has taken the task.

        Two environments with one task would overwrite each other's goals.
        """
        if self.task._owner is not self._owner:
            raise NotNowError(
                "another environment has taken this task: give each environment "
                "its own task (copy.deepcopy(task))"
            )

    def picture(self, world: int) -> NDArray[np.uint8]:
        """Render a world from above with the marks of its task.

        All images have one size, because encoders of video need it.

        Parameters
        ----------
        world : int
            Number of the world.

        Returns
        -------
        (height, width, 3) uint8
            Red, green and blue, from the top row to the bottom row.
        """
        marks = self.task.marks(world)
        # The picture has no scans, which would cover the marks.
        image = self.worlds.world(world).render(
            size=(PICTURE_PIXELS, PICTURE_PIXELS), scans=False, goals=marks
        )
        return np.asarray(image.convert("RGB"))


class OfBatch:
    """Properties that each kind of environment takes from its `TaskBatch`."""

    _batch: TaskBatch

    @property
    def worlds(self) -> Worlds:
        """Worlds of the environment. An environment of one world has a `Worlds` of length 1."""
        return self._batch.worlds

    @property
    def task(self) -> Task:
        """Task that defines observations, rewards and the end of an episode."""
        return self._batch.task

    @property
    def _fps(self) -> int:
        """Frame rate of video, in images per second.

        With one image for each step, video at this rate plays in real time.
        """
        return max(1, round(1.0 / self.worlds.dt))


def checked_mode(render_mode: str | None) -> str | None:
    """Return a render mode, checked to be known.

    Raises
    ------
    ArgumentError
        The mode is unknown.
    """
    if render_mode not in (None, "rgb_array"):
        raise ArgumentError(
            f'render_mode: expected rgb_array or None, found "{render_mode}"'
        )

    return render_mode


def check_options(options: dict[str, Any] | None, *known: str) -> None:
    """Check that the options of a reset are known.

    Parameters
    ----------
    options : dict or None
        Options that the caller of ``reset`` passed.
    *known : str
        Names that the environment knows.

    Raises
    ------
    ArgumentError
        An option is not one of the `known` names.
    """
    for name in options or ():
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise ArgumentError(
                f'options: expected {" or ".join(known) or "none"}, found "{shown(name, 60)}"{hint}'
            )


def as_actions(given: ArrayLike, shape: tuple[int, ...], what: str = "actions") -> F4:
    """Return actions as a float32 array of a shape.

    Parameters
    ----------
    given : array
        Actions as the caller passed them. A float32 array is not copied.
    shape : tuple of int
        Expected shape, which is not broadcast.
    what : str
        Name of the parameter in error messages.

    Raises
    ------
    ArgumentError
        The actions are not numbers, or have another shape.
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
    """Return the seeds of n worlds: `seed`, `seed` + 1, …

    Returns
    -------
    (n,) uint64
        Seed of each world.

    Raises
    ------
    ArgumentError
        `seed` is not a whole number from 0 to `MAX_SEED`.
    """
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
