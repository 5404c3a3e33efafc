"""Progress lines for slow operations: one line when an operation takes longer than a
second, none when it is quick. A leaf.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

from botyard.names import escaped

SLOW_AFTER_S = 1.0
"""An operation that takes longer than this is announced, s."""


def _tell(text: str) -> None:
    with contextlib.suppress(
        OSError, ValueError, AttributeError
    ):  # stderr is closed, or there is none
        sys.stderr.write(f"botyard: {escaped(text)}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def telling(
    text: str, tell: Callable[[str], None] = _tell, after: float | None = None
) -> Iterator[None]:
    """Print what the block does, once, if it takes longer than `after`; from a thread,
    so that the block may be in C code.

    Parameters
    ----------
    text : str
        What is done or waited for, and what the user may do about it.
    tell : callable
        Called with the text, in another thread; by default prints a line on stderr.
    after : float, optional
        Wall time, s; `SLOW_AFTER_S` if not given.
    """
    timer = threading.Timer(SLOW_AFTER_S if after is None else after, tell, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


__all__ = ["SLOW_AFTER_S", "telling"]
