"""Jobs by which writers send requested samples, and the fragments of long samples.

A job makes one datagram at a time (`botyard.protocols.rtps.outbox.Job`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from botyard.protocols.rtps import wire
from botyard.protocols.rtps.history import Fragmented
from botyard.protocols.rtps.matchedreaders import ReaderProxy
from botyard.protocols.rtps.outbox import Destination

HEADS_BYTES: Final = 64
"""Number of bytes in a datagram that is left for headers of submessages."""


class Source(Protocol):
    """Parts of `botyard.protocols.rtps.writer.Writer` that jobs use."""

    @property
    def entity(self) -> bytes:
        """Entity id of the writer, 4 bytes."""
        ...

    def serves(self, proxy: ReaderProxy) -> bool:
        """Return whether a reader is still matched to the writer."""
        ...

    def resend(
        self, proxy: ReaderProxy, number: int, destination: Destination, now: float
    ) -> int:
        """Send a requested sample; return the number of bytes, or 0 if the reader must wait."""
        ...

    def resent(self, proxy: ReaderProxy) -> None:
        """Finish the resending of samples to a reader."""
        ...

    def is_kept(self, number: int, sample: Fragmented) -> bool:
        """Return whether the history still holds a sample."""
        ...

    def fragments_sent(self, destination: Destination, number: int) -> None:
        """Record that all fragments of a sample were sent to an address."""
        ...


class ResendJob:
    """Job that sends the samples which a reader has requested.

    A HEARTBEAT follows, so that the reader requests more at once.

    Parameters
    ----------
    writer : Source
        Writer of the samples.
    proxy : ReaderProxy
        State of the reader, with its requests.
    """

    def __init__(self, writer: Source, proxy: ReaderProxy) -> None:
        self._writer, self._proxy = writer, proxy

    def step(self, destination: Destination, now: float) -> bool:
        """Send about a datagram of the samples; see `Job`."""
        writer, proxy = self._writer, self._proxy
        if not writer.serves(proxy):
            return True
        room = destination.limit - HEADS_BYTES
        while proxy.requested and room > 0:
            size = writer.resend(proxy, proxy.requested.pop(), destination, now)
            # The reader's limit of repeated bytes is reached: it requests the remaining
            # samples again later.
            if size == 0:
                proxy.requested.clear()
            room -= size

        if proxy.requested:
            return False
        writer.resent(proxy)
        return True


class FragmentJob:
    """Job that sends all or some fragments of a sample.

    Parameters
    ----------
    writer : Source
        Writer of the sample.
    number : int
        Sequence number of the sample.
    sample : Fragmented
        Sample whose fragments are sent.
    size : int
        Size of a fragment at the address, bytes.
    prefix, reader : bytes
        GUID prefix and entity id of the addressed reader; empty and `ANY` for all
        readers at the address.
    only : list of int or None
        Numbers of the fragments to send, from 1; None for all.
    """

    def __init__(
        self,
        writer: Source,
        number: int,
        sample: Fragmented,
        size: int,
        prefix: bytes,
        reader: bytes,
        only: list[int] | None,
    ) -> None:
        self._writer, self._number, self._sample = writer, number, sample
        self._size = size
        self._prefix = prefix
        self._pair = reader + writer.entity
        self._fragments: Iterator[int] = iter(
            only if only is not None else range(1, sample.count(size) + 1)
        )

    def step(self, destination: Destination, now: float) -> bool:
        """Send about a datagram of the fragments; see `Job`."""
        sample = self._sample
        size, payload = self._size, sample.payload
        # The history no longer holds the sample: its remaining fragments are of no use.
        if not self._writer.is_kept(self._number, sample):
            self._writer.fragments_sent(destination, self._number)
            return True

        for _ in range(
            max(1, (destination.limit - HEADS_BYTES) // (size + HEADS_BYTES))
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


__all__ = ["FragmentJob", "ResendJob"]
