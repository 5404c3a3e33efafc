"""Command line that runs a function of botyard in another Python interpreter.

Cheap to import.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_PACKAGE: Final = str(Path(__file__).resolve().parents[2])
# The package's folder goes to the end of the path, behind the standard library and
# installed packages.
_START: Final = (
    "import importlib, sys; sys.path.append(sys.argv.pop(1)); "
    "module, name = sys.argv.pop(1).split(':'); getattr(importlib.import_module(module), name)()"
)


def python_command(
    function: str, *arguments: str, unbuffered: bool = False
) -> list[str]:
    """Return a command line that calls a function of botyard in a new interpreter.

    The new process finds the package where this process found it. The working folder is
    not on the module path (``-P``): it may contain untrusted files named like Python
    modules.

    Parameters
    ----------
    function : str
        ``module:function``, such as ``botyard.__main__:main``; called without
        arguments.
    *arguments : str
        Contents of ``sys.argv`` from index 1.
    unbuffered : bool
        Do not buffer output (``-u``). For processes that run user code with output to a
        log: prints and tracebacks keep their order, and a kill loses nothing.

    Returns
    -------
    list of str
        The program and its arguments.
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
