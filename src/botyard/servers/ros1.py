"""ROS 1 over sockets: nodes that a master knows, publishers, subscribers and services; and a master of our own.

A node has a port for XML-RPC and one for TCPROS, because a subscriber's header names only the topic (reference ros.md §3). All calls to the
master go through one queue, in order; a watch sees when the master comes, goes or is another one, and registers everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from botyard.errors import BotyardError, PeerError, PortError
from botyard.protocols.ros_messages.robot import Input, Service, Topic
from botyard.protocols.ros_messages.types import ServiceType, Types
from botyard.protocols.tcpros import wire, xmlrpc
from botyard.protocols.tcpros.master import MASTER_PORT, Master
from botyard.protocols.tcpros.session import Incoming, Requested, Subscribed, Subscription
from botyard.servers.rosgraph import Once

CALL_TIMEOUT: Final = 3.0
"""Longest wait for an answer of the master or a node, s."""
WATCH: Final = 1.0
"""Time between two looks at the master, s."""
LONGEST_PAUSE: Final = 5.0
"""Longest wait before a lost publisher is tried again, s."""
BUFFER: Final = 256 << 10
"""Bytes that the system's buffers may lag behind before messages wait in the queue of a topic."""
MAX_CONNECTIONS: Final = 2000
MAX_ANSWER: Final = 16 << 20

log = logging.getLogger("botyard.ros")


async def call(uri: str, method: str, *args: Any) -> Any:
    """Call a method of a node or a master.

    Raises
    ------
    PeerError
        It cannot be reached, does not answer in time, or answers nonsense.
    """
    host, port = xmlrpc.address(uri)
    request = xmlrpc.encode_call(uri, method, args)
    try:
        async with asyncio.timeout(CALL_TIMEOUT):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(request)
                data = await reader.read(MAX_ANSWER)
                while len(data) < MAX_ANSWER and (more := await reader.read(MAX_ANSWER - len(data))):
                    data += more
            finally:
                writer.close()
    except TimeoutError:
        raise PeerError(f"{uri} does not answer") from None
    except OSError as error:
        raise PeerError(f"{uri} cannot be reached: {error.strerror or error}") from None
    return xmlrpc.decode_response(data)


def listening_socket(host: str, port: int = 0) -> socket.socket:
    """A bound socket.

    Raises
    ------
    PortError
        The address is not ours, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise PortError(f"cannot listen on {host}:{port}: {error.strerror}") from None


class _Rpc(asyncio.Protocol):
    """One XML-RPC connection to us."""

    def __init__(self, answer: Callable[[str, tuple[Any, ...]], Any], connections: set[_Rpc]) -> None:
        self._answer = answer
        self._connections = connections
        self._calls = xmlrpc.Calls()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._connections) >= MAX_CONNECTIONS:
            self._transport.abort()
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)

    def close(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if transport is None:
            return
        try:
            for one in self._calls.receive(data):
                transport.write(xmlrpc.encode_response(self._answer(one.method, one.args)))
                if not one.keep_alive:
                    transport.close()
                    return
        except PeerError as error:
            log.debug("an XML-RPC connection is given up: %s", error)
            transport.close()
        except Exception:
            log.exception("internal error in an XML-RPC call")
            transport.close()


class _RpcServer:
    """Answers XML-RPC calls on a port."""

    def __init__(self, host: str, port: int, answer: Callable[[str, tuple[Any, ...]], Any]) -> None:
        self._socket = listening_socket(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._answer = answer
        self._connections: set[_Rpc] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Rpc(self._answer, self._connections), sock=self._socket)

    def close(self) -> None:
        """Accept no more, and end those that are open."""
        if self._server is not None:
            self._server.close()
        else:
            self._socket.close()
        for one in tuple(self._connections):
            one.close()


class Ros1Master:
    """A ROS master in the simulator (``--ros-master embedded``).

    Parameters
    ----------
    host : str
        Address to listen on.
    port : int
        TCP port.

    Raises
    ------
    PortError
        The port is taken.
    """

    def __init__(self, host: str, port: int = MASTER_PORT) -> None:
        self._rpc = _RpcServer(host, port, self._call)
        named = advertised_host(host)
        self.uri = f"http://{named}:{self._rpc.port}/"
        self.master = Master(self.uri)
        self._queues: dict[str, deque[tuple[str, tuple[Any, ...]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Serve."""
        await self._rpc.start()

    def close(self) -> None:
        """Serve no more."""
        self._rpc.close()
        for task in tuple(self._tasks):
            task.cancel()

    def _call(self, method: str, args: tuple[Any, ...]) -> Any:
        answer = self.master.call(method, args)
        notices, self.master.notices = self.master.notices, []
        for notice in notices:
            queue = self._queues.get(notice.uri)
            if queue is not None:
                queue.append((notice.method, notice.args))
                continue
            self._queues[notice.uri] = deque([(notice.method, notice.args)])
            task = asyncio.ensure_future(self._tell(notice.uri))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return answer

    async def _tell(self, uri: str) -> None:
        """Make the calls to one node, in order; a node that cannot be reached misses them."""
        queue = self._queues[uri]
        try:
            while queue:
                method, args = queue.popleft()
                with contextlib.suppress(PeerError):
                    await call(uri, method, *args)
        finally:
            self._queues.pop(uri, None)


def advertised_host(bound: str) -> str:
    """How other machines reach us: ROS_HOSTNAME, ROS_IP, else the address that is listened on, or that of this machine."""
    named = os.environ.get("ROS_HOSTNAME") or os.environ.get("ROS_IP")
    if named:
        return named
    if bound in ("0.0.0.0", "::", ""):
        return _own_address()
    return bound


def _own_address() -> str:
    """The address of this machine on the way out; loopback if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(
                ("192.0.2.1", 9)
            )  # sends nothing: a datagram socket only looks for a route (RFC 5737 address)
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


class _Connection(asyncio.Protocol):
    """A subscriber or a client of a service that has connected to a node."""

    _numbers = itertools.count(1)

    def __init__(self, node: _Node) -> None:
        self._node = node
        self.number = next(self._numbers)
        self.session = Incoming(node.name, node.topics, node.services)
        self.sent = self.dropped = 0
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._waiting: deque[bytes] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=BUFFER)
        if len(self._node.connections) >= MAX_CONNECTIONS:
            self._transport.abort()
        self._node.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._node.connections.discard(self)
        topic = self.session.topic
        if isinstance(topic, _Publication):
            topic.lost(self)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        while self._waiting and not self._paused:
            self._write(self._waiting.popleft())

    def close(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        session = self.session
        session.receive_data(data)
        while (event := session.next_event()) is not None:
            if isinstance(event, Subscribed):
                self._flush()
                cast(_Publication, event.offer).welcome(self)
            elif isinstance(event, Requested):
                self._serve(cast(_Service, event.offer), event.body)
        self._flush()
        if session.problem:
            log.warning("ROS 1: %s is refused: %s", session.caller, session.problem[:300])
        if session.is_closing:
            self.close()

    def _serve(self, service: _Service, body: bytes) -> None:
        try:
            self.session.answer(service.run(body))
        except BotyardError as error:
            self.session.fail(str(error))
        except Exception as error:
            log.exception("internal error in the service %s", service.name)
            self.session.fail(f"internal error: {error!r}")

    def no_delay(self) -> None:
        """Send small messages at once."""
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes, queue: int) -> None:
        """Send a message; while the peer is slow, at most `queue` wait, and the oldest is dropped for a new one."""
        if not self._paused:
            self._write(frame)
            return
        while len(self._waiting) >= max(1, queue):
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(frame)

    def _write(self, frame: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self.sent += len(frame)
            self._transport.write(frame)

    def _flush(self) -> None:
        data = self.session.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)


class _Publication:
    """A topic of a node; a `Publication` of the graph and a `TopicOffer` of sessions."""

    def __init__(
        self, node: _Node, topic: Topic, types: Types, fresh: Callable[[], Once | None], changed: Callable[[], None]
    ) -> None:
        self._node = node
        self._fresh = fresh
        self._changed = changed
        self.name, self.type_name = topic.name, topic.type_name
        self.definition, self.md5 = types.definition(topic.type_name)
        self.latched, self.queue = topic.latched, topic.queue
        self.readers: set[_Connection] = set()

    greets = True

    @property
    def is_wanted(self) -> bool:
        """Whether there is a subscriber."""
        return bool(self.readers)

    def welcome(self, reader: _Connection) -> None:
        """A subscriber is there."""
        if reader.session.wants_no_delay:
            reader.no_delay()
        self.readers.add(reader)
        self._changed()
        if self.latched:
            last = self._fresh()
            if last is not None:
                reader.send(wire.frame(last.ros1), self.queue)

    def lost(self, reader: _Connection) -> None:
        """A subscriber has gone."""
        self.readers.discard(reader)
        self._changed()

    def send(self, message: Once) -> None:
        """Send a message to all subscribers."""
        frame = wire.frame(message.ros1)
        for reader in self.readers:
            reader.send(frame, self.queue)

    def close(self) -> None:
        """Publish it no longer."""
        for reader in tuple(self.readers):
            reader.close()
        self._node.topics.pop(self.name, None)
        self._node.tell("unregisterPublisher", self.name, self._node.uri)

    def register(self) -> tuple[Any, ...]:
        """The call that makes it known."""
        return "registerPublisher", self.name, self.type_name, self._node.uri


class _Service:
    """A service of a node."""

    def __init__(self, node: _Node, service: Service, types: Types) -> None:
        self._node = node
        self._serve = service.serve
        self._types = types
        self._kind: ServiceType = types.service(service.type_name)
        self.name, self.type_name, self.md5 = service.name, service.type_name, self._kind.md5

    def run(self, body: bytes) -> bytes:
        """Answer a request."""
        request = self._types.decode_ros1(body, self._kind.request)
        return self._types.encode_ros1(self._serve(request), self._kind.response)

    def close(self) -> None:
        """Serve it no longer."""
        self._node.services.pop(self.name, None)
        self._node.tell("unregisterService", self.name, self._node.service_uri)

    def register(self) -> tuple[Any, ...]:
        """The call that makes it known."""
        return "registerService", self.name, self._node.service_uri, self._node.uri


class _Input:
    """A topic that a node listens to: a connection to each of its publishers."""

    def __init__(self, node: _Node, entry: Input, types: Types) -> None:
        self._node = node
        self._entry = entry
        self._types = types
        self.name, self.type_name = entry.name, entry.type_name
        self.definition, self.md5 = types.definition(entry.type_name)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def publishers(self) -> list[str]:
        """Addresses of the publishers."""
        return list(self._tasks)

    def update(self, uris: list[str]) -> None:
        """These are the publishers now."""
        for uri in [u for u in self._tasks if u not in uris]:
            self._tasks.pop(uri).cancel()
        for uri in uris:
            if uri not in self._tasks:
                self._tasks[uri] = asyncio.ensure_future(self._listen(uri))

    async def _listen(self, uri: str) -> None:
        """Listen to one publisher for as long as the master names it."""
        pause, last = 0.1, ""
        while True:
            try:
                await self._receive(uri)
                pause = 0.1
            except (PeerError, OSError, TimeoutError) as error:
                if str(error) != last:
                    log.warning("ROS 1: %s: %s", self.name, error)
                last = str(error)
            await asyncio.sleep(pause)
            pause = min(2.0 * pause, LONGEST_PAUSE)

    async def _receive(self, uri: str) -> None:
        code, status, protocol = _answer(await call(uri, "requestTopic", self._node.name, self.name, [["TCPROS"]]))
        if code != 1 or not (isinstance(protocol, list) and len(protocol) >= 3 and protocol[0] == "TCPROS"):
            raise PeerError(f"{uri} does not publish it: {status}")
        async with asyncio.timeout(CALL_TIMEOUT):
            reader, writer = await asyncio.open_connection(str(protocol[1]), int(protocol[2]))
        session = Subscription(self._node.name, self.name, self.type_name, self.md5, self.definition)
        try:
            writer.write(session.hello)
            while data := await reader.read(65536):
                for body in session.receive_data(data):
                    self._take(body, session.caller)
        finally:
            writer.close()

    def _take(self, body: bytes, caller: str) -> None:
        try:
            self._entry.take(self._types.decode_ros1(body, self.type_name))
        except BotyardError as error:
            log.warning("ROS 1: %s from %s: %s", self.name, caller, error)
        except Exception:
            log.exception("internal error while taking a message of %s", self.name)

    def close(self) -> None:
        """Listen no longer."""
        self.update([])
        self._node.inputs.pop(self.name, None)
        self._node.tell("unregisterSubscriber", self.name, self._node.uri)

    def register(self) -> tuple[Any, ...]:
        """The call that makes it known."""
        return "registerSubscriber", self.name, self.type_name, self._node.uri


def _answer(value: Any) -> tuple[int, str, Any]:
    """The three parts of an answer of the ROS APIs.

    Raises
    ------
    PeerError
        It has not three.
    """
    if not (isinstance(value, list | tuple) and len(value) == 3 and isinstance(value[0], int)):
        raise PeerError(f"expected [code, status, value], found {str(value)[:100]}")
    return value[0], str(value[1]), value[2]


class _Node:
    """A ROS node."""

    def __init__(self, ros: Ros1, name: str) -> None:
        self._ros = ros
        self.name = name
        self.topics: dict[str, _Publication] = {}
        self.services: dict[str, _Service] = {}
        self.inputs: dict[str, _Input] = {}
        self.connections: set[_Connection] = set()
        self._rpc = _RpcServer(ros.bound, 0, self._call)
        self._socket = listening_socket(ros.bound)
        self.tcp_port: int = self._socket.getsockname()[1]
        self.uri = f"http://{ros.host}:{self._rpc.port}/"
        self.service_uri = f"rosrpc://{ros.host}:{self.tcp_port}"
        self._server: asyncio.Server | None = None
        ros.spawn(self._start())

    async def _start(self) -> None:
        await self._rpc.start()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), sock=self._socket)

    def tell(self, method: str, *args: Any) -> None:
        """Call the master in this node's name."""
        self._ros.tell(self, method, args)

    @property
    def entries(self) -> list[_Publication | _Service | _Input]:
        """Everything that the master is to know."""
        return [*self.topics.values(), *self.inputs.values(), *self.services.values()]

    def close(self) -> None:
        """End all connections."""
        for entry in self.inputs.values():
            entry.update([])
        for connection in tuple(self.connections):
            connection.close()
        self._rpc.close()
        if self._server is not None:
            self._server.close()

    # -- the slave API

    def _call(self, method: str, args: tuple[Any, ...]) -> Any:
        handler = getattr(self, f"_x_{method}", None)
        if handler is None:
            return [-1, f"{self.name} has no method {method}", 0]
        try:
            return handler(*args)
        except TypeError:
            return [-1, f"{method}: wrong number or kind of arguments", 0]

    def _x_getBusStats(self, caller: str) -> Any:
        published = [
            [p.name, sum(c.sent for c in p.readers), [[c.number, c.sent, 0, True] for c in p.readers]]
            for p in self.topics.values()
        ]
        return [1, "bus stats", [published, [], []]]

    def _x_getBusInfo(self, caller: str) -> Any:
        out = [
            [c.number, c.session.caller, "o", "TCPROS", p.name, True] for p in self.topics.values() for c in p.readers
        ]
        into = [[0, uri, "i", "TCPROS", i.name, True] for i in self.inputs.values() for uri in i.publishers]
        return [1, "bus info", out + into]

    def _x_getMasterUri(self, caller: str) -> Any:
        return [1, "master", self._ros.master_uri]

    def _x_getPid(self, caller: str) -> Any:
        return [1, "pid", os.getpid()]

    def _x_getSubscriptions(self, caller: str) -> Any:
        return [1, "subscriptions", [[i.name, i.type_name] for i in self.inputs.values()]]

    def _x_getPublications(self, caller: str) -> Any:
        return [1, "publications", [[p.name, p.type_name] for p in self.topics.values()]]

    def _x_paramUpdate(self, caller: str, key: str, value: Any) -> Any:
        return [1, "", 0]

    def _x_publisherUpdate(self, caller: str, topic: str, uris: list[str]) -> Any:
        if topic in self.inputs:
            self.inputs[topic].update([str(u) for u in uris])
        return [1, "", 0]

    def _x_requestTopic(self, caller: str, topic: str, protocols: list[Any]) -> Any:
        if topic not in self.topics:
            return [0, f"{self.name} does not publish [{topic}]", []]
        if any(isinstance(p, list) and p and p[0] == "TCPROS" for p in protocols):
            return [1, "ready", ["TCPROS", self._ros.host, self.tcp_port]]
        return [0, "no protocol in common: only TCPROS", []]

    def _x_shutdown(self, caller: str, reason: str = "") -> Any:
        log.warning("ROS 1: %s asks node %s to shut down: %s", caller, self.name, reason)
        self._ros.on_shutdown()
        return [1, "shutdown", 0]


class Ros1:
    """The transport: nodes and their entries at a master.

    Parameters
    ----------
    types : Types
        Message types.
    master_uri : str
        Address of the master.
    bound : str
        Address to listen on.
    on_shutdown : callable
        A peer (``rosnode kill``) wants us to go.
    sim_time : bool
        Set ``/use_sim_time`` at the master.
    """

    def __init__(
        self,
        types: Types,
        master_uri: str,
        *,
        bound: str = "127.0.0.1",
        on_shutdown: Callable[[], None] = lambda: None,
        sim_time: bool = True,
    ) -> None:
        self.types = types
        self.wire = "ros1"
        self.master_uri = master_uri
        self.bound = bound
        self.host = advertised_host(bound)
        self.on_shutdown = on_shutdown
        self._sim_time = sim_time
        self._nodes: dict[str, _Node] = {}
        self._todo: asyncio.Queue[tuple[_Node | None, str, tuple[Any, ...]]] = asyncio.Queue()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pid: object = None
        self.is_registered = False
        """Whether the master knows us."""

    async def start(self) -> None:
        """Begin to talk to the master.

        Raises
        ------
        PeerError
            It is not there; `wait` goes on trying.
        """
        _, _, self._pid = _answer(await call(self.master_uri, "getPid", "/botyard"))
        await self._begin()
        self.wait()

    async def _begin(self) -> None:
        """A master is there that does not know us."""
        if self._sim_time:
            await call(self.master_uri, "setParam", "/botyard", "/use_sim_time", True)
        self.is_registered = True
        for node in self._nodes.values():
            for entry in node.entries:
                self._todo.put_nowait((node, *_split(entry.register())))

    def wait(self) -> None:
        """Keep looking at the master, and carry out what is to be told to it."""
        self.spawn(self._work())
        self.spawn(self._watch())

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something beside."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        """Register everything again when the master was away, or is another one."""
        while True:
            await asyncio.sleep(WATCH)
            try:
                _, _, pid = _answer(await call(self.master_uri, "getPid", "/botyard"))
                if pid != self._pid or not self.is_registered:
                    log.info("ROS 1: the master at %s is there", self.master_uri)
                    await self._begin()
                self._pid = pid
            except PeerError as error:
                if self.is_registered:
                    log.warning("ROS 1: the master is gone: %s", error)
                self.is_registered = False

    def tell(self, node: _Node, method: str, args: tuple[Any, ...]) -> None:
        """Queue a call to the master; without one it is left out: everything is told to the next one."""
        if self.is_registered:
            self._todo.put_nowait((node, method, args))

    async def _work(self) -> None:
        while True:
            node, method, args = await self._todo.get()
            try:
                await self._carry_out(node, method, args)
            except PeerError as error:
                log.warning("ROS 1: %s: %s", method, error)
            finally:
                self._todo.task_done()

    async def _carry_out(self, node: _Node | None, method: str, args: tuple[Any, ...]) -> None:
        caller = node.name if node is not None else "/botyard"
        code, status, value = _answer(await call(self.master_uri, method, caller, *args))
        if code != 1:
            log.warning("ROS 1: %s is refused by the master: %s", method, status)
        elif method == "registerSubscriber" and node is not None and args[0] in node.inputs:
            node.inputs[args[0]].update([str(u) for u in value])

    async def close(self) -> None:
        """Take everything back from the master, and end all connections."""
        for node in self._nodes.values():
            for entry in node.entries:
                entry.close()
        if self.is_registered:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._todo.join()
        for task in tuple(self._tasks):
            task.cancel()
        for node in self._nodes.values():
            node.close()
        self._nodes.clear()

    # -- what the graph asks for

    def _node(self, name: str) -> _Node:
        if name not in self._nodes:
            self._nodes[name] = _Node(self, name)
        return self._nodes[name]

    def advertise(
        self, node: str, topic: Topic, fresh: Callable[[], Once | None], changed: Callable[[], None]
    ) -> _Publication:
        """Publish a topic."""
        owner = self._node(node)
        made = owner.topics[topic.name] = _Publication(owner, topic, self.types, fresh, changed)
        owner.tell(*made.register())
        return made

    def listen(self, node: str, entry: Input) -> _Input:
        """Listen to a topic."""
        owner = self._node(node)
        made = owner.inputs[entry.name] = _Input(owner, entry, self.types)
        owner.tell(*made.register())
        return made

    def serve(self, node: str, service: Service) -> _Service:
        """Serve."""
        owner = self._node(node)
        made = owner.services[service.name] = _Service(owner, service, self.types)
        owner.tell(*made.register())
        return made


def _split(entry: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    return str(entry[0]), entry[1:]
