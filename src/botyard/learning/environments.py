"""Gymnasium's interfaces to tasks (gymnasium.farama.org, 1.x).

Many worlds are one vector environment, and one world is one environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.errors import ArgumentError, did_you_mean
from botyard.learning.batch import (
    MAX_SEED,
    OfBatch,
    TaskBatch,
    check_options,
    checked_mode,
    row_of_seeds,
)
from botyard.learning.catalog import find_task
from botyard.learning.tasks.base import B1, Task
from botyard.worlds.worlds import MAX_WORLDS


class VectorEnvironment(OfBatch, gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many worlds as one vector environment of Gymnasium.

    Parameters
    ----------
    task : str, Task or class of tasks
        The task to learn.
    num_envs : int
        Number of worlds.
    autoreset_mode : AutoresetMode or str
        Handling of worlds whose episode has ended. ``NextStep``: the next step starts
        another episode and ignores the action. ``SameStep``: the same step starts
        another episode. The last observation is then ``final_obs`` in infos, and the
        last info is ``final_info``; rows count where ``_final_obs`` and ``_final_info``
        are True. The other infos belong to the new episode. ``Disabled``: the episode
        stays ended until ``reset(options={"reset_mask": mask})``.
    threads : int
        Threads of the simulation. Results do not depend on them.
    copy : bool
        False: observations, rewards and ends are not copied. The arrays of a step stay
        valid until the step after the next.
    max_episode_steps : int, optional
        Gymnasium's time limit: episodes are truncated after this number of steps, even
        if the task would continue.
    render_mode : str, optional
        ``rgb_array``.
    **options
        Arguments of the task's class.

    Raises
    ------
    ArgumentError
        An argument is out of its range or of another type.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as the base class declares it
        "render_modes": ["rgb_array"],
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        task: str | Task | type[Task] = "Navigate",
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        copy: bool = True,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.num_envs: int = arguments.whole(
            num_envs, "num_envs", low=1, high=MAX_WORLDS
        )
        self.autoreset_mode: AutoresetMode = _autoreset_mode(autoreset_mode)
        # Gymnasium's `make_vec` passes this argument to the environment instead of
        # wrapping it.
        self._limit = (
            None
            if max_episode_steps is None
            else arguments.whole(max_episode_steps, "max_episode_steps", low=1)
        )
        self.render_mode: str | None = checked_mode(render_mode)
        self._batch = TaskBatch(
            find_task(task, **options), self.num_envs, threads, copy, seed=1
        )
        self.metadata = {
            **self.metadata,
            "autoreset_mode": self.autoreset_mode,
            "render_fps": self._fps,
        }
        self.single_observation_space = self._batch.observation_space
        self.single_action_space = self._batch.action_space
        self.observation_space = gymnasium.vector.utils.batch_space(
            self.single_observation_space, self.num_envs
        )
        self.action_space = gymnasium.vector.utils.batch_space(
            self.single_action_space, self.num_envs
        )
        self._ended: B1 = np.zeros(self.num_envs, np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | NDArray[Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes in all worlds, or in the worlds of ``options["reset_mask"]``.

        The mask has the shape (n,) and the type bool. The first call must reset all
        worlds.

        World i gets the seed `seed` + i, or the i-th one of a list, and starts the
        first episode of that seed. Without a seed, or with None in the list, a world
        starts the next episode of its current seed. The first call draws missing seeds.

        Returns
        -------
        observations, infos

        Raises
        ------
        ArgumentError
            A seed is not a whole number of at least 0; the mask has another shape or
            type, or excludes worlds without an episode; an option is unknown.
        NotNowError
            Another environment has taken the task.
        """
        batch, n = self._batch, self.num_envs
        # Gymnasium's `reset` seeds `np_random`, which accepts a single number only.
        given_seed: int | Sequence[int | None] | None = (
            seed.tolist() if isinstance(seed, np.ndarray) else seed
        )
        if isinstance(given_seed, int):
            super().reset(seed=given_seed)
        check_options(options, "reset_mask")
        mask = None if options is None else options.get("reset_mask")
        chosen = batch.everyone
        if mask is not None:
            # The type matters: numbers of worlds would pass as a mask of the wrong
            # meaning.
            mask = np.asarray(mask)
            if mask.shape != (n,) or mask.dtype != np.bool_ or not mask.any():
                raise ArgumentError(
                    f"reset_mask: expected {n} bools, at least one of them True, found "
                    f"{arguments.found(mask)}"
                )

            # A world without an episode has no goal, and its observation would be
            # undefined.
            if not (batch.has_begun or mask.all()):
                raise ArgumentError(
                    f"reset_mask: expected all {n} worlds in the first reset, found {mask.sum()}"
                )

            chosen = np.flatnonzero(mask)

        if not batch.has_begun:
            given_seed = _first_seeds(given_seed, self.np_random)
        seeds, given = _seeds_of(given_seed, n)
        # Worlds with a given seed and worlds without one are reset in separate calls:
        # `Worlds.reset` takes seeds for all of its worlds or for none.
        for some, own in (
            (chosen[given[chosen]], seeds),
            (chosen[~given[chosen]], None),
        ):
            if len(some):
                batch.begin(some, None if own is None else own[some])

        self._ended[chosen] = False
        observed = batch.next_first()
        batch.ask(self.task.observe, observed)
        return batch.given(observed)[0], self._infos()

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance all worlds by a step.

        `autoreset_mode` governs worlds whose episode has ended. A wrong command,
        parameter or state truncates only its own world, with reward 0, and ``fault`` in
        infos states the reason.

        Parameters
        ----------
        actions : (n, …) array
            An action for each world, clipped to the bounds of the action space.

        Returns
        -------
        observations : (n, …) float32
        rewards : (n,) float64
        terminated, truncated : (n,) bool
        infos : dict
            Arrays with a row for each world. ``_NAME`` states in which rows ``NAME``
            counts.

        Raises
        ------
        ArgumentError
            The actions are not numbers, have another shape or are not finite.
        ResetNeeded
            `reset` was never called.
        NotNowError
            Another environment has taken the task.
        """
        batch, worlds, task = self._batch, self.worlds, self.task
        batch.act(actions)
        # Get the arrays after the check of the actions, so that refused actions do not
        # use up one of the two sets.
        observed, rewards, terminated, truncated = batch.next_set()
        begun = self._ended if self.autoreset_mode is AutoresetMode.NEXT_STEP else None
        if begun is not None and begun.any():
            batch.step(~begun)
            batch.begin(np.flatnonzero(begun))
        else:
            begun = None
            batch.step()

        batch.ends(rewards, terminated, truncated)
        if self._limit is not None:
            truncated |= worlds.tick >= self._limit
        # The step that starts an episode has no reward and no end (Gymnasium,
        # NextStep).
        if begun is not None:
            rewards[begun] = 0.0
            terminated[begun] = truncated[begun] = False

        ended = self._ended = terminated | truncated
        batch.ask(task.observe, observed)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            # Before the reset: final observations and infos are from the episode that
            # ended.
            final = {
                "final_obs": observed.copy(),
                "_final_obs": ended.copy(),
                "final_info": self._infos(ended),
                "_final_info": ended.copy(),
            }
            batch.begin(np.flatnonzero(ended))
            # A fault belongs to the ended episode, so it appears in ``final_info``
            # only.
            infos = {
                name: values
                for name, values in self._infos().items()
                if name not in ("fault", "_fault")
            } | final
            batch.ask(task.observe, observed)
        else:
            infos = self._infos()

        given = batch.given(observed, rewards, terminated, truncated)
        return given[0], given[1], given[2], given[3], infos

    def _infos(self, of: B1 | None = None) -> dict[str, Any]:
        """Return the task's info in Gymnasium's form.

        Each value has a mask of the worlds that it belongs to. Without `of`, every
        world has a value.
        """
        infos: dict[str, Any] = {}
        for name, values in self._batch.infos().items():
            infos[name] = values.copy()
            told = (
                values != None if name == "fault" else np.ones(self.num_envs, np.bool_)  # noqa: E711
            )
            infos[f"_{name}"] = told if of is None else told & of

        return infos

    def render(self) -> tuple[Any, ...] | None:
        """Return images of all worlds, (height, width, 3) each; None without a render mode."""
        return (
            tuple(self._batch.picture(i) for i in range(self.num_envs))
            if self.render_mode
            else None
        )

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method or get an attribute of the environments of all worlds.

        The method is as in Gymnasium's vector environments, but all worlds share one
        task: a method runs once, and its result is repeated for each world.

        Parameters
        ----------
        name : str
            A method or an attribute of the task, ``render``, or an attribute of an
            environment: ``observation_space``, ``action_space``, ``metadata``,
            ``render_mode``, ``spec``.
        *args, **kwargs
            Arguments of the method.

        Returns
        -------
        tuple
            A result for each world.

        Raises
        ------
        AttributeError
            The name is unknown.
        """
        if name == "render":
            return self.render() or (None,) * self.num_envs
        found = self._attribute(name)
        return (found(*args, **kwargs) if callable(found) else found,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute, repeated for each world: see `call`.

        A method is returned and not called.
        """
        return (self._attribute(name),) * self.num_envs

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of the task, which all worlds share.

        Parameters
        ----------
        name : str
            An existing attribute of the task.
        values : object
            The value, or a list or tuple with the same value for each world.

        Raises
        ------
        AttributeError
            The task has no such attribute.
        ArgumentError
            The number of values is not the number of worlds, or they differ; or the
            attribute was used to make the worlds, or changes the spaces.
        """
        # The worlds have copied these attributes, so a change would have no effect.
        if name in _FIXED:
            raise ArgumentError(
                f"{name}: expected an attribute that can change, found one that "
                "was used to make the worlds"
            )

        if (
            name.startswith("_")
            or not hasattr(self.task, name)
            or callable(getattr(self.task, name))
        ):
            raise _no_attribute(self.task, name)

        if isinstance(values, list | tuple):
            if len(values) != self.num_envs:
                raise ArgumentError(
                    f"{name}: expected a value for each of {self.num_envs} "
                    f"worlds, found {len(values)}"
                )

            # Worlds share one task: different values for them would overwrite each
            # other.
            if any(not np.array_equal(one, values[0]) for one in values):
                raise ArgumentError(
                    f"{name}: expected one value for all worlds, which share the "
                    "task, found several"
                )

            values = values[0]

        # Only after an attribute is set is it visible whether the spaces change.
        before = getattr(self.task, name)
        setattr(self.task, name, values)
        if not self._batch.has_its_spaces():
            setattr(self.task, name, before)
            raise ArgumentError(
                f"{name}: expected an attribute that does not change the spaces"
            )

    def _attribute(self, name: str) -> Any:
        """Return an attribute of the task, or of the environment of one world."""
        if name in ("observation_space", "action_space"):
            return getattr(self, f"single_{name}")
        if name == "metadata":
            return {
                key: value
                for key, value in self.metadata.items()
                if key != "autoreset_mode"
            }

        if name in ("render_mode", "spec", "task"):
            return getattr(self, name)
        if name.startswith("_") or not hasattr(self.task, name):
            raise _no_attribute(self.task, name)
        return getattr(self.task, name)

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads of the simulation."""
        # Gymnasium also closes an environment whose constructor raised an error.
        if hasattr(self, "_batch"):
            self.worlds.close()


class Environment(OfBatch, gymnasium.Env[Any, Any]):
    """One world as an environment of Gymnasium.

    Parameters
    ----------
    task : str, Task or class of tasks
        The task to learn.
    render_mode : str, optional
        ``rgb_array``.
    **options
        Arguments of the task's class.

    Raises
    ------
    ArgumentError
        An argument is out of its range or of another type.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as the base class declares it
        "render_modes": ["rgb_array"],
        "render_fps": 10,
    }

    def __init__(
        self,
        task: str | Task | type[Task] = "Navigate",
        *,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.render_mode: str | None = checked_mode(render_mode)
        self._batch = TaskBatch(find_task(task, **options), 1, 1, copy=True, seed=1)
        self.metadata = {**self.metadata, "render_fps": self._fps}
        self.observation_space, self.action_space = (
            self._batch.observation_space,
            self._batch.action_space,
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode: the first one of a seed, or the next one.

        The first call draws a seed if none is given.

        Raises
        ------
        ArgumentError
            The seed is not a whole number of at least 0, or an option is given: this
            environment knows none.
        """
        check_options(options)
        super().reset(seed=seed)
        if seed is None and not self._batch.has_begun:
            seed = int(self.np_random.integers(MAX_SEED))
        batch = self._batch
        batch.begin(batch.everyone, None if seed is None else row_of_seeds(seed, 1))
        observed = batch.next_first()
        batch.ask(self.task.observe, observed)
        return observed[0].copy(), batch.info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance the world by a step.

        A wrong command, parameter or state truncates the episode, and ``fault`` in
        infos states the reason.

        Parameters
        ----------
        action : array
            Action with the shape of the action space, clipped to its bounds.

        Raises
        ------
        ArgumentError
            The action is not of numbers, has another shape or is not finite.
        ResetNeeded
            `reset` was never called.
        NotNowError
            Another environment has taken the task.
        """
        batch, task = self._batch, self.task
        observed, rewards, terminated, truncated = batch.next_set()
        batch.act(action, of_one=True)
        batch.step()
        batch.ends(rewards, terminated, truncated)
        batch.ask(task.observe, observed)
        return (
            observed[0].copy(),
            float(rewards[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            batch.info(),
        )

    def render(self) -> Any:
        """Return an image of the world, (height, width, 3); None without a render mode."""
        return self._batch.picture(0) if self.render_mode else None

    def close(self) -> None:
        """Stop the threads of the simulation."""
        self.worlds.close()


_FIXED: Final = ("boxes", "robots", "scenes", "sensors", "step")
"""Attributes of a task that cannot change later, because they are read when worlds are made."""


def _no_attribute(task: Task, name: str) -> AttributeError:
    known = [known for known in dir(task) if not known.startswith("_")]
    return AttributeError(
        f'{type(task).__name__} has no attribute "{name}"{did_you_mean(name, known)}',
        name=name,
        obj=task,
    )


def _autoreset_mode(given: AutoresetMode | str) -> AutoresetMode:
    """Return the autoreset mode with a name.

    Raises
    ------
    ArgumentError
        The name is unknown.
    """
    try:
        return AutoresetMode(given)
    except ValueError:
        known = ", ".join(mode.value for mode in AutoresetMode)
        raise ArgumentError(
            f"autoreset_mode: expected one of {known}, found {arguments.found(given)}"
        ) from None


def _first_seeds(
    seed: int | Sequence[int | None] | None, rng: np.random.Generator
) -> int | Sequence[int | None]:
    """Return a seed for each world: the given seed, or a random one where none is given."""
    if seed is None:
        return int(rng.integers(MAX_SEED))
    if isinstance(seed, int) or not isinstance(seed, Sequence):
        return seed
    return [int(rng.integers(MAX_SEED)) if one is None else one for one in seed]


def _seeds_of(
    seed: int | Sequence[int | None] | None, n: int
) -> tuple[NDArray[np.uint64], B1]:
    """Return the seeds of n worlds, and a mask of the worlds that get a seed.

    Parameters
    ----------
    seed : int, sequence or None
        Seed of the first world; a seed or None for each world; None: no seeds.
    n : int
        Number of worlds.

    Returns
    -------
    seeds : (n,) uint64
        Seeds; 0 for worlds that get none.
    given : (n,) bool
        Worlds that get a seed. The other worlds start the next episode of their current
        seed.
    """
    if seed is None:
        return np.zeros(n, np.uint64), np.zeros(n, np.bool_)
    if isinstance(seed, int) or not isinstance(seed, Sequence):
        return row_of_seeds(seed, n), np.ones(n, np.bool_)
    if len(seed) != n:
        raise ArgumentError(
            f"seed: expected one for each of {n} worlds, found {len(seed)}"
        )

    seeds = [
        0 if one is None else arguments.whole(one, "seed", low=0, high=MAX_SEED)
        for one in seed
    ]
    return np.array(seeds, np.uint64), np.array([one is not None for one in seed])


__all__ = ["Environment", "VectorEnvironment"]
