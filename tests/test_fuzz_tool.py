"""`make fuzz` finds what is wrong, and says how to see it again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
FUZZ = [sys.executable, str(ROOT / "tools/fuzz.py"), "--no-targets", "--jobs", "1"]
UNITS = "tests/leaves/test_units.py"


def test_the_suite_itself_tries_the_same_in_every_run(request: pytest.FixtureRequest) -> None:
    from hypothesis import settings

    if os.environ.get("BOTYARD_HYPOTHESIS", "botyard") == "botyard":
        assert settings().derandomize
        assert settings.get_profile("fuzz").derandomize is False


@pytest.mark.peer
def test_a_defect_that_the_suite_does_not_meet_is_found_and_can_be_seen_again(tmp_path: Path) -> None:
    """An angle is wrapped wrongly in one range of many: exploring finds it, and the printed command shows it again."""
    (tmp_path / "sitecustomize.py").write_text(
        "from botyard import units\nright = units.wrap_angle\n"
        "units.wrap_angle = lambda angle: right(angle) + (1.0 if 900.0 < abs(angle) < 5e5 else 0.0)\n"
    )
    paths = [str(tmp_path), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = tmp_path / "kept"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "BOTYARD_FUZZ_KEPT": str(kept)}
    env.pop("BOTYARD_HYPOTHESIS", None)
    done = subprocess.run(
        [*FUZZ, "--minutes", "2", UNITS], capture_output=True, text=True, timeout=PATIENCE + 120, env=env, cwd=ROOT, check=False
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "reproduce_failure" in done.stdout
    command = (
        f"BOTYARD_HYPOTHESIS=fuzz {sys.executable} -m pytest '{UNITS}::test_wrapped_angle_is_in_range_and_equivalent'"
    )
    assert command in done.stdout
    assert list((kept / "examples").iterdir()), "what failed is kept, and tried first"
    again = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=PATIENCE, env=env, cwd=ROOT, check=False
    )
    assert again.returncode == 1
    assert "reproduce_failure" in again.stdout
