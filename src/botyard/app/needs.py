"""Which option, command or file needs which extra (`botyard.extras`).

The command line checks the extras before it compiles or runs anything.
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
"""Extra that each command parameter of ``run`` and ``traffic run`` needs, by parameter name.

Other commands call `require`.
"""


class Needs:
    """Collector of the extras (optional dependencies) that a command line needs.

    Attributes
    ----------
    wanted : dict
        Names of the options and files that need an extra, by name of the extra.
    """

    def __init__(self) -> None:
        self.wanted: dict[str, list[str]] = {}

    def add(self, extra: str, what: str) -> None:
        """Register that `what` needs `extra`.

        Parameters
        ----------
        extra : str
            Name of an extra in `botyard.extras`.
        what : str
            Option, command or file for the error; repetitions are dropped.
        """
        # A list with a check instead of a set: the error names options in the order in
        # which they were given.
        found = self.wanted.setdefault(extra, [])
        if what not in found:
            found.append(what)

    def add_options(self, values: Mapping[str, Any]) -> None:
        """Add the extras that the given options need.

        Parameters
        ----------
        values : mapping of str to object
            Values of all options by parameter; None or False: not given. 0 counts as
            given.
        """
        for name, extra in OF_OPTIONS.items():
            value = values.get(name)
            # A plain truth test would ignore 0, which is a valid value, for example of
            # a port.
            if value is not None and value is not False:
                self.add(extra, f"--{name.replace('_', '-')}")

    def add_file(self, name: str | Path | None) -> None:
        """Add the extra needed to read a map file.

        Parameters
        ----------
        name : str or Path, optional
            File of a map; its suffix decides. None adds nothing.
        """
        if name is None:
            return
        from botyard.formats.registry import formats_with

        # The suffix decides, not the content: a missing package is reported before the
        # file is opened.
        suffix = Path(name).suffix.lower()
        for one in formats_with(suffix):
            if suffix in one.extras:
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
    """Check that the extras for `what`, and for reading the files `also`, are installed.

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
