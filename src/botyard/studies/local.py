"""Runs of a study in worker processes of this computer.

The study hands groups of runs to workers and follows their events. A worker writes the
row of a run before it reports the run's end (`botyard.studies.worker`). This module
writes the rows of runs that cannot report: runs that exceed their time limit, and runs
whose process dies.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from botyard.errors import CommandLineError
from botyard.processes.interpreter import python_command
from botyard.processes.launch import KILL, PIPE, Child, end_all, ending, last_lines
from botyard.studies.groups import Pace, take_group
from botyard.studies.messages import (
    Broken,
    Done,
    Event,
    Group,
    Item,
    Job,
    Ready,
    Started,
    decode_event,
    encode,
)
from botyard.studies.plan import Plan
from botyard.studies.results import Folder, Part, Row, Status
from botyard.studies.run_hash import Run
from botyard.studies.worker import keep_log

GRACE_S: Final = 0.8
"""Time from asking a worker to end until it is killed, s."""
MAX_START_FAILURES: Final = 3
"""Number of workers in a row that may die before they are ready.

After this number the study ends.
"""
TICK_S: Final = 0.25
"""Period of the check of time limits, s."""
LOG_LINES: Final = 20
"""Number of lines of a worker's log in an error message."""
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that keep linear algebra libraries from starting one thread per core.

Each worker would start its own threads, far more than the computer has cores.
"""


@dataclass(slots=True, eq=False)
class _Worker:
    """State of a worker process, as seen by the study.

    Attributes
    ----------
    process : Child
        The process, with its pipes of orders and events.
    log : Path
        File of its output, deleted when the resources of the ended worker are released (`bury`).
    is_ready : bool
        Whether it has loaded the plan's code and map.
    """

    process: Child
    log: Path
    is_ready: bool = False
    items: deque[Item] = field(default_factory=deque)
    """Runs that the worker has received; the first of them is the current one."""
    began: float = 0.0
    """Start of the current run (`time.monotonic`), s."""
    timed_out: str = ""
    """Hash of the run whose timeout is the reason for ending the worker."""
    kill_at: float = math.inf
    died_at: float = math.inf
    """Time at which the process was found dead while its event pipe was still open."""
    programs: list[int] = field(default_factory=list)
    """Process groups that the current run has started."""
    follower: threading.Thread | None = None
    """Thread that reads the worker's events."""

    def send(self, order: Job | Group) -> None:
        """Send an order.

        Ignore a dead worker, because the end of its events reports the death.

        Parameters
        ----------
        order : Job or Group
            The job first, then groups of runs.
        """
        self.process.send(encode(order), b"\n")

    def end_left(self) -> None:
        """Kill the processes that an ended worker leaves behind.

        Such processes may hold the worker's pipes open.
        """
        self.process.signal(KILL, group=True)
        for pid in self.programs if os.name != "nt" else ():
            with contextlib.suppress(OSError):
                os.killpg(pid, KILL)

    def bury(self) -> None:
        """Release all resources of an ended worker: leftover processes, pipes and its log."""
        self.end_left()
        # The thread that follows the worker closes the output, because it may still
        # read.
        with contextlib.suppress(OSError):
            self.process.input.close()

        if self.follower is not None:
            self.follower.join(GRACE_S)
        with contextlib.suppress(OSError):
            self.log.unlink()


class LocalStudy:
    """Executor that carries out runs in processes of this computer.

    Parameters
    ----------
    plan : Plan
        Plan to which the runs belong.
    folder : Folder
        Folder for the results.
    workers : int
        Maximum number of worker processes.
    done : callable
        Called in this thread with each run that has ended.

    Raises
    ------
    OSError
        The results folder cannot be created.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        workers: int,
        done: Callable[[Done], object] = lambda _done: None,
    ) -> None:
        self._plan, self._folder, self._wanted, self._done = plan, folder, workers, done
        self._limits = plan.keys.limits
        self._session = folder.new_session()
        self._number = 0
        self._events: queue.SimpleQueue[tuple[_Worker, Event | None]] = (
            queue.SimpleQueue()
        )
        self._workers: list[_Worker] = []
        self._waiting: deque[Item] = deque()
        self._deaths: dict[str, int] = {}
        self._start_failures = 0
        self._pace = Pace()
        self._part: Part | None = None

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def carry_out(self, runs: Iterable[Run]) -> None:
        """Carry out runs, and end all workers afterwards, even after an error.

        Parameters
        ----------
        runs : iterable of Run
            The runs. Each gets a row, whatever happens to it.

        Raises
        ------
        CommandLineError
            The code or map that the plan names cannot be loaded, results cannot be
            written, or workers die before they are ready.
        OSError
            The results folder cannot be written.
        """
        self.add(Item(run.key, run.values, run.seed) for run in runs)
        try:
            while self.is_busy:
                self.advance()
        finally:
            self.close()

    # -- for callers with their own loop

    def add(self, items: Iterable[Item]) -> None:
        """Add runs to the queue; `advance` carries them out.

        Parameters
        ----------
        items : iterable of Item
            The runs, appended in order.
        """
        self._waiting.extend(items)

    @property
    def is_busy(self) -> bool:
        """Whether any run has not ended yet."""
        return bool(self._waiting) or any(worker.items for worker in self._workers)

    def advance(self, patience: float = TICK_S) -> None:
        """Start workers, check time limits and process the next event.

        Parameters
        ----------
        patience : float
            Maximum time to wait for an event, s.

        Raises
        ------
        CommandLineError, OSError
            As for `carry_out`.
        """
        self._fill()
        self._look_at_time()
        with contextlib.suppress(queue.Empty):
            self._take(*self._events.get(timeout=patience))

    def drop_waiting(self) -> None:
        """Remove the runs from the queue that no worker has received.

        Runs whose process died stay, because only this study knows how often it died.
        """
        self._waiting = deque(
            item for item in self._waiting if item.key in self._deaths
        )

    def close(self) -> None:
        """End all workers."""
        end_all((worker.process for worker in self._workers), GRACE_S)
        for worker in self._workers:
            worker.end_left()
            assert worker.follower is not None
            worker.follower.join(GRACE_S)

        with contextlib.suppress(queue.Empty):
            # Events that are still unread may name programs that must be ended too.
            while True:
                worker, event = self._events.get_nowait()
                if isinstance(event, Started):
                    worker.programs.append(event.pid)
                elif isinstance(event, Done):
                    worker.programs.clear()

        for worker in self._workers:
            worker.bury()
        self._workers.clear()
        if self._part is not None:
            self._part.close()
            self._part = None

    # -- workers

    def _fill(self) -> None:
        """Start missing workers, and give runs to idle workers."""
        open_runs = len(self._waiting) + sum(
            len(worker.items) for worker in self._workers
        )
        while len(self._workers) < min(self._wanted, open_runs):
            self._start()
        for worker in self._workers:
            if (
                self._waiting
                and worker.is_ready
                and not worker.items
                and not worker.timed_out
            ):
                self._give(worker)

    def _start(self) -> None:
        """Start a worker process and send it its job."""
        self._number += 1
        name = f"{self._number:03d}"
        log = self._folder.path / "logs" / f"worker-{self._session}-{name}.txt"
        # A fixed hash seed gives sets the same order in every worker, so results
        # repeat. The user's own thread limits win.
        environment = {
            **dict.fromkeys(THREADS, "1"),
            **os.environ,
            "PYTHONHASHSEED": "0",
        }
        process = Child(
            python_command("botyard.studies.worker:main", unbuffered=True),
            input=PIPE,
            output=PIPE,
            errors=log,
            cwd=self._plan.folder,
            env=environment,
        )
        worker = _Worker(process, log)
        self._workers.append(worker)
        worker.follower = threading.Thread(
            target=self._follow, args=(worker,), name=f"worker {name}", daemon=True
        )
        worker.follower.start()
        job = Job(
            folder=str(self._plan.folder),
            results=str(self._folder.path.resolve()),
            setup=self._plan.setup,
            part=str(self._folder.part(self._session, name).resolve()),
            log=str(log.resolve()),
            simulated=self._limits.simulated,
            memory=self._limits.memory,
            record=self._plan.keys.record,
        )
        worker.send(job)

    def _follow(self, worker: _Worker) -> None:
        """Forward a worker's events to the queue; runs in a thread of its own.

        Parameters
        ----------
        worker : _Worker
            The worker. It is killed if it sends something other than events. The end of
            its events is forwarded as None.
        """
        try:
            with worker.process.output as lines:
                for line in lines:
                    if line.endswith(b"\n"):
                        self._events.put((worker, decode_event(line)))
        except (
            msgspec.MsgspecError
            # User code has written to the event pipe; later lines cannot be trusted.
        ):
            worker.process.kill()

        self._events.put((worker, None))

    def _give(self, worker: _Worker) -> None:
        """Hand a group of runs to a worker.

        Parameters
        ----------
        worker : _Worker
            A worker that is ready and has no runs.
        """
        items = take_group(self._waiting, self._wanted, self._pace)
        worker.items.extend(items)
        worker.began = time.monotonic()
        worker.send(Group(items))

    def _look_at_time(self) -> None:
        """End workers whose run exceeds its wall time, and detect dead workers."""
        now = time.monotonic()
        for worker in self._workers:
            if (
                worker.items
                and not worker.timed_out
                and now - worker.began > self._limits.wall
            ):
                worker.timed_out = worker.items[0].key
                # The worker may use the grace period to end its programs and close its
                # recording.
                worker.kill_at = now + GRACE_S
                worker.process.terminate()
            elif now > worker.kill_at:
                worker.process.kill()

            if math.isinf(worker.died_at):
                if worker.process.status is not None:
                    worker.died_at = now
                    worker.end_left()
            elif (
                now > worker.died_at + GRACE_S
                # Processes outside of the worker's group may hold the worker's event
                # pipe open for ever.
            ):
                self._events.put((worker, None))

    # -- events

    def _take(self, worker: _Worker, event: Event | None) -> None:
        """Process one event of a worker.

        Parameters
        ----------
        worker : _Worker
            The worker. Events of a worker whose resources are released (`bury`) are ignored.
        event : Event or None
            The event; None: its events have ended.

        Raises
        ------
        CommandLineError
            The worker cannot carry out the plan, or workers die before they are ready.
        """
        # A dead worker can produce two ends of events: from its pipe, and from the time
        # check.
        if worker not in self._workers:
            return
        if isinstance(event, Done):
            worker.items.popleft()
            worker.programs.clear()
            worker.began = time.monotonic()
            self._pace.add(event.wall)
            self._done(event)
        elif isinstance(event, Ready):
            worker.is_ready = True
            self._start_failures = 0
        elif isinstance(event, Started):
            worker.programs.append(event.pid)
        elif isinstance(event, Broken):
            raise CommandLineError(
                f"{self._plan.path}: cannot run the plan: {event.text}"
            )
        else:
            self._buried(worker)

    def _buried(self, worker: _Worker) -> None:
        """Handle the end of a worker: repeat its current run or write it as lost;
        requeue the others.

        Parameters
        ----------
        worker : _Worker
            The worker, whose events have ended.

        Raises
        ------
        CommandLineError
            `MAX_START_FAILURES` workers in a row have died before they were ready.
        """
        self._workers.remove(worker)
        status = worker.process.wait() or 0
        try:
            if not worker.is_ready:
                self._start_failures += 1
                if self._start_failures >= MAX_START_FAILURES:
                    text = "\n".join(last_lines(worker.log, LOG_LINES))
                    raise CommandLineError(
                        f"workers end before they are ready ({ending(status)}):\n{text}"
                    )

            if worker.items:
                item = worker.items.popleft()
                if worker.timed_out == item.key:
                    self._write(
                        item,
                        worker,
                        "timeout",
                        f"the run took more than {self._limits.wall:g} s of wall time",
                    )
                elif (
                    worker.timed_out
                    # The run that timed out finished in the last moment; this run has
                    # not timed out, so repeat it.
                ):
                    worker.items.appendleft(item)
                else:
                    self._died(item, worker, status)

                self._waiting.extendleft(reversed(worker.items))
                worker.items.clear()
        finally:
            worker.bury()

    def _died(self, item: Item, worker: _Worker, status: int) -> None:
        """Repeat a run whose process died, or write it as lost after too many deaths.

        Parameters
        ----------
        item : Item
            Run with its hash, parameter values and seed.
        worker : _Worker
            The dead worker.
        status : int
            Exit status of its process; negative: the number of a signal.
        """
        self._deaths[item.key] = self._deaths.get(item.key, 0) + 1
        if self._deaths[item.key] > self._limits.retries:
            times = (
                ""
                if self._deaths[item.key] == 1
                else f", {self._deaths[item.key]} times"
            )
            self._write(
                item,
                worker,
                "lost",
                f"the process of the run died ({ending(status)}){times}",
            )
        else:
            self._waiting.appendleft(item)

    def _write(self, item: Item, worker: _Worker, status: Status, error: str) -> None:
        """Write the row of a run whose worker cannot write it.

        Parameters
        ----------
        item : Item
            Run with its hash, parameter values and seed.
        worker : _Worker
            Its worker, whose log is kept.
        status : str
            Status of the row, see `Row`.
        error : str
            Reason, in one line.

        Raises
        ------
        OSError
            The row cannot be written.
        """
        keep_log(worker.log, self._folder.log(item.key))
        if self._part is None:
            self._part = Part(self._folder.part(self._session, "study"))
        wall = time.monotonic() - worker.began
        self._part.add(
            Row(
                key=item.key,
                status=status,
                error=error,
                wall=wall,
                values=item.values,
                seed=item.seed,
            )
        )
        self._done(Done(item.key, status, wall, error))


__all__ = ["LOG_LINES", "TICK_S", "LocalStudy"]
