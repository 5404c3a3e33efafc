"""DDS participants of one process that meet on the loopback without multicast."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from botyard.protocols.dds.environment import Environment
from botyard.protocols.rtps.guids import LOOPBACK, Address, unicast_port


@dataclass(frozen=True)
class Nearby(Environment):
    """They announce themselves to each other's ports alone."""

    reach: str = "LOCALHOST"

    def announce_to(self, peers: Iterable[str]) -> list[Address]:
        """The first ports of the domain."""
        return [(LOOPBACK, unicast_port(self.domain, index)) for index in range(4)]
