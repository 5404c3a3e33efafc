"""Discovery: one answer for each request, rate-limited for each source address (DSC-001
… DSC-005).
"""

from __future__ import annotations

import ipaddress

from botyard.control import Level
from botyard.interfaces.interface import Carrier, Door, Interface, Option
from botyard.protocols.discovery import PORT, REPLY, is_request
from botyard.protocols.tokenbucket import RateLimit


class Discovery:
    """Answers requests; a `botyard.interfaces.interface.Datagrams`.

    Parameters
    ----------
    everybody : bool
        Answer requests from any address; otherwise only those from this machine
        (decisions, "Discovery").
    """

    def __init__(self, everybody: bool) -> None:
        self._everybody = everybody
        self._limit = RateLimit()

    @classmethod
    def of(cls, door: Door) -> Discovery:
        """Make the handler from the option ``everybody``."""
        return cls(bool(door.options["everybody"]))

    def receive_datagram(
        self, data: bytes, source: str, now: float
    ) -> tuple[bytes, ...]:
        """Process a datagram; returns the answers."""
        if not is_request(data) or not (
            self._everybody or ipaddress.ip_address(source).is_loopback
        ):
            return ()

        return (REPLY,) if self._limit.allows(source, now) else ()


interface = Interface(
    name="discovery",
    about=f"answers programs that look for robots (UDP {PORT})",
    carrier=Carrier.UDP,
    session=Discovery.of,
    port=PORT,
    is_port_fixed=True,
    is_broadcast=True,
    level=Level.WATCH,
    rate=1000.0,  # `RateLimit` answers far fewer
    options=(
        Option(
            "everybody",
            bool,
            False,
            "answer other machines; by default when robots can be reached from there",
        ),
    ),
)

__all__ = ["Discovery", "interface"]
