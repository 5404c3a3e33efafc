"""Who waits is told what for: one line when something takes longer than a moment, and none when it is quick. A leaf."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

from botyard.names import escaped

MOMENT = 1.0
"""Nobody wonders for so long, s."""


def _tell(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # nobody reads stderr any more
        sys.stderr.write(f"botyard: {escaped(text)}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def telling(text: str, tell: Callable[[str], None] = _tell, after: float | None = None) -> Iterator[None]:
    """Tell what is waited for, once, if the block takes longer than a moment; from a thread, so that the block may be in C code.

    Parameters
    ----------
    text : str
        What is done or waited for, and what may be done about it.
    tell : callable
        Takes the text, in any thread; without it: a line on stderr.
    after : float, optional
        How long a moment is, s of the wall; `MOMENT` if not given.
    """
    timer = threading.Timer(MOMENT if after is None else after, tell, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


__all__ = ["MOMENT", "telling"]
