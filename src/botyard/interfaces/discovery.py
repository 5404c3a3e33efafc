"""Discovery of robots over UDP (DSC-001 to DSC-005).

Each request gets one answer, with a rate limit for each source address.
"""

from __future__ import annotations

import ipaddress

from botyard.control import Level
from botyard.interfaces.interface import Carrier, Door, Interface, Option
from botyard.protocols.discovery import PORT, REPLY, is_request
from botyard.protocols.tokenbucket import RateLimit


class Discovery:
    """Handler of discovery requests, as a `botyard.interfaces.interface.Datagrams`.

    Parameters
    ----------
    everybody : bool
        Answer requests from any address; otherwise only requests from this machine
        (decisions, "Discovery").
    """

    def __init__(self, everybody: bool) -> None:
        self._everybody = everybody
        self._limit = RateLimit()

    @classmethod
    def of(cls, door: Door) -> Discovery:
        """Create the handler from the option ``everybody``.

        Parameters
        ----------
        door : Door
            Access to the simulator, with the options of the interface.
        """
        return cls(bool(door.options["everybody"]))

    def receive_datagram(
        self, data: bytes, source: str, now: float
    ) -> tuple[bytes, ...]:
        """Process a datagram and return the answers.

        Parameters
        ----------
        data : bytes
            The datagram.
        source : str
            IP address of the sender.
        now : float
            Wall time, s.

        Returns
        -------
        tuple of bytes
            The reply, or nothing: for other datagrams, for other machines unless they
            are allowed, and beyond the rate limit of the address.
        """
        # Without the limit to loopback the answer would announce robots that other
        # machines cannot reach.
        if not is_request(data) or not (
            self._everybody or ipaddress.ip_address(source).is_loopback
        ):
            return ()

        # The reply is longer than the request, so without a limit it could amplify an
        # attack.
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
    # The limit is high, because `RateLimit` answers far fewer requests.
    rate=1000.0,
    options=(
        Option(
            "everybody",
            bool,
            False,
            "answer other machines; default: if they can reach the robots",
        ),
    ),
)

__all__ = ["Discovery", "interface"]
