"""``--daemonize``: run the simulator in the background (CLI-019).

The command ends when the simulator is ready.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

import click

from botyard.errors import DaemonError
from botyard.processes.interpreter import python_command
from botyard.processes.launch import PIPE, Child

LOG_FILE = "botyard.log"
"""Default log file of a simulator in the background."""


def daemonize(args: Sequence[str], log_file: str | None) -> int:
    """Start the same command line as a process without a terminal, and wait until it is
    ready.

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
        kept += ["--log-file", LOG_FILE]
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
                # The child keeps its pipe open for ever, so wait for this word, not for
                # the end of file.
                if "ready" in line:
                    click.echo(
                        "botyard runs in the background as process "
                        f"{process.pid}; its log is {log_file or LOG_FILE}"
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


__all__ = ["LOG_FILE", "daemonize"]
