"""A simulated network with a clock, which loses, repeats and reorders packets as
configured.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

from botyard.protocols.rtps import guids, wire
from botyard.protocols.rtps.guids import Address
from botyard.protocols.rtps.participant import Participant

GROUP = (guids.GROUP, guids.discovery_port(0))
EPOCH = 1.7e9


@dataclass
class Node:
    """A participant with its address and the time of its next call."""

    part: Participant
    address: Address
    due: float = 0.0
    received: int = 0
    sent: int = 0


@dataclass
class Network:
    """A network.

    Attributes
    ----------
    loss, twice : float
        Probability that a packet is lost, or comes twice.
    delay : float
        Longest time that a packet takes, s: the shortest is 0, so they overtake each
        other.
    deaf : Node or None
        This one gets nothing.
    """

    seed: int = 0
    loss: float = 0.0
    twice: float = 0.0
    delay: float = 0.0
    now: float = 100.0
    nodes: list[Node] = field(default_factory=list)
    packets: int = 0
    deaf: Node | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._flying: list[tuple[float, int, Address, Address, bytes]] = []
        self._made = 0

    def add(self, **more: object) -> Node:
        """Add a participant now."""
        self._made += 1
        # Addresses of participants that have left are used again.
        taken = {node.address for node in self.nodes}
        address = next(
            a for k in range(250) if (a := (f"10.0.0.{k + 1}", 7410)) not in taken
        )
        prefix = wire.VENDOR + self._made.to_bytes(10, "big")
        part = Participant(prefix, [address], [GROUP], self.now, EPOCH, **more)  # type: ignore[arg-type]
        node = Node(part, address, self.now)
        self.nodes.append(node)
        return node

    def remove(self, node: Node, *, politely: bool = False) -> None:
        """End a participant: it leaves, or stops as if its process had been killed."""
        if politely:
            node.part.announce_departure(self.now)
            self._collect(node)

        self.nodes.remove(node)

    def _collect(self, node: Node) -> None:
        for packet, address in node.part.out():
            node.sent += len(packet)
            self.packets += 1
            copies = 1 + (self._random.random() < self.twice)
            for _ in range(copies):
                if self._random.random() >= self.loss:
                    at = self.now + self._random.random() * self.delay
                    heapq.heappush(
                        self._flying,
                        (
                            at,
                            self._random.getrandbits(40),
                            address,
                            node.address,
                            packet,
                        ),
                    )

    def run(self, seconds: float) -> None:
        """Advance time."""
        end = self.now + seconds
        while True:
            # Packets written since the last turn must leave.
            for node in self.nodes:
                node.due = min(node.due, node.part.due(self.now))
                self._collect(node)

            times = [node.due for node in self.nodes] + [
                self._flying[0][0] if self._flying else end
            ]
            at = max(min(times), self.now + 1e-4)
            if at > end:
                self.now = end
                return

            self.now = at
            while self._flying and self._flying[0][0] <= at:
                _, _, to, source, packet = heapq.heappop(self._flying)
                for node in self.nodes:
                    if (
                        to in (node.address, GROUP)
                        and node.address != source
                        and node is not self.deaf
                    ):
                        node.received += len(packet)
                        node.part.feed(packet, source, at)

            for node in self.nodes:
                node.due = node.part.due(at)
                self._collect(node)
