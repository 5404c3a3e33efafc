"""Foxglove's protocol with Foxglove's client, and the admission of clients."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

import botyard
from botyard.app.running import Running
from botyard.control import SwitchInterface
from botyard.protocols.foxglove import SUBPROTOCOLS
from tests.ports import free_port
from tests.running import running
from tests.waiting import PATIENCE, wait

HERE = Path(__file__).parent
PROPOSED = [Subprotocol(name) for name in SUBPROTOCOLS]


def world() -> botyard.Simulation:
    sim = botyard.Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0))
    return sim


def url(served: Running) -> str:
    return f"ws://127.0.0.1:{served.interfaces['foxglove'].port}"


@pytest.fixture
def served() -> Iterator[Running]:
    with botyard.serve(
        world(), port=0, page=False, discovery=False, foxglove=0
    ) as found:
        yield found


def opened(
    served: Running, query: str = "", subprotocol: str = SUBPROTOCOLS[0], **headers: str
) -> Any:
    return connect(
        f"{url(served)}/{query}",
        subprotocols=[Subprotocol(subprotocol)],
        additional_headers=headers,
    )


@pytest.mark.peer
@pytest.mark.parametrize("subprotocol", SUBPROTOCOLS)
def test_foxglove(served: Running, subprotocol: str) -> None:
    if not (HERE / "npm/node_modules/@foxglove/ws-protocol").is_dir():
        if os.environ.get("CI"):
            pytest.fail(
                "@foxglove/ws-protocol is missing, and in CI it must be there (make peers)"
            )

        pytest.skip("@foxglove/ws-protocol is not installed: make peers")

    node = shutil.which("node")
    assert node
    done = subprocess.run(
        [node, "foxglove_peer.mjs", url(served), subprotocol],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=HERE / "npm",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    name, capabilities, encodings, session = seen["info"]
    assert (
        name == "botyard: office"
        and encodings == ["cdr", "json"]
        and session == "string"
    )
    assert {"clientPublish", "parameters", "services", "time"} <= set(capabilities)
    topics = {topic: rest for topic, *rest in seen["topics"]}
    assert topics["/ann/odom"] == ["cdr", "nav_msgs/msg/Odometry", "ros2msg"]
    assert {"/map", "/tf", "/tf_static", "/rosout", "/clock", "/ann/base_scan"} <= set(
        topics
    )
    assert ["/botyard/pause", "std_srvs/srv/Trigger"] in seen["services"]
    assert not any(
        "/_" in topic for topic in (*topics, *(name for name, _ in seen["services"]))
    ), "hidden names"
    assert seen["scan"] == ["Float32Array", 181, "ann/base_laser"]
    assert seen["map"][0] > 100 and seen["map"][1]
    assert ["ann/odom", "ann/base_link"] in seen["tf"]
    sent, stamped = seen["stamp"]
    assert sent == pytest.approx(stamped) and sent > 0.0
    assert seen["time"] >= sent
    assert seen["json"] and seen["cdr"]
    assert seen["published"] == {"name": "/ann/odom", "publisherIds": ["/botyard"]}
    assert (
        seen["added"] == {"success": True, "message": "", "name": "bob"}
        and seen["appeared"] == "nav_msgs/msg/Odometry"
    )
    assert seen["removed"] == {"success": True, "message": ""}
    assert not seen["refused"]["success"] and "nobody" in seen["refused"]["message"]
    assert 'did you mean "name"' in seen["wrong"]["failure"]
    assert seen["got"] == [
        {"name": "/botyard.pause", "value": False},
        {"name": "/botyard.speed", "value": 1, "type": "float64"},
    ]
    assert [p["value"] for p in seen["set"]] == [True, 4, 1]
    assert seen["paused"] == [{"name": "/botyard.pause", "value": True}]
    texts = [text for _, text in seen["statuses"]]
    assert texts == [
        "foxglove: /botyard.speed: expected a number, found fast",
        "foxglove: this server has no assets",
    ]
    assert served.sim.robots.keys() == {"ann"}


def test_who_may_come(served: Running) -> None:
    """Programs and pages of this machine; not pages of other sites, and not clients of
    another protocol.
    """
    with opened(served) as socket:
        assert socket.subprotocol == SUBPROTOCOLS[0]
        assert json.loads(socket.recv(PATIENCE))["op"] == "serverInfo"

    for headers in (
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Host": "elsewhere.example"},
    ):
        with pytest.raises(InvalidStatus):
            opened(served, **headers)

    with pytest.raises(InvalidStatus):
        opened(served, subprotocol="rosbridge_v2")
    with opened(served, **{"Origin": "http://localhost:8080"}) as socket:
        assert json.loads(socket.recv(PATIENCE))["op"] == "serverInfo"


def test_token() -> None:
    with botyard.serve(
        world(), port=0, page=False, discovery=False, foxglove=0, foxglove_token="seven"
    ) as served:
        for query in ("", "?token=six"):
            with pytest.raises(InvalidStatus):
                opened(served, query)

        with opened(
            served, "?token=seven", Origin="https://app.foxglove.dev"
        ) as socket:
            assert json.loads(socket.recv(PATIENCE))["op"] == "serverInfo"


def test_from_the_command_line() -> None:
    """The page has a port, and ROS is off."""
    port = free_port()
    options = (
        "--no-gui",
        "-p",
        f"{free_port()}",
        "--foxglove",
        f"{port}",
        "--no-network-discovery",
    )
    with (
        running("--nomap", "-r", "p3dx:ann", *options),
        connect(f"ws://localhost:{port}", subprotocols=PROPOSED) as one,
    ):
        assert json.loads(one.recv(PATIENCE))["name"] == "botyard: nomap"


def test_it_is_switched_off_and_on(served: Running) -> None:
    """Clients are disconnected; later ones find everything again, in a session with
    another id.
    """
    sessions = []
    for _ in range(2):
        with opened(served) as one:
            sessions.append(json.loads(one.recv(PATIENCE))["sessionId"])
            assert any(
                json.loads(one.recv(PATIENCE)).get("op") == "advertise"
                for _ in range(3)
            )
            served.do(SwitchInterface(interface="foxglove", on=False))
            with pytest.raises(ConnectionClosed):
                any(one.recv(PATIENCE) is None for _ in itertools.count())

        wait(lambda: "foxglove" not in served.interfaces)
        served.do(SwitchInterface(interface="foxglove", on=True))
        wait(lambda: "foxglove" in served.interfaces)

    assert len({*sessions}) == 2


def test_the_layout_names_what_there_is() -> None:
    """Topics, services and frames of the example layout, with the robot of the how-to
    page.
    """
    layout = json.loads(
        (HERE.parents[1] / "examples/foxglove/one-robot.json").read_text("utf-8")
    )["configById"]
    sim = botyard.Simulation.load("office", seed=1)
    sim.add_robot("p3dx-sh", "ann")
    with (
        botyard.serve(sim, port=0, page=False, discovery=False, foxglove=0) as served,
        opened(served) as one,
    ):
        told: dict[str, Any] = {}
        while len(told) < 3:
            found = json.loads(one.recv(PATIENCE))
            told[found["op"]] = found

    topics = {c["topic"]: c["schemaName"] for c in told["advertise"]["channels"]}
    assert {
        name for name, shown in layout["3D!world"]["topics"].items() if shown["visible"]
    } <= set(topics)
    assert all(
        path["value"].partition(".")[0] in topics
        for path in layout["Plot!speed"]["paths"]
    )
    assert layout["CallService!pause"]["serviceName"] in {
        s["name"] for s in told["advertiseServices"]["services"]
    }
    assert (
        layout["Teleop!drive"]["topic"] == "/ann/cmd_vel"
        and layout["3D!world"]["followTf"] == "ann/base_link"
    )
