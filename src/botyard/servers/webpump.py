"""Carries the sans-I/O sessions of an interface over WebSockets, and its answers over HTTP (`botyard.interfaces.registry`).

The server is that of the page (`botyard.servers.http`), with its limits for sockets, time and work; pages of other sites are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.requests import Request as WebRequest
from starlette.responses import PlainTextResponse
from starlette.responses import Response as WebResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from botyard.control import Control
from botyard.control.driving import leave
from botyard.control.fence import Fence
from botyard.errors import PortError
from botyard.interfaces.registry import Carrier, Door, Interface, Request, Requests, Session, caller_of
from botyard.protocols.webgui.session import Tokens
from botyard.servers.addresses import is_loopback
from botyard.servers.gate import Caller
from botyard.servers.http import HttpServer, listening
from botyard.servers.hub import Hub
from botyard.servers.tcp import MAX_STUCK
from botyard.servers.web import Guard

MAX_BODY: Final = 1 << 20
"""Longest content of a request, bytes."""
MAX_MESSAGE: Final = 1 << 16
"""Longest message of a WebSocket, bytes."""
MAX_REPLIES: Final = 1000
"""Messages that are sent at once; others wait for the next turn of the loop."""
TOO_MANY: Final = 1013
"""A WebSocket's closing status: try again later (RFC 6455, registry of close codes)."""

log = logging.getLogger("botyard.interfaces")


class WebPump:
    """A port for HTTP requests or WebSockets.

    Parameters
    ----------
    interface : Interface
        Whose sessions, or answers.
    options : mapping of str to object
        All of its options (`Interface.chosen`).
    hub, control : Hub, Control
        The running simulator, and the door to it.
    """

    def __init__(self, interface: Interface, options: Mapping[str, Any], hub: Hub, control: Control) -> None:
        self.interface = interface
        self.hub = hub
        self.control = control
        self.sockets: list[_Socket] = []
        self.address = ("", 0)
        self._options = options
        self._server: HttpServer | None = None
        self._fence = Fence(log, f"a request to {interface.name}")
        self._requests: Requests | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises
        ------
        PortError
            The port cannot be had.
        """
        try:
            bound = listening(host, [port])
        except OSError as error:
            raise PortError(
                f"{self.interface.name}: cannot listen on port {port} of {host}: {error.strerror}"
            ) from None
        self.address = bound.getsockname()[:2]
        sockets = self.interface.carrier is Carrier.WEBSOCKET
        routes: list[Any] = [WebSocketRoute("/{path:path}", self._socket)]
        if not sockets:
            self._requests = cast(Requests, self.made("HTTP", self))
            routes = [Route("/{path:path}", self._request, methods=["GET", "POST", "PUT", "DELETE"])]
        hosts = {"localhost", "127.0.0.1", "::1", host.strip("[]").lower()}
        app = Guard(Starlette(routes=routes), hosts, not is_loopback(host), Tokens(""))
        self._server = HttpServer(app, bound, websockets=sockets, ws_max_size=MAX_MESSAGE, ws_per_message_deflate=False)
        self.hub.attach(self)

    async def stop(self) -> None:
        """Listen no longer; clients are disconnected."""
        self.hub.detach(self)
        for one in tuple(self.sockets):
            one.end()
        if self._server is not None:
            await self._server.close()
        self.address = ("", 0)

    def made(self, peer: str, key: object) -> Any:
        """A session, or what answers requests."""
        assert self.interface.session is not None
        return self.interface.session(Door(self.control, caller_of(self.interface, peer, key), self._options))

    def on_snapshot(self, now: float) -> None:
        """A step is done."""
        for one in tuple(self.sockets):
            one.stepped(now)

    async def _request(self, request: WebRequest) -> WebResponse:
        body = b""
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY:
                    return PlainTextResponse(f"expected at most {MAX_BODY} bytes", 413)
        except ClientDisconnect:
            return PlainTextResponse("", 400)  # nobody is there to read it
        assert self._requests is not None
        asked = Request(request.method, request.url.path, dict(request.query_params), body)
        now = asyncio.get_running_loop().time()
        found = self._fence.call(self._requests.answer, asked, now, otherwise=None)
        if found is None:
            return PlainTextResponse("internal error", 500)
        return WebResponse(found.body, found.status, media_type=found.content_type)

    async def _socket(self, socket: WebSocket) -> None:
        try:
            await socket.accept()
            source = str(socket.state.caller.source)
            if len(self.sockets) >= self.interface.clients or self._of(source) >= max(1, self.interface.clients // 2):
                await socket.close(TOO_MANY, "there are too many clients")
                return
            one = _Socket(self, socket, source)
            self.sockets.append(one)
            try:
                await one.serve()
            finally:
                self.sockets.remove(one)
                one.left()
        except (RuntimeError, OSError, WebSocketDisconnect):
            return  # it has gone

    def _of(self, source: str) -> int:
        return sum(one.source == source for one in self.sockets)


class _Socket:
    """One client: reading and writing are two tasks; while it does not read what it was sent, nothing is read from it."""

    def __init__(self, pump: WebPump, socket: WebSocket, source: str) -> None:
        self._pump = pump
        self._socket = socket
        self.source = source
        self._loop = asyncio.get_running_loop()
        self._fence = Fence(log, f"a client of {pump.interface.name}", self.end)
        self._caller: Caller = socket.state.caller
        self._caller.shows(True, self._loop.time())
        self._caller.stays()
        self._wake, self._idle = asyncio.Event(), asyncio.Event()
        self._busy_since = self._loop.time()
        self._ended = asyncio.Event()
        self._session: Session | None = self._fence.call(pump.made, source, self, otherwise=None)

    def end(self) -> None:
        """End the connection."""
        self._ended.set()

    async def serve(self) -> None:
        """Until one side ends it."""
        tasks = [self._loop.create_task(work) for work in (self._read(), self._write(), self._ended.wait())]
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
        """Nothing of it is left."""
        session, self._session = self._session, None
        if session is not None:
            Fence(log, f"the end of a client of {self._pump.interface.name}").run(session.close)
        leave(self._pump.control, self)

    async def _read(self) -> None:
        while self._session is not None:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            data = message.get("bytes")
            if data is None:
                data = (message.get("text") or "").encode()
            await asyncio.sleep(0)
            while wait := self._caller.budget.wait(self._loop.time()):
                await asyncio.sleep(wait)
            await self._idle.wait()
            if self._session is not None and not self._session.is_closed:
                self._do(self._session.receive_data, data, self._loop.time())

    def _do(self, act: Callable[..., object], *args: object) -> None:
        """Let the session do something, at its own cost, and see what there is to send."""
        began = time.thread_time()
        self._fence.run(act, *args)
        self._caller.budget.spend(self._loop.time(), time.thread_time() - began)
        self._idle.clear()
        self._busy_since = self._loop.time()
        self._wake.set()

    def stepped(self, now: float) -> None:
        """A step is done."""
        if self._session is None or self._session.is_closed:
            return
        if self._idle.is_set():
            self._do(self._session.on_snapshot, now)
        elif now - self._busy_since > MAX_STUCK:
            log.warning(
                "%s: client %s has not read for %g s: cut off", self._pump.interface.name, self.source, MAX_STUCK
            )
            self.end()

    async def _write(self) -> None:
        while (session := self._session) is not None:
            when = self._fence.call(session.next_timer, otherwise=None)
            try:
                async with asyncio.timeout_at(None if when is None else max(when, self._loop.time() + 0.001)):
                    await self._wake.wait()
            except TimeoutError:
                self._do(session.handle_timer, self._loop.time())
            self._wake.clear()
            for _ in range(MAX_REPLIES):
                data = self._fence.call(session.data_to_send, otherwise=b"")
                if not data:
                    self._idle.set()
                    break
                if self._pump.interface.text:
                    await self._socket.send_text(bytes(data).decode("utf-8", "replace"))
                else:
                    await self._socket.send_bytes(bytes(data))
            else:
                self._wake.set()
                await asyncio.sleep(0)
            if session.is_closed and self._idle.is_set():
                return


__all__ = ["MAX_BODY", "MAX_MESSAGE", "MAX_REPLIES", "WebPump"]
