"""``botyard warmup``: compile the kernels ahead, with a line of progress; also what
every run does first.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import click

from botyard.processes.interpreter import python_command

if TYPE_CHECKING:
    from botyard.native.cache import Cache
    from botyard.native.packages import Package

WARM_MARKER = "complete"
"""Marker file in the cache: all kernels are compiled."""
CACHE_FOLDER = re.compile(r"[0-9a-f]{16}(-[0-9.a-z]+)?")
"""Names of folders of compiled kernels."""
CACHE_MAX_AGE_S = 30 * 24 * 3600.0
"""Compiled kernels of other versions are deleted when they were not used for this long,
s.
"""


def warm_up_with_progress(*, masses: bool, rest: bool = False) -> float:
    """Load or compile the kernels, unless they come with the package; say so on stderr
    when some are compiled. Returns the seconds it took.

    Parameters
    ----------
    masses : bool
        Also those for bodies with mass, which take as long to compile as all others
        together.
    rest : bool
        Also all that no run needs at its start: of `botyard.Worlds`, navigation,
        pictures and traffic.
    """
    from botyard.engine.kernels.jit import PACKAGE
    from botyard.native.shipped import is_shipped
    from botyard.processes.compiling import watch

    began = time.monotonic()
    if all(
        is_shipped(package, whole=masses or rest)
        for package in (PACKAGE, *(_other_packages() if rest else ()))
    ):
        return 0.0

    watch.always = True
    # compiling makes millions of objects that live on: looking through them again and
    # again takes a tenth of the time
    gc.disable()
    try:
        helper = _start_helper()
        from botyard.worlds.warmup import warm_up

        # the kernels are compiled in the calling thread: in another one, the memory
        # allocator makes it take a third longer
        warm_up(lambda: _wait_for(helper), masses=masses)
        if rest:
            warm_up_rest()
        _mark_warm()
    finally:
        gc.enable()
        watch.finish()

    return time.monotonic() - began


def _other_packages() -> tuple[Package, ...]:
    """The packages of kernels beside the engine."""
    from botyard.navigation.kernels.jit import PACKAGE as NAVIGATION
    from botyard.pictures.kernels.jit import PACKAGE as PICTURES
    from botyard.traffic.kernels.jit import PACKAGE as TRAFFIC

    return NAVIGATION, PICTURES, TRAFFIC


def warm_up_rest() -> None:
    """Call each kernel that `botyard.worlds.warmup.warm_up` does not call."""
    from botyard.navigation.warmup import warm_up as warm_up_navigation
    from botyard.pictures.warmup import warm_up as warm_up_pictures
    from botyard.traffic.compare import compile_kernels
    from botyard.worlds.warmup import warm_up_worlds

    warm_up_worlds()
    warm_up_navigation()
    warm_up_pictures()
    compile_kernels()


def _start_helper() -> subprocess.Popen[bytes] | None:
    """Another process that compiles a part of the kernels, when nothing is in the cache
    and there is a processor for it.

    Numba compiles one function at a time in a process; the two meet in the cache on
    disk. Should the other fail, its part is compiled here after all. It writes a line
    when it begins to compile, and ends with this process.
    """
    cache = _cache()
    if (
        not cache.is_used
        or (cache.folder / WARM_MARKER).exists()
        or (os.cpu_count() or 1) < 2
    ):
        return None

    try:
        return subprocess.Popen(
            python_command("botyard.cli.warmup:help_compiling"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None


def _wait_for(helper: subprocess.Popen[bytes] | None) -> None:
    """Wait until it has done its part; if it compiles, that is told as if it were done
    here.
    """
    if helper is None:
        return
    from botyard.processes.compiling import watch

    assert helper.stdout is not None
    with helper:
        if helper.stdout.readline():
            with watch.elsewhere():
                helper.stdout.read()  # until it ends


def help_compiling() -> None:
    """The helper process: compile the kernels of sensors and maps into the cache; a
    line is written when the first one is compiled.
    """
    from botyard.processes.child_process import run_helper
    from botyard.processes.compiling import watch
    from botyard.worlds.warmup import warm_up_sensors_and_maps

    gc.disable()
    watch.on_first = lambda: click.echo("compiling")
    run_helper(warm_up_sensors_and_maps)


def _mark_warm() -> None:
    """Note that the cache is complete, so that no run starts a helper for nothing."""
    cache = _cache()
    if cache.is_used:
        with contextlib.suppress(OSError):
            (cache.folder / WARM_MARKER).touch()


def _cache() -> Cache:
    from botyard.engine.kernels.jit import PACKAGE
    from botyard.native.cache import cache_of

    return cache_of(PACKAGE)


def remove_old_caches() -> None:
    """Delete compiled kernels of other versions that nobody has used for a month."""
    kept = _cache().folder
    if not kept.is_absolute():  # the user has no home folder
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
    """Compile all kernels now, so that the first run starts at once (for containers and
    installers).
    """
    seconds = warm_up_with_progress(masses=True, rest=True)
    remove_old_caches()
    click.echo(f"kernels ready ({seconds:.1f} s)")
