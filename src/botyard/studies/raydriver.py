"""The process that speaks to a cluster of Ray for a study: groups of runs become tasks,
and their rows are written here as they come back.

Ray sends the plan's files to its nodes (``runtime_env``), finds places for tasks, and
says when a node is lost. Which runs are left is known here: what a lost task has not
sent is given to another one.

It is a process of its own (started by `botyard.studies.onray`) because Ray's client
prints, has signals of its own, and ends the process when it loses its cluster.
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
"""A task takes about so long, at least: between two of them, Ray leaves a processor
idle for some milliseconds. Rows come back earlier.
"""
TASKS_PER_WORKER: Final = 2
"""Tasks that are handed to Ray for each processor: one that runs, and one that waits
there for its end.
"""
MIN_TASKS: Final = 8
"""Tasks that are handed to Ray at least, also where there is no processor yet: a
cluster that grows does so because tasks wait.
"""
TASKS_AT_A_TIME: Final = 100
"""Tasks that are handed out between two looks at what has come: from the first rows on,
groups have their size.
"""
LOOK_PERIOD_S: Final = 1.0
"""How often the processors of the cluster are counted."""
SEND_PERIOD_S: Final = 0.2
"""A task sends rows so often, at least."""
MESSAGES_PER_S: Final = 1000
"""Messages of all tasks in a second, about: where there are many workers, each sends
less often.
"""
GROUP_STRETCH: Final = 10
"""A task that takes so much longer than it should begins no more runs."""
MAX_NODE_LOSSES: Final = 10
"""A run in the middle of which so many tasks were lost, with their nodes, is lost."""
MAX_START_LOSSES: Final = 1000
"""Tasks in a row that were lost before they began, after which the study ends."""
DRAIN_S: Final = 0.5
"""Time in which a study that is interrupted takes what has come."""
NO_CLUSTER: Final = (
    "it has another Ray, or asks for a token "
    "(RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH)"
)
"""Why Ray does not come to an agreement with who answers at an address; its own errors
do not tell.
"""
END_GRACE_S: Final = 5.0
"""It has so much time to end when nobody else is there to kill it."""


@dataclass(slots=True)
class _Task:
    """A task that was handed to Ray."""

    items: dict[str, Item]
    """Runs of which no row has come yet, in the order in which they are carried out."""
    node: str = ""
    """Where it runs; empty: it has not begun."""
    recordings: dict[str, Path] = field(default_factory=dict)
    """Files of recordings of which a part has come."""


def main() -> None:
    """The process: a `RayJob` and its runs come over standard input, events go to
    standard output (`botyard.studies.messages`).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who has started it decides
    signal.signal(signal.SIGTERM, _stop)
    events = os.dup(1)
    os.dup2(2, 1)  # Ray prints
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
    # without waiting for threads of Ray
    os._exit(status)


def _stop(*_: object) -> None:
    # of all exceptions, Ray hands on this one
    sys.exit(0)


def _watch() -> None:
    """Thread: the end of the process when nobody is there any more who has started it."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_GRACE_S)
    os._exit(1)


class _Driver:
    """Hands tasks to Ray."""

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
            No cluster answers, it cannot have the plan's files, or what the plan names
            cannot be loaded there.
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

        signal.signal(signal.SIGTERM, _stop)  # Ray has put its own there
        from botyard.studies.raytask import carry_out_group

        # what is lost is repeated here, without what has come already
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
        """Processors of the cluster; looked at now and then."""
        now = time.monotonic()
        if now - self._looked >= LOOK_PERIOD_S:
            self._looked = now
            self._processors = int(self._ray.cluster_resources().get("CPU", 0))

        return self._processors

    # -- tasks

    def _submit(self) -> bool:
        """Hand tasks to Ray; whether it has all that are useful there."""
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
        """Tasks that have said something, or ended; waits for the first."""
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
        """What a task has said."""
        errors = self._ray.exceptions
        try:
            said = self._ray.get(next(task))
        except StopIteration:
            ended = self._tasks.pop(task)
            self._waiting.extendleft(
                reversed(ended.items.values())
            )  # those that it had no time for
        except errors.RayTaskError as error:
            raise CommandLineError(
                f"--ray: a task failed on {self._where(task)}: {_last_line(error)}"
            ) from None
        except errors.RuntimeEnvSetupError as error:
            raise CommandLineError(
                f"--ray: a node cannot have the plan's files: {_first_line(error)}"
            ) from None
        except errors.RayError as error:
            self._lost(self._tasks.pop(task), error)
        else:
            self._hear(self._tasks[task], said)

    def _hear(self, task: _Task, said: bytes) -> None:
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
        if told.key in task.items:
            is_first = told.key not in task.recordings
            path = task.recordings.setdefault(
                told.key, self._folder.recording(told.key)
            )
            with path.open("wb" if is_first else "ab") as file:
                file.write(told.piece)

    def _end(self, task: _Task, told: Ended) -> None:
        """A run has ended."""
        row = told.row
        if task.items.pop(row.key, None) is None:
            return
        task.recordings.pop(row.key, None)
        if told.log is not None:
            self._folder.log(row.key).write_bytes(told.log)
        self._pace.add(row.wall)
        self._write(row)

    def _write(self, row: Row) -> None:
        self._part.add(row)
        self._tell(Done(row.key, row.status, row.wall, row.error))

    def _lost(self, task: _Task, error: Exception) -> None:
        """A task will say no more: its node, or its process, has gone. What is left of
        it is done again.
        """
        if not task.node:
            self._start_losses += 1
            if self._start_losses >= MAX_START_LOSSES:
                raise CommandLineError(
                    f"--ray: {self._start_losses} tasks were lost before they "
                    f"began: {_first_line(error)}"
                )
        elif task.items:
            first = next(
                iter(task.items.values())
            )  # it was at this one, or had not told of its end
            self._losses[first.key] = self._losses.get(first.key, 0) + 1
            if self._losses[first.key] >= MAX_NODE_LOSSES:
                del task.items[first.key]
                text = f"its node was lost, {MAX_NODE_LOSSES} times"
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
            path.unlink(missing_ok=True)
        self._waiting.extendleft(reversed(task.items.values()))

    def _where(self, task: Any) -> str:
        return self._tasks[task].node or "a node"

    def _drain(self) -> None:
        """Take what has come while the study was interrupted."""
        end = time.monotonic() + DRAIN_S
        with contextlib.suppress(Exception):
            while (
                self._tasks and time.monotonic() < end and (ready := self._ready(0.0))
            ):
                for task in ready:
                    self._take(task)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


__all__ = ["main"]
