"""Hints for the processor, which kernels give: they change no result."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

CACHE_LINE: int = 64
"""Bytes that a processor loads at once."""


def prefetch(array: NDArray[Any], row: int) -> None:
    """Begin to load the cache line in which row `row` of an array begins. In Python,
    and beyond the array, it does nothing.
    """


__all__ = ["CACHE_LINE", "prefetch"]
