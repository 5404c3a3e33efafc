"""Finding robots' computers in a network: the datagrams of Lantronix serial servers, which clients broadcast (pioneer-protocol §14)."""

from __future__ import annotations

from typing import Final

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
