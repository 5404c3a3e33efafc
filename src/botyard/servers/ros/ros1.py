"""ROS 1 transport: nodes at a master, with their publishers, subscribers and services.

A node has one port for XML-RPC and one for TCPROS, because a subscriber's header names
only the topic (reference ros.md §3). All calls to the master go through one queue, in
order. A watchdog task detects when the master starts, stops or is replaced, and then
registers everything again.

Statements of peers about the master are not trusted. ``publisherUpdate`` only triggers
a query to the master itself. ``shutdown`` follows the rules for exits by Pioneer
clients: it is accepted from this machine and the master's machine, and from other
machines if the user allows it. The request is refused in any case if clients may not
change the world.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

from botyard.control.census import ClientFacts
from botyard.control.control import EXIT_DENIED
from botyard.errors import PeerError
from botyard.interfaces.ros.transport import EncodedMessage
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.tcpros import api
from botyard.servers.addresses import advertised_host
from botyard.servers.clientfacts import ros1_facts
from botyard.servers.ros.ros1input import InputLimits, Subscriber
from botyard.servers.ros.ros1node import (
    MIN_QUERY_INTERVAL_S,
    Node,
    NodePublication,
    NodeService,
)
from botyard.servers.ros.tcpros import SHARE
from botyard.servers.ros.xmlrpc import SHARE as RPC_SHARE
from botyard.servers.ros.xmlrpc import ask
from botyard.servers.streampeer import Peer
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TimeShare

SETTLE_S: Final = 10.0
"""Longest wait at startup until all topics are registered, s."""
MASTER_POLL_S: Final = 1.0
"""Poll interval of the master, s."""
MAX_HOSTS: Final = 8
"""Maximum number of the master's addresses to remember."""

log = logging.getLogger("botyard.ros")


class Ros1:
    """ROS 1 transport: nodes and their entries at a master.

    Parameters
    ----------
    types : Types
        Message types of the ROS distribution to serve.
    master_uri : str
        URI of the master.
    bound : str
        Address to listen on.
    on_shutdown : callable
        Called if a peer with permission requests a shutdown (``rosnode kill``).
    sim_time : bool
        Whether to set ``/use_sim_time`` at the master.
    denial : callable
        Receives whether a peer is on this machine or the master's; returns the reason
        why the peer may not request a shutdown, or an empty text if it may.
    """

    def __init__(
        self,
        types: Types,
        master_uri: str,
        *,
        bound: str = "127.0.0.1",
        on_shutdown: Callable[[], None] = lambda: None,
        sim_time: bool = True,
        denial: Callable[[bool], str] = lambda is_near: "" if is_near else EXIT_DENIED,
    ) -> None:
        self.types = types
        self.wire = "ros1"
        self.mixes_types = False
        self.master_uri = master_uri
        self.bound = bound
        self.host = advertised_host(bound)
        self.on_shutdown = on_shutdown
        self._denial = denial
        self._sim_time = sim_time
        self.rpc_turns, self.service_turns = TimeShare(RPC_SHARE), TimeShare(SHARE)
        self.throttled_log = ThrottledLog(log, burst=5)
        self._ears = InputLimits()
        self._hosts: dict[str, None] = {}
        self._news: dict[tuple[str, str], None] = {}
        self._is_news = asyncio.Event()
        self._nodes: dict[str, Node] = {}
        self._todo: asyncio.Queue[tuple[Node | None, str, tuple[Any, ...]]] = (
            asyncio.Queue()
        )
        self._tasks: set[asyncio.Task[Any]] = set()

        # Process ID of the master; another ID means that the master was restarted.
        self._pid: object = None
        self.is_registered = False
        """Whether this simulator's entries are registered at the master."""
        self._doubted: Node | None = None

    async def start(self) -> None:
        """Connect to the master.

        Raises
        ------
        PeerError
            The master cannot be reached; `wait` keeps trying.
        """
        _, _, self._pid = api.answer(await self._ask("getPid", "/botyard"))
        await self._begin()
        self.wait()

    async def _begin(self) -> None:
        """Register all entries at a master that does not know them."""
        # Set it before the nodes register, so that clients never see them with wall
        # time.
        if self._sim_time:
            await self._ask("setParam", "/botyard", "/use_sim_time", True)
        self.is_registered = True
        for node in self._nodes.values():
            for entry in node.entries:
                self._todo.put_nowait((node, *_split(entry.register())))

    async def settle(self) -> None:
        """Wait at most `SETTLE_S` until all queued calls to the master are made."""
        if self.is_registered:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_S):
                    await self._todo.join()

    def wait(self) -> None:
        """Start the tasks that watch the master and make queued calls."""
        # Three tasks: a slow query for publishers must not delay the queue or the
        # watchdog.
        self.spawn(self._work())
        self.spawn(self._watch())
        self.spawn(self._hear_news())

    async def _ask(self, method: str, *args: Any) -> Any:
        """Call the master, and remember the address from which it answers."""
        value, host = await ask(self.master_uri, method, *args)
        self._hosts.pop(host, None)
        self._hosts[host] = None
        # A host name may resolve to several addresses; keep the latest ones.
        if len(self._hosts) > MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return value

    def is_node(self, uri: str) -> bool:
        """Return whether a node of this simulator has this URI.

        Parameters
        ----------
        uri : str
            URI of an XML-RPC server, as the master lists it.
        """
        return any(node.uri == uri for node in self._nodes.values())

    def doubt(self, node: Node) -> None:
        """Schedule a check whether a node is still registered at the master (`_watch` makes it)."""
        self._doubted = node

    def denial(self, peer: Peer) -> str:
        """Return the reason why a peer may not request a shutdown; empty if it may."""
        return self._denial(peer.is_local or peer.address in self._hosts)

    def ask_for_publishers(self, node: Node, topic: str) -> None:
        """Ask the master soon for a topic's publishers, because a peer reports a change.

        Several notifications cause one query.

        The list in the notification itself is not used: any peer could send it.

        Parameters
        ----------
        node : Node
            Node that subscribes.
        topic : str
            Absolute name of the topic.
        """
        self._news[node.name, topic] = None
        self._is_news.set()

    async def _hear_news(self) -> None:
        while True:
            await self._is_news.wait()
            self._is_news.clear()

            while self._news:
                name, topic = next(iter(self._news))
                # Remove the entry before the query, so that a notification during it
                # causes a new one.
                del self._news[name, topic]
                node = self._nodes.get(name)
                if node is not None and topic in node.inputs and self.is_registered:
                    try:
                        await self._carry_out(
                            node, *_split(node.inputs[topic].register())
                        )
                    except PeerError as error:
                        self.throttled_log.log(
                            logging.WARNING, "ROS 1: publishers of %s: %s", topic, error
                        )
                        # Retry later: the master sends no further notification if this
                        # one is lost.
                        self.ask_for_publishers(node, topic)
                        await asyncio.sleep(MASTER_POLL_S)

                await asyncio.sleep(MIN_QUERY_INTERVAL_S)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a task, and keep a reference to it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        """Register everything again after the master was unreachable or replaced."""
        while True:
            await asyncio.sleep(MASTER_POLL_S)
            try:
                _, _, pid = api.answer(await self._ask("getPid", "/botyard"))
                # Another process ID means another master, even at the same address.
                if pid != self._pid or not self.is_registered:
                    log.info("ROS 1: connected to the master at %s", self.master_uri)
                    await self._begin()

                self._pid = pid
                await self._look_whether_known()
            except PeerError as error:
                if self.is_registered:
                    log.warning("ROS 1: lost the master: %s", error)
                self.is_registered = False

    async def _look_whether_known(self) -> None:
        """Register everything again if the master has forgotten a node.

        A master forgets a node when another node registers under its name. In this
        case, this simulator does not shut down, but registers again.
        """
        node, self._doubted = self._doubted, None
        if node is None or node.name not in self._nodes:
            return
        code, _, uri = api.answer(await self._ask("lookupNode", "/botyard", node.name))
        if code != 1 or uri != node.uri:
            log.warning(
                "ROS 1: the master no longer knows node %s: registering everything again",
                node.name,
            )
            await self._begin()

    def call_master(self, node: Node, method: str, args: tuple[Any, ...]) -> None:
        """Queue a call to the master.

        Without a master the call is dropped, because the next master gets all
        registrations.

        Parameters
        ----------
        node : Node
            Node in whose name the call is made.
        method : str
            Method of the master, such as ``registerPublisher``.
        args : tuple
            Arguments after the caller's name.
        """
        if self.is_registered:
            self._todo.put_nowait((node, method, args))

    async def _work(self) -> None:
        while True:
            node, method, args = await self._todo.get()
            try:
                await self._carry_out(node, method, args)
            except PeerError as error:
                self.throttled_log.log(logging.WARNING, "ROS 1: %s: %s", method, error)
            finally:
                self._todo.task_done()

    async def _carry_out(
        self, node: Node | None, method: str, args: tuple[Any, ...]
    ) -> None:
        caller = node.name if node is not None else "/botyard"
        code, status, value = api.answer(await self._ask(method, caller, *args))
        if code != 1:
            self.throttled_log.log(
                logging.WARNING,
                "ROS 1: the master refused %s: %s",
                method,
                status,
            )
        # The answer to ``registerSubscriber`` lists the current publishers.
        elif (
            method == "registerSubscriber"
            and node is not None
            and args[0] in node.inputs
        ):
            node.inputs[args[0]].update(value)

    def facts(self) -> Iterator[ClientFacts]:
        """Yield descriptions of the connected nodes, for operators."""
        return ros1_facts(
            itertools.chain.from_iterable(n.connections for n in self._nodes.values())
        )

    async def close(self) -> None:
        """Unregister everything at the master, and close all connections."""
        for node in self._nodes.values():
            for entry in node.entries:
                entry.close()

        # A master that does not answer must not delay the end for longer than this.
        if self.is_registered:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._todo.join()

        # Cancel the tasks after the unregistrations, which they carry out.
        for task in tuple(self._tasks):
            task.cancel()
        for node in self._nodes.values():
            node.close()
        self._nodes.clear()

    # -- interface of the graph

    def _node(self, name: str) -> Node:
        if name not in self._nodes:
            self._nodes[name] = Node(self, name)
        return self._nodes[name]

    def advertise(
        self,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> NodePublication:
        """Publish a topic.

        Parameters
        ----------
        node : str
            Absolute name of the node that publishes; it is created on first use.
        topic : Topic
            Name, type and queue length of the topic.
        fresh : callable
            Returns the last message of a latched topic, for new subscribers.
        changed : callable
            Called when subscribers connect or disconnect.
        """
        owner = self._node(node)
        made = owner.topics[topic.name] = NodePublication(
            owner, topic, self.types, fresh, changed
        )
        owner.call_master(*made.register())
        return made

    def listen(self, node: str, entry: Input) -> Subscriber:
        """Subscribe to a topic.

        Parameters
        ----------
        node : str
            Absolute name of the node that subscribes; it is created on first use.
        entry : Input
            Name and type of the topic, and the function that receives its messages.
        """
        owner = self._node(node)
        made = owner.inputs[entry.name] = Subscriber(
            owner, entry, self.types, self._ears
        )
        owner.call_master(*made.register())
        return made

    def serve(self, node: str, service: Service) -> NodeService:
        """Offer a service.

        Parameters
        ----------
        node : str
            Absolute name of the node that serves; it is created on first use.
        service : Service
            Name and type of the service, and the function that answers.
        """
        owner = self._node(node)
        made = owner.services[service.name] = NodeService(owner, service, self.types)
        owner.call_master(*made.register())
        return made


def _split(entry: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    return str(entry[0]), entry[1:]


__all__ = ["Ros1"]
