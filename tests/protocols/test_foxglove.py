"""Foxglove's session:

hostile input, clients that do not read, and notices of robots that come and go.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.app.compose import compose
from botyard.control import Caller, Level
from botyard.interfaces.interface import Door
from botyard.interfaces.ros.foxglove import Foxglove
from botyard.interfaces.ros.graph import RosGraph
from botyard.protocols.foxglove import operations as op
from botyard.protocols.foxglove import session as module
from botyard.protocols.foxglove.session import FoxgloveSession
from botyard.protocols.ros_messages.types import types
from botyard.sim.simulation import Simulation


class World:
    """A world with Foxglove's transport, without sockets."""

    def __init__(self, *names: str) -> None:
        self.sim = Simulation.load("office", seed=1)
        for name in names:
            self.sim.add_robot("p3dx-sh-lms1xx" if name == "lidar" else "p3dx", name)
        self.parts = compose(self.sim, limits=None)
        self.graph = RosGraph(
            self.parts.hub, self.parts.control, self.parts.maps.cells, types()
        )
        self.server = Foxglove(self.graph, self.parts.hub)
        self.graph.add(self.server)
        self.warnings: list[str] = []

    def client(self, level: Level = Level.CHANGE) -> FoxgloveSession:
        caller = Caller("foxglove", level, "Foxglove")
        return self.server.session(
            Door(self.parts.control, caller, {}, warn=self.warnings.append)
        )

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.sim.step()
            self.graph.on_snapshot(self.sim)

    def close(self) -> None:
        self.graph.close()
        self.server.close()


@pytest.fixture
def world() -> Iterator[World]:
    made = World("ann")
    yield made
    made.close()


def taken(client: FoxgloveSession) -> list[Any]:
    """Return all output: operations as dictionaries, binary messages as bytes."""
    found = []
    while data := client.data_to_send():
        found.append(json.loads(data) if isinstance(data, str) else data)
    return found


def said(client: FoxgloveSession, operation: str, **fields: Any) -> list[Any]:
    client.receive_data(json.dumps({"op": operation, **fields}).encode(), 0.0)
    return taken(client)


def channel_of(found: list[Any], topic: str) -> int:
    (one,) = [
        c["id"]
        for f in found
        if isinstance(f, dict) and f["op"] == "advertise"
        for c in f["channels"]
        if c["topic"] == topic
    ]
    return int(one)


def test_only_what_is_subscribed_to_is_made_and_sent(world: World) -> None:
    client = world.client()
    odom = channel_of(taken(client), "/ann/odom")
    world.step()
    assert not [
        m for m in taken(client) if isinstance(m, bytes) and m[0] == op.MESSAGE_DATA
    ]
    assert said(client, "subscribe", subscriptions=[{"id": 7, "channelId": odom}]) == []
    world.step()
    (message,) = (
        m for m in taken(client) if isinstance(m, bytes) and m[0] == op.MESSAGE_DATA
    )
    kind, ident, time_ns = struct.unpack_from("<BIQ", message)
    assert (kind, ident, time_ns) == (1, 7, round(world.sim.time * 1e9))
    read = world.graph.types.decode_cdr(message[13:], "nav_msgs/Odometry")
    assert read.pose.pose.position.x == world.sim.robots["ann"].odom.x
    assert said(client, "unsubscribe", subscriptionIds=[7]) == []
    world.step()
    assert not [
        m for m in taken(client) if isinstance(m, bytes) and m[0] == op.MESSAGE_DATA
    ]


def test_wrong_requests_are_told_and_keep_nothing_from_the_others(world: World) -> None:
    client = world.client()
    odom = channel_of(taken(client), "/ann/odom")
    wishes = [
        {"id": 1, "channelId": 99999},
        {"id": 2, "channelId": odom},
        {"id": 2, "channelId": odom},
        {"id": -1, "channelId": odom},
    ]
    texts = [f["message"] for f in said(client, "subscribe", subscriptions=wishes)]
    assert texts == [
        "foxglove: subscribe: expected the id of a channel, found 99999",
        "foxglove: subscribe: subscription 2 already exists",
        "foxglove: subscribe: expected an id of 32 bits, found -1",
    ]
    world.step()
    assert [m[0] for m in taken(client) if isinstance(m, bytes)] == [op.MESSAGE_DATA]
    for bad in (
        {"op": "unsubscribe", "subscriptionIds": [5]},
        {"op": "unadvertise", "channelIds": [5]},
        {"op": "dance"},
        [],
        3,
    ):
        client.receive_data(json.dumps(bad).encode(), 0.0)
        (status,) = taken(client)
        assert status["op"] == "status" and status["level"] >= 1, bad

    too_long, call = (
        bytes(module.MAX_MESSAGE + 1),
        b"\x02" + struct.pack("<III", 1, 1, 2**31),
    )
    for bad in (b"", b"\x00", b"\x01\x00", call, b"{" * 5000, b"\xff" * 20, too_long):
        client.receive_data(bad, 0.0)
        (status,) = taken(client)
        assert status["level"] == 2, bad[:20]


FIELDS = ["id", "channelId", "topic", "name", "value", "encoding", "schemaName"]
LISTS = [
    "subscriptions",
    "channels",
    "channelIds",
    "parameterNames",
    "parameters",
    "id",
    "subscriptionIds",
]
values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda kids: (
        st.lists(kids, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS), kids, max_size=5)
    ),
)
requests = st.builds(
    lambda kind, fields: json.dumps(
        {"op": kind.__struct_config__.tag, **fields}
    ).encode(),
    st.sampled_from(op.Operation.__subclasses__()),
    st.dictionaries(st.sampled_from(LISTS), values, max_size=3),
)
heads = st.builds(
    lambda head, rest: head + rest,
    st.sampled_from([b"\x01", b"\x02", b'{"op":"']),
    st.binary(max_size=40),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=60) | heads | requests, max_size=8))
def test_no_input_raises(pieces: list[bytes]) -> None:
    client = HOSTILE.client()
    for piece in pieces:
        client.receive_data(piece, 0.0)
        taken(client)

    assert not client.is_closed
    client.close()


HOSTILE = World("ann")


def test_a_client_that_does_not_read_keeps_the_newest_messages(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = world.client()
    found = taken(client)
    ids = {name: channel_of(found, name) for name in ("/ann/odom", "/ann/base_scan")}
    said(
        client,
        "subscribe",
        subscriptions=[{"id": k, "channelId": c} for k, c in enumerate(ids.values())],
    )
    world.step(30)
    stamps: dict[int, list[int]] = {0: [], 1: []}
    for message in taken(client):
        if message[0] == op.MESSAGE_DATA:
            _, ident, time_ns = struct.unpack_from("<BIQ", message)
            stamps[ident].append(time_ns)

    last = round(world.sim.time * 1e9)
    step = last // 30
    assert all(
        times[-1] == last and times == sorted(times) and len(times) <= 10
        for times in stamps.values()
    )
    assert stamps[0] == [last - k * step for k in reversed(range(10))]
    monkeypatch.setattr(module, "MAX_WAITING", 5000)
    world.step(30)
    kept = [m for m in taken(client) if m[0] == op.MESSAGE_DATA]
    assert 2 <= len(kept) < 20 and sum(map(len, kept)) <= 5000


def test_answers_that_are_not_read_end_the_connection(world: World) -> None:
    client = world.client()
    for _ in range(module.MAX_ANSWERS):
        client.receive_data(b"nonsense", 0.0)
    assert client.is_closed and client.data_to_send() == b""
    assert "does not read" in world.warnings[0]


@pytest.mark.parametrize(
    "text",
    [
        '"op":"unadvertise","channelIds":[' + ",".join(["1"] * 100_000),
        '"op":"unsubscribe","subscriptionIds":[' + ",".join(["1"] * 100_000),
        '"op":"advertise","channels":['
        + ",".join(['{"id":1,"topic":"a","encoding":"x","schemaName":""}'] * 10_000),
    ],
)
def test_a_message_of_many_errors_is_not_worked_off_to_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    told: list[str] = []

    def shown(value: object, *_limit: int) -> str:
        told.append(str(value))
        return told[-1]

    monkeypatch.setattr(module, "shown", shown)
    client = world.client()
    client.receive_data(f"{{{text}]}}".encode(), 0.0)
    assert client.is_closed
    assert module.MAX_ANSWERS <= len(told) <= 2 * module.MAX_ANSWERS + 2


def test_a_thousand_robots_come_in_one_message(world: World) -> None:
    """A client that reads nothing meanwhile is not disconnected."""
    client = world.client()
    taken(client)
    for k in range(60):
        world.sim.add_robot("p3dx", f"r{k}")
        world.graph._sync()

    first = taken(client)
    operations = [f["op"] for f in first if isinstance(f, dict)]
    assert sorted(operations) == ["advertise", "advertiseServices"]
    for k in range(60):
        world.sim.remove_robot(f"r{k}")
        world.graph._sync()

    world.sim.add_robot("p3dx", "brief")
    world.graph._sync()
    world.sim.remove_robot("brief")
    world.graph._sync()
    gone = taken(client)
    assert sorted(f["op"] for f in gone if isinstance(f, dict)) == [
        "unadvertise",
        "unadvertiseServices",
    ], "brief was never said"
    (told,) = (f for f in first if isinstance(f, dict) and f["op"] == "advertise")
    (ended,) = (f for f in gone if isinstance(f, dict) and f["op"] == "unadvertise")
    assert {c["id"] for c in told["channels"]} == {*ended["channelIds"]}


def test_a_client_that_follows_the_connection_graph_knows_all_of_it(
    world: World,
) -> None:
    client, other = world.client(), world.client()
    channels = {
        c["topic"]: c["id"]
        for f in taken(other)
        if isinstance(f, dict) and f["op"] == "advertise"
        for c in f["channels"]
    }
    taken(client)
    known: dict[str, dict[str, list[str]]] = {
        "published": {},
        "subscribed": {},
        "services": {},
    }

    def follow() -> None:
        for f in taken(client):
            if isinstance(f, dict) and f["op"] == "connectionGraphUpdate":
                for key, listed, ids in (
                    ("published", "publishedTopics", "publisherIds"),
                    ("subscribed", "subscribedTopics", "subscriberIds"),
                    ("services", "advertisedServices", "providerIds"),
                ):
                    known[key].update({e["name"]: e[ids] for e in f[listed]})

                for name in f["removedTopics"]:
                    known["published"].pop(name, None)
                    known["subscribed"].pop(name, None)

                for name in f["removedServices"]:
                    known["services"].pop(name)

    client.receive_data(b'{"op":"subscribeConnectionGraph"}', 0.0)
    acts = [
        lambda: None,
        lambda: said(
            other,
            "subscribe",
            subscriptions=[{"id": 1, "channelId": channels["/ann/odom"]}],
        ),
        lambda: world.sim.add_robot("p3dx", "bob"),
        lambda: said(other, "unsubscribe", subscriptionIds=[1]),
        lambda: world.sim.remove_robot("ann"),
        other.close,
    ]
    for act in acts:
        act()
        world.graph._sync()
        follow()
        now = world.server.connections()
        expected = {
            "published": {e["name"]: e["publisherIds"] for e in now["publishedTopics"]},
            "subscribed": {
                e["name"]: e["subscriberIds"] for e in now["subscribedTopics"]
            },
            "services": {
                e["name"]: e["providerIds"] for e in now["advertisedServices"]
            },
        }
        assert {
            key: {n: ids for n, ids in found.items() if ids}
            for key, found in known.items()
        } == expected

    said(client, "unsubscribeConnectionGraph")
    world.sim.add_robot("p3dx", "carl")
    world.graph._sync()
    assert not [
        f
        for f in taken(client)
        if isinstance(f, dict) and f["op"] == "connectionGraphUpdate"
    ]


def test_parameters_are_checked_and_followed(world: World) -> None:
    client, watcher = world.client(), world.client(Level.WATCH)
    assert client and watcher
    taken(client), taken(watcher)
    node = world.graph.node
    acceleration = f"{node}.ann.trans_accel"
    assert said(client, "subscribeParameterUpdates", parameterNames=[]) == []
    assert (
        said(watcher, "subscribeParameterUpdates", parameterNames=[f"{node}.speed"])
        == []
    )
    wrong = {
        f"{node}.pause": 1,
        f"{node}.speed": -3.0,
        acceleration: -1.0,
        f"{node}.use_sim_time": 1.0,
        "speed": 1.0,
        f"{node}.ann.trans_acel": 1.0,
    }
    for name, value in wrong.items():
        (status,) = said(
            client, "setParameters", parameters=[{"name": name, "value": value}]
        )
        assert status["op"] == "status", name

    # The value applies from the next step on, but is read as it was set.
    assert said(
        client, "setParameters", parameters=[{"name": acceleration, "value": 0.25}]
    ) == [
        {
            "op": "parameterValues",
            "parameters": [{"name": acceleration, "value": 0.25, "type": "float64"}],
        }
    ]
    world.step(11)
    client.on_snapshot(0.0)
    assert not [f for f in taken(client) if isinstance(f, dict)]
    said(client, "setParameters", parameters=[{"name": f"{node}.speed", "value": 2}])
    world.server._pace_changed()
    (told,) = taken(watcher)
    assert told["parameters"] == [
        {"name": f"{node}.speed", "value": 2.0, "type": "float64"}
    ]
    (status,) = said(
        watcher, "setParameters", parameters=[{"name": f"{node}.pause", "value": True}]
    )
    assert status["op"] == "status" and not world.parts.hub.is_paused
    answer = said(
        client, "getParameters", parameterNames=[acceleration, "/nothing"], id="x"
    )
    assert {
        "op": "parameterValues",
        "parameters": [{"name": acceleration, "value": 0.25, "type": "float64"}],
        "id": "x",
    } in answer
    everything = said(client, "getParameters", parameterNames=[])[0]["parameters"]
    assert {f"{node}.pause", f"{node}.speed", acceleration} <= {
        p["name"] for p in everything
    }
    said(client, "unsubscribeParameterUpdates", parameterNames=[])
    assert (
        said(client, "setParameters", parameters=[{"name": acceleration, "value": 0.5}])
        == []
    )


def test_clients_that_go_leave_nothing(world: World) -> None:
    client = world.client()
    odom = channel_of(taken(client), "/ann/odom")
    said(client, "subscribe", subscriptions=[{"id": 1, "channelId": odom}])
    client.close()
    client.close()
    world.step()
    client.receive_data(b"{}", 0.0)
    assert client.data_to_send() == b"" and not world.server._clients
    assert not any(one.readers for one in world.server._by_id.values())


@pytest.mark.parametrize(
    "fields",
    [
        {
            "op": "advertise",
            "channels": [
                {"id": 1, "topic": "x" * 10**6, "encoding": "json", "schemaName": "x"}
            ],
        },
        {
            "op": "advertise",
            "channels": [
                {"id": 1, "topic": "x", "encoding": "json", "schemaName": "x" * 10**6}
            ],
        },
        {"op": "subscribeParameterUpdates", "parameterNames": ["x" * 10**6]},
        {"op": "getParameters", "parameterNames": [], "id": "x" * 10**6},
    ],
    ids=["topic", "schema", "parameter", "id"],
)
def test_long_names_are_refused(world: World, fields: dict[str, Any]) -> None:
    """Such messages would be kept or repeated."""
    client = world.client()
    taken(client)
    (told,) = said(client, fields.pop("op"), **fields)
    assert told["op"] == "status" and len(told["message"]) < 1000
    assert client._account.used == 0 and not client._advertised and not client._followed


def test_what_a_client_makes_us_keep_is_counted_in_bytes(world: World) -> None:
    """All of it is one account, which is empty when nothing is left."""
    client = world.client()
    odom = channel_of(taken(client), "/ann/odom")
    account = client._account
    said(client, "subscribe", subscriptions=[{"id": 1, "channelId": odom}])
    said(
        client,
        "advertise",
        channels=[{"id": 7, "topic": "/x", "encoding": "json", "schemaName": "x"}],
    )
    said(client, "subscribeParameterUpdates", parameterNames=["a", "b"])
    said(client, "subscribeParameterUpdates", parameterNames=["b"])
    assert account.used == 512 + 512 + 7 + 2 * 513
    said(client, "unsubscribe", subscriptionIds=[1])
    said(client, "unadvertise", channelIds=[7])
    said(client, "unsubscribeParameterUpdates", parameterNames=["a"])
    assert account.used == 513
    said(client, "subscribeParameterUpdates", parameterNames=[])
    assert account.used == 0 and client._followed is None
    said(client, "unsubscribeParameterUpdates", parameterNames=["zzz"])
    assert account.used > 0 and client._followed
    client.close()
    assert account.used == 0 and world.server._shares.used == 0


def test_one_address_leaves_room_for_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many clients of one address together get one share."""
    monkeypatch.setattr(world.server._shares, "_each", 3 * 600)

    def following(source: str) -> str:
        caller = Caller("foxglove", Level.CHANGE, "Foxglove")
        client = world.server.session(
            Door(world.parts.control, caller, {}, source=source)
        )
        taken(client)
        return str(said(client, "subscribeParameterUpdates", parameterNames=["a"]))

    assert [following("10.0.0.1") for _ in range(3)] == ["[]"] * 3
    assert "the memory limit is reached" in following("10.0.0.1")
    assert following("10.0.0.2") == "[]"
