"""``--read-only``:

clients drive their robots and read everything; no client can change the world.
"""

from __future__ import annotations

import json
import re
import struct
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from botyard.app.compose import compose
from botyard.clients.ambf import Client as AmbfClient
from botyard.interfaces.ros.graph import RosGraph
from botyard.protocols.pioneer.commands import C
from botyard.protocols.pioneer.packet import frame
from botyard.protocols.ros_messages.simulation_interfaces import CHANGING, Feature
from botyard.protocols.ros_messages.types import types
from botyard.protocols.webgui import messages
from botyard.protocols.webgui.session import Tokens
from botyard.sim.simulation import Simulation
from tests.ports import free_port
from tests.protocols.lines import Client, named
from tests.running import running
from tests.waiting import PATIENCE


def test_a_pioneer_client_drives_and_reads_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    c = Client(read_only=True, srisim_compat=True)
    scene, pose = c.sim.scene, c.robot.truth
    c.line.send(frame(C.SIM_SET_POSE, struct.pack("<Biii", 0x1B, 1000, 0, 0)))
    for number in (C.SIM_RESET, C.SIM_EXIT, C.RESET, C.MAINTENANCE, 62, 66, 67, 68, 69):
        c.send(number, 1)
    for operation in (1, 2, 3, 4, 7, 8, 200, 201, 203, 204, 205, 206, 207, 208):
        c.ctrl(operation, named("office"))
    c.run(1.0)
    assert not c.line.closed
    assert c.sim.scene is scene
    assert c.robot.truth == pose
    assert not c.robot.is_ghost
    assert list(tmp_path.iterdir()) == []
    said = [text for text in c.log if "read-only" in text]
    names = (
        "SIM_SET_POSE",
        "SIM_RESET",
        "SIM_EXIT",
        "RESET",
        "MAINTENANCE",
        "OLD_END_SIM",
        "SIM_CTRL",
        "SnapshotRequested",
    )
    for name in names:
        line = re.compile(rf"\b{name}\)? is denied: the world is read-only")
        assert sum(line.search(text) is not None for text in said) == 1, (name, said)

    c.ctrl(6)
    c.ctrl(5)
    assert c.get(0x64) or c.run(0.1) is not None
    c.send(C.ENABLE, 1)
    c.send(C.VEL, 300)
    c.run(2.0)
    assert c.robot.truth.x > 0.2, "it drives"


def test_what_ros_offers() -> None:
    import asyncio

    async def offered(read_only: bool) -> tuple[set[str], set[str], Any]:
        sim = Simulation(seed=1)
        sim.add_robot("p3dx", "ann")
        parts = compose(sim, read_only=read_only)
        graph = RosGraph(parts.hub, parts.control, parts.maps.cells, types())
        graph._sync()
        members = [graph._world, *graph._members.values()]
        services = {s.name: s for m in members for s in m.services}
        features = next(
            s for n, s in services.items() if n.endswith("get_simulator_features")
        )
        answer = features.serve(
            types().filled("simulation_interfaces/srv/GetSimulatorFeatures_Request", {})
        )
        return (
            set(services),
            {i.name for m in members for i in m.inputs},
            {Feature(f) for f in answer.features.features},
        )

    services, inputs, features = asyncio.run(offered(False))
    fewer, less, able = asyncio.run(offered(True))
    assert services - fewer == {
        *(
            f"/botyard/{n}"
            for n in (
                "pause",
                "resume",
                "step",
                "set_speed",
                "add_robot",
                "remove_robot",
                "set_pose",
                "load_map",
                "set_entity_state",
                "spawn_entity",
                "delete_entity",
                "set_simulation_state",
                "step_simulation",
                "reset_simulation",
                "spawn_entities",
                "set_entity_info",
                "load_world",
                "unload_world",
                "simulate_steps/_action/send_goal",
                "simulate_steps/_action/cancel_goal",
                "simulate_steps/_action/get_result",
                "start_recording",
                "stop_recording",
                "save_recording",
            )
        ),
        "/reset_positions",
    }
    assert inputs - less == {
        "/ann/set_pose",
        *(f"/botyard/{n}_cmd" for n in ("pause", "step", "set_speed", "load_map")),
    }
    assert "/ann/cmd_vel" in less
    assert features - able == CHANGING
    assert Feature.ENTITY_STATE_GETTING in able


def test_tokens() -> None:
    assert Tokens("full", "audience", read_only=True).admits("full") is False
    assert Tokens("", read_only=True).admits("") is False
    assert Tokens("full", "audience", read_only=True).admits("other") is None


@pytest.mark.peer
def test_the_page_and_ambf_look_on(tmp_path: Path) -> None:
    port = free_port(6)
    options = (
        "--nomap",
        "-r",
        "p3dx:ann",
        "-p",
        str(port),
        "--gui-port",
        str(port + 2),
        "--gui-token",
        "secret",
        "--read-only",
        "--ambf",
        "2.0",
        "--ambf-port",
        str(port + 3),
        "--ros-master",
        f"embedded:{port + 4}",
    )
    with running(*options):
        with connect(
            f"ws://127.0.0.1:{port + 2}/ws",
            origin=f"http://127.0.0.1:{port + 2}",
            max_size=None,
        ) as socket:  # type: ignore[arg-type]
            socket.send(
                json.dumps(
                    {
                        "type": "hello",
                        "token": "secret",
                        "version": messages.VERSION,
                        "view": {},
                    }
                )
            )
            welcome = json.loads(socket.recv(5))
            assert welcome["read_only"] is True
            socket.send(json.dumps({"type": "pause", "id": 7}))
            while (answer := socket.recv(5)) and (
                isinstance(answer, bytes) or json.loads(answer).get("id") != 7
            ):
                pass

            assert json.loads(answer)["message"] == "this page may only watch"

        upload = urllib.request.Request(
            f"http://127.0.0.1:{port + 2}/upload?name=a.map",
            data=b"2D-Map\n",
            headers={"Authorization": "Bearer secret"},
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(upload, timeout=PATIENCE)
        assert refused.value.code == 401
        refused.value.close()
        client = AmbfClient("test", port=port + 3)
        client.connect(120.0)
        try:
            ann = client.get_obj_handle("/ambf/env/ann")
            heard = ann.heard
            for _ in range(20):
                ann.set_pos(3.0, 4.0, 0.0)
                time.sleep(0.02)

            assert ann.heard > heard, "states come"
            assert ann.get_pos().x == 0.0
        finally:
            client.clean_up()
