"""Packet capture of Pioneer sessions: one JSON object per line (TOL-008, TODO-032).

Keys: ``robot``, ``session`` (counted over all robots), ``sim`` and ``wall`` (s),
``from`` (``client`` or ``robot``), ``data`` (bytes in hexadecimal); or ``lost`` (how
many lines are missing at this place), ``sim``, ``wall``. ``botyard packets FILE``
prints them in words.

A thread writes the file. A disk that is full or stuck costs lines, and never holds up
the simulation or ends it; how many were lost is said in the log and in the file itself,
as soon as that can be written again.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from botyard.errors import CommandLineError
from botyard.processes.safefile import Hold, check_replaceable, open_own

QUEUE_LENGTH: Final = 10_000
"""Length of the queue of lines to write; further lines are dropped."""
RETRY_INTERVAL_S: Final = 1.0
"""Delay before writing is tried again after an error, s."""
CLOSE_TIMEOUT_S: Final = 2.0
"""Time-out of writing the queue on closing, s."""

log = logging.getLogger("botyard.pioneer")


BEGINS: Final = (b'{"robot": ', b'{"lost": ')
"""How recordings begin."""


class PacketLog:
    """Writes all sessions to a file.

    Parameters
    ----------
    path : str or Path
        The file; an old recording is replaced.
    sim_time : callable
        Simulated time, s.
    force : bool
        Replace it whatever it is.

    Raises
    ------
    CommandLineError
        It cannot be written.
    KeptFileError
        Another file is there.
    """

    def __init__(
        self, path: str | Path, sim_time: Callable[[], float], *, force: bool = False
    ) -> None:
        self._held = Hold(path)
        try:
            with contextlib.ExitStack() as held:
                held.callback(self._held.release)
                check_replaceable(path, force=force, begins=BEGINS)
                self._file = open_own(path)
                held.pop_all()
        except OSError as error:
            raise CommandLineError(
                f"--record-packets: cannot write {path}: {error.strerror}"
            ) from None

        self._path = path
        self._sim_time = sim_time
        self._began = time.monotonic()
        self.lost = 0
        """Lines that could not be written so far."""
        self._reported = 0
        self._is_closed = False
        self._retry: float | None = None
        self._queue: queue.Queue[bytes | None] = queue.Queue(QUEUE_LENGTH)
        self._thread = threading.Thread(target=self._write, name="packets", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def take(
        self, robot: str, session: int, _: int, from_client: bool, data: bytes
    ) -> None:
        """Write bytes that have passed, see `botyard.interfaces.pioneer.taps`."""
        if self._is_closed:
            return
        line = {
            "robot": robot,
            "session": session,
            **self._now(),
            "from": "client" if from_client else "robot",
            "data": data.hex(),
        }
        try:
            self._queue.put_nowait(_encoded(line))
        except queue.Full:
            self.lost += 1

    def close(self) -> None:
        """Write what waits, and no more; lines that a stuck disk does not take in time
        are lost.
        """
        if self._is_closed:
            return
        self._is_closed = True
        atexit.unregister(self.close)
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=CLOSE_TIMEOUT_S)
        self._thread.join(CLOSE_TIMEOUT_S)
        if self._thread.is_alive():
            # it is stuck; the thread ends with the program
            return

        with contextlib.suppress(OSError):
            self._file.close()
        self._held.release()
        if self.lost > self._reported:
            log.warning(
                "%d lines of the recording of packets were lost: %s could not be written",
                self.lost - self._reported,
                self._path,
            )

    def _now(self) -> dict[str, float]:
        return {
            "sim": round(self._sim_time(), 6),
            "wall": round(time.monotonic() - self._began, 6),
        }

    def _write(self) -> None:
        while (line := self._queue.get()) is not None:
            if self._retry is not None and time.monotonic() < self._retry:
                self.lost += 1
                continue

            try:
                self._report_losses()
                self._put(line)
            except OSError as error:
                self.lost += 1
                if self._retry is None:
                    log.warning(
                        "packets are not recorded until there is room again: cannot write %s: %s",
                        self._path,
                        error.strerror,
                    )

                self._retry = time.monotonic() + RETRY_INTERVAL_S

    def _report_losses(self) -> None:
        """In the file, where they are missing, and in the log."""
        lost = self.lost - self._reported
        if lost:
            self._put(_encoded({"lost": lost, **self._now()}))
            self._reported += lost
            log.warning("packets are recorded again; %d lines were lost", lost)

        self._retry = None

    def _put(self, line: bytes) -> None:
        """Write a line whole or not at all; raises OSError."""
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file.fileno(), line[written:])
        except OSError:
            if written:
                with contextlib.suppress(OSError):  # a pipe cannot be cut
                    end = os.lseek(self._file.fileno(), -written, os.SEEK_CUR)
                    os.ftruncate(self._file.fileno(), end)

            raise


def _encoded(line: Mapping[str, object]) -> bytes:
    return json.dumps(line).encode() + b"\n"


__all__ = ["PacketLog"]
