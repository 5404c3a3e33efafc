"""How kernels are compiled and where the compiled code is kept. A leaf; `botyard.compiling` says that it happens.

`_nrt=False`: no counting of references to arrays. Kernels allocate nothing, and their callers keep what they hand over; counting, by
atomic operations at each call of an inlined kernel and each array taken out of a tuple, was half the time of a step. `nogil`: several
threads may run kernels at once, which is why there is no parallel kernel: Numba's own take as long again to compile, and bring a second
thread pool. `error_model="numpy"`: no division checks. No `fastmath`: results must be the same everywhere and every time.

Compiled code is cached per user, in a folder named after a hash of all kernel sources of a package. Numba itself looks only at the file
of a function, so code of a kernel that was compiled into its caller would survive a change of its source.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numba
from numba import njit
from platformdirs import user_cache_path

from botyard.compiling import watch

_config: Any = numba.config  # its type stubs do not know all settings
_njit: Any = njit

Kernel = Callable[..., Any]


def cache_root() -> Path:
    """Where compiled kernels are kept: ``NUMBA_CACHE_DIR`` if it is set, else the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) if chosen else user_cache_path("botyard") / "kernels"


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


class KernelCache:
    """Compiled code of one package.

    Parameters
    ----------
    sources : iterable of Path
        All files that its kernels are made of.

    Attributes
    ----------
    folder : Path
        Where it is.
    is_used : bool
        False where the user has no writable cache folder: kernels are then compiled in every process.
    """

    def __init__(self, sources: Iterable[Path]) -> None:
        digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
        for path in sorted(sources):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        self.folder = cache_root() / digest.hexdigest()
        self.is_used = _is_writable(self.folder)
        if not self.is_used:
            watch.lost = str(self.folder)

    def decorator(self, **options: Any) -> Callable[[Kernel], Kernel]:
        """A decorator that compiles with these options of Numba besides the usual ones."""

        def decorate(function: Kernel) -> Kernel:
            before = _config.CACHE_DIR
            _config.CACHE_DIR = str(self.folder)  # read while decorating only; other users of Numba keep theirs
            try:
                compiled: Kernel = _njit(
                    cache=self.is_used, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options
                )(function)
            finally:
                _config.CACHE_DIR = before
            return compiled

        return decorate


__all__ = ["Kernel", "KernelCache", "cache_root"]
