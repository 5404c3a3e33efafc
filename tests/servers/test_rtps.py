"""The sockets of an RTPS participant; tests/ros/test_rtps.py tests them with other
participants.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import pytest

from botyard.errors import PeerError
from botyard.protocols.dds.environment import Environment
from botyard.protocols.rtps import guids
from botyard.protocols.rtps.qos import Durability, Qos
from botyard.protocols.rtps.samples import Sample
from botyard.servers.ros import rtps
from botyard.servers.ros.rtps import RtpsNode, interface_addresses
from tests.servers.nearby import Nearby
from tests.waiting import PATIENCE


def test_addresses() -> None:
    """Addresses include at least the loopback, which comes last."""
    found = interface_addresses()
    assert found[-1] == "127.0.0.1"
    assert all(ipaddress.ip_address(host).version == 4 for host in found)
    assert len(set(found)) == len(found)


def test_off_opens_no_socket() -> None:
    """Topics can still be written, but no peer receives them."""

    async def run() -> None:
        node = RtpsNode(Environment(0, "OFF"))
        writer = node.participant.writer(
            "rt/map", "T", Qos(durability=Durability.TRANSIENT_LOCAL), node.now()
        )
        writer.write(b"\0\1\0\0", node.now())
        node.wake()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert writer.number == 1
        assert node._sockets == node._group == []
        node.close()
        node.close()

    asyncio.run(run())


class _Taken(socket.socket):
    """A socket on which every port is taken except those with the last digit 4."""

    def bind(self, address: tuple[str, int]) -> None:  # type: ignore[override]
        """Bind or refuse."""
        if not 0 <= address[1] <= 65535:
            raise OverflowError("bind(): port must be 0-65535.")
        if address[1] != guids.discovery_port(232) and address[1] % 10 != 4:
            raise OSError("in use")
        super().bind(address)


@pytest.mark.parametrize("is_free", [True, False])
def test_the_last_domain_has_fewer_ports(
    monkeypatch: pytest.MonkeyPatch, is_free: bool
) -> None:
    """The next free port is found; without one the error says that the domain is full."""

    def udp() -> socket.socket:
        sock = _Taken(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        return sock

    async def run() -> None:
        monkeypatch.setattr(rtps, "_udp", udp)
        if not is_free:
            monkeypatch.setattr(
                _Taken,
                "bind",
                lambda self, address: (_ for _ in ()).throw(OSError("in use")),
            )
            with pytest.raises(PeerError, match="domain 232"):
                RtpsNode(Nearby(232))
            return

        node = RtpsNode(Nearby(232))
        assert node._sockets[0].getsockname()[1] == 65414
        node.close()

    asyncio.run(run())


def test_a_callback_may_close_the_participant() -> None:
    """The callback runs in the middle of the received packets."""

    async def run() -> None:
        one, other = RtpsNode(Nearby(179)), RtpsNode(Nearby(179))
        taken = []

        def take(sample: Sample) -> None:
            taken.append(sample)
            other.close()

        other.participant.reader("rt/a", "T", take, Qos(), other.now())
        writer = one.participant.writer("rt/a", "T", Qos(), one.now())
        async with asyncio.timeout(PATIENCE):
            while not writer.matched:
                await asyncio.sleep(0.01)
            for _ in range(20):
                writer.write(b"\0\1\0\0", one.now())
            one.wake()
            while one.participant.peers:
                await asyncio.sleep(0.01)

        assert taken
        one.close()

    asyncio.run(run())


@pytest.mark.parametrize("name", ["a..b", "x" * 100])
def test_a_static_peer_that_cannot_be_is_left_out_with_a_warning(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert rtps._resolved([name, "127.0.0.1"]) == ["127.0.0.1"]
    assert f"static peer {name}" in caplog.text
