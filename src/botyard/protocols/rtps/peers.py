"""Remote participant, and the addresses to which data may be sent."""

from __future__ import annotations

from collections.abc import Callable

from botyard.protocols.rtps.discoverydata import EndpointData, ParticipantData
from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.limits import IDLE_S, MAX_AMPLIFICATION


def _of_host(addresses: tuple[Address, ...], host: str) -> Address | None:
    # Only the host is compared: a participant may send from another port than it
    # listens on.
    return next((a for a in addresses if a[0] == host), None)


class Peer:
    """Remote participant.

    It is verified by a packet from one of its announced addresses that names this
    participant's GUID prefix as its destination. Until then it is sent at most
    `MAX_AMPLIFICATION` times the bytes of its announcements: otherwise it could amplify
    traffic towards a victim. Afterwards data is sent to that host only, and packets in
    its name from other hosts than it announces are ignored.

    Parameters
    ----------
    data : ParticipantData
        Contents of its announcement.
    number : int
        Sequence number of the announcement.
    now : float
        Time of the caller's clock, s.
    origin : str
        Host that the announcement came from.
    greeted : tuple of Address
        Addresses at which it is greeted.

    Attributes
    ----------
    data : ParticipantData
        Contents of its newest announcement.
    number : int
        Sequence number of its announcement.
    heard : float
        Time of its last packet, s.
    origin : str
        Host that its first announcement came from.
    met : float
        Time of the first announcement, s.
    host : str
        Host at which it was verified; empty until then.
    greeted : tuple of Address
        Addresses at which it is greeted until then.
    credit : int
        Bytes that it may still be sent until then.
    endpoints : dict of EndpointData
        Its endpoints, by GUID.
    addresses : set of Address
        Addresses to which samples are or were sent for it.
    matched : int
        Number of pairs of its endpoints and ours.
    greetings : int
        Number of unanswered greetings.
    greet_at : float
        Time of the next greeting, s.
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
        # Nothing is sent before the first announcement is counted, not even a greeting.
        self.credit = 0
        self.endpoints: dict[bytes, EndpointData] = {}
        self.addresses: set[Address] = set()
        self.matched = 0
        self.greetings = 0
        self.greet_at = now

    @property
    def prefix(self) -> bytes:
        """GUID prefix of the participant, 12 bytes."""
        return self.data.guid[:12]

    def is_at(self, host: str) -> bool:
        """Return whether the participant announces this host for discovery."""
        return _of_host(self.data.metatraffic, host) is not None

    def may_send_from(self, host: str) -> bool:
        """Return whether packets in the participant's name are accepted from a host.

        An unverified participant may send from any host, a verified one from the hosts
        that it announces.

        Parameters
        ----------
        host : str
            Host that the packet came from.
        """
        return (
            not self.host
            or host == self.host
            or self.is_at(host)
            or _of_host(self.data.default, host) is not None
        )

    def host_of(self, host: str, is_local: Callable[[str], bool]) -> str:
        """Return the host that a packet came from, by an address that is announced.

        A participant on this host may send from any of its addresses: Fast DDS sends
        from the loopback to the loopback, but announces only the network card.

        Parameters
        ----------
        host : str
            Host that the packet came from.
        is_local : callable
            Returns whether an address belongs to this host.
        """
        if host == self.host or self.is_at(host) or not is_local(host):
            return host
        return next((h for h, _ in self.data.metatraffic if is_local(h)), host)

    def announced(self, size: int) -> None:
        """Count the bytes of an announcement.

        Parameters
        ----------
        size : int
            Bytes of its payload.
        """
        self.credit += MAX_AMPLIFICATION * size

    def may_have(self, size: int) -> bool:
        """Take `size` bytes from the credit of an unverified participant; return False
        if there is too little.

        Parameters
        ----------
        size : int
            Bytes of a greeting.
        """
        if size > self.credit:
            return False
        self.credit -= size
        return True

    def metatraffic(self) -> Address | None:
        """Return the address to which discovery data is sent."""
        # Only the verified host is used, whatever else the participant announces: other
        # addresses may belong to a victim.
        return _of_host(self.data.metatraffic, self.host)

    def address_of(self, endpoint: EndpointData) -> Address | None:
        """Return the address of an endpoint at its participant's host.

        Parameters
        ----------
        endpoint : EndpointData
            One of its endpoints.

        Returns
        -------
        Address or None
            None if the endpoint announces no address at the verified host.
        """
        return _of_host(endpoint.locators, self.host) or _of_host(
            self.data.default, self.host
        )

    def is_idle(self, now: float) -> bool:
        """Return whether the participant has no match although it had enough time for one."""
        return not self.matched and now - self.met > IDLE_S

    def is_expired(self, now: float) -> bool:
        """Return whether the participant's lease has ended."""
        return now - self.heard > self.data.lease
