"""Kernels that one call from Python runs for many rows of arguments."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.native.kernels import FIRST_CALLS, Entry, address_of_code
from botyard.native.kinds import (
    Kind,
    Pack,
    address_of,
    format_of,
    words_of,
)
from botyard.native.packages import Function, Package


class RowTable:
    """Encoded arguments of many calls of a kernel.

    Parameters
    ----------
    entry : RowsEntry
        The kernel.
    count : int
        Number of rows.
    arguments : callable
        Returns the arguments of a row: packs, named tuples of arrays, numbers. They
        must stay valid as long as the table.

    Attributes
    ----------
    words : (n, k) uint64 array
        Encoded arguments.
    where : (int, int)
        Address of `words`, and number of words in a row.
    kinds : tuple of Kind
        Types of the arguments.
    """

    def __init__(
        self, entry: RowsEntry, count: int, arguments: Callable[[int], tuple[Any, ...]]
    ) -> None:
        self.arguments = arguments
        # All rows must have the types of row 0, because one compiled function serves
        # them.
        self.kinds = entry.kinds_of(arguments(0))
        self._form = struct.Struct("<" + format_of(self.kinds))
        self.words = np.zeros((count, self._form.size // WORD), np.uint64)
        self.where = address_of(self.words), self._form.size // WORD

    def fill(self, first: int, end: int) -> None:
        """Encode the rows `first` … `end` − 1.

        The arrays of consecutive rows must be equally far apart in memory.

        Parameters
        ----------
        first, end : int
            Rows first … end − 1. The arguments of the first two rows determine all
            others.

        Raises
        ------
        TypeError
            An argument has another type than in row 0, or an array is not contiguous.
        """
        if end <= first:
            return
        self.words[first:end] = self.encoded(first)
        # Equal arguments have the distance 0, and unsigned numbers wrap around, so one
        # rule serves addresses and numbers.
        if end - first > 1:
            distance = self.encoded(first + 1) - self.words[first]
            self.words[first:end] += (
                np.arange(end - first, dtype=np.uint64)[:, None] * distance
            )

    def column(self, argument: int) -> int:
        """Return the index of an argument's first word within a row of words.

        Parameters
        ----------
        argument : int
            Number of the argument, from 0 on. The count of all arguments is also valid:
            the result is then the length of a row.
        """
        return sum(kind.words for kind in self.kinds[:argument])

    def encoded(self, row: int) -> NDArray[np.uint64]:
        """Return the encoded words of a row, (k,), from the present arguments of the row.

        Parameters
        ----------
        row : int
            Number of the row.
        """
        words = [
            word
            for value, kind in zip(self.arguments(row), self.kinds, strict=True)
            for word in words_of(value, kind)
        ]
        return np.frombuffer(self._form.pack(*words), np.uint64)


class RowsEntry(Entry[None]):
    """Kernel that one call from Python runs for many rows of arguments.

    ``entry(table, numbers)`` takes a `RowTable` and the numbers of its rows, (n,)
    int64. It calls the kernel for these rows in this order. The kernel has no result,
    and the numbers are not checked.

    Parameters
    ----------
    function : callable
        The kernel. Its numeric arguments are annotated as for `Entry`; it returns None.
    package : Package
        Package of the kernel.
    """

    takes_rows = True
    _native: Function | None = None

    def __call__(self, table: RowTable, numbers: NDArray[np.int64]) -> None:
        """Call the kernel for these rows of a table.

        Parameters
        ----------
        table : RowTable
            Encoded arguments of all rows.
        numbers : (n,) int64
            Rows for which to call the kernel, C-contiguous. A number beyond the table
            reads foreign memory.
        """
        self._call(table, numbers)

    def prepared(
        self, table: RowTable, numbers: NDArray[np.int64]
    ) -> Callable[[], object]:
        """Return a function that calls the kernel for the same rows each time.

        A call of this function is faster than a call of the entry. Both arguments must keep their
        address in memory.

        Parameters
        ----------
        table : RowTable
            Encoded arguments of all rows.
        numbers : (n,) int64
            Rows. The elements may change between calls, but not their count.

        Returns
        -------
        callable
            Takes no arguments. It keeps both arguments alive.
        """
        # An empty call loads the code.
        self(table, numbers[:0])
        # In mode `python` there is no address to prepare a call for.
        if self._native is None:
            return partial(self, table, numbers)
        made = partial(
            self._native, _ROWS.pack(*table.where, address_of(numbers), len(numbers))
        )
        # The machine code reads the memory of the table and of the numbers, so both
        # must live as long as the function.
        vars(made)["kept"] = table, numbers
        return made

    def caller(self, table: RowTable) -> Callable[[NDArray[np.int64]], object]:
        """Return a function that calls the kernel for rows of one table.

        The function takes the numbers of rows and keeps the table. A call of it is faster than a
        call of the entry.

        Parameters
        ----------
        table : RowTable
            Encoded arguments of all rows.
        """
        # An empty call loads the code.
        self(table, np.zeros(0, np.int64))
        if self._native is None:
            return partial(self, table)
        native, head, pack = self._native, _TABLE.pack(*table.where), _NUMBERS.pack

        def call(numbers: NDArray[np.int64]) -> None:
            native(head + pack(address_of(numbers), len(numbers)))

        # The code keeps only an address; the table must live as long as the function.
        vars(call)["kept"] = table
        return call

    @property
    def signature(self) -> str:
        """Name and argument types of a row, as text."""
        return super().signature.replace("(", "(rows:", 1)

    def kinds_of(self, arguments: tuple[Any, ...]) -> tuple[Kind, ...]:
        """Return the types of the arguments of a row.

        The first row determines the types for which the kernel is compiled.

        Parameters
        ----------
        arguments : tuple
            Arguments of a row.

        Raises
        ------
        TypeError
            The types differ from the first row's types.
        """
        kinds = self._kinds(arguments)
        # The entry keeps the types of its first table; later tables must match.
        if self.kinds is None:
            self.kinds = kinds
        if kinds != self.kinds:
            raise TypeError(
                f"{self.name}: expected arguments {self.signature}, found "
                f"({','.join(map(str, kinds))})"
            )

        return kinds

    def _first(self, table: RowTable, numbers: NDArray[np.int64]) -> None:
        with FIRST_CALLS:
            if not self.is_ready:
                address = address_of_code(self)
                self._call = (
                    self._rows_in_python
                    if address is None
                    else self._rows_as_machine_code(address)
                )

        self(table, numbers)

    def _rows_in_python(self, table: RowTable, numbers: NDArray[np.int64]) -> None:
        for number in numbers.tolist():
            # Python functions take the tuples that packs hold, not their addresses.
            values = (
                v.value if isinstance(v, Pack) else v for v in table.arguments(number)
            )
            self.function(*values)

    def _rows_as_machine_code(self, address: int) -> Function:
        # ctypes releases the GIL during the call.
        native = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(address)
        self._native, pack = native, _ROWS.pack

        def call(table: RowTable, numbers: NDArray[np.int64]) -> None:
            native(pack(*table.where, address_of(numbers), len(numbers)))

        return call


_ROWS: Final = struct.Struct("<4Q")
"""Types of the four arguments that a `RowsEntry` passes to machine code.

The arguments are the address of the table, the words of a row, the address of the numbers of
rows, and their count.
"""


_TABLE, _NUMBERS = struct.Struct("<2Q"), struct.Struct("<2Q")
"""Types of the first two, and of the last two, of the arguments in `_ROWS`."""


WORD: Final = 8
"""Size of a word, bytes."""


def rows_kernels(package: Package) -> Callable[[Callable[..., None]], RowsEntry]:
    """Return a decorator for kernels that Python calls for many rows at once.

    Parameters
    ----------
    package : Package
        Package that the kernels belong to.

    Returns
    -------
    callable
        Turns a function without result into a `RowsEntry`.
    """

    def decorate(function: Callable[..., None]) -> RowsEntry:
        return RowsEntry(package.kernel_of_rows(function), package)

    return decorate


__all__ = ["RowTable", "RowsEntry", "rows_kernels"]
