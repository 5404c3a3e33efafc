"""`RosInterfaces`: ROS interfaces of a run, which can be switched at any time."""

from __future__ import annotations

import logging
import os
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from botyard.app.checks import EMBEDDED
from botyard.app.compose import Parts
from botyard.app.options import RunOptions
from botyard.app.rosmaster import MAX_URI, embedded_master, master_name, message_types
from botyard.control.census import ClientFacts
from botyard.errors import BotyardError, PeerError, RosMasterError
from botyard.interfaces.interface import Interface, Switch
from botyard.names import shown
from botyard.processes.slow_notice import telling
from botyard.protocols.tcpros import MASTER_PORT

if TYPE_CHECKING:
    from botyard.interfaces.ambf import Ambf
    from botyard.interfaces.ambf.link import Link
    from botyard.interfaces.ros.foxglove import Foxglove
    from botyard.interfaces.ros.graph import RosGraph
    from botyard.interfaces.ros.rosbridge import Rosbridge
    from botyard.interfaces.ros.transport import Transport
    from botyard.servers.pump import TcpPump
    from botyard.servers.ros.ros1 import Ros1
    from botyard.servers.ros.ros1master import Ros1Master
    from botyard.servers.ros.ros2 import Ros2
    from botyard.servers.ros.ros2zenoh import Ros2Zenoh
    from botyard.servers.web.programs import FoxglovePump, RosbridgePump


log = logging.getLogger("botyard.ros")


class RosInterfaces:
    """ROS interfaces of a run; the ROS graph and its transports are created on first use.

    Parameters
    ----------
    parts : Parts
        Parts of the simulator that ROS nodes access.
    o : RunOptions
        Options: names, time stamps, addresses.
    """

    def __init__(self, parts: Parts, o: RunOptions) -> None:
        self._parts = parts
        self._robot_servers = parts.robot_servers
        self._o = o
        self._graph: RosGraph | None = None
        self._ros1: Ros1 | None = None
        self._master: Ros1Master | None = None
        self._is_master = False
        self._ambf: Ambf | None = None
        self._link: tuple[Link, TcpPump] | None = None
        self._ros1_was_on = False
        self._ros2: Ros2 | None = None
        self._zenoh: Ros2Zenoh | None = None
        self._web: dict[
            str, tuple[Rosbridge | Foxglove, RosbridgePump | FoxglovePump]
        ] = {}
        parts.hub.census.add(self._facts)

    def _facts(self) -> Iterator[ClientFacts]:
        """Yield descriptions of ROS nodes and participants, for operators."""
        if self._ros1 is not None:
            yield from self._ros1.facts()
        if self._ros2 is not None:
            yield from self._ros2.pipe.facts()

    # -- switches

    def ros1_switch(self, interface: Interface) -> Switch:
        """Return the object that starts and stops ROS 1."""
        about = f"ROS 1 (TCPROS), master {self._master_name()}"
        return Switch(
            about, False, self.begin_ros1, self.stop_ros1, self._master_problem
        )

    def master_switch(self, interface: Interface) -> Switch:
        """Return the object that starts and stops the embedded ROS 1 master."""
        about = f"{interface.about}, port {self._master_port()}"
        return Switch(about, False, self.start_master, self.stop_master)

    def ros2_switch(self, interface: Interface) -> Switch:
        """Return the object that starts and stops ROS 2 over DDS."""
        return Switch(interface.about, False, self.start_ros2, self.stop_ros2)

    def zenoh_switch(self, interface: Interface) -> Switch:
        """Return the object that starts and stops ROS 2 over Zenoh."""
        return Switch(interface.about, False, self.start_zenoh, self.stop_zenoh)

    def web_switch(self, interface: Interface) -> Switch:
        """Return the object that starts and stops a transport to WebSocket clients.

        Parameters
        ----------
        interface : Interface
            Declaration of Foxglove or rosbridge.

        Returns
        -------
        Switch
            Switch, off, with the address of the port while it is on.
        """

        async def start() -> None:
            await self.start_web(interface)

        async def stop() -> None:
            await self.stop_web(interface.name)

        def address() -> tuple[str, int] | None:
            found = self._web.get(interface.name)
            return None if found is None else found[1].address

        return Switch(interface.about, False, start, stop, interface.lacks, address)

    def link_switch(self, interface: Interface) -> Switch:
        """Return the object that starts and stops AMBF objects without ROS.

        Parameters
        ----------
        interface : Interface
            Declaration of the link for AMBF clients.

        Returns
        -------
        Switch
            Switch, off, with the address of the port while it is on.
        """

        async def start() -> None:
            await self.start_link(interface)

        def address() -> tuple[str, int] | None:
            return None if self._link is None else self._link[1].address

        return Switch(interface.about, False, start, self.stop_link, address=address)

    def graph(self) -> RosGraph:
        """Return the ROS graph (nodes, topics and services), created on first use."""
        if self._graph is None:
            from botyard.interfaces.ros.graph import RosGraph
            from botyard.interfaces.ros.topiclook import GraphTopics
            from botyard.protocols.ros_messages.naming import PROFILES

            o = self._o
            profile = PROFILES[o.ros_names].with_frames(o.ros_frames)
            self._graph = RosGraph(
                self._robot_servers.hub,
                self._robot_servers.control,
                self._parts.maps.cells,
                message_types(o),
                profile=profile,
                is_localized=o.localization == "truth"
                if o.localization
                else profile.is_localized,
                has_map=None if o.ros_map is None else o.ros_map == "on",
                sim_time=o.ros_time == "sim" if o.ros_time else profile.sim_time,
                timeout=o.cmd_vel_timeout,
                scan_rate=o.scan_rate,
                has_nav2=o.nav2_actions,
            )
            self._parts.hub.census.topics = GraphTopics(self._graph)

        return self._graph

    def _master_name(self) -> str:
        """Return the address of the ROS 1 master."""
        return (
            f"{EMBEDDED}:{self._master_port()}"
            if self._is_master
            else master_name(self._o)
        )

    def _master_port(self) -> int:
        """Return the port of the embedded master: the configured one or the default."""
        # ROS_MASTER_URI counts as well: nodes started from the same shell look for the
        # master there.
        port = (
            (self._o.ros_master or os.environ.get("ROS_MASTER_URI") or "")
            .rstrip("/")
            .rpartition(":")[2]
        )
        return int(port) if port.isdigit() else MASTER_PORT

    def _master_problem(self) -> str:
        """Return an error text if the ROS 1 node is not registered at the master; empty: no
        problem.
        """
        if self._ros1 is None or self._ros1.is_registered:
            return ""
        return f"There is no ROS master at {self._ros1.master_uri}."

    async def start_master(self) -> None:
        """Start an embedded ROS master, and ROS 1 with it.

        Raises
        ------
        PortError
            The port is in use.
        """
        was_on = self._ros1 is not None
        self._is_master = True
        await self.stop_ros1()
        try:
            await self.start_ros1()
        except BotyardError:
            self._is_master = False
            if was_on:
                await self.start_ros1()
            raise

    async def stop_master(self) -> None:
        """Stop the embedded master; ROS 1 then connects to another master."""
        was_on = self._ros1 is not None
        await self.stop_ros1()
        self._is_master = False
        # With `--ros-master embedded` there is no other master to return to.
        if was_on and not (self._o.ros_master or "").startswith(EMBEDDED):
            await self.start_ros1()

    async def begin_ros1(self) -> None:
        """Connect to a ROS 1 master, and start an embedded one if only AMBF needs it.

        An embedded master starts only if no other master is found and the user has not requested
        ROS 1.
        """
        if (
            self._o.ambf is None
            or self._o.ros1
            or self._o.ros_master is not None
            or self._ros1_was_on
        ):
            await self.start_ros1()
        else:
            await self.connect_or_start_master()

        self._ros1_was_on = True

    async def start_ros1(self) -> None:
        """Connect to the ROS 1 master; start the embedded one first if the options request it.

        Raises
        ------
        RosMasterError
            There is no master, and the options do not allow waiting.
        PortError
            A port of the embedded master is in use.
        """
        from botyard.servers.ros.ros1 import Ros1
        from botyard.servers.ros.ros1node import shutdown_refusal

        graph, o = self.graph(), self._o
        uri = self._master_name()
        if uri.partition(":")[0] == EMBEDDED:
            if self._master is None:
                self._master = await embedded_master(uri, o.bind_to_address)
            # ROS 1 starts the embedded master itself, so its switch must follow.
            self._robot_servers.interfaces["rosmaster"].on = True
            uri = self._master.uri
            log.info(
                "ROS 1: embedded master at %s (export ROS_MASTER_URI=%s)", uri, uri
            )

        ros = Ros1(
            graph.types,
            uri,
            bound=o.bind_to_address,
            on_shutdown=self._killed,
            sim_time=graph.sim_time,
            denial=partial(shutdown_refusal, self._robot_servers.control),
        )
        try:
            with telling(
                f"waiting for the ROS master at {shown(ros.master_uri, MAX_URI)}",
                log.info,
            ):
                await ros.start()
        except PeerError as error:
            if o.unattended and not o.ros_wait:
                # An unattended run must fail at once, instead of waiting for ever for a
                # master.
                await ros.close()
                raise RosMasterError(
                    f"no ROS master: {error} (--ros-master embedded starts one, "
                    "--ros-wait waits for it)"
                ) from None

            log.warning(
                "no ROS master: %s. Waiting for it; --ros-master embedded starts "
                "one in the simulator",
                error,
            )
            ros.wait()

        self._ros1 = ros
        if self._master is not None:
            self._master.master.is_own = ros.is_node
        self._join(ros)
        # All topics are registered before the "ready" line is printed.
        await ros.settle()
        self._robot_servers.interfaces["ros1"].on = True

    async def connect_or_start_master(self) -> None:
        """Connect to the ROS 1 master; start an embedded one if there is none.

        Raises
        ------
        PortError
            There is no master, and its port is in use.
        """
        from botyard.servers.ros.xmlrpc import call

        name = self._master_name()
        try:
            with telling(
                f"waiting for the ROS master at {shown(name, MAX_URI)}", log.info
            ):
                # getPid is the cheapest request that every ROS 1 master answers, and it
                # registers nothing.
                await call(name, "getPid", "/botyard")
        except PeerError:
            self._is_master = True

        await self.start_ros1()

    def _killed(self) -> None:
        """Disconnect from ROS 1 after ``rosnode kill``, or if another node takes over the name.

        The simulator and an embedded master continue.
        """
        self._start_task(self._leave_ros1())

    def _start_task(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a coroutine as a background task of the run loop."""
        self._robot_servers.hub.background.start(work, "ROS")

    def _join(self, transport: Transport) -> None:
        """Offer the robots, and the AMBF objects if enabled, on a transport (ROS 1, ROS 2 or
        web).
        """
        self.graph().add(transport)
        if self._o.ambf is not None:
            self._objects().add(transport)

    def _objects(self) -> Ambf:
        """Return the interface to AMBF's objects, created on first use."""
        if self._ambf is None:
            from botyard.interfaces.ambf import Ambf

            o = self._o
            assert o.ambf is not None
            self._ambf = Ambf(
                self._robot_servers.hub,
                self._robot_servers.control,
                self._parts.lockstep,
                self.graph().types,
                o.ambf,
                prefix=o.ambf_namespace or "",
                low=o.ambf_min_freq,
                high=o.ambf_max_freq,
            )

        return self._ambf

    async def start_link(self, interface: Interface) -> None:
        """Offer AMBF's objects to clients without ROS.

        Raises
        ------
        PortError
            The port is in use.
        """
        from botyard.interfaces.ambf.link import Link
        from botyard.servers.pump import TcpPump

        o = self._o
        assert o.ambf is not None
        link = Link(self.graph().types, o.ambf)
        pump = TcpPump(
            replace(interface, session=link.session),
            {},
            self._robot_servers.hub,
            self._robot_servers.control,
        )
        # The port opens before the objects join, so that a port in use leaves nothing
        # to withdraw.
        await pump.start(o.bind_to_address, o.ambf_port)
        self._link = link, pump
        self._objects().add(link)
        log.info(
            "AMBF %s without ROS: port %d (botyard.clients.ambf)",
            o.ambf,
            pump.address[1],
        )

    async def stop_link(self) -> None:
        """Stop offering AMBF's objects to clients without ROS."""
        found, self._link = self._link, None
        if found is not None:
            link, pump = found
            if self._ambf is not None:
                self._ambf.remove(link)
            await pump.stop()

    async def _leave(self, transport: Ros1 | Ros2 | Ros2Zenoh | None) -> None:
        """Withdraw all topics and services from a transport, and close it."""
        if transport is not None:
            self._withdraw(transport)
            await transport.close()

    def _withdraw(self, transport: Transport) -> None:
        """Withdraw all topics and services from a transport."""
        if self._graph is not None:
            self._graph.remove(transport)
        if self._ambf is not None:
            self._ambf.remove(transport)

    async def _leave_ros1(self) -> None:
        """Disconnect from the ROS 1 master.

        An embedded master continues, because other nodes may need it.
        """
        # Clear the attribute before the wait: `rosnode kill` and the user's switch may
        # call this method at the same moment.
        ros, self._ros1 = self._ros1, None
        await self._leave(ros)
        self._robot_servers.interfaces["ros1"].on = False

    async def stop_ros1(self) -> None:
        """Disconnect from the ROS 1 master, and stop an embedded one."""
        await self._leave_ros1()
        if self._master is not None:
            self._master.close()
            self._master = None

        self._robot_servers.interfaces["rosmaster"].on = False

    async def start_ros2(self) -> None:
        """Join the DDS domain.

        Raises
        ------
        WorldError
            An environment variable is not valid.
        PeerError
            The network is not usable.
        """
        from botyard.protocols.dds.environment import Environment
        from botyard.servers.ros.ros2 import Ros2

        environment = Environment.read(domain=self._o.ros_domain_id)
        graph = self.graph()
        self._ros2 = Ros2(graph.types, environment)
        self._join(self._ros2)
        self._robot_servers.interfaces["ros2"].on = True
        log.info("ROS 2: domain %d, as %s", environment.domain, graph.node)

    async def stop_ros2(self) -> None:
        """Leave the DDS domain."""
        ros, self._ros2 = self._ros2, None
        await self._leave(ros)

    async def start_zenoh(self) -> None:
        """Open a Zenoh session, as a router or connected to one.

        Raises
        ------
        WorldError
            The extra is not installed, or an environment variable is not valid.
        PeerError
            The router's port is in use.
        """
        from botyard.protocols.dds.environment import Environment
        from botyard.servers.ros.ros2zenoh import Ros2Zenoh

        o, graph = self._o, self.graph()
        domain = Environment.read(domain=o.ros_domain_id).domain
        self._zenoh = Ros2Zenoh(
            graph.types, domain, router=o.zenoh_router, bound=o.bind_to_address
        )
        self._join(self._zenoh)
        self._robot_servers.interfaces["zenoh"].on = True
        log.info("ROS 2 over Zenoh: domain %d, as %s", domain, graph.node)

    async def stop_zenoh(self) -> None:
        """Close the Zenoh session."""
        ros, self._zenoh = self._zenoh, None
        await self._leave(ros)

    async def start_web(self, interface: Interface) -> None:
        """Serve clients of rosbridge or of the Foxglove protocol.

        Raises
        ------
        WorldError
            The extra is not installed.
        PortError
            The port is in use.
        """
        name, o, hub = interface.name, self._o, self._robot_servers.hub
        made, kind = self._foxglove() if name == "foxglove" else self._rosbridge()
        pump = kind(
            replace(interface, session=made.session),
            {"token": getattr(o, f"{name}_token")},
            hub,
            self._robot_servers.control,
        )
        port = getattr(o, name)
        try:
            await pump.start(
                o.bind_to_address, interface.port if port is None else port
            )
        # Undo a cancelled start as well: subscriptions that nothing serves would stay
        # in the graph.
        except BaseException:
            made.close()
            raise

        self._web[name] = made, pump
        self._join(made)
        self._robot_servers.interfaces[name].on = True
        log.info("%s: ws://%s:%d", name, *pump.address)

    def _rosbridge(self) -> tuple[Rosbridge, type[RosbridgePump]]:
        from botyard.interfaces.ros.rosbridge import Rosbridge
        from botyard.servers.web.programs import RosbridgePump

        graph = self.graph()
        return Rosbridge(graph.types, graph.stamp), RosbridgePump

    def _foxglove(self) -> tuple[Foxglove, type[FoxglovePump]]:
        from botyard.interfaces.ros.foxglove import Foxglove
        from botyard.servers.web.programs import FoxglovePump

        return Foxglove(self.graph(), self._robot_servers.hub), FoxglovePump

    async def stop_web(self, name: str) -> None:
        """Close the port of a transport to WebSocket clients, and disconnect them.

        Parameters
        ----------
        name : str
            Name of the interface: ``foxglove`` or ``rosbridge``. The interface need not
            be on.
        """
        found = self._web.pop(name, None)
        if found is not None:
            made, pump = found
            # First stop the pump: services of rosbridge cancel the goals of leaving
            # clients.
            await pump.stop()
            self._withdraw(made)
            made.close()

    async def close(self) -> None:
        """Stop all ROS interfaces."""
        # Transports leave before the objects and the graph that they show are closed.
        await self.stop_link()
        await self.stop_web("foxglove")
        await self.stop_web("rosbridge")
        if self._ambf is not None:
            self._ambf.close()
            self._ambf = None

        if self._graph is not None:
            self._parts.hub.census.topics = None
            self._graph.close()
        await self.stop_ros1()
        await self.stop_ros2()
        await self.stop_zenoh()


__all__ = ["RosInterfaces"]
