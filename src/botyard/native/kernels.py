"""Kernels: functions over arrays that run as machine code, and their calls from Python.

An *entry* is a kernel that Python calls. Other kernels are called by kernels only, and stay plain Python functions, so that modules with
kernels import without a compiler. The source of an entry's code is chosen at its first call:

1. from the shared library that the installation ships (`botyard.native.shipped`), if it was made from these sources and fits the processor;
2. else Numba compiles it now, or loads it from the user's cache (`botyard.native.compiler`);
3. with ``NUMBA_DISABLE_JIT=1`` or ``BOTYARD_KERNELS=python`` it runs as the Python function that it is.

The calling convention is the same for 1 and 2. An entry takes one pointer to a row of 64-bit words: a number is one word; an array is its
address and its shape; a tuple of arrays is the words of its fields; a `Pack` is the address of such a row, written once when arrays are
allocated. So a call from Python costs half a microsecond, whatever the number of arrays. Kernels allocate nothing, do not raise, and
run without the GIL.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, get_type_hints

import numpy as np

from botyard.errors import KernelsError
from botyard.extras import lacking
from botyard.native.kinds import SCALARS, Kind, PackKind, ScalarKind, format_of, kind_of, words_of
from botyard.native.packages import Function, Package, mode

R = TypeVar("R")


class Entry(Generic[R]):
    """A kernel that can be called from Python.

    Parameters
    ----------
    function : callable
        The kernel. Numbers among its arguments are annotated as int, float, bool or np.uint64; it returns None or one of them.

    Attributes
    ----------
    function : callable
        The Python function, which runs in mode ``python``.
    package : Package
        Package that it belongs to.
    name : str
        Qualified name.
    kinds : tuple of Kind or None
        Types of the arguments of its first call; None before that.
    """

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
            An argument has another type than in the first call, or is a number beyond 64 bits; the message names it.
        """
        result: R = self._call(*args)
        return result

    @property
    def is_ready(self) -> bool:
        """Whether its code is loaded, so that the next call does not compile or load it."""
        return self._call != self._first

    @property
    def is_at_hand(self) -> bool:
        """Whether it can be called without a compilation."""
        if self.is_ready or mode() == "python":
            return True
        from botyard.native.shipped import is_shipped

        return is_shipped(self.package)

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
        """Code of the return type; "": none."""
        hint = get_type_hints(self.function)["return"]
        return "" if hint is type(None) else SCALARS[hint].code

    def _first(self, *args: Any) -> R:
        """The first call: load or compile the code."""
        with _LOCK:
            if not self.is_ready:
                self.kinds = self._kinds(args)
                address = _address(self)
                self._call = self._in_python() if address is None else self._as_machine_code(address)
        return self(*args)

    def _kinds(self, args: tuple[Any, ...]) -> tuple[Kind, ...]:
        hints = list(get_type_hints(self.function).items())
        count = self.function.__code__.co_argcount
        if len(args) != count:
            raise TypeError(f"{self.name} takes {count} arguments, found {len(args)}")
        # scalars have the annotated type: an int may be passed for a float
        return tuple(SCALARS.get(hint) or kind_of(arg) for (_, hint), arg in zip(hints, args, strict=False))

    def _in_python(self) -> Function:
        assert self.kinds is not None
        packs = [k for k, kind in enumerate(self.kinds) if isinstance(kind, PackKind)]
        unsigned = [k for k, kind in enumerate(self.kinds) if kind == SCALARS[np.uint64]]
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
        """A function that packs its arguments into words and calls the code at an address."""
        assert self.kinds is not None
        native = ctypes.CFUNCTYPE(_RESULTS[self.result], ctypes.c_char_p)(
            address
        )  # ctypes releases the GIL during the call
        names = self._names()
        words = []
        for name, kind in zip(names, self.kinds, strict=True):
            if isinstance(kind, PackKind):  # of another kind, its words would be taken for addresses of other arrays
                words.append(f"{name}.address if {name}.kind is kind_{name}.of else words_({name}, kind_{name})[0]")
            elif isinstance(kind, ScalarKind):
                words.append(name)
            else:
                words.append(f"*words_({name}, kind_{name})")
        known: dict[str, Any] = {
            "native_": native,
            "pack_": struct.Struct("<" + format_of(self.kinds)).pack,
            "words_": words_of,
            "explain_": self._explain,
            **{f"kind_{name}": kind for name, kind in zip(names, self.kinds, strict=True)},
        }
        takes = ", ".join(names)
        code = (
            f"def {self.function.__name__}({takes}):\n try:\n  return native_(pack_({', '.join(words)}))\n"
            f" except Exception:\n  explain_({takes})\n  raise\n"
        )
        exec(code, known)
        call: Function = known[self.function.__name__]
        return call

    def _names(self) -> tuple[str, ...]:
        """What its arguments are called."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    def _explain(self, *args: Any) -> None:
        """Say which argument cannot be handed over."""
        assert self.kinds is not None
        for name, arg, kind in zip(self._names(), args, self.kinds, strict=True):
            try:
                words_of(arg, kind)
            except TypeError as error:
                raise TypeError(f"{self.name}: {name}: {error}") from None


_LOCK: Final = threading.RLock()
"""Numba compiles one function at a time; also guards the first call of entries."""
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
    """A decorator that makes kernels of a package callable from Python."""

    def decorate(function: Callable[..., R]) -> Entry[R]:
        return Entry(package.kernel(function), package)

    return decorate


def _address(entry: Entry[Any]) -> int | None:
    """Address of an entry's machine code; None: run it in Python."""
    chosen = mode()
    if chosen == "python":
        return None
    if chosen != "jit":
        from botyard.native.shipped import library

        address = library().address(entry.package, entry.signature)
        if address is not None:
            return address
        if chosen == "native":
            why = library().why_not or (
                f"{entry.name} is not among them as it is called"
                if library().fits(entry.package)
                else "compiled kernels are of other sources"
            )
            raise KernelsError(f"{why}, and BOTYARD_KERNELS=native lets nothing else be used")
    try:
        from botyard.native.compiler import address_of_compiled
    except ModuleNotFoundError as error:
        if not _is_of_the_compiler(error.name):
            raise
        from botyard.native.shipped import library

        raise KernelsError(
            f"{library().why_not or 'compiled kernels are of other sources'}; {lacking('compiling them', 'jit')}"
        ) from None

    assert entry.kinds is not None
    return address_of_compiled(entry.function, entry.kinds, entry.result)


def _is_of_the_compiler(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in ("numba", "llvmlite")


__all__ = ["ENTRIES", "Entry", "entry_kernels"]
