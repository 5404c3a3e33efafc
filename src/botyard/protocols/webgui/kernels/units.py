"""Kernel that writes ranges as whole multiples of a unit."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.protocols.webgui.kernels.jit import entry_kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
U2 = NDArray[np.uint16]

NO_READING: Final = 0xFFFE
"""Code of a range that is NaN."""


@entry_kernel
def write_units(ranges: F8, first: I8, per_metre: float, units: U2) -> None:
    """Write rows of ranges as whole multiples of a unit, rounded to the nearest.

    Parameters
    ----------
    ranges : (r,) float64
        Ranges, m.
    first : (k,) int64
        Index of the first range of each row.
    per_metre : float
        Number of units in a metre.
    units : (n, count) uint16
        Output, in its first k rows: 0 for a negative range, at most `NO_READING` − 1,
        and `NO_READING` for NaN.
    """
    highest = float(NO_READING - 1)
    count = units.shape[1]
    for k in range(len(first)):
        # With slices, and whole numbers of 32 bits, the compiler makes vectors.
        row, source = units[k], ranges[first[k] : first[k] + count]
        for i in range(count):
            scaled = source[i] * per_metre + 0.5
            bounded = min(max(scaled, 0.0), highest)
            row[i] = np.int32(bounded) if scaled == scaled else np.int32(NO_READING)


__all__ = ["NO_READING", "write_units"]
