"""Plans: refusals with line numbers; points and keys of runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import PlanError
from botyard.processes.codeload import load_named
from botyard.studies.expand import samples_of
from botyard.studies.imports import imported_files
from botyard.studies.plan import Plan, RangeKeys, SampleKeys, read_plan
from botyard.studies.run_hash import files_of, runs_of
from botyard.studies.run_spec import filled, names_in

LAB = "def drive(sim, params, seed):\n    return {}\n"


ROBOTS = (
    "measures: [time]\nrobots:\n  bob: {pose: [0, 0, 0]}\n  cy: %s\n  dan: "
    "p3dx\nlimits: {simulated: 5}"
)


def plan_of(folder: Path, text: str, name: str = "plan.yaml") -> Plan:
    (folder / name).write_text("study: 1\n" + text, "utf-8")
    return read_plan(folder / name)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            "run: lab.py:drive\ngird: {a: [1]}",
            3,
            'there is no key "gird" here; did you mean "grid"?',
        ),
        ("run: lab", 2, "expected module:function"),
        ("seeds: 3", 1, "expected one of run, map, robots and traffic"),
        ("run: lab.py:drive\ngrid:\n  a: []", 4, "expected values, found none"),
        (
            "run: lab.py:drive\ngrid:\n  a: [1,\n   1]",
            5,
            "expected each value once, found 1 twice",
        ),
        ("run: lab.py:drive\ngrid:\n  a: [2026-01-01]", 4, "expected a number, a text"),
        (
            "run: lab.py:drive\ngrid:\n  seed: [1]",
            4,
            "expected a name of letters, digits and _, but not seed, key, status, error",
        ),
        (
            "run: lab.py:drive\ngrid:\n  status: [1]",
            4,
            'but not seed, key, status, error, found "status"',
        ),
        (
            "run: lab.py:drive\ngrid: {a: [1]}\nseeds: 3\ngrid: {b: [1]}",
            5,
            'the key "grid" occurs twice',
        ),
        (
            "run: lab.py:drive\ngrid: {a: [1]}\nsample: {count: 2, values: {a: {uniform: [0, 1]}}}",
            4,
            "is also in the grid",
        ),
        (
            "run: lab.py:drive\nsample: {count: 2, values: {a: {log: [0, 1]}}}",
            3,
            "expected numbers above 0",
        ),
        (
            "run: lab.py:drive\nsample: {count: 2, values: {a: {}}}",
            3,
            "expected either uniform",
        ),
        (
            "run: lab.py:drive\nsample: {count: 2, values: {a: {uniform: [-1.7e+308, 1.7e+308]}}}",
            3,
            "expected a finite range",
        ),
        (
            "run: lab.py:drive\nsample:\n  count: 2\n  seed: -1\n  method: "
            "sobol\n  values: {a: {uniform: [0, 1]}}",
            5,
            "from 0 to",
        ),
        (
            'run: lab.py:drive\ngrid:\n  a: ["\\uD800"]',
            4,
            "found half of a UTF-16 surrogate pair",
        ),
        ("run: lab.py:drive\nseeds: [1, 1]", 3, "none of them twice"),
        ("run: lab.py:drive\nseeds: 2000000", 3, "expected 1 … 1000000 seeds"),
        (
            "run: lab.py:drive\nseeds: 1000\ngrid: {a: [1, 2], b: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n"
            "sample: {count: 1000, values: {d: {uniform: [0, 1]}}}",
            1,
            "at most 1000000 runs, found 18000000",
        ),
        ("run: lab.py:drive\nlimits:\n  wall: 0", 4, "expected a number above 0"),
        ("run: lab.py:drive\nmeasures: [time]", 3, "cannot be combined with run"),
        ("map: office\nmeasures: [time]\nlimits: {wall: 5}", 4, "expected simulated"),
        (
            "map: office\nmeasures: [reached]\nlimits: {simulated: 5}",
            3,
            'expected a goal for the measure "reached", found none',
        ),
        ("map: office\nmeasures: [speed]\nlimits: {simulated: 5}", 3, "speed"),
        (
            "map: office\nmeasures: [time]\nlimits: {simulated: 5}\ngrid:\n  v: [1]",
            6,
            "unused parameter: expected $",
        ),
        (
            "map: $mpa\nmeasures: [time]\nlimits: {simulated: 5}\ngrid: {map: [office]}",
            2,
            'unknown parameter $mpa; did you mean "map"?',
        ),
        (
            "traffic: {task: ring, supervisor: bankers}\nmap: office",
            3,
            "cannot be combined with traffic",
        ),
        (
            "traffic: {task: ring, supervisor: $s, latency: $s}\ngrid: {s: [bankers]}",
            2,
            "traffic.latency",
        ),
        (ROBOTS % "{pose: [0, 1]}", 5, "robots.cy.pose"),
        (
            ROBOTS % "{modle: p3dx}",
            5,
            'robots.cy: there is no key "modle" here; did you mean "model"?',
        ),
        (
            ROBOTS % "p3dxx",
            5,
            'robots.cy: no robot model "p3dxx"; did you mean "p3dx"?',
        ),
        (
            ROBOTS % "\n    pose: [0, 1, 2]\n    model: p3dxx",
            7,
            'robots.cy.model: no robot model "p3dxx"',
        ),
        (
            ROBOTS % "\n    pose: [0, 1, 2]\n    model:\n      extends: p3dxx",
            8,
            'robots.cy.model.extends: expected the name of a robot model, found "p3dxx"',
        ),
        (
            ROBOTS
            % "\n    model:\n      extends: p3dx\n      description: a\n      outline: wide",
            9,
            "robots.cy.model.outline",
        ),
        (
            ROBOTS % "\n    model:\n      extends: p3dx\n      sonra: 1",
            8,
            'robots.cy.model: there is no key "sonra" here',
        ),
        (
            ROBOTS % "{model: {extends: [p3dx]}}",
            5,
            "robots.cy.model.extends: expected the name of a robot model",
        ),
        (
            ROBOTS % "\n    model: p3dx\n    pose:\n      - 1\n      - $zz\n      - 0",
            9,
            "unknown parameter $zz",
        ),
        (
            "run: lab.py:drive\nsample:\n  count: 2\n  values:\n    a: {log: [1, "
            "2]}\n    b: {log: [1]}",
            7,
            "sample.values.b.log",
        ),
        ("run: lab.py:drive\ngrid:\n  a: [1]\n  b: 7", 5, "grid.b"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    (tmp_path / "lab.py").write_text(LAB)
    with pytest.raises(PlanError) as error:
        plan_of(tmp_path, text)
    assert said in str(error.value)
    assert error.value.line == line


def test_another_version_and_other_yaml_are_refused(tmp_path: Path) -> None:
    for text, said in (
        ("study: 2\nrun: a:b", "expected version 1"),
        ("- 1", "expected the keys"),
        ("study: [", "not YAML"),
    ):
        (tmp_path / "p.yaml").write_text(text)
        with pytest.raises(PlanError, match=said):
            read_plan(tmp_path / "p.yaml")


def test_points_are_grid_times_samples_times_seeds(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        "run: lab.py:drive\ngrid: {a: [1, 2], b: [x]}\nsample: {count: 3, "
        "values: {c: {uniform: [0, 1]}}}\nseeds: {first: 5, count: 2}",
    )
    runs = runs_of(plan)
    assert len(runs) == plan.count == 12
    assert [(r.values["a"], r.seed) for r in runs[:7]] == [
        (1, 5),
        (1, 6),
        (1, 5),
        (1, 6),
        (1, 5),
        (1, 6),
        (2, 5),
    ]
    assert len({r.key for r in runs}) == 12
    assert [r.values["c"] for r in runs[:6]] == [r.values["c"] for r in runs[6:]]


def test_a_key_changes_with_what_a_run_depends_on_and_with_nothing_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "lab.py").write_text(LAB)
    (tmp_path / "data.csv").write_text("1")
    text = "run: lab.py:drive\ngrid: {a: [1, 2]}\nfiles: [data.csv]\nlimits: {simulated: 5}\n"
    first = {r.key for r in runs_of(plan_of(tmp_path, text))}
    for other in (
        text + "record: always\n",
        text + "name: other\nunits: {a: m}\n",
        text.replace("5", "5, wall: 7, retries: 3, memory: 9"),
    ):
        assert {r.key for r in runs_of(plan_of(tmp_path, other))} == first

    assert {
        r.key for r in runs_of(plan_of(tmp_path, text.replace("[1, 2]", "[3, 2, 1]")))
    } > first
    for other in (
        text.replace("5", "6"),
        text.replace("a:", "b:"),
        text + "seeds: [2]\n",
    ):
        assert not {r.key for r in runs_of(plan_of(tmp_path, other))} & first

    for name in ("lab.py", "data.csv"):
        (tmp_path / name).write_text((tmp_path / name).read_text() + "\n# other\n")
        assert not {r.key for r in runs_of(plan_of(tmp_path, text))} & first
        first = {r.key for r in runs_of(plan_of(tmp_path, text))}


def test_the_key_knows_the_map_that_a_parameter_names(tmp_path: Path) -> None:
    (tmp_path / "a.map").write_text("one")
    (tmp_path / "b.map").write_text("two")
    text = "map: $m\nmeasures: [time]\nlimits: {simulated: 5}\ngrid: {m: [a.map, b.map, office]}"
    before = [r.key for r in runs_of(plan_of(tmp_path, text))]
    (tmp_path / "b.map").write_text("three")
    after = [r.key for r in runs_of(plan_of(tmp_path, text))]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]


def test_a_module_beside_the_plan_is_found(tmp_path: Path) -> None:
    (tmp_path / "lab.py").write_text(LAB)
    before = runs_of(plan_of(tmp_path, "run: lab:drive"))
    (tmp_path / "lab.py").write_text(LAB + "#")
    assert runs_of(plan_of(tmp_path, "run: lab:drive")) != before


TREE = {
    "lab.py": "import json, yaml, one\nfrom pack.sub import two, VALUE\ndef "
    "f():\n    from pack import three\nf()\nimport space.far",
    "one.py": "import lab\nfrom os import path\ntry:\n    import nowhere\nexcept "
    "ImportError:\n    pass",
    "pack/__init__.py": "from . import inner",
    "pack/inner.py": "from .sub.four import *",
    "pack/three.py": "import pack.sub.two",
    "pack/sub/__init__.py": "VALUE = 1",
    "pack/sub/two.py": "from ..three import __name__",
    "pack/sub/four.py": "",
    "pack/unused.py": "",
    "space/far.py": "",
    "json.py": "raise SystemExit('not this one')",
    "yaml.py": "raise SystemExit('not this one')",
    "unused.py": "",
}


def write_tree(folder: Path) -> None:
    for name, text in TREE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def test_imports_that_are_read_are_those_that_python_makes(tmp_path: Path) -> None:
    write_tree(tmp_path)
    code = (
        "import sys; sys.path.append(sys.argv[1]); import lab\n"
        "print(*(m.__file__ for m in list(sys.modules.values()) if (getattr(m, "
        "'__file__', '') or '').startswith(sys.argv[1])), sep='\\n')"
    )
    line = [sys.executable, "-P", "-c", code, str(tmp_path)]
    made = subprocess.run(
        line, check=True, capture_output=True, text=True
    ).stdout.split()
    assert {tmp_path / "lab.py"} | imported_files(tmp_path / "lab.py", tmp_path) == set(
        map(Path, made)
    )
    assert len(made) == 9
    (tmp_path / "lab.py").write_text(
        "from .. import lab\nimport one",
        "utf-8",
        # The module lies outside the plan's folder, so Python refuses it.
    )
    (tmp_path / "one.py").write_text("import unused\nthis is no Python", "utf-8")
    assert imported_files(tmp_path / "lab.py", tmp_path) == {tmp_path / "one.py"}


def test_code_that_was_loaded_from_another_folder_takes_no_place(
    tmp_path: Path,
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "botyard_beside.py").write_text("", "utf-8")
        (tmp_path / folder / "lab.py").write_text(
            f"import botyard_beside\n{LAB}", "utf-8"
        )

    load_named(f"{tmp_path / 'one' / 'lab.py'}:drive")
    two = tmp_path / "two"
    assert imported_files(two / "lab.py", two) == {two / "botyard_beside.py"}


@pytest.mark.parametrize("run", ["lab.py:drive", "lab:drive"])
def test_a_key_changes_with_the_modules_that_are_imported(
    tmp_path: Path, run: str
) -> None:
    write_tree(tmp_path)
    before = runs_of(plan_of(tmp_path, f"run: {run}"))
    (tmp_path / "unused.py").write_text("other", "utf-8")
    assert runs_of(plan_of(tmp_path, f"run: {run}")) == before
    (tmp_path / "pack/sub/four.py").write_text("A = 2", "utf-8")
    assert runs_of(plan_of(tmp_path, f"run: {run}")) != before


def test_a_package_is_imported_before_the_module_in_it_that_is_run(
    tmp_path: Path,
) -> None:
    write_tree(tmp_path)
    (tmp_path / "pack/sub/two.py").write_text(LAB, "utf-8")
    code = (
        "import sys; sys.path.append(sys.argv[1]); import pack.sub.two\n"
        "print(*(m.__file__ for name, m in sys.modules.items() if "
        "name.startswith('pack')), sep='\\n')"
    )
    line = [sys.executable, "-P", "-c", code, str(tmp_path)]
    made = set(
        map(
            Path,
            subprocess.run(
                line, check=True, capture_output=True, text=True
            ).stdout.split(),
        )
    )
    plan = plan_of(tmp_path, "run: pack.sub.two:drive")
    assert files_of(plan) == made
    assert len(made) == 5
    before = runs_of(plan)
    (tmp_path / "pack/inner.py").write_text("A = 3", "utf-8")
    assert runs_of(plan) != before


def test_a_key_tells_which_of_two_names_is_that_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "lab.py").write_text(LAB)
    (tmp_path / "one").write_text("same")
    plan = plan_of(
        tmp_path,
        "map: office\ncontrollers: {a: {name: one, with: two}}\nmeasures: "
        "[time]\nlimits: {simulated: 1}",
    )
    before = runs_of(plan)
    (tmp_path / "one").rename(tmp_path / "two")
    assert runs_of(plan) != before


@pytest.mark.parametrize("name", ["nowhere", "x" * 300, "a\\0b"])
def test_a_listed_file_that_is_not_there_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "lab.py").write_text(LAB)
    with pytest.raises(PlanError, match="expected an existing file"):
        runs_of(plan_of(tmp_path, f'run: lab.py:drive\nfiles: ["{name}"]'))


@pytest.mark.skipif(
    not Path("/proc/self/mem").exists(),
    reason="a file that is there and cannot be read, whoever asks (Linux)",
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "lab.py").write_text(LAB)
    with pytest.raises(PlanError, match="cannot read the file"):
        runs_of(plan_of(tmp_path, "run: lab.py:drive\nfiles: [/proc/self/mem]"))


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_samples_are_in_range_and_more_of_them_begin_with_the_same(method: str) -> None:
    values = {"a": RangeKeys(uniform=(-1.0, 3.0)), "b": RangeKeys(log=(0.01, 100.0))}
    few, many = (
        samples_of(SampleKeys(count=n, values=values, method=method))
        for n in (10, 1000)
    )  # type: ignore[arg-type]
    assert many[:10] == few
    assert all(-1.0 <= row["a"] < 3.0 and 0.01 <= row["b"] <= 100.0 for row in many)
    # The middle of the range on a logarithmic scale is 1.
    below = sum(row["b"] < 1.0 for row in many)
    assert 450 < below < 550
    assert samples_of(SampleKeys(count=10, values=values, method=method, seed=2)) != few  # type: ignore[arg-type]


@given(st.integers() | st.text() | st.lists(st.floats(allow_nan=False)))
def test_a_name_alone_becomes_the_value_itself(value: object) -> None:
    assert filled({"x": ["$a", 1, "$$a"]}, {"a": value}) == {"x": [value, 1, "$a"]}
    assert filled("v=$a.", {"a": value}) == f"v={value}."


def test_ports_are_left_for_the_run() -> None:
    assert filled("$port.bob", {}) == "$port.bob"
    assert names_in(["$port.bob", "$a-$b", {"k": "$$c"}]) == {"a", "b"}
