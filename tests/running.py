"""The simulator as a separate process, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import PATIENCE

BOTYARD = [sys.executable, "-m", "botyard"]


@contextmanager
def running(*args: str) -> Iterator[tuple[subprocess.Popen[str], dict]]:
    """Start the simulator and wait for its "ready" line; stop it by its PID at the end."""
    process = subprocess.Popen(
        [*BOTYARD, "run", "--noninteractive", "--no-crash-restart", "--json", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), True)
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False

    status = Path(f"/proc/{pid}/status")
    return not (status.exists() and "State:\tZ" in status.read_text())
