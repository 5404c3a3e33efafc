"""ROS 2 over Zenoh, compatible with rmw_zenoh.

Topics, inputs and services of the graph share one session, which can also be the
router. Zenoh calls back in its own threads; each callback passes its data to the
simulator's event loop. Calls that may wait for a peer are also made in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import PeerError, WorldError
from botyard.extras import lacking
from botyard.interfaces.ros.transport import EncodedMessage
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.limits import (
    MAX_REQUEST,
    MAX_REQUESTS,
    MAX_WAITING,
)
from botyard.protocols.ros_messages.typenames import full, service_name
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.zenoh_keys import (
    GID,
    ROUTER,
    VOLATILE,
    Tokens,
    attachment,
    data_key,
    kept_qos,
)
from botyard.servers.handover import Handover
from botyard.servers.ros.cdr import CdrInput, CdrService, CdrTransport
from botyard.servers.ros.zenohcalls import MAX_ANSWERS, Declared, SessionThread
from botyard.servers.timeshare import TimeShare

T = TypeVar("T")
ROUTER_PORT: Final = 7447
CONFIGURATION: Final = "ZENOH_SESSION_CONFIG_URI"
"""Environment variable with the path of Zenoh's configuration, as in rmw_zenoh."""
ROUTER_POLL_S: Final = 1.0
"""Poll interval for the router, s."""
HEARTBEAT_S: Final = 0.5
"""Interval of heartbeats after a message of a latched topic, s (rmw_publisher_data.cpp)."""
CLOSE_S: Final = 2.0
"""Longest time that the end of the program waits for peers, s."""
SHARE: Final = 0.2
"""Share of time for received Zenoh messages."""
MAX_MESSAGE: Final = 256 << 20
"""Maximum length of a message that Zenoh reassembles, bytes.

The limit also applies to messages that a router only forwards.
"""

log = logging.getLogger("botyard.ros")


class _End:
    """Endpoint of a node in the Zenoh session, with its liveliness token."""

    is_open: bool = True

    def __init__(
        self,
        ros: Ros2Zenoh,
        node: str,
        sort: str,
        name: str,
        kind: str,
        qos: str = VOLATILE,
    ) -> None:
        self._ros = ros
        self._node = node
        digest = ros.types.hash(kind)
        self.key = data_key(ros.domain, name, kind, digest)
        # The node's token has to exist before the tokens of its entities.
        ros.know(node)
        self._token = ros.token(ros.tokens.end(node, sort, name, kind, digest, qos))
        self._declared: list[Declared] = []

    def close(self) -> None:
        """Close the endpoint and withdraw its token."""
        self.is_open = False
        self._token.undeclare()
        for declared in self._declared:
            declared.undeclare()
        self._ros.forget(self._node)


class _Publication(_End):
    """Topic that a node of this simulator publishes over Zenoh."""

    replays_latched = False

    def __init__(
        self, ros: Ros2Zenoh, node: str, topic: Topic, changed: Callable[[], None]
    ) -> None:
        self._is_kept = topic.latched or topic.is_kept
        self._depth = 1 if topic.latched else topic.queue
        qos = kept_qos(self._depth) if self._is_kept else VOLATILE
        super().__init__(ros, node, "MP", topic.name, full(topic.type_name), qos)
        self._matched = False
        self._publisher = ros.declare(
            self._declare_kept if self._is_kept else self._declare
        )
        if not self._is_kept:
            self._declared.append(ros.declare(self._declare_listener))
        self._changed = changed
        self._declared.append(self._publisher)
        # rmw_zenoh identifies the publisher of a message by this ID in the attachment.
        self._gid = os.urandom(GID)
        self._sequence = 0

    def _declare(self) -> Any:
        zenoh, session = self._ros.zenoh, self._ros.session
        # A slow peer must not block the simulator.
        drop = zenoh.CongestionControl.DROP
        return session.declare_publisher(self.key, congestion_control=drop)

    def _declare_kept(self) -> Any:
        """Declare a publisher with a cache: TRANSIENT_LOCAL durability of rmw_zenoh."""
        zenoh = self._ros.zenoh
        return zenoh.ext.declare_advanced_publisher(
            self._ros.session,
            self.key,
            congestion_control=zenoh.CongestionControl.DROP,
            cache=zenoh.ext.CacheConfig(self._depth),
            publisher_detection=True,
            # A reader that has missed the last message asks for it.
            sample_miss_detection=zenoh.ext.MissDetectionConfig(
                heartbeat=None, sporadic_heartbeat=HEARTBEAT_S
            ),
        )

    def _declare_listener(self) -> Any:
        return self._publisher.made.declare_matching_listener(
            lambda status: self._ros.soon(self._match, status)
        )

    def _match(self, status: Any) -> None:
        self._matched = bool(status.matching)
        self._changed()

    @property
    def is_wanted(self) -> bool:
        """Whether a subscriber exists, or a late subscriber may request the last message."""
        return self._is_kept or self._matched

    @property
    def reader_count(self) -> int:
        """1 if there are readers: Zenoh does not say how many."""
        return int(self._matched)

    def send(self, message: EncodedMessage) -> None:
        """Send a message.

        The attachment has the sequence number, the system time, ns, and the publisher's
        id, as rmw_zenoh expects.

        Parameters
        ----------
        message : EncodedMessage
            Message to publish as CDR.
        """
        self._sequence += 1
        told = attachment(self._sequence, time.time_ns(), self._gid)
        if self._is_kept:
            # The publisher may not be declared yet, and large messages may wait.
            self._ros.thread.do(self._put, message.cdr, told)
        else:
            self._put(message.cdr, told)

    def _put(self, data: bytes, told: bytes) -> None:
        publisher = self._publisher.made
        if publisher is not None:
            publisher.put(data, attachment=told)


class _Inbox(Generic[T]):
    """Queue of items from Zenoh's threads to the event loop; drops the oldest if full.

    Parameters
    ----------
    ros : Ros2Zenoh
        Transport that the queue belongs to.
    source : str
        Key expression of the items; each source has its share of time.
    most : int
        Maximum length of the queue.
    work : callable
        Processes one item, in the event loop.
    barrier : ErrorBarrier
        Error barrier around `work`.
    """

    def __init__(
        self,
        ros: Ros2Zenoh,
        source: str,
        most: int,
        work: Callable[[T], None],
        barrier: ErrorBarrier,
    ) -> None:
        self._ros = ros
        self.source = source
        self.barrier = barrier
        self.own_time = None
        self._waiting: deque[T] = deque(maxlen=most)
        self._work = work
        self._lock = threading.Lock()
        self._is_awake = False

    def put(self, one: T) -> None:
        """Add an item, from any thread."""
        with self._lock:
            self._waiting.append(one)
            # One wake-up is enough until the queue is empty again.
            is_asleep, self._is_awake = not self._is_awake, True

        if is_asleep:
            self._ros.soon(self._ros.turns.wants, self)

    def turn(self) -> bool:
        """Process one item, see `botyard.servers.timeshare.Worker`.

        Returns
        -------
        bool
            Whether an item was processed.
        """
        with self._lock:
            # Decide under the lock: otherwise `put` may see a queue that is about to
            # stop.
            self._is_awake = bool(self._waiting)
            if not self._waiting:
                return False
            one = self._waiting.popleft()

        self._work(one)
        return True


class _Listening(_End, CdrInput):
    """Subscription of a node of this simulator to a topic over Zenoh."""

    def __init__(self, ros: Ros2Zenoh, node: str, entry: Input) -> None:
        CdrInput.__init__(self, ros, entry)
        super().__init__(ros, node, "MS", entry.name, full(entry.type_name))
        self._inbox: _Inbox[bytes] = _Inbox(
            ros, self.key, MAX_WAITING, self._decode, self._barrier
        )
        self._declared.append(
            ros.declare(lambda: ros.session.declare_subscriber(self.key, self._come))
        )

    def _come(self, sample: Any) -> None:
        """Queue a received message; a thread of Zenoh calls this."""
        if len(sample.payload) <= self._entry.limit:
            self._inbox.put(sample.payload.to_bytes())

    def _decode(self, data: bytes) -> None:
        # Messages may have waited while the subscription was closed.
        if self.is_open:
            super()._decode(data)


class _Serving(_End, CdrService):
    """Service that a node of this simulator offers over Zenoh, see `botyard.servers.ros.cdr`."""

    def __init__(self, ros: Ros2Zenoh, node: str, service: Service) -> None:
        CdrService.__init__(self, ros, service)
        super().__init__(ros, node, "SS", service.name, service_name(service.type_name))
        self._inbox: _Inbox[Any] = _Inbox(
            ros, self.key, MAX_REQUESTS, self._take, self._barrier
        )
        self._declared.append(
            ros.declare(
                lambda: ros.session.declare_queryable(
                    self.key, self._come, complete=True
                )
            )
        )

    def _come(self, query: Any) -> None:
        """Queue a received query; a thread of Zenoh calls this.

        A query that is too long is dropped here, because Zenoh accepts hundreds of
        megabytes.
        """
        size = sum(
            len(part) for part in (query.payload, query.attachment) if part is not None
        )
        size += len(str(query.parameters))
        if size <= MAX_REQUEST:
            self._inbox.put(query)
            return

        query.drop()
        self._ros.soon(
            self._complain,
            self._service.name,
            f"expected a request of at most {MAX_REQUEST} bytes, found {size} bytes",
        )

    def _take(self, query: Any) -> None:
        self._serve(query, b"" if query.payload is None else query.payload.to_bytes())

    def _answer(self, query: Any, response: Any) -> None:
        data = self._types.encode_cdr(response, self._response)
        if not self._ros.thread.answer(len(data), self._reply, query, data):
            query.drop()
            self._complain(
                self._service.name,
                f"dropped an answer: more than {MAX_ANSWERS} bytes of answers wait to be sent",
            )

    @staticmethod
    def _reply(query: Any, data: bytes) -> None:
        # The context manager finishes the query, so that its client does not wait.
        with query:
            told = (
                {}
                if query.attachment is None
                else {"attachment": query.attachment.to_bytes()}
            )
            query.reply(query.key_expr, data, **told)

    def _drop(self, query: Any) -> None:
        query.drop()


class Ros2Zenoh(CdrTransport):
    """ROS 2 transport over Zenoh.

    Parameters
    ----------
    types : Types
        Message types of the ROS distribution to serve.
    domain : int
        Domain ID, ``ROS_DOMAIN_ID``.
    router : bool
        Whether to be the router that nodes look for; otherwise the session connects to
        another router.
    bound : str
        Address to listen on as a router.

    Raises
    ------
    WorldError
        The extra is not installed.
    PeerError
        The router's port is taken, or the configuration is invalid.
    """

    label = "Zenoh"
    kinds = _Publication, _Listening, _Serving

    def __init__(
        self,
        types: Types,
        domain: int,
        *,
        router: bool = False,
        bound: str = "127.0.0.1",
    ) -> None:
        try:
            import zenoh
            import zenoh.ext
        except ImportError:
            raise WorldError(lacking("ROS 2 over Zenoh", "zenoh")) from None

        super().__init__(types)
        self.zenoh: Any = zenoh
        self.domain = domain
        self.soon = Handover(asyncio.get_running_loop()).soon
        self.turns = TimeShare(SHARE)
        try:
            self.session: Any = zenoh.open(_configuration(zenoh, router, bound))
        except zenoh.ZError as error:
            # Remove the location in Zenoh's source from the message.
            raise PeerError(f"Zenoh: {str(error).partition(' at /')[0]}") from None

        self.thread = SessionThread(
            lambda error: self.soon(self.complain, "a call of Zenoh", error)
        )
        self.tokens = Tokens(domain, str(self.session.zid()))
        self._nodes: dict[str, tuple[Declared, int]] = {}
        self._lookout: asyncio.Task[None] | None = None
        # With a configuration of their own, peers may need no router.
        if not router and not os.environ.get(CONFIGURATION):
            self._lookout = asyncio.get_running_loop().create_task(
                self._look_for_router()
            )

    async def _look_for_router(self) -> None:
        """Log that no router is found, and later that one was found.

        Without a router, other nodes cannot find this one.
        """
        await asyncio.sleep(ROUTER_POLL_S)
        if self.session.info.routers_zid():
            return
        log.warning(
            "waiting for a Zenoh router at %s; --zenoh-router runs "
            "one in the simulator",
            ROUTER,
        )
        while not self.session.info.routers_zid():
            await asyncio.sleep(ROUTER_POLL_S)
        log.info("found the Zenoh router")

    def declare(self, declare: Callable[[], Any]) -> Declared:
        """Declare an entity of the session, in its thread.

        Parameters
        ----------
        declare : callable
            Declares the entity and returns it.
        """
        return Declared(self.thread, declare)

    def token(self, key: str) -> Declared:
        """Declare a liveliness token, which exists until it is undeclared.

        Parameters
        ----------
        key : str
            Key expression in rmw_zenoh's layout, which other nodes read as graph
            information.

        Returns
        -------
        Declared
            Token of the session.
        """
        return self.declare(lambda: self.session.liveliness().declare_token(key))

    def know(self, node: str) -> None:
        """Count an entity of a node; declare the node together with its first entity.

        Parameters
        ----------
        node : str
            Absolute name of the node.
        """
        key = self.tokens.node(node)
        if key is not None:
            self._nodes[node] = (self.token(key), 0)
        token, ends = self._nodes[node]
        self._nodes[node] = (token, ends + 1)

    def forget(self, node: str) -> None:
        """Remove an entity of a node; remove the node together with its last entity."""
        token, ends = self._nodes[node]
        if ends > 1:
            self._nodes[node] = (token, ends - 1)
            return

        token.undeclare()
        del self._nodes[node]
        self.tokens.forget(node)

    async def close(self) -> None:
        """Close the session."""
        if self._lookout is not None:
            self._lookout.cancel()
        closed = asyncio.get_running_loop().create_future()

        def close() -> None:
            try:
                self.session.close()
            finally:
                self.soon(closed.set_result, None)

        self.thread.end(close)
        # A peer that does not read must not delay the end of the program.
        await asyncio.wait([closed], timeout=CLOSE_S)


def _configuration(zenoh: Any, router: bool, bound: str) -> Any:
    """Return Zenoh's configuration.

    The configuration has the defaults of rmw_zenoh, or is the file named by
    ``ZENOH_SESSION_CONFIG_URI``.
    """
    path = os.environ.get(CONFIGURATION)
    if path and not router:
        return zenoh.Config.from_file(path)
    config = zenoh.Config()
    # Turn multicast off, as rmw_zenoh does: peers find each other through the router
    # only.
    config.insert_json5("scouting/multicast/enabled", "false")

    # The cache of last messages for late joiners needs timestamps.
    config.insert_json5("timestamping/enabled", "true")
    config.insert_json5("transport/link/rx/max_message_size", str(MAX_MESSAGE))
    if router:
        host = f"[{bound}]" if ":" in bound else bound
        config.insert_json5("mode", '"router"')
        config.insert_json5("listen/endpoints", f'["tcp/{host}:{ROUTER_PORT}"]')

        # Without this, a taken port would leave a router that no node can reach.
        config.insert_json5("listen/exit_on_failure", "true")
    else:
        config.insert_json5("mode", '"peer"')
        config.insert_json5("connect/endpoints", f'["{ROUTER}"]')
        config.insert_json5("listen/endpoints", '["tcp/localhost:0"]')

    return config
