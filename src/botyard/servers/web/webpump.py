"""WebSocket and HTTP transports for the sans-I/O sessions of an interface.

See `botyard.interfaces.interface`. The server is the one of the page
(`botyard.servers.web.http`), with the same limits on sockets, time and work. Pages of
other sites are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.requests import Request as WebRequest
from starlette.responses import PlainTextResponse
from starlette.responses import Response as WebResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from botyard.interfaces.http_admission import Caller
from botyard.interfaces.interface import Request, Requests, Response, Session
from botyard.names import shown
from botyard.protocols.webgui.session import Tokens
from botyard.servers.addresses import is_loopback
from botyard.servers.pump import MAX_UNREAD, Pump, as_bytes, timer_of
from botyard.servers.sockets import MAX_STUCK, listening
from botyard.servers.web.http import HttpServer
from botyard.servers.web.page import Guard

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

    A string is sent as text whatever `Interface.text` says. Empty: there is no message.

    Raises
    ------
    TypeError
        The session returns another type.
    """
    found: object = session.data_to_send()
    return found if isinstance(found, str) else as_bytes(found)


class _WebPump(Pump):
    """Port of an HTTP server."""

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
        """Return the application behind a guard that checks its callers."""
        return Guard(app, hosts, any_address, Tokens(""))

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()


class HttpPump(_WebPump):
    """Port for HTTP requests, all answered by one object."""

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        self._requests: Requests = self.answerer("HTTP")
        self._fence = self.fence("a request")
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
                    return PlainTextResponse(f"expected at most {MAX_BODY} bytes", 413)
        except ClientDisconnect:
            # The client is gone and reads no answer.
            return PlainTextResponse("", 400)

        asked = Request(
            request.method, request.url.path, dict(request.query_params), body
        )
        found = self._fence.call(self._answer, asked, otherwise=None)
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
        Whether sessions bound their own backlog of output. They then also receive
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
                await socket.close(TOO_MANY, "there are too many clients")
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


class _Socket:
    """One client, with a task that reads and a task that writes.

    While the client does not read its messages, nothing is read from it.
    """

    def __init__(self, pump: WebSocketPump, socket: WebSocket, source: str) -> None:
        self._pump = pump
        self._socket = socket
        self.source = source
        self._loop = asyncio.get_running_loop()
        self._fence = pump.fence("a client", self.drop)
        self._caller: Caller = socket.state.caller
        self._caller.shows(True, self._loop.time())
        self._caller.stays()
        self._wake, self._idle = asyncio.Event(), asyncio.Event()
        self._busy_since = self._loop.time()
        self._ended = asyncio.Event()
        self._session: Session | None = self._fence.call(
            pump.made, source, self, self._wake.set, otherwise=None
        )

    def drop(self) -> None:
        """End the connection."""
        self._ended.set()

    def _cut_off(self, why: str) -> None:
        self._pump.warn(f"client {self.source} disconnected: {why}")
        self.drop()

    async def serve(self) -> None:
        """Serve the client until one side closes."""
        tasks = [
            self._loop.create_task(work)
            for work in (self._read(), self._write(), self._ended.wait())
        ]
        self._wake.set()
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect):
            await self._socket.close()

    def left(self) -> None:
        """Release the session of a client that has left."""
        session, self._session = self._session, None
        self._pump.over(self, session)

    @property
    def _is_over(self) -> bool:
        """Whether the session is closed."""
        session = self._session
        return session is None or self._fence.call(
            lambda: bool(session.is_closed), otherwise=True
        )

    async def _read(self) -> None:
        while self._session is not None:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            data = message.get("bytes")
            if data is None:
                data = (message.get("text") or "").encode()
            # `receive` returns without a pause while messages are queued; let other
            # tasks run.
            await asyncio.sleep(0)
            await self._afford()
            if not self._pump.bounds_output:
                await self._idle.wait()
            if self._session is not None and not self._is_over:
                self._do(self._session.receive_data, data, self._loop.time())

    async def _afford(self) -> None:
        """Wait until the client's budget has time for its work."""
        while wait := self._caller.budget.wait(self._loop.time()):
            await asyncio.sleep(wait)
            # The server causes this delay, so the client does not count as stuck.
            self._busy_since = self._loop.time()

    def _do(self, act: Callable[..., object], *args: object) -> None:
        """Call the session, charge the time to the client, and wake the writer."""
        started = time.thread_time()
        self._fence.run(act, *args)
        self._caller.budget.spend(self._loop.time(), time.thread_time() - started)
        self._idle.clear()
        self._busy_since = self._loop.time()
        self._wake.set()

    def stepped(self, now: float) -> None:
        """Notify the session of a step, or disconnect a client that does not read."""
        if self._session is None or self._is_over:
            return
        if self._idle.is_set():
            self._do(self._session.on_snapshot, now)
        elif now - self._busy_since > MAX_STUCK:
            self._cut_off(f"it has not read for {MAX_STUCK:g} s")

    async def _write(self) -> None:
        while (session := self._session) is not None:
            when = self._fence.call(
                timer_of, session, self._loop.time(), otherwise=None
            )
            try:
                async with asyncio.timeout_at(when):
                    await self._wake.wait()
            except TimeoutError:
                self._do(session.handle_timer, self._loop.time())

            self._wake.clear()
            if not await self._send_some(session):
                return
            if self._is_over and self._idle.is_set():
                return

    async def _send_some(self, session: Session) -> bool:
        """Send messages while the budget allows; return False after a disconnect."""
        for _ in range(MAX_REPLIES):
            started = time.thread_time()
            nothing: bytes | str = b""
            data = self._fence.call(message_of, session, otherwise=nothing)
            self._caller.budget.spend(self._loop.time(), time.thread_time() - started)
            if not data:
                self._idle.set()
                return True

            if len(data) > self._pump.longest_sent:
                self._cut_off(
                    f"its message has {len(data)} bytes, at most "
                    f"{self._pump.longest_sent} are allowed"
                )
                return False

            if isinstance(data, str):
                await self._socket.send_text(data)
            elif self._pump.interface.text:
                await self._socket.send_text(data.decode("utf-8", "replace"))
            else:
                await self._socket.send_bytes(data)

            # The client reads, however slowly, so it does not count as stuck.
            self._busy_since = self._loop.time()

        self._wake.set()
        await asyncio.sleep(0)
        await self._afford()
        return True


__all__ = [
    "MAX_ANSWER",
    "MAX_BODY",
    "MAX_MESSAGE",
    "MAX_REPLIES",
    "HttpPump",
    "WebSocketPump",
]
