"""The sockets of an RTPS participant; among others they are tried in tests/ros/test_rtps.py, in a network of their own."""

from __future__ import annotations

import asyncio
import ipaddress

from botyard.protocols.dds.environment import Environment
from botyard.protocols.rtps.qos import Durability, Qos
from botyard.servers.rtps import RtpsNode, interface_addresses


def test_addresses() -> None:
    """At least the loopback, which comes last."""
    found = interface_addresses()
    assert found[-1] == "127.0.0.1"
    assert all(ipaddress.ip_address(host).version == 4 for host in found)
    assert len(set(found)) == len(found)


def test_off_opens_no_socket() -> None:
    """Topics can be written as ever; nobody hears of them."""

    async def run() -> None:
        node = RtpsNode(Environment(0, "OFF"))
        writer = node.participant.writer("rt/map", "T", Qos(durability=Durability.TRANSIENT_LOCAL), node.now())
        writer.write(b"\0\1\0\0", node.now())
        node.wake()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert writer.number == 1
        assert node._sockets == node._group == []
        node.close()
        node.close()

    asyncio.run(run())
