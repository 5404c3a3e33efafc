"""Counter-based random numbers: a draw is a function of its key and number alone.

A stream is keyed by (seed, body, device, tick). Draw k of a stream is the output of
SplitMix64 at position k (Steele, Lea & Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014). A run therefore does not depend on the number of threads, the
order of bodies, or readers. Kernels here allocate nothing and may run in any thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import inline_kernel, kernel
from botyard.numerics.elementary import cosine_sine
from botyard.numerics.exponentials import log

# Increment of SplitMix64: 2⁶⁴ divided by the golden ratio, made odd. Any odd increment
# reaches all 2⁶⁴ states.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Multipliers of the output function of SplitMix64.
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
# Shifts are typed: a plain integer would turn the result into a float64.
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
# 53 random bits times 2⁻⁵² lie in [0, 2).
_TWO_M52 = 2.0**-52


@inline_kernel
def mix(z: np.uint64) -> np.uint64:
    """Return 64 scrambled bits: the output function of SplitMix64."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@kernel
def stream_key(
    seed: np.uint64, uid: np.uint64, device: np.uint64, tick: np.uint64
) -> np.uint64:
    """Return the key of the stream of one device of one body in one tick.

    All four words are 64-bit unsigned integers.

    Parameters
    ----------
    seed : uint64
        Seed of the world, or of its episode.
    uid : uint64
        `State.uid` of the body: a stream follows its name, not its row.
    device : uint64
        Number of the device on the body.
    tick : uint64
        Step of the world.
    """
    h = mix(seed + GOLDEN)
    h = mix(h ^ (uid + GOLDEN))
    h = mix(h ^ (device + GOLDEN))
    return mix(h ^ (tick + GOLDEN))


@inline_kernel
def hashed(seed: np.uint64, word: np.uint64) -> np.uint64:
    """Return a hash of a seed and a word, as `botyard.engine.rng.stream_keys` does.

    Parameters
    ----------
    seed, word : uint64
        Two words. Their order matters.
    """
    return mix(mix(seed + GOLDEN) ^ (word + GOLDEN))


@inline_kernel
def episode_seed(seed: np.uint64, episode: int) -> np.uint64:
    """Return the seed of an episode of a world; see `botyard.engine.rng.episode_seeds`.

    The seed of episode 0 is the seed of the world. Others are a hash of both.

    Parameters
    ----------
    seed : uint64
        Seed of the world.
    episode : int
        Number of the episode, from 0 on.
    """
    return seed if episode == 0 else hashed(seed, np.uint64(episode))


@inline_kernel
def symmetric(key: np.uint64, k: np.uint64) -> float:
    """Return draw `k` of a stream, uniform in [−1, 1) with 53 bits.

    Parameters
    ----------
    key : uint64
        Key of the stream, as from `stream_key`.
    k : uint64
        Number of the draw. Draws may be taken in any order.
    """
    z = mix(key + (k + np.uint64(1)) * GOLDEN)
    return np.float64(z >> _S11) * _TWO_M52 - 1.0


@kernel
def gaussian(key: np.uint64, k: np.uint64) -> float:
    """Return draw `k` of a stream, normal with mean 0 and variance 1.

    It uses the uniform draws 2 k and 2 k + 1 (Box & Muller, 1958).

    Parameters
    ----------
    key : uint64
        Key of the stream, as from `stream_key`.
    k : uint64
        Number of the draw among the Gaussian ones. Callers keep it apart from their
        uniform draws, as it shares the stream with these.
    """
    # The draw is in (0, 1], because log(0) is −∞.
    u = 0.5 * (1.0 - symmetric(key, np.uint64(2) * k))
    c, _ = cosine_sine(math.pi * symmetric(key, np.uint64(2) * k + np.uint64(1)))
    return math.sqrt(-2.0 * log(u)) * c
