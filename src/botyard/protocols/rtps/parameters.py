"""Parameter lists of discovery data and inline QoS.

Source: DDSI-RTPS 2.5, §9.4.2.11 and §9.6.3.
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

# Parameter ids (tables 9.14 and 9.18).
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
"""Older parameter id of Fast DDS for `RELATED_SAMPLE_IDENTITY`."""
_MUST_UNDERSTAND: Final = 0x4000
_KNOWN_MUST_UNDERSTAND: Final = (DOMAIN_TAG,)

PL_CDR_LE: Final = b"\x00\x03\x00\x00"
"""Encapsulation of a little-endian parameter list."""
END: Final = b"\x01\x00\x00\x00"
"""Parameter that ends a list (sentinel)."""
DISPOSED: Final = 1
UNREGISTERED: Final = 2
INFINITE: Final = float("inf")
_INFINITE: Final = (0x7FFFFFFF, 0xFFFFFFFF)

Parameters = dict[int, list[bytes]]
"""Values of a parameter list, by parameter id."""


class Identity(NamedTuple):
    """Identity of a sample.

    Attributes
    ----------
    guid : bytes
        GUID of the writer, 16 bytes.
    number : int
        Sequence number of the sample.
    """

    guid: bytes
    number: int


class InlineQos(NamedTuple):
    """Those parts of a sample's inline QoS that this implementation uses.

    Attributes
    ----------
    related : Identity or None
        Related sample identity.
    status : int
        `DISPOSED`, `UNREGISTERED`, both or 0.
    key : bytes
        Key hash, 16 bytes, or empty.
    """

    related: Identity | None = None
    status: int = 0
    key: bytes = b""


NO_INLINE_QOS: Final = InlineQos()


def read_parameters(
    data: bytes, at: int, end: int, layout: Layout
) -> tuple[Parameters, int]:
    """Return the parameters of a list, and the position of its end.

    Parameters
    ----------
    data : bytes
        Datagram or payload.
    at, end : int
        Index of the list's first byte, and index after the last byte that may belong to
        it.
    layout : Layout
        Byte order of the list.

    Returns
    -------
    tuple of (dict of int to list of bytes, int)
        Values by parameter id, with padding, and the position after the sentinel.

    Raises
    ------
    MalformedError
        A parameter is longer than the list, the list has no end, or it has an unknown
        parameter that must be understood.
    """
    found: Parameters = {}
    # Limit the work for one list in a long packet.
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
                f"parameter 0x{pid:04x} has {length} bytes, but the list ends after {size - at}"
            )

        # The whole data must be ignored then (DDSI-RTPS 2.5, §9.6.2.1).
        if pid & _MUST_UNDERSTAND and pid not in _KNOWN_MUST_UNDERSTAND:
            raise MalformedError(
                f"parameter 0x{pid:04x} is unknown, but marked as one that receivers "
                "must understand"
            )

        if pid != PID_PAD:
            # A parameter may occur several times, for example locators, so each id has
            # a list.
            found.setdefault(pid, []).append(data[at : at + length])
        at += length

    raise MalformedError(
        "parameter list: expected a sentinel at its end, found none among the first "
        f"{MAX_PARAMETERS} parameters"
    )


def read_list(payload: bytes) -> tuple[Parameters, Layout]:
    """Return the parameters of a sample's payload, and their byte order.

    Parameters
    ----------
    payload : bytes
        Payload with its 4 bytes of encapsulation.

    Raises
    ------
    MalformedError
        The payload is not a parameter list.
    """
    # Encapsulations 2 and 3: parameter list, big-endian and little-endian (table 10.1).
    if len(payload) < 4 or payload[0] != 0 or payload[1] not in (2, 3):
        raise MalformedError(
            f"expected a parameter list, found encapsulation {payload[:4].hex(' ')}"
        )

    layout = LAYOUTS[payload[1] & 1]
    return read_parameters(payload, 4, len(payload), layout)[0], layout


def read_inline(
    packet: bytes, at: int, end: int, layout: Layout
) -> tuple[InlineQos, int]:
    """Return inline QoS, and the position of its end.

    Parameters
    ----------
    packet : bytes
        Whole datagram.
    at, end : int
        Index of the list's first byte, and index after the submessage.
    layout : Layout
        Byte order of the submessage.

    Raises
    ------
    MalformedError
        The bytes are not a parameter list.
    """
    found, at = read_parameters(packet, at, end, layout)
    status = found.get(STATUS_INFO, [b""])[0]
    key = found.get(KEY_HASH, [b""])[0]
    related = found.get(RELATED_SAMPLE_IDENTITY) or found.get(
        RELATED_SAMPLE_IDENTITY_FAST
    )
    identity = None
    # The value has 16 bytes of GUID and 8 bytes of sequence number. Ignore a shorter
    # value, which no known implementation sends.
    if related and len(related[0]) >= 24:
        high, low = layout.number.unpack_from(related[0], 16)
        identity = Identity(related[0][:16], high << 32 | low)

    # STATUS_INFO is in network byte order, whatever the order of the other parameters.
    return InlineQos(
        identity,
        status[3] & 3 if len(status) >= 4 else 0,
        key[:16] if len(key) >= 16 else b"",
    ), at


# -- values


def seconds(value: bytes, layout: Layout) -> float:
    """Return a duration, s; `INFINITE` for an infinite duration.

    Source: DDSI-RTPS 2.5, §9.3.2 (Duration_t).

    Parameters
    ----------
    value : bytes
        int32 seconds, and uint32 fraction in 2⁻³² s.
    layout : Layout
        Byte order of the list.

    Raises
    ------
    MalformedError
        The value is too short.
    """
    if len(value) < 8:
        raise MalformedError(f"duration: expected 8 bytes, found {len(value)}")
    whole, fraction = layout.number.unpack_from(value)
    return (
        INFINITE if (whole, fraction) == _INFINITE else whole + fraction / 0x100000000
    )


def duration(value: float) -> bytes:
    """Return a duration in s as bytes.

    Parameters
    ----------
    value : float
        Duration, s, 0 or more; `INFINITE` for an infinite duration.
    """
    if value == INFINITE:
        return OURS.number.pack(*_INFINITE)
    whole = int(value)
    return OURS.number.pack(
        # Rounding may reach 2^32, which does not fit into the field.
        whole,
        min(round((value - whole) * 0x100000000), 0xFFFFFFFF),
    )


def octets(value: bytes, layout: Layout, limit: int) -> bytes:
    """Return a sequence of at most `limit` bytes.

    Parameters
    ----------
    value : bytes
        Length (uint32), and bytes.
    layout : Layout
        Byte order of the list.
    limit : int
        Longest sequence that is accepted, bytes.

    Raises
    ------
    MalformedError
        The value is too short, or longer than `limit`.
    """
    if len(value) < 4:
        raise MalformedError(f"sequence: expected at least 4 bytes, found {len(value)}")
    (size,) = layout.uint32.unpack_from(value)
    if size > min(limit, len(value) - 4):
        raise MalformedError(
            f"sequence: expected at most {limit} bytes, found {size} in {len(value) - 4} bytes"
        )

    return value[4 : 4 + size]


def text(value: bytes, layout: Layout, limit: int) -> str:
    """Return a string of at most `limit` bytes with its NUL.

    Parameters
    ----------
    value : bytes
        Length (uint32), and characters in UTF-8; invalid bytes are replaced.
    layout : Layout
        Byte order of the list.
    limit : int
        Longest string that is accepted, bytes.

    Raises
    ------
    MalformedError
        The value is too short, or longer than `limit`.
    """
    raw = octets(value, layout, limit)
    return (
        raw[: raw.find(b"\0")].decode("utf-8", "replace")
        if b"\0" in raw
        else raw.decode("utf-8", "replace")
    )


def integers(value: bytes, layout: Layout, count: int) -> tuple[int, ...]:
    """Return the first `count` int32.

    Parameters
    ----------
    value : bytes
        Numbers of 4 bytes.
    layout : Layout
        Byte order of the list.
    count : int
        Number of integers.

    Raises
    ------
    MalformedError
        The value has fewer integers.
    """
    if len(value) < 4 * count:
        raise MalformedError(f"expected {4 * count} bytes, found {len(value)}")
    return tuple(layout.int32.unpack_from(value, 4 * i)[0] for i in range(count))


# -- building


def parameter(pid: int, value: bytes) -> bytes:
    """Return a parameter, padded to a multiple of 4 bytes.

    Parameters
    ----------
    pid : int
        Parameter id.
    value : bytes
        Value in little-endian order.
    """
    # Parameters start at multiples of 4 bytes, and their length includes the padding
    # (§9.4.2.11).
    value += bytes(-len(value) & 3)
    return OURS.pair.pack(pid, len(value)) + value


def sequence(value: bytes) -> bytes:
    """Return a sequence of bytes with its length."""
    return OURS.uint32.pack(len(value)) + value


def string(value: str) -> bytes:
    """Return a string: its length with the NUL, its bytes, and the NUL."""
    return sequence(value.encode() + b"\0")


def int32s(*values: int) -> bytes:
    """Return the bytes of numbers, each as int32."""
    return b"".join(OURS.int32.pack(v) for v in values)


def sample(parameters: Iterable[bytes]) -> bytes:
    """Return the payload of a parameter list.

    Parameters
    ----------
    parameters : iterable of bytes
        Parameters in little-endian order (`parameter`), without the sentinel.
    """
    return PL_CDR_LE + b"".join(parameters) + END


def related_identity(identity: Identity) -> bytes:
    """Return inline QoS with the related sample identity of a request or response.

    It is sent under two parameter ids: the id that Fast DDS reads depends on its
    version and on the vendor id of the sender.

    Parameters
    ----------
    identity : Identity
        Identity of the related sample. A negative number is sent as "unknown".
    """
    number = UNKNOWN_NUMBER if identity.number < 0 else identity.number
    value = identity.guid + OURS.number.pack(number >> 32, number & 0xFFFFFFFF)
    return (
        parameter(RELATED_SAMPLE_IDENTITY, value)
        + parameter(RELATED_SAMPLE_IDENTITY_FAST, value)
        + END
    )


def disposal(guid: bytes) -> bytes:
    """Return inline QoS which states that an instance is disposed of and unregistered.

    Parameters
    ----------
    guid : bytes
        Key of the instance, 16 bytes.
    """
    return (
        parameter(KEY_HASH, guid)
        + parameter(STATUS_INFO, bytes((0, 0, 0, DISPOSED | UNREGISTERED)))
        + END
    )
