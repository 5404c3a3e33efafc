"""Ray task of a study: it carries out a group of runs on its node and sends back the
rows.

A worker of `botyard.studies.local` carries out the runs, so limits, failures and lost
processes behave as on one computer. The worker lives as long as the Ray process that
started it, and serves all tasks of this process.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from botyard.errors import CommandLineError
from botyard.studies.local import TICK_S, LocalStudy
from botyard.studies.messages import Done
from botyard.studies.plan import Plan, PlanKeys
from botyard.studies.raymessages import (
    Begun,
    Ended,
    Order,
    Recorded,
    Refused,
    Told,
    decode_group,
    decode_order,
    encode,
)
from botyard.studies.results import Folder, Row, decode_row
from botyard.version import __version__

PIECE_BYTES: Final = 4 * 2**20
"""Size of the pieces in which recordings are sent, bytes."""


def carry_out_group(order: bytes, group: bytes) -> Iterator[bytes]:
    """Carry out a group of runs and yield messages about them (the Ray task).

    Parameters
    ----------
    order, group : bytes
        Encoded `Order` and `TaskGroup`.

    Yields
    ------
    bytes
        Encoded lists of `Told`: `Begun` first, then the ends of runs with their
        recordings and logs. `Refused` is the last one if the node cannot carry out the
        plan.
    """
    yield encode([Begun(platform.node())])
    told = decode_group(group)
    begin = time.monotonic()
    try:
        runner = _runner(order)
        study, runner.ended = runner.study, 0
        study.add(told.items)
        last = begin
        while study.is_busy:
            study.advance(min(told.period, TICK_S))
            now = time.monotonic()
            if runner.ended and now - begin > told.seconds:
                study.drop_waiting()
            if now - last >= told.period:
                last = now
                yield from runner.news()

        yield from runner.news()
        runner.forget()
    except CommandLineError as error:
        _end()
        # Paths in Ray's session folder mean nothing to the user; show them relative to
        # the plan.
        yield encode([Refused(str(error).replace(f"{Path.cwd()}{os.sep}", ""))])
    except BaseException:
        # The next task must not inherit the open runs of this one.
        _end()
        raise


class _Runner:
    """Executor of runs on this node, with one worker process.

    Parameters
    ----------
    order : Order
        Setup, limits and recording mode of the study.

    Attributes
    ----------
    study : LocalStudy
        Executor of the runs.

    Raises
    ------
    OSError
        The folder for results cannot be created.
    """

    def __init__(self, order: Order) -> None:
        # Ray's working folder holds the copy of the plan's files.
        here = Path.cwd()
        keys = PlanKeys(study=1, limits=order.limits, record=order.record)
        # Ray may kill this process without warning. A folder inside Ray's session
        # folder is then removed together with it.
        self._path = Path(tempfile.mkdtemp(prefix="botyard-study-", dir=here.parent))
        self._folder = Folder(self._path)
        self.study = LocalStudy(
            Plan(here / order.plan, keys, order.setup, []), self._folder, 1, self._note
        )
        self.ended = 0
        """Number of runs of the current group that have ended."""
        self._read: dict[Path, int] = {}
        """Number of bytes already sent, for each file of rows."""

    def _note(self, _done: Done) -> None:
        """Count a run that has ended; the study calls this function."""
        self.ended += 1

    def news(self) -> Iterator[bytes]:
        """Yield messages about the runs that have ended since the last call.

        Recordings and logs are deleted once they have been sent.

        Yields
        ------
        bytes
            Encoded lists of `Recorded` and `Ended`. The pieces of a recording come
            before the end of its run.
        """
        told: list[Told] = []
        for row in self._new_rows():
            recording, log = self._folder.recording(row.key), self._folder.log(row.key)
            if recording.exists():
                with recording.open("rb") as file:
                    while piece := file.read(PIECE_BYTES):
                        yield encode([Recorded(row.key, piece)])

                recording.unlink()

            kept = log.read_bytes() if log.exists() else None
            log.unlink(missing_ok=True)
            told.append(Ended(row, kept))
            # Logs may be long, so each log is sent in a separate message.
            if kept is not None:
                yield encode(told)
                told = []

        if told:
            yield encode(told)

    def _new_rows(self) -> Iterator[Row]:
        """Yield the rows written since the last call."""
        for path in self._folder.parts:
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        # The worker is still writing this line.
                        break
                    self._read[path] = self._read.get(path, 0) + len(line)
                    yield decode_row(line)

    def forget(self) -> None:
        """Empty the files of rows.

        Call this when all rows have been sent and no worker is writing.
        """
        for path in self._folder.parts:
            os.truncate(path, 0)
        self._read.clear()

    def close(self) -> None:
        """End the worker and delete its files."""
        self.study.close()
        shutil.rmtree(self._path, ignore_errors=True)


_runners: Final[dict[bytes, _Runner]] = {}
"""Runner of this process by its encoded order; at most one."""


def _runner(order: bytes) -> _Runner:
    """Return the runner for an order; a runner of another study is replaced.

    Parameters
    ----------
    order : bytes
        Encoded `Order`.

    Raises
    ------
    CommandLineError
        The node has another version of botyard than the study.
    """
    if order not in _runners:
        _end()
        decoded = decode_order(order)
        if decoded.version != __version__:
            raise CommandLineError(
                f"{platform.node()}: expected botyard {decoded.version} as in "
                f"the study, found botyard {__version__}"
            )

        _without_folder()
        _runners[order] = _Runner(decoded)

    return _runners[order]


def _without_folder() -> None:
    """Remove the plan's folder from ``PYTHONPATH``.

    Ray puts it before all other folders. Without it, a worker finds the same modules as
    on any other computer.
    """
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        path for path in paths if path != str(Path.cwd())
    )


def _end() -> None:
    """End the runner of this process."""
    while _runners:
        _, runner = _runners.popitem()
        with suppress(OSError):
            runner.close()


__all__ = ["carry_out_group"]
