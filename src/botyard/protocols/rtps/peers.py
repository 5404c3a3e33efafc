"""A remote participant, and where it may be sent to."""

from __future__ import annotations

from botyard.protocols.rtps.discoverydata import EndpointData, ParticipantData
from botyard.protocols.rtps.guids import Address


def _of_host(addresses: tuple[Address, ...], host: str) -> Address | None:
    return next((a for a in addresses if a[0] == host), None)


class Peer:
    """A remote participant.

    Until a packet has come from one of the addresses that it announces, and names our GUID prefix as its destination, it is sent hardly
    anything: else anybody could let us send much to somebody else's address. Afterwards it is sent to at that host only.

    Attributes
    ----------
    data : ParticipantData
    number : int
        Sequence number of its announcement.
    heard : float
        When something came from it, s.
    host : str
        Where it has proved to be; empty: it has not.
    endpoints : dict of EndpointData
        Its endpoints, by GUID.
    greetings : int
        How often it was greeted without having answered.
    greet_at : float
        When it is greeted next, s.
    """

    __slots__ = ("data", "endpoints", "greet_at", "greetings", "heard", "host", "number", "strange_host")

    def __init__(self, data: ParticipantData, number: int, now: float) -> None:
        self.data = data
        self.number = number
        self.heard = now
        self.host = ""
        self.strange_host = ""
        self.endpoints: dict[bytes, EndpointData] = {}
        self.greetings = 0
        self.greet_at = now

    @property
    def prefix(self) -> bytes:
        """GUID prefix."""
        return self.data.guid[:12]

    def is_at(self, host: str) -> bool:
        """Whether it announces this host for discovery."""
        return _of_host(self.data.metatraffic, host) is not None

    def metatraffic(self) -> Address | None:
        """Where discovery is sent to."""
        return _of_host(self.data.metatraffic, self.host)

    def address_of(self, endpoint: EndpointData) -> Address | None:
        """Where an endpoint is sent to: at the host where its participant has proved to be."""
        return _of_host(endpoint.locators, self.host) or _of_host(self.data.default, self.host)

    def is_expired(self, now: float) -> bool:
        """Whether its lease has ended."""
        return now - self.heard > self.data.lease
