"""Lookup of additions to botyard by installed packages, through entry points.

The same rules apply to all groups of entry points:

- Names are listed without importing a package.
- A package cannot reuse a name of botyard, and two packages with one name exclude each
  other.
- A package that fails does not affect others: `Group.load_all` leaves it out and logs a
  warning that names it. `Group.find` raises the group's error.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Generic, TypeVar

from botyard.errors import BotyardError
from botyard.names import shown
from botyard.processes.codeload import said_of

T = TypeVar("T")
MAX_TEXT: Final = 300
"""Longest text from a package that a message quotes, characters."""

log = logging.getLogger("botyard.api.plugins")


_warned: Final[set[str]] = set()
"""Texts of the warnings logged since the last scan, so that each is logged once."""


def _modified_ns(folder: str) -> int:
    try:
        # An empty entry of `sys.path` is the working folder.
        return os.stat(folder or ".").st_mtime_ns
    except (OSError, ValueError):
        return 0


@lru_cache(maxsize=32)
def _scan(
    group: str, _path: tuple[tuple[str, int], ...]
) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Look through the installed packages for entry points of a group.

    The result maps each name to its entry points. A name has more than one if several
    packages provide different objects under it.
    """
    # The installed packages have changed, so report each problem again.
    _warned.clear()
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=group):
        known = found.get(entry.name, ())
        # A package may be found twice on the path.
        if entry.value not in {e.value for e in known}:
            found[entry.name] = (*known, entry)

    return found


def _package_of(entry: EntryPoint) -> str:
    """Return text such as " of the package NAME" for an entry point; "" if it has no package."""
    name = entry.dist.name if entry.dist is not None else ""
    return f" of the package {shown(name)}" if name else ""


@dataclass(frozen=True, slots=True)
class Group(Generic[T]):
    """Group of entry points: one kind of addition that packages provide, such as devices.

    Attributes
    ----------
    name : str
        Name of the group in the metadata of packages, for example ``botyard.devices``.
    noun : str
        Noun for one entry of the group in messages.
    expected : str
        Description of the object that an entry point must provide, for messages.
    fits : callable
        Called with the name and the loaded object. Returns whether the object is as
        `expected`. It may raise any exception.
    error : type
        Type of the errors that `find` raises; its constructor accepts one text.
    own : callable
        Returns the names of botyard's own entries, which packages cannot reuse.
    """

    name: str
    noun: str
    expected: str
    fits: Callable[[str, Any], bool]
    error: Callable[[str], BotyardError]
    own: Callable[[], Collection[str]] = tuple

    def _entries(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        # A scan takes milliseconds: it is kept until a folder of `sys.path` changes.
        return _scan(
            self.name, tuple((folder, _modified_ns(folder)) for folder in sys.path)
        )

    def names(self) -> tuple[str, ...]:
        """Sorted names that packages add to the group. Nothing is imported."""
        # Sort the names, because the order of folders on the path differs between
        # machines.
        return tuple(sorted(self._entries().keys() - {*self.own()}))

    def __contains__(self, name: str) -> bool:
        return name in self._entries() and name not in self.own()

    def find(self, name: str) -> T | None:
        """Load the object with this name; return None if no package provides it.

        Parameters
        ----------
        name : str
            Name of the object.

        Raises
        ------
        BotyardError
            The error has the type `error`. The package cannot be loaded, or provides
            another kind of object; or two packages provide the name.
        """
        entries = self._entries().get(name, ())
        if not entries or name in self.own():
            return None
        # Do not choose one of them, because their order depends on the installation.
        if len(entries) > 1:
            values = ", ".join(sorted(f"{e.value}{_package_of(e)}" for e in entries))
            raise self.error(
                f'{self.noun} "{shown(name)}": expected one package that provides '
                f"it, found {values}"
            )

        return self.load(entries[0])

    def load(self, entry: EntryPoint) -> T:
        """Load the object of an entry point of botyard or of another package.

        Parameters
        ----------
        entry : EntryPoint
            Entry point of this group.

        Raises
        ------
        BotyardError
            The object cannot be imported, or is not as `expected`. The error has the type
            `error`.
        """
        name, package = shown(entry.name), _package_of(entry)
        try:
            loaded: T = entry.load()
            is_right = self.fits(entry.name, loaded)
        except (
            Exception,
            SystemExit,
        ) as error:  # importing a third-party module may raise anything
            text = shown(said_of(error), MAX_TEXT)
            raise self.error(
                f'{self.noun} "{name}"{package}: {entry.value} cannot be loaded: {text}'
            ) from error

        if not is_right:
            text = (
                f"expected {self.expected} in {entry.value}, found "
                f"{shown(repr(loaded), MAX_TEXT)}"
            )
            raise self.error(f'{self.noun} "{name}"{package}: {text}')

        return loaded

    def load_all(self) -> dict[str, T]:
        """Load all objects that packages provide.

        Returns
        -------
        dict of str to object
            Objects by name, sorted. An object that cannot be used is left out with a
            warning.
        """
        found = {}
        for name in sorted(self._entries()):
            if name in self.own():
                values = ", ".join(
                    f"{e.value}{_package_of(e)}" for e in self._entries()[name]
                )
                self.leave_out(
                    f'{self.noun} "{shown(name)}": expected a name that botyard itself '
                    f"does not use, found it in {values}"
                )
                continue

            try:
                one = self.find(name)
            except BotyardError as error:
                self.leave_out(str(error))
            else:
                if one is not None:
                    found[name] = one

        return found

    def leave_out(self, problem: str) -> None:
        """Log that an object of a package is left out; do not repeat equal texts.

        Parameters
        ----------
        problem : str
            Reason why the object is left out.
        """
        if problem not in _warned:
            _warned.add(problem)
            log.warning("%s; it is left out", problem)


__all__ = ["Group"]
