"""States, connections and orders of AGVs as JSON messages, sans-I/O.

Source: VDA/VDMA recommendation VDA 5050, version 2.0, §6.6, §6.10 and §6.14.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from botyard.numerics.elementary import atan2
from botyard.protocols.vda5050.orders import (
    DEFAULT_MAP,
    Action,
    Node,
    Order,
    OrderError,
)

VERSION: Final = "2.0.0"
NOT_CARRIED_OUT: Final = "this AGV executes no actions"
"""Result of an action whose node the AGV has reached."""
CANCELED: Final = "the order was canceled"
"""Result of the actions of a canceled order."""


class ActionState(NamedTuple):
    """State of an instant action.

    Attributes
    ----------
    action : Action
        Instant action that the state describes.
    status : str
        ``RUNNING``, ``FINISHED`` or ``FAILED``.
    result : str
        Description of the result.
    """

    action: Action
    status: str
    result: str = ""


@dataclass(frozen=True, slots=True)
class Vehicle5050:
    """Identity of an AGV.

    Attributes
    ----------
    manufacturer, serial : str
        Manufacturer and serial number, as topics and headers give them.
    """

    manufacturer: str
    serial: str

    def topic(self, name: str) -> str:
        """Return a topic: ``uagv/v2/<manufacturer>/<serial>/<name>``.

        Parameters
        ----------
        name : str
            Last part: ``order``, ``instantActions``, ``state``, ``connection`` and so
            on.
        """
        return f"uagv/v2/{self.manufacturer}/{self.serial}/{name}"

    def header(self, number: int) -> dict[str, Any]:
        """Return the header of every message.

        Parameters
        ----------
        number : int
            Header id, which counts the messages of each topic.
        """
        stamp = (
            # VDA 5050 requires UTC in the form with "Z".
            datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
        return {
            "headerId": number,
            "timestamp": stamp,
            "version": VERSION,
            "manufacturer": self.manufacturer,
            "serialNumber": self.serial,
        }

    def connection(self, number: int, state: str) -> dict[str, Any]:
        """Return a connection message; `state` is for example ``ONLINE``.

        Parameters
        ----------
        number : int
            Header id, which counts the messages of the topic.
        state : str
            ``ONLINE``, ``OFFLINE`` or ``CONNECTIONBROKEN`` (§6.14).
        """
        return self.header(number) | {"connectionState": state}


def _node(n: Node, theta: float | None) -> dict[str, Any]:
    """Return a node as JSON data of orders and states.

    `theta` is the heading of the node, or of an AGV on it.

    Parameters
    ----------
    n : Node
        Node of an order.
    theta : float or None
        Heading, rad; None leaves the field out.
    """
    position: dict[str, Any] = (
        {"x": n.x, "y": n.y}
        | ({} if theta is None else {"theta": theta})
        | {"mapId": n.map}
    )
    return {
        "nodeId": n.id,
        "sequenceId": n.sequence,
        "released": n.released,
        "nodePosition": position,
    }


def _action(a: Action) -> dict[str, Any]:
    # With NONE the AGV does not stop for the action, because no action is executed.
    return {"actionId": a.id, "actionType": a.type, "blockingType": "NONE"}


def _action_end(status: str, result: str = "") -> str:
    """Return the JSON text that ends an actionState, after its actionId and actionType."""
    table = {"actionStatus": status} | ({"resultDescription": result} if result else {})
    return f", {json.dumps(table)[1:]}"


_WAITING: Final = _action_end("WAITING")
_FAILED: Final = _action_end("FAILED", NOT_CARRIED_OUT)
_CANCELED: Final = _action_end("FAILED", CANCELED)


class OrderTexts:
    """Nodes, edges and actions of an order as JSON texts, written once for all states.

    A state lists the remaining nodes, edges and actions. A node without a heading gets
    the direction of its edge, because states must have one (§6.10.6).

    Parameters
    ----------
    order : Order
        The order. Its updates need new texts.

    Attributes
    ----------
    nodes, edges : list of str
        JSON texts in the order of the nodes. Edge k leads to node k + 1.
    """

    def __init__(self, order: Order) -> None:
        pairs = tuple(itertools.pairwise(order.nodes))
        first = order.nodes[0]
        # The first node has no edge that leads to it, and thus no direction.
        thetas = [first.theta or 0.0] + [
            atan2(b.y - a.y, b.x - a.x) if b.theta is None else b.theta
            for a, b in pairs
        ]

        self.nodes = [
            json.dumps(_node(n, theta))
            for n, theta in zip(order.nodes, thetas, strict=True)
        ]

        self.edges = [
            json.dumps(
                {"edgeId": e, "sequenceId": b.sequence - 1, "released": b.released}
            )
            for e, (_, b) in zip(order.edges, pairs, strict=True)
        ]

        self._actions = [
            (k, json.dumps({"actionId": a.id, "actionType": a.type})[:-1])
            for k, n in enumerate(order.nodes)
            for a in n.actions
        ]
        self._executed, self._ahead = len(order.nodes), _WAITING

    def actions(self, passed: int) -> str:
        """Return the actions after `passed` nodes have been reached.

        Actions of these nodes have failed, and the other actions wait.

        Parameters
        ----------
        passed : int
            Number of nodes that the AGV has reached.

        Returns
        -------
        str
            JSON objects, separated by commas; empty without actions.
        """
        passed = min(passed, self._executed)
        return ", ".join(
            text + (_FAILED if k < passed else self._ahead) for k, text in self._actions
        )

    def cancel(self, passed: int, count: int) -> None:
        """Leave out the nodes after the first `count`, and let waiting actions fail.

        Actions of the first `passed` nodes keep their result.

        Parameters
        ----------
        passed : int
            Number of nodes that the AGV has reached.
        count : int
            Number of nodes that stay in the order.
        """
        # n nodes have n − 1 edges between them.
        del self.nodes[count:], self.edges[count - 1 :]
        self._executed, self._ahead = passed, _CANCELED

    @property
    def size(self) -> int:
        """Number of characters of all texts."""
        return (
            sum(map(len, self.nodes))
            + sum(map(len, self.edges))
            + sum(len(text) + len(_FAILED) for _, text in self._actions)
        )


def state_text(
    vehicle: Vehicle5050,
    number: int,
    order: Order | None,
    texts: OrderTexts | None,
    passed: int,
    pose: tuple[float, float, float],
    speed: float,
    errors: Sequence[OrderError] = (),
    instant: Sequence[ActionState] = (),
) -> str:
    """Return a state message as JSON.

    Parameters
    ----------
    vehicle : Vehicle5050
        Identity of the AGV.
    number : int
        Header id, which counts the messages of the topic.
    order, texts : Order, OrderTexts, optional
        The order with its texts; both None without an order.
    passed : int
        Number of the order's nodes that the AGV has reached. It is at least 1, because
        the AGV is on the first node when it gets the order; 0 without an order.
    pose : (float, float, float)
        Position x, y, m, and heading, rad.
    speed : float
        Speed of the AGV, m/s.
    errors : sequence of OrderError
        Errors of orders and instant actions.
    instant : sequence of ActionState
        States of the instant actions.
    """
    nodes = order.nodes if order is not None else ()
    last = nodes[passed - 1] if nodes and passed else None

    state = vehicle.header(number) | {
        "orderId": order.id if order is not None else "",
        "orderUpdateId": order.update if order is not None else 0,
        "lastNodeId": last.id if last is not None else "",
        "lastNodeSequenceId": last.sequence if last is not None else 0,
        # Rounding leaves tiny speeds after braking.
        "driving": speed > 1e-6,
        # The field is true on the last released node if a horizon follows: without an
        # update the AGV stops here.
        "newBaseRequest": order is not None and passed == order.released < len(nodes),
        "agvPosition": {
            "x": pose[0],
            "y": pose[1],
            "theta": pose[2],
            "mapId": last.map if last is not None else DEFAULT_MAP,
            "positionInitialized": True,
        },
        "velocity": {"vx": speed, "vy": 0.0, "omega": 0.0},
        "loads": [],
        # The schema requires the field, but these AGVs have no battery model.
        "batteryState": {"batteryCharge": 100.0, "charging": False},
        "operatingMode": "AUTOMATIC",
        "errors": [
            {
                "errorType": e.kind,
                "errorLevel": "WARNING",
                "errorDescription": str(e),
                "errorReferences": [
                    {"referenceKey": key, "referenceValue": value}
                    for key, value in _references(e)
                ],
            }
            for e in errors
        ],
        "information": [],
        "safetyState": {"eStop": "NONE", "fieldViolation": False},
    }

    node_states = ", ".join(texts.nodes[passed:]) if texts is not None else ""
    edge_states = (
        ", ".join(texts.edges[max(passed - 1, 0) :]) if texts is not None else ""
    )

    actions = ", ".join(
        text
        for text in (
            texts.actions(passed) if texts is not None else "",
            *(
                json.dumps({"actionId": s.action.id, "actionType": s.action.type})[:-1]
                + _action_end(s.status, s.result)
                for s in instant
            ),
        )
        if text
    )
    # Texts of nodes and edges are joined as they are, because encoding them again for
    # each state would cost too much.
    return (
        f'{json.dumps(state)[:-1]}, "nodeStates": [{node_states}], "edgeStates": [{edge_states}], '
        f'"actionStates": [{actions}]}}'
    )


def _references(error: OrderError) -> list[tuple[str, str]]:
    """Return the key and the value of each reference of an error (§8.1)."""
    if error.action is None:
        return []
    return [
        ("topic", "instantActions"),
        ("actionId", error.action.id),
        ("actionType", error.action.type),
    ]


def order_message(vehicle: Vehicle5050, number: int, order: Order) -> dict[str, Any]:
    """Return an order message, as a master control sends it.

    Parameters
    ----------
    vehicle : Vehicle5050
        Identity of the AGV.
    number : int
        Header id, which counts the messages of the topic.
    order : Order
        Order to be sent.

    Returns
    -------
    dict
        JSON data of the topic ``order``. `orders.parse_order` reads it back, except for
        the deviation of nodes.
    """
    return vehicle.header(number) | {
        "orderId": order.id,
        "orderUpdateId": order.update,
        "nodes": [
            _node(n, n.theta) | {"actions": [_action(a) for a in n.actions]}
            for n in order.nodes
        ],
        "edges": [
            {
                "edgeId": e,
                "sequenceId": a.sequence + 1,
                "released": b.released,
                "startNodeId": a.id,
                "endNodeId": b.id,
                "actions": [],
            }
            for e, a, b in zip(
                order.edges, order.nodes[:-1], order.nodes[1:], strict=True
            )
        ],
    }


__all__ = ["ActionState", "OrderTexts", "Vehicle5050", "order_message", "state_text"]
