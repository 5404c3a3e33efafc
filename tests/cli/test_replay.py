"""``botyard replay``:

a recording is served like a simulator, and clients see the recorded run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from websockets.sync.client import connect

from botyard.clients.pioneer import PioneerClient
from botyard.recording import load
from botyard.sim.simulation import Simulation
from tests.cli.test_cli import call
from tests.ports import free_port
from tests.running import BOTYARD
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "run.mcap"
    sim = Simulation.load("office", seed=4)
    robot = sim.add_robot("p3dx", "ann", pose=(10.0, 10.0, 0.3))
    with sim.record(path, rate=0.0):
        robot.command(v=0.4)
        sim.step(60)

    return path


def test_programs_see_what_was_recorded(run: Path) -> None:
    port, bridge = free_port(40), free_port()
    command = [
        *BOTYARD,
        "replay",
        str(run),
        "--no-gui",
        "--json",
        "--loop",
        "--speed",
        "3",
        "--pioneer",
        "--port",
        str(port),
        "--rosbridge",
        str(bridge),
    ]
    known = load(run)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        assert json.loads(line) == {
            "ready": True,
            "recording": str(run),
            "begin": 0.0,
            "end": 6.0,
            "page": None,
        }
        seen = 0
        with connect(f"ws://127.0.0.1:{bridge}", open_timeout=PATIENCE) as socket:
            socket.send(
                json.dumps(
                    {
                        "op": "subscribe",
                        "topic": "/ann/odom",
                        "type": "nav_msgs/Odometry",
                    }
                )
            )
            socket.send(
                json.dumps(
                    {
                        "op": "advertise",
                        "topic": "/ann/cmd_vel",
                        "type": "geometry_msgs/Twist",
                    }
                )
            )
            # The robot drives until it has made one full turn.
            while seen < 70:
                twist = {"linear": {"x": -0.5}}
                socket.send(
                    json.dumps({"op": "publish", "topic": "/ann/cmd_vel", "msg": twist})
                )
                said = json.loads(socket.recv(timeout=PATIENCE))
                if said.get("topic") != "/ann/odom":
                    continue
                stamp, pose = (
                    said["msg"]["header"]["stamp"],
                    said["msg"]["pose"]["pose"]["position"],
                )
                time = (
                    stamp.get("secs", stamp.get("sec"))
                    + stamp.get("nsecs", stamp.get("nanosec")) / 1e9
                )
                row = np.flatnonzero(np.isclose(known.time, time))[0]
                assert (pose["x"], pose["y"]) == tuple(known.odometry[row, 0, :2])
                seen += 1

        with PioneerClient("127.0.0.1", port, timeout=PATIENCE) as client:
            assert client.update(PATIENCE)
        process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, log
        assert "commands of ros have no effect" in log
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=PATIENCE)


def test_a_recording_that_cannot_be_read_is_an_error(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.mcap"
    bad.write_bytes(run.read_bytes()[:3000])
    for path, said in (
        (bad, "expected a first state, found none"),
        (tmp_path / "none.mcap", "No such file"),
        (Path(__file__), "expected a recording"),
    ):
        code, _, err = call("replay", str(path), "--no-gui", capsys=capsys)
        assert code == 2 and said in err and path.name in err, err


def test_info_says_what_is_in_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call("replay", str(run), "--info", capsys=capsys)
    assert (
        code == 0
        and "/botyard/states" in out
        and "simulated time: 0.000 s to 6.000 s" in out
    )
