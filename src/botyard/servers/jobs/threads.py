"""Threads for slow work, which yield the interpreter to the steps."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import ClassVar, Final, TypeVar

from botyard.servers.hub import Hub

T = TypeVar("T")

EXIT_DELAY_S: Final = 1.5
"""Delay of SIM_EXIT, s (pioneer-protocol §4.2).

The client that sends it needs time to close its connection.
"""
SWITCH_INTERVAL_S: Final = 1e-4
"""Thread switch interval of the interpreter while slow work runs in threads, s.

See `sys.setswitchinterval`; the default is 5 ms.
"""
MAX_THREAD_END_S: Final = 5.0
"""Longest wait for threads with slow work at shutdown, s."""


class LoopHost:
    """Host that runs slow work in threads and reports to the event loop."""

    # The switch interval belongs to the process, and several simulators may run in it,
    # each in its own thread. So these are attributes of the class.
    _lock: ClassVar = threading.Lock()
    _aside: ClassVar[int] = 0
    _usual: ClassVar[float] = 0.0

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._threads: set[threading.Thread] = set()

    def run_in_background(
        self, job: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run `job` in a thread, then `done` in the event loop.

        If the event loop ends first, `done` is not called and the thread is abandoned.

        Parameters
        ----------
        job : callable
            The job. The event loop continues meanwhile, so the job must not touch the
            world.
        done : callable
            Called with the result and None, or with None and the error.
        """
        loop = asyncio.get_running_loop()

        def work() -> None:
            result, problem = None, None
            try:
                with self._giving_way():
                    result = job()
            except Exception as error:
                problem = error

            # The event loop has ended.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(done, result, problem)

        self._threads = {t for t in self._threads if t.is_alive()}
        thread = threading.Thread(target=work, name="background", daemon=True)
        self._threads.add(thread)
        thread.start()

    async def ended(self) -> None:
        """Wait until all threads have finished, for at most `MAX_THREAD_END_S`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MAX_THREAD_END_S):
                while any(t.is_alive() for t in self._threads):
                    # A thread cannot report its own end, so its state is polled.
                    await asyncio.sleep(0.002)

    @contextlib.contextmanager
    def _giving_way(self) -> Iterator[None]:
        """Shorten the thread switch interval of the interpreter while slow work runs.

        The event loop releases the interpreter lock at each packet and kernel. It gets
        the lock back after at most this interval.
        """
        with LoopHost._lock:
            if not LoopHost._aside:
                LoopHost._usual = sys.getswitchinterval()
                sys.setswitchinterval(SWITCH_INTERVAL_S)

            LoopHost._aside += 1

        try:
            yield
        finally:
            with LoopHost._lock:
                LoopHost._aside -= 1
                if not LoopHost._aside:
                    sys.setswitchinterval(LoopHost._usual)

    def end_soon(self, status: int, crash: bool) -> None:
        """End the run after `EXIT_DELAY_S`.

        Parameters
        ----------
        status : int
            Exit status of the program.
        crash : bool
            Whether the run counts as crashed.
        """
        asyncio.get_running_loop().call_later(
            EXIT_DELAY_S, self._hub.stop, status, crash
        )


__all__ = ["LoopHost"]
