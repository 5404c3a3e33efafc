"""Discovery of endpoints (SEDP): remote writers and readers, and the matched pairs.

Source: DDSI-RTPS 2.5, §8.5.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from botyard.protocols.rtps import guids
from botyard.protocols.rtps import parameters as p
from botyard.protocols.rtps.discoverydata import (
    EndpointData,
    ParticipantData,
    encode_key,
    read_key,
)
from botyard.protocols.rtps.events import EventKind, Events
from botyard.protocols.rtps.history import KeepInstances
from botyard.protocols.rtps.limits import (
    MAX_AT_ONCE,
    MAX_ENDPOINTS,
    MAX_PEER_ADDRESSES,
    MAX_PEER_ENDPOINTS,
)
from botyard.protocols.rtps.outbox import Outbox
from botyard.protocols.rtps.peers import Peer
from botyard.protocols.rtps.pendingwriters import PendingWriters
from botyard.protocols.rtps.qos import Durability, Qos, mismatch
from botyard.protocols.rtps.reader import Reader
from botyard.protocols.rtps.samples import Inbox, Sample
from botyard.protocols.rtps.topicwriters import InstanceWriter
from botyard.protocols.rtps.wire import MalformedError
from botyard.protocols.rtps.writer import Writer
from botyard.protocols.rtps.writerproxy import WriterProxy

BUILTIN_QOS: Final = Qos(durability=Durability.TRANSIENT_LOCAL, depth=1)
Routes = dict[bytes, tuple[WriterProxy, ...]]
"""Local readers of each remote writer, as the states (`WriterProxy`) that they keep of it.

The keys are the GUIDs of the writers.
"""


class EndpointDiscovery:
    """Remote endpoints of known participants, and their matches with local endpoints.

    Parameters
    ----------
    data : ParticipantData
        Description of this participant.
    outbox, pending, inbox, events
        Objects that this one shares with all endpoints.
    now : float
        Time of the caller's clock, s.
    """

    def __init__(
        self,
        data: ParticipantData,
        outbox: Outbox,
        pending: PendingWriters[Writer[Any]],
        inbox: Inbox[WriterProxy],
        events: Events,
        now: float,
    ) -> None:
        self._data = data
        self._prefix = data.guid[:12]
        self._outbox = outbox
        self._pending = pending
        self._inbox = inbox
        self._events = events
        self.writers: dict[bytes, Writer[Any]] = {}
        self.readers: dict[bytes, Reader] = {}
        self.routes: Routes = {}
        self.peers: dict[bytes, Peer] = {}
        self._now = now
        self._local: dict[str, dict[bytes, Writer[Any] | Reader]] = {}
        self._remote: dict[str, dict[bytes, EndpointData]] = {}
        self._remote_count = 0
        # Participants that have left, but whose endpoints are still matched.
        self._leaving: dict[bytes, Peer] = {}
        # Work with many endpoints, by kind of work and GUID or prefix. Each call of
        # `due` does a slice of it.
        self._chores: dict[tuple[str, bytes], Iterator[None]] = {}
        self.publications = self._builtin_writer(guids.PUBLICATIONS_WRITER)
        self.subscriptions = self._builtin_writer(guids.SUBSCRIPTIONS_WRITER)

    def _builtin_writer(self, entity: bytes) -> InstanceWriter:
        about = EndpointData(self._prefix + entity, "", "", BUILTIN_QOS)
        writer = InstanceWriter(about, self._pending, KeepInstances())
        self.writers[entity] = writer
        return writer

    def _work(self) -> None:
        """Continue the work with many endpoints: do its next slice."""
        room = MAX_AT_ONCE
        while self._chores and room:
            key, chore = next(iter(self._chores.items()))
            room -= sum(1 for _ in islice(chore, room))
            # If less than the whole slice was used, the work is finished.
            if room:
                del self._chores[key]

    def _start(self, name: str, guid: bytes, chore: Iterator[None]) -> None:
        """Start long work: do a slice of it now, and another slice in each call of `due`.

        Work with many endpoints is cut into slices, so that it does not delay the steps
        of the world.

        Parameters
        ----------
        name : str
            Kind of work. It replaces unfinished work of the same kind with the same
            `guid`.
        guid : bytes
            GUID of the endpoint, or prefix of the participant, that the work is about.
        chore : iterator
            The work; each item is a part of about equal length.
        """
        self._chores.pop((name, guid), None)
        # If the whole slice was used, work may remain.
        if sum(1 for _ in islice(chore, MAX_AT_ONCE)) == MAX_AT_ONCE:
            self._chores[name, guid] = chore

    def _unmatch_all(self, peer: Peer) -> Iterator[None]:
        """Unmatch the endpoints of a participant that has left."""
        while peer.endpoints:
            self._endpoint_gone(peer, next(iter(peer.endpoints)))
            yield

        del self._leaving[peer.prefix]

    def _endpoint(self, sample: Sample) -> None:
        """Process a sample of SEDP.

        Parameters
        ----------
        sample : Sample
            Announcement or disposal of a remote endpoint.
        """
        peer = self.peers.get(sample.writer[:12])
        if peer is None:
            return
        try:
            if sample.status:
                guid = sample.key or read_key(sample.payload)
                if guid in peer.endpoints:
                    self._endpoint_gone(peer, guid)
                return

            endpoint = EndpointData.read(sample.payload, peer.data.vendor)
            is_writer = sample.writer[12:] == guids.PUBLICATIONS_WRITER
            if endpoint.guid[:12] != peer.prefix or endpoint.is_writer != is_writer:
                raise MalformedError(
                    "expected an announcement of the sender's own writer or reader, "
                    "found the other kind or an endpoint of another participant"
                )
        except MalformedError as error:
            self._events.add(
                EventKind.MALFORMED, sample.writer, f"{peer.host}: {error}"
            )
            return

        if endpoint.guid in peer.endpoints:
            if peer.endpoints[endpoint.guid] == endpoint:
                return
            self._endpoint_gone(peer, endpoint.guid)

        left = self._leaving.get(peer.prefix)
        if (
            # The participant has left, and has returned before all of its endpoints
            # were unmatched.
            left is not None and endpoint.guid in left.endpoints
        ):
            self._endpoint_gone(left, endpoint.guid)

        if len(peer.endpoints) >= MAX_PEER_ENDPOINTS or not self._has_room(peer):
            text = (
                f"topic {endpoint.topic!r} of {peer.host} is ignored: the limit of "
                "endpoints is reached"
            )
            self._events.add(EventKind.REFUSED, endpoint.guid, text)
            return

        peer.endpoints[endpoint.guid] = endpoint
        self._remote.setdefault(endpoint.topic, {})[endpoint.guid] = endpoint
        self._remote_count += 1
        for local in tuple(self._local.get(endpoint.topic, {}).values()):
            self._try(local, endpoint, peer)

    def _has_room(self, peer: Peer) -> bool:
        """Return whether a participant may have another endpoint.

        At the limit of all endpoints, an endpoint of another participant may be
        removed for it; see `MAX_ENDPOINTS`.
        """
        if self._remote_count < MAX_ENDPOINTS:
            return True
        # Endpoints of participants that have left are removed first.
        loser = next((x for x in self._leaving.values() if x.endpoints), None)
        if loser is None:
            counts: Counter[str] = Counter()
            for other in self.peers.values():
                counts[other.host] += len(other.endpoints)
            host, most = counts.most_common(1)[0]
            if counts[peer.host] + 1 >= most:
                host = peer.host
            loser = max(
                (x for x in self.peers.values() if x.host == host),
                key=lambda x: len(x.endpoints),
            )
            # Do not replace an endpoint by another one of the same participant.
            if host == peer.host and len(loser.endpoints) <= len(peer.endpoints) + 1:
                return False

        guid = next(reversed(loser.endpoints))
        text = (
            f"topic {loser.endpoints[guid].topic!r} of {loser.host} is replaced by a "
            f"topic of {peer.host}: the limit of endpoints is reached"
        )
        self._events.add(EventKind.REFUSED, guid, text)
        self._endpoint_gone(loser, guid)
        return True

    def _endpoint_gone(self, peer: Peer, guid: bytes) -> None:
        endpoint = peer.endpoints.pop(guid)
        self._remote_count -= 1
        remotes = self._remote[endpoint.topic]
        del remotes[guid]
        if not remotes:
            del self._remote[endpoint.topic]
        for local in tuple(self._local.get(endpoint.topic, {}).values()):
            if guid in local.matched:
                if isinstance(local, Writer):
                    local.unmatch(guid)
                else:
                    self._unroute(local.unmatch(guid))

                peer.matched -= 1
                self._events.add(EventKind.UNMATCHED, guid, endpoint.topic)

    def _try(
        self, local: Writer[Any] | Reader, remote: EndpointData, peer: Peer
    ) -> None:
        """Match a local and a remote endpoint of one topic if their policies are compatible.

        Parameters
        ----------
        local : Writer or Reader
            Endpoint of this participant.
        remote : EndpointData
            Endpoint of the peer.
        peer : Peer
            A verified participant.
        """
        is_writer = isinstance(local, Writer)
        if remote.is_writer == is_writer or remote.type_name != local.data.type_name:
            # As in DDS, endpoints of the same topic but different types are
            # independent.
            return

        offered, wanted = (local.data, remote) if is_writer else (remote, local.data)
        reason = mismatch(offered.qos, wanted.qos)
        # ROS messages have no keys, and this writer sends no inline QoS.
        if reason or remote.has_key or remote.expects_inline_qos:
            reason = reason or (
                "samples with a key are not supported"
                if remote.has_key
                else "inline QoS is not supported"
            )
            self._events.add(
                EventKind.QOS,
                remote.guid,
                f"topic {remote.topic} of {peer.host} is ignored: {reason}",
            )
            return

        address = peer.address_of(remote)
        if address is None:
            text = (
                f"topic {remote.topic} is ignored: it has no address at {peer.host}, "
                "the host of its participant"
            )
            self._events.add(EventKind.REFUSED, remote.guid, text)
            return

        if address not in peer.addresses and len(peer.addresses) >= MAX_PEER_ADDRESSES:
            text = (
                f"topic {remote.topic} of {peer.host} is ignored: the limit of "
                f"{MAX_PEER_ADDRESSES} addresses of a participant is reached"
            )
            self._events.add(EventKind.REFUSED, remote.guid, text)
            return

        peer.addresses.add(address)
        peer.matched += 1
        destination = self._outbox.destination(address)
        self._events.add(EventKind.MATCHED, remote.guid, remote.topic)
        if isinstance(local, Writer):
            local.match(remote, destination, self._now)
        else:
            self._route(local.match(remote, destination, self._now))

    def _route(self, proxy: WriterProxy) -> None:
        self.routes[proxy.guid] = (*self.routes.get(proxy.guid, ()), proxy)

    def _unroute(self, proxy: WriterProxy | None) -> None:
        if proxy is None:
            return
        rest = tuple(x for x in self.routes[proxy.guid] if x is not proxy)
        if rest:
            self.routes[proxy.guid] = rest
        else:
            del self.routes[proxy.guid]

    def add(self, local: Writer[Any] | Reader, now: float) -> None:
        """Announce a new local endpoint, and match it.

        Parameters
        ----------
        local : Writer or Reader
            The endpoint. If there are many remote endpoints, matching continues in
            later calls of `due`.
        now : float
            Time of the caller's clock, s.
        """
        self._now = now
        data = local.data
        if isinstance(local, Writer):
            self.writers[local.entity] = local
        else:
            self.readers[local.entity] = local

        self._local.setdefault(data.topic, {})[local.entity] = local
        about = self.publications if data.is_writer else self.subscriptions
        about.put(data.guid, data.encode(), now)
        self._start("match", local.guid, self._match_all(local))

    def _match_all(self, local: Writer[Any] | Reader) -> Iterator[None]:
        """Match a local endpoint with all known remote endpoints."""
        topic = local.data.topic
        for remote in tuple(self._remote.get(topic, {}).values()):
            # The list is a copy, so participants and endpoints in it may have been
            # removed.
            peer = self.peers.get(remote.guid[:12])
            is_there = peer is not None and peer.endpoints.get(remote.guid) is remote
            if peer is not None and is_there and remote.guid not in local.matched:
                self._try(local, remote, peer)
            yield

    def remove(self, local: Writer[Any] | Reader, now: float) -> None:
        """Remove a local endpoint.

        Parameters
        ----------
        local : Writer or Reader
            The endpoint. An unknown one is ignored.
        now : float
            Time of the caller's clock, s.
        """
        self._now = now
        data = local.data
        locals_ = self._local.get(data.topic, {})
        if locals_.pop(local.entity, None) is None:
            return
        if not locals_:
            del self._local[data.topic]
        self._chores.pop(("match", local.guid), None)
        if isinstance(local, Writer):
            del self.writers[local.entity]
        else:
            del self.readers[local.entity]

        local.close()
        self._start("close", local.guid, self._close(local))
        about = self.publications if data.is_writer else self.subscriptions
        about.dispose(
            data.guid,
            p.disposal(data.guid),
            encode_key(p.ENDPOINT_GUID, data.guid),
            now,
        )

    def _close(self, local: Writer[Any] | Reader) -> Iterator[None]:
        """Unmatch the remote endpoints of a removed local endpoint."""
        for guid, remote in tuple(local.matched.items()):
            peer = self.peers.get(guid[:12])
            if peer is not None and peer.endpoints.get(guid) is remote:
                peer.matched -= 1
            if isinstance(local, Writer):
                local.unmatch(guid)
            else:
                self._unroute(local.unmatch(guid))

            yield
