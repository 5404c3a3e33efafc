"""Worker process of a study: it carries out runs and appends their rows to its own
file.

Orders arrive on standard input, events go to standard output
(`botyard.studies.messages`). Output and tracebacks of a run go to a log, which is
emptied before each run and kept if the run is not ok. The process ends when its
standard input closes, even in the middle of a run, because its parent is then gone.
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

from botyard.model.tablecheck import checked
from botyard.processes.child_process import stop_myself
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
"""Maximum size of a kept log, bytes; only the end of longer output is kept."""
MAX_ERROR: Final = 300
"""Maximum number of characters of an error in a row."""


class Stopped(BaseException):
    """Request to end the worker now."""


def main() -> None:
    """Run the worker process."""
    # Ctrl-C reaches the whole process group; the parent decides when the worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    events, lines = os.dup(1), os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    # User code that reads standard input would otherwise consume orders.
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
    # A run may leave threads that never end, so do not wait for them.
    os._exit(status)


def _stop(_number: int, _frame: FrameType | None) -> None:
    """Raise `Stopped` in the main thread (signal handler)."""
    signal.signal(
        signal.SIGTERM,
        signal.SIG_IGN,
        # A second signal would interrupt the ending of the run's programs.
    )
    raise Stopped


def _read(lines: BinaryIO, orders: queue.SimpleQueue[Group]) -> None:
    """Read orders into the queue.

    End the process when standard input closes (thread).

    Parameters
    ----------
    lines : file
        Standard input, in binary mode.
    orders : SimpleQueue of Group
        Queue for the orders.
    """
    for line in lines:
        order = decode_order(line)
        assert isinstance(order, Group)
        orders.put(order)

    stop_myself(END_GRACE_S)


END_GRACE_S: Final = 5.0
"""Time that a run has to end if the parent has died and cannot kill this process, s."""


class _Worker:
    """Worker process of a study: carries out runs and reports each result.

    Parameters
    ----------
    job : Job
        Description of the study, with the paths of this worker's files.
    events : int
        File descriptor to which events are written.

    Raises
    ------
    OSError
        The log cannot be opened.
    """

    def __init__(self, job: Job, events: int) -> None:
        self._job, self._events, self._process = job, events, os.getpid()
        self._results = Folder(Path(job.results))
        self._conditions = Conditions(
            Path(job.folder),
            job.simulated,
            started=lambda pid: self._tell(Started(pid)),
        )
        # User code may write to the file descriptors directly, and crashes print to
        # them; so the descriptors themselves are redirected, not only `sys.stdout`.
        self._log = os.open(job.log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(self._log, 1)
        os.dup2(self._log, 2)
        faulthandler.enable(self._log)

    def work(self, orders: queue.SimpleQueue[Group]) -> None:
        """Carry out orders until the process is stopped or results cannot be written.

        Parameters
        ----------
        orders : SimpleQueue of Group
            Queue of orders.

        Raises
        ------
        Stopped
            The study has asked this process to end.
        """
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
                    # For example, the disk is full: no later run could be kept either.
                ) as error:
                    self._tell(
                        Broken(
                            f"cannot write results: {_line_of(error, self._conditions.folder)}"
                        )
                    )
                    return

                self._tell(Done(row.key, row.status, row.wall, row.error))

    def _prepare(self) -> None:
        """Load everything that all runs need.

        No run's wall time includes the loading, and a mistake is reported only once.
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
        """Carry out one run and return its row.

        Parameters
        ----------
        item : Item
            Run with its hash, parameter values and seed.

        Returns
        -------
        Row
            Its row; an error of the run, even an exit, becomes the row's status.

        Raises
        ------
        Stopped
            The study has asked this process to end.
        """
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
            # Catch also SystemExit and the exceptions of test frameworks: none may end
            # the worker.
        ) as error:
            status, text = "failed", _line_of(error, self._conditions.folder)
            traceback.print_exception(error)

        if os.getpid() != self._process:
            # The run has forked this process, and the child has returned from the run's
            # function.
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
        """Send an event to the study.

        Parameters
        ----------
        event : Event
            The event, written as one line of JSON.

        Raises
        ------
        OSError
            The study has closed the pipe.
        """
        data = memoryview(encode(event) + b"\n")
        while data:
            data = data[os.write(self._events, data) :]


def keep_log(source: Path, target: Path) -> None:
    """Copy the end of a worker's log to the log of a run.

    An error of the file system is ignored, because the run's row matters more.

    Parameters
    ----------
    source : Path
        Log of the worker.
    target : Path
        Log of the run; it gets at most `MAX_LOG_BYTES`.
    """
    with contextlib.suppress(OSError), source.open("rb") as old:
        old.seek(max(0, old.seek(0, os.SEEK_END) - MAX_LOG_BYTES))
        with target.open("wb") as new:
            shutil.copyfileobj(old, new)


def limit_memory(megabytes: float) -> None:
    """Limit the additional memory of this process; only on Linux.

    The limit counts from the memory in use now. Elsewhere, and if the system refuses
    the limit, nothing happens.

    Parameters
    ----------
    megabytes : float
        Additional memory, MiB.
    """
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        resource = importlib.import_module("resource")
        status = Path("/proc/self/status").read_text("ascii")
        # RLIMIT_DATA limits the data segment, which the kernel reports as VmData in kB.
        now = int(status.partition("VmData:")[2].split()[0]) * 1024
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = now + int(megabytes * 2**20)
        resource.setrlimit(
            resource.RLIMIT_DATA,
            (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard),
        )


def _line_of(error: BaseException, folder: Path) -> str:
    """Return type and message of an error in one line.

    Parameters
    ----------
    error : BaseException
        The error.
    folder : Path
        The plan's folder. Paths are shown relative to it, because it has another
        location on other computers.

    Returns
    -------
    str
        Type and message, at most `MAX_ERROR` characters.
    """
    try:
        text = str(error).replace(f"{folder}{os.sep}", "")
        text = " ".join(text.split()).encode("utf-8", "backslashreplace").decode()
    # The error's own ``__str__`` may raise.
    except Exception:
        text = ""

    return (
        f"{type(error).__name__}: {text}"[:MAX_ERROR] if text else type(error).__name__
    )


__all__ = ["MAX_LOG_BYTES", "keep_log", "limit_memory", "main"]
