"""``python -m botyard`` and the console script ``botyard``.

Signal handlers are installed before anything else is imported.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

from botyard.cli import interrupts

GC_THRESHOLD: Final = 10_000
"""Number of new objects after which Python's garbage collector runs."""


def main() -> None:
    """Run the command line of this process."""
    _open_standard_streams()
    interrupts.begin()
    # With Python's default threshold of 700 objects, the garbage collector takes a
    # seventh of the time of the start, because it scans all classes and functions
    # repeatedly. It also scans each command of thousands of clients several times,
    # because commands live until the next step.
    gc.set_threshold(GC_THRESHOLD)
    from botyard.cli.main import main as run

    run()


def _open_standard_streams() -> None:
    """Open the null device for each standard stream that the parent process has closed.

    Otherwise the next file or socket that this process opens would get the number of the
    closed stream, and messages would be written to it. For a closed stream, the object in
    `sys` is None.
    """
    if os.name != "posix":
        return
    for number, name, mode in (
        (0, "stdin", "r"),
        (1, "stdout", "w"),
        (2, "stderr", "w"),
    ):
        if getattr(sys, name) is not None:
            continue
        # The system assigns the lowest free number. Lower numbers are open by now, so it is
        # `number`.
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    main()
