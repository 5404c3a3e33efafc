"""Local modules that a Python file imports, found without running any code.

The contents of the modules are part of a run's hash, and a study on a cluster sends
them to the nodes. Only ``import`` statements count: modules loaded through `importlib`,
and data files that the code reads, are not found.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from botyard.processes.codeload import installed_path


def imported_files(path: Path, folder: Path) -> set[Path]:
    """Return the local files that a Python file imports, directly and indirectly.

    The result includes the ``__init__.py`` files of the packages around these files,
    but not the file itself.

    Parameters
    ----------
    path : Path
        The file. An unreadable file, or one that is not valid Python, imports nothing.
    folder : Path
        Folder in which absolute imports are looked up, after the installed modules.
        Installed modules are not part of the result.
    """
    packages = (
        one / "__init__.py"
        for one in path.parents
        if one != folder and one.is_relative_to(folder)
    )
    found = {
        one
        for one in packages
        if one != path and one.is_file()
        # Python runs the packages' ``__init__.py`` before the module itself.
    }
    open_files = [path, *found]
    while open_files:
        one = open_files.pop()
        new = set(_imported(one, folder)) - found - {path}
        found |= new
        open_files += new

    return found


def _imported(path: Path, folder: Path) -> Iterator[Path]:
    """Yield the local files that the import statements of one file name.

    Parameters
    ----------
    path : Path
        The file. A broken or unreadable file yields nothing.
    folder : Path
        Folder in which absolute imports are looked up.

    Yields
    ------
    Path
        Files, with repetitions.
    """
    try:
        tree = ast.parse(path.read_bytes(), path)
    # The run itself reports a broken file; hashing must not fail on it. Deeply nested
    # source raises RecursionError or MemoryError in the parser.
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(alias.name.split("."), folder)
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            base = folder if not node.level else _above(path, node.level)
            # A relative import that leaves the plan's folder cannot be resolved here.
            if not base.is_relative_to(folder):
                continue
            # ``from package import name``: the name may be a submodule or an object in
            # the package.
            for alias in node.names:
                yield from _files(
                    [*module, alias.name], base, is_relative=bool(node.level)
                )


def _above(path: Path, level: int) -> Path:
    """Return the package from which a relative import of this level starts.

    Parameters
    ----------
    path : Path
        The importing file.
    level : int
        Number of leading dots, at least 1.
    """
    for _ in range(level):
        path = path.parent
    return path


def _files(
    parts: list[str], folder: Path, *, is_relative: bool = False
) -> Iterator[Path]:
    """Yield the file of a module and of its packages.

    The last part may also be an object in a module: then the module's file is yielded.
    Nothing is yielded if there is no such module.

    Parameters
    ----------
    parts : list of str
        Parts of the module's name, as between its dots.
    folder : Path
        Folder in which the first part is looked up.
    is_relative : bool
        Whether the import is relative: installed modules do not take precedence then.
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
            # Python prefers a package over a module of the same name.
        ).is_file():
            yield folder / "__init__.py"
        elif module.is_file():
            yield module
            return
        elif not folder.is_dir():
            return


def _is_elsewhere(name: str, folder: Path) -> bool:
    """Return whether an import finds no local module.

    Parameters
    ----------
    name : str
        Name of the module's outermost package.
    folder : Path
        Folder of local modules.

    Returns
    -------
    bool
        True if the import finds an installed module instead, or nothing.
    """
    here = folder / name
    if (
        not (here.is_dir() or here.with_name(f"{name}.py").is_file())
        or name in sys.stdlib_module_names
    ):
        return True

    spec = PathFinder.find_spec(name, installed_path())
    # An editable installation may point back into this folder; its files count as
    # local.
    origin = spec.origin if spec is not None else None
    return origin is not None and not Path(origin).resolve().is_relative_to(
        folder.resolve()
    )


__all__ = ["imported_files"]
