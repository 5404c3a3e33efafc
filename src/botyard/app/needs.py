"""Which option, command or file needs which extra (`botyard.extras`).

Checked before anything is compiled or run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from botyard.errors import CommandLineError
from botyard.extras import lacking, missing

OF_OPTIONS: Final[Mapping[str, str]] = {
    "mdns": "discovery",
    "zenoh": "zenoh",
    "zenoh_router": "zenoh",
    "gantt": "plots",
}
"""Extras by the names of command parameters (``run``, ``traffic run``).

Other commands call `require`.
"""


class Needs:
    """Collector of the extras that a command line needs.

    Attributes
    ----------
    wanted : dict
        Options and files that need each extra.
    """

    def __init__(self) -> None:
        self.wanted: dict[str, list[str]] = {}

    def add(self, extra: str, what: str) -> None:
        """Register that `what` needs `extra`."""
        # A list with a check instead of a set: the error names options in the order in
        # which they were given.
        found = self.wanted.setdefault(extra, [])
        if what not in found:
            found.append(what)

    def add_options(self, values: Mapping[str, Any]) -> None:
        """Add the extras that the given options need.

        `values` contains all parameters; None or False: not given.
        """
        for name, extra in OF_OPTIONS.items():
            value = values.get(name)
            # 0 is a valid value, such as a port.
            if value is not None and value is not False:
                self.add(extra, f"--{name.replace('_', '-')}")

    def add_file(self, name: str | Path | None) -> None:
        """Add the extra needed to read a map file."""
        if name is None:
            return
        from botyard.formats.registry import formats

        # The suffix decides, not the content: a missing package is reported before the
        # file is opened.
        suffix = Path(name).suffix.lower()
        for one in formats():
            if suffix in one.suffixes and suffix in one.extras:
                self.add(one.extras[suffix], str(name))

    def check(self) -> None:
        """Check that all extras are installed.

        Raises
        ------
        CommandLineError
            Extras are missing; the error lists all of them, and the command to install
            them.
        """
        absent = missing(self.wanted)
        if absent:
            said = list(
                dict.fromkeys(what for extra in absent for what in self.wanted[extra])
            )
            raise CommandLineError(lacking(said, *absent))


def require(*extras: str, what: str, also: Iterable[str | Path] = ()) -> None:
    """Check that `what` has its extras, and the extras needed to read the files `also`.

    Raises
    ------
    CommandLineError
        An extra is not installed.
    """
    needs = Needs()
    for extra in extras:
        needs.add(extra, what)
    for name in also:
        needs.add_file(name)
    needs.check()


__all__ = ["OF_OPTIONS", "Needs", "require"]
