"""Calls from other threads in the event loop:

complete, in order, and without the cost of a signal each.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading

import pytest

from botyard.protocols.webgui.pushes import LogEntry
from botyard.servers.handover import Handover
from botyard.servers.web.pagelog import PageLog
from tests.waiting import PATIENCE

BURST = 3000
"""Calls at once; the pipe that wakes a loop holds about 280 bytes."""


def test_calls_of_several_threads_in_order() -> None:
    got: list[tuple[int, int]] = []

    def call(handover: Handover, who: int) -> None:
        for k in range(BURST):
            handover.soon(lambda who=who, k=k: got.append((who, k)))  # type: ignore[misc]

    async def act() -> None:
        handover = Handover(asyncio.get_running_loop())
        threads = [
            threading.Thread(target=call, args=(handover, who)) for who in range(3)
        ]
        for thread in threads:
            thread.start()
        while len(got) < 3 * BURST:
            await asyncio.sleep(0.001)
        for thread in threads:
            thread.join()

    asyncio.run(asyncio.wait_for(act(), PATIENCE))
    for who in range(3):
        assert [k for w, k in got if w == who] == list(range(BURST))


def test_a_call_that_fails_costs_no_other_one() -> None:
    got: list[int] = []
    said: list[str] = []

    async def act() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(
            lambda _, context: said.append(str(context["exception"]))
        )
        handover = Handover(loop)
        handover.soon(got.append, 1)
        handover.soon(int, "x")
        handover.soon(got.append, 2)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        handover.soon(got.append, 3)
        await asyncio.sleep(0.01)
        assert got == [1, 2, 3]

    asyncio.run(act())
    assert len(said) == 1
    assert "invalid literal" in said[0]


def test_a_loop_that_has_ended_is_left_alone() -> None:
    loop = asyncio.new_event_loop()
    handover = Handover(loop)
    loop.close()
    for _ in range(3):
        handover.soon(print, "never")


@pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX")
def test_a_burst_of_log_lines_costs_no_signal() -> None:
    got: list[LogEntry] = []

    async def act() -> None:
        loop = asyncio.get_running_loop()
        told = asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR1, told.set)
        page = PageLog(loop, got.append)
        for k in range(BURST):
            page.emit(
                logging.LogRecord(
                    "botyard", logging.INFO, "", 0, f"line {k}", None, None
                )
            )

        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.wait_for(told.wait(), PATIENCE)

    asyncio.run(act())
    assert [e.text for e in got] == [f"line {k}" for k in range(BURST)]
