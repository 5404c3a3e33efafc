"""Rosbridge with its real clients, roslibpy (Python) and roslib (JavaScript), and the
admission of clients.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import botyard
from botyard.app.running import Running
from botyard.control import SendRobots, SetPoseEstimate, SwitchInterface
from botyard.errors import ArgumentError, PortError
from botyard.geometry import Pose
from botyard.protocols.rosbridge.limits import MAX_FRAME, MAX_MESSAGE
from tests.ports import free_port
from tests.running import running
from tests.waiting import PATIENCE, wait

HERE = Path(__file__).parent


def world() -> botyard.Simulation:
    sim = botyard.Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0))
    return sim


def url(running: Running) -> str:
    return f"ws://127.0.0.1:{running.interfaces['rosbridge'].port}"


@pytest.fixture
def served() -> Iterator[Running]:
    with botyard.serve(
        world(), port=0, page=False, discovery=False, rosbridge=0
    ) as running:
        yield running


def peer(*command: str, **environment: str) -> Any:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=HERE / "npm",
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.peer
@pytest.mark.parametrize("transport", ["twisted", "asyncio"])
def test_roslibpy(served: Running, transport: str) -> None:
    # The environment of developers has cbor2.
    pytest.importorskip("cbor2")
    seen = peer(
        sys.executable,
        str(HERE / "roslibpy_peer.py"),
        url(served),
        ROSLIBPY_TRANSPORT=transport,
    )
    assert {"/ann/odom", "/ann/cmd_vel", "/map", "/clock"} <= set(seen["topics"])
    assert seen["type"] == "nav_msgs/msg/Odometry"
    assert "/botyard" in seen["nodes"] and "/botyard/pause" in seen["services"]
    assert seen["map"]["width"] > 100
    assert seen["scan"] == 181
    assert seen["odom"]["linear"]["x"] > 0.0 and seen["odom"]["angular"][
        "z"
    ] == pytest.approx(0.2, abs=0.05)
    assert (
        seen["added"] == {"success": True, "message": "", "name": "bob"}
        and seen["bob"] == "bob/base_link"
    )
    assert {"ann", "bob"} <= set(seen["entities"])
    assert 'no field "modle"; did you mean "model"' in seen["error"]
    assert seen["twice"] == {"sum": 42}
    status, values, told = seen["done"]
    assert (status, values["result"]["result"], told) == (4, 1, [1, 2, 3])
    assert seen["wrong"][:2] == [
        0,
        "goal.steps: expected an integer from 0 to 18446744073709551615, found 'x'",
    ]
    status, _, told = seen["cancelled"]
    assert status == 5 and 1 <= len(told) < 100_000


@pytest.mark.peer
def test_roslib(served: Running) -> None:
    if not (HERE / "npm/node_modules/roslib").is_dir():
        if os.environ.get("CI"):
            pytest.fail("roslib is missing, and in CI it must be there (make peers)")
        pytest.skip("needs roslib (make peers)")

    node = shutil.which("node") or str(Path(sys.executable).parent / "node")
    seen = peer(node, "roslib_peer.mjs", url(served))
    assert seen["none"] == seen["png"] == 181
    assert seen["cbor"] == ["Float32Array", 181]
    assert (
        seen["raw"][0] == "Uint8Array"
        and seen["raw"][1] > 4 * 181
        and seen["raw"][2] == ["bytes", "nsecs", "secs"]
    )
    assert seen["pieces"] == "ann/base_link"
    assert seen["odom"]["linear"]["x"] > 0.2
    assert "/ann/odom" in seen["topics"]["topics"]
    assert seen["paused"] == {"success": True, "message": ""}
    assert 'no field "nam"' in seen["error"]
    assert seen["param"] is True
    assert seen["action"] == [{"sequence": [3]}, {"sequence": [0, 1, 1]}]
    assert "cancel" in seen["cancelled"].lower()


def test_from_the_command_line() -> None:
    """Rosbridge has a port, and ROS is off."""
    pioneer, port = free_port(), free_port()
    options = (
        "--no-gui",
        "-p",
        f"{pioneer}",
        "--rosbridge",
        f"{port}",
        "--no-network-discovery",
    )
    with (
        running("--nomap", "-r", "p3dx:ann", *options),
        connect(f"ws://localhost:{port}") as one,
    ):
        one.send(json.dumps({"op": "subscribe", "topic": "/ann/odom"}))
        assert json.loads(one.recv(PATIENCE))["topic"] == "/ann/odom"


ORIGINS = {
    "": True,
    "http://localhost:8000": True,
    "http://127.0.0.1:5173": True,
    "http://[::1]:80": True,
    "https://example.org": False,
    "http://localhost.example.org": False,
    "null": False,
    "file://": False,
    "http://[": False,
}
"""Pages that may connect without a token."""


def knocks(address: str, origin: str = "", **headers: str) -> bool:
    """Return whether a client is admitted and served."""
    options: dict[str, Any] = {
        "origin": origin or None,
        "additional_headers": headers,
        "open_timeout": PATIENCE,
    }
    try:
        socket = connect(address, **options)
    except InvalidStatus as error:
        refused = error.response.status_code
    else:
        with socket:
            socket.send(
                json.dumps({"op": "call_service", "service": "/rosapi/get_time"})
            )
            return json.loads(socket.recv(PATIENCE))["result"] is True

    assert refused == 403
    return False


def test_pages_of_other_sites_may_not_connect(served: Running) -> None:
    assert {origin: knocks(url(served), origin) for origin in ORIGINS} == ORIGINS


def test_with_a_token_only_those_may_connect_who_show_it_from_anywhere() -> None:
    with botyard.serve(
        world(),
        port=0,
        page=False,
        discovery=False,
        rosbridge=0,
        rosbridge_token="s3cret é",
    ) as one:
        address = url(one)
        assert not knocks(address)
        assert not knocks(f"{address}/?token=wrong", "http://localhost:8000")
        assert not knocks(address + "/?" + "&".join(f"a{n}=1" for n in range(50)))
        assert knocks(f"{address}/?token=s3cret%20%C3%A9", "https://example.org")
        assert knocks(address, Authorization="Bearer s3cret é")


def test_a_client_that_does_not_read_is_still_heard(served: Running) -> None:
    """It requests more than sockets hold and reads nothing; its commands still arrive,
    and others are served.
    """
    call = json.dumps({"op": "call_service", "service": "/static_map"})
    with (
        connect(url(served), max_queue=1, compression=None, close_timeout=0) as deaf,
        connect(url(served), max_size=None) as other,
    ):
        other.send(call)
        size = len(other.recv(PATIENCE))
        # Stay below the size that disconnects the client (MAX_ANSWER_SIZE).
        for _ in range(15_000_000 // size):
            deaf.send(call)

        deaf.send(json.dumps({"op": "subscribe", "topic": "/map"}))
        deaf.send(
            json.dumps(
                {
                    "op": "publish",
                    "topic": "/ann/cmd_vel",
                    "msg": {"linear": {"x": 0.3}},
                }
            )
        )
        wait(lambda: served.sim.robots["ann"].truth.x > 10.02)
        other.send(call)
        assert json.loads(other.recv(PATIENCE))["result"]


def test_messages_that_are_too_long(served: Running) -> None:
    """Such an operation is refused, with a status for clients that request one; a
    longer one ends the connection.
    """
    with connect(url(served), compression=None) as one:
        one.send(json.dumps({"op": "set_level", "level": "error"}))
        one.send(
            json.dumps(
                {"op": "publish", "topic": "/x", "msg": {"data": "x" * MAX_MESSAGE}}
            )
        )
        told = json.loads(one.recv(PATIENCE))
        assert (told["op"], told["level"]) == (
            "status",
            "error",
        ) and f"at most {MAX_MESSAGE} bytes" in told["msg"]
        one.send(json.dumps({"op": "call_service", "service": "/rosapi/get_time"}))
        assert json.loads(one.recv(PATIENCE))["result"] is True
        with pytest.raises(ConnectionClosed) as ended:  # noqa: PT012 - the server reads no more of it, perhaps while it is still sent
            one.send("x" * (MAX_FRAME + 1))
            one.recv(PATIENCE)

        assert ended.value.rcvd is None or ended.value.rcvd.code == 1009

    with connect(url(served)) as other:
        other.send(json.dumps({"op": "call_service", "service": "/rosapi/get_time"}))
        assert json.loads(other.recv(PATIENCE))["result"] is True


def test_goals_of_a_client_that_goes_are_cancelled(served: Running) -> None:
    steps = "/botyard/simulate_steps"
    with connect(url(served)) as other:
        other.send(json.dumps({"op": "subscribe", "topic": f"{steps}/_action/status"}))
        with connect(url(served), close_timeout=0) as one:
            one.send(json.dumps({"op": "call_service", "service": "/botyard/pause"}))
            goal = {
                "op": "send_action_goal",
                "action": steps,
                "id": "g",
                "args": {"steps": 1_000_000},
                "feedback": True,
            }
            one.send(json.dumps(goal))
            while json.loads(one.recv(PATIENCE))["op"] != "action_feedback":
                pass

        told: list[Any] = []
        while not told or told[-1]["status"] != 5:
            told = json.loads(other.recv(PATIENCE))["msg"]["status_list"]


def test_goals_and_estimates_of_the_page_arrive(served: Running) -> None:
    with connect(url(served)) as one:
        for topic in ("/ann/goal_pose", "/ann/initialpose"):
            one.send(json.dumps({"op": "subscribe", "topic": topic}))
        # The answer says that both subscriptions are in force.
        one.send(json.dumps({"op": "call_service", "service": "/rosapi/topics"}))
        while json.loads(one.recv(PATIENCE))["op"] != "service_response":
            pass
        served.do(SendRobots(robots=("ann",), goals=((12.0, 9.0, 0.5),)))
        goal = json.loads(one.recv(PATIENCE))
        assert goal["topic"] == "/ann/goal_pose"
        assert goal["msg"]["pose"]["position"] == {"x": 12.0, "y": 9.0, "z": 0.0}
        served.do(SetPoseEstimate(robot="ann", pose=Pose(3.0, 4.0, 1.0)))
        estimate = json.loads(one.recv(PATIENCE))
        assert estimate["topic"] == "/ann/initialpose"
        assert estimate["msg"]["pose"]["pose"]["position"]["y"] == 4.0


def test_it_is_switched_off_and_on(served: Running) -> None:
    """Clients are disconnected; later clients find all topics again."""
    with connect(url(served)) as one:
        one.send(json.dumps({"op": "subscribe", "topic": "/ann/odom"}))
        one.recv(PATIENCE)
        served.do(SwitchInterface(interface="rosbridge", on=False))
        with pytest.raises(ConnectionClosed):
            any(one.recv(PATIENCE) is None for _ in itertools.count())

    wait(lambda: "rosbridge" not in served.interfaces)
    served.do(SwitchInterface(interface="rosbridge", on=True))
    wait(lambda: "rosbridge" in served.interfaces)
    with connect(url(served)) as one:
        one.send(json.dumps({"op": "subscribe", "topic": "/ann/odom"}))
        assert json.loads(one.recv(PATIENCE))["topic"] == "/ann/odom"


def test_a_port_that_is_taken(served: Running) -> None:
    port = served.interfaces["rosbridge"].port
    with (
        pytest.raises(PortError, match=f"rosbridge.*port {port}"),
        botyard.serve(world(), port=0, page=False, discovery=False, rosbridge=port),
    ):
        pass


def test_a_token_that_no_header_can_carry() -> None:
    for token in ("", "\n", "x" * 600):
        with pytest.raises(ArgumentError, match="rosbridge_token: expected 1 to"):
            botyard.serve(
                world(), port=0, page=False, rosbridge=0, rosbridge_token=token
            )
