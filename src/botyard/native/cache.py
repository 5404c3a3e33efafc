"""Location of the cache of compiled kernels.

This module needs only Numba's version number, so it does not import Numba.
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
    """Return the root folder of the caches of compiled kernels.

    It is ``NUMBA_CACHE_DIR`` if set, otherwise the user's cache folder. A path that is
    not absolute means that the user has no home folder: it cannot be used.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    try:
        return user_cache_path("botyard") / "kernels"
    except RuntimeError:
        # Some versions of platformdirs raise this error, others leave the "~" in the
        # path.
        return Path("~") / ".cache" / "botyard" / "kernels"


@dataclass(frozen=True, slots=True)
class Cache:
    """Folder that caches the compiled kernels of one package.

    Attributes
    ----------
    folder : Path
        The folder, named after a hash of all sources.
    is_used : bool
        False if the user has no writable cache folder: each process then compiles the
        kernels again.
    """

    folder: Path
    is_used: bool


@functools.cache
def cache_of(package: Package) -> Cache:
    """Return the cache of a package's kernels; its folder is created if it is missing.

    Parameters
    ----------
    package : Package
        Kernels that are compiled together. A change of their sources gives another
        folder.

    Returns
    -------
    Cache
        The same object in each call of a process.
    """
    folder = cache_root() / f"{package.digest()}-{_numba_version()}"
    try:
        is_used = folder.is_absolute()
        if is_used:
            folder.mkdir(parents=True, exist_ok=True)
            # An existing folder may belong to another user.
            is_used = os.access(folder, os.W_OK)
    except OSError:
        is_used = False

    if not is_used:
        # Messages about slow starts name the folder as the reason.
        watch.unwritable_cache = str(folder)
    return Cache(folder, is_used)


def _numba_version() -> str:
    try:
        return version("numba")
    except PackageNotFoundError:
        return "none"


__all__ = ["Cache", "cache_of", "cache_root"]
