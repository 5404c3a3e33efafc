"""Shared library of compiled kernels that an installation contains.

The library is compiled when the package is built, for processors of a named kind.
"""

from __future__ import annotations

import ctypes
import functools
import json
import platform
import sys
from pathlib import Path
from typing import Any, Final

from botyard.native.packages import CONVENTION, Package, digest_of, mode

FOLDER: Final = Path(__file__).parent / "lib"
"""Folder of the library and its table of contents."""
TABLE: Final = "kernels.json"
"""File name of the library's table of contents: see `botyard.native.build`."""


def read_table(folder: Path) -> dict[str, Any] | None:
    """Return the table of contents of the library in a folder; None for no library.

    `botyard.native.build.build` writes the table.

    Parameters
    ----------
    folder : Path
        Folder of the library.

    Returns
    -------
    dict or None
        Platform, processor, file and hashes of the library, sources by package, and
        symbols of all entries by signature.

    Raises
    ------
    ValueError
        The file is not such a table.
    """
    try:
        table = json.loads((folder / TABLE).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, RecursionError) as error:
        raise ValueError(f"{TABLE} cannot be read: {error}") from None

    # The file may be of another version, or damaged: each key is checked before its
    # use.
    texts, tables = (
        ("platform", "cpu", "file", "library", "convention"),
        ("sources", "entries"),
    )

    if (
        not isinstance(table, dict)
        or any(not isinstance(table.get(name), str) for name in texts)
        or any(not isinstance(table.get(name), dict) for name in tables)
        or not isinstance(table.get("whole"), bool)
    ):
        raise ValueError(f"{TABLE} is not the table of contents of a library")

    return table


class Library:
    """Shared library of kernels, loaded if it is usable.

    Parameters
    ----------
    folder : Path
        Folder of the library.

    Attributes
    ----------
    code : CDLL or None
        The loaded library; None if it is not usable.
    why_not : str
        Reason why it is not usable; "" if it is.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._table: dict[str, Any] = {}
        self.code: ctypes.CDLL | None = None
        self._fits: dict[str, bool] = {}
        self.why_not = self._load(folder)

    @property
    def target(self) -> str:
        """Processor level that the library was built for, such as "x86-64-v3".

        "" means that the library is not usable.
        """
        return "" if self.why_not else str(self._table["cpu"])

    def _load(self, folder: Path) -> str:
        """Load the library if it fits this program and this platform.

        Parameters
        ----------
        folder : Path
            Folder of the library.

        Returns
        -------
        str
            Reason why the library is not usable; "" if it is.
        """
        try:
            table = read_table(folder)
        except ValueError as error:
            return f"compiled kernels are damaged: {error}"

        if table is None:
            return "this installation has no compiled kernels"
        self._table = table
        # The loader's own message would not name the platform.
        if self._table["platform"] != this_platform():
            return f"compiled kernels are for {self._table['platform']}, and this platform is {this_platform()}"

        try:
            # Code with another calling convention would read arguments as addresses.
            if self._table["convention"] != digest_of(CONVENTION):
                return "compiled kernels belong to another version"
            file = folder / self._table["file"]
            # The system's loader reads only the start of the file. A truncated library
            # would load, and end the process when it is called.
            if self._table["library"] != digest_of([file]):
                return (
                    f"compiled kernels are damaged: {file.name} is not the "
                    f"library that {TABLE} describes"
                )

            code = ctypes.CDLL(str(file))
        except OSError as error:
            return f"compiled kernels cannot be loaded: {error}"

        # An unsupported instruction would end the process with SIGILL.
        if not code.botyard_processor_fits():
            return f"compiled kernels need a processor of kind {self._table['cpu']}"
        self.code = code
        return ""

    def fits(self, package: Package) -> bool:
        """Return whether the library fits the current sources of a package.

        Parameters
        ----------
        package : Package
            Package of kernels. Its sources are read once, at the first call.
        """
        # The result is cached, because the digest reads all sources of the package.
        fits = self._fits.get(package.name)
        if fits is None:
            made_of = (
                self._table["sources"].get(package.name)
                if self.code is not None
                else ""
            )
            fits = self._fits[package.name] = made_of == package.digest()

        return fits

    @property
    def is_whole(self) -> bool:
        """Whether the library contains the kernels of all packages.

        ``make run`` builds only the kernels of a first run.
        """
        return bool(self._table.get("whole"))

    def holds(self, package: Package, name: str) -> bool:
        """Return whether the library contains an entry, compiled from the current sources.

        Parameters
        ----------
        package : Package
            Package of the entry.
        name : str
            Qualified name of the entry, with any argument types.
        """
        return self.fits(package) and any(
            text.partition("(")[0] == name for text in self._table["entries"]
        )

    def address(self, package: Package, signature: str) -> int | None:
        """Return the address of an entry in the loaded library.

        Parameters
        ----------
        package : Package
            Package of the entry.
        signature : str
            `Entry.signature`: name and argument types.

        Returns
        -------
        int or None
            Address; None if the entry is missing or was built from other sources.
        """
        symbol = self._table["entries"].get(signature) if self.fits(package) else None
        return (
            ctypes.cast(self.code[symbol], ctypes.c_void_p).value
            if self.code is not None and symbol
            else None
        )


@functools.cache
def library() -> Library:
    """Return the library of this installation, loaded at the first call."""
    return Library()


def is_shipped(package: Package, *, whole: bool = True) -> bool:
    """Return whether the kernels of a package are in the library, so that none must be compiled.

    Parameters
    ----------
    package : Package
        Package of kernels.
    whole : bool
        Whether all kernels must come from it; otherwise the kernels that a run needs at
        its start.

    Raises
    ------
    KernelsError
        ``BOTYARD_KERNELS`` has an unknown value.
    """
    return (
        mode() in ("auto", "native")
        and library().fits(package)
        and (library().is_whole or not whole)
    )


def this_platform() -> str:
    """Return operating system and processor of this interpreter, for example "linux-x86_64"."""
    # Windows and macOS have other names for the same processors.
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine(), platform.machine()
    )
    return f"{sys.platform}-{machine}"


__all__ = [
    "FOLDER",
    "TABLE",
    "Library",
    "is_shipped",
    "library",
    "read_table",
    "this_platform",
]
