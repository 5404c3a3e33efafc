"""Hundreds of clients, some of them hostile, whose sockets the server reads and writes together."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import random
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from botyard.model.scene import Scene
from botyard.protocols.pioneer.packet import Parser, command, frame
from botyard.servers.pioneer import intake as intakes
from botyard.servers.pioneer.bulksockets import bulk_sockets
from botyard.sim.journal import Entry
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Simulation
from tests.servers.test_bulksockets import HELLO
from tests.servers.test_intake import DRIVE, ENABLE, Reading
from tests.waiting import PATIENCE

if bulk_sockets() is None:
    pytest.skip("no calls for many reads here", allow_module_level=True)

ROBOTS = intakes.MIN_TOGETHER + 24
HONEST = 16
"""Number of honest clients, which have the first robots."""
ROUNDS = 60
RESET = b"\x01\0\0\0\0\0\0\0"
"""Value of SO_LINGER with which `close` resets the connection."""


def world() -> Simulation:
    sim = Simulation(Scene(), warn=lambda _: None)
    sim.add_robots(
        "p3dx-sh", [(2.0 * (i % 20), 2.0 * (i // 20), 0.0) for i in range(ROBOTS)]
    )
    return sim


class Attackers:
    """Hostile clients of all but the first robots."""

    def __init__(self, server: Reading, clients: list[socket.socket]) -> None:
        self.rng = random.Random(1)
        self.server = server
        self.sockets: dict[int, socket.socket | None] = dict(
            enumerate(clients[HONEST:], start=HONEST)
        )
        self.acts: tuple[Callable[[int, socket.socket], None], ...] = (
            self.drive,
            self.drive,
            self.babble,
            self.flood,
            self.break_off,
            self.ask,
            self.damage,
            self.say_goodbye,
            self.reset,
            self.close,
            self.half_close,
        )

    def act(self) -> None:
        """Let each of some attackers do something."""
        for i in self.rng.sample(sorted(self.sockets), 40):
            one = self.sockets[i]
            if one is None:
                self.come(i)
                continue
            # The server may have disconnected it, or its buffer may be full.
            with contextlib.suppress(OSError):
                self.rng.choice(self.acts)(i, one)
            # Some never read, so that their buffers fill.
            if i % 3:
                with contextlib.suppress(OSError):
                    while one.recv(1 << 16):
                        pass

    def come(self, i: int) -> None:
        address = self.server.ports[i].address
        one = socket.create_connection(address, PATIENCE)
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(HELLO + ENABLE)
        self.sockets[i] = one

    def drive(self, i: int, one: socket.socket) -> None:
        one.send(DRIVE)

    def babble(self, i: int, one: socket.socket) -> None:
        one.send(self.rng.randbytes(self.rng.randrange(1, 300)))

    def flood(self, i: int, one: socket.socket) -> None:
        while one.send(DRIVE * 1000):
            pass

    def break_off(self, i: int, one: socket.socket) -> None:
        one.send((DRIVE * 3)[: self.rng.randrange(1, 40)])

    def ask(self, i: int, one: socket.socket) -> None:
        one.send(DRIVE + command(18) + frame(self.rng.randrange(256)))

    def damage(self, i: int, one: socket.socket) -> None:
        data = bytearray(DRIVE * 4)
        data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
        one.send(data)

    def say_goodbye(self, i: int, one: socket.socket) -> None:
        one.send(DRIVE + command(2, 1))
        self.close(i, one)

    def reset(self, i: int, one: socket.socket) -> None:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.close(i, one)

    def close(self, i: int, one: socket.socket) -> None:
        one.close()
        self.sockets[i] = None

    def half_close(self, i: int, one: socket.socket) -> None:
        one.send(DRIVE)
        one.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        for one in self.sockets.values():
            if one is not None:
                one.close()


class Honest:
    """A client that drives, and checks what it receives."""

    def __init__(self, number: int, one: socket.socket) -> None:
        self.number, self.socket = number, one
        self.parser = Parser()
        self.reports = 0
        self.speed = 0

    def drive(self) -> None:
        self.speed = (self.speed + 7 + self.number) % 300
        self.socket.sendall(command(11, self.speed))

    def read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := self.socket.recv(1 << 16):
                self.reports += sum(
                    p.id in (0x32, 0x33) for p in self.parser.feed_bytes(data)
                )


def files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def served(act: Callable[[Reading, list[socket.socket]], Any]) -> None:
    server = Reading(world())
    clients = await server.connect()
    try:
        await server.ready(clients)
        await act(server, clients)
    finally:
        for port in server.ports:
            port.close()
        for one in clients:
            one.close()
        await server.until(lambda: not len(server.hub.intake))


@pytest.mark.slow_without_jit
def test_honest_clients_are_served_among_hostile_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All clients are read together; recordings start and end at any time."""

    async def act(server: Reading, clients: list[socket.socket]) -> None:
        attackers = Attackers(server, clients)
        honest = [Honest(i, one) for i, one in enumerate(clients[:HONEST])]
        pieces: dict[tuple[str, int], list[int]] = {}
        end: Callable[[], None] | None = None
        seen = 0

        def take(robot: str, number: int, order: int, *_: object) -> None:
            pieces.setdefault((robot, number), []).append(order)

        for k in range(ROUNDS):
            attackers.act()
            for one in honest:
                one.drive()
            if k % 25 == 10:
                end = server.desk.taps.add(take)
            elif k % 25 == 15 and end is not None:
                end()
            await asyncio.sleep(0.002)
            wanted = [one.speed for one in honest]
            await server.steps_until(lambda: server.targets[:HONEST] == wanted)  # noqa: B023
            seen = max(seen, len(server.hub.intake))
            for one in honest:
                one.read()

        assert seen >= intakes.MIN_TOGETHER // 2, "the intake has read many of them"
        for one in honest:
            assert one.reports >= ROUNDS // 2
            assert one.parser.counts.errors == one.parser.counts.garbage == 0
        for orders in pieces.values():
            assert orders == sorted(set(orders)), "each piece has a number of its own"
        attackers.end()
        await server.until(lambda: sum(c is not None for c in server.clients) == HONEST)

    before = files()
    with caplog.at_level(logging.WARNING):
        asyncio.run(served(act))
    assert not [r for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR]
    assert files() <= before + 4, "all sockets are closed"


@pytest.mark.slow_without_jit
def test_clients_that_leave_during_a_send_do_not_disturb_it() -> None:
    async def act(server: Reading, clients: list[socket.socket]) -> None:
        reporter = server.hub.reporter
        send = reporter._send
        assert send is not None
        gone = list(range(HONEST, ROBOTS, 3))
        refused: list[int] = []

        def leaving(sockets: Any, buffer: Any, at: Any, sizes: Any) -> Any:
            # The reports are made, and their sockets are chosen.
            while gone:
                one = clients[gone.pop()]
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                one.close()
            taken = send(sockets, buffer, at, sizes)
            refused.extend(taken[taken < 0].tolist())
            return taken

        reporter._send = leaving
        expected = len(gone)
        for one in clients[:HONEST]:
            await server.read(one)
        server.step()
        assert len(refused) == expected
        assert set(refused) <= {-errno.EPIPE, -errno.ECONNRESET}
        stays = [i for i in range(ROBOTS) if (i - HONEST) % 3 or i < HONEST]
        await server.until(
            lambda: sum(c is not None for c in server.clients) == len(stays)
        )
        server.step()
        await asyncio.sleep(0.01)
        for i in stays:
            parser, got = Parser(), b""
            with contextlib.suppress(BlockingIOError):
                while data := clients[i].recv(1 << 16):
                    got += data
            reports = [p for p in parser.feed_bytes(got) if p.id in (0x32, 0x33)]
            assert len(reports) >= 2
            assert parser.counts.errors == parser.counts.garbage == 0

    asyncio.run(served(act))


@pytest.mark.slow_without_jit
def test_a_recording_of_commands_read_together_can_be_repeated() -> None:
    """The journal has the velocities of all clients, although no connection saw them."""

    async def act(server: Reading, clients: list[socket.socket]) -> None:
        entries: list[Entry] = []
        sim = server.hub.sim
        first = sim.clone()
        end = sim.core.journal.listen(entries.append)
        rng, digests = np.random.default_rng(1), []
        for _ in range(10):
            for one in clients:
                speed, turn = rng.integers(-300, 300), rng.integers(-30, 30)
                one.sendall(command(11, int(speed)) + command(21, int(turn)))
            server.hub.intake._rest_until = 0.0
            server.hub.intake.read_before_step()
            assert len(server.hub.intake) == ROBOTS
            server.step()
            digests.append(sim.digest())
        end()
        assert len(entries) >= 10
        assert np.abs(sim.fleet.velocities).max() > 0.1
        assert list(resimulate(first, entries, sim.tick)) == digests

    asyncio.run(served(act))
