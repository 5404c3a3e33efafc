"""GUIDs, entity ids, locators and ports (DDSI-RTPS 2.5, §9.3 and §9.6.1)."""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias

from botyard.protocols.rtps.wire import Layout

Address: TypeAlias = tuple[str, int]
"""IPv4 host in numbers, and UDP port."""

# Entity ids of built-in endpoints (table 9.2).
PARTICIPANT: Final = b"\x00\x00\x01\xc1"
SPDP_WRITER: Final = b"\x00\x01\x00\xc2"
SPDP_READER: Final = b"\x00\x01\x00\xc7"
PUBLICATIONS_WRITER: Final = b"\x00\x00\x03\xc2"
PUBLICATIONS_READER: Final = b"\x00\x00\x03\xc7"
SUBSCRIPTIONS_WRITER: Final = b"\x00\x00\x04\xc2"
SUBSCRIPTIONS_READER: Final = b"\x00\x00\x04\xc7"
LIVELINESS_WRITER: Final = b"\x00\x02\x00\xc2"
LIVELINESS_READER: Final = b"\x00\x02\x00\xc7"

# Bits of BUILTIN_ENDPOINT_SET (table 9.4).
PUBLICATIONS_ANNOUNCER: Final = 1 << 2
PUBLICATIONS_DETECTOR: Final = 1 << 3
SUBSCRIPTIONS_ANNOUNCER: Final = 1 << 4
SUBSCRIPTIONS_DETECTOR: Final = 1 << 5
LIVELINESS_ANNOUNCER: Final = 1 << 10
LIVELINESS_DETECTOR: Final = 1 << 11
BUILTIN_ENDPOINTS: Final = 0xC3F
"""Built-in endpoints of this participant.

They are the endpoints for participants, publications, subscriptions and liveliness,
each with an announcer (writer) and a detector (reader).
"""

WRITER_WITHOUT_KEY: Final = 0x03
READER_WITHOUT_KEY: Final = 0x04
WRITER_KINDS: Final = (0x02, WRITER_WITHOUT_KEY)
"""Last byte of the entity id of a user's writer: with key, and without key."""
READER_KINDS: Final = (READER_WITHOUT_KEY, 0x07)
"""Last byte of the entity id of a user's reader: without key, and with key."""

GROUP: Final = "239.255.0.1"
"""Multicast group of discovery."""
LOOPBACK: Final = "127.0.0.1"
LOOPBACK_NET: Final = "127."
UDP_V4: Final = 1
"""Kind of locator for IPv4 over UDP; other kinds (shared memory, TCP, IPv6) are ignored."""
_LOCATOR: Final = Struct("<iI12x4B")
LOCATOR_BYTES: Final = 24


def discovery_port(domain: int) -> int:
    """Return the port of discovery by multicast (§9.6.1.1).

    Parameters
    ----------
    domain : int
        Domain id, 0 to 232; beyond, there is no valid port.
    """
    return 7400 + 250 * domain


def unicast_port(domain: int, index: int) -> int:
    """Return the port of discovery by unicast of the participant with an index.

    This implementation also receives data there.

    Parameters
    ----------
    domain : int
        Domain id, 0 to 232.
    index : int
        Number of the participant on its host, from 0.
    """
    return 7410 + 250 * domain + 2 * index


def locator(address: Address) -> bytes:
    """Return the bytes of a locator (§9.3.2.4).

    Parameters
    ----------
    address : Address
        IPv4 host in numbers, and UDP port.

    Returns
    -------
    bytes
        24 bytes: kind, port and address, little-endian.
    """
    host, port = address
    return _LOCATOR.pack(UDP_V4, port, *map(int, host.split(".")))


def read_locator(value: bytes, layout: Layout) -> Address | None:
    """Return the address of a locator; None if no datagram can be sent there.

    A multicast address or another transport gives None.

    Parameters
    ----------
    value : bytes
        Value of a locator parameter.
    layout : Layout
        Byte order of the parameter list.
    """
    if len(value) < LOCATOR_BYTES:
        return None
    kind, port = layout.number.unpack_from(value)
    # An IPv4 address is in the last four bytes of 16; 224 and above are multicast or
    # reserved.
    first = value[20]
    if kind != UDP_V4 or not 0 < port < 65536 or first == 0 or first >= 224:
        return None
    return f"{first}.{value[21]}.{value[22]}.{value[23]}", port
