"""How kernels are compiled: one alias for each way, so that the options stand in one place.

`_nrt=False`: no counting of references to arrays. Kernels allocate nothing, and their callers keep what they hand over; counting, by
atomic operations at each call of an inlined kernel and each array taken out of a tuple, was half the time of a step. `nogil`: several
threads may cast rays at once, which is why there is no parallel kernel: Numba's own take as long again to compile, and bring a second
thread pool. `error_model="numpy"`: no division checks. No `fastmath`: results must be the same everywhere and every time.

Compiled code is cached per user, in a folder named after a hash of all kernel sources. Numba itself looks only at the file of a
function, so code of a kernel that was compiled into its caller would survive a change of its source.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit
from platformdirs import user_cache_path

_config: Any = numba.config  # its type stubs do not know all settings

Kernel = Callable[..., Any]


def _sources_hash() -> str:
    """A hash of everything that compiled kernels are made of."""
    engine = Path(__file__).resolve().parent.parent
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for path in sorted([*engine.glob("*.py"), *engine.glob("kernels/*.py")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def cache_root() -> Path:
    """Where compiled kernels are kept: ``NUMBA_CACHE_DIR`` if it is set, else the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) if chosen else user_cache_path("botyard") / "kernels"


CACHE_FOLDER = cache_root() / _sources_hash()


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


CACHES = _is_writable(CACHE_FOLDER)
"""False where the user has no writable cache folder: kernels are then compiled in every process."""


_njit: Any = njit  # its type stubs do not know all options


def _decorator(**options: Any) -> Callable[[Kernel], Kernel]:
    def decorate(function: Kernel) -> Kernel:
        before = _config.CACHE_DIR
        _config.CACHE_DIR = str(CACHE_FOLDER)  # read while decorating only; other users of Numba keep theirs
        try:
            compiled: Kernel = _njit(cache=CACHES, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(
                function
            )
        finally:
            _config.CACHE_DIR = before
        return compiled

    return decorate


kernel = _decorator(_nrt=False)
"""Compile a kernel that runs in the caller's thread."""

inner_kernel = _decorator(no_cpython_wrapper=True, _nrt=False)
"""Compile a kernel that only other kernels call. Unpacking tuples of arrays from Python is most of a small kernel's compile time.

Such a kernel must never be called from Python while it is compiled: Numba does not check, the process dies. Tests use its `py_func`.
"""

inline_kernel = _decorator(_nrt=False, forceinline=True)
"""Compile a small scalar kernel that is worth inlining into its callers."""

inlined_kernel = _decorator(no_cpython_wrapper=True, _nrt=False, forceinline=True)
"""The same for one that takes arrays; like an inner kernel it must never be called from Python."""

merged_kernel = _decorator(no_cpython_wrapper=True, _nrt=False, inline="always")
"""A kernel that takes tuples of arrays and is called in one place: it becomes a part of its caller before types are known.

A call hands each array of a tuple over as seven numbers: State, Bodies and Fans together take a quarter of a microsecond a call.
For kernels without tuples the other two compile faster.
"""

__all__ = [
    "CACHES",
    "CACHE_FOLDER",
    "cache_root",
    "inline_kernel",
    "inlined_kernel",
    "inner_kernel",
    "kernel",
    "merged_kernel",
]
