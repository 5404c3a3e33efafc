"""`Fleet`: traffic robots as AGVs of VDA 5050. The master control sends orders, and extends the base (the released nodes).

A node is reached when the centre of the disk is over it. So the sector behind node k begins one radius after it: a robot that may not
enter the sector comes to rest with its centre exactly over the node.

Sans-I/O: messages are passed to `Fleet.receive`, messages to publish are returned, and time is an argument, s of wall time.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from botyard import elementwise
from botyard.control.fence import Fence
from botyard.elementary import atan2
from botyard.errors import WorldError
from botyard.protocols.vda5050 import Order, OrderError, Vehicle5050, merge, parse_order, state_message
from botyard.traffic.engine import Traffic
from botyard.traffic.geometry import conflicts_of
from botyard.traffic.kernels import events as k
from botyard.traffic.motion import Path2
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.base import Policy, Supervisor
from botyard.traffic.task import Task, Vehicle

STATE_PERIOD_S: Final = 5.0
"""Longest time between two states, s of wall time; changes are sent at once."""
MAX_ERRORS: Final = 10
"""Older errors of orders that an AGV's state lists beside the newest one."""

log = logging.getLogger("botyard.traffic")


class Message(NamedTuple):
    """MQTT message to publish: topic, JSON payload, quality of service, and whether the broker retains it."""

    topic: str
    payload: str
    qos: int = 0
    retain: bool = False


class _Orders(Supervisor):
    """Supervisor that grants nothing: permissions come with the orders."""

    def policy(self) -> Policy:
        """See the base class: nothing is granted from here."""
        return Policy(kind=k.NOBODY)


def task_of_orders(orders: Sequence[Order], vehicle: Vehicle) -> Task:
    """Make the task of orders: one sector for each edge.

    Raises
    ------
    WorldError
        An edge is not longer than the radius; an order has one node.
    """
    paths, ends = [], []
    for i, order in enumerate(orders):
        path = np.array([(n.x, n.y) for n in order.nodes], np.float64)
        if len(path) < 2 or (elementwise.hypot(*np.diff(path, axis=0).T) <= vehicle.radius).any():
            raise WorldError(
                f"order {order.id} of AGV {i}: expected edges longer than the radius of {vehicle.radius:g} m"
            )
        along = Path2(path).along
        paths.append(path)
        ends.append(np.append(along[1:-1] + vehicle.radius, along[-1]))
    breaks = [np.concatenate([[0.0], e]) for e in ends]
    listed = conflicts_of(paths, breaks, np.full(len(paths), vehicle.radius))
    made = tuple(
        Vehicle(
            ends=e, path=p, radius=vehicle.radius, velocity=vehicle.velocity, acceleration=vehicle.acceleration,
            deceleration=vehicle.deceleration,
        )
        for e, p in zip(ends, paths, strict=True)
    )  # fmt: skip
    return Task(made, listed, (), "orders")


class _Agv:
    """One AGV: its identity, its order, and the last state sent."""

    def __init__(self, name: Vehicle5050) -> None:
        self.name = name
        self.order: Order | None = None
        self.errors: list[OrderError] = []
        self.headers = 0
        self.last_state: object = None
        self.last_sent = -math.inf
        self.permitted = 0
        self.fence = Fence(log, f"AGV {name.serial}")

    def number(self) -> int:
        """Header id of the next message."""
        self.headers += 1
        return self.headers

    def connection(self, state: str) -> Message:
        """Make its connection message."""
        text = json.dumps(self.name.connection(self.number(), state))
        return Message(self.name.topic("connection"), text, qos=1, retain=True)


class Fleet:
    """The AGVs of a fleet.

    Parameters
    ----------
    names : sequence of Vehicle5050
        Identities of the AGVs.
    vehicle : Vehicle
        Radius and motion of all AGVs.
    warn : callable
        Logs orders that are rejected; the master control sees them as errors in the states.
    """

    def __init__(
        self, names: Sequence[Vehicle5050], vehicle: Vehicle, warn: Callable[[str], None] = log.warning
    ) -> None:
        self._agvs = [_Agv(n) for n in names]
        self._index = {a.name.topic("order"): i for i, a in enumerate(self._agvs)}
        self._vehicle = vehicle
        self._warn = warn
        self._traffic: Traffic | None = None
        self._task: Task | None = None
        self._begin, self._speed = 0.0, 1.0

    # -- the broker

    @property
    def order_topics(self) -> list[str]:
        """Topics to subscribe to."""
        return list(self._index)

    def last_will(self) -> Message:
        """MQTT last will, about the first AGV: a client has only one last will."""
        name = self._agvs[0].name
        return Message(name.topic("connection"), json.dumps(name.connection(0, "CONNECTIONBROKEN")), qos=1, retain=True)

    def online(self) -> list[Message]:
        """Connection messages when the fleet connects."""
        return [agv.connection("ONLINE") for agv in self._agvs]

    def offline(self) -> list[Message]:
        """Connection messages when the fleet disconnects."""
        return [agv.connection("OFFLINE") for agv in self._agvs]

    def receive(self, topic: str, payload: bytes) -> None:
        """Process a message; an invalid order only adds an error to the AGV's state."""
        i = self._index.get(topic)
        if i is not None:
            self._agvs[i].fence.run(self._take, i, payload)

    def _take(self, i: int, data: bytes) -> None:
        agv = self._agvs[i]
        try:
            order = parse_order(data)
            order = order if agv.order is None else merge(agv.order, order)
            if self._task is not None and len(order.nodes) - 1 != len(self._task.vehicles[i].ends):
                raise OrderError("orderUpdateError", "the horizon of an order that is being driven cannot change here")
            agv.order, agv.errors = order, []
        except OrderError as error:
            self._warn(f"{agv.name.serial}: {error}")
            agv.errors = [*agv.errors[-MAX_ERRORS:], error]
        self._permit(i)

    def _permit(self, i: int) -> None:
        """Give an AGV the permissions up to the end of its base."""
        agv = self._agvs[i]
        if self._traffic is None or agv.order is None:
            return
        while agv.permitted < agv.order.released - 2:
            agv.permitted += 1
            self._traffic.permit(i)

    # -- the run

    @property
    def has_orders(self) -> bool:
        """Whether each AGV has an order."""
        return all(a.order is not None for a in self._agvs)

    def begin(self, now: float, speed: float = 1.0) -> None:
        """Begin the run; `speed` is simulated per wall time.

        Raises
        ------
        WorldError
            The orders cannot be driven.
        """
        self._task = task_of_orders([a.order for a in self._agvs if a.order is not None], self._vehicle)
        self._traffic = Traffic(self._task, _Orders(), Rules(stop_at_end=True))
        self._begin, self._speed = now, speed
        self._traffic.start()
        for i in range(len(self._agvs)):
            self._permit(i)

    def advance(self, now: float) -> Ending | None:
        """Advance to the present wall time, s. Returns the ending, or None if the run goes on."""
        assert self._traffic is not None
        return self._traffic.advance((now - self._begin) * self._speed)

    def finish(self, why: Ending) -> Outcome:
        """Return the outcome."""
        assert self._traffic is not None
        return self._traffic.finish(why)

    def states(self, now: float, last: bool = False) -> list[Message]:
        """State messages that are due: changed ones, those older than `STATE_PERIOD_S`, and with `last` all."""
        places, speeds = np.zeros(len(self._agvs)), np.zeros(len(self._agvs))
        if self._traffic is not None:
            k.places(self._traffic.world, (now - self._begin) * self._speed, places, speeds)
        found: list[Message] = []
        for i, agv in enumerate(self._agvs):
            found += agv.fence.call(self._state, i, float(places[i]), float(speeds[i]), last, now, otherwise=())
        return found

    def _state(self, i: int, place: float, speed: float, last: bool, now: float) -> tuple[Message, ...]:
        agv = self._agvs[i]
        passed, pose = self._where(i, place)
        what = (passed, speed > 1e-6, agv.order, tuple(map(str, agv.errors)), last)
        if what == agv.last_state and now < agv.last_sent + STATE_PERIOD_S:
            return ()
        agv.last_state, agv.last_sent = what, now
        message: Any = state_message(agv.name, agv.number(), agv.order, passed, pose, speed, agv.errors)
        return (Message(agv.name.topic("state"), json.dumps(message)),)

    def _where(self, i: int, place: float) -> tuple[int, tuple[float, float, float]]:
        """Number of nodes that an AGV has reached, and its pose (m, m, rad)."""
        order = self._agvs[i].order
        if order is None:
            return 0, (0.0, 0.0, 0.0)
        if len(order.nodes) < 2:
            return 1, (order.nodes[0].x, order.nodes[0].y, 0.0)
        path = Path2(np.array([(n.x, n.y) for n in order.nodes], np.float64))
        (x, y), (ax, ay) = path.at(np.array([place, place + 0.01])).tolist()
        return int(np.searchsorted(path.along, place + 1e-6, side="right")), (x, y, atan2(ay - y, ax - x))


__all__ = ["MAX_ERRORS", "STATE_PERIOD_S", "Fleet", "Message", "task_of_orders"]
