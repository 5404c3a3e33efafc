"""``botyard warmup``: compile the kernels in advance, with a progress line.

Each run first compiles the kernels that it needs at its start.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import time
from typing import TYPE_CHECKING

import click

from botyard.processes.interpreter import python_command
from botyard.processes.launch import PIPE, Child

if TYPE_CHECKING:
    from botyard.native.cache import Cache
    from botyard.native.packages import Package

WARM_MARKER = "complete"
"""Name of the file in the cache folder that shows that all kernels are compiled."""
CACHE_FOLDER = re.compile(r"[0-9a-f]{16}(-[0-9.a-z]+)?")
"""Pattern for the names of cache folders, which hold compiled kernels."""
CACHE_MAX_AGE_S = 30 * 24 * 3600.0
"""Time without use after which compiled kernels of other versions are deleted, s."""


def warm_up_with_progress(*, masses: bool, rest: bool = False) -> float:
    """Load or compile the kernels, and report compilation on stderr.

    Does nothing if the package contains compiled kernels.

    Parameters
    ----------
    masses : bool
        Also the kernels for bodies with mass, which take as long to compile as all
        others.
    rest : bool
        Also the kernels that no run needs at its start: `botyard.Worlds`, navigation,
        pictures and traffic.

    Returns
    -------
    float
        Wall time, s.
    """
    from botyard.engine.kernels.jit import PACKAGE
    from botyard.native.shipped import is_shipped
    from botyard.processes.compiling import watch
    from botyard.protocols.pioneer.kernels.jit import PACKAGE as REPORTS
    from botyard.protocols.webgui.kernels.jit import PACKAGE as FRAMES

    began = time.monotonic()
    if all(
        is_shipped(package, whole=masses or rest)
        for package in (PACKAGE, REPORTS, FRAMES, *(_other_packages() if rest else ()))
    ):
        return 0.0

    watch.always = True
    # The compiler creates millions of objects that stay alive; scanning them repeatedly
    # would take a tenth of the time.
    gc.disable()
    try:
        helper = _start_helper()
        from botyard.protocols.warmup import warm_up as warm_up_protocols
        from botyard.worlds.warmup import warm_up

        # Compile in this thread: in any other one, the memory allocator makes it take a
        # third longer.
        warm_up(lambda: _wait_for(helper), masses=masses)
        warm_up_protocols()
        if rest:
            warm_up_rest()
        _mark_warm()
    finally:
        gc.enable()
        watch.finish()

    return time.monotonic() - began


def _other_packages() -> tuple[Package, ...]:
    """Return the packages with kernels, except for the engine."""
    from botyard.navigation.kernels.jit import PACKAGE as NAVIGATION
    from botyard.pictures.kernels.jit import PACKAGE as PICTURES
    from botyard.traffic.kernels.jit import PACKAGE as TRAFFIC

    return NAVIGATION, PICTURES, TRAFFIC


def warm_up_rest() -> None:
    """Call all kernels that `botyard.worlds.warmup.warm_up` does not call."""
    from botyard.devices.ranging import warm_up as warm_up_ranging
    from botyard.navigation.warmup import warm_up as warm_up_navigation
    from botyard.pictures.warmup import warm_up as warm_up_pictures
    from botyard.traffic.compare import compile_kernels
    from botyard.worlds.warmup import warm_up_worlds

    warm_up_ranging(late=True)
    warm_up_worlds()
    warm_up_navigation()
    warm_up_pictures()
    compile_kernels()


def _start_helper() -> Child | None:
    """Start a helper process that compiles a part of the kernels.

    Return None if a helper would not save time.

    The helper saves time if the cache is empty and a second CPU is free. Numba compiles
    one function at a time per process; both processes share the cache on disk. If the
    helper fails, this process compiles its part as well. The helper writes a line when
    it starts to compile, and ends with this process.
    """
    cache = _cache()
    if (
        not cache.is_used
        or (cache.folder / WARM_MARKER).exists()
        or (os.cpu_count() or 1) < 2
    ):
        return None

    try:
        return Child(
            python_command("botyard.cli.warmup:help_compiling"),
            input=PIPE,
            output=PIPE,
        )
    except OSError:
        return None


def _wait_for(helper: Child | None) -> None:
    """Wait for the helper process; if it compiles kernels, report this on stderr."""
    if helper is None:
        return
    from botyard.processes.compiling import watch

    with helper:
        if helper.output.readline():
            with watch.elsewhere():
                # Read until the helper process ends.
                helper.output.read()


def help_compiling() -> None:
    """Compile the kernels of sensors and maps into the cache.

    This is the main function of the helper.

    Writes a line when it compiles the first kernel.
    """
    from botyard.processes.child_process import run_helper
    from botyard.processes.compiling import watch
    from botyard.worlds.warmup import warm_up_sensors_and_maps

    gc.disable()
    watch.on_first = lambda: click.echo("compiling")
    run_helper(warm_up_sensors_and_maps)


def _mark_warm() -> None:
    """Mark the cache as complete, so that no later run starts a helper process."""
    cache = _cache()
    if cache.is_used:
        with contextlib.suppress(OSError):
            (cache.folder / WARM_MARKER).touch()


def _cache() -> Cache:
    """Return the cache of the engine's compiled kernels."""
    from botyard.engine.kernels.jit import PACKAGE
    from botyard.native.cache import cache_of

    return cache_of(PACKAGE)


def remove_old_caches() -> None:
    """Delete compiled kernels of other versions that were not used for a month."""
    kept = _cache().folder
    # Without a home folder there is no cache to clean.
    if not kept.is_absolute():
        return
    for folder in kept.parent.glob("*"):
        if folder != kept and folder.is_dir() and CACHE_FOLDER.fullmatch(folder.name):
            newest = max(
                (f.stat().st_atime for f in folder.rglob("*") if f.is_file()),
                default=0.0,
            )
            if time.time() - newest > CACHE_MAX_AGE_S:
                shutil.rmtree(folder, ignore_errors=True)


@click.command("warmup")
def command() -> None:
    """Compile all kernels now, so that the first run starts at once.

    Intended for containers and installers.
    """
    seconds = warm_up_with_progress(masses=True, rest=True)
    remove_old_caches()
    click.echo(f"kernels ready ({seconds:.1f} s)")
