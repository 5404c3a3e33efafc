"""`make mutants`:

the injected errors, the selected tests, and the detection of their failures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.mutants.changes import Change, changes, is_real
from tools.mutants.covered import Record

ROOT = Path(__file__).resolve().parent.parent
SOURCE = b'''"""Text for people: 1 < 2."""
from __future__ import annotations
import logging
LIMIT: int = 5
def f(x: "3 < 4", y=7) -> "1":
    """Not this: 1."""
    logging.info("not this: %d", 3)
    while x < LIMIT and (y  is not None):  # not < this
        x += 1
        if x == 3:
            break
    if not x:
        raise ValueError(f"not this {x + 1}")
    table[b"ab"] = min(x, y)
    return x - y
'''


def made(source: bytes = SOURCE) -> set[tuple[int, str, str]]:
    return {(c.line, *c.shown(source)) for c in changes("a.py", source)}


def test_each_kind_of_error_is_made_once_and_nothing_else_is() -> None:
    loop = "while x < LIMIT and (y is not None): # not < this"
    assert made() == {
        (4, "LIMIT: int = 5", "LIMIT: int = 6"),
        (4, "LIMIT: int = 5", "LIMIT: int = 4"),
        (5, 'def f(x: "3 < 4", y=7) -> "1":', 'def f(x: "3 < 4", y=8) -> "1":'),
        (5, 'def f(x: "3 < 4", y=7) -> "1":', 'def f(x: "3 < 4", y=6) -> "1":'),
        (8, loop, "while not (x < LIMIT and (y is not None)): # not < this"),
        (8, loop, "while ((x < LIMIT) or (y is not None)): # not < this"),
        (8, loop, "while x <= LIMIT and (y is not None): # not < this"),
        (8, loop, "while x >= LIMIT and (y is not None): # not < this"),
        (8, loop, "while x < LIMIT and (y is None): # not < this"),
        (9, "x += 1", "x -= 1"),
        (9, "x += 1", "x += 2"),
        (9, "x += 1", "x += 0"),
        (10, "if x == 3:", "if not (x == 3):"),
        (10, "if x == 3:", "if x != 3:"),
        (10, "if x == 3:", "if x == 4:"),
        (10, "if x == 3:", "if x == 2:"),
        (11, "break", "continue"),
        (12, "if not x:", "if not (not x):"),
        (12, "if not x:", "if (x):"),
        (13, 'raise ValueError(f"not this {x + 1}")', "pass"),
        (14, 'table[b"ab"] = min(x, y)', "pass"),
        (14, 'table[b"ab"] = min(x, y)', 'table[b"ab"] = max(x, y)'),
        (14, 'table[b"ab"] = min(x, y)', "table[b'a'] = min(x, y)"),
        (15, "return x - y", "return None"),
        (15, "return x - y", "return x + y"),
    }
    assert all(is_real(c, SOURCE) for c in changes("a.py", SOURCE))


def test_an_error_that_is_none_or_no_program_is_not_tried() -> None:
    one = changes("a.py", SOURCE)[0]
    same = Change(**{**vars(one), "new": SOURCE[one.start : one.end].decode() + " "})
    broken = Change(**{**vars(one), "new": ")"})
    assert not is_real(same, SOURCE)
    assert not is_real(broken, SOURCE)


@pytest.mark.parametrize(
    "path",
    [
        "botyard/formats/svg.py",
        "botyard/protocols/pioneer/session.py",
        "botyard/engine/build.py",
    ],
)
def test_every_error_in_a_real_file_is_a_program(path: str) -> None:
    source = (ROOT / "src" / path).read_bytes()
    found = changes(path, source)
    assert len(found) > 100
    assert all(is_real(c, source) for c in found[::25])


def test_tests_are_chosen_by_what_they_carry_out() -> None:
    record = Record(
        {"a": 1.0, "b": 0.1, "c": 5.0}, {"a.py": {9: {"a", "b"}, 12: {"a"}, 15: {"c"}}}
    )
    found = {
        (c.line, c.shown(SOURCE)[1]): record.tests(c) for c in changes("a.py", SOURCE)
    }
    assert found[9, "x -= 1"] == {"a", "b"}
    assert found[14, "pass"] == set()
    assert found[5, 'def f(x: "3 < 4", y=8) -> "1":'] == {"a", "b", "c"}, (
        "a default value: whoever calls the function"
    )
    assert found[4, "LIMIT: int = 6"] == {"a", "b", "c"}, (
        "carried out at the import: whoever does anything in the file"
    )


def test_quick_tests_and_those_of_the_layer_come_first_and_only_so_many() -> None:
    from tools.mutants.__main__ import choose

    path = "src/botyard/formats/a.py"
    (change,) = (
        c
        for c in changes(path, SOURCE)
        if c.new == "x + y" or c.shown(SOURCE)[1] == "return x + y"
    )
    seconds = {
        "tests/formats/t": 2.0,
        "tests/engine/t": 1.0,
        "tests/formats/u": 9.0,
        "tests/model/t": 4.0,
    }
    record = Record(seconds, {path: {15: set(seconds)}})
    assert choose(record, change, 8.0) == (
        ["tests/formats/t", "tests/engine/t"],
        3.0,
        False,
    )
    assert choose(record, change, 30.0) == (
        ["tests/formats/t", "tests/engine/t", "tests/formats/u", "tests/model/t"],
        16.0,
        True,
    )


def test_errors_of_a_row_are_made_where_no_other_row_looks() -> None:
    from tools.mutants.rows import draw, lines_of, tests_of

    record = Record(
        {"t.py::a[1]": 1.0, "t.py::a[2]": 1.0, "t.py::b": 1.0},
        {"a.py": {9: {"t.py::a[1]", "t.py::b"}, 15: {"t.py::a[2]"}}},
    )
    row_tests = {
        "ONE-001": tests_of(["t.py::a"], record),
        "TWO-001": tests_of(["t.py::b"], record),
    }
    assert row_tests["ONE-001"] == {"t.py::a[1]", "t.py::a[2]"}
    lines = lines_of(row_tests, record)
    assert lines == {
        "ONE-001": {("a.py", 9): 2, ("a.py", 15): 1},
        "TWO-001": {("a.py", 9): 2},
    }
    pool = {
        ("a.py", line): [(c, SOURCE) for c in changes("a.py", SOURCE) if c.line == line]
        for line in (9, 15)
    }
    assert [c.line for c, _ in draw(lines["ONE-001"], pool, 3, "1")] == [15, 9], (
        "one for each statement, its own first"
    )
    assert [c.line for c, _ in draw(lines["ONE-001"], pool, 1, "2")] == [15]


def test_the_interval_is_wilsons() -> None:
    from tools.mutants.__main__ import interval

    assert interval(0, 0) == (0.0, 1.0)
    # The expected interval is from Brown, Cai and DasGupta (2001), for 8 of 10.
    assert interval(8, 10) == pytest.approx(
        (0.49016, 0.94332),
        abs=1e-5,
    )
    low, high = interval(3000, 3000)
    assert high == 1.0
    assert low == pytest.approx(1.0 / (1.0 + 1.959964**2 / 3000))


TRIALS = '''
import json, pathlib, sys
from tools.mutants import trial
root = pathlib.Path(sys.argv[1])
trial.OTHERS = ("pytest",)
trial.load_others()
LIMITS = b"""import os, resource as r
def f(x):
    assert r.getrlimit(r.RLIMIT_CPU)[0] == 10 and r.getrlimit(r.RLIMIT_AS)[0] == 6 << 30 and r.getrlimit(r.RLIMIT_FSIZE)[0] == 256 << 20
    assert "botyard-mutant-" in os.getcwd()
    return x + 1
"""
def tried(text, *tests, stop=True):
    o = trial.Trial(root, "src/kept/mod.py", text, [f"tests/test_mod.py{t}" for t in tests or [""]], 0.0, stop).wait()
    return o.verdict, o.test
print(json.dumps([
    tried(None), tried(b"def f(x):\\n    return x - 1"), tried(b"def f(x):\\n    return x - 1", "::test_g"),
    tried(b"def f(x):\\n    return x * 2", stop=False), tried(b"1 / 0"), tried(b"import os\\ndef f(x): os.kill(os.getpid(), 24)"),
    tried(LIMITS, "::test_f"),
]))
endless = trial.Trial(root, "src/kept/mod.py", b"def f(x):\\n    while True: pass", ["tests/test_mod.py"], 0.0)
endless.until = 0.0
assert endless.wait().verdict == "limit" and not endless.folder.exists()
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutants are forked")
def test_what_tests_notice_is_seen_and_no_file_changes(tmp_path: Path) -> None:
    (tmp_path / "src/kept").mkdir(parents=True)
    (tmp_path / "src/kept/mod.py").write_text("def f(x):\n    return x + 1\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_mod.py").write_text(
        "from kept.mod import f\ndef test_f(): assert f(3) == 4\ndef test_g(): "
        "assert f(0)\ndef test_h(): assert f(1) == 2\n"
    )
    (tmp_path / "pyproject.toml").write_text("")
    # Importing other plug-ins takes most of the time.
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", TRIALS, str(tmp_path)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    right, killed, survived, two, broken, endless, limited = json.loads(done.stdout)
    assert right == ["survived", ""]
    assert killed == ["killed", "tests/test_mod.py::test_f"]
    assert survived == ["survived", ""]
    assert two == ["killed", "tests/test_mod.py::test_f\ntests/test_mod.py::test_g"]
    assert broken[0] == "import"
    assert endless == ["limit", "ended by signal 24"]
    assert limited == ["survived", ""]
    assert (tmp_path / "src/kept/mod.py").read_text() == "def f(x):\n    return x + 1\n"
    assert [p.name for p in (tmp_path / "src/kept").iterdir()] == ["mod.py"]


def test_the_tests_that_are_asked_are_those_of_make_test_layers() -> None:
    from tools.mutants.covered import SUITE

    done = subprocess.run(
        ["make", "-n", "test-layers"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f" loadgroup {' '.join(SUITE)} \n" in done.stdout
