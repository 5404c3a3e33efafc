"""State that the interfaces of a run share (`Run`), and services for some interfaces."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botyard.app.compose import Parts
from botyard.app.options import RunOptions
from botyard.app.ros import RosInterfaces
from botyard.errors import WorldError
from botyard.interfaces.interface import Interface, Switch
from botyard.servers.carriers import pump_of
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.servers.pioneer.robotclient import RobotPortServer
from botyard.servers.pump import Pump

if TYPE_CHECKING:
    from botyard.app.page import Page
    from botyard.servers.web.http import HttpServer

log = logging.getLogger("botyard.interfaces")


class Run:
    """State that the interfaces of a run share.

    Parameters
    ----------
    parts : Parts
        Parts of the simulator that the interfaces serve.
    o : RunOptions
        All options of the run.
    ports : mapping of RobotPortServer to int
        Ports of the robots before a restart.
    kept : sequence
        Port and tokens of the page before a restart.
    """

    def __init__(
        self,
        parts: Parts,
        o: RunOptions,
        ports: Mapping[RobotPortServer, int] = {},
        kept: Sequence[Any] = (),
    ) -> None:
        self.parts, self.o = parts, o
        self._ports = ports
        self._kept = kept

    @cached_property
    def ros(self) -> RosInterfaces:
        """ROS interfaces of the run, which include AMBF's objects."""
        return RosInterfaces(self.parts, self.o)

    @cached_property
    def _page(self) -> Page:
        """Browser page of the run."""
        from botyard.app.page import Page

        return Page(self.parts, self.o, self._kept)

    def page(self) -> Page:
        """Return the browser page, created on first use."""
        return self._page

    @property
    def has_page(self) -> bool:
        """Whether the browser page has been created."""
        # `cached_property` stores its value in the instance's dictionary. Reading the
        # property itself would create the page.
        return "_page" in self.__dict__

    def take_ports(self) -> Mapping[RobotPortServer, int]:
        """Return the robots' ports from before a restart, on the first call; later an empty
        mapping.
        """
        # When ports are closed and opened again later, an old port may be taken, so old
        # ports are used only once.
        ports, self._ports = self._ports, {}
        return ports


class PumpService:
    """Service of an interface that accepts clients on one port while it is on.

    Parameters
    ----------
    interface : Interface
        Declaration of the interface.
    options : mapping of str to object
        All of its options (`Interface.chosen`).
    port : int
        Port to listen on.
    parts : Parts
        Parts of the simulator that the interfaces serve.
    """

    def __init__(
        self, interface: Interface, options: Mapping[str, Any], port: int, parts: Parts
    ) -> None:
        self.interface = interface
        self.pump: Pump | None = None
        # The pump itself is created at each start, because a closed pump cannot be
        # opened again.
        self._options, self._port, self._parts = options, port, parts

    async def start(self) -> None:
        """Open the port, and serve clients.

        Raises
        ------
        WorldError
            A required package is not installed.
        PortError
            The port is in use.
        """
        lacks = self.interface.lacks()
        if lacks:
            raise WorldError(lacks)
        pump = pump_of(
            self.interface, self._options, self._parts.hub, self._parts.control
        )
        await pump.start(self._parts.robot_servers.host, self._port)
        # Store the pump only after its port is open: `address` and `stop` must not see
        # a pump whose start failed.
        self.pump = pump
        log.info(
            "%s: port %d of %s", self.interface.about, pump.address[1], pump.address[0]
        )

    async def stop(self) -> None:
        """Close the port, and disconnect the clients."""
        pump, self.pump = self.pump, None
        if pump is not None:
            await pump.stop()

    @property
    def address(self) -> tuple[str, int] | None:
        """Address of the open port; None: the port is closed."""
        return None if self.pump is None else self.pump.address

    def switch(self) -> Switch:
        """Return the object that starts and stops the interface."""
        return Switch(
            self.interface.about,
            False,
            self.start,
            self.stop,
            self.interface.lacks,
            lambda: self.address,
        )


class MdnsService:
    """Service that announces, by multicast DNS, the robots that exist when it starts."""

    def __init__(self, robot_servers: RobotServers) -> None:
        self._robot_servers = robot_servers
        self._announcement: Any = None

    async def start(self) -> None:
        """Announce the robots in the local network.

        Raises
        ------
        CommandLineError
            The extra is not installed.
        """
        from botyard.servers.mdns import Announcement

        announcement = self._announcement = Announcement()
        await announcement.begin(
            (s.robot.name, s.robot.spec.name, *s.address)
            for s in self._robot_servers.servers.values()
        )

    async def stop(self) -> None:
        """Withdraw the announcements."""
        announcement, self._announcement = self._announcement, None
        if announcement is not None:
            await announcement.end()


class MetricsService:
    """Service that offers ``/metrics`` (figures for monitoring) on a port of its own.

    Parameters
    ----------
    robot_servers : RobotServers
        The running simulator.
    o : RunOptions
        Options of the run: address and port.
    """

    def __init__(self, robot_servers: RobotServers, o: RunOptions) -> None:
        self._robot_servers, self._host, self._port = (
            robot_servers,
            o.bind_to_address,
            o.metrics_port or 0,
        )
        self._server: HttpServer | None = None
        self.address: tuple[str, int] | None = None

    async def start(self) -> None:
        """Serve the metrics.

        Raises
        ------
        PortError
            The port is in use.
        """
        from botyard.servers.web.metrics import serve_metrics

        self._server, port = serve_metrics(self._robot_servers, self._host, self._port)
        self.address = self._host, port
        logging.getLogger("botyard").info(
            "metrics: http://%s:%d/metrics", *self.address
        )

    async def stop(self) -> None:
        """Close the port."""
        server, self._server, self.address = self._server, None, None
        if server is not None:
            await server.close()


__all__ = ["MdnsService", "MetricsService", "PumpService", "Run"]
