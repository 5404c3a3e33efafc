"""Web server of the page: files, the map, uploads and a WebSocket for each viewer.

The server runs Starlette and uvicorn in the simulator's event loop. Access control
(reference webgui.md §6): the Host header of each request must name this machine, and a
page's Origin must be this server. The first message of a WebSocket, and each upload,
must present the token of the run. The address holds the token behind the #, so it
appears in no log. Until a socket presents the token, it counts as a stranger (see
`botyard.interfaces.http_admission`).
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import BotyardError, PortError
from botyard.formats import saving
from botyard.interfaces.http_admission import Caller, HttpAdmission
from botyard.interfaces.page.requests import PageRequests
from botyard.interfaces.page.viewsource import ViewSource
from botyard.protocols.tokenbucket import Budget
from botyard.protocols.webgui.frames import encode_map
from botyard.protocols.webgui.messages import MAX_TEXT
from botyard.protocols.webgui.pushes import LogEntry
from botyard.protocols.webgui.session import Tokens, Viewer
from botyard.servers.addresses import is_loopback
from botyard.servers.clientfacts import viewer_facts
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.servers.sockets import listening, reason_of
from botyard.servers.web.http import TURN_TIME_S, HttpServer
from botyard.servers.web.metrics import routes
from botyard.servers.web.pageguard import Guard, bearer_token
from botyard.servers.web.pagelog import PageLog
from botyard.servers.web.staticfiles import StaticFiles
from botyard.servers.web.websocketpeer import WebSocketPeer
from botyard.sim.worldfiles import world_of

FIRST_PORT: Final = 8100
TRIED_PORTS: Final = 100
MAX_UPLOAD: Final = 64 * 1024 * 1024
"""Maximum size of an uploaded map or world, bytes."""
FILE_PIECE: Final = 256 * 1024
"""Size of the pieces in which files are read and sent, bytes."""
MAX_UPLOADS: Final = 4
"""Maximum number of concurrent uploads, at most one for each source address."""
UPLOAD_PAUSE: Final = 10.0
"""Timeout of an upload that sends nothing, s."""
MAX_NUMBER_DIGITS: Final = 12
"""Maximum number of digits of a page's number in an upload."""
TICK_S: Final = 0.1
"""Interval at which timeouts of viewers are checked, s of wall time."""

NOT_BUILT: Final = (
    "<!doctype html><title>botyard</title><p>The page is missing. In a checkout, "
    "<code>make web</code> builds it; an installed botyard contains it. Clients can "
    "reach the robots without the page."
)

# The same text for both reasons, so that it reveals nothing about the token.
NOT_YOURS: Final = "wrong token, or this page may only watch"

log = logging.getLogger("botyard.page")


def new_token() -> str:
    """Return 128 random bits as URL-safe text."""
    return secrets.token_urlsafe(16)


class _Packing(GZipMiddleware):
    """Compression of responses, except of downloads.

    Downloads of a run may be large, and their formats are compressed already.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request, and compress its response."""
        is_file = scope["type"] == "http" and scope["path"].startswith("/file/")
        await (self.app if is_file else super().__call__)(scope, receive, send)


class _Socket(WebSocketPeer):
    """WebSocket of one viewer."""

    def __init__(self, server: PageServer, socket: WebSocket) -> None:
        super().__init__(socket, ErrorBarrier(log, "a viewer"))
        self._server = server
        self._source: ViewSource | None = None
        self._drawn = -1
        self._is_closing = False
        self.dropped = 0
        """Number of frames that the viewer missed."""
        self.viewer = Viewer(
            server.desk,
            server.tokens,
            self.loop.time(),
            self._admitted,
            time.thread_time,
        )

    def _admitted(self, steers: bool) -> Budget:
        self.caller.shows(steers, self.loop.time())
        self.caller.keep_connected()
        return self.caller.budget

    @property
    def budget(self) -> Budget:
        """Budget of the viewer, which its session charges for messages."""
        return self.viewer.budget

    @property
    def may_receive(self) -> bool:
        """Whether the viewer has read its answers."""
        return not self.viewer.is_behind or self.viewer.close_code is not None

    def on_message(self, data: str | bytes) -> None:
        """Pass a message to the viewer's session."""
        self.viewer.receive_text(data, self.loop.time())
        self.look()

    def tick(self, now: float) -> None:
        """Check the viewer's timeouts."""
        has_unread = self.has_received or self.caller.has_unread
        if self.viewer.is_overdue(now, has_unread=has_unread) and not self._is_closing:
            self._is_closing = True
            self.caller.closes(now)

        self.look()

    def flush(self) -> bool:
        """Send texts and the latest frame; return whether more texts wait."""
        viewer, connection = self.viewer, self.connection
        self._server.desk.prepare()
        started = time.perf_counter()
        # A text counts as unread until the next text is sent.
        for text in viewer.texts_to_send():
            if not connection.is_writable:
                break
            # Thousands of texts may be queued.
            if time.perf_counter() - started > TURN_TIME_S:
                return True
            connection.write(text, True)

        if viewer.close_code is not None:
            if not connection.is_over:
                # A close frame holds at most 125 bytes, 2 of them for the code
                # (RFC 6455, section 5.5).
                connection.hang_up(viewer.close_code, viewer.close_reason[:100])
        elif connection.is_writable:
            self._send_frame()
        return False

    def _send_frame(self) -> None:
        source = self._server.desk.source_of(self.viewer)
        now = self.loop.time()
        due = self.viewer.wants_frame_at(now)
        # A viewer that changes its source has no frame from the new one yet.
        if source is not self._source:
            self._source, self._drawn = source, -1
        if due is None or source.number == self._drawn:
            return
        if due > now:
            self.wake_at(due)
            return

        if self._drawn >= 0:
            missed = max(0, source.number - self._drawn - 1)
            self._server.hub.dropped_frames += missed
            self.dropped += missed
        self._drawn = source.number
        frame = source.frame(self.viewer.view)
        self.viewer.frame_sent(source.number, now)
        self.connection.write(frame, False)

    def look(self) -> None:
        """Schedule a write if texts or a frame wait for the viewer."""
        viewer = self.viewer
        source = self._server.desk.source_of(viewer)
        is_new = source is not self._source or source.number != self._drawn
        if viewer.has_texts or viewer.close_code is not None or is_new:
            self.wake()


class PageServer:
    """Web server of the page.

    Parameters
    ----------
    robot_servers : RobotServers
        The running simulator.
    desk : PageRequests
        Handler of the viewers' requests.
    source : ViewSource
        Encoder of the frames that viewers see.
    tokens : Tokens
        Tokens that grant access.
    static : Path
        Folder of the built page.
    hosts : iterable of str
        Additional host names that requests may use.
    """

    def __init__(
        self,
        robot_servers: RobotServers,
        desk: PageRequests,
        source: ViewSource,
        tokens: Tokens,
        static: Path,
        hosts: tuple[str, ...] = (),
    ) -> None:
        self.hub = robot_servers.hub
        self.desk = desk
        self.source = source
        self._robot_servers = robot_servers
        self.tokens = tokens
        self.address = ("", 0)
        self._static = static
        self._hosts = {"localhost", "127.0.0.1", "::1", *(h.lower() for h in hosts)}
        self._sockets: set[_Socket] = set()
        self._server: HttpServer | None = None
        self._guard: Guard | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self._handler: PageLog | None = None
        self._uploading: set[str] = set()
        self._desk_fence = ErrorBarrier(log, "requests of the page")
        self._packed = ("", b"")
        self.hub.census.add(lambda: viewer_facts(self._sockets))
        self._packing = asyncio.Lock()

    # -- life

    @property
    def gate(self) -> HttpAdmission:
        """Admission control of the server: its peers and their limits."""
        assert self._server is not None
        return self._server.gate

    async def listen(self, host: str, port: int | None) -> None:
        """Start to serve on `port`; None: on 8100 or the next free port.

        Raises
        ------
        PortError
            The address cannot be bound.
        """
        bound = _bind(host, port)
        self.address = bound.getsockname()[:2]
        app = self._guard = Guard(
            self._app(),
            self._hosts | {host.strip("[]").lower()},
            not is_loopback(host),
            self.tokens,
        )
        self._server = HttpServer(
            app,
            bound,
            websockets=True,
            # This limit is above the session's own limit, so that the session refuses a
            # long message with a reason.
            ws_max_size=MAX_TEXT + 1024,
            ws_per_message_deflate=False,
        )
        loop = asyncio.get_running_loop()
        self._handler = PageLog(loop, self._add_log)
        logging.getLogger("botyard").addHandler(self._handler)

    async def close(self) -> None:
        """Close all viewers and stop serving; `listen` can start the server again."""
        if self._handler is not None:
            logging.getLogger("botyard").removeHandler(self._handler)
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        for one in tuple(self._sockets):
            # 1001: the endpoint goes away (RFC 6455, section 7.4.1).
            one.viewer.close(1001, "the simulator has ended")
            one.wake()

        if self._server is not None:
            await self._server.close()

    def url(self, token: str | None = None) -> str:
        """Return the address of the page, with the token behind the #.

        Parameters
        ----------
        token : str, optional
            Token of the link; by default the one that grants control. Empty: no token.
            The browser does not send the part behind the # to the server.
        """
        host, port = self.address
        # A browser cannot open the wildcard address, so name the loopback address.
        name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(
            host, f"[{host}]" if ":" in host else host
        )
        token = self.tokens.full if token is None else token
        return f"http://{name}:{port}/" + (
            f"#token={quote(token, safe='')}" if token else ""
        )

    def allow_frames(self) -> str:
        """Let other pages frame this one under a path with a new token; return the path.

        The path is valid until `close`. The part after the # grants access, as in `url`.
        """
        assert self._guard is not None
        self._guard.frame = new_token()
        return f"{self._guard.frame}/#token={quote(self.tokens.full, safe='')}"

    def _add_log(self, entry: LogEntry) -> None:
        self.desk.add_log(entry)
        for one in self._sockets:
            one.wake()

    def _changed(self) -> None:
        self.desk.changed()
        for one in self._sockets:
            one.wake()

    def _tick_later(self) -> None:
        # Without viewers there is nothing to check.
        if self._sockets and self._ticker is None:
            loop = asyncio.get_running_loop()
            self._ticker = loop.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._ticker = None
        now = asyncio.get_running_loop().time()
        self._desk_fence.run(self.desk.tick, now)
        for one in tuple(self._sockets):
            one.barrier.run(one.tick, now)
        self._tick_later()

    # -- what is served

    def _app(self) -> Starlette:
        served: list[Any] = [
            *routes(self._robot_servers, lambda: {"viewers": len(self.desk.viewers)}),
            Route("/map/{name}", self._map),
            Route("/upload", self._upload, methods=["POST"]),
            Route("/scenario.zip", self._scenario),
            Route("/file/{ticket}", self._file),
            WebSocketRoute("/ws", self._viewer),
        ]
        if (self._static / "index.html").is_file():
            served.append(Route("/{path:path}", StaticFiles(self._static).answer))
        else:
            served.append(
                Route("/", lambda _: Response(NOT_BUILT, media_type="text/html"))
            )

        app = Starlette(routes=served)
        # Use compression level 3: higher levels cost more CPU time than the saved bytes
        # are worth on loopback.
        app.add_middleware(_Packing, minimum_size=2000, compresslevel=3)
        return app

    async def _map(self, request: Request) -> Response:
        """Return the current map.

        A thread encodes and compresses the map, once: for a large map this takes longer
        than a step.
        """
        name, _, suffix = request.path_params["name"].rpartition(".")
        found = self.desk.scene_of(name) if suffix == "bin" else None
        if found is None:
            return PlainTextResponse("this is not the current map", 404)

        name, scene = found

        async def in_thread(job: Callable[[], bytes]) -> bytes:
            return await asyncio.wrap_future(self.desk.maps.run_in_thread(job))

        # The lock lets concurrent requests share one encoding.
        async with self._packing:
            if self._packed[0] != name:
                self._packed = (
                    name,
                    await in_thread(lambda: gzip.compress(encode_map(scene), 3)),
                )

        headers = {"cache-control": "private, max-age=86400", "vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            data, headers["content-encoding"] = self._packed[1], "gzip"
        else:
            data = await in_thread(lambda: gzip.decompress(self._packed[1]))

        return Response(data, media_type="application/octet-stream", headers=headers)

    async def _upload(self, request: Request) -> Response:
        """Load an uploaded map or world: `POST /upload?name=…` with the token."""
        if not self._may_steer(request):
            return PlainTextResponse(NOT_YOURS, 401)
        source = request.state.caller.source
        if source in self._uploading or len(self._uploading) >= MAX_UPLOADS:
            return PlainTextResponse(
                "another upload is in progress; try again when it is complete", 409
            )

        self._uploading.add(source)
        try:
            data = await _received(request)
            if data is None:
                return PlainTextResponse(
                    f"expected at most {MAX_UPLOAD // 2**20} MiB", 413
                )

            # Keep only the last component, so that a name never leads to another
            # folder.
            name = (
                Path(request.query_params.get("name", "map").replace("\\", "/")).name
                or "map"
            )
            number = request.query_params.get("page", "")
            page = (
                int(number)
                if number.isascii()
                and number.isdigit()
                and len(number) <= MAX_NUMBER_DIGITS
                else 0
            )
            await asyncio.wrap_future(self.desk.load_file(name, data, source, page))
            self.desk.changed()
        except TimeoutError:
            return PlainTextResponse(
                f"the upload sent nothing for {UPLOAD_PAUSE:g} s", 408
            )
        except ClientDisconnect:
            # The client has disconnected and reads no answer.
            return PlainTextResponse("", 400)
        except BotyardError as error:
            return PlainTextResponse(str(error), 422)
        finally:
            self._uploading.discard(source)

        return JSONResponse({"map": name})

    def _may_steer(self, request: Request) -> bool:
        return (
            self.tokens.admits(bearer_token(request.headers.get("authorization", "")))
            is True
        )

    async def _scenario(self, request: Request) -> Response:
        """Return the current world as a scenario.

        The request is `GET /scenario.zip` with the token.
        """
        if not self._may_steer(request):
            return PlainTextResponse(NOT_YOURS, 401)
        world, traffic = world_of(self.hub.sim), self.desk.control.traffic
        if traffic is not None:
            world = replace(world, traffic=traffic.left())
        data = await asyncio.wrap_future(
            self.desk.maps.run_in_thread(lambda: saving.packed(world))
        )
        return Response(data, media_type="application/zip")

    async def _file(self, request: Request) -> Response:
        """Return a file that a page requested through its WebSocket.

        The ticket in the address proves that the page presented the token. A plain HTTP
        download lets the browser save the file as it arrives.
        """
        path = self.desk.file_of(request.path_params["ticket"])
        loop = asyncio.get_running_loop()
        try:
            file = (
                None
                if path is None
                else await loop.run_in_executor(None, path.open, "rb")
            )
        except OSError:
            file = None

        if path is None or file is None:
            return PlainTextResponse(
                "this address has expired: download the file again on the page",
                404,
            )

        caller: Caller = request.state.caller
        caller.shows(True, loop.time())
        caller.keep_connected()
        size = os.fstat(file.fileno()).st_size
        headers = {
            "content-length": str(size),
            "content-disposition": f"attachment; filename*=UTF-8''{quote(path.name, safe='')}",
            "cache-control": "no-store",
        }

        async def pieces() -> AsyncIterator[bytes]:
            # A recording may still grow: send no more than content-length announced.
            left = size
            with file:
                while left and (
                    piece := await loop.run_in_executor(
                        None, file.read, min(left, FILE_PIECE)
                    )
                ):
                    left -= len(piece)
                    yield piece

        return StreamingResponse(
            pieces(), media_type="application/octet-stream", headers=headers
        )

    async def _viewer(self, socket: WebSocket) -> None:
        try:
            await socket.accept()
        except (RuntimeError, OSError, WebSocketDisconnect):
            # The client has disconnected already.
            return

        one = _Socket(self, socket)
        # Watch steps only while there are viewers: the hub may delay steps that are not watched.
        if not self._sockets:
            self.hub.watch(self._changed)
            self.desk.changed()

        self._sockets.add(one)
        self._tick_later()
        try:
            await one.serve()
        finally:
            self._sockets.discard(one)
            if not self._sockets:
                self.hub.unwatch(self._changed)
            self.desk.left(one.viewer)


async def _received(request: Request) -> bytes | None:
    """Return the body of a request; None if it is longer than `MAX_UPLOAD`.

    Raises
    ------
    TimeoutError
        No bytes arrive for `UPLOAD_PAUSE`.
    ClientDisconnect
        The client disconnects.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > MAX_UPLOAD:
        return None
    data = bytearray()
    parts = request.stream()

    while True:
        async with asyncio.timeout(UPLOAD_PAUSE):
            part = await anext(parts, None)
        if part is None:
            return bytes(data)
        # Count the bytes too: a client may announce less, or nothing, and send
        # more.
        if len(data) + len(part) > MAX_UPLOAD:
            return None
        data += part


def _bind(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens on a port, or on the first free one from 8100."""
    try:
        return listening(
            host,
            [port] if port is not None else range(FIRST_PORT, FIRST_PORT + TRIED_PORTS),
            "the page",
        )
    except OSError as error:
        reason = reason_of(error, port or 0)

    where = (
        f"{host}:{port}"
        if port is not None
        else f"{host}:{FIRST_PORT} … {FIRST_PORT + TRIED_PORTS - 1}"
    )
    raise PortError(
        f"cannot serve the page on {where}: {reason}; choose another port with "
        "--gui-port, or --no-gui"
    )
