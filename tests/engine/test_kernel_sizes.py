"""Kernels stay readable: length, number of arguments and branches are bounded."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import botyard

ROOT = Path(botyard.__file__).parent
FILES = sorted(
    p
    for part in ("engine", "navigation", "pictures", "traffic")
    for p in (ROOT / part / "kernels").glob("*.py")
)
FILES += [
    ROOT / "engine" / name
    for name in (
        "batch.py",
        "batchchecks.py",
        "batchlayout.py",
        "batchrays.py",
        "episode_starts.py",
        "step.py",
        "layout.py",
        "masslayout.py",
    )
]
MAX_STATEMENTS, MAX_ARGUMENTS, MAX_COMPLEXITY = 55, 12, 20


def complexity(function: ast.FunctionDef) -> int:
    """Return the cyclomatic complexity (McCabe, 1976), in which each further condition
    of an expression counts.
    """
    branches = (ast.If, ast.For, ast.While, ast.IfExp, ast.comprehension)
    found = 1
    for node in ast.walk(function):
        found += isinstance(node, branches)
        found += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0

    return found


def too_large(source: str) -> list[str]:
    found = []
    for f in ast.walk(ast.parse(source)):
        if isinstance(f, ast.FunctionDef):
            size = (
                sum(isinstance(n, ast.stmt) for n in ast.walk(f)) - 1,
                len(f.args.args) + len(f.args.kwonlyargs),
                complexity(f),
            )
            if (
                size[0] > MAX_STATEMENTS
                or size[1] > MAX_ARGUMENTS
                or size[2] > MAX_COMPLEXITY
            ):
                found.append(
                    f"{f.name}: {size[0]} statements, {size[1]} arguments, complexity {size[2]}"
                )

    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_kernels_are_small(path: Path) -> None:
    assert too_large(path.read_text("utf-8")) == []


def test_large_ones_are_found() -> None:
    many = ", ".join(f"a{k}" for k in range(13))
    assert too_large(f"def f({many}): pass\ndef g(a): return a\n") == [
        "f: 1 statements, 13 arguments, complexity 1"
    ]
    assert too_large("def f(a):\n" + "    a += 1\n" * 56) == [
        "f: 56 statements, 1 arguments, complexity 1"
    ]
    assert too_large("def f(a): return a and " + " or ".join("a" * 21)) == [
        "f: 1 statements, 1 arguments, complexity 22"
    ]


ENUMERATED = {"control", "drive", "err_mode", "mode_x", "mode_a", "fault", "contact"}
"""Columns whose numbers are members of enumerations, and variables with such numbers."""


def bare_numbers(source: str) -> list[str]:
    """Return comparisons and assignments of enumerated columns with plain numbers."""

    def is_enumerated(node: ast.expr) -> bool:
        while isinstance(node, ast.Subscript):
            node = node.value
        name = node.attr if isinstance(node, ast.Attribute) else ""
        return (node.id if isinstance(node, ast.Name) else name) in ENUMERATED

    def is_number(node: ast.expr) -> bool:
        return isinstance(node, ast.Constant) and type(node.value) is int

    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Assign):
            sides = [*node.targets, node.value]
        else:
            continue
        if any(map(is_enumerated, sides)) and any(map(is_number, sides)):
            found.append(ast.unparse(node))

    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_numbers_of_enumerations_have_names(path: Path) -> None:
    assert bare_numbers(path.read_text("utf-8")) == []


def test_bare_numbers_are_found() -> None:
    assert bare_numbers(
        "def f(s, i, drive, fault):\n"
        "    if s.control[i] != 0 or drive[i] == OMNI or fault > 1:\n"
        "        s.mode_x[i] = s.mode_a[i] = 0\n"
        "        s.stall[i] = 1\n"
    ) == ["s.mode_x[i] = s.mode_a[i] = 0", "s.control[i] != 0", "fault > 1"]
