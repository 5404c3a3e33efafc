"""Environments for reinforcement learning on `botyard.Worlds`.

The extra ``learning`` installs gymnasium and pettingzoo.

    import gymnasium

    import botyard.learning

    envs = gymnasium.make_vec("botyard/Navigate-v0", num_envs=1024)
    observations, infos = envs.reset(seed=1)

A `Task` defines observations, rewards and the end of an episode, for all worlds at
once. `VectorEnvironment` and `Environment` are its interfaces for Gymnasium,
`ParallelEnvironment` is its interface for PettingZoo, and `stable_baselines` returns
one for stable-baselines3.

Importing this module registers the environments with Gymnasium.
``gymnasium.make("botyard.learning:botyard/Navigate-v0")`` imports it automatically.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from botyard.extras import EXTRAS, lacking
from botyard.learning.catalog import PACKAGED, TASKS, task_names
from botyard.names import shown

if TYPE_CHECKING:
    from botyard.learning.environments import Environment, VectorEnvironment
    from botyard.learning.parallel import ParallelEnvironment
    from botyard.learning.stablebaselines import stable_baselines
    from botyard.learning.tasks.base import EpisodeDraws, Task, TeamTask
    from botyard.learning.tasks.coverage import Coverage
    from botyard.learning.tasks.dock import Dock
    from botyard.learning.tasks.exchange import Exchange
    from botyard.learning.tasks.follow import Follow
    from botyard.learning.tasks.formation import Formation
    from botyard.learning.tasks.navigate import Navigate
    from botyard.learning.tasks.pushbox import PushBox
    from botyard.learning.tasks.social import SocialNavigate

_MODULE_OF = {
    "Environment": "environments",
    "EpisodeDraws": "tasks.base",
    "ParallelEnvironment": "parallel",
    "Task": "tasks.base",
    "TeamTask": "tasks.base",
    "VectorEnvironment": "environments",
    "stable_baselines": "stablebaselines",
} | {name: f"tasks.{module}" for name, module in TASKS.items()}

__all__ = [
    "Coverage",
    "Dock",
    "Environment",
    "EpisodeDraws",
    "Exchange",
    "Follow",
    "Formation",
    "Navigate",
    "ParallelEnvironment",
    "PushBox",
    "SocialNavigate",
    "Task",
    "TeamTask",
    "VectorEnvironment",
    "stable_baselines",
]


def _register() -> None:
    """Register the learning environments with Gymnasium.

    Gymnasium reads no entry points since version 1.0, so an import must register them.
    """
    import gymnasium

    for name in task_names():
        if not name.isidentifier():
            # Gymnasium refuses such a name, and the import of this module would fail.
            PACKAGED.leave_out(
                f'task "{shown(name)}": expected letters, digits and underscores in its name'
            )
            continue

        gymnasium.register(
            f"botyard/{name}-v0",
            entry_point="botyard.learning.environments:Environment",
            vector_entry_point="botyard.learning.environments:VectorEnvironment",
            kwargs={"task": name},
            # The passive checker wraps each environment and inspects every step. Tests
            # run Gymnasium's full check instead.
            disable_env_checker=True,
        )


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        import importlib

        try:
            value = getattr(
                importlib.import_module(f"botyard.learning.{_MODULE_OF[name]}"), name
            )
        except ModuleNotFoundError as error:
            # Only a missing package of the extra gets the hint: any other error is a
            # bug.
            if error.name not in EXTRAS["learning"].modules:
                raise
            raise ModuleNotFoundError(
                lacking(f"botyard.learning.{name}", "learning"), name=error.name
            ) from None

        globals()[name] = value
        return value

    raise AttributeError(f"module 'botyard.learning' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)


# Tasks work without Gymnasium, on `Worlds` alone.
if find_spec("gymnasium") is not None:
    _register()
