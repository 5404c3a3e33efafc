"""Registry of kernel functions by package, and their decorators.

The decorators return the functions unchanged; see `botyard.native.kernels`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botyard.errors import KernelsError
from botyard.names import shown

Function = Callable[..., Any]

CONVENTION: Final = [
    Path(__file__).with_name(name)
    for name in ("kinds.py", "compiler.py", "fatal.py", "build.py")
]
"""Source files that define the calling convention and the other contents of the library.

Compiled code is invalid when they change.
"""


def digest_of(files: Iterable[Path]) -> str:
    """Return a hash of the names and contents of files, 16 characters.

    Parameters
    ----------
    files : iterable of Path
        Existing files; their order counts, their folders do not.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


_KERNELS: Final[dict[Function, Kernel]] = {}
"""Compilation options of all kernel functions, by function."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Compilation options of a kernel.

    Attributes
    ----------
    package : Package
        Package of the kernel.
    inline : {"no", "machine", "source", "rows"}
        Not inlined; inlined into its callers' machine code; inlined into their source
        before type inference; inlined into the loop over rows of a shared library.
    """

    package: Package
    inline: str


def as_kernel(value: Any) -> Kernel | None:
    """Return the compilation options of a function; None if it is not a kernel.

    Parameters
    ----------
    value : object
        Any object, such as a global of a module.
    """
    try:
        return _KERNELS.get(value)
    # An unhashable value cannot be a function, so it is not looked up.
    except TypeError:
        return None


class Package:
    """Kernels of one package, and the decorators that register them.

    Parameters
    ----------
    name : str
        Name of the package.
    sources : iterable of Path
        All source files of its kernels.
    """

    def __init__(self, name: str, sources: Iterable[Path]) -> None:
        self.name = name
        self.sources = sorted(sources)

    def digest(self) -> str:
        """Return a hash (16 characters) of all sources and of the calling convention.

        Compiled code is valid for one digest only.
        """
        return digest_of([*CONVENTION, *self.sources])

    def kernel(self, function: Function) -> Function:
        """Register a function as a kernel that other kernels call (decorator).

        From Python it is a plain function.

        Parameters
        ----------
        function : callable
            Function over numbers, arrays and named tuples of them.

        Returns
        -------
        callable
            `function` itself, as for all these decorators.
        """
        _KERNELS[function] = Kernel(self, "no")
        return function

    def kernel_of_rows(self, function: Function) -> Function:
        """Register a function as a kernel that is called for many rows of arguments (decorator).

        See `botyard.native.rows.RowsEntry`. A call with 150 arrays puts a thousand
        words on the stack, which takes a fifth of a step of a world without sensors. A
        shared library is built once, and inlines the kernel. Code compiled at run time
        keeps the call, because it is then ready sooner.

        Parameters
        ----------
        function : callable
            Function without a result.
        """
        _KERNELS[function] = Kernel(self, "rows")
        return function

    def inline_kernel(self, function: Function) -> Function:
        """Register a small kernel whose machine code is inlined into its callers (decorator).

        Parameters
        ----------
        function : callable
            Function over numbers, arrays and named tuples of them.
        """
        _KERNELS[function] = Kernel(self, "machine")
        return function

    def merged_kernel(self, function: Function) -> Function:
        """Register a kernel that is inlined into its caller before type inference (decorator).

        It takes tuples of arrays and has a single call site. A call passes each array
        of a tuple as seven arguments: State, Bodies and Fans together take a quarter of
        a microsecond per call. Kernels without tuples compile faster with the other two
        decorators.

        Parameters
        ----------
        function : callable
            Function over numbers, arrays and named tuples of them.
        """
        _KERNELS[function] = Kernel(self, "source")
        return function


def mode() -> str:
    """Return the mode in which kernels run; see `botyard.native.kernels`.

    The modes are ``auto``, ``native`` (shipped library only), ``jit`` (Numba only) and
    ``python``.

    Raises
    ------
    KernelsError
        ``BOTYARD_KERNELS`` has another value.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "python"
    chosen = os.environ.get("BOTYARD_KERNELS", "auto")
    if chosen not in ("auto", "native", "jit", "python"):
        raise KernelsError(
            f"BOTYARD_KERNELS: expected auto, native, jit or python, found '{shown(chosen)}'"
        )

    return chosen


__all__ = [
    "CONVENTION",
    "Function",
    "Kernel",
    "Package",
    "as_kernel",
    "digest_of",
    "mode",
]
