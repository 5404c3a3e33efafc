"""Peers that do not behave as clients:

they send nothing, write after CLOSE, or reconnect a thousand times.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import struct
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from botyard.clients.pioneer import PioneerClient
from botyard.errors import PeerError
from botyard.protocols.pioneer.packet import Parser, command, frame
from botyard.servers.pioneer.robotclient import (
    CLOSE_LINGER_S,
    MAX_EARLY,
    MAX_STRANGERS,
    RobotClient,
)
from botyard.servers.timeshare import TimeShare
from tests.golden import deviation
from tests.ports import free_port
from tests.running import running
from tests.waiting import PATIENCE, Stalls, wait

pytestmark = pytest.mark.peer

HELLO = frame(0) + frame(1) + frame(2) + command(1, 1)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def client(port: int) -> socket.socket:
    """Return a socket with an open session."""
    s = connected(port)
    s.sendall(HELLO)
    got = Parser()
    while not any(p.id == 0x32 for p in got.feed_bytes(s.recv(4096))):
        pass
    return s


def is_reset(s: socket.socket) -> bool:
    """Return whether writing fails."""
    try:
        s.sendall(command(0))
    except OSError:
        return True

    return False


def reset(s: socket.socket) -> None:
    """Close the socket like a program that dies."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def test_after_close_the_robot_is_free_and_the_old_connection_is_read_on() -> None:
    """As client libraries do: CLOSE, write and read for another second, then close."""
    deviation("close-reads-on")
    port = free_port(3)
    with running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port)):
        old = client(port)
        old.sendall(command(4, 1) + command(11, 300) + command(2))
        began = time.monotonic()
        # The next client is served at once.
        with PioneerClient(port=port) as fresh:
            assert fresh.update()
            old.settimeout(0.0)
            while time.monotonic() - began < 1.0:
                # If the server closed the socket, users of the old client would see the error
                # "Write failed".
                old.sendall(command(0) + command(11, 500))
                with contextlib.suppress(BlockingIOError):
                    assert old.recv(65536), "nor is it closed for reading"
                assert fresh.update()

            assert fresh.x_mm == 0, "nobody obeys the old client"
            old.close()
            assert fresh.update()

        with PioneerClient(port=port) as third:
            assert third.update()


def test_who_connects_right_after_close_has_the_robot() -> None:
    """Although CLOSE may be unread when the next connection comes."""
    port = free_port(3)
    with running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port)):
        holder, old = client(port), []
        for _ in range(12):
            holder.sendall(command(2))
            fresh = connected(port)
            fresh.sendall(HELLO)
            old.append(holder)
            holder, got = fresh, Parser()
            while True:
                data = fresh.recv(4096)
                assert data, "refused"
                if any(p.id == 0x32 for p in got.feed_bytes(data)):
                    break

        for s in (holder, *old):
            s.close()


def test_refused_connections_do_not_cut_off_those_who_said_close() -> None:
    port = free_port(3)
    with running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port)):
        old = client(port)
        old.sendall(command(2))
        holder = client(port)
        refused = [connected(port) for _ in range(40)]
        for s in refused:
            s.sendall(frame(0))
            assert s.recv(10) == b""

        old.sendall(command(0))
        old.settimeout(0.0)
        with contextlib.suppress(BlockingIOError):
            while True:
                assert old.recv(65536), "closed"

        assert not is_reset(old)
        for s in (old, holder, *refused):
            s.close()


def test_half_handshakes_that_come_again_and_again_keep_nobody_out() -> None:
    port, over = free_port(3), threading.Event()

    def attack() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError), connected(port) as s:
                s.sendall(frame(0))
                s.settimeout(1.0)
                while not over.is_set() and s.recv(100):
                    pass

    with running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port)):
        attackers = [threading.Thread(target=attack) for _ in range(24)]
        for thread in attackers:
            thread.start()
        try:
            came = 0

            def comes_in() -> bool:
                nonlocal came
                with (
                    contextlib.suppress(PeerError),
                    PioneerClient(port=port, timeout=2.0) as c,
                ):
                    came += c.update()

                return came >= 3

            wait(comes_in)
        finally:
            over.set()
            for thread in attackers:
                thread.join()


def test_who_does_not_go_after_close_is_put_out() -> None:
    port = free_port(3)
    with running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port)):
        old, stalls = client(port), Stalls()
        old.sendall(command(2))
        began = time.monotonic()
        wait(lambda: is_reset(old), pause=0.05)
        assert (
            CLOSE_LINGER_S - 0.5
            < time.monotonic() - began
            < CLOSE_LINGER_S + 1.0 + stalls.end()
        )
        many = []
        # The server does not keep all of these connections for that long.
        for _ in range(40):
            s = client(port)
            s.sendall(command(2))
            many.append(s)

        wait(lambda: sum(is_reset(s) for s in many) >= 20)
        for s in (old, *many):
            s.close()


def test_a_flood_that_is_cut_off_leaves_the_robot_free() -> None:
    """A flooder's waiting bytes are dropped when it leaves, with or without a goodbye."""
    port = free_port(3)
    with running("-m", "office", "-r", "p3dx", "--no-gui", "-p", str(port)):
        for way in ("close", "reset", "read and close", "half"):
            flood = client(port)
            flood.settimeout(0.2)
            try:
                while True:
                    flood.send(command(11, 100) * 1500)
            except TimeoutError:
                pass

            stalls, began = Stalls(), time.monotonic()
            if way == "half":
                flood.shutdown(socket.SHUT_WR)
            elif way == "reset":
                reset(flood)
            else:
                # Closing a socket with unread bytes would reset it, so read them first.
                if way == "read and close":
                    flood.settimeout(0.0)
                    with contextlib.suppress(BlockingIOError):
                        while flood.recv(1 << 20):
                            pass

                flood.close()

            def is_free() -> bool:
                try:
                    with PioneerClient(port=port, timeout=1.0) as c:
                        return c.update()
                except PeerError:
                    return False

            wait(is_free)
            assert time.monotonic() - began < 1.5 + stalls.end(), way
            flood.close()


def test_silent_strangers_do_not_keep_a_robot_from_its_client(tmp_path: Path) -> None:
    deviation("first-handshake-wins")
    port, file = free_port(3), tmp_path / "a.log"
    with running(
        "--nomap",
        "-r",
        "p3dx",
        "-R",
        "amigo",
        "--no-gui",
        "-p",
        str(port),
        "-l",
        str(file),
    ) as (_, ready):
        robot, factory = ready["robots"][0]["port"], ready["factories"][0]["port"]
        silent = [connected(robot) for _ in range(40)] + [
            connected(factory) for _ in range(40)
        ]
        half = [connected(robot) for _ in range(5)]
        for s in half:
            s.sendall(frame(0))
            assert s.recv(10) == frame(0), "several may begin"

        with PioneerClient(port=robot) as first, PioneerClient(port=factory) as second:
            assert first.update()
            assert second.update()
            for s in half:
                assert s.recv(10) == b"", "the one that was first has the robot"

        log = file.read_text()
        assert log.count(" connected\n") <= 8, "strangers are no clients"
        assert len(re.findall("refused", log)) <= 5, log
        for s in (*silent, *half):
            s.close()
        assert MAX_STRANGERS < 40


def test_garbage_is_no_client(tmp_path: Path) -> None:
    port, file = free_port(3), tmp_path / "a.log"
    with running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port), "-l", str(file)):
        with connected(port) as s:
            s.settimeout(PATIENCE)
            try:
                while True:
                    s.sendall(b"\xfa\xfb\xff" * 1000)
            except OSError:
                pass

        with connected(port) as s:
            s.sendall(b"GET / HTTP/1.1\r\n\r\n" + HELLO[:4])
            s.sendall(HELLO[4:])
            s.settimeout(PATIENCE)
            assert s.recv(10)[:6] == frame(0), (
                "a handshake behind garbage, in two parts"
            )

        assert "bytes before its handshake" in file.read_text()


def test_a_stranger_is_looked_at_as_far_as_its_first_packet() -> None:
    """Later bytes wait for the session, whatever the amount; without a packet only a
    little is read.
    """

    async def act() -> None:
        admitted: list[bytes] = []
        refused: list[str] = []
        server: Any = SimpleNamespace(
            hub=SimpleNamespace(turns=TimeShare(0.2)),
            admit=lambda client: admitted.append(bytes(client.inbox)),
            log=logging.getLogger("t"),
        )
        many = frame(0) + command(11, 100) * 1500
        client = RobotClient(server)
        client.outlet = MagicMock()
        client.data_received(many)
        assert admitted == [many] and client._parser.counts.packets < 30
        client = RobotClient(server)
        client.refuse = refused.append  # type: ignore[method-assign]
        client.outlet = MagicMock()
        client.data_received(b"\xfa\xfb\xc8" * 50_000)
        counts = client._parser.counts
        assert counts.bad_checksums + counts.garbage < 2 * MAX_EARLY
        assert len(admitted) == 1 and "before its handshake" in refused[0]

    asyncio.run(act())


def test_refused_and_reset_connections_leave_a_line_a_second(tmp_path: Path) -> None:
    port, file = free_port(3), tmp_path / "a.log"
    with running(
        "--nomap", "-r", "p3dx", "--no-gui", "-p", str(port), "-l", str(file)
    ) as (process, _):
        began = time.monotonic()
        for _ in range(100):
            reset(connected(port))
        with PioneerClient(port=port) as first:
            for _ in range(100):
                reset(connected(port))
            refused = [connected(port) for _ in range(100)]
            assert first.update()

        for s in refused:
            reset(s)
        for _ in range(50):
            s = connected(port)
            s.sendall(HELLO)
            reset(s)

        wait(lambda: "more like this" in file.read_text())
        took = time.monotonic() - began
        log = file.read_text()
        assert "Traceback" not in log
        assert len(re.findall("refused: |without a packet", log)) <= took + 4, log
        lost = sum(map(int, re.findall(r"and (\d+) more like this", log)))
        assert lost > 100
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert "Traceback" not in (process.stderr.read() if process.stderr else "")
