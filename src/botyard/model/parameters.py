"""Declarations of descriptions' fields (unit, range, key in files), used by `botyard.model.filetables` and for validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import MISSING, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Final, cast, get_type_hints

import msgspec

_ANGLES: Final = ("rad", "rad/s", "rad/s²")


class Parameter(msgspec.Struct, frozen=True):
    """Declaration of a field of a description.

    Attributes
    ----------
    unit : str
        Inside: ``m``, ``rad``, ``s``, …; empty: a plain number or a text. Files have degrees for radians. Units of several numbers in a row
        stand in their order, with blanks between.
    low, high : float
        Bounds, inclusive, in that unit: see `range_problem`.
    key : str
        Key in files; empty: the field's name, with ``_deg`` appended for angles. With a dot: a key of a sub-table.
    index : int or None
        Its index in a list of the file, if it is an element of one.
    about : str
        One line of description.
    words : mapping of str to value
        The words that files use for its values.
    left_out : value
        Value where a table lacks the key; `...`: the default of the description.
    is_required : bool
        A table must have it, although the description has a default.
    is_brief : bool
        It is not written while it has its default.
    """

    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    key: str = ""
    index: int | None = None
    about: str = ""
    words: Mapping[str, Any] | None = None
    left_out: Any = ...
    is_required: bool = False
    is_brief: bool = False

    @property
    def is_angle(self) -> bool:
        """Whether files have it in degrees."""
        return self.unit in _ANGLES

    def path_of(self, name: str) -> str:
        """Key of the field `name` in a file."""
        return self.key or (f"{name}_deg" if self.is_angle else name)

    def element(self, i: int) -> Parameter:
        """The declaration of element `i` of a row of numbers: its unit."""
        units = self.unit.split()
        return Parameter(units[i] if i < len(units) > 1 else self.unit)


def parameter(
    default: Any = MISSING, *, unit: str = "", low: float = -math.inf, high: float = math.inf, key: str = "", index: int | None = None,
    about: str = "", words: Mapping[str, Any] | None = None, left_out: Any = ..., is_required: bool = False, is_brief: bool = False,
) -> Any:  # fmt: skip
    """Declare a parameter: a field of a description; see `Parameter`. Without `default` a file must give it."""
    declared = Parameter(unit, low, high, key, index, about, words, left_out, is_required, is_brief)
    return field(default=default, metadata={"parameter": declared})


def parameters_of(kind: type[Any]) -> Mapping[str, tuple[Any, Parameter]]:
    """Types and declarations of the parameters of a description, by the names of its fields."""
    return _parameters(cast(Hashable, kind))


@cache
def _parameters(kind: Any) -> Mapping[str, tuple[Any, Parameter]]:
    hints = get_type_hints(kind)
    return MappingProxyType(
        {f.name: (hints[f.name], f.metadata.get("parameter", Parameter())) for f in fields(kind) if f.init}
    )


def range_problem(
    value: Any, one: Parameter, write: Callable[[Any], Any] = lambda v: v, unit: str | None = None
) -> str:
    """A message about a number, or one of several, that is out of range; empty: all are in range. NaN never is.

    Parameters
    ----------
    write : callable
        Converts a number for the message, for example to degrees.
    unit : str, optional
        And its unit; default: that of the parameter.
    """
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, (int, float)) and not (
            one.low <= number <= one.high and (math.isinf(one.high) or math.isfinite(number))
        ):
            behind = f" {one.unit if unit is None else unit}".rstrip()
            limits = f"{write(one.low):g} … {write(one.high):g}{behind}"
            return (
                f"expected {'a number' if math.isinf(one.low - one.high) else limits}, found {write(number):g}{behind}"
            )
    return ""


def range_problems(spec: Any) -> Iterator[str]:
    """Messages about all numbers of a description that are out of range, each with its field."""
    for name, (_, one) in parameters_of(type(spec)).items():
        problem = range_problem(getattr(spec, name), one)
        if problem:
            yield f"{name}: {problem}"


__all__ = ["Parameter", "parameter", "parameters_of", "range_problem", "range_problems"]
