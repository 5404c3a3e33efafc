"""The points of a plan: all of its grid, with all samples, with all seeds."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

from botyard.errors import CommandLineError
from botyard.extras import is_there, lacking
from botyard.numerics.elementary import exp, log
from botyard.studies.plan import Plan, RangeKeys, SampleKeys


def points_of(plan: Plan) -> Iterator[tuple[dict[str, Any], int]]:
    """Values of parameters and seed of each run: seeds change first, then samples, then
    the last parameter of the grid.

    Raises
    ------
    CommandLineError
        Sobol points are asked for, and SciPy is not installed.
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
    """The sampled values; the first ones stay the same when there are to be more."""
    names = list(sample.values)
    rows = _sobol(sample) if sample.method == "sobol" else _drawn(sample)
    return [
        {n: _scaled(sample.values[n], u) for n, u in zip(names, row, strict=True)}
        for row in rows
    ]


def _drawn(sample: SampleKeys) -> list[list[float]]:
    """Numbers from 0 to 1, each by a hash of seed, name and number: no other parameter,
    and no order, changes them.
    """
    return [
        [_uniform(f"{sample.seed}/{name}/{k}") for name in sample.values]
        for k in range(sample.count)
    ]


def _uniform(text: str) -> float:
    return (
        int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11
    ) * 2.0**-53


def _sobol(sample: SampleKeys) -> list[list[float]]:
    """The first points of a scrambled Sobol sequence (Owen; SciPy's
    `scipy.stats.qmc.Sobol`).
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
        0, (sample.count - 1).bit_length()
    )  # SciPy warns of numbers that are no powers of two
    rows: list[list[float]] = engine.random_base2(power)[: sample.count].tolist()
    return rows


def _scaled(one: RangeKeys, u: float) -> float:
    if one.log is not None:
        low, high = one.log
        return min(high, max(low, exp(log(low) + u * (log(high) - log(low)))))

    low, high = one.uniform or (0.0, 1.0)
    return low + u * (high - low)


__all__ = ["points_of", "samples_of"]
