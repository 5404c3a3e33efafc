"""Progress messages while kernels are compiled: a line that counts them on a terminal
or in a notebook, and a summary. A leaf.

Numba's compiler reports each function that it compiles (a miss of its cache). Nothing
is guessed from elapsed time: a start that is slow because the machine is busy prints
nothing, and an interrupted compilation prints no summary.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

MIN_REPORTED: Final = 1.0
"""Compilation that takes less time than this, s, is not reported."""
IDLE_TIMEOUT: Final = 1.0
"""Compilation is over when nothing has been compiled for this time, s."""
REFRESH_PERIOD: Final = 0.2
"""Period in which the progress line is written anew, s."""
TEXT: Final = "botyard: compiling kernels"


class Watch:
    """Progress of kernel compilation: `begin` and `end` are called by the compiler's
    listener, messages go to stderr.

    Attributes
    ----------
    always : bool
        Report also where stderr is neither a terminal nor a notebook, as plain lines
        (for the command line).
    unwritable_cache : str
        The cache folder, if compiled code cannot be written to it.
    count : int
        Kernels that were compiled in this process.
    on_first : callable
        Called when the first compilation of this process begins.
    """

    def __init__(self) -> None:
        self.always = False
        self.unwritable_cache = ""
        self.count = 0
        self.on_first: Callable[[], None] = lambda: None
        self._lock = threading.RLock()
        self._depth = 0
        self._spent = 0.0
        """Time spent compiling since the last summary, s."""
        self._since = 0.0
        """Start of the compilation in progress, or end of the last one
        (`time.monotonic`).
        """
        self._is_broken = False
        self._reported = False
        self._teller: threading.Thread | None = None
        self._over = threading.Event()

    # -- events of the compiler

    def begin(self) -> None:
        """A compilation begins, in this process or in another one. They nest."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._since = time.monotonic()
                if self.count == 0:
                    self.on_first()
                if self._teller is None and _has_audience(self.always):
                    self._over.clear()
                    self._teller = threading.Thread(
                        target=self._tell, name="compiling", daemon=True
                    )
                    self._teller.start()

    def end(self, good: bool = True) -> None:
        """A compilation has ended; `good`: without an error."""
        with self._lock:
            self._depth -= 1
            self.count += good
            self._is_broken |= not good
            if self._depth == 0:
                now = time.monotonic()
                self._spent += now - self._since
                self._since = now

    @contextlib.contextmanager
    def elsewhere(self) -> Iterator[None]:
        """While the block runs, another process compiles."""
        self.begin()
        try:
            yield
        finally:
            with self._lock:
                # only kernels of this process are counted
                self.count -= 1
                self.end()

    # -- messages

    @property
    def spent(self) -> float:
        """Time in which kernels were compiled since the last summary, s."""
        with self._lock:
            return self._spent + (
                time.monotonic() - self._since if self._depth else 0.0
            )

    def finish(self) -> None:
        """Compilation is over: print the summary now, if anything was reported."""
        teller = self._teller
        if teller is not None:
            self._over.set()
            teller.join()

    def _tell(self) -> None:
        """Reporter thread: refreshes the progress line, then prints the summary."""
        shown = sys.stderr
        is_line = _is_interactive(shown)
        while not self._over.wait(REFRESH_PERIOD):
            with self._lock:
                is_idle = (
                    self._depth == 0 and time.monotonic() - self._since > IDLE_TIMEOUT
                )

            if is_idle:
                break
            if self.spent < MIN_REPORTED:
                continue
            once = "" if self.unwritable_cache else ", this is needed once"
            if is_line:
                _write(
                    shown, f"\r{TEXT}{once}: {self.count} so far, {self.spent:.0f} s "
                )
            elif not self._reported:
                _write(shown, f"{TEXT}{once} …\n")

            self._reported = True

        with self._lock:
            self._teller = None
            reported, broken, spent = (
                self._reported,
                self._is_broken or self._depth > 0,
                self._spent,
            )
            self._reported, self._is_broken, self._spent = False, False, 0.0

        if reported and is_line:
            _write(shown, "\r" + " " * 78 + "\r")
        if reported and not broken:
            _write(shown, f"botyard: kernels compiled in {spent:.0f} s\n")
            if self.unwritable_cache:
                text = (
                    f"they cannot be kept: {self.unwritable_cache} is not "
                    "writable; set NUMBA_CACHE_DIR to a folder that is"
                )
                _write(shown, f"botyard: {text}\n")


def _is_interactive(stream: Any) -> bool:
    """Whether a stream shows a line that is overwritten: a terminal, or a notebook's
    output.
    """
    if stream is None:
        return False
    try:
        return bool(stream.isatty()) or type(stream).__module__.partition(".")[0] in (
            "ipykernel",
            "google",
        )
    except (AttributeError, ValueError):
        # it is closed, or something else's
        return False


def _has_audience(always: bool) -> bool:
    if multiprocessing.parent_process() is not None:
        return False  # the parent process reports
    return _is_interactive(sys.stderr) or (always and sys.stderr is not None)


def _write(stream: Any, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the stream was closed
        stream.write(text)
        stream.flush()


watch: Final = Watch()
"""The compilation progress of this process."""
atexit.register(watch.finish)

__all__ = ["IDLE_TIMEOUT", "MIN_REPORTED", "Watch", "watch"]
