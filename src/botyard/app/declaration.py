"""Declaration of an option of a run: its kind, section, spellings and keyword.

`botyard.app.options` lists all options. The names are AMRISim's in all spellings
(feature table, area CLI).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from botyard.app.kinds import (
    Flag,
    Kind,
    Text,
    sequence_of,
)
from botyard.formats.budget import WHAT

ERROR_MODES: Final = ("random_each_update", "random_init", "constant", "none")

MAX_READ_HELP: Final = (
    f"Change a limit for reading files: {', '.join(WHAT)}. An "
    "error names the limit that was exceeded. Repeatable."
)

WORLD, ROBOTS, TIME, PIONEER = "World", "Robots", "Time and chance", "Pioneer clients"
ROS, AMBF, PAGE, OPERATION = "ROS", "AMBF's objects", "The page", "Log and operation"
"""Titles of the sections of the help text."""

COMMAND_LINE: Final = "only on the command line"
LOGGING: Final = "a program sets up its own logging"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Declaration of an option.

    Attributes
    ----------
    name : str
        Field of `RunOptions`.
    section : str
        Section of the help text and the reference.
    flags : tuple of str
        Spellings on the command line; empty: the argument of the command.
    kind : Kind
        Kind of the values.
    default : object
        Default value.
    many : bool
        Whether the option may be repeated; its value is then a tuple.
    world : bool
        Whether a world file may set the option (`botyard.formats.worldoptions`). True
        for options that describe the world or its pace. Never true for an option that
        names a file, address, port or token, that opens or closes something, or that
        concerns the log or the page.
    keyword : str, optional
        Keyword of `botyard.serve`.
    negated : bool
        Whether the keyword is the opposite of the option: `page=True` means no
        ``--no-gui``.
    serve_default : object
        Default of the keyword.
    instead : str
        Alternative for programs if there is no keyword, or why they need none.
    metavar, help : str
        Placeholder and help text.
    about : str
        Description of the keyword in the reference, if the help text does not fit.
    bare : object
        Value if the option stands on the command line without a value.
    hidden : bool
        Whether the option is missing from the help text and configuration files.
    """

    name: str
    section: str
    flags: tuple[str, ...]
    kind: Kind
    default: Any
    many: bool
    world: bool
    keyword: str | None
    negated: bool
    serve_default: Any
    instead: str
    metavar: str | None
    help: str
    about: str
    bare: Any
    hidden: bool

    @property
    def long(self) -> str:
        """Long name, as in configuration files."""
        return next(
            (f[2:].partition("/")[0] for f in self.flags if f.startswith("--")),
            self.name,
        )

    def of(self, value: object) -> Any:
        """Convert a value of the keyword to the option's value.

        None stays None if it is the default.

        Raises
        ------
        ArgumentError
            The value is not valid.
        """
        what = self.keyword or self.name
        # None is valid only where it is the default. Elsewhere `kind` rejects it, with
        # an error that names the expected type.
        if value is None and self.default is None:
            return None
        if self.many and self.kind.is_one(value):
            return (self.kind.of(value, what),)
        if self.many:
            return sequence_of(self.kind, value, what)
        found = self.kind.of(value, what)
        # Only keywords of Python are positive, such as `page`: the command line keeps
        # AMRISim's negative spellings, such as --no-gui.
        return not found if self.negated else found


_UNSET: Final = object()
_TEXT: Final = Text()


def option(  # noqa: PLR0913 - a parameter for each column of the table of options
    section: str,
    *flags: str,
    world: bool,
    serve: bool | str,
    kind: Kind = _TEXT,
    default: Any = _UNSET,
    many: bool = False,
    negated: bool = False,
    serve_default: Any = _UNSET,
    instead: str = COMMAND_LINE,
    metavar: str | None = None,
    help: str = "",
    about: str = "",
    bare: Any = None,
    hidden: bool = False,
) -> Any:
    """Declare an option of `RunOptions`.

    The other parameters are attributes of `Option`. `world` and `serve` have no
    defaults, so that both are decided for each new option.

    Parameters
    ----------
    serve : bool or str
        Keyword of `botyard.serve`, True for the name of the field, or False.
    default : object
        Default value. Without it: () for an option that may be repeated, False for a
        flag, otherwise None.
    serve_default : object
        Default of the keyword, if it differs from `default`.

    Returns
    -------
    dataclasses.Field
        Field that carries the declaration in its metadata.
    """
    # A marker instead of None, because None is a valid default.
    if default is _UNSET:
        default = () if many else False if isinstance(kind, Flag) else None
    declared = {
        "section": section,
        "flags": flags,
        "kind": kind,
        "default": default,
        "many": many,
        "world": world,
        "serve": serve,
        "negated": negated,
        "serve_default": default if serve_default is _UNSET else serve_default,
        "instead": instead,
        "metavar": metavar,
        "help": help,
        "about": about,
        "bare": bare,
        "hidden": hidden,
    }
    return field(default=default, metadata={"option": declared})


__all__ = [
    "AMBF",
    "COMMAND_LINE",
    "ERROR_MODES",
    "LOGGING",
    "MAX_READ_HELP",
    "OPERATION",
    "PAGE",
    "PIONEER",
    "ROBOTS",
    "ROS",
    "TIME",
    "WORLD",
    "Option",
    "option",
]
