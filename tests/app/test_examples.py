"""Run the examples, and the code blocks of the page about serving from Python."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from tools.gallery import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
CODE = re.findall(
    r"```python\n(.*?)```",
    (ROOT / "docs/howto/python.md").read_text("utf-8"),
    flags=re.DOTALL,
)
CI = runpy.run_path(str(ROOT / "examples/test_robot.py"))

running = CI["running"]
test_it_stops_in_front_of_a_box = CI["test_it_stops_in_front_of_a_box"]
test_what_it_says_is_where_it_is = CI["test_what_it_says_is_where_it_is"]


def test_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/serve.py"), run_name="__main__")
    assert re.search(
        r"bob says that it has gone 5\d\d mm; it stands at WorldPose",
        capsys.readouterr().out,
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("two_robots", r"corner 4: .*shadow 1\.4\d m behind"),
        ("patrol", r"at Laboratory, (.|\n)*at Office 1, "),
        ("docking", r": 3\d %, not_charging(.|\n)*%, bulk, at \(1\.1, 4\.0\)"),
        ("go_to", r"\{'arrived': 8\}(.|\n)*robot7: "),
        ("push_box", r"8 s: robot x = 2\.9\d m, crate \(3\.4\d, 0\.10\)"),
        ("deadlock", r"deadlock after 18(.|\n)*completed after 48"),
        ("swarm_orca", r"90 s:  [01]\.\d\d m to go"),
        ("mapping", r"1\d% of the map seen, [678]\d\d cells are walls"),
        ("particle_filter", r"20\.0 s: error 0\.[01]\d m"),
    ],
)
def test_an_example_does_what_it_says(
    name: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / f"examples/{name}.py"), run_name="__main__")
    assert re.search(said, capsys.readouterr().out)


def test_the_gallery_shows_each_example_that_runs_here() -> None:
    run = {
        case[0]
        for mark in test_an_example_does_what_it_says.pytestmark  # type: ignore[attr-defined]
        for case in mark.args[1]
    }
    assert run == set(EXAMPLES)


def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(CODE) == 3
    for code in CODE:
        exec(compile(code, "docs/howto/python.md", "exec"), {})
    first, second, then, back = capsys.readouterr().out.splitlines()
    assert re.match(
        r"Address\(host='127.0.0.1', port=\d+\) http://127.0.0.1:\d+/#token=", first
    )
    assert second.startswith("1.0 WorldPose(x=0.1"), second
    assert then.startswith("WorldPose(x=10.") and then.count("WorldPose") == 2, then
    assert re.match(r"2\.0 WorldPose\(x=10\.", back), back
