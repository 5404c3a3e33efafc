"""Interfaces of other packages over WebSockets and HTTP, with real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from botyard.control import Drive
from botyard.errors import BotyardError, PortError
from botyard.interfaces import http_admission
from botyard.interfaces.interface import Carrier, Door, Interface, Request, Response
from botyard.servers.carriers import pump_of
from botyard.servers.pump import Pump
from botyard.servers.web import webpump
from botyard.testing import check_protocol
from tests.interfaces.carried import carried
from tests.waiting import PATIENCE


class Words:
    """A session that echoes each word; `drive` drives ann, `!` is a fault, `bye` ends
    it, `wait` sets a timer.
    """

    def __init__(self, door: Door) -> None:
        self.door = door
        self.is_closed = False
        self.out: list[bytes] = []
        self.timer: float | None = None
        self.snapshots = 0

    def receive_data(self, data: bytes, now: float) -> None:
        if self.is_closed:
            return
        if data == b"!":
            raise ValueError("a fault")
        if data == b"drive":
            with contextlib.suppress(BotyardError):
                self.door.do(Drive(robot="ann", v=0.3, timeout=3600.0))

        if data == b"wait":
            self.timer = now
        self.out += data.split()
        self.is_closed = data == b"bye"

    def data_to_send(self) -> bytes:
        return self.out.pop(0) if self.out else b""

    def next_timer(self) -> float | None:
        return self.timer

    def handle_timer(self, now: float) -> None:
        self.timer = None
        if not self.is_closed:
            self.out.append(b"timer")

    def on_snapshot(self, now: float) -> None:
        self.snapshots += 1

    def close(self) -> None:
        self.is_closed, self.out = True, []


class Answers:
    """A handler that answers with the request."""

    def __init__(self, door: Door) -> None:
        self.door = door

    def answer(self, request: Request, now: float) -> Response:
        if request.path == "/fault":
            raise ValueError("a fault")
        return Response(
            200,
            f"{request.method} {request.path} {request.query} {request.body!r}".encode(),
        )


WORDS = Interface(
    name="words",
    about="",
    carrier=Carrier.WEBSOCKET,
    session=Words,
    text=True,
    clients=4,
)
ANSWERS = Interface(name="answers", about="", carrier=Carrier.HTTP, session=Answers)


def url(pump: Pump) -> str:
    return f"ws://127.0.0.1:{pump.address[1]}/"


def test_messages_come_and_go(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with (
            carried(WORDS) as (parts, pump),
            connect(url(pump)) as one,
            connect(url(pump)) as other,
        ):
            await one.send("hello world")
            assert [await one.recv(), await one.recv()] == ["hello", "world"]
            await one.send("wait")
            assert [await one.recv(), await one.recv()] == ["wait", "timer"]
            await one.send("drive")
            assert await one.recv() == "drive"
            assert "ann" in parts.control.driven
            await one.send("!")
            with pytest.raises(ConnectionClosed):
                await one.recv()
            while parts.control.driven:
                await asyncio.sleep(0.001)
            await other.send("bye")
            assert await other.recv() == "bye"
            with pytest.raises(ConnectionClosed):
                await other.recv()

    asyncio.run(main())
    assert caplog.text.count("ValueError: a fault") == 1


def test_steps_are_told() -> None:
    async def main() -> None:
        async with carried(WORDS) as (_, pump), connect(url(pump)):
            while not pump.clients:
                await asyncio.sleep(0.001)
            session: Any = pump.clients[0]._session
            while session.snapshots < 3:
                await asyncio.sleep(0.001)

    asyncio.run(main())


def test_a_client_costs_one_task() -> None:
    """The reading task must not write: callbacks write the output."""

    def ours() -> list[str]:
        return [
            t.get_coro().__qualname__  # type: ignore[union-attr]
            for t in asyncio.all_tasks()
            if "botyard" in t.get_coro().cr_code.co_filename  # type: ignore[union-attr]
            or "uvicorn" in t.get_coro().cr_code.co_filename  # type: ignore[union-attr]
        ]

    async def main() -> None:
        async with carried(WORDS) as (_, pump):
            before = len(ours())
            async with connect(url(pump)) as one, connect(url(pump)) as two:
                for known in (one, two):
                    await known.send("hello")
                    assert await known.recv() == "hello"
                assert len(ours()) == before + 2, ours()

    asyncio.run(main())


def test_a_client_that_never_reads_is_gone_with_its_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No task waits until it reads the last words."""
    monkeypatch.setattr(webpump, "MAX_STUCK", 0.0)
    monkeypatch.setattr(http_admission, "CLOSE_TIMEOUT_S", 0.1)

    async def main() -> None:
        async with carried(WORDS) as (_, pump):
            gate: Any = pump._server.gate  # type: ignore[attr-defined]
            reader, writer = await asyncio.open_connection(*pump.address, limit=1000)
            writer.write(
                b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            )
            await reader.readuntil(b"\r\n\r\n")
            while not pump.clients:
                await asyncio.sleep(0.001)
            session: Any = pump.clients[0]._session
            async with asyncio.timeout(PATIENCE):
                while pump.clients:
                    session.out = ["x" * 100_000] * 100
                    session.door.wake()
                    await asyncio.sleep(0.01)
                while len(gate._strangers) + len(gate._guests):
                    await asyncio.sleep(0.01)
            writer.transport.abort()

    asyncio.run(main())
    assert "the client has not read for 0 s" in caplog.text


def test_there_is_room_for_so_many_from_one_address() -> None:
    async def main() -> None:
        async with (
            carried(WORDS) as (_, pump),
            connect(url(pump)) as one,
            connect(url(pump)) as two,
        ):
            for known in (one, two):
                await known.send("hello")
                assert await known.recv() == "hello"

            async with connect(url(pump)) as third:
                with pytest.raises(ConnectionClosed) as closed:
                    await third.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == webpump.TOO_MANY

    asyncio.run(main())


def test_pages_of_other_sites_are_refused() -> None:
    async def main() -> None:
        async with carried(WORDS) as (_, pump):
            with pytest.raises(InvalidStatus):
                await connect(url(pump), origin="http://elsewhere.example")  # type: ignore[arg-type]

    asyncio.run(main())


async def ask(pump: Pump, text: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection(*pump.address)
    writer.write(text)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split()[0])
    body = await reader.readexactly(length)
    writer.close()
    return int(head.split()[1]), body


def test_requests_are_answered(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webpump, "MAX_BODY", 100)

    async def main() -> None:
        async with carried(ANSWERS) as (parts, pump):
            assert await ask(
                pump, b"GET /a?b=c HTTP/1.1\r\nHost: localhost\r\n\r\n"
            ) == (200, b"GET /a {'b': 'c'} b''")
            found = await ask(
                pump,
                b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi",
            )
            assert found == (200, b"POST /a {} b'hi'")
            long = (
                b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n"
                + b"x" * 101
            )
            assert (await ask(pump, long))[0] == 413
            assert (await ask(pump, b"GET /fault HTTP/1.1\r\nHost: localhost\r\n\r\n"))[
                0
            ] == 500
            with pytest.raises(PortError, match="answers: cannot listen"):
                await pump_of(ANSWERS, {}, parts.hub, parts.control).start(
                    "127.0.0.1", pump.address[1]
                )

    asyncio.run(main())
    assert caplog.text.count("ValueError: a fault") == 1


class Safe(Words):
    def receive_data(self, data: bytes, now: float) -> None:
        super().receive_data(data.replace(b"!", b""), now)


class Calm(Answers):
    def answer(self, request: Request, now: float) -> Response:
        return Response(200, request.body[:100])


def test_the_check_knows_messages_and_requests() -> None:
    safe = Interface(name="words", about="", carrier=Carrier.WEBSOCKET, session=Safe)
    assert check_protocol(safe, [b"hello world", b"drive", b"wait"]) == []
    calm = Interface(name="answers", about="", carrier=Carrier.HTTP, session=Calm)
    assert check_protocol(calm, [b"POST /a?b=c\nhello"]) == []
    assert any("raised ValueError" in p for p in check_protocol(WORDS, [b"!"]))
    assert any(
        "raised ValueError" in p for p in check_protocol(ANSWERS, [b"GET /fault\n"])
    )
