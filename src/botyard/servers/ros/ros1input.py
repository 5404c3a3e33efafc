"""A topic that a node of ROS 1 listens to: a connection to each of its publishers,
whose addresses the master tells.

Whoever registers as a publisher names an address that is connected to. So they are few
for each topic, and few attempts are made at a time and a second; those that cannot be
heard make place for others of the same topic. What comes is decoded in the part of the
time that messages of all publishers get together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Any, Final, Protocol

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import BotyardError, PeerError
from botyard.interfaces.http_admission import source_of
from botyard.names import shown
from botyard.protocols.ros_messages.limits import MAX_INPUT
from botyard.protocols.ros_messages.robot import Input
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.tcpros import api
from botyard.protocols.tcpros.http import address
from botyard.protocols.tcpros.session import Subscription
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.ros.xmlrpc import CALL_TIMEOUT, Peer, call, connected
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TURN_TIME_S, TimeShare

MAX_PUBLISHERS: Final = 32
"""Most publishers of a topic that are connected at a time; the others wait."""
MAX_LISTED: Final = 1000
"""Most publishers of a topic that are remembered."""
ATTEMPTS: Final = 16
"""Concurrent connection attempts to publishers."""
ATTEMPT_RATE: Final = 100.0
"""Token bucket of connection attempts of all topics: rate, 1/s."""
MAX_RETRY_DELAY_S: Final = 5.0
"""Longest delay of the exponential back-off before a lost publisher is tried again, s.
"""
CHUNK: Final = 4096
"""Bytes that are decoded in one turn."""
SILENT_TIMEOUT_S: Final = 5.0
"""While others wait, a publisher that has been silent for this long, s, is disconnected
for one of them.
"""
SHARE: Final = 0.2
"""Share of time for messages of all publishers together."""

log = logging.getLogger("botyard.ros")


class Listener(Protocol):
    """The node that listens to a topic, as far as that needs it."""

    name: str
    uri: str
    inputs: dict[str, Subscriber]
    """All topics that it listens to, by name."""

    def tell(self, method: str, *args: Any) -> None:
        """Call the master in this node's name."""
        ...


class InputLimits:
    """Limits that all subscriptions share: processing time, and connection attempts."""

    def __init__(self) -> None:
        self.turns = TimeShare(SHARE)
        self.throttled_log = ThrottledLog(log, burst=20)
        self._attempts = asyncio.Semaphore(ATTEMPTS)
        self._rate: TokenBucket | None = None

    @contextlib.asynccontextmanager
    async def attempt(self) -> Any:
        """Something that reaches out to another machine."""
        async with self._attempts:
            loop = asyncio.get_running_loop()
            if self._rate is None:
                self._rate = TokenBucket(ATTEMPT_RATE, ATTEMPT_RATE, loop.time())
            while not self._rate.take(loop.time()):
                await asyncio.sleep(1.0 / ATTEMPT_RATE)
            yield


class Subscriber:
    """A subscription: a connection to each publisher of a topic.

    Parameters
    ----------
    node : Listener
        Who listens.
    entry : Input
        Takes messages.
    types : Types
        Message types.
    ears : InputLimits
        What all have in common.
    """

    def __init__(
        self, node: Listener, entry: Input, types: Types, ears: InputLimits
    ) -> None:
        self._node = node
        self._entry = entry
        self._types = types
        self._ears = ears
        self.name, self.type_name = entry.name, entry.type_name
        self.definition, self.md5 = types.definition(entry.type_name)
        self._fence = ErrorBarrier(log, f"taking a message of {entry.name}")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: deque[str] = deque()
        self._heard: dict[str, float] = {}
        """When each publisher that is heard has sent something last, s of the loop's
        clock.
        """
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def publishers(self) -> list[str]:
        """Addresses of the publishers that are heard, or tried."""
        return list(self._tasks)

    def update(self, uris: Any) -> None:
        """These are the publishers now; what is no address is passed over."""
        given = uris if isinstance(uris, list) else []
        wanted = {u: None for u in given[: 2 * MAX_LISTED] if _is_address(u)}
        if len(wanted) < len(given):
            self._ears.throttled_log.log(
                logging.WARNING,
                "ROS 1: %s: %d of %d publishers have no address",
                self.name,
                len(given) - len(wanted),
                len(given),
            )

        for uri in [u for u in self._tasks if u not in wanted]:
            self._tasks.pop(uri).cancel()
        self._heard = {u: t for u, t in self._heard.items() if u in wanted}
        self._waiting = deque([u for u in wanted if u not in self._tasks][:MAX_LISTED])
        self._fill()

    def _fill(self) -> None:
        while self._waiting and len(self._tasks) < MAX_PUBLISHERS:
            uri = self._waiting.popleft()
            self._heard[uri] = asyncio.get_running_loop().time()
            self._tasks[uri] = asyncio.ensure_future(self._listen(uri))

        if self._waiting and self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(
                SILENT_TIMEOUT_S / 2, self._rotate
            )

    def _rotate(self) -> None:
        """Others wait: those who have been silent for long make place for them, and
        wait themselves.
        """
        self._sweep = None
        now = asyncio.get_running_loop().time()
        silent = [
            uri
            for uri in self._tasks
            if now - self._heard.get(uri, now) > SILENT_TIMEOUT_S
        ]
        for uri in silent[: len(self._waiting)]:
            self._tasks.pop(uri).cancel()
            self._waiting.append(uri)

        self._fill()

    async def _listen(self, uri: str) -> None:
        """Listen to one publisher for as long as the master names it; one that cannot
        be heard makes place for those who wait.
        """
        pause = 0.1
        while True:
            try:
                await self._receive(uri)
                pause = 0.1
            except (PeerError, OSError, TimeoutError, UnicodeError) as error:
                self._ears.throttled_log.log(
                    logging.WARNING,
                    "ROS 1: %s: %s",
                    self.name,
                    shown(error, api.MAX_TEXT),
                )

            await asyncio.sleep(pause)
            pause = min(2.0 * pause, MAX_RETRY_DELAY_S)
            if self._waiting:
                del self._tasks[uri]
                self._waiting.append(uri)
                self._fill()
                return

    async def _receive(self, uri: str) -> None:
        async with self._ears.attempt():
            code, status, protocol = api.answer(
                await call(
                    uri, "requestTopic", self._node.name, self.name, [["TCPROS"]]
                )
            )
            host, port = _where(uri, code, status, protocol)
            async with asyncio.timeout(CALL_TIMEOUT):
                reader, writer = await connected(host, port)

        limit = self._entry.limit
        session = Subscription(
            self._node.name, self.name, self.type_name, self.md5, self.definition, limit
        )
        source = source_of(Peer.of(writer.transport).address)
        try:
            writer.write(session.hello)
            async with asyncio.timeout(None) as patience:
                patience.reschedule(asyncio.get_running_loop().time() + CALL_TIMEOUT)
                while data := await reader.read(
                    CHUNK if limit <= MAX_INPUT else 16 * CHUNK
                ):
                    self._heard[uri] = asyncio.get_running_loop().time()
                    await self._work_off(session, data, source)
                    if session.is_accepted:
                        patience.reschedule(None)
        finally:
            writer.transport.abort()

    async def _work_off(self, session: Subscription, data: bytes, source: str) -> None:
        """Take messages in the time that there is for them, a while at a time: any of
        them may let the world make steps.
        """
        now, turns = asyncio.get_running_loop().time, self._ears.turns
        await turns.admit(source)
        begin, cost = now(), turns.clock()
        for n, body in enumerate(session.receive_data(data)):
            if n and now() - begin > TURN_TIME_S:
                turns.spend(turns.clock() - cost)
                await asyncio.sleep(0)
                await turns.admit(source)
                begin, cost = now(), turns.clock()

            self._take(body, session.caller)

        turns.spend(turns.clock() - cost)

    def _take(self, body: bytes, caller: str) -> None:
        self._fence.run(self._decode, body, caller)

    def _decode(self, body: bytes, caller: str) -> None:
        try:
            self._entry.take(self._types.decode_ros1(body, self.type_name))
        except BotyardError as error:
            self._ears.throttled_log.log(
                logging.WARNING,
                "ROS 1: %s from %s: %s",
                self.name,
                caller,
                shown(error, api.MAX_TEXT),
            )

    def close(self) -> None:
        """Close the subscription."""
        self.update([])
        if self._sweep is not None:
            self._sweep.cancel()
        self._node.inputs.pop(self.name, None)
        self._node.tell("unregisterSubscriber", self.name, self._node.uri)

    def register(self) -> tuple[Any, ...]:
        """The call that makes it known."""
        return "registerSubscriber", self.name, self.type_name, self._node.uri


def _is_address(uri: object) -> bool:
    try:
        address(uri)  # type: ignore[arg-type]
    except PeerError:
        return False

    return True


def _where(uri: str, code: int, status: str, protocol: Any) -> tuple[str, int]:
    """Host and port of a publisher, by its answer to ``requestTopic``.

    Raises
    ------
    PeerError
        It does not publish the topic, or the answer is none.
    """
    if code != 1:
        raise PeerError(f"{uri} does not publish it: {status}")
    match protocol:
        case ["TCPROS", str(host), int(port), *_] if (
            0 < len(host) <= api.MAX_NAME and 0 < port < 65536
        ):
            return host, port

    raise PeerError(
        f"{uri}: expected TCPROS, a host and a port, found {shown(protocol, 100)}"
    )


__all__ = ["InputLimits", "Subscriber"]
