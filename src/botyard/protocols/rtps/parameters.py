"""Parameter lists: what discovery says of participants and endpoints, and inline QoS
(DDSI-RTPS 2.5, §9.4.2.11 and §9.6.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from botyard.protocols.rtps.limits import MAX_PARAMETER_BYTES, MAX_PARAMETERS
from botyard.protocols.rtps.wire import (
    LAYOUTS,
    OURS,
    UNKNOWN_NUMBER,
    Layout,
    MalformedError,
)

# parameter ids (tables 9.14 and 9.18)
PID_PAD: Final = 0x0000
SENTINEL: Final = 0x0001
LEASE_DURATION: Final = 0x0002
TIME_BASED_FILTER: Final = 0x0004
TOPIC_NAME: Final = 0x0005
TYPE_NAME: Final = 0x0007
DOMAIN_ID: Final = 0x000F
DOMAIN_TAG: Final = 0x4014
PROTOCOL_VERSION: Final = 0x0015
VENDORID: Final = 0x0016
RELIABILITY: Final = 0x001A
LIVELINESS: Final = 0x001B
DURABILITY: Final = 0x001D
OWNERSHIP: Final = 0x001F
PRESENTATION: Final = 0x0021
DEADLINE: Final = 0x0023
DESTINATION_ORDER: Final = 0x0025
LATENCY_BUDGET: Final = 0x0027
PARTITION: Final = 0x0029
LIFESPAN: Final = 0x002B
USER_DATA: Final = 0x002C
UNICAST_LOCATOR: Final = 0x002F
DEFAULT_UNICAST_LOCATOR: Final = 0x0031
METATRAFFIC_UNICAST_LOCATOR: Final = 0x0032
HISTORY: Final = 0x0040
EXPECTS_INLINE_QOS: Final = 0x0043
PARTICIPANT_GUID: Final = 0x0050
BUILTIN_ENDPOINT_SET: Final = 0x0058
ENDPOINT_GUID: Final = 0x005A
KEY_HASH: Final = 0x0070
STATUS_INFO: Final = 0x0071
DATA_REPRESENTATION: Final = 0x0073
RELATED_SAMPLE_IDENTITY: Final = 0x0083
RELATED_SAMPLE_IDENTITY_FAST: Final = 0x800F
"""Older number of Fast DDS for the same."""
_MUST_UNDERSTAND: Final = 0x4000
_KNOWN_MUST_UNDERSTAND: Final = (DOMAIN_TAG,)

PL_CDR_LE: Final = b"\x00\x03\x00\x00"
"""Encapsulation of a little-endian parameter list."""
END: Final = b"\x01\x00\x00\x00"
"""The sentinel."""
DISPOSED: Final = 1
UNREGISTERED: Final = 2
INFINITE: Final = float("inf")
_INFINITE: Final = (0x7FFFFFFF, 0xFFFFFFFF)

Parameters = dict[int, list[bytes]]
"""Values of each parameter id."""


class Identity(NamedTuple):
    """Identity of a sample."""

    guid: bytes
    number: int


class InlineQos(NamedTuple):
    """What is read of inline QoS.

    Attributes
    ----------
    related : Identity or None
        Related sample identity.
    status : int
        `DISPOSED`, `UNREGISTERED`, both or 0.
    key : bytes
        Key hash, 16 bytes, or nothing.
    """

    related: Identity | None = None
    status: int = 0
    key: bytes = b""


NO_INLINE_QOS: Final = InlineQos()


def read_parameters(
    data: bytes, at: int, end: int, layout: Layout
) -> tuple[Parameters, int]:
    """Parameters of a list, and where it ends.

    Raises
    ------
    MalformedError
        A parameter is longer than the list, the list has no end, or has a parameter
        that must be understood and is not.
    """
    found: Parameters = {}
    size = min(end, at + MAX_PARAMETER_BYTES)
    for _ in range(MAX_PARAMETERS):
        if at + 4 > size:
            break
        pid, length = layout.pair.unpack_from(data, at)
        at += 4
        if pid == SENTINEL:
            return found, at
        if at + length > size:
            raise MalformedError(
                f"parameter 0x{pid:04x} of {length} bytes in a list that ends after {size - at}"
            )

        if pid & _MUST_UNDERSTAND and pid not in _KNOWN_MUST_UNDERSTAND:
            raise MalformedError(
                f"parameter 0x{pid:04x} must be understood and is not known"
            )

        if pid != PID_PAD:
            found.setdefault(pid, []).append(data[at : at + length])
        at += length

    raise MalformedError(
        f"a parameter list without an end after {len(found)} parameters"
    )


def read_list(payload: bytes) -> tuple[Parameters, Layout]:
    """Parameters of a sample's payload, and their byte order.

    Raises
    ------
    MalformedError
        The payload is not a parameter list.
    """
    if len(payload) < 4 or payload[0] != 0 or payload[1] not in (2, 3):
        raise MalformedError(
            f"expected a parameter list, found encapsulation {payload[:4].hex(' ')}"
        )

    layout = LAYOUTS[payload[1] & 1]
    return read_parameters(payload, 4, len(payload), layout)[0], layout


def read_inline(
    packet: bytes, at: int, end: int, layout: Layout
) -> tuple[InlineQos, int]:
    """Inline QoS, and where it ends.

    Raises
    ------
    MalformedError
        It is not a parameter list.
    """
    found, at = read_parameters(packet, at, end, layout)
    status = found.get(STATUS_INFO, [b""])[0]
    key = found.get(KEY_HASH, [b""])[0]
    related = found.get(RELATED_SAMPLE_IDENTITY) or found.get(
        RELATED_SAMPLE_IDENTITY_FAST
    )
    identity = None
    if related and len(related[0]) >= 24:
        high, low = layout.number.unpack_from(related[0], 16)
        identity = Identity(related[0][:16], high << 32 | low)

    # the bytes of STATUS_INFO are in network order, whatever the order of the others
    return InlineQos(
        identity,
        status[3] & 3 if len(status) >= 4 else 0,
        key[:16] if len(key) >= 16 else b"",
    ), at


# -- values


def seconds(value: bytes, layout: Layout) -> float:
    """A duration, s; `INFINITE` for the infinite one."""
    if len(value) < 8:
        raise MalformedError(f"a duration of {len(value)} bytes")
    whole, fraction = layout.number.unpack_from(value)
    return (
        INFINITE if (whole, fraction) == _INFINITE else whole + fraction / 0x100000000
    )


def duration(value: float) -> bytes:
    """A duration of so many seconds."""
    if value == INFINITE:
        return OURS.number.pack(*_INFINITE)
    whole = int(value)
    return OURS.number.pack(
        whole, min(round((value - whole) * 0x100000000), 0xFFFFFFFF)
    )


def octets(value: bytes, layout: Layout, limit: int) -> bytes:
    """A sequence of bytes, at most `limit`."""
    if len(value) < 4:
        raise MalformedError(f"a sequence of {len(value)} bytes")
    (size,) = layout.uint32.unpack_from(value)
    if size > min(limit, len(value) - 4):
        raise MalformedError(
            f"a sequence of {size} bytes in {len(value) - 4}, where at most {limit} are taken"
        )

    return value[4 : 4 + size]


def text(value: bytes, layout: Layout, limit: int) -> str:
    """A string, at most `limit` bytes with its NUL."""
    raw = octets(value, layout, limit)
    return (
        raw[: raw.find(b"\0")].decode("utf-8", "replace")
        if b"\0" in raw
        else raw.decode("utf-8", "replace")
    )


def integers(value: bytes, layout: Layout, count: int) -> tuple[int, ...]:
    """So many int32."""
    if len(value) < 4 * count:
        raise MalformedError(f"expected {4 * count} bytes, found {len(value)}")
    return tuple(layout.int32.unpack_from(value, 4 * i)[0] for i in range(count))


# -- building


def parameter(pid: int, value: bytes) -> bytes:
    """A parameter, padded to a multiple of 4 bytes."""
    value += bytes(-len(value) & 3)
    return OURS.pair.pack(pid, len(value)) + value


def sequence(value: bytes) -> bytes:
    """A sequence of bytes."""
    return OURS.uint32.pack(len(value)) + value


def string(value: str) -> bytes:
    """A string: its length with the NUL, bytes, NUL."""
    return sequence(value.encode() + b"\0")


def int32s(*values: int) -> bytes:
    """Numbers of 32 bits."""
    return b"".join(OURS.int32.pack(v) for v in values)


def sample(parameters: Iterable[bytes]) -> bytes:
    """Payload of a parameter list."""
    return PL_CDR_LE + b"".join(parameters) + END


def related_identity(identity: Identity) -> bytes:
    """Inline QoS of a request or response, under both numbers: which one Fast DDS reads
    depends on its version and on our vendor id.
    """
    number = UNKNOWN_NUMBER if identity.number < 0 else identity.number
    value = identity.guid + OURS.number.pack(number >> 32, number & 0xFFFFFFFF)
    return (
        parameter(RELATED_SAMPLE_IDENTITY, value)
        + parameter(RELATED_SAMPLE_IDENTITY_FAST, value)
        + END
    )


def disposal(guid: bytes) -> bytes:
    """Inline QoS: the instance with this key has been disposed of and unregistered."""
    return (
        parameter(KEY_HASH, guid)
        + parameter(STATUS_INFO, bytes((0, 0, 0, DISPOSED | UNREGISTERED)))
        + END
    )
