"""ROS 2 over Zenoh, compatible with rmw_zenoh.

Topics, inputs and services of the graph share one session, which can also be the
router. Zenoh calls back in its own threads; each callback passes its data to the
simulator's event loop.
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
from botyard.protocols.ros_messages.types import Types, full, service_name
from botyard.protocols.zenoh_keys import (
    GID,
    LATCHED,
    ROUTER,
    VOLATILE,
    Tokens,
    attachment,
    data_key,
)
from botyard.servers.handover import Handover
from botyard.servers.ros.cdr import CdrInput, CdrService, CdrTransport
from botyard.servers.timeshare import TimeShare

T = TypeVar("T")
ROUTER_PORT: Final = 7447
CONFIGURATION: Final = "ZENOH_SESSION_CONFIG_URI"
"""Environment variable with the path of Zenoh's configuration, as in rmw_zenoh."""
ROUTER_POLL_S: Final = 1.0
"""Poll interval for the router, s."""
SHARE: Final = 0.2
"""Share of time for received Zenoh messages."""
MAX_MESSAGE: Final = 256 << 20
"""Maximum length of a message that Zenoh reassembles, bytes.

The limit also applies to messages that a router only forwards.
"""

log = logging.getLogger("botyard.ros")


class _End:
    """Entity of a node in the session, with its liveliness token."""

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
        self._token: Any = ros.token(
            ros.tokens.end(node, sort, name, kind, digest, qos)
        )
        self._declared: list[Any] = []

    def close(self) -> None:
        """Close the entity and its token."""
        self.is_open = False
        self._token.undeclare()
        for declared in self._declared:
            declared.undeclare()
        self._ros.forget(self._node)


class _Publication(_End):
    """Published topic, see `botyard.interfaces.ros.transport.Publication`."""

    replays_latched = False

    def __init__(
        self, ros: Ros2Zenoh, node: str, topic: Topic, changed: Callable[[], None]
    ) -> None:
        self._latched = topic.latched
        super().__init__(
            ros,
            node,
            "MP",
            topic.name,
            full(topic.type_name),
            LATCHED if topic.latched else VOLATILE,
        )
        zenoh = ros.zenoh
        # A slow peer must not block the simulator.
        drop = zenoh.CongestionControl.DROP
        self._matched = False
        # rmw_zenoh implements TRANSIENT_LOCAL durability with the advanced publisher's
        # cache.
        if topic.latched:
            self._publisher = zenoh.ext.declare_advanced_publisher(
                ros.session,
                self.key,
                congestion_control=drop,
                cache=zenoh.ext.CacheConfig(1),
                publisher_detection=True,
            )
        else:
            self._publisher = ros.session.declare_publisher(
                self.key, congestion_control=drop
            )
            self._declared.append(
                self._publisher.declare_matching_listener(
                    lambda status: ros.soon(self._match, status)
                )
            )

        self._changed = changed
        self._declared.append(self._publisher)
        # rmw_zenoh identifies the publisher of a message by this ID in the attachment.
        self._gid = os.urandom(GID)
        self._sequence = 0

    def _match(self, status: Any) -> None:
        self._matched = bool(status.matching)
        self._changed()

    @property
    def is_wanted(self) -> bool:
        """Whether a reader exists, or a late joiner may request the last message."""
        return self._latched or self._matched

    def send(self, message: EncodedMessage) -> None:
        """Send a message."""
        self._sequence += 1
        self._publisher.put(
            message.cdr,
            attachment=attachment(self._sequence, time.time_ns(), self._gid),
        )


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
        """Process one item, see `botyard.servers.timeshare.Worker`."""
        with self._lock:
            # Under the lock: otherwise `put` may see a queue that is about to stop.
            self._is_awake = bool(self._waiting)
            if not self._waiting:
                return False
            one = self._waiting.popleft()

        self._work(one)
        return True


class _Listening(_End, CdrInput):
    """Subscription to a topic."""

    def __init__(self, ros: Ros2Zenoh, node: str, entry: Input) -> None:
        CdrInput.__init__(self, ros, entry)
        super().__init__(ros, node, "MS", entry.name, full(entry.type_name))
        self._inbox: _Inbox[bytes] = _Inbox(
            ros, self.key, MAX_WAITING, self._decode, self._barrier
        )
        self._declared.append(ros.session.declare_subscriber(self.key, self._come))

    def _come(self, sample: Any) -> None:
        """Queue a message, in a thread of Zenoh."""
        if len(sample.payload) <= self._entry.limit:
            self._inbox.put(sample.payload.to_bytes())

    def _decode(self, data: bytes) -> None:
        # Messages may have waited while the subscription was closed.
        if self.is_open:
            super()._decode(data)


class _Serving(_End, CdrService):
    """Service that the simulator offers, see `botyard.servers.ros.cdr`."""

    def __init__(self, ros: Ros2Zenoh, node: str, service: Service) -> None:
        CdrService.__init__(self, ros, service)
        super().__init__(ros, node, "SS", service.name, service_name(service.type_name))
        self._inbox: _Inbox[Any] = _Inbox(
            ros, self.key, MAX_REQUESTS, self._take, self._barrier
        )
        self._declared.append(
            ros.session.declare_queryable(self.key, self._come, complete=True)
        )

    def _come(self, query: Any) -> None:
        """Queue a query, in a thread of Zenoh.

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
            f"a request of {size} bytes, at most {MAX_REQUEST} are accepted",
        )

    def _take(self, query: Any) -> None:
        self._serve(query, b"" if query.payload is None else query.payload.to_bytes())

    def _answer(self, query: Any, response: Any) -> None:
        # The context manager finishes the query, so that its client does not wait.
        with query:
            told = (
                {}
                if query.attachment is None
                else {"attachment": query.attachment.to_bytes()}
            )
            query.reply(
                query.key_expr,
                self._types.encode_cdr(response, self._response),
                **told,
            )

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
        it.
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

        self.tokens = Tokens(domain, str(self.session.zid()))
        self._nodes: dict[str, tuple[Any, int]] = {}
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

    def token(self, key: str) -> Any:
        """Declare a liveliness token, which exists until it is undeclared."""
        return self.session.liveliness().declare_token(key)

    def know(self, node: str) -> None:
        """Count an entity of a node, and declare the node with its first one."""
        key = self.tokens.node(node)
        if key is not None:
            self._nodes[node] = (self.token(key), 0)
        token, ends = self._nodes[node]
        self._nodes[node] = (token, ends + 1)

    def forget(self, node: str) -> None:
        """Remove an entity of a node, and the node with its last one."""
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
        # `close` of the session blocks, so it runs in a thread.
        await asyncio.get_running_loop().run_in_executor(None, self.session.close)


def _configuration(zenoh: Any, router: bool, bound: str) -> Any:
    """Return Zenoh's configuration.

    It has the defaults of rmw_zenoh, or is the file named by
    ``ZENOH_SESSION_CONFIG_URI``.
    """
    path = os.environ.get(CONFIGURATION)
    if path and not router:
        return zenoh.Config.from_file(path)
    config = zenoh.Config()
    # As in rmw_zenoh: peers find each other through the router only.
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
