"""AGVs of VDA 5050 without a broker:

messages in, messages out, and a clock of the test.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.interfaces.vda5050 import fleet
from botyard.interfaces.vda5050.fleet import (
    MAX_ERRORS,
    STATE_PERIOD_S,
    STATE_RATE,
    Fleet,
)
from botyard.interfaces.vda5050.shown import ShownFleet
from botyard.protocols.vda5050.orders import (
    MAX_ACTIONS,
    Action,
    Node,
    Order,
    OrderError,
)
from botyard.protocols.vda5050.states import Vehicle5050, order_message
from botyard.sim.simulation import Simulation
from botyard.traffic.kernels import events as k
from botyard.traffic.live import LiveTraffic
from botyard.traffic.motion import Path2
from botyard.traffic.outcome import Ending
from botyard.traffic.task import Vehicle


def crossing(
    name: str, x: bool, released: int, update: int = 0, begin: int = 0, nodes: int = 4
) -> Order:
    """Nodes on a line through the origin, 4 m apart; the crossing is between the second
    and the third.
    """
    row = [
        Node(
            f"{name}{i}",
            2 * i,
            i < released,
            (4.0 * i - 6.0) if x else 0.0,
            0.0 if x else (4.0 * i - 6.0),
        )
        for i in range(nodes)
    ]
    return Order(
        name,
        update,
        tuple(row[begin:]),
        tuple(f"{name}-{i}" for i in range(begin, nodes - 1)),
    )


class RobotServers:
    """A fleet of one or two AGVs with their last states, the nodes passed by the first,
    and the time.
    """

    def __init__(self, agvs: int = 2) -> None:
        self.said: list[str] = []
        self.passed: list[str] = []
        self.names = [Vehicle5050("acme", name) for name in ("one", "two")][:agvs]
        self.fleet = Fleet(
            self.names,
            Vehicle(ends=np.ones(1), radius=0.5, velocity=1.0),
            self.said.append,
        )
        self.now = 100.0
        self.last: list[dict[str, Any]] = [{}, {}]
        self.count = 0

    def order(self, i: int, order: Order | bytes) -> None:
        data = (
            order
            if isinstance(order, bytes)
            else json.dumps(order_message(self.names[i], 0, order)).encode()
        )
        self.fleet.on_message(self.fleet.order_topics[i], data)

    def look(self, last: bool = False) -> int:
        found = self.fleet.states(self.now, last)
        for message in found:
            self.last[[n.topic("state") for n in self.names].index(message.topic)] = (
                json.loads(message.payload)
            )

        if (node := self.last[0].get("lastNodeId")) and node not in self.passed[-1:]:
            self.passed.append(node)
        return len(found)

    def go_on(self, seconds: float, step: float = 0.1) -> Ending | None:
        for _ in range(round(seconds / step)):
            self.now += step
            ending = self.fleet.advance(self.now)
            self.look()
            if ending is not None:
                return ending

        return None


def test_one_passes_before_the_other() -> None:
    robot_servers = RobotServers()
    assert not robot_servers.fleet.has_orders
    robot_servers.order(0, crossing("a", True, 4))
    assert not robot_servers.fleet.has_orders
    robot_servers.order(1, crossing("b", False, 2))
    assert robot_servers.fleet.has_orders
    robot_servers.fleet.begin(robot_servers.now)
    assert robot_servers.go_on(30.0) is None
    waits = robot_servers.last[1]
    assert (waits["lastNodeId"], waits["driving"], waits["newBaseRequest"]) == (
        "b1",
        False,
        True,
    )
    assert (waits["agvPosition"]["x"], waits["agvPosition"]["y"]) == pytest.approx(
        (0.0, -2.0), abs=1e-3
    )
    assert [n["nodeId"] for n in waits["nodeStates"]] == ["b2", "b3"]
    assert robot_servers.last[0]["lastNodeId"] == "a3"
    robot_servers.order(1, crossing("b", False, 4, update=1, begin=1))
    assert robot_servers.go_on(60.0) is Ending.COMPLETED
    robot_servers.look(last=True)
    assert (
        robot_servers.last[1]["lastNodeId"],
        robot_servers.last[1]["nodeStates"],
    ) == ("b3", [])
    assert robot_servers.fleet.finish(Ending.COMPLETED).metrics["stops"] == 1


def test_time_goes_at_the_speed_that_was_chosen() -> None:
    fast, usual = RobotServers(), RobotServers()
    for robot_servers, speed in ((fast, 4.0), (usual, 1.0)):
        robot_servers.order(0, crossing("a", True, 4))
        robot_servers.order(1, crossing("b", False, 2))
        robot_servers.fleet.begin(robot_servers.now, speed)
        robot_servers.go_on(8.0 / speed)
        robot_servers.look(last=True)

    assert fast.last[0]["agvPosition"] == pytest.approx(usual.last[0]["agvPosition"])
    assert fast.last[0]["agvPosition"]["x"] > -3.0


def test_what_is_no_order_is_an_error_of_that_agv_alone() -> None:
    robot_servers = RobotServers()
    robot_servers.look()
    robot_servers.order(1, b"{no order")
    robot_servers.look()
    assert robot_servers.last[1]["errors"][0]["errorType"] == "validationError"
    assert robot_servers.last[0]["errors"] == []
    assert len(robot_servers.said) == 1 and "two" in robot_servers.said[0]
    for _ in range(3 * MAX_ERRORS):
        robot_servers.order(1, b"\xff\x00")
    robot_servers.look()
    assert len(robot_servers.last[1]["errors"]) == MAX_ERRORS + 1
    robot_servers.fleet.on_message("uagv/v2/acme/three/order", b"{}")
    robot_servers.order(1, crossing("b", False, 2))
    robot_servers.look()
    assert robot_servers.last[1]["errors"] == []


def test_orders_that_do_not_fit_change_nothing() -> None:
    robot_servers = RobotServers()
    robot_servers.order(0, crossing("a", True, 4))
    robot_servers.order(1, crossing("b", False, 2))
    robot_servers.fleet.begin(robot_servers.now)
    robot_servers.go_on(20.0)
    robot_servers.order(1, crossing("x", False, 4))
    robot_servers.look()
    assert robot_servers.last[1]["errors"][-1]["errorType"] == "orderError"
    robot_servers.order(1, crossing("b", False, 6, update=1, begin=2, nodes=6))
    robot_servers.look()
    assert robot_servers.last[1]["errors"][-1]["errorType"] == "orderUpdateError"
    robot_servers.go_on(20.0)
    assert [n["nodeId"] for n in robot_servers.last[1]["nodeStates"]] == ["b2", "b3"], (
        "the order is the one before"
    )
    assert robot_servers.last[1]["agvPosition"]["y"] == pytest.approx(-2.0, abs=1e-3), (
        "it has no more than its base"
    )
    robot_servers.order(0, crossing("a", True, 6, update=1, begin=3, nodes=6))
    robot_servers.look()
    assert robot_servers.last[0]["errors"][-1]["errorType"] == "orderUpdateError", (
        "it is at its end"
    )
    assert robot_servers.last[0]["lastNodeId"] == "a3"


def order_of(
    *places: tuple[float, float],
    released: int,
    update: int = 0,
    first: int = 0,
    name: str = "o",
) -> Order:
    """Return an order over places; `first` is the number of its first node."""
    count = range(len(places))
    nodes = tuple(
        Node(f"n{first + k}", 2 * (first + k), k < released, *places[k]) for k in count
    )
    return Order(name, update, nodes, tuple(f"e{first + k}" for k in count[1:]))


@pytest.mark.parametrize("wait", [0.0, 0.5, 1.0, 1.9, 2.4, 6.0])
@pytest.mark.parametrize(
    "places",
    [
        [(2.0, 6.0)],
        [(3.0, 0.0)],
        [(2.7, 0.0), (3.4, 0.0), (9.0, 0.0)],
        [(6.0, 0.0), (6.0, 4.0)],
        [],
    ],
)
def test_an_update_may_change_the_horizon(
    wait: float, places: list[tuple[float, float]]
) -> None:
    """VDA 5050 2.0, §6.6.2:

    the AGV drives to the new nodes, whenever the update comes.
    """
    robot_servers = RobotServers(1)
    robot_servers.order(0, order_of((0.0, 0.0), (2.0, 0.0), (6.0, 0.0), released=2))
    robot_servers.fleet.begin(robot_servers.now)
    assert robot_servers.go_on(wait) is None
    robot_servers.order(0, order_of((2.0, 0.0), *places, released=9, update=1, first=1))
    robot_servers.look()
    assert (
        robot_servers.last[0]["errors"],
        robot_servers.last[0]["orderUpdateId"],
    ) == ([], 1)
    assert robot_servers.go_on(60.0) is Ending.COMPLETED
    robot_servers.look(last=True)
    end = places[-1] if places else (2.0, 0.0)
    assert (
        robot_servers.last[0]["agvPosition"]["x"],
        robot_servers.last[0]["agvPosition"]["y"],
    ) == pytest.approx(end, abs=1e-6)
    assert (
        robot_servers.last[0]["lastNodeId"],
        robot_servers.last[0]["nodeStates"],
    ) == (f"n{1 + len(places)}", [])
    assert robot_servers.passed == [f"n{k}" for k in range(2 + len(places))]


def test_an_update_may_change_the_horizon_and_release_nothing() -> None:
    robot_servers = RobotServers(1)
    robot_servers.order(0, order_of((0.0, 0.0), (2.0, 0.0), (6.0, 0.0), released=2))
    robot_servers.fleet.begin(robot_servers.now)
    robot_servers.go_on(1.5)
    robot_servers.order(
        0, order_of((2.0, 0.0), (2.0, 6.0), released=1, update=1, first=1)
    )
    assert robot_servers.go_on(30.0) is None
    assert (
        robot_servers.last[0]["agvPosition"]["x"],
        robot_servers.last[0]["agvPosition"]["y"],
    ) == pytest.approx((2.0, 0.0), abs=1e-6)
    assert robot_servers.last[0]["newBaseRequest"]
    robot_servers.order(
        0, order_of((2.0, 0.0), (2.0, 6.0), released=2, update=2, first=1)
    )
    assert robot_servers.go_on(30.0) is Ending.COMPLETED
    outcome = robot_servers.fleet.finish(Ending.COMPLETED)
    assert outcome.robots.stops.tolist() == [1]
    assert outcome.robots.waited.tolist() == [pytest.approx(29.0, abs=4.0)]
    kinds = [(row["kind"], row.get("sector")) for row in outcome.events.rows()]
    assert [sector for kind, sector in kinds if kind == "enter"] == [1, 2]
    assert [sector for kind, sector in kinds if kind == "release"] == [0, 1]


def test_an_agv_does_not_leave_its_first_node_before_the_second_is_released() -> None:
    robot_servers = RobotServers(1)
    robot_servers.order(0, order_of((0.0, 0.0), (4.0, 0.0), (8.0, 0.0), released=1))
    robot_servers.fleet.begin(robot_servers.now)
    assert robot_servers.go_on(10.0) is None
    assert robot_servers.last[0]["agvPosition"]["x"] == 0.0
    assert (
        robot_servers.last[0]["driving"],
        robot_servers.last[0]["newBaseRequest"],
    ) == (False, True)
    robot_servers.order(
        0, order_of((0.0, 0.0), (4.0, 0.0), (8.0, 0.0), released=3, update=1)
    )
    assert robot_servers.go_on(30.0) is Ending.COMPLETED


def test_a_changed_horizon_has_its_own_conflicts() -> None:
    """The second AGV is in the new path:

    they collide, because the master control sends one into the other.
    """
    for end, ending in (
        ((2.0, 6.0), Ending.COLLISION),
        ((2.0, -6.0), Ending.COMPLETED),
    ):
        robot_servers = RobotServers()
        robot_servers.order(0, order_of((0.0, 0.0), (2.0, 0.0), (6.0, 0.0), released=2))
        robot_servers.order(1, order_of((-4.0, 4.0), (2.0, 4.0), released=2))
        robot_servers.fleet.begin(robot_servers.now)
        assert robot_servers.go_on(20.0) is None
        robot_servers.order(0, order_of((2.0, 0.0), end, released=2, update=1, first=1))
        assert robot_servers.go_on(30.0) is ending


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (
            order_of((0.0, 0.0), (0.3, 0.0), (9.0, 0.0), released=3),
            "edge e1 from node n0 to n1: expected more than the",
        ),
        (
            order_of((0.0, 0.0), (0.0, 0.0), released=2),
            "edge e1 from node n0 to n1: expected more than the radius of 0.5 m",
        ),
        (
            order_of((0.0, 0.0), released=1),
            "expected an order of at least two nodes, found one",
        ),
        (
            order_of(*((1e5 * (-1) ** k, 0.0) for k in range(9)), released=9),
            "expected a path of at most 1e\\+06 m, found 1.6e\\+06 m",
        ),
    ],
)
def test_orders_that_cannot_be_driven_are_errors_of_that_agv_alone(
    order: Order, text: str
) -> None:
    robot_servers = RobotServers()
    robot_servers.order(1, crossing("b", False, 4))
    robot_servers.order(0, order)
    robot_servers.look()
    assert not robot_servers.fleet.has_orders
    (error,) = robot_servers.last[0]["errors"]
    assert error["errorType"] == "orderError"
    assert re.match(text, error["errorDescription"])
    assert robot_servers.last[1]["errors"] == []
    robot_servers.order(0, crossing("a", True, 2))
    assert robot_servers.fleet.has_orders
    robot_servers.fleet.begin(robot_servers.now)
    robot_servers.go_on(10.0)
    before = robot_servers.fleet.agvs[0].order
    end = crossing("a", True, 2).nodes[1]
    robot_servers.order(
        0,
        order_of(
            (end.x, end.y),
            (end.x + 0.3, end.y),
            released=2,
            update=1,
            first=1,
            name="a",
        ),
    )
    robot_servers.look()
    assert robot_servers.last[0]["errors"][-1]["errorType"] == "orderUpdateError"
    robot_servers.order(
        0, replace(before, update=1, nodes=(replace(end, id="other"),), edges=())
    )
    robot_servers.look()
    assert robot_servers.last[0]["errors"][-1]["errorType"] == "orderUpdateError"
    assert robot_servers.fleet.agvs[0].order is before
    assert robot_servers.go_on(5.0) is None, "the run goes on"


def zigzag(count: int, update: int = 0, first: int = 0, y: float = 0.0) -> Order:
    return order_of(
        *(((first + k) % 2 * 1.0, y) for k in range(count)),
        released=count,
        update=update,
        first=first,
    )


def test_the_search_for_conflicts_is_bounded_and_looks_only_at_what_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("botyard.interfaces.vda5050.fleet.MAX_PAIRS", 2000)
    robot_servers = RobotServers()
    robot_servers.order(0, zigzag(40))
    robot_servers.order(1, zigzag(60))
    robot_servers.look()
    (error,) = robot_servers.last[1]["errors"]
    assert error["errorType"] == "orderError"
    assert (
        error["errorDescription"]
        == "expected at most 2000 pairs of edges near the orders of other AGVs, found more"
    )
    robot_servers.order(1, zigzag(40))
    robot_servers.order(1, zigzag(20, update=1, first=39))
    robot_servers.look()
    assert (
        robot_servers.last[1]["errors"],
        len(robot_servers.last[1]["nodeStates"]),
    ) == ([], 58), "40 · 60 pairs, but 21 · 40 new ones"
    alone = RobotServers()
    alone.order(0, zigzag(40))
    monkeypatch.undo()
    monkeypatch.setattr("botyard.interfaces.vda5050.fleet.MAX_CONFLICTS", 2360)
    alone.order(1, zigzag(60))
    alone.look()
    assert "at most 2360 conflicts of the edges of all orders, found 2400" in str(
        alone.last[1]["errors"]
    )
    alone.order(1, zigzag(59))
    for one in (robot_servers, alone):
        one.fleet.begin(one.now)
    tasks = [one.fleet.finish(Ending.TIMEOUT).task for one in (robot_servers, alone)]
    assert all(
        np.array_equal(a, b)
        for a, b in zip(tasks[0].conflicts, tasks[1].conflicts, strict=True)
    )
    assert len(tasks[0].listed) == 40 * 59


def test_sectors_on_different_maps_do_not_conflict() -> None:
    robot_servers = RobotServers()
    first = order_of((0.0, 0.0), (4.0, 0.0), (8.0, 0.0), released=3)
    robot_servers.order(0, first)
    upstairs = [replace(n, map="upstairs") for n in first.nodes]
    robot_servers.order(1, replace(first, nodes=(*upstairs[:2], first.nodes[2])))
    robot_servers.fleet.begin(robot_servers.now)
    found = robot_servers.fleet.finish(Ending.TIMEOUT).task.listed
    assert found.tolist() == [[0, 1, 1, 2], [0, 2, 1, 2]], (
        "the last edge leads down again"
    )


def test_ticks_do_not_make_paths_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    robot_servers = RobotServers()
    robot_servers.order(0, zigzag(100))
    made: list[object] = []
    monkeypatch.setattr(Path2, "__init__", lambda *_: made.append(1))
    for _ in range(5):
        robot_servers.now += STATE_PERIOD_S
        assert robot_servers.look() == 2

    assert made == []


def test_messages_that_were_dropped_are_errors() -> None:
    robot_servers = RobotServers()
    robot_servers.fleet.refuse(
        robot_servers.fleet.order_topics[1], OrderError("orderError", "dropped")
    )
    robot_servers.look()
    assert [e["errorDescription"] for e in robot_servers.last[1]["errors"]] == [
        "dropped"
    ]
    assert robot_servers.last[0]["errors"] == []


PLACES = st.sampled_from(
    [0.0, 0.4, 1.0, 2.0, 3.5, 6.0, -4.0, 1e5, 1e300, float("nan"), "x", None]
)


def draw_order(data: st.DataObject, robot_servers: RobotServers, i: int) -> bytes:
    """Draw an order message: most continue the AGV's order, some are invalid."""
    draw = data.draw
    own = robot_servers.fleet.agvs[i].order
    update = draw(st.integers(-1, 2)) + (own.update if own is not None else 0)
    count = draw(st.integers(0, 5))
    nodes: list[Any] = []
    released = draw(st.integers(0, 5))
    start = 0
    if own is not None and draw(st.integers(0, 5)):
        last = own.nodes[own.released - 1]
        start = last.sequence
        nodes = [
            json.loads(
                json.dumps(
                    order_message(
                        robot_servers.names[i], 0, replace(own, nodes=(last,), edges=())
                    )
                )
            )["nodes"][0]
        ]

    while len(nodes) < count:
        place = {
            "x": draw(PLACES),
            "y": draw(PLACES),
            "mapId": draw(st.sampled_from(["map", "b"])),
        }
        nodes.append(
            {
                "nodeId": draw(st.sampled_from("abc")),
                "released": len(nodes) < released,
                "nodePosition": place,
            }
        )

    for number, node in enumerate(nodes):
        node["sequenceId"] = start + 2 * number + (draw(st.integers(0, 20)) == 0)
    edges = [
        {"edgeId": "e", "sequenceId": a["sequenceId"] + 1, "released": b["released"]}
        for a, b in itertools.pairwise(nodes)
    ]
    message = {
        "orderId": draw(st.sampled_from("ooop")),
        "orderUpdateId": update,
        "nodes": nodes,
        "edges": edges,
    }
    for key in draw(st.sets(st.sampled_from([*message, *"ABCDEF"]), max_size=1)):
        message[key] = draw(st.sampled_from([None, [], {}, -1, "x", [[]], [None]]))
    return json.dumps(message).encode()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_order_raises_and_each_that_is_refused_is_an_error(
    data: st.DataObject,
) -> None:
    robot_servers = RobotServers()
    if data.draw(st.booleans()):
        robot_servers.order(0, order_of((0.0, 0.0), (2.0, 0.0), (6.0, 0.0), released=2))
        robot_servers.order(1, order_of((0.0, 9.0), (2.0, 9.0), (6.0, 9.0), released=1))

    for _ in range(data.draw(st.integers(1, 8))):
        i = data.draw(st.integers(0, 1))
        agv = robot_servers.fleet.agvs[i]
        order, errors = agv.order, agv.errors
        robot_servers.order(i, draw_order(data, robot_servers, i))
        refused = agv.order is order and agv.errors is not errors
        assert refused == (agv.errors != () and agv.errors is not errors)
        assert agv.barrier._next == 0.0, "no internal error"
        if robot_servers.fleet.has_orders and not robot_servers.fleet.has_begun:
            robot_servers.fleet.begin(robot_servers.now)
        if (
            robot_servers.fleet.has_begun
            and robot_servers.go_on(
                data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.5, 25.0])), 0.5
            )
            is not None
        ):
            break

        robot_servers.look()
        check_driven(robot_servers)


def check_driven(robot_servers: RobotServers) -> None:
    """Check that no AGV is beyond its base, and that its state lists the nodes ahead of
    it.
    """
    for i, agv in enumerate(robot_servers.fleet.agvs):
        assert agv.barrier._next == 0.0
        if agv.order is None or agv.route is None:
            continue
        state = robot_servers.last[i]
        base = agv.route.path.along[agv.order.released - 1]
        passed = len(agv.order.nodes) - len(state["nodeStates"])
        assert 1 <= passed <= agv.order.released
        assert state["lastNodeSequenceId"] == agv.order.nodes[passed - 1].sequence
        if robot_servers.fleet.traffic is not None:
            places, speeds = np.zeros(2), np.zeros(2)
            k.places(
                robot_servers.fleet.traffic.world,
                robot_servers.now - robot_servers.fleet._begin,
                places,
                speeds,
            )
            assert places[i] <= base + 1e-6
            assert (speeds[i] == 0.0) or places[i] < base


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_updates_at_any_time_are_driven_to_the_end(data: st.DataObject) -> None:
    """Each update keeps the base and changes the horizon.

    The AGV moves without jumps and reaches the last node.
    """
    draw, robot_servers = data.draw, RobotServers(1)
    turn = st.floats(-math.pi, math.pi)
    length = st.floats(0.51, 4.0)

    def horizon(at: tuple[float, float]) -> list[tuple[float, float]]:
        found = []
        for _ in range(draw(st.integers(0, 4))):
            angle, far = draw(turn), draw(length)
            at = (at[0] + far * math.cos(angle), at[1] + far * math.sin(angle))
            found.append(at)

        return found

    base = [(0.0, 0.0), (3.0, 0.0)]
    robot_servers.order(0, order_of(*base, *horizon(base[-1]), released=2))
    robot_servers.fleet.begin(robot_servers.now)
    before, ending = (0.0, 0.0), None
    for update in range(1, 8):
        for _ in range(draw(st.integers(0, 40))):
            ending = robot_servers.go_on(0.1)
            robot_servers.look(last=True)
            at = (
                robot_servers.last[0]["agvPosition"]["x"],
                robot_servers.last[0]["agvPosition"]["y"],
            )
            assert math.dist(before, at) <= 0.1 + 1e-9
            before = at
            if ending is not None:
                break

        if ending is not None:
            break
        ahead = horizon(base[-1])
        more = draw(st.integers(0, len(ahead)))
        first = len(base) - 1
        robot_servers.order(
            0, order_of(base[-1], *ahead, released=1 + more, update=update, first=first)
        )
        assert robot_servers.fleet.agvs[0].errors == ()
        base += ahead[:more]
        robot_servers.look()
        check_driven(robot_servers)

    agv = robot_servers.fleet.agvs[0]
    assert agv.order is not None
    if ending is None and agv.order.released < len(agv.order.nodes):
        last = agv.order.nodes[agv.order.released - 1]
        robot_servers.order(0, replace(agv.order, update=99, nodes=(last,), edges=()))
        assert agv.errors == ()

    assert (
        ending is Ending.COMPLETED
        or robot_servers.go_on(300.0, 0.4) is Ending.COMPLETED
    )
    robot_servers.look(last=True)
    at = (
        robot_servers.last[0]["agvPosition"]["x"],
        robot_servers.last[0]["agvPosition"]["y"],
    )
    assert at == pytest.approx(base[-1], abs=1e-6)
    assert robot_servers.passed == [f"n{i}" for i in range(len(base))]


def test_states_are_sent_when_something_changes_and_now_and_then() -> None:
    robot_servers = RobotServers()
    assert robot_servers.look() == 2
    assert robot_servers.look() == 0
    robot_servers.now += STATE_PERIOD_S / 2
    assert robot_servers.look() == 0
    robot_servers.order(0, crossing("a", True, 4))
    assert robot_servers.look() == 1
    robot_servers.now += STATE_PERIOD_S / 2
    assert robot_servers.look() == 1
    headers = [
        json.loads(m.payload)["headerId"]
        for m in (
            robot_servers.fleet.online(0),
            robot_servers.fleet.online(1),
            *robot_servers.fleet.offline(),
        )
    ]
    assert headers == [3, 3, 4, 4], "each AGV counts its own"


def test_states_keep_to_their_rate_however_often_they_change() -> None:
    robot_servers = RobotServers()
    robot_servers.order(0, crossing("a", True, 2000, nodes=2000))
    sent = {topic: 0 for topic in robot_servers.fleet.order_topics}
    for n in range(500):
        for i in (0, 1):
            robot_servers.order(i, b"no order")
        for message in robot_servers.fleet.states(robot_servers.now + 0.01 * n):
            sent[message.topic.replace("/state", "/order")] += len(message.payload)

    one, two = sent.values()
    assert 0.5 * 5.0 * STATE_RATE / 2 < one < 7.0 * STATE_RATE / 2, (
        "half of the rate, and a second at once"
    )
    assert two > 0.5 * 500 * 1500, "the other AGV says all that changes"
    assert robot_servers.look(last=True) == 2, "the last states are sent, however late"
    assert len(robot_servers.last[0]["errors"]) == MAX_ERRORS + 1
    assert robot_servers.last[0]["orderId"] == "a"


def test_an_order_that_grows_by_updates_keeps_a_state_within_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names count in their encoded form: a character may take 12 bytes."""
    monkeypatch.setattr(fleet, "MAX_STATE", 10_000)
    robot_servers = RobotServers(1)
    first = crossing("a", True, 4)
    robot_servers.order(0, first)
    long = replace(first.nodes[3], id="\U0001f600" * 200, sequence=6)
    grown = Order(
        "a",
        1,
        (
            first.nodes[3],
            *(replace(long, sequence=6 + 2 * k, x=6.0 + 4.0 * k) for k in range(1, 6)),
        ),
        tuple("bcdef"),
    )
    robot_servers.order(0, grown)
    robot_servers.look()
    assert robot_servers.last[0]["errors"][0]["errorType"] == "orderUpdateError"
    assert "10000 characters" in robot_servers.last[0]["errors"][0]["errorDescription"]
    assert (
        robot_servers.last[0]["orderUpdateId"] == 0
        and len(robot_servers.last[0]["nodeStates"]) == 3
    ), "the order is as it was"


def test_a_state_waits_until_the_one_before_it_has_left() -> None:
    robot_servers = RobotServers()
    assert robot_servers.look() == 2
    robot_servers.order(0, b"no order")
    robot_servers.order(1, b"no order")
    robot_servers.now += 1.0
    assert [
        m.topic for m in robot_servers.fleet.states(robot_servers.now, busy={0})
    ] == ["uagv/v2/acme/two/state"]
    robot_servers.now += 10 * STATE_PERIOD_S
    assert [
        m.topic for m in robot_servers.fleet.states(robot_servers.now, busy={0})
    ] == ["uagv/v2/acme/two/state"]
    assert robot_servers.look() == 1
    assert len(robot_servers.last[0]["errors"]) == 1


def test_what_the_broker_is_told() -> None:
    fleet = RobotServers().fleet
    wills, here, gone = (
        fleet.last_wills(),
        [fleet.online(0), fleet.online(1)],
        fleet.offline(),
    )
    topics = ["uagv/v2/acme/one/connection", "uagv/v2/acme/two/connection"]
    for messages, state in (
        (wills, "CONNECTIONBROKEN"),
        (here, "ONLINE"),
        (gone, "OFFLINE"),
    ):
        assert [m.topic for m in messages] == topics, "each AGV has its own"
        assert {json.loads(m.payload)["connectionState"] for m in messages} == {state}
        assert all(m.qos == 1 and m.retain for m in messages)

    assert fleet.order_topics == ["uagv/v2/acme/one/order", "uagv/v2/acme/two/order"]


def act(robot_servers: RobotServers, i: int, *actions: tuple[str, str]) -> None:
    """Send instant actions, each an actionId and an actionType."""
    rows = [
        {"actionId": name, "actionType": kind, "blockingType": "HARD"}
        for name, kind in actions
    ]
    message = robot_servers.names[i].header(0) | {"actions": rows}
    topic = robot_servers.names[i].topic("instantActions")
    robot_servers.fleet.on_message(topic, json.dumps(message).encode())
    robot_servers.look()


def status(robot_servers: RobotServers, i: int = 0) -> dict[str, str]:
    """Return the status of each action in the last state."""
    rows = robot_servers.last[i]["actionStates"]
    return {row["actionId"]: row["actionStatus"] for row in rows}


def place(robot_servers: RobotServers, i: int = 0) -> tuple[float, float]:
    at = robot_servers.last[i]["agvPosition"]
    return at["x"], at["y"]


@pytest.mark.parametrize(
    "wait", [0.0, 0.3, 1.0, 1.9, 2.6, 3.6, 4.4, 5.2, 6.4, 8.0, 20.0]
)
@pytest.mark.parametrize("released", [2, 3, 4])
def test_a_canceled_order_ends_at_the_next_node_and_a_new_one_starts_there(
    wait: float, released: int
) -> None:
    """VDA 5050 2.0, §6.6.3: `cancelOrder`, at any time before the end of the order."""
    robot_servers = RobotServers(1)
    places = [(0.0, 0.0), (2.0, 0.0), (2.0, 0.8), (6.0, 0.8)]
    order = order_of(*places, released=released)
    nodes = (replace(order.nodes[0], actions=(Action("p", "pick"),)), *order.nodes[1:3])
    last = replace(order.nodes[3], actions=(Action("d", "drop"),))
    robot_servers.order(0, replace(order, nodes=(*nodes, last)))
    robot_servers.fleet.begin(robot_servers.now)
    if robot_servers.go_on(wait) is not None:
        act(robot_servers, 0, ("c", "cancelOrder"))
        assert status(robot_servers)["c"] == "FAILED"
        return

    robot_servers.look(last=True)
    before, speed = place(robot_servers), robot_servers.last[0]["velocity"]["vx"]
    act(robot_servers, 0, ("c", "cancelOrder"))
    moves = robot_servers.last[0]["driving"]
    assert status(robot_servers)["c"] == ("RUNNING" if moves else "FINISHED")
    assert (status(robot_servers)["p"], status(robot_servers)["d"]) == (
        "FAILED",
        "FAILED",
    )
    assert robot_servers.go_on(30.0) is None, "the AGV waits for an order"
    robot_servers.look(last=True)
    state = robot_servers.last[0]
    assert status(robot_servers)["c"] == "FINISHED"
    assert (state["driving"], state["nodeStates"], state["edgeStates"]) == (
        False,
        [],
        [],
    )
    assert (state["orderId"], state["newBaseRequest"]) == ("o", False)
    at = int(state["lastNodeId"][1:])
    assert place(robot_servers) == pytest.approx(places[at], abs=1e-6)
    assert state["lastNodeSequenceId"] == 2 * at
    # It stops at the first node beyond its braking distance.
    along = list(Path2(np.array(places)).along)
    braking = speed**2 / (2.0 * robot_servers.fleet._vehicle.deceleration)
    gone = next(
        s + math.dist(p, before)
        for s, p, q in zip(along, places, [*places[1:], places[-1]], strict=True)
        if math.dist(p, before) + math.dist(before, q) <= math.dist(p, q) + 1e-9
    )
    assert all(s < gone + braking for s in along[:at]), "it does not drive too far"

    x, y = places[at]
    robot_servers.order(0, order_of((x, y), (x, y + 3.0), released=2, name="next"))
    robot_servers.look()
    state = robot_servers.last[0]
    assert (state["orderId"], state["lastNodeId"], state["errors"]) == (
        "next",
        "n0",
        [],
    )
    assert [n["nodeId"] for n in state["nodeStates"]] == ["n1"]
    assert state["actionStates"] == [], "kept until a new order comes"
    assert robot_servers.go_on(30.0) is Ending.COMPLETED
    robot_servers.look(last=True)
    assert place(robot_servers) == pytest.approx((x, y + 3.0), abs=1e-6)


def test_an_order_is_canceled_before_the_run() -> None:
    robot_servers = RobotServers()
    act(robot_servers, 0, ("c0", "cancelOrder"))
    assert status(robot_servers) == {"c0": "FAILED"}
    (error,) = robot_servers.last[0]["errors"]
    assert (error["errorType"], error["errorLevel"]) == ("noOrderToCancel", "WARNING")
    assert {
        "referenceKey": "actionId",
        "referenceValue": "c0",
    } in error["errorReferences"]
    robot_servers.order(0, crossing("a", True, 4))
    robot_servers.order(1, crossing("b", False, 4))
    act(robot_servers, 0, ("c1", "cancelOrder"))
    assert status(robot_servers)["c1"] == "FINISHED"
    assert not robot_servers.fleet.has_orders
    act(robot_servers, 0, ("c2", "cancelOrder"))
    assert status(robot_servers)["c2"] == "FAILED"
    robot_servers.order(0, order_of((-6.0, 0.0), (-6.0, -4.0), released=2))
    assert robot_servers.fleet.has_orders
    robot_servers.fleet.begin(robot_servers.now)
    assert robot_servers.go_on(60.0) is Ending.COMPLETED
    robot_servers.look(last=True)
    assert place(robot_servers) == pytest.approx((-6.0, -4.0), abs=1e-6)


def test_an_order_after_a_canceled_one_starts_where_the_agv_stands() -> None:
    robot_servers = RobotServers(1)
    robot_servers.order(0, order_of((0.0, 0.0), (4.0, 0.0), (9.0, 0.0), released=3))
    robot_servers.fleet.begin(robot_servers.now)
    robot_servers.go_on(1.0)
    act(robot_servers, 0, ("c", "cancelOrder"))
    new = order_of((4.0, 0.0), (4.0, 5.0), released=2, name="new")

    def refused(order: Order, kind: str, text: str) -> None:
        count = len(robot_servers.last[0]["errors"])
        robot_servers.order(0, order)
        robot_servers.look()
        errors = robot_servers.last[0]["errors"]
        assert len(errors) == count + 1
        assert errors[-1]["errorType"] == kind
        assert text in errors[-1]["errorDescription"]
        assert robot_servers.last[0]["orderId"] == "o"

    refused(new, "orderError", "has not stopped yet")
    robot_servers.go_on(20.0)
    away = order_of((4.0, 1.0), (4.0, 5.0), released=2, name="new")
    refused(away, "orderError", "at most 0.05 m from the AGV at (4, 0)")
    upstairs = tuple(replace(n, map="upstairs") for n in new.nodes)
    refused(replace(new, nodes=upstairs), "orderError", "found (4, 0) on map upstairs")
    refused(replace(new, nodes=new.nodes[:1], edges=()), "orderError", "two nodes")
    refused(replace(new, id="o", update=1), "orderUpdateError", "was canceled")
    count = len(robot_servers.last[0]["errors"])
    old = order_of((0.0, 0.0), (4.0, 0.0), (9.0, 0.0), released=3)
    robot_servers.order(0, old)
    robot_servers.look()
    assert len(robot_servers.last[0]["errors"]) == count, "delivered twice"

    message = order_message(robot_servers.names[0], 0, away)
    message["nodes"][0]["nodePosition"]["allowedDeviationXY"] = 1.5
    robot_servers.order(0, json.dumps(message).encode())
    robot_servers.look()
    assert (robot_servers.last[0]["orderId"], robot_servers.last[0]["errors"]) == (
        "new",
        [],
    )
    assert place(robot_servers) == pytest.approx((4.0, 0.0), abs=1e-6), "no jump"
    robot_servers.order(
        0,
        order_of((4.0, 5.0), (9.0, 5.0), released=2, update=1, first=1, name="new"),
    )
    assert robot_servers.go_on(60.0) is Ending.COMPLETED
    robot_servers.look(last=True)
    assert place(robot_servers) == pytest.approx((9.0, 5.0), abs=1e-6)


def test_other_agvs_go_on_beside_a_canceled_one() -> None:
    """Also if the AGV stops at the end of its path with short edges, and the path of
    another one changes.
    """
    robot_servers = RobotServers()
    robot_servers.order(0, order_of((0.0, 0.0), (3.0, 0.0), (3.7, 0.0), released=3))
    robot_servers.order(1, order_of((0.0, 9.0), (2.0, 9.0), (6.0, 9.0), released=2))
    robot_servers.fleet.begin(robot_servers.now)
    robot_servers.go_on(5.6)
    act(robot_servers, 0, ("c", "cancelOrder"))
    for update, (x, y) in enumerate([(2.0, 5.0), (2.7, 5.0), (6.0, 5.0)], 1):
        before = robot_servers.fleet.agvs[1].order
        assert before is not None
        base = before.nodes[before.released - 1]
        robot_servers.order(
            1,
            order_of((base.x, base.y), (x, y), released=2, update=update, first=update),
        )
        assert robot_servers.go_on(1.0) is None
        robot_servers.order(0, crossing("x", True, 4))

    assert robot_servers.go_on(30.0) is None
    robot_servers.look(last=True)
    assert place(robot_servers, 0) == pytest.approx((3.7, 0.0), abs=1e-6)
    assert place(robot_servers, 1) == pytest.approx((6.0, 5.0), abs=1e-6)
    assert robot_servers.last[1]["errors"] == []
    robot_servers.order(0, order_of((3.7, 0.0), (9.0, 0.0), released=2, name="new"))
    assert robot_servers.go_on(30.0) is Ending.COMPLETED
    robot_servers.look(last=True)
    assert place(robot_servers, 0) == pytest.approx((9.0, 0.0), abs=1e-6)


def test_instant_actions_that_are_not_offered_fail() -> None:
    robot_servers = RobotServers(1)
    act(robot_servers, 0, ("a", "startCharging"), ("b", "stateRequest"))
    assert status(robot_servers) == {"a": "FAILED", "b": "FINISHED"}
    (error,) = robot_servers.last[0]["errors"]
    assert error["errorType"] == "instantActionError"
    assert "found startCharging" in error["errorDescription"]
    assert [r["referenceValue"] for r in error["errorReferences"]] == [
        "instantActions",
        "a",
        "startCharging",
    ]
    act(robot_servers, 0, ("a", "startCharging"))
    assert len(robot_servers.last[0]["errors"]) == 1, "delivered twice"
    assert robot_servers.fleet.states(robot_servers.now) == []
    act(robot_servers, 0, ("c", "stateRequest"))
    assert status(robot_servers)["c"] == "FINISHED", "a state is sent at once"
    for n in range(4):
        act(robot_servers, 0, *((f"{n}-{k}", "no\U0001f600") for k in range(20)))
    assert len(status(robot_servers)) == MAX_ACTIONS
    topic = robot_servers.names[0].topic("instantActions")
    for bad in (
        b"\xff",
        b"{}",
        b'{"actions": 5}',
        b'{"actions": [{"actionId": 5, "actionType": "x"}]}',
        json.dumps({"actions": [{"actionId": "a", "actionType": "b"}] * 21}).encode(),
    ):
        robot_servers.fleet.on_message(topic, bad)
        robot_servers.look()
        errors = robot_servers.last[0]["errors"]
        assert errors[-1]["errorType"] == "validationError", bad


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_orders_and_cancels_at_any_time_are_driven_without_jumps(
    data: st.DataObject,
) -> None:
    draw, robot_servers = data.draw, RobotServers(1)
    turn, length = st.floats(-math.pi, math.pi), st.floats(0.51, 4.0)
    at, before = (0.0, 0.0), (0.0, 0.0)
    for number in range(5):
        places = [at]
        for _ in range(draw(st.integers(1, 4))):
            angle, far = draw(turn), draw(length)
            x, y = places[-1]
            places.append((x + far * math.cos(angle), y + far * math.sin(angle)))
        released = draw(st.integers(1, len(places)))
        robot_servers.order(0, order_of(*places, released=released, name=f"{number}"))
        assert robot_servers.fleet.agvs[0].errors == ()
        if not number:
            robot_servers.fleet.begin(robot_servers.now)

        canceled, ending = draw(st.integers(0, 60)), None
        for tick in range(200):
            if tick == canceled:
                act(robot_servers, 0, (f"c{number}", "cancelOrder"))
            ending = robot_servers.go_on(0.1)
            robot_servers.look(last=True)
            assert math.dist(before, place(robot_servers)) <= 0.1 + 1e-9
            before = place(robot_servers)
            check_stops(robot_servers, places, released)
            if ending is not None:
                break

        if ending is not None:
            assert before == pytest.approx(places[-1], abs=1e-6)
            break
        assert status(robot_servers)[f"c{number}"] == "FINISHED"
        assert not robot_servers.last[0]["driving"]
        assert robot_servers.last[0]["nodeStates"] == []
        node = int(robot_servers.last[0]["lastNodeId"][1:])
        assert before == pytest.approx(places[node], abs=1e-6)
        at = before


def check_stops(
    robot_servers: RobotServers, places: list[tuple[float, float]], released: int
) -> None:
    """Check that the AGV has not left its base."""
    state = robot_servers.last[0]
    assert int(state["lastNodeId"][1:]) < released
    assert robot_servers.fleet.agvs[0].barrier._next == 0.0
    left = len(state["nodeStates"])
    assert left <= len(places) - 1 - int(state["lastNodeId"][1:])


def test_a_run_that_has_ended_is_shown_again_with_the_next_order() -> None:
    robot_servers = RobotServers()
    sim = Simulation(odometry_error="none")
    live = LiveTraffic(sim)
    ShownFleet(robot_servers.fleet, sim, live)
    robot_servers.order(0, crossing("a", True, 2))
    robot_servers.order(1, crossing("b", False, 2))
    robot_servers.fleet.begin(robot_servers.now)
    sim.step(5)
    assert not live.has_ended
    sim.reset()
    sim.step()
    assert "set back" in live.ending
    robot_servers.order(0, crossing("a", True, 4, update=1, begin=1))
    sim.step()
    assert not live.has_ended and live.ending == ""
    # The discs follow their AGVs.
    robot_servers.go_on(10.0)
    sim.step(2)
    x = robot_servers.fleet.places()[0][0] - 6.0
    assert sim.robots["one"].truth.x == pytest.approx(x)
