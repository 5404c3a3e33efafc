"""Header of rmw_cyclonedds in service requests and responses (reference ros.md §4).

The header stands between the CDR header and the body. rmw_fastrtps has no such header,
and uses inline QoS (`botyard.protocols.dds.services`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from botyard.errors import PeerError

CDR_HEADER: Final = 4
"""Size of the CDR header (encapsulation), bytes."""
HEADER: Final = 16
"""Size of the header, bytes: id of the client (uint64), and sequence number (int64)."""


class Request(NamedTuple):
    """Request of a client.

    Attributes
    ----------
    body : bytes
        CDR of the request, with its CDR header.
    identity : bytes
        16 bytes that the response must repeat, in the byte order of `body`.
    little : bool
        Whether the byte order is little-endian.
    """

    body: bytes
    identity: bytes
    little: bool


def split_request(data: bytes) -> Request:
    """Split a request into its header and its body.

    Parameters
    ----------
    data : bytes
        CDR header (4 bytes), header of rmw_cyclonedds (16 bytes) and body.

    Returns
    -------
    Request
        The body has the CDR header in front again, as decoders expect it.

    Raises
    ------
    PeerError
        The data is too short for the header.
    """
    if len(data) <= CDR_HEADER + HEADER:
        raise PeerError(
            f"request: expected the header of rmw_cyclonedds_cpp, found {len(data)} bytes"
        )

    # The byte order of the CDR header also applies to the header that follows it.
    end = CDR_HEADER + HEADER
    return Request(
        data[:CDR_HEADER] + data[end:], data[CDR_HEADER:end], bool(data[1] & 1)
    )


def join_response(request: Request, body: bytes) -> bytes:
    """Return the bytes of a response.

    Parameters
    ----------
    request : Request
        Request that the response answers.
    body : bytes
        CDR of the response, little-endian.

    Returns
    -------
    bytes
        CDR header, the identity of the request in little-endian order, and the body.
    """
    identity = request.identity
    # The response is little-endian, so both numbers of the header are reversed.
    if not request.little:
        identity = identity[7::-1] + identity[:7:-1]
    return body[:CDR_HEADER] + identity + body[CDR_HEADER:]
