"""Samplers of navground: values that differ from robot to robot."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from botyard.formats.importers.values import Value

KINDS: Final = (
    "const",
    "constant",
    "sequence",
    "choice",
    "uniform",
    "regular",
    "normal",
    "binary",
)
Point = tuple[float, ...]


class Samplers:
    """Source of the values that samplers give to the robots of a group.

    Parameters
    ----------
    seed : int
        Seed; equal seeds give equal values.
    """

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(f"{seed} navground")
        self._once: dict[str, Value | Point] = {}

    def uniform(self, low: float, high: float) -> float:
        """Return a random number from `low` to `high`."""
        return self._draw.uniform(low, high)

    def numbers(self, value: Value, index: int, count: int = 1) -> Point:
        """Return the numbers of robot `index` of a group.

        Parameters
        ----------
        value : Value
            Plain value, or a sampler.
        index : int
            Number of the robot in its group, from 0.
        count : int
            Length of the result.
        """
        found = self.value(value, index)
        if isinstance(found, Value):
            return (found.number(),) if count == 1 else found.numbers(count)
        if len(found) != count:
            raise value.fail(f"a sampler of {count} numbers")
        return found

    def value(self, value: Value, index: int) -> Value | Point:
        """Return a value of the file; for a table with the key ``sampler``, the sampled value.

        Parameters
        ----------
        value : Value
            Value of the file.
        index : int
            Number of the robot in its group, from 0.
        """
        if not isinstance(value.data, dict) or "sampler" not in value.data:
            return value
        table = value.table()
        if "once" in table and table["once"].flag():
            if value.where not in self._once:
                self._once[value.where] = self._sample(table, value, 0)
            return self._once[value.where]
        return self._sample(table, value, index)

    def _sample(
        self, table: Mapping[str, Value], value: Value, index: int
    ) -> Value | Point:
        kind = table["sampler"].text(*KINDS)
        if kind in ("const", "constant"):
            return _given(table, value, "value")
        if kind in ("sequence", "choice"):
            values = _given(table, value, "values").entries()
            if not values:
                raise value.fail("a sampler with values")
            if kind == "choice":
                return values[self._draw.randrange(len(values))]
            # After the last value the sequence starts again.
            return values[index % len(values)]
        if kind == "binary":
            share = _given(table, value, "probability").number(0.0, 1.0)
            return (float(self._draw.random() < share),)
        if kind == "normal":
            mean = _vector(_given(table, value, "mean"))
            spread = _vector(_given(table, value, "std_dev"))
            if len(spread) != len(mean):
                spread = spread[:1] * len(mean)
            return tuple(
                m + s * self._normal() for m, s in zip(mean, spread, strict=True)
            )
        low = _vector(_given(table, value, "from"))
        if kind == "regular" and "step" in table:
            step = _vector(table["step"])
            if len(step) != len(low):
                raise table["step"].fail(f"{len(low)} numbers")
            return tuple(a + index * s for a, s in zip(low, step, strict=True))
        high = _vector(_given(table, value, "to"))
        if len(high) != len(low):
            raise table["to"].fail(f"{len(low)} numbers")
        if kind == "uniform":
            return tuple(
                self._draw.uniform(a, b) for a, b in zip(low, high, strict=True)
            )
        number = _given(table, value, "number").whole(1, 1_000_000)
        share = (index % number) / max(1, number - 1)
        return tuple(a + share * (b - a) for a, b in zip(low, high, strict=True))

    def _normal(self) -> float:
        # The sum of twelve uniform numbers has the variance 1, and the same bits on
        # every platform.
        total = -6.0
        for _ in range(12):
            total += self._draw.random()
        return total


def _given(table: Mapping[str, Value], value: Value, key: str) -> Value:
    if key not in table:
        raise value.fail(f"a sampler with the key {key}")
    return table[key]


def _vector(value: Value) -> Point:
    if isinstance(value.data, list):
        return value.numbers(1, 2)
    return (value.number(),)


__all__ = ["Samplers"]
