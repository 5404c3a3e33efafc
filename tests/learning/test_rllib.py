"""RLlib trains on a task with two processes for environments (`make test-learning`;
needs torch).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("ray") is None,
    reason="make test-learning installs torch and RLlib",
)


def test_two_env_runners_step_batches_of_worlds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        num_cpus=3,
        include_dashboard=False,
        object_store_memory=100 * 2**20,
        _node_ip_address="127.0.0.1",
    )
    try:
        config: Any = PPOConfig().environment(
            "botyard.learning:botyard/Navigate-v0",
            env_config={"rays": 16, "maps": 3, "max_steps": 15},
        )
        # RLlib creates one vector environment for each process: a batch of worlds.
        config.env_runners(
            num_env_runners=2,
            num_envs_per_env_runner=8,
            gym_env_vectorize_mode="vector_entry_point",
        )
        config.training(train_batch_size=1024, minibatch_size=256, num_epochs=1)
        algorithm = config.build_algo()
        found = algorithm.train()["env_runners"]
        algorithm.stop()
    finally:
        ray.shutdown()

    assert found["num_env_steps_sampled_lifetime"] >= 1024
    assert found["num_episodes_lifetime"] >= 2 * 8
    assert 1 < found["episode_len_mean"] <= 15
