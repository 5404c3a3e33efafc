"""``botyard warmup``: compile the kernels ahead, with a line of progress; also what every run does first."""

from __future__ import annotations

import shutil
import sys
import threading
import time

import click
from rich.console import Console

QUIET_FOR = 1.0
"""Loading kernels from the cache takes less than this, s; only what takes longer is worth a word."""
OLD_AFTER = 30 * 24 * 3600.0
"""Compiled kernels of other versions are deleted when they have not been used for so long, s."""


def warm_up_with_progress() -> float:
    """Load or compile all kernels; show progress on stderr when it takes long. Returns the seconds it took."""
    console = Console(stderr=True)
    phase = ["starting"]
    done = threading.Event()
    failure: list[BaseException] = []

    def work() -> None:
        try:
            from botyard.simulation import warm_up

            warm_up(lambda name: phase.__setitem__(0, name))
        except BaseException as error:  # handed over to the main thread
            failure.append(error)
        finally:
            done.set()

    began = time.monotonic()
    threading.Thread(target=work, name="warm-up", daemon=True).start()
    if not done.wait(QUIET_FOR):
        text = "compiling kernels, this is needed once"
        if console.is_terminal:
            with console.status(text) as status:
                while not done.wait(0.2):
                    status.update(f"{text}: {phase[0]} ({time.monotonic() - began:.0f} s)")
        else:
            print(f"botyard: {text} (about 20 s) …", file=sys.stderr, flush=True)
            done.wait()
        print(f"botyard: kernels compiled in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        _say_if_not_kept()
    if failure:
        raise failure[0]
    return time.monotonic() - began


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
