"""AGVs of VDA 5050 without a broker: messages in, messages out, and a clock of the test's own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from botyard.errors import WorldError
from botyard.interfaces.vda5050.fleet import MAX_ERRORS, STATE_PERIOD_S, Fleet
from botyard.protocols.vda5050 import Node, Order, Vehicle5050, order_message
from botyard.traffic.outcome import Ending
from botyard.traffic.task import Vehicle


def crossing(name: str, x: bool, released: int, update: int = 0, begin: int = 0, nodes: int = 4) -> Order:
    """Nodes on a line through the origin, 4 m apart; the crossing lies between the second and the third."""
    row = [
        Node(f"{name}{i}", 2 * i, i < released, (4.0 * i - 6.0) if x else 0.0, 0.0 if x else (4.0 * i - 6.0))
        for i in range(nodes)
    ]
    return Order(name, update, tuple(row[begin:]), tuple(f"{name}-{i}" for i in range(begin, nodes - 1)))


class Yard:
    """A fleet of two, its last states, and the time."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.names = [Vehicle5050("acme", name) for name in ("one", "two")]
        self.fleet = Fleet(self.names, Vehicle(ends=np.ones(1), radius=0.5, velocity=1.0), self.said.append)
        self.now = 100.0
        self.last: list[dict[str, Any]] = [{}, {}]
        self.count = 0

    def order(self, i: int, order: Order | bytes) -> None:
        data = order if isinstance(order, bytes) else json.dumps(order_message(self.names[i], 0, order)).encode()
        self.fleet.receive(self.fleet.order_topics[i], data)

    def look(self, last: bool = False) -> int:
        found = self.fleet.states(self.now, last)
        for message in found:
            self.last[[n.topic("state") for n in self.names].index(message.topic)] = json.loads(message.payload)
        return len(found)

    def go_on(self, seconds: float) -> Ending | None:
        for _ in range(round(seconds / 0.1)):
            self.now += 0.1
            ending = self.fleet.advance(self.now)
            self.look()
            if ending is not None:
                return ending
        return None


def test_one_passes_before_the_other() -> None:
    yard = Yard()
    assert not yard.fleet.has_orders
    yard.order(0, crossing("a", True, 4))
    assert not yard.fleet.has_orders
    yard.order(1, crossing("b", False, 2))
    assert yard.fleet.has_orders
    yard.fleet.begin(yard.now)
    assert yard.go_on(30.0) is None
    waits = yard.last[1]
    assert (waits["lastNodeId"], waits["driving"], waits["newBaseRequest"]) == ("b1", False, True)
    assert (waits["agvPosition"]["x"], waits["agvPosition"]["y"]) == pytest.approx((0.0, -2.0), abs=1e-3)
    assert [n["nodeId"] for n in waits["nodeStates"]] == ["b2", "b3"]
    assert yard.last[0]["lastNodeId"] == "a3"
    yard.order(1, crossing("b", False, 4, update=1, begin=1))
    assert yard.go_on(60.0) is Ending.COMPLETED
    yard.look(last=True)
    assert (yard.last[1]["lastNodeId"], yard.last[1]["nodeStates"]) == ("b3", [])
    assert yard.fleet.finish(Ending.COMPLETED).metrics["stops"] == 1


def test_time_goes_at_the_speed_that_was_chosen() -> None:
    fast, usual = Yard(), Yard()
    for yard, speed in ((fast, 4.0), (usual, 1.0)):
        yard.order(0, crossing("a", True, 4))
        yard.order(1, crossing("b", False, 2))
        yard.fleet.begin(yard.now, speed)
        yard.go_on(8.0 / speed)
        yard.look(last=True)
    assert fast.last[0]["agvPosition"] == pytest.approx(usual.last[0]["agvPosition"])
    assert fast.last[0]["agvPosition"]["x"] > -3.0


def test_what_is_no_order_is_an_error_of_that_agv_alone() -> None:
    yard = Yard()
    yard.look()
    yard.order(1, b"{no order")
    yard.look()
    assert yard.last[1]["errors"][0]["errorType"] == "validationError"
    assert yard.last[0]["errors"] == []
    assert len(yard.said) == 1 and "two" in yard.said[0]
    for _ in range(3 * MAX_ERRORS):
        yard.order(1, b"\xff\x00")
    yard.look()
    assert len(yard.last[1]["errors"]) == MAX_ERRORS + 1
    yard.fleet.receive("uagv/v2/acme/three/order", b"{}")
    yard.order(1, crossing("b", False, 2))
    yard.look()
    assert yard.last[1]["errors"] == []


def test_orders_that_do_not_fit_change_nothing() -> None:
    yard = Yard()
    yard.order(0, crossing("a", True, 4))
    yard.order(1, crossing("b", False, 2))
    yard.fleet.begin(yard.now)
    yard.go_on(20.0)
    yard.order(1, crossing("x", False, 4))
    yard.look()
    assert yard.last[1]["errors"][-1]["errorType"] == "orderError"
    yard.order(1, crossing("b", False, 6, update=1, begin=1, nodes=6))
    yard.look()
    assert yard.last[1]["errors"][-1]["errorType"] == "orderUpdateError"
    yard.go_on(20.0)
    assert [n["nodeId"] for n in yard.last[1]["nodeStates"]] == ["b2", "b3"], "the order is the one before"
    assert yard.last[1]["agvPosition"]["y"] == pytest.approx(-2.0, abs=1e-3), "it has no more than its base"


def test_orders_that_cannot_be_driven_are_told() -> None:
    yard = Yard()
    one = Order("a", 0, (Node("a0", 0, True, 0.0, 0.0), Node("a1", 2, True, 0.3, 0.0)), ("a-0",))
    yard.order(0, one)
    yard.order(1, crossing("b", False, 2))
    with pytest.raises(WorldError, match="order a of AGV 0: expected edges longer than the radius"):
        yard.fleet.begin(yard.now)


def test_states_are_sent_when_something_changes_and_now_and_then() -> None:
    yard = Yard()
    assert yard.look() == 2
    assert yard.look() == 0
    yard.now += STATE_PERIOD_S / 2
    assert yard.look() == 0
    yard.order(0, crossing("a", True, 4))
    assert yard.look() == 1
    yard.now += STATE_PERIOD_S / 2
    assert yard.look() == 1
    headers = [json.loads(m.payload)["headerId"] for m in (*yard.fleet.online(), *yard.fleet.offline())]
    assert headers == sorted(headers)[:1] + headers[1:] and len(set(headers[::2])) == 2, "each AGV counts its own"


def test_what_the_broker_is_told() -> None:
    fleet = Yard().fleet
    will, here, gone = fleet.last_will(), fleet.online(), fleet.offline()
    assert will.topic == "uagv/v2/acme/one/connection"
    assert [json.loads(m.payload)["connectionState"] for m in (will, *here, *gone)] == [
        "CONNECTIONBROKEN", "ONLINE", "ONLINE", "OFFLINE", "OFFLINE",
    ]  # fmt: skip
    assert all(m.qos == 1 and m.retain for m in (will, *here, *gone))
    assert fleet.order_topics == ["uagv/v2/acme/one/order", "uagv/v2/acme/two/order"]
