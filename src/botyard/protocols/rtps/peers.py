"""Remote participants, and the addresses to which data may be sent to them (`Peer`)."""

from __future__ import annotations

from collections.abc import Callable

from botyard.protocols.rtps.discoverydata import EndpointData, ParticipantData
from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.limits import IDLE_S, MAX_AMPLIFICATION


def _of_host(addresses: tuple[Address, ...], host: str) -> Address | None:
    # Compare only the host: a participant may send from another port than it listens
    # on.
    return next((a for a in addresses if a[0] == host), None)


class Peer:
    """Remote participant.

    A peer is verified by a packet that comes from one of its announced addresses, and
    names this participant's GUID prefix as its destination. Before that, at most
    `MAX_AMPLIFICATION` times the bytes of its announcements are sent to it: otherwise a
    forged announcement could direct traffic to a victim. Afterwards data is sent to
    that host only, and packets in its name from hosts that it does not announce are
    ignored.

    Parameters
    ----------
    data : ParticipantData
        Contents of the participant's announcement.
    number : int
        Sequence number of the announcement.
    now : float
        Time of the caller's clock, s.
    origin : str
        Host that the announcement came from.
    greeted : tuple of Address
        Addresses to which greetings are sent.

    Attributes
    ----------
    data : ParticipantData
        Contents of the newest announcement.
    number : int
        Sequence number of the newest announcement.
    heard : float
        Time of the participant's last packet, s.
    origin : str
        Host that the first announcement came from.
    met : float
        Time of the first announcement, s.
    host : str
        Host at which the participant was verified; empty before.
    greeted : tuple of Address
        Addresses to which greetings are sent before it is verified.
    credit : int
        Number of bytes that may still be sent to it before it is verified.
    endpoints : dict of EndpointData
        Endpoints of the participant, by GUID.
    addresses : set of Address
        Addresses to which samples for its readers are or were sent.
    matched : int
        Number of matched pairs of its endpoints and local endpoints.
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
        # `announced` raises the credit; before that not even a greeting is sent.
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
        """Return the host that a packet came from, as an address that the participant announces.

        A participant on this host may send from an address that it does not announce:
        Fast DDS sends from the loopback to the loopback, but announces only the network
        card.

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
        """Raise the credit by the bytes of an announcement, times `MAX_AMPLIFICATION`.

        Parameters
        ----------
        size : int
            Number of bytes of the announcement's payload.
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
        # Use only the verified host: other announced addresses may belong to a victim.
        return _of_host(self.data.metatraffic, self.host)

    def address_of(self, endpoint: EndpointData) -> Address | None:
        """Return the address of an endpoint at its participant's verified host.

        Parameters
        ----------
        endpoint : EndpointData
            Endpoint of this participant.

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
