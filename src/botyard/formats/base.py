"""Interface of the readers of map and world files: options, source, and format."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from botyard.errors import BudgetError, FormatError, MapError
from botyard.formats.budget import Budget, Meter
from botyard.model.world import World
from botyard.names import shown

Warn = Callable[[str], None]
DEFAULT_POINT_SIZE: Final = 0.02
"""Default edge of the square that stands for a map point, m."""


def _ignore(_text: str) -> None:
    """Ignore the text of a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options for reading a file: values that the file lacks, limits, and receiver of warnings.

    Attributes
    ----------
    resolution : float or None
        Size of a map point, a pixel, a cell or a unit of a drawing, m; None: the
        default of the format.
    threshold : float
        Brightness, 0 (black) to 1 (white), below which pixels of a plain image are
        occupied.
    invert : bool
        Whether light pixels are occupied, and dark pixels are not.
    planar : bool or None
        Whether coordinates of GeoJSON are metres (True) or degrees (False); None:
        decided by the file.
    topic : str or None
        Topic of the map in a bag; None: the topic named map, or the only topic of maps.
    lines_chunk, points_chunk : int
        Number of lines or points of an ArMap that are parsed at a time. Other threads
        can run between chunks (MAP-016).
    budget : Budget
        Limits.
    warn : callable
        Called with a line of text for each part that was skipped, and for each
        assumption.
    is_program : callable
        Returns whether a controller of a given name exists.
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
        """Return the size of a map point, pixel or cell: the user's, or a default with a warning.

        Parameters
        ----------
        usual : float
            Default, m.
        name : str
            File for the warning.
        what : str
            Thing that has the size, for example ``a pixel``.

        Returns
        -------
        float
            `resolution`, m, or `usual`.
        """
        if self.resolution is not None:
            return self.resolution
        self.warn(
            f"{name}: assuming {usual:g} m {what} (--resolution sets another value)"
        )
        return usual


MAX_LISTED: Final = 5
"""Largest number of files that are named in a message."""


@dataclass(frozen=True, slots=True)
class Source:
    """File to be read, from a disk or uploaded by a user's browser.

    Attributes
    ----------
    name : str
        Name or path, for messages.
    data : bytes
        Contents.
    path : Path or None
        Path; None: the file was uploaded, so files that it refers to are not available.
    root : Path or None
        Folder that confines references; None: references may lead to any file.
    """

    name: str
    data: bytes = field(repr=False)
    path: Path | None = None
    root: Path | None = None

    @property
    def stem(self) -> str:
        """Name of the file without folder and suffix."""
        return Path(self.name.replace("\\", "/")).stem

    @property
    def suffix(self) -> str:
        """Suffix of the file in lower case, with its dot."""
        return Path(self.name.replace("\\", "/")).suffix.lower()

    @property
    def text(self) -> str:
        """Contents of the file as text, without a byte order mark and with plain line ends.

        The encoding is UTF-8, or otherwise the 8-bit code page of older programs.
        """
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = self.data.decode("latin-1")

        return text.replace("\r\n", "\n").replace("\r", "\n")

    def sibling_file(self, name: str, what: str) -> Path:
        """Return the path of a file that this one refers to.

        Parameters
        ----------
        name : str
            Reference as written in this file, relative to its folder.
        what : str
            Kind of the file in messages, for example ``the map``.

        Returns
        -------
        Path
            Path of the file. It may not exist if `root` is None.

        Raises
        ------
        MapError
            This file was uploaded alone, or `root` has no such file.
        """
        if self.path is None:
            raise MapError(
                f'{what} "{shown(name)}" is a separate file: send both at once or in '
                "one .zip, or load the file by name",
                self.name,
            )

        # References are relative to the referring file, in all formats.
        path = self.path.parent / name
        if self.root is None or self._is_inside(path):
            return path
        # Uploads and archives often lose folders, and some file systems ignore case. So
        # the bare file name decides.
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
            f"the folder of this file has {listed}"
            if listed
            else "the folder of this file has no other file"
        )
        raise MapError(
            f'{what} "{shown(name)}" is not in the archive: {beside}', self.name
        )

    def _is_inside(self, path: Path) -> bool:
        """Return whether a path is a file of the archive that contains this file."""
        assert self.root is not None
        return path.resolve().is_relative_to(self.root) and os.path.isfile(path)


def reason_of(error: Exception) -> str:
    """Return the reason that a library's exception gives for a damaged file.

    Python's own errors are not shown: they describe the library's code, not the file.
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
    return "the file is damaged" if own or not str(error) else shown(error, 200)


def read_bytes(
    path: str | Path, meter: Meter, error: type[FormatError] = MapError
) -> bytes:
    """Return the contents of a local file.

    Only regular files are read, because a device or a pipe may be endless.

    Parameters
    ----------
    path : str or Path
        File to read.
    meter : Meter
        Limit of its size.
    error : type of FormatError
        Class of the error if it cannot be read.

    Raises
    ------
    FormatError
        The file cannot be read; the error is of the class `error`.
    BudgetError
        The file is larger than allowed.
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
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
                # The file may have grown since fstat, so one byte too many is read.
                data = file.read(int(min(meter.budget.bytes, sys.maxsize - 1)) + 1)
        finally:
            os.close(handle)
    # The operating system refuses a name with a null character.
    except ValueError as problem:
        raise error(f"cannot be read: {problem}", path) from None
    except OSError as problem:
        raise error(f"cannot be read: {problem.strerror}", path) from None

    meter.check("bytes", len(data), path=str(path))
    return data


def read_sibling(
    path: Path, what: str, meter: Meter, fail: Callable[[str], FormatError]
) -> Source:
    """Return a file that another file names.

    Parameters
    ----------
    path : Path
        Path of the file, from `Source.sibling_file`.
    what : str
        Kind of the file in messages, for example ``the map's image``.
    meter : Meter
        Limit of its size.
    fail : callable
        Returns the error for a reason; it adds the place where the file is named.

    Raises
    ------
    FormatError
        The file cannot be read: the result of `fail`.
    BudgetError
        The file is larger than allowed.
    """
    try:
        return Source(str(path), read_bytes(path, meter), path)
    except BudgetError:
        raise
    except MapError as error:
        reason = error.reason if os.path.exists(path) else "does not exist"
        raise fail(f"{what} {reason}") from None


def read_source(path: str | Path, budget: Budget = Budget()) -> Source:
    """Read a local file into memory.

    Parameters
    ----------
    path : str or Path
        File to read.
    budget : Budget
        Limits.

    Returns
    -------
    Source
        Contents, with the path, from which references to other files are resolved.

    Raises
    ------
    MapError
        The file cannot be read, or is larger than the budget allows.
    """
    path = Path(path)
    return Source(str(path), read_bytes(path, Meter(budget, str(path))), path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Description of a format of map or world files.

    Attributes
    ----------
    name : str
        Short name, as in ``botyard convert --from``.
    about : str
        One line of description.
    suffixes : tuple of str
        Suffixes in lower case, with the dot.
    read : callable
        Reads a source into a `World`.
    fits : callable
        Returns whether a file with a matching suffix really has this format (sniffer).
    extras : mapping of str to str
        Suffix → extra (`botyard.extras`) that is needed to read files of that suffix.
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
