"""Extension points: functions declared in a lower layer, implemented in a higher layer.

This is dependency inversion. The lower layer declares a function with `extension`:
name, signature and docstring. The higher layer decorates its implementation with
`Extension.implementation`, so that mypy compares the two. `botyard/__init__.py`
registers the module of each implementation (`provide`), which is imported on the first
call. Thus no layer imports a higher one, and unused code is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from importlib import import_module
from typing import Any, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_MODULES: Final[dict[str, str]] = {}
"""Module that implements each extension, by name of the extension."""
_DECLARED: Final[dict[str, Extension[..., Any]]] = {}


class Extension(Generic[P, R]):
    """Declared function whose implementation is in another module.

    Calling the object calls the implementation.

    Parameters
    ----------
    name : str
        Name in the registry (`provide`).
    declared : callable
        Function that provides signature and docstring.
    """

    def __init__(self, name: str, declared: Callable[P, R]) -> None:
        update_wrapper(self, declared)
        self.name = name
        # Keep the implementation after the first call, so that later calls cost one
        # comparison.
        self._code: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the implementation.

        Raises
        ------
        RuntimeError
            No module is registered, or the module contains no implementation.
        """
        return (self._code or self._find())(*args, **kwargs)

    def implementation(self, code: Callable[P, R]) -> Callable[P, R]:
        """Register a function as the implementation (decorator).

        Parameters
        ----------
        code : callable
            Function with the declared signature.

        Raises
        ------
        RuntimeError
            The extension already has an implementation.
        """
        # With two implementations, the order of imports would decide which one is
        # called.
        if self._code is not None:
            raise RuntimeError(
                f"extension {self.name}: {self._code.__module__} already implements it"
            )

        self._code = code
        return code

    def _find(self) -> Callable[P, R]:
        """Import the registered module and return the implementation."""
        module = _MODULES.get(self.name)
        if module is None:
            raise RuntimeError(
                f"extension {self.name}: expected a registered module, found none (registered: "
                f"{', '.join(_MODULES)})"
            )

        # Importing runs the decorator, which sets `_code`.
        import_module(module)
        if self._code is None:
            raise RuntimeError(
                f"extension {self.name}: expected its implementation in {module}, found none"
            )

        return self._code


def extension(name: str) -> Callable[[Callable[P, R]], Extension[P, R]]:
    """Declare an extension by a function with signature and docstring only (decorator).

    Parameters
    ----------
    name : str
        Name in the registry (`provide`).

    Raises
    ------
    RuntimeError
        The name is already declared.
    """
    if name in _DECLARED:
        raise RuntimeError(f"extension {name}: already declared")

    def declare(declared: Callable[P, R]) -> Extension[P, R]:
        found = Extension(name, declared)
        _DECLARED[name] = found
        return found

    return declare


def provide(modules: Mapping[str, str]) -> None:
    """Register the modules that implement extensions.

    Parameters
    ----------
    modules : mapping of str to str
        Module by name of the extension. Each is imported on the first call, so that
        registration costs nothing.
    """
    _MODULES.update(modules)


def declared() -> Mapping[str, Extension[..., Any]]:
    """Return all extensions declared so far, by name."""
    return dict(_DECLARED)


def provided() -> Mapping[str, str]:
    """Return the registered module of each extension, by name."""
    return dict(_MODULES)


__all__ = ["Extension", "declared", "extension", "provide", "provided"]
