"""`FairQueue`: round-robin scheduling of jobs, one job per source at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A bounded queue for each source; the sources are served in turn (round robin).

    Parameters
    ----------
    max_waiting : int
        Largest number of jobs that wait, of all sources together.
    max_running : int
        Largest number of jobs that run at the same time, each of a different source.
    """

    def __init__(self, max_waiting: int, max_running: int) -> None:
        self._max_waiting = max_waiting
        self._max_running = max_running
        self._waiting: dict[Hashable, deque[T]] = {}
        self._running: set[Hashable] = set()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, source: Hashable, job: T) -> T | None:
        """Enqueue a job. When the queue is full, the newest job of the source with the
        most jobs is dropped, and returned.
        """
        queue = self._waiting.setdefault(source, deque())
        queue.append(job)
        if len(self) <= self._max_waiting:
            return None
        longest = max(self._waiting.values(), key=len)
        # a source with fewer jobs may displace one of the longest queue; a source whose
        # queue is the longest may not
        return (queue if len(queue) == len(longest) else longest).pop()

    def next(self) -> tuple[Hashable, T] | None:
        """Take the next job to run, with its source; None if there is none. Call
        `finished` when the job has ended.
        """
        if len(self._running) >= self._max_running:
            return None
        for source, queue in self._waiting.items():
            if source not in self._running and queue:
                self._running.add(source)
                job = queue.popleft()
                del self._waiting[source]
                if queue:  # the other sources come first
                    self._waiting[source] = queue
                return source, job

        return None

    def finished(self, source: Hashable) -> None:
        """The running job of a source has ended."""
        self._running.discard(source)

    def clear(self) -> list[T]:
        """Remove and return all waiting jobs."""
        left = [job for queue in self._waiting.values() for job in queue]
        self._waiting.clear()
        return left


__all__ = ["FairQueue"]
