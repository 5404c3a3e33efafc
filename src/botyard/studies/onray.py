"""Runs of a study on a Ray cluster.

This module checks the address in advance, and starts and follows the process that
connects to Ray (`botyard.studies.raydriver`).
"""

from __future__ import annotations

import itertools
import os
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from botyard.errors import CommandLineError
from botyard.extras import is_there, lacking
from botyard.processes.interpreter import python_command
from botyard.processes.launch import PIPE, Child, ending, last_lines
from botyard.studies.bundle import copy_files
from botyard.studies.local import LOG_LINES
from botyard.studies.messages import Broken, Done, Item, decode_event
from botyard.studies.plan import Plan
from botyard.studies.raymessages import RayJob, encode_line
from botyard.studies.results import LOGS, Folder
from botyard.studies.run_hash import Run

ANY: Final = "auto"
"""Address that selects the cluster in ``RAY_ADDRESS``, or the cluster of this computer.
"""
CONNECT_TIMEOUT_S: Final = 5.0
"""Timeout of the test connection to a cluster, s.

Ray itself would retry for minutes.
"""
RUNS_PER_LINE: Final = 1000
"""Number of runs per line sent to the driver process."""
GRACE_S: Final = 1.5
"""Time from asking the driver process to end until it is killed, s."""


class RayStudy:
    """Executor that carries out runs on a Ray cluster.

    Parameters
    ----------
    plan : Plan
        Plan to which the runs belong.
    folder : Folder
        Folder for the results.
    address : str
        ``host:port`` of the cluster, or `ANY`.
    workers : int or None
        Maximum number of concurrent runs; None: one per CPU of the cluster.
    done : callable
        Called in this thread with each run that has ended.

    Raises
    ------
    CommandLineError
        Ray is not installed, the address is not valid, or no cluster answers.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        address: str = ANY,
        workers: int | None = None,
        done: Callable[[Done], object] = lambda _done: None,
    ) -> None:
        check_cluster(address)
        self._plan, self._folder, self._address, self._workers, self._done = (
            plan,
            folder,
            address,
            workers,
            done,
        )

    def carry_out(self, runs: Sequence[Run]) -> None:
        """Carry out runs, and end all tasks on the cluster even after an error.

        Parameters
        ----------
        runs : sequence of Run
            The runs. Each gets a row, whatever happens to it.

        Raises
        ------
        CommandLineError
            No cluster answers, the plan's files cannot be sent, or the code or map that
            the plan names cannot be loaded there.
        OSError
            The results folder cannot be written, or a file of the plan cannot be read.
        """
        with tempfile.TemporaryDirectory(prefix="botyard-study-") as files:
            copy_files(self._plan, Path(files))
            session = self._folder.new_session()
            log = self._folder.path / LOGS / f"ray-{session}.txt"
            job = RayJob(
                address=self._address,
                workers=self._workers,
                files=files,
                results=str(self._folder.path.resolve()),
                part=str(self._folder.part(session, "ray").resolve()),
                runs=len(runs),
                plan=self._plan.path.name,
                setup=self._plan.setup,
                limits=self._plan.keys.limits,
                record=self._plan.keys.record,
            )
            process = Child(
                python_command("botyard.studies.raydriver:main"),
                input=PIPE,
                output=PIPE,
                errors=log,
                # Ray reports usage statistics over the network unless the user decides
                # otherwise.
                env={"RAY_USAGE_STATS_ENABLED": "0", **os.environ},
            )
            try:
                _send(process, job, runs)
                self._follow(process, log, len(runs))
            finally:
                # Ray ends the tasks of its driver.
                process.end(GRACE_S)
                process.close()

            log.unlink(missing_ok=True)

    def _follow(self, process: Child, log: Path, left: int) -> None:
        """Process the driver's events until it ends.

        Parameters
        ----------
        process : Child
            The driver process.
        log : Path
            Its log; the last lines explain a lost connection.
        left : int
            Number of runs that still have to end.

        Raises
        ------
        CommandLineError
            The driver cannot carry out the runs, or it ends before all of them have.
        """
        for line in process.output:
            event = decode_event(line) if line.endswith(b"\n") else None
            if isinstance(event, Done):
                left -= 1
                self._done(event)
            elif isinstance(event, Broken):
                raise CommandLineError(event.text)

        status = process.wait() or 0
        # Ray ends a driver that loses its cluster, without an event.
        if left:
            text = "\n".join(last_lines(log, LOG_LINES))
            raise CommandLineError(
                "--ray: the connection to the cluster was lost, its process has "
                f"ended ({ending(status)}):\n{text}"
            )


def _send(process: Child, job: RayJob, runs: Sequence[Run]) -> None:
    """Send the job and its runs to the driver process.

    A dead process is ignored here, because the end of its events reports it.

    Parameters
    ----------
    process : Child
        The driver process.
    job : RayJob
        The job, sent as one line.
    runs : sequence of Run
        The runs, sent as lines of `RUNS_PER_LINE`.
    """
    items = (Item(run.key, run.values, run.seed) for run in runs)
    process.send(encode_line(job), b"\n")
    while piece := list(itertools.islice(items, RUNS_PER_LINE)):
        process.send(encode_line(piece), b"\n")


def check_cluster(address: str) -> None:
    """Check that Ray is installed and that a cluster answers at an address.

    Parameters
    ----------
    address : str
        ``host:port``, or `ANY`, for which only the installation is checked.

    Raises
    ------
    CommandLineError
        Ray is not installed, the address is not valid, or no cluster answers.
    """
    if not is_there("ray"):
        raise CommandLineError(lacking("--ray", "ray"))
    _check_address(address)


def _check_address(address: str) -> None:
    """Check that an address is ``host:port`` and accepts connections.

    Parameters
    ----------
    address : str
        The address; `ANY` is always accepted.

    Raises
    ------
    CommandLineError
        The address is not valid, or the connection fails within `CONNECT_TIMEOUT_S`.
    """
    if address == ANY:
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise CommandLineError(
            f'--ray: expected host:port, found "{address}"; from outside of the cluster, start the study on a node (ray job submit)'
        )

    try:
        socket.create_connection(
            (host.strip("[]"), int(port)), CONNECT_TIMEOUT_S
        ).close()
    except (OSError, UnicodeError, OverflowError) as error:
        raise CommandLineError(
            f"--ray {address}: no cluster answers ({error})"
        ) from None


__all__ = ["ANY", "RayStudy", "check_cluster"]
