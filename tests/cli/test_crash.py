"""When the program itself fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from botyard.cli import daemon
from botyard.clients.pioneer import PioneerClient
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
    monkeypatch.setattr(Hub, "_run", _fails)
    file = tmp_path / "a.log"
    code, _, err = call("--nomap", *FAST, str(free_port()), "-l", str(file), capsys=capsys)
    assert code == 236
    assert f"internal error: RuntimeError: the moon fell down; the log is kept as {file}-crash" in err
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
    process = subprocess.Popen([*args, *(() if debug else ("--no-crash-debug",))], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while "botyard ready" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(0.2)
    process.send_signal(signal.SIGSEGV)
    assert process.wait(PATIENCE) == -signal.SIGSEGV
    process.communicate()
    assert ("Fatal Python error: Segmentation fault" in file.read_text()) == debug


def test_in_the_background(tmp_path: Path) -> None:
    port = free_port(3)
    args = [*BOTYARD, "--nomap", "-r", "p3dx:ann", "-p", str(port), "--no-gui", "--daemonize"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False)
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
    done = subprocess.run(args, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False)
    assert done.returncode == 253
    assert "nowhere.map" in done.stderr


def test_an_open_port_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(
        "--nomap", *FAST, str(free_port()), "--bind-to-address", "0.0.0.0", "--no-network-discovery", capsys=capsys
    )
    assert (code, "commanded by everybody who reaches 0.0.0.0" in err) == (0, True)


def test_no_process_for_the_background(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(daemon.subprocess, "Popen", refuse)
    code, _, err = call("--nomap", "--daemonize", capsys=capsys)
    assert (code, "no process can be started: Resource temporarily unavailable" in err) == (251, True)
