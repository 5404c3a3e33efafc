"""Code that a user names on the command line or in Python: ``module:name`` or
``file.py:name``.

To import a module is to run it. So only what the user of the process has named comes
here, never what a file, a saved state, a recording or a peer names.
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
"""Between a module, or a file, and the name of what is in it."""
_PREFIX: Final = "botyard_file_"
"""What modules that come from files are called in `sys.modules`, with a number behind
it.
"""
_FILES: Final[dict[Path, ModuleType]] = {}
_SEARCHED: Final[set[str]] = set()
"""Folders that were added to `sys.path`."""


def is_code(name: str) -> bool:
    """Whether a name is of the form ``module:name`` or ``file.py:name``."""
    module, separator, attribute = name.rpartition(SEPARATOR)
    return bool(module and separator) and all(
        part.isidentifier() for part in attribute.split(".")
    )


def load_named(name: str) -> Any:
    """What a name of the form ``module:name`` or ``file.py:name`` stands for.

    A module may also lie in the working folder, and a file imports modules from its own
    folder. A file is run once, however often something in it is named.

    Raises
    ------
    ValueError
        The name is of another form.
    ImportError
        There is no such module or file, or nothing of that name in it, or it ends the
        program when it is run (`SystemExit`).
    Exception
        What the module raises when it is run.
    """
    if not is_code(name):
        raise ValueError(f'expected module:name or file.py:name, found "{name}"')
    where, _, attribute = name.rpartition(SEPARATOR)
    found: Any
    try:
        found = _of_file(Path(where)) if where.endswith(".py") else _of_name(where)
    except SystemExit as error:
        # whoever loads code of others would end without a word
        raise ImportError(f"SystemExit: {error}").with_traceback(
            error.__traceback__
        ) from error

    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ImportError(f'there is no "{attribute}" in {where}')
        found = getattr(found, part)

    return found


def _of_name(name: str) -> ModuleType:
    if "" not in sys.path:
        _search(Path.cwd())
    return importlib.import_module(name)


def _search(folder: Path) -> None:
    """Look for modules in a folder, too."""
    if str(folder) not in sys.path:
        sys.path.append(
            str(folder)
        )  # last: nothing there takes the place of an installed module
        _SEARCHED.add(str(folder))


def installed_path() -> list[str]:
    """Where installed modules are looked for: `sys.path` without the folders of code
    that was loaded by its name.
    """
    return [folder for folder in sys.path if folder not in _SEARCHED]


def _of_file(path: Path) -> ModuleType:
    path = path.resolve()
    if path in _FILES:
        return _FILES[path]
    name = f"{_PREFIX}{len(_FILES)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ImportError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    _search(path.parent)
    # dataclasses and pickle look for it there
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise

    _FILES[path] = module
    return module


def can_be_found(name: str) -> bool:
    """Whether other programs can look for something by its name: not for code of the
    program itself (``__main__``), or without a name.
    """
    module, separator, _ = name.rpartition(SEPARATOR)
    return not separator or (
        is_code(name) and module != "__main__" and not module.startswith(_PREFIX)
    )


_PACKAGE: Final = str(Path(__file__).resolve().parents[1]) + os.sep


@cache
def _distance(file: str) -> int:
    """How far code of a file is from the user's: 0 his own, 1 installed, 2 that of
    Python or botyard.
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
    """The file of a frame; of generated code, such as the methods of data classes, that
    of its module.
    """
    file = frame.f_code.co_filename
    return str(frame.f_globals.get("__file__") or file) if file == "<string>" else file


def place_of(error: BaseException, *, foreign: bool = False) -> str:
    """Where an error comes from, in words: the user's own line that has led to it, or
    the last one of an installed module.

    If no such line has led to it, it is empty, or with `foreign` the last line of
    botyard or Python.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = [
        (_file_of(frame), line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    nearest = min((_distance(file) for file, _, _ in frames), default=2)
    if not frames or (nearest == 2 and not foreign):
        return ""
    file, line, name = next(
        frame for frame in reversed(frames) if _distance(frame[0]) == nearest
    )
    return f"{file}, line {line}, in {name}"


def said_of(error: BaseException, *, foreign: bool = False) -> str:
    """What an error of the user's code says, with its type and its place (`place_of`)."""
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
