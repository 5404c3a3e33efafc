"""PettingZoo's interface to tasks of several robots (pettingzoo.farama.org).

One world is one `ParallelEnv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import gymnasium
import numpy as np
import pettingzoo

from botyard.api import arguments
from botyard.errors import ArgumentError
from botyard.learning.batch import (
    MAX_SEED,
    OfBatch,
    TaskBatch,
    as_actions,
    check_options,
    checked_mode,
    row_of_seeds,
)
from botyard.learning.catalog import find_task
from botyard.learning.tasks.base import F4, TeamTask

PROBE: Final = "options"
"""Name of an option of `reset` that `pettingzoo.test.parallel_api_test` passes."""


# PettingZoo has no type stubs.
class ParallelEnvironment(OfBatch, pettingzoo.ParallelEnv[str, Any, Any]):  # type: ignore[misc]
    """One world with several robots as an environment of PettingZoo.

    Each robot is an agent with its own observation, action and reward. Agents have the
    names of the robots. An episode ends for all agents at once, and `agents` is then
    empty until `reset`.

    Parameters
    ----------
    task : str, TeamTask or class of such tasks
        The task to learn.
    render_mode : str, optional
        ``rgb_array``.
    **options
        Arguments of the task's class.

    Raises
    ------
    ArgumentError
        An argument is out of its range or of another type, or the task has a single
        robot.
    """

    def __init__(
        self,
        task: str | TeamTask | type[TeamTask] = "Exchange",
        *,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        found = find_task(task, **options)
        if not isinstance(found, TeamTask):
            raise ArgumentError(
                f"task: expected a task of several robots (TeamTask), found {type(found).__name__}"
            )

        self.render_mode: str | None = checked_mode(render_mode)
        self._team = found
        self._batch = TaskBatch(found, 1, 1, copy=True, seed=1)
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": self._fps,
            "name": f"botyard_{type(found).__name__}_v0",
        }
        # PettingZoo fixes the agents for the lifetime of an environment.
        self.possible_agents: list[str] = list(self.worlds.names)
        self.agents: list[str] = []
        self._random = np.random.default_rng()
        # One space per agent: a slice of the batch's space.
        seen, done = self._batch.observation_space, self._batch.action_space
        self.observation_spaces = {
            name: gymnasium.spaces.Box(seen.low[k], seen.high[k], dtype=np.float32)
            for k, name in enumerate(self.possible_agents)
        }
        self.action_spaces = {
            name: gymnasium.spaces.Box(done.low[k], done.high[k], dtype=np.float32)
            for k, name in enumerate(self.possible_agents)
        }

    @property
    def state_space(self) -> gymnasium.spaces.Box:
        """Space of the values that `state` returns."""
        return self._batch.observation_space

    def observation_space(self, agent: str) -> gymnasium.spaces.Box:
        """Return the space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Box:
        """Return the space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start an episode: the first one of a seed, or the next one.

        The first call draws a seed if none is given.

        Raises
        ------
        ArgumentError
            The seed is not a whole number of at least 0, or an option is given: this
            environment knows none.
        """
        # PettingZoo's own tests pass an option of this name, and expect no effect.
        check_options(
            {name: value for name, value in (options or {}).items() if name != PROBE}
        )
        batch = self._batch
        if seed is None and not batch.has_begun:
            seed = int(self._random.integers(MAX_SEED))
        batch.begin(batch.everyone, None if seed is None else row_of_seeds(seed, 1))
        self.agents = self.possible_agents[:]
        return self._observations(batch.next_first()), self._infos()

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Any],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Advance the world by a step.

        After the end of an episode the world does not move, and all results are empty.
        A wrong command, parameter or state truncates the episode, and ``fault`` in the
        infos of all agents states the reason.

        Parameters
        ----------
        actions : mapping of str to array
            Action of each agent in `agents`, clipped to the bounds of its space. Other
            names are ignored.

        Returns
        -------
        observations, rewards, terminations, truncations, infos : dict
            Values by name of the agent. All agents have the same ends and infos.

        Raises
        ------
        ArgumentError
            The actions are not a mapping, or an agent's action is missing, has another
            shape or is not finite.
        ResetNeeded
            `reset` was never called.
        """
        if not isinstance(actions, Mapping):
            raise ArgumentError(
                "actions: expected a mapping from agents to their actions, "
                f"found {arguments.found(actions)}"
            )

        # PettingZoo demands empty results for an environment without live agents.
        if not self.agents and self._batch.has_begun:
            return {}, {}, {}, {}, {}
        agents, team = self.agents, self._team
        # Actions for other names are ignored.
        if missing := [name for name in agents if name not in actions]:
            raise ArgumentError(
                f"actions: expected an action of each agent, found none of {', '.join(missing)}"
            )

        self._batch.act(self._stacked(actions))
        self._batch.step()
        observed, rewards, terminated, truncated = self._batch.next_set()
        self._batch.ends(rewards, terminated, truncated)
        if terminated[0] or truncated[0]:
            self.agents = []
        return (
            self._observations(observed),
            dict(zip(agents, team.of_robots[0].tolist(), strict=True)),
            dict.fromkeys(agents, bool(terminated[0])),
            dict.fromkeys(agents, bool(truncated[0])),
            self._infos(),
        )

    def _stacked(self, actions: Mapping[str, Any]) -> F4:
        """Return the agents' actions as one array, (1, m, …), in the order of the agents."""
        stacked = np.zeros((1, *self._batch.action_space.shape), np.float32)
        for k, name in enumerate(self.agents):
            stacked[0, k] = as_actions(
                actions[name], stacked.shape[2:], f"actions: {name}"
            )

        return stacked

    def _observations(self, observed: F4) -> dict[str, Any]:
        self._batch.ask(self._team.observe, observed)
        return {
            name: observed[0, k].copy() for k, name in enumerate(self.possible_agents)
        }

    def _infos(self) -> dict[str, dict[str, Any]]:
        """Return the task's info for each agent; all agents get the same info."""
        info = self._batch.info()
        return {name: dict(info) for name in self.possible_agents}

    def state(self) -> Any:
        """Return the observations of all robots, (m, k) float32."""
        return np.stack(list(self._observations(self._batch.next_first()).values()))

    def render(self) -> Any:
        """Return an image of the world, (height, width, 3); None without a render mode."""
        return self._batch.picture(0) if self.render_mode else None

    def close(self) -> None:
        """Stop the threads of the simulation."""
        self.worlds.close()


__all__ = ["ParallelEnvironment"]
