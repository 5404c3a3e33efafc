"""ROS master in the simulator (``--ros-master embedded``).

It serves `botyard.protocols.tcpros.master` on a port, and notifies nodes. A node that
registers names the address of its notifications, so it could aim them at a victim.
Therefore their number and rate are limited, only the newest of each kind is kept, and
nodes that did not answer last time wait for nodes that do.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from botyard.errors import PeerError
from botyard.interfaces.http_admission import source_of
from botyard.protocols.shares import Shares, cost
from botyard.protocols.tcpros import MASTER_PORT
from botyard.protocols.tcpros.http import ClientCall
from botyard.protocols.tcpros.master import Master, Notice
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.addresses import advertised_host
from botyard.servers.ros.xmlrpc import MAX_OWN_ANSWER, SHARE, RpcServer, converse
from botyard.servers.streampeer import Peer
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TimeShare

NOTIFY_WORKERS: Final = 8
"""Maximum number of nodes that are notified at the same time."""
SLOW_NOTIFY_WORKERS: Final = 2
"""Maximum number of concurrent notifications of nodes that did not answer the last one."""
CALL_RATE: Final = 200.0
"""Token bucket of notifications to all nodes: rate, 1/s."""
MAX_SLOW_NODES: Final = 4096
"""Maximum number of nodes to remember as not answering."""
MAX_OWED_BYTES: Final = 128 << 20
"""Maximum size of pending notifications, bytes.

Notifications caused by calls from one address have a share of it.
"""

log = logging.getLogger("botyard.ros")


class Ros1Master:
    """ROS master.

    Parameters
    ----------
    host : str
        Address to listen on.
    port : int
        TCP port to listen on.

    Raises
    ------
    PortError
        The port is taken.
    """

    def __init__(self, host: str, port: int = MASTER_PORT) -> None:
        self._turns = TimeShare(SHARE)
        self._rpc = RpcServer(host, port, self._call, self._turns, "the ROS master")
        named = advertised_host(host)
        self.uri = f"http://{named}:{self._rpc.port}/"
        self.master = Master(self.uri)
        self._todo: dict[str, dict[Notice, str]] = {}
        """Pending notifications of each node, with the causing caller's address."""
        self._kept = Shares(MAX_OWED_BYTES)
        """Memory budget of the pending notifications, shared by the addresses that cause them."""
        self._throttled_log = ThrottledLog(log)
        self._lines: tuple[deque[str], deque[str]] = (deque(), deque())
        self._workers = [0, 0]
        self._slow: dict[str, None] = {}
        self._rate = TokenBucket(CALL_RATE, CALL_RATE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start to serve."""
        await self._rpc.start()

    def close(self) -> None:
        """Stop serving."""
        self._rpc.close()
        for task in tuple(self._tasks):
            task.cancel()

    @property
    def owed(self) -> int:
        """Number of notifications that were not sent yet."""
        return sum(map(len, self._todo.values()))

    def _call(self, method: str, args: tuple[Any, ...], peer: Peer) -> Any:
        source = source_of(peer.address)
        # Limits for each address do not apply to this machine.
        answer = self.master.call(method, args, "" if peer.is_local else source)
        # ``system.multicall`` has an answer for each of its calls.
        if isinstance(answer, Iterator):
            return self._calls(answer, source)
        self._owe(source)
        return answer

    def _calls(self, answers: Iterator[Any], source: str) -> Iterator[Any]:
        for answer in answers:
            self._owe(source)
            yield answer

    def _owe(self, source: str) -> None:
        """Queue the notifications that a call has caused, as far as there is room."""
        notices, self.master.notices = self.master.notices, []
        for notice in notices:
            # The same notification is already pending; its arguments are made when it
            # is sent.
            if notice in self._todo.get(notice.uri, {}):
                continue
            if not self._kept.take(source, cost(*notice)):
                self._throttled_log.log(
                    logging.WARNING,
                    "ROS 1: dropped a notification to the node at %s: too many are pending",
                    notice.uri,
                )
                continue

            owed = self._todo.get(notice.uri)
            if owed is None:
                owed = self._todo[notice.uri] = {}
                self._queue(notice.uri)

            owed[notice] = source

    def _settle(self, owed: dict[Notice, str], notice: Notice) -> None:
        self._kept.give_back(owed.pop(notice), cost(*notice))

    # -- notification of nodes

    def _queue(self, uri: str) -> None:
        # Nodes that time out have their own workers and cannot delay responsive nodes.
        lane = int(uri in self._slow)
        self._lines[lane].append(uri)
        if self._workers[lane] < (NOTIFY_WORKERS, SLOW_NOTIFY_WORKERS)[lane]:
            self._workers[lane] += 1
            task = asyncio.ensure_future(self._notify_queue(lane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _notify_queue(self, lane: int) -> None:
        """Notify the nodes in a queue, one by one."""
        line = self._lines[lane]
        try:
            while line:
                await self._notify(line.popleft())
        finally:
            self._workers[lane] -= 1

    async def _notify(self, uri: str) -> None:
        """Send the pending notifications of a node in order.

        A node that cannot be reached misses all of them.
        """
        owed = self._todo[uri]
        try:
            while owed:
                await self._pace()
                # Remove the notification from the queue before the call, so that a change during
                # the call can queue it again.
                notice = next(iter(owed))
                self._settle(owed, notice)

                # Encoding the arguments is work on behalf of peers, so it is charged as
                # well.
                await self._turns.admit("")
                started = self._turns.clock()
                asking = ClientCall(
                    uri, notice.method, self.master.arguments(notice), MAX_OWN_ANSWER
                )
                self._turns.spend(self._turns.clock() - started)
                await converse(asking)

            # The node answered, so it moves to the fast queue.
            self._slow.pop(uri, None)
        except PeerError:
            self._slow[uri] = None
            if len(self._slow) > MAX_SLOW_NODES:
                del self._slow[next(iter(self._slow))]
        finally:
            for notice in tuple(owed):
                self._settle(owed, notice)
            del self._todo[uri]

    async def _pace(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._rate.take(loop.time()):
            await asyncio.sleep(1.0 / CALL_RATE)


__all__ = ["Ros1Master"]
