"""VDA 5050 (version 2), sans-I/O: orders of nodes and edges, and instant actions.

An order has a released base and an announced horizon. Input is JSON as bytes. Source:
VDA/VDMA recommendation "Interface for the communication between automated guided
vehicles (AGV) and a master control", version 2.0, §6.6 (orders) and §6.9 (instant
actions).
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from botyard.errors import PeerError
from botyard.names import shown

DEFAULT_MAP: Final = "map"
"""Name of the map for AGVs without an order, and for nodes without a map."""
# Each state lists all remaining nodes, so long orders also make long messages.
MAX_NODES: Final = 10_000
"""Limit of the nodes in an order, including its updates."""
MAX_TEXT: Final = 256
"""Longest name in an order, characters."""
MAX_ID: Final = 2**32 - 1
"""Greatest sequenceId and orderUpdateId: uint32."""
MAX_PLACE: Final = 100_000.0
"""Greatest coordinate of a node, m, and greatest direction, rad."""
MAX_ACTIONS: Final = 20
"""Limit of the instant actions in a message, and in a state."""


class Action(NamedTuple):
    """Action of a node or an edge, or an instant action.

    AGVs list the actions of nodes and edges in their states, but do not execute them.

    Attributes
    ----------
    id, type : str
        Its actionId and actionType.
    """

    id: str
    type: str


@dataclass(frozen=True, slots=True)
class Node:
    """Node of an order, where an AGV can stop.

    Attributes
    ----------
    id : str
        Name of the node (nodeId).
    sequence : int
        Sequence number in the order, even.
    released : bool
        Whether it belongs to the base; otherwise it belongs to the horizon.
    x, y : float
        Position on the map, m.
    theta : float, optional
        Heading of the AGV on the node, −π to π rad.
    map : str
        Name of the map of x and y.
    actions : tuple of Action
        Actions on the edge that leads to it, and on the node.
    deviation : float
        Distance at which an AGV counts as on the node, m (``allowedDeviationXY``).
    """

    id: str
    sequence: int
    released: bool
    x: float
    y: float
    theta: float | None = None
    map: str = DEFAULT_MAP
    actions: tuple[Action, ...] = ()
    deviation: float = 0.0

    @property
    def place(self) -> tuple[float, float, str]:
        """Position x and y, m, and name of the map."""
        return self.x, self.y, self.map


@dataclass(frozen=True, slots=True)
class Order:
    """Order for an AGV.

    Attributes
    ----------
    id : str
        Name of the order (orderId).
    update : int
        Number of the update.
    nodes : tuple of Node
        Base and horizon.
    edges : tuple of str
        Names of the edges from each node to the next.
    """

    id: str
    update: int
    nodes: tuple[Node, ...]
    edges: tuple[str, ...]

    @property
    def released(self) -> int:
        """Number of released nodes."""
        return sum(n.released for n in self.nodes)


class OrderError(PeerError):
    """Invalid order or instant action.

    Parameters
    ----------
    kind : str
        VDA 5050 error type, such as ``validationError``, ``orderError`` or
        ``noOrderToCancel``.
    text : str
        Expected and found values.
    action : Action, optional
        The instant action that the error refers to.
    """

    def __init__(self, kind: str, text: str, action: Action | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.action = action


def _field(table: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return a field of a JSON object, of an expected kind and of limited size.

    Parameters
    ----------
    table : object
        JSON value, which need not be an object.
    key : str
        Name of the field.
    kind : type or tuple of type
        Expected Python types; a bool is valid only if `kind` has bool.
    where : str
        Path of the object, for the error.

    Raises
    ------
    OrderError
        The field is missing, of another kind, or too long.
    """
    # Each level may have any type in JSON, so the type of each is checked.
    value = table.get(key) if isinstance(table, dict) else None
    # bool is a subclass of int in Python, but true is no number in JSON.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise OrderError(
            "validationError",
            f"{where}.{key}: missing, or not of the type in VDA 5050: {shown(value, 60)}",
        )

    # Names are repeated in every state, so their length is bounded.
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise OrderError(
            "validationError",
            f"{where}.{key}: expected at most {MAX_TEXT} characters, found {len(value)}",
        )

    # Python's JSON reads whole numbers of any length, which later conversions would
    # refuse.
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise OrderError(
            "validationError", f"{where}.{key}: expected a number of at most 64 bits"
        )

    return value


def _identifier(table: Any, key: str, where: str) -> int:
    """Return a sequenceId or orderUpdateId."""
    value: int = _field(table, key, int, where)
    if not 0 <= value <= MAX_ID:
        raise OrderError(
            "validationError", f"{where}.{key}: expected 0 … {MAX_ID}, found {value}"
        )

    return value


def _actions_of(row: Any, where: str) -> tuple[Action, ...]:
    """Return the actions of a node or an edge; a message without the field has none.

    Parameters
    ----------
    row : object
        JSON value of the node or edge.
    where : str
        Its path, for the error.
    """
    if not isinstance(row, dict) or row.get("actions") is None:
        return ()
    return _listed_actions(row, where)


def _listed_actions(row: Any, where: str) -> tuple[Action, ...]:
    rows = _field(row, "actions", list, where)
    return tuple(
        Action(
            _field(a, "actionId", str, f"{where}.actions[{k}]"),
            _field(a, "actionType", str, f"{where}.actions[{k}]"),
        )
        for k, a in enumerate(rows)
    )


def _node_of(row: Any, where: str) -> Node:
    """Return a node of an order.

    Parameters
    ----------
    row : object
        JSON value of the node.
    where : str
        Its path, for the error.

    Raises
    ------
    OrderError
        A field is missing, of another kind, or out of its range.
    """
    place = _field(row, "nodePosition", dict, where)
    at = f"{where}.nodePosition"
    # The position is optional in VDA 5050, but botyard has no layout that would know
    # the nodes.
    x, y = (_field(place, axis, (int, float), at) for axis in "xy")

    theta = (
        _field(place, "theta", (int, float), at)
        if place.get("theta") is not None
        else None
    )
    deviation = (
        _field(place, "allowedDeviationXY", (int, float), at)
        if place.get("allowedDeviationXY") is not None
        else 0.0
    )

    # Comparisons are false for NaN, which Python's JSON accepts.
    if not all(abs(value) <= MAX_PLACE for value in (x, y, theta or 0.0)):
        raise OrderError(
            "validationError",
            f"{at}: expected x, y and theta from -{MAX_PLACE:g} to {MAX_PLACE:g}, found {x}, {y} "
            f"and {theta}",
        )
    # The comparison is negated, so that NaN is refused.
    if not deviation >= 0.0:
        raise OrderError(
            "validationError",
            f"{at}.allowedDeviationXY: expected at least 0, found {deviation}",
        )

    return Node(
        _field(row, "nodeId", str, where),
        _identifier(row, "sequenceId", where),
        _field(row, "released", bool, where),
        float(x),
        float(y),
        # States must give headings within ±π, whatever the order contains.
        None if theta is None else math.remainder(theta, 2.0 * math.pi),
        _field(place, "mapId", str, at)
        if place.get("mapId") is not None
        else DEFAULT_MAP,
        _actions_of(row, where),
        float(deviation),
    )


def _read_json(data: bytes) -> Any:
    try:
        return json.loads(data)
    # Deep nesting exhausts the stack of Python's parser.
    except (ValueError, RecursionError) as error:
        raise OrderError("validationError", f"not valid JSON: {error}"[:200]) from None


def parse_instant_actions(data: bytes) -> tuple[Action, ...]:
    """Return the actions in a message of the topic ``instantActions``.

    Parameters
    ----------
    data : bytes
        JSON in UTF-8. The caller limits its length.

    Raises
    ------
    OrderError
        The message is invalid; the error names the field.
    """
    actions = _listed_actions(_read_json(data), "instantActions")
    if len(actions) > MAX_ACTIONS:
        raise OrderError(
            "validationError",
            f"instantActions.actions: expected at most {MAX_ACTIONS}, "
            f"found {len(actions)}",
        )

    return actions


def parse_order(data: bytes) -> Order:
    """Return the order in a message.

    Parameters
    ----------
    data : bytes
        JSON in UTF-8. The caller limits its length.

    Returns
    -------
    Order
        Nodes in the order of the message, base first. Headings are within ±π.

    Raises
    ------
    OrderError
        The message is invalid; the error names the field.
    """
    table = _read_json(data)
    rows, edges = (
        _field(table, "nodes", list, "order"),
        _field(table, "edges", list, "order"),
    )
    if not 1 <= len(rows) <= MAX_NODES:
        raise OrderError(
            "validationError",
            f"order.nodes: expected 1 … {MAX_NODES}, found {len(rows)}",
        )

    # The specification lists nodes and edges separately. Their sequence numbers
    # alternate, which is checked below.
    if len(edges) != len(rows) - 1:
        raise OrderError(
            "validationError",
            f"order.edges: expected one fewer than the {len(rows)} nodes, found {len(edges)}",
        )

    nodes = [_node_of(row, f"order.nodes[{k}]") for k, row in enumerate(rows)]
    for k, row in enumerate(edges):
        released, sequence = (
            _field(row, "released", bool, f"order.edges[{k}]"),
            _identifier(row, "sequenceId", f"order.edges[{k}]"),
        )
        if (
            released != nodes[k + 1].released
            or sequence != nodes[k].sequence + 1
            or nodes[k + 1].sequence != sequence + 1
        ):
            raise OrderError(
                "validationError",
                f"order.edges[{k}]: expected a sequenceId between its two nodes, "
                "and released only if its end node is",
            )

    # The first node is where the AGV stands, so it must be released.
    if not nodes[0].released or any(
        b.released and not a.released for a, b in itertools.pairwise(nodes)
    ):
        raise OrderError(
            "validationError",
            "order.nodes: expected released nodes (the base) first, and the others after "
            "them, found another order",
        )

    # Actions of an edge are listed with the node that it leads to.
    before = ((), *(_actions_of(e, f"order.edges[{k}]") for k, e in enumerate(edges)))
    nodes = [
        # Copy only nodes with such actions, because orders may be long.
        replace(n, actions=more + n.actions) if more else n
        for n, more in zip(nodes, before, strict=True)
    ]

    names = tuple(
        str(_field(e, "edgeId", str, f"order.edges[{k}]")) for k, e in enumerate(edges)
    )
    return Order(
        _field(table, "orderId", str, "order"),
        _identifier(table, "orderUpdateId", "order"),
        tuple(nodes),
        names,
    )


def merge(old: Order, new: Order) -> Order:
    """Merge an update into an order (§6.6.4.3).

    The update starts with the last node of the base.

    Parameters
    ----------
    old : Order
        Active order. It is not changed.
    new : Order
        Update from the master control.

    Returns
    -------
    Order
        Base of the active order, and the nodes of the update after its first one; `old`
        itself for a repeated update.

    Raises
    ------
    OrderError
        The update does not continue the order.
    """
    if new.id != old.id:
        raise OrderError(
            "orderError",
            f"expected an update of the active order {shown(old.id)}, found order {shown(new.id)}",
        )

    # MQTT may deliver an update twice, or out of order.
    if new.update <= old.update:
        # QoS 1 delivers at least once, so a repeated update is valid.
        if new.update == old.update:
            return old
        raise OrderError(
            "orderUpdateError",
            f"expected an update after {old.update}, found {new.update}",
        )

    # An update replaces the horizon only: the AGV may already have driven the released
    # part.
    base = old.nodes[: old.released]
    last, first = base[-1], new.nodes[0]
    # Without a common node the AGV would have to drive a segment that no order
    # contains.
    if (first.id, first.sequence) != (last.id, last.sequence):
        raise OrderError(
            "orderUpdateError",
            f"expected to continue from node {last.id} ({last.sequence}), found "
            f"{first.id} ({first.sequence})",
        )

    if len(base) + len(new.nodes) - 1 > MAX_NODES:
        raise OrderError(
            "orderUpdateError",
            f"expected at most {MAX_NODES} nodes including earlier updates, "
            f"found {len(base) + len(new.nodes) - 1}",
        )

    # The update replaces the old horizon.
    return Order(
        old.id,
        new.update,
        (*base, *new.nodes[1:]),
        (*old.edges[: len(base) - 1], *new.edges),
    )


__all__ = [
    "Action",
    "Node",
    "Order",
    "OrderError",
    "merge",
    "parse_instant_actions",
    "parse_order",
]
