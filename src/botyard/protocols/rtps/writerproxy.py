"""State that a reader keeps of a writer: samples in order, and requests for missing ones.

Source: DDSI-RTPS 2.5, §8.4.10 to §8.4.12 (the stateful reader).
"""

from __future__ import annotations

from typing import Final, Protocol

from botyard.protocols.rtps import submessages, wire
from botyard.protocols.rtps.discoverydata import EndpointData
from botyard.protocols.rtps.events import EventKind
from botyard.protocols.rtps.fragments import Assembly, cost, is_plausible
from botyard.protocols.rtps.limits import (
    HELD_OVERHEAD_BYTES,
    MAX_ASSEMBLIES,
    MAX_HELD_BYTES,
    MAX_HELD_SAMPLES,
    MAX_SET_BITS,
)
from botyard.protocols.rtps.outbox import Destination
from botyard.protocols.rtps.parameters import InlineQos
from botyard.protocols.rtps.samples import Inbox, Sample

ASK_AFTER_S: Final = 0.005
"""Delay from a HEARTBEAT that shows a missing sample to the ACKNACK that requests it, s.

The sample may still arrive within this time.
"""
ASK_AGAIN_AFTER_S: Final = 0.1
"""Delay before an ACKNACK without effect is repeated, s; it doubles each time."""
# The pauses double from 0.1 s, so seven requests cover about 13 s.
MAX_ASKED: Final = 7
"""Number of ACKNACKs without effect after which the reader waits for the next HEARTBEAT."""
FRAGMENTS_PAUSE_S: Final = 0.02
"""Time without a new fragment after which fragments are requested, s."""


def first_base(vendor: bytes) -> int:
    """Return the base number of the first ACKNACK to a writer, which requests a HEARTBEAT.

    Fast DDS answers only to base 0. Cyclone DDS requires a valid number, 1 or more.

    Parameters
    ----------
    vendor : bytes
        Vendor id of the writer's participant, 2 bytes.
    """
    # The specification forbids base 0, so send it only to the vendor that needs it.
    return 0 if vendor == wire.VENDOR_FAST else 1


def _held_size(sample: Sample | None) -> int:
    return HELD_OVERHEAD_BYTES + (len(sample.payload) if sample is not None else 0)


class Receiver(Protocol):
    """Parts of `reader.Reader` that `WriterProxy` uses."""

    @property
    def entity(self) -> bytes:
        """Entity id of the reader, 4 bytes."""
        ...

    @property
    def inbox(self) -> Inbox[WriterProxy]:
        """State that readers share."""
        ...

    @property
    def limit(self) -> int:
        """Longest sample that the reader accepts, bytes."""
        ...

    def deliver(self, sample: Sample) -> None:
        """Deliver a sample to the program."""
        ...


class WriterProxy:
    """State that a reader keeps of a writer.

    Parameters
    ----------
    reader : Receiver
        Reader that gets the samples.
    writer : EndpointData
        Description of the writer.
    destination : Destination
        Address to which requests are sent.
    is_reliable : bool
        Whether both endpoints are reliable.
    acks : int
        Number of ACKNACKs that were sent to the writer before, in greetings.

    Attributes
    ----------
    reader : Receiver
        Reader that gets the samples.
    guid : bytes
        GUID of the writer.
    destination : Destination
        Address to which requests are sent.
    next : int
        Lowest sequence number that is neither delivered nor irrelevant; 0 until the
        first HEARTBEAT.
    last : int
        Highest sequence number that the writer has announced.
    held : dict of Sample or None
        Samples that wait for a missing one; None for an irrelevant number.
    assemblies : dict of Assembly
        Samples with missing fragments, by sequence number.
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
        reader: Receiver,
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
        # Count memory towards this host, even if the writer's address changes.
        self._host = destination.address[0]

        self.is_reliable = is_reliable
        self.next = self.last = 0
        self.held: dict[int, Sample | None] = {}
        self.assemblies: dict[int, Assembly[WriterProxy]] = {}
        self._held_bytes = 0

        # Lower than any valid count, so that the first HEARTBEAT is accepted even if
        # its count is 0 or negative.
        self._beats = -wire.MAX_COUNT
        self._acks = acks
        self._asked = 0

    # -- samples

    def sample(self, number: int, sample: Sample | None) -> None:
        """Process a sample, or None for an irrelevant sequence number.

        Parameters
        ----------
        number : int
            Sequence number of the sample.
        sample : Sample or None
            Received sample; None for an irrelevant number.
        """
        # The reader has already delivered this sample: it is a duplicate or a late
        # repetition.
        if number < self.next:
            return
        if not self.is_reliable:
            self.next = number + 1
            if sample is not None:
                self.reader.deliver(sample)
        # Sequence numbers start at 1, so the first sample needs no HEARTBEAT.
        elif number == (self.next or 1):
            # Change `next` before the delivery, so that the sample is not delivered
            # twice if the program's callback raises.
            self.next = number
            self.next += 1
            # A sample has arrived in order: restart the count of requests without
            # effect.
            self._asked = 0
            if sample is not None:
                self.reader.deliver(sample)
            if self.held:
                self._release()
        else:
            self._hold(number, sample)

    def _hold(self, number: int, sample: Sample | None) -> None:
        """Keep a sample that must wait for a missing one, as far as there is room.

        Parameters
        ----------
        number : int
            Sequence number, above `next`.
        sample : Sample or None
            The sample; None for an irrelevant number.
        """
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
            # Without room the sample is dropped; a reliable writer sends it again.
            return

        # All readers share this budget, which limits the memory for the samples of one
        # host.
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
        """Skip all numbers below `number`, which the writer no longer sends."""
        # Every HEARTBEAT states the first number, so most calls have nothing to skip.
        if number <= self.next:
            return
        below = sorted(n for n in self.held if n < number)
        self.next = number
        self._asked = 0
        # Deliver the waiting samples below `number`; only the missing samples are lost.
        for n in below:
            self._deliver_held(n)
        # The list is a copy, because `drop_assembly` changes the dictionary.
        for n in [n for n in self.assemblies if n < number]:
            self.drop_assembly(n)
        self._release()

    def gap(self, said: submessages.Gap) -> None:
        """Process a GAP.

        Parameters
        ----------
        said : Gap
            GAP with the numbers that will not be sent to this reader.
        """
        if not self.is_reliable:
            return
        # The range contains the next expected number, so skip the whole range at once.
        if said.start <= max(self.next, 1):
            self._skip(said.base)
        elif self.next:
            # The range may be huge, so record only numbers within the window of held
            # samples.
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
        """Process a HEARTBEAT.

        Parameters
        ----------
        said : Heartbeat
            HEARTBEAT with the numbers that the writer has.
        is_final : bool
            Whether the writer needs no answer.
        now : float
            Time of the caller's clock, s.
        """
        # UDP may duplicate and reorder packets, so ignore old HEARTBEATs.
        if said.serial <= self._beats or not self.is_reliable:
            return
        self._beats = said.serial
        self._skip(said.first)
        self.last = said.last
        if self.next <= self.last:
            # Allow one more request, in case the earlier requests were lost.
            self._asked = min(self._asked, MAX_ASKED - 1)
            self._ask_at(now + ASK_AFTER_S)
        else:
            self.reader.inbox.asking.discard(self)
            if not is_final:
                self._answer((), is_final=True)

    def heartbeat_frag(self, number: int, now: float) -> None:
        """Process a HEARTBEAT_FRAG, which a writer sends after fragments of a sample.

        Parameters
        ----------
        number : int
            Sequence number of the sample.
        now : float
            Time of the caller's clock, s.
        """
        if self.is_reliable and number in self.assemblies:
            self._ask_at(now + ASK_AFTER_S)

    def _ask_at(self, at: float) -> None:
        """Schedule a request for missing samples, unless one is scheduled earlier."""
        asking = self.reader.inbox.asking
        # Never postpone a request: in a stream of HEARTBEATs it would never be sent.
        if at < asking.at(self):
            asking.set(self, at)

    def _answer(self, missing: tuple[int, ...] | list[int], is_final: bool) -> None:
        """Send an ACKNACK.

        Parameters
        ----------
        missing : sequence of int
            Requested numbers in rising order, within 256 of the base.
        is_final : bool
            Whether the writer need not answer with a HEARTBEAT.
        """
        # Counts start at 1 and wrap around.
        self._acks = self._acks % wire.MAX_COUNT + 1
        # Before the first HEARTBEAT, the numbers of the writer are unknown.
        base = self.next or first_base(self._vendor)
        self.destination.add(
            wire.acknack(
                self.reader.entity, self.entity, base, missing, self._acks, is_final
            ),
            self.prefix,
        )

    def greet(self, now: float) -> None:
        """Announce the reader to the writer, and repeat this until the writer answers.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        """
        if self.is_reliable:
            self._answer((), is_final=False)
            self.reader.inbox.asking.set(self, now + ASK_AGAIN_AFTER_S)

    def ask(self, now: float) -> float:
        """Request missing samples.

        Return the time of the next request, s; 0 if none is due before the next
        HEARTBEAT.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        """
        # All samples have arrived since the request was scheduled.
        if self.next and self.next > self.last and not self.assemblies:
            return 0.0

        # Fragments are still arriving, so wait: a request now would only cause
        # duplicates.
        newest = max((a.touched for a in self.assemblies.values()), default=0.0)
        if newest and now < newest + FRAGMENTS_PAUSE_S:
            return newest + FRAGMENTS_PAUSE_S
        # Stop requesting, because the writer may no longer exist. Its next HEARTBEAT
        # would show that it does.
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
            # Without missing numbers the ACKNACK needs no answer; fragments are
            # requested below.
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

        # Double the pause, so that requests do not make a slow writer even slower.
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

        Parameters
        ----------
        head : DataFrag
            Head of the submessage.
        part : bytes
            Bytes of the submessage's fragments.
        inline : InlineQos
            Inline QoS of the submessage.
                    stamp : float
                        Time at which the fragment was sent, s since 1970; 0 if unknown.
        now : float
            Time of the caller's clock, s.

        Raises
        ------
        MalformedError
            The fragment does not match the earlier fragments of its sample.
        """
        number = head.number
        if (
            number < self.next
            or number in self.held
            or (self.next and number >= self.next + MAX_HELD_SAMPLES)
        ):
            return

        # Other readers may already be reassembling this sample; `_begin_assembly` then
        # shares it.
        assembly = self.assemblies.get(number)
        if assembly is None:
            assembly = self._begin_assembly(head, inline, now)
            if assembly is None:
                return

        # The writer is sending: request missing fragments soon after the last one has
        # arrived.
        if self._asked:
            self._asked = 1
            self._ask_at(now + FRAGMENTS_PAUSE_S)

        if assembly.add(head, part, now):
            sample = Sample(
                assembly.payload(), self.guid, number, assembly.inline.related, stamp
            )
            # Deliver the same bytes to all local readers of the topic. Loop over a
            # copy, because `drop_assembly` removes the users one by one.
            for proxy in tuple(assembly.users):
                # Drop the fragments first, so that their memory is free even if the
                # program's callback raises.
                proxy.drop_assembly(number)
                proxy._asked = 0
                proxy.sample(number, sample)

    def _begin_assembly(
        self, head: submessages.DataFrag, inline: InlineQos, now: float
    ) -> Assembly[WriterProxy] | None:
        """Start to reassemble the sample of a fragment; return None if there is no room.

        Parameters
        ----------
        head : DataFrag
            Head of the first fragment that arrived.
        inline : InlineQos
            Inline QoS of the fragment.
                    now : float
            Time of the caller's clock, s.
        """
        inbox, key = self.reader.inbox, (self.guid, head.number)
        if not is_plausible(head, self.reader.limit):
            text = (
                f"expected a sample of at most "
                f"{self.reader.limit} bytes, found {head.sample_size}"
            )
            inbox.events.add(EventKind.REFUSED, self.guid, text)
            # Treat the sample as irrelevant: otherwise all later samples would wait for
            # it.
            self.sample(head.number, None)
            return None

        if len(self.assemblies) >= MAX_ASSEMBLIES:
            # A reliable writer sends this sample again later. Of a best-effort writer,
            # drop the oldest incomplete sample.
            if self.is_reliable:
                return None
            self.drop_assembly(next(iter(self.assemblies)))

        assembly = inbox.assemblies.get(key)
        if assembly is None:
            # The first sample of a host may exceed the budget: otherwise a long sample
            # could never arrive.
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
        """Drop the fragments of a sample that is complete or no longer expected.

        Parameters
        ----------
        number : int
            Sequence number of the sample.
        """
        assembly = self.assemblies.pop(number)
        inbox = self.reader.inbox
        del assembly.users[self]
        # Readers share the bytes, so give the memory back when the last reader has
        # dropped them.
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
        # Do not deliver samples that wait for missing ones: the order would be broken.
        self.held.clear()
        if self._held_bytes:
            self.reader.inbox.held.give_back(self._host, self._held_bytes)
        self._held_bytes = 0
        self.reader.inbox.asking.discard(self)


__all__ = [
    "ASK_AFTER_S",
    "ASK_AGAIN_AFTER_S",
    "FRAGMENTS_PAUSE_S",
    "MAX_ASKED",
    "WriterProxy",
    "first_base",
]
