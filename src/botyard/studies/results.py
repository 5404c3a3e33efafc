"""Results as they are kept: a folder with files of JSON lines that are only ever
appended to, one for each process that writes.

A line is one run that has ended. A process that is killed in the middle of a line
leaves a piece of one, which is left out when the file is read: that run is done again.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from botyard.errors import CommandLineError
from botyard.processes.safefile import check_replaceable

Status = Literal["ok", "failed", "timeout", "lost"]
PARTS: Final = "parts"
LOGS: Final = "logs"
RECORDINGS: Final = "recordings"
TABLES: Final = ("table.parquet", "table.csv")
_OURS: Final = re.compile(
    r"\d{6}-[0-9a-f]{8}-\w+\.jsonl|(worker|ray)-\d{6}-[0-9a-f]{8}(-\d+)?\.txt|[0-9a-f]{16}\.(log|mcap)"
)
"""Names of the files of a study."""


class Row(msgspec.Struct, kw_only=True, frozen=True):
    """A run that has ended.

    Attributes
    ----------
    key : str
        Key of the run.
    status : str
        ``ok``; ``failed``: it raised; ``timeout``: it took too long; ``lost``: its
        process died each time.
    result : dict
        What it measured.
    error : str
        Why it is not ok, in one line.
    wall : float
        Wall time that it took, s.
    values : dict
        Values of its parameters, for readers of the file.
    seed : int
        Its seed.
    """

    key: str
    status: Status
    result: dict[str, Any] = {}
    error: str = ""
    wall: float = 0.0
    values: dict[str, Any] = {}
    seed: int = 0


_encode = msgspec.json.Encoder().encode
decode_row = msgspec.json.Decoder(Row).decode


class Folder:
    """The folder of a study's results.

    Parameters
    ----------
    path : Path
        The folder; it is made when something is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def parts(self) -> list[Path]:
        """Files with rows, oldest first."""
        return sorted((self.path / PARTS).glob("*.jsonl"))

    def new_session(self) -> str:
        """Make the folder; the beginning of the names of this session's files, which
        sorts behind those of earlier ones.
        """
        for name in (PARTS, LOGS, RECORDINGS):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        numbers = [
            int(m[1]) for path in self.parts if (m := re.match(r"(\d+)-", path.name))
        ]
        return f"{max(numbers, default=0) + 1:06d}-{uuid.uuid4().hex[:8]}"

    def part(self, session: str, writer: str) -> Path:
        """The file of a writer."""
        return self.path / PARTS / f"{session}-{writer}.jsonl"

    def log(self, key: str) -> Path:
        """The log of a run that is not ok."""
        return self.path / LOGS / f"{key[:16]}.log"

    def recording(self, key: str) -> Path:
        """The recording of a run."""
        return self.path / RECORDINGS / f"{key[:16]}.mcap"

    def rows(self) -> dict[str, Row]:
        """All rows by their keys. Of two with one key a good one counts, else the
        later.

        Raises
        ------
        CommandLineError
            A file holds something else than rows.
        """
        found: dict[str, Row] = {}
        for path in self.parts:
            for row in read_rows(path):
                before = found.get(row.key)
                if before is None or before.status != "ok" or row.status == "ok":
                    found[row.key] = row

        return found

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """While a study writes: no other one does, where the system can lock a folder
        (Linux, macOS).

        The folder is made, and goes again if nothing is written into it.

        Raises
        ------
        CommandLineError
            Another study writes here, or the folder cannot be made.
        """
        try:
            is_new = not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
            number = _locked(self.path)
        except OSError as error:
            if error.errno == errno.EWOULDBLOCK:
                raise CommandLineError(
                    f"{self.path}: another study is writing there"
                ) from None

            raise CommandLineError(
                f"{self.path}: results cannot be written: {error.strerror}"
            ) from None

        try:
            yield
        finally:
            if is_new:
                with suppress(OSError):  # it holds something
                    self.path.rmdir()

            if number is not None:
                os.close(number)

    def clear(self) -> None:
        """Delete the files of rows, logs and recordings; only such as have our names."""
        for name in (PARTS, LOGS, RECORDINGS):
            for path in (self.path / name).glob("*"):
                if _OURS.fullmatch(path.name):
                    path.unlink()

    def check_table(self) -> None:
        """Check that the table may be written: in a folder without rows, a table is not
        ours.

        Raises
        ------
        KeptFileError
            There is a table that botyard did not write.
        """
        if not self.parts:
            for name in TABLES:
                check_replaceable(self.path / name)


def _locked(folder: Path) -> int | None:
    """Lock a folder until the file of this number is closed, or the process ends. None:
    it cannot be locked. OSError: it is.
    """
    try:
        fcntl = importlib.import_module("fcntl")
    except ImportError:
        return None

    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(number)
        if error.errno in (
            errno.ENOLCK,
            errno.ENOTSUP,
            errno.EINVAL,
            errno.EBADF,
        ):  # file systems without locks
            return None

        raise

    return number


def read_rows(path: Path) -> Iterable[Row]:
    """Rows of a file; a piece of a last line is left out."""
    data = path.read_bytes()
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            yield decode_row(line)
        except msgspec.MsgspecError as error:
            raise CommandLineError(
                f"{path}:{number}: expected a row of results, found something else ({error})"
            ) from None


class Part:
    """A file that rows are appended to.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._number = os.open(
            path,
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0),
            0o666,
        )

    def add(self, row: Row) -> None:
        """Append a row; when this returns the system has it, so that the end of this
        process does not lose it.
        """
        data = memoryview(_encode(row) + b"\n")
        while data:
            data = data[os.write(self._number, data) :]

    def close(self) -> None:
        """Close the file."""
        os.close(self._number)


__all__ = [
    "LOGS",
    "PARTS",
    "RECORDINGS",
    "TABLES",
    "Folder",
    "Part",
    "Row",
    "Status",
    "decode_row",
    "read_rows",
]
