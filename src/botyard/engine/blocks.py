"""Blocks of memory for many worlds: each row has its arrays at the same offsets."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from botyard.engine.layout import U1

ALIGNMENT: Final = 64
"""Alignment of rows, bytes: the size of a processor's cache line."""


class Blocks:
    """Arrays of many worlds in one block of bytes, (n, size).

    Parameters
    ----------
    count : int
        Number of rows.
    fields : iterable of (name, dtype, shape)
        Arrays of a row.

    Attributes
    ----------
    bytes : (n, size) uint8 array
        The block.
    """

    def __init__(
        self, count: int, fields: Iterable[tuple[str, DTypeLike, tuple[int, ...]]]
    ) -> None:
        self._fields: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = {}
        size = 0
        for name, dtype, shape in fields:
            kind: np.dtype[Any] = np.dtype(dtype)
            # NumPy views of 8-byte numbers must start at multiples of 8.
            size = -(-size // 8) * 8
            self._fields[name] = size, kind, shape
            size += kind.itemsize * math.prod(shape)

        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        # NumPy aligns to 16 bytes only: allocate more, and start at the next cache
        # line.
        room = np.zeros(count * size + ALIGNMENT, np.uint8)
        begin = -room.ctypes.data % ALIGNMENT
        self.bytes: U1 = room[begin : begin + count * size].reshape(count, size)

    def of(self, row: int, name: str) -> NDArray[Any]:
        """Return an array of a row, contiguous.

        Parameters
        ----------
        row : int
            Row of the block: the number of the world.
        name : str
            Name of one of the fields.

        Returns
        -------
        array
            View of the block, with the dtype and shape of the field. Writes change the
            block.
        """
        at, kind, shape = self._fields[name]
        size = kind.itemsize * math.prod(shape)
        return self.bytes[row, at : at + size].view(kind).reshape(shape)

    def all(self, name: str, *, writeable: bool = True) -> NDArray[Any]:
        """Return an array of all rows, (n, …).

        Parameters
        ----------
        name : str
            Name of one of the fields.
        writeable : bool
            Whether callers may write to the array. The block stays writeable in any
            case.

        Returns
        -------
        (n, …) array
            View of the block. It is not contiguous: rows are `bytes.shape[1]` bytes
            apart.
        """
        at, kind, shape = self._fields[name]
        count, size = self.bytes.shape
        # The strides of a contiguous row; NumPy computes them for any shape.
        steps = np.zeros((1, *shape), kind).strides[1:]
        found: NDArray[Any] = np.ndarray(
            (count, *shape), kind, self.bytes.reshape(-1).data, at, (size, *steps)
        )
        found.flags.writeable = writeable
        return found


__all__ = ["Blocks"]
