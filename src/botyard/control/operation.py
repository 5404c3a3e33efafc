"""Base class of operations on a running simulator.

Each operation is a frozen dataclass. Its fields are its arguments, which the
constructor validates; `perform` carries it out. `OPERATIONS` is the table of all
operations. Adapters (the page, ROS, Pioneer clients, AMBF) translate requests of their
peers into operations, and pass them to `botyard.control.control.Control`, the only class
that checks permissions.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import MISSING, field, fields
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Protocol,
    TypeVar,
    cast,
    get_type_hints,
)

from botyard.api.arguments import flag, found, number, pose, whole
from botyard.control.caller import Caller, Level
from botyard.control.site import Site
from botyard.errors import ArgumentError
from botyard.geometry import Pose
from botyard.names import shown

T_co = TypeVar("T_co", covariant=True)


class Check(Protocol):
    """Function that validates and converts an argument."""

    def __call__(self, value: Any, what: str, /) -> Any:
        """Return the converted value; ArgumentError if it is invalid."""
        ...


class Operation(Generic[T_co]):
    """Operation on a running simulator; the type variable is the type of its result.

    Subclasses are frozen dataclasses with keyword arguments. The constructor raises
    `ArgumentError` for an invalid argument.

    Class attributes
    ----------------
    level : Level
        Permission level that a caller needs.
    tells : str
        How the interfaces announce the operation to their clients, for the
        documentation.
    audit : int
        Level of the line in the audit log: INFO for events that users read later, DEBUG
        for events that occur many times a second.
    settles : bool
        Whether queued commands take effect at once while the simulation is paused.
    in_recordings : bool
        Whether the operation is allowed while a recording is shown, because it does not
        change the world.
    writes : bool
        Whether the result is the path of a file that it has written, for `ReadFile`.
    """

    level: ClassVar[Level] = Level.CHANGE
    tells: ClassVar[str] = ""
    audit: ClassVar[int] = logging.DEBUG
    settles: ClassVar[bool] = True
    in_recordings: ClassVar[bool] = False
    writes: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Private base classes of operations are not in the table.
        if not cls.__name__.startswith("_"):
            # `python -OO` removes docstrings.
            if not cls.__doc__ and sys.flags.optimize < 2:
                raise TypeError(f"{cls.__name__}: expected a docstring, found none")

            OPERATIONS[cls.__name__] = cls

    def __post_init__(self) -> None:
        """Check and convert the arguments."""
        for name, check in _checks(type(self)):
            given = getattr(self, name)
            value = check(given, name)
            if value is not given:
                # The dataclass is frozen; only its own validation may convert fields.
                object.__setattr__(self, name, value)

    def perform(self, control: Site, caller: Caller) -> T_co:
        """Carry out the operation; the permission has already been checked.

        Raises
        ------
        BotyardError
            The operation failed and changed nothing.
        """
        raise NotImplementedError

    def summary(self, result: Any) -> str:
        """Return the line for the audit log.

        Parameters
        ----------
        result : object
            Result of the operation; for a slow one, the result of its future.
        """
        values = ", ".join(
            f"{f.name}={shown(repr(getattr(self, f.name)), 40)}"
            for f in fields(cast(Any, self))
        )
        return f"{type(self).__name__}({values})"


OPERATIONS: Final[dict[str, type[Operation[Any]]]] = {}
"""All operations by name."""


def argument(check: Check, default: Any = MISSING) -> Any:
    """Return a dataclass field of an operation, with its validation.

    Parameters
    ----------
    check : callable
        Validates and converts the value; see `Check`.
    default : object
        Default value, which is not checked. Without it the argument is required.
    """
    if default is MISSING:
        return field(metadata={"check": check})
    return field(default=default, metadata={"check": check})


_CHECKS: dict[type, tuple[tuple[str, Check], ...]] = {}


def _checks(kind: type[Operation[Any]]) -> tuple[tuple[str, Check], ...]:
    """Return the names of an operation's fields and the check of each, cached for each class."""
    known = _CHECKS.get(kind)
    if known is None:
        # Resolving the hints is slow, so the result is cached.
        hints = get_type_hints(kind)
        # An unchecked argument would let a client pass any object to the engine.
        missing = [f.name for f in fields(cast(Any, kind)) if "check" not in f.metadata]
        if missing:
            raise TypeError(
                f"{kind.__name__}: {missing[0]} ({hints[missing[0]]}) has no check"
            )

        known = _CHECKS[kind] = tuple(
            (f.name, f.metadata["check"]) for f in fields(cast(Any, kind))
        )

    return known


# -- checks of arguments


def count(low: int, high: int) -> Check:
    """Return a check for an integer from `low` to `high`.

    Parameters
    ----------
    low, high : int
        Bounds, inclusive.
    """

    def check(value: Any, what: str, /) -> int:
        return whole(value, what, low=low, high=high)

    return check


def real(low: float = -1e9, high: float = 1e9, unit: str = "") -> Check:
    """Return a check for a finite number from `low` to `high`.

    Parameters
    ----------
    low, high : float
        Bounds, inclusive.
    unit : str
        Unit for the error.
    """

    def check(value: Any, what: str, /) -> float:
        return number(value, what, low=low, high=high, unit=unit)

    return check


def text(max_length: int) -> Check:
    """Return a check for a text of at most `max_length` characters."""

    def check(value: Any, what: str, /) -> str:
        if isinstance(value, str) and len(value) <= max_length:
            return value
        raise ArgumentError(
            f"{what}: expected a text of at most {max_length} characters, found {found(value)}"
        )

    return check


def byte_string(value: Any, what: str, /) -> bytes:
    """Check of an argument: return a bytes-like value as bytes.

    Parameters
    ----------
    value : bytes, bytearray or memoryview
        The bytes.
    what : str
        Name of the argument, for the error.

    Raises
    ------
    ArgumentError
        The value has another type.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise ArgumentError(f"{what}: expected bytes, found {found(value)}")


def each(check: Check, max_items: int = 5000) -> Check:
    """Return a check for a sequence of at most `max_items` valid items, as a tuple.

    Parameters
    ----------
    check : callable
        Check of one item.
    max_items : int
        Maximum length. It bounds the work that one request of a client can cause.
    """

    def check_all(value: Any, what: str, /) -> tuple[Any, ...]:
        if (
            isinstance(value, str)
            # Generators are refused: their length is unbounded.
            or not hasattr(value, "__len__")
            or len(value) > max_items
        ):
            raise ArgumentError(
                f"{what}: expected a list of at most {max_items} items, found {found(value)}"
            )

        return tuple(check(one, what) for one in value)

    return check_all


def optional(check: Check) -> Check:
    """Return a check for None or a value that passes `check`."""

    def check_it(value: Any, what: str, /) -> Any:
        return None if value is None else check(value, what)

    return check_it


def a_pose(value: Any, what: str, /) -> Pose:
    """Check of an argument: return a pose of finite numbers (m, m, rad).

    Parameters
    ----------
    value : Pose or sequence of float
        Pose, m, m, rad.
    what : str
        Name of the argument, for the error.

    Raises
    ------
    ArgumentError
        The value is not three finite numbers.
    """
    # Fast path: poses are checked at each drag of a body on the page.
    return (
        value
        if type(value) is Pose and all(map(_is_finite, value))
        else pose(value, what)
    )


def _is_finite(x: Any) -> bool:
    # NaN and infinities give NaN for x - x; this is faster than `math.isfinite` with a
    # check of the type.
    return type(x) is float and x - x == 0.0


name: Final = text(1000)
"""Check for the name of a body; whether the body exists is checked at the lookup."""
boolean: Final[Check] = flag
NAMES: Final[Check] = each(name)


__all__ = [
    "NAMES",
    "OPERATIONS",
    "Check",
    "Operation",
    "a_pose",
    "argument",
    "boolean",
    "byte_string",
    "count",
    "each",
    "name",
    "optional",
    "real",
    "text",
]
