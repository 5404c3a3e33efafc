"""ROS 1 over loopback, with misbehaving peers: each affects only its own connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from botyard.control import Control
from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import PeerError
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.types import types
from botyard.protocols.tcpros import http, wire
from botyard.protocols.tcpros import xmlrpc as rpc
from botyard.servers import streampeer
from botyard.servers.ros import ros1input, tcpros, xmlrpc
from botyard.servers.ros.ros1 import Ros1
from botyard.servers.ros.ros1master import Ros1Master
from botyard.servers.ros.ros1node import shutdown_refusal
from botyard.servers.ros.xmlrpc import RpcServer, call
from botyard.servers.streampeer import Peer, StreamPeer
from botyard.servers.timeshare import TimeShare
from botyard.sim.simulation import Simulation
from tests.waiting import PATIENCE

TYPES = types()
BOOL = TYPES["std_msgs/Bool"]
EMPTY_MD5 = TYPES.service("std_srvs/Empty").md5


async def until(holds: Callable[[], Any]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.002)


OPENED: list[asyncio.StreamWriter] = []
"""What the test's own peers have opened; closed at its end."""


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    OPENED.append(writer)
    return reader, writer


def run(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test in a loop."""

    def sync() -> None:
        async def main() -> None:
            try:
                async with asyncio.timeout(PATIENCE):
                    await test()
            finally:
                while OPENED:
                    writer = OPENED.pop()
                    writer.transport.abort()

                await asyncio.sleep(0.01)

        asyncio.run(main())

    sync.__name__, sync.__doc__ = test.__name__, test.__doc__
    return sync


@contextlib.contextmanager
def limits(module: Any, **values: float) -> Iterator[None]:
    """Change limits for the block."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


class Served:
    """An XML-RPC server that adds, and records its callers."""

    def __init__(
        self, answer: Callable[..., Any] = lambda method, args, peer: [1, "", len(args)]
    ) -> None:
        self.peers: list[Peer] = []

        def remembered(method: str, args: tuple[Any, ...], peer: Peer) -> Any:
            self.peers.append(peer)
            return answer(method, args, peer)

        self.server = RpcServer("127.0.0.1", 0, remembered, TimeShare(0.5))
        self.uri = f"http://127.0.0.1:{self.server.port}/"

    async def __aenter__(self) -> Served:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        await until(lambda: not len(self.server))


async def said_to(port: int, data: bytes, until_end: bool = True) -> bytes:
    """Return a server's answer to bytes, up to the end of the connection."""
    reader, writer = await connected(port)
    try:
        writer.write(data)
        return await reader.read() if until_end else await reader.read(65536)
    finally:
        writer.transport.abort()


def request(method: str, *args: Any, close: bool = False) -> bytes:
    body = rpc.encode_call(method, args)
    ending = b"Connection: close\r\n" if close else b""
    return (
        b"POST / HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n"
        % (ending, len(body))
        + body
    )


# -- incoming calls


@run
async def test_calls_are_answered_and_connections_kept() -> None:
    async with Served() as served:
        assert await call(served.uri, "m", "/me", 2) == [1, "", 2]
        reader, writer = await connected(served.server.port)
        for n in range(3):
            writer.write(request("m", *range(n)))
            asking = http.ClientCall(served.uri, "m", ())
            while not asking.is_complete:
                asking.feed_bytes(await reader.read(100))
            assert asking.value() == [1, "", n]

        writer.write(request("a") + request("b", 1) + request("c", close=True))
        assert (await reader.read()).count(b"200 OK") == 3
        writer.close()
        assert served.peers[0][:2] == ("127.0.0.1", True)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"405"),
        (b"\0\1\2 rubbish\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 15000000\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n<lol>", b"400"),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nOrigin: "
            b"http://evil.example\r\nContent-Length: 5\r\n\r\n<lol>",
            b"403",
        ),
    ],
)
def test_what_is_no_call_is_refused_and_the_connection_ends(
    data: bytes, status: bytes
) -> None:
    @run
    async def test() -> None:
        async with Served() as served:
            assert (await said_to(served.server.port, data)).startswith(
                b"HTTP/1.1 " + status
            )
            assert not served.peers
            assert await call(served.uri, "m") == [1, "", 0], "others are served"

    test()


@run
async def test_a_long_call_is_read_in_slices_and_others_are_served_in_between() -> None:
    """The loop is never blocked for longer than a slice, for a call of any length; the
    limit of values ends it.
    """
    held: list[float] = []

    async def watch() -> None:
        loop = asyncio.get_running_loop()
        while True:
            begin = loop.time()
            await asyncio.sleep(0)
            held.append(loop.time() - begin)

    async with Served() as served:
        slices = 0
        reader = rpc.Reader.feed

        def counted(self: rpc.Reader, data: bytes) -> None:
            nonlocal slices
            slices += 1
            assert len(data) <= StreamPeer.piece + http.MAX_HEAD
            reader(self, data)

        rpc.Reader.feed = counted  # type: ignore[method-assign]
        watcher = asyncio.ensure_future(watch())
        try:
            assert await call(served.uri, "m", "/me", ["x" * 100] * 10_000) == [
                1,
                "",
                2,
            ]
        finally:
            watcher.cancel()
            rpc.Reader.feed = reader  # type: ignore[method-assign]

        assert slices > 100 and len(held) > 10


@run
async def test_long_answers_wait_for_each_other_and_for_their_readers() -> None:
    """Two at a time:

    hundreds of callers that never read cost the memory of two long answers.
    """
    # The answer is longer than the system buffers for a peer that does not read.
    value = ["x" * 1000] * 12_000
    async with Served(lambda *_: value) as served:
        greedy = [await connected(served.server.port) for _ in range(10)]
        for reader, writer in greedy:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(request("m"))

        await until(lambda: len(served.peers) == 10)
        await until(lambda: served.server._large.total() == xmlrpc.MAX_LARGE)
        for _ in range(200):
            await asyncio.sleep(0)
        assert served.server._large.total() == xmlrpc.MAX_LARGE
        connections = list(served.server._connections)
        assert all(
            len(c._body) < xmlrpc.LARGE_ANSWER + 100_000
            for c in connections
            if not c._is_large
        )
        for _, writer in greedy:
            writer.transport.abort()
        assert await call_large(served.uri) == value
        await until(lambda: not served.server._large)


@run
async def test_who_does_not_read_long_answers_holds_up_nobody_at_another_address() -> (
    None
):
    value = ["x" * 1000] * 12_000
    async with Served(lambda *_: value) as served:
        greedy = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", served.server.port, local_addr=("127.0.0.2", 0)
            )
            greedy.append(writer)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(request("m"))

        await until(lambda: served.server._large == {"127.0.0.2": xmlrpc.MAX_LARGE})
        await until(lambda: len(served.server._for_large) == 2)
        assert await call_large(served.uri) == value, "while they hold theirs"
        assert served.server._large == {"127.0.0.2": xmlrpc.MAX_LARGE}
        for writer in greedy[:1]:
            writer.transport.abort()
        await until(lambda: len(served.server._for_large) < 2)
        for writer in greedy:
            writer.transport.abort()
        await until(lambda: not served.server._large and not served.server._for_large)


@run
async def test_long_answers_go_to_so_many_addresses_at_a_time() -> None:
    value = ["x" * 1000] * 12_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xmlrpc, "MAX_LARGE_SOURCES", 1)
        await one_address_at_a_time(value)


async def one_address_at_a_time(value: list[str]) -> None:
    async with Served(lambda *_: value) as served:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", served.server.port, local_addr=("127.0.0.2", 0)
        )
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request("m"))
        await until(lambda: served.server._large == {"127.0.0.2": 1})
        waits = asyncio.ensure_future(call_large(served.uri))
        await until(lambda: len(served.server._for_large) == 1)
        writer.transport.abort()
        assert await waits == value


async def call_large(uri: str) -> Any:
    asking = http.ClientCall(uri, "m", (), 1 << 25)
    reader, writer = await connected(asking.address[1])
    writer.write(asking.request)
    while not asking.is_complete:
        asking.feed_bytes(await reader.read(65536))
    writer.transport.abort()
    return asking.value()


@run
async def test_a_caller_that_does_not_read_is_asked_no_further() -> None:
    async with Served(lambda *_: ["x" * 1000] * 100) as served:
        reader, writer = await connected(served.server.port)
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
        )
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request("m") * 5000)
        await until(
            lambda: any(
                c.outlet.is_full and c.inbox for c in served.server._connections
            )
        )
        before = len(served.peers)
        for _ in range(500):
            await asyncio.sleep(0)
        assert len(served.peers) == before < 200
        writer.transport.abort()


@run
async def test_the_connection_that_was_silent_for_longest_goes() -> None:
    with limits(xmlrpc, MAX_EACH=5):
        async with Served() as served:
            first = await connected(served.server.port)
            first[1].write(request("m"))
            await first[0].read(10)
            others = [await connected(served.server.port) for _ in range(4)]
            await until(lambda: len(served.server) == 5)
            first[1].write(request("m"))
            await until(lambda: len(served.peers) == 2)
            others.append(await connected(served.server.port))
            assert await others[0][0].read() == b"", "the one that never said anything"
            await until(lambda: len(served.server) == 5)
            first[1].write(request("m"))
            await until(lambda: len(served.peers) == 3)
            for _, writer in [first, *others]:
                writer.transport.abort()


@run
async def test_what_is_switched_off_does_not_wait_for_those_who_do_not_read() -> None:
    with limits(streampeer, CLOSE_TIMEOUT_S=0.05):
        async with World() as world:
            world.once = SimpleNamespace(ros1=b"m" * (16 << 20))
            reader, writer = await subscribed(world)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            await until(
                lambda: (
                    world.topic.readers
                    and all(r.outlet.is_full for r in world.topic.readers)
                )
            )
            await connected(world.node._server.port)
            await connected(int(world.node.uri.rsplit(":", 1)[1].strip("/")))
            world.node.close()
            await until(
                lambda: not len(world.node._server) and not len(world.node._rpc)
            )
            writer.transport.abort()


@run
async def test_half_calls_end() -> None:
    with limits(xmlrpc, CALL_TIME=0.05):
        async with Served() as served:
            with pytest.raises((ConnectionError, AssertionError)):
                assert await said_to(served.server.port, request("m")[:-5]) == b"never"
            assert not served.peers and served.server.held == 0


@run
async def test_calls_under_way_have_a_bound_together() -> None:
    with limits(xmlrpc, MAX_UNDER_WAY=50_000):
        async with Served() as served:
            head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
            half = (
                head + b"<methodCall><methodName>m</methodName><params><param><value>"
            )
            writers = []
            for _ in range(4):
                _, writer = await connected(served.server.port)
                writer.write(half + b"x" * 16_000)
                writers.append(writer)

            await until(lambda: len(served.server) == 3)
            assert served.server.held < 50_000
            for writer in writers:
                writer.transport.abort()
            await until(lambda: served.server.held == 0)
            assert await call(served.uri, "m") == [1, "", 0]


@run
async def test_who_holds_calls_back_goes_and_not_who_comes_with_a_short_one() -> None:
    with limits(xmlrpc, MAX_UNDER_WAY=50_000):
        async with Served() as served:
            half = (
                b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: "
                b"100000\r\n\r\n<methodCall><methodName>m</methodName>"
            )
            for size in (12_400, 12_400, 12_400, 12_390):
                _, writer = await connected(served.server.port)
                writer.write(half + b" " * (size - len(half)))

            await until(lambda: served.server.held == 49_590)
            for _ in range(5):
                assert await call(served.uri, "m", "x" * 500) == [1, "", 1]
            assert len(served.server) >= 3, "the others stay"


@run
async def test_what_all_calls_take_is_bounded() -> None:
    """By a simulated clock:

    each turn costs 10 ms, and calls have a tenth of the time.
    """
    now = 0.0

    def clock() -> float:
        return now

    class Busy:
        source, own_time = "a", None
        barrier = ErrorBarrier(logging.getLogger("t"), "x")
        turns_taken = 0

        def turn(self) -> bool:
            nonlocal now
            now += 0.01
            self.turns_taken += 1
            return True

    turns, busy = TimeShare(0.1, clock), Busy()
    loop = asyncio.get_running_loop()
    begin = loop.time()
    turns.wants(busy)
    await asyncio.sleep(0.2)
    took = loop.time() - begin
    turns.forget(busy)
    assert 0.01 * busy.turns_taken <= 0.1 * took + 0.05 + 0.02


@run
async def test_each_address_has_its_part_of_the_time() -> None:
    order: list[str] = []

    class Busy:
        own_time = None
        barrier = ErrorBarrier(logging.getLogger("t"), "x")

        def __init__(self, source: str) -> None:
            self.source = source

        def turn(self) -> bool:
            order.append(self.source)
            return len(order) < 60

    turns = TimeShare(1.0, lambda: 0.0)
    # Mark the share as working, so that no worker gets a turn before all have asked.
    turns._is_working = True
    workers = [Busy("many") for _ in range(50)] + [Busy("one")]
    for worker in workers:
        turns.wants(worker)
    turns._is_working = False
    turns._work()
    assert order[:40].count("one") == 20


# -- outgoing calls


class Peerless:
    """A node that gives a configured answer."""

    def __init__(self, answers: Callable[[bytes], bytes], keeps: bool = True) -> None:
        self._answers, self._keeps = answers, keeps
        self.calls: list[bytes] = []

    async def __aenter__(self) -> Peerless:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}/"
        return self

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        OPENED.append(writer)
        try:
            data = b""
            while b"</methodCall>" not in data and (more := await reader.read(65536)):
                data += more
            self.calls.append(data)
            writer.write(self._answers(data))
            await writer.drain()
            if self._keeps:
                await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def __aexit__(self, *_: object) -> None:
        self._server.close()


def plain(value: Any, head: bytes = b"HTTP/1.1 200 OK\r\n") -> bytes:
    body = http.encode_response(value)
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


@run
async def test_a_node_that_keeps_the_connection_answers() -> None:
    """As roscpp: HTTP/1.1, Content-Length, and the connection stays open."""
    body = http.encode_response([1, "", 3])
    chunks = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
        % (len(body), body)
    )
    for answer in (plain([1, "", 3]), chunks):
        async with Peerless(lambda _data, answer=answer: answer) as node:  # type: ignore[misc]
            loop = asyncio.get_running_loop()
            begin = loop.time()
            assert await call(node.uri, "getPid", "/me") == [1, "", 3]
            assert loop.time() - begin < xmlrpc.CALL_TIMEOUT, (
                "it is not waited for the end of the connection"
            )


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n" + b" " * (2 << 20),
            "at most 1048576 bytes",
        ),
        (b"nonsense\r\n\r\n", "not a valid HTTP response"),
        (b"", "ended before"),
    ],
)
def test_answers_have_bounds(answer: bytes, complaint: str) -> None:
    @run
    async def test() -> None:
        async with Peerless(lambda _: answer, keeps=False) as node:
            with pytest.raises(PeerError, match=complaint):
                await call(node.uri, "m")

    test()


@run
async def test_a_name_that_is_none_is_an_error_like_others() -> None:
    for uri in (
        "http://no-such-host.invalid:1/",
        f"http://{'a' * 70}.example:1/",
        "http://127.0.0.1:1/",
    ):
        with pytest.raises(PeerError, match=r"cannot be reached|does not answer"):
            await call(uri, "m")


# -- a node and a master


class World:
    """A master of ours, and a node with a topic, an input and a service."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.taken: list[Any] = []
        self.made = 0
        self.served = 0
        self.killed = 0

    async def __aenter__(self) -> World:
        self.master = Ros1Master("127.0.0.1", 0)
        await self.master.start()

        def kill() -> None:
            self.killed += 1

        control = Control(Simulation(), **self.options)
        self.ros = Ros1(
            TYPES,
            self.master.uri,
            on_shutdown=kill,
            sim_time=False,
            denial=partial(shutdown_refusal, control),
        )
        await self.ros.start()
        self.latched = BOOL(data=True)

        def fresh() -> Any:
            self.made += 1
            return self.once

        self.once = SimpleNamespace(
            ros1=TYPES.encode_ros1(BOOL(data=True), "std_msgs/Bool")
        )
        topic = Topic("/state", "std_msgs/Bool", lambda _: None, "", version=lambda: 0)
        self.topic = self.ros.advertise("/sim", topic, fresh, lambda: None)
        self.input = self.ros.listen(
            "/sim", Input("/cmd", "std_msgs/Bool", self.taken.append, "")
        )

        def serve(_request: Any) -> Any:
            self.served += 1
            return TYPES.empty("std_srvs/EmptyResponse")

        self.ros.serve("/sim", Service("/go", "std_srvs/Empty", serve, ""))
        self.node = self.ros._nodes["/sim"]
        await until(
            lambda: self.master.master.call("lookupService", ("/t", "/go"))[0] == 1
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.ros.close()
        self.master.close()

    def publish(self, caller: str, uri: Any) -> list[Any]:
        return self.master._call(
            "registerPublisher", (caller, "/cmd", "std_msgs/Bool", uri), Peer("", True)
        )


async def publisher(values: list[bool]) -> tuple[asyncio.Server, int]:
    """Act as the TCPROS side of a publishing node."""
    _, md5 = TYPES.definition("std_msgs/Bool")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        OPENED.append(writer)
        await reader.read(4096)
        writer.write(
            wire.encode_header(
                {"callerid": "/pub\n", "md5sum": md5, "type": "std_msgs/Bool"}
            )
        )
        for value in values:
            writer.write(
                wire.frame(TYPES.encode_ros1(BOOL(data=value), "std_msgs/Bool"))
            )

        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


@run
async def test_a_publisher_that_keeps_connections_is_heard() -> None:
    async with World() as world:
        server, port = await publisher([True, False])
        async with Peerless(
            lambda _: plain([1, "", ["TCPROS", "127.0.0.1", port]])
        ) as node:
            world.publish("/pub", node.uri)
            await until(lambda: len(world.taken) == 2)

        server.close()


@run
async def test_publisher_update_is_only_news() -> None:
    """Its content is not trusted:

    the node asks the master, and connects to no other address.
    """
    refuses = plain([0, "", 0])
    async with (
        World() as world,
        Peerless(lambda _: refuses) as victim,
        Peerless(lambda _: refuses) as listed,
    ):
        world.publish("/listed", listed.uri)
        await until(lambda: listed.calls)
        for _ in range(20):
            await call(
                world.node.uri,
                "publisherUpdate",
                "/master",
                "/cmd",
                [victim.uri, 5, None],
            )
            await call(
                world.node.uri, "publisherUpdate", "/master", "/nothing", [victim.uri]
            )

        await until(lambda: not world.ros._news)
        assert world.input.publishers == [listed.uri] and not victim.calls
        world.master._call(
            "unregisterPublisher", ("/listed", "/cmd", listed.uri), Peer("", True)
        )
        await until(lambda: world.input.publishers == [])


@run
async def test_a_bad_address_at_another_master_poisons_nothing() -> None:
    async with World() as world:
        server, port = await publisher([True])
        async with Peerless(
            lambda _: plain([1, "", ["TCPROS", "127.0.0.1", port]])
        ) as node:
            world.input.update(
                [5, None, ["x"], "nonsense", "http://nowhere", {"a": 1}, node.uri]
            )
            await until(lambda: world.taken)
            assert world.input.publishers == [node.uri]
            world.input.update("http://no.list:1/")
            assert world.input.publishers == []

        server.close()


@pytest.mark.parametrize(
    "protocol",
    [
        5,
        [],
        ["UDPROS", "h", 1],
        ["TCPROS"],
        ["TCPROS", 5, 5],
        ["TCPROS", "h", "5"],
        ["TCPROS", "h", 99999],
        ["TCPROS", "", 5],
    ],
)
def test_a_publisher_that_says_nonsense(protocol: Any) -> None:
    @run
    async def test() -> None:
        async with (
            World() as world,
            Peerless(lambda _: plain([1, "", protocol]), keeps=False) as node,
        ):
            world.publish("/pub", node.uri)
            # The node retries after the refusal.
            await until(lambda: len(node.calls) >= 2)

    test()


@run
async def test_few_publishers_are_tried_at_a_time_and_the_others_have_their_turn() -> (
    None
):
    async with World() as world:
        server, port = await publisher([True])
        async with Peerless(
            lambda _: plain([1, "", ["TCPROS", "127.0.0.1", port]])
        ) as node:
            dead = [f"http://127.0.0.1:1/{i}" for i in range(100)]
            world.input.update([*dead, node.uri])
            assert len(world.input.publishers) == ros1input.MAX_PUBLISHERS
            await until(lambda: world.taken)
            assert len(world.input.publishers) <= ros1input.MAX_PUBLISHERS

        server.close()


@run
async def test_silent_publishers_make_place_for_those_who_wait() -> None:
    silent_server, silent_port = await publisher([])
    server, port = await publisher([True])
    with limits(ros1input, MAX_PUBLISHERS=2, SILENT_TIMEOUT_S=0.1):
        async with (
            World() as world,
            Peerless(
                lambda _: plain([1, "", ["TCPROS", "127.0.0.1", silent_port]])
            ) as fake,
            Peerless(lambda _: plain([1, "", ["TCPROS", "127.0.0.1", port]])) as node,
        ):
            world.input.update([*(f"{fake.uri}{i}" for i in range(6)), node.uri])
            await until(lambda: world.taken)
            assert len(world.input.publishers) <= 2

    silent_server.close()
    server.close()


@run
async def test_nobody_takes_the_names_of_the_simulators_own_nodes() -> None:
    async with World() as world:
        world.master.master.is_own = world.ros.is_node
        stranger = ("/sim", "/zzz", "std_msgs/String", "http://127.0.0.1:1/")
        answer = world.master._call("registerPublisher", stranger, Peer("", True))
        assert answer[0] == -1 and "node of the simulator" in answer[1]
        assert (
            world.master.master.call("lookupNode", ("/t", "/sim"))[2] == world.node.uri
        )
        assert world.master.master.call("lookupService", ("/t", "/go"))[0] == 1
        assert not world.killed


@run
async def test_a_node_that_goes_on_although_its_name_was_taken_registers_again() -> (
    None
):
    """As under --read-only: the master has forgotten it and asks it to shut down."""
    async with World(read_only=True) as world:
        stranger = ("/sim", "/zzz", "std_msgs/String", "http://127.0.0.1:1/")
        assert world.master._call("registerPublisher", stranger, Peer("", True))[0] == 1
        assert world.master.master.call("lookupService", ("/t", "/go"))[0] != 1
        await until(
            lambda: world.master.master.call("lookupService", ("/t", "/go"))[0] == 1
        )
        assert (
            world.master.master.call("lookupNode", ("/t", "/sim"))[2] == world.node.uri
        )
        assert not world.killed


@pytest.mark.parametrize(
    ("options", "peer", "obeyed"),
    [
        ({}, Peer("127.0.0.1", True), True),
        ({}, Peer("203.0.113.5", False), False),
        ({"allow_exit": True}, Peer("203.0.113.5", False), True),
        ({"read_only": True}, Peer("127.0.0.1", True), False),
        ({"read_only": True, "allow_exit": True}, Peer("127.0.0.1", True), False),
    ],
)
def test_who_may_end_the_interface(
    options: dict[str, bool], peer: Peer, obeyed: bool
) -> None:
    @run
    async def test() -> None:
        async with World(**options) as world:
            answer = world.node._call("shutdown", ("/who", "go"), peer)
            assert (answer[0] == 1, world.killed) == (obeyed, int(obeyed))
            # The address belongs to the master, so its shutdown is obeyed.
            world.ros._hosts["203.0.113.5"] = None
            world.node._call("shutdown", ("/who", "go"), Peer("203.0.113.5", False))
            assert world.killed == int(obeyed) + (not options.get("read_only"))

    test()


@run
async def test_the_slave_api_checks_what_it_is_given() -> None:
    async with World() as world:
        for method, args in (
            ("requestTopic", ("/me", "/state", "TCPROS")),
            ("requestTopic", ("/me", ["/state"], [["TCPROS"]])),
            ("requestTopic", ("/me",)),
            ("_shutdown", ()),
            ("getPid", (5,)),
            ("shutdown", ()),
            ("publisherUpdate", ("/me", 5, [])),
            ("close", ()),
        ):
            assert (await call(world.node.uri, method, *args))[0] == -1, method

        assert (
            await call(
                world.node.uri,
                "requestTopic",
                "/me",
                "/state",
                [["UDPROS"], ["TCPROS"]],
            )
        )[0] == 1
        assert world.killed == 0


async def subscribed(
    world: World, **more: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await connected(world.node._server.port)
    writer.write(
        wire.encode_header(
            {"callerid": "/me", "topic": "/state", "md5sum": "*", **more}
        )
    )
    return reader, writer


@run
async def test_subscribers_and_services_are_served() -> None:
    async with World() as world:
        reader, writer = await subscribed(world)
        size = struct.unpack("<I", await reader.readexactly(4))[0]
        assert wire.decode_header(await reader.readexactly(size))["topic"] == "/state"
        assert await reader.readexactly(5) == wire.frame(b"\1")
        # Input from a subscriber must be ignored.
        writer.write(b"\xff" * 100_000)
        world.topic.send(world.once)
        assert await reader.readexactly(5) == wire.frame(b"\1")
        writer.close()
        await until(lambda: not world.topic.readers)
        reader, writer = await connected(world.node._server.port)
        writer.write(
            wire.encode_header(
                {"service": "/go", "md5sum": EMPTY_MD5, "persistent": "1"}
            )
            + wire.frame(b"") * 1000
        )
        while (
            not (await reader.read(65536)).endswith(b"\1\0\0\0\0")
            or world.served < 1000
        ):
            pass

        writer.close()


@run
async def test_messages_with_headers_are_numbered_by_topic() -> None:
    """``seq`` is "consecutively increasing" (std_msgs/Header); publishers of roscpp and
    rospy set it.
    """
    kind = "nav_msgs/Odometry"
    message = SimpleNamespace(ros1=TYPES.encode_ros1(TYPES.blank(kind), kind))
    async with World() as world:
        topics = [
            world.ros.advertise(
                "/sim",
                Topic(name, kind, lambda _: None, ""),
                lambda: None,
                lambda: None,
            )
            for name in ("/a", "/b")
        ]
        readers = []
        for topic in topics:
            reader, _ = await subscribed(world, topic=topic.name)
            await reader.readexactly(
                struct.unpack("<I", await reader.readexactly(4))[0]
            )
            readers.append(reader)

        for topic in (topics[0], topics[1], topics[0], topics[0]):
            topic.send(message)
        for reader, numbers in zip(readers, ([1, 2, 3], [1]), strict=True):
            for number in numbers:
                found = TYPES.decode_ros1(
                    await reader.readexactly(
                        struct.unpack("<I", await reader.readexactly(4))[0]
                    ),
                    kind,
                )
                assert found.header.seq == number
                found.header.seq = 0
                assert TYPES.encode_ros1(found, kind) == message.ros1


def test_which_messages_begin_with_a_header() -> None:
    for kind, expected in (
        ("nav_msgs/Odometry", True),
        ("tf2_msgs/TFMessage", False),
        ("std_msgs/Header", False),
        ("std_msgs/Empty", False),
    ):
        assert TYPES.begins_with_header(kind) is expected, kind


@run
async def test_frames_that_announce_much_cost_little() -> None:
    async with World() as world:
        port = world.node._server.port
        said = await said_to(port, struct.pack("<I", 100 << 20))
        assert b"at most 65536" in said
        header = wire.encode_header(
            {"service": "/go", "md5sum": "*", "persistent": "1"}
        )
        assert b"at most 65536" in await said_to(
            port, header + struct.pack("<I", 100 << 20)
        )


@run
async def test_strangers_are_few_and_have_little_time() -> None:
    with limits(tcpros, MAX_STRANGERS_EACH=10, HEADER_TIME=0.3):
        async with World() as world:
            idle = [await connected(world.node._server.port) for _ in range(30)]
            reader, _writer = await subscribed(world)
            assert len(await reader.read(4)) == 4, "who says what he wants is served"
            await until(lambda: len(world.node._server) <= 11)
            await until(lambda: len(world.node._server) == 1)
            assert len(world.topic.readers) == 1
            for _, w in idle:
                w.transport.abort()


@run
async def test_subscribers_have_a_bound_and_those_that_are_there_stay() -> None:
    with limits(tcpros, MAX_EACH=5):
        async with World() as world:
            first = [await subscribed(world) for _ in range(5)]
            await until(lambda: len(world.topic.readers) == 5)
            late, _ = await subscribed(world)
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await late.readexactly(4)
            assert len(world.topic.readers) == 5
            for _, writer in first:
                writer.transport.abort()
            await until(lambda: not world.topic.readers)
            again, _ = await subscribed(world)
            assert await again.readexactly(4)


@run
async def test_a_client_that_does_not_read_is_not_served_further() -> None:
    """A persistent client that sends requests and never reads:

    its answers do not accumulate.
    """
    async with World() as world:
        reader, writer = await connected(world.node._server.port)
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
        )
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        header = wire.encode_header(
            {"service": "/long", "md5sum": "*", "persistent": "1"}
        )
        answer = b"x" * 100_000
        count = 0

        def long(_body: bytes) -> bytes:
            nonlocal count
            count += 1
            return answer

        offer = SimpleNamespace(name="/long", type_name="a/B", md5="*", run=long)
        world.node.services["/long"] = offer  # type: ignore[assignment]
        writer.write(header + wire.frame(b"") * 50_000)
        await until(
            lambda: count and any(c.outlet.is_full for c in world.node._server._settled)
        )
        before = count
        for _ in range(300):
            await asyncio.sleep(0)
        assert count == before < 200
        del world.node.services["/long"]
        writer.transport.abort()


@run
async def test_a_slow_subscriber_costs_a_piece_and_not_a_message() -> None:
    """A latched map is one object for any number of slow subscribers."""
    async with World() as world:
        world.once = SimpleNamespace(ros1=b"m" * (4 << 20))
        readers = []
        for _ in range(5):
            reader, writer = await connected(world.node._server.port)
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
            )
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(wire.encode_header({"topic": "/state", "md5sum": "*"}))
            readers.append(writer)

        await until(
            lambda: (
                len(world.topic.readers) == 5
                and all(r.outlet.is_full for r in world.topic.readers)
            )
        )
        assert all(
            r.transport.get_write_buffer_size() <= 128 << 10
            for r in world.topic.readers
        )
        assert len({id(r.outlet._pieces[0].obj) for r in world.topic.readers}) == 1, (
            "all have the same bytes"
        )
        for writer in readers:
            writer.transport.abort()


def test_names_forge_no_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    @run
    async def test() -> None:
        async with World() as world:
            evil = "/x\n2026 ERROR forged \x1b[2J"
            await said_to(
                world.node._server.port,
                wire.encode_header({"callerid": evil, "topic": evil, "type": evil}),
            )
            await call(world.node.uri, "shutdown", "/x", evil)
            await call(world.node.uri, "shutdown", evil, "x")
            async with Peerless(lambda _: plain([0, evil, 0])) as node:
                world.publish("/pub", node.uri)
                await until(lambda: node.calls)

    with caplog.at_level(logging.DEBUG):
        test()
    texts = [r.getMessage() for r in caplog.records]
    assert any("refused" in t for t in texts) and any(
        "requested shutdown" in t for t in texts
    )
    assert all(t.isprintable() for t in texts), [
        t for t in texts if not t.isprintable()
    ]


def test_refusals_are_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    @run
    async def test() -> None:
        async with World() as world:
            for _ in range(50):
                await said_to(
                    world.node._server.port, wire.encode_header({"topic": "/none"})
                )
                await said_to(
                    int(world.node.uri.rsplit(":", 1)[1].strip("/")), b"rubbish\r\n\r\n"
                )

    with caplog.at_level(logging.WARNING):
        test()
    assert len([r for r in caplog.records if "refused" in r.getMessage()]) < 20


@run
async def test_the_master_calls_few_at_a_time_and_dead_nodes_hold_up_nobody() -> None:
    master = Ros1Master("127.0.0.1", 0)
    await master.start()
    async with Peerless(lambda _: plain([1, "", 0])) as alive:
        for i in range(200):
            master._call(
                "registerSubscriber",
                (f"/dead{i}", "/t", "*", f"http://127.0.0.1:1/{i}"),
                Peer("", True),
            )

        master._call(
            "registerSubscriber", ("/alive", "/t", "*", alive.uri), Peer("", True)
        )
        for _ in range(20):
            master._call(
                "registerPublisher",
                ("/p", "/t", "a/B", "http://127.0.0.1:2/"),
                Peer("", True),
            )

        assert master.owed == 201, "the newest of each kind is enough"
        assert sum(master._workers) <= 8
        await until(lambda: alive.calls)
        await until(lambda: master.owed == 0)
        master._call(
            "registerPublisher",
            ("/q", "/t", "a/B", "http://127.0.0.1:2/"),
            Peer("", True),
        )
        assert len(master._lines[1]) + master._workers[1] >= 198, (
            "those that did not answer wait apart"
        )
        await until(lambda: len(alive.calls) == 2)

    master.close()


@run
async def test_when_all_is_told_the_master_knows_all() -> None:
    async with World() as world:
        for k in range(30):
            topic = Topic(
                f"/more{k}", "std_msgs/Bool", lambda _: None, "", version=lambda: 0
            )
            world.ros.advertise("/sim", topic, lambda: world.once, lambda: None)

        await world.ros.settle()
        _, _, (published, _, _) = world.master.master.call("getSystemState", ("/t",))
        assert {f"/more{k}" for k in range(30)} <= {name for name, _ in published}
