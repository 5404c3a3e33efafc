from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from botyard.engine.kernels.noise import stream_key, symmetric
from botyard.engine.rng import body_uid, seed_word
from botyard.sim.simulation import Simulation
from tests import naive

word = st.integers(0, (1 << 64) - 1)


@given(word, word, st.integers(0, 255), st.integers(0, 1 << 40))
def test_stream_keys_equal_the_integer_twin(
    seed: int, uid: int, device: int, tick: int
) -> None:
    key = stream_key(
        np.uint64(seed), np.uint64(uid), np.uint64(device), np.uint64(tick)
    )
    assert int(key) == naive.stream_key(seed, uid, device, tick)


def test_draws_equal_the_twin_and_look_uniform() -> None:
    key = stream_key(np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4))
    draws = np.array([naive.py(symmetric)(key, np.uint64(k)) for k in range(3000)])
    assert draws.tolist() == [naive.symmetric(int(key), k) for k in range(3000)]
    assert draws.min() >= -1
    assert draws.max() < 1
    # A uniform distribution on [−1, 1) has mean 0 and variance 1/3; allow 4σ of both estimates.
    assert abs(draws.mean()) < 4 * (1 / 3 / len(draws)) ** 0.5
    assert abs(draws.var() - 1 / 3) < 4 * (4 / 45 / len(draws)) ** 0.5
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 4 / len(draws) ** 0.5


def test_neighbouring_streams_are_unrelated() -> None:
    keys = [
        stream_key(np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(t))
        for t in range(2000)
    ]
    first = np.array([naive.py(symmetric)(k, np.uint64(0)) for k in keys])
    assert abs(first.mean()) < 4 * (1 / 3 / len(first)) ** 0.5
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 4 / len(first) ** 0.5


def test_identity_depends_on_the_name_alone() -> None:
    assert body_uid("bob") == body_uid("bob") != body_uid("rob")
    assert 0 <= body_uid("ä") < 1 << 64


@given(st.integers())
def test_any_integer_is_a_seed(seed: int) -> None:
    assert int(seed_word(seed)) == seed % (1 << 64)


def test_seeds_of_all_64_bits_reach_the_kernels() -> None:
    """A negative seed is the word of the same bits; seeds beyond 2^63 are not negative
    in kernels.
    """
    readings = []
    for seed in (-1, 2**64 - 1, 2**63, 2**63 - 1):
        sim = Simulation(seed=seed, odometry_error="random_init", sensor_noise=True)
        robot = sim.add_robot("p3dx")
        sim.step()
        readings.append(robot.laser.read().ranges.tolist())

    assert readings[0] == readings[1]
