"""When the program itself fails: a trace in the log, a copy of the log that is kept,
status 236 (CRS-001, CRS-005, CRS-006).
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
    """The program has failed, which was told already."""

    exit_code = ExitCode.CRASH


@contextlib.contextmanager
def crash_handler(
    logs: Logs, file: str | None, *, traces: bool = True, alone: bool = True
) -> Iterator[None]:
    """Turn faults of the program into an entry of the log, a copy of the log file as
    ``FILE-crash``, and a `Crash`.

    Errors that botyard raises on purpose, and the user's own interruptions, go through.

    Parameters
    ----------
    logs : Logs
        Where entries go.
    file : str, optional
        The log file.
    traces : bool
        Fatal signals (a fault in compiled code) leave traces of all threads, in the log
        file or on stderr.
    alone : bool
        Nobody looks after this process: fatal signals keep the log, and end with the
        same status. Else the one that does so tells of them.

    Raises
    ------
    Crash
        In place of what nobody expected.
    """
    with contextlib.ExitStack() as stack:
        # else somebody debugs this process
        if not faulthandler.is_enabled():
            if alone:
                from botyard.native.fatal import (
                    # brings LLVM, which is needed soon anyway
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
                "internal error in botyard %s; please report it with what follows",
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
    target: IO[Any] = sys.stderr
    with contextlib.suppress(
        OSError, ValueError, AttributeError
    ):  # stderr may be no file
        if file is not None:
            target = stack.enter_context(open_own(file, append=True))
        faulthandler.enable(target)
        stack.callback(faulthandler.disable)


__all__ = ["Crash", "crash_handler"]
