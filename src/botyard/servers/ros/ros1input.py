"""Subscriber of a ROS 1 topic: a connection to each publisher that the master lists.

Each registered publisher names an address to connect to, so a malicious one could aim
connections at a victim. Therefore connections for each topic, concurrent attempts and
the rate of attempts are limited. A publisher that cannot be reached is replaced by
another publisher of the topic. Messages are decoded within the share of time of all
publishers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass
from typing import Any, Final, Protocol

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import BotyardError, PeerError
from botyard.interfaces.http_admission import source_of
from botyard.names import shown
from botyard.protocols.ros_messages.graphoffers import Input
from botyard.protocols.ros_messages.limits import MAX_INPUT
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.tcpros import api
from botyard.protocols.tcpros.http import address
from botyard.protocols.tcpros.session import Subscription
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.ros.xmlrpc import CALL_TIMEOUT, call, connected
from botyard.servers.streampeer import Peer
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TURN_TIME_S, TimeShare

MAX_PUBLISHERS: Final = 32
"""Maximum number of connected publishers of a topic; the others wait."""
MAX_LISTED: Final = 1000
"""Maximum number of publishers of a topic to remember."""
ATTEMPTS: Final = 16
"""Maximum number of concurrent connection attempts to publishers."""
ATTEMPT_RATE: Final = 100.0
"""Token bucket of connection attempts of all topics: rate, 1/s."""
MAX_RETRY_DELAY_S: Final = 5.0
"""Maximum delay of the exponential back-off before a publisher is tried again, s."""
CHUNK: Final = 4096
"""Number of bytes to read and decode at once."""
SILENT_TIMEOUT_S: Final = 5.0
"""Silence after which a publisher is replaced by a waiting one, s."""
SHARE: Final = 0.2
"""Share of time for messages of all publishers together."""

log = logging.getLogger("botyard.ros")


class Listener(Protocol):
    """Node that subscribes to a topic: the methods that a subscriber needs."""

    name: str
    uri: str
    inputs: dict[str, Subscriber]
    """All subscribers of the node, by topic."""

    def call_master(self, method: str, *args: Any) -> None:
        """Call the master in this node's name.

        Parameters
        ----------
        method : str
            Method of the master, such as ``registerSubscriber``.
        *args : object
            Arguments after the caller's name.
        """
        ...


class InputLimits:
    """Limits of processing time and connection attempts of all subscriptions."""

    def __init__(self) -> None:
        self.turns = TimeShare(SHARE)
        self.throttled_log = ThrottledLog(log, burst=20)
        self._attempts = asyncio.Semaphore(ATTEMPTS)
        self._rate = TokenBucket(ATTEMPT_RATE, ATTEMPT_RATE)

    @contextlib.asynccontextmanager
    async def attempt(self) -> Any:
        """Context of a connection attempt to another machine; it waits for its turn."""
        async with self._attempts:
            loop = asyncio.get_running_loop()
            while not self._rate.take(loop.time()):
                await asyncio.sleep(1.0 / ATTEMPT_RATE)
            yield


@dataclass(frozen=True, slots=True)
class PublisherLine:
    """Open connection to a publisher, as the list of clients shows it to operators."""

    session: Subscription
    peer: Peer
    socket: Any
    dropped: int = 0

    @property
    def caller(self) -> str:
        """Name of the node that publishes."""
        return self.session.caller


class Subscriber:
    """Subscription with a connection to each publisher of a topic.

    Parameters
    ----------
    node : Listener
        Node that subscribes.
    entry : Input
        Handler of the messages.
    types : Types
        Message types that decode the topic's messages.
    ears : InputLimits
        Limits that all subscriptions share.
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
        self._barrier = ErrorBarrier(log, f"processing a message of {entry.name}")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: deque[str] = deque()
        self.lines: dict[str, PublisherLine] = {}
        """Open connections by the URI of the publisher."""
        self._heard: dict[str, float] = {}
        """Time of the last data from each active publisher, s of the loop's clock."""
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def publishers(self) -> list[str]:
        """URIs of the publishers that are connected or being tried."""
        return list(self._tasks)

    def update(self, uris: Any) -> None:
        """Set the list of publishers.

        Connections to publishers that are not in it are closed.

        Parameters
        ----------
        uris : object
            Answer of the master: a list of URIs if it is valid. Entries that are not
            valid addresses are ignored, and so are entries after `MAX_LISTED`.
        """
        given = uris if isinstance(uris, list) else []
        # A dictionary keeps the order and removes duplicates; the slice bounds the
        # work.
        wanted = {u: None for u in given[: 2 * MAX_LISTED] if _is_address(u)}
        if len(wanted) < len(given):
            self._ears.throttled_log.log(
                logging.WARNING,
                "ROS 1: %s: %d of %d publishers have no valid address",
                self.name,
                len(given) - len(wanted),
                len(given),
            )

        # Cancel connections to publishers that have unregistered.
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
        """Replace silent publishers by publishers that wait for a connection."""
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
        """Receive from one publisher for as long as the master lists it.

        A publisher that cannot be reached is replaced by a waiting one.
        """
        # Delay before the next attempt, s. Each connection that has worked resets it.
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
            # Use an exponential back-off, as roscpp does.
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
        peer = Peer.of(writer.transport)
        source = source_of(peer.address)
        self.lines[uri] = PublisherLine(
            session, peer, writer.transport.get_extra_info("socket")
        )

        try:
            writer.write(session.hello)
            async with asyncio.timeout(None) as patience:
                patience.reschedule(asyncio.get_running_loop().time() + CALL_TIMEOUT)

                while data := await reader.read(
                    # Topics with large messages, such as maps, need fewer and larger
                    # reads.
                    CHUNK if limit <= MAX_INPUT else 16 * CHUNK
                ):
                    self._heard[uri] = asyncio.get_running_loop().time()
                    await self._work_off(session, data, source)
                    if session.is_accepted:
                        # An accepted publisher may be silent for any time; `_rotate`
                        # handles it.
                        patience.reschedule(None)
        finally:
            self.lines.pop(uri, None)
            writer.transport.abort()

    async def _work_off(self, session: Subscription, data: bytes, source: str) -> None:
        """Process messages within the share of time, in short slices.

        The event loop runs between the slices, because each message may cause steps of the world.

        Parameters
        ----------
        session : Subscription
            Session with the publisher.
        data : bytes
            Bytes that have arrived, which may be split anywhere.
        source : str
            Source of the publisher as `source_of` returns it.
        """
        now, turns = asyncio.get_running_loop().time, self._ears.turns
        await turns.admit(source)
        started, cost = now(), turns.clock()
        for n, body in enumerate(session.receive_data(data)):
            if n and now() - started > TURN_TIME_S:
                turns.spend(turns.clock() - cost)
                await asyncio.sleep(0)
                await turns.admit(source)
                started, cost = now(), turns.clock()

            self._take(body, session.caller)

        turns.spend(turns.clock() - cost)

    def _take(self, body: bytes, caller: str) -> None:
        self._barrier.run(self._decode, body, caller)

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
        """Close the subscription and unregister it."""
        self.update([])
        if self._sweep is not None:
            self._sweep.cancel()
        self._node.inputs.pop(self.name, None)
        self._node.call_master("unregisterSubscriber", self.name, self._node.uri)

    def register(self) -> tuple[Any, ...]:
        """Return the call to the master that registers the subscriber."""
        return "registerSubscriber", self.name, self.type_name, self._node.uri


def _is_address(uri: object) -> bool:
    try:
        address(uri)  # type: ignore[arg-type]
    except PeerError:
        return False

    return True


def _where(uri: str, code: int, status: str, protocol: Any) -> tuple[str, int]:
    """Return host and port of a publisher from its answer to ``requestTopic``.

    Raises
    ------
    PeerError
        The publisher does not publish the topic, or the answer is invalid.
    """
    if code != 1:
        raise PeerError(f"{uri} does not publish the topic: {status}")
    match protocol:
        # The answer comes from an untrusted node.
        case ["TCPROS", str(host), int(port), *_] if (
            0 < len(host) <= api.MAX_NAME and 0 < port < 65536
        ):
            return host, port

    raise PeerError(
        f"{uri}: expected TCPROS, a host and a port, found {shown(protocol, 100)}"
    )


__all__ = ["InputLimits", "Subscriber"]
