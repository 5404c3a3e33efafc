"""Declarations of descriptions' fields (unit, range, key in files), used by
`botyard.model.filetables` and for validation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, field, fields
from functools import cache
from numbers import Integral, Real
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from botyard.api import arguments
from botyard.errors import ArgumentError

_ANGLES: Final = ("rad", "rad/s", "rad/s²")


class Parameter(msgspec.Struct, frozen=True):
    """Declaration of a field of a description.

    Attributes
    ----------
    unit : str
        Inside: ``m``, ``rad``, ``s``, …; empty: a plain number or a text. Files have
        degrees for radians. Units of several numbers in a row stand in their order,
        with blanks between.
    low, high : float
        Bounds, inclusive, in that unit: see `range_problem`.
    key : str
        Key in files; empty: the field's name, with ``_deg`` appended for angles. With a
        dot: a key of a sub-table.
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
    default: Any = MISSING,
    *,
    unit: str = "",
    low: float = -math.inf,
    high: float = math.inf,
    key: str = "",
    index: int | None = None,
    about: str = "",
    words: Mapping[str, Any] | None = None,
    left_out: Any = ...,
    is_required: bool = False,
    is_brief: bool = False,
) -> Any:
    """Declare a parameter: a field of a description; see `Parameter`. Without `default`
    a file must give it.
    """
    declared = Parameter(
        unit, low, high, key, index, about, words, left_out, is_required, is_brief
    )
    return field(default=default, metadata={"parameter": declared})


def parameters_of(kind: type[Any]) -> Mapping[str, tuple[Any, Parameter]]:
    """Types and declarations of the parameters of a description, by the names of its
    fields.
    """
    return _parameters(cast(Hashable, kind))


@cache
def _parameters(kind: Any) -> Mapping[str, tuple[Any, Parameter]]:
    hints = get_type_hints(kind)
    return MappingProxyType(
        {
            f.name: (hints[f.name], f.metadata.get("parameter", Parameter()))
            for f in fields(kind)
            if f.init
        }
    )


def range_problem(
    value: Any,
    one: Parameter,
    write: Callable[[Any], Any] = lambda v: v,
    unit: str | None = None,
) -> str:
    """A message about a number, or one of several, that is out of range; empty: all are
    in range. NaN never is.

    Parameters
    ----------
    write : callable
        Converts a number for the message, for example to degrees.
    unit : str, optional
        And its unit; default: that of the parameter.
    """
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, (int, float)) and not (
            one.low <= number <= one.high
            and (math.isinf(one.high) or math.isfinite(number))
        ):
            behind = f" {one.unit if unit is None else unit}".rstrip()
            limits = f"{write(one.low):g} … {write(one.high):g}{behind}"
            return f"expected {'a number' if math.isinf(one.low - one.high) else limits}, found {write(number):g}{behind}"

    return ""


def range_problems(spec: Any) -> Iterator[str]:
    """Messages about all numbers of a description that are out of range, each with its
    field.
    """
    for name, (_, one) in parameters_of(type(spec)).items():
        problem = range_problem(getattr(spec, name), one)
        if problem:
            yield f"{name}: {problem}"


def check_types(spec: Any) -> None:
    """Refuse a description whose fields are not of the types that its class declares;
    numbers may also be those of NumPy.

    Files are checked by their readers; this is for programs. Of arrays and mappings
    nothing is checked.

    Raises
    ------
    ArgumentError
        Names the class, the field, what was expected and what was found.
    """
    for name, fits in _checks(spec.__class__):
        value = getattr(spec, name)
        if not fits(value):
            what = f"{type(spec).__name__}: {name}"
            hint = parameters_of(type(spec))[name][0]
            raise ArgumentError(
                f"{what}: expected {_described(hint)}, found {arguments.found(value)}"
            )


Check = Callable[[Any], bool]
_PLAIN: Final[Mapping[Any, tuple[tuple[type, ...], str]]] = {
    float: ((float, Real), "number"),
    int: ((int, Integral), "whole number"),
    str: ((str,), "str"),
}


@cache
def _checks(kind: Any) -> tuple[tuple[str, Check], ...]:
    """Names of a description's fields, and whether a value is of the type that each
    declares.
    """
    return tuple(
        (name, check)
        for name, (hint, _) in _parameters(kind).items()
        if (check := _check(hint)) is not None
    )


def _check(hint: Any) -> Check | None:
    """Whether a value is of a declared type; None: anything is."""
    if hint in _PLAIN:
        kinds = _PLAIN[hint][0]
        return lambda value: (
            type(value) is hint
            or (isinstance(value, kinds) and not isinstance(value, bool))
        )

    if hint is bool:
        return arguments.is_bool
    origin, of = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        some = [check for one in of if (check := _check(one)) is not None]
        return (
            None
            if len(some) < len(of)
            else lambda value: any(check(value) for check in some)
        )

    if origin is tuple:
        each = [_check(one) or _anything for one in of if one is not ...]
        if of[1:] == (...,):
            return lambda value: isinstance(value, tuple) and all(map(each[0], value))
        return lambda value: (
            isinstance(value, tuple) and len(value) == len(each) and _all(each, value)
        )

    if origin is not None or not isinstance(hint, type):
        return None
    if issubclass(hint, tuple) and hint is not tuple:  # a named one, such as a pose
        named = [_check(one) or _anything for one in get_type_hints(hint).values()]
        return lambda value: isinstance(value, hint) and _all(named, value)

    return lambda value: isinstance(value, hint)


def _anything(value: Any) -> bool:
    return True


def _all(checks: Sequence[Check], values: Iterable[Any]) -> bool:
    return all(check(value) for check, value in zip(checks, values, strict=True))


def _described(hint: Any, count: str = "a") -> str:
    """A declared type in words; `count` is "a", or what stands before the plural."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(
            "None" if one is NoneType else _described(one, count)
            for one in get_args(hint)
        )

    if get_origin(hint) is tuple:
        of = get_args(hint)
        several = _described(of[0], "" if of[1:] == (...,) else f"{len(of)} ")
        return (
            f"a tuple of {several}" if count == "a" else f"{count}tuples of {several}"
        )

    if hint is bool:
        return "True or False"
    name = _PLAIN[hint][1] if hint in _PLAIN else hint.__name__
    article = "an" if name[:1] in "AEIOU" else "a"
    return (
        f"{article} {name}"
        if count == "a"
        else f"{count}{name}{'s' if hint in (int, float) else ''}"
    )


__all__ = [
    "Parameter",
    "check_types",
    "parameter",
    "parameters_of",
    "range_problem",
    "range_problems",
]
