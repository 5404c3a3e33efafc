"""The interface of stable-baselines3 to tasks: many worlds as a `VecEnv`.

The contract of a `VecEnv` is in the chapter "Vectorized Environments" of
stable-baselines3.readthedocs.io. botyard does not require stable-baselines3, which
brings torch: the import happens when an environment is made.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.errors import ArgumentError
from botyard.learning.batch import MAX_SEED
from botyard.learning.environments import VectorEnvironment
from botyard.learning.tasks.base import Task

Indices = int | np.integer[Any] | Iterable[int] | None


class VecEnvMethods:
    """Methods of a `VecEnv`, implemented by a `VectorEnvironment`.

    `stable_baselines` derives the class from this one and from `VecEnv`.

    `reset` returns observations only. `step_wait` returns observations, rewards,
    ``dones`` and a dict for each world. A world whose episode has ended starts the next
    one in the same step. Its dict has the last observation in ``terminal_observation``,
    and ``TimeLimit.truncated`` states whether the episode was truncated.
    """

    num_envs: int
    reset_infos: list[dict[str, Any]]

    def _adopt(self, envs: VectorEnvironment) -> None:
        self.envs = envs
        self._actions: Any = None
        self._seed: int | None = None

    def reset(self) -> Any:
        """Start episodes in all worlds.

        After `seed`, each world starts the first episode of its seed, otherwise its
        next episode. The infos are in `reset_infos`.

        Returns
        -------
        (n, …) float32
            Observations.
        """
        observed, infos = self.envs.reset(seed=self._seed)
        self._seed = None
        self.reset_infos = self._rows(infos)
        return observed

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seeds of the next reset.

        Parameters
        ----------
        seed : int, optional
            Seed of the first world; the others get `seed` + 1, … Default: a random
            seed.

        Returns
        -------
        list of int
            Seed of each world.

        Raises
        ------
        ArgumentError
            The seed is not a whole number of at least 0.
        """
        drawn = int(np.random.default_rng().integers(2**32))
        first = (
            drawn
            if seed is None
            else arguments.whole(seed, "seed", low=0, high=MAX_SEED)
        )
        self._seed = first
        return [first + i for i in range(self.num_envs)]

    def step_async(self, actions: NDArray[Any]) -> None:
        """Store the actions for the next call of `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Advance all worlds by a step with the actions of `step_async`.

        Returns
        -------
        observations : (n, …) float32
            Observations. In a world whose episode has ended they belong to the next
            one.
        rewards : (n,) float32
            Rewards of the step.
        dones : (n,) bool
            Whether the episode of each world has ended, terminated or truncated.
        infos : list of dict
            Info of each world, see the class.
        """
        observed, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        ended = terminated | truncated
        final = infos.pop("final_obs", None)
        told = infos.pop("final_info", None)
        rows = self._rows(infos)
        for i in np.flatnonzero(ended).tolist():
            # The infos of a finished world describe its new episode, so the final infos
            # replace them.
            rows[i] = {
                name: values[i]
                for name, values in told.items()
                if not name.startswith("_")
            }
            rows[i]["terminal_observation"] = final[i]
            if "success" in rows[i]:
                # stable-baselines3 logs the success rate from this key.
                rows[i]["is_success"] = rows[i]["success"]

        # Learners bootstrap from the last observation only if the episode was
        # truncated.
        for i, cut in enumerate((truncated & ~terminated).tolist()):
            rows[i]["TimeLimit.truncated"] = cut
        return observed, rewards.astype(np.float32), ended, rows

    def _rows(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """Convert Gymnasium's infos into one dict for each world."""
        names = [
            name
            for name in infos
            if not name.startswith("_") and name not in ("final_obs", "final_info")
        ]
        columns = [infos[name].tolist() for name in names]
        return [
            dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
        ] or [{} for _ in range(self.num_envs)]

    def close(self) -> None:
        """Stop the threads of the simulation."""
        self.envs.close()

    def get_images(self) -> Sequence[Any]:
        """Return images of all worlds."""
        return self.envs.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of the environment or its task for each chosen world.

        Parameters
        ----------
        attr_name : str
            Name of the attribute. All worlds share its value.
        indices : int or iterable of int, optional
            Numbers of the worlds; negative ones count from the last. Default: all.

        Raises
        ------
        AttributeError
            The name is unknown.
        """
        found = (
            self.envs.get_attr(attr_name)[0]
            if not hasattr(self.envs, attr_name)
            else getattr(self.envs, attr_name)
        )
        return [found] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of the task, which all worlds share.

        See `VectorEnvironment.set_attr`.

        Parameters
        ----------
        attr_name : str
            An existing attribute of the task.
        value : object
            Its new value.
        indices : iterable of int, optional
            Must name all worlds if given.

        Raises
        ------
        ArgumentError
            `indices` are not all worlds, or the attribute cannot change.
        AttributeError
            The task has no such attribute.
        """
        if len(set(self._chosen(indices))) < self.num_envs:
            raise ArgumentError(
                f"{attr_name}: expected the indices of all worlds, which share "
                "one task; see also envs.worlds"
            )

        self.envs.set_attr(attr_name, [value] * self.num_envs)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: Indices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of the task once, and return its result for each chosen world.

        See `VectorEnvironment.call`.

        Parameters
        ----------
        method_name : str
            A method of the task.
        *method_args, **method_kwargs
            Arguments of the method.
        indices : int or iterable of int, optional
            Numbers of the worlds; negative ones count from the last. Default: all.

        Raises
        ------
        AttributeError
            The name is unknown.
        """
        chosen = self._chosen(indices)
        results = self.envs.call(method_name, *method_args, **method_kwargs)
        return [results[i] for i in chosen]

    def env_is_wrapped(
        self, wrapper_class: type[Any], indices: Indices = None
    ) -> list[bool]:
        """Return False for each chosen world: worlds have no wrappers."""
        return [False] * len(self._chosen(indices))

    def _chosen(self, indices: Indices) -> list[int]:
        """Return the numbers of the chosen worlds; negative ones count from the last.

        Raises
        ------
        ArgumentError
            An index is not the number of a world.
        """
        n = self.num_envs
        if indices is None:
            return list(range(n))
        try:
            # A single number converts, and a list raises TypeError.
            given = [operator.index(indices)]  # type: ignore[arg-type]
        except TypeError:
            given = arguments.several(indices, "indices", "numbers of worlds")

        return [
            arguments.whole(one, "indices", low=-n, high=n - 1) % n for one in given
        ]


@cache
def _class() -> type[Any]:
    """Return the class of the environment, which derives from stable-baselines3's `VecEnv`.

    Raises
    ------
    ModuleNotFoundError
        stable-baselines3 is not installed.
    """
    try:
        from stable_baselines3.common.vec_env import VecEnv
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "stable_baselines needs stable-baselines3 and its dependencies "
            f"({error.name} is missing): pip install stable-baselines3",
            name=error.name,
        ) from None

    # stable-baselines3 has no type stubs.
    class StableBaselines(VecEnvMethods, VecEnv):  # type: ignore[misc]
        """Worlds of a `VectorEnvironment` as a `VecEnv`."""

        def __init__(self, envs: VectorEnvironment) -> None:
            self._adopt(envs)
            VecEnv.__init__(
                self,
                envs.num_envs,
                envs.single_observation_space,
                envs.single_action_space,
            )

    return StableBaselines


def stable_baselines(
    task: str | Task | type[Task] = "Navigate",
    num_envs: int = 1,
    *,
    threads: int = 1,
    render_mode: str | None = None,
    **options: Any,
) -> Any:
    """Return many worlds as a `VecEnv` of stable-baselines3.

    Example: ``PPO("MlpPolicy", stable_baselines("Navigate", 64)).learn(100_000)``.

    Parameters
    ----------
    task, num_envs, threads, render_mode, **options
        As for `VectorEnvironment`.

    Returns
    -------
    VecEnv
        Its attribute ``envs`` is the `VectorEnvironment`.

    Raises
    ------
    ArgumentError
        An argument is out of its range or of another type.
    ImportError
        stable-baselines3 is not installed.
    """
    # Import stable-baselines3 before the worlds are made, because they are slow to make
    # and the package may be missing.
    made = _class()
    envs = VectorEnvironment(
        task,
        num_envs,
        autoreset_mode=AutoresetMode.SAME_STEP,
        threads=threads,
        render_mode=render_mode,
        **options,
    )
    return made(envs)


__all__ = ["VecEnvMethods", "stable_baselines"]
