"""Hints of kernels to the processor, which never change a result."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

CACHE_LINE: int = 64
"""Number of bytes that a processor loads into its cache at once."""


def prefetch(array: NDArray[Any], row: int) -> None:
    """Start to load the cache line of row `row` of an array.

    The function does nothing in plain Python, or if the row is beyond the array.

    Parameters
    ----------
    array : array
        C-contiguous array.
    row : int
        Index along the first axis of the array. It may be beyond the array, as no
        memory is read.
    """


__all__ = ["CACHE_LINE", "prefetch"]
