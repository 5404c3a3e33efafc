"""DDS participants in one process that meet on the loopback without multicast."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from botyard.protocols.dds.environment import Environment
from botyard.protocols.rtps.guids import LOOPBACK, Address, unicast_port


@dataclass(frozen=True)
class Nearby(Environment):
    """Participants that announce themselves only to each other's ports."""

    reach: str = "LOCALHOST"

    def announce_to(self, peers: Iterable[str]) -> list[Address]:
        """Return the first ports of the domain."""
        return [(LOOPBACK, unicast_port(self.domain, index)) for index in range(4)]
