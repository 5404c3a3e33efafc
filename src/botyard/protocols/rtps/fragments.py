"""Reassembly of samples from fragments (DDSI-RTPS 2.5, §8.4.14.1).

Sizes from packets are checked before memory is allocated.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from botyard.protocols.rtps.limits import (
    ASSEMBLY_TIMEOUT_S,
    HELD_OVERHEAD_BYTES,
    MAX_SET_BITS,
    MIN_FRAGMENT_BYTES,
)
from botyard.protocols.rtps.parameters import InlineQos
from botyard.protocols.rtps.submessages import DataFrag
from botyard.protocols.rtps.wire import MalformedError

User = TypeVar("User")


class Assembly(Generic[User]):
    """Incomplete sample, of which some fragments have arrived.

    Parameters
    ----------
    head : DataFrag
        Header of the first fragment that arrived.
    inline : InlineQos
        Inline QoS of that fragment.
    now : float
        Time of the caller's clock, s.
    host : str
        Host of the writer; the sample counts towards the memory limit of this host.
    """

    __slots__ = (
        "_bytes",
        "_came",
        "_count",
        "_missing",
        "cost",
        "fragment_size",
        "host",
        "inline",
        "size",
        "touched",
        "users",
    )

    def __init__(
        self, head: DataFrag, inline: InlineQos, now: float, host: str
    ) -> None:
        self.size, self.fragment_size = head.sample_size, head.fragment_size
        self.cost = cost(head)
        self.host = host
        self.inline = inline
        self.touched = now
        self.users: dict[User, None] = {}
        """Readers that wait for the complete sample."""
        # The number is rounded up, because the last fragment may be shorter.
        self._count = -(-head.sample_size // head.fragment_size)
        self._missing = self._count
        self._bytes: bytearray | bytes = bytearray(head.sample_size)
        # One byte for each fragment, 1 if it has arrived: `find` searches the zeros in
        # C.
        self._came = bytearray(self._count)

    def add(self, head: DataFrag, part: bytes, now: float) -> bool:
        """Add the fragments of a submessage; return whether the sample is complete.

        Parameters
        ----------
        head : DataFrag
            Head of the submessage. Its number, sizes and counts are above 0.
        part : bytes
            Fragments, one after the other; the last fragment of a sample may be
            shorter.
        now : float
            Time of the caller's clock, s.

        Raises
        ------
        MalformedError
            The fragments do not match the earlier ones, or are cut off.
        """
        size = self.fragment_size
        # With different sizes, fragments would overlap or exceed the buffer.
        if head.fragment_size != size or head.sample_size != self.size:
            raise MalformedError("the fragments of a sample have different sizes")
        if head.first + head.fragments - 1 > self._count:
            raise MalformedError(
                f"expected at most {self._count} fragments, found number {head.first + head.fragments - 1}"
            )

        begin = (head.first - 1) * size
        end = min(begin + head.fragments * size, self.size)
        if len(part) < end - begin:
            raise MalformedError(
                f"expected {head.fragments} fragments of {size} bytes, found {len(part)} bytes"
            )

        self.touched = now
        # Skip repeated fragments; after completion the buffer cannot be changed.
        for k in range(head.first - 1, head.first - 1 + head.fragments):
            if not self._came[k] and isinstance(self._bytes, bytearray):
                self._came[k] = 1
                self._missing -= 1
                at = k * size
                self._bytes[at : min(at + size, self.size)] = part[
                    at - begin : min(at + size, self.size) - begin
                ]

        return self._missing == 0

    def missing(self) -> list[int]:
        """Return the numbers of the first missing fragments, for one NACK_FRAG.

        Returns
        -------
        list of int
            Numbers of fragments, from 1, in rising order. They are all within 256 of
            the first number, the span of a NACK_FRAG.
        """
        found: list[int] = []
        at = self._came.find(0)
        begin = at
        # A request names at most 256 numbers from its first number. Further numbers
        # need a later request.
        while at >= 0 and at - begin < MAX_SET_BITS:
            found.append(at + 1)
            at = self._came.find(0, at + 1)

        return found

    def is_stale(self, now: float) -> bool:
        """Return whether no fragment has arrived for `ASSEMBLY_TIMEOUT_S`."""
        return now - self.touched > ASSEMBLY_TIMEOUT_S

    def payload(self) -> bytes:
        """Return the whole sample; all readers share its bytes."""
        if isinstance(self._bytes, bytearray):
            self._bytes = bytes(self._bytes)
        return self._bytes


def cost(head: DataFrag) -> int:
    """Return the number of bytes that an incomplete sample counts towards the memory limit.

    Parameters
    ----------
    head : DataFrag
        Head of any fragment of the sample.
    """
    return (
        head.sample_size
        # One byte for each fragment records whether it has arrived; the minus signs
        # round up.
        - (-head.sample_size // head.fragment_size)
        + HELD_OVERHEAD_BYTES
    )


def is_plausible(head: DataFrag, limit: int) -> bool:
    """Return whether a sample may be reassembled.

    Tiny fragments would cost more bookkeeping than data.

    Parameters
    ----------
    head : DataFrag
        Head of a fragment.
    limit : int
        Longest sample that the reader accepts, bytes.
    """
    return head.sample_size <= limit and head.fragment_size >= min(
        MIN_FRAGMENT_BYTES, head.sample_size
    )
