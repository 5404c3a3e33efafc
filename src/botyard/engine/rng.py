"""Python part of the counter-based random generator of `kernels.noise`: seeds and keys."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

DEFAULT_SEED: Final = 1
"""Seed of a world for which the caller gives no seed."""


def seed_word(seed: int) -> np.uint64:
    """Return the low 64 bits of a Python integer as the seed word of kernels.

    Parameters
    ----------
    seed : int
        Seed, also a negative one or one of more than 64 bits.
    """
    # NumPy refuses Python integers beyond 64 bits and negative ones.
    return np.uint64(seed & 0xFFFF_FFFF_FFFF_FFFF)


# The result is cached, because each command to a body needs the identity.
@lru_cache(maxsize=1 << 15)
def body_uid(name: str) -> int:
    """Return the stable 64-bit identity of a body: BLAKE2b of its name.

    It is the same in every run and on every machine.

    Parameters
    ----------
    name : str
        Name of the body; it is encoded as UTF-8.
    """
    return int.from_bytes(
        hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"
    )


# Constants of SplitMix64 (Steele, Lea & Flood, 2014), as in `kernels.noise`.
_GOLDEN, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD: Final = 0xFFFF_FFFF_FFFF_FFFF


def _mix(z: int) -> int:
    """Return 64 scrambled bits of a word: the output function of SplitMix64."""
    # Masked after each product, because Python integers do not wrap around.
    z = (z ^ (z >> 30)) * _M1 & _WORD
    z = (z ^ (z >> 27)) * _M2 & _WORD
    return z ^ (z >> 31)


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return `_mix` of many words."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_M1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_M2)
    mixed: NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed


def stream_keys(
    seeds: NDArray[np.uint64], *words: NDArray[np.uint64] | int
) -> NDArray[np.uint64]:
    """Return the keys of many streams.

    Generalises `kernels.noise.stream_key` to any number of words after the seed.

    Parameters
    ----------
    seeds : (n,) uint64
        Seeds of the worlds.
    *words : (n,) uint64 or int
        Words of the key, in order. An int is the same for all seeds.

    Returns
    -------
    (n,) uint64
        One key for each seed.
    """
    golden = np.uint64(_GOLDEN)
    key = _mixed(seeds + golden)
    for word in words:
        key = _mixed(key ^ (np.asarray(word, np.uint64) + golden))
    return key


def uniform(
    keys: NDArray[np.uint64], number: int | NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Return draw `number` of many streams, uniform in [0, 1).

    Parameters
    ----------
    keys : uint64 array
        Keys of the streams, as from `stream_keys`.
    number : int or uint64 array
        Number of the draw, from 0 on; arrays are broadcast.

    Returns
    -------
    float64 array
        Draws with 53 random bits. `draws` and the kernels have the range [−1, 1)
        instead.
    """
    # As in SplitMix64, the counter advances before the first draw.
    if isinstance(number, int):
        z = _mixed(keys + np.uint64((number + 1) * _GOLDEN & _WORD))
    else:
        z = _mixed(keys + (number + np.uint64(1)) * np.uint64(_GOLDEN))
    # The upper 53 bits fill the mantissa of a double.
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def episode_seeds(
    seeds: NDArray[np.uint64], episodes: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return the seeds of episodes of worlds; all are arrays of one shape.

    The seed of episode 0 is the seed of the world. Seeds of later
    episodes are a hash of the world's seed and the episode's number.

    Parameters
    ----------
    seeds : (n,) uint64
        Seeds of the worlds.
    episodes : (n,) int64
        Numbers of the episodes, from 0 on.

    Returns
    -------
    (n,) uint64
        Seeds of the episodes.
    """
    # Episode 0 uses the seed itself, so that a world equals a `Simulation` with its
    # seed.
    return np.where(
        episodes == 0, seeds, stream_keys(seeds, episodes.astype(np.uint64))
    )


def draws(
    seed: int | np.uint64, uid: int, device: int, tick: int, n: int, part: int = 0
) -> NDArray[np.float64]:
    """Return draws of one stream, uniform in [−1, 1).

    They equal `kernels.noise.symmetric` with the key of `stream_key`.

    Parameters
    ----------
    seed : int or uint64
        Seed of the world.
    uid : int
        Identity of the body, see `body_uid`.
    device : int
        Number of the device on the body.
    tick : int
        Number of the step.
    n : int
        Number of draws.
    part : int
        Part of the stream: the draws start at number ``part · 2³²``. Draws
        for different purposes have different parts.

    Returns
    -------
    (n,) float64
        Draws with 53 random bits.
    """
    key = _mix((int(seed) + _GOLDEN) & _WORD)
    for word in (uid, device, tick):
        key = _mix(key ^ (word + _GOLDEN & _WORD))
    # Parts are 2³² draws apart: no device draws so many numbers in a step.
    number = np.arange(1, n + 1, dtype=np.uint64) + np.uint64(part << 32)
    # Arrays wrap around silently; NumPy scalars would warn about the overflow.
    z = number * np.uint64(_GOLDEN) + np.full(n, key, np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_M1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_M2)
    z ^= z >> np.uint64(31)
    uniform: NDArray[np.float64] = (z >> np.uint64(11)).astype(
        np.float64
    ) * 2.0**-52 - 1.0

    return uniform
