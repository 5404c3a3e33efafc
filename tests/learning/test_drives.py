"""Tasks with robots of other drives: the same actions drive them to a goal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from botyard.learning import Navigate, VectorEnvironment
from botyard.learning.tasks.robots import Driving, steered_by_angle
from botyard.model.library import load_robot
from botyard.model.mapbuilder import MapBuilder
from tests.learning.test_tasks import towards

HALL = MapBuilder("hall").rectangle(0.0, 0.0, 12.0, 8.0).scene()
WORLDS = 12


def actions(model: str, o: NDArray[np.float32], rays: int) -> NDArray[np.float64]:
    """Return actions that drive to the goal in a hall without obstacles."""
    far = 10.0 * o[:, rays]
    ahead, left = far * o[:, rays + 1], far * o[:, rays + 2]
    if load_robot(model).steering is None:
        return towards(ahead, left)
    # Pure pursuit of the goal; a goal inside the turning circle is left first.
    limit = load_robot(model).kinematics.steering.limit  # type: ignore[union-attr]
    base = load_robot(model).kinematics.steering.wheelbase  # type: ignore[union-attr]
    angle = np.arctan(base * 2.0 * left / np.maximum(far, 0.1) ** 2)
    behind = ahead < 0.0
    angle = np.where(behind, np.copysign(limit, left * base), angle)
    return np.stack([np.full(len(o), 0.15), np.clip(angle / limit, -1, 1)], axis=-1)


@pytest.mark.parametrize("model", ["car", "forklift", "husky", "ridgeback"])
def test_an_obvious_policy_reaches_the_goal(model: str) -> None:
    task = Navigate(robot=load_robot(model), scenes=HALL, max_steps=600, goal_m=0.6)
    envs = VectorEnvironment(task, WORLDS)
    o, _ = envs.reset(seed=2)
    rays, ended, successes = o.shape[1] - 5, 0, 0
    for _ in range(600):
        o, _, terminated, truncated, info = envs.step(
            actions(model, o, rays).astype(np.float32)
        )
        done = terminated | truncated
        ended += int(done.sum())
        if done.any():
            successes += int(np.asarray(info["success"])[done].sum())
        if ended >= WORLDS:
            break
    envs.close()
    assert ended >= WORLDS and successes >= 0.5 * ended, (successes, ended)


def test_the_second_action_of_a_car_is_its_steering_angle() -> None:
    spec = steered_by_angle(load_robot("car"))
    assert spec.steering is not None
    drive, command = Driving(spec), np.zeros((1, 3))
    drive(command, np.array([[0.5, -1.0]]))
    assert command[0].tolist() == [
        0.5 * spec.kinematics.limits.max_speed.x,
        0.0,
        -spec.steering.limit,
    ]
    envs = VectorEnvironment(Navigate(robot=load_robot("car"), scenes=HALL), 1)
    envs.reset(seed=1)
    # At a stand the wheels turn and the car does not.
    before = envs.worlds.pose[0, 0].copy()
    for _ in range(10):
        envs.step(np.array([[0.0, 1.0]], np.float32))
    assert envs.worlds.pose[0, 0] == pytest.approx(before)
    for _ in range(10):
        envs.step(np.array([[0.1, 1.0]], np.float32))
    turned = envs.worlds.pose[0, 0, 2] - before[2]
    assert math.remainder(turned, 2 * math.pi) > 0.05
    envs.close()
