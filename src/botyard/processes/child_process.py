"""Worker processes, on the worker's side.

Untrusted files are parsed in a worker process with limits on memory and CPU time. The
worker ends after one request (`botyard.servers.jobs.child_jobs` is the parent's side).
The worker is a new interpreter (spawned, not forked), so that it inherits no threads or
sockets of the simulator. It reads one request from standard input and writes its
answers to standard output.

`botyard.codec.messages` defines the messages, which contain data and never code.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

from botyard.codec.messages import Channel, Types, write_message

OUT_OF_MEMORY: Final = 71
"""Exit status of a worker that exceeded its memory limit."""
Send = Callable[[str, object], None]
"""Function that sends an answer: its kind and its body."""


def serve(requests: Types, answers: Types, work: Callable[[Any, Send], None]) -> None:
    """Read one request, call `work`, and exit (main function of a worker).

    The first two command-line arguments are the limits of memory, bytes, and of CPU
    time, s. Exceptions of `work` are not caught: `work` must report its failures
    itself.

    Parameters
    ----------
    requests, answers : mapping of str to type
        Type of the body of each kind of message.
    work : callable
        Receives the body of the request, and a function that sends an answer: its kind
        and its body.
    """
    _limit(int(sys.argv[1]), int(sys.argv[2]))
    output = os.fdopen(os.dup(1), "wb")
    # Output printed by a library must not mix with the answers.
    os.dup2(2, 1)

    def send(kind: str, body: object) -> None:
        write_message(output, kind, body, answers[kind])
        output.flush()

    try:
        request = Channel(sys.stdin.buffer, requests).read()
        if request is None:
            return
        end_with_parent()
        work(request[1], send)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)

    # Do not wait for threads that libraries may have left.
    os._exit(0)


def run_helper(work: Callable[[], object]) -> NoReturn:
    """Run `work` for the parent process, and exit with status 0.

    The process also ends when the parent dies: the parent holds a pipe to standard
    input. An exception of `work` ends the process with a traceback and status 1.

    Parameters
    ----------
    work : callable
        Function without arguments; its result is ignored.
    """
    signal.signal(
        signal.SIGINT,
        signal.SIG_IGN,
        # The terminal sends SIGINT to both processes; the parent decides.
    )
    end_with_parent()
    work()
    sys.stdout.flush()
    os._exit(
        0
        # A thread may still read standard input; closing a stream during a read would
        # block.
    )


def _limit(memory: int, seconds: int) -> None:
    """Limit memory (bytes) and CPU time (s) of this process, and lower its priority.

    Limits that the system does not support are skipped.
    """
    with contextlib.suppress(ImportError, AttributeError):
        resource = importlib.import_module("resource")
        wanted = {"RLIMIT_AS": memory, "RLIMIT_CPU": seconds, "RLIMIT_CORE": 0}
        for name, limit in wanted.items():
            with contextlib.suppress(AttributeError, ValueError, OSError):
                kind = getattr(resource, name)
                hard = resource.getrlimit(kind)[1]
                allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(kind, (allowed, allowed))

    # Lower priority, because the steps of the world must not wait for a job.
    with contextlib.suppress(AttributeError, OSError):
        os.nice(5)


def end_with_parent() -> None:
    """End this process when the parent dies, even in the middle of C code.

    The parent's death closes the other end of standard input. On Linux, the kernel then
    kills this process (SIGKILL); elsewhere it exits with status 1.
    """
    with contextlib.suppress(ImportError, AttributeError, OSError):
        fcntl = importlib.import_module("fcntl")
        # Linux sends a signal when the pipe changes (O_ASYNC). A waiting thread would
        # need the GIL, which C code may hold.
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETSIG, getattr(signal, "SIGKILL"))  # noqa: B009 - Windows has none
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
        # The pipe was closed before O_ASYNC was set.
        if select.select([0], [], [], 0)[0]:
            os._exit(1)
        return

    threading.Thread(target=_watch_input, daemon=True).start()


def stop_myself(grace: float) -> NoReturn:
    """Ask this process to end (SIGTERM), and exit with status 1 later.

    A thread calls this when the parent has ended: the main thread may still tidy up.

    Parameters
    ----------
    grace : float
        Time before this process exits, s.
    """
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace)
    os._exit(1)


def _watch_input() -> None:
    """Exit when standard input closes (thread)."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass

    os._exit(1)


__all__ = [
    "OUT_OF_MEMORY",
    "Send",
    "end_with_parent",
    "run_helper",
    "serve",
    "stop_myself",
]
