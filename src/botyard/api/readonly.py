"""Base class of the objects through which users access a simulation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, NoReturn


class ReadOnly:
    """Base class of handles: objects that refer to a part of a simulation, such as a robot.

    Errors for wrong attributes name the right way. A handle cannot be copied, because the
    copy would have no world. Whole simulations can be copied, pickled and saved
    (`Simulation.clone`, `Simulation.save_state`).
    """

    _instead: ClassVar[Mapping[str, str]] = {}
    """Names of read-only attributes, and the method that changes the value of each."""
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """Attributes that users expect but that do not exist, each with a hint where its value is."""
    _moved: ClassVar[Mapping[str, str]] = {}
    """Old names that work for one release, and the new name of each.

    A new name is a path of attributes (``a.b``), or the path of a function
    (``botyard.module.function``) whose first argument is the handle.
    """
    _copying: ClassVar[str] = (
        "copy, pickle or clone its simulation (Simulation.clone, Simulation.save_state)"
    )
    """Text for the error message: what to do instead of copying the handle."""

    def __setattr__(self, name: str, value: object) -> None:
        # Private names are tested first, for speed: handles of many robots are made at
        # once, and most of their attributes are private.
        if name[0] == "_":
            super().__setattr__(name, value)
            return
        if name in self._instead:
            raise AttributeError(
                f"{type(self).__name__}.{name} cannot be assigned: {self._instead[name]}"
            )

        kept = getattr(type(self), name, None)
        if (
            isinstance(kept, property) and kept.fset is None
            # Python's own message is "has no setter", which does not help users.
        ):
            raise AttributeError(
                f"{type(self).__name__}.{name} cannot be assigned: it is read-only"
            )

        if name in self._moved:
            raise AttributeError(
                f"{type(self).__name__}.{name} cannot be assigned: it has a new name, "
                f"{self._moved[name]}"
            )

        super().__setattr__(name, value)

    def _warn_moved(self, name: str) -> None:
        # Stack level 3 is the line that uses the old name.
        warnings.warn(
            f"{type(self).__name__}.{name} has a new name: {self._moved[name]}",
            DeprecationWarning,
            stacklevel=3,
        )

    # Hide `__getattr__` from type checkers, which would otherwise accept any attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raise AttributeError with a message that says where the value can be found.

            Python calls this if there is no such attribute, or if its property raises
            one.
            """
            # The attribute exists, but its property raised an AttributeError. Without this,
            # the user would read that there is no such attribute.
            if isinstance(getattr(type(self), name, None), property):
                return object.__getattribute__(
                    self,
                    name,
                    # The second lookup raises the property's own error again.
                )

            # Old names work for one release.
            if name in self._moved:
                self._warn_moved(name)
                new = self._moved[name]
                # The new name is a path of attributes of this object, or a function of
                # a module.
                if not new.startswith("botyard."):
                    return attrgetter(new)(self)
                module, _, function = new.rpartition(".")
                return partial(getattr(import_module(module), function), self)

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
