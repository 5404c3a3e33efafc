"""The decorators of the traffic kernels; see `botyard.jit`."""

from __future__ import annotations

from pathlib import Path

from botyard.jit import KernelCache

_CACHE = KernelCache(Path(__file__).resolve().parent.glob("*.py"))


kernel = _CACHE.decorator(_nrt=False)
"""Compile a kernel that is called from Python."""

inlined_kernel = _CACHE.decorator(no_cpython_wrapper=True, _nrt=False, forceinline=True)
"""Compile one that becomes a part of its caller, and is never to be called from Python while it is compiled."""

__all__ = ["inlined_kernel", "kernel"]
