"""The modules beside a Python file that it imports: found by reading ``import``
statements, nothing is run for that.

They are a part of a run's key, and are sent along to other computers. What a file
imports in other ways (`importlib`), or reads, is not found.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from botyard.processes.codeload import installed_path


def imported_files(path: Path, folder: Path) -> set[Path]:
    """Files that a Python file imports, and those that these import, and so on; with
    the packages that it is in, without itself.

    Parameters
    ----------
    path : Path
        The file. One that cannot be read, or is no Python, imports nothing.
    folder : Path
        Where its absolute imports are looked for, behind the installed modules: what is
        installed is none of them.
    """
    packages = (
        one / "__init__.py"
        for one in path.parents
        if one != folder and one.is_relative_to(folder)
    )
    found = {
        one for one in packages if one != path and one.is_file()
    }  # they are imported before it
    open_files = [path, *found]
    while open_files:
        one = open_files.pop()
        new = set(_imported(one, folder)) - found - {path}
        found |= new
        open_files += new

    return found


def _imported(path: Path, folder: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(path.read_bytes(), path)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(alias.name.split("."), folder)
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            base = folder if not node.level else _above(path, node.level)
            if not base.is_relative_to(folder):
                continue
            # each may be a module, or something in one
            for alias in node.names:
                yield from _files(
                    [*module, alias.name], base, is_relative=bool(node.level)
                )


def _above(path: Path, level: int) -> Path:
    """The package that a relative import of this level begins at."""
    for _ in range(level):
        path = path.parent
    return path


def _files(
    parts: list[str], folder: Path, *, is_relative: bool = False
) -> Iterator[Path]:
    """Files of a module, or of something in one, and of the packages that it is in;
    none, if there is no such module.
    """
    if not is_relative and _is_elsewhere(parts[0], folder):
        return
    if is_relative and (folder / "__init__.py").is_file():
        yield folder / "__init__.py"
    for part in parts:
        module = folder / f"{part}.py"
        folder = folder / part
        if (
            folder / "__init__.py"
        ).is_file():  # a package comes before a module of its name
            yield folder / "__init__.py"
        elif module.is_file():
            yield module
            return
        elif not folder.is_dir():
            return


def _is_elsewhere(name: str, folder: Path) -> bool:
    """Whether a module is not the one in a folder: there is none, or one that is
    installed comes before it.
    """
    here = folder / name
    if (
        not (here.is_dir() or here.with_name(f"{name}.py").is_file())
        or name in sys.stdlib_module_names
    ):
        return True

    spec = PathFinder.find_spec(name, installed_path())
    origin = spec.origin if spec is not None else None
    return origin is not None and not Path(origin).resolve().is_relative_to(
        folder.resolve()
    )


__all__ = ["imported_files"]
