"""The header that rmw_cyclonedds puts between the CDR header and the body of a
service's request and response (reference ros.md §4).

rmw_fastrtps sends inline QoS instead (`botyard.protocols.dds.services`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from botyard.errors import PeerError

CDR_HEADER: Final = 4
HEADER: Final = 16
"""uint64 of the client, int64 sequence number."""


class Request(NamedTuple):
    """A request of a client.

    Attributes
    ----------
    body : bytes
        CDR of the request, with its header.
    identity : bytes
        16 bytes that the response must repeat, in the byte order of `body`.
    little : bool
        Whether that is little-endian.
    """

    body: bytes
    identity: bytes
    little: bool


def split_request(data: bytes) -> Request:
    """Split a request into body and header.

    Raises
    ------
    PeerError
        It is too short to have the header.
    """
    if len(data) <= CDR_HEADER + HEADER:
        raise PeerError(
            f"a request of {len(data)} bytes without the header of rmw_cyclonedds_cpp"
        )

    end = CDR_HEADER + HEADER
    return Request(
        data[:CDR_HEADER] + data[end:], data[CDR_HEADER:end], bool(data[1] & 1)
    )


def join_response(request: Request, body: bytes) -> bytes:
    """A response's bytes.

    Parameters
    ----------
    body : bytes
        CDR of the response, little-endian.
    """
    identity = request.identity
    if not request.little:
        identity = identity[7::-1] + identity[:7:-1]
    return body[:CDR_HEADER] + identity + body[CDR_HEADER:]
