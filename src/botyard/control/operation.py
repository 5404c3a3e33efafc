"""The base class of operations on a running simulator: arguments with validation,
permission level, result.

Each operation is a frozen dataclass: its fields are its arguments, checked when it is
made; `perform` does it. The table of all of them is `OPERATIONS`. Adapters (the page,
ROS, Pioneer clients, AMBF) make operations of what their peers ask for, and hand them
to `botyard.control.control.Control`, which is the one place that asks who may do what.
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
    """Validates and converts an argument."""

    def __call__(self, value: Any, what: str, /) -> Any:
        """Return the converted value; ArgumentError if it is invalid."""
        ...


class Operation(Generic[T_co]):
    """An operation on a running simulator; the type variable is the type of its result.

    Subclasses are frozen dataclasses with keyword arguments. The constructor raises
    `ArgumentError` for an invalid argument.

    Class attributes
    ----------------
    level : Level
        Permission level that a caller needs.
    tells : str
        How the interfaces announce it to their clients, for the documentation.
    audit : int
        Level of its line in the audit log: INFO for what people want to read later,
        DEBUG for what happens many times a second.
    settles : bool
        While the simulation is paused, the commands that it has queued take effect at
        once.
    in_recordings : bool
        It can be done while a recording is shown, because it changes nothing in the
        world.
    writes : bool
        Its result is the path of a file that it has written: `ReadFile` reads it.
    """

    level: ClassVar[Level] = Level.CHANGE
    tells: ClassVar[str] = ""
    audit: ClassVar[int] = logging.DEBUG
    settles: ClassVar[bool] = True
    in_recordings: ClassVar[bool] = False
    writes: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__name__.startswith("_"):
            if (
                not cls.__doc__ and sys.flags.optimize < 2
            ):  # which takes docstrings away
                raise TypeError(
                    f"{cls.__name__}: expected a docstring that says what it does, found none"
                )

            OPERATIONS[cls.__name__] = cls

    def __post_init__(self) -> None:
        """Validate the arguments."""
        for name, check in _checks(type(self)):
            given = getattr(self, name)
            value = check(given, name)
            if value is not given:
                object.__setattr__(self, name, value)

    def perform(self, control: Site, caller: Caller) -> T_co:
        """Carry it out; the permission has been checked already.

        Raises
        ------
        BotyardError
            It failed, and nothing was changed.
        """
        raise NotImplementedError

    def summary(self, result: Any) -> str:
        """One line for the audit log."""
        values = ", ".join(
            f"{f.name}={shown(repr(getattr(self, f.name)), 40)}"
            for f in fields(cast(Any, self))
        )
        return f"{type(self).__name__}({values})"


OPERATIONS: Final[dict[str, type[Operation[Any]]]] = {}
"""All operations by their names."""


def argument(check: Check, default: Any = MISSING) -> Any:
    """A dataclass field of an operation, with its validation."""
    if default is MISSING:
        return field(metadata={"check": check})
    return field(default=default, metadata={"check": check})


_CHECKS: dict[type, tuple[tuple[str, Check], ...]] = {}


def _checks(kind: type[Operation[Any]]) -> tuple[tuple[str, Check], ...]:
    """Names and checks of an operation's fields, cached for each class."""
    known = _CHECKS.get(kind)
    if known is None:
        hints = get_type_hints(kind)
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
    """A whole number from `low` to `high`."""

    def check(value: Any, what: str, /) -> int:
        return whole(value, what, low=low, high=high)

    return check


def real(low: float = -1e9, high: float = 1e9, unit: str = "") -> Check:
    """A finite number from `low` to `high`."""

    def check(value: Any, what: str, /) -> float:
        return number(value, what, low=low, high=high, unit=unit)

    return check


def text(max_length: int) -> Check:
    """A text of at most `max_length` characters."""

    def check(value: Any, what: str, /) -> str:
        if isinstance(value, str) and len(value) <= max_length:
            return value
        raise ArgumentError(
            f"{what}: expected a text of at most {max_length} characters, found {found(value)}"
        )

    return check


def byte_string(value: Any, what: str, /) -> bytes:
    """A bytes-like value, converted to bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise ArgumentError(f"{what}: expected bytes, found {found(value)}")


def each(check: Check, max_items: int = 5000) -> Check:
    """A sequence of at most `max_items` items, each of which passes `check`; converted
    to a tuple.
    """

    def check_all(value: Any, what: str, /) -> tuple[Any, ...]:
        if (
            isinstance(value, str)
            or not hasattr(value, "__len__")
            or len(value) > max_items
        ):
            raise ArgumentError(
                f"{what}: expected a list of at most {max_items} items, found {found(value)}"
            )

        return tuple(check(one, what) for one in value)

    return check_all


def optional(check: Check) -> Check:
    """A value that passes `check`, or None."""

    def check_it(value: Any, what: str, /) -> Any:
        return None if value is None else check(value, what)

    return check_it


def a_pose(value: Any, what: str, /) -> Pose:
    """A pose of finite numbers (m, m, rad)."""
    return (
        value
        if type(value) is Pose and all(map(_is_finite, value))
        else pose(value, what)
    )


def _is_finite(x: Any) -> bool:
    return type(x) is float and x - x == 0.0


name: Final = text(1000)
"""The name of a robot or another body; whether it exists is checked where it is looked
up.
"""
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
