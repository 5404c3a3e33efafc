"""The program that replaces ``botyard run --noninteractive`` and supervises the
simulator.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import botyard
from botyard.version import __version__
from tests.ports import free_port
from tests.waiting import PATIENCE, wait

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="elsewhere a program cannot be replaced"
)
START = "from pathlib import Path; from botyard.servers.jobs.supervise import become_supervisor;"
PACKAGE = str(Path(botyard.__file__).parents[1])


def _run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": PACKAGE}
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=folder,
        env=env,
        check=False,
    )


def test_files_in_the_working_folder_are_no_modules(tmp_path: Path) -> None:
    for name in ("json", "signal", "tempfile"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the user')")
    code = f"{START} become_supervisor([], None, '/dev/null/x', Path.cwd())"
    done = _run(code, tmp_path)
    assert (
        "botyard: error: cannot write the state file for restarts after a crash in /dev/null/x"
        in done.stderr
    )
    assert "a file of the user" not in done.stderr


def test_a_long_command_line_is_handed_over(tmp_path: Path) -> None:
    """The system allows 128 KiB for one argument, and much more for all together."""
    code = (
        "import sys; sys.platform = 'a system without a fork';"
        f"{START} become_supervisor(['--version'] * 20000, None, None, Path('/'))"
    )
    done = _run(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and __version__ in done.stdout


def test_an_interrupt_just_before_the_program_is_replaced_is_not_lost(
    tmp_path: Path,
) -> None:
    code = f"""
from botyard.cli import interrupts
interrupts.begin()
import os, signal
from botyard.servers.jobs import supervise
blocked = supervise._blocked
def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    return blocked()
supervise._blocked = interrupted
supervise.os.execv = lambda *_: os._exit(7)
from botyard.cli.main import main
main(["--nomap", "--noninteractive", "--no-gui", "-p", "{free_port()}"])
"""
    done = _run(code, tmp_path)
    assert (done.returncode, done.stderr) == (130, "botyard: interrupted\n")


@pytest.mark.parametrize("closed", ["0", "1", "2", "0,1,2"])
def test_a_closed_standard_stream_does_not_prevent_the_start(
    tmp_path: Path, closed: str
) -> None:
    log = tmp_path / "log"
    arguments = ["--nomap", "--noninteractive", "--no-gui", "-l", str(log)]
    code = f"""
import os, sys
for number in ({closed},):
    os.close(number)
command = [sys.executable, "-m", "botyard", *{arguments}, "-p", "{free_port()}"]
os.execv(sys.executable, command)
"""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PACKAGE},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait(
            lambda: (
                process.poll() is not None
                or (log.exists() and "robots:" in log.read_text())
            )
        )
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (0, "")
    assert "WARNING" not in log.read_text()
