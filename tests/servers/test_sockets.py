"""Sockets of the servers send small messages at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from botyard.servers.ros.xmlrpc import RpcServer
from botyard.servers.sockets import listening
from botyard.servers.timeshare import TimeShare

DOORS: dict[str, Callable[[], socket.socket]] = {
    "HTTP": lambda: listening("127.0.0.1", [0], "the test"),
    "ROS 1": lambda: RpcServer("127.0.0.1", 0, lambda *_: 0, TimeShare(1.0))._socket,
}


@pytest.mark.parametrize("door", DOORS)
def test_an_answer_in_two_writes_does_not_wait(door: str) -> None:
    """With Nagle's algorithm the second write waits for the peer's delayed
    acknowledgement: 44 ms for each call on a kept connection.
    """

    async def scene() -> int:
        loop = asyncio.get_running_loop()
        taken: asyncio.Future[asyncio.BaseTransport] = loop.create_future()

        class Taken(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                taken.set_result(transport)

        bound = DOORS[door]()
        async with await loop.create_server(Taken, sock=bound):
            _, writer = await asyncio.open_connection(*bound.getsockname())
            transport = await taken
            one: socket.socket = transport.get_extra_info("socket")
            found = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            transport.close()
            writer.close()
            return found

    assert asyncio.run(asyncio.wait_for(scene(), 60.0))
