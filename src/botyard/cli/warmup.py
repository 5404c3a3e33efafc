"""``botyard warmup``: compile the kernels ahead, with a line of progress; also what every run does first."""

from __future__ import annotations

import sys
import threading
import time

import click
from rich.console import Console

QUIET_FOR = 1.0
"""Loading kernels from the cache takes less than this, s; only what takes longer is worth a word."""


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
    if failure:
        raise failure[0]
    return time.monotonic() - began


@click.command("warmup")
def command() -> None:
    """Compile all kernels now, so that the first run starts at once (for containers and installers)."""
    seconds = warm_up_with_progress()
    click.echo(f"kernels ready ({seconds:.1f} s)")
