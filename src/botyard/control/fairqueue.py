"""Fair scheduling of jobs: sources take turns, with one running job each (`FairQueue`)."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Bounded queues, one for each source, that are served round-robin.

    Parameters
    ----------
    max_waiting : int
        Maximum number of queued jobs of all sources together.
    max_running : int
        Maximum number of running jobs, each of another source.
    """

    def __init__(self, max_waiting: int = sys.maxsize, max_running: int = 1) -> None:
        self._max_waiting = max_waiting
        self._max_running = max_running
        self._waiting: dict[Hashable, deque[T]] = {}
        self._running: set[Hashable] = set()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, source: Hashable, job: T) -> T | None:
        """Enqueue a job.

        Parameters
        ----------
        source : hashable
            Source of the job; each has a queue of its own.
        job : object
            The job.

        Returns
        -------
        object or None
            Job that is dropped because all queues together are full: the newest job of
            the source with the most jobs. It may be `job` itself.
        """
        queue = self._waiting.setdefault(source, deque())
        queue.append(job)
        self._count += 1
        if self._count <= self._max_waiting:
            return None
        longest = max(self._waiting.values(), key=len)
        self._count -= 1
        # A source with fewer jobs may displace a job of the longest queue, but a source
        # with the longest queue may not displace another source's job.
        return (queue if len(queue) == len(longest) else longest).pop()

    def next(self) -> tuple[Hashable, T] | None:
        """Return the next job to run and its source; None if no job can run.

        Call `finished` when the job has ended.

        Returns
        -------
        (hashable, object) or None
            Sources take turns, and a source with a running job waits. None if
            `max_running` jobs run already.
        """
        if len(self._running) >= self._max_running:
            return None
        for source, queue in self._waiting.items():
            # One job per source, so that a source with many jobs cannot use all
            # workers.
            if source not in self._running and queue:
                self._running.add(source)
                job = queue.popleft()
                self._count -= 1
                del self._waiting[source]

                # The source moves behind the other sources.
                if queue:
                    self._waiting[source] = queue
                return source, job

        return None

    def finished(self, source: Hashable) -> None:
        """Mark the running job of a source as ended.

        Parameters
        ----------
        source : hashable
            Source whose job `next` has returned.
        """
        self._running.discard(source)

    def remove(self, source: Hashable, job: T) -> None:
        """Remove a waiting job.

        Raises
        ------
        ValueError
            The job does not wait.
        """
        queue = self._waiting.get(source, deque())
        queue.remove(job)
        self._count -= 1
        if not queue:
            del self._waiting[source]

    def clear(self) -> list[T]:
        """Remove and return all waiting jobs."""
        left = [job for queue in self._waiting.values() for job in queue]
        self._waiting.clear()
        self._count = 0
        return left


__all__ = ["FairQueue"]
