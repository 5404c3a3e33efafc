"""Writers: heartbeats to readers, and repeated samples.

Source: DDSI-RTPS 2.5, §8.4.7 to §8.4.9 (the stateful writer).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from botyard.protocols.rtps import submessages, wire
from botyard.protocols.rtps.discoverydata import EndpointData
from botyard.protocols.rtps.history import Directed, Fragmented, History, Submessage
from botyard.protocols.rtps.limits import MAX_ASSEMBLIES, MAX_FRAGMENTS_AGAIN
from botyard.protocols.rtps.matchedreaders import MatchedReaders, ReaderProxy
from botyard.protocols.rtps.outbox import Destination
from botyard.protocols.rtps.pendingwriters import PendingWriters
from botyard.protocols.rtps.resending import HEADS_BYTES, FragmentJob, ResendJob
from botyard.protocols.rtps.wire import ANY

REMIND_AFTER_S: Final = 0.15
"""Delay from the last sample to the first repeated HEARTBEAT, s; it doubles each time.

A repeated HEARTBEAT demands an answer (ACKNACK) from readers that have not acknowledged
all samples.
"""
REMIND_AT_MOST_S: Final = 8.0
"""Longest interval of repeated HEARTBEATs, s."""
DEMAND_EVERY_S: Final = 4.0
"""Shortest interval of HEARTBEATs that demand an answer in a stream of samples, s.

Between them readers need not answer, but they request missing samples on their own.
"""
HEARTBEAT_EVERY_S: Final = 0.01
"""Shortest interval of a writer's HEARTBEATs to all of its readers, s.

In a slower stream, a HEARTBEAT follows each sample.
"""
_MAX_NAMED: Final = 16
"""Greatest number of readers at an address to which separate HEARTBEATs are sent.

For more readers, one HEARTBEAT is addressed to all of them.
"""

H = TypeVar("H", bound=History)


class Writer(MatchedReaders, Generic[H]):
    """Writer of a topic; made by `Participant.writer`.

    Parameters
    ----------
    data : EndpointData
        Description of the writer.
    pending : PendingWriters
        Writers of the participant with work to do.
    history : History
        History of the samples that the writer keeps, empty at first.
    changed : callable
        Called after readers were matched or lost.

    Attributes
    ----------
    data : EndpointData
        Announced description of the writer.
    number : int
        Sequence number of the last sample.
    matched : dict of EndpointData
        Matched readers, by GUID.
    heartbeat_at : float
        Earliest time of the next HEARTBEAT to all readers, s.
    remind_at : float
        Time of the next repeated HEARTBEATs (`remind`), s.
    """

    # Many writers write in the same step; with slots their state takes few cache lines.
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
        pending: PendingWriters[Writer[Any]],
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
        """Whether the writer has readers, or keeps samples for late readers."""
        return self._keeps or bool(self._proxies)

    @property
    def reader_count(self) -> int:
        """Number of matched readers."""
        return len(self._proxies)

    @property
    def kept(self) -> History:
        """History with the kept samples."""
        return self._history

    # -- matching of readers

    def match(self, reader: EndpointData, destination: Destination, now: float) -> None:
        """Match a reader.

        With transient-local durability of both endpoints, the reader gets the kept
        samples. Otherwise it starts with the next sample.

        Parameters
        ----------
        reader : EndpointData
            A compatible reader.
        destination : Destination
            Address of the reader.
        now : float
            Time of the caller's clock, s.
        """
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
        """Stop sending, and drop all samples; the caller unmatches the readers later."""
        self._keeps = False
        self._history.clear()
        self._pending.written.pop(self, None)
        self._pending.unacknowledged.pop(self, None)

    def serves(self, proxy: ReaderProxy) -> bool:
        """Return whether a reader is still matched."""
        return self._proxies.get(proxy.guid) is proxy

    def _tell(self) -> None:
        """Schedule a call of `changed`, unless one is already scheduled."""
        if not self._is_telling:
            self._is_telling = True
            self._pending.callbacks.add(self._changed)

    def _changed(self) -> None:
        self._is_telling = False
        self.changed()

    # -- writing

    def _send(self, sample: Submessage | Fragmented, now: float) -> None:
        """Send a sample to all matched readers."""
        for destination in self._groups:
            if isinstance(sample, Submessage):
                destination.add(sample.data)
            else:
                self._send_fragments(destination, b"", ANY, self.number, sample)

        self._sent(now)

    def _sent(self, now: float) -> None:
        """Record that the last sample was sent to all readers, and send or schedule a HEARTBEAT."""
        # All readers can acknowledge samples up to this number; later ones may be for
        # single readers.
        self._broadcast = self.number
        if self._reliable:
            # In a fast stream, `Participant.due` sends one HEARTBEAT for several
            # samples.
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
        """Start to send a sample in fragments, unless this is already in progress at the address.

        Parameters
        ----------
        destination : Destination
            Address of the readers.
        prefix : bytes
            GUID prefix of the addressed participant; empty for all at this address.
        reader : bytes
            Entity id of the reader; `ANY` for all matched readers.
        number : int
            Sequence number of the sample.
        sample : Fragmented
            Sample whose fragments are sent.
        only : list of int, optional
            Numbers of the fragments to send, from 1. By default all are sent.
        """
        # Send a sample once, even if several readers at the address request it.
        if not self._is_sending(destination, number):
            self._sending.setdefault(destination, set()).add(number)
            size = destination.fragment_size(len(sample))
            destination.start(
                FragmentJob(self, number, sample, size, prefix, reader, only)
            )

    def _is_sending(self, destination: Destination, number: int) -> bool:
        """Return whether fragments of a sample are being sent to an address."""
        return number in self._sending.get(destination, ())

    def fragments_sent(self, destination: Destination, number: int) -> None:
        """Demand an answer from the readers at an address after all fragments were sent to it."""
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
        """Demand an answer from one reader."""
        first = self._history.first(self.number)
        # Samples from before the match must not count as missing, so declare them
        # irrelevant by a GAP. A greater first number in the HEARTBEAT would do the
        # same, but Cyclone DDS applies that number to all readers of a process:
        # transient-local readers would lose samples.
        if first <= proxy.start and proxy.acked <= proxy.start:
            gap = wire.gap(proxy.entity, self.entity, first, proxy.start + 1)
            proxy.destination.add(gap, proxy.prefix)
        submessage = wire.heartbeat(
            proxy.entity, self.entity, first, self.number, self._next_count()
        )
        proxy.destination.add(submessage, proxy.prefix)
        proxy.unanswered += 1

    def greeting(self, reader: bytes) -> bytes:
        """Return a HEARTBEAT for a reader whose participant is not verified yet."""
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
        """Add a HEARTBEAT to all readers to the datagrams that will be sent next.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s. Every `DEMAND_EVERY_S`, the HEARTBEAT demands
            an answer.
        """
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
        # Send no HEARTBEAT while fragments are being sent: readers would report them as
        # missing.
        for destination in self._reliable_destinations:
            if not sending or not self._is_sending(destination, number):
                destination.add(submessage)

        self.heartbeat_at = now + HEARTBEAT_EVERY_S
        self._wait(now)

    def remind(self, now: float, most: int) -> int:
        """Send repeated HEARTBEATs to readers that have not acknowledged all samples.

        A round may take several calls. The interval grows from round to round. Return
        the number of readers that this call handles.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        most : int
            Limit of the readers that this call handles.
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

            # `pop` takes from the end, so reverse the list to start with the oldest
            # readers.
            lacking.reverse()

        asked = 0
        while lacking and asked < most:
            proxy = lacking.pop()
            if proxy in self._reliable and proxy.destination not in self._sending:
                self._heartbeat(proxy)
            asked += 1

        if not lacking:
            # Limit the exponent, so that the shifted number stays small.
            self.remind_at = now + min(
                REMIND_AFTER_S * (1 << min(self._reminded, 8)), REMIND_AT_MOST_S
            )

        return asked

    # -- messages of readers

    def acknack(
        self, guid: bytes, said: submessages.AckNack, is_final: bool, now: float
    ) -> None:
        """Process an ACKNACK of a reader.

        Parameters
        ----------
        guid : bytes
            GUID of the reader, 16 bytes. An unknown GUID is ignored.
        said : AckNack
            Acknowledged and requested numbers.
        is_final : bool
            Whether the reader needs no HEARTBEAT.
        now : float
            Time of the caller's clock, s.
        """
        proxy = self._proxies.get(guid)
        if proxy is None or not proxy.is_reliable or said.base > self.number + 1:
            return
        # A first ACKNACK only announces the reader: it acknowledges and requests
        # nothing.
        is_first = said.base <= 1 and not said.missing and not is_final
        if said.serial <= proxy.count:
            if not is_first:
                return
            # The reader's participant had removed this one, for example because its
            # lease ended, and starts again. The reader already has all samples that it
            # has acknowledged.
            if not (self._keeps and self.matched[guid].qos.is_kept):
                proxy.start = proxy.acked
                group = self._groups[proxy.destination]
                group.start = max(group.start, proxy.start)

        # UDP may duplicate and reorder packets, so older ACKNACKs were ignored above.
        proxy.count = said.serial
        proxy.unanswered = 0
        if said.base - 1 > proxy.acked:
            proxy.acked = said.base - 1
            self._progress()

        if said.missing:
            # Store the numbers in falling order, so that `pop` returns the lowest.
            proxy.requested = [n for n in reversed(said.missing) if n <= self.number]
            self._serve(proxy)
            self._wait(now)
        elif is_first:
            self._heartbeat(proxy)
            if proxy.acked < self.number:
                self._wait(now)

    def _serve(self, proxy: ReaderProxy) -> None:
        # A reader has one job at a time: a new request only replaces the numbers that
        # the job still has to send.
        if proxy.requested and not proxy.is_served:
            proxy.is_served = True
            proxy.destination.start(ResendJob(self, proxy))

    def nack_frag(self, guid: bytes, said: submessages.NackFrag, now: float) -> None:
        """Process a NACK_FRAG of a reader: at most 256 fragments are sent again.

        Parameters
        ----------
        guid : bytes
            GUID of the reader, 16 bytes. An unknown GUID is ignored.
        said : NackFrag
            Sample and its requested fragments.
        now : float
            Time of the caller's clock, s.
        """
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

        size = proxy.destination.fragment_size(len(kept))
        count = kept.count(size)
        wanted = [n for n in said.fragments if n <= count][:MAX_FRAGMENTS_AGAIN]
        # The fragments, or the reader's answer to them, may be lost. So restart the
        # back-off of repeated HEARTBEATs at its shortest interval.
        if wanted:
            self._wait(now)
        if wanted and proxy.may_have(
            said.number, len(wanted) * size, now, in_fragments=True
        ):
            self._send_fragments(
                proxy.destination, proxy.prefix, proxy.entity, said.number, kept, wanted
            )

    def sample_for(
        self, proxy: ReaderProxy, number: int
    ) -> bytes | Submessage | Fragmented | None:
        """Return a kept sample; None if it is not kept or is irrelevant for the reader.

        Parameters
        ----------
        proxy : ReaderProxy
            State of the reader.
        number : int
            Sequence number of the sample.
        """
        if number <= proxy.start:
            return None
        kept = self._history.get(number)
        if isinstance(kept, Directed):
            return kept.sample if kept.reader == proxy.guid else None
        return kept

    def irrelevant_until(self, proxy: ReaderProxy, number: int) -> int:
        """Return the first number above `number` whose sample is relevant for a reader.

        If there is none, the result is the number after the last sample.
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

        Parameters
        ----------
        proxy : ReaderProxy
            State of the reader. Requested numbers that the GAP covers are removed from
            it.
        number : int
            Requested sequence number.
        destination : Destination
            Address of the reader.
        now : float
            Time of the caller's clock, s.

        Returns
        -------
        int
            Number of bytes that were sent; 0 if the reader's limit of repeated bytes is
            reached.
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
            return HEADS_BYTES

        if isinstance(kept, Fragmented):
            if not self._is_sending(destination, number):
                if not proxy.may_have(number, len(kept), now, in_fragments=True):
                    return 0
                reader = (
                    ANY
                    # If the sample is for all readers at the address, send it to all:
                    # the others have probably lost it as well.
                    if self._groups[proxy.destination].start < number
                    else proxy.entity
                )
                self._send_fragments(destination, proxy.prefix, reader, number, kept)

            return HEADS_BYTES

        if not proxy.may_have(number, len(kept), now):
            return 0
        # Address the sample to this reader only: others may have been matched too late
        # to get it.
        if isinstance(kept, Submessage):
            again = wire.for_reader(kept.data, proxy.entity)
        else:
            again = wire.data(proxy.entity + self.entity, number, kept)

        destination.add(again, proxy.prefix)
        return len(again)

    def resent(self, proxy: ReaderProxy) -> None:
        """Finish the resending of samples to a reader with a HEARTBEAT."""
        proxy.is_served = False
        # Send no HEARTBEAT while fragments are being sent: the reader would report them
        # as missing.
        if self.serves(proxy) and proxy.destination not in self._sending:
            self._heartbeat(proxy)

    def is_kept(self, number: int, sample: Fragmented) -> bool:
        """Return whether the history still holds a sample, so that it is worth sending."""
        kept = self._history.get(number)
        return kept is sample or (isinstance(kept, Directed) and kept.sample is sample)

    def _progress(self) -> None:
        """Drop samples that no reader needs any more; subclasses override this method."""
