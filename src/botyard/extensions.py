"""Functions that a part of the package offers and a part above it carries out.

The lower part declares the function (`extension`): its name, signature and docstring. The upper part has the code, under the
declaration's `Extension.implementation`, so that mypy compares the two. `botyard/__init__.py` has the table that says which module has the
code of which extension (`provide`); it is imported when the function is first called. So the lower part imports nothing that
stands above it, and nothing is imported that nobody calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from importlib import import_module
from typing import Any, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_MODULES: Final[dict[str, str]] = {}
"""Modules that carry out extensions, by the names of these."""
_DECLARED: Final[dict[str, Extension[..., Any]]] = {}


class Extension(Generic[P, R]):
    """A function whose code is in another part of the package; made by `extension`, and called like the function itself.

    Parameters
    ----------
    name : str
        Its name in the table of `provide`.
    declared : callable
        Signature and docstring.
    """

    def __init__(self, name: str, declared: Callable[P, R]) -> None:
        update_wrapper(self, declared)
        self.name = name
        self._code: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Do it; RuntimeError if no module is said to have the code, or if it has none."""
        return (self._code or self._find())(*args, **kwargs)

    def implementation(self, code: Callable[P, R]) -> Callable[P, R]:
        """Decorate the function that carries this extension out. RuntimeError if there is one already."""
        if self._code is not None:
            raise RuntimeError(f"extension {self.name}: {self._code.__module__} carries it out already")
        self._code = code
        return code

    def _find(self) -> Callable[P, R]:
        module = _MODULES.get(self.name)
        if module is None:
            raise RuntimeError(
                f"extension {self.name}: no module is said to carry it out (known: {', '.join(_MODULES)})"
            )
        import_module(module)
        if self._code is None:
            raise RuntimeError(f"extension {self.name}: expected its implementation in {module}, found none")
        return self._code


def extension(name: str) -> Callable[[Callable[P, R]], Extension[P, R]]:
    """Declare an extension: decorates a function that has a signature and a docstring. RuntimeError if the name is taken."""
    if name in _DECLARED:
        raise RuntimeError(f"extension {name}: it is declared twice")

    def declare(declared: Callable[P, R]) -> Extension[P, R]:
        found = Extension(name, declared)
        _DECLARED[name] = found
        return found

    return declare


def provide(modules: Mapping[str, str]) -> None:
    """Say which module carries out which extension; the module is imported when the extension is first called."""
    _MODULES.update(modules)


def declared() -> Mapping[str, Extension[..., Any]]:
    """All extensions that were declared so far, by name."""
    return dict(_DECLARED)


def provided() -> Mapping[str, str]:
    """Modules by the extensions that they carry out."""
    return dict(_MODULES)


__all__ = ["Extension", "declared", "extension", "provide", "provided"]
