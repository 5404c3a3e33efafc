"""Declarations of the fields of descriptions: unit, range and key in files.

`botyard.model.filetables` reads and writes files by them; descriptions validate their
values with them.
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
    """Declaration of a parameter, which is a field of a description.

    Attributes
    ----------
    unit : str
        Unit inside the program: ``m``, ``rad``, ``s``, …; empty: a plain number or a
        text. Files have degrees for radians. A field of several numbers lists their
        units in order, with blanks between.
    low, high : float
        Bounds, inclusive, in that unit: see `range_problem`.
    key : str
        Key in files; empty: the field's name, with ``_deg`` appended for angles. With a
        dot: a key of a sub-table.
    index : int or None
        Index in a list of the file, if the field is an element of one.
    about : str
        One line of description.
    words : mapping of str to value
        Words that files use for the values.
    left_out : value
        Value if a table lacks the key; `...`: the default of the description.
    is_required : bool
        Whether a table must have the key, although the description has a default.
    is_brief : bool
        Whether the key is not written while the field has its default.
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
        """Whether the parameter is an angle, which files have in degrees."""
        return self.unit in _ANGLES

    def path_of(self, name: str) -> str:
        """Return the key of a parameter in a file.

        Parameters
        ----------
        name : str
            Name of the field, which is the key unless the declaration has another one.

        Returns
        -------
        str
            Key, with a dot for a key of a sub-table. ``_deg`` marks angles, which files
            have in degrees.
        """
        return self.key or (f"{name}_deg" if self.is_angle else name)

    def element(self, i: int) -> Parameter:
        """Return the declaration of element `i` of a parameter that is a row of numbers."""
        # A single unit holds for all elements.
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
    """Declare a parameter as a field of a description; see `Parameter`.

    Parameters
    ----------
    default : object, optional
        Default of the field. Without it, a file must give the value.
    unit, low, high, key, index, about, words, left_out, is_required, is_brief
        Attributes of `Parameter`.

    Returns
    -------
    Field
        Field of a dataclass with the declaration in its metadata.
    """
    declared = Parameter(
        unit, low, high, key, index, about, words, left_out, is_required, is_brief
    )
    return field(default=default, metadata={"parameter": declared})


def parameters_of(kind: type[Any]) -> Mapping[str, tuple[Any, Parameter]]:
    """Return the types and declarations of a description's parameters, by field name."""
    return _parameters(cast(Hashable, kind))


@cache
def _parameters(kind: Any) -> Mapping[str, tuple[Any, Parameter]]:
    # Annotations are stored as texts. Resolving them is slow, so the result is cached.
    hints = get_type_hints(kind)
    return MappingProxyType(
        {
            f.name: (hints[f.name], f.metadata.get("parameter", Parameter()))
            for f in fields(kind)
            # The field `type` of devices is fixed, and therefore not a parameter.
            if f.init
        }
    )


def range_problem(
    value: Any,
    one: Parameter,
    write: Callable[[Any], Any] = lambda v: v,
    unit: str | None = None,
) -> str:
    """Return a message about a number that is out of range; empty: all are in range.

    NaN is never in range.

    Parameters
    ----------
    value : number or tuple of numbers
        Value of the parameter. Values of other types have no range.
    one : Parameter
        Declaration with the bounds.
    write : callable
        Converts a number for the message, for example to degrees.
    unit : str, optional
        Unit of the message; default: the unit of the parameter.
    """
    for number in value if isinstance(value, tuple) else (value,):
        # An infinite number is in range only if the parameter has no upper bound.
        if isinstance(number, (int, float)) and not (
            one.low <= number <= one.high
            and (math.isinf(one.high) or math.isfinite(number))
        ):
            behind = f" {one.unit if unit is None else unit}".rstrip()
            limits = f"{write(one.low):g} … {write(one.high):g}{behind}"
            expected = "a number" if math.isinf(one.low - one.high) else limits
            return f"expected {expected}, found {write(number):g}{behind}"

    return ""


def range_problems(spec: Any) -> Iterator[str]:
    """Yield a message, with the field's name, for each number that is out of range."""
    for name, (_, one) in parameters_of(type(spec)).items():
        problem = range_problem(getattr(spec, name), one)
        if problem:
            yield f"{name}: {problem}"


def check_types(spec: Any) -> None:
    """Check that all fields of a description are of their declared types.

    Numbers may also be NumPy's. Readers check the values of files; this function checks
    the values of programs. The contents of arrays and mappings are not checked.

    Raises
    ------
    ArgumentError
        Names the class, the field, the expected and the found type.
    """
    for name, fits in _checks(spec.__class__):
        value = getattr(spec, name)
        if not fits(value):
            what = f"{type(spec).__name__}: {name}"
            hint = parameters_of(type(spec))[name][0]
            raise ArgumentError(
                f"{what}: expected {_type_in_words(hint)}, found {arguments.found(value)}"
            )


Check = Callable[[Any], bool]
_PLAIN: Final[Mapping[Any, tuple[tuple[type, ...], str]]] = {
    float: ((float, Real), "number"),
    int: ((int, Integral), "whole number"),
    str: ((str,), "str"),
}


@cache
def _checks(kind: Any) -> tuple[tuple[str, Check], ...]:
    """Return the names of a class's fields, each with a test of the declared type."""
    return tuple(
        (name, check)
        for name, (hint, _) in _parameters(kind).items()
        if (check := _check(hint)) is not None
    )


def _check(hint: Any) -> Check | None:
    """Return a test for a declared type; None: all values are valid."""
    if hint in _PLAIN:
        # The exact type is by far the most frequent case, so it is tested first.
        kinds = _PLAIN[hint][0]
        return lambda value: (
            type(value) is hint
            or (isinstance(value, kinds) and not isinstance(value, bool))
        )

    if hint is bool:
        return arguments.is_bool
    origin, of = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        # A union with a member that accepts all values also accepts all values.
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

    # Arrays and mappings have parametrised types, whose contents are not checked.
    if origin is not None or not isinstance(hint, type):
        return None
    # Named tuples, such as poses, declare the types of their fields.
    if issubclass(hint, tuple) and hint is not tuple:
        named = [_check(one) or _anything for one in get_type_hints(hint).values()]
        return lambda value: isinstance(value, hint) and _all(named, value)

    return lambda value: isinstance(value, hint)


def _anything(value: Any) -> bool:
    return True


def _all(checks: Sequence[Check], values: Iterable[Any]) -> bool:
    return all(check(value) for check, value in zip(checks, values, strict=True))


def _type_in_words(hint: Any, count: str = "a") -> str:
    """Return a declared type as text for messages.

    `count` is the text before the noun: "a" gives the singular, other texts give the plural.
    """
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(
            "None" if one is NoneType else _type_in_words(one, count)
            for one in get_args(hint)
        )

    if get_origin(hint) is tuple:
        of = get_args(hint)
        several = _type_in_words(of[0], "" if of[1:] == (...,) else f"{len(of)} ")
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
