"""Reports that one call sends to many sockets equal those that each connection sends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray

from botyard.control import Control
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.model.scene import Scene
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.pioneer.packet import Parser, command
from botyard.servers.hub import Hub
from botyard.servers.pioneer import bulksockets, robot_servers
from botyard.servers.pioneer.bulksockets import BulkSockets, bulk_sockets
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.servers.pioneer.robotclient import RobotClient
from botyard.servers.pioneer.tcp import PioneerServer
from botyard.sim.simulation import Simulation
from tests.waiting import PATIENCE

I8 = NDArray[np.int64]

if bulk_sockets() is None:
    pytest.skip("no calls for many writes here", allow_module_level=True)

HELLO = command(0) + command(1) + command(2) + command(1, 1)
CLIENTS = 6


@pytest.fixture
def sender() -> Iterator[BulkSockets]:
    made = BulkSockets()
    yield made
    made.close()


@contextmanager
def pairs(count: int) -> Iterator[tuple[list[socket.socket], list[socket.socket]]]:
    both = [socket.socketpair() for _ in range(count)]
    near, far = [list(side) for side in zip(*both, strict=True)]
    for one in near + far:
        one.setblocking(False)
    try:
        yield near, far
    finally:
        for one in near + far:
            one.close()


def pieces(count: int) -> tuple[NDArray[np.uint8], I8, I8]:
    """Return a buffer with pieces of different sizes, out of order."""
    sizes = np.arange(count) % 50 + 1
    at = (np.cumsum(sizes) - sizes)[::-1].copy()
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, int(sizes.sum() + 50), np.uint8), at, sizes


@pytest.mark.parametrize("count", [1, 5, 300])
@pytest.mark.parametrize("portion", [7, 256])
def test_each_socket_gets_its_piece(
    monkeypatch: pytest.MonkeyPatch, count: int, portion: int
) -> None:
    monkeypatch.setattr(bulksockets, "PORTION", portion)
    monkeypatch.setattr(bulksockets, "MIN_SHARED", 100)
    sender = BulkSockets()
    buffer, at, sizes = pieces(count)
    with pairs(count) as (near, far):
        numbers = np.array([one.fileno() for one in near])
        taken = sender.send(numbers, buffer, at, sizes)
        got = [one.recv(1000) for one in far]
    sender.close()
    assert taken.tolist() == sizes.tolist()
    expected = [
        buffer[a : a + n].tobytes()
        for a, n in zip(at.tolist(), sizes.tolist(), strict=True)
    ]
    assert got == expected


def test_a_full_and_a_closed_socket_do_not_stop_the_others(sender: BulkSockets) -> None:
    buffer, at, sizes = pieces(200)
    with pairs(200) as (near, far):
        with contextlib.suppress(BlockingIOError):
            while True:
                near[3].send(b"x" * 1000)
        far[4].close()
        numbers = np.array([one.fileno() for one in near])
        near[150].close()
        taken = sender.send(numbers, buffer, at, sizes)
        assert taken[[3, 4, 150]].tolist() == [
            -errno.EAGAIN,
            -errno.EPIPE,
            -errno.EBADF,
        ]
        rest = np.delete(np.arange(200), [3, 4, 150])
        assert taken[rest].tolist() == sizes[rest].tolist()
        assert far[199].recv(1000) == buffer[at[199] : at[199] + sizes[199]].tobytes()


# -- in a server


class Server:
    """A simulation with a port for each robot, without the steps of a run loop."""

    def __init__(self, sim: Simulation) -> None:
        self.hub = Hub(sim)
        desk = PioneerRequests(Control(sim))
        self.hub.reporter.tap(desk.taps)
        self.desk = desk
        self.ports = [
            PioneerServer(self.hub, robot, PioneerSettings(), desk)
            for robot in sim.robots.values()
        ]
        self.now = 1000.0

    async def connect(self) -> list[socket.socket]:
        clients = []
        loop = asyncio.get_running_loop()
        for port in self.ports:
            await port.listen("127.0.0.1", 0)
            one = socket.create_connection(port.address, PATIENCE)
            one.setblocking(False)
            await loop.sock_sendall(one, HELLO + command(230, 2))
            clients.append(one)

        async with asyncio.timeout(PATIENCE):
            while not all(c is not None and c.has_robot for c in self.clients):
                await asyncio.sleep(0.001)
        for client, one in zip(self.clients, clients, strict=True):
            assert client is not None
            while client.is_held_up or not client._connection:
                await asyncio.sleep(0.001)
            await self.read(one)
        return clients

    @property
    def clients(self) -> list[RobotClient | None]:
        return [port.client for port in self.ports]

    def step(self) -> None:
        self.now += 0.1
        self.hub.sim.step()
        self.hub.reporter.on_snapshot(self.now)

    async def read(self, one: socket.socket) -> bytes:
        await asyncio.sleep(0.01)
        out = b""
        while True:
            try:
                out += one.recv(1 << 20)
            except BlockingIOError:
                return out


def world() -> Simulation:
    sim = Simulation(Scene(segments=np.array([[4.0, -9.0, 4.0, 9.0]])))
    for i in range(CLIENTS):
        sim.add_robot("p3dx-sh", f"r{i}")
    return sim


def run(act: Callable[[Server, list[socket.socket]], object]) -> None:
    async def go() -> None:
        server = Server(world())
        clients = await server.connect()
        try:
            await act(server, clients)  # type: ignore[misc]
        finally:
            for port in server.ports:
                port.close()
            for one in clients:
                one.close()

    asyncio.run(go())


def watched(server: Server) -> list[int]:
    """Return the numbers of reports that were sent together."""
    sent: list[int] = []
    send = server.hub.reporter._send
    assert send is not None

    def counting(sockets: I8, *rest: NDArray[np.int64]) -> I8:
        sent.append(len(sockets))
        return send(sockets, *rest)

    server.hub.reporter._send = counting  # type: ignore[assignment]
    return sent


def test_reports_sent_together_are_those_sent_one_by_one() -> None:
    async def act(server: Server, clients: list[socket.socket]) -> None:
        sent, reporter = watched(server), server.hub.reporter
        for send in (reporter._send, None):
            reporter._send = send
            made = [b""] * CLIENTS
            for _ in range(2):
                server.step()
                for i, client in enumerate(server.clients):
                    assert client is not None and client._connection is not None
                    row = client._connection.session.row
                    made[i] += b"".join(reporter._batch.made(row))

            got = [await server.read(one) for one in clients]
            assert got == made
            kinds = [p.id for p in Parser().feed_bytes(got[0])]
            assert kinds == 2 * [0x32, *6 * [0x61]]

        assert sent == [CLIENTS] * 2

    run(act)


def test_a_client_that_reads_slowly_loses_and_mixes_no_bytes() -> None:
    async def act(server: Server, clients: list[socket.socket]) -> None:
        sent = watched(server)
        slow, other = clients[:2]
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        near = server.clients[0]
        assert near is not None and near.socket is not None
        near.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        parser, reports, steps = Parser(), 0, 0
        while sent[-1:] != [CLIENTS - 1]:
            server.step()
            steps += 1
            await server.read(other)
            assert steps < 1000
        # The answer must wait behind the queued reports.
        near._write(command(99, 7))
        server.step()
        for _ in range(200):
            found = parser.feed_bytes(await server.read(slow))
            reports += sum(p.id == 0x32 for p in found)
            if any(p.id == 99 for p in found):
                break
        else:
            pytest.fail("the answer did not come")
        # All bytes were valid packets, in their order.
        assert parser.counts.errors == parser.counts.garbage == 0
        assert steps <= reports <= steps + 1
        server.step()
        assert sent[-1] == CLIENTS, "its reports go straight to the socket again"

    run(act)


def test_a_socket_is_left_alone_before_it_is_closed() -> None:
    """The system gives its number to the next connection."""

    async def act(server: Server, clients: list[socket.socket]) -> None:
        sent = watched(server)
        server.step()
        near = server.clients[2]
        assert near is not None
        near.drop()
        server.step()
        clients[3].close()
        async with asyncio.timeout(PATIENCE):
            while server.clients[3] is not None:
                await asyncio.sleep(0.001)
        server.step()
        assert sent == [CLIENTS, CLIENTS - 1, CLIENTS - 2]

    run(act)


def test_a_recording_that_starts_late_knows_how_much_it_missed() -> None:
    async def act(server: Server, clients: list[socket.socket]) -> None:
        server.step()
        server.step()
        pieces: list[tuple[str, int, bytes]] = []

        def take(
            robot: str, _: int, order: int, from_client: bool, data: bytes
        ) -> None:
            assert not from_client
            pieces.append((robot, order, data))

        before = {
            port.robot.name: client._connection._tap.order  # type: ignore[union-attr]
            for port, client in zip(server.ports, server.clients, strict=True)
        }
        end = server.desk.taps.add(take)
        got = [await server.read(one) for one in clients]
        server.step()
        server.step()
        end()
        got = [await server.read(one) for one in clients]
        assert len(pieces) == 2 * CLIENTS
        for i, data in enumerate(got):
            mine = [(order, piece) for name, order, piece in pieces if name == f"r{i}"]
            assert b"".join(piece for _, piece in mine) == data
            first = before[f"r{i}"] + 2
            assert [order for order, _ in mine] == [first, first + 1]

    run(act)


def test_without_the_calls_each_connection_sends_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulksockets.platform, "machine", lambda: "vax")
    with pytest.raises(OSError, match="io_submit is not available"):
        BulkSockets()
    monkeypatch.setattr(bulksockets, "_shared", [])
    assert bulk_sockets() is None
    assert Hub(world()).reporter._send is None


def test_a_sandbox_that_hides_the_results_of_writes_leaves_no_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = bulksockets._Queue._call

    def refused(queue: bulksockets._Queue, name: str, *args: object) -> int:
        return -1 if name == "getevents" else call(queue, name, *args)

    monkeypatch.setattr(bulksockets._Queue, "_call", refused)
    with pytest.raises(OSError, match="no results"):
        BulkSockets()


def test_without_another_thread_one_thread_sends_all(
    sender: BulkSockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(bulksockets.ThreadPoolExecutor, "submit", refused)
    monkeypatch.setattr(bulksockets, "MIN_SHARED", 2)
    buffer, at, sizes = pieces(3)
    with pairs(3) as (near, far):
        for _ in range(2):
            sockets = np.array([one.fileno() for one in near])
            assert (sender.send(sockets, buffer, at, sizes) == sizes).all()
        got = [one.recv(2**16) for one in far]
    for data, start, size in zip(got, at.tolist(), sizes.tolist(), strict=True):
        assert data == 2 * buffer[start : start + size].tobytes()


def test_sockets_give_their_bytes(sender: BulkSockets) -> None:
    with pairs(600) as (near, far):
        for i, one in enumerate(far[:-3]):
            one.send(bytes([i % 251]) * (i % 20 + 1))
        far[-1].close()
        near[-2].close()
        sockets = np.array([one.fileno() for one in near])
        buffer = np.zeros((600, 16), np.uint8)
        sizes = sender.receive(sockets, buffer)
        assert sizes[-3:].tolist() == [-errno.EAGAIN, -errno.EBADF, 0]
        assert sizes[:-3].tolist() == [min(i % 20 + 1, 16) for i in range(597)]
        for i in range(597):
            assert (buffer[i, : sizes[i]] == i % 251).all()
            assert not buffer[i, sizes[i] :].any()
        # The rest of a longer piece waits.
        assert near[19].recv(100) == bytes([19]) * 4


def test_a_forked_process_transfers_for_itself(
    sender: BulkSockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has neither the helper thread nor the queues."""
    monkeypatch.setattr(bulksockets, "MIN_SHARED", 2)
    monkeypatch.setattr(bulksockets, "_shared", [sender])
    buffer, at, sizes = pieces(300)
    with pairs(300) as (near, far):
        sockets = np.array([one.fileno() for one in near])
        assert (sender.send(sockets, buffer, at, sizes) == sizes).all()
        assert sender._helper is not None
        child = os.fork()
        if not child:
            try:
                # A child that hangs is killed by this alarm.
                signal.alarm(int(PATIENCE))
                mine = bulk_sockets()
                assert mine is not None
                taken = mine.send(sockets, buffer, at, sizes)
                os._exit(0 if (taken == sizes).all() else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(far[299].recv(2**16)) == 2 * sizes[299]


@pytest.mark.parametrize("limit", [111, 112, math.inf])
def test_too_few_open_files_for_all_clients_are_announced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, limit: float
) -> None:
    monkeypatch.setattr(robot_servers, "file_limit", lambda: limit)

    async def go() -> None:
        hub = Hub(world())
        desk = PioneerRequests(Control(hub.sim))
        servers = RobotServers(hub, desk, PioneerSettings(), port=0)
        servers.adopt()
        await servers.open()
        servers.close()

    asyncio.run(go())
    found = "6 robots with clients need 112 open files" in caplog.text
    assert found == (limit < 112)
