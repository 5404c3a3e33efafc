"""The kernels for bodies with mass, which most worlds do without: compiled when the
first such body comes, beside the steps.

`main` is a process of its own that compiles them into the cache and ends, at the latest
when its standard input does.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from concurrent.futures import Future
from typing import Final

from botyard.control.later import promise, resolve
from botyard.control.parts import Host
from botyard.engine.kernels.jit import PACKAGE
from botyard.native.cache import cache_of
from botyard.processes.child_process import run_helper
from botyard.processes.compiling import watch
from botyard.processes.interpreter import python_command
from botyard.worlds.warmup import has_mass_kernels, warm_up_masses

_ONE_AT_A_TIME: Final = threading.Lock()


def mass_kernels(host: Host) -> Future[None]:
    """Done when they are there."""
    there: Future[None] = promise()
    host.run_aside(get_mass_kernels, lambda _, error: resolve(there, error=error))
    return there


def get_mass_kernels() -> None:
    """Have them compiled, or load them: half a minute, or half a second. For a thread
    beside the steps.

    Another process compiles, if there is a cache that the two share: here, each step
    would have to wait for the interpreter.
    """
    with _ONE_AT_A_TIME:
        if has_mass_kernels():
            return
        cache = cache_of(PACKAGE)
        if cache.is_used and not any(cache.folder.rglob("masses.move_masses-*.nbc")):
            with contextlib.suppress(OSError), watch.elsewhere():
                # should it fail, they are compiled here after all
                _compile_elsewhere()

        warm_up_masses()


def _compile_elsewhere() -> None:
    command = python_command("botyard.servers.jobs.masskernels:main")
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as helper:
        helper.wait()


def main() -> None:
    """The helper process: compile the kernels of bodies with mass into the cache."""
    run_helper(warm_up_masses)


__all__ = ["get_mass_kernels", "main", "mass_kernels"]
