"""Robots on paths as AGVs of VDA 5050, over MQTT: their master control sends orders, and extends the base of nodes that are released.

A node is reached when the middle of the disk is over it. So the sector behind node k begins a radius after it: a robot that may not enter
it comes to rest with its middle exactly over the node.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from botyard.control.fence import Fence
from botyard.errors import PeerError, WorldError
from botyard.extras import lacking
from botyard.names import shown
from botyard.protocols.vda5050 import Order, OrderError, Vehicle5050, merge, parse_order, state_message
from botyard.servers.handover import Handover
from botyard.servers.seldom import Seldom
from botyard.traffic.engine import Rules, Traffic
from botyard.traffic.geometry import conflicts_of
from botyard.traffic.kernels import events as k
from botyard.traffic.motion import Path2
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.supervisors.base import Policy, Supervisor
from botyard.traffic.task import Task, Vehicle
from botyard.waits import telling

TICK: Final = 0.02
"""Wall time between two looks at the clock, s."""
SAY: Final = 5.0
"""States are sent when something has changed, and at least this often, s of the wall."""
MAX_PAYLOAD: Final = 4_000_000
"""Longer messages are not looked at, bytes."""
MAX_ORDERS: Final = 4
"""So many messages for an AGV may wait; others are lost, which their sender learns from the states."""
_ERRORS: Final = 10

log = logging.getLogger("botyard.traffic")


class _Orders(Supervisor):
    """The permissions come with the orders."""

    def policy(self) -> Policy:
        """See the base class: nothing is granted from here."""
        return Policy(kind=k.NOBODY)


def task_of_orders(orders: Sequence[Order], vehicle: Vehicle) -> Task:
    """The task of orders: one sector for each edge.

    Raises
    ------
    WorldError
        An edge is not longer than the radius; an order has one node.
    """
    paths, ends = [], []
    for i, order in enumerate(orders):
        path = np.array([(n.x, n.y) for n in order.nodes], np.float64)
        if len(path) < 2 or (np.hypot(*np.diff(path, axis=0).T) <= vehicle.radius).any():
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
    """One AGV: who it is, its order, and what it has said."""

    def __init__(self, name: Vehicle5050) -> None:
        self.name = name
        self.order: Order | None = None
        self.errors: list[OrderError] = []
        self.headers = 0
        self.said: object = None
        self.said_at = -math.inf
        self.permitted = 0
        self.fence = Fence(log, f"AGV {name.serial}")
        self.lost = 0
        """Messages that were not looked at: too long, or too many waited."""
        self._orders: deque[bytes] = deque()
        self._lock = threading.Lock()

    def come(self, payload: bytes, handover: Handover, look: Callable[[_Agv], None]) -> None:
        """An order, in the thread of the MQTT client; `look` is called in the loop."""
        with self._lock:
            if len(payload) > MAX_PAYLOAD or len(self._orders) >= MAX_ORDERS:
                self.lost += 1
                return
            self._orders.append(bytes(payload))
        handover.soon(look, self)

    def next_order(self) -> bytes | None:
        """The oldest order that waits."""
        with self._lock:
            return self._orders.popleft() if self._orders else None

    def number(self) -> int:
        """Of the next message."""
        self.headers += 1
        return self.headers


class MqttFleet:
    """The AGVs.

    Parameters
    ----------
    names : sequence of Vehicle5050
        Who they are.
    vehicle : Vehicle
        Radius and motion of all of them.
    """

    def __init__(self, names: Sequence[Vehicle5050], vehicle: Vehicle) -> None:
        self._agvs = [_Agv(n) for n in names]
        self._vehicle = vehicle
        self._traffic: Traffic | None = None
        self._task: Task | None = None
        self._client: Any = None
        self._is_in = threading.Event()
        """The broker has let us in."""
        self._seldom = Seldom(log, burst=20)

    # -- MQTT

    def _connect(self, host: str, port: int) -> None:
        try:
            from paho.mqtt import client as mqtt
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise WorldError(lacking("VDA 5050", "vda5050")) from None
        handover = Handover(asyncio.get_running_loop())
        client = self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        lost = self._agvs[0].name  # a client has one last will
        client.will_set(
            lost.topic("connection"), json.dumps(lost.connection(0, "CONNECTIONBROKEN")), qos=1, retain=True
        )
        index = {a.name.topic("order"): i for i, a in enumerate(self._agvs)}

        def connected(_client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
            if reason.is_failure:
                log.warning("the MQTT broker refuses us: %s", reason)
                return
            for topic in index:
                client.subscribe(topic, qos=1)
            for agv in self._agvs:
                client.publish(
                    agv.name.topic("connection"),
                    json.dumps(agv.name.connection(agv.number(), "ONLINE")),
                    qos=1,
                    retain=True,
                )
            self._is_in.set()

        def received(_client: Any, _data: Any, message: Any) -> None:
            if message.topic in index:
                self._agvs[index[message.topic]].come(message.payload, handover, self._look)

        client.on_connect, client.on_message = connected, received
        try:
            client.connect(host, port, keepalive=30)
        except OSError as error:
            raise PeerError(f"no MQTT broker at {host}:{port}: {error.strerror or error}") from None
        client.loop_start()

    def _disconnect(self) -> None:
        for agv in self._agvs:
            sent = self._client.publish(
                agv.name.topic("connection"),
                json.dumps(agv.name.connection(agv.number(), "OFFLINE")),
                qos=1,
                retain=True,
            )
            sent.wait_for_publish(1.0)
        self._client.disconnect()
        self._client.loop_stop()

    # -- orders

    def _look(self, agv: _Agv) -> None:
        """Orders wait for an AGV: take the oldest."""
        data = agv.next_order()
        if agv.lost:
            self._seldom.log(
                logging.WARNING, "%s: %d messages were too long, or too many waited", agv.name.serial, agv.lost
            )
            agv.lost = 0
        if data is not None:
            self.take(self._agvs.index(agv), data)

    def take(self, i: int, data: bytes) -> None:
        """An order, or an update of one, has come for AGV i."""
        self._agvs[i].fence.run(self._take, i, data)

    def _take(self, i: int, data: bytes) -> None:
        agv = self._agvs[i]
        try:
            order = parse_order(data)
            agv.order = order if agv.order is None else merge(agv.order, order)
            if self._task is not None and len(agv.order.nodes) - 1 != len(self._task.vehicles[i].ends):
                raise OrderError("orderUpdateError", "the horizon of an order that is being driven cannot change here")
            agv.errors = []
        except OrderError as error:
            self._seldom.log(logging.WARNING, "%s: %s", agv.name.serial, error)
            agv.errors = [*agv.errors[-_ERRORS:], error]
        self._permit(i)

    def _permit(self, i: int) -> None:
        """Let an AGV drive as far as its base reaches."""
        agv = self._agvs[i]
        if self._traffic is None or agv.order is None:
            return
        while agv.permitted < agv.order.released - 2:
            agv.permitted += 1
            self._traffic.permit(i)

    # -- the run

    async def run(
        self, host: str, port: int, *, speed: float = 1.0, stop: asyncio.Event | None = None
    ) -> Outcome | None:
        """Wait for an order for each AGV, then drive, in real time, until all have ended or `stop` is set. None: stopped before.

        Raises
        ------
        WorldError
            The extra is not installed; orders that cannot be driven.
        PeerError
            There is no broker.
        """
        stop = stop or asyncio.Event()
        with telling(f"waiting for the MQTT broker at {shown(host)}:{port}", log.info):
            self._connect(host, port)
        try:
            with telling(f"{shown(host)}:{port} does not answer as an MQTT broker; it is waited for", log.warning):
                while not self._is_in.is_set() and not stop.is_set():
                    await asyncio.sleep(TICK)
            with telling(self._awaited(), log.info):
                while any(a.order is None for a in self._agvs) and not stop.is_set():
                    self._say(0.0)
                    await asyncio.sleep(TICK)
            if stop.is_set():
                return None
            return await self._drive(speed, stop)
        finally:
            self._disconnect()

    def _awaited(self) -> str:
        """What is waited for before anybody drives."""
        first, count = self._agvs[0].name.topic("order"), len(self._agvs)
        return shown(f"waiting for an order for each of {count} AGVs: {first}{' …' if count > 1 else ''}", 300)

    async def _drive(self, speed: float, stop: asyncio.Event) -> Outcome:
        loop = asyncio.get_running_loop()
        task = self._task = task_of_orders([a.order for a in self._agvs if a.order is not None], self._vehicle)
        traffic = self._traffic = Traffic(task, _Orders(), Rules(stop_at_end=True))
        traffic.start()
        for i in range(len(self._agvs)):
            self._permit(i)
        begin, ending = loop.time(), None
        while ending is None and not stop.is_set():
            now = (loop.time() - begin) * speed
            ending = traffic.advance(now)
            self._say(now)
            await asyncio.sleep(TICK)
        self._say((loop.time() - begin) * speed, last=True)
        return traffic.finish(ending or Ending.TIMEOUT)

    def _say(self, t: float, last: bool = False) -> None:
        """Send the states that have changed."""
        wall = asyncio.get_running_loop().time()
        places, speeds = np.zeros(len(self._agvs)), np.zeros(len(self._agvs))
        if self._traffic is not None:
            k.places(self._traffic.world, t, places, speeds)
        for i, agv in enumerate(self._agvs):
            agv.fence.run(self._say_one, i, float(places[i]), float(speeds[i]), last, wall)

    def _say_one(self, i: int, place: float, speed: float, last: bool, wall: float) -> None:
        """Send the state of AGV i, if it has changed or is old."""
        agv = self._agvs[i]
        passed, pose = self._where(i, place)
        what = (passed, speed > 1e-6, agv.order, tuple(map(str, agv.errors)), last)
        if what == agv.said and wall < agv.said_at + SAY:
            return
        agv.said, agv.said_at = what, wall
        message = state_message(agv.name, agv.number(), agv.order, passed, pose, speed, agv.errors)
        self._client.publish(agv.name.topic("state"), json.dumps(message))

    def _where(self, i: int, place: float) -> tuple[int, tuple[float, float, float]]:
        """How many nodes an AGV has reached, and its pose."""
        order = self._agvs[i].order
        if order is None:
            return 0, (0.0, 0.0, 0.0)
        if len(order.nodes) < 2:
            return 1, (order.nodes[0].x, order.nodes[0].y, 0.0)
        path = Path2(np.array([(n.x, n.y) for n in order.nodes], np.float64))
        (x, y), (ax, ay) = path.at(np.array([place, place + 0.01])).tolist()
        return int(np.searchsorted(path.along, place + 1e-6, side="right")), (x, y, math.atan2(ay - y, ax - x))


__all__ = ["MqttFleet", "task_of_orders"]
