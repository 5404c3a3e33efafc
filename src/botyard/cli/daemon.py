"""``--daemonize``: run the simulator in the background (CLI-019).

The command ends when the simulator is ready.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Sequence

import click

from botyard.errors import BusyFileError, DaemonError
from botyard.processes.interpreter import python_command
from botyard.processes.launch import PIPE, Child
from botyard.processes.safefile import Hold

LOG_FILE = "botyard.log"
"""Default log file of a simulator in the background; a second one uses botyard-2.log."""


def daemonize(args: Sequence[str], log_file: str | None) -> int:
    """Run the same command line in a new process without a terminal.

    The function returns when the new process is ready.

    Parameters
    ----------
    args : sequence of str
        Command line of ``botyard run``.
    log_file : str, optional
        Log file that the command line names.

    Returns
    -------
    int
        0, or the exit status of a simulator that ended before it was ready.

    Raises
    ------
    DaemonError
        The process cannot be started.
    """
    # The last option wins, so the new process does not daemonize again.
    kept = [*args, "--no-daemonize", "--noninteractive"]
    if log_file is None:
        log_file = _free_log_file()
        kept += ["--log-file", log_file]

    with tempfile.TemporaryFile("w+") as errors:
        try:
            process = Child(
                python_command("botyard.__main__:main", "run", *kept),
                output=PIPE,
                errors=errors,
            )
        except OSError as error:
            raise DaemonError(
                f"--daemonize: cannot start a process: {error.strerror}"
            ) from None

        try:
            for data in process.output:
                line = data.decode("utf-8", "replace")
                click.echo(line, nl=False)
                # The child keeps its pipe open for ever, so wait for the word "ready",
                # not for the end of file.
                if "ready" in line:
                    click.echo(
                        "botyard runs in the background as process "
                        f"{process.pid}; its log is {log_file}"
                    )
                    return 0
        except BaseException:
            # A user who interrupts the start does not want the simulator.
            process.terminate()
            raise

        status = process.wait() or 0
        errors.seek(0)
        click.echo(errors.read(), nl=False, err=True)
        return status


def _free_log_file() -> str:
    """Return the first default name of a log file that no other simulator uses."""
    stem, suffix = os.path.splitext(LOG_FILE)
    numbered = (f"{stem}-{number}{suffix}" for number in itertools.count(2))
    for name in itertools.chain((LOG_FILE,), numbered):
        with contextlib.suppress(BusyFileError), Hold(name):
            return name
    raise AssertionError("unreachable: the sequence of log file names is infinite")


__all__ = ["LOG_FILE", "daemonize"]
