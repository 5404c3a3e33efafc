"""Discovery datagrams over real sockets, ``botyard discover``, multicast DNS (DSC
rows).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard import Simulation
from botyard.app.compose import compose
from botyard.app.interfaces import _start
from botyard.app.options import RunOptions
from botyard.clients.discovery import find_hosts, probe
from botyard.clients.pioneer import PioneerClient
from botyard.errors import PortError
from botyard.interfaces.discovery import Discovery, interface
from botyard.interfaces.interface import Switch
from botyard.protocols.discovery import PORT, REPLY, REQUEST, is_reply, is_request
from botyard.protocols.tokenbucket import RateLimit
from botyard.servers.carriers import pump_of
from botyard.servers.pump import Pump
from tests.ports import free_port
from tests.running import BOTYARD, running
from tests.waiting import PATIENCE, Stalls


def test_bytes_of_request_and_reply() -> None:
    """The expected bytes are written by hand from §14."""
    assert bytes.fromhex("000000f6") == REQUEST
    assert bytes.fromhex("000000f7 00000000 fafb") + bytes(20) == REPLY
    assert len(REPLY) == 30
    assert is_request(REQUEST)
    assert is_reply(REPLY)
    assert not is_request(REPLY), "two simulators never answer each other's answers"


@given(st.binary(max_size=40))
def test_any_datagram_is_a_request_or_not(data: bytes) -> None:
    assert is_request(data) == (len(data) > 3 and data[3] == 0xF6)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 2)), max_size=60))
def test_no_source_gets_more_than_its_share(events: list[tuple[str, float]]) -> None:
    limit, now = RateLimit(rate=5.0, burst=5.0), 0.0
    given_: dict[str, list[float]] = {}
    for source, wait in events:
        now += wait
        if limit.allows(source, now):
            given_.setdefault(source, []).append(now)

    for times in given_.values():
        for i, start in enumerate(times):
            assert sum(t <= start + 1.0 for t in times[i:]) <= 11


def test_memory_of_the_limit_is_bounded() -> None:
    limit = RateLimit(max_sources=10)
    for i in range(1000):
        assert limit.allows(f"host{i}", 0.0)
    assert len(limit._buckets) == 10


def discovery(everybody: bool) -> Pump:
    parts = compose(Simulation())
    return pump_of(interface, {"everybody": everybody}, parts.hub, parts.control)


def served(everybody: bool, act: Callable[[int], None]) -> None:
    """Call `act` with the port of a discovery server, in a thread next to its loop."""

    async def main() -> None:
        server = discovery(everybody)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]

        await server.start("127.0.0.1", port)
        try:
            await asyncio.to_thread(act, port)
        finally:
            await server.stop()

    asyncio.run(main())


def test_one_answer_for_each_request_at_once() -> None:
    def act(port: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(PATIENCE)
            for request in (REQUEST, REQUEST + b"more"):
                began, stalls = time.monotonic(), Stalls()
                s.sendto(request, ("127.0.0.1", port))
                assert s.recv(100) == REPLY
                assert time.monotonic() - began < 0.5 + stalls.end()

            for other in (b"", b"\0", b"\0\0\0\xf8", REPLY):
                s.sendto(other, ("127.0.0.1", port))
            s.settimeout(0.3)
            with pytest.raises(TimeoutError):
                s.recv(100)

    served(False, act)


def test_a_flood_gets_a_few_answers() -> None:
    def act(port: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for _ in range(200):
                s.sendto(REQUEST, ("127.0.0.1", port))
            s.settimeout(0.5)
            answers = 0
            with contextlib.suppress(TimeoutError):
                while s.recv(100):
                    answers += 1

            assert 1 <= answers <= 10

    served(False, act)


def test_the_port_can_be_shared() -> None:
    """A client on the same machine binds the port as well, as ARIA's does (DSC-004)."""

    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            client.bind(("0.0.0.0", 0))
            server = discovery(False)
            await server.start("127.0.0.1", client.getsockname()[1])
            await server.stop()

    asyncio.run(main())


def test_a_port_that_is_taken_is_only_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as selfish:
            selfish.bind(("0.0.0.0", 0))
            port = selfish.getsockname()[1]
            with pytest.raises(
                PortError, match=f"interface discovery: cannot listen on port {port} of"
            ):
                await discovery(False).start("127.0.0.1", port)

            parts = compose(Simulation())

            async def start() -> None:
                await discovery(False).start("127.0.0.1", port)

            parts.robot_servers.interfaces["discovery"] = Switch(
                "", False, start, start
            )
            await _start(parts.robot_servers, "discovery", RunOptions())
            assert not parts.robot_servers.interfaces["discovery"].on

    asyncio.run(main())
    assert "network discovery is off" in caplog.text


def test_others_are_answered_only_if_they_can_connect() -> None:
    """The rule for loopback is in the decisions, "Discovery"."""

    def answers(everybody: bool, host: str) -> int:
        return len(Discovery(everybody).receive_datagram(REQUEST, host, 0.0))

    for everybody, host, expected in (
        (False, "127.0.0.1", 1),
        (False, "192.168.1.5", 0),
        (True, "192.168.1.5", 1),
        (True, "127.3.2.1", 1),
    ):
        assert answers(everybody, host) == expected


@pytest.mark.peer
@pytest.mark.xdist_group("udp30718")
def test_the_program_is_found_and_its_robots_listed() -> None:
    port = free_port(3)
    with running("--nomap", "-r", "p3dx", "-r", "amigo", "-p", str(port)):
        assert "127.0.0.1" in find_hosts(1.0)
        assert [
            (r.port, r.subclass) for r in probe("127.0.0.1", first=port, max_ports=5)
        ] == [
            (port, "p3dx"),
            (port + 1, "amigo"),
        ]
        with PioneerClient(port=port):
            assert [r.is_busy for r in probe("127.0.0.1", first=port, max_ports=5)] == [
                True,
                False,
            ]

        done = subprocess.run(
            [*BOTYARD, "discover", "--seconds", "1", "-p", str(port), "--json"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert json.loads(done.stdout)["127.0.0.1"][1] == {
            "port": port + 1,
            "class": "Pioneer",
            "subclass": "amigo",
            "busy": False,
        }


@pytest.mark.peer
@pytest.mark.xdist_group("udp30718")
def test_discovery_can_be_switched_off() -> None:
    port = free_port(3)
    with running(
        "--nomap", "-r", "p3dx", "-p", str(port), "--no-network-discovery"
    ) as (process, _):
        assert udp_ports(process.pid) == set()

    with running("--nomap", "-r", "p3dx", "-p", str(port)) as (process, _):
        assert PORT in udp_ports(process.pid)


def udp_ports(pid: int) -> set[int]:
    """Return the UDP ports that a process has bound.

    Another test's simulator may answer at the same port.
    """
    sockets = {
        os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir() if f.is_symlink()
    }
    rows = [
        line.split()
        for line in Path(f"/proc/{pid}/net/udp").read_text().splitlines()[1:]
    ]
    return {
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if f"socket:[{row[9]}]" in sockets
    }


@pytest.mark.peer
def test_robots_are_announced_by_multicast_dns() -> None:
    """Found by an independent browser of the zeroconf package, on the loopback
    interface.
    """
    from zeroconf import ServiceBrowser, ServiceStateChange, Zeroconf

    from botyard.servers.mdns import SERVICE, Announcement

    found: dict[str, tuple[int, dict[bytes, bytes | None]]] = {}

    def changed(
        zeroconf: Zeroconf,
        service_type: str,
        name: str,
        state_change: ServiceStateChange,
    ) -> None:
        info = zeroconf.get_service_info(service_type, name, timeout=3000)
        if state_change is ServiceStateChange.Added and info is not None:
            found[name] = (int(info.port or 0), dict(info.properties))

    async def main() -> None:
        announcement = Announcement()
        await announcement.begin(
            [("bob", "amigo", "127.0.0.1", 8123)], interfaces=["127.0.0.1"]
        )
        browser_side = Zeroconf(interfaces=["127.0.0.1"])
        try:
            ServiceBrowser(browser_side, SERVICE, handlers=[changed])
            for _ in range(100):
                if found:
                    break
                await asyncio.sleep(0.1)
        finally:
            browser_side.close()
            await announcement.end()

    asyncio.run(main())
    ((name, (port, properties)),) = found.items()
    assert name.startswith("bob on ")
    assert port == 8123
    assert properties == {b"name": b"bob", b"model": b"amigo", b"protocol": b"pioneer"}
