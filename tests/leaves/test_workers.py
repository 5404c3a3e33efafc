"""Threads that share the parts of a job."""

from __future__ import annotations

import threading

import pytest

from botyard.processes.parallel import Workers


def test_a_failure_is_raised_when_no_part_is_worked_on_any_more() -> None:
    workers, fails, done = Workers(2, "test"), threading.Event(), []

    def part(number: int) -> None:
        if number == 0:
            fails.set()
            raise KeyboardInterrupt

        assert fails.wait(10)
        # The failure is known by now. Without waiting for this part, the run would raise it too
        # early.
        threading.Event().wait(0.05)
        done.append(number)

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            workers.run(part, [(0,), (1,), (2,)])
        assert sorted(done) == [1, 2]
        done.clear()
        # The next job must start new threads.
        workers.close()
