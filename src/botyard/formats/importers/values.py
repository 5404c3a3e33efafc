"""Values of YAML and XML files with their position in the file, for messages and notes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from botyard.errors import ModelError, WorldFileError
from botyard.formats.base import Source
from botyard.formats.budget import Meter
from botyard.formats.yamlfile import YamlFile
from botyard.geometry import Pose
from botyard.names import shown
from botyard.units import wrap_angle

MAX_NUMBER: Final = 1e9
"""Largest absolute value of a number, in the unit of the file.

Products of such numbers stay finite. The extent of a world has a smaller limit.
"""


_TOP = re.compile(rb"^['\"]?(\w+)['\"]?[ \t]*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Value:
    """Value in a file, with its position there.

    Attributes
    ----------
    data : value
        Plain data: a mapping, a list, a text, a number, a bool or None. Texts that
        form numbers count as numbers, because XML has nothing else.
    where : str
        Path of the value in the file, for example ``robot[0].pose``.
    path : str
        File.
    find_line : callable
        Returns the line, from 1.
    """

    data: Any
    where: str
    path: str
    find_line: Callable[[], int]

    @property
    def line(self) -> int:
        """Line of the value in the file, from 1."""
        return self.find_line()

    def error(self, reason: str) -> WorldFileError:
        """Return an error about this value; the caller raises it."""
        where = f"{self.where}: " if self.where else ""
        return WorldFileError(f"{where}{reason}", self.path, self.line)

    def fail(self, expected: str) -> WorldFileError:
        """Return an error with the expected and the found value; the caller raises it."""
        found = _in_words(self.data)
        if not self.where and isinstance(self.data, str | list):
            # A world may name any file, and the text of another kind of file is private.
            kind = "text" if isinstance(self.data, str) else "list"
            found = f"a plain {kind} as the whole file"
        return self.error(f"expected {expected}, found {found}")

    def number(
        self, low: float = -MAX_NUMBER, high: float = MAX_NUMBER, *, above: bool = False
    ) -> float:
        """Return the value as a number.

        Parameters
        ----------
        low, high : float
            Bounds.
        above : bool
            Whether the number must exceed `low`.

        Raises
        ------
        WorldFileError
            The value is not a number within the bounds.
        """
        value = _number(self.data)
        if value is None or not low <= value <= high or (above and value == low):
            raise self.fail(_within(low, high, above, value))
        return value

    def whole(self, low: int, high: int) -> int:
        """Return the value as a whole number from `low` to `high`."""
        value = _number(self.data)
        if value is None or not low <= value <= high or value != int(value):
            raise self.fail(f"a whole number from {low} to {high}")
        return int(value)

    def numbers(
        self, least: int, most: int | None = None, *, bound: float = MAX_NUMBER
    ) -> tuple[float, ...]:
        """Return the value as a list of numbers.

        Parameters
        ----------
        least, most : int
            Fewest and most numbers; without `most`, exactly `least`.
        bound : float
            Largest absolute value of each number.
        """
        data = self.data
        if isinstance(data, str):
            data = data.replace(",", " ").split()
        found = [_number(v) for v in data] if isinstance(data, list) else []
        most = least if most is None else most
        good = [v for v in found if v is not None and abs(v) <= bound]
        if not least <= len(found) <= most or len(good) != len(found):
            count = f"{least}" if most == least else f"{least} to {most}"
            is_far = least <= len(found) <= most and None not in found
            raise self.fail(f"{count} numbers" + f" within ±{bound:g}" * is_far)
        return tuple(good)

    def pose(self) -> Pose:
        """Return the value as a pose: x, y in m and, if there is a third number, the heading in
        rad.

        Further numbers have no effect.
        """
        x, y, th = (*self.numbers(2, 100), 0.0)[:3]
        return Pose(x, y, wrap_angle(th))

    def point(self) -> tuple[float, float]:
        """Return the value as two coordinates; further numbers have no effect."""
        x, y = self.numbers(2, 100)[:2]
        return x, y

    def text(self, *known: str) -> str:
        """Return the value as a text; it must be one of `known` if there are any."""
        if not isinstance(self.data, str) or (known and self.data not in known):
            raise self.fail(" or ".join(f'"{k}"' for k in known) or "a text")
        return self.data

    def flag(self) -> bool:
        """Return the value as a bool: a bool, a number, or ``true`` as a text."""
        if isinstance(self.data, str):
            word = self.data.strip().lower()
            if word in ("true", "1", "yes", "on"):
                return True
            if word in ("false", "0", "no", "off"):
                return False
        elif isinstance(self.data, bool | int | float):
            return bool(self.data)

        raise self.fail("true or false")

    def _child(self, data: Any, step: str) -> Value:
        raise NotImplementedError

    def entry(self, index: int) -> Value:
        """Return the entry of a list with an index."""
        return self._child(self.data[index], f"[{index}]")

    def entries(self) -> list[Value]:
        """Return the entries of a list; a value that is no list is its own single entry."""
        if self.data is None:
            return []
        if not isinstance(self.data, list):
            return [self]
        return [self._child(item, f"[{i}]") for i, item in enumerate(self.data)]

    def table(self) -> dict[str, Value]:
        """Return the entries of a mapping by key; empty for an empty value."""
        if self.data is None:
            return {}
        if not isinstance(self.data, dict):
            raise self.fail("a mapping of keys and values")
        return {
            str(key): self._child(item, f".{key}") for key, item in self.data.items()
        }


def _number(data: object) -> float | None:
    """Return a value as a number, which may be infinite; None if it is not a number."""
    if isinstance(data, bool):
        return None
    if isinstance(data, int | float | str):
        try:
            value = float(data)
        except (ValueError, OverflowError):
            return None
        return None if math.isnan(value) else value
    return None


def _in_words(data: object) -> str:
    """Return text that describes a value in a message; only its type if it is nested."""
    if data is None or data == "":
        return "none"
    if isinstance(data, dict):
        return "a mapping"
    if isinstance(data, list):
        if any(isinstance(item, dict | list) for item in data):
            return f"a list of {len(data)} entries"
        return shown(data[:20])
    return shown(data)


def _within(low: float, high: float, above: bool, found: float | None) -> str:
    """Return the expected number in words; `found` is the number in the file, if it is one."""
    is_far = found is not None and abs(found) > MAX_NUMBER
    if abs(low) >= MAX_NUMBER and high >= MAX_NUMBER and not is_far:
        return "a number"
    if high >= MAX_NUMBER and not is_far:
        return f"a number {'greater than' if above else 'of at least'} {low:g}"
    if above:
        return f"a number greater than {low:g}, at most {high:g}"
    return f"a number from {low:g} to {high:g}"


@dataclass(frozen=True, slots=True)
class YamlValue(Value):
    """Value in a YAML file.

    Attributes
    ----------
    file : YamlFile
        File, which knows the lines.
    """

    file: YamlFile

    def _child(self, data: Any, step: str) -> Value:
        where = (self.where + step).removeprefix(".")
        file = self.file
        return YamlValue(
            data, where, self.path, lambda: file.line_of(f"$.{where}"), file
        )


def read_yaml(source: Source, meter: Meter) -> Value:
    """Return the contents of a YAML file as a `YamlValue`.

    Raises
    ------
    WorldFileError
        The file is not YAML, or is too large.
    """
    file = YamlFile(source.text, meter, WorldFileError, unique=False, infinite=True)
    return YamlValue(file.data, "", source.name, lambda: 1, file)


def top_keys(source: Source) -> frozenset[str]:
    """Return the keys at the start of lines of a YAML file, for sniffers.

    Only the first 64 KiB are searched.
    """
    found = _TOP.findall(source.data[:65536])
    return frozenset(key.decode() for key in found)


@contextmanager
def blamed_on(value: Value) -> Iterator[None]:
    """Convert a model's error in the block to an error about a value of the file."""
    try:
        yield
    except ModelError as error:
        raise value.error(str(error)) from None


__all__ = ["MAX_NUMBER", "Value", "YamlValue", "blamed_on", "read_yaml", "top_keys"]
