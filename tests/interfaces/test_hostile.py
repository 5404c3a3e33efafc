"""Interfaces with hostile authors or clients:

each error names the interface, and no other client notices.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import Any

import pytest
from websockets.asyncio.client import connect as websocket
from websockets.exceptions import ConnectionClosed

from botyard import Simulation
from botyard.app.compose import compose
from botyard.errors import NotNowError, PortError, WorldError
from botyard.interfaces.interface import Carrier, Door, Interface, Request, Response
from botyard.servers import pump as pump_module
from botyard.servers.carriers import pump_of
from botyard.servers.pump import Pump, TcpClient, TcpPump
from botyard.servers.web import webpump
from tests.interfaces.carried import carried, until


class Echo:
    """A session that echoes. After ``!`` the part that `wrong` names fails."""

    wrong = ""
    value: Any = None

    def __init__(self, door: Door) -> None:
        self.door = door
        self.out = b""
        self._is_closed = False
        self.goes_wrong = False
        self.closed = 0
        self.timers = 0

    def _fails(self, what: str) -> bool:
        if not self.goes_wrong or self.wrong != what:
            return False
        if self.value is None:
            raise ValueError("a fault")
        return True

    @property
    def is_closed(self) -> bool:
        self._fails("is_closed")
        return self._is_closed

    def receive_data(self, data: bytes, now: float) -> None:
        self.goes_wrong |= data.startswith(b"!")
        self._fails("receive_data")
        self.out += data

    def data_to_send(self) -> Any:
        if self._fails("data_to_send"):
            return self.value
        out, self.out = self.out, b""
        return out

    def next_timer(self) -> Any:
        if self._fails("next_timer"):
            return self.value
        return 0.0 if self.goes_wrong and self.wrong == "handle_timer" else None

    def handle_timer(self, now: float) -> None:
        self.timers += 1
        self._fails("handle_timer")

    def on_snapshot(self, now: float) -> None:
        self._fails("on_snapshot")

    def close(self) -> None:
        self.closed += 1
        self._is_closed = True
        self._fails("close")


def bad(wrong: str, value: Any = None) -> type[Echo]:
    return type("Bad", (Echo,), {"wrong": wrong, "value": value})


def interface(
    session: Callable[[Door], Any], carrier: Carrier = Carrier.TCP, **more: Any
) -> Interface:
    return Interface(name="strange", about="", carrier=carrier, session=session, **more)


FAULTS = [
    ("receive_data", None, "ValueError: a fault"),
    ("data_to_send", None, "ValueError: a fault"),
    ("data_to_send", 5, "data_to_send: expected bytes, found 5"),
    ("next_timer", None, "ValueError: a fault"),
    ("next_timer", float("nan"), "next_timer: expected a time or None, found nan"),
    ("next_timer", "soon", "next_timer: expected a time or None, found 'soon'"),
    ("handle_timer", None, "ValueError: a fault"),
    ("on_snapshot", None, "ValueError: a fault"),
    ("is_closed", None, "ValueError: a fault"),
]


@pytest.mark.parametrize(("wrong", "value", "told"), FAULTS)
def test_a_fault_of_a_session_ends_it_alone_over_tcp(
    wrong: str, value: Any, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with carried(interface(bad(wrong, value))) as (parts, pump):
            one = await asyncio.open_connection(*pump.address)
            other = await asyncio.open_connection(*pump.address)
            one[1].write(b"!")
            with contextlib.suppress(ConnectionError):
                await one[0].read()
            await until(lambda: len(pump.clients) == 1)
            other[1].write(b"hello")
            assert await other[0].readexactly(5) == b"hello"
            tick = parts.hub.sim.tick
            await until(lambda: parts.hub.sim.tick > tick + 2)
            for _, writer in (one, other):
                writer.close()

    asyncio.run(main())
    assert told in caplog.text
    assert (
        "interface strange: a client: internal error; its connection is closed"
        in caplog.text
    )


@pytest.mark.parametrize(("wrong", "value", "told"), FAULTS)
def test_a_fault_of_a_session_ends_it_alone_over_websockets(
    wrong: str, value: Any, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with carried(
            interface(bad(wrong, value), Carrier.WEBSOCKET, text=True)
        ) as (_, pump):
            url = f"ws://127.0.0.1:{pump.address[1]}/"
            async with websocket(url) as one, websocket(url) as other:
                await one.send("!")
                # Read until the server has closed the connection.
                async for _ in one:
                    pass
                await other.send("hello")
                assert await other.recv() == "hello"

    asyncio.run(main())
    assert told in caplog.text
    assert (
        "interface strange: a client: internal error; its connection is closed"
        in caplog.text
    )


def test_a_session_whose_end_goes_wrong_is_over_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with carried(interface(bad("close"))) as (_, pump):
            _, writer = await asyncio.open_connection(*pump.address)
            writer.write(b"!")
            await until(lambda: pump.clients)
            one: Any = pump.clients[0]
            await until(lambda: one._session.goes_wrong)
            writer.close()
            await until(lambda: not pump.clients)

    asyncio.run(main())
    assert (
        "interface strange: handling the end of a client: internal error" in caplog.text
    )


def test_faults_that_clients_cause_again_and_again_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with carried(interface(bad("receive_data"))) as (_, pump):
            for _ in range(30):
                reader, writer = await asyncio.open_connection(*pump.address)
                writer.write(b"!")
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()

    asyncio.run(main())
    assert 1 <= caplog.text.count("Traceback") < 10
    assert caplog.text.count("internal error; its connection is closed") < 10


def test_a_session_that_cannot_be_made_costs_its_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def make(door: Door) -> Any:
        raise KeyError("nothing")

    async def main() -> None:
        for carrier in (Carrier.TCP, Carrier.WEBSOCKET):
            async with carried(interface(make, carrier)) as (_, pump):
                if carrier is Carrier.TCP:
                    reader, writer = await asyncio.open_connection(*pump.address)
                    with contextlib.suppress(ConnectionError):
                        assert await reader.read() == b""
                    writer.close()
                else:
                    async with websocket(f"ws://127.0.0.1:{pump.address[1]}/") as one:
                        with pytest.raises(ConnectionClosed):
                            await one.recv()

                await until(lambda: not pump.clients)

    asyncio.run(main())
    assert caplog.text.count("interface strange: a client: internal error") == 2


@pytest.mark.parametrize("carrier", [Carrier.UDP, Carrier.HTTP])
def test_what_answers_all_and_cannot_be_made_leaves_no_port_open(
    carrier: Carrier,
) -> None:
    def make(door: Door) -> Any:
        raise KeyError("nothing")

    async def main() -> None:
        parts = compose(Simulation())
        what = interface(make, carrier)
        pump = pump_of(what, {}, parts.hub, parts.control)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]

        with pytest.raises(
            WorldError,
            match=r"interface strange: cannot start: KeyError\('nothing'\)",
        ):
            await pump.start("127.0.0.1", port)

        assert not pump.is_open
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as free:
            free.bind(("127.0.0.1", port))
        parts.close()

    asyncio.run(main())


CARRIERS = [Carrier.TCP, Carrier.UDP, Carrier.HTTP, Carrier.WEBSOCKET]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_one_is_started_once_and_stopped_any_number_of_times(carrier: Carrier) -> None:
    async def main() -> None:
        async with carried(interface(Echo, carrier)) as (_, pump):
            port = pump.address[1]
            with pytest.raises(
                NotNowError,
                match=f"interface strange: it is already open on port {port}",
            ):
                await pump.start("127.0.0.1", 0)

            assert pump.address[1] == port
            await pump.stop()
            await pump.stop()
            assert pump.address == ("", 0)
            await pump.start("127.0.0.1", port)
            assert pump.address[1] == port, "its port was free at once"

    asyncio.run(main())


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_port_in_use_is_told_in_its_name(carrier: Carrier) -> None:
    async def main() -> None:
        async with carried(interface(Echo, carrier)) as (parts, pump):
            what = interface(Echo, carrier)
            other = pump_of(what, {}, parts.hub, parts.control)
            holder = "interface strange of this simulator uses this port"
            with pytest.raises(
                PortError,
                match=rf"interface strange: cannot listen on port \d+ of 127.0.0.1: {holder}",
            ):
                await other.start("127.0.0.1", pump.address[1])

            assert not other.is_open

    asyncio.run(main())


@pytest.mark.parametrize("carrier", CARRIERS)
def test_one_that_is_stopped_while_it_starts_is_closed(carrier: Carrier) -> None:
    async def main() -> None:
        parts = compose(Simulation())
        what = interface(Echo, carrier)
        pump = pump_of(what, {}, parts.hub, parts.control)
        start = asyncio.create_task(pump.start("127.0.0.1", 0))
        while not pump.is_open:
            await asyncio.sleep(0)
        await pump.stop()
        await start
        assert pump.address == ("", 0) and not pump.is_open
        assert all(listener is not pump for listener, _ in parts.hub._listeners)
        parts.close()

    asyncio.run(main())


def test_a_client_that_is_accepted_in_the_moment_of_the_end_has_no_session() -> None:
    made: list[Door] = []

    def make(door: Door) -> Echo:
        made.append(door)
        return Echo(door)

    class Transport(asyncio.Transport):
        aborted = False

        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return ("127.0.0.1", 1) if name == "peername" else default

        def set_write_buffer_limits(self, high: Any = None, low: Any = None) -> None:
            pass

        def abort(self) -> None:
            self.aborted = True

    async def main() -> None:
        parts = compose(Simulation())
        what = interface(make)
        pump = TcpPump(what, {}, parts.hub, parts.control)
        await pump.start("127.0.0.1", 0)
        late, transport = TcpClient(pump), Transport()
        await pump.stop()
        late.connection_made(transport)
        assert transport.aborted and not pump.clients and not made
        parts.close()

    asyncio.run(main())


def test_what_a_session_has_to_say_later_is_sent_when_it_wakes_its_client() -> None:
    """Time stands still and no input comes, for example when a future has its result."""

    sessions: list[Echo] = []

    def make(door: Door) -> Echo:
        sessions.append(Echo(door))
        return sessions[-1]

    async def main() -> None:
        for carrier in (Carrier.TCP, Carrier.WEBSOCKET):
            sessions.clear()
            async with carried(interface(make, carrier)) as (parts, pump):
                parts.hub.pause()
                if carrier is Carrier.TCP:
                    reader, writer = await asyncio.open_connection(*pump.address)
                    await until(lambda: sessions)
                    sessions[0].out = b"late"
                    sessions[0].door.wake()
                    sessions[0].door.wake()
                    assert await reader.readexactly(4) == b"late"
                    writer.close()
                else:
                    async with websocket(f"ws://127.0.0.1:{pump.address[1]}/") as one:
                        await until(lambda: sessions)
                        sessions[0].out = b"late"
                        sessions[0].door.wake()
                        assert await one.recv() == b"late"

    asyncio.run(main())


class Chatter(Echo):
    """A session that always has output."""

    def data_to_send(self) -> Any:
        return b"x" * 100


def test_a_websocket_that_never_ends_talking_leaves_time_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webpump, "MAX_REPLIES", 10)

    def make(door: Door) -> Echo:
        return Chatter(door) if not made else Echo(door)

    made: list[int] = []

    async def main() -> None:
        async with carried(interface(make, Carrier.WEBSOCKET, text=True)) as (
            parts,
            pump,
        ):
            url = f"ws://127.0.0.1:{pump.address[1]}/"
            async with websocket(url) as one:
                for _ in range(50):
                    await one.recv()
                made.append(1)
                async with websocket(url) as other:
                    await other.send("hello")
                    assert await other.recv() == "hello"
                    tick = parts.hub.sim.tick
                    await until(lambda: parts.hub.sim.tick > tick + 5)

                # Without an abort, closing would read on until the end.
                one.transport.abort()

    asyncio.run(main())


def test_a_message_beyond_measure_is_not_sent_to_a_websocket(
    caplog: pytest.LogCaptureFixture,
) -> None:
    what = interface(
        bad("data_to_send", b"x" * (pump_module.MAX_UNREAD + 1)), Carrier.WEBSOCKET
    )

    async def main() -> None:
        async with (
            carried(what) as (_, pump),
            websocket(f"ws://127.0.0.1:{pump.address[1]}/") as one,
        ):
            await one.send("!")
            with pytest.raises(ConnectionClosed):
                await one.recv()

    asyncio.run(main())
    assert (
        "strange: client 127.0.0.1 disconnected: expected messages of at most"
        in caplog.text
    )


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("text", "answer: expected a Response with bytes, found 'text'"),
        (None, "answer: expected a Response with bytes, found None"),
        (Response(200, "text"), "answer: expected a Response with bytes"),  # type: ignore[arg-type]
        (Response(99, b""), "answer: expected a status from 200 to 599, found 99"),
        (Response(200, b"", "text/plain\r\nx: y☃"), "UnicodeEncodeError"),
        (Response(200, b"x" * 101), "answer: expected at most 100 bytes, found 101"),
    ],
)
def test_answers_that_are_none_are_an_internal_error(
    answer: Any,
    told: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webpump, "MAX_ANSWER", 100)

    class Answers:
        def __init__(self, door: Door) -> None:
            pass

        def answer(self, request: Request, now: float) -> Any:
            return answer if request.path == "/bad" else Response(200, b"good")

    async def ask(pump: Pump, path: str) -> bytes:
        reader, writer = await asyncio.open_connection(*pump.address)
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n".encode()
        )
        data = await reader.read()
        writer.close()
        return data

    async def main() -> None:
        async with carried(interface(Answers, Carrier.HTTP)) as (_, pump):
            assert (await ask(pump, "/bad")).startswith(b"HTTP/1.1 500")
            assert (await ask(pump, "/good")).endswith(b"good")

    asyncio.run(main())
    assert told in caplog.text
    assert "interface strange: a request: internal error" in caplog.text


def test_what_a_session_complains_of_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Complains(Echo):
        def receive_data(self, data: bytes, now: float) -> None:
            for _ in range(1000):
                self.door.warn("no\nsense")
            self.out += b"done"

    async def main() -> None:
        async with carried(interface(Complains)) as (_, pump):
            reader, writer = await asyncio.open_connection(*pump.address)
            writer.write(b"x")
            assert await reader.readexactly(4) == b"done"
            writer.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert caplog.text.count("strange: no\\nsense") == 1
