"""Answers discovery datagrams at once: one for each request, not too many for one source (DSC-001 … DSC-005)."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
from typing import Any, cast

from botyard.control.fence import Fence
from botyard.protocols.discovery import PORT, REPLY, is_request
from botyard.protocols.tokenbucket import RateLimit

log = logging.getLogger("botyard.discovery")


class DiscoveryServer(asyncio.DatagramProtocol):
    """The UDP side of discovery.

    Parameters
    ----------
    everybody : bool
        Robots listen beyond this machine: answer everybody. Else only requests from this machine (decisions, "Discovery").
    """

    def __init__(self, everybody: bool) -> None:
        self._everybody = everybody
        self._limit = RateLimit()
        self._fence = Fence(log, "an answer to discovery")
        self._transport: asyncio.DatagramTransport | None = None

    async def listen(self, port: int = PORT) -> bool:
        """Begin to answer. Whether it worked: another program may hold the port without sharing it, which is only worth a warning."""
        loop = asyncio.get_running_loop()
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a client on this machine binds the port too
            sock.setblocking(False)
            sock.bind(("0.0.0.0", port))
            await loop.create_datagram_endpoint(lambda: self, sock=sock)
        except OSError as error:
            sock.close()
            log.warning("network discovery is off: UDP port %d: %s", port, error.strerror)
            return False
        return True

    def close(self) -> None:
        """End."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Answer a request."""
        self._fence.run(self._received, data, addr)

    def _received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        if not is_request(data) or self._transport is None:
            return
        host = str(addr[0])
        local = ipaddress.ip_address(host).is_loopback
        if not (local or self._everybody):
            return
        if self._limit.allows(host, asyncio.get_running_loop().time()):
            with contextlib.suppress(OSError):  # a source that cannot be reached
                self._transport.sendto(REPLY, addr)

    def error_received(self, exc: Exception) -> None:
        """A datagram of ours was not taken: nothing to be done."""
