"""``--daemonize``: the simulator goes on in the background, and the command ends when
it is ready (CLI-019).
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence

import click

from botyard.errors import DaemonError
from botyard.processes.interpreter import python_command

LOG_FILE = "botyard.log"
"""Where a simulator in the background logs to if nothing else is said."""


def daemonize(args: Sequence[str], log_file: str | None) -> int:
    """Start the same command line as a process of its own, without a terminal, and wait
    until it is ready.

    Parameters
    ----------
    args : sequence of str
        The command line of ``botyard run``.
    log_file : str, optional
        The log file that it names.

    Returns
    -------
    int
        0, or the status of a simulator that has ended before it was ready.

    Raises
    ------
    DaemonError
        The process cannot be started.
    """
    kept = [*args, "--no-daemonize", "--noninteractive"]
    if log_file is None:
        kept += ["--log-file", LOG_FILE]
    with tempfile.TemporaryFile("w+") as errors:
        try:
            process = subprocess.Popen(
                python_command("botyard.__main__:main", "run", *kept),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            raise DaemonError(
                f"--daemonize: no process can be started: {error.strerror}"
            ) from None

        assert process.stdout is not None
        try:
            for line in process.stdout:
                click.echo(line, nl=False)
                if "ready" in line:
                    click.echo(
                        "botyard goes on in the background as process "
                        f"{process.pid}; its log is {log_file or LOG_FILE}"
                    )
                    return 0
        except BaseException:
            # who does not wait for it does not want it
            process.terminate()
            raise

        status = process.wait()
        errors.seek(0)
        click.echo(errors.read(), nl=False, err=True)
        return status


__all__ = ["LOG_FILE", "daemonize"]
