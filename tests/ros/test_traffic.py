"""Supervisors that are ROS nodes:

a rospy program in the style of the original, and Fast DDS.
"""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.ros.ros1 import Ros1World, output
from tests.ros.ros2 import Ros2World
from tests.waiting import PATIENCE, wait

CROSSING = {
    "NumberOfVehicles": 2,
    "Vehicles": {
        "Vehicle0": [
            {"Endpoint": 4, "Colliding": []},
            {"Endpoint": 6, "Colliding": [[1, 1]]},
            {"Endpoint": 10, "Colliding": []},
        ],
        "Vehicle1": [
            {"Endpoint": 4.5, "Colliding": []},
            {"Endpoint": 6.5, "Colliding": [[0, 1]]},
            {"Endpoint": 10, "Colliding": []},
        ],
    },
}


def command(folder: Path, *args: str) -> list[str]:
    (folder / "task.json").write_text(json.dumps(CROSSING))
    task, result = str(folder / "task.json"), str(folder / "result.json")
    return [
        sys.executable,
        "-m",
        "botyard",
        "traffic",
        "run",
        task,
        "--result",
        result,
        *args,
    ]


def result_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


@pytest.mark.xdist_group("ros1")
@pytest.mark.parametrize("mode", [[], ["--compat"]], ids=["exact", "compat"])
def test_a_rospy_supervisor(world: Ros1World, tmp_path: Path, mode: list[str]) -> None:
    """It waits for the supervisor, robot 1 waits for robot 0, and no message comes
    before its time: they can only be late.
    """
    world.master()
    args = command(tmp_path, "--ros-master", world.uri, "--wait-for-supervisor", *mode)
    run = world.spawn(*args, env={**world.env, "PYTHONPATH": ""})
    wait(lambda: "/critical_points" in world.known()[0])
    wait(lambda: world.known()[1] == {"/move_permissions"})
    assert not (tmp_path / "result.json").exists()
    granted = world.rospy("supervise", str(tmp_path / "task.json"))
    assert run.wait(PATIENCE) == 0, output(run)
    assert granted == [[0, 1], [0, 2], [1, 1], [1, 2]]
    result = result_of(tmp_path)
    assert result["outcome"] == "completed"
    assert result["makespan_s"] > (23.7 if mode else 22.48) - 0.2
    events = result["events"]
    assert 1 in [e["robot"] for e in events if e["kind"] == "stop"]
    order = {
        (e["kind"], e["robot"], e["sector"]): e["t"]
        for e in events
        if e["kind"] in ("enter", "release")
    }
    assert order["enter", 1, 1] > order["release", 0, 1], (
        "robot 1 came to the crossing when robot 0 had left it"
    )


@pytest.mark.xdist_group("ros1")
def test_a_rospy_supervisor_with_the_page(world: Ros1World, tmp_path: Path) -> None:
    """The world shows the run, and Ctrl-C prints its outcome."""
    world.master()
    run = world.spawn(
        *command(tmp_path, "--ros-master", world.uri, "--wait-for-supervisor"),
        *("--page", "--no-browser", "--gui-token", "off", "--speed", "4"),
        env={**world.env, "PYTHONPATH": ""},
    )
    wait(lambda: "page: http" in output(run))

    def end() -> None:
        wait(lambda: "traffic: completed" in output(run))
        run.send_signal(signal.SIGINT)

    # The supervisor works until the simulator ends.
    threading.Thread(target=end, daemon=True).start()
    granted = world.rospy("supervise", str(tmp_path / "task.json"))
    assert granted == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert run.wait(PATIENCE) == 0, output(run)
    result = result_of(tmp_path)
    assert result["outcome"] == "completed"
    assert result["makespan_s"] > 22.0


@pytest.mark.xdist_group("ros1")
def test_a_supervisor_that_comes_late_is_told_who_waits(
    world: Ros1World, tmp_path: Path
) -> None:
    world.master()
    run = world.spawn(
        *command(
            tmp_path, "--ros-master", world.uri, "--speed", "3", "--idle-limit", "0"
        ),
        env={**world.env, "PYTHONPATH": ""},
    )
    wait(lambda: "ready" in output(run))
    wait(lambda: "/critical_points" in world.known()[0])
    # A passive subscriber listens until both robots have asked; then no node but the supervisor
    # does.
    assert (
        world.rospy("listen", [["/critical_points", "std_msgs/Int16", 2]], 0.0)[
            "/critical_points"
        ]["count"]
        >= 2
    )
    granted = world.rospy("supervise", str(tmp_path / "task.json"))
    assert sorted(granted) == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert run.wait(PATIENCE) == 0, output(run)
    assert result_of(tmp_path)["outcome"] == "completed"


@pytest.mark.xdist_group("ros1")
def test_nobody_supervises(world: Ros1World, tmp_path: Path) -> None:
    """All stand still: a deadlock, which the original never detects.

    A permission for an unknown robot is refused, and the run goes on.
    """
    world.master()
    args = command(
        tmp_path, "--ros1", "--idle-limit", "2", "--speed", "4", "--wait-for-supervisor"
    )
    env = {**world.env, "PYTHONPATH": "", "ROS_NAMESPACE": "lab"}
    run = world.spawn(*args, env=env)
    wait(lambda: "/lab/move_permissions" in world.known()[1])
    assert (
        world.rospy(
            "permit_and_look_on", "/lab/move_permissions", "/lab/critical_points", 7, 2
        )
        >= 2
    )
    assert run.wait(PATIENCE) == 11, output(run)
    assert "expected a robot from 0 to 1" in output(run)
    result = result_of(tmp_path)
    assert (result["outcome"], result["deadlock_cycle"]) == ("deadlock", [])


@pytest.mark.xdist_group("ros1")
def test_what_does_not_go(tmp_path: Path) -> None:
    for args, status, text in (
        (["--ros-master", "http://127.0.0.1:1/"], 235, "no ROS master"),
        (["--ros1", "--supervisor", "fcfs"], 255, "supervisor is then a ROS node"),
    ):
        done = subprocess.run(
            command(tmp_path, *args),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, text in done.stderr) == (status, True), done.stderr


@pytest.mark.xdist_group("ros2")
def test_permissions_from_fast_dds(world2: Ros2World, tmp_path: Path) -> None:
    """A ROS 2 peer permits robot 0 and never robot 1; the peer receives robot 0's
    critical points.
    """
    args = command(
        tmp_path, "--ros2", "--idle-limit", "6", "--speed", "4", "--wait-for-supervisor"
    )
    run = world2.spawn(*args)
    int16 = "std_msgs/msg/Int16"
    topics = {"/critical_points": (int16, "rv3"), "/release_points": (int16, "rv2")}
    permission = b"\x00\x01\x00\x00" + struct.pack("<h", 0)
    got, text = world2.fast(1, topics, {"/move_permissions": (int16, permission)})
    assert run.wait(PATIENCE) == 11, text
    assert got["/critical_points"][0] == 3
    assert got["/release_points"][0] == 2
    result = result_of(tmp_path)
    assert result["metrics"]["finished"] == 1
    assert [e["robot"] for e in result["events"] if e["kind"] == "finish"] == [0]
