"""Discovery datagrams of robots' computers (pioneer-protocol §14).

The format is from Lantronix serial servers: a client broadcasts a request over UDP, and
each computer with a robot answers.
"""

from __future__ import annotations

from typing import Final

PORT: Final = 30718
"""UDP port of requests and answers."""
REQUEST: Final = bytes((0, 0, 0, 0xF6))
"""Request that clients broadcast."""
REPLY: Final = bytes((0, 0, 0, 0xF7, 0, 0, 0, 0, 0xFA, 0xFB)) + bytes(20)
"""Reply of a robot's computer, 30 bytes.

It only shows that a host exists; clients then probe ports 8101, 8102 and so on.
"""


def is_request(data: bytes) -> bool:
    """Return whether a datagram is a discovery request, which may have further bytes.

    Parameters
    ----------
    data : bytes
        Contents of a UDP datagram to `PORT`. Only its fourth byte is checked, because
        clients differ in the other bytes.
    """
    return len(data) >= 4 and data[3] == 0xF6


def is_reply(data: bytes) -> bool:
    """Return whether a datagram is the reply of a robot's computer.

    Parameters
    ----------
    data : bytes
        Contents of a UDP datagram. Only its fourth byte is checked.
    """
    return len(data) >= 4 and data[3] == 0xF7
