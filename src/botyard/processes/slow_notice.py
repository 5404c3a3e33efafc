"""Progress messages for slow operations: one line if an operation takes over a second."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

from botyard.names import escaped

SLOW_AFTER_S = 1.0
"""Time after which an operation is announced, s."""


def _tell(text: str) -> None:
    """Print a line on stderr."""
    with contextlib.suppress(
        OSError,
        ValueError,
        AttributeError,
        # stderr may be closed or missing.
    ):
        sys.stderr.write(f"botyard: {escaped(text)}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def telling(
    text: str, tell: Callable[[str], None] = _tell, after: float | None = None
) -> Iterator[None]:
    """Print a message once if the block takes longer than `after`.

    A thread prints it, so that the block may be in C code.

    Parameters
    ----------
    text : str
        Name of the slow operation, and advice for the user.
    tell : callable
        Receives the text in another thread; by default prints it on stderr.
    after : float, optional
        Wall time, s; `SLOW_AFTER_S` by default.
    """
    timer = threading.Timer(SLOW_AFTER_S if after is None else after, tell, (text,))
    # A pending message must not keep the program alive.
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


__all__ = ["SLOW_AFTER_S", "telling"]
