"""Attacks of viewers and strangers on the page's server, for ``python -m
bench.reliability viewer``; each is a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import struct
import time

from botyard.protocols.webgui import messages

HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{0}\r\nOrigin: "
    "http://127.0.0.1:{0}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
    "AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def masked(text: bytes) -> bytes:
    """Return a WebSocket text frame of a client (RFC 6455, section 5.2), masked with zeros."""
    head = (
        bytes([0x81, 0x80 | len(text)])
        if len(text) < 126
        else b"\x81\xfe" + struct.pack(">H", len(text))
    )
    return head + bytes(4) + text


async def joined(
    port: int, token: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect a viewer and let it say hello."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    writer.write(HANDSHAKE.format(port).encode())
    await reader.readuntil(b"\r\n\r\n")
    writer.write(
        masked(
            json.dumps(
                {"type": "hello", "token": token, "version": messages.VERSION}
            ).encode()
        )
    )
    return reader, writer


async def message(reader: asyncio.StreamReader) -> bytes:
    """Return the next message of the server."""
    kind, size = await reader.readexactly(2)
    if size >= 126:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    data = await reader.readexactly(size)
    if kind & 15 == 8:
        raise ConnectionError(data[2:].decode(errors="replace"))
    return data


async def audience(port: int, token: str) -> str:
    """Return the token of the audience, as the page shows it to viewers with control."""
    reader, writer = await joined(port, token)
    while True:
        found = json.loads(await message(reader))
        if found["type"] == "welcome":
            writer.close()
            return str(found["audience"])


async def _asks(port: int, token: str, rate: float, seconds: float, seed: int) -> None:
    """Ask for the clearance of random parts of the map and for the catalog, `rate`
    times a second (0: as fast as answers come).
    """
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await joined(port, token)

            async def reads(reader: asyncio.StreamReader = reader) -> None:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    while await reader.read(1 << 20):
                        pass

            task = asyncio.ensure_future(reads())
            began, number = time.monotonic(), 0
            while time.monotonic() < end:
                number += 1
                box = {k: rng.uniform(-100, 100) for k in ("x0", "y0")} | {
                    k: rng.uniform(0, 200) for k in ("x1", "y1")
                }
                fields = (
                    {"type": "debug", "what": "clearance", **box}
                    if number % 2
                    else {"type": "catalog"}
                )
                writer.write(masked(json.dumps({"id": number, **fields}).encode()))
                await writer.drain()
                if rate:
                    await asyncio.sleep(
                        max(0.0, began + number / rate - time.monotonic())
                    )

            task.cancel()
            writer.close()


async def _tiny(port: int, token: str, seconds: float) -> None:
    """Send empty messages and pings, as fast as the server reads them."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            _, writer = await joined(port, token)
            while time.monotonic() < end:
                writer.write((b"\x81\x80\0\0\0\0" + b"\x89\x80\0\0\0\0") * 5000)
                await writer.drain()


async def _knocks(port: int, seconds: float, hold: bool) -> None:
    """Act without a token: hold sockets with no request or a part of one, or request files,
    metrics and WebSockets as fast as possible.
    """
    end = time.monotonic() + seconds
    head = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    said = [
        b"",
        f"GET / {head}".encode(),
        HANDSHAKE.format(port).encode(),
        f"POST /upload {head}Content-Length: 9000000\r\n\r\n".encode(),
    ]
    wanted = [f"GET {p} {head}\r\n".encode() for p in ("/", "/metrics", "/nothing")] + [
        HANDSHAKE.format(port).encode()
    ]
    k = 0
    while time.monotonic() < end:
        k += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            if hold:
                writer.write(said[k % len(said)])
                async with asyncio.timeout(max(0.1, end - time.monotonic())):
                    while await reader.read(65536):
                        pass
            else:
                writer.write(wanted[k % len(wanted)])
                async with asyncio.timeout(1.0):
                    await reader.read(100)

            writer.close()


async def _together(
    kind: str, port: int, token: str, seconds: float, count: int, rate: float
) -> None:
    if kind == "asks":
        jobs = [_asks(port, token, rate, seconds, k) for k in range(count)]
    elif kind == "tiny":
        jobs = [_tiny(port, token, seconds) for _ in range(count)]
    else:
        jobs = [_knocks(port, seconds, kind == "hold") for _ in range(count)]

    await asyncio.gather(*jobs)


def attack(
    kind: str, port: int, token: str, seconds: float, count: int, rate: float = 0.0
) -> None:
    """Run `count` attackers for `seconds`; `kind` is asks, tiny, hold or knock."""
    asyncio.run(_together(kind, port, token, seconds, count, rate))


async def _enters(port: int, token: str) -> float:
    began = time.monotonic()
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(5.0):
                reader, writer = await joined(port, token)
                while (await message(reader))[:1] == b"{":
                    # The first message that is not JSON is a picture of the world: the viewer is
                    # in.
                    pass

                writer.close()
                return time.monotonic() - began


def enters(port: int, token: str) -> float:
    """Return after how many seconds a viewer with the token gets its first frame; the viewer
    retries as the page does.
    """
    return asyncio.run(_enters(port, token))
