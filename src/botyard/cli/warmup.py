"""``botyard warmup``: compile the kernels ahead, with a line of progress; also what every run does first."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import subprocess
import sys
import threading
import time

import click
from rich.console import Console

QUIET_FOR = 1.0
"""Loading kernels from the cache takes less than this, s; only what takes longer is worth a word."""
WARM = "complete"
"""Empty file in the cache that says that all kernels are there."""
OLD_AFTER = 30 * 24 * 3600.0
"""Compiled kernels of other versions are deleted when they have not been used for so long, s."""


def warm_up_with_progress() -> float:
    """Load or compile all kernels; show progress on stderr when it takes long. Returns the seconds it took."""
    phase = ["starting"]
    done = threading.Event()
    began = time.monotonic()
    # the kernels are compiled in the calling thread: in another one, the memory allocator makes it take a third longer
    watcher = threading.Thread(target=_watch, args=(phase, done, began), name="warm-up progress", daemon=True)
    watcher.start()
    gc.disable()  # compiling makes millions of objects that live on: looking through them again and again takes a tenth of the time
    try:
        helper = _start_helper()
        from botyard.simulation import warm_up

        warm_up(lambda name: phase.__setitem__(0, name), helper.wait if helper is not None else lambda: None)
        _mark_warm()
    finally:
        gc.enable()
        done.set()
        watcher.join()
    return time.monotonic() - began


def _watch(phase: list[str], done: threading.Event, began: float) -> None:
    """Say that it takes long, if it does, what is being done, and when it is over."""
    if done.wait(QUIET_FOR):
        return
    console = Console(stderr=True)
    text = "compiling kernels, this is needed once"
    if console.is_terminal:
        with console.status(text) as status:
            while not done.wait(0.2):
                status.update(f"{text}: {phase[0]} ({time.monotonic() - began:.0f} s)")
    else:
        print(f"botyard: {text} (10 to 20 s) …", file=sys.stderr, flush=True)
        done.wait()
    print(f"botyard: kernels compiled in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    _say_if_not_kept()


def _start_helper() -> subprocess.Popen[bytes] | None:
    """Another process that compiles a part of the kernels, when nothing is in the cache and there is a processor for it.

    Numba compiles one function at a time in a process; the two meet in the cache on disk. Should the other fail, its part is compiled
    here after all.
    """
    from botyard.engine.kernels.jit import CACHE_FOLDER, CACHES

    if not CACHES or (CACHE_FOLDER / WARM).exists() or (os.cpu_count() or 1) < 2:
        return None
    code = "import gc; gc.disable(); from botyard.simulation import warm_up_sensors_and_maps as work; work()"
    try:
        return subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None


def _mark_warm() -> None:
    """Note that the cache is complete, so that no run starts a helper for nothing."""
    from botyard.engine.kernels.jit import CACHE_FOLDER, CACHES

    if CACHES:
        with contextlib.suppress(OSError):
            (CACHE_FOLDER / WARM).touch()


def _say_if_not_kept() -> None:
    from botyard.engine.kernels.jit import CACHE_FOLDER, CACHES

    if not CACHES:
        print(
            f"botyard: they cannot be kept: {CACHE_FOLDER} is not writable; set NUMBA_CACHE_DIR to a folder that is",
            file=sys.stderr,
            flush=True,
        )


def remove_old_caches() -> None:
    """Delete compiled kernels of other versions that nobody has used for a month."""
    from botyard.engine.kernels.jit import CACHE_FOLDER

    for folder in CACHE_FOLDER.parent.glob("*"):
        if folder != CACHE_FOLDER and folder.is_dir() and len(folder.name) == len(CACHE_FOLDER.name):
            newest = max((f.stat().st_atime for f in folder.rglob("*.nb*")), default=0.0)
            if time.time() - newest > OLD_AFTER:
                shutil.rmtree(folder, ignore_errors=True)


@click.command("warmup")
def command() -> None:
    """Compile all kernels now, so that the first run starts at once (for containers and installers)."""
    seconds = warm_up_with_progress()
    remove_old_caches()
    click.echo(f"kernels ready ({seconds:.1f} s)")
