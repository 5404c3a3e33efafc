"""The interface of stable-baselines3:

its contract, and the package if installed (`make test-learning`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from botyard.errors import ArgumentError
from botyard.learning import VectorEnvironment, stable_baselines
from botyard.learning.stablebaselines import VecEnvMethods

OPTIONS: dict[str, Any] = {"rays": 16, "maps": 3, "max_steps": 15}


class Plain(VecEnvMethods):
    """The methods without the base class of stable-baselines3."""

    def __init__(self, n: int) -> None:
        self.num_envs = n
        self._adopt(
            VectorEnvironment(
                "Navigate", n, autoreset_mode=AutoresetMode.SAME_STEP, **OPTIONS
            )
        )


def test_the_contract() -> None:
    """A step returns the values of the Gymnasium environment in the form of
    stable-baselines3.
    """
    n = 3
    envs, wanted = (
        Plain(n),
        VectorEnvironment(
            "Navigate", n, autoreset_mode=AutoresetMode.SAME_STEP, **OPTIONS
        ),
    )
    assert envs.seed(8) == [8, 9, 10]
    seen, (expected, _) = envs.reset(), wanted.reset(seed=8)
    assert len(envs.reset_infos) == n and envs.reset_infos[0]["success"] in (
        False,
        True,
    )
    dice, ends = np.random.default_rng(1), 0
    for _ in range(40):
        assert (seen == expected).all()
        actions = dice.uniform([0.5, -0.5], [1.0, 0.5], (n, 2))
        envs.step_async(actions)
        seen, rewards, dones, rows = envs.step_wait()
        expected, others, terminated, truncated, infos = wanted.step(actions)
        assert (
            rewards.dtype == np.float32 and (rewards == others.astype(np.float32)).all()
        )
        assert (dones == (terminated | truncated)).all()
        for i, row in enumerate(rows):
            assert ("terminal_observation" in row) == dones[i]
            assert row["TimeLimit.truncated"] == truncated[i]
            source = infos["final_info"] if dones[i] else infos
            assert row["distance"] == source["distance"][i]
            assert ("is_success" in row) == dones[i]
            if dones[i]:
                assert row["is_success"] == source["success"][i]
                assert (row["terminal_observation"] == infos["final_obs"][i]).all()
                ends += 1

    assert ends > n
    assert envs.get_attr("render_mode", [0, 2]) == [None, None] and envs.env_is_wrapped(
        object, 1
    ) == [False]
    assert (
        envs.get_attr("num_envs", np.int64(1)) == [3]
        and len(envs.get_attr("num_envs", np.array([0, -1]))) == 2
    )
    for wrong in (3, -4, [0, 7], "a"):
        with pytest.raises(ArgumentError, match="indices: expected"):
            envs.get_attr("num_envs", wrong)  # type: ignore[arg-type]

    for wrong_seed in (-1, 1.5):
        with pytest.raises(ArgumentError, match="seed: expected a whole number"):
            envs.seed(wrong_seed)  # type: ignore[arg-type]

    assert envs.reset().shape == (3, 21), "a refused seed changes nothing"
    with pytest.raises(
        ArgumentError, match="indices of all worlds, which share one task"
    ):
        envs.set_attr("max_steps", 3, [0, 2])

    envs.set_attr("max_steps", 3)
    assert envs.get_attr("max_steps", 1) == [3] and envs.envs.task.max_steps == 3
    assert [len(m) for m in envs.env_method("marks", 0, indices=[1, 2])] == [1, 1]
    envs.close()


def test_the_package_itself() -> None:
    """PPO trains for some updates behind a wrapper, and a policy is evaluated."""
    pytest.importorskip(
        "stable_baselines3", reason="brings torch; make test-learning installs it"
    )
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecMonitor

    envs = VecMonitor(stable_baselines("Navigate", 8, **OPTIONS))
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, seed=1)
    model.learn(1024)
    assert model.num_timesteps >= 1024 and len(model.ep_info_buffer) > 0
    mean, _ = evaluate_policy(model, envs, n_eval_episodes=8)
    assert np.isfinite(mean)
    envs.close()
