"""Which option, command or file needs which extra; checked before anything is compiled
or run. Extras: `botyard.extras`.
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
"""Extras by the names of parameters of commands (``run``, ``traffic run``); other
commands say what they need with `require`.
"""


class Needs:
    """Collects the extras that a command line needs.

    Attributes
    ----------
    wanted : dict
        For each extra, the options and files that need it.
    """

    def __init__(self) -> None:
        self.wanted: dict[str, list[str]] = {}

    def add(self, extra: str, what: str) -> None:
        """Note that `what` needs `extra`."""
        found = self.wanted.setdefault(extra, [])
        if what not in found:
            found.append(what)

    def add_options(self, values: Mapping[str, Any]) -> None:
        """Add the needs of given options; `values` are those of all parameters, None or
        False where not given.
        """
        for name, extra in OF_OPTIONS.items():
            value = values.get(name)
            if value is not None and value is not False:  # 0 is a port
                self.add(extra, f"--{name.replace('_', '-')}")

    def add_file(self, name: str | Path | None) -> None:
        """Add the needs of reading a map file."""
        if name is None:
            return
        from botyard.formats.registry import formats

        suffix = Path(name).suffix.lower()
        for one in formats():
            if suffix in one.suffixes and suffix in one.extras:
                self.add(one.extras[suffix], str(name))

    def check(self) -> None:
        """Check that all extras are installed; the error names all that are missing,
        and the command that installs them.

        Raises
        ------
        CommandLineError
            An extra is not installed.
        """
        absent = missing(self.wanted)
        if absent:
            said = list(
                dict.fromkeys(what for extra in absent for what in self.wanted[extra])
            )
            raise CommandLineError(lacking(said, *absent))


def require(*extras: str, what: str, also: Iterable[str | Path] = ()) -> None:
    """Check that `extras`, and those for reading the files `also`, are installed for
    `what`.

    Raises
    ------
    CommandLineError
        One is not installed.
    """
    needs = Needs()
    for extra in extras:
        needs.add(extra, what)
    for name in also:
        needs.add_file(name)
    needs.check()


__all__ = ["OF_OPTIONS", "Needs", "require"]
