"""Hints of kernels to the processor, which never change a result."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

CACHE_LINE: int = 64
"""Bytes that a processor loads at once."""


def prefetch(array: NDArray[Any], row: int) -> None:
    """Start to load the cache line of row `row` of an array.

    In Python, and beyond the array, it does nothing.
    """


__all__ = ["CACHE_LINE", "prefetch"]
