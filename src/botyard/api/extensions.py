"""Extension points: functions that a lower layer declares and a higher layer implements
(dependency inversion).

The lower layer declares the function (`extension`): name, signature and docstring. The
higher layer decorates its code with the declaration's `Extension.implementation`, so
that mypy compares the two. `botyard/__init__.py` registers the module of each
implementation (`provide`); it is imported when the function is first called. So no
layer imports one above it, and unused code is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from importlib import import_module
from typing import Any, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_MODULES: Final[dict[str, str]] = {}
"""Module of the implementation of each extension, by name."""
_DECLARED: Final[dict[str, Extension[..., Any]]] = {}


class Extension(Generic[P, R]):
    """A declared function whose implementation is in another module; made by
    `extension`, and called like a function.

    Parameters
    ----------
    name : str
        Its name in the registry (`provide`).
    declared : callable
        Signature and docstring.
    """

    def __init__(self, name: str, declared: Callable[P, R]) -> None:
        update_wrapper(self, declared)
        self.name = name
        self._code: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the implementation; RuntimeError if no module is registered, or if it
        has none.
        """
        return (self._code or self._find())(*args, **kwargs)

    def implementation(self, code: Callable[P, R]) -> Callable[P, R]:
        """Decorator: register a function as the implementation. RuntimeError if there
        is one already.
        """
        if self._code is not None:
            raise RuntimeError(
                f"extension {self.name}: {self._code.__module__} implements it already"
            )

        self._code = code
        return code

    def _find(self) -> Callable[P, R]:
        module = _MODULES.get(self.name)
        if module is None:
            raise RuntimeError(
                f"extension {self.name}: no module is registered for it (known: "
                f"{', '.join(_MODULES)})"
            )

        import_module(module)
        if self._code is None:
            raise RuntimeError(
                f"extension {self.name}: expected its implementation in {module}, found none"
            )

        return self._code


def extension(name: str) -> Callable[[Callable[P, R]], Extension[P, R]]:
    """Decorator: declare an extension by a function with signature and docstring only.
    RuntimeError if the name is taken.
    """
    if name in _DECLARED:
        raise RuntimeError(f"extension {name}: it is declared twice")

    def declare(declared: Callable[P, R]) -> Extension[P, R]:
        found = Extension(name, declared)
        _DECLARED[name] = found
        return found

    return declare


def provide(modules: Mapping[str, str]) -> None:
    """Register the modules that implement extensions, by name; each is imported when
    its extension is first called.
    """
    _MODULES.update(modules)


def declared() -> Mapping[str, Extension[..., Any]]:
    """All extensions declared so far, by name."""
    return dict(_DECLARED)


def provided() -> Mapping[str, str]:
    """The registered module of each extension, by name."""
    return dict(_MODULES)


__all__ = ["Extension", "declared", "extension", "provide", "provided"]
