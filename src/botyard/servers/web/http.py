"""HTTP servers in the simulator's event loop (uvicorn), between a socket and an ASGI
application.

What a peer sends is worked off in small pieces, and no piece before its budget allows
it: a quarter of a megabyte that the system hands over at once may hold tens of
thousands of messages. Who comes at all, and how long he may stay, the gate knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from functools import partial
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from botyard.interfaces.http_admission import (
    REQUEST_TIME,
    Caller,
    HttpAdmission,
    booked,
)
from botyard.servers.sockets import has_unread, note_port, read_in_pieces
from botyard.servers.throttledlog import ThrottledLogAdapter

SHUTDOWN_TIMEOUT_S: Final = 1.0
"""Time-out of open requests at shutdown, s."""
CHUNK: Final = 2048
"""Bytes that are processed at a time: 340 of the smallest WebSocket messages (6 bytes),
10 ms of work.
"""
TURN_TIME_S: Final = 2e-3
"""Longest processing of one connection in an iteration of the event loop, s."""
MAX_UNSENT: Final = 1024 * 1024
"""Back-pressure: reading from a peer pauses while this many bytes of answers are
unsent.
"""
UNSENT_PAUSE: Final = 0.1
"""Poll interval of such a peer, s."""
MAX_FRAGMENTS: Final = 64
"""Most fragments of a WebSocket message."""
BACKLOG: Final = 512
"""Listen backlog."""
SWEEP_INTERVAL_S: Final = 0.5
"""Interval of checking deadlines, s."""
ACCEPT_PAUSE: Final = 1.0
"""Delay before accepting again, s, when the system has no file descriptor left."""

log = logging.getLogger("botyard.http")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _QuietLog(ThrottledLogAdapter):
    """What uvicorn logs of connections, in our log and at its rate; a client's wrong
    text is no error of ours.
    """

    @property
    def level(self) -> int:
        """Lines below this are not made."""
        return logging.ERROR

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log an error, or count it."""
        if isinstance(sys.exc_info()[1], UnicodeDecodeError):
            super().log(logging.WARNING, "a client is disconnected: %s", msg)
        elif level >= self.level:
            super().log(level, msg, *args, **kwargs)  # uvicorn's own format


class _Valve:
    """A transport whose reading two sides may pause: the protocol above it, and the
    pieces that wait.
    """

    def __init__(
        self, transport: asyncio.Transport, resumed: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._resumed = resumed
        self.is_paused = False
        """By the protocol above."""

    def pause_reading(self) -> None:
        self.is_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self.is_paused = False
        self._resumed()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _ChunkedReader:
    """Mixed into a protocol of uvicorn: hands it what comes in pieces, as the caller's
    budget allows.
    """

    caller: Caller

    def _begin(self, transport: asyncio.Transport) -> _Valve:
        self._loop = asyncio.get_running_loop()
        self._socket = transport
        read_in_pieces(transport)
        self._waiting = bytearray()
        self._timer: asyncio.Handle | None = None
        self._successor: Any = None
        self._valve = _Valve(transport, self._feed)
        return self._valve

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self._waiting += data
        if self._timer is None:
            self._feed()

    def _feed(self) -> None:
        """Work off what waits, as much as may be now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

        began = time.perf_counter()
        while self._waiting and not self._valve.is_paused:
            if self._socket.is_closing():
                self._waiting.clear()
                return

            wait = self.caller.budget.wait(self._loop.time())
            if self._socket.get_write_buffer_size() > MAX_UNSENT:
                wait = max(wait, UNSENT_PAUSE)
            if wait > 0.0 or time.perf_counter() - began > TURN_TIME_S:
                self.caller.is_held_up = True
                self._socket.pause_reading()
                self._timer = (
                    self._loop.call_later(wait, self._feed)
                    if wait
                    else self._loop.call_soon(self._feed)
                )
                return

            piece = bytes(self._waiting[:CHUNK])
            del self._waiting[:CHUNK]
            start = time.thread_time()
            super().data_received(piece)  # type: ignore[misc]
            self.caller.budget.spend(self._loop.time(), time.thread_time() - start)
            if self._successor is not None:  # it is a WebSocket now
                if self._waiting:
                    self._successor.data_received(bytes(self._waiting))
                return

        self.caller.is_held_up = False
        if not self._valve.is_paused and not self._socket.is_closing():
            self._socket.resume_reading()

    def _end(self) -> None:
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Http(_ChunkedReader, H11Protocol):
    """An HTTP connection."""

    def __init__(self, gate: HttpAdmission, quiet: _QuietLog, **options: Any) -> None:
        super().__init__(**options)
        self.logger = self._quiet = quiet  # type: ignore[assignment]
        self._gate = gate
        self._application = self.app
        self.app = self._serve

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A peer has come."""
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        sock = transport.get_extra_info("socket")
        now = asyncio.get_running_loop().time()
        self.caller = self._gate.comes(
            address, transport.abort, now, partial(has_unread, sock)
        )
        self.app_state = {**self.app_state, "caller": self.caller}
        if self.ws_protocol_class is not None:
            self.ws_protocol_class = partial(
                _WebSocket, self.caller, self._gate, self._quiet
            )  # type: ignore[assignment]

        super().connection_made(self._begin(transport))  # type: ignore[arg-type]

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._end()
        self._gate.goes(self.caller)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """It is a WebSocket from now on."""
        super().handle_websocket_upgrade(event)
        self._successor = self._socket.get_protocol()

    def on_response_complete(self) -> None:
        """The next request may come, as soon as the peer has taken the answer."""
        if not (self._socket.is_closing() or self._socket.get_write_buffer_size()):
            self.caller.ends(self._loop.time())
        super().on_response_complete()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what that costs is booked."""
        self.caller.begins(self._loop.time())
        await booked(self._application(scope, receive, send), self._book)

    def _book(self, cost: float) -> None:
        self.caller.budget.spend(self._loop.time(), cost)

    def send_400_response(self, msg: str) -> None:
        """What came was no HTTP."""
        with contextlib.suppress(
            h11.LocalProtocolError
        ):  # an answer is under way already
            super().send_400_response(msg)

        self.caller.closes(self._loop.time())


class _WebSocket(_ChunkedReader, WebSocketsSansIOProtocol):
    """A WebSocket. What is done for it, its session books."""

    def __init__(
        self, caller: Caller, gate: HttpAdmission, quiet: _QuietLog, **options: Any
    ) -> None:
        super().__init__(**options)
        # strangers can make it log, also where no command line has set logging up
        self.logger = self.conn.logger = quiet  # type: ignore[assignment]
        self.caller = caller
        self._gate = gate
        self.app_state = {**self.app_state, "caller": caller}

    def connection_made(self, transport: Any) -> None:
        """An HTTP connection becomes a WebSocket: the first message must come soon."""
        self.caller.deadline = asyncio.get_running_loop().time() + REQUEST_TIME
        super().connection_made(
            self._begin(getattr(transport, "_transport", transport))  # type: ignore[arg-type]
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._end()
        self._gate.goes(self.caller)
        super().connection_lost(exc)

    def handle_cont(self, event: Any) -> None:
        """A further part of a message."""
        if len(self.frames) >= MAX_FRAGMENTS:
            self._socket.abort()
            return

        super().handle_cont(event)


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to the simulator."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """Serves an ASGI application on a socket until it is closed.

    Parameters
    ----------
    app : ASGI application
        What is served; the `state` of its requests holds the `Caller` as ``caller``.
    bound : socket.socket
        It listens.
    websockets : bool
        Whether it takes WebSockets.
    options : Any
        Further settings of uvicorn.
    """

    def __init__(
        self,
        app: Any,
        bound: socket.socket,
        *,
        websockets: bool = False,
        **options: Any,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.gate = HttpAdmission(loop.time())
        self._bound = bound
        quiet = _QuietLog(log)
        config = uvicorn.Config(
            app,
            http=partial(_Http, self.gate, quiet),  # type: ignore[arg-type]
            ws=WebSocketsSansIOProtocol if websockets else "none",
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=int(REQUEST_TIME),
            server_header=False,
            **options,
        )
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = _Uvicorn(config)
        self._task = loop.create_task(self._server.serve(sockets=[]))
        self._acceptor = loop.create_task(self._take())
        self._sweeper = loop.create_task(self._sweep())

    async def _take(self) -> None:
        """Take connections one after another, and none while that has cost too much."""
        loop = asyncio.get_running_loop()
        config, state = self._server.config, self._server.server_state
        if not config.loaded:
            config.load()
        while True:
            wait = self.gate.wait(loop.time())
            if wait > 0.0:
                await asyncio.sleep(wait)
                continue

            try:
                connected, _ = await loop.sock_accept(self._bound)
            except OSError as error:
                # no files left, or a peer that has gone again
                log.debug("a connection was not taken: %s", error)
                await asyncio.sleep(
                    0.0 if isinstance(error, ConnectionError) else ACCEPT_PAUSE
                )
                continue

            protocol: Any = config.http_protocol_class
            factory = partial(
                protocol, config=config, server_state=state, app_state={}, _loop=loop
            )
            try:
                await loop.connect_accepted_socket(factory, connected)
            except OSError:
                connected.close()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_S)
            self.gate.sweep(loop.time())

    async def close(self) -> None:
        """Stop serving."""
        self._acceptor.cancel()
        self._bound.close()
        self._server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            await asyncio.wait_for(self._task, 3 * SHUTDOWN_TIMEOUT_S)
        self._sweeper.cancel()
        await asyncio.gather(self._acceptor, self._sweeper, return_exceptions=True)


def listening(host: str, ports: Iterable[int], service: str) -> socket.socket:
    """A socket that listens for a service on the first of these ports that is free; 0
    is any free one.

    Raises
    ------
    OSError
        None is.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = OSError("no port given")
    for number in ports:
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            # elsewhere it would let two servers share a port
            if os.name == "posix":
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, number))
            bound.listen(BACKLOG)
            bound.setblocking(False)
        except OSError as error:
            bound.close()
            last = error
        else:
            note_port(bound, service)
            return bound

    raise last


__all__ = ["HttpServer", "listening"]
