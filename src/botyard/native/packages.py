"""Which functions are kernels, and of which package. A kernel is the Python function that it was; see `botyard.native.kernels`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Function = Callable[..., Any]

CONVENTION: Final = [Path(__file__).with_name(name) for name in ("kinds.py", "compiler.py", "fatal.py", "build.py")]
"""Files that say how kernels are called, and what else is in a library: with others, machine code is of no use."""


def digest_of(files: Iterable[Path]) -> str:
    """A hash of the names and contents of files, 16 characters."""
    digest = hashlib.blake2b(digest_size=8)
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Options:
    """How a kernel is compiled.

    Attributes
    ----------
    inline : {"no", "machine", "source"}
        It is a function of its own; a part of the machine code of its callers; a part of their source before types are known (for those
        with tuples of arrays, of which each array is handed over as seven numbers).
    """

    inline: str


_KERNELS: Final[dict[Function, Kernel]] = {}
"""All functions that are kernels."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a function is compiled.

    Attributes
    ----------
    package : Package
        Which it belongs to.
    inline : {"no", "machine", "source"}
        It is a function of its own; a part of the machine code of its callers; a part of their source before types are known.
    """

    package: Package
    inline: str


def as_kernel(value: Any) -> Kernel | None:
    """How a function is compiled; None: it is no kernel."""
    try:
        return _KERNELS.get(value)
    except TypeError:  # it cannot be looked up: something else
        return None


class Package:
    """The kernels of one package, with the decorators that make them.

    Parameters
    ----------
    name : str
        The package.
    sources : iterable of Path
        All files that its kernels are made of.
    """

    def __init__(self, name: str, sources: Iterable[Path]) -> None:
        self.name = name
        self.sources = sorted(sources)

    def digest(self) -> str:
        """A hash of all sources, and of how they are called: with another one, machine code is of no use. 16 characters."""
        return digest_of([*CONVENTION, *self.sources])

    def kernel(self, function: Function) -> Function:
        """A kernel that other kernels call. From Python it is the function that it was."""
        _KERNELS[function] = Kernel(self, "no")
        return function

    def inline_kernel(self, function: Function) -> Function:
        """A small kernel that is worth a copy in the machine code of each of its callers."""
        _KERNELS[function] = Kernel(self, "machine")
        return function

    def merged_kernel(self, function: Function) -> Function:
        """A kernel that takes tuples of arrays and is called in one place: it becomes a part of its caller before types are known.

        A call hands each array of a tuple over as seven numbers: State, Bodies and Fans together take a quarter of a microsecond a call.
        For kernels without tuples the other two compile faster.
        """
        _KERNELS[function] = Kernel(self, "source")
        return function


def mode() -> str:
    """``auto``, ``native`` (only what is shipped), ``jit`` (only what is compiled here) or ``python``; see the module.

    Raises
    ------
    ValueError
        ``BOTYARD_KERNELS`` is something else.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "python"
    chosen = os.environ.get("BOTYARD_KERNELS", "auto")
    if chosen not in ("auto", "native", "jit", "python"):
        raise ValueError(f"BOTYARD_KERNELS: expected auto, native, jit or python, found {chosen!r}")
    return chosen


__all__ = ["CONVENTION", "Function", "Kernel", "Package", "as_kernel", "digest_of", "mode"]
