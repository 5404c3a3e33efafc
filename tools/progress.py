"""Progress of the set-up: one line that grows. Standard library only: it runs before
any package is installed.

On a terminal the line is overwritten. Elsewhere (a log, CI) a new line is written, at
most one every `PERIOD_S` seconds.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

PERIOD_S: Final = 2.0
"""Shortest time between two lines of a log, s."""
POLL_S: Final = 0.25
"""Time between two looks at a command that runs, s."""
TAIL: Final = 15
"""Lines of a failed command's output that are shown."""


class Progress:
    """One line of progress on stderr.

    Parameters
    ----------
    label : str
        Name of the step, such as "packages".
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._started = time.monotonic()
        self._shown = ""
        self._written = 0.0
        self._is_line = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Show how far the step is. The same text again writes nothing."""
        now = time.monotonic()
        if text == self._shown or (
            not self._is_line and now - self._written < PERIOD_S and self._shown
        ):
            return

        self._write(text)
        self._shown, self._written = text, now

    def done(self, text: str) -> None:
        """Show the result and the time that the step took, and end the line."""
        self._write(f"{text} ({time.monotonic() - self._started:.0f} s)")
        self.end_line()

    def end_line(self) -> None:
        """End the line, so that other output starts on a line of its own."""
        if self._is_line:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        line = f"{self._label}: {text}"
        sys.stderr.write(f"\r{line:<78}" if self._is_line else line + "\n")
        sys.stderr.flush()


def run_watched(
    command: Sequence[str],
    progress: Progress,
    state: Callable[[str], str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> tuple[int, str]:
    """Run a command, and show its progress instead of its output.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    progress : Progress
        The line.
    state : callable
        Text of the progress, made of the command's output up to now.
    env, cwd : mapping, Path
        Environment and working folder of the command.

    Returns
    -------
    int, str
        Exit status, and all output.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
        )
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
                output.seek(0)
                text = output.read().decode("utf-8", "replace")
                if process.returncode is not None:
                    return process.returncode, text
                progress.show(state(text))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def fail(progress: Progress, what: str, output: str, advice: str) -> int:
    """Say that a step of the set-up failed, the last lines of its output, and what to do; return
    the exit status 1.
    """
    progress.end_line()
    for line in output.strip().splitlines()[-TAIL:]:
        print(f"  {line}", file=sys.stderr)
    print(f"{what}. {advice}", file=sys.stderr)
    return 1
