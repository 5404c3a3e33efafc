"""Discovery of robots' computers: the UDP datagrams of Lantronix serial servers, which
clients broadcast (pioneer-protocol §14).
"""

from __future__ import annotations

from typing import Final

PORT: Final = 30718
"""UDP port of requests and answers."""
REQUEST: Final = bytes((0, 0, 0, 0xF6))
"""The request that clients broadcast."""
REPLY: Final = bytes((0, 0, 0, 0xF7, 0, 0, 0, 0, 0xFA, 0xFB)) + bytes(20)
"""The reply of a robot's computer, 30 bytes: only that a host exists; ports are found
by probing 8101, 8102 …
"""


def is_request(data: bytes) -> bool:
    """Whether a datagram is a discovery request; longer ones count, too."""
    return len(data) >= 4 and data[3] == 0xF6


def is_reply(data: bytes) -> bool:
    """Whether a datagram is a reply."""
    return len(data) >= 4 and data[3] == 0xF7
