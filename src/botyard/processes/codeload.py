"""Loading of code that a user names: ``module:name`` or ``file.py:name``.

Importing a module runs it. Therefore pass only names from the user of this process to
this module, never a name from a file, a saved state, a recording or a peer.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

SEPARATOR: Final = ":"
"""Separator between a module or file and the name of an object in it."""
_PREFIX: Final = "botyard_file_"
"""Prefix of the names in `sys.modules` of modules loaded from files.

A number follows.
"""
_FILES: Final[dict[Path, ModuleType]] = {}
_SEARCHED: Final[set[str]] = set()
"""Folders that this module added to `sys.path`."""


def is_code(name: str) -> bool:
    """Return whether a name has the form ``module:name`` or ``file.py:name``.

    Parameters
    ----------
    name : str
        Name, split at the last colon. The function does not look for the code.
    """
    module, separator, attribute = name.rpartition(SEPARATOR)
    # A Windows path such as ``C:\models`` also has a colon, but no identifier after it.
    return bool(module and separator) and all(
        part.isidentifier() for part in attribute.split(".")
    )


def load_named(name: str) -> Any:
    """Return the object that ``module:name`` or ``file.py:name`` names.

    A module may also be in the working folder, and a file can import modules from its
    own folder. A file runs only once, even if several of its objects are loaded.

    Parameters
    ----------
    name : str
        Name from the user of this process, never from a file or a peer: loading runs
        code.

    Raises
    ------
    ValueError
        The name has another form.
    ImportError
        The module, file or object does not exist, or the code calls `sys.exit`.
    Exception
        Any exception that the module raises while it runs.
    """
    if not is_code(name):
        raise ValueError(f'expected module:name or file.py:name, found "{name}"')
    where, _, attribute = name.rpartition(SEPARATOR)
    found: Any
    try:
        found = _of_file(Path(where)) if where.endswith(".py") else _of_name(where)
    except SystemExit as error:
        # Code that calls `sys.exit` would otherwise end its caller, for example a
        # study, without a message.
        raise ImportError(f"SystemExit: {error}").with_traceback(
            error.__traceback__
        ) from error

    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ImportError(f'there is no "{attribute}" in {where}')
        found = getattr(found, part)

    return found


def _of_name(name: str) -> ModuleType:
    """Import a module by name, also from the working folder."""
    # An empty entry means the working folder, as in an interactive interpreter.
    if "" not in sys.path:
        _search(Path.cwd())
    return importlib.import_module(name)


def _search(folder: Path) -> None:
    """Add a folder to the module search path."""
    if str(folder) not in sys.path:
        sys.path.append(
            str(folder)
            # Add the folder at the end of the path, so that nothing in it shadows an
            # installed module.
        )
        _SEARCHED.add(str(folder))


def installed_path() -> list[str]:
    """Return `sys.path` without the folders that this module added."""
    return [folder for folder in sys.path if folder not in _SEARCHED]


def _of_file(path: Path) -> ModuleType:
    """Load a file as a module; run it only once."""
    # Symbolic links and relative paths lead to the same module.
    path = path.resolve()
    if path in _FILES:
        return _FILES[path]
    # The number separates files of the same name in different folders.
    name = f"{_PREFIX}{len(_FILES)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    # `spec_from_file_location` also accepts files that do not exist.
    if not os.path.isfile(path) or spec is None or spec.loader is None:
        raise ImportError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    _search(path.parent)

    # Register the module before its code runs: dataclasses and pickle look it up there.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    # The next import must not find a module whose code has failed.
    except BaseException:
        del sys.modules[name]
        raise

    _FILES[path] = module
    return module


def can_be_found(name: str) -> bool:
    """Return whether another process can load an object by its name.

    Objects of the main program (``__main__``), or of a module without a name, cannot be
    loaded elsewhere.

    Parameters
    ----------
    name : str
        Name of a registered object, or code. Names without a colon can always be found.
    """
    module, separator, _ = name.rpartition(SEPARATOR)
    return not separator or (
        is_code(name) and module != "__main__" and not module.startswith(_PREFIX)
    )


_PACKAGE: Final = str(Path(__file__).resolve().parents[1]) + os.sep


@cache
def _distance(file: str) -> int:
    """Return how far a file is from the user's own code.

    0: the user's own code; 1: an installed package; 2: Python or botyard.
    """
    path = os.path.realpath(file)
    if file.startswith("<frozen ") or path.startswith(_PACKAGE):
        return 2
    if {"site-packages", "dist-packages"} & set(Path(path).parts):
        return 1
    places = sysconfig.get_paths()
    return (
        2
        if any(
            path.startswith(os.path.realpath(places[key]) + os.sep)
            for key in ("stdlib", "platstdlib")
        )
        else 0
    )


def _file_of(frame: FrameType) -> str:
    """Return the file of a frame.

    For generated code (dataclasses), return the file of its module.
    """
    file = frame.f_code.co_filename
    return str(frame.f_globals.get("__file__") or file) if file == "<string>" else file


def place_of(error: BaseException, *, foreign: bool = False) -> str:
    """Return the origin of an error, in words.

    Parameters
    ----------
    error : BaseException
        Error with its traceback.
    foreign : bool
        Whether to return a line of botyard or Python if there is no other line.

    Returns
    -------
    str
        Last line of the user's own code that led to the error. Without such a line, the
        last line of an installed module; otherwise empty, or with `foreign` a line of
        botyard or Python.
    """
    # The traceback of a syntax error ends in the importer, not in the faulty file.
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = [
        (_file_of(frame), line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    nearest = min((_distance(file) for file, _, _ in frames), default=2)
    if not frames or (nearest == 2 and not foreign):
        return ""
    # The last line is nearest to the fault.
    file, line, name = next(
        frame for frame in reversed(frames) if _distance(frame[0]) == nearest
    )
    return f"{file}, line {line}, in {name}"


def said_of(error: BaseException, *, foreign: bool = False) -> str:
    """Return the message of an error in user code, with its type and origin.

    Parameters
    ----------
    error : BaseException
        Error with its traceback.
    foreign : bool
        See `place_of`.
    """
    text = error.msg if isinstance(error, SyntaxError) else error
    place = place_of(error, foreign=foreign)
    return f"{type(error).__name__}: {text}{place and f' ({place})'}"


__all__ = [
    "SEPARATOR",
    "can_be_found",
    "installed_path",
    "is_code",
    "load_named",
    "place_of",
    "said_of",
]
