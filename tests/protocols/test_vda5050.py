"""Orders and states of VDA 5050, without a broker."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.protocols.vda5050.orders import (
    MAX_NODES,
    Node,
    Order,
    OrderError,
    merge,
    parse_order,
)
from botyard.protocols.vda5050.states import (
    OrderTexts,
    Vehicle5050,
    order_message,
    state_text,
)

AGV = Vehicle5050("acme", "agv7")


def order(nodes: int = 4, released: int = 2, update: int = 0) -> Order:
    places = tuple(
        Node(f"n{i}", 2 * i, i < released, 3.0 * i, 1.5) for i in range(nodes)
    )
    return Order("o1", update, places, tuple(f"e{i}" for i in range(nodes - 1)))


def message(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    return order_message(AGV, 1, order()) | (changes or {})


def test_orders_are_read_as_they_are_written() -> None:
    assert parse_order(json.dumps(message()).encode()) == order()
    assert AGV.topic("order") == "uagv/v2/acme/agv7/order"
    assert message()["version"] == "2.0.0"
    assert message()["timestamp"].endswith("Z")


def changed(path: str, value: Any) -> bytes:
    data = message()
    at: Any = data
    *keys, last = path.split("/")
    for key in keys:
        at = at[int(key)] if key.isdigit() else at[key]
    at[last] = value
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("nodes", [], "order.nodes: expected 1"),
        ("nodes", 5, "order.nodes: missing, or not of the type"),
        ("edges", [], "order.edges: expected one fewer than the 4 nodes, found 0"),
        ("orderId", 5, "order.orderId"),
        ("orderId", "x" * 300, "order.orderId: expected at most 256 characters"),
        ("orderUpdateId", 10**30, "at most 64 bits"),
        ("nodes/0/nodePosition/x", 10**400, "at most 64 bits"),
        ("nodes/0/nodePosition/y", -1e12, "from -100000 to 100000"),
        ("nodes/0/nodePosition/x", float("nan"), "from -100000 to 100000"),
        ("nodes/0/nodePosition/theta", float("inf"), "from -100000 to 100000"),
        ("nodes/0/nodePosition/theta", "north", "order.nodes[0].nodePosition.theta"),
        ("nodes/0/nodePosition/mapId", 5, "order.nodes[0].nodePosition.mapId"),
        ("orderUpdateId", -1, "order.orderUpdateId: expected 0 … 4294967295, found -1"),
        (
            "nodes/0/sequenceId",
            2**32,
            "order.nodes[0].sequenceId: expected 0 … 4294967295",
        ),
        ("orderUpdateId", True, "order.orderUpdateId"),
        ("nodes/1/nodePosition", None, "order.nodes[1].nodePosition"),
        ("nodes/1/released", 1, "order.nodes[1].released"),
        (
            "nodes/3/released",
            True,
            "order.edges[2]: expected a sequenceId between its two nodes",
        ),
        (
            "nodes/0/released",
            False,
            "order.nodes: expected released nodes (the base) first",
        ),
        (
            "edges/1/sequenceId",
            4,
            "order.edges[1]: expected a sequenceId between its two nodes",
        ),
        ("edges/1/edgeId", None, "order.edges[1].edgeId"),
    ],
)
def test_what_is_wrong_is_named(path: str, value: Any, text: str) -> None:
    with pytest.raises(OrderError) as caught:
        parse_order(changed(path, value))
    assert text in str(caught.value)
    assert caught.value.kind == "validationError"


@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_the_base_comes_before_the_horizon(released: list[bool]) -> None:
    places = tuple(
        Node(f"n{i}", 2 * i, on, 1.0 * i, 0.0) for i, on in enumerate(released)
    )
    given_order = Order("o1", 0, places, tuple(f"e{i}" for i in range(len(places) - 1)))
    data = json.dumps(order_message(AGV, 1, given_order)).encode()
    if released[0] and released == sorted(released, reverse=True):
        assert parse_order(data) == given_order
    else:
        with pytest.raises(
            OrderError,
            match=r"order\.nodes: expected released nodes \(the base\) first",
        ):
            parse_order(data)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_nothing_else_is_raised(data: bytes) -> None:
    with pytest.raises(OrderError):
        parse_order(data)


def test_complaints_are_shown_on_one_line() -> None:
    for data in (
        changed("orderId", ["a\n\x1b[2J"]),
        changed("nodes/0/nodeId", {"\n": 1}),
    ):
        with pytest.raises(OrderError) as caught:
            parse_order(data)
        assert str(caught.value).isprintable()

    with pytest.raises(OrderError) as caught:
        merge(order(), replace(order(), id="x\ny"))
    assert str(caught.value).isprintable()


def test_updates_go_on_from_the_base() -> None:
    first = order(4, 2)
    stitch = replace(first.nodes[1])
    update = Order(
        "o1",
        1,
        (stitch, replace(first.nodes[2], released=True), first.nodes[3]),
        ("e1", "e2"),
    )
    both = merge(first, update)
    released = tuple(replace(n, released=k < 3) for k, n in enumerate(first.nodes))
    assert both == replace(first, nodes=released, update=1)
    assert merge(both, both) is both, "the same again is nothing new"
    for wrong, kind, text in (
        (
            replace(update, id="o2"),
            "orderError",
            "expected an update of the active order o1, found order o2",
        ),
        (
            replace(update, update=-1),
            "orderUpdateError",
            "expected an update after 0, found -1",
        ),
        (
            Order(
                "o1",
                1,
                (
                    stitch,
                    *(
                        Node("m", 4 + 2 * i, False, i, 0.0)
                        for i in range(MAX_NODES - 1)
                    ),
                ),
                (),
            ),
            "orderUpdateError",
            "expected at most 10000 nodes including earlier updates, found 10001",
        ),
        (
            replace(update, nodes=update.nodes[1:], edges=update.edges[1:]),
            "orderUpdateError",
            "continue from node n1 (2), found n2",
        ),
    ):
        with pytest.raises(OrderError) as caught:
            merge(first, wrong)
        assert (caught.value.kind, text in str(caught.value)) == (kind, True)


def state(*given: Any) -> dict[str, Any]:
    """Return the decoded state of an AGV; the arguments are `state_text`'s without
    texts.
    """
    vehicle, number, own, *rest = given
    text = state_text(
        vehicle, number, own, None if own is None else OrderTexts(own), *rest
    )
    found: dict[str, Any] = json.loads(text)
    return found


def test_states_say_what_is_left() -> None:
    found = state(
        AGV, 9, order(4, 2), 2, (3.0, 1.5, 0.0), 0.0, [OrderError("orderError", "no")]
    )
    assert (found["headerId"], found["lastNodeId"], found["lastNodeSequenceId"]) == (
        9,
        "n1",
        2,
    )
    assert [n["nodeId"] for n in found["nodeStates"]] == ["n2", "n3"]
    assert [
        (e["edgeId"], e["sequenceId"], e["released"]) for e in found["edgeStates"]
    ] == [
        ("e1", 3, False),
        ("e2", 5, False),
    ]
    assert found["newBaseRequest"]
    assert not found["driving"]
    assert found["errors"][0]["errorType"] == "orderError"
    idle = state(AGV, 1, None, 0, (0.0, 0.0, 0.0), 0.0)
    assert idle["safetyState"] == {"eStop": "NONE", "fieldViolation": False}, (
        "VDA 5050: AUTOACK, MANUAL, REMOTE or NONE"
    )
    assert (idle["orderId"], idle["nodeStates"], idle["edgeStates"]) == ("", [], [])
    end = state(AGV, 1, order(2, 2), 2, (3.0, 1.5, 0.0), 0.0)
    assert (end["nodeStates"], end["edgeStates"], end["newBaseRequest"]) == (
        [],
        [],
        False,
    )


def test_states_name_the_map_and_the_directions_of_the_order() -> None:
    """VDA 5050 2.0, state.schema: a nodePosition has x, y, theta and mapId."""
    turned = Node("b", 2, True, 2.0, 0.0, 7.0, "hall-7")
    own = Order(
        "o",
        0,
        (
            Node("a", 0, True, 0.0, 0.0, 1.0, "hall-6"),
            turned,
            Node("c", 4, True, 2.0, 3.0),
        ),
        ("x", "y"),
    )
    data = json.dumps(order_message(AGV, 1, own)).encode()
    read = parse_order(data)
    assert read.nodes == (
        own.nodes[0],
        replace(turned, theta=7.0 - 2.0 * math.pi),
        own.nodes[2],
    )
    found = state(AGV, 1, read, 1, (0.0, 0.0, 0.0), 0.0)
    assert [n["nodePosition"] for n in found["nodeStates"]] == [
        {"x": 2.0, "y": 0.0, "theta": 7.0 - 2.0 * math.pi, "mapId": "hall-7"},
        {"x": 2.0, "y": 3.0, "theta": pytest.approx(math.pi / 2), "mapId": "map"},
    ]
    assert found["agvPosition"]["mapId"] == "hall-6"
    assert (
        state(AGV, 1, read, 2, (2.0, 0.0, 0.0), 0.0)["agvPosition"]["mapId"] == "hall-7"
    )


HEADER = {
    "headerId": 9,
    "timestamp": "",
    "version": "2.0.0",
    "manufacturer": "acme",
    "serialNumber": "agv7",
}
NODES = [
    {
        "nodeId": f"n{i}",
        "sequenceId": 2 * i,
        "released": i < 2,
        "nodePosition": {"x": 3.0 * i, "y": 1.5, "mapId": "map"},
    }
    for i in range(3)
]


def test_states_list_actions() -> None:
    """An edge's actions, and the actions of the node after it:

    none is executed, and an error goes to the master control.
    """
    agv = Vehicle5050("acme", "one")
    nodes = tuple(Node(f"n{k}", 2 * k, True, float(k), 0.0) for k in range(3))
    message = order_message(agv, 0, Order("o", 0, nodes, ("e0", "e1")))

    def action(name: str) -> dict[str, Any]:
        return {
            "actionId": name,
            "actionType": "pick",
            "blockingType": "HARD",
            "actionParameters": [],
        }

    message["nodes"][0]["actions"] = [action("a")]
    message["edges"][0]["actions"] = [action("b")]
    message["nodes"][1]["actions"] = [action("c"), action("d")]
    message["nodes"][2]["actions"] = [action("e")]
    order = parse_order(json.dumps(message).encode())
    assert parse_order(json.dumps(order_message(agv, 0, order)).encode()) == order
    texts = OrderTexts(order)
    for passed, failed in ((1, "a"), (2, "abcd"), (3, "abcde")):
        states = json.loads(
            state_text(agv, 1, order, texts, passed, (0.0, 0.0, 0.0), 0.0)
        )["actionStates"]
        assert [s["actionId"] for s in states] == [*"abcde"] and {
            s["actionType"] for s in states
        } == {"pick"}
        assert [s["actionId"] for s in states if s["actionStatus"] == "FAILED"] == [
            *failed
        ]
        assert {s["actionStatus"] for s in states if s["actionId"] not in failed} <= {
            "WAITING"
        }
    longer = {**message, "orderUpdateId": 1, "nodes": message["nodes"][2:], "edges": []}
    merged = merge(order, parse_order(json.dumps(longer).encode()))
    assert [a.id for n in merged.nodes for a in n.actions] == [*"abcde"], (
        "an update repeats its first node"
    )
    for bad in ({"actionType": "pick"}, {"actionId": 1, "actionType": "pick"}, 5, None):
        message["nodes"][1]["actions"] = [bad]
        with pytest.raises(OrderError, match=r"order.nodes\[1\].actions\[0\]"):
            parse_order(json.dumps(message).encode())


def test_messages_have_the_fields_of_the_recommendation() -> None:
    """VDA 5050 2.0, §6.6.2, §6.10.6, §6.14:

    other masters and vehicles read these names.
    """
    vehicle, three = AGV, order(3, 2)
    found = state(
        vehicle, 9, three, 1, (0.5, 1.5, 0.25), 0.75, [OrderError("orderError", "no")]
    )
    assert found | {"timestamp": ""} == {
        **HEADER,
        "orderId": "o1",
        "orderUpdateId": 0,
        "lastNodeId": "n0",
        "lastNodeSequenceId": 0,
        "driving": True,
        "newBaseRequest": False,
        "nodeStates": [
            n | {"nodePosition": n["nodePosition"] | {"theta": 0.0}} for n in NODES[1:]
        ],
        "edgeStates": [
            {"edgeId": "e0", "sequenceId": 1, "released": True},
            {"edgeId": "e1", "sequenceId": 3, "released": False},
        ],
        "agvPosition": {
            "x": 0.5,
            "y": 1.5,
            "theta": 0.25,
            "mapId": "map",
            "positionInitialized": True,
        },
        "velocity": {"vx": 0.75, "vy": 0.0, "omega": 0.0},
        "loads": [],
        "actionStates": [],
        "batteryState": {"batteryCharge": 100.0, "charging": False},
        "operatingMode": "AUTOMATIC",
        "errors": [
            {
                "errorType": "orderError",
                "errorLevel": "WARNING",
                "errorDescription": "no",
                "errorReferences": [],
            }
        ],
        "information": [],
        "safetyState": {"eStop": "NONE", "fieldViolation": False},
    }
    assert order_message(vehicle, 9, three) | {"timestamp": ""} == {
        **HEADER,
        "orderId": "o1",
        "orderUpdateId": 0,
        "nodes": [n | {"actions": []} for n in NODES],
        "edges": [
            {
                "edgeId": "e0",
                "sequenceId": 1,
                "released": True,
                "startNodeId": "n0",
                "endNodeId": "n1",
                "actions": [],
            },
            {
                "edgeId": "e1",
                "sequenceId": 3,
                "released": False,
                "startNodeId": "n1",
                "endNodeId": "n2",
                "actions": [],
            },
        ],
    }
    assert vehicle.connection(9, "ONLINE") | {"timestamp": ""} == {
        **HEADER,
        "connectionState": "ONLINE",
    }
