"""Discovery: one answer for each request, not too many for one source (DSC-001 … DSC-005)."""

from __future__ import annotations

import ipaddress

from botyard.protocols.discovery import REPLY, is_request
from botyard.protocols.tokenbucket import RateLimit


class Discovery:
    """Answers requests; a `botyard.interfaces.registry.Datagrams`.

    Parameters
    ----------
    everybody : bool
        Robots listen beyond this machine: answer everybody. Else only requests from this machine (decisions, "Discovery").
    """

    def __init__(self, everybody: bool) -> None:
        self._everybody = everybody
        self._limit = RateLimit()

    def receive_datagram(self, data: bytes, source: str, now: float) -> tuple[bytes, ...]:
        """A datagram has come; the answers to it."""
        if not is_request(data) or not (self._everybody or ipaddress.ip_address(source).is_loopback):
            return ()
        return (REPLY,) if self._limit.allows(source, now) else ()


__all__ = ["Discovery"]
