"""A simulator with its page in a thread of the test process, so that tests can inspect
the engine while a browser works.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from botyard.app.compose import compose
from botyard.app.page import STATIC
from botyard.interfaces.interface import Switch
from botyard.interfaces.page.requests import PageRequests
from botyard.interfaces.page.viewsource import ViewSource
from botyard.protocols.webgui.session import Tokens
from botyard.servers.hub import Hub
from botyard.servers.jobs.child_jobs import JobLimits
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.servers.web.page import PageServer
from botyard.sim.simulation import Simulation
from tests.ports import free_port
from tests.waiting import PATIENCE, wait

T = TypeVar("T")
TOKEN, AUDIENCE = "full-token", "audience-token"


class Served:
    """A running simulator with a page."""

    def __init__(
        self,
        sim: Simulation,
        interval: float = 0.05,
        folders: tuple[Any, ...] = (),
        paused: bool = False,
        limits: JobLimits = JobLimits(time=PATIENCE),
    ) -> None:
        self.sim = sim
        self.interval = interval
        self.folders = folders
        self.paused = paused
        self.limits = limits
        self.port = free_port(40)
        self.hub: Hub
        self.robot_servers: RobotServers
        self.desk: PageRequests
        self.server: PageServer
        self._loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            # The test that waits for the server reports the error.
            self._error = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        parts = compose(
            self.sim,
            interval=self.interval,
            folders=self.folders,
            limits=self.limits,
            port=self.port + 1,
        )
        self.hub, self.robot_servers = parts.hub, parts.robot_servers
        self.robot_servers.interfaces["pioneer"] = Switch(
            "robots' ports",
            True,
            self.robot_servers.open_ports,
            self.robot_servers.close_ports,
        )
        if self.paused:
            self.hub.pause()
        for robot in self.sim.robots.values():
            self.robot_servers._prepare(robot)
        await self.robot_servers.open()
        source = ViewSource(self.hub, self.robot_servers.port_of)
        self.desk = PageRequests(
            self.hub, self.robot_servers, parts.maps, source, audience=AUDIENCE
        )
        self.server = PageServer(
            self.robot_servers, self.desk, source, Tokens(TOKEN, AUDIENCE), STATIC
        )
        await self.server.listen("127.0.0.1", self.port)
        self._ready.set()
        try:
            await self.hub.run()
        finally:
            await self.server.close()
            parts.close()

    def start(self) -> None:
        """Start to serve the page."""
        root = logging.getLogger("botyard")
        # An earlier test may have left a handler whose stream is closed.
        root.handlers[:] = []
        root.setLevel(logging.INFO)
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop serving."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.hub.stop)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error

    @property
    def url(self) -> str:
        """Return the page's address with its token."""
        return f"http://127.0.0.1:{self.port}/#token={TOKEN}"

    @property
    def base(self) -> str:
        """Return the page's address."""
        return f"http://127.0.0.1:{self.port}"

    def do(self, act: Callable[[], T]) -> T:
        """Call a function in the simulator's thread between two steps."""
        done: Future[T] = Future()

        def call() -> None:
            try:
                done.set_result(act())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(call)
        return done.result(PATIENCE)

    def wait(self, holds: Callable[[], Any]) -> None:
        """Wait until a condition holds, checked in the simulator's thread."""
        wait(lambda: self.do(holds), pause=0.03)


@contextmanager
def served(sim: Simulation, **options: Any) -> Iterator[Served]:
    """Start simulators with a page, stopped at the end."""
    one = Served(sim, **options)
    one.start()
    try:
        yield one
    finally:
        one.stop()
