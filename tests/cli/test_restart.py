"""A simulator that crashes is restarted with all bodies where they were."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from botyard.clients.pioneer import PioneerClient
from botyard.errors import BusyFileError, PeerError
from botyard.formats.crashstate import SavedRobot, SavedState
from botyard.geometry import Pose
from botyard.model.world import Program
from botyard.protocols.pioneer.commands import C, Ctrl
from botyard.protocols.pioneer.packet import frame
from botyard.servers.jobs import supervise as supervisor
from botyard.servers.jobs.statefile import read_state, write_state
from tests.cli.test_cli import call
from tests.ports import free_port
from tests.running import BOTYARD
from tests.waiting import PATIENCE, wait

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


class Supervised:
    """A simulator and its supervising process."""

    def __init__(self, process: subprocess.Popen[str], ready: dict[str, Any]) -> None:
        self.process = process
        self.ready = ready

    @property
    def worker(self) -> int:
        """Return the process that simulates."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return int((found.stdout.split() or "0")[0])

    def read_ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.ready = json.loads(self.process.stdout.readline())
        return self.ready


@contextmanager
def supervised(*args: str, folder: Path) -> Iterator[Supervised]:
    process = subprocess.Popen(
        [*BOTYARD, "--noninteractive", "--json", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        yield Supervised(process, json.loads(line))
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def reconnected(port: int) -> PioneerClient:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return PioneerClient(port=port)
        except PeerError:
            assert time.monotonic() < end
            time.sleep(0.05)


def true_pose(robot: PioneerClient) -> tuple[float, float, float]:
    """Return the true pose by SIMSTAT: m, m, degrees."""
    robot.simstat = None
    robot.send(C.SIM_STAT, 1)
    while robot.simstat is None:
        robot.update()
    s = robot.simstat
    return s.x_mm / 1000.0, s.y_mm / 1000.0, s.th_deg


def put(robot: PioneerClient, x_mm: int, y_mm: int, th_deg: int) -> None:
    robot.send_raw(
        frame(C.SIM_SET_POSE, struct.pack("<Biii", 0x1B, x_mm, y_mm, th_deg))
    )


def control(robot: PioneerClient, operation: int, name: str = "") -> None:
    data = struct.pack("<BH", 0x3B, operation) + (
        struct.pack("<H", len(name)) + name.encode() if name else b""
    )
    robot.send_raw(frame(C.SIM_CTRL, data))


@pytest.mark.peer
def test_robots_are_where_they_were(tmp_path: Path) -> None:
    port, gui = free_port(6), free_port(2)
    (tmp_path / "a.map").write_text(
        "2D-Map\nLineMinPos: -9000 -9000\nLineMaxPos: 9000 9000\nNumLines: "
        "1\nLINES\n-9000 -9000 9000 -9000\n"
    )
    options = (
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "-r",
        "amigo:bob",
        "-R",
        "p3at",
        "-p",
        str(port),
        "--gui-port",
        str(gui),
    )
    with supervised(*options, "-l", "a.log", folder=tmp_path) as s:
        page, map_before = s.ready["page"], s.ready["map"]
        ann, visitor = PioneerClient(port=port), PioneerClient(port=port + 2)
        control(ann, Ctrl.LOAD_MAP, "a.map")
        while not ann.map_changes:
            ann.update()
        put(ann, -2000, 1000, 90)
        put(visitor, 3000, 500, 180)
        saved = tmp_path / "a.log-state"
        wait(
            lambda: (
                ann.update()
                and "a.map" in saved.read_text()
                and "1.5707" in saved.read_text()
            )
        )
        # The state is written once a second, so wait for the next writes.
        for _ in range(12):
            ann.update()
        assert oct(saved.stat().st_mode)[-3:] == "600", "it holds the page's token"
        state = json.loads(saved.read_text())
        bob = next(r["pose"] for r in state["robots"] if r["name"] == "bob")
        os.kill(s.worker, signal.SIGKILL)
        ann.close()
        visitor.close()
        with reconnected(port) as ann, reconnected(port + 2) as visitor:
            assert true_pose(ann) == (-2.0, 1.0, 90)
            assert true_pose(visitor) == (3.0, 0.5, 180), (
                "a factory's robot, too, of a client with the same address"
            )
            control(ann, Ctrl.SIMINFO)
            while ann.siminfo is None:
                ann.update()
            assert ann.siminfo.flags & 2, "clients are told"

        s.read_ready()
        assert s.ready["page"] == page, "an open page finds its way back"
        assert (Path(map_before).name, Path(s.ready["map"]).name) == (
            "office.map",
            "a.map",
        )
        assert [r["port"] for r in s.ready["robots"]] == [port, port + 1]
        with PioneerClient(port=port + 1) as other:
            assert true_pose(other) == pytest.approx(
                (bob[0], bob[1], math.degrees(bob[2])), abs=1e-3
            )

        assert "restarted after a crash" in (tmp_path / "a.log").read_text()
        assert (tmp_path / "a.log-crash").exists()
        s.process.terminate()
        assert s.process.wait(PATIENCE) == 0
        assert not saved.exists(), "ended on purpose: nothing is to be brought back"
        assert s.process.stderr is not None
        assert "the simulator died (Killed): restarting it" in s.process.stderr.read()


@pytest.mark.peer
def test_a_command_that_ends_it_as_a_crash(tmp_path: Path) -> None:
    """RESET is a fault that the client requests, and the simulator restarts.

    SIM_EXIT with the status of a crash is an end.
    """
    port = free_port(3)
    with supervised(
        "--nomap", "-r", "p3dx", "--no-gui", "-p", str(port), folder=tmp_path
    ) as s:
        first = s.worker
        with PioneerClient(port=port) as robot:
            robot.send(C.RESET)
            wait(lambda: s.worker not in (0, first))

        with reconnected(port) as robot:
            s.read_ready()
            for _ in range(3):
                assert robot.update()
            robot.send(C.SIM_EXIT, 236)
            assert s.process.wait(PATIENCE) == 236

        assert s.process.stderr is not None
        assert s.process.stderr.read().count("restarting it") == 1


@pytest.mark.peer
def test_it_is_not_started_again_when_nobody_wants_that(tmp_path: Path) -> None:
    """CLI-040: one process, and its crash ends the program."""
    port = free_port(3)
    options = (
        "--nomap",
        "-r",
        "p3dx",
        "--no-gui",
        "-p",
        str(port),
        "--no-crash-restart",
        "-l",
        "a.log",
    )
    with supervised(*options, folder=tmp_path) as s, PioneerClient(port=port) as robot:
        assert s.worker == 0, "nobody looks after another process"
        robot.send(C.RESET)
        assert s.process.wait(PATIENCE) == 236
        assert "RESET" in (tmp_path / "a.log-crash").read_text(), (
            "as a fatal signal leaves it"
        )
        assert s.process.stderr is not None
        assert "restarting it" not in s.process.stderr.read()


@pytest.mark.peer
def test_the_simulator_does_not_outlive_who_looks_after_it(tmp_path: Path) -> None:
    port = free_port(3)
    with supervised(
        "--nomap", "-r", "p3dx", "--no-gui", "-p", str(port), folder=tmp_path
    ) as s:
        worker = s.worker
        s.process.kill()
        wait(
            lambda: (
                not Path(f"/proc/{worker}").exists()
                if Path("/proc").exists()
                else not _alive(worker)
            )
        )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False

    return True


def test_it_is_not_tried_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state, runs = tmp_path / "state", []

    def dies(self: object, command: list[str], folder: Path) -> int:
        runs.append(command)
        state.write_text("{}")
        return -signal.SIGSEGV

    monkeypatch.setattr(supervisor._Worker, "run", dies)
    monkeypatch.setattr(supervisor, "RESTART_DELAY_S", 0.0)
    assert supervisor.supervise(["--nomap"], None, str(state), tmp_path) == 236
    assert len(runs) == supervisor.MAX_CRASHES
    assert "--restarting-after-crash" not in runs[0]
    assert all(r[-1] == "--restarting-after-crash" for r in runs[1:])
    assert (
        "Segmentation fault) too often: no further restart" in capsys.readouterr().err
    )
    assert not state.exists()


@pytest.mark.parametrize(
    ("status", "leaves", "ends_with"),
    [
        (236, False, 236),
        (-signal.SIGKILL, False, 236),
        (-signal.SIGTERM, True, 128 + signal.SIGTERM),
        (253, True, 253),
        (0, True, 0),
    ],
)
def test_what_is_no_crash_of_a_running_simulator(
    status: int,
    leaves: bool,
    ends_with: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No restart follows a death before the first saved state.

    Nor does one follow an exit by SIGTERM or with a status of the program.
    """
    state, runs = tmp_path / "state", []

    def ends(self: object, command: list[str], folder: Path) -> int:
        runs.append(command)
        if leaves:
            state.write_text("{}")
        return int(status)

    monkeypatch.setattr(supervisor._Worker, "run", ends)
    assert supervisor.supervise([], None, str(state), tmp_path) == ends_with
    assert len(runs) == 1


def test_no_place_for_the_state(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(
        "--nomap", "--no-gui", "--state-file", "/nowhere/state", capsys=capsys
    )
    assert (
        code,
        "restarts after a crash in /nowhere/state: No such file or directory" in err,
    ) == (254, True)


def test_states_are_kept_as_they_are(tmp_path: Path) -> None:
    path, complaints = tmp_path / "state", []
    state = SavedState(
        tick=7,
        map="a.map",
        speed=2.0,
        paused=True,
        visitors={"127.0.0.1": Pose(1, 2, 3)},
        boxes={"b": Pose(0.5, 0, -1)},
        robots=(
            SavedRobot(
                name="a",
                model="p3dx",
                pose=Pose(1.25, -2.5, 0.1),
                port=8101,
                program=Program(name="wander"),
            ),
            SavedRobot(name="b", model="box", pose=Pose()),
        ),
        factories=(8103,),
        page=(8100, "full", "audience"),
    )
    write_state(state, path)
    assert read_state(path, complaints.append) == state
    assert complaints == []
    good = path.read_text()
    for bad in (
        "",
        "{}",
        "[]",
        good[:-5],
        good.replace('"version":1', '"version":2'),
        good.replace("1.25", '"x"'),
        good.replace("1.25", "NaN"),
        good.replace('"tick"', '"tock"'),
        good.replace('"tick":7', '"tick":"soon"'),
        good.replace("8103", '"x"'),
    ):
        assert bad != good
        path.write_text(bad)
        assert read_state(path, complaints.append) is None, bad
        assert "cannot restore the state" in complaints.pop()

    assert read_state(tmp_path / "gone", complaints.append) is None


def test_where_the_state_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.ExitStack() as stack:
        assert supervisor._state_path(stack, "a.log", None) == tmp_path / "a.log-state"
        assert supervisor._state_path(stack, "a.log", "b") == tmp_path / "b"
        elsewhere = supervisor._state_path(stack, "nowhere/a.log", None)
        assert elsewhere.parent.is_dir() and elsewhere.parent != tmp_path, (
            "the log's folder is the log's problem"
        )
        assert (
            supervisor._state_path(stack, None, None).parent.stat().st_mode & 0o77 == 0
        )

    assert not elsewhere.parent.exists()


@pytest.mark.peer
def test_a_disk_that_cannot_be_written_costs_the_state_only(tmp_path: Path) -> None:
    port, folder = free_port(3), tmp_path / "states"
    folder.mkdir()
    file = tmp_path / "a.log"
    options = (
        "--nomap",
        "-r",
        "p3dx",
        "--no-gui",
        "-p",
        str(port),
        "-l",
        str(file),
        "--state-file",
        str(folder / "state"),
    )
    with supervised(*options, folder=tmp_path):
        shutil.rmtree(folder)
        with PioneerClient(port=port) as robot:
            put(robot, 1000, 0, 0)
            wait(
                lambda: (
                    robot.update()
                    and "no restart after a crash is possible" in file.read_text()
                )
            )
            put(robot, 2000, 0, 0)
            for _ in range(25):
                assert robot.update()

        assert file.read_text().count("no restart after a crash is possible") == 1


def test_a_state_file_is_of_one_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two simulators with one log file have different state files.

    A simulator that names the file of another one is refused.
    """
    monkeypatch.chdir(tmp_path)
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        state = supervisor._state_path(first, "a.log", None)
        assert supervisor._state_path(second, "a.log", None).parent != tmp_path
        with pytest.raises(
            BusyFileError, match=r"a\.log-state: is already being written"
        ):
            supervisor._state_path(second, None, str(state))

    with contextlib.ExitStack() as third:
        assert supervisor._state_path(third, None, str(state)) == state


def test_a_fault_without_a_state_has_the_status_of_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fatal signal before the first state gives 236, and the log is kept."""
    (tmp_path / "a.log").write_text("before")
    monkeypatch.setattr(
        supervisor._Worker, "run", lambda self, command, folder: -signal.SIGSEGV
    )
    log = str(tmp_path / "a.log")
    monkeypatch.setattr(
        supervisor, "_state_path", lambda stack, log_file, state_file: tmp_path / "none"
    )
    assert supervisor.supervise(["--nomap"], log, None, tmp_path) == 236
    assert "the simulator died (Segmentation fault)" in capsys.readouterr().err
    assert (tmp_path / "a.log-crash").read_text() == "before"
    monkeypatch.setattr(
        supervisor._Worker, "run", lambda self, command, folder: -signal.SIGTERM
    )
    assert (
        supervisor.supervise(["--nomap"], log, None, tmp_path) == 128 + signal.SIGTERM
    )
