"""Recordings of what Pioneer clients and robots say to each other: one JSON object a line (TOL-008, TODO-032).

Keys: ``robot``, ``session`` (counted over all robots), ``sim`` and ``wall`` (s), ``from`` (``client`` or ``robot``), ``data`` (bytes in
hexadecimal). ``botyard packets FILE`` prints them in words.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from botyard.errors import CommandLineError

Tap = Callable[[bool, bytes], None]
"""Takes bytes that pass: whether they are from the client, and what."""


class PacketLog:
    """Writes all sessions to a file.

    Parameters
    ----------
    path : str or Path
        The file; an old one is replaced.
    sim_time : callable
        Simulated time, s.

    Raises
    ------
    CommandLineError
        It cannot be written.
    """

    def __init__(self, path: str | Path, sim_time: Callable[[], float]) -> None:
        try:
            self._file = Path(path).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115 - open as long as the run
        except OSError as error:
            raise CommandLineError(f"--record-packets: cannot write {path}: {error.strerror}") from None
        self._sim_time = sim_time
        self._began = time.monotonic()
        self._sessions = 0

    def session(self, robot: str) -> Tap:
        """A tap for the next session."""
        self._sessions += 1
        number = self._sessions

        def tap(from_client: bool, data: bytes) -> None:
            if not self._file.closed:
                line = {
                    "robot": robot, "session": number, "sim": round(self._sim_time(), 6),
                    "wall": round(time.monotonic() - self._began, 6), "from": "client" if from_client else "robot", "data": data.hex(),
                }  # fmt: skip
                self._file.write(json.dumps(line) + "\n")

        return tap

    def close(self) -> None:
        """Write no more."""
        self._file.close()
