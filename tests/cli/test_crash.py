"""Faults of the program itself."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from botyard.clients.pioneer import PioneerClient
from botyard.processes import launch
from botyard.servers.hub import Hub
from tests.cli.test_cli import FAST, call
from tests.ports import free_port
from tests.running import BOTYARD
from tests.waiting import PATIENCE


def _fails(self: Hub) -> int:
    raise RuntimeError("the moon fell down")


def test_a_fault_is_logged_kept_and_ends_with_236(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Hub, "run", _fails)
    file = tmp_path / "a.log"
    code, _, err = call(
        "--nomap", *FAST, str(free_port()), "-l", str(file), capsys=capsys
    )
    assert code == 236
    assert (
        f"internal error: RuntimeError: the moon fell down; the log is kept as {file}-crash"
        in err
    )
    text = Path(f"{file}-crash").read_text()
    assert "CRITICAL internal error in botyard" in text
    assert "Traceback" in text
    assert "the moon fell down" in text
    code, _, err = call("--nomap", *FAST, str(free_port()), capsys=capsys)
    assert (code, "Traceback" in err) == (236, True), "on stderr where there is no file"
    with pytest.raises(RuntimeError, match="moon"):
        call("--nomap", *FAST, str(free_port()), "--no-crash-handler", capsys=capsys)


@pytest.mark.parametrize("debug", [True, False])
def test_fatal_signals_leave_traces(debug: bool, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    args = [
        *BOTYARD,
        "--nomap",
        "--noninteractive",
        "--no-crash-restart",
        "--no-gui",
        "-p",
        str(free_port()),
        "-l",
        str(file),
    ]
    more = () if debug else ("--no-crash-debug",)
    process = subprocess.Popen(
        [*args, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while "botyard ready" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(0.2)
    process.send_signal(signal.SIGSEGV)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 236
    assert (
        err.splitlines()[-1]
        == f"botyard: error: a fatal signal in compiled code; the log is kept as {file}-crash"
    )
    kept = Path(f"{file}-crash")
    assert kept.read_text() == file.read_text() and "botyard 0" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert ("Fatal Python error: Segmentation fault" in kept.read_text()) == debug


TRACE = "faulthandler.enable(open('a.log', 'a'))"
FAULTS = {
    "a null pointer": "ctypes.string_at(0)",
    "abort": "ctypes.CDLL(None).abort()",
    "an overflow of the stack": "sys.setrecursionlimit(10**9)\ndef f(n): return "
    "max(map(f, [n]))\nf(0)",
    "another thread": "threading.Thread(target=ctypes.string_at, "
    "args=[0]).start()\ntime.sleep(100)",
}


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("traced", [True, False])
def test_real_faults_end_with_our_status(
    fault: str, traced: bool, tmp_path: Path
) -> None:
    """The log is larger than the handler's buffer.

    A link in place of the copy is not followed.
    """
    (tmp_path / "a.log").write_text("line\n" * 50_000)
    (tmp_path / "precious").write_text("precious")
    code = (
        "import ctypes, faulthandler, sys, threading, time\nfrom "
        "botyard.native.fatal import exit_at_fatal_signals\n"
        f"restore = exit_at_fatal_signals(236, 'a.log')\n{TRACE if traced else ''}\n{FAULTS[fault]}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        check=False,
    )
    # Without faulthandler there is no alternative stack, on which a handler could run.
    if fault == "an overflow of the stack" and not traced:
        assert done.returncode == -signal.SIGSEGV
        return

    assert (done.returncode, (tmp_path / "a.log-crash").read_text()) == (
        236,
        (tmp_path / "a.log").read_text(),
    )
    (tmp_path / "a.log-crash").unlink()
    (tmp_path / "a.log-crash").symlink_to(tmp_path / "precious")
    subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        check=False,
    )
    assert (tmp_path / "precious").read_text() == "precious"


def test_what_was_before_comes_back() -> None:
    code = (
        "import ctypes\nfrom botyard.native.fatal import "
        "exit_at_fatal_signals\nexit_at_fatal_signals(236, None)()\nctypes.string_at(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == -signal.SIGSEGV


def test_in_the_background(tmp_path: Path) -> None:
    port = free_port(3)
    args = [
        *BOTYARD,
        "--nomap",
        "-r",
        "p3dx:ann",
        "-p",
        str(port),
        "--no-gui",
        "--daemonize",
    ]
    done = subprocess.run(
        args, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"as process (\d+); its log is botyard\.log", done.stdout)
    assert found, done.stdout
    try:
        with PioneerClient(port=port) as robot:
            assert robot.update()
        assert (tmp_path / "botyard.log").exists()
    finally:
        os.kill(int(found[1]), signal.SIGTERM)

    args = [*BOTYARD, "-m", "nowhere.map", "--daemonize"]
    done = subprocess.run(
        args, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
    )
    assert done.returncode == 253
    assert "nowhere.map" in done.stderr


def test_an_open_port_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(
        "--nomap",
        *FAST,
        str(free_port()),
        "--bind-to-address",
        "0.0.0.0",
        "--no-network-discovery",
        capsys=capsys,
    )
    assert (
        code,
        "every computer that can reach 0.0.0.0 can command the robots" in err,
    ) == (0, True)


def test_no_process_for_the_background(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(launch.subprocess, "Popen", refuse)
    code, _, err = call("--nomap", "--daemonize", capsys=capsys)
    assert (
        code,
        "cannot start a process: Resource temporarily unavailable" in err,
    ) == (251, True)
