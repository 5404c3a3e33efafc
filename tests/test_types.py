"""A user's program under strict type checking finds types for every name that it uses."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import botyard
from botyard import learning

PROGRAM = Path(__file__).with_name("typed") / "user_program.py"
NAMES = PROGRAM.with_name("every_name.py")


def test_a_strict_program_of_a_user(tmp_path: Path) -> None:
    """It is correct, as is a program with every name; with a wrong type or a misspelt
    name it is not. One run of mypy.
    """
    pytest.importorskip("mypy")
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nstrict = True\n", "utf-8")
    wrong = tmp_path / "wrong.py"
    text = PROGRAM.read_text("utf-8")
    assert "assert_type(sim.episode, int)" in text
    wrong.write_text(
        text.replace("assert_type(sim.episode, int)", "assert_type(sim.episode, str)"),
        "utf-8",
    )
    wrong.write_text(
        wrong.read_text("utf-8")
        + "\n\nbotyard.Simulatoin()\nbotyard.Budget(celsl=3)\n",
        "utf-8",
    )
    options = [
        "--config-file",
        settings,
        "--cache-dir",
        tmp_path / "cache",
        "--follow-imports=silent",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, PROGRAM, NAMES, wrong],
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(Path(__file__).parents[1] / "src")},
        check=False,
    )
    *found, end = done.stdout.splitlines()
    kinds = [
        line.rpartition(" ")[2]
        for line in found
        if "wrong.py" in line and " error: " in line
    ]
    assert kinds == ["[assert-type]", "[attr-defined]", "[call-arg]"], (
        done.stdout + done.stderr
    )
    assert end.startswith("Found 3 errors"), done.stdout


def test_the_other_program_uses_every_public_name() -> None:
    used = {
        (node.value.id, node.attr)
        for node in ast.walk(ast.parse(NAMES.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    public = {("botyard", name) for name in botyard.__all__} | {
        ("learning", name) for name in learning.__all__
    }
    assert public - used == set()
