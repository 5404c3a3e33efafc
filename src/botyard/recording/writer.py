"""The thread that writes a recording: a bounded queue of work, so that a slow disk
never holds up the simulation, nor an error ends it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Final, NamedTuple

from botyard.recording.output import Output

MAX_QUEUED_BYTES: Final = 64 << 20
"""What waits to be written, bytes. Samples beyond it are left out, and counted."""
RESERVE_BYTES: Final = 64 << 20
"""So much more may wait of what a run cannot be repeated without: changes, states."""
POLL_S: Final = 0.1
"""The thread looks for work so often, wall time, s; it is not woken for each item,
which would cost the simulation's thread more.
"""
MAX_WAIT_S: Final = 30.0
"""A program whose steps wait for the thread waits at most so long without any progress.
"""
CLOSE_TIMEOUT_S: Final = 10.0
"""Time-out of writing what waits when the recording ends."""

Work = Callable[[Output], None]

log = logging.getLogger("botyard.recording")


class _Item(NamedTuple):
    kind: str
    size: int
    work: Work
    number: int


class Writer:
    """Writes a recording in a thread of its own.

    Parameters
    ----------
    output : Output
        What it writes to; from now on only that thread uses it.
    name : str
        What is recorded to, for the log.
    patient : bool
        `put` waits while the queue is full, instead of leaving out.

    Attributes
    ----------
    error : str
        Why nothing is written any more; empty: all is well.
    lost : Counter
        How much was left out so far, by kinds.
    size : int
        Bytes of the present file, or of the ring, a moment ago.
    is_full : bool
        Whether another file should be begun.
    """

    def __init__(self, output: Output, name: str, *, patient: bool) -> None:
        self._output, self._name, self._patient = output, name, patient
        self._queue: deque[_Item] = deque()
        self._queued = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_closing = False
        self.error = ""
        self.lost: Counter[str] = Counter()
        self.size = 0
        self.is_full = False
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    # -- any thread

    def put(
        self, kind: str, size: int, work: Work, *, vital: bool = False, count: int = 1
    ) -> bool:
        """Queue work; False: it was left out, and counted.

        Parameters
        ----------
        kind : str
            What it is, for the count.
        size : int
            Bytes that it holds.
        vital : bool
            A run cannot be repeated without it.
        count : int
            How many of the kind it is.
        """
        limit = MAX_QUEUED_BYTES + (RESERVE_BYTES if vital else 0)
        # of the condition, whose own methods are slower: this is called by each step
        with self._lock:
            if self._patient and self._queued + size > limit:
                self._await_room(limit // 2)
            if (
                self.error
                or self._is_closing
                or (self._queue and self._queued + size > limit)
            ):
                self.lost[kind] += count
                return False

            self._queue.append(_Item(kind, size, work, count))
            self._queued += size

        return True

    def _await_room(self, limit: int) -> None:
        if threading.current_thread() is self._thread:
            return
        before = self._queued
        while self._queued > limit and not self.error and not self._is_closing:
            self._changed.notify_all()
            if not self._changed.wait(MAX_WAIT_S) and self._queued >= before:
                return
            before = self._queued

    def call(self, work: Callable[[Output], Path]) -> Future[Path]:
        """Queue work whose result somebody waits for."""
        future: Future[Path] = Future()

        def act(output: Output) -> None:
            try:
                result = work(output)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        if not self.put("requests", 0, act, vital=True):
            future.set_exception(RuntimeError(self.error or "the recording has ended"))
        self.wake()
        return future

    def wake(self) -> None:
        """Let the thread look for work now."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Take no more work; what waits is written, and the file is ended."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()

    def wait(self, timeout: float = CLOSE_TIMEOUT_S) -> bool:
        """After `stop`: wait until the file has ended; False: that takes longer than
        the time-out, s, and goes on in the background.
        """
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    # -- the thread

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._queue and not self._is_closing:
                    self._changed.wait(self._pause())
                items = list(self._queue)
                self._queue.clear()
                is_last = self._is_closing

            for item in items:
                self._do(item)
            if is_last:
                break
            self._try(self._flush_if_due)

        self._try(self._output.close)

    def _pause(self) -> float:
        due = self._output.due
        return (
            POLL_S if due is None else min(POLL_S, max(due - time.monotonic(), 0.001))
        )

    def _flush_if_due(self) -> None:
        due = self._output.due
        if due is not None and time.monotonic() >= due:
            self._output.flush()

    def _do(self, item: _Item) -> None:
        if self.error:
            self.lost[item.kind] += item.number
        else:
            self._try(lambda: item.work(self._output))
            self._try(self._flush_if_due)
            self.size, self.is_full = self._output.size, self._output.is_full

        with self._changed:
            self._queued -= item.size
            if self._patient:
                self._changed.notify_all()

    def _try(self, act: Callable[[], None]) -> None:
        """An error ends the recording, and nothing else."""
        try:
            act()
        except OSError as error:
            self._end(error.strerror or str(error))
        except Exception as error:
            log.exception("internal error: the recording %s ends", self._name)
            self._end(repr(error))

    def _end(self, why: str) -> None:
        if not self.error:
            self.error = why
            log.error(
                "the recording %s ends here, and the simulation goes on: %s",
                self._name,
                why,
            )


__all__ = ["CLOSE_TIMEOUT_S", "MAX_QUEUED_BYTES", "RESERVE_BYTES", "Work", "Writer"]
