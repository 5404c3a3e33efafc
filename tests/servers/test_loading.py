"""Maps and pictures that clients request from a running simulator:

their faults affect no other client.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from botyard.clients.pioneer import PioneerClient
from botyard.formats import reading
from botyard.geometry import Pose
from botyard.protocols.pioneer.packet import frame
from botyard.protocols.pioneer.simhandlers import Ctrl
from botyard.servers.jobs import maploading
from botyard.servers.jobs.child_jobs import JobLimits
from botyard.sim.simulation import Simulation
from tests.page.serving import TOKEN, Served, served
from tests.ports import free_port
from tests.protocols.lines import Client, named
from tests.servers import hangingreader
from tests.waiting import PATIENCE, wait

ROOT = Path(__file__).resolve().parents[2]
SMALL = "2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 0\nNumLines: 1\nLINES\n0 0 9000 0\n"


def control(client: PioneerClient, operation: int, name: str = "") -> None:
    data = struct.pack("<BH", 0x3B, operation) + (
        struct.pack("<H", len(name)) + name.encode() if name else b""
    )
    client.send_raw(frame(236, data))


def changed(client: PioneerClient, count: int = 1) -> tuple[str, int]:
    """Return the last of a number of answers about maps."""
    wait(lambda: client.update() and len(client.map_changes) >= count, pause=0.0)
    return client.map_changes[-1].name, client.map_changes[-1].loaded


def readers(module: str = hangingreader.MODULE, parent: int | None = None) -> list[int]:
    """Return the processes that read maps for this process, or for `parent`.

    Other tests may run at the same time.
    """
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (
                (entry / "cmdline").read_bytes().split(b"\0")
                if entry.name.isdigit()
                else []
            )
            if f"{module}:main".encode() in words and _parent(entry) == (
                parent or os.getpid()
            ):
                found.append(int(entry.name))
        except OSError:
            continue

    return found


def is_alive(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def _parent(process: Path) -> int:
    """Return the second field after the name in /proc/PID/stat (proc(5))."""
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])


def upload(s: Served, name: str, data: bytes) -> tuple[int, str]:
    request = urllib.request.Request(
        f"{s.base}/upload?name={name}",
        data=data,
        method="POST",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a map; readers hang at other maps."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setattr(reading, "MODULE", hangingreader.MODULE)
    (tmp_path / "good.map").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def simulator(
    folder: Path, limits: JobLimits
) -> Iterator[tuple[Served, PioneerClient, PioneerClient]]:
    sim = Simulation(seed=1)
    sim.add_robot("p3dx", "ann")
    sim.add_robot("p3dx", "bob")
    with (
        served(sim, folders=(folder,), limits=limits) as s,
        PioneerClient(port=s.robot_servers.port_of("ann")) as ann,
        PioneerClient(port=s.robot_servers.port_of("bob")) as bob,
    ):
        yield s, ann, bob


def test_a_map_that_hangs_holds_up_nobody_and_goes_with_the_simulator(
    folder: Path,
) -> None:
    with simulator(folder, JobLimits(time=10 * PATIENCE)) as (s, ann, bob):
        control(ann, Ctrl.LOAD_MAP, "hang.map")
        wait(readers, what="the process that reads")
        control(bob, Ctrl.LOAD_MAP, "good.map")
        assert changed(bob) == ("good.map", 1), "another client's map"
        assert len(s.sim.scene.segments) == 1
        assert upload(s, "sent.map", SMALL.encode())[0] == 200, "and one from the page"
        assert changed(ann, 2)[1] == 1, "the others' maps"
        for _ in range(5):
            # Reports continue while the map loads.
            wait(ann.update)
        assert [c.loaded for c in ann.map_changes] == [1, 1]
        assert len(readers()) == 1

    wait(lambda: not readers())


def test_a_map_that_takes_too_long_is_given_up_and_the_client_told(
    folder: Path,
) -> None:
    with simulator(folder, JobLimits(time=0.3)) as (s, ann, bob):
        scene = s.sim.scene
        # The second request waits no longer than the first one.
        for count in (1, 2):
            control(ann, Ctrl.LOAD_MAP, "hang.map")
            assert changed(ann, count) == ("hang.map", 2)

        status, why = upload(s, "hang.yaml", b"a: 1")
        assert (status, why) == (
            422,
            "the job took more than 0.3 s (--job-time raises this limit)",
        )
        assert s.sim.scene is scene
        assert not bob.map_changes, "who has not asked is not told"

    assert not readers()


def test_a_broken_map_is_told_as_before(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "bad.map").write_text("2D-Map\nResolution: fine\nDATA\n0 0\n")
    with (
        simulator(folder, JobLimits(time=PATIENCE)) as (s, ann, _),
        caplog.at_level("WARNING"),
    ):
        control(ann, Ctrl.LOAD_MAP, "bad.map")
        assert changed(ann) == ("bad.map", 2)
        told = 'map "bad.map" was not loaded, the current map stays: '
        assert any(
            told in line and f"{folder}/bad.map:2: " in line for line in caplog.messages
        )
        status, why = upload(s, "other.map", b"2D-Map\nResolution: fine\n")
        assert (status, why.startswith("other.map:2: ")) == (422, True), why


def test_a_map_whose_walls_would_slow_every_step_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ray and each move would have to test all of its many crossing walls."""
    (tmp_path / "good.map").write_text(SMALL)
    monkeypatch.setattr(maploading, "MAX_CROWDING", 0.5)
    c = Client(folders=(tmp_path,))
    scene = c.sim.scene
    c.ctrl(Ctrl.LOAD_MAP, named("good.map"))
    assert c.sim.scene is scene
    monkeypatch.setattr(maploading, "MAX_CROWDING", 2.0)
    c.ctrl(Ctrl.LOAD_MAP, named("good.map"))
    assert c.sim.scene is not scene


@pytest.mark.parametrize("away", [6_000.0, 1e7])
def test_pictures_of_a_world_that_is_large_are_as_large_as_others(
    folder: Path, away: float
) -> None:
    with simulator(folder, JobLimits(time=PATIENCE)) as (s, ann, bob):
        s.do(lambda: s.sim.put("bob", Pose(0.0, away, 1.0)))
        wait(lambda: s.do(lambda: s.sim.robots["bob"].truth.y == away))
        control(ann, Ctrl.SNAPSHOT, "far")
        control(bob, Ctrl.SNAPSHOT, "refused")
        wait(
            lambda: (
                ann.update()
                and (folder / "far.png").is_file()
                and (folder / "far.png").stat().st_size
            )
        )
        for _ in range(3):
            wait(ann.update)
        with Image.open(folder / "far.png") as picture:
            picture.load()
            assert max(picture.size) <= 4000
            assert picture.width * picture.height <= 4_000_000

        assert sorted(p.name for p in folder.iterdir()) == ["far.png", "good.map"], (
            "one at a time"
        )


@pytest.mark.peer
@pytest.mark.skipif(
    not Path("/proc/self").is_dir(), reason="looks for processes in /proc"
)
def test_the_end_waits_for_no_map(tmp_path: Path) -> None:
    """SIGTERM while a reader hangs, at any moment after its start."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time\nif 'botyard.formats.reading:main' in sys.orig_argv: time.sleep(600)\n"
    )
    (tmp_path / "good.map").write_text(SMALL)
    port, left = free_port(2), tmp_path / "t"
    left.mkdir()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "botyard",
            "run",
            "--noninteractive",
            "--no-crash-restart",
            "--json",
            "--no-gui",
            "--nomap",
            "-p",
            str(port),
            "-r",
            "p3dx",
            "--job-time",
            "500",
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(
                [str(tmp_path), os.environ.get("PYTHONPATH", "")]
            ),
            "TMPDIR": str(left),
        },
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["ready"]
        with PioneerClient(port=port) as ann:
            control(ann, Ctrl.LOAD_MAP, "good.map")
            wait(
                lambda: (
                    ann.update() and readers("botyard.formats.reading", process.pid)
                ),
                pause=0.0,
            )
            reading = readers("botyard.formats.reading", process.pid)
            assert list(left.glob("botyard-*"))
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()

    wait(lambda: not any(is_alive(pid) for pid in reading))
    assert not list(left.glob("botyard-*")), (
        "its folder for temporary files has gone too"
    )


def test_a_host_whose_loop_has_ended_needs_no_answer() -> None:
    from botyard.servers.hub import Hub
    from botyard.servers.jobs.threads import LoopHost

    async def begin() -> None:
        host = LoopHost(Hub(Simulation()))
        host.run_in_background(
            lambda: wait(ended.is_set),
            lambda result, error: pytest.fail("there is nobody to tell"),
        )

    import threading

    usual, ended = sys.getswitchinterval(), threading.Event()
    asyncio.run(begin())
    ended.set()
    wait(lambda: sys.getswitchinterval() == usual)
