"""Gymnasium's interfaces to tasks: many worlds as one vector environment, and one world
as an environment (gymnasium.farama.org, 1.x).
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
    """Many worlds as one environment of Gymnasium.

    Parameters
    ----------
    task : str, Task or class of tasks
        What is to be learned.
    num_envs : int
        Number of worlds.
    autoreset_mode : AutoresetMode or str
        What happens when an episode ends. ``NextStep``: the next step begins another
        one, and ignores the action. ``SameStep``: the step begins another one; the last
        observation is ``final_obs`` in infos (all rows; those of ``_final_obs`` count),
        what else is known of the end ``final_info`` (in the same way), and infos
        themselves are of the episode that has begun. ``Disabled``: nothing, until
        ``reset(options={"reset_mask": mask})``.
    threads : int
        Threads of the simulation; results do not depend on them.
    copy : bool
        False: observations, rewards and ends are not copied; those that a step returned
        are valid until the step after the next one.
    max_episode_steps : int, optional
        Episodes are truncated after so many steps, also if the task would go on: the
        time limit of Gymnasium.
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
        self.autoreset_mode: AutoresetMode = _mode_of(autoreset_mode)
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
        """Begin episodes in all worlds, or in those of ``options["reset_mask"]``, (n,)
        bool: the first time, in all.

        World i gets the seed `seed` + i, or the i-th of a list, and begins with its
        first episode; without, and where the list has None, it begins the next episode
        of the seed that it has. The first time, seeds are drawn.

        Returns
        -------
        observations, infos

        Raises
        ------
        ArgumentError
            A seed is no whole number of at least 0, or the mask is of another shape, or
            leaves out worlds that have no episode yet; an option has another name.
        NotNowError
            The task was given to another environment.
        """
        batch, n = self._batch, self.num_envs
        given_seed: int | Sequence[int | None] | None = (
            seed.tolist() if isinstance(seed, np.ndarray) else seed
        )
        if isinstance(given_seed, int):
            super().reset(seed=given_seed)
        check_options(options, "reset_mask")
        mask = None if options is None else options.get("reset_mask")
        chosen = batch.everyone
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != (n,) or mask.dtype != np.bool_ or not mask.any():
                raise ArgumentError(
                    f"reset_mask: expected {n} bools of which one is True, found "
                    f"{arguments.found(mask)}"
                )

            if not (batch.has_begun or mask.all()):
                raise ArgumentError(
                    f"reset_mask: expected all {n} worlds the first time, found {mask.sum()}"
                )

            chosen = np.flatnonzero(mask)

        if not batch.has_begun:
            given_seed = _first_seeds(given_seed, self.np_random)
        seeds, given = _seeds_of(given_seed, n)
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
        """Advance all worlds by a step; see `autoreset_mode` for those whose episode
        has ended.

        A world with a wrong command, parameter or state is truncated, with reward 0;
        ``fault`` in infos says why. The others go on.
        """
        batch, worlds, task = self._batch, self.worlds, self.task
        batch.act(actions)
        observed, rewards, terminated, truncated = (
            batch.next_set()
        )  # now: refused actions use no set up
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
        if begun is not None:
            rewards[begun] = 0.0
            terminated[begun] = truncated[begun] = False

        ended = self._ended = terminated | truncated
        batch.ask(task.observe, observed)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            final = {
                "final_obs": observed.copy(),
                "_final_obs": ended.copy(),
                "final_info": self._infos(ended),
                "_final_info": ended.copy(),
            }
            batch.begin(np.flatnonzero(ended))
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
        """What the task tells, in the form of Gymnasium: each value with a mask of the
        worlds that have it; without `of`, all have.
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
        """Pictures of all worlds, each (height, width, 3); None without a mode."""
        return (
            tuple(self._batch.picture(i) for i in range(self.num_envs))
            if self.render_mode
            else None
        )

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method, or get an attribute, of the environments of all worlds, as the
        vector environments of Gymnasium do.

        The worlds share one task. What is called is called once; its result stands once
        for each world.

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
            There is none of that name.
        """
        if name == "render":
            return self.render() or (None,) * self.num_envs
        found = self._of_one(name)
        return (found(*args, **kwargs) if callable(found) else found,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Get an attribute, once for each world: see `call`. A method is not called."""
        return (self._of_one(name),) * self.num_envs

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of the task, which all worlds share.

        Parameters
        ----------
        name : str
            An attribute that the task has.
        values : object
            The value, or a list or tuple of it, once for each world.

        Raises
        ------
        AttributeError
            The task has none of that name.
        ArgumentError
            The values are not one for each world, or differ; the attribute was used
            when the worlds were made, or changes the spaces.
        """
        if name in _FIXED:
            raise ArgumentError(
                f"{name}: expected an attribute that may change, found one that "
                "the worlds were made with"
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

            if any(not np.array_equal(one, values[0]) for one in values):
                raise ArgumentError(
                    f"{name}: expected one value for all worlds, which share the "
                    "task, found several"
                )

            values = values[0]

        before = getattr(self.task, name)
        setattr(self.task, name, values)
        if not self._batch.has_its_spaces():
            setattr(self.task, name, before)
            raise ArgumentError(
                f"{name}: expected an attribute that the spaces do not depend on"
            )

    def _of_one(self, name: str) -> Any:
        """A method or an attribute of the task, or of the environment of one world."""
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
        """End the threads."""
        if hasattr(
            self, "_batch"
        ):  # Gymnasium also closes what was refused when it was made
            self.worlds.close()


class Environment(OfBatch, gymnasium.Env[Any, Any]):
    """One world as an environment of Gymnasium.

    Parameters
    ----------
    task : str, Task or class of tasks
        What is to be learned.
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
        """Begin an episode: the first one of a seed, or the next one. The first time, a
        seed is drawn.

        Raises
        ------
        ArgumentError
            The seed is no whole number of at least 0; there are options: none are
            known.
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
        """Advance the world by a step. A wrong command, parameter or state truncates
        the episode; ``fault`` in infos says why.
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
        """A picture of the world, (height, width, 3); None without a mode."""
        return self._batch.picture(0) if self.render_mode else None

    def close(self) -> None:
        """End the threads."""
        self.worlds.close()


_FIXED: Final = ("boxes", "robots", "scenes", "sensors", "step")
"""Attributes of tasks that worlds are made with."""


def _no_attribute(task: Task, name: str) -> AttributeError:
    known = [known for known in dir(task) if not known.startswith("_")]
    return AttributeError(
        f'{type(task).__name__} has no attribute "{name}"{did_you_mean(name, known)}',
        name=name,
        obj=task,
    )


def _mode_of(given: AutoresetMode | str) -> AutoresetMode:
    """A mode by its name. ArgumentError: there is none of that name."""
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
    """Seeds of first episodes: those that are not given are drawn."""
    if seed is None:
        return int(rng.integers(MAX_SEED))
    if isinstance(seed, int) or not isinstance(seed, Sequence):
        return seed
    return [int(rng.integers(MAX_SEED)) if one is None else one for one in seed]


def _seeds_of(
    seed: int | Sequence[int | None] | None, n: int
) -> tuple[NDArray[np.uint64], B1]:
    """Seeds of n worlds, and which of them are given: the others begin the next episode
    of the seed that they have.
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
