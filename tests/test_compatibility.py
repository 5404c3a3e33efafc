"""The compatibility page is made from data whose rows name existing tests."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tools import compatibility, control_reference, ros_reference

ROOT = Path(__file__).resolve().parent.parent
DATA = compatibility.read()


@cache
def functions(path: str) -> frozenset[str]:
    """Return the names of the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(
        n.name
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")
    )


def test_the_page_is_up_to_date() -> None:
    assert compatibility.PAGE.read_text("utf-8") == compatibility.page(DATA), (
        'run "make compatibility"'
    )


def test_the_table_of_operations_is_up_to_date() -> None:
    assert control_reference.PAGE.read_text("utf-8") == control_reference.page(), (
        'run "make compatibility"'
    )


def test_the_ros_reference_is_up_to_date() -> None:
    assert ros_reference.PAGE.read_text("utf-8") == ros_reference.page(), (
        'run "make compatibility"'
    )


@pytest.mark.parametrize("row", DATA["features"])
def test_every_row_says_what_is_true(row: str) -> None:
    priority, state, feature, tests, note = DATA["features"][row]
    assert priority in ("M", "S", "C")
    assert state in compatibility.STATES
    assert feature
    for test in tests.split():
        path, _, name = test.partition("::")
        assert name in functions(path), f"{test} does not exist"

    if state == "works":
        assert tests, "a row that works names a test"
    else:
        assert note, "a row that does not work says why, or when"

    assert state != "left out" or priority == "C", (
        "only rows of the least priority may be left out"
    )


def test_every_difference_is_named_by_a_test() -> None:
    text = "".join(p.read_text("utf-8") for p in (ROOT / "tests").rglob("*.py"))
    unnamed = [key for key in DATA["deviations"] if f'"{key}"' not in text]
    assert unnamed == [], (
        "write a test that names each of these keys of docs/reference/compatibility.toml"
    )


@pytest.mark.shared
def test_no_row_is_forgotten(shared: Path) -> None:
    """All rows of all areas are present with their priorities, and no others."""
    table = (shared / "reference/feature-table.md").read_text("utf-8")
    wanted = dict(
        re.findall(r"^\| ([A-Z]+-\d{3}) \|.*\| ([MSC]) \|$", table, re.MULTILINE)
    )
    total = re.search(r"^Total rows: (\d+)\.$", table, re.MULTILINE)
    assert total and len(wanted) == int(total[1]), (
        "a row of the table was not understood"
    )
    assert {row: values[0] for row, values in DATA["features"].items()} == wanted, (
        "[features] of docs/reference/compatibility.toml has one row for each "
        "row of the feature table, and no other"
    )


def test_the_protocol_page_names_every_command() -> None:
    from botyard.protocols.pioneer.commands import C, Ctrl
    from botyard.protocols.pioneer.handlers import table

    page = (ROOT / "docs/reference/protocol.md").read_text("utf-8")
    unnamed = [
        f"{C(n).name} {n}"
        for n in table()
        if not 35 <= n <= 38 and f"{C(n).name} {n}" not in page
    ]
    assert unnamed == [], (
        "add a row for each to the table of commands in docs/reference/protocol.md"
    )
    missing = [
        op
        for op in Ctrl
        if not re.search(rf"^\| (?:\d+, )?{int(op)}(?:, \d+)? \|", page, re.MULTILINE)
    ]
    assert missing == [], (
        "add a row for each to the table of SIM commands in docs/reference/protocol.md"
    )
