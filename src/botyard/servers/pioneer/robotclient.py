"""Connections of Pioneer clients, and the ports that accept them (pioneer-protocol §2)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from botyard.errors import PortError
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.pioneer.handshake import Stage
from botyard.protocols.pioneer.packet import MAX_PACKET, Parser
from botyard.protocols.pioneer.session import HANDSHAKE_SECONDS, Session
from botyard.servers.addresses import is_loopback
from botyard.servers.clientfacts import pioneer_facts
from botyard.servers.hub import Hub
from botyard.servers.pioneer.connection import Connection, RobotLog
from botyard.servers.sockets import READ_SIZE, keep_alive, note_port, reason_of
from botyard.servers.streampeer import PIECE, Allowance, StreamPeer
from botyard.servers.throttledlog import ThrottledLog
from botyard.sim.simulation import Robot

MAX_UNSENT = 256 * 1024
"""Number of unread output bytes of a client above which its reports are dropped."""
REFUSED_LINGER_S = 1.0
"""Timeout to disconnect a refused client that keeps its side open, s."""
# Until the disconnect, data is read and discarded: threads of the client may still write.
CLOSE_LINGER_S = 3.0
"""Timeout to disconnect a client that sent CLOSE, s."""
MAX_LEAVING = 16
"""Maximum number of leaving connections of each kind on a port.

The kinds are refused clients and clients that sent CLOSE. A new one displaces the
oldest of its kind.
"""
REFUSAL_DELAY_S = 0.1
"""Delay before a silent connection is refused while the robot has a client, s."""
FIRST_PACKET_TIMEOUT_S = 10.0
"""Timeout for the first valid packet of a connection, s."""
LIVENESS_READ_S = 0.5
"""Liveness check of a flooding client (`read_ahead`): longest read ahead, s."""
MAX_AHEAD = 4 * 1024 * 1024
"""Liveness check of a flooding client: maximum number of bytes to keep."""
# A robot's serial line carries 960 to 11520 bytes/s.
RATE = 4096.0
"""Token bucket of each client's bytes: sustained rate, bytes/s."""
TIME_SHARE = 0.01
"""Token bucket of each client's processing time: sustained share of time."""
MAX_EARLY = 16 * 1024
"""Maximum number of bytes before the first valid packet; a client that sends more is refused."""
VISIT_LOG_BURST = 50
"""Burst of log lines about clients that connect and disconnect.

After the burst there is one line per second, with the number of dropped lines.
"""
# At the limit, a new connection displaces the one that was silent for longest.
MAX_STRANGERS = 16
"""Maximum number of connections on a robot's port whose handshake is incomplete."""


class RobotClient(StreamPeer):
    """One TCP connection; its peer counts as a client from its first valid packet on."""

    max_waiting = READ_SIZE
    piece = PIECE
    # A client that only sends commands need not read its reports.
    waits_for_reader = False

    def __init__(self, server: RobotPortServer) -> None:
        super().__init__(
            server.hub.turns, server.log, "a connection", Allowance(RATE, TIME_SHARE)
        )
        self._server = server
        self._robot: Robot | None = None
        self._connection: Connection | None = None
        self._parser = Parser()
        self._early = self._parsed = self.dropped = 0
        """Numbers: bytes before the first packet, bytes of `inbox` parsed so far, dropped reports.
        """
        self._is_settled = self._is_dropping = False
        self._intake_socket = -1
        """Socket that the intake reads for this connection; -1: none."""
        self._came = self.loop.time()
        self._answer: Callable[[], None] | None = None
        """Callback of `read_ahead`."""

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

        Progress is the last packet, or the connection itself before the first packet.
        """
        return (
            self._came
            if self._connection is None
            else max(self._came, self._connection.session.silent_since)
        )

    @property
    def dawdles(self) -> bool:
        """Whether the client has sent nothing since its handshake, not even OPEN.

        A client counts as silent after the time that a handshake may take.
        """
        if self._connection is None:
            return False
        session = self._connection.session
        is_late = (
            session.stage is Stage.READY
            and self.loop.time() - session.silent_since > HANDSHAKE_SECONDS
        )
        return is_late and not self.has_unread

    @property
    def is_held_up(self) -> bool:
        """Whether received bytes wait for processing time, not only for the rest of a packet."""
        return len(self.inbox) > self._parsed

    @property
    def floods(self) -> bool:
        """Whether the client sends faster than its bytes are processed, so that reading is paused.

        While reading is paused, a disconnect of the client goes unnoticed.
        """
        return self._connection is not None and self.is_reading_paused

    def read_ahead(self, answer: Callable[[], None]) -> None:
        """Check whether a flooding client is still connected.

        Parameters
        ----------
        answer : callable
            Called at the end of the client's stream, or after `LIVENESS_READ_S`.
        """
        self._answer = answer
        # Set the limit on this object alone: the class attribute applies to other
        # clients.
        self.max_waiting = MAX_AHEAD
        self.read_on()
        self.loop.call_later(LIVENESS_READ_S, self._stop_reading_ahead)

    def _stop_reading_ahead(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            self.max_waiting = READ_SIZE
            self.read_on()
            answer()

    def data_received(self, data: bytes) -> None:
        """Queue received bytes (callback of `asyncio.Protocol`)."""
        # Beyond this number, only the end of the stream matters: discard bytes to bound
        # memory.
        if self._answer is not None and len(self.inbox) > MAX_AHEAD - READ_SIZE:
            self._server.refusals.log(
                logging.WARNING,
                "client %s sends too much while others request its robot: its bytes "
                "are discarded",
                self.peer,
            )
            return

        super().data_received(data)

    # -- called through the error barrier

    def opened(self) -> None:
        """Register a connection that has not sent a valid packet yet."""
        keep_alive(self.socket)
        server = self._server
        server.connected[self] = None
        # The event that frees the robot, such as the CLOSE of another client, may
        # already be on its socket but unread. Decide at this client's first packet or
        # after a delay; by then the event has been read.
        self.give(REFUSAL_DELAY_S if server.refusal() else FIRST_PACKET_TIMEOUT_S)
        server.make_room()

    def overdue(self) -> None:
        """Refuse a connection without a packet, unless the robot has become free."""
        left = self._came + FIRST_PACKET_TIMEOUT_S - self.loop.time()
        reason = self._server.refusal()
        if reason:
            self.refuse(reason)
        elif left > 0.0:
            self.give(left)
        else:
            self.refuse(f"the client sent nothing for {FIRST_PACKET_TIMEOUT_S:g} s")

    def turn(self) -> bool:
        """Process waiting bytes; before the first valid packet, only look for that packet."""
        if self._connection is not None:
            return super().turn()
        # After its first packet, the client waits for its robot.
        if not self.is_leaving and not self._has_packet():
            self._look_for_packet()
        return False

    def _has_packet(self) -> bool:
        return self._parser.counts.packets > 0

    def _look_for_packet(self) -> None:
        """Parse bytes up to the first packet; the session parses them again."""
        while self._parsed < len(self.inbox) and self._early <= MAX_EARLY:
            piece = bytes(self.inbox[self._parsed : self._parsed + MAX_PACKET])
            self._parsed += len(piece)
            self._early += len(piece)
            if self._parser.feed_bytes(piece):
                self.give(None)
                self._server.admit(self)
                return

        if self._early > MAX_EARLY:
            self.refuse(f"the client sent {self._early} bytes before its handshake")
            return

        # The tail may hold the start of a packet.
        del self.inbox[:-MAX_PACKET]
        self._parsed = len(self.inbox)

    def begin(self, robot: Robot) -> None:
        """Start a session with this robot, and process the bytes so far.

        Parameters
        ----------
        robot : Robot
            Robot of this client until the session ends.
        """
        server, self._parsed = self._server, 0
        self._robot = robot
        log = (
            server.log
            if robot.name == server.name
            else RobotLog(server.log.logger, {"robot": robot.name})
        )
        server.visits.log(logging.INFO, "client %s connected", self.peer, to=log)
        session = Session(server.desk.port(robot), server.settings, self.loop.time())
        session.has_unread = lambda: self.has_unread
        self._connection = Connection(
            session,
            self._write,
            self._finish,
            log,
            server.desk,
            is_loopback(self.peer.address),
            server.visits,
            self._has_no_unsent,
        )
        self._connection.facts = partial(pioneer_facts, self)
        server.hub.reporter.attach(self._connection)
        if self.socket is not None and self._has_no_unsent():
            server.hub.reporter.open(self._connection, self.socket.fileno())
        self.turns.wants(self)

    def on_bytes(self, data: bytes) -> None:
        """Pass bytes to the session."""
        if self._connection is None:
            return
        self._connection.receive_data(data, self.loop.time())
        if (
            not self._is_settled
            and not self._connection.is_over
            and self._connection.session.has_robot
        ):
            self._is_settled = True
            self._server.settled(self)
        self._enter_intake()

    def _enter_intake(self) -> None:
        """Let the intake read this socket, if the session allows it."""
        intake, connection = self._server.hub.intake, self._connection
        if (
            self._intake_socket < 0
            and connection is not None
            and not (self.inbox or self.is_leaving or self.is_reading_paused)
            and intake.admits(connection.session)
            and self.transport is not None
            and not self.transport.is_closing()
            and self.socket is not None
        ):
            self._intake_socket = self.socket.fileno()
            self.transport.pause_reading()
            intake.add(self, connection.session, self._intake_socket)

    def _leave_intake(self) -> None:
        if self._intake_socket >= 0:
            self._server.hub.intake.remove(self._intake_socket)
            self._intake_socket = -1
            if self.transport is not None:
                self.transport.resume_reading()

    def take_back(self, data: bytes) -> None:
        """Process bytes that the intake has read, and read the socket again."""
        self._leave_intake()
        if data:
            self.data_received(data)

    def stuck(self) -> None:
        """Disconnect a client that does not read."""
        self._server.log.warning(
            "client %s has not read for %g s: disconnected", self.peer, self.max_stuck
        )
        self.drop()

    def closed(self) -> None:
        """End the session, and free the robot."""
        if self._connection is not None:
            self._connection.receive_eof()
        elif self in self._server.connected:
            self._server.refusals.log(
                logging.INFO, "%s disconnected without a packet", self.peer
            )

        self._free()
        self._stop_reading_ahead()

    def _free(self) -> None:
        """Remove this connection from the server."""
        self._server.leaving.pop(self, None)
        robot, self._robot = self._robot, None
        self._server.gone(self, robot)

    def _leave(self, seconds: float) -> None:
        self._leave_intake()
        self._shut_reports()
        super()._leave(seconds)

    def _let_go(self) -> None:
        # asyncio closes the socket next, and the system may reuse its number.
        self._leave_intake()
        self._shut_reports()
        super()._let_go()

    def _shut_reports(self) -> None:
        if self._connection is not None:
            self._server.hub.reporter.shut(self._connection)

    # -- the connection's side

    def _has_no_unsent(self) -> bool:
        """Return whether all written bytes have reached the system's buffer."""
        return (
            self.outlet is not None
            and self.transport is not None
            and not self.outlet.is_full
            and not self.transport.get_write_buffer_size()
        )

    def _write(self, data: bytes) -> None:
        self._put(data)
        # Reports written directly to the socket would overtake waiting bytes.
        if not self._has_no_unsent() and self._connection is not None:
            self._server.hub.reporter.hold(self._connection)

    def _put(self, data: bytes) -> None:
        outlet = self.outlet
        assert outlet is not None
        # A slow reader gets no further reports: an unbounded buffer would grow without
        # end, and old reports are useless to it.
        if not outlet.is_full or outlet.unread < MAX_UNSENT:
            self._is_dropping = False
            outlet.write(data)
            return

        self._server.hub.dropped_reports += 1
        self.dropped += 1
        if not self._is_dropping:
            self._is_dropping = True
            self._server.log.warning(
                "client %s does not read: reports are dropped until it does", self.peer
            )

    def _finish(self) -> None:
        """End the session; from now on the robot is free for the next client."""
        connection = self._connection
        assert connection is not None
        self._leave_intake()
        self._server.hub.reporter.detach(connection)
        try:
            self._free()
        finally:
            if not self.is_over:
                if connection.session.has_sent_close:
                    self._say_goodbye(CLOSE_LINGER_S)
                else:
                    self.finish()

    def _say_goodbye(self, seconds: float) -> None:
        """Discard input until the peer closes or the timeout ends."""
        leaving = self._server.leaving
        self.linger(seconds)
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
        self.give(None)
        if self._connection is not None:
            self._connection.close(reason)
            return

        self._free()
        transport = self.transport
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
        else:
            self.drop()


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

    # This method is not abstract, because factories need no action here.
    def settled(self, client: RobotClient) -> None:  # noqa: B027
        """Handle a client that has completed the handshake."""

    def gone(self, client: RobotClient, robot: Robot | None) -> None:
        """Remove a client that disconnected or whose session is over.

        Parameters
        ----------
        client : RobotClient
            The client.
        robot : Robot or None
            Robot that it had; None if it had none.
        """
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
        """Whether the port accepts clients."""
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
        """Refuse one client without a complete handshake if there are too many.

        The refused client is the one whose handshake has made no progress for longest.
        So neither silent connections nor incomplete handshakes keep out a client that
        continues with its handshake.
        """
        strangers = [c for c in self.connected if not c.has_robot]
        if len(strangers) > self.max_strangers:
            # Bytes that the server has not read yet are no fault of the client: refuse
            # a truly silent one first.
            min(strangers, key=lambda c: (c.has_unread, c.standing_since)).refuse(
                "other clients connected before it finished the handshake"
            )


__all__ = ["MAX_AHEAD", "MAX_UNSENT", "RobotClient", "RobotPortServer"]
