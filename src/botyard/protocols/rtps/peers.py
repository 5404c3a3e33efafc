"""A remote participant, and where it may be sent to."""

from __future__ import annotations

from botyard.protocols.rtps.discoverydata import EndpointData, ParticipantData
from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.limits import IDLE_S, MAX_AMPLIFICATION


def _of_host(addresses: tuple[Address, ...], host: str) -> Address | None:
    return next((a for a in addresses if a[0] == host), None)


class Peer:
    """A remote participant.

    It is verified when a packet has come from one of the addresses that it announces,
    and names our GUID prefix as its destination. Until then it is sent at most
    `MAX_AMPLIFICATION` times as many bytes as it has announced itself with: else
    anybody could let us send much to somebody else's address. Afterwards it is sent to
    at that host only, and what comes in its name from hosts that it does not announce
    does not count.

    Attributes
    ----------
    data : ParticipantData
    number : int
        Sequence number of its announcement.
    heard : float
        When something came from it, s.
    origin : str
        Host that its first announcement came from.
    met : float
        When that came, s.
    host : str
        Where it was verified; empty: it was not.
    greeted : tuple of Address
        Where it is greeted until then.
    credit : int
        Bytes that it may still be sent until then.
    endpoints : dict of EndpointData
        Its endpoints, by GUID.
    addresses : set of Address
        Where samples are sent to for it, or were.
    matched : int
        Pairs of an endpoint of its and one of ours.
    greetings : int
        How often it was greeted without having answered.
    greet_at : float
        When it is greeted next, s.
    """

    __slots__ = (
        "addresses",
        "credit",
        "data",
        "endpoints",
        "greet_at",
        "greeted",
        "greetings",
        "heard",
        "host",
        "matched",
        "met",
        "number",
        "origin",
        "strange_host",
    )

    def __init__(
        self,
        data: ParticipantData,
        number: int,
        now: float,
        origin: str,
        greeted: tuple[Address, ...] = (),
    ) -> None:
        self.data = data
        self.number = number
        self.heard = self.met = now
        self.origin = origin
        self.host = ""
        self.strange_host = ""
        self.greeted = greeted
        self.credit = 0
        self.endpoints: dict[bytes, EndpointData] = {}
        self.addresses: set[Address] = set()
        self.matched = 0
        self.greetings = 0
        self.greet_at = now

    @property
    def prefix(self) -> bytes:
        """GUID prefix."""
        return self.data.guid[:12]

    def is_at(self, host: str) -> bool:
        """Whether it announces this host for discovery."""
        return _of_host(self.data.metatraffic, host) is not None

    def may_send_from(self, host: str) -> bool:
        """Whether what comes from this host in its name counts: before it is verified
        from anywhere, then from those that it announces.
        """
        return (
            not self.host
            or host == self.host
            or self.is_at(host)
            or _of_host(self.data.default, host) is not None
        )

    def announced(self, size: int) -> None:
        """It has announced itself with so many bytes."""
        self.credit += MAX_AMPLIFICATION * size

    def may_have(self, size: int) -> bool:
        """Whether it may be sent so many bytes before it is verified; takes them."""
        if size > self.credit:
            return False
        self.credit -= size
        return True

    def metatraffic(self) -> Address | None:
        """Where discovery is sent to."""
        return _of_host(self.data.metatraffic, self.host)

    def address_of(self, endpoint: EndpointData) -> Address | None:
        """Where an endpoint is sent to: at the host that its participant was verified
        at.
        """
        return _of_host(endpoint.locators, self.host) or _of_host(
            self.data.default, self.host
        )

    def is_idle(self, now: float) -> bool:
        """Whether it has had the time to match something of ours, and has not."""
        return not self.matched and now - self.met > IDLE_S

    def is_expired(self, now: float) -> bool:
        """Whether its lease has ended."""
        return now - self.heard > self.data.lease
