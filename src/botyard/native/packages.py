"""Registry of kernel functions by package, and their decorators, which return the
functions unchanged; see `botyard.native.kernels`.
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
"""Files that define the calling convention and what else the library contains: compiled
code is invalid when they change.
"""


def digest_of(files: Iterable[Path]) -> str:
    """A hash of the names and contents of files, 16 characters."""
    digest = hashlib.blake2b(digest_size=8)
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


_KERNELS: Final[dict[Function, Kernel]] = {}
"""All kernel functions."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a function is compiled.

    Attributes
    ----------
    package : Package
        The package that it belongs to.
    inline : {"no", "machine", "source", "rows"}
        Not inlined; inlined into its callers' machine code; inlined into their source
        before type inference; inlined into the loop over rows of a shared library.
    """

    package: Package
    inline: str


def as_kernel(value: Any) -> Kernel | None:
    """The compilation options of a function; None: it is not a kernel."""
    try:
        return _KERNELS.get(value)
    except TypeError:  # unhashable: not a function
        return None


class Package:
    """The kernels of one package, and the decorators that register them.

    Parameters
    ----------
    name : str
        The package.
    sources : iterable of Path
        All source files of its kernels.
    """

    def __init__(self, name: str, sources: Iterable[Path]) -> None:
        self.name = name
        self.sources = sorted(sources)

    def digest(self) -> str:
        """A hash (16 characters) of all sources and of the calling convention: compiled
        code is valid for one digest only.
        """
        return digest_of([*CONVENTION, *self.sources])

    def kernel(self, function: Function) -> Function:
        """Decorator: a kernel that other kernels call. From Python it is a plain
        function.
        """
        _KERNELS[function] = Kernel(self, "no")
        return function

    def kernel_of_rows(self, function: Function) -> Function:
        """Decorator: a kernel that is called for many rows of arguments
        (`botyard.native.kernels.RowsEntry`).

        A call with 150 arrays puts a thousand words on the stack, which takes a fifth
        of a step of a world without sensors. In a library that is built once there is
        no call; code that is compiled when it is needed is ready sooner with it.
        """
        _KERNELS[function] = Kernel(self, "rows")
        return function

    def inline_kernel(self, function: Function) -> Function:
        """Decorator: a small kernel that is inlined into the machine code of its
        callers.
        """
        _KERNELS[function] = Kernel(self, "machine")
        return function

    def merged_kernel(self, function: Function) -> Function:
        """Decorator: a kernel with tuples of arrays and a single call site, inlined
        into its caller before type inference.

        A call passes each array of a tuple as seven arguments: State, Bodies and Fans
        together take a quarter of a microsecond per call. For kernels without tuples
        the other two compile faster.
        """
        _KERNELS[function] = Kernel(self, "source")
        return function


def mode() -> str:
    """The mode: ``auto``, ``native`` (shipped library only), ``jit`` (Numba only) or
    ``python``; see `botyard.native.kernels`.

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
