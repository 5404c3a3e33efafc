"""Log output to stderr or to a rotating file (LOG-001 … LOG-004).

The file is rotated at a size or on request; five old files are kept. A thread writes
the lines, so that a full or slow disk, or a paused terminal, never delays the simulation.
Lines that cannot be written in time are lost. The number of lost lines is reported with
the next written line.
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

from botyard.errorpages import page_of_warning
from botyard.errors import CommandLineError
from botyard.names import escaped
from botyard.processes.safefile import Hold, is_device, is_replaceable_own, open_own
from botyard.protocols.tokenbucket import TokenBucket

KEPT_FILES: Final = 5
"""Number of old log files: ``FILE-1``, the newest, to ``FILE-5``."""
WAITING: Final = 10_000
"""Length of the queue of lines to write; further lines are dropped."""
CLOSE_TIMEOUT_S: Final = 2.0
"""Timeout for writing the queue on closing, s."""
LIBRARY_RATE: Final = 1.0
"""Rate limit of a library's logger (token bucket): sustained rate, 1/s."""
LIBRARY_BURST: Final = 5.0
"""Rate limit of a library's logger: size of a burst, lines."""
FORMATS: Final = ("plain", "html", "json")
"""Names of the log formats."""


INDENT: Final = "    "
"""Indentation of the lines of a traceback; log lines start without it."""


def _message(record: logging.LogRecord) -> str:
    """Return the message of a log record; for a warning, with the page that explains it."""
    page = page_of_warning(record)
    return f"{record.getMessage()} (see {page})" if page else record.getMessage()


class _Plain(logging.Formatter):
    """Formatter of plain text.

    It writes ``time LEVEL message`` on one line, then the indented trace.
    """

    def __init__(self, stamp: str) -> None:
        super().__init__(datefmt=stamp)

    def format(self, record: logging.LogRecord) -> str:
        line = (
            f"{self.formatTime(record, self.datefmt)} {record.levelname:<7} "
            # Escaped, because a message may quote data of a peer: a line break in it
            # would forge a log line.
            f"{escaped(_message(record))}"
        )
        return "\n".join(
            [line, *(INDENT + escaped(row) for row in self._trace(record))]
        )

    def _trace(self, record: logging.LogRecord) -> list[str]:
        """Return the indented lines of a log record's traceback."""
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        return (record.exc_text or "").splitlines()


class _Html(_Plain):
    """Formatter of HTML lines, with AMRISim's class names (LOG-003, formats §7).

    Style sheets for AMRISim's logs therefore still apply.
    """

    def format(self, record: logging.LogRecord) -> str:
        robot = getattr(record, "robot", None)
        tag = record.name.rpartition(".")[2] if robot is None else robot
        text = _message(record).removeprefix(f"{tag}: ")
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
    """Return a line with non-breaking leading spaces, which HTML shows."""
    rest = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(rest)) + rest


class _Json(logging.Formatter):
    """Formatter of JSON lines.

    Fields: ``time`` (s), ``level``, ``source`` (the interface), ``robot`` for lines
    about a robot, ``text``.
    """

    def format(self, record: logging.LogRecord) -> str:
        text = _message(record)
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

        # JSON does not escape some control characters, for example C1 codes that
        # terminals interpret.
        return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


class _File(logging.handlers.RotatingFileHandler):
    """Log file with rotation, safe in folders that other users can write to.

    The handler never follows links, and renames and replaces regular files only. No
    other simulator writes the file meanwhile: two would rename each other's old files.

    Raises
    ------
    BusyFileError
        Another simulator writes the file.
    OSError
        The file cannot be written.
    """

    def __init__(self, file: str, size: int) -> None:
        self._hold = Hold(file)
        try:
            super().__init__(
                file, maxBytes=size, backupCount=KEPT_FILES, encoding="utf-8"
            )
        except BaseException:
            self._hold.release()
            raise

    def close(self) -> None:
        """Close the file, and let other simulators write it."""
        try:
            super().close()
        finally:
            self._hold.release()

    def _open(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(
            open_own(self.baseFilename, append=True),
            encoding=self.encoding,
            errors=self.errors,
        )

    # `logging.handlers` prescribes this name.
    def doRollover(self) -> None:
        """Start a new file.

        ``FILE`` is renamed to ``FILE-1``, ``FILE-1`` to ``FILE-2`` and so on. If one of
        the names is not a regular file, logging continues in the same file.
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
    """Logging handler with a bounded queue and a writer thread.

    Parameters
    ----------
    target : logging.Handler
        Handler that writes the lines.
    """

    def __init__(self, target: logging.Handler) -> None:
        super().__init__()
        self._target = target
        self._queue: queue.Queue[logging.LogRecord | Callable[[], None] | None] = (
            queue.Queue(WAITING)
        )
        self.lost = 0
        """Number of lines lost so far."""
        self._reported = 0
        target.handleError = self._failed  # type: ignore[method-assign]
        self.libraries = Libraries(self)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def emit(self, record: logging.LogRecord) -> None:
        """Put a log record into the queue, without waiting.

        Parameters
        ----------
        record : logging.LogRecord
            Line. If the queue is full, it is dropped and counted in `lost`.
        """
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self.lost += 1

    def rotate(self) -> None:
        """Start a new log file, after all lines logged so far."""
        target = self._target
        if isinstance(target, logging.handlers.RotatingFileHandler):
            try:
                self._queue.put_nowait(target.doRollover)
            except queue.Full:
                self.lost += 1

    def flush(self) -> None:
        """Wait until all lines are written, at most `CLOSE_TIMEOUT_S`."""
        if not self._thread.is_alive():
            return
        done = threading.Event()
        try:
            self._queue.put(done.set, timeout=CLOSE_TIMEOUT_S)
        except queue.Full:
            return

        done.wait(CLOSE_TIMEOUT_S)

    def close(self) -> None:
        """Write the queue and stop the thread."""
        atexit.unregister(self.close)
        self.libraries.remove()
        if self._thread.is_alive():
            self.flush()
            try:
                self._queue.put_nowait(None)
            except queue.Full:
                # The writer is stuck; as a daemon thread, it ends with the program.
                return

            self._thread.join(CLOSE_TIMEOUT_S)
            if not self._thread.is_alive():
                with contextlib.suppress(
                    OSError
                    # Closing flushes the buffer, which may fail again.
                ):
                    self._target.close()

        super().close()

    def _write(self) -> None:
        """Write lines from the queue to the target (function of the writer thread)."""
        while (item := self._queue.get()) is not None:
            try:
                if isinstance(item, logging.LogRecord):
                    self._report_losses(item)
                    self._target.handle(item)
                else:
                    item()
            except Exception:
                # No error of the disk may end the thread.
                self.lost += 1

    def _report_losses(self, record: logging.LogRecord) -> None:
        """Write how many lines were lost since the last report."""
        if self.lost == self._reported:
            return
        before = self.lost
        text = f"{before - self._reported} log lines were lost: cannot write them"
        self._target.handle(
            logging.LogRecord(record.name, logging.WARNING, "", 0, text, None, None)
        )
        # The report itself may have been lost; then it is repeated later.
        if self.lost == before:
            self._reported = before

    def _failed(self, record: logging.LogRecord) -> None:
        """Count a line as lost, because the target could not write it."""
        self.lost += 1


class Libraries(logging.Handler):
    """Rate-limited handler that forwards warnings of libraries and uncaught exceptions.

    Remote peers can make some libraries log at any rate. Each logger may write about
    one line per second; the next line reports the number of dropped lines.

    Parameters
    ----------
    logs : Logs
        Receiver of the lines.
    clock : callable
        Monotonic time, s.
    """

    def __init__(self, logs: Logs, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._logs, self._clock = logs, clock
        self._room: dict[str, TokenBucket] = {}
        self._left_out: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Forward a log record, or drop it; the caller (`handle`) holds the lock."""
        now, name = self._clock(), record.name
        if not self._room.setdefault(
            name, TokenBucket(LIBRARY_RATE, LIBRARY_BURST, now)
        ).take(now):
            self._left_out[name] = self._left_out.get(name, 0) + 1
            return

        others = self._left_out.pop(name, 0)
        more = f" (and {others} more messages of {name})" if others else ""
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
        """Install this handler in place of an earlier one, and log uncaught exceptions.

        They are logged instead of printed.
        """
        root = logging.getLogger()
        for old in [h for h in root.handlers if isinstance(h, Libraries)]:
            root.removeHandler(old)
        root.addHandler(self)
        threading.excepthook = self._in_thread
        sys.unraisablehook = self._unraisable

    def remove(self) -> None:
        """Remove this handler and restore Python's own exception hooks."""
        root = logging.getLogger()
        if self in root.handlers:
            root.removeHandler(self)
            threading.excepthook = threading.__excepthook__
            sys.unraisablehook = sys.__unraisablehook__

    def _in_thread(self, args: threading.ExceptHookArgs) -> None:
        """Log an uncaught exception of a thread."""
        if args.exc_type is not SystemExit and args.exc_value is not None:
            name = args.thread.name if args.thread is not None else "a thread"
            trace = args.exc_type, args.exc_value, args.exc_traceback
            logging.getLogger("threading").error(
                "internal error in %s", name, exc_info=trace
            )

    def _unraisable(self, args: sys.UnraisableHookArgs) -> None:
        """Log an exception that Python cannot raise, for example in a destructor."""
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
    """Send log lines with time stamps to stderr or to a file.

    Parameters
    ----------
    verbose, quiet : bool
        Log debug messages as well; log warnings and errors only.
    file : str, optional
        Log file; lines are appended.
    max_size : int
        Size at which the file is rotated, bytes; 0: never.
    form : str
        Format of the lines, one of `FORMATS`.

    Returns
    -------
    Logs
        The handler; close it at the end.

    Raises
    ------
    BusyFileError
        Another simulator writes the file.
    CommandLineError
        The file cannot be written.
    """
    handler: logging.Handler
    stamp = "%H:%M:%S"
    root = logging.getLogger("botyard")

    # Close the old handler first: the new one may write the same file.
    for old in root.handlers:
        old.close()
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        try:
            handler = _File(file, max_size)
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
    logs = Logs(handler)
    root.handlers[:] = [logs]
    root.setLevel(
        logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    )

    # The root logger's handler, `Libraries`, would write each line a second time.
    root.propagate = False
    logs.libraries.install()
    return logs


__all__ = ["FORMATS", "KEPT_FILES", "Libraries", "Logs", "set_up_logging"]
