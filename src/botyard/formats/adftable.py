"""Mapping of an AMBF description file that remembers which keys were read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from botyard.errors import FormatError
from botyard.formats.jsonfile import brief

_APPEARANCE: Final = frozenset(
    {
        "mesh",
        "color",
        "rgba",
        "components",
        "visible",
        "size",
        "high",
        "low",
        "resolution",
        "path",
        "scale",
        "collision",
        "margin",
        "type",
        "shaders",
        "texture",
        "normal",
        "map",
        "cleanup",
        "ambf",
        "version",
        "comment",
        "material",
        "constant",
        "linear",
        "quadratic",
        "attenuation",
        "plugins",
        "monitor",
        "publish",
        "image",
        "depth",
        "preprocess",
        "frame_limit",
        "mouse",
        "control",
        "multipass",
    }
)
"""Words in keys that only describe appearance; such keys are ignored without a warning."""


def _is_appearance(key: str) -> bool:
    return all(word in _APPEARANCE for word in key.split())


class LeftOut(Exception):
    """An object of the file is left out; the text of the exception is the reason."""


class Table:
    """Mapping from an AMBF description file; it remembers which of its keys were read."""

    def __init__(
        self, fail: Callable[[str, str], FormatError], data: Any, where: str
    ) -> None:
        if not isinstance(data, dict):
            raise fail(where, f"expected keys and values, found {brief(data)}")
        self._fail = fail
        # Keys of YAML may be numbers.
        self._data = {str(k): v for k, v in data.items()}
        self.where = where
        self._seen: set[str] = set()

    def __contains__(self, key: str) -> bool:
        # A key without a value counts as absent.
        return self._data.get(key) is not None

    def fail(self, key: str, reason: str) -> FormatError:
        """Return an error about a key of the mapping; the caller raises it.

        Parameters
        ----------
        key : str
            Key; empty: the mapping itself.
        reason : str
            Expected and found value.
        """
        return self._fail(f"{self.where}.{key}" if key else self.where, reason)

    def get(self, key: str) -> Any:
        """Return the value of a key, which counts as read."""
        self._seen.add(key)
        return self._data.get(key)

    def number(
        self, key: str, default: float, low: float = -1e9, high: float = 1e9
    ) -> float:
        """Return a number of the mapping, which counts as read.

        Parameters
        ----------
        key : str
            Key of the number. A text that holds a number is also accepted.
        default : float
            Result if the key is absent or has no value.
        low, high : float
            Limits, inclusive.

        Raises
        ------
        FormatError
            The value is not a number, or out of range; the error names the line.
        """
        value = self.get(key)
        if value is None:
            return default
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise self.fail(key, f"expected a number, found {brief(value)}") from None

        if not low <= number <= high:
            raise self.fail(
                key, f"expected a number from {low:g} to {high:g}, found {number:g}"
            )
        return number

    def size(self, key: str) -> float:
        """Return a required length, m.

        Raises
        ------
        FormatError
            The key is absent, or its value is not from 10⁻⁴ to 10⁴ m.
        """
        if key not in self:
            raise self.fail("", f"expected {key}, a length in m, found none")
        return self.number(key, 0.0, 1e-4, 1e4)

    def flag(self, key: str, default: bool | None = None) -> bool | None:
        """Return a truth value of the mapping, which counts as read.

        Parameters
        ----------
        key : str
            Key of the value; 0 and 1 mean false and true.
        default : bool or None
            Result if the key is absent or has no value.

        Raises
        ------
        FormatError
            The value is neither a truth value nor a whole number.
        """
        value = self.get(key)
        if value is None:
            return default
        # Many files write 0 and 1 for false and true.
        if isinstance(value, bool | int):
            return bool(value)
        raise self.fail(key, f"expected true or false, found {brief(value)}")

    def text(self, key: str, default: str = "") -> str:
        """Return a text of the mapping, which counts as read."""
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, dict | list):
            raise self.fail(key, f"expected a text, found {brief(value)}")
        return str(value)

    def table(self, key: str) -> Table | None:
        """Return the nested mapping of a key; None if the key is absent."""
        value = self.get(key)
        return (
            None if value is None else Table(self._fail, value, f"{self.where}.{key}")
        )

    def vector(
        self, key: str, default: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ) -> tuple[float, float, float]:
        """Return the components x, y and z of a nested mapping.

        Parameters
        ----------
        key : str
            Key of the nested mapping.
        default : (float, float, float)
            Components that are absent have these values.
        """
        part = self.table(key)
        if part is None:
            return default
        x, y, z = (part.number(k, d) for k, d in zip("xyz", default, strict=True))
        return x, y, z

    def rotation(self, key: str) -> tuple[float, float, float]:
        """Return roll, pitch and yaw of a nested mapping, rad; 0 for an absent angle."""
        part = self.table(key)
        if part is None:
            return 0.0, 0.0, 0.0
        return part.number("r", 0.0), part.number("p", 0.0), part.number("y", 0.0)

    def rows(self, key: str) -> list[Table]:
        """Return the mappings of a list; empty if the key is absent.

        Raises
        ------
        FormatError
            The value is not a list, or an element is not a mapping.
        """
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fail(key, f"expected a list, found {brief(value)}")
        return [
            Table(self._fail, v, f"{self.where}.{key}[{i}]")
            for i, v in enumerate(value)
        ]

    def unread(self) -> list[str]:
        """Return the keys that were not read, except keys of appearance."""
        return [k for k in self._data if k not in self._seen and not _is_appearance(k)]


__all__ = ["LeftOut", "Table"]


__all__ = ["LeftOut", "Table"]
