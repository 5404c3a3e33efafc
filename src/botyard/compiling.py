"""Says that kernels are being compiled, when they are: on a terminal or in a notebook as a line that counts, and what it took. A leaf.

Numba tells of each function that it compiles because its cache has no code for it. Nothing is guessed from the time: a start that is
slow because the machine is busy says nothing, and one that is interrupted claims nothing.
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

QUIET_FOR: Final = 1.0
"""What is compiled in less than this, s, is not worth a word."""
LINGER: Final = 1.0
"""When nothing has been compiled for so long, s, it is over."""
TICK: Final = 0.2
"""The line is written anew every so many s."""
TEXT: Final = "botyard: compiling kernels"


class Watch:
    """Is told what is compiled (`botyard.native.compiler.Listener`), and tells a person.

    Attributes
    ----------
    always : bool
        Also where stderr is neither a terminal nor a notebook, as plain lines: what the command line wants.
    lost : str
        The folder that compiled code could not be kept in, if so.
    count : int
        Kernels that were compiled in this process.
    on_first : callable
        Called when the first one begins to be compiled.
    """

    def __init__(self) -> None:
        self.always = False
        self.lost = ""
        self.count = 0
        self.on_first: Callable[[], None] = lambda: None
        self._lock = threading.RLock()
        self._depth = 0
        self._spent = 0.0
        """Time in which something was compiled since the last summary, s."""
        self._since = 0.0
        """When the compilation that goes on has begun, or the last one has ended."""
        self._is_broken = False
        self._told = False
        self._teller: threading.Thread | None = None
        self._over = threading.Event()

    # -- what is told to it

    def begin(self) -> None:
        """Something is being compiled from now on, here or in another process."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._since = time.monotonic()
                if self.count == 0:
                    self.on_first()
                if self._teller is None and _may_be_told(self.always):
                    self._over.clear()
                    self._teller = threading.Thread(target=self._tell, name="compiling", daemon=True)
                    self._teller.start()

    def end(self, good: bool = True) -> None:
        """So much of it is done."""
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
        """Another process compiles meanwhile."""
        self.begin()
        try:
            yield
        finally:
            with self._lock:
                self.count -= 1  # kernels of others are not counted
                self.end()

    # -- what a person sees

    @property
    def spent(self) -> float:
        """Time in which kernels were compiled since the last summary, s."""
        with self._lock:
            return self._spent + (time.monotonic() - self._since if self._depth else 0.0)

    def finish(self) -> None:
        """Nothing more will be compiled now: say what it took, if it was worth a word."""
        teller = self._teller
        if teller is not None:
            self._over.set()
            teller.join()

    def _tell(self) -> None:
        """Thread: the line that counts, and the summary."""
        shown = sys.stderr
        is_line = _is_interactive(shown)
        while not self._over.wait(TICK):
            with self._lock:
                is_idle = self._depth == 0 and time.monotonic() - self._since > LINGER
            if is_idle:
                break
            if self.spent < QUIET_FOR:
                continue
            once = "" if self.lost else ", this is needed once"
            if is_line:
                _write(shown, f"\r{TEXT}{once}: {self.count} so far, {self.spent:.0f} s ")
            elif not self._told:
                _write(shown, f"{TEXT}{once} …\n")
            self._told = True
        with self._lock:
            self._teller = None
            told, broken, spent = self._told, self._is_broken or self._depth > 0, self._spent
            self._told, self._is_broken, self._spent = False, False, 0.0
        if told and is_line:
            _write(shown, "\r" + " " * 78 + "\r")
        if told and not broken:
            _write(shown, f"botyard: kernels compiled in {spent:.0f} s\n")
            if self.lost:
                text = f"they cannot be kept: {self.lost} is not writable; set NUMBA_CACHE_DIR to a folder that is"
                _write(shown, f"botyard: {text}\n")


def _is_interactive(stream: Any) -> bool:
    """Whether somebody looks on who sees a line change: a terminal, or a notebook's output."""
    if stream is None:
        return False
    try:
        return bool(stream.isatty()) or type(stream).__module__.partition(".")[0] in ("ipykernel", "google")
    except (AttributeError, ValueError):  # it is closed, or something else's
        return False


def _may_be_told(always: bool) -> bool:
    if multiprocessing.parent_process() is not None:
        return False  # the one that has started us tells
    return _is_interactive(sys.stderr) or (always and sys.stderr is not None)


def _write(stream: Any, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody is there any more
        stream.write(text)
        stream.flush()


watch: Final = Watch()
"""The watch of this process."""
atexit.register(watch.finish)

__all__ = ["LINGER", "QUIET_FOR", "Watch", "watch"]
