"""Command lines that start parts of botyard in separate interpreters."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import botyard
from botyard.processes.interpreter import python_command
from tests.waiting import PATIENCE

SOURCE = Path(botyard.__file__).parent


@pytest.mark.parametrize("module", ["click", "json", "numpy", "botyard"])
def test_files_in_the_working_folder_are_no_modules(
    tmp_path: Path, module: str
) -> None:
    (tmp_path / f"{module}.py").write_text("raise SystemExit('a file of the user')")
    command = python_command("botyard.__main__:main", "models")
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0 and "p3dx" in done.stdout, done.stderr


def test_no_other_interpreter_is_started_with_modules_of_the_working_folder() -> None:
    """``-m`` puts the working directory first on the path; `native/build.py` uses it to
    start the linker of a developer's environment.
    """
    found = [
        p.relative_to(SOURCE).as_posix()
        for p in SOURCE.rglob("*.py")
        if re.search(r'executable,\s*"-m"', p.read_text())
    ]
    assert found == ["native/build.py"]
