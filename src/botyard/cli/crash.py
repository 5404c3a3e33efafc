"""Handling of internal errors: log entry, copy of the log file, and exit status 236.

Covers CRS-001, CRS-005 and CRS-006 of the feature table.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import sys
from collections.abc import Iterator
from typing import IO, Any

import click

from botyard.cli.logs import Logs
from botyard.errors import BotyardError, ExitCode
from botyard.processes.safefile import open_own
from botyard.servers.jobs.supervise import keep_log
from botyard.version import __version__

log = logging.getLogger("botyard")


class Crash(BotyardError):
    """An internal error ended the program; its log entry is already written."""

    exit_code = ExitCode.CRASH


@contextlib.contextmanager
def crash_handler(
    logs: Logs, file: str | None, *, traces: bool = True, alone: bool = True
) -> Iterator[None]:
    """Turn internal errors into a log entry, a log copy ``FILE-crash``, and a `Crash`.

    Errors that botyard raises on purpose, and interruptions by the user, pass through.

    Parameters
    ----------
    logs : Logs
        Receiver of the log entry.
    file : str, optional
        The log file.
    traces : bool
        Whether fatal signals (faults in compiled code) write stack traces of all
        threads to the log file or to stderr.
    alone : bool
        Whether this process has no supervisor. Fatal signals then keep the log and end
        the process with the same status; otherwise the supervisor reports them.

    Raises
    ------
    Crash
        In place of an unexpected exception.
    """
    with contextlib.ExitStack() as stack:
        # If faulthandler is already on, the user is debugging this process.
        if not faulthandler.is_enabled():
            if alone:
                from botyard.native.fatal import (
                    # Importing this module loads LLVM, which kernels need soon anyway.
                    exit_at_fatal_signals,
                )

                stack.callback(exit_at_fatal_signals(int(ExitCode.CRASH), file))

            if traces:
                _trace_fatal_signals(stack, file)

        try:
            yield
        except (
            BotyardError,
            click.exceptions.ClickException,
            click.exceptions.Exit,
            click.Abort,
        ):
            raise
        except Exception as error:
            log.critical(
                "internal error in botyard %s; please report it together with the following trace",
                __version__,
                exc_info=True,
            )
            logs.flush()
            kept = keep_log(file)
            where = f"; the log is kept as {kept}" if kept else ""
            raise Crash(
                f"internal error: {type(error).__name__}: {error}{where}"
            ) from error


def _trace_fatal_signals(stack: contextlib.ExitStack, file: str | None) -> None:
    """Make fatal signals write stack traces to the log file or to stderr."""
    target: IO[Any] = sys.stderr
    with contextlib.suppress(
        OSError,
        ValueError,
        AttributeError,
        # stderr may have no file descriptor, for example under a test runner.
    ):
        if file is not None:
            target = stack.enter_context(open_own(file, append=True))
        faulthandler.enable(target)
        stack.callback(faulthandler.disable)


__all__ = ["Crash", "crash_handler"]
