"""Validation of arguments of the public API.

Each error names the argument, the expected value and the found value. A check takes one
or two microseconds: use these checks in constructors and set-up, but faster checks in
code that runs in each step. This module imports almost nothing of botyard.
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
    """Type of a pose argument: x, y, th as a `Pose`, a tuple, a list or an array."""


def _is_numpys(value: object, *names: str) -> bool:
    """Return whether a value is an instance of a NumPy type, given by the type's name.

    NumPy is not imported: if it is not loaded, there can be no such value.
    """
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(
        value, tuple(getattr(numpy, name) for name in names)
    )


def is_bool(value: object) -> bool:
    """Return whether a value is a Python or NumPy bool."""
    return isinstance(value, bool) or _is_numpys(value, "bool_")


def found(value: object) -> str:
    """Return a short description of a wrong value: value and type, or shape and dtype.

    Parameters
    ----------
    value : object
        Value that a caller passed, of any type. Its text is escaped and cut to one line.
    """
    if _is_numpys(value, "ndarray"):
        return f"an array of shape {value.shape} and type {value.dtype}"  # type: ignore[attr-defined]
    # The value is cut, because a user's object may print pages.
    return f"{shown(repr(value), 60)} ({type(value).__name__})"


def _range(low: float, high: float, above: bool) -> str:
    """Return text that describes a range of numbers, for an error message."""
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
    """Return a finite real number within bounds, as a float.

    Parameters
    ----------
    value : object
        An int, a float or a NumPy scalar; bool is rejected.
    what : str
        Name of the argument.
    low, high : float
        Bounds, inclusive.
    above : bool
        Exclude `low` itself.
    unit : str
        Unit, for the message.

    Returns
    -------
    float
        The number.

    Raises
    ------
    ArgumentError
        `value` is not a finite number within the bounds.
    """
    if not (is_bool(value) or isinstance(value, (str, bytes))):
        try:
            # float() also accepts NumPy scalars and types of other libraries, which
            # isinstance would refuse.
            x = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            x = math.nan

        # NaN stands for a failed conversion and is not finite, so all errors have the same
        # message.
        if math.isfinite(x) and low <= x <= high and not (above and x == low):
            return x

    raise ArgumentError(
        f"{what}: expected {_range(low, high, above)}{unit and f' {unit}'}, found {found(value)}"
    )


def whole(
    value: object, what: str, *, low: int | None = None, high: int | None = None
) -> int:
    """Return a whole number within inclusive bounds; bool is rejected.

    Parameters
    ----------
    value : object
        Value of a caller, a Python or NumPy integer.
    what : str
        Name of the argument, for the error.
    low, high : int, optional
        Bounds, inclusive; None: no bound.

    Raises
    ------
    ArgumentError
        `value` is not an int or NumPy integer within the bounds.
    """
    if not is_bool(value):
        try:
            # Unlike int(), `index` refuses 2.5 and "2" instead of converting them
            # silently.
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
"""Largest seed. Seeds have 64 bits, signed or unsigned, as in scenario files."""


def seed(value: object, what: str = "seed") -> int:
    """Return a seed for random numbers: a whole number of 64 bits, signed or unsigned.

    Parameters
    ----------
    value : object
        Value of a caller, a Python or NumPy integer.
    what : str
        Name of the argument, for the error.

    Raises
    ------
    ArgumentError
        `value` is not such a number.
    """
    return whole(value, what, low=MIN_SEED, high=MAX_SEED)


def flag(value: object, what: str) -> bool:
    """Return `value` if it is True or False.

    Raises
    ------
    ArgumentError
        `value` is not True or False.
    """
    if is_bool(value):
        return bool(value)
    raise ArgumentError(f"{what}: expected True or False, found {found(value)}")


def one_of(value: object, what: str, known: Iterable[str]) -> str:
    """Return `value` if it is one of the words `known`.

    Parameters
    ----------
    value : object
        Value of a caller.
    what : str
        Name of the argument, for the error.
    known : iterable of str
        Words that are valid.

    Raises
    ------
    ArgumentError
        `value` is not one of them; the error suggests the most similar word.
    """
    words = tuple(known)
    if isinstance(value, str) and value in words:
        return value
    near = did_you_mean(value, words) if isinstance(value, str) else ""
    raise ArgumentError(
        f"{what}: expected one of {', '.join(words)}, found {found(value)}{near}"
    )


def instance(value: object, what: str, kind: type[Any], hint: str = "") -> Any:
    """Return `value` if it is an instance of `kind`.

    Parameters
    ----------
    value : object
        Value of a caller.
    what : str
        Name of the argument, for the error.
    kind : type
        Class of valid values.
    hint : str
        How to get such a value, for the error.

    Raises
    ------
    ArgumentError
        `value` has another type; `hint` in the error describes the remedy.
    """
    if isinstance(value, kind):
        return value
    raise ArgumentError(
        f"{what}: expected a {kind.__name__}, found {found(value)}{hint and f'; {hint}'}"
    )


def function(value: object, what: str) -> Callable[..., Any]:
    """Return `value` if it can be called.

    Raises
    ------
    ArgumentError
        `value` cannot be called.
    """
    if callable(value):
        return value
    raise ArgumentError(f"{what}: expected a function, found {found(value)}")


def path(value: object, what: str) -> str | Path:
    """Return `value` if it is a file name.

    Raises
    ------
    ArgumentError
        `value` is not a str or Path, is empty, or contains a NUL character.
    """
    # Python's own error for a NUL names neither the argument nor the value.
    if isinstance(value, (str, Path)) and str(value) and "\0" not in str(value):
        return value
    raise ArgumentError(
        f"{what}: expected the name of a file (str or Path), found {found(value)}"
    )


def pose(value: object, what: str = "pose") -> Pose:
    """Return a pose from three finite numbers x (m), y (m), th (rad).

    The numbers come as a `Pose`, a tuple, a list or an array.

    Parameters
    ----------
    value : object
        Value of a caller.
    what : str
        Name of the argument, for the error.

    Raises
    ------
    ArgumentError
        `value` is not such a sequence.
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
    """Return a pose from x, y (m) and optionally th (rad), all of them finite.

    The numbers come as a `Pose`, a tuple, a list or an array.

    Parameters
    ----------
    value : object
        Value of a caller.
    what : str
        Name of the argument, for the error.

    Raises
    ------
    ArgumentError
        `value` is not such a sequence.
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
    """Return three finite numbers as floats; `what` are their names for the error.

    Raises
    ------
    ArgumentError
        One of them is not a finite number.
    """
    a, b, c = values
    return number(a, what[0]), number(b, what[1]), number(c, what[2])


def poses(value: object, what: str = "poses") -> list[Pose]:
    """Return a list of poses from an (n, 3) array or a sequence of poses.

    Parameters
    ----------
    value : object
        Value of a caller.
    what : str
        Name of the argument, for the error.

    Raises
    ------
    ArgumentError
        `value` is neither an array nor a sequence, or contains a number that is not
        finite. The error names the first such pose.
    """
    import numpy as np

    if (
        isinstance(value, np.ndarray)
        and value.ndim == 2
        and value.shape[1] == 3
        and value.dtype.kind in "fiu"
    ):
        # Check the whole array at once: with thousands of robots, a call of `pose` for each
        # row would be slow.
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
    """Return finite numbers as an (n, `columns`) float64 array.

    Parameters
    ----------
    value : object
        Array or sequence of rows.
    what : str
        Name of the argument, for the error.
    columns : int
        Length of a row.

    Raises
    ------
    ArgumentError
        `value` has another shape, or contains an element that is not a finite number;
        the error names the first such row.
    """
    import numpy as np

    try:
        # Kernels need a contiguous array.
        values = np.ascontiguousarray(value, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{what}: expected an (n, {columns}) array of numbers, found {found(value)}"
        ) from None

    if values.size == 0:
        # An empty list has the shape (0,), which later code could not index by column.
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
    """Return real numbers as a float64 array of any shape.

    Raises
    ------
    ArgumentError
        `value` is not an array of numbers.
    """
    import numpy as np

    try:
        values = np.asarray(value)
        if values.dtype.kind in "iuf" or not values.size:
            return values.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        # Rows of different lengths make NumPy raise an error.
        pass

    raise ArgumentError(f"{what}: expected an array of numbers, found {found(value)}")


def several(value: object, what: str, of: str) -> list[Any]:
    """Return a sequence as a list; `of` names the elements, for the message.

    A str is rejected, because it is almost always a single element by mistake.

    Parameters
    ----------
    value : object
        Value of a caller.
    what : str
        Name of the argument, for the error.
    of : str
        Plural noun of the elements.

    Raises
    ------
    ArgumentError
        `value` is not a sequence.
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ArgumentError(f"{what}: expected a list of {of}, found {found(value)}")
    return list(value)


class Rows(dict[str, int]):
    """Mapping from names to row numbers.

    An unknown name raises `UnknownNameError` with a suggestion.

    For known names, the lookup is as fast as in a dict.

    Attributes
    ----------
    lowest_free : dict of str to int
        For the base of a name (`p3dx` in `p3dx_002`), the lowest number that may be free: the names
        of the base with lower numbers are all taken. Copies keep these numbers, because code that
        adds rows copies the mapping. Code that removes rows creates a new mapping without them.
    """

    __slots__ = ("lowest_free",)

    def __init__(
        self, rows: Mapping[str, int] | Iterable[tuple[str, int]] = ()
    ) -> None:
        super().__init__(rows)
        self.lowest_free: dict[str, int] = (
            dict(rows.lowest_free) if isinstance(rows, Rows) else {}
        )

    def __missing__(self, name: str) -> int:
        raise unknown(name, self)


def unknown(
    name: object, known: Iterable[str], what: str = "robot or box"
) -> UnknownNameError:
    """Return the error for an unknown name.

    Parameters
    ----------
    name : object
        Value that a caller gave as a name; it may have any type.
    known : iterable of str
        Names that exist.
    what : str
        Noun for the message.

    Returns
    -------
    UnknownNameError
        Error that suggests the most similar name, or lists up to eight; the caller
        raises it.
    """
    names = list(known)
    if not isinstance(name, str):
        return UnknownNameError(f"expected the name of a {what}, found {found(name)}")
    near = did_you_mean(name, names)
    there = (
        # A world may have thousands of robots, and a message has one line.
        f"; there are: {', '.join(shown(n) for n in names[:8])}{', …' if len(names) > 8 else ''}"
        if names
        else f"; no {what} exists"
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
