"""AGVs of VDA 5050 over MQTT (`botyard.interfaces.vda5050`).

Each AGV is a client of the broker, because a client has only one last will. The
clients' threads add orders and instant actions to inboxes. Another thread checks them,
one by one, while the event loop advances the AGVs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from botyard.errors import PeerError, WorldError
from botyard.extras import lacking
from botyard.interfaces.vda5050 import Fleet, Message
from botyard.names import shown
from botyard.processes.slow_notice import telling
from botyard.protocols.vda5050.orders import OrderError
from botyard.protocols.vda5050.states import Vehicle5050
from botyard.servers.handover import Handover
from botyard.servers.throttledlog import ThrottledLog
from botyard.traffic.outcome import Ending, Outcome
from botyard.traffic.task import Vehicle

TICK_S: Final = 0.02
"""Wall time between two updates, s."""
MAX_PAYLOAD: Final = 4_000_000
"""Maximum length of an order, bytes; longer ones are dropped."""
MAX_ACTIONS_PAYLOAD: Final = 100_000
"""Maximum length of a message of instant actions, bytes; longer ones are dropped."""
MAX_ORDERS: Final = 4
"""Length of each of an AGV's queues of messages.

Further ones are dropped, and the AGV's state reports an error.
"""
OFFLINE_WAIT_S: Final = 2.0
"""Longest wait for the delivery of the final connection messages, s."""

log = logging.getLogger("botyard.traffic")


class Inbox:
    """Bounded queue of the messages of one topic, from the MQTT client's thread to the loop.

    Parameters
    ----------
    lost : callable
        Called in the event loop with the number of dropped messages.
    limit : int
        Maximum length of a message, bytes.
    """

    def __init__(self, lost: Callable[[int], None], limit: int) -> None:
        self._tell_lost = lost
        self._limit = limit
        self._messages: deque[bytes] = deque()
        self._lost = 0
        self._lock = threading.Lock()

    def put(self, payload: bytes) -> None:
        """Add a message, in the client's thread.

        A message that is too long, or that arrives while `MAX_ORDERS` wait, is dropped
        and counted.

        Parameters
        ----------
        payload : bytes
            Message as JSON text in UTF-8.
        """
        with self._lock:
            if len(payload) > self._limit or len(self._messages) >= MAX_ORDERS:
                self._lost += 1
            else:
                self._messages.append(bytes(payload))

    def next(self) -> bytes | None:
        """Return the oldest message, in the event loop; None if the queue is empty."""
        with self._lock:
            data = self._messages.popleft() if self._messages else None
            lost, self._lost = self._lost, 0

        if lost:
            self._tell_lost(lost)
        return data


class MqttFleet:
    """AGVs at an MQTT broker.

    Parameters
    ----------
    names : sequence of Vehicle5050
        Identities of the AGVs.
    vehicle : Vehicle
        Radius and motion of all AGVs.
    """

    def __init__(self, names: Sequence[Vehicle5050], vehicle: Vehicle) -> None:
        self._throttled_log = ThrottledLog(log, burst=20)
        self.fleet = Fleet(
            names,
            vehicle,
            lambda text: self._throttled_log.log(logging.WARNING, "%s", text),
        )
        orders = set(self.fleet.order_topics)
        limits = {
            topic: MAX_PAYLOAD if topic in orders else MAX_ACTIONS_PAYLOAD
            for topic in self.fleet.topics
        }
        self._inboxes = {
            topic: Inbox(partial(self._lost, topic, limit), limit)
            for topic, limit in limits.items()
        }
        self._clients: dict[str, Any] = {}
        """MQTT clients by the topic of an AGV without its last level."""
        self._numbers = {
            _agv_of(topic): i for i, topic in enumerate(self.fleet.order_topics)
        }
        self._leaving: dict[int, Any] = {}
        """Last state of each AGV that the MQTT client may still hold."""
        self._connected: set[int] = set()
        self._arrived = asyncio.Event()
        """Set when orders may wait in the inboxes."""

    def _lost(self, topic: str, limit: int, count: int) -> None:
        text = (
            f"dropped {count} messages: each was longer than {limit} bytes, or "
            f"{MAX_ORDERS} messages were already waiting"
        )
        self.fleet.refuse(topic, OrderError("orderError", text))

    def _connect(self, host: str, port: int, handover: Handover) -> None:
        """Connect all AGVs. This blocks, so it runs in a thread."""
        try:
            from paho.mqtt import client as mqtt
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise WorldError(lacking("VDA 5050", "vda5050")) from None

        for (agv, i), will in zip(
            self._numbers.items(), self.fleet.last_wills(), strict=True
        ):
            client = mqtt.Client(CallbackAPIVersion.VERSION2)

            # The broker publishes the last will if the connection is lost
            # (CONNECTIONBROKEN).
            client.will_set(*will)
            self._listen(client, i, agv, handover)
            try:
                # Keep-alive, s: after 1.5 times this silence the broker publishes the
                # last will (MQTT 3.1.1, section 3.1.2.10).
                client.connect(host, port, keepalive=30)
            except OSError as error:
                raise PeerError(
                    f"no MQTT broker at {host}:{port}: {error.strerror or error}"
                ) from None

            self._clients[agv] = client
            client.loop_start()

    def _listen(self, client: Any, i: int, agv: str, handover: Handover) -> None:
        inboxes = {t: box for t, box in self._inboxes.items() if _agv_of(t) == agv}

        def connected(
            _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any
        ) -> None:
            if reason.is_failure:
                self._throttled_log.log(
                    logging.WARNING,
                    "the MQTT broker refused the connection: %s",
                    reason,
                )
                return

            # Subscribe at each connection, because a new session has no subscriptions.
            client.subscribe([(topic, 1) for topic in inboxes])
            handover.soon(self._let_in, i)

        def received(_client: Any, _data: Any, message: Any) -> None:
            # The broker is not trusted to deliver only the subscribed topics.
            if (inbox := inboxes.get(message.topic)) is not None:
                inbox.put(message.payload)
                handover.soon(self._arrived.set)

        client.on_connect, client.on_message = connected, received

    def _let_in(self, i: int) -> None:
        # A new connection does not send messages of the previous one.
        self._leaving.pop(i, None)
        self._send([self.fleet.online(i)])
        self._connected.add(i)

    @property
    def _is_in(self) -> bool:
        """Whether the broker has accepted the connections of all AGVs."""
        return len(self._connected) == len(self._numbers)

    def _send(self, messages: Iterable[Message]) -> list[Any]:
        """Publish messages, each by the MQTT client of its AGV; return their delivery
        information.
        """
        return [
            client.publish(*message)
            for message in messages
            if (client := self._clients.get(_agv_of(message.topic))) is not None
        ]

    def _send_states(self, now: float, last: bool = False) -> None:
        """Publish the states that are due.

        The MQTT client buffers messages that the broker does not read, so at most one
        state of each AGV is in its buffer.
        """
        self._leaving = {
            i: sent for i, sent in self._leaving.items() if not _has_left(sent)
        }
        states = self.fleet.states(now, last, self._leaving)
        for message, sent in zip(states, self._send(states), strict=True):
            self._leaving[self._numbers[_agv_of(message.topic)]] = sent

    def _disconnect(self) -> None:
        """Disconnect all AGVs. This blocks for slightly more than `OFFLINE_WAIT_S`."""
        end = time.monotonic() + OFFLINE_WAIT_S
        # All messages share one deadline, not one each.
        for sent in self._send(self.fleet.offline()):
            # The broker has disconnected.
            with contextlib.suppress(RuntimeError, ValueError):
                sent.wait_for_publish(max(0.0, end - time.monotonic()))

        for client in self._clients.values():
            client.disconnect()
        for client in self._clients.values():
            client.loop_stop()

    async def run(
        self,
        host: str,
        port: int,
        *,
        speed: float = 1.0,
        stop: asyncio.Event | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Outcome | None:
        """Wait for an order for each AGV, then drive in real time.

        The run ends when all AGVs have finished, or when `stop` is set.

        Parameters
        ----------
        host, port : str, int
            Address of the broker.
        speed : float
            Speed as a multiple of real time.
        stop : asyncio.Event, optional
            Ends the run when it is set.
        clock : callable, optional
            Returns the time that the AGVs follow, s; by default wall time.

        Returns
        -------
        Outcome or None
            Result of the run; None if it was stopped before the start.

        Raises
        ------
        WorldError
            The extra is not installed.
        PeerError
            The broker cannot be reached.
        """
        stop, wall = stop or asyncio.Event(), asyncio.get_running_loop().time
        clock = clock or wall
        try:
            with telling(
                f"waiting for the MQTT broker at {shown(host)}:{port}", log.info
            ):
                await asyncio.to_thread(
                    self._connect, host, port, Handover(asyncio.get_running_loop())
                )

            with telling(
                f"{shown(host)}:{port} does not answer as an MQTT broker; waiting for it",
                log.warning,
            ):
                while not self._is_in and not stop.is_set():
                    await asyncio.sleep(TICK_S)

            worker = asyncio.create_task(self._take_orders(speed, clock))
            try:
                with telling(self._awaited(), log.info):
                    while not self.fleet.has_begun and not stop.is_set():
                        await self._tick(worker)

                if not self.fleet.has_begun:
                    return None
                ending = None
                while ending is None and not stop.is_set():
                    ending = self.fleet.advance(clock())
                    await self._tick(worker)
            finally:
                worker.cancel()

            self._send_states(wall(), last=True)
            return self.fleet.finish(ending or Ending.TIMEOUT)
        finally:
            await asyncio.to_thread(self._disconnect)

    async def _tick(self, worker: asyncio.Task[None]) -> None:
        """Send states that are due, and wait for the next update."""
        # `result` raises the exception of a failed task, which ends the run.
        if worker.done():
            worker.result()
        self._send_states(asyncio.get_running_loop().time())
        await asyncio.sleep(TICK_S)

    async def _take_orders(self, speed: float, clock: Callable[[], float]) -> None:
        """Process orders of all AGVs in turns; start the run when each AGV has one."""
        fleet = self.fleet
        while True:
            await self._arrived.wait()
            self._arrived.clear()

            for topic, inbox in self._inboxes.items():
                if (data := inbox.next()) is None:
                    continue
                self._arrived.set()
                # An order may have thousands of nodes; checking it must not delay the
                # other AGVs.
                fleet.take(await asyncio.to_thread(fleet.study, topic, data))
                if fleet.has_orders and not fleet.has_begun:
                    traffic = await asyncio.to_thread(fleet.prepare)
                    fleet.begin(clock(), speed, traffic)

    def _awaited(self) -> str:
        """Return the progress message for the wait before the start."""
        topics = self.fleet.order_topics
        more = " …" if len(topics) > 1 else ""
        return shown(
            f"waiting for an order for each of {len(topics)} AGVs: {topics[0]}{more}",
            300,
        )


def _has_left(sent: Any) -> bool:
    """Return whether the MQTT client no longer holds a message."""
    try:
        return bool(sent.is_published())
    # The message was never sent to the broker.
    except (RuntimeError, ValueError):
        return True


def _agv_of(topic: str) -> str:
    """Return the part of a topic that identifies the AGV."""
    return topic.rpartition("/")[0]


__all__ = ["Inbox", "MqttFleet"]
