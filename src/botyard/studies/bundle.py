"""The files of a plan that another computer needs for its runs: what the plan names in
its own folder, and nothing else of that.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from botyard.errors import CommandLineError
from botyard.studies.plan import Plan
from botyard.studies.run_hash import files_of

MAX_SENT_BYTES: Final = 100 * 2**20
"""Bytes of all files."""


def copy_files(plan: Plan, target: Path) -> list[Path]:
    """Copy the files that a plan names into a folder, under the same relative paths.

    Files that are named by absolute paths, installed modules and shipped maps are not
    copied: they are expected on the other computer.

    Returns
    -------
    list of Path
        The paths, relative to the folder.

    Raises
    ------
    CommandLineError
        A file lies outside of the plan's folder, or they are too large together.
    OSError
        A file cannot be read, or the copy cannot be written.
    """
    copied = []
    left = MAX_SENT_BYTES
    for name in sorted(set(_relative(plan))):
        left -= (plan.folder / name).stat().st_size
        if left < 0:
            raise CommandLineError(
                f"{plan.path}: expected files of at most "
                f"{MAX_SENT_BYTES // 2**20} MiB that are to be sent, "
                f"found more with {name}; put what is large on a disk that all "
                "computers share, and name it by its absolute path"
            )

        to = target / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(plan.folder / name, to)  # with its mode: programs
        copied.append(name)

    return copied


def _relative(plan: Plan) -> Iterator[Path]:
    """Paths that are to be copied, relative to the plan's folder."""
    for path in files_of(plan):
        found = Path(os.path.relpath(path, plan.folder))
        if found.parts[0] == os.pardir:
            if os.pardir not in path.parts:
                continue  # named by its absolute path
            raise CommandLineError(
                f"{plan.path}: {found} lies outside of the plan's folder, of which files are sent; "
                "name it by its absolute path if all computers have it"
            )

        yield found
        for package in found.parents:
            if (
                found.suffix == ".py"
                and (plan.folder / package / "__init__.py").is_file()
            ):
                yield package / "__init__.py"


__all__ = ["MAX_SENT_BYTES", "copy_files"]
