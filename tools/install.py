"""``python tools/install.py ARGUMENTS``: run ``pip install ARGUMENTS`` in this
environment, and show how far it is.

Standard library only: it is the first program that a new environment runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from progress import Progress, fail, run_watched

MB: Final = 10**6


class State:
    """Progress of pip: packages found and megabytes fetched, then packages installed.

    Parameters
    ----------
    folder : Path
        Folder of pip's temporary files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._packages = Path(sysconfig.get_path("purelib"))
        self._before = self._installed()
        self._most = 0

    def __call__(self, output: str) -> str:
        """Return the text of the progress."""
        listed = re.search(
            r"^Installing collected packages: (.*)$", output, re.MULTILINE
        )
        if listed:
            return f"{self._installed() - self._before} of {listed[1].count(',') + 1} installed"
        found = len(
            re.findall(
                r"^(?:Collecting|Requirement already satisfied:) ", output, re.MULTILINE
            )
        )
        return f"{found} found, {self._fetched() // MB} MB fetched"

    def _installed(self) -> int:
        return sum(1 for _ in self._packages.glob("*.dist-info"))

    def _fetched(self) -> int:
        """Return the largest total of bytes in pip's temporary files so far, because pip
        removes them again.
        """
        size = 0
        for folder, _, files in os.walk(self._folder):
            for name in files:
                # Pip may remove the file between the listing and this call.
                with contextlib.suppress(OSError):
                    size += os.path.getsize(os.path.join(folder, name))

        self._most = max(self._most, size)
        return self._most


def main() -> int:
    """Run the command."""
    progress = Progress("packages")
    progress.show("asking the package index")
    with tempfile.TemporaryDirectory(prefix="botyard-setup-") as folder:
        status, output = run_watched(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--progress-bar=off",
                *sys.argv[1:],
            ],
            progress,
            State(Path(folder)),
            env={**os.environ, "TMPDIR": folder, "TEMP": folder, "TMP": folder},
        )

    if status:
        return fail(
            progress, "pip could not install the packages", output, _advice(output)
        )

    progress.done("installed")
    return 0


def _advice(output: str) -> str:
    """Return advice after a failure of pip."""
    if re.search(
        r"Could not find a version|No matching distribution|Connection|Temporary failure|Network",
        output,
    ):
        return (
            "Check the network and pip's settings (pip config list: index, "
            "proxy), then run the command again"
        )

    if "No space left" in output:
        return (
            "Free some disk space (1 GB for the core, 4 GB for all extras), "
            "then run the command again"
        )

    if "hashes" in output.lower():
        return (
            "The package index has other files than requirements-dev.lock names: "
            "run make lock, or ask the operator of the index"
        )

    return (
        "Solve the problem that pip reports above, then run the command again; make "
        "clean removes an incomplete environment"
    )


if __name__ == "__main__":
    sys.exit(main())
