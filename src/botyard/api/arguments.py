"""Validation of arguments of the public API: errors name the argument, what was
expected and what was found.

A leaf. A check costs a microsecond or two, so these are for constructors and set-up;
what is called in every step has faster checks.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botyard.errors import ArgumentError, UnknownNameError, did_you_mean
from botyard.geometry import Pose
from botyard.names import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    PoseLike = Sequence[float] | NDArray[Any]
    """What may be handed over for a pose: x, y, th as a `Pose`, a tuple, a list or an
    array.
    """


def _is_numpys(value: object, *names: str) -> bool:
    """Whether a value is an instance of one of these NumPy types. NumPy is not imported
    for it: without it there are no such values.
    """
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(
        value, tuple(getattr(numpy, name) for name in names)
    )


def is_bool(value: object) -> bool:
    return isinstance(value, bool) or _is_numpys(value, "bool_")


def found(value: object) -> str:
    """A short description of a wrong value, for messages: value and type; shape and
    dtype of arrays.
    """
    if _is_numpys(value, "ndarray"):
        return f"an array of shape {value.shape} and type {value.dtype}"  # type: ignore[attr-defined]
    return f"{shown(repr(value), 60)} ({type(value).__name__})"


def _range(low: float, high: float, above: bool) -> str:
    if math.isinf(low) and math.isinf(high):
        return "a finite number"
    if math.isinf(high):
        return f"a number {'greater than' if above else 'of at least'} {low:g}"
    return f"a number {'above' if above else 'from'} {low:g} {'up ' if above else ''}to {high:g}"


def number(
    value: object,
    what: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: bool = False,
    unit: str = "",
) -> float:
    """A finite real number within bounds.

    Parameters
    ----------
    value : object
        An int, a float or a NumPy scalar; bool is refused.
    what : str
        Name of the argument.
    low, high : float
        Bounds, inclusive.
    above : bool
        Exclude `low` itself.
    unit : str
        Unit, for the message.

    Raises
    ------
    ArgumentError
        `value` is not a finite number within the bounds.
    """
    if not (is_bool(value) or isinstance(value, (str, bytes))):
        try:
            x = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            x = math.nan

        if math.isfinite(x) and low <= x <= high and not (above and x == low):
            return x

    raise ArgumentError(
        f"{what}: expected {_range(low, high, above)}{unit and f' {unit}'}, found {found(value)}"
    )


def whole(
    value: object, what: str, *, low: int | None = None, high: int | None = None
) -> int:
    """A whole number within inclusive bounds: an int or a NumPy integer; bool is
    refused.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    if not is_bool(value):
        try:
            n = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            n = None

        if n is not None and (low is None or n >= low) and (high is None or n <= high):
            return n

    bounds = (
        ""
        if low is None
        else f" of at least {low}"
        if high is None
        else f" from {low} to {high}"
    )
    raise ArgumentError(
        f"{what}: expected a whole number{bounds}, found {found(value)}"
    )


MIN_SEED = -(2**63)
MAX_SEED = 2**64 - 1
"""Seeds have 64 bits, signed or unsigned: the random streams use no more, and scenario
files hold no more.
"""


def seed(value: object, what: str = "seed") -> int:
    """A seed of random draws: a whole number of 64 bits, signed or unsigned.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    return whole(value, what, low=MIN_SEED, high=MAX_SEED)


def flag(value: object, what: str) -> bool:
    """True or False.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    if is_bool(value):
        return bool(value)
    raise ArgumentError(f"{what}: expected True or False, found {found(value)}")


def one_of(value: object, what: str, known: Iterable[str]) -> str:
    """One of the words `known`.

    Raises
    ------
    ArgumentError
        It is something else; the nearest word is named.
    """
    words = tuple(known)
    if isinstance(value, str) and value in words:
        return value
    near = did_you_mean(value, words) if isinstance(value, str) else ""
    raise ArgumentError(
        f"{what}: expected one of {', '.join(words)}, found {found(value)}{near}"
    )


def instance(value: object, what: str, kind: type[Any], hint: str = "") -> Any:
    """`value`, if it is a `kind`.

    Raises
    ------
    ArgumentError
        It is something else; `hint` says what to do then.
    """
    if isinstance(value, kind):
        return value
    raise ArgumentError(
        f"{what}: expected a {kind.__name__}, found {found(value)}{hint and f'; {hint}'}"
    )


def function(value: object, what: str) -> Callable[..., Any]:
    """Something that can be called.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    if callable(value):
        return value
    raise ArgumentError(f"{what}: expected a function, found {found(value)}")


def path(value: object, what: str) -> str | Path:
    """The name of a file.

    Raises
    ------
    ArgumentError
        It is neither a str nor a Path, or empty, or holds a NUL.
    """
    if isinstance(value, (str, Path)) and str(value) and "\0" not in str(value):
        return value
    raise ArgumentError(
        f"{what}: expected the name of a file (str or Path), found {found(value)}"
    )


def pose(value: object, what: str = "pose") -> Pose:
    """A pose: three finite numbers x (m), y (m), th (rad); a Pose, a tuple, a list or
    an array.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    ordered = isinstance(value, (tuple, list)) or (
        _is_numpys(value, "ndarray") and value.ndim == 1  # type: ignore[attr-defined]
    )
    values = tuple(value) if ordered else ()  # type: ignore[arg-type]
    if len(values) != 3:
        raise ArgumentError(
            f"{what}: expected three numbers x (m), y (m), th (rad), found {found(value)}"
        )

    return Pose(*triple(values, f"{what}: x", f"{what}: y", f"{what}: th"))


def place(value: object, what: str) -> Pose:
    """Two finite numbers x, y (m), or three with th (rad), as a pose; a Pose, a tuple,
    a list or an array.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    ordered = isinstance(value, (tuple, list)) or (
        _is_numpys(value, "ndarray") and value.ndim == 1  # type: ignore[attr-defined]
    )
    values = tuple(value) if ordered else ()  # type: ignore[arg-type]
    if len(values) not in (2, 3):
        raise ArgumentError(
            f"{what}: expected two or three numbers x (m), y (m), th (rad), found {found(value)}"
        )

    return pose((*values, 0.0)[:3], what)


def triple(
    values: tuple[object, object, object], *what: str
) -> tuple[float, float, float]:
    """Three finite numbers with the names `what`.

    Raises
    ------
    ArgumentError
        One is something else.
    """
    a, b, c = values
    return number(a, what[0]), number(b, what[1]), number(c, what[2])


def poses(value: object, what: str = "poses") -> list[Pose]:
    """Many poses: an (n, 3) array, or a sequence of what `pose` takes.

    Raises
    ------
    ArgumentError
        It is something else, or holds numbers that are not finite; the first wrong one
        is named.
    """
    import numpy as np

    if (
        isinstance(value, np.ndarray)
        and value.ndim == 2
        and value.shape[1] == 3
        and value.dtype.kind in "fiu"
    ):
        wrong = np.flatnonzero(~np.isfinite(value).all(axis=1))
        if not len(wrong):
            return [Pose(*row) for row in value.astype(np.float64).tolist()]
        raise ArgumentError(
            f"{what}[{wrong[0]}]: expected finite numbers, found {value[wrong[0]].tolist()}"
        )

    if isinstance(value, (np.ndarray, str, bytes, Mapping)) or not isinstance(
        value, Iterable
    ):
        raise ArgumentError(
            f"{what}: expected an (n, 3) array or a sequence of poses x (m), y "
            f"(m), th (rad), found {found(value)}"
        )

    return [pose(one, f"{what}[{i}]") for i, one in enumerate(value)]


def array(value: object, what: str, columns: int) -> NDArray[np.float64]:
    """Numbers as an (n, `columns`) float64 array, all finite.

    Raises
    ------
    ArgumentError
        Another shape, no numbers, or some that are not finite; the first wrong row is
        named.
    """
    import numpy as np

    try:
        values = np.ascontiguousarray(value, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{what}: expected an (n, {columns}) array of numbers, found {found(value)}"
        ) from None

    if values.size == 0:
        return values.reshape(0, columns)
    if values.ndim != 2 or values.shape[1] != columns:
        raise ArgumentError(
            f"{what}: expected an (n, {columns}) array, found shape {values.shape}"
        )

    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise ArgumentError(
            f"{what}: expected finite numbers, found {values[row].tolist()} in row {row}"
        )

    return values


def numbers(value: object, what: str) -> NDArray[np.float64]:
    """Real numbers as a float64 array of any shape.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    import numpy as np

    try:
        values = np.asarray(value)
        if values.dtype.kind in "iuf" or not values.size:
            return values.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        pass  # rows of different lengths

    raise ArgumentError(f"{what}: expected an array of numbers, found {found(value)}")


def several(value: object, what: str, of: str) -> list[Any]:
    """A sequence, as a list; `of`: what it holds, for the message. A word is none.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ArgumentError(f"{what}: expected a list of {of}, found {found(value)}")
    return list(value)


class Rows(dict[str, int]):
    """Row numbers by name: a dict whose missing keys raise `UnknownNameError` with a
    hint. Known names cost no more than in a dict.
    """

    __slots__ = ()

    def __missing__(self, name: str) -> int:
        raise unknown(name, self)


def unknown(
    name: object, known: Iterable[str], what: str = "robot or box"
) -> UnknownNameError:
    """The error for an unknown name; it suggests the nearest known name, or lists up to
    eight of them.
    """
    names = list(known)
    if not isinstance(name, str):
        return UnknownNameError(f"expected the name of a {what}, found {found(name)}")
    near = did_you_mean(name, names)
    there = (
        f"; there are: {', '.join(shown(n) for n in names[:8])}{', …' if len(names) > 8 else ''}"
        if names
        else "; there is none"
    )
    return UnknownNameError(f'no {what} is named "{shown(name)}"{near or there}')


__all__ = [
    "Rows",
    "array",
    "flag",
    "found",
    "function",
    "instance",
    "number",
    "numbers",
    "one_of",
    "path",
    "place",
    "pose",
    "poses",
    "several",
    "triple",
    "unknown",
    "whole",
]
