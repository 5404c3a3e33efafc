"""Interfaces of other packages:

found, started with their options, served over real sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import botyard
from botyard import Simulation
from botyard.app.compose import Parts, compose
from botyard.app.interfaces import begin_interfaces
from botyard.app.options import RunOptions
from botyard.app.served import Run
from botyard.control import AddRobot, Drive, Level
from botyard.errors import CommandLineError, PortError, WorldError
from botyard.interfaces import interface as interface_module
from botyard.interfaces.interface import Carrier, Door, Interface, Option, caller_of
from botyard.interfaces.registry import (
    BUILT_IN,
    find_interface,
    interface_names,
    parse_choice,
    plug_ins,
)
from botyard.protocols.discovery import REPLY, REQUEST
from botyard.servers import pump as pump_module
from botyard.servers.carriers import pump_of
from botyard.servers.pump import TcpPump
from botyard.testing import check_protocol
from tests.interfaces.carried import carried, until
from tests.interfaces.installed import PLUGINS, install
from tests.waiting import PATIENCE

EXAMPLES = [
    b"list\npose ann\n",
    b"drive ann 0.3 0.1\n",
    b"place ann 1 2 0\npose ann\nquit\n",
    b"nonsense\n",
]


@pytest.fixture
def textproto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    install("textproto", tmp_path / "site", monkeypatch)
    find_interface("textproto")
    yield sys.modules["botyard_textproto"]
    sys.modules.pop("botyard_textproto")


class Client:
    """A client in the simulator's thread."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, line: str) -> str:
        self.writer.write(line.encode() + b"\n")
        async with asyncio.timeout(PATIENCE):
            return (await self.reader.readline()).decode().rstrip("\n")


@contextlib.asynccontextmanager
async def served(
    interface: Interface, read_only: bool = False
) -> AsyncIterator[tuple[Parts, TcpPump, Callable[[], Any]]]:
    """`carried` over TCP, with a function that connects a client."""
    clients: list[Client] = []
    async with carried(interface, read_only) as (parts, pump):
        assert isinstance(pump, TcpPump)

        async def connect() -> Client:
            clients.append(Client(*await asyncio.open_connection(*pump.address)))
            return clients[-1]

        try:
            yield parts, pump, connect
        finally:
            for client in clients:
                client.writer.close()


# -- the registry


def test_a_package_that_is_installed_is_found(textproto: ModuleType) -> None:
    assert "textproto" in interface_names()
    assert find_interface("textproto") is textproto.interface
    assert textproto.interface in plug_ins()
    assert parse_choice("textproto") == (textproto.interface, {})
    assert textproto.interface.chosen({}) == {"port": 7717, "timeout": 1.0}
    assert parse_choice("textproto:port=0,timeout=2.5")[1] == {
        "port": 0,
        "timeout": 2.5,
    }


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("textprot", 'no interface "textprot".*textproto'),
        ("textproto:prt=1", 'no option "prt".*options: port, timeout'),
        ("textproto:port", "expected OPTION=VALUE"),
        (
            "textproto:port=70000",
            "expected a whole number from 0 to 65535, found '70000'",
        ),
        ("textproto:timeout=soon", "expected a number from 0 to 3600, found 'soon'"),
        ("textproto:timeout=nan", "expected a number"),
        ("textproto:port=1,port=2", 'option "port" is given twice'),
        (
            "vda5050",
            "interface vda5050: expected an interface that runs inside of the simulator",
        ),
        (
            "ros2:domain=233",
            "interface ros2: domain: expected a whole number from 0 to 232, found '233'",
        ),
        ("ros2:ros_domain_id=1", 'interface ros2: no option "ros_domain_id"'),
        (
            "ambf:generation=3",
            "interface ambf: generation: expected one of master, 1.0, 2.0, found",
        ),
        ("discovery:port=1", 'interface discovery: no option "port"'),
    ],
)
def test_what_cannot_be_chosen_is_told(
    textproto: ModuleType, said: str, told: str
) -> None:
    with pytest.raises(CommandLineError, match=told):
        parse_choice(said)


def test_options_of_each_kind() -> None:
    assert Option("on", bool, False, "").of("yes", "x") is True
    assert Option("on", bool, True, "").of("off", "x") is False
    assert Option("name", str, "", "").of("ann", "x") == "ann"
    assert Option("rate", float, 1.0, "").of(2, "x") == 2.0
    for option, value in (
        (Option("on", bool, False, ""), "perhaps"),
        (Option("n", int, 0, ""), 1.5),
        (Option("n", int, 0, ""), True),
    ):
        with pytest.raises(CommandLineError, match="expected"):
            option.of(value, "x")


def test_a_description_that_makes_no_sense_is_refused() -> None:
    for wrong, told in (
        ({"name": "Text"}, "small letters"),
        ({"options": (Option("port", int, 1, ""),)}, "same name"),
        ({"session": None}, "expected a session"),
    ):
        with pytest.raises(WorldError, match=told):
            Interface(
                **{"name": "text", "about": "", "carrier": Carrier.TCP, "session": list}
                | wrong
            )  # type: ignore[arg-type]


def test_a_package_that_cannot_be_loaded_is_told_of_and_disturbs_no_other(
    textproto: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    info = tmp_path / "site" / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[botyard.interfaces]\nbroken = nowhere:it\nother = json:dumps\n"
    )
    with caplog.at_level(logging.WARNING):
        assert [i.name for i in plug_ins()] == ["textproto"]
    assert (
        'interface "broken" of the package broken: nowhere:it cannot be loaded'
        in caplog.text
    )
    assert (
        'interface "other" of the package broken: expected an Interface of that name'
        in caplog.text
    )


def test_what_is_not_installed_is_told_with_how_to_have_it() -> None:
    one = Interface(
        name="x",
        about="x",
        carrier=Carrier.TCP,
        session=list,
        modules=("json", "no_such_module"),
        install="pip install nosuch",
    )
    assert (
        one.lacks() == "interface x needs no_such_module, which is not installed; to "
        "install: pip install nosuch"
    )
    assert find_interface("pioneer").lacks() == ""


def test_every_interface_that_a_simulator_offers_is_in_the_registry(
    textproto: ModuleType,
) -> None:
    async def main() -> set[str]:
        from botyard.app.assembly import assemble, open_interfaces
        from botyard.app.serve import options_of
        from botyard.model.world import World

        sim = Simulation()
        o = options_of({"port": 0, "interfaces": ["textproto:port=0"], "page": False})
        parts = assemble(sim, World(scene=sim.scene), o, None)
        async with contextlib.AsyncExitStack() as stack:
            await open_interfaces(stack, parts, o, {})
            one = parts.robot_servers.interfaces["textproto"]
            assert one.on and one.address() is not None
            await parts.robot_servers.interfaces.switch("textproto", False)
            assert one.address() is None
            await parts.robot_servers.interfaces.switch("textproto", True)
            assert one.address() is not None

        assert one.address() is None, "the stack has ended it"
        assert not any(i.on for i in parts.robot_servers.interfaces.values()), (
            "and all others"
        )
        parts.close()
        return set(parts.robot_servers.interfaces)

    offered = asyncio.run(main())
    assert offered <= set(interface_names())
    started = {name for name in BUILT_IN if not find_interface(name).command}
    assert offered == (started | {"textproto"}) - {"ambf"}, "ambf is there with --ambf"


# -- the example


def test_the_example_keeps_what_clients_rely_on(textproto: ModuleType) -> None:
    assert check_protocol(textproto.interface, EXAMPLES) == []
    source = (PLUGINS / "textproto" / "botyard_textproto.py").read_text()
    assert len(source.splitlines()) <= 100


def test_the_example_drives_a_robot_of_a_simulator(textproto: ModuleType) -> None:
    sim = Simulation()
    sim.add_robot("p3dx", "ann", pose=(0.0, 0.0, 0.0))
    with botyard.serve(  # noqa: SIM117
        sim, port=0, page=False, fast=True, interfaces=["textproto:port=0,timeout=3600"]
    ) as running:
        with (
            socket.create_connection(running.interfaces["textproto"], PATIENCE) as one,
            one.makefile("rw") as file,
        ):

            def ask(line: str) -> str:
                file.write(line + "\n")
                file.flush()
                return file.readline().rstrip("\n")

            assert ask("list") == "ok ann"
            assert ask("place ann 1 2 0") == "ok"
            assert ask("drive ann 0.3 0") == "ok"
            assert ask("drive nobody 0.3 0").startswith("error")
            while float(ask("pose ann").split()[1]) < 1.2:
                pass
            assert ask("quit") == "ok"
            assert file.readline() == "", "the simulator has closed it"


# -- the pump


def test_clients_that_go_leave_their_robots_standing(textproto: ModuleType) -> None:
    async def main() -> None:
        async with served(textproto.interface) as (parts, pump, connect):
            one, other = await connect(), await connect()
            assert await one.ask("drive ann 0.3 0") == "ok"
            assert await other.ask("drive bob 0.3 0") == "ok"
            await until(lambda: parts.hub.sim.robots["ann"].state.twist.vx > 0.0)
            one.writer.close()
            await until(lambda: "ann" not in parts.control.driven)
            assert "bob" in parts.control.driven, "the other one's"
            await until(lambda: parts.hub.sim.robots["ann"].state.twist.vx == 0.0)
            assert len(pump.clients) == 1

    asyncio.run(main())


def test_a_robot_stops_when_nothing_more_comes(textproto: ModuleType) -> None:
    async def main() -> None:
        async with served(textproto.interface) as (parts, pump, connect):
            one = await connect()
            parts.control.do(
                pump.made("x", pump.clients[0]).door.caller,
                Drive(robot="ann", v=0.3, timeout=0.01),
            )
            await until(lambda: "ann" not in parts.control.driven)
            assert await one.ask("list") == "ok ann bob"

    asyncio.run(main())


def test_read_only_is_kept(textproto: ModuleType) -> None:
    async def main() -> None:
        async with served(textproto.interface, read_only=True) as (_, _pump, connect):
            one = await connect()
            assert await one.ask("place ann 1 2 0") == "error the world is read-only"
            assert await one.ask("drive ann 0.1 0") == "ok", "driving changes no world"

    asyncio.run(main())


class Echo:
    """A session that echoes its input many times."""

    def __init__(self, door: Door, times: int = 1) -> None:
        self.times = times
        self.out = b""
        self.is_closed = False
        self.snapshots = 0
        self.timer: float | None = None
        self.fired: list[float] = []

    def receive_data(self, data: bytes, now: float) -> None:
        if data.startswith(b"!"):
            raise ValueError("a fault")
        if data.startswith(b"t"):
            self.timer = now + 0.001
        self.out += data * self.times

    def data_to_send(self) -> bytes:
        out, self.out = self.out, b""
        return out

    def next_timer(self) -> float | None:
        return self.timer

    def handle_timer(self, now: float) -> None:
        self.timer = None
        self.fired.append(now)
        self.out += b"timer\n"

    def on_snapshot(self, now: float) -> None:
        self.snapshots += 1

    def close(self) -> None:
        self.is_closed = True


def echo(times: int = 1, **fields: Any) -> Interface:
    return Interface(
        name="echo",
        about="",
        carrier=Carrier.TCP,
        session=lambda door: Echo(door, times),
        **fields,
    )


def test_a_fault_of_a_session_ends_that_connection_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with served(echo()) as (_, _pump, connect):
            one, other = await connect(), await connect()
            assert await other.ask("hello") == "hello"
            one.writer.write(b"!\n")
            assert await one.reader.read() == b""
            assert await other.ask("hello") == "hello"

    asyncio.run(main())
    assert caplog.text.count("ValueError: a fault") == 1


def test_timers_are_called_and_steps_are_told() -> None:
    async def main() -> None:
        async with served(echo()) as (_, pump, connect):
            one = await connect()
            assert await one.ask("t") == "t"
            assert await one.reader.readline() == b"timer\n"
            session: Any = pump.clients[0]._session
            await until(lambda: session.snapshots > 2)

    asyncio.run(main())


def test_there_is_room_for_so_many_and_no_more() -> None:
    async def main() -> None:
        async with served(echo(clients=4)) as (_, pump, connect):
            clients = [await connect() for _ in range(3)]
            assert await clients[0].ask("a") == "a"
            assert await clients[1].ask("a") == "a"
            with contextlib.suppress(ConnectionError):
                assert await clients[2].reader.read() == b"", (
                    "half of them may come from one address"
                )

            clients[0].writer.close()
            await until(lambda: len(pump.clients) == 1)
            assert await (await connect()).ask("b") == "b"

    asyncio.run(main())


async def stop_reading(client: Client, held: Any) -> int:
    """Send without reading until the server reads no more; return the number of bytes
    answered.
    """
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    sent = 0
    while not (held.is_reading_paused or held.is_over):
        client.writer.write(b"x" * 100)
        sent += 100
        await asyncio.sleep(0)

    return sent


def test_one_that_does_not_read_is_read_no_further_until_it_does() -> None:
    async def main() -> None:
        async with served(echo(times=2000)) as (parts, pump, connect):
            one, other = await connect(), await connect()
            held: Any = pump.clients[0]
            sent = await stop_reading(one, held)
            told, tick = held._session.snapshots, parts.hub.sim.tick
            await until(lambda: parts.hub.sim.tick > tick + 3)
            assert held._session.snapshots == told, "it is told of no steps"
            other.writer.write(b"a")
            assert await other.reader.readexactly(2000) == b"a" * 2000, (
                "the other one is served"
            )
            async with asyncio.timeout(PATIENCE):
                one.writer.transport.resume_reading()  # type: ignore[attr-defined]
                await one.reader.readexactly(sent * 2000)

            await until(lambda: held._session.snapshots > told)
            assert not held.is_reading_paused

    asyncio.run(main())


def test_one_that_does_not_read_for_long_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pump_module.TcpClient, "max_stuck", 0.0)

    async def main() -> None:
        async with served(echo(times=2000)) as (_, pump, connect):
            one, held = await connect(), pump.clients[0]
            await stop_reading(one, held)
            await until(lambda: not pump.clients)

    asyncio.run(main())
    assert "disconnected: the client has not read for 0 s" in caplog.text


def test_answers_beyond_measure_are_not_kept(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with served(echo(times=100_000)) as (_, pump, connect):
            one = await connect()
            one.writer.write(b"x" * 100)
            await until(lambda: not pump.clients)

    asyncio.run(main())
    assert "unread bytes" in caplog.text


def test_a_flood_waits_for_itself() -> None:
    async def main() -> None:
        async with served(echo(times=0)) as (parts, pump, connect):
            one, other = await connect(), await connect()
            # The flood starts when the time share of all clients is used up.
            parts.hub.turns.spend(1.0)
            one.writer.write(b"x" * 2_000_000)
            await until(lambda: pump.clients[0].is_reading_paused)  # type: ignore[union-attr]
            tick = parts.hub.sim.tick
            await until(lambda: parts.hub.sim.tick > tick + 5)
            assert other.writer is not None

    asyncio.run(main())


def test_a_port_that_is_taken_is_told() -> None:
    async def main() -> None:
        async with served(echo()) as (parts, pump, _):
            other = pump_of(echo(), {}, parts.hub, parts.control)
            with pytest.raises(
                PortError, match="interface echo: cannot listen on port"
            ):
                await other.start("127.0.0.1", pump.address[1])

            await other.start("127.0.0.1", 0)
            await other.stop()

    asyncio.run(main())


class Pong:
    """A datagram session: `add` adds a robot, `!` is a fault, other input is echoed."""

    def __init__(self, door: Door) -> None:
        self.door = door

    def receive_datagram(self, data: bytes, source: str, now: float) -> list[bytes]:
        if data == b"!":
            raise ValueError("a fault")
        if data == b"add":
            self.door.do(AddRobot(model="p3dx"))
        return [data] * 100 if data == b"many" else [data]


PONG = Interface(name="pong", about="", carrier=Carrier.UDP, session=Pong, rate=1000.0)


class Peer(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.got: list[bytes] = []

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.got.append(data)


def test_datagrams_are_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        parts = compose(Simulation())
        pump = pump_of(PONG, PONG.chosen({}), parts.hub, parts.control)
        await pump.start("127.0.0.1", 0)
        transport, peer = await asyncio.get_running_loop().create_datagram_endpoint(
            Peer, remote_addr=pump.address
        )
        try:
            transport.sendto(b"!")
            transport.sendto(b"x" * (pump_module.MAX_DATAGRAM + 1))
            transport.sendto(b"hello")
            await until(lambda: peer.got == [b"hello"])
            transport.sendto(b"many")
            await until(lambda: len(peer.got) == 1 + pump_module.MAX_ANSWERS)
        finally:
            transport.close()
            await pump.stop()
            parts.close()

    asyncio.run(main())
    assert caplog.text.count("ValueError: a fault") == 1


def test_the_check_knows_datagrams() -> None:
    assert check_protocol(PONG, [b"hello"]) == []


def test_discovery_is_carried_by_the_same_pump() -> None:
    from botyard.interfaces.discovery import Discovery

    one = Discovery(everybody=False)
    assert one.receive_datagram(REQUEST, "127.0.0.1", 0.0) == (REPLY,)
    assert one.receive_datagram(REQUEST, "192.0.2.1", 0.0) == ()
    assert one.receive_datagram(b"", "127.0.0.1", 0.0) == ()


def test_an_interface_with_servers_of_its_own_has_no_pump() -> None:
    async def main() -> None:
        parts = compose(Simulation())
        with pytest.raises(WorldError, match="its own servers"):
            pump_of(find_interface("pioneer"), {}, parts.hub, parts.control)

    asyncio.run(main())


def test_one_that_cannot_be_started_says_why(
    textproto: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interface_module, "_is_there", lambda module: False)
    object.__setattr__(textproto.interface, "modules", ("serial",))

    async def main() -> None:
        parts = compose(Simulation())
        async with contextlib.AsyncExitStack() as stack:
            o = RunOptions(
                interface=("textproto:port=0",),
                port=0,
                no_gui=True,
                no_network_discovery=True,
            )
            with pytest.raises(WorldError, match="needs serial"):
                await begin_interfaces(stack, Run(parts, o))
            assert not parts.robot_servers.interfaces["textproto"].on

        parts.close()

    asyncio.run(main())


def test_levels_of_an_interface_bind_its_clients() -> None:
    assert caller_of(PONG, "a", "k").level is Level.CHANGE
    looks = Interface(
        name="look", about="", carrier=Carrier.UDP, session=Pong, level=Level.WATCH
    )
    assert any("DeniedError" in p for p in check_protocol(looks, [b"add"])), (
        "it raises when it may not"
    )
