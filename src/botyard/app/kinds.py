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
    """Robot that the command line requests.

    Attributes
    ----------
    model : str
        Name or file of the model.
    name : str or None
        Name of the robot; None: a unique one.
    """

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
        The text is none of these forms.
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
        """Return whether a keyword's value is a single element rather than a list of elements.

        The question arises for options that may be given several times.

        Parameters
        ----------
        value : object
            Value of the keyword.
        """
        return False

    @abstractmethod
    def of(self, value: object, what: str) -> Any:
        """Convert a Python value in SI units to the option's value.

        `what` is the name of the keyword, for the error.

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
    """Convert a value with the function `of`, and remove the value's name from the error text.

    Readers of files put their own name for the value in front of the text.
    """
    try:
        return of(value, "value")
    except ArgumentError as error:
        raise ValueError(str(error).removeprefix("value: ")) from None


class Flag(Kind):
    """Kind of options that are true or false."""

    python = "bool"

    def of(self, value: object, what: str) -> bool:
        """Return the keyword's value if it is True or False."""
        return arguments.flag(value, what)

    def read(self, value: object) -> bool:
        """Return a value from YAML if it is true or false."""
        if isinstance(value, bool):
            return value
        raise ValueError(f"expected true or false, found {value!r}")


class Text(Kind):
    """Kind of options whose value is any text: a name, an address, a file."""

    python = "str"

    def of(self, value: object, what: str) -> str:
        """Return the keyword's value as text: a str, or the name of a file."""
        if isinstance(value, Path):
            return str(value)
        if isinstance(value, str):
            return value
        raise ArgumentError(f"{what}: expected a str, found {arguments.found(value)}")

    def read(self, value: object) -> str:
        """Return text from a file; a number that serves as a name is accepted."""
        # YAML reads `log_file: 2024` as a number, but the user means text.
        if isinstance(value, (str, int, float)):
            return str(value)
        return super().read(value)  # type: ignore[no-any-return]


class Host(Text):
    """Kind of options whose value is a host name or an address; empty: all addresses."""

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
    """Kind of options whose value is a whole number.

    Parameters
    ----------
    low, high : int, optional
        Inclusive bounds, in the option's unit; None: no bound.
    unit : float
        Size of the option's unit in SI units; if it is not 1, Python values are numbers
        in SI units.
    """

    def __init__(
        self, low: int | None = None, high: int | None = None, *, unit: float = 1.0
    ) -> None:
        self.low, self.high, self.unit = low, high, unit
        self.python = "int" if unit == 1.0 else "float"

    def of(self, value: object, what: str) -> Any:
        """Return a whole number within bounds, or a number converted from SI units.

        Raises
        ------
        ArgumentError
            The value is not a number, or not within the bounds.
        """
        if self.unit == 1.0:
            return arguments.whole(value, what, low=self.low, high=self.high)
        # The bounds are in the unit of the command line, such as ms, and Python values
        # are in s.
        low = -math.inf if self.low is None else self.low * self.unit
        high = math.inf if self.high is None else self.high * self.unit
        return arguments.number(value, what, low=low, high=high) / self.unit

    def read(self, value: object) -> int:
        """Return a whole number in the option's unit.

        Raises
        ------
        ValueError
            The value is not a whole number, or not within the bounds.
        """
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = int(value)

        return _without_name(  # type: ignore[no-any-return]
            lambda v, what: arguments.whole(v, what, low=self.low, high=self.high),
            value,
        )


class Port(Whole):
    """Kind of options whose value is a TCP port; in Python, 0 means any free port."""

    def __init__(self) -> None:
        # A command line with port 0 would leave the user without the number that
        # clients need. Programs can ask `Running.ports`.
        super().__init__(1, 65535)

    def of(self, value: object, what: str) -> int:
        """Return a keyword's port number; 0 is accepted."""
        return arguments.whole(value, what, low=0, high=65535)


class Real(Kind):
    """Kind of options whose value is a finite number within inclusive bounds.

    Parameters
    ----------
    low, high : float
        Inclusive bounds, in the option's unit.
    above : bool
        Whether the number must be greater than `low`.
    """

    python = "float"

    def __init__(
        self, low: float = -math.inf, high: float = math.inf, *, above: bool = False
    ) -> None:
        self.low, self.high, self.above = float(low), float(high), above

    def of(self, value: object, what: str) -> float:
        """Return a keyword's value as a finite number within the bounds."""
        return arguments.number(
            value, what, low=self.low, high=self.high, above=self.above
        )

    def read(self, value: object) -> float:
        """Return a value from a file, number or text, as a finite number within the bounds."""
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = float(value)

        return super().read(value)  # type: ignore[no-any-return]


class OneOf(Kind):
    """Kind of options whose value is one of a set of words."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.python = "one of " + ", ".join(f'"{w}"' for w in words)

    def of(self, value: object, what: str) -> str:
        """Return a keyword's value if it is one of the allowed words."""
        return arguments.one_of(value, what, self.words)


class RobotText(Kind):
    """Kind of options whose value is a robot: a model, perhaps with a name."""

    python = '"MODEL" or "MODEL:NAME"'

    def of(self, value: object, what: str) -> RobotChoice:
        """Return the robot that a keyword's value requests: text or a `RobotChoice`."""
        if isinstance(value, RobotChoice):
            return value
        try:
            return parse_robot(Text().of(value, what))
        except ArgumentError:
            raise
        except ValueError as error:
            raise ArgumentError(f"{what}: {error}") from None

    def read(self, value: object) -> RobotChoice:
        """Return the robot that a text from a file requests."""
        return parse_robot(Text().read(value))


class StartText(Kind):
    """Kind of options whose value is a start pose."""

    python = '(x, y, th) in m and rad, "outside" or "random"'

    def is_one(self, value: object) -> bool:
        """Return whether a keyword's value is one start pose: a word or three numbers."""
        return isinstance(value, str) or (
            isinstance(value, Sequence)
            # A list of poses contains sequences or words; only a single pose contains
            # numbers.
            and any(isinstance(v, int | float) for v in value)
        )

    def of(self, value: object, what: str) -> Pose | str:
        """Return the start pose of a keyword's value: a pose or a word.

        Returns
        -------
        Pose or str
            Pose in m and rad, in the frame of the world; or ``outside`` or ``random``.
        """
        if isinstance(value, str):
            return arguments.one_of(value, what, ("outside", "random"))
        return arguments.pose(value, what)

    def read(self, value: object) -> Pose | str:
        """Return the start pose of a text from a file, in mm, mm, degrees.

        Returns
        -------
        Pose or str
            Pose in m and rad, in the frame of the world; or ``outside`` or ``random``.
        """
        return parse_start(Text().read(value))


class OptionText(Kind):
    """Kind of options whose value is an option of a controller, ``NAME=VALUE``."""

    python = '"NAME=VALUE"'

    def of(self, value: object, what: str) -> str:
        """Return the text if it has the form NAME=VALUE.

        Raises
        ------
        ArgumentError
            The text has no ``=``, or the part before it is not an identifier.
        """
        text = Text().of(value, what)
        if not text.partition("=")[0].strip().isidentifier() or "=" not in text:
            raise ArgumentError(
                f"{what}: expected NAME=VALUE, such as speed=0.4, found {arguments.found(text)}"
            )

        return text


def named_values(texts: Iterable[str]) -> dict[str, Any]:
    """Return the values of ``NAME=VALUE`` texts by name.

    Values are parsed as JSON (numbers, lists and so on); any other value remains a str.

    Parameters
    ----------
    texts : iterable of str
        Texts such as ``speed=0.4``, split at the first ``=``.

    Returns
    -------
    dict of str to object
        Values by name. If a name occurs twice, the last text counts.
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
    """Kind of options whose value is a limit for reading files, ``NAME=NUMBER``."""

    python = '"NAME=NUMBER"'

    def of(self, value: object, what: str) -> str:
        """Return the text if it names an existing limit and a valid value.

        Raises
        ------
        ArgumentError
            No such limit exists, or its value is not valid.
        """
        text = Text().of(value, what)
        try:
            Budget().raised([text])
        except CommandLineError as error:
            raise ArgumentError(
                f"{what}: {str(error).removeprefix(f'{OPTION}: ')}"
            ) from None

        return text


def sequence_of(kind: Kind, value: object, what: str) -> tuple[Any, ...]:
    """Convert each element of a sequence with `Kind.of`; return the results.

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
