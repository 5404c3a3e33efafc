"""Expansion of xacro files in a separate process.

xacro evaluates Python expressions of the file, so a file is a program of its author. A
process with limits of time and memory keeps a mistake in it, such as a macro that calls
itself, from stopping the simulator. It does not protect from a malicious author.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from botyard.app.needs import require
from botyard.errors import CommandLineError, ModelFileError
from botyard.formats.budget import Budget
from botyard.processes.interpreter import python_command

MAX_SECONDS: Final = 30
"""Longest time of an expansion, s."""
MAX_MEMORY: Final = 1 << 30
"""Largest memory of an expansion, bytes."""
MAX_ERROR: Final = 1000
"""Longest error of xacro that is shown, characters."""
_ARGUMENT: Final = re.compile(r"[A-Za-z_]\w*:=")


def expand() -> None:
    """Write the URDF text of a xacro file to standard output (function of a child process).

    The arguments of the process are the limit of memory, bytes, the limit of CPU time, s,
    the xacro file, and the arguments for the file, ``NAME:=VALUE``.
    """
    memory, seconds, file, *arguments = sys.argv[1:]
    # Windows has no such limits; the parent's timeout remains.
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(memory),) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds),) * 2)
    import xacro

    mappings = dict(text.split(":=", 1) for text in arguments)
    text = xacro.process_file(file, mappings=mappings).toxml()
    sys.stdout.buffer.write(text.encode())


def expanded(file: Path, arguments: Sequence[str], budget: Budget) -> bytes:
    """Return the URDF text of a xacro file.

    Parameters
    ----------
    file : Path
        xacro file.
    arguments : sequence of str
        Arguments of the file, each as ``NAME:=VALUE``.
    budget : Budget
        Limit of the text, bytes.

    Raises
    ------
    ModelFileError
        The file cannot be expanded within the limits.
    CommandLineError
        An argument has another form, or the extra is not installed.
    """
    require("xacro", what=f"reading {file.name}")
    for text in arguments:
        if not _ARGUMENT.match(text):
            raise CommandLineError(f"--argument: expected NAME:=VALUE, found {text}")
    command = python_command(
        f"{__name__}:{expand.__name__}",
        str(MAX_MEMORY),
        str(MAX_SECONDS),
        str(file.resolve()),
        *arguments,
    )
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=MAX_SECONDS,
            check=False,
            # Relative file names in a xacro file refer to its folder.
            cwd=file.resolve().parent,
        )
    except (OSError, ValueError) as error:
        raise ModelFileError(f"cannot be read: {error}", file) from None
    except subprocess.TimeoutExpired:
        raise ModelFileError(
            f"expected macros that expand within {MAX_SECONDS} s, found macros that take longer",
            file,
        ) from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"status {done.returncode}"
        if reason.startswith("RecursionError"):
            reason = "expected includes and macros that end, found ones that contain themselves"
        raise ModelFileError(f"xacro: {reason[:MAX_ERROR]}", file)
    if len(done.stdout) > budget.bytes:
        raise ModelFileError(
            f"expected macros that give at most {budget.bytes} bytes of URDF, "
            f"found {len(done.stdout)} bytes",
            file,
        )
    return done.stdout


__all__ = ["expanded"]
