"""Where log lines go: to stderr, or to a file that is begun anew at a size or on
demand, with five old ones kept (LOG-001 … LOG-004).

A thread writes them. A disk that is full or stuck, or a terminal that is held, costs
lines and never holds up the simulation; how many were lost is said as soon as lines can
be written again.
"""

from __future__ import annotations

import atexit
import contextlib
import html
import io
import itertools
import json
import logging
import logging.handlers
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from botyard.errors import CommandLineError
from botyard.names import escaped
from botyard.processes.safefile import is_device, is_replaceable_own, open_own
from botyard.protocols.tokenbucket import TokenBucket

KEPT_FILES: Final = 5
"""Number of old log files: ``FILE-1``, the newest, to ``FILE-5``."""
WAITING: Final = 10_000
"""Length of the queue of lines to write; further lines are dropped."""
CLOSE_TIMEOUT_S: Final = 2.0
"""Time-out of writing the queue on closing, s."""
LIBRARY_RATE: Final = 1.0
"""Token bucket of the lines of a library's logger: sustained rate, 1/s."""
LIBRARY_BURST: Final = 5.0
"""The same: burst."""
FORMATS: Final = ("plain", "html", "json")


INDENT: Final = "    "
"""Indentation of the lines of a traceback; lines without it are log lines."""


class _Plain(logging.Formatter):
    """``time LEVEL message`` on one line, whatever is in the message; the lines of a
    trace follow, indented.
    """

    def __init__(self, stamp: str) -> None:
        super().__init__(datefmt=stamp)

    def format(self, record: logging.LogRecord) -> str:
        line = (
            f"{self.formatTime(record, self.datefmt)} {record.levelname:<7} "
            f"{escaped(record.getMessage())}"
        )
        return "\n".join(
            [line, *(INDENT + escaped(row) for row in self._trace(record))]
        )

    def _trace(self, record: logging.LogRecord) -> list[str]:
        """The lines of the exception that goes with a record."""
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        return (record.exc_text or "").splitlines()


class _Html(_Plain):
    """A line of HTML; its parts have the classes of the original, so that its style
    sheets fit (LOG-003, formats §7).
    """

    def format(self, record: logging.LogRecord) -> str:
        robot = getattr(record, "robot", None)
        tag = record.name.rpartition(".")[2] if robot is None else robot
        text = record.getMessage().removeprefix(f"{tag}: ")
        parts = {"time": self.formatTime(record, self.datefmt), "tag": tag, "msg": text}
        spans = [
            f'<span class="stage-log-{kind}">{html.escape(escaped(part))}</span>'
            for kind, part in parts.items()
        ]
        level = record.levelname.capitalize()
        line = f'<span class="stage-log stage-log-{level} {level.lower()}">{" ".join(spans)}</span><br>'
        return "\n".join(
            [
                line,
                *(
                    f"{_blanks(html.escape(INDENT + escaped(row)))}<br>"
                    for row in self._trace(record)
                ),
            ]
        )


def _blanks(text: str) -> str:
    """A line whose first blanks are shown."""
    rest = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(rest)) + rest


class _Json(logging.Formatter):
    """One JSON object a line: ``time`` (s), ``level``, ``source`` (the interface),
    ``robot`` where it is about one, ``text``.
    """

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        row = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "source": record.name,
        }
        robot = getattr(record, "robot", None)
        row |= ({} if robot is None else {"robot": robot}) | {"text": text}
        line = json.dumps(row, ensure_ascii=False)
        if line.isprintable():
            return line
        return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


class _File(logging.handlers.RotatingFileHandler):
    """A log file, and old ones beside it: ours to make, so links are not followed and
    only regular files are renamed and replaced.
    """

    def _open(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(
            open_own(self.baseFilename, append=True),
            encoding=self.encoding,
            errors=self.errors,
        )

    def doRollover(self) -> None:  # logging's name
        """Begin a new file; the old ones are renamed: ``FILE`` to ``FILE-1``, that to
        ``FILE-2`` and so on.

        If something else has one of the names, the log goes on in the same file.
        """
        names = [
            self.baseFilename,
            *(f"{self.baseFilename}-{n}" for n in range(1, self.backupCount + 1)),
        ]
        if is_device(names[0]) or not all(map(is_replaceable_own, names)):
            return
        if self.stream:
            self.stream.close()
        try:
            for new, old in itertools.pairwise(reversed(names)):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(old, new)
        finally:
            self.stream = self._open()


class Logs(logging.Handler):
    """Logging handler with a bounded queue; a thread writes the lines.

    Parameters
    ----------
    target : logging.Handler
        Writes them.
    """

    def __init__(self, target: logging.Handler) -> None:
        super().__init__()
        self._target = target
        self._queue: queue.Queue[logging.LogRecord | Callable[[], None] | None] = (
            queue.Queue(WAITING)
        )
        self.lost = 0
        """Lines that were not written so far."""
        self._reported = 0
        target.handleError = self._failed  # type: ignore[method-assign]
        self.libraries = Libraries(self)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a line over; never waits."""
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self.lost += 1

    def rotate(self) -> None:
        """Begin a new log file, after the lines that were logged so far."""
        target = self._target
        if isinstance(target, logging.handlers.RotatingFileHandler):
            try:
                self._queue.put_nowait(target.doRollover)
            except queue.Full:
                self.lost += 1

    def flush(self) -> None:
        """Wait until what was logged is written, but not for ever."""
        if not self._thread.is_alive():
            return
        done = threading.Event()
        try:
            self._queue.put(done.set, timeout=CLOSE_TIMEOUT_S)
        except queue.Full:
            return

        done.wait(CLOSE_TIMEOUT_S)

    def close(self) -> None:
        """Write what waits, and end."""
        atexit.unregister(self.close)
        self.libraries.remove()
        if self._thread.is_alive():
            self.flush()
            try:
                self._queue.put_nowait(None)
            except queue.Full:
                # it is stuck; the thread ends with the program
                return

            self._thread.join(CLOSE_TIMEOUT_S)
            if not self._thread.is_alive():
                with contextlib.suppress(
                    OSError
                ):  # what it still holds cannot be written
                    self._target.close()

        super().close()

    def _write(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                if isinstance(item, logging.LogRecord):
                    self._report_losses(item)
                    self._target.handle(item)
                else:
                    item()
            except Exception:
                # whatever a disk does must not end the thread
                self.lost += 1

    def _report_losses(self, record: logging.LogRecord) -> None:
        if self.lost == self._reported:
            return
        before = self.lost
        text = f"{before - self._reported} lines of the log were lost: they could not be written"
        self._target.handle(
            logging.LogRecord(record.name, logging.WARNING, "", 0, text, None, None)
        )
        if self.lost == before:
            self._reported = before

    def _failed(self, record: logging.LogRecord) -> None:
        """The target could not write a line."""
        self.lost += 1


class Libraries(logging.Handler):
    """Hands what libraries log, and exceptions that nothing has caught, to our log: a
    warning or error of each logger a second.

    Strangers can make some of them log at any rate. Traces of further ones are left
    out, and the next line counts them.

    Parameters
    ----------
    logs : Logs
        Where lines go.
    clock : callable
        s.
    """

    def __init__(self, logs: Logs, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._logs, self._clock = logs, clock
        self._room: dict[str, TokenBucket] = {}
        self._left_out: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a line over, or count it; `handle` has the lock."""
        now, name = self._clock(), record.name
        if not self._room.setdefault(
            name, TokenBucket(LIBRARY_RATE, LIBRARY_BURST, now)
        ).take(now):
            self._left_out[name] = self._left_out.get(name, 0) + 1
            return

        others = self._left_out.pop(name, 0)
        more = f" (and {others} more like this)" if others else ""
        text = f"{name}: {record.getMessage()}{more}"
        self._logs.handle(
            logging.LogRecord(
                f"botyard.{name}",
                record.levelno,
                record.pathname,
                record.lineno,
                text,
                None,
                record.exc_info,
            )
        )

    def install(self) -> None:
        """Take the place of an earlier one, and of what Python prints of threads and of
        objects that nobody catches.
        """
        root = logging.getLogger()
        for old in [h for h in root.handlers if isinstance(h, Libraries)]:
            root.removeHandler(old)
        root.addHandler(self)
        threading.excepthook = self._in_thread
        sys.unraisablehook = self._unraisable

    def remove(self) -> None:
        """Leave the place."""
        root = logging.getLogger()
        if self in root.handlers:
            root.removeHandler(self)
            threading.excepthook = threading.__excepthook__
            sys.unraisablehook = sys.__unraisablehook__

    def _in_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit and args.exc_value is not None:
            name = args.thread.name if args.thread is not None else "a thread"
            trace = args.exc_type, args.exc_value, args.exc_traceback
            logging.getLogger("threading").error(
                "internal error in %s", name, exc_info=trace
            )

    def _unraisable(self, args: sys.UnraisableHookArgs) -> None:
        if args.exc_value is None:
            return
        trace = args.exc_type, args.exc_value, args.exc_traceback
        text = f"{args.err_msg or 'internal error'}: {type(args.object).__name__}"
        logging.getLogger("python").error("%s", text, exc_info=trace)


def set_up_logging(
    *,
    verbose: bool = False,
    quiet: bool = False,
    file: str | None = None,
    max_size: int = 0,
    form: str = "plain",
) -> Logs:
    """Log lines with time stamps to stderr or to a file.

    Parameters
    ----------
    verbose, quiet : bool
        Log more; log warnings and errors only.
    file : str, optional
        The log file; it is appended to.
    max_size : int
        Size at which a new one is begun, bytes; 0: never.
    form : str
        One of `FORMATS`.

    Returns
    -------
    Logs
        To be closed at the end.

    Raises
    ------
    CommandLineError
        The file cannot be written.
    """
    handler: logging.Handler
    stamp = "%H:%M:%S"
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        try:
            handler = _File(
                file, maxBytes=max_size, backupCount=KEPT_FILES, encoding="utf-8"
            )
        except OSError as error:
            raise CommandLineError(
                f"--log-file: cannot write {file}: {error.strerror}"
            ) from None

        stamp = "%Y-%m-%d %H:%M:%S"

    formatters: dict[str, Callable[[], logging.Formatter]] = {
        "plain": lambda: _Plain(stamp),
        "html": lambda: _Html(stamp),
        "json": _Json,
    }
    handler.setFormatter(formatters[form]())
    root = logging.getLogger("botyard")
    for old in root.handlers:
        old.close()
    logs = Logs(handler)
    root.handlers[:] = [logs]
    root.setLevel(
        logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    )
    root.propagate = False
    logs.libraries.install()
    return logs


__all__ = ["FORMATS", "KEPT_FILES", "Libraries", "Logs", "set_up_logging"]
