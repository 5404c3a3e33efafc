"""XML-RPC over HTTP/1.1, client and server, sans-I/O.

h11 handles keep-alive, Content-Length, chunks and interim responses. A client requests
``Connection: close``, but accepts the response when it is complete, whether the peer
closes or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import h11

from botyard.errors import PeerError
from botyard.names import shown
from botyard.protocols.tcpros import xmlrpc

MAX_HEAD: Final = 16 << 10
"""Longest head of a message, bytes."""
MAX_URI: Final = 1024
"""Longest address, characters."""
_FREE_CHUNKS, _MIN_MEAN_CHUNK = 64, 256
"""Number of chunks that any answer may have, and least mean size of further chunks, bytes.

Processing a chunk takes as much time as processing hundreds of bytes.
"""
_INTERIM_RESPONSES: Final = 8
"""Limit of interim responses (1xx) before the final one."""


class HttpError(PeerError):
    """Error of a request that the server refuses.

    Parameters
    ----------
    status : int
        HTTP status of the response.
    text : str
        Text of the error, with expected and found values.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Call:
    """Method call.

    Attributes
    ----------
    method : str
        Name of the method.
    args : tuple
        Arguments; see `botyard.protocols.tcpros.xmlrpc.Document`.
    """

    method: str
    args: tuple[Any, ...]


class Calls:
    """Server's side of one connection, which parses calls and makes responses.

    It returns one call at a time: the next one after the last one was answered.
    """

    def __init__(self) -> None:
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._reader: xmlrpc.Reader | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no call is in progress, not even a partly received one."""
        return self._http.their_state is h11.IDLE and not self._http.trailing_data[0]

    @property
    def is_over(self) -> bool:
        """Whether no further call can come. The caller must then send the output and close."""
        return self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE, h11.SEND_BODY)

    def feed_bytes(self, data: bytes) -> None:
        """Feed received bytes.

        Parameters
        ----------
        data : bytes
            Next bytes of the stream. Empty data is ignored.
        """
        if data:
            self._http.receive_data(data)

    def next_call(self) -> Call | None:
        """Return the next complete call.

        None means that more bytes are needed, or that the last call is not answered
        yet.

        Raises
        ------
        HttpError
            The bytes are not a valid call; `refuse` makes the response.
        """
        while not self.is_over:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                raise HttpError(
                    error.error_status_hint, f"not HTTP: {shown(error, 200)}"
                ) from None

            # h11 is paused: the next request waits until this one is answered.
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return None
            if isinstance(event, h11.Request):
                self._begin(event)
            elif isinstance(event, h11.Data) and self._reader is not None:
                try:
                    self._reader.feed(bytes(event.data))
                except PeerError as error:
                    raise HttpError(400, str(error)) from None
            elif isinstance(event, h11.EndOfMessage) and self._reader is not None:
                reader, self._reader = self._reader, None
                try:
                    document = reader.finish()
                except PeerError as error:
                    raise HttpError(400, str(error)) from None

                # The peer has sent a response instead of a call.
                if document.method is None:
                    raise HttpError(400, "XML-RPC: expected a call, found a response")
                return Call(document.method, document.values)
            # The peer has closed the connection.
            else:
                return None

        return None

    def _begin(self, request: h11.Request) -> None:
        headers = dict(request.headers)
        # XML-RPC requests are always POST (xmlrpc.com/spec).
        if request.method != b"POST":
            raise HttpError(
                405,
                f"expected POST, found {shown(request.method.decode('ascii', 'replace'), 20)}",
            )

        # Browsers send this header. Refuse calls from web pages, because the server
        # trusts the local machine.
        if b"origin" in headers:
            raise HttpError(403, "calls from web pages are refused")

        # A compressed body would bypass the limit on its length.
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise HttpError(415, "compressed calls are refused")
        length = headers.get(b"content-length")
        # xmlrpc.com/spec requires this header.
        if length is None:
            raise HttpError(411, "HTTP request: expected Content-Length, found none")
        if int(length) > xmlrpc.MAX_BODY:
            raise HttpError(
                413,
                f"HTTP request: expected at most {xmlrpc.MAX_BODY} bytes, found {int(length)}",
            )

        self._reader = xmlrpc.Reader()

    def interim(self) -> bytes:
        """Return ``100 Continue`` if the peer waits for it, otherwise nothing."""
        # Some clients send the body only after this response.
        if not self._http.they_are_waiting_for_100_continue:
            return b""
        return b"".join(
            self._sent(h11.InformationalResponse(status_code=100, headers=[]))
        )

    def answer(self, body: bytes | bytearray) -> list[bytes]:
        """Return the response to the last call, in parts.

        Parameters
        ----------
        body : bytes
            Document of `botyard.protocols.tcpros.xmlrpc.response`, passed through
            without a copy.

        Returns
        -------
        list of bytes
            Parts to be sent in order; the last holds `body` itself.

        Raises
        ------
        HttpError
            No call waits for a response.
        """
        head = [
            ("Server", "botyard"),
            ("Content-Type", "text/xml"),
            ("Content-Length", str(len(body))),
        ]
        data = h11.Data(data=body)  # type: ignore[arg-type]  # passed through as it is
        sent = self._sent(
            h11.Response(status_code=200, headers=head, reason=b"OK"),
            data,
            h11.EndOfMessage(),
        )
        # Call and response are complete, and the connection stays open (keep-alive).
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        return sent

    def refuse(self, error: HttpError) -> bytes:
        """Return the error response to an invalid request; the connection then ends.

        The response is empty if none can be sent.

        Parameters
        ----------
        error : HttpError
            Error of `next_call`, with the HTTP status.
        """
        # A part of a response was already sent, so no other status can be sent.
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return b""
        body = f"{error}\n".encode()
        head = [
            ("Server", "botyard"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        reason = b"Method Not Allowed" if error.status == 405 else b"Bad Request"
        response = h11.Response(status_code=error.status, headers=head, reason=reason)
        return b"".join(self._sent(response, h11.Data(data=body), h11.EndOfMessage()))

    def _sent(self, *events: Any) -> list[bytes]:
        try:
            return [
                part
                for e in events
                for part in self._http.send_with_data_passthrough(e) or ()
            ]
        except h11.LocalProtocolError as error:
            raise HttpError(500, f"no response is possible: {error}") from None


def encode_response(value: Any) -> bytes:
    """Return a whole response document.

    Parameters
    ----------
    value : object
        Value of a type that `xmlrpc.pieces` accepts.

    Raises
    ------
    PeerError
        XML-RPC cannot represent the value.
    """
    return "".join(xmlrpc.response(value)).encode("utf-8", "replace")


class ClientCall:
    """Client's side of one call and its response.

    Parameters
    ----------
    uri : str
        Address of the peer.
    method : str
        Name of the method.
    args : tuple
        Arguments of the method.
    limit : int
        Longest accepted response, bytes.

    Attributes
    ----------
    address : (str, int)
        Host and port to connect to.
    request : bytes
        Whole HTTP request to send.

    Raises
    ------
    PeerError
        XML-RPC cannot represent an argument, or the address is invalid.
    """

    def __init__(
        self, uri: str, method: str, args: tuple[Any, ...], limit: int = xmlrpc.MAX_BODY
    ) -> None:
        self.uri = uri
        self.address = address(uri)
        parts = urlsplit(uri)
        body = xmlrpc.encode_call(method, args)

        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        self._reader = xmlrpc.Reader(limit)
        self._chunks = self._length = self._interim = 0
        self._status = 0

        head = [
            ("Host", parts.netloc.rpartition("@")[2]),
            ("User-Agent", "botyard"),
            ("Content-Type", "text/xml"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]

        try:
            self.request: bytes = b"".join(
                self._http.send(e) or b""
                for e in (
                    h11.Request(method="POST", target=parts.path or "/", headers=head),
                    h11.Data(data=body),
                    h11.EndOfMessage(),
                )
            )
        except (h11.LocalProtocolError, UnicodeError) as error:
            raise PeerError(
                f"{shown(uri, 100)}: not a valid address: {error}"
            ) from None

        self.is_complete = False
        """Whether the response is complete."""

    def feed_bytes(self, data: bytes) -> None:
        """Feed received bytes; empty if the peer has closed the connection.

        Parameters
        ----------
        data : bytes
            Next bytes of the stream.

        Raises
        ------
        PeerError
            The response is invalid, an error, or too long.
        """
        try:
            self._http.receive_data(data)
            while not self.is_complete:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    return
                if isinstance(event, h11.InformationalResponse):
                    # Without this limit, a peer could keep the call busy for ever.
                    self._interim += 1
                    if self._interim > _INTERIM_RESPONSES:
                        raise PeerError(
                            f"expected at most {_INTERIM_RESPONSES} interim responses"
                        )
                elif isinstance(event, h11.Response):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._more(event)
                elif isinstance(event, h11.EndOfMessage):
                    self.is_complete = True
                else:
                    raise PeerError("the connection ended before the answer started")
        except h11.RemoteProtocolError as error:
            # At the end of the stream, h11 reports a message that was cut off.
            if not data:
                raise PeerError(
                    "the connection ended before the answer was complete"
                ) from None

            raise PeerError(f"not a valid HTTP response: {shown(error, 200)}") from None

    def _begin(self, answer: h11.Response) -> None:
        # XML-RPC reports its own errors with status 200.
        if answer.status_code != 200:
            raise PeerError(f"expected HTTP status 200, found {answer.status_code}")
        headers = dict(answer.headers)
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise PeerError(
                "the response is compressed, although that was not requested"
            )

    def _more(self, event: h11.Data) -> None:
        self._chunks += event.chunk_start
        self._length += len(event.data)
        # Limit the number of chunks: a long answer in chunks of one byte would cost
        # much CPU time.
        if self._chunks > _FREE_CHUNKS + self._length // _MIN_MEAN_CHUNK:
            raise PeerError(f"the response has {self._chunks} chunks of a few bytes")
        self._reader.feed(bytes(event.data))

    def value(self) -> Any:
        """Return the returned value.

        It must be called when `is_complete` is true.

        Raises
        ------
        PeerError
            The response is a fault, or not XML-RPC.
        """
        document = self._reader.finish()
        if document.method is not None:
            raise PeerError("XML-RPC: expected a response, found a call")
        return document.values[0]


def address(uri: str, scheme: str = "http") -> tuple[str, int]:
    """Return host and port of an address.

    Parameters
    ----------
    uri : str
        Address from a peer. Texts with blanks, control characters or more than
        `MAX_URI` characters are invalid.
    scheme : str
        ``http`` for nodes, ``rosrpc`` for services.

    Raises
    ------
    PeerError
        The address has another scheme, or no port.
    """
    host, port, found = None, None, ""
    # `urlsplit` accepts blanks and control characters, which could inject a header.
    if (
        isinstance(uri, str)
        and len(uri) <= MAX_URI
        and uri.isascii()
        and uri.isprintable()
        and " " not in uri
    ):
        try:
            parts = urlsplit(uri)
            host, port, found = parts.hostname, parts.port, parts.scheme
        except ValueError:
            pass

    if found != scheme or not host or not port:
        raise PeerError(
            f"expected an address {scheme}://host:port, found {shown(uri, 100)!r}"
        )

    return host, port


__all__ = [
    "MAX_HEAD",
    "MAX_URI",
    "Call",
    "Calls",
    "ClientCall",
    "HttpError",
    "address",
    "encode_response",
]
