"""RTPS participant without sockets, threads or clocks.

The caller feeds received packets, and sends the datagrams that result. The caller runs
this loop whenever packets have arrived, something was written, or the time that
`Participant.due` returned has come::

    participant.feed(packet, source, now)  # for each packet
    wake_at = participant.due(now)
    for datagram, address in participant.out():
        ...  # send; an address that is `guids.GROUP` on every interface

Source: OMG DDSI-RTPS 2.5. Where the standard leaves a choice, the participant does what
Fast DDS and Cyclone DDS do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from botyard.errors import WorldError
from botyard.protocols.rtps import guids, submessages, wire
from botyard.protocols.rtps.callbacks import Callbacks
from botyard.protocols.rtps.discovery import LEASE_S, Discovery
from botyard.protocols.rtps.discoverydata import EndpointData, ParticipantData
from botyard.protocols.rtps.events import Event, EventKind, Events
from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.history import KeepLast
from botyard.protocols.rtps.limits import (
    MAX_AT_ONCE,
    MAX_NAME_BYTES,
    MAX_SAMPLE_BYTES,
    MAX_USER_DATA_BYTES,
    MIN_KEPT_S,
)
from botyard.protocols.rtps.outbox import Outbox
from botyard.protocols.rtps.parameters import (
    INFINITE,
    NO_INLINE_QOS,
    InlineQos,
    read_inline,
)
from botyard.protocols.rtps.peers import Peer
from botyard.protocols.rtps.pendingwriters import PendingWriters
from botyard.protocols.rtps.qos import Qos
from botyard.protocols.rtps.reader import Reader
from botyard.protocols.rtps.samples import Inbox, Sample
from botyard.protocols.rtps.topicwriters import TopicWriter
from botyard.protocols.rtps.wire import ANY, LAYOUTS, LITTLE, Layout, MalformedError
from botyard.protocols.rtps.writer import Writer
from botyard.protocols.rtps.writerproxy import WriterProxy

SCAN_EVERY_S: Final = 0.05
"""Interval of checks for unacknowledged samples and stale fragments, s."""
_BUILTIN_KIND: Final = 0xC0
_MAX_ENTITIES: Final = 0xFFFFFF


class Participant:
    """Participant of a domain.

    Parameters
    ----------
    prefix : bytes
        12 bytes: `wire.VENDOR` and 10 random bytes, which differ at each start.
    addresses : sequence of Address
        Unicast addresses of the participant, one for each interface.
    announce_to : sequence of Address
        Addresses to which it announces itself: the multicast group, and possible
        participants.
    now : float
        Time of the caller's clock, s.
    epoch : float
        Difference between the time since 1970 and the caller's clock, s. Packets
        contain the time since 1970.
    domain : int
        DDS domain id, 0 to 232.
    hosts : collection of str
        Addresses of this host in addition to `addresses`.
    user_data : bytes
        User data of the participant; in ROS 2 its enclave.

    Attributes
    ----------
    guid : bytes
        GUID, 16 bytes.
    epoch : float
        The parameter `epoch`; a caller may set it again after a change of the system's
        clock.
    now : float
        Time of the last call, s.

    Raises
    ------
    WorldError
        `prefix` does not have 12 bytes.
    """

    def __init__(
        self,
        prefix: bytes,
        addresses: Sequence[Address],
        announce_to: Sequence[Address],
        now: float,
        epoch: float,
        *,
        domain: int = 0,
        hosts: Collection[str] = (),
        user_data: bytes = b"",
    ) -> None:
        if len(prefix) != wire.PREFIX_BYTES:
            raise WorldError(
                f"GUID prefix: expected {wire.PREFIX_BYTES} bytes, found {len(prefix)}"
            )

        self.guid = prefix + guids.PARTICIPANT
        self.epoch = epoch
        self._prefix = prefix
        self._addresses = tuple(addresses)
        self.now = now
        self._events = Events()
        self._outbox = Outbox(prefix, {*hosts, *(host for host, _ in addresses)}, now)
        self._outbox.stamp(now, now + epoch)
        self._callbacks = Callbacks()
        self._pending = PendingWriters[Writer[Any]](self._callbacks)
        self._inbox = Inbox[WriterProxy](self._events, self._callbacks)
        about = ParticipantData(
            self.guid,
            self._addresses,
            self._addresses,
            lease=LEASE_S,
            user_data=user_data,
        )
        self._discovery = Discovery(
            about,
            announce_to,
            domain,
            self._outbox,
            self._pending,
            self._inbox,
            self._events,
            now,
        )
        self._routes = self._discovery.routes
        self._writers = self._discovery.writers
        self._peers = self._discovery.peers
        self._next_entity = 0
        self._scan_at = now
        self._out: list[tuple[bytes, Address]] = []

    # -- local endpoints

    def writer(
        self,
        topic: str,
        type_name: str,
        qos: Qos,
        now: float,
        *,
        user_data: bytes = b"",
        changed: Callable[[], None] = lambda: None,
    ) -> TopicWriter:
        """Create a writer of a topic without keys.

        Known readers are matched in this call; if there are many, the rest follows in
        later calls.

        Parameters
        ----------
        topic, type_name : str
            DDS names of topic and type.
        qos : Qos
            Policies of the endpoint.
        now : float
            Time of the caller's clock, s.
        user_data : bytes
            User data of the writer.
        changed : callable
            Called after readers were matched or lost. Like a reader's `take`, it may
            write, add and remove endpoints, and raise exceptions.

        Raises
        ------
        WorldError
            A name or the user data is too long.
        """
        data = self._describe(
            guids.WRITER_WITHOUT_KEY, topic, type_name, qos, user_data
        )
        # With transient-local durability, late readers get all kept samples, which must
        # not be more than the depth. So keep no young samples beyond it.
        min_age = MIN_KEPT_S if qos.reliable and not qos.is_kept else 0.0
        writer = TopicWriter(data, self._pending, KeepLast(qos.depth, min_age), changed)
        self._discovery.add(writer, now)
        self._callbacks.run()
        return writer

    def reader(
        self,
        topic: str,
        type_name: str,
        take: Callable[[Sample], None],
        qos: Qos,
        now: float,
        *,
        user_data: bytes = b"",
        limit: int = MAX_SAMPLE_BYTES,
        changed: Callable[[], None] = lambda: None,
    ) -> Reader:
        """Create a reader of a topic without keys.

        Parameters
        ----------
        topic, type_name, qos, now, user_data, changed
            See `writer`.
        take : callable
            Called with each `Sample`, from within `feed`. It may write, add and remove
            endpoints, and raise exceptions.
        limit : int
            Longest sample that is accepted, bytes.

        Raises
        ------
        WorldError
            A name or the user data is too long.
        """
        data = self._describe(
            guids.READER_WITHOUT_KEY, topic, type_name, qos, user_data
        )
        reader = Reader(data, self._inbox, take, limit, changed)
        self._discovery.add(reader, now)
        self._callbacks.run()
        return reader

    def _describe(
        self, kind: int, topic: str, type_name: str, qos: Qos, user_data: bytes
    ) -> EndpointData:
        """Return the description of a new endpoint, with an unused entity id."""
        for what, name in (("topic", topic), ("type", type_name)):
            if len(name.encode()) >= MAX_NAME_BYTES:
                raise WorldError(
                    f"DDS {what}: expected at most {MAX_NAME_BYTES - 1} bytes, "
                    f"found {len(name.encode())}"
                )

        if len(user_data) > MAX_USER_DATA_BYTES:
            raise WorldError(
                f"user data: expected at most {MAX_USER_DATA_BYTES} bytes, found {len(user_data)}"
            )

        # A number is used again only after 16 million others, when no peer remembers
        # the old endpoint.
        while True:
            self._next_entity = self._next_entity % _MAX_ENTITIES + 1
            entity = self._next_entity.to_bytes(3, "big") + bytes((kind,))
            if entity not in self._writers and entity not in self._discovery.readers:
                break

        return EndpointData(
            self._prefix + entity, topic, type_name, qos, user_data, self._addresses
        )

    def remove(self, endpoint: Writer[Any] | Reader, now: float) -> None:
        """Close a writer or reader, and announce this to the peers."""
        self._discovery.remove(endpoint, now)
        self._callbacks.run()

    def judge_after(self, has_unread: Callable[[], bool]) -> None:
        """Set a function that returns whether received packets wait to be processed.

        It is called before a silent participant is removed, because a waiting packet
        may be from that participant.
        """
        self._discovery.has_unread = has_unread

    def describe(self, user_data: bytes) -> None:
        """Change the participant's user data."""
        self._discovery.describe(user_data)

    # -- known peers and events

    @property
    def peers(self) -> list[Peer]:
        """Remote participants that are known at present."""
        return list(self._peers.values())

    def endpoint(self, guid: bytes) -> EndpointData | None:
        """Return the description of a remote endpoint; None if it is unknown."""
        peer = self._peers.get(guid[:12])
        return None if peer is None else peer.endpoints.get(guid)

    def take_events(self) -> list[Event]:
        """Return the events since the last call, at most the last `limits.MAX_EVENTS`."""
        return self._events.take()

    def count(self, kind: EventKind) -> int:
        """Return the number of events of a kind."""
        return self._events.counts[kind]

    @property
    def dropped(self) -> int:
        """Number of datagrams dropped because a queue was full."""
        return self._outbox.dropped

    # -- time

    def due(self, now: float) -> float:
        """Do all work that is due, and make datagrams of all written samples.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.

        Returns
        -------
        float
            Time of the next call, s.

        Raises
        ------
        Exception
            Error of a `changed` callback, raised after all work is done; call again to
            get the time.
        """
        self.now = now
        self._outbox.stamp(now, now + self.epoch)
        later = self._discovery.due(now)
        pending, inbox = self._pending, self._inbox
        if now >= self._scan_at:
            self._scan_at = now + SCAN_EVERY_S
            asked = 0
            for writer in tuple(pending.unacknowledged):
                if asked < MAX_AT_ONCE and now >= writer.remind_at:
                    asked += writer.remind(now, MAX_AT_ONCE - asked)

            for proxy in tuple(inbox.assembling):
                proxy.give_up_stale(now)

        for proxy in inbox.asking.take(now, MAX_AT_ONCE):
            again = proxy.ask(now)
            if again:
                inbox.asking.set(proxy, again)

        # Callbacks may write samples, so make the datagrams after them, even if they
        # raise.
        try:
            self._callbacks.run()
        finally:
            for writer in tuple(pending.written):
                if now >= writer.heartbeat_at:
                    del pending.written[writer]
                    writer.send_heartbeat(now)
                else:
                    later = min(later, writer.heartbeat_at)

            out, paced = self._outbox.drain(now)
            self._out += out

        if pending.unacknowledged or inbox.assembling:
            later = min(later, self._scan_at)
        return min(later, paced, inbox.asking.next(), INFINITE)

    def out(self) -> list[tuple[bytes, Address]]:
        """Return the datagrams to send now, with their addresses."""
        out, self._out = self._out, []
        return out

    def announce_departure(self, now: float) -> None:
        """Announce that this participant leaves; `out` has the datagrams."""
        self._outbox.stamp(now, now + self.epoch)
        self._discovery.announce_departure()
        self._out += self._outbox.drain(now)[0]

    # -- packets

    def feed(self, packet: bytes, source: Address, now: float) -> None:
        """Process a received packet. Invalid bytes raise no error.

        Parameters
        ----------
        packet : bytes
            Whole UDP datagram.
        source : Address
            Address that the packet came from.
        now : float
            Time of the caller's clock, s.

        Raises
        ------
        Exception
            Error of a `take` or `changed` callback, raised after the whole packet is
            processed.
        """
        # Later minor versions of RTPS 2 are compatible.
        if (
            len(packet) < wire.HEADER_BYTES
            or packet[:4] != wire.MAGIC
            or packet[4] != wire.VERSION[0]
        ):
            self._events.add(EventKind.MALFORMED, b"", f"{source[0]}: not RTPS 2")
            return

        prefix = packet[8:20]
        # Multicast also delivers the participant's own packets.
        if prefix == self._prefix:
            return
        self.now = now
        self._outbox.stamp(now, now + self.epoch)
        try:
            self._message(packet, prefix, source, now)
        except MalformedError as error:
            self._events.add(
                EventKind.MALFORMED, prefix + guids.PARTICIPANT, f"{source[0]}: {error}"
            )

        self._callbacks.run()

    def _host_of(self, peer: Peer, source: Address) -> str:
        return peer.host_of(source[0], self._outbox.is_local)

    def _message(
        self, packet: bytes, prefix: bytes, source: Address, now: float
    ) -> None:
        peer = self._peers.get(prefix)
        if peer is not None:
            host = self._host_of(peer, source)
            if not peer.may_send_from(host):
                # The packet may be forged. A participant that really has another
                # address is ignored until its lease ends.
                self._discovery.strange(peer, host)
                return

            peer.heard = now

        is_for_us = True
        stamp = 0.0
        for kind, flags, at, end in submessages.submessages(packet):
            layout = LAYOUTS[flags & LITTLE]
            if kind == wire.INFO_TS:
                stamp = _stamp(packet, at, end, flags, layout)
            elif kind == wire.INFO_DST:
                destination = (
                    packet[at : at + wire.PREFIX_BYTES]
                    if end - at >= wire.PREFIX_BYTES
                    else b""
                )
                # An empty prefix addresses all participants.
                is_for_us = destination == self._prefix or destination == wire.NOBODY
                if peer is not None and not peer.host and destination == self._prefix:
                    self._discovery.verified(peer, self._host_of(peer, source), now)
            elif kind == wire.INFO_SRC:
                if end - at < 20:
                    raise MalformedError(
                        f"INFO_SRC: expected 20 bytes, found {end - at}"
                    )
                prefix = packet[at + 8 : at + 20]
                if prefix == self._prefix:
                    return
                peer = self._peers.get(prefix)
                if peer is not None and not peer.may_send_from(
                    self._host_of(peer, source)
                ):
                    return
            elif not is_for_us:
                continue
            elif kind == wire.DATA:
                self._data(packet, at, end, flags, layout, prefix, source, stamp, now)
                # The data may have added, replaced or removed the participant.
                peer = self._peers.get(prefix)
            elif peer is None or not peer.host:
                # All other submessages are ignored until the address of the participant
                # is verified.
                continue
            elif kind == wire.HEARTBEAT:
                heartbeat = submessages.read_heartbeat(packet, at, end, layout)
                for proxy in self._routes.get(prefix + heartbeat.writer, ()):
                    if heartbeat.reader in (ANY, proxy.reader.entity):
                        proxy.heartbeat(heartbeat, bool(flags & wire.FINAL), now)
            elif kind == wire.ACKNACK:
                acknack = submessages.read_acknack(packet, at, end, layout)
                writer = self._writers.get(acknack.writer)
                if writer is not None:
                    writer.acknack(
                        prefix + acknack.reader, acknack, bool(flags & wire.FINAL), now
                    )
            else:
                self._rare(kind, flags, packet, at, end, layout, prefix, stamp, now)

    def _data(
        self,
        packet: bytes,
        at: int,
        end: int,
        flags: int,
        layout: Layout,
        prefix: bytes,
        source: Address,
        stamp: float,
        now: float,
    ) -> None:
        data = submessages.read_data(packet, at, end, layout)
        at = data.inline
        inline = NO_INLINE_QOS
        if flags & wire.INLINE_QOS:
            inline, at = read_inline(packet, at, end, layout)
        if data.writer == guids.SPDP_WRITER:
            if flags & wire.WITH_DATA:
                self._discovery.announced(
                    prefix, data.number, packet[at:end], source, now
                )
            elif inline.status:
                self._discovery.disposed(prefix, inline.key, packet[at:end])

            return

        proxies = self._routes.get(prefix + data.writer)
        if not proxies:
            return
        if flags & wire.WITH_DATA and end - at >= 4:
            payload = packet[at:end]
            sample: Sample | None = Sample(
                payload, proxies[0].guid, data.number, inline.related, stamp
            )
        # Disposals of built-in topics announce that a participant or endpoint has left.
        elif data.writer[3] & _BUILTIN_KIND == _BUILTIN_KIND:
            sample = Sample(
                packet[at:end],
                proxies[0].guid,
                data.number,
                None,
                stamp,
                inline.status,
                inline.key,
            )
        else:
            # A sample with only a key is a disposal, which has no meaning for topics
            # without keys.
            sample = None

        for proxy in proxies:
            if data.reader in (ANY, proxy.reader.entity):
                proxy.sample(data.number, sample)

    def _rare(
        self,
        kind: int,
        flags: int,
        packet: bytes,
        at: int,
        end: int,
        layout: Layout,
        prefix: bytes,
        stamp: float,
        now: float,
    ) -> None:
        """Process the less frequent submessages.

        Raises
        ------
        MalformedError
            The submessage is not valid.
        """
        if kind == wire.DATA_FRAG:
            head = submessages.read_data_frag(packet, at, end, layout)
            inline: InlineQos = NO_INLINE_QOS
            at = head.inline
            if flags & wire.INLINE_QOS:
                inline, at = read_inline(packet, at, end, layout)
            # A fragmented key is a disposal, which has no meaning for topics without
            # keys.
            if flags & wire.FRAGMENT_WITH_KEY:
                return
            for proxy in self._routes.get(prefix + head.writer, ()):
                if head.reader in (ANY, proxy.reader.entity):
                    proxy.fragment(head, packet[at:end], inline, stamp, now)
        elif kind == wire.GAP:
            gap = submessages.read_gap(packet, at, end, layout)
            for proxy in self._routes.get(prefix + gap.writer, ()):
                if gap.reader in (ANY, proxy.reader.entity):
                    proxy.gap(gap)
        elif kind == wire.NACK_FRAG:
            nack = submessages.read_nack_frag(packet, at, end, layout)
            writer = self._writers.get(nack.writer)
            if writer is not None:
                writer.nack_frag(prefix + nack.reader, nack, now)
        elif kind == wire.HEARTBEAT_FRAG:
            reader, author, number, _ = submessages.read_heartbeat_frag(
                packet, at, end, layout
            )
            for proxy in self._routes.get(prefix + author, ()):
                if reader in (ANY, proxy.reader.entity):
                    proxy.heartbeat_frag(number, now)


def _stamp(packet: bytes, at: int, end: int, flags: int, layout: Layout) -> float:
    """Return the time of an INFO_TS, s since 1970; 0 if it is invalid."""
    if flags & wire.INVALIDATE:
        return 0.0
    if end - at < 8:
        raise MalformedError(f"INFO_TS: expected 8 bytes, found {end - at}")
    whole, fraction = layout.time.unpack_from(packet, at)
    return float(whole + fraction / 0x100000000)


__all__ = ["Participant"]
