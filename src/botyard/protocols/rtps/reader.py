"""Readers: delivery of samples in order, and requests for missing ones.

Source: DDSI-RTPS 2.5, §8.4.10 to §8.4.12 (the stateful reader).
"""

from __future__ import annotations

from collections.abc import Callable

from botyard.protocols.rtps.discoverydata import EndpointData
from botyard.protocols.rtps.limits import (
    MAX_SAMPLE_BYTES,
)
from botyard.protocols.rtps.outbox import Destination
from botyard.protocols.rtps.samples import Inbox, Sample
from botyard.protocols.rtps.writerproxy import WriterProxy


class Reader:
    """Reader of a topic; made by `Participant.reader`.

    Parameters
    ----------
    data : EndpointData
        Description of the reader.
    inbox : Inbox
        State that readers share.
    take : callable
        Called with each `Sample`.
    limit : int
        Longest sample that the reader accepts, bytes.
    changed : callable
        Called after writers were matched or lost.

    Attributes
    ----------
    data : EndpointData
        Announced description of the reader.
    take : callable
        Called with each `Sample`. Samples of a reliable writer arrive in order and
        without gaps, as far as the writer has kept them.
    limit : int
        Longest sample that the reader accepts, bytes.
    matched : dict of EndpointData
        Matched writers, by GUID.
    """

    def __init__(
        self,
        data: EndpointData,
        inbox: Inbox[WriterProxy],
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
        """Match a writer, and request its samples.

        Parameters
        ----------
        writer : EndpointData
            A compatible writer.
        destination : Destination
            Address to which requests are sent.
        now : float
            Time of the caller's clock, s.
        acks : int
            Number of ACKNACKs that were sent to the writer before, in greetings.

        Returns
        -------
        WriterProxy
            State of the pair, to which submessages of the writer are passed.
        """
        is_reliable = writer.qos.reliable and self.data.qos.reliable
        proxy = self._proxies[writer.guid] = WriterProxy(
            self, writer, destination, is_reliable, acks
        )
        self.matched[writer.guid] = writer
        proxy.greet(now)
        self._tell()
        return proxy

    def _tell(self) -> None:
        """Schedule a call of `changed`, unless one is already scheduled."""
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
        # Look up `take` only now: `close` may have replaced it since the sample
        # arrived.
        self.take(sample)

    def unmatch(self, guid: bytes) -> WriterProxy | None:
        """Unmatch a writer that has left.

        Parameters
        ----------
        guid : bytes
            GUID of the writer, 16 bytes.

        Returns
        -------
        WriterProxy or None
            Released state of the pair; None if it was not matched.
        """
        proxy = self._proxies.pop(guid, None)
        if proxy is not None:
            proxy.close()
            del self.matched[guid]
            self._tell()

        return proxy

    def move(self, guid: bytes, destination: Destination) -> None:
        """Use another address of a writer.

        Parameters
        ----------
        guid : bytes
            GUID of a matched writer, 16 bytes.
        destination : Destination
            New address to which requests are sent.
        """
        self._proxies[guid].destination = destination

    def close(self) -> None:
        """Deliver no more samples; the caller unmatches the writers later."""
        self.take = lambda sample: None


class BuiltinReader(Reader):
    """Reader of discovery data.

    It delivers a sample at once: later submessages in the same packet depend on the
    data.
    """

    def deliver(self, sample: Sample) -> None:
        """Deliver a sample at once; see `Reader`."""
        self.take(sample)
