"""Readers: delivery of samples in order, and requests for missing ones.

Source: DDSI-RTPS 2.5, §8.4.10 to §8.4.12 (the stateful reader).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from botyard.protocols.rtps import submessages, wire
from botyard.protocols.rtps.agenda import Agenda
from botyard.protocols.rtps.callbacks import Callbacks
from botyard.protocols.rtps.discoverydata import EndpointData
from botyard.protocols.rtps.events import EventKind, Events
from botyard.protocols.rtps.fragments import Assembly, cost, is_plausible
from botyard.protocols.rtps.limits import (
    HELD_OVERHEAD_BYTES,
    MAX_ASSEMBLIES,
    MAX_ASSEMBLY_BYTES,
    MAX_HELD_BYTES,
    MAX_HELD_SAMPLES,
    MAX_SAMPLE_BYTES,
    MAX_SET_BITS,
    MAX_TOTAL_HELD_BYTES,
)
from botyard.protocols.rtps.outbox import Destination
from botyard.protocols.rtps.parameters import Identity, InlineQos
from botyard.protocols.shares import Shares

ASK_AFTER_S: Final = 0.005
"""Delay from a HEARTBEAT that shows a missing sample to the ACKNACK, s.

The sample may still be on its way.
"""
ASK_AGAIN_AFTER_S: Final = 0.1
"""Delay before an ACKNACK without effect is repeated, s; it doubles each time."""
MAX_ASKED: Final = 7
"""Number of ACKNACKs without effect, after which the next HEARTBEAT is awaited."""
FRAGMENTS_PAUSE_S: Final = 0.02
"""Time without a new fragment after which fragments are requested, s."""


def first_base(vendor: bytes) -> int:
    """Return the base of the first ACKNACK to a writer, which requests a HEARTBEAT.

    Fast DDS answers 0 only, and Cyclone DDS requires a valid number.
    """
    return 0 if vendor == wire.VENDOR_FAST else 1


class Sample(NamedTuple):
    """Sample with its metadata.

    Attributes
    ----------
    payload : bytes
        Payload with its 4 bytes of encapsulation.
    writer : bytes
        GUID of the writer.
    number : int
        Sequence number.
    related : Identity or None
        Related sample identity.
    stamp : float
        Time at which it was sent, s since 1970; 0 if unknown.
    status : int
        `parameters.DISPOSED`, `parameters.UNREGISTERED`, both or 0; other than 0 only
        from built-in writers.
    key : bytes
        Key hash, only from built-in writers.
    """

    payload: bytes
    writer: bytes
    number: int
    related: Identity | None = None
    stamp: float = 0.0
    status: int = 0
    key: bytes = b""


@dataclass(slots=True)
class Inbox:
    """State that readers share.

    Attributes
    ----------
    asking : Agenda
        Schedule of requests to writers.
    assembling : dict of WriterProxy
        Writers with samples that are reassembled from fragments.
    assemblies : dict of Assembly
        These samples, by writer and number: readers of one topic share them.
    budget : Shares
        Memory budget of these samples.
    held : Shares
        Memory budget of all samples that wait for missing ones.
    events : Events
        Log of events.
    callbacks : Callbacks
        Calls into programs.
    """

    events: Events
    callbacks: Callbacks
    asking: Agenda[WriterProxy] = field(default_factory=Agenda)
    assembling: dict[WriterProxy, None] = field(default_factory=dict)
    assemblies: dict[tuple[bytes, int], Assembly[WriterProxy]] = field(
        default_factory=dict
    )
    budget: Shares = field(default_factory=lambda: Shares(MAX_ASSEMBLY_BYTES))
    held: Shares = field(default_factory=lambda: Shares(MAX_TOTAL_HELD_BYTES))


def _held_size(sample: Sample | None) -> int:
    return HELD_OVERHEAD_BYTES + (len(sample.payload) if sample is not None else 0)


class WriterProxy:
    """State that a reader keeps of a writer.

    Attributes
    ----------
    reader : Reader
        The reader.
    guid : bytes
        GUID of the writer.
    destination : Destination
        Address to which requests are sent.
    next : int
        Lowest number that is neither delivered nor irrelevant; 0 until the first
        HEARTBEAT.
    last : int
        Highest number that the writer has.
    held : dict of Sample or None
        Samples that wait for a missing one; None for an irrelevant number.
    assemblies : dict of Assembly
        Incomplete samples.
    """

    __slots__ = (
        "_acks",
        "_asked",
        "_beats",
        "_held_bytes",
        "_host",
        "_vendor",
        "assemblies",
        "destination",
        "entity",
        "guid",
        "held",
        "is_reliable",
        "last",
        "next",
        "prefix",
        "reader",
    )

    def __init__(
        self,
        reader: Reader,
        writer: EndpointData,
        destination: Destination,
        is_reliable: bool,
        acks: int,
    ) -> None:
        self.reader = reader
        self.guid, self.prefix, self.entity = (
            writer.guid,
            writer.guid[:12],
            writer.guid[12:],
        )
        self._vendor = writer.vendor
        self.destination = destination
        # Memory counts towards this host, even after the writer has moved.
        self._host = destination.address[0]
        self.is_reliable = is_reliable
        self.next = self.last = 0
        self.held: dict[int, Sample | None] = {}
        self.assemblies: dict[int, Assembly[WriterProxy]] = {}
        self._held_bytes = 0
        self._beats = -wire.MAX_COUNT
        self._acks = acks
        self._asked = 0

    # -- samples

    def sample(self, number: int, sample: Sample | None) -> None:
        """Process a sample; None means that its number is irrelevant."""
        if number < self.next:
            return
        if not self.is_reliable:
            self.next = number + 1
            if sample is not None:
                self.reader.deliver(sample)
        # Sequence numbers start at 1, so the first sample needs no HEARTBEAT.
        elif number == (self.next or 1):
            self.next = number
            self.next += 1
            # A sample arrived in order: the count of requests without effect starts
            # again.
            self._asked = 0
            if sample is not None:
                self.reader.deliver(sample)
            if self.held:
                self._release()
        else:
            self._hold(number, sample)

    def _hold(self, number: int, sample: Sample | None) -> None:
        size = _held_size(sample)
        has_room = (
            len(self.held) < MAX_HELD_SAMPLES
            and self._held_bytes + size <= MAX_HELD_BYTES
        )
        if (
            number in self.held
            or not has_room
            or (self.next and number >= self.next + MAX_HELD_SAMPLES)
        ):
            # Without room it is dropped; a reliable writer sends it again.
            return

        if self.reader.inbox.held.take(self._host, size):
            self.held[number] = sample
            self._held_bytes += size

    def _deliver_held(self, number: int) -> None:
        sample = self.held.pop(number)
        size = _held_size(sample)
        self._held_bytes -= size
        self.reader.inbox.held.give_back(self._host, size)
        if sample is not None:
            self.reader.deliver(sample)

    def _release(self) -> None:
        """Deliver the waiting samples that follow without a gap."""
        while self.next in self.held:
            self.next += 1
            self._deliver_held(self.next - 1)

    def _skip(self, number: int) -> None:
        """Skip all numbers below `number`, which will not come any more."""
        if number <= self.next:
            return
        below = sorted(n for n in self.held if n < number)
        self.next = number
        self._asked = 0
        # Waiting samples below are still good; only the missing ones are lost.
        for n in below:
            self._deliver_held(n)
        for n in [n for n in self.assemblies if n < number]:
            self.drop_assembly(n)
        self._release()

    def gap(self, said: submessages.Gap) -> None:
        """Process a GAP."""
        if not self.is_reliable:
            return
        if said.start <= max(self.next, 1):
            self._skip(said.base)
        elif self.next:
            # The range of a GAP may be huge; only numbers within the window are
            # recorded.
            for number in range(
                said.start, min(said.base, self.next + MAX_HELD_SAMPLES)
            ):
                self._hold(number, None)

        if self.next:
            for number in said.numbers:
                self.sample(number, None)

    # -- heartbeats and answers

    def heartbeat(
        self, said: submessages.Heartbeat, is_final: bool, now: float
    ) -> None:
        """Process a HEARTBEAT."""
        # UDP may duplicate and reorder packets, so old HEARTBEATs are ignored.
        if said.serial <= self._beats or not self.is_reliable:
            return
        self._beats = said.serial
        self._skip(said.first)
        self.last = said.last
        if self.next <= self.last:
            # One more request, in case those before were lost.
            self._asked = min(self._asked, MAX_ASKED - 1)
            self._ask_at(now + ASK_AFTER_S)
        else:
            self.reader.inbox.asking.discard(self)
            if not is_final:
                self._answer((), is_final=True)

    def heartbeat_frag(self, number: int, now: float) -> None:
        """Process a HEARTBEAT_FRAG: all fragments of a sample so far have been sent."""
        if self.is_reliable and number in self.assemblies:
            self._ask_at(now + ASK_AFTER_S)

    def _ask_at(self, at: float) -> None:
        """Schedule a request for missing samples, unless one is scheduled earlier."""
        asking = self.reader.inbox.asking
        if at < asking.at(self):
            asking.set(self, at)

    def _answer(self, missing: tuple[int, ...] | list[int], is_final: bool) -> None:
        # Counts start at 1 and wrap around.
        self._acks = self._acks % wire.MAX_COUNT + 1
        base = self.next or first_base(self._vendor)
        self.destination.add(
            wire.acknack(
                self.reader.entity, self.entity, base, missing, self._acks, is_final
            ),
            self.prefix,
        )

    def greet(self, now: float) -> None:
        """Announce the reader to the writer, and repeat it until the writer answers."""
        if self.is_reliable:
            self._answer((), is_final=False)
            self.reader.inbox.asking.set(self, now + ASK_AGAIN_AFTER_S)

    def ask(self, now: float) -> float:
        """Request missing samples.

        Returns the time of the next request, s; 0 means not before the next HEARTBEAT.
        """
        if self.next and self.next > self.last and not self.assemblies:
            return 0.0
        # Fragments still arrive, so a request would only repeat them.
        newest = max((a.touched for a in self.assemblies.values()), default=0.0)
        if newest and now < newest + FRAGMENTS_PAUSE_S:
            return newest + FRAGMENTS_PAUSE_S
        if self._asked >= MAX_ASKED:
            return 0.0
        self._asked += 1
        if self.next:
            # A number set has at most 256 bits.
            end = min(self.last + 1, self.next + MAX_SET_BITS)
            missing = [
                n
                for n in range(self.next, end)
                if n not in self.held and n not in self.assemblies
            ]
            self._answer(missing, is_final=not missing)
        else:
            self._answer((), is_final=False)

        # Each incomplete sample needs its own request for fragments.
        for number, assembly in self.assemblies.items():
            fragments = assembly.missing()
            self._acks = self._acks % wire.MAX_COUNT + 1
            nack = wire.nack_frag(
                self.reader.entity, self.entity, number, fragments, self._acks
            )
            self.destination.add(nack, self.prefix)

        return now + ASK_AGAIN_AFTER_S * (1 << self._asked - 1)

    # -- fragments

    def fragment(
        self,
        head: submessages.DataFrag,
        part: bytes,
        inline: InlineQos,
        stamp: float,
        now: float,
    ) -> None:
        """Process a fragment.

        Raises
        ------
        MalformedError
            It does not match the earlier fragments of its sample.
        """
        number = head.number
        if (
            number < self.next
            or number in self.held
            or (self.next and number >= self.next + MAX_HELD_SAMPLES)
        ):
            return

        assembly = self.assemblies.get(number)
        if assembly is None:
            assembly = self._begin_assembly(head, inline, now)
            if assembly is None:
                return

        # The writer is sending, so missing fragments are requested soon after the last
        # one.
        if self._asked:
            self._asked = 1
            self._ask_at(now + FRAGMENTS_PAUSE_S)

        if assembly.add(head, part, now):
            sample = Sample(
                assembly.payload(), self.guid, number, assembly.inline.related, stamp
            )
            # All local readers of the topic get the sample from the same bytes.
            for proxy in tuple(assembly.users):
                proxy.drop_assembly(number)
                proxy._asked = 0
                proxy.sample(number, sample)

    def _begin_assembly(
        self, head: submessages.DataFrag, inline: InlineQos, now: float
    ) -> Assembly[WriterProxy] | None:
        inbox, key = self.reader.inbox, (self.guid, head.number)
        if not is_plausible(head, self.reader.limit):
            text = (
                f"expected a sample of at most "
                f"{self.reader.limit} bytes, found {head.sample_size}"
            )
            inbox.events.add(EventKind.REFUSED, self.guid, text)
            # Counts as irrelevant, otherwise all later samples would wait for it.
            self.sample(head.number, None)
            return None

        if len(self.assemblies) >= MAX_ASSEMBLIES:
            # A reliable writer sends the sample again later; otherwise the oldest one
            # is dropped.
            if self.is_reliable:
                return None
            self.drop_assembly(next(iter(self.assemblies)))

        assembly = inbox.assemblies.get(key)
        if assembly is None:
            if not inbox.budget.take(self._host, cost(head), is_first_free=True):
                return None
            assembly = inbox.assemblies[key] = Assembly[WriterProxy](
                head, inline, now, self._host
            )

        assembly.users[self] = None
        self.assemblies[head.number] = assembly
        inbox.assembling[self] = None
        return assembly

    def drop_assembly(self, number: int) -> None:
        """Drop a sample that is given up or complete."""
        assembly = self.assemblies.pop(number)
        inbox = self.reader.inbox
        del assembly.users[self]
        if not assembly.users:
            del inbox.assemblies[self.guid, number]
            inbox.budget.give_back(assembly.host, assembly.cost)

        if not self.assemblies:
            inbox.assembling.pop(self, None)

    def give_up_stale(self, now: float) -> None:
        """Drop samples of which no fragment has arrived for `ASSEMBLY_TIMEOUT_S`."""
        for number in [n for n, a in self.assemblies.items() if a.is_stale(now)]:
            self.drop_assembly(number)

    def close(self) -> None:
        """Release the memory of a writer that has left."""
        for number in tuple(self.assemblies):
            self.drop_assembly(number)
        self.held.clear()
        if self._held_bytes:
            self.reader.inbox.held.give_back(self._host, self._held_bytes)
        self._held_bytes = 0
        self.reader.inbox.asking.discard(self)


class Reader:
    """Reader of a topic; made by `Participant.reader`.

    Attributes
    ----------
    data : EndpointData
        Its announced description.
    take : callable
        Called with each `Sample`. From a reliable writer samples come in order and
        without gaps, as far as the writer has kept them.
    limit : int
        Longest sample that it accepts, bytes.
    matched : dict of EndpointData
        Its writers, by GUID.
    """

    def __init__(
        self,
        data: EndpointData,
        inbox: Inbox,
        take: Callable[[Sample], None],
        limit: int = MAX_SAMPLE_BYTES,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.data = data
        self.guid = data.guid
        self.entity = data.guid[12:]
        self.inbox = inbox
        self.take = take
        self.limit = limit
        self.matched: dict[bytes, EndpointData] = {}
        self.changed = changed
        self._proxies: dict[bytes, WriterProxy] = {}
        self._is_telling = False

    def match(
        self, writer: EndpointData, destination: Destination, now: float, acks: int = 0
    ) -> WriterProxy:
        """Match a writer; `acks` is the number of ACKNACKs that were sent to it before."""
        is_reliable = writer.qos.reliable and self.data.qos.reliable
        proxy = self._proxies[writer.guid] = WriterProxy(
            self, writer, destination, is_reliable, acks
        )
        self.matched[writer.guid] = writer
        proxy.greet(now)
        self._tell()
        return proxy

    def _tell(self) -> None:
        """Schedule one call of `changed` for all matches and losses until then."""
        if not self._is_telling:
            self._is_telling = True
            self.inbox.callbacks.add(self._changed)

    def _changed(self) -> None:
        self._is_telling = False
        self.changed()

    def deliver(self, sample: Sample) -> None:
        """Queue a sample for `take`."""
        self.inbox.callbacks.add(self._take, sample)

    def _take(self, sample: Sample) -> None:
        # Looked up now, because `close` may have replaced `take` since the sample
        # arrived.
        self.take(sample)

    def unmatch(self, guid: bytes) -> WriterProxy | None:
        """Unmatch a writer that has left."""
        proxy = self._proxies.pop(guid, None)
        if proxy is not None:
            proxy.close()
            del self.matched[guid]
            self._tell()

        return proxy

    def move(self, guid: bytes, destination: Destination) -> None:
        """Use another address of a writer."""
        self._proxies[guid].destination = destination

    def close(self) -> None:
        """Deliver no more samples; the writers are unmatched later."""
        self.take = lambda sample: None


class BuiltinReader(Reader):
    """Reader of discovery data.

    It delivers at once, because later submessages of the same packet depend on the
    data.
    """

    def deliver(self, sample: Sample) -> None:
        """Deliver a sample at once; see `Reader`."""
        self.take(sample)
