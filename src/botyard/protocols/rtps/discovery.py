"""Discovery of participants (SPDP) and endpoints (SEDP), liveliness (WLP) and matching.

Source: DDSI-RTPS 2.5, §8.5 and §8.4.13.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from botyard.protocols.rtps import guids, wire
from botyard.protocols.rtps import parameters as p
from botyard.protocols.rtps.discoverydata import (
    EndpointData,
    ParticipantData,
    encode_key,
    read_key,
)
from botyard.protocols.rtps.endpointdiscovery import BUILTIN_QOS, EndpointDiscovery
from botyard.protocols.rtps.events import EventKind, Events
from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.limits import (
    ANNOUNCEMENTS_PER_S,
    MAX_GREETED_LOCATORS,
    MAX_GREETINGS,
    MAX_IGNORED,
    MAX_PARAMETER_BYTES,
    MAX_PARTICIPANTS,
)
from botyard.protocols.rtps.outbox import Destination, Outbox
from botyard.protocols.rtps.peers import Peer
from botyard.protocols.rtps.pendingwriters import PendingWriters
from botyard.protocols.rtps.reader import BuiltinReader
from botyard.protocols.rtps.samples import Inbox, Sample
from botyard.protocols.rtps.wire import MalformedError
from botyard.protocols.rtps.writer import Writer
from botyard.protocols.rtps.writerproxy import WriterProxy, first_base
from botyard.protocols.tokenbucket import RateLimit

LEASE_S: Final = 20.0
"""Lease that this participant announces, s."""
ANNOUNCE_EVERY_S: Final = 3.0
"""Period of announcements of this participant, s."""
FIRST_ANNOUNCEMENTS: Final = 5
"""Number of announcements after a start or a change that follow each other quickly."""
FIRST_ANNOUNCE_EVERY_S: Final = 0.1
"""Period of these first announcements, s."""
GREET_AFTER_S: Final = 0.1
"""Delay before a participant is greeted again, s; it doubles each time.

A greeting is a packet to a new participant that requests an answer, see
`Discovery._greet`.
"""
SWEEP_EVERY_S: Final = 1.0
"""Period of checks for participants whose lease has ended, s."""
UNREAD_GRACE_S: Final = 30.0
"""Extension of a lease while received packets wait to be read, s."""
ALIVE_EVERY_S: Final = LEASE_S / 3.0
"""Period of liveliness messages of this participant (WLP), s."""
CHORES_EVERY_S: Final = 0.005
"""Interval between the slices of long work, s.

Steps of the world and work for other clients are done in between.
"""
_AUTOMATIC: Final = b"\0\0\0\x01"
"""Kind of a liveliness message (ParticipantMessageData): automatic (DDSI-RTPS 2.5, §9.6.3.1)."""

# Built-in reader of this participant, matching built-in writer of a peer, and the bit
# of BUILTIN_ENDPOINT_SET with which the peer announces that writer.
_READERS: Final = (
    (
        guids.PUBLICATIONS_READER,
        guids.PUBLICATIONS_WRITER,
        guids.PUBLICATIONS_ANNOUNCER,
    ),
    (
        guids.SUBSCRIPTIONS_READER,
        guids.SUBSCRIPTIONS_WRITER,
        guids.SUBSCRIPTIONS_ANNOUNCER,
    ),
    (guids.LIVELINESS_READER, guids.LIVELINESS_WRITER, guids.LIVELINESS_ANNOUNCER),
)
_WRITERS: Final = (
    (guids.PUBLICATIONS_WRITER, guids.PUBLICATIONS_READER, guids.PUBLICATIONS_DETECTOR),
    (
        guids.SUBSCRIPTIONS_WRITER,
        guids.SUBSCRIPTIONS_READER,
        guids.SUBSCRIPTIONS_DETECTOR,
    ),
    (guids.LIVELINESS_WRITER, guids.LIVELINESS_READER, guids.LIVELINESS_DETECTOR),
)


class Discovery(EndpointDiscovery):
    """Remote participants, their endpoints, and the matched pairs.

    Parameters
    ----------
    data : ParticipantData
        Description of this participant.
    announce_to : sequence of Address
        Addresses of announcements: the multicast group, and hosts to find by unicast.
    domain : int
        DDS domain id, 0 to 232.
    outbox, pending, inbox, events
        Objects that this one shares with all endpoints.
    now : float
        Time of the caller's clock, s.

    Attributes
    ----------
    writers, readers : dict
        All local endpoints by entity id, including built-in ones.
    routes : Routes
        Local readers of each remote writer.
    peers : dict of Peer
        Remote participants, by prefix.
    """

    def __init__(
        self,
        data: ParticipantData,
        announce_to: Sequence[Address],
        domain: int,
        outbox: Outbox,
        pending: PendingWriters[Writer[Any]],
        inbox: Inbox[WriterProxy],
        events: Events,
        now: float,
    ) -> None:
        super().__init__(data, outbox, pending, inbox, events, now)
        self._announce_to = tuple(announce_to)
        self._domain = domain
        self.has_unread: Callable[[], bool] = lambda: False
        """Whether received packets wait to be processed; they may be from a silent participant."""
        self._ignored: dict[bytes, int] = {}
        self._rate = RateLimit(ANNOUNCEMENTS_PER_S, ANNOUNCEMENTS_PER_S)
        self._greeting: dict[Peer, None] = {}
        self._number = 1
        self._announcement = b""
        self._announced = 0
        self._announce_at = now
        self._sweep_at = now + SWEEP_EVERY_S
        self._alive_at = now + ALIVE_EVERY_S
        self.liveliness = self._builtin_writer(guids.LIVELINESS_WRITER)
        takes: tuple[Callable[[Sample], None], ...] = (
            self._endpoint,
            self._endpoint,
            lambda sample: None,
        )
        for (entity, _, _), take in zip(_READERS, takes, strict=True):
            about = EndpointData(self._prefix + entity, "", "", BUILTIN_QOS)
            self.readers[entity] = BuiltinReader(
                about, inbox, take, limit=MAX_PARAMETER_BYTES
            )

        self._encode()

    # -- announcements of this participant

    def _encode(self) -> None:
        pair = guids.SPDP_READER + guids.SPDP_WRITER
        self._announcement = wire.data(pair, self._number, self._data.encode())

    def describe(self, user_data: bytes) -> None:
        """Change the user data of the announcement.

        Parameters
        ----------
        user_data : bytes
            User data, at most `limits.MAX_USER_DATA_BYTES`.
        """
        self._data = replace(self._data, user_data=user_data)
        self._number += 1
        self._encode()
        # Announce quickly again, as at the start.
        self._announced, self._announce_at = 0, self._now

    def _announce(self) -> None:
        for address in self._announce_to:
            self._outbox.send(address, self._announcement)

    def announce_departure(self) -> None:
        """Announce to all participants that this one leaves.

        Participants that do not receive the message remove this one when its lease
        ends.
        """
        self._number += 1
        guid = self._data.guid
        pair = guids.SPDP_READER + guids.SPDP_WRITER
        key = encode_key(p.PARTICIPANT_GUID, guid)
        submessage = wire.data_key(pair, self._number, p.disposal(guid), key)
        # Send also by unicast, because multicast may not reach each participant.
        known = (peer.metatraffic() for peer in self.peers.values())
        for address in dict.fromkeys(
            (*self._announce_to, *(a for a in known if a is not None))
        ):
            self._outbox.send(address, submessage)

    def due(self, now: float) -> float:
        """Send announcements and greetings that are due, check leases, and do a slice of long work.

        Return the time of the next call, s.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        """
        self._now = now
        if now >= self._announce_at:
            self._announce()
            self._announced += 1
            is_new = self._announced < FIRST_ANNOUNCEMENTS
            self._announce_at = now + (
                FIRST_ANNOUNCE_EVERY_S if is_new else ANNOUNCE_EVERY_S
            )

        for peer in tuple(self._greeting):
            if now >= peer.greet_at:
                self._greet(peer, now)

        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_EVERY_S
            expired = [x for x in self.peers.values() if x.is_expired(now)]
            if (
                # Unread packets may be from these participants.
                expired and self.has_unread()
            ):
                expired = [x for x in expired if x.is_expired(now - UNREAD_GRACE_S)]

            for peer in expired:
                self._forget(peer, EventKind.LOST)

        if now >= self._alive_at:
            self._alive_at = now + ALIVE_EVERY_S
            if self.liveliness.matched:
                # CDR of ParticipantMessageData: prefix, kind, and no data (§9.6.3.1).
                key = self._prefix + _AUTOMATIC
                self.liveliness.put(
                    key, b"\0\1\0\0" + key + wire.OURS.uint32.pack(0), now
                )

        self._work()
        greet_at = min((peer.greet_at for peer in self._greeting), default=p.INFINITE)
        chores_at = now + CHORES_EVERY_S if self._chores else p.INFINITE
        return min(
            self._announce_at, self._sweep_at, self._alive_at, greet_at, chores_at
        )

    # -- other participants

    def announced(
        self, prefix: bytes, number: int, payload: bytes, source: Address, now: float
    ) -> None:
        """Process the announcement of a participant.

        Parameters
        ----------
        prefix : bytes
            GUID prefix of the packet's sender, 12 bytes.
        number : int
            Sequence number of the announcement. A repeated announcement has the same
            number.
        payload : bytes
            Payload of the SPDP sample.
        source : Address
            Address that the packet came from, which may be forged.
        now : float
            Time of the caller's clock, s.

        Raises
        ------
        MalformedError
            The payload is not a valid announcement.
        """
        self._now = now
        peer = self.peers.get(prefix)
        # Each announcement of an unverified participant raises the number of bytes that
        # may be sent to it.
        if peer is not None and not peer.host:
            peer.announced(len(payload))
        if peer is not None and peer.number == number:
            if not peer.host and peer not in self._greeting:
                # The participant exists but is not verified, so greet it again.
                self._greeting[peer] = None
                peer.greetings, peer.greet_at = 0, now

            return

        # Reading an announcement takes long, so limit the rate of changed announcements
        # from one address.
        if self._ignored.get(prefix) == number or not self._rate.allows(source[0], now):
            return
        data = ParticipantData.read(payload)
        if data.guid[:12] != prefix:
            raise MalformedError(
                "expected the GUID of the sender in its announcement, found the "
                "GUID of another participant"
            )
        reason = self._reason_against(data)
        if reason:
            if peer is not None:
                self._forget(peer, EventKind.LEFT)
            self._ignore(prefix, number, reason, source)
        elif peer is None:
            self._meet(
                Peer(data, number, now, source[0], self._greeted(data, source)),
                now,
                len(payload),
            )
        else:
            self._changed(peer, data, number, source, now)

    def _greeted(self, data: ParticipantData, source: Address) -> tuple[Address, ...]:
        """Return the addresses at which a new participant is greeted.

        The source address of its announcement comes first. Addresses of the loopback
        network are left out unless the announcement came from this host: another host
        must not cause packets to local programs.
        """
        is_local = self._outbox.is_local(source[0])
        near = [
            a
            for a in data.metatraffic
            if is_local or not a[0].startswith(guids.LOOPBACK_NET)
        ]
        return tuple(
            sorted(near, key=lambda a: a[0] != source[0])[:MAX_GREETED_LOCATORS]
        )

    def strange(self, peer: Peer, host: str) -> None:
        """Report a packet that names a participant but comes from a host that it does not announce.

                The caller ignores such packets.

        Parameters
        ----------
        peer : Peer
            The participant in whose name the packet was sent.
        host : str
            Host that the packet came from.
        """
        # Report a host once, because it may send a flood of packets.
        if peer.strange_host != host:
            peer.strange_host = host
            text = (
                f"the packets of a participant come from {host}, which is not one of "
                "the addresses that it announces: they are ignored"
            )
            self._events.add(EventKind.REFUSED, peer.data.guid, text)

    def _reason_against(self, data: ParticipantData) -> str:
        """Return the reason why a participant is ignored; empty if it is accepted."""
        if data.domain is not None and data.domain != self._domain:
            return f"it is in domain {data.domain}"
        if data.tag:
            return "it has a domain tag"
        if not data.metatraffic:
            return (
                "it announces no address for UDP over IPv4; start its program with "
                "FASTDDS_BUILTIN_TRANSPORTS=UDPv4, or with a profile of its RMW that "
                "uses UDP over IPv4"
            )
        return ""

    # Report a participant once. Keep the number of its newest announcement, so that
    # only a changed announcement is read again.
    def _ignore(self, prefix: bytes, number: int, reason: str, source: Address) -> None:
        if prefix not in self._ignored:
            text = f"the participant at {source[0]} is ignored: {reason}"
            self._events.add(EventKind.REFUSED, prefix + guids.PARTICIPANT, text)

        self._ignored.pop(prefix, None)
        self._ignored[prefix] = number
        if len(self._ignored) > MAX_IGNORED:
            del self._ignored[next(iter(self._ignored))]

    def _meet(self, peer: Peer, now: float, size: int) -> None:
        """Add a new participant, whose announcement has `size` bytes."""
        if len(self.peers) >= MAX_PARTICIPANTS:
            other = self._who_gives_way(peer.origin, now)
            if other is None:
                text = (
                    f"the limit of {MAX_PARTICIPANTS} participants is reached: one "
                    "participant is ignored"
                )
                self._events.add(EventKind.REFUSED, peer.data.guid, text)
                return

            if other.host:
                text = (
                    f"the participant at {other.host} is replaced by one at "
                    f"{peer.origin}: the limit of participants is reached"
                )
                self._events.add(EventKind.REFUSED, other.data.guid, text)

            self._forget(other, EventKind.LOST)

        self.peers[peer.prefix] = peer
        peer.announced(size)
        self._greeting[peer] = None
        peer.greet_at = now

    def _who_gives_way(self, origin: str, now: float) -> Peer | None:
        """Return the participant to drop when a new one arrives and all places are taken.

        Parameters
        ----------
        origin : str
            Host of the new participant.
        now : float
            Time of the caller's clock, s.

        Returns
        -------
        Peer or None
            None if the new participant must be ignored.
        """
        peers = self.peers.values()
        # Drop unverified participants first: their announcements may be forged.
        unverified = next((x for x in peers if not x.host), None)
        if unverified is not None:
            return unverified
        counts = Counter(x.host for x in peers)
        host, most = counts.most_common(1)[0]
        # The new participant's host itself has the most participants, so only an idle
        # participant of this host may be dropped.
        if counts[origin] + 1 >= most:
            return next((x for x in peers if x.host == origin and x.is_idle(now)), None)
        of_host = [x for x in peers if x.host == host]
        return next((x for x in of_host if x.is_idle(now)), of_host[-1])

    def _greet(self, peer: Peer, now: float) -> None:
        """Announce this participant to another one, and request an answer (a greeting).

        The answer shows that the other participant really is at the announced address.
        The greeting contains the announcement of this participant: without it the other
        one would ignore the request, and a multicast announcement may not reach it.
        """
        if peer.greetings >= MAX_GREETINGS:
            del self._greeting[peer]
            return

        peer.greetings += 1
        # Double the interval each time, so that a participant that does not exist costs
        # little.
        peer.greet_at = now + GREET_AFTER_S * (1 << peer.greetings - 1)
        parts = [self._announcement, wire.info_dst(peer.prefix)]
        for ours, theirs, bit in _WRITERS[:2]:
            if peer.data.builtin & bit:
                parts.append(self.writers[ours].greeting(theirs))

        for ours, theirs, bit in _READERS[:2]:
            if peer.data.builtin & bit:
                parts.append(
                    wire.acknack(
                        ours, theirs, first_base(peer.data.vendor), (), peer.greetings
                    )
                )

        size = len(self._outbox.head) + sum(map(len, parts))
        for address in peer.greeted:
            if not peer.may_have(size):
                # The credit is used up: wait for the next announcement of the
                # participant.
                del self._greeting[peer]
                # Start the next greeting with another address, because the first may be
                # unreachable.
                peer.greeted = (*peer.greeted[1:], *peer.greeted[:1])
                break

            self._outbox.send(address, *parts)

    def verified(self, peer: Peer, host: str, now: float) -> None:
        """Accept a participant after its first packet that is addressed to this one.

        From now on its endpoints are discovered, and packets in its name from other
        hosts are ignored.

        Parameters
        ----------
        peer : Peer
            Participant that sent the packet.
        host : str
            Host that the packet came from. It must be one that the participant
            announces.
        now : float
            Time of the caller's clock, s.
        """
        if not peer.is_at(host):
            self.strange(peer, host)
            return

        peer.host = host
        self._greeting.pop(peer, None)
        destination = self._meta_destination(peer)
        for ours, theirs, bit in _WRITERS:
            if peer.data.builtin & bit:
                about = EndpointData(peer.prefix + theirs, "", "", BUILTIN_QOS)
                self.writers[ours].match(about, destination, now)

        for ours, theirs, bit in _READERS:
            if peer.data.builtin & bit:
                about = EndpointData(
                    peer.prefix + theirs, "", "", BUILTIN_QOS, vendor=peer.data.vendor
                )
                self._route(
                    self.readers[ours].match(about, destination, now, peer.greetings)
                )

        self._events.add(
            EventKind.MET,
            peer.data.guid,
            f"participant at {host}, vendor {peer.data.vendor.hex('.')}",
        )

    def _meta_destination(self, peer: Peer) -> Destination:
        address = peer.metatraffic()
        assert address is not None, "it is verified"
        return self._outbox.destination(address)

    def _changed(
        self,
        peer: Peer,
        data: ParticipantData,
        number: int,
        source: Address,
        now: float,
    ) -> None:
        """Apply a changed announcement, for example with other addresses."""
        before, peer.data, peer.number = peer.data, data, number
        if not peer.host:
            peer.greeted = self._greeted(data, source)
            return

        # The participant has another address now, which must be verified.
        if not peer.is_at(peer.host):
            self._forget(peer, EventKind.LEFT)
            moved = Peer(data, number, now, source[0], self._greeted(data, source))
            self._meet(moved, now, len(data.encode()))
            return

        destination = self._meta_destination(peer)
        for ours, theirs, _ in _WRITERS:
            if peer.prefix + theirs in self.writers[ours].matched:
                self.writers[ours].move(peer.prefix + theirs, destination)

        for ours, theirs, _ in _READERS:
            if peer.prefix + theirs in self.readers[ours].matched:
                self.readers[ours].move(peer.prefix + theirs, destination)

        if (data.metatraffic, data.default) != (before.metatraffic, before.default):
            self._start("move", peer.prefix, self._move(peer))

    def _move(self, peer: Peer) -> Iterator[None]:
        """Change the addresses of all endpoints of a participant to those that it announces now."""
        for endpoint in tuple(peer.endpoints.values()):
            address = peer.address_of(endpoint)
            # The endpoint may have been removed since the work started.
            if peer.endpoints.get(endpoint.guid) is endpoint and address is not None:
                for local in self._local.get(endpoint.topic, {}).values():
                    if endpoint.guid in local.matched:
                        local.move(endpoint.guid, self._outbox.destination(address))

            yield

    def disposed(self, prefix: bytes, sample_key: bytes, payload: bytes) -> None:
        """Process the message of a participant that leaves.

        Parameters
        ----------
        prefix : bytes
            GUID prefix of the packet's sender, 12 bytes.
        sample_key : bytes
            Key hash of the inline QoS; empty if there is none.
        payload : bytes
            Serialised key: the GUID of the participant.

        Raises
        ------
        MalformedError
            The message does not name the participant.
        """
        guid = sample_key or read_key(payload)
        peer = self.peers.get(prefix)
        if peer is not None and guid[:12] == prefix:
            self._forget(peer, EventKind.LEFT)

    def _forget(self, peer: Peer, kind: EventKind) -> None:
        """Remove a participant.

        Later calls of `due` unmatch its endpoints in slices.
        """
        del self.peers[peer.prefix]
        self._greeting.pop(peer, None)
        self._chores.pop(("move", peer.prefix), None)
        if peer.endpoints:
            # The participant had left and returned before; its old endpoints are still
            # being unmatched.
            before = self._leaving.get(peer.prefix)
            if before is not None:
                before.endpoints.update(peer.endpoints)
            else:
                self._leaving[peer.prefix] = peer
                self._chores["leave", peer.prefix] = self._unmatch_all(peer)

        if peer.host:
            for ours, theirs, _ in _WRITERS:
                self.writers[ours].unmatch(peer.prefix + theirs)
            for ours, theirs, _ in _READERS:
                self._unroute(self.readers[ours].unmatch(peer.prefix + theirs))
            self._events.add(kind, peer.data.guid, f"participant at {peer.host}")
