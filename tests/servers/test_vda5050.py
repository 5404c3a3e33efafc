"""AGVs of VDA 5050 by a real broker (Mosquitto), and a master control that releases
nodes to give way.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from botyard.protocols.vda5050.orders import Node, Order
from botyard.protocols.vda5050.states import Vehicle5050, order_message
from botyard.servers.vda5050 import MAX_PAYLOAD, MqttFleet
from botyard.traffic.task import Vehicle
from tests.ports import free_port
from tests.waiting import PATIENCE, wait

pytestmark = pytest.mark.peer


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[int]:
    program = shutil.which(
        "mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    )
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("Mosquitto is missing, and in CI it must be there")
        pytest.skip("needs Mosquitto")

    port = free_port()
    (tmp_path / "m.conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
    )
    process = subprocess.Popen(
        [program, "-c", str(tmp_path / "m.conf")],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    wait(lambda: _answers(port))
    yield port
    process.terminate()
    process.wait(PATIENCE)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except OSError:
        return False

    return True


class Master:
    """A master control."""

    def __init__(self, port: int) -> None:
        self.states: dict[str, list[dict[str, Any]]] = {}
        self.connections: dict[str, list[str]] = {}
        self.lock = threading.Lock()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = self._take
        self.client.connect("127.0.0.1", port)
        self.client.subscribe("uagv/v2/+/+/state")
        self.client.subscribe("uagv/v2/+/+/connection")
        self.client.loop_start()

    def _take(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        _, _, _, serial, kind = message.topic.split("/")
        data = json.loads(message.payload)
        with self.lock:
            if kind == "state":
                self.states.setdefault(serial, []).append(data)
            else:
                self.connections.setdefault(serial, []).append(data["connectionState"])

    def order(self, serial: str, order: Order) -> None:
        agv = Vehicle5050("botyard", serial)
        self.client.publish(
            agv.topic("order"), json.dumps(order_message(agv, 0, order)), qos=1
        ).wait_for_publish(5)

    def last(self, serial: str) -> dict[str, Any]:
        with self.lock:
            return self.states.get(serial, [{}])[-1]

    def wait(self, holds: Callable[[], Any]) -> None:
        wait(holds, what=lambda: {s: rows[-1] for s, rows in self.states.items()})

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def crossing(
    name: str, x: bool, released: int, update: int = 0, begin: int = 0
) -> Order:
    """Four nodes on a line through the origin, 4 m apart; the crossing is between the
    second and the third.
    """
    nodes = [
        Node(
            f"{name}{i}",
            2 * i,
            i < released,
            (4.0 * i - 6.0) if x else 0.0,
            0.0 if x else (4.0 * i - 6.0),
        )
        for i in range(4)
    ]
    return Order(
        name,
        update,
        tuple(nodes[begin:]),
        tuple(f"{name}-{i}" for i in range(begin, 3)),
    )


def test_a_master_control_lets_one_pass_before_the_other(
    broker: int, tmp_path: Path
) -> None:
    result = tmp_path / "result.json"
    args = [
        "traffic",
        "vda5050",
        "--broker",
        f"127.0.0.1:{broker}",
        "--agvs",
        "2",
        "--speed",
        "12",
        "--result",
        str(result),
    ]
    agvs = subprocess.Popen(
        [sys.executable, "-m", "botyard", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    master = Master(broker)
    try:
        master.wait(
            lambda: master.connections == {"agv0": ["ONLINE"], "agv1": ["ONLINE"]}
        )
        master.client.publish("uagv/v2/botyard/agv1/order", b"{no order")
        master.wait(lambda: master.last("agv1").get("errors"))
        assert master.last("agv1")["errors"][0]["errorType"] == "validationError"
        assert master.last("agv0")["errors"] == []

        master.order("agv0", crossing("a", True, 4))
        assert agvs.poll() is None
        master.order("agv1", crossing("b", False, 2))
        master.wait(
            lambda: (
                master.last("agv1").get("lastNodeId") == "b1"
                and not master.last("agv1")["driving"]
            )
        )
        waits = master.last("agv1")
        assert waits["newBaseRequest"]
        assert (waits["agvPosition"]["x"], waits["agvPosition"]["y"]) == pytest.approx(
            (0.0, -2.0), abs=1e-3
        ), "exactly over the node"
        assert [n["nodeId"] for n in waits["nodeStates"]] == ["b2", "b3"]
        assert waits["errors"] == []
        master.order("agv1", crossing("x", False, 4))
        master.wait(lambda: master.last("agv1")["errors"])
        assert master.last("agv1")["errors"][0]["errorType"] == "orderError"
        master.wait(lambda: master.last("agv0").get("lastNodeId") == "a3")
        master.order("agv1", crossing("b", False, 4, update=1, begin=1))
        out, err = agvs.communicate(timeout=PATIENCE)
        assert agvs.returncode == 0, err
        assert out.startswith("completed in")
        master.wait(
            lambda: (
                master.connections["agv0"][-1] == "OFFLINE"
                and master.connections["agv1"][-1] == "OFFLINE"
            )
        )
        assert (
            master.last("agv1")["lastNodeId"],
            master.last("agv1")["nodeStates"],
        ) == ("b3", [])
        seen = [s["lastNodeId"] for s in master.states["agv0"]]
        assert seen == sorted(seen), (
            "in order; a busy machine may pass several nodes between two states"
        )
        assert {"", "a0", "a3"} <= set(seen) <= {"", "a0", "a1", "a2", "a3"}
        headers = [s["headerId"] for s in master.states["agv0"]]
        assert headers == sorted(set(headers))
        assert json.loads(result.read_text())["metrics"]["stops"] == 1
    finally:
        master.close()
        agvs.kill()
        agvs.communicate()


@contextlib.contextmanager
def running(
    broker: int, *options: str
) -> Iterator[tuple[subprocess.Popen[str], Master]]:
    """AGVs at the broker, all online, and a master control."""
    args = ["traffic", "vda5050", "--broker", f"127.0.0.1:{broker}", *options]
    agvs = subprocess.Popen(
        [sys.executable, "-m", "botyard", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    master = Master(broker)
    try:
        master.wait(
            lambda: set(map(tuple, master.connections.values())) == {("ONLINE",)}
        )
        yield agvs, master
    finally:
        master.close()
        agvs.kill()
        agvs.communicate()


def test_each_agv_has_a_last_will_of_its_own(broker: int) -> None:
    with running(broker, "--agvs", "3") as (agvs, master):
        master.wait(lambda: len(master.connections) == 3)
        agvs.kill()
        master.wait(
            lambda: (
                {row[-1] for row in master.connections.values()} == {"CONNECTIONBROKEN"}
            )
        )
        late = Master(broker)
        late.wait(lambda: list(late.connections.values()) == [["CONNECTIONBROKEN"]] * 3)
        late.close()


def test_bad_orders_are_errors_and_never_the_end(broker: int) -> None:
    """The orders of ../shared/cases/attack/vda_orders.py, and an update that changes
    the horizon (case 05).
    """
    with running(broker, "--agvs", "2", "--speed", "12") as (agvs, master):
        master.order("agv0", crossing("a", True, 2))
        for bad in (
            Order(
                "s",
                0,
                (Node("a", 0, True, 0.0, 5.0), Node("b", 2, True, 0.001, 5.0)),
                ("e",),
            ),
            Order("s", 0, (Node("a", 0, True, 0.0, 5.0),), ()),
        ):
            count = len(master.last("agv1").get("errors", []))
            master.order("agv1", bad)
            master.wait(lambda n=count: len(master.last("agv1").get("errors", [])) > n)  # type: ignore[misc]
            assert master.last("agv1")["errors"][-1]["errorType"] == "orderError"

        master.client.publish(
            "uagv/v2/botyard/agv1/order", b"x" * (MAX_PAYLOAD + 1), qos=1
        ).wait_for_publish(PATIENCE)
        master.wait(lambda: "dropped 1 messages" in str(master.last("agv1")["errors"]))
        master.order(
            "agv1",
            Order(
                "s",
                0,
                (Node("a", 0, True, 0.0, 50.0), Node("b", 2, True, 4.0, 50.0)),
                ("e",),
            ),
        )
        master.wait(
            lambda: (
                master.last("agv0").get("lastNodeId") == "a1"
                and not master.last("agv0")["driving"]
            )
        )
        places = (
            crossing("a", True, 2).nodes[1],
            Node("E", 4, True, -2.0, 6.0, 1.0, "hall"),
        )
        master.order("agv0", Order("a", 1, places, ("e",)))
        assert agvs.wait(PATIENCE) == 0
        master.wait(lambda: master.last("agv0")["lastNodeId"] == "E")
        last = master.last("agv0")
        position = last["agvPosition"]
        assert (position["x"], position["y"], position["mapId"]) == (
            pytest.approx(-2.0),
            pytest.approx(6.0),
            "hall",
        )
        assert (last["nodeStates"], last["errors"]) == ([], [])


def test_a_canceled_order_makes_way_for_another_one(broker: int) -> None:
    """The AGV stops before the crossing and drives away from there."""
    with running(broker, "--agvs", "1", "--speed", "4") as (agvs, master):
        topic = "uagv/v2/botyard/agv0/instantActions"

        def act(name: str, kind: str) -> None:
            row = {"actionId": name, "actionType": kind, "blockingType": "HARD"}
            text = json.dumps({"actions": [row]})
            master.client.publish(topic, text, qos=1).wait_for_publish(PATIENCE)
            master.wait(lambda: name in status())

        def status() -> dict[str, str]:
            rows = master.last("agv0").get("actionStates", [])
            return {row["actionId"]: row["actionStatus"] for row in rows}

        act("c0", "cancelOrder")
        act("p", "startPause")
        assert status() == {"c0": "FAILED", "p": "FAILED"}
        master.order("agv0", crossing("a", True, 4))
        master.wait(lambda: master.last("agv0")["driving"])
        act("c1", "cancelOrder")
        master.wait(lambda: status()["c1"] == "FINISHED")
        last = master.last("agv0")
        assert (last["orderId"], last["nodeStates"]) == ("a", [])
        x, y = last["agvPosition"]["x"], last["agvPosition"]["y"]
        assert x in (pytest.approx(-2.0), pytest.approx(2.0), pytest.approx(6.0))
        places = Node("t", 0, True, x, y), Node("u", 2, True, x, y + 3.0)
        assert agvs.poll() is None, "the AGV waits for an order"
        master.order("agv0", Order("b", 0, places, ("e",)))
        assert agvs.wait(PATIENCE) == 0
        master.wait(lambda: master.last("agv0")["lastNodeId"] == "u")


class Slow:
    """An MQTT client whose broker reads nothing."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def publish(self, *_message: Any) -> mqtt.MQTTMessageInfo:
        self.kept.append(mqtt.MQTTMessageInfo(len(self.kept)))
        return self.kept[-1]


def test_states_do_not_pile_up_for_a_broker_that_does_not_read() -> None:
    agvs = MqttFleet(
        [Vehicle5050("botyard", f"agv{i}") for i in range(2)], Vehicle(ends=np.ones(1))
    )
    slow = [Slow(), Slow()]
    agvs._clients = {f"uagv/v2/botyard/agv{i}": client for i, client in enumerate(slow)}
    for n in range(100):
        agvs.fleet.on_message("uagv/v2/botyard/agv0/order", b"no order")
        agvs._send_states(6.0 * n)

    assert [len(client.kept) for client in slow] == [1, 1]
    slow[0].kept[0]._set_as_published()
    agvs._send_states(700.0)
    assert [len(client.kept) for client in slow] == [2, 1]
    # The second client is connected again.
    agvs._let_in(1)
    agvs._send_states(700.0)
    assert [len(client.kept) for client in slow] == [2, 3]


def test_no_broker() -> None:
    args = [
        sys.executable,
        "-m",
        "botyard",
        "traffic",
        "vda5050",
        "--broker",
        "127.0.0.1:1",
    ]
    done = subprocess.run(
        args, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 1
    assert "no MQTT broker at 127.0.0.1:1" in done.stderr
