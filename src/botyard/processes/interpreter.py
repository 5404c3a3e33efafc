"""The command line that carries out a function of botyard in another Python
interpreter. A leaf, and cheap to import.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_PACKAGE: Final = str(Path(__file__).resolve().parents[2])
_START: Final = (
    "import importlib, sys; sys.path.append(sys.argv.pop(1)); "
    "module, name = sys.argv.pop(1).split(':'); getattr(importlib.import_module(module), name)()"
)


def python_command(
    function: str, *arguments: str, unbuffered: bool = False
) -> list[str]:
    """A command line that imports a module of botyard in a new interpreter and calls
    one of its functions.

    The package is found where this process has found it. The working directory is no
    place of modules (``-P``): it may hold maps of strangers, and files that are called
    like modules of Python.

    Parameters
    ----------
    function : str
        ``module:function``, for instance ``botyard.__main__:main``. It is called
        without arguments.
    *arguments : str
        What stands in its ``sys.argv``, from index 1.
    unbuffered : bool
        Write what it prints at once (``-u``): for a process that runs other people's
        code into a log, so that prints and tracebacks keep their order and a kill loses
        nothing.

    Returns
    -------
    list of str
        The program, and its arguments.
    """
    return [
        sys.executable,
        *(["-u"] if unbuffered else []),
        "-P",
        "-c",
        _START,
        _PACKAGE,
        function,
        *arguments,
    ]


__all__ = ["python_command"]
