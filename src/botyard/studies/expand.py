"""Expansion of a plan into points: its grid, times its samples, times its seeds."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

from botyard.errors import CommandLineError
from botyard.extras import is_there, lacking
from botyard.numerics.exponentials import exp, log
from botyard.studies.plan import Plan, RangeKeys, SampleKeys


def points_of(plan: Plan) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the parameter values and the seed of each run.

    Seeds vary fastest, then samples, then the last parameter of the grid.

    Parameters
    ----------
    plan : Plan
        Plan of the study.

    Yields
    ------
    values : dict
        A value for each parameter: first of the grid, then of the sample. The seeds of
        a point share one dict.
    seed : int
        Seed of the run.

    Raises
    ------
    CommandLineError
        The plan asks for a Sobol sequence, and SciPy is not installed.
    """
    grid = plan.keys.grid
    samples = samples_of(plan.keys.sample) if plan.keys.sample else [{}]
    for values in itertools.product(*grid.values()):
        fixed = dict(zip(grid, values, strict=True))
        for sample in samples:
            point = {**fixed, **sample}
            for seed in plan.seeds:
                yield point, seed


def samples_of(sample: SampleKeys) -> list[dict[str, float]]:
    """Return the sampled values.

    Parameters
    ----------
    sample : SampleKeys
        Ranges, number of points, method and seed.

    Returns
    -------
    list of dict
        A value for each parameter, at each point. A larger count keeps the first
        points.

    Raises
    ------
    CommandLineError
        The plan asks for a Sobol sequence, and SciPy is not installed.
    """
    names = list(sample.values)
    rows = _sobol(sample) if sample.method == "sobol" else _drawn(sample)
    return [
        {n: _scaled(sample.values[n], u) for n, u in zip(names, row, strict=True)}
        for row in rows
    ]


def _drawn(sample: SampleKeys) -> list[list[float]]:
    """Return numbers in [0, 1), each from a hash of seed, name and index.

    Adding or reordering parameters therefore does not change the values of the others.

    Returns
    -------
    list of list of float
        `sample.count` points with one number per parameter.
    """
    return [
        [_uniform(f"{sample.seed}/{name}/{k}") for name in sample.values]
        for k in range(sample.count)
    ]


def _uniform(text: str) -> float:
    """Return a number in [0, 1) from the hash of a text.

    The upper 53 bits of the hash fill the mantissa of a double exactly.
    """
    return (
        int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11
    ) * 2.0**-53


def _sobol(sample: SampleKeys) -> list[list[float]]:
    """Return the first points of a scrambled Sobol sequence.

    The sequence is Owen-scrambled by SciPy (`scipy.stats.qmc.Sobol`).

    Returns
    -------
    list of list of float
        `sample.count` points with one number in [0, 1) per parameter.

    Raises
    ------
    CommandLineError
        SciPy is not installed.
    """
    if not is_there("scipy"):
        raise CommandLineError(lacking("sample.method: sobol", "studies"))
    import numpy as np
    from scipy.stats import qmc

    engine = qmc.Sobol(
        len(sample.values),
        scramble=True,
        rng=np.random.Generator(np.random.PCG64(sample.seed)),
    )
    power = max(
        0,
        (sample.count - 1).bit_length(),
        # Sobol sequences are balanced for powers of two; SciPy warns about other
        # counts.
    )
    rows: list[list[float]] = engine.random_base2(power)[: sample.count].tolist()
    return rows


def _scaled(one: RangeKeys, u: float) -> float:
    """Return the value of a parameter for a uniform number.

    Parameters
    ----------
    one : RangeKeys
        Range of the parameter.
    u : float
        Number in [0, 1).

    Returns
    -------
    float
        The value, within the range.
    """
    if one.log is not None:
        low, high = one.log
        # Rounding in exp(log()) can leave the range by one bit.
        return min(high, max(low, exp(log(low) + u * (log(high) - log(low)))))

    low, high = one.uniform or (0.0, 1.0)
    return low + u * (high - low)


__all__ = ["points_of", "samples_of"]
