"""The decorators of the engine's kernels, one for each way of compiling; see `botyard.jit`."""

from __future__ import annotations

from pathlib import Path

from botyard.jit import Kernel, KernelCache, cache_root

_ENGINE = Path(__file__).resolve().parent.parent
_CACHE = KernelCache([*_ENGINE.glob("*.py"), *_ENGINE.glob("kernels/*.py")])

CACHE_FOLDER = _CACHE.folder
CACHES = _CACHE.is_used
"""False where the user has no writable cache folder: kernels are then compiled in every process."""

kernel = _CACHE.decorator(_nrt=False)
"""Compile a kernel that runs in the caller's thread."""

entry_kernel = _CACHE.decorator()
"""Compile a kernel that takes arrays packed into one reference (`botyard.engine.kernels.packed`), which is counted."""

inner_kernel = _CACHE.decorator(no_cpython_wrapper=True, _nrt=False)
"""Compile a kernel that only other kernels call. Unpacking tuples of arrays from Python is most of a small kernel's compile time.

Such a kernel must never be called from Python while it is compiled: Numba does not check, the process dies. Tests use its `py_func`.
"""

inline_kernel = _CACHE.decorator(_nrt=False, forceinline=True)
"""Compile a small scalar kernel that is worth inlining into its callers."""

inlined_kernel = _CACHE.decorator(no_cpython_wrapper=True, _nrt=False, forceinline=True)
"""The same for one that takes arrays; like an inner kernel it must never be called from Python."""

merged_kernel = _CACHE.decorator(no_cpython_wrapper=True, _nrt=False, inline="always")
"""A kernel that takes tuples of arrays and is called in one place: it becomes a part of its caller before types are known.

A call hands each array of a tuple over as seven numbers: State, Bodies and Fans together take a quarter of a microsecond a call.
For kernels without tuples the other two compile faster.
"""

__all__ = [
    "CACHES",
    "CACHE_FOLDER",
    "Kernel",
    "cache_root",
    "entry_kernel",
    "inline_kernel",
    "inlined_kernel",
    "inner_kernel",
    "kernel",
    "merged_kernel",
]
