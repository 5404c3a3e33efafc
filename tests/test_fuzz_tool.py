"""`make fuzz` finds a fault and prints how to repeat it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
FUZZ = [sys.executable, str(ROOT / "tools/fuzz.py"), "--no-targets", "--jobs", "1"]
UNITS = "tests/leaves/test_units.py"


def test_the_suite_itself_tries_the_same_in_every_run(
    request: pytest.FixtureRequest,
) -> None:
    from hypothesis import settings

    if os.environ.get("BOTYARD_HYPOTHESIS", "botyard") == "botyard":
        assert settings().derandomize
        assert settings.get_profile("fuzz").derandomize is False


@pytest.mark.peer
def test_a_defect_that_the_suite_does_not_meet_is_found_and_can_be_seen_again(
    tmp_path: Path,
) -> None:
    """An angle is wrapped wrongly in one range of many:

    exploring finds it, and the printed command repeats it.
    """
    (tmp_path / "sitecustomize.py").write_text(
        "from botyard import units\nright = units.wrap_angle\n"
        "units.wrap_angle = lambda angle: right(angle) + (1.0 if 900.0 < "
        "abs(angle) < 5e5 else 0.0)\n"
    )
    paths = [
        str(tmp_path),
        str(ROOT / "src"),
        *filter(None, [os.environ.get("PYTHONPATH")]),
    ]
    kept = tmp_path / "kept"
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "BOTYARD_FUZZ_KEPT": str(kept),
    }
    env.pop("BOTYARD_HYPOTHESIS", None)
    done = subprocess.run(
        [*FUZZ, "--minutes", "2", UNITS],
        capture_output=True,
        text=True,
        timeout=PATIENCE + 120,
        env=env,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "reproduce_failure" in done.stdout
    command = (
        f"BOTYARD_HYPOTHESIS=fuzz {sys.executable} -m pytest "
        f"'{UNITS}::test_wrapped_angle_is_in_range_and_equivalent'"
    )
    assert command in done.stdout
    assert list((kept / "examples").iterdir()), "what failed is kept, and tried first"
    again = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=env,
        cwd=ROOT,
        check=False,
    )
    assert again.returncode == 1
    assert "reproduce_failure" in again.stdout


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_tool", ROOT / "tools/fuzz.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("does", "status", "says"),
    [
        (
            "os.kill(os.getpid(), 15)",
            2,
            "nothing was found; ended from outside before the time was over: fuzz_it.py (status -15)",
        ),
        ("os.kill(os.getpid(), 9)", 2, "fuzz_it.py (status -9)"),
        ("sys.exit(72)", 2, "fuzz_it.py (status 72)"),
        ("os.kill(os.getpid(), 11)", 1, "found, each with the command that repeats it"),
        ("open('crash-1', 'w').close(); os.kill(os.getpid(), 9)", 1, "crash-1"),
        ("sys.exit(77)", 1, "found, each with the command that repeats it"),
        ("pass", 0, "nothing was found\n"),
    ],
)
def test_a_target_that_was_killed_has_found_nothing(
    does: str,
    status: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tool = load_tool()
    target = tmp_path / "fuzz_it.py"
    target.write_text(f"import os, sys\n{does}\n")
    kept = tmp_path / "kept"
    (kept / "fuzz_it").mkdir(parents=True)
    # This failing input was found by an earlier run, so it must not count.
    old = kept / "fuzz_it/crash-0"
    old.touch()
    os.utime(old, (0, 0))
    monkeypatch.setattr(tool, "KEPT", kept)
    monkeypatch.setattr(tool, "targets", lambda: [target])
    monkeypatch.setattr(tool, "explore", lambda *_: ([], ""))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: True)
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--minutes", "0"])
    assert tool.main() == status
    out = capsys.readouterr().out
    assert says in out and "crash-0" not in out


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_property_tests_that_were_killed_have_found_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool = load_tool()
    monkeypatch.setattr(
        tool.subprocess,
        "run",
        lambda *_, **__: subprocess.CompletedProcess([], -15, "", ""),
    )
    assert tool.explore(["tests"], time.time() + PATIENCE, 1) == (
        [],
        "the property tests (status -15)",
    )
