"""Readers: samples in order, and asking for what is missing (DDSI-RTPS 2.5, §8.4.10 …
§8.4.12: the stateful reader).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from botyard.protocols.rtps import wire
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
"""From a HEARTBEAT that shows something missing to the ACKNACK, s: it may be on its
way.
"""
ASK_AGAIN_AFTER_S: Final = 0.1
"""From an ACKNACK to the next one if nothing has come, s; then twice as long each time.
"""
MAX_ASKED: Final = 7
"""ACKNACKs without success, after which the next HEARTBEAT is waited for."""
FRAGMENTS_PAUSE_S: Final = 0.02
"""Fragments are asked for when none has come for this long, s."""
_MIN_SORTED_OUT: Final = 16
"""Entries of an agenda that no longer hold and are sorted out only together."""


def first_base(vendor: bytes) -> int:
    """Base of the first ACKNACK to a writer, which asks for a HEARTBEAT: Fast DDS
    answers 0 alone, Cyclone wants a valid number.
    """
    return 0 if vendor == wire.VENDOR_FAST else 1


class Sample(NamedTuple):
    """A sample.

    Attributes
    ----------
    payload : bytes
        With its 4 bytes of encapsulation.
    writer : bytes
        GUID.
    number : int
        Sequence number.
    related : Identity or None
        Related sample identity.
    stamp : float
        When it was sent, s since 1970; 0: not said.
    status : int
        `parameters.DISPOSED`, `parameters.UNREGISTERED`, both or 0; other than 0 only
        from built-in writers.
    key : bytes
        Key hash: the same.
    """

    payload: bytes
    writer: bytes
    number: int
    related: Identity | None = None
    stamp: float = 0.0
    status: int = 0
    key: bytes = b""


class Agenda:
    """Writers that are to be asked for something, and when: a heap, of which entries
    that no longer hold are sorted out when met.
    """

    __slots__ = ("_at", "_heap")

    def __init__(self) -> None:
        self._at: dict[WriterProxy, float] = {}
        self._heap: list[tuple[float, int, WriterProxy]] = []

    def set(self, proxy: WriterProxy, at: float) -> None:
        """Ask this one at that time, s, instead of another one."""
        self._at[proxy] = at
        heap = self._heap
        heappush(heap, (at, id(proxy), proxy))
        if len(heap) > 2 * len(self._at) + _MIN_SORTED_OUT:
            heap[:] = [(at, id(proxy), proxy) for proxy, at in self._at.items()]
            heapify(heap)

    def at(self, proxy: WriterProxy) -> float:
        """When this one is asked, s; infinity: it is not."""
        return self._at.get(proxy, float("inf"))

    def discard(self, proxy: WriterProxy) -> None:
        """Ask this one no longer."""
        self._at.pop(proxy, None)
        if not self._at:
            self._heap.clear()

    def next(self) -> float:
        """When the first one is asked, s; infinity: none is."""
        heap = self._heap
        while heap and self._at.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else float("inf")

    def take(self, now: float, most: int) -> list[WriterProxy]:
        """Those that are asked now, at most so many; they are on it no longer."""
        found: list[WriterProxy] = []
        while len(found) < most and self.next() <= now:
            proxy = heappop(self._heap)[2]
            del self._at[proxy]
            found.append(proxy)

        return found

    def __len__(self) -> int:
        return len(self._at)

    def __iter__(self) -> Iterator[WriterProxy]:
        return iter(self._at)


@dataclass(slots=True)
class Inbox:
    """What readers share.

    Attributes
    ----------
    asking : Agenda
        Writers that are to be asked for something.
    assembling : dict of WriterProxy
        Those of which samples are put together from fragments.
    assemblies : dict of Assembly
        These samples, by writer and number: readers of one topic share them.
    budget : Shares
        Of these samples.
    held : Shares
        Of all samples that are held behind missing ones.
    events : Events
    callbacks : Callbacks
    """

    events: Events
    callbacks: Callbacks
    asking: Agenda = field(default_factory=Agenda)
    assembling: dict[WriterProxy, None] = field(default_factory=dict)
    assemblies: dict[tuple[bytes, int], Assembly[WriterProxy]] = field(
        default_factory=dict
    )
    budget: Shares = field(default_factory=lambda: Shares(MAX_ASSEMBLY_BYTES))
    held: Shares = field(default_factory=lambda: Shares(MAX_TOTAL_HELD_BYTES))


def _held_size(sample: Sample | None) -> int:
    return HELD_OVERHEAD_BYTES + (len(sample.payload) if sample is not None else 0)


class WriterProxy:
    """What a reader knows of a writer, and what it holds of its samples.

    Attributes
    ----------
    reader : Reader
    guid : bytes
        The writer's.
    destination : Destination
        Where it is asked.
    next : int
        Lowest number that is neither delivered nor irrelevant; 0: not known before its
        first HEARTBEAT.
    last : int
        Highest number that it has.
    held : dict of Sample or None
        Samples behind a missing one; None: irrelevant.
    assemblies : dict of Assembly
        Samples of which fragments have come.
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
        # on whose account samples are kept, also when it has moved
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
        """A sample has come; None: its number is irrelevant."""
        if number < self.next:
            return
        if not self.is_reliable:
            self.next = number + 1
            if sample is not None:
                self.reader.deliver(sample)
        elif number == (self.next or 1):  # nothing comes before the first
            self.next = number
            self.next += 1
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
            # a reliable writer will send it again
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
        """Deliver what is no longer behind a hole."""
        while self.next in self.held:
            self.next += 1
            self._deliver_held(self.next - 1)

    def _skip(self, number: int) -> None:
        """Nothing below `number` will come any more."""
        if number <= self.next:
            return
        below = sorted(n for n in self.held if n < number)
        self.next = number
        self._asked = 0
        for n in below:
            self._deliver_held(n)
        for n in [n for n in self.assemblies if n < number]:
            self.drop_assembly(n)
        self._release()

    def gap(self, said: wire.Gap) -> None:
        """A GAP."""
        if not self.is_reliable:
            return
        if said.start <= max(self.next, 1):
            self._skip(said.base)
        elif self.next:
            for number in range(
                said.start, min(said.base, self.next + MAX_HELD_SAMPLES)
            ):
                self._hold(number, None)

        if self.next:
            for number in said.numbers:
                self.sample(number, None)

    # -- heartbeats and answers

    def heartbeat(self, said: wire.Heartbeat, is_final: bool, now: float) -> None:
        """A HEARTBEAT."""
        if said.serial <= self._beats or not self.is_reliable:
            return
        self._beats = said.serial
        self._skip(said.first)
        self.last = said.last
        if self.next <= self.last:
            self._asked = min(self._asked, MAX_ASKED - 1)
            self._ask_at(now + ASK_AFTER_S)
        else:
            self.reader.inbox.asking.discard(self)
            if not is_final:
                self._answer((), is_final=True)

    def heartbeat_frag(self, number: int, now: float) -> None:
        """A HEARTBEAT_FRAG: all fragments of a sample so far have been sent."""
        if self.is_reliable and number in self.assemblies:
            self._ask_at(now + ASK_AFTER_S)

    def _ask_at(self, at: float) -> None:
        """Ask for what is missing at that time, or before if that was meant already."""
        asking = self.reader.inbox.asking
        if at < asking.at(self):
            asking.set(self, at)

    def _answer(self, missing: tuple[int, ...] | list[int], is_final: bool) -> None:
        self._acks = self._acks % wire.MAX_COUNT + 1
        base = self.next or first_base(self._vendor)
        self.destination.add(
            wire.acknack(
                self.reader.entity, self.entity, base, missing, self._acks, is_final
            ),
            self.prefix,
        )

    def greet(self, now: float) -> None:
        """Tell the writer that we are here; again until it answers."""
        if self.is_reliable:
            self._answer((), is_final=False)
            self.reader.inbox.asking.set(self, now + ASK_AGAIN_AFTER_S)

    def ask(self, now: float) -> float:
        """Ask for what is missing; when to ask again, s, or 0: not before the next
        HEARTBEAT.
        """
        if self.next and self.next > self.last and not self.assemblies:
            return 0.0
        newest = max((a.touched for a in self.assemblies.values()), default=0.0)
        if newest and now < newest + FRAGMENTS_PAUSE_S:
            return newest + FRAGMENTS_PAUSE_S
        if self._asked >= MAX_ASKED:
            return 0.0
        self._asked += 1
        if self.next:
            end = min(self.last + 1, self.next + MAX_SET_BITS)
            missing = [
                n
                for n in range(self.next, end)
                if n not in self.held and n not in self.assemblies
            ]
            self._answer(missing, is_final=not missing)
        else:
            self._answer((), is_final=False)

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
        head: wire.DataFrag,
        part: bytes,
        inline: InlineQos,
        stamp: float,
        now: float,
    ) -> None:
        """A fragment.

        Raises
        ------
        MalformedError
            It does not fit the others of its sample.
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

        if (
            self._asked
        ):  # it is coming; what then still lacks is asked for without delay
            self._asked = 1
            self._ask_at(now + FRAGMENTS_PAUSE_S)

        if assembly.add(head, part, now):
            sample = Sample(
                assembly.payload(), self.guid, number, assembly.inline.related, stamp
            )
            for proxy in tuple(assembly.users):
                proxy.drop_assembly(number)
                proxy._asked = 0
                proxy.sample(number, sample)

    def _begin_assembly(
        self, head: wire.DataFrag, inline: InlineQos, now: float
    ) -> Assembly[WriterProxy] | None:
        inbox, key = self.reader.inbox, (self.guid, head.number)
        if not is_plausible(head, self.reader.limit):
            text = (
                f"a sample of {head.sample_size} bytes, where at most "
                f"{self.reader.limit} are taken"
            )
            inbox.events.add(EventKind.REFUSED, self.guid, text)
            self.sample(head.number, None)
            return None

        if len(self.assemblies) >= MAX_ASSEMBLIES:
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
        """Give a sample up, or it is complete."""
        assembly = self.assemblies.pop(number)
        inbox = self.reader.inbox
        del assembly.users[self]
        if not assembly.users:
            del inbox.assemblies[self.guid, number]
            inbox.budget.give_back(assembly.host, assembly.cost)

        if not self.assemblies:
            inbox.assembling.pop(self, None)

    def give_up_stale(self, now: float) -> None:
        """Give up samples of which no fragment has come for long."""
        for number in [n for n, a in self.assemblies.items() if a.is_stale(now)]:
            self.drop_assembly(number)

    def close(self) -> None:
        """The writer has gone."""
        for number in tuple(self.assemblies):
            self.drop_assembly(number)
        self.held.clear()
        if self._held_bytes:
            self.reader.inbox.held.give_back(self._host, self._held_bytes)
        self._held_bytes = 0
        self.reader.inbox.asking.discard(self)


class Reader:
    """A reader; made by `Participant.reader`.

    Attributes
    ----------
    data : EndpointData
        What others are told of it.
    take : callable
        Called with each `Sample`: of a reliable writer in order and without holes, as
        far as the writer has kept them.
    limit : int
        Longest sample that it takes, bytes.
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
        """A writer has come; `acks`: ACKNACKs that it has been sent before."""
        is_reliable = writer.qos.reliable and self.data.qos.reliable
        proxy = self._proxies[writer.guid] = WriterProxy(
            self, writer, destination, is_reliable, acks
        )
        self.matched[writer.guid] = writer
        proxy.greet(now)
        self._tell()
        return proxy

    def _tell(self) -> None:
        """Call `changed` once for all writers that have come or gone since."""
        if not self._is_telling:
            self._is_telling = True
            self.inbox.callbacks.add(self._changed)

    def _changed(self) -> None:
        self._is_telling = False
        self.changed()

    def deliver(self, sample: Sample) -> None:
        """A sample is to be taken."""
        self.inbox.callbacks.add(self._take, sample)

    def _take(self, sample: Sample) -> None:
        self.take(
            sample
        )  # which was another one when the sample came, if the reader has been closed since

    def unmatch(self, guid: bytes) -> WriterProxy | None:
        """A writer has gone."""
        proxy = self._proxies.pop(guid, None)
        if proxy is not None:
            proxy.close()
            del self.matched[guid]
            self._tell()

        return proxy

    def move(self, guid: bytes, destination: Destination) -> None:
        """A writer has another address."""
        self._proxies[guid].destination = destination

    def close(self) -> None:
        """Take nothing more. Its writers are unmatched afterwards."""
        self.take = lambda sample: None


class BuiltinReader(Reader):
    """A reader of discovery: what it takes counts at once, for what comes behind it in
    the same packet.
    """

    def deliver(self, sample: Sample) -> None:
        """See `Reader`."""
        self.take(sample)
