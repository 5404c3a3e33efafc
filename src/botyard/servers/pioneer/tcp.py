"""TCP servers for the Pioneer protocol (pioneer-protocol §2).

Each robot and each robot factory has a port of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
from abc import ABC, abstractmethod
from typing import cast

from botyard.control.error_barrier import ErrorBarrier, call_all_suppressing
from botyard.errors import PortError
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.pioneer.packet import MAX_PACKET, Parser
from botyard.protocols.pioneer.session import HANDSHAKE_SECONDS, Session, Stage
from botyard.servers.hub import Hub
from botyard.servers.pioneer.connection import Connection, RobotLog
from botyard.servers.pioneer.intake import Inlet
from botyard.servers.sockets import (
    MAX_STUCK,
    has_hung_up,
    has_room,
    has_unread,
    keep_alive,
    note_port,
    reason_of,
)
from botyard.servers.throttledlog import ThrottledLog
from botyard.sim.simulation import Robot

MAX_UNSENT = 256 * 1024
"""Unread output of a client at which reports are dropped, bytes.

Reports resume when the client has read the output.
"""
REFUSED_LINGER_S = 1.0
"""Timeout to disconnect a refused client that keeps its side open, s."""
CLOSE_LINGER_S = 3.0
"""Timeout to disconnect a client that sent CLOSE, s.

Until then, its data is read and discarded, because its threads may still be writing.
"""
MAX_LEAVING = 16
"""Maximum number of leaving connections of each kind on a port.

The kinds are refused clients and clients that sent CLOSE. A new one displaces the
oldest of its kind.
"""
LOOK_AGAIN_S = 0.1
"""Delay before a silent client with unread bytes is checked again, s."""
REFUSAL_DELAY_S = 0.1
"""Delay before a connection is refused because the robot has a client, s.

A packet from the connection ends the delay.
"""
MAX_STRANGERS = 16
"""Maximum number of connections on a robot's port whose handshake is incomplete.

A further connection displaces the one that was silent for longest.
"""
FIRST_PACKET_TIMEOUT_S = 10.0
"""Timeout for the first valid packet of a connection, s."""
LIVENESS_READ_S = 0.5
"""Liveness check of a flooding client: longest read ahead, s.

The check runs when other clients request its robot, and looks for the end of its
stream.
"""
MAX_LIVENESS_READ = 16 * 1024 * 1024
"""Liveness check of a flooding client: maximum number of bytes to read ahead."""
MAX_EARLY = 16 * 1024
"""Maximum number of bytes before the first valid packet, then refusal."""
VISIT_LOG_BURST = 50
"""Burst of log lines about clients that connect and disconnect.

The sustained rate is one line per second, which counts the suppressed ones.
"""


class RobotPortServer(ABC):
    """A listening port that connects clients with a robot.

    A connection counts as a stranger until a valid packet has arrived, and costs no
    more than its socket. The first client to complete the handshake gets the robot, not
    the first to connect.

    Parameters
    ----------
    hub : Hub
        Event loop that runs the simulation.
    name : str
        Name of the robot or factory in the log.
    settings : PioneerSettings
        Protocol settings of the user.
    desk : PioneerRequests
        Handler of requests that concern the whole simulation.
    """

    max_strangers = MAX_STRANGERS
    backlog = 16
    """Length of the system's queue of connections to accept.

    It is also the number of connections that asyncio accepts in one iteration.
    """

    def __init__(
        self, hub: Hub, name: str, settings: PioneerSettings, desk: PioneerRequests
    ) -> None:
        self.hub = hub
        self.name = name
        self.settings = settings
        self.desk = desk
        self.log = RobotLog(logging.getLogger("botyard.pioneer"), {"robot": name})
        self.refusals = ThrottledLog(self.log)
        """Log of connections without a session.

        It is throttled because a peer can open any number of them.
        """
        self.visits = ThrottledLog(self.log, VISIT_LOG_BURST)
        """Log of clients that connect and disconnect."""
        self.address: tuple[str, int] = ("", 0)
        self.connected: dict[RobotClient, None] = {}
        """Connections that are not leaving, in order of arrival."""
        self.leaving: dict[RobotClient, float] = {}
        """Connections that sent CLOSE or were refused, with the timeout of each, s."""
        self._server: asyncio.Server | None = None
        self._closings = 0

    def refusal(self) -> str:
        """Return the reason to refuse a client now; empty if a client is welcome."""
        return ""

    @abstractmethod
    def admit(self, client: RobotClient) -> None:
        """Handle a client's first packet: call `begin` with a robot, or `refuse`.

        A factory calls `begin` later, when the robot exists.
        """

    # Not abstract, because factories need no action here.
    def settled(self, client: RobotClient) -> None:  # noqa: B027
        """Handle a client whose handshake is complete."""

    def gone(self, client: RobotClient, robot: Robot | None) -> None:
        """Remove a client that disconnected or whose session is over."""
        self.connected.pop(client, None)

    @property
    def client(self) -> RobotClient | None:
        """The first client that has a robot."""
        return next((c for c in self.connected if c.has_robot), None)

    async def listen(self, host: str, port: int) -> None:
        """Start to accept clients.

        Do nothing if another task opened or closed the server meanwhile.

        Raises
        ------
        PortError
            The address cannot be bound.
        """
        loop, closings = asyncio.get_running_loop(), self._closings
        try:
            # Create and start in two steps: asyncio leaks a listening socket if the
            # task is cancelled while it waits for `create_server` with
            # `start_serving=True`.
            server = await loop.create_server(
                lambda: RobotClient(self),
                host,
                port,
                backlog=self.backlog,
                start_serving=False,
            )
            try:
                await server.start_serving()
            except BaseException:
                server.close()
                raise
        except OSError as error:
            hint = (
                "; choose another first port with -p"
                if error.errno == errno.EADDRINUSE
                else ""
            )
            raise PortError(
                f"cannot listen on {host}:{port} for robot {self.name}: "
                f"{reason_of(error, port)}{hint}"
            ) from None

        # Another task may have run during the two awaits above.
        if self._server is not None or closings != self._closings:
            server.close()
            return

        note_port(server, f"robot {self.name}")
        self._server = server
        self.address = server.sockets[0].getsockname()[:2]

    @property
    def is_open(self) -> bool:
        """Whether it accepts clients."""
        return self._server is not None

    def close(self) -> None:
        """Stop accepting clients and end their sessions."""
        self._closings += 1
        if self._server is not None:
            self._server.close()
            self._server = None
            self.address = ("", 0)

        for client in (*self.connected, *self.leaving):
            client.shut()

    def make_room(self) -> None:
        """Refuse one stranger if there are too many.

        The handshake of the refused one has made no progress for longest. So neither
        silent connections nor half handshakes keep out a client that continues with its
        handshake.
        """
        strangers = [c for c in self.connected if not c.has_robot]
        if len(strangers) > self.max_strangers:
            # Bytes that the server has not read yet are no fault of the client: refuse
            # a truly silent one first.
            min(strangers, key=lambda c: (c.has_unread, c.standing_since)).refuse(
                "others came, and it had not finished the handshake"
            )


class PioneerServer(RobotPortServer):
    """The port of one robot, with one client at a time."""

    def __init__(
        self, hub: Hub, robot: Robot, settings: PioneerSettings, desk: PioneerRequests
    ) -> None:
        super().__init__(hub, robot.name, settings, desk)
        self.robot = robot
        self._asking: dict[RobotClient, None] = {}
        self._look: asyncio.Task[None] | None = None

    def refusal(self) -> str:
        """Return a reason to refuse further clients while the robot has one.

        A client that never sends OPEN cannot reserve the robot for long. For a flooding
        client, `admit` first checks whether it is still connected.
        """
        holder = self.client
        return (
            "the robot has a client already"
            if holder is not None and not (holder.dawdles or holder.floods)
            else ""
        )

    def admit(self, client: RobotClient) -> None:
        """Give the robot to the client, unless the robot already has one."""
        reason, holder = self.refusal(), self.client
        if reason:
            client.refuse(reason)
        elif holder is not None and holder.floods:
            self._asking[client] = None
            if self._look is None:
                self._look = asyncio.get_running_loop().create_task(
                    self._look_at(holder)
                )
        else:
            client.begin(self.robot)

    async def _look_at(self, holder: RobotClient) -> None:
        """Give the robot of a flooding client to the next client if it has gone."""
        try:
            await holder.read_on()
        finally:
            self._look = None
            asking, self._asking = self._asking, {}
            for client in asking:
                if client in self.connected and self.client is None:
                    client.begin(self.robot)
                else:
                    client.refuse("the robot has a client already")

    def gone(self, client: RobotClient, robot: Robot | None) -> None:
        """Remove a client, also from those that wait for the robot."""
        super().gone(client, robot)
        self._asking.pop(client, None)

    def settled(self, client: RobotClient) -> None:
        """Refuse all other clients: this one has the robot."""
        for other in tuple(self.connected):
            if other is not client:
                other.refuse("another client has taken the robot")


class RobotClient(asyncio.Protocol):
    """One TCP connection: a stranger, then a client, then leaving."""

    def __init__(self, server: RobotPortServer) -> None:
        self._server = server
        self._fence = ErrorBarrier(server.log, "a connection", self._abort)
        self._robot: Robot | None = None
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._stuck_since: float | None = None
        self._inlet: Inlet | None = None
        self._unseen = b""
        self._parser = Parser()
        self._early = b""
        self._early_count = 0
        self._is_settled = self._is_leaving = False
        self._came = self._loop.time()
        self.peer = "?"
        """Address and port of the peer."""

    @property
    def source(self) -> str:
        """Address of the peer."""
        return self.peer.rpartition(":")[0]

    @property
    def robot(self) -> Robot | None:
        """Robot of the client, if it has one."""
        return self._robot

    @property
    def robot_name(self) -> str:
        """Name of the client's robot; empty if it has none."""
        return self._robot.name if self._robot is not None else ""

    @property
    def has_robot(self) -> bool:
        """Whether the handshake is complete."""
        return self._is_settled

    @property
    def standing_since(self) -> float:
        """Time of the handshake's last progress, s of the event loop's clock.

        It is the time of the last packet, or of the connection.
        """
        return (
            self._came
            if self._connection is None
            else max(self._came, self._connection.session.silent_since)
        )

    @property
    def dawdles(self) -> bool:
        """Whether the client is silent since its handshake, even without OPEN.

        It counts as silent after the time that a handshake may take.
        """
        if self._connection is None:
            return False
        session = self._connection.session
        is_late = (
            session.stage is Stage.READY
            and self._loop.time() - session.silent_since > HANDSHAKE_SECONDS
        )
        return is_late and not self.has_unread

    @property
    def has_unread(self) -> bool:
        """Whether bytes from the client wait unread.

        Then the delay is the server's, and the client does not count as silent.
        """
        if self._unseen or (self._inlet is not None and self._inlet.waits):
            return True
        return self._transport is not None and has_unread(
            self._transport.get_extra_info("socket")
        )

    @property
    def floods(self) -> bool:
        """Whether bytes are queued and reading is paused.

        The client may have disconnected unnoticed.
        """
        return self._inlet is not None and self._inlet.waits

    async def read_on(self) -> None:
        """Check whether a flooding client is still connected: read ahead until its end
        of stream, for at most `LIVENESS_READ_S`.
        """
        sock = (
            None
            if self._transport is None
            else self._transport.get_extra_info("socket")
        )
        # Reading from the file descriptor behind asyncio's back works on POSIX only.
        if sock is None or self._inlet is None or os.name != "posix":
            return
        end, count, lost = self._loop.time() + LIVENESS_READ_S, 0, 0
        while (
            self._loop.time() < end and count < MAX_LIVENESS_READ and self._inlet.waits
        ):
            try:
                data = os.read(sock.fileno(), 1 << 18)
            except BlockingIOError:
                await asyncio.sleep(0.01)
                continue
            except OSError:
                data = b""

            if not data:
                self._abort()
                return

            count += len(data)
            lost += 0 if self._inlet.hold(data) else len(data)
            await asyncio.sleep(0)

        if lost:
            self._server.refusals.log(
                logging.WARNING,
                "client %s floods, and others request its robot: discarded %d bytes from it",
                self.peer,
                lost,
            )

    # -- asyncio callbacks: an exception ends only this connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)
        self._fence.run(self._made)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._fence.run(self._received, data)

    def eof_received(self) -> bool:
        """See `asyncio.Protocol`."""
        # False makes asyncio close this side of the connection as well.
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._inlet is not None:
            self._inlet.close()
        # Hundreds of clients may disconnect at once, so their ends share the time
        # budget of an iteration.
        self._server.hub.intake.soon(lambda: self._fence.run(self._lost))

    # -- called through the error barrier

    def _made(self) -> None:
        assert self._transport is not None
        peer = self._transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        keep_alive(self._transport.get_extra_info("socket"))
        server = self._server
        server.connected[self] = None
        if server.refusal():
            # The event that frees the robot, such as the CLOSE of another client, may
            # already be on its socket but unread. Decide at this client's first packet
            # or after this delay; by then the event has been read.
            self._timer = self._loop.call_later(REFUSAL_DELAY_S, self._look_again)
        else:
            self._timer = self._loop.call_later(
                FIRST_PACKET_TIMEOUT_S, self._say_nothing
            )

        server.make_room()

    def _look_again(self) -> None:
        """Check whether a silent client is welcome by now."""
        reason = self._server.refusal()
        # The unread first packet triggers the check again.
        if reason and self.has_unread:
            self._timer = self._loop.call_later(LOOK_AGAIN_S, self._look_again)
        elif reason:
            self.refuse(reason)
        else:
            self._timer = self._loop.call_later(
                FIRST_PACKET_TIMEOUT_S - REFUSAL_DELAY_S, self._say_nothing
            )

    def _say_nothing(self) -> None:
        if self.has_unread:
            self._timer = self._loop.call_later(LOOK_AGAIN_S, self._say_nothing)
            return

        self.refuse(f"it said nothing for {FIRST_PACKET_TIMEOUT_S:g} s")

    def _received(self, data: bytes) -> None:
        # Read and discard: closing a socket with unread bytes resets the connection.
        if self._is_leaving:
            return
        if self._inlet is not None and not self._unseen:
            self._inlet.take(data)
            return

        self._unseen += data
        # Otherwise `_look_at_unseen` is already scheduled.
        if len(self._unseen) == len(data):
            self._server.hub.intake.soon(lambda: self._fence.run(self._look_at_unseen))

    def _look_at_unseen(self) -> None:
        data, self._unseen = self._unseen, b""
        if self._is_leaving:
            return
        if self._inlet is not None:
            self._inlet.take(data)
            return

        self._early += data
        self._early_count += len(data)
        # After its first packet, the client waits for its robot.
        if not self._has_packet():
            self._look_for_packet(data)
            if self._has_packet():
                self._stop_timer()
                self._server.admit(self)
            else:
                # The tail may hold the start of a packet.
                self._early = self._early[-MAX_PACKET:]

        if (
            self._early_count > MAX_EARLY
            and self._inlet is None
            and not self._is_leaving
        ):
            self.refuse(f"it sent {self._early_count} bytes before its handshake")

    def _has_packet(self) -> bool:
        return self._parser.counts.packets > 0

    def _look_for_packet(self, data: bytes) -> None:
        """Parse bytes up to the first packet; the session parses the rest."""
        for at in range(0, min(len(data), MAX_EARLY), MAX_PACKET):
            if self._parser.receive(data[at : at + MAX_PACKET]):
                return

    def begin(self, robot: Robot) -> None:
        """Start a session with this robot, and process the bytes so far."""
        server, transport = self._server, self._transport
        assert transport is not None
        self._robot = robot
        log = (
            server.log
            if robot.name == server.name
            else RobotLog(server.log.logger, {"robot": robot.name})
        )
        server.visits.log(logging.INFO, "client %s connected", self.peer, to=log)
        session = Session(server.desk.port(robot), server.settings, self._loop.time())
        session.has_unread = lambda: self.has_unread
        host = self.source
        is_local = host.startswith("127.") or host == "::1"
        self._connection = Connection(
            session,
            self._write,
            self._finish,
            log,
            server.desk,
            is_local,
            server.visits,
        )
        server.hub.reporter.attach(self._connection)
        self._inlet = Inlet(
            server.hub.intake,
            self._work,
            transport.pause_reading,
            transport.resume_reading,
            self._has_hung_up,
            self._abort,
        )
        # Bytes that arrived before the session go through the rate limits as well.
        early, self._early = self._early, b""
        self._inlet.take(early)

    def _work(self, data: bytes) -> None:
        if self._connection is None:
            return
        self._connection.receive(data, self._loop.time())
        if (
            not self._is_settled
            and not self._connection.is_over
            and self._connection.session.has_robot
        ):
            self._is_settled = True
            self._server.settled(self)

    def _has_hung_up(self) -> bool:
        """Return whether the peer has closed, even if unread bytes remain."""
        sock = (
            None
            if self._transport is None
            else self._transport.get_extra_info("socket")
        )
        return sock is None or has_hung_up(sock.fileno())

    def _lost(self) -> None:
        self._stop_timer()
        if self._connection is not None:
            self._connection.receive_eof()
        elif not self._is_leaving:
            self._server.refusals.log(
                logging.INFO, "%s connected and went away without a packet", self.peer
            )

        self._leave()

    def _leave(self) -> None:
        """Remove this connection from the server."""
        self._server.leaving.pop(self, None)
        robot, self._robot = self._robot, None
        self._server.gone(self, robot)

    # -- the connection's side

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        # A slow reader gets no further reports: an unbounded buffer would grow without
        # end, and old reports are useless to it.
        if transport.get_write_buffer_size() < MAX_UNSENT:
            self._stuck_since = None
            transport.write(data)
            return

        self._server.hub.dropped_reports += 1
        now = self._loop.time()
        if self._stuck_since is None:
            self._stuck_since = now
            self._server.log.warning(
                "client %s does not read: reports are dropped until it does", self.peer
            )
        # `has_room` asks the kernel: a client that read since asyncio's last attempt to
        # write is not stuck.
        elif now - self._stuck_since > MAX_STUCK and not has_room(
            transport.get_extra_info("socket")
        ):
            self._server.log.warning(
                "client %s has not read for %g s: disconnected", self.peer, MAX_STUCK
            )
            transport.abort()

    def _finish(self) -> None:
        """End the session; from now on the robot is free for the next client."""
        self._stop_timer()
        if self._connection is not None:
            self._server.hub.reporter.detach(self._connection)
        if self._inlet is not None:
            self._inlet.close()
        transport = self._transport
        try:
            self._leave()
        finally:
            if transport is not None and not transport.is_closing():
                if (
                    self._connection is not None
                    and self._connection.session.has_sent_close
                ):
                    self._say_goodbye(CLOSE_LINGER_S)
                else:
                    transport.close()

    def _say_goodbye(self, seconds: float) -> None:
        """Discard input until the peer closes or the timeout ends.

        To close a socket with unread bytes resets the connection, which would also
        destroy the bytes that the peer has not read yet.
        """
        transport, leaving = self._transport, self._server.leaving
        assert transport is not None
        self._is_leaving = True
        self._early = b""
        transport.resume_reading()
        self._timer = self._loop.call_later(seconds, transport.abort)
        leaving[self] = seconds
        # Count each kind separately, so that refused clients never cut off clients that
        # sent CLOSE.
        alike = [client for client, time in leaving.items() if time == seconds]
        if len(alike) > MAX_LEAVING:
            alike[0].shut()

    def refuse(self, reason: str) -> None:
        """Refuse the client, log the reason, and end its session if there is one."""
        self._server.refusals.log(
            logging.WARNING, "client %s refused: %s", self.peer, reason
        )
        self._stop_timer()
        if self._connection is not None:
            self._connection.close(reason)
            return

        self._leave()
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        # The peer may have reset the connection meanwhile.
        with contextlib.suppress(OSError):
            transport.write_eof()
        self._say_goodbye(REFUSED_LINGER_S)

    def shut(self) -> None:
        """End the connection from the server's side."""
        if self._connection is not None and not self._connection.is_over:
            self._connection.close("the simulator is closing")
        elif self._transport is not None:
            self._transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _abort(self) -> None:
        """End the connection in any state, as if it were cut."""
        self._stop_timer()
        if self._connection is not None:
            call_all_suppressing(
                lambda: (
                    self._connection.receive_eof()
                    if self._connection is not None
                    else None
                )
            )

        call_all_suppressing(
            self._leave,
            lambda: self._transport.abort() if self._transport is not None else None,
        )


__all__ = ["PioneerServer", "RobotClient", "RobotPortServer"]
