"""Sources from which an entry of the kernels' library is compiled."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any, Final

from botyard.native.kernels import Entry
from botyard.native.packages import Function, as_kernel

SOURCES: Final = Path(__file__).resolve().parents[1] / "src"


def functions_of(
    function: Function, found: set[Function] | None = None
) -> set[Function]:
    """Return a kernel and all kernels that it calls."""
    found = set() if found is None else found
    found.add(function)
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        # An entry holds its kernel in `function`.
        called = getattr(value, "function", value)
        if as_kernel(called) is not None and called not in found:
            functions_of(called, found)

    return found


def imported_by(function: Function) -> set[Path]:
    """Return the files of a kernel, of all that it calls, and of all they import.

    Constants are compiled into the code, so that their modules count too.
    """
    todo = {Path(one.__code__.co_filename) for one in functions_of(function)}
    found: set[Path] = set()
    while todo:
        path = todo.pop()
        found.add(path)
        todo |= set(imported(path)) - found
    return found


def sources_of(entry: Entry[Any]) -> list[Path]:
    """Return the sources of its package that an entry is made of."""
    return sorted(imported_by(entry.function) & set(entry.package.sources))


@functools.cache
def imported(path: Path) -> tuple[Path, ...]:
    """Return the files of this package that a module imports when it runs."""
    names: list[str] = []
    nodes = list(ast.parse(path.read_bytes()).body)
    while nodes:
        node = nodes.pop()
        # Imports for annotations do not run, so the compiler does not see them.
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
            names.append(node.module)
        nodes += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]

    files = (
        SOURCES.joinpath(*name.split(".")).with_suffix(".py")
        for name in names
        if name.startswith("botyard.")
    )
    return tuple(file for file in files if file.is_file())
