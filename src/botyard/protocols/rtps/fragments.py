"""Samples that are put together from fragments (DDSI-RTPS 2.5, §8.4.14.1). What a size
makes us allocate is checked before.
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
from botyard.protocols.rtps.wire import DataFrag, MalformedError

User = TypeVar("User")


class Assembly(Generic[User]):
    """A sample of which fragments have come.

    Parameters
    ----------
    head : DataFrag
        Of the first that came.
    inline : InlineQos
        Of the same.
    now : float
        s.
    host : str
        On whose account it is kept.
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
        """Readers that wait for it."""
        self._count = -(-head.sample_size // head.fragment_size)
        self._missing = self._count
        self._bytes: bytearray | bytes = bytearray(head.sample_size)
        self._came = bytearray(self._count)

    def add(self, head: DataFrag, part: bytes, now: float) -> bool:
        """Add the fragments of a submessage; whether the sample is complete.

        Raises
        ------
        MalformedError
            They do not fit the others or are cut off.
        """
        size = self.fragment_size
        if head.fragment_size != size or head.sample_size != self.size:
            raise MalformedError("fragments of one sample differ in sizes")
        if head.first + head.fragments - 1 > self._count:
            raise MalformedError(
                f"fragment {head.first + head.fragments - 1} of {self._count}"
            )

        begin = (head.first - 1) * size
        end = min(begin + head.fragments * size, self.size)
        if len(part) < end - begin:
            raise MalformedError(
                f"{head.fragments} fragments of {size} bytes in {len(part)}"
            )

        self.touched = now
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
        """The first missing fragments, counted from 1: as many as a request can name."""
        found: list[int] = []
        at = self._came.find(0)
        begin = at
        while at >= 0 and at - begin < MAX_SET_BITS:
            found.append(at + 1)
            at = self._came.find(0, at + 1)

        return found

    def is_stale(self, now: float) -> bool:
        """Whether nothing has come for long."""
        return now - self.touched > ASSEMBLY_TIMEOUT_S

    def payload(self) -> bytes:
        """The whole sample; the same bytes for all readers."""
        if isinstance(self._bytes, bytearray):
            self._bytes = bytes(self._bytes)
        return self._bytes


def cost(head: DataFrag) -> int:
    """Bytes that are kept while a sample is put together."""
    return (
        head.sample_size
        - (-head.sample_size // head.fragment_size)
        + HELD_OVERHEAD_BYTES
    )


def is_plausible(head: DataFrag, limit: int) -> bool:
    """Whether a sample may be put together: no longer than `limit`, and not in
    splinters.
    """
    return head.sample_size <= limit and head.fragment_size >= min(
        MIN_FRAGMENT_BYTES, head.sample_size
    )
