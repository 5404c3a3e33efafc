"""Every exit status of the table is reached by a command line or a client (EXIT-001 …
EXIT-014).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from botyard.clients.pioneer import PioneerClient
from botyard.errors import ExitCode
from tests.ports import free_port
from tests.running import BOTYARD, running
from tests.waiting import PATIENCE


def _files(folder: Path) -> None:
    (folder / "bad.map").write_text("2D-Map\nResolution: fine\n")
    (folder / "bad.world").write_text("hovercraft ( )\n")
    (folder / "bad.p").write_text("Subclass bad\n\nRobotWidth wide\n")


CASES: tuple[tuple[ExitCode, str, str], ...] = (
    (ExitCode.OK, "--nomap --fast --duration 0.1 --noninteractive --no-gui", ""),
    (ExitCode.OK, "--help", ""),
    (ExitCode.OK, "--version", ""),
    (ExitCode.COMMAND_LINE, "--odom-error-mode often", "often"),
    (
        ExitCode.TEMP_FILE,
        "--nomap --no-gui --state-file nowhere/state",
        "nowhere/state",
    ),
    (ExitCode.MAP_LOAD, "-m none.map --no-gui", "none.map: no such map file"),
    (ExitCode.MAP_LOAD, "-m bad.map --no-gui", "bad.map:2: Resolution"),
    (ExitCode.WORLD_INIT, "-W bad.world --no-gui", "bad.world:1:"),
    (
        ExitCode.WORLD_INIT,
        "--nomap -r p3dx:a -r amigo:a --no-gui",
        "names must be unique",
    ),
    (ExitCode.PARAMETER_FILE, "--nomap -r bad.p --no-gui", "bad.p:3: RobotWidth"),
    (ExitCode.ROBOT_INIT, "--nomap -r p3dxx --no-gui", 'did you mean "p3dx"'),
    (ExitCode.CWD, "--nomap --cwd nowhere --no-gui", "cannot change to"),
    (
        ExitCode.ROS_MASTER,
        "--nomap --no-gui --ros-master http://127.0.0.1:9",
        "no ROS master",
    ),
)


@pytest.mark.peer
@pytest.mark.parametrize(("code", "line", "said"), CASES)
def test_statuses(code: ExitCode, line: str, said: str, tmp_path: Path) -> None:
    """Most run with a supervising process. Tests without one are in test_cli.py."""
    _files(tmp_path)
    args = line.split() + (["-p", str(free_port(3))] if "nomap" in line else [])
    done = subprocess.run(
        [*BOTYARD, *args],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == code, done.stderr
    errors = [
        text for text in done.stderr.splitlines() if text.startswith("botyard: error:")
    ]
    assert len(errors) == (1 if code else 0)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.peer
@pytest.mark.skipif(sys.platform != "linux", reason="the folder is in use elsewhere")
@pytest.mark.parametrize("more", [[], ["--duration", "0.1", "--fast"]])
def test_a_working_folder_that_was_removed(tmp_path: Path, more: list[str]) -> None:
    """With `more`, the run has no supervisor."""
    folder = tmp_path / "gone"
    folder.mkdir()
    code = "import os; os.rmdir(os.getcwd()); from botyard.__main__ import main; main()"
    args = [*more, "--nomap", "--no-gui", "-p", str(free_port())]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *args],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=folder,
        check=False,
    )
    assert done.returncode == ExitCode.CWD, done.stderr
    assert "botyard: error: the working folder cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.peer
def test_a_taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        args = [*BOTYARD, "--nomap", "--no-gui", "-p", str(taken.getsockname()[1])]
        done = subprocess.run(
            args, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    assert (done.returncode, "choose another first port" in done.stderr) == (
        ExitCode.TCP_PORT,
        True,
    )


@pytest.mark.peer
def test_models_that_are_not_where_the_environment_says(tmp_path: Path) -> None:
    """Without a terminal the program ends; with one it warns and uses the shipped
    models (CFG-006).
    """
    env = {**os.environ, "AMRISIM": str(tmp_path / "gone")}
    args = [*BOTYARD, "--nomap", "-p", str(free_port(3)), "--duration", "0.1", "--fast"]
    done = subprocess.run(
        [*args, "--no-gui"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=env,
        check=False,
    )
    assert done.returncode == ExitCode.MODELS_MISSING
    assert (
        f"AMRISIM names a folder of models and maps that does not exist: {tmp_path / 'gone'}"
        in done.stderr
    )
    args += ["--gui-port", str(free_port(1)), "--no-browser"]
    bare = tmp_path / "bare"
    bare.mkdir()
    env["MOBILESIM"] = str(bare)
    done = subprocess.run(
        args, capture_output=True, text=True, timeout=PATIENCE, env=env, check=False
    )
    assert (done.returncode, done.stderr.count("using the shipped models")) == (0, 2)
    assert f"there is no file PioneerRobotModels.world.inc in {bare}" in done.stderr


@pytest.mark.peer
@pytest.mark.parametrize("status", [0, 1, 7, 126, 255])
def test_a_clients_own_status(status: int) -> None:
    port = free_port(2)
    with (
        running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port)) as (process, _),
        PioneerClient(port=port) as robot,
    ):
        robot.send(239, status)
        assert process.wait(timeout=PATIENCE) == status


def test_the_table_is_complete() -> None:
    """251 (no background process) and 236 (crash) are in test_crash.py, 248 and 234
    above, 2 in test_replay.py.
    """
    elsewhere: set[ExitCode] = {
        ExitCode.DAEMON,
        ExitCode.CRASH,
        ExitCode.TCP_PORT,
        ExitCode.MODELS_MISSING,
        ExitCode.PEER,
        ExitCode.UNREADABLE,
    }
    assert {code for code, _, _ in CASES} | elsewhere == set(ExitCode)
    numbers = {
        "OK": 0,
        "PEER": 1,
        "UNREADABLE": 2,
        "COMMAND_LINE": 255,
        "TEMP_FILE": 254,
        "MAP_LOAD": 253,
        "WORLD_INIT": 252,
        "DAEMON": 251,
        "PARAMETER_FILE": 250,
        "ROBOT_INIT": 249,
        "TCP_PORT": 248,
        "CWD": 247,
        "CRASH": 236,
        "ROS_MASTER": 235,
        "MODELS_MISSING": 234,
    }
    assert {c.name: int(c) for c in ExitCode} == numbers, (
        "the original's; scripts know them by number"
    )


@pytest.mark.parametrize("name", ["no-menu", "no-messages", "echo-stage-worldfile"])
@pytest.mark.parametrize("dashes", ["-", "--"])
def test_options_for_what_is_not_here(name: str, dashes: str) -> None:
    args = [
        *BOTYARD,
        "--nomap",
        "--fast",
        "--duration",
        "0.1",
        "--no-gui",
        "-p",
        str(free_port(2)),
        f"{dashes}{name}",
    ]
    done = subprocess.run(
        args, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, f"--{name} has no effect here" in done.stderr) == (0, True)
