"""HTTP servers in the simulator's event loop (uvicorn).

Input of peers is processed in small pieces, each within the peer's budget: a quarter of
a megabyte that the system delivers at once may hold tens of thousands of messages. The
admission control (`HttpAdmission`) decides which peers connect and how long they stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from functools import partial
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from botyard.interfaces.http_admission import (
    CLOSE_TIMEOUT_S,
    REQUEST_TIME,
    Caller,
    HttpAdmission,
    booked,
)
from botyard.servers.sockets import has_unread, read_in_pieces
from botyard.servers.throttledlog import ThrottledLogAdapter

SHUTDOWN_TIMEOUT_S: Final = 1.0
"""Timeout of open requests at shutdown, s."""
CHUNK: Final = 2048
"""Bytes to process at a time.

This is 340 of the smallest WebSocket messages (6 bytes), which take 10 ms.
"""
TURN_TIME_S: Final = 2e-3
"""Longest processing of one connection in an iteration of the event loop, s."""
MAX_UNSENT: Final = 1024 * 1024
"""Back-pressure: unsent bytes of answers at which reading from a peer pauses."""
UNSENT_PAUSE: Final = 0.1
"""Poll interval while a peer has too many unsent bytes, s."""
# Browsers send each message in one fragment or a few.
MAX_FRAGMENTS: Final = 64
"""Maximum number of fragments of a WebSocket message."""
SWEEP_INTERVAL_S: Final = 0.5
"""Interval to check deadlines, s."""
# A shortage of file descriptors lasts: retries without a pause would use all of the CPU
# time.
ACCEPT_PAUSE: Final = 1.0
"""Delay before accepting again after the system ran out of file descriptors, s."""

log = logging.getLogger("botyard.http")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _QuietLog(ThrottledLogAdapter):
    """Log of uvicorn's errors on connections, with a rate limit.

    Malformed text from a client is a warning, because it is not an error of the server.
    """

    @property
    def level(self) -> int:
        """Lowest level at which uvicorn creates log lines."""
        return logging.ERROR

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log an error, or count it if the rate limit is exceeded."""
        if isinstance(sys.exc_info()[1], UnicodeDecodeError):
            super().log(logging.WARNING, "a client is disconnected: %s", msg)
        elif level >= self.level:
            # The arguments are uvicorn's own format.
            super().log(level, msg, *args, **kwargs)


class _Valve:
    """Transport whose reading the protocol or the queue of chunks may pause."""

    def __init__(
        self, transport: asyncio.Transport, resumed: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._resumed = resumed
        self.is_paused = False
        """Whether the protocol has paused reading."""

    def pause_reading(self) -> None:
        self.is_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self.is_paused = False
        self._resumed()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _ChunkedReader:
    """Mixin for a protocol of uvicorn that delivers input in chunks.

    Each chunk is delivered when the caller's budget allows it.
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
        """Queue bytes, and process them if no timer does so later."""
        self._waiting += data
        if self._timer is None:
            self._feed()

    def _feed(self) -> None:
        """Process queued bytes within the budget."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

        started = time.perf_counter()
        while self._waiting and not self._valve.is_paused:
            if self._socket.is_closing():
                self._waiting.clear()
                return

            wait = self.caller.budget.wait(self._loop.time())
            if self._socket.get_write_buffer_size() > MAX_UNSENT:
                wait = max(wait, UNSENT_PAUSE)
            # The turn ends although the budget may last, because other connections and
            # steps must run.
            if wait > 0.0 or time.perf_counter() - started > TURN_TIME_S:
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
            # CPU time of this thread: time in which the system runs other processes
            # costs the peer nothing.
            start = time.thread_time()
            super().data_received(piece)  # type: ignore[misc]
            self.caller.budget.spend(self._loop.time(), time.thread_time() - start)
            # The protocol is now a WebSocket, which takes over the remaining bytes.
            if self._successor is not None:
                # The successor has its own queue, which applies the budget to these
                # bytes.
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
    """HTTP connection of one client."""

    def __init__(self, gate: HttpAdmission, quiet: _QuietLog, **options: Any) -> None:
        super().__init__(**options)
        self.logger = self._quiet = quiet  # type: ignore[assignment]
        self._gate = gate
        # Wrap the application, because uvicorn has no hook around its call.
        self._application = self.app
        self.app = self._serve

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the peer with the admission control."""
        peer = transport.get_extra_info("peername")
        # Addresses of other socket families, such as Unix sockets, are not tuples.
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        sock = transport.get_extra_info("socket")
        now = asyncio.get_running_loop().time()
        self.caller = self._gate.add_connection(
            address, transport.abort, now, partial(has_unread, sock)
        )
        self.app_state = {**self.app_state, "caller": self.caller}
        # uvicorn makes the WebSocket protocol itself, so the arguments are bound here.
        if self.ws_protocol_class is not None:
            self.ws_protocol_class = partial(
                WebSocketConnection, self.caller, self._gate, self._quiet
            )  # type: ignore[assignment]

        super().connection_made(self._begin(transport))  # type: ignore[arg-type]

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the peer."""
        self._end()
        self._gate.remove_connection(self.caller)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over to a new WebSocket."""
        super().handle_websocket_upgrade(event)
        self._successor = self._socket.get_protocol()

    def on_response_complete(self) -> None:
        """Allow the next request after the peer has received the answer."""
        # With unsent bytes the request is not over: its deadline still limits a slow
        # reader.
        if not (self._socket.is_closing() or self._socket.get_write_buffer_size()):
            self.caller.ends(self._loop.time())
        super().on_response_complete()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request and charge its cost to the caller."""
        self.caller.begins(self._loop.time())
        await booked(self._application(scope, receive, send), self._book)

    def _book(self, cost: float) -> None:
        self.caller.budget.spend(self._loop.time(), cost)

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is not valid HTTP."""
        # An answer may already be under way.
        with contextlib.suppress(h11.LocalProtocolError):
            super().send_400_response(msg)

        # The body of a request was not valid: its application must not answer as well.
        if self.cycle is not None:
            self.cycle.disconnected = True
            # This wakes an application that waits for the rest of the body.
            self.cycle.message_event.set()
        self.caller.closes(self._loop.time())


class WebSocketConnection(_ChunkedReader, WebSocketsSansIOProtocol):
    """WebSocket connection; a `WebSocketPeer` handles its messages and charges their cost."""

    def __init__(
        self, caller: Caller, gate: HttpAdmission, quiet: _QuietLog, **options: Any
    ) -> None:
        super().__init__(**options)
        # Peers can cause these log lines, even in programs that have not configured
        # logging.
        self.logger = self.conn.logger = quiet  # type: ignore[assignment]
        self.caller = caller
        self.changed: Callable[[], object] | None = None
        """Function that is called when the client reads again or disconnects."""
        self.paused_since = 0.0
        """Time at which the client stopped reading, s; valid while `is_writable` is False."""
        self._gate = gate
        self.app_state = {**self.app_state, "caller": caller, "connection": self}

    def connection_made(self, transport: Any) -> None:
        """Take over an HTTP connection; its first message has a deadline."""
        self.caller.deadline = asyncio.get_running_loop().time() + REQUEST_TIME
        super().connection_made(
            self._begin(getattr(transport, "_transport", transport))  # type: ignore[arg-type]
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the peer."""
        self._end()
        self._gate.remove_connection(self.caller)
        super().connection_lost(exc)
        if self.changed is not None:
            self.changed()

    def shutdown(self) -> None:
        """Close the connection when the server ends."""
        # The client may close it at the same time. The library then raises, and leaves
        # all other connections open.
        if self.handshake_complete and self.conn.state is not State.OPEN:
            self.stop_keepalive()
            self.transport.close()
        else:
            super().shutdown()

    @property
    def peer(self) -> str:
        """Address and port of the client."""
        host, port = self.client or ("?", 0)
        return f"{host}:{port}"

    @property
    def socket(self) -> Any:
        """Socket of the connection."""
        return self._socket.get_extra_info("socket")

    @property
    def is_over(self) -> bool:
        """Whether the connection is closed or being closed."""
        return (
            self.disconnected
            or self.close_sent
            or self._socket.is_closing()
            or self.conn.state is not State.OPEN
        )

    @property
    def is_writable(self) -> bool:
        """Whether the client reads what is written."""
        return self.writable.is_set() and not self.is_over

    def pause_writing(self) -> None:
        """Handle a full write buffer: the client does not read (callback of `asyncio.Protocol`)."""
        super().pause_writing()
        self.paused_since = self._loop.time()

    def resume_writing(self) -> None:
        """Continue to write, because the client reads again (callback of `asyncio.Protocol`)."""
        super().resume_writing()
        if self.changed is not None:
            self.changed()

    def write(self, data: bytes, is_text: bool) -> None:
        """Write a message.

        Parameters
        ----------
        data : bytes
            Message; a text in UTF-8.
        is_text : bool
            Whether it is sent as text, otherwise as binary.
        """
        (self.conn.send_text if is_text else self.conn.send_binary)(data)
        self._socket.write(b"".join(self.conn.data_to_send()))

    def hang_up(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection, whether the client reads or not.

        Parameters
        ----------
        code : int
            Status code of the close frame (RFC 6455, section 7.4).
        reason : str
            Reason of at most 123 bytes in UTF-8.
        """
        # If the client does not answer the close frame, the admission control aborts
        # the connection.
        self.caller.closes(self._loop.time())
        # This message ends the task that reads.
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code})
        if not self.is_over:
            self.conn.send_close(code, reason)
            self._socket.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            # Reading must continue, because the answer to the close frame arrives here.
            if self.read_paused:
                self.read_paused = False
                self.transport.resume_reading()

            self.close_timer = self._loop.call_later(
                CLOSE_TIMEOUT_S, self.transport.close
            )

    def handle_cont(self, event: Any) -> None:
        """Append a fragment to the current message, or abort if there are too many."""
        # The size limit of a message does not bound empty fragments.
        if len(self.frames) >= MAX_FRAGMENTS:
            self._socket.abort()
            return

        super().handle_cont(event)


class _Uvicorn(uvicorn.Server):
    """Uvicorn server that leaves signals to the simulator.

    The server also checks the deadlines of connections. Without connections it sleeps,
    whereas uvicorn's own loop wakes up ten times a second.
    """

    def __init__(self, config: uvicorn.Config, gate: HttpAdmission) -> None:
        super().__init__(config)
        self._gate = gate
        self.has_work = asyncio.Event()
        """Event that is set while there are connections, or when the server ends."""
        self.has_ended = asyncio.Event()

    async def main_loop(self) -> None:
        """Check deadlines, and renew the Date header, while there are connections."""
        loop = asyncio.get_running_loop()
        while True:
            await self.has_work.wait()
            # The argument 0 renews the Date header each time; the tick also reports the
            # shutdown.
            if await self.on_tick(0):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_INTERVAL_S):
                    await self.has_ended.wait()

            self._gate.sweep(loop.time())
            if not len(self._gate) and not self.should_exit:
                self.has_work.clear()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """Serves an ASGI application on a listening socket until closed.

    Parameters
    ----------
    app : ASGI application
        Application to serve. The `state` of its requests holds the `Caller` as
        ``caller``.
    bound : socket.socket
        Listening socket.
    websockets : bool
        Whether to accept WebSockets.
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
        # uvicorn gets no sockets: `_take` accepts connections itself, at the rate that
        # the admission control allows.
        self.gate = HttpAdmission(loop.time())
        self._bound = bound
        quiet = _QuietLog(log)
        config = uvicorn.Config(
            app,
            http=partial(_Http, self.gate, quiet),  # type: ignore[arg-type]
            ws=WebSocketsSansIOProtocol if websockets else "none",
            log_config=None,
            access_log=False,
            # Applications here have no start and end of their own.
            lifespan="off",
            timeout_graceful_shutdown=1,
            # uvicorn closes idle connections itself, after the same time as the
            # admission control.
            timeout_keep_alive=int(REQUEST_TIME),
            server_header=False,
            **options,
        )
        # uvicorn logs each start and stop, which the simulator reports itself.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = _Uvicorn(config, self.gate)
        self._task = loop.create_task(self._server.serve(sockets=[]))
        self._acceptor = loop.create_task(self._take())

    async def _take(self) -> None:
        """Accept connections one by one, at most at the rate that is admitted."""
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
                # Either the process has used up its file descriptors, or the peer has
                # disconnected.
                log.debug("cannot accept a connection: %s", error)
                await asyncio.sleep(
                    0.0 if isinstance(error, ConnectionError) else ACCEPT_PAUSE
                )
                continue

            self._server.has_work.set()
            protocol: Any = config.http_protocol_class
            factory = partial(
                protocol, config=config, server_state=state, app_state={}, _loop=loop
            )
            try:
                await loop.connect_accepted_socket(factory, connected)
            except OSError:
                # The peer disconnected between the two calls, so no protocol owns the
                # socket.
                connected.close()

    async def close(self) -> None:
        """Stop serving and close all connections."""
        # Stop accepting first, so that no connection is accepted during the shutdown.
        self._acceptor.cancel()
        self._bound.close()
        self._server.should_exit = True
        self._server.has_ended.set()
        self._server.has_work.set()
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            await asyncio.wait_for(self._task, 3 * SHUTDOWN_TIMEOUT_S)
        await asyncio.gather(self._acceptor, return_exceptions=True)


__all__ = ["HttpServer"]
