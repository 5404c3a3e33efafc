"""Copy of the plan's files for other computers: only files in the plan's own folder."""

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
"""Maximum total size of the copied files, bytes."""


def copy_files(plan: Plan, target: Path) -> list[Path]:
    """Copy the files that a plan names into a folder, under the same relative paths.

    Files named by absolute path, installed modules and shipped maps are not copied.
    Such files must exist on the other computer.

    Parameters
    ----------
    plan : Plan
        Plan of the study.
    target : Path
        Folder for the copies.

    Returns
    -------
    list of Path
        Paths of the copies, relative to the folder.

    Raises
    ------
    CommandLineError
        A file lies outside of the plan's folder, or the files are too large together.
    OSError
        A file cannot be read, or a copy cannot be written.
    """
    copied = []
    left = MAX_SENT_BYTES
    for name in sorted(set(_relative(plan))):
        left -= (plan.folder / name).stat().st_size
        if left < 0:
            raise CommandLineError(
                f"{plan.path}: expected at most {MAX_SENT_BYTES // 2**20} MiB of "
                "files to send to the cluster, "
                f"found more with {name}; put large files on a disk that all "
                "nodes share, and name them by absolute path"
            )

        to = target / name
        to.parent.mkdir(parents=True, exist_ok=True)
        # `shutil.copy` keeps the mode, because programs must stay executable.
        shutil.copy(plan.folder / name, to)
        copied.append(name)

    return copied


def _relative(plan: Plan) -> Iterator[Path]:
    """Yield the paths of the files to copy, relative to the plan's folder.

    Parameters
    ----------
    plan : Plan
        Plan of the study.

    Yields
    ------
    Path
        Paths of the named files and of the ``__init__.py`` files of their packages,
        with repetitions.

    Raises
    ------
    CommandLineError
        A file named by a relative path lies outside of the plan's folder.
    """
    for path in files_of(plan):
        found = Path(os.path.relpath(path, plan.folder))
        if found.parts[0] == os.pardir:
            if os.pardir not in path.parts:
                # With an absolute path outside of the folder, the user states that all
                # nodes have the file.
                continue
            raise CommandLineError(
                f"{plan.path}: expected files in the plan's folder, which is "
                f"sent to the cluster, found {found}; "
                "name it by its absolute path if all nodes have it"
            )

        yield found
        # Without the ``__init__.py`` files, relative imports would fail on the nodes.
        for package in found.parents:
            if (
                found.suffix == ".py"
                and (plan.folder / package / "__init__.py").is_file()
            ):
                yield package / "__init__.py"


__all__ = ["MAX_SENT_BYTES", "copy_files"]
