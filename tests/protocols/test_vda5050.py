"""Orders and states of VDA 5050, without a broker."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.protocols.vda5050 import (
    Node,
    Order,
    OrderError,
    Vehicle5050,
    merge,
    order_message,
    parse_order,
    state_message,
)

AGV = Vehicle5050("acme", "agv7")


def order(nodes: int = 4, released: int = 2, update: int = 0) -> Order:
    places = tuple(Node(f"n{i}", 2 * i, i < released, 3.0 * i, 1.5) for i in range(nodes))
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
        ("nodes", 5, "order.nodes: not as VDA 5050 has it"),
        ("edges", [], "order.edges: expected one between each two of 4 nodes, found 0"),
        ("orderId", 5, "order.orderId"),
        ("orderId", "x" * 300, "order.orderId: 300 characters"),
        ("orderUpdateId", 10**30, "more than 64 bits"),
        ("nodes/0/nodePosition/x", 10**400, "more than 64 bits"),
        ("nodes/0/nodePosition/y", -1e12, "at most 100000 m"),
        ("orderUpdateId", True, "order.orderUpdateId"),
        ("nodes/1/nodePosition", None, "order.nodes[1].nodePosition"),
        ("nodes/1/released", 1, "order.nodes[1].released"),
        ("nodes/3/released", True, "order.edges[2]: expected to lie between its nodes"),
        ("nodes/0/released", False, "order.nodes: expected the base first"),
        ("edges/1/sequenceId", 4, "order.edges[1]: expected to lie between its nodes"),
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
    places = tuple(Node(f"n{i}", 2 * i, on, 1.0 * i, 0.0) for i, on in enumerate(released))
    given_order = Order("o1", 0, places, tuple(f"e{i}" for i in range(len(places) - 1)))
    data = json.dumps(order_message(AGV, 1, given_order)).encode()
    if released[0] and released == sorted(released, reverse=True):
        assert parse_order(data) == given_order
    else:
        with pytest.raises(OrderError, match=r"order\.nodes: expected the base first and the horizon after it"):
            parse_order(data)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_nothing_else_is_raised(data: bytes) -> None:
    with pytest.raises(OrderError):
        parse_order(data)


def test_complaints_are_shown_on_one_line() -> None:
    for data in (changed("orderId", ["a\n\x1b[2J"]), changed("nodes/0/nodeId", {"\n": 1})):
        with pytest.raises(OrderError) as caught:
            parse_order(data)
        assert str(caught.value).isprintable()
    with pytest.raises(OrderError) as caught:
        merge(order(), replace(order(), id="x\ny"))
    assert str(caught.value).isprintable()


def test_updates_go_on_from_the_base() -> None:
    first = order(4, 2)
    stitch = replace(first.nodes[1])
    update = Order("o1", 1, (stitch, replace(first.nodes[2], released=True), first.nodes[3]), ("e1", "e2"))
    both = merge(first, update)
    released = tuple(replace(n, released=k < 3) for k, n in enumerate(first.nodes))
    assert both == replace(first, nodes=released, update=1)
    assert merge(both, both) is both, "the same again is nothing new"
    for wrong, kind, text in (
        (replace(update, id="o2"), "orderError", "order o1 is being driven; found another one, o2"),
        (replace(update, update=-1), "orderUpdateError", "expected an update after 0, found -1"),
        (
            replace(update, nodes=update.nodes[1:], edges=update.edges[1:]),
            "orderUpdateError",
            "go on from node n1 (2), found n2",
        ),
    ):
        with pytest.raises(OrderError) as caught:
            merge(first, wrong)
        assert (caught.value.kind, text in str(caught.value)) == (kind, True)


def test_states_say_what_is_left() -> None:
    state = state_message(AGV, 9, order(4, 2), 2, (3.0, 1.5, 0.0), 0.0, [OrderError("orderError", "no")])
    assert (state["headerId"], state["lastNodeId"], state["lastNodeSequenceId"]) == (9, "n1", 2)
    assert [n["nodeId"] for n in state["nodeStates"]] == ["n2", "n3"]
    assert [(e["edgeId"], e["sequenceId"], e["released"]) for e in state["edgeStates"]] == [
        ("e1", 3, False),
        ("e2", 5, False),
    ]
    assert state["newBaseRequest"]
    assert not state["driving"]
    assert state["errors"][0]["errorType"] == "orderError"
    idle = state_message(AGV, 1, None, 0, (0.0, 0.0, 0.0), 0.0)
    assert idle["safetyState"] == {"eStop": "NONE", "fieldViolation": False}, (
        "VDA 5050: AUTOACK, MANUAL, REMOTE or NONE"
    )
    assert (idle["orderId"], idle["nodeStates"], idle["edgeStates"]) == ("", [], [])
    end = state_message(AGV, 1, order(2, 2), 2, (3.0, 1.5, 0.0), 0.0)
    assert (end["nodeStates"], end["edgeStates"], end["newBaseRequest"]) == ([], [], False)


HEADER = {"headerId": 9, "timestamp": "", "version": "2.0.0", "manufacturer": "acme", "serialNumber": "agv7"}
NODES = [
    {
        "nodeId": f"n{i}",
        "sequenceId": 2 * i,
        "released": i < 2,
        "nodePosition": {"x": 3.0 * i, "y": 1.5, "mapId": "map"},
    }
    for i in range(3)
]


def test_messages_have_the_fields_of_the_recommendation() -> None:
    """VDA 5050 2.0, §6.6.2, §6.10.6, §6.14: masters and vehicles of others look for these names."""
    vehicle, three = AGV, order(3, 2)
    state = state_message(vehicle, 9, three, 1, (0.5, 1.5, 0.25), 0.75, [OrderError("orderError", "no")])
    assert state | {"timestamp": ""} == {
        **HEADER, "orderId": "o1", "orderUpdateId": 0, "lastNodeId": "n0", "lastNodeSequenceId": 0,
        "driving": True, "newBaseRequest": False,
        "nodeStates": NODES[1:],
        "edgeStates": [{"edgeId": "e0", "sequenceId": 1, "released": True}, {"edgeId": "e1", "sequenceId": 3, "released": False}],
        "agvPosition": {"x": 0.5, "y": 1.5, "theta": 0.25, "mapId": "map", "positionInitialized": True},
        "velocity": {"vx": 0.75, "vy": 0.0, "omega": 0.0}, "loads": [], "actionStates": [],
        "batteryState": {"batteryCharge": 100.0, "charging": False}, "operatingMode": "AUTOMATIC",
        "errors": [{"errorType": "orderError", "errorLevel": "WARNING", "errorDescription": "no", "errorReferences": []}],
        "information": [], "safetyState": {"eStop": "NONE", "fieldViolation": False},
    }  # fmt: skip
    assert order_message(vehicle, 9, three) | {"timestamp": ""} == {
        **HEADER, "orderId": "o1", "orderUpdateId": 0, "nodes": [n | {"actions": []} for n in NODES],
        "edges": [
            {"edgeId": "e0", "sequenceId": 1, "released": True, "startNodeId": "n0", "endNodeId": "n1", "actions": []},
            {"edgeId": "e1", "sequenceId": 3, "released": False, "startNodeId": "n1", "endNodeId": "n2", "actions": []},
        ],
    }  # fmt: skip
    assert vehicle.connection(9, "ONLINE") | {"timestamp": ""} == {**HEADER, "connectionState": "ONLINE"}
