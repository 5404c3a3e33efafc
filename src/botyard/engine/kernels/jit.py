"""How kernels are compiled: one alias each for serial and parallel ones, so that the options stand in one place.

`error_model="numpy"`: no division checks. No `fastmath`: results must be the same everywhere and every time. `nogil`: the step may
run beside I/O. Compiled code is cached per user (beside the sources, or in Numba's cache folder when those are read-only).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
from numba import njit, prange

# omp hands work to its threads in 2 µs; tbb and workqueue take ten times that (reference performance.md §4)
setattr(numba.config, "THREADING_LAYER_PRIORITY", ["omp", "workqueue", "tbb"])  # noqa: B010 - unknown to its type stubs

Decorator = Callable[[Callable[..., Any]], Any]

_options = partial(njit, cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)

kernel: Decorator = _options()
"""Compile a kernel that runs in the caller's thread."""

inner_kernel: Decorator = _options(no_cpython_wrapper=True)
"""Compile a kernel that only other kernels call. Unpacking tuples of arrays from Python is most of a small kernel's compile time.

Such a kernel must never be called from Python while it is compiled: Numba does not check, the process dies. Tests use its `py_func`."""

inline_kernel: Decorator = _options(inline="always", no_cpython_wrapper=True)
"""Compile a small scalar kernel that is worth inlining into its callers."""

parallel_kernel: Decorator = _options(parallel=True)
"""Compile a kernel whose `prange` loops run on all threads; every iteration must write only its own output."""

__all__ = ["inline_kernel", "inner_kernel", "kernel", "parallel_kernel", "prange"]
