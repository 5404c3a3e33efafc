"""Discovery of robots over UDP.

Each request gets one answer, with a rate limit for each source address. Rows DSC-001 to
DSC-005 of the feature table list the requirements.
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
        Whether to answer requests from any address; otherwise only from this machine.
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
            The reply. It is empty for a datagram that is no request, for a machine that
            is not allowed, and beyond the rate limit of the address.
        """
        # By default the option is true only if other machines can reach the robots.
        # Otherwise an answer would announce robots that the asking machine cannot
        # reach.
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
    # This limit of all datagrams is high, because `RateLimit` limits the answers
    # further.
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
