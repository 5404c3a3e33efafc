"""Location of the cache of compiled kernels. Needs only the version of Numba, not
Numba.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from platformdirs import user_cache_path

from botyard.native.packages import Package
from botyard.processes.compiling import watch


def cache_root() -> Path:
    """Root folder of compiled kernels: ``NUMBA_CACHE_DIR`` if it is set, else the
    user's cache folder.

    A path that is not absolute cannot be used: the user has no home folder.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    try:
        return user_cache_path("botyard") / "kernels"
    except RuntimeError:
        # some versions say so, others leave the "~" as it is
        return Path("~") / ".cache" / "botyard" / "kernels"


@dataclass(frozen=True, slots=True)
class Cache:
    """Compiled code of one package.

    Attributes
    ----------
    folder : Path
        Its folder, named after a hash of all sources.
    is_used : bool
        False where the user has no writable cache folder: kernels are then compiled in
        every process.
    """

    folder: Path
    is_used: bool


@functools.cache
def cache_of(package: Package) -> Cache:
    """The cache of a package's kernels; its folder is created."""
    folder = cache_root() / f"{package.digest()}-{_numba_version()}"
    try:
        is_used = folder.is_absolute()
        if is_used:
            folder.mkdir(parents=True, exist_ok=True)
            is_used = os.access(folder, os.W_OK)
    except OSError:
        is_used = False

    if not is_used:
        watch.unwritable_cache = str(folder)
    return Cache(folder, is_used)


def _numba_version() -> str:
    try:
        return version("numba")
    except PackageNotFoundError:
        return "none"


__all__ = ["Cache", "cache_of", "cache_root"]
