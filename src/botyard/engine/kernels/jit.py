"""How kernels are compiled: one alias for each way, so that the options stand in one place.

`error_model="numpy"`: no division checks. No `fastmath`: results must be the same everywhere and every time. `nogil`: the step may
run beside I/O.

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
from numba import njit, prange
from platformdirs import user_cache_path

# omp hands work to its threads in 2 µs; tbb and workqueue take ten times that (reference performance.md §4)
_config: Any = numba.config  # its type stubs do not know all settings
_config.THREADING_LAYER_PRIORITY = ["omp", "workqueue", "tbb"]

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


kernel = _decorator()
"""Compile a kernel that runs in the caller's thread."""

inner_kernel = _decorator(no_cpython_wrapper=True)
"""Compile a kernel that only other kernels call. Unpacking tuples of arrays from Python is most of a small kernel's compile time.

Such a kernel must never be called from Python while it is compiled: Numba does not check, the process dies. Tests use its `py_func`.
"""

inline_kernel = _decorator(inline="always")
"""Compile a small scalar kernel that is worth inlining into its callers."""

parallel_kernel = _decorator(parallel=True)
"""Compile a kernel whose `prange` loops run on all threads; every iteration must write only its own output."""


def limit_threads(n: int) -> None:
    """Let parallel kernels called from this thread use at most `n` threads."""
    numba.set_num_threads(max(1, min(n, _config.NUMBA_NUM_THREADS)))


__all__ = [
    "CACHES", "CACHE_FOLDER", "cache_root", "inline_kernel", "inner_kernel", "kernel", "limit_threads", "parallel_kernel", "prange",
]  # fmt: skip
