"""Kernels for bodies with mass, compiled when the first such body appears.

Most worlds have no such bodies. `main` is a child process that compiles the kernels
into the cache. The child ends at the latest when its standard input closes.
"""

from __future__ import annotations

import contextlib
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
from botyard.processes.launch import PIPE, Child

_ONE_AT_A_TIME: Final = threading.Lock()


def mass_kernels(host: Host) -> Future[None]:
    """Return a future that is done when the kernels are available.

    Parameters
    ----------
    host : Host
        Runs slow work in threads.
    """
    there: Future[None] = promise()
    host.run_in_background(
        get_mass_kernels, lambda _, error: resolve(there, error=error)
    )
    return there


def get_mass_kernels() -> None:
    """Compile the kernels (half a minute) or load them (half a second).

    Call this in a thread. If a cache on disk is available, another process compiles:
    compilation in this process would hold the interpreter lock and delay each step.
    """
    from botyard.worlds.warmup import has_mass_kernels, warm_up_masses

    with _ONE_AT_A_TIME:
        if has_mass_kernels():
            return
        cache = cache_of(PACKAGE)
        if cache.is_used and not any(cache.folder.rglob("masses.move_masses-*.nbc")):
            with contextlib.suppress(OSError), watch.elsewhere():
                # If the process fails, `warm_up_masses` compiles the kernels in this
                # process.
                _compile_elsewhere()

        warm_up_masses()


def _compile_elsewhere() -> None:
    command = python_command("botyard.servers.jobs.masskernels:main")
    with Child(command, input=PIPE) as helper:
        helper.wait()


def main() -> None:
    """Compile the kernels for bodies with mass into the cache (child process)."""
    from botyard.worlds.warmup import warm_up_masses

    run_helper(warm_up_masses)


__all__ = ["get_mass_kernels", "main", "mass_kernels"]
