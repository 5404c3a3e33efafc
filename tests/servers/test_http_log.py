"""Messages that peers provoke in the HTTP server's libraries are logged once a second,
without tracebacks.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from botyard.servers.sockets import listening
from botyard.servers.web.http import HttpServer

ASK = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
NOT_UTF8 = b"\x81\x84\0\0\0\0\xff\xfe\xff\xfe"


async def accepts(scope: object, receive: object, send: object) -> None:
    """An application that accepts WebSockets and listens."""
    await receive()  # type: ignore[operator]
    await send({"type": "websocket.accept"})  # type: ignore[operator]
    while (await receive())["type"] != "websocket.disconnect":  # type: ignore[operator]
        pass


def test_texts_that_are_not_utf_8(caplog: pytest.LogCaptureFixture) -> None:
    """Such texts end their own connections and no others."""
    caplog.set_level(logging.INFO)

    async def scene() -> None:
        bound = listening("127.0.0.1", [0], "the test")
        server = HttpServer(accepts, bound, websockets=True)
        port = bound.getsockname()[1]
        for _ in range(40):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ASK)
            assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
            writer.write(NOT_UTF8)
            closed = await reader.read()
            assert (
                closed[:2] == b"\x88\x02" and int.from_bytes(closed[2:4], "big") == 1007
            )
            writer.close()

        await server.close()

    asyncio.run(asyncio.wait_for(scene(), 120.0))
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert told and not any(record.exc_info for record in told)
    assert all(record.name == "botyard.http" for record in told)
    assert len(told) < 40


def test_a_client_that_closes_while_the_server_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its close frame is read, but not handled yet; the server still ends."""

    async def scene() -> None:
        connections = []

        async def notes(scope: Any, receive: Any, send: Any) -> None:
            connections.append(scope["state"]["connection"])
            await accepts(scope, receive, send)

        bound = listening("127.0.0.1", [0], "the test")
        server = HttpServer(notes, bound, websockets=True)
        readers = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            writer.write(ASK)
            assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
            readers.append((reader, writer))

        connections[0].conn.receive_data(b"\x88\x82\0\0\0\0\x03\xe8")
        await server.close()
        for reader, writer in readers:
            await reader.read()
            writer.close()

    asyncio.run(asyncio.wait_for(scene(), 60.0))


BAD_BODIES = (
    b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello",
    b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFFFFFF\r\nhello",
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloworld",
)


async def reads(scope: object, receive: object, send: object) -> None:
    """An application that answers at once."""
    await send({"type": "http.response.start", "status": 404, "headers": []})  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b"no"})  # type: ignore[operator]


@pytest.mark.parametrize("body", BAD_BODIES)
def test_bodies_that_are_not_valid(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gets status 400, and the application's own answer raises no exception."""
    caplog.set_level(logging.INFO)

    async def scene() -> None:
        bound = listening("127.0.0.1", [0], "the test")
        server = HttpServer(reads, bound)
        for _ in range(3):
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n" + body)
            assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
            writer.close()

        await server.close()

    asyncio.run(asyncio.wait_for(scene(), 120.0))
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not any(record.exc_info for record in told)
