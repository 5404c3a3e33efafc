"""Where log lines go: to stderr, or to a file that is begun anew at a size or on demand, with five old ones kept (LOG-001, LOG-004)."""

from __future__ import annotations

import logging
import logging.handlers
import sys
from collections.abc import Callable

from botyard.errors import CommandLineError

KEPT = 5
"""Old log files that are kept: ``FILE-1``, the newest, to ``FILE-5``."""


def set_up_logging(*, verbose: bool, file: str | None, max_size: int) -> Callable[[], None] | None:
    """Log lines with time stamps to stderr or to a file.

    Parameters
    ----------
    verbose : bool
        Log more.
    file : str, optional
        The log file; it is appended to.
    max_size : int
        Size at which a new one is begun, bytes; 0: never.

    Returns
    -------
    callable or None
        Begins a new log file; None without a file.

    Raises
    ------
    CommandLineError
        The file cannot be written.
    """
    handler: logging.Handler
    rotate = None
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
        stamp = "%H:%M:%S"
    else:
        try:
            rotating = logging.handlers.RotatingFileHandler(file, maxBytes=max_size, backupCount=KEPT, encoding="utf-8")
        except OSError as error:
            raise CommandLineError(f"--log-file: cannot write {file}: {error.strerror}") from None
        rotating.namer = lambda name: "-".join(name.rsplit(".", 1))  # FILE.1 → FILE-1
        handler, rotate = rotating, rotating.doRollover
        stamp = "%Y-%m-%d %H:%M:%S"
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", stamp))
    root = logging.getLogger("botyard")
    for old in root.handlers:
        old.close()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    root.propagate = False
    return rotate
