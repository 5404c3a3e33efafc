"""Writer thread of a recording, with a bounded queue of work.

A slow disk never delays the simulation, and an error never ends it.
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
"""Largest size of waiting work, bytes; samples beyond it are left out and counted."""
RESERVE_BYTES: Final = 64 << 20
"""Additional size for data without which a run cannot be repeated: changes, states."""
POLL_S: Final = 0.1
"""Wall time between checks of the queue, s.

Waking the thread for each item would cost the simulation thread more.
"""
MAX_WAIT_S: Final = 30.0
"""Longest time that a step waits for a writer thread that makes no progress, s."""
CLOSE_TIMEOUT_S: Final = 10.0
"""Longest time to write the remaining data at the end of a recording, s."""

Work = Callable[[Output], None]

log = logging.getLogger("botyard.recording")


class _Item(NamedTuple):
    kind: str
    size: int
    work: Work
    number: int


class Writer:
    """Writes a recording in its own thread.

    Parameters
    ----------
    output : Output
        Target; from now on only the writer thread uses it.
    name : str
        Name of the recording, for the log.
    patient : bool
        Whether `put` waits while the queue is full, instead of leaving data out.

    Attributes
    ----------
    error : str
        Reason why the recording failed; empty while it works.
    lost : Counter
        Number of records left out so far, by kind.
    size : int
        Recent size of the current file, or of the ring, bytes.
    is_full : bool
        Whether the next file should start.
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
        # A daemon thread, so that a blocked disk cannot keep the process alive.
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    # -- any thread

    def put(
        self, kind: str, size: int, work: Work, *, vital: bool = False, count: int = 1
    ) -> bool:
        """Queue work for the writer thread.

        Parameters
        ----------
        kind : str
            Kind of the work, for the count of lost records.
        size : int
            Bytes that it holds.
        work : callable
            Called in the writer thread with the output.
        vital : bool
            Whether the run cannot be repeated without it.
        count : int
            Number of records of the kind.

        Returns
        -------
        bool
            False if the work was left out and counted: the queue is full, or the
            recording has failed or ended.
        """
        limit = MAX_QUEUED_BYTES + (RESERVE_BYTES if vital else 0)
        # Use the lock of the condition directly: its own methods are slower, and each
        # step calls this.
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
        # The writer thread would wait for itself.
        if threading.current_thread() is self._thread:
            return
        before = self._queued
        while self._queued > limit and not self.error and not self._is_closing:
            self._changed.notify_all()
            # A disk without any progress must not stop the simulation for ever.
            if not self._changed.wait(MAX_WAIT_S) and self._queued >= before:
                return
            before = self._queued

    def call(self, work: Callable[[Output], Path]) -> Future[Path]:
        """Queue work whose result a caller waits for.

        Parameters
        ----------
        work : callable
            Called in the writer thread with the output; returns the path of a file.

        Returns
        -------
        Future
            The path, or the error of the work. A recording that has failed or ended
            gives RuntimeError.
        """
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
        """Make the thread look for work at once."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Accept no more work; write the queue, and finish the file."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()

    def wait(self, timeout: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait after `stop` until the file is finished.

        Parameters
        ----------
        timeout : float
            Longest wait, s of wall time.

        Returns
        -------
        bool
            False if it takes longer; the thread then continues in the background.
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
                # Take the whole queue under the lock, so that the simulation thread
                # waits only briefly.
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
            # Subtract after the work, so that the limit also covers data in progress.
            self._queued -= item.size
            if self._patient:
                self._changed.notify_all()

    def _try(self, act: Callable[[], None]) -> None:
        """Run an action of the thread. An error of it ends the recording, but not the program."""
        try:
            act()
        except OSError as error:
            self._end(error.strerror or str(error))
        # A defect of the recorder must not end the simulation.
        except Exception as error:
            log.exception("internal error: the recording %s ends", self._name)
            self._end(repr(error))

    def _end(self, why: str) -> None:
        if not self.error:
            self.error = why
            log.error(
                "the recording %s ends here, but the simulation continues: %s",
                self._name,
                why,
            )


__all__ = ["CLOSE_TIMEOUT_S", "MAX_QUEUED_BYTES", "RESERVE_BYTES", "Work", "Writer"]
