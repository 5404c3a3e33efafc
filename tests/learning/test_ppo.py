"""The training example:

its gradients agree with its loss, and a short training in real worlds makes progress.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

from botyard.learning.tasks.robots import clutter

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "learning"


@pytest.fixture(scope="module")
def ppo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_ppo", EXAMPLES / "ppo.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module in `sys.modules`.
    sys.modules["example_ppo"] = module
    spec.loader.exec_module(module)
    return module


def environments(n: int, **options: Any) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    return gymnasium.make_vec(
        "botyard/Navigate-v0",
        num_envs=n,
        vectorization_mode="vector_entry_point",
        autoreset_mode="SameStep",
        rays=16,
        **options,
    )


def test_environments_of_others_can_be_learned(ppo: ModuleType) -> None:
    """Gymnasium's vector environments return last observations as an array of arrays."""
    envs = gymnasium.make_vec(
        "Pendulum-v1",
        num_envs=2,
        vectorization_mode="sync",
        max_episode_steps=20,
        vector_kwargs={"autoreset_mode": "SameStep"},
    )
    trainer = ppo.Trainer(envs, ppo.Settings(rollout=32, hidden=8), seed=1)
    trainer.train(4 * 64)
    assert all(np.isfinite(array).all() for array in trainer.policy.parameters)


def test_gradients_are_the_slopes_of_the_loss(ppo: ModuleType) -> None:
    rng = np.random.default_rng(5)
    trainer = ppo.Trainer(environments(4), ppo.Settings(entropy=0.01, hidden=8), seed=2)
    policy, chosen, k = trainer.policy, trainer.settings, 50
    parameters = policy.parameters
    parameters[4][:] = rng.normal(
        size=parameters[4].shape
        # The last layer starts near zero and would hide errors in the gradients of the other
        # layers.
    )
    observed = rng.uniform(-1, 1, (k, 21)).astype(np.float32)
    acted = rng.normal(size=(k, 2)).astype(np.float32)
    # The ratios of probabilities lie on both sides of the clipped range.
    logs = policy.log_probability(policy.act(observed), acted) + rng.normal(
        0, 0.3, k
    ).astype(np.float32)
    gain, returns = (
        rng.normal(size=k).astype(np.float32),
        rng.normal(size=k).astype(np.float32),
    )

    def loss() -> float:
        ratio = np.exp(
            policy.log_probability(policy.act(observed), acted).astype(np.float64)
            - logs
        )
        surrogate = np.minimum(
            ratio * gain, np.clip(ratio, 1 - chosen.clip, 1 + chosen.clip) * gain
        ).mean()
        value = ((policy.critic.forward(observed)[0][:, 0] - returns) ** 2).mean()
        entropy = float(policy.log_std.sum())
        return float(-surrogate + chosen.value * value - chosen.entropy * entropy)

    for array in range(len(parameters)):
        parameters[array] = parameters[array].astype(np.float64)
    _use(policy, parameters)
    gradients = trainer._gradients(observed, acted, logs, gain, returns)
    for array, gradient in zip(parameters, gradients, strict=True):
        flat, slopes = array.reshape(-1), np.asarray(gradient).reshape(-1)
        for at in rng.choice(len(flat), min(4, len(flat)), replace=False):
            before, h = flat[at], 1e-5
            flat[at] = before + h
            above = loss()
            flat[at] = before - h
            below = loss()
            flat[at] = before
            assert slopes[at] == pytest.approx(
                (above - below) / (2 * h), rel=2e-2, abs=2e-5
            )


def _use(policy: Any, parameters: list[Any]) -> None:
    policy.actor.parameters, policy.critic.parameters = parameters[:6], parameters[6:12]
    policy.log_std = parameters[12]


def test_a_short_training_learns_and_is_kept(ppo: ModuleType, tmp_path: Path) -> None:
    """A hundred thousand steps; `make train` goes on to two million and to the success
    rate of the page.
    """
    trainer = ppo.Trainer(environments(128), ppo.Settings(rollout=48), seed=1)
    trainer.train(100_000)
    trainer.policy.save(tmp_path / "policy.npz")
    policy = ppo.Policy.load(tmp_path / "policy.npz")
    trial = environments(128, scenes=[clutter(500 + k) for k in range(16)])
    untrained, trained = (
        ppo.success_rate(trial, one, 9) for one in (ppo.Policy(21, 2), policy)
    )
    assert untrained < 0.1
    assert trained > 0.3
    observed = np.zeros((3, 21), np.float32)
    np.testing.assert_array_equal(policy.act(observed), trainer.policy.act(observed))


def test_what_an_episode_that_is_cut_off_would_have_brought_counts(
    ppo: ModuleType,
) -> None:
    """Constant rewards of 1, truncated every four steps:

    the value of a state is 1 / (1 − γ), not four.
    """

    class Endless(gymnasium.vector.VectorEnv[Any, Any, Any]):
        num_envs = 8
        single_observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        single_action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        ticks = 0

        def reset(self, **_: Any) -> Any:
            return np.ones((8, 1), np.float32), {}

        def step(self, actions: Any) -> Any:
            self.ticks += 1
            cut = np.full(8, self.ticks % 4 == 0)
            seen = np.ones((8, 1), np.float32)
            return seen, np.ones(8), np.zeros(8, bool), cut, {"final_obs": seen}

    trainer = ppo.Trainer(
        Endless(),
        ppo.Settings(rollout=32, gamma=0.8, learning_rate=5e-3, max_gradient=10.0),
        seed=1,
    )
    trainer.train(32 * 8 * 80)
    value = float(trainer.policy.critic.forward(np.ones((1, 1), np.float32))[0][0, 0])
    assert math.isclose(value, 1 / (1 - 0.8), rel_tol=0.05)
