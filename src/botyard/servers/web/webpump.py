"""WebSocket and HTTP transports for the sans-I/O sessions of an interface.

See `botyard.interfaces.interface`. The page uses the same kind of server
(`botyard.servers.web.http`), with the same limits on sockets, time and work. Pages of
other sites are refused.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.requests import Request as WebRequest
from starlette.responses import PlainTextResponse
from starlette.responses import Response as WebResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from botyard.interfaces.interface import Request, Requests, Response, Session
from botyard.names import shown
from botyard.protocols.webgui.session import Tokens
from botyard.servers.addresses import is_loopback
from botyard.servers.clientfacts import TcpClient
from botyard.servers.pump import MAX_UNREAD, Pump
from botyard.servers.sessionoutput import as_bytes, timer_of
from botyard.servers.sockets import MAX_STUCK, listening
from botyard.servers.web.http import HttpServer
from botyard.servers.web.pageguard import Guard
from botyard.servers.web.websocketpeer import WebSocketPeer

MAX_BODY: Final = 1 << 20
"""Maximum length of a request's body, bytes."""
MAX_MESSAGE: Final = 1 << 16
"""Maximum length of a WebSocket message, bytes."""
MAX_REPLIES: Final = 1000
"""Maximum number of messages to send in one iteration of the event loop."""
MAX_ANSWER: Final = 16 << 20
"""Maximum length of an HTTP answer's body, bytes."""
WRONG_PROTOCOL: Final = 1002
"""WebSocket close code: protocol error (RFC 6455, section 7.4.1).

Before the handshake is accepted, a client sees HTTP status 403 instead.
"""
TOO_MANY: Final = 1013
"""WebSocket close code: try again later (RFC 6455, registry of close codes)."""


def message_of(session: Session) -> bytes | str:
    """Return the next message of a session: bytes, or a string for a text message.

    A string is always sent as text, regardless of `Interface.text`. Empty: there is no
    message.

    Parameters
    ----------
    session : Session
        Session of an interface. Its result is checked, because it may come from another
        package.

    Raises
    ------
    TypeError
        The session returns another type.
    """
    found: object = session.data_to_send()
    return found if isinstance(found, str) else as_bytes(found)


class _WebPump(Pump):
    """HTTP server of an interface on one port."""

    _server: HttpServer | None = None

    async def _serve(
        self, host: str, port: int, route: Any, **settings: Any
    ) -> tuple[str, int]:
        bound = listening(host, [port], f"interface {self.interface.name}")
        hosts = {"localhost", "127.0.0.1", "::1", host.strip("[]").lower()}
        app = self._guarded(Starlette(routes=[route]), hosts, not is_loopback(host))
        self._server = HttpServer(app, bound, **settings)
        address: tuple[str, int] = bound.getsockname()[:2]
        return address

    def _guarded(self, app: Any, hosts: set[str], any_address: bool) -> Guard:
        """Return the application behind a guard that refuses pages of other sites."""
        return Guard(app, hosts, any_address, Tokens(""))

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()


class HttpPump(_WebPump):
    """Port for HTTP requests, which one handler answers for all clients."""

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        self._requests: Requests = self.answerer("HTTP")
        self._barrier = self.barrier("a request")
        route = Route(
            "/{path:path}", self._request, methods=["GET", "POST", "PUT", "DELETE"]
        )
        return await self._serve(host, port, route)

    async def _request(self, request: WebRequest) -> WebResponse:
        body = b""
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY:
                    return PlainTextResponse(
                        f"body: expected at most {MAX_BODY} bytes", 413
                    )
        except ClientDisconnect:
            # The client has disconnected and reads no answer.
            return PlainTextResponse("", 400)

        asked = Request(
            request.method, request.url.path, dict(request.query_params), body
        )
        found = self._barrier.call(self._answer, asked, otherwise=None)
        return found or PlainTextResponse("internal error", 500)

    def _answer(self, asked: Request) -> WebResponse:
        found = self._requests.answer(asked, asyncio.get_running_loop().time())
        if not isinstance(found, Response) or not isinstance(found.body, bytes):
            raise TypeError(
                f"answer: expected a Response with bytes, found {shown(repr(found), 100)}"
            )

        if len(found.body) > MAX_ANSWER:
            raise ValueError(
                f"answer: expected at most {MAX_ANSWER} bytes, found {len(found.body)}"
            )

        # 1xx are interim answers, which an application cannot send here.
        if not 200 <= found.status <= 599:
            raise ValueError(
                f"answer: expected a status from 200 to 599, found {found.status}"
            )

        return WebResponse(found.body, found.status, media_type=found.content_type)


class WebSocketPump(_WebPump):
    """Port for WebSockets, with a session for each client.

    Attributes
    ----------
    longest_received, longest_sent : int
        Maximum lengths of a client's and of a session's messages, bytes.
    bounds_output : bool
        Whether sessions bound their own backlog of output. Such sessions also receive
        messages of a client that does not read.
    subprotocols : tuple of str
        Subprotocols in order of preference. A client must propose one of them (RFC
        6455, section 4.2.2). Empty: no subprotocol is required.
    """

    longest_received = MAX_MESSAGE
    longest_sent = MAX_UNREAD
    bounds_output = False
    subprotocols: tuple[str, ...] = ()

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        route = WebSocketRoute("/{path:path}", self._socket)
        return await self._serve(
            host,
            port,
            route,
            websockets=True,
            ws_max_size=self.longest_received,
            ws_per_message_deflate=False,
        )

    async def _socket(self, socket: WebSocket) -> None:
        try:
            offered = socket.scope.get("subprotocols") or []
            chosen = next((name for name in self.subprotocols if name in offered), None)
            if self.subprotocols and chosen is None:
                self.warn(
                    "refused: expected a client of "
                    f"{' or '.join(self.subprotocols)}, found {shown(', '.join(offered), 100)}"
                )
                await socket.close(WRONG_PROTOCOL, "unknown subprotocol")
                return

            await socket.accept(subprotocol=chosen)
            source = str(socket.state.caller.source)
            if not self.has_room(source):
                self.refused(source)
                await socket.close(TOO_MANY, "too many clients are connected")
                return

            one = _Socket(self, socket, source)
            self.clients.append(one)
            try:
                await one.serve()
            finally:
                one.left()
        except (RuntimeError, OSError, WebSocketDisconnect):
            # The client has disconnected.
            return


class _Socket(WebSocketPeer):
    """WebSocket of one client, with its session of the interface.

    While the client does not read its messages, nothing is read from it.
    """

    def __init__(self, pump: WebSocketPump, socket: WebSocket, source: str) -> None:
        super().__init__(socket, pump.barrier("a client", self.drop))
        self._pump = pump
        self.source = source
        self.caller.shows(True, self.loop.time())
        self.caller.keep_connected()
        self._is_idle = False
        self._session: Session | None = self.barrier.call(
            pump.made, source, self, self.wake, otherwise=None
        )

    @property
    def line(self) -> TcpClient:
        """Connection of the client."""
        return self.connection

    def drop(self) -> None:
        """End the connection."""
        self.connection.hang_up(1000, "")

    def _cut_off(self, why: str) -> None:
        self._pump.warn(f"client {self.source} disconnected: {why}")
        self.drop()

    def left(self) -> None:
        """Release the session of a client that has disconnected."""
        session, self._session = self._session, None
        self._pump.over(self, session)

    @property
    def may_receive(self) -> bool:
        """Whether all messages of the session have been sent."""
        return self._is_idle or self._pump.bounds_output

    def on_message(self, data: str | bytes) -> None:
        """Pass a message to the session."""
        self.charged(self._receive, data)

    def _receive(self, data: str | bytes) -> None:
        session = self._session
        if session is not None and not session.is_closed:
            session.receive_data(
                data.encode() if isinstance(data, str) else data, self.loop.time()
            )
            self._is_idle = False
            self.wake()

    def stepped(self, now: float) -> None:
        """Notify the session of a step, or disconnect a client that does not read."""
        if self._is_idle:
            self.charged(self._stepped, now)
        elif (
            not (self.connection.is_writable or self.connection.is_over)
            and now - self.connection.paused_since > MAX_STUCK
        ):
            self._cut_off(f"the client has not read for {MAX_STUCK:g} s")

    def _stepped(self, now: float) -> None:
        if self._session is not None and not self._session.is_closed:
            self._session.on_snapshot(now)
            self._is_idle = False
            self.wake()

    def alarmed(self) -> None:
        """Handle the timer of the session."""
        if self._session is not None:
            self._session.handle_timer(self.loop.time())

    def flush(self) -> bool:
        """Send messages, at most `MAX_REPLIES` of them.

        Returns
        -------
        bool
            Whether more messages wait.
        """
        session, connection = self._session, self.connection
        if session is None:
            return False
        self._is_idle = False
        for _ in range(MAX_REPLIES):
            if not connection.is_writable:
                return False
            data = message_of(session)
            if not data:
                self._sent_all(session)
                return False

            if len(data) > self._pump.longest_sent:
                self._cut_off(
                    f"expected messages of at most {self._pump.longest_sent} bytes, "
                    f"found one of {len(data)} bytes"
                )
                return False

            if isinstance(data, str):
                connection.write(data.encode(), True)
            elif self._pump.interface.text:
                connection.write(data.decode("utf-8", "replace").encode(), True)
            else:
                connection.write(data, False)

        return True

    def _sent_all(self, session: Session) -> None:
        self._is_idle = True
        if session.is_closed:
            self.drop()
            return

        when = timer_of(session, self.loop.time())
        if when is not None:
            self.wake_at(when)


__all__ = [
    "MAX_ANSWER",
    "MAX_BODY",
    "MAX_MESSAGE",
    "MAX_REPLIES",
    "HttpPump",
    "WebSocketPump",
]
