"""Runs of a study on a cluster of Ray: what can be checked before, and the process that
speaks to Ray (`botyard.studies.raydriver`).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from botyard.errors import CommandLineError
from botyard.extras import is_there, lacking
from botyard.processes.interpreter import python_command
from botyard.studies.bundle import copy_files
from botyard.studies.local import ending, last_lines
from botyard.studies.messages import Broken, Done, Item, decode_event
from botyard.studies.plan import Plan
from botyard.studies.raymessages import RayJob, encode_line
from botyard.studies.results import LOGS, Folder
from botyard.studies.run_hash import Run

ANY: Final = "auto"
"""The address of the cluster that ``RAY_ADDRESS`` names, or else of the one that this
computer is a node of.
"""
CONNECT_TIMEOUT_S: Final = 5.0
"""An address that nobody answers at is given up after so long; Ray would try for
minutes.
"""
RUNS_PER_LINE: Final = 1000
"""Runs are handed over in pieces of so many."""
GRACE_S: Final = 1.5
"""The process that speaks to Ray is killed so long after it was told to end."""


class RayStudy:
    """Carries out runs on a cluster of Ray.

    Parameters
    ----------
    plan : Plan
        What they are runs of.
    folder : Folder
        Where results go.
    address : str
        ``host:port`` of the cluster, or `ANY`.
    workers : int or None
        Most runs at a time; None: as many as the cluster has processors.
    done : callable
        Called with each run that has ended, in this thread.

    Raises
    ------
    CommandLineError
        Ray is not installed, the address is none, or nobody answers there.
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
        """Carry out runs; however this is left, nothing of ours is left on the cluster.

        Raises
        ------
        CommandLineError
            No cluster answers, it cannot have the plan's files, or what the plan names
            cannot be loaded there.
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
            with log.open("wb") as errors:
                process = subprocess.Popen(
                    python_command("botyard.studies.raydriver:main"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={"RAY_USAGE_STATS_ENABLED": "0", **os.environ},
                    start_new_session=os.name != "nt",
                )

            try:
                _send(process, job, runs)
                self._follow(process, log, len(runs))
            finally:
                _end(process)

            log.unlink(missing_ok=True)

    def _follow(self, process: subprocess.Popen[bytes], log: Path, left: int) -> None:
        """What the process says, to its end; so many runs are to be heard of."""
        assert process.stdout is not None
        for line in process.stdout:
            event = decode_event(line) if line.endswith(b"\n") else None
            if isinstance(event, Done):
                left -= 1
                self._done(event)
            elif isinstance(event, Broken):
                raise CommandLineError(event.text)

        status = process.wait()
        # Ray ends the process of who has lost his cluster
        if left:
            text = last_lines(log)
            raise CommandLineError(
                f"--ray: the process that speaks to Ray has ended ({ending(status)}):\n{text}"
            )


def _send(process: subprocess.Popen[bytes], job: RayJob, runs: Sequence[Run]) -> None:
    """Hand over what is to be done. Nothing happens if the process has ended: the end
    of its events says that.
    """
    assert process.stdin is not None
    items = (Item(run.key, run.values, run.seed) for run in runs)
    with contextlib.suppress(OSError):
        process.stdin.write(encode_line(job) + b"\n")
        while piece := list(itertools.islice(items, RUNS_PER_LINE)):
            process.stdin.write(encode_line(piece) + b"\n")
        process.stdin.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process; Ray ends the tasks of one that has gone."""
    with contextlib.suppress(OSError):
        process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def check_cluster(address: str) -> None:
    """Raise CommandLineError: Ray is not installed, the address is none, or nobody
    answers there.
    """
    if not is_there("ray"):
        raise CommandLineError(lacking("--ray", "ray"))
    _check_address(address)


def _check_address(address: str) -> None:
    """CommandLineError: an address is no ``host:port``, or nobody answers there."""
    if address == ANY:
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise CommandLineError(
            f'--ray: expected host:port, found "{address}"; who is no node of the cluster starts the study on one (ray job submit)'
        )

    try:
        socket.create_connection(
            (host.strip("[]"), int(port)), CONNECT_TIMEOUT_S
        ).close()
    except (OSError, OverflowError) as error:
        raise CommandLineError(
            f"--ray {address}: no cluster answers ({error})"
        ) from None


__all__ = ["ANY", "RayStudy", "check_cluster"]
