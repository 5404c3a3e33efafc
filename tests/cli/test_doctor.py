"""``botyard doctor``, and the unit for systemd."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from botyard import extras
from botyard.cli import doctor, warmup
from botyard.native import cache, shipped
from botyard.native.packages import Package
from tests.cli.test_cli import call
from tests.ports import free_port
from tests.running import BOTYARD
from tests.waiting import PATIENCE

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.parametrize(
    ("setting", "warns"), [("212992", True), ("4194304", False), (None, False)]
)
def test_small_receive_buffers(
    tmp_path: Path, setting: str | None, warns: bool
) -> None:
    """Linux grants 212992 bytes by default."""
    if setting is not None:
        (tmp_path / "rmem_max").write_text(f"{setting}\n")
    found = list(doctor._of_buffers(tmp_path))
    assert [f.state for f in found] == ["warn"] * warns
    assert all("net.core.rmem_max=4194304" in f.text for f in found)


def test_it_says_what_is_there_and_what_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(
        extras.EXTRAS, "moon", extras.Extra(("no_such_module",), "trips to the moon")
    )  # type: ignore[index]
    port = free_port(3)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        code, out, _ = call("doctor", "-p", str(port), capsys=capsys)

    assert code == 0
    assert (
        f"moon: not installed (trips to the moon); {extras.install_command(['moon'])}"
        in out
    )
    assert f"port {port}: Address already in use; choose another port with -p" in out
    assert f"port {port + 1} is free" in out
    assert "BAD" not in out


def test_it_warns_about_settings_that_hide_topics_of_ros2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF")
    monkeypatch.setenv("FASTDDS_BUILTIN_TRANSPORTS", "SHM")
    monkeypatch.setenv("ROS_DOMAIN_ID", "seven")
    code, out, _ = call("doctor", "-p", str(free_port(3)), capsys=capsys)
    warnings = [line for line in out.splitlines() if line.startswith("  –")]
    for part in (
        "ROS_DOMAIN_ID: expected 0 … 232, found",
        "ROS 2: ROS_AUTOMATIC_DISCOVERY_RANGE=OFF: no program finds",
        "ROS 2: FASTDDS_BUILTIN_TRANSPORTS=SHM: programs with this value",
    ):
        assert any(part in line for line in warnings), part

    assert code == 0


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call("doctor", "--json", "-p", str(free_port(3)), capsys=capsys)
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert {row["part"] for row in rows} >= {
        "Python",
        "kernels",
        "page",
        "extras",
        "ports",
    }
    assert {row["state"] for row in rows} <= {"ok", "warn"}


def test_a_broken_installation_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> str:
        raise doctor.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", missing)
    code, out, _ = call("doctor", "-p", str(free_port(3)), capsys=capsys)
    assert code == 1
    assert "numpy is missing" in out


def _kernels(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code, out, _ = call("doctor", "-p", str(free_port(3)), capsys=capsys)
    return code, out.partition("\nkernels\n")[2].partition("\n\n")[0]


def test_what_is_said_of_kernels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    nothing = shipped.Library(tmp_path)
    monkeypatch.setattr(shipped, "library", lambda: nothing)
    for chosen, status, said in (
        ("fast", 1, "expected auto, native, jit or python, found 'fast'"),
        (
            "native",
            1,
            "no compiled kernels, and BOTYARD_KERNELS=native allows compiled kernels only",
        ),
        ("python", 0, "compilation is off"),
    ):
        monkeypatch.setenv("BOTYARD_KERNELS", chosen)
        code, out = _kernels(capsys)
        assert code == status and said in out, out

    monkeypatch.setenv("BOTYARD_KERNELS", "auto")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache, "user_cache_path", lambda _name: Path("~/.cache"))
    code, out = _kernels(capsys)
    assert code == 0 and "there is no home folder" in out
    monkeypatch.setattr(doctor, "is_installed", lambda name: name != "jit")
    code, out = _kernels(capsys)
    assert code == 1 and 'compiling them needs the extra "jit"' in out


def test_without_a_home_folder_kernels_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def homeless(_name: str) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache, "user_cache_path", homeless)
    monkeypatch.chdir(tmp_path)
    found = cache.cache_of.__wrapped__(Package("sums", [Path(__file__)]))
    assert not found.is_used and not any(tmp_path.iterdir())
    monkeypatch.setattr(warmup, "_cache", lambda: found)
    warmup.remove_old_caches()


@pytest.mark.peer
def test_the_unit_for_systemd_is_right(tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    assert tool is not None, "systemd-analyze is needed: make peers installs it"
    text = (DEPLOY / "botyard.service").read_text()
    program = Path(sys.executable).with_name("botyard")
    unit = tmp_path / "botyard.service"
    unit.write_text(text.replace("/opt/botyard/bin/botyard", str(program)))
    assert str(program) in unit.read_text()
    done = subprocess.run(
        [tool, "verify", str(unit)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.peer
def test_what_the_unit_starts(tmp_path: Path) -> None:
    """The unit's command line, its options, and its signal to end."""
    text = (DEPLOY / "botyard.service").read_text()
    command = next(
        line.partition("=")[2]
        for line in text.splitlines()
        if line.startswith("ExecStart=")
    )
    given = next(
        line
        for line in text.splitlines()
        if line.startswith('Environment="BOTYARD_OPTIONS=')
    )
    options = given.partition("BOTYARD_OPTIONS=")[2].strip('"')
    port = free_port(4)
    words = (
        command.replace("$BOTYARD_OPTIONS", options)
        .replace("9101", str(port + 3))
        .split()
    )
    assert words[0] == "/opt/botyard/bin/botyard"
    process = subprocess.Popen(
        [*BOTYARD, *words[1:], "-p", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert process.stdout is not None
        assert "botyard ready: p3dx" in process.stdout.readline()
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port + 3}/healthz", timeout=PATIENCE
        ) as answer:
            assert json.load(answer)["status"] == "ok"

        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()
