"""Announcement of robots by multicast DNS as ``_botyard._tcp`` services (DSC-006).

It needs the extra ``discovery``.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING

from botyard.errors import CommandLineError
from botyard.extras import lacking

if TYPE_CHECKING:
    from zeroconf import ServiceInfo

SERVICE = "_botyard._tcp.local."
"""Type of the DNS-SD service, with the domain of multicast DNS."""
MAX_LABEL = 63
"""Maximum length of a label of a name (RFC 1035 §2.3.4), bytes."""
MAX_VALUE = 200
"""Maximum length of a property's value, bytes.

With its key it must fit into 255 bytes (RFC 6763 §6.1).
"""


class Announcement:
    """Announcement of robots; await `begin` and `end`.

    Raises
    ------
    CommandLineError
        The extra is not installed.
    """

    def __init__(self) -> None:
        try:
            from zeroconf.asyncio import AsyncZeroconf
        except ImportError:
            raise CommandLineError(lacking("multicast DNS", "discovery")) from None

        self._make = AsyncZeroconf
        self._zeroconf: AsyncZeroconf | None = None

    async def begin(
        self,
        robots: Iterable[tuple[str, str, str, int]],
        interfaces: list[str] | None = None,
    ) -> None:
        """Announce robots.

        Parameters
        ----------
        robots : iterable of (str, str, str, int)
            Name, model, host and TCP port of each robot.
        interfaces : list of str, optional
            Addresses of the network interfaces to use; by default all.
        """
        self._zeroconf = (
            self._make(interfaces=interfaces) if interfaces else self._make()
        )
        for name, model, host, port in robots:
            await self._zeroconf.async_register_service(
                _service(name, model, host, port), allow_name_change=True
            )

    async def end(self) -> None:
        """Withdraw the announcement."""
        if self._zeroconf is not None:
            await self._zeroconf.async_unregister_all_services()
            await self._zeroconf.async_close()


def _service(name: str, model: str, host: str, port: int) -> ServiceInfo:
    from zeroconf import ServiceInfo

    machine = socket.gethostname().partition(".")[0] or "botyard"
    # A client cannot connect to the wildcard address.
    addresses = [host] if host not in ("0.0.0.0", "") else _own_addresses()
    return ServiceInfo(
        SERVICE,
        f"{_cut(f'{name} on {machine}', MAX_LABEL)}.{SERVICE}",
        port=port,
        properties={
            "name": _cut(name, MAX_VALUE),
            "model": _cut(model, MAX_VALUE),
            "protocol": "pioneer",
        },
        server=f"{machine}-botyard.local.",
        parsed_addresses=addresses,
    )


def _cut(text: str, limit: int) -> str:
    """Return a prefix of the text with at most `limit` bytes of UTF-8."""
    return text.encode()[:limit].decode(errors="ignore")


def _own_addresses() -> list[str]:
    try:
        return sorted(
            {
                str(i[4][0])
                for i in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
            }
        )
    except OSError:
        return ["127.0.0.1"]
