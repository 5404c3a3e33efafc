"""ROS 1:

incomplete requests, unread answers, and calls due to nodes are limited in bytes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import pytest

from botyard.protocols.tcpros import http, wire
from botyard.protocols.tcpros.master import Master
from botyard.servers.ros import ros1master, tcpros, xmlrpc
from botyard.servers.ros.ros1master import Ros1Master
from botyard.servers.ros.tcpros import Connection, TcprosServer
from botyard.servers.sockets import READ_SIZE
from botyard.servers.streampeer import Peer
from botyard.servers.timeshare import TimeShare
from tests.waiting import PATIENCE

HOSTILE, HONEST = "127.0.0.2", "127.0.0.3"


class Large:
    """A service with long answers."""

    name, type_name, md5 = "/map", "a/B", "0" * 32
    definition, latched, queue = "", False, 1

    def __init__(self) -> None:
        self.asked: list[Future[bytes]] = []
        self.is_slow = False

    def run(self, _body: bytes) -> bytes | Future[bytes]:
        if not self.is_slow:
            return bytes(2 << 20)
        self.asked.append(Future())
        return self.asked[-1]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.005)


async def idle(server: TcprosServer) -> None:
    """Wait until no call waits for a turn."""
    for _ in range(20):
        await until(lambda: server.turns.is_idle)
        await asyncio.sleep(0.005)


def serving(act: Callable[[TcprosServer, Large], Awaitable[None]]) -> None:
    async def main() -> None:
        service = Large()
        server = TcprosServer(
            "127.0.0.1", "/node", {}, {"/map": service}, TimeShare(1.0)
        )
        await server.start()
        try:
            await act(server, service)
        finally:
            server.close()
            for one in (*server._strangers, *server._settled):
                one.drop()

    asyncio.run(main())


async def client(port: int, address: str, data: bytes) -> socket.socket:
    peer = socket.socket()
    peer.bind((address, 0))
    peer.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(peer, ("127.0.0.1", port))
    await loop.sock_sendall(peer, data)
    return peer


HEADER = wire.encode_header(
    {"callerid": "/me", "service": "/map", "md5sum": "*", "persistent": "1"}
)
REQUEST = HEADER + wire.frame(b"")


async def read(peer: socket.socket, size: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while size > 0:
            size -= len(await asyncio.get_running_loop().sock_recv(peer, 1 << 20))


def test_answers_that_clients_of_one_address_do_not_read_have_a_limit() -> None:
    async def act(server: TcprosServer, _service: Large) -> None:
        crowd = [await client(server.port, HOSTILE, REQUEST) for _ in range(40)]
        await until(lambda: len(server._settled) == 40)
        await idle(server)
        unread = sum(
            one.outlet.unread for one in server._settled if one.outlet is not None
        )
        assert unread <= tcpros.MAX_UNREAD + (2 << 20) < 40 << 20
        honest = await client(server.port, HONEST, REQUEST)
        await read(honest, 2 << 20)
        # Each peer gets its answer once the others have theirs, or have left.
        for peer in crowd:
            peer.close() if peer is crowd[0] else await read(peer, 2 << 20)

        for peer in (*crowd, honest):
            peer.close()
        await until(lambda: not len(server))
        assert (
            not server._unread
            and not server._all_unread
            and not server._for_room
            and not server.held
        )

    serving(act)


def test_slow_services_answer_few_of_one_address_at_once() -> None:
    async def act(server: TcprosServer, service: Large) -> None:
        service.is_slow = True
        crowd = [await client(server.port, HOSTILE, REQUEST) for _ in range(20)]
        await until(lambda: len(server._settled) == 20)
        await idle(server)
        assert len(service.asked) == tcpros.MAX_ANSWERING
        for peer in crowd[: tcpros.MAX_ANSWERING]:
            peer.close()
        await until(lambda: len(server) == 20 - tcpros.MAX_ANSWERING)
        await idle(server)
        assert len(service.asked) == tcpros.MAX_ANSWERING, (
            "hanging up frees nothing: the service works on"
        )
        for future in service.asked[:]:
            future.set_result(b"x")
        await until(lambda: len(service.asked) == 2 * tcpros.MAX_ANSWERING)
        for peer in crowd:
            peer.close()

    serving(act)


def test_requests_that_are_not_complete_have_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcpros, "MAX_HELD", 1 << 20)

    async def act(server: TcprosServer, _service: Large) -> None:
        honest = await client(
            server.port, HONEST, HEADER + wire.frame(bytes(1000))[:-1]
        )
        await until(lambda: len(server._settled) == 1)
        crowd = [
            await client(server.port, HOSTILE, HEADER + wire.frame(bytes(60_000))[:-1])
            for _ in range(40)
        ]
        await until(lambda: len(server) < 41)
        await idle(server)
        assert (
            sum(one.holds for one in (*server._settled, *server._strangers))
            == server.held
            <= 1 << 20
        )
        await asyncio.get_running_loop().sock_sendall(honest, b"\0")
        await read(honest, 2 << 20)
        for peer in (*crowd, honest):
            peer.close()
        await until(lambda: not len(server))
        assert not server.held

    serving(act)


@pytest.mark.parametrize("kind", [Connection, xmlrpc._Rpc])
def test_what_waits_is_read_in_pieces(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default asyncio delivers 256 KiB at once."""
    sizes: list[int] = []
    received = kind.data_received

    def note(self: Any, data: bytes) -> None:
        sizes.append(len(data))
        received(self, data)

    monkeypatch.setattr(kind, "data_received", note)

    async def main() -> None:
        turns = TimeShare(1.0)
        server: Any = (
            TcprosServer("127.0.0.1", "/node", {}, {}, turns)
            if kind is Connection
            else xmlrpc.RpcServer("127.0.0.1", 0, lambda *_: 0, turns)
        )
        await server.start()
        data = (
            bytes(1 << 20)
            if kind is Connection
            else b"POST / HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n" + bytes(1 << 19)
        )
        peer = socket.create_connection(("127.0.0.1", server.port))
        peer.setblocking(False)
        peer.send(data)
        await until(lambda: bool(sizes))
        await asyncio.sleep(0)
        peer.close()
        server.close()

    asyncio.run(main())
    assert max(sizes) <= READ_SIZE


def test_calls_that_are_owed_to_nodes_have_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node that registers repeatedly from new addresses is notified each time that
    its registration was replaced.
    """
    monkeypatch.setattr(ros1master, "MAX_OWED_BYTES", 4 << 20)

    async def never(_call: http.ClientCall) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(ros1master, "converse", never)

    async def main() -> None:
        master = Ros1Master("127.0.0.1", 0)
        for n in range(3000):
            about = ("/n", "/s", "rosrpc://a:1", f"http://10.0.0.1:1/{n}{'x' * 900}")
            assert master._call("registerService", about, Peer(HOSTILE, False))[0] == 1

        assert (
            sum(
                len(n.uri) + len(n.about)
                for owed in master._todo.values()
                for n in owed
            )
            <= 1 << 20
        )
        before = master.owed
        for n in range(2):
            master._call(
                "registerService",
                ("/m", "/z", "rosrpc://a:1", f"http://h:{n + 1}/"),
                Peer(HONEST, False),
            )

        assert master.owed == before + 1, "others are told"
        master.close()
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(main())


def test_a_call_of_many_is_made_in_turns() -> None:
    """Each call takes its time; the calls due because of it are kept once."""
    master = Master("http://h:1/")
    for n in range(1000):
        master.call("registerSubscriber", (f"/s{n}", "/t", "a/B", f"http://h:{n + 1}/"))
    one = {
        "methodName": "registerPublisher",
        "params": ["/p", "/t", "a/B", "http://p:1/"],
    }
    answer = master.call("system.multicall", ([one] * 5000,))
    parts = http.xmlrpc.response(answer)
    most = 0
    for _, _part in zip(range(100), parts, strict=False):
        most = max(most, len(master.notices))
        master.notices.clear()

    assert most == 1000, "one call of them between two pieces"
