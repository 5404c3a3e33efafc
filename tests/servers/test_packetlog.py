"""A full disk loses lines of the recording with a message, and affects nothing else."""

from __future__ import annotations

import json
import logging
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from botyard.clients.pioneer import PioneerClient
from botyard.interfaces.pioneer.taps import PacketTaps
from botyard.servers.pioneer.packetlog import PacketLog
from tests.ports import free_port
from tests.running import BOTYARD
from tests.waiting import PATIENCE, wait


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, check=False, capture_output=True)
    except OSError:
        pytest.skip("no mount here")

    if done.returncode:
        pytest.skip("no right to mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_costs_lines_and_says_so(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "botyard")
    ballast, path = small_disk / "ballast", small_disk / "talk.jsonl"
    ballast.write_bytes(bytes(40_000))
    record = PacketLog(path, lambda: 1.5)
    taps = PacketTaps()
    taps.add(record.take)
    tap = taps.session("ann")
    sent = 0
    for _ in range(500):
        tap(True, bytes(100))
        sent += 1

    wait(lambda: record._queue.empty() and record.lost)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines
    assert all("lost" not in line for line in lines)
    assert path.read_bytes().endswith(b"}\n"), "lines are whole"
    assert "packet capture paused until the disk has room" in caplog.text
    assert "No space left on device" in caplog.text
    ballast.unlink()

    def is_back() -> bool:
        nonlocal sent
        tap(False, b"again")
        sent += 1
        return b"lost" in path.read_bytes()

    wait(is_back)
    record.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    gaps = [line for line in lines if "lost" in line]
    assert sum(gap["lost"] for gap in gaps) + len(lines) - len(gaps) == sent, (
        "every line is there or counted"
    )
    assert f"packet capture resumed; {gaps[0]['lost']} lines were lost" in caplog.text
    assert caplog.text.count("capture paused") == 1, "said once"
    tap(True, b"late")
    assert path.read_text().count("\n") == len(lines)


def test_what_is_lost_at_the_end_is_told(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "botyard")
    (small_disk / "ballast").write_bytes(bytes(65_536))
    record = PacketLog(small_disk / "talk.jsonl", lambda: 1.5)
    record.take("ann", 1, 0, True, bytes(100))
    record.close()
    assert "lost 1 lines of the packet capture" in caplog.text


def limited() -> None:
    """Limit files to 20 kB: a program sees that as a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.peer
@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_simulator_outlives_a_full_disk(tmp_path: Path) -> None:
    """Recording, log, state, picture and scenario cannot be written any more."""
    port = free_port(2)
    command = [
        *BOTYARD,
        "-m",
        "office",
        "-r",
        "p3dx",
        "--noninteractive",
        "--no-crash-restart",
        "--no-gui",
        "-p",
        str(port),
        "--json",
        "--record-packets",
        "talk.jsonl",
        "--state-file",
        "state",
        "-l",
        "log",
        "--log-packets-received",
        "--snapshot",
        "picture.png",
        "--save-scenario",
        "saved.yaml",
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=limited,
        # Python 3.11 would leave a cut bytecode file, which ends later starts.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["ready"]
        with PioneerClient("127.0.0.1", port) as client:
            client.start_laser()
            while (tmp_path / "talk.jsonl").stat().st_size < 19_000:
                assert client.update()
            for _ in range(20):
                assert client.update()

        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)

    assert process.returncode == 255, err
    assert "--snapshot: cannot write picture.png" in err
    assert "Traceback" not in err
    lines = (tmp_path / "talk.jsonl").read_text().splitlines()
    assert all(set(json.loads(line)) & {"robot", "lost"} for line in lines), (
        "lines are whole"
    )
    assert (
        "packet capture paused until the disk has room"
        in (tmp_path / "log").read_text()
    )
    assert (tmp_path / "saved.yaml").exists(), (
        "what can be written is, whatever else cannot"
    )
