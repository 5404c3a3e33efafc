"""Runs of a study in processes of this computer: groups of them are handed to workers,
whose events are followed.

What a run has measured is written by the worker before it says so
(`botyard.studies.worker`). Here are written the rows of runs that cannot say anything
any more: those that take too long, and those whose process has died.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import signal
import subprocess
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
"""A worker that is told to end is killed after so long."""
MAX_START_FAILURES: Final = 3
"""Workers in a row that die before they are ready, after which the study ends."""
TICK_S: Final = 0.25
"""Time limits are looked at so often."""
LOG_LINES: Final = 20
"""Lines of a worker's log in an error."""
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that keep libraries of linear algebra from starting a thread for each core
in each worker.
"""


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker's process, as the study sees it."""

    process: subprocess.Popen[bytes]
    log: Path
    is_ready: bool = False
    items: deque[Item] = field(default_factory=deque)
    """Runs that it has been given; it is at the first."""
    began: float = 0.0
    """When it began that (`time.monotonic`)."""
    timed_out: str = ""
    """Key of the run for whose sake it is being ended."""
    kill_at: float = math.inf
    died_at: float = math.inf
    """When its process was found to have ended, although its events had not."""
    programs: list[int] = field(default_factory=list)
    """Process groups that its run has started."""
    follower: threading.Thread | None = None
    """Reads its events."""

    def send(self, order: Job | Group) -> None:
        """Hand it something. Nothing happens if it has died: the end of its events says
        that.
        """
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(encode(order) + b"\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Tell it to end."""
        with contextlib.suppress(OSError):
            self.process.terminate()

    def kill(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self.process.kill()

    def end_left(self) -> None:
        """It has ended: end the processes that its runs have left behind; they may hold
        its pipes open.
        """
        for pid in (self.process.pid, *self.programs) if os.name != "nt" else ():
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)

    def bury(self) -> None:
        """It has ended: end what it has left behind, and close its pipes."""
        self.end_left()
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

        if self.follower is not None:
            self.follower.join(GRACE_S)
        with contextlib.suppress(OSError):
            self.log.unlink()


class LocalStudy:
    """Carries out runs in processes of this computer.

    Parameters
    ----------
    plan : Plan
        What they are runs of.
    folder : Folder
        Where results go.
    workers : int
        Number of processes.
    done : callable
        Called with each run that has ended, in this thread.
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
        """Carry out runs; however this is left, no worker is left behind.

        Raises
        ------
        CommandLineError
            What the plan names cannot be loaded, results cannot be written, or workers
            die before they can begin.
        OSError
            The folder cannot be written.
        """
        self.add(Item(run.key, run.values, run.seed) for run in runs)
        try:
            while self.is_busy:
                self.advance()
        finally:
            self.close()

    # -- for those who have other things to do meanwhile

    def add(self, items: Iterable[Item]) -> None:
        """Runs that are to be carried out when it comes to `advance`."""
        self._waiting.extend(items)

    @property
    def is_busy(self) -> bool:
        """Whether there are runs that have not ended."""
        return bool(self._waiting) or any(worker.items for worker in self._workers)

    def advance(self, patience: float = TICK_S) -> None:
        """See to the workers, and follow what they say for `patience` s at most. Errors
        as of `carry_out`.
        """
        self._fill()
        self._look_at_time()
        with contextlib.suppress(queue.Empty):
            self._take(*self._events.get(timeout=patience))

    def drop_waiting(self) -> None:
        """Forget the runs that no worker has been given yet, but for those whose
        process has died: how often is known here alone.
        """
        self._waiting = deque(
            item for item in self._waiting if item.key in self._deaths
        )

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.end()
        end = time.monotonic() + GRACE_S
        for worker in self._workers:
            try:
                worker.process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.process.wait()

            worker.end_left()
            assert worker.follower is not None
            worker.follower.join(GRACE_S)

        with contextlib.suppress(queue.Empty):
            # programs that have been started, of which nobody has read yet
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
        """Start workers that are missing, and give work to those that have none."""
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
        self._number += 1
        name = f"{self._number:03d}"
        log = self._folder.path / "logs" / f"worker-{self._session}-{name}.txt"
        environment = {
            **dict.fromkeys(THREADS, "1"),
            **os.environ,
            "PYTHONHASHSEED": "0",
        }
        with log.open("wb") as errors:
            process = subprocess.Popen(
                python_command("botyard.studies.worker:main", unbuffered=True),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self._plan.folder,
                env=environment,
                start_new_session=os.name != "nt",
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
        """Thread: a worker's events."""
        assert worker.process.stdout is not None
        try:
            with worker.process.stdout as lines:
                for line in lines:
                    if line.endswith(b"\n"):
                        self._events.put((worker, decode_event(line)))
        except (
            msgspec.MsgspecError
        ):  # a run has written there: nothing that comes now can be trusted
            worker.kill()

        self._events.put((worker, None))

    def _give(self, worker: _Worker) -> None:
        """Hand a group to a worker."""
        items = take_group(self._waiting, self._wanted, self._pace)
        worker.items.extend(items)
        worker.began = time.monotonic()
        worker.send(Group(items))

    def _look_at_time(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if (
                worker.items
                and not worker.timed_out
                and now - worker.began > self._limits.wall
            ):
                worker.timed_out = worker.items[0].key
                worker.kill_at = now + GRACE_S
                worker.end()
            elif now > worker.kill_at:
                worker.kill()

            if math.isinf(worker.died_at):
                if worker.process.poll() is not None:
                    worker.died_at = now
                    worker.end_left()
            elif (
                now > worker.died_at + GRACE_S
            ):  # processes of other groups still hold its pipes
                self._events.put((worker, None))

    # -- events

    def _take(self, worker: _Worker, event: Event | None) -> None:
        if worker not in self._workers:  # it is buried
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
            raise CommandLineError(f"{self._plan.path}: cannot be run: {event.text}")
        else:
            self._buried(worker)

    def _buried(self, worker: _Worker) -> None:
        """A worker has ended."""
        self._workers.remove(worker)
        status = worker.process.wait()
        try:
            if not worker.is_ready:
                self._start_failures += 1
                if self._start_failures >= MAX_START_FAILURES:
                    text = last_lines(worker.log)
                    raise CommandLineError(
                        f"workers end before they begin ({ending(status)}):\n{text}"
                    )

            if worker.items:
                item = worker.items.popleft()
                if worker.timed_out == item.key:
                    self._write(
                        item,
                        worker,
                        "timeout",
                        f"it took more than {self._limits.wall:g} s of wall time",
                    )
                elif (
                    worker.timed_out
                ):  # that run ended just in time, and its worker was ended all the same
                    worker.items.appendleft(item)
                else:
                    self._died(item, worker, status)

                self._waiting.extendleft(reversed(worker.items))
                worker.items.clear()
        finally:
            worker.bury()

    def _died(self, item: Item, worker: _Worker, status: int) -> None:
        self._deaths[item.key] = self._deaths.get(item.key, 0) + 1
        if self._deaths[item.key] > self._limits.retries:
            times = (
                ""
                if self._deaths[item.key] == 1
                else f", {self._deaths[item.key]} times"
            )
            self._write(
                item, worker, "lost", f"its process died ({ending(status)}){times}"
            )
        else:
            self._waiting.appendleft(item)

    def _write(self, item: Item, worker: _Worker, status: Status, error: str) -> None:
        """The row of a run that cannot write it."""
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


def ending(status: int) -> str:
    """How a process has ended, in words."""
    if status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name

    return f"status {status}"


def last_lines(log: Path) -> str:
    """The end of what a process has printed."""
    try:
        return "\n".join(log.read_text("utf-8", "replace").splitlines()[-LOG_LINES:])
    except OSError:
        return ""


__all__ = ["TICK_S", "LocalStudy", "ending", "last_lines"]
