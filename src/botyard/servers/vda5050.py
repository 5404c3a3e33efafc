"""AGVs of VDA 5050 over MQTT (`botyard.interfaces.vda5050`): a client of the broker, whose thread hands orders to the loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from botyard.errors import PeerError, WorldError
from botyard.extras import lacking
from botyard.interfaces.vda5050 import Fleet, Message
from botyard.names import shown
from botyard.protocols.vda5050 import Vehicle5050
from botyard.servers.handover import Handover
from botyard.servers.throttledlog import ThrottledLog
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.task import Vehicle
from botyard.waits import telling

TICK_S: Final = 0.02
"""Wall time between two looks at the clock, s."""
MAX_PAYLOAD: Final = 4_000_000
"""Longest message, bytes; longer ones are dropped."""
MAX_ORDERS: Final = 4
"""Queue length of messages for an AGV; others are dropped, which their sender learns from the states."""

log = logging.getLogger("botyard.traffic")


class Inbox:
    """Messages of one topic on their way from the MQTT client's thread to the loop: few, and none that is too long.

    Parameters
    ----------
    take : callable
        Takes a message, in the loop.
    lost : callable
        Is told how many were not looked at, in the loop.
    """

    def __init__(self, take: Callable[[bytes], None], lost: Callable[[int], None]) -> None:
        self._take, self._tell_lost = take, lost
        self._messages: deque[bytes] = deque()
        self._lost = 0
        self._lock = threading.Lock()

    def put(self, payload: bytes, handover: Handover) -> None:
        """A message, in the thread."""
        with self._lock:
            if len(payload) > MAX_PAYLOAD or len(self._messages) >= MAX_ORDERS:
                self._lost += 1
                return
            self._messages.append(bytes(payload))
        handover.soon(self._next)

    def _next(self) -> None:
        with self._lock:
            data = self._messages.popleft() if self._messages else None
            lost, self._lost = self._lost, 0
        if lost:
            self._tell_lost(lost)
        if data is not None:
            self._take(data)


class MqttFleet:
    """AGVs at a broker.

    Parameters
    ----------
    names : sequence of Vehicle5050
        Who they are.
    vehicle : Vehicle
        Radius and motion of all of them.
    """

    def __init__(self, names: Sequence[Vehicle5050], vehicle: Vehicle) -> None:
        self._throttled_log = ThrottledLog(log, burst=20)
        self.fleet = Fleet(names, vehicle, lambda text: self._throttled_log.log(logging.WARNING, "%s", text))
        self._inboxes = {topic: self._inbox(topic) for topic in self.fleet.order_topics}
        self._client: Any = None
        self._is_in = asyncio.Event()
        """The broker has let us in."""

    def _inbox(self, topic: str) -> Inbox:
        def lost(count: int) -> None:
            self._throttled_log.log(logging.WARNING, "%s: %d messages were too long, or too many waited", topic, count)

        return Inbox(lambda data: self.fleet.receive(topic, data), lost)

    def _connect(self, host: str, port: int) -> None:
        try:
            from paho.mqtt import client as mqtt
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise WorldError(lacking("VDA 5050", "vda5050")) from None
        handover = Handover(asyncio.get_running_loop())
        client = self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.will_set(*self.fleet.last_will())

        def connected(_client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
            if reason.is_failure:
                log.warning("the MQTT broker refuses us: %s", reason)
                return
            for topic in self._inboxes:
                client.subscribe(topic, qos=1)
            handover.soon(self._let_in)

        def received(_client: Any, _data: Any, message: Any) -> None:
            inbox = self._inboxes.get(message.topic)
            if inbox is not None:
                inbox.put(message.payload, handover)

        client.on_connect, client.on_message = connected, received
        try:
            client.connect(host, port, keepalive=30)
        except OSError as error:
            raise PeerError(f"no MQTT broker at {host}:{port}: {error.strerror or error}") from None
        client.loop_start()

    def _let_in(self) -> None:
        self._send(self.fleet.online())
        self._is_in.set()

    def _send(self, messages: Iterable[Message], wait: float | None = None) -> None:
        """Publish; `wait`: time-out for the delivery of each message, s."""
        for message in messages:
            sent = self._client.publish(*message)
            if wait is not None:
                sent.wait_for_publish(wait)

    def _disconnect(self) -> None:
        self._send(self.fleet.offline(), wait=1.0)
        self._client.disconnect()
        self._client.loop_stop()

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
        stop, clock = stop or asyncio.Event(), asyncio.get_running_loop().time
        with telling(f"waiting for the MQTT broker at {shown(host)}:{port}", log.info):
            self._connect(host, port)
        try:
            with telling(f"{shown(host)}:{port} does not answer as an MQTT broker; it is waited for", log.warning):
                while not self._is_in.is_set() and not stop.is_set():
                    await asyncio.sleep(TICK_S)
            with telling(self._awaited(), log.info):
                while not self.fleet.has_orders and not stop.is_set():
                    self._send(self.fleet.states(clock()))
                    await asyncio.sleep(TICK_S)
            if stop.is_set():
                return None
            self.fleet.begin(clock(), speed)
            ending = None
            while ending is None and not stop.is_set():
                ending = self.fleet.advance(clock())
                self._send(self.fleet.states(clock()))
                await asyncio.sleep(TICK_S)
            self._send(self.fleet.states(clock(), last=True))
            return self.fleet.finish(ending or Ending.TIMEOUT)
        finally:
            self._disconnect()

    def _awaited(self) -> str:
        """What is waited for before anybody drives."""
        topics = self.fleet.order_topics
        more = " …" if len(topics) > 1 else ""
        return shown(f"waiting for an order for each of {len(topics)} AGVs: {topics[0]}{more}", 300)


__all__ = ["Inbox", "MqttFleet"]
