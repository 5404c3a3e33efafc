"""Silence is judged after reading:

a late loop does not call a client silent that has sent data.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from botyard.interfaces.http_admission import (
    REQUEST_TIME,
    UNREAD_GRACE_S,
    HttpAdmission,
)
from botyard.protocols.pioneer.handshake import Stage
from botyard.protocols.pioneer.packet import frame
from botyard.protocols.pioneer.session import HANDSHAKE_SECONDS, SILENCE_SECONDS
from botyard.protocols.rtps.limits import MAX_LEASE_S
from botyard.protocols.webgui.session import HELLO_TIMEOUT, Tokens, Viewer
from botyard.servers import streampeer
from botyard.servers.outlet import Outlet
from botyard.servers.pioneer import robotclient
from botyard.servers.pioneer.robotclient import RobotClient
from botyard.servers.sockets import MAX_STUCK, has_room, has_unread
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TimeShare
from tests.protocols.rtps.test_crowds import Stranger
from tests.protocols.rtps.test_hostile import alone
from tests.protocols.test_session import opened, world
from tests.protocols.test_webgui import RequestHandler


@contextlib.contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return two connected sockets; the first one does not block."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def fill(sock: socket.socket) -> None:
    """Write until the other end has to read."""
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.send(bytes(1 << 16))


def test_what_lies_in_the_kernel_is_seen() -> None:
    with pair() as (ours, theirs):
        assert not has_unread(ours) and has_room(ours)
        theirs.send(b"x")
        assert has_unread(ours)
        fill(ours)
        assert not has_room(ours)

    assert not has_unread(ours) and not has_room(None)


class Port:
    """A robot's port as unidentified peers see it."""

    max_strangers = 1

    def __init__(self, reason: str = "") -> None:
        self.hub = SimpleNamespace(turns=TimeShare(0.2, lambda: 0.0))
        self.log = logging.getLogger("botyard.test")
        self.refusals = self.visits = ThrottledLog(self.log)
        self.connected: dict[RobotClient, None] = {}
        self.leaving: dict[RobotClient, float] = {}
        self.reason = reason
        self.admitted: list[RobotClient] = []
        self.refused: list[RobotClient] = []

    def refusal(self) -> str:
        return self.reason

    def make_room(self) -> None:
        robotclient.RobotPortServer.make_room(self)  # type: ignore[arg-type]

    def admit(self, client: RobotClient) -> None:
        self.admitted.append(client)

    def gone(self, client: RobotClient, robot: Any) -> None:
        self.connected.pop(client, None)
        self.refused.append(client)


class Transport(asyncio.Transport):
    """A transport on a socket that is not read by itself: its loop is late."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__({"socket": sock, "peername": ("10.1.2.3", 4)})

    def is_closing(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: None


for _name in (
    "pause_reading",
    "resume_reading",
    "write_eof",
    "abort",
    "set_write_buffer_limits",
    "get_write_buffer_size",
):
    setattr(Transport, _name, lambda self, *args, **options: 0)


@pytest.mark.parametrize("where", ["kernel", "queue"])
def test_a_client_whose_bytes_were_not_looked_at_is_not_refused(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes may be unread or wait for their turn.

    It is refused afterwards if they were no packet.
    """
    monkeypatch.setattr(robotclient, "FIRST_PACKET_TIMEOUT_S", 0.0)
    monkeypatch.setattr(streampeer, "LOOK_AGAIN_S", 0.0)

    async def scene() -> None:
        with pair() as (ours, theirs):
            port = Port()
            client = RobotClient(port)  # type: ignore[arg-type]
            if where == "kernel":
                theirs.send(b"abc")
            else:
                port.hub.turns.spend(1000.0)
                client.own = None

            client.connection_made(Transport(ours))
            if where == "queue":
                client.data_received(b"abc")
            for _ in range(20):
                await asyncio.sleep(0)
            assert client in port.connected
            if where == "kernel":
                client.data_received(ours.recv(10))
            if where == "queue":
                port.hub.turns.forget(client)
                client.turn()
            while client in port.connected:
                await asyncio.sleep(0)
            assert port.refused == [client] and not port.admitted

    asyncio.run(asyncio.wait_for(scene(), 60.0))


def test_who_has_spoken_does_not_make_room_for_the_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Too many unidentified peers:

    the one with waiting bytes stays, although it is the oldest.
    """

    async def scene() -> None:
        with pair() as (ours, theirs), pair() as (others, _far):
            port = Port()
            first, second = RobotClient(port), RobotClient(port)  # type: ignore[arg-type]
            theirs.send(frame(0))
            first.connection_made(Transport(ours))
            second.connection_made(Transport(others))
            assert port.refused == [second] and first in port.connected

    asyncio.run(scene())


@pytest.mark.parametrize("handshake", [(0,), (0, 1, 2), (0, 1, 2, 1)])
def test_a_session_with_unread_bytes_is_not_over(handshake: tuple[int, ...]) -> None:
    """In the handshake, before OPEN, and after it; without unread bytes it is over."""
    modem, line = world()
    for n in handshake:
        line.send(frame(n))
    session = line.connection.session
    session.has_unread = lambda: True
    late = session.silent_since + max(SILENCE_SECONDS, HANDSHAKE_SECONDS) + 1.0
    stage = session.stage
    session.handle_timer(late)
    assert session.stage is stage and not session._silent
    timer = session.next_timer()
    assert (timer is not None and timer > late) or stage is Stage.OPEN
    session.has_unread = lambda: False
    session.handle_timer(late + 100.0)
    assert session.is_closed or session._silent
    assert modem.sim is not None


def test_the_watchdog_waits_for_what_was_not_read() -> None:
    """A robot drives on while its client's bytes wait, and stops when there are none."""
    modem, line = opened()
    line.connection.session.has_unread = lambda: True
    modem.run(4.0)
    assert not line.connection.session.watchdog_fired
    line.connection.session.has_unread = lambda: False
    modem.run(0.5)
    assert line.connection.session.watchdog_fired


def test_deadlines_of_connections_that_wait_for_us() -> None:
    """All pools of the page, rosbridge's HTTP and ROS 1 extend deadlines, but not
    forever, because a flood always waits.
    """
    gate = HttpAdmission(0.0)
    dropped: list[str] = []
    unread = {"late": True, "silent": False}
    for name in unread:
        gate.add_connection(
            f"10.0.0.{len(name)}",
            lambda name=name: dropped.append(name),
            0.0,
            lambda name=name: unread[name],
        )  # type: ignore[misc]

    gate.sweep(REQUEST_TIME + 1.0)
    assert dropped == ["silent"]
    gate.sweep(REQUEST_TIME + UNREAD_GRACE_S + 1.0)
    assert dropped == ["silent", "late"]


def test_a_page_whose_hello_was_not_looked_at_is_not_closed() -> None:
    session = Viewer(RequestHandler(), Tokens("full"), 0.0)
    assert not session.is_overdue(HELLO_TIMEOUT + 1.0, has_unread=True)
    assert session.is_overdue(HELLO_TIMEOUT + 1.0)


def test_leases_end_after_reading() -> None:
    """A participant is not forgotten while packets wait, though not forever."""
    part = alone()
    Stranger(part, 1, "10.9.9.9")
    part.judge_after(lambda: True)
    lease = part.peers[0].data.lease
    part.due(lease + 10.0)
    assert len(part.peers) == 1
    part.due(MAX_LEASE_S + 100.0)
    assert not part.peers
    Stranger(part, 2, "10.9.9.9", now=1000.0)
    part.judge_after(lambda: False)
    part.due(1000.0 + lease + 10.0)
    assert not part.peers


def test_who_has_read_is_not_stuck() -> None:
    """The loop is late with writing more: the reader is not at fault."""

    async def scene() -> None:
        with pair() as (ours, theirs):
            outlet = Outlet(Transport(ours))
            fill(ours)
            outlet.pause()
            later = outlet.since + MAX_STUCK + 1.0
            assert outlet.stuck(later) > MAX_STUCK
            while len(theirs.recv(1 << 20)) == 1 << 20:
                pass
            while not has_room(ours):
                theirs.recv(1 << 20)
            assert outlet.stuck(later) == 0.0

    asyncio.run(scene())
