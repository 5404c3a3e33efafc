"""What descriptions declare of their fields, for those who read and write them as tables of a file (`botyard.model.filetables`)."""

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
    """A field of a description, as files have it.

    Attributes
    ----------
    unit : str
        Inside: ``m``, ``rad``, ``s``, …; empty: a plain number or a text. Files have degrees for radians. Units of several numbers in a row
        stand in their order, with blanks between.
    low, high : float
        Least and greatest value, in that unit: see `range_problem`.
    key : str
        What files call it; empty: as the field, with ``_deg`` behind angles. With a dot in it: a key of a table of its own.
    index : int or None
        It is this element of a list in the file.
    about : str
        One line for people.
    words : mapping of str to value
        Files have a word for each value.
    left_out : value
        What a table means that leaves it out; `...`: the default of the description.
    is_required : bool
        A table must have it, although the description has a default.
    is_brief : bool
        It is not written while it is the default.
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
        """What is declared of element `i` of a row of numbers: its unit."""
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
    """What is wrong with a number, or with one of several, in words; empty: nothing. NaN always is.

    Parameters
    ----------
    write : callable
        What the reader of the words has in place of a number, for example degrees.
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
    """What is wrong with the numbers of a description, each with its field."""
    for name, (_, one) in parameters_of(type(spec)).items():
        problem = range_problem(getattr(spec, name), one)
        if problem:
            yield f"{name}: {problem}"


__all__ = ["Parameter", "parameter", "parameters_of", "range_problem", "range_problems"]
