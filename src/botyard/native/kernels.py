"""Kernels: functions over arrays that run as machine code, and their calls from Python.

An *entry* is a kernel that Python calls. Other kernels are called by kernels only, and
stay plain Python functions, so that modules with kernels can be imported without a compiler. The
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

One call of an entry *of rows* (`botyard.native.rows`) runs the kernel once for each of
many rows, which are consecutive in a table.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Final, Generic, TypeVar, get_type_hints

import numpy as np

from botyard.errors import KernelsError
from botyard.extras import lacking
from botyard.native.kinds import (
    SCALARS,
    Kind,
    PackKind,
    encoder,
    kind_of,
    words_of,
)
from botyard.native.packages import Function, Package, mode

R = TypeVar("R")


class Entry(Generic[R]):
    """Kernel that Python can call.

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
    """Whether the entry is a `botyard.native.rows.RowsEntry`."""

    def __init__(self, function: Callable[..., R], package: Package) -> None:
        self.function = function
        self.package = package
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.kinds: tuple[Kind, ...] | None = None
        self._call: Function = self._first
        ENTRIES[self.name] = self

    def __call__(self, *args: Any) -> R:
        """Call the kernel.

        Parameters
        ----------
        *args
            Arguments of the kernel: arrays, numbers, named tuples of them, packs.
            Arrays must be C-contiguous. The kernel writes to these arrays, and keeps
            none of them.

        Returns
        -------
        int, float, bool or None
            Result of the kernel.

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
        """Whether the machine code of the kernel is loaded.

        If so, the next call neither compiles nor loads it.
        """
        # `!=` and not `is not`: each access makes a new bound method.
        return self._call != self._first

    @property
    def is_at_hand(self) -> bool:
        """Whether a call needs no compilation: the code is loaded, or runs in Python."""
        if self.is_ready or mode() == "python":
            return True
        from botyard.native.shipped import library

        return mode() != "jit" and library().holds(self.package, self.name)

    @property
    def signature(self) -> str:
        """Name and argument types of the kernel, as text.

        Raises
        ------
        ValueError
            The entry was not called yet.
        """
        if self.kinds is None:
            raise ValueError(
                f"kernel {self.name}: expected at least one call, which sets the "
                "types of its arguments; found none"
            )
        return f"{self.name}({','.join(map(str, self.kinds))})"

    @property
    def result(self) -> str:
        """Code of the return type, as in `ScalarKind`; "" for none."""
        hint = get_type_hints(self.function)["return"]
        return "" if hint is type(None) else SCALARS[hint].code

    def _first(self, *args: Any) -> R:
        """Load or compile the code at the first call, and call it."""
        with FIRST_CALLS:
            # Another thread may have loaded it while this one waited for the lock.
            if not self.is_ready:
                self.kinds = self._kinds(args)
                address = address_of_code(self)
                self._call = (
                    self._in_python()
                    if address is None
                    else self._as_machine_code(address)
                )

        return self(*args)

    def _kinds(self, args: tuple[Any, ...]) -> tuple[Kind, ...]:
        """Return the types of the arguments, which all later calls must have.

        Parameters
        ----------
        args : tuple
            Arguments of the first call, which determine the types of arrays.

        Raises
        ------
        TypeError
            The count of arguments differs, or kernels do not accept a type.
        """
        hints = list(get_type_hints(self.function).items())
        count = self.function.__code__.co_argcount
        if len(args) != count:
            raise TypeError(f"{self.name} takes {count} arguments, found {len(args)}")
        # Scalars have the annotated type, because callers may pass an int for a float.
        # The hints have one item more, the type of the result.
        return tuple(
            SCALARS.get(hint) or kind_of(arg)
            for (_, hint), arg in zip(hints, args, strict=False)
        )

    def _in_python(self) -> Function:
        """Return a function that runs the kernel as plain Python, with Python values."""
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
        """Return a function that packs its arguments and calls the machine code.

        Parameters
        ----------
        address : int
            Address of the wrapper, which takes one pointer to the words of all
            arguments.
        """
        assert self.kinds is not None
        # ctypes releases the GIL during the call.
        native = ctypes.CFUNCTYPE(_RESULTS[self.result], ctypes.c_char_p)(address)
        names = self._names()
        takes = ", ".join(names)
        known: dict[str, Any] = {
            "native_": native,
            "encode_": encoder(self.kinds, names),
            "explain_": self._explain,
        }

        # Generated source: a call with a fixed list of arguments is faster than any
        # loop over them. Errors are explained only when encoding fails, so valid calls
        # pay nothing.
        code = (
            f"def {self.function.__name__}({takes}):\n try:\n  words_ = encode_({takes})\n"
            f" except Exception:\n  explain_({takes})\n  raise\n"
            " return native_(words_)\n"
        )
        exec(code, known)
        call: Function = known[self.function.__name__]

        return call

    def _names(self) -> tuple[str, ...]:
        """Return the names of the kernel's parameters."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    def _explain(self, *args: Any) -> None:
        """Raise a TypeError that names the argument that cannot be passed to machine code."""
        assert self.kinds is not None
        for name, arg, kind in zip(self._names(), args, self.kinds, strict=True):
            try:
                words_of(arg, kind)
            except TypeError as error:
                raise TypeError(f"{self.name}: {name}: {error}") from None


FIRST_CALLS: Final = threading.RLock()
"""Lock for the first calls of entries, because Numba compiles one function at a time."""
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
    """Return a decorator that makes kernels of a package callable from Python.

    Parameters
    ----------
    package : Package
        Package that the kernels belong to.

    Returns
    -------
    callable
        Turns a function into an `Entry`. Its numeric arguments need annotations.
    """

    def decorate(function: Callable[..., R]) -> Entry[R]:
        return Entry(package.kernel(function), package)

    return decorate


def address_of_code(entry: Entry[Any]) -> int | None:
    """Return the address of an entry's machine code; None to run it in Python.

    Parameters
    ----------
    entry : Entry
        Entry whose `kinds` are known.

    Raises
    ------
    KernelsError
        No library fits, and the code may not or cannot be compiled.
    """
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
                f"{why}, and BOTYARD_KERNELS=native allows compiled kernels only"
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


__all__ = ["ENTRIES", "Entry", "entry_kernels"]
