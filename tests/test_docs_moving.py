"""Command lines of the pages for users of other simulators run as printed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from botyard.errors import ExitCode
from botyard.traffic.generate import generate
from tests.cli.test_cli import FAST, call
from tests.ports import free_port
from tests.test_docs import DOCS, example

PAGES = ("amrisim", "mobilesim", "stage", "mmrs", "ambf")
DEADLOCK = 11


def lines(page: str) -> list[str]:
    """Return the command lines in the tables of a page."""
    text = (DOCS / f"howto/from-{page}.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return re.findall(r"`botyard ([^`]*)`", "\n".join(rows))


@pytest.mark.parametrize("page", PAGES)
def test_each_page_has_command_lines(page: str) -> None:
    assert lines(page)


@pytest.mark.parametrize(
    ("page", "line"), [(page, line) for page in PAGES for line in lines(page)]
)
def test_command_lines_for_users_of_other_simulators_run(
    page: str,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a folder with the files that they name; simulators end after a moment."""
    example("armap", tmp_path).rename(tmp_path / "lab.map")
    example("stage", tmp_path).rename(tmp_path / "simple.world")
    shutil.copy(tmp_path / "simple.world", tmp_path / "lab.world")
    shutil.copy(Path(__file__).parent / "data/ambf.yaml", tmp_path / "robot.yaml")
    generate("warehouse", 4, 1).save(tmp_path / "task.json")
    monkeypatch.chdir(tmp_path)
    words = line.replace("embedded", f"embedded:{free_port(1)}").split()
    if words[:2] == ["traffic", "run"] and "--wait-for-supervisor" in words:
        # Nothing grants a sector here, so the run ends as a deadlock.
        words.remove("--wait-for-supervisor")
        code, _, err = call(
            *words, "--idle-limit", "0.5", "--speed", "50", capsys=capsys
        )
        assert code == DEADLOCK, err
    elif words[0] in ("traffic", "convert", "scenario"):
        code, out, err = call(*words, capsys=capsys)
        # Granting everything may end in a collision.
        assert (code == 0 or "dummy" in words) and out + err, err
    else:
        # The users have a ROS master; this test brings its own.
        more = ["--ros-master", f"embedded:{free_port(1)}"] * (
            "--ros1" in words or "--ambf" in words
        )
        more += ["--ambf-port", "0"] * ("--ambf" in words)
        code, out, err = call(*words, *more, *FAST, str(free_port(5)), capsys=capsys)
        assert (code, "ready" in out) == (ExitCode.OK, True), err
