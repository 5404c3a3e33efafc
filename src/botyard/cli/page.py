"""The page of ``botyard run``: serves it, opens it, and answers its start dialog."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from botyard import __version__
from botyard.app.compose import Parts
from botyard.app.options import RunOptions
from botyard.control import USER
from botyard.errors import ExitCode, PortError, WorldError
from botyard.formats.models import missing_folders
from botyard.interfaces.page.desk import PageDesk, Question
from botyard.interfaces.page.viewsource import ViewSource
from botyard.names import shown
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui.session import Tokens
from botyard.servers.hub import Hub
from botyard.servers.web import PageServer, new_token
from botyard.servers.yard import Yard
from botyard.ui import window

STATIC = Path(window.__file__).with_name("static")

log = logging.getLogger("botyard.page")


async def begin_page(
    stack: contextlib.AsyncExitStack,
    parts: Parts,
    o: RunOptions,
    asks: bool,
    ready: Callable[[str], str],
    kept: Sequence[Any] = (),
) -> tuple[str, Sequence[Any]]:
    """Serve the page until the stack is left, and open it if a person is there; its address, and its port and tokens.

    Parameters
    ----------
    parts : Parts
        The simulator.
    o : RunOptions
        The command line.
    asks : bool
        The start dialog is wanted.
    ready : callable
        Makes the line that is printed once the start dialog was answered, of the page's address.
    kept : sequence
        Port and tokens that the page had before the simulator was started again.
    """
    yard = parts.yard
    port, full, audience = kept or (None, _token(o), new_token())
    tokens = Tokens(full, audience, o.read_only)
    source = ViewSource(yard.hub, yard.port_of, lambda: yard.port_changes)
    graphics: msg.Graphics = "none" if o.no_graphics else "lite" if o.lite_graphics else "full"
    desk = PageDesk(yard.hub, yard, parts.maps, source, audience=audience if tokens.full else "", graphics=graphics)
    missing = missing_folders()
    if missing:  # who is noninteractive has ended before
        desk.question = Question("; ".join(missing), ExitCode.MODELS_MISSING)
    server = PageServer(yard, desk, source, tokens, STATIC, o.gui_host)
    await _listen(server, o, port)
    sim = yard.hub.sim
    about = f"botyard {__version__} started: map {shown(sim.scene.name)}, {len(sim.robots)} robots, seed {sim.seed}"
    desk.add_log(msg.LogEntry(time=time.time(), level="info", source="botyard", text=about))
    stack.push_async_callback(server.close)
    url = server.url()
    if asks:
        models = [c.model for c in o.robots] or ["p3dx"]
        desk.start = msg.StartOffer(
            models=models, port=o.port, verbose=o.verbose, warn_unsupported=o.warn_unsupported_commands
        )
        desk.starter = _Starter(desk, yard, lambda: ready(url)).start
        yard.hub.pause()  # time begins with the answer, or no run could be repeated
        print(f"botyard asks for a map and robots: {url}", flush=True)
    _open(stack, yard.hub, o, url)
    return url, (server.address[1], full, audience)


async def _listen(server: PageServer, o: RunOptions, before: int | None) -> None:
    """On the port that was asked for; else on the one that it had before, if that is free, or any that is."""
    if o.gui_port is None and before is not None:
        with contextlib.suppress(PortError):
            await server.listen(o.gui_address, before)
            return
    await server.listen(o.gui_address, o.gui_port)


def _token(o: RunOptions) -> str:
    return "" if o.gui_token == "off" else o.gui_token or new_token()


def _open(stack: contextlib.AsyncExitStack, hub: Hub, o: RunOptions, url: str) -> None:
    """Open the page in a browser if a person is there, or in a window of its own if one is wanted."""
    mode = (
        "fullscreen" if o.fullscreen_gui else "maximized" if o.maximize_gui else "minimized" if o.minimize_gui else None
    )
    if mode is not None:
        try:
            opened = window.open_window(url, mode)
        except WorldError as error:
            log.warning("%s", error)
            return
        task = hub.background.start(_closed(opened, hub), "the window")
        stack.callback(opened.close)
        stack.callback(task.cancel)
    elif sys.stdin.isatty() and _has_display() and not (o.noninteractive or o.no_browser):
        window.open_browser(url)


def _has_display() -> bool:
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


async def _closed(opened: window.Window, hub: Hub) -> None:
    """The simulator ends with its window, as its predecessors do."""
    while opened.is_open:
        await asyncio.sleep(0.25)
    if opened.failed:
        log.warning("the window could not be opened; the page is there for any browser")
        return
    log.info("the window was closed")
    hub.stop()


class _Starter:
    """Does what the start dialog's answer says."""

    def __init__(self, desk: PageDesk, yard: Yard, ready: Callable[[], str]) -> None:
        self._desk = desk
        self._yard = yard
        self._ready = ready

    async def start(self, request: msg.Start) -> None:
        """Load the map, add the robots, open their ports, say "ready".

        Raises
        ------
        BotyardError
            The map, a model or a port is wrong; the dialog can be answered again.
        """
        yard = self._yard
        for robot in request.robots:
            yard.find_model(robot.model)
        if request.map:
            await asyncio.wrap_future(self._desk.load_map(request.map, USER))
        if not request.robots and not yard.hub.sim.robots:  # those of a world file count
            raise WorldError("choose at least one robot")
        if request.verbose:
            logging.getLogger("botyard").setLevel(logging.DEBUG)
        yard.port = request.port
        yard.settings = replace(yard.settings, warn_unsupported=request.warn_unsupported)
        added: list[str] = []
        try:
            for robot in request.robots:
                if robot.factory:
                    yard.add_factory(robot.model)
                    continue
                for _ in range(robot.count):
                    added.append(yard.add(robot.model, robot.name if robot.name and robot.count == 1 else None).name)
            await yard.open()
        except BaseException:
            yard.remove(added)
            for factory in yard.factories:
                factory.close()
            yard.factories.clear()
            raise
        yard.hub.resume()
        print(self._ready(), flush=True)
