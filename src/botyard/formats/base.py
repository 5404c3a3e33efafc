"""The interface of readers of map and world files: options, sources, and the descriptor
of a format.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from botyard.errors import FormatError, MapError
from botyard.formats.budget import Budget, Meter
from botyard.model.world import World
from botyard.names import shown

Warn = Callable[[str], None]
DEFAULT_POINT_SIZE: Final = 0.02
"""Edge of a map point where the file gives none, m (decisions, "Time and
repeatability").
"""


def _ignore(_text: str) -> None:
    """Discard a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Reading options: what a file does not say itself, limits, and the receiver of
    warnings.

    Attributes
    ----------
    resolution : float or None
        Size of a map point, a pixel, a cell or a unit of a drawing, m; None: the
        format's default.
    threshold : float
        Pixels of a plain image are occupied if they are darker than this, 0 (black) … 1
        (white).
    invert : bool
        Light pixels are occupied instead.
    planar : bool or None
        Coordinates of GeoJSON are metres (True), degrees (False), or what they look
        like (None).
    topic : str or None
        Topic of the map in a bag; None: the one that is called map, or the only one.
    lines_chunk, points_chunk : int
        Lines or points of an ArMap that are parsed at a time; between chunks other
        threads can run (MAP-016).
    budget : Budget
        The limits of what is read.
    warn : callable
        Called with a line of text for everything that was skipped, doubted or assumed.
    is_program : callable
        Whether a controller of a given name exists.
    """

    resolution: float | None = None
    threshold: float = 0.5
    invert: bool = False
    planar: bool | None = None
    topic: str | None = None
    lines_chunk: int = 10_000
    points_chunk: int = 100_000
    budget: Budget = Budget()
    warn: Warn = _ignore
    is_program: Callable[[str], bool] = lambda _name: True

    def scale(self, usual: float, name: str, what: str) -> float:
        """The size of `what`, m: the one requested, or the `usual` one, with a warning."""
        if self.resolution is not None:
            return self.resolution
        self.warn(f"{name}: taken as {usual:g} m {what} (--resolution says otherwise)")
        return usual


MAX_LISTED: Final = 5
"""Files that are named in a message."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is to be read, from a disk or from a user's browser.

    Attributes
    ----------
    name : str
        Its name or path, for messages.
    data : bytes
        Its contents.
    path : Path or None
        Its path; None: it was uploaded, so files that it refers to are not available.
    root : Path or None
        References are confined to this folder; None: to any file.
    """

    name: str
    data: bytes = field(repr=False)
    path: Path | None = None
    root: Path | None = None

    @property
    def stem(self) -> str:
        """The name without folder and suffix."""
        return Path(self.name.replace("\\", "/")).stem

    @property
    def suffix(self) -> str:
        """The suffix in lower case, with its dot."""
        return Path(self.name.replace("\\", "/")).suffix.lower()

    @property
    def text(self) -> str:
        """The file as a text: UTF-8, else the local 8-bit code page of older programs;
        without byte order mark and with plain line ends.
        """
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = self.data.decode("latin-1")

        return text.replace("\r\n", "\n").replace("\r", "\n")

    def beside(self, name: str, what: str) -> Path:
        """A file that this one refers to.

        Raises
        ------
        MapError
            This file came alone, or may not refer to that one.
        """
        if self.path is None:
            raise MapError(
                f'{what} "{shown(name)}" is a file of its own: send both at once, or in one .zip, or load the file by name',
                self.name,
            )

        path = self.path.parent / name
        if self.root is None or self._is_inside(path):
            return path
        # uploads and archives often lose folders, and some file systems ignore case:
        # match by the bare file name
        last = name.replace("\\", "/").rpartition("/")[2]
        there = sorted(
            p for p in self.path.parent.iterdir() if p.is_file() and p != self.path
        )
        for same in (str, str.casefold):
            for path in there:
                if same(path.name) == same(last) and self._is_inside(path):
                    return path

        listed = ", ".join(shown(p.name) for p in there[:MAX_LISTED]) + (
            ", …" if len(there) > MAX_LISTED else ""
        )
        beside = (
            f"beside this file there is {listed}"
            if listed
            else "this file is alone in its folder"
        )
        raise MapError(
            f'{what} "{shown(name)}" is not in the archive: {beside}', self.name
        )

    def _is_inside(self, path: Path) -> bool:
        """Whether a path is a file of the archive that this one came in."""
        assert self.root is not None
        return path.resolve().is_relative_to(self.root) and path.is_file()


def reason_of(error: Exception) -> str:
    """The reason that a library gives for a damaged file. Python's own errors in it
    speak of its code, and not of the file.
    """
    own = isinstance(
        error,
        AttributeError
        | TypeError
        | LookupError
        | AssertionError
        | UnicodeError
        | NameError,
    )
    return "it is damaged" if own or not str(error) else shown(error, 200)


def read_bytes(
    path: str | Path, meter: Meter, error: type[FormatError] = MapError
) -> bytes:
    """Contents of a local file. Only regular files are read: a device or a pipe may be
    endless.

    Raises
    ------
    FormatError
        Of the class `error`: it cannot be read; `BudgetError`: it is larger than
        allowed.
    """
    try:
        # O_NONBLOCK: opening a pipe would wait for a writer
        handle = os.open(
            path,
            os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0),
        )
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise error("expected a file, found a folder, a device or a pipe", path)
            meter.check("bytes", about.st_size, path=str(path))
            with open(handle, "rb", closefd=False) as file:
                data = file.read(
                    int(min(meter.budget.bytes, sys.maxsize - 1)) + 1
                )  # it may have grown since fstat
        finally:
            os.close(handle)
    except ValueError as problem:  # a null character in a name
        raise error(f"cannot be read: {problem}", path) from None
    except OSError as problem:
        raise error(f"cannot be read: {problem.strerror}", path) from None

    meter.check("bytes", len(data), path=str(path))
    return data


def read_source(path: str | Path, budget: Budget = Budget()) -> Source:
    """Read a local file.

    Raises
    ------
    MapError
        It cannot be read, or is larger than the budget allows.
    """
    path = Path(path)
    return Source(str(path), read_bytes(path, Meter(budget, str(path))), path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Descriptor of a format of map or world files.

    Attributes
    ----------
    name : str
        Short name, as in ``botyard convert --from``.
    about : str
        One line of description.
    suffixes : tuple of str
        In lower case, with the dot.
    read : callable
        Reads a source into a `World`.
    fits : callable
        Whether a file with a matching suffix is really of this format (sniffer).
    extras : mapping of str to str
        Suffix → the extra (`botyard.extras`) without which files of that suffix cannot
        be read.
    """

    name: str
    about: str
    suffixes: tuple[str, ...]
    read: Callable[[Source, Options], World]
    fits: Callable[[Source], bool] = lambda _source: True
    extras: Mapping[str, str] = field(default_factory=dict)


__all__ = [
    "DEFAULT_POINT_SIZE",
    "Format",
    "Options",
    "Source",
    "Warn",
    "read_bytes",
    "read_source",
    "reason_of",
]
