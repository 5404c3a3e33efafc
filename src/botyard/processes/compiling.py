"""Progress messages while kernels are compiled.

On a terminal or in a notebook, a line counts the compiled kernels; a summary follows.
Messages depend on Numba's reports of functions that it compiles (cache misses), not on
elapsed time: a start that is slow because the machine is busy prints nothing. An
interrupted compilation prints no summary.
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
"""Compilation that takes less time than this is not reported, s."""
IDLE_TIMEOUT: Final = 1.0
"""Time without a compilation after which all compilations count as finished, s."""
REFRESH_PERIOD: Final = 0.2
"""Period at which the progress line is updated, s."""
TEXT: Final = "botyard: compiling kernels"


class Watch:
    """Progress of kernel compilation; messages go to stderr.

    The compiler's listener calls `begin` and `end`.

    Attributes
    ----------
    always : bool
        Report even if stderr is neither a terminal nor a notebook, as plain lines.
    unwritable_cache : str
        Cache folder, if compiled code cannot be written to it.
    count : int
        Number of kernels compiled in this process.
    on_first : callable
        Called when the first compilation of this process starts.
    """

    def __init__(self) -> None:
        self.always = False
        self.unwritable_cache = ""
        self.count = 0
        self.on_first: Callable[[], None] = lambda: None

        # The lock is reentrant: the compiler's listener is called again while a kernel
        # compiles others.
        self._lock = threading.RLock()
        self._depth = 0
        self._spent = 0.0
        """Duration of all compilations since the last summary, s."""
        self._since = 0.0
        """Start of the current compilation, or end of the previous (`time.monotonic`),
        s.
        """
        self._is_broken = False
        self._reported = False
        self._teller: threading.Thread | None = None
        self._over = threading.Event()

    # -- events of the compiler

    def begin(self) -> None:
        """Register the start of a compilation, here or in another process.

        Calls may be nested.
        """
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
        """Register the end of a compilation.

        Parameters
        ----------
        good : bool
            Whether the compilation ended without an error.
        """
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
        """Register compilation in another process for the duration of the block."""
        self.begin()
        try:
            yield
        finally:
            with self._lock:
                # `end` adds a kernel to the count, but the other process counts its own
                # kernels.
                self.count -= 1
                self.end()

    # -- messages

    @property
    def spent(self) -> float:
        """Time spent compiling since the last summary, s."""
        with self._lock:
            return self._spent + (
                time.monotonic() - self._since if self._depth else 0.0
            )

    def finish(self) -> None:
        """Print the summary now, if any compilation was reported."""
        teller = self._teller
        if teller is not None:
            self._over.set()
            teller.join()

    def _tell(self) -> None:
        """Update the progress line, then print the summary (thread)."""
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
            # Blanks erase the progress line on terminals of 80 columns.
            _write(shown, "\r" + " " * 78 + "\r")
        if reported and not broken:
            _write(shown, f"botyard: kernels compiled in {spent:.0f} s\n")
            if self.unwritable_cache:
                text = (
                    f"cannot store the kernels: {self.unwritable_cache} is not "
                    "writable; set NUMBA_CACHE_DIR to a writable folder"
                )
                _write(shown, f"botyard: {text}\n")


def _is_interactive(stream: Any) -> bool:
    """Return whether a stream is a terminal or a notebook, which can overwrite a line."""
    if stream is None:
        return False
    try:
        return bool(stream.isatty()) or type(stream).__module__.partition(".")[0] in (
            "ipykernel",
            "google",
        )
    except (AttributeError, ValueError):
        # The stream is closed, or is not a file.
        return False


def _has_audience(always: bool) -> bool:
    """Return whether messages have a reader: a terminal, a notebook, or a stream with `always`."""
    if multiprocessing.parent_process() is not None:
        # The parent process reports for its children.
        return False
    return _is_interactive(sys.stderr) or (always and sys.stderr is not None)


def _write(stream: Any, text: str) -> None:
    """Write text to a stream; ignore a closed one."""
    # The stream is closed.
    with contextlib.suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()


watch: Final = Watch()
"""Compilation progress of this process."""
atexit.register(watch.finish)

__all__ = ["IDLE_TIMEOUT", "MIN_REPORTED", "Watch", "watch"]
