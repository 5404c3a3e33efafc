"""Set-up of a checkout:

metadata without a build, visible progress, advice when a step fails, CI without PYTHON*
variables.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import install
import progress

ROOT = Path(__file__).resolve().parent.parent
METADATA = """
import pathlib, sys
sys.path.insert(0, "tools")
import build_backend as backend
folder = sys.argv[1]
name = backend.prepare_metadata_for_build_wheel(folder)
text = pathlib.Path(folder, name, "METADATA").read_text("utf-8")
assert "Name: botyard" in text and "Requires-Dist: numpy" in text and "Provides-Extra: jit" in text, text
print(backend.get_requires_for_build_editable())
print({m for m in sys.modules if m.partition(".")[0] in ("numba", "botyard", "build_web")})
"""


def test_metadata_need_no_build(tmp_path: Path) -> None:
    """pip asks a backend for metadata; without an answer it builds the wheel for it."""
    done = subprocess.run(
        [sys.executable, "-c", METADATA, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PIP_BUILD_TRACKER": "here"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    editable, imported = done.stdout.splitlines()
    assert editable.startswith("['editables") and editable.count("'") == 2, (
        "no compiler, no Node"
    )
    assert imported == "set()"


def test_progress_of_a_command_grows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PERIOD_S", 0.0)
    monkeypatch.setattr(progress, "POLL_S", 0.01)
    code = "import time\nfor k in range(3): print('Collecting', k, flush=True); time.sleep(0.2)"
    line = progress.Progress("packages")
    status, output = progress.run_watched(
        [sys.executable, "-c", code], line, lambda text: f"{text.count('Coll')} found"
    )
    assert status == 0 and output.count("Collecting") == 3
    shown = capsys.readouterr().err.splitlines()
    counts = [int(text.split()[1]) for text in shown]
    assert counts == sorted(set(counts)) and len(counts) >= 2, (
        "each line is shown once, and says more than the one before"
    )


def test_a_log_gets_a_line_at_most_every_two_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    line = progress.Progress("kernels")
    for k in range(41):
        now[0] = k / 10
        line.show(f"{k} %")

    assert capsys.readouterr().err.splitlines() == [
        "kernels: 0 %",
        "kernels: 20 %",
        "kernels: 40 %",
    ]


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("ERROR: No matching distribution found for numpy", "Check the network"),
        ("OSError: [Errno 28] No space left on device", "Free some disk space"),
        ("ERROR: something else", "Solve the problem that pip reports above"),
    ],
)
def test_a_failure_says_what_to_do(
    said: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = progress.Progress("packages")
    assert (
        progress.fail(
            line,
            "pip could not install the packages",
            f"more\n{said}\n",
            install._advice(said),
        )
        == 1
    )
    shown = capsys.readouterr().err.splitlines()
    assert f"  {said}" in shown and advice in shown[-1]


def test_packages_are_counted(tmp_path: Path) -> None:
    state = install.State(tmp_path)
    (tmp_path / "some.whl").write_bytes(bytes(3_000_000))
    assert (
        state("Collecting numpy\nRequirement already satisfied: pip\n")
        == "2 found, 3 MB fetched"
    )
    (tmp_path / "some.whl").unlink()
    assert state("Collecting numpy\n") == "1 found, 3 MB fetched", (
        "pip removes its files; what was fetched does not shrink"
    )
    assert state("Installing collected packages: a, b, c\n") == "0 of 3 installed"


@pytest.mark.skipif(
    shutil.which("make") is None or os.name == "nt", reason="needs make"
)
def test_an_absent_peer_is_a_failure_in_ci(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "expr", "nproc"):
        (programs / name).symlink_to(str(shutil.which(name)))
    user = programs / "id"
    # The user must not be root: root would install the peers.
    user.write_text("#!/bin/sh\necho 1000\n")
    user.chmod(user.stat().st_mode | stat.S_IXUSR)
    for name in (".core", ".all"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() + 1000, time.time() + 1000))

    (tmp_path / "bin/python").write_text("")
    command = [str(shutil.which("make")), "peers", f"VENV={tmp_path}", "PYTHON=false"]
    for ci in ("true", ""):
        env = {"PATH": str(programs), "CI": ci}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "absent and cannot be installed" in done.stdout, (
            done.stdout + done.stderr
        )
        assert ("are skipped" in done.stdout) == (not ci)
        assert done.returncode != 0 if ci else "build_web" not in done.stdout


def test_ci_starts_make_without_variables_of_python(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    make = tmp_path / "make"
    make.write_text("#!/bin/sh\nenv\n")
    make.chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/h",
    }
    done = subprocess.run(
        ["bash", str(tmp_path / ".ci/run")],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "HOME=/h" in done.stdout and "CI=true" in done.stdout
    assert "PYTHON" not in done.stdout
