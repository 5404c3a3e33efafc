"""Atomic writing of files, without overwriting the user's own.

There are two kinds of files. Files named by the user (pictures, scenarios, maps,
results) are replaced only if this program wrote them, which a marker in the file shows
(`MARK`), or if the user insists (`force`). The program's own files (state, logs,
recordings) are opened without following links, and only regular files are replaced or
deleted. Replacing is atomic: new contents go to a temporary file in the same folder,
with an unpredictable name (`tempfile.mkstemp`), which is renamed when complete.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from botyard.errors import BusyFileError, KeptFileError

MARK: Final = "Written by botyard"
"""Marker near the start or end of each file that this program writes for a user.

A file without it is the user's own: remove the marker to protect an edited file.
"""
MARK_WITHIN_BYTES: Final = 4096
"""Number of first and last bytes of a file in which the marker is searched."""
PRIVATE: Final = 0o600
"""Mode of files with secrets: only their owner can read and write them."""

StrPath = str | os.PathLike[str]
Beginnings = bytes | tuple[bytes, ...]
_NO_LINK: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)


def _mode(path: StrPath, *, follow: bool) -> int | None:
    """Return type and permissions of the file at a path; None: there is none."""
    try:
        return (os.stat if follow else os.lstat)(path).st_mode
    except FileNotFoundError:
        return None


def _kind(mode: int) -> str:
    """Return the type of a file that is not regular, in words."""
    kinds = (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((words for test, words in kinds if test(mode)), "not a regular file")


# -- exclusive right to write a file


MAX_LOCKED_BYTES: Final = 240
"""Maximum length of a target's name inside the name of the hidden file, bytes.

File systems allow 255.
"""

MAX_ATTEMPTS: Final = 100
"""Maximum number of attempts to lock the hidden file next to a target.

Another process may replace the hidden file during an attempt. The last attempt counts
as successful if the system cannot compare the locked file with the one in the folder.
"""


class Hold:
    """Exclusive right to write a file, across all processes.

    It is a lock of the operating system on a hidden file next to the target, and ends
    with its process. A lock on the target itself would be lost when the target is
    replaced or split. The hidden file is deleted with the lock; a leftover hidden file
    locks nothing. If the hidden file cannot be created, the target is not held: in this
    case, the target can hardly be written either.

    Parameters
    ----------
    path : path-like
        The file; it need not exist. Links are followed. Only regular files are held.

    Raises
    ------
    BusyFileError
        Another process, or another part of this one, holds the file.
    """

    def __init__(self, path: StrPath) -> None:
        self._number = self._linked = -1
        target = Path(os.path.realpath(path))
        name = os.fsencode(target.name)

        # Shorten the name, because the name of the hidden lock file would be too long.
        if len(name) > MAX_LOCKED_BYTES:
            name = hashlib.blake2b(name, digest_size=16).hexdigest().encode()
        self._lock = target.with_name(f".{os.fsdecode(name)}.lock")
        if is_device(path) or not is_replaceable_own(target):
            return

        for attempt in range(MAX_ATTEMPTS):
            number = self._opened()
            if number is None:
                return
            if not _lock(number):
                os.close(number)
                raise BusyFileError(path)

            self._number = number
            with contextlib.suppress(OSError):
                # The previous holder may have deleted the file between opening and
                # locking; other processes would then lock another file.
                if (
                    os.path.samestat(os.fstat(number), os.lstat(self._lock))
                    or attempt == MAX_ATTEMPTS - 1
                ):
                    break
            self._number = -1
            os.close(number)
        self._hold_links(target, path)

    def _hold_links(self, target: Path, path: StrPath) -> None:
        """Also lock the file itself if it has several names (hard links).

        This does nothing on Windows, where a lock forbids writing.
        """
        if os.name == "nt":
            return
        with contextlib.suppress(OSError):
            if os.lstat(target).st_nlink > 1:
                self._linked = _open_regular(target, os.O_RDONLY)
        if self._linked >= 0 and not _lock(self._linked):
            self.release()
            raise BusyFileError(path)

    def _opened(self) -> int | None:
        """Open the hidden file for its lock; return None if this is not possible."""
        access = os.O_RDWR if os.name == "nt" else os.O_RDONLY
        with contextlib.suppress(OSError):
            return _open_regular(self._lock, access | os.O_CREAT, 0o644)
        with contextlib.suppress(
            OSError
            # In a shared folder, another user's file opens only without the flag to create
            # it.
        ):
            return _open_regular(self._lock, access)

        return None

    def release(self) -> None:
        """Release the lock; do nothing if it is not held."""
        linked, self._linked = self._linked, -1
        if linked >= 0:
            os.close(linked)
        number, self._number = self._number, -1
        if number < 0:
            return
        # A file with contents is a user's file that happens to have this name.
        ours = os.fstat(number).st_size == 0
        if ours and os.name != "nt":
            with contextlib.suppress(OSError):
                os.unlink(self._lock)

        os.close(number)
        # Windows cannot delete an open file.
        if ours and os.name == "nt":
            with contextlib.suppress(OSError):
                os.unlink(self._lock)

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _lock(number: int) -> bool:
    """Lock an open file for this process.

    Return False if another process holds the lock.

    On a file system without locks, every lock succeeds.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (
            errno.EACCES,
            errno.EAGAIN,
            errno.EWOULDBLOCK,
            errno.EDEADLK,
        )

    return True


# -- files named by the user


def is_ours(path: StrPath, begins: Beginnings = ()) -> bool:
    """Return whether a file counts as written by this program.

    A file counts if it is empty, contains `MARK`, or starts with one of the given
    bytes.

    Pass only regular files, or links to them, which are followed.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    with open(path, "rb") as file:
        head = file.read(MARK_WITHIN_BYTES)
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - MARK_WITHIN_BYTES, 0))
        tail = file.read(MARK_WITHIN_BYTES)

    # PDF stores texts in UTF-16.
    marks = (MARK.encode(), MARK.encode("utf-16-be"))
    return (
        not head
        or any(mark in head or mark in tail for mark in marks)
        or head.startswith(begins)
    )


def check_replaceable(
    path: StrPath, *, force: bool = False, begins: Beginnings = ()
) -> None:
    """Check, before any work is done, that `replacing` may write a file.

    Raises
    ------
    KeptFileError
        A file exists that this program did not write, and `force` is False.
    OSError
        The file cannot be read.
    """
    mode = _mode(path, follow=True)
    if (
        mode is not None
        and stat.S_ISREG(mode)
        and not force
        and not is_ours(path, begins)
    ):
        raise KeptFileError(path)


@contextlib.contextmanager
def replacing(
    path: StrPath, *, force: bool = False, begins: Beginnings = ()
) -> Iterator[BinaryIO]:
    """Write a file named by the user (context manager).

    If the block fails, the old file is unchanged.

    The block receives a file object. A link is followed; a pipe or a device
    (``/dev/stdout``) is written to directly.

    Parameters
    ----------
    path : path-like
        Name of the file.
    force : bool
        Replace the file even if this program did not write it.
    begins : bytes or tuple of bytes
        First bytes of a file that counts as this program's, for formats without a place
        for `MARK`.

    Raises
    ------
    KeptFileError
        A file exists that this program did not write, or another program is writing it
        (BusyFileError); it stays unchanged.
    OSError
        The file cannot be written.
    """
    with Hold(path):
        yield from _replacing(path, force=force, begins=begins)


def _replacing(path: StrPath, *, force: bool, begins: Beginnings) -> Iterator[BinaryIO]:
    """Yield the file that replaces `path`; the caller holds it. See `replacing`."""
    check_replaceable(path, force=force, begins=begins)
    mode = _mode(path, follow=True)
    if mode is not None and not stat.S_ISREG(mode):
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        with open(path, "wb") as file:
            yield file
        return

    with _fresh(
        Path(path).resolve(), _usual_mode() if mode is None else stat.S_IMODE(mode)
    ) as file:
        yield file


def write_text(
    path: StrPath, text: str, *, force: bool = False, begins: Beginnings = ()
) -> None:
    """Write text (UTF-8) to a file named by the user; see `replacing`.

    Parameters
    ----------
    path : path-like
        Name of the file.
    text : str
        Its contents.
    force : bool
        Replace the file even if this program did not write it.

    Raises
    ------
    KeptFileError
        A file exists that this program did not write; it stays unchanged.
    OSError
        The file cannot be written.
    """
    with replacing(path, force=force, begins=begins) as file:
        file.write(text.encode())


def _usual_mode() -> int:
    """Return the permissions of a new file, according to the umask."""
    # The umask can be read only by setting it.
    mask = os.umask(0o022)
    os.umask(mask)
    return 0o666 & ~mask


@contextlib.contextmanager
def _fresh(target: Path, mode: int) -> Iterator[BinaryIO]:
    """Yield a temporary file that replaces `target` if the block succeeds."""
    try:
        number, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name[:64]}-", suffix=".new"
        )
    except OSError as error:
        raise OSError(
            error.errno,
            error.strerror,
            str(target),
            # The user knows the target's name, not the temporary one.
        ) from None

    try:
        with open(number, "wb") as file:
            if hasattr(os, "fchmod"):
                # mkstemp creates private files; the new file must get the permissions
                # of the old one.
                os.fchmod(number, mode)
            yield file

        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


# -- the program's own files


def open_own(path: StrPath, *, append: bool = False, mode: int = 0o666) -> BinaryIO:
    """Open one of the program's own files for writing.

    Create it if it does not exist.

    Files in ``/dev``, such as ``/dev/stdout``, are also allowed.

    Parameters
    ----------
    path : path-like
        Name of the file.
    append : bool
        Append, instead of truncating the file.
    mode : int
        Permissions of a new file.

    Raises
    ------
    OSError
        The file cannot be opened, or is a link, a folder, a pipe or a device.
    """
    if is_device(path):
        return open(path, "wb")
    number = _open_regular(
        path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0), mode
    )
    if not append:
        os.ftruncate(number, 0)
    return open(number, "ab" if append else "wb")


def is_device(path: StrPath) -> bool:
    """Return whether a path is in ``/dev``, such as ``/dev/stdout``.

    Such a file is written to, but never replaced, renamed or deleted.
    """
    return os.name == "posix" and os.path.dirname(os.path.abspath(path)) == "/dev"


def read_own(path: StrPath, limit: int) -> bytes:
    """Read one of the program's own files.

    Parameters
    ----------
    path : path-like
        Name of the file.
    limit : int
        Maximum size, bytes.

    Raises
    ------
    OSError
        The file cannot be read, is not a regular file (for example, a link), or is
        longer than `limit` bytes.
    """
    with open(_open_regular(path, os.O_RDONLY), "rb") as file:
        # One byte more than allowed shows that the file is too long, without reading
        # all of it.
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(
            errno.EFBIG, f"expected at most {limit} bytes, found more", str(path)
        )
    return data


def _open_regular(path: StrPath, flags: int, mode: int = 0o666) -> int:
    """Open a file, and return its descriptor; never open a link, a pipe or a device.

    Parameters
    ----------
    path : path-like
        Name of the file.
    flags : int
        Flags of `os.open`.
    mode : int
        Permissions of a new file.

    Raises
    ------
    OSError
        The file cannot be opened, or is not a regular file.
    """
    try:
        number = os.open(path, flags | _NO_LINK | _NO_WAIT, mode)
    except OSError as error:
        # O_NOFOLLOW reports a link as ELOOP, a text that users would not understand.
        found = _mode(path, follow=False)
        if found is not None and not stat.S_ISREG(found):
            raise OSError(
                error.errno, f"expected a regular file, found {_kind(found)}", str(path)
            ) from None
        raise

    # The open file is checked, not the path, which another user may have changed
    # meanwhile.
    found = os.fstat(number).st_mode
    if not stat.S_ISREG(found):
        os.close(number)
        raise OSError(
            errno.EINVAL, f"expected a regular file, found {_kind(found)}", str(path)
        )

    return number


def replace_own(path: StrPath, data: bytes, *, mode: int = PRIVATE) -> None:
    """Write one of the program's own files atomically.

    A link in its place is neither followed nor replaced.

    Parameters
    ----------
    path : path-like
        Name of the file.
    data : bytes
        New contents of the whole file.
    mode : int
        Permissions of the file; by default only its owner may read it.

    Raises
    ------
    OSError
        The file cannot be written, or is not a regular file.
    """
    with _replacing_own(path, mode) as file:
        file.write(data)


@contextlib.contextmanager
def _replacing_own(path: StrPath, mode: int) -> Iterator[BinaryIO]:
    found = _mode(path, follow=False)
    if found is not None and not stat.S_ISREG(found):
        raise OSError(
            errno.EINVAL, f"expected a regular file, found {_kind(found)}", str(path)
        )
    with _fresh(Path(os.path.abspath(path)), mode) as file:
        yield file


def is_replaceable_own(path: StrPath) -> bool:
    """Return whether a path holds a regular file or nothing; a link does not count."""
    found = _mode(path, follow=False)
    return found is None or stat.S_ISREG(found)


def copy_own(source: StrPath, path: StrPath) -> None:
    """Copy one of the program's own files with its permissions; see `replace_own`.

    Raises
    ------
    OSError
        The file cannot be read, the copy cannot be written, or one of them is not a
        regular file.
    """
    number = _open_regular(source, os.O_RDONLY)
    with (
        open(number, "rb") as old,
        _replacing_own(path, stat.S_IMODE(os.fstat(number).st_mode)) as new,
    ):
        shutil.copyfileobj(old, new)


def remove_own(path: StrPath) -> None:
    """Delete one of the program's own files if it exists.

    Raises
    ------
    OSError
        The file cannot be deleted, or is not a regular file.
    """
    found = _mode(path, follow=False)
    if found is None:
        return
    if not stat.S_ISREG(found):
        raise OSError(
            errno.EINVAL, f"expected a regular file, found {_kind(found)}", str(path)
        )
    os.unlink(path)


__all__ = [
    "MARK",
    "PRIVATE",
    "Beginnings",
    "Hold",
    "check_replaceable",
    "copy_own",
    "is_device",
    "is_ours",
    "is_replaceable_own",
    "open_own",
    "read_own",
    "remove_own",
    "replace_own",
    "replacing",
    "write_text",
]
