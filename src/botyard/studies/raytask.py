"""A task of a study on Ray: it carries out a group of runs on the node that it is on,
and sends back each row.

The runs are carried out as on one computer, by a worker of `botyard.studies.local`, so
that limits, failures and lost processes mean the same. That worker lives as long as the
process of Ray that has started it, and serves all tasks that come there.
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
"""Recordings are sent in pieces of so many bytes."""


def carry_out_group(order: bytes, group: bytes) -> Iterator[bytes]:
    """The task: what is said of the runs of a group, as it is known.

    Parameters
    ----------
    order, group : bytes
        An `Order` and a `TaskGroup`.

    Yields
    ------
    bytes
        Lists of `Told`.
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
        yield encode([Refused(str(error).replace(f"{Path.cwd()}{os.sep}", ""))])
    except BaseException:
        # runs that it has been given are not those of the next task
        _end()
        raise


class _Runner:
    """Carries out runs on this node, with one worker."""

    def __init__(self, order: Order) -> None:
        # where Ray has put the plan's files
        here = Path.cwd()
        keys = PlanKeys(study=1, limits=order.limits, record=order.record)
        # in Ray's folder of the session: Ray may kill this process, and then nothing
        # deletes it but who deletes that
        self._path = Path(tempfile.mkdtemp(prefix="botyard-study-", dir=here.parent))
        self._folder = Folder(self._path)
        self.study = LocalStudy(
            Plan(here / order.plan, keys, order.setup, []), self._folder, 1, self._note
        )
        self.ended = 0
        """Runs of this group that have ended."""
        self._read: dict[Path, int] = {}
        """Bytes of each file of rows that have been sent."""

    def _note(self, _done: Done) -> None:
        self.ended += 1

    def news(self) -> Iterator[bytes]:
        """What is to be said of the runs that have ended since."""
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
            if kept is not None:  # these may be long
                yield encode(told)
                told = []

        if told:
            yield encode(told)

    def _new_rows(self) -> Iterator[Row]:
        for path in self._folder.parts:
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # it is being written
                    self._read[path] = self._read.get(path, 0) + len(line)
                    yield decode_row(line)

    def forget(self) -> None:
        """All has been sent, and no worker writes: the files of rows are emptied."""
        for path in self._folder.parts:
            os.truncate(path, 0)
        self._read.clear()

    def close(self) -> None:
        """End the worker, and delete what it has written."""
        self.study.close()
        shutil.rmtree(self._path, ignore_errors=True)


_runners: Final[dict[bytes, _Runner]] = {}
"""The one of this process by its order, if there is one."""


def _runner(order: bytes) -> _Runner:
    if order not in _runners:
        _end()
        decoded = decode_order(order)
        if decoded.version != __version__:
            raise CommandLineError(
                f"{platform.node()} has botyard {__version__}, and the study is "
                f"one of botyard {decoded.version}"
            )

        _without_folder()
        _runners[order] = _Runner(decoded)

    return _runners[order]


def _without_folder() -> None:
    """Ray puts the plan's folder before all others in which modules are looked for; a
    worker is to find the same modules as elsewhere.
    """
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        path for path in paths if path != str(Path.cwd())
    )


def _end() -> None:
    while _runners:
        _, runner = _runners.popitem()
        with suppress(OSError):
            runner.close()


__all__ = ["carry_out_group"]
