"""Run the examples, and the code blocks of the page about serving from Python."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

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
