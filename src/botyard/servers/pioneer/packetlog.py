"""Packet capture of Pioneer sessions: one JSON object per line (TOL-008, TODO-032).

Keys: ``robot``, ``session`` (counted over all robots), ``sim`` and ``wall`` (s),
``from`` (``client`` or ``robot``), ``data`` (bytes in hexadecimal). A line that reports
dropped lines has the keys ``lost`` (number of lines missing here), ``sim`` and
``wall``. ``botyard packets FILE`` prints the packets in readable form.

A thread writes the file. If the disk is full or blocks, lines are dropped; the
simulation neither waits nor ends because of it. The number of dropped lines appears in
the log and in the file as soon as writing works again.
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
"""Timeout to write the queue on closing, s."""

log = logging.getLogger("botyard.pioneer")


BEGINS: Final = (b'{"robot": ', b'{"lost": ')
"""First bytes of packet captures, by which an old one is recognised."""


class PacketLog:
    """Packet capture of all sessions, written to a file.

    Parameters
    ----------
    path : str or Path
        The file; an old packet capture is replaced.
    sim_time : callable
        Returns the simulated time, s.
    force : bool
        Replace any existing file.

    Raises
    ------
    CommandLineError
        The file cannot be written.
    KeptFileError
        The file exists and is not a packet capture.
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
        """Number of lines that were dropped so far."""
        self._reported = 0
        self._is_closed = False
        self._retry: float | None = None
        self._queue: queue.Queue[bytes | None] = queue.Queue(QUEUE_LENGTH)
        self._thread = threading.Thread(target=self._write, name="packets", daemon=True)
        self._thread.start()
        # Write the queue also if the program ends without a call of `close`.
        atexit.register(self.close)

    def take(
        self, robot: str, session: int, _: int, from_client: bool, data: bytes
    ) -> None:
        """Queue bytes of a session for writing.

        The call never waits: if the queue is full, the line is dropped and counted in
        `lost`. `botyard.interfaces.pioneer.taps` also describes the arguments.

        Parameters
        ----------
        robot : str
            Name of the robot.
        session : int
            Number of the session, counted over all robots.
        from_client : bool
            True for bytes from the client, False for bytes from the robot.
        data : bytes
            The bytes as they were on the line.
        """
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
        """Write the queued lines and close the file.

        Lines that a blocked disk does not accept within `CLOSE_TIMEOUT_S` are lost.
        Further calls do nothing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        atexit.unregister(self.close)
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=CLOSE_TIMEOUT_S)
        self._thread.join(CLOSE_TIMEOUT_S)
        if self._thread.is_alive():
            # The thread is blocked in a write. It is a daemon thread, so it ends with
            # the program.
            return

        with contextlib.suppress(OSError):
            self._file.close()
        self._held.release()
        if self.lost > self._reported:
            log.warning(
                "lost %d lines of the packet capture: %s could not be written",
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
                        "packet capture paused until the disk has room: cannot write %s: %s",
                        self._path,
                        error.strerror,
                    )

                self._retry = time.monotonic() + RETRY_INTERVAL_S

    def _report_losses(self) -> None:
        """Report dropped lines, both in the log and at their place in the file."""
        lost = self.lost - self._reported
        if lost:
            self._put(_encoded({"lost": lost, **self._now()}))
            self._reported += lost
            log.warning("packet capture resumed; %d lines were lost", lost)

        self._retry = None

    def _put(self, line: bytes) -> None:
        """Write a line completely or not at all.

        Raises
        ------
        OSError
            The line cannot be written.
        """
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file.fileno(), line[written:])
        except OSError:
            if written:
                # A pipe cannot be truncated.
                with contextlib.suppress(OSError):
                    end = os.lseek(self._file.fileno(), -written, os.SEEK_CUR)
                    os.ftruncate(self._file.fileno(), end)

            raise


def _encoded(line: Mapping[str, object]) -> bytes:
    return json.dumps(line).encode() + b"\n"


__all__ = ["PacketLog"]
