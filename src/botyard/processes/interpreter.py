"""Command line that runs a function of botyard in another Python interpreter.

This module is cheap to import.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_PACKAGE: Final = str(Path(__file__).resolve().parents[2])
# Append the package's folder to the path, behind the standard library and installed
# packages.
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
        Do not buffer output (``-u``). Use it for processes that run user code with
        output to a log: prints and tracebacks keep their order, and a kill loses
        nothing.

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


def leave_working_folder() -> None:
    """Replace the working folder on the module path by the package's folder."""
    if not sys.flags.safe_path:
        # The first entry is the folder of the script, or the working folder with
        # ``-m``.
        del sys.path[0]
    if _PACKAGE not in sys.path:
        sys.path.append(_PACKAGE)


__all__ = ["leave_working_folder", "python_command"]
