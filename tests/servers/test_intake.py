"""Clients that are read together are served as those that read for themselves."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

import pytest

from botyard.protocols.pioneer.packet import Parser, command
from botyard.servers.pioneer import intake as intakes
from botyard.servers.pioneer.bulksockets import bulk_sockets
from botyard.servers.pioneer.robotclient import RobotClient
from tests.servers.test_bulksockets import CLIENTS, Server, world
from tests.waiting import PATIENCE

if bulk_sockets() is None:
    pytest.skip("no calls for many reads here", allow_module_level=True)

ENABLE = command(4, 1)
DRIVE = command(11, 200) + command(21, 10)


class Reading(Server):
    """A server whose intake may read."""

    @property
    def targets(self) -> list[float]:
        """Wanted speed of each robot in the engine, mm/s."""
        fleet = self.hub.sim.fleet
        speeds = fleet.state.target[fleet.robot_rows, 0]
        return [round(1000.0 * v) for v in speeds.tolist()]

    def near(self, i: int) -> RobotClient:
        near = self.clients[i]
        assert near is not None
        return near

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await asyncio.sleep(0.001)

    async def ready(self, clients: list[socket.socket]) -> None:
        """Switch motors on; wait until all clients are read together."""
        for one in clients:
            one.sendall(ENABLE)
        await self.until(lambda: len(self.hub.intake) == len(clients))
        self.step()

    async def steps_until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self.step()
                await asyncio.sleep(0.001)


def run(
    act: Callable[[Reading, list[socket.socket]], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intakes, "MIN_TOGETHER", CLIENTS)

    async def go() -> None:
        server = Reading(world())
        clients = await server.connect()
        try:
            await server.ready(clients)
            await act(server, clients)  # type: ignore[misc]
        finally:
            for port in server.ports:
                port.close()
            for one in clients:
                one.close()
            await server.until(lambda: not len(server.hub.intake))
            assert server.hub.intake._epoll is None

    asyncio.run(go())


def test_commands_of_all_take_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(server: Reading, clients: list[socket.socket]) -> None:
        for i, one in enumerate(clients):
            one.sendall(command(11, 100 + i))
        expected = [100 + i for i in range(CLIENTS)]
        await server.steps_until(lambda: server.targets == expected)
        assert len(server.hub.intake) == CLIENTS

    run(act, monkeypatch)


def test_commands_that_came_before_a_step_take_effect_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intakes, "INTERVAL_S", 3600.0)

    async def act(server: Reading, clients: list[socket.socket]) -> None:
        clients[0].sendall(command(0))
        await server.until(lambda: server.hub.intake._timer is not None)
        clients[1].sendall(DRIVE)
        server.hub.intake._rest_until = 0.0
        server.hub.intake.read_before_step()
        server.step()
        assert server.targets[1] == 200

    run(act, monkeypatch)


def test_a_request_is_answered_and_its_client_read_together_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(server: Reading, clients: list[socket.socket]) -> None:
        parser, found = Parser(), []
        clients[2].sendall(DRIVE + command(18))
        async with asyncio.timeout(PATIENCE):
            while 0x20 not in found:
                found += [
                    p.id for p in parser.feed_bytes(await server.read(clients[2]))
                ]
        await server.until(lambda: len(server.hub.intake) == CLIENTS)
        server.step()
        assert server.targets[2] == 200

    run(act, monkeypatch)


def test_a_packet_in_pieces_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(server: Reading, clients: list[socket.socket]) -> None:
        clients[1].sendall(DRIVE[:13])
        await server.until(lambda: len(server.hub.intake) == CLIENTS - 1)
        clients[1].sendall(DRIVE[13:])
        await server.until(lambda: len(server.hub.intake) == CLIENTS)
        server.step()
        assert server.targets[1] == 200
        session = server.near(1)._connection.session  # type: ignore[union-attr]
        assert session.parser.counts.errors == session.parser.counts.garbage == 0

    run(act, monkeypatch)


def test_who_disconnects_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(server: Reading, clients: list[socket.socket]) -> None:
        clients[0].close()
        clients[1].setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0"
        )
        clients[1].close()
        clients[2].sendall(command(2, 1))
        await server.until(lambda: server.clients[:3] == [None] * 3)
        assert len(server.hub.intake) == CLIENTS - 3
        clients[3].sendall(DRIVE)
        await server.steps_until(lambda: server.targets[3] == 200)

    run(act, monkeypatch)


def test_a_client_that_the_server_drops_is_read_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(server: Reading, clients: list[socket.socket]) -> None:
        server.near(4).drop()
        assert len(server.hub.intake) == CLIENTS - 1
        clients[5].sendall(DRIVE)
        await server.steps_until(lambda: server.targets[5] == 200)

    run(act, monkeypatch)


def test_a_flood_meets_the_budgets_of_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More bytes than a slot has go to the connection, which then stops to read."""

    async def act(server: Reading, clients: list[socket.socket]) -> None:
        flood = command(11, 1) * 10_000
        clients[0].setblocking(False)

        def push() -> bool:
            with contextlib.suppress(BlockingIOError):
                while True:
                    clients[0].send(flood)
            return server.near(0).is_reading_paused

        await server.until(push)
        assert len(server.near(0).inbox) < 100_000
        clients[1].sendall(DRIVE)
        await server.steps_until(lambda: server.targets[1] == 200)
        assert len(server.hub.intake) == CLIENTS - 1

    run(act, monkeypatch)


def test_a_recording_gets_the_bytes_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(server: Reading, clients: list[socket.socket]) -> None:
        connection = server.near(0)._connection
        assert connection is not None
        assert connection._tap is not None
        counts, row = server.hub.reporter._pieces, connection.session.row
        before, pieces = int(counts[row]), []
        clients[0].sendall(command(0))
        await server.until(lambda: bool(counts[row] == before + 1))
        expected = connection._tap.order + before + 1

        def take(robot: str, _: int, order: int, is_in: bool, data: bytes) -> None:
            pieces.append((robot, order, is_in, data))

        end = server.desk.taps.add(take)
        clients[0].sendall(DRIVE)
        await server.until(lambda: bool(pieces))
        end()
        assert pieces == [("r0", expected, True, DRIVE)]

    run(act, monkeypatch)


def test_a_fault_of_the_batch_costs_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(server: Reading, clients: list[socket.socket]) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr(server.hub.intake._batch, "take", fail)
        clients[3].sendall(DRIVE)
        await server.steps_until(lambda: server.targets[3] == 200)

    run(act, monkeypatch)


def test_few_clients_read_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        server = Reading(world())
        clients = await server.connect()
        for one in clients:
            one.sendall(ENABLE)
        clients[0].sendall(command(0))
        await server.steps_until(lambda: bool(server.hub.sim.fleet.state.motors.all()))
        assert not len(server.hub.intake)
        for port in server.ports:
            port.close()
        for one in clients:
            one.close()

    asyncio.run(go())
