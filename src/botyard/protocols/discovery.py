"""Finding robots' computers in a network: the datagrams of Lantronix serial servers, which clients broadcast (pioneer-protocol §14)."""

from __future__ import annotations

from typing import Final

from botyard.protocols.tokenbucket import TokenBucket

PORT: Final = 30718
"""UDP port of requests and answers."""
REQUEST: Final = bytes((0, 0, 0, 0xF6))
"""What a client broadcasts."""
REPLY: Final = bytes((0, 0, 0, 0xF7, 0, 0, 0, 0, 0xFA, 0xFB)) + bytes(20)
"""What a robot's computer answers: 30 bytes. It says "a host is here"; ports are found by trying 8101, 8102 …"""


def is_request(data: bytes) -> bool:
    """Whether a datagram asks who is there; longer ones count too."""
    return len(data) >= 4 and data[3] == 0xF6


def is_reply(data: bytes) -> bool:
    """Whether a datagram is an answer."""
    return len(data) >= 4 and data[3] == 0xF7


class RateLimit:
    """How often each source is answered: a bucket of `burst` answers that fills with `rate` a second.

    Sources beyond `most` push out the one that was silent for longest, so memory is bounded. Time is an argument, s.
    """

    def __init__(self, rate: float = 5.0, burst: float = 5.0, most: int = 1024) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._buckets: dict[str, TokenBucket] = {}

    def allows(self, source: str, now: float) -> bool:
        """Whether `source` gets an answer now."""
        bucket = self._buckets.pop(source, None) or TokenBucket(self._rate, self._burst, now)
        self._buckets[source] = bucket
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take(now)
