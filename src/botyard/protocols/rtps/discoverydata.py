"""Descriptions of participants and endpoints: samples of SPDP and SEDP.

Source: DDSI-RTPS 2.5, §8.5.3, §8.5.4 and §9.6.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from botyard.protocols.rtps import parameters as p
from botyard.protocols.rtps.guids import (
    BUILTIN_ENDPOINTS,
    PARTICIPANT,
    READER_KINDS,
    WRITER_KINDS,
    Address,
    locator,
    read_locator,
)
from botyard.protocols.rtps.limits import (
    DEFAULT_LEASE_S,
    MAX_LEASE_S,
    MAX_LOCATORS,
    MAX_NAME_BYTES,
    MAX_PARAMETER_BYTES,
    MAX_USER_DATA_BYTES,
)
from botyard.protocols.rtps.parameters import Parameters
from botyard.protocols.rtps.qos import Qos
from botyard.protocols.rtps.wire import OURS, VENDOR, VERSION, Layout, MalformedError

_GUID_BYTES: Final = 16


def _guid(found: Parameters, pid: int) -> bytes:
    """Return the GUID in a parameter, 16 bytes.

    Parameters
    ----------
    found : dict of int to list of bytes
        Parameters of the list.
    pid : int
        Parameter id.

    Raises
    ------
    MalformedError
        The parameter is missing or too short.
    """
    value = found.get(pid, [b""])[0]
    if len(value) < _GUID_BYTES:
        raise MalformedError(
            f"parameter 0x{pid:04x}: expected a GUID of {_GUID_BYTES} bytes, found {len(value)}"
        )
    return value[:_GUID_BYTES]


def _vendor(found: Parameters) -> bytes:
    return found.get(p.VENDORID, [b"\0\0"])[0][:2]


def _locators(found: Parameters, pid: int, layout: Layout) -> tuple[Address, ...]:
    """Return the addresses in a parameter with locators to which UDP over IPv4 can send.

    Each address is returned once, in the order of the locators.
    """
    addresses = (
        read_locator(value, layout) for value in found.get(pid, [])[:MAX_LOCATORS]
    )
    return tuple(dict.fromkeys(a for a in addresses if a is not None))


def _user_data(found: Parameters, layout: Layout) -> bytes:
    """Return the user data of a parameter list; empty if longer than `MAX_USER_DATA_BYTES`."""
    data = (
        p.octets(found[p.USER_DATA][0], layout, MAX_PARAMETER_BYTES)
        if p.USER_DATA in found
        else b""
    )
    return data if len(data) <= MAX_USER_DATA_BYTES else b""


def _name(found: Parameters, pid: int, layout: Layout) -> str:
    """Return the name in a parameter.

    Raises
    ------
    MalformedError
        The parameter is missing, or not a valid string.
    """
    if pid not in found:
        raise MalformedError(f"endpoint: expected parameter 0x{pid:04x}")
    return p.text(found[pid][0], layout, MAX_NAME_BYTES)


@dataclass(frozen=True, slots=True)
class ParticipantData:
    """Description of a participant.

    Attributes
    ----------
    guid : bytes
        GUID, 16 bytes.
    metatraffic, default : tuple of Address
        Unicast addresses for discovery, and for data.
    builtin : int
        Bits of the built-in endpoints (BUILTIN_ENDPOINT_SET).
    lease : float
        Time without a packet after which the participant is removed, s.
    user_data : bytes
        User data of the announcement; empty without any.
    vendor : bytes
        Vendor id, 2 bytes.
    domain : int or None
        Domain id; None if it is not announced.
    tag : str
        Domain tag; empty for none.
    """

    guid: bytes
    metatraffic: tuple[Address, ...]
    default: tuple[Address, ...]
    builtin: int = BUILTIN_ENDPOINTS
    lease: float = DEFAULT_LEASE_S
    user_data: bytes = b""
    vendor: bytes = VENDOR
    domain: int | None = None
    tag: str = ""

    def encode(self) -> bytes:
        """Return the payload of an SPDP sample.

        Locators are IPv4 addresses in numbers. Domain id and tag are not announced.
        """
        return p.sample(
            (
                p.parameter(p.PROTOCOL_VERSION, VERSION),
                p.parameter(p.VENDORID, self.vendor),
                p.parameter(p.PARTICIPANT_GUID, self.guid),
                p.parameter(p.BUILTIN_ENDPOINT_SET, OURS.uint32.pack(self.builtin)),
                p.parameter(p.LEASE_DURATION, p.duration(self.lease)),
                *(
                    p.parameter(p.METATRAFFIC_UNICAST_LOCATOR, locator(a))
                    for a in self.metatraffic
                ),
                *(
                    p.parameter(p.DEFAULT_UNICAST_LOCATOR, locator(a))
                    for a in self.default
                ),
                p.parameter(p.USER_DATA, p.sequence(self.user_data)),
            )
        )

    @classmethod
    def read(cls, payload: bytes) -> ParticipantData:
        """Return the description in an SPDP sample.

        Parameters
        ----------
        payload : bytes
            Payload with its 4 bytes of encapsulation, in either byte order.

        Raises
        ------
        MalformedError
            The payload is not a valid SPDP sample.
        """
        found, layout = p.read_list(payload)
        guid = _guid(found, p.PARTICIPANT_GUID)
        if guid[12:] != PARTICIPANT:
            raise MalformedError(
                f"expected the entity id of a participant, found {guid[12:].hex()}"
            )

        # Without the set of built-in endpoints, endpoints cannot be exchanged with the
        # participant.
        builtin = found.get(p.BUILTIN_ENDPOINT_SET)
        if builtin is None or len(builtin[0]) < 4:
            raise MalformedError(
                "participant: expected its set of built-in endpoints, found none"
            )

        domain = found.get(p.DOMAIN_ID)
        lease = (
            p.seconds(found[p.LEASE_DURATION][0], layout)
            if p.LEASE_DURATION in found
            else DEFAULT_LEASE_S
        )

        default = _locators(found, p.DEFAULT_UNICAST_LOCATOR, layout)
        metatraffic = _locators(found, p.METATRAFFIC_UNICAST_LOCATOR, layout)

        # If a participant announces addresses for one purpose only, use them for both.
        return cls(
            guid,
            metatraffic or default,
            default or metatraffic,
            layout.uint32.unpack_from(builtin[0])[0],
            # Limit the lease: a silent participant must not count for ever.
            min(max(lease, 0.0), MAX_LEASE_S),
            _user_data(found, layout),
            _vendor(found),
            p.integers(domain[0], layout, 1)[0] if domain else None,
            p.text(found[p.DOMAIN_TAG][0], layout, MAX_NAME_BYTES)
            if p.DOMAIN_TAG in found
            else "",
        )


@dataclass(frozen=True, slots=True)
class EndpointData:
    """Description of a writer or reader.

    Attributes
    ----------
    guid : bytes
        GUID, 16 bytes.
    topic, type_name : str
        DDS names of topic and type.
    qos : Qos
        Policies of the endpoint.
    user_data : bytes
        User data of the announcement; empty without any.
    locators : tuple of Address
        Addresses of the endpoint; an empty tuple means the addresses of its
        participant.
    vendor : bytes
        Vendor id of its participant.
    expects_inline_qos : bool
        Whether a reader needs QoS with each sample.
    """

    guid: bytes
    topic: str
    type_name: str
    qos: Qos = field(default_factory=Qos)
    user_data: bytes = b""
    locators: tuple[Address, ...] = ()
    vendor: bytes = VENDOR
    expects_inline_qos: bool = False

    @property
    def is_writer(self) -> bool:
        """Whether the endpoint is a writer, not a reader."""
        return self.guid[15] in WRITER_KINDS

    @property
    def has_key(self) -> bool:
        """Whether samples have a key; ROS messages have none."""
        return self.guid[15] in (0x02, 0x07)

    def encode(self) -> bytes:
        """Return the payload of an SEDP sample.

        Returns
        -------
        bytes
            Little-endian parameter list with its 4 bytes of encapsulation.
        """
        return p.sample(
            (
                p.parameter(p.ENDPOINT_GUID, self.guid),
                p.parameter(p.PARTICIPANT_GUID, self.guid[:12] + PARTICIPANT),
                p.parameter(p.PROTOCOL_VERSION, VERSION),
                p.parameter(p.VENDORID, self.vendor),
                p.parameter(p.TOPIC_NAME, p.string(self.topic)),
                p.parameter(p.TYPE_NAME, p.string(self.type_name)),
                *self.qos.parameters(),
                p.parameter(p.USER_DATA, p.sequence(self.user_data)),
                *(p.parameter(p.UNICAST_LOCATOR, locator(a)) for a in self.locators),
            )
        )

    @classmethod
    def read(cls, payload: bytes, vendor: bytes = VENDOR) -> EndpointData:
        """Return the description of an endpoint in an SEDP sample.

        Parameters
        ----------
        payload : bytes
            Payload with its 4 bytes of encapsulation, in either byte order.
        vendor : bytes
            Vendor id of the participant, 2 bytes.

        Raises
        ------
        MalformedError
            The payload is not a valid SEDP sample.
        """
        found, layout = p.read_list(payload)

        # Some implementations send the GUID only as key hash.
        guid = _guid(found, p.ENDPOINT_GUID if p.ENDPOINT_GUID in found else p.KEY_HASH)
        if guid[15] not in WRITER_KINDS and guid[15] not in READER_KINDS:
            raise MalformedError(
                f"expected the entity id of a writer or reader, found {guid[12:].hex()}"
            )

        inline = found.get(p.EXPECTS_INLINE_QOS, [b"\0"])[0]
        return cls(
            guid,
            _name(found, p.TOPIC_NAME, layout),
            _name(found, p.TYPE_NAME, layout),
            Qos.read(found, layout, guid[15] in WRITER_KINDS),
            _user_data(found, layout),
            _locators(found, p.UNICAST_LOCATOR, layout),
            vendor,
            bool(inline and inline[0]),
        )


def encode_key(pid: int, guid: bytes) -> bytes:
    """Return the payload of a disposal: only the key of a participant or endpoint.

    Parameters
    ----------
    pid : int
        `parameters.PARTICIPANT_GUID` or `parameters.ENDPOINT_GUID`.
    guid : bytes
        GUID, 16 bytes.
    """
    return p.sample((p.parameter(pid, guid),))


def read_key(payload: bytes) -> bytes:
    """Return the GUID of a disposed participant or endpoint; see `encode_key`.

    Parameters
    ----------
    payload : bytes
        Payload with its 4 bytes of encapsulation.

    Raises
    ------
    MalformedError
        The payload has no GUID.
    """
    found, _ = p.read_list(payload)
    return _guid(
        found, p.ENDPOINT_GUID if p.ENDPOINT_GUID in found else p.PARTICIPANT_GUID
    )


__all__ = ["EndpointData", "ParticipantData", "encode_key", "read_key"]
