"""A worker of a study: a process that carries out runs, and appends a row for each to a
file of its own.

Orders come over standard input, events go to standard output
(`botyard.studies.messages`). What runs print, and their tracebacks, go to a log that is
emptied before each run and kept when the run is not ok. The process ends when its
standard input is closed, also in the middle of a run: then whoever has started it is
gone.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import queue
import shutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, Final

from botyard.model.filetables import checked
from botyard.processes.codeload import load_named
from botyard.studies.messages import (
    Broken,
    Done,
    Event,
    Group,
    Item,
    Job,
    Ready,
    Started,
    decode_order,
    encode,
)
from botyard.studies.plan import SEED
from botyard.studies.results import Folder, Part, Row, Status
from botyard.studies.run_spec import Setup, filled, names_in
from botyard.studies.runners import Conditions, SimulatedTimeError, carry_out

MAX_LOG_BYTES: Final = 2**20
"""The end of a run's output that is kept."""
MAX_ERROR: Final = 300
"""Characters of an error in a row."""


class Stopped(BaseException):
    """The worker is to end now."""


def main() -> None:
    """The worker's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who has started it decides
    signal.signal(signal.SIGTERM, _stop)
    events, lines = os.dup(1), os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    # runs that read standard input would take orders away
    os.dup2(nothing, 0)
    os.close(nothing)
    job = decode_order(lines.readline())
    assert isinstance(job, Job)
    orders: queue.SimpleQueue[Group] = queue.SimpleQueue()
    threading.Thread(
        target=_read, args=(lines, orders), name="orders", daemon=True
    ).start()
    status = 0
    try:
        _Worker(job, events).work(orders)
    except Stopped:
        pass
    except BaseException:
        traceback.print_exc()
        status = 1

    sys.stdout.flush()
    # without waiting for threads that a run may have left
    os._exit(status)


def _stop(_number: int, _frame: FrameType | None) -> None:
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # once: programs that a run has started are being ended
    raise Stopped


def _read(lines: BinaryIO, orders: queue.SimpleQueue[Group]) -> None:
    """Thread: orders as they come; the end of the process when there can be no more."""
    for line in lines:
        order = decode_order(line)
        assert isinstance(order, Group)
        orders.put(order)

    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_GRACE_S)
    os._exit(1)


END_GRACE_S: Final = 5.0
"""A run that is to end has so much time for it, when nobody else is there to kill the
process.
"""


class _Worker:
    """Carries out runs."""

    def __init__(self, job: Job, events: int) -> None:
        self._job, self._events, self._process = job, events, os.getpid()
        self._results = Folder(Path(job.results))
        self._conditions = Conditions(
            Path(job.folder),
            job.simulated,
            started=lambda pid: self._tell(Started(pid)),
        )
        self._log = os.open(job.log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(self._log, 1)
        os.dup2(self._log, 2)
        faulthandler.enable(self._log)

    def work(self, orders: queue.SimpleQueue[Group]) -> None:
        """Do what is ordered, for ever."""
        try:
            self._prepare()
        except Exception as error:
            traceback.print_exc()
            self._tell(Broken(_line_of(error, self._conditions.folder)))
            return

        part = Part(Path(self._job.part))
        if self._job.memory is not None:
            limit_memory(self._job.memory)
        self._tell(Ready())
        while True:
            for item in orders.get().items:
                row = self._carry_out(item)
                try:
                    part.add(row)
                except (
                    OSError
                ) as error:  # such as a full disk: no run that follows would be kept
                    self._tell(
                        Broken(
                            f"results cannot be written: {_line_of(error, self._conditions.folder)}"
                        )
                    )
                    return

                self._tell(Done(row.key, row.status, row.wall, row.error))

    def _prepare(self) -> None:
        """Load what all runs need, so that no run's time is spent on it, and mistakes
        are told once.
        """
        setup = self._job.setup
        run = setup.get("run")
        if run and not names_in(run):
            load_named(self._conditions.code(filled(run, {})))
        name = setup.get("map")
        if name and not names_in(name):
            self._conditions.world(filled(name, {}))
        if "traffic" in setup:
            from botyard.traffic.compare import compile_kernels

            compile_kernels()

    def _carry_out(self, item: Item) -> Row:
        os.ftruncate(self._log, 0)
        recording = (
            self._results.recording(item.key) if self._job.record != "never" else None
        )
        status: Status = "ok"
        result: dict[str, Any] = {}
        text = ""
        begin = time.perf_counter()
        try:
            setup = checked(
                filled(self._job.setup, {**item.values, SEED: item.seed}), Setup
            )
            result = carry_out(
                setup, item.values, item.seed, self._conditions, recording
            )
        except SimulatedTimeError:
            status, text = (
                "timeout",
                f"more than {self._job.simulated:g} s were simulated",
            )
        except Stopped:
            raise
        except MemoryError as error:
            limit = (
                ""
                if self._job.memory is None
                else f": more than {self._job.memory:g} MiB"
            )
            status, text = "failed", f"MemoryError{limit}"
            traceback.print_exception(error)
        except (
            BaseException
        ) as error:  # also SystemExit, and what frameworks of tests raise
            status, text = "failed", _line_of(error, self._conditions.folder)
            traceback.print_exception(error)

        if os.getpid() != self._process:
            # a process that the run has forked, and that came back from it
            os._exit(1)

        wall = time.perf_counter() - begin
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        if status != "ok":
            keep_log(Path(self._job.log), self._results.log(item.key))
        elif recording is not None and self._job.record == "on-failure":
            recording.unlink(missing_ok=True)

        return Row(
            key=item.key,
            status=status,
            result=result,
            error=text,
            wall=wall,
            values=item.values,
            seed=item.seed,
        )

    def _tell(self, event: Event) -> None:
        data = memoryview(encode(event) + b"\n")
        while data:
            data = data[os.write(self._events, data) :]


def keep_log(source: Path, target: Path) -> None:
    """Copy the end of a worker's log to that of a run."""
    with contextlib.suppress(OSError), source.open("rb") as old:
        old.seek(max(0, old.seek(0, os.SEEK_END) - MAX_LOG_BYTES))
        with target.open("wb") as new:
            shutil.copyfileobj(old, new)


def limit_memory(megabytes: float) -> None:
    """Let this process take so much more memory (MiB) than it has now; only where the
    system has such a limit (Linux).
    """
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        resource = importlib.import_module("resource")
        status = Path("/proc/self/status").read_text("ascii")
        now = int(status.partition("VmData:")[2].split()[0]) * 1024
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = now + int(megabytes * 2**20)
        resource.setrlimit(
            resource.RLIMIT_DATA,
            (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard),
        )


def _line_of(error: BaseException, folder: Path) -> str:
    """An error in one line; files are named from the plan's folder on, which lies
    elsewhere on another computer.
    """
    try:
        text = str(error).replace(f"{folder}{os.sep}", "")
        text = " ".join(text.split()).encode("utf-8", "backslashreplace").decode()
    except Exception:  # of the error's own
        text = ""

    return (
        f"{type(error).__name__}: {text}"[:MAX_ERROR] if text else type(error).__name__
    )


__all__ = ["MAX_LOG_BYTES", "keep_log", "limit_memory", "main"]
