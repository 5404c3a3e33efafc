"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347) in NumPy: small
enough to be read, fast enough for two cores.

The policy is a normal distribution of actions around the output of a network of two
tanh layers, and a second such network estimates the value of a state. Both are learned
by Adam (Kingma, Ba 2015) from rollouts of many environments at once, with advantages by
generalised advantage estimation (Schulman et al. 2016, arXiv:1506.02438) and the
clipped objective of the paper (equation 7).

It learns any vector environment of Gymnasium whose observations and actions are vectors
of numbers (autoreset mode SAME_STEP).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

F4 = NDArray[np.float32]


@dataclass(frozen=True)
class Settings:
    """How it learns; names as in the papers.

    Attributes
    ----------
    rollout : int
        Steps of each environment between two updates.
    epochs, minibatches : int
        How often an update goes through a rollout, and into how many parts it cuts it.
    learning_rate : float
        Of Adam; it falls to zero over the training.
    gamma, lam : float
        Discount, and the decay of generalised advantage estimation.
    clip : float
        Range of the ratio of probabilities, ε.
    entropy : float
        Weight of the entropy.
    value : float
        Weight of the value's error.
    max_gradient : float
        Greatest norm of a gradient.
    hidden : int
        Width of the networks' layers.
    """

    rollout: int = 64
    epochs: int = 4
    minibatches: int = 8
    learning_rate: float = 1e-3
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    value: float = 0.5
    max_gradient: float = 0.5
    hidden: int = 64


class Network:
    """Two tanh layers and a linear one. `parameters` are six arrays: weights (in, out)
    and biases (out,) of each layer.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        hidden: int,
        rng: np.random.Generator,
        last: float,
    ) -> None:
        self.parameters: list[F4] = []
        for rows, columns, gain in (
            (inputs, hidden, 1.0),
            (hidden, hidden, 1.0),
            (hidden, outputs, last),
        ):
            scale = gain / math.sqrt(rows)
            self.parameters += [
                (scale * rng.standard_normal((rows, columns))).astype(np.float32),
                np.zeros(columns, np.float32),
            ]

    def forward(self, x: F4) -> tuple[F4, tuple[F4, F4, F4]]:
        """Return the outputs (k, out) of inputs (k, in), and the values that `backward` needs."""
        w1, b1, w2, b2, w3, b3 = self.parameters
        first = np.tanh(x @ w1 + b1)
        second = np.tanh(first @ w2 + b2)
        return second @ w3 + b3, (x, first, second)

    def backward(self, kept: tuple[F4, F4, F4], gradient: F4) -> list[F4]:
        """Return gradients of the parameters from the gradient of the outputs, (k, out)."""
        x, first, second = kept
        _, _, w2, _, w3, _ = self.parameters
        at_second = (gradient @ w3.T) * (1 - second * second)
        at_first = (at_second @ w2.T) * (1 - first * first)
        return [
            x.T @ at_first,
            at_first.sum(0),
            first.T @ at_second,
            at_second.sum(0),
            second.T @ gradient,
            gradient.sum(0),
        ]


class Adam:
    """Adam's steps over a list of arrays, which change in place."""

    def __init__(self, parameters: list[F4]) -> None:
        self._parameters = parameters
        self._mean = [np.zeros_like(p) for p in parameters]
        self._square = [np.zeros_like(p) for p in parameters]
        self._count = 0

    def step(
        self, gradients: list[F4], rate: float, beta1: float = 0.9, beta2: float = 0.999
    ) -> None:
        """Go one step against the gradients."""
        self._count += 1
        rate *= math.sqrt(1 - beta2**self._count) / (1 - beta1**self._count)
        for p, g, m, s in zip(
            self._parameters, gradients, self._mean, self._square, strict=True
        ):
            m += (1 - beta1) * (g - m)
            s += (1 - beta2) * (g * g - s)
            p -= np.float32(rate) * m / (np.sqrt(s) + np.float32(1e-8))


class Policy:
    """A policy with its estimate of values.

    Parameters
    ----------
    observations, actions : int
        Numbers in an observation and in an action.
    """

    def __init__(
        self, observations: int, actions: int, *, hidden: int = 64, seed: int = 1
    ) -> None:
        rng = np.random.default_rng(seed)
        self.actor = Network(observations, actions, hidden, rng, 0.01)
        self.critic = Network(observations, 1, hidden, rng, 1.0)
        self.log_std: F4 = np.full(actions, -0.5, np.float32)

    @property
    def parameters(self) -> list[F4]:
        """Return all arrays that are learned."""
        return [*self.actor.parameters, *self.critic.parameters, self.log_std]

    def act(self, observations: F4) -> F4:
        """Return the most probable actions, (k, actions)."""
        return self.actor.forward(observations)[0]

    def log_probability(self, mean: F4, actions: F4) -> F4:
        """Return the logarithm of the density of actions, (k,)."""
        z = (actions - mean) / np.exp(self.log_std)
        return np.asarray(
            -0.5 * (z * z).sum(1)
            - self.log_std.sum()
            - 0.5 * math.log(2 * math.pi) * len(self.log_std)
        )

    def save(self, file: str | Path) -> None:
        """Write it to a file of NumPy (.npz)."""
        np.savez(file, **{f"p{k:02d}": p for k, p in enumerate(self.parameters)})

    @classmethod
    def load(cls, file: str | Path) -> Policy:
        """Return the policy in a file of `save`."""
        with np.load(file, allow_pickle=False) as arrays:
            parameters = [arrays[name] for name in sorted(arrays)]
        policy = cls(
            parameters[0].shape[0],
            parameters[4].shape[1],
            hidden=parameters[0].shape[1],
        )
        for mine, saved in zip(policy.parameters, parameters, strict=True):
            mine[:] = saved
        return policy


@dataclass(frozen=True)
class Progress:
    """Progress of a training after an update.

    `steps` of environments and `seconds` so far; mean return and share of successes of
    the episodes that ended since the last one.
    """

    steps: int
    seconds: float
    mean_return: float
    success: float


class Trainer:
    """Learns a policy in a vector environment.

    Parameters
    ----------
    envs : gymnasium.vector.VectorEnv
        Autoreset mode SAME_STEP. Where its infos have ``success``, it is shown.
    settings : Settings, optional
    seed : int
        Of the networks, the actions and the environments. Results repeat on one machine
        with one number of threads; how NumPy adds up matrices differs between
        processors.
    """

    def __init__(
        self,
        envs: gymnasium.vector.VectorEnv[Any, Any, Any],
        settings: Settings | None = None,
        *,
        seed: int = 1,
    ) -> None:
        self.envs, self.settings = envs, settings or Settings()
        observations, actions = (
            envs.single_observation_space.shape,
            envs.single_action_space.shape,
        )
        assert observations is not None
        assert actions is not None
        self.policy = Policy(
            observations[0], actions[0], hidden=self.settings.hidden, seed=seed
        )
        self._rng = np.random.default_rng(seed)
        self._adam = Adam(self.policy.parameters)
        self._observed: F4 = envs.reset(seed=seed)[0]
        self._returns = np.zeros(envs.num_envs)
        self._ended: list[tuple[float, float]] = []

    def train(
        self, steps: int, report: Callable[[Progress], bool | None] | None = None
    ) -> Policy:
        """Learn for a number of steps of environments; `report` is called after each
        update and ends the training by True.
        """
        began = time.perf_counter()
        batch = self.settings.rollout * self.envs.num_envs
        updates = max(1, steps // batch)
        for update in range(updates):
            rollout = self._collect()
            self._update(*rollout, self.settings.learning_rate * (1 - update / updates))
            ended = np.array(self._ended).reshape(-1, 2)
            mean_return, success = ended.mean(0) if len(ended) else (math.nan, math.nan)
            self._ended.clear()
            if report and report(
                Progress(
                    (update + 1) * batch,
                    time.perf_counter() - began,
                    mean_return,
                    success,
                )
            ):
                break

        return self.policy

    def _collect(self) -> tuple[F4, F4, F4, F4, F4]:
        """Return a rollout: observations, actions, their log probabilities, advantages and
        returns, with a row for each step and environment.
        """
        chosen, n, policy = self.settings, self.envs.num_envs, self.policy
        space = self.envs.single_action_space
        observed = np.zeros((chosen.rollout, n, self._observed.shape[1]), np.float32)
        acted = np.zeros((chosen.rollout, n, len(policy.log_std)), np.float32)
        logs, rewards, ends = (
            np.zeros((chosen.rollout, n), np.float32) for _ in range(3)
        )
        values = np.zeros((chosen.rollout + 1, n), np.float32)
        for t in range(chosen.rollout):
            observed[t] = self._observed
            mean = policy.act(self._observed)
            noise = self._rng.standard_normal(mean.shape, np.float32)
            acted[t] = mean + np.exp(policy.log_std) * noise
            logs[t] = policy.log_probability(mean, acted[t])
            values[t] = policy.critic.forward(self._observed)[0][:, 0]
            clipped = np.clip(acted[t], space.low, space.high)  # type: ignore[attr-defined]
            self._observed, rewards[t], terminated, truncated, infos = self.envs.step(
                clipped
            )
            ends[t] = terminated | truncated
            self._returns += rewards[t]
            if ends[t].any():
                self._note(ends[t] > 0, infos)
                # A truncated episode would have gone on: the value of its last state stands for the
                # rewards that it would still have brought.
                cut = np.flatnonzero(truncated)
                if len(cut):
                    rewards[t, cut] += (
                        chosen.gamma
                        * policy.critic.forward(np.stack(infos["final_obs"][cut]))[0][
                            :, 0
                        ]
                    )

        values[-1] = policy.critic.forward(self._observed)[0][:, 0]
        advantages = np.zeros_like(rewards)
        following = np.zeros(n, np.float32)
        for t in reversed(range(chosen.rollout)):
            goes_on = 1 - ends[t]
            difference = rewards[t] + chosen.gamma * values[t + 1] * goes_on - values[t]
            following = difference + chosen.gamma * chosen.lam * goes_on * following
            advantages[t] = following

        flat = lambda array: array.reshape(chosen.rollout * n, *array.shape[2:])  # noqa: E731
        return (
            flat(observed),
            flat(acted),
            flat(logs),
            flat(advantages),
            flat(advantages + values[:-1]),
        )

    def _note(self, ended: NDArray[np.bool_], infos: dict[str, Any]) -> None:
        """Keep the returns and successes of episodes that have ended."""
        success = infos.get("final_info", {}).get(
            "success", np.full(len(ended), math.nan)
        )
        self._ended += zip(
            self._returns[ended], np.asarray(success, float)[ended], strict=True
        )
        self._returns[ended] = 0

    def _update(
        self,
        observed: F4,
        acted: F4,
        logs: F4,
        advantages: F4,
        returns: F4,
        rate: float,
    ) -> None:
        """Improve the policy by a rollout."""
        chosen = self.settings
        size = len(observed) // chosen.minibatches
        for _ in range(chosen.epochs):
            order = self._rng.permutation(len(observed))
            for k in range(chosen.minibatches):
                rows = order[k * size : (k + 1) * size]
                gain = advantages[rows]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                gradients = self._gradients(
                    observed[rows], acted[rows], logs[rows], gain, returns[rows]
                )
                norm = math.sqrt(sum(float((g * g).sum()) for g in gradients))
                shrink = np.float32(min(1.0, chosen.max_gradient / (norm + 1e-8)))
                self._adam.step([g * shrink for g in gradients], rate)

    def _gradients(
        self, observed: F4, acted: F4, logs: F4, gain: F4, returns: F4
    ) -> list[F4]:
        """Return the gradients of the loss by all parameters.

        Loss = −mean(min(r A, clip(r, 1 − ε, 1 + ε) A)) + c₁ mean((V − R)²) − c₂
        entropy, r = π(a|s) / π_old(a|s).
        """
        chosen, policy, count = self.settings, self.policy, np.float32(len(observed))
        mean, kept = policy.actor.forward(observed)
        std = np.exp(policy.log_std)
        z = (acted - mean) / std
        ratio = np.exp(policy.log_probability(mean, acted) - logs)
        # The loss is flat where the clipped branch is the smaller one.
        live = np.where(gain > 0, ratio < 1 + chosen.clip, ratio > 1 - chosen.clip)
        by_log = (-(ratio * gain) * live / count).astype(np.float32)
        by_std = (by_log[:, None] * (z * z - 1)).sum(0) - np.float32(chosen.entropy)
        value, kept_value = policy.critic.forward(observed)
        by_value = (2 * chosen.value / count) * (value[:, 0] - returns)
        return [
            *policy.actor.backward(kept, by_log[:, None] * z / std),
            *policy.critic.backward(kept_value, by_value[:, None]),
            by_std,
        ]


def success_rate(
    envs: gymnasium.vector.VectorEnv[Any, Any, Any], policy: Policy, seed: int
) -> float:
    """Return the share of the first episodes of all environments, started with `seed`, that end in
    success, without noise on the actions.
    """
    observed, _ = envs.reset(seed=seed)
    open_, won = np.ones(envs.num_envs, np.bool_), np.zeros(envs.num_envs, np.bool_)
    while open_.any():
        observed, _, terminated, truncated, infos = envs.step(
            np.clip(policy.act(observed), -1, 1)
        )
        ended = open_ & (terminated | truncated)
        if ended.any():
            won[ended] = infos["final_info"]["success"][ended]
            open_ &= ~ended

    return float(won.mean())
