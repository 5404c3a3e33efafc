"""Results folder of a study: append-only files of JSON lines, one per writing process.

Each line is one run that has ended. A process killed in the middle of a line leaves a
partial line. Readers skip it, so that this run is repeated.
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
"""Pattern of the names of files that a study writes."""


class Row(msgspec.Struct, kw_only=True, frozen=True):
    """Result of a run that has ended.

    Attributes
    ----------
    key : str
        Hash of the run.
    status : str
        ``ok``; ``failed``: it raised an error; ``timeout``: it exceeded a time limit;
        ``lost``: its process died at each attempt.
    result : dict
        Measured values.
    error : str
        Reason why the run is not ok, in one line.
    wall : float
        Wall time of the run, s.
    values : dict
        Parameter values, for readers of the file.
    seed : int
        Seed of the run.
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
    """Folder of a study's results.

    Parameters
    ----------
    path : Path
        The folder; it is created on the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def parts(self) -> list[Path]:
        """Files of rows, oldest first."""
        return sorted((self.path / PARTS).glob("*.jsonl"))

    def new_session(self) -> str:
        """Create the folder and return the prefix for file names of this session.

        Returns
        -------
        str
            Six digits and eight hexadecimal digits: ``000001-9f86d081``. The prefix
            sorts after the prefixes of earlier sessions.

        Raises
        ------
        OSError
            The folder cannot be created.
        """
        for name in (PARTS, LOGS, RECORDINGS):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        numbers = [
            int(m[1]) for path in self.parts if (m := re.match(r"(\d+)-", path.name))
        ]
        # The random part keeps file names apart if two computers share the folder over
        # a network file system without locks.
        return f"{max(numbers, default=0) + 1:06d}-{uuid.uuid4().hex[:8]}"

    def part(self, session: str, writer: str) -> Path:
        """Return the path of a writer's file of rows.

        Parameters
        ----------
        session : str
            Prefix of the session, from `new_session`.
        writer : str
            Name of the writing process, unique in the session; letters and digits.
        """
        return self.path / PARTS / f"{session}-{writer}.jsonl"

    def log(self, key: str) -> Path:
        """Return the path for the log of a run that is not ok.

        Parameters
        ----------
        key : str
            Hash of the run; its first 16 digits name the file.
        """
        return self.path / LOGS / f"{key[:16]}.log"

    def recording(self, key: str) -> Path:
        """Return the path for the recording of a run.

        Parameters
        ----------
        key : str
            Hash of the run; its first 16 digits name the file.
        """
        return self.path / RECORDINGS / f"{key[:16]}.mcap"

    def rows(self) -> dict[str, Row]:
        """Return all rows by hash.

        Returns
        -------
        dict of str to Row
            One row per run; empty if the folder does not exist. If a run has several
            rows, one with status ``ok`` wins, otherwise the last.

        Raises
        ------
        CommandLineError
            A file contains something other than rows.
        OSError
            A file cannot be read.
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
        """Lock the folder, so that no other study writes to it inside this block.

        The lock works on systems that can lock folders (Linux, macOS). The folder is
        created, and removed again if nothing is written into it.

        Raises
        ------
        CommandLineError
            Another study writes here, or the folder cannot be created.
        """
        try:
            is_new = not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
            number = _locked(self.path)
        except OSError as error:
            if error.errno == errno.EWOULDBLOCK:
                raise CommandLineError(
                    f"{self.path}: another study is writing its results there"
                ) from None

            raise CommandLineError(
                f"{self.path}: cannot write results: {error.strerror}"
            ) from None

        try:
            yield
        finally:
            if is_new:
                # Fails if the folder is not empty, which is intended.
                with suppress(OSError):
                    self.path.rmdir()

            if number is not None:
                os.close(number)

    def clear(self) -> None:
        """Delete rows, logs and recordings, but no file with a foreign name.

        Raises
        ------
        OSError
            A file cannot be deleted.
        """
        for name in (PARTS, LOGS, RECORDINGS):
            for path in (self.path / name).glob("*"):
                if _OURS.fullmatch(path.name):
                    path.unlink()

    def check_table(self) -> None:
        """Check that the table may be written.

        If the folder has no rows, an existing table may be another program's file.

        Raises
        ------
        KeptFileError
            There is a table that botyard did not write.
        """
        if not self.parts:
            for name in TABLES:
                check_replaceable(self.path / name)


def _locked(folder: Path) -> int | None:
    """Lock a folder until the returned file descriptor is closed or the process ends.

    Parameters
    ----------
    folder : Path
        The folder; it exists.

    Returns
    -------
    int or None
        The file descriptor; None: the system cannot lock folders.

    Raises
    ------
    OSError
        Another process holds the lock (`errno.EWOULDBLOCK`), or the folder cannot be
        opened.
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
            # These codes report file systems without locks, such as some network file
            # systems.
        ):
            return None

        raise

    return number


def read_rows(path: Path) -> Iterable[Row]:
    """Yield the rows of a file; skip a partial last line.

    Parameters
    ----------
    path : Path
        The file; it is read as a whole.

    Yields
    ------
    Row
        Rows in the order of the file, oldest first.

    Raises
    ------
    CommandLineError
        A complete line is not a row.
    OSError
        The file cannot be read.
    """
    data = path.read_bytes()
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            yield decode_row(line)
        except msgspec.MsgspecError as error:
            raise CommandLineError(
                f"{path}:{number}: expected a row of results, found another text "
                f"({error})"
            ) from None


class Part:
    """File to which one process appends its rows.

    Parameters
    ----------
    path : Path
        The file; it is created, or continued if it exists.

    Raises
    ------
    OSError
        The file cannot be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self._number = os.open(
            path,
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0),
            0o666,
        )

    def add(self, row: Row) -> None:
        """Append a row.

        When this returns, the operating system has the row, so it survives the end of
        this process.

        Parameters
        ----------
        row : Row
            The row, written as one line of JSON.

        Raises
        ------
        OSError
            The row cannot be written; a part of its line may remain, which readers skip
            or report.
        """
        # `os.write` may write a part of the line only, for example on a full disk.
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
