"""Answers discovery datagrams at once (`botyard.interfaces.discovery`)."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Final

from botyard.interfaces.discovery import Discovery
from botyard.protocols.discovery import PORT
from botyard.servers.pump import UdpPump

RATE: Final = 1000.0
"""Datagrams of one address that are looked at, 1/s; far fewer are answered."""

log = logging.getLogger("botyard.discovery")


class DiscoveryServer(UdpPump):
    """The UDP side of discovery, see `Discovery`."""

    def __init__(self, everybody: bool) -> None:
        super().__init__("discovery", Discovery(everybody), RATE)

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


__all__ = ["DiscoveryServer"]
