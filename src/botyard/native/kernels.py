"""Kernels: functions over arrays that run as machine code, and their calls from Python.

An *entry* is a kernel that Python calls. Other kernels are called by kernels only, and
stay plain Python functions, so that modules with kernels import without a compiler. The
first call of an entry chooses the source of its code:

1. the shared library of the installation (`botyard.native.shipped`), if it was made
   from these sources and fits the processor;
2. otherwise Numba compiles it now, or loads it from the user's cache
   (`botyard.native.compiler`);
3. with ``NUMBA_DISABLE_JIT=1`` or ``BOTYARD_KERNELS=python`` the Python function itself
   runs.

The calling convention is the same for 1 and 2. An entry takes one pointer to a row of
64-bit words. A number is one word. An array is its address and its shape. A tuple of
arrays is the words of its fields. A `Pack` is the address of such a row, written once
when arrays are allocated. A call from Python therefore costs half a microsecond, for
any number of arrays. Kernels allocate nothing, do not raise exceptions, and run without
the GIL.

One call of an entry *of rows* (`RowsEntry`) runs the kernel once for each of many rows,
which are consecutive in a `RowTable`.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from botyard.errors import KernelsError
from botyard.extras import lacking
from botyard.native.kinds import (
    SCALARS,
    Kind,
    Pack,
    PackKind,
    ScalarKind,
    address_of,
    format_of,
    kind_of,
    words_of,
)
from botyard.native.packages import Function, Package, mode

R = TypeVar("R")


class Entry(Generic[R]):
    """A kernel that Python can call.

    Parameters
    ----------
    function : callable
        The kernel. Its numeric arguments are annotated as int, float, bool or
        np.uint64. It returns None or one of these types.

    Attributes
    ----------
    function : callable
        The Python function, which runs in mode ``python``.
    package : Package
        Package of the kernel.
    name : str
        Qualified name.
    kinds : tuple of Kind or None
        Types of the arguments of its first call; None before it.
    """

    takes_rows: ClassVar[bool] = False
    """Whether it is a `RowsEntry`."""

    def __init__(self, function: Callable[..., R], package: Package) -> None:
        self.function = function
        self.package = package
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.kinds: tuple[Kind, ...] | None = None
        self._call: Function = self._first
        ENTRIES[self.name] = self

    def __call__(self, *args: Any) -> R:
        """Call the kernel.

        Raises
        ------
        TypeError
            An argument has another type than in the first call, or is a number beyond
            64 bits; the message names it.
        """
        result: R = self._call(*args)
        return result

    @property
    def is_ready(self) -> bool:
        """Whether the code is loaded.

        If so, the next call neither compiles nor loads it.
        """
        return self._call != self._first

    @property
    def is_at_hand(self) -> bool:
        """Whether a call needs no compilation."""
        if self.is_ready or mode() == "python":
            return True
        from botyard.native.shipped import library

        return mode() != "jit" and library().holds(self.package, self.name)

    @property
    def signature(self) -> str:
        """Name and argument types, as text.

        Raises
        ------
        ValueError
            It was not called yet.
        """
        if self.kinds is None:
            raise ValueError(f"{self.name} was not called yet")
        return f"{self.name}({','.join(map(str, self.kinds))})"

    @property
    def result(self) -> str:
        """Code of the return type; "" for none."""
        hint = get_type_hints(self.function)["return"]
        return "" if hint is type(None) else SCALARS[hint].code

    def _first(self, *args: Any) -> R:
        """Load or compile the code at the first call, and call it."""
        with _LOCK:
            # Another thread may have loaded it while this one waited for the lock.
            if not self.is_ready:
                self.kinds = self._kinds(args)
                address = _address(self)
                self._call = (
                    self._in_python()
                    if address is None
                    else self._as_machine_code(address)
                )

        return self(*args)

    def _kinds(self, args: tuple[Any, ...]) -> tuple[Kind, ...]:
        hints = list(get_type_hints(self.function).items())
        count = self.function.__code__.co_argcount
        if len(args) != count:
            raise TypeError(f"{self.name} takes {count} arguments, found {len(args)}")
        # Scalars have the annotated type, because callers may pass an int for a float.
        return tuple(
            SCALARS.get(hint) or kind_of(arg)
            for (_, hint), arg in zip(hints, args, strict=False)
        )

    def _in_python(self) -> Function:
        assert self.kinds is not None
        # Packs and unsigned numbers have another form in Python than in machine code.
        packs = [k for k, kind in enumerate(self.kinds) if isinstance(kind, PackKind)]
        unsigned = [
            k for k, kind in enumerate(self.kinds) if kind == SCALARS[np.uint64]
        ]
        function = self.function

        def call(*args: Any) -> Any:
            values = list(args)
            for k in packs:
                values[k] = values[k].value
            for k in unsigned:
                values[k] = np.uint64(values[k])
            return function(*values)

        return call

    def _as_machine_code(self, address: int) -> Function:
        """Return a function that packs its arguments and calls the machine code."""
        assert self.kinds is not None
        # ctypes releases the GIL during the call.
        native = ctypes.CFUNCTYPE(_RESULTS[self.result], ctypes.c_char_p)(address)
        names = self._names()
        words = []
        for name, kind in zip(names, self.kinds, strict=True):
            # A pack of another type must not pass: its words would be used as addresses
            # of other arrays.
            if isinstance(kind, PackKind):
                words.append(
                    f"{name}.address if {name}.kind is kind_{name}.of else "
                    f"words_({name}, kind_{name})[0]"
                )
            elif isinstance(kind, ScalarKind):
                words.append(name)
            else:
                words.append(f"*words_({name}, kind_{name})")

        known: dict[str, Any] = {
            "native_": native,
            "pack_": struct.Struct("<" + format_of(self.kinds)).pack,
            "words_": words_of,
            "explain_": self._explain,
            **{
                f"kind_{name}": kind
                for name, kind in zip(names, self.kinds, strict=True)
            },
        }
        takes = ", ".join(names)
        # Generated source: a call with a fixed list of arguments is faster than any
        # loop over them. Errors are explained only when packing fails, so valid calls
        # pay nothing.
        code = (
            f"def {self.function.__name__}({takes}):\n try:\n  return "
            f"native_(pack_({', '.join(words)}))\n"
            f" except Exception:\n  explain_({takes})\n  raise\n"
        )
        exec(code, known)
        call: Function = known[self.function.__name__]
        return call

    def _names(self) -> tuple[str, ...]:
        """Return the names of the arguments."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    def _explain(self, *args: Any) -> None:
        """Raise a TypeError that names the argument that cannot be encoded."""
        assert self.kinds is not None
        for name, arg, kind in zip(self._names(), args, self.kinds, strict=True):
            try:
                words_of(arg, kind)
            except TypeError as error:
                raise TypeError(f"{self.name}: {name}: {error}") from None


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
        self.kinds = entry.kinds_of(arguments(0))
        self._form = struct.Struct("<" + format_of(self.kinds))
        self.words = np.zeros((count, self._form.size // WORD), np.uint64)
        self.where = address_of(self.words), self._form.size // WORD

    def fill(self, first: int, end: int) -> None:
        """Encode the rows `first` … `end` − 1.

        The arrays of consecutive rows must be equally far apart in memory.
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
        """Return the column of the first word of an argument, by its number."""
        return sum(kind.words for kind in self.kinds[:argument])

    def encoded(self, row: int) -> NDArray[np.uint64]:
        """Return the words of a row's current arguments, (k,)."""
        words = [
            word
            for value, kind in zip(self.arguments(row), self.kinds, strict=True)
            for word in words_of(value, kind)
        ]
        return np.frombuffer(self._form.pack(*words), np.uint64)


class RowsEntry(Entry[None]):
    """A kernel that one call from Python runs for many rows of arguments.

    ``entry(table, numbers)`` takes a `RowTable` and the numbers of its rows, (n,)
    int64. It calls the kernel for these rows in this order. The kernel has no result,
    and the numbers are not checked.
    """

    takes_rows = True
    _native: Function | None = None

    def __call__(self, table: RowTable, numbers: NDArray[np.int64]) -> None:
        """Call the kernel for these rows of a table."""
        self._call(table, numbers)

    def prepared(
        self, table: RowTable, numbers: NDArray[np.int64]
    ) -> Callable[[], object]:
        """Return a function that calls the kernel for the same rows each time.

        It costs less than a call of the entry. Both arguments must keep their address
        in memory.
        """
        # An empty call loads the code.
        self(table, numbers[:0])
        if self._native is None:
            return partial(self, table, numbers)
        made = partial(
            self._native, _ROWS.pack(*table.where, address_of(numbers), len(numbers))
        )
        # The machine code reads their memory, so they must live as long as the
        # function.
        vars(made)["kept"] = table, numbers
        return made

    def caller(self, table: RowTable) -> Callable[[NDArray[np.int64]], object]:
        """Return a function that calls the kernel for rows of one table.

        It takes the numbers of rows, keeps the table, and costs less than a call of the
        entry.
        """
        # An empty call loads the code.
        self(table, np.zeros(0, np.int64))
        if self._native is None:
            return partial(self, table)
        native, head, pack = self._native, _TABLE.pack(*table.where), _NUMBERS.pack

        def call(numbers: NDArray[np.int64]) -> None:
            native(head + pack(address_of(numbers), len(numbers)))

        vars(call)["kept"] = table
        return call

    @property
    def signature(self) -> str:
        """Name and types of a row, as text."""
        return super().signature.replace("(", "(rows:", 1)

    def kinds_of(self, arguments: tuple[Any, ...]) -> tuple[Kind, ...]:
        """Return the types of the arguments of a row.

        The first row determines the types for which the kernel is compiled.

        Raises
        ------
        TypeError
            The types differ from the first row's types.
        """
        kinds = self._kinds(arguments)
        if self.kinds is None:
            self.kinds = kinds
        if kinds != self.kinds:
            raise TypeError(
                f"{self.name}: expected arguments {self.signature}, found "
                f"({','.join(map(str, kinds))})"
            )

        return kinds

    def _first(self, table: RowTable, numbers: NDArray[np.int64]) -> None:
        with _LOCK:
            if not self.is_ready:
                address = _address(self)
                self._call = (
                    self._rows_in_python
                    if address is None
                    else self._rows_as_machine_code(address)
                )

        self(table, numbers)

    def _rows_in_python(self, table: RowTable, numbers: NDArray[np.int64]) -> None:
        for number in numbers.tolist():
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
"""Arguments of a `RowsEntry`.

They are the address of the table, the words of a row, the address of the numbers of
rows, and their count.
"""
_TABLE, _NUMBERS = struct.Struct("<2Q"), struct.Struct("<2Q")
"""The two halves of these arguments."""
WORD: Final = 8
"""Bytes of a word."""
_LOCK: Final = threading.RLock()
"""Lock of the first call of entries; Numba compiles one function at a time."""
ENTRIES: Final[dict[str, Entry[Any]]] = {}
"""All entries of the imported modules, by name."""
_RESULTS: Final[dict[str, Any]] = {
    "": None,
    "q": ctypes.c_int64,
    "Q": ctypes.c_uint64,
    "d": ctypes.c_double,
    "?": ctypes.c_bool,
}


def entry_kernels(package: Package) -> Callable[[Callable[..., R]], Entry[R]]:
    """Return a decorator that makes kernels of a package callable from Python."""

    def decorate(function: Callable[..., R]) -> Entry[R]:
        return Entry(package.kernel(function), package)

    return decorate


def rows_kernels(package: Package) -> Callable[[Callable[..., None]], RowsEntry]:
    """Return a decorator for kernels that Python calls for many rows at once."""

    def decorate(function: Callable[..., None]) -> RowsEntry:
        return RowsEntry(package.kernel_of_rows(function), package)

    return decorate


def _address(entry: Entry[Any]) -> int | None:
    """Return the address of an entry's machine code; None to run it in Python."""
    chosen = mode()
    if chosen == "python":
        return None
    # The shipped library has precedence: it costs no compilation.
    if chosen != "jit":
        from botyard.native.shipped import library

        address = library().address(entry.package, entry.signature)
        if address is not None:
            return address
        # For tests and installations that must not compile.
        if chosen == "native":
            why = library().why_not or (
                f"compiled kernels lack {entry.name} with these argument types"
                if library().fits(entry.package)
                else "compiled kernels were built from other sources"
            )
            raise KernelsError(
                f"{why}, and BOTYARD_KERNELS=native excludes all other code"
            )

    try:
        from botyard.native.compiler import address_of_compiled
    except ModuleNotFoundError as error:
        # Another missing module is a bug, and not a missing extra.
        if not _is_of_the_compiler(error.name):
            raise
        from botyard.native.shipped import library

        raise KernelsError(
            f"{library().why_not or 'compiled kernels were built from other sources'}; "
            f"{lacking('compiling them', 'jit')}"
        ) from None

    assert entry.kinds is not None
    return address_of_compiled(
        entry.function, entry.kinds, entry.result, rows=entry.takes_rows
    )


def _is_of_the_compiler(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in ("numba", "llvmlite")


__all__ = ["ENTRIES", "Entry", "RowTable", "RowsEntry", "entry_kernels", "rows_kernels"]
