"""Writers: heartbeats to readers, and repeated samples.

Source: DDSI-RTPS 2.5, §8.4.7 to §8.4.9 (the stateful writer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from botyard.protocols.rtps import submessages, wire
from botyard.protocols.rtps.callbacks import Callbacks
from botyard.protocols.rtps.discoverydata import EndpointData
from botyard.protocols.rtps.history import Directed, Fragmented, History, Submessage
from botyard.protocols.rtps.limits import MAX_ASSEMBLIES, MAX_FRAGMENTS_AGAIN
from botyard.protocols.rtps.matchedreaders import MatchedReaders, ReaderProxy
from botyard.protocols.rtps.outbox import Destination
from botyard.protocols.rtps.wire import ANY

REMIND_AFTER_S: Final = 0.15
"""Delay from the last sample to the first HEARTBEAT that demands an answer, s.

It doubles each time.
"""
REMIND_AT_MOST_S: Final = 8.0
DEMAND_EVERY_S: Final = 4.0
"""Shortest interval of HEARTBEATs that demand an answer in a stream of samples, s.

Readers report missing samples on their own.
"""
HEARTBEAT_EVERY_S: Final = 0.01
"""Shortest interval of a writer's HEARTBEATs to all of its readers, s.

In a slower stream, one follows each sample.
"""
_HEADS_BYTES: Final = 64
"""Room for headers of submessages in a datagram, bytes."""
_MAX_NAMED: Final = 16
"""Number of readers at one address above which a single HEARTBEAT asks all."""

H = TypeVar("H", bound=History)


@dataclass(slots=True)
class PendingWriters:
    """Writers of a participant with unannounced or unacknowledged samples.

    Attributes
    ----------
    written : dict of Writer
        Writers that have written since their last HEARTBEAT.
    unacknowledged : dict of Writer
        Writers whose readers have not acknowledged all samples.
    callbacks : Callbacks
        Calls into programs.
    """

    callbacks: Callbacks
    written: dict[Writer[Any], None] = field(default_factory=dict)
    unacknowledged: dict[Writer[Any], None] = field(default_factory=dict)


class Writer(MatchedReaders, Generic[H]):
    """Writer of a topic; made by `Participant.writer`.

    Attributes
    ----------
    data : EndpointData
        Its announced description.
    number : int
        Sequence number of the last sample.
    matched : dict of EndpointData
        Its readers, by GUID.
    heartbeat_at : float
        Earliest time of its next HEARTBEAT, s.
    remind_at : float
        Time at which its readers are asked for acknowledgements, s.
    """

    # Many writers write in the same step, so slots keep their state in few cache lines.
    __slots__ = (
        "_broadcast",
        "_count",
        "_demand_at",
        "_history",
        "_is_telling",
        "_keeps",
        "_pair",
        "_pending",
        "_proxies",
        "_reminded",
        "changed",
        "data",
        "entity",
        "guid",
        "heartbeat_at",
        "matched",
        "number",
        "remind_at",
    )

    def __init__(
        self,
        data: EndpointData,
        pending: PendingWriters,
        history: H,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.data = data
        self.guid = data.guid
        self.entity = data.guid[12:]
        self.number = 0
        self.matched: dict[bytes, EndpointData] = {}
        self.changed = changed
        self._pending = pending
        self._history = history
        self._keeps = data.qos.is_kept
        self._proxies: dict[bytes, ReaderProxy] = {}
        self._is_telling = False
        self._pair = ANY + self.entity
        self._broadcast = 0
        self._count = 0
        self._demand_at = self.heartbeat_at = 0.0
        self._reminded = 0
        self.remind_at = 0.0

    @property
    def is_wanted(self) -> bool:
        """Whether a sample is of use: it has readers, or is kept for late ones."""
        return self._keeps or bool(self._proxies)

    @property
    def kept(self) -> History:
        """Kept samples."""
        return self._history

    # -- readers come and go

    def match(self, reader: EndpointData, destination: Destination, now: float) -> None:
        """Match a reader."""
        is_reliable = reader.qos.reliable and self.data.qos.reliable
        start = 0 if self._keeps and reader.qos.is_kept else self.number
        proxy = ReaderProxy(
            reader.guid, destination, is_reliable, start, self.number, now
        )
        self._proxies[reader.guid] = proxy
        self.matched[reader.guid] = reader
        self._join(proxy)
        if is_reliable:
            self._heartbeat(proxy)
            if proxy.acked < self.number:
                self._wait(now)

        self._tell()

    def unmatch(self, guid: bytes) -> None:
        """Unmatch a reader that has left."""
        proxy = self._proxies.pop(guid, None)
        if proxy is not None:
            del self.matched[guid]
            self._part(proxy)
            self._progress()
            if not self._reliable:
                self._pending.unacknowledged.pop(self, None)
            self._tell()

    def move(self, guid: bytes, destination: Destination) -> None:
        """Use another address of a reader."""
        proxy = self._proxies[guid]
        if proxy.destination is not destination:
            self._part(proxy)
            proxy.destination = destination
            self._join(proxy)

    def close(self) -> None:
        """Send and keep nothing more; the readers are unmatched later."""
        self._keeps = False
        self._history.clear()
        self._pending.written.pop(self, None)
        self._pending.unacknowledged.pop(self, None)

    def serves(self, proxy: ReaderProxy) -> bool:
        """Return whether a reader is still matched."""
        return self._proxies.get(proxy.guid) is proxy

    def _tell(self) -> None:
        """Schedule one call of `changed` for all matches and losses until then."""
        if not self._is_telling:
            self._is_telling = True
            self._pending.callbacks.add(self._changed)

    def _changed(self) -> None:
        self._is_telling = False
        self.changed()

    # -- writing

    def _send(self, sample: Submessage | Fragmented, now: float) -> None:
        """Send a sample to all readers."""
        for destination in self._groups:
            if isinstance(sample, Submessage):
                destination.add(sample.data)
            else:
                self._send_fragments(destination, b"", ANY, self.number, sample)

        self._sent(now)

    def _sent(self, now: float) -> None:
        """Record that a sample was sent to all readers."""
        # Readers may acknowledge up to here; later numbers were sent to single readers.
        self._broadcast = self.number
        if self._reliable:
            # With a fast stream the next `due` sends one HEARTBEAT for several samples.
            if now >= self.heartbeat_at:
                self.send_heartbeat(now)
            else:
                self._pending.written[self] = None

    def _send_fragments(
        self,
        destination: Destination,
        prefix: bytes,
        reader: bytes,
        number: int,
        sample: Fragmented,
        only: list[int] | None = None,
    ) -> None:
        # Several readers of one address may request the same sample; it is sent once.
        if not self._is_sending(destination, number):
            self._sending.setdefault(destination, set()).add(number)
            destination.start(_FragmentJob(self, number, sample, prefix, reader, only))

    def _is_sending(self, destination: Destination, number: int) -> bool:
        """Return whether fragments of a sample are being sent to an address."""
        return number in self._sending.get(destination, ())

    def fragments_sent(self, destination: Destination, number: int) -> None:
        """Ask the readers of an address for missing fragments."""
        numbers = self._sending.get(destination)
        if numbers is not None:
            numbers.discard(number)
            if not numbers:
                del self._sending[destination]

        group = self._groups.get(destination)
        lacking = (
            [p for p in group.reliable if p.acked < number and p.start < number]
            if group is not None
            else []
        )
        if len(lacking) <= _MAX_NAMED:
            for proxy in lacking:
                self._heartbeat(proxy)
        else:
            for proxy in lacking:
                proxy.unanswered += 1
            destination.add(self.greeting(ANY))

    # -- heartbeats

    def _next_count(self) -> int:
        self._count = self._count % wire.MAX_COUNT + 1
        return self._count

    def _heartbeat(self, proxy: ReaderProxy) -> None:
        """Demand an answer of one reader."""
        first = self._history.first(self.number)
        # Samples from before its match must not count as missing. A greater first
        # number in the HEARTBEAT would say so as well, but Cyclone DDS takes that
        # number for all readers of a process, and drops the samples of its latched
        # readers.
        if first <= proxy.start and proxy.acked <= proxy.start:
            gap = wire.gap(proxy.entity, self.entity, first, proxy.start + 1)
            proxy.destination.add(gap, proxy.prefix)
        submessage = wire.heartbeat(
            proxy.entity, self.entity, first, self.number, self._next_count()
        )
        proxy.destination.add(submessage, proxy.prefix)
        proxy.unanswered += 1

    def greeting(self, reader: bytes) -> bytes:
        """Return a HEARTBEAT for a reader of a participant that has not answered yet."""
        return wire.heartbeat(
            reader,
            self.entity,
            self._history.first(self.number),
            self.number,
            self._next_count(),
        )

    def _wait(self, now: float) -> None:
        self._reminded = 0
        self.remind_at = now + REMIND_AFTER_S
        self._pending.unacknowledged[self] = None

    def send_heartbeat(self, now: float) -> None:
        """Add a HEARTBEAT to the datagrams of the samples that are about to be sent."""
        is_demanding = now >= self._demand_at
        if is_demanding:
            self._demand_at = now + DEMAND_EVERY_S
            for proxy in self._reliable:
                proxy.unanswered += 1

        number, sending = self.number, self._sending
        self._count = count = self._count % wire.MAX_COUNT + 1
        submessage = wire.heartbeat(
            ANY,
            self.entity,
            self._history.first(number),
            number,
            count,
            not is_demanding,
        )
        # While fragments are being sent, readers would report them as missing.
        for destination in self._reliable_destinations:
            if not sending or not self._is_sending(destination, number):
                destination.add(submessage)

        self.heartbeat_at = now + HEARTBEAT_EVERY_S
        self._wait(now)

    def remind(self, now: float, most: int) -> int:
        """Demand an answer of readers that have not acknowledged all samples.

        The interval grows from round to round. Returns the number of asked readers, at
        most `most`.
        """
        lacking = self._lacking
        if not lacking:
            lacking = self._lacking = [
                p for p in self._reliable if p.acked < max(self._broadcast, p.wanted)
            ]
            self._reminded += 1
            if not lacking:
                self._pending.unacknowledged.pop(self, None)
                return 0

            # Taken from the end, so that the oldest readers come first.
            lacking.reverse()

        asked = 0
        while lacking and asked < most:
            proxy = lacking.pop()
            if proxy in self._reliable and proxy.destination not in self._sending:
                self._heartbeat(proxy)
            asked += 1

        if not lacking:
            # The exponent is limited, so that the shift cannot grow without bound.
            self.remind_at = now + min(
                REMIND_AFTER_S * (1 << min(self._reminded, 8)), REMIND_AT_MOST_S
            )

        return asked

    # -- what readers say

    def acknack(
        self, guid: bytes, said: submessages.AckNack, is_final: bool, now: float
    ) -> None:
        """Process an ACKNACK of a reader."""
        proxy = self._proxies.get(guid)
        if proxy is None or not proxy.is_reliable or said.base > self.number + 1:
            return
        # The first ACKNACK of a reader, which announces it.
        is_first = said.base <= 1 and not said.missing and not is_final
        if said.serial <= proxy.count:
            if not is_first:
                return
            # Its participant had lost ours unnoticed: the reader starts again, and has
            # all that it has acknowledged.
            if not (self._keeps and self.matched[guid].qos.is_kept):
                proxy.start = proxy.acked
                group = self._groups[proxy.destination]
                group.start = max(group.start, proxy.start)

        # UDP may duplicate and reorder packets, so only newer ACKNACKs count.
        proxy.count = said.serial
        proxy.unanswered = 0
        if said.base - 1 > proxy.acked:
            proxy.acked = said.base - 1
            self._progress()

        if said.missing:
            # Falling order, so that `pop` takes the lowest number.
            proxy.requested = [n for n in reversed(said.missing) if n <= self.number]
            self._serve(proxy)
            self._wait(now)
        elif is_first:
            self._heartbeat(proxy)
            if proxy.acked < self.number:
                self._wait(now)

    def _serve(self, proxy: ReaderProxy) -> None:
        # One job at a time for each reader; a new request replaces the rest of the old
        # one.
        if proxy.requested and not proxy.is_served:
            proxy.is_served = True
            proxy.destination.start(_ResendJob(self, proxy))

    def nack_frag(self, guid: bytes, said: submessages.NackFrag, now: float) -> None:
        """Process a NACK_FRAG of a reader: at most 256 fragments are sent again."""
        proxy = self._proxies.get(guid)
        if (
            proxy is None
            or said.serial <= proxy.fragment_count
            or not proxy.is_reliable
        ):
            return

        proxy.fragment_count = said.serial
        proxy.unanswered = 0
        kept = self.sample_for(proxy, said.number)
        if (
            not isinstance(kept, Fragmented)
            or len(self._sending.get(proxy.destination, ())) >= MAX_ASSEMBLIES
        ):
            return

        wanted = [n for n in said.fragments if n <= kept.count][:MAX_FRAGMENTS_AGAIN]
        if wanted and proxy.may_have(
            said.number, len(wanted) * kept.fragment_size, now
        ):
            self._send_fragments(
                proxy.destination, proxy.prefix, proxy.entity, said.number, kept, wanted
            )

    def sample_for(
        self, proxy: ReaderProxy, number: int
    ) -> bytes | Submessage | Fragmented | None:
        """Return a kept sample; None if it is irrelevant for that reader."""
        if number <= proxy.start:
            return None
        kept = self._history.get(number)
        if isinstance(kept, Directed):
            return kept.sample if kept.reader == proxy.guid else None
        return kept

    def irrelevant_until(self, proxy: ReaderProxy, number: int) -> int:
        """Return the first relevant number from an irrelevant one on.

        Without a relevant one the result is the number after the last.
        """
        number = max(number, proxy.start) + 1
        while (number := self._history.next(number, self.number)) <= self.number:
            if self.sample_for(proxy, number) is not None:
                return number
            number += 1

        return self.number + 1

    def resend(
        self, proxy: ReaderProxy, number: int, destination: Destination, now: float
    ) -> int:
        """Send a requested sample to a reader, or a GAP if there is none.

        Returns
        -------
        int
            Number of bytes; 0 if the reader may have no more now.
        """
        kept = self.sample_for(proxy, number)
        if kept is None:
            base = self.irrelevant_until(proxy, number)
            # One GAP covers all irrelevant numbers that follow.
            while proxy.requested and proxy.requested[-1] < base:
                proxy.requested.pop()
            destination.add(
                wire.gap(proxy.entity, self.entity, number, base), proxy.prefix
            )
            return _HEADS_BYTES

        if isinstance(kept, Fragmented):
            if not self._is_sending(destination, number):
                if not proxy.may_have(number, len(kept), now):
                    return 0
                reader = (
                    ANY
                    # To all readers of the address if the sample is for all, because
                    # they probably lost it as well.
                    if self._groups[proxy.destination].start < number
                    else proxy.entity
                )
                self._send_fragments(destination, proxy.prefix, reader, number, kept)

            return _HEADS_BYTES

        if not proxy.may_have(number, len(kept), now):
            return 0
        # Addressed to one reader, because others may have matched too late to get this
        # sample.
        if isinstance(kept, Submessage):
            again = wire.for_reader(kept.data, proxy.entity)
        else:
            again = wire.data(proxy.entity + self.entity, number, kept)

        destination.add(again, proxy.prefix)
        return len(again)

    def resent(self, proxy: ReaderProxy) -> None:
        """Finish the resending of samples to a reader with a HEARTBEAT."""
        proxy.is_served = False
        # A HEARTBEAT would make the reader report fragments that are being sent.
        if self.serves(proxy) and proxy.destination not in self._sending:
            self._heartbeat(proxy)

    def is_kept(self, number: int, sample: Fragmented) -> bool:
        """Return whether a sample is still kept, and thus worth sending."""
        kept = self._history.get(number)
        return kept is sample or (isinstance(kept, Directed) and kept.sample is sample)

    def _progress(self) -> None:
        """Drop samples that no reader needs any more; overridden by subclasses."""


class _ResendJob:
    """Job that sends the samples which a reader has requested.

    A HEARTBEAT follows, so that the reader requests more at once.
    """

    def __init__(self, writer: Writer[H], proxy: ReaderProxy) -> None:
        self._writer, self._proxy = writer, proxy

    def step(self, destination: Destination, now: float) -> bool:
        """Send about a datagram of the samples; see `Job`."""
        writer, proxy = self._writer, self._proxy
        if not writer.serves(proxy):
            return True
        room = destination.limit - _HEADS_BYTES
        while proxy.requested and room > 0:
            size = writer.resend(proxy, proxy.requested.pop(), destination, now)
            # The reader is over its budget, and will ask again.
            if size == 0:
                proxy.requested.clear()
            room -= size

        if proxy.requested:
            return False
        writer.resent(proxy)
        return True


class _FragmentJob:
    """Job that sends the fragments of a sample, all or some."""

    def __init__(
        self,
        writer: Writer[H],
        number: int,
        sample: Fragmented,
        prefix: bytes,
        reader: bytes,
        only: list[int] | None,
    ) -> None:
        self._writer, self._number, self._sample = writer, number, sample
        self._prefix = prefix
        self._pair = reader + writer.entity
        self._fragments: Iterator[int] = iter(
            only if only is not None else range(1, sample.count + 1)
        )

    def step(self, destination: Destination, now: float) -> bool:
        """Send about a datagram of the fragments; see `Job`."""
        sample = self._sample
        size, payload = sample.fragment_size, sample.payload
        # A newer sample has replaced it, so the rest is of no use.
        if not self._writer.is_kept(self._number, sample):
            self._writer.fragments_sent(destination, self._number)
            return True

        for _ in range(
            max(1, (destination.limit - _HEADS_BYTES) // (size + _HEADS_BYTES))
        ):
            fragment = next(self._fragments, 0)
            if not fragment:
                self._writer.fragments_sent(destination, self._number)
                return True

            part = payload[(fragment - 1) * size : fragment * size]
            submessage = wire.data_frag(
                self._pair,
                self._number,
                fragment,
                size,
                len(payload),
                part,
                sample.inline,
            )
            destination.add(submessage, self._prefix)

        return False
