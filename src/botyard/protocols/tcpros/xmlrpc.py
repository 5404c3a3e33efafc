"""XML-RPC over HTTP, as ROS's master and nodes speak it (wiki.ros.org/ROS/Master_API, Slave_API): bytes to calls and back, no sockets."""

from __future__ import annotations

import re
import xmlrpc.client
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

from botyard.errors import PeerError

MAX_HEAD: Final = 16 << 10
MAX_BODY: Final = 16 << 20
_LENGTH = re.compile(rb"(?im)^content-length:[ \t]*(\d{1,9})[ \t]*\r?$")
_CLOSE = re.compile(rb"(?im)^connection:[ \t]*close[ \t]*\r?$")


@dataclass(frozen=True, slots=True)
class Call:
    """A method call.

    Attributes
    ----------
    method : str
        Its name.
    args : tuple
        Its arguments.
    keep_alive : bool
        More calls may come on the same connection.
    """

    method: str
    args: tuple[Any, ...]
    keep_alive: bool


class _Http:
    """Cuts a stream into HTTP messages with bodies."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def _next(self) -> tuple[bytes, bytes] | None:
        """Head and body of the next complete message.

        Raises
        ------
        PeerError
            The head is too long, or does not say how long the body is.
        """
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise PeerError(f"an HTTP head of more than {MAX_HEAD} bytes")
            return None
        head = bytes(self._buffer[:end])
        size = self._body_size(head)
        if len(self._buffer) < end + 4 + size:
            return None
        body = bytes(self._buffer[end + 4 : end + 4 + size])
        del self._buffer[: end + 4 + size]
        return head, body

    @staticmethod
    def _body_size(head: bytes) -> int:
        found = _LENGTH.search(head)
        if found is None:
            raise PeerError("an HTTP message without Content-Length")
        if int(found[1]) > MAX_BODY:
            raise PeerError(f"an HTTP message of {int(found[1])} bytes; at most {MAX_BODY} are taken")
        return int(found[1])


class Calls(_Http):
    """The server's side: cuts a stream into calls."""

    def receive(self, data: bytes) -> list[Call]:
        """Take bytes, return the calls that they complete.

        Raises
        ------
        PeerError
            Not HTTP, or not XML-RPC.
        """
        self._buffer += data
        calls = []
        while (message := self._next()) is not None:
            head, body = message
            if not head.startswith(b"POST "):
                raise PeerError("expected POST")
            try:
                args, method = xmlrpc.client.loads(body, use_builtin_types=True)
            except (xmlrpc.client.Error, ExpatError, ValueError, TypeError, LookupError, RecursionError) as error:
                raise PeerError(f"not XML-RPC: {error}") from None
            old = b"HTTP/1.0" in head.split(b"\r\n", 1)[0]
            calls.append(Call(method or "", tuple(args), not (old or _CLOSE.search(head))))
        return calls


def encode_response(value: Any) -> bytes:
    """An HTTP response with a value.

    Raises
    ------
    PeerError
        XML-RPC has no such values.
    """
    try:
        body = xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True).encode()
    except (TypeError, OverflowError, ValueError) as error:
        raise PeerError(f"XML-RPC cannot say this: {error}") from None
    return (
        b"HTTP/1.1 200 OK\r\nServer: botyard\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )


def encode_call(uri: str, method: str, args: tuple[Any, ...]) -> bytes:
    """An HTTP request that calls a method of a peer at an address.

    Raises
    ------
    PeerError
        XML-RPC has no such values.
    """
    parts = urlsplit(uri)
    try:
        body = xmlrpc.client.dumps(args, method, allow_none=True).encode()
    except (TypeError, OverflowError, ValueError) as error:
        raise PeerError(f"XML-RPC cannot say this: {error}") from None
    head = f"POST {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: botyard\r\nContent-Type: text/xml\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def decode_response(data: bytes) -> Any:
    """The value of a whole HTTP response.

    Raises
    ------
    PeerError
        An HTTP error, a fault, or not XML-RPC.
    """
    head, _, body = data.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0]
    if b" 200" not in status:
        raise PeerError(f"expected HTTP status 200, found {status[:60]!r}")
    try:
        (value,), _ = xmlrpc.client.loads(body, use_builtin_types=True)
    except xmlrpc.client.Fault as fault:
        raise PeerError(f"the peer reports: {fault.faultString[:300]}") from None
    except (xmlrpc.client.Error, ExpatError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise PeerError(f"not XML-RPC: {error}") from None
    return value


def address(uri: str, scheme: str = "http") -> tuple[str, int]:
    """Host and port of an address.

    Raises
    ------
    PeerError
        It is not of this scheme, or has no port.
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme != scheme or not host or not port:
        raise PeerError(f"expected an address {scheme}://host:port, found {uri[:100]!r}")
    return host, port
