"""Each row of the table of pages: an error of the program names its page, and the page
and its section exist.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from mdit_py_plugins.anchors.index import slugify

from botyard.cli import main
from botyard.clients.pioneer import PioneerClient
from botyard.errorpages import PAGES, Row, page_of_warning
from botyard.protocols.pioneer.commands import Ctrl
from botyard.protocols.pioneer.packet import frame
from botyard.servers.ros.rtps import RtpsNode
from tests.cli.test_packets import line
from tests.cli.test_restart import control
from tests.packages import install
from tests.ports import free_port
from tests.protocols.rtps.test_hostile import announcement
from tests.recording.test_resimulate import crafted
from tests.running import BOTYARD, running
from tests.servers.nearby import Nearby
from tests.waiting import PATIENCE, wait

DOCS = Path(__file__).resolve().parents[2] / "docs"
FILES = {
    "a.argos": "<argos-configuration>",
    "a.dxf": "x",
    "a.geojson": '{"type": "FeatureCollection", "features": [3]}',
    "a.map": "hello",
    "a.mcap": "x",
    "a.png": "x",
    "a.sdf": "<sdf>",
    "a.svg": "<svg>",
    "a.toml": 'extends = "p3dx"\nwings = 3\n',
    "a.urdf": '<robot name="x"><link/></robot>',
    "a.world": 'model "x',
    "a.xacro": "<robot>",
    "a.xyz": "x",
    "code.yaml": "botyard: 1\nrobots:\n- {model: p3dx, controller: a.py:f}\n",
    "drive.csv": "time,x,y,heading\n" + "".join(f"{k},{k},0,0\n" for k in range(9)),
    "device.toml": 'extends = "p3dx"\n[[devices]]\ntype = "nope"\n',
    "gazebo.world": '<sdf version="1.6"><world name="x">',
    "lab.py": "def drive(sim, params, seed):\n    return params\n",
    "laser.toml": 'extends = "p3dx"\nlasers = [{type = "nope"}]\n',
    "odometry.csv": "time,x,y,heading\n0,0,0,0\n",
    "plan.yaml": "study: 1\nrun: lab.py:drive\ngrid: {x: [1]}\n",
    "rosmap.yaml": "image: nope.pgm\nresolution: 0.05\norigin: [0, 0, 0]\n",
    "run.yaml": "robots: 3\n",
    "task.json": '{"a": 1}',
    "wrong.yaml": "botyard: 1\nwings: 3\n",
    "wrong.yml": "botyard: 1\nwings: 3\n",
    "wrongplan.yaml": "wings: 3\n",
}
PORT = "PORT"
"""Stands for a port that another program has."""
OFF = ("--no-gui", "--duration", "0.1", "--fast")

MADE: dict[str, Callable[[Path], object]] = {
    "later.mcap": lambda path: crafted(path, [], {"model 1": b"x"}),
    "empty.mcap": lambda path: crafted(path, [], state=None),
    "packets.jsonl": lambda path: path.write_text(json.dumps(line(frame(0))) + "\n"),
}
"""Files that only one case needs."""

CASES: dict[tuple[str, str], tuple[str, ...]] = {
    ("NoSuchOption", "botyard run"): ("-m", "office", "--nope"),
    ("BadParameter", "--max-read"): ("-m", "office", "--max-read", "nope=3"),
    ("CommandLineError", "expected a map (-m FILE)"): ("--no-gui",),
    ("CommandLineError", "--config: "): ("--config", "run.yaml"),
    ("CommandLineError", "--record"): ("-m", "office", "--record-on-stall"),
    ("CommandLineError", "--gui-token"): (
        *("-m", "office", "--gui-token", "off", "--gui-address", "0.0.0.0"),
    ),
    ("CommandLineError", "no controller "): (
        *("-m", "office", "-r", "p3dx", "--controller", "nope", *OFF),
    ),
    ("CommandLineError", "to find the topic"): ("-m", "ros:/map", "--no-gui"),
    ("CommandLineError", "do not fit on the ports"): (
        *("-m", "office", "-p", "65535", "-r", "p3dx", "-r", "p3dx", *OFF),
    ),
    ("CommandLineError", "--ray"): ("study", "plan.yaml", "--ray", "nonsense"),
    ("CommandLineError", "expected one of the suffixes"): ("convert", "office", "o.x"),
    ("PlanError", ""): ("study", "wrongplan.yaml"),
    ("TempFileError", ""): ("-m", "office", "--state-file", "/dev/null/x", "--no-gui"),
    ("PortError", "cannot serve the page"): (
        *("-m", "office", "--gui-port", PORT, "--duration", "0.1"),
    ),
    ("PortError", "--metrics-port"): ("-m", "office", "--metrics-port", PORT, *OFF),
    ("PortError", ""): ("-m", "office", "-r", "p3dx", "-p", PORT, *OFF),
    ("BotyardError", "interface "): ("-m", "office", "--interface", "nope", *OFF),
    ("PeerError", "MQTT"): ("traffic", "vda5050", "--broker", "127.0.0.1:1"),
    ("PeerError", "no robot at"): ("packets", "packets.jsonl", "--play", "127.0.0.1:1"),
    ("BotyardError", "no robot model "): ("-m", "office", "-r", "nope", *OFF),
    ("BotyardError", "no laser model "): ("--nomap", "-r", "laser.toml", *OFF),
    ("BotyardError", "no device "): ("--nomap", "-r", "device.toml", *OFF),
    ("BotyardError", "--allow-code"): ("code.yaml", *OFF),
    ("BudgetError", ""): ("-m", "office", "--max-read", "bytes=10", *OFF),
    ("MapError", "did you mean the command"): ("modles",),
    ("MapError", "no such map file"): ("-m", "nope", *OFF),
    ("UnknownFormatError", ""): ("a.xyz", *OFF),
    ("RecordingError", " wrote it"): ("replay", "later.mcap", "--resimulate"),
    ("RecordingError", "expected a recording"): ("render", "a.mcap", "o.png"),
    ("RecordingError", ""): ("replay", "empty.mcap", "--resimulate"),
    ("TaskError", ""): ("traffic", "check", "task.json"),
    ("FormatError", ".argos"): ("a.argos", *OFF),
    ("FormatError", ".dxf"): ("a.dxf", *OFF),
    ("FormatError", ".geojson"): ("a.geojson", *OFF),
    ("FormatError", ".sdf"): ("a.sdf", *OFF),
    ("FormatError", ".svg"): ("a.svg", *OFF),
    ("FormatError", ".urdf"): ("--nomap", "-r", "a.urdf", *OFF),
    ("FormatError", ".xacro"): ("--nomap", "-r", "a.xacro", *OFF),
    ("WorldFileError", "not XML"): ("gazebo.world", *OFF),
    ("FormatError", ".world"): ("a.world", *OFF),
    ("FormatError", "ArMap"): ("a.map", *OFF),
    ("FormatError", "the map's image"): ("rosmap.yaml", *OFF),
    ("FormatError", "the picture"): ("a.png", *OFF),
    ("ModelFileError", ""): ("--nomap", "-r", "a.toml", *OFF),
    ("WorldFileError", ".yaml"): ("scenario", "check", "wrong.yaml"),
    ("WorldFileError", ".yml"): ("wrong.yml", *OFF),
    ("WorldError", "names must be unique"): (
        *("-m", "office", "-r", "p3dx:a", "-r", "p3dx:a", *OFF),
    ),
    ("SupervisorError", ""): ("traffic", "compare", "-s", "nope"),
    ("CalibrationError", "true poses"): (
        *("calibrate", "drive.csv", "-r", "p3dx", "--truth", "odometry.csv"),
    ),
    ("CalibrationError", ""): ("calibrate", "odometry.csv", "-r", "p3dx"),
}
"""Command line of each row that needs nothing but files."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder with wrong files."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, "utf-8")
    return tmp_path


def row_of(kind: str, words: str) -> Row:
    return next(row for row in PAGES if (row.kind, row.words) == (kind, words))


def check(row: Row, said: str) -> None:
    """Check that an output consists of a message and the row's page."""
    message, page = said.rstrip("\n").splitlines()[-2:]
    assert "error: " in message and row.words in message
    assert page == f"See: docs/{row.page}", message


def said(*args: str, capfd: pytest.CaptureFixture[str]) -> str:
    """Return what a command that fails prints to standard error."""
    with pytest.raises(SystemExit) as end:
        main.main(list(args))
    assert end.value.code
    return capfd.readouterr().err


@pytest.mark.parametrize(("kind", "words"), CASES)
def test_an_error_names_its_page(
    kind: str, words: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    args = CASES[kind, words]
    for name in MADE.keys() & set(args):
        MADE[name](folder / name)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        args = tuple(port if word == PORT else word for word in args)
        check(row_of(kind, words), said(*args, capfd=capfd))


def run(*command: str, **env: str) -> str:
    """Return what a separate process that fails prints to standard error."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **env},
        check=False,
    )
    assert done.returncode
    return done.stderr


def without_extra() -> str:
    code = "import sys; sys.modules['zenoh'] = None; from botyard.cli.main import main"
    return run(
        sys.executable,
        "-c",
        f"{code}; main(['--nomap', '--zenoh', '--noninteractive', '--no-crash-restart'])",
    )


def study_again() -> str:
    command = (*BOTYARD, "study", "plan.yaml", "-n", "1")
    subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)
    return run(*command)


PROCESSES: dict[tuple[str, str], Callable[[], str]] = {
    ("BotyardError", " not installed; to install"): without_extra,
    ("KernelsError", ""): lambda: run(
        *BOTYARD, "-m", "office", *OFF, BOTYARD_KERNELS="fast"
    ),
    ("ModelsMissingError", ""): lambda: run(
        *BOTYARD, "-m", "office", *OFF, AMRISIM="/dev/null/x"
    ),
    ("RosMasterError", ""): lambda: run(
        *(*BOTYARD, "--noninteractive", "--no-crash-restart"),
        *("--nomap", "--ros1", *OFF),
        ROS_MASTER_URI="http://127.0.0.1:1",
    ),
    ("CommandLineError", "already holds"): study_again,
}
"""Errors of rows that need a process of their own."""


@pytest.mark.parametrize(("kind", "words"), PROCESSES)
def test_an_error_of_a_process_names_its_page(
    kind: str, words: str, folder: Path
) -> None:
    check(row_of(kind, words), PROCESSES[kind, words]())


WARNINGS = {
    ("log", "has a client already"),
    ("log", "request refused: "),
    ("log", "motors are off"),
    ("log", "behind schedule"),
    ("log", "it is left out"),
    ("log", "no ROS master"),
    ("log", "clients may load from"),
}
"""Rows of warnings that one simulator logs."""


def test_the_log_names_pages_behind_warnings(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A simulator with a broken package, a slow controller, no ROS master, and clients: a page of
    another site, one that drives without motors and asks for a map that is not there, and
    one whose robot has a client.
    """
    install(
        folder / "site",
        monkeypatch,
        name="broken",
        entries={"botyard.interfaces": {"broken": "no_such_module:it"}},
    )
    (folder / "slow.py").write_text(
        "import time\n\n\ndef slow(robot):\n    time.sleep(0.05)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder / "site"))
    monkeypatch.setenv("ROS_MASTER_URI", "http://127.0.0.1:1")
    port, page = free_port(), free_port()
    log = folder / "log.json"
    with running(
        *("--nomap", "-r", "p3dx:ann", "-r", "p3dx:bob", "-p", str(port)),
        *("--gui-port", str(page), "--no-network-discovery", "--ros1", "--ros-wait"),
        *("--controller", "slow.py:slow", "--update-interval", "10"),
        *("--log-format", "json", "-l", str(log)),
    ):
        request = urllib.request.Request(
            f"http://127.0.0.1:{page}/healthz", headers={"Origin": "http://a.test"}
        )
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=PATIENCE)
        with (
            PioneerClient("127.0.0.1", port) as client,
            socket.create_connection(("127.0.0.1", port), PATIENCE) as second,
        ):
            second.sendall(frame(0))
            client.enable(False)
            client.vel(100)
            control(client, Ctrl.LOAD_MAP, "nope.map")
            wait(
                lambda: client.update() and not missing(log),
                what=lambda: log.read_text(),
            )
    assert missing(log) == set()


SEEN = {("log", "no address for UDP over IPv4")}
"""Rows of warnings about ROS 2 peers."""


@pytest.mark.parametrize(("kind", "words"), SEEN)
def test_the_log_names_the_page_behind_a_peer_without_udp(
    kind: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The participant announces no address, as Fast DDS does with LARGE_DATA."""

    async def run() -> None:
        node = RtpsNode(Nearby(177))
        packet = announcement(1, metatraffic=(), default=())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.sendto(packet, ("127.0.0.1", node._sockets[0].getsockname()[1]))
        try:
            async with asyncio.timeout(PATIENCE):
                while not caplog.records:
                    await asyncio.sleep(0.01)
        finally:
            node.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    (record,) = caplog.records
    assert "FASTDDS_BUILTIN_TRANSPORTS=UDPv4" in record.getMessage()
    assert page_of_warning(record) == f"docs/{row_of(kind, words).page}"


def missing(log: Path) -> set[tuple[str, str]]:
    """Return the rows of warnings that a log has not named yet."""
    texts = [json.loads(row)["text"] for row in log.read_text().splitlines()]
    return {
        (kind, words)
        for kind, words in WARNINGS
        if not any(
            words in text and text.endswith(f" (see docs/{row_of(kind, words).page})")
            for text in texts
        )
    }


def test_every_row_is_tried() -> None:
    rows = [(row.kind, row.words) for row in PAGES]
    assert len(rows) == len(set(rows)) > 25
    assert set(rows) == CASES.keys() | PROCESSES.keys() | WARNINGS | SEEN


@pytest.mark.parametrize("page", sorted({row.page for row in PAGES}))
def test_pages_and_sections_exist(page: str) -> None:
    name, _, section = page.partition("#")
    text = (DOCS / name).read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", "", text), re.M)
    assert not section or section in map(slugify, headings)
