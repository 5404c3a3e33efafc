"""Base class of the objects by which users access a simulation. A leaf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn


class ReadOnly:
    """A handle of a part of a simulation: errors say what to use instead of an
    attribute, and copying is refused.

    A copy of a robot would lack its world. Whole simulations can be copied, pickled and
    saved (`Simulation.clone`, `Simulation.save_state`).
    """

    _instead: ClassVar[Mapping[str, str]] = {}
    """Read-only attributes, and the method that changes each one."""
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """Names of attributes that users expect and that do not exist, and where the value
    is.
    """
    _copying: ClassVar[str] = (
        "copy, pickle or clone its simulation (Simulation.clone, Simulation.save_state)"
    )
    """What copies it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._instead:
            raise AttributeError(
                f"{type(self).__name__}.{name} cannot be assigned: {self._instead[name]}"
            )

        kept = getattr(type(self), name, None)
        if (
            isinstance(kept, property) and kept.fset is None
        ):  # Python's own words are "has no setter"
            raise AttributeError(
                f"{type(self).__name__}.{name} cannot be assigned: it only shows what is so"
            )

        super().__setattr__(name, value)

    # else type checkers would take every name for an attribute
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raise AttributeError, and say where the value is. Called when there is no
            such attribute, or its property has raised one.
            """
            if isinstance(getattr(type(self), name, None), property):
                return object.__getattribute__(
                    self, name
                )  # raises the property's own error

            hint = f": {self._elsewhere[name]}" if name in self._elsewhere else ""
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}'{hint}",
                name=name,
                obj=self,
            )

    def __delattr__(self, name: str) -> None:
        if name in self._instead:
            raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted")
        super().__delattr__(name)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled by itself: {self._copying}"
        )


__all__ = ["ReadOnly"]
