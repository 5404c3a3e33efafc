"""One AGV of VDA 5050: its order, its last state, and its position."""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from botyard.control.error_barrier import ErrorBarrier
from botyard.interfaces.vda5050.routes import (
    Route,
)
from botyard.names import shown
from botyard.numerics.elementary import atan2, hypot
from botyard.protocols.tokenbucket import TokenBucket
from botyard.protocols.vda5050.orders import (
    MAX_ACTIONS,
    Action,
    Node,
    Order,
    OrderError,
)
from botyard.protocols.vda5050.states import (
    ActionState,
    OrderTexts,
    Vehicle5050,
)
from botyard.traffic.engine import Traffic
from botyard.traffic.task import I8

AT_REST: Final = 1e-6
"""Greatest speed of an AGV that stands, m/s."""
NODE_DISTANCE: Final = 0.05
"""Distance from a node without an allowed deviation at which an AGV counts as on it, m."""


class Message(NamedTuple):
    """MQTT message to publish.

    Attributes
    ----------
    topic : str
        Topic of the AGV.
    payload : str
        JSON text.
    qos : int
        Quality of service of MQTT.
    retain : bool
        Whether the broker keeps the message for new subscribers.
    """

    topic: str
    payload: str
    qos: int = 0
    retain: bool = False


log = logging.getLogger("botyard.traffic")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """Change of an AGV's order or actions that a message causes.

    Attributes
    ----------
    agv : int
        Index of the AGV.
    error : OrderError or None
        Reason why the message is refused.
    order, texts
        The new order, and its encoded parts for state messages.
    course, route
        Course: all nodes that the AGV has driven and will drive, as one order, with the
        nodes of canceled orders. Route: the path over these nodes.
    first : int
        Index of the order's first node in the course.
    actions : tuple of Action
        Instant actions.
    pairs : dict of (int, int) to (m, 2) arrays
        Conflicting sectors of the new route and the routes of other AGVs, by the
        indices of the two AGVs, the lower index first.
    traffic : Traffic or None
        Traffic run that includes the new route; None if no run has started or the route
        is unchanged.
    """

    agv: int
    error: OrderError | None = None
    order: Order | None = None
    course: Order | None = None
    first: int = 0
    route: Route | None = None
    texts: OrderTexts | None = None
    actions: tuple[Action, ...] = ()
    pairs: dict[tuple[int, int], I8] | None = None
    traffic: Traffic | None = None


class Agv:
    """State of one AGV: its identity, its order, and the state that it sent last.

    Parameters
    ----------
    name : Vehicle5050
        Manufacturer and serial number.
    state_rate : float
        Limit of the bytes of the AGV's state messages, bytes/s; bursts may have the
        bytes of one second.
    """

    def __init__(self, name: Vehicle5050, state_rate: float) -> None:
        self.name = name
        self.order: Order | None = None
        self.course: Order | None = None
        self.first = 0
        self.is_canceled = False
        """Whether the order of the AGV is canceled, and no new order has arrived."""
        self.cancels: Action | None = None
        """Running action cancelOrder, for which the AGV comes to a stop; None without one."""
        self.instant: tuple[ActionState, ...] = ()
        self.route: Route | None = None
        self.texts: OrderTexts | None = None
        self.errors: tuple[OrderError, ...] = ()
        self.headers = 0
        self.last_state: object = None
        self.last_sent = -math.inf
        self.state_bytes = TokenBucket(state_rate, state_rate, 0.0)
        self.permitted = 0
        self.barrier = ErrorBarrier(log, f"AGV {name.serial}")

    def note(self, action: Action, status: str, result: str = "") -> None:
        """Set the state of an instant action; the oldest actions are forgotten.

        Parameters
        ----------
        action : Action
            Instant action. Its state replaces an earlier one with the same id.
        status : str
            State of VDA 5050, such as ``RUNNING``, ``FINISHED`` or ``FAILED``.
        result : str
            Description of the result.
        """
        states = {s.action.id: s for s in self.instant}
        states[action.id] = ActionState(action, status, result)
        # Keep the running cancelOrder, and at most MAX_ACTIONS other actions.
        left_out = [s.action.id for s in states.values() if s.status != "RUNNING"]
        for name in left_out[:-MAX_ACTIONS]:
            del states[name]
        self.instant = tuple(states.values())

    def number(self) -> int:
        """Return the header id of the AGV's next message."""
        self.headers += 1
        return self.headers

    def connection(self, state: str) -> Message:
        """Return the connection message of the AGV.

        Parameters
        ----------
        state : str
            ``ONLINE``, ``OFFLINE`` or ``CONNECTIONBROKEN``.
        """
        return self._connection(self.number(), state)

    def last_will(self) -> Message:
        """Return the MQTT last will of the AGV."""
        return self._connection(0, "CONNECTIONBROKEN")

    def _connection(self, number: int, state: str) -> Message:
        text = json.dumps(self.name.connection(number, state))
        return Message(self.name.topic("connection"), text, qos=1, retain=True)


def reached(agv: Agv, place: float) -> int:
    """Return how many nodes of its order an AGV has reached.

    Parameters
    ----------
    agv : Agv
        The AGV.
    place : float
        Distance of the AGV along its path, m. The path also has the nodes of canceled
        orders, which do not count.

    Returns
    -------
    int
        Number of nodes; 0 without an order.
    """
    if agv.route is None:
        return 0
    # The tolerance, 1e-6 m, counts a node as passed when a robot rests on it.
    passed = np.searchsorted(agv.route.path.along, place + 1e-6, side="right")
    return int(passed) - agv.first


def is_at_end(agv: Agv, place: float) -> bool:
    """Return whether an AGV has reached the last node of its order.

    Parameters
    ----------
    agv : Agv
        The AGV; without an order it is at its end.
    place : float
        Distance of the AGV along its path, m.
    """
    return agv.order is None or reached(agv, place) == len(agv.order.nodes)


def start_of(order: Order, last: int) -> Order:
    """Return the part of an order up to a node.

    Parameters
    ----------
    order : Order
        The order.
    last : int
        Index of the last node to keep.
    """
    return replace(order, nodes=order.nodes[: last + 1], edges=order.edges[:last])


def check_start(here: Node, order: Order) -> None:
    """Check that an AGV on a node stands on the first node of an order (VDA 5050, §6.6.1).

    Parameters
    ----------
    here : Node
        Node on which the AGV stands.
    order : Order
        New order.

    Raises
    ------
    OrderError
        The AGV does not stand on the first node.
    """
    first = order.nodes[0]
    limit = max(first.deviation, NODE_DISTANCE)
    away = hypot(here.x - first.x, here.y - first.y)
    if away > limit or first.map != here.map:
        raise OrderError(
            "orderError",
            f"order.nodes[0]: expected a node at most {limit:g} m from the AGV at "
            f"({here.x:g}, {here.y:g}) on map {shown(here.map)}, found "
            f"({first.x:g}, {first.y:g}) on map {shown(first.map)}",
        )


def pose_of(agv: Agv, place: float) -> tuple[float, float, float]:
    """Return the pose of an AGV at a distance along its path.

    Parameters
    ----------
    agv : Agv
        The AGV.
    place : float
        Distance along its path, m.

    Returns
    -------
    (float, float, float)
        Pose in the frame of the map, m, m, rad: the heading is along the path. Zeros
        without an order.
    """
    # An AGV has a position only after its first order.
    if agv.route is None:
        return 0.0, 0.0, 0.0
    # The heading follows from a second point 1 cm ahead.
    (x, y), (ax, ay) = agv.route.path.at(np.array([place, place + 0.01])).tolist()
    return x, y, atan2(ay - y, ax - x)


__all__ = [
    "AT_REST",
    "Agv",
    "Change",
    "Message",
    "check_start",
    "is_at_end",
    "pose_of",
    "reached",
    "start_of",
]
