"""TCP servers for the Pioneer protocol: one port for each robot or robot factory
(pioneer-protocol §2).
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
"""A client that leaves this many bytes unread gets no further reports until it has
caught up.
"""
REFUSED_LINGER_S = 1.0
"""Time-out after which a refused client that does not close its side is disconnected,
s.
"""
CLOSE_LINGER_S = 3.0
"""The same of a client that has sent CLOSE; until then its data is read and discarded,
since its threads may still be writing.
"""
MAX_LEAVING = 16
"""Most connections of each of these two kinds on a port; the oldest is disconnected for
a new one.
"""
LOOK_AGAIN_S = 0.1
"""A client that would be called silent while bytes of it wait is looked at again after
this time, s.
"""
REFUSAL_DELAY_S = 0.1
"""A connection that comes while the robot has a client is refused at its first packet,
or after this delay, s.
"""
MAX_STRANGERS = 16
"""So many connections whose handshake is not complete a robot's port keeps; the one
that was silent for longest makes room for one more.
"""
FIRST_PACKET_TIMEOUT_S = 10.0
"""Time-out of the first valid packet of a connection, s."""
LIVENESS_READ_S = 0.5
"""Liveness check of a flooding client whose robot others want: longest read for its end
of stream, s.
"""
MAX_LIVENESS_READ = 16 * 1024 * 1024
"""The same: most bytes to read."""
MAX_EARLY = 16 * 1024
"""Most bytes before the first valid packet; then the connection is closed."""
VISIT_LOG_BURST = 50
"""Burst of log lines about clients that come and go; the sustained rate is one per
second, which counts the others.
"""


class RobotPortServer(ABC):
    """A listening port behind which clients find a robot.

    Whoever connects is a stranger until a good packet has come, and costs nothing but
    its connection: a robot's first client is the one whose handshake is complete, not
    the one that connected first.

    Parameters
    ----------
    hub : Hub
        Runs the simulation.
    name : str
        For the log: of the robot, or of the factory.
    settings : PioneerSettings
        Choices of the user about the protocol.
    desk : PioneerRequests
        Takes what clients ask of the whole simulation.
    """

    max_strangers = MAX_STRANGERS
    backlog = 16
    """Connections that the system keeps until they are accepted, and that are accepted
    at a time.
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
        """Connections that came to nothing: anybody can make any number of them."""
        self.visits = ThrottledLog(self.log, VISIT_LOG_BURST)
        """Clients that come and go."""
        self.address: tuple[str, int] = ("", 0)
        self.connected: dict[RobotClient, None] = {}
        """All connections that are not on their way out, in order."""
        self.leaving: dict[RobotClient, float] = {}
        """Those that have said goodbye or were refused, and how long each is read at
        most, s.
        """
        self._server: asyncio.Server | None = None
        self._closings = 0

    def refusal(self) -> str:
        """Why nobody is welcome now; empty: somebody is."""
        return ""

    @abstractmethod
    def admit(self, client: RobotClient) -> None:
        """A client has sent its first packet: let it `begin` with a robot, now or
        later, or `refuse` it.
        """

    def settled(self, client: RobotClient) -> None:  # noqa: B027  # factories have nothing to do
        """A client's handshake is complete."""

    def gone(self, client: RobotClient, robot: Robot | None) -> None:
        """A client has gone, or its session is over."""
        self.connected.pop(client, None)

    @property
    def client(self) -> RobotClient | None:
        """The first of the clients that have a robot."""
        return next((c for c in self.connected if c.has_robot), None)

    async def listen(self, host: str, port: int) -> None:
        """Begin to accept clients; not if it was closed, or opened by somebody else,
        meanwhile.

        Raises
        ------
        PortError
            The address cannot be bound.
        """
        loop, closings = asyncio.get_running_loop(), self._closings
        try:
            # in two parts: asyncio loses a socket that listens already when who waits
            # for it is cancelled
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
        """There is one stranger more: if there are too many, the one goes whose
        handshake has stood still for longest.

        So neither silence nor half a handshake keeps out one who goes on with his.
        """
        strangers = [c for c in self.connected if not c.has_robot]
        if len(strangers) > self.max_strangers:
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
        """The robot has a client; but one that does not say OPEN does not keep it for
        long from those who would.

        Nor does one that floods: whether it is there still is looked at first.
        """
        holder = self.client
        return (
            "the robot has a client already"
            if holder is not None and not (holder.dawdles or holder.floods)
            else ""
        )

    def admit(self, client: RobotClient) -> None:
        """The robot, unless it has a client by now."""
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
        """Others want the robot of one that floods: they have it if that has gone."""
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
        """It asks no more."""
        super().gone(client, robot)
        self._asking.pop(client, None)

    def settled(self, client: RobotClient) -> None:
        """The robot is this client's: the others were too slow."""
        for other in tuple(self.connected):
            if other is not client:
                other.refuse("another client has taken the robot")


class RobotClient(asyncio.Protocol):
    """One TCP connection: a stranger, then a client with a session, then on its way
    out.
    """

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
        """Address and port of the other end."""

    @property
    def source(self) -> str:
        """Address of the other end."""
        return self.peer.rpartition(":")[0]

    @property
    def robot(self) -> Robot | None:
        """Its robot, if it has one."""
        return self._robot

    @property
    def robot_name(self) -> str:
        """Name of its robot; empty when it has none."""
        return self._robot.name if self._robot is not None else ""

    @property
    def has_robot(self) -> bool:
        """Its handshake is complete."""
        return self._is_settled

    @property
    def standing_since(self) -> float:
        """When its handshake went on last: at its last packet, or when it came; s of
        the loop's clock.
        """
        return (
            self._came
            if self._connection is None
            else max(self._came, self._connection.session.silent_since)
        )

    @property
    def dawdles(self) -> bool:
        """Its handshake is complete, but it has said nothing since, not even OPEN, for
        as long as a handshake may take.
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
        """Whether bytes of it have come and wait to be looked at: it is not silent
        then, it is we who are late.
        """
        if self._unseen or (self._inlet is not None and self._inlet.waits):
            return True
        return self._transport is not None and has_unread(
            self._transport.get_extra_info("socket")
        )

    @property
    def floods(self) -> bool:
        """What it has sent waits, and nothing is read from it: it may have gone long
        ago.
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
                "client %s floods, and others want the robot: %d bytes of it are lost",
                self.peer,
                lost,
            )

    # -- asyncio's side: exceptions end this connection alone

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)
        self._fence.run(self._made)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._fence.run(self._received, data)

    def eof_received(self) -> bool:
        """See `asyncio.Protocol`."""
        return False  # close our side too

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._inlet is not None:
            self._inlet.close()
        self._server.hub.intake.soon(lambda: self._fence.run(self._lost))

    # -- inside the fence

    def _made(self) -> None:
        assert self._transport is not None
        peer = self._transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        keep_alive(self._transport.get_extra_info("socket"))
        server = self._server
        server.connected[self] = None
        if server.refusal():
            # what makes room for it may have been sent already, such as another's
            # CLOSE, and not been read: its own first packet, or this time, comes after
            # that
            self._timer = self._loop.call_later(REFUSAL_DELAY_S, self._look_again)
        else:
            self._timer = self._loop.call_later(
                FIRST_PACKET_TIMEOUT_S, self._say_nothing
            )

        server.make_room()

    def _look_again(self) -> None:
        """It has said nothing so far: whether it is welcome now."""
        reason = self._server.refusal()
        if reason and self.has_unread:  # its first packet asks anew
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
        if self._is_leaving:
            return  # thrown away
        if self._inlet is not None and not self._unseen:
            self._inlet.take(data)
            return

        self._unseen += data
        # else it waits for its turn already
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
        if not self._has_packet():  # else its robot is being made
            self._look_for_packet(data)
            if self._has_packet():
                self._stop_timer()
                self._server.admit(self)
            else:
                self._early = self._early[-MAX_PACKET:]  # a packet may have begun in it

        if (
            self._early_count > MAX_EARLY
            and self._inlet is None
            and not self._is_leaving
        ):
            self.refuse(f"it sent {self._early_count} bytes before its handshake")

    def _has_packet(self) -> bool:
        return self._parser.counts.packets > 0

    def _look_for_packet(self, data: bytes) -> None:
        """Look at what a stranger sends as far as its first packet, which it should
        begin with: the session looks at all else.
        """
        for at in range(0, min(len(data), MAX_EARLY), MAX_PACKET):
            if self._parser.receive(data[at : at + MAX_PACKET]):
                return

    def begin(self, robot: Robot) -> None:
        """Have this robot, and what has come so far worked off."""
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
        """Whether the other end is closed, although there is more to read."""
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
        """The server knows it no more."""
        self._server.leaving.pop(self, None)
        robot, self._robot = self._robot, None
        self._server.gone(self, robot)

    # -- the connection's side

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
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
        elif now - self._stuck_since > MAX_STUCK and not has_room(
            transport.get_extra_info("socket")
        ):
            self._server.log.warning(
                "client %s has not read for %g s: disconnected", self.peer, MAX_STUCK
            )
            transport.abort()

    def _finish(self) -> None:
        """The session is over: the robot is free for the next client from now on."""
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
        """Throw away what still comes until the other end closes, but not for ever:
        closing over unread bytes resets the connection.
        """
        transport, leaving = self._transport, self._server.leaving
        assert transport is not None
        self._is_leaving = True
        self._early = b""
        transport.resume_reading()
        self._timer = self._loop.call_later(seconds, transport.abort)
        leaving[self] = seconds
        alike = [
            client for client, time in leaving.items() if time == seconds
        ]  # the refused do not cut off those who said CLOSE
        if len(alike) > MAX_LEAVING:
            alike[0].shut()

    def refuse(self, reason: str) -> None:
        """Say no, and why to the log; what it has begun ends."""
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
        with contextlib.suppress(OSError):  # it has been reset meanwhile
            transport.write_eof()
        self._say_goodbye(REFUSED_LINGER_S)

    def shut(self) -> None:
        """End it from the server's side."""
        if self._connection is not None and not self._connection.is_over:
            self._connection.close("the simulator is closing")
        elif self._transport is not None:
            self._transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _abort(self) -> None:
        """End it whatever its state is, as when it had been cut."""
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
