"""Kinds of option values: parsing of text and files, validation of Python values.

Files and the command line use the units of the option (ms, mm, degrees): `Kind.read`.
Python uses SI units: `Kind.of`.
"""

from __future__ import annotations

import contextlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from botyard.api import arguments
from botyard.errors import ArgumentError, CommandLineError
from botyard.formats.budget import OPTION, Budget
from botyard.geometry import Pose
from botyard.names import is_host, shown
from botyard.units import from_deg, from_mm


class RobotChoice(NamedTuple):
    """A requested robot: model, and name if one was given."""

    model: str
    name: str | None


def parse_robot(text: str) -> RobotChoice:
    """Parse ``MODEL`` or ``MODEL:NAME``, split at the last colon.

    Raises
    ------
    ValueError
        The model is missing.
    """
    model, colon, name = text.rpartition(":")
    if (
        not colon or len(model) <= 1 or "/" in name or "\\" in name
        # There is no colon, or it belongs to a drive letter or a path.
    ):
        model, name = text, ""

    if not model:
        raise ValueError(f'expected MODEL or MODEL:NAME, found "{text}"')
    return RobotChoice(model, name or None)


def parse_start(text: str) -> Pose | str:
    """Parse ``X,Y,TH`` in mm and degrees, ``outside``, or ``random``.

    Raises
    ------
    ValueError
        The text is none of these.
    """
    word = text.strip().lower()
    if word in ("outside", "random"):
        return word
    try:
        # A wrong count of numbers raises ValueError too, when it is unpacked, so one
        # message covers both.
        x, y, th = (float(w) for w in word.split(","))
    except ValueError:
        raise ValueError(
            f'expected x,y,th (mm, mm, degrees), "outside" or "random", found "{text}"'
        ) from None

    # float() accepts "nan" and "inf", and neither is a place in the world.
    if not all(map(math.isfinite, (x, y, th))):
        raise ValueError(f'expected finite numbers, found "{text}"')
    return Pose(from_mm(x), from_mm(y), from_deg(th))


class Kind(ABC):
    """Kind of values of an option."""

    python: str = ""
    """Type in Python, for the reference."""

    def is_one(self, value: object) -> bool:
        """Return whether a value stands for a list with this one element.

        For options that may be given several times.
        """
        return False

    @abstractmethod
    def of(self, value: object, what: str) -> Any:
        """Convert a Python value in SI units to the option's value.

        `what` is the keyword.

        Raises
        ------
        ArgumentError
            The value is not valid.
        """

    def read(self, value: object) -> Any:
        """Convert a value from a file, or text, to the option's value.

        Raises
        ------
        ValueError
            The value is not valid; the message names the expected and the found value.
        """
        return _without_name(self.of, value)


def _without_name(of: Callable[[object, str], Any], value: object) -> Any:
    """Convert a value.

    Drop the name from an error, because readers of files add their own.
    """
    try:
        return of(value, "value")
    except ArgumentError as error:
        raise ValueError(str(error).removeprefix("value: ")) from None


class Flag(Kind):
    """A boolean."""

    python = "bool"

    def of(self, value: object, what: str) -> bool:
        """Return True or False."""
        return arguments.flag(value, what)

    def read(self, value: object) -> bool:
        """Return true or false from YAML."""
        if isinstance(value, bool):
            return value
        raise ValueError(f"expected true or false, found {value!r}")


class Text(Kind):
    """Any text: a name, an address, a file."""

    python = "str"

    def of(self, value: object, what: str) -> str:
        """Return a str or the name of a file."""
        if isinstance(value, Path):
            return str(value)
        if isinstance(value, str):
            return value
        raise ArgumentError(f"{what}: expected a str, found {arguments.found(value)}")

    def read(self, value: object) -> str:
        """Return text; a number that serves as a name is accepted."""
        # YAML reads `log_file: 2024` as a number, but the user means text.
        if isinstance(value, (str, int, float)):
            return str(value)
        return super().read(value)  # type: ignore[no-any-return]


class Host(Text):
    """A host name or an address; an empty one means all addresses."""

    def of(self, value: object, what: str) -> str:
        """Return the text if it can be a host name."""
        text = super().of(value, what)
        if text and not is_host(text):
            raise ArgumentError(
                f"{what}: expected a host name or an address, found {shown(text, 100)}"
            )
        return text

    def read(self, value: object) -> str:
        """Return the text if it can be a host name."""
        return _without_name(self.of, super().read(value))  # type: ignore[no-any-return]


class Whole(Kind):
    """A whole number.

    Parameters
    ----------
    low, high : int, optional
        Bounds, inclusive.
    unit : float
        Size of the option's unit in SI units; if it is not 1, Python values are numbers
        in
        SI units.
    """

    def __init__(
        self, low: int | None = None, high: int | None = None, *, unit: float = 1.0
    ) -> None:
        self.low, self.high, self.unit = low, high, unit
        self.python = "int" if unit == 1.0 else "float"

    def of(self, value: object, what: str) -> Any:
        """Return a whole number within bounds, or a number converted from SI units."""
        if self.unit == 1.0:
            return arguments.whole(value, what, low=self.low, high=self.high)
        # The bounds are in the unit of the command line, such as ms, and Python values
        # are in s.
        low = -math.inf if self.low is None else self.low * self.unit
        high = math.inf if self.high is None else self.high * self.unit
        return arguments.number(value, what, low=low, high=high) / self.unit

    def read(self, value: object) -> int:
        """Return a whole number in the option's unit."""
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = int(value)

        return _without_name(  # type: ignore[no-any-return]
            lambda v, what: arguments.whole(v, what, low=self.low, high=self.high),
            value,
        )


class Port(Whole):
    """A TCP port; in Python, 0 means any free one."""

    def __init__(self) -> None:
        # A command line that says port 0 would leave the user without the number that
        # clients need. Programs can ask `Running.ports`.
        super().__init__(1, 65535)

    def of(self, value: object, what: str) -> int:
        """Return a port or 0."""
        return arguments.whole(value, what, low=0, high=65535)


class Real(Kind):
    """A finite number within inclusive bounds; `above` excludes `low` itself."""

    python = "float"

    def __init__(
        self, low: float = -math.inf, high: float = math.inf, *, above: bool = False
    ) -> None:
        self.low, self.high, self.above = float(low), float(high), above

    def of(self, value: object, what: str) -> float:
        """Return the number."""
        return arguments.number(
            value, what, low=self.low, high=self.high, above=self.above
        )

    def read(self, value: object) -> float:
        """Return the number, also from text."""
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = float(value)

        return super().read(value)  # type: ignore[no-any-return]


class OneOf(Kind):
    """One of a set of words."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.python = "one of " + ", ".join(f'"{w}"' for w in words)

    def of(self, value: object, what: str) -> str:
        """Return the word."""
        return arguments.one_of(value, what, self.words)


class RobotText(Kind):
    """A requested robot."""

    python = '"MODEL" or "MODEL:NAME"'

    def of(self, value: object, what: str) -> RobotChoice:
        """Return a robot from text or from a `RobotChoice`."""
        if isinstance(value, RobotChoice):
            return value
        try:
            return parse_robot(Text().of(value, what))
        except ArgumentError:
            raise
        except ValueError as error:
            raise ArgumentError(f"{what}: {error}") from None

    def read(self, value: object) -> RobotChoice:
        """Return a robot from text."""
        return parse_robot(Text().read(value))


class StartText(Kind):
    """A start pose."""

    python = '(x, y, th) in m and rad, "outside" or "random"'

    def is_one(self, value: object) -> bool:
        """Return whether a value is a word or three numbers."""
        return isinstance(value, str) or (
            isinstance(value, Sequence)
            # A list of poses contains sequences or words; only a single pose contains
            # numbers.
            and any(isinstance(v, int | float) for v in value)
        )

    def of(self, value: object, what: str) -> Pose | str:
        """Return a pose or a word."""
        if isinstance(value, str):
            return arguments.one_of(value, what, ("outside", "random"))
        return arguments.pose(value, what)

    def read(self, value: object) -> Pose | str:
        """Return a pose from text as on the command line: mm, mm, degrees."""
        return parse_start(Text().read(value))


class OptionText(Kind):
    """An option of a controller."""

    python = '"NAME=VALUE"'

    def of(self, value: object, what: str) -> str:
        """Return the text if it has the form NAME=VALUE."""
        text = Text().of(value, what)
        if not text.partition("=")[0].strip().isidentifier() or "=" not in text:
            raise ArgumentError(
                f"{what}: expected NAME=VALUE, such as speed=0.4, found {arguments.found(text)}"
            )

        return text


def named_values(texts: Iterable[str]) -> dict[str, Any]:
    """Return the values of ``NAME=VALUE`` texts by name.

    Values are parsed as JSON (numbers, lists and so on); any other value stays text.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = json.loads(value)
        # Deeply nested brackets exhaust the JSON parser's stack: they stay text, like
        # any value that is not JSON.
        except (ValueError, RecursionError):
            found[name.strip()] = value

    return found


class LimitText(Kind):
    """A limit for reading files."""

    python = '"NAME=NUMBER"'

    def of(self, value: object, what: str) -> str:
        """Return the text if the limit exists."""
        text = Text().of(value, what)
        try:
            Budget().raised([text])
        except CommandLineError as error:
            raise ArgumentError(
                f"{what}: {str(error).removeprefix(f'{OPTION}: ')}"
            ) from None

        return text


def sequence_of(kind: Kind, value: object, what: str) -> tuple[Any, ...]:
    """Return several values of a kind.

    Raises
    ------
    ArgumentError
        `value` is not a sequence, or one element is not valid.
    """
    # A str is a sequence of its letters: robots="p3dx" would otherwise request robots
    # p, 3, d and x.
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentError(f"{what}: expected a list, found {arguments.found(value)}")
    return tuple(kind.of(one, f"{what}[{i}]") for i, one in enumerate(value))


__all__ = [
    "Flag",
    "Kind",
    "LimitText",
    "OneOf",
    "Port",
    "Real",
    "RobotChoice",
    "RobotText",
    "StartText",
    "Text",
    "Whole",
    "parse_robot",
    "parse_start",
    "sequence_of",
]
