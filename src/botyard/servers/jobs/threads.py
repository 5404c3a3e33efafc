"""Threads beside the event loop: slow work that gives way to the steps."""

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
"""Delay of SIM_EXIT, s, so that its sender can close its connection (pioneer-protocol
§4.2).
"""
SWITCH_INTERVAL_S: Final = 1e-4
"""Thread switch interval of the interpreter while a map is read in a thread, s
(`sys.setswitchinterval`; default: 5 ms).
"""
MAX_THREAD_END_S: Final = 5.0
"""Longest wait for background threads at shutdown, s."""


class LoopHost:
    """The event loop as a host."""

    # of the process: several simulators may run in it, each in a thread of its own
    _lock: ClassVar = threading.Lock()
    _aside: ClassVar[int] = 0
    _usual: ClassVar[float] = 0.0

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._threads: set[threading.Thread] = set()

    def run_aside(
        self, job: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run `job` in a thread, and `done` in the loop; if the loop ends first, nobody
        waits for the thread.
        """
        loop = asyncio.get_running_loop()

        def work() -> None:
            result, problem = None, None
            try:
                with self._giving_way():
                    result = job()
            except Exception as error:
                problem = error

            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(done, result, problem)

        self._threads = {t for t in self._threads if t.is_alive()}
        thread = threading.Thread(target=work, name="aside", daemon=True)
        self._threads.add(thread)
        thread.start()

    async def ended(self) -> None:
        """Wait until no thread works any more; one that cannot be ended is left after
        `MAX_THREAD_END_S`.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MAX_THREAD_END_S):
                while any(t.is_alive() for t in self._threads):
                    await asyncio.sleep(0.002)

    @contextlib.contextmanager
    def _giving_way(self) -> Iterator[None]:
        """In a thread: the loop lets go of the interpreter at every packet and kernel,
        and gets it back after at most this time.
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
        """End the run after `EXIT_DELAY_S`."""
        asyncio.get_running_loop().call_later(
            EXIT_DELAY_S, self._hub.stop, status, crash
        )


__all__ = ["LoopHost"]
