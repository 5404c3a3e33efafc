"""Start of the browser page for ``botyard run``, and its start dialog."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from dataclasses import replace

import click

from botyard.app.options import RunOptions
from botyard.app.page import Page
from botyard.control import USER
from botyard.errors import WorldError
from botyard.interfaces.page.requests import PageRequests
from botyard.protocols.webgui import messages as msg
from botyard.protocols.webgui import pushes
from botyard.servers.hub import Hub
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.ui import window

log = logging.getLogger("botyard.page")


def greet(
    stack: contextlib.AsyncExitStack,
    page: Page,
    robot_servers: RobotServers,
    o: RunOptions,
    asks: bool,
    ready: Callable[[], str],
) -> None:
    """Open the page for a user at this computer, and show the start dialog if requested.

    Parameters
    ----------
    stack : AsyncExitStack
        The page is served until this stack closes.
    page : Page
        The page's server.
    robot_servers : RobotServers
        Robots and their ports.
    o : RunOptions
        The command line.
    asks : bool
        Whether to show the start dialog.
    ready : callable
        Returns the line to print after the user has answered the start dialog.
    """
    if asks:
        desk, models = page.desk, [c.model for c in o.robots] or ["p3dx"]
        desk.start = pushes.StartOffer(
            models=models,
            port=o.port,
            verbose=o.verbose,
            warn_unsupported=o.warn_unsupported_commands,
        )
        desk.starter = _Starter(desk, robot_servers, ready).start

        # Simulated time starts with the answer; otherwise the run would depend on how
        # long the user thinks.
        robot_servers.hub.pause()
        click.echo(f"choose a map and robots on the page: {page.url}")

    _open(stack, robot_servers.hub, o, page.url)


def _open(stack: contextlib.AsyncExitStack, hub: Hub, o: RunOptions, url: str) -> None:
    """Open the page in a browser, or in a window if an option requests it."""
    mode = (
        "fullscreen"
        if o.fullscreen_gui
        else "maximized"
        if o.maximize_gui
        else "minimized"
        if o.minimize_gui
        else None
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
    elif (
        sys.stdin.isatty()
        and window.has_display()
        and not (o.noninteractive or o.no_browser)
    ):
        window.open_browser(url)


async def _closed(opened: window.Window, hub: Hub) -> None:
    """Stop the simulator when its window is closed, as AMRISim and Stage do."""
    while opened.is_open:
        await asyncio.sleep(0.25)
    if opened.failed:
        log.warning("cannot open the window; open the page in any browser instead")
        return

    log.info("the window was closed")
    hub.stop()


class _Starter:
    """Handler of the start dialog's answer: it starts the chosen world."""

    def __init__(
        self, desk: PageRequests, robot_servers: RobotServers, ready: Callable[[], str]
    ) -> None:
        self._desk = desk
        self._robot_servers = robot_servers
        self._ready = ready

    async def start(self, request: msg.Start) -> None:
        """Load the map, add the robots, open their ports, and print "ready".

        Raises
        ------
        BotyardError
            The map, a model or a port is not valid; the user can answer the dialog
            again.
        """
        robot_servers = self._robot_servers
        for robot in request.robots:
            # Check all models first: with a misspelt model, no robot must be added.
            robot_servers.find_model(robot.model)
        if request.map:
            await asyncio.wrap_future(self._desk.load_map(request.map, USER))
        if (
            not request.robots and not robot_servers.hub.sim.robots
            # Robots in the world file also count.
        ):
            raise WorldError("expected at least one robot, found none")

        if request.verbose:
            logging.getLogger("botyard").setLevel(logging.DEBUG)
        robot_servers.port = request.port
        robot_servers.settings = replace(
            robot_servers.settings, warn_unsupported=request.warn_unsupported
        )
        added: list[str] = []
        try:
            for robot in request.robots:
                if robot.factory:
                    robot_servers.add_factory(robot.model)
                    continue

                for _ in range(robot.count):
                    added.append(
                        robot_servers.add(
                            robot.model,
                            robot.name if robot.name and robot.count == 1 else None,
                        ).name
                    )

            await robot_servers.open()
        except BaseException:
            robot_servers.remove(added)
            for factory in robot_servers.factories:
                factory.close()
            robot_servers.factories.clear()
            raise

        robot_servers.hub.resume()
        click.echo(self._ready())
