"""Process that connects a study to a Ray cluster.

The process turns groups of runs into Ray tasks and writes their rows as they arrive.
Ray sends the plan's files to its nodes (``runtime_env``), places the tasks, and reports
lost nodes. The driver keeps track of open runs and repeats the runs of a lost task.

`botyard.studies.onray` starts it as a process of its own, because Ray's client prints,
installs its own signal handlers, and ends its process when it loses the cluster.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from botyard.errors import CommandLineError
from botyard.processes.child_process import stop_myself
from botyard.studies.groups import Pace, group_seconds, take_group
from botyard.studies.messages import Broken, Done, Event, Item
from botyard.studies.messages import encode as encode_event
from botyard.studies.raymessages import (
    Begun,
    Ended,
    Order,
    RayJob,
    Recorded,
    Refused,
    TaskGroup,
    decode_items,
    decode_job,
    decode_told,
    encode,
)
from botyard.studies.results import Folder, Part, Row
from botyard.version import __version__

TASK_S: Final = 5.0
"""Minimum time that a task should take, s.

Between two tasks, Ray leaves a CPU idle for some milliseconds. Rows arrive earlier than
the end of their task.
"""
TASKS_PER_WORKER: Final = 2
"""Number of tasks in Ray per CPU: one that runs, and one that waits."""
MIN_TASKS: Final = 8
"""Minimum number of tasks in Ray, even without a free CPU.

An autoscaling cluster only grows if tasks wait.
"""
TASKS_AT_A_TIME: Final = 100
"""Number of tasks submitted between two checks for results.

After the first results, the size of groups follows the measured wall times.
"""
LOOK_PERIOD_S: Final = 1.0
"""Period of counting the cluster's CPUs, s."""
SEND_PERIOD_S: Final = 0.2
"""Minimum period at which a task sends rows, s."""
MESSAGES_PER_S: Final = 1000
"""Approximate limit of messages per second from all tasks.

With many workers, each task sends less often.
"""
GROUP_STRETCH: Final = 10
"""Multiple of its planned time after which a task starts no more runs."""
MAX_NODE_LOSSES: Final = 10
"""Number of lost tasks after which their current run counts as lost."""
MAX_START_LOSSES: Final = 1000
"""Number of tasks in a row that may be lost before they start; then the study ends."""
DRAIN_S: Final = 0.5
"""Time that an interrupted study takes to collect finished rows, s."""
NO_CLUSTER: Final = (
    "the cluster runs another version of Ray, or requires a token "
    "(RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH)"
)
"""Probable reasons why a cluster refuses the connection; the error of Ray names no reason."""
END_GRACE_S: Final = 5.0
"""Time that this process has to end after the end of its parent, s."""


@dataclass(slots=True)
class _Task:
    """A task that was submitted to Ray."""

    items: dict[str, Item]
    """Runs without a row, in the order of execution."""
    node: str = ""
    """Node on which the task runs; empty: it has not started."""
    recordings: dict[str, Path] = field(default_factory=dict)
    """Files of recordings that have arrived in part."""


def main() -> None:
    """Run the process.

    A `RayJob` and its runs arrive on standard input. Events go to standard output
    (`botyard.studies.messages`).
    """
    # Ctrl-C reaches the whole process group; the parent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    events = os.dup(1)
    # Ray prints to standard output, which must not mix with the events.
    os.dup2(2, 1)
    job = decode_job(sys.stdin.buffer.readline())
    items: deque[Item] = deque()
    while len(items) < job.runs:
        items.extend(decode_items(sys.stdin.buffer.readline()))
    threading.Thread(target=_watch, name="starter", daemon=True).start()

    def tell(event: Event) -> None:
        data = memoryview(encode_event(event) + b"\n")
        while data:
            data = data[os.write(events, data) :]

    status = 0
    try:
        _Driver(job, items, tell).carry_out()
    except CommandLineError as error:
        tell(Broken(str(error)))
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
        status = 1

    sys.stderr.flush()
    # Ray's threads may never end, so do not wait for them.
    os._exit(status)


def _stop(*_: object) -> None:
    """End the process on a signal."""
    # SystemExit is the only exception that passes through Ray's client.
    sys.exit(0)


def _watch() -> None:
    """End this process when its parent closes standard input or dies (thread)."""
    sys.stdin.buffer.read()
    stop_myself(END_GRACE_S)


class _Driver:
    """Scheduler of the study's Ray tasks.

    Arguments are the description of the study, its runs (a queue, which is emptied),
    and a function that sends an `Event` to the study.
    """

    def __init__(self, job: RayJob, items: deque[Item], tell: Any) -> None:
        self._job, self._waiting, self._tell = job, items, tell
        self._folder = Folder(Path(job.results))
        self._order = encode(
            Order(
                version=__version__,
                plan=job.plan,
                setup=job.setup,
                limits=job.limits,
                record=job.record,
            )
        )
        self._tasks: dict[Any, _Task] = {}
        self._losses: dict[str, int] = {}
        self._start_losses = 0
        self._pace = Pace()
        self._processors = 0
        self._looked = -LOOK_PERIOD_S
        self._part = Part(Path(job.part))
        self._ray: Any = importlib.import_module("ray")
        self._remote: Any = None

    def carry_out(self) -> None:
        """Carry out all runs.

        Raises
        ------
        CommandLineError
            No cluster answers, the plan's files cannot be sent, or the code or map that
            the plan names cannot be loaded there.
        """
        ray = self._ray
        try:
            ray.init(
                address=self._job.address,
                runtime_env={"working_dir": self._job.files},
                logging_level=logging.ERROR,
                log_to_driver=False,
                configure_logging=False,
            )
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            raise CommandLineError(
                f"--ray {self._job.address}: {_first_line(error)}; {NO_CLUSTER}"
            ) from None

        # `ray.init` has replaced the signal handler.
        signal.signal(signal.SIGTERM, _stop)
        from botyard.studies.raytask import carry_out_group

        # Ray must not retry: it would repeat a whole task, also the runs whose rows
        # have arrived.
        self._remote = ray.remote(num_cpus=1, max_retries=0, num_returns="streaming")(
            carry_out_group
        )
        try:
            while self._waiting or self._tasks:
                is_full = self._submit()
                for task in self._ready(LOOK_PERIOD_S if is_full else 0.0):
                    self._take(task)
        except BaseException:
            self._drain()
            raise
        finally:
            self._tasks.clear()
            ray.shutdown()

    def _count_processors(self) -> int:
        """Return the number of CPUs of the cluster, refreshed every `LOOK_PERIOD_S`."""
        now = time.monotonic()
        if now - self._looked >= LOOK_PERIOD_S:
            self._looked = now
            self._processors = int(self._ray.cluster_resources().get("CPU", 0))

        return self._processors

    # -- tasks

    def _submit(self) -> bool:
        """Submit tasks to Ray.

        Returns
        -------
        bool
            Whether more tasks would be of no use now, because none is left or enough
            wait. Otherwise the caller looks for results without waiting and submits
            again.
        """
        if not self._waiting:
            return True
        workers = self._job.workers or max(1, self._count_processors())
        most = self._job.workers or max(MIN_TASKS, TASKS_PER_WORKER * workers)
        period = max(SEND_PERIOD_S, workers / MESSAGES_PER_S)
        for _ in range(min(TASKS_AT_A_TIME, most - len(self._tasks))):
            if not self._waiting:
                break
            items = take_group(self._waiting, workers, self._pace, TASK_S)
            group = TaskGroup(
                items=items,
                period=period,
                seconds=GROUP_STRETCH * group_seconds(workers, TASK_S),
            )
            self._tasks[self._remote.remote(self._order, encode(group))] = _Task(
                {item.key: item for item in items}
            )

        return not self._waiting or len(self._tasks) >= most

    def _ready(self, timeout: float) -> list[Any]:
        """Wait for messages of tasks and return the tasks that have sent one or ended.

        Parameters
        ----------
        timeout : float
            Maximum time to wait for the first task, s.

        Returns
        -------
        list
            Ray's generators of the tasks; empty if none has within the time.
        """
        tasks = list(self._tasks)
        ready, others = self._ray.wait(
            tasks, num_returns=1, timeout=timeout, fetch_local=False
        )
        if ready and others:
            ready += self._ray.wait(
                others, num_returns=len(others), timeout=0, fetch_local=False
            )[0]

        found: list[Any] = ready
        return found

    def _take(self, task: Any) -> None:
        """Process the next message of a task, or its end.

        Parameters
        ----------
        task : ObjectRefGenerator
            Ray's generator of the task's messages.

        Raises
        ------
        CommandLineError
            The task failed, or its node cannot receive the plan's files. The runs of a
            lost task are repeated instead.
        """
        errors = self._ray.exceptions
        try:
            said = self._ray.get(next(task))
        except StopIteration:
            ended = self._tasks.pop(task)
            self._waiting.extendleft(
                reversed(ended.items.values())
                # A task that exceeds its time returns the runs that it has not started.
            )
        except errors.RayTaskError as error:
            raise CommandLineError(
                f"--ray: a task failed on {self._where(task)}: {_last_line(error)}"
            ) from None
        except errors.RuntimeEnvSetupError as error:
            raise CommandLineError(
                f"--ray: a node cannot receive the plan's files: {_first_line(error)}"
            ) from None
        except errors.RayError as error:
            self._lost(self._tasks.pop(task), error)
        else:
            self._hear(self._tasks[task], said)

    def _hear(self, task: _Task, said: bytes) -> None:
        """Process the messages of a task.

        Parameters
        ----------
        task : _Task
            The task.
        said : bytes
            Encoded list of `Told`.

        Raises
        ------
        CommandLineError
            The node cannot carry out the plan.
        """
        for told in decode_told(said):
            if isinstance(told, Begun):
                task.node = told.node
                self._start_losses = 0
            elif isinstance(told, Refused):
                raise CommandLineError(f"--ray: {task.node}: {told.text}")
            elif isinstance(told, Recorded):
                self._record(task, told)
            else:
                self._end(task, told)

    def _record(self, task: _Task, told: Recorded) -> None:
        """Append a piece of a recording to its file.

        The first piece of a task replaces an existing file. A piece of a run that has
        ended already is dropped.
        """
        if told.key in task.items:
            is_first = told.key not in task.recordings
            path = task.recordings.setdefault(
                told.key, self._folder.recording(told.key)
            )
            with path.open("wb" if is_first else "ab") as file:
                file.write(told.piece)

    def _end(self, task: _Task, told: Ended) -> None:
        """Write the row of a run that has ended.

        The log of the run is kept if the task has sent it. A second row of a run is
        ignored.
        """
        row = told.row
        # A row may arrive twice after a node was lost; only the first counts.
        if task.items.pop(row.key, None) is None:
            return
        task.recordings.pop(row.key, None)
        if told.log is not None:
            self._folder.log(row.key).write_bytes(told.log)
        self._pace.add(row.wall)
        self._write(row)

    def _write(self, row: Row) -> None:
        """Write a row and report its run as done.

        Parameters
        ----------
        row : Row
            Row to write.

        Raises
        ------
        OSError
            The row cannot be written, or the study has closed the pipe.
        """
        self._part.add(row)
        self._tell(Done(row.key, row.status, row.wall, row.error))

    def _lost(self, task: _Task, error: Exception) -> None:
        """Repeat the open runs of a task whose node or process was lost.

        Parameters
        ----------
        task : _Task
            The task, already removed from the open ones.
        error : Exception
            Ray's reason.

        Raises
        ------
        CommandLineError
            `MAX_START_LOSSES` tasks in a row were lost before they started.
        """
        if not task.node:
            self._start_losses += 1
            if self._start_losses >= MAX_START_LOSSES:
                raise CommandLineError(
                    f"--ray: {self._start_losses} tasks were lost before they "
                    f"started: {_first_line(error)}"
                )
        elif task.items:
            first = next(
                iter(task.items.values())
                # The first open run is the run that the task carried out last, or whose
                # end it did not report. The loss counts for this run.
            )
            self._losses[first.key] = self._losses.get(first.key, 0) + 1
            if self._losses[first.key] >= MAX_NODE_LOSSES:
                del task.items[first.key]
                text = f"the node of the run was lost, {MAX_NODE_LOSSES} times"
                self._write(
                    Row(
                        key=first.key,
                        status="lost",
                        error=text,
                        values=first.values,
                        seed=first.seed,
                    )
                )

        for path in task.recordings.values():
            # The repeated run records again from its start.
            path.unlink(missing_ok=True)
        self._waiting.extendleft(reversed(task.items.values()))

    def _where(self, task: Any) -> str:
        """Return the name of the node of a task.

        Parameters
        ----------
        task : ObjectRefGenerator
            Ray's generator of the task's messages, of an open task.

        Returns
        -------
        str
            Host name, or "a node" for a task that has not started.
        """
        return self._tasks[task].node or "a node"

    def _drain(self) -> None:
        """Collect the results that have arrived when the study is interrupted."""
        end = time.monotonic() + DRAIN_S
        with contextlib.suppress(Exception):
            while (
                self._tasks and time.monotonic() < end and (ready := self._ready(0.0))
            ):
                for task in ready:
                    self._take(task)


def _first_line(error: BaseException) -> str:
    """Return the first line of an error, or its type if it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _last_line(error: BaseException) -> str:
    """Return the last line of an error, or its type if it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


__all__ = ["main"]
